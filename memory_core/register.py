"""The register of rights requests: what comes in, what becomes of it, every step on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.db import desk, erasures, locks, measures, organisations, requests, subjects, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import ChangedMeanwhile, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id
from memory_core.model import Subject
from memory_core.rights import (
    Channel,
    IdentityMethod,
    RefusalGround,
    RequestChange,
    RequestType,
    RightsRequest,
    Status,
)
from memory_core.rules import deadlines
from memory_core.rules.deadlines import Clock, Deadline
from memory_core.rules.erasure import reason_refusal
from memory_core.rules.jurisdiction import working_days
from memory_core.rules.requests import (
    REFERENCE,
    Act,
    asker_refusal,
    confirming_refusal,
    duplicate_refusal,
    naming_refusal,
    refusing_refusal,
    status_after,
    step_refusal,
)
from memory_core.rules.today import today_in

IsWorkingDay = Callable[[date], bool]
Refuse = Callable[[RightsRequest, date, IsWorkingDay], Refusal | None]


class Register:
    """One organisation's register, as one officer works in it."""

    def __init__(self, engine: Engine, org_id: str, *, by: str, clock: Callable[[], datetime] | None = None) -> None:
        self._engine = engine
        self._org_id = org_id
        self.by = by
        self._clock = clock

    # Reading

    def every(self, *, only_open: bool = False) -> list[RightsRequest]:
        """Return the requests, those received last first."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            return requests.every(connection, self._org_id, only_open=only_open)

    def request(self, reference: str) -> RightsRequest:
        """Return one request; raises `Refused` where there is none of that reference."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            return self._found(connection, reference)

    def deadline(self, request: RightsRequest) -> Deadline:
        """Return when a request must be answered, as the organisation's own days and holidays have it."""
        return self.deadlines([request])[0]

    def deadlines(self, among: list[RightsRequest]) -> list[Deadline]:
        """Return when each of these must be answered, in their order."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            chosen = desk.desk_settings(connection, self._org_id)
            today = today_in(chosen.time_zone, now=self._now(connection))
        is_working_day = working_days(chosen.jurisdiction)
        return [deadlines.deadline(clock_of(one), is_working_day=is_working_day, today=today) for one in among]

    # Steps

    def register(
        self,
        right: RequestType | str,
        *,
        asked_by: str,
        channel: Channel | str,
        received_on: date,
        subject: Subject | None = None,
    ) -> RightsRequest:
        """Enter a request. Without a subject it is still unknown about whom it is.

        Raises `Refused`: for a day in the future, for a subject of whom nothing is held, for a second open request of this
        type about the subject (naming the first).
        """
        kind, way = _member(RequestType, right, field="type"), _member(Channel, channel, field="channel")
        asked_by = asked_by.strip() if isinstance(asked_by, str) else asked_by
        if refused := identifier_refusal(self.by, field="by") or asker_refusal(asked_by):
            raise Refused(refused)
        request_id = new_id()
        with organisation_transaction(self._engine, self._org_id) as connection:
            organisations.enter(connection, self._org_id)
            locks.await_records(connection, self._org_id)
            now = self._now(connection)
            today = self._today(connection, now)
            if refused := deadlines.received_refusal(received_on, today=today):
                raise Refused(refused)
            if subject is not None:
                self._require_held(connection, subject)
                self._require_first(connection, kind, subject)
            reference = requests.next_reference(connection, self._org_id, year=received_on.year)
            requests.add(
                connection,
                self._org_id,
                request_id=request_id,
                reference=reference,
                type=kind.value,
                status=Status.RECEIVED.value,
                asked_by=asked_by,
                channel=way.value,
                subject_type=subject.type if subject else None,
                subject_id=subject.id if subject else None,
                received_on=received_on,
                version=1,
                changed_at=now,
                changed_by=self.by,
            )
            self._record(
                connection,
                request_id,
                reference,
                subject,
                Act.REGISTER,
                version=1,
                at=now,
                changed={
                    "type": (None, kind.value),
                    "status": (None, Status.RECEIVED.value),
                    "received_on": (None, received_on.isoformat()),
                }
                | ({"subject": (None, str(subject))} if subject else {}),
            )
            return self._found(connection, reference)

    def name_subject(self, request: RightsRequest, subject: Subject) -> RightsRequest:
        """Say about whom a request is, or correct that; not after it was made sure who asks, since that was about them."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            locks.await_records(connection, self._org_id)
            current = self._require_open(connection, request, Act.NAME_SUBJECT)
            self._require_held(connection, subject)
            self._require_first(connection, request.type, subject, besides=request.request_id)
            if refused := naming_refusal(current, subject):
                raise Refused(refused)
            fields = {"subject_type": subject.type, "subject_id": subject.id}
            return self._step(connection, current, Act.NAME_SUBJECT, fields)

    def ask_identity(self, request: RightsRequest) -> RightsRequest:
        """Record that the person was asked to show who they are: the month begins when that is made sure.

        Refused when the answer is overdue already: asking late begins no new month.
        """

        def refuse(request: RightsRequest, today: date, is_working_day: IsWorkingDay) -> Refusal | None:
            clock = deadlines.deadline(clock_of(request), is_working_day=is_working_day, today=today)
            if clock.pace is not deadlines.Pace.OVERDUE:
                return None
            reason = f"the answer was due on {clock.due_on}; make sure who asks by other means, and answer"
            return Refusal(rule="identity_is_asked_for_within_the_month", field="identity", reason=reason)

        return self._act(request, Act.ASK_IDENTITY, lambda today: {"identity_asked_on": today}, refuse=refuse)

    def confirm_identity(self, request: RightsRequest, method: IdentityMethod | str) -> RightsRequest:
        """Record how it was made sure who asks; never what they showed."""
        if refused := confirming_refusal(method):
            raise Refused(refused)
        return self._act(
            request,
            Act.CONFIRM_IDENTITY,
            lambda today: {"identity_method": str(method), "identity_confirmed_on": today},
        )

    def fail_identity(self, request: RightsRequest, method: IdentityMethod | str) -> RightsRequest:
        """Record that it could not be made sure who asks; the request stays pending, and may be refused on that ground."""
        if refused := confirming_refusal(method):
            raise Refused(refused)
        outcome = {"identity": (None, f"not confirmed: {method}")}
        return self._act(request, Act.FAIL_IDENTITY, lambda today: {}, outcome=outcome)

    def extend(self, request: RightsRequest, reason: str) -> RightsRequest:
        """Take two months more, which the person must be told of within the first (Art. 12(3))."""

        def refuse(request: RightsRequest, today: date, is_working_day: IsWorkingDay) -> Refusal | None:
            return deadlines.extension_refusal(
                clock_of(request), reason=reason, is_working_day=is_working_day, today=today
            )

        return self._act(
            request, Act.EXTEND, lambda today: {"extended_on": today, "extension_reason": reason}, refuse=refuse
        )

    def pause(self, request: RightsRequest, reason: str) -> RightsRequest:
        """Stop the clock while the person is asked what exactly they want, on a ground that stays on record."""
        if refused := reason_refusal(reason):
            raise Refused(refused)
        return self._act(
            request,
            Act.PAUSE,
            lambda today: {"paused_on": [*(one.since for one in request.pauses), today]},
            refuse=lambda request, today, is_working_day: deadlines.pause_refusal(
                clock_of(request), today=today, is_working_day=is_working_day
            ),
            outcome={"ground": (None, reason)},
        )

    def resume(self, request: RightsRequest) -> RightsRequest:
        """Let the clock go on."""
        return self._act(
            request,
            Act.RESUME,
            lambda today: {"resumed_on": [*(one.until for one in request.pauses if one.until), today]},
            refuse=lambda request, today, _: deadlines.resume_refusal(clock_of(request), today=today),
        )

    def answer(self, request: RightsRequest, note: str) -> RightsRequest:
        """Close a request as answered, with what the answer was in a few words."""
        if refused := reason_refusal(note, field="note"):
            raise Refused(refused)
        return self._act(request, Act.ANSWER, lambda today: {"closing_note": note})

    def refuse(
        self, request: RightsRequest, *, ground: RefusalGround | str, note: str, complaint_told: bool
    ) -> RightsRequest:
        """Close a request as refused; the person has to be told why, and of the right to complain (Art. 12(4))."""
        if refused := refusing_refusal(ground=ground, note=note, complaint_told=complaint_told):
            raise Refused(refused)
        return self._act(request, Act.REFUSE, lambda today: {"ground": str(ground), "closing_note": note})

    def mark_duplicate(self, request: RightsRequest, of: str) -> RightsRequest:
        """Close a request as a repeat of another of the same type."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            locks.await_records(connection, self._org_id)
            current = self._require_open(connection, request, Act.DUPLICATE)
            original = self._found(connection, of)
            if refused := duplicate_refusal(current, original, self._repeated_by(connection, original)):
                raise Refused(refused)
            return self._step(connection, current, Act.DUPLICATE, {"duplicate_of": original.request_id})

    def withdraw(self, request: RightsRequest, note: str) -> RightsRequest:
        """Close a request that whoever asked has taken back."""
        if refused := reason_refusal(note, field="note"):
            raise Refused(refused)
        return self._act(request, Act.WITHDRAW, lambda today: {"closing_note": note})

    def history(self, request: RightsRequest) -> list[RequestChange]:
        """Return every step of a request, oldest first."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            return requests.changes(connection, self._org_id, request.request_id)

    # How a step is made

    def _act(
        self,
        request: RightsRequest,
        act: Act,
        fields: Callable[[date], Mapping[str, Any]],
        *,
        refuse: Refuse | None = None,
        outcome: Mapping[str, tuple[str | None, str | None]] | None = None,
    ) -> RightsRequest:
        with organisation_transaction(self._engine, self._org_id) as connection:
            locks.await_records(connection, self._org_id)
            now = self._now(connection)
            chosen = desk.desk_settings(connection, self._org_id)
            today = today_in(chosen.time_zone, now=now)
            current = self._require_open(connection, request, act)
            if refuse and (refused := refuse(current, today, working_days(chosen.jurisdiction))):
                raise Refused(refused)
            return self._step(connection, current, act, fields(today), outcome=outcome)

    def _current(self, connection: Connection, request: object) -> RightsRequest:
        if not isinstance(request, RightsRequest):
            why = "must be a request of the register, as it was read"
            raise Refused(Refusal(rule="request_is_a_request", field="request", reason=why))
        current = self._found(connection, request.reference)
        if current.request_id != request.request_id:
            raise Refused(_no_request(request.reference))
        if current.version != request.version:
            raise _changed(current)
        return current

    def _require_open(self, connection: Connection, request: RightsRequest, act: Act) -> RightsRequest:
        current = self._current(connection, request)
        if refused := identifier_refusal(self.by, field="by") or step_refusal(current, act):
            raise Refused(refused)
        return current

    def _step(
        self,
        connection: Connection,
        current: RightsRequest,
        act: Act,
        fields: Mapping[str, Any],
        *,
        outcome: Mapping[str, tuple[str | None, str | None]] | None = None,
    ) -> RightsRequest:
        now = self._now(connection)
        status = status_after(current, act)
        values = {**fields, "status": status.value, "changed_at": now, "changed_by": self.by}
        if not status.is_open:
            values["closed_at"] = now
        if not requests.change(connection, self._org_id, current.request_id, version=current.version, **values):
            raise _changed(self._found(connection, current.reference))
        after = self._found(connection, current.reference)
        self._record(
            connection,
            current.request_id,
            current.reference,
            after.subject,
            act,
            version=after.version,
            at=now,
            changed=_difference(current, after) | dict(outcome or {}),
        )
        return after

    def _record(
        self,
        connection: Connection,
        request_id: UUID,
        reference: str,
        subject: Subject | None,
        act: Act,
        *,
        version: int,
        at: datetime,
        changed: Mapping[str, tuple[str | None, str | None]],
    ) -> None:
        requests.record_change(
            connection, self._org_id, request_id, version=version, at=at, by=self.by, act=act.value, changed=changed
        )
        trail.record(
            connection,
            self._org_id,
            by=self.by,
            act=f"request {act}",
            subject=subject,
            reference=reference,
            request=reference,
            now=at if self._clock else None,
        )

    def _found(self, connection: Connection, reference: object) -> RightsRequest:
        is_one = isinstance(reference, str) and REFERENCE.fullmatch(reference)
        found = requests.with_reference(connection, self._org_id, str(reference)) if is_one else None
        if found is None:
            raise Refused(_no_request(reference))
        return found

    def _repeated_by(self, connection: Connection, original: RightsRequest) -> set[str]:
        """Return the references that a request is, by way of others perhaps, a repeat of."""
        found: set[str] = set()
        one = original
        while one.duplicate_of and one.duplicate_of not in found:
            found.add(one.duplicate_of)
            one = self._found(connection, one.duplicate_of)
        return found

    def _require_held(self, connection: Connection, subject: object) -> None:
        if not isinstance(subject, Subject):
            why = "must be a Subject(type, id)"
            raise Refused(Refusal(rule="subject_is_a_subject", field="subject", reason=why))
        known = (
            subjects.tallies(connection, self._org_id, [subject])
            or erasures.of_subject(connection, self._org_id, subject)
            or measures.of_subject(connection, self._org_id, subject)
        )
        if not known:
            why = f"nothing is held about {subject}; check the id, or leave the request without a subject as yet"
            raise Refused(Refusal(rule="request_is_about_a_known_subject", field="subject", reason=why))

    def _require_first(
        self, connection: Connection, right: RequestType, subject: Subject, *, besides: UUID | None = None
    ) -> None:
        for one in requests.of_subject(connection, self._org_id, subject):
            if one.status.is_open and one.type is right and one.request_id != besides:
                why = (
                    f"{one.reference} of {one.received_on} asks for {right} about {subject} already, and is {one.status}; "
                    "work on that one, or enter this one without a subject and mark it as its duplicate"
                )
                raise Refused(Refusal(rule="one_open_request_of_a_type", field="subject", reason=why))

    def _now(self, connection: Connection) -> datetime:
        return self._clock() if self._clock else organisations.moment(connection)

    def _today(self, connection: Connection, now: datetime) -> date:
        return today_in(desk.desk_settings(connection, self._org_id).time_zone, now=now)


