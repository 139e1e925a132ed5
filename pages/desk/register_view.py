"""The list of requests: what must not be overlooked first."""

from __future__ import annotations

from datetime import date

import streamlit as st

from memory_core.errors import Refused
from memory_core.privacy import Due, PrivacyDesk
from memory_core.rights import RequestType, RightsRequest
from memory_core.roles import Act
from memory_core.rules.deadlines import Deadline, Pace
from pages import Visitor, explained, figures, plain, safe_frame
from pages.desk import second_view
from pages.desk.acting import open_request, tell
from pages.desk.picker import digest
from pages.desk.words import COLOURS, day, left, right

ORDER = (Pace.OVERDUE, Pace.DUE_SOON, Pace.RUNNING, Pace.PAUSED, Pace.WAITING)
CHIPS = COLOURS | {Pace.OVERDUE: "#d9363e", Pace.DUE_SOON: "#f5a623"}  # unmistakable on light and dark
COLUMNS = {
    "reference": st.column_config.TextColumn("Reference", width=108, pinned=True),
    "pace": st.column_config.MultiselectColumn(
        "Clock", options=[one.value for one in COLOURS], color=list(CHIPS.values()), width=145
    ),
    "days": st.column_config.NumberColumn("Days left", help="Below 0: overdue", width=75),
    "due": st.column_config.DateColumn("Due", format="D MMM YYYY", width=100),
    "right": st.column_config.TextColumn("Right", width=150),
    "about": st.column_config.TextColumn("About", width=140),
    "asked": st.column_config.TextColumn("Asked by", width=170),
    "status": st.column_config.TextColumn("Status", width=125),
    "received": st.column_config.DateColumn("Received", format="D MMM YYYY", width=100),
}


def show(visitor: Visitor, desk: PrivacyDesk) -> None:
    """Show how many requests are in what hurry, and the list of them; a click opens one."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.title("Requests", width="content")
        if visitor.may(Act.WORK_REGISTER) and st.button("New request", type="primary", icon=":material/add:"):
            st.session_state["registering"] = visitor.org_id
            st.rerun()
    tell()
    second_view.show(visitor, desk)
    with explained():
        due = desk.due()
    urgency(due)
    figures(
        [
            ("Open", f"{due.open:,}", "Somebody waits for an answer."),
            ("Overdue", f"{len(due.overdue):,}", "The due day is over."),
            ("Due in 7 days", f"{len(due.due_soon):,}", "Seven days or fewer are left."),
            ("Identity awaited", f"{due.waiting:,}", "The clock starts when it is confirmed."),
            ("Paused", f"{due.paused:,}", "The clock stands still until it is resumed."),
        ]
    )
    only_open, rights = filters(visitor, desk)
    with explained():
        found = [one for one in desk.register.every(only_open=only_open) if not rights or one.type in rights]
        waiting = [one for one in found if one.status.is_open]
        clocks = dict(zip((one.reference for one in waiting), desk.register.deadlines(waiting), strict=True))
    if not found:
        nothing(only_open=only_open, filtered=bool(rights))
        return
    found.sort(key=lambda one: urgency_of(clocks.get(one.reference)))
    listed(visitor, found, clocks)


def urgency(due: Due) -> None:
    """Say above everything else what is overdue, and what soon will be."""
    if due.overdue:
        request, clock = due.overdue[0]
        many = len(due.overdue)
        told = "1 request is overdue:" if many == 1 else f"{many:,} requests are overdue, the longest:"
        st.error(f"**{told}** {request.reference}, {left(clock)}.", icon=":material/alarm:")
    if due.due_soon:
        request, clock = due.due_soon[0]
        many = len(due.due_soon)
        told = "1 request is due" if many == 1 else f"{many:,} requests are due"
        first = (
            f"{request.reference} on {day(clock.due_on)}"
            if many == 1
            else f"first {request.reference}, on {day(clock.due_on)}"
        )
        st.warning(f"**{told} within 7 days:** {first}.", icon=":material/schedule:")


def filters(visitor: Visitor, desk: PrivacyDesk) -> tuple[bool, list[RequestType]]:
    """Ask which requests to list, and go to one whose reference is typed."""
    which, types, reference = st.columns([2, 4, 3], vertical_alignment="bottom")
    shown = which.segmented_control("Show", ["Open", "All"], default="Open", required=True, key="requests_shown")
    rights = types.multiselect(
        "Right", list(RequestType), format_func=right, placeholder="every right", key="requests_rights"
    )
    typed = reference.text_input("Go to", placeholder="R-2026-0001", key="requests_go_to").strip().upper()
    if typed:
        with explained():
            try:
                found = desk.register.request(typed)
            except Refused:
                st.warning("No request of this organisation has that reference:")
                plain(typed[:40])
            else:
                del st.session_state["requests_go_to"]
                open_request(found.reference)
    return shown != "All", rights


def nothing(*, only_open: bool, filtered: bool) -> None:
    """Say why the list is empty."""
    if filtered:
        st.info("No request matches; choose other rights, or show all.")
    elif only_open:
        st.info(
            "**Nobody waits for an answer.** When somebody asks for their data, objects, or wants something erased or put "
            "right, enter it here on the day it comes in, whichever way it came: the month runs from that day, not from the "
            "day it is entered.",
            icon=":material/inbox:",
        )
    else:
        st.info("No request was ever entered.", icon=":material/inbox:")


def urgency_of(clock: Deadline | None) -> tuple[int, date]:
    """Order by hurry: what is overdue longest first, what is closed last."""
    if clock is None:
        return len(ORDER), date.max
    return ORDER.index(clock.pace), clock.due_on or date.max


def listed(visitor: Visitor, found: list[RightsRequest], clocks: dict[str, Deadline]) -> None:
    """Show the requests as a table, of which a tick opens one; a click on a heading sorts, and opens none."""
    references = [one.reference for one in found]
    picked = st.dataframe(
        safe_frame([row(one, clocks.get(one.reference)) for one in found]),
        hide_index=True,
        placeholder="–",
        height=min(len(found), 15) * 35 + 38,
        column_config=COLUMNS,
        on_select="rerun",
        selection_mode="single-row",
        key=f"register {visitor.org_id} {digest(references)} {st.session_state.get('requests_visit', 0)}",
    )["selection"]
    rows = picked["rows"]
    st.caption(f"{len(found):,} listed, most urgent first. Tick one to open it.")
    if rows and rows[0] < len(found):
        st.session_state["requests_visit"] = (
            st.session_state.get("requests_visit", 0) + 1
        )  # nothing is ticked on return
        open_request(references[rows[0]])


def row(one: RightsRequest, clock: Deadline | None) -> dict[str, object]:
    """Return a request as a row; a closed one has no clock."""
    return {
        "reference": one.reference,
        "pace": [clock.pace.value] if clock else [],
        "days": clock.days_left if clock else None,
        "due": clock.due_on if clock else None,
        "right": right(one.type),
        "about": str(one.subject) if one.subject else "still unknown",
        "asked": one.asked_by or "",
        "status": one.status.value,
        "received": one.received_on,
    }
