"""What an organisation holds, in figures."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from memory_core.db import organisations
from memory_core.model import Kind, Origin, Overview, State


def in_figures(connection: Connection, org_id: str, *, now: datetime) -> Overview:
    """Count what is held, what is due in the next thirty days, what no semantic recall can find."""
    census = organisations.census(connection, org_id, now=now, count_to=0)
    rows = organisations.figures(connection, org_id, now=now)
    week = organisations.expiring(connection, org_id, now=now, days=7)
    month = organisations.expiring(connection, org_id, now=now, days=30)
    return Overview(
        org_id=org_id,
        at=now,
        counts={(Kind(row.kind), Origin(row.origin), State(row.state)): row.memories for row in rows},
        expiring_by_date=month,
        expiring_in_7_days=sum(week.values()),
        expiring_in_30_days=sum(month.values()),
        unembedded=census.unembedded,
        subjects=organisations.subject_count(connection, org_id),
        embedding_model=census.pinned_model,
        newest_at=max((row.newest_at for row in rows), default=None),
    )
