"""Queries on disclosures: which run was shown whose memories."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, and_, func, select

from memory_core.db.tables import disclosure, memory
from memory_core.model import Subject


def runs_shown(connection: Connection, org_id: str, subject: Subject) -> dict[str, datetime]:
    """Return the runs (previews aside) that were shown a memory about a subject, each with when it first was."""
    rows = connection.execute(
        select(disclosure.c.run_id, func.min(disclosure.c.at).label("first_at"))
        .join(memory, and_(memory.c.org_id == disclosure.c.org_id, memory.c.memory_id == disclosure.c.memory_id))
        .where(
            disclosure.c.org_id == org_id,
            memory.c.org_id == org_id,
            memory.c.subject_type == subject.type,
            memory.c.subject_id == subject.id,
            disclosure.c.purpose == "run",
        )
        .group_by(disclosure.c.run_id)
    )
    return {row.run_id: row.first_at for row in rows}
