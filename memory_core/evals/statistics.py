"""What trials of cases come to, with how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from random import Random

from memory_core.evals.questions import ALL
from memory_core.evaluations import Aspect, CaseKind, CaseResult

Z = 1.959964  # of the normal distribution: 95 of 100 lie within
KINDS = tuple(kind.value for kind in CaseKind)
RESAMPLES, SEED = 2000, 0  # of the bootstrap; the same for all, so the same results have the same interval
UNEXPLAINED = "unexplained"  # why a trial was not judged, where its record does not say


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A share from 0 to 1, with what it may as well be: 95 of 100 such intervals hold the true one."""

    value: float
    low: float
    high: float
    n: int  # what it is a share of


@dataclass(frozen=True, kw_only=True)
class AgentScore:
    """What the trials of one agent's cases come to; a trial that could not be judged counts in no share."""

    agent: str
    cases: int
    trials: int
    judged: int
    infrastructure: Mapping[str, int]  # how many trials could not be judged, by why; commonest first
    pass_at_1: Interval | None  # None: no trial was judged
    pass_hat_k: Interval | None  # None: no case has k judged trials; its n: the cases that have
    terminations: Mapping[str, int]  # of every trial; commonest first
    aspects: Mapping[Aspect, Interval | None]  # of the judged trials to whose case the aspect applies


@dataclass(frozen=True, kw_only=True)
class CaseScore:
    """How often a case was passed."""

    agent: str
    case_id: str
    kind: str
    passed: int
    judged: int
    infrastructure: Mapping[str, int]  # as of AgentScore

    @property
    def trials(self) -> int:
        """How many trials of it are on record."""
        return self.judged + sum(self.infrastructure.values())

    @property
    def share(self) -> float | None:
        """The share of its judged trials that passed; None: none was judged."""
        return self.passed / self.judged if self.judged else None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two evaluations by the cases that both judged."""

    cases: int
    difference: float  # of the share of a case's trials that pass, the first less the second; mean over the cases
    interval: tuple[float, float] | None  # of the difference: 95 %, by bootstrap over the cases; None: of one case
    first_better: int  # cases
    second_better: int
    p_value: float  # of the two-sided sign test over the cases that differ
    differing: tuple[
        tuple[CaseScore, CaseScore], ...
    ]  # first and second of each such case, the greatest difference first
    unpaired: int  # cases that only one of the two judged

    @property
    def disagrees(self) -> bool:
        """Whether the mean difference favours one, and the number of cases in which it is better the other."""
        return self.difference * (self.first_better - self.second_better) < 0


def wilson(successes: float, n: int, *, z: float = Z) -> Interval:
    """Return the share of successes among n with Wilson's interval; raises ValueError where there is no such share."""
    if not (n >= 1 and 0 <= successes <= n):
        raise ValueError(f"{successes} of {n} is no share")
    share = successes / n
    middle = share + z**2 / (2 * n)
    reach = z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n))
    # Nothing and all are exact; elsewhere rounding must not part the share from its interval.
    return Interval(
        value=share,
        low=0.0 if successes == 0 else min(max(low, 0.0), share),
        high=1.0 if successes == n else max(min(high, 1.0), share),
        n=n,
    )


def pass_at_1(results: Iterable[CaseResult]) -> Interval | None:
    """Return the share of judged trials that passed; None: no trial was judged.

    Trials of one case are not independent, so with several trials of each the interval is too narrow.
    """
    return _share(one.passed for one in results)


def pass_hat_k(results: Iterable[CaseResult], k: int) -> Interval | None:
    """Return the chance that all of k trials of a case pass; None: no case has k judged trials.

    For each case that has n judged trials, c of them passed, the unbiased estimate C(c, k) / C(n, k); the mean over the cases.
    The interval is over cases, which are independent: Wilson's, rather too wide for shares between none and all.
    """
    if k < 1:
        raise ValueError(f"{k} trials are none")
    estimates = [comb(one.passed, k) / comb(one.judged, k) for one in case_scores(results) if one.judged >= k]
    return wilson(sum(estimates), len(estimates)) if estimates else None


def case_scores(results: Iterable[CaseResult]) -> list[CaseScore]:
    """Return how often each case was passed, by agent, then in the order in which the cases come."""
    by_case: dict[tuple[str, str], list[CaseResult]] = {}
    for one in results:
        by_case.setdefault((one.agent, one.case_id), []).append(one)
    found = [_case_score(of_case) for of_case in by_case.values()]
    return sorted(found, key=lambda one: one.agent)


