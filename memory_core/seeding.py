"""Filling an organisation with the demo's people, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import groupby

from sqlalchemy import Engine

from memory_core.db import locks, organisations
from memory_core.db.engine import organisation_transaction
from memory_core.demo import DemoErasure, DemoMemory, demo_erasures, demo_letters, demo_memories
from memory_core.erasing import erase_within
from memory_core.errors import Refusal, Refused
from memory_core.register import Register
from memory_core.rules.admission import Draft
from memory_core.writing import write


def seed_demo(engine: Engine, org_id: str, *, clock: Callable[[], datetime] | None = None) -> int:
    """Store the demo's memories as they would have come in over the last eighty days, and its erasures between them.

    One transaction, so that an interruption leaves nothing. Returns how many were stored: 0 where the organisation
    already holds something.
    """
    with organisation_transaction(engine, org_id) as connection:
        # Alone with an organisation that holds nothing, so its erasures need no lock of their own.
        locks.await_loads(connection, org_id)
        now = clock() if clock else organisations.moment(connection)
        if organisations.figures(connection, org_id, now=now):
            return 0
        stored = 0
        events: list[DemoMemory | DemoErasure] = [*demo_memories(now=now), *demo_erasures(now=now)]
        events.sort(key=_moment)
        for (_, is_memory), group in groupby(
            events, key=lambda one: (_moment(one).date(), isinstance(one, DemoMemory))
        ):
            together = list(group)
            if is_memory:
                drafts = [_draft(one) for one in together if isinstance(one, DemoMemory)]
                at = _moment(together[-1])
                written = write(connection, org_id, drafts, clock=lambda at=at: at, refused=_refuse)  # type: ignore[misc]
                stored += written.stored
                continue
            for erasure in together:
                if isinstance(erasure, DemoErasure):
                    erase_within(
                        connection,
                        org_id,
                        erasure.subject,
                        by=erasure.by,
                        reason=erasure.reason,
                        now=erasure.at,
                    )
        return stored


def seed_requests(engine: Engine, org_id: str, *, clock: Callable[[], datetime] | None = None) -> int:
    """Enter the demo's rights requests, where the register is empty; returns how many."""
    register = Register(engine, org_id, by="user:ines", clock=clock)
    if register.every():
        return 0
    with organisation_transaction(engine, org_id) as connection:
        today = (clock() if clock else organisations.moment(connection)).date()
    letters = demo_letters(today=today)
    for letter in letters:
        request = register.register(
            letter.right,
            asked_by=letter.asked_by,
            channel=letter.channel,
            received_on=letter.received_on,
            subject=letter.subject,
        )
        if letter.identity:
            register.confirm_identity(request, letter.identity)
    return len(letters)


def _moment(event: DemoMemory | DemoErasure) -> datetime:
    return event.created_at if isinstance(event, DemoMemory) else event.at


def _draft(one: DemoMemory) -> Draft:
    return Draft(
        text=one.text,
        kind=one.kind,
        origin=one.origin,
        author=one.author,
        run_id=one.run_id,
        subject=one.subject,
        source=one.source,
        created_at=one.created_at,
        expires_at=one.expires_at,
    )


def _refuse(position: int, refusal: Refusal) -> None:
    raise Refused(refusal, position=position)
