"""What trials come to is what counting by hand comes to, and how sure it is what is known of Wilson's interval."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import sqrt
from uuid import UUID

import pytest
from eval_rows import AGENTS, believable, evaluation, result, start
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.evals.likeness import counterpart, differing_settings, is_whole, unlike
from memory_core.evals.statistics import (
    KINDS,
    UNEXPLAINED,
    Z,
    bootstrapped,
    case_scores,
    compared,
    kinds_of,
    overall,
    pass_at_1,
    pass_hat_k,
    scores,
    sign_test,
    wilson,
)
from memory_core.evaluations import Aspect, CaseKind, CaseResult

judgement = st.sampled_from([True, False, None])
trials = st.builds(
    result,
    judgement,
    agent=st.sampled_from(["sourcing", "intake", "offer"]),
    case_id=st.sampled_from(["1", "2", "3", "4"]),
    termination=st.sampled_from(["Completed", "ToolFailure", "Deadline"]),
    aspects=st.dictionaries(st.sampled_from(Aspect), judgement),
)
evaluated = st.lists(trials, max_size=40)


def passes(outcomes: str, case_id: str = "1", **given: object) -> list[CaseResult]:
    """Return one case's trials: + passed, - failed, ? could not be judged."""
    meaning = {"+": True, "-": False, "?": None}
    return [result(meaning[one], case_id=case_id, trial=trial, **given) for trial, one in enumerate(outcomes, start=1)]


def judged(results: list[CaseResult]) -> dict[tuple[str, str], list[bool]]:
    found: dict[tuple[str, str], list[bool]] = {}
    for one in results:
        if one.passed is not None:
            found.setdefault((one.agent, one.case_id), []).append(one.passed)
    return found


# Wilson's interval


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 1, 0.0, 0.7935),
        (1, 1, 0.2065, 1.0),
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (9, 10, 0.5958, 0.9821),
        (81, 263, 0.2553, 0.3662),  # these three: Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_the_interval_is_the_known_one(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert (found.value, found.n) == (successes / n, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.00006)


@given(n=st.integers(1, 10**6), data=st.data())
def test_an_interval_holds_its_share_and_stays_within_nothing_and_all(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.one_of(st.integers(0, n), st.floats(0, n)))
    found = wilson(successes, n)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert (found.low == 0.0) >= (successes == 0)
    assert (found.high == 1.0) >= (successes == n)
    assert found.low < found.high
    other = wilson(n - successes, n)
    assert (other.low, other.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)


@given(n=st.integers(1, 400), data=st.data())
def test_an_end_of_the_interval_is_the_share_from_which_the_count_is_just_as_far_as_may_be(
    n: int, data: st.DataObject
) -> None:
    found = wilson(data.draw(st.integers(0, n)), n)
    for end in {found.low, found.high} - {0.0, 1.0}:
        assert abs(found.value - end) == pytest.approx(Z * sqrt(end * (1 - end) / n), rel=1e-6)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (1, 0), (2, 1), (-1, 1), (float("nan"), 1)])
