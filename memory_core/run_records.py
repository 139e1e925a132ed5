"""One run of an agent, as its record keeps it: what was called when and how it ended, never a word of what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from memory_core.config import Tier

RUNNING = "running"  # what a search for runs takes in the place of a termination: a run without an end


class Termination(StrEnum):
    """How a run ended; exactly one, and `MEANS` says what each is.

    A gateway's failure ends a run as the gateway's own code instead, `gateway.…`.
    """

    COMPLETED = "Completed"
    TOOL_FAILURE = "ToolFailure"
    DEADLINE = "Deadline"
    TURN_LIMIT = "TurnLimit"
    CANCELLED = "Cancelled"


MEANS: Mapping[Termination, str] = {
    Termination.COMPLETED: "The model gave its answer.",
    Termination.TOOL_FAILURE: "A tool call went wrong for good: the tool was not offered, the call could not be read, too many "
    "were made at once, or the tool answered with an error too often or not in its time.",
    Termination.DEADLINE: "Its time was over before it had an answer.",
    Termination.TURN_LIMIT: "The model was asked as often as it may be, and gave no answer.",
    Termination.CANCELLED: "It was stopped: somebody gave up on it, something that it was shown or had written may be shown no "
    "more, it was interrupted, the database did not serve, or the program failed.",
}


class CallOutcome(StrEnum):
    """What became of a tool call."""

    DONE = "done"
    INVALID_ARGUMENTS = "invalid arguments"  # not as the tool's schema wants them
    NOT_FOUND = "not found"  # they name something that is not there
    REFUSED = "refused"  # a rule of the workspace or the store said no
    FAILED = "failed"  # the tool itself could not do it
    TOO_SLOW = "too slow"  # it did not answer within its time, and was left
    INVENTED = "invented"  # no such tool was offered
    MALFORMED = "malformed"  # the arguments are no JSON object, or too long
    NOT_CARRIED_OUT = "not carried out"  # the run ended first


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStart:
    """What is known of a run before anything is shown or asked."""

    run_id: str
    agent: str  # the specification's name, without `agent:`
    specification_digest: bytes  # SHA-256 of the specification's text
    model: str
    tier: Tier
    asked_by: str
    deadline_s: float
    turn_limit: int
    documents: Sequence[str] = ()  # the sources of what was retrieved for it
    observations_left_out: bool = False  # since its model is outside, and the organisation has not let them leave


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallRecord:
    """One tool call of a run; its arguments only as a digest, salted with the run's own salt."""

    number: int  # within the run, from 1
    turn: int  # within the run, from 1
    tool: str | None  # None: a name that was not offered
    arguments: str  # as the model wrote them; kept as a digest only
    outcome: CallOutcome
    took_ms: float
    memory_id: UUID | None = None  # the memory that it wrote
    recall_id: UUID | None = None  # the recall that it made


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnd:
    """What became of a run."""

    termination: str  # a Termination, or a gateway's code
    detail: str | None  # our own words, never a model's
    turns: int
    answer_was_cut: bool  # the answer reached the output cap or was kept back in part


class RunJournal(Protocol):
    """Where runs are recorded."""

    def begin(self, start: RunStart) -> None:
        """Record that a run begins; raises `Refused` for a run id that was used before, or a `DatabaseError`."""

    def called(self, run_id: str, call: ToolCallRecord) -> None:
        """Record a tool call."""

    def end(self, run_id: str, end: RunEnd) -> None:
        """Record how it ended."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A recorded run, as it is read again."""

    run_id: str
    agent: str
    specification_digest: bytes
    model: str
    tier: Tier
    asked_by: str
    documents: tuple[str, ...]
    turn_limit: int
    observations_left_out: bool
    started_at: datetime
    deadline_at: datetime
    ended_at: datetime | None
    termination: str | None  # None: it runs, or its process was killed
    detail: str | None
    turns: int | None
    answer_was_cut: bool | None


@dataclass(frozen=True, kw_only=True)
class ToolCallFacts:
    """A recorded tool call, as it is read again."""

    number: int
    turn: int
    tool: str | None
    arguments_digest: bytes  # SHA-256 of the run's salt and the arguments as they were written
    outcome: CallOutcome
    ended_at: datetime
    took_ms: float
    memory_id: UUID | None
    recall_id: UUID | None


@dataclass(frozen=True, kw_only=True)
class ModelCallFacts:
    """A recorded call to the model, as a run's page shows it; None where it was not reported."""

    call_id: UUID
    model: str
    started_at: datetime
    ended_at: datetime | None
    total_ms: float | None
    first_chunk_ms: float | None
    prompt_tokens: int | None
    output_tokens: int | None
    memory_tokens: int
    tool_calls: int | None
    finish_reason: str | None
    error_code: str | None


@dataclass(frozen=True, kw_only=True)
class FoundRun:
    """A run that a search found; also one of which only its recalls, memories or model calls are known."""

    run_id: str
    agent: str | None  # None: it was not run by this product's loop
    at: datetime  # the first thing that is known of it
    termination: str | None
    shown: int  # memories disclosed to it
    wrote: int  # memories with this run as theirs
    is_veiled: bool = False  # its id names somebody, and a pseudonym stands in its place: it cannot be opened by that
