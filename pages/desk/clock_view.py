"""A request's clock: when it began, when it ends, and what may be done to it."""

from __future__ import annotations

import streamlit as st

from memory_core.privacy import PrivacyDesk
from memory_core.rights import DeskSettings, RightsRequest
from memory_core.rules.deadlines import Deadline, Pace
from memory_core.rules.erasure import MAX_REASON
from memory_core.rules.jurisdiction import Regime, law_of
from pages import Visitor
from pages.desk.acting import act
from pages.desk.words import day

CAUTION = {
    Regime.EU_GDPR: (
        "The GDPR has no pause of its own. It needs a ground that the authority would accept, such as much data held and a "
        "person who was asked, at once, what exactly they want (recital 63). If in doubt, let it run, or extend it."
    ),
    Regime.UK_GDPR: (
        "The UK GDPR lets the clock stand while you wait for what you reasonably need to know to answer, such as what "
        "exactly they want (Art. 12A)."
    ),
}


def show(
    visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, clock: Deadline, settings: DeskSettings, place: str
) -> None:
    """Show the dates, and let the clock be extended, paused or resumed."""
    rows = [("Started", day(clock.starts_on)), ("Due", day(clock.due_on))]
    if request.extended_on is not None:
        rows.append(("Extended", day(request.extended_on)))
    rows += [("Paused", f"{day(one.since)} to {day(one.until) if one.until else 'now'}") for one in request.pauses]
    for name, value in rows:
        with st.container(horizontal=True, gap="small"):
            st.caption(name, width=72)
            st.text(value, width="stretch")
    if request.extension_reason is not None:
        st.caption("Extended because:")
        st.text(request.extension_reason)
    with st.container(horizontal=True):
        if clock.extend_by is not None:
            with st.popover("Extend …", icon=":material/more_time:"):
                extend(visitor, desk, request, clock, place)
        if clock.pace is Pace.PAUSED or any(one.until is None for one in request.pauses):
            if st.button("Resume", icon=":material/play_arrow:", key=f"resume {place}"):
                act(visitor, lambda: desk.register.resume(request), done="the clock goes on.")
        elif clock.pace in (Pace.RUNNING, Pace.DUE_SOON):
            with st.popover("Pause …", icon=":material/pause:"):
                st.caption(CAUTION[law_of(settings.jurisdiction)])
                pause(visitor, desk, request, place)
    if clock.extend_by is not None:
        st.caption(f"An extension must be decided, and the person told, by {day(clock.extend_by)}.")
    elif clock.pace is Pace.OVERDUE and request.extended_on is None:
        st.caption("It is too late to extend it.")
    if settings.jurisdiction is None:
        st.caption("No country is set, so only weekends are off, and no public holiday moves the due day.")


def extend(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, clock: Deadline, place: str) -> None:
    """Ask why two months more are needed."""
    with st.form(f"extension {place}", border=False):
        reason = st.text_area(
            "Why two months more are needed",
            max_chars=MAX_REASON,
            placeholder="such as: several requests at once, and much to look through",
            key=f"extension reason {place}",
        )
        st.caption(
            f"Only for complex or many requests (Art. 12(3)). Tell the person, and why, by {day(clock.extend_by)}. "
            "Do not quote what is erased or held."
        )
        pressed = st.form_submit_button("Extend by two months", type="primary")
    if pressed:
        act(
            visitor,
            lambda: desk.register.extend(request, reason.strip()),
            done="extended. Tell the person now.",
            typed=reason,
        )


def pause(visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str) -> None:
    """Ask on what ground the clock is to stand."""
    with st.form(f"pause {place}", border=False):
        reason = st.text_input(
            "Ground", max_chars=MAX_REASON, placeholder="such as: asked which of two applications they mean"
        )
        pressed = st.form_submit_button("Pause the clock", type="primary")
    if pressed:
        act(
            visitor,
            lambda: desk.register.pause(request, reason.strip()),
            done="the clock is paused.",
            typed=reason,
        )
