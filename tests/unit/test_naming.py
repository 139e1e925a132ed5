from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_core import Subject
from memory_core.labels import label_refusal
from memory_core.rules.naming import folded, matches

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
LATIN = "abcdefghijklmnopqrstuvwxyz"
CYRILLIC = "абвгдежзиклмнопрстуфхцчшщыэюя"
words = st.text(LATIN, min_size=5, max_size=12) | st.text(CYRILLIC, min_size=5, max_size=12)
names = st.lists(words, min_size=2, max_size=4).map(" ".join)
SCRIPTS = {
    "Arabic": "أحمد المنصوري",
    "Cyrillic": "Алёна Королёва",
    "Chinese": "王小明",
    "Hindi": "सुनीता शर्मा",
    "Thai": "สมชาย ใจดี",
    "Korean": "김민준",
    "Japanese": "山田 太郎",
    "Greek": "Γιώργος Παπαδόπουλος",
    "Hebrew": "נועה כהן",
    "Tamil": "கார்த்திக் ராஜா",
    "Vietnamese": "Nguyễn Thị Hương",
    "Turkish": "İpek Yıldız",
    "Polish": "Łukasz Żółć",
}


def candidate(label: str | None = None, *aliases: str, id: str = "c-81") -> Subject:  # noqa: A002 (the field's own name)
    return Subject("candidate", id, label, aliases)


def found(typed: str, *subjects: Subject) -> list[tuple[str, str]]:
    return [(match.subject.id, match.by) for match in matches(typed, subjects)]


def finds(typed: str, name: str) -> bool:
    return bool(found(typed, candidate(name, id="x-1"))) and bool(found(typed, candidate(None, name, id="x-1")))


@pytest.mark.parametrize("typed", ["zoë müller", "ZOË MÜLLER", "zOë mÜLLER"])
def test_a_name_is_found_in_any_case(typed: str) -> None:
    assert found(typed, candidate("Zoë Müller")) == [("c-81", "name")]


@pytest.mark.parametrize("typed", ["Zoe Muller", "Zoe\u0308 Mu\u0308ller", "Zöe Mūller"])
def test_a_name_is_found_without_its_accents_or_with_others(typed: str) -> None:
    assert found(typed, candidate("Zoë Müller")) == [("c-81", "name")]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Lukasz", "Łukasz"),
        ("Soren", "Søren"),
        ("Thorbjorn", "Þorbjørn"),
        ("Ipek Yildiz", "İpek Yıldız"),
        ("Strasse", "Straße"),
        ("STRASSE", "straße"),
        ("Dordevic", "Đorđević"),
    ],
)
def test_letters_that_have_no_accent_but_a_stroke_are_found_as_most_people_type_them(typed: str, name: str) -> None:
    assert finds(typed, name)


@pytest.mark.parametrize("typed", ["Müller Zoë", "Müller, Zoë", "zoe  muller", " Zoë\tMüller "])
def test_the_order_of_a_name_and_the_space_in_it_do_not_matter(typed: str) -> None:
    assert found(typed, candidate("Zoë Müller")) == [("c-81", "name")]


@pytest.mark.parametrize("typed", ["Zo", "zoë", "Mül", "muller"])
def test_a_name_is_found_while_it_is_typed(typed: str) -> None:
    assert found(typed, candidate("Zoë Müller")) == [("c-81", "name")]


@pytest.mark.parametrize(
    "typed",
    [
        "Caroline Janssen",  # a letter too much
        "Carolne Jansen",  # one missing
        "Carolina Jansen",  # one wrong
        "Carloine Jansen",  # two swapped
        "Caroline Jasnen",
        "Jasnen",
    ],
)
def test_one_typo_is_tolerated(typed: str) -> None:
    assert finds(typed, "Caroline Jansen")


@pytest.mark.parametrize(("typed", "name"), [("Anan", "Anna"), ("Jhon", "John"), ("Lias", "Lisa"), ("Emna", "Emma")])
def test_one_typo_is_tolerated_in_a_name_of_four_letters(typed: str, name: str) -> None:
    assert finds(typed, name)


@pytest.mark.parametrize(("typed", "name"), [("Mark", "Eric"), ("Li", "Wu"), ("Jan", "Ben"), ("Caroline", "Christine")])
def test_another_name_is_not_taken_for_a_typo(typed: str, name: str) -> None:
    assert not finds(typed, name)


@settings(deadline=None)
@given(names, st.data())
def test_a_name_with_any_one_slip_in_it_is_found(name: str, data: st.DataObject) -> None:
    typed = name.split()
    which = data.draw(st.integers(0, len(typed) - 1))
    word = typed[which]
    at = data.draw(st.integers(0, len(word) - 2))
    letter = data.draw(st.sampled_from(CYRILLIC if word[0] in CYRILLIC else LATIN))
    slips = (
        word[:at] + letter + word[at:],
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    )
    typed[which] = data.draw(st.sampled_from(slips))
    assert finds(" ".join(typed), name)


@given(names, st.randoms(use_true_random=False))
def test_a_name_is_found_in_any_order_and_case(name: str, shuffle: object) -> None:
    typed = name.split()
    shuffle.shuffle(typed)  # type: ignore[attr-defined]
    assert found(" ".join(typed).upper(), candidate(name, id="x-1")) == [("x-1", "name")]
    assert found(" ".join(typed).title(), candidate(name, id="x-1")) == [("x-1", "name")]


