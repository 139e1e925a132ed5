"""Requests: who claims which right, until when it must be answered, what was done about it."""

import streamlit as st

from memory_core.roles import Act
from pages import explained, gate
from pages.desk import new_request, register_view, request_view
from pages.desk.acting import asked_for

visitor = gate(Act.READ_REGISTER, title="Requests")
with explained():
    desk = visitor.desk()
reference = asked_for(visitor)
if reference is not None:
    request_view.show(visitor, desk, reference)
elif st.session_state.get("registering") == visitor.org_id and visitor.may(Act.WORK_REGISTER):
    new_request.show(visitor, desk)
else:
    register_view.show(visitor, desk)
