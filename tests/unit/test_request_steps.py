from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from memory_core.errors import Refusal
from memory_core.rights import Channel, IdentityMethod, RefusalGround, RequestType, RightsRequest, Status
from memory_core.rules.requests import (
    MAX_NAME,
    Act,
    asker_refusal,
    confirming_refusal,
    refusing_refusal,
    status_after,
    step_refusal,
)

RECEIVED = RightsRequest(
    request_id=UUID(int=1),
    reference="R-2026-0001",
    type=RequestType.ACCESS,
    status=Status.RECEIVED,
    asked_by="Zoë Müller",
    channel=Channel.LETTER,
    subject=None,
    received_on=date(2026, 11, 2),
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
    changed_at=datetime(2026, 11, 2, 9, tzinfo=UTC),
    changed_by="user:ines",
)
PENDING = replace(RECEIVED, status=Status.IDENTITY_PENDING, identity_asked_on=date(2026, 11, 3))
CONFIRMED = {"status": Status.IN_PROGRESS, "identity_confirmed_on": date(2026, 11, 5)}
KNOWN_AT_ONCE = replace(RECEIVED, **CONFIRMED)
KNOWN_AFTER_ASKING = replace(PENDING, **CONFIRMED)
CLOSED = [
    replace(KNOWN_AFTER_ASKING, status=status, closed_at=datetime(2026, 11, 9, tzinfo=UTC))
    for status in Status
    if not status.is_open
]

ANY_TIME = {
    Act.REFUSE: Status.REFUSED,
    Act.DUPLICATE: Status.DUPLICATE,
    Act.WITHDRAW: Status.WITHDRAWN,
}
STAYING = (Act.NAME_SUBJECT, Act.EXTEND, Act.PAUSE, Act.RESUME)
ASKED_TOO_LATE = "identity_is_asked_for_before_it_is_confirmed"

# What each step comes to: the status after it, or the rule that refuses it.
TABLE: list[tuple[str, RightsRequest, dict[Act, Status | str]]] = [
    (
        "received",
        RECEIVED,
        ANY_TIME
        | dict.fromkeys(STAYING, Status.RECEIVED)
        | {
            Act.ASK_IDENTITY: Status.IDENTITY_PENDING,
            Act.CONFIRM_IDENTITY: Status.IN_PROGRESS,
            Act.FAIL_IDENTITY: "identity_fails_after_it_was_asked_for",
            Act.ANSWER: "answered_after_identity",
        },
    ),
    (
        "identity pending",
        PENDING,
        ANY_TIME
        | dict.fromkeys(STAYING, Status.IDENTITY_PENDING)
        | {
            Act.ASK_IDENTITY: "identity_is_asked_for_once",
            Act.CONFIRM_IDENTITY: Status.IN_PROGRESS,
            Act.FAIL_IDENTITY: Status.IDENTITY_PENDING,
            Act.ANSWER: "answered_after_identity",
        },
    ),
    (
        "in progress, nobody asked",
        KNOWN_AT_ONCE,
        ANY_TIME
        | dict.fromkeys(STAYING, Status.IN_PROGRESS)
        | {
            Act.ASK_IDENTITY: ASKED_TOO_LATE,
            Act.CONFIRM_IDENTITY: "identity_is_confirmed_once",
            Act.FAIL_IDENTITY: "identity_fails_after_it_was_asked_for",
            Act.ANSWER: Status.ANSWERED,
        },
    ),
    (
        "in progress after asking",
        KNOWN_AFTER_ASKING,
        ANY_TIME
        | dict.fromkeys(STAYING, Status.IN_PROGRESS)
        | {
            Act.ASK_IDENTITY: ASKED_TOO_LATE,
            Act.CONFIRM_IDENTITY: "identity_is_confirmed_once",
            Act.FAIL_IDENTITY: "identity_is_confirmed_once",
            Act.ANSWER: Status.ANSWERED,
        },
    ),
    *((str(one.status), one, dict.fromkeys(Act, "closed_request_stays_closed")) for one in CLOSED),
]
STEPS = [
    pytest.param(request, act, after, id=f"{act} when {name}")
    for name, request, outcomes in TABLE
    for act, after in outcomes.items()
]


@pytest.mark.parametrize(("request_", "act", "after"), STEPS)
def test_each_step_is_taken_or_refused_by_where_the_request_stands(
    request_: RightsRequest, act: Act, after: Status | str
) -> None:
    refused = step_refusal(request_, act)
    if isinstance(after, Status):
        assert refused is None
        assert status_after(request_, act) is after
    else:
        assert refused is not None
        assert refused.rule == after


def test_the_table_has_every_step_of_every_status() -> None:
    assert {request.status for _, request, _ in TABLE} == set(Status)
    assert all(set(outcomes) | {Act.REGISTER} == set(Act) for _, _, outcomes in TABLE)


@pytest.mark.parametrize("act", [act for act in Act if act is not Act.REGISTER])
@pytest.mark.parametrize("request_", [RECEIVED, PENDING, KNOWN_AT_ONCE, KNOWN_AFTER_ASKING])
def test_a_step_closes_a_request_if_it_says_so_and_only_then(request_: RightsRequest, act: Act) -> None:
    closing = act in (Act.ANSWER, Act.REFUSE, Act.DUPLICATE, Act.WITHDRAW)
    assert status_after(request_, act).is_open != closing


