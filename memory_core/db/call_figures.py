"""Statements that put the record of calls to a chat model into figures, each from the raw rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    ColumnElement,
    Connection,
    Double,
    Interval,
    Row,
    and_,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
)

from memory_core.db.tables import INSTANT, model_call
from memory_core.selection import Loading, Outcome, Selection

ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # where buckets of time are counted from
RANKS = (0.5, 0.95, 0.99)
CALL = model_call.c
# What a million calls take, so that they are sorted in memory.
WORK_MEMORY = "64MB"
MEDIAN_CALL = (
    "call_id",
    "run_id",
    "model",
    "started_at",
    "total_ms",
    "queue_ms",
    "load_ms",
    "prompt_ms",
    "generation_ms",
)
PER_OUTPUT_TOKEN_MS = CALL.generation_ms / func.nullif(CALL.output_tokens, 0)
WAS_ANSWERED = CALL.finish_reason.is_not(None)
_LOADING = {
    Loading.COLD: CALL.cold.is_(True),
    Loading.WARM: CALL.cold.is_(False),
    Loading.NOT_REPORTED: CALL.cold.is_(None),
}


@dataclass(frozen=True, kw_only=True)
class Span:
    """The calls of an organisation that began within a time, both ends included."""

    org_id: str
    since: datetime
    until: datetime

    def within(self) -> ColumnElement[bool]:
        """Select them."""
        return and_(CALL.org_id == self.org_id, CALL.started_at >= self.since, CALL.started_at <= self.until)


def look_only(connection: Connection) -> None:
    """Make this transaction read one state of the rows, each statement planned for the values that it is given."""
    for statement in (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        "SET LOCAL jit = off",  # compiling takes longer than ten thousand rows
        "SET LOCAL plan_cache_mode = force_custom_plan",
        f"SET LOCAL work_mem = '{WORK_MEMORY}'",
    ):
        connection.exec_driver_sql(statement)


def recorded(connection: Connection, org_id: str) -> Row[Any]:
    """Return when the first and the last recorded call began: `first_at` and `last_at`, both None without a call."""
    ends: list[ColumnElement[Any]] = [
        func.min(CALL.started_at).label("first_at"),
        func.max(CALL.started_at).label("last_at"),
    ]
    return connection.execute(select(*ends).where(CALL.org_id == org_id)).one()


def kinds(connection: Connection, span: Span) -> list[Row[Any]]:
    """Count the calls by what they can be selected by, their error, and whether their deadline is past."""
    kind: list[ColumnElement[Any]] = [
        CALL.model,
        CALL.tier,
        CALL.cold,
        CALL.error_code,
        WAS_ANSWERED.label("answered"),
        and_(CALL.ended_at.is_(None), CALL.deadline_at < span.until).label("overdue"),
    ]
    places: list[ColumnElement[Any]] = [literal_column(str(place)) for place in range(1, len(kind) + 1)]
    statement = select(*kind, func.count().label("calls")).where(span.within()).group_by(*places)
    return list(connection.execute(statement))


def percentiles(connection: Connection, span: Span, selection: Selection, *, width: timedelta) -> list[Row[Any]]:
    """Return p50, p95 and p99 of the answered calls' times, and of how many: one row a bucket, and one for all.

    The row for all has no `start`, and is there also when nothing was answered.
    """
    ranks = cast(list(RANKS), ARRAY(Double))

    def of(measure: ColumnElement[Any], name: str) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        return func.count(measure).label(f"{name}_calls"), func.percentile_disc(ranks).within_group(measure).label(name)

    statement = (
        select(
            _bucket(CALL.started_at, width).label("start"),
            *of(CALL.total_ms, "total"),
            *of(CALL.first_chunk_ms, "first_token"),
            *of(PER_OUTPUT_TOKEN_MS, "per_output_token"),
        )
        .where(_answered(span, selection))
        .group_by(func.rollup(literal_column("1")))
    )
    return list(connection.execute(statement))


def newest_with_total(connection: Connection, span: Span, selection: Selection, *, total_ms: float) -> Row[Any] | None:
    """Return the newest answered call that took exactly so long in all, as a percentile names it."""
    statement = (
        select(*(CALL[name] for name in MEDIAN_CALL))
        .where(_answered(span, selection), CALL.total_ms == cast(total_ms, REAL))
        .order_by(CALL.started_at.desc(), CALL.call_id.desc())
        .limit(1)
    )
    return connection.execute(statement).one_or_none()


def newest_prompts(connection: Connection, span: Span, selection: Selection, *, limit: int) -> list[Row[Any]]:
    """Return the newest answered calls of which size and time of the prompt were reported, newest first."""
    statement = (
        select(
            CALL.started_at,
            CALL.model,
            CALL.prompt_tokens,
            CALL.estimated_tokens,
            CALL.prompt_ms,
            CALL.memory_tokens,
            CALL.cached,
        )
        .where(_answered(span, selection), CALL.prompt_ms.is_not(None), CALL.prompt_tokens > 0)
        .order_by(CALL.started_at.desc())
        .limit(limit)
    )
    return list(connection.execute(statement))


def counted_tokens(connection: Connection, org_id: str, *, now: datetime) -> int:
    """Return how many tokens count under the ceiling at a moment."""
    statement = select(func.coalesce(func.sum(CALL.counted_tokens), 0)).where(
        CALL.org_id == org_id, CALL.counts_until > now
    )
    return int(connection.execute(statement).scalar_one())


def busiest_minutes(connection: Connection, span: Span, *, width: timedelta) -> list[Row[Any]]:
    """Return, a bucket, the most tokens that the calls which began in one minute came to."""
    minute = _bucket(CALL.started_at, timedelta(minutes=1)).label("minute")
    counted = func.sum(CALL.counted_tokens).label("tokens")
    # What a call that was killed had reserved is not what it came to.
    ended = and_(span.within(), CALL.ended_at.is_not(None))
    minutes = select(minute, counted).where(ended).group_by(literal_column("1")).subquery()
    start = _bucket(minutes.c.minute, width).label("start")
    statement = select(start, func.max(minutes.c.tokens).label("tokens")).group_by(literal_column("1"))
    return list(connection.execute(statement))


def _answered(span: Span, selection: Selection) -> ColumnElement[bool]:
    conditions = [span.within(), WAS_ANSWERED]
    if selection.models:
        conditions.append(CALL.model.in_(sorted(selection.models)))
    if selection.tiers:
        conditions.append(CALL.tier.in_(sorted(selection.tiers)))
    if selection.loading:
        conditions.append(or_(*(_LOADING[one] for one in sorted(selection.loading))))
    if selection.outcomes and Outcome.ANSWERED not in selection.outcomes:
        conditions.append(false())
    return and_(*conditions)


def _bucket(moment: ColumnElement[datetime], width: timedelta) -> ColumnElement[datetime]:
    return func.date_bin(cast(width, Interval), moment, cast(ORIGIN, INSTANT))
