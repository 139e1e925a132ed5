"""Queries on memories: each takes an open connection inside one organisation's transaction, none commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from operator import itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.tables import directory, disclosure, erasure, memory, recall
from memory_core.model import Disclosure, HeldMemory, Kind, Memory, Origin, Purpose, Subject
from memory_core.rules.admission import Admitted
from memory_core.rules.retention import state

# All but the vector, which only the database compares, and the digest.
COLUMNS = [column for column in memory.c if column.name not in ("embedding", "text_sha256")]


def about(table: Any, org_id: str, subject: Subject) -> ColumnElement[bool]:
    """Select what is held about a subject: the one selector that showing and erasing share."""
    return and_(
        table.c.org_id == org_id,
        table.c.subject_type == subject.type,
        table.c.subject_id == subject.id,
    )


def live(org_id: str, now: datetime | None) -> ColumnElement[bool]:
    """Select what may be recalled: it has text, is not restricted, and has not expired by the clock.

    `now` None asks the database's own clock.
    """
    return and_(
        memory.c.org_id == org_id,
        memory.c.text.is_not(None),
        memory.c.restricted_at.is_(None),
        memory.c.expires_at > (func.now() if now is None else now),
    )


def digest(text: str) -> bytes:
    """Return what "the same sentence" is compared by."""
    return sha256(text.encode()).digest()


def remember(connection: Connection, org_id: str, new: Mapping[UUID, Admitted], *, now: datetime) -> list[Memory]:
    """Store memories, each under its identifier; an exact repeat refreshes the row it finds instead.

    Returns one memory per entry, in order.
    """
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for memory_id, item in new.items():
        row = _row(org_id, memory_id, item, now=now)
        known = merged.setdefault(_key(row), row)
        if known is not row:  # one statement may not touch a row twice
            _refresh(known, row)
    stored: dict[tuple[Any, ...], Memory] = {}
    for asked in (False, True):
        # In one order always: two loads of the same sentences then wait for each other instead of deadlocking.
        rows = sorted((row for row in merged.values() if row["asked"] is asked), key=itemgetter("text_sha256"))
        if rows:
            values = [{name: value for name, value in row.items() if name != "asked"} for row in rows]
            for found in connection.execute(_upsert(asked=asked), values):
                stored[_key(found._asdict())] = memory_of(found, now=now)
    return [stored[_key(_row(org_id, memory_id, item, now=now))] for memory_id, item in new.items()]


def _row(org_id: str, memory_id: UUID, item: Admitted, *, now: datetime) -> dict[str, Any]:
    return {
        "org_id": org_id,
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
        "last_seen_at": item.created_at,
        "last_seen_run_id": item.run_id,
        "asked": item.expiry_was_asked,
    }


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("text", "kind", "origin", "author", "subject_type", "subject_id"))


def _refresh(known: dict[str, Any], again: dict[str, Any]) -> None:
    known["seen_count"] += 1
    if again["last_seen_at"] >= known["last_seen_at"]:
        known["last_seen_at"], known["last_seen_run_id"] = again["last_seen_at"], again["run_id"]
    if again["asked"]:
        known["asked"], known["expires_at"] = True, again["expires_at"]
    elif not known["asked"]:
        known["expires_at"] = max(known["expires_at"], again["expires_at"])


def _upsert(*, asked: bool) -> Any:
    new = insert(memory)
    later = new.excluded.last_seen_at >= memory.c.last_seen_at
    return new.on_conflict_do_update(
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
        where=memory.c.org_id == new.excluded.org_id,
    ).returning(*COLUMNS)


def held(
    connection: Connection, org_id: str, subject: Subject, *, now: datetime | None
) -> tuple[datetime, Subject, list[HeldMemory]]:
    """Return the moment, the subject with its directory entry, and all that is held about it, newest first."""
    shown = (
        select(
            func.json_agg(
                func.json_build_array(
                    recall.c.recall_id, recall.c.run_id, recall.c.purpose, recall.c.at, disclosure.c.place
                )
            )
        )
        .select_from(disclosure)
        .join(recall, and_(recall.c.org_id == disclosure.c.org_id, recall.c.recall_id == disclosure.c.recall_id))
        .where(disclosure.c.org_id == org_id, disclosure.c.memory_id == memory.c.memory_id)
        .correlate(memory)
        .scalar_subquery()
    )
    moment = select((func.now() if now is None else literal(now)).label("at")).subquery()
    statement = (
        select(moment.c.at, directory.c.label, directory.c.aliases, shown.label("shown"), *COLUMNS)
        .select_from(moment)
        .outerjoin(directory, about(directory, org_id, subject))
        .outerjoin(memory, about(memory, org_id, subject))
        .order_by(memory.c.created_at.desc(), memory.c.memory_id.desc())
    )
    rows = connection.execute(statement).all()
    first = rows[0]
    known = Subject(subject.type, subject.id, first.label, tuple(first.aliases or ()))
    memories = [_held_memory(row, known, now=first.at) for row in rows if row.memory_id is not None]
    return first.at, known, memories


def forget(
    connection: Connection,
    org_id: str,
    subject: Subject,
    *,
    erasure_id: UUID,
    by: str,
    reason: str,
    now: datetime | None,
) -> tuple[datetime, list[UUID], list[str]]:
    """Empty what is held about a subject and its directory entry, and record the erasure; all in one statement.

    Returns the moment, the identifiers of the new tombstones, and the holds that kept everything (then nothing changed).
    """
    at = func.statement_timestamp() if now is None else literal(now)
    holds = select(memory.c.hold).where(about(memory, org_id, subject), memory.c.hold.is_not(None)).cte("holds")
    free = ~select(holds.c.hold).exists()
    gone = (
        update(memory)
        .where(about(memory, org_id, subject), memory.c.text.is_not(None), free)
        .values(
            text=None,
            text_sha256=None,
            embedding=None,
            embedding_model=None,
            forgotten_at=at,
            forgotten_by=by,
            forgotten_reason=reason,
        )
        .returning(memory.c.memory_id)
        .cte("gone")
    )
    cleared = directory.delete().where(about(directory, org_id, subject), free).returning(literal(1)).cte("cleared")
    recorded = (
        insert(erasure)
        .from_select(
            ["org_id", "erasure_id", "subject_type", "subject_id", "by", "reason", "at", "memory_count"],
            select(
                literal(org_id),
                literal(erasure_id),
                literal(subject.type),
                literal(subject.id),
                literal(by),
                literal(reason),
                at,
                select(func.count()).select_from(gone).scalar_subquery(),
            ).where(free),
        )
        .returning(literal(1))
        .cte("recorded")
    )
    statement = select(
        at.label("at"),
        func.array(select(gone.c.memory_id).scalar_subquery()).label("memory_ids"),
        func.array(select(holds.c.hold).distinct().order_by(holds.c.hold).scalar_subquery()).label("holds"),
    ).add_cte(cleared, recorded)
    row = connection.execute(statement).one()
    return row.at, list(row.memory_ids), list(row.holds)


def live_with_names(
    connection: Connection, org_id: str, *, now: datetime
) -> Iterator[tuple[Memory, str | None, Sequence[str]]]:
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
        .where(live(org_id, now))
        .order_by(memory.c.created_at, memory.c.memory_id)
        .execution_options(yield_per=500)
    )
    for row in connection.execute(statement):
        yield memory_of(row, now=now), row.label, row.aliases or ()


def memory_of(row: Row[Any], *, now: datetime) -> Memory:
    """Build the memory that a row of COLUMNS holds, in its state at that moment."""
    return Memory(**_fields(row, None, now=now))


def _held_memory(row: Row[Any], subject: Subject, *, now: datetime) -> HeldMemory:
    shown = [
        Disclosure(
            recall_id=UUID(recall_id),
            run_id=run_id,
            purpose=Purpose(purpose),
            at=datetime.fromisoformat(at),
            place=place,
        )
        for recall_id, run_id, purpose, at, place in row.shown or ()
    ]
    shown.sort(key=lambda one: (one.at, one.recall_id))
    return HeldMemory(**_fields(row, subject, now=now), disclosures=tuple(shown))


def _fields(row: Row[Any], subject: Subject | None, *, now: datetime) -> dict[str, Any]:
    fields = dict(row._mapping)
    subject_type, subject_id = fields.pop("subject_type"), fields.pop("subject_id")
    for name in ("at", "label", "aliases", "shown", "distance"):
        fields.pop(name, None)
    fields["kind"] = Kind(fields["kind"])
    fields["origin"] = Origin(fields["origin"])
    fields["subject"] = subject or (Subject(subject_type, subject_id) if subject_id is not None else None)
    fields["state"] = state(
        expires_at=fields["expires_at"],
        restricted_at=fields["restricted_at"],
        forgotten_at=fields["forgotten_at"],
        swept_at=fields["swept_at"],
        now=now,
    )
    return fields
