from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from threading import Barrier
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from fakes import CANDIDATE, JOB, Clock, observation, observe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import await_lock_waits, emptied, execute, snapshot, traces

from memory_core import MemoryCoreError, Refused, Subject
from memory_core.db import requests
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.errors import ChangedMeanwhile
from memory_core.privacy import PrivacyDesk
from memory_core.rights import (
    Channel,
    DeskSettings,
    IdentityMethod,
    Pause,
    RefusalGround,
    RequestChange,
    RequestType,
    RightsRequest,
    Status,
)
from memory_core.rules.deadlines import Pace
from memory_core.rules.requests import Act

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

ANOTHER = Subject("candidate", "c-8")
TODAY = date(2026, 11, 2)  # a Monday; the month is over on Wednesday, 2 December
ASKER = "Zoë Quist7f3a"
METHOD = IdentityMethod.CALL_BACK


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 11, 2, 9, tzinfo=UTC))


@pytest.fixture
def known(open_store: OpenStore, clock: Clock) -> None:
    """Somebody about whom something is held, in one organisation and the next."""
    for org_id in ("acme", "acme-corp"):
        open_store(org_id, clock=clock).remember_many(
            observation("Could start in May.", subject=subject) for subject in (CANDIDATE, ANOTHER)
        )


@pytest.fixture
def desk(open_desk: OpenDesk, clock: Clock, known: None) -> PrivacyDesk:
    return open_desk(clock=clock)


