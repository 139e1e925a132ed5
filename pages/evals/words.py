"""How evaluations, shares and aspects are worded on the page of the suites."""

from __future__ import annotations

from collections.abc import Mapping

from memory_core.evals.likeness import is_whole
from memory_core.evals.statistics import Interval
from memory_core.evaluations import Aspect, Evaluation
from memory_core.units import NOTHING, in_utc

LONGEST_NAME = 40
ASPECTS = {
    Aspect.TOOL_NAME: "every tool that is needed was called",
    Aspect.SCHEMA: "all arguments were as the tools' schemas want them",
    Aspect.ARGUMENTS: "the calls had the values that are right",
    Aspect.ORDER: "the calls came in the order that is needed",
    Aspect.FINAL_STATE: "the workspace is as it should be, and changed in nothing else",
    Aspect.RESTRAINT: "nothing was called beyond what is needed or harmless",
    Aspect.ANSWER: "the answer says what it has to, and nothing it may not",
}
CAME_OUT = {True: "met", False: "not met", None: "does not apply"}
PASSED = {True: "passed", False: "did not pass", None: "not judged"}


def named(evaluation: Evaluation) -> str:
    """Name an evaluation by when it began, of what, and whether it is whole."""
    trials = f"{evaluation.trials:,} trial{'' if evaluation.trials == 1 else 's'}"
    return f"{in_utc(evaluation.started_at)}, {short(evaluation.model)}, {trials}, {state(evaluation)}"


def state(evaluation: Evaluation) -> str:
    """Say whether every trial is on record."""
    if is_whole(evaluation):
        return "whole"
    return f"interrupted at {evaluation.recorded:,} of {evaluation.wanted:,}"


def short(name: str) -> str:
    """Cut a name that would leave no room for anything else."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def percent(share: Interval | None) -> str:
    """Write a share: 84 %."""
    return NOTHING if share is None else f"{share.value:.0%}".replace("%", " %")


def between(share: Interval | None) -> str:
    """Write the interval of a share: 78–89 %."""
    return NOTHING if share is None else f"{100 * share.low:.0f}–{100 * share.high:.0f} %"


def sure(share: Interval | None) -> str:
    """Write a share with its interval: 84 % (78–89 %)."""
    return NOTHING if share is None else f"{percent(share)} ({between(share)})"


def counted(counts: Mapping[str, int]) -> str:
    """Write how many there are of each: gateway.busy 2, gateway.deadline 1."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or NOTHING


def facts(evaluation: Evaluation) -> str:
    """Write what was tried and how, a line each; to be shown as it is."""
    ended = "not on record" if evaluation.ended_at is None else f"{in_utc(evaluation.ended_at)} UTC"
    lines = {
        "model": evaluation.model,
        "digest": evaluation.digest or "not reported",
        "served by": evaluation.provider,
        **{f"setting {name}": str(value) for name, value in evaluation.settings.items()},
        "agents": ", ".join(evaluation.agents),
        "cases": f"{evaluation.cases:,}",
        "trials of each case": f"{evaluation.trials:,}",
        "base seed": str(evaluation.base_seed),
        "suites": evaluation.suites_hash,
        "begun": f"{in_utc(evaluation.started_at)} UTC by {evaluation.by}",
        "ended": ended,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())
