"""Lines of the trail as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from memory_core.rights import TrailEntry
from pages import safe_frame

AT_FIRST = 200  # lines


def show(newest: Callable[[int], Sequence[TrailEntry]], *, with_subject: bool = True) -> None:
    """Show who did what and when, newest first: at first some, then as many as there are."""
    everything = st.session_state.get("all of the trail", False)
    lines = newest(1_000_000 if everything else AT_FIRST)
    if everything or len(lines) == AT_FIRST:
        st.toggle(f"All of it, not only the newest {AT_FIRST:,} lines", key="all of the trail")
    if not lines:
        st.caption("Nothing is on record.")
        return
    st.dataframe(
        safe_frame(
            [
                {"line": one.number, "when (UTC)": one.at, "who": one.by, "what": one.act}
                | ({"about": str(one.subject) if one.subject else ""} if with_subject else {})
                | {"memories": one.count, "reason": one.reason, "reference": one.reference}
                for one in lines
            ]
        ),
        hide_index=True,
        column_config={"when (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss")},
    )
