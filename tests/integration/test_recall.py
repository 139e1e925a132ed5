from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import numpy
import pytest
from conftest import SHARED
from fakes import (
    CANDIDATE,
    JOB,
    Answering,
    Clock,
    HashedWords,
    Sleeping,
    Unreachable,
    fact,
    observation,
    observe,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import counts, emptied, execute, snapshot, traces

from memory_core import (
    EmbedderError,
    Kind,
    Memory,
    MemoryStore,
    Purpose,
    Ranking,
    Recall,
    RecallMode,
    Refused,
    Search,
    State,
    Subject,
)
from memory_core.embedders import MAX_DIMENSIONS, PAUSE_S, Guarded, minilm
from memory_core.embedding import ANOTHER_MODEL
from memory_core.prompt.block import NO_DECISION_SENTENCE

if TYPE_CHECKING:
    from conftest import Database, OpenStore


SEMANTIC = (RecallMode.SEMANTIC, None, Ranking.HYBRID, Search.EXACT)
NOTHING_EMBEDDED = "no live memory has an embedding by this model"
on_one_database = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def because(reason: str) -> tuple[RecallMode, str, Ranking, Search]:
    return RecallMode.RECENCY, reason, Ranking.RECENCY, Search.NEWEST


def how(recall: Recall) -> tuple[RecallMode, str | None, Ranking, Search]:
    return recall.mode, recall.reason, recall.ranking, recall.search


def texts(recall: Recall) -> list[str | None]:
    return [one.memory.text for one in recall.memories]


def ids(memories: Sequence[Memory]) -> list[UUID]:
    return [memory.memory_id for memory in memories]


def recall(store: MemoryStore, query: str = "when could they start?", **options: Any) -> Recall:
    return store.recall(query, run_id="r-813", **options)


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def new_organisation(open_store: OpenStore, clock: Clock) -> Callable[..., MemoryStore]:
    """Return a function that opens a store of an organisation that nobody used before."""
    number = iter(range(1_000_000))
    return lambda **options: open_store(f"acme-{next(number)}", clock=clock, **options)


def disclosures(database: Database) -> list[tuple[UUID, int, UUID]]:
    return execute(database, "SELECT recall_id, place, memory_id FROM disclosure ORDER BY recall_id, place")


def by_hand(database: Database, memories: Sequence[Memory], setting: str, *values: Any) -> None:
    execute(database, f"UPDATE memory SET {setting} WHERE memory_id = ANY(%s)", (*values, ids(memories)))


# Newest first


def test_the_newest_come_first_and_the_later_made_of_one_moment(open_store: OpenStore, clock: Clock) -> None:
    store = open_store(clock=clock)
    old = observe(store, "old", created_at=clock.now - timedelta(days=3))
    new = observe(store, "new", created_at=clock.now - timedelta(days=1))
    middle = observe(store, "middle", created_at=clock.now - timedelta(days=2))
    twins = store.remember_many([observation("first of now"), observation("last of now")])
    found = recall(store)
    assert ids([one.memory for one in found.memories]) == ids([*reversed(twins), new, middle, old])
    assert all(one.score is None and not one.filled_up and one.shown for one in found.memories)
    assert texts(recall(store, limit=2)) == ["last of now", "first of now"]


def test_the_first_recall_of_a_new_organisation_is_empty_and_shows_no_block(
    open_store: OpenStore, database: Database
) -> None:
    found = recall(open_store("newcomer"))
    assert (found.memories, found.block, found.unembedded) == ((), None, 0)
    assert how(found) == because("no embedder is configured")
    assert counts(database)["recall"] == 1
    assert open_store("newcomer").shown(found.recall_id) is None


def test_an_empty_recall_yields_no_block_and_discloses_nothing(open_store: OpenStore, database: Database) -> None:
    store = open_store()
    observe(store, "Could start in May.")
    found = recall(store, subject=JOB)
    assert (found.memories, found.block) == ((), None)
    assert disclosures(database) == []
    assert store.shown(found.recall_id) is None


# What comes back


def test_filters_are_applied_before_the_limit(open_store: OpenStore, clock: Clock, database: Database) -> None:
    store = open_store(clock=clock, embedder=HashedWords())
    wanted = store.remember_many(
        observation(f"could start in week {week}", created_at=clock.now - timedelta(days=30 + week))
        for week in range(5)
    )
    # Newer and nearer than all that is wanted:
    store.remember_many(fact(f"when could they start {n}") for n in range(20))
    store.remember_many(
        observation(f"when could they start {n}", subject=Subject("candidate", "c-8")) for n in range(20)
    )
    restricted = store.remember_many(observation(f"when could they start, not used {n}") for n in range(20))
    by_hand(database, restricted, "restricted_at = now()")
    expired = store.remember_many(
        observation(f"when could they start, expired {n}", expires_at=clock.now + timedelta(hours=1)) for n in range(20)
    )
    open_store("acme-corp", clock=clock, embedder=HashedWords()).remember_many(
        observation(f"when could they start, elsewhere {n}") for n in range(20)
    )
    clock.step(hours=2)
    for ranking in (None, "dense", "lexical", "hybrid", "recency"):
        found = recall(store, limit=5, kinds=["observation"], subject=CANDIDATE, ranking=ranking)
        assert sorted(ids([one.memory for one in found.memories])) == sorted(ids(wanted)), ranking
    everything = recall(store, limit=50)
    assert {one.memory.memory_id for one in everything.memories}.isdisjoint(ids([*restricted, *expired]))
    assert len(everything.memories) == 45
    assert {one.memory.org_id for one in everything.memories} == {"acme"}


def test_only_the_kinds_that_were_asked_for_come_back(open_store: OpenStore, subtests: pytest.Subtests) -> None:
    store = open_store(embedder=HashedWords())
    store.remember_many([observation("one"), fact("two"), observation("three"), fact("four")])
    asked: list[tuple[Any, set[Kind]]] = [
        (["fact"], {Kind.FACT}),
        ("fact", {Kind.FACT}),
        ([Kind.OBSERVATION], {Kind.OBSERVATION}),
        (iter(("observation", "fact")), {*Kind}),
        (None, {*Kind}),
    ]
    for kinds, wanted in asked:
        with subtests.test(str(kinds)):
            found = recall(store, kinds=kinds)
            assert {one.memory.kind for one in found.memories} == wanted
            assert len(found.memories) == 2 * len(wanted)


def test_if_five_live_memories_exist_five_come_back(open_store: OpenStore, clock: Clock, database: Database) -> None:
    embedding, silent = open_store(clock=clock, embedder=HashedWords()), open_store(clock=clock)
    soon = clock.now + timedelta(hours=1)
    for number in range(5):
        embedding.remember_many(
            observation(f"when could they start, expired {number} {n}", expires_at=soon) for n in range(4)
        )
    clock.step(hours=2)
    near = [observe(embedding, "they could start in May"), observe(embedding, "a desk by the window")]
    unembedded = [observe(silent, f"not embedded {number}") for number in range(3)]
    found = recall(embedding)
    assert how(found) == SEMANTIC
    assert found.unembedded == 3
    assert ids([one.memory for one in found.memories]) == ids([*near, *reversed(unembedded)])
    assert [one.filled_up for one in found.memories] == [False, False, True, True, True]
    assert [one.score is None for one in found.memories] == [False, False, True, True, True]
    assert counts(database)["memory"] == 25
    assert len(recall(embedding, limit=4).memories) == 4


live_and_not = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["fact", "observation"]),
            "subject": st.sampled_from([CANDIDATE, Subject("candidate", "c-8"), JOB]),
            "embedded": st.booleans(),
            "fate": st.sampled_from(["live", "live", "live", "expired", "restricted", "forgotten"]),
            "age": st.integers(0, 9),
        }
    ),
    max_size=12,
)


