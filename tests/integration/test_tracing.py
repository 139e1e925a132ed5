"""Why a run said what it said, read from its records, also after something that it was shown has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from call_rows import bare, ended
from call_rows import store as store_calls
from fakes import CANDIDATE, JOB, Clock, HashedWords, fact, observation, observe
from rows import counts, emptied, execute
from run_rows import begun, completed, ran, tool_call

from memory_core import MemoryStore, Purpose, Ranking, RecallMode, Refused, Restored, Subject
from memory_core.config import Settings, settings
from memory_core.db.engine import engine_for
from memory_core.privacy import PrivacyDesk
from memory_core.rights import LedgerAct
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome, Termination
from memory_core.run_steps import StepKind, StepState, steps
from memory_core.run_trace import About, RunTrace, Since
from memory_core.sweeping import sweep
from memory_core.tracing import MOST_LINES, MOST_RECALLS, agents_on_record, found_runs, trace

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

OTHER = Subject("candidate", "c-82")
Trace = Callable[..., RunTrace]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock, embedder=HashedWords())


@pytest.fixture
def desk(open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(clock=clock)


@pytest.fixture
def journal(database: Database, clock: Clock) -> AgentJournal:
    return AgentJournal(engine_for(database.application), "acme", clock=clock)


@pytest.fixture
def chosen(database: Database) -> Settings:
    return settings(memory_embedder="none", database_url=database.application.render_as_string(hide_password=False))


@pytest.fixture
def traced(chosen: Settings, clock: Clock) -> Trace:
    def of(run_id: str = "r-9", org_id: str = "acme", **options: Any) -> RunTrace:
        return trace(org_id, run_id, **{"by": "user:ines", "settings": chosen, "clock": clock, **options})

    return of


def looks(database: Database) -> list[tuple[Any, ...]]:
    return execute(
        database, "SELECT by, act, reference, count, subject_id FROM trail WHERE act = 'look at run' ORDER BY number"
    )


def shown_lines(run: RunTrace) -> list[str]:
    """Return the block's lines of memories."""
    (recall,) = run.recalls
    assert recall.block is not None
    return recall.block.text.split("\n")[3:-1]


def some(store: MemoryStore) -> None:
    store.remember_many(
        [
            observation("Could start in May."),
            observation("Prefers Mondays.", subject=OTHER),
            fact("We never start on Fridays."),
        ]
    )


# What is on record


def test_a_run_is_told_from_its_beginning_to_its_end(
    store: MemoryStore, journal: AgentJournal, clock: Clock, database: Database, traced: Trace
) -> None:
    some(store)
    began = clock.now
    journal.begin(begun(run_id="r-9"))
    recall = store.recall("When could she start?", run_id="r-9")
    clock.step(seconds=4)
    wrote = observe(store, "Wants to start early.", run_id="r-9")
    journal.called("r-9", tool_call(tool="remember", took_ms=500.0, memory_id=wrote.memory_id))
    journal.called("r-9", tool_call(number=2, turn=2, outcome=CallOutcome.INVENTED, tool=None, took_ms=0.0))
    clock.step(seconds=2)
    journal.end("r-9", completed(turns=3))
    with database.connect() as connection:
        asked = bare("acme", started_at=began + timedelta(seconds=1), run_id="r-9")
        store_calls(connection, "acme", [ended(asked, 2000.0, prompt_tokens=90, output_tokens=7)])

    run = traced()
    assert run.facts is not None
    assert (run.facts.agent, run.facts.termination, run.facts.turns) == ("screening", Termination.COMPLETED, 3)
    assert not run.is_cut_off
    (shown,) = run.recalls
    assert (shown.recall_id, shown.purpose, shown.mode) == (recall.recall_id, Purpose.RUN, RecallMode.SEMANTIC)
    assert (shown.ranking, shown.reason, shown.showed) == (Ranking.HYBRID, None, True)
    assert shown.block == recall.block
    assert [one.memory_id for one in shown.memories] == [one.memory.memory_id for one in recall.memories]
    assert run.written == (wrote,)
    assert [one.outcome for one in run.calls] == [CallOutcome.DONE, CallOutcome.INVENTED]
    assert [one.prompt_tokens for one in run.model_calls] == [90]
    assert (run.began_at, run.ended_at, run.since) == (began, began + timedelta(seconds=6), {})

    did = steps(run)
    assert [(one.kind, one.since_ms, one.took_ms, one.state) for one in did] == [
        (StepKind.RECALL, 0.0, None, StepState.DONE),
        (StepKind.MODEL, 1000.0, 2000.0, StepState.DONE),
        (StepKind.TOOL, 3500.0, 500.0, StepState.DONE),
        (StepKind.TOOL, 4000.0, 0.0, StepState.FAILED),
    ]
    assert [one.name for one in did] == ["hybrid", "qwen3:0.6b", "remember", None]


