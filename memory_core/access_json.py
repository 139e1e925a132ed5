"""The answer to a request for access as plain values that a program can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from memory_core.model import HeldMemory, Memory, Origin, Purpose, State
from memory_core.rights import AccessPackage, Measure, MeasureKind, PackageItem, RightsRequest

FORMAT = "memory-workbench/access"
VERSION = 1

# What a person may ask for, the article, and the right in plain words: Art. 15(1)(e), with Art. 20.
RIGHTS = (
    ("rectification", 16, "Notes that are wrong are corrected, and notes that are incomplete are completed."),
    ("erasure", 17, "Notes are erased, unless the law lets us keep them, for example for a legal claim."),
    ("restriction", 18, "Notes are kept but not used, for example while it is checked whether they are right."),
    ("objection", 21, "You object to notes about you being kept or used, for reasons of your own situation."),
    ("portability", 20, "You get what you gave us on consent or for a contract in a form that programs can read."),
)


class Absence(StrEnum):
    """Why an item comes without its text."""

    ERASED = "erased"
    EXPIRED = "expired"  # … and emptied
    LEFT_OUT = "left out"  # for the rights of others, Art. 15(4)


class Kept(StrEnum):
    """What is kept of an item."""

    NOTE = "note"
    RECORD = "record"  # that there was one, and what became of it; no text


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """How long an item stays: until its date, and no sooner than what stands in the way is lifted."""

    kept: Kept
    until: datetime
    until_lifted: tuple[MeasureKind, ...]
    is_due: bool  # the date has passed

    @property
    def statement(self) -> str:
        """The kind of storage period, in words and without its date."""
        if self.until_lifted:
            lifted = "is lifted" if len(self.until_lifted) == 1 else "are lifted"
            return f"until the {' and the '.join(self.until_lifted)} {lifted}" + self._at_least
        if self.kept is Kept.RECORD:
            return "the record of an emptied item is kept until the date"
        return "its date has passed; the next sweep empties it" if self.is_due else "until the date"

    @property
    def _at_least(self) -> str:
        return "" if self.is_due else ", and at least until the date"


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """A run, or a person's preview, that was shown some of the items."""

    run_id: str
    purpose: Purpose
    items: int
    first_at: datetime
    last_at: datetime


def absence(item: PackageItem) -> Absence | None:
    """Say why an item comes without its text; None when it comes with it."""
    memory = item.memory
    if memory.text is None:
        return Absence.EXPIRED if memory.swept_at and not memory.forgotten_at else Absence.ERASED
    return None if item.left_out is None else Absence.LEFT_OUT


def origin_statement(memory: Memory) -> str:
    """Say in plain words whose conclusion an item is; an inference is never worded as a person's statement."""
    if memory.origin is Origin.PERSON:
        return "stated by a person"
    if memory.corrected_by:
        return "inferred by a model, then corrected by a person"
    return "inferred by a model, not confirmed by anybody"


def keepings(package: AccessPackage) -> tuple[Keeping, ...]:
    """Return how long each item is kept, in the order of the items."""
    covered = {
        kind: {measure.memory_id for measure in package.measures if measure.kind is kind and measure.stands}
        for kind in (MeasureKind.RESTRICTION, MeasureKind.HOLD)
    }
    return tuple(_keeping(item.memory, package, covered) for item in package.items)


def _keeping(memory: Memory, package: AccessPackage, covered: dict[MeasureKind, set[UUID | None]]) -> Keeping:
    def stands(kind: MeasureKind) -> bool:
        return None in covered[kind] or memory.memory_id in covered[kind]

    held = memory.hold is not None or stands(MeasureKind.HOLD)
    restricted = memory.state is State.RESTRICTED or memory.restricted_at is not None or stands(MeasureKind.RESTRICTION)
    emptied_at = memory.forgotten_at or memory.swept_at
    is_record = memory.text is None
    until = emptied_at + timedelta(days=package.tombstone_days) if is_record and emptied_at else memory.expires_at
    lifted = [MeasureKind.RESTRICTION] if restricted and not is_record else []  # a record is purged all the same
    return Keeping(
        kept=Kept.RECORD if is_record else Kept.NOTE,
        until=until,
        until_lifted=(*lifted, *([MeasureKind.HOLD] if held else [])),
        is_due=until <= package.at,
    )


