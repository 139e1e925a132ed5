"""Embedding on Ollama, as a real one answered and as a broken one would."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
import wire as answers
from conftest import Database
from sqlalchemy import URL
from wire import RECORDED, Answer, Wire, computed, embeddings, never, recorded, trickle

from memory_core import Kind, MemoryStore, Origin, RecallMode
from memory_core.config import settings
from memory_core.embedders import PAUSE_S, QUERY_LIMIT_S, Guarded, Ollama
from memory_core.embedding import ANOTHER_MODEL
from memory_core.errors import BadVector, EmbedderError, EmbedderTimeout, EmbedderUnavailable, SettingsError

SLACK_S = 1.5  # of a busy machine
MODEL = "nomic-embed-text"
VECTOR = [0.1, 0.2, 0.3]

replayed = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"there are no recorded exchanges in {RECORDED}")


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def guarded(wire: Wire, model: str = MODEL, *, clock: Callable[[], float] = time.monotonic) -> Guarded:
    return Guarded(Ollama(model, wire.url), clock=clock)


def recording(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


# As a real Ollama answered


@replayed
def test_one_text_gets_the_vector_that_ollama_made_of_it(wire: Wire) -> None:
    wire.answers["/api/embed"] = recorded("embed_one")
    exchange = recording("embed_one")
    vector = guarded(wire, "all-minilm").embed_query("The sky is blue.")
    assert list(vector) == exchange["response"]["body"]["embeddings"][0]
    assert len(vector) == 384
    (asked,) = wire.asked
    assert (asked.method, asked.body["model"]) == (exchange["request"]["method"], "all-minilm")
    assert asked.body["input"] == ["The sky is blue."]


@replayed
def test_many_texts_get_one_vector_each_in_order_by_one_request(wire: Wire) -> None:
    wire.answers["/api/embed"] = recorded("embed_batch")
    exchange = recording("embed_batch")
    texts = exchange["request"]["body"]["input"]
    vectors = guarded(wire, "all-minilm").embed_documents(texts)
    assert [list(vector) for vector in vectors] == exchange["response"]["body"]["embeddings"]
    (asked,) = wire.asked
    assert asked.body["input"] == texts


@replayed
@pytest.mark.parametrize(
    ("name", "model", "said"),
    [
        ("embed_unknown_model", "no-such-model", "404.*ollama pull no-such-model"),
        ("embed_chat_model", "smollm2:135m", "501.*smollm2:135m"),
        ("embed_too_long_truncate_false", "all-minilm", "400.*all-minilm"),
        ("embed_bad_input_type", "all-minilm", "400"),
        ("queue_overflow_503", "all-minilm", "503"),
        ("host_header_foreign", "all-minilm", "403"),
        ("unknown_path", "all-minilm", "404"),
    ],
)
def test_a_refusal_by_ollama_is_one_line_with_its_status(wire: Wire, name: str, model: str, said: str) -> None:
    wire.answers["/api/embed"] = recorded(name)
    for ask in (
        lambda: guarded(wire, model).embed_query("x"),
        lambda: guarded(wire, model).embed_documents(["x"]),
    ):
        with pytest.raises(EmbedderUnavailable, match=said) as refused:
            ask()
        assert refused.value.retryable
        assert "\n" not in str(refused.value)


@replayed
def test_a_text_that_ollama_cut_short_has_its_vector(wire: Wire) -> None:
    wire.answers["/api/embed"] = recorded("embed_too_long_truncated")
    assert len(guarded(wire, "all-minilm").embed_query("word " * 600)) == 3


@replayed
@pytest.mark.parametrize("name", ["embed_empty_list", "embed_no_input", "embed_empty_string"])
def test_an_answer_without_a_vector_is_an_error(wire: Wire, name: str) -> None:
    wire.answers["/api/embed"] = recorded(name)
    with pytest.raises(EmbedderError):
        guarded(wire).embed_query("x")
    with pytest.raises(BadVector):
        guarded(wire).embed_documents(["x"])


@replayed
@pytest.mark.parametrize(
    ("name", "has_it"),
    [
        ("show_embedding_model", True),
        ("show_unknown_model", False),
        ("show_invalid_name", False),
        ("show_empty_model", False),
        ("show_missing_body", False),
        ("unknown_path", False),
        ("host_header_foreign", False),
        ("root_get", False),
    ],
)
def test_ollama_has_a_model_when_it_can_show_it(wire: Wire, name: str, has_it: bool) -> None:
    wire.answers["/api/show"] = recorded(name)
    assert Ollama(MODEL, wire.url).has_model() is has_it
    assert [asked.body for asked in wire.asked_for("/api/show")] == [{"model": MODEL}]


@pytest.mark.parametrize(
    "answer",
    [
        answers.html,
        answers.cut,
        answers.hang_up,
        answers.text(""),
        answers.as_json([]),
        answers.as_json(1),
        answers.as_json(None),
        answers.as_json("yes"),
        answers.as_json({"error": "model is broken"}),
        answers.as_json({}),
        answers.as_json(["busy"], status=500),
        answers.as_json("busy", status=500),
        answers.as_json({"error": {"message": "busy"}}, status=500),
        answers.text("busy", status=500),
        answers.text("\xff", status=200),
    ],
    ids=[
        "html",
        "cut",
        "hang up",
        "empty",
        "a list",
        "a number",
        "null",
        "a string",
        "an error with status 200",
        "an empty object",
        "500 with a list",
        "500 with a string",
        "500 with an object",
        "500 with text",
        "no JSON",
    ],
)
def test_asking_whether_ollama_has_a_model_never_raises(wire: Wire, answer: Answer) -> None:
    wire.answers["/api/show"] = answer
    assert Ollama(MODEL, wire.url).has_model() is False


# As a broken one would


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answers.html, EmbedderUnavailable),
        (answers.cut, EmbedderUnavailable),
        (answers.hang_up, EmbedderUnavailable),
        (answers.text(""), EmbedderUnavailable),
        (answers.as_json({"error": "out of memory"}), EmbedderUnavailable),
        (answers.as_json({"error": "busy"}, status=500), EmbedderUnavailable),
        (answers.as_json(["busy"], status=500), EmbedderUnavailable),
        (answers.as_json([]), EmbedderUnavailable),
        (answers.as_json({"embeddings": None}), EmbedderUnavailable),
        (answers.as_json({"embeddings": "x"}), EmbedderError),
        (answers.as_json({"embeddings": [["x"]]}), EmbedderError),
        (answers.as_json({"embeddings": [[None]]}), EmbedderError),
        (embeddings([float("nan"), 1.0]), BadVector),
        (embeddings([float("inf"), 1.0]), BadVector),
        (answers.text('{"embeddings": [[1e999, 1]]}', content_type="application/json"), BadVector),
        (embeddings([70000.0, 1.0]), BadVector),
        (embeddings([0.0, 0.0]), BadVector),
        (embeddings([1e-9, -1e-9]), BadVector),
        (embeddings([]), BadVector),
        (embeddings([1.0] * 4001), BadVector),
        (embeddings(), EmbedderError),
        (embeddings(VECTOR, VECTOR), BadVector),
        (embeddings(VECTOR, [1.0]), BadVector),
    ],
    ids=[
        "html",
        "cut",
        "hang up",
        "empty",
        "an error with status 200",
        "an error with status 500",
        "an error that is a list",
        "a list",
        "null",
        "a string",
        "strings",
        "nulls",
        "NaN",
        "infinity",
        "too large for a float",
        "too large for a half",
        "zeros",
        "zeros as halves",
        "no numbers",
        "too many numbers",
        "no vector",
        "two vectors for one text",
        "two lengths",
    ],
)
@pytest.mark.parametrize("what", ["query", "document"])
def test_an_unusable_answer_is_an_embedders_error(
    wire: Wire, what: str, answer: Answer, error: type[EmbedderError]
) -> None:
    wire.answers["/api/embed"] = answer
    embedder = guarded(wire)
    with within(QUERY_LIMIT_S + SLACK_S), pytest.raises(error) as failed:
        embedder.embed_query("x") if what == "query" else embedder.embed_documents(["x"])
    assert "\n" not in str(failed.value)


def test_a_vector_for_two_texts_is_an_error(wire: Wire) -> None:
    wire.answers["/api/embed"] = embeddings(VECTOR)
    with pytest.raises(BadVector, match="2 vectors"):
        guarded(wire).embed_documents(["x", "y"])


def test_a_vector_of_another_length_than_the_pinned_models_is_an_error(wire: Wire) -> None:
    wire.answers["/api/embed"] = embeddings(VECTOR)
    with pytest.raises(BadVector, match=r"3 dimensions.*384"):
        guarded(wire).embed_query("x", dimensions=384)
    with pytest.raises(BadVector, match=r"3 dimensions.*384"):
        guarded(wire).embed_documents(["x"], dimensions=384)


def test_no_server_at_all_is_an_error_at_once(wire: Wire) -> None:
    with Wire() as gone:
        pass
    with within(SLACK_S), pytest.raises(EmbedderUnavailable, match=gone.url):
        guarded(gone).embed_query("x")
    assert Ollama(MODEL, gone.url).has_model() is False


@pytest.mark.parametrize("answer", [pytest.param(never, marks=pytest.mark.slow), trickle])
def test_a_query_waits_two_seconds_and_no_longer(wire: Wire, answer: Answer) -> None:
    wire.answers["/api/embed"] = answer
    with within(QUERY_LIMIT_S + SLACK_S), pytest.raises(EmbedderTimeout) as late:
        guarded(wire).embed_query("x")
    assert late.value.retryable


@pytest.mark.parametrize("answer", [never, trickle])
def test_documents_wait_no_longer_than_their_limit(wire: Wire, answer: Answer) -> None:
    wire.answers["/api/embed"] = answer
    with within(0.2 + SLACK_S), pytest.raises(EmbedderTimeout):
        guarded(wire).embed_documents(["x"], limit_s=0.2)


# What is sent, and where


@pytest.mark.parametrize(
    "model", ["nomic-embed-text", "nomic-embed-text:latest", "nomic-embed-text:v1.5", "hub.example/a/nomic-embed-text"]
)
def test_nomic_is_told_what_is_a_document_and_what_is_a_query(wire: Wire, model: str) -> None:
    wire.answers["/api/embed"] = computed()
    embedder = guarded(wire, model)
    embedder.embed_documents(["We meet on Mondays.", "é"])
    embedder.embed_query("when?")
    assert [asked.body["input"] for asked in wire.asked] == [
        ["search_document: We meet on Mondays.", "search_document: é"],
        ["search_query: when?"],
    ]


def test_a_model_that_was_not_trained_with_them_gets_no_task_words(wire: Wire) -> None:
    wire.answers["/api/embed"] = computed()
    guarded(wire, "all-minilm").embed_query("when?")
    assert wire.asked[0].body["input"] == ["when?"]


def test_a_proxy_of_the_environment_sees_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.answers["/api/embed"] = computed()
    wire.answers["/api/show"] = answers.as_json({"model_info": {}})
    with Wire() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        ollama = Ollama(MODEL, wire.url)
        assert ollama.has_model()
        assert ollama.embed_query("when?")
        assert proxy.asked == []
    assert len(wire.asked) == 2


def test_what_is_remembered_is_sent_to_no_other_address_than_the_configured_one(wire: Wire) -> None:
    with Wire() as elsewhere:
        elsewhere.answers["/api/embed"] = computed()
        wire.answers["/api/embed"] = answers.redirect(f"{elsewhere.url}/api/embed")
        with pytest.raises(EmbedderUnavailable):
            guarded(wire).embed_documents(["Could start in March."])
        assert elsewhere.asked == []


# The pause


def test_after_a_failure_the_next_calls_fail_at_once_until_half_a_minute_is_over(wire: Wire) -> None:
    clock = Clock()
    embedder = guarded(wire, clock=clock)
    wire.answers["/api/embed"] = answers.as_json({"error": "busy"}, status=503)
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable, match="503"):
            embedder.embed_query("x")
    with pytest.raises(EmbedderUnavailable, match="503"):
        embedder.embed_documents(["x"])
    assert len(wire.asked) == 1

    clock.now += PAUSE_S - 0.1
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("x")
    assert len(wire.asked) == 1

    clock.now += 0.1
    wire.answers["/api/embed"] = computed()
    assert embedder.embed_query("x")
    assert embedder.embed_query("x")
    assert len(wire.asked) == 3


def test_a_failure_after_the_pause_pauses_again(wire: Wire) -> None:
    clock = Clock()
    embedder = guarded(wire, clock=clock)
    for count in (1, 2, 3):
        for _ in range(2):
            with pytest.raises(EmbedderUnavailable):
                embedder.embed_query("x")
        assert len(wire.asked) == count
        clock.now += PAUSE_S


def test_a_vector_that_is_unusable_does_not_pause_the_embedder(wire: Wire) -> None:
    embedder = guarded(wire, clock=Clock())
    wire.answers["/api/embed"] = embeddings([float("nan")])
    with pytest.raises(BadVector):
        embedder.embed_documents(["x"])
    wire.answers["/api/embed"] = computed()
    assert embedder.embed_documents(["y"])


# In the store

MONDAYS = {"kind": Kind.FACT, "origin": Origin.PERSON, "author": "user:maria", "run_id": "r-1"}


@pytest.fixture(scope="module")
def application(standing: Database) -> URL:
    """One migrated database, in which every test has an organisation of its own."""
    return standing.application


@pytest.fixture
def opened(application: URL, wire: Wire) -> Callable[..., MemoryStore]:
    """Open a store by MEMORY_EMBEDDER, with Ollama's address; by an embedder, where the test brings one."""
    org_id = uuid4().hex

    def opened(setting: str = "none", *, host: str = wire.url, **options: Any) -> MemoryStore:
        chosen = settings(memory_embedder=setting, ollama_host=host)
        return MemoryStore.open(org_id, database_url=application, settings=chosen, **options)

    return opened


