"""Stand-ins for what a workspace brings: embedders that answer well, wrongly, late or not, a clock, and things to remember."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import shake_256
from typing import Any

import numpy

from memory_core import Memory, MemoryStore, Subject

CANDIDATE = Subject("candidate", "c-81")
JOB = Subject("job", "j-3")


def observation(text: str, **changes: Any) -> dict[str, Any]:
    """Return what `remember` takes for an observation about a candidate, as a bulk load's item has it."""
    inferred = {"kind": "observation", "origin": "inference", "author": "agent:screening", "run_id": "r-1"}
    return {"text": text, **inferred, "subject": CANDIDATE, **changes}


def fact(text: str, **changes: Any) -> dict[str, Any]:
    """Return what `remember` takes for a fact that a person stated."""
    return {"text": text, "kind": "fact", "origin": "person", "author": "user:maria", "run_id": "r-1", **changes}


def observe(store: MemoryStore, text: str, **changes: Any) -> Memory:
    """Remember one observation."""
    return store.remember(**observation(text, **changes))


class Clock:
    """A clock that stands still until it is set forward."""

    def __init__(self, now: datetime = datetime(2026, 11, 2, 9, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def step(self, **ahead: float) -> datetime:
        self.now += timedelta(**ahead)
        return self.now


class HashedWords:
    """An embedder by hashed words: texts that share words are near each other. Counts how often it was asked."""

    def __init__(self, name: str = "words", dimensions: int = 64) -> None:
        self.name = name
        self.asked = 0
        self._dimensions = dimensions

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.asked += 1
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> Any:
        self.asked += 1
        return self.vector(text)

    def vector(self, text: str) -> list[float]:
        """Return a unit vector: the sum of one direction per word."""
        words = re.findall(r"\w+", text.casefold()) or [text]
        total = numpy.sum([self._direction(word) for word in words], axis=0)
        total[0] += 0.01  # so that no two words cancel each other
        unit: list[float] = (total / numpy.linalg.norm(total)).tolist()
        return unit

    def _direction(self, word: str) -> Any:
        digest = shake_256(word.encode(errors="replace")).digest(-(-self._dimensions // 8))
        return numpy.unpackbits(numpy.frombuffer(digest, numpy.uint8))[: self._dimensions] * 2.0 - 1


class Unreachable(HashedWords):
    """An embedder that nobody reaches."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.asked += 1
        raise ConnectionError("nobody there")

    def embed_query(self, text: str) -> Any:
        self.asked += 1
        raise ConnectionError("nobody there")


class Sleeping(HashedWords):
    """An embedder whose queries take their time."""

    def __init__(self, seconds: float, **options: Any) -> None:
        super().__init__(**options)
        self.seconds = seconds

    def embed_query(self, text: str) -> Any:
        vector = super().embed_query(text)
        time.sleep(self.seconds)
        return vector


class Answering(HashedWords):
    """An embedder that answers with what it was given, whatever that is; documents well unless told otherwise."""

    def __init__(self, query: Any = None, *, document: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self._query = query
        self._document = document

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return super().embed_documents(texts) if self._document is None else [self._document for _ in texts]

    def embed_query(self, text: str) -> Any:
        self.asked += 1
        return self._query


class Blocking(HashedWords):
    """An embedder that, once asked for documents, waits to be let go."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.reached = threading.Event()
        self.go = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Any:
        vectors = super().embed_documents(texts)
        self.reached.set()
        assert self.go.wait(30), "nobody let the embedder go"
        return vectors
