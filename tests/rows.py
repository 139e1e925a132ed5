"""What a database really holds, seen by a superuser past row level security, who may also empty it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from conftest import Database


def emptied(database: Database) -> Database:
    """Delete every row the tests before this one left."""
    with database.connect() as connection:
        connection.execute("SET LOCAL session_replication_role = replica")  # in any order, whatever refers to what
        for (table,) in connection.execute(TABLES).fetchall():
            if table != "alembic_version":
                connection.execute(f"DELETE FROM {table}")
    return database


def execute(database: Database, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement as the superuser, commit, and return its rows if it has any."""
    with database.connect() as connection:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


TABLES = """
    SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1
"""


def tables(database: Database) -> list[str]:
    """Return the name of every table the product has, from the catalogue."""
    return [name for (name,) in execute(database, TABLES)]


def rows(database: Database, table: str, where: str = "true") -> list[str]:
    """Return each row of a table as PostgreSQL writes it, every column included."""
    return [row for (row,) in execute(database, f"SELECT t::text FROM {table} AS t WHERE {where} ORDER BY 1")]


def snapshot(database: Database, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return all rows of all tables."""
    with database.connect() as connection:
        names = [name for (name,) in connection.execute(TABLES).fetchall() if name not in without]
        read = {name: connection.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1").fetchall() for name in names}
    return {name: [row for (row,) in held] for name, held in read.items()}


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
