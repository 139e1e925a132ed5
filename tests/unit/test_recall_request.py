from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import Kind, Purpose, Ranking, Subject
from memory_core.errors import Refusal
from memory_core.rules.request import MAX_QUERY, Request, recall_request

FIELDS = ("query", "run_id", "limit", "token_budget", "kinds", "subject", "ranking", "purpose", "by", "because")
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary(max_size=8)
    | st.sampled_from(
        [*Kind, *Ranking, *Purpose, Kind, object(), Subject("candidate", "c-1"), "fact", "dense", "preview"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)


def requested(**changes: Any) -> Request | Refusal:
    asked: dict[str, Any] = {
        "query": "how soon can they start?",
        "run_id": "r-813",
        "limit": 5,
        "token_budget": None,
        "kinds": None,
        "subject": None,
        "ranking": None,
        "purpose": "run",
        "by": None,
        "because": None,
    }
    return recall_request(**{**asked, **changes})


def request(**changes: Any) -> Request:
    answer = requested(**changes)
    assert isinstance(answer, Request), answer
    return answer


def refusal(**changes: Any) -> tuple[str, str]:
    answer = requested(**changes)
    assert isinstance(answer, Refusal), answer
    return answer.rule, answer.field


def test_a_request_is_taken_as_it_was_made() -> None:
    subject = Subject("candidate", "c-81")
    taken = request(limit=20, token_budget=600, kinds=["fact"], subject=subject, ranking="dense", purpose="preview")
    assert (taken.query, taken.run_id, taken.limit, taken.token_budget) == (
        "how soon can they start?",
        "r-813",
        20,
        600,
    )
    assert (taken.kinds, taken.subject) == ((Kind.FACT,), subject)
    assert (taken.ranking, taken.purpose) == (Ranking.DENSE, Purpose.PREVIEW)


@pytest.mark.parametrize("limit", [1, 2, 49, 50])
def test_a_limit_from_1_to_50_will_do(limit: int) -> None:
    assert request(limit=limit).limit == limit


@pytest.mark.parametrize("limit", [0, -1, 51, 10_000, True, False, "5", 5.0, None, [5], float("nan")])
def test_any_other_limit_is_refused(limit: object) -> None:
    assert refusal(limit=limit) == ("limit_range", "limit")


@pytest.mark.parametrize("budget", [0, -1, True, "600", 600.0, [600], float("inf")])
def test_a_token_budget_that_is_no_positive_whole_number_is_refused(budget: object) -> None:
    assert refusal(token_budget=budget) == ("token_budget_range", "token_budget")


@pytest.mark.parametrize("query", [None, 5, b"start?", ["start?"]])
def test_a_query_that_is_no_text_is_refused(query: object) -> None:
    assert refusal(query=query) == ("query_is_text", "query")


@pytest.mark.parametrize("query", ["", " \n", "\u200b"])
def test_a_blank_query_is_refused_unless_the_newest_are_asked_for(query: str) -> None:
    assert refusal(query=query) == ("query_is_not_blank", "query")
    assert refusal(query=query, ranking="dense") == ("query_is_not_blank", "query")
    for ranking in (Ranking.RECENCY, "recency"):
        assert request(query=query, ranking=ranking).ranking is Ranking.RECENCY


@pytest.mark.parametrize("query", ["a\x00b", "a\ud800"])
def test_a_query_that_no_embedder_could_be_sent_is_refused(query: str) -> None:
    assert refusal(query=query) == ("query_is_storable", "query")


def test_a_query_may_have_eight_thousand_characters_and_not_one_more() -> None:
    assert request(query="a" * MAX_QUERY).query == "a" * 8000
    assert refusal(query="a" * 8001) == ("query_length", "query")


@pytest.mark.parametrize("run_id", [None, "", "r 1", "r-1\n", "r%", "r" * 129, 813])
def test_a_recall_by_no_run_is_refused(run_id: object) -> None:
    rule, field = refusal(run_id=run_id)
    assert rule in ("identifier_is_given", "identifier_shape")
    assert field == "run_id"


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        (None, None),
        ("fact", (Kind.FACT,)),
        (Kind.OBSERVATION, (Kind.OBSERVATION,)),
        (["fact", "fact"], (Kind.FACT,)),
        ({Kind.OBSERVATION, Kind.FACT}, (Kind.FACT, Kind.OBSERVATION)),
        (iter(("observation",)), (Kind.OBSERVATION,)),
    ],
)
def test_kinds_may_be_left_out_or_named_in_any_way(kinds: object, wanted: object) -> None:
    assert request(kinds=kinds).kinds == wanted


