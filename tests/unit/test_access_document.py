"""The page for the person: every part of Art. 15, and every value shown as itself and as nothing else."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

import pytest
from access_packages import (
    ANSWERED,
    AT,
    a_measure,
    a_memory,
    a_package,
    a_request,
    an_item,
    forgotten,
    shown,
    swept,
)
from hypothesis import given
from hypothesis import strategies as st

from memory_core.access_document import UNANSWERED, document
from memory_core.characters import is_invisible
from memory_core.model import Kind, Origin, Purpose, State, Subject
from memory_core.prompt.block import NO_DECISION_SENTENCE
from memory_core.rights import AccessPackage, MeasureKind, Mention, RequestType, StandingAnswers, Status

TAG_NAMES = """
html head meta title style body header main section h1 h2 p small em b q br ul li dl dt dd
table thead tbody tr th td bdi span
"""
CLASS_NAMES = "lead facts notice figures hidden runs authors measures requests notes"
TAGS = frozenset(TAG_NAMES.split())
VOID = {"meta", "br"}
ATTRIBUTES = {
    ("lang", "en"),
    ("charset", "utf-8"),
    ("http-equiv", "Content-Security-Policy"),
    ("content", "default-src 'none'; style-src 'unsafe-inline'"),
    ("name", "viewport"),
    ("content", "width=device-width,initial-scale=1"),
    ("scope", "col"),
    *(("class", name) for name in CLASS_NAMES.split()),
}
ESCAPE = re.compile("‹U\\+([0-9A-F]{4,6})›")
NASTY = "<>&\"'/=!-[]`abc \t\n\r\v\x7f\x85\u00ad\u0301\u200b\u200d\u202e\u2066\u2069\u2028\ufe0f\ufeff\ue000\U000e0041\u0645"
texts = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\x00")) | st.text(alphabet=NASTY)


class Page(HTMLParser):
    """What a browser makes of a page: its tags, its attributes, its words, and the words of each `<bdi>`."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.open: list[str] = []
        self.words = ""
        self.values: list[str] = []
        self.strange: list[str] = []  # comments, declarations, instructions
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "bdi":
            assert "bdi" not in self.open[:-1]
            self.values.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data
        if "bdi" in self.open:
            self.values[-1] += data

    def handle_comment(self, data: str) -> None:
        self.strange.append(data)

    def handle_pi(self, data: str) -> None:
        self.strange.append(data)


def read(package: AccessPackage) -> Page:
    page = Page(document(package))
    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    assert page.strange == []
    return page


def words(*args: Any, **changed: Any) -> str:
    return read(a_package(*args, **changed)).words


def as_told(value: str) -> str:
    """Read the escapes of a value back."""
    return ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)


ARTICLES = [f"Article 15(1)({letter})" for letter in "abcdefgh"] + ["Article 15(2)", "Article 15(3)"]


def test_every_part_of_the_article_is_answered_in_its_order() -> None:
    told = words(an_item())
    places = [told.index(f" {article}") for article in ARTICLES]
    assert places == sorted(places)
    assert UNANSWERED not in told
    for name in ANSWERED.__dataclass_fields__:
        assert getattr(ANSWERED, name) in told


@pytest.mark.parametrize("name", ANSWERED.__dataclass_fields__)
def test_an_answer_that_is_missing_is_missed_on_top_and_in_its_place(name: str) -> None:
    answers = StandingAnswers(**{other: "given" for other in ANSWERED.__dataclass_fields__ if other != name})
    told = words(an_item(), answers=answers)
    assert told.count(UNANSWERED) == 2
    assert told.index("This answer is not complete") < told.index("In short")


def test_a_package_without_any_answer_or_note_is_still_a_page() -> None:
    told = words(answers=StandingAnswers(), reference=None, law="UK GDPR", subject=Subject("candidate", "c-81"))
    assert told.count(UNANSWERED) == 1 + 9
    assert "Article 15 of the UK GDPR" in told
    assert "We keep no notes about you." in told
    assert "none of these notes has been shown to anybody" in told


@pytest.mark.parametrize(
    "right", ["Rectification", "Erasure", "Restriction", "Objection", "Portability", "complain to the supervisory"]
)
def test_every_right_is_told(right: str) -> None:
    assert right in words()


