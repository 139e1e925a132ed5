"""Queries on measures: what stands about a subject or a memory, and what that makes of the memories' own columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, case, insert, or_, select, tuple_, update

from memory_core.db.tables import measure, memory, rights_request
from memory_core.model import Subject
from memory_core.rights import Measure, MeasureKind


def place(
    connection: Connection,
    org_id: str,
    *,
    measure_id: UUID,
    kind: MeasureKind,
    name: str,
    subject: Subject | None,
    memory_id: UUID | None,
    by: str,
    reason: str,
    at: datetime,
    review_on: date | None,
    request_id: UUID | None,
) -> None:
    """Place a measure; what it does to memories is `apply`'s."""
    connection.execute(
        insert(measure).values(
            org_id=org_id,
            measure_id=measure_id,
            kind=kind.value,
            name=name,
            subject_type=subject.type if subject else None,
            subject_id=subject.id if subject else None,
            memory_id=memory_id,
            by=by,
            reason=reason,
            placed_at=at,
            review_on=review_on,
            request_id=request_id,
        )
    )


def lift(
    connection: Connection,
    org_id: str,
    measure_id: UUID,
    *,
    by: str,
    reason: str,
    at: datetime,
    person_told: bool | None,
) -> bool:
    """Lift a measure that stands; returns whether it stood."""
    return bool(
        connection.execute(
            update(measure)
            .where(measure.c.org_id == org_id, measure.c.measure_id == measure_id, measure.c.lifted_at.is_(None))
            .values(lifted_at=at, lifted_by=by, lifted_reason=reason, person_told=person_told)
        ).rowcount
    )


def apply(
    connection: Connection,
    org_id: str,
    *,
    subject: Subject | None,
    memory_id: UUID | None,
    lifted: Measure | None = None,
) -> int:
    """Write the measures that stand into the memories with text they are about; returns how many memories those are.

    `lifted` is the one that does not any more.
    A memory has one hold's name in its row; when that is lifted, the next one's. What was written there by hand, and so
    is no measure's, stays.
    """
    concerns, lifted_id = concerning(), None if lifted is None else lifted.measure_id

    def first(column: Any, kind: MeasureKind, written: Any) -> Any:
        known = and_(measure.c.org_id == org_id, measure.c.kind == kind.value, concerns)
        standing = (
            select(column)
            .where(known, measure.c.lifted_at.is_(None))
            .order_by(measure.c.placed_at, measure.c.measure_id)
            .limit(1)
            .correlate(memory)
            .scalar_subquery()
        )
        placed = (
            select(column)
            .where(known, column == written, or_(measure.c.lifted_at.is_(None), measure.c.measure_id == lifted_id))
            .correlate(memory)
            .exists()
        )
        return case((and_(written.is_not(None), ~placed), written), else_=standing)

    about = and_(memory.c.org_id == org_id, memory.c.text.is_not(None), _of(subject, memory_id))
    return connection.execute(
        update(memory)
        .where(about)
        .values(
            hold=first(measure.c.name, MeasureKind.HOLD, memory.c.hold),
            restricted_at=first(measure.c.placed_at, MeasureKind.RESTRICTION, memory.c.restricted_at),
        )
    ).rowcount


def _of(subject: Subject | None, memory_id: UUID | None) -> ColumnElement[bool]:
    if memory_id is not None:
        return memory.c.memory_id == memory_id
    assert subject is not None, "a measure is about a subject or a memory"  # noqa: S101
    return and_(memory.c.subject_type == subject.type, memory.c.subject_id == subject.id)


def standing_about(connection: Connection, org_id: str, subjects: Iterable[Subject]) -> list[Measure]:
    """Return what stands about whole subjects, and so also about what is written about them next; oldest first."""
    named = sorted({(subject.type, subject.id) for subject in subjects})
    if not named:
        return []
    return _found(
        connection,
        org_id,
        measure.c.lifted_at.is_(None),
        measure.c.memory_id.is_(None),
        tuple_(measure.c.subject_type, measure.c.subject_id).in_(named),
    )


