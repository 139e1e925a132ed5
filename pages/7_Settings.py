"""Settings: what the organisation answers everybody who asks, where it is, and the proof of what was done."""

from dataclasses import asdict

import streamlit as st

from memory_core import Refused
from memory_core.privacy import PrivacyDesk
from memory_core.rights import DeskSettings, StandingAnswers
from memory_core.roles import Act
from memory_core.rules.jurisdiction import COUNTRIES, law_of
from pages import Visitor, explained, gate, plain, require
from pages.desk import safeguards_view, trail_view

ANSWERS = {
    "controller": ("Who is responsible", "Name and address of the controller.", "Art. 13(1)(a)"),
    "officer": ("How to reach the data protection officer", "An address that somebody reads.", "Art. 13(1)(b)"),
    "purposes": ("What for", "Why agents keep memories about people at all.", "Art. 15(1)(a)"),
    "categories": (
        "What kinds of data",
        "Such as: statements in interviews, availability, conclusions of agents.",
        "Art. 15(1)(b)",
    ),
    "recipients": (
        "Who receives them",
        "Beside the agents and runs, which every package lists by itself.",
        "Art. 15(1)(c)",
    ),
    "retention": ("How long", "The criteria, beside the date of each item, which every package has.", "Art. 15(1)(d)"),
    "authority": ("With whom to complain", "Name and address of the supervisory authority.", "Art. 15(1)(f)"),
    "automated_decisions": (
        "Whether anything is decided automatically",
        "By what logic, with what effect, and what part a memory has in it.",
        "Art. 15(1)(h)",
    ),
    "transfers": (
        "Transfers to third countries",
        "To which, and by which safeguards; or that there are none.",
        "Art. 15(2)",
    ),
}


def answers(visitor: Visitor, desk: PrivacyDesk) -> None:
    """Show what is set, and save what was changed."""
    now = desk.settings()
    place, version = f"{visitor.org_id} settings", f"version of the settings of {visitor.org_id}"
    if f"{place} controller" not in st.session_state:  # a visit of its own: the version is that of what is now shown
        st.session_state[version] = now.version
    missing = now.answers.unanswered
    if missing:
        st.warning(
            f"{len(missing)} of {len(ANSWERS)} standing answers missing. Every access package "
            "says so until they are here."
        )
    with st.form(place, border=False):
        st.subheader("Where the organisation answers for its data")
        where, zone, tombstones = st.columns(3)
        jurisdiction = where.text_input(
            "Country or region",
            value=now.jurisdiction or "",
            placeholder="such as IE, DE-BY or GB-ENG",
            help="Its law and its public holidays decide when an answer is due. Known: " + ", ".join(COUNTRIES),
            key=f"{place} jurisdiction",
        )
        time_zone = zone.text_input(
            "Time zone", value=now.time_zone, help="In which a day begins and ends.", key=f"{place} time zone"
        )
        days = tombstones.number_input(
            "Days a tombstone stays",
            365,
            3650,
            now.tombstone_days,
            help="The sweep then deletes it. Three years is 1,095.",
            key=f"{place} tombstones",
        )
        if now.jurisdiction is None:
            st.caption(
                "No country is set: every weekday counts as a working day, so that no deadline is ever too late."
            )
        else:
            st.caption(f"The {law_of(now.jurisdiction)} applies.")
        st.subheader("What it answers everybody who asks")
        typed = {
            name: st.text_area(
                f"{label} · {article}",
                value=getattr(now.answers, name) or "",
                help=help_text,
                max_chars=4000,
                height=80,
                key=f"{place} {name}",
            )
            for name, (label, help_text, article) in ANSWERS.items()
        }
        if st.form_submit_button("Save", type="primary", disabled=not visitor.may(Act.CHANGE_SETTINGS)):
            require(visitor, Act.CHANGE_SETTINGS)
            new = DeskSettings(
                answers=StandingAnswers(**{name: text.strip() or None for name, text in typed.items()}),
                jurisdiction=jurisdiction.strip().upper() or None,
                time_zone=time_zone.strip(),
                tombstone_days=int(days),
                version=st.session_state[version],
            )
            try:
                saved = desk.change_settings(new)
            except Refused as refused:
                st.error("Nothing was saved.")
                plain(str(refused))
            else:
                st.session_state[version] = saved.version
                if asdict(saved) != asdict(now):
                    st.session_state["saved"] = True
                st.rerun()


def proof(desk: PrivacyDesk) -> None:
    """Check the trail, and show how the ledger stands."""
    st.subheader("The trail")
    st.caption(
        "Every look at a subject, every act and every change of a setting, each line chained to the one before by its hash. "
        "Keep the head somewhere else: with it, a trail that was cut off or written anew is found out."
    )
    if st.button("Check the trail", icon=":material/verified:"):
        with st.spinner("Checking every line…"):
            verified = desk.verify_trail()
        if verified.ledger_fault:
            st.warning("It could not be compared with the ledger outside:")
            plain(verified.ledger_fault)
        if verified.broken:
            st.error("The trail does not hold.")
            plain(verified.broken.what)
        else:
            st.success(
                f"{verified.lines:,} lines hold, and {verified.heads_outside:,} heads in the ledger outside agree. Head:"
            )
            plain(verified.head or "none: the trail is empty")
    trail_view.show(lambda limit: desk.trail(limit=limit))
    st.subheader("The ledger")
    ledger = desk.ledger()
    st.caption(
        "Each erasure, restriction, hold and suppression is copied out of the database, without a word of text, so that a "
        "database restored from a backup is known, and what was erased is erased again. Keep it apart from the backups."
    )
    plain(str(ledger.path) if ledger.path else "nothing was written in this organisation yet")


visitor = gate(Act.READ_SETTINGS, Act.READ_TRAIL, title="Settings")
st.title("Settings")
if st.session_state.pop("saved", False):
    st.success("Saved. The trail says what was changed, and by whom.")
with explained():
    desk = visitor.desk()
    answers(visitor, desk)
    safeguards_view.show(visitor, desk, version=f"version of the settings of {visitor.org_id}")
    if visitor.may(Act.READ_TRAIL):
        proof(desk)
