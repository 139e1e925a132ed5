"""Whatever a model does, its run has one end, in time and on record, and nothing but its done calls changed anything."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from agent_bench import SLACK_S, TODAY, Bench, Hanging, Watched, agent, changed, results, with_tools, workspaces
from conftest import Database, OpenStore
from fakes import Clock, observe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import execute

from memory_core import Subject
from memory_core.agents.cancellation import Cancellation
from memory_core.agents.registry import registry
from memory_core.agents.runs import AgentRun
from memory_core.db.workspace import STAGES, Row, Workspace
from memory_core.errors import (
    CallCancelled,
    DeadlineExceeded,
    GatewayError,
    InvalidRequest,
    ModelBusy,
    ModelUnavailable,
    Unauthorized,
)
from memory_core.evals.scripted import ScriptedCall, Step
from memory_core.prompt.documents import Document
from memory_core.run_records import CallOutcome, Termination

OFFERED = (
    "get_application",
    "add_note",
    "book_interview",
    "cancel_interview",
    "advance_application",
    "recall_memories",
    "remember",
    "keep_statement",
    "hang",
)
ENDS = {*Termination, "gateway.invalid_request", "gateway.unauthorized", "gateway.busy", "gateway.unavailable"}
SAID = "Could start after a two-month notice period."
AMARA = Subject("candidate", "smp-c1")

texts = st.text(st.characters(exclude_categories=()), max_size=12)
numbers = st.integers(0, 12).map(str)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# As a model that knows its tools calls them, with identifiers that may be there and may not.
good = st.one_of(
    st.fixed_dictionaries({"application_id": numbers.map("smp-a{}".format)}).map(lambda one: ("get_application", one)),
    st.fixed_dictionaries({"application_id": numbers.map("smp-a{}".format), "text": texts}).map(
        lambda one: ("add_note", one)
    ),
    st.fixed_dictionaries({"interview_id": numbers.map("smp-i{}".format)}).map(lambda one: ("cancel_interview", one)),
    st.fixed_dictionaries(
        {
            "application_id": st.sampled_from(["smp-a1", "smp-a2", "smp-a6"]),
            "interviewer": st.just("user:omar"),
            "kind": st.just("phone"),
            "starts_at": st.integers(0, 12).map(
                lambda quarters: f"{TODAY + timedelta(days=3)}T{10 + quarters // 4}:{quarters % 4 * 15:02}"
            ),
            "minutes": st.sampled_from([15, 30, 60]),
        }
    ).map(lambda one: ("book_interview", one)),
    st.fixed_dictionaries(
        {
            "application_id": st.sampled_from(["smp-a1", "smp-a2", "smp-a3"]),
            "to": st.sampled_from(STAGES),
            "grounds": st.lists(numbers.map("smp-n{}".format) | st.just("memory:1"), max_size=2),
        }
    ).map(lambda one: ("advance_application", one)),
    st.just(("recall_memories", {"question": "When could they start?"})),
    st.fixed_dictionaries(
        {"text": texts | st.just(SAID), "candidate_id": st.sampled_from([None, "smp-c1", "smp-c2", "smp-c90"])}
    ).map(lambda one: ("remember", {name: value for name, value in one.items() if value is not None})),
    st.fixed_dictionaries({"note_id": numbers.map("smp-n{}".format)}).map(lambda one: ("keep_statement", one)),
)
good_calls = good.map(lambda one: ScriptedCall(tool=one[0], arguments=one[1]))
deep = '{"text": ' * 2000 + "1" + "}" * 2000
bad_arguments = (
    values.map(json.dumps) | texts | st.sampled_from([deep, "[" * 5000, "a" * 30_000, f'"{"a" * 1_000_000}"'])
)
bad_calls = st.builds(ScriptedCall, tool=st.sampled_from(OFFERED[:-1]) | texts, arguments=bad_arguments)
hangs = st.just(ScriptedCall(tool="hang"))
errors = st.sampled_from([InvalidRequest, Unauthorized, ModelBusy, ModelUnavailable, DeadlineExceeded, CallCancelled])


def step(*calls: st.SearchStrategy[ScriptedCall], most: int = 3) -> st.SearchStrategy[Step]:
    """Return steps in which the model calls a few of these tools."""
    return st.builds(
        Step, say=st.just("") | texts, calls=st.lists(st.one_of(*calls), min_size=1, max_size=most).map(tuple)
    )


steps = st.one_of(
    step(good_calls),
    step(good_calls),
    step(good_calls, bad_calls),
    step(good_calls, hangs),
    st.builds(Step, say=texts),
    st.just(Step(say="")),
    st.builds(Step, say=st.builds(lambda one: json.dumps({"name": one[0], "arguments": one[1]}), good)),
    st.builds(Step, calls=good_calls.map(lambda one: (one,) * 100)),
    st.builds(Step, fails=errors.map(lambda kind: kind("no"))),
    st.builds(Step, hangs_s=st.just(60.0)),
)


@pytest.fixture(scope="module")
def filled(standing: Database) -> Iterator[Callable[[], Workspace]]:
    with workspaces(standing) as filled:
        yield filled


@pytest.fixture
def database(standing: Database) -> Database:
    return standing


@pytest.fixture
def bench(database: Database, open_store: OpenStore, filled: Callable[[], Workspace]) -> Bench:
    clock = Clock()
    store = open_store("acme", clock=clock)
    observe(store, SAID, subject=AMARA)
    return Bench(database=database, store=store, workspace=filled(), clock=clock)


def touched(run: AgentRun) -> set[str]:
    """Return the identifiers of the rows that the run's done calls say they changed."""
    told = [message for message in run.messages if message.answers is not None]
    done = [
        json.loads(message.content)["result"]
        for message in told
        if json.loads(message.content)["ok"] and message.answers and registry()[message.answers.name].changes
    ]
    return {one["id"] for one in done if "id" in one}


