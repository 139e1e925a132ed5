"""How dates, rights and clocks are worded on the officer's pages."""

from __future__ import annotations

from datetime import date

from memory_core.rights import RequestType
from memory_core.rules.deadlines import Deadline, Pace

COLOURS = {
    Pace.OVERDUE: "red",
    Pace.DUE_SOON: "orange",
    Pace.RUNNING: "green",
    Pace.PAUSED: "blue",
    Pace.WAITING: "violet",
}
WANTS = {
    RequestType.ACCESS: "a copy of what is held",
    RequestType.RECTIFICATION: "something wrong put right",
    RequestType.ERASURE: "what is held erased",
    RequestType.RESTRICTION: "kept, but not used",
    RequestType.PORTABILITY: "their data for another service",
    RequestType.OBJECTION: "no more of it",
}


def day(of: date | None) -> str:
    """Write a day: Mon 4 Jan 2027."""
    return "–" if of is None else f"{of:%a} {of.day} {of:%b %Y}"


def many(number: int, one: str, more: str) -> str:
    """Count things: 1 memory, 1,200 memories."""
    return f"{number:,} {one if number == 1 else more}"


def days(number: int) -> str:
    """Write a number of days: 1 day, 12 days."""
    return f"{number:,} day{'' if number == 1 else 's'}"


def right(of: RequestType) -> str:
    """Name a right with its article: Access, Art. 15."""
    return f"{of.value.capitalize()}, Art. {of.article}"


def left(of: Deadline) -> str:
    """Say how much time is left, or how much too late it is."""
    if of.days_left is None:
        return "not started"
    if of.days_left < 0:
        return f"{days(-of.days_left)} late"
    return "today" if of.days_left == 0 else days(of.days_left)


def standing(of: Deadline) -> str:
    """Say in a sentence how a clock stands."""
    if of.pace is Pace.WAITING:
        return "**The clock has not started:** it waits for the identity. The month begins when that is confirmed."
    if of.pace is Pace.PAUSED:
        return f"**The clock is paused.** Were it to go on today, the answer would be due on {day(of.due_on)}."
    if of.pace is Pace.OVERDUE:
        return (
            f"**Overdue by {left(of).removesuffix(' late')}.** The answer was due on {day(of.due_on)}. Answer it now."
        )
    if of.days_left == 0:
        return f"**The answer is due today,** {day(of.due_on)}."
    return f"**{left(of)} left:** the answer is due on {day(of.due_on)}."
