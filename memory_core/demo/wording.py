"""The words, times of day or days that fill the slots of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from string import Formatter

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
TIMES = "9:30|10:00|10:30|11:00|13:30|14:00|14:30|15:00|15:30|16:00"
COUNTED = frozenset({"d", "wd", "dow", "week", "month", "my"})
EVERYWHERE = COUNTED | {"one_of", "time", "from_now"}


def working_day(start: date, days: int) -> date:
    """Count days from a start, then leave a weekend: ahead to the Monday, or back to the Friday when looking back."""
    day = start + timedelta(days=days)
    into_weekend = day.weekday() - 4  # 1 on a Saturday, 2 on a Sunday
    if into_weekend < 1:
        return day
    return day + timedelta(days=3 - into_weekend if days > 0 else -into_weekend)


def slots(template: str) -> frozenset[str]:
    """Name the slots that only some subjects can fill."""
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name) - EVERYWHERE


def last_day_named(template: str) -> int:
    """Count the days from the writing to the last day that a template names, 0 when it names none to come."""
    named = (int(days) for _, name, days, _ in Formatter().parse(template) if name in COUNTED and days)
    return max([0, *named])


def _short(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]}"


@dataclass(frozen=True)
class _Day:
    """A slot whose specification is a number of days."""

    start: date
    say: Callable[[date], str]

    def __format__(self, days: str) -> str:
        return self.say(working_day(self.start, int(days)))


@dataclass(frozen=True)
class _OneOf:
    """A slot whose specification is a choice of words."""

    random: Random
    choice: str = ""

    def __format__(self, choice: str) -> str:
        return self.random.choice((choice or self.choice).split("|"))


def worded(template: str, words: Mapping[str, str], *, written_at: datetime, now: datetime, random: Random) -> str:
    """Fill the slots of a template.

    `{city}` and the like take a subject's own word; `{one_of:two|three}` one of the words; `{time}` a time of day.
    Days count from the day of writing. One at a weekend becomes the Monday after, or the Friday before when it has
    passed: `{d:14}` is "14 November", `{wd:14}` "Tuesday 14 November", `{dow:14}` "Tuesday", `{week:14}` the Monday of
    that week, `{month:14}` "November", `{my:14}` "November 2026". `{from_now:14}` counts from `now` instead.
    """
    written = written_at.date()
    return template.format_map(
        {
            **words,
            "one_of": _OneOf(random),
            "time": _OneOf(random, TIMES),
            "d": _Day(written, _short),
            "wd": _Day(written, lambda day: f"{WEEKDAYS[day.weekday()]} {_short(day)}"),
            "dow": _Day(written, lambda day: WEEKDAYS[day.weekday()]),
            "week": _Day(written, lambda day: _short(day - timedelta(days=day.weekday()))),
            "month": _Day(written, lambda day: MONTHS[day.month - 1]),
            "my": _Day(written, lambda day: f"{MONTHS[day.month - 1]} {day.year}"),
            "from_now": _Day(now.date(), _short),
        }
    )