@on_one_database
@given(
    held=live_and_not,
    limit=st.integers(1, 15),
    kinds=st.none() | st.sampled_from([["fact"], ["observation"]]),
    subject=st.sampled_from([None, CANDIDATE, JOB]),
)
def test_as_many_live_memories_come_back_as_there_are_up_to_the_limit_and_no_other(
    new_organisation: Callable[..., MemoryStore],
    open_store: OpenStore,
    database: Database,
    held: list[dict[str, Any]],
    limit: int,
    kinds: list[str] | None,
    subject: Subject | None,
) -> None:
    clock = Clock()
    silent = new_organisation()
    embedding = open_store(silent.org_id, clock=clock, embedder=HashedWords())
    made: list[tuple[dict[str, Any], Memory]] = []
    for number, one in enumerate(held):
        if one["subject"] is not JOB:
            one["kind"] = "observation"
        item = observation(
            f"could start {number}",
            kind=one["kind"],
            subject=one["subject"],
            created_at=clock.now - timedelta(days=one["age"]),
            expires_at=clock.now + timedelta(hours=1) if one["fate"] == "expired" else None,
        )
        made.append((one, (embedding if one["embedded"] else silent).remember(**item)))
    by_hand(database, [memory for one, memory in made if one["fate"] == "restricted"], "restricted_at = now()")
    tombstone = (
        "text = NULL, text_sha256 = NULL, embedding = NULL, embedding_model = NULL, forgotten_at = now(), "
        "forgotten_by = 'user:ines', forgotten_reason = 'asked to'"
    )
    by_hand(database, [memory for one, memory in made if one["fate"] == "forgotten"], tombstone)
    clock.step(hours=2)
    live = [(one, memory) for one, memory in made if one["fate"] == "live"]
    eligible = [
        memory
        for one, memory in live
        if (kinds is None or one["kind"] in kinds) and (subject is None or one["subject"] == subject)
    ]
    found = recall(embedding, limit=limit, kinds=kinds, subject=subject)
    back = [one.memory.memory_id for one in found.memories]
    assert len(back) == len(set(back)) == min(limit, len(eligible))
    assert set(back) <= set(ids(eligible))
    is_pinned = any(one["embedded"] for one in held)
    assert found.unembedded == (sum(not one["embedded"] for one, _ in live) if is_pinned else len(live))
    scored = [one for one in found.memories if one.score is not None]
    filled = [one for one in found.memories if one.score is None]
    assert [*found.memories] == scored + filled
    assert [one.score for one in scored] == sorted([one.score or 0 for one in scored], reverse=True)
    newest_first = sorted(filled, key=lambda one: (one.memory.created_at, one.memory.memory_id), reverse=True)
    assert filled == newest_first
    assert (found.mode is RecallMode.SEMANTIC) == bool(scored)
    assert all(one.filled_up == (found.mode is RecallMode.SEMANTIC) for one in filled)
    assert all(one.memory.state is State.LIVE for one in found.memories)


