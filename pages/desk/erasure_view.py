"""Erasing a subject: what will go, what would be left elsewhere, and the act itself behind a dialog."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import streamlit as st

from memory_core import AwaitingSecond, Held, OnHold, Refused, Subject
from memory_core.privacy import PrivacyDesk
from memory_core.reaching import NAMES_IN_PART, NAMES_THEM, WRITTEN_AFTER
from memory_core.rights import Reach, Reached
from memory_core.roles import Act
from memory_core.rules.erasure import MAX_REASON
from pages import Visitor, explained, figures, name_of, plain, require, safe_frame
from pages.desk.acting import tell_awaiting, working_on
from pages.desk.picker import digest
from pages.desk.words import many

SHOWN = ["because", "name found", "text", "about", "author", "run", "on hold"]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What is to be erased: identifiers and counts only, so that no session keeps a text."""

    org_id: str
    subject: Subject
    expecting: int
    also: tuple[UUID, ...]
    suppress: bool
    others: int  # how many could have been ticked


def show(visitor: Visitor, desk: PrivacyDesk, held: Held) -> None:
    """Look for what belongs to the erasure, let it be chosen, and erase."""
    key = f"{visitor.org_id} {held.subject}"
    also_called = st.text_input(
        "Other names to look for",
        placeholder="such as a nickname or a name before marriage; several with ;",
        help="Beside the name, the aliases and the id that are held.",
        key=f"also called {key}",
    )
    if st.button("Look for what belongs to it", icon=":material/search:"):
        st.session_state["reaching"] = key
        for name in ("reached", "kept ticks"):
            st.session_state.pop(name, None)
    if st.session_state.get("reaching") != key:
        st.caption(
            "An erasure empties what is held about this subject. Memories about others may name them too, and runs that were "
            "shown their memories may have written something: look first."
        )
        return
    with explained(), st.spinner("Looking through everything that is held…"):
        reach = desk.reach(held.subject, also_called=also_called.split(";"))
    summary(reach)
    if reach.holds:
        st.warning("A legal hold keeps these memories, so none of them can be forgotten:")
        plain("\n".join(reach.holds))
        return
    choose(visitor, held, reach)
    chosen = st.session_state.get("confirming")
    if isinstance(chosen, Chosen) and (chosen.org_id, chosen.subject) == (visitor.org_id, held.subject):
        confirm(visitor, desk, chosen)


def summary(reach: Reach) -> None:
    """Show in figures what would go and what would not."""
    naming = sum(NAMES_THEM in one.because for one in reach.others)
    perhaps = sum(NAMES_IN_PART in one.because for one in reach.others)
    written = sum(WRITTEN_AFTER in one.because for one in reach.others)
    figures(
        [
            ("Would go", f"{reach.with_text:,}", "Memories about them lose text and embedding; the name goes too."),
            ("Name them", f"{naming:,}", "Memories about others, and facts, that name them in full. They would stay."),
            ("May name them", f"{perhaps:,}", "… that have a part of their name, or something close to it."),
            ("Written after", f"{written:,}", "Memories by runs that had been shown theirs. They would stay."),
        ]
    )
    if reach.alike:
        st.warning("The same person, perhaps, under another id. An erasure is of one id; look at these as well:")
        plain("\n".join(name_of(one) for one in reach.alike))


def choose(visitor: Visitor, held: Held, reach: Reach) -> None:
    """Let whoever decides tick what is forgotten with it."""
    preselected = (
        st.segmented_control(
            "Tick beforehand",
            ["none", "those that name them", "all"],
            default="none",
            key=f"preselected {held.subject}",
        )
        if reach.others
        else "none"
    )
    found = [one.memory.memory_id for one in reach.others]
    looked_at = st.session_state.get("reached", found)
    kept = st.session_state.setdefault("kept ticks", set())
    if looked_at != found:  # the ticks that were made on what was looked at stay with their memories
        kept |= ticked_of(held, preselected, looked_at)
    st.session_state["reached"] = found
    with st.form(f"choose {held.subject}", border=False):
        ticked: list[bool] = []  # as many as there are others
        if reach.others:
            edited = st.data_editor(
                safe_frame([row(one, preselected, kept) for one in reach.others]),
                hide_index=True,
                disabled=SHOWN,
                column_config={
                    "forget": st.column_config.CheckboxColumn("Forget", width="small"),
                    "text": st.column_config.TextColumn(width="large"),
                },
                key=editor_key(held, preselected, found),
            )
            ticked = [bool(one) for one in edited["forget"]]
        else:
            st.caption("Nothing else was found that names them or was written by a run that was shown theirs.")
        suppress = st.checkbox(
            "Also let nothing new be remembered about them",
            help="Whoever tries is refused and told of the request. It can be lifted.",
        )
        label = f"Forget {reach.with_text:,}{' and what is ticked' if reach.others else ''} …"
        if st.form_submit_button(label, type="primary", icon=":material/delete_forever:"):
            if looked_at != found:
                st.warning(
                    "Meanwhile something else was found. Your ticks are kept; look at the table again, then go on."
                )
                return
            st.session_state["confirming"] = Chosen(
                org_id=visitor.org_id,
                subject=Subject(held.subject.type, held.subject.id),
                expecting=reach.with_text,
                also=tuple(one for one, tick in zip(found, ticked, strict=True) if tick),
                suppress=suppress,
                others=len(found),
            )


