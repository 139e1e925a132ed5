"""Two evaluations side by side, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from memory_core.characters import shown_whole
from memory_core.evals.likeness import differing_settings, is_whole, unlike
from memory_core.evals.statistics import Comparison, compared, overall, scores
from memory_core.evals.suite_report import passes
from memory_core.evaluations import CaseResult, Evaluation
from pages import plain
from pages.charts import evals as charts
from pages.charts import shown
from pages.evals.words import Model, counted, frame, over_cases, state, sure


def show(
    first: Evaluation,
    second: Evaluation,
    results: Mapping[str, Sequence[CaseResult]],
    models: Mapping[Model, str],
) -> None:
    """Show both evaluations' figures, what is not alike in them, and in which cases they differ.

    `results` are those of the first and of the second, by these names.
    """
    cautions(first, second)
    both = {"first": first, "second": second}
    rows = []
    for name, one in both.items():
        everything = overall(results[name], one.trials)
        rows.append(
            {
                "": name,
                "model": one.model,
                "pass@1": sure(everything.pass_at_1),
                "pass^k": f"{sure(everything.pass_hat_k)}, k = {one.trials:,}, {over_cases(everything)}",
                "judged": f"{everything.judged:,} of {everything.trials:,}",
                "not judged": counted(everything.infrastructure),
                "digest": (one.digest or "not reported")[:19],
                "state": state(one),
            }
        )
    st.dataframe(frame(rows), hide_index=True, column_config={"": st.column_config.TextColumn(pinned=True)})
    found = compared(results["first"], results["second"])
    if found is None:
        st.info("There is no case that both evaluations judged, so nothing to compare.")
        return
    in_words(found)
    named = {
        f"{name}: {models[one.model, one.digest]}": scores(results[name], one.trials) for name, one in both.items()
    }
    shown(charts.side_by_side(named), key="evals two")
    differing(found)


def cautions(first: Evaluation, second: Evaluation) -> None:
    """Say what keeps the two from being like with like."""
    differs = unlike(first, second)
    if differs:
        st.warning(f"Not like with like. Besides the model these differ: {', '.join(differs)}.")
        lines = []
        if "suites" in differs:
            lines += [f"suites: {first.suites_hash[:12]} / {second.suites_hash[:12]}"]
        if "trials of each case" in differs:
            lines += [f"trials of each case: {first.trials:,} / {second.trials:,}"]
        if "agents" in differs:
            lines += [f"agents: {_listed(first.agents)} / {_listed(second.agents)}"]
        settings = differing_settings(first, second)
        lines += [f"{shown_whole(name)}: {_said(ours)} / {_said(theirs)}" for name, (ours, theirs) in settings.items()]
        plain("\n".join(lines))
    if (first.model, first.digest) == (second.model, second.digest):
        st.info("Both are of the same model: what differs is chance, or what was changed between them.")
    if not (is_whole(first) and is_whole(second)):
        st.warning(
            "Not both are whole: pass@1 and pass^k are over other cases. The comparison below is over shared ones."
        )


def in_words(found: Comparison) -> None:
    """Say which is better in how many cases and what the sign test makes of that; apart from it, by how much on average."""
    alike = found.cases - found.first_better - found.second_better
    st.markdown(
        f"**Over the {found.cases:,} cases that both judged, the first is better in {found.first_better:,}, the second in "
        f"{found.second_better:,}, and {alike:,} are alike.** {_by_sign_test(found)}"
        + (f" {found.unpaired:,} more were judged in one of the two only, and are left out." if found.unpaired else "")
    )
    st.markdown(
        f"**Mean over these cases: {_by_mean(found)}**"
        + (
            f" (first less second, 95 % bootstrap interval over cases: {_points(found.interval[0])} to "
            f"{_points(found.interval[1])} of 100)."
            if found.interval is not None
            else " (of one case there is no interval)."
        )
    )
    if found.disagrees:
        st.warning(
            "The two disagree: the mean favours the "
            + ("first" if found.difference > 0 else "second")
            + ", the number of cases the "
            + ("first" if found.first_better > found.second_better else "second")
            + ". A few large differences outweigh many small ones in the mean, and count as one case each in the sign test: "
            "see the cases below before you say that either is better."
        )


def _by_sign_test(found: Comparison) -> str:
    differ = found.first_better + found.second_better
    if not differ:
        return "There is nothing for a sign test."
    if found.first_better == found.second_better:
        favours = "neither"
    else:
        favours = "the first" if found.first_better > found.second_better else "the second"
    sure = "and chance alone would hardly split them like that" if found.p_value < 0.05 else "and that may be chance"
    return f"The sign test over the {differ:,} that differ favours {favours}: p = {_p(found.p_value)}, {sure}."


def _by_mean(found: Comparison) -> str:
    if found.difference == 0:
        return "the two pass equally often"
    better = "first" if found.difference > 0 else "second"
    by = 100 * abs(found.difference)
    return f"the {better} passes {f'{by:.1f}' if by >= 0.05 else 'under 0.1'} of 100 trials more"


def _points(share: float) -> str:
    return f"{100 * share + 0.0:+.1f}".replace("-", "−")


def differing(found: Comparison) -> None:
    """List the cases in which the two differ, the greatest difference first."""
    if not found.differing:
        st.info("In no case do they differ.")
        return
    rows = [
        {
            "agent": one.agent,
            "case": one.case_id,
            "kind": one.kind,
            "first": passes(one),
            "second": passes(other),
            "better": "first" if (one.share or 0.0) > (other.share or 0.0) else "second",
        }
        for one, other in found.differing
    ]
    st.markdown(f"**{len(rows):,} cases differ,** the greatest difference first")
    st.dataframe(frame(rows), hide_index=True, height=min(len(rows), 12) * 35 + 38)
    st.caption("Judged trials that passed, of those judged.")


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "under 0.001"


def _said(value: object) -> str:
    return "not set" if value is None else shown_whole(str(value))


def _listed(names: Iterable[str]) -> str:
    return shown_whole(", ".join(names))
