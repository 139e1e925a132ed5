"""What has no vector gets one later: all of it, only what may be used, and never by two models at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from conftest import Database, connect
from sqlalchemy import URL
from wire import vector

from memory_core import Memory, MemoryStore, RecallMode, Subject
from memory_core.backlog import embed_backlog, repin
from memory_core.config import settings
from memory_core.db import embedded, organisations
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.embedders import BATCH, MAX_DIMENSIONS, PAUSE_S, Guarded
from memory_core.embedding import STAYS_HERE, given
from memory_core.errors import BadVector, EmbedderError, EmbedderUnavailable, Refused
from memory_core.privacy import PrivacyDesk

ABOUT = Subject("candidate", "c-81")
NO_OLLAMA = "http://127.0.0.1:9"
FACT = {"kind": "fact", "origin": "person", "author": "user:maria", "run_id": "r-1"}
OBSERVATION = {"kind": "observation", "origin": "inference", "author": "agent:screening", "run_id": "r-1"}


class Fake:
    """An embedder of counted words, which does before each batch what a test asks for."""

    def __init__(self, name: str = "fake", *, dimensions: int = 16) -> None:
        self.name = name
        self.dimensions = dimensions
        self.batches: list[list[str]] = []
        self.queries = 0
        self.before: Callable[[int, Sequence[str]], None] = lambda count, texts: None

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        self.before(len(self.batches) + 1, texts)
        self.batches.append(list(texts))
        return [vector(text, dimensions=self.dimensions) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries += 1
        return vector(text, dimensions=self.dimensions)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def superuser(standing: Database) -> URL:
    """One migrated database, in which every test has an organisation of its own."""
    return standing.superuser


class Desk:
    """One organisation, by its stores and by what its rows say."""

    def __init__(self, application: URL, superuser: URL) -> None:
        self.org_id = uuid4().hex
        self.application = application
        self._superuser = superuser

    def store(self, embedder: Any = None, **options: Any) -> MemoryStore:
        chosen = settings(memory_embedder="none", ollama_host=NO_OLLAMA)
        return MemoryStore.open(
            self.org_id, database_url=self.application, embedder=embedder, settings=chosen, **options
        )

    def written(self, count: int, **fields: Any) -> list[Memory]:
        items = [{"text": f"Note {number} of the day.", **FACT, **fields} for number in range(count)]
        return self.store().remember_many(items)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with connect(self._superuser) as connection:
            return connection.execute(query, {"org_id": self.org_id}).fetchall()

    def models(self) -> dict[str, str | None]:
        return dict(
            self.rows("SELECT text, embedding_model FROM memory WHERE org_id = %(org_id)s AND text IS NOT NULL")
        )

    def embedded(self) -> int:
        return sum(model is not None for model in self.models().values())

    def change(self, assignment: str, memory_id: UUID) -> None:
        with connect(self._superuser) as connection:
            connection.execute(f"UPDATE memory SET {assignment} WHERE memory_id = %s", (memory_id,))


@pytest.fixture
def desk(cluster: embedded.Cluster, superuser: URL) -> Desk:
    return Desk(cluster.application.set(database=superuser.database), superuser)


def fails_at(batch: int) -> Callable[[int, Sequence[str]], None]:
    def before(count: int, texts: Sequence[str]) -> None:
        if count == batch:
            raise RuntimeError("the embedder died")

    return before


# All of it


@pytest.mark.parametrize("count", [0, 1, BATCH, BATCH + 1, 2 * BATCH])
def test_every_live_memory_is_embedded_once_with_progress(count: int, desk: Desk) -> None:
    desk.written(count)
    fake, progress = Fake(), []
    done = desk.store(fake).embed(progress=lambda *numbers: progress.append(numbers))
    assert (done.count, done.model) == (count, "fake")
    assert set(desk.models().values()) <= {"fake"}
    assert desk.embedded() == count
    assert progress[0] == (0, count)
    assert progress[-1] == (count, count)
    assert progress == sorted(progress)
    assert sum(map(len, fake.batches)) == count
    assert max(map(len, fake.batches), default=0) <= BATCH
    assert desk.store(fake).embed().count == 0


def test_nothing_to_embed_pins_no_model(desk: Desk) -> None:
    desk.store(Fake()).embed()
    assert desk.store().overview().embedding_model is None


def test_an_embedding_that_is_interrupted_keeps_what_was_done_and_resumes(desk: Desk) -> None:
    clock, fake, progress = Clock(), Fake(), []
    desk.written(5 * BATCH)
    fake.before = fails_at(3)
    store = desk.store(Guarded(fake, clock=clock))
    with pytest.raises(EmbedderUnavailable):
        store.embed()
    assert desk.embedded() == 2 * BATCH
    assert store.overview().unembedded == 3 * BATCH

    fake.before = lambda count, texts: None
    clock.now += PAUSE_S
    done = store.embed(progress=lambda *numbers: progress.append(numbers))
    assert done.count == 3 * BATCH
    assert progress[0] == (0, 3 * BATCH)
    assert progress[-1] == (3 * BATCH, 3 * BATCH)
    assert desk.embedded() == 5 * BATCH
    embedded_texts = [text for batch in fake.batches for text in batch]
    assert sorted(embedded_texts) == sorted(desk.models())  # none twice


def test_while_an_embedding_is_half_done_recall_says_how_many_are_missing(desk: Desk) -> None:
    desk.written(2 * BATCH)
    fake = Fake()
    fake.before = fails_at(2)
    with pytest.raises(EmbedderUnavailable):
        desk.store(fake).embed()
    recall = desk.store(Fake()).recall("Note 1 of the day.", run_id="r-2")
    assert recall.mode is RecallMode.SEMANTIC
    assert recall.unembedded == BATCH


@pytest.mark.parametrize("fault", ["raises", "NaN"])
def test_a_memory_that_cannot_be_embedded_keeps_no_other_from_it(fault: str, desk: Desk) -> None:
    desk.written(3 * BATCH)
    bad = "Note 5 of the day."

    class Picky(Fake):
        def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
            if fault == "raises" and bad in texts:
                raise RuntimeError("this text breaks the model")
            vectors = super().embed_documents(texts)
            return [[float("nan")] * 16 if text == bad else one for text, one in zip(texts, vectors, strict=True)]

    clock = Clock()
    store = desk.store(Guarded(Picky(), clock=clock))
    for _ in range(3):
        try:
            store.embed()
        except EmbedderError:
            clock.now += PAUSE_S
    assert {text for text, model in desk.models().items() if model is None} == {bad}


def test_a_load_is_stored_also_when_its_embedding_is_interrupted(desk: Desk) -> None:
    fake = Fake()
    fake.before = fails_at(2)
    items = [{"text": f"Note {number} of the day.", **FACT} for number in range(3 * BATCH)]
    stored = desk.store(fake).remember_many(items)
    assert len(stored) == len(desk.models()) == 3 * BATCH
    assert desk.embedded() == BATCH


def test_a_load_embeds_its_own_memories_and_not_the_backlog(desk: Desk) -> None:
    desk.written(3)
    fake = Fake()
    stored = desk.store(fake).remember("We meet on Mondays.", **FACT)
    assert stored.embedding_model == "fake"
    assert fake.batches == [["We meet on Mondays."]]
    assert desk.store().overview().unembedded == 3


# Only what may be used


def test_a_memory_that_is_forgotten_while_it_is_embedded_gets_no_vector(desk: Desk) -> None:
    desk.written(2)
    kept = desk.store().remember("Prefers calls.", subject=Subject("candidate", "c-82"), **OBSERVATION)
    gone = desk.store().remember("Could start in March.", subject=ABOUT, **OBSERVATION)
    fake = Fake()
    fake.before = lambda count, texts: desk.store().forget(ABOUT, by="user:ines", reason="erasure request")
    done = desk.store(fake).embed()
    (row,) = desk.rows(
        "SELECT text, embedding IS NULL, embedding_model, forgotten_by FROM memory"
        f" WHERE org_id = %(org_id)s AND memory_id = '{gone.memory_id}'"
    )
    assert row == (None, True, None, "user:ines")
    assert desk.models()[str(kept.text)] == "fake"
    assert done.count == desk.embedded() == 3


def test_a_memory_that_is_forgotten_while_it_is_remembered_is_not_said_to_be_embedded(desk: Desk) -> None:
    fake = Fake()
    fake.before = lambda count, texts: desk.store().forget(ABOUT, by="user:ines", reason="erasure request")
    stored = desk.store(fake).remember("Could start in March.", subject=ABOUT, **OBSERVATION)
    assert desk.models() == {}
    assert stored.embedding_model is None


def test_a_restricted_memory_is_not_sent_to_an_embedder(desk: Desk) -> None:
    first, second = desk.written(2)
    desk.change("restricted_at = now()", first.memory_id)
    fake = Fake()
    assert desk.store(fake).embed().count == 1
    assert fake.batches == [[second.text]]
    assert desk.models() == {first.text: None, second.text: "fake"}


def test_a_memory_that_is_restricted_while_it_is_embedded_gets_no_vector(desk: Desk) -> None:
    first, second = desk.written(2)
    fake = Fake()
    fake.before = lambda count, texts: desk.change("restricted_at = now()", first.memory_id)
    done = desk.store(fake).embed()
    assert desk.models() == {first.text: None, second.text: "fake"}
    assert done.count == 1


def test_an_embedder_outside_is_sent_nothing_until_the_organisation_lets_it_leave(desk: Desk) -> None:
    fake, engine = Fake("far"), engine_for(desk.application)
    outside = Guarded(fake, is_outside=True)
    store = desk.store(outside)
    store.remember("Could start in May.", **OBSERVATION, subject=ABOUT)
    for sends in (store.embed, lambda: repin(engine, desk.org_id, outside)):
        with pytest.raises(EmbedderUnavailable, match="has not let observations leave"):
            sends()
    assert fake.batches == []
    with organisation_transaction(engine, desk.org_id) as connection:  # as one that was inside when it was pinned
        organisations.pin(connection, desk.org_id, model="far", dimensions=16, replace=True)
    recall = store.recall("When can they start?", run_id="r-2")
    assert (recall.mode, recall.reason) == (RecallMode.RECENCY, STAYS_HERE)
    assert fake.queries == 0
    privacy = PrivacyDesk.open(desk.org_id, by="user:ines", database_url=desk.application, embedder=None)
    privacy.change_safeguards(replace(privacy.safeguards(), observations_leave=True))
    assert store.embed().count == 1
    assert fake.batches == [["Could start in May."]]
    assert store.recall("When can they start?", run_id="r-2").mode is RecallMode.SEMANTIC


def test_what_is_not_let_leave_any_more_stops_an_embedding_under_way(desk: Desk) -> None:
    fake = Fake("far")
    privacy = PrivacyDesk.open(desk.org_id, by="user:ines", database_url=desk.application, embedder=None)
    privacy.change_safeguards(replace(privacy.safeguards(), observations_leave=True))

    def taken_back(count: int, _: Sequence[str]) -> None:
        if count == 1:
            privacy.change_safeguards(replace(privacy.safeguards(), observations_leave=False))

    fake.before = taken_back
    desk.written(2 * BATCH)
    with pytest.raises(EmbedderUnavailable, match="has not let observations leave"):
        desk.store(Guarded(fake, is_outside=True)).embed()
    assert (len(fake.batches), desk.embedded()) == (1, BATCH)


def test_an_expired_memory_is_not_sent_to_an_embedder(desk: Desk) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    desk.store(clock=lambda: now).remember("Soon over.", expires_at=now + timedelta(hours=1), **FACT)
    desk.store(clock=lambda: now).remember("Still here.", **FACT)
    fake = Fake()
    assert desk.store(fake, clock=lambda: now + timedelta(hours=1)).embed().count == 1
    assert fake.batches == [["Still here."]]


def test_another_organisations_memories_are_not_sent_to_an_embedder(desk: Desk) -> None:
    desk.written(3)
    fake = Fake()
    options = {"database_url": desk.application, "settings": settings(memory_embedder="none")}
    assert MemoryStore.open(f"{desk.org_id}-corp", embedder=fake, **options).embed().count == 0
    assert fake.batches == []


# One model at a time


def test_a_second_model_embeds_nothing_until_it_is_pinned(desk: Desk) -> None:
    desk.written(1)
    desk.store(Fake("first")).embed()
    second = Fake("second")
    store = desk.store(second)
    assert store.remember("We meet on Mondays.", **FACT).embedding_model is None
    with pytest.raises(EmbedderUnavailable, match="another model"):
        store.embed()
    assert second.batches == []
    assert store.overview().embedding_model == "first"


def test_a_change_of_model_that_is_interrupted_compares_no_vectors_of_two_models(desk: Desk) -> None:
    desk.written(3 * BATCH)
    first, second = Fake("first"), Fake("second")
    desk.store(first).embed()

    engine = engine_for(desk.application)
    repin(engine, desk.org_id, Guarded(second))
    store = desk.store(second)
    recall = store.recall("Note 1 of the day.", run_id="r-2")
    assert (recall.mode, recall.reason) == (
        RecallMode.RECENCY,
        "no live memory has an embedding by this model",
    )
    assert recall.unembedded == 3 * BATCH

    second.before = fails_at(3)  # the first was for the number of dimensions
    with pytest.raises(EmbedderUnavailable):
        embed_backlog(engine, desk.org_id, given(Guarded(second)))
    assert sorted(map(str, desk.models().values())) == ["first"] * 2 * BATCH + ["second"] * BATCH
    recall = desk.store(Fake("second")).recall("Note 1 of the day.", run_id="r-2", limit=50)
    assert (recall.mode, recall.unembedded) == (RecallMode.SEMANTIC, 2 * BATCH)
    scored = [one.memory.embedding_model for one in recall.memories if one.score is not None]
    assert scored == ["second"] * BATCH
    assert all(one.filled_up for one in recall.memories[BATCH:])
    assert len(recall.memories) == 50

    second.before = lambda count, texts: None
    assert desk.store(second).embed().count == 2 * BATCH
    assert set(desk.models().values()) == {"second"}


def test_a_change_to_a_model_that_fails_keeps_the_one_that_stands(desk: Desk) -> None:
    desk.written(1)
    desk.store(Fake("first")).embed()
    broken = Fake("second")
    broken.before = fails_at(1)
    with pytest.raises(EmbedderUnavailable):
        repin(engine_for(desk.application), desk.org_id, Guarded(broken))
    assert desk.store().overview().embedding_model == "first"
    assert desk.store(Fake("first")).recall("Note 0 of the day.", run_id="r-2").mode is RecallMode.SEMANTIC


def test_a_model_that_is_pinned_by_somebody_else_meanwhile_stays(desk: Desk) -> None:
    desk.written(2)
    slow = Fake("slow")

    def overtaken(count: int, texts: Sequence[str]) -> None:
        if count == 1:
            desk.store(Fake("quick")).embed()

    slow.before = overtaken
    with pytest.raises(EmbedderUnavailable, match="another model"):
        desk.store(slow).embed()
    assert set(desk.models().values()) == {"quick"}
    assert desk.store().overview().embedding_model == "quick"


def test_a_pinned_model_that_changes_its_dimensions_is_refused(desk: Desk) -> None:
    desk.written(1)
    desk.store(Fake(dimensions=16)).embed()
    desk.store().remember("We meet on Mondays.", **FACT)
    with pytest.raises(BadVector, match=r"8 dimensions.*16"):
        desk.store(Fake(dimensions=8)).embed()
    assert desk.models()["We meet on Mondays."] is None
    assert desk.store(Fake(dimensions=8)).recall("when?", run_id="r-2").mode is RecallMode.RECENCY


@pytest.mark.parametrize("name", ["x", "minilm", "ollama:nomic-embed-text:v1.5", "hub.example/a@sha256:0", "x" * 128])
def test_any_identifier_may_be_a_models_name(name: str, desk: Desk) -> None:
    desk.written(1)
    assert desk.store(Fake(name)).embed().model == name
    assert desk.store(Fake(name)).recall("Note 0 of the day.", run_id="r-2").mode is RecallMode.SEMANTIC


LONG = "".join(chr(0x4E00 + number) for number in range(2000))


def test_the_largest_vector_fits_beside_an_ordinary_memory(desk: Desk) -> None:
    store = desk.store(Fake(dimensions=MAX_DIMENSIONS))
    assert store.remember(LONG, subject=ABOUT, source="m-1", **OBSERVATION).embedding_model == "fake"
    assert store.recall(LONG, run_id="r-2").mode is RecallMode.SEMANTIC
    assert store.forget(ABOUT, by="user:ines", reason="erasure request").count == 1


def test_the_largest_vector_fits_beside_the_longest_memory(desk: Desk) -> None:
    longest = Subject("c" * 128, "d" * 128)
    store = desk.store(Fake("m" * 128, dimensions=MAX_DIMENSIONS))
    stored = store.remember(
        LONG,
        kind="observation",
        origin="inference",
        author="agent:" + "x" * 122,
        run_id="r" * 128,
        subject=longest,
        source=",".join(["s" * 127] * 4),
    )
    assert stored.embedding_model == "m" * 128
    assert store.forget(longest, by="u" * 128, reason="é" * 500).count == 1


@pytest.mark.parametrize(
    "word", ["", "auto", "none", "ollama:", "nonsense", "minilm ", "ollama:two words", "ollama:x\n"]
)
def test_embedding_by_a_word_that_is_no_model_is_refused_and_changes_nothing(word: str, desk: Desk) -> None:
    desk.written(1)
    desk.store(Fake("first")).embed()
    with pytest.raises(Refused) as refused:
        desk.store(Fake("first")).embed(model=word)
    assert (refused.value.rule, refused.value.field) == ("model_is_known", "model")
    assert "\n" not in str(refused.value)
    assert desk.store().overview().embedding_model == "first"
