"""What each further memory finds and costs, and the number that follows from it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.evals.questions import Question
from memory_core.evals.recall_size import curve, recommended, said
from memory_core.evals.retrieval import Answered
from memory_core.figures import BlockCost

COST = BlockCost(ms_per_token=2.0, uncached_prompts=20, block_tokens=40, prompts_with_block=20)


def answered(*places: int | None, memories: int = 10, each: int = 50, around: int = 100) -> list[Answered]:
    """Return one question for each place at which its evidence came, from 1; None is nowhere."""
    return [
        Answered(
            question=Question(number=number, org_id="acme", text="Who?", evidence=frozenset({"m-1"}), category="named"),
            sources=[frozenset({"m-1"} if rank == place else {f"x-{rank}"}) for rank in range(1, memories + 1)],
            tokens=[around + each * rank for rank in range(1, memories + 1)],
            recall_ms=1.0,
        )
        for number, place in enumerate(places, start=1)
    ]


def test_a_step_says_what_was_found_and_what_it_takes() -> None:
    steps = curve(answered(1, 1, 2, None), most=3, minute=1000, cost=COST)
    assert [step.k for step in steps] == [1, 2, 3]
    assert [step.found.value for step in steps] == [0.5, 0.75, 0.75]
    assert [step.added.value for step in steps] == [0.5, 0.25, 0.0]
    assert [step.tokens.value for step in steps] == [150, 200, 250]
    assert [step.added_tokens for step in steps] == [150, 50, 50]
    assert [step.tokens_p95 for step in steps] == [150, 200, 250]
    assert [step.of_a_minute for step in steps] == [0.15, 0.2, 0.25]
    assert [step.prompt_ms for step in steps] == [300, 400, 500]
    assert steps[2].added.low == steps[2].added.high == 0.0


def test_without_a_recorded_call_there_is_no_time() -> None:
    assert [step.prompt_ms for step in curve(answered(1), most=2)] == [None, None]


def test_of_no_question_there_is_nothing_to_say() -> None:
    assert curve([], most=5) == ()
    assert recommended([], most=5) is None
    assert (
        said(None, no_answer="memories.jsonl has no memories") == "No recommendation: memories.jsonl has no memories."
    )


def test_of_an_organisation_that_holds_nothing_one_memory_is_enough() -> None:
    nothing = answered(None, None, memories=0)
    (first, *_) = curve(nothing, most=3)
    assert (first.found.value, first.tokens.value, first.tokens_p95) == (0.0, 0.0, 0)
    chosen = recommended(nothing, most=3)
    assert chosen is not None
    assert chosen.k == 1


def test_a_memory_that_finds_nothing_is_not_worth_its_tokens() -> None:
    chosen = recommended(answered(*[1] * 90, *[3] * 10), most=10, tokens_per_point=50)
    assert chosen is not None
    assert chosen.k == 3  # ten more of a hundred for a hundred tokens
    assert (chosen.next_step.k, chosen.next_step.added.value) == (4, 0.0)  # type: ignore[union-attr]
    assert (chosen.low, chosen.high) == (3, 3)


def test_what_a_question_is_worth_decides() -> None:
    questions = answered(*[1] * 90, *[3] * 10)
    dear = recommended(questions, most=10, tokens_per_point=5)
    assert dear is not None
    assert dear.k == 1
    assert dear.tokens_per_point == 5


def test_few_questions_leave_the_number_open_and_it_says_so() -> None:
    chosen = recommended(answered(1, 1, 1, 2, 8), most=10, tokens_per_point=50)
    assert chosen is not None
    assert chosen.low < chosen.high
    assert chosen.low <= chosen.k <= chosen.high
    assert sum(chosen.choices.values()) == pytest.approx(1)
    assert "5 questions are few" in said(chosen)


def test_the_ceiling_decides_where_it_is_lower_and_it_says_so() -> None:
    questions = answered(*[1] * 50, *[6] * 50)
    free = recommended(questions, most=10, minute=8000)
    bound = recommended(questions, most=10, minute=1000, most_of_a_minute=0.3)
    assert free is not None
    assert bound is not None
    assert (free.k, bound.k, bound.wanted) == (6, 1, 6)
    assert max(bound.choices) == 4  # 300 tokens
    assert "The ceiling decides: without it 6 would be chosen" in said(bound, minute=1000)
    assert "ceiling decides" not in said(free)


def test_a_block_of_one_that_is_too_large_is_named() -> None:
    chosen = recommended(answered(1, 1), most=3, minute=100, most_of_a_minute=0.1)
    assert chosen is not None
    assert chosen.k == 1
    assert "Even one memory takes more than the 10 tokens" in said(chosen, minute=100)


def test_the_largest_number_measured_may_not_be_large_enough_and_it_says_so() -> None:
    chosen = recommended(answered(*[1, 2, 3] * 40), most=3)
    assert chosen is not None
    assert (chosen.k, chosen.next_step) == (3, None)
    assert "Nothing larger was measured" in said(chosen)
    assert chosen.beyond_usual is None  # five were not measured


def test_a_recommendation_says_how_sure_it_is_and_what_it_takes() -> None:
    chosen = recommended(answered(*[1] * 90, *[3] * 10, *[None] * 20), most=10, cost=COST)
    text = said(chosen)
    assert text.startswith("Recommendation: recall 3 memories.\n")
    assert "of 100 resamples of the 120 questions, 95 choose 3, and 100% of all choose 3 itself." in text
    assert "evidence for 83.3% (" in text
    assert "250 tokens a block on average, at most 250 in 95 of 100; 3.1% of 8,000 tokens a minute." in text
    assert "Time to read it: 500 ms." in text
    assert "One more: memory 4 would add 50 tokens and +0.0 (+0.0 to +0.0) points." in text
    assert "Beside the usual 5: +0.0" in text
    assert "Mind:" not in text


def test_without_a_recorded_call_it_says_what_is_missing() -> None:
    assert "Time to read it: not known; no call is on record." in said(
        recommended(answered(1), most=2), no_time="no call is on record"
    )


@given(st.lists(st.one_of(st.none(), st.integers(1, 8)), min_size=1, max_size=40), st.floats(1, 500))
def test_the_choice_is_the_best_of_all_and_the_same_every_time(places: Sequence[int | None], worth: float) -> None:
    questions = answered(*places, memories=8)
    steps = curve(questions, most=8, resamples=50)
    chosen = recommended(questions, most=8, tokens_per_point=worth, resamples=50)
    assert chosen == recommended(questions, most=8, tokens_per_point=worth, resamples=50)
    assert chosen is not None
    gains = [100 * step.found.value - step.tokens.value / worth for step in steps]
    assert gains[chosen.k - 1] == pytest.approx(max(gains))
    found = [step.found.value for step in steps]
    assert found == sorted(found)