Opened = Callable[..., MemoryStore]


@pytest.fixture
def has_nomic(wire: Wire) -> None:
    wire.answers["/api/show"] = answers.as_json({"model_info": {}, "capabilities": ["embedding"]})
    wire.answers["/api/embed"] = computed()


@pytest.mark.usefixtures("has_nomic")
def test_auto_chooses_ollama_if_it_has_the_model_and_asks_only_once(wire: Wire, opened: Opened) -> None:
    store = opened("auto")
    assert store.remember("We meet on Mondays.", **MONDAYS).embedding_model == "ollama:nomic-embed-text"
    assert len(wire.asked_for("/api/show")) == 1
    for again in (store, opened("auto")):
        assert again.remember("We never schedule on Fridays.", **MONDAYS).embedding_model == "ollama:nomic-embed-text"
        assert again.recall("when do we meet?", run_id="r-2").mode is RecallMode.SEMANTIC
    assert len(wire.asked_for("/api/show")) == 1
    assert store.overview().embedding_model == "ollama:nomic-embed-text"


@pytest.mark.usefixtures("has_nomic")
def test_before_the_first_embedding_a_recall_asks_nobody_and_says_why(wire: Wire, opened: Opened) -> None:
    recall = opened("auto").recall("when?", run_id="r-0")
    assert (recall.mode, recall.reason) == (RecallMode.RECENCY, "no live memory has an embedding by this model")
    assert recall.block is None
    assert wire.asked == []


