"""The values that the store takes and gives, frozen and impossible to build wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.labels import alias_refusal, label_refusal


class Kind(StrEnum):
    """What a memory is: operational, or about a named person."""

    FACT = "fact"  # operational: "we never schedule on Fridays"
    OBSERVATION = "observation"  # about a named person


class Origin(StrEnum):
    """Who concluded it. Never blurred."""

    PERSON = "person"  # somebody stated it
    INFERENCE = "inference"  # a model concluded it


class State(StrEnum):
    """Where a memory stands; only a live one is ever recalled."""

    LIVE = "live"
    EXPIRED = "expired"  # past its expiry, text not yet swept
    SWEPT = "swept"  # expired and emptied
    RESTRICTED = "restricted"  # GDPR Art. 18: kept, not used
    FORGOTTEN = "forgotten"  # a tombstone


class RecallMode(StrEnum):
    """How a recall chose its memories."""

    SEMANTIC = "semantic"
    RECENCY = "recency"


class Ranking(StrEnum):
    """The order within a mode, by name."""

    RECENCY = "recency"  # newest first
    DENSE = "dense"  # nearest by the cosine of their embeddings
    LEXICAL = "lexical"  # sharing the question's words, the rarer the better
    HYBRID = "hybrid"  # vectors and words together, with names, dates and what was said just before


class Search(StrEnum):
    """Which search found the candidates of a recall."""

    EXACT = "exact"  # every live memory of the organisation was compared
    QUANTISED = "quantised"  # all were compared by the signs of their vectors, the best re-ranked exactly
    NEWEST = "newest"  # no vectors were compared


class Purpose(StrEnum):
    """Why memories were shown."""

    RUN = "run"  # to an agent's run
    PREVIEW = "preview"  # to a person, in the workbench


@dataclass(frozen=True)
class Subject:
    """Who or what a memory is about.

    Two subjects are the same when type and id are; the label and the aliases (name variants, e-mail,
    ATS id) are only for finding it. Raises `Refused` for an identifier or a name that cannot be stored.
    """

    type: str
    id: str
    label: str | None = field(default=None, compare=False)
    aliases: Sequence[str] = field(default=(), compare=False)  # kept as a tuple

    def __post_init__(self) -> None:
        if isinstance(self.aliases, list):  # the one container JSON has
            object.__setattr__(self, "aliases", tuple(self.aliases))
        for refusal in (
            identifier_refusal(self.type, field="subject.type"),
            identifier_refusal(self.id, field="subject.id"),
            label_refusal(self.label),
            alias_refusal(self.aliases),
        ):
            if refusal:
                raise Refused(refusal)

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


def subject_of(value: object) -> Subject:
    """Return by what a subject is held: its type and id; what a caller knows it as stays with the caller.

    Raises `Refused` for what is no subject.
    """
    if not isinstance(value, Subject):
        raise Refused(Refusal(rule="subject_is_a_subject", field="subject", reason="must be a Subject(type, id)"))
    return Subject(value.type, value.id)


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """One memory having been shown to one run, or in one preview."""

    recall_id: UUID
    run_id: str
    purpose: Purpose
    at: datetime
    place: int  # its number in the block, from 1
    by: str | None = None  # who looked, and why, where it was a preview and they said so
    because: str | None = None


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One remembered sentence or two, with its provenance and its expiry."""

    memory_id: UUID
    org_id: str
    kind: Kind
    subject: Subject | None
    text: str | None  # None once it is gone
    origin: Origin
    author: str
    run_id: str
    source: str | None
    created_at: datetime
    expires_at: datetime
    state: State  # as of the moment it was read
    seen_count: int  # how often it was remembered, 1 at first
    last_seen_at: datetime
    last_seen_run_id: str
    embedding_model: str | None
    restricted_at: datetime | None
    hold: str | None  # the name of the legal hold it is under
    forgotten_at: datetime | None
    forgotten_by: str | None
    forgotten_reason: str | None
    swept_at: datetime | None
    erasure_id: UUID | None = None  # which erasure emptied it
    supersedes: UUID | None = None  # the memory that it corrects, whose text is gone
    corrected_by: str | None = None
    correction_reason: str | None = None
    dispute: str | None = None  # the person's own words beside it
    disputed_at: datetime | None = None
    dispute_withdrawn_at: datetime | None = None

    @property
    def disputed(self) -> str | None:
        """The person's words that stand beside it now."""
        return None if self.dispute_withdrawn_at else self.dispute

    @property
    def words(self) -> str:
        """All that people and models have written into it, for looking for names."""
        return "\n".join(filter(None, (self.text, self.dispute, self.correction_reason)))


