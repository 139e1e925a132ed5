"""Queries on approvals: what a second officer was asked to agree to, what they said, whether it was used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, func, insert, select, update

from memory_core.db.tables import approval
from memory_core.model import Subject
from memory_core.rights import Approval, HeavyAct


def ask(
    connection: Connection,
    org_id: str,
    *,
    approval_id: UUID,
    act: HeavyAct | str,
    fingerprint: bytes,
    subject: Subject | None,
    count: int | None,
    reason: str,
    by: str,
    at: datetime,
    expires_at: datetime,
) -> Approval:
    """Ask for a second officer's agreement to exactly one act."""
    statement = insert(approval).values(
        org_id=org_id,
        approval_id=approval_id,
        act=str(act),
        fingerprint=fingerprint,
        subject_type=subject.type if subject else None,
        subject_id=subject.id if subject else None,
        count=count,
        reason=reason,
        asked_by=by,
        asked_at=at,
        expires_at=expires_at,
    )
    return _approval(connection.execute(statement.returning(approval)).one())


def asked(connection: Connection, org_id: str, act: HeavyAct | str, fingerprint: bytes, *, by: str) -> list[Approval]:
    """Return what an officer has asked for of exactly this, last first."""
    wanted = _of(org_id).where(
        approval.c.act == str(act), approval.c.fingerprint == fingerprint, approval.c.asked_by == by
    )
    rows = connection.execute(wanted.order_by(approval.c.asked_at.desc(), approval.c.approval_id.desc()))
    return [_approval(row) for row in rows]


def with_id(connection: Connection, org_id: str, approval_id: UUID) -> Approval | None:
    """Return one by its identifier, or None."""
    row = connection.execute(_of(org_id).where(approval.c.approval_id == approval_id)).one_or_none()
    return None if row is None else _approval(row)


def decide(connection: Connection, org_id: str, approval_id: UUID, *, by: str, agreed: bool, now: datetime) -> bool:
    """Agree to it or not; returns whether it waited for that. Raises `Refused` for whoever asked."""
    statement = (
        update(approval)
        .where(
            approval.c.org_id == org_id,
            approval.c.approval_id == approval_id,
            approval.c.decided_at.is_(None),
            approval.c.expires_at > now,
        )
        .values(decided_by=by, decided_at=now, agreed=agreed)
    )
    return bool(connection.execute(statement).rowcount)


def use(connection: Connection, org_id: str, approval_id: UUID, *, now: datetime) -> bool:
    """Use an agreement up, in the transaction that does what was agreed to; returns whether it could be used."""
    statement = (
        update(approval)
        .where(
            approval.c.org_id == org_id,
            approval.c.approval_id == approval_id,
            approval.c.agreed,
            approval.c.used_at.is_(None),
            approval.c.expires_at > now,
        )
        .values(used_at=now)
    )
    return bool(connection.execute(statement).rowcount)


def counted(
    connection: Connection, org_id: str, *, by: Iterable[str], acts: Iterable[HeavyAct | str], since: datetime
) -> int:
    """Return how many memories the acts were about that another has agreed to and that were done since, by their askers."""
    total = select(func.coalesce(func.sum(approval.c.count), 0)).where(
        approval.c.org_id == org_id,
        approval.c.asked_by.in_(by),
        approval.c.act.in_([str(act) for act in acts]),
        approval.c.used_at > since,
    )
    return int(connection.scalar(total) or 0)


def unexpired(connection: Connection, org_id: str, *, now: datetime) -> list[Approval]:
    """Return what was asked for and whose time is not over, whatever became of it; oldest first."""
    wanted = _of(org_id).where(approval.c.expires_at > now)
    rows = connection.execute(wanted.order_by(approval.c.asked_at, approval.c.approval_id))
    return [_approval(row) for row in rows]


def _of(org_id: str) -> Select[Any]:
    return select(approval).where(approval.c.org_id == org_id)


def _approval(row: Row[Any]) -> Approval:
    return Approval(
        approval_id=row.approval_id,
        org_id=row.org_id,
        act=HeavyAct(row.act),
        fingerprint=bytes(row.fingerprint),
        subject=None if row.subject_id is None else Subject(row.subject_type, row.subject_id),
        count=row._mapping["count"],  # a row has a method of that name
        reason=row.reason,
        asked_by=row.asked_by,
        asked_at=row.asked_at,
        expires_at=row.expires_at,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        agreed=row.agreed,
        used_at=row.used_at,
    )
