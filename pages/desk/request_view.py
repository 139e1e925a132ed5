"""One request: how it stands, what to do next, how it ends, and everything linked to it."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from memory_core.errors import Refused
from memory_core.privacy import PrivacyDesk
from memory_core.rights import DeskSettings, Measure, RequestType, RightsRequest, TrailEntry
from memory_core.roles import Act
from memory_core.rules.deadlines import Deadline, Pace
from memory_core.rules.requests import Act as Step
from pages import Visitor, explained, name_of, plain
from pages.desk import access_view, clock_view, closing_view, linked_view
from pages.desk.acting import WORKING_ON, act, as_shown, open_request, tell, tell_change
from pages.desk.identity_view import identity
from pages.desk.picker import picked_subject
from pages.desk.words import COLOURS, WANTS, day, right, standing

MANY = 5000  # each look at a package leaves a line
PACKAGED = (RequestType.ACCESS, RequestType.PORTABILITY)
WORK = {
    RequestType.ERASURE: "See what is held, look for what else may be theirs, and erase it under this reference.",
    RequestType.OBJECTION: "See what is held, and stop new memories, or erase what there is, under this reference.",
    RequestType.RESTRICTION: "See what is held, and restrict all of it or single memories under this reference.",
    RequestType.RECTIFICATION: "Find what is wrong, and correct it or put the person's own words beside it.",
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request with all that the page shows of it, read in one go."""

    request: RightsRequest
    clock: Deadline
    settings: DeskSettings
    trail: list[TrailEntry]  # with this reference, newest first
    measures: list[Measure]  # placed for this request
    handed_out: TrailEntry | None  # when the access package was last prepared for handing out
    failed: bool  # whether it was tried in vain to make sure who asks


def show(visitor: Visitor, desk: PrivacyDesk, reference: str) -> None:
    """Show a request, the next step on top."""
    seen = read(visitor, desk, reference)
    if seen is None:
        st.title("Requests")
        st.warning("No request of this organisation has that reference:")
        plain(reference[:40])
        if st.button("All requests", icon=":material/arrow_back:"):
            open_request(None)
        return
    request = as_shown(visitor, seen.request)
    reviewing = st.session_state.get("reviewing") == (visitor.org_id, request.reference)
    if st.button("Back to the request" if reviewing else "All requests", type="tertiary", icon=":material/arrow_back:"):
        open_request(request.reference if reviewing else None)
    heading(seen)
    tell()
    if request.version != seen.request.version:
        tell_change(
            f"{request.reference} was changed by {request.changed_by} at {request.changed_at:%Y-%m-%d %H:%M} UTC and is "
            f"{request.status} now",
            "" if request.status.is_open else closing_view.typed(f"{visitor.org_id} {request.reference}"),
        )
    if not visitor.may(Act.WORK_REGISTER):
        told(visitor, desk, request, seen, may_work=False)
        linked_view.show(visitor, desk, seen.request, seen.measures, seen.trail)
        return
    if reviewing and request.subject is not None:
        access_view.show(visitor, desk, request.subject, reference=request.reference)
        return
    if request.status.is_open:
        work, facts = st.columns([3, 2], gap="medium")
        with work:
            steps(visitor, desk, request, seen)
        with facts:
            told(visitor, desk, request, seen)
    else:
        closing_view.closed(request)
        told(visitor, desk, request, seen)
    linked_view.show(visitor, desk, seen.request, seen.measures, seen.trail)


def read(visitor: Visitor, desk: PrivacyDesk, reference: str) -> Seen | None:
    """Read a request and what hangs on it; None where there is none of that reference."""
    with explained():
        try:
            request = desk.register.request(reference)
        except Refused:
            return None
        placed: list[Measure] = []
        if visitor.may(Act.LOOK):
            placed = desk.measures(request.subject) if request.subject else desk.measures()
        return Seen(
            request=request,
            clock=desk.register.deadline(request),
            settings=desk.settings(),
            trail=desk.trail(request=request.reference, limit=MANY),
            handed_out=next(iter(desk.trail(request=request.reference, act="export", limit=1)), None),
            measures=[one for one in placed if one.request_reference == request.reference],
            failed=request.identity_confirmed_on is None
            and any(one.act == Step.FAIL_IDENTITY for one in desk.register.history(request)),
        )
    return None


def heading(seen: Seen) -> None:
    """Show which request it is, and how much time is left."""
    request, clock = seen.request, seen.clock
    st.title(f"{request.reference}: {request.type.value}")
    badges = [f":gray-badge[{right(request.type)}: {WANTS[request.type]}]", f":blue-badge[{request.status.value}]"]
    if request.status.is_open:
        badges.append(f":{COLOURS[clock.pace]}-badge[{clock.pace.value}]")
    st.markdown(" ".join(badges))
    if not request.status.is_open:
        return
    if clock.pace is Pace.OVERDUE:
        st.error(standing(clock), icon=":material/alarm:")
    elif clock.pace is Pace.DUE_SOON:
        st.warning(standing(clock), icon=":material/schedule:")
    else:
        st.info(standing(clock), icon=":material/schedule:")


