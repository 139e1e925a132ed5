"""One trial of one case: what it was judged by, and every message as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from memory_core.characters import shown_whole
from memory_core.evals.statistics import CaseScore, case_scores
from memory_core.evals.suite_report import passes
from memory_core.evaluations import ASPECTS, Aspect, CaseResult, Evaluation
from memory_core.units import in_time
from pages import plain
from pages.evals import case_view
from pages.evals.address import TRIAL, prepared
from pages.evals.words import CAME_OUT, PASSED, apart, frame, short, short_names, visible

LONGEST_CASE = 60
LONG = 3000  # characters, from which on a text is shown in a window of its own
WINDOW = 360  # pixels
SHOWN = ("role", "content", "tool_calls", "answers")  # of a message, each in its place
Transcript = Callable[[CaseResult], Sequence[Mapping[str, Any]]]


def show(of: Evaluation, results: Sequence[CaseResult], transcript: Transcript) -> None:
    """Let one trial be chosen, and show it whole."""
    if not results:
        st.info("No trial is on record yet.")
        return
    one = choose(results)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        judged(one)
        case_view.show(of, one)
    with right:
        st.subheader("What was said")
        said = transcript(one)
        if not said:
            st.info("Nothing was said in this trial.")
        for number, message in enumerate(said, start=1):
            show_message(number, message)


def choose(results: Sequence[CaseResult]) -> CaseResult:
    """Ask for agent, case and trial, and keep them in the address; what did not pass comes up first."""
    cases = case_scores(results)
    of_address = {name: st.query_params.get(name) for name in TRIAL}
    in_vain: dict[str, str | None] = {}
    places = st.columns([3, 5, 4])
    agents = short_names(one.agent for one in cases)
    key, default = "evals_agent", cases[_first(one.passed < one.trials for one in cases)].agent
    in_vain["agent"] = prepared(key, agents, default, of_address["agent"])
    agent = places[0].selectbox("Agent", list(agents), format_func=agents.__getitem__, key=key)

    own = {one.case_id: one for one in cases if one.agent == agent}
    ids, labels = list(own), dict(zip(own, apart([_case(one) for one in own.values()]), strict=True))
    key, default = f"evals_case {agent}", ids[_first(one.passed < one.trials for one in own.values())]
    # What the address says of another agent or case is of a choice before this one.
    in_vain["case"] = prepared(key, ids, default, of_address["case"] if of_address["agent"] == agent else None)
    case_id = places[1].selectbox("Case", ids, format_func=labels.__getitem__, key=key)

    trials = {str(one.trial): one for one in results if (one.agent, one.case_id) == (agent, case_id)}
    numbers = list(trials)
    is_asked = (of_address["agent"], of_address["case"]) == (agent, case_id)
    key, default = f"evals_trial {agent} {case_id}", numbers[_first(not one.passed for one in trials.values())]
    in_vain["trial"] = prepared(key, numbers, default, of_address["trial"] if is_asked else None)
    trial = places[2].selectbox("Trial", numbers, format_func=lambda one: _trial(trials[one]), key=key)

    unknown = [f"{name}: {shown_whole(asked)}" for name, asked in in_vain.items() if asked is not None]
    if unknown:
        st.warning("The address names what is not on record in this evaluation, and is ignored:")
        plain("\n".join(unknown))
    for name, chosen in zip(TRIAL, (agent, case_id, trial), strict=True):
        st.query_params[name] = chosen
    return trials[trial]


def judged(one: CaseResult) -> None:
    """Show how a trial ended and what it was judged by."""
    st.subheader(PASSED[one.passed].capitalize())
    if one.infrastructure is not None:
        st.warning("It could not be judged, for a reason that is not the model's:")
        plain(shown_whole(one.infrastructure))
    else:
        by_aspect(one)
    facts = {
        "case": f"{one.case_id}, {one.kind}",
        "ended": one.termination,
        "turns": f"{one.turns:,}, tool calls {one.tool_calls:,}",
        "took": in_time(one.took_ms),
        "seed": str(one.seed),
    }
    plain("\n".join(f"{name} {shown_whole(value)}" for name, value in facts.items()))


def by_aspect(one: CaseResult) -> None:
    """Show which aspects came out how, and what those that were not met ask for."""
    rows = [{"aspect": aspect.value, "came out": CAME_OUT[one.aspects.get(aspect)]} for aspect in Aspect]
    st.dataframe(frame(rows), hide_index=True)
    unmet = [f"*{aspect}*, {ASPECTS[aspect]}" for aspect in Aspect if one.aspects.get(aspect) is False]
    if unmet:
        st.caption(f"It did not come about that: {'; '.join(unmet)}.")


def show_message(number: int, message: Mapping[str, Any]) -> None:
    """Show a message as it was: its role, what it says, what it calls, and whatever else there is of it."""
    with st.container(border=True):
        answers = f", answers {message['answers']}" if "answers" in message else ""
        role = f"{message.get('role', 'no role')}{answers}"
        st.text(f"{number}  {shown_whole(role)}")
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
    """Show a text with nothing invisible in it, a long one in a window of its own."""
    text = visible(text)
    if len(text) <= LONG:
        plain(text)
    else:
        with st.container(height=WINDOW, border=False):
            plain(text)


def _first(are: Iterable[bool]) -> int:
    return next((place for place, is_so in enumerate(are) if is_so), 0)


def _case(one: CaseScore) -> str:
    return f"{short(one.case_id, LONGEST_CASE)}, {short(one.kind)}: {passes(one)}"


def _trial(one: CaseResult) -> str:
    return f"{one.trial}: {PASSED[one.passed]}, {short(one.termination)}"


def _call(call: Any) -> str:
    if not isinstance(call, Mapping) or "name" not in call:
        return _written(call)
    rest = {name: value for name, value in call.items() if name not in ("name", "arguments")}
    lines = [str(call["name"]), _written(call.get("arguments", "")), _written(rest) if rest else ""]
    return "\n".join(filter(None, lines))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
