"""What came of an agent's run, for whoever asked for it: with what was said, of which the record keeps nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from memory_core.gateway.conversation import Message
from memory_core.run_records import CallOutcome, Termination


@dataclass(frozen=True, kw_only=True)
class CalledTool:
    """A tool call of a run, with what became of it."""

    turn: int
    name: str  # as the model wrote it
    written: str = field(repr=False)  # the arguments as the model wrote them
    outcome: CallOutcome
    took_ms: float


@dataclass(frozen=True, kw_only=True)
class AgentRun:
    """What came of a run."""

    run_id: str
    agent: str
    model: str
    termination: str  # a Termination, or a gateway's code
    detail: str | None  # in our own words
    answer: str | None = field(repr=False)  # None unless it completed
    answer_was_cut: bool  # it reached the output cap, or was kept back in part
    turns: int
    calls: tuple[CalledTool, ...]
    recalls: tuple[UUID, ...]
    memories_read: tuple[UUID, ...]
    memories_written: tuple[UUID, ...]
    took_ms: float
    messages: tuple[Message, ...] = field(repr=False)

    @property
    def is_completed(self) -> bool:
        """Say whether the model gave its answer."""
        return self.termination == Termination.COMPLETED


class RunEnded(Exception):
    """A run is over, and why."""

    def __init__(self, termination: str, detail: str | None = None) -> None:
        super().__init__(termination)
        self.termination = termination
        self.detail = detail
