"""Showing once more what a recall showed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Engine

from memory_core.db import organisations, recalls, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Block, RecallMode
from memory_core.prompt.block import rebuilt_block
from memory_core.restoring import RestoreWatch
from memory_core.veil import veil


def shown_again(
    engine: Engine,
    org_id: str,
    recall_id: UUID,
    *,
    by: str,
    folder: Path,
    clock: Callable[[], datetime] | None = None,
    key: bytes | None = None,
) -> Block | None:
    """Return the block that a recall showed, rebuilt from its disclosures; None where it showed none, or nothing is left.

    The look is a line of the trail. With a session's `key`, persons stand under its pseudonyms where the organisation
    requires that of previews. Raises `Refused` for a recall that is none of the organisation's, or `Restored`.
    """
    if refused := identifier_refusal(by, field="by"):
        raise Refused(refused)
    facts = None
    if isinstance(recall_id, UUID):
        with organisation_transaction(engine, org_id) as connection:
            RestoreWatch(org_id, folder).require_sound(connection)
            now = clock() if clock else organisations.moment(connection)
            facts, in_places = recalls.shown(connection, org_id, recall_id, now=now)
            if in_places:
                pseudonyms = veil(connection, org_id, key)
                if pseudonyms:
                    in_places = dict(zip(in_places, pseudonyms.memories([*in_places.values()]), strict=True))
                trail.record(
                    connection,
                    org_id,
                    by=by,
                    act="look at recall",
                    reference=str(recall_id),
                    count=len(in_places),
                    now=now if clock else None,
                )
    if facts is None:
        raise Refused(Refusal(rule="recall_exists", field="recall_id", reason="is no recall of this organisation"))
    if facts.boundary is None or not in_places:
        return None
    return rebuilt_block(
        [*in_places.values()],
        places=[*in_places],
        boundary=facts.boundary,
        mode=RecallMode(facts.mode),
        reason=facts.reason,
        omitted=facts.omitted,
    )
