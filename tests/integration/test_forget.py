from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
from fakes import CANDIDATE, JOB, Clock, HashedWords, fact, observation, observe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import counts, emptied, execute, rows, snapshot, traces

from memory_core import Erasure, MemoryStore, OnHold, Origin, Purpose, Refused, State, Subject

if TYPE_CHECKING:
    from conftest import Database, OpenStore


EMPTIED = "text = NULL, text_sha256 = NULL, embedding = NULL, embedding_model = NULL"
FATES = {
    "swept": f"{EMPTIED}, swept_at = expires_at",
    "forgotten": f"{EMPTIED}, forgotten_at = created_at, forgotten_by = 'user:ines', forgotten_reason = 'asked to'",
    "restricted": "restricted_at = created_at",
}
PROVENANCE = "kind, origin, author, run_id, source, subject_type, subject_id, created_at"


def forget(store: MemoryStore, subject: Subject = CANDIDATE, **options: Any) -> Erasure:
    return store.forget(subject, **{"by": "user:ines", "reason": "erasure request of 3 November", **options})


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock, embedder=HashedWords())


# What is held


def test_everything_held_is_shown_without_a_page_limit(store: MemoryStore, clock: Clock, database: Database) -> None:
    stored = store.remember_many(
        observation(
            f"sentence {number}",
            created_at=clock.now - timedelta(days=number % 50, minutes=number),
            expires_at=clock.now + timedelta(hours=1) if number % 7 == 0 else None,
        )
        for number in range(250)
    )
    for fate, place in (("swept", 1), ("forgotten", 2), ("restricted", 3)):
        some = [memory.memory_id for number, memory in enumerate(stored) if number % 7 == place]
        execute(database, f"UPDATE memory SET {FATES[fate]} WHERE memory_id = ANY(%s)", (some,))
    clock.step(hours=2)
    held = store.held(CANDIDATE)
    assert held.at == clock.now
    assert {memory.memory_id for memory in held.memories} == {memory.memory_id for memory in stored}
    assert len(held.memories) == 250
    newest_first = sorted(held.memories, key=lambda one: (one.created_at, one.memory_id), reverse=True)
    assert [*held.memories] == newest_first
    states = {memory.memory_id: memory.state for memory in held.memories}
    expected = [State.EXPIRED, State.SWEPT, State.FORGOTTEN, State.RESTRICTED, State.LIVE, State.LIVE, State.LIVE]
    assert [states[memory.memory_id] for memory in stored] == [expected[number % 7] for number in range(250)]
    gone = {State.SWEPT, State.FORGOTTEN}
    assert all((memory.text is None) == (memory.state in gone) for memory in held.memories)
    assert held.with_text == sum(memory.text is not None for memory in held.memories)


def test_what_is_held_comes_with_its_provenance_and_whoever_it_was_shown_to(store: MemoryStore, clock: Clock) -> None:
    subject = Subject("candidate", "c-81", "Zoë Müller", ("zoe@example.org", "ATS-0042"))
    stored = observe(store, "Could start in May.", subject=subject, source="msg-1", run_id="r-812")
    runs = [store.recall("when?", run_id=f"r-{number}").recall_id for number in range(120)]
    preview = store.recall("when?", run_id="r-999", purpose="preview").recall_id
    held = store.held(Subject("candidate", "c-81"))
    assert (held.subject.label, sorted(held.subject.aliases)) == ("Zoë Müller", ["ATS-0042", "zoe@example.org"])
    (memory,) = held.memories
    assert {**vars(memory), "disclosures": ()} == {**vars(stored), "disclosures": ()}
    assert [one.recall_id for one in memory.disclosures] == [*runs, preview]
    assert [one.run_id for one in memory.disclosures][:2] == ["r-0", "r-1"]
    assert {one.purpose for one in memory.disclosures[:-1]} == {Purpose.RUN}
    assert memory.disclosures[-1].purpose is Purpose.PREVIEW
    assert {one.at for one in memory.disclosures} == {clock.now}


