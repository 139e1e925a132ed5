"""The access package: what to look at before it is handed out, and handing it out."""

from __future__ import annotations

from uuid import UUID

import streamlit as st

from memory_core import AwaitingSecond, Subject
from memory_core.errors import Refusal, Refused
from memory_core.package import access_files, passphrase, sealed
from memory_core.privacy import PrivacyDesk
from memory_core.rights import AccessPackage, PackageItem, RequestType, RightsRequest, TrailEntry
from memory_core.roles import Act
from memory_core.rules.requests import acting_refusal, release_refusal
from pages import Visitor, explained, figures, name_of, plain, require
from pages.desk.acting import tell_awaiting
from pages.desk.leaving_out import choose, left_out
from pages.web.offering import download

QUESTIONS = {
    "controller": "who is responsible",
    "officer": "how to reach the officer",
    "purposes": "purposes",
    "categories": "categories",
    "recipients": "recipients",
    "retention": "how long it is kept",
    "authority": "where to complain",
    "automated_decisions": "automated decisions",
    "transfers": "other countries",
}


def offer(visitor: Visitor, request: RightsRequest, *, handed_out: TrailEntry | None) -> None:
    """Offer to look through the package; say whether it was prepared before."""
    if handed_out is not None:
        st.success(f"Prepared for handing out on {handed_out.at:%Y-%m-%d} at {handed_out.at:%H:%M} UTC.")
    st.markdown("See what would be handed out, and leave out what would harm the rights of others.")
    if request.type is RequestType.PORTABILITY:
        st.caption(
            "Portability reaches what the person gave us themselves, on consent or for a contract (Art. 20). The package has "
            "everything, and says of each item whether a person stated it."
        )
    pressed = st.button(
        "Look through it",
        type="secondary" if handed_out else "primary",
        icon=":material/folder_open:",
        key=f"look {request.reference}",
    )
    if pressed:
        st.session_state["reviewing"] = (visitor.org_id, request.reference)
        st.rerun()


def show(
    visitor: Visitor, desk: PrivacyDesk, subject: Subject, *, reference: str | None = None, with_name: bool = True
) -> None:
    """Show a subject's package before it is handed out; it is put together anew each time, and each look is on record."""
    place = f"{visitor.org_id} {subject} {reference}"
    with explained(), st.spinner("Putting the package together…"):
        try:
            package = desk.package(subject, reference=reference)
        except Refused as refused:
            st.warning("There is no package for this person under that request.")
            plain(str(refused))
            return
    with_text = [item for item in package.items if item.memory.text is not None]
    naming = [item for item in with_text if item.mentions]
    reasons: dict[UUID, str] = st.session_state.setdefault(f"left out {place}", {})
    for memory_id in reasons.keys() - {item.memory.memory_id for item in with_text}:  # emptied meanwhile
        del reasons[memory_id]
    if with_name:
        st.text(name_of(package.subject))
    in_figures(package, naming, reasons)
    unanswered(package)
    if with_text:
        choose(naming, with_text, reasons, place)
        left_out(with_text, reasons, place)
    hand_out(visitor, desk, package, reasons, place)


def in_figures(package: AccessPackage, naming: list[PackageItem], reasons: dict[UUID, str]) -> None:
    """Show the package in figures."""
    with_text = sum(item.memory.text is not None for item in package.items)
    figures(
        [
            ("Items", f"{len(package.items):,}", "Everything held, tombstones included."),
            ("With text", f"{with_text:,}", "Expired and restricted ones too."),
            ("Name others", f"{len(naming):,}", "Their text has the name of another known person."),
            ("Left out", f"{len(reasons):,}", "They come without their text, and with your reason."),
            (
                "Unanswered",
                f"{len(package.answers.unanswered)} of 9",
                "Standing answers of the organisation (Art. 15).",
            ),
        ]
    )


def unanswered(package: AccessPackage) -> None:
    """Say which of the organisation's own answers are missing, and where to give them."""
    if not package.answers.unanswered:
        return
    missing = ", ".join(QUESTIONS.get(name, name) for name in package.answers.unanswered)
    st.warning(f"**The organisation has not answered:** {missing}. The package says so to the person.")
    if st.button("Answer them in Settings", icon=":material/settings:"):
        st.switch_page("pages/7_Settings.py")


def hand_out(visitor: Visitor, desk: PrivacyDesk, looked: AccessPackage, reasons: dict[UUID, str], place: str) -> None:
    """Offer the package as an encrypted file, with a passphrase that is shown once; nothing of it is kept."""
    st.subheader("Hand it out")
    seen, st.session_state[f"seen {place}"] = st.session_state.get(f"seen {place}", looked.readable), looked.readable
    if why := not_yet(desk, looked.reference):
        st.info("It may be looked at, and not prepared yet:")
        st.text(why.reason)
        return
    st.caption(
        "An encrypted ZIP: access.html to read and print, access.json for programs, items.csv as a table. The passphrase is "
        "shown once, here, and kept nowhere: send it by another way than the file."
    )
    if looked.reference is None:
        st.warning("This is for no request: make sure yourself who gets it. It is on record as an export.")
    undecided = sum(bool(item.mentions) and item.memory.memory_id not in reasons for item in looked.items)
    if undecided:
        are = "item that names somebody else is" if undecided == 1 else "items that name somebody else are"
        st.caption(f"**{undecided:,} {are} handed out with the text.**")
    if st.button("Prepare the package", type="primary", icon=":material/lock:", key=f"prepare {place}"):
        require(visitor, Act.RELEASE)
        prepare(visitor, desk, looked, reasons, seen)


def not_yet(desk: PrivacyDesk, reference: str | None) -> Refusal | None:
    """Say why nothing may be handed out for a request, or None."""
    if reference is None:
        return None
    with explained():
        request = desk.register.request(reference)
    return release_refusal(request) or acting_refusal(request, needs_identity=True)


def prepare(visitor: Visitor, desk: PrivacyDesk, looked: AccessPackage, reasons: dict[UUID, str], seen: str) -> None:
    """Put the package together, seal it and show its passphrase; what nobody has looked at is not handed out."""
    with explained(), st.spinner("Preparing and encrypting…"):
        try:
            package = desk.package(
                looked.subject, reference=looked.reference, left_out=reasons, release=True, expecting=seen
            )
        except AwaitingSecond as awaiting:
            tell_awaiting(awaiting, "It was not prepared yet: another data protection officer has to agree first.")
            return
        except Refused as refused:
            st.error("It was not prepared. Look through it again.")
            plain(str(refused))
            return
        file = sealed(access_files(package), secret=passphrase())
    st.success("**The package is ready.** Download it and note the passphrase now: leaving this page loses both.")
    st.text("Passphrase, shown this once:")
    plain(file.passphrase)
    name = f"access-{looked.reference or f'{looked.at:%Y%m%d-%H%M%S}'}.zip"
    download(visitor, "Download the package", file.content, file_name=name, mime="application/zip", act=Act.RELEASE)
