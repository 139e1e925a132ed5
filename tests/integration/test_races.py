from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from fakes import CANDIDATE, Blocking, Clock, HashedWords, observation, observe
from rows import await_lock_waits, counts, emptied, execute, rows, traces
from sqlalchemy import event

from memory_core import EmbedderError, Erasure, Memory, MemoryStore, Refused, Subject
from memory_core.db.engine import engine_for
from memory_core.db.locks import BUCKETS, _key

if TYPE_CHECKING:
    from conftest import Database, OpenStore


LOCK_TABLE = "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE"
THROUGH_AN_ERASURE = "nothing_is_written_through_an_erasure"
DEADLOCK_IS_FOUND_S = 30  # every wait for a result is longer than PostgreSQL's search for deadlocks


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


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


def forget(store: MemoryStore, subject: Subject = CANDIDATE) -> Erasure:
    return store.forget(subject, by="user:ines", reason="asked to")


def about(subject_id: str) -> Subject:
    return Subject("candidate", subject_id)


def outcome(future: Future[Any]) -> Any:
    return future.result(timeout=DEADLOCK_IS_FOUND_S)


def with_text(database: Database, subject: Subject = CANDIDATE) -> int:
    return len(rows(database, "memory", f"subject_id = '{subject.id}' AND text IS NOT NULL"))


# A write that races an erasure


@pytest.mark.parametrize(
    "clock", [None, Clock(datetime(2020, 1, 1, tzinfo=UTC)), Clock(datetime(2050, 1, 1, tzinfo=UTC))]
)
def test_a_write_that_began_before_an_erasure_and_would_commit_after_it_is_refused(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor, clock: Clock | None
) -> None:
    observe(open_store(), "Old7f3a.")
    named = Subject("candidate", "c-81", "Label7f3a")
    with held_up(database, LOCK_TABLE.format("organisation_setting")):
        alone = side.submit(observe, open_store(clock=clock), "New7f3a.", subject=named)
        in_bulk = side.submit(
            open_store(clock=clock).remember_many,
            [observation("Other7f3a.", subject=about("c-8")), observation("More7f3a.", subject=named)],
        )
        await_lock_waits(database, 2)
        # An erasure reads at its end whether a second officer is asked for.
        erasing = side.submit(forget, open_store(clock=clock))
        await_lock_waits(database, 3)
    assert outcome(erasing).count == 1
    for write in (alone, in_bulk):
        with pytest.raises(Refused) as caught:
            outcome(write)
        assert (caught.value.rule, caught.value.field) == (THROUGH_AN_ERASURE, "subject")
        assert "write it again" in str(caught.value)
    for word in ("Old7f3a", "New7f3a", "Other7f3a", "More7f3a", "Label7f3a"):
        assert traces(database, word) == []
    assert counts(database)["memory"] == 1


