from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from fakes import CANDIDATE, Clock, HashedWords, fact, observation, observe
from rows import await_lock_waits, counts, emptied, execute, rows, snapshot, traces

from memory_core import MemoryStore, OnHold, Refused, State, Subject
from memory_core.db.engine import engine_for
from memory_core.db.locks import _key
from memory_core.privacy import PrivacyDesk
from memory_core.rights import IdentityMethod, Swept
from memory_core.sweeping import sweep

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

OTHER = Subject("candidate", "c-82")
THIRD = Subject("candidate", "c-83")
DEADLOCK_IS_FOUND_S = 30  # every wait for a result is longer than PostgreSQL's search for deadlocks


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
def side() -> Iterator[ThreadPoolExecutor]:
    """Threads in which something waits while the test goes on."""
    with ThreadPoolExecutor(4) as threads:
        yield threads


def swept(database: Database, clock: Clock | None, **options: Any) -> Swept:
    return sweep(engine_for(database.application), "acme", by="user:ines", clock=clock, **options)


def numbers(result: Swept) -> tuple[int, int, int, int]:
    return result.emptied, result.purged, result.kept_by_hold, result.kept_by_restriction


def lines(database: Database) -> list[tuple[Any, ...]]:
    return execute(database, "SELECT act, count, by FROM trail ORDER BY number")


def outcome(future: Future[Any]) -> Any:
    return future.result(timeout=DEADLOCK_IS_FOUND_S)


MANY = """
    INSERT INTO memory (org_id, memory_id, kind, origin, author, run_id, subject_type, subject_id, text, text_sha256,
                        created_at, expires_at, seen_count, last_seen_at, last_seen_run_id)
    SELECT 'acme', gen_random_uuid(), 'observation', 'inference', 'agent:screening', 'r-1', 'candidate', 'c-' || number %% 10,
           'sentence ' || number, sha256(convert_to('sentence ' || number, 'UTF8')),
           %(at)s, %(at)s + interval '1 day', 1, %(at)s, 'r-1'
    FROM generate_series(1, %(number)s) AS number
"""


def many(database: Database, clock: Clock, number: int) -> None:
    execute(database, "INSERT INTO organisation (org_id) VALUES ('acme') ON CONFLICT DO NOTHING")
    execute(database, MANY, {"at": clock.now - timedelta(days=2), "number": number})


# What is emptied