@pytest.fixture
def omar(open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(by="user:omar", clock=clock)


def enter(desk: PrivacyDesk, right: Any = RequestType.ACCESS, **changes: Any) -> RightsRequest:
    given = {"asked_by": ASKER, "channel": Channel.LETTER, "received_on": TODAY, **changes}
    return desk.register.register(right, **given)


def settle(desk: PrivacyDesk, request: RightsRequest) -> RightsRequest:
    return desk.register.withdraw(request, "changed their mind")


def history(database: Database, request: RightsRequest, org_id: str = "acme") -> list[RequestChange]:
    with organisation_transaction(engine_for(database.application), org_id) as connection:
        return requests.changes(connection, org_id, request.request_id)


def trail(database: Database, reference: str, org_id: str = "acme") -> list[tuple[Any, ...]]:
    lines = "SELECT by, act, at, subject_id FROM trail WHERE org_id = %s AND reference = %s ORDER BY number"
    return execute(database, lines, (org_id, reference))


def refused(act: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert ASKER not in str(caught.value)
    return caught.value


def require_whole(database: Database) -> None:
    """Every request's version, history and trail are equal in number, and the last step is what the row says."""
    found = execute(
        database,
        """
        SELECT r.reference, r.version, r.changed_by, r.changed_at,
            (SELECT array_agg(c.version ORDER BY c.version) FROM rights_request_change c
             WHERE (c.org_id, c.request_id) = (r.org_id, r.request_id)),
            (SELECT array_agg(c.by || ' ' || c.at ORDER BY c.version) FROM rights_request_change c
             WHERE (c.org_id, c.request_id) = (r.org_id, r.request_id)),
            (SELECT array_agg(c.by || ' request ' || c.act ORDER BY c.version) FROM rights_request_change c
             WHERE (c.org_id, c.request_id) = (r.org_id, r.request_id)),
            (SELECT array_agg(t.by || ' ' || t.act ORDER BY t.number) FROM trail t
             WHERE (t.org_id, t.reference) = (r.org_id, r.reference)),
            r.changed_by || ' ' || r.changed_at
        FROM rights_request r
        """,
    )
    for reference, version, _, _, versions, steps, acts, lines, last in found:
        assert versions == list(range(1, version + 1)), reference
        assert acts == lines, reference
        assert steps[-1] == last, reference


# What comes in


def test_a_request_is_entered_as_it_came_in_with_whom_it_is_about(
    desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    request = enter(desk, "erasure", asked_by=f"  {ASKER}\n", channel="e-mail", subject=CANDIDATE, received_on=TODAY)
    assert request == RightsRequest(
        request_id=request.request_id,
        reference="R-2026-0001",
        type=RequestType.ERASURE,
        status=Status.RECEIVED,
        asked_by=ASKER,
        channel=Channel.EMAIL,
        subject=CANDIDATE,
        received_on=TODAY,
        identity_asked_on=None,
        identity_method=None,
        identity_confirmed_on=None,
        extended_on=None,
        extension_reason=None,
        pauses=(),
        closed_at=None,
        ground=None,
        closing_note=None,
        duplicate_of=None,
        version=1,
        changed_at=clock.now,
        changed_by="user:ines",
    )
    assert desk.register.request("R-2026-0001") == request
    assert desk.register.every() == desk.register.every(only_open=True) == [request]
    require_whole(database)


def test_a_request_may_be_entered_before_it_is_known_about_whom_it_is(desk: PrivacyDesk, database: Database) -> None:
    first, second = enter(desk), enter(desk)  # nobody knows yet whether they are about the same person
    assert first.subject is None is second.subject
    assert [one.reference for one in desk.register.every()] == [second.reference, first.reference]
    require_whole(database)


def test_every_right_may_be_claimed_by_every_channel(desk: PrivacyDesk) -> None:
    for right, channel in product(RequestType, Channel):
        request = enter(desk, right.value, channel=channel.value)
        assert (request.type, request.channel) == (right, channel)


def test_references_count_by_the_year_of_receipt_in_each_organisation(
    desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    other = open_desk("acme-corp", clock=clock)
    days = [TODAY, date(2025, 12, 31), TODAY, date(2026, 1, 1), date(2025, 12, 31), date(2017, 1, 1)]
    found = [enter(desk, received_on=day).reference for day in days]
    assert found == ["R-2026-0001", "R-2025-0001", "R-2026-0002", "R-2026-0003", "R-2025-0002", "R-2017-0001"]
    assert enter(other).reference == "R-2026-0001"
    require_whole(database)


def test_references_go_on_counting_past_four_digits(desk: PrivacyDesk, database: Database) -> None:
    enter(desk)
    execute(database, "UPDATE rights_request SET reference = 'R-2026-9999'")
    assert [enter(desk).reference for _ in range(3)] == ["R-2026-10000", "R-2026-10001", "R-2026-10002"]


def test_a_request_of_a_forgotten_subject_may_be_entered(
    desk: PrivacyDesk, open_store: OpenStore, clock: Clock
) -> None:
    open_store(clock=clock).forget(CANDIDATE, by="user:ines", reason="asked to")
    assert enter(desk, subject=CANDIDATE).subject == CANDIDATE


BAD = [
    ({"right": "deletion"}, "type_is_known", "type"),
    ({"right": "ACCESS"}, "type_is_known", "type"),
    ({"right": None}, "type_is_known", "type"),
    ({"right": ["access"]}, "type_is_known", "type"),
    ({"right": Channel.EMAIL}, "type_is_known", "type"),
    ({"channel": "fax"}, "channel_is_known", "channel"),
    ({"channel": ""}, "channel_is_known", "channel"),
    ({"channel": {}}, "channel_is_known", "channel"),
    ({"asked_by": None}, "request_says_who_asked", "asked_by"),
    ({"asked_by": " \u200b\n"}, "request_says_who_asked", "asked_by"),
    ({"asked_by": "a" * 201}, "name_length", "asked_by"),
    ({"asked_by": "Zoë\x00"}, "name_is_storable", "asked_by"),
    ({"asked_by": "Zoë\ud800"}, "name_is_storable", "asked_by"),
    ({"received_on": date(2026, 11, 3)}, "received_on_is_not_in_the_future", "received_on"),
    ({"received_on": date.max}, "received_on_is_not_in_the_future", "received_on"),
    ({"received_on": date.min}, "received_on_within_ten_years", "received_on"),
    ({"received_on": date(2016, 11, 1)}, "received_on_within_ten_years", "received_on"),
    ({"received_on": datetime(2026, 11, 2, 9, tzinfo=UTC)}, "received_on_is_a_date", "received_on"),
    ({"received_on": "2026-11-02"}, "received_on_is_a_date", "received_on"),
    ({"received_on": None}, "received_on_is_a_date", "received_on"),
    ({"subject": Subject("candidate", "c-0")}, "request_is_about_a_known_subject", "subject"),
    ({"subject": Subject("Candidate", "c-81")}, "request_is_about_a_known_subject", "subject"),
    ({"subject": "candidate c-81"}, "subject_is_a_subject", "subject"),
    ({"subject": ("candidate", "c-81")}, "subject_is_a_subject", "subject"),
]


def test_what_cannot_be_a_request_is_refused_by_the_name_of_its_fault_and_leaves_nothing(
    desk: PrivacyDesk, database: Database
) -> None:
    before = snapshot(database)
    errors = [refused(lambda bad=bad: enter(desk, **bad)) for bad, _, _ in BAD]
    assert [(bad, error.rule, error.field) for (bad, _, _), error in zip(BAD, errors, strict=True)] == BAD
    assert snapshot(database) == before


def test_what_is_held_in_another_organisation_makes_nobody_known_here(
    desk: PrivacyDesk, open_store: OpenStore, clock: Clock
) -> None:
    observe(open_store("acme-corp", clock=clock), "Panels of two.", subject=JOB)
    assert refused(lambda: enter(desk, subject=JOB)).rule == "request_is_about_a_known_subject"


NO_REFERENCES = ["R-2026-0002", "", "r-2026-0001", " R-2026-0001", "R-2026-%", None, 1, ["R-2026-0001"], "a" * 9999]


@pytest.mark.parametrize(
    "references", [NO_REFERENCES, ["R-2026-0001\x00"], ["\ud800"]], ids=["odd", "NUL", "surrogate"]
)
def test_a_reference_of_no_request_is_refused_whatever_it_is(desk: PrivacyDesk, references: list[Any]) -> None:
    request = enter(desk)
    acts = (desk.register.request, lambda reference: desk.register.mark_duplicate(request, reference))
    for act, reference in product(acts, references):
        error = refused(lambda act=act, reference=reference: act(reference))
        assert error.rule == "request_exists"
        assert len(str(error)) < 200
    assert desk.register.request(request.reference) == request


# One open request of a type about a subject


def test_a_second_open_request_of_a_type_about_a_subject_is_refused_and_names_the_first(
    desk: PrivacyDesk, database: Database
) -> None:
    first = enter(desk, subject=CANDIDATE)
    before = snapshot(database)
    error = refused(lambda: enter(desk, subject=CANDIDATE))
    assert (error.rule, error.field) == ("one_open_request_of_a_type", "subject")
    assert first.reference in str(error)
    assert snapshot(database) == before
    assert enter(desk, "erasure", subject=CANDIDATE).type is RequestType.ERASURE
    assert enter(desk, subject=ANOTHER).subject == ANOTHER
    assert enter(desk).subject is None


@pytest.mark.parametrize("closing", ["answer", "refuse", "withdraw", "duplicate"])
def test_once_the_first_is_closed_a_second_request_is_welcome(
    desk: PrivacyDesk, database: Database, closing: str
) -> None:
    register = desk.register
    first = register.confirm_identity(enter(desk, subject=CANDIDATE), METHOD)
    close: dict[str, Callable[[], RightsRequest]] = {
        "answer": lambda: register.answer(first, "sent by post"),
        "refuse": lambda: register.refuse(first, ground="excessive", note="the fifth", complaint_told=True),
        "withdraw": lambda: settle(desk, first),
        "duplicate": lambda: register.mark_duplicate(first, enter(desk).reference),
    }
    assert not close[closing]().status.is_open
    again = enter(desk, subject=CANDIDATE)
    assert again.status is Status.RECEIVED
    assert again.reference != first.reference
    require_whole(database)


def test_a_subject_who_has_an_open_request_of_the_type_cannot_be_named_in_another(
    desk: PrivacyDesk, database: Database
) -> None:
    first, unknown = enter(desk, subject=CANDIDATE), enter(desk)
    before = snapshot(database)
    error = refused(lambda: desk.register.name_subject(unknown, CANDIDATE))
    assert error.rule == "one_open_request_of_a_type"
    assert first.reference in str(error)
    assert snapshot(database) == before
    assert desk.register.name_subject(first, CANDIDATE).subject == CANDIDATE  # itself is none before it
    settle(desk, desk.register.request(first.reference))
    assert desk.register.name_subject(unknown, CANDIDATE).subject == CANDIDATE
    require_whole(database)


@pytest.mark.parametrize("subject", [Subject("candidate", "c-0"), "candidate c-81", None])
def test_only_somebody_known_is_named_in_a_request(desk: PrivacyDesk, database: Database, subject: Any) -> None:
    request = enter(desk)
    before = snapshot(database)
    assert refused(lambda: desk.register.name_subject(request, subject)).field == "subject"
    assert snapshot(database) == before


def test_a_repeat_is_entered_without_a_subject_and_closed_as_a_duplicate_of_the_first(
    desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    first, repeat = enter(desk, subject=CANDIDATE), enter(desk)
    closed = desk.register.mark_duplicate(repeat, first.reference)
    assert (closed.status, closed.duplicate_of, closed.closed_at) == (Status.DUPLICATE, first.reference, clock.now)
    assert desk.register.request(repeat.reference) == closed
    assert desk.register.every(only_open=True) == [first]
    require_whole(database)


def test_a_request_repeats_neither_itself_nor_one_of_another_type(desk: PrivacyDesk, database: Database) -> None:
    request, other = enter(desk), enter(desk, "erasure")
    before = snapshot(database)
    for of in (request.reference, other.reference):
        error = refused(lambda of=of: desk.register.mark_duplicate(request, of))
        assert (error.rule, error.field) == ("duplicate_repeats_another", "of")
        assert of in str(error)
    assert snapshot(database) == before


def test_two_requests_are_never_closed_as_repeats_of_each_other(desk: PrivacyDesk, database: Database) -> None:
    first, second = enter(desk), enter(desk)
    desk.register.mark_duplicate(first, second.reference)
    before = snapshot(database)
    error = refused(lambda: desk.register.mark_duplicate(second, first.reference))
    assert error.field == "of"
    assert snapshot(database) == before


def test_a_request_about_one_person_is_no_repeat_of_one_about_another(desk: PrivacyDesk, database: Database) -> None:
    first, second = enter(desk, subject=CANDIDATE), enter(desk, subject=ANOTHER)
    before = snapshot(database)
    error = refused(lambda: desk.register.mark_duplicate(second, first.reference))
    assert error.field == "of"
    assert snapshot(database) == before


# Identity, answers and refusals


def test_a_request_is_answered_once_it_is_on_record_how_the_identity_was_made_sure(
    desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    register = desk.register
    request = enter(desk, subject=CANDIDATE)
    assert refused(lambda: register.answer(request, "sent")).rule == "answered_after_identity"
    asked = register.ask_identity(request)
    assert (asked.status, asked.identity_asked_on) == (Status.IDENTITY_PENDING, TODAY)
    assert refused(lambda: register.answer(asked, "sent")).rule == "answered_after_identity"
    clock.step(days=2)
    failed = register.fail_identity(asked, "document seen, not kept")
    assert (failed.status, failed.identity_confirmed_on) == (Status.IDENTITY_PENDING, None)
    assert refused(lambda: register.answer(failed, "sent")).rule == "answered_after_identity"
    clock.step(days=1)
    confirmed = register.confirm_identity(failed, METHOD)
    assert confirmed.status is Status.IN_PROGRESS
    assert (confirmed.identity_method, confirmed.identity_confirmed_on) == (METHOD, date(2026, 11, 5))
    answered = register.answer(confirmed, "sent by post")
    assert (answered.status, answered.closing_note, answered.closed_at) == (Status.ANSWERED, "sent by post", clock.now)
    assert (answered.ground, answered.version) == (None, 5)
    require_whole(database)


def test_an_identity_that_could_not_be_made_sure_has_no_method_on_the_request_but_in_its_history(
    desk: PrivacyDesk,
) -> None:
    failed = desk.register.fail_identity(desk.register.ask_identity(enter(desk)), METHOD)
    assert (failed.identity_method, failed.identity_confirmed_on) == (None, None)
    assert desk.register.history(failed)[-1].changed == {"identity": (None, f"not confirmed: {METHOD}")}


def test_an_identity_is_not_asked_for_once_the_answer_is_overdue(
    desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    request = enter(desk, received_on=date(2026, 10, 2))  # due today
    clock.step(days=1)
    before = snapshot(database)
    assert refused(lambda: desk.register.ask_identity(request)).rule == "identity_is_asked_for_within_the_month"
    assert snapshot(database) == before
    clock.step(days=-1)
    assert desk.register.ask_identity(request).status is Status.IDENTITY_PENDING


@pytest.mark.parametrize("asked", [False, True])
def test_once_it_is_sure_who_asks_no_other_subject_is_named(desk: PrivacyDesk, database: Database, asked: bool) -> None:
    register = desk.register
    request = enter(desk, subject=CANDIDATE)
    confirmed = register.confirm_identity(register.ask_identity(request) if asked else request, METHOD)
    same = register.name_subject(confirmed, CANDIDATE)
    before = snapshot(database)
    error = refused(lambda: register.name_subject(same, ANOTHER))
    assert (error.rule, error.field) == ("subject_is_named_before_identity", "subject")
    assert same.reference in str(error)
    assert str(CANDIDATE) in str(error)
    assert snapshot(database) == before
    assert (same.subject, same.status, same.identity_confirmed_on) == (CANDIDATE, Status.IN_PROGRESS, TODAY)
    # The way out that the refusal names: closed as withdrawn, and entered anew as of the day it came in.
    settle(desk, same)
    anew = register.confirm_identity(enter(desk, subject=ANOTHER), METHOD)
    assert register.answer(anew, "sent by post").subject == ANOTHER


def test_until_it_is_sure_who_asks_another_subject_may_be_named(desk: PrivacyDesk) -> None:
    asked = desk.register.ask_identity(enter(desk, subject=CANDIDATE))
    named = desk.register.name_subject(desk.register.fail_identity(asked, METHOD), ANOTHER)
    assert (named.subject, named.status) == (ANOTHER, Status.IDENTITY_PENDING)


def test_a_subject_that_was_still_unknown_is_named_without_making_sure_anew(desk: PrivacyDesk) -> None:
    confirmed = desk.register.confirm_identity(enter(desk), METHOD)
    named = desk.register.name_subject(confirmed, CANDIDATE)
    assert (named.status, named.identity_confirmed_on) == (Status.IN_PROGRESS, TODAY)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"ground": "too much work"}, "ground_is_known"),
        ({"ground": None}, "ground_is_known"),
        ({"note": " "}, "reason_is_given"),
        ({"note": "a\x00"}, "reason_is_storable"),
        ({"note": "a" * 501}, "reason_length"),
        ({"complaint_told": False}, "refusal_tells_of_the_right_to_complain"),
        ({"complaint_told": None}, "refusal_tells_of_the_right_to_complain"),
    ],
)
def test_a_request_is_refused_on_a_ground_with_a_reason_and_word_of_the_right_to_complain(
    desk: PrivacyDesk, database: Database, changes: dict[str, Any], rule: str
) -> None:
    good: dict[str, Any] = {"ground": RefusalGround.IDENTITY, "note": "never answered", "complaint_told": True}
    request = enter(desk)
    before = snapshot(database)
    assert refused(lambda: desk.register.refuse(request, **{**good, **changes})).rule == rule
    assert snapshot(database) == before
    closed = desk.register.refuse(request, **good)
    assert (closed.status, closed.ground) == (Status.REFUSED, RefusalGround.IDENTITY)
    assert closed.closing_note == "never answered"


def test_what_closes_a_request_says_why_in_words_that_can_be_stored(desk: PrivacyDesk, database: Database) -> None:
    request = desk.register.confirm_identity(enter(desk), METHOD)
    before = snapshot(database)
    notes: list[Any] = [None, "", " \u200b", "a\x00", "a\ud800", "a" * 501, 5]
    for act, note in product((desk.register.answer, desk.register.withdraw), notes):
        assert refused(lambda act=act, note=note: act(request, note)).field == "note"
    assert snapshot(database) == before


def test_an_identity_is_made_sure_by_a_known_method(desk: PrivacyDesk, database: Database) -> None:
    request = desk.register.ask_identity(enter(desk))
    before = snapshot(database)
    methods: list[Any] = [None, "", "passport", 5]
    for act, method in product((desk.register.confirm_identity, desk.register.fail_identity), methods):
        assert refused(lambda act=act, how=method: act(request, how)).rule == "method_is_known"
    assert snapshot(database) == before


STEPS: dict[Act, Callable[[PrivacyDesk, RightsRequest], RightsRequest]] = {
    Act.NAME_SUBJECT: lambda desk, request: desk.register.name_subject(request, ANOTHER),
    Act.ASK_IDENTITY: lambda desk, request: desk.register.ask_identity(request),
    Act.CONFIRM_IDENTITY: lambda desk, request: desk.register.confirm_identity(request, METHOD),
    Act.FAIL_IDENTITY: lambda desk, request: desk.register.fail_identity(request, METHOD),
    Act.EXTEND: lambda desk, request: desk.register.extend(request, "many agents to ask"),
    Act.PAUSE: lambda desk, request: desk.register.pause(request, "asked which one"),
    Act.RESUME: lambda desk, request: desk.register.resume(request),
    Act.ANSWER: lambda desk, request: desk.register.answer(request, "sent by post"),
    Act.REFUSE: lambda desk, request: desk.register.refuse(
        request, ground="excessive", note="the fifth", complaint_told=True
    ),
    Act.DUPLICATE: lambda desk, request: desk.register.mark_duplicate(request, "R-2025-0001"),
    Act.WITHDRAW: lambda desk, request: desk.register.withdraw(request, "changed their mind"),
}
CLOSING = (Act.ANSWER, Act.REFUSE, Act.DUPLICATE, Act.WITHDRAW)


@pytest.mark.parametrize("closing", CLOSING)
def test_a_closed_request_stays_closed_whatever_is_tried(desk: PrivacyDesk, database: Database, closing: Act) -> None:
    enter(desk, received_on=date(2025, 12, 31))
    closed = STEPS[closing](desk, desk.register.confirm_identity(enter(desk, subject=CANDIDATE), METHOD))
    before = snapshot(database)
    for act, step in STEPS.items():
        error = refused(lambda step=step: step(desk, closed))
        assert error.rule == "closed_request_stays_closed", act
        assert closed.reference in str(error)
        assert str(closed.status) in str(error)
    assert snapshot(database) == before


@pytest.mark.parametrize("nothing", [None, "R-2026-0001", b"R-2026-0001", 1, CANDIDATE])
def test_a_step_is_taken_on_a_request_as_it_was_read(desk: PrivacyDesk, database: Database, nothing: Any) -> None:
    enter(desk, subject=CANDIDATE)
    before = snapshot(database)
    for act, step in STEPS.items():
        error = refused(lambda step=step: step(desk, nothing))
        assert (error.rule, error.field) == ("request_is_a_request", "request"), act
    assert snapshot(database) == before


def test_every_step_has_its_test() -> None:
    assert {*STEPS, Act.REGISTER} == set(Act)


# What is done for a request


Done = Callable[[PrivacyDesk, str], object]


def a_memory(desk: PrivacyDesk) -> Any:
    return desk.held(CANDIDATE).memories[0]


FOR_SOMEBODY_KNOWN: dict[str, Done] = {
    "erase": lambda desk, reference: desk.erase(CANDIDATE, reason="asked to", reference=reference),
    "correct": lambda desk, reference: desk.correct(
        a_memory(desk), "In June.", author="user:zoe", reason="it is June", reference=reference
    ),
    "hand out": lambda desk, reference: desk.package(CANDIDATE, reference=reference, release=True),
}
FOR_ANYBODY: dict[str, Done] = {
    "look at package": lambda desk, reference: desk.package(CANDIDATE, reference=reference),
    "restrict": lambda desk, reference: desk.restrict("contested", subject=CANDIDATE, reference=reference),
    "hold": lambda desk, reference: desk.hold("court case", subject=CANDIDATE, reference=reference),
    "suppress": lambda desk, reference: desk.suppress("objected", subject=CANDIDATE, reference=reference),
    "dispute": lambda desk, reference: desk.dispute(a_memory(desk), "Never said.", reference=reference),
}


@pytest.mark.parametrize("what", [*FOR_SOMEBODY_KNOWN, *FOR_ANYBODY])
def test_what_takes_something_away_or_hands_it_out_needs_to_be_sure_who_asks(desk: PrivacyDesk, what: str) -> None:
    request = enter(desk, subject=CANDIDATE)
    if what in FOR_ANYBODY:
        FOR_ANYBODY[what](desk, request.reference)
        return
    for unsure in (request, desk.register.ask_identity(request)):
        error = refused(lambda unsure=unsure: FOR_SOMEBODY_KNOWN[what](desk, unsure.reference))
        assert (error.rule, error.field) == ("acted_on_after_identity", "reference")
    desk.register.confirm_identity(desk.register.request(request.reference), METHOD)
    FOR_SOMEBODY_KNOWN[what](desk, request.reference)


@pytest.mark.parametrize("closing", CLOSING)
def test_nothing_is_done_for_a_request_that_was_closed_without_an_answer(
    desk: PrivacyDesk, database: Database, closing: Act
) -> None:
    enter(desk, received_on=date(2025, 12, 31))
    closed = STEPS[closing](desk, desk.register.confirm_identity(enter(desk, subject=CANDIDATE), METHOD))
    for what, act in {**FOR_ANYBODY, **FOR_SOMEBODY_KNOWN}.items():
        if closing is Act.ANSWER:
            if what != "erase":  # of what is on hold
                desk_lifts(desk)
                act(desk, closed.reference)
            continue
        a_memory(desk)
        before = execute(database, ROWS_BUT_LOOKS)
        error = refused(lambda act=act: act(desk, closed.reference))
        assert (error.rule, error.field) == ("nothing_is_done_for_what_was_not_answered", "reference"), what
        assert execute(database, ROWS_BUT_LOOKS) == before


ROWS_BUT_LOOKS = """
    SELECT (SELECT array_agg(m::text ORDER BY m::text) FROM memory AS m), (SELECT count(*) FROM measure),
        (SELECT count(*) FROM erasure), (SELECT count(*) FROM trail WHERE act <> 'look')
"""


def desk_lifts(desk: PrivacyDesk) -> None:
    for one in desk.measures():
        desk.lift(one, reason="settled", person_told=True if one.kind == "restriction" else None)


@pytest.mark.parametrize("right", RequestType)
def test_a_package_is_handed_out_for_access_or_portability_only(
    desk: PrivacyDesk, database: Database, right: RequestType
) -> None:
    request = desk.register.confirm_identity(enter(desk, right, subject=CANDIDATE), METHOD)
    before = snapshot(database)
    if right in (RequestType.ACCESS, RequestType.PORTABILITY):
        assert desk.package(CANDIDATE, reference=request.reference, release=True).items
        return
    error = refused(lambda: desk.package(CANDIDATE, reference=request.reference, release=True))
    assert (error.rule, error.field) == ("package_answers_access", "reference")
    assert snapshot(database) == before
    assert desk.package(CANDIDATE, reference=request.reference).items  # to look at it is no handing out


# Deadlines


def test_an_answer_is_due_a_month_after_receipt_by_the_organisations_own_holidays(
    open_desk: OpenDesk, known: None, clock: Clock
) -> None:
    clock.now = datetime(2024, 11, 26, 9, tzinfo=UTC)
    desk = open_desk(clock=clock)
    request = enter(desk, received_on=date(2024, 11, 25))
    assert desk.register.deadline(request).due_on == date(2024, 12, 25)  # no holidays are known as yet
    desk.change_settings(DeskSettings(jurisdiction="GB-ENG", time_zone="Europe/London"))
    due = desk.register.deadline(request)
    assert (due.starts_on, due.due_on) == (date(2024, 11, 25), date(2024, 12, 27))
    assert (due.pace, due.days_left, due.extend_by) == (Pace.RUNNING, 31, date(2024, 12, 27))


def test_the_month_runs_from_the_day_the_identity_was_confirmed_where_it_was_asked_for(
    desk: PrivacyDesk, clock: Clock
) -> None:
    asked, unasked = enter(desk), enter(desk)
    clock.step(days=1)
    asked = desk.register.ask_identity(asked)
    assert desk.register.deadline(asked).pace is Pace.WAITING
    assert desk.register.deadline(asked).due_on is None
    clock.step(days=7)
    asked, unasked = (desk.register.confirm_identity(one, METHOD) for one in (asked, unasked))
    first, second = desk.register.deadlines([asked, unasked])
    assert (first.starts_on, first.due_on) == (date(2026, 11, 10), date(2026, 12, 10))
    assert (second.starts_on, second.due_on) == (TODAY, date(2026, 12, 2))


def test_days_of_pause_are_added_and_each_is_on_record(desk: PrivacyDesk, clock: Clock, database: Database) -> None:
    request = enter(desk)
    assert refused(lambda: desk.register.resume(request)).rule == "resumed_after_a_pause"
    clock.step(days=2)
    paused = desk.register.pause(request, "asked which one")
    assert paused.pauses == (Pause(since=date(2026, 11, 4), until=None),)
    assert refused(lambda: desk.register.pause(paused, "asked which one")).rule == "paused_once_at_a_time"
    clock.step(days=5)
    assert desk.register.deadline(paused).pace is Pace.PAUSED
    resumed = desk.register.resume(paused)
    assert desk.register.deadline(resumed).due_on == date(2026, 12, 7)
    clock.step(days=1)
    resumed = desk.register.resume(desk.register.pause(resumed, "asked which one"))
    assert resumed.pauses == (
        Pause(since=date(2026, 11, 4), until=date(2026, 11, 9)),
        Pause(since=date(2026, 11, 10), until=date(2026, 11, 10)),
    )
    assert desk.register.deadline(resumed).due_on == date(2026, 12, 7)
    assert history(database, request)[-1].changed == {
        "pauses": (
            "2026-11-04 to 2026-11-09, 2026-11-10 to …",
            "2026-11-04 to 2026-11-09, 2026-11-10 to 2026-11-10",
        )
    }
    require_whole(database)


def test_an_extension_gives_three_months_from_the_start_once(desk: PrivacyDesk, clock: Clock) -> None:
    request = desk.register.resume(desk.register.pause(enter(desk), "asked which one"))
    clock.step(days=30)  # the last day of the month
    extended = desk.register.extend(request, "many agents to ask")
    assert (extended.extended_on, extended.extension_reason) == (date(2026, 12, 2), "many agents to ask")
    assert desk.register.deadline(extended).due_on == date(2027, 2, 2)
    assert desk.register.deadline(extended).extend_by is None
    assert refused(lambda: desk.register.extend(extended, "and more")).rule == "extended_once"


def test_an_extension_too_late_without_a_reason_or_of_a_clock_that_stands_still_is_refused(
    desk: PrivacyDesk, clock: Clock, database: Database
) -> None:
    late = enter(desk, received_on=date(2026, 10, 1))  # due on Monday, 2 November
    running, paused, waiting = (
        enter(desk),
        desk.register.pause(enter(desk), "asked which one"),
        desk.register.ask_identity(enter(desk)),
    )
    clock.step(days=1)
    before = snapshot(database)
    cases: Sequence[tuple[RightsRequest, Any, str]] = [
        (late, "many agents", "extension_within_the_first_month"),
        (paused, "many agents", "extension_of_a_running_clock"),
        (waiting, "many agents", "extension_of_a_running_clock"),
        (running, "", "reason_is_given"),
        (running, None, "reason_is_given"),
        (running, "a\ud800", "reason_is_storable"),
        (running, "a" * 501, "reason_length"),
    ]
    for request, reason, rule in cases:
        assert refused(lambda r=request, why=reason: desk.register.extend(r, why)).rule == rule
    assert snapshot(database) == before


def test_a_clock_that_waits_for_an_identity_is_not_paused(desk: PrivacyDesk) -> None:
    request = desk.register.ask_identity(enter(desk))
    assert refused(lambda: desk.register.pause(request, "asked which one")).rule == "pause_of_a_running_clock"


def test_an_overdue_request_is_not_paused(desk: PrivacyDesk, database: Database) -> None:
    request = enter(desk, received_on=date(2026, 9, 15))
    before = snapshot(database)
    assert (
        refused(lambda: desk.register.pause(request, "asked which one")).rule == "pause_before_the_request_is_overdue"
    )
    assert snapshot(database) == before


@pytest.mark.parametrize(
    ("zone", "now", "today"),
    [
        ("UTC", datetime(2026, 11, 2, 12, tzinfo=UTC), date(2026, 11, 2)),
        ("Pacific/Auckland", datetime(2026, 11, 2, 12, tzinfo=UTC), date(2026, 11, 3)),
        ("Pacific/Auckland", datetime(2026, 11, 2, 10, 59, tzinfo=UTC), date(2026, 11, 2)),
        ("America/Los_Angeles", datetime(2026, 11, 2, 7, 59, tzinfo=UTC), date(2026, 11, 1)),
        ("America/Los_Angeles", datetime(2026, 11, 2, 8, tzinfo=UTC), date(2026, 11, 2)),
        ("Europe/London", datetime(2026, 6, 30, 23, tzinfo=UTC), date(2026, 7, 1)),
    ],
)
def test_which_day_it_is_is_told_by_the_organisations_own_time_zone(
    open_desk: OpenDesk, clock: Clock, zone: str, now: datetime, today: date
) -> None:
    clock.now = now
    desk = open_desk(clock=clock)
    desk.change_settings(DeskSettings(time_zone=zone))
    assert desk.today() == today
    error = refused(lambda: enter(desk, received_on=today + timedelta(days=1)))
    assert error.rule == "received_on_is_not_in_the_future"
    request = enter(desk, received_on=today)
    asked = desk.register.ask_identity(request)
    confirmed = desk.register.confirm_identity(asked, METHOD)
    extended = desk.register.extend(confirmed, "many agents to ask")
    paused = desk.register.pause(extended, "asked which one")
    assert {paused.identity_asked_on, paused.identity_confirmed_on, paused.extended_on, paused.pauses[0].since} == {
        today
    }
    due = desk.register.deadline(enter(desk, received_on=today))
    assert due.due_on is not None
    assert due.days_left == (due.due_on - today).days


def test_a_request_is_overdue_the_moment_its_last_day_is_over_there(open_desk: OpenDesk, clock: Clock) -> None:
    desk = open_desk(clock=clock)
    desk.change_settings(DeskSettings(time_zone="America/Los_Angeles"))
    request = enter(desk, received_on=date(2026, 10, 2))  # due on Monday, 2 November
    clock.now = datetime(2026, 11, 3, 7, 59, tzinfo=UTC)
    assert desk.register.deadline(request).pace is Pace.DUE_SOON
    clock.step(minutes=1)
    assert desk.register.deadline(request).pace is Pace.OVERDUE


# What the desk must not overlook


def test_what_is_due_says_what_is_overdue_and_due_soon_most_urgent_first_and_counts_the_rest(
    desk: PrivacyDesk, clock: Clock
) -> None:
    nothing = desk.due()
    assert (nothing.overdue, nothing.due_soon) == ((), ())
    assert (nothing.waiting, nothing.paused, nothing.open, nothing.measures_to_review) == (0, 0, 0, 0)
    enter(desk)
    late, later = enter(desk, received_on=date(2026, 9, 14)), enter(desk, received_on=date(2026, 9, 1))
    soon, today = enter(desk, received_on=date(2026, 10, 9)), enter(desk, received_on=date(2026, 10, 2))
    eight_days_left = enter(desk, received_on=date(2026, 10, 10))  # due on the tenth, a Tuesday
    for _ in range(2):
        desk.register.ask_identity(enter(desk, received_on=date(2026, 10, 9)))
    desk.register.pause(enter(desk, received_on=date(2026, 10, 9)), "asked which one")
    settle(desk, enter(desk, received_on=date(2026, 9, 1)))
    due = desk.due()
    assert [request for request, _ in due.overdue] == [later, late]
    assert [request for request, _ in due.due_soon] == [today, soon]
    assert [deadline.days_left for _, deadline in due.due_soon] == [0, 7]
    assert (due.waiting, due.paused, due.open) == (2, 1, 9)
    assert eight_days_left not in [request for request, _ in due.due_soon]
    for request, deadline in (*due.overdue, *due.due_soon):
        assert desk.register.deadline(request) == deadline


def test_a_measure_is_to_be_reviewed_from_its_day_on_until_it_is_lifted(
    desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock
) -> None:
    hold = desk.hold("claim before the court", subject=CANDIDATE, name="claim-7", review_on=date(2026, 11, 4))
    desk.suppress("objected", subject=CANDIDATE, name="objection-1", review_on=date(2026, 12, 1))
    desk.restrict("accuracy contested", subject=ANOTHER, name="contest-1")
    clock.step(days=1)
    assert desk.due().measures_to_review == 0
    clock.step(days=1)
    assert desk.due().measures_to_review == 1
    clock.step(days=30)
    assert desk.due().measures_to_review == 2
    desk.lift(hold, reason="the claim is settled")
    assert desk.due().measures_to_review == 1
    assert open_desk("acme-corp", clock=clock).due().measures_to_review == 0


# What stays on record


def test_every_step_stays_in_the_history_and_the_trail_with_who_when_and_what_became_of_what(
    desk: PrivacyDesk, omar: PrivacyDesk, clock: Clock, database: Database
) -> None:
    began = clock.now
    request = enter(desk)
    steps: list[tuple[PrivacyDesk, Act, dict[str, tuple[str | None, str | None]]]] = [
        (desk, Act.REGISTER, {"type": (None, "access"), "status": (None, "received"), "received_on": (None, "2026-11-02")}),
        (omar, Act.NAME_SUBJECT, {"subject": (None, "candidate c-8")}),
        (desk, Act.ASK_IDENTITY, {"status": ("received", "identity pending"), "identity_asked_on": (None, "2026-11-04")}),
        (omar, Act.FAIL_IDENTITY, {"identity": (None, f"not confirmed: {METHOD}")}),
        (desk, Act.CONFIRM_IDENTITY, {
            "status": ("identity pending", "in progress"),
            "identity_method": (None, METHOD.value),
            "identity_confirmed_on": (None, "2026-11-06"),
        }),
        (omar, Act.EXTEND, {"extended_on": (None, "2026-11-07"), "extension_reason": (None, "many agents to ask")}),
        (desk, Act.PAUSE, {"pauses": (None, "2026-11-08 to …"), "ground": (None, "asked which one")}),
        (omar, Act.RESUME, {"pauses": ("2026-11-08 to …", "2026-11-08 to 2026-11-09")}),
        (desk, Act.ANSWER, {"status": ("in progress", "answered"), "closing_note": (None, "sent by post")}),
    ]  # fmt: skip
    for by, act, _ in steps[1:]:
        clock.step(days=1)
        request = STEPS[act](by, request)
    found = history(database, request)
    assert [(one.version, one.at, one.by, one.act) for one in found] == [
        (number, began + timedelta(days=number - 1), by.by, act.value)
        for number, (by, act, _) in enumerate(steps, start=1)
    ]
    assert [one.changed for one in found] == [changed for _, _, changed in steps]
    assert desk.register.history(request) == found
    assert trail(database, request.reference) == [
        (by.by, f"request {act}", began + timedelta(days=days), "c-8" if days else None)
        for days, (by, act, _) in enumerate(steps)
    ]
    assert (request.version, request.changed_by, request.changed_at) == (9, "user:ines", clock.now)
    assert [entry.act for entry in desk.trail(reference=request.reference)] == [
        f"request {act}" for _, act, _ in steps
    ][::-1]
    assert desk.verify_trail().broken is None
    require_whole(database)


def test_without_a_clock_of_its_own_a_desk_goes_by_the_databases(
    open_desk: OpenDesk, known: None, database: Database
) -> None:
    ((began, today),) = execute(database, "SELECT now(), (now() AT TIME ZONE 'UTC')::date - 1")
    desk = open_desk()
    request = desk.register.confirm_identity(enter(desk, received_on=today, subject=CANDIDATE), METHOD)
    first, second = [one.at for one in history(database, request)]
    lines = [at for _, _, at, _ in trail(database, request.reference)]
    ((ended,),) = execute(database, "SELECT now()")
    assert began < first <= lines[0] < second <= lines[1] < ended
    assert request.changed_at == second
    require_whole(database)


def test_a_refusal_a_withdrawal_and_a_repeat_are_in_the_history_with_ground_reason_and_original(
    desk: PrivacyDesk, database: Database
) -> None:
    first = enter(desk, received_on=date(2025, 12, 31))
    expected = {
        Act.REFUSE: {
            "ground": (None, "excessive"),
            "closing_note": (None, "the fifth"),
            "status": ("received", "refused"),
        },
        Act.WITHDRAW: {"closing_note": (None, "changed their mind"), "status": ("received", "withdrawn")},
        Act.DUPLICATE: {"duplicate_of": (None, first.reference), "status": ("received", "duplicate")},
    }
    for act, changed in expected.items():
        request = STEPS[act](desk, enter(desk))
        assert history(database, request)[-1].changed == changed
    require_whole(database)


def test_a_corrected_subject_is_in_the_history_with_whom_it_was_thought_to_be(
    desk: PrivacyDesk, database: Database
) -> None:
    request = desk.register.name_subject(enter(desk, subject=CANDIDATE), ANOTHER)
    assert [one.changed.get("subject") for one in history(database, request)] == [
        (None, "candidate c-81"),
        ("candidate c-81", "candidate c-8"),
    ]


def test_who_asked_stands_in_the_request_and_nowhere_else(desk: PrivacyDesk, database: Database) -> None:
    enter(desk, received_on=date(2025, 12, 31))
    for closing in CLOSING:
        request = enter(desk, subject=CANDIDATE)
        for act in (
            Act.ASK_IDENTITY,
            Act.FAIL_IDENTITY,
            Act.CONFIRM_IDENTITY,
            Act.EXTEND,
            Act.PAUSE,
            Act.RESUME,
            closing,
        ):
            request = STEPS[act](desk, request)
    with pytest.raises(Refused):
        desk.register.withdraw(request, "once more")
    assert traces(database, "Quist7f3a") == ["rights_request"]


FORBIDDEN = """
    UPDATE rights_request_change SET by = 'user:omar'
    UPDATE rights_request_change SET changed = '{}'
    UPDATE rights_request_change SET at = at
    DELETE FROM rights_request_change
    TRUNCATE rights_request_change
    UPDATE trail SET by = 'user:omar'
    UPDATE trail SET reason = NULL
    DELETE FROM trail
    TRUNCATE trail
    INSERT INTO trail SELECT * FROM trail ON CONFLICT (org_id, number) DO UPDATE SET by = 'user:omar'
    MERGE INTO trail USING trail AS old ON old.number = trail.number WHEN MATCHED THEN DELETE
    DELETE FROM rights_request
    TRUNCATE rights_request CASCADE
    UPDATE rights_request SET reference = 'R-2026-0009'
    UPDATE rights_request SET type = 'erasure'
    UPDATE rights_request SET received_on = received_on + 1
    UPDATE rights_request SET request_id = gen_random_uuid()
"""


def test_the_applications_role_can_neither_change_nor_take_away_what_is_on_record(
    desk: PrivacyDesk, database: Database
) -> None:
    enter(desk)
    before = snapshot(database)
    with database.connect(database.application) as connection:
        for statement in FORBIDDEN.strip().splitlines():
            connection.execute("SET LOCAL memory.org_id = 'acme'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
            connection.rollback()
    assert snapshot(database) == before


# Two officers at once


def test_a_step_on_a_request_that_has_changed_is_refused_and_says_who_changed_it_when_and_to_what(
    desk: PrivacyDesk, omar: PrivacyDesk, clock: Clock, database: Database
) -> None:
    enter(desk, received_on=date(2025, 12, 31))
    seen = enter(desk, subject=CANDIDATE)
    clock.step(hours=1, minutes=5)
    omar.register.ask_identity(seen)
    clock.step(hours=1)
    before = snapshot(database)
    for step in STEPS.values():
        with pytest.raises(ChangedMeanwhile) as caught:
            step(desk, seen)
        assert (caught.value.rule, caught.value.field) == ("it_is_as_it_was_looked_at", "request")
        for word in (seen.reference, "user:omar", "2026-11-02 10:05", "identity pending", "nothing was done"):
            assert word in str(caught.value)
    for step, version in product(STEPS.values(), (0, -1, 3)):
        with pytest.raises(ChangedMeanwhile):
            step(desk, replace(seen, version=version))
    assert snapshot(database) == before


@pytest.mark.parametrize(
    "acts",
    [
        (Act.WITHDRAW, Act.REFUSE),
        (Act.ASK_IDENTITY, Act.ASK_IDENTITY),
        (Act.CONFIRM_IDENTITY, Act.WITHDRAW),
        (Act.PAUSE, Act.EXTEND),
        (Act.NAME_SUBJECT, Act.DUPLICATE),
    ],
)
def test_of_two_officers_who_take_a_step_at_once_one_wins_and_the_other_is_told_by_whom(
    desk: PrivacyDesk, omar: PrivacyDesk, clock: Clock, database: Database, acts: tuple[Act, Act]
) -> None:
    enter(desk, received_on=date(2025, 12, 31))
    for _ in range(4):
        seen = enter(desk)
        done = at_once(
            *(
                lambda by=by, act=act, seen=seen: STEPS[act](by, seen)
                for by, act in zip((desk, omar), acts, strict=True)
            )
        )
        (winner,) = [one for one in done if isinstance(one, RightsRequest)]
        (loser,) = [one for one in done if isinstance(one, ChangedMeanwhile)]
        assert winner == desk.register.request(seen.reference)
        assert winner.version == 2
        assert f"{winner.changed_by} at {clock.now:%Y-%m-%d %H:%M} UTC" in str(loser)
        if winner.status.is_open:
            settle(desk, winner)
    require_whole(database)
    assert desk.verify_trail().broken is None


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Let each act run in a thread, all from one moment on; returns what each returned or was refused with."""
    start = Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        start.wait(30)
        try:
            return act()
        except MemoryCoreError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def test_of_two_requests_of_a_type_about_a_subject_that_are_entered_at_once_one_wins(
    desk: PrivacyDesk, omar: PrivacyDesk, database: Database
) -> None:
    for _ in range(4):
        done = at_once(*(lambda by=by: enter(by, subject=CANDIDATE) for by in (desk, omar, desk, omar)))
        (winner,) = [one for one in done if isinstance(one, RightsRequest)]
        others = [one for one in done if isinstance(one, Refused)]
        assert {one.rule for one in others} == {"one_open_request_of_a_type"}
        assert all(winner.reference in str(one) for one in others)
        assert len(others) == 3
        assert desk.register.every(only_open=True) == [winner]
        settle(desk, winner)
    require_whole(database)


def test_of_two_requests_in_which_a_subject_is_named_at_once_one_wins(
    desk: PrivacyDesk, omar: PrivacyDesk, database: Database
) -> None:
    for _ in range(4):
        one, other = enter(desk), enter(desk)
        done = at_once(
            lambda one=one: desk.register.name_subject(one, CANDIDATE),
            lambda other=other: omar.register.name_subject(other, CANDIDATE),
            lambda: enter(desk, subject=CANDIDATE),
        )
        (winner,) = [one for one in done if isinstance(one, RightsRequest)]
        assert [one.rule for one in done if isinstance(one, Refused)] == ["one_open_request_of_a_type"] * 2
        about = [request for request in desk.register.every(only_open=True) if request.subject == CANDIDATE]
        assert about == [winner]
        settle(desk, winner)
    require_whole(database)


def test_references_never_collide_however_many_are_entered_at_once(
    open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    desks = [open_desk(org_id, by=f"user:u{n}", clock=clock) for n in range(4) for org_id in ("acme", "acme-corp")]
    done = at_once(*(lambda by=by: [enter(by).reference for _ in range(4)] for by in desks))
    for org_id in (0, 1):
        found = [reference for references in done[org_id::2] for reference in references]
        assert sorted(found) == [f"R-2026-{number:04d}" for number in range(1, 17)]
    require_whole(database)
    assert desks[0].verify_trail().lines == 16


def test_a_new_organisations_first_request_and_first_look_at_once_never_wait_in_a_ring(
    open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    desk, other = open_desk(clock=clock), open_desk(by="user:omar", clock=clock)
    with ThreadPoolExecutor(2) as threads:
        with database.connect() as somebody:
            somebody.execute("LOCK TABLE trail IN ACCESS EXCLUSIVE MODE")
            look = threads.submit(other.held, CANDIDATE)
            await_lock_waits(database, 1)
            entering = threads.submit(enter, desk)
            await_lock_waits(database, 2)
        assert entering.result(30).reference == "R-2026-0001"
        assert look.result(30).memories == ()


# Isolation


def test_another_organisation_sees_nothing_of_a_register_and_finds_none_of_its_requests(
    desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock
) -> None:
    request = enter(desk, subject=CANDIDATE, received_on=date(2026, 9, 1))
    for org_id in ("acme-corp", "acm", "ACME"):
        other = open_desk(org_id, clock=clock)
        assert other.register.every() == other.trail() == []
        assert (other.due().open, other.due().overdue) == (0, ())
        assert refused(lambda other=other: other.register.request(request.reference)).rule == "request_exists"
        assert request.reference in str(refused(lambda other=other: other.register.request(request.reference)))
    assert enter(open_desk("acme-corp", clock=clock), subject=CANDIDATE).subject == CANDIDATE


def test_another_organisation_reads_neither_requests_nor_histories_nor_trails_in_sql(
    desk: PrivacyDesk, database: Database
) -> None:
    request = enter(desk, subject=CANDIDATE)
    assert history(database, request, org_id="acme-corp") == []
    with database.connect(database.application) as connection:
        for org_id, seen in (("acme", 1), ("acme-corp", 0), ("", 0)):
            connection.execute(f"SET LOCAL memory.org_id = '{org_id}'")
            for table in ("rights_request", "rights_request_change", "trail"):
                assert len(connection.execute(f"SELECT * FROM {table}").fetchall()) == seen


@pytest.mark.parametrize("has_one_of_that_reference", [False, True])
def test_a_request_of_another_organisation_cannot_be_acted_on(
    desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock, database: Database, has_one_of_that_reference: bool
) -> None:
    other = open_desk("acme-corp", clock=clock)
    enter(other, received_on=date(2025, 12, 31))
    request = enter(desk, subject=CANDIDATE)
    if has_one_of_that_reference:
        assert enter(other, subject=CANDIDATE).reference == request.reference
    before = snapshot(database)
    errors = {act: refused(lambda step=step: step(other, request)) for act, step in STEPS.items()}
    assert snapshot(database) == before
    assert {act: error.rule for act, error in errors.items()} == dict.fromkeys(STEPS, "request_exists")


def test_no_request_is_a_repeat_of_another_organisations(
    desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    other = open_desk("acme-corp", clock=clock)
    for _ in range(2):
        elsewhere = enter(other)
    request = enter(desk)
    before = snapshot(database)
    assert refused(lambda: desk.register.mark_duplicate(request, elsewhere.reference)).rule == "request_exists"
    assert snapshot(database) == before


# Any sequence of steps

ON_RECORD = """
    SELECT r.version, r.status, r::text,
        ARRAY(SELECT c::text FROM rights_request_change c
              WHERE (c.org_id, c.request_id) = (r.org_id, r.request_id) ORDER BY c.version),
        ARRAY(SELECT t::text FROM trail t WHERE t.org_id = r.org_id ORDER BY t.number)
    FROM rights_request r WHERE r.request_id = %s
"""
sequences = st.lists(
    st.tuples(st.sampled_from(list(STEPS)), st.booleans(), st.sampled_from([0, 0, 1, 20])), min_size=3, max_size=10
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=sequences)
def test_whatever_is_tried_in_whatever_order_each_step_is_refused_whole_or_taken_whole(
    desk: PrivacyDesk,
    omar: PrivacyDesk,
    open_store: OpenStore,
    clock: Clock,
    database: Database,
    steps: list[tuple[Act, bool, int]],
) -> None:
    emptied(database)
    clock.now = datetime(2026, 11, 2, 9, tzinfo=UTC)
    observe(open_store(clock=clock), "Could start in May.", subject=ANOTHER)
    enter(desk, received_on=date(2025, 12, 31))
    seen = [enter(desk)]
    with database.connect(autocommit=True) as watching:
        for act, stale, days in steps:
            clock.step(days=days)
            (before,) = watching.execute(ON_RECORD, (seen[0].request_id,)).fetchall()
            given = seen[0] if stale else seen[-1]
            try:
                after = STEPS[act](omar if stale else desk, given)
            except Refused:
                assert watching.execute(ON_RECORD, (seen[0].request_id,)).fetchall() == [before]
                continue
            ((version, status, _, steps_taken, lines),) = watching.execute(ON_RECORD, (seen[0].request_id,)).fetchall()
            assert given == seen[-1], "a step was taken on what somebody else had changed"
            assert Status(before[1]).is_open, "a closed request was opened again"
            assert version == after.version == before[0] + 1
            assert status == after.status
            assert (after.closed_at is None) == after.status.is_open == (act not in CLOSING)
            assert (steps_taken[:-1], lines[:-1]) == (before[3], before[4])
            assert act in steps_taken[-1]
            assert f"request {act}" in lines[-1]
            assert desk.register.request(after.reference) == after
            assert desk.register.deadline(after).pace in Pace
            seen.append(after)
