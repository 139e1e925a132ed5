"""Offering a file on a page, in the place of Streamlit's own button, whose address serves anybody."""

from __future__ import annotations

import hashlib

import streamlit as st

from memory_core.roles import Act
from pages import Visitor, explained
from pages.web.offers import LIFE_S, OFFERS, PATH


def download(visitor: Visitor, label: str, content: bytes | str, *, file_name: str, mime: str, act: Act) -> None:
    """Show a button that fetches a file, for this visitor while they may do an act; the same file waits only once."""
    file = content.encode() if isinstance(content, str) else content
    place = f"offered {visitor.org_id} {file_name}"
    known = hashlib.sha256(file).hexdigest()
    before, path = st.session_state.get(place, ("", ""))
    if before != known or OFFERS.standing(path.removeprefix(PATH), visitor.work.who) is None:
        with explained():
            path = OFFERS.offer(
                file, file_name=file_name, mime=mime, org_id=visitor.org_id, act=act, identity=visitor.work.who
            )
        st.session_state[place] = (known, path)
    st.link_button(label, path, icon=":material/download:")
    st.caption(f"The button works once, and for {LIFE_S / 60:.0f} minutes.")
