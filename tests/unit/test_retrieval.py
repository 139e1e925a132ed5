"""The figures of a trial are what they would be by hand, and say how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.evals.questions import Question
from memory_core.evals.retrieval import ALL, Answered, Estimate, Row, measured, nearest_rank

OF_ROWS = ("any_evidence", "evidence_share", "reciprocal_rank", "tokens")


def question(evidence: str, *, number: int = 1, category: str = "one") -> Question:
    return Question(number=number, org_id="acme", text="when?", evidence=frozenset(evidence), category=category)


def answered(
    evidence: str, recalled: str = "", *, tokens: Sequence[int] = (), recall_ms: float = 1.0, category: str = "one"
) -> Answered:
    """Return what was recalled: each word of `recalled` is a memory, each letter of it one of its sources; "-" has none."""
    sources = [frozenset(word) - {"-"} for word in recalled.split()]
    return Answered(
        question=question(evidence, category=category),
        sources=sources,
        tokens=tokens or [10 * place for place in range(1, len(sources) + 1)],
        recall_ms=recall_ms,
    )


def hits(*found: int) -> list[Answered]:
    """Return answers that find their evidence first, or not at all."""
    return [answered("a", "a" if one else "x") for one in found]


# One question


@pytest.mark.parametrize(
    ("evidence", "recalled", "k", "any_at", "share"),
    [
        ("a", "a b c", 1, 1, 1),
        ("c", "a b c", 1, 0, 0),
        ("c", "a b c", 2, 0, 0),
        ("c", "a b c", 3, 1, 1),
        ("c", "a b c", 50, 1, 1),
        ("z", "a b c", 3, 0, 0),
        ("ac", "a b c", 1, 1, 1 / 2),
        ("ac", "a b c", 3, 1, 1),
        ("acz", "a b c", 3, 1, 2 / 3),
        ("ac", "abc d", 1, 1, 1),  # one memory of three sources
        ("a", "a a a", 3, 1, 1),  # three memories of one source
        ("ab", "a a b", 2, 1, 1 / 2),
        ("a", "- - a", 2, 0, 0),  # memories without a source
        ("a", "", 5, 0, 0),
    ],
)
def test_any_and_share_of_the_evidence_among_the_first(
    evidence: str, recalled: str, k: int, any_at: float, share: float
) -> None:
    one = answered(evidence, recalled)
    assert one.any_at(k) == any_at
    assert one.share_at(k) == pytest.approx(share)


@pytest.mark.parametrize(
    ("evidence", "recalled", "rank"),
    [("a", "a b", 1), ("b", "a b", 1 / 2), ("bc", "a - c b", 1 / 3), ("z", "a b", 0), ("a", "", 0), ("b", "ab b", 1)],
)
def test_the_reciprocal_rank_is_of_the_first_memory_that_answers(evidence: str, recalled: str, rank: float) -> None:
    assert answered(evidence, recalled).reciprocal_rank() == pytest.approx(rank)


def test_tokens_are_of_a_block_of_the_first_and_of_all_where_there_are_fewer() -> None:
    one = answered("a", "a b c", tokens=[80, 120, 190])
    assert [one.tokens_at(k) for k in (1, 2, 3, 4, 50)] == [80, 120, 190, 190, 190]
    assert answered("a").tokens_at(5) == 0


@given(
    evidence=st.sets(st.sampled_from("abcdef"), min_size=1),
    recalled=st.lists(st.frozensets(st.sampled_from("abcdefgh"), max_size=3), max_size=12),
    k=st.integers(1, 14),
)
def test_with_more_memories_nothing_that_was_found_is_lost(
    evidence: set[str], recalled: list[frozenset[str]], k: int
) -> None:
    one = Answered(question=question("".join(evidence)), sources=recalled, tokens=[1] * len(recalled), recall_ms=1)
    assert one.any_at(k) <= one.any_at(k + 1)
    assert 0 <= one.share_at(k) <= one.share_at(k + 1) <= 1
    assert one.any_at(k) == math.ceil(one.share_at(k))
    found = one.reciprocal_rank()
    assert (one.any_at(k) == 1) == (found > 0 and round(1 / found) <= k)


# All questions


def test_a_row_has_the_means_of_its_questions() -> None:
    some = [
        answered("a", "a b", tokens=[10, 20], recall_ms=4),
        answered("bz", "a b", tokens=[30, 40], recall_ms=1),
        answered("z", "a b", tokens=[50, 90], recall_ms=3),
        answered("z", "", recall_ms=2),
    ]
    report = measured({"hybrid": some}, [1, 2])
    first, second = report.row("hybrid", k=1), report.row("hybrid", k=2)
    assert [first.any_evidence.value, first.evidence_share.value, first.tokens.value] == [0.25, 0.25, 22.5]
    assert [second.any_evidence.value, second.evidence_share.value, second.tokens.value] == [0.5, 0.375, 37.5]
    assert first.reciprocal_rank == second.reciprocal_rank
    assert first.reciprocal_rank.value == pytest.approx((1 + 1 / 2) / 4)
    assert (first.questions, first.recall_ms_p50, first.recall_ms_p95) == (4, 2, 4)
    assert (first.ranking, first.category, first.k) == ("hybrid", ALL, 1)
    assert report.comparisons == ()


def test_every_category_has_its_own_rows_beside_those_of_all() -> None:
    some = [*(answered("a", "a", category="named") for _ in range(3)), answered("a", "x", category="number")]
    report = measured({"dense": some, "hybrid": some}, [1, 5])
    assert {(row.ranking, row.category, row.k, row.questions) for row in report.rows} == {
        (ranking, category, k, questions)
        for ranking in ("dense", "hybrid")
        for category, questions in ((ALL, 4), ("named", 3), ("number", 1))
        for k in (1, 5)
    }
    values = {category: report.row("dense", k=1, category=category).any_evidence.value for category in (ALL, "named")}
    assert values == {ALL: 0.75, "named": 1.0}
    assert report.row("dense", k=5, category="number").any_evidence == Estimate(value=0, low=0, high=0)
    assert {(one.category, one.k) for one in report.comparisons} == {
        (category, k) for category in (ALL, "named", "number") for k in (1, 5)
    }


def test_where_all_questions_are_of_one_category_it_is_not_said_twice() -> None:
    assert {row.category for row in measured({"dense": hits(1, 0)}, [1]).rows} == {ALL}


@pytest.mark.parametrize("others", [[], ["named"]])
def test_a_category_that_is_called_all_counts_no_question_twice(others: list[str]) -> None:
    some = [answered("a", "a", category=category) for category in [ALL, ALL, *others]]
    for row in measured({"dense": some}, [1]).rows:
        assert row.questions <= len(some)
        assert row.any_evidence.value == 1
    assert measured({"dense": some}, [1]).row("dense", k=1).questions in (2, 3)


def test_a_row_that_was_not_measured_is_no_row() -> None:
    report = measured({"dense": hits(1)}, [1])
    for ranking, k, category in (("hybrid", 1, ALL), ("dense", 2, ALL), ("dense", 1, "named")):
        with pytest.raises(KeyError):
            report.row(ranking, k=k, category=category)


def test_nothing_measured_is_an_empty_report() -> None:
    for nothing in ({}, {"dense": []}, {"dense": [], "hybrid": []}):
        report = measured(nothing, [1, 5])
        assert (report.rows, report.comparisons) == ((), ())
    assert measured({"dense": hits(1)}, []).rows == ()


def test_a_comparison_counts_what_only_the_one_and_only_the_other_answers() -> None:
    report = measured(
        {"hybrid": hits(1, 1, 1, 0, 1, 0), "dense": hits(1, 0, 0, 1, 1, 0), "recency": hits(0, 0, 0, 0, 0, 0)}, [1]
    )
    found = {(one.first, one.second): one for one in report.comparisons}
    assert set(found) == {("hybrid", "dense"), ("hybrid", "recency"), ("dense", "recency")}
    both = found["hybrid", "dense"]
    assert (both.only_first, both.only_second, both.k, both.category) == (2, 1, 1, ALL)
    assert both.difference.value == pytest.approx(1 / 6)
    assert both.difference.low < 0 < both.difference.high
    assert (found["hybrid", "recency"].only_first, found["hybrid", "recency"].only_second) == (4, 0)


def test_rankings_that_answer_the_same_differ_by_nothing_however_often_it_is_drawn() -> None:
    (one,) = measured({"hybrid": hits(1, 0, 1), "dense": hits(1, 0, 1)}, [1]).comparisons
    assert one.difference == Estimate(value=0, low=0, high=0)
    assert (one.only_first, one.only_second) == (0, 0)


# Intervals


def estimates(row: Row) -> list[Estimate]:
    return [getattr(row, name) for name in OF_ROWS]


some_answers = st.lists(
    st.builds(
        answered,
        st.sampled_from(["a", "b", "ab", "abz"]),
        st.lists(st.sampled_from(["a", "b", "x", "xy", "-"]), max_size=6).map(" ".join),
        category=st.sampled_from(["one", "other"]),
        recall_ms=st.floats(0, 1e6),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(some=some_answers, seed=st.integers(0, 9))
def test_an_interval_holds_its_mean_and_is_the_same_for_the_same_seed(some: list[Answered], seed: int) -> None:
    report = measured({"dense": some, "hybrid": some[::-1]}, [1, 3], seed=seed, resamples=400)
    assert report == measured({"dense": some, "hybrid": some[::-1]}, [1, 3], seed=seed, resamples=400)
    for row in report.rows:
        for one in estimates(row):
            assert one.low - 1e-9 <= one.value <= one.high + 1e-9
        assert 0 <= row.evidence_share.value <= row.any_evidence.value <= 1
        assert row.recall_ms_p50 <= row.recall_ms_p95
    for comparison in report.comparisons:
        difference = comparison.difference
        assert difference.low - 1e-9 <= difference.value <= difference.high + 1e-9
        assert -1 <= difference.low <= difference.high <= 1


def test_another_seed_draws_other_questions() -> None:
    some = hits(*[1, 0, 0] * 30)
    drawn = {measured({"dense": some}, [1], seed=seed).row("dense", k=1).any_evidence for seed in range(5)}
    assert len(drawn) > 1
    assert {one.value for one in drawn} == {1 / 3}


def test_more_questions_make_a_narrower_interval_by_the_root_of_their_number() -> None:
    widths = []
    for times in (10, 40, 160):
        one = measured({"dense": hits(*[1, 0] * times)}, [1]).row("dense", k=1).any_evidence
        widths.append(one.high - one.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[0] / widths[2] == pytest.approx(4, rel=0.2)
    # Of 320 even chances: 1.96 · √(0.25 / 320) on either side.
    assert widths[2] == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 320), rel=0.15)


def test_a_paired_difference_is_surer_than_the_two_apart() -> None:
    dense = [1, 0] * 50
    hybrid = [1, 0] * 45 + [1, 1] * 5
    report = measured({"hybrid": hits(*hybrid), "dense": hits(*dense)}, [1])
    (one,) = report.comparisons
    assert one.difference.low > 0
    assert report.row("hybrid", k=1).any_evidence.low < report.row("dense", k=1).any_evidence.high


# Percentiles


@given(
    values=st.lists(st.integers(0, 50) | st.floats(0, 1e9), min_size=1, max_size=60).map(sorted),
    permille=st.integers(0, 1000),
)
def test_the_nearest_rank_is_the_least_value_that_so_many_do_not_exceed(values: list[float], permille: int) -> None:
    found = nearest_rank(values, permille / 1000)
    enough = [one for one in values if 1000 * sum(other <= one for other in values) >= permille * len(values)]
    assert found == min(enough)


@pytest.mark.parametrize(
    ("share", "value"), [(0, 10), (0.05, 10), (0.25, 10), (0.26, 20), (0.5, 20), (0.75, 30), (0.95, 40), (1, 40)]
)
def test_the_nearest_rank_of_four_values(share: float, value: float) -> None:
    assert nearest_rank([10, 20, 30, 40], share) == value


def test_the_nearest_rank_is_always_one_of_the_values() -> None:
    assert nearest_rank([7], 0.5) == nearest_rank([7], 0.95) == 7
    assert nearest_rank([1, 1000], 0.5) == 1
    assert nearest_rank([1, 1000], 0.95) == 1000
