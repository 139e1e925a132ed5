"""Putting right what is remembered: a correction that takes a memory's place, a dispute that stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.answering import answered_request
from memory_core.approving import four_eyes
from memory_core.characters import has_surrogate, is_blank
from memory_core.db import held, ledger, locks, measures, memories, organisations, requests, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import ChangedMeanwhile, OnHold, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id
from memory_core.model import Memory, Origin
from memory_core.restoring import RestoreWatch, try_to_copy_out
from memory_core.rights import HeavyAct, LedgerAct, MeasureKind, TrailEntry
from memory_core.rules.admission import Correction, Draft, admitted
from memory_core.rules.erasure import reason_refusal
from memory_core.rules.retention import is_due

MAX_DISPUTE = 500


def correct(
    engine: Engine,
    org_id: str,
    memory_id: UUID,
    text: str,
    *,
    author: str,
    by: str,
    reason: str,
    folder: Path,
    reference: str | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """Put a corrected memory in the place of another, whose text goes; returns the new one.

    `author` is the person who states what is right (`user:…`), `by` who records it. It expires when the old one would
    have, is restricted as that was, and says what it replaces. Raises `OnHold` for a memory on hold, or `AwaitingSecond`
    where another officer has to agree, since a correction erases what was said before.
    """
    refused = identifier_refusal(by, field="by") or reason_refusal(reason)
    if refused:
        raise Refused(refused)
    given = clock() if clock else None
    with (
        four_eyes(engine, org_id, by=by, clock=clock) as second,
        organisation_transaction(engine, org_id) as connection,
    ):
        RestoreWatch(org_id, folder).require_sound_as_far_as_known(connection)
        now = given or organisations.moment(connection)
        old = _with_text(connection, org_id, memory_id, now=now)
        answered_request(connection, org_id, reference, old.subject, needs_identity=True)
        if old.subject is not None:
            locks.await_writes(connection, org_id, old.subject)
        old = _with_text(connection, org_id, memory_id, now=now, locked=True)
        if old.hold:
            raise OnHold(tuple(sorted(measures.hold_names_of(connection, org_id, [memory_id]))))
        if is_due(old.expires_at, now=now):
            why = f"has expired on {old.expires_at:%Y-%m-%d} and is used no more; there is nothing to correct"
            raise Refused(Refusal(rule="correction_is_of_what_lives", field="memory_id", reason=why))
        if text == old.text:
            why = "is what the memory says already"
            raise Refused(Refusal(rule="correction_says_something_new", field="text", reason=why))
        draft = Draft(
            text=text,
            kind=old.kind,
            origin=Origin.PERSON,
            author=author,
            run_id=f"correction:{reference or 'desk'}",
            subject=old.subject,
            source=f"memory:{memory_id}",
            created_at=now,
            expires_at=old.expires_at,
        )
        item = admitted(draft, now=now, policy=organisations.policy(connection, org_id))
        if isinstance(item, Refusal):
            raise Refused(item)
        item = replace(
            item,
            restricted_at=old.restricted_at,
            correction=Correction(supersedes=memory_id, by=by, reason=reason),
        )
        new_memory = new_id()
        (stored,) = memories.remember(connection, org_id, {new_memory: item}, now=now)
        if stored.memory_id != new_memory:
            why = "says what another memory of the same person about the same subject says already; nothing was changed"
            raise Refused(Refusal(rule="correction_says_something_new", field="text", reason=why))
        held.forget_each(connection, org_id, [memory_id], by=by, reason=reason, at=now)
        second.require(
            connection,
            HeavyAct.CORRECT,
            {"memory": str(memory_id), "text": text, "author": author, "reference": reference},
            subject=old.subject,
            count=1,
            reason=reason,
        )
        line = trail.record(
            connection,
            org_id,
            by=by,
            act="correct",
            subject=old.subject,
            reference=str(memory_id),
            request=reference,
            count=1,
            reason=reason,
            now=given,
        )
        ledger.record(
            connection,
            org_id,
            act=LedgerAct.CORRECT,
            line=line,
            subject=old.subject,
            code="rectification",
            memory_ids=[memory_id],
            reference=stored.memory_id,
        )
        _restriction_goes_on(connection, org_id, old, stored, line=line, now=given)
    try_to_copy_out(engine, org_id, folder)
    return stored


def _restriction_goes_on(
    connection: Connection,
    org_id: str,
    old: Memory,
    new: Memory,
    *,
    line: TrailEntry,
    now: datetime | None,
) -> None:
    """Let a restriction of the one memory that was corrected stand on what has taken its place."""
    for one in measures.standing(connection, org_id):
        if one.memory_id != old.memory_id or one.kind is not MeasureKind.RESTRICTION:
            continue
        why = f"goes on with the correction, memory {new.memory_id}"
        measures.lift(connection, org_id, one.measure_id, by=line.by, reason=why, at=line.at, person_told=None)
        measure_id = new_id()
        request = requests.with_reference(connection, org_id, one.request_reference or "")
        measures.place(
            connection,
            org_id,
            measure_id=measure_id,
            kind=one.kind,
            name=one.name,
            subject=one.subject,
            memory_id=new.memory_id,
            by=one.by,
            reason=one.reason,
            at=one.placed_at,
            review_on=one.review_on,
            request_id=request.request_id if request else None,
        )
        moved = trail.record(
            connection,
            org_id,
            by=line.by,
            act="restriction goes on",
            subject=one.subject,
            reference=str(measure_id),
            request=line.request,
            count=1,
            now=now,
        )
        for act, reference, about in (
            (LedgerAct.LIFT, one.measure_id, []),
            (LedgerAct.RESTRICTION, measure_id, [new.memory_id]),
        ):
            ledger.record(
                connection,
                org_id,
                act=act,
                line=moved,
                subject=one.subject,
                code="rectification",
                memory_ids=about,
                name=one.name,
                reference=reference,
            )


def dispute(
    engine: Engine,
    org_id: str,
    memory_id: UUID,
    words: str,
    *,
    by: str,
    folder: Path,
    reference: str | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """Put the person's own words beside a memory; every block that shows it shows them too."""
    refused = identifier_refusal(by, field="by") or _words_refusal(words)
    if refused:
        raise Refused(refused)
    given = clock() if clock else None
    with organisation_transaction(engine, org_id) as connection:
        RestoreWatch(org_id, folder).require_sound_as_far_as_known(connection)
        now = given or organisations.moment(connection)
        old = _with_text(connection, org_id, memory_id, now=now)
        answered_request(connection, org_id, reference, old.subject)
        if not memories.dispute(connection, org_id, memory_id, words=words, at=now):
            old = _with_text(connection, org_id, memory_id, now=now)
            when = old.disputed_at
            why = f"was disputed on {when:%Y-%m-%d} already" if when else "has no text any more"
            raise Refused(
                Refusal(rule="memory_is_disputed_once", field="memory_id", reason=f"{why}; correct it instead")
            )
        trail.record(
            connection,
            org_id,
            by=by,
            act="dispute",
            subject=old.subject,
            reference=str(memory_id),
            request=reference,
            now=given,
        )
        return _with_text(connection, org_id, memory_id, now=now)


