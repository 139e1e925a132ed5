"""Memories as rows: writing them, reading them back."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from operator import attrgetter, itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Row,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    column,
    false,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.statements import Statement
from memory_core.db.tables import INSTANT, directory, memory
from memory_core.model import Kind, Memory, Origin, Subject
from memory_core.rules.admission import Admitted
from memory_core.rules.retention import state

# All but the vector and the words, which only the database compares, and the digest.
COLUMNS = [column for column in memory.c if column.name not in ("embedding", "text_sha256", "words")]
# What a write gives, beside the organisation.
WRITTEN = (
    "memory_id",
    "kind",
    "subject_type",
    "subject_id",
    "text",
    "text_sha256",
    "origin",
    "author",
    "run_id",
    "source",
    "created_at",
    "expires_at",
    "seen_count",
    "last_seen_at",
    "last_seen_run_id",
    "restricted_at",
    "hold",
    "supersedes",
    "corrected_by",
    "correction_reason",
)
AT_ONCE = 2000  # memories a statement
KINDS = {kind.value: kind for kind in Kind}
ORIGINS = {origin.value: origin for origin in Origin}


def now_or(given: bool) -> ColumnElement[datetime]:
    """Return the moment to decide by: the bind parameter `now`, or the database's own clock."""
    return bindparam("now", type_=INSTANT) if given else func.now()


def live(now: ColumnElement[datetime]) -> ColumnElement[bool]:
    """Select what may be recalled in organisation `:org_id`: it has text, is not restricted, and has not expired.

    The clock decides, and not a sweep.
    """
    return and_(
        memory.c.org_id == bindparam("org_id"),
        memory.c.text.is_not(None),
        memory.c.restricted_at.is_(None),
        memory.c.expires_at > now,
    )


def digest(text: str) -> bytes:
    """Return what "the same sentence" is compared by."""
    return sha256(text.encode()).digest()


def remember(connection: Connection, org_id: str, new: Mapping[UUID, Admitted], *, now: datetime) -> list[Memory]:
    """Store memories, each under its identifier; an exact repeat refreshes the row it finds instead.

    Returns one memory per entry, in order.
    """
    rows = [_row(memory_id, item) for memory_id, item in new.items()]
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        known = merged.get(_key(row))
        if known is None:
            merged[_key(row)] = dict(row)
        else:  # one statement may not touch a row twice
            _refresh(known, row)
    stored: dict[tuple[Any, ...], Memory] = {}
    for asked in (False, True):
        chosen = [row for row in merged.values() if row["asked"] is asked]
        for start in range(0, len(chosen), AT_ONCE):
            together = chosen[start : start + AT_ONCE]
            columns = {f"{name}s": [row[name] for row in together] for name in WRITTEN}
            for found in _upsert(asked=asked).run(connection, org_id=org_id, **columns):
                stored[_key_of(found)] = memory_of(found, now=now)
    return [stored[_key(row)] for row in rows]


def _row(memory_id: UUID, item: Admitted) -> dict[str, Any]:
    return {
        "memory_id": memory_id,
        "kind": item.kind.value,
        "subject_type": item.subject.type if item.subject else None,
        "subject_id": item.subject.id if item.subject else None,
        "text": item.text,
        "text_sha256": digest(item.text),
        "origin": item.origin.value,
        "author": item.author,
        "run_id": item.run_id,
        "source": item.source,
        "created_at": item.created_at,
        "expires_at": item.expires_at,
        "seen_count": 1,
        "last_seen_at": item.last_seen_at,
        "last_seen_run_id": item.run_id,
        "restricted_at": item.restricted_at,
        "hold": item.hold,
        "supersedes": item.correction.supersedes if item.correction else None,
        "corrected_by": item.correction.by if item.correction else None,
        "correction_reason": item.correction.reason if item.correction else None,
        "asked": item.expiry_was_asked,
    }


_key = itemgetter("text", "kind", "origin", "author", "subject_type", "subject_id")
_key_of = attrgetter("text", "kind", "origin", "author", "subject_type", "subject_id")