def test_whom_a_run_is_about_is_counted_by_subject(store: MemoryStore, traced: Trace) -> None:
    some(store)
    store.recall("When could she start?", run_id="r-9")
    observe(store, "Wants to start early.", run_id="r-9")
    observe(store, "Could start in May.", run_id="r-9")  # said again, and shown as well
    observe(store, "Is called Zoë.", subject=Subject("candidate", "c-82", label="Zoë Müller"), run_id="r-1")
    assert traced().about() == [
        About(subject=CANDIDATE, shown=1, wrote=2, with_text=2),
        About(subject=OTHER, shown=1, wrote=0, with_text=1),
        About(subject=None, shown=1, wrote=0, with_text=1),
    ]
    labels = {one.subject: one.subject.label for one in traced().about() if one.subject}
    assert labels == {CANDIDATE: None, OTHER: "Zoë Müller"}
    assert not any(one.subject and one.subject.label for one in traced(key=bytes(16)).about())
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    assert traced().about()[0] == About(subject=CANDIDATE, shown=1, wrote=2, with_text=0)


# What has changed since


def test_an_erased_memory_stands_as_its_tombstone_in_its_place(store: MemoryStore, clock: Clock, traced: Trace) -> None:
    some(store)
    store.recall("When could she start?", run_id="r-9")
    before = shown_lines(traced())
    (place,) = [place for place, line in enumerate(before) if "c-81" in line]
    clock.step(days=1)
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    run = traced()
    after = shown_lines(run)
    assert after[place] == f"[{place + 1}] erased on 2026-11-03"
    assert [line for line in after if "erased" not in line] == [line for line in before if "c-81" not in line]
    assert (run.since, run.with_text) == ({Since.ERASED: 1}, 2)
    assert "May" not in repr(run)


def test_a_swept_and_a_restricted_memory_are_counted_apart(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database, traced: Trace
) -> None:
    observe(store, "Soon gone.", expires_at=clock.now + timedelta(days=1))
    kept = observe(store, "Soon restricted.", subject=JOB, kind="fact")
    store.recall("soon", run_id="r-9")
    clock.step(days=2)
    desk.restrict("They contest it.", memory_id=kept.memory_id)
    sweep(engine_for(database.application), "acme", by="user:ines", clock=clock)
    run = traced()
    assert run.since == {Since.SWEPT: 1, Since.RESTRICTED: 1}
    assert sorted(line.partition("] ")[2] for line in shown_lines(run))[-1] == "swept on 2026-11-04"
    assert "Soon gone" not in repr(run)
    assert '"Soon restricted."' in "".join(shown_lines(run))  # kept, and shown to nobody but whoever must know it


def test_a_dispute_stands_only_beside_what_was_shown_with_it(
    store: MemoryStore, desk: PrivacyDesk, traced: Trace
) -> None:
    one = observe(store, "Could start in May.")
    store.recall("start", run_id="r-9")
    as_shown = shown_lines(traced())
    held = desk.held(CANDIDATE).memories[0]
    assert held.memory_id == one.memory_id
    desk.dispute(held, "It was June.")
    assert shown_lines(traced()) == as_shown
    store.recall("start", run_id="r-10")
    assert "It was June." in shown_lines(traced("r-10"))[0]
    desk.withdraw_dispute(desk.held(CANDIDATE).memories[0], reason="She saw the note.")
    assert "It was June." in shown_lines(traced("r-10"))[0]


