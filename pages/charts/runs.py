"""The chart of what one run did in time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from memory_core.run_steps import Step, StepKind, StepState
from memory_core.units import in_time
from pages.charts import AMBER, BLUE, GREEN, RED, titled, with_names_below
from pages.runs.words import named, outcome_of, shortly

VIOLET = "#7d5ba6"
# In the order of the legend; what went wrong is hatched, so that no colour alone says it.
DRAWN = {
    (StepKind.RECALL, StepState.DONE): ("recall", VIOLET, ""),
    (StepKind.MODEL, StepState.DONE): ("model answered", BLUE, ""),
    (StepKind.MODEL, StepState.FAILED): ("model failed", RED, "/"),
    (StepKind.MODEL, StepState.UNFINISHED): ("model: no end on record", AMBER, "."),
    (StepKind.TOOL, StepState.DONE): ("tool done", GREEN, ""),
    (StepKind.TOOL, StepState.FAILED): ("tool said no or failed", RED, "\\"),
    (StepKind.TOOL, StepState.UNFINISHED): ("not carried out", AMBER, "x"),
}
MOST_STEPS = 60  # that are drawn
LONGEST_NAME = 18
LEAST_WIDTH = 0.004  # of the whole, so that a short step is seen
LEAST_HATCHED = 0.02  # … so that what is hatched is seen to be: what failed sooner is a mark


def timeline(steps: Sequence[Step], *, until_ms: float | None) -> go.Figure:
    """Return a run's steps one under the other over the time since its start; `until_ms` is when it ended, if that is known."""
    labels = [f"{number} {_short(shortly(one))}" for number, one in enumerate(steps, start=1)]
    whole = max([until_ms or 0.0, 1.0, *(one.since_ms + (one.took_ms or 0.0) for one in steps)])
    chart = go.Figure()
    for (kind, state), (name, colour, pattern) in DRAWN.items():
        some = [
            (label, one) for label, one in zip(labels, steps, strict=True) if (one.kind, one.state) == (kind, state)
        ]
        if not some:
            continue
        marked = [(label, one) for label, one in some if _is_mark(one, whole)]
        if marked:
            chart.add_scatter(
                y=[label for label, _ in marked],
                x=[one.since_ms / 1000 for _, one in marked],
                mode="markers",
                marker={"symbol": "diamond" if kind is StepKind.RECALL else "x", "size": 11, "color": colour},
                cliponaxis=False,
                customdata=[_said(one) for _, one in marked],
                hovertemplate="%{customdata}<extra></extra>",
                name=name,
                legendgroup=name,
                showlegend=len(marked) == len(some),
            )
        some = [(label, one) for label, one in some if not _is_mark(one, whole)]
        if not some:
            continue
        # Without an end it is drawn until the run's own.
        lengths = [whole - one.since_ms if one.took_ms is None else one.took_ms for _, one in some]
        chart.add_bar(
            y=[label for label, _ in some],
            x=[max(length, whole * LEAST_WIDTH) / 1000 for length in lengths],
            base=[one.since_ms / 1000 for _, one in some],
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
            text=[in_time(one.took_ms) for _, one in some],
            textposition="outside",
            customdata=[_said(one) for _, one in some],
            hovertemplate="%{customdata}<extra></extra>",
            name=name,
            legendgroup=name,
        )
    chart.update_yaxes(categoryorder="array", categoryarray=labels, autorange="reversed", type="category")
    # With room for what is written behind a bar, and for a mark at the very start.
    chart.update_xaxes(range=[-whole * 0.02 / 1000, whole * 1.25 / 1000], tickformat=",", nticks=8)
    height = 60 + 26 * len(steps)
    titled(
        chart,
        title="Steps over time",
        x="Since its start (s)",
        y="Step",
        height=height,
    )
    chart.update_yaxes(title_standoff=24)  # beside the longest name, and not on it
    return with_names_below(chart.update_layout(barmode="overlay", bargap=0.25, showlegend=True))


def _is_mark(one: Step, whole_ms: float) -> bool:
    """Say whether a step is drawn as a mark and not as a bar: a recall, or what failed too soon to be seen."""
    is_short = one.took_ms is not None and one.took_ms < whole_ms * LEAST_HATCHED
    return one.kind is StepKind.RECALL or (one.state is StepState.FAILED and is_short)


def _said(one: Step) -> str:
    return f"{_told(one)}<br>after {in_time(one.since_ms)}"


def _told(one: Step) -> str:
    took = f", {in_time(one.took_ms)}" if one.took_ms is not None else ""
    return escape(f"{one.kind} {named(one)}: {outcome_of(one)}{took}")


def _short(name: str, longest: int = LONGEST_NAME) -> str:
    return escape(name if len(name) <= longest else f"{name[: longest - 1]}…")