def test_the_part_a_memory_plays_is_told_word_for_word() -> None:
    assert NO_DECISION_SENTENCE in words(answers=StandingAnswers())


def test_the_figures_say_how_many_notes_there_are_and_of_what_origin() -> None:
    seen = a_memory(disclosures=(shown(), shown("r-814")))
    previewed = a_memory(disclosures=(shown(purpose=Purpose.PREVIEW),), origin=Origin.PERSON, author="user:maria")
    told = words(an_item(seen), an_item(previewed), an_item(), an_item(forgotten()), an_item(swept()))
    for figure in (
        "5 notes in all",
        "1 stated by a person",
        "4 inferred by a model",
        "1 shown to a run of an AI agent",
    ):
        assert figure in told
    assert "2 notes erased or expired" in told


def test_an_inference_is_never_worded_as_a_persons_statement() -> None:
    told = words(an_item()).partition("Shown to")[2]
    assert "Inferred by a model, not confirmed by anybody: agent:screening" in told
    assert "Stated by" not in told


def test_what_a_person_stated_is_told_as_theirs() -> None:
    told = words(an_item(a_memory(origin=Origin.PERSON, author="user:maria", source="message:9")))
    assert "Stated by a person: user:maria" in told
    assert "Source message:9" in told


def test_a_left_out_note_leaves_no_word_of_its_text_and_no_name_of_others() -> None:
    memory = a_memory("Quixotically outshone Bartholomew.", corrected_by="user:x", correction_reason="Quixotically so")
    mention = Mention(subject=Subject("candidate", "c-82"), name="Bartholomew", whole=True)
    item = an_item(memory, mentions=(mention,), left_out="it is about another applicant")
    page = document(a_package(item, measures=(a_measure(memory_id=memory.memory_id, reason="Quixotically so"),)))
    assert not [word for word in ("Quixotically", "outshone", "Bartholomew", "c-82") if word in page]
    assert "Left out to protect the rights of others (Article 15(4)):" in Page(page).words
    assert "it is about another applicant" in Page(page).values


def test_emptied_notes_are_listed_without_a_text() -> None:
    told = words(an_item(forgotten()), an_item(swept()))
    assert "Erased on 30 Oct 2026, 09:30; the text is gone." in told
    assert "Expired and emptied on 31 Oct 2026, 09:30; the text is gone." in told
    assert "Only the record, until 30 Oct 2027, 09:30" in told


def test_other_people_and_the_organisations_own_remarks_are_not_told() -> None:
    package = a_package(
        an_item(forgotten(hold="Okafor v. Acme")),
        measures=(a_measure(MeasureKind.HOLD, reason="we expect a claim", by="user:legal"),),
        requests=(a_request(),),
        by="user:dpo",
    )
    page = document(package)
    kept_back = ("Okafor v. Acme", "we expect", "user:legal", "user:ines", "c-82", "internal remark")
    assert not [told for told in kept_back if told in page]


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({}, "Until 31 Jan 2027, 09:30"),
        ({"hold": "matter"}, "Until the legal hold is lifted; at least until 31 Jan 2027, 09:30"),
        (
            {"restricted_at": AT, "state": State.RESTRICTED},
            "Until the restriction is lifted; at least until 31 Jan 2027",
        ),
        (
            {"restricted_at": AT, "hold": "matter", "expires_at": AT},
            "Until the restriction and the legal hold are lifted",
        ),
        ({"expires_at": AT, "state": State.EXPIRED}, "Until 2 Nov 2026, 09:30; it goes with the next clean-up"),
    ],
)
def test_each_note_says_how_long_it_is_kept(changed: dict[str, Any], kept: str) -> None:
    assert kept in words(an_item(a_memory(**changed)))


def test_each_note_says_to_whom_it_was_shown() -> None:
    told = words(an_item(a_memory(disclosures=(shown("r-813"), shown("r-9", purpose=Purpose.PREVIEW)))))
    assert "Run r-813, 2 Nov 2026, 10:30" in told
    assert "Preview r-9, 2 Nov 2026, 10:30" in told
    assert "Preview by a person r-9" in told


