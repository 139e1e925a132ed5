"""Queries on the ledger inside the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, Connection, Uuid, bindparam, func, insert, select

from memory_core.db.tables import ledger, organisation
from memory_core.identity import new_id
from memory_core.model import Subject
from memory_core.rights import LedgerAct, LedgerEntry, TrailEntry


def record(
    connection: Connection,
    org_id: str,
    *,
    act: LedgerAct,
    line: TrailEntry,
    subject: Subject | None,
    code: str,
    memory_ids: Sequence[UUID] = (),
    name: str | None = None,
    reference: UUID | None = None,
    entry_id: UUID | None = None,
    at: datetime | None = None,
    by: str | None = None,
) -> None:
    """Add an entry beside its line of the trail, whose lock keeps the numbers without gaps.

    `entry_id`, `at` and `by` are given for an entry that is done again after a restore.
    """
    last = select(func.coalesce(func.max(ledger.c.number), 0) + 1).where(ledger.c.org_id == org_id).scalar_subquery()
    connection.execute(
        insert(ledger).values(
            org_id=org_id,
            number=last,
            entry_id=entry_id or new_id(),
            act=act.value,
            subject_type=subject.type if subject else None,
            subject_id=subject.id if subject else None,
            memory_ids=list(memory_ids),
            name=name,
            reference=reference,
            at=at or line.at,
            by=by or line.by,
            code=code,
            trail_number=line.number,
            trail_hash=line.hash,
        )
    )


def ledger_id(connection: Connection, org_id: str) -> UUID | None:
    """Return by which identifier the ledger outside knows the organisation; None before anything was written in it."""
    return connection.scalar(select(organisation.c.ledger_id).where(organisation.c.org_id == org_id))


def newest(connection: Connection, org_id: str) -> tuple[UUID | None, UUID | None]:
    """Return by which identifier the ledger outside knows the organisation, and its newest entry."""
    last = (
        select(ledger.c.entry_id)
        .where(ledger.c.org_id == org_id)
        .order_by(ledger.c.number.desc())
        .limit(1)
        .scalar_subquery()
    )
    row = connection.execute(
        select(organisation.c.ledger_id, last.label("last_entry")).where(organisation.c.org_id == org_id)
    ).one_or_none()
    return (None, None) if row is None else (row.ledger_id, row.last_entry)


def known(connection: Connection, org_id: str) -> set[UUID]:
    """Return the identifiers of every entry."""
    return set(connection.scalars(select(ledger.c.entry_id).where(ledger.c.org_id == org_id)))


def entries(
    connection: Connection, org_id: str, *, besides: frozenset[UUID] = frozenset(), of: UUID | None = None
) -> list[LedgerEntry]:
    """Return the entries in order, but those that are known elsewhere; `of` is one erasure or measure."""
    statement = select(ledger).where(ledger.c.org_id == org_id).order_by(ledger.c.number)
    if of is not None:
        statement = statement.where(ledger.c.reference == of)
    if besides:
        statement = statement.where(
            ledger.c.entry_id != func.all(bindparam("besides", sorted(besides), type_=ARRAY(Uuid)))
        )
    return [
        LedgerEntry(
            number=row.number,
            entry_id=row.entry_id,
            act=LedgerAct(row.act),
            subject=None if row.subject_id is None else Subject(row.subject_type, row.subject_id),
            memory_ids=tuple(row.memory_ids),
            name=row.name,
            reference=row.reference,
            at=row.at,
            by=row.by,
            code=row.code,
            trail_number=row.trail_number,
            trail_hash=bytes(row.trail_hash),
        )
        for row in connection.execute(statement)
    ]
