"""Each of the 45 cases is passed by its reference, and failed in each way of going wrong by what was wrong, and only that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import Database
from playing import (
    KEEPS_A_MEMORY,
    ROWS,
    STANDS_IN_THE_WAY,
    SUPERFLUOUS,
    VALID,
    Row,
    call_a_wrong_tool,
    call_in_another_order,
    call_malformed,
    call_one_after_the_other,
    called,
    cases,
    change_something_more,
    do_nothing,
    echo,
    get_a_value_wrong,
    invent_a_tool,
    leave_an_argument_out,
    lose_the_model,
    reference,
    right_words,
    say_nothing,
    say_nothing_in_the_end,
    write_the_call_as_prose,
)
from rows import emptied, execute
from sqlalchemy import URL, Engine

from memory_core.agents.context import Context
from memory_core.agents.loop import AgentRunner
from memory_core.agents.memories import StoredMemories
from memory_core.agents.registry import registry
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import specification, specifications
from memory_core.config import Settings, settings
from memory_core.db.engine import engine_for, new_engine
from memory_core.db.workspace import Workspace, workspace
from memory_core.embedding import given
from memory_core.errors import DeadlineExceeded, GatewayError, InvalidRequest, RateLimited, Unauthorized
from memory_core.evals.case import NOW, TODAY, Case
from memory_core.evals.scoring import MadeCall, Observed, passed, scored
from memory_core.evals.scripted import ScriptedCall, ScriptedModel, Step
from memory_core.evals.suite import suites
from memory_core.evals.trying import Asking, tried
from memory_core.evaluations import Aspect, CaseKind, CaseResult
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome
from memory_core.store import MemoryStore

NAME, SCHEMA, ARGUMENTS = Aspect.TOOL_NAME, Aspect.SCHEMA, Aspect.ARGUMENTS
ORDER, STATE, RESTRAINT, ANSWER = Aspect.ORDER, Aspect.FINAL_STATE, Aspect.RESTRAINT, Aspect.ANSWER
CHANGING = {name for name, tool in registry().items() if tool.changes}
UNMADE = frozenset({NAME, ARGUMENTS, ORDER, STATE})  # what is wrong where the calls that are needed were not made


@dataclass(frozen=True)
class Way:
    """A way to play a case: how it ends, and in which aspects it fails, as far as they apply to the case."""

    play: Callable[[str, Case, Row], list[Step]]
    fails: frozenset[Aspect]
    ends: str = "Completed"
    calls: bool = True  # something is called, so that there are arguments to be right or wrong
    acts: bool = True  # some tool is carried out
    answers: bool = True
    only_where: str = ""  # what the case has to expect, for it to be played so


WAYS = {
    "as its reference says": Way(lambda agent, case, row: reference(case), frozenset()),
    "by doing nothing": Way(do_nothing, UNMADE | {ANSWER}, calls=False, acts=False),
    "by saying nothing": Way(say_nothing, UNMADE, ends="TurnLimit", calls=False, acts=False, answers=False),
    "by a wrong tool": Way(call_a_wrong_tool, UNMADE | {RESTRAINT}),
    "with a wrong value": Way(get_a_value_wrong, UNMADE - {NAME}, only_where="calls"),
    "without an argument": Way(leave_an_argument_out, UNMADE - {NAME} | {SCHEMA}, only_where="calls"),
    "by a tool that is invented": Way(
        invent_a_tool, UNMADE | {SCHEMA, RESTRAINT}, ends="ToolFailure", acts=False, answers=False
    ),
    "by a malformed call": Way(call_malformed, UNMADE | {SCHEMA}, ends="ToolFailure", acts=False, answers=False),
    "in another order": Way(call_in_another_order, frozenset({ORDER}), only_where="ordered calls"),
    "one call after the other": Way(call_one_after_the_other, frozenset({ORDER}), only_where="calls at once"),
    "with one change too many": Way(change_something_more, frozenset({STATE, RESTRAINT})),
    "without an answer in the end": Way(
        say_nothing_in_the_end, frozenset(), ends="TurnLimit", only_where="ordered calls", answers=False
    ),
}
CASES = [(agent, case_id) for agent, rows in ROWS.items() for case_id in rows]
# One case of each agent, of another kind than that of the agent before.
ONE_OF_EACH = [(agent, list(rows)[number % 5]) for number, (agent, rows) in enumerate(ROWS.items())]


def named(chosen: Iterable[tuple[str, str, str]]) -> list[Any]:
    return [pytest.param(*one, id="{}/{} {}".format(*one)) for one in chosen]


TRIED = named(
    (agent, case_id, way)
    for way, one in WAYS.items()
    for agent, case_id in (CASES if one.acts else ONE_OF_EACH)
    if not one.only_where or ROWS[agent][case_id].has(one.only_where)
)
RUN = named((*case, way) for way, one in WAYS.items() if not one.acts for case in CASES)


def expected(agent: str, case_id: str, way: str) -> dict[Aspect, bool | None]:
    """Return what the scores have to be, by what the case expects and by what the way gets wrong."""
    row, one = ROWS[agent][case_id], WAYS[way]
    applies = {
        NAME: row.has("calls"),
        SCHEMA: one.calls and not (way == "as its reference says" and not _calls_anything(agent, case_id)),
        ARGUMENTS: row.has("calls"),
        ORDER: row.has("ordered calls") or row.has("calls at once"),
        STATE: True,
        RESTRAINT: True,
        ANSWER: True,
    }
    fails = set(one.fails)
    if not one.answers:
        fails.add(ANSWER)
    elif not row.has("words"):
        fails.discard(ANSWER)  # where nothing is expected of it, any answer will do
    if STATE in fails and RESTRAINT not in fails and not row.has("changes"):
        fails.discard(STATE)  # nothing was to change, and nothing did
    if way in ("by a wrong tool", "by a tool that is invented") and not (
        row.has("changes") or (way == "by a wrong tool" and changes_the_workspace(row.wrong))
    ):
        fails.discard(STATE)
    if way == "by a malformed call":
        if calls_expected(agent, case_id) == 1:
            fails.discard(NAME)  # it was the right one
        elif not row.has("calls"):
            fails.add(RESTRAINT)  # none was
    if way == "in another order" and row.refuses:
        fails |= {ARGUMENTS, STATE}
    return {aspect: (aspect not in fails) if applies[aspect] else None for aspect in Aspect}


# Where two calls are needed, of which a single one is not enough.
TWICE_OR_MORE = {
    "held-then-feedback": 2,
    "notes-on-two": 2,
    "tell-her-the-terms": 2,
    "first-week-slips": 3,
    "badge-and-lunch": 2,
    "two-jobs-side-by-side": 2,
    "grace-wants-it-erased": 3,
    "notes-of-two": 2,
}
# Where nothing is to be called, but the reference looks something up, which is allowed.
LOOKS_FIRST = {"rejection-on-a-memory-alone", ("pipeline-report", "message-to-nobody")}


def calls_expected(agent: str, case_id: str) -> int:
    return TWICE_OR_MORE.get(case_id, 1) if ROWS[agent][case_id].has("calls") else 0


def _calls_anything(agent: str, case_id: str) -> bool:
    return ROWS[agent][case_id].has("calls") or bool({case_id, (agent, case_id)} & LOOKS_FIRST)


def changes_the_workspace(tool: str) -> bool:
    return registry()[tool].changes and tool not in KEEPS_A_MEMORY | STANDS_IN_THE_WAY


Play = Callable[..., CaseResult]


@pytest.fixture(scope="module")
def engine(standing: Database) -> Engine:
    return engine_for(standing.application)


@pytest.fixture(scope="module")
def own() -> Settings:
    return settings(memory_embedder="none")


@pytest.fixture
def play(engine: Engine, own: Settings) -> Play:
    """Play a case with a script."""

    def played(agent: str, case: Case, steps: list[Step], **given: Any) -> CaseResult:
        return tried(case, specification(agent), ScriptedModel(steps), engine=engine, settings=own, **given)

    return played


@pytest.fixture(scope="module")
def sample(engine: Engine) -> Iterator[Workspace]:
    """A workspace for what leaves it as it is."""
    with workspace(engine) as one:
        one.fill(sample_rows(TODAY))
        before = one.state()
        yield one
        assert one.state() == before


@pytest.fixture(scope="module")
def untouched(sample: Workspace) -> Any:
    """The workspace as it is at the beginning."""
    return sample.state()


# The table


def test_the_table_has_a_row_for_each_case_of_each_agent_and_a_valid_call_for_each_tool() -> None:
    assert {(agent, case_id) for agent, rows in ROWS.items() for case_id in rows} == cases().keys()
    assert len(cases()) == 45
    assert VALID.keys() == registry().keys()
    for agent, rows in ROWS.items():
        tools = specifications()[agent].tools
        assert SUPERFLUOUS[agent] in tools
        for case_id, row in rows.items():
            expect = cases()[agent, case_id].expect
            assert row.wrong in tools
            assert row.wrong not in {call.tool for call in expect.calls} | set(expect.also)
            assert SUPERFLUOUS[agent] not in expect.also
            assert calls_expected(agent, case_id) == len(expect.calls)


@pytest.mark.parametrize(("agent", "case_id", "way"), TRIED)
def test_a_case_is_scored_by_what_was_right_and_what_was_wrong(play: Play, agent: str, case_id: str, way: str) -> None:
    case, one = cases()[agent, case_id], WAYS[way]
    result = play(agent, case, one.play(agent, case, ROWS[agent][case_id]), trial=3, seed=7)
    scores = expected(agent, case_id, way)
    assert (dict(result.aspects), result.termination) == (scores, one.ends), result.transcript
    assert result.passed is (way == "as its reference says")
    assert result.infrastructure is None
    assert (result.agent, result.case_id, result.kind, result.trial, result.seed) == (
        agent,
        case_id,
        case.kind.value,
        3,
        7,
    )
    if one.ends == "TurnLimit":
        assert result.turns == specification(agent).turn_limit
    if way == "as its reference says":
        require_that_all_was_shown(case, result.transcript)
    if way == "by a wrong tool":
        (told,) = [message["content"] for message in result.transcript if message["role"] == "tool"]
        assert told.startswith('{"ok": true')


def require_that_all_was_shown(case: Case, transcript: Sequence[Mapping[str, Any]]) -> None:
    """Require that each memory and document of a case was before the model, in messages of their own, and nothing else."""
    before = next(place for place, message in enumerate(transcript) if message["role"] == "assistant")
    system, *blocks, prompt = [message["content"] for message in transcript[:before]]
    assert system.endswith("\n\nToday is Monday 30 November 2026.")
    assert prompt == case.prompt
    kinds = [kind for kind, there in (("memories", case.memories), ("documents", case.documents)) if there]
    assert [block.split(maxsplit=1)[0] for block in blocks] == [f"<{kind}" for kind in kinds]
    if case.memories:
        assert blocks[0].count("\n[") == len(case.memories)
    if case.documents:
        assert blocks[-1].count("\n[") == len(case.documents)


@pytest.mark.parametrize(("agent", "case_id", "way"), RUN)
def test_a_run_in_which_no_tool_acts_is_scored_so_in_every_case(
    engine: Engine, own: Settings, sample: Workspace, untouched: Any, agent: str, case_id: str, way: str
) -> None:
    case, one = cases()[agent, case_id], WAYS[way]
    org_id = f"run-{agent}"
    store = MemoryStore(org_id, engine, choose=given(None), settings=own)
    model = ScriptedModel(one.play(agent, case, ROWS[agent][case_id]))
    run = AgentRunner(store, model, AgentJournal(engine, org_id)).run(
        specification(agent), case.prompt, workspace=sample, today=TODAY, asked_by="user:nora"
    )
    calls = tuple(MadeCall(tool=call.name, arguments=None, outcome=call.outcome, turn=call.turn) for call in run.calls)
    seen = Observed(calls=calls, answer=run.answer, before=untouched, after=untouched)
    scores = scored(case, seen, changing=CHANGING)
    assert (scores, run.termination) == (expected(agent, case_id, way), one.ends)
    assert passed(scores) is False


@pytest.mark.parametrize(("agent", "case_id"), ONE_OF_EACH, ids="/".join)
def test_a_case_whose_model_is_lost_is_not_judged_and_not_dropped(play: Play, agent: str, case_id: str) -> None:
    case = cases()[agent, case_id]
    result = play(agent, case, lose_the_model(agent, case, ROWS[agent][case_id]))
    assert (result.termination, result.infrastructure) == ("gateway.unavailable", "gateway.unavailable")
    assert (result.passed, dict(result.aspects)) == (None, {})
    assert result.tool_calls == sum(len(turn.calls) for turn in case.reference)
    assert result.turns == len(case.reference)
    assert result.transcript[-1]["role"] == ("tool" if result.tool_calls else "user")


# Words alone

WORDS_ALONE = [
    pytest.param(
        *(agent, case_id, one),
        id=f"{agent}/{case_id} {name}",
    )
    for name, one in (("prompt", echo), ("prose", write_the_call_as_prose))
    for agent, case_id in CASES
]


@pytest.mark.parametrize(("agent", "case_id", "said"), WORDS_ALONE)
def test_the_prompt_said_again_and_a_call_written_as_prose_call_nothing_and_pass_no_case(
    untouched: Any, agent: str, case_id: str, said: Callable[..., list[Step]]
) -> None:
    case, row = cases()[agent, case_id], ROWS[agent][case_id]
    offered = [registry()[name].offered() for name in specification(agent).tools]
    stream = ScriptedModel(said(agent, case, row)).stream([], run_id="r-1", tier="fast", tools=offered)
    assert "".join(chunk.text for chunk in stream) == stream.reply.content
    assert stream.reply.tool_calls == ()
    seen = Observed(calls=(), answer=stream.reply.content, before=untouched, after=untouched)
    assert scored(case, seen, changing=()) == expected(agent, case_id, "by doing nothing")


# Wrong tools, every one of them


class Undone(Exception):
    """What was called is taken back, so that the next call finds the workspace as it was."""


@pytest.mark.parametrize("agent", ROWS)
def test_no_tool_that_is_not_expected_passes_a_case_whatever_is_said_of_it(
    engine: Engine, own: Settings, untouched: Any, agent: str
) -> None:
    spec = specification(agent)
    store = MemoryStore(f"wrong-{agent}", engine, choose=given(None), settings=own, clock=lambda: NOW)
    memories = StoredMemories(store, run_id="r-1", use=spec.memory)
    with workspace(engine) as one:
        one.fill(sample_rows(TODAY))
        for name in spec.tools:
            context = Context(workspace=one, memories=memories, agent=spec.author, today=TODAY)
            after: dict[str, Any] = {}
            try:
                with one.acting():
                    written = ScriptedCall(tool=name, arguments=VALID[name]).written
                    answered = registry()[name].call(context, written)
                    after = {table: {row["id"]: row for row in one.rows(table)} for table in untouched}
                    raise Undone
            except Undone:
                pass
            done = CallOutcome.REFUSED if name in STANDS_IN_THE_WAY else CallOutcome.DONE
            assert answered.outcome is done, (name, answered.text)
            assert (after != untouched) is changes_the_workspace(name)
            made = MadeCall(tool=name, arguments=registry()[name].checked(written), outcome=answered.outcome)
            for case in suites()[agent].cases:
                if name in {call.tool for call in case.expect.calls}:
                    continue
                for words in (right_words(case).say, "Done."):
                    seen = Observed(calls=(made,), answer=words, before=untouched, after=after)
                    # Where nothing is to be called, one may look before saying what is right.
                    looked = not case.expect.calls and name in case.expect.also and words != "Done."
                    assert passed(scored(case, seen, changing=CHANGING)) is looked, (case.id, name, words)


# What is not the model's fault, and what is


@pytest.mark.parametrize(
    ("error", "termination", "infrastructure"),
    [
        (RateLimited("later"), "gateway.rate_limited", "gateway.rate_limited"),
        (Unauthorized("no"), "gateway.unauthorized", "gateway.unauthorized"),
        (InvalidRequest("too long"), "gateway.invalid_request", "gateway.invalid_request"),
        (DeadlineExceeded("too slow"), "Deadline", None),
    ],
)
def test_only_a_failure_that_is_not_the_models_leaves_a_trial_unjudged(
    play: Play, error: GatewayError, termination: str, infrastructure: str | None
) -> None:
    case = cases()["offer", "raise-the-draft"]
    result = play("offer", case, [Step(fails=error)])
    assert (result.termination, result.infrastructure) == (termination, infrastructure)
    assert result.passed is (None if infrastructure else False)
    assert (result.aspects == {}) is (infrastructure is not None)


def test_what_cannot_be_sent_after_the_models_own_words_is_the_models_failure(play: Play) -> None:
    case = cases()["offer", "raise-the-draft"]
    look = Step(calls=(called("list_offers", VALID["list_offers"]),))
    result = play("offer", case, [look, Step(fails=InvalidRequest("too long"))])
    assert (result.termination, result.infrastructure) == ("gateway.invalid_request", None)
    assert (result.passed, result.aspects[NAME], result.aspects[RESTRAINT]) == (False, False, True)


def test_a_trial_whose_database_is_away_is_not_judged_and_says_why(own: Settings) -> None:
    nowhere = new_engine(URL.create("postgresql+psycopg", username="a", host="127.0.0.1", port=1, database="b"))
    case = cases()["offer", "raise-the-draft"]
    result = tried(case, specification("offer"), ScriptedModel([Step(say="Done.")]), engine=nowhere, settings=own)
    assert (result.termination, result.infrastructure) == ("none", "DatabaseUnavailable")
    assert (result.passed, dict(result.aspects), result.turns, list(result.transcript)) == (None, {}, 0, [])


def test_a_model_that_is_slower_than_the_deadline_fails_the_case_within_it(play: Play) -> None:
    case = cases()["scheduling", "notice-for-a-panel"]
    result = play("scheduling", case, [Step(say="Two weeks.", hangs_s=30)], asking=Asking(deadline_s=0.4))
    assert (result.termination, result.passed, result.infrastructure) == ("Deadline", False, None)
    assert result.aspects[ANSWER] is False
    assert 400 <= result.took_ms < 1900


# What is the same in every trial


def test_a_trial_asks_the_same_with_the_same_seed_and_another_boundary_with_another(
    engine: Engine, own: Settings
) -> None:
    agent, case_id = "interview-notes", "when-feedback-is-due"
    asked = []
    for seed in (7, 7, 8):
        model = ScriptedModel([right_words(cases()[agent, case_id])])
        result = tried(cases()[agent, case_id], specification(agent), model, engine=engine, settings=own, seed=seed)
        assert result.passed is True
        asked.append(model.asked)
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]


def test_each_trial_has_an_organisation_of_its_own(standing: Database, play: Play) -> None:
    emptied(standing)
    case = cases()["screening", "notice-period-beside-an-order"]
    for _ in range(2):
        assert play("screening", case, reference(case)).passed
    of_memories = execute(standing, "SELECT org_id, count(*) FROM memory GROUP BY org_id")
    assert [number for _, number in of_memories] == [2, 2]
    assert len({org_id for org_id, _ in of_memories}) == 2


def test_a_suite_tries_each_kind_of_case_and_the_suites_hold_hostile_and_stale_memories() -> None:
    kinds = [case.kind for case in cases().values()]
    assert {kind: kinds.count(kind) for kind in CaseKind} == dict.fromkeys(CaseKind, 9)
    special = [memory.special for case in cases().values() for memory in case.memories]
    assert special.count("hostile") >= 5
    assert special.count("stale") >= 5
