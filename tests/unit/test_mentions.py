from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core import Subject
from memory_core.labels import label_refusal
from memory_core.rules.mentions import Names
from memory_core.rules.naming import folded

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
letters = st.text(st.characters(categories=("L",)), min_size=1, max_size=12)


def is_long_enough(name: str) -> bool:
    """Say whether a name has as many letters as one must have to be looked for; an apostrophe that is a letter is none."""
    return sum(unicodedata.category(letter) not in ("Lm", "Zs") for letter in folded(name)) >= 4


names = st.lists(letters, min_size=1, max_size=4).map(" ".join).filter(is_long_enough)
latin_names = st.lists(st.text("abcdefghijklmnopqrstuvwxyzéñüøłç", min_size=3, max_size=9), min_size=1, max_size=3)
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


ZOE = candidate("Zoë Okafor")


def whole(text: str, *subjects: Subject) -> list[str]:
    return [mention.name for mention in Names(subjects).in_text(text)]


def found(text: str, *subjects: Subject, also: tuple[str, ...] = ()) -> list[tuple[str, bool]]:
    """Return the names found in part mode, each with whether it is whole."""
    return [(mention.name, mention.whole) for mention in Names(subjects, also=also, in_part=True).in_text(text)]


def in_part(text: str, subject: Subject) -> bool:
    return any(not is_whole for _, is_whole in found(text, subject))


@pytest.mark.parametrize(
    "text",
    [
        "Zoë Okafor called.",
        "We spoke to zoe okafor",
        "ZOË OKAFOR",
        "Zoe\u0308 Okafor",  # NFD
        "Zo\u200bë Oka\u00adfor",  # zero-width space, soft hyphen
        "Zoë\u2060 \u200fOkafor",
        "Ｚｏë Ｏｋａｆｏｒ",  # fullwidth
        "𝐙𝐨𝐞 𝓞𝓴𝓪𝓯𝓸𝓻",
        "Zoë\u00a0Okafor",
        "Zoë\nOkafor",
        "Okafor, Zoë",
        "Okafor Zoë",
        "Zoë M. Okafor",
        "Okafor, Z. Zoë",
        "Zoë Okafor's notice period",
        "Zoë Okafor’s notice period",
        "Zoë Okaforʼs notice period",  # a letter by its category
        "<b>Zoë Okafor</b>",
        "<b>Zoë</b> Okafor",
        "**Zoë** _Okafor_",
        "[Zoë Okafor](https://example.org)",
        "Zo&euml;&nbsp;Okafor",
        "zoe.okafor@mail.example",
        "cv_zoe-okafor_2026.pdf",
    ],
)
def test_a_whole_name_is_found_however_it_is_written(text: str) -> None:
    assert whole(text, ZOE) == ["Zoë Okafor"]


@pytest.mark.parametrize(
    "text",
    ["Zoë", "Okafor", "Zoë Maria Okafor", "Zoë met Mr Okafor", "Zoëlle Okafor", "Zoë Okaforson", "XZoë Okafor", ""],
)
def test_what_is_not_surely_the_whole_name_is_none(text: str) -> None:
    assert whole(text, ZOE) == []


