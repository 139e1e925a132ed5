"""The memories of one run: what it is shown is disclosed to it, what it keeps is its own."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from memory_core.agents.context import ToolProblem, refuse
from memory_core.agents.specification import MemoryUse
from memory_core.leaving import Leaving
from memory_core.model import Kind, Memory, Origin, Recall, Subject
from memory_core.rules.own_words import own_words_refusal
from memory_core.store import MemoryStore

BLOCK_BUDGET = 600  # tokens of a block, so that specification, catalogue and turns fit beside it into 4,096


class StoredMemories:
    """One run's way to an organisation's store."""

    def __init__(
        self, store: MemoryStore, *, run_id: str, use: MemoryUse, may_leave: Callable[[], Leaving] | None = None
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._use = use
        self._may_leave = may_leave or store.may_leave
        self._at_first = self._may_leave()
        self._shown: dict[UUID, Memory] = {}
        self.recalls: list[UUID] = []
        self.written: list[UUID] = []

    @property
    def read(self) -> tuple[UUID, ...]:
        """Return the memories that the run was shown, in the order in which it first was."""
        return tuple(self._shown)

    @property
    def observations_left_out(self) -> bool:
        """Say whether the run is shown no observation that it might be shown, since its model is outside."""
        return self._at_first.observations_stay and Kind.OBSERVATION in self._use.kinds

    def kinds(self) -> tuple[Kind, ...]:
        """Return what may be shown to the run now: what is let leave while it goes on, it is not shown."""
        return self._may_leave().kinds_that_may_leave(self._at_first.kinds_that_may_leave(self._use.kinds))

    def recall(self, question: str, *, kinds: tuple[Kind, ...] | None = None) -> Recall:
        """Recall for this run; what it shows is a disclosure to it. `kinds` is what `kinds()` has said, where it was asked."""
        if kinds is None:
            kinds = self.kinds()
        if not kinds:
            raise ToolProblem("no memory of the kinds that you may see is sent to a model outside")
        recall = self._store.recall(
            question,
            run_id=self._run_id,
            limit=max(1, self._use.limit),
            token_budget=BLOCK_BUDGET,
            kinds=kinds,
        )
        self.recalls.append(recall.recall_id)
        for one in recall.memories:
            if one.shown:
                self._shown.setdefault(one.memory.memory_id, one.memory)
        return recall

    def remember(
        self,
        text: str,
        *,
        subject: Subject | None,
        origin: Origin,
        author: str,
        source: str | None,
        commit_if: Callable[[], bool],
    ) -> Memory:
        """Keep a memory with this run as its own, if that is still wanted; about a person it is an observation.

        It is not kept where something that the run was shown or wrote may be shown no more, which the store looks up.
        """
        shown = [(words or "", one.subject) for one in self._shown.values() for words in (one.text, one.disputed)]
        refuse(own_words_refusal(text, subject, shown=shown))
        memory = self._store.remember(
            text,
            kind=Kind.OBSERVATION if subject else Kind.FACT,
            origin=origin,
            author=author,
            run_id=self._run_id,
            subject=subject,
            source=source,
            commit_if=commit_if,
        )
        if memory.memory_id not in self.written:
            self.written.append(memory.memory_id)
        return memory

    def withdrawn(self) -> int:
        """Count what the run was shown or wrote and may be shown no more: erased, swept, restricted, or not let leave."""
        if not self._shown and not self.written:
            return 0
        left = self._may_leave().kinds_that_may_leave()
        return self._store.withdrawn(self._run_id, written=self.written, kinds=left)
