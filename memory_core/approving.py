"""A second officer's agreement to what is too heavy for one person alone, where the organisation asks for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.db import approvals, locks, members, organisations, safeguards, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import AwaitingSecond, ChangedMeanwhile, Refusal, Refused
from memory_core.identity import new_id
from memory_core.model import Subject
from memory_core.rights import Approval, HeavyAct

OPEN_FOR = timedelta(days=7)
COUNTED_FOR = timedelta(days=1)  # what one officer erased alone, in one act or in several
ASK, AGREE, DECLINE = "ask for a second officer", "agree as second officer", "decline as second officer"
ERASING = frozenset({HeavyAct.ERASE, HeavyAct.CORRECT})
ERASED_ON_RECORD = ("forget", "correct")  # the acts of the trail that they are
Clock = Callable[[], datetime] | None


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What another officer is to agree to."""

    act: HeavyAct
    fingerprint: bytes
    subject: Subject | None
    count: int
    reason: str


class _NotAgreed(Exception):
    """Nobody has agreed: the act is undone, and then it is asked for."""

    def __init__(self, asked: _Asked) -> None:
        self.asked = asked


class SecondOfficer:
    """Says within the transaction of an act whether it may be done, and uses up the agreement to it; see `four_eyes`."""

    def __init__(self, org_id: str, *, by: str, clock: Clock) -> None:
        self._org_id = org_id
        self._by = by
        self._clock = clock

    def require(
        self,
        connection: Connection,
        act: HeavyAct,
        done: Mapping[str, object],
        *,
        subject: Subject | None,
        count: int,
        reason: str,
    ) -> None:
        """Go on where no second officer is asked for, or another has agreed to exactly what is `done`; else undo the act."""
        over = safeguards.safeguards(connection, self._org_id).four_eyes_over
        if over is None:
            return
        now = _moment(connection, self._clock)
        if act in ERASING and not self._is_over(connection, count, over, now=now):
            return
        asked = _Asked(act=act, fingerprint=fingerprint_of(act, done), subject=subject, count=count, reason=reason)
        for one in approvals.asked(connection, self._org_id, act, asked.fingerprint, by=self._by):
            if _holds(connection, one, now=now) and approvals.use(connection, self._org_id, one.approval_id, now=now):
                return
        raise _NotAgreed(asked)

    def _is_over(self, connection: Connection, count: int, over: int, *, now: datetime) -> bool:
        """Say whether with `count` more the officer has erased more than `over` alone, within a day."""
        if count > over:
            return True
        if not count:
            return False  # nothing goes, whatever went before
        organisations.enter(connection, self._org_id)
        locks.await_records(connection, self._org_id)  # so that of two acts at once each counts the other
        since = now - COUNTED_FOR
        names = members.names_of(connection, self._org_id, self._by)
        erased = trail.counted(connection, self._org_id, by=names, acts=ERASED_ON_RECORD, since=since)
        agreed = approvals.counted(connection, self._org_id, by=names, acts=ERASING, since=since)
        return erased - agreed + count > over


