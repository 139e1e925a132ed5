"""What somebody looks at a preview for, and what it shows and leaves out."""

from __future__ import annotations

import streamlit as st

from memory_core.leaving import Leaving, leaving_of
from memory_core.rights import Safeguards
from memory_core.rules.request import MAX_BECAUSE
from memory_core.units import in_utc
from pages import Visitor, explained

IN_WORDS = "something else, in words"
PURPOSES = ("checking a prompt before a change", "looking into a complaint", "testing recall", IN_WORDS)


def ask() -> str:
    """Ask what the preview is for; "" where that is not said."""
    left, right = st.columns(2)
    chosen = left.selectbox("What for", PURPOSES, index=None, placeholder="choose a purpose", key="preview purpose")
    words = right.text_input(
        "In words",
        max_chars=MAX_BECAUSE,
        placeholder="where none of those is it",
        help="It stays on record with your name. Do not name persons.",
        key="preview purpose in words",
    )
    return words.strip() if chosen == IN_WORDS else chosen or ""


def safeguards(visitor: Visitor) -> Safeguards:
    """Read what the organisation lets be seen and leave."""
    with explained():
        return visitor.desk().safeguards()


def tell(visitor: Visitor, chosen: Safeguards) -> None:
    """Say under which names persons are shown, and what is left out since the model is outside."""
    if chosen.preview_pseudonyms:
        st.info(
            "Persons stand under pseudonyms here, the same ones as long as you are here; ask for them by those, since a name "
            "in a question is left out. A real run is shown the real names.",
            icon=":material/visibility_off:",
        )
    leaving = leaving_of(chosen, model_is_outside=visitor.settings.model_is_outside)
    if leaving.observations_stay:
        st.info(
            "**The model is outside the private network.** Observations are left out of what it is sent, and so they are here: "
            "an admin can let them leave, in Settings.",
            icon=":material/public:",
        )
    elif leaving.model_is_outside:
        st.info("**The model is outside the private network.** Observations are sent to it.", icon=":material/public:")
        st.text(allowed(leaving))


def allowed(leaving: Leaving) -> str:
    """Say who has let observations leave, and since when."""
    return f"Let leave by {leaving.allowed_by}, since {in_utc(leaving.allowed_at)} UTC."
