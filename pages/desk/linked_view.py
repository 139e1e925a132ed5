"""What is linked to a request: measures, erasures with their certificates, every step on record."""

from __future__ import annotations

import streamlit as st

from memory_core.privacy import PrivacyDesk
from memory_core.rights import Measure, RequestChange, RightsRequest, TrailEntry
from pages import Visitor, explained, safe_frame
from pages.desk import certificate_view
from pages.desk.words import many

LOOK = "look at package"
MOMENT = "YYYY-MM-DD HH:mm"


def show(
    visitor: Visitor, desk: PrivacyDesk, request: RightsRequest, measures: list[Measure], trail: list[TrailEntry]
) -> None:
    """Show everything that was done under a request's reference, then its history."""
    with explained():
        erasures = desk.erasures(reference=request.reference)
    if measures:
        st.subheader("Measures for this request")
        st.dataframe(
            safe_frame([measure_row(one) for one in measures]),
            hide_index=True,
            placeholder="–",
            column_config={
                "placed": st.column_config.DatetimeColumn("placed (UTC)", format=MOMENT),
                "lifted": st.column_config.DatetimeColumn("lifted (UTC)", format=MOMENT),
                "because": st.column_config.TextColumn("because", width="large"),
            },
        )
    if erasures:
        certificate_view.show_one_of(visitor, desk, erasures)
    st.subheader("History")
    looks = sum(one.act == LOOK for one in trail)
    steps = history(desk, request, [one for one in trail if one.act != LOOK])
    st.dataframe(
        safe_frame(steps),
        hide_index=True,
        height=min(len(steps), 12) * 35 + 38,
        column_config={
            "when": st.column_config.DatetimeColumn("When (UTC)", format=MOMENT, width=130),
            "who": st.column_config.TextColumn("Who", width=130),
            "what": st.column_config.TextColumn("What", width=170),
            "changed": st.column_config.TextColumn("What changed, from → to", width="large"),
        },
    )
    if looks:
        st.caption(f"The package was looked at {looks:,} time{'' if looks == 1 else 's'}; each look is in the trail.")


def measure_row(one: Measure) -> dict[str, object]:
    """Return a measure as a row."""
    return {
        "measure": one.kind.value,
        "stands": "yes" if one.stands else "lifted",
        "about": str(one.subject or ""),
        "covers": "everything" if one.memory_id is None else str(one.memory_id),
        "placed": one.placed_at,
        "by": one.by,
        "review": one.review_on,
        "because": one.reason,
        "lifted": one.lifted_at,
        "lifted by": one.lifted_by,
        "lifted because": one.lifted_reason,
        "person told before": {True: "yes", False: "no", None: ""}[one.person_told],
    }


def history(desk: PrivacyDesk, request: RightsRequest, trail: list[TrailEntry]) -> list[dict[str, object]]:
    """Return every step as a row, newest first, with what else the trail has under the reference."""
    with explained():
        changes = desk.register.history(request)
    rows = [change_row(one) for one in changes]
    rows += [trail_row(one) for one in trail if not one.act.startswith("request ")]
    return sorted(rows, key=lambda one: str(one["when"]), reverse=True)


def change_row(one: RequestChange) -> dict[str, object]:
    """Return a step of the request as a row."""
    changed = [
        f"{name.replace('_', ' ')}: {before or '–'} → {after or '–'}" for name, (before, after) in one.changed.items()
    ]
    return {"when": one.at, "who": one.by, "what": one.act, "changed": "; ".join(changed)}


def trail_row(one: TrailEntry) -> dict[str, object]:
    """Return a line of the trail as a row."""
    things = "" if one.count is None else many(one.count, "memory", "memories")
    return {"when": one.at, "who": one.by, "what": one.act.removeprefix("request "), "changed": things}