@dataclass(frozen=True, kw_only=True)
class HeldMemory(Memory):
    """A memory as a data protection officer sees it: with everybody it was shown to."""

    disclosures: tuple[Disclosure, ...]  # oldest first


@dataclass(frozen=True, kw_only=True)
class Held:
    """Everything held about one subject: no page limit, tombstones included, newest first."""

    subject: Subject  # with the directory's label and aliases, if there is an entry
    at: datetime
    memories: tuple[HeldMemory, ...]

    @property
    def with_text(self) -> int:
        """How many memories an erasure would turn into tombstones now."""
        return sum(memory.text is not None for memory in self.memories)


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """What a forget did."""

    erasure_id: UUID
    subject: Subject
    by: str
    reason: str
    at: datetime
    memory_ids: tuple[UUID, ...]
    others: tuple[UUID, ...] = ()  # memories that are not about the subject, forgotten with it
    ledger_is_outside: bool = True  # whether its ledger entry lies outside the database already

    @property
    def count(self) -> int:
        """The number of new tombstones about the subject."""
        return len(self.memory_ids)


@dataclass(frozen=True, kw_only=True)
class Block:
    """The fenced, labelled text a model sees."""

    text: str
    tokens: int  # estimated; see memory_core.prompt.tokens
    omitted: int  # memories that did not fit the token budget
    boundary: str
    observations: int = 0  # of its memories, how many are observations that have their text


@dataclass(frozen=True, kw_only=True)
class Timings:
    """Where a recall's time went, in milliseconds."""

    embed_ms: float
    search_ms: float


@dataclass(frozen=True, kw_only=True)
class RecalledMemory:
    """A memory that a recall chose."""

    memory: Memory
    score: float | None  # by its ranking: the cosine, with hybrid what words add to it; None when chosen by recency
    filled_up: bool  # chosen by recency because too few memories had an embedding
    shown: bool  # stands in the block; only then it was disclosed


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """A memory that was left out of a recall, since a better one says nearly the same about the same subject."""

    memory_id: UUID
    same_as: UUID


@dataclass(frozen=True, kw_only=True)
class Recall:
    """What a recall chose, and how."""

    recall_id: UUID
    run_id: str
    at: datetime
    purpose: Purpose
    mode: RecallMode
    reason: str | None  # why it is not semantic; None when it is
    ranking: Ranking
    search: Search
    unembedded: int  # live memories without an embedding by the organisation's model
    memories: tuple[RecalledMemory, ...]  # best first
    passed_over: tuple[PassedOver, ...]  # what would have been among them, had a better one not said the same
    block: Block | None
    timings: Timings


@dataclass(frozen=True, kw_only=True)
class FoundSubject:
    """A subject that a search found."""

    subject: Subject
    match: str  # what matched: "id", "name", "similar"
    with_text: int
    tombstones: int
    last_written_at: datetime


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What an organisation holds, for the Home page."""

    org_id: str
    at: datetime
    counts: Mapping[tuple[Kind, Origin, State], int]
    expiring_by_date: Mapping[date, int]  # in UTC, over the next 30 days -> live memories
    expiring_in_7_days: int
    expiring_in_30_days: int
    unembedded: int
    subjects: int
    embedding_model: str | None
    newest_at: datetime | None
