"""Filling an organisation with the demo's people, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import groupby

from sqlalchemy import Engine

from memory_core.db import erasures, held, organisations
from memory_core.db.engine import organisation_transaction
from memory_core.demo import DemoErasure, DemoMemory, demo_erasures, demo_memories
from memory_core.errors import Refusal, Refused
from memory_core.identity import new_id
from memory_core.rules.admission import Draft
from memory_core.writing import write


def seed_demo(engine: Engine, org_id: str, *, clock: Callable[[], datetime] | None = None) -> int:
    """Store the demo's memories as they would have come in over the last eighty days, and its erasures between them.

    One transaction, so that an interruption leaves nothing. Returns how many were stored: 0 where the organisation
    already holds something.
    """
    with organisation_transaction(engine, org_id) as connection:
        # Alone with an organisation that holds nothing, so its erasures need no lock of their own.
        erasures.await_loads(connection, org_id)
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
                    held.forget(
                        connection,
                        org_id,
                        erasure.subject,
                        erasure_id=new_id(),
                        by=erasure.by,
                        reason=erasure.reason,
                        now=erasure.at,
                    )
        return stored


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
