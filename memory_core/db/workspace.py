"""The tables of the sample hiring workspace: temporary ones, on a connection of their own, gone when it closes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    Connection,
    Date,
    DateTime,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from memory_core.db.engine import translated_errors

metadata = MetaData()

STAGES = ("applied", "screening", "interview", "offer", "hired", "rejected", "withdrawn")
STATEMENT_LIMIT_MS = 5000
CANCEL_LIMIT_S = 0.3
Row = dict[str, Any]


def _table(name: str, *columns: Column[Any] | CheckConstraint) -> Table:
    return Table(name, metadata, Column("id", Text, primary_key=True), *columns, prefixes=["TEMPORARY"])


def _one_of(column: str, *values: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in values)})")


def _refers(table: str) -> Column[Any]:
    return Column(f"{table}_id", Text, ForeignKey(f"{table}.id"), nullable=False)


def _required(name: str, kind: Any = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


INSTANT = DateTime(timezone=True)

candidate = _table(
    "candidate",
    _required("name"),
    _required("email"),
    _required("location"),
    _required("skills", ARRAY(Text)),
    _required("source"),
)
job = _table(
    "job",
    _required("title"),
    _required("team"),
    _required("location"),
    _required("hiring_manager"),
    _required("headcount", Integer),
    _required("opened_on", Date),
    _required("status"),
    _one_of("status", "open", "closed"),
)
application = _table(
    "application",
    _refers("candidate"),
    _refers("job"),
    _required("stage"),
    _required("applied_on", Date),
    _one_of("stage", *STAGES),
)
interview = _table(
    "interview",
    _refers("application"),
    _required("kind"),
    _required("interviewer"),
    _required("starts_at", INSTANT),
    _required("minutes", Integer),
    _required("status"),
    _one_of("kind", "phone", "panel", "technical"),
    _one_of("status", "booked", "held", "cancelled"),
    CheckConstraint("minutes BETWEEN 15 AND 240"),
)
slot = _table(  # when an interviewer is free
    "slot",
    _required("interviewer"),
    _required("starts_at", INSTANT),
    _required("minutes", Integer),
    CheckConstraint("minutes BETWEEN 15 AND 480"),
)
offer = _table(
    "offer",
    _refers("application"),
    _required("salary", Integer),
    _required("currency"),
    _required("start_on", Date),
    _required("status"),
    _one_of("status", "draft", "sent", "accepted", "declined", "withdrawn"),
    CheckConstraint("salary BETWEEN 1 AND 10000000 AND currency ~ '^[A-Z]{3}$'"),
)
note = _table(  # what somebody wrote about an application: a note, or feedback on an interview
    "note",
    _refers("application"),
    Column("interview_id", Text, ForeignKey("interview.id")),
    _required("author"),
    _required("text"),
    Column("rating", Integer),
    _required("written_on", Date),
    CheckConstraint("rating BETWEEN 1 AND 5 AND (rating IS NULL OR interview_id IS NOT NULL)"),
)
draft = _table(  # a message that nobody has sent
    "draft",
    _required("recipient"),  # a candidate's id, or a colleague such as user:maria
    _required("subject"),
    _required("body"),
)
task = _table(
    "task",
    _refers("candidate"),
    _required("title"),
    _required("owner"),
    _required("due_on", Date),
    _required("status"),
    _one_of("status", "open", "done"),
)
privacy_request = _table(  # for a data protection officer to register; nothing is answered by it
    "privacy_request",
    _refers("candidate"),
    _required("type"),
    _required("channel"),
    _required("received_on", Date),
    _required("status"),
    _one_of("type", "access", "erasure", "rectification", "restriction", "portability", "objection"),
    _one_of("status", "new", "identity asked", "handed over"),
)

TABLES: Mapping[str, Table] = {table.name: table for table in metadata.sorted_tables}


def prefix(table: str) -> str:
    """Return how a table's identifiers begin: ``smp-c`` for candidates, so that none is taken for a real person's."""
    return f"smp-{table[0]}"


class Workspace:
    """The temporary tables of one run, on a connection that nobody else uses. For one thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver: psycopg.Connection[Any] = connection.connection.dbapi_connection  # type: ignore[assignment]
        self._is_lost = False

    def fill(self, rows: Mapping[str, list[Row]]) -> None:
        """Put rows into the tables, in one transaction."""
        with self.acting():
            for name, table in TABLES.items():
                if rows.get(name):
                    self._connection.execute(insert(table), rows[name])

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Make what is done within one transaction: all of it, or none."""
        with translated_errors():
            transaction = self._connection.begin()
            try:
                self._connection.exec_driver_sql(f"SET LOCAL statement_timeout = {STATEMENT_LIMIT_MS}")
                yield
                transaction.commit()
            except BaseException:
                if not self._is_lost:
                    transaction.rollback()
                raise

    def abandon(self) -> None:
        """Close the connection under somebody who is stuck in it; the tables are gone then."""
        self._is_lost = True
        with suppress(psycopg.Error):
            self._driver.cancel_safe(timeout=CANCEL_LIMIT_S)
        self._driver.close()

    def rows(self, table: str, **equal: Any) -> list[Row]:
        """Return the rows whose columns have these values, in the order of their identifiers."""
        found = select(TABLES[table]).filter_by(**equal)
        rows = [dict(row._mapping) for row in self._connection.execute(found)]
        return sorted(rows, key=lambda row: (len(row["id"]), row["id"]))

    def add(self, table: str, values: Row) -> Row:
        """Add a row under the next identifier, and return it."""
        begin = prefix(table)
        taken = [int(row["id"].removeprefix(begin)) for row in self.rows(table)]
        row = {"id": f"{begin}{max(taken, default=0) + 1}", **values}
        return dict(self._connection.execute(insert(TABLES[table]).returning(TABLES[table]), [row]).one()._mapping)

    def change(self, table: str, identity: str, values: Row) -> Row:
        """Change a row, and return it as it is then."""
        one = TABLES[table]
        changed = self._connection.execute(update(one).where(one.c.id == identity).values(**values).returning(one))
        return dict(changed.one()._mapping)

    def state(self) -> dict[str, dict[str, Row]]:
        """Return every row of every table, by its identifier."""
        with self.acting():
            return {name: {row["id"]: row for row in self.rows(name)} for name in TABLES}


def may_make_workspaces(connection: Connection) -> bool:
    """Say whether this role may make temporary tables here."""
    return bool(connection.scalar(select(func.has_database_privilege(func.current_database(), "TEMPORARY"))))


@contextmanager
def workspace(engine: Engine) -> Iterator[Workspace]:
    """Yield an empty workspace; raises a `DatabaseError` where the role may make no temporary tables."""
    with translated_errors():
        connection = engine.connect()
        try:
            connection.detach()  # so that closing it really does, and its temporary tables are gone with it
            with connection.begin():
                metadata.create_all(connection, checkfirst=False)
        except BaseException:
            connection.close()
            raise
    try:
        yield Workspace(connection)
    finally:
        with suppress(SQLAlchemyError):  # it is lost already, and its tables with it
            connection.close()
