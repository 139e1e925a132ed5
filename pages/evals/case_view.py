"""What a case asks for and expects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import streamlit as st

from memory_core.evals import matching
from memory_core.evals.asking import Topic
from memory_core.evals.case import Case, Expectation, ExpectedCall
from memory_core.evals.suite import suites, suites_hash
from memory_core.evaluations import CaseResult, Evaluation
from pages import explained, plain
from pages.evals.words import visible

ORDER = {"given": "in this order", "any": "in any order", "at once": "in one turn"}


def show(of: Evaluation, one: CaseResult) -> None:
    """Show the prompt of a trial's case, what has to come of it, and how it is done right, if the suites are the same still."""
    st.subheader("What the case expects")
    with explained():
        is_same = of.suites_hash == suites_hash()
        case = case_of(one) if is_same else None
    if not is_same:
        st.info(
            "The suites have changed since this evaluation, so what the case expected then is not here. What it asked for is "
            "in what was said."
        )
        return
    if case is None:
        st.info("The suites have no such case.")
        return
    st.text("It is asked")
    plain(visible(case.prompt))
    st.text("It has to come about")
    plain(visible(expected(case.expect)))
    with st.expander("How it is done right", icon=":material/task_alt:"):
        plain(visible(reference(case)))


def case_of(one: CaseResult) -> Case | None:
    """Return the case of a trial in the suites as they are now; None: they have none."""
    suite = suites().get(one.agent)
    return next((case for case in suite.cases if case.id == one.case_id), None) if suite else None


def expected(of: Expectation) -> str:
    """Write what has to come of a case, a line each."""
    return "\n".join(_expected(of))


def reference(case: Case) -> str:
    """Write how a case is done right, turn by turn."""
    lines: list[str] = []
    for number, turn in enumerate(case.reference, start=1):
        lines.append(f"{number}  {'calls' if turn.calls else 'says'}")
        lines += [line for call in turn.calls for line in _call(call)]
        lines += [f"  {turn.say}"] if turn.say else []
    return "\n".join(lines)


def _expected(of: Expectation) -> Iterator[str]:
    if of.calls:
        yield f"calls{f', {ORDER[of.order]}' if len(of.calls) > 1 else ''}; arguments that are not named may be anything:"
        for call in of.calls:
            yield from _call(call)
    else:
        yield "calls: none is needed"
    yield f"may be called besides: {', '.join(of.also) or 'nothing'}"
    if of.changes:
        yield "changes in the workspace, and no others:"
        for table, change in of.changes.items():
            for row in change.added:
                yield f"  a new row in {table}"
                yield from _values(row)
            for identity, values in change.changed.items():
                yield f"  {table} {identity}"
                yield from _values(values)
    else:
        yield "changes in the workspace: none"
    for title, patterns in (
        ("the answer says, by regular expressions", of.answer.says),
        ("and never", of.answer.never),
    ):
        if patterns:
            yield f"{title}:"
            yield from (f"  {pattern}" for pattern in patterns)
    if of.answer.asks:
        yield f"the answer asks for: {of.answer.asks}, and for nothing else{_near(of.answer.may_ask)}"


def _near(topics: Sequence[Topic]) -> str:
    return f" but {', '.join(topics)}" if topics else ""


def _call(call: ExpectedCall) -> Iterator[str]:
    yield f"  {call.tool}"
    yield from _values(call.arguments)


def _values(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"    {name}: {_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if not matching.is_matcher(value):
        return json.dumps(matching.plain(value), ensure_ascii=False)
    ((kind, wanted),) = value.items()
    if kind == "matches":
        return f"matches {wanted}"
    if kind == "absent":
        return "absent" if wanted else "present"
    return f"{'any of' if kind == 'any_of' else 'includes'} {', '.join(map(_value, wanted))}"