def of_subject(connection: Connection, org_id: str, subject: Subject) -> list[Measure]:
    """Return every measure there is or was about a subject or one of its memories, oldest first."""
    return _found(connection, org_id, measure.c.subject_type == subject.type, measure.c.subject_id == subject.id)


def standing(connection: Connection, org_id: str) -> list[Measure]:
    """Return every measure that stands, oldest first."""
    return _found(connection, org_id, measure.c.lifted_at.is_(None))


def standing_like(
    connection: Connection,
    org_id: str,
    *,
    kind: MeasureKind,
    subject: Subject | None,
    memory_id: UUID | None,
    name: str | None,
) -> Measure | None:
    """Return the measure that stands in the place of one: of its kind, about the same and, of holds, of its name."""
    return next(
        (
            one
            for one in standing(connection, org_id)
            if (one.kind, one.subject, one.memory_id) == (kind, subject, memory_id)
            and (kind is not MeasureKind.HOLD or one.name == name)
        ),
        None,
    )


def with_id(connection: Connection, org_id: str, measure_id: UUID) -> Measure | None:
    """Return one measure."""
    return next(iter(_found(connection, org_id, measure.c.measure_id == measure_id)), None)


def placed_holds(connection: Connection, org_id: str, subject: Subject) -> set[str]:
    """Return the name of every hold that was placed on a subject or one of its memories, and stands."""
    found = of_subject(connection, org_id, subject)
    return {one.name for one in found if one.stands and one.kind is MeasureKind.HOLD}


def hold_names(connection: Connection, org_id: str, subject: Subject) -> list[str]:
    """Return the name of every hold on a subject or on one of its memories with text, by hand or placed."""
    written = connection.scalars(
        select(memory.c.hold)
        .where(
            memory.c.org_id == org_id,
            memory.c.subject_type == subject.type,
            memory.c.subject_id == subject.id,
            memory.c.hold.is_not(None),
        )
        .distinct()
    )
    return sorted(placed_holds(connection, org_id, subject) | set(written))


def hold_names_of(connection: Connection, org_id: str, memory_ids: Sequence[UUID]) -> set[str]:
    """Return the name of every hold on any of these memories with text, by hand or placed."""
    rows = connection.execute(
        select(memory.c.hold, measure.c.name)
        .outerjoin(
            measure,
            and_(
                measure.c.org_id == memory.c.org_id,
                measure.c.kind == MeasureKind.HOLD.value,
                measure.c.lifted_at.is_(None),
                concerning(),
            ),
        )
        .where(memory.c.org_id == org_id, memory.c.memory_id.in_(memory_ids), memory.c.text.is_not(None))
    )
    return {name for row in rows for name in row if name}


def concerning() -> ColumnElement[bool]:
    """Select the measures that are about a memory, or about all of its subject."""
    return or_(
        measure.c.memory_id == memory.c.memory_id,
        and_(
            measure.c.memory_id.is_(None),
            measure.c.subject_type == memory.c.subject_type,
            measure.c.subject_id == memory.c.subject_id,
        ),
    )


def _found(connection: Connection, org_id: str, *conditions: ColumnElement[bool]) -> list[Measure]:
    statement = (
        select(measure, rights_request.c.reference)
        .outerjoin(
            rights_request,
            and_(rights_request.c.org_id == measure.c.org_id, rights_request.c.request_id == measure.c.request_id),
        )
        .where(measure.c.org_id == org_id, *conditions)
        .order_by(measure.c.placed_at, measure.c.measure_id)
    )
    return [_measure(row) for row in connection.execute(statement)]


def _measure(row: Row[Any]) -> Measure:
    return Measure(
        measure_id=row.measure_id,
        kind=MeasureKind(row.kind),
        name=row.name,
        subject=None if row.subject_id is None else Subject(row.subject_type, row.subject_id),
        memory_id=row.memory_id,
        by=row.by,
        reason=row.reason,
        placed_at=row.placed_at,
        review_on=row.review_on,
        request_reference=row.reference,
        lifted_at=row.lifted_at,
        lifted_by=row.lifted_by,
        lifted_reason=row.lifted_reason,
        person_told=row.person_told,
    )
