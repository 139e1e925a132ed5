"""The recorded results of the tool-calling suites, read for an organisation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from memory_core.config import Settings
from memory_core.db import database
from memory_core.db import evaluations as recorded
from memory_core.db.engine import organisation_transaction
from memory_core.evals.statistics import Interval, wilson
from memory_core.evaluations import CaseResult, Evaluation


def evaluations(org_id: str, *, settings: Settings) -> list[Evaluation]:
    """Return the newest evaluations of an organisation, newest first; raises a `DatabaseError`, as all of these do."""
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return recorded.listed(connection, org_id)


def evaluation(org_id: str, evaluation_id: UUID, *, settings: Settings) -> Evaluation | None:
    """Return one evaluation, or None."""
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return next(iter(recorded.listed(connection, org_id, evaluation_id=evaluation_id)), None)


def results(org_id: str, evaluation_id: UUID, *, settings: Settings) -> list[CaseResult]:
    """Return every trial that is on record of an evaluation, without transcripts; none of one that is not there."""
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return recorded.results(connection, org_id, evaluation_id)


def pass_shares(org_id: str, evaluation_ids: Iterable[UUID], *, settings: Settings) -> dict[UUID, Interval | None]:
    """Return pass@1 of each evaluation; None of one of which no trial was judged."""
    wanted = list(evaluation_ids)
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        counts = recorded.pass_counts(connection, org_id, wanted)
    found: dict[UUID, Interval | None] = {}
    for one in wanted:
        passed, judged = counts.get(one, (0, 0))
        found[one] = wilson(passed, judged) if judged else None
    return found


def transcript(
    org_id: str, evaluation_id: UUID, *, agent: str, case_id: str, trial: int, settings: Settings
) -> list[dict[str, Any]]:
    """Return what was said in one trial, in order; nothing of one that is not there."""
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return recorded.transcript(connection, org_id, evaluation_id, agent, case_id, trial)
