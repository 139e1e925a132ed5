"""The trace of a run: all that is on record of one, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memory_core.model import Block, Memory, Purpose, Ranking, RecallMode, State, Subject
from memory_core.run_records import ModelCallFacts, RunFacts, ToolCallFacts


class Since(StrEnum):
    """What has become of a memory since a run was shown it or wrote it."""

    CORRECTED = "corrected"  # its text went, and another memory has taken its place
    ERASED = "erased"
    SWEPT = "swept"
    RESTRICTED = "restricted"
    DISPUTED = "disputed"


@dataclass(frozen=True, kw_only=True)
class RecallTrace:
    """What one recall showed, rebuilt from its disclosures: a memory that was erased since stands as its tombstone's line."""

    recall_id: UUID
    at: datetime
    purpose: Purpose
    mode: RecallMode
    reason: str | None  # why it is not semantic
    ranking: Ranking
    by: str | None  # who looked, and why, where it was a preview and they said so
    because: str | None
    showed: bool  # whether there was a block
    block: Block | None  # None also where its tombstones are gone by now, after their retention
    memories: tuple[Memory, ...]  # in their places, each as it stands now, with a dispute only if that was shown
    places: tuple[int, ...]  # … which count from 1; one whose tombstone is gone has left its own empty


@dataclass(frozen=True, kw_only=True)
class About:
    """What a run was shown and wrote about one subject, or about nobody."""

    subject: Subject | None
    shown: int  # memories
    wrote: int
    with_text: int  # of them all, the ones that have their text


@dataclass(frozen=True, kw_only=True)
class RunTrace:
    """All that is on record of one run."""

    run_id: str
    at: datetime  # when it was put together
    facts: RunFacts | None  # None: it was not run by this product's loop
    is_cut_off: bool  # it has no end and its deadline is past: its process was killed
    recalls: tuple[RecallTrace, ...]  # oldest first, previews among them; of very many one page
    older_recalls: int  # that were made before those, and are left out
    written: tuple[Memory, ...]
    calls: tuple[ToolCallFacts, ...]
    model_calls: tuple[ModelCallFacts, ...]
    newer_recalls: int = 0  # that were made after those, and are left out
    shown: tuple[Memory, ...] = ()  # each that it was shown in any recall, once; what a preview showed is none of it
    recalled_from: datetime | None = None  # its first recall of all; None: it made none, whatever a person previewed
    recalled_until: datetime | None = None
    corrections: Mapping[UUID, UUID] = field(default_factory=dict)  # of what it was shown or wrote: what took its place
    disputed: frozenset[UUID] = frozenset()  # … which ones a dispute stands beside that it was not shown
    names: Mapping[Subject, Subject] = field(default_factory=dict)  # with their labels, for whoever may see those

    @property
    def with_text(self) -> int:
        """How many memories this has the text of, those of its previews among them."""
        return len(self.every_text())

    def every_text(self) -> dict[UUID, Memory]:
        """Return every memory that this has the text of, by its id."""
        every = (*self.shown, *self.written, *(one for recall in self.recalls for one in recall.memories))
        return {one.memory_id: one for one in every if one.text is not None}

    @property
    def text_of(self) -> frozenset[UUID]:
        """Which memories this has the text of."""
        return frozenset(self.every_text())

    @property
    def since(self) -> dict[Since, int]:
        """How many of the memories that it was shown are not as they were; each change that there is."""
        return self._changes(self.shown)

    @property
    def written_since(self) -> dict[Since, int]:
        """How many of the memories that it wrote are not as they were; each change that there is."""
        return self._changes(self.written)

    def changed(self, memory: Memory) -> tuple[Since, ...]:
        """Say what has become of a memory since."""
        identity = memory.memory_id
        found = {
            Since.CORRECTED: identity in self.corrections,
            Since.ERASED: memory.state is State.FORGOTTEN and identity not in self.corrections,
            Since.SWEPT: memory.state is State.SWEPT,
            Since.RESTRICTED: memory.state is State.RESTRICTED,
            Since.DISPUTED: memory.text is not None and identity in self.disputed,
        }
        return tuple(change for change, is_so in found.items() if is_so)

    def _changes(self, memories: Iterable[Memory]) -> dict[Since, int]:
        counted = Counter(change for one in memories for change in self.changed(one))
        return {change: counted[change] for change in Since if change in counted}

    @property
    def began_at(self) -> datetime:
        """The first moment that is known of it."""
        known = [one.started_at for one in self.model_calls] + [*filter(None, [self.recalled_from])]
        known += [self.written_at(one) for one in self.written]
        if not known and self.is_preview:
            known = [one.at for one in self.recalls]
        return self.facts.started_at if self.facts else min(known, default=self.at)

    @property
    def ended_at(self) -> datetime | None:
        """The moment of its end; the last one that is known where other software ran it, None where an end is to come."""
        if self.facts:
            return self.facts.ended_at
        known = [one.ended_at or one.started_at for one in self.model_calls] + [*filter(None, [self.recalled_until])]
        known += [self.written_at(one) for one in self.written]
        known += [one.last_seen_at for one in self.written if one.last_seen_run_id == self.run_id]
        return max(known, default=None)

    def written_at(self, memory: Memory) -> datetime:
        """Return when the run first wrote or said one of its memories."""
        return written_at(memory, run_id=self.run_id, calls=self.calls)

    @property
    def is_preview(self) -> bool:
        """Whether a person looked at what a model would be shown, and that was all."""
        made = self.recalled_from or self.facts or self.written or self.model_calls
        return bool(self.recalls) and not made

    def about(self) -> list[About]:
        """Return whom what it was shown and wrote is about: who is most in it first, what is about nobody last."""
        shown, written = ({one.memory_id: one for one in some} for some in (self.shown, self.written))
        both = {**shown, **written}
        found = []
        for subject in {one.subject: None for one in both.values()}:
            theirs = {memory_id for memory_id, one in both.items() if one.subject == subject}
            found.append(
                About(
                    subject=None if subject is None else self.names.get(subject, subject),
                    shown=len(theirs & shown.keys()),
                    wrote=len(theirs & written.keys()),
                    with_text=sum(both[memory_id].text is not None for memory_id in theirs),
                )
            )
        return sorted(found, key=lambda one: (one.subject is None, -one.shown - one.wrote, str(one.subject)))


def written_at(memory: Memory, *, run_id: str, calls: Iterable[ToolCallFacts]) -> datetime:
    """Return when a run first wrote or said a memory, as far as that is on record.

    A memory knows only its first run and its last one: of those between them a tool call has the moment.
    """
    if memory.run_id == run_id:
        return memory.created_at
    by_call = (one.ended_at for one in calls if one.memory_id == memory.memory_id)
    return min(by_call, default=memory.last_seen_at)
