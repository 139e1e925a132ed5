"""Charts of where the model's time goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from math import floor, log10

import plotly.graph_objects as go

from memory_core.figures import Headroom, Latency, Measures, MedianCall, Percentiles, Prompt
from memory_core.units import in_time, tokens_per_second, unit_of
from pages.charts import AMBER, BLUE, GREEN, GREY, RED, titled

RANKS = {"p50": BLUE, "p95": AMBER, "p99": RED}
PARTS = {"queue": GREY, "load": AMBER, "prompt": BLUE, "generation": GREEN, "the rest": "#b9bdc4"}
CACHED = {False: ("not cached", BLUE), True: ("mostly cached", AMBER), None: ("not reported", GREY)}
LONGEST_NAME = 40
MOST_STEPS = 10  # on an axis
FEW = 200  # points that do not hide each other


def over_time(seen: Latency, of: Callable[[Measures], Percentiles], *, title: str, speed: bool = False) -> go.Figure:
    """Return the percentiles of one time, as it is or as output tokens per second, over the period."""
    found = [of(bucket.measures) for bucket in seen.over_time]
    every = [time for one in found for time in (one.p50, one.p95, one.p99) if time is not None]
    factor, unit = (1.0, "tokens/s") if speed else unit_of(max(every, default=0.0))
    chart = go.Figure()
    for rank, colour in RANKS.items():
        times = [getattr(one, rank) for one in found]
        if any(time is not None for time in times):
            chart.add_scatter(
                x=[bucket.start for bucket in seen.over_time],
                y=[tokens_per_second(time) if speed else None if time is None else time / factor for time in times],
                customdata=[one.calls for one in found],
                name=rank,
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": 4},
                hovertemplate=f"%{{x}}<br>{rank} %{{y:,.1f}} {unit}<br>%{{customdata:,}} calls<extra></extra>",
            )
    chart.update_xaxes(range=[seen.over_time[0].start, seen.at])
    if speed or min(every, default=0.0) <= 0:
        chart.update_yaxes(rangemode="tozero")
    else:  # the usual call and the slow one differ tenfold; on one linear axis the usual one is a flat line
        ticks = steps(min(every) / factor, max(every) / factor)
        ends = [log10(ticks[0]), log10(ticks[-1])]
        chart.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,g}" for tick in ticks], range=ends)
    return titled(chart, title=title, x="Call began (UTC)", y="Output (tokens/s)" if speed else f"Time ({unit}, log)")


def breakdown(call: MedianCall) -> go.Figure:
    """Return the parts of one call, laid end to end."""
    factor, unit = unit_of(call.total_ms)
    chart, begun = go.Figure(), 0.0
    for name, ms in call.parts.items():
        said = "not reported" if ms is None else in_time(ms)
        chart.add_bar(
            y=[name],
            x=[(ms or 0.0) / factor],
            base=[begun / factor],
            orientation="h",
            marker_color=PARTS[name],
            text=said,
            textposition="outside",
            hovertemplate=f"{name}: {said}<extra></extra>",
            showlegend=False,
        )
        begun += ms or 0.0
    chart.update_yaxes(autorange="reversed")
    # With room for what is written behind a bar.
    chart.update_xaxes(range=[0, max(begun, call.total_ms, 1.0) / factor * 1.3], tickformat=",", nticks=6)
    return titled(chart, title=f"One median call: {in_time(call.total_ms)}", x=f"Since its start ({unit})", y="Part")


def errors(by_error: Mapping[str, int]) -> go.Figure:
    """Return how many calls failed with each code."""
    calls = list(by_error.values())
    chart = go.Figure()
    chart.add_bar(
        y=[escape(code) for code in by_error],
        x=calls,
        orientation="h",
        marker_color=RED,
        text=[f"{number:,}" for number in calls],
        textposition="outside",
        hovertemplate="%{y}: %{x:,} calls<extra></extra>",
    )
    chart.update_yaxes(autorange="reversed")
    chart.update_xaxes(range=[0, max(calls) * 1.2], tickformat=",d")
    return titled(chart, title="Failed calls, by error code", x="Calls", y="Error code")


def prompt_times(prompts: tuple[Prompt, ...], size: Callable[[Prompt], int], *, title: str, x: str) -> go.Figure:
    """Return the time that the model read each prompt, against a size of it."""
    factor, unit = unit_of(max(one.ms for one in prompts))
    chart = go.Figure()
    for cached, (name, colour) in CACHED.items():
        some = [one for one in prompts if one.cached is cached]
        if some:
            chart.add_scatter(
                x=[size(one) for one in some],
                y=[one.ms / factor for one in some],
                customdata=[_short(one.model) for one in some],
                name=name,
                mode="markers",
                marker={"color": colour, "size": 5, "opacity": 0.55}
                if len(prompts) > FEW
                else {"color": colour, "size": 8},
                hovertemplate=f"%{{customdata}}<br>%{{x:,}} tokens, %{{y:,.1f}} {unit}<extra></extra>",
            )
    chart.update_xaxes(rangemode="tozero", tickformat=",d")
    chart.update_yaxes(rangemode="tozero")
    return titled(chart, title=title, x=x, y=f"Prompt time ({unit})", height=340)


def busiest_minutes(headroom: Headroom) -> go.Figure:
    """Return the tokens of the busiest minutes under the ceiling."""
    chart = go.Figure()
    chart.add_bar(
        x=list(headroom.busiest),
        y=list(headroom.busiest.values()),
        marker_color=BLUE,
        hovertemplate="%{x}<br>%{y:,} tokens in one minute<extra></extra>",
    )
    chart.add_hline(y=headroom.ceiling, line={"color": RED, "dash": "dash"}, annotation_text="ceiling")
    chart.update_yaxes(rangemode="tozero", tickformat=",d")
    return titled(chart, title="Busiest minute of each stretch", x="Calls began (UTC)", y="Tokens a minute")


def steps(least: float, most: float) -> list[float]:
    """Return the steps 1, 2 and 5 of the powers of ten from below one number to above another, or powers alone if many."""
    powers = [10.0**power for power in range(floor(log10(least)) - 1, floor(log10(most)) + 2)]
    fine = _around(least, most, [factor * power for power in powers for factor in (1, 2, 5)])
    return fine if len(fine) <= MOST_STEPS else _around(least, most, powers)


def _around(least: float, most: float, ascending: list[float]) -> list[float]:
    below = [step for step in ascending if step < least]
    above = [step for step in ascending if step > most]
    return [*below[-1:], *(step for step in ascending if least <= step <= most), *above[:1]]


def _short(name: str) -> str:
    return escape(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…")
