"""Leaving items out of an access package, to protect the rights of others."""

from __future__ import annotations

from uuid import UUID

import streamlit as st

from memory_core.rights import PackageItem
from memory_core.rules.erasure import MAX_REASON, reason_refusal
from pages import plain, safe_frame
from pages.desk.picker import digest

NAMING, EVERY = "Those that name somebody else", "All"
COLUMNS = {
    "names": st.column_config.TextColumn("Names", width=150),
    "text": st.column_config.TextColumn("Text", width=400),
    "dispute": st.column_config.TextColumn("The person's own words", width=170),
    "written": st.column_config.DatetimeColumn("Written (UTC)", format="YYYY-MM-DD", width=105),
}
ROW, HEAD = 72, 38  # pixels: above 64 a table wraps its text


def choose(naming: list[PackageItem], with_text: list[PackageItem], reasons: dict[UUID, str], place: str) -> None:
    """Let items be ticked, or given by their ids, and left out for one reason."""
    st.subheader("Leave out what is not the person's to have")
    which = st.segmented_control(
        "Items", [NAMING, EVERY], default=NAMING, required=True, label_visibility="collapsed", key=f"which {place}"
    )
    shown = [item for item in (naming if which == NAMING else with_text) if item.memory.memory_id not in reasons]
    with st.form(f"leave out {place}", border=False):
        ticked = ticked_in(shown, reasons, key=f"items {place} {which}") if shown else []
        if not shown:
            st.caption("None is left to decide on." if reasons else "None of the texts names another known person.")
        st.caption(
            "Tick what to leave out; a double click shows a cell whole. Who is in no directory is not found by name: look "
            "through All if in doubt."
        )
        reason, by_id = st.columns(2)
        why = reason.text_input(
            "Reason",
            max_chars=MAX_REASON,
            placeholder="such as: would tell what a referee said in confidence",
            key=f"why {place}",
        )
        ids = by_id.text_input("… or these ids", placeholder="ids of items, with spaces between", key=f"ids {place}")
        st.caption(
            "**The reason is printed in the package as you type it.** Name nobody in it, and do not quote what is left out "
            "or erased."
        )
        pressed = st.form_submit_button("Leave out", icon=":material/visibility_off:")
    if pressed:
        leave_out(ticked, ids, why, with_text, reasons)


def ticked_in(shown: list[PackageItem], reasons: dict[UUID, str], *, key: str) -> list[PackageItem]:
    """Show items as a table and return those that are ticked; a table of other items forgets the ticks."""
    disputed = ["dispute"] if any(item.memory.dispute for item in shown) else []
    because = ["because"] if any(item.memory.memory_id in reasons for item in shown) else []
    picked = st.dataframe(
        safe_frame([row(item) | {"because": reasons.get(item.memory.memory_id)} for item in shown]),
        hide_index=True,
        height=min(len(shown), 7) * ROW + HEAD,
        row_height=ROW,
        placeholder="–",
        column_order=[*because, "names", "text", *disputed, "written", "origin", "author", "id"],
        column_config=COLUMNS | {"because": st.column_config.TextColumn("Because", width=200)},
        on_select="rerun",
        selection_mode="multi-row",
        key=f"{key} {digest(str(item.memory.memory_id) for item in shown)}",
    )
    return [shown[at] for at in picked["selection"]["rows"] if at < len(shown)]


def leave_out(
    ticked: list[PackageItem], ids: str, why: str, with_text: list[PackageItem], reasons: dict[UUID, str]
) -> None:
    """Take items out of the package for a reason, or say why not."""
    known = {str(item.memory.memory_id): item.memory.memory_id for item in with_text}
    given = ids.replace(",", " ").lower().split()
    unknown = [one for one in given if one not in known]
    if refusal := reason_refusal(why):
        st.error("Nothing was left out.")
        plain(str(refusal))
    elif unknown:
        st.error("Nothing was left out: these are no items with text of this package.")
        plain("\n".join(unknown[:20]))
    elif not ticked and not given:
        st.error("Nothing was left out: tick an item, or give its id.")
    else:
        for memory_id in [*(item.memory.memory_id for item in ticked), *map(known.__getitem__, given)]:
            reasons[memory_id] = why.strip()
        st.rerun()


def left_out(with_text: list[PackageItem], reasons: dict[UUID, str], place: str) -> None:
    """Show what is left out and why, and let it be put back."""
    items = [item for item in with_text if item.memory.memory_id in reasons]
    if not items:
        return
    st.subheader(f"Left out: {len(items):,}")
    with st.form(f"put back {place}", border=False):
        ticked = ticked_in(items, reasons, key=f"out {place}")
        if st.form_submit_button("Put the ticked ones back", icon=":material/undo:"):
            for item in ticked:
                reasons.pop(item.memory.memory_id, None)
            st.rerun()


def row(item: PackageItem) -> dict[str, object]:
    """Return an item as a row, whom it names first."""
    memory = item.memory
    return {
        "names": ", ".join(f"{one.name} ({one.subject})" for one in item.mentions),
        "text": memory.text,
        "dispute": memory.dispute,
        "written": memory.created_at,
        "origin": memory.origin.value,
        "author": memory.author,
        "id": str(memory.memory_id),
    }
