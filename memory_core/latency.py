"""Where the model's time goes, from the raw record of each call."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row

from memory_core.config import Settings, Tier
from memory_core.db import call_figures, database, organisations
from memory_core.db.call_figures import ORIGIN, Span
from memory_core.db.engine import organisation_transaction
from memory_core.figures import (
    BlockCost,
    Bucket,
    Counts,
    Headroom,
    Latency,
    Measures,
    MedianCall,
    Percentiles,
    Prompt,
)
from memory_core.selection import Loading, Outcome, Selection
from memory_core.veil import veil

CALLS_FOR_P99 = 100  # with fewer, the 99th percentile is the slowest call or the one before it
MOST_POINTS = 2000
CALLS_FOR_A_COST = 20
MOST_BUCKETS = 60
WIDTHS = [
    *(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12)),
    *(timedelta(days=days) for days in (1, 2, 7, 14, 28, 91, 182, 364)),
]


def latency(
    org_id: str,
    selection: Selection,
    *,
    settings: Settings,
    key: bytes | None = None,
    now: datetime | None = None,
) -> Latency:
    """Return what the calls that were recorded up to now say; without `now` the database's clock decides.

    With a session's `key`, a run's id that names somebody stands under a pseudonym where the organisation requires that of
    previews. Raises a `DatabaseError` or an `EmbeddedServerError`, each with what to do.
    """
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        call_figures.look_only(connection)
        at = now or organisations.moment(connection)
        seen = _latency(connection, org_id, selection, settings=settings, now=at)
        median, pseudonyms = seen.median_call, veil(connection, org_id, key)
        if median is None or pseudonyms is None:
            return seen
        (veiled,) = pseudonyms.names_in([median.run_id])
        return replace(seen, median_call=replace(median, run_id=veiled or median.run_id))


def _latency(
    connection: Connection, org_id: str, selection: Selection, *, settings: Settings, now: datetime
) -> Latency:
    recorded = call_figures.recorded(connection, org_id)
    since = selection.period.since(now) or min(recorded.first_at or now, now)
    span = Span(org_id=org_id, since=since, until=now)
    kinds = call_figures.kinds(connection, span)
    width = bucket_width(now - since)
    rows = {row.start: row for row in call_figures.percentiles(connection, span, selection, width=width)}
    measures = _measures(rows.pop(None))
    starts = bucket_starts(since, now, width=width)
    ceiling = settings.tokens_per_minute
    busiest = dict.fromkeys(starts, 0) if ceiling else {}
    if ceiling:
        minutes = call_figures.busiest_minutes(connection, span, width=width)
        busiest |= {row.start: int(row.tokens) for row in minutes}
    prompts = _newest_prompts(connection, span, selection)
    return Latency(
        at=now,
        since=since,
        last_at=recorded.last_at,
        models=tuple(sorted({row.model for row in kinds})),
        counts=_counts([row for row in kinds if _is_selected(row, selection)]),
        measures=measures,
        bucket_width=width,
        over_time=tuple(Bucket(start=start, measures=_measures(rows.get(start))) for start in starts),
        median_call=_median_call(connection, span, selection, measures.total.p50),
        prompts=prompts,
        block_cost=block_cost(prompts),
        headroom=Headroom(
            ceiling=ceiling,
            counted_now=call_figures.counted_tokens(connection, org_id, now=now),
            busiest=busiest,
        ),
    )


def recorded_prompts(
    org_id: str, selection: Selection, *, settings: Settings, now: datetime | None = None
) -> tuple[Prompt, ...]:
    """Return the newest prompts whose size and time are on record, newest first, and nothing else of the calls.

    Raises as `latency` does.
    """
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        call_figures.look_only(connection)
        until = now or organisations.moment(connection)
        since = selection.period.since(until) or call_figures.recorded(connection, org_id).first_at or until
        return _newest_prompts(connection, Span(org_id=org_id, since=since, until=until), selection)


def _newest_prompts(connection: Connection, span: Span, selection: Selection) -> tuple[Prompt, ...]:
    return tuple(
        Prompt(
            started_at=row.started_at,
            model=row.model,
            tokens=row.prompt_tokens,
            estimated_tokens=row.estimated_tokens,
            ms=row.prompt_ms,
            memory_tokens=row.memory_tokens,
            cached=row.cached,
        )
        for row in call_figures.newest_prompts(connection, span, selection, limit=MOST_POINTS)
    )


def bucket_width(span: timedelta) -> timedelta:
    """Return the width that cuts a span into some sixty stretches at most, or years where even those are more."""
    for width in WIDTHS:
        if span <= width * MOST_BUCKETS:
            return width
    return WIDTHS[-1] * -(-span // (WIDTHS[-1] * MOST_BUCKETS))


def bucket_starts(since: datetime, until: datetime, *, width: timedelta) -> list[datetime]:
    """Return where each stretch between two moments begins; the first may begin before `since`."""
    start = ORIGIN + (since - ORIGIN) // width * width
    return [start + width * number for number in range((until - start) // width + 1)]


def block_cost(prompts: tuple[Prompt, ...]) -> BlockCost | None:
    """Return what the usual memory block costs where the server has none of the prompt yet; None of too few calls."""
    # Both by our own count, which is rather too high: what it is too high by cancels out.
    rates = sorted(one.ms / one.estimated_tokens for one in prompts if one.cached is False and one.estimated_tokens)
    blocks = sorted(one.memory_tokens for one in prompts if one.memory_tokens > 0)
    if min(len(rates), len(blocks)) < CALLS_FOR_A_COST:
        return None
    return BlockCost(
        ms_per_token=rates[(len(rates) - 1) // 2],
        uncached_prompts=len(rates),
        block_tokens=blocks[(len(blocks) - 1) // 2],
        prompts_with_block=len(blocks),
    )


def missing_for_a_cost(prompts: tuple[Prompt, ...], org_id: str) -> str | None:
    """Say why `block_cost` gives none of these prompts, and what to type; None where it gives one."""
    if block_cost(prompts) is not None:
        return None
    command = f'python -m memory_core chat "How soon can they start?" --org {org_id}'
    if not prompts:
        return f"no call is on record: {command}"
    uncached, with_block = (
        sum(one.cached is False and one.estimated_tokens > 0 for one in prompts),
        sum(one.memory_tokens > 0 for one in prompts),
    )
    return (
        f"too few calls are on record: {uncached} whose prompt was not cached and {with_block} with a memory block, and "
        f"{CALLS_FOR_A_COST} of each are needed: {command}"
    )


def _measures(row: Row[Any] | None) -> Measures:
    def of(name: str) -> Percentiles:
        calls = 0 if row is None else getattr(row, f"{name}_calls")
        if not calls:
            return Percentiles(calls=0)
        p50, p95, p99 = getattr(row, name)
        return Percentiles(calls=calls, p50=p50, p95=p95, p99=p99 if calls >= CALLS_FOR_P99 else None)

    return Measures(total=of("total"), first_token=of("first_token"), per_output_token=of("per_output_token"))


def _outcome(row: Row[Any]) -> Outcome:
    if row.answered:
        return Outcome.ANSWERED
    return Outcome.FAILED if row.error_code else Outcome.OPEN


def _is_selected(row: Row[Any], selection: Selection) -> bool:
    loading = {True: Loading.COLD, False: Loading.WARM, None: Loading.NOT_REPORTED}[row.cold]
    return selection.takes(model=row.model, tier=Tier(row.tier), loading=loading, outcome=_outcome(row))


def _counts(kinds: list[Row[Any]]) -> Counts:
    def of(outcome: Outcome) -> int:
        return sum(row.calls for row in kinds if _outcome(row) is outcome)

    by_error: dict[str, int] = {}
    for row in kinds:
        if row.error_code:
            by_error[row.error_code] = by_error.get(row.error_code, 0) + row.calls
    return Counts(
        answered=of(Outcome.ANSWERED),
        failed=of(Outcome.FAILED),
        open=of(Outcome.OPEN),
        overdue=sum(row.calls for row in kinds if row.overdue),
        by_error=dict(sorted(by_error.items(), key=lambda one: (-one[1], one[0]))),
    )


def _median_call(connection: Connection, span: Span, selection: Selection, total_ms: float | None) -> MedianCall | None:
    if total_ms is None:
        return None
    row = call_figures.newest_with_total(connection, span, selection, total_ms=total_ms)
    return None if row is None else MedianCall(**row._mapping)