def assert_nobody_is_booked_twice(state: dict[str, dict[str, Row]]) -> None:
    booked = [row for row in state["interview"].values() if row["status"] == "booked"]
    for one in booked:
        for other in booked:
            apart = (
                one is other
                or one["interviewer"] != other["interviewer"]
                or one["starts_at"] + timedelta(minutes=one["minutes"]) <= other["starts_at"]
                or other["starts_at"] + timedelta(minutes=other["minutes"]) <= one["starts_at"]
            )
            assert apart, (one, other)


def assert_refers_to_what_is_there(state: dict[str, dict[str, Row]]) -> None:
    for rows in state.values():
        for row in rows.values():
            for table, others in state.items():
                assert row.get(f"{table}_id") is None or row[f"{table}_id"] in others


def assert_its_memories_are_its_own(bench: Bench, run: AgentRun, notes: dict[str, Row]) -> None:
    written = execute(
        bench.database,
        "SELECT memory_id, text, kind, origin, author, source, subject_id FROM memory"
        " WHERE org_id = %s AND (run_id = %s OR last_seen_run_id = %s)",
        (bench.org_id, run.run_id, run.run_id),
    )
    assert set(run.memories_written) <= {row[0] for row in written}
    was_left = any(call.outcome is CallOutcome.TOO_SLOW for call in run.calls)  # which it may have come to afterwards
    assert was_left or len(written) == len(run.memories_written)
    for _, text, kind, origin, author, source, about in written:
        assert kind == ("fact" if about is None else "observation")
        if origin == "inference":
            assert (author, source) == ("agent:screening", None)
        else:
            note = notes[source]
            assert (origin, author, text) == ("person", note["author"].replace("user:", "user:smp-"), note["text"])


RUNS = count(1)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    script=st.lists(steps, max_size=5),
    deadline_s=st.sampled_from([0.02, 0.1, 0.25]),
    turn_limit=st.integers(1, 5),
    gives_up_at=st.none() | st.integers(0, 4),
    with_documents=st.booleans(),
)
def test_every_run_has_one_end_in_time_and_changes_only_what_its_done_calls_did(
    bench: Bench,
    script: list[Step],
    deadline_s: float,
    turn_limit: int,
    gives_up_at: int | None,
    with_documents: bool,
) -> None:
    before, cancellation, hanging = bench.state(), Cancellation(), Hanging()
    model = Watched(script, meanwhile=lambda turn: cancellation.cancel() if turn == gives_up_at else None)
    began = time.monotonic()
    run = bench.run(
        model=model,
        run_id=f"run-{next(RUNS)}",
        specification=agent(*OFFERED, turn_limit=turn_limit),
        tools=with_tools(hanging.tool()),
        deadline_s=deadline_s,
        cancellation=cancellation,
        documents=[Document(source="d-1", text="Notice is two weeks.")] * with_documents,
    )
    took_s = time.monotonic() - began
    after = bench.state()

    assert took_s < deadline_s + SLACK_S
    assert run.termination in ENDS
    assert (run.answer is not None) == (run.termination == Termination.COMPLETED)
    assert run.turns <= turn_limit

    facts = bench.facts(run.run_id)
    assert (facts.termination, facts.detail, facts.turns) == (run.termination, run.detail, run.turns)
    assert facts.ended_at is not None
    assert bench.outcomes(run.run_id) == [call.outcome for call in run.calls]
    assert Counter(call.outcome for call in run.calls)[CallOutcome.DONE] == sum(one["ok"] for one in results(run))

    assert changed(before, after).keys() <= touched(run)
    assert_refers_to_what_is_there(after)
    assert_nobody_is_booked_twice(after)
    assert_its_memories_are_its_own(bench, run, after["note"])
    if hanging.reached.is_set():
        assert hanging.let_go() == ["refused"] * 3
        assert bench.state() == after


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(step(good_calls), min_size=1, max_size=4), error=errors)
def test_a_run_that_fails_late_keeps_what_was_done_by_then_and_says_the_same_each_time(
    bench: Bench, script: list[Step], error: type[GatewayError]
) -> None:
    run = bench.run(*script, Step(fails=error("no")), run_id=f"run-{next(RUNS)}", specification=agent(*OFFERED[:-1]))
    assert run.turns <= len(script) + 1
    if run.turns == len(script) + 1:
        expected = {DeadlineExceeded: Termination.DEADLINE, CallCancelled: Termination.CANCELLED}
        assert run.termination == expected.get(error, error.code)
    else:
        assert run.termination == Termination.TOOL_FAILURE
    assert bench.facts(run.run_id).termination == run.termination
    assert_its_memories_are_its_own(bench, run, bench.state()["note"])


def test_many_runs_at_once_each_have_their_own_end(bench: Bench, database: Database) -> None:
    ends: dict[str, AgentRun] = {}

    def one(number: int) -> None:
        with workspaces(database) as filled:
            mine = replace(bench, workspace=filled())
            name = f"many-{number}"
            said = Step(calls=(ScriptedCall(tool="add_note", arguments={"application_id": "smp-a1", "text": name}),))
            ends[name] = mine.run(said, Step(say=name), run_id=name, specification=agent("add_note"))
            assert [row["text"] for row in mine.state()["note"].values() if row["id"] == "smp-n9"] == [name]

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert {name: run.answer for name, run in ends.items()} == {
        f"many-{number}": f"many-{number}" for number in range(4)
    }
    for name, run in ends.items():
        assert bench.facts(name).termination == run.termination == Termination.COMPLETED
