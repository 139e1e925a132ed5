"""The answer for programs: every part of Art. 15, and no word that is not to be handed out."""

from __future__ import annotations

import json
from datetime import timedelta
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

from memory_core.access_json import FORMAT, VERSION, machine_readable
from memory_core.model import Origin, Purpose, State, Subject
from memory_core.rights import MeasureKind, Mention, RequestType, StandingAnswers, Status

STANDING = {
    "purposes": ("15(1)(a)", ANSWERED.purposes),
    "categories": ("15(1)(b)", ANSWERED.categories),
    "recipients": ("15(1)(c)", ANSWERED.recipients),
    "storage_period": ("15(1)(d)", ANSWERED.retention),
    "complaint": ("15(1)(f)", ANSWERED.authority),
    "automated_decisions": ("15(1)(h)", ANSWERED.automated_decisions),
    "transfers": ("15(2)", ANSWERED.transfers),
}


def only_item(*args: Any, **changed: Any) -> dict[str, Any]:
    (item,) = machine_readable(a_package(an_item(*args, **changed)))["items"]
    return dict(item)


@pytest.mark.parametrize("part", STANDING)
def test_each_part_of_the_article_has_its_standing_answer(part: str) -> None:
    article, answer = STANDING[part]
    said = machine_readable(a_package())[part]
    assert (said["article"], said["answered"], said["answer"]) == (article, True, answer)


@pytest.mark.parametrize("part", STANDING)
@pytest.mark.parametrize("nothing", [None, ""])
def test_a_part_without_an_answer_says_so(part: str, nothing: str | None) -> None:
    answers = StandingAnswers(**dict.fromkeys(("purposes", "authority"), nothing))
    said = machine_readable(a_package(answers=answers))
    assert (said[part]["answered"], said[part]["answer"]) == (False, None)
    assert said["unanswered"] == list(answers.unanswered)


def test_the_answer_names_its_format_the_law_who_answers_whom_and_when() -> None:
    said = machine_readable(a_package(law="UK GDPR"))
    assert (said["format"], said["version"], said["law"]) == (FORMAT, VERSION, "UK GDPR")
    assert said["organisation"] == {
        "id": "acme",
        "controller": ANSWERED.controller,
        "data_protection_officer": ANSWERED.officer,
    }
    assert said["subject"]["label"] == "Zoë Okafor"
    assert said["subject"]["aliases"] == ["Z. Okafor", "zoe@mail.example"]
    assert (said["made_at"], said["made_by"]) == ("2026-11-02T09:30:00+00:00", "user:ines")
    assert said["request"] == "R-2026-0001"


def test_every_right_is_told_with_its_article() -> None:
    rights = machine_readable(a_package())["rights"]
    told = {right["right"]: right["article"] for right in rights["answer"]}
    assert rights["article"] == "15(1)(e)"
    assert told == {"rectification": "16", "erasure": "17", "restriction": "18", "objection": "21", "portability": "20"}


def test_an_item_says_where_it_comes_from_and_how_long_it_is_kept() -> None:
    item = only_item(a_memory(source="message:9", last_seen_at=AT + timedelta(days=1), last_seen_run_id="r-820"))
    assert item["text"] == "Could start after a two-month notice period."
    assert item["without_text"] is None
    assert (item["author"], item["run"], item["source"]) == ("agent:screening", "r-812", "message:9")
    assert (item["written"], item["last_seen"]) == ("2026-11-02T09:30:00+00:00", "2026-11-03T09:30:00+00:00")
    assert item["storage_period"] == {
        "kept": "note",
        "until": "2027-01-31T09:30:00+00:00",
        "until_lifted": [],
        "statement": "until the date",
    }


@pytest.mark.parametrize("corrected_by", [None, "user:ines"])
def test_an_inference_is_never_worded_as_a_persons_statement(corrected_by: str | None) -> None:
    inferred = only_item(a_memory(origin=Origin.INFERENCE, corrected_by=corrected_by))
    assert inferred["origin"] == "inference"
    assert inferred["origin_statement"].startswith("inferred by a model")
    assert "stated" not in inferred["origin_statement"]


def test_what_a_person_stated_is_not_called_inferred() -> None:
    stated = only_item(a_memory(origin=Origin.PERSON, author="user:maria"))
    assert (stated["origin"], stated["origin_statement"]) == ("person", "stated by a person")


@pytest.mark.parametrize(
    ("changed", "lifted"),
    [
        ({"hold": "Okafor v. Acme"}, ["hold"]),
        ({"restricted_at": AT, "state": State.RESTRICTED}, ["restriction"]),
        ({"restricted_at": AT, "state": State.RESTRICTED, "hold": "Okafor v. Acme"}, ["restriction", "hold"]),
    ],
)
def test_what_is_restricted_or_on_hold_stays_until_that_is_lifted(changed: dict[str, Any], lifted: list[str]) -> None:
    period = only_item(a_memory(**changed))["storage_period"]
    assert period["until_lifted"] == lifted
    assert period["statement"].startswith(f"until the {' and the '.join(lifted)} ")
    assert period["statement"].endswith(", and at least until the date")


