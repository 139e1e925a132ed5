"""Subjects: find a person, see everything held about them, hand it out, erase it."""

import pandas as pd
import streamlit as st

from memory_core import FoundSubject, Held, HeldMemory, OnHold, Refused, Subject
from memory_core.package import as_row, passphrase, sealed_package
from pages import Visitor, explained, figures, gate, plain, require, safe_frame

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
    if len(found) == 1:
        return found[0].subject
    picked = st.dataframe(
        safe_frame([found_row(one) for one in found]),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"found {visitor.org_id} {typed}",
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


def show(visitor: Visitor, held: Held) -> None:
    """Show everything held, as one table; a ticked row is shown whole below."""
    st.subheader("Held")
    st.text(f"{held.subject.label or 'No name is held'}   ({held.subject})")
    if held.subject.aliases:
        st.text("Also known as: " + "; ".join(held.subject.aliases))
    shown = sum(len(memory.disclosures) for memory in held.memories)
    figures(
        [
            ("Held", f"{len(held.memories):,}", "Everything stored: also expired, restricted and tombstones."),
            ("With text", f"{held.with_text:,}", "What an erasure would empty."),
            ("Tombstones", f"{len(held.memories) - held.with_text:,}", "Forgotten or swept: provenance only."),
            ("Times shown", f"{shown:,}", "To runs and in previews, all memories together."),
        ]
    )
    if not held.memories:
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
        key=f"held {visitor.org_id} {held.subject}",
    )
    rows = picked["selection"]["rows"]
    if rows and rows[0] < len(held.memories):
        show_one(held.memories[rows[0]])
    else:
        st.caption("Tick a row to read it whole, and to see each time it was shown.")


def show_one(memory: HeldMemory) -> None:
    """Show one memory whole, with everybody it was shown to."""
    with st.container(border=True):
        said = "stated by" if memory.origin == "person" else "inferred, and confirmed by nobody, by"
        st.text(f"{memory.kind}, {said} {memory.author} in run {memory.run_id}: {memory.state}")
        plain(memory.text if memory.text is not None else "(the text is gone)")
        if memory.disclosures:
            st.dataframe(
                pd.DataFrame(
                    [
                        {"shown (UTC)": one.at, "run": one.run_id, "purpose": one.purpose.value, "place": one.place}
                        for one in memory.disclosures
                    ]
                ),
                hide_index=True,
            )
        else:
            st.caption("Never shown to any run, nor in a preview.")


def hand_out(held: Held) -> None:
    """Offer everything held as one encrypted file, with the passphrase shown once."""
    st.subheader("Hand it out")
    st.caption(
        "An encrypted ZIP with everything above as JSON and CSV. The passphrase is shown once, here, and kept nowhere: "
        "give it to the recipient by another way than the file."
    )
    if st.button("Prepare an encrypted download", icon=":material/lock:"):
        package = sealed_package(held, secret=passphrase())
        st.text("Passphrase, shown this once:")
        plain(package.passphrase)
        st.download_button(
            "Download",
            package.content,
            file_name=f"held-{held.at:%Y%m%d-%H%M%S}.zip",
            mime="application/zip",
            on_click="ignore",  # a rerun would hide the passphrase
            icon=":material/download:",
        )


def erase(visitor: Visitor, held: Held) -> None:
    """Offer to forget the subject, behind a dialog that says what it will do."""
    st.subheader("Erase")
    holds = sorted({memory.hold for memory in held.memories if memory.hold})
    if holds:
        st.warning("A legal hold keeps these memories, so none of them can be forgotten:")
        plain("\n".join(holds))
        return
    if not held.with_text:
        st.caption("There is no text left to erase.")
        return
    if st.button(f"Forget {held.with_text:,} …", type="primary", icon=":material/delete_forever:"):
        st.session_state["confirming"] = (visitor.org_id, held.subject.type, held.subject.id)
    if st.session_state.get("confirming") == (visitor.org_id, held.subject.type, held.subject.id):
        confirm(visitor, held)


def end_confirming() -> None:
    st.session_state.pop("confirming", None)


@st.dialog("Forget this subject", width="medium", on_dismiss=end_confirming)
def confirm(visitor: Visitor, held: Held) -> None:
    """Ask for a reason and for the id typed again, then forget."""
    st.text(f"{held.subject.label or 'No name is held'}   ({held.subject} of organisation {visitor.org_id})")
    st.markdown(
        f"**{held.with_text:,} memories lose their text and their embedding**, and the name and aliases go. "
        "What stays is a tombstone for each: who wrote it and when, who erased it, when and why. It cannot be undone."
    )
    reason = st.text_area(
        "Reason",
        max_chars=500,
        placeholder="such as: erasure request of 3 November",
    )
    st.caption("The reason stays with the tombstones. Do not quote what is erased.")
    typed = st.text_input("Type the subject's id again to confirm")
    plain(held.subject.id)
    if st.button("Forget", type="primary", disabled=typed.strip() != held.subject.id or not reason.strip()):
        require(visitor, "dpo")
        with explained():
            store = visitor.store()
            if (now := store.held(held.subject).with_text) != held.with_text:
                st.warning(f"Meanwhile it is {now:,} memories. Close this and look again before you forget them.")
                st.stop()
            try:
                erasure = store.forget(held.subject, by=visitor.author, reason=reason.strip())
            except OnHold as refused:
                st.error("Nothing was forgotten: a legal hold keeps these memories.")
                plain("\n".join(refused.holds))
                st.stop()
            except Refused as refused:
                st.error("Nothing was forgotten.")
                plain(str(refused))
                st.stop()
        end_confirming()
        st.session_state["search_next"] = held.subject.id  # the name that was typed goes too
        st.session_state["done"] = (
            f"{erasure.count} erased about {erasure.subject} at {erasure.at:%Y-%m-%d %H:%M:%S} UTC, "
            f"erasure {erasure.erasure_id}"
        )
        st.rerun()


visitor = gate("dpo", title="Subjects")
st.title("Subjects")
if "done" in st.session_state:
    st.success("Forgotten. Keep this line with the request:")
    plain(st.session_state.pop("done"))
subject = search(visitor)
if subject is not None:
    with explained():
        about = visitor.store().held(subject)
    show(visitor, about)
    hand_out(about)
    erase(visitor, about)
