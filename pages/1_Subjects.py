"""Subjects: find a person, see everything held about them, and act on it."""

import pandas as pd
import streamlit as st

from memory_core import FoundSubject, Held, Subject
from memory_core.characters import shown_whole
from memory_core.privacy import PrivacyDesk
from memory_core.rights import Measure
from memory_core.roles import Act
from pages import Visitor, explained, figures, gate, name_of, plain, safe_frame
from pages.desk import access_view, certificate_view, erasure_view, measures_view, memory_view, trail_view
from pages.desk.acting import WORKING_ON, working_on
from pages.desk.held_rows import as_row
from pages.desk.picker import digest

SECTIONS = ["Held", "Restrict, hold, suppress", "Hand out", "Erase", "Trail"]

SHOWN_COLUMNS = {
    "written": st.column_config.DatetimeColumn("Written (UTC)", format="YYYY-MM-DD HH:mm"),
    "state": st.column_config.TextColumn("State"),
    "kind": st.column_config.TextColumn("Kind"),
    "origin": st.column_config.TextColumn("Origin", help="person: somebody stated it; inference: a model concluded it"),
    "text": st.column_config.TextColumn("Text", width="large"),
    "author": st.column_config.TextColumn("Author"),
    "run": st.column_config.TextColumn("Run"),
    "source": st.column_config.TextColumn("Source"),
    "expires": st.column_config.DatetimeColumn("Expires (UTC)", format="YYYY-MM-DD"),
    "times_shown": st.column_config.NumberColumn("Shown", help="How often it was shown to a run or in a preview"),
    "shown_to": st.column_config.TextColumn("Shown to", width="medium"),
    "disputed": st.column_config.TextColumn("Disputed", help="The person's own words, which stand beside it"),
    "corrects": st.column_config.TextColumn("Corrects"),
    "erased_at": st.column_config.DatetimeColumn("Erased (UTC)", format="YYYY-MM-DD HH:mm"),
    "erased_by": st.column_config.TextColumn("Erased by"),
    "erased_because": st.column_config.TextColumn("Because", width="medium"),
}


def search(visitor: Visitor) -> Subject | None:
    """Ask for a name and return the subject that was picked among those found."""
    if "search_next" in st.session_state:  # set by an act that has just erased what was typed
        st.session_state["search"] = st.session_state.pop("search_next")
    typed = st.text_input(
        "Name, e-mail or id",
        key="search",
        placeholder="part of a name, an e-mail address, or an id such as c-81",
        help="Case, accents and the order of names do not matter, and a slip is forgiven. An exact id comes first.",
    )
    if not typed.strip():
        st.info("Type whom you are looking for. Somebody of whom only tombstones are left is found by the id.")
        return None
    with explained():
        found = visitor.store().find_subjects(typed)
    if not found:
        st.warning("Nothing is held about anybody by that name or id in this organisation.")
        return None
    if len(found) == 1 or typed.strip() == str(found[0].subject):
        return found[0].subject
    picked = st.dataframe(
        safe_frame([found_row(one) for one in found]),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"found {visitor.org_id} {digest(str(one.subject) for one in found)}",
        column_config={
            "last written": st.column_config.DatetimeColumn("last written (UTC)", format="YYYY-MM-DD HH:mm")
        },
    )
    rows = picked["selection"]["rows"]
    if not rows or rows[0] >= len(found):
        many = "The first 50" if len(found) == 50 else str(len(found))
        st.caption(f"{many} found, best first. Tick one to see what is held.")
        return None
    return found[rows[0]].subject


def found_row(one: FoundSubject) -> dict[str, object]:
    """Return a row of the list of found subjects."""
    return {
        "name": one.subject.label or "",
        "type": one.subject.type,
        "id": one.subject.id,
        "memories": one.with_text,
        "tombstones": one.tombstones,
        "last written": one.last_written_at,
        "found by": one.match,
        "also known as": "; ".join(one.subject.aliases),
    }


