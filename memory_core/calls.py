"""One call to a chat model, as its record keeps it: sizes, times and outcomes, never a word of what was said."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from memory_core.config import Provider, Tier

COLD_LOAD_MS = 100.0  # a loaded model takes Ollama 1 to 20 ms to find, one that is not loaded 300 ms and more
MINUTE_S = 60.0


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"  # the model was done
    LENGTH = "length"  # the output cap or the context was reached
    TOOL_CALLS = "tool_calls"  # it asks for tools
    CONTENT_FILTER = "content_filter"  # the server kept the rest back
    OTHER = "other"  # a word that only this server knows


@dataclass(frozen=True, kw_only=True, slots=True)
class CallStart:
    """What is known of a call before anything is sent."""

    call_id: UUID
    run_id: str
    tier: Tier
    model: str
    provider: Provider
    estimated_tokens: int  # of the prompt, by our own count
    memory_tokens: int  # of the memory blocks within it, by our own count
    reserved_tokens: int  # what the call may come to: the estimate and its output cap
    least_tokens: int  # with less than that it had better wait: the estimate and a useful answer
    deadline_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEnd:
    """What became of a call; None where it was not reported, or was never reached.

    Times are in milliseconds; those named after a moment count from the call's start, waiting included.
    """

    total_ms: float
    attempts: int  # how often it was sent
    counted_tokens: int  # what it counts under the ceiling of tokens a minute
    digest: str | None = None
    queue_ms: float | None = None
    load_ms: float | None = None
    prompt_ms: float | None = None
    generation_ms: float | None = None
    first_chunk_ms: float | None = None
    first_answer_ms: float | None = None  # the first chunk that is no thinking
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached: bool | None = None  # the most of the prompt came from the server's cache
    cold: bool | None = None  # the model had to be loaded first
    finish_reason: FinishReason | None = None
    error_code: str | None = None
    tool_calls: int = 0
    tool_calls_in_text: int = 0  # of those, written as JSON into the answer
    tool_call_faults: int = 0  # of those, not usable: no JSON, or a tool that was not offered
    prompt_was_cut: bool = False  # the server counted far fewer prompt tokens than were sent


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """A call that is on record; `granted_tokens` of what it asked for is what the ceiling has left, or all of it."""

    granted_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """Why a call does not begin yet: its tokens would pass the ceiling."""

    seconds: float  # until they fit at the latest
    may_be_sooner: bool  # some of what counts is reserved by calls that run, and may come to less


class Journal(Protocol):
    """Where calls are recorded, and where their tokens are counted for all processes of an organisation."""

    def begin(self, start: CallStart, *, tokens_per_minute: int | None, elapsed_s: float = 0.0) -> Begun | Wait:
        """Record that a call began so many seconds ago; or record nothing, and return how long it has to wait."""

    def refuse(self, start: CallStart, end: CallEnd) -> None:
        """Record a call that was refused before it began."""

    def end(self, call_id: UUID, end: CallEnd) -> None:
        """Record what became of a call that began; never raises, and records it later where that fails now."""
