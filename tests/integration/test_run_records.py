"""What an agent's run read, called and wrote is on record, and no word of it; so is what the suites found of each agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import eval_rows
import pytest
from conftest import Database, OpenDesk, OpenStore
from fakes import CANDIDATE, JOB, Clock, fact, observe
from model_calls import called, starting
from rows import emptied, execute, snapshot, traces
from run_rows import begun, completed, ran, tool_call
from sqlalchemy import Connection
from talking import away

from memory_core import MemoryStore, Recall, Subject
from memory_core.config import Tier
from memory_core.db import agent_runs, evaluations
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.errors import DatabaseUnavailable, Refused
from memory_core.evaluations import Aspect, EvaluationStart
from memory_core.journal import CallJournal
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome, FoundRun, RunFacts, Termination, ToolCallFacts
from memory_core.sweeping import sweep

T0 = datetime(2026, 11, 2, 9, tzinfo=UTC)
BO = Subject("candidate", "c-9")
Opened = Callable[..., AbstractContextManager[Connection]]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock(T0)


@pytest.fixture
def journal(database: Database, clock: Clock) -> AgentJournal:
    return AgentJournal(engine_for(database.application), "acme", clock=clock)


@pytest.fixture
def model_calls(database: Database, clock: Clock) -> CallJournal:
    return CallJournal(engine_for(database.application), "acme", clock=clock)


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock)


@pytest.fixture
def opened(database: Database) -> Opened:
    """Open a transaction of an organisation, acme's unless it is another's."""

    @contextmanager
    def transaction(org_id: str = "acme") -> Iterator[Connection]:
        with organisation_transaction(engine_for(database.application), org_id) as connection:
            yield connection

    return transaction


def facts(opened: Opened, run_id: str = "r-1", org_id: str = "acme") -> RunFacts:
    with opened(org_id) as connection:
        found = agent_runs.facts(connection, org_id, run_id)
    assert found is not None
    return found


def calls(opened: Opened, run_id: str = "r-1") -> list[ToolCallFacts]:
    with opened() as connection:
        return agent_runs.calls(connection, "acme", run_id)


def found(
    opened: Opened,
    typed: str = "",
    *,
    agent: str | None = None,
    termination: str | None = None,
    limit: int = 100,
    after: FoundRun | None = None,
) -> list[FoundRun]:
    with opened() as connection:
        return agent_runs.found(
            connection, "acme", typed, agent=agent, termination=termination, limit=limit, after=after
        )


def found_ids(opened: Opened, typed: str = "", **options: Any) -> list[str]:
    return [run.run_id for run in found(opened, typed, **options)]


# Begun and ended


def test_a_run_is_on_record_from_its_beginning(journal: AgentJournal, opened: Opened) -> None:
    start = begun(tier=Tier.DEEP, deadline_s=90.5)
    journal.begin(start)
    assert facts(opened) == RunFacts(
        run_id="r-1",
        agent="screening",
        specification_digest=start.specification_digest,
        model="qwen3:0.6b",
        tier=Tier.DEEP,
        asked_by="user:maria",
        documents=("note-7", "mail:81"),
        turn_limit=8,
        observations_left_out=False,
        started_at=T0,
        deadline_at=T0 + timedelta(seconds=90.5),
        ended_at=None,
        termination=None,
        detail=None,
        turns=None,
        answer_was_cut=None,
    )


def test_an_end_adds_what_became_of_it_and_changes_nothing_that_was_known(
    journal: AgentJournal, clock: Clock, opened: Opened
) -> None:
    journal.begin(begun())
    began = facts(opened)
    clock.step(seconds=7)
    detail = "find_candidate failed 3 times"
    journal.end("r-1", completed(termination=Termination.TOOL_FAILURE, detail=detail, turns=3, answer_was_cut=True))
    ended = {"termination": "ToolFailure", "detail": detail, "turns": 3, "answer_was_cut": True}
    assert facts(opened) == replace(began, ended_at=T0 + timedelta(seconds=7), **ended)


@pytest.mark.parametrize("termination", [*Termination, "gateway.unavailable"])
def test_a_run_ends_in_one_of_the_known_ways(journal: AgentJournal, opened: Opened, termination: str) -> None:
    journal.begin(begun())
    journal.end("r-1", completed(termination=termination))
    assert facts(opened).termination == str(termination)


def test_without_a_clock_of_its_own_a_run_is_timed_by_the_databases(database: Database, opened: Opened) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    journal = AgentJournal(engine_for(database.application), "acme")
    ran(journal)
    kept = facts(opened)
    assert kept.ended_at is not None
    assert before < kept.started_at <= calls(opened)[0].ended_at <= kept.ended_at < before + timedelta(seconds=60)
    assert kept.deadline_at - kept.started_at == timedelta(seconds=300)


def test_a_run_id_that_was_used_before_is_refused_and_its_record_left_as_it_is(
    journal: AgentJournal, clock: Clock, database: Database, opened: Opened
) -> None:
    ran(journal)
    kept = snapshot(database)
    clock.step(hours=1)
    with pytest.raises(Refused) as refused:
        journal.begin(begun(agent="briefing", asked_by="user:bo"))
    assert (refused.value.rule, refused.value.field) == ("run_id_is_new", "run_id")
    assert refused.value.reason == "r-1 was used before; leave it out, or name another"
    assert snapshot(database) == kept
    AgentJournal(engine_for(database.application), "globex", clock=clock).begin(begun(agent="briefing"))
    assert (facts(opened).agent, facts(opened, org_id="globex").agent) == ("screening", "briefing")


def test_an_ended_run_is_not_ended_again_nor_changed(
    journal: AgentJournal, clock: Clock, database: Database, opened: Opened
) -> None:
    ran(journal)
    kept = snapshot(database)
    clock.step(minutes=1)
    journal.end("r-1", completed(termination=Termination.CANCELLED, turns=9))
    with opened() as connection:
        assert not agent_runs.end(connection, "acme", "r-1", completed(detail="again"), now=None)
        assert not agent_runs.end(connection, "acme", "r-0", completed(), now=None)  # which never began
    assert snapshot(database) == kept


def test_a_clock_that_was_put_back_ends_no_run_before_it_began(
    journal: AgentJournal, clock: Clock, opened: Opened
) -> None:
    journal.begin(begun())
    clock.step(hours=-1)
    journal.end("r-1", completed())
    assert facts(opened).ended_at == T0


@pytest.mark.parametrize(
    ("act", "rule"),
    [
        (lambda journal: journal.begin(begun(run_id="r 1")), "run_has_its_identifiers"),
        (lambda journal: journal.begin(begun(documents=("two words",))), "documents_are_identifiers"),
        (lambda journal: journal.begin(begun(documents=("note",) * 101)), "documents_are_identifiers"),
        (lambda journal: journal.begin(begun(specification_digest=b"short")), "run_digest_and_salt_length"),
        (lambda journal: journal.begin(begun(deadline_s=0)), "run_ends_after_it_starts"),
        (lambda journal: journal.begin(begun(turn_limit=0)), "run_counts_from_zero"),
        (lambda journal: journal.called("r-0", tool_call()), "call_of_a_run"),
    ],
)
def test_what_a_constraint_keeps_out_is_refused_by_its_name_and_leaves_nothing(
    journal: AgentJournal, database: Database, act: Callable[[AgentJournal], None], rule: str
) -> None:
    with pytest.raises(Refused) as refused:
        act(journal)
    assert refused.value.rule == rule
    assert execute(database, "SELECT count(*) FROM agent_run") == [(0,)]
    assert execute(database, "SELECT count(*) FROM agent_call") == [(0,)]


def test_words_that_are_not_ours_end_no_run(journal: AgentJournal, opened: Opened) -> None:
    journal.begin(begun())
    with pytest.raises(Refused, match="detail_is_plain"):
        journal.end("r-1", completed(detail='the model said: "I am done."'))
    assert facts(opened).ended_at is None


def test_a_journal_says_so_where_the_database_is_away(journal: AgentJournal, database: Database) -> None:
    journal.begin(begun())
    with away(database):
        for act in (
            lambda: journal.begin(begun(run_id="r-2")),
            lambda: journal.called("r-1", tool_call()),
            lambda: journal.end("r-1", completed()),
        ):
            with pytest.raises(DatabaseUnavailable):
                act()
    journal.end("r-1", completed())


# Called


def test_a_tool_call_is_kept_with_a_digest_of_its_arguments_and_without_a_word_of_them(
    journal: AgentJournal, clock: Clock, database: Database, opened: Opened
) -> None:
    memory_id, recall_id = uuid4(), uuid4()
    journal.begin(begun())
    clock.step(seconds=2)
    journal.called("r-1", tool_call(arguments="Zebrafinch", memory_id=memory_id, recall_id=recall_id))
    ((salt,),) = execute(database, "SELECT salt FROM agent_run")
    assert calls(opened) == [
        ToolCallFacts(
            number=1,
            turn=1,
            tool="find_candidate",
            arguments_digest=sha256(salt + b"Zebrafinch").digest(),
            outcome=CallOutcome.DONE,
            ended_at=T0 + timedelta(seconds=2),
            took_ms=1.5,
            memory_id=memory_id,
            recall_id=recall_id,
        )
    ]
    assert traces(database, "Zebrafinch") == []


@pytest.mark.parametrize(
    "arguments", ["", "{}", "\x00", "\ud800 alone", "Zoë 中 😀", "\\x41", "%s :a {}", "x" * 100_000]
)
def test_whatever_a_model_writes_has_its_digest(
    journal: AgentJournal, database: Database, opened: Opened, arguments: str
) -> None:
    ran(journal, tool_call(arguments=arguments))
    ((salt,),) = execute(database, "SELECT salt FROM agent_run")
    (call,) = calls(opened)
    assert call.arguments_digest == sha256(salt + arguments.encode("utf-8", "surrogatepass")).digest()


def test_the_same_arguments_have_another_digest_in_another_run(journal: AgentJournal, opened: Opened) -> None:
    ran(journal, tool_call(number=1), tool_call(number=2))
    ran(journal, run_id="r-2")
    one, again = calls(opened)
    (other,) = calls(opened, "r-2")
    assert one.arguments_digest == again.arguments_digest != other.arguments_digest


def test_tool_calls_come_back_in_their_order_with_every_outcome(journal: AgentJournal, opened: Opened) -> None:
    made = [
        tool_call(number=number, turn=1 + number // 3, outcome=outcome, tool="find_candidate" if named else None)
        for number, outcome in enumerate(CallOutcome, start=1)
        for named in [outcome is not CallOutcome.INVENTED]
    ]
    ran(journal, *reversed(made))
    assert [(call.number, call.turn, call.tool, call.outcome) for call in calls(opened)] == [
        (call.number, call.turn, call.tool, call.outcome) for call in made
    ]


def test_a_tool_call_is_recorded_once(journal: AgentJournal, opened: Opened) -> None:
    ran(journal)
    with pytest.raises(Refused, match="agent_call_pkey"):
        journal.called("r-1", tool_call(outcome=CallOutcome.FAILED))
    assert [call.outcome for call in calls(opened)] == [CallOutcome.DONE]


# What one run read and wrote


def test_a_runs_calls_to_the_model_come_in_the_order_in_which_they_began(
    model_calls: CallJournal, clock: Clock, opened: Opened
) -> None:
    first = called(model_calls)
    clock.step(seconds=5)
    called(model_calls, run_id="r-2")
    second = starting(model="qwen3:4b", tier=Tier.DEEP, memory_tokens=0)
    model_calls.begin(second, tokens_per_minute=None)
    with opened() as connection:
        answered, running = agent_runs.model_calls(connection, "acme", "r-1")
        assert agent_runs.model_calls(connection, "acme", "r-0") == []
    assert (answered.call_id, answered.started_at, answered.finish_reason) == (first.call_id, T0, "stop")
    assert (answered.total_ms, answered.first_chunk_ms, answered.error_code) == (900.0, 350.0, None)
    assert (answered.prompt_tokens, answered.output_tokens, answered.memory_tokens) == (62, 18, 20)
    assert (running.call_id, running.model, running.started_at) == (
        second.call_id,
        "qwen3:4b",
        T0 + timedelta(seconds=5),
    )
    assert (running.ended_at, running.total_ms, running.tool_calls, running.memory_tokens) == (None, None, None, 0)


def test_a_runs_recalls_come_in_the_order_of_time(store: MemoryStore, clock: Clock, opened: Opened) -> None:
    observe(store, "Could start in May.")
    made: list[Recall] = []
    for purpose in ("run", "preview", "run"):
        made.append(store.recall("when?", run_id="r-2", purpose=purpose))
        store.recall("when?", run_id="r-3")
        clock.step(seconds=1)
    with opened() as connection:
        rows = agent_runs.recalls_of(connection, "acme", "r-2")
    assert [(row.recall_id, row.purpose) for row in rows] == [
        (one.recall_id, purpose) for one, purpose in zip(made, ("run", "preview", "run"), strict=True)
    ]
    row = rows[0]
    assert (row.at, row.mode, row.reason, row.ranking, row.omitted) == (
        *(T0, "recency", "no embedder is configured", "recency"),
        0,
    )
    assert made[0].block is not None
    assert f'boundary="{row.boundary}"' in made[0].block.text


def test_a_run_id_that_a_recall_or_a_memory_names_is_not_new(store: MemoryStore, journal: AgentJournal) -> None:
    observe(store, "Could start in May.", run_id="by-memory")
    store.recall("who?", run_id="by-recall")
    for run_id in ("by-memory", "by-recall"):
        with pytest.raises(Refused) as refused:
            journal.begin(begun(run_id=run_id))
        assert refused.value.rule == "run_id_is_new"
    journal.begin(begun(run_id="by-nobody"))


def test_what_a_run_wrote_is_its_own_what_it_said_again_and_what_its_calls_name(
    store: MemoryStore, journal: AgentJournal, clock: Clock, opened: Opened
) -> None:
    earlier = observe(store, "Speaks Finnish.", run_id="r-1")
    clock.step(minutes=1)
    journal.begin(begun(run_id="r-2"))
    own = observe(store, "Could start in May.", run_id="r-2")
    again = observe(store, "Speaks Finnish.", run_id="r-2")
    assert again.memory_id == earlier.memory_id
    named = store.remember(**fact("We never schedule on Fridays.", run_id="r-1"))
    clock.step(minutes=1)
    store.remember(**fact("We never schedule on Fridays.", run_id="r-2"))
    store.remember(**fact("We never schedule on Fridays.", run_id="r-3"))
    observe(store, "Of another run.", run_id="r-22")
    gone = observe(store, "Soon forgotten.", run_id="r-2", subject=BO)
    store.forget(BO, by="user:ines", reason="asked to")

    def written(run_id: str) -> list[UUID]:
        with opened() as connection:
            return [one.memory_id for one in agent_runs.written(connection, "acme", run_id, now=clock())]

    assert written("r-2") == [earlier.memory_id, own.memory_id, gone.memory_id]
    journal.called("r-2", tool_call(memory_id=named.memory_id))
    journal.called("r-2", tool_call(number=2, memory_id=uuid4()))
    assert written("r-2") == [earlier.memory_id, own.memory_id, named.memory_id, gone.memory_id]
    assert written("r-1") == [earlier.memory_id, named.memory_id]
    assert written("r-3") == [named.memory_id]
    assert written("r-0") == []


def test_withdrawn_is_what_was_forgotten_swept_or_restricted_since_and_nothing_else(
    store: MemoryStore, open_desk: OpenDesk, clock: Clock, database: Database, opened: Opened
) -> None:
    def withdrawn(run_id: str = "r-2") -> int:
        with opened() as connection:
            return agent_runs.withdrawn(connection, "acme", run_id)

    desk = open_desk(clock=clock)
    expires = T0 + timedelta(days=1)
    texts = {"restricted": "c-1", "forgotten": "c-2", "live": "c-3", "on hold": "c-4", "never shown": "c-5"}
    for text, subject_id in texts.items():
        if text != "never shown":
            observe(store, f"One {text}.", subject=Subject("candidate", subject_id))
    observe(store, "One swept.", subject=JOB, kind="fact", expires_at=expires)
    for run_id in ("r-2", "r-2", "r-3"):  # shown twice, it counts once
        assert len(store.recall("who?", run_id=run_id, limit=50).memories) == 5
    store.recall("who?", run_id="r-4", limit=50, purpose="preview")
    observe(store, "One never shown.", subject=Subject("candidate", "c-5"))
    assert withdrawn() == 0

    desk.hold("before the court", subject=Subject("candidate", "c-4"), name="claim-7")
    store.forget(Subject("candidate", "c-5"), by="user:ines", reason="asked to")
    assert withdrawn() == 0
    restriction = desk.restrict("while it is checked", subject=Subject("candidate", "c-1"))
    assert withdrawn() == 1
    store.forget(Subject("candidate", "c-2"), by="user:ines", reason="asked to")
    assert withdrawn() == 2
    clock.step(days=2)
    assert withdrawn() == 2, "what has expired is withdrawn by the sweep"
    sweep(engine_for(database.application), "acme", by="user:ines", clock=clock)
    assert withdrawn() == withdrawn("r-3") == 3
    desk.lift(restriction, reason="checked", person_told=True)
    assert withdrawn() == 2
    assert withdrawn("r-4") == withdrawn("r-0") == 0, "a preview shows nothing to a run"


def test_withdrawn_is_also_what_a_run_wrote_and_each_memory_once(
    store: MemoryStore, open_desk: OpenDesk, clock: Clock, journal: AgentJournal, opened: Opened
) -> None:
    shown = observe(store, "Could start in May.")
    store.recall("who?", run_id="r-2")
    wrote = observe(store, "Prefers Mondays.", subject=BO, run_id="r-2")
    ran(journal, tool_call(memory_id=wrote.memory_id), run_id="r-3")
    desk = open_desk(clock=clock)
    for memory in (shown, wrote):
        desk.restrict("while it is checked", memory_id=memory.memory_id)
    assert store.withdrawn("r-2") == 1
    assert store.withdrawn("r-2", written=[shown.memory_id]) == 1
    assert store.withdrawn("r-2", written=[shown.memory_id, wrote.memory_id]) == 2
    assert store.withdrawn("r-3") == store.withdrawn("r-3", written=[wrote.memory_id]) == 1
    with opened() as connection:
        assert agent_runs.withdrawn(connection, "acme", "r-2", written=[wrote.memory_id]) == 2


def test_withdrawn_is_also_what_a_run_was_shown_of_a_kind_that_it_may_be_shown_no_more(store: MemoryStore) -> None:
    observe(store, "Could start in May.")
    store.recall("who?", run_id="r-2")
    wrote = observe(store, "Prefers Mondays.", run_id="r-2")
    assert store.withdrawn("r-2", kinds=["fact"]) == store.withdrawn("r-2", kinds=[]) == 1
    assert store.withdrawn("r-2", written=[wrote.memory_id], kinds=["fact"]) == 1, "its own words stay with it"
    assert store.withdrawn("r-2", kinds=["fact", "observation"]) == 0


# Found


def test_runs_are_known_by_the_loop_a_recall_a_memory_or_a_model_call_newest_first(
    store: MemoryStore, journal: AgentJournal, model_calls: CallJournal, clock: Clock, opened: Opened
) -> None:
    observe(store, "Could start in May.", run_id="by-memory")
    observe(store, "Speaks Finnish.", run_id="by-memory")
    clock.step(minutes=1)
    store.recall("who?", run_id="by-recall")
    store.recall("who?", run_id="by-preview", purpose="preview")
    clock.step(minutes=1)
    called(model_calls, run_id="by-call")
    clock.step(minutes=1)
    ran(journal, run_id="by-loop")
    clock.step(minutes=1)
    journal.begin(begun(run_id="running", agent="briefing"))
    store.recall("who?", run_id="running", limit=1)
    store.recall("who?", run_id="running")
    clock.step(minutes=1)
    observe(store, "Plays chess.", run_id="running")
    called(model_calls, run_id="running")
    called(model_calls, run_id="by-memory")

    def run(run_id: str, minutes: int, **known: Any) -> FoundRun:
        nothing: dict[str, Any] = {"agent": None, "termination": None, "shown": 0, "wrote": 0}
        return FoundRun(run_id=run_id, at=T0 + timedelta(minutes=minutes), **{**nothing, **known})

    running = run("running", 4, agent="briefing", shown=2, wrote=1)
    by_loop = run("by-loop", 3, agent="screening", termination="Completed")
    others = [run("by-recall", 1, shown=2), run("by-memory", 0, wrote=2)]
    assert found(opened) == [running, by_loop, *others]  # of a mere call nothing about anybody is to be seen
    assert found(opened, "by-call") == [run("by-call", 2)]
    assert found(opened, limit=2) == [running, by_loop]
    assert found(opened, after=by_loop) == others
    assert found(opened, after=others[-1]) == []
    assert found(opened, termination="running") == found(opened, agent="briefing") == [running]
    assert found(opened, termination="Completed") == found(opened, agent="screening") == [by_loop]
    assert found(opened, "by-", agent="briefing") == found(opened, termination="Deadline") == []
    assert found(opened, agent="screening", termination="running") == []
    with opened() as connection:
        assert agent_runs.agents(connection, "acme") == ["briefing", "screening"]
    with opened("globex") as connection:
        assert agent_runs.found(connection, "globex", "", agent=None, termination=None, limit=9) == []


def test_runs_that_began_at_one_moment_are_all_found_one_after_the_other(journal: AgentJournal, opened: Opened) -> None:
    for number in (2, 3, 1):
        ran(journal, run_id=f"r-{number}")
    (first,) = found(opened, limit=1)
    (second,) = found(opened, limit=1, after=first)
    assert [one.run_id for one in (first, second, *found(opened, after=second))] == ["r-1", "r-2", "r-3"]


def test_a_run_is_found_by_any_part_of_its_id_and_what_is_typed_stands_for_itself_alone(
    journal: AgentJournal, clock: Clock, opened: Opened
) -> None:
    for run_id in ("r_1", "r-1", "R-10", "a/r.1:b@c+d"):
        ran(journal, run_id=run_id)
        clock.step(seconds=1)
    assert found_ids(opened) == ["a/r.1:b@c+d", "R-10", "r-1", "r_1"]
    assert found_ids(opened, "r-1") == ["R-10", "r-1"]
    assert found_ids(opened, "-10") == ["R-10"]
    assert found_ids(opened, "r_1") == found_ids(opened, "_") == ["r_1"]
    assert found_ids(opened, "r.1") == found_ids(opened, "a/r.1:b@c+d") == ["a/r.1:b@c+d"]
    for typed in ("%", "r%1", "r\\_1", "\\", "r 1", "r-1'", "\x00", "\ud800", "ｒ", "r-1\n", "x" * 129):
        assert found(opened, typed) == []


def test_finding_runs_among_ten_thousand_memories_and_calls_takes_a_moment(database: Database, opened: Opened) -> None:
    execute(database, "INSERT INTO organisation VALUES ('acme')")
    execute(
        database,
        "INSERT INTO memory (org_id, memory_id, kind, subject_type, subject_id, text, text_sha256, origin, author, run_id,"
        " created_at, expires_at, last_seen_at, last_seen_run_id) SELECT 'acme', gen_random_uuid(), 'observation',"
        " 'candidate', 'c-' || n % 900, n::text, sha256(convert_to(n::text, 'UTF8')), 'inference', 'agent:screening',"
        " 'r-' || n / 3, now() - n * interval '1 minute', now() + interval '90 days', now(), 'r-' || n / 3"
        " FROM generate_series(1, 10000) AS n",
    )
    execute(
        database,
        "INSERT INTO agent_run (org_id, run_id, agent, specification_digest, model, tier, asked_by, turn_limit, started_at,"
        " deadline_at) SELECT 'acme', 'r-' || n, 'screening', sha256('x'), 'qwen3:0.6b', 'fast', 'user:maria', 8,"
        " now() - n * interval '1 minute', now() + interval '1 minute' FROM generate_series(1, 2500) AS n",
    )
    execute(
        database,
        "INSERT INTO recall (org_id, recall_id, run_id, purpose, at, mode, ranking, omitted) SELECT 'acme',"
        " gen_random_uuid(), 'r-' || n / 2, 'run', now() - n * interval '1 minute', 'semantic', 'dense', 0"
        " FROM generate_series(1, 10000) AS n",
    )
    execute(
        database,
        "INSERT INTO disclosure (org_id, memory_id, recall_id, place, run_id, purpose, at) SELECT 'acme', m.memory_id,"
        " r.recall_id, 1, r.run_id, 'run', now() FROM (SELECT *, row_number() OVER () AS n FROM recall) AS r"
        " JOIN (SELECT *, row_number() OVER () AS n FROM memory) AS m USING (n)",
    )
    execute(
        database,
        "INSERT INTO model_call (org_id, call_id, run_id, tier, model, provider, started_at, deadline_at,"
        " estimated_tokens, memory_tokens, counted_tokens, counts_until) SELECT 'acme', gen_random_uuid(),"
        " 'r-' || n / 3, 'fast', 'qwen3:0.6b', 'ollama', now() - n * interval '1 minute', now() + interval '1 minute',"
        " 1, 1, 1, now() FROM generate_series(1, 10000) AS n",
    )
    assert len(found(opened)) == 100
    for options in ({}, {"typed": "r-12"}, {"agent": "screening"}, {"termination": "running", "typed": "1"}):
        began = time.perf_counter()
        assert len(found(opened, **options)) == 100
        assert time.perf_counter() - began < 0.5, options  # some 20 ms, also where no statistics are known yet


# Evaluations


def recorded(opened: Opened, of: EvaluationStart, *results: Any, at: datetime = T0, ended: bool = False) -> UUID:
    """Put an evaluation on record, with the results that are given."""
    evaluation_id = uuid4()
    with opened() as connection:
        evaluations.begin(connection, "acme", evaluation_id, of, now=at)
        for one in results:
            evaluations.add(connection, "acme", evaluation_id, one, now=at)
        if ended:
            assert evaluations.end(connection, "acme", evaluation_id, now=at + timedelta(hours=1))
    return evaluation_id


def unfinished(opened: Opened, of: EvaluationStart) -> UUID | None:
    with opened() as connection:
        return evaluations.unfinished(connection, "acme", of)


def test_an_evaluation_is_listed_with_all_it_was_and_what_is_on_record_of_it(opened: Opened) -> None:
    first = eval_rows.start(agents=("screening", "briefing"), digest=None, settings={"stop": ["\n"], "cap": 0.5})
    second = eval_rows.start(base_seed=-(2**40), provider="scripted")
    older = recorded(opened, first, eval_rows.result(trial=1), eval_rows.result(trial=2), ended=True)
    newer = recorded(opened, second, at=T0 + timedelta(days=1))
    with opened() as connection:
        assert evaluations.listed(connection, "acme", limit=1) == evaluations.listed(connection, "acme")[:1]
        listed = evaluations.listed(connection, "acme")
    assert [one.evaluation_id for one in listed] == [newer, older]
    assert [one.recorded for one in listed] == [0, 2]
    assert [(one.started_at, one.ended_at) for one in listed] == [
        (T0 + timedelta(days=1), None),
        (T0, T0 + timedelta(hours=1)),
    ]
    for one, start in zip(listed, (second, first), strict=True):
        assert {name: getattr(one, name) for name in vars(start)} == vars(start)


def test_a_result_comes_back_as_it_was_and_its_transcript_on_its_own(opened: Opened) -> None:
    made = [
        eval_rows.result(agent="briefing", case_id="b-1", aspects={Aspect.ORDER: None, Aspect.ANSWER: False}),
        eval_rows.result(trial=1),
        eval_rows.result(False, trial=2, transcript=[]),
        eval_rows.result(None, trial=10, termination="none", infrastructure="no model", turns=0, tool_calls=0),
    ]
    evaluation_id = recorded(opened, eval_rows.start(), *reversed(made))
    with opened() as connection:
        assert evaluations.results(connection, "acme", evaluation_id) == [replace(one, transcript=()) for one in made]
        for one in made:
            said = evaluations.transcript(connection, "acme", evaluation_id, one.agent, one.case_id, one.trial)
            assert said == list(one.transcript)
        assert evaluations.transcript(connection, "acme", evaluation_id, "screening", "screening-1", 3) == []
        assert evaluations.results(connection, "acme", uuid4()) == []
        assert evaluations.recorded(connection, "acme", uuid4()) == set()


def test_a_transcript_is_kept_whatever_a_model_said_in_it(opened: Opened) -> None:
    said = [{"role": "assistant", "content": "a\x00b \ud800 Zoë 😀", "arguments": {"\x00": [float("inf"), 0.5, None]}}]
    evaluation_id = recorded(opened, eval_rows.start(), eval_rows.result(transcript=said))
    with opened() as connection:
        kept = evaluations.transcript(connection, "acme", evaluation_id, "screening", "screening-1", 1)
    content = "a\ufffdb \ufffd Zoë 😀"
    assert kept == [{"role": "assistant", "content": content, "arguments": {"\ufffd": ["inf", 0.5, None]}}]


def test_a_trial_that_is_on_record_stays_as_it_is(opened: Opened) -> None:
    evaluation_id = recorded(opened, eval_rows.start(), eval_rows.result(trial=1), eval_rows.result(trial=2))
    with opened() as connection:
        evaluations.add(connection, "acme", evaluation_id, eval_rows.result(False, trial=1), now=None)
        assert [one.passed for one in evaluations.results(connection, "acme", evaluation_id)] == [True, True]
        assert evaluations.recorded(connection, "acme", evaluation_id) == {
            ("screening", "screening-1", 1),
            ("screening", "screening-1", 2),
        }


def test_an_evaluation_that_was_interrupted_goes_on_where_it_is_the_newest_that_is_the_same(opened: Opened) -> None:
    start = eval_rows.start()
    assert unfinished(opened, start) is None
    recorded(opened, start, at=T0)
    newest = recorded(opened, start, at=T0 + timedelta(days=2))
    recorded(opened, start, at=T0 + timedelta(days=1))
    recorded(opened, start, at=T0 + timedelta(days=3), ended=True)
    assert unfinished(opened, start) == newest
    assert unfinished(opened, replace(start, by="user:bo")) == newest, "whoever asks for it"
    reordered = dict(reversed(start.settings.items()))
    assert unfinished(opened, replace(start, settings=reordered)) == newest
    with opened("globex") as connection:
        assert evaluations.unfinished(connection, "globex", start) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "qwen3:4b"},
        {"digest": "sha256:0"},
        {"digest": None},
        {"provider": "openai"},
        {"settings": {}},
        {"settings": {"temperature": 0.61, "output_cap": 2000, "reasoning_effort": "none"}},
        {"suites_hash": "0" * 64},
        {"agents": ("screening",)},
        {"agents": tuple(reversed(eval_rows.AGENTS))},
        {"cases": 44},
        {"trials": 4},
        {"base_seed": 8},
    ],
    ids="-".join,
)
def test_an_evaluation_of_anything_else_is_another(opened: Opened, changes: dict[str, Any]) -> None:
    other = replace(eval_rows.start(), **changes)
    recorded(opened, eval_rows.start())
    assert unfinished(opened, other) is None
    assert unfinished(opened, other) != recorded(opened, other) == unfinished(opened, other)


def test_an_ended_evaluation_stays_ended_and_keeps_its_models_digest(opened: Opened) -> None:
    unknown, known = recorded(opened, eval_rows.start(digest=None)), recorded(opened, eval_rows.start())
    with opened() as connection:
        for evaluation_id in (unknown, known):
            assert evaluations.end(connection, "acme", evaluation_id, now=T0 - timedelta(hours=1))
            assert not evaluations.end(connection, "acme", evaluation_id, now=None)
        listed = {one.evaluation_id: one for one in evaluations.listed(connection, "acme")}
    assert {one.ended_at for one in listed.values()} == {T0}, "never before it began"
    assert (listed[unknown].digest, listed[known].digest) == (None, eval_rows.start().digest)
    assert unfinished(opened, eval_rows.start()) is None


def test_a_result_of_no_evaluation_is_refused(opened: Opened) -> None:
    with pytest.raises(Refused, match="result_of_an_evaluation"), opened() as connection:
        evaluations.add(connection, "acme", uuid4(), eval_rows.result(), now=None)


def test_nobody_else_sees_anothers_runs_and_evaluations(
    journal: AgentJournal, opened: Opened, store: MemoryStore
) -> None:
    ran(journal)
    observe(store, "Could start in May.", run_id="r-1", subject=CANDIDATE)
    store.recall("who?", run_id="r-1")
    evaluation_id = recorded(opened, eval_rows.start(), eval_rows.result())
    with opened("globex") as connection:
        for org_id in ("globex", "acme"):
            assert agent_runs.facts(connection, org_id, "r-1") is None
            assert agent_runs.calls(connection, org_id, "r-1") == agent_runs.recalls_of(connection, org_id, "r-1") == []
            assert agent_runs.written(connection, org_id, "r-1", now=T0) == []
            assert agent_runs.agents(connection, org_id) == evaluations.listed(connection, org_id) == []
            assert evaluations.results(connection, org_id, evaluation_id) == []
