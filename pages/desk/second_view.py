"""What waits for a second officer: exactly what would be done, who asked, and agreeing to it or not."""

from __future__ import annotations

from uuid import UUID

import streamlit as st

from memory_core.errors import Refused
from memory_core.privacy import PrivacyDesk
from memory_core.rights import Approval, HeavyAct
from memory_core.roles import Act
from memory_core.units import in_utc
from pages import Visitor, explained, plain, require
from pages.desk.acting import TOLD
from pages.desk.words import many

DOES = {
    HeavyAct.ERASE: "Erase {count}",
    HeavyAct.CORRECT: "Correct {count}",
    HeavyAct.LIFT: "Lift a hold that keeps {count}",
    HeavyAct.RELEASE: "Hand out a package of {count}",
}
DECIDING = "deciding as second officer"  # which organisation's approval, and whether to agree


def show(visitor: Visitor, desk: PrivacyDesk) -> None:
    """List what waits for a second officer and what came of it, where there is anything."""
    with explained():
        found = desk.waiting_for_second()
    if not found:
        return
    may_decide = visitor.may(Act.DECIDE)
    st.subheader("A second officer")
    for one in found:
        with st.container(border=True):
            listed(visitor, desk, one, may_decide=may_decide)


def listed(visitor: Visitor, desk: PrivacyDesk, one: Approval, *, may_decide: bool) -> None:
    """Show one with what exactly would be done, and offer to decide where the visitor may."""
    is_own = one.asked_by == visitor.author
    st.markdown(f"**{what_of(one)}** · {standing_of(one, is_own=is_own)}")
    about = f"About {one.subject}. " if one.subject else ""
    st.text(
        f"{about}Asked for by {one.asked_by} on {in_utc(one.asked_at)} UTC, open until {in_utc(one.expires_at)} UTC."
    )
    plain(one.reason)
    if one.decided_by is not None:
        word = "Agreed to" if one.agreed else "Declined"
        st.text(f"{word} by {one.decided_by} on {in_utc(one.decided_at)} UTC.")
    elif may_decide and not is_own:
        decide(visitor, desk, one)


def what_of(one: Approval) -> str:
    """Say what would be done, in our own words."""
    return DOES[one.act].format(count=many(one.count or 0, "memory", "memories"))


def standing_of(one: Approval, *, is_own: bool) -> str:
    """Say where it stands, to whoever asked and to whoever may decide."""
    if one.agreed is None:
        return "waits for somebody else, since you asked" if is_own else "waits for a decision"
    if one.agreed:
        return "agreed to; do the same again" if is_own else "agreed to, and not done yet"
    return "declined; doing the same again asks anew" if is_own else "declined"


def decide(visitor: Visitor, desk: PrivacyDesk, one: Approval) -> None:
    """Ask for the decision, then once more whether that is meant."""
    chosen: tuple[str, UUID, bool] | None = st.session_state.get(DECIDING)
    deciding = chosen[2] if chosen and chosen[:2] == (visitor.org_id, one.approval_id) else None
    with st.container(horizontal=True):
        if deciding is None:
            for label, agreed in (("Agree …", True), ("Decline …", False)):
                if st.button(label, key=f"{label} {one.approval_id}"):
                    st.session_state[DECIDING] = (visitor.org_id, one.approval_id, agreed)
                    st.rerun()
            return
        label = "Yes, I agree" if deciding else "Yes, I decline"
        if st.button(label, type="primary", key=f"sure {one.approval_id}"):
            st.session_state.pop(DECIDING)
            said(visitor, desk, one, agreed=deciding)
        if st.button("Not now", key=f"not now {one.approval_id}"):
            st.session_state.pop(DECIDING)
            st.rerun()


def said(visitor: Visitor, desk: PrivacyDesk, one: Approval, *, agreed: bool) -> None:
    """Record the decision."""
    require(visitor, Act.DECIDE)
    with explained():
        try:
            desk.decide(one.approval_id, agreed)
        except Refused as refused:
            st.error("Nothing was decided.")
            plain(str(refused))
            return
    what = "Agreed: whoever asked can do it now, once." if agreed else "Declined: nothing was done."
    st.session_state[TOLD] = ("done", what, "")
    st.rerun()
