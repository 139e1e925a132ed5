"""What may be remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal, source_refusal
from memory_core.model import Kind, Origin, Subject
from memory_core.rules.policy import Policy
from memory_core.rules.retention import expiry, expiry_refusal, instant_refusal

MAX_TEXT = 2000
Word = TypeVar("Word", bound=StrEnum)
SUBJECT_FIELDS = frozenset({"type", "id", "label", "aliases"})
# Who can be the author of what: a person states, an agent infers.
AUTHOR_PREFIX = {Origin.PERSON: "user:", Origin.INFERENCE: "agent:"}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a caller asks to be remembered, unchecked: `admitted` decides."""

    text: object = None
    kind: object = None
    origin: object = None
    author: object = None
    run_id: object = None
    subject: object = None
    source: object = None
    created_at: object = None
    expires_at: object = None
    last_seen_at: object = None  # when it was last remembered again, where that is known from elsewhere

    @classmethod
    def from_mapping(cls, item: Mapping[str, object]) -> Draft:
        """Build a draft from keyword-like fields.

        The subject may be a `Subject` or its fields. Raises `Refused` for a field that is not known, so that a misspelt one
        is never dropped in silence, and for a subject that cannot be one.
        """
        for name in item:
            if name not in cls.__dataclass_fields__:
                raise Refused(Refusal(rule="field_is_known", field=shown(name), reason="is no field of a memory"))
        draft = cls(**item)
        return replace(draft, subject=_subject_of(draft.subject)) if isinstance(draft.subject, Mapping) else draft


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Which memory another takes the place of, by whom and why."""

    supersedes: UUID
    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A memory that may be stored."""

    text: str
    kind: Kind
    origin: Origin
    author: str
    run_id: str
    subject: Subject | None
    source: str | None
    created_at: datetime
    expires_at: datetime
    last_seen_at: datetime  # the moment its expiry counts from
    expiry_was_asked: bool  # False: the default applied, which never shortens what a repeat finds
    # What stands about its subject when it is written.
    restricted_at: datetime | None = None
    hold: str | None = None
    correction: Correction | None = None


def admitted(draft: Draft, *, now: datetime, policy: Policy) -> Admitted | Refusal:
    """Decide whether a draft may be stored as it is; nothing is repaired but the defaults of section 6."""
    subject = draft.subject
    if subject is not None and type(subject) is not Subject:  # a subclass may have left its checks out
        return Refusal(rule="subject_is_a_subject", field="subject", reason="must be a Subject(type, id)")
    kind = _member(Kind, draft.kind, field="kind")
    if isinstance(kind, Refusal):
        return kind
    origin = _member(Origin, draft.origin, field="origin")
    if isinstance(origin, Refusal):
        return origin
    refusal = (
        text_refusal(draft.text)
        or subject_refusal(kind, subject, policy=policy)
        or identifier_refusal(draft.author, field="author")
        or author_refusal(origin, str(draft.author))
        or identifier_refusal(draft.run_id, field="run_id")
        or source_refusal(draft.source)
        or instant_refusal(draft.created_at, field="created_at", now=now)
        or instant_refusal(draft.expires_at, field="expires_at")
        or instant_refusal(draft.last_seen_at, field="last_seen_at", now=now)
    )
    if refusal:
        return refusal
    created_at = _utc(draft.created_at) or now
    last_seen_at = _utc(draft.last_seen_at) or created_at
    if last_seen_at < created_at:
        return Refusal(rule="seen_since_it_was_created", field="last_seen_at", reason="lies before created_at")
    asked = _utc(draft.expires_at)
    expires_at = expiry(last_seen_at, asked=asked, policy=policy)
    refusal = expiry_refusal(expires_at, since=last_seen_at, now=now, policy=policy)
    if refusal:
        return refusal
    return Admitted(
        text=str(draft.text),
        kind=kind,
        origin=origin,
        author=str(draft.author),
        run_id=str(draft.run_id),
        subject=subject,
        source=None if draft.source is None else str(draft.source),
        created_at=created_at,
        expires_at=expires_at,
        last_seen_at=last_seen_at,
        expiry_was_asked=asked is not None,
    )


def _utc(instant: object) -> datetime | None:
    # In UTC, since adding days to a wall clock that is put back adds an hour too many.
    return instant.astimezone(UTC) if isinstance(instant, datetime) else None


def text_refusal(text: object) -> Refusal | None:
    """Refuse text that is missing, blank, over 2,000 characters, or cannot be stored."""
    if not isinstance(text, str):
        what = "is missing" if text is None else f"must be a string, not {type(text).__name__}"
        return Refusal(rule="text_is_text", field="text", reason=what)
    if "\x00" in text:
        return Refusal(rule="text_is_storable", field="text", reason="has a NUL character; remove it")
    if has_surrogate(text):
        return Refusal(rule="text_is_storable", field="text", reason="has a lone surrogate; remove it")
    if len(text) > MAX_TEXT:
        return Refusal(rule="text_length", field="text", reason=f"has {len(text):,} characters; at most {MAX_TEXT:,}")
    if is_blank(text):
        return Refusal(rule="text_is_not_blank", field="text", reason="is blank; there is nothing to remember")
    return None


def subject_refusal(kind: Kind, subject: Subject | None, *, policy: Policy) -> Refusal | None:
    """Refuse an observation about nobody, and a fact about a person."""
    if kind is Kind.OBSERVATION and subject is None:
        return Refusal(
            rule="observation_names_its_subject",
            field="subject",
            reason="is missing; an observation needs subject.type and subject.id",
        )
    if kind is Kind.FACT and subject is not None and policy.is_person(subject.type):
        return Refusal(
            rule="fact_is_not_about_a_person",
            field="kind",
            reason=f"is fact, but a {subject.type} is a person; store it as an observation",
        )
    return None


def author_refusal(origin: Origin, author: str) -> Refusal | None:
    """Refuse an inference that a person would answer for, and a statement that an agent would."""
    prefix = AUTHOR_PREFIX[origin]
    if not author.startswith(prefix) or author == prefix:
        return Refusal(
            rule="author_matches_origin",
            field="author",
            reason=f"must be {prefix}… where the origin is {origin}",
        )
    return None


def shown(name: object) -> str:
    """Return a name somebody made up in characters that any terminal can print."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name)[:100])


def _member(words: type[Word], value: object, *, field: str) -> Word | Refusal:
    if isinstance(value, str):
        try:
            return words(value)
        except ValueError:
            pass
    what = "is missing" if value is None else "is not known"
    return Refusal(rule=f"{field}_is_known", field=field, reason=f"{what}; use {' or '.join(words)}")


def _subject_of(fields: Mapping[object, object]) -> Subject:
    for name in fields:
        if name not in SUBJECT_FIELDS:
            field = f"subject.{shown(name)}"
            raise Refused(Refusal(rule="field_is_known", field=field, reason="is no field of a subject"))
    aliases = fields.get("aliases")
    return Subject(
        fields.get("type"),  # type: ignore[arg-type]  # Subject itself refuses what is no identifier
        fields.get("id"),  # type: ignore[arg-type]
        fields.get("label"),  # type: ignore[arg-type]
        () if aliases is None else aliases,  # type: ignore[arg-type]
    )
