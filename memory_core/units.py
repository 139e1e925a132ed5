"""Times, speeds and amounts of memory, written for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECONDS_FROM_MS = 9999.5  # what would be written as 10,000 ms is written as 10.0 s
NOTHING = "–"


def unit_of(most_ms: float) -> tuple[float, str]:
    """Return the unit that times up to this one are drawn in, with how many milliseconds it has."""
    return (1.0, "ms") if most_ms < SECONDS_FROM_MS else (1000.0, "s")


def in_time(ms: float | None) -> str:
    """Write a time: milliseconds below ten seconds, seconds from there on."""
    if ms is None:
        return NOTHING
    if ms >= SECONDS_FROM_MS:
        return f"{ms / 1000:,.1f} s"
    return f"{ms:,.0f} ms" if ms >= 99.95 else f"{ms:.1f} ms"


def tokens_per_second(ms_per_token: float | None) -> float | None:
    """Return the speed that a time per token comes to; None where there is none, or it is endless."""
    return 1000 / ms_per_token if ms_per_token else None


def in_bytes(size: int) -> str:
    """Write an amount of memory."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def in_utc(moment: datetime) -> str:
    """Write an aware moment to the minute."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def in_width(span: timedelta) -> str:
    """Write a stretch of whole minutes in the largest unit that divides it."""
    minutes = span // timedelta(minutes=1)
    for name, size in (("day", 1440), ("hour", 60)):
        if minutes % size == 0:
            return _counted(minutes // size, name)
    return _counted(minutes, "minute")


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"
