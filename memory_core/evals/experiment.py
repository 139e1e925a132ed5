"""Memories with questions about them, recalled by several rankings and embedders."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memory_core.config import Settings
from memory_core.errors import EmbedderError, LineRefused, MemoryCoreError, Refusal, Refused
from memory_core.evals.questions import Question, read_questions
from memory_core.evals.recall_set import RecallSet, by_ranking, read_memories
from memory_core.evals.retrieval import Answered
from memory_core.evals.scratch import scratch
from memory_core.interchange import Fault, Line
from memory_core.model import Ranking

HIRING_DESK = Path(__file__).with_name("hiring_desk")
WITHOUT_VECTORS = frozenset({Ranking.RECENCY, Ranking.LEXICAL})
NO_EMBEDDER = "none"
EXAMPLE = '{"org_id": "acme", "question": "How soon can Zoë start?", "evidence": ["msg-17"], "category": "named"}'


@dataclass(frozen=True, kw_only=True)
class Material:
    """Memories as a file has them, and what is asked about them; `missing` says why nothing can be asked."""

    lines: tuple[Line, ...] = ()
    questions: tuple[Question, ...] = ()
    missing: str | None = None

    def texts(self, sources: frozenset[str]) -> tuple[str, ...]:
        """Return the text of every memory that names one of these sources, in the order of the file."""
        return tuple(str(line.draft.text) for line in self.lines if _sources(line) & sources)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was recalled for each question, by ranking and embedder, and which embedders were left out, and why."""

    answered: Mapping[str, Sequence[Answered]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None  # why nothing was recalled at all

    @property
    def why_nothing(self) -> str | None:
        """Say why no question was answered; None where some were."""
        if self.answered:
            return None
        return self.missing or "; ".join(f"{name} is left out, {reason}" for name, reason in self.left_out.items())


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A question for which nothing that answers it was among the first memories."""

    question: str
    category: str
    expected: tuple[str, ...]  # sources
    expected_text: tuple[str, ...]
    place: int | None  # of the first memory that answers; None where none was recalled at all
    first: tuple[str, ...]  # sources of the memory that came first
    first_text: tuple[str, ...]


def material(
    memories: str | None = None, questions: str | None = None, *, sample: int | None = None, seed: int = 0
) -> Material:
    """Read a file of memories in the import format and one of questions about them; None is the hiring desk's.

    `sample` takes as many of the questions by lot, always the same ones. What cannot be used is said in `missing`.
    """
    try:
        lines = _read_memories(HIRING_DESK / "memories.jsonl" if memories is None else Path(memories))
        if memories is not None and questions is None:
            return Material(missing=f"no questions are given for {memories}: one JSON object a line, such as {EXAMPLE}")
        asked = _read_questions(HIRING_DESK / "questions.jsonl" if questions is None else Path(questions), lines)
    except MemoryCoreError as error:
        return Material(missing=str(error))
    if sample is not None and sample < len(asked):
        drawn = sorted(random.Random(seed).sample(range(len(asked)), max(sample, 0)))  # noqa: S311
        asked = [asked[place] for place in drawn]
    return Material(lines=tuple(lines), questions=tuple(asked))


def tried(
    material: Material, *, embedders: Sequence[str], rankings: Sequence[str], k: int, settings: Settings
) -> Tried:
    """Recall k memories for every question by every ranking, those that need vectors with each of the embedders.

    Each embedder has a database of its own, which is gone afterwards. An embedder that cannot serve is left out, with the
    reason; what cannot be recalled at all is said in `missing`.
    """
    if not material.questions:
        return Tried(missing=material.missing or "no question is asked")
    try:
        wanted = [Ranking(ranking) for ranking in rankings]
    except ValueError as error:
        return Tried(missing=f"{error}; use {', '.join(Ranking)}")
    try:
        return _tried(material, embedders, wanted, k=k, settings=settings)
    except MemoryCoreError as error:
        return Tried(missing=str(error))


def _tried(
    material: Material, embedders: Sequence[str], wanted: Sequence[Ranking], *, k: int, settings: Settings
) -> Tried:
    plain = [ranking for ranking in wanted if ranking in WITHOUT_VECTORS]
    by_vectors = [ranking for ranking in wanted if ranking not in WITHOUT_VECTORS]
    found = {NO_EMBEDDER: _recalled(material, NO_EMBEDDER, plain, k=k, settings=settings) if plain else {}}
    left_out: dict[str, str] = {}
    for embedder in embedders if by_vectors else ():
        if embedder == NO_EMBEDDER:
            left_out[embedder] = "makes no vectors"
            continue
        try:
            found[embedder] = _recalled(material, embedder, by_vectors, k=k, settings=settings)
        except EmbedderError as error:
            left_out[embedder] = str(error)
    answered = {
        ranking.value if embedder == NO_EMBEDDER else f"{ranking}, {embedder}": one[ranking]
        for ranking in wanted
        for embedder, one in found.items()
        if ranking in one
    }
    return Tried(answered=answered, left_out=left_out)


def best(answered: Mapping[str, Sequence[Answered]], *, k: int) -> str | None:
    """Return the name of what finds evidence most often among k memories, the first of equal ones; None of nothing."""
    return max(answered, key=lambda name: sum(one.any_at(k) for one in answered[name]), default=None)


def misses(answered: Sequence[Answered], material: Material, *, k: int) -> list[Miss]:
    """Return the questions without evidence among the first k, in the order of the questions."""
    return [_miss(one, material) for one in answered if not one.any_at(k)]


def _miss(one: Answered, material: Material) -> Miss:
    rank = one.reciprocal_rank()
    first = one.sources[0] if one.sources else frozenset()
    return Miss(
        question=one.question.text,
        category=one.question.category,
        expected=tuple(sorted(one.question.evidence)),
        expected_text=material.texts(one.question.evidence),
        place=round(1 / rank) if rank else None,
        first=tuple(sorted(first)),
        first_text=material.texts(first),
    )


def _recalled(
    material: Material, embedder: str, rankings: Sequence[Ranking], *, k: int, settings: Settings
) -> Mapping[str, list[Answered]]:
    with scratch(settings.model_copy(update={"memory_embedder": embedder})) as own:
        return by_ranking(RecallSet(own, material.lines), material.questions, rankings, k=k)


def _read_memories(file: Path) -> list[Line]:
    with _named(file), file.open("rb") as stream:
        lines = read_memories(stream)
        if not lines:
            raise Refused(Refusal(rule="file_has_memories", field="file", reason="has no memories"))
        return [_good(line) for line in lines]


def _read_questions(file: Path, lines: Sequence[Line]) -> list[Question]:
    sources: dict[str, set[str]] = {}
    for line in lines:
        sources.setdefault(line.org_id, set()).update(_sources(line))
    with _named(file), file.open("rb") as stream:
        return read_questions(stream, sources)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    try:
        yield
    except LineRefused as refused:
        raise MemoryCoreError(f"{file.name}, line {refused.line}: {refused.refusal}") from refused
    except Refused as refused:
        raise MemoryCoreError(f"{file.name} {refused.refusal.reason}") from refused
    except OSError as error:
        raise MemoryCoreError(f"{file} cannot be read: {error.strerror}") from error


def _good(line: Line | Fault) -> Line:
    if isinstance(line, Fault):
        raise LineRefused(line.refusal, line=line.number)
    return line


def _sources(line: Line) -> frozenset[str]:
    return frozenset(str(line.draft.source or "").split(",")) - {""}
