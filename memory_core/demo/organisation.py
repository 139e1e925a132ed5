"""The demo organisation's memories, dated so that they end at a given moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from random import Random

from memory_core.demo.drafting import SEED, Draft, Thread, threads
from memory_core.demo.lifetimes import expiries
from memory_core.demo.people import CANDIDATES, ERASED
from memory_core.demo.scripted import SCRIPTED
from memory_core.demo.topics import Lasts
from memory_core.demo.wording import last_day_named, worded, working_day
from memory_core.model import Kind, Origin, Subject

FIRST_RUN = 412
FIRST_SOURCE = {"msg": 3950, "note": 170, "call": 61, "form": 240}
A_MINUTE = timedelta(minutes=1)
SCRIPTED_TEXTS = frozenset(scripted.text for scripted in SCRIPTED)


@dataclass(frozen=True, kw_only=True)
class DemoMemory:
    """One memory to be stored, with the moment it was written."""

    text: str
    kind: Kind
    origin: Origin
    author: str
    run_id: str
    subject: Subject | None
    source: str | None
    created_at: datetime  # aware, UTC, never after now
    expires_at: datetime | None  # None is the default of 90 days


@dataclass(frozen=True, kw_only=True)
class DemoErasure:
    """Somebody having asked to be erased, and when it was done."""

    subject: Subject
    by: str
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A draft with its moment."""

    draft: Draft
    created_at: datetime
    run_id: str
    source: str | None

    @property
    def lasts(self) -> Lasts:
        return self.draft.lasts

    @property
    def needed(self) -> timedelta:
        """Until the last day it names, and a long weekend."""
        return timedelta(days=last_day_named(self.draft.template) + 3)

    @property
    def leave(self) -> bool:
        """Keep what shows something, and what will be erased, as it is."""
        erased = self.draft.subject is not None and self.draft.subject.id in ERASED
        return erased or self.draft.template in SCRIPTED_TEXTS


def demo_memories(*, now: datetime) -> list[DemoMemory]:
    """Give the 600 memories of the demo organisation, oldest first, all from the 80 days before `now`.

    The same `now` gives the same memories. Raises ValueError when `now` is naive.
    """
    now = _utc(now)
    written = list(_written(now))
    lifetimes = expiries(written, now=now, random=Random(SEED))  # noqa: S311 - repeatable, not secret
    return [
        DemoMemory(
            text=worded(
                one.draft.template,
                one.draft.words,
                written_at=one.created_at,
                now=now,
                random=Random(SEED + one.draft.number),  # noqa: S311 - repeatable, not secret
            ),
            kind=one.draft.kind,
            origin=one.draft.origin,
            author=one.draft.author,
            run_id=one.run_id,
            subject=one.draft.subject,
            source=one.source,
            created_at=one.created_at,
            expires_at=expires_at,
        )
        for one, expires_at in zip(written, lifetimes, strict=True)
    ]


def demo_erasures(*, now: datetime) -> list[DemoErasure]:
    """Give the erasures of the demo organisation, oldest first; nothing is remembered about these people after `at`.

    Raises ValueError when `now` is naive.
    """
    today = _utc(now).date()
    erasures = []
    for person in CANDIDATES:
        days_ago = ERASED.get(person.subject.id)
        if days_ago is None:
            continue
        day = working_day(today, -days_ago)
        asked = working_day(today, -days_ago - 3)
        erasures.append(
            DemoErasure(
                subject=person.subject,
                by="user:ines",
                reason=f"Asked by e-mail on {asked.isoformat()} to be erased; identity checked.",
                at=datetime.combine(day, time(10, 12), UTC),
            )
        )
    return sorted(erasures, key=lambda erasure: erasure.at)


def _utc(now: datetime) -> datetime:
    if now.utcoffset() is None:
        raise ValueError("now must be an aware datetime")
    return now.astimezone(UTC)


def _written(now: datetime) -> Iterable[_Written]:
    """Date every draft and number the runs and the sources in the order of time."""
    random = Random(SEED)  # noqa: S311 - repeatable, not secret
    taken: set[datetime] = set()
    sessions = [
        (moment, session)
        for thread in threads()
        for moment, session in zip(_moments(thread, now, random, taken), thread.sessions, strict=True)
    ]
    run, sources = FIRST_RUN, dict(FIRST_SOURCE)
    for moment, session in sorted(sessions, key=lambda dated: dated[0]):
        run += random.randint(1, 3)
        seconds = random.randint(2, 20)
        in_session: dict[str, str] = {}
        for draft in session:
            if draft.source and draft.source not in in_session:
                sources[draft.source] += random.randint(1, 4)
                in_session[draft.source] = f"{draft.source}-{sources[draft.source]}"
            yield _Written(
                draft=draft,
                created_at=moment + timedelta(seconds=seconds),
                run_id=f"r-{run}",
                source=in_session[draft.source] if draft.source else None,
            )
            seconds += random.randint(3, 15)


def _moments(thread: Thread, now: datetime, random: Random, taken: set[datetime]) -> list[datetime]:
    """Draw a minute of its own for each session: mostly office hours of working days, never in the future."""
    moments: list[datetime] = []
    while len(moments) < len(thread.sessions):
        if thread.subject is None:
            days_ago = int(random.triangular(thread.until, thread.since + 1, 40))
        else:
            days_ago = random.randint(thread.until, thread.since)
        minutes = random.randint(8 * 60, 18 * 60) if random.random() < 0.93 else random.randint(6 * 60, 22 * 60)
        midnight = datetime.combine(now.date() - timedelta(days=days_ago), time(), UTC)
        moment = midnight + timedelta(minutes=minutes)
        at_weekend = moment.weekday() > 4 and random.random() > 0.08
        if at_weekend or moment in taken or moment + A_MINUTE > now:
            continue
        taken.add(moment)
        moments.append(moment)
    return sorted(moments)
