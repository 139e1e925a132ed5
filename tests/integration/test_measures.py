from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from conftest import cloned
from fakes import CANDIDATE, JOB, Clock, HashedWords, fact, observation, observe
from rows import await_lock_waits, emptied, execute, rows, snapshot, traces

from memory_core import Erasure, Memory, MemoryStore, OnHold, Ranking, Refused, State, Subject
from memory_core.config import settings
from memory_core.db.engine import close_engines, engine_for
from memory_core.errors import LineRefused
from memory_core.interchange import Imported, export_lines, import_lines, read_lines
from memory_core.measuring import place
from memory_core.privacy import PrivacyDesk
from memory_core.restoring import replay
from memory_core.rights import Measure, MeasureKind, Swept
from memory_core.sweeping import sweep

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

    from memory_core.db.embedded import Cluster


OTHER = Subject("candidate", "c-8")
SUPPRESSED = "nothing_new_about_a_suppressed_subject"
WAIT_S = 30  # longer than PostgreSQL's search for deadlocks


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
def swept(database: Database, clock: Clock) -> Callable[..., Swept]:
    """Sweep the organisation."""

    def run(**options: Any) -> Swept:
        return sweep(engine_for(database.application), "acme", by="user:ines", clock=clock, **options)

    return run


@pytest.fixture
def side() -> Iterator[ThreadPoolExecutor]:
    """Threads in which something waits while the test goes on."""
    with ThreadPoolExecutor(8) as threads:
        yield threads


@contextmanager
def held_up(database: Database, statement: str, parameters: Any = None) -> Iterator[None]:
    """Keep a lock, taken by this statement of a superuser, until the block ends."""
    with database.connect() as somebody:
        somebody.execute(statement, parameters)
        yield


def outcome(future: Future[Any]) -> Any:
    return future.result(timeout=WAIT_S)


def forget(store: MemoryStore, subject: Subject = CANDIDATE) -> Erasure:
    return store.forget(subject, by="user:ines", reason="asked to")


def recalled(store: MemoryStore) -> list[set[str | None]]:
    """Return the texts that each ranking recalls."""
    found = []
    for ranking in Ranking:
        recall = store.recall("Who could start in May?", run_id="r-2", limit=50, ranking=ranking)
        assert recall.ranking is ranking
        found.append({one.memory.text for one in recall.memories})
        assert recall.block is not None
        assert recall.block.text.count("\n[") == len(found[-1])
    return found


def about(subject: Subject | None = None, memory: Memory | None = None, **options: Any) -> dict[str, Any]:
    """Return what a measure takes: one about a subject, or about one memory."""
    named = {"subject": subject} if memory is None else {"memory_id": memory.memory_id}
    return {"reason": "claim of 3 November", **named, **options}


def request(desk: PrivacyDesk, right: str, clock: Clock, subject: Subject = CANDIDATE) -> str:
    """Register a request about a subject; returns its reference."""
    entered = desk.register.register(
        right, asked_by="Zoë Müller", channel="letter", received_on=clock.now.date(), subject=subject
    )
    return entered.reference


