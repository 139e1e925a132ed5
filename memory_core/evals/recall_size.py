"""How many memories to recall, from what each further one finds and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from memory_core.config import HOSTED_TOKENS_PER_MINUTE
from memory_core.evals.retrieval import RESAMPLES, Answered, Estimate, nearest_rank
from memory_core.figures import BlockCost

TOKENS_PER_POINT = (
    50  # what one more question in a hundred may cost every block: about a hundredth of a context of 4,096
)
MOST_OF_A_MINUTE = 0.25
USUAL = 5  # what a recall gives unless asked otherwise
FEW_QUESTIONS = 100

Floats = NDArray[numpy.float64]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a recall of k memories finds and costs."""

    k: int
    found: Estimate  # share of the questions with evidence among them
    added: Estimate  # what the last of them adds to that share, on the same questions
    tokens: Estimate  # of the block, over the questions
    tokens_p95: int
    added_tokens: float
    of_a_minute: float  # what the mean block takes of a minute's tokens, 1 being all of them
    prompt_ms: float | None  # to read the mean block; None where no such time is on record


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A number of memories to recall, and how sure that is."""

    step: Step
    low: int  # the choice lies from here
    high: int  # to here in 95 of 100 resamples of the questions
    choices: dict[int, float]  # by number of memories, the share of the resamples in which it is the choice
    questions: int
    tokens_per_point: float
    wanted: int  # what would be chosen without a ceiling
    most_tokens: int  # which 95 of 100 blocks keep to
    next_step: Step | None  # with one more; None where that was not measured
    beyond_usual: Estimate | None  # what it finds more than the usual number; None where that was not measured

    @property
    def k(self) -> int:
        """Return the number."""
        return self.step.k

    @property
    def is_at_the_end(self) -> bool:
        """Say whether more memories than were measured might be better still."""
        return self.next_step is None and self.k > 1


def curve(
    answered: Sequence[Answered],
    *,
    most: int,
    minute: int = HOSTED_TOKENS_PER_MINUTE,
    cost: BlockCost | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[Step, ...]:
    """Return what recalls of 1, 2, … up to `most` memories find and cost; nothing of no question.

    The questions were answered with at least `most` memories, or with all that there were.
    """
    if not answered:
        return ()
    found, tokens, weights = _measured(answered, most, seed=seed, resamples=resamples)
    added = numpy.diff(found, prepend=0.0, axis=1)
    steps = []
    for place in range(most):
        mean = float(tokens[:, place].mean())
        before = float(tokens[:, place - 1].mean()) if place else 0.0
        steps.append(
            Step(
                k=place + 1,
                found=_estimate(found[:, place], weights),
                added=_estimate(added[:, place], weights),
                tokens=_estimate(tokens[:, place], weights),
                tokens_p95=int(nearest_rank(sorted(tokens[:, place].tolist()), 0.95)),
                added_tokens=mean - before,
                of_a_minute=mean / minute,
                prompt_ms=None if cost is None else cost.ms_per_token * mean,
            )
        )
    return tuple(steps)


def recommended(
    answered: Sequence[Answered],
    *,
    most: int,
    tokens_per_point: float = TOKENS_PER_POINT,
    minute: int = HOSTED_TOKENS_PER_MINUTE,
    most_of_a_minute: float = MOST_OF_A_MINUTE,
    cost: BlockCost | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Recommendation | None:
    """Choose how many memories to recall; None of no question.

    A further memory is worth its tokens while one more question in a hundred costs no more than `tokens_per_point`: of
    all numbers up to `most`, the one with the greatest gain less cost, the smaller of two equal ones. Numbers of which
    more than 5 of 100 blocks take more than `most_of_a_minute` of the ceiling are out, unless it is one memory. The same
    choice on resampled questions says how sure it is.
    """
    steps = curve(answered, most=most, minute=minute, cost=cost, seed=seed, resamples=resamples)
    if not steps:
        return None
    found, tokens, weights = _measured(answered, most, seed=seed, resamples=resamples)
    most_tokens = int(most_of_a_minute * minute)
    net = 100 * found - tokens / tokens_per_point
    fitting = max([1, *(step.k for step in steps if step.tokens_p95 <= most_tokens)])
    choice = int(net.mean(axis=0)[:fitting].argmax()) + 1
    resampled = (weights @ net)[:, :fitting].argmax(axis=1) + 1
    low, high = numpy.percentile(resampled, [2.5, 97.5], method="nearest")
    counted = numpy.bincount(resampled, minlength=fitting + 1)
    return Recommendation(
        step=steps[choice - 1],
        low=int(low),
        high=int(high),
        choices={k: float(counted[k]) / resamples for k in range(1, fitting + 1)},
        questions=len(answered),
        tokens_per_point=tokens_per_point,
        wanted=int(net.mean(axis=0).argmax()) + 1,
        most_tokens=most_tokens,
        next_step=steps[choice] if choice < most else None,
        beyond_usual=_estimate(found[:, choice - 1] - found[:, USUAL - 1], weights) if most >= USUAL else None,
    )


def said(
    chosen: Recommendation | None,
    *,
    minute: int = HOSTED_TOKENS_PER_MINUTE,
    no_time: str | None = None,
    no_answer: str | None = None,
) -> str:
    """Write a recommendation with its uncertainty in lines.

    `no_time` says why no time is on record, `no_answer` why no question was answered.
    """
    if chosen is None:
        return f"No recommendation: {no_answer or 'no question was answered'}."
    step = chosen.step
    lines = [
        f"Recommendation: recall {_memories(step.k)}.",
        f"How sure: of 100 resamples of the {chosen.questions:,} questions, 95 choose {_range(chosen.low, chosen.high)}, "
        f"and {chosen.choices[step.k]:.0%} of all choose {step.k} itself.",
        f"What it finds: evidence for {_share(step.found)} of the questions (95 % interval).",
        f"What it takes: {step.tokens.value:,.0f} tokens a block on average, at most {step.tokens_p95:,} in 95 of 100; "
        f"{step.of_a_minute:.1%} of {minute:,} tokens a minute.",
        "Time to read it: "
        + (f"not known; {no_time or 'none is on record'}" if step.prompt_ms is None else f"{step.prompt_ms:,.0f} ms")
        + ".",
        f"The rule: one more question in a hundred may cost {chosen.tokens_per_point:g} tokens of every block.",
    ]
    if chosen.next_step is not None:
        further = chosen.next_step
        lines.append(
            f"One more: memory {further.k} would add {further.added_tokens:,.0f} tokens and {_points(further.added)} points."
        )
    if chosen.beyond_usual is not None and step.k != USUAL:
        lines.append(f"Beside the usual {USUAL}: {_points(chosen.beyond_usual)} points.")
    return "\n".join([*lines, *_warnings(chosen)])


def _warnings(chosen: Recommendation) -> list[str]:
    warnings = []
    if chosen.wanted > chosen.k:
        warnings.append(
            f"The ceiling decides: without it {chosen.wanted} would be chosen, and more than 5 of 100 of those blocks take "
            f"more than {chosen.most_tokens:,} tokens."
        )
    elif chosen.is_at_the_end:
        warnings.append("Nothing larger was measured, and it might be better: measure more memories.")
    if chosen.step.tokens_p95 > chosen.most_tokens:
        warnings.append(f"Even one memory takes more than the {chosen.most_tokens:,} tokens that a block may have.")
    if chosen.questions < FEW_QUESTIONS:
        warnings.append(f"{chosen.questions} questions are few: with {FEW_QUESTIONS} or more the range gets narrower.")
    return [f"Mind: {warning}" for warning in warnings]


def _measured(answered: Sequence[Answered], most: int, *, seed: int, resamples: int) -> tuple[Floats, Floats, Floats]:
    """Return what was found and the tokens, by question and k, and the weight of each question in each resample."""
    sizes = range(1, most + 1)
    found = numpy.array([[one.any_at(k) for k in sizes] for one in answered], dtype=numpy.float64)
    tokens = numpy.array([[one.tokens_at(k) for k in sizes] for one in answered], dtype=numpy.float64)
    count = len(answered)
    draws = numpy.random.default_rng(seed).integers(0, count, (resamples, count))  # as `measured` draws them
    drawn = numpy.array([numpy.bincount(draw, minlength=count) for draw in draws])
    return found, tokens, drawn / count


def _estimate(values: NDArray[Any], weights: Floats) -> Estimate:
    low, high = numpy.percentile(weights @ values, [2.5, 97.5])
    return Estimate(value=float(values.mean()), low=float(low), high=float(high))


def _memories(count: int) -> str:
    return f"{count} memory" if count == 1 else f"{count} memories"


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _share(one: Estimate) -> str:
    return f"{one.value:.1%} ({one.low:.1%} to {one.high:.1%})"


def _points(one: Estimate) -> str:
    return f"{100 * one.value:+.1f} ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
