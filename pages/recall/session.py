"""The key of a visit's pseudonyms: random, kept nowhere but in its session, and gone with it."""

from __future__ import annotations

from secrets import token_bytes

import streamlit as st

from memory_core.roles import Act
from pages import Visitor


def key() -> bytes:
    """Return the visit's key; the same person has the same pseudonym as long as it lasts."""
    return bytes(st.session_state.setdefault("key of the pseudonyms", token_bytes(32)))


def key_for(visitor: Visitor) -> bytes | None:
    """Return the visit's key for somebody who may not look at subjects, and so may be shown pseudonyms only."""
    return None if visitor.may(Act.LOOK) else key()
