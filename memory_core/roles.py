"""Who may do what: identities, roles, acts, and the one table that says which role may do which act."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal, Refused

LONGEST = 255  # characters of an issuer or a subject, as OpenID Connect has it


class Role(StrEnum):
    """What somebody is in an organisation; one person may be several."""

    DPO = "dpo"  # the data protection officer: subjects, requests, exports, forget, holds, trail
    ENGINEER = "engineer"  # recall preview, runs, latency, evals
    AUDITOR = "auditor"  # trail and register, read only
    ADMIN = "admin"  # members and settings; no memories


class Act(StrEnum):
    """What is done, as far as roles tell it apart."""

    OVERVIEW = "see figures"  # counts, health, whether the database was restored
    LOOK = "look at a subject"
    FORGET = "erase"
    MEASURE = "restrict, hold, suppress or lift"
    CORRECT = "correct or dispute"
    RELEASE = "hand out an access package"
    READ_REGISTER = "read the register"
    WORK_REGISTER = "work on the register"
    READ_TRAIL = "read the trail"
    DECIDE = "decide as the second officer"
    PREVIEW = "preview a recall"
    READ_RUNS = "look at runs"
    READ_LATENCY = "read latency"
    READ_EVALS = "read evals"
    READ_SETTINGS = "read the settings"
    CHANGE_SETTINGS = "change the settings"
    CHANGE_SAFEGUARDS = "change the safeguards"
    READ_MEMBERS = "list members"
    CHANGE_MEMBERS = "add or remove members"


_D, _E, _A, _M = Role.DPO, Role.ENGINEER, Role.AUDITOR, Role.ADMIN
MAY: Mapping[Act, frozenset[Role]] = MappingProxyType(
    {
        Act.OVERVIEW: frozenset({_D, _E, _A, _M}),
        Act.LOOK: frozenset({_D}),
        Act.FORGET: frozenset({_D}),
        Act.MEASURE: frozenset({_D}),
        Act.CORRECT: frozenset({_D}),
        Act.RELEASE: frozenset({_D}),
        Act.READ_REGISTER: frozenset({_D, _A}),
        Act.WORK_REGISTER: frozenset({_D}),
        Act.READ_TRAIL: frozenset({_D, _A}),
        Act.DECIDE: frozenset({_D}),
        Act.PREVIEW: frozenset({_E}),
        Act.READ_RUNS: frozenset({_D, _E}),
        Act.READ_LATENCY: frozenset({_E}),
        Act.READ_EVALS: frozenset({_E}),
        Act.READ_SETTINGS: frozenset({_D, _M, _A}),
        Act.CHANGE_SETTINGS: frozenset({_D, _M}),
        Act.CHANGE_SAFEGUARDS: frozenset({_M}),  # no officer loosens what binds officers
        Act.READ_MEMBERS: frozenset({_M, _A}),
        Act.CHANGE_MEMBERS: frozenset({_M}),
    }
)


# Whoever is one of these may not, whatever else they are: no officer loosens what binds officers.
NOT_AS: Mapping[Act, frozenset[Role]] = MappingProxyType({Act.CHANGE_SAFEGUARDS: frozenset({_D})})


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who somebody is to a provider: issuer and subject, never an e-mail address alone.

    Raises `Refused` for an issuer or a subject that is empty, too long, or no text a database can hold.
    """

    issuer: str
    subject: str

    def __post_init__(self) -> None:
        for field in ("issuer", "subject"):
            value = getattr(self, field)
            if not isinstance(value, str) or is_blank(value) or len(value) > LONGEST:
                reason = f"must be text of 1 to {LONGEST} characters, as the provider's token has it"
                raise Refused(Refusal(rule="identity_is_whole", field=field, reason=reason))
            if "\x00" in value or has_surrogate(value) or not value.isprintable():
                reason = "has a character that no provider puts there"
                raise Refused(Refusal(rule="identity_is_whole", field=field, reason=reason))

    @property
    def digest(self) -> bytes:
        """Return what the identity is looked up by: SHA-256 of issuer and subject, each with its length."""
        parts = (one.encode() for one in (self.issuer, self.subject))
        return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()

    @property
    def short(self) -> str:
        """Return an identifier by which the trail names somebody who is no member."""
        return f"identity:{self.digest.hex()[:16]}"


@dataclass(frozen=True, kw_only=True)
class Member:
    """One role of one identity in one organisation."""

    member_id: UUID
    org_id: str
    identity: Identity
    role: Role
    name: str  # as what they do is recorded: user:…
    email: str | None  # for people to recognise; nothing is decided by it
    added_at: datetime
    added_by: str
    removed_at: datetime | None
    removed_by: str | None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What an identity is in one organisation at a moment."""

    name: str  # user:…
    roles: frozenset[Role]
    is_alone: bool = False  # nobody signs in, and so there is nobody else

    def may(self, act: Act) -> bool:
        """Say whether one of the roles may do an act, and none of them stands against it."""
        return bool(self.roles & MAY[act]) and (self.is_alone or not self.roles & NOT_AS.get(act, frozenset()))


LOCAL = Standing(
    name="user:local", roles=frozenset(Role), is_alone=True
)  # without a sign-in, on the loopback address only