def fingerprint_of(act: HeavyAct, done: Mapping[str, object]) -> bytes:
    """Return SHA-256 of what exactly is done, each part under its name, in one order."""
    written = json.dumps({"act": act.value, **done}, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(written.encode()).digest()


@contextmanager
def four_eyes(engine: Engine, org_id: str, *, by: str, clock: Clock) -> Iterator[SecondOfficer]:
    """Do an act's transaction within this: what another officer has not agreed to is undone, and asked for.

    Raises `AwaitingSecond` then. An agreement is to one act by the officer who asked, is used up with it, and holds for
    seven days from when it was asked for.
    """
    try:
        yield SecondOfficer(org_id, by=by, clock=clock)
    except _NotAgreed as refused:
        raise _ask(engine, org_id, refused.asked, by=by, clock=clock) from None


def _ask(engine: Engine, org_id: str, asked: _Asked, *, by: str, clock: Clock) -> AwaitingSecond:
    with organisation_transaction(engine, org_id) as connection:
        organisations.enter(connection, org_id)
        locks.await_records(connection, org_id)  # so that two presses of one button ask once
        now = _moment(connection, clock)
        before = approvals.asked(connection, org_id, asked.act, asked.fingerprint, by=by)
        standing = next((one for one in before if one.waits(now=now) or _holds(connection, one, now=now)), None)
        declined = before[0] if before and before[0].agreed is False and standing is None else None
        if standing is None:
            standing = approvals.ask(
                connection,
                org_id,
                approval_id=new_id(),
                act=asked.act,
                fingerprint=asked.fingerprint,
                subject=asked.subject,
                count=asked.count,
                reason=asked.reason,
                by=by,
                at=now,
                expires_at=now + OPEN_FOR,
            )
            _record(connection, org_id, standing, by=by, act=ASK, clock=clock)
    return AwaitingSecond(
        asked.act.value,
        since=_written(standing.asked_at),
        until=_written(standing.expires_at),
        declined=f"{declined.decided_by} on {_written(declined.decided_at)}"
        if declined and declined.decided_at
        else None,
    )


def decide(engine: Engine, org_id: str, approval_id: UUID, *, agreed: bool, by: str, clock: Clock = None) -> Approval:
    """Agree to an act, or not, as another officer than the one who asked; raises `Refused` or `ChangedMeanwhile`."""
    if not isinstance(agreed, bool):
        raise Refused(Refusal(rule="a_decision_is_yes_or_no", field="agreed", reason="must be True or False"))
    with organisation_transaction(engine, org_id) as connection:
        now = _moment(connection, clock)
        found = approvals.with_id(connection, org_id, approval_id) if isinstance(approval_id, UUID) else None
        if found is None:
            reason = "is nothing that a second officer was asked for here"
            raise Refused(Refusal(rule="approval_exists", field="approval_id", reason=reason))
        if found.asked_by == by or not members.is_second(connection, org_id, by, asked_by=found.asked_by):
            reason = f"is {by}; an officer who is somebody else than {found.asked_by}, who asked, has to decide"
            raise Refused(Refusal(rule="second_officer_is_another", field="by", reason=reason))
        if not approvals.decide(connection, org_id, approval_id, by=by, agreed=agreed, now=now):
            now_found = approvals.with_id(connection, org_id, approval_id) or found
            what = f"was decided by {now_found.decided_by} already" if now_found.decided_by else "is not open any more"
            raise ChangedMeanwhile(field="approval_id", reason=what)
        _record(connection, org_id, found, by=by, act=AGREE if agreed else DECLINE, clock=clock)
        return approvals.with_id(connection, org_id, approval_id) or found


def standing(connection: Connection, org_id: str, *, now: datetime) -> list[Approval]:
    """Return what waits for a second officer, what is agreed to and not done yet, and what was declined last; oldest first."""
    last: dict[tuple[str, bytes, str], Approval] = {}
    for one in approvals.unexpired(connection, org_id, now=now):
        last[one.act, one.fingerprint, one.asked_by] = one
    unused = (one for one in last.values() if one.used_at is None)
    return sorted(unused, key=lambda one: (one.asked_at, one.approval_id))


def _holds(connection: Connection, one: Approval, *, now: datetime) -> bool:
    """Say whether an act may be done on an agreement: it ends with the office of whoever gave it."""
    by = one.decided_by or ""
    return one.is_usable(now=now) and members.is_second(connection, one.org_id, by, asked_by=one.asked_by)


def _record(connection: Connection, org_id: str, of: Approval, *, by: str, act: str, clock: Clock) -> None:
    trail.record(
        connection,
        org_id,
        by=by,
        act=act,
        subject=of.subject,
        reference=str(of.approval_id),
        count=of.count,
        reason=f"{of.act}: {of.reason}"[:500],
        now=clock() if clock else None,
    )


def _moment(connection: Connection, clock: Clock) -> datetime:
    return clock() if clock else organisations.moment(connection)


def _written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
