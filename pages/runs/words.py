"""How a run's end and its steps are worded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from uuid import UUID

from memory_core import Memory, Origin, State
from memory_core.characters import shown_whole
from memory_core.run_records import MEANS, RUNNING, CallOutcome
from memory_core.run_steps import Step, StepKind
from memory_core.run_trace import RunTrace, Since
from memory_core.units import in_utc

GATEWAY = {
    "gateway.not_configured": "no chat model is configured",
    "gateway.invalid_request": "the model's server, or the gateway before it, does not take such a request",
    "gateway.unauthorized": "the model's server does not accept the key",
    "gateway.rate_limited": "more tokens or requests than a minute allows",
    "gateway.busy": "as many calls waited for the model as may wait",
    "gateway.unavailable": "the model's server was away, failed, or broke off",
    "gateway.deadline": "the model gave no whole answer in time",
    "gateway.cancelled": "a call to the model was given up",
}
ENDS = {
    **{end.value: meaning for end, meaning in MEANS.items()},
    **{code: f"A call to the model failed: {what}." for code, what in GATEWAY.items()},
}
FINISHES = {
    "stop": "answered",
    "tool_calls": "asked for tools",
    "length": "cut at its output cap",
    "content_filter": "kept back in part",
    "other": "ended for a reason of the server's own",
}
CALLS = {
    CallOutcome.DONE: "It was carried out.",
    CallOutcome.INVALID_ARGUMENTS: "The arguments are not as the tool's schema wants them.",
    CallOutcome.NOT_FOUND: "The arguments name something that is not there.",
    CallOutcome.REFUSED: "A rule of the workspace or of the store said no.",
    CallOutcome.FAILED: "The tool itself could not do it.",
    CallOutcome.TOO_SLOW: "The tool did not answer within its time, and was left.",
    CallOutcome.INVENTED: "No such tool was offered; its name is not kept.",
    CallOutcome.MALFORMED: "The arguments are no JSON object, or too long.",
    CallOutcome.NOT_CARRIED_OUT: "The run ended first.",
}


# Below how many milliseconds: the unit, what it is called, its digits. A border is where the next unit would be written.
SPANS: tuple[tuple[float, float, str, int], ...] = (
    (999.5, 1.0, "ms", 0),
    (9950.0, 1000.0, "s", 1),
    (59_500.0, 1000.0, "s", 0),
    (59.5 * 60_000, 60_000.0, "min", 0),
    (23.95 * 3_600_000, 3_600_000.0, "h", 1),
    (math.inf, 86_400_000.0, "days", 1),
)


def since_of(counted: Mapping[Since, int]) -> str:
    """Say what has become of how many memories."""
    return ", ".join(f"{count:,} {'was' if count == 1 else 'were'} {change}" for change, count in counted.items())


def span(ms: float) -> str:
    """Write how long something took so shortly that it has room in a figure: 850 ms, 1.0 s, 12 s, 3 min, 5.0 h, 8.5 days."""
    unit_ms, unit, digits = next(one[1:] for one in SPANS if ms < one[0])
    return f"{ms / unit_ms:,.{digits}f} {unit}"


def end_of(run: RunTrace) -> str | None:
    """Return how a run ended as one word or code; None where no end can be on record."""
    if run.facts is None:
        return None
    return run.facts.termination or ("cut off" if run.is_cut_off else RUNNING)


def outcome_of(step: Step) -> str:
    """Say what a step came to."""
    return FINISHES.get(step.outcome, step.outcome) if step.kind is StepKind.MODEL else step.outcome


def named(step: Step) -> str:
    """Name the tool, the model or the ranking of a step."""
    return step.name or "(not offered)"


def shortly(step: Step) -> str:
    """Name a step in a chart."""
    return "recall" if step.kind is StepKind.RECALL else named(step)


def origin_of(memory: Memory) -> str:
    """Say whose assertion a memory is."""
    return f"{'stated' if memory.origin is Origin.PERSON else 'inferred'} by {memory.author}"


def text_of(memory: Memory, correction: UUID | None = None) -> str:
    """Return a memory's text with nothing invisible in it, or what became of it; `correction` has taken its place."""
    if memory.text is not None:
        return shown_whole(memory.text)
    if correction and memory.forgotten_at:
        return f"(corrected on {in_utc(memory.forgotten_at)} UTC by {memory.forgotten_by}: now memory {correction})"
    if memory.state is State.FORGOTTEN and memory.forgotten_at:
        return f"(erased on {in_utc(memory.forgotten_at)} UTC by {memory.forgotten_by})"
    return f"(swept on {in_utc(memory.swept_at)} UTC, as it had expired)" if memory.swept_at else "(the text is gone)"
