"""How often trials pass, from evaluation to evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import streamlit as st

from memory_core.evals.likeness import is_whole, unlike
from memory_core.evals.statistics import Interval
from memory_core.evaluations import Evaluation
from pages.charts import evals as charts
from pages.charts import shown
from pages.evals.words import Model, between, state

Point = tuple[datetime, Interval, bool, str]


def show(
    chosen: Evaluation,
    recorded: Sequence[Evaluation],
    shares: Mapping[UUID, Interval | None],
    models: Mapping[Model, str],
) -> None:
    """Show pass@1 of every recorded evaluation by date, a line a model; open points are unlike the chosen evaluation."""
    points: dict[str, list[Point]] = {}
    for one in sorted(recorded, key=lambda one: (one.model, one.started_at)):
        share = shares.get(one.evaluation_id)
        if share is not None:
            points.setdefault(models[one.model, one.digest], []).append(_point(one, share, chosen))
    without = sum(shares.get(one.evaluation_id) is None for one in recorded)
    if not points:
        st.info("No trial of any evaluation was judged, so there is nothing to draw.")
        return
    shown(charts.over_time(points), key="evals trend")
    unlike_it = sum(not is_alike for of_model in points.values() for _, _, is_alike, _ in of_model)
    st.caption(
        f"The newest {len(recorded):,} evaluations. Open points, {unlike_it:,} of them, are not like with like with the chosen "
        "one: other suites, settings, trials or agents, or not whole; pointing at one says which."
        + (f" {without:,} without a judged trial cannot be drawn." if without else "")
    )


def _point(one: Evaluation, share: Interval, chosen: Evaluation) -> Point:
    differs = [f"other {name}" for name in unlike(chosen, one)]
    if not is_whole(one):
        differs.append(state(one))
    told = [f"95 % interval {between(share)}, {share.n:,} judged", f"suites {one.suites_hash[:8]}", *differs]
    return one.started_at, share, not differs, "\n".join(told)
