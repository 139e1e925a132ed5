"""The values of the data protection officer's desk, frozen: requests, measures, packages, erasures and their proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from enum import StrEnum
from hashlib import blake2b
from uuid import UUID

from memory_core.model import HeldMemory, Memory, Subject


class RequestType(StrEnum):
    """Which right somebody claims."""

    ACCESS = "access"  # GDPR Art. 15
    RECTIFICATION = "rectification"  # Art. 16
    ERASURE = "erasure"  # Art. 17
    RESTRICTION = "restriction"  # Art. 18
    PORTABILITY = "portability"  # Art. 20
    OBJECTION = "objection"  # Art. 21

    @property
    def article(self) -> int:
        """The article of the GDPR."""
        return {
            "access": 15,
            "rectification": 16,
            "erasure": 17,
            "restriction": 18,
            "portability": 20,
            "objection": 21,
        }[self.value]


class Channel(StrEnum):
    """How a request came in."""

    LETTER = "letter"
    EMAIL = "e-mail"
    FORM = "web form"
    PHONE = "telephone"
    IN_PERSON = "in person"
    OTHER = "other"


class Status(StrEnum):
    """Where a request stands."""

    RECEIVED = "received"
    IDENTITY_PENDING = "identity pending"
    IN_PROGRESS = "in progress"
    ANSWERED = "answered"
    REFUSED = "refused"
    DUPLICATE = "duplicate"
    WITHDRAWN = "withdrawn"

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits for an answer."""
        return self in (Status.RECEIVED, Status.IDENTITY_PENDING, Status.IN_PROGRESS)


class IdentityMethod(StrEnum):
    """How it was made sure who asks; the document itself is never kept."""

    ACCOUNT = "signed in to their account"
    KNOWN_ADDRESS = "answered from the address on file"
    CALL_BACK = "called back on the number on file"
    DOCUMENT = "document seen, not kept"
    KNOWN = "known in person"
    MANDATE = "mandate of a representative seen"


class RefusalGround(StrEnum):
    """Why a request is refused; each is the organisation's to prove."""

    UNFOUNDED = "manifestly unfounded"
    EXCESSIVE = "excessive"
    IDENTITY = "identity not established"
    OBLIGATION = "kept by legal obligation or for claims"
    OTHERS = "rights of others"
    NO_RIGHT = "the right does not apply"


class MeasureKind(StrEnum):
    """What stands about a subject until somebody lifts it."""

    RESTRICTION = "restriction"  # Art. 18: kept, never recalled
    HOLD = "hold"  # may not be forgotten, swept or purged
    SUPPRESSION = "suppression"  # Art. 21: nothing new may be remembered


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Days on which a request's clock stood still."""

    since: date
    until: date | None  # the day it went on; None: it still stands