# A refusal says what to do: in the imperative, or by what it waits for.
INSTRUCTION = re.compile(r"\b(register|record|recorded|ask|answer|refuse|withdraw|go on|use|say|tell|remove|at most)\b")
REFUSED_STEPS = [one for one in STEPS if not isinstance(one.values[2], Status)]


@pytest.mark.parametrize(("request_", "act", "rule"), REFUSED_STEPS)
def test_whoever_is_refused_a_step_is_told_what_to_do_instead(request_: RightsRequest, act: Act, rule: str) -> None:
    refused = step_refusal(request_, act)
    assert refused is not None
    assert INSTRUCTION.search(refused.reason), refused.reason
    assert "\n" not in str(refused)


def test_a_refusal_names_the_request_or_the_day_it_is_about() -> None:
    for request, act in ((CLOSED[0], Act.PAUSE), (PENDING, Act.ANSWER)):
        assert "R-2026-0001" in str(step_refusal(request, act))
    assert str(CLOSED[0].status) in str(step_refusal(CLOSED[0], Act.PAUSE))
    assert "2026-11-03" in str(step_refusal(PENDING, Act.ASK_IDENTITY))
    for act in (Act.ASK_IDENTITY, Act.CONFIRM_IDENTITY, Act.FAIL_IDENTITY):
        assert "2026-11-05" in str(step_refusal(KNOWN_AFTER_ASKING, act))


@pytest.mark.parametrize(("request_", "act", "rule"), REFUSED_STEPS)
def test_no_refusal_of_a_step_says_who_asked(request_: RightsRequest, act: Act, rule: str) -> None:
    assert "Zoë" not in str(step_refusal(request_, act))


# What a step is given


@pytest.mark.parametrize("method", list(IdentityMethod))
def test_every_known_method_makes_sure_who_asks_as_member_and_as_word(method: IdentityMethod) -> None:
    assert confirming_refusal(method) is None
    assert confirming_refusal(method.value) is None


@pytest.mark.parametrize("method", [None, "", "passport", "ACCOUNT", 5, ["document seen, not kept"], "a\x00", "\ud800"])
def test_an_unknown_method_is_refused_with_those_that_are_known(method: object) -> None:
    refused = confirming_refusal(method)
    assert refused is not None
    assert (refused.rule, refused.field) == ("method_is_known", "method")
    assert all(known.value in refused.reason for known in IdentityMethod)


GOOD_REFUSAL: dict[str, Any] = {"ground": "excessive", "note": "the fifth this month", "complaint_told": True}


@pytest.mark.parametrize("ground", list(RefusalGround))
def test_a_request_is_refused_on_every_known_ground(ground: RefusalGround) -> None:
    assert refusing_refusal(**{**GOOD_REFUSAL, "ground": ground}) is None
    assert refusing_refusal(**{**GOOD_REFUSAL, "ground": ground.value}) is None


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"ground": None}, "ground_is_known", "ground"),
        ({"ground": ""}, "ground_is_known", "ground"),
        ({"ground": "too much work"}, "ground_is_known", "ground"),
        ({"ground": {"excessive": 1}}, "ground_is_known", "ground"),
        ({"note": None}, "reason_is_given", "note"),
        ({"note": " \u200b\n"}, "reason_is_given", "note"),
        ({"note": "a\x00"}, "reason_is_storable", "note"),
        ({"note": "a\ud800"}, "reason_is_storable", "note"),
        ({"note": "a" * 501}, "reason_length", "note"),
        ({"complaint_told": False}, "refusal_tells_of_the_right_to_complain", "complaint_told"),
        ({"complaint_told": None}, "refusal_tells_of_the_right_to_complain", "complaint_told"),
        ({"complaint_told": "yes"}, "refusal_tells_of_the_right_to_complain", "complaint_told"),
        ({"complaint_told": 1}, "refusal_tells_of_the_right_to_complain", "complaint_told"),
    ],
)
def test_a_refusal_without_ground_reason_or_word_of_the_right_to_complain_is_refused(
    changes: dict[str, Any], rule: str, field: str
) -> None:
    refused = refusing_refusal(**{**GOOD_REFUSAL, **changes})
    assert isinstance(refused, Refusal)
    assert (refused.rule, refused.field) == (rule, field)
    assert INSTRUCTION.search(refused.reason), refused.reason


@pytest.mark.parametrize(
    "asked_by", ["Zoë", "a", "a" * MAX_NAME, "王小明", "Zoe\u200dë", "o'Neil; DROP TABLE", "😀" * MAX_NAME]
)
def test_whoever_has_a_name_may_ask(asked_by: str) -> None:
    assert asker_refusal(asked_by) is None


@pytest.mark.parametrize(
    ("asked_by", "rule"),
    [
        (None, "request_says_who_asked"),
        (5, "request_says_who_asked"),
        (b"Zoe", "request_says_who_asked"),
        ("", "request_says_who_asked"),
        (" \t\u200b\u3164", "request_says_who_asked"),
        ("Zoë\x00", "name_is_storable"),
        ("Zoë\udc80", "name_is_storable"),
        ("a" * (MAX_NAME + 1), "name_length"),
    ],
)
def test_a_request_from_nobody_or_whose_name_cannot_be_stored_is_refused(asked_by: object, rule: str) -> None:
    refused = asker_refusal(asked_by)
    assert refused is not None
    assert (refused.rule, refused.field) == (rule, "asked_by")
    assert INSTRUCTION.search(refused.reason), refused.reason
