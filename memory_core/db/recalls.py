"""Queries on recalls: what was shown, to whom, in which place."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Connection, Integer, Row, Uuid, and_, bindparam, select, text

from memory_core.db.memories import COLUMNS, memory_of
from memory_core.db.tables import disclosure, memory, recall
from memory_core.model import Memory

# The recall and its disclosures, in one statement.
_RECORD = text(
    """
    WITH recorded AS (
        INSERT INTO recall (org_id, recall_id, run_id, purpose, at, mode, reason, ranking, boundary, token_budget, omitted)
        VALUES (:org_id, :recall_id, :run_id, :purpose, :at, :mode, :reason, :ranking, :boundary, :token_budget, :omitted)
    )
    INSERT INTO disclosure (org_id, recall_id, place, memory_id)
    SELECT :org_id, :recall_id, place, memory_id
    FROM unnest(:places, :memory_ids) AS shown (place, memory_id)
    """
).bindparams(
    bindparam("recall_id", type_=Uuid),
    bindparam("places", type_=ARRAY(Integer)),
    bindparam("memory_ids", type_=ARRAY(Uuid)),
)


def record(connection: Connection, org_id: str, recall_id: UUID, shown: Sequence[UUID], **facts: Any) -> None:
    """Record a recall, with one disclosure for each memory shown, placed from 1."""
    connection.execute(
        _RECORD,
        {
            "org_id": org_id,
            "recall_id": recall_id,
            "places": list(range(1, len(shown) + 1)),
            "memory_ids": list(shown),
            **facts,
        },
    )


def shown(
    connection: Connection, org_id: str, recall_id: UUID, *, now: datetime
) -> tuple[Row[Any] | None, list[Memory]]:
    """Return a recall's row, or None, and the memories it showed, in their places."""
    facts = connection.execute(
        select(recall).where(recall.c.org_id == org_id, recall.c.recall_id == recall_id)
    ).one_or_none()
    rows = connection.execute(
        select(*COLUMNS)
        .select_from(disclosure)
        .join(memory, and_(memory.c.org_id == disclosure.c.org_id, memory.c.memory_id == disclosure.c.memory_id))
        .where(disclosure.c.org_id == org_id, disclosure.c.recall_id == recall_id)
        .order_by(disclosure.c.place)
    )
    return facts, [memory_of(row, now=now) for row in rows]
