"""Storing of many drafts what may be stored, inside one organisation's open transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_core.db import erasures, memories, organisations, subjects
from memory_core.errors import Refusal, Refused
from memory_core.identity import new_id
from memory_core.labels import MAX_ALIASES
from memory_core.model import Memory, Subject
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
        erasures.await_loads(connection, org_id)
    began = erasures.await_erasures(connection, org_id, named)
    now = clock() if clock else began
    new: dict[UUID, Admitted] = {}
    names = _Names(connection, org_id, named)
    for position, draft in enumerate(drafts):
        item = admitted(draft, now=now, policy=policy)
        if not isinstance(item, Refusal) and item.subject:
            item = names.too_many(item.subject) or item
        if isinstance(item, Refusal):
            refused(position, item)
        else:
            new[new_id()] = item
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


def _names(subject: Subject) -> set[str]:
    return {name for name in (subject.label, *subject.aliases) if name}