def test_a_recall_whose_tombstones_are_gone_has_no_block_left(
    store: MemoryStore, database: Database, traced: Trace
) -> None:
    observe(store, "Could start in May.")
    store.recall("start", run_id="r-9")
    execute(database, "DELETE FROM disclosure")  # as a purge does
    (recall,) = traced().recalls
    assert (recall.showed, recall.block, recall.memories) == (True, None, ())


def test_a_recall_of_which_some_tombstones_are_gone_keeps_the_places_of_the_others(
    store: MemoryStore, database: Database, traced: Trace
) -> None:
    for text in ("Could start in May.", "Could start in June.", "Could start in July."):
        observe(store, text)
    recall = store.recall("start", run_id="r-9")
    assert recall.block is not None
    execute(database, "DELETE FROM disclosure WHERE place = 2")  # as a purge does
    (seen,) = traced().recalls
    again = store.shown(recall.recall_id)
    assert seen.places == (1, 3)
    assert seen.block is not None
    assert again is not None
    before = recall.block.text.splitlines()
    assert seen.block.text.splitlines() == [*before[:4], "[2] gone, its tombstone too", *before[5:]]
    assert again.text == seen.block.text
    execute(database, "DELETE FROM disclosure")
    assert store.shown(recall.recall_id) is None


def test_a_corrected_memory_is_not_said_to_be_erased(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, traced: Trace
) -> None:
    observe(store, "Could start in May.", run_id="r-8")
    store.recall("start", run_id="r-9")
    clock.step(days=1)
    (held,) = desk.held(CANDIDATE).memories
    new = desk.correct(held, "Could start in June.", author="user:zoe", reason="She said so.")
    run = traced()
    assert (run.since, run.corrections) == ({Since.CORRECTED: 1}, {held.memory_id: new.memory_id})
    assert (traced("r-8").written_since, traced("r-8").since) == ({Since.CORRECTED: 1}, {})
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    assert traced().since == {Since.CORRECTED: 1}


def test_a_dispute_since_is_told_of_what_it_was_shown_and_of_what_it_wrote(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, traced: Trace
) -> None:
    observe(store, "Could start in May.", run_id="r-8")
    store.recall("start", run_id="r-9")
    clock.step(days=1)
    desk.dispute(desk.held(CANDIDATE).memories[0], "It was June.")
    store.recall("start", run_id="r-10")
    assert traced().since == traced("r-8").written_since == {Since.DISPUTED: 1}
    assert traced("r-10").since == {}  # it was shown the dispute
    desk.restrict("They contest it.", subject=CANDIDATE)
    assert traced("r-8").written_since == {Since.RESTRICTED: 1, Since.DISPUTED: 1}
    desk.withdraw_dispute(desk.held(CANDIDATE).memories[0], reason="She saw the note.")
    assert traced().since == {Since.RESTRICTED: 1}


def test_a_dispute_counts_since_a_run_said_it_also_where_another_run_has_said_it_later(
    store: MemoryStore, desk: PrivacyDesk, journal: AgentJournal, clock: Clock, traced: Trace
) -> None:
    memory = observe(store, "Could start in May.", run_id="r-8")
    journal.begin(begun(run_id="r-9"))
    said_at = clock.step(days=1)
    observe(store, "Could start in May.", run_id="r-9")
    journal.called("r-9", tool_call(tool="remember", memory_id=memory.memory_id))
    journal.end("r-9", completed())
    clock.step(days=1)
    desk.dispute(desk.held(CANDIDATE).memories[0], "It was June.")
    last_said_at = clock.step(days=1)
    observe(store, "Could start in May.", run_id="r-10")
    assert traced().written_since == {Since.DISPUTED: 1}
    assert traced("r-10").written_since == {}
    at = [run.written_at(*run.written) for run in map(traced, ("r-8", "r-9", "r-10"))]
    assert at == [memory.created_at, said_at, last_said_at]


# What is not on record


def test_of_a_run_that_nobody_knows_nothing_is_told_and_no_look_is_on_record(
    store: MemoryStore, database: Database, traced: Trace
) -> None:
    some(store)
    before = counts(database)
    for run_id in ("r-99", "r-", "", "r%", "<b>", "r-1\n", "x" * 129, "\ud800", None):
        with pytest.raises(Refused) as refused:
            traced(run_id)
        assert refused.value.rule == "run_exists"
    assert counts(database) == before


