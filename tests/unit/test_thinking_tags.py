"""Thinking that is written into an answer is parted from it, however the answer is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.gateway.conversation import ChunkKind
from memory_core.gateway.thinking import CLOSES, OPENS, ThinkingTags

TAGGED = st.lists(
    st.sampled_from(
        [OPENS, CLOSES, "<think", "<", "</", "think>", ">", " ", "\n", "a", "7 is prime", "<b>", "é", "\u2003"]
    ),
    max_size=12,
).map("".join)


def parted(*pieces: str) -> tuple[str, str]:
    """Return the thinking and the answer."""
    tags = ThinkingTags()
    said: dict[ChunkKind, str] = dict.fromkeys(ChunkKind, "")
    for piece in pieces:
        for chunk in tags.parted(piece):
            assert chunk.text
            said[chunk.kind] += chunk.text
    for chunk in tags.rest():
        said[chunk.kind] += chunk.text
    assert not list(tags.rest())
    return said[ChunkKind.THINKING], said[ChunkKind.ANSWER]


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[begin:end] for begin, end in pairwise(at)]


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("", "", ""),
        ("Sunny.", "", "Sunny."),
        ("<think>hm</think>Sunny.", "hm", "Sunny."),
        ("\n <think>\nhm\n</think>\n\nSunny.", "\nhm\n", "Sunny."),
        ("<think></think>\n\nSunny.", "", "Sunny."),
        ("<think>hm", "hm", ""),
        ("<think>hm</thi", "hm</thi", ""),
        ("<think>hm</think>", "hm", ""),
        ("<think>hm</think>\n \n", "hm", ""),
        ("<think>a < b </ c</think>Yes", "a < b </ c", "Yes"),
        ("<think>a</think>b<think>c</think>d", "a", "b<think>c</think>d"),
        ("What is <think>?", "", "What is <think>?"),
        ("</think>Sunny.", "", "</think>Sunny."),
        ("<thin", "", "<thin"),
        ("<thinking>hm</thinking>", "", "<thinking>hm</thinking>"),
        (" Sunny.\n", "", " Sunny.\n"),
        ("  ", "", "  "),
        ("<THINK>hm</THINK>", "", "<THINK>hm</THINK>"),
    ],
)
def test_only_what_an_answer_begins_with_between_tags_is_thinking(text: str, thinking: str, answer: str) -> None:
    assert parted(text) == (thinking, answer)
    assert parted(*text) == (thinking, answer)


@given(text=TAGGED | st.text(), cuts=st.lists(st.integers(0, 80), max_size=12))
def test_any_cutting_into_pieces_gives_the_same(text: str, cuts: list[int]) -> None:
    pieces = pieces_of(text, cuts)
    assert "".join(pieces) == text
    assert parted(*pieces) == parted(text) == parted(*text)


@given(text=st.text().filter(lambda text: not text.lstrip().startswith(OPENS)), cuts=st.lists(st.integers(0, 40)))
def test_an_answer_that_does_not_begin_with_thinking_is_left_as_it_is(text: str, cuts: list[int]) -> None:
    assert parted(*pieces_of(text, cuts)) == ("", text)


@given(thinking=st.text().filter(lambda text: CLOSES not in text), answer=st.text())
def test_nothing_is_lost_but_the_tags_and_the_blank_around_them(thinking: str, answer: str) -> None:
    assert parted(f"{OPENS}{thinking}{CLOSES}{answer}") == (thinking, answer.lstrip())


@given(text=st.text(min_size=1).filter(lambda text: not OPENS.startswith(text.lstrip()[: len(OPENS)])))
def test_an_answer_is_handed_on_at_once_when_it_is_clear_that_it_is_one(text: str) -> None:
    assert "".join(chunk.text for chunk in ThinkingTags().parted(text)) == text