def test_a_write_that_was_refused_for_an_erasure_is_accepted_when_it_is_made_again(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    store = open_store()
    observe(store, "Old.")
    with held_up(database, LOCK_TABLE.format("organisation_setting")):
        write = side.submit(observe, store, "New.")
        await_lock_waits(database, 1)
        erasing = side.submit(forget, open_store())
        await_lock_waits(database, 2)
    outcome(erasing)
    with pytest.raises(Refused):
        outcome(write)
    assert observe(store, "New.").text == "New."
    assert with_text(database) == 1


def test_a_write_that_holds_its_lock_when_an_erasure_comes_is_erased_with_the_rest(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    old = observe(open_store(), "Old7f3a.")
    items = [
        observation("New7f3a.", subject=Subject("candidate", "c-81", "Label7f3a")),
        observation("Old7f3a."),
        observation("Other.", subject=about("c-8")),
    ]
    with held_up(database, "SELECT 1 FROM memory WHERE memory_id = %s FOR UPDATE", (old.memory_id,)):
        write = side.submit(open_store().remember_many, items)
        await_lock_waits(database, 1)
        erasing = side.submit(forget, open_store())
        await_lock_waits(database, 2)
    new, again, other = outcome(write)
    erasure = outcome(erasing)
    assert again.memory_id == old.memory_id
    assert set(erasure.memory_ids) == {old.memory_id, new.memory_id}
    assert erasure.at >= new.created_at
    for word in ("Old7f3a", "New7f3a", "Label7f3a"):
        assert traces(database, word) == []
    assert with_text(database, about("c-8")) == 1
    assert other.text == "Other."


def test_a_write_that_comes_while_an_erasure_is_under_way_waits_and_leaves_no_text_behind(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    old = observe(open_store(), "Old7f3a.")
    with held_up(database, "SELECT 1 FROM memory WHERE memory_id = %s FOR UPDATE", (old.memory_id,)):
        erasing = side.submit(forget, open_store())
        await_lock_waits(database, 1)
        write = side.submit(observe, open_store(), "New7f3a.")
        await_lock_waits(database, 2)
    assert outcome(erasing).count == 1
    with pytest.raises(Refused) as caught:
        outcome(write)
    assert caught.value.rule == THROUGH_AN_ERASURE
    assert with_text(database) == 0


def test_whoever_holds_the_subjects_lock_keeps_writes_and_erasures_of_it_waiting_and_no_others(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    elsewhere = next(about(f"c-{n}") for n in range(1000) if _key("acme", about(f"c-{n}")) != _key("acme", CANDIDATE))
    observe(open_store(), "One.", subject=elsewhere)
    with held_up(database, "SELECT pg_advisory_xact_lock(%s)", (_key("acme", CANDIDATE),)):
        waiting = [side.submit(observe, open_store(), "One."), side.submit(forget, open_store())]
        await_lock_waits(database, 2)
        assert observe(open_store(), "Two.", subject=elsewhere).text == "Two."
        assert forget(open_store(), elsewhere).count == 2
        assert observe(open_store("acme-corp"), "One.").text == "One."
        assert forget(open_store("acme-corp")).count == 1
        assert open_store().held(CANDIDATE).memories == ()
        assert not any(future.done() for future in waiting)
    for future in waiting:
        try:
            outcome(future)
        except Refused as refused:
            assert refused.rule == THROUGH_AN_ERASURE  # noqa: PT017 (which of the two comes first is open)
    assert with_text(database) in (0, 1)


def test_an_erasure_of_somebody_else_refuses_no_write_though_both_share_a_lock(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    twin = next(
        about(f"c-{n}") for n in range(10_000) if n != 81 and _key("acme", about(f"c-{n}")) == _key("acme", CANDIDATE)
    )
    observe(open_store(), "Old.", subject=twin)
    with held_up(database, LOCK_TABLE.format("organisation_setting")):
        write = side.submit(observe, open_store(), "New.")
        await_lock_waits(database, 1)
        erasing = side.submit(forget, open_store(), twin)
        await_lock_waits(database, 2)
    assert outcome(erasing).count == 1
    assert outcome(write).text == "New."


def test_a_bulk_load_about_many_people_takes_few_locks_and_is_refused_or_erased_for_each_of_them(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    people = [Subject("candidate", f"c-{number}", f"Name {number}") for number in range(300)]
    gone, kept = people[:3], people[3:]
    with held_up(database, LOCK_TABLE.format("directory")):
        load = side.submit(open_store().remember_many, [observation("Same.", subject=person) for person in people])
        await_lock_waits(database, 1)
        ((locks,),) = execute(
            database,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        assert 2 <= locks <= BUCKETS + 1  # with the one that keeps other loads waiting
        erasing = [side.submit(forget, open_store(), person) for person in gone]
        await_lock_waits(database, 4)
    assert len(outcome(load)) == 300
    assert [outcome(future).count for future in erasing] == [1, 1, 1]
    store = open_store()
    assert [store.held(person).with_text for person in gone] == [0, 0, 0]
    assert len(rows(database, "memory", "text IS NOT NULL")) == len(kept)
    assert len(rows(database, "directory")) == len(kept)


def test_however_writes_and_erasures_fall_nothing_that_began_before_an_erasure_has_text_after_it(
    open_store: OpenStore, database: Database
) -> None:
    people = [about("c-8"), about("c-81")]
    until = time.monotonic() + 2.5
    written: dict[UUID, tuple[Subject, float]] = {}
    erased: list[tuple[Subject, float, int]] = []
    others: list[BaseException] = []
    lock = threading.Lock()

    def write(number: int) -> None:
        store, turn = open_store(), 0
        while time.monotonic() < until:
            turn += 1
            person = people[turn % 2]
            began = time.monotonic()
            items = [observation(f"{number} {turn} {part}", subject=person) for part in range(3)]
            try:
                stored = store.remember_many(items) if turn % 3 else [store.remember(**items[0])]
            except Refused as refused:
                assert refused.rule == THROUGH_AN_ERASURE  # noqa: PT017 (either is right)
                continue
            with lock:
                written.update({memory.memory_id: (person, began) for memory in stored})

    def erase(number: int) -> None:
        store, turn = open_store(), 0
        while time.monotonic() < until:
            turn += 1
            person = people[(turn + number) % 2]
            began = time.monotonic()
            count = forget(store, person).count
            with lock:
                erased.append((person, began, count))
            time.sleep(0.02)

    def guarded(act: Callable[[int], None], number: int) -> None:
        try:
            act(number)
        except BaseException as error:
            others.append(error)

    threads = [threading.Thread(target=guarded, args=(write, number)) for number in range(4)]
    threads += [threading.Thread(target=guarded, args=(erase, number)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert others == []
    assert len(erased) > 4
    assert len(written) > 20
    left = {UUID(str(one)) for (one,) in execute(database, "SELECT memory_id FROM memory WHERE text IS NOT NULL")}
    assert left <= written.keys()
    for memory_id in left:
        person, began = written[memory_id]
        assert all(began > erasing for other, erasing, _ in erased if other == person)
    store = open_store()
    last = sum(forget(store, person).count for person in people)
    assert last == len(left)
    assert last + sum(count for _, _, count in erased) == len(written) == counts(database)["memory"]
    assert rows(database, "memory", "text IS NOT NULL OR embedding IS NOT NULL") == []


# An embedding that races an erasure


def test_an_embedder_that_answers_after_an_erasure_brings_nothing_back(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    slow = Blocking()
    writing = side.submit(observe, open_store(embedder=slow), "Marker7f3a.")
    assert slow.reached.wait(30)
    try:
        assert forget(open_store()).count == 1
    finally:
        slow.go.set()
    outcome(writing)
    assert traces(database, "Marker7f3a") == []
    assert rows(database, "memory", "embedding IS NOT NULL OR embedding_model IS NOT NULL OR text IS NOT NULL") == []
    assert open_store().held(CANDIDATE).memories[0].forgotten_by == "user:ines"


@pytest.mark.parametrize("fate", ["forgotten", "restricted", "swept"])
def test_what_may_not_be_used_any_more_gets_no_vector_and_is_not_counted_as_embedded(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor, fate: str
) -> None:
    gone, kept = observe(open_store(), "One."), observe(open_store(), "Two.", subject=about("c-8"))
    slow = Blocking()
    embedding = side.submit(open_store(embedder=slow).embed)
    assert slow.reached.wait(30)
    try:
        if fate == "forgotten":
            forget(open_store())
        else:
            change = (
                "restricted_at = now()" if fate == "restricted" else "text = NULL, text_sha256 = NULL, swept_at = now()"
            )
            execute(database, f"UPDATE memory SET {change} WHERE memory_id = %s", (gone.memory_id,))
    finally:
        slow.go.set()
    done = outcome(embedding)
    assert execute(database, "SELECT memory_id FROM memory WHERE embedding IS NOT NULL") == [(kept.memory_id,)]
    assert done.count == 1


def test_a_memory_erased_while_it_was_embedded_is_not_said_to_have_a_vector(
    open_store: OpenStore, side: ThreadPoolExecutor
) -> None:
    slow = Blocking()
    writing = side.submit(observe, open_store(embedder=slow), "One.")
    assert slow.reached.wait(30)
    try:
        forget(open_store())
    finally:
        slow.go.set()
    assert outcome(writing).embedding_model is None


def test_a_sentence_remembered_anew_while_its_old_vector_was_made_gets_one_by_its_own_row(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    slow = Blocking()
    writing = side.submit(observe, open_store(embedder=slow), "Same.")
    assert slow.reached.wait(30)
    try:
        forget(open_store())
        again = observe(open_store(), "Same.")
    finally:
        slow.go.set()
    outcome(writing)
    assert rows(database, "memory", "embedding IS NOT NULL") == []
    assert open_store(embedder=HashedWords()).embed().count == 1
    assert execute(database, "SELECT memory_id FROM memory WHERE embedding IS NOT NULL") == [(again.memory_id,)]


def test_a_memory_that_is_embedded_while_a_recall_chooses_comes_back_all_the_same(
    open_store: OpenStore, database: Database
) -> None:
    embedding = open_store(embedder=HashedWords())
    stored = embedding.remember_many(observation(f"embedded {number}") for number in range(3))
    stored += open_store().remember_many(observation(f"not embedded {number}") for number in range(2))
    embedding.recall("embedded", run_id="r-1")
    engine, compared = engine_for(database.application), threading.Event()

    def embed_the_rest(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        if "<=>" in statement and not compared.is_set():
            compared.set()
            assert open_store(embedder=HashedWords()).embed().count == 2

    event.listen(engine, "after_cursor_execute", embed_the_rest)
    try:
        found = embedding.recall("embedded", run_id="r-2")
    finally:
        event.remove(engine, "after_cursor_execute", embed_the_rest)
    assert compared.is_set()
    assert sorted(one.memory.memory_id for one in found.memories) == [memory.memory_id for memory in stored]


# Models that race to be the first


class Meeting(HashedWords):
    """An embedder that, asked for documents the first time, waits until the other one is asked as well."""

    def __init__(self, name: str, meet: Barrier, dimensions: int = 64) -> None:
        super().__init__(name, dimensions)
        self._meet = meet

    def embed_documents(self, texts: Sequence[str]) -> Any:
        vectors = super().embed_documents(texts)
        if self.asked == 1:
            self._meet.wait(30)
        return vectors


@pytest.mark.parametrize(("names", "dimensions"), [(("one", "other"), (64, 32)), (("same", "same"), (64, 32))])
def test_of_two_models_that_are_the_first_at_once_one_is_pinned_and_only_its_vectors_are_kept(
    open_store: OpenStore,
    database: Database,
    side: ThreadPoolExecutor,
    names: tuple[str, str],
    dimensions: tuple[int, int],
) -> None:
    meet = Barrier(2)
    embedders = [Meeting(name, meet, size) for name, size in zip(names, dimensions, strict=True)]
    writing = [
        side.submit(
            open_store(embedder=embedder).remember_many,
            [observation(f"{number} {part}", subject=about(f"c-{number}")) for part in range(5)],
        )
        for number, embedder in enumerate(embedders)
    ]
    stored: list[list[Memory]] = [outcome(future) for future in writing]
    ((model, length),) = execute(database, "SELECT embedding_model, embedding_dimensions FROM organisation_setting")
    kept = execute(
        database,
        "SELECT embedding_model, vector_dims(embedding), count(*) FROM memory WHERE embedding NOTNULL GROUP BY 1, 2",
    )
    assert kept == [(model, length, 5)]
    winner, loser = sorted(stored, key=lambda memories: memories[0].embedding_model is None)
    assert {memory.embedding_model for memory in winner} == {model}
    assert {memory.embedding_model for memory in loser} == {None}
    assert counts(database)["memory"] == 10


def test_vectors_that_were_being_made_when_the_model_was_changed_are_dropped(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    first = open_store(embedder=HashedWords())
    observe(first, "Embedded.")
    observe(open_store(), "Not embedded.")
    slow = Blocking()
    embedding = side.submit(open_store(embedder=slow).embed)
    assert slow.reached.wait(30)
    try:
        execute(database, "UPDATE organisation_setting SET embedding_model = 'newer', embedding_dimensions = 32")
    finally:
        slow.go.set()
    with pytest.raises(EmbedderError):
        outcome(embedding)
    assert execute(database, "SELECT embedding_model, count(*) FROM memory GROUP BY 1 ORDER BY 1") == [
        ("words", 1),
        (None, 1),
    ]


# Bulk loads that race each other: both are held up half way, each having stored what the other is to store next


def sentences(number: int) -> list[str]:
    """Return sentences in the order of their digests, which is the order in which a bulk load stores them."""
    return sorted((f"sentence {n}" for n in range(number)), key=lambda text: sha256(text.encode()).digest())


def race(
    database: Database,
    side: ThreadPoolExecutor,
    halts: Sequence[Memory],
    *acts: Callable[[], Any],
) -> list[Any]:
    """Run the acts until each waits for a lock or is done, while some memories are locked; then let them go on."""
    halted = [memory.memory_id for memory in halts]
    running: list[Future[Any]] = []
    with held_up(database, "SELECT 1 FROM memory WHERE memory_id = ANY(%s) FOR UPDATE", (halted,)):
        for act in acts:
            running.append(side.submit(act))
            await_lock_waits(database, lambda: sum(not future.done() for future in running))
    return [outcome(future) for future in running]


def test_two_bulk_loads_of_the_same_sentences_in_opposite_order_do_not_deadlock(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    first, halt, last = sentences(3)
    halted = observe(open_store(), halt)
    loads = [[first, halt, last], [last, halt, first]]
    one, other = race(
        database,
        side,
        [halted],
        *(lambda load=load: open_store().remember_many(observation(text) for text in load) for load in loads),
    )
    assert [memory.memory_id for memory in one] == [memory.memory_id for memory in reversed(other)]
    assert counts(database)["memory"] == 3


def test_two_bulk_loads_that_ask_for_different_expiries_do_not_deadlock(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    a, halt_a, b, halt_b = sentences(4)
    halts = [observe(open_store(), halt_a), observe(open_store(), halt_b)]
    asked = {"expires_at": datetime.now(UTC) + timedelta(days=200)}
    loads = [
        [observation(a), observation(halt_a), observation(b, **asked)],
        [observation(b), observation(halt_b), observation(a, **asked)],
    ]
    race(database, side, halts, *(lambda load=load: open_store().remember_many(load) for load in loads))
    assert counts(database)["memory"] == 4


def test_two_bulk_loads_of_one_sentence_about_many_people_do_not_deadlock(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    halts = [observe(open_store(), "Same.", subject=about(person)) for person in ("c-3", "c-4")]
    loads = [
        [observation("Same.", subject=about(person)) for person in order]
        for order in (("c-1", "c-3", "c-2"), ("c-2", "c-4", "c-1"))
    ]
    race(database, side, halts, *(lambda load=load: open_store().remember_many(load) for load in loads))
    assert counts(database)["memory"] == 4


def test_a_bulk_load_and_an_embedding_of_the_same_memories_do_not_deadlock(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    early, halt_load, late = sentences(3)
    store = open_store()
    first, halt, last = observe(store, late), observe(store, "embedded between the two"), observe(store, early)
    halted = observe(store, halt_load, subject=about("c-8"))
    execute(database, "UPDATE memory SET restricted_at = now() WHERE memory_id = %s", (halted.memory_id,))
    race(
        database,
        side,
        [halt, halted],
        open_store(embedder=HashedWords()).embed,
        lambda: store.remember_many(
            [observation(early), observation(halt_load, subject=about("c-8")), observation(late)]
        ),
    )
    assert [memory.seen_count for memory in store.held(CANDIDATE).memories] == [2, 1, 2]
    assert first.memory_id < last.memory_id


def test_an_erasure_and_an_embedding_of_the_same_memories_do_not_deadlock(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    store = open_store()
    execute(database, "TRUNCATE memory, disclosure")  # so that each row is stored behind those before it
    first, halt, last = observe(store, "One."), observe(store, "Two.", subject=about("c-8")), observe(store, "Three.")
    observe(store, "One.")  # seen again: its row now stands behind the other's, and an erasure comes to it later
    order = execute(database, "SELECT memory_id FROM memory WHERE subject_id = 'c-81' ORDER BY ctid")
    assert order == [(last.memory_id,), (first.memory_id,)]
    assert first.memory_id < halt.memory_id
    _, erasure = race(database, side, [halt], open_store(embedder=HashedWords()).embed, lambda: forget(open_store()))
    assert erasure.count == 2
    assert with_text(database) == 0
    assert rows(database, "memory", "embedding IS NOT NULL AND text IS NULL") == []


def test_a_single_write_waits_neither_for_a_bulk_load_that_is_under_way_nor_for_its_own_vector_because_of_it(
    open_store: OpenStore, database: Database, side: ThreadPoolExecutor
) -> None:
    first, halt, last = sentences(3)
    halted = observe(open_store(), halt)
    with held_up(database, "SELECT 1 FROM memory WHERE memory_id = %s FOR UPDATE", (halted.memory_id,)):
        load = side.submit(open_store().remember_many, [observation(text) for text in (first, halt, last)])
        await_lock_waits(database, 1)
        write = side.submit(observe, open_store(embedder=HashedWords()), "Other.", subject=about("c-8"))
        assert write.result(timeout=6).text == "Other."  # two seconds are the vector's limit
    assert len(outcome(load)) == 3


def test_loads_of_the_same_sentences_by_many_threads_with_an_embedder_all_end_well(
    open_store: OpenStore, database: Database
) -> None:
    texts = [f"sentence {number}" for number in range(120)]
    together = Barrier(4)

    def load(number: int) -> list[Memory]:
        store = open_store(embedder=HashedWords())
        order = texts if number % 2 else texts[::-1]
        together.wait(30)
        return store.remember_many(observation(text, run_id=f"r-{number}") for text in order)

    with ThreadPoolExecutor(4) as threads:
        loads = list(threads.map(load, range(4)))
    assert len({memory.memory_id for stored in loads for memory in stored}) == 120
    assert execute(database, "SELECT DISTINCT seen_count, embedding_model FROM memory") == [(4, "words")]
