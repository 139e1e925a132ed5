"""What a run has left: whom it is about, what it wrote, which tools it called."""

from __future__ import annotations

import streamlit as st

from memory_core import Memory, Subject
from memory_core.roles import Act
from memory_core.run_records import ToolCallFacts
from memory_core.run_trace import About, RunTrace
from pages import Visitor, name_of, safe_frame
from pages.desk.picker import digest
from pages.runs.words import CALLS, origin_of, text_of

LINES_PX = 72  # of a row, so that three lines of a text are read


def show(visitor: Visitor, run: RunTrace) -> None:
    """Show what the run wrote, and whom that and what it was shown is about."""
    st.subheader("What it wrote")
    if run.written:
        by_call = {one.memory_id: one.number for one in reversed(run.calls) if one.memory_id}  # the first
        st.dataframe(
            safe_frame([row(one, run, by_call.get(one.memory_id)) for one in run.written]),
            hide_index=True,
            placeholder="–",
            row_height=LINES_PX,
            height=min(len(run.written), 5) * LINES_PX + 38,
            column_config={
                "text": st.column_config.TextColumn("Text, or what became of it", width=310),
                "origin": st.column_config.TextColumn("Origin", width=155),
                "about": st.column_config.TextColumn("About", width=105),
                "kind": st.column_config.TextColumn("Kind", width=95),
                "state": st.column_config.TextColumn("State", help="What has become of it since", width=85),
                "written": st.column_config.DatetimeColumn("Written (UTC)", format="YYYY-MM-DD HH:mm", width=130),
                "by": st.column_config.NumberColumn("By call", help="Of its tool calls", width=65),
                "again": st.column_config.TextColumn("First written by", help="Where it only said it again", width=130),
            },
        )
    else:
        st.caption("No memory.")
    about(visitor, run)


def row(one: Memory, run: RunTrace, call: int | None) -> dict[str, object]:
    """Return a memory as a row."""
    return {
        "text": text_of(one, run.corrections.get(one.memory_id)),
        "origin": origin_of(one),
        "about": str(one.subject or ""),
        "kind": one.kind.value,
        "state": ", ".join(run.changed(one)) or one.state.value,
        "written": run.written_at(one),
        "by": call,
        "again": "" if one.run_id == run.run_id else one.run_id,
    }


def about(visitor: Visitor, run: RunTrace) -> None:
    """List whom it is about; for whoever may see more of them, a tick goes to what is held about them."""
    found = run.about()
    if not found:
        return
    st.subheader("Whom it is about")
    may_go = visitor.may(Act.LOOK)
    picked = st.dataframe(
        safe_frame([about_row(one) for one in found]),
        hide_index=True,
        height=min(len(found), 10) * 35 + 38,
        column_config={
            "about": st.column_config.TextColumn("About", width=220),
            "shown": st.column_config.NumberColumn("Shown to it", width=90),
            "wrote": st.column_config.NumberColumn("Written by it", width=90),
            "text": st.column_config.NumberColumn("With text now", help="Of both, each memory once", width=110),
        },
        on_select="rerun" if may_go else "ignore",
        selection_mode="single-row",
        key=f"about {visitor.org_id} {run.run_id} {digest(str(one.subject) for one in found)}",
    )
    if not may_go:
        return
    st.caption("Tick one to see everything that is held about them.")
    rows = picked["selection"]["rows"]
    if rows and rows[0] < len(found) and (subject := found[rows[0]].subject) is not None:
        st.session_state["search_next"] = str(subject)
        st.switch_page("pages/1_Subjects.py")


def told(subject: Subject | None) -> str:
    """Write whom something is about; with the name where that may be seen and is held."""
    if subject is None:
        return "nobody (operational)"
    return name_of(subject) if subject.label else str(subject)


def about_row(one: About) -> dict[str, object]:
    """Return a subject as a row."""
    return {
        "about": told(one.subject),
        "shown": one.shown,
        "wrote": one.wrote,
        "text": one.with_text,
    }


def calls(run: RunTrace) -> None:
    """Show its tool calls with a digest of their arguments."""
    if not run.calls:
        return
    st.subheader("Its tool calls")
    st.caption(
        "Arguments may name persons, so that only a digest of them is kept, salted for each run: its first 12 digits are "
        "below. Two calls with the same digest had the same arguments, and of what those were it says nothing."
    )
    first = {one.arguments_digest: one.number for one in reversed(run.calls)}
    st.dataframe(
        safe_frame([call_row(one, same_as=first[one.arguments_digest]) for one in run.calls]),
        hide_index=True,
        placeholder="–",
        height=min(len(run.calls), 15) * 35 + 38,
        column_config={
            "call": st.column_config.NumberColumn("Call", width=50),
            "turn": st.column_config.NumberColumn("Turn", width=50),
            "tool": st.column_config.TextColumn("Tool", width=140),
            "outcome": st.column_config.TextColumn("Outcome", width=115),
            "took": st.column_config.NumberColumn("Took (ms)", format="localized", width=75),
            "arguments": st.column_config.TextColumn("Arguments", help="The beginning of their digest", width=105),
            "same": st.column_config.NumberColumn("Same as", help="The first call with the same arguments", width=65),
            "means": st.column_config.TextColumn("That is", width=330),
            "left": st.column_config.TextColumn(
                "Left", help="The memory that it wrote, the recall that it made", width=150
            ),
        },
    )


def call_row(one: ToolCallFacts, *, same_as: int) -> dict[str, object]:
    """Return a tool call as a row."""
    left = [("memory", one.memory_id), ("recall", one.recall_id)]
    return {
        "call": one.number,
        "turn": one.turn,
        "tool": one.tool or "(not offered)",
        "outcome": one.outcome.value,
        "took": round(one.took_ms, 1),
        "arguments": one.arguments_digest.hex()[:12],
        "same": None if same_as == one.number else same_as,
        "means": CALLS[one.outcome],
        "left": ", ".join(f"{what} {identity}" for what, identity in left if identity),
    }