def recipients(items: Sequence[PackageItem]) -> tuple[Recipient, ...]:
    """Return to whom the items were shown, the first one first; an item shown twice to a run counts once."""
    shown: dict[tuple[str, Purpose], list[tuple[datetime, UUID]]] = {}
    for item in items:
        for one in item.memory.disclosures:
            shown.setdefault((one.run_id, one.purpose), []).append((one.at, item.memory.memory_id))
    found = [
        Recipient(
            run_id=run_id,
            purpose=purpose,
            items=len({memory_id for _, memory_id in showings}),
            first_at=min(at for at, _ in showings),
            last_at=max(at for at, _ in showings),
        )
        for (run_id, purpose), showings in shown.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.first_at, one.run_id, one.purpose)))


def told_reason(measure: Measure) -> str | None:
    """Return the reason of a measure where the person is told it: one that stands about all of theirs, and is no hold.

    A hold may serve a dispute with the person; a measure on one item may come from somebody else's request.
    """
    return None if measure.kind is MeasureKind.HOLD or measure.memory_id else measure.reason


def replacements(package: AccessPackage) -> dict[UUID, UUID]:
    """Return which item replaced which: superseded -> the one in its place."""
    return {superseded: item.memory.memory_id for item in package.items if (superseded := item.memory.supersedes)}


def machine_readable(package: AccessPackage) -> dict[str, Any]:
    """Return the whole answer, Art. 15(1)(a) to (h) and (2), as JSON values; instants are ISO 8601 in UTC.

    A standing answer that the organisation has not given is null with ``"answered": false``. An item without text says
    why. Of an item that is left out there is neither text nor a reason that could quote it; the names of others in a text,
    the name and reason of a hold, and who erased or placed what, are never in it.
    """
    answers = package.answers
    subject = package.subject
    origins = Counter(item.memory.origin.value for item in package.items)
    return {
        "format": FORMAT,
        "version": VERSION,
        "law": package.law,
        "article": "15",
        "organisation": {
            "id": package.org_id,
            "controller": answers.controller,
            "data_protection_officer": answers.officer,
        },
        "subject": {
            "type": subject.type,
            "id": subject.id,
            "label": subject.label,
            "aliases": list(subject.aliases),
        },
        "made_at": _instant(package.at),
        "made_by": package.by,
        "request": package.reference,
        "unanswered": list(answers.unanswered),
        "purposes": _standing("15(1)(a)", answers.purposes),
        "categories": _standing("15(1)(b)", answers.categories),
        "recipients": _standing("15(1)(c)", answers.recipients)
        | {"shown_to": [_recipient(one) for one in recipients(package.items)]},
        "storage_period": _standing("15(1)(d)", answers.retention) | {"record_days": package.tombstone_days},
        "rights": {
            "article": "15(1)(e)",
            "answered": True,
            "answer": [{"right": right, "article": str(article), "means": means} for right, article, means in RIGHTS],
        },
        "complaint": _standing("15(1)(f)", answers.authority) | {"right": "complaint", "right_article": "77"},
        "source": {
            "article": "15(1)(g)",
            "answered": True,
            "answer": "Each item says who stated it or which agent inferred it, in which run, and from what source.",
            "stated_by_a_person": origins[Origin.PERSON.value],
            "inferred_by_a_model": origins[Origin.INFERENCE.value],
        },
        "automated_decisions": _standing("15(1)(h)", answers.automated_decisions),
        "transfers": _standing("15(2)", answers.transfers),
        "measures": [_measure(measure, package) for measure in package.measures],
        "requests": [_request(request, package) for request in package.requests],
        "items": _items(package),
    }


