"""Charts of what the tool-calling suites came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape

import plotly.graph_objects as go

from memory_core.characters import shown_whole
from memory_core.evals.statistics import AgentScore, CaseScore, Interval, kinds_of
from memory_core.evals.suite_report import passes
from memory_core.run_records import Termination
from pages.charts import AMBER, AT_THE_TOP, BLUE, GREEN, GREY, RED, titled, with_names_below
from pages.evals.words import short_names

# From none to all: told apart also by who cannot tell red from green, and black is legible on each.
SHARES = ((0.0, "#e8803c"), (0.5, "#f3e3c3"), (1.0, "#62aede"))
UNJUDGED, INK = "#b4b8bf", "#16181d"
ENDED = {
    Termination.COMPLETED: (GREEN, ""),
    Termination.TOOL_FAILURE: (AMBER, "/"),
    Termination.DEADLINE: (RED, "\\"),
    Termination.TURN_LIMIT: ("#7d5ba6", "x"),
    Termination.CANCELLED: ("#1d9a9a", "-"),
}
NOT_THE_MODELS = (GREY, ".")
LINES = (BLUE, AMBER, GREEN, RED, "#7d5ba6", "#1d9a9a", "#b0679b", GREY)
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "triangle-down", "pentagon", "star", "hexagon")
ROW = 34  # pixels
LONGEST_AGENT = 24  # characters: a longer name leaves the cells no room


def by_case(cases: Sequence[CaseScore]) -> go.Figure:
    """Return agents by kinds of cases, each cell with how many of its judged trials passed."""
    placed = _placed(cases)
    agents = list(dict.fromkeys(one.agent for one in cases))
    labels = _labels(agents)
    columns = [
        column for kind in kinds_of(cases) for column in sorted({column for _, column in placed if column[0] == kind})
    ]
    cells = [[placed.get((agent, column)) for column in columns] for agent in agents]
    chart = go.Figure()
    for colours, are_judged in ((SHARES, True), (((0.0, UNJUDGED), (1.0, UNJUDGED)), False)):
        own = [
            [cell if cell is not None and bool(cell.judged) is are_judged else None for cell in row] for row in cells
        ]
        chart.add_heatmap(
            x=[_in_lines(kind, number) for kind, number in columns],
            y=[labels[agent] for agent in agents],
            z=[[None if cell is None else cell.share or 0.0 for cell in row] for row in own],
            text=[["" if cell is None else passes(cell) for cell in row] for row in own],
            customdata=[["" if cell is None else _told(cell) for cell in row] for row in own],
            colorscale=colours,
            texttemplate="%{text}",
            textfont={"color": INK, "size": 13},
            hovertemplate="%{customdata}<extra></extra>",
            hoverongaps=False,
            xgap=3,
            ygap=3,
            showscale=False,
            zmin=0,
            zmax=1,
        )
    chart.update_yaxes(autorange="reversed", ticks="", showgrid=False)
    chart.update_xaxes(side="top", ticks="", showgrid=False, tickangle=0, tickfont_size=11)
    titled(chart, title="Trials passed, of those judged", x="Kind of case", y="Agent", height=135 + ROW * len(agents))
    return chart.update_layout(margin={"t": 125}, title=AT_THE_TOP)


def endings(scored: Sequence[AgentScore]) -> go.Figure:
    """Return how the trials of each agent ended."""
    found = Counter[str]()
    for one in scored:
        found.update(one.terminations)
    known = [str(one) for one in ENDED]
    labels = _labels(one.agent for one in scored)
    chart = go.Figure()
    for name in [*(one for one in known if one in found), *sorted(found.keys() - set(known))]:
        colour, pattern = ENDED[Termination(name)] if name in known else NOT_THE_MODELS
        chart.add_bar(
            y=[labels[one.agent] for one in scored],
            x=[one.terminations.get(name, 0) for one in scored],
            name=escape(shown_whole(name)),
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "size": 6, "solidity": 0.25}},
            hovertemplate=f"%{{y}}<br>{escape(shown_whole(name))}: %{{x:,}} trials<extra></extra>",
        )
    chart.update_yaxes(autorange="reversed")
    chart.update_xaxes(tickformat=",d")
    titled(chart, title="How the trials ended", x="Trials", y="Agent", height=ROW * len(scored))
    return with_names_below(chart).update_layout(barmode="stack")


def side_by_side(both: Mapping[str, Sequence[AgentScore]]) -> go.Figure:
    """Return the share of trials that pass of each agent, for two evaluations by name, with intervals."""
    agents = sorted({one.agent for scored in both.values() for one in scored})
    labels = _labels(agents)
    chart = go.Figure()
    for (name, scored), colour, symbol in zip(both.items(), LINES, SYMBOLS, strict=False):
        shares = {one.agent: one.pass_at_1 for one in scored if one.pass_at_1 is not None}
        chart.add_scatter(
            y=[labels[agent] for agent in agents if agent in shares],
            x=[100 * shares[agent].value for agent in agents if agent in shares],
            error_x=_errors([shares[agent] for agent in agents if agent in shares]),
            name=escape(name),
            mode="markers",
            orientation="h",
            marker={"color": colour, "symbol": symbol, "size": 9},
            hovertemplate="%{y}<br>%{x:.0f} %<extra></extra>",
        )
    chart.update_xaxes(range=[-2, 102], dtick=25)
    chart.update_yaxes(categoryorder="array", categoryarray=[labels[agent] for agent in agents], autorange="reversed")
    title = "pass@1 by agent (95 % interval)"
    titled(chart, title=title, x="Judged trials that passed (%)", y="Agent", height=ROW * len(agents))
    return with_names_below(chart).update_layout(scattermode="group", scattergap=0.5)


def over_time(points: Mapping[str, Sequence[tuple[datetime, Interval, bool, str]]]) -> go.Figure:
    """Return the share of trials that pass by when the evaluation began, a line a model.

    A point is its moment, its share, whether it is like with like, and what is said of it.
    """
    chart = go.Figure()
    for place, (model, of_model) in enumerate(points.items()):
        colour, symbol = LINES[place % len(LINES)], SYMBOLS[place % len(SYMBOLS)]
        shares = [share for _, share, _, _ in of_model]
        chart.add_scatter(
            x=[at for at, *_ in of_model],
            y=[100 * share.value for share in shares],
            error_y=_errors(shares),
            customdata=[escape(told).replace("\n", "<br>") for *_, told in of_model],
            name=escape(model),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={
                "color": colour,
                "size": 10,
                "symbol": [symbol if is_alike else f"{symbol}-open" for _, _, is_alike, _ in of_model],
            },
            hovertemplate="%{x|%Y-%m-%d %H:%M}<br>%{y:.0f} %<br>%{customdata}<extra></extra>",
        )
    chart.update_yaxes(range=[-2, 102], dtick=25)
    title = "pass@1 by date (95 % interval)"
    titled(chart, title=title, x="Evaluation began (UTC)", y="Judged trials that passed (%)", height=280)
    return with_names_below(chart)


def _placed(cases: Sequence[CaseScore]) -> Mapping[tuple[str, tuple[str, int]], CaseScore]:
    """Give each case its cell: its agent, and its kind with a number where an agent has several of one kind."""
    placed: dict[tuple[str, tuple[str, int]], CaseScore] = {}
    seen = Counter[tuple[str, str]]()
    for one in cases:
        seen[one.agent, one.kind] += 1
        placed[one.agent, (one.kind, seen[one.agent, one.kind])] = one
    return placed


def _labels(agents: Iterable[str]) -> Mapping[str, str]:
    """Name each agent shortly, as an axis may have it."""
    return {agent: escape(label) for agent, label in short_names(agents, LONGEST_AGENT).items()}


def _in_lines(kind: str, number: int) -> str:
    """Write the name of a column in lines as narrow as a cell."""
    return escape(shown_whole(kind)).replace(" ", "<br>") + (f"<br>({number})" if number > 1 else "")


def _told(case: CaseScore) -> str:
    of = f"{case.passed} of {case.judged} judged trials passed" if case.judged else "no trial could be judged"
    without = "".join(
        f"<br>{escape(shown_whole(why))}: {count:,} not judged" for why, count in case.infrastructure.items()
    )
    agent, kind, case_id = (escape(shown_whole(one)) for one in (case.agent, case.kind, case.case_id))
    return f"{agent}, {kind}<br>case {case_id}<br>{of}{without}"


def _errors(shares: Sequence[Interval]) -> Mapping[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [100 * (one.high - one.value) for one in shares],
        "arrayminus": [100 * (one.value - one.low) for one in shares],
        "thickness": 1.5,
        "width": 3,
    }