def clock_of(request: RightsRequest) -> Clock:
    """Return what a request's deadline is counted from."""
    return Clock(
        received_on=request.received_on,
        identity_asked_on=request.identity_asked_on,
        identity_confirmed_on=request.identity_confirmed_on,
        extended=request.extended_on is not None,
        pauses=request.pauses,
    )


def _no_request(reference: object) -> Refusal:
    reason = f"{str(reference)[:40]!r} is no request of this organisation"
    return Refusal(rule="request_exists", field="reference", reason=reason)


def _changed(current: RightsRequest) -> ChangedMeanwhile:
    return ChangedMeanwhile(
        field="request",
        reason=f"{current.reference} was changed by {current.changed_by} at {current.changed_at:%Y-%m-%d %H:%M} UTC "
        f"and is {current.status} now; nothing was done. Look again",
    )


SHOWN = (
    "status",
    "subject",
    "identity_asked_on",
    "identity_method",
    "identity_confirmed_on",
    "extended_on",
    "extension_reason",
    "pauses",
    "ground",
    "closing_note",
    "duplicate_of",
)


def _difference(before: RightsRequest, after: RightsRequest) -> dict[str, tuple[str | None, str | None]]:
    pairs = {name: (_written(getattr(before, name)), _written(getattr(after, name))) for name in SHOWN}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _written(value: object) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(f"{one.since} to {one.until or '…'}" for one in value) or None
    return None if value is None else str(value)


def _member(words: Any, value: object, *, field: str) -> Any:
    try:
        return words(value)
    except ValueError:
        reason = f"is not known; use {', '.join(words)}"
        raise Refused(Refusal(rule=f"{field}_is_known", field=field, reason=reason)) from None
