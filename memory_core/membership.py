"""The members of an organisation: who has which role, and what an identity that signs in is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from memory_core.config import Settings
from memory_core.config import settings as read_settings
from memory_core.db import database, locks, members, organisations, trail
from memory_core.db.engine import identity_transaction, organisation_transaction
from memory_core.errors import Refused
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id
from memory_core.roles import Identity, Member, Role, Standing
from memory_core.rules.members import adding_refusal, email_refusal, name_refusal, removing_refusal, role_of

ADD_MEMBER = "add member"
REMOVE_MEMBER = "remove member"


class Members:
    """The members of one organisation, as one admin of it changes them; open with `Members.open`.

    A change is one transaction that leaves a line of the trail in the admin's name. `Refused` names a rule for what may not
    be done, and then nothing is done.
    """

    def __init__(self, engine: Engine, org_id: str, *, by: str) -> None:
        for field, value in (("org_id", org_id), ("by", by)):
            if refused := identifier_refusal(value, field=field):
                raise Refused(refused)
        self.org_id = org_id
        self.by = by
        self._engine = engine

    @classmethod
    def open(cls, org_id: str, *, by: str, settings: Settings | None = None) -> Members:
        """Open the list of an organisation's members; raises as `MemoryStore.open` does."""
        return cls(database.usable_engine(settings or read_settings()), org_id, by=by)

    def add(self, identity: Identity, role: Role | str, *, name: str, email: str | None = None) -> Member:
        """Give an identity a role, under the name by which the trail knows it."""
        chosen = role_of(role)
        if refused := name_refusal(name) or email_refusal(email):
            raise Refused(refused)
        with self._change() as connection:
            standing = members.standing(connection, self.org_id, identity)
            taken = members.name_taken(connection, self.org_id, name, identity)
            if refused := adding_refusal(chosen, name, by=self.by, standing=standing, name_taken=taken):
                raise Refused(refused)
            added = members.add(
                connection,
                self.org_id,
                member_id=new_id(),
                identity=identity,
                role=chosen,
                name=name,
                email=email,
                by=self.by,
                at=organisations.moment(connection),
            )
            self._record(connection, ADD_MEMBER, identity, name, {chosen})
            return added

    def remove(self, identity: Identity, role: Role | str | None = None) -> frozenset[Role]:
        """Take one role from an identity, or all; returns which. It counts from the next look at what they are."""
        chosen = None if role is None else role_of(role)
        with self._change() as connection:
            everyone = members.listed(connection, self.org_id)
            if refused := removing_refusal(everyone, identity, chosen):
                raise Refused(refused)
            at = organisations.moment(connection)
            gone = members.remove(connection, self.org_id, identity, role=chosen, by=self.by, at=at)
            name = next(one.name for one in everyone if one.identity == identity)
            self._record(connection, REMOVE_MEMBER, identity, name, gone)
            return gone

    def listed(self, *, with_removed: bool = False) -> list[Member]:
        """Return the members, each role for itself, by name; also those who were, where that is asked for."""
        with organisation_transaction(self._engine, self.org_id) as connection:
            return members.listed(connection, self.org_id, with_removed=with_removed)

    @contextmanager
    def _change(self) -> Iterator[Connection]:
        with organisation_transaction(self._engine, self.org_id) as connection:
            organisations.enter(connection, self.org_id)  # before the lock, as the trail has it
            locks.await_members(connection, self.org_id)
            yield connection

    def _record(
        self, connection: Connection, act: str, identity: Identity, name: str, roles: set[Role] | frozenset[Role]
    ) -> None:
        trail.record(
            connection,
            self.org_id,
            by=self.by,
            act=act,
            reference=identity.short,
            count=len(roles),
            reason=f"{name} as {', '.join(sorted(roles))}",
        )


def standing_of(org_id: str, identity: Identity, *, settings: Settings | None = None) -> Standing | None:
    """Return what an identity is in an organisation at this moment, by a look in the database; None: no member."""
    if identifier_refusal(org_id, field="org_id"):
        return None
    with organisation_transaction(database.usable_engine(settings or read_settings()), org_id) as connection:
        return members.standing(connection, org_id, identity)


def memberships_of(identity: Identity, *, settings: Settings | None = None) -> Mapping[str, Standing]:
    """Return what an identity is at this moment in each organisation where it is a member, by a look in the database."""
    with identity_transaction(database.usable_engine(settings or read_settings()), identity) as connection:
        return members.memberships(connection, identity)
