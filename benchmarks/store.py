"""What the store costs beside bare psycopg doing the same transaction, as p50 and p95 in one run.

    make bench
    python -m benchmarks.store --sizes 1000,10000 --rounds 200

Each pair alternates within one loop, on one embedded server, as the application's role under row level security. The
bare side sets the organisation, runs one hand-written statement, inserts the disclosures or the erasure, commits, and
builds no objects. Vectors are random, of 384 dimensions, made before the clock starts unless "embedding included".
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy
import psycopg

from memory_core import MemoryStore, Subject
from memory_core.config import settings
from memory_core.db import database, embedded
from memory_core.embedders import MiniLM, Vector
from memory_core.recalling import QUANTISE_ABOVE

DIMENSIONS = 384
PER_SUBJECT = 20
BATCH = 100
WORDS = [
    "notice",
    "period",
    "interview",
    "panel",
    "offer",
    "start",
    "remote",
    "salary",
    "visa",
    "portfolio",
    "team",
    "travel",
    "hours",
    "contract",
]


class RandomVectors:
    """An embedder that costs nothing: a unit vector drawn from the text's digest."""

    name = "benchmark"

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self.embed_query(one) for one in texts]

    def embed_query(self, text: str) -> Vector:
        draw = numpy.random.default_rng(int.from_bytes(sha256(text.encode()).digest()[:8], "big"))
        vector = draw.standard_normal(DIMENSIONS)
        unit: list[float] = (vector / numpy.linalg.norm(vector)).tolist()
        return unit


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The times of one operation, in milliseconds, by the store and bare."""

    name: str
    size: int
    store_ms: list[float]
    bare_ms: list[float]

    def line(self) -> str:
        """Return one row of the table."""
        ours, bare = (quantiles(times) for times in (self.store_ms, self.bare_ms))
        ratio = f"{ours[0] / bare[0]:.2f}" if self.bare_ms else "-"
        return (
            f"{self.name:<28}{self.size:>8,}{ours[0]:>10.2f}{ours[1]:>10.2f}"
            + (f"{bare[0]:>10.2f}{bare[1]:>10.2f}" if self.bare_ms else f"{'-':>10}{'-':>10}")
            + f"{ratio:>8}"
        )


def quantiles(times: list[float]) -> tuple[float, float]:
    """Return p50 and p95, nearest rank."""
    if not times:
        return 0.0, 0.0
    ordered = sorted(times)
    return ordered[math.ceil(0.5 * len(ordered)) - 1], ordered[math.ceil(0.95 * len(ordered)) - 1]


def timed(act: Callable[[], object]) -> float:
    """Return how long an act took, in milliseconds."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def alternated(name: str, size: int, rounds: int, ours: Callable[[int], object], bare: Callable[[int], object]) -> Pair:
    """Time both in turns, after a warm-up that lets every statement be prepared."""
    for turn in range(10):
        ours(turn)
        bare(turn)
    store_ms, bare_ms = [], []
    for turn in range(10, 10 + rounds):
        store_ms.append(timed(lambda turn=turn: ours(turn)))  # type: ignore[misc]
        bare_ms.append(timed(lambda turn=turn: bare(turn)))  # type: ignore[misc]
    return Pair(name=name, size=size, store_ms=store_ms, bare_ms=bare_ms)


def sentence(draw: random.Random, number: int) -> str:
    """Return a sentence of its own."""
    return f"{' '.join(draw.choices(WORDS, k=12))} {number}."


def items(size: int, *, seed: int, prefix: str = "c") -> list[dict[str, Any]]:
    """Return observations, twenty a subject."""
    draw = random.Random(seed)
    return [
        {
            "text": sentence(draw, number),
            "kind": "observation",
            "origin": "inference",
            "author": "agent:benchmark",
            "run_id": f"r-{number}",
            "subject": Subject(
                "candidate", f"{prefix}-{number // PER_SUBJECT}", label=f"Person {number // PER_SUBJECT}"
            ),
        }
        for number in range(size)
    ]


