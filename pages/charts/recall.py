"""Charts of what a recall finds and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from memory_core.evals.recall_size import Recommendation, Step
from memory_core.evals.retrieval import ALL, Estimate, Report
from pages.charts import AMBER, BLUE, GREEN, GREY, RED, titled

COLOURS = (BLUE, AMBER, GREEN, RED, GREY, "#7d5ba6", "#1d9a9a", "#b0679b")
BAND = "rgba(61, 143, 184, 0.2)"
SIZES = "Memories recalled (k)"
MOST_TICKS = 20
FOUND = "Questions with evidence found (%)"


def found_by_size(steps: Sequence[Step], chosen: Recommendation | None) -> go.Figure:
    """Return how often evidence is found, by the number of memories, with its interval and the choice."""
    chart = _with_band(steps, lambda one: one.found, factor=100, name="found")
    if chosen is not None:
        chart.add_vrect(x0=chosen.low - 0.3, x1=chosen.high + 0.3, fillcolor=GREEN, opacity=0.12, line_width=0)
        chart.add_vline(x=chosen.k, line={"color": GREEN, "dash": "dash"}, annotation_text=f"{chosen.k}")
    chart.update_yaxes(range=[0, 101])
    return _by_size(chart, title="Evidence found, by recall size (band: 95 % interval)", y=FOUND)


def added_by_size(steps: Sequence[Step]) -> go.Figure:
    """Return what each further memory adds to the share of the questions with evidence."""
    chart = go.Figure()
    chart.add_bar(
        x=[one.k for one in steps],
        y=[100 * one.added.value for one in steps],
        error_y=_errors([one.added for one in steps], factor=100),
        marker_color=BLUE,
        hovertemplate="memory %{x}: %{y:+.1f} points<extra></extra>",
    )
    return _by_size(chart, title="What each further memory finds (95 % interval)", y="Questions gained (points of 100)")


def tokens_by_size(steps: Sequence[Step]) -> go.Figure:
    """Return the tokens of a block, by the number of memories."""
    chart = _with_band(steps, lambda one: one.tokens, factor=1, name="mean")
    chart.add_scatter(
        x=[one.k for one in steps],
        y=[one.tokens_p95 for one in steps],
        name="95 of 100 keep to",
        mode="lines",
        line={"color": AMBER, "dash": "dot"},
    )
    chart.update_yaxes(rangemode="tozero", tickformat=",d")
    return _by_size(chart, title="Size of the block", y="Block (estimated tokens)")


def minute_by_size(steps: Sequence[Step], *, minute: int) -> go.Figure:
    """Return what the mean block takes of a minute's tokens."""
    chart = go.Figure()
    chart.add_bar(x=[one.k for one in steps], y=[100 * one.of_a_minute for one in steps], marker_color=BLUE)
    return _by_size(chart, title="Share of the ceiling that one block takes", y=f"Of {minute:,} tokens a minute (%)")


def time_by_size(steps: Sequence[Step]) -> go.Figure:
    """Return the time that the mean block takes to be read; draws none where none is on record."""
    timed = [one for one in steps if one.prompt_ms is not None]
    chart = go.Figure()
    chart.add_scatter(
        x=[one.k for one in timed], y=[one.prompt_ms for one in timed], mode="lines+markers", line={"color": BLUE}
    )
    chart.update_yaxes(rangemode="tozero", tickformat=",d")
    return _by_size(chart, title="Time to read the block, from recorded calls", y="Prompt time (ms)")


def choices(chosen: Recommendation | None) -> go.Figure:
    """Return how often each number of memories is chosen when the questions are drawn again."""
    chart = go.Figure()
    found = {} if chosen is None else chosen.choices
    chart.add_bar(x=list(found), y=[100 * share for share in found.values()], marker_color=GREEN)
    return _by_size(chart, title="Which size resampled questions choose", y="Resamples that choose it (%)")


def side_by_side(report: Report) -> go.Figure:
    """Return how often each ranking finds evidence, by the number of memories."""
    chart = go.Figure()
    for name, colour in _coloured(report):
        rows = [row for row in report.rows if (row.ranking, row.category) == (name, ALL)]
        chart.add_scatter(
            x=[row.k for row in rows],
            y=[100 * row.any_evidence.value for row in rows],
            error_y=_errors([row.any_evidence for row in rows], factor=100),
            name=escape(name),
            mode="lines+markers",
            line={"color": colour},
        )
    chart.update_yaxes(range=[0, 101])
    return _by_size(chart, title="Rankings and embedders (95 % interval)", y=FOUND)


def by_category(report: Report, *, k: int) -> go.Figure:
    """Return how often each ranking finds evidence among k memories, by the category of the question."""
    chart = go.Figure()
    for name, colour in _coloured(report):
        rows = [row for row in report.rows if (row.ranking, row.k) == (name, k)]
        chart.add_bar(
            x=[f"{escape(row.category)} ({row.questions:,})" for row in rows],
            y=[100 * row.any_evidence.value for row in rows],
            error_y=_errors([row.any_evidence for row in rows], factor=100),
            name=escape(name),
            marker_color=colour,
        )
    chart.update_yaxes(range=[0, 101])
    title = f"By category, among {k} memories (95 % interval)"
    return titled(chart, title=title, x="Category (questions)", y=FOUND, height=380)


def _by_size(chart: go.Figure, *, title: str, y: str) -> go.Figure:
    sizes = {size for trace in chart.data for size in trace.x or ()}
    chart.update_xaxes(dtick=1 if max(sizes, default=0) <= MOST_TICKS else None)
    return titled(chart, title=title, x=SIZES, y=y, height=340)


def _with_band(steps: Sequence[Step], of: Callable[[Step], Estimate], *, factor: int, name: str) -> go.Figure:
    sizes = [one.k for one in steps]
    low, high = ([factor * getattr(of(one), end) for one in steps] for end in ("low", "high"))
    chart = go.Figure()
    chart.add_scatter(
        x=[*sizes, *reversed(sizes)],
        y=[*high, *reversed(low)],
        fill="toself",
        fillcolor=BAND,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
    )
    values = [factor * of(one).value for one in steps]
    return chart.add_scatter(x=sizes, y=values, name=name, mode="lines+markers", line={"color": BLUE})


def _errors(estimates: Sequence[Estimate], *, factor: int) -> Mapping[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [factor * (one.high - one.value) for one in estimates],
        "arrayminus": [factor * (one.value - one.low) for one in estimates],
        "thickness": 1,
        "width": 2,
    }


def _coloured(report: Report) -> list[tuple[str, str]]:
    names = dict.fromkeys(row.ranking for row in report.rows)
    return [(name, COLOURS[place % len(COLOURS)]) for place, name in enumerate(names)]