def _refresh(known: dict[str, Any], again: dict[str, Any]) -> None:
    known["seen_count"] += 1
    if again["last_seen_at"] >= known["last_seen_at"]:
        known["last_seen_at"], known["last_seen_run_id"] = again["last_seen_at"], again["run_id"]
    if again["asked"]:
        known["asked"], known["expires_at"] = True, again["expires_at"]
    else:
        known["expires_at"] = max(known["expires_at"], again["expires_at"])


@cache
def _upsert(*, asked: bool) -> Statement:
    # One array a column: a row of parameters for each memory would be parsed again at every load.
    arrays = [bindparam(f"{name}s", type_=ARRAY(memory.c[name].type)) for name in WRITTEN]
    given = (
        func.unnest(*arrays)
        .table_valued(*(column(name, memory.c[name].type) for name in WRITTEN), name="given")
        .render_derived()
    )
    new = insert(memory).from_select(
        ["org_id", *WRITTEN], select(bindparam("org_id", type_=Text), *(given.c[name] for name in WRITTEN))
    )
    later = new.excluded.last_seen_at >= memory.c.last_seen_at
    return Statement(
        new.on_conflict_do_update(
            index_elements=["org_id", "text_sha256", "kind", "origin", "author", "subject_type", "subject_id"],
            index_where=memory.c.text_sha256.is_not(None),
            set_={
                "seen_count": memory.c.seen_count + new.excluded.seen_count,
                "last_seen_at": func.greatest(memory.c.last_seen_at, new.excluded.last_seen_at),
                "last_seen_run_id": case((later, new.excluded.last_seen_run_id), else_=memory.c.last_seen_run_id),
                # A default never shortens what somebody asked for; a date that was asked for is taken as it is.
                "expires_at": new.excluded.expires_at
                if asked
                else func.greatest(memory.c.expires_at, new.excluded.expires_at),
            },
            where=memory.c.org_id == bindparam("org_id"),
        ).returning(*COLUMNS)
    )


def live_with_names(
    connection: Connection, org_id: str, *, now: datetime
) -> Generator[tuple[Memory, str | None, Sequence[str]]]:
    """Yield every live memory, oldest first, with its subject's label and aliases; read in portions."""
    statement = (
        select(directory.c.label, directory.c.aliases, *COLUMNS)
        .select_from(memory)
        .outerjoin(
            directory,
            and_(
                directory.c.org_id == memory.c.org_id,
                directory.c.subject_type == memory.c.subject_type,
                directory.c.subject_id == memory.c.subject_id,
            ),
        )
        .where(live(now_or(given=True)))
        .order_by(memory.c.created_at, memory.c.memory_id)
        .execution_options(yield_per=500)
    )
    with connection.execute(statement, {"org_id": org_id, "now": now}) as rows:
        for row in rows:
            yield memory_of(row, now=now), row.label, row.aliases or ()


def with_text(
    connection: Connection, org_id: str, memory_ids: Sequence[UUID], *, locked: bool = False
) -> list[Row[Any]]:
    """Return memory_id, subject_type, subject_id, hold of those that have text; `locked` keeps them as they are."""
    statement = (
        select(memory.c.memory_id, memory.c.subject_type, memory.c.subject_id, memory.c.hold)
        .where(
            memory.c.org_id == org_id,
            memory.c.memory_id == func.any(bindparam("memory_ids", list(memory_ids), type_=ARRAY(Uuid))),
            memory.c.text.is_not(None),
        )
        .order_by(memory.c.memory_id)
    )
    return list(connection.execute(statement.with_for_update() if locked else statement))


def written_until(connection: Connection, org_id: str, subject: Subject, *, until: datetime) -> list[UUID]:
    """Return which memories about a subject have text and were created by a moment."""
    return list(
        connection.scalars(
            select(memory.c.memory_id).where(
                memory.c.org_id == org_id,
                memory.c.subject_type == subject.type,
                memory.c.subject_id == subject.id,
                memory.c.text.is_not(None),
                memory.c.created_at <= until,
            )
        )
    )


