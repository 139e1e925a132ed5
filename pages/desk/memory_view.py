"""One memory whole, with what can be done about it alone."""

from __future__ import annotations

import streamlit as st

from memory_core import AwaitingSecond, Held, HeldMemory, Origin
from memory_core.privacy import PrivacyDesk
from memory_core.rights import MeasureKind
from memory_core.roles import Act
from pages import Visitor, explained, plain, require, safe_frame
from pages.desk import measures_view
from pages.desk.acting import tell_awaiting, working_on
from pages.runs.opening import go_to

ACTING = "acting_on"  # the memory about which something may have been typed
FIELDS = ("right", "says")


def show(visitor: Visitor, desk: PrivacyDesk, held: Held, memory: HeldMemory) -> None:
    """Show one memory whole, with everybody it was shown to and what can be done about it."""
    with st.container(border=True):
        said = "stated by" if memory.origin is Origin.PERSON else "inferred, and confirmed by nobody, by"
        st.text(f"{memory.kind}, {said} {memory.author} in run {memory.run_id}: {memory.state}")
        if st.button("Open that run", type="tertiary", icon=":material/route:", key=f"run of {memory.memory_id}"):
            go_to(visitor, memory.run_id)
        plain(memory.text if memory.text is not None else "(the text is gone)")
        if memory.supersedes:
            st.caption("A correction. It took the place of, by and because:")
            plain(f"{memory.supersedes}\n{memory.corrected_by}\n{memory.correction_reason}")
        if memory.dispute:
            stands = "stands beside it in every block" if memory.disputed else "was withdrawn, and is shown to no model"
            st.caption(f"The person disputes it; that {stands}:")
            plain(memory.dispute)
        disclosed(visitor, memory)
        if memory.text is not None:
            act(visitor, desk, held, memory)


def disclosed(visitor: Visitor, memory: HeldMemory) -> None:
    """List each time it was shown; a tick opens the run."""
    if not memory.disclosures:
        st.caption("Never shown to any run, nor in a preview.")
        return
    rows = [
        {
            "shown (UTC)": one.at,
            "run": one.run_id,
            "purpose": one.purpose.value,
            "place": one.place,
            "to": one.by or "",
            "what for": one.because or "",
        }
        for one in memory.disclosures
    ]
    picked = st.dataframe(
        safe_frame(rows),
        hide_index=True,
        column_config={"shown (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss")},
        on_select="rerun",
        selection_mode="single-row",
        key=f"shown {memory.memory_id} {len(rows)}",
    )["selection"]
    st.caption("Tick one to open its run: what else it was shown, what it did and wrote.")
    ticked = picked["rows"]
    if ticked and ticked[0] < len(memory.disclosures):
        go_to(visitor, memory.disclosures[ticked[0]].run_id)


def tell_of_lost(held: Held, ticked: HeldMemory | None) -> None:
    """Give back what was typed about a memory that is not shown any more, since somebody else has changed it meanwhile."""
    acting = st.session_state.get(ACTING)
    if acting is None or (ticked is not None and ticked.memory_id == acting and ticked.text is not None):
        return
    del st.session_state[ACTING]
    typed = [st.session_state.get(f"{name} {acting}", "") for name in FIELDS]
    if any(typed):
        st.warning("Nothing was done: the memory was changed meanwhile, or another was ticked. What you had typed:")
        plain("\n".join(filter(None, typed)))


def act(visitor: Visitor, desk: PrivacyDesk, held: Held, memory: HeldMemory) -> None:
    """Offer what can be done about this memory alone."""
    disputing = ["Withdraw the dispute"] if memory.disputed else [] if memory.disputed_at else ["Dispute"]
    acts = ["Correct", *disputing, "Restrict", "Put on hold"]
    chosen = st.segmented_control("This memory alone", acts, key=f"act {memory.memory_id}")
    if chosen is None:
        st.session_state.pop(ACTING, None)
    else:
        st.session_state[ACTING] = memory.memory_id
    if chosen == "Correct":
        correct(visitor, desk, memory)
    elif chosen == "Dispute":
        dispute(visitor, desk, memory)
    elif chosen == "Withdraw the dispute":
        withdraw(visitor, desk, memory)
    elif chosen == "Restrict":
        measures_view.form(visitor, desk, MeasureKind.RESTRICTION, held, memory=memory)
    elif chosen == "Put on hold":
        measures_view.form(visitor, desk, MeasureKind.HOLD, held, memory=memory)


def correct(visitor: Visitor, desk: PrivacyDesk, memory: HeldMemory) -> None:
    """Ask what is right, who says so and why; then put it in the place of the memory."""
    st.caption(
        "The text above goes and cannot be brought back. What you write takes its place as stated by a person, expires when "
        "the old one would have, and says what it replaces. Whoever was shown the old one stays on record above: tell them "
        "(Art. 19)."
    )
    with st.form(f"correct {memory.memory_id}", border=False):
        text = st.text_area("What is right", max_chars=2000, key=f"right {memory.memory_id}")
        author = st.text_input("Who says so", value=visitor.author, help="user: and an identifier, such as user:zoe")
        reason = st.text_input("Reason", max_chars=500, help="It stays on record. Do not quote the old text.")
        if st.form_submit_button("Correct", type="primary"):
            require(visitor, Act.CORRECT)
            with explained():
                try:
                    desk.correct(
                        memory,
                        text,
                        author=author.strip(),
                        reason=reason.strip(),
                        reference=working_on(visitor),
                    )
                except AwaitingSecond as awaiting:
                    tell_awaiting(awaiting, "It says the same yet: another data protection officer has to agree first.")
                    return
            st.session_state.pop(ACTING, None)
            st.session_state["done"] = ("Corrected.", "What you wrote stands in its place; the old text is gone.")
            st.rerun()


def dispute(visitor: Visitor, desk: PrivacyDesk, memory: HeldMemory) -> None:
    """Ask for the person's own words, then put them beside the memory."""
    st.caption("The memory stays as it is. What the person says stands beside it here and in every block a model sees.")
    with st.form(f"dispute {memory.memory_id}", border=False):
        words = st.text_area("What the person says", max_chars=500, key=f"says {memory.memory_id}")
        if st.form_submit_button("Put it beside the memory", type="primary"):
            require(visitor, Act.CORRECT)
            with explained():
                desk.dispute(memory, words.strip(), reference=working_on(visitor))
            st.session_state.pop(ACTING, None)
            st.session_state["done"] = ("Recorded.", "It stands beside the memory, here and in every block.")
            st.rerun()


def withdraw(visitor: Visitor, desk: PrivacyDesk, memory: HeldMemory) -> None:
    """Ask why a dispute is taken back, then take it back."""
    with st.form(f"withdraw {memory.memory_id}", border=False):
        reason = st.text_input("Why it is withdrawn", max_chars=500)
        if st.form_submit_button("Withdraw the dispute", type="primary"):
            require(visitor, Act.CORRECT)
            with explained():
                desk.withdraw_dispute(memory, reason=reason.strip(), reference=working_on(visitor))
            st.session_state.pop(ACTING, None)
            st.session_state["done"] = ("Withdrawn.", "The dispute is shown to no model any more, and stays on record.")
            st.rerun()