def test_nothing_held_is_an_empty_answer(store: MemoryStore) -> None:
    held = store.held(Subject("candidate", "c-0"))
    assert (held.memories, held.with_text, held.subject.label, held.subject.aliases) == ((), 0, None, ())
    assert held.subject == Subject("candidate", "c-0")


# What is forgotten


def test_forgetting_leaves_tombstones_with_provenance_and_nothing_else(
    store: MemoryStore, clock: Clock, database: Database
) -> None:
    subject = Subject("candidate", "c-81", "Zoë Müller", ("zoe@example.org",))
    stored = store.remember_many(
        [
            observation("Could start in May.", subject=subject, source="msg-1"),
            observation("Prefers mornings.", origin="person", author="user:maria", run_id="r-2"),
            observation("Could start in May.", author="agent:planner"),
        ]
    )
    provenance = execute(database, f"SELECT {PROVENANCE} FROM memory ORDER BY memory_id")
    clock.step(days=3)
    erasure = forget(store)
    assert (erasure.count, erasure.subject, erasure.at) == (3, CANDIDATE, clock.now)
    assert (erasure.by, erasure.reason) == ("user:ines", "erasure request of 3 November")
    assert set(erasure.memory_ids) == {memory.memory_id for memory in stored}
    assert execute(database, f"SELECT {PROVENANCE} FROM memory ORDER BY memory_id") == provenance
    left = "SELECT DISTINCT text, text_sha256, embedding, embedding_model, forgotten_at, forgotten_by, forgotten_reason"
    assert execute(database, f"{left} FROM memory") == [
        (None, None, None, None, clock.now, "user:ines", "erasure request of 3 November")
    ]
    assert rows(database, "directory") == []
    held = store.held(CANDIDATE)
    assert {memory.state for memory in held.memories} == {State.FORGOTTEN}
    assert {memory.origin for memory in held.memories} == {Origin.INFERENCE, Origin.PERSON}
    assert (held.with_text, held.subject.label, held.subject.aliases) == (0, None, ())


def test_what_was_shown_is_what_is_forgotten(store: MemoryStore, clock: Clock, database: Database) -> None:
    stored = store.remember_many(
        observation(f"sentence {number}", expires_at=clock.now + timedelta(hours=1) if number % 5 == 0 else None)
        for number in range(250)
    )
    for fate, place in (("swept", 1), ("forgotten", 2), ("restricted", 3)):
        some = [memory.memory_id for number, memory in enumerate(stored) if number % 5 == place]
        execute(database, f"UPDATE memory SET {FATES[fate]} WHERE memory_id = ANY(%s)", (some,))
    clock.step(hours=2)
    before = store.held(CANDIDATE)
    with_text = {memory.memory_id for memory in before.memories if memory.text is not None}
    erasure = forget(store)
    assert set(erasure.memory_ids) == with_text
    assert erasure.count == before.with_text == 150
    after = {memory.memory_id: memory for memory in store.held(CANDIDATE).memories}
    assert all(memory.text is None for memory in after.values())
    untouched = [memory for memory in before.memories if memory.text is None]
    assert [after[memory.memory_id] for memory in untouched] == untouched


