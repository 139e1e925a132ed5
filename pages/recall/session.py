"""The key of a visit's pseudonyms: random, kept nowhere but in its session, and gone with it."""

from __future__ import annotations

from secrets import token_bytes

import streamlit as st


def key() -> bytes:
    """Return the visit's key; the same person has the same pseudonym as long as it lasts."""
    return bytes(st.session_state.setdefault("key of the pseudonyms", token_bytes(32)))