@pytest.mark.parametrize("known_by", ["recall", "memory", "model call"])
def test_a_run_that_other_software_made_is_told_as_far_as_the_records_go(
    known_by: str, store: MemoryStore, database: Database, clock: Clock, traced: Trace
) -> None:
    if known_by == "recall":
        store.recall("nothing there", run_id="r-9")
    elif known_by == "memory":
        observe(store, "Could start in May.", run_id="r-9")
    else:
        with database.connect() as connection:
            store_calls(connection, "acme", [bare("acme", started_at=clock.now, run_id="r-9")])
    run = traced()
    assert (run.facts, run.calls, run.is_cut_off) == (None, (), False)
    assert (len(run.recalls), len(run.written), len(run.model_calls)) == (
        known_by == "recall",
        known_by == "memory",
        known_by == "model call",
    )
    assert (run.began_at, run.is_preview) == (clock.now, False)
    assert all(one.block is None and not one.showed for one in run.recalls)
    chosen = settings(memory_embedder="none", database_url=str_of(database))
    assert [(one.run_id, one.agent) for one in found_runs("acme", "r-9", settings=chosen)] == [("r-9", None)]
    assert len(found_runs("acme", settings=chosen)) == (known_by != "model call")  # of which there are very many


def test_what_other_software_wrote_last_is_the_end_that_is_known(
    store: MemoryStore, clock: Clock, traced: Trace
) -> None:
    began = clock.now
    observe(store, "Could start in May.", run_id="r-9")
    assert (traced().began_at, traced().ended_at) == (began, began)
    store.recall("start", run_id="r-9")
    wrote = clock.step(hours=1)
    observe(store, "Prefers Mondays.", run_id="r-9")
    assert (traced().began_at, traced().ended_at) == (began, wrote)
    said_again = clock.step(hours=1)
    observe(store, "Could start in May.", run_id="r-9")
    assert (traced().began_at, traced().ended_at) == (began, said_again)
    clock.step(hours=1)
    observe(store, "Could start in May.", run_id="r-10")
    assert traced().ended_at == wrote, "when it said that again is on record no more"


def str_of(database: Database) -> str:
    return database.application.render_as_string(hide_password=False)


def test_a_preview_is_told_as_one(store: MemoryStore, traced: Trace) -> None:
    some(store)
    store.recall("start", run_id="preview-1", purpose="preview")
    run = traced("preview-1")
    assert run.is_preview
    assert run.recalls[0].purpose is Purpose.PREVIEW
    assert (run.shown, run.since, run.about(), steps(run)) == ((), {}, [], [])
    assert run.with_text == 3


def test_what_a_person_previewed_under_a_runs_id_was_not_shown_to_the_run(
    store: MemoryStore, clock: Clock, traced: Trace, database: Database
) -> None:
    some(store)
    store.recall("start", run_id="r-9", purpose="preview")
    began = clock.step(hours=1)
    store.recall("When could she start?", run_id="r-9", limit=1)
    clock.step(hours=1)
    store.recall("start", run_id="r-9", purpose="preview")
    run = traced()
    assert [one.purpose for one in run.recalls] == [Purpose.PREVIEW, Purpose.RUN, Purpose.PREVIEW]
    assert (len(run.shown), sum(one.shown for one in run.about())) == (1, 1)
    assert (run.began_at, run.ended_at, run.is_preview) == (began, began, False)
    assert [one.since_ms for one in steps(run)] == [0.0]
    assert sum(count for *_, count, _ in looks(database)) == 3  # a preview's text is looked at too


def test_a_run_without_an_end_is_cut_off_once_its_time_is_over(
    journal: AgentJournal, clock: Clock, traced: Trace
) -> None:
    journal.begin(begun(run_id="r-9", deadline_s=60.0))
    clock.step(seconds=60)
    assert not traced().is_cut_off
    clock.step(seconds=1)
    run = traced()
    assert run.is_cut_off
    assert (run.ended_at, steps(run)) == (None, [])
    journal.end("r-9", completed())
    assert not traced().is_cut_off


