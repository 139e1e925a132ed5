from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.characters import has_surrogate, is_blank
from memory_core.rules.erasure import MAX_REASON, erasure_refusal, reason_refusal

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize("reason", ["erasure request of 3 November", "x", "理由", "a" * 500, "😀" * 500, "two\nlines"])
def test_a_reason_of_one_to_five_hundred_characters_will_do(reason: str) -> None:
    assert erasure_refusal(by="user:ines", reason=reason) is None


@pytest.mark.parametrize("reason", [None, "", " ", "\n", "\u200b\u3164", 7, b"because", ["because"]])
def test_an_erasure_without_a_reason_is_refused(reason: object) -> None:
    refused = erasure_refusal(by="user:ines", reason=reason)
    assert refused is not None
    assert (refused.rule, refused.field) == ("reason_is_given", "reason")


@pytest.mark.parametrize("reason", ["a\x00b", "a\ud800"])
def test_a_reason_that_cannot_be_stored_is_refused(reason: str) -> None:
    refused = erasure_refusal(by="user:ines", reason=reason)
    assert refused is not None
    assert (refused.rule, refused.field) == ("reason_is_storable", "reason")


def test_a_reason_of_501_characters_is_refused() -> None:
    refused = erasure_refusal(by="user:ines", reason="a" * 501)
    assert refused is not None
    assert (refused.rule, refused.field) == ("reason_length", "reason")


@pytest.mark.parametrize("by", [None, "", "user:ines\n", "user ines", "user:ines%", "user:inés", "u" * 129, 7])
def test_an_erasure_by_nobody_is_refused(by: object) -> None:
    refused = erasure_refusal(by=by, reason="because")
    assert refused is not None
    assert refused.field == "by"


@given(any_text | any_text.map(lambda text: text * 20))
def test_a_reason_is_refused_in_one_line_exactly_if_blank_too_long_or_not_storable(reason: str) -> None:
    may = not is_blank(reason) and "\x00" not in reason and not has_surrogate(reason) and len(reason) <= MAX_REASON
    refused = reason_refusal(reason)
    assert (refused is None) == may
    assert refused is None or len(str(refused).splitlines()) == 1


def test_a_reason_of_another_field_is_refused_under_its_name() -> None:
    refused = reason_refusal(None, field="hold_reason")
    assert refused is not None
    assert refused.field == "hold_reason"
