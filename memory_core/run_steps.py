"""The steps of a run, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from memory_core.model import Purpose
from memory_core.run_records import CallOutcome, ModelCallFacts, ToolCallFacts
from memory_core.run_trace import RecallTrace, RunTrace


class StepKind(StrEnum):
    """What a run does at a moment."""

    RECALL = "recall"
    MODEL = "model call"
    TOOL = "tool call"


class StepState(StrEnum):
    """What a step came to, in short."""

    DONE = "done"
    FAILED = "failed"
    UNFINISHED = "not finished"  # no end is on record, or it was never begun


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that a run did, in its place of time."""

    kind: StepKind
    name: str | None  # the model, the tool or the ranking; None: a tool that was not offered
    at: datetime  # when it began
    since_ms: float  # … after the first of all
    took_ms: float | None  # None: not measured, or without an end
    outcome: str  # in our own words, or as the gateway's code
    state: StepState
    prompt_tokens: int | None = None
    output_tokens: int | None = None


def steps(run: RunTrace) -> list[Step]:
    """Return what a run did in the order of time, with how long after its beginning; a preview is no step of it."""
    found = [
        *(_recalled(one) for one in run.recalls if one.purpose is Purpose.RUN),
        *(_asked(one) for one in run.model_calls),
        *(_called(one) for one in run.calls),
    ]
    found.sort(key=lambda one: one["at"])
    known = [run.facts.started_at if run.facts else None, run.recalled_from, *(one["at"] for one in found)]
    start = min(filter(None, known), default=run.at)
    return [Step(since_ms=(one["at"] - start) / timedelta(milliseconds=1), **one) for one in found]


def _recalled(one: RecallTrace) -> dict[str, Any]:
    count = len(one.memories)
    shown = f"showed {count:,} memor{'y' if count == 1 else 'ies'}" if one.showed else "showed nothing"
    return {
        "kind": StepKind.RECALL,
        "name": one.ranking.value,
        "at": one.at,
        "took_ms": None,
        "outcome": shown,
        "state": StepState.DONE,
    }


def _asked(one: ModelCallFacts) -> dict[str, Any]:
    state = StepState.UNFINISHED if one.ended_at is None else StepState.FAILED if one.error_code else StepState.DONE
    return {
        "kind": StepKind.MODEL,
        "name": one.model,
        "at": one.started_at,
        "took_ms": one.total_ms,
        "outcome": one.error_code or one.finish_reason or "no end is on record",
        "state": state,
        "prompt_tokens": one.prompt_tokens,
        "output_tokens": one.output_tokens,
    }


def _called(one: ToolCallFacts) -> dict[str, Any]:
    state = {CallOutcome.DONE: StepState.DONE, CallOutcome.NOT_CARRIED_OUT: StepState.UNFINISHED}
    return {
        "kind": StepKind.TOOL,
        "name": one.tool,
        "at": one.ended_at - timedelta(milliseconds=one.took_ms),
        "took_ms": one.took_ms,
        "outcome": one.outcome.value,
        "state": state.get(one.outcome, StepState.FAILED),
    }