def test_a_model_call_without_an_end_or_with_an_error_is_told_as_that(
    database: Database, clock: Clock, traced: Trace
) -> None:
    with database.connect() as connection:
        failed = ended(bare("acme", started_at=clock.now, run_id="r-9"), 10.0, error_code="gateway.busy")
        late = bare("acme", started_at=clock.now + timedelta(seconds=1), run_id="r-9", number=1) | {"run_id": "r-9"}
        store_calls(connection, "acme", [failed, late])
    assert [(one.outcome, one.state, one.took_ms) for one in steps(traced())] == [
        ("gateway.busy", StepState.FAILED, 10.0),
        ("no end is on record", StepState.UNFINISHED, None),
    ]


def test_of_very_many_recalls_the_newest_are_told(store: MemoryStore, clock: Clock, traced: Trace) -> None:
    for _ in range(MOST_RECALLS + 2):
        clock.step(seconds=1)
        store.recall("nothing there", run_id="r-9")
    run = traced()
    assert (len(run.recalls), run.older_recalls, run.recalls[-1].at) == (MOST_RECALLS, 2, clock.now)
    older = traced(page=2)
    assert (len(older.recalls), older.older_recalls, older.newer_recalls) == (2, 0, MOST_RECALLS)
    assert older.recalls[-1].at < run.recalls[0].at
    assert traced(page=3).recalls == older.recalls


def test_of_very_many_recalls_every_disclosure_counts(
    store: MemoryStore, clock: Clock, database: Database, traced: Trace
) -> None:
    began = clock.now
    observe(store, "Could start in May.")
    store.recall("start", run_id="r-9")
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    observe(store, "Prefers Mondays.", subject=OTHER)
    for _ in range(MOST_RECALLS):
        clock.step(seconds=1)
        store.recall("start", run_id="r-9")
    run = traced()
    assert (run.older_recalls, len(run.shown), run.since) == (1, 2, {Since.ERASED: 1})
    assert {one.subject: one.shown for one in run.about()} == {CANDIDATE: 1, OTHER: 1}
    assert run.began_at == began
    assert steps(run)[0].since_ms == 1000.0


# The look


def test_a_look_that_shows_text_is_one_line_of_the_trail_for_each_subject(
    store: MemoryStore, journal: AgentJournal, database: Database, traced: Trace
) -> None:
    some(store)
    ran(journal, run_id="r-9")
    store.recall("When could she start?", run_id="r-9")
    observe(store, "Wants to start early.", run_id="r-9")
    traced(by="user:bo")
    seen = ("look at run", "r-9")
    assert looks(database) == [
        ("user:bo", *seen, 2, "c-81"),
        ("user:bo", *seen, 1, "c-82"),
        ("user:bo", *seen, 1, None),
    ]
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    traced()
    assert looks(database)[3:] == [("user:ines", *seen, 1, "c-82"), ("user:ines", *seen, 1, None)]


def test_who_looked_at_a_run_is_found_by_whom_it_is_about(store: MemoryStore, desk: PrivacyDesk, traced: Trace) -> None:
    safeguards = desk.safeguards()
    desk.change_safeguards(replace(safeguards, preview_pseudonyms=True))
    some(store)
    store.recall("When could she start?", run_id="r-9")
    assert "c-81" not in repr(traced(by="user:bo", key=bytes(16)).about())
    (line,) = desk.trail(subject=CANDIDATE, act="look at run")
    assert (line.by, line.reference, line.count) == ("user:bo", "r-9", 1)


def test_a_look_at_very_many_subjects_is_one_line_without_a_subject(
    store: MemoryStore, database: Database, traced: Trace
) -> None:
    many = [observation("Came.", subject=Subject("candidate", f"c-{n}"), run_id="r-9") for n in range(MOST_LINES + 1)]
    store.remember_many(many)
    traced()
    assert looks(database) == [("user:ines", "look at run", "r-9", MOST_LINES + 1, None)]


def test_a_page_that_is_drawn_again_leaves_no_line(store: MemoryStore, database: Database, traced: Trace) -> None:
    observe(store, "Could start in May.", run_id="r-9")
    assert traced(on_record=False).with_text == 1
    assert looks(database) == []


def test_a_look_that_shows_no_text_leaves_no_line(
    store: MemoryStore, journal: AgentJournal, database: Database, traced: Trace
) -> None:
    ran(journal, run_id="r-9")
    traced()
    observe(store, "Could start in May.", run_id="r-10")
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    traced("r-10")
    assert looks(database) == []


