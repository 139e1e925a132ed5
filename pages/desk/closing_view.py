"""How a request ends."""

from __future__ import annotations

import streamlit as st

from memory_core.privacy import PrivacyDesk
from memory_core.rights import RefusalGround, RequestType, RightsRequest, Status
from memory_core.rules.erasure import MAX_REASON
from pages import Visitor, explained
from pages.desk.acting import act
from pages.desk.words import day

ANSWERED, REFUSED, DUPLICATE, WITHDRAWN = "Answered", "Refused", "Duplicate", "Withdrawn"
KEPT = "It stays in the register. Do not quote what is erased or held."
PACKAGE = "package sent by registered letter, passphrase by telephone"
EXAMPLES = {
    RequestType.ERASURE: "erased on 3 November; certificate sent by letter",
    RequestType.OBJECTION: "nothing new is noted since 3 November; told by letter",
    RequestType.RESTRICTION: "kept and not used since 3 November; told by letter",
    RequestType.RECTIFICATION: "corrected on 3 November; told by letter",
}
NOTE = "closing note"
GONE = {
    Status.ANSWERED: "It was answered",
    Status.REFUSED: "It was refused",
    Status.DUPLICATE: "It was closed as a duplicate",
    Status.WITHDRAWN: "It was withdrawn",
}


def closing(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str, *, caution: str | None) -> None:
    """Ask how it ends, and close it; a closed request stays closed."""
    ending = st.segmented_control(
        "How it ends",
        [ANSWERED, REFUSED, DUPLICATE, WITHDRAWN],
        default=ANSWERED,
        required=True,
        label_visibility="collapsed",
        key=f"ending {place}",
    )
    if ending == ANSWERED:
        answered(visitor, desk, request, place, caution)
    elif ending == REFUSED:
        refused(visitor, desk, request, place)
    elif ending == DUPLICATE:
        duplicate(visitor, desk, request, place)
    else:
        withdrawn(visitor, desk, request, place)


def answered(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str, caution: str | None) -> None:
    if request.identity_confirmed_on is None:
        st.caption("It can be answered once the identity is confirmed.")
        return
    if caution:
        st.warning(caution)
    with st.form(f"answered {place}", border=False):
        note = noted("What the answer was", f"such as: {EXAMPLES.get(request.type, PACKAGE)}", place)
        pressed = st.form_submit_button(
            "Close as answered", type="secondary" if caution else "primary", icon=":material/check:"
        )
    if pressed:
        act(visitor, lambda: desk.register.answer(request, note.strip()), done="closed as answered.", typed=note)


def refused(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str) -> None:
    with st.form(f"refused {place}", border=False):
        ground = st.selectbox(
            "Ground",
            list(RefusalGround),
            index=None,
            placeholder="choose one; it is the organisation's to prove",
            format_func=lambda one: one.value.capitalize(),
            key=f"ground {place}",
        )
        note = noted(
            "What the person was told", "such as: third request within a month, nothing has changed since", place
        )
        told = st.checkbox(
            "The person was told why, and of the right to complain to the authority and to go to court",
            key=f"complaint {place}",
        )
        pressed = st.form_submit_button("Close as refused", type="primary", icon=":material/block:")
    if pressed:
        act(
            visitor,
            lambda: desk.register.refuse(request, ground=ground or "", note=note.strip(), complaint_told=told),
            done="closed as refused.",
            typed=note,
        )


def duplicate(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str) -> None:
    with explained():
        others = [
            one
            for one in desk.register.every()
            if one.type is request.type and one.request_id != request.request_id and one.status is not Status.DUPLICATE
        ]
    if not others:
        st.caption("There is no other request of this right.")
        return
    others.sort(key=lambda one: one.subject is None or one.subject != request.subject)
    told = {one.reference: f"{one.reference}, received {day(one.received_on)}, {one.status.value}" for one in others}
    with st.form(f"duplicate {place}", border=False):
        of = st.selectbox(
            "It repeats", list(told), format_func=lambda one: told.get(one, one), key=f"duplicate of {place}"
        )
        pressed = st.form_submit_button("Close as a duplicate", type="primary", icon=":material/content_copy:")
    if pressed:
        act(visitor, lambda: desk.register.mark_duplicate(request, of), done=f"closed as a duplicate of {of}.")


def withdrawn(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str) -> None:
    with st.form(f"withdrawn {place}", border=False):
        note = noted("How it was taken back", "such as: by e-mail of 3 November", place)
        pressed = st.form_submit_button("Close as withdrawn", type="primary", icon=":material/undo:")
    if pressed:
        act(visitor, lambda: desk.register.withdraw(request, note.strip()), done="closed as withdrawn.", typed=note)


def noted(label: str, example: str, place: str) -> str:
    """Ask for the closing note."""
    note = st.text_area(label, max_chars=MAX_REASON, placeholder=example, height=90, key=f"{NOTE} {place} {label}")
    st.caption(KEPT)
    return note


def typed(place: str) -> str:
    """Return what was typed to close a request that somebody else has closed meanwhile."""
    notes = [st.session_state[name] for name in st.session_state if str(name).startswith(f"{NOTE} {place} ")]
    return "\n".join(str(note) for note in notes if note)


def closed(request: RightsRequest) -> None:
    """Say how a closed request ended."""
    when = f" on {request.closed_at:%Y-%m-%d} at {request.closed_at:%H:%M} UTC" if request.closed_at else ""
    ground = f", on the ground: {request.ground.value}" if request.ground else ""
    of = f" of {request.duplicate_of}" if request.duplicate_of else ""
    st.success(f"**{GONE[request.status]}{of}**{when}{ground}. Should they ask again, enter a new request.")
    if request.closing_note:
        st.text(request.closing_note)