def one(connection: Connection, org_id: str, memory_id: UUID, *, now: datetime, locked: bool = False) -> Memory | None:
    """Return one memory, in its state at that moment; `locked` keeps it as it is until this transaction ends."""
    statement = select(*COLUMNS).where(memory.c.org_id == org_id, memory.c.memory_id == memory_id)
    row = connection.execute(statement.with_for_update() if locked else statement).one_or_none()
    return None if row is None else memory_of(row, now=now)


def besides(connection: Connection, org_id: str, subject: Subject, *, now: datetime) -> Generator[Memory]:
    """Yield every memory with text that is not about a subject."""
    statement = (
        select(*COLUMNS)
        .where(
            memory.c.org_id == org_id,
            memory.c.text.is_not(None),
            func.coalesce(and_(memory.c.subject_type == subject.type, memory.c.subject_id == subject.id), false()).is_(
                False
            ),
        )
        .order_by(memory.c.created_at.desc(), memory.c.memory_id.desc())
        .execution_options(yield_per=1000)
    )
    with connection.execute(statement) as rows:
        for row in rows:
            yield memory_of(row, now=now)


def dispute(connection: Connection, org_id: str, memory_id: UUID, *, words: str, at: datetime) -> bool:
    """Put a person's words beside a memory with text that has none; returns whether that was so."""
    return bool(
        connection.execute(
            update(memory)
            .where(
                memory.c.org_id == org_id,
                memory.c.memory_id == memory_id,
                memory.c.text.is_not(None),
                memory.c.disputed_at.is_(None),
            )
            .values(dispute=words, disputed_at=at)
        ).rowcount
    )


def withdraw_dispute(connection: Connection, org_id: str, memory_id: UUID, *, at: datetime) -> bool:
    """Take back a dispute that stands; returns whether one did."""
    return bool(
        connection.execute(
            update(memory)
            .where(
                memory.c.org_id == org_id,
                memory.c.memory_id == memory_id,
                memory.c.dispute.is_not(None),
                memory.c.dispute_withdrawn_at.is_(None),
            )
            .values(dispute_withdrawn_at=at)
        ).rowcount
    )


def memory_of(row: Row[Any], *, now: datetime) -> Memory:
    """Build the memory that a row of COLUMNS holds, in its state at that moment."""
    subject = None if row.subject_id is None else Subject(row.subject_type, row.subject_id)
    return Memory(**fields(row, subject, now=now))


def fields(row: Row[Any], subject: Subject | None, *, now: datetime) -> dict[str, Any]:
    """Return a memory's fields from a row of COLUMNS."""
    return {
        "memory_id": row.memory_id,
        "org_id": row.org_id,
        "kind": KINDS[row.kind],
        "subject": subject,
        "text": row.text,
        "origin": ORIGINS[row.origin],
        "author": row.author,
        "run_id": row.run_id,
        "source": row.source,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "state": state(
            expires_at=row.expires_at,
            restricted_at=row.restricted_at,
            forgotten_at=row.forgotten_at,
            swept_at=row.swept_at,
            now=now,
        ),
        "seen_count": row.seen_count,
        "last_seen_at": row.last_seen_at,
        "last_seen_run_id": row.last_seen_run_id,
        "embedding_model": row.embedding_model,
        "restricted_at": row.restricted_at,
        "hold": row.hold,
        "forgotten_at": row.forgotten_at,
        "forgotten_by": row.forgotten_by,
        "forgotten_reason": row.forgotten_reason,
        "swept_at": row.swept_at,
        "erasure_id": row.erasure_id,
        "supersedes": row.supersedes,
        "corrected_by": row.corrected_by,
        "correction_reason": row.correction_reason,
        "dispute": row.dispute,
        "disputed_at": row.disputed_at,
        "dispute_withdrawn_at": row.dispute_withdrawn_at,
    }