def test_an_erasure_is_recorded_without_a_word_of_what_was_erased(
    store: MemoryStore, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in May.")
    erasure = forget(store)
    recorded = "SELECT org_id, erasure_id, subject_type, subject_id, by, reason, at, memory_count FROM erasure"
    assert execute(database, recorded) == [
        ("acme", erasure.erasure_id, "candidate", "c-81", "user:ines", "erasure request of 3 November", clock.now, 1)
    ]


def test_nothing_held_is_count_0_no_error_and_recorded(store: MemoryStore, database: Database) -> None:
    erasure = forget(store, Subject("candidate", "c-0"))
    assert (erasure.count, erasure.memory_ids) == (0, ())
    assert execute(database, "SELECT subject_id, memory_count FROM erasure") == [("c-0", 0)]


def test_forgetting_again_counts_no_tombstone_twice(store: MemoryStore, clock: Clock, database: Database) -> None:
    observe(store, "Could start in May.")
    assert forget(store).count == 1
    tombstones = rows(database, "memory")
    clock.step(days=1)
    again = forget(store, by="user:omar", reason="asked once more")
    assert (again.count, again.memory_ids) == (0, ())
    assert rows(database, "memory") == tombstones
    assert execute(database, "SELECT memory_count FROM erasure ORDER BY at") == [(1,), (0,)]


def test_a_directory_entry_without_memories_is_cleared_as_well(store: MemoryStore, database: Database) -> None:
    observe(store, "Could start in May.")
    forget(store)
    execute(
        database,
        "INSERT INTO directory (org_id, subject_type, subject_id, label) VALUES ('acme', 'candidate', 'c-81', 'Zoë')",
    )
    assert forget(store).count == 0
    assert rows(database, "directory") == []


@pytest.mark.parametrize("forgotten", [CANDIDATE, Subject("candidate", "c-8")])
def test_only_the_subject_itself_is_touched_and_all_others_stay_to_the_byte(
    open_store: OpenStore, store: MemoryStore, clock: Clock, database: Database, forgotten: Subject
) -> None:
    others = [
        Subject("candidate", subject_id, "Zoë Müller", ("zoe@example.org",))
        for subject_id in ("c-8", "c-81", "c-811", "C-81", "c-81.", "xc-81", "c", "c-81@x", "c-8_", "candidate")
    ]
    others += [Subject(kind, "c-81", "Zoë Müller") for kind in ("referee", "Candidate", "candidate.", "c", "job")]
    stores = [
        store,
        *(open_store(org_id, clock=clock, embedder=HashedWords()) for org_id in ("acme-corp", "acm", "ACME")),
    ]
    for one in stores:
        one.remember_many(observation("Could start in May.", subject=other) for other in others)
        one.remember(**fact("Panel interviews need two weeks' notice."))
        one.recall("when?", run_id="r-2", limit=50)
    mine = f"(org_id, subject_type, subject_id) = ('acme', '{forgotten.type}', '{forgotten.id}')"
    not_mine = {table: rows(database, table, f"NOT coalesce({mine}, false)") for table in ("memory", "directory")}
    related = ("memory", "directory", "erasure", "trail", "ledger")
    unrelated = snapshot(database, without=related)
    assert forget(store, forgotten).count == 1
    for table, kept in not_mine.items():
        assert rows(database, table, f"NOT coalesce({mine}, false)") == kept
    assert snapshot(database, without=related) == unrelated
    recorded = [("acme", forgotten.type, forgotten.id)]
    for table in ("erasure", "trail", "ledger"):
        assert execute(database, f"SELECT org_id, subject_type, subject_id FROM {table}") == recorded
    assert len(rows(database, "memory", mine)) == 1
    assert rows(database, "directory", mine) == []


pieces = st.text("abAB01.:@/+-_", min_size=1, max_size=4)
subjects = st.lists(st.tuples(pieces, pieces), min_size=2, max_size=6, unique=True)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=subjects)
def test_whatever_the_identifiers_one_subject_is_forgotten_and_no_other(
    open_store: OpenStore, numbered: Callable[[], str], held: list[tuple[str, str]]
) -> None:
    store = open_store(numbered())
    store.remember_many(observation("Same.", subject=Subject(*pair, label="Zoë")) for pair in held)
    gone, *others = [Subject(*pair) for pair in held]
    assert forget(store, gone).count == 1
    assert store.held(gone).with_text == 0
    for other in others:
        assert (store.held(other).with_text, store.held(other).subject.label) == (1, "Zoë")


@pytest.fixture
def numbered() -> Callable[[], str]:
    number = iter(range(1_000_000))
    return lambda: f"acme-{next(number)}"


