"""Connections: one engine per database, one organisation per transaction, driver errors put into our words."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from memory_core.errors import (
    BadVector,
    DatabaseBusy,
    DatabaseError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    MemoryCoreError,
    NotMigrated,
    Refusal,
    Refused,
    UnsafeRole,
)
from memory_core.roles import Identity

CONNECT_TIMEOUT_S = 5
# What a caller knows a named constraint's columns by, where two callers at once can still reach it.
FIELDS = {"alias_count": "subject.aliases"}
# libpq gives no SQLSTATE where the server turns a connection away, which trying again does not change.
_TURNED_AWAY = re.compile(
    r"authentication failed|no pg_hba.conf entry|does not exist|permission denied|not permitted to log in"
)

_engines: dict[URL, Engine] = {}
_engines_lock = threading.Lock()


def engine_for(url: URL) -> Engine:
    """Return this process's engine for a database; nothing connects yet."""
    with _engines_lock:
        engine = _engines.get(url)
        if engine is None:
            engine = _engines[url] = new_engine(url)
        return engine


def new_engine(url: URL) -> Engine:
    """Build an engine of its own for a database."""
    engine = create_engine(
        url,
        pool_pre_ping=False,  # a lost connection is one clear error, and the pool is emptied by it
        pool_size=5,
        max_overflow=20,
        pool_timeout=30,
        isolation_level="READ COMMITTED",  # an erasure must see what was committed while it waited for its lock
        hide_parameters=True,  # an error's text must not carry a memory's
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "memory-workbench"},
    )
    event.listen(engine, "connect", _speak_plainly)
    return engine


def _speak_plainly(connection: psycopg.Connection[Any], record: object) -> None:
    # Whatever the environment, the role or the server prefer: times are read, shown and recorded in UTC.
    connection.execute("SET timezone = 'UTC'; SET datestyle = 'ISO'")
    connection.commit()


@atexit.register
def close_engines() -> None:
    """Close every connection of this process's engines; a later use connects anew."""
    with _engines_lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.dispose()


@contextmanager
def organisation_transaction(engine: Engine, org_id: str, *, switched_off: Sequence[str] = ()) -> Iterator[Connection]:
    """Open one transaction that sees one organisation's rows only; commits at the end, rolls back on any error.

    `switched_off` names settings of the server that are off in this transaction.

    Raises a `DatabaseError`, or `Refused` where a named constraint said no.
    """
    begin = partial(enter_organisation, org_id=org_id, switched_off=switched_off)
    with translated_errors(), _begun(engine, begin) as connection:
        yield connection
        connection.commit()


def _begun(engine: Engine, begin: Callable[[Connection], object]) -> Connection:
    try:
        return _tried(engine, begin)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    # A pooled connection that a restart of the server left behind; nothing was done on it, so once more.
    return _tried(engine, begin)


def _tried(engine: Engine, begin: Callable[[Connection], object]) -> Connection:
    connection = engine.connect()
    try:
        begin(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def enter_organisation(connection: Connection, org_id: str, *, switched_off: Sequence[str] = ()) -> None:
    """Make this transaction see one organisation's rows only, with settings switched off in the same round trip.

    SET LOCAL with a quoted literal, and not set_config(), since only that reaches the workers of a distributed table.
    """
    statement = sql.SQL("SET LOCAL memory.org_id = {}").format(sql.Literal(org_id))
    off = [sql.SQL("SET LOCAL {} = off").format(sql.Identifier(name)) for name in switched_off]
    connection.exec_driver_sql(sql.SQL("; ").join([statement, *off]).as_string(None))


def wait_shortly_for_locks(connection: Connection, *, limit_s: float = 2.0) -> None:
    """Let this transaction wait so long for a lock at most: somebody waits for what is recorded in it."""
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {limit_s * 1000:.0f}")


@contextmanager
def identity_transaction(engine: Engine, identity: Identity) -> Iterator[Connection]:
    """Open one transaction of no organisation, that sees an identity's own standing as a member and nothing else."""
    statement = sql.SQL("SET LOCAL memory.org_id = ''; SET LOCAL memory.identity = {}")
    named = statement.format(sql.Literal(identity.digest.hex())).as_string(None)
    with translated_errors(), _begun(engine, lambda one: one.exec_driver_sql(named)) as connection:
        yield connection
        connection.commit()


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Open one transaction over no organisation in particular, with errors in our words."""
    with translated_errors(), _begun(engine, lambda one: one.exec_driver_sql("SELECT 1")) as connection:
        yield connection
        connection.commit()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what the driver raises into this package's errors, without any row in their text."""
    try:
        yield
    except MemoryCoreError:
        raise
    except UnicodeEncodeError:
        raise DatabaseError("the database cannot hold a lone surrogate") from None
    except (SQLAlchemyError, psycopg.Error) as error:
        raise translated(error) from error


def translated(error: SQLAlchemyError | psycopg.Error) -> MemoryCoreError:
    """Return this package's error for a driver's.

    The database's DETAIL prints whole rows, so only its primary message and the names of what it is about are used.
    """
    if isinstance(error, PoolTimeout):
        return DatabaseBusy("no database connection came free within 30 s; try again")
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.Error):
        return DatabaseError(f"the database call failed ({type(error).__name__})")
    state = cause.sqlstate or ""
    what = cause.diag.message_primary or ""
    if state in ("23514", "23502", "23505", "23503") and cause.diag.constraint_name:
        rule = cause.diag.constraint_name
        field = FIELDS.get(rule) or cause.diag.table_name or "row"
        return Refused(Refusal(rule=rule, field=field, reason="was refused by the database's own rule"))
    if state == "25006":
        return DatabaseReadOnly("the database is read only; point DATABASE_URL at the primary")
    if state in ("40P01", "40001", "55P03", "57014"):
        return DatabaseBusy(f"the database gave up waiting ({what}); try again")
    if state in ("42P01", "42703", "42883", "42704"):
        return NotMigrated(f"the schema is not this version's ({what}); run: python -m memory_core migrate")
    if state in ("42501", "28000", "28P01"):
        return UnsafeRole(f"the database role may not do this ({what}); see: python -m memory_core migrate --sql")
    if "halfvec" in what or "vector" in what:
        return BadVector(re.sub(r'".*"', "…", what))
    if state.startswith("22"):
        return DatabaseError(f"the database call failed: a value cannot be used ({type(cause).__name__})")
    if not state and _TURNED_AWAY.search(str(cause)):
        return UnsafeRole(f"the server refuses the connection: {first_line(cause)}")
    if state.startswith("54"):
        return DatabaseError(f"the database call failed: {what}")
    if isinstance(cause, psycopg.OperationalError) or state.startswith(("08", "53", "57")):
        return DatabaseUnavailable(f"the database cannot be reached or was lost: {first_line(cause)}")
    return DatabaseError(f"the database call failed: {what or type(cause).__name__}")


def first_line(error: BaseException) -> str:
    """Return an error's first line, short enough for one line on a terminal."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
