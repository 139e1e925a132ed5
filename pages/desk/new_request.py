"""Entering a request that has come in."""

from __future__ import annotations

from datetime import date

import streamlit as st

from memory_core import Subject
from memory_core.errors import Refused
from memory_core.privacy import PrivacyDesk
from memory_core.rights import Channel, RequestType
from memory_core.roles import Act
from memory_core.rules.deadlines import Pace
from pages import Visitor, explained, name_of, plain, require
from pages.desk.acting import TOLD, open_request
from pages.desk.picker import picked_subject
from pages.desk.words import WANTS, day, left, right

FIELDS = ("new right", "new asked by", "new channel", "new received on", "new about", "new subject search")


def show(visitor: Visitor, desk: PrivacyDesk) -> None:
    """Ask what came in, from whom, when and about whom; enter it and open it."""
    with explained():
        today = desk.today()
    if st.button("All requests", type="tertiary", icon=":material/arrow_back:"):
        end()
        st.rerun()
    st.title("New request")
    what, whom = st.columns(2, gap="large")
    with what:
        kind = st.selectbox(
            "Right", list(RequestType), format_func=lambda one: f"{right(one)}: {WANTS[one]}", key=FIELDS[0]
        )
        asked_by = st.text_input(
            "Asked by", max_chars=200, placeholder="who wrote to us: the person, or who acts for them", key=FIELDS[1]
        )
        way, on = st.columns(2)
        channel = way.selectbox(
            "Came in by", list(Channel), index=1, format_func=lambda one: one.value.capitalize(), key=FIELDS[2]
        )
        received_on = on.date_input("Received on", today, max_value=today, format="YYYY-MM-DD", key=FIELDS[3])
        st.caption("The day it reached anybody here. The month runs from that day, not from today.")
    with whom:
        about = st.segmented_control(
            "About whom", ["Search", "Still unknown"], default="Search", required=True, key=FIELDS[4]
        )
        subject = picked_subject(visitor, key="new subject") if about == "Search" else None
        told(subject, about == "Search")
    missing = not asked_by.strip() or (about == "Search" and subject is None)
    if st.button("Enter it", type="primary", icon=":material/check:", disabled=missing):
        require(visitor, Act.WORK_REGISTER)
        if (
            st.session_state.get("registering") == visitor.org_id
        ):  # a second click, while the first is carried out, is none
            enter(desk, kind, asked_by, channel, received_on, subject)
    if missing:
        st.caption("Say who asked, and whom it is about or that this is still unknown.")


def told(subject: Subject | None, searching: bool) -> None:
    """Say whom the request will be about."""
    if subject is not None:
        st.text(f"About {name_of(subject)}")
    elif not searching:
        st.caption(
            "It is entered all the same, so that its clock runs. Name the person as soon as you know; that is needed before "
            "anything can be handed out or erased."
        )


def enter(
    desk: PrivacyDesk, kind: RequestType, asked_by: str, channel: Channel, received_on: date, subject: Subject | None
) -> None:
    """Enter the request, and say when it is due; what was typed stays where it is refused."""
    with explained():
        try:
            request = desk.register.register(
                kind, asked_by=asked_by, channel=channel, received_on=received_on, subject=subject
            )
        except Refused as refused:
            st.error("It was not entered.")
            plain(str(refused))
            return
        end()
        clock = desk.register.deadline(request)
    if clock.pace is Pace.OVERDUE:
        late = left(clock).removesuffix(" late")
        what = f"**{request.reference} is entered, and is overdue already:** it was due on {day(clock.due_on)}, {late} ago."
        st.session_state[TOLD] = ("late", what, "")
    else:
        what = f"**{request.reference} is entered.** The answer is due on {day(clock.due_on)}: {left(clock)}."
        st.session_state[TOLD] = ("done", what, "")
    open_request(request.reference)


def end() -> None:
    """Leave the form; the next one begins empty."""
    for name in ("registering", *FIELDS):
        st.session_state.pop(name, None)
