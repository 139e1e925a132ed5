"""What a database really holds, seen by a superuser past row level security."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from psycopg import sql

if TYPE_CHECKING:
    from conftest import Database


def execute(database: Database, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement as the superuser, commit, and return its rows if it has any."""
    with database.connect() as connection:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def tables(database: Database) -> list[str]:
    """Return the name of every table the product has, from the catalogue."""
    found = execute(
        database,
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' "
        "ORDER BY 1",
    )
    return [name for (name,) in found]


def rows(database: Database, table: str, where: str = "true") -> list[str]:
    """Return each row of a table as PostgreSQL writes it, every column included."""
    statement = sql.SQL("SELECT t::text FROM {} AS t WHERE {} ORDER BY 1").format(sql.SQL(table), sql.SQL(where))
    with database.connect() as connection:
        return [row for (row,) in connection.execute(statement)]


def snapshot(database: Database, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return all rows of all tables."""
    return {table: rows(database, table) for table in tables(database) if table not in without}


def counts(database: Database) -> dict[str, int]:
    """Return how many rows each table has that has any, the schema's own revision aside."""
    found = {table: len(held) for table, held in snapshot(database, without=("alembic_version",)).items()}
    return {table: number for table, number in found.items() if number}


def traces(database: Database, marker: str) -> list[str]:
    """Return the tables in any of whose columns a marker of letters and digits is left, as text or as bytes."""
    assert marker.isalnum()
    sought = marker.casefold(), marker.encode().hex()
    return [
        table
        for table, held in snapshot(database).items()
        if any(form in row.casefold() for row in held for form in sought)
    ]


def await_lock_waits(database: Database, number: int | Callable[[], int], *, seconds: float = 15) -> None:
    """Wait until this many of the database's sessions wait for a lock."""
    until = time.monotonic() + seconds
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with database.connect(autocommit=True) as connection:
        while connection.execute(waiting).fetchone() != (number() if callable(number) else number,):
            assert time.monotonic() < until, "those sessions never came to wait for a lock"
            time.sleep(0.01)
