"""Persons under pseudonyms: what is replaced, what stays, and that one session's are its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from access_packages import a_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import Kind, Origin, RecallMode, Subject
from memory_core.model import Memory
from memory_core.prompt.block import rebuilt_block
from memory_core.prompt.pseudonyms import UNCLEAR, Pseudonyms

KEY = bytes(range(32))


def candidate(id_: str, label: str | None = None, *aliases: str) -> Subject:
    return Subject("candidate", id_, label, aliases)


ZOE, BEN = candidate("c-81", "Zoë Okafor", "zoe@mail.example"), candidate("c-82", "Ben Okafor")
WANG, LI, SEVEN = candidate("c-83", "王小明"), candidate("c-84", "Li Na"), candidate("7", "Ludwig van Beethoven")
MUELLER, BRIEN = candidate("c-86", "Jürgen Müller"), candidate("c-88", "Sean O'Brien")
EVERYBODY = [ZOE, BEN, WANG, LI, SEVEN, MUELLER, BRIEN]
OURS = Pseudonyms(EVERYBODY, KEY)
Z, B, W, L, S, M, O = map(OURS.of, EVERYBODY)  # noqa: E741


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zoë Okafor said yes.", f"{Z} said yes."),
        ("Yes, said (Okafor, Zoë).", f"Yes, said ({Z})."),
        ("ZOE OKAFOR's notice", f"{Z}'s notice"),
        ("Zoë M. Okafor; Ben Okafor", f"{Z}; {B}"),
        ("Zoë Okafor Ben Okafor", f"{Z} {B}"),
        ("Zoë, Zoë, Zoë", Z),
        ("Okafor called.", f"{UNCLEAR} called."),
        ("Write to zoe@mail.example, or c-82!", f"Write to {Z}, or {B}!"),
        ("see cv_zoe-okafor_2026.pdf", f"see {Z}"),
        ("<b>Zo&euml;</b> &amp; Ben", f"<{Z}> &amp; {B}"),
        ("Okafro, Zoë came", f"{Z} came"),  # a slip
        ("我们昨天和王小明谈过了。好", f"{W}。好"),
        ("请联系小明，谢谢", f"{W}，谢谢"),
        ("Li Na met candidate 7\nand Na Li", f"{L} met {S}\nand {L}"),
        ("Li met Na", "Li met Na"),
        ("Ludwig van Beethoven plays", f"{S} plays"),
        ("MUELLER, Jürgen", M),
        ("Mr Sean OBrien", f"Mr {O}"),
        ("Could start in March.", "Could start in March."),
        ("", ""),
    ],
)
def test_a_pseudonym_stands_for_each_run_of_words_that_names_somebody(text: str, shown: str) -> None:
    assert OURS.text(text) == shown


def test_of_several_who_may_be_meant_it_is_whom_the_text_is_about() -> None:
    assert OURS.text("Okafor called.", about=BEN) == f"{B} called."
    assert OURS.text("Zoë Okafor called.", about=BEN) == f"{Z} called."
    assert OURS.text("Jürgen called.", about=BEN) == f"{M} called."


def test_a_pseudonym_says_nothing_and_is_the_sessions_own() -> None:
    assert all(re.fullmatch(r"person-[0-9a-f]{8}", OURS.of(one)) for one in EVERYBODY)
    assert len({OURS.of(one) for one in EVERYBODY}) == len(EVERYBODY)
    again, other = Pseudonyms([ZOE], KEY), Pseudonyms(EVERYBODY, bytes(32))
    assert again.of(candidate("c-81")) == Z != other.of(ZOE)
    assert other.text("Zoë Okafor") == other.of(ZOE)


keys = st.binary(min_size=16, max_size=32)


@settings(deadline=None)
@given(keys, keys, st.permutations(EVERYBODY), st.integers(0, len(EVERYBODY)))
def test_one_key_gives_one_pseudonym_whoever_else_is_known_and_another_key_another(
    key: bytes, other: bytes, known: list[Subject], some: int
) -> None:
    ours = [Pseudonyms(known[:some], key).of(one) for one in EVERYBODY]
    assert ours == [Pseudonyms(EVERYBODY, key).of(one) for one in EVERYBODY]
    theirs = [Pseudonyms(EVERYBODY, other).of(one) for one in EVERYBODY]
    assert (ours == theirs) is (key == other or _same(key, other))


def _same(key: bytes, other: bytes) -> bool:
    return key.ljust(64, b"\0") == other.ljust(64, b"\0")  # to HMAC, a key is the same with zeros after it


@pytest.mark.parametrize("key", [b"", bytes(15)])
def test_a_key_that_could_be_guessed_is_no_key(key: bytes) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Pseudonyms(EVERYBODY, key)


@settings(deadline=None)
@given(keys, st.text(st.characters(exclude_categories=("Cs",)), max_size=80))
def test_a_text_about_nobody_stays_as_it_is(key: bytes, text: str) -> None:
    assert Pseudonyms([], key).text(text) == text


# Memories


def seen(**changed: Any) -> Memory:
    (one,) = OURS.memories([a_memory(**changed)])
    return one


def test_a_memory_has_a_pseudonym_for_its_subject_its_words_and_no_source() -> None:
    one = seen(
        text="Zoë could start in May, says Ben Okafor.",
        subject=ZOE,
        source="mail-81,zoe@mail.example",
        dispute="I, Zoë Okafor, never said so.",
        disputed_at=a_memory().created_at,
        correction_reason="Okafor asked",
        forgotten_reason="Ben Okafor asked",
    )
    assert one.subject == Subject("candidate", Z)
    assert (one.subject.label, one.subject.aliases, one.source) == (None, (), None)
    assert one.text == f"{Z} could start in May, says {B}."
    assert one.dispute == f"I, {Z}, never said so."
    assert (one.correction_reason, one.forgotten_reason) == (f"{Z} asked", f"{B} asked")
    assert (one.memory_id, one.created_at, one.state) == (a_memory().memory_id, a_memory().created_at, a_memory().state)


def test_what_is_about_no_person_keeps_its_subject_and_loses_names() -> None:
    job = Subject("job", "j-3", "Office manager")
    one = seen(kind=Kind.FACT, subject=job, text="Ben Okafor leads the panel for the office manager.")
    assert (one.subject, one.text) == (job, f"{B} leads the panel for the office manager.")
    assert seen(kind=Kind.FACT, subject=None, text="Panels need two weeks.").subject is None


def test_somebody_whom_no_directory_knows_has_one_too() -> None:
    one = seen(subject=Subject("prospect", "p-5"), text="p-5 prefers mornings, P-5 said.")
    whom = OURS.of(Subject("prospect", "p-5"))
    assert (one.subject, one.text) == (Subject("prospect", whom), f"{whom} prefers mornings, {whom} said.")


def test_an_identifier_with_a_whole_name_or_id_in_it_keeps_its_kind_only() -> None:
    one = seen(author="user:zoe.okafor", origin=Origin.PERSON, run_id="screening-c-82", last_seen_run_id="r-812")
    assert (one.author, one.run_id, one.last_seen_run_id) == (f"user:{Z}", B, "r-812")
    kept = seen(author="user:ben", run_id="r-9", hold="case-2026-114")
    assert (kept.author, kept.run_id, kept.hold) == ("user:ben", "r-9", "case-2026-114")  # a part of a name is no one


def test_a_block_of_such_memories_can_be_written_and_has_no_real_name() -> None:
    memories = [
        a_memory("Zoë Okafor could start in May.", subject=ZOE, author="agent:screening", source="zoe-okafor"),
        a_memory("Met 王小明 & Li Na.", subject=BEN, author="user:zoe.okafor", origin=Origin.PERSON),
    ]
    block = rebuilt_block(
        OURS.memories(memories), boundary="9f2c61d0", mode=RecallMode.SEMANTIC, reason=None, omitted=1
    )
    assert 'boundary="9f2c61d0" count="2" mode="semantic" omitted="1"' in block.text
    assert f"about candidate {Z}" in block.text
    for name in ("Zoë", "Okafor", "王", "Li Na", "c-81", "c-82", "zoe"):
        assert name not in block.text


def test_what_is_gone_stays_gone_and_nothing_to_show_is_nothing() -> None:
    gone = replace(a_memory(None), forgotten_at=a_memory().created_at, forgotten_by="user:ines")
    assert OURS.memories([gone])[0].text is None
    assert OURS.memories([]) == []


def without_s(texts: Sequence[str]) -> list[frozenset[str]]:
    """Stand for the stems of a search: each word in lower case, without an s at its end."""
    return [frozenset(word.lower().removesuffix("s") for word in re.findall(r"\w+", text)) for text in texts]


def asked(text: str) -> str:
    return OURS.question(text, stems=without_s)


def test_a_question_finds_persons_by_their_pseudonyms_and_nobody_by_a_name() -> None:
    assert asked(f"when can {Z} start?") == "when can Zoë Okafor start?"
    assert asked("when can Zoë Okafor start?").split() == ["when", "can", "start?"]
    assert asked(f"{Z} or Ben, c-83, zoe@mail.example").split() == ["Zoë", "Okafor", "or", ",", ","]
    assert asked("is person-00000000 there?") == "is  there?"
    assert asked("") == ""
    assert asked("Zoë Okafor") == UNCLEAR  # nothing is left to ask


@pytest.mark.parametrize("word", ["Li", "li", "OKAFORS", "okafors", "van", "81", "7", "muller", "Müllers"])
def test_no_word_of_a_name_is_searched_for_however_short_or_with_an_ending(word: str) -> None:
    assert word not in asked(f"when does {word} begin")


@pytest.mark.parametrize("text", ["Could it begin in March?", "which panel has room", "谁有时间", ""])
def test_a_question_without_a_name_stays_as_it_is(text: str) -> None:
    assert asked(text) == text


@given(st.text(max_size=60), st.sampled_from(["Zoë", "Okafor", "c-82", "王小明", "Müller", "zoe@mail.example"]))
@settings(deadline=None)
def test_no_name_stays_in_a_question(text: str, name: str) -> None:
    question = asked(f"{text} {name} ")
    assert OURS.text(question) == question


def test_an_identifier_with_anything_of_a_name_in_it_says_so_and_not_whose() -> None:
    ids = ["r-812", "screening-c-81", "screening-okafor-1", "zoe-screen", "run:zoe_okafor", "agent:scheduling"]
    assert OURS.names_in(ids) == [None, UNCLEAR, UNCLEAR, UNCLEAR, UNCLEAR, None]
    assert OURS.names_in([]) == []


def test_what_whoever_sees_it_may_have_written_does_not_say_whose_name_it_was() -> None:
    assert OURS.hidden("Zoë Okafor; Li Na; c-82") == f"{UNCLEAR}; {UNCLEAR}; {UNCLEAR}"
    assert OURS.hidden("a complaint") == "a complaint"


SHORT = {"Bo Li": "Li prefers tea; Bo said so. Li's partner called.", "Priya Das": "Ms Das prefers tea, DAS said."}
SHORT |= {"Nguyễn Văn An": "Văn was late. An, too.", "Ines Dés": "Dés agreed."}
SHORT |= {"Wu": "Wu prefers tea.", "An Vo": "An could start in May. Vo agreed.", "Li-Wei Ng": "Ng said Li would."}


@pytest.mark.parametrize("label", SHORT)
def test_a_part_of_a_name_that_is_too_short_to_be_looked_for_is_replaced_where_it_is_about_that_person(
    label: str,
) -> None:
    person = candidate("c-90", label)
    pseudonyms = Pseudonyms([*EVERYBODY, person], KEY)
    memory = a_memory(text=SHORT[label], subject=person)
    (seen,) = pseudonyms.memories([memory])
    assert seen.text is not None
    assert not set(re.findall(r"\w+", label)) & set(re.findall(r"\w+", seen.text.title()))
    assert pseudonyms.of(person) in seen.text
    (small,) = pseudonyms.memories([replace(memory, text="das Haus, an der Ecke, li")])
    assert small.text == "das Haus, an der Ecke, li"


def test_an_id_that_is_nobodys_and_names_somebody_does_not() -> None:
    memory = a_memory(text="Meets on Monday.", kind=Kind.FACT, subject=Subject("application", "zoe-okafor-for-j-3"))
    (seen,) = OURS.memories([memory])
    assert seen.subject == Subject("application", Z)


def test_somebody_is_found_by_their_pseudonym() -> None:
    assert OURS.person(Subject("candidate", Z)) == ZOE
    assert OURS.person(Subject("job", Z)) is None
    assert OURS.person(ZOE) is None
    assert OURS.knows(Subject("candidate", "c-81"))
    assert not OURS.knows(Subject("candidate", "c-99"))
