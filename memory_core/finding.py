"""Finding subjects by what somebody types."""

from __future__ import annotations

from sqlalchemy import Connection

from memory_core.db import subjects
from memory_core.model import FoundSubject
from memory_core.rules import naming


def found_subjects(connection: Connection, org_id: str, typed: str, *, limit: int) -> list[FoundSubject]:
    """Return the subjects that answer what was typed, best first; also those of whom only tombstones are left."""
    known = subjects.named(connection, org_id)
    listed = set(known)
    unnamed = [one for one in subjects.with_id(connection, org_id, typed) if one not in listed]
    best = naming.matches(typed, [*known, *unnamed])[:limit]
    rows = subjects.tallies(connection, org_id, [match.subject for match in best])
    tallies = {(row.subject_type, row.subject_id): row for row in rows}
    return [
        FoundSubject(
            subject=match.subject,
            match=match.by,
            with_text=row.with_text,
            tombstones=row.tombstones,
            last_written_at=row.last_written_at,
        )
        for match in best
        if (row := tallies.get((match.subject.type, match.subject.id)))
    ]