@pytest.mark.parametrize("name", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_names_of_every_script_are_found(name: str) -> None:
    known = [candidate(label, id=f"id-{script}") for script, label in SCRIPTS.items()]
    for form in (name, unicodedata.normalize("NFD", name), " ".join(reversed(name.split())), name.upper()):
        assert whole(f"{form}: two weeks' notice", *known) == [name]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("我们昨天和王小明谈过了", "王小明"),
        ("我们昨天和王小明谈过了", "王 小明"),
        ("山田太郎さんは来週", "山田 太郎"),
        ("山田　太郎さんは来週", "山田太郎"),
        ("김민준은 다음 주에", "김민준"),
        (unicodedata.normalize("NFD", "김민준은 다음 주에"), "김민준"),
        ("ジョン・スミスさん", "ジョンスミス"),
        ("คุณสมชาย ใจดีโทรมา", "สมชาย ใจดี"),
        ("我和Zoë Okafor谈过了", "Zoë Okafor"),
        ("电话：ＡＴＳ－０００４２，明天", "ATS-00042"),
    ],
)
def test_a_script_without_spaces_may_go_on_around_a_name(text: str, name: str) -> None:
    assert whole(text, candidate(name)) == [name]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("小明明天来", "王小明"),
        ("王先生", "王小明"),
        ("山田さん", "山田 太郎"),
        ("太郎さん", "山田太郎"),
        ("민준 씨", "김민준"),
    ],
)
def test_a_part_of_a_name_without_spaces_is_found_in_part(text: str, name: str) -> None:
    assert found(text, candidate(name)) == [(name, False)]
    assert whole(text, candidate(name)) == []


@pytest.mark.parametrize(
    ("text", "name"), [("국민 여러분", "김민준"), ("国王", "王小明"), ("Zoë 和 Okafor", "Zoë Okafor")]
)
def test_a_character_that_a_name_shares_is_not_the_name(text: str, name: str) -> None:
    assert whole(text, candidate(name)) == []


def test_a_syllable_is_not_found_inside_another() -> None:
    assert whole(unicodedata.normalize("NFD", "이순신"), candidate("이수")) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Okafor, Zoë Maria", "Zoë Maria Okafor"),
        ("van der Berg, Jan", "Jan van der Berg"),
        ("Zoë Okafor", "Dr. Zoë Okafor"),
        ("Dr. Zoë Okafor", "Zoë Okafor"),
        ("Zoë Okafor", "Zoë M. Okafor"),
        ("Joerg Mueller", "Jörg Müller"),
        ("Sean OBrien", "Sean O’Brien"),
        ("Sean O'Brien", "Seán O’Brien"),
        ("Anna Müller Lüdenscheid", "Anna Müller-Lüdenscheid"),
        ("'Ali Hassan", "ʿAlī Ḥassan"),
        ("Acme is pleased", "Acme"),
    ],
)
def test_common_ways_to_write_a_name_are_the_whole_name(text: str, name: str) -> None:
    assert whole(text, candidate(name)) == [name]


@pytest.mark.parametrize("label", ["Bo", "Z.", "Li", "A B", "J. S.", "!!!", "😀"])
def test_a_name_of_fewer_than_three_letters_is_nobodys(label: str) -> None:
    assert found("Bo and Z. met Li, A B, J. S. at a station!!! 😀", candidate(label)) == []


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("c-81", True),
        ("C-81.", True),
        ("candidate c-81", True),
        ("(c-81)", True),
        ("c-80/c-81/c-82", True),
        ("candidate:c-81", True),
        ("c-81's notice", True),
        ("c\u201181", True),  # a non-breaking hyphen
        ("c-\u200b81", True),
        ("候选人c-81已", True),
        ("c-811", False),
        ("abc-81", False),
        ("x-c-81", False),
        ("c-81-2", False),
        ("c-81.5", False),
        ("c-81@example.org", False),
        ("c 81", False),
        ("c81", False),
    ],
)
def test_an_id_is_found_as_a_token_of_its_own(text: str, stands: bool) -> None:
    assert whole(text, candidate()) == (["c-81"] if stands else [])


@pytest.mark.parametrize("text", ["c-811", "abc-81", "c-82", "xc81"])
def test_another_id_is_not_found_in_part_either(text: str) -> None:
    assert found(text, candidate()) == []