def _standing(article: str, answer: str | None) -> dict[str, Any]:
    return {"article": article, "answered": bool(answer), "answer": answer or None}


def _items(package: AccessPackage) -> list[dict[str, Any]]:
    replaced_by = replacements(package)
    return [
        {"number": number} | _item(item, keeping, replaced_by.get(item.memory.memory_id))
        for number, (item, keeping) in enumerate(zip(package.items, keepings(package), strict=True), start=1)
    ]


def _item(item: PackageItem, keeping: Keeping, replaced_by: UUID | None) -> dict[str, Any]:
    memory = item.memory
    why = absence(item)
    return {
        "id": str(memory.memory_id),
        "kind": memory.kind.value,
        "state": memory.state.value,
        "text": memory.text if why is None else None,
        "without_text": why and _without_text(item, why),
        "origin": memory.origin.value,
        "origin_statement": origin_statement(memory),
        "author": memory.author,
        "run": memory.run_id,
        "source": memory.source,
        "written": _instant(memory.created_at),
        "last_seen": _instant(memory.last_seen_at),
        "last_seen_run": memory.last_seen_run_id,
        "times_seen": memory.seen_count,
        "expires": _instant(memory.expires_at),
        "storage_period": {
            "kept": keeping.kept.value,
            "until": _instant(keeping.until),
            "until_lifted": [kind.value for kind in keeping.until_lifted],
            "statement": keeping.statement,
        },
        "embedding_model": memory.embedding_model,
        "dispute": _dispute(memory, with_words=item.left_out is None),
        "correction": _correction(memory, why is None),
        "replaced_by": replaced_by and str(replaced_by),
        "recipients": [
            {"run": one.run_id, "purpose": one.purpose.value, "at": _instant(one.at), "place": one.place}
            for one in memory.disclosures
        ],
    }


def _without_text(item: PackageItem, why: Absence) -> dict[str, Any]:
    if why is Absence.LEFT_OUT:
        return {"because": why.value, "article": "15(4)", "reason": item.left_out}
    return {"because": why.value, "at": _instant(item.memory.forgotten_at or item.memory.swept_at)}


def _dispute(memory: HeldMemory, *, with_words: bool) -> dict[str, Any] | None:
    at, withdrawn_at = memory.disputed_at, memory.dispute_withdrawn_at
    words = memory.dispute if with_words else None
    if words is None and at is None:
        return None
    return {"words": words, "at": _instant(at), "withdrawn_at": _instant(withdrawn_at)}


def _correction(memory: HeldMemory, with_reason: bool) -> dict[str, Any] | None:
    supersedes, by = memory.supersedes, memory.corrected_by
    if supersedes is None and by is None:
        return None
    reason = memory.correction_reason if with_reason else None
    return {"replaces": supersedes and str(supersedes), "by": by, "reason": reason}


def _recipient(one: Recipient) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "purpose": one.purpose.value,
        "items": one.items,
        "first_at": _instant(one.first_at),
        "last_at": _instant(one.last_at),
    }


def _measure(measure: Measure, package: AccessPackage) -> dict[str, Any]:
    own = {request.reference for request in package.requests}
    return {
        "kind": measure.kind.value,
        "item": measure.memory_id and str(measure.memory_id),  # null: everything about the subject
        "since": _instant(measure.placed_at),
        "until": _instant(measure.lifted_at),  # null: it stands
        "stands": measure.stands,
        "reason": told_reason(measure),
        "request": measure.request_reference if measure.request_reference in own else None,
    }


def _request(request: RightsRequest, package: AccessPackage) -> dict[str, Any]:
    return {
        "reference": request.reference,
        "type": request.type.value,
        "article": str(request.type.article),
        "received_on": request.received_on.isoformat(),
        "status": request.status.value,
        "closed_at": _instant(request.closed_at),
        "refused_because": request.ground and request.ground.value,
        "answered_here": request.reference == package.reference,
    }


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