def test_the_nearest_come_first_with_their_cosine(open_store: OpenStore) -> None:
    words = HashedWords()
    store = open_store(embedder=words)
    kept = ["they could start in May", "prefers mornings", "when could they start", "a desk by the window"]
    store.remember_many(observation(text) for text in kept)
    found = recall(store, "when could they start?", ranking="dense")
    assert how(found) == (RecallMode.SEMANTIC, None, Ranking.DENSE, Search.EXACT)
    assert texts(found)[:2] == ["when could they start", "they could start in May"]
    for one in found.memories:
        cosine = float(numpy.dot(words.vector("when could they start?"), words.vector(one.memory.text or "")))
        assert one.score == pytest.approx(cosine, abs=0.002)


def test_expiry_is_decided_by_the_clock_though_nothing_was_swept(open_store: OpenStore, clock: Clock) -> None:
    store = open_store(clock=clock, embedder=HashedWords())
    memory = observe(store, "Could start in May.")
    clock.now = memory.expires_at - timedelta(microseconds=1)
    assert texts(recall(store)) == ["Could start in May."]
    clock.now = memory.expires_at
    for ranking in (None, "recency"):
        assert recall(store, ranking=ranking).memories == ()
    assert recall(store).unembedded == 0
    assert store.held(CANDIDATE).memories[0].state is State.EXPIRED


def test_by_the_databases_clock_as_well_nothing_expired_comes_back(open_store: OpenStore, database: Database) -> None:
    store = open_store(embedder=HashedWords())
    memory = observe(store, "Could start in May.")
    by_hand(database, [memory], "created_at = now() - interval '2 days', expires_at = now() - interval '1 second'")
    assert recall(store).memories == ()
    assert recall(store, ranking="recency").memories == ()


def test_reading_extends_and_changes_nothing(open_store: OpenStore, clock: Clock, database: Database) -> None:
    store = open_store(clock=clock, embedder=HashedWords())
    observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    records = ("recall", "disclosure", "trail")  # of what was read
    before = snapshot(database, without=records)
    clock.step(days=5)
    for ranking in (None, "recency"):
        found = recall(store, ranking=ranking)
        store.shown(found.recall_id)
    store.held(CANDIDATE)
    store.find_subjects("Zoë")
    store.overview()
    store.embed()
    assert snapshot(database, without=records) == before
    looked = execute(database, "SELECT act, subject_id FROM trail ORDER BY number")
    assert looked == [*[("look at recall", None)] * 2, ("look", "c-81")]


@pytest.mark.parametrize("state", ["restricted", "forgotten", "swept"])
def test_what_may_not_be_used_is_never_recalled(open_store: OpenStore, database: Database, state: str) -> None:
    store = open_store(embedder=HashedWords())
    memory = observe(store, "Could start in May.")
    if state == "forgotten":
        store.forget(CANDIDATE, by="user:ines", reason="asked to")
    elif state == "restricted":
        by_hand(database, [memory], "restricted_at = now()")
    else:
        nothing = "text = NULL, text_sha256 = NULL, embedding = NULL, embedding_model = NULL, swept_at = now()"
        by_hand(database, [memory], nothing)
    assert recall(store).memories == recall(store, ranking="recency").memories == ()
    assert store.held(CANDIDATE).memories[0].state == state


# Which mode, and why


def test_without_an_embedder_recall_is_recency_and_says_so(open_store: OpenStore) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    found = recall(open_store())
    assert how(found) == because("no embedder is configured")
    assert texts(found) == ["Could start in May."]
    assert found.block is not None
    assert 'mode="recency" because="no embedder is configured"' in found.block.text
    assert NO_DECISION_SENTENCE in found.block.text


def test_what_was_asked_for_newest_first_is_so_and_asks_no_embedder(open_store: OpenStore) -> None:
    words = HashedWords()
    store = open_store(embedder=words)
    observe(store, "when could they start")
    observe(store, "a desk by the window")
    asked = words.asked
    found = recall(store, "when could they start", ranking="recency")
    assert how(found) == because("asked for")
    assert texts(found) == ["a desk by the window", "when could they start"]
    assert recall(store, "", ranking=Ranking.RECENCY).reason == "asked for"
    assert words.asked == asked


def test_before_anything_is_embedded_recall_is_recency_and_asks_nobody(open_store: OpenStore) -> None:
    observe(open_store(), "Could start in May.")
    words = HashedWords()
    found = recall(open_store(embedder=words))
    assert how(found) == because(NOTHING_EMBEDDED)
    assert (found.unembedded, words.asked) == (1, 0)


def test_when_nothing_live_is_embedded_recall_is_recency_and_says_so(open_store: OpenStore, clock: Clock) -> None:
    embedding = open_store(clock=clock, embedder=HashedWords())
    observe(embedding, "Could start in May.", expires_at=clock.now + timedelta(hours=1))
    observe(open_store(clock=clock), "Speaks Dutch.")
    clock.step(hours=1)
    found = recall(embedding)
    assert how(found) == because(NOTHING_EMBEDDED)
    assert (texts(found), found.unembedded) == (["Speaks Dutch."], 1)


def test_an_unreachable_embedder_makes_it_recency_with_that_reason(open_store: OpenStore) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    nobody = Unreachable()
    store = open_store(embedder=nobody)
    for _ in range(3):
        found = recall(store)
        assert how(found) == because("the embedder is unreachable")
        assert texts(found) == ["Could start in May."]
    assert nobody.asked == 1