def withdraw_dispute(
    engine: Engine,
    org_id: str,
    memory_id: UUID,
    *,
    by: str,
    reason: str,
    reference: str | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """Take back a dispute; it stays on record as withdrawn, and is shown no more."""
    if refused := identifier_refusal(by, field="by") or reason_refusal(reason):
        raise Refused(refused)
    given = clock() if clock else None
    with organisation_transaction(engine, org_id) as connection:
        now = given or organisations.moment(connection)
        old = _with_text(connection, org_id, memory_id, now=now)
        answered_request(connection, org_id, reference, old.subject)
        if not memories.withdraw_dispute(connection, org_id, memory_id, at=now):
            why = "has no dispute that stands"
            raise Refused(Refusal(rule="dispute_stands", field="memory_id", reason=why))
        trail.record(
            connection,
            org_id,
            by=by,
            act="withdraw dispute",
            subject=old.subject,
            reference=str(memory_id),
            request=reference,
            reason=reason,
            now=given,
        )
        return _with_text(connection, org_id, memory_id, now=now)


def _with_text(connection: Connection, org_id: str, memory_id: UUID, *, now: datetime, locked: bool = False) -> Memory:
    is_one = isinstance(memory_id, UUID)
    found = memories.one(connection, org_id, memory_id, now=now, locked=locked) if is_one else None
    if found is None and is_one and locked:  # a tombstone cannot be locked: nothing about it changes any more
        found = memories.one(connection, org_id, memory_id, now=now)
    if found is None:
        raise Refused(Refusal(rule="memory_exists", field="memory_id", reason="is no memory of this organisation"))
    if found.text is None:
        raise ChangedMeanwhile(field="memory_id", reason=f"has no text any more ({found.state})")
    return found


def _words_refusal(words: object) -> Refusal | None:
    if not isinstance(words, str) or is_blank(words):
        return Refusal(rule="dispute_is_given", field="words", reason="is missing; write what the person says")
    if "\x00" in words or has_surrogate(words):
        return Refusal(rule="text_is_storable", field="words", reason="has a NUL or a lone surrogate; remove it")
    if len(words) > MAX_DISPUTE:
        why = f"has {len(words)} characters; at most {MAX_DISPUTE}"
        return Refusal(rule="dispute_length", field="words", reason=why)
    return None