@pytest.mark.parametrize("text", ["c81", "c 81", "c_81", "c-81-2"])
def test_an_id_written_in_another_way_is_found_in_part(text: str) -> None:
    assert found(text, candidate()) == [("c-81", False)]


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("<zoe@example.org>", True),
        ("mailto:Zoe@Example.org.", True),
        ("zoe@example.org, ida@example.org", True),
        ("ｚｏｅ＠example.org", True),
        ("zoë@example.org", True),
        ("chloe.zoe@example.org", False),
        ("anzoe@example.org", False),
        ("zoe@example.org.uk", False),
        ("zoe@example.organic", False),
        ("zoe at example.org", False),
    ],
)
def test_an_e_mail_is_found_as_a_token_of_its_own(text: str, stands: bool) -> None:
    assert whole(text, candidate(None, "zoe@example.org")) == (["zoe@example.org"] if stands else [])


@pytest.mark.parametrize("id_", ["7", "81", "2026", "75000", "c8"])
def test_a_short_id_or_number_is_found_only_with_the_type_before_it(id_: str) -> None:
    subject = candidate(id=id_)
    assert whole(f"{id_} weeks, {id_} euros", subject) == []
    for text in (f"candidate {id_}", f"Candidate-{id_}", f"candidate #{id_}: yes"):
        assert whole(text, subject) == [id_]
    assert whole(f"candidate {id_}1", subject) == []


def test_a_long_number_is_found_by_itself() -> None:
    assert whole("ticket 4021377 is hers", candidate(id="4021377")) == ["4021377"]
    assert found("ticket 40213 is hers", candidate(id="40213")) == [("40213", False)]


@pytest.mark.parametrize(
    "text",
    [
        "Zoë called",
        "Ms Okafor called",
        "Zoe's notice",
        "Zoes notice",  # German
        "Okafors Kündigungsfrist",
        "Okaforin",  # Finnish
        "Okaforr",  # slips
        "Okafr",
        "Okafur",
        "Okaofr",
        "zoeokafor2026",
        "Zoë Maria Okafor",
        "Okafor-Smith",
    ],
)
def test_a_part_of_a_name_is_found_in_part(text: str) -> None:
    assert found(text, ZOE) == [("Zoë Okafor", False)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("встреча с Королёвой", "Алёна Королёва"),
        ("письмо Анны", "Анна Берг"),
        ("واحمد قال", "أحمد المنصوري"),
        ("للمنصوري", "أحمد المنصوري"),
        ("منصوري", "أحمد المنصوري"),
        ("לנועה", "נועה כהן"),
        ("Lüdenscheid", "Anna Müller-Lüdenscheid"),
        ("OBrien", "Sean O’Brien"),
        ("Mueller", "Jörg Müller"),
        ("Muller", "Joerg Mueller"),
        ("Yıldız'ın", "İpek Yıldız"),
        ("zokafor@mail.example", "zokafor@example.org"),
        ("zoe (at) example.org, zoe", "zoe.berg@example.org"),
    ],
)
def test_parts_are_found_as_other_languages_write_them(text: str, name: str) -> None:
    assert in_part(text, candidate(name))


@pytest.mark.parametrize(
    "text",
    ["Dr", "Mr and Mrs", "van", "the van der case", "bin", "this does", "Ben", "Zo", "Ok", "Okay for now", "zone"],
)
def test_titles_particles_and_other_words_are_no_part_of_a_name(text: str) -> None:
    assert found(text, ZOE, candidate("Dr. Thi van der Laan", "Doe bin Said", id="c-82")) == []


def test_further_names_are_looked_for_as_they_were_typed() -> None:
    assert found("Li called, then 7", candidate(), also=("Li", "7", "", "…")) == [("Li", True), ("7", True)]
    assert found("和王谈", candidate(), also=("王",)) == [("王", True)]
    assert found("Liam", candidate(), also=("Li",)) == []


@pytest.mark.parametrize("subjects", [[], [ZOE, candidate(id="c-82")]])
def test_further_names_are_those_of_one_subject(subjects: list[Subject]) -> None:
    with pytest.raises(ValueError, match="one subject"):
        Names(subjects, also=("Zozo",))


