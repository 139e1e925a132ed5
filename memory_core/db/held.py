"""Queries on what is held about a subject; showing it, like erasing it, is one statement through one selector."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.memories import COLUMNS, fields, now_or
from memory_core.db.statements import Statement
from memory_core.db.subjects import subject_of
from memory_core.db.tables import INSTANT, directory, disclosure, erasure, memory, recall
from memory_core.model import Disclosure, HeldMemory, Purpose, Subject

# All that an erasure takes from a memory. The words are computed from the text, and go with it.
EMPTY = {"text": None, "text_sha256": None, "embedding": None, "embedding_model": None, "dispute": None}
PURPOSES = {purpose.value: purpose for purpose in Purpose}


def about(table: Any) -> ColumnElement[bool]:
    """Select what is held about the subject of the bind parameters."""
    return and_(
        table.c.org_id == bindparam("org_id"),
        table.c.subject_type == bindparam("subject_type"),
        table.c.subject_id == bindparam("subject_id"),
    )


def held(
    connection: Connection, org_id: str, subject: Subject, *, now: datetime | None
) -> tuple[datetime, Subject, list[HeldMemory]]:
    """Return the moment, the subject with its directory entry, and all that is held about it, newest first."""
    clock = {} if now is None else {"now": now}
    rows = (
        _held(now is not None)
        .run(connection, org_id=org_id, subject_type=subject.type, subject_id=subject.id, **clock)
        .all()
    )
    first = rows[0]  # the moment is there also when nothing else is
    known = subject_of(subject.type, subject.id, first.label, first.aliases)
    return first.at, known, [_held_memory(row, known, now=first.at) for row in rows if row.memory_id is not None]


@cache
def _held(clock: bool) -> Statement:
    # Not joined: each is one row by its key, looked up for previews alone.
    looker = (
        select(func.json_build_array(recall.c.by, recall.c.because))
        .where(recall.c.org_id == bindparam("org_id"), recall.c.recall_id == disclosure.c.recall_id)
        .correlate(disclosure)
        .scalar_subquery()
    )
    shown = (
        select(
            func.json_agg(
                func.json_build_array(
                    disclosure.c.recall_id,
                    disclosure.c.run_id,
                    disclosure.c.purpose,
                    disclosure.c.at,
                    disclosure.c.place,
                    case((disclosure.c.purpose == Purpose.PREVIEW.value, looker)),
                )
            )
        )
        .where(disclosure.c.org_id == bindparam("org_id"), disclosure.c.memory_id == memory.c.memory_id)
        .correlate(memory)
        .scalar_subquery()
    )
    moment = select(now_or(clock).label("at")).subquery()
    return Statement(
        select(moment.c.at, directory.c.label, directory.c.aliases, shown.label("shown"), *COLUMNS)
        .select_from(moment)
        .outerjoin(directory, about(directory))
        .outerjoin(memory, about(memory))
        .order_by(memory.c.created_at.desc(), memory.c.memory_id.desc())
    )


def _held_memory(row: Row[Any], subject: Subject, *, now: datetime) -> HeldMemory:
    shown = [
        Disclosure(
            recall_id=UUID(recall_id),
            run_id=run_id,
            purpose=PURPOSES[purpose],
            at=datetime.fromisoformat(at),
            place=place,
            by=by,
            because=because,
        )
        for recall_id, run_id, purpose, at, place, looker in row.shown or ()
        for by, because in (looker or (None, None),)
    ]
    shown.sort(key=lambda one: (one.at, one.recall_id))
    return HeldMemory(**fields(row, subject, now=now), disclosures=tuple(shown))


def forget(
    connection: Connection,
    org_id: str,
    subject: Subject,
    *,
    erasure_id: UUID,
    by: str,
    reason: str,
    now: datetime | None,
    others: int = 0,
    request_id: UUID | None = None,
) -> tuple[datetime, list[UUID], list[str]]:
    """Empty what is held about a subject and its directory entry, and record the erasure; all in one statement.

    `others` counts what this erasure has emptied beside it. Returns the moment, the identifiers of the new tombstones, and
    the holds that kept everything (then nothing changed).
    """
    clock = {} if now is None else {"now": now}
    row = (
        _forget(now is not None)
        .run(
            connection,
            org_id=org_id,
            subject_type=subject.type,
            subject_id=subject.id,
            erasure_id=erasure_id,
            by=by,
            reason=reason,
            others=others,
            request_id=request_id,
            **clock,
        )
        .one()
    )
    return row.at, list(row.memory_ids or ()), sorted(row.holds or ())


@cache
def _forget(clock: bool) -> Statement:
    # Not now(): that is when the transaction began, before the wait for writes that this erasure is to reach.
    at = bindparam("now", type_=INSTANT) if clock else func.statement_timestamp()
    by, reason = bindparam("by", type_=Text), bindparam("reason", type_=Text)
    erasure_id = bindparam("erasure_id", type_=Uuid)
    holds = select(memory.c.hold).where(about(memory), memory.c.hold.is_not(None)).distinct().cte("holds")
    free = ~select(holds.c.hold).exists()
    gone = (
        update(memory)
        .where(about(memory), memory.c.text.is_not(None), free)
        .values(
            **EMPTY,
            forgotten_at=at,
            forgotten_by=by,
            forgotten_reason=reason,
            erasure_id=erasure_id,
        )
        .returning(memory.c.memory_id)
        .cte("gone")
    )
    cleared = directory.delete().where(about(directory), free).returning(literal(1)).cte("cleared")
    recorded = (
        insert(erasure)
        .from_select(
            ["org_id", "erasure_id", "subject_type", "subject_id", "by", "reason", "at", "request_id", "memory_count"],
            select(
                bindparam("org_id", type_=Text),
                erasure_id,
                bindparam("subject_type", type_=Text),
                bindparam("subject_id", type_=Text),
                by,
                reason,
                at,
                bindparam("request_id", type_=Uuid),
                select(func.count()).select_from(gone).scalar_subquery() + bindparam("others", type_=Integer),
            ).where(free),
        )
        .returning(literal(1))
        .cte("recorded")
    )
    return Statement(
        select(
            at.label("at"),
            select(func.array_agg(gone.c.memory_id, type_=ARRAY(Uuid))).scalar_subquery().label("memory_ids"),
            select(func.array_agg(holds.c.hold, type_=ARRAY(Text))).scalar_subquery().label("holds"),
        ).add_cte(cleared, recorded)
    )


def forget_each(
    connection: Connection,
    org_id: str,
    memory_ids: Sequence[UUID],
    *,
    by: str,
    reason: str,
    at: datetime | None,
    erasure_id: UUID | None = None,
) -> list[UUID]:
    """Empty single memories that have text and are not on hold; returns the identifiers of the new tombstones.

    `at` is now where it is None.
    """
    statement = (
        update(memory)
        .where(
            memory.c.org_id == org_id,
            memory.c.memory_id == func.any(bindparam("memory_ids", list(memory_ids), type_=ARRAY(Uuid))),
            memory.c.text.is_not(None),
            memory.c.hold.is_(None),
        )
        .values(
            **EMPTY,
            forgotten_at=at or func.statement_timestamp(),
            forgotten_by=by,
            forgotten_reason=reason,
            erasure_id=erasure_id,
        )
        .returning(memory.c.memory_id)
    )
    return list(connection.scalars(statement))
