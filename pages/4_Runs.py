"""Runs: what one run was shown, did and wrote."""

import streamlit as st

from memory_core.roles import Act
from pages import gate
from pages.runs import found_view, run_view
from pages.runs.opening import asked_for

visitor = gate(Act.READ_RUNS, title="Runs")
st.title("Runs")
st.caption(
    "Why did it say that? What a run was shown, did and wrote, from its records. Of the prompt and of the answer no word is on "
    "record. To open a run that shows text is recorded, with your name."
)
run_id = asked_for(visitor)
if run_id is None:
    found_view.show(visitor)
else:
    run_view.show(visitor, run_id)
