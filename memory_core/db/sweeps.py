"""Queries of the sweep: emptying what has expired, deleting tombstones whose own retention is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, update

from memory_core.db.held import EMPTY
from memory_core.db.measures import concerning
from memory_core.db.tables import disclosure, measure, memory
from memory_core.model import Subject


def _expired(org_id: str, now: datetime) -> ColumnElement[bool]:
    return and_(memory.c.org_id == org_id, memory.c.text.is_not(None), memory.c.expires_at <= now)


def _free() -> ColumnElement[bool]:
    return and_(memory.c.hold.is_(None), memory.c.restricted_at.is_(None))


def due(connection: Connection, org_id: str, *, now: datetime) -> tuple[int, int, int]:
    """Count what has expired and has text: what a sweep empties, what a hold keeps, what a restriction keeps."""
    row = connection.execute(
        select(
            func.count().filter(_free()).label("free"),
            func.count().filter(memory.c.hold.is_not(None)).label("on_hold"),
            func.count().filter(memory.c.hold.is_(None), memory.c.restricted_at.is_not(None)).label("restricted"),
        ).where(_expired(org_id, now))
    ).one()
    return row.free, row.on_hold, row.restricted


def keeping_holds(connection: Connection, org_id: str, *, now: datetime, before: datetime) -> set[str]:
    """Return the name of every hold that keeps an expired memory from the sweep, or a tombstone from the purge."""
    rows = connection.scalars(
        select(memory.c.hold).where(_expired(org_id, now), memory.c.hold.is_not(None)).distinct()
    ).all()
    placed = connection.scalars(
        select(measure.c.name)
        .join(memory, and_(memory.c.org_id == measure.c.org_id, concerning()))
        .where(
            measure.c.org_id == org_id,
            measure.c.kind == "hold",
            measure.c.lifted_at.is_(None),
            or_(_expired(org_id, now), _old(org_id, before)),
        )
        .distinct()
    ).all()
    return {*rows, *placed}


def candidates(connection: Connection, org_id: str, *, now: datetime, limit: int) -> dict[UUID, Subject | None]:
    """Return at most so many expired memories that may be emptied, with whom they are about; nothing is locked."""
    rows = connection.execute(
        select(memory.c.memory_id, memory.c.subject_type, memory.c.subject_id)
        .where(_expired(org_id, now), _free())
        .order_by(memory.c.expires_at)
        .limit(limit)
    )
    return _subjects_of(rows)


def _subjects_of(rows: Iterable[Any]) -> dict[UUID, Subject | None]:
    return {
        row.memory_id: None if row.subject_id is None else Subject(row.subject_type, row.subject_id) for row in rows
    }


def empty(connection: Connection, org_id: str, memory_ids: Sequence[UUID], *, now: datetime) -> int:
    """Empty those of them that still are expired and free; returns how many. Rows that another works on are left.

    Call it with their subjects' locks taken.
    """
    free = (
        select(memory.c.memory_id)
        .where(memory.c.memory_id.in_(memory_ids), _expired(org_id, now), _free())
        .with_for_update(skip_locked=True)
        .cte("free")
    )
    return connection.execute(
        update(memory)
        .where(memory.c.org_id == org_id, memory.c.memory_id.in_(select(free.c.memory_id)))
        .values(**EMPTY, swept_at=now)
    ).rowcount


def _overdue(org_id: str, before: datetime) -> ColumnElement[bool]:
    # A hold on a subject keeps its tombstones too: they prove what was there.
    on_hold = (
        select(measure.c.measure_id)
        .where(measure.c.org_id == org_id, measure.c.kind == "hold", measure.c.lifted_at.is_(None), concerning())
        .correlate(memory)
    )
    return and_(_old(org_id, before), ~on_hold.exists())


def _old(org_id: str, before: datetime) -> ColumnElement[bool]:
    return and_(
        memory.c.org_id == org_id,
        memory.c.text.is_(None),
        func.coalesce(memory.c.forgotten_at, memory.c.swept_at) < before,
    )


def purgeable(connection: Connection, org_id: str, *, before: datetime) -> int:
    """Count the tombstones that became such before a moment, and that no hold keeps."""
    return connection.execute(select(func.count()).select_from(memory).where(_overdue(org_id, before))).scalar_one()


def purge_candidates(
    connection: Connection, org_id: str, *, before: datetime, limit: int
) -> dict[UUID, Subject | None]:
    """Return at most so many of those tombstones, with whom they are about; nothing is locked."""
    rows = connection.execute(
        select(memory.c.memory_id, memory.c.subject_type, memory.c.subject_id)
        .where(_overdue(org_id, before))
        .limit(limit)
    )
    return _subjects_of(rows)


def purge(connection: Connection, org_id: str, memory_ids: Sequence[UUID], *, before: datetime) -> int:
    """Delete those of them that still are overdue, and the record of whom they were shown to; returns how many.

    Call it with their subjects' locks taken, so that no hold is placed meanwhile.
    """
    due = select(memory.c.memory_id).where(memory.c.memory_id.in_(memory_ids), _overdue(org_id, before))
    connection.execute(disclosure.delete().where(disclosure.c.org_id == org_id, disclosure.c.memory_id.in_(due)))
    return connection.execute(
        memory.delete().where(memory.c.memory_id.in_(memory_ids), _overdue(org_id, before))
    ).rowcount
