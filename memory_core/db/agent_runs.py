"""Queries on runs of agents: begun, called, ended, and what one run read and wrote."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    LargeBinary,
    Row,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    false,
    func,
    literal,
    null,
    or_,
    select,
    true,
    union,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from memory_core.config import Tier
from memory_core.db.memories import COLUMNS, memory_of
from memory_core.db.tables import INSTANT, agent_call, agent_run, disclosure, memory, model_call, recall
from memory_core.identifiers import identifier_refusal
from memory_core.model import Kind, Memory, Purpose
from memory_core.run_records import (
    RUNNING,
    CallOutcome,
    FoundRun,
    ModelCallFacts,
    RunEnd,
    RunFacts,
    RunStart,
    ToolCallFacts,
    ToolCallRecord,
)

# What a person was shown, in a preview, was not shown to the run.
_BY_THE_RUN = recall.c.purpose == Purpose.RUN.value
_RECALL = (
    recall.c.recall_id,
    recall.c.at,
    recall.c.purpose,
    recall.c.mode,
    recall.c.reason,
    recall.c.ranking,
    recall.c.boundary,
    recall.c.omitted,
    recall.c.by,
    recall.c.because,
)
_MODEL_CALL = (
    model_call.c.call_id,
    model_call.c.model,
    model_call.c.started_at,
    model_call.c.ended_at,
    model_call.c.total_ms,
    model_call.c.first_chunk_ms,
    model_call.c.prompt_tokens,
    model_call.c.output_tokens,
    model_call.c.memory_tokens,
    model_call.c.tool_calls,
    model_call.c.finish_reason,
    model_call.c.error_code,
)


def begin(connection: Connection, org_id: str, start: RunStart, *, now: datetime | None) -> bool:
    """Record that a run begins; returns whether its run id is new, and where it is not leaves the record as it is."""
    known: dict[str, Any] = {
        "org_id": org_id,
        "run_id": start.run_id,
        "agent": start.agent,
        "specification_digest": start.specification_digest,
        "model": start.model,
        "tier": start.tier.value,
        "asked_by": start.asked_by,
        "documents": list(start.documents),
        "turn_limit": start.turn_limit,
        "observations_left_out": start.observations_left_out,
    }
    moment = select(_moment(now).label("began")).subquery("moment")
    until = moment.c.began + func.make_interval(0, 0, 0, 0, 0, 0, start.deadline_s)
    given = [literal(value, agent_run.c[name].type) for name, value in known.items()]
    begun = connection.execute(
        insert(agent_run)
        .from_select([*known, "started_at", "deadline_at"], select(*given, moment.c.began, until))
        .on_conflict_do_nothing(index_elements=["org_id", "run_id"])
        .returning(agent_run.c.run_id)
    )
    return begun.first() is not None


def is_named_elsewhere(connection: Connection, org_id: str, run_id: str) -> bool:
    """Say whether a recall or a memory names a run, also where its beginning is not on record."""
    named = [exists().where(*_of(table, org_id, run_id)) for table in (recall, memory)]
    return bool(connection.scalar(select(or_(*named))))


def called(connection: Connection, org_id: str, run_id: str, call: ToolCallRecord, *, now: datetime | None) -> None:
    """Record a tool call of a run that began; a foreign key refuses one of a run that did not."""
    salt = select(agent_run.c.salt).where(*_of(agent_run, org_id, run_id)).scalar_subquery()
    # As bytes: what a model writes may have a NUL or half a surrogate pair in it, which is no text to PostgreSQL.
    written = literal(call.arguments.encode("utf-8", "surrogatepass"), LargeBinary)
    connection.execute(
        insert(agent_call).values(
            org_id=org_id,
            run_id=run_id,
            number=call.number,
            turn=call.turn,
            tool=call.tool,
            arguments_digest=func.sha256(func.coalesce(salt, literal(b"", LargeBinary)).op("||")(written)),
            outcome=call.outcome.value,
            memory_id=call.memory_id,
            recall_id=call.recall_id,
            ended_at=_moment(now),
            took_ms=call.took_ms,
        )
    )


def end(connection: Connection, org_id: str, run_id: str, ended: RunEnd, *, now: datetime | None) -> bool:
    """Record how a run ended that has no end yet; returns whether that was so."""
    return bool(
        connection.execute(
            update(agent_run)
            .where(*_of(agent_run, org_id, run_id), agent_run.c.ended_at.is_(None))
            .values(
                ended_at=func.greatest(agent_run.c.started_at, _moment(now)),
                termination=str(ended.termination),
                detail=ended.detail,
                turns=ended.turns,
                answer_was_cut=ended.answer_was_cut,
            )
        ).rowcount
    )


def _moment(now: datetime | None) -> ColumnElement[datetime]:
    return func.coalesce(bindparam("now", now, type_=INSTANT), func.clock_timestamp())


def _of(table: Table, org_id: str, run_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.org_id == org_id, table.c.run_id == run_id


def facts(connection: Connection, org_id: str, run_id: str) -> RunFacts | None:
    """Return what is recorded of a run, or None."""
    row = connection.execute(select(agent_run).where(*_of(agent_run, org_id, run_id))).one_or_none()
    if row is None:
        return None
    return RunFacts(
        run_id=row.run_id,
        agent=row.agent,
        specification_digest=row.specification_digest,
        model=row.model,
        tier=Tier(row.tier),
        asked_by=row.asked_by,
        documents=tuple(row.documents),
        turn_limit=row.turn_limit,
        observations_left_out=row.observations_left_out,
        started_at=row.started_at,
        deadline_at=row.deadline_at,
        ended_at=row.ended_at,
        termination=row.termination,
        detail=row.detail,
        turns=row.turns,
        answer_was_cut=row.answer_was_cut,
    )


def calls(connection: Connection, org_id: str, run_id: str) -> list[ToolCallFacts]:
    """Return a run's tool calls, in order."""
    rows = connection.execute(select(agent_call).where(*_of(agent_call, org_id, run_id)).order_by(agent_call.c.number))
    return [
        ToolCallFacts(
            number=row.number,
            turn=row.turn,
            tool=row.tool,
            arguments_digest=row.arguments_digest,
            outcome=CallOutcome(row.outcome),
            ended_at=row.ended_at,
            took_ms=row.took_ms,
            memory_id=row.memory_id,
            recall_id=row.recall_id,
        )
        for row in rows
    ]