def test_what_has_expired_loses_text_vector_words_and_dispute_and_keeps_its_provenance(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    named = Subject("candidate", "c-81", "Label4b7e", ("Alias4b7e",))
    memory = observe(store, "Text4b7e.", subject=named, source="msg-1")
    store.recall("Text4b7e?", run_id="r-2")
    desk.dispute(memory, "Words4b7e.")
    kept = observe(store, "Kept for longer.", subject=OTHER, expires_at=clock.now + timedelta(days=200))
    provenance = (
        "SELECT kind, origin, author, run_id, source, subject_type, subject_id, created_at, expires_at FROM memory"
    )
    before = execute(database, f"{provenance} ORDER BY memory_id"), rows(database, "disclosure")
    (vector,) = execute(database, "SELECT embedding::text FROM memory WHERE memory_id = %s", (memory.memory_id,))[0]
    clock.step(days=90)  # the moment of expiry itself counts
    assert numbers(swept(database, clock)) == (1, 0, 0, 0)
    for word in ("Text4b7e", "Label4b7e", "Alias4b7e", "Words4b7e"):
        assert traces(database, word) == []
    assert vector not in str(snapshot(database))
    assert (execute(database, f"{provenance} ORDER BY memory_id"), rows(database, "disclosure")) == before
    (tombstone,) = store.held(CANDIDATE).memories
    assert (tombstone.state, tombstone.swept_at, tombstone.forgotten_at) == (State.SWEPT, clock.now, None)
    assert tombstone.disclosures
    assert store.recall("kept?", run_id="r-3").memories[0].memory.memory_id == kept.memory_id
    assert lines(database)[-2:] == [("sweep", 1, "user:ines"), ("look", 1, "unnamed")]


def test_what_has_not_expired_is_left_byte_for_byte(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    store.remember(**fact("We never schedule on Fridays."))
    clock.step(days=89, hours=23)
    before = snapshot(database)
    assert numbers(swept(database, clock)) == (0, 0, 0, 0)
    assert snapshot(database) == before  # and a sweep of nothing is no line


def test_a_directory_entry_goes_with_the_last_text_about_its_subject(
    store: MemoryStore, database: Database, clock: Clock
) -> None:
    named = Subject("candidate", "c-81", "Zoë", ("Zoe",))
    observe(store, "Could start in May.", subject=named)
    observe(store, "Prefers mornings.", expires_at=clock.now + timedelta(days=100))
    observe(store, "Knows her well.", subject=Subject("candidate", "c-82", "Maria"))
    clock.step(days=91)
    swept(database, clock)
    assert execute(database, "SELECT subject_id FROM directory") == [("c-81",)]
    clock.step(days=10)
    swept(database, clock)
    assert rows(database, "directory") == []


def test_only_the_organisation_that_is_swept_is_touched(
    store: MemoryStore, open_store: OpenStore, database: Database, clock: Clock
) -> None:
    observe(store, "Could start in May.")
    observe(open_store("acme-corp", clock=clock), "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    clock.step(days=91)
    before = [rows(database, table, "org_id = 'acme-corp'") for table in ("memory", "directory")]
    assert numbers(swept(database, clock)) == (1, 0, 0, 0)
    assert [rows(database, table, "org_id = 'acme-corp'") for table in ("memory", "directory")] == before


def test_thousands_are_emptied_in_portions_that_are_each_on_record(database: Database, clock: Clock) -> None:
    many(database, clock, 2500)
    told: list[tuple[int, int]] = []
    result = swept(database, clock, progress=lambda done, of: told.append((done, of)))
    assert numbers(result) == (2500, 0, 0, 0)
    assert lines(database) == [("sweep", count, "user:ines") for count in (1000, 1000, 500)]
    assert told == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert execute(database, "SELECT count(*), count(text), count(DISTINCT swept_at) FROM memory") == [(2500, 0, 1)]


def test_a_sweep_that_is_interrupted_keeps_what_it_did_on_record_and_goes_on_later(
    database: Database, open_desk: OpenDesk, clock: Clock
) -> None:
    many(database, clock, 2500)

    def stop(done: int, of: int) -> None:
        if done == 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(database, clock, progress=stop)
    assert execute(database, "SELECT count(*) FROM memory WHERE swept_at IS NOT NULL") == [(2000,)]
    assert lines(database) == [("sweep", 1000, "user:ines")] * 2
    assert numbers(swept(database, clock)) == (500, 0, 0, 0)
    assert open_desk(clock=clock).verify_trail().broken is None


def test_what_is_restricted_or_on_hold_is_kept_and_counted(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    both, restricted, free = (observe(store, f"sentence {number}") for number in range(3))
    observe(store, "On hold.", subject=OTHER)
    observe(store, "Restricted.", subject=THIRD)
    desk.hold("court case", memory_id=both.memory_id, name="claim-7")
    desk.restrict("contested", memory_id=both.memory_id)
    desk.restrict("contested", memory_id=restricted.memory_id)
    hold = desk.hold("court case", subject=OTHER, name="claim-8")
    restriction = desk.restrict("contested", subject=THIRD)
    clock.step(days=91)
    kept = rows(database, "memory", f"memory_id <> '{free.memory_id}'")
    for dry_run in (True, False):
        assert numbers(swept(database, clock, dry_run=dry_run)) == (1, 0, 2, 2)
        assert rows(database, "memory", f"memory_id <> '{free.memory_id}'") == kept
    desk.lift(hold, reason="settled")
    desk.lift(restriction, reason="it was right", person_told=True)
    assert numbers(swept(database, clock)) == (2, 0, 1, 1)


def test_a_dry_run_counts_the_same_and_changes_nothing(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Long gone.", subject=THIRD)
    desk.erase(THIRD, reason="asked to")
    clock.step(days=1096)
    many(database, clock, 1200)
    observe(store, "On hold.", subject=OTHER, expires_at=clock.now + timedelta(hours=1))
    desk.hold("court case", subject=OTHER, name="claim-8")
    clock.step(days=1)
    before = snapshot(database)
    told: list[Any] = []
    dry = swept(database, clock, dry_run=True, progress=lambda *done: told.append(done))
    assert snapshot(database) == before
    assert (dry.dry_run, told) == (True, [])
    assert numbers(dry) == (1200, 1, 1, 0)
    assert replace(dry, dry_run=False) == swept(database, clock)


# What is deleted


def tombstones_of(store: MemoryStore, desk: PrivacyDesk, clock: Clock) -> tuple[UUID, UUID, UUID]:
    """Leave a tombstone of an erasure and one of a sweep, both shown to a run, and one that is a year younger."""
    forgotten = observe(store, "Forgotten.")
    expired = observe(store, "Expired.", subject=OTHER)
    store.recall("when?", run_id="r-2")
    desk.erase(CANDIDATE, reason="asked to")
    return forgotten.memory_id, expired.memory_id, observe(store, "Younger.", subject=THIRD).memory_id


def test_tombstones_are_deleted_with_their_disclosures_when_their_own_retention_is_over(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    forgotten, expired, younger = tombstones_of(store, desk, clock)
    clock.step(days=90)
    assert numbers(swept(database, clock)) == (2, 0, 0, 0)
    assert {one for (one,) in execute(database, "SELECT memory_id FROM disclosure")} == {forgotten, expired}
    execute(database, "UPDATE memory SET swept_at = swept_at + interval '300 days' WHERE memory_id = %s", (younger,))
    clock.step(days=1005)  # 1,095 since the erasure: not over before the next moment
    assert numbers(swept(database, clock)) == (0, 0, 0, 0)
    clock.step(seconds=1)
    assert numbers(swept(database, clock)) == (0, 1, 0, 0)
    assert {one for (one,) in execute(database, "SELECT memory_id FROM memory")} == {expired, younger}
    clock.step(days=90)
    assert numbers(swept(database, clock)) == (0, 1, 0, 0)
    assert execute(database, "SELECT memory_id FROM memory") == [(younger,)]
    assert counts(database).get("disclosure") is None
    assert counts(database)["recall"] == 1
    assert lines(database)[-2:] == [("purge", 1, "user:ines")] * 2


def test_the_organisations_own_retention_of_tombstones_is_kept(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Forgotten.")
    desk.erase(CANDIDATE, reason="asked to")
    desk.change_settings(replace(desk.settings(), tombstone_days=365))
    execute(
        database,
        "UPDATE memory SET created_at = created_at - interval '400 days', "
        "expires_at = expires_at - interval '400 days', forgotten_at = forgotten_at - interval '364 days'",
    )
    assert numbers(swept(database, clock)) == (0, 0, 0, 0)
    execute(database, "UPDATE memory SET forgotten_at = forgotten_at - interval '2 days'")
    assert numbers(swept(database, clock)) == (0, 1, 0, 0)
    assert rows(database, "memory") == []


def test_a_hold_on_a_subject_keeps_its_tombstones_too(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    for subject in (CANDIDATE, OTHER):
        observe(store, "Forgotten.", subject=subject)
        desk.erase(subject, reason="asked to")
        observe(store, "Written since.", subject=subject)
    hold = desk.hold("court case", subject=CANDIDATE, name="claim-7")
    clock.step(days=1096)
    for dry_run in (True, False):
        assert numbers(swept(database, clock, dry_run=dry_run)) == (1, 1, 1, 0)
    assert execute(database, "SELECT count(*) FROM memory WHERE subject_id = 'c-81'") == [(2,)]
    desk.lift(hold, reason="settled")
    assert numbers(swept(database, clock)) == (1, 1, 0, 0)


def test_more_than_a_thousand_tombstones_are_deleted_in_portions(database: Database, clock: Clock) -> None:
    many(database, clock, 1300)
    swept(database, clock)
    clock.step(days=1096)
    assert numbers(swept(database, clock)) == (0, 1300, 0, 0)
    assert lines(database)[-2:] == [("purge", 1000, "user:ines"), ("purge", 300, "user:ines")]
    assert rows(database, "memory") == []


def test_a_delete_by_the_applications_role_reaches_no_memory_with_text(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    store.remember_many(observation(f"sentence {number}") for number in range(5))
    restricted = observe(store, "Restricted.", subject=OTHER)
    desk.restrict("contested", memory_id=restricted.memory_id)
    store.recall("sentence?", run_id="r-2")
    observe(store, "Forgotten.", subject=THIRD)
    desk.erase(THIRD, reason="asked to")
    clock.step(days=91)  # what has expired and has text is no tombstone either
    before = rows(database, "memory", "text IS NOT NULL"), rows(database, "disclosure")
    with database.connect(database.application) as connection:
        connection.execute("SELECT set_config('memory.org_id', 'acme', true)")
        assert connection.execute("DELETE FROM disclosure").rowcount == 0
        assert connection.execute("DELETE FROM memory").rowcount == 1
    assert (rows(database, "memory", "text IS NOT NULL"), rows(database, "disclosure")) == before
    with database.connect(database.application) as connection:
        connection.execute("SELECT set_config('memory.org_id', 'acme', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("TRUNCATE memory CASCADE")
    with database.connect(database.application) as connection:
        assert connection.execute("DELETE FROM memory").rowcount == 0  # no organisation, no row


def test_who_asked_goes_from_a_request_that_was_closed_long_ago(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Could start in May.", expires_at=clock.now + timedelta(days=365))
    register = desk.register
    asked = {"channel": "letter", "received_on": date(2026, 11, 1), "subject": CANDIDATE}
    closed = register.register("access", asked_by="Asker4b7e", **asked)
    closed = register.answer(register.confirm_identity(closed, IdentityMethod.KNOWN), "sent")
    still_open = register.register("erasure", asked_by="Other4b7e", **asked)
    clock.step(days=1095)
    swept(database, clock)
    assert traces(database, "Asker4b7e") == ["rights_request"]
    clock.step(days=1)
    swept(database, clock)
    assert traces(database, "Asker4b7e") == []
    assert register.request(closed.reference).asked_by is None
    assert register.request(still_open.reference).asked_by == "Other4b7e"
    assert lines(database)[-1] == ("empty askers", 1, "user:ines")
    swept(database, clock)
    assert lines(database)[-1] == ("empty askers", 1, "user:ines")


# Beside other work


def test_a_memory_that_another_transaction_works_on_is_left_for_the_next_sweep(
    store: MemoryStore, database: Database, clock: Clock
) -> None:
    memory = observe(store, "Could start in May.")
    observe(store, "Prefers mornings.")
    clock.step(days=91)
    with database.connect() as somebody:
        somebody.execute("SELECT FROM memory WHERE memory_id = %s FOR UPDATE", (memory.memory_id,))
        assert numbers(swept(database, clock)) == (1, 0, 0, 0)
    assert numbers(swept(database, clock)) == (1, 0, 0, 0)


def test_sweeps_beside_writes_and_erasures_end_without_a_deadlock(
    open_store: OpenStore, open_desk: OpenDesk, database: Database, side: ThreadPoolExecutor, clock: Clock
) -> None:
    many(database, clock, 1500)
    subjects = [Subject("candidate", f"c-{number}", f"Name {number}") for number in range(10)]

    def writes() -> None:
        store = open_store(clock=clock)
        for turn in range(4):
            store.remember_many(observation(f"sentence {10 * turn + n}", subject=one) for n, one in enumerate(subjects))

    def erases() -> int:
        desk = open_desk(clock=clock)
        return sum(desk.erase(subject, reason="asked to").count for subject in subjects[:5])

    def sweeps() -> int:
        return swept(database, clock).emptied + swept(database, clock).emptied

    working = [side.submit(work) for work in (writes, erases, sweeps, sweeps)]
    errors = [one.exception(timeout=DEADLOCK_IS_FOUND_S) for one in working]
    # A write that an erasure overtook says so; nobody waited in a ring.
    rules = {error.rule if isinstance(error, Refused) else str(error) for error in errors if error}
    assert rules <= {"nothing_is_written_through_an_erasure"}
    assert numbers(swept(database, clock)) == (0, 0, 0, 0)
    assert open_desk(clock=clock).verify_trail().broken is None


SAME_SENTENCE = """
    INSERT INTO memory (org_id, memory_id, kind, origin, author, run_id, subject_type, subject_id, text, text_sha256,
                        created_at, expires_at, seen_count, last_seen_at, last_seen_run_id)
    VALUES ('acme', gen_random_uuid(), 'observation', 'inference', 'agent:screening', 'r-1', 'candidate', %(id)s,
            %(text)s::text, sha256(convert_to(%(text)s::text, 'UTF8')), %(at)s, %(at)s + interval '1 day', 1, %(at)s, 'r-1')
"""


def test_a_name_that_is_written_while_its_subjects_last_text_is_swept_stays(
    store: MemoryStore, database: Database, clock: Clock, side: ThreadPoolExecutor
) -> None:
    named = Subject("candidate", "c-81", "Zoë")
    observe(store, "Could start in May.", subject=named)
    clock.step(days=91)
    with database.connect() as somebody:
        # A write of the same sentence that is not committed keeps this one waiting, with its directory entry locked.
        somebody.execute(SAME_SENTENCE, {"id": "c-81", "text": "Applied anew.", "at": clock.now})
        writing = side.submit(observe, store, "Applied anew.", subject=named)
        await_lock_waits(database, 1)
        sweeping = side.submit(swept, database, clock)
        await_lock_waits(database, 2)
        somebody.rollback()
    assert outcome(writing).text == "Applied anew."
    assert outcome(sweeping).emptied == 1
    assert store.held(CANDIDATE).subject.label == "Zoë"


def test_a_sentence_that_is_written_again_while_it_is_swept_is_no_deadlock(
    store: MemoryStore, database: Database, clock: Clock, side: ThreadPoolExecutor
) -> None:
    named = Subject("candidate", "c-81", "Zoë")
    observe(store, "Could start in May.", subject=named)
    clock.step(days=91)
    with database.connect() as somebody:
        somebody.execute(SAME_SENTENCE, {"id": "c-82", "text": "In the way.", "at": clock.now})
        writing = side.submit(
            store.remember_many,
            [observation("In the way.", subject=OTHER), observation("Could start in May.", subject=named)],
        )
        await_lock_waits(database, 1)
        sweeping = side.submit(swept, database, clock)
        await_lock_waits(database, 2)
        somebody.rollback()
    assert outcome(sweeping).emptied in (0, 1)
    assert [one.text for one in outcome(writing)] == ["In the way.", "Could start in May."]
    assert store.held(CANDIDATE).subject.label == "Zoë"


def test_a_hold_that_is_placed_while_a_purge_waits_for_the_subject_keeps_its_tombstones(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock, side: ThreadPoolExecutor
) -> None:
    for subject in (CANDIDATE, OTHER):
        observe(store, "Forgotten.", subject=subject)
        desk.erase(subject, reason="asked to")
    clock.step(days=1096)
    with database.connect() as somebody:
        somebody.execute("SELECT pg_advisory_xact_lock(%s)", (_key("acme", CANDIDATE),))
        sweeping = side.submit(swept, database, clock)
        await_lock_waits(database, 1)  # it has chosen both by now
        somebody.execute(
            "INSERT INTO measure (org_id, measure_id, kind, name, subject_type, subject_id, by, reason, placed_at)"
            " VALUES ('acme', gen_random_uuid(), 'hold', 'claim-7', 'candidate', 'c-81', 'user:ines', 'a claim', %s)",
            (clock.now,),
        )
    assert outcome(sweeping).purged == 1
    assert len(rows(database, "memory", "subject_id = 'c-81'")) == 1
    assert rows(database, "memory", "subject_id = 'c-82'") == []


def test_a_hold_is_kept_by_a_sweep_and_by_an_erasure_alike(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Could start in May.")
    desk.hold("court case", subject=CANDIDATE, name="claim-7")
    clock.step(days=91)
    assert numbers(swept(database, clock)) == (0, 0, 1, 0)
    with pytest.raises(OnHold, match="claim-7"):
        desk.erase(CANDIDATE, reason="asked to")
    assert store.held(CANDIDATE).with_text == 1
