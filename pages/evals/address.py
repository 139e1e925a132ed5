"""What is chosen on the page of the suites, as its address keeps it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

EVALUATIONS = ("evaluation", "against")
TRIAL = ("agent", "case", "trial")
SECTION_KEY, ORGANISATION_KEY = "evals_section", "evals_organisation"


def forget_another(org_id: str) -> None:
    """Take out of the address what was chosen in another organisation."""
    if st.session_state.get(ORGANISATION_KEY, org_id) != org_id:
        for name in (*EVALUATIONS, *TRIAL):
            st.query_params.pop(name, None)
    st.session_state[ORGANISATION_KEY] = org_id


def section(sections: Sequence[str]) -> str:
    """Let a section be chosen; a trial stays in the address only while the last section, which shows it, is open."""
    if SECTION_KEY not in st.session_state:
        asked = st.query_params.get("section")
        st.session_state[SECTION_KEY] = asked if asked in sections else sections[0]
    chosen = str(
        st.segmented_control("Section", sections, required=True, key=SECTION_KEY, label_visibility="collapsed")
    )
    if chosen == sections[0]:
        st.query_params.pop("section", None)
    else:
        st.query_params["section"] = chosen
    if chosen != sections[-1]:
        for name in TRIAL:
            st.query_params.pop(name, None)
    return chosen


def prepared(key: str, options: Collection[str], default: str, asked: str | None) -> str | None:
    """Set what a select box begins with: what is chosen already, what the address asks for, or the default.

    Returns what was asked for in vain.
    """
    is_new = key not in st.session_state
    wanted = asked if is_new else st.session_state[key]
    st.session_state[key] = wanted if wanted in options else default
    return asked if is_new and asked is not None and asked not in options else None
