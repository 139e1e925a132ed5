"""Queries on evaluations: what is tried, and what became of each trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, bindparam, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_core.characters import has_surrogate
from memory_core.db import organisations
from memory_core.db.tables import INSTANT, evaluation, evaluation_result
from memory_core.evaluations import Aspect, CaseResult, Evaluation, EvaluationStart

# What makes an interrupted evaluation the same.
_SAME = ("model", "digest", "provider", "settings", "suites_hash", "agents", "cases", "trials", "base_seed")
_WITHOUT_TRANSCRIPT = [column for column in evaluation_result.c if column.name != "transcript"]
UNSTORABLE = "\N{REPLACEMENT CHARACTER}"


def begin(
    connection: Connection, org_id: str, evaluation_id: UUID, start: EvaluationStart, *, now: datetime | None
) -> None:
    """Record that an evaluation begins."""
    organisations.enter(connection, org_id)
    connection.execute(
        insert(evaluation).values(
            org_id=org_id, evaluation_id=evaluation_id, by=start.by, started_at=_moment(now), **_what(start)
        )
    )


def unfinished(connection: Connection, org_id: str, start: EvaluationStart) -> UUID | None:
    """Return the newest evaluation without an end that is the same in everything but who asked for it."""
    alike = [
        evaluation.c[name].is_not_distinct_from(literal(value, evaluation.c[name].type))
        for name, value in _what(start).items()
    ]
    return connection.scalar(
        select(evaluation.c.evaluation_id)
        .where(evaluation.c.org_id == org_id, evaluation.c.ended_at.is_(None), *alike)
        .order_by(evaluation.c.started_at.desc(), evaluation.c.evaluation_id.desc())
        .limit(1)
    )


def recorded(connection: Connection, org_id: str, evaluation_id: UUID) -> set[tuple[str, str, int]]:
    """Return the agent, case and trial of every result that is on record."""
    result = evaluation_result.c
    rows = connection.execute(select(result.agent, result.case_id, result.trial).where(*_of(org_id, evaluation_id)))
    return {(row.agent, row.case_id, row.trial) for row in rows}


def add(connection: Connection, org_id: str, evaluation_id: UUID, result: CaseResult, *, now: datetime | None) -> None:
    """Record what became of one trial; one that is on record already stays as it is.

    What JSON in the database cannot hold of a transcript (a NUL, half a surrogate pair) is kept as U+FFFD.
    """
    connection.execute(
        insert(evaluation_result)
        .values(
            org_id=org_id,
            evaluation_id=evaluation_id,
            agent=result.agent,
            case_id=result.case_id,
            trial=result.trial,
            kind=result.kind,
            seed=result.seed,
            termination=str(result.termination),
            infrastructure=result.infrastructure,
            aspects={aspect.value: stands for aspect, stands in result.aspects.items()},
            passed=result.passed,
            turns=result.turns,
            tool_calls=result.tool_calls,
            took_ms=result.took_ms,
            transcript=_storable(result.transcript),
            at=_moment(now),
        )
        .on_conflict_do_nothing()
    )


def end(connection: Connection, org_id: str, evaluation_id: UUID, *, now: datetime | None) -> bool:
    """Record that an evaluation is whole; returns whether it had no end."""
    return bool(
        connection.execute(
            update(evaluation)
            .where(
                evaluation.c.org_id == org_id,
                evaluation.c.evaluation_id == evaluation_id,
                evaluation.c.ended_at.is_(None),
            )
            .values(ended_at=func.greatest(evaluation.c.started_at, _moment(now)))
        ).rowcount
    )


def listed(
    connection: Connection, org_id: str, *, limit: int = 200, evaluation_id: UUID | None = None
) -> list[Evaluation]:
    """Return evaluations with how many trials of each are on record, newest first; or the one that is asked for."""
    wanted = [] if evaluation_id is None else [evaluation.c.evaluation_id == evaluation_id]
    trials = (
        select(func.count())
        .select_from(evaluation_result)
        .where(evaluation_result.c.org_id == org_id, evaluation_result.c.evaluation_id == evaluation.c.evaluation_id)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(evaluation, trials.label("recorded"))
        .where(evaluation.c.org_id == org_id, *wanted)
        .order_by(evaluation.c.started_at.desc(), evaluation.c.evaluation_id.desc())
        .limit(limit)
    )
    return [
        Evaluation(
            evaluation_id=row.evaluation_id,
            model=row.model,
            digest=row.digest,
            provider=row.provider,
            settings=row.settings,
            suites_hash=row.suites_hash,
            agents=tuple(row.agents),
            cases=row.cases,
            trials=row.trials,
            base_seed=row.base_seed,
            by=row.by,
            started_at=row.started_at,
            ended_at=row.ended_at,
            recorded=row.recorded,
        )
        for row in rows
    ]


def results(connection: Connection, org_id: str, evaluation_id: UUID) -> list[CaseResult]:
    """Return what is on record of an evaluation by agent, case and trial, without the transcripts."""
    result = evaluation_result.c
    rows = connection.execute(
        select(*_WITHOUT_TRANSCRIPT)
        .where(*_of(org_id, evaluation_id))
        .order_by(result.agent, result.case_id, result.trial)
    )
    return [
        CaseResult(
            agent=row.agent,
            case_id=row.case_id,
            kind=row.kind,
            trial=row.trial,
            seed=row.seed,
            termination=row.termination,
            infrastructure=row.infrastructure,
            aspects={aspect: row.aspects[aspect.value] for aspect in Aspect if aspect.value in row.aspects},
            passed=row.passed,
            turns=row.turns,
            tool_calls=row.tool_calls,
            took_ms=row.took_ms,
            transcript=(),
        )
        for row in rows
    ]


def pass_counts(connection: Connection, org_id: str, evaluation_ids: Iterable[UUID]) -> dict[UUID, tuple[int, int]]:
    """Return how many trials of each evaluation passed, of how many that were judged; nothing of one without trials."""
    result = evaluation_result.c
    rows = connection.execute(
        select(
            result.evaluation_id,
            func.count().filter(result.passed).label("passed"),
            func.count(result.passed).label("judged"),
        )
        .where(result.org_id == org_id, result.evaluation_id.in_(list(evaluation_ids)))
        .group_by(result.evaluation_id)
    )
    return {row.evaluation_id: (row.passed, row.judged) for row in rows}


def transcript(
    connection: Connection, org_id: str, evaluation_id: UUID, agent: str, case_id: str, trial: int
) -> list[dict[str, Any]]:
    """Return what was said in one trial; nothing where it is not on record."""
    result = evaluation_result.c
    said = connection.scalar(
        select(result.transcript).where(
            *_of(org_id, evaluation_id), result.agent == agent, result.case_id == case_id, result.trial == trial
        )
    )
    return list(said or ())


def _storable(value: Any) -> Any:
    """Return a value of JSON as the database can hold it."""
    if isinstance(value, str):
        if "\x00" not in value and not has_surrogate(value):
            return value
        return "".join(UNSTORABLE if one == "\x00" or has_surrogate(one) else one for one in value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {_storable(name): _storable(one) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [_storable(one) for one in value]
    return value


def _what(start: EvaluationStart) -> dict[str, Any]:
    return {name: _plain(getattr(start, name)) for name in _SAME}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _of(org_id: str, evaluation_id: UUID) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return evaluation_result.c.org_id == org_id, evaluation_result.c.evaluation_id == evaluation_id


def _moment(now: datetime | None) -> ColumnElement[datetime]:
    return func.coalesce(bindparam("now", now, type_=INSTANT), func.clock_timestamp())