@pytest.mark.parametrize(
    ("measure", "lifted"),
    [
        (a_measure(), ["restriction"]),
        (a_measure(MeasureKind.HOLD, memory_id=UUID(int=1)), ["hold"]),
        (a_measure(MeasureKind.HOLD, memory_id=UUID(int=2)), []),
        (a_measure(MeasureKind.HOLD, lifted_at=AT), []),
        (a_measure(MeasureKind.SUPPRESSION), []),
    ],
)
def test_a_standing_measure_keeps_what_it_is_about(measure: Any, lifted: list[str]) -> None:
    (item,) = machine_readable(a_package(an_item(), measures=(measure,)))["items"]
    assert item["storage_period"]["until_lifted"] == lifted


def test_an_expired_item_waits_for_the_sweep() -> None:
    period = only_item(a_memory(expires_at=AT, state=State.EXPIRED))["storage_period"]
    assert period["statement"] == "its date has passed; the next sweep empties it"


@pytest.mark.parametrize(("memory", "because"), [(forgotten(), "erased"), (swept(), "expired")])
def test_a_tombstone_says_when_it_was_emptied_and_how_long_the_record_stays(memory: Any, because: str) -> None:
    emptied_at = memory.forgotten_at or memory.swept_at
    item = only_item(memory)
    assert item["text"] is None
    assert item["without_text"] == {"because": because, "at": emptied_at.isoformat()}
    assert item["storage_period"]["kept"] == "record"
    assert item["storage_period"]["until"] == (emptied_at + timedelta(days=365)).isoformat()


def test_a_left_out_item_leaves_no_word_of_its_text_and_no_name_of_others() -> None:
    item = an_item(
        a_memory("Quixotically outshone Bartholomew.", corrected_by="user:ines", correction_reason="Quixotically so"),
        mentions=(Mention(subject=Subject("candidate", "c-82"), name="Bartholomew", whole=True),),
        left_out="it is about another applicant",
    )
    on_it = a_measure(memory_id=item.memory.memory_id, reason="Quixotically so")
    said = machine_readable(a_package(item, measures=(on_it,)))
    assert said["items"][0]["without_text"] == {
        "because": "left out",
        "article": "15(4)",
        "reason": "it is about another applicant",
    }
    assert not [word for word in ("Quixotically", "outshone", "Bartholomew", "c-82") if word in json.dumps(said)]


def test_other_people_and_the_organisations_own_remarks_are_not_told() -> None:
    package = a_package(
        an_item(forgotten(hold="Okafor v. Acme")),
        measures=(a_measure(MeasureKind.HOLD, reason="we expect a claim", by="user:legal"),),
        requests=(a_request(),),
        by="user:dpo",
    )
    said = json.dumps(machine_readable(package))
    kept_back = ("Okafor v. Acme", "we expect", "user:legal", "user:ines", "c-82", "internal remark")
    assert not [words for words in kept_back if words in said]


def test_each_showing_is_listed_and_the_runs_are_summed_up() -> None:
    first = a_memory(disclosures=(shown("r-1"), shown("r-1", hours=5, place=2), shown("r-1", purpose=Purpose.PREVIEW)))
    second = a_memory(memory_id=UUID(int=2), disclosures=(shown("r-1", hours=2),))
    said = machine_readable(a_package(an_item(first), an_item(second)))
    assert said["items"][0]["recipients"][1] == {
        "run": "r-1",
        "purpose": "run",
        "at": "2026-11-02T14:30:00+00:00",
        "place": 2,
    }
    assert [
        (one["purpose"], one["items"], one["first_at"], one["last_at"]) for one in said["recipients"]["shown_to"]
    ] == [
        ("preview", 1, "2026-11-02T10:30:00+00:00", "2026-11-02T10:30:00+00:00"),
        ("run", 2, "2026-11-02T10:30:00+00:00", "2026-11-02T14:30:00+00:00"),
    ]


def test_a_dispute_and_a_correction_stand_beside_the_item() -> None:
    old = a_memory(dispute="That is wrong.", disputed_at=AT)
    new = a_memory(
        memory_id=UUID(int=2), supersedes=UUID(int=1), corrected_by="user:maria", correction_reason="she sent a proof"
    )
    corrected, disputed = machine_readable(a_package(an_item(new), an_item(old)))["items"]
    assert disputed["dispute"] == {"words": "That is wrong.", "at": AT.isoformat(), "withdrawn_at": None}
    assert disputed["replaced_by"] == str(UUID(int=2))
    assert corrected["correction"] == {"replaces": str(UUID(int=1)), "by": "user:maria", "reason": "she sent a proof"}
    assert corrected["dispute"] is None


def test_measures_and_earlier_requests_are_told() -> None:
    earlier = a_request("R-2026-0000", type=RequestType.RESTRICTION, status=Status.ANSWERED, closed_at=AT)
    measures = (a_measure(request_reference="R-2026-0000"), a_measure(request_reference="R-2026-0999", lifted_at=AT))
    said = machine_readable(a_package(measures=measures, requests=(a_request(), earlier)))
    assert [(one["stands"], one["request"], one["reason"]) for one in said["measures"]] == [
        (True, "R-2026-0000", "until it is checked"),
        (False, None, "until it is checked"),
    ]
    assert [(one["reference"], one["article"], one["answered_here"]) for one in said["requests"]] == [
        ("R-2026-0001", "15", True),
        ("R-2026-0000", "18", False),
    ]


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_the_answer_comes_back_from_json_as_it_went(text: str) -> None:
    said = machine_readable(a_package(an_item(a_memory(text)), measures=(a_measure(),), requests=(a_request(),)))
    assert json.loads(json.dumps(said)) == said
    assert said["items"][0]["text"] == text
