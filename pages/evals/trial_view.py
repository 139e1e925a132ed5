"""One trial of one case: what it was judged by, and every message as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from memory_core.evals.statistics import CaseScore, case_scores
from memory_core.evals.suite_report import passes
from memory_core.evaluations import Aspect, CaseResult
from memory_core.units import in_time
from pages import plain, safe_frame
from pages.evals.words import ASPECTS, CAME_OUT, PASSED

LONG = 3000  # characters, from which on a text is shown in a window of its own
WINDOW = 360  # pixels
SHOWN = ("role", "content", "tool_calls", "answers")  # of a message, each in its place
Transcript = Callable[[CaseResult], Sequence[Mapping[str, Any]]]


def show(results: Sequence[CaseResult], transcript: Transcript) -> None:
    """Let one trial be chosen, and show it whole."""
    if not results:
        st.info("No trial is on record yet.")
        return
    one = choose(results)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        judged(one)
    with right:
        st.subheader("What was said")
        said = transcript(one)
        if not said:
            st.info("Nothing was said in this trial.")
        for number, message in enumerate(said, start=1):
            show_message(number, message)


def choose(results: Sequence[CaseResult]) -> CaseResult:
    """Ask for agent, case and trial; what did not pass comes up first."""
    places = st.columns([3, 5, 4])
    cases = case_scores(results)
    agents = list(dict.fromkeys(one.agent for one in cases))
    agent = places[0].selectbox(
        "Agent",
        agents,
        index=agents.index(cases[_first(one.passed < one.trials for one in cases)].agent),
        key="evals_agent",
    )
    own = {one.case_id: one for one in cases if one.agent == agent}
    case_id = places[1].selectbox(
        "Case",
        list(own),
        index=_first(one.passed < one.trials for one in own.values()),
        format_func=lambda one: _case(own[one]),
        key=f"evals_case {agent}",
    )
    trials = {one.trial: one for one in results if (one.agent, one.case_id) == (agent, case_id)}
    trial = places[2].selectbox(
        "Trial",
        list(trials),
        index=_first(not one.passed for one in trials.values()),
        format_func=lambda one: f"{one}: {PASSED[trials[one].passed]}, {trials[one].termination}",
        key=f"evals_trial {agent} {case_id}",
    )
    return trials[trial]


def judged(one: CaseResult) -> None:
    """Show how a trial ended and what it was judged by."""
    st.subheader(PASSED[one.passed].capitalize())
    if one.infrastructure is not None:
        st.warning("It could not be judged, for a reason that is not the model's:")
        plain(one.infrastructure)
    else:
        by_aspect(one)
    plain(
        f"case {one.case_id}, {one.kind}\nended {one.termination}\nturns {one.turns:,}, tool calls {one.tool_calls:,}\n"
        f"took {in_time(one.took_ms)}\nseed {one.seed}"
    )


def by_aspect(one: CaseResult) -> None:
    """Show which aspects came out how, and what those that were not met ask for."""
    rows = [{"aspect": aspect.value, "came out": CAME_OUT[one.aspects.get(aspect)]} for aspect in Aspect]
    st.dataframe(safe_frame(rows), hide_index=True)
    unmet = [f"*{aspect}*, {ASPECTS[aspect]}" for aspect in Aspect if one.aspects.get(aspect) is False]
    if unmet:
        st.caption(f"It did not come about that: {'; '.join(unmet)}.")


def show_message(number: int, message: Mapping[str, Any]) -> None:
    """Show a message as it was: its role, what it says, what it calls, and whatever else there is of it."""
    with st.container(border=True):
        answers = f", answers {message['answers']}" if "answers" in message else ""
        st.text(f"{number}  {message.get('role', 'no role')}{answers}")
        content = message.get("content")
        if content:
            whole(_written(content))
        calls = message.get("tool_calls") or ()
        for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else (calls,):
            st.text("calls")
            whole(_call(call))
        rest = {name: value for name, value in message.items() if name not in SHOWN}
        if rest:
            whole(_written(rest))
        elif not content and not calls:
            st.text("(says nothing)")


def whole(text: str) -> None:
    """Show a text as it is, a long one in a window of its own."""
    if len(text) <= LONG:
        plain(text)
    else:
        with st.container(height=WINDOW, border=False):
            plain(text)


def _first(are: Iterable[bool]) -> int:
    return next((place for place, is_so in enumerate(are) if is_so), 0)


def _case(one: CaseScore) -> str:
    return f"{one.case_id}, {one.kind}: {passes(one)}"


def _call(call: Any) -> str:
    if not isinstance(call, Mapping) or "name" not in call:
        return _written(call)
    rest = {name: value for name, value in call.items() if name not in ("name", "arguments")}
    lines = [str(call["name"]), _written(call.get("arguments", "")), _written(rest) if rest else ""]
    return "\n".join(filter(None, lines))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
