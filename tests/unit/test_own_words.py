"""The words of a memory about somebody are kept about nobody else, however they are written."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Subject
from memory_core.rules.own_words import FEWEST_LETTERS, LETTERS_IN_A_ROW, own_words_refusal

AMARA = Subject("candidate", "smp-c1", label="Amara Nwosu")
BO = Subject("candidate", "smp-c2", label="Bo Lindqvist")
NOTICE = "Could start after a two-month notice period in the spring."
SHORT = "Lives in Malmö."

LETTERS = "abcdefghijklmnopqrstuvwxyzäéøßçñ0123456789"
FEWEST_IN_A_LONG_WORD = 4
WORDS, LONG_WORDS = (st.text(LETTERS, min_size=fewest, max_size=8) for fewest in (1, FEWEST_IN_A_LONG_WORD))
OTHERS = st.text("АБВГДЕЖЗабвгдежз", min_size=1, max_size=8)  # no word of these is one of those
GAPS = st.text(" \t\n.,;:!?-–…\"'()«»/\u00a0\u2028", min_size=1, max_size=3)
CASES = st.sampled_from([str, str.upper, str.title, str.casefold])


def refused(text: str, subject: Subject | None, *shown: tuple[str, Subject | None]) -> bool:
    return own_words_refusal(text, subject, shown=shown) is not None


@pytest.mark.parametrize("about", [BO, None])
@pytest.mark.parametrize(
    "text",
    [
        NOTICE,
        "Could start after a two-month notice period.",
        "Remember: a two-month notice period in the spring!",
        "COULD START AFTER A TWO-MONTH notice",
        "Could   start\nafter\ta two month notice, as I heard",
        "“Could start, after (a two-month) notice”",
    ],
)
def test_thirty_letters_in_a_row_of_a_memory_about_one_person_are_not_kept_about_another(
    text: str, about: Subject | None
) -> None:
    assert refused(text, about, (NOTICE, AMARA))


@pytest.mark.parametrize(
    "text",
    [
        "Could start after a two year break.",  # five of the words
        "Start could after a month-two notice the in period spring.",  # all of them, in another order
        "Notice periods are two months here.",
        "",
        "…",
    ],
)
def test_fewer_words_in_a_row_are_no_repeating(text: str) -> None:
    assert not refused(text, BO, (NOTICE, AMARA))


@pytest.mark.parametrize("text", [SHORT, "He lives in Malmö too", "LIVES — IN — MALMÖ"])
def test_a_memory_of_fewer_letters_is_repeated_by_all_of_them(text: str) -> None:
    assert refused(text, BO, (SHORT, AMARA))
    assert not refused("Lives near Malmö", BO, (SHORT, AMARA))


def test_about_its_own_subject_a_memorys_words_may_be_kept_again() -> None:
    assert not refused(NOTICE, AMARA, (NOTICE, AMARA))
    assert not refused(NOTICE, Subject("candidate", "smp-c1", label="A. Nwosu"), (NOTICE, AMARA))
    assert refused(NOTICE, Subject("job", "smp-c1"), (NOTICE, AMARA))


@pytest.mark.parametrize("about", [AMARA, BO, None])
def test_what_is_remembered_about_nobody_may_be_kept_about_anybody(about: Subject | None) -> None:
    assert not refused(NOTICE, about, (NOTICE, None))


def test_each_memory_that_was_shown_counts_also_beside_one_about_the_same_subject() -> None:
    assert refused(f"{SHORT} {NOTICE}", BO, (SHORT, BO), (NOTICE, AMARA))
    assert refused(SHORT, AMARA, (NOTICE, AMARA), (SHORT, BO))
    assert not refused(f"{SHORT} {NOTICE}", AMARA, (SHORT, AMARA), (NOTICE, AMARA))


def test_the_refusal_names_whose_memory_it_is_and_not_its_words() -> None:
    found = own_words_refusal(NOTICE, BO, shown=[(NOTICE, AMARA)])
    assert found is not None
    assert (found.rule, found.field) == ("words_of_a_memory_stay_with_its_subject", "text")
    assert "candidate smp-c1" in found.reason
    assert "notice" not in found.reason
    assert "Amara" not in found.reason


@pytest.mark.parametrize("empty", ["", " ", "…", "👍", "\u200b"])
def test_a_memory_without_a_word_is_repeated_by_nothing(empty: str) -> None:
    assert not refused(NOTICE, BO, (empty, AMARA))
    assert not refused(empty, BO, (empty, AMARA))


@given(before=st.lists(WORDS, max_size=6), data=st.data())
def test_a_part_of_a_memory_is_found_wherever_it_stands_in_any_case_and_spacing(
    before: list[str], data: st.DataObject
) -> None:
    letters = LETTERS_IN_A_ROW if before else FEWEST_LETTERS  # a part of it, or the whole of a short one
    said = data.draw(st.lists(LONG_WORDS, min_size=-(-letters // FEWEST_IN_A_LONG_WORD), max_size=14))
    memory = [*before, *said]
    others = st.lists(OTHERS, max_size=4)
    parts = [data.draw(CASES)(word) + data.draw(GAPS) for word in [*data.draw(others), *said, *data.draw(others)]]
    assert refused("".join(parts), BO, (" ".join(memory), AMARA))
    assert not refused("".join(parts), AMARA, (" ".join(memory), AMARA))


@given(memory=st.lists(WORDS, max_size=14), said=st.lists(OTHERS, max_size=14))
def test_words_that_are_none_of_a_memorys_are_anybodys(memory: list[str], said: list[str]) -> None:
    assert not refused(" ".join(said), BO, (" ".join(memory), AMARA))


@pytest.mark.parametrize("word", ["Python", "Ja.", "Berlin"])
def test_an_everyday_word_is_repeated_by_nothing_but_itself(word: str) -> None:
    assert not refused(f"Knows {word} well.", BO, (word, AMARA))
    assert refused(word, BO, (word, AMARA))


@given(text=st.text(max_size=60), memory=st.text(max_size=60), about=st.sampled_from([AMARA, BO, None]))
def test_any_text_is_looked_at(text: str, memory: str, about: Subject | None) -> None:
    refused(text, about, (memory, AMARA))
    assert not refused(text, AMARA, (memory, AMARA))


# However they are written


def test_letters_that_are_put_together_otherwise_are_the_same_words() -> None:
    said = "Möchte künftig höchstens fünf Tage gründlich üben."
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert refused(unicodedata.normalize(form, said), BO, (unicodedata.normalize("NFC", said), AMARA)), form


@pytest.mark.parametrize("hidden", ["\u00ad", "\u200b", "\u200d", "\u2060", "\ufe0f"])
def test_what_nobody_sees_within_a_word_makes_no_other_word_of_it(hidden: str) -> None:
    said = re.sub(r"(?<=\w)(?=\w)", hidden, NOTICE)
    assert refused(said, BO, (NOTICE, AMARA))


def test_a_script_without_spaces_is_repeated_by_a_part_of_it_too() -> None:
    memory = "她要照顾年迈的母亲所以每周只能工作三天"
    assert refused(f"注意：{memory}。", BO, (memory, AMARA))
    assert refused(f"我们知道{memory}的情况", BO, (memory, AMARA))


@pytest.mark.parametrize(
    "said",
    [
        "C o u l d  s t a r t  a f t e r  a  t w o - m o n t h  n o t i c e",
        "Couldstartafteratwomonthnoticeperiod",
        "C'ould s'tart a'fter a t'wo-month n'otice",
        NOTICE.replace("o", "\u043e").replace("a", "\u0430").replace("e", "\u0435"),
    ],
)
def test_other_spacing_and_letters_that_look_alike_change_nothing(said: str) -> None:
    assert refused(said, BO, (NOTICE, AMARA))