def steps(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, seen: Seen) -> None:
    """Show what is left to do, in the order in which it is done."""
    place = f"{visitor.org_id} {request.reference}"
    number = 1
    if request.subject is None:
        with st.container(border=True):
            st.markdown(f"#### {number}. Say whom it is about")
            name_subject(visitor, desk, request, place)
        number += 1
    if request.identity_confirmed_on is None:
        with st.container(border=True):
            st.markdown(f"#### {number}. Make sure who asks")
            identity(visitor, desk, request, place, overdue=seen.clock.pace is Pace.OVERDUE, failed=seen.failed)
        number += 1
    with st.container(border=True):
        st.markdown(
            f"#### {number}. {'Put the package together' if request.type in PACKAGED else 'Work on the subject'}"
        )
        work(visitor, request, seen)
    with st.container(border=True):
        st.markdown(f"#### {number + 1}. Close it")
        closing_view.closing(visitor, desk, request, place, caution=not_done_yet(seen))


def name_subject(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str) -> None:
    """Let the person be found and named, or another be named instead."""
    subject = picked_subject(visitor, key=f"name {place}")
    if subject is None:
        return
    st.text(name_of(subject))
    if subject == request.subject:
        st.caption("It is about this person already.")
    elif st.button("It is about this person", type="primary", key=f"named {place}"):
        act(visitor, lambda: desk.register.name_subject(request, subject), done="the person is named.")


def work(visitor: Visitor, request: RightsRequest, seen: Seen) -> None:
    """Show where what was asked for is done."""
    if request.subject is None:
        st.caption(
            "It has to be known first whom the request is about. If nothing is held about anybody of that name, say so when "
            "you close it: that is an answer too."
        )
        return
    if request.type in PACKAGED:
        access_view.offer(visitor, request, handed_out=seen.handed_out)
        return
    st.markdown(WORK[request.type])
    if request.identity_confirmed_on is None:
        st.caption("The identity is not confirmed yet: look, but do nothing that cannot be undone.")
    if st.button("Work on the subject", type="primary", icon=":material/person_search:"):
        st.session_state["search_next"] = str(request.subject)
        st.session_state[WORKING_ON] = (visitor.org_id, request.reference)
        st.switch_page("pages/1_Subjects.py")


def not_done_yet(seen: Seen) -> str | None:
    """Say what an answer would claim without its being on record, or None."""
    request, acts = seen.request, {one.act for one in seen.trail}
    if request.subject is None:
        return None
    if request.type is RequestType.ERASURE and "forget" not in acts:
        return "Nothing was erased under this reference yet."
    if request.type is RequestType.RECTIFICATION and not acts & {"correct", "dispute", "forget"}:
        return "Nothing was corrected, disputed or erased under this reference yet."
    if request.type is RequestType.OBJECTION and not acts & {"suppression", "forget"}:
        return "Nothing was stopped or erased under this reference yet."
    if request.type in PACKAGED:
        return None if seen.handed_out else "No package was prepared under this reference yet."
    if request.type is RequestType.RESTRICTION and not seen.measures:
        return "No restriction was placed under this reference yet."
    return None


def told(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, seen: Seen, *, may_work: bool = True) -> None:
    """Show the facts: who asked whom about what, and the clock with what can be done to it."""
    place = f"{visitor.org_id} {request.reference}"
    with st.container(border=True):
        st.markdown("#### Facts")
        fact("Asked by", request.asked_by or "no longer kept")
        fact("Received", day(request.received_on))
        fact("By", request.channel.value)
        fact("About", str(request.subject) if request.subject else "still unknown")
        for name, value in identified(request, failed=seen.failed):
            fact(name, value)
        is_unsure = request.subject is not None and request.identity_confirmed_on is None
        if may_work and request.status.is_open and is_unsure:
            with st.popover("Change whom it is about …", type="tertiary"):
                name_subject(visitor, desk, request, place)
    if may_work and request.status.is_open:
        with st.container(border=True):
            st.markdown("#### Clock")
            clock_view.show(visitor, desk, request, seen.clock, seen.settings, place)


def identified(request: RightsRequest, *, failed: bool) -> list[tuple[str, str]]:
    """Say how it stands with the identity of whoever asked, each part with our name for it."""
    if request.identity_confirmed_on is not None:
        return [("Identity", f"confirmed {day(request.identity_confirmed_on)}"), ("How", str(request.identity_method))]
    if request.identity_asked_on is None:
        return [("Identity", "not confirmed yet")]
    asked = ("Identity", f"asked for {day(request.identity_asked_on)}")
    return [asked, ("So far", "could not be confirmed")] if failed else [asked]


def fact(name: str, value: str) -> None:
    """Show a value as it is beside our name for it."""
    with st.container(horizontal=True, gap="small"):
        st.caption(name, width=72)
        st.text(value, width="stretch")