def test_what_is_no_share_has_no_interval(successes: float, n: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        wilson(successes, n)


# One trial, and all of several


@given(evaluated)
def test_a_trial_that_was_not_judged_counts_in_no_share(results: list[CaseResult]) -> None:
    known = [passed for of_case in judged(results).values() for passed in of_case]
    found = pass_at_1(results)
    if known:
        assert found is not None
        assert (found.value, found.n) == (sum(known) / len(known), len(known))
    else:
        assert found is None


@given(evaluated, st.integers(1, 4))
def test_the_chance_that_all_pass_is_the_share_of_the_draws_of_k_trials_in_which_all_do(
    results: list[CaseResult], k: int
) -> None:
    by_hand = []
    for of_case in judged(results).values():
        draws = list(combinations(of_case, k))
        if draws:
            by_hand.append(Fraction(sum(map(all, draws)), len(draws)))
    found = pass_hat_k(results, k)
    if by_hand:
        assert found is not None
        assert found.value == pytest.approx(float(sum(by_hand) / len(by_hand)))
        assert found.n == len(by_hand)
    else:
        assert found is None


def test_the_chance_that_all_pass_is_right_on_average() -> None:
    """Over every way in which four trials may come out, each passing with 3/10, two in a row pass with 9/100."""
    chance, expected = Fraction(3, 10), Fraction(0)
    for outcomes in product("+-", repeat=4):
        weight = chance ** outcomes.count("+") * (1 - chance) ** outcomes.count("-")
        found = pass_hat_k(passes("".join(outcomes)), 2)
        assert found is not None
        expected += weight * Fraction(found.value).limit_denominator(100)
    assert expected == chance**2


def test_a_case_with_too_few_judged_trials_is_left_out_of_the_chance_that_all_pass() -> None:
    results = [*passes("+++"), *passes("++?", "2"), *passes("---", "3")]
    found = pass_hat_k(results, 3)
    assert found is not None
    assert (found.value, found.n) == (0.5, 2)
    assert pass_hat_k(passes("+?"), 2) is None
    with pytest.raises(ValueError, match="0 trials are none"):
        pass_hat_k(results, 0)


# By agent and by case


@given(evaluated, st.integers(1, 3))
def test_nothing_is_dropped_from_what_agents_come_to(results: list[CaseResult], k: int) -> None:
    found, everything = scores(results, k), overall(results, k)
    assert [one.agent for one in found] == sorted({one.agent for one in results})
    assert everything.agent == "all"
    assert everything.trials == len(results) == sum(one.trials for one in found)
    for one in [*found, everything]:
        own = results if one is everything else [each for each in results if each.agent == one.agent]
        assert one.judged + sum(one.infrastructure.values()) == one.trials == sum(one.terminations.values())
        assert one.cases == len({(each.agent, each.case_id) for each in own})
        assert one.pass_at_1 == pass_at_1(own)
        assert one.pass_hat_k == pass_hat_k(own, k)
        for aspect in Aspect:
            known = [
                each.aspects[aspect] for each in own if each.passed is not None and each.aspects.get(aspect) is not None
            ]
            share = one.aspects[aspect]
            assert (None if share is None else (share.value, share.n)) == (
                (sum(map(bool, known)) / len(known), len(known)) if known else None
            )


@given(evaluated)
def test_every_trial_belongs_to_one_case(results: list[CaseResult]) -> None:
    found = case_scores(results)
    assert len({(one.agent, one.case_id) for one in found}) == len(found)
    assert [one.agent for one in found] == sorted(one.agent for one in found)
    assert sum(one.trials for one in found) == len(results)
    for one in found:
        of_case = judged(results).get((one.agent, one.case_id), [])
        assert (one.passed, one.judged) == (sum(of_case), len(of_case))
        assert one.share == (sum(of_case) / len(of_case) if of_case else None)


def test_failures_that_are_not_the_models_are_counted_by_their_reason_commonest_first() -> None:
    results = [
        *passes("+??", infrastructure="gateway.deadline"),
        *passes("?", "2", infrastructure="gateway.busy"),
        *passes("?", "3", infrastructure=None),
    ]
    found = overall(results, 3)
    assert list(found.infrastructure.items()) == [("gateway.deadline", 2), ("gateway.busy", 1), (UNEXPLAINED, 1)]
    assert (found.judged, found.trials, found.cases) == (1, 5, 3)


def test_how_a_run_ended_is_apart_from_whether_it_passed() -> None:
    results = [result(False), result(True, termination="ToolFailure", trial=2), result(None, trial=3)]
    found = overall(results, 1)
    assert found.terminations == {"Completed": 1, "ToolFailure": 1, "gateway.unavailable": 1}
    assert found.pass_at_1 is not None
    assert found.pass_at_1.value == 0.5


def test_kinds_come_in_the_order_of_the_suites_and_unknown_ones_after() -> None:
    kinds = ["odd", "chained", "right tool", "odd", "stranger"]
    cases = case_scores([result(case_id=str(number), kind=kind) for number, kind in enumerate(kinds)])
    assert kinds_of(cases) == ["right tool", "chained", "odd", "stranger"]
    assert kinds_of(case_scores(list(believable(start(), skill=0.5)))) == list(KINDS) == list(CaseKind)


# Two evaluations


@given(evaluated, evaluated)
def test_two_evaluations_are_compared_by_the_cases_that_both_judged(
    first: list[CaseResult], second: list[CaseResult]
) -> None:
    ours, theirs = judged(first), judged(second)
    both = sorted(ours.keys() & theirs.keys())
    found = compared(first, second)
    if not both:
        assert found is None
        return
    assert found is not None
    differences = [
        Fraction(sum(ours[case]), len(ours[case])) - Fraction(sum(theirs[case]), len(theirs[case])) for case in both
    ]
    assert found.cases == len(both)
    assert found.unpaired == len(ours.keys() | theirs.keys()) - len(both)
    assert found.difference == pytest.approx(float(sum(differences) / len(both)))
    assert found.first_better == sum(one > 0 for one in differences)
    assert found.second_better == sum(one < 0 for one in differences)
    assert {(one.agent, one.case_id) for one, _ in found.differing} == {
        case for case, one in zip(both, differences, strict=True) if one
    }
    sizes = [abs((one.share or 0) - (other.share or 0)) for one, other in found.differing]
    assert sizes == sorted(sizes, reverse=True)
    back = compared(second, first)
    assert back is not None
    assert (back.first_better, back.second_better, back.p_value) == (
        found.second_better,
        found.first_better,
        found.p_value,
    )
    assert back.difference == -found.difference
    assert (found.interval is None) is (len(both) < 2)
    if found.interval is not None:
        assert back.interval == pytest.approx((-found.interval[1], -found.interval[0]))
    assert back.disagrees is found.disagrees


@settings(max_examples=60)
@given(st.integers(0, 6), st.integers(0, 6))
def test_the_sign_test_is_the_share_of_all_ways_to_split_that_are_as_uneven(one_way: int, other_way: int) -> None:
    n = one_way + other_way
    uneven = abs(one_way - other_way)
    ways = [abs(2 * sum(split) - n) >= uneven for split in product((0, 1), repeat=n)]
    assert sign_test(one_way, other_way) == pytest.approx(sum(ways) / len(ways))


@pytest.mark.parametrize(
    ("one_way", "other_way", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (10, 1, 0.01171875), (8, 2, 0.109375), (3, 3, 1.0)],
)
def test_the_sign_test_gives_the_known_values(one_way: int, other_way: int, p: float) -> None:
    assert sign_test(one_way, other_way) == p == sign_test(other_way, one_way)


def test_a_share_of_more_trials_is_the_same_share() -> None:
    found = compared(passes("+--") + passes("++", "2"), passes("++----") + passes("+", "2"))
    assert found is not None
    assert (found.cases, found.difference, found.differing, found.p_value) == (2, 0.0, (), 1.0)


def test_two_that_pass_equally_often_differ_in_nothing_whatever_rounding_makes_of_thirds() -> None:
    first = passes("+--") + passes("+--", "2") + passes("+--", "3") + passes("---", "4")
    second = passes("---") + passes("---", "2") + passes("---", "3") + passes("+++", "4")
    found = compared(first, second)
    assert found is not None
    assert (found.difference, found.disagrees) == (0.0, False)


def test_a_mean_that_favours_one_and_a_count_that_favours_the_other_disagree() -> None:
    """The second is better by one trial of ten in nine cases, the first by all ten in one."""
    first = [one for case in range(9) for one in passes("+" * 8 + "--", str(case))] + passes("+" * 10, "9")
    second = [one for case in range(9) for one in passes("+" * 9 + "-", str(case))] + passes("-" * 10, "9")
    found = compared(first, second)
    assert found is not None
    assert found.difference == pytest.approx(0.01)
    assert (found.first_better, found.second_better, found.disagrees) == (1, 9, True)
    assert found.p_value < 0.05
    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]


