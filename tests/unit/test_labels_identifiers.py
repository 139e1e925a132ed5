from __future__ import annotations

import string
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Refused, Subject
from memory_core.characters import has_surrogate, is_blank
from memory_core.identifiers import MAX_IDENTIFIER, MAX_SOURCE, identifier_refusal, source_refusal
from memory_core.labels import MAX_ALIASES, MAX_LABEL, alias_refusal, label_refusal

ALLOWED = string.ascii_letters + string.digits + "._:@/+-"
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
identifiers = st.text(ALLOWED, min_size=1, max_size=MAX_IDENTIFIER)
NOT_IDENTIFIERS = {
    "trailing newline": "c-81\n",
    "trailing carriage return": "c-81\r",
    "leading newline": "\nc-81",
    "newline inside": "c\n81",
    "space": "c 81",
    "leading space": " c-81",
    "trailing space": "c-81 ",
    "percent": "c%",
    "129 characters": "c" * 129,
    "letter with accent": "é",
    "Cyrillic letter": "с-81",
    "Arabic digit": "c-٣",
    "fullwidth letter": "ｃ-81",
    "superscript digit": "c²",
    "dotless i": "ı",
    "Kelvin sign": "\u212a",
    "long s": "ſ",
    "NUL": "c\x00",
    "only NUL": "\x00",
    "surrogate": "c\ud800",
    "zero width": "c\u200b",
    "quote": 'c"',
    "apostrophe": "c'",
    "bracket": "<c>",
    "ampersand": "c&d",
    "comma": "a,b",
    "backslash": "a\\b",
    "semicolon": "a;b",
    "star": "*",
}


@pytest.mark.parametrize("value", NOT_IDENTIFIERS.values(), ids=NOT_IDENTIFIERS.keys())
def test_what_could_carry_text_is_no_identifier(value: str) -> None:
    refused = identifier_refusal(value, field="run_id")
    assert refused is not None
    assert (refused.rule, refused.field) == ("identifier_shape", "run_id")


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_identifier_is_refused_as_missing(value: object) -> None:
    refused = identifier_refusal(value, field="run_id")
    assert refused is not None
    assert refused.rule == "identifier_is_given"


@pytest.mark.parametrize("value", [1, 0, True, False, b"c-81", ["c-81"], 1.5, object()])
def test_what_is_no_string_is_no_identifier(value: object) -> None:
    refused = identifier_refusal(value, field="run_id")
    assert refused is not None
    assert refused.rule == "identifier_shape"


@given(identifiers)
def test_ascii_letters_digits_and_a_few_signs_make_an_identifier(value: str) -> None:
    assert identifier_refusal(value, field="run_id") is None


def test_an_identifier_may_have_128_characters() -> None:
    assert identifier_refusal("a" * 128, field="run_id") is None


@given(any_text | st.tuples(identifiers, any_text).map("".join))
def test_an_identifier_is_refused_in_one_line_exactly_if_it_has_another_character_or_too_many(value: str) -> None:
    refused = identifier_refusal(value, field="run_id")
    assert (refused is None) == (1 <= len(value) <= 128 and set(value) <= set(ALLOWED))
    assert refused is None or len(str(refused).splitlines()) == 1


@given(st.lists(identifiers.filter(lambda one: len(one) < 40), min_size=1, max_size=10))
def test_a_source_may_list_several_identifiers(parts: list[str]) -> None:
    assert source_refusal(",".join(parts)) is None
    assert source_refusal(None) is None


@pytest.mark.parametrize(
    "value", ["", ",", "a,", ",a", "a,,b", "a, b", "a,b\n", "a;b", "é", "a" * 129, "a," + "b" * 129, 5]
)
def test_a_source_of_anything_else_is_refused(value: object) -> None:
    refused = source_refusal(value)
    assert refused is not None
    assert refused.field == "source"


def test_a_source_may_have_512_characters_and_not_one_more() -> None:
    parts = ["a" * 127] * 4  # with its commas 511
    assert source_refusal(",".join([*parts[:3], "a" * 128])) is None
    assert len(",".join([*parts[:3], "a" * 128])) == MAX_SOURCE == 512
    refused = source_refusal(",".join([*parts, ""]) + "aa")
    assert refused is not None
    assert refused.rule == "source_length"