@pytest.mark.model
@pytest.mark.parametrize(
    "answer",
    [answers.text("not found", status=404), answers.html, pytest.param(never, marks=pytest.mark.slow)],
    ids=["404", "html", "never"],
)
def test_auto_chooses_minilm_where_ollama_does_not_answer_with_the_model(
    wire: Wire, opened: Opened, answer: Answer
) -> None:
    wire.answers["/api/show"] = answer
    store = opened("auto")
    assert store.remember("We meet on Mondays.", **MONDAYS).embedding_model == "minilm"

    wire.answers["/api/show"] = answers.as_json({"model_info": {}})
    wire.answers["/api/embed"] = computed()
    assert opened("auto").remember("We never schedule on Fridays.", **MONDAYS).embedding_model == "minilm"
    assert opened("auto").recall("when do we meet?", run_id="r-2").mode is RecallMode.SEMANTIC
    assert len(wire.asked) == 1  # once it is pinned, nobody else is asked


@pytest.mark.usefixtures("has_nomic")
def test_auto_never_replaces_a_pinned_model_that_cannot_be_reached(wire: Wire, opened: Opened) -> None:
    opened("auto").remember("We meet on Mondays.", **MONDAYS)
    wire.answers["/api/embed"] = answers.hang_up
    store = opened("auto")
    recall = store.recall("when do we meet?", run_id="r-2")
    assert (recall.mode, recall.reason) == (RecallMode.RECENCY, "the embedder is unreachable")
    assert [one.memory.text for one in recall.memories] == ["We meet on Mondays."]
    assert store.remember("We never schedule on Fridays.", **MONDAYS).embedding_model is None
    assert store.overview().embedding_model == "ollama:nomic-embed-text"