def scores(results: Sequence[CaseResult], k: int) -> list[AgentScore]:
    """Return what the trials of each agent come to, in the order of their names."""
    names = sorted({one.agent for one in results})
    return [_score(name, [one for one in results if one.agent == name], k) for name in names]


def overall(results: Sequence[CaseResult], k: int) -> AgentScore:
    """Return what the trials of all agents together come to."""
    return _score(ALL, results, k)


def compared(first: Iterable[CaseResult], second: Iterable[CaseResult]) -> Comparison | None:
    """Compare two evaluations case by case, over the cases that both judged; None: there is no such case."""
    ours, theirs = (
        {(one.agent, one.case_id): one for one in case_scores(results) if one.judged} for results in (first, second)
    )
    pairs = [(ours[case], theirs[case]) for case in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        return None
    differing = sorted((pair for pair in pairs if _difference(pair)), key=lambda pair: -abs(_difference(pair)))
    better = sum(_difference(pair) > 0 for pair in differing)
    return Comparison(
        cases=len(pairs),
        # Exact: rounding must not favour one of two that pass equally often.
        difference=float(sum(map(_exact_difference, pairs), Fraction()) / len(pairs)),
        interval=bootstrapped([_difference(pair) for pair in pairs]),
        first_better=better,
        second_better=len(differing) - better,
        p_value=sign_test(better, len(differing) - better),
        differing=tuple(differing),
        unpaired=len(ours.keys() ^ theirs.keys()),
    )


def bootstrapped(
    values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """Return the 95 % percentile bootstrap interval of the mean of values; None: of fewer than two, which tell nothing."""
    if len(values) < 2:
        return None
    draw = Random(seed)  # noqa: S311 - nothing here is secret
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(resamples))
    beyond = resamples * 25 // 1000  # at each end
    return means[beyond], means[-1 - beyond]


def sign_test(one_way: int, other_way: int) -> float:
    """Return how likely so uneven a split or a more uneven one is where either way is as likely; 1 of nothing to split."""
    n = one_way + other_way
    tail = sum(comb(n, count) for count in range(min(one_way, other_way) + 1))
    return min(1.0, 2 * tail / (1 << n))


def kinds_of(cases: Iterable[CaseScore]) -> list[str]:
    """Return the kinds of these cases: those that every suite has first, others in the order in which they come."""
    there = dict.fromkeys(one.kind for one in cases)
    return [*(kind for kind in KINDS if kind in there), *(kind for kind in there if kind not in KINDS)]


def _score(agent: str, results: Sequence[CaseResult], k: int) -> AgentScore:
    judged = [one for one in results if one.passed is not None]
    return AgentScore(
        agent=agent,
        cases=len({(one.agent, one.case_id) for one in results}),
        trials=len(results),
        judged=len(judged),
        infrastructure=_unjudged(results),
        pass_at_1=pass_at_1(judged),
        pass_hat_k=pass_hat_k(judged, k),
        terminations=_counted(one.termination for one in results),
        aspects={aspect: _share(one.aspects.get(aspect) for one in judged) for aspect in Aspect},
    )


def _case_score(results: Sequence[CaseResult]) -> CaseScore:
    return CaseScore(
        agent=results[0].agent,
        case_id=results[0].case_id,
        kind=results[0].kind,
        passed=sum(one.passed is True for one in results),
        judged=sum(one.passed is not None for one in results),
        infrastructure=_unjudged(results),
    )


def _share(judgements: Iterable[bool | None]) -> Interval | None:
    known = [one for one in judgements if one is not None]
    return wilson(sum(known), len(known)) if known else None


def _unjudged(results: Iterable[CaseResult]) -> Mapping[str, int]:
    return _counted(one.infrastructure or UNEXPLAINED for one in results if one.passed is None)


def _counted(names: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda one: (-one[1], one[0])))


def _difference(pair: tuple[CaseScore, CaseScore]) -> float:
    first, second = pair
    return first.passed / first.judged - second.passed / second.judged


def _exact_difference(pair: tuple[CaseScore, CaseScore]) -> Fraction:
    first, second = pair
    return Fraction(first.passed, first.judged) - Fraction(second.passed, second.judged)
