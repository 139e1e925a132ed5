"""What an evaluation of the tool-calling suites came to, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from memory_core.evals.likeness import is_whole
from memory_core.evals.statistics import AgentScore, CaseScore, Interval, case_scores, kinds_of, overall, scores
from memory_core.evaluations import Aspect, CaseResult, Evaluation
from memory_core.units import NOTHING, in_utc

EXPLANATION = (
    "pass@1: the share of judged trials that passed. pass^{k}: the chance that all {k} trials of a case pass, mean over the "
    "cases that have {k} judged trials. In brackets: Wilson's 95 % interval; trials of one case are not independent, so with "
    "several of each that of pass@1 is too narrow. A trial that could not be judged counts in no share; a star marks a case "
    "that has such."
)


def as_table(evaluation: Evaluation, results: Sequence[CaseResult]) -> str:
    """Return what was tried and how, then the figures of each agent, the aspects, and how often each case was passed."""
    k = evaluation.trials
    found = [*scores(results, k), overall(results, k)]
    cases = case_scores(results)
    kinds = kinds_of(cases)
    parts = [
        _head(evaluation),
        _table(
            ["agent", "pass@1", f"pass^{k}", "cases", "judged", "not judged", "ended"],
            [_figures(one) for one in found],
        ),
        _table(["agent", *Aspect], [[one.agent, *map(_share, one.aspects.values())] for one in found]),
    ]
    if cases:
        parts.append(_table(["agent", *kinds], [_passes(one.agent, cases, kinds) for one in found[:-1]]))
    return "\n\n".join([*parts, EXPLANATION.format(k=k)])


def passes(case: CaseScore) -> str:
    """Write how often a case was passed: 2/3; a star: some of its trials could not be judged; a dash: none could."""
    if not case.judged:
        return NOTHING
    return f"{case.passed}/{case.judged}{'*' if case.infrastructure else ''}"


def _head(evaluation: Evaluation) -> str:
    state = "whole" if is_whole(evaluation) else "interrupted"
    facts = {
        "model": f"{evaluation.model}, {evaluation.digest or 'digest not reported'}, served by {evaluation.provider}",
        "begun": f"{in_utc(evaluation.started_at)} UTC by {evaluation.by}",
        "on record": f"{evaluation.recorded:,} of {evaluation.wanted:,} trials, {state}",
        "settings": ", ".join(f"{name} {_value(value)}" for name, value in evaluation.settings.items()) or "none",
        "suites": evaluation.suites_hash,
        "trials of each case": f"{evaluation.trials:,}",
        "base seed": f"{evaluation.base_seed}",
    }
    return "\n".join(f"- {name}: {_safe(fact)}" for name, fact in facts.items())


def _figures(one: AgentScore) -> list[str]:
    return [
        one.agent,
        _interval(one.pass_at_1),
        _over_cases(one),
        f"{one.cases:,}",
        f"{one.judged:,} of {one.trials:,}",
        _counts(one.infrastructure),
        _counts(one.terminations),
    ]


def _passes(agent: str, cases: Iterable[CaseScore], kinds: Iterable[str]) -> list[str]:
    own = [one for one in cases if one.agent == agent]
    return [agent, *(", ".join(passes(one) for one in own if one.kind == kind) for kind in kinds)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_safe, cells))} |" for cells in lines)


def _interval(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _over_cases(one: AgentScore) -> str:
    share = one.pass_hat_k
    return f"{_interval(share)} over {share.n if share else 0:,} of {one.cases:,} cases"


def _share(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{interval.value:.3f} of {interval.n:,}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or NOTHING


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _safe(cell: str) -> str:
    """Keep a cell in its place: a bar or a line break would begin another."""
    return " ".join(cell.split()).replace("|", "\\|")