@pytest.mark.usefixtures("has_nomic")
@pytest.mark.parametrize("setting", ["ollama:all-minilm", "minilm", "ollama:nomic-embed-text:v1.5"])
def test_another_model_than_the_pinned_one_is_never_asked(wire: Wire, opened: Opened, setting: str) -> None:
    opened("auto").remember("We meet on Mondays.", **MONDAYS)
    wire.asked.clear()
    store = opened(setting)
    recall = store.recall("when do we meet?", run_id="r-2")
    assert (recall.mode, recall.reason) == (RecallMode.RECENCY, ANOTHER_MODEL)
    assert store.remember("We never schedule on Fridays.", **MONDAYS).embedding_model is None
    with pytest.raises(EmbedderUnavailable, match="another model"):
        store.embed()
    assert wire.asked == []


@pytest.mark.usefixtures("has_nomic")
def test_without_an_embedder_recall_is_newest_first_and_says_why(wire: Wire, opened: Opened) -> None:
    opened("auto").remember("We meet on Mondays.", **MONDAYS)
    wire.asked.clear()
    store = opened("none")
    assert store.remember("We never schedule on Fridays.", **MONDAYS).embedding_model is None
    recall = store.recall("when do we meet?", run_id="r-2")
    assert (recall.mode, recall.reason) == (RecallMode.RECENCY, "no embedder is configured")
    assert recall.unembedded == 1
    assert recall.block
    assert 'mode="recency" because="no embedder is configured"' in recall.block.text
    with pytest.raises(EmbedderUnavailable, match="no embedder is configured"):
        store.embed()
    assert wire.asked == []