def test_a_dispute_and_a_correction_stand_beside_the_note() -> None:
    old = a_memory(dispute="I never said so.", disputed_at=AT, dispute_withdrawn_at=AT + timedelta(days=1))
    new = a_memory(
        memory_id=UUID(int=2), supersedes=UUID(int=1), corrected_by="user:maria", correction_reason="she sent a proof"
    )
    told = words(an_item(new), an_item(old))
    assert "A correction: replaces note 2, by user:maria, because she sent a proof." in told
    assert "Replaced by note 1." in told
    assert "You disputed this on 2 Nov 2026, 09:30, withdrawn on 3 Nov 2026, 09:30: I never said so." in told


def test_operational_notes_and_notes_kept_as_numbers_are_told() -> None:
    told = words(an_item(a_memory(kind=Kind.FACT, embedding_model="minilm")))
    assert "Operational, not about a person." in told
    assert "For 1 note the software also keeps numbers" in told


def test_measures_and_earlier_requests_are_told() -> None:
    earlier = a_request("R-2026-0000", type=RequestType.OBJECTION, status=Status.ANSWERED, closed_at=AT)
    measures = (a_measure(MeasureKind.SUPPRESSION, request_reference="R-2026-0000"), a_measure(lifted_at=AT))
    told = words(measures=measures, requests=(a_request(), earlier))
    assert "Objection: nothing new may be noted (Article 21)" in told
    assert "It stands until it is lifted" in told
    assert "Request R-2026-0000" in told
    assert "Answered here" in told


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "</style><style>*{display:none}</style>",
        "</bdi></td></tr></table><h1>Everything is erased</h1>",
        "<!-- --><img src=x onerror=alert(1)>",
        "&lt;b&gt; &amp;amp; &#x202e;",
        '=HYPERLINK("https://evil.example","open")',
        "[a](javascript:alert(1)) **b** $c$",
        "two\nlines\tand a tab",
    ],
)
def test_markup_in_a_note_is_shown_as_itself(text: str) -> None:
    assert text in read(a_package(an_item(a_memory(text)))).values


def test_nothing_is_loaded_from_elsewhere_and_nothing_runs() -> None:
    page = document(a_package(an_item()))
    calls = ("<script", "http:", "https:", "//", "url(", "@import", "src=", "href=")
    assert not [call for call in calls if call in page]
    assert "default-src 'none'; style-src 'unsafe-inline'" in page


@pytest.mark.parametrize(
    "hidden", "\u202e\u2066\u2069\u200f\u200b\u00ad\ufeff\ufe0f\x85\x1b\u2028\ue000\U000e0041\u034f"
)
def test_what_cannot_be_seen_is_written_out_wherever_it_stands(hidden: str) -> None:
    subject = Subject("candidate", "c-81", label=f"Zoë{hidden}Okafor", aliases=(f"{hidden}zoe",))
    package = a_package(
        an_item(a_memory(f"an{hidden}note", dispute=f"a{hidden}b")),
        an_item(a_memory(f"gone{hidden}"), left_out=f"for{hidden}others"),
        subject=subject,
        answers=StandingAnswers(purposes=f"to{hidden}plan"),
        measures=(a_measure(reason=f"un{hidden}til"),),
    )
    assert hidden not in document(package)
    written = f"‹U+{ord(hidden):04X}›"
    for told in (f"Zoë{written}Okafor", f"{written}zoe", f"an{written}note", f"for{written}others", f"to{written}plan"):
        assert told in read(package).values


def test_joiners_stay_where_a_script_spells_with_them() -> None:
    assert "می\u200cخواهد" in read(a_package(an_item(a_memory("می\u200cخواهد")))).values


def test_a_mark_is_not_drawn_onto_what_stands_before_the_value() -> None:
    assert "‹U+0338›no" in read(a_package(an_item(a_memory("\u0338no")))).values


@given(text=texts, reason=texts, answer=texts)
def test_whatever_a_value_holds_the_page_keeps_its_shape_and_the_value_its_words(
    text: str, reason: str, answer: str
) -> None:
    items = (an_item(a_memory(text, dispute=text)), an_item(left_out=reason))
    page = read(a_package(*items, answers=StandingAnswers(purposes=answer), measures=(a_measure(reason=reason),)))
    for given_value in (text, reason, answer or "c-81"):
        value = given_value.replace("\r\n", "\n")
        if not ESCAPE.search(value):
            assert value in map(as_told, page.values)
    spelled = "\n\t\u200c\u200d"
    assert not [one for one in "".join(page.values) if is_invisible(one) and one not in spelled]