@pytest.mark.parametrize("value", NOT_IDENTIFIERS.values(), ids=NOT_IDENTIFIERS.keys())
def test_a_subject_with_what_is_no_identifier_cannot_be_built(value: str) -> None:
    for field, pair in (("subject.type", (value, "c-81")), ("subject.id", ("candidate", value))):
        with pytest.raises(Refused) as caught:
            Subject(*pair)
        assert (caught.value.rule, caught.value.field) == ("identifier_shape", field)


@pytest.mark.parametrize(("field", "pair"), [("subject.type", ("", "c-81")), ("subject.id", ("candidate", None))])
def test_a_subject_without_type_or_id_cannot_be_built(field: str, pair: tuple[Any, Any]) -> None:
    with pytest.raises(Refused) as caught:
        Subject(*pair)
    assert (caught.value.rule, caught.value.field) == ("identifier_is_given", field)


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"label": ""}, "name_is_not_blank", "subject.label"),
        ({"label": " \u200b"}, "name_is_not_blank", "subject.label"),
        ({"label": "a\x00"}, "name_is_storable", "subject.label"),
        ({"label": "\ud800"}, "name_is_storable", "subject.label"),
        ({"label": "a" * 201}, "name_length", "subject.label"),
        ({"label": 5}, "name_is_text", "subject.label"),
        ({"label": ["Zoë"]}, "name_is_text", "subject.label"),
        ({"aliases": "Zoë"}, "aliases_are_a_list", "subject.aliases"),
        ({"aliases": None}, "aliases_are_a_list", "subject.aliases"),
        ({"aliases": {"Zoë"}}, "aliases_are_a_list", "subject.aliases"),
        ({"aliases": ["Zoë", ""]}, "name_is_not_blank", "subject.aliases"),
        ({"aliases": ["Zoë", None]}, "name_is_text", "subject.aliases"),
        ({"aliases": ("a" * 201,)}, "name_length", "subject.aliases"),
        ({"aliases": tuple(f"alias {number}" for number in range(51))}, "alias_count", "subject.aliases"),
    ],
)
def test_a_subject_with_names_that_cannot_be_kept_cannot_be_built(changes: Any, rule: str, field: str) -> None:
    with pytest.raises(Refused) as caught:
        Subject("candidate", "c-81", **changes)
    assert (caught.value.rule, caught.value.field) == (rule, field)


def test_a_subject_may_have_a_label_of_200_characters_and_50_aliases() -> None:
    subject = Subject("candidate", "c-81", "😀" * MAX_LABEL, [f"alias {number}" for number in range(MAX_ALIASES)])
    assert len(subject.label or "") == 200
    assert len(subject.aliases) == 50


def test_a_subject_is_known_by_type_and_id_alone() -> None:
    subject = Subject("candidate", "c-81", "Zoë", ("Zoe",))
    assert subject == Subject("candidate", "c-81")
    assert hash(subject) == hash(Subject("candidate", "c-81", "Other"))
    assert subject != Subject("candidate", "c-8")
    assert subject != Subject("referee", "c-81")
    assert subject != Subject("candidate", "C-81")
    assert str(subject) == "candidate c-81"


def test_a_subject_cannot_be_changed_once_it_is_built() -> None:
    names = ["Zoe"]
    subject = Subject("candidate", "c-81", aliases=names)
    with pytest.raises(FrozenInstanceError):
        subject.id = "c-82"  # type: ignore[misc]
    names.append("a" * 300)
    assert subject.aliases == ("Zoe",)


@given(any_text | any_text.map(lambda text: text * 10))
def test_a_name_is_refused_in_one_line_exactly_if_blank_too_long_or_not_storable(name: str) -> None:
    may = not is_blank(name) and "\x00" not in name and not has_surrogate(name) and len(name) <= MAX_LABEL
    for refused in (label_refusal(name), alias_refusal([name])):
        assert (refused is None) == may
        assert refused is None or len(str(refused).splitlines()) == 1


def test_a_subject_without_a_label_needs_none() -> None:
    assert label_refusal(None) is None
    assert alias_refusal(()) is None
