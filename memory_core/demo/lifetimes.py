"""Expiries for the demo's memories, some of them past or near."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from memory_core.demo.topics import Lasts

DAY = timedelta(days=1)
DEFAULT = timedelta(days=90)
EXPIRED = 40
WITHIN_A_WEEK = 25
WITHIN_A_MONTH = 90  # the week's included
LONGER = 48  # rules that somebody gave half a year or more


class Dated(Protocol):
    """What giving an expiry needs to know of a memory."""

    @property
    def created_at(self) -> datetime:
        """When it was written."""

    @property
    def lasts(self) -> Lasts:
        """How long it is of use."""

    @property
    def needed(self) -> timedelta:
        """For how long it must last at least."""

    @property
    def leave(self) -> bool:
        """Whether it keeps the default whatever the others get."""


def _days(random: Random, low: float, high: float) -> timedelta:
    return timedelta(days=random.uniform(low, high))


def _on_the_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def expiries(memories: Sequence[Dated], *, now: datetime, random: Random) -> list[datetime | None]:
    """Give each memory an expiry, or None for the default, in the order given.

    At `now`, `EXPIRED` of them have expired, and of the others `WITHIN_A_WEEK` expire in 7 days and
    `WITHIN_A_MONTH` in 30.
    """
    given: list[datetime | None] = [None] * len(memories)
    month_from_now = now + timedelta(days=30)

    def age(place: int) -> timedelta:
        return now - memories[place].created_at

    def by_default_this_month(place: int) -> bool:
        return given[place] is None and memories[place].created_at + DEFAULT <= month_from_now

    def some(count: int, fits: Callable[[int], bool]) -> list[int]:
        """Choose memories without an expiry yet, those that are soonest out of use first."""
        free = [place for place in range(len(memories)) if given[place] is None and not memories[place].leave]
        fitting = [place for place in free if fits(place)]
        random.shuffle(fitting)
        return sorted(fitting, key=lambda place: memories[place].lasts.value)[:count]

    def may_end(place: int, *, in_days: float) -> bool:
        """Say whether it has lasted long enough by then."""
        return age(place) + in_days * DAY >= memories[place].needed

    for place in some(EXPIRED, lambda place: age(place) >= 10 * DAY and may_end(place, in_days=-2)):
        shortest = memories[place].needed / DAY
        longest = min(age(place) / DAY - 1, shortest + 14)
        given[place] = _on_the_hour(memories[place].created_at + _days(random, shortest, longest))
    for place in some(WITHIN_A_WEEK, lambda place: age(place) >= DAY and may_end(place, in_days=0)):
        given[place] = _on_the_hour(now + _days(random, 0.3, 6.9))
    standing = [place for place in range(len(memories)) if memories[place].lasts is Lasts.STANDING]
    for place in random.sample([place for place in standing if given[place] is None], LONGER):
        given[place] = _on_the_hour(memories[place].created_at + timedelta(days=random.choice((180, 270, 365))))
    due = [place for place in range(len(memories)) if by_default_this_month(place)]
    missing = WITHIN_A_MONTH - WITHIN_A_WEEK - len(due)
    if missing > 0:
        for place in some(missing, lambda place: not by_default_this_month(place) and may_end(place, in_days=7)):
            given[place] = _on_the_hour(now + _days(random, 7.5, 29.5))
    else:
        for place in some(-missing, by_default_this_month):
            given[place] = _on_the_hour(memories[place].created_at + timedelta(days=random.choice((120, 180))))
    return given
