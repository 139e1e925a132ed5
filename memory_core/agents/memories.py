"""The memories of one run: what it is shown is disclosed to it, what it keeps is its own."""

from __future__ import annotations

from uuid import UUID

from memory_core.agents.context import refuse
from memory_core.agents.specification import MemoryUse
from memory_core.model import Kind, Memory, Origin, Recall, Subject
from memory_core.rules.own_words import own_words_refusal
from memory_core.store import MemoryStore

BLOCK_BUDGET = 600  # tokens of a block, so that specification, catalogue and turns fit beside it into 4,096


class StoredMemories:
    """One run's way to an organisation's store."""

    def __init__(self, store: MemoryStore, *, run_id: str, use: MemoryUse) -> None:
        self._store = store
        self._run_id = run_id
        self._use = use
        self._shown: dict[UUID, Memory] = {}
        self.recalls: list[UUID] = []
        self.written: list[UUID] = []

    @property
    def read(self) -> tuple[UUID, ...]:
        """Return the memories that the run was shown, in the order in which it first was."""
        return tuple(self._shown)

    def recall(self, question: str) -> Recall:
        """Recall for this run; what it shows is a disclosure to it."""
        recall = self._store.recall(
            question,
            run_id=self._run_id,
            limit=max(1, self._use.limit),
            token_budget=BLOCK_BUDGET,
            kinds=self._use.kinds,
        )
        self.recalls.append(recall.recall_id)
        for one in recall.memories:
            if one.shown:
                self._shown.setdefault(one.memory.memory_id, one.memory)
        return recall

    def remember(
        self, text: str, *, subject: Subject | None, origin: Origin, author: str, source: str | None
    ) -> Memory:
        """Keep a memory with this run as its own; about a person it is an observation."""
        shown = [(memory.text or "", memory.subject) for memory in self._shown.values()]
        refuse(own_words_refusal(text, subject, shown=shown))
        memory = self._store.remember(
            text,
            kind=Kind.OBSERVATION if subject else Kind.FACT,
            origin=origin,
            author=author,
            run_id=self._run_id,
            subject=subject,
            source=source,
        )
        if memory.memory_id not in self.written:
            self.written.append(memory.memory_id)
        return memory

    def withdrawn(self) -> int:
        """Count what the run was shown and may be shown no more: erased, swept or restricted since."""
        return self._store.withdrawn(self._run_id) if self._shown else 0
