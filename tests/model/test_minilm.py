"""The embedder without Ollama: a real MiniLM in this process."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from conftest import SHARED, Database, connect
from sqlalchemy import URL
from wire import Wire, as_json, computed

from memory_core import MemoryStore, RecallMode
from memory_core.config import settings
from memory_core.db import embedded
from memory_core.db.engine import engine_for
from memory_core.embedders import BATCH, MiniLM, checked_vectors, minilm
from memory_core.interchange import import_lines, read_lines

pytestmark = pytest.mark.model

FACT = {"kind": "fact", "origin": "person", "author": "user:maria", "run_id": "r-1"}
TURNS = SHARED / "data" / "locomo" / "locomo-turns.dev.jsonl"
NOTES = [
    "Panel interviews need two weeks' notice.",
    "The office in Lisbon is closed in August.",
    "Salaries are reviewed every January.",
    "Coffee for visitors is ordered from the bakery downstairs.",
    "We never schedule anything on Fridays.",
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def similarity(model: MiniLM, one: str, other: str) -> float:
    first, second = model.embed_documents([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_a_text_becomes_384_numbers_of_length_one(model: MiniLM) -> None:
    for text in ("Could start in March.", "x", "é", "日本語のメモ", "🙂", " ", "a" * 2000):
        (vector,) = model.embed_documents([text])
        assert len(vector) == 384
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)
        checked_vectors([vector], count=1, dimensions=384)


def test_the_same_text_gets_the_same_vector_alone_and_among_others(model: MiniLM) -> None:
    alone = model.embed_query(NOTES[0])
    assert model.embed_query(NOTES[0]) == alone
    assert model.embed_documents([*NOTES, "word " * 300])[0] == alone


@pytest.mark.parametrize(
    ("text", "nearer", "further"),
    [
        ("How soon can they start?", "Could start after a two-month notice period.", "Prefers tea to coffee."),
        ("Where is the office?", "Our building is in Lisbon.", "She has ten years of Java."),
        ("salary expectations", "Hopes for 60,000 euros a year.", "Was born in Oslo."),
        ("Is he good at programming?", "Writes excellent Python.", "Travels by train."),
    ],
)
def test_what_means_the_same_is_nearer_than_what_does_not(model: MiniLM, text: str, nearer: str, further: str) -> None:
    assert similarity(model, text, nearer) > similarity(model, text, further) + 0.05
    assert similarity(model, text, further) < 0.4  # as all-MiniLM-L6-v2 has it: nearer to none


def test_the_longest_memory_has_a_vector(model: MiniLM) -> None:
    longest = ("Could start after a two-month notice period. " * 50)[:2000]
    (vector,) = model.embed_documents([longest])
    assert len(vector) == 384
    for script in ("é", "漢", "🙂", "\u202e", "\u200b"):
        checked_vectors(model.embed_documents([script * 2000]), count=1, dimensions=384)


def test_a_batch_has_one_vector_a_text_in_order(model: MiniLM) -> None:
    texts = [f"Note {number} of the day." for number in range(BATCH)]
    vectors = model.embed_documents(texts)
    assert len(vectors) == BATCH
    for text, vector in list(zip(texts, vectors, strict=True))[::7]:
        assert model.embed_query(text) == vector


def test_eight_threads_get_the_vectors_that_one_gets(model: MiniLM) -> None:
    alone = [model.embed_query(note) for note in NOTES]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(model.embed_query, NOTES * 8))
    for number, vector in enumerate(together):
        assert vector == alone[number % len(NOTES)]


def test_one_process_has_one_minilm_also_when_threads_ask_for_it_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len({id(one) for one in pool.map(lambda _: minilm(), range(8))}) == 1
    assert minilm().name == "minilm"


# In the store


@pytest.fixture(scope="module")
def superuser(standing: Database) -> URL:
    """One migrated database, in which every test has an organisation of its own."""
    return standing.superuser


@pytest.fixture
def org_id() -> str:
    return uuid4().hex


@pytest.fixture
def opened(cluster: embedded.Cluster, superuser: URL, org_id: str) -> Callable[..., MemoryStore]:
    application = cluster.application.set(database=superuser.database)

    def opened(setting: str, *, host: str = "http://127.0.0.1:9") -> MemoryStore:
        chosen = settings(memory_embedder=setting, ollama_host=host)
        return MemoryStore.open(org_id, database_url=application, settings=chosen)

    return opened


def models(superuser: URL, org_id: str) -> dict[str, tuple[str | None, int | None]]:
    query = "SELECT text, embedding_model, vector_dims(embedding) FROM memory WHERE org_id = %s"
    with connect(superuser) as connection:
        return {text: rest for text, *rest in map(tuple, connection.execute(query, (org_id,)))}  # type: ignore[misc]


def scores(store: MemoryStore, query: str, **options: Any) -> dict[str | None, float | None]:
    recall = store.recall(query, run_id="r-9", ranking="dense", **options)
    return {one.memory.text: one.score for one in recall.memories}


def test_without_ollama_a_store_is_semantic_by_minilm(opened: Callable[..., MemoryStore]) -> None:
    store = opened("auto")
    assert {one.embedding_model for one in store.remember_many({"text": note, **FACT} for note in NOTES)} == {"minilm"}
    recall = store.recall("How long before a panel interview must we announce it?", run_id="r-2", limit=2)
    assert (recall.mode, recall.reason, recall.ranking) == (RecallMode.SEMANTIC, None, "hybrid")
    assert recall.memories[0].memory.text == NOTES[0]
    best, second = (one.score for one in recall.memories)
    assert best is not None
    assert second is not None
    assert 1 >= best > second >= -1
    assert recall.unembedded == 0


def test_a_change_of_model_embeds_all_anew_and_never_compares_the_vectors_of_two(
    opened: Callable[..., MemoryStore], superuser: URL, org_id: str
) -> None:
    with Wire() as ollama:
        ollama.answers["/api/show"] = as_json({"model_info": {}})
        ollama.answers["/api/embed"] = computed(dimensions=384)  # of MiniLM's length, so that only the name tells
        old = opened("auto", host=ollama.url)
        old.remember_many({"text": f"Note {number} of the day.", **FACT} for number in range(BATCH + 8))
        old.remember_many({"text": note, **FACT} for note in NOTES)
        assert set(map(tuple, models(superuser, org_id).values())) == {("ollama:nomic-embed-text", 384)}

        new = opened("minilm", host=ollama.url)
        recall = new.recall("When is the office closed?", run_id="r-2")
        assert (recall.mode, recall.memories[0].score) == (RecallMode.RECENCY, None)

        progress: list[tuple[int, int]] = []
        done = new.embed(model="minilm", progress=lambda *numbers: progress.append(numbers))
        total = BATCH + 8 + len(NOTES)
        assert (done.count, done.model) == (total, "minilm")
        assert (progress[0], progress[-1]) == ((0, total), (total, total))
        assert set(map(tuple, models(superuser, org_id).values())) == {("minilm", 384)}
        assert new.overview().embedding_model == "minilm"

        recall = new.recall("When is the office closed?", run_id="r-2", limit=3)
        assert recall.mode is RecallMode.SEMANTIC
        assert recall.memories[0].memory.text == NOTES[1]
        by_itself = MiniLM()
        for text, score in scores(new, "When is the office closed?", limit=3).items():
            assert score == pytest.approx(similarity(by_itself, "When is the office closed?", str(text)), abs=0.01)

        ollama.asked.clear()
        old_again = opened("ollama:nomic-embed-text", host=ollama.url)
        recall = old_again.recall("When is the office closed?", run_id="r-2")
        assert (recall.mode, recall.reason) == (
            RecallMode.RECENCY,
            "the organisation's embeddings are by another model than the configured one",
        )
        recall = old.recall("When is the office closed?", run_id="r-2", limit=1)  # `auto` follows the pin
        assert recall.memories[0].memory.text == NOTES[1]
        assert ollama.asked_for("/api/embed") in ([], ollama.asked[:1])


def test_what_was_stored_without_an_embedder_is_embedded_by_minilm_later(
    opened: Callable[..., MemoryStore], superuser: URL, org_id: str
) -> None:
    opened("none").remember_many({"text": note, **FACT} for note in NOTES)
    store = opened("minilm")
    assert store.recall("When is the office closed?", run_id="r-2").mode is RecallMode.RECENCY
    assert store.embed().count == len(NOTES)
    assert store.recall("When is the office closed?", run_id="r-2").memories[0].memory.text == NOTES[1]
    assert set(map(tuple, models(superuser, org_id).values())) == {("minilm", 384)}


@pytest.mark.slow
@pytest.mark.skipif(not TURNS.exists(), reason=f"{TURNS} is not here")
def test_a_question_about_locomo_finds_the_turn_that_answers_it(
    opened: Callable[..., MemoryStore], superuser: URL, cluster: embedded.Cluster, org_id: str
) -> None:
    turns = b"".join(line for line in TURNS.read_bytes().splitlines(keepends=True) if b'"locomo-26"' in line)
    engine = engine_for(cluster.application.set(database=superuser.database))
    import_lines(engine, read_lines(io.BytesIO(turns), org_id=org_id))
    store = opened("auto")
    assert store.embed().count > 400
    recall = store.recall("When did Caroline go to the support group?", run_id="r-2")
    assert (recall.mode, recall.reason, recall.unembedded) == (RecallMode.SEMANTIC, None, 0)
    assert "D1:3" in [one.memory.source for one in recall.memories]