@dataclass(frozen=True, kw_only=True)
class RightsRequest:
    """One request of the register, as it stands."""

    request_id: UUID
    reference: str  # R-2026-0001
    type: RequestType
    status: Status
    asked_by: str | None  # who wrote; emptied when the register's own retention is over
    channel: Channel
    subject: Subject | None  # None: still unknown
    received_on: date
    identity_asked_on: date | None
    identity_method: IdentityMethod | None
    identity_confirmed_on: date | None
    extended_on: date | None
    extension_reason: str | None
    pauses: tuple[Pause, ...]
    closed_at: datetime | None
    ground: RefusalGround | None  # where it was refused
    closing_note: str | None
    duplicate_of: str | None  # the reference of the request it repeats
    version: int  # from 1; goes up with every change
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, kw_only=True)
class RequestChange:
    """One step in the life of a request; kept for good."""

    version: int
    at: datetime
    by: str
    act: str
    changed: Mapping[str, tuple[str | None, str | None]]  # field -> before, after


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A restriction, a hold or a suppression, with who, why and until when."""

    measure_id: UUID
    kind: MeasureKind
    name: str  # what a refusal names: the matter of a hold, the reference of a request
    subject: Subject | None
    memory_id: UUID | None  # None: everything about the subject, also what comes
    by: str
    reason: str
    placed_at: datetime
    review_on: date | None  # when to look again; nothing lifts itself
    request_reference: str | None
    lifted_at: datetime | None
    lifted_by: str | None
    lifted_reason: str | None
    person_told: bool | None  # of a restriction that was lifted: whether the person was told before (Art. 18(3))

    @property
    def stands(self) -> bool:
        """Whether nobody has lifted it."""
        return self.lifted_at is None

    def stood(self, at: datetime) -> bool:
        """Say whether it stood at a moment."""
        return self.placed_at <= at and (self.lifted_at is None or self.lifted_at > at)


@dataclass(frozen=True, kw_only=True)
class StandingAnswers:
    """What the organisation answers everybody who asks, as Art. 15 wants it; None is unanswered."""

    controller: str | None = None  # name and address of whoever is responsible
    officer: str | None = None  # how to reach the data protection officer
    purposes: str | None = None  # Art. 15(1)(a)
    categories: str | None = None  # (b)
    recipients: str | None = None  # (c), beside the agents and runs that the package lists
    retention: str | None = None  # (d), beside the date of each item
    authority: str | None = None  # (f): with whom to complain
    automated_decisions: str | None = (
        None  # (h): whether there are any, by what logic, and what a memory has to do with it
    )
    transfers: str | None = None  # (2): to which third countries, by which safeguards

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The names of the fields without an answer."""
        return tuple(field.name for field in fields(self) if not getattr(self, field.name))


@dataclass(frozen=True, kw_only=True)
class DeskSettings:
    """What an organisation has set for its desk."""

    answers: StandingAnswers = StandingAnswers()
    jurisdiction: str | None = None  # a country or region code; None: no holidays are known
    time_zone: str = "UTC"  # in which a day begins and ends
    tombstone_days: int = 1095
    version: int = 0  # goes up with every change


@dataclass(frozen=True, kw_only=True)
class Safeguards:
    """What an organisation lets be seen, be done by one person alone, and leave."""

    preview_pseudonyms: bool = False  # whether previews and runs show persons under pseudonyms
    four_eyes_over: int | None = (
        None  # memories that one officer erases alone in a day; None: nobody is asked, also of holds
    )
    observations_leave: bool = False  # whether what is remembered about persons may go to a model outside
    observations_leave_by: str | None = None
    observations_leave_at: datetime | None = None
    version: int = 0  # of all that the organisation has set; goes up with every change


class HeavyAct(StrEnum):
    """What a second officer may have to agree to."""

    ERASE = "erase"
    CORRECT = "correct"  # which erases what the memory said
    LIFT = "lift a hold"
    RELEASE = "hand out a package"


