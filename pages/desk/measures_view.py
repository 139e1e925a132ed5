"""What stands about a subject, and placing and lifting it."""

from __future__ import annotations

from uuid import UUID

import streamlit as st

from memory_core import AwaitingSecond, Held, HeldMemory
from memory_core.privacy import PrivacyDesk
from memory_core.rights import Measure, MeasureKind
from memory_core.roles import Act
from memory_core.rules.erasure import MAX_REASON
from pages import Visitor, explained, plain, require, safe_frame
from pages.desk.acting import tell_awaiting, working_on

WHAT = {
    MeasureKind.RESTRICTION: (
        "Restrict",
        "Kept and shown here, but never recalled for any model (Art. 18). Also what is written about them later.",
    ),
    MeasureKind.HOLD: (
        "Put on hold",
        "May not be forgotten, swept or purged while it stands. Also what is written about them later.",
    ),
    MeasureKind.SUPPRESSION: (
        "Stop new memories",
        "Nothing new may be remembered about them: whoever tries is refused and told of the request (Art. 21).",
    ),
}
LIFTING = "lifting"  # the measure about which something may have been typed


def standing(measures: list[Measure]) -> None:
    """Say in a line each what stands."""
    for one in measures:
        if not one.stands:
            continue
        kind = {"restriction": "Restricted", "hold": "On hold", "suppression": "Nothing new is remembered"}[one.kind]
        scope = "one memory" if one.memory_id else "everything about them"
        review = f", to be reviewed on {one.review_on:%d %b %Y}" if one.review_on else ""
        st.warning(f"{kind} since {one.placed_at:%d %b %Y}: {scope}{review}.", icon=":material/front_hand:")
        plain(f"{one.name}, placed by {one.by}: {one.reason}")


def show(visitor: Visitor, desk: PrivacyDesk, held: Held, measures: list[Measure]) -> None:
    """Show every measure there is or was, and offer to place and to lift."""
    if measures:
        st.dataframe(
            safe_frame([row(one) for one in measures]),
            hide_index=True,
            placeholder="–",
            column_config={
                name: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")
                for name in ("since (UTC)", "lifted (UTC)")
            },
        )
    else:
        st.caption("Nothing stands about them, and nothing ever did.")
    left, right = st.columns(2, gap="large")
    with left:
        place(visitor, desk, held)
    with right:
        tell_of_lost(measures)
        lift(visitor, desk, [one for one in measures if one.stands])


def row(one: Measure) -> dict[str, object]:
    """Return a row of the table of measures."""
    return {
        "what": one.kind.value,
        "name": one.name,
        "about": f"memory {one.memory_id}" if one.memory_id else "everything about them",
        "since (UTC)": one.placed_at,
        "review on": one.review_on,
        "placed by": one.by,
        "reason": one.reason,
        "request": one.request_reference,
        "lifted (UTC)": one.lifted_at,
        "lifted by": one.lifted_by,
        "lifted because": one.lifted_reason,
        "person told before": {True: "yes", False: "no", None: ""}[one.person_told],
    }


def place(visitor: Visitor, desk: PrivacyDesk, held: Held) -> None:
    """Ask for a measure about everything held about a subject."""
    st.markdown("**Place**")
    kind = st.segmented_control(
        "Measure",
        list(WHAT),
        format_func=lambda one: WHAT[one][0],
        default=MeasureKind.RESTRICTION,
        key="measure kind",
        label_visibility="collapsed",
    )
    if kind is not None:
        form(visitor, desk, kind, held, memory=None)


def form(visitor: Visitor, desk: PrivacyDesk, kind: MeasureKind, held: Held, *, memory: HeldMemory | None) -> None:
    """Ask who it is for, why and until when, then place it; about one memory, or everything about the subject."""
    label, what = WHAT[kind]
    memory_id: UUID | None = memory.memory_id if memory else None
    if memory is None:
        st.caption(what)
    key = f"{kind} {held.subject} {memory_id} {st.session_state.get('placed', 0)}"  # empty again after each
    reference = working_on(visitor)
    with st.form(key, border=True):
        name = (
            st.text_input("Matter", placeholder="such as case-2026-114", help="Letters, digits and ._:@/+- only")
            if kind is MeasureKind.HOLD
            else None
        )
        reason = st.text_area(
            "Reason", max_chars=MAX_REASON, height=80, help="It stays on record. Do not quote the memories."
        )
        review_on = st.date_input(
            "Look at it again on",
            value=None,
            min_value=desk.today(),
            help="Home reminds you then. Nothing lifts itself.",
        )
        if st.form_submit_button(label, type="primary"):
            require(visitor, Act.MEASURE)
            with explained():
                placed = {
                    MeasureKind.RESTRICTION: desk.restrict,
                    MeasureKind.HOLD: desk.hold,
                    MeasureKind.SUPPRESSION: desk.suppress,
                }[kind](
                    reason.strip(),
                    subject=None if memory_id else held.subject,
                    memory_id=memory_id,
                    name=(name or "").strip() or None,
                    review_on=review_on,
                    reference=reference,
                )
            st.session_state["placed"] = st.session_state.get("placed", 0) + 1
            st.session_state["done"] = ("Placed.", f"{placed.kind} of {held.subject}")
            st.rerun()


def tell_of_lost(measures: list[Measure]) -> None:
    """Give back what was typed to lift a measure that somebody else has lifted meanwhile."""
    one = next((one for one in measures if one.measure_id == st.session_state.get(LIFTING)), None)
    if one is None or one.stands:
        return
    del st.session_state[LIFTING]
    if typed := st.session_state.get(f"why {one.measure_id}"):
        st.warning("Nothing was done: somebody else has lifted it meanwhile. What you had typed:")
        plain(f"{typed}\n(lifted by {one.lifted_by}: {one.lifted_reason})")


def lift(visitor: Visitor, desk: PrivacyDesk, measures: list[Measure]) -> None:
    """Ask why a measure is lifted and, of a restriction, whether the person was told; then lift it."""
    st.markdown("**Lift**")
    if not measures:
        st.caption("Nothing stands that could be lifted.")
        return
    chosen = st.selectbox(
        "Which",
        range(len(measures)),
        format_func=lambda place: f"{place + 1}. {measures[place].kind}",
        key="lift which",
    )
    one = measures[chosen or 0]
    st.session_state[LIFTING] = one.measure_id
    plain(f"{one.name}: {one.reason}")
    with st.form(f"lift {one.measure_id}", border=True):
        told = None
        if one.kind is MeasureKind.RESTRICTION:
            told = st.radio(
                "Was the person told that it is lifted?",
                [True, False],
                index=None,
                format_func=lambda answer: "Yes, before" if answer else "No",
                help="They must be told before a restriction is lifted (Art. 18(3)). The answer stays on record.",
            )
        reason = st.text_area("Why it is lifted", max_chars=MAX_REASON, height=80, key=f"why {one.measure_id}")
        if st.form_submit_button("Lift", type="primary"):
            require(visitor, Act.MEASURE)
            with explained():
                try:
                    desk.lift(one, reason=reason.strip(), person_told=told)
                except AwaitingSecond as awaiting:
                    tell_awaiting(awaiting, "It stands yet: another data protection officer has to agree first.")
                    return
            st.session_state.pop(LIFTING, None)
            st.session_state["done"] = ("Lifted.", f"{one.kind} of {one.subject or 'one memory'}")
            st.rerun()
