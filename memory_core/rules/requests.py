"""What may be done with a rights request next."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal
from memory_core.model import Subject
from memory_core.rights import IdentityMethod, RefusalGround, RequestType, RightsRequest, Status
from memory_core.rules.erasure import reason_refusal

MAX_NAME = 200
REFERENCE = re.compile(r"R-[0-9]{4}-[0-9]{4,9}")


class Act(StrEnum):
    """A step in the life of a request."""

    REGISTER = "registered"
    NAME_SUBJECT = "subject named"
    ASK_IDENTITY = "identity asked for"
    CONFIRM_IDENTITY = "identity confirmed"
    FAIL_IDENTITY = "identity not confirmed"
    EXTEND = "extended"
    PAUSE = "paused"
    RESUME = "resumed"
    ANSWER = "answered"
    REFUSE = "refused"
    DUPLICATE = "marked as duplicate"
    WITHDRAW = "withdrawn"


def step_refusal(request: RightsRequest, act: Act) -> Refusal | None:
    """Refuse a step that a request in this status has no room for."""
    if not request.status.is_open:
        reason = f"{request.reference} is closed ({request.status}); register a new request instead"
        return Refusal(rule="closed_request_stays_closed", field="request", reason=reason)
    if act is Act.ASK_IDENTITY and request.identity_confirmed_on is not None:
        reason = f"was confirmed on {request.identity_confirmed_on}; go on with the request"
        return Refusal(rule="identity_is_asked_for_before_it_is_confirmed", field="identity", reason=reason)
    if act is Act.ASK_IDENTITY and request.identity_asked_on is not None:
        reason = f"was asked for on {request.identity_asked_on} already; record how it came out"
        return Refusal(rule="identity_is_asked_for_once", field="identity", reason=reason)
    if act is Act.CONFIRM_IDENTITY and request.identity_confirmed_on is not None:
        reason = f"was confirmed on {request.identity_confirmed_on} already; go on with the request"
        return Refusal(rule="identity_is_confirmed_once", field="identity", reason=reason)
    if act is Act.FAIL_IDENTITY and request.identity_asked_on is None:
        reason = "was not asked for yet; ask for it first"
        return Refusal(rule="identity_fails_after_it_was_asked_for", field="identity", reason=reason)
    if act is Act.FAIL_IDENTITY and request.identity_confirmed_on is not None:
        reason = f"was confirmed on {request.identity_confirmed_on}; go on with the request"
        return Refusal(rule="identity_is_confirmed_once", field="identity", reason=reason)
    if act is Act.ANSWER and request.identity_confirmed_on is None:
        reason = f"{request.reference} cannot be answered before it is recorded how the identity was made sure"
        return Refusal(rule="answered_after_identity", field="identity", reason=reason)
    return None


def naming_refusal(request: RightsRequest, subject: Subject) -> Refusal | None:
    """Refuse to name another person once it was made sure that whoever asks is the one who was named."""
    if request.subject in (None, subject) or request.identity_confirmed_on is None:
        return None
    reason = (
        f"it was made sure that {request.subject} asks; if that was the wrong person, close {request.reference} as withdrawn, "
        "saying so, and enter it anew with the day on which it was received"
    )
    return Refusal(rule="subject_is_named_before_identity", field="subject", reason=reason)


def duplicate_refusal(request: RightsRequest, original: RightsRequest, repeats: Collection[str]) -> Refusal | None:
    """Refuse to close a request as a repeat of itself, of one that repeats it, of another right or of another person's."""
    if original.request_id == request.request_id:
        why = "is this request itself"
    elif request.reference in repeats:
        why = "is closed as a repeat of this one; somebody must be answered"
    elif original.type is not request.type:
        why = f"is one of {original.type}"
    elif request.subject and original.subject and original.subject != request.subject:
        why = f"is about {original.subject}"
    elif original.status is Status.WITHDRAWN:
        why = "was withdrawn, and so answers nobody"
    else:
        return None
    reason = f"{original.reference} {why}; name the request that it repeats"
    return Refusal(rule="duplicate_repeats_another", field="of", reason=reason)


def confirming_refusal(method: object) -> Refusal | None:
    """Refuse a method of identification that is not known."""
    return _member_refusal(IdentityMethod, method, field="method")


def refusing_refusal(*, ground: object, note: object, complaint_told: object) -> Refusal | None:
    """Refuse a refusal without its ground, its reason, or word of the right to complain."""
    if refused := _member_refusal(RefusalGround, ground, field="ground") or reason_refusal(note, field="note"):
        return refused
    if complaint_told is not True:
        reason = "tell the person why, and that they may complain to the authority and go to court (Art. 12(4))"
        return Refusal(rule="refusal_tells_of_the_right_to_complain", field="complaint_told", reason=reason)
    return None


def acting_refusal(request: RightsRequest, *, needs_identity: bool) -> Refusal | None:
    """Refuse to act for a request that was closed without an answer or, where it matters, before it is sure who asks."""
    if not request.status.is_open and request.status is not Status.ANSWERED:
        reason = f"{request.reference} is closed ({request.status}); nothing is done for it any more"
        return Refusal(rule="nothing_is_done_for_what_was_not_answered", field="reference", reason=reason)
    if needs_identity and request.identity_confirmed_on is None:
        reason = f"record first how it was made sure who asks in {request.reference}"
        return Refusal(rule="acted_on_after_identity", field="reference", reason=reason)
    return None


def release_refusal(request: RightsRequest) -> Refusal | None:
    """Refuse to hand a package out for a request of another right."""
    if request.type in (RequestType.ACCESS, RequestType.PORTABILITY):
        return None
    reason = f"{request.reference} asks for {request.type}; a package answers access or portability"
    return Refusal(rule="package_answers_access", field="reference", reason=reason)


def asker_refusal(asked_by: object) -> Refusal | None:
    """Refuse a request from nobody."""
    if not isinstance(asked_by, str) or is_blank(asked_by):
        return Refusal(rule="request_says_who_asked", field="asked_by", reason="is missing; say who wrote to us")
    if "\x00" in asked_by or has_surrogate(asked_by):
        return Refusal(rule="name_is_storable", field="asked_by", reason="has a NUL or a lone surrogate; remove it")
    if len(asked_by) > MAX_NAME:
        reason = f"has {len(asked_by)} characters; at most {MAX_NAME}"
        return Refusal(rule="name_length", field="asked_by", reason=reason)
    return None


def status_after(request: RightsRequest, act: Act) -> Status:
    """Return where a request stands after a step."""
    closing = {
        Act.ANSWER: Status.ANSWERED,
        Act.REFUSE: Status.REFUSED,
        Act.DUPLICATE: Status.DUPLICATE,
        Act.WITHDRAW: Status.WITHDRAWN,
    }
    if act in closing:
        return closing[act]
    if act is Act.ASK_IDENTITY:
        return Status.IDENTITY_PENDING
    if act is Act.CONFIRM_IDENTITY:
        return Status.IN_PROGRESS
    return request.status


def _member_refusal(words: type[StrEnum], value: object, *, field: str) -> Refusal | None:
    if isinstance(value, str) and value in {word.value for word in words}:
        return None
    return Refusal(rule=f"{field}_is_known", field=field, reason=f"is not known; use {', '.join(words)}")