@dataclass(frozen=True, kw_only=True)
class Approval:
    """That a second officer was asked to agree to one act, and what became of it."""

    approval_id: UUID
    org_id: str
    act: HeavyAct
    fingerprint: bytes  # of exactly what is to be done
    subject: Subject | None
    count: int | None  # memories it is about
    reason: str
    asked_by: str
    asked_at: datetime
    expires_at: datetime  # after it, nobody agrees to it, and nothing is done on it
    decided_by: str | None
    decided_at: datetime | None
    agreed: bool | None  # None: nobody has said yet
    used_at: datetime | None  # it is used once

    def waits(self, *, now: datetime) -> bool:
        """Say whether somebody can still agree to it, or not."""
        return self.decided_at is None and now < self.expires_at

    def is_usable(self, *, now: datetime) -> bool:
        """Say whether the act may be done on it."""
        return self.agreed is True and self.used_at is None and now < self.expires_at


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A name of a known subject that stands in a text."""

    subject: Subject
    name: str  # the name as the directory has it, or the id
    whole: bool  # the whole name; else one of its words


@dataclass(frozen=True, kw_only=True)
class PackageItem:
    """One memory in an access package."""

    memory: HeldMemory
    mentions: tuple[Mention, ...]  # other known subjects whom its text names
    left_out: str | None  # why its text is not handed out; None: it is


@dataclass(frozen=True, kw_only=True)
class AccessPackage:
    """The answer to a request for access, before it is written as files."""

    org_id: str
    subject: Subject
    at: datetime
    by: str
    reference: str | None  # of the request it answers
    law: str  # "EU GDPR" or "UK GDPR"
    answers: StandingAnswers
    items: tuple[PackageItem, ...]  # newest first, tombstones included
    measures: tuple[Measure, ...]
    requests: tuple[RightsRequest, ...]
    tombstone_days: int  # how long the record of an erased or expired item stays

    @property
    def readable(self) -> str:
        """A digest of what can be read in it, by which it is known whether it still is what was looked at."""
        read = (f"{item.memory.memory_id} {item.memory.words}" for item in self.items if item.memory.text is not None)
        return blake2b("\n".join(sorted(read)).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Reached:
    """A memory that an erasure does not reach by itself, and why it may belong to it."""

    memory: Memory
    because: tuple[str, ...]  # "names them", "names them in part", "written by a run that was shown theirs"
    names: tuple[str, ...]  # the names found in it


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What an erasure would empty, and what it would not reach by itself."""

    subject: Subject
    at: datetime
    with_text: int  # what goes
    tombstones: int  # what is empty already
    holds: tuple[str, ...]
    others: tuple[Reached, ...]  # what could be forgotten with it
    alike: tuple[Subject, ...]  # subjects of like names: perhaps the same person
    runs: tuple[str, ...]  # that were shown this person's memories


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The proof of an erasure: counts, identifiers, times, who; no content, and no name."""

    erasure_id: UUID
    org_id: str
    at: datetime
    by: str
    request_reference: str | None
    subject_fingerprint: str  # HMAC-SHA-256 of type and id, by a salt that stays in the erasure's record
    about_subject: tuple[UUID, ...]  # the tombstones it left about the subject
    about_others: tuple[UUID, ...]  # … and of what was forgotten with it
    purged: int  # tombstones of it that are gone by now, after their retention
    suppressed: bool  # whether new memories were stopped when it was done
    ledger_number: int | None
    trail_number: int | None
    trail_hash: str | None
    keeps: tuple[str, ...]  # what PostgreSQL and backups keep for a while, each with the rule that bounds it


@dataclass(frozen=True, kw_only=True)
class TrailEntry:
    """One line of the trail: who did what, when, about whom; never a word of a memory."""

    number: int
    at: datetime
    by: str
    act: str
    subject: Subject | None
    reference: str | None  # an identifier: of a request, an erasure, a measure, a memory, a recall
    request: str | None  # the reference of the request for which it was done
    count: int | None
    reason: str | None
    hash: bytes


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What a sweep did, or would do."""

    org_id: str
    emptied: int  # expired memories that lost text and embedding
    purged: int  # tombstones deleted after their retention
    kept_by_hold: int  # expired, and on hold
    kept_by_restriction: int  # expired, and restricted
    holds: tuple[str, ...]  # the names of those that kept anything, tombstones included
    dry_run: bool


class LedgerAct(StrEnum):
    """What has to be done again on a database that was restored from a backup."""

    FORGET = "forget"
    CORRECT = "correct"  # the old text of a correction
    RESTRICTION = "restriction"
    HOLD = "hold"
    SUPPRESSION = "suppression"
    LIFT = "lift"
    REPLAY = "replay"  # a mark only: what was lost was done again


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One line of the ledger: identifiers, times, a code; never a text."""

    number: int
    entry_id: UUID
    act: LedgerAct
    subject: Subject | None
    memory_ids: tuple[UUID, ...]  # that it emptied, or is about; of a replay, the entries that were done again
    name: str | None  # of a measure
    reference: UUID | None  # the erasure or the measure
    at: datetime
    by: str
    code: str  # why, in one word
    trail_number: int  # the trail's head when it was written
    trail_hash: bytes


@dataclass(frozen=True, kw_only=True)
class Break:
    """Where the trail does not hold."""

    number: int
    what: str
