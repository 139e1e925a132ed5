"""Which run is open: the address says it, with its organisation, as two may have a run of one id."""

from __future__ import annotations

import streamlit as st

from memory_core.identifiers import identifier_refusal
from memory_core.run_trace import RunTrace
from memory_core.tracing import trace
from pages import ORGANISATION, Visitor

PAGE = "pages/4_Runs.py"
PARAMETER = "run"
OPEN = "runs_open"  # which run of which organisation is open, and of which memories it has shown the text
VISIT = "runs_visit"  # counts, so that no row of the list is ticked on return


def open_run(visitor: Visitor, run_id: str | None) -> None:
    """Go to a run, or back to the list."""
    st.session_state.pop(OPEN, None)
    if run_id is None:
        st.query_params.from_dict({ORGANISATION: visitor.org_id})
    else:
        st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1
        st.query_params.from_dict({PARAMETER: run_id, ORGANISATION: visitor.org_id})
    st.rerun()


def go_to(visitor: Visitor, run_id: str) -> None:
    """Go to a run from another page."""
    st.session_state.pop(OPEN, None)
    st.switch_page(PAGE, query_params={PARAMETER: run_id, ORGANISATION: visitor.org_id})


def asked_for(visitor: Visitor) -> str | None:
    """Return the run in the address; an address that names no organisation is given the one that is looked at."""
    run_id = st.query_params.get(PARAMETER)
    if not run_id:
        st.session_state.pop(OPEN, None)
        return None
    if st.query_params.get(ORGANISATION) != visitor.org_id:
        st.query_params[ORGANISATION] = visitor.org_id
    with_plus = str(run_id).replace(" ", "+")  # as a plus that was typed into an address is read
    return str(run_id) if identifier_refusal(with_plus, field="run_id") else with_plus


def read_open(visitor: Visitor, run_id: str, *, key: bytes | None, page: int) -> RunTrace:
    """Read the run that is open; it is on record once for each opening, and again where more is to be read meanwhile."""

    def read(*, on_record: bool) -> RunTrace:
        found: RunTrace = visitor.call(trace, run_id, by=visitor.author, key=key, on_record=on_record, page=page)
        return found

    org_id, opened, recorded = st.session_state.get(OPEN, (None, None, frozenset()))
    is_open = (org_id, opened) == (visitor.org_id, run_id)
    run = read(on_record=not is_open)
    if is_open and not run.text_of <= recorded:
        run = read(on_record=True)
    st.session_state[OPEN] = (visitor.org_id, run_id, run.text_of | (recorded if is_open else frozenset()))
    return run
