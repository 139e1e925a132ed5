"""A set of memories and questions: loaded into a database, and recalled by rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from memory_core.config import Settings
from memory_core.db import database
from memory_core.errors import EmbedderError, Refusal, Refused
from memory_core.evals.questions import Question
from memory_core.evals.retrieval import Answered
from memory_core.interchange import Fault, Line, import_lines, read_lines
from memory_core.model import Purpose, Ranking, Recall
from memory_core.prompt.block import memory_block
from memory_core.rules.request import MAX_LIMIT
from memory_core.store import MemoryStore

Progress = Callable[[int, int], None]  # done, of how many
BOUNDARY = "9f2c61d0"


class RecallSet:
    """Memories that are loaded and embedded, ready to be asked about."""

    def __init__(self, settings: Settings, lines: Sequence[Line | Fault], *, progress: Progress | None = None) -> None:
        """Load them into the database of the settings; raises `LineRefused` for a bad line, or an `EmbedderError`."""
        good = [line for line in lines if isinstance(line, Line)]
        moments = [moment for line in good for moment in (line.draft.created_at, line.draft.last_seen_at)]
        given = [moment for moment in moments if isinstance(moment, datetime)]
        aware = [moment for moment in given if moment.tzinfo is not None]
        # The moment of asking: just after the newest was written, so that a set gives the same figures in a year.
        now = max(aware) + timedelta(minutes=1) if aware else datetime.now(UTC)
        self._clock = lambda: now
        self._settings = settings
        import_lines(database.usable_engine(settings), lines, clock=self._clock)
        self.sources: dict[str, set[str]] = {}
        for line in good:
            named = set(str(line.draft.source or "").split(",")) - {""}
            self.sources.setdefault(line.org_id, set()).update(named)
        self._stores: dict[str, MemoryStore] = {}
        done = 0
        for org_id in self.sources:
            store = self._stores[org_id] = MemoryStore.open(org_id, settings=settings, clock=self._clock)
            if settings.memory_embedder != "none":
                embedded = store.embed(progress=_beyond(progress, done, len(good)))
                done += embedded.count

    def answered(
        self, questions: Sequence[Question], ranking: Ranking, *, k: int, progress: Progress | None = None
    ) -> list[Answered]:
        """Recall for every question by one ranking, k memories each; raises `Refused` where k is none that may be asked for."""
        if not 1 <= k <= MAX_LIMIT:
            raise Refused(
                Refusal(rule="limit_range", field="k", reason=f"must be a whole number from 1 to {MAX_LIMIT}")
            )
        found = []
        for number, question in enumerate(questions, start=1):
            recall = self._stores[question.org_id].recall(
                question.text, run_id=f"eval-{ranking}", limit=k, ranking=ranking, purpose=Purpose.PREVIEW
            )
            if recall.ranking is not ranking:
                raise EmbedderError(
                    f"the ranking {ranking} cannot be tried: recall was by {recall.ranking} ({recall.reason})"
                )
            found.append(_answered(question, recall))
            if progress:
                progress(number, len(questions))
        return found


def _answered(question: Question, recall: Recall) -> Answered:
    memories = [one.memory for one in recall.memories]
    blocks = [
        memory_block(
            memories[:count],
            mode=recall.mode,
            reason=recall.reason,
            token_budget=None,
            draw_boundary=lambda: BOUNDARY,  # a random one would be more or fewer tokens each time
        ).block
        for count in range(1, len(memories) + 1)
    ]
    return Answered(
        question=question,
        sources=[frozenset((memory.source or "").split(",")) - {""} for memory in memories],
        tokens=[block.tokens for block in blocks if block is not None],
        recall_ms=recall.timings.search_ms,
    )


def read_memories(stream: BinaryIO, *, org_id: str | None = None) -> list[Line | Fault]:
    """Read a file of memories in the import format."""
    return list(read_lines(stream, org_id=org_id))


def by_ranking(
    loaded: RecallSet,
    questions: Sequence[Question],
    rankings: Sequence[Ranking],
    *,
    k: int,
    progress: Progress | None = None,
) -> Mapping[str, list[Answered]]:
    """Recall for every question by each ranking."""
    count = len(questions)
    return {
        ranking.value: loaded.answered(
            questions, ranking, k=k, progress=_beyond(progress, place * count, len(rankings) * count)
        )
        for place, ranking in enumerate(rankings)
    }


def _beyond(progress: Progress | None, done: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda further, _: progress(done + further, total)
