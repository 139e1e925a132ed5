from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.prompt.tokens import NEWLINE_WEIGHT, TOKEN, estimated_tokens, tokens_in, weight

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=80)


def test_an_empty_text_has_no_tokens() -> None:
    assert estimated_tokens("") == 0


@given(first=any_text, second=any_text)
def test_lines_weigh_together_what_they_weigh_alone(first: str, second: str) -> None:
    assert weight(f"{first}\n{second}") == weight(first) + NEWLINE_WEIGHT + weight(second)


@given(text=any_text)
def test_every_text_has_an_estimate_that_no_script_escapes(text: str) -> None:
    visible = sum(1 for part in text.split() for character in part if not character.isascii())
    assert estimated_tokens(text) == tokens_in(weight(text)) >= visible
    assert (estimated_tokens(text) > 0) is (text != "")


@pytest.mark.parametrize(("weight", "tokens"), [(0, 0), (1, 1), (TOKEN, 1), (TOKEN + 1, 2)])
def test_a_part_of_a_token_counts_as_one(weight: int, tokens: int) -> None:
    assert tokens_in(weight) == tokens


@pytest.mark.parametrize(
    ("text", "at_least", "at_most"),
    [
        ("the", 1, 2),
        ("20261102", 8, 9),
        ("\\u200b", 6, 7),
        ("We have never scheduled an interview on the Friday before a holiday.", 13, 17),
        ("привет", 3, 9),
        ("面接は来週です", 7, 16),
        ("👍👍👍", 6, 9),
        ("Donaudampfschifffahrtsgesellschaft", 8, 16),
    ],
)
def test_the_estimate_is_of_the_right_size(text: str, at_least: int, at_most: int) -> None:
    assert at_least <= estimated_tokens(text) <= at_most


def test_another_language_in_latin_letters_counts_more_than_english() -> None:
    english = "The candidate can start after a notice period of two months, she said that in the interview."
    german = "Die Bewerberin kann nach einer Kündigungsfrist von zwei Monaten anfangen, sagte sie im Gespräch."
    assert estimated_tokens(german) > 1.3 * estimated_tokens(english)


def test_an_estimate_of_a_block_takes_less_than_a_millisecond() -> None:
    block = "\n".join(
        [
            '[1] stated by user:maria in run r-640 on 2026-10-20, operational: "Panel interviews need two weeks\' notice."'
        ]
        * 12
    )
    assert 550 < estimated_tokens(block) < 750
    times_ms = []
    for _ in range(50):
        start = time.perf_counter()
        estimated_tokens(block)
        times_ms.append((time.perf_counter() - start) * 1000)
    assert min(times_ms) < 1
