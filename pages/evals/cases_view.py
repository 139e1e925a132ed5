"""What one evaluation came to: its figures, agents by cases, how trials ended, what they were judged by."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memory_core.evals.likeness import is_whole
from memory_core.evals.statistics import AgentScore, case_scores, overall, scores
from memory_core.evaluations import Aspect, CaseResult, Evaluation
from pages import FIGURE_WIDTH, plain
from pages.charts import evals as charts
from pages.charts import shown
from pages.evals.words import between, counted, facts, frame, over_cases, percent, sure

ONE_TRIAL = (
    "The share of judged trials that passed, with its 95 % interval; too narrow with several trials of each case."
)
ALL_OF_K = (
    "The chance that all {k} trials of a case pass, with its 95 % interval; {over}: those that have {k} judged trials."
)


def head(chosen: Evaluation, results: Sequence[CaseResult]) -> None:
    """Show the figures of an evaluation, and what was not judged and why."""
    k = chosen.trials
    everything = overall(results, k)
    unjudged = everything.trials - everything.judged
    all_of_k = ALL_OF_K.format(k=k, over=over_cases(everything))
    figures(
        [
            ("pass@1", percent(everything.pass_at_1), between(everything.pass_at_1), ONE_TRIAL),
            (
                f"pass^{k}",
                percent(everything.pass_hat_k),
                between(everything.pass_hat_k),
                all_of_k,
            ),
            ("Judged", f"{everything.judged:,}", f"of {everything.trials:,}", "Of the trials that are on record."),
            ("Not judged", f"{unjudged:,}", f"of {everything.trials:,}", "For a reason that is not the model's."),
            ("On record", f"{chosen.recorded:,}", f"of {chosen.wanted:,}", "Of the trials that make it whole."),
        ]
    )
    if everything.trials:
        st.caption(f"pass^{k} is {over_cases(everything)}: those that have {k:,} judged trial{'' if k == 1 else 's'}.")
    if not is_whole(chosen):
        st.warning(
            f"Interrupted at {chosen.recorded:,} of {chosen.wanted:,} trials, or running still: agents and cases are missing "
            "below. The same command goes on where it stopped; trials at its end that could not be judged are tried again."
        )
    if unjudged:
        one = unjudged == 1
        st.warning(
            f"{unjudged:,} trial{'' if one else 's'} could not be judged, for a reason that is not the model's, and "
            f"count{'s' if one else ''} in no share:"
        )
        plain(counted(everything.infrastructure))
    with st.expander("What was tried, and how", icon=":material/tune:"):
        plain(facts(chosen))


def figures(values: list[tuple[str, str, str, str]]) -> None:
    """Show a row of figures, each with its label, how sure it is or of how many, and an explanation."""
    with st.container(horizontal=True):
        for label, value, beside, explanation in values:
            st.metric(
                label,
                value,
                beside,
                delta_color="off",
                delta_arrow="off",
                help=explanation,
                border=True,
                width=FIGURE_WIDTH,
            )


def show(chosen: Evaluation, results: Sequence[CaseResult]) -> None:
    """Show agents by cases, how trials ended, and each agent by each aspect."""
    if not results:
        st.info("No trial is on record yet.")
        return
    k = chosen.trials
    scored = scores(results, k)
    left, right = st.columns(2, gap="medium")
    with left:
        shown(charts.by_case(case_scores(results)), key="evals cases")
        st.caption(
            "2/3: two of three judged trials passed; blue where all did, orange where none did. Grey –: no trial could be "
            "judged. A star: some could not."
        )
    with right:
        shown(charts.endings(scored), key="evals endings")
        st.caption(
            "How a run ended is apart from whether it passed: one that completed may have done the wrong thing. "
            "What is grey is not the model's doing."
        )
    by_agent([*scored, overall(results, k)], k)


def by_agent(scored: Sequence[AgentScore], k: int) -> None:
    """Show each agent's figures and aspects."""
    st.subheader("By agent")
    rows = [
        {
            "agent": one.agent,
            "pass@1": sure(one.pass_at_1),
            f"pass^{k}": f"{sure(one.pass_hat_k)}, {over_cases(one)}",
            "judged": f"{one.judged:,} of {one.trials:,}",
            "not judged": counted(one.infrastructure),
        }
        for one in scored
    ]
    st.dataframe(frame(rows), hide_index=True, column_config={"agent": st.column_config.TextColumn(pinned=True)})
    st.subheader("By aspect")
    aspects = [
        {"agent": one.agent}
        | {aspect.value: f"{percent(share)} of {share.n:,}" if share else "–" for aspect, share in one.aspects.items()}
        for one in scored
    ]
    st.dataframe(frame(aspects), hide_index=True, column_config={"agent": st.column_config.TextColumn(pinned=True)})
    st.caption(
        "Judged trials that met the aspect, of those to whose case it applies. A trial passes when every aspect that applies "
        f"is met. The seven: {', '.join(Aspect)}; what each means is said below."
    )