def refusal(act: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value


ON = pytest.mark.parametrize("on", ["subject", "memory"])
TO_LIFT = {"reason": "the claim is settled"}


# Restriction


@ON
def test_what_is_restricted_is_held_as_such_and_recalled_by_no_ranking_until_it_is_lifted(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, on: str
) -> None:
    one = observe(store, "Could start in May.")
    observe(store, "Could start in June.", subject=OTHER)
    assert recalled(store) == [{"Could start in May.", "Could start in June."}] * 4
    clock.step(days=1)
    placed = desk.restrict(**about(CANDIDATE) if on == "subject" else about(memory=one))
    assert (placed.kind, placed.subject, placed.stands) == (MeasureKind.RESTRICTION, CANDIDATE, True)
    assert placed.memory_id == (None if on == "subject" else one.memory_id)
    (held,) = store.held(CANDIDATE).memories
    assert (held.state, held.text, held.restricted_at) == (State.RESTRICTED, "Could start in May.", clock.now)
    assert recalled(store) == [{"Could start in June."}] * 4
    assert store.recall("May?", run_id="r-2", subject=CANDIDATE).block is None
    desk.lift(placed, person_told=True, **TO_LIFT)
    (held,) = store.held(CANDIDATE).memories
    assert (held.state, held.restricted_at) == (State.LIVE, None)
    assert recalled(store) == [{"Could start in May.", "Could start in June."}] * 4


def test_a_restriction_on_one_memory_leaves_the_others_about_its_subject_in_use(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    one = observe(store, "Could start in May.")
    observe(store, "Prefers mornings.")
    desk.restrict(**about(memory=one))
    assert recalled(store) == [{"Prefers mornings."}] * 4


def test_a_restriction_on_a_fact_about_nobody_keeps_it_from_use(store: MemoryStore, desk: PrivacyDesk) -> None:
    rule = store.remember(**fact("We never start on Fridays."))
    observe(store, "Could start in May.")
    placed = desk.restrict(**about(memory=rule))
    assert (placed.subject, placed.memory_id) == (None, rule.memory_id)
    assert recalled(store) == [{"Could start in May."}] * 4
    desk.lift(placed, person_told=False, **TO_LIFT)
    assert recalled(store) == [{"Could start in May.", "We never start on Fridays."}] * 4


def test_what_is_written_about_a_restricted_subject_is_restricted_from_its_first_moment(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in June.", subject=OTHER)
    observe(store, "Could start in May.")
    placed = desk.restrict(**about(CANDIDATE))
    clock.step(days=1)
    alone = observe(store, "Prefers May.")
    in_bulk = store.remember_many([observation("Likes May."), observation("Start in July.", subject=OTHER)])
    assert [one.state for one in (alone, *in_bulk)] == [State.RESTRICTED, State.RESTRICTED, State.LIVE]
    assert alone.restricted_at == placed.placed_at
    assert recalled(store) == [{"Could start in June.", "Start in July."}] * 4
    assert rows(database, "memory", "subject_id = 'c-81' AND text <> 'Could start in May.' AND embedding NOTNULL") == []
    desk.lift(placed, person_told=True, **TO_LIFT)
    assert {one.state for one in store.held(CANDIDATE).memories} == {State.LIVE}
    assert len(recalled(store)[0]) == 5


@ON
def test_a_repeat_of_what_is_restricted_stays_restricted(store: MemoryStore, desk: PrivacyDesk, on: str) -> None:
    one = observe(store, "Could start in May.")
    observe(store, "Could start in June.", subject=OTHER)
    desk.restrict(**about(CANDIDATE) if on == "subject" else about(memory=one))
    again = observe(store, "Could start in May.", run_id="r-9")
    (in_bulk,) = store.remember_many([observation("Could start in May.", run_id="r-10")])
    assert {again.memory_id, in_bulk.memory_id} == {one.memory_id}
    assert (in_bulk.state, in_bulk.seen_count, in_bulk.restricted_at) == (State.RESTRICTED, 3, again.restricted_at)
    assert recalled(store) == [{"Could start in June."}] * 4


@ON
def test_what_is_restricted_is_never_embedded(
    open_store: OpenStore, desk: PrivacyDesk, clock: Clock, database: Database, on: str
) -> None:
    bare, embedder = open_store(clock=clock), HashedWords()
    one, other = observe(bare, "Could start in May."), observe(bare, "In June.", subject=OTHER)
    placed = desk.restrict(**about(CANDIDATE) if on == "subject" else about(memory=one))
    embedding = open_store(clock=clock, embedder=embedder)
    assert embedding.overview().unembedded == 1
    assert embedding.embed().count == 1
    assert embedding.embed(among=[one.memory_id]).count == 0
    asked = embedder.asked
    observe(embedding, "Could start in May.")
    assert embedder.asked == asked
    assert execute(database, "SELECT memory_id FROM memory WHERE embedding IS NOT NULL") == [(other.memory_id,)]
    desk.lift(placed, person_told=True, **TO_LIFT)
    assert embedding.embed().count == 1


@ON
def test_what_is_restricted_is_never_exported(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database, on: str
) -> None:
    one = observe(store, "Could start in May.")
    observe(store, "In June.", subject=OTHER)
    placed = desk.restrict(**about(CANDIDATE) if on == "subject" else about(memory=one))

    def exported() -> list[str]:
        lines = export_lines(engine_for(database.application), "acme", clock=clock)
        return [json.loads(line)["text"] for line in lines]

    assert exported() == ["In June."]
    desk.lift(placed, person_told=True, **TO_LIFT)
    assert exported() == ["Could start in May.", "In June."]


@ON
def test_what_is_restricted_is_not_swept_when_it_has_expired(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, swept: Callable[..., Swept], on: str
) -> None:
    one = observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    observe(store, "In June.", subject=OTHER)
    placed = desk.restrict(**about(CANDIDATE) if on == "subject" else about(memory=one))
    clock.step(days=91)
    for dry_run in (True, False):
        done = swept(dry_run=dry_run)
        assert (done.emptied, done.kept_by_restriction, done.kept_by_hold) == (1, 1, 0)
    held = store.held(CANDIDATE)
    assert (held.memories[0].text, held.memories[0].state) == ("Could start in May.", State.RESTRICTED)
    assert held.subject.label == "Zoë"
    desk.lift(placed, person_told=True, **TO_LIFT)
    assert store.held(CANDIDATE).memories[0].state is State.EXPIRED
    assert (swept().emptied, swept().kept_by_restriction) == (1, 0)
    assert store.held(CANDIDATE).memories[0].state is State.SWEPT


@pytest.mark.parametrize("told", [True, False])
def test_lifting_a_restriction_says_whether_the_person_was_told_and_that_stays_on_record(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database, told: bool
) -> None:
    observe(store, "Could start in May.")
    placed = desk.restrict(**about(CANDIDATE))
    before = snapshot(database)
    for unsaid in (None, "yes", 1):
        refused = refusal(lambda unsaid=unsaid: desk.lift(placed, person_told=unsaid, **TO_LIFT))
        assert (refused.rule, refused.field) == ("lifting_says_whether_the_person_was_told", "person_told")
    assert snapshot(database) == before
    clock.step(days=2)
    lifted = desk.lift(placed, person_told=told, **TO_LIFT)
    assert (lifted.person_told, lifted.lifted_by, lifted.lifted_reason) == (told, "user:ines", TO_LIFT["reason"])
    assert (lifted.lifted_at, lifted.stands) == (clock.now, False)
    assert desk.measures(CANDIDATE) == [lifted]
    assert desk.measures() == []


def test_a_restriction_on_a_memory_outlasts_one_on_its_subject_that_is_lifted(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock
) -> None:
    one, other = observe(store, "Could start in May."), observe(store, "Prefers mornings.")
    everything = desk.restrict(**about(CANDIDATE))
    clock.step(days=1)
    single = desk.restrict(**about(memory=one))
    desk.lift(everything, person_told=True, **TO_LIFT)
    states = {memory.memory_id: memory.state for memory in store.held(CANDIDATE).memories}
    assert states == {one.memory_id: State.RESTRICTED, other.memory_id: State.LIVE}
    desk.lift(single, person_told=True, **TO_LIFT)
    assert {memory.state for memory in store.held(CANDIDATE).memories} == {State.LIVE}


def test_a_restriction_written_by_hand_survives_one_that_is_placed_and_lifted(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in May.")
    execute(database, "UPDATE memory SET restricted_at = created_at")
    clock.step(days=1)
    desk.lift(desk.restrict(**about(CANDIDATE)), person_told=True, **TO_LIFT)
    assert store.held(CANDIDATE).memories[0].state is State.RESTRICTED


def test_a_hold_written_by_hand_survives_other_measures_also_under_the_name_of_one_that_was_lifted(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in May.")
    desk.lift(desk.hold(**about(CANDIDATE), name="claim-7"), **TO_LIFT)
    execute(database, "UPDATE memory SET hold = 'claim-7'")
    clock.step(days=1)
    desk.lift(desk.restrict(**about(CANDIDATE)), person_told=True, **TO_LIFT)
    desk.lift(desk.suppress(**about(CANDIDATE)), **TO_LIFT)
    desk.lift(desk.hold(**about(CANDIDATE), name="claim-8"), **TO_LIFT)
    assert execute(database, "SELECT hold FROM memory") == [("claim-7",)]
    with pytest.raises(OnHold, match="claim-7"):
        desk.erase(CANDIDATE, reason="asked to")


def test_what_is_restricted_may_be_forgotten(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.")
    desk.restrict(**about(CANDIDATE))
    assert forget(store).count == 1
    assert observe(store, "Applied anew.").state is State.RESTRICTED


# Hold


@ON
def test_a_hold_resists_every_way_to_erase_and_correct_and_nothing_at_all_is_changed(
    store: MemoryStore, desk: PrivacyDesk, database: Database, on: str, subtests: pytest.Subtests
) -> None:
    one, _ = observe(store, "Could start in May."), observe(store, "Prefers mornings.")
    observe(store, "In June.", subject=OTHER)
    placed = desk.hold(**about(CANDIDATE) if on == "subject" else about(memory=one), name="claim-7")
    assert (placed.name, placed.subject) == ("claim-7", CANDIDATE)
    before = snapshot(database)
    for name, act in erasing_acts(store, desk, one).items():
        with subtests.test(name):
            with pytest.raises(OnHold) as caught:
                act()
            assert caught.value.holds == ("claim-7",)
            assert "claim-7" in str(caught.value)
            assert snapshot(database) == before
    desk.lift(placed, **TO_LIFT)
    assert desk.erase(OTHER, reason="asked to", also=[one.memory_id]).others == (one.memory_id,)
    assert forget(store).count == 1


def erasing_acts(store: MemoryStore, desk: PrivacyDesk, on_hold: Memory) -> dict[str, Callable[[], Any]]:
    return {
        "forget": lambda: forget(store),
        "erase": lambda: desk.erase(CANDIDATE, reason="asked to"),
        "erase and suppress": lambda: desk.erase(CANDIDATE, reason="asked to", suppress=True),
        "erase with somebody else": lambda: desk.erase(OTHER, reason="asked to", also=[on_hold.memory_id]),
        "correct": lambda: desk.correct(on_hold, "In July.", author="user:zoe", reason="she says so"),
    }


@pytest.mark.parametrize("act", ["forget", "erase", "erase and suppress", "erase with somebody else", "correct"])
def test_each_of_two_holds_is_named_by_whatever_they_keep_from_being_done(
    store: MemoryStore, desk: PrivacyDesk, act: str
) -> None:
    one = observe(store, "Could start in May.")
    observe(store, "In June.", subject=OTHER)
    desk.hold(**about(CANDIDATE), name="court-1")
    desk.hold(**about(memory=one), name="claim-7")
    with pytest.raises(OnHold) as caught:
        erasing_acts(store, desk, one)[act]()
    assert caught.value.holds == ("claim-7", "court-1")
    assert all(name in str(caught.value) for name in caught.value.holds)


def test_an_erasure_names_the_holds_on_its_subject_and_on_what_was_chosen_with_it(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    observe(store, "Could start in May.")
    chosen = observe(store, "In June.", subject=OTHER)
    desk.hold(**about(CANDIDATE), name="court-1")
    desk.hold(**about(OTHER), name="claim-7")
    with pytest.raises(OnHold) as caught:
        desk.erase(CANDIDATE, reason="asked to", also=[chosen.memory_id])
    assert caught.value.holds == ("claim-7", "court-1")


def test_lifting_one_of_two_holds_leaves_the_others_name(store: MemoryStore, desk: PrivacyDesk, clock: Clock) -> None:
    observe(store, "Could start in May.")
    first = desk.hold(**about(CANDIDATE), name="claim-7")
    clock.step(days=1)
    second = desk.hold(**about(CANDIDATE), name="court-1")
    desk.lift(first, **TO_LIFT)
    assert [memory.hold for memory in store.held(CANDIDATE).memories] == ["court-1"]
    with pytest.raises(OnHold) as caught:
        forget(store)
    assert caught.value.holds == ("court-1",)
    desk.lift(second, **TO_LIFT)
    assert [memory.hold for memory in store.held(CANDIDATE).memories] == [None]
    assert forget(store).count == 1


def test_what_is_written_about_a_subject_on_hold_is_on_hold_from_its_first_moment(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    observe(store, "Could start in May.")
    placed = desk.hold(**about(CANDIDATE), name="claim-7")
    assert observe(store, "Prefers mornings.").hold == "claim-7"
    assert observe(store, "In June.", subject=OTHER).hold is None
    with pytest.raises(OnHold):
        forget(store)
    desk.lift(placed, **TO_LIFT)
    assert forget(store).count == 2


@ON
def test_what_is_on_hold_is_not_swept_when_it_has_expired(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, swept: Callable[..., Swept], on: str
) -> None:
    one = observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    observe(store, "In June.", subject=OTHER)
    rule = store.remember(**fact("We never start on Fridays."))
    placed = desk.hold(**about(CANDIDATE) if on == "subject" else about(memory=one), name="claim-7")
    desk.hold(**about(memory=rule), name="court-1")
    clock.step(days=91)
    for dry_run in (True, False):
        done = swept(dry_run=dry_run)
        assert (done.emptied, done.kept_by_hold, done.kept_by_restriction) == (1, 2, 0)
        assert done.holds == ("claim-7", "court-1")
    held = store.held(CANDIDATE)
    assert (held.memories[0].text, held.memories[0].state) == ("Could start in May.", State.EXPIRED)
    assert held.subject.label == "Zoë"
    desk.lift(placed, **TO_LIFT)
    assert (swept().emptied, swept().kept_by_hold) == (1, 1)


def test_a_hold_on_a_subject_keeps_its_tombstones_from_being_purged(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, swept: Callable[..., Swept], database: Database
) -> None:
    store.remember_many(observation("Could start in May.", subject=subject) for subject in (CANDIDATE, OTHER))
    assert [forget(store, subject).count for subject in (CANDIDATE, OTHER)] == [1, 1]
    observe(store, "Applied anew.")
    placed = desk.hold(**about(CANDIDATE), name="claim-7")
    clock.step(days=1096)
    for dry_run in (True, False):
        done = swept(dry_run=dry_run)
        assert (done.purged, done.kept_by_hold, done.holds) == (1, 1, ("claim-7",))
    assert len(store.held(CANDIDATE).memories) == 2
    assert store.held(OTHER).memories == ()
    desk.lift(placed, **TO_LIFT)
    assert swept().purged == 1
    assert len(rows(database, "memory")) == 1


@pytest.mark.parametrize("lost", ["forget", "correct"])
def test_a_replay_does_nothing_while_a_hold_keeps_what_has_to_go(
    open_store: OpenStore,
    open_desk: OpenDesk,
    clock: Clock,
    database: Database,
    cluster: Cluster,
    ledger_folder: Path,
    lost: str,
) -> None:
    store = open_store(clock=clock)
    one, _ = observe(store, "Could start in May."), observe(store, "In June.", subject=OTHER)
    close_engines()  # a database is only copied while nobody uses it
    with cloned(cluster, str(database.superuser.database)) as backup:
        clock.step(hours=1)
        gone, desk = open_store(clock=clock), open_desk(clock=clock)
        if lost == "forget":
            forget(gone)
            forget(gone, OTHER)
        else:
            desk.correct(one, "In July.", author="user:zoe", reason="she says so")
        path = desk.ledger().path
        assert path is not None
        restored = PrivacyDesk.open(
            "acme",
            by="user:ines",
            database_url=backup.application,
            embedder=None,
            clock=clock,
            settings=settings(memory_embedder="none"),
        )

        def replayed() -> int:
            engine = engine_for(backup.application)
            return replay(engine, path, folder=ledger_folder, by="user:ines", clock=clock).emptied

        placed = restored.hold(**about(CANDIDATE), name="claim-7")
        before = snapshot(backup)
        with pytest.raises(OnHold) as caught:
            replayed()
        assert caught.value.holds == ("claim-7",)
        assert snapshot(backup) == before
        restored.lift(placed, **TO_LIFT)
        assert replayed() == (2 if lost == "forget" else 1)
        assert rows(backup, "memory", "text LIKE 'Could%'") == []


def test_a_hold_that_cannot_be_is_refused_with_its_rule_and_changes_nothing(
    store: MemoryStore,
    open_store: OpenStore,
    desk: PrivacyDesk,
    clock: Clock,
    database: Database,
    subtests: pytest.Subtests,
) -> None:
    gone = observe(store, "Could start in May.")
    forget(store)
    emptied_one = observe(store, "In June.", subject=OTHER, expires_at=clock.now + timedelta(hours=1))
    clock.step(hours=2)
    sweep(engine_for(database.application), "acme", by="user:ines", clock=clock)
    here = observe(store, "In July.", subject=Subject("candidate", "c-9"))
    rule = store.remember(**fact("We never start on Fridays."))
    elsewhere = observe(open_store("acme-corp", clock=clock), "Could start in May.")
    desk.hold(**about(here.subject), name="claim-7")
    desk.hold(**about(memory=here), name="claim-7")
    desk.hold(**about(memory=rule), name="claim-7")
    unknown = {"reason": "claim", "memory_id": uuid4()}
    refused: dict[str, tuple[dict[str, Any], str, str, str]] = {
        "a tombstone": (about(memory=gone), "hold_is_on_what_has_text", "memory_id", "forgotten on 2026-11-02"),
        "swept": (about(memory=emptied_one), "hold_is_on_what_has_text", "memory_id", "swept on 2026-11-02"),
        "only tombstones": (about(CANDIDATE), "hold_is_on_what_has_text", "subject", "candidate c-81"),
        "nobody": (about(Subject("candidate", "c-0")), "hold_is_on_what_has_text", "subject", "candidate c-0"),
        "no memory": (unknown, "memory_exists", "memory_id", "no memory of this organisation"),
        "another's": (about(memory=elsewhere), "memory_exists", "memory_id", "no memory of this organisation"),
        "of another": ({**about(memory=here), "subject": OTHER}, "memory_exists", "memory_id", "about candidate c-8"),
        "on a subject twice": (
            about(here.subject),
            "measure_stands_once",
            "subject",
            "claim-7 stands since 2026-11-02",
        ),
        "on a memory twice": (about(memory=here), "measure_stands_once", "subject", "placed by user:ines"),
        "on a fact twice": (about(memory=rule), "measure_stands_once", "subject", "lift it first"),
    }
    before = snapshot(database)
    for name, (asked, broken, field, words) in refused.items():
        with subtests.test(name):
            caught = refusal(lambda asked=asked: desk.hold(**asked, name="claim-7"))
            assert (caught.rule, caught.field) == (broken, field)
            assert words in caught.reason
    with subtests.test("no name"):
        assert refusal(lambda: desk.hold(**about(here.subject))).rule == "hold_has_a_name"
    assert snapshot(database) == before


def test_a_restriction_that_cannot_be_is_refused_as_well(store: MemoryStore, desk: PrivacyDesk) -> None:
    gone = observe(store, "Could start in May.")
    forget(store)
    for asked in (about(memory=gone), about(CANDIDATE)):
        assert refusal(lambda asked=asked: desk.restrict(**asked)).rule == "restriction_is_on_what_has_text"
    observe(store, "Applied anew.")
    placed = desk.restrict(**about(CANDIDATE))
    assert refusal(lambda: desk.restrict(**about(CANDIDATE))).rule == "measure_stands_once"
    desk.lift(placed, person_told=True, **TO_LIFT)
    assert desk.restrict(**about(CANDIDATE)).stands


def test_a_suppression_is_about_a_subject_and_never_about_one_memory(store: MemoryStore, desk: PrivacyDesk) -> None:
    one = observe(store, "Could start in May.")
    refused = refusal(lambda: desk.suppress(**about(memory=one)))
    assert (refused.rule, refused.field) == ("suppression_is_about_a_subject", "memory_id")


@ON
@pytest.mark.parametrize("kind", [*MeasureKind])
def test_a_hold_written_by_hand_survives_the_placing_and_lifting_of_other_measures(
    store: MemoryStore, desk: PrivacyDesk, database: Database, kind: MeasureKind, on: str
) -> None:
    one = observe(store, "Could start in May.")
    execute(database, "UPDATE memory SET hold = 'court-1'")
    concerns = about(memory=one) if on == "memory" and kind is not MeasureKind.SUPPRESSION else about(CANDIDATE)
    acts = {"restriction": desk.restrict, "hold": desk.hold, "suppression": desk.suppress}
    placed = acts[kind](**concerns, name="claim-7")
    with pytest.raises(OnHold) as caught:
        forget(store)
    assert caught.value.holds == (("claim-7", "court-1") if kind is MeasureKind.HOLD else ("court-1",))
    desk.lift(placed, person_told=True, **TO_LIFT)
    assert store.held(CANDIDATE).memories[0].hold == "court-1"
    with pytest.raises(OnHold) as caught:
        forget(store)
    assert caught.value.holds == ("court-1",)


@ON
def test_of_a_hold_and_an_erasure_at_once_one_wins_and_nothing_is_half_done(
    open_store: OpenStore, open_desk: OpenDesk, database: Database, side: ThreadPoolExecutor, on: str
) -> None:
    won = set()
    for turn in range(8):
        person = Subject("candidate", f"c-{turn}")
        stored = open_store().remember_many(observation(f"{turn} {part}", subject=person) for part in range(10))
        together = Barrier(2)

        def placed(person: Subject = person, one: Memory = stored[3], together: Barrier = together) -> Measure:
            desk = open_desk()
            together.wait(WAIT_S)
            return desk.hold(**about(person) if on == "subject" else about(memory=one), name="claim-7")

        def erased(person: Subject = person, together: Barrier = together, turn: int = turn) -> Erasure:
            desk = open_desk()
            together.wait(WAIT_S)
            return desk.erase(person, reason="asked to", suppress=turn % 2 == 0)

        holding, erasing = side.submit(placed), side.submit(erased)
        held = open_store().held
        if isinstance(holding.exception(WAIT_S), Refused):
            assert holding.exception().rule == "hold_is_on_what_has_text"  # type: ignore[union-attr]
            assert outcome(erasing).count == 10
            assert held(person).with_text == 0
            won.add("erasure")
        else:
            assert outcome(holding).stands
            with pytest.raises(OnHold) as caught:
                outcome(erasing)
            assert caught.value.holds == ("claim-7",)
            assert {memory.text is None for memory in held(person).memories} == {False}
            on_hold = [memory.hold for memory in held(person).memories if memory.hold]
            assert on_hold == ["claim-7"] * (10 if on == "subject" else 1)
            assert [one.kind for one in open_desk().measures(person)] == [MeasureKind.HOLD]
            won.add("hold")
    assert won
    assert rows(database, "memory", "hold IS NOT NULL AND text IS NULL") == []


@pytest.mark.parametrize("first", ["hold", "erasure"])
def test_of_a_hold_on_a_fact_about_nobody_and_an_erasure_that_takes_it_along_the_first_wins_alone(
    store: MemoryStore, desk: PrivacyDesk, database: Database, side: ThreadPoolExecutor, first: str
) -> None:
    observe(store, "Could start in May.")
    rule = store.remember(**fact("Zoë never starts on Fridays."))
    acts: dict[str, Callable[[], Any]] = {
        "hold": lambda: desk.hold(**about(memory=rule), name="claim-7"),
        "erasure": lambda: desk.erase(CANDIDATE, reason="asked to", also=[rule.memory_id]),
    }
    order = [first, *({*acts} - {first})]
    running: dict[str, Future[Any]] = {}
    with held_up(database, "SELECT 1 FROM memory WHERE memory_id = %s FOR UPDATE", (rule.memory_id,)):
        for number, name in enumerate(order, start=1):
            running[name] = side.submit(acts[name])
            await_lock_waits(database, number)
    if first == "hold":
        assert outcome(running["hold"]).stands
        assert isinstance(running["erasure"].exception(WAIT_S), Refused)
        assert len(rows(database, "memory", "text IS NOT NULL")) == 2
        assert rows(database, "erasure") == []
    else:
        assert outcome(running["erasure"]).others == (rule.memory_id,)
        assert isinstance(running["hold"].exception(WAIT_S), Refused)
        assert rows(database, "memory", "text IS NOT NULL") == []
        assert rows(database, "measure") == []


# Suppression


@pytest.fixture
def suppressed(store: MemoryStore, desk: PrivacyDesk, clock: Clock) -> Callable[[str], str]:
    """Suppress what is new about the candidate in one of the ways there are; returns what a refusal then names."""

    def by(way: str) -> str:
        observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
        if way == "objection":
            reference = request(desk, "objection", clock)
            desk.suppress(**about(CANDIDATE), reference=reference)
            return reference
        if way == "erasure for a request":
            reference = request(desk, "erasure", clock)
            desk.register.confirm_identity(desk.register.request(reference), "known in person")
            desk.erase(CANDIDATE, reason="asked to", reference=reference, suppress=True)
            return reference
        return f"erasure:{desk.erase(CANDIDATE, reason='asked to', suppress=True).erasure_id}"

    return by


WAYS = pytest.mark.parametrize("way", ["objection", "erasure for a request", "erasure"])


def loaded(database: Database, clock: Clock, items: Sequence[dict[str, Any]], **options: Any) -> Imported:
    lines = [
        {**item, "org_id": "acme", "subject": {"type": item["subject"].type, "id": item["subject"].id}}
        for item in items
    ]
    file = io.BytesIO("".join(json.dumps(line) + "\n" for line in lines).encode())
    return import_lines(engine_for(database.application), read_lines(file, org_id=None), clock=clock, **options)


@WAYS
def test_nothing_new_is_stored_about_a_suppressed_subject_and_the_refusal_names_why(
    store: MemoryStore,
    desk: PrivacyDesk,
    clock: Clock,
    database: Database,
    suppressed: Callable[[str], str],
    way: str,
) -> None:
    named = suppressed(way)
    ((kind, name),) = [(one.kind, one.name) for one in desk.measures(CANDIDATE)]
    assert (kind, name) == (MeasureKind.SUPPRESSION, named)
    items = [observation("In June.", subject=OTHER), observation("Prefers mornings."), observation("Prefers May.")]
    before = snapshot(database)
    alone = refusal(lambda: store.remember(**items[1]))
    in_bulk = refusal(lambda: store.remember_many(items))
    with pytest.raises(LineRefused) as from_a_file:
        loaded(database, clock, items)
    for refused in (alone, in_bulk, from_a_file.value):
        assert (refused.rule, refused.field) == (SUPPRESSED, "subject")
        assert named in str(refused)
        assert "candidate c-81" in str(refused)
    assert (alone.position, in_bulk.position, from_a_file.value.line, from_a_file.value.others) == (None, 1, 2, 1)
    assert snapshot(database) == before
    done = loaded(database, clock, items, skip_bad=True)
    assert [(fault.number, fault.refusal.rule) for fault in done.faults] == [(2, SUPPRESSED), (3, SUPPRESSED)]
    assert all(named in fault.refusal.reason for fault in done.faults)
    assert [one.text for one in done.organisations["acme"].memories] == ["In June."]


@WAYS
def test_others_are_written_about_as_before_and_the_subject_is_again_once_it_is_lifted(
    store: MemoryStore, open_store: OpenStore, desk: PrivacyDesk, suppressed: Callable[[str], str], way: str
) -> None:
    suppressed(way)
    for subject in (OTHER, Subject("referee", "c-81"), Subject("candidate", "C-81"), Subject("candidate", "c-811")):
        assert observe(store, "Could start in May.", subject=subject).text
    assert store.remember(**fact("We never start on Fridays.")).text
    assert observe(open_store("acme-corp"), "Could start in May.").text
    (placed,) = desk.measures()
    desk.lift(placed, **TO_LIFT)
    assert observe(store, "Applied anew.").state is State.LIVE
    assert store.remember_many([observation("Prefers mornings.")])[0].text


def test_an_exact_repeat_about_a_suppressed_subject_is_refused_and_what_is_held_stays_in_use(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    observe(store, "Could start in May.")
    desk.suppress(**about(CANDIDATE))
    assert refusal(lambda: observe(store, "Could start in May.")).rule == SUPPRESSED
    assert refusal(lambda: store.remember_many([observation("Could start in May.")])).rule == SUPPRESSED
    (held,) = store.held(CANDIDATE).memories
    assert (held.seen_count, held.state) == (1, State.LIVE)
    assert recalled(store) == [{"Could start in May."}] * 4


def test_facts_about_a_suppressed_subject_that_is_no_person_are_refused_also_before_there_is_any(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    placed = desk.suppress(**about(JOB), name="matter-9")
    refused = refusal(lambda: store.remember(**fact("Needs two interviewers.", subject=JOB)))
    assert refused.rule == SUPPRESSED
    assert "matter-9" in refused.reason
    desk.lift(placed, **TO_LIFT)
    assert store.remember(**fact("Needs two interviewers.", subject=JOB)).text


def test_an_erasure_suppresses_once_where_a_suppression_stands(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.")
    placed = desk.suppress(**about(CANDIDATE), name="matter-9")
    desk.erase(CANDIDATE, reason="asked to", suppress=True)
    assert desk.measures(CANDIDATE) == [placed]
    assert refusal(lambda: desk.suppress(**about(CANDIDATE))).rule == "measure_stands_once"


def test_a_write_that_began_before_a_suppression_and_would_commit_after_it_is_refused(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor, ledger_folder: Path
) -> None:
    observe(open_store(), "In June.", subject=OTHER)
    items = [observation("Other.", subject=OTHER), observation("More.")]
    with held_up(database, "LOCK TABLE organisation_setting IN ACCESS EXCLUSIVE MODE"):
        alone = side.submit(observe, open_store(), "New.")
        in_bulk = side.submit(open_store().remember_many, items)
        await_lock_waits(database, 2)
        suppression(database, ledger_folder)
    for write in (alone, in_bulk):
        with pytest.raises(Refused) as caught:
            outcome(write)
        assert caught.value.rule == SUPPRESSED
    assert execute(database, "SELECT text FROM memory") == [("In June.",)]


def suppression(database: Database, folder: Path) -> Measure:
    return place(
        engine_for(database.application),
        "acme",
        kind=MeasureKind.SUPPRESSION,
        by="user:ines",
        reason="objected",
        folder=folder,
        today=date(2026, 11, 2),
        subject=CANDIDATE,
    )


@pytest.mark.parametrize("kind", [*MeasureKind])
def test_a_measure_waits_for_a_write_that_is_under_way_and_then_reaches_what_it_wrote(
    open_store: OpenStore, open_desk: OpenDesk, database: Database, side: ThreadPoolExecutor, kind: MeasureKind
) -> None:
    old = observe(open_store(), "Could start in May.")
    desk = open_desk()
    act = {"restriction": desk.restrict, "hold": desk.hold, "suppression": desk.suppress}[kind]
    with held_up(database, "SELECT 1 FROM memory WHERE memory_id = %s FOR UPDATE", (old.memory_id,)):
        items = [observation("New."), observation("Could start in May.")]
        write = side.submit(open_store().remember_many, items)
        await_lock_waits(database, 1)
        placing = side.submit(lambda: act(**about(CANDIDATE), name="claim-7"))
        await_lock_waits(database, 2)
    assert len(outcome(write)) == 2
    placed = outcome(placing)
    held = open_store().held(CANDIDATE).memories
    assert len(held) == 2
    assert {one.hold for one in held} == {"claim-7" if kind is MeasureKind.HOLD else None}
    restricted_at = placed.placed_at if kind is MeasureKind.RESTRICTION else None
    assert {one.restricted_at for one in held} == {restricted_at}


def test_however_writes_fall_none_about_a_suppressed_subject_is_stored_after_the_suppression(
    open_store: OpenStore, open_desk: OpenDesk, database: Database
) -> None:
    wrote, failed = Event(), []

    def write(number: int) -> int:
        store, stored = open_store(), 0
        try:
            for turn in range(2000):
                items = [observation(f"{number} {turn} {part}") for part in range(2)]
                stored += len(store.remember_many(items) if number % 2 else [store.remember(**items[0])])
                wrote.set()
        except Refused as refused:
            failed.append(refused.rule)
        return stored

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, number) for number in range(4)]
        assert wrote.wait(WAIT_S)
        open_desk().suppress(**about(CANDIDATE))
        there = len(rows(database, "memory"))
        stored = [outcome(future) for future in writing]
    assert failed == [SUPPRESSED] * 4
    assert sum(stored) == there == len(rows(database, "memory"))


# Who, why, until when


PLACING: dict[str, tuple[dict[str, Any], str, str]] = {
    "no reason": ({"reason": ""}, "reason_is_given", "reason"),
    "a blank reason": ({"reason": " \u200b\n"}, "reason_is_given", "reason"),
    "a missing reason": ({"reason": None}, "reason_is_given", "reason"),
    "501 characters": ({"reason": "a" * 501}, "reason_length", "reason"),
    "a NUL": ({"reason": "a\x00b"}, "reason_is_storable", "reason"),
    "a surrogate": ({"reason": "a\ud800"}, "reason_is_storable", "reason"),
    "a name with a space": ({"name": "claim 7"}, "identifier_shape", "name"),
    "an empty name": ({"name": ""}, "identifier_is_given", "name"),
    "yesterday": ({"review_on": date(2026, 11, 1)}, "review_on_is_not_past", "review_on"),
    "eleven years": ({"review_on": date(2037, 11, 2)}, "review_on_within_ten_years", "review_on"),
    "a moment": ({"review_on": datetime(2026, 12, 1)}, "review_on_is_a_date", "review_on"),
    "words": ({"review_on": "2026-12-01"}, "review_on_is_a_date", "review_on"),
    "no request": ({"reference": "R-2026-0009"}, "request_exists", "reference"),
    "an odd reference": ({"reference": 7}, "request_exists", "reference"),
    "no subject": ({"subject": "candidate c-81"}, "subject_is_a_subject", "subject"),
    "no identifier": ({"memory_id": "7"}, "memory_exists", "memory_id"),
}


def test_a_measure_that_does_not_say_why_about_what_and_until_when_is_refused_and_changes_nothing(
    store: MemoryStore, desk: PrivacyDesk, database: Database, subtests: pytest.Subtests
) -> None:
    observe(store, "Could start in May.")
    before = snapshot(database)
    for case, (changes, rule, field) in PLACING.items():
        for act in (desk.restrict, desk.hold, *(() if "memory_id" in changes else (desk.suppress,))):
            with subtests.test(case, act=act.__name__):
                asked = {**about(CANDIDATE), "name": "claim-7", **changes}
                refused = refusal(lambda act=act, asked=asked: act(**asked))
                assert (refused.rule, refused.field) == (rule, field)
    assert snapshot(database) == before


def test_a_measure_is_about_something(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.")
    for act in (desk.restrict, desk.hold, desk.suppress):
        assert refusal(lambda act=act: act("claim", name="claim-7")).rule == "measure_is_about_a_subject_or_a_memory"


@pytest.mark.parametrize("by", ["", None, "user ines", "user:ines\n"])
def test_nobody_places_or_lifts_a_measure_without_a_name(
    store: MemoryStore, desk: PrivacyDesk, open_desk: OpenDesk, database: Database, ledger_folder: Path, by: Any
) -> None:
    observe(store, "Could start in May.")
    assert refusal(lambda: open_desk(by=by)).field == "by"
    engine = engine_for(database.application)
    asked = {"kind": MeasureKind.HOLD, "folder": ledger_folder, "today": date(2026, 11, 2), "name": "claim-7"}
    refused = refusal(lambda: place(engine, "acme", by=by, **asked, **about(CANDIDATE)))
    assert (refused.rule, refused.field) == ("identifier_shape" if by else "identifier_is_given", "by")
    assert desk.measures() == []


def test_lifting_says_why_and_is_done_once(
    store: MemoryStore, desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in May.")
    placed = desk.hold(**about(CANDIDATE), name="claim-7")
    before = snapshot(database)
    for case in ("no reason", "a blank reason", "a missing reason", "501 characters", "a NUL", "a surrogate"):
        changes, rule, _ = PLACING[case]
        assert refusal(lambda changes=changes: desk.lift(placed, **changes)).rule == rule
    assert snapshot(database) == before
    open_desk(by="user:omar", clock=clock).lift(placed, **TO_LIFT)
    again = refusal(lambda: desk.lift(placed, **TO_LIFT))
    assert again.rule == "it_is_as_it_was_looked_at"
    assert "user:omar" in again.reason


def test_of_two_officers_who_lift_a_measure_at_once_one_does(
    store: MemoryStore, desk: PrivacyDesk, open_desk: OpenDesk, side: ThreadPoolExecutor, database: Database
) -> None:
    observe(store, "Could start in May.")
    placed = desk.hold(**about(CANDIDATE), name="claim-7")
    together = Barrier(4)

    def lift(number: int) -> str:
        officer = open_desk(by=f"user:{number}")
        together.wait(WAIT_S)
        try:
            return officer.lift(placed, **TO_LIFT).lifted_by or ""
        except Refused as refused:
            return refused.rule

    done = sorted(side.map(lift, range(4)))
    assert done[:3] == ["it_is_as_it_was_looked_at"] * 3
    assert desk.measures(CANDIDATE)[0].lifted_by == done[3]
    assert execute(database, "SELECT count(*) FROM trail WHERE act = 'lift hold'") == [(1,)]
    assert execute(database, "SELECT count(*) FROM ledger WHERE act = 'lift'") == [(1,)]


def test_of_two_officers_who_place_the_same_measure_at_once_one_does(
    store: MemoryStore, open_desk: OpenDesk, side: ThreadPoolExecutor, database: Database
) -> None:
    rule = store.remember(**fact("We never start on Fridays."))
    together = Barrier(4)

    def hold(number: int) -> str:
        officer = open_desk(by=f"user:{number}")
        together.wait(WAIT_S)
        try:
            return officer.hold(**about(memory=rule), name="claim-7").by
        except Refused as refused:
            return refused.rule

    done = [one for one in side.map(hold, range(4)) if one.startswith("user:")]
    assert len(done) == 1
    assert execute(database, "SELECT by FROM measure") == [(done[0],)]


def test_measures_whose_day_of_review_has_come_are_counted_until_they_are_lifted(
    store: MemoryStore, desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock
) -> None:
    observe(store, "Could start in May.")
    today = clock.now.date()
    restricted = desk.restrict(**about(CANDIDATE), review_on=today + timedelta(days=3))
    desk.hold(**about(CANDIDATE), name="claim-7", review_on=today)
    desk.suppress(**about(CANDIDATE))
    assert restricted.review_on == today + timedelta(days=3)
    assert desk.due().measures_to_review == 1
    clock.step(days=2)
    assert desk.due().measures_to_review == 1
    clock.step(days=1)
    assert desk.due().measures_to_review == 2
    assert {one.state for one in store.held(CANDIDATE).memories} == {State.RESTRICTED}  # nothing lifts itself
    desk.lift(restricted, person_told=True, **TO_LIFT)
    assert desk.due().measures_to_review == 1
    assert open_desk("acme-corp", clock=clock).due().measures_to_review == 0


def test_a_measure_for_somebody_elses_request_is_refused(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, subtests: pytest.Subtests
) -> None:
    one = observe(store, "Could start in May.")
    observe(store, "In June.", subject=OTHER)
    reference = request(desk, "restriction", clock, OTHER)
    for name, asked in {"subject": about(CANDIDATE), "memory": about(memory=one)}.items():
        with subtests.test(name):
            refused = refusal(lambda asked=asked: desk.restrict(**asked, reference=reference))
            assert (refused.rule, refused.field) == ("request_is_about_the_subject", "reference")


@ON
@pytest.mark.parametrize("kind", [*MeasureKind])
def test_each_placing_and_lifting_is_a_line_of_the_trail_and_an_entry_of_the_ledger(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock, database: Database, kind: MeasureKind, on: str
) -> None:
    one, _ = observe(store, "Markerquokka may start."), observe(store, "Otherquokka may not.")
    single = on == "memory" and kind is not MeasureKind.SUPPRESSION
    reference = request(desk, "objection", clock)
    act = {"restriction": desk.restrict, "hold": desk.hold, "suppression": desk.suppress}[kind]
    placed = act(**about(memory=one) if single else about(CANDIDATE), reference=reference)
    assert (placed.name, placed.request_reference, placed.by) == (reference, reference, "user:ines")
    assert (placed.reason, placed.placed_at) == ("claim of 3 November", clock.now)
    clock.step(days=1)
    desk.lift(placed, reason="settled", person_told=True)
    lifted, begun = desk.trail(reference=str(placed.measure_id))
    reached = None if kind is MeasureKind.SUPPRESSION else 1 if single else 2
    assert (begun.act, begun.by, begun.subject, begun.count) == (kind.value, "user:ines", CANDIDATE, reached)
    assert (begun.reason, begun.at) == ("claim of 3 November", placed.placed_at)
    assert (lifted.act, lifted.by, lifted.subject, lifted.reason) == (f"lift {kind}", "user:ines", CANDIDATE, "settled")
    assert lifted.at == clock.now
    written = execute(
        database,
        "SELECT act, subject_id, memory_ids, name, reference, by, code, trail_number FROM ledger ORDER BY number",
    )
    memory_ids: list[UUID] = [one.memory_id] if single else []
    code = "person_told" if kind is MeasureKind.RESTRICTION else "lift"
    who = ("user:ines",)
    assert written == [
        (kind.value, "c-81", memory_ids, reference, placed.measure_id, *who, "request", begun.number),
        ("lift", "c-81", [], reference, placed.measure_id, *who, code, lifted.number),
    ]
    outside = desk.ledger().path
    assert outside is not None
    entries = [json.loads(line) for line in outside.read_text().splitlines()[1:]]
    assert [(entry["act"], entry["name"]) for entry in entries] == [(kind.value, reference), ("lift", reference)]
    assert "quokka" not in outside.read_text()
    assert traces(database, "quokka") == ["memory"]


def test_another_organisation_sees_no_measure_and_lifts_none(
    store: MemoryStore, desk: PrivacyDesk, open_store: OpenStore, open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in May.")
    placed = [
        desk.restrict(**about(CANDIDATE), review_on=clock.now.date()),
        desk.hold(**about(CANDIDATE), name="claim-7"),
        desk.suppress(**about(CANDIDATE)),
    ]
    theirs, their_desk = open_store("acme-corp", clock=clock), open_desk("acme-corp", clock=clock)
    assert observe(theirs, "Could start in May.").state is State.LIVE
    assert (their_desk.measures(), their_desk.measures(CANDIDATE), their_desk.trail()) == ([], [], [])
    before = snapshot(database)
    for measure in placed:
        refused = refusal(lambda measure=measure: their_desk.lift(measure, person_told=True, **TO_LIFT))
        assert (refused.rule, refused.field) == ("measure_exists", "measure_id")
    assert snapshot(database) == before
    assert forget(theirs).count == 1
    assert [measure.measure_id for measure in desk.measures()] == [measure.measure_id for measure in placed]


def test_holds_on_a_fact_about_nobody_that_are_placed_and_lifted_at_once_leave_the_row_as_they_stand(
    store: MemoryStore, open_desk: OpenDesk, database: Database
) -> None:
    (memory,) = store.remember_many([fact("We never schedule on Fridays.")])
    desk = open_desk()
    for turn in range(12):
        placed = desk.hold("one case", memory_id=memory.memory_id, name=f"A{turn}")
        start = Barrier(2)

        def lift(placed: Measure = placed, start: Barrier = start) -> None:
            start.wait()
            open_desk(by="user:omar").lift(placed, reason="settled")

        def hold(turn: int = turn, start: Barrier = start) -> Measure:
            start.wait()
            return open_desk().hold("another case", memory_id=memory.memory_id, name=f"B{turn}")

        with ThreadPoolExecutor(2) as officers:
            lifting, holding = officers.submit(lift), officers.submit(hold)
            lifting.result()
            stands = holding.result()
        assert execute(database, "SELECT hold FROM memory") == [(f"B{turn}",)]
        desk.lift(stands, reason="settled")
        assert execute(database, "SELECT hold FROM memory") == [(None,)]