@pytest.mark.parametrize("name", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_names_of_every_script_are_found(name: str) -> None:
    others = [candidate(other, id=script) for script, other in SCRIPTS.items() if other != name]
    assert found(name, candidate(name), *others) == [("c-81", "name")]
    assert found(unicodedata.normalize("NFD", name), candidate(name), *others) == [("c-81", "name")]
    assert found(" ".join(reversed(name.split())), candidate(name), *others) == [("c-81", "name")]
    for part in name.split():
        assert ("c-81", "name") in found(part, candidate(name), *others)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("احمد المنصوري", "أحمد المنصوري"),  # without the hamza
        ("أَحْمَد", "أحمد المنصوري"),  # with vowel marks
        ("АЛЕНА КОРОЛЕВА", "Алёна Королёва"),
        ("小明", "王小明"),  # no space between the names
        ("王小", "王小明"),
        ("ＺＯＥ", "Zoë"),  # fullwidth
        ("ΠΑΠΑΔΟΠΟΥΛΟΣ", "Γιώργος Παπαδόπουλος"),  # final sigma
        ("nguyen thi huong", "Nguyễn Thị Hương"),
    ],
)
def test_names_are_found_as_people_type_their_script(typed: str, name: str) -> None:
    assert finds(typed, name)


def test_a_name_in_styled_letters_is_found_by_plain_ones() -> None:
    assert folded("𝐀𝐧𝐧𝐚 𝓜üller") == "anna muller"
    assert finds("Anna", "𝐀𝐧𝐧𝐚")


def test_an_alias_is_found_like_the_label() -> None:
    subject = candidate("Zoë Müller", "Zoë Schmidt", "zoe@example.org", "ATS-0042")
    for typed in ("schmidt", "zoe@example.org", "ats-0042", "ATS 0042"):
        assert found(typed, subject, candidate("Ida Berg", id="c-1")) == [("c-81", "name")]


@pytest.mark.parametrize("typed", ["ines@example.org", "Ines@Example.org", " ines@example.org ", "ines@"])
def test_an_e_mail_is_found(typed: str) -> None:
    others = candidate("Ines Berg", "i.berg@example.org", id="c-1"), candidate("Other", "ivan@example.org", id="c-2")
    assert found(typed, candidate("Ida", "ines@example.org"), *others)[0] == ("c-81", "name")


def test_an_exact_id_comes_first_whatever_others_are_called() -> None:
    called_like_it = candidate("c-8", "C-8", id="c-7")
    subjects = [candidate("Zoë", id="c-81"), called_like_it, candidate("Ida", id="c-8"), candidate(id="C-8")]
    assert found("c-8", *subjects)[:3] == [("c-8", "id"), ("C-8", "id"), ("c-7", "name")]
    assert found("candidate c-8", *subjects)[0] == ("c-8", "id")


def test_an_id_is_found_in_another_case_and_by_a_fragment() -> None:
    subject = candidate("Zoë", id="ATS-0042")
    for typed in ("ats-0042", "ATS-0042", "0042", "ts-00", "Candidate ats-0042"):
        assert found(typed, subject) == [("ATS-0042", "id")], typed


def test_names_come_before_fragments_of_an_id() -> None:
    assert found("ann", candidate("Ida", id="ann-1"), candidate("Ann Lee", id="c-2")) == [
        ("c-2", "name"),
        ("ann-1", "id"),
    ]


@pytest.mark.parametrize(
    "typed", ["", " ", "\n\t", "%", "_", "%%", "c%", "c_81", "c-8_", ".*", "\\", "'", "\u200b", "\x00"]
)
def test_what_is_blank_or_only_a_pattern_finds_nobody(typed: str) -> None:
    assert found(typed, candidate("Zoë Müller", "zoe@example.org")) == []


@pytest.mark.parametrize("label", ["!!!", "…", "-", "😀"])
def test_a_name_without_letters_is_nobodys_likeness(label: str) -> None:
    assert found("Zoë", candidate(label)) == []


def test_the_best_answer_comes_first_and_equal_ones_stand_in_a_fixed_order() -> None:
    subjects = [candidate("Jan Berg", id="c-3"), candidate("Jana Berg", id="c-1"), candidate("Jan Berg", id="c-2")]
    assert found("Jan Berg", *subjects) == [("c-2", "name"), ("c-3", "name"), ("c-1", "name")]
    assert found("Jan Berg", *reversed(subjects)) == [("c-2", "name"), ("c-3", "name"), ("c-1", "name")]


@given(any_text)
@example("𝐀ℋ№")
def test_folding_twice_changes_nothing(name: str) -> None:
    assert folded(folded(name)) == folded(name)


@settings(deadline=None)
@given(any_text, st.lists(st.text(min_size=1, max_size=30).filter(str.strip), max_size=5))
def test_whatever_is_typed_is_answered_with_each_subject_once_and_best_first(typed: str, labels: list[str]) -> None:
    subjects = [
        Subject("candidate", f"c-{number}", label) for number, label in enumerate(labels) if not label_refusal(label)
    ]
    answer = matches(typed, subjects)
    scores = [match.score for match in answer]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 100 for score in scores)
    assert len({match.subject.id for match in answer}) == len(answer)


@given(st.text(st.characters(categories=("L",)), min_size=1, max_size=20))
def test_a_name_typed_exactly_is_always_found(name: str) -> None:
    if folded(name):
        assert found(name, candidate(name, id="x-1")) == [("x-1", "name")]
