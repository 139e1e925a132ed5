"""What a recall takes by each ranking, at 1,000 and 10,000 memories of one organisation, in one run.

Run it with nothing else running: python -m benchmarks.rankings
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy

from memory_core import MemoryStore, Ranking
from memory_core.config import settings
from memory_core.db import database
from memory_core.db.engine import transaction
from memory_core.evals.scratch import scratch

SET = Path(__file__).resolve().parents[1] / "memory_core" / "evals" / "hiring_desk"
RANKINGS = (Ranking.RECENCY, Ranking.DENSE, Ranking.LEXICAL, Ranking.HYBRID)
DIMENSIONS = 384


class Random:
    """Unit vectors that are the same for the same text, as long as MiniLM's, in no time."""

    name = "random"

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        drawn = numpy.random.default_rng(abs(hash(text))).normal(size=DIMENSIONS)
        return list((drawn / numpy.linalg.norm(drawn)).tolist())


def filled(store: MemoryStore, count: int) -> None:
    """Store so many memories, in runs of five about as many people as a hiring desk has for them."""
    written = [json.loads(line) for line in (SET / "memories.jsonl").read_text().splitlines()]
    subjects = max(1, count // 10)
    known = [one["subject"]["label"].split() for one in written if "label" in one.get("subject", {})]
    first, last = ([name[place] for name in known if name[0].isascii()] for place in (0, -1))
    items = []
    for number in range(count):
        one, who = written[number % len(written)], number % subjects
        items.append(
            {
                "text": f"{one['text']} ({number})",
                "kind": "observation",
                "origin": one["origin"],
                "author": one["author"],
                "run_id": f"r-{number // 5}",
                "subject": {
                    "type": "candidate",
                    "id": f"c-{who}",
                    # First names are shared by some, hardly any family name is.
                    "label": f"{first[who % len(first)]} {last[who % len(last)]}{who}",
                },
            }
        )
    store.remember_many(items)


def measured(store: MemoryStore, questions: Sequence[str]) -> dict[str, list[float]]:
    """Recall by each ranking in turn, and return the milliseconds of each recall, the embedding left out."""
    times: dict[str, list[float]] = {ranking.value: [] for ranking in RANKINGS}
    for number, question in enumerate(questions):
        for ranking in RANKINGS[number % 4 :] + RANKINGS[: number % 4]:
            began = time.perf_counter()
            recall = store.recall(question, run_id="bench", ranking=ranking, purpose="preview")
            times[ranking.value].append((time.perf_counter() - began) * 1000 - recall.timings.embed_ms)
    return times


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", default="1000,10000")
    arguments.add_argument("--rounds", type=int, default=60)
    options = arguments.parse_args()
    questions = [json.loads(line)["question"] for line in (SET / "questions.jsonl").read_text().splitlines()]
    sys.stdout.write("| memories | ranking | p50, ms | p95, ms | of dense |\n|---|---|---|---|---|\n")
    with scratch(settings(memory_embedder="none")) as own:
        for size in map(int, options.sizes.split(",")):
            store = MemoryStore.open(f"bench-{size}", settings=own, embedder=Random())
            filled(store, size)
            with transaction(database.usable_engine(own)) as connection:
                connection.exec_driver_sql("SELECT 1")
            time.sleep(timedelta(seconds=12).total_seconds())  # autovacuum looks every ten seconds
            measured(store, questions[:8])
            times = measured(store, questions[: options.rounds])
            dense = statistics.median(times["dense"])
            for ranking, taken in times.items():
                p50, p95 = statistics.median(taken), sorted(taken)[int(0.95 * len(taken))]
                sys.stdout.write(f"| {size:,} | {ranking} | {p50:.1f} | {p95:.1f} | {p50 / dense:.2f} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
