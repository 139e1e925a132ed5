"""Erasing what is held about a subject, together with what a person chose to erase with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.answering import answered_request
from memory_core.approving import SecondOfficer, four_eyes
from memory_core.db import held, ledger, locks, measures, memories, organisations, subjects, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import ChangedMeanwhile, OnHold, Refusal, Refused
from memory_core.identity import new_id
from memory_core.model import Erasure, Subject
from memory_core.restoring import try_to_copy_out
from memory_core.rights import HeavyAct, LedgerAct, MeasureKind, RightsRequest
from memory_core.rules.erasure import erasure_refusal


def erase(
    engine: Engine,
    org_id: str,
    subject: Subject,
    *,
    by: str,
    reason: str,
    folder: Path,
    clock: Callable[[], datetime] | None = None,
    also: Sequence[UUID] = (),
    expecting: int | None = None,
    reference: str | None = None,
    suppress: bool = False,
) -> Erasure:
    """Empty what is held about a subject, and the memories of `also`, in one transaction with its record.

    `expecting` is how many memories about the subject with text whoever decides has seen; `reference` names the request
    that is answered; `suppress` keeps out what is new about the subject. Raises `OnHold` naming each hold,
    `ChangedMeanwhile` where it is not as it was looked at, or `AwaitingSecond` where another officer has to agree to as
    many; nothing is then erased.
    """
    if refused := erasure_refusal(by=by, reason=reason) or _choice_refusal(also, expecting):
        raise Refused(refused)
    with (
        four_eyes(engine, org_id, by=by, clock=clock) as second,
        organisation_transaction(engine, org_id) as connection,
    ):
        erasure = erase_within(
            connection,
            org_id,
            subject,
            by=by,
            reason=reason,
            now=clock() if clock else None,
            also=also,
            expecting=expecting,
            reference=reference,
            suppress=suppress,
            second=second,
        )
    return replace(erasure, ledger_is_outside=try_to_copy_out(engine, org_id, folder))


def erase_within(
    connection: Connection,
    org_id: str,
    subject: Subject,
    *,
    by: str,
    reason: str,
    now: datetime | None,
    also: Sequence[UUID] = (),
    expecting: int | None = None,
    reference: str | None = None,
    suppress: bool = False,
    second: SecondOfficer | None = None,
) -> Erasure:
    """Do what `erase` does inside an open transaction of the organisation, whose ledger is to be copied out after it."""
    if refused := erasure_refusal(by=by, reason=reason) or _choice_refusal(also, expecting):
        raise Refused(refused)
    erasure_id = new_id()
    organisations.enter(connection, org_id)
    request = answered_request(connection, org_id, reference, subject, needs_identity=True)
    chosen = memories.with_text(connection, org_id, also) if also else []
    about = {Subject(row.subject_type, row.subject_id) for row in chosen if row.subject_id is not None}
    locks.await_writes(connection, org_id, subject, *about)
    others = _others(connection, org_id, also, subject=subject, by=by, reason=reason, erasure_id=erasure_id, now=now)
    at, gone, holds = held.forget(
        connection,
        org_id,
        subject,
        erasure_id=erasure_id,
        by=by,
        reason=reason,
        now=now,
        others=len(others),
        request_id=request.request_id if request else None,
    )
    if holds:
        raise OnHold(tuple(sorted({*holds, *measures.placed_holds(connection, org_id, subject)})))
    if expecting is not None and len(gone) != expecting:
        raise ChangedMeanwhile(
            field="subject",
            reason=f"{len(gone):,} memories about {subject} have text, where {expecting:,} were looked at; nothing "
            "was erased. Look again",
        )
    if second:
        second.require(
            connection,
            HeavyAct.ERASE,
            {
                "subject": [subject.type, subject.id],
                "memories": sorted(map(str, gone)),
                "also": sorted(map(str, others)),
                "reference": reference,
                "suppress": suppress,
            },
            subject=subject,
            count=len(gone) + len(others),
            reason=reason,
        )
    if others:
        subjects.clear_unused(connection, org_id, about)
    suppression = (
        _suppressed(connection, org_id, subject, by=by, reason=reason, at=at, request=request, erasure_id=erasure_id)
        if suppress
        else None
    )
    line = trail.record(
        connection,
        org_id,
        by=by,
        act="forget",
        subject=subject,
        reference=str(erasure_id),
        request=reference,
        count=len(gone) + len(others),
        reason=reason,
        now=now,
    )
    ledger.record(
        connection,
        org_id,
        act=LedgerAct.FORGET,
        line=line,
        subject=subject,
        code="request" if request else "forget",
        memory_ids=[*gone, *others],
        reference=erasure_id,
        at=at,
    )
    if suppression:
        line = trail.record(
            connection,
            org_id,
            by=by,
            act="suppression",
            subject=subject,
            reference=str(suppression),
            request=reference,
            reason=reason,
            now=now,
        )
        ledger.record(
            connection,
            org_id,
            act=LedgerAct.SUPPRESSION,
            line=line,
            subject=subject,
            code="erasure",
            name=_because(request, erasure_id),
            reference=suppression,
        )
    return Erasure(
        erasure_id=erasure_id,
        subject=subject,
        by=by,
        reason=reason,
        at=at,
        memory_ids=tuple(gone),
        others=tuple(others),
        ledger_is_outside=False,
    )


def _choice_refusal(also: object, expecting: object) -> Refusal | None:
    if not isinstance(also, list | tuple) or not all(isinstance(one, UUID) for one in also):
        return Refusal(rule="others_are_identifiers", field="also", reason="must be a list of memory ids (UUID)")
    if expecting is not None and type(expecting) is not int:
        return Refusal(rule="expected_count_is_a_number", field="expecting", reason="must be a whole number")
    return None


def _others(
    connection: Connection,
    org_id: str,
    also: Sequence[UUID],
    *,
    subject: Subject,
    by: str,
    reason: str,
    erasure_id: UUID,
    now: datetime | None,
) -> list[UUID]:
    if not also:
        return []
    found = memories.with_text(connection, org_id, also, locked=True)  # again, now that nobody writes about them
    if len(found) != len(set(also)):
        reason = f"{len(set(also)) - len(found)} of the chosen memories about others have no text any more; look again"
        raise ChangedMeanwhile(field="also", reason=reason)
    if any((row.subject_type, row.subject_id) == (subject.type, subject.id) for row in found):
        refusal = Refusal(rule="others_are_about_others", field="also", reason=f"names a memory about {subject} itself")
        raise Refused(refusal)
    if any(row.hold for row in found):
        holds = measures.hold_names_of(connection, org_id, also)
        raise OnHold(tuple(sorted(holds.union(measures.hold_names(connection, org_id, subject)))))
    return held.forget_each(connection, org_id, also, by=by, reason=reason, at=now, erasure_id=erasure_id)


def _suppressed(
    connection: Connection,
    org_id: str,
    subject: Subject,
    *,
    by: str,
    reason: str,
    at: datetime,
    request: RightsRequest | None,
    erasure_id: UUID,
) -> UUID | None:
    standing = measures.standing_about(connection, org_id, [subject])
    if any(one.kind is MeasureKind.SUPPRESSION for one in standing):
        return None  # it stands already
    measure_id = new_id()
    measures.place(
        connection,
        org_id,
        measure_id=measure_id,
        kind=MeasureKind.SUPPRESSION,
        name=_because(request, erasure_id),
        subject=subject,
        memory_id=None,
        by=by,
        reason=reason,
        at=at,
        review_on=None,
        request_id=request.request_id if request else None,
    )
    return measure_id


def _because(request: RightsRequest | None, erasure_id: UUID) -> str:
    return request.reference if request else f"erasure:{erasure_id}"