def test_a_recall_waits_two_seconds_once_and_then_not_again(wire: Wire, opened: Opened) -> None:
    clock = Clock()
    store = opened(embedder=guarded(wire, clock=clock))
    wire.answers["/api/embed"] = computed()
    store.remember("We meet on Mondays.", **MONDAYS)
    wire.answers["/api/embed"] = trickle
    with within(QUERY_LIMIT_S + SLACK_S):
        recall = store.recall("when do we meet?", run_id="r-2")
    assert (recall.mode, recall.reason) == (RecallMode.RECENCY, "the embedder was too slow")
    assert recall.timings.embed_ms >= QUERY_LIMIT_S * 1000
    assert len(recall.memories) == 1

    asked = len(wire.asked)
    with within(SLACK_S):
        recall = store.recall("when do we meet?", run_id="r-2")
        assert store.remember("We never schedule on Fridays.", **MONDAYS).embedding_model is None
    assert recall.mode is RecallMode.RECENCY
    assert len(wire.asked) == asked

    wire.answers["/api/embed"] = computed()
    clock.now += PAUSE_S
    assert store.recall("when do we meet?", run_id="r-2").mode is RecallMode.SEMANTIC


def test_a_memory_is_stored_within_two_seconds_also_when_ollama_hangs(wire: Wire, opened: Opened) -> None:
    wire.answers["/api/embed"] = never
    store = opened(embedder=guarded(wire))
    with within(QUERY_LIMIT_S + SLACK_S):
        assert store.remember("We meet on Mondays.", **MONDAYS).embedding_model is None
    assert store.overview().unembedded == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (embeddings([float("nan")] * 16), "the embedder answered with an unusable vector"),
        (embeddings([1.0] * 15), "the embedder answered with an unusable vector"),
        (answers.as_json({"error": "busy"}, status=503), "the embedder is unreachable"),
        (answers.html, "the embedder is unreachable"),
        (embeddings(), None),
    ],
    ids=["NaN", "another length", "busy", "html", "no vector"],
)
def test_a_recall_says_why_it_is_not_semantic(wire: Wire, opened: Opened, answer: Answer, reason: str | None) -> None:
    store = opened(embedder=guarded(wire))
    wire.answers["/api/embed"] = computed()
    store.remember("We meet on Mondays.", **MONDAYS)
    wire.answers["/api/embed"] = answer
    recall = store.recall("when do we meet?", run_id="r-2")
    assert recall.mode is RecallMode.RECENCY
    assert recall.reason
    assert reason in (None, recall.reason)
    assert [one.memory.text for one in recall.memories] == ["We meet on Mondays."]