def test_a_slow_embedder_costs_two_seconds_once_and_is_asked_again_after_the_pause(open_store: OpenStore) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    seconds = [1000.0]
    slow = Sleeping(2.4)
    store = open_store(embedder=Guarded(slow, clock=lambda: seconds[0]))
    began = time.monotonic()
    found = recall(store)
    took = time.monotonic() - began
    assert how(found) == because("the embedder was too slow")
    assert texts(found) == ["Could start in May."]
    assert took >= 2.0
    assert 2000 <= found.timings.embed_ms < 2390
    for ahead in (0.0, PAUSE_S - 0.1):
        seconds[0] = 1000.0 + ahead
        again = recall(store)
        assert again.reason == "the embedder was too slow"
        assert again.timings.embed_ms < 500
    assert slow.asked == 1
    seconds[0] = 1000.0 + PAUSE_S + 0.1
    slow.seconds = 0.0
    assert how(recall(store)) == SEMANTIC
    assert slow.asked == 2
    assert PAUSE_S == 30


def test_after_the_pause_an_embedder_that_is_back_serves_again(open_store: OpenStore) -> None:
    class Fickle(HashedWords):
        is_up = False

        def embed_query(self, text: str) -> Any:
            vector = super().embed_query(text)
            if not self.is_up:
                raise TimeoutError
            return vector

    observe(open_store(embedder=HashedWords()), "Could start in May.")
    seconds, fickle = [0.0], Fickle()
    store = open_store(embedder=Guarded(fickle, clock=lambda: seconds[0]))
    assert recall(store).reason == "the embedder is unreachable"
    fickle.is_up = True
    assert recall(store).reason == "the embedder is unreachable"
    seconds[0] = PAUSE_S
    assert recall(store).mode is RecallMode.SEMANTIC
    fickle.is_up = False
    assert recall(store).reason == "the embedder is unreachable"
    assert fickle.asked == 3


NOT_VECTORS: dict[str, Any] = {
    "NaN": [float("nan")] * 64,
    "one NaN": [1.0] * 63 + [float("nan")],
    "infinite": [float("inf")] * 64,
    "too large": [1.0] * 63 + [65505.0],
    "zeros": [0.0] * 64,
    "zeros once halved": [1e-9] * 64,
    "too short": [1.0] * 63,
    "too long": [1.0] * 65,
    "far too long": [1.0] * 4001,
    "empty": [],
    "none": None,
    "text": "vector",
    "words": ["one"] * 64,
    "nested": [[1.0] * 64],
    "a number": 1.0,
    "a mapping": {"embedding": [1.0] * 64},
}


def test_what_is_no_vector_of_the_pinned_length_makes_it_recency(
    open_store: OpenStore, subtests: pytest.Subtests
) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    for name, answer in NOT_VECTORS.items():
        with subtests.test(name):
            found = recall(open_store(embedder=Answering(answer)))
            assert how(found) == because("the embedder answered with an unusable vector")
            assert texts(found) == ["Could start in May."]


def test_the_largest_numbers_a_stored_vector_can_hold_are_compared(open_store: OpenStore) -> None:
    observe(open_store(embedder=Answering(document=[65504.0] * 64)), "Could start in May.")
    (one,) = recall(open_store(embedder=Answering([-65504.0] * 64)), ranking="dense").memories
    assert one.score == pytest.approx(-1.0)
    (one,) = recall(open_store(embedder=Answering([1e-7] * 64)), ranking="dense").memories
    assert one.score == pytest.approx(1.0)


def test_a_vector_of_the_most_dimensions_there_may_be_is_stored_beside_the_longest_of_everything_else(
    open_store: OpenStore, database: Database
) -> None:
    store = open_store(embedder=HashedWords("w" * 128, MAX_DIMENSIONS))
    longest = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
    who = {"author": "agent:" + "a" * 122, "run_id": "r" * 128, "source": ",".join(letter * 127 for letter in "abcd")}
    observe(store, longest, subject=Subject("t" * 128, "i" * 128), **who)
    assert how(recall(store, longest)) == SEMANTIC
    assert execute(database, "SELECT vector_dims(embedding) FROM memory") == [(MAX_DIMENSIONS,)]


# One model an organisation


def test_another_model_than_the_pinned_one_is_neither_asked_nor_stored(
    open_store: OpenStore, database: Database
) -> None:
    observe(open_store(embedder=HashedWords("words")), "Could start in May.")
    other = HashedWords("others")
    store = open_store(embedder=other)
    found = recall(store)
    assert how(found) == because(ANOTHER_MODEL)
    assert texts(found) == ["Could start in May."]
    assert observe(store, "Speaks Dutch.").embedding_model is None
    with pytest.raises(EmbedderError):
        store.embed()
    assert other.asked == 0
    assert execute(database, "SELECT DISTINCT embedding_model FROM memory ORDER BY 1") == [("words",), (None,)]
    assert recall(store).unembedded == 1
    assert execute(database, "SELECT embedding_model, embedding_dimensions FROM organisation_setting") == [
        ("words", 64)
    ]