def model_calls(connection: Connection, org_id: str, run_id: str) -> list[ModelCallFacts]:
    """Return a run's calls to the model, in the order in which they began."""
    rows = connection.execute(
        select(*_MODEL_CALL)
        .where(*_of(model_call, org_id, run_id))
        .order_by(model_call.c.started_at, model_call.c.call_id)
    )
    return [ModelCallFacts(**row._mapping) for row in rows]


def recalls_of(connection: Connection, org_id: str, run_id: str) -> list[Row[Any]]:
    """Return recall_id, at, purpose, mode, reason, ranking, boundary, omitted, by, because of a run's recalls, oldest first."""
    return list(
        connection.execute(
            select(*_RECALL).where(*_of(recall, org_id, run_id)).order_by(recall.c.at, recall.c.recall_id)
        )
    )


def written(connection: Connection, org_id: str, run_id: str, *, now: datetime) -> list[Memory]:
    """Return the memories that a run wrote or said again, tombstones included, oldest first.

    Also what another run has said again since, where one of the run's tool calls names it.
    """
    again = and_(memory.c.last_seen_run_id == run_id, memory.c.last_seen_run_id != memory.c.run_id)
    which = union(
        select(memory.c.memory_id).where(*_of(memory, org_id, run_id)),
        select(memory.c.memory_id).where(memory.c.org_id == org_id, again),
        select(agent_call.c.memory_id).where(*_of(agent_call, org_id, run_id), agent_call.c.memory_id.is_not(None)),
    )
    rows = connection.execute(
        select(*COLUMNS)
        .where(memory.c.org_id == org_id, memory.c.memory_id.in_(which))
        .order_by(memory.c.created_at, memory.c.memory_id)
    )
    return [memory_of(row, now=now) for row in rows]


def withdrawn(
    connection: Connection,
    org_id: str,
    run_id: str,
    *,
    written: Sequence[UUID] = (),
    kinds: Sequence[Kind] = tuple(Kind),
) -> int:
    """Count the memories that a run was shown, or wrote, that may be shown to it no more, each once.

    Those have been forgotten, swept or restricted since; or the run was shown them, and theirs is none of the `kinds` that it
    may be shown now. It wrote what its tool calls name, and what is `written` by a call that is not on record yet.
    """
    shown, wrote = true().label("was_shown"), false().label("was_shown")
    by_call = and_(*_of(agent_call, org_id, run_id), agent_call.c.memory_id.is_not(None))
    unrecorded = and_(memory.c.org_id == org_id, memory.c.memory_id.in_(list(written)))
    theirs = union(
        _disclosed(org_id, disclosure.c.memory_id, shown).where(recall.c.run_id == run_id),
        select(agent_call.c.memory_id, wrote).where(by_call),
        select(memory.c.memory_id, wrote).where(unrecorded),
    ).subquery("theirs")
    is_gone = or_(memory.c.text.is_(None), memory.c.restricted_at.is_not(None))
    stays = and_(theirs.c.was_shown, memory.c.kind.not_in([kind.value for kind in kinds]))
    return connection.execute(
        select(func.count(memory.c.memory_id.distinct()))
        .select_from(theirs)
        .join(memory, memory.c.memory_id == theirs.c.memory_id)
        .where(memory.c.org_id == org_id, or_(is_gone, stays))
    ).scalar_one()


