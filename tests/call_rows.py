"""Recorded calls to a chat model as many kinds of days leave them, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

ERROR_CODES = (
    "gateway.unavailable",
    "gateway.deadline",
    "gateway.busy",
    "gateway.rate_limited",
    "gateway.invalid_request",
    "gateway.cancelled",
    "gateway.unauthorized",
)
FINISHES = ("stop", "stop", "stop", "stop", "tool_calls", "tool_calls", "length", "content_filter", "other")
# Model, provider, tier, share, milliseconds a prompt token and an output token.
SERVED = (
    ("qwen3:0.6b", "ollama", "fast", 60, 3.6, 31.0),
    ("qwen3:1.7b", "ollama", "balanced", 22, 9.8, 74.0),
    ("qwen3:4b", "ollama", "deep", 8, 24.0, 170.0),
    ("hosted-mini", "openai", "balanced", 10, 0.2, 12.0),
)
COLUMNS = (
    "org_id",
    "call_id",
    "run_id",
    "tier",
    "model",
    "digest",
    "provider",
    "started_at",
    "deadline_at",
    "ended_at",
    "estimated_tokens",
    "memory_tokens",
    "counted_tokens",
    "counts_until",
    "queue_ms",
    "load_ms",
    "prompt_ms",
    "generation_ms",
    "first_chunk_ms",
    "first_answer_ms",
    "total_ms",
    "prompt_tokens",
    "output_tokens",
    "cached",
    "cold",
    "finish_reason",
    "error_code",
    "attempts",
    "tool_calls",
    "tool_calls_in_text",
    "tool_call_faults",
    "prompt_was_cut",
)
Row = dict[str, Any]


def bare(org_id: str, *, started_at: datetime, number: int = 0, **given: Any) -> Row:
    """Return one call that began and of which nothing else is known, unless it is given."""
    began = dict.fromkeys(COLUMNS) | {
        "org_id": org_id,
        "call_id": UUID(int=random.Random(f"{org_id} {number}").getrandbits(128)),
        "run_id": f"r-{number}",
        "tier": "fast",
        "model": "qwen3:0.6b",
        "provider": "ollama",
        "started_at": started_at,
        "deadline_at": started_at + timedelta(seconds=120),
        "estimated_tokens": 100,
        "memory_tokens": 0,
        "counted_tokens": 2100,
        "counts_until": started_at + timedelta(seconds=180),
    }
    return began | given


def ended(row: Row, total_ms: float, **given: Any) -> Row:
    """Return the call with an end: stopped by itself, unless it is given otherwise."""
    at = row["started_at"] + timedelta(milliseconds=total_ms)
    end: Row = {
        "ended_at": at,
        "counts_until": at + timedelta(seconds=60),
        "total_ms": total_ms,
        "finish_reason": None if given.get("error_code") else "stop",
        "attempts": 1,
        "tool_calls": 0,
        "tool_calls_in_text": 0,
        "tool_call_faults": 0,
        "prompt_was_cut": False,
    }
    return row | end | given


def believable(org_id: str, count: int, *, until: datetime, days: float = 7, seed: int = 1) -> Iterator[Row]:
    """Yield calls in the order of time, evenly over the days before a moment; of every kind there is."""
    draw = random.Random(seed)
    shares = [share for *_, share, _, _ in SERVED]
    step = timedelta(days=days) / max(count, 1)
    for number in range(count):
        model, provider, tier, _, prompt_rate, output_rate = draw.choices(SERVED, shares)[0]
        started_at = until - step * (count - number - draw.random())
        memory_tokens = draw.choice((0, 0, draw.randint(40, 420)))
        prompt_tokens = int(draw.triangular(90, 3600, 350)) + memory_tokens
        row = bare(
            org_id,
            number=number + seed * 1_000_000_000,
            started_at=started_at,
            tier=tier,
            model=model,
            provider=provider,
            digest=None if provider == "openai" else f"sha256:{model.encode().hex()}",
            estimated_tokens=int(prompt_tokens * draw.uniform(0.9, 1.15)),
            memory_tokens=memory_tokens,
        )
        kind = draw.random()
        if kind < 0.01:  # running, or killed
            yield row
        elif kind < 0.06:
            yield _failed(row, draw)
        else:
            yield _answered(row, draw, prompt_tokens, prompt_rate, output_rate)


def _failed(row: Row, draw: random.Random) -> Row:
    code = draw.choices(ERROR_CODES, (40, 25, 15, 8, 6, 5, 1))[0]
    total_ms = 120_000.0 if code == "gateway.deadline" else draw.lognormvariate(5, 1.2)
    attempts = {"gateway.unavailable": 3, "gateway.busy": 0, "gateway.rate_limited": 0}.get(code, 1)
    return ended(row, total_ms, error_code=code, attempts=attempts, counted_tokens=0 if attempts == 0 else 400)


def _answered(row: Row, draw: random.Random, prompt_tokens: int, prompt_rate: float, output_rate: float) -> Row:
    noise = draw.lognormvariate(0, 0.18)
    cached = draw.random() < 0.35
    cold = draw.random() < 0.04
    queue_ms = draw.choice((0.0, 0.0, draw.expovariate(1 / 700)))
    load_ms = draw.uniform(700, 2900) if cold else draw.uniform(1, 20)
    prompt_ms = prompt_tokens * prompt_rate * noise * (draw.uniform(0.02, 0.12) if cached else 1)
    output_tokens = draw.choice((0, 1, *(int(draw.lognormvariate(4.2, 0.8)) for _ in range(30))))
    generation_ms = output_tokens * output_rate * noise
    first_chunk_ms = queue_ms + load_ms + prompt_ms + output_rate + draw.uniform(1, 9)
    total_ms = first_chunk_ms + generation_ms + draw.uniform(1, 12)
    reports = row["provider"] == "ollama"
    tool_calls = draw.choice((0, 0, 0, 1))
    return ended(
        row,
        total_ms,
        queue_ms=queue_ms,
        load_ms=load_ms if reports else None,
        prompt_ms=prompt_ms if reports else None,
        generation_ms=generation_ms if reports else None,
        first_chunk_ms=first_chunk_ms,
        first_answer_ms=None if output_tokens == 0 else min(total_ms, first_chunk_ms + draw.uniform(0, 400)),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        counted_tokens=prompt_tokens + output_tokens,
        cached=cached if reports else None,
        cold=cold if reports else None,
        finish_reason=draw.choice(FINISHES),
        attempts=draw.choice((1, 1, 1, 1, 2)),
        tool_calls=tool_calls,
        tool_call_faults=tool_calls if draw.random() < 0.1 else 0,
        prompt_was_cut=draw.random() < 0.01,
    )


def store(connection: psycopg.Connection[Any], org_id: str, rows: Iterable[Row]) -> None:
    """Write one organisation's calls past row level security; the caller commits."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO organisation VALUES (%s) ON CONFLICT DO NOTHING", (org_id,))
        with cursor.copy(f"COPY model_call ({', '.join(COLUMNS)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row([row[name] for name in COLUMNS])