def test_the_pinned_model_under_its_name_with_another_length_is_never_compared(
    open_store: OpenStore, database: Database
) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    store = open_store(embedder=HashedWords(dimensions=32))
    assert recall(store).reason == "the embedder answered with an unusable vector"
    assert observe(store, "Speaks Dutch.").embedding_model is None
    assert execute(database, "SELECT DISTINCT vector_dims(embedding) FROM memory WHERE embedding IS NOT NULL") == [
        (64,)
    ]


def test_each_organisation_pins_its_own_model(open_store: OpenStore) -> None:
    for org_id, embedder in (("acme", HashedWords("words")), ("acme-corp", HashedWords("others", 32))):
        store = open_store(org_id, embedder=embedder)
        observe(store, "when could they start")
        assert how(recall(store)) == SEMANTIC
        assert store.overview().embedding_model == embedder.name


def test_a_store_that_looked_before_the_model_was_pinned_follows_the_pin(open_store: OpenStore) -> None:
    early = open_store(embedder=HashedWords())
    assert recall(early).reason == NOTHING_EMBEDDED
    observe(open_store(embedder=HashedWords()), "when could they start")
    assert how(recall(early)) == SEMANTIC


def test_after_the_pin_was_changed_by_hand_no_vector_of_the_old_model_is_compared(
    open_store: OpenStore, database: Database
) -> None:
    old, new = open_store(embedder=HashedWords("words")), open_store(embedder=HashedWords("others", 32))
    observe(old, "when could they start")
    assert how(recall(old)) == SEMANTIC
    execute(database, "UPDATE organisation_setting SET embedding_model = 'others', embedding_dimensions = 32")
    assert how(recall(old)) == because(ANOTHER_MODEL)
    assert how(recall(new)) == because(NOTHING_EMBEDDED)
    assert recall(new).unembedded == 1
    assert new.embed().count == 1
    assert how(recall(new)) == SEMANTIC
    assert execute(database, "SELECT embedding_model, vector_dims(embedding) FROM memory") == [("others", 32)]


def test_vectors_of_another_length_under_the_pinned_name_are_not_compared_and_their_memories_still_come_back(
    open_store: OpenStore, database: Database
) -> None:
    store = open_store(embedder=HashedWords())
    stored = store.remember_many(observation(f"when could they start {number}") for number in range(5))
    by_hand(database, stored[:2], "embedding = '[1,2,3]'")
    found = recall(store)
    assert how(found) == SEMANTIC
    assert {one.memory.memory_id for one in found.memories if one.score is not None} == set(ids(stored[2:]))
    assert {one.memory.memory_id for one in found.memories} == set(ids(stored))
    assert {one.memory.memory_id for one in found.memories if one.filled_up} == set(ids(stored[:2]))


def test_when_the_pinned_model_comes_to_have_another_length_its_vectors_are_made_anew(
    open_store: OpenStore, database: Database
) -> None:
    old = open_store(embedder=HashedWords())
    old.remember_many(observation(f"when could they start {number}") for number in range(3))
    execute(database, "UPDATE organisation_setting SET embedding_dimensions = 32")
    new = open_store(embedder=HashedWords(dimensions=32))
    found = recall(new)
    assert how(found) == because(NOTHING_EMBEDDED)
    assert len(found.memories) == 3
    assert new.embed().count == 3
    assert how(recall(new)) == SEMANTIC
    assert execute(database, "SELECT DISTINCT vector_dims(embedding) FROM memory") == [(32,)]


@pytest.mark.model
def test_a_change_of_model_is_followed_by_every_store(open_store: OpenStore, database: Database) -> None:
    old = open_store(embedder=HashedWords())
    stored = old.remember_many(observation(text) for text in ("They can begin in spring.", "A desk by the window."))
    assert how(recall(old)) == SEMANTIC
    steps: list[tuple[int, int]] = []
    changed = open_store().embed(model="minilm", progress=lambda *done: steps.append(done))
    assert (changed.count, changed.model) == (2, "minilm")
    assert (steps[0], steps[-1]) == ((0, 2), (2, 2))
    assert how(recall(old)) == because(ANOTHER_MODEL)
    assert observe(old, "Speaks Dutch.").embedding_model is None
    new = open_store(embedder=minilm())
    found = recall(new, "how soon could the work start?")
    assert how(found) == SEMANTIC
    assert found.memories[0].memory.memory_id == stored[0].memory_id
    assert (found.unembedded, found.memories[-1].filled_up) == (1, True)
    assert execute(
        database, "SELECT DISTINCT embedding_model, vector_dims(embedding) FROM memory WHERE embedding NOTNULL"
    ) == [("minilm", 384)]


@pytest.mark.model
def test_a_store_that_had_used_the_pinned_model_finds_it_replaced(open_store: OpenStore) -> None:
    old = open_store(embedder=minilm())
    observe(old, "They can begin in spring.")
    assert how(recall(old)) == SEMANTIC
    with pytest.raises(Refused) as caught:
        old.embed(model="word2vec")
    assert (caught.value.rule, caught.value.field) == ("model_is_known", "model")
    assert how(recall(old)) == SEMANTIC


def test_a_change_to_a_model_that_does_not_answer_keeps_the_one_that_is_pinned(open_store: OpenStore) -> None:
    store = open_store(embedder=HashedWords())
    observe(store, "when could they start")
    with pytest.raises(EmbedderError):
        store.embed(model="ollama:no-such-model-anywhere")
    assert store.overview().embedding_model == "words"
    assert how(recall(store)) == SEMANTIC


# What is refused


