"""When a rights request must be answered, by GDPR Art. 12(3)."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from enum import StrEnum

from memory_core.errors import Refusal
from memory_core.rights import Pause
from memory_core.rules.erasure import reason_refusal

MONTHS = 1
MONTHS_EXTENDED = 3  # two further months, counted from the same start
SOON_DAYS = 7
MAXIMUM_YEARS = 10


class Pace(StrEnum):
    """How a request stands against its deadline."""

    RUNNING = "running"
    DUE_SOON = "due soon"  # seven days or fewer are left
    OVERDUE = "overdue"  # the due day is over
    PAUSED = "paused"
    WAITING = "waiting for identity"  # the clock has not started


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The dates of a request that its deadline hangs on."""

    received_on: date
    identity_asked_on: date | None = None  # None: nobody doubted who asks
    identity_confirmed_on: date | None = None
    extended: bool = False
    pauses: tuple[Pause, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """When a request is due, and how it stands today."""

    starts_on: date | None  # None: waiting for identity
    due_on: date | None  # the last day for the answer; while paused, what it would be if the clock went on today
    pace: Pace
    days_left: int | None  # until due_on; 0 on the day itself, negative when overdue
    extend_by: date | None  # the last day to decide an extension; None if extended, overdue or not running


def months_after(start: date, months: int) -> date:
    """Return the day of the same number so many months later, or the last of that month, within the years 1 to 9999."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if year > MAXYEAR:
        return date.max
    if year < MINYEAR:
        return date.min
    return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))


def next_working_day(day: date, *, is_working_day: Callable[[date], bool]) -> date:
    """Return the day itself if work is done on it, else the next such day, or the last day there is."""
    while day < date.max and not is_working_day(day):
        day += timedelta(days=1)
    return day


def deadline(clock: Clock, *, is_working_day: Callable[[date], bool], today: date) -> Deadline:
    """Return when the answer is due: a month after receipt, or after the identity was confirmed if it was asked for.

    An extension makes it three months from the same start. The days of the pauses are added, each once, and the
    result moves to the next working day. A pause that began when the request was overdue changes nothing.
    """
    start = _start(clock)
    if start is None:
        return Deadline(starts_on=None, due_on=None, pace=Pace.WAITING, days_left=None, extend_by=None)
    due_on = _due_on(start, clock, is_working_day=is_working_day, today=today)
    pace = _pace(clock, due_on=due_on, today=today)
    may_extend = not clock.extended and pace in (Pace.RUNNING, Pace.DUE_SOON)
    return Deadline(
        starts_on=start,
        due_on=due_on,
        pace=pace,
        days_left=(due_on - today).days,
        extend_by=due_on if may_extend else None,
    )


def extension_refusal(
    clock: Clock, *, reason: object, is_working_day: Callable[[date], bool], today: date
) -> Refusal | None:
    """Refuse an extension that is the second, comes too late, has no reason, or is of a clock that stands still."""
    if clock.extended:
        return Refusal(rule="extended_once", field="extension", reason="was decided before; there is no second one")
    now = deadline(clock, is_working_day=is_working_day, today=today)
    if now.pace in (Pace.WAITING, Pace.PAUSED):
        return Refusal(
            rule="extension_of_a_running_clock",
            field="extension",
            reason=f"cannot be decided while the clock is {now.pace}; let it run first",
        )
    if now.extend_by is None:
        return Refusal(
            rule="extension_within_the_first_month",
            field="extension",
            reason=f"had to be decided by {now.due_on}; answer the request now",
        )
    return reason_refusal(reason)


def pause_refusal(clock: Clock, *, today: date, is_working_day: Callable[[date], bool] | None = None) -> Refusal | None:
    """Refuse to pause a clock that stands still or, where `is_working_day` is given, whose request is overdue."""
    if _start(clock) is None:
        return Refusal(
            rule="pause_of_a_running_clock",
            field="pause",
            reason="is not needed: the clock starts when the identity is confirmed",
        )
    if _standing(clock):
        return Refusal(rule="paused_once_at_a_time", field="pause", reason="stands already; let the clock go on first")
    if is_working_day is not None:
        now = deadline(clock, is_working_day=is_working_day, today=today)
        if now.pace is Pace.OVERDUE:
            return Refusal(
                rule="pause_before_the_request_is_overdue",
                field="pause",
                reason=f"comes too late: the answer was due on {now.due_on}; answer the request now",
            )
    return None


def resume_refusal(clock: Clock, *, today: date) -> Refusal | None:
    """Refuse to let a clock go on that is not paused, or whose pause has yet to begin."""
    standing = _standing(clock)
    if not standing:
        return Refusal(
            rule="resumed_after_a_pause", field="pause", reason="there is none to end; the clock is not paused"
        )
    since = max(pause.since for pause in standing)
    if since > today:
        return Refusal(rule="pause_ends_after_it_began", field="pause", reason=f"begins only on {since}")
    return None


def received_refusal(received_on: object, *, today: date) -> Refusal | None:
    """Refuse a day of receipt that is no plain date, lies in the future, or more than ten years back."""
    if not isinstance(received_on, date) or isinstance(received_on, datetime):
        return Refusal(rule="received_on_is_a_date", field="received_on", reason="must be a date, without a time")
    if received_on > today:
        return Refusal(
            rule="received_on_is_not_in_the_future",
            field="received_on",
            reason=f"is {received_on}, which lies in the future; give the day on which the request came in",
        )
    if received_on < months_after(today, -12 * MAXIMUM_YEARS):
        return Refusal(
            rule="received_on_within_ten_years",
            field="received_on",
            reason=f"is {received_on}, more than {MAXIMUM_YEARS} years ago; check the year",
        )
    return None


def review_refusal(review_on: object, *, today: date) -> Refusal | None:
    """Refuse a day of review that is given but is no plain date, is past, or more than ten years ahead."""
    if review_on is None:
        return None
    if not isinstance(review_on, date) or isinstance(review_on, datetime):
        return Refusal(rule="review_on_is_a_date", field="review_on", reason="must be a date, without a time")
    if review_on < today:
        return Refusal(
            rule="review_on_is_not_past",
            field="review_on",
            reason=f"is {review_on}, which is past; give today or a later day",
        )
    if review_on > months_after(today, 12 * MAXIMUM_YEARS):
        return Refusal(
            rule="review_on_within_ten_years",
            field="review_on",
            reason=f"is {review_on}, more than {MAXIMUM_YEARS} years ahead; look again sooner",
        )
    return None


def _start(clock: Clock) -> date | None:
    if clock.identity_asked_on is None:
        return clock.received_on
    if clock.identity_confirmed_on is None:
        return None
    return max(clock.received_on, clock.identity_confirmed_on)


def _due_on(start: date, clock: Clock, *, is_working_day: Callable[[date], bool], today: date) -> date:
    end = months_after(start, MONTHS_EXTENDED if clock.extended else MONTHS)
    due_on = next_working_day(end, is_working_day=is_working_day)
    counted_to = start  # nothing before it counts, or counts again
    for pause in sorted(clock.pauses, key=lambda pause: pause.since):
        if pause.since > due_on:  # overdue by then
            break
        until = today if pause.until is None else pause.until
        days = (until - max(pause.since, counted_to)).days
        if days > 0:
            end = _days_after(end, days)
            due_on = next_working_day(end, is_working_day=is_working_day)
            counted_to = until
    return due_on


def _pace(clock: Clock, *, due_on: date, today: date) -> Pace:
    if any(pause.since <= due_on for pause in _standing(clock)):
        return Pace.PAUSED
    if today > due_on:
        return Pace.OVERDUE
    return Pace.DUE_SOON if (due_on - today).days <= SOON_DAYS else Pace.RUNNING


def _standing(clock: Clock) -> tuple[Pause, ...]:
    return tuple(pause for pause in clock.pauses if pause.until is None)


def _days_after(day: date, days: int) -> date:
    return day + timedelta(days=min(days, (date.max - day).days))
