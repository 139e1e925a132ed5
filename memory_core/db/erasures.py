"""Queries on erasures: that they were done, and what each left."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, and_, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.tables import erasure, memory, rights_request
from memory_core.model import Subject


def erased_since_begin(connection: Connection, org_id: str, subjects: Iterable[Subject]) -> Subject | None:
    """Return a subject that was erased after this transaction began, if there is one. Call it with the lock taken."""
    named = sorted({(subject.type, subject.id) for subject in subjects})
    if not named:
        return None
    row = connection.execute(
        select(erasure.c.subject_type, erasure.c.subject_id)
        .where(
            erasure.c.org_id == org_id,
            erasure.c.recorded_at >= func.transaction_timestamp(),
            tuple_(erasure.c.subject_type, erasure.c.subject_id).in_(named),
        )
        .limit(1)
    ).first()
    return None if row is None else Subject(row.subject_type, row.subject_id)


def record(
    connection: Connection,
    org_id: str,
    erasure_id: UUID,
    subject: Subject,
    *,
    by: str,
    reason: str,
    at: datetime,
    count: int,
) -> None:
    """Record an erasure that was done elsewhere first; one that is on record already stays as it is."""
    connection.execute(
        insert(erasure)
        .values(
            org_id=org_id,
            erasure_id=erasure_id,
            subject_type=subject.type,
            subject_id=subject.id,
            by=by,
            reason=reason,
            at=at,
            memory_count=count,
        )
        .on_conflict_do_nothing()
    )


def facts(connection: Connection, org_id: str, erasure_id: UUID) -> Row[Any] | None:
    """Return an erasure's row, with the reference of the request it answered."""
    return connection.execute(_with_reference(org_id).where(erasure.c.erasure_id == erasure_id)).one_or_none()


def of_subject(connection: Connection, org_id: str, subject: Subject) -> list[Row[Any]]:
    """Return the rows of a subject's erasures, newest first."""
    about = (erasure.c.subject_type == subject.type, erasure.c.subject_id == subject.id)
    return list(connection.execute(_with_reference(org_id).where(*about).order_by(erasure.c.recorded_at.desc())))


def for_request(connection: Connection, org_id: str, reference: str) -> list[Row[Any]]:
    """Return the rows of the erasures that answered a request, newest first."""
    answered = rights_request.c.reference == reference
    return list(connection.execute(_with_reference(org_id).where(answered).order_by(erasure.c.recorded_at.desc())))


def _with_reference(org_id: str) -> Select[Any]:
    return (
        select(erasure, rights_request.c.reference)
        .outerjoin(
            rights_request,
            and_(rights_request.c.org_id == erasure.c.org_id, rights_request.c.request_id == erasure.c.request_id),
        )
        .where(erasure.c.org_id == org_id)
    )


def tombstones(connection: Connection, org_id: str, erasure_id: UUID) -> list[Row[Any]]:
    """Return memory_id, subject_type, subject_id of the tombstones that an erasure left and that are there yet."""
    return list(
        connection.execute(
            select(memory.c.memory_id, memory.c.subject_type, memory.c.subject_id)
            .where(memory.c.org_id == org_id, memory.c.erasure_id == erasure_id)
            .order_by(memory.c.memory_id)
        )
    )