def _disclosed(org_id: str, *what: ColumnElement[Any]) -> Select[Any]:
    return (
        select(*what)
        .select_from(recall)
        .join(disclosure, and_(disclosure.c.org_id == recall.c.org_id, disclosure.c.recall_id == recall.c.recall_id))
        .where(recall.c.org_id == org_id, disclosure.c.org_id == org_id, _BY_THE_RUN)
    )


def agents(connection: Connection, org_id: str) -> list[str]:
    """Return which agents have run, by their names."""
    return list(
        connection.scalars(
            select(agent_run.c.agent).where(agent_run.c.org_id == org_id).distinct().order_by(agent_run.c.agent)
        )
    )


def found(
    connection: Connection,
    org_id: str,
    typed: str,
    *,
    agent: str | None,
    termination: str | None,
    limit: int,
    after: FoundRun | None = None,
) -> list[FoundRun]:
    """Return the runs in whose id stands what was typed, case aside, newest first; all of them for nothing typed.

    Runs by this product's loop, and what only a recall or a memory names as a run; what only a call to a model does (a
    trial of an evaluation, a chat without memories) is found by its id alone. `agent` and `termination`, or `running`, are
    of the loop's only. With `after` they are those that come after that one.
    """
    if typed and identifier_refusal(typed, field="run_id"):
        return []  # no run's id has that in it
    known = _known(org_id, typed).subquery("known")
    first_at = func.min(known.c.at).label("at")
    of_the_loop = [func.max(known.c[name]).label(name) for name in ("agent", "termination")]
    chosen: list[ColumnElement[bool]] = []
    if agent is not None:
        chosen.append(func.max(known.c.agent) == agent)
    if termination == RUNNING:
        chosen.append(func.bool_or(known.c.runs))
    elif termination is not None:
        chosen.append(func.max(known.c.termination) == termination)
    if after is not None:
        of_one_moment = and_(func.min(known.c.at) == after.at, known.c.run_id > after.run_id)
        chosen.append(or_(func.min(known.c.at) < after.at, of_one_moment))
    newest = (
        select(known.c.run_id, first_at, *of_the_loop)
        .group_by(known.c.run_id)
        .having(and_(true(), *chosen))
        .order_by(first_at.desc(), known.c.run_id)
        .limit(limit)
        .subquery("newest")
    )
    # Of those few alone, each through an index.
    disclosed = _disclosed(org_id, func.count(disclosure.c.memory_id.distinct()))
    shown = disclosed.where(recall.c.run_id == newest.c.run_id).scalar_subquery()
    wrote = (
        select(func.count())
        .select_from(memory)
        .where(memory.c.org_id == org_id, memory.c.run_id == newest.c.run_id)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(newest, shown.label("shown"), wrote.label("wrote")).order_by(newest.c.at.desc(), newest.c.run_id)
    )
    return [FoundRun(**row._mapping) for row in rows]


def _known(org_id: str, typed: str) -> CompoundSelect[Any]:
    # What each table knows of each run, put together by its reader: a join would be planned without knowing how many.
    def of(table: Table, at: ColumnElement[Any]) -> Select[Any]:
        runs = select(table.c.run_id, at.label("at")).where(table.c.org_id == org_id)
        return runs.where(table.c.run_id.ilike(f"%{escaped}%", escape="\\")) if typed else runs

    def named(table: Table, at: ColumnElement[Any]) -> Select[Any]:
        return of(table, func.min(at)).add_columns(*nothing).group_by(table.c.run_id)

    escaped = typed.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    nothing: list[ColumnElement[Any]] = [
        cast(null(), Text).label("agent"),
        cast(null(), Text).label("termination"),
        false().label("runs"),
    ]
    runs = agent_run.c.ended_at.is_(None).label("runs")
    return union_all(
        of(agent_run, agent_run.c.started_at).add_columns(agent_run.c.agent, agent_run.c.termination, runs),
        named(recall, recall.c.at).where(_BY_THE_RUN),
        named(memory, memory.c.created_at),
        *([named(model_call, model_call.c.started_at)] if typed else []),
    )