def test_the_bootstrap_interval_is_the_same_each_time_and_near_the_normal_one() -> None:
    values = [0.1 * (place % 7) - 0.2 for place in range(210)]
    found = bootstrapped(values)
    assert found == bootstrapped(values)
    assert found != bootstrapped(values, seed=1)
    assert found is not None
    mean = sum(values) / len(values)
    spread = sqrt(sum((one - mean) ** 2 for one in values)) / len(values)
    assert found == pytest.approx((mean - Z * spread, mean + Z * spread), abs=0.004)


def test_of_fewer_than_two_values_there_is_no_bootstrap_interval_and_of_equal_ones_it_is_their_value() -> None:
    assert bootstrapped([]) is bootstrapped([0.3]) is None
    assert bootstrapped([0.25] * 4) == (0.25, 0.25)


# Like with like


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        ({"model": "qwen3:4b", "digest": None, "base_seed": 8, "by": "user:ines", "provider": "openai"}, ()),
        ({"agents": tuple(reversed(AGENTS))}, ()),
        ({"suites_hash": "0" * 64}, ("suites",)),
        ({"settings": {"temperature": 0}}, ("settings",)),
        ({"trials": 5, "agents": ("screening",)}, ("trials of each case", "agents")),
    ],
)
def test_two_evaluations_are_alike_when_all_but_the_model_is_the_same(
    given: dict[str, object], differs: tuple[str, ...]
) -> None:
    assert unlike(evaluation(), evaluation(**given)) == differs
    assert unlike(evaluation(**given), evaluation()) == differs


def test_settings_that_differ_are_named_with_both_values() -> None:
    first = evaluation(settings={"temperature": 0.6, "cap": 2000, "effort": "none"})
    second = evaluation(settings={"temperature": 0, "effort": "none", "top_p": 0.9})
    assert differing_settings(first, second) == {"temperature": (0.6, 0), "cap": (2000, None), "top_p": (None, 0.9)}


def test_an_evaluation_is_whole_when_every_trial_is_on_record() -> None:
    assert is_whole(evaluation())
    assert not is_whole(evaluation(recorded=134))
    assert not is_whole(evaluation(recorded=0, ended_at=None))


def test_an_evaluation_is_compared_with_one_of_another_model_and_like_it_where_there_is_one() -> None:
    chosen = evaluation()
    again = evaluation(evaluation_id=UUID(int=2))
    unlike_it = evaluation(evaluation_id=UUID(int=3), model="qwen3:4b", suites_hash="0" * 64)
    broken_off = evaluation(evaluation_id=UUID(int=4), model="qwen3:4b", recorded=3)
    best = evaluation(evaluation_id=UUID(int=5), model="qwen3:4b")
    older = evaluation(evaluation_id=UUID(int=6), model="qwen3:1.7b")
    everything = [chosen, again, unlike_it, broken_off, best, older]
    assert counterpart(chosen, everything) is best
    assert counterpart(chosen, everything[:4]) is broken_off
    assert counterpart(chosen, everything[:3]) is unlike_it
    assert counterpart(chosen, everything[:2]) is again
    assert counterpart(chosen, [chosen]) is None
