"""How a step is taken on a page: asked for its role, told what came of it, nothing typed lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from memory_core.errors import AwaitingSecond, ChangedMeanwhile, Refused
from memory_core.rights import RightsRequest
from memory_core.roles import Act
from pages import Visitor, explained, plain, require

TOLD = "requests_told"
SHOWN = "requests_version"  # of the request that the page showed last
WORKING_ON = "working_on"  # which request of which organisation is worked on, on the page of subjects
ALREADY_OPEN = "requests_opened"  # which request of which organisation the address was opened for


def act(visitor: Visitor, doing: Callable[[], RightsRequest], *, done: str, typed: str = "") -> None:
    """Take a step and run the page again, which then says `done` in our own words; a refusal stays beside what was typed.

    Where somebody else was first, the page shows the request as it is now, with what was `typed` for it.
    """
    require(visitor, Act.WORK_REGISTER)
    with explained():
        try:
            after = doing()
        except ChangedMeanwhile as refused:
            st.session_state[TOLD] = ("changed", refused.reason, typed)
            st.rerun()
        except Refused as refused:
            st.error("Nothing was done.")
            plain(str(refused))
            return
    st.session_state[TOLD] = ("done", f"{after.reference}: {done}", "")
    st.session_state[SHOWN] = (visitor.org_id, after.reference, after.version)
    st.rerun()


def tell() -> None:
    """Say, once, what came of the step before."""
    kind, what, typed = st.session_state.pop(TOLD, ("", "", ""))
    if kind == "done":
        st.success(what, icon=":material/check:")
    elif kind == "late":
        st.error(what, icon=":material/alarm:")
    elif kind == "changed":
        tell_change(what, typed)


def tell_change(what: str, typed: str) -> None:
    """Say who was first, and give back what was typed."""
    st.warning("It was changed since this page showed it. Nothing was done; below is how it stands now.")
    plain(what)
    if typed:
        st.text("What you had typed:")
        plain(typed)


def tell_awaiting(awaiting: AwaitingSecond, what: str) -> None:
    """Say that a second officer was asked, and what happens next: this is no error."""
    st.info(what, icon=":material/group:")
    again = f"They declined it before: {awaiting.declined}. " if awaiting.declined else ""
    st.text(
        f"{again}Asked for on {awaiting.since}; they find it under Requests, until {awaiting.until}. Once they have agreed, "
        "do exactly the same here again: anything else needs another agreement."
    )


def as_shown(visitor: Visitor, request: RightsRequest) -> RightsRequest:
    """Return a request at the version that the page showed last: whoever acts has seen that one, and no later one."""
    which = (visitor.org_id, request.reference)
    *before, version = st.session_state.get(SHOWN, (*which, request.version))
    st.session_state[SHOWN] = (*which, request.version)
    return replace(request, version=version) if tuple(before) == which else request


def working_on(visitor: Visitor) -> str | None:
    """Return the reference of the request that is worked on; None where that is another organisation's."""
    org_id, reference = st.session_state.get(WORKING_ON, (visitor.org_id, None))
    return reference if org_id == visitor.org_id else None


def open_request(reference: str | None) -> None:
    """Go to a request, or back to the list."""
    for name in ("reviewing", SHOWN):
        st.session_state.pop(name, None)
    if reference is None:
        st.query_params.pop("request", None)
    else:
        st.query_params["request"] = reference
    st.rerun()


def asked_for(visitor: Visitor) -> str | None:
    """Return the reference in the address, unless it was opened there for another organisation."""
    reference = st.query_params.get("request")
    if reference is None:
        st.session_state.pop(ALREADY_OPEN, None)
        return None
    org_id, opened = st.session_state.get(ALREADY_OPEN, (visitor.org_id, reference))
    if opened == reference and org_id != visitor.org_id:  # each organisation counts its requests from 1
        del st.query_params["request"]
        st.session_state.pop(ALREADY_OPEN)
        return None
    st.session_state[ALREADY_OPEN] = (visitor.org_id, reference)
    return reference