def test_a_limit_outside_1_to_50_is_refused_and_nothing_is_recorded(
    open_store: OpenStore, database: Database, subtests: pytest.Subtests
) -> None:
    limits: list[Any] = [0, -1, 51, 10_000, True, "5", 5.0, None]
    for limit in limits:
        with subtests.test(repr(limit)):
            with pytest.raises(Refused) as caught:
                recall(open_store(), limit=limit)
            assert (caught.value.rule, caught.value.field) == ("limit_range", "limit")
    assert counts(database) == {}


def test_a_recall_that_cannot_be_carried_out_is_refused_and_not_recorded(
    open_store: OpenStore, database: Database, subtests: pytest.Subtests
) -> None:
    store = open_store()
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("query", {"query": " "}),
        ("query", {"query": "a\x00"}),
        ("query", {"query": "a" * 8001}),
        ("query", {"query": None}),
        ("run_id", {"run_id": ""}),
        ("run_id", {"run_id": "r 1"}),
        ("token_budget", {"token_budget": 0}),
        ("kinds", {"kinds": ["opinion"]}),
        ("kinds", {"kinds": []}),
        ("subject", {"subject": "candidate c-81"}),
        ("ranking", {"ranking": "best"}),
        ("purpose", {"purpose": "audit"}),
    ]
    for field, changes in wrong:
        with subtests.test(f"{field} {changes}"[:60]):
            with pytest.raises(Refused) as caught:
                store.recall(**{"query": "when?", "run_id": "r-1", **changes})
            assert caught.value.field == field
    assert counts(database) == {}


def test_a_token_budget_beyond_all_measure_is_refused_or_does_no_harm(open_store: OpenStore) -> None:
    store = open_store()
    observe(store, "Could start in May.")
    try:
        found = recall(store, token_budget=10**12)
    except Refused as refused:
        found = None
        where = refused.field
    assert found.block is not None if found else where == "token_budget"


# The block and its budget


def long_and_short(store: MemoryStore) -> None:
    store.remember_many(observation(f"no. {number} " + "word " * (number % 4 * 30)) for number in range(12))


@on_one_database
@given(budget=st.integers(1, 1500), limit=st.integers(1, 12))
def test_a_block_keeps_within_its_budget_and_says_how_many_were_left_out(
    new_organisation: Callable[..., MemoryStore], database: Database, budget: int, limit: int
) -> None:
    store = new_organisation()
    long_and_short(store)
    found = recall(store, token_budget=budget, limit=limit)
    shown = [one for one in found.memories if one.shown]
    assert len(found.memories) == limit
    told = [(place, memory_id) for recall_id, place, memory_id in disclosures(database) if recall_id == found.recall_id]
    assert told == list(enumerate(ids([one.memory for one in shown]), start=1))
    if found.block is None:
        assert shown == []
        assert store.shown(found.recall_id) is None
        return
    assert found.block.tokens <= budget
    assert found.block.omitted == limit - len(shown)
    assert (f'omitted="{found.block.omitted}"' in found.block.text) == (found.block.omitted > 0)
    lines = found.block.text.splitlines()[3:-1]
    assert len(lines) == len(shown)
    for number, (line, one) in enumerate(zip(lines, shown, strict=True), start=1):
        assert line.startswith(f"[{number}] inferred by agent:screening in run r-1 on 2026-11-02 about candidate c-81")
        assert json.loads(line[line.index(': "') + 2 :]) == one.memory.text
    assert store.shown(found.recall_id) == found.block


def test_a_line_that_does_not_fit_is_skipped_and_the_next_is_tried(open_store: OpenStore) -> None:
    store = open_store()
    kept = [observe(store, "short, older"), observe(store, "word " * 390), observe(store, "short, newer")]
    found = recall(store, token_budget=300)
    assert [one.memory.memory_id for one in found.memories] == ids(kept[::-1])
    assert [one.shown for one in found.memories] == [True, False, True]
    assert found.block is not None
    assert found.block.omitted == 1
    assert "word word" not in found.block.text
    assert [len(memory.disclosures) for memory in store.held(CANDIDATE).memories] == [1, 0, 1]


def test_when_nothing_fits_there_is_no_block_and_no_disclosure(open_store: OpenStore, database: Database) -> None:
    store = open_store()
    observe(store, "Could start in May.")
    found = recall(store, token_budget=10)
    assert found.block is None
    assert [one.shown for one in found.memories] == [False]
    assert disclosures(database) == []
    assert execute(database, "SELECT boundary, token_budget, omitted FROM recall") == [(None, 10, 1)]
    assert store.shown(found.recall_id) is None


# What is recorded


def test_a_recall_records_how_it_chose_and_exactly_what_it_showed(open_store: OpenStore, database: Database) -> None:
    store = open_store(embedder=HashedWords())
    store.remember_many(observation(f"when could they start {number}") for number in range(7))
    found = recall(store, limit=3, token_budget=900, purpose="preview")
    assert found.block is not None
    (row,) = execute(
        database,
        "SELECT org_id, recall_id, run_id, purpose, at, mode, reason, ranking, boundary, token_budget, omitted FROM recall",
    )
    assert row == (
        *(
            "acme",
            found.recall_id,
            "r-813",
            "preview",
            found.at,
            "semantic",
            None,
            "hybrid",
            found.block.boundary,
            900,
            0,
        ),
    )
    shown = [one.memory.memory_id for one in found.memories]
    assert disclosures(database) == [(found.recall_id, place, one) for place, one in enumerate(shown, start=1)]