def row(one: Reached, preselected: str | None, kept: set[UUID]) -> dict[str, object]:
    """Return a row of the table of what could be forgotten with it."""
    wanted = preselected == "all" or (preselected != "none" and NAMES_THEM in one.because)
    return {
        "forget": not one.memory.hold and (wanted or one.memory.memory_id in kept),
        "because": ", ".join(one.because),
        "name found": ", ".join(one.names),
        "text": one.memory.text,
        "about": str(one.memory.subject or "nobody: a fact"),
        "author": one.memory.author,
        "run": one.memory.run_id,
        "on hold": one.memory.hold or "",
    }


def editor_key(held: Held, preselected: str | None, found: list[UUID]) -> str:
    """Return the key of the table of these memories: another table has ticks of its own."""
    return f"others {held.subject} {preselected} {digest(map(str, found))}"


def ticked_of(held: Held, preselected: str | None, found: list[UUID]) -> set[UUID]:
    """Return which of these memories somebody has ticked in their table."""
    edits = st.session_state.get(editor_key(held, preselected, found), {}).get("edited_rows", {})
    return {found[place] for place, edit in edits.items() if edit.get("forget")}


def end_confirming() -> None:
    """Let go of what was to be confirmed."""
    st.session_state.pop("confirming", None)


@st.dialog("Forget this subject", width="medium", on_dismiss=end_confirming)
def confirm(visitor: Visitor, desk: PrivacyDesk, chosen: Chosen) -> None:
    """Say what will happen, ask for a reason and for the id typed again, then forget."""
    st.text(f"{chosen.subject} of organisation {chosen.org_id}")
    others = f", and **{many(len(chosen.also), 'memory', 'memories')} about others**" if chosen.also else ""
    rest = (
        f" Of {chosen.others:,} others that were found, {chosen.others - len(chosen.also):,} will stay."
        if chosen.others
        else ""
    )
    st.markdown(
        f"**{many(chosen.expecting, 'memory', 'memories')} about them**{others}: text and embedding go, and so do the name and "
        f"the aliases.{rest} What stays is a tombstone for each: who wrote it and when, who erased it, when and why. "
        + ("Nothing new may be remembered about them afterwards. " if chosen.suppress else "")
        + "It cannot be undone."
    )
    reference = working_on(visitor)
    if reference:
        st.text(f"For request {reference}")
    reason = st.text_area("Reason", max_chars=MAX_REASON, placeholder="such as: erasure request of 3 November")
    st.caption("The reason stays with the tombstones and in the trail. Do not quote what is erased.")
    typed = st.text_input("Type the subject's id again to confirm")
    plain(chosen.subject.id)
    if st.button("Forget", type="primary", disabled=typed.strip() != chosen.subject.id or not reason.strip()):
        require(visitor, Act.FORGET)
        with explained(), st.spinner("Erasing…"):
            try:
                erasure = desk.erase(
                    chosen.subject,
                    reason=reason.strip(),
                    expecting=chosen.expecting,
                    also=chosen.also,
                    reference=reference,
                    suppress=chosen.suppress,
                )
            except AwaitingSecond as awaiting:
                tell_awaiting(
                    awaiting, "Nothing was forgotten yet: another data protection officer has to agree first."
                )
                st.stop()
            except OnHold as refused:
                st.error("Nothing was forgotten: a legal hold keeps these memories.")
                plain("\n".join(refused.holds))
                st.stop()
            except Refused as refused:
                st.error("Nothing was forgotten.")
                plain(str(refused))
                st.stop()
        end_confirming()
        for name in ("reaching", "reached", "kept ticks"):
            st.session_state.pop(name, None)
        st.session_state["search_next"] = str(chosen.subject)  # the name that was typed goes too
        count = f"{erasure.count:,} erased about {erasure.subject}"
        others = f", {len(erasure.others):,} about others" if erasure.others else ""
        st.session_state["done"] = (
            "Forgotten. The certificate is below.",
            f"{count}{others} at {erasure.at:%Y-%m-%d %H:%M:%S} UTC, erasure {erasure.erasure_id}",
        )
        st.rerun()
