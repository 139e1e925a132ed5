"""Previews: what a model would be shown, as an engineer may see it, each a disclosure with who looked and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from memory_core.config import Settings
from memory_core.db import database, rankings
from memory_core.db.engine import organisation_transaction
from memory_core.errors import Refusal, Refused
from memory_core.leaving import what_may_leave
from memory_core.model import Block, Kind, Purpose, Ranking, Recall, Subject
from memory_core.prompt.block import rebuilt_block
from memory_core.prompt.pseudonyms import Pseudonyms
from memory_core.rules.request import MAX_QUERY, recall_request
from memory_core.showing import shown_again
from memory_core.store import MemoryStore
from memory_core.veil import veil


def preview(
    org_id: str,
    query: str,
    *,
    run_id: str,
    by: str,
    because: str,
    key: bytes,
    settings: Settings,
    limit: int = 5,
    token_budget: int | None = None,
    kinds: Iterable[Kind | str] | None = None,
    subject: Subject | None = None,
    ranking: Ranking | str | None = None,
) -> Recall:
    """Return what the configured model would be shown; recorded as a disclosure to `by`, for the reason `because`.

    Where the organisation requires it, persons stand under the pseudonyms of the session whose `key` this is, in the
    question too, of which names are left out; what is recorded is of the real memories. What may not leave to a model
    outside is not shown. Raises `Refused` or a `DatabaseError`.
    """
    engine = database.usable_engine(settings)
    how: dict[str, Any] = {
        "run_id": run_id,
        "limit": limit,
        "token_budget": token_budget,
        "kinds": tuple(kinds) if isinstance(kinds, Iterator) else kinds,  # it is read twice
        "subject": subject,
        "ranking": ranking,
        "purpose": Purpose.PREVIEW,
        "by": by or "",
        "because": because or "",
    }
    with organisation_transaction(engine, org_id) as connection:
        pseudonyms = veil(connection, org_id, key)
        if pseudonyms is not None:
            asked = recall_request(query, **how)
            if isinstance(asked, Refusal):  # before names are left out, by whose length it would say more
                raise Refused(asked)
            query = pseudonyms.question(query, stems=partial(rankings.stems, connection))[:MAX_QUERY]
            how["subject"] = _meant(subject, pseudonyms)
    with MemoryStore.open(org_id, settings=settings) as store:
        leaving = what_may_leave(engine, org_id, settings)
        if leaving.observations_stay:
            how["kinds"] = leaving.kinds_that_may_leave(how["kinds"])
            if not how["kinds"]:
                reason = "are observations only, and the model is outside: the organisation has not let them leave"
                raise Refused(Refusal(rule="observations_stay", field="kinds", reason=reason))
        recall = store.recall(query, **how)
    with organisation_transaction(engine, org_id) as connection:
        pseudonyms = veil(connection, org_id, key)  # again: somebody may have come to be known meanwhile
    return recall if pseudonyms is None else _veiled(recall, pseudonyms)


def _meant(subject: Subject | None, pseudonyms: Pseudonyms) -> Subject | None:
    """Return whom a preview is to be about: a person by a pseudonym; raises `Refused` for one by their own id."""
    if not isinstance(subject, Subject):
        return subject
    person = pseudonyms.person(subject)
    if person is None and pseudonyms.knows(subject):
        reason = "is a person's own, where this organisation requires pseudonyms; use the pseudonym"
        raise Refused(Refusal(rule="persons_stand_under_pseudonyms", field="subject", reason=reason))
    return person or subject


def shown_to(org_id: str, recall_id: UUID, *, by: str, key: bytes, settings: Settings) -> Block | None:
    """Return the block of a recall as it may be seen in the session whose `key` this is; the look is on record."""
    engine = database.usable_engine(settings)
    return shown_again(engine, org_id, recall_id, by=by, folder=settings.ledger_folder, key=key)


def _veiled(recall: Recall, pseudonyms: Pseudonyms) -> Recall:
    seen = pseudonyms.memories([one.memory for one in recall.memories])
    memories = tuple(replace(one, memory=memory) for one, memory in zip(recall.memories, seen, strict=True))
    block = recall.block
    if block is not None:
        block = rebuilt_block(
            [one.memory for one in memories if one.shown],
            boundary=block.boundary,
            mode=recall.mode,
            reason=recall.reason,
            omitted=block.omitted,
        )
    return replace(recall, memories=memories, block=block)
