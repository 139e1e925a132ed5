"""Queries on the trail: lines are added and read, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, literal, select, true

from memory_core.db import locks, organisations
from memory_core.db.statements import Statement
from memory_core.db.tables import trail
from memory_core.model import Subject
from memory_core.rights import TrailEntry
from memory_core.rules.chain import FIRST, link

_last = (
    select(trail.c.number, trail.c.hash)
    .where(trail.c.org_id == bindparam("org_id"))
    .order_by(trail.c.number.desc())
    .limit(1)
    .lateral("last_line")
)
_LAST = Statement(
    select(func.clock_timestamp().label("at"), _last.c.number, _last.c.hash)
    .select_from(select(literal(1).label("one")).subquery())
    .outerjoin(_last, true())
)
_ADD = Statement(insert(trail))


def record(
    connection: Connection,
    org_id: str,
    *,
    by: str,
    act: str,
    subject: Subject | None = None,
    reference: str | None = None,
    request: str | None = None,
    count: int | None = None,
    reason: str | None = None,
    now: datetime | None = None,
) -> TrailEntry:
    """Add a line; other writers of the organisation's trail wait until this transaction ends, so call it late."""
    organisations.enter(connection, org_id)  # before the lock, as everybody does, so that no two wait in a ring
    locks.await_records(connection, org_id)
    last = _LAST.run(connection, org_id=org_id).one()
    number, at = (last.number or 0) + 1, now or last.at
    line = link(
        last.hash or FIRST,
        org_id=org_id,
        number=number,
        at=at,
        by=by,
        act=act,
        subject=subject,
        reference=reference,
        request=request,
        count=count,
        reason=reason,
    )
    about = Subject(subject.type, subject.id) if subject else None
    entry = TrailEntry(
        number=number,
        at=at,
        by=by,
        act=act,
        subject=about,
        reference=reference,
        request=request,
        count=count,
        reason=reason,
        hash=line,
    )
    _ADD.run(
        connection,
        org_id=org_id,
        number=number,
        at=at,
        by=by,
        act=act,
        subject_type=about.type if about else None,
        subject_id=about.id if about else None,
        reference=reference,
        request=request,
        count=count,
        reason=reason,
        hash=line,
    )
    return entry


def newest(
    connection: Connection,
    org_id: str,
    *,
    subject: Subject | None = None,
    reference: str | None = None,
    request: str | None = None,
    act: str | None = None,
    limit: int,
) -> list[TrailEntry]:
    """Return the newest lines; of one subject, with one reference, for one request or of one act where those are given."""
    wanted = select(trail).where(trail.c.org_id == org_id).order_by(trail.c.number.desc()).limit(limit)
    if subject is not None:
        wanted = wanted.where(trail.c.subject_type == subject.type, trail.c.subject_id == subject.id)
    if reference is not None:
        wanted = wanted.where(trail.c.reference == reference)
    if request is not None:
        wanted = wanted.where(trail.c.request == request)
    if act is not None:
        wanted = wanted.where(trail.c.act == act)
    return [_entry(row) for row in connection.execute(wanted)]


def counted(connection: Connection, org_id: str, *, by: Iterable[str], acts: Sequence[str], since: datetime) -> int:
    """Return how many memories the lines that some names have of some acts were about, since a moment."""
    total = select(func.coalesce(func.sum(trail.c["count"]), 0)).where(
        trail.c.org_id == org_id, trail.c.by.in_(by), trail.c.act.in_(acts), trail.c.at > since
    )
    return int(connection.scalar(total) or 0)


def in_order(connection: Connection, org_id: str) -> Iterator[TrailEntry]:
    """Yield every line, oldest first."""
    statement = select(trail).where(trail.c.org_id == org_id).order_by(trail.c.number)
    with connection.execute(statement.execution_options(yield_per=1000)) as rows:
        for row in rows:
            yield _entry(row)


def _entry(row: Row[Any]) -> TrailEntry:
    return TrailEntry(
        number=row.number,
        at=row.at,
        by=row.by,
        act=row.act,
        subject=_subject(row.subject_type, row.subject_id),
        reference=row.reference,
        request=row.request,
        count=row._mapping["count"],  # a row has a method of that name
        reason=row.reason,
        hash=bytes(row.hash),
    )


def _subject(subject_type: str | None, subject_id: str | None) -> Subject | None:
    if subject_type is None and subject_id is None:
        return None
    return Subject(subject_type or "missing", subject_id or "missing")  # half of one is none that was written
