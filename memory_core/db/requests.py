"""Queries on the register of rights requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, update

from memory_core.db.tables import rights_request, rights_request_change
from memory_core.model import Subject
from memory_core.rights import (
    Channel,
    IdentityMethod,
    Pause,
    RefusalGround,
    RequestChange,
    RequestType,
    RightsRequest,
    Status,
)

_original = rights_request.alias("original")


def next_reference(connection: Connection, org_id: str, *, year: int) -> str:
    """Return the next free reference of a year. Call it with the lock of `locks.await_records` taken."""
    prefix = f"R-{year:04d}-"
    numbers = connection.scalars(
        select(rights_request.c.reference).where(
            rights_request.c.org_id == org_id, rights_request.c.reference.like(f"{prefix}%")
        )
    )
    return f"{prefix}{max((int(one.removeprefix(prefix)) for one in numbers), default=0) + 1:04d}"


def add(connection: Connection, org_id: str, **fields: Any) -> None:
    """Add a request."""
    connection.execute(insert(rights_request).values(org_id=org_id, **fields))


def change(connection: Connection, org_id: str, request_id: UUID, *, version: int, **fields: Any) -> bool:
    """Change a request that is still at a version; returns whether it was."""
    return bool(
        connection.execute(
            update(rights_request)
            .where(
                rights_request.c.org_id == org_id,
                rights_request.c.request_id == request_id,
                rights_request.c.version == version,
            )
            .values(version=version + 1, **fields)
        ).rowcount
    )


def record_change(
    connection: Connection,
    org_id: str,
    request_id: UUID,
    *,
    version: int,
    at: datetime,
    by: str,
    act: str,
    changed: Mapping[str, tuple[str | None, str | None]],
) -> None:
    """Add a step to a request's history."""
    connection.execute(
        insert(rights_request_change).values(
            org_id=org_id,
            request_id=request_id,
            version=version,
            at=at,
            by=by,
            act=act,
            changed={field: list(values) for field, values in changed.items()},
        )
    )


def changes(connection: Connection, org_id: str, request_id: UUID) -> list[RequestChange]:
    """Return a request's history, oldest first."""
    table = rights_request_change
    rows = connection.execute(
        select(table).where(table.c.org_id == org_id, table.c.request_id == request_id).order_by(table.c.version)
    )
    return [
        RequestChange(
            version=row.version,
            at=row.at,
            by=row.by,
            act=row.act,
            changed={field: (before, after) for field, (before, after) in row.changed.items()},
        )
        for row in rows
    ]


def with_reference(connection: Connection, org_id: str, reference: str) -> RightsRequest | None:
    """Return the request of a reference."""
    return next(iter(_found(connection, org_id, rights_request.c.reference == reference)), None)


def of_subject(connection: Connection, org_id: str, subject: Subject) -> list[RightsRequest]:
    """Return every request about a subject, newest first."""
    return _found(
        connection,
        org_id,
        rights_request.c.subject_type == subject.type,
        rights_request.c.subject_id == subject.id,
    )


def every(connection: Connection, org_id: str, *, only_open: bool = False) -> list[RightsRequest]:
    """Return the register, newest first."""
    return _found(connection, org_id, *([rights_request.c.closed_at.is_(None)] if only_open else []))


def empty_askers(connection: Connection, org_id: str, *, closed_before: datetime) -> int:
    """Take who asked out of requests that were closed long ago (their history never had it); returns how many."""
    return connection.execute(
        update(rights_request)
        .where(
            rights_request.c.org_id == org_id,
            rights_request.c.closed_at < closed_before,
            rights_request.c.asked_by.is_not(None),
        )
        .values(asked_by=None)
    ).rowcount


def _found(connection: Connection, org_id: str, *conditions: ColumnElement[bool]) -> list[RightsRequest]:
    rows = connection.execute(
        select(rights_request, _original.c.reference.label("original_reference"))
        .outerjoin(
            _original,
            and_(
                _original.c.org_id == rights_request.c.org_id,
                _original.c.request_id == rights_request.c.duplicate_of,
            ),
        )
        .where(rights_request.c.org_id == org_id, *conditions)
        .order_by(rights_request.c.received_on.desc(), rights_request.c.request_id.desc())
    )
    return [_request(row) for row in rows]


def _request(row: Row[Any]) -> RightsRequest:
    ends: list[date | None] = [*row.resumed_on, *[None] * (len(row.paused_on) - len(row.resumed_on))]
    return RightsRequest(
        request_id=row.request_id,
        reference=row.reference,
        type=RequestType(row.type),
        status=Status(row.status),
        asked_by=row.asked_by,
        channel=Channel(row.channel),
        subject=None if row.subject_id is None else Subject(row.subject_type, row.subject_id),
        received_on=row.received_on,
        identity_asked_on=row.identity_asked_on,
        identity_method=None if row.identity_method is None else IdentityMethod(row.identity_method),
        identity_confirmed_on=row.identity_confirmed_on,
        extended_on=row.extended_on,
        extension_reason=row.extension_reason,
        pauses=tuple(Pause(since=since, until=until) for since, until in zip(row.paused_on, ends, strict=True)),
        closed_at=row.closed_at,
        ground=None if row.ground is None else RefusalGround(row.ground),
        closing_note=row.closing_note,
        duplicate_of=row.original_reference,
        version=row.version,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )
