"""The access package: everything held about a subject, with the organisation's answers to the questions of Art. 15."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Engine

from memory_core.answering import answered_request
from memory_core.approving import four_eyes
from memory_core.db import desk, held, measures, organisations, requests, subjects, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import ChangedMeanwhile, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Subject
from memory_core.restoring import RestoreWatch
from memory_core.rights import AccessPackage, HeavyAct, PackageItem
from memory_core.rules.erasure import reason_refusal
from memory_core.rules.jurisdiction import law_of
from memory_core.rules.mentions import Names
from memory_core.rules.requests import release_refusal


def access_package(
    engine: Engine,
    org_id: str,
    subject: Subject,
    *,
    by: str,
    reference: str | None = None,
    left_out: Mapping[UUID, str] | None = None,
    folder: Path,
    release: bool = False,
    expecting: str | None = None,
    clock: Callable[[], datetime] | None = None,
) -> AccessPackage:
    """Put together what is held about a subject; items whose text names another known subject say whom.

    `left_out` gives, by memory, why its text is not handed out (Art. 15(4)). `expecting` is the `readable` of the package
    that was looked at: raises `ChangedMeanwhile` where it is another by now. With `release` it is on record as an export,
    else as a look. Raises `Refused` for a reason that is none, a memory that is not the subject's, and a release for a
    request whose identity was not made sure or that was closed without an answer; `AwaitingSecond` where another officer
    has to agree to a release.
    """
    reasons = dict(left_out or {})
    for refused in (identifier_refusal(by, field="by"), *(reason_refusal(one) for one in reasons.values())):
        if refused:
            raise Refused(refused)
    with (
        four_eyes(engine, org_id, by=by, clock=clock) as second,
        organisation_transaction(engine, org_id) as connection,
    ):
        now = clock() if clock else None
        if release:
            RestoreWatch(org_id, folder).require_sound(connection)
        request = answered_request(connection, org_id, reference, subject, needs_identity=release)
        if release and request and (refused := release_refusal(request)):
            raise Refused(refused)
        chosen = desk.desk_settings(connection, org_id)
        at, known, found = held.held(connection, org_id, subject, now=now)
        strange = reasons.keys() - {memory.memory_id for memory in found}
        if strange:
            why = f"{len(strange)} of those to leave out are not about {subject}"
            raise Refused(Refusal(rule="left_out_is_of_the_subject", field="left_out", reason=why))
        policy = organisations.policy(connection, org_id)
        others = [one for one in subjects.named(connection, org_id) if one != known and policy.is_person(one.type)]
        names = Names(others)
        items = tuple(
            PackageItem(
                memory=memory,
                mentions=names.in_text(memory.words) if memory.text is not None else (),
                left_out=reasons.get(memory.memory_id),
            )
            for memory in found
        )
        package = AccessPackage(
            org_id=org_id,
            subject=known,
            at=at,
            by=by,
            reference=reference,
            law=law_of(chosen.jurisdiction).value,
            answers=chosen.answers,
            items=items,
            measures=tuple(measures.of_subject(connection, org_id, subject)),
            requests=tuple(requests.of_subject(connection, org_id, subject)),
            tombstone_days=chosen.tombstone_days,
        )
        if expecting is not None and package.readable != expecting:
            why = "something about them was written, erased or disputed since it was looked at; look through it again"
            raise ChangedMeanwhile(field="package", reason=why)
        if release:
            second.require(
                connection,
                HeavyAct.RELEASE,
                {
                    "subject": [subject.type, subject.id],
                    "reference": reference,
                    "readable": package.readable,
                    "left out": sorted((str(memory_id), reason) for memory_id, reason in reasons.items()),
                },
                subject=subject,
                count=len(items),
                reason=f"to answer {reference}" if reference else "for no request",
            )
        for memory_id, reason in sorted(reasons.items()) if release else ():
            trail.record(
                connection,
                org_id,
                by=by,
                act="left out of export",
                subject=subject,
                reference=str(memory_id),
                request=reference,
                reason=reason,
                now=now,
            )
        trail.record(
            connection,
            org_id,
            by=by,
            act="export" if release else "look at package",
            subject=subject,
            reference=reference,
            request=reference,
            count=len(items),
            now=now,
        )
    return package
