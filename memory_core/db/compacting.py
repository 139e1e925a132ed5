"""Rewriting tables and indexes, so that nothing of what was erased is left in their files."""

from __future__ import annotations

from psycopg import sql
from sqlalchemy import URL, text

from memory_core.db.engine import new_engine, translated_errors
from memory_core.db.tables import directory, memory, rights_request

TABLES = (memory, directory, rights_request)  # that hold words of or about people


def compact(owner: URL) -> None:
    """Rewrite every table that holds words, with its indexes, and have PostgreSQL write out its log up to here.

    Each table is locked while it is rewritten. Raises a `DatabaseError`.
    """
    engine = new_engine(owner)
    try:
        with translated_errors(), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in TABLES:
                name = sql.Identifier(table.name).as_string(None)
                connection.execute(text(f"VACUUM (FULL, ANALYZE) {name}"))
            if connection.scalar(text("SELECT pg_has_role(current_user, 'pg_checkpoint', 'USAGE')")):
                connection.execute(text("CHECKPOINT"))
    finally:
        engine.dispose()