class Bare:
    """psycopg, one connection, hand-written statements."""

    def __init__(self, connection: psycopg.Connection[Any], org_id: str) -> None:
        self.connection, self.org_id = connection, org_id

    def _begin(self, cursor: psycopg.Cursor[Any]) -> None:
        cursor.execute(f"SET LOCAL memory.org_id = '{self.org_id}'")

    def remember(self, text: str, subject: str) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._begin(cursor)
            cursor.execute(
                "INSERT INTO memory (org_id, memory_id, kind, subject_type, subject_id, text, text_sha256, origin, author,"
                " run_id, created_at, expires_at, last_seen_at, last_seen_run_id) VALUES (%s, %s, 'observation', 'candidate',"
                " %s, %s, %s, 'inference', 'agent:bare', 'r-1', now(), now() + interval '90 days', now(), 'r-1')",
                (self.org_id, uuid4(), subject, text, sha256(text.encode()).digest()),
            )

    def recall(self, vector: str, *, quantised: bool) -> None:
        recall_id = uuid4()
        mine = (
            "FROM memory WHERE org_id = %(org)s AND text IS NOT NULL AND restricted_at IS NULL AND expires_at > now()"
            " AND embedding_model = 'benchmark'"
        )
        if quantised:  # the same two steps as the store takes in an organisation of this size
            mine = (
                f"FROM memory WHERE org_id = %(org)s AND memory_id IN (SELECT memory_id {mine}"
                " ORDER BY binary_quantize(embedding)::bit(384) <~> binary_quantize(%(query)s::halfvec)::bit(384) LIMIT 200)"
            )
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._begin(cursor)
            cursor.execute(
                "SELECT memory_id, text, kind, origin, author, run_id, subject_type, subject_id, created_at, expires_at,"
                f" embedding <=> %(query)s::halfvec AS distance {mine}"
                " ORDER BY distance, created_at DESC, memory_id DESC LIMIT 5",
                {"org": self.org_id, "query": vector},
            )
            self._disclose(cursor, recall_id, cursor.fetchall(), "semantic", None)

    def remember_many(self, texts: Sequence[str]) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._begin(cursor)
            cursor.executemany(
                "INSERT INTO memory (org_id, memory_id, kind, subject_type, subject_id, text, text_sha256, origin, author,"
                " run_id, created_at, expires_at, last_seen_at, last_seen_run_id) VALUES (%s, %s, 'observation', 'candidate',"
                " 'c-0', %s, %s, 'inference', 'agent:bare', 'r-1', now(), now() + interval '90 days', now(), 'r-1')",
                [(self.org_id, uuid4(), one, sha256(one.encode()).digest()) for one in texts],
            )

    def newest(self) -> None:
        recall_id = uuid4()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._begin(cursor)
            cursor.execute(
                "SELECT memory_id, text, kind, origin, author, run_id, subject_type, subject_id, created_at, expires_at"
                " FROM memory WHERE org_id = %s AND text IS NOT NULL AND restricted_at IS NULL AND expires_at > now()"
                " ORDER BY created_at DESC, memory_id DESC LIMIT 5",
                (self.org_id,),
            )
            self._disclose(cursor, recall_id, cursor.fetchall(), "recency", "asked for")

    def _disclose(
        self, cursor: psycopg.Cursor[Any], recall_id: Any, rows: list[Any], mode: str, reason: str | None
    ) -> None:
        cursor.execute(
            "WITH recorded AS (INSERT INTO recall (org_id, recall_id, run_id, purpose, at, mode, reason, ranking, boundary,"
            " omitted) VALUES (%(org)s, %(recall)s, 'r-1', 'run', now(), %(mode)s, %(reason)s, 'dense', 'abcd', 0))"
            " INSERT INTO disclosure (org_id, recall_id, place, memory_id, run_id, purpose, at)"
            " SELECT %(org)s, %(recall)s, place, memory_id, 'r-1', 'run', now()"
            " FROM unnest(%(places)s::int[], %(ids)s::uuid[]) AS s (place, memory_id)",
            {
                "org": self.org_id,
                "recall": recall_id,
                "mode": mode,
                "reason": reason,
                "places": list(range(1, len(rows) + 1)),
                "ids": [row[0] for row in rows],
            },
        )

    def held(self, subject: str) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._begin(cursor)
            cursor.execute(
                "SELECT m.memory_id, m.text, m.kind, m.origin, m.author, m.run_id, m.source, m.created_at, m.expires_at,"
                " m.forgotten_at, m.swept_at, m.restricted_at, m.hold, d.label, d.aliases,"
                " (SELECT json_agg(json_build_array(s.recall_id, s.run_id, s.purpose, s.at, s.place)) FROM disclosure s"
                "  WHERE s.org_id = %(org)s AND s.memory_id = m.memory_id)"
                " FROM memory m LEFT JOIN directory d ON d.org_id = m.org_id AND d.subject_type = m.subject_type"
                " AND d.subject_id = m.subject_id"
                " WHERE m.org_id = %(org)s AND m.subject_type = 'candidate' AND m.subject_id = %(subject)s"
                " ORDER BY m.created_at DESC, m.memory_id DESC",
                {"org": self.org_id, "subject": subject},
            )
            cursor.fetchall()

    def forget(self, subject: str) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._begin(cursor)
            cursor.execute(
                "WITH gone AS (UPDATE memory SET text = NULL, text_sha256 = NULL, embedding = NULL, embedding_model = NULL,"
                " forgotten_at = now(), forgotten_by = 'user:bare', forgotten_reason = 'benchmark' WHERE org_id = %(org)s"
                " AND subject_type = 'candidate' AND subject_id = %(subject)s AND text IS NOT NULL RETURNING memory_id),"
                " cleared AS (DELETE FROM directory WHERE org_id = %(org)s AND subject_type = 'candidate'"
                " AND subject_id = %(subject)s), recorded AS ("
                " INSERT INTO erasure (org_id, erasure_id, subject_type, subject_id, by, reason, at, memory_count)"
                " SELECT %(org)s, %(erasure)s, 'candidate', %(subject)s, 'user:bare', 'benchmark', now(), count(*) FROM gone)"
                " SELECT memory_id FROM gone",
                {"org": self.org_id, "subject": subject, "erasure": uuid4()},
            )
            cursor.fetchall()


