"""Statements on the record of calls to a chat model: begun, refused, ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row

from memory_core.calls import MINUTE_S, Begun, CallEnd, CallStart, Wait

_STARTED = "org_id, call_id, run_id, tier, model, provider, estimated_tokens, memory_tokens"
_STARTED_VALUES = (
    "%(org_id)s, %(call_id)s, %(run_id)s, %(tier)s, %(model)s, %(provider)s, %(estimated_tokens)s, %(memory_tokens)s"
)
_ENDED = [field.name for field in fields(CallEnd) if field.name != "counted_tokens"]
_MOMENT = "(SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS moment"

# One process after the other counts, so that two cannot both take the last tokens of a minute; none waits for ever for one
# that stopped while it counted.
_TAKE_TURNS = """
    SELECT pg_advisory_xact_lock(hashtextextended('tokens a minute of ' || %(org_id)s, 0 * length(limits.lock_timeout)))
    FROM (SELECT set_config('lock_timeout', '5s', true) AS lock_timeout) AS limits
"""
# A reservation lapses by itself, so that a call that was killed does not keep an organisation from its tokens for hours.
_KEPT_S = f"least(%(deadline_s)s, 300) + {MINUTE_S}"
_BEGAN = f"(SELECT now, now - make_interval(secs => %(elapsed_s)s) AS started_at FROM {_MOMENT}) AS moments"
_BEGIN = f"""
    INSERT INTO model_call ({_STARTED}, started_at, deadline_at, counted_tokens, counts_until)
    SELECT {_STARTED_VALUES}, started_at, started_at + make_interval(secs => %(deadline_s)s), %(reserved_tokens)s,
           started_at + make_interval(secs => {_KEPT_S})
    FROM {_BEGAN}
"""
# What is left is granted, as long as it is enough for a useful answer.
_BEGIN_UNDER_A_CEILING = f"""
    WITH counting AS (
        SELECT now, started_at, %(tokens_per_minute)s - coalesce(
            (SELECT sum(counted_tokens) FROM model_call WHERE org_id = %(org_id)s AND counts_until > now), 0
        ) AS free
        FROM {_BEGAN}
    )
    INSERT INTO model_call ({_STARTED}, started_at, deadline_at, counted_tokens, counts_until)
    SELECT {_STARTED_VALUES}, started_at, started_at + make_interval(secs => %(deadline_s)s),
           least(%(reserved_tokens)s, free), started_at + make_interval(secs => {_KEPT_S})
    FROM counting WHERE %(least_tokens)s <= free
    RETURNING counted_tokens
"""
# What counts lapses in the order of its moment, the last of it leaving all of the ceiling free: the call fits at the first
# moment by which enough is gone. Where nothing counts any more (the clock went on) it fits now.
_FITS_IN = f"""
    WITH counting AS (
        SELECT now, counts_until, ended_at IS NULL AS runs, sum(counted_tokens) OVER () AS counted,
               sum(counted_tokens) OVER (ORDER BY counts_until ROWS UNBOUNDED PRECEDING) AS gone
        FROM model_call, {_MOMENT} WHERE org_id = %(org_id)s AND counts_until > now AND counted_tokens > 0
    )
    SELECT coalesce(extract(epoch FROM min(counts_until - now)
                    FILTER (WHERE counted - gone + %(least_tokens)s <= %(tokens_per_minute)s)), 0)::float8 AS seconds,
           coalesce(bool_or(runs), false) AS may_be_sooner
    FROM counting
"""
_REFUSE = f"""
    INSERT INTO model_call
        ({_STARTED}, started_at, deadline_at, counted_tokens, counts_until, ended_at, {", ".join(_ENDED)})
    SELECT {_STARTED_VALUES}, started_at, started_at + make_interval(secs => %(deadline_s)s), 0, now, now,
           {", ".join(f"%({name})s" for name in _ENDED)}
    FROM (SELECT now, now - make_interval(secs => %(total_ms)s / 1000.0) AS started_at FROM {_MOMENT}) AS moments
    ON CONFLICT (org_id, call_id) DO UPDATE  -- it had begun after all: its caller was interrupted before hearing of it
    SET counted_tokens = 0, counts_until = excluded.counts_until, ended_at = greatest(excluded.ended_at, model_call.started_at),
        {", ".join(f"{name} = excluded.{name}" for name in _ENDED)}
    WHERE model_call.ended_at IS NULL