def test_who_looks_is_an_identifier(store: MemoryStore, database: Database, traced: Trace) -> None:
    observe(store, "Could start in May.", run_id="r-9")
    with pytest.raises(Refused, match="by"):
        traced(by="Ines Müller")
    assert looks(database) == []


def test_nothing_is_told_from_a_restored_database(
    store: MemoryStore,
    desk: PrivacyDesk,
    database: Database,
    chosen: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_store: OpenStore,
    clock: Clock,
) -> None:
    monkeypatch.setenv("MEMORY_LEDGER", str(tmp_path))
    aware = settings(memory_embedder="none", database_url=str_of(database))
    mine = MemoryStore.open("acme", settings=aware, embedder=None, clock=clock)
    observe(mine, "Could start in May.", run_id="r-9")
    observe(mine, "Prefers Mondays.", run_id="r-9", subject=JOB, kind="fact")
    assert mine.forget(CANDIDATE, by="user:ines", reason="asked to").ledger_is_outside
    assert trace("acme", "r-9", by="user:ines", settings=aware).with_text == 1
    execute(database, "DELETE FROM ledger WHERE act = %s", [LedgerAct.FORGET.value])  # as a backup of before has it
    with pytest.raises(Restored):
        trace("acme", "r-9", by="user:ines", settings=aware)
    assert len(looks(database)) == 1


# Whose run it is


def test_the_run_of_another_organisation_is_not_there(
    store: MemoryStore, journal: AgentJournal, database: Database, chosen: Settings, traced: Trace
) -> None:
    some(store)
    ran(journal, run_id="r-9")
    store.recall("start", run_id="r-9")
    for org_id in ("beta", "acme-corp"):
        with pytest.raises(Refused) as refused:
            traced(org_id=org_id)
        assert refused.value.rule == "run_exists"
        assert found_runs(org_id, settings=chosen) == []
        assert agents_on_record(org_id, settings=chosen) == []
    assert looks(database) == []


def test_runs_of_one_name_in_two_organisations_are_apart(
    store: MemoryStore, open_store: OpenStore, traced: Trace
) -> None:
    observe(store, "Ours.", run_id="r-9")
    observe(open_store("beta"), "Theirs.", run_id="r-9")
    assert [one.text for one in traced().written] == ["Ours."]
    assert [one.text for one in traced(org_id="beta", clock=None).written] == ["Theirs."]


# Finding one


def test_runs_are_found_by_a_part_of_their_id_their_agent_and_their_end(
    store: MemoryStore, journal: AgentJournal, clock: Clock, chosen: Settings
) -> None:
    ran(journal, run_id="s-1")
    clock.step(minutes=1)
    ran(journal, run_id="S-2", agent="sourcing")
    clock.step(minutes=1)
    journal.begin(begun(run_id="s-3"))
    some(store)
    store.recall("start", run_id="s-3")

    def ids(typed: str = "", **chosen_by: Any) -> list[str]:
        return [one.run_id for one in found_runs("acme", typed, settings=chosen, **chosen_by)]

    assert ids(" s- ") == ["s-3", "S-2", "s-1"]
    assert ids(agent="sourcing") == ["S-2"]
    assert ids(termination="Completed") == ["S-2", "s-1"]
    assert ids(termination="running") == ["s-3"]
    assert ids("s", limit=1) == ["s-3"]
    assert ids("%") == ids("s_3") == ids("\x00") == ids("\ud800") == []
    (found,) = found_runs("acme", "s-3", settings=chosen)
    assert (found.agent, found.termination, found.shown, found.wrote) == ("screening", None, 3, 0)
    assert agents_on_record("acme", settings=chosen) == ["screening", "sourcing"]
    with pytest.raises(Refused, match="typed"):
        found_runs("acme", 9, settings=chosen)  # type: ignore[arg-type]


def test_a_trace_builds_the_block_that_the_store_rebuilds(store: MemoryStore, traced: Trace) -> None:
    some(store)
    recall = store.recall("When could she start?", run_id="r-9", token_budget=160)
    assert traced().recalls[0].block == store.shown(recall.recall_id) == recall.block
