"""Making sure who asks."""

from __future__ import annotations

import streamlit as st

from memory_core.privacy import PrivacyDesk
from memory_core.rights import IdentityMethod, RightsRequest
from pages import Visitor
from pages.desk.acting import act


def identity(
    visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, place: str, *, overdue: bool, failed: bool
) -> None:
    """Let the identity be confirmed, be asked for, or fail; what was shown for it is never kept."""
    asked = request.identity_asked_on is not None
    if failed:
        st.warning("It could not be confirmed so far. Try another way, or refuse the request on that ground.")
    method = st.selectbox(
        "How it was made sure, or tried" if asked else "How it was made sure",
        list(IdentityMethod),
        index=None,
        placeholder="choose how",
        format_func=lambda one: one.value.capitalize(),
        key=f"method {place}",
    )
    with st.container(horizontal=True):
        confirmed = st.button(
            "Confirmed",
            disabled=method is None,
            type="primary",
            icon=":material/verified_user:",
            key=f"confirm {place}",
        )
        ask = not (asked or overdue) and st.button("Ask for it", icon=":material/help:", key=f"ask {place}")
        in_vain = asked and st.button(
            "Could not be confirmed", disabled=method is None, icon=":material/close:", key=f"fail {place}"
        )
    if overdue and not asked:
        st.caption(
            "**It is overdue:** to ask for proof only now would begin no new month. Make sure by other means, and answer."
        )
    if asked:
        st.caption("The month begins on the day it is confirmed. Never keep a copy of what was shown.")
    else:
        st.caption(
            "Ask only where there is reason to doubt who it is (Art. 12(6)): until it is confirmed the clock stands still. "
            "Ask for no more than you need, and keep no copy."
        )
    if confirmed:
        act(visitor, lambda: desk.register.confirm_identity(request, method or ""), done="the identity is confirmed.")
    elif ask:
        act(
            visitor,
            lambda: desk.register.ask_identity(request),
            done="it is on record that the identity was asked for.",
        )
    elif in_vain:
        act(
            visitor,
            lambda: desk.register.fail_identity(request, method or ""),
            done="it could not be confirmed who asks.",
        )
