"""What an organisation lets be seen, be done by one officer alone, and leave: each with what it does, who set it and when."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from memory_core import Refused
from memory_core.leaving import leaving_of
from memory_core.privacy import CHANGE_SAFEGUARDS, MAY_LEAVE, STAY, PrivacyDesk
from memory_core.rights import Safeguards, TrailEntry
from memory_core.roles import Act
from memory_core.units import in_utc
from pages import Visitor, plain, require
from pages.recall.purpose import allowed

MOST = 1_000_000
CHANGES = {  # as the trail names them
    "preview_pseudonyms": ("preview_pseudonyms",),
    "four_eyes_over": ("four_eyes_over",),
    "observations_leave": (MAY_LEAVE, STAY),
}


def show(visitor: Visitor, desk: PrivacyDesk, *, version: str) -> None:
    """Show the safeguards and save what was changed; `version` is where the session keeps that of what is shown."""
    now = desk.safeguards()
    changes = desk.trail(act=CHANGE_SAFEGUARDS, limit=200) if visitor.may(Act.READ_TRAIL) else []
    place = f"{visitor.org_id} safeguards"
    st.subheader("Safeguards")
    with st.form(place, border=False):
        pseudonyms = st.toggle("Pseudonyms in previews", now.preview_pseudonyms, key=f"{place} pseudonyms")
        st.caption(
            "An engineer who previews a recall or opens a run is shown persons under pseudonyms, which last as long as the "
            "visit. Names in a question are left out, and nobody is found by one. Whom the preview is a disclosure of stays "
            "on record, and a real run is always shown the real names. It keeps names out of sight; who somebody is can still "
            "be told from what is said about them."
        )
        last_change(changes, "preview_pseudonyms")
        left, right = st.columns([2, 1], vertical_alignment="bottom")
        is_asked = left.toggle("A second officer agrees", now.four_eyes_over is not None, key=f"{place} four eyes")
        over = right.number_input(
            "To erase more than … memories",
            0,
            MOST,
            now.four_eyes_over or 0,
            help="With 0, to every erasure of any.",
            key=f"{place} over",
        )
        st.caption(
            "Erasing more memories than that alone within a day, corrections among them, lifting a hold and handing out a "
            "package wait until another data protection officer agrees to exactly that, for seven days at most."
        )
        last_change(changes, "four_eyes_over")
        leave = st.toggle("Observations may leave", now.observations_leave, key=f"{place} leave")
        st.caption(
            "With a model outside the private network, what it is sent leaves. Observations, which are about persons, are "
            "left out of that unless they are let leave here; facts are sent. An embedder outside is sent nothing at all until "
            "then. Where both are inside, this changes nothing."
        )
        last_change(changes, "observations_leave")
        if st.form_submit_button("Save the safeguards", disabled=not visitor.may(Act.CHANGE_SAFEGUARDS)):
            new = replace(
                now,
                preview_pseudonyms=pseudonyms,
                four_eyes_over=int(over) if is_asked else None,
                observations_leave=leave,
                version=st.session_state[version],
            )
            save(visitor, desk, now, new, version=version)
    consequences(visitor, now)


def save(visitor: Visitor, desk: PrivacyDesk, now: Safeguards, new: Safeguards, *, version: str) -> None:
    """Save the safeguards, as a change of what the session was shown."""
    require(visitor, Act.CHANGE_SAFEGUARDS)
    try:
        saved = desk.change_safeguards(new)
    except Refused as refused:
        st.error("Nothing was saved.")
        plain(str(refused))
        return
    st.session_state[version] = saved.version
    if saved != now:
        st.session_state["saved"] = True
    st.rerun()


def last_change(changes: list[TrailEntry], name: str) -> None:
    """Say who changed one of them last, and when."""
    for line in changes:
        if any(word in (line.reason or "").split(", ") for word in CHANGES[name]):
            st.text(f"Last changed by {line.by} on {in_utc(line.at)} UTC.")
            return


def consequences(visitor: Visitor, now: Safeguards) -> None:
    """Say what the safeguards come to here."""
    if now.four_eyes_over is not None and visitor.work.who is None:
        st.warning(
            "Without a sign-in there is one local user, and nobody else who could agree: what needs a second officer cannot "
            "be done here until there is a sign-in, or this is switched off.",
            icon=":material/group:",
        )
    leaving = leaving_of(now, model_is_outside=visitor.settings.model_is_outside)
    if not leaving.model_is_outside:
        st.caption("The configured model is inside the private network: nothing leaves.")
    elif leaving.observations_stay:
        st.info("The configured model is outside the private network: it is sent facts, and no observation.")
    else:
        st.warning("The configured model is outside the private network, and observations are sent to it.")
    if leaving.allowed_by is not None:
        st.text(allowed(leaving))
