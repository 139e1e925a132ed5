"""Which run is open: the address says it."""

from __future__ import annotations

import streamlit as st

from pages import Visitor

PAGE = "pages/4_Runs.py"
PARAMETER = "run"
ALREADY_OPEN = "runs_opened"  # which run of which organisation the address was opened for
VISIT = "runs_visit"  # counts, so that no row of the list is ticked on return


def open_run(run_id: str | None) -> None:
    """Go to a run, or back to the list."""
    if run_id is None:
        st.query_params.pop(PARAMETER, None)
    else:
        st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1
        st.query_params[PARAMETER] = run_id
    st.rerun()


def go_to(run_id: str) -> None:
    """Go to a run from another page."""
    st.switch_page(PAGE, query_params={PARAMETER: run_id})


def asked_for(visitor: Visitor) -> str | None:
    """Return the run in the address, unless it was opened there for another organisation, whose runs may have its name."""
    run_id = st.query_params.get(PARAMETER)
    if not run_id:
        st.session_state.pop(ALREADY_OPEN, None)
        return None
    org_id, opened = st.session_state.get(ALREADY_OPEN, (visitor.org_id, run_id))
    if opened == run_id and org_id != visitor.org_id:
        del st.query_params[PARAMETER]
        st.session_state.pop(ALREADY_OPEN)
        return None
    st.session_state[ALREADY_OPEN] = (visitor.org_id, run_id)
    return str(run_id)
