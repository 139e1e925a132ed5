"""What a tool works with during one call: the run's workspace, the run's memories, and a way to say no."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Protocol
from uuid import UUID

from memory_core.db.workspace import Row, Workspace, prefix
from memory_core.errors import MemoryCoreError, Refusal
from memory_core.model import Block, Memory, Origin, Recall, Subject
from memory_core.run_records import CallOutcome

STUCK_S = 0.3  # the statements of tools take no thousandth of a second


class ToolProblem(Exception):
    """A tool's no, as the model is told it: what is wrong and what to do instead."""

    def __init__(self, what: str, outcome: CallOutcome = CallOutcome.REFUSED) -> None:
        super().__init__(what)
        self.outcome = outcome


class CallIsOver(MemoryCoreError):
    """The call that a tool works for has ended, and with it what it may touch."""


class RunMemories(Protocol):
    """The memories of one run."""

    def recall(self, question: str) -> Recall:
        """Recall for this run; what it shows is a disclosure to it."""

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
        """Keep a memory with this run as its own, if that is still wanted at the very end."""


@dataclass
class Context:
    """One call's hold on the workspace; `end` takes it away, also from a tool that hangs."""

    workspace: Workspace
    memories: RunMemories
    agent: str  # agent:…, as what it writes is signed
    today: date
    memory_id: UUID | None = None  # what the call remembered
    recall_id: UUID | None = None  # the recall that it made
    block: Block | None = None  # what follows its result, in a message of its own
    own: set[str] = field(default_factory=set)  # identifiers of the rows that this run added or changed
    _turn: threading.RLock = field(default_factory=threading.RLock)
    _is_over: bool = False

    def recall(self, question: str) -> Recall:
        """Recall for this run; raises `CallIsOver` once the call has ended."""
        self.require_running()
        return self.memories.recall(question)

    def remember(
        self, text: str, *, subject: Subject | None, origin: Origin, author: str, source: str | None
    ) -> Memory:
        """Keep a memory for this run, unless the call ends before that is done."""
        self.require_running()
        return self.memories.remember(
            text, subject=subject, origin=origin, author=author, source=source, commit_if=lambda: not self._is_over
        )

    def rows(self, table: str, **equal: Any) -> list[Row]:
        """Return the rows whose columns have these values, in the order of their identifiers."""
        with self._turn:
            self._check()
            return self.workspace.rows(table, **equal)

    def one(self, table: str, identity: str) -> Row:
        """Return a row by its identifier; raises `ToolProblem` saying how identifiers look."""
        found = self.rows(table, id=identity)
        if not found:
            kind = table.replace("_", " ")
            raise ToolProblem(
                f"there is no {kind} {identity!r}; the id of one begins with {prefix(table)}, so look it up or ask for it",
                CallOutcome.NOT_FOUND,
            )
        return found[0]

    def add(self, table: str, **values: Any) -> Row:
        """Add a row under the next identifier, and return it."""
        with self._turn:
            self._check()
            row = self.workspace.add(table, values)
            self.own.add(row["id"])
            return row

    def change(self, table: str, identity: str, **values: Any) -> Row:
        """Change a row, and return it as it is then."""
        with self._turn:
            self._check()
            self.own.add(identity)
            return self.workspace.change(table, identity, values)

    def end(self) -> bool:
        """Take the workspace away from a tool that may still be running; False where it is stuck in a statement."""
        self._is_over = True
        if not self._turn.acquire(timeout=STUCK_S):
            return False
        self._turn.release()
        return True

    def require_later(self, on: date) -> None:
        """Raise `ToolProblem` for a day that is not after today: of today nobody knows here what is over."""
        if on <= self.today:
            raise ToolProblem(f"{on} is not after today, {self.today}")

    def require_running(self) -> None:
        """Raise `CallIsOver` once the call has ended."""
        with self._turn:
            self._check()

    def _check(self) -> None:
        if self._is_over:
            raise CallIsOver("the call has ended")


def refuse(refusal: Refusal | None) -> None:
    """Raise a rule's no, where there is one, as the model is told it."""
    if refusal is not None:
        raise ToolProblem(str(refusal))


def moment_of(moment: datetime) -> str:
    """Write a moment as tools take it: 2026-12-03T10:00, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"
