"""What every chart shares: a title, a unit on each axis, and nothing that is fetched."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

BLUE, AMBER, RED, GREEN, GREY = "#3d8fb8", "#c98a1b", "#d1495b", "#4c9f70", "#8a8f98"
NARROWEST = 350  # pixels
AT_THE_TOP = {"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 12}}


def titled(chart: go.Figure, *, title: str, x: str, y: str, height: int = 300) -> go.Figure:
    """Give a chart its title and the names of its axes, with their units."""
    for axes in (chart.update_xaxes, chart.update_yaxes):
        # Or numbers and titles have no room where no theme makes it, as in a notebook.
        axes(automargin=True)
    return chart.update_layout(
        title=title,
        xaxis_title={"text": x, "standoff": 10},
        yaxis_title={"text": y, "standoff": 10},
        height=height,
        margin={"l": 0, "r": 8, "b": 0, "t": 72},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": None},
        hovermode="closest",
    )


def with_names_below(chart: go.Figure) -> go.Figure:
    """Put the names under the chart, whose height is that of what is drawn: beside the title a telephone has no room."""
    widths = [44 + 7 * len(trace.name) for trace in chart.data]
    below = 64 + 20 * (1 if sum(widths) <= NARROWEST else len(widths))
    return chart.update_layout(
        height=48 + chart.layout.height + below,
        margin={"t": 48, "b": below},
        title=AT_THE_TOP,
        legend={"xref": "container", "yref": "container", "y": 0, "yanchor": "bottom", "traceorder": "normal"},
    )


def shown(chart: go.Figure, *, key: str) -> None:
    """Show a chart in the width that there is."""
    st.plotly_chart(chart, key=key, config={"displaylogo": False, "displayModeBar": False})
