"""Queries on all that was disclosed to one run, previews left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Connection, Uuid, and_, bindparam, func, select

from memory_core.db.memories import COLUMNS, memory_of
from memory_core.db.tables import disclosure, memory, recall
from memory_core.model import Memory, Purpose


def to_run(connection: Connection, org_id: str, run_id: str, *, now: datetime) -> list[tuple[Memory, bool]]:
    """Return each memory that was disclosed to a run, once, tombstones included, in the order of the first time.

    With each whether it has been disputed since: its dispute stands, and the run was never shown it. The words of a
    dispute that the run was not shown are left out.
    """
    first = (
        select(
            disclosure.c.memory_id,
            func.bool_or(disclosure.c.disputed).label("told"),
            func.min(disclosure.c.at).label("at"),
            func.min(disclosure.c.place).label("place"),
        )
        .select_from(recall)
        .join(disclosure, and_(disclosure.c.org_id == recall.c.org_id, disclosure.c.recall_id == recall.c.recall_id))
        .where(
            recall.c.org_id == org_id,
            recall.c.run_id == run_id,
            recall.c.purpose == Purpose.RUN.value,
            disclosure.c.org_id == org_id,
        )
        .group_by(disclosure.c.memory_id)
        .subquery("first")
    )
    rows: Any = connection.execute(
        select(*COLUMNS, first.c.told)
        .select_from(first)
        .join(memory, memory.c.memory_id == first.c.memory_id)
        .where(memory.c.org_id == org_id)
        .order_by(first.c.at, first.c.place, memory.c.memory_id)
    )
    found = []
    for row in rows:
        one = memory_of(row, now=now)
        found.append((one if row.told else replace(one, dispute=None), one.disputed is not None and not row.told))
    return found


def corrected(connection: Connection, org_id: str, memory_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return which of some memories have been corrected, each with the memory that has taken its place."""
    rows = connection.execute(
        select(memory.c.supersedes, memory.c.memory_id).where(
            memory.c.org_id == org_id,
            memory.c.supersedes == func.any(bindparam("memory_ids", list(memory_ids), type_=ARRAY(Uuid))),
        )
    )
    return {row.supersedes: row.memory_id for row in rows}