def test_what_was_written_while_ollama_was_down_is_embedded_later_with_progress(opened: Opened) -> None:
    clock = Clock()
    with Wire() as down:
        pass
    store = opened(embedder=guarded(down, clock=clock))
    texts = [f"Note {number} of the day." for number in range(40)]
    for text in texts[:2]:
        assert store.remember(text, **MONDAYS).embedding_model is None
    stored = store.remember_many([{"text": text, **MONDAYS} for text in texts[2:]])
    assert {memory.embedding_model for memory in stored} == {None}
    recall = store.recall("which note?", run_id="r-2")
    assert (recall.mode, recall.unembedded) == (RecallMode.RECENCY, 40)

    progress: list[tuple[int, int]] = []
    with Wire(port=down.port) as up:
        up.answers["/api/embed"] = computed(dimensions=512)
        clock.now += PAUSE_S
        embedded = store.embed(progress=lambda done, total: progress.append((done, total)))
        assert (embedded.count, embedded.model) == (40, "ollama:nomic-embed-text")
        assert progress == [(0, 40), (32, 40), (40, 40)]
        recall = store.recall("Note 7 of the day.", run_id="r-3")
        assert (recall.mode, recall.unembedded) == (RecallMode.SEMANTIC, 0)
        assert recall.memories[0].memory.text == "Note 7 of the day."
        assert store.embed().count == 0


def test_asking_whether_ollama_has_the_model_leaves_no_connection_open(opened: Opened) -> None:
    gc.collect()
    gc.disable()  # what is closed is not to be closed by chance
    try:
        with Wire(keep_alive=True) as server:
            server.answers["/api/show"] = answers.as_json({"model_info": {}})
            server.answers["/api/embed"] = computed()
            store = opened("auto", host=server.url)
            for number in range(3):
                store.remember(f"Note {number} of the day.", **MONDAYS)
            time.sleep(0.2)
            assert server.open_connections <= 1  # the one that embeds
    finally:
        gc.enable()
        gc.collect()


@pytest.mark.model
@pytest.mark.parametrize(
    "show", [answers.as_json(["busy"], status=500), answers.as_json([]), answers.html], ids=["500", "a list", "html"]
)
def test_a_memory_is_stored_whatever_stands_at_ollamas_address(wire: Wire, opened: Opened, show: Answer) -> None:
    wire.answers["/api/show"] = show
    assert opened("auto").remember("We meet on Mondays.", **MONDAYS).text == "We meet on Mondays."


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:port", "http://[::1", "ftp://127.0.0.1", "http://127.0.0.1:99999"]
)
def test_an_address_of_ollama_that_cannot_be_used_is_refused_at_once_or_costs_no_memory(
    address: str, opened: Opened
) -> None:
    with suppress(SettingsError):
        assert opened("ollama:nomic-embed-text", host=address).remember("We meet.", **MONDAYS).embedding_model is None
