"""Picking the subject whom a request is about."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import streamlit as st

from memory_core import FoundSubject, Subject
from pages import Visitor, explained, safe_frame


def picked_subject(visitor: Visitor, *, key: str) -> Subject | None:
    """Ask for a name or an id, and return who was ticked among those found, or the only one."""
    typed = st.text_input(
        "Name, e-mail or id of the person",
        key=f"{key} search",
        placeholder="part of a name, an e-mail address, or an id such as c-81",
    )
    if not typed.strip():
        return None
    with explained():
        found = visitor.store().find_subjects(typed)
    if not found:
        st.warning("Nothing is held about anybody by that name or id. Leave it as still unknown, and look again later.")
        return None
    picked = st.dataframe(
        safe_frame([row(one) for one in found]),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height=min(len(found), 6) * 35 + 38,
        key=f"{key} found {digest(str(one.subject) for one in found)}",
    )
    rows = picked["selection"]["rows"]
    if len(found) == 1:
        return found[0].subject
    if not rows or rows[0] >= len(found):
        st.caption("Tick the person. The id tells two of one name apart.")
        return None
    return found[rows[0]].subject


def row(one: FoundSubject) -> dict[str, object]:
    """Return a row of the list of found subjects."""
    return {
        "name": one.subject.label or "",
        "type": one.subject.type,
        "id": one.subject.id,
        "memories": one.with_text,
        "tombstones": one.tombstones,
        "also known as": "; ".join(one.subject.aliases),
    }


def digest(of: Iterable[str]) -> str:
    """Return a short name for a list, by which a table whose rows have changed forgets what was ticked."""
    return blake2b("\n".join(of).encode(), digest_size=8).hexdigest()
