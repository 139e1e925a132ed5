"""What a run was shown, did and wrote, put together from its records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row

from memory_core.config import Settings
from memory_core.db import agent_runs, database, organisations, recalls, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Block, Memory, Purpose, Ranking, RecallMode, State, Subject
from memory_core.prompt.block import rebuilt_block
from memory_core.restoring import RestoreWatch
from memory_core.run_records import CallOutcome, FoundRun, ModelCallFacts, RunFacts, ToolCallFacts

LOOK = "look at run"
MOST_RECALLS = 100  # that are rebuilt; a run of this product's own loop makes a few


@dataclass(frozen=True, kw_only=True)
class RecallTrace:
    """What one recall showed, rebuilt from its disclosures: a memory that was erased since stands as its tombstone's line."""

    recall_id: UUID
    at: datetime
    purpose: Purpose
    mode: RecallMode
    reason: str | None  # why it is not semantic
    ranking: Ranking
    showed: bool  # whether there was a block
    block: Block | None  # None also where its tombstones are gone by now, after their retention
    memories: tuple[Memory, ...]  # in their places, each as it stands now, with a dispute only if that was shown


@dataclass(frozen=True, kw_only=True)
class About:
    """What a run was shown and wrote about one subject, or about nobody."""

    subject: Subject | None
    shown: int  # memories
    wrote: int
    with_text: int  # of them all, the ones that have their text


@dataclass(frozen=True, kw_only=True)
class RunTrace:
    """All that is on record of one run."""

    run_id: str
    at: datetime  # when it was put together
    facts: RunFacts | None  # None: it was not run by this product's loop
    is_cut_off: bool  # it has no end and its deadline is past: its process was killed
    recalls: tuple[RecallTrace, ...]  # oldest first
    older_recalls: int  # that were made before those, and are left out
    written: tuple[Memory, ...]
    calls: tuple[ToolCallFacts, ...]
    model_calls: tuple[ModelCallFacts, ...]

    @property
    def shown(self) -> tuple[Memory, ...]:
        """Each memory that was shown, once."""
        return tuple({one.memory_id: one for recall in self.recalls for one in recall.memories}.values())

    @property
    def with_text(self) -> int:
        """How many memories this shows the text of."""
        return len({one.memory_id for one in (*self.shown, *self.written) if one.text is not None})

    @property
    def since(self) -> dict[State, int]:
        """How many of the memories that were shown have been forgotten, swept or restricted since; each that there is."""
        states = [one.state for one in self.shown]
        away = (State.FORGOTTEN, State.SWEPT, State.RESTRICTED)
        return {state: states.count(state) for state in away if state in states}

    @property
    def began_at(self) -> datetime:
        """The first moment that is known of it."""
        known = [one.at for one in self.recalls] + [one.started_at for one in self.model_calls]
        known += [one.created_at if one.run_id == self.run_id else one.last_seen_at for one in self.written]
        return self.facts.started_at if self.facts else min(known, default=self.at)

    @property
    def ended_at(self) -> datetime | None:
        """The moment of its end; the last one that is known where other software ran it, None where an end is to come."""
        if self.facts:
            return self.facts.ended_at
        known = [one.at for one in self.recalls] + [one.ended_at or one.started_at for one in self.model_calls]
        return max(known, default=None)

    @property
    def is_preview(self) -> bool:
        """Whether a person looked at what a model would be shown, and that was all."""
        purposes = {one.purpose for one in self.recalls}
        return purposes == {Purpose.PREVIEW} and not (self.facts or self.written or self.model_calls)

    def about(self) -> list[About]:
        """Return whom what it was shown and wrote is about: who is most in it first, what is about nobody last."""
        shown, written = ({one.memory_id: one for one in some} for some in (self.shown, self.written))
        both = {**shown, **written}
        found = []
        for subject in {one.subject: None for one in both.values()}:
            theirs = {memory_id for memory_id, one in both.items() if one.subject == subject}
            found.append(
                About(
                    subject=subject,
                    shown=len(theirs & shown.keys()),
                    wrote=len(theirs & written.keys()),
                    with_text=sum(both[memory_id].text is not None for memory_id in theirs),
                )
            )
        return sorted(found, key=lambda one: (one.subject is None, -one.shown - one.wrote, str(one.subject)))


class StepKind(StrEnum):
    """What a run does at a moment."""

    RECALL = "recall"
    MODEL = "model call"
    TOOL = "tool call"


