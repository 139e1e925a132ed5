"""Questions are read as they were written, or refused by line and rule."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core.errors import LineRefused, Refused
from memory_core.evals.questions import ALL, MAX_CATEGORY, NO_CATEGORY, Question, read_questions

SOURCES: Mapping[str, set[str]] = {"acme": {"m-1", "m-2", "D1:3"}, "acme-corp": {"m-1", "m-9"}}
GOOD: dict[str, Any] = {"org_id": "acme", "question": "When could they start?", "evidence": ["m-1"]}


def line(**changes: Any) -> bytes:
    """Return a line of a good question with changes; a field that is `...` is left out."""
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    return json.dumps(fields).encode() + b"\n"


def read(*lines: bytes, **options: Any) -> list[Question]:
    return read_questions(io.BytesIO(b"".join(lines)), SOURCES, **options)


# What is read


def test_a_question_is_read_as_it_was_written() -> None:
    raw = line(question="Ab wann könnte Zoë anfangen?", evidence=["m-2", "D1:3"], category="temporal", answer="May")
    assert read(raw) == [
        Question(
            number=1,
            org_id="acme",
            text="Ab wann könnte Zoë anfangen?",
            evidence=frozenset({"m-2", "D1:3"}),
            category="temporal",
        )
    ]


def test_blank_lines_are_passed_over_and_still_counted() -> None:
    assert [one.number for one in read(b"\n", line(), b" \t\r\n", line(question="Who?"))] == [2, 4]


def test_a_mark_at_the_beginning_and_no_newline_at_the_end_do_no_harm() -> None:
    assert len(read(b"\xef\xbb\xbf" + line(), line().rstrip())) == 2
    assert len(read(line().replace(b"\n", b"\r\n"))) == 1


def test_without_a_category_it_is_uncategorised() -> None:
    assert read(line())[0].category == NO_CATEGORY
    assert read(line(category=2))[0].category == "2"
    assert read(line(category="x" * MAX_CATEGORY))[0].category == "x" * MAX_CATEGORY


@pytest.mark.parametrize(
    "category", ["x" * (MAX_CATEGORY + 1), "", " ", "a|b", "a\nb", "a\u202eb", ["a"], None, True, ALL]
)
def test_a_category_that_is_no_word_is_refused(category: object) -> None:
    with pytest.raises(LineRefused) as refused:
        read(line(category=category))
    assert refused.value.rule == "category_is_a_word"


def test_each_organisation_has_its_own_sources() -> None:
    both = read(line(), line(org_id="acme-corp", evidence=["m-9", "m-1"]))
    assert [one.org_id for one in both] == ["acme", "acme-corp"]


def test_an_organisation_that_is_asked_for_replaces_each_lines_own() -> None:
    assert read(line(org_id="acme"), org_id="acme-corp")[0].org_id == "acme-corp"
    assert read(line(org_id=...), org_id="acme-corp")[0].org_id == "acme-corp"
    with pytest.raises(LineRefused) as caught:
        read(line(evidence=["m-2"]), org_id="acme-corp")
    assert caught.value.rule == "evidence_names_memories"


# What is refused

BAD: dict[str, tuple[bytes, str, str]] = {
    "no JSON": (b"When?\n", "line_is_json", "line"),
    "half a line": (line()[:20] + b"\n", "line_is_json", "line"),
    "a list": (b"[1]\n", "line_is_json", "line"),
    "null": (b"null\n", "line_is_json", "line"),
    "a string": (b'"When?"\n', "line_is_json", "line"),
    "Latin-1": ('{"question": "Zoë"}\n'.encode("latin-1"), "line_is_json", "line"),
    "a mark within": (b"\xef\xbb\xbf" + line(), "line_is_json", "line"),
    "too deep": (b"[" * 100_000 + b"\n", "line_is_json", "line"),
    "too long a number": (b'{"org_id": ' + b"9" * 5000 + b"}\n", "line_is_json", "line"),
    "NUL bytes": (b"\x00\x00\n", "line_is_json", "line"),
    "no organisation": (line(org_id=...), "identifier_is_given", "org_id"),
    "an empty organisation": (line(org_id=""), "identifier_is_given", "org_id"),
    "an organisation of spaces": (line(org_id="a b"), "identifier_shape", "org_id"),
    "no question": (line(question=...), "query_is_text", "question"),
    "a number": (line(question=5), "query_is_text", "question"),
    "a blank question": (line(question=" \u200b"), "query_is_not_blank", "question"),
    "an empty question": (line(question=""), "query_is_not_blank", "question"),
    "too long a question": (line(question="a" * 8001), "query_length", "question"),
    "a NUL": (line(question="when\x00"), "query_is_storable", "question"),
    "a surrogate": (line(question="\ud800"), "query_is_storable", "question"),
    "no evidence": (line(evidence=...), "evidence_is_a_list", "evidence"),
    "empty evidence": (line(evidence=[]), "evidence_is_a_list", "evidence"),
    "evidence as text": (line(evidence="m-1"), "evidence_is_a_list", "evidence"),
    "evidence as an object": (line(evidence={"m-1": 1}), "evidence_is_a_list", "evidence"),
    "numbers as evidence": (line(evidence=[1]), "evidence_is_a_list", "evidence"),
    "nested evidence": (line(evidence=[["m-1"]]), "evidence_is_a_list", "evidence"),
    "evidence twice": (line(evidence=["m-1", "m-2", "m-1"]), "evidence_is_named_once", "evidence"),
    "evidence of nothing": (line(evidence=["m-7"]), "evidence_names_memories", "evidence"),
    "some evidence of nothing": (line(evidence=["m-1", "m-7"]), "evidence_names_memories", "evidence"),
    "another organisation's": (line(evidence=["m-9"]), "evidence_names_memories", "evidence"),
    "of an organisation without memories": (line(org_id="nobody"), "question_has_memories", "org_id"),
    "blank evidence": (line(evidence=[""]), "evidence_names_memories", "evidence"),
    "evidence in other letters": (line(evidence=["M-1"]), "evidence_names_memories", "evidence"),
    "a part of it": (line(evidence=["m-"]), "evidence_names_memories", "evidence"),
    "sources as they stand in a memory": (line(evidence=["m-1,m-2"]), "evidence_names_memories", "evidence"),
    "a field twice": (
        b'{"org_id": "acme", "question": "When?", "evidence": ["m-7"], "evidence": ["m-1"]}\n',
        "field_is_given_once",
        "line",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_refused_by_its_number_and_its_rule(name: str) -> None:
    raw, rule, field = BAD[name]
    with pytest.raises(LineRefused) as caught:
        read(line(), b"\n", raw, line())
    assert (caught.value.line, caught.value.rule, caught.value.field) == (3, rule, field)
    assert caught.value.others == 0
    said = str(caught.value)
    assert said.startswith("line 3: ")
    assert said.isprintable()


def test_the_first_bad_line_is_named_and_the_others_are_counted() -> None:
    with pytest.raises(LineRefused) as caught:
        read(line(), line(evidence=["m-7"]), b"{\n", line(), line(question=""))
    assert (caught.value.line, caught.value.others) == (2, 2)
    assert "2 more bad lines" in str(caught.value)


def test_evidence_of_another_organisation_is_said_to_be_that() -> None:
    with pytest.raises(LineRefused, match="another organisation") as caught:
        read(line(evidence=["m-9"]))
    assert "'m-9'" in str(caught.value)
    with pytest.raises(LineRefused) as caught:
        read(line(evidence=["m-7"]))
    assert "another" not in str(caught.value)


@pytest.mark.parametrize("raw", [b"", b"\n", b" \r\n\t\n"])
def test_a_file_without_a_question_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read(raw)
    assert (caught.value.rule, caught.value.field) == ("file_has_questions", "file")


# Any bytes

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
nearly = st.fixed_dictionaries(
    {},
    optional={
        "org_id": st.sampled_from(["acme", "acme-corp", "", "nobody"]) | anything,
        "question": st.text(max_size=20) | anything,
        "evidence": st.lists(st.sampled_from(["m-1", "m-2", "m-9", ""]), max_size=3) | anything,
        "category": anything,
    },
)
written = st.lists(st.binary(max_size=60) | nearly.map(json.dumps).map(str.encode), max_size=5).map(b"\n".join)


@given(raw=written, org_id=st.none() | st.just("acme"))
@example(raw=b"\xef\xbb\xbf", org_id=None)
@example(raw=line() + b"\xff", org_id=None)
@example(raw=line(category="\ud800"), org_id=None)
def test_whatever_a_file_holds_it_is_read_or_refused(raw: bytes, org_id: str | None) -> None:
    found: list[Question] = []
    said = ""
    try:
        found = read(raw, org_id=org_id)
    except Refused as refused:
        said = str(refused)
    assert bool(found) != bool(said)
    assert said.isprintable()
    for one in found:
        assert one.evidence <= SOURCES[one.org_id]
        assert one.evidence
        assert one.text.strip()
        assert len(one.category) <= MAX_CATEGORY
        one.category.encode()  # it is shown, and so no lone surrogate
        assert one.category.isprintable()
