"""The page of requests as Streamlit runs it, without a browser."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import pyzipper
from conftest import Database, OpenDesk, OpenStore
from pressing import MARKUP, everything_interpreted, press, segment, told
from streamlit.testing.v1 import AppTest

from memory_core import Subject
from memory_core.package import access_files, passphrase, sealed
from memory_core.privacy import PrivacyDesk
from memory_core.rights import IdentityMethod, RightsRequest
from pages.desk.picker import digest

METHOD = IdentityMethod.CALL_BACK

ROOT = Path(__file__).resolve().parents[2]
ZOE, MILO = Subject("candidate", "c-81"), Subject("candidate", "c-9", label="Milo Berg")
OpenPage = Callable[..., AppTest]


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Run the page on this test's database, with a request in its address where one is given."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def run(reference: str | None = None) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/2_Requests.py")
        if reference is not None:
            at.query_params["request"] = reference
        at.run()
        assert not at.exception
        return at

    return run


def remember(open_store: OpenStore, text: str = "Prefers mornings.", subject: Subject = ZOE) -> None:
    open_store().remember(
        text, kind="observation", origin="inference", author="agent:screening", run_id="r-1", subject=subject
    )


def request(
    desk: PrivacyDesk,
    right: str = "access",
    *,
    asked_by: str = "Zoë Okafor",
    days_ago: int = 3,
    subject: Subject | None = ZOE,
    confirmed: bool = True,
) -> RightsRequest:
    found = desk.register.register(
        right,
        asked_by=asked_by,
        channel="e-mail",
        received_on=desk.today() - timedelta(days=days_ago),
        subject=subject,
    )
    return desk.register.confirm_identity(found, "known in person") if confirmed else found


def note(at: AppTest, text: str) -> None:
    next(area for area in at.text_area if area.key.startswith("closing note ")).set_value(text)


def test_an_organisation_without_requests_says_what_belongs_here(page: OpenPage) -> None:
    at = page()
    assert {metric.value for metric in at.metric} == {"0"}
    assert "Nobody waits for an answer" in at.info[0].value
    segment(at, "requests_shown", "All")
    assert at.info[0].value == "No request was ever entered."


def test_what_is_overdue_stands_on_top_and_opens_with_a_click(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    soon = request(desk, "erasure", days_ago=27)
    late = request(desk, "access", days_ago=50)
    running = request(desk, "objection", days_ago=1)
    waiting = desk.register.ask_identity(request(desk, "portability", confirmed=False))
    paused = desk.register.pause(request(desk, "rectification"), "asked which one")
    order = [one.reference for one in (late, soon, running, paused, waiting)]
    at = page()
    assert {metric.label: metric.value for metric in at.metric} == {
        "Open": "5",
        "Overdue": "1",
        "Due in 7 days": "1",
        "Identity awaited": "1",
        "Paused": "1",
    }
    assert late.reference in at.error[0].value
    assert soon.reference in at.warning[0].value
    table = at.dataframe[0].value
    assert list(table["reference"]) == order
    assert next(list(one) for one in table["pace"]) == ["overdue"]
    at.session_state[f"register acme {digest(order)} 0"] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    at.run()
    assert at.title[0].value == f"{soon.reference}: erasure"
    press(at, "All requests")
    assert at.title[0].value == "Requests"
    at.text_input(key="requests_go_to").set_value(f" {late.reference.lower()} ").run()
    assert at.title[0].value == f"{late.reference}: access"


def test_a_request_is_entered_and_says_when_it_is_due(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    at = press(page(), "New request")
    assert next(button for button in at.button if button.label == "Enter it").disabled
    at.text_input(key="new asked by").set_value(MARKUP)
    at.text_input(key="new subject search").set_value("c-81").run()
    press(at, "Enter it")
    entered = open_desk().register.every()[0]
    assert (entered.asked_by, entered.subject, entered.type) == (MARKUP, ZOE, "access")
    assert f"{entered.reference} is entered.** The answer is due on" in at.success[0].value
    assert "evil.example" not in everything_interpreted(at)


def test_a_request_that_is_overdue_when_it_is_entered_is_told_loudly(page: OpenPage, open_desk: OpenDesk) -> None:
    at = press(page(), "New request")
    at.text_input(key="new asked by").set_value("Somebody")
    at.date_input(key="new received on").set_value(open_desk().today() - timedelta(days=60))
    segment(at, "new about", "Still unknown")
    press(at, "Enter it")
    assert open_desk().register.every()[0].subject is None
    assert "overdue already" in " ".join(error.value for error in at.error)


def test_a_second_open_request_of_one_right_is_refused_and_nothing_typed_is_lost(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    first = request(open_desk())
    at = press(page(), "New request")
    at.text_input(key="new asked by").set_value("Zoë again")
    at.text_input(key="new subject search").set_value("c-81").run()
    press(at, "Enter it")
    assert first.reference in told(at)[0]
    assert at.text_input(key="new asked by").value == "Zoë again"


def test_the_person_is_named_and_the_identity_asked_for_and_confirmed(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk, "erasure", subject=None, confirmed=False)
    at = page(one.reference)
    at.text_input(key=f"name acme {one.reference} search").set_value("c-81").run()
    press(at, "It is about this person")
    assert desk.register.request(one.reference).subject == ZOE
    press(at, "Ask for it")
    assert "clock has not started" in at.info[0].value
    at.selectbox(key=f"method acme {one.reference}").set_value(METHOD).run()
    press(at, "Could not be confirmed")
    assert "could not be confirmed" in " ".join(warning.value for warning in at.warning)
    press(at, "Confirmed")
    assert desk.register.request(one.reference).identity_confirmed_on == desk.today()
    press(at, "Work on the subject")
    assert at.session_state["search_next" if "search_next" in at.session_state else "search"] == "candidate c-81"
    assert at.session_state["working_on"] == ("acme", one.reference)


def test_an_extension_needs_its_reason_and_moves_the_due_day(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk)
    at = press(page(one.reference), "Extend by two months")
    assert "rule reason_is_given" in told(at)[0]
    at.text_area(key=f"extension reason acme {one.reference}").set_value(f"Much to look through. {MARKUP}")
    press(at, "Extend by two months")
    assert desk.register.deadline(desk.register.request(one.reference)).days_left > 60
    assert "evil.example" not in everything_interpreted(at)
    press(at, "Pause the clock")
    assert "rule reason_is_given" in told(at)[0]
    next(field for field in at.text_input if field.label == "Ground").set_value(f"Asked which one. {MARKUP}")
    press(at, "Pause the clock")
    assert "paused" in at.info[0].value
    assert "evil.example" not in everything_interpreted(at)
    press(at, "Resume")
    assert len(desk.register.request(one.reference).pauses) == 1
    steps = at.dataframe[-1].value
    assert list(steps["what"]) == ["resumed", "paused", "extended", "identity confirmed", "registered"]
    assert "status: received → in progress" in steps["changed"][3]


def test_a_refusal_needs_its_ground_and_word_of_the_right_to_complain(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk)
    place = f"acme {one.reference}"
    at = segment(page(one.reference), f"ending {place}", "Refused")
    note(at, "Third within a month.")
    press(at, "Close as refused")
    assert "rule ground_is_known" in told(at)[0]
    at.selectbox(key=f"ground {place}").set_value("Excessive")
    press(at, "Close as refused")
    assert "they may complain" in " ".join(told(at))
    assert desk.register.request(one.reference).status.is_open
    at.checkbox(key=f"complaint {place}").check()
    press(at, "Close as refused")
    closed = desk.register.request(one.reference)
    assert (closed.status, closed.ground, closed.closing_note) == ("refused", "excessive", "Third within a month.")
    assert not [button for button in at.button if button.label.startswith("Close as")]


def test_the_other_ends_of_a_request(page: OpenPage, open_store: OpenStore, open_desk: OpenDesk) -> None:
    remember(open_store)
    desk = open_desk()
    first, again, third = request(desk), request(desk, subject=None), request(desk, subject=None)
    at = segment(page(again.reference), f"ending acme {again.reference}", "Duplicate")
    options = at.selectbox(key=f"duplicate of acme {again.reference}").options
    listed = next(one for one in options if one.startswith(first.reference))
    at.selectbox(key=f"duplicate of acme {again.reference}").set_value(listed)
    press(at, "Close as a duplicate")
    assert desk.register.request(again.reference).duplicate_of == first.reference
    at = segment(page(third.reference), f"ending acme {third.reference}", "Withdrawn")
    note(at, "By telephone.")
    press(at, "Close as withdrawn")
    assert desk.register.request(third.reference).status == "withdrawn"
    at = page(first.reference)
    note(at, "Sent by letter.")
    press(at, "Close as answered")
    assert desk.register.request(first.reference).status == "answered"


def test_who_was_first_is_told_and_nothing_typed_is_lost(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk)
    at = page(one.reference)
    desk.register.withdraw(one, "By telephone.")  # by user:ines, while the page shows it open
    note(at, "Sent by letter.")
    press(at, "Close as answered")
    assert desk.register.request(one.reference).status == "withdrawn"
    assert "changed since this page showed it" in " ".join(warning.value for warning in at.warning)
    assert any("user:ines" in line for line in told(at))
    assert "Sent by letter." in told(at)
    at.run()
    assert not at.warning


def test_a_change_by_somebody_else_is_told_before_an_act_on_it(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk)
    at = page(one.reference)
    desk.register.pause(one, "asked which one")
    note(at, "Sent by letter.")
    press(at, "Close as answered")
    assert desk.register.request(one.reference).status.is_open
    assert any("user:ines" in line for line in told(at))
    assert "Sent by letter." in [area.value for area in at.text_area]
    press(at, "Close as answered")  # now it has been seen
    assert desk.register.request(one.reference).status == "answered"


def test_a_package_may_be_looked_at_and_not_prepared_before_the_identity_is_confirmed(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk, confirmed=False)
    at = press(page(one.reference), "Look through it")
    assert {metric.label: metric.value for metric in at.metric}["With text"] == "1"
    assert "not prepared yet" in at.info[-1].value
    assert "Prepare the package" not in [button.label for button in at.button]
    press(at, "Back to the request")
    at.selectbox(key=f"method acme {one.reference}").set_value(METHOD).run()
    press(at, "Confirmed")
    at = press(page(one.reference), "Look through it")
    press(at, "Prepare the package")
    assert next(line.act for line in desk.trail(reference=one.reference)) == "export"


def test_what_names_others_is_shown_and_left_out_with_a_reason(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store, "Likes tea.", MILO)
    remember(open_store, f"Milo Berg was told off. {MARKUP}")
    remember(open_store, "Prefers mornings.")
    desk = open_desk()
    one = request(desk)
    place = f"acme {ZOE} {one.reference}"
    at = press(page(one.reference), "Look through it")
    assert {metric.label: metric.value for metric in at.metric}["Name others"] == "1"
    shown = at.dataframe[0].value
    assert list(shown["names"]) == ["Milo Berg (candidate c-9)"]
    assert "evil.example" in shown["text"][0]
    assert "evil.example" not in everything_interpreted(at)
    at.text_input(key=f"ids {place}").set_value(f"{shown['id'][0]} 00000000-0000-0000-0000-000000000000")
    press(at, "Leave out")
    assert "rule reason_is_given" in told(at)[0]
    at.text_input(key=f"why {place}").set_value("Rights of another person.")
    press(at, "Leave out")
    assert "00000000" in told(at)[0]
    at.text_input(key=f"ids {place}").set_value(shown["id"][0])
    press(at, "Leave out")
    assert {metric.label: metric.value for metric in at.metric}["Left out"] == "1"
    press(at, "Prepare the package")
    assert [len(part) for part in told(at)[-1].split("-")] == [5] * 5  # the passphrase
    assert told(at)[-1] not in repr(at.session_state)
    assert "evil.example" not in everything_interpreted(at)


def test_an_item_that_came_since_the_look_is_not_handed_out_unseen(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store, "Likes tea.", MILO)
    remember(open_store)
    one = request(open_desk())
    at = press(page(one.reference), "Look through it")
    remember(open_store, "Milo Berg was told off.")
    press(at, "Prepare the package")
    assert "Look through it again" in at.error[-1].value
    assert "since it was looked at" in told(at)[-1]
    assert len(open_desk().trail(request=one.reference, act="export")) == 0
    press(at, "Prepare the package")
    assert len(open_desk().trail(request=one.reference, act="export")) == 1


def test_the_sealed_package_has_the_answer_for_people_programs_and_spreadsheets(
    open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store, "=1+1")
    remember(open_store, "Left to others.")
    desk = open_desk()
    out = {
        item.memory.memory_id: "Rights of others."
        for item in desk.package(ZOE).items
        if "Left" in str(item.memory.text)
    }
    file = sealed(access_files(desk.package(ZOE, left_out=out, release=True)), secret=passphrase())
    with pyzipper.AESZipFile(io.BytesIO(file.content)) as archive:
        assert all(info.flag_bits & 1 for info in archive.infolist())
        archive.setpassword(file.passphrase.encode())
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(files) == {"access.json", "access.html", "items.csv"}
    assert len(json.loads(files["access.json"])["items"]) == 2
    assert '"\'=1+1"' in files["items.csv"]
    assert "Rights of others." in files["items.csv"]
    assert not [name for name, text in files.items() if "Left to others" in text]


def test_an_erasure_for_a_request_is_listed_with_its_certificate(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = request(desk, "erasure")
    erasure = desk.erase(ZOE, reason="asked for", reference=one.reference, suppress=True)
    at = page(one.reference)
    assert "Certificate of the erasure" in [heading.value for heading in at.subheader]
    values = [value for frame in at.dataframe if "value" in frame.value for value in frame.value["value"]]
    assert str(erasure.erasure_id) in values
    assert "Measures for this request" in [heading.value for heading in at.subheader]


def test_what_people_typed_never_reaches_a_widget_that_interprets(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    one = desk.register.extend(request(desk, asked_by=MARKUP), MARKUP)
    desk.restrict(MARKUP, subject=ZOE, reference=one.reference)
    for reference in (None, one.reference):
        assert "evil.example" not in everything_interpreted(page(reference))
    at = page(MARKUP)
    assert told(at) == [MARKUP[:40]]
    at.query_params.clear()
    assert "evil.example" not in everything_interpreted(at)
    desk.register.answer(one, MARKUP)
    at = page(one.reference)
    assert MARKUP in [text.value for text in at.text]
    assert "evil.example" not in everything_interpreted(at)


def test_the_request_of_another_organisation_is_not_shown(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    other = open_desk("acme-corp")
    theirs = request(other, subject=None, asked_by="Their asker")
    at = page(theirs.reference)
    assert at.warning[0].value.startswith("No request of this organisation")
    assert told(at) == [theirs.reference]
    assert "Their asker" not in str([text.value for text in at.text])


def test_a_change_of_organisation_does_not_open_its_request_of_the_same_number(
    page: OpenPage, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    theirs = request(open_desk("acme-corp"), subject=None, asked_by="Their asker")
    ours = request(open_desk(), subject=None, asked_by="Our asker")
    assert theirs.reference == ours.reference
    at = page(ours.reference)
    assert "Our asker" in [text.value for text in at.text]
    at.sidebar.selectbox[0].set_value("acme-corp").run()
    assert at.title[0].value == "Requests"
    assert "Their asker" not in [text.value for text in at.text]


@pytest.mark.parametrize("path", sorted((ROOT / "pages" / "desk").glob("*.py")), ids=lambda path: path.name)
def test_a_part_of_a_page_builds_no_sql_and_interprets_no_text(path: Path) -> None:
    source = path.read_text()
    for trap in ("memory_core.db", "unsafe_allow_html", "st.navigation", "cache_data", "cache_resource", "st.write("):
        assert trap not in source
    assert "st.table(" not in source  # its cells are Markdown
