"""How much of what answers a question is among the first memories that are recalled for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy
from numpy.typing import NDArray

from memory_core.evals.questions import ALL, Question

RESAMPLES = 2000
Floats = NDArray[numpy.float64]
Places = NDArray[numpy.int64]


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What was recalled for a question: per memory, best first, its sources, with the tokens of the block up to it."""

    question: Question
    sources: Sequence[frozenset[str]]
    tokens: Sequence[int]  # estimated, of a block of the first, of the first two, …
    recall_ms: float

    def any_at(self, k: int) -> float:
        """Return 1 where a memory that answers is among the first k, else 0."""
        return float(any(self.question.evidence & one for one in self.sources[:k]))

    def share_at(self, k: int) -> float:
        """Return the share of the evidence that is among the first k."""
        found = self.question.evidence & frozenset().union(*self.sources[:k])
        return len(found) / len(self.question.evidence)

    def reciprocal_rank(self) -> float:
        """Return 1 over the place of the first memory that answers, 0 where there is none."""
        places = (place for place, one in enumerate(self.sources, start=1) if self.question.evidence & one)
        return 1 / next(places, float("inf"))

    def tokens_at(self, k: int) -> float:
        """Return the tokens of a block of the first k."""
        return float(self.tokens[min(k, len(self.tokens)) - 1]) if self.tokens else 0.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with the interval that holds it in 95 of 100 resamples of the questions (percentile bootstrap)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One ranking on the questions of one category, at one k."""

    ranking: str
    category: str
    k: int
    questions: int
    any_evidence: Estimate
    evidence_share: Estimate
    reciprocal_rank: Estimate  # over everything that was recalled, whatever k
    tokens: Estimate
    recall_ms_p50: float
    recall_ms_p95: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two rankings on the same questions: by how much the first finds any evidence more often than the second."""

    first: str
    second: str
    category: str
    k: int
    difference: Estimate
    only_first: int  # questions that only the first answers
    only_second: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a trial measured."""

    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]

    def row(self, ranking: str, *, k: int, category: str = ALL) -> Row:
        """Return one row; raises KeyError where it was not measured."""
        for row in self.rows:
            if (row.ranking, row.category, row.k) == (ranking, category, k):
                return row
        raise KeyError((ranking, category, k))


def measured(
    answered: Mapping[str, Sequence[Answered]], ks: Sequence[int], *, seed: int = 0, resamples: int = RESAMPLES
) -> Report:
    """Measure rankings on the same questions in the same order, over all and by category.

    The same resamples serve every figure, so that rankings are compared on the same questions.
    """
    if not answered:
        return Report(rows=(), comparisons=())
    first = next(iter(answered.values()))
    if not first:
        return Report(rows=(), comparisons=())
    by_category: dict[str, list[int]] = {}
    for place, one in enumerate(first):
        by_category.setdefault(one.question.category, []).append(place)
    parts = [(ALL, list(range(len(first)))), *(by_category.items() if len(by_category) > 1 else ())]
    rows, comparisons = [], []
    for category, places in parts:
        draws = numpy.random.default_rng(seed).integers(0, len(places), (resamples, len(places)))
        for k in ks:
            any_at: dict[str, Floats] = {}
            for ranking, all_of_it in answered.items():
                chosen = [all_of_it[place] for place in places]
                any_at[ranking] = _values(chosen, partial(Answered.any_at, k=k))
                rows.append(_row(ranking, category, k, chosen, any_at[ranking], draws))
            comparisons += [
                _comparison(better, other, category, k, any_at, draws) for better, other in combinations(answered, 2)
            ]
    return Report(rows=tuple(rows), comparisons=tuple(comparisons))


def _row(ranking: str, category: str, k: int, chosen: Sequence[Answered], any_at: Floats, draws: Places) -> Row:
    times = sorted(one.recall_ms for one in chosen)
    return Row(
        ranking=ranking,
        category=category,
        k=k,
        questions=len(chosen),
        any_evidence=_estimate(any_at, draws),
        evidence_share=_estimate(_values(chosen, partial(Answered.share_at, k=k)), draws),
        reciprocal_rank=_estimate(_values(chosen, Answered.reciprocal_rank), draws),
        tokens=_estimate(_values(chosen, partial(Answered.tokens_at, k=k)), draws),
        recall_ms_p50=nearest_rank(times, 0.5),
        recall_ms_p95=nearest_rank(times, 0.95),
    )


def _comparison(
    first: str, second: str, category: str, k: int, any_at: Mapping[str, Floats], draws: Places
) -> Comparison:
    difference = any_at[first] - any_at[second]
    return Comparison(
        first=first,
        second=second,
        category=category,
        k=k,
        difference=_estimate(difference, draws),
        only_first=int((difference > 0).sum()),
        only_second=int((difference < 0).sum()),
    )


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Return the percentile of sorted values by nearest rank."""
    return values[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]


def _values(chosen: Sequence[Answered], of: Callable[[Answered], float]) -> Floats:
    return numpy.array([of(one) for one in chosen], dtype=numpy.float64)


def _estimate(values: Floats, draws: Places) -> Estimate:
    means = values[draws].mean(axis=1)
    low, high = numpy.percentile(means, [2.5, 97.5])
    return Estimate(value=float(values.mean()), low=float(low), high=float(high))