def test_no_trace_of_what_was_forgotten_is_left_in_any_column_of_any_table(
    store: MemoryStore, clock: Clock, database: Database
) -> None:
    person = Subject("candidate", "c-81", "Label4b7e", ("Alias4b7e", "alias4b7e@example.org"))
    store.remember_many([observation("Text4b7e could start in May.", subject=person), observation("Other4b7e.")])
    store.remember_many([observation("Text4b7e could start in May."), observation("Other4b7e.")])
    for options in ({}, {"ranking": "recency"}, {"token_budget": 200}):
        assert store.recall("Text4b7e?", run_id="r-2", **options).memories
    vector = execute(database, "SELECT embedding::text FROM memory LIMIT 1")[0][0]
    digests = [digest.hex() for (digest,) in execute(database, "SELECT text_sha256 FROM memory")]
    assert {"memory", "directory"} <= {table for word in ("4b7e",) for table in traces(database, word)}
    clock.step(days=1)
    forget(store)
    for word in ("Text4b7e", "Other4b7e", "Label4b7e", "Alias4b7e", *digests):
        assert traces(database, word) == []
    everything = snapshot(database)
    assert vector not in str(everything)
    assert counts(database)["memory"] == 2


def test_nothing_is_recalled_about_a_forgotten_subject(store: MemoryStore) -> None:
    observe(store, "Could start in May.")
    forget(store)
    for options in ({}, {"ranking": "recency"}, {"subject": CANDIDATE}):
        assert store.recall("May?", run_id="r-2", **options).memories == ()
    assert store.find_subjects("c-81")[0].tombstones == 1
    assert store.embed().count == 0


def test_a_forgotten_subject_may_be_written_about_again(store: MemoryStore, clock: Clock) -> None:
    observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    forget(store)
    clock.step(days=1)
    again = observe(store, "Applied anew.", subject=Subject("candidate", "c-81", "Zoe"))
    held = store.held(CANDIDATE)
    assert (held.with_text, held.subject.label, held.subject.aliases) == (1, "Zoe", ())
    assert store.recall("applied?", run_id="r-2").memories[0].memory == again


# What keeps a memory from being forgotten


@pytest.mark.parametrize("named", [["claim-7"], ["claim-7", "court-1", "claim-7"]])
def test_a_hold_on_any_memory_keeps_all_of_them_and_is_named(
    store: MemoryStore, database: Database, named: list[str]
) -> None:
    person = Subject("candidate", "c-81", "Zoë", ("Zoe",))
    stored = store.remember_many(observation(f"sentence {number}", subject=person) for number in range(5))
    for memory, hold in zip(stored, named, strict=False):
        execute(database, "UPDATE memory SET hold = %s WHERE memory_id = %s", (hold, memory.memory_id))
    before = snapshot(database)
    with pytest.raises(OnHold) as caught:
        forget(store)
    assert caught.value.holds == tuple(sorted(set(named)))
    assert all(hold in str(caught.value) for hold in named)
    assert snapshot(database) == before
    execute(database, "UPDATE memory SET hold = NULL")
    assert forget(store).count == 5


def test_a_hold_on_another_subject_or_elsewhere_keeps_nothing(
    open_store: OpenStore, store: MemoryStore, clock: Clock, database: Database
) -> None:
    observe(store, "Could start in May.")
    observe(store, "Could start in May.", subject=Subject("candidate", "c-8"))
    observe(open_store("acme-corp", clock=clock), "Could start in May.")
    execute(database, "UPDATE memory SET hold = 'claim-7' WHERE org_id <> 'acme' OR subject_id <> 'c-81'")
    assert forget(store).count == 1


REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no reason": ({"reason": ""}, "reason_is_given", "reason"),
    "a blank reason": ({"reason": " \u200b\n"}, "reason_is_given", "reason"),
    "a missing reason": ({"reason": None}, "reason_is_given", "reason"),
    "501 characters": ({"reason": "a" * 501}, "reason_length", "reason"),
    "a NUL": ({"reason": "a\x00b"}, "reason_is_storable", "reason"),
    "a surrogate": ({"reason": "a\ud800"}, "reason_is_storable", "reason"),
    "nobody": ({"by": ""}, "identifier_is_given", "by"),
    "none": ({"by": None}, "identifier_is_given", "by"),
    "a newline": ({"by": "user:ines\n"}, "identifier_shape", "by"),
    "a space": ({"by": "user ines"}, "identifier_shape", "by"),
    "%": ({"by": "user:%"}, "identifier_shape", "by"),
}