@pytest.mark.parametrize("kinds", [[], "", "opinion", ["fact", "opinion"], [None], 5, b"fact", [["fact"]]])
def test_kinds_that_name_no_kind_are_refused(kinds: object) -> None:
    assert refusal(kinds=kinds) == ("kind_is_known", "kinds")


@pytest.mark.parametrize("subject", ["candidate c-81", {"type": "candidate", "id": "c-81"}, 5])
def test_a_subject_that_is_no_subject_is_refused(subject: object) -> None:
    assert refusal(subject=subject) == ("subject_is_a_subject", "subject")


@pytest.mark.parametrize("ranking", ["best", "", "Recency", 5, ["recency"]])
def test_an_unknown_ranking_is_refused(ranking: object) -> None:
    assert refusal(ranking=ranking) == ("ranking_is_known", "ranking")


@pytest.mark.parametrize("purpose", [None, "", "Run", "audit", 5])
def test_an_unknown_purpose_is_refused(purpose: object) -> None:
    assert refusal(purpose=purpose) == ("purpose_is_known", "purpose")


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), anything))
def test_whatever_is_asked_is_a_request_or_refused_in_one_line_that_names_rule_and_field(
    changes: dict[str, Any],
) -> None:
    answer = requested(**changes)
    if isinstance(answer, Refusal):
        assert answer.field in FIELDS
        assert answer.rule.isidentifier()
        assert len(str(answer).splitlines()) == 1
    else:
        assert 1 <= answer.limit <= 50
        assert answer.token_budget is None or answer.token_budget >= 1
        assert answer.kinds is None or set(answer.kinds) <= set(Kind)


@given(any_text, any_text)
def test_a_refusal_does_not_repeat_the_query(before: str, after: str) -> None:
    answer = requested(query=f"{before}Marker7f3a{after}", limit=0)
    assert isinstance(answer, Refusal)
    assert "Marker7f3a" not in str(answer)


# Who looks at a preview, and why


def test_a_preview_may_say_who_looks_and_why() -> None:
    taken = request(purpose="preview", by="user:bo", because="testing recall")
    assert (taken.by, taken.because) == ("user:bo", "testing recall")
    assert request(purpose="preview", by="user:bo", because="ä" * 200).because == "ä" * 200
    unsaid = request(purpose="preview")
    assert (unsaid.by, unsaid.because) == (None, None)


@pytest.mark.parametrize(
    ("by", "because", "told"),
    [
        ("user bo", None, ("identifier_shape", "by")),
        ("", "testing", ("identifier_is_given", "by")),
        (5, None, ("identifier_shape", "by")),
        (None, "testing", ("because_is_somebodys", "by")),
        ("user:bo", "", ("because_is_given", "because")),
        ("user:bo", " \u200b\n", ("because_is_given", "because")),
        ("user:bo", 5, ("because_is_given", "because")),
        ("user:bo", "a\x00b", ("because_is_storable", "because")),
        ("user:bo", "a\ud800", ("because_is_storable", "because")),
        ("user:bo", "a" * 201, ("because_length", "because")),
    ],
)
def test_who_and_why_are_refused_by_their_fields(by: object, because: object, told: tuple[str, str]) -> None:
    assert refusal(purpose="preview", by=by, because=because) == told


@pytest.mark.parametrize("given_", [{"by": "user:bo"}, {"because": "x"}, {"by": "user:bo", "because": "x"}, {"by": ""}])
def test_a_run_is_recorded_as_such_and_says_neither(given_: dict[str, str]) -> None:
    assert refusal(purpose="run", **given_) == ("only_a_preview_says_who_looks", next(iter(given_)))