def summary(held: Held) -> None:
    """Say who it is, and how much is held."""
    st.text(name_of(held.subject))
    if held.subject.aliases:
        st.text("Also known as: " + "; ".join(shown_whole(one) for one in held.subject.aliases))
    shown = sum(len(memory.disclosures) for memory in held.memories)
    figures(
        [
            ("Held", f"{len(held.memories):,}", "Everything stored: also expired, restricted and tombstones."),
            ("With text", f"{held.with_text:,}", "What an erasure would empty."),
            ("Tombstones", f"{len(held.memories) - held.with_text:,}", "Forgotten or swept: provenance only."),
            ("Times shown", f"{shown:,}", "To runs and in previews, all memories together."),
        ]
    )


def show(visitor: Visitor, desk: PrivacyDesk, held: Held) -> None:
    """Show everything held, as one table; a ticked row is shown whole below."""
    if not held.memories:
        st.caption("Nothing is held about them.")
        return
    table = safe_frame([as_row(memory) for memory in held.memories])
    for name in ("written", "expires", "erased_at"):
        table[name] = pd.to_datetime(table[name], utc=True)
    picked = st.dataframe(
        table,
        hide_index=True,
        column_order=list(SHOWN_COLUMNS),
        column_config=SHOWN_COLUMNS,
        on_select="rerun",
        selection_mode="single-row",
        key=f"held {visitor.org_id} {digest(str(memory.memory_id) for memory in held.memories)}",
    )
    rows = picked["selection"]["rows"]
    ticked = held.memories[rows[0]] if rows and rows[0] < len(held.memories) else None
    memory_view.tell_of_lost(held, ticked)
    if ticked is not None:
        memory_view.show(visitor, desk, held, ticked)
    else:
        st.caption("Tick a row to read it whole, to see each time it was shown, to correct it or to record a dispute.")


def section(visitor: Visitor, desk: PrivacyDesk, held: Held, measures: list[Measure]) -> None:
    """Show the chosen section."""
    chosen = st.segmented_control(
        "Section", SECTIONS, default="Held", key=f"section {held.subject}", label_visibility="collapsed"
    )
    if chosen == "Held":
        show(visitor, desk, held)
    elif chosen == "Restrict, hold, suppress":
        measures_view.show(visitor, desk, held, measures)
    elif chosen == "Hand out":
        access_view.show(visitor, desk, held.subject, reference=working_on(visitor), with_name=False)
    elif chosen == "Erase":
        if held.with_text:
            erasure_view.show(visitor, desk, held)
        else:
            st.caption("There is no text left to erase.")
        if erasures := desk.erasures(subject=held.subject):
            certificate_view.show_one_of(visitor, desk, erasures)
    elif chosen == "Trail":
        st.caption("Every look at this subject and every act, newest first. Your looks are here as well.")
        trail_view.show(lambda limit: desk.trail(subject=held.subject, limit=limit), with_subject=False)


def require_same(desk: PrivacyDesk, subject: Subject, reference: str | None) -> None:
    """Warn where the request that is worked on is about somebody else."""
    about = desk.register.request(reference).subject if reference else subject
    if about != subject:
        st.warning("The request that you work on is about somebody else. What is done here for it will be refused.")
        plain(str(about or "nobody known yet"))


def banner(visitor: Visitor) -> None:
    """Say for which request all this is done, with the way back."""
    reference = working_on(visitor)
    if not reference:
        return
    what, back, end = st.columns([4, 2, 2], vertical_alignment="center")
    what.info(f"Working on request {reference}: what you do here is recorded with it.", icon=":material/assignment:")
    if back.button("Back to the request", icon=":material/arrow_back:"):
        st.switch_page("pages/2_Requests.py", query_params={"request": reference})
    if end.button("Not for this request"):
        del st.session_state[WORKING_ON]
        st.rerun()


visitor = gate(Act.LOOK, title="Subjects")
st.title("Subjects")
banner(visitor)
if "done" in st.session_state:
    message, detail = st.session_state.pop("done")
    st.success(message)
    plain(detail)
subject = search(visitor)
if subject is not None:
    with explained():
        desk = visitor.desk()
        about = desk.held(subject)
        standing = desk.measures(subject)
        require_same(desk, subject, working_on(visitor))
        summary(about)
        measures_view.standing(standing)
        section(visitor, desk, about, standing)