def test_a_memory_says_when_in_which_place_and_to_which_run_or_preview_it_was_shown(
    open_store: OpenStore, clock: Clock
) -> None:
    store = open_store(clock=clock)
    observe(store, "old")
    clock.step(hours=1)
    first = recall(store)
    clock.step(hours=1)
    observe(store, "new")
    second = store.recall("when?", run_id="r-900", purpose=Purpose.PREVIEW)
    new, old = store.held(CANDIDATE).memories
    told = [(one.recall_id, one.run_id, one.purpose, one.at, one.place) for one in old.disclosures]
    assert told == [
        (first.recall_id, "r-813", Purpose.RUN, first.at, 1),
        (second.recall_id, "r-900", Purpose.PREVIEW, second.at, 2),
    ]
    assert [one.place for one in new.disclosures] == [1]


def test_what_was_shown_can_be_shown_again_to_the_letter(open_store: OpenStore, clock: Clock) -> None:
    store = open_store(clock=clock, embedder=HashedWords())
    long_and_short(store)
    store.remember(**fact("Panel interviews need two weeks' notice.", subject=JOB))
    store.remember(**fact('A "quote", a <tag>, a\nnewline and \u202eanother way.'))
    for options in (
        {},
        {"ranking": "recency"},
        {"token_budget": 500, "limit": 12},
        {"kinds": "fact", "purpose": "preview"},
    ):
        found = recall(store, **options)
        assert found.block is not None
        clock.step(days=20)
        observe(store, "no. 1 " + "word " * 30)  # seen again meanwhile
        assert store.shown(found.recall_id) == found.block


def test_what_expired_or_was_restricted_since_is_still_shown_as_it_was(
    open_store: OpenStore, clock: Clock, database: Database
) -> None:
    store = open_store(clock=clock)
    restricted, _ = observe(store, "One."), observe(store, "Two.")
    found = recall(store)
    by_hand(database, [restricted], "restricted_at = now()")
    clock.step(days=400)
    assert store.shown(found.recall_id) == found.block


def test_what_was_erased_or_swept_since_is_shown_as_that_and_nothing_of_it_is_left(
    open_store: OpenStore, clock: Clock, database: Database
) -> None:
    store = open_store(clock=clock)
    observe(store, "Kept.", subject=Subject("candidate", "c-8"))
    swept = observe(store, "Swept away.", subject=Subject("candidate", "c-9"))
    observe(store, "Marker7f3a said so.")
    found = recall(store)
    assert found.block is not None
    clock.step(days=2)
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    by_hand(database, [swept], "text = NULL, text_sha256 = NULL, swept_at = %s", clock.now)
    again = store.shown(found.recall_id)
    assert again is not None
    before, after = found.block.text.splitlines(), again.text.splitlines()
    assert after[3:5] == ["[1] erased on 2026-11-04", "[2] swept on 2026-11-04"]
    assert (after[:3], after[5:]) == (before[:3], before[5:])
    assert (again.boundary, again.omitted) == (found.block.boundary, 0)
    assert traces(database, "Marker7f3a") == []


def test_a_recall_that_is_not_there_cannot_be_shown(open_store: OpenStore, subtests: pytest.Subtests) -> None:
    store, other = open_store(), open_store("acme-corp")
    observe(other, "Could start in May.")
    elsewhere = recall(other)
    assert other.shown(elsewhere.recall_id) == elsewhere.block
    absent: list[Any] = [uuid4(), elsewhere.recall_id, "no-uuid", None, 5]
    for recall_id in absent:
        with subtests.test(str(recall_id)):
            with pytest.raises(Refused) as caught:
                store.shown(recall_id)
            assert (caught.value.rule, caught.value.field) == ("recall_exists", "recall_id")


def test_no_word_of_a_query_is_kept_anywhere(open_store: OpenStore, database: Database) -> None:
    store = open_store(embedder=HashedWords())
    observe(store, "Could start in May.")
    for options in ({}, {"ranking": "recency"}, {"purpose": "preview"}, {"token_budget": 1}, {"subject": JOB}):
        recall(store, "does Marker9c41 start soon?", **options)
    recall(open_store(embedder=Answering("Marker9c41")), "Marker9c41?")
    recall(open_store(embedder=Unreachable()), "Marker9c41?")
    with pytest.raises(Refused):
        recall(store, "Marker9c41", limit=0)
    assert traces(database, "Marker9c41") == []
    running = execute(database, "SELECT query FROM pg_stat_activity WHERE datname = current_database()")
    assert "Marker9c41" not in str(running)
    assert counts(database)["recall"] == 7


def test_timings_are_of_the_embedder_and_of_the_search(open_store: OpenStore) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    found = recall(open_store(embedder=Sleeping(0.2)))
    assert found.timings.embed_ms >= 200
    assert 0 < found.timings.search_ms < found.timings.embed_ms + 5000
    assert recall(open_store(), ranking="recency").timings.embed_ms < 100


def test_a_recalled_memory_carries_its_provenance(open_store: OpenStore, clock: Clock) -> None:
    store = open_store(clock=clock, embedder=HashedWords())
    item = observation("when could they start", source="msg-1", run_id="r-7")
    stored = store.remember(**item)
    (one,) = recall(store).memories
    assert one.memory == stored


