"""Queries on recalls: what was shown, to whom, in which place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, and_, select

from memory_core.db.memories import COLUMNS, memory_of
from memory_core.db.tables import disclosure, memory, recall
from memory_core.model import Memory

# The recall and its disclosures, in one statement.
_RECORD = """
    WITH recorded AS (
        INSERT INTO recall
            (org_id, recall_id, run_id, purpose, at, mode, reason, ranking, boundary, token_budget, omitted, by, because)
        VALUES
            (%(org_id)s, %(recall_id)s, %(run_id)s, %(purpose)s, %(at)s, %(mode)s, %(reason)s, %(ranking)s,
             %(boundary)s, %(token_budget)s, %(omitted)s, %(by)s, %(because)s)
    )
    INSERT INTO disclosure (org_id, memory_id, recall_id, place, run_id, purpose, at, disputed)
    SELECT %(org_id)s, memory_id, %(recall_id)s, place, %(run_id)s, %(purpose)s, %(at)s, disputed
    FROM unnest(%(memory_ids)s::uuid[], %(disputed)s::boolean[]) WITH ORDINALITY AS shown (memory_id, disputed, place)
"""


def record(connection: Connection, org_id: str, recall_id: UUID, shown: Sequence[Memory], **facts: Any) -> None:
    """Record a recall, with one disclosure for each memory shown, placed from 1."""
    disclosed = {
        "memory_ids": [memory.memory_id for memory in shown],
        "disputed": [memory.disputed is not None for memory in shown],
    }
    connection.exec_driver_sql(_RECORD, {"org_id": org_id, "recall_id": recall_id, **disclosed, **facts})


def shown(
    connection: Connection, org_id: str, recall_id: UUID, *, now: datetime
) -> tuple[Row[Any] | None, dict[int, Memory]]:
    """Return a recall's row, or None, and the memories it showed by their places, with or without a dispute as then.

    A memory whose tombstone is gone, after its retention, has left its place empty.
    """
    facts = connection.execute(
        select(recall).where(recall.c.org_id == org_id, recall.c.recall_id == recall_id)
    ).one_or_none()
    rows: Any = connection.execute(
        select(*COLUMNS, disclosure.c.disputed, disclosure.c.place)
        .select_from(disclosure)
        .join(memory, and_(memory.c.org_id == disclosure.c.org_id, memory.c.memory_id == disclosure.c.memory_id))
        .where(disclosure.c.org_id == org_id, disclosure.c.recall_id == recall_id)
        .order_by(disclosure.c.place)
    ).all()
    return facts, {
        row.place: replace(memory_of(row, now=now), dispute_withdrawn_at=None)
        if row.disputed
        else replace(memory_of(row, now=now), dispute=None)
        for row in rows
    }