"""
# Only a call without an end gets one: sent twice after a lost connection, it is written once. It ended when its time was
# over, also where it comes to the record later.
_END = f"""
    UPDATE model_call
    SET ended_at = moments.ended, counted_tokens = %(counted_tokens)s,
        counts_until = moments.ended + make_interval(secs => {MINUTE_S}),
        {", ".join(f"{name} = %({name})s" for name in _ENDED)}
    FROM (
        SELECT greatest(started_at, least(now, started_at + make_interval(secs => %(total_ms)s / 1000.0))) AS ended
        FROM model_call, {_MOMENT} WHERE org_id = %(org_id)s AND call_id = %(call_id)s
    ) AS moments
    WHERE org_id = %(org_id)s AND call_id = %(call_id)s AND ended_at IS NULL
"""


def begin(
    connection: Connection,
    org_id: str,
    start: CallStart,
    *,
    tokens_per_minute: int | None,
    elapsed_s: float = 0.0,
    now: datetime | None,
) -> Begun | Wait:
    """Record that a call began so many seconds ago; under a ceiling that it would pass, return how long it has to wait.

    Raises `DatabaseBusy` where another process counts for more than five seconds.
    """
    values = {**_values(start), "org_id": org_id, "elapsed_s": elapsed_s, "now": now}
    if tokens_per_minute is None:
        connection.exec_driver_sql(_BEGIN, values)
        return Begun(granted_tokens=start.reserved_tokens)
    connection.exec_driver_sql(_TAKE_TURNS, {"org_id": org_id})
    values["tokens_per_minute"] = tokens_per_minute
    begun = connection.exec_driver_sql(_BEGIN_UNDER_A_CEILING, values).first()
    if begun is not None:
        return Begun(granted_tokens=begun.counted_tokens)
    row = connection.exec_driver_sql(_FITS_IN, values).one()
    return Wait(seconds=row.seconds, may_be_sooner=row.may_be_sooner)


def refuse(connection: Connection, org_id: str, start: CallStart, end: CallEnd, *, now: datetime | None) -> None:
    """Record a call that was refused before it began; it counts no tokens."""
    connection.exec_driver_sql(_REFUSE, {**_values(start), **_values(end), "org_id": org_id, "now": now})


def end(connection: Connection, org_id: str, call_id: UUID, ended: CallEnd, *, now: datetime | None) -> None:
    """Record what became of a call that began."""
    connection.exec_driver_sql(_END, {**_values(ended), "org_id": org_id, "call_id": call_id, "now": now})


def _values(value: CallStart | CallEnd) -> dict[str, Any]:
    return asdict(value)


def newest(
    connection: Connection, org_id: str, *, provider: str, models: Sequence[str], since: datetime, limit: int
) -> list[Row[Any]]:
    """Return the newest calls to these models since a moment, newest first; `is_first` is the first of a run."""
    return list(
        connection.exec_driver_sql(
            """
            SELECT error_code, cold, tool_calls_in_text, tool_call_faults, ended_at IS NULL AS is_open,
                   deadline_at < clock_timestamp() AS is_overdue,
                   NOT EXISTS (
                       SELECT FROM model_call AS earlier
                       WHERE earlier.org_id = %(org_id)s AND earlier.run_id = model_call.run_id
                         AND earlier.started_at < model_call.started_at
                   ) AS is_first
            FROM model_call
            WHERE org_id = %(org_id)s AND started_at >= %(since)s AND provider = %(provider)s AND model = ANY(%(models)s)
            ORDER BY started_at DESC LIMIT %(limit)s
            """,
            {"org_id": org_id, "provider": provider, "models": list(models), "since": since, "limit": limit},
        )
    )