# Large organisations


def clusters(number: int, size: int, dimensions: int) -> Any:
    """Return unit vectors around as many centres, as sentences on the same matter have them; the same every time."""
    random = numpy.random.default_rng(7)
    centres = random.standard_normal((number, 1, dimensions))
    vectors = (centres + 0.35 * random.standard_normal((number, size, dimensions))).reshape(-1, dimensions)
    return (vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)).astype(numpy.float16)


@pytest.mark.slow
def test_a_large_organisation_is_searched_by_the_signs_first_and_hardly_anything_is_missed(
    open_store: OpenStore, database: Database
) -> None:
    dimensions, small, more = 128, 20_000, 480
    vectors = clusters(2560, 8, dimensions)
    assert len(vectors) == small + more
    first = observe(open_store(embedder=HashedWords(dimensions=dimensions)), "pins the model")
    by_hand(database, [first], "embedding = NULL, embedding_model = NULL")
    insert_vectors(database, vectors, range(small))
    queries = [vectors[place].astype(float) for place in range(0, small, 2000)]
    stores = [open_store(embedder=Answering(query.tolist())) for query in queries]
    exact = [recall(store, ranking="dense") for store in stores]
    assert {found.search for found in exact} == {Search.EXACT}
    insert_vectors(database, vectors, range(small, small + more))
    for found, query in zip(exact, queries, strict=True):
        nearest = numpy.sort(vectors[:small].astype(float) @ query)[::-1][:5]
        assert [one.score for one in found.memories] == pytest.approx(list(nearest), abs=0.001)
    hits = 0
    for store, query in zip(stores, queries, strict=True):
        assert how(recall(store)) == (RecallMode.SEMANTIC, None, Ranking.HYBRID, Search.QUANTISED)
        found = recall(store, ranking="dense")
        assert how(found) == (RecallMode.SEMANTIC, None, Ranking.DENSE, Search.QUANTISED)
        assert len(found.memories) == 5
        scores = [one.score or 0.0 for one in found.memories]
        assert scores == sorted(scores, reverse=True)
        best = numpy.argsort(-(vectors.astype(float) @ query))[:5]
        hits += len({f"sentence {place}" for place in best} & set(texts(found)))
    assert hits >= 0.9 * 5 * len(queries)


@pytest.mark.slow
def test_a_large_organisation_is_filtered_before_the_limit_as_well(open_store: OpenStore, database: Database) -> None:
    vectors = clusters(205, 100, 64)
    store = open_store(embedder=HashedWords())
    near = [observe(store, "when could they start", subject=Subject("candidate", f"c-{number}")) for number in range(3)]
    insert_vectors(database, vectors, range(20_500))
    found = recall(store, subject=Subject("candidate", "c-1"))
    assert found.search is Search.QUANTISED
    assert [one.memory.memory_id for one in found.memories] == [near[1].memory_id]
    by_hand(database, near, "restricted_at = now()")
    assert {one.memory.memory_id for one in recall(store, limit=50).memories}.isdisjoint(ids(near))
    assert len(recall(store, limit=50).memories) == 50


def insert_vectors(database: Database, vectors: Any, places: range) -> None:
    """Store one embedded fact a vector, past the store, as the superuser."""
    columns = (
        "org_id, memory_id, kind, text, text_sha256, origin, author, run_id, created_at, expires_at, last_seen_at, "
        "last_seen_run_id, embedding, embedding_model"
    )
    with database.connect() as connection:
        connection.execute("CREATE TEMPORARY TABLE made (place int, vector halfvec)")
        with connection.cursor().copy("COPY made FROM STDIN") as copy:
            for place in places:
                copy.write_row((place, "[" + ",".join(f"{number:.6g}" for number in vectors[place].tolist()) + "]"))
        connection.execute(
            f"INSERT INTO memory ({columns}) "
            "SELECT 'acme', gen_random_uuid(), 'fact', words, sha256(convert_to(words, 'UTF8')), 'person', 'user:maria', "
            "'r-1', now() - interval '1 day', now() + interval '80 days', now(), 'r-1', vector, 'words' "
            "FROM made, LATERAL (SELECT 'sentence ' || place) AS said (words)"
        )
    with database.connect(autocommit=True) as connection:
        connection.execute("ANALYZE memory")


# The attack list


@pytest.mark.skipif(not (SHARED / "data" / "attacks.jsonl").exists(), reason="the shared attack list is not here")
def test_every_attack_remembered_and_recalled_stays_behind_one_fence_on_one_line(open_store: OpenStore) -> None:
    attacks = [json.loads(line)["text"] for line in (SHARED / "data" / "attacks.jsonl").read_text().splitlines()]
    store = open_store()
    for number, attack in enumerate(attacks):
        about = Subject("candidate", f"c-{number}")
        observe(store, attack, subject=about)
        block = store.recall("what is known?", run_id="r-2", subject=about).block
        assert block is not None
        lines = block.text.splitlines()
        assert len(lines) == 5, attack
        assert [line for line in lines if line.startswith("<memories ")] == lines[:1]
        assert [line for line in lines if line.startswith("</memories ")] == lines[-1:]
        assert block.text.count("<") == 2
        assert block.text.count(block.boundary) == 2
    every = store.recall("what is known?", run_id="r-3", limit=50).block
    assert every is not None
    assert len(every.text.splitlines()) == len(attacks) + 4
