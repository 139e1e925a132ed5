"""Two evaluations side by side, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from memory_core.evals.likeness import differing_settings, is_whole, unlike
from memory_core.evals.statistics import Comparison, compared, overall, scores
from memory_core.evals.suite_report import passes
from memory_core.evaluations import CaseResult, Evaluation
from pages import plain, safe_frame
from pages.charts import evals as charts
from pages.charts import shown
from pages.evals.words import counted, short, state, sure


def show(first: Evaluation, second: Evaluation, results: Mapping[str, Sequence[CaseResult]]) -> None:
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
                "pass^k": f"{sure(everything.pass_hat_k)}, k = {one.trials:,}",
                "judged": f"{everything.judged:,} of {everything.trials:,}",
                "not judged": counted(everything.infrastructure),
                "digest": (one.digest or "not reported")[:19],
                "state": state(one),
            }
        )
    st.dataframe(safe_frame(rows), hide_index=True, column_config={"": st.column_config.TextColumn(pinned=True)})
    found = compared(results["first"], results["second"])
    if found is None:
        st.info("There is no case that both evaluations judged, so nothing to compare.")
        return
    in_words(found)
    named = {f"{name}: {short(one.model)}": scores(results[name], one.trials) for name, one in both.items()}
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
            lines += [f"agents: {', '.join(first.agents)} / {', '.join(second.agents)}"]
        settings = differing_settings(first, second)
        lines += [f"{name}: {_said(ours)} / {_said(theirs)}" for name, (ours, theirs) in settings.items()]
        plain("\n".join(lines))
    if (first.model, first.digest) == (second.model, second.digest):
        st.info("Both are of the same model: what differs is chance, or what was changed between them.")
    if not (is_whole(first) and is_whole(second)):
        st.warning(
            "Not both are whole: pass@1 and pass^k are over other cases. The comparison below is over shared ones."
        )


def in_words(found: Comparison) -> None:
    """Say which is better, by how much, and how sure that is."""
    alike = found.cases - found.first_better - found.second_better
    if found.difference == 0:
        said = "the two pass equally often"
    else:
        better = "first" if found.difference > 0 else "second"
        said = f"the {better} passes {100 * abs(found.difference):.1f} of 100 trials more"
    st.markdown(
        f"**Over the {found.cases:,} cases that both judged, {said}** (mean over cases). The first is better in "
        f"{found.first_better:,}, the second in {found.second_better:,}, and {alike:,} are alike. "
        f"Sign test over the cases that differ: p = {_p(found.p_value)}"
        + (", so chance alone would hardly split them like that." if found.p_value < 0.05 else ", so it may be chance.")
        + (f" {found.unpaired:,} more were judged in one of the two only, and are left out." if found.unpaired else "")
    )


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
    st.dataframe(safe_frame(rows), hide_index=True, height=min(len(rows), 12) * 35 + 38)
    st.caption("Judged trials that passed, of those judged.")


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "under 0.001"


def _said(value: object) -> str:
    return "not set" if value is None else str(value)