def test_an_erasure_that_does_not_say_by_whom_and_why_is_refused_and_erases_nothing(
    store: MemoryStore, database: Database, subtests: pytest.Subtests
) -> None:
    observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    before = snapshot(database)
    for name, (changes, rule, field) in REFUSALS.items():
        with subtests.test(name):
            with pytest.raises(Refused) as caught:
                forget(store, **changes)
            assert (caught.value.rule, caught.value.field) == (rule, field)
    wrong: list[Any] = ["candidate c-81", None, ("candidate", "c-81")]
    for subject in wrong:
        for act in (lambda: forget(store, subject), lambda: store.held(subject)):  # noqa: B023 (called at once)
            with pytest.raises(Refused) as caught:
                act()
            assert (caught.value.rule, caught.value.field) == ("subject_is_a_subject", "subject")
    assert snapshot(database) == before


def test_a_reason_may_have_500_characters_of_any_script(store: MemoryStore, database: Database) -> None:
    observe(store, "Could start in May.")
    reason = "理😀'\"\n%" * 83 + "ab"
    assert len(reason) == 500
    assert forget(store, reason=reason).reason == reason
    assert execute(database, "SELECT reason FROM erasure UNION SELECT forgotten_reason FROM memory") == [(reason,)]


# Two at once


def test_two_threads_forgetting_at_once_make_each_tombstone_once(open_store: OpenStore, database: Database) -> None:
    observed = open_store().remember_many(observation(f"sentence {number}") for number in range(200))
    together = Barrier(6)

    def forgotten(number: int) -> Erasure:
        store = open_store()
        together.wait(30)
        return forget(store, by=f"user:{number}")

    with ThreadPoolExecutor(6) as threads:
        erasures = list(threads.map(forgotten, range(6)))
    assert sorted(erasure.count for erasure in erasures) == [0, 0, 0, 0, 0, 200]
    (one,) = (erasure for erasure in erasures if erasure.count)
    assert set(one.memory_ids) == {memory.memory_id for memory in observed}
    assert execute(database, "SELECT DISTINCT forgotten_by FROM memory") == [(one.by,)]
    assert counts(database)["erasure"] == 6


FORGETTING = """
import sys
from memory_core import MemoryStore, Subject
from memory_core.config import settings
url = sys.stdin.readline().strip()
store = MemoryStore.open("acme", database_url=url, embedder=None, settings=settings(memory_embedder="none"))
print("ready", flush=True)
sys.stdin.readline()
print(store.forget(Subject("candidate", "c-81"), by="user:ines", reason="asked to").count, flush=True)
"""


@contextmanager
def process(url: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", FORGETTING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(url + "\n")
            running.stdin.flush()
            assert running.stdout.readline() == "ready\n"
            yield running
        finally:
            running.kill()


def test_two_processes_forgetting_at_once_make_each_tombstone_once(open_store: OpenStore, database: Database) -> None:
    open_store().remember_many(observation(f"sentence {number}") for number in range(200))
    url = database.application.render_as_string(hide_password=False)
    with process(url) as one, process(url) as other:
        for running in (one, other):
            assert running.stdin is not None
            running.stdin.write("\n")
            running.stdin.flush()
        answers = [running.stdout.readline() for running in (one, other) if running.stdout is not None]
    assert sorted(answers) == ["0\n", "200\n"]
    assert counts(database)["erasure"] == 2
    assert open_store().held(CANDIDATE).with_text == 0


def test_a_fact_about_no_person_is_forgotten_by_its_subject_too(store: MemoryStore) -> None:
    store.remember(**fact("Needs two interviewers.", subject=JOB))
    store.remember(**fact("We never schedule on Fridays."))
    assert forget(store, JOB).count == 1
    assert [one.memory.text for one in store.recall("when?", run_id="r-2").memories] == [
        "We never schedule on Fridays."
    ]