def measured(size: int, rounds: int, home: Path) -> list[Pair]:
    """Load an organisation of a size and measure each operation on it."""
    org_id = f"bench-{size}"
    chosen = settings(memory_home=str(home), database_url=None, memory_embedder="none")
    engine = database.usable_engine(chosen)
    vectors = RandomVectors()
    plain = MemoryStore.open(org_id, embedder=None, settings=chosen)
    store = MemoryStore.open(org_id, embedder=vectors, settings=chosen)
    load_ms = timed(lambda: plain.remember_many(items(size, seed=size)))
    embed_ms = timed(store.embed)

    url = engine.url
    results = [
        Pair(name="loading, a memory", size=size, store_ms=[load_ms / size], bare_ms=[]),
        Pair(name="embed, a stored vector", size=size, store_ms=[embed_ms / size], bare_ms=[]),
    ]
    with psycopg.connect(
        user=url.username, password=url.password, dbname=url.database, host=str(url.query["host"]), autocommit=True
    ) as connection:
        bare = Bare(connection, org_id)
        queries = [sentence(random.Random(turn), turn) for turn in range(rounds + 10)]
        ready = [str(vectors.embed_query(query)) for query in queries]
        subjects = size // PER_SUBJECT

        def at(turn: int, offset: int = 0) -> str:
            return f"c-{(turn * 7 + offset) % subjects}"

        def remember(turn: int) -> object:
            return plain.remember(
                f"{queries[turn]} {size}",
                kind="observation",
                origin="inference",
                author="agent:benchmark",
                run_id="r-1",
                subject=Subject("candidate", at(turn)),
            )

        results.append(
            alternated(
                "remember", size, rounds, remember, lambda turn: bare.remember(f"{queries[turn]} bare {size}", at(turn))
            )
        )

        def batch(turn: int, whose: str) -> list[str]:
            return [f"{queries[turn]} {whose} {size} {number}" for number in range(BATCH)]

        results.append(
            alternated(
                f"remember_many, {BATCH}",
                size,
                max(10, rounds // 20),
                lambda turn: plain.remember_many(
                    {
                        "text": one,
                        "kind": "observation",
                        "origin": "inference",
                        "author": "agent:benchmark",
                        "run_id": "r-1",
                        "subject": Subject("candidate", "c-0"),
                    }
                    for one in batch(turn, "store")
                ),
                lambda turn: bare.remember_many(batch(turn, "bare")),
            )
        )
        fewer = rounds if size <= 10_000 else max(20, rounds // 5)
        results.append(
            alternated(
                "recall, embedding excluded",
                size,
                fewer,
                lambda turn: store.recall(queries[turn], run_id="r-1"),
                lambda turn: bare.recall(ready[turn], quantised=size > QUANTISE_ABOVE),
            )
        )
        real = MiniLM()
        real.embed_query("warm")

        class RealTime(RandomVectors):
            def embed_query(self, text: str) -> Vector:
                real.embed_query(text)
                return super().embed_query(text)

        included = MemoryStore.open(org_id, embedder=RealTime(), settings=chosen)

        def bare_included(turn: int) -> None:
            real.embed_query(queries[turn])
            bare.recall(ready[turn], quantised=size > QUANTISE_ABOVE)

        results.append(
            alternated(
                "recall, embedding included",
                size,
                fewer,
                lambda turn: included.recall(queries[turn], run_id="r-1"),
                bare_included,
            )
        )
        results.append(
            alternated(
                "recall, newest first",
                size,
                rounds,
                lambda turn: store.recall("", run_id="r-1", ranking="recency"),
                lambda turn: bare.newest(),
            )
        )
        results.append(
            alternated(
                "held, 20 memories",
                size,
                rounds,
                lambda turn: store.held(Subject("candidate", at(turn))),
                lambda turn: bare.held(at(turn)),
            )
        )
        half = subjects // 2
        few = min(rounds, half - 10)
        results.append(
            alternated(
                "forget, 20 memories",
                size,
                few,
                lambda turn: store.forget(Subject("candidate", f"c-{turn}"), by="user:bench", reason="benchmark"),
                lambda turn: bare.forget(f"c-{half + turn}"),
            )
        )
    return results


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--sizes", default="1000,10000,100000", help="memories, with commas (default: %(default)s)")
    options.add_argument("--rounds", type=int, default=200, help="measurements of each (default: %(default)s)")
    chosen = options.parse_args()
    home = Path(tempfile.mkdtemp(prefix="memory-benchmark-"))
    home.chmod(0o755)
    print(f"{'operation':<28}{'memories':>8}{'p50 ms':>10}{'p95 ms':>10}{'bare p50':>10}{'bare p95':>10}{'ratio':>8}")
    try:
        for size in (int(one) for one in chosen.sizes.split(",")):
            for pair in measured(size, chosen.rounds, home / "home"):
                print(pair.line(), flush=True)
    finally:
        embedded.stop(home / "home")
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
