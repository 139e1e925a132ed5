"""Home: what is held, what is due, what is up."""

from datetime import timedelta

import pandas as pd
import plotly.express as px
import streamlit as st

from memory_core import Overview, State
from memory_core.health import checks
from memory_core.roles import Act
from pages import Visitor, explained, figures, gate, in_order, plain
from pages.desk.words import many

DAYS = 30


def in_figures(overview: Overview) -> None:
    """Show the organisation in figures."""

    def in_state(state: State) -> int:
        return sum(count for (_, _, one), count in overview.counts.items() if one is state)

    soon, month = overview.expiring_in_7_days, overview.expiring_in_30_days
    figures(
        [
            ("Live memories", f"{in_state(State.LIVE):,}", "May be recalled now."),
            ("Subjects", f"{overview.subjects:,}", "People and things of whom text is held."),
            ("In 7 / 30 days", f"{soon:,} / {month:,}", "Live memories that expire within 7 and within 30 days."),
            ("Expired", f"{in_state(State.EXPIRED):,}", "Never recalled any more, but their text is still held."),
            ("No embedding", f"{overview.unembedded:,}", "Live memories that a semantic recall cannot find."),
        ]
    )
    if overview.unembedded:
        st.caption("Memories without an embedding are recalled by recency only, until this is run:")
        plain(f"python -m memory_core embed --org {overview.org_id}")


def by_kind_and_origin(overview: Overview) -> None:
    """Show what is held by kind, origin and state; every state counts as held."""
    st.subheader("Held, by kind and origin")
    rows = [
        {"kind": kind.value, "origin": origin.value, "state": state.value, "memories": count}
        for (kind, origin, state), count in overview.counts.items()
    ]
    table = pd.DataFrame(rows).pivot_table(
        index=["kind", "origin"], columns="state", values="memories", aggfunc="sum", fill_value=0
    )
    table = table.reindex(columns=[state.value for state in State if state.value in table.columns]).astype(int)
    st.dataframe(
        table.assign(held=table.sum(axis=1)).reset_index(),
        hide_index=True,
        column_config={name: st.column_config.NumberColumn(width=64) for name in (*table.columns, "held")},
    )
    st.caption("Origin says who concluded it: a person stated it, or a model inferred it and nobody has confirmed it.")


def expiring(overview: Overview) -> None:
    """Show how many live memories expire on each of the next thirty days."""
    st.subheader("What expires")
    dates = [overview.at.date() + timedelta(days=day) for day in range(DAYS + 1)]
    days = pd.DataFrame(
        {
            "date": dates,
            "memories": [overview.expiring_by_date.get(day, 0) for day in dates],
            "within": ["within 7 days" if number <= 7 else "within 30 days" for number in range(DAYS + 1)],
        }
    )
    chart = px.bar(
        days,
        x="date",
        y="memories",
        color="within",
        title="Live memories that expire in the next 30 days",
        labels={"date": "Expires on (UTC)", "memories": "Memories a day"},
        color_discrete_map={"within 7 days": "#d1495b", "within 30 days": "#3d8fb8"},
    )
    chart.update_layout(
        height=300,
        margin={"l": 0, "r": 0, "b": 0, "t": 70},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": None},
        bargap=0.15,
    )
    chart.update_yaxes(rangemode="tozero", tickformat=",d")
    st.plotly_chart(chart, config={"displaylogo": False, "displayModeBar": False})


def due(visitor: Visitor) -> None:
    """Say which requests and measures must not be overlooked; nothing where there are none."""
    found = visitor.desk().due()
    for pairs, show, word in ((found.overdue, st.error, "overdue"), (found.due_soon, st.warning, "due within 7 days")):
        if pairs:
            listed = ", ".join(
                f"{request.reference} ({request.type}, {deadline.due_on:%d %b})" for request, deadline in pairs[:5]
            )
            more = f" and {len(pairs) - 5:,} more" if len(pairs) > 5 else ""
            show(f"{len(pairs):,} {'request is' if len(pairs) == 1 else 'requests are'} {word}: {listed}{more}.")
    if found.to_review:
        what = many(len(found.to_review), "restriction, hold or suppression", "restrictions, holds or suppressions")
        st.warning(f"To be looked at again: {what}.")
        plain(
            "\n".join(f"{one.kind} of {one.subject or one.memory_id}, due {one.review_on}" for one in found.to_review)
        )
    if waits := sum(one.agreed is None for one in visitor.desk().waiting_for_second()):
        st.warning(f"For a second officer: {many(waits, 'act waits', 'acts wait')} for a decision, under Requests.")
    if found.open or waits:
        st.page_link(
            "pages/2_Requests.py", label=many(found.open, "open request", "open requests"), icon=":material/inbox:"
        )


visitor = gate(Act.OVERVIEW, title="Home")
st.title("What is held")
with explained():
    if visitor.may(Act.READ_REGISTER):
        due(visitor)
    now_held = visitor.store().overview()
if now_held.counts:
    in_figures(now_held)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        by_kind_and_origin(now_held)
    with right:
        expiring(now_held)
else:
    st.info("Nothing is held in this organisation yet. Load memories from a file, or look around in a demo:")
    plain(
        f"python -m memory_core import FILE --org {visitor.org_id}\npython -m memory_core demo --org {visitor.org_id}"
    )
st.subheader("What is up")
in_order(checks(visitor.settings, visitor.org_id))
