"""Storing of many drafts what may be stored, inside one organisation's open transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_core.db import erasures, locks, measures, memories, organisations, subjects
from memory_core.errors import Refusal, Refused
from memory_core.identity import new_id
from memory_core.labels import MAX_ALIASES
from memory_core.model import Memory, Subject
from memory_core.rights import Measure, MeasureKind
from memory_core.rules.admission import Admitted, Draft, admitted


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a write stored: one memory per item that was admitted, in order."""

    memories: list[Memory]
    refreshed: int  # how many items repeated a memory that was there, or one before them

    @property
    def stored(self) -> int:
        """How many memories are new."""
        return len(self.memories) - self.refreshed


def write(
    connection: Connection,
    org_id: str,
    drafts: Sequence[Draft],
    *,
    clock: Callable[[], datetime] | None,
    refused: Callable[[int, Refusal], None],
) -> Written:
    """Check and store drafts inside one organisation's open transaction.

    `refused` is told of each draft that a rule keeps out, by its position; it raises, or the draft is left out.
    """
    organisations.enter(connection, org_id)
    policy = organisations.policy(connection, org_id)
    named = [draft.subject for draft in drafts if isinstance(draft.subject, Subject)]
    if len(drafts) > 1:
        locks.await_loads(connection, org_id)
    began = locks.await_erasures(connection, org_id, named)
    now = clock() if clock else began
    standing = _Standing(measures.standing_about(connection, org_id, named))
    new: dict[UUID, Admitted] = {}
    names = _Names(connection, org_id, named)
    for position, draft in enumerate(drafts):
        item = admitted(draft, now=now, policy=policy)
        if not isinstance(item, Refusal) and item.subject:
            item = names.too_many(item.subject) or standing.suppressed(item.subject) or item
        if isinstance(item, Refusal):
            refused(position, item)
        else:
            new[new_id()] = standing.applied(item)
    about = [item.subject for item in new.values() if item.subject]
    erased = erasures.erased_since_begin(connection, org_id, about)
    if erased:
        reason = f"{erased} was erased while this was being written; write it again if it may be kept"
        raise Refused(Refusal(rule="nothing_is_written_through_an_erasure", field="subject", reason=reason))
    subjects.enter(connection, org_id, about)
    stored = memories.remember(connection, org_id, new, now=now)
    fresh = {one.memory_id for one in stored} & new.keys()
    return Written(memories=stored, refreshed=len(stored) - len(fresh))


class _Names:
    """How many names each subject would have in the directory."""

    def __init__(self, connection: Connection, org_id: str, about: Sequence[Subject]) -> None:
        with_names = list({subject for subject in about if subject.label or subject.aliases})
        known = subjects.named(connection, org_id, with_names) if with_names else []
        self._known = {subject: (subject.label, _names(subject)) for subject in known}

    def too_many(self, subject: Subject) -> Refusal | None:
        """Refuse a label or alias that the subject's entry has no room for; else count it in."""
        given = _names(subject)
        if not given:
            return None
        label, names = self._known.get(subject, (None, set()))
        label, names = label or subject.label, names | given
        aliases = len(names - {label})
        if aliases > MAX_ALIASES:
            reason = f"{subject} would have {aliases} aliases; at most {MAX_ALIASES}"
            return Refusal(rule="alias_count", field="subject.aliases", reason=reason)
        self._known[subject] = label, names
        return None


class _Standing:
    """What stands about each subject when something is written about it."""

    def __init__(self, found: Sequence[Measure]) -> None:
        self._found: dict[tuple[MeasureKind, Subject], Measure] = {}
        for one in found:
            if one.subject is not None:
                self._found.setdefault((one.kind, one.subject), one)

    def suppressed(self, subject: Subject) -> Refusal | None:
        """Refuse what is about a subject of whom nothing new may be remembered."""
        one = self._found.get((MeasureKind.SUPPRESSION, subject))
        if one is None:
            return None
        reason = f"nothing new may be remembered about {subject} ({one.name}); a data protection officer can lift that"
        return Refusal(rule="nothing_new_about_a_suppressed_subject", field="subject", reason=reason)

    def applied(self, item: Admitted) -> Admitted:
        """Return it restricted or on hold from its first moment, where its subject is."""
        if item.subject is None or not self._found:
            return item
        restriction = self._found.get((MeasureKind.RESTRICTION, item.subject))
        hold = self._found.get((MeasureKind.HOLD, item.subject))
        return replace(
            item, restricted_at=restriction.placed_at if restriction else None, hold=hold.name if hold else None
        )


def _names(subject: Subject) -> set[str]:
    return {name for name in (subject.label, *subject.aliases) if name}
