"""Placing and lifting what stands about a subject: restrictions, holds, suppressions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.answering import answered_request
from memory_core.approving import four_eyes
from memory_core.db import ledger, locks, measures, memories, organisations, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import ChangedMeanwhile, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id
from memory_core.model import Subject
from memory_core.restoring import try_to_copy_out
from memory_core.rights import HeavyAct, LedgerAct, Measure, MeasureKind
from memory_core.rules.deadlines import review_refusal
from memory_core.rules.erasure import reason_refusal


def place(
    engine: Engine,
    org_id: str,
    *,
    kind: MeasureKind,
    by: str,
    reason: str,
    folder: Path,
    today: date,
    subject: Subject | None = None,
    memory_id: UUID | None = None,
    name: str | None = None,
    review_on: date | None = None,
    reference: str | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Measure:
    """Place a measure about a subject, with all that is written about it later, or about one memory.

    Without a `name` it has the reference of the request it answers, or is named as what it is; a hold needs the one or the
    other. Raises `Refused` for what stands already, for a tombstone, and for a subject of whom no text is held (but for a
    suppression).
    """
    refused = (
        _about_refusal(subject, memory_id)
        or identifier_refusal(by, field="by")
        or reason_refusal(reason)
        or review_refusal(review_on, today=today)
        or (identifier_refusal(name, field="name") if name is not None else None)
    )
    if refused:
        raise Refused(refused)
    if kind is MeasureKind.HOLD and name is None and reference is None:
        raise Refused(Refusal(rule="hold_has_a_name", field="name", reason="is missing; name the matter it is for"))
    now = clock() if clock else None
    measure_id = new_id()
    with organisation_transaction(engine, org_id) as connection:
        organisations.enter(connection, org_id)
        at = now or organisations.moment(connection)
        subject = subject if memory_id is None else _subject_of(connection, org_id, memory_id, subject, kind, now=at)
        request = answered_request(connection, org_id, reference, subject)
        _take(connection, org_id, subject, memory_id, now=at)
        if one := measures.standing_like(
            connection, org_id, kind=kind, subject=subject, memory_id=memory_id, name=name or reference
        ):
            why = f"{one.name} stands since {one.placed_at:%Y-%m-%d}, placed by {one.by}; lift it first"
            raise Refused(Refusal(rule="measure_stands_once", field="subject", reason=why))
        measures.place(
            connection,
            org_id,
            measure_id=measure_id,
            kind=kind,
            name=name or reference or kind.value,
            subject=subject,
            memory_id=memory_id,
            by=by,
            reason=reason,
            at=at,
            review_on=review_on,
            request_id=request.request_id if request else None,
        )
        reached = (
            None
            if kind is MeasureKind.SUPPRESSION
            else measures.apply(connection, org_id, subject=subject, memory_id=memory_id)
        )
        if reached == 0:
            what = f"no memory about {subject} has text" if memory_id is None else "the memory has no text any more"
            rule = f"{kind}_is_on_what_has_text"
            raise Refused(Refusal(rule=rule, field="subject", reason=f"{what}; there is nothing to put it on"))
        line = trail.record(
            connection,
            org_id,
            by=by,
            act=kind.value,
            subject=subject,
            reference=str(measure_id),
            request=reference,
            count=reached,
            reason=reason,
            now=now,
        )
        ledger.record(
            connection,
            org_id,
            act=LedgerAct(kind.value),
            line=line,
            subject=subject,
            code="request" if request else "measure",
            memory_ids=[] if memory_id is None else [memory_id],
            name=name or reference or kind.value,
            reference=measure_id,
        )
        placed = measures.with_id(connection, org_id, measure_id)
    try_to_copy_out(engine, org_id, folder)
    assert placed is not None  # noqa: S101
    return placed


def lift(
    engine: Engine,
    org_id: str,
    measure_id: UUID,
    *,
    by: str,
    reason: str,
    folder: Path,
    person_told: bool | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Measure:
    """Lift a measure; of a restriction it has to be said whether the person was told before (Art. 18(3)).

    Raises `ChangedMeanwhile` where somebody has lifted it already, or `AwaitingSecond` where another officer has to agree
    to the lifting of a hold.
    """
    if refused := identifier_refusal(by, field="by") or reason_refusal(reason):
        raise Refused(refused)
    now = clock() if clock else None
    with (
        four_eyes(engine, org_id, by=by, clock=clock) as second,
        organisation_transaction(engine, org_id) as connection,
    ):
        found = measures.with_id(connection, org_id, measure_id) if isinstance(measure_id, UUID) else None
        if found is None:
            raise Refused(
                Refusal(rule="measure_exists", field="measure_id", reason="is no measure of this organisation")
            )
        if found.kind is MeasureKind.RESTRICTION and not isinstance(person_told, bool):
            why = "say whether the person was told that the restriction is lifted; they must be, before (Art. 18(3))"
            raise Refused(Refusal(rule="lifting_says_whether_the_person_was_told", field="person_told", reason=why))
        at = now or organisations.moment(connection)
        _take(connection, org_id, found.subject, found.memory_id, now=at)
        told = person_told if found.kind is MeasureKind.RESTRICTION else None
        if not measures.lift(connection, org_id, measure_id, by=by, reason=reason, at=at, person_told=told):
            raise ChangedMeanwhile(field="measure_id", reason=f"was lifted by {found.lifted_by or 'somebody'} already")
        reached = measures.apply(connection, org_id, subject=found.subject, memory_id=found.memory_id, lifted=found)
        if found.kind is MeasureKind.HOLD:
            second.require(
                connection,
                HeavyAct.LIFT,
                {"measure": str(measure_id)},
                subject=found.subject,
                count=reached,
                reason=reason,
            )
        line = trail.record(
            connection,
            org_id,
            by=by,
            act=f"lift {found.kind}",
            subject=found.subject,
            reference=str(measure_id),
            request=found.request_reference,
            reason=reason,
            now=now,
        )
        ledger.record(
            connection,
            org_id,
            act=LedgerAct.LIFT,
            line=line,
            subject=found.subject,
            code="person_told" if told else "lift",
            name=found.name,
            reference=measure_id,
        )
        lifted = measures.with_id(connection, org_id, measure_id)
    try_to_copy_out(engine, org_id, folder)
    assert lifted is not None  # noqa: S101
    return lifted


def _take(
    connection: Connection, org_id: str, subject: Subject | None, memory_id: UUID | None, *, now: datetime
) -> None:
    """Wait until nobody else changes what stands about these, nor the one memory, until this transaction ends."""
    if subject is not None:
        locks.await_writes(connection, org_id, subject)
    if memory_id is not None:
        memories.one(connection, org_id, memory_id, now=now, locked=True)


def _about_refusal(subject: object, memory_id: object) -> Refusal | None:
    if subject is not None and not isinstance(subject, Subject):
        return Refusal(rule="subject_is_a_subject", field="subject", reason="must be a Subject(type, id)")
    if memory_id is not None and not isinstance(memory_id, UUID):
        return Refusal(rule="memory_exists", field="memory_id", reason="is no memory of this organisation")
    if subject is None and memory_id is None:
        reason = "is missing; name a subject or a memory"
        return Refusal(rule="measure_is_about_a_subject_or_a_memory", field="subject", reason=reason)
    return None


def _subject_of(
    connection: Connection,
    org_id: str,
    memory_id: UUID,
    subject: Subject | None,
    kind: MeasureKind,
    *,
    now: datetime,
) -> Subject | None:
    if kind is MeasureKind.SUPPRESSION:
        why = "a suppression is about a subject; leave memory_id out"
        raise Refused(Refusal(rule="suppression_is_about_a_subject", field="memory_id", reason=why))
    found = memories.one(connection, org_id, memory_id, now=now)
    if found is None or (subject is not None and found.subject != subject):
        about = "of this organisation" if subject is None else f"about {subject}"
        raise Refused(Refusal(rule="memory_exists", field="memory_id", reason=f"is no memory {about}"))
    if found.text is None:
        why = f"is a tombstone ({found.state} on {(found.forgotten_at or found.swept_at or now):%Y-%m-%d}); its text is gone"
        raise Refused(Refusal(rule=f"{kind}_is_on_what_has_text", field="memory_id", reason=why))
    return found.subject