class Standing(StrEnum):
    """What a step came to, in short."""

    DONE = "done"
    FAILED = "failed"
    UNFINISHED = "not finished"  # no end is on record, or it was never begun


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that a run did, in its place of time."""

    kind: StepKind
    name: str | None  # the model, the tool or the ranking; None: a tool that was not offered
    at: datetime  # when it began
    since_ms: float  # … after the first of all
    took_ms: float | None  # None: not measured, or without an end
    outcome: str  # in our own words, or as the gateway's code
    standing: Standing
    prompt_tokens: int | None = None
    output_tokens: int | None = None


def found_runs(
    org_id: str,
    typed: str = "",
    *,
    agent: str | None = None,
    termination: str | None = None,
    limit: int = 100,
    settings: Settings,
) -> list[FoundRun]:
    """Return the runs in whose id stands what was typed, newest first, also those that other software made.

    What only calls to the model name as a run is found by its id alone, and not among all. `agent` and `termination`
    (`running`: without an end) are of this product's own loop only. Raises a `DatabaseError` or an `EmbeddedServerError`,
    each with what to do.
    """
    if not isinstance(typed, str):
        raise Refused(Refusal(rule="run_id_is_text", field="typed", reason="must be a string"))
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return agent_runs.found(connection, org_id, typed.strip(), agent=agent, termination=termination, limit=limit)


def agents_on_record(org_id: str, *, settings: Settings) -> list[str]:
    """Return the names of the agents of which a run is on record."""
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return agent_runs.agents(connection, org_id)


def trace(
    org_id: str, run_id: str, *, by: str, settings: Settings, clock: Callable[[], datetime] | None = None
) -> RunTrace:
    """Return all that is on record of a run; where that has any memory's text, the look is a line of the trail.

    `by` is who looks. Raises `Refused` where nothing is known of the run id, `Restored` while the database is behind its
    ledger, or another error of the database with what to do.
    """
    if refused := identifier_refusal(org_id, field="org_id") or identifier_refusal(by, field="by"):
        raise Refused(refused)
    if identifier_refusal(run_id, field="run_id"):
        raise _unknown()
    engine, watch = database.usable_engine(settings), RestoreWatch(org_id, settings.ledger_folder)
    with organisation_transaction(engine, org_id) as connection:
        watch.require_sound(connection)
        found = _trace(connection, org_id, run_id, now=clock() if clock else organisations.moment(connection))
        if not (found.facts or found.recalls or found.written or found.model_calls):
            raise _unknown()
        if found.with_text:
            trail.record(
                connection,
                org_id,
                by=by,
                act=LOOK,
                reference=run_id,
                count=found.with_text,
                now=found.at if clock else None,
            )
    return found


def _unknown() -> Refused:
    return Refused(Refusal(rule="run_exists", field="run_id", reason="is no run that anything is known of here"))


def _trace(connection: Connection, org_id: str, run_id: str, *, now: datetime) -> RunTrace:
    facts = agent_runs.facts(connection, org_id, run_id)
    every = agent_runs.recalls_of(connection, org_id, run_id)
    return RunTrace(
        run_id=run_id,
        at=now,
        facts=facts,
        is_cut_off=facts is not None and facts.ended_at is None and facts.deadline_at < now,
        recalls=tuple(_recall(connection, org_id, row, now=now) for row in every[-MOST_RECALLS:]),
        older_recalls=max(0, len(every) - MOST_RECALLS),
        written=tuple(agent_runs.written(connection, org_id, run_id, now=now)),
        calls=tuple(agent_runs.calls(connection, org_id, run_id)),
        model_calls=tuple(agent_runs.model_calls(connection, org_id, run_id)),
    )


def _recall(connection: Connection, org_id: str, row: Row[Any], *, now: datetime) -> RecallTrace:
    _, memories = recalls.shown(connection, org_id, row.recall_id, now=now)
    mode = RecallMode(row.mode)
    block = None
    if row.boundary is not None and memories:
        block = rebuilt_block(memories, boundary=row.boundary, mode=mode, reason=row.reason, omitted=row.omitted)
    return RecallTrace(
        recall_id=row.recall_id,
        at=row.at,
        purpose=Purpose(row.purpose),
        mode=mode,
        reason=row.reason,
        ranking=Ranking(row.ranking),
        showed=row.boundary is not None,
        block=block,
        memories=tuple(memories),
    )


def steps(run: RunTrace) -> list[Step]:
    """Return what a run did in the order of time, with how long after its beginning."""
    found = [
        *(_recalled(one) for one in run.recalls),
        *(_asked(one) for one in run.model_calls),
        *(_called(one) for one in run.calls),
    ]
    found.sort(key=lambda one: one["at"])
    start = min([*([run.facts.started_at] if run.facts else []), *(one["at"] for one in found)], default=run.at)
    return [Step(since_ms=(one["at"] - start) / timedelta(milliseconds=1), **one) for one in found]


def _recalled(one: RecallTrace) -> dict[str, Any]:
    count = len(one.memories)
    shown = f"showed {count:,} memor{'y' if count == 1 else 'ies'}" if one.showed else "showed nothing"
    return {
        "kind": StepKind.RECALL,
        "name": one.ranking.value,
        "at": one.at,
        "took_ms": None,
        "outcome": shown,
        "standing": Standing.DONE,
    }


def _asked(one: ModelCallFacts) -> dict[str, Any]:
    standing = Standing.UNFINISHED if one.ended_at is None else Standing.FAILED if one.error_code else Standing.DONE
    return {
        "kind": StepKind.MODEL,
        "name": one.model,
        "at": one.started_at,
        "took_ms": one.total_ms,
        "outcome": one.error_code or one.finish_reason or "no end is on record",
        "standing": standing,
        "prompt_tokens": one.prompt_tokens,
        "output_tokens": one.output_tokens,
    }


def _called(one: ToolCallFacts) -> dict[str, Any]:
    standing = {CallOutcome.DONE: Standing.DONE, CallOutcome.NOT_CARRIED_OUT: Standing.UNFINISHED}
    return {
        "kind": StepKind.TOOL,
        "name": one.tool,
        "at": one.ended_at - timedelta(milliseconds=one.took_ms),
        "took_ms": one.took_ms,
        "outcome": one.outcome.value,
        "standing": standing.get(one.outcome, Standing.FAILED),
    }