def test_each_name_is_mentioned_once_whole_before_partial_in_the_order_given() -> None:
    zoe = candidate("Zoë Okafor", "zoe  okafor", "Zoë Schmidt", "C-81")
    ida = candidate("Ida Schmidt", id="c-82")
    text = "c-81 is Zoë Okafor, Zoe Okafor, C-81; Ida Schmidt is c-82"
    for _ in range(2):  # the second time, words are known
        assert found(text, zoe, ida) == [
            ("Zoë Okafor", True),
            ("C-81", True),
            ("Ida Schmidt", True),
            ("c-82", True),
            ("Zoë Schmidt", False),
        ]
    assert whole(text, ida, zoe) == ["Ida Schmidt", "c-82", "Zoë Okafor", "C-81"]


def test_two_subjects_of_one_name_are_both_mentioned() -> None:
    twins = [candidate("Jan Berg", id="c-1"), candidate("Jan Berg", id="c-2")]
    assert [mention.subject.id for mention in Names(twins).in_text("Jan Berg")] == ["c-1", "c-2"]


def test_a_subject_given_twice_is_mentioned_once() -> None:
    assert whole("Zoë Okafor", ZOE, ZOE) == ["Zoë Okafor"]


@given(any_text, names, any_text)
@example("&#", "Zoë Okafor", "M")
@example("\u1100", "이수", "\u11ab")
@example("ʼ", "\u0149ab", "")
def test_a_name_put_between_spaces_into_any_text_is_found(before: str, name: str, after: str) -> None:
    assert name in whole(f"{before} {name} {after}", candidate(name, id="x-1"))


@given(any_text, names.filter(lambda name: not label_refusal(name)))
def test_a_name_is_found_in_any_case_composed_or_not_and_folded(around: str, name: str) -> None:
    known = Names([candidate(name, id="x-1")])
    for form in (name.casefold(), unicodedata.normalize("NFD", name), unicodedata.normalize("NFC", name), folded(name)):
        assert any(mention.whole for mention in known.in_text(f"{around} {form} {around}")), form


@given(latin_names.map(" ".join))
def test_a_latin_name_is_found_in_capitals_and_turned_round(name: str) -> None:
    assert name in whole(name.upper(), candidate(name, id="x-1"))
    assert name in whole(", ".join(reversed(name.split())), candidate(name, id="x-1"))


@given(st.from_regex(r"[A-Za-z0-9._:@/+-]{1,20}", fullmatch=True), any_text, any_text)
def test_an_id_between_spaces_is_found_with_its_type(id_: str, before: str, after: str) -> None:
    if folded(id_).replace("@", " ").split():
        assert id_ in whole(f"{before} candidate {id_} {after}", candidate(id=id_))


@given(any_text, st.lists(any_text.filter(lambda name: not label_refusal(name)), max_size=4))
def test_any_text_is_read_and_whole_names_are_among_what_is_found_in_part(text: str, labels: list[str]) -> None:
    subjects = [Subject("candidate", f"c-{number}", label, (label,)) for number, label in enumerate(labels)]
    for read in (text, " ".join([text, *labels])):
        sure = Names(subjects).in_text(read)
        every = Names(subjects, in_part=True).in_text(read)
        assert [mention for mention in every if mention.whole] == list(sure)
        assert len({(mention.subject, mention.name) for mention in every}) == len(every)


@given(st.lists(st.text("bcdfghjklm", min_size=5, max_size=9), min_size=2, max_size=3), st.data())
def test_a_word_of_a_name_with_one_slip_is_found_in_part(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))  # without a vowel, so that no slip makes a common word such as mail
    at = data.draw(st.integers(0, len(word) - 2))
    slips = (word[:at] + "z" + word[at:], word[:at] + word[at + 1 :], word[:at] + "z" + word[at + 1 :])
    for slip in (*slips, word[:at] + word[at + 1] + word[at] + word[at + 2 :]):
        assert found(f"asked {slip} twice", candidate(" ".join(words), id="x-1")), slip
