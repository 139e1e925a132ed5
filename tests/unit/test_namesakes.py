"""Which subjects texts may name: never fewer than are named."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import Subject
from memory_core.labels import label_refusal
from memory_core.prompt.pseudonyms import Pseudonyms
from memory_core.rules.mentions import Names
from memory_core.rules.namesakes import perhaps_named

FIRST = [
    "Zoë",
    "Jürgen",
    "Li",
    "أحمد",
    "Алёна",
    "王小明",
    "山田",
    "김민준",
    "สมชาย",
    "נועה",
    "Łukasz",
    "O'Brien",
    "Al",
    "Jean-Luc",
    "X",
]
LAST = [
    "Okafor",
    "Müller",
    "Na",
    "المنصوري",
    "Королёва",
    "太郎",
    "ใจดี",
    "כהן",
    "van der Berg",
    "Dr",
    "Das",
    "Smith",
    "",
]
IDS = ["c-81", "7", "10045", "zoe.okafor", "candidate-12", "Zoe-81", "emp:smith", "ab"]
WRAPS = [
    "{}",
    "{}s",
    "{}'s",
    "و{}",
    "ו{}",
    "x{}",
    "{}x",
    "{}22",
    "{}son",
    "({}),",
    "cv_{}.pdf",
    "{}@mail.example",
    "user:{}",
    "{}さん",
]


def names() -> st.SearchStrategy[str]:
    letters = st.text(st.characters(categories=("L", "M")), min_size=1, max_size=8)
    known = st.builds(lambda first, last: f"{first} {last}".strip(), st.sampled_from(FIRST), st.sampled_from(LAST))
    mails = st.sampled_from(["zoe@mail.example", "j.mueller@mail.example", "info@acme.example", "a1", "ATS-77"])
    return st.one_of(known, mails, st.lists(letters, min_size=1, max_size=3).map(" ".join)).filter(
        lambda name: label_refusal(name) is None
    )


subjects = st.lists(
    st.builds(
        lambda id_, label, aliases: Subject("candidate", id_, label, tuple(aliases)),
        st.sampled_from(IDS),
        names(),
        st.lists(names(), max_size=2),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda one: one.id,
)


@st.composite
def directories_with_a_text(draw: st.DrawFn) -> tuple[list[Subject], str]:
    """Draw subjects, and a text that has their names in it, whole and in part, glued, mistyped and wrapped in something."""
    known = draw(subjects)
    forms = [name for one in known for name in (one.label or "", one.id, *one.aliases)]
    words = draw(st.lists(st.sampled_from([*forms, *(word for form in forms for word in form.split())]), max_size=6))
    written = []
    for word in words:
        change = draw(st.sampled_from(["", "slip", "swap", "upper", "glue", "two"]))
        at = draw(st.integers(0, max(0, len(word) - 2)))
        changed = {
            "": word,
            "slip": word[:at] + word[at + 1 :],
            "swap": word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
            "upper": word.upper(),
            "glue": "".join(word.split()),
            "two": word.replace("ü", "ue"),
        }[change]
        written.append(draw(st.sampled_from(WRAPS)).format(changed))
    between = draw(st.sampled_from([" ", " then ", ", ", "", "\n", " M. "]))
    return known, between.join(["candidate", *written])


@settings(max_examples=100, deadline=None)
@given(directories_with_a_text())
def test_nobody_who_is_named_is_left_out(given_: tuple[list[Subject], str]) -> None:
    known, text = given_
    found = {mention.subject for mention in Names(known, in_part=True).in_text(text)}
    assert found <= set(perhaps_named(known, [text]))


@settings(max_examples=100, deadline=None)
@given(directories_with_a_text())
def test_no_name_of_the_directory_stands_in_what_pseudonyms_leave(given_: tuple[list[Subject], str]) -> None:
    known, text = given_
    pseudonyms = Pseudonyms(known, bytes(32))
    left = pseudonyms.text(text)
    names_ = Names(known, in_part=True)
    own = [*map(pseudonyms.of, known), "person-unclear"]
    for one in own:
        left = left.replace(one, "\0")
    assert [names_.in_text(piece) for piece in left.split("\0") if names_.in_text(piece)] == []


SYLLABLES = """
ka ro mi lan ter vel sho bin dra gor ne tha uli wen zor pet ham lis ed ja fre ott ba qui sand
"""


def test_ten_thousand_subjects_take_less_than_a_second() -> None:
    draw = random.Random(1)

    def name() -> str:
        return "".join(draw.choice(SYLLABLES.split()) for _ in range(draw.randint(2, 4))).title()

    first, last = [name() for _ in range(1500)], [name() for _ in range(6000)]
    known = [
        Subject("candidate", f"c-{number}", f"{draw.choice(first)} {draw.choice(last)}", (f"p{number}@mail.example",))
        for number in range(10_000)
    ]
    texts = [f"{draw.choice(known).label} could start after two months, said {draw.choice(first)}." for _ in range(10)]
    pseudonyms = Pseudonyms(known, bytes(32))
    began = time.process_time()
    left = pseudonyms.text("\n".join(texts))
    assert time.process_time() - began < 1
    assert left.count("person-") >= 20


@pytest.mark.parametrize("text", ["", "Could start in March.", "候选人昨天来了", "7"])
def test_a_text_that_names_nobody_keeps_few(text: str) -> None:
    assert perhaps_named([Subject("candidate", "c-81", "Zoë Okafor")], [text]) == []
