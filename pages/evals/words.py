"""How evaluations, shares and aspects are worded on the page of the suites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from memory_core.characters import shown_whole
from memory_core.evals.likeness import is_whole
from memory_core.evals.statistics import AgentScore, Interval
from memory_core.evaluations import Evaluation
from memory_core.units import NOTHING, in_utc
from pages import safe_frame

LONGEST_NAME = 40
Model = tuple[str, str | None]  # by name and digest: a name may come to stand for other weights
CAME_OUT = {True: "met", False: "not met", None: "does not apply"}
PASSED = {True: "passed", False: "did not pass", None: "not judged"}


def named(evaluations: Iterable[Evaluation], models: Mapping[Model, str]) -> list[str]:
    """Name each evaluation by when it began, of what, and whether it is whole; no two alike."""
    return apart(
        [
            f"{in_utc(one.started_at)}, {models[one.model, one.digest]}, "
            f"{one.trials:,} trial{'' if one.trials == 1 else 's'}, {state(one)}"
            for one in evaluations
        ]
    )


def models_named(evaluations: Iterable[Evaluation]) -> dict[Model, str]:
    """Name each model shortly, by its digest too where one name has several; no two alike."""
    found = sorted({(one.model, one.digest) for one in evaluations}, key=lambda one: (one[0], one[1] or ""))
    names = [model for model, _ in found]
    labels = [
        f"{short(model)}, {_digest(digest)}" if names.count(model) > 1 else short(model) for model, digest in found
    ]
    return dict(zip(found, apart(labels), strict=True))


def short_names(names: Iterable[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Name each shortly, no two alike."""
    found = list(dict.fromkeys(names))
    return dict(zip(found, apart([short(one, longest) for one in found]), strict=True))


def apart(labels: Sequence[str]) -> list[str]:
    """Number the labels that could not be told from one before."""
    found: dict[str, None] = {}
    for label in labels:
        own, number = label, 1
        while own in found:
            number += 1
            own = f"{label} ({number})"
        found[own] = None
    return list(found)


def visible(text: str) -> str:
    """Return a text of several lines in which nothing else is invisible or reorders what stands around it."""
    return "".join(part if part in ("\n", "\t") else shown_whole(part) for part in re.split(r"([\n\t])", text))


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows for a table, their text disarmed and whole."""
    return safe_frame(
        [{name: shown_whole(one) if isinstance(one, str) else one for name, one in row.items()} for row in rows]
    )


def state(evaluation: Evaluation) -> str:
    """Say whether every trial is on record."""
    if is_whole(evaluation):
        return "whole"
    return f"interrupted at {evaluation.recorded:,} of {evaluation.wanted:,}"


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a name in the middle that would leave no room for anything else: what tells names apart is often at their end."""
    name = shown_whole(name)
    behind = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - behind]}…{name[-behind:]}"


def percent(share: Interval | None) -> str:
    """Write a share: 84 %."""
    return NOTHING if share is None else f"{share.value:.0%}".replace("%", " %")


def between(share: Interval | None) -> str:
    """Write the interval of a share: 78–89 %."""
    return NOTHING if share is None else f"{100 * share.low:.0f}–{100 * share.high:.0f} %"


def sure(share: Interval | None) -> str:
    """Write a share with its interval: 84 % (78–89 %)."""
    return NOTHING if share is None else f"{percent(share)} ({between(share)})"


def over_cases(score: AgentScore) -> str:
    """Write over how many cases pass^k is: over 4 of 5 cases."""
    share = score.pass_hat_k
    return f"over {share.n if share else 0:,} of {score.cases:,} case{'' if score.cases == 1 else 's'}"


def counted(counts: Mapping[str, int]) -> str:
    """Write how many there are of each: gateway.busy 2, gateway.deadline 1."""
    return ", ".join(f"{shown_whole(name)} {count:,}" for name, count in counts.items()) or NOTHING


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
    return "\n".join(f"{shown_whole(name)}: {shown_whole(value)}" for name, value in lines.items())


def _digest(digest: str | None) -> str:
    return "digest not reported" if digest is None else short(digest.removeprefix("sha256:")[:8])
