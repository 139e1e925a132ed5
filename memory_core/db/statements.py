"""Statements built with SQLAlchemy once and sent as the text they compile to.

Building and keying a statement anew at every call costs more than PostgreSQL needs to answer it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.elements import ClauseElement

_DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]


class Statement:
    """A compiled statement; its bind parameters are given by name when it runs."""

    def __init__(self, built: ClauseElement) -> None:
        compiled = built.compile(dialect=_DIALECT)
        self.sql = str(compiled)
        self._constants: dict[str, Any] = dict(compiled.params)

    def run(self, connection: Connection, **values: Any) -> CursorResult[Any]:
        """Run it on an open connection."""
        return connection.exec_driver_sql(self.sql, self._constants | values)

    def run_for_each(self, connection: Connection, values: Sequence[Mapping[str, Any]]) -> CursorResult[Any]:
        """Run it once for each set of values, in one batch."""
        return connection.exec_driver_sql(self.sql, [self._constants | dict(one) for one in values])
