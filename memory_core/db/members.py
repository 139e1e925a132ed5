"""Queries on members: who is one, under which roles, by what name."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, literal, select, update

from memory_core.db.tables import member
from memory_core.roles import Identity, Member, Role, Standing


def add(
    connection: Connection,
    org_id: str,
    *,
    member_id: UUID,
    identity: Identity,
    role: Role,
    name: str,
    email: str | None,
    by: str,
    at: datetime,
) -> Member:
    """Add one role of an identity."""
    connection.execute(
        insert(member).values(
            org_id=org_id,
            member_id=member_id,
            issuer=identity.issuer,
            subject=identity.subject,
            identity=identity.digest,
            role=role.value,
            name=name,
            email=email,
            added_at=at,
            added_by=by,
        )
    )
    return Member(
        member_id=member_id,
        org_id=org_id,
        identity=identity,
        role=role,
        name=name,
        email=email,
        added_at=at,
        added_by=by,
        removed_at=None,
        removed_by=None,
    )


def remove(
    connection: Connection, org_id: str, identity: Identity, *, role: Role | None = None, by: str, at: datetime
) -> frozenset[Role]:
    """Remove one role of an identity, or all; returns which of them stood."""
    which = and_(member.c.org_id == org_id, *_standing(identity))
    if role is not None:
        which = and_(which, member.c.role == role.value)
    statement = update(member).where(which).values(removed_at=at, removed_by=by).returning(member.c.role)
    return frozenset(map(Role, connection.scalars(statement)))


def listed(connection: Connection, org_id: str, *, with_removed: bool = False) -> list[Member]:
    """Return the members, each role for itself, by name; also those who were, where that is asked for."""
    wanted = select(member).where(member.c.org_id == org_id)
    if not with_removed:
        wanted = wanted.where(member.c.removed_at.is_(None))
    rows = connection.execute(wanted.order_by(member.c.name, member.c.added_at, member.c.role, member.c.member_id))
    return [_member(row) for row in rows]


def standing(connection: Connection, org_id: str, identity: Identity) -> Standing | None:
    """Return what an identity is in an organisation; None: no member."""
    return _standings(connection, member.c.org_id == org_id, *_standing(identity)).get(org_id)


def memberships(connection: Connection, identity: Identity) -> dict[str, Standing]:
    """Return what an identity is in each organisation where it is a member; call it in an `identity_transaction`."""
    return _standings(connection, *_standing(identity))


def name_taken(connection: Connection, org_id: str, name: str, identity: Identity) -> bool:
    """Say whether a name is another identity's, or was: what the trail says of it stays theirs."""
    others = select(literal(1)).where(
        member.c.org_id == org_id, member.c.name == name, member.c.identity != identity.digest
    )
    return connection.scalar(others.limit(1)) is not None


def names_of(connection: Connection, org_id: str, name: str) -> list[str]:
    """Return every name that the person of a name has or had here, the name itself also where no member ever had it."""
    theirs = select(member.c.identity).where(member.c.org_id == org_id, member.c.name == name)
    known = select(member.c.name).where(member.c.org_id == org_id, member.c.identity.in_(theirs)).distinct()
    return sorted({name, *connection.scalars(known)})


def is_second(connection: Connection, org_id: str, name: str, *, asked_by: str) -> bool:
    """Say whether a name is that of an officer, at this moment, who is another person than the one who asked.

    A person who was given a second name is the same one. Names that no member ever had are told apart as they are: a
    caller in Python goes by such.
    """
    rows = connection.execute(
        select(member.c.name, member.c.identity, member.c.role, member.c.removed_at).where(
            member.c.org_id == org_id, member.c.name.in_([name, asked_by])
        )
    ).all()
    theirs = [row for row in rows if row.name == name]
    is_officer = not theirs or any(row.role == Role.DPO and row.removed_at is None for row in theirs)
    asking = {row.identity for row in rows if row.name == asked_by}
    return name != asked_by and is_officer and asking.isdisjoint(row.identity for row in theirs)


def _standing(identity: Identity) -> tuple[ColumnElement[bool], ...]:
    return member.c.identity == identity.digest, member.c.removed_at.is_(None)


def _standings(connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, Standing]:
    rows: Iterable[Row[Any]] = connection.execute(
        select(member.c.org_id, member.c.name, member.c.role)
        .where(*conditions)
        .order_by(member.c.org_id, member.c.added_at, member.c.member_id)
    )
    found: dict[str, Standing] = {}
    for row in rows:
        known = found.get(row.org_id, Standing(name=row.name, roles=frozenset()))
        found[row.org_id] = Standing(name=known.name, roles=known.roles | {Role(row.role)})
    return found


def _member(row: Row[Any]) -> Member:
    return Member(
        member_id=row.member_id,
        org_id=row.org_id,
        identity=Identity(issuer=row.issuer, subject=row.subject),
        role=Role(row.role),
        name=row.name,
        email=row.email,
        added_at=row.added_at,
        added_by=row.added_by,
        removed_at=row.removed_at,
        removed_by=row.removed_by,
    )
