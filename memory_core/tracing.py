"""What a run was shown, did and wrote, put together from its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row

from memory_core.config import Settings
from memory_core.db import agent_runs, database, disclosed, organisations, recalls, subjects, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Block, Memory, Purpose, Ranking, RecallMode, State, Subject
from memory_core.prompt.block import rebuilt_block
from memory_core.prompt.pseudonyms import Pseudonyms
from memory_core.restoring import RestoreWatch
from memory_core.run_records import CallOutcome, FoundRun, ModelCallFacts, RunFacts, ToolCallFacts
from memory_core.veil import veil

LOOK = "look at run"
NAMES_SOMEBODY = "names somebody, and this organisation requires pseudonyms; a data protection officer can open it"
MOST_RECALLS = 100  # that are rebuilt at once; a run of this product's own loop makes a few
MOST_LINES = 50  # of the trail that one look leaves, one for each subject; of more subjects it is one line in all


class Since(StrEnum):
    """What has become of a memory since a run was shown it or wrote it."""

    CORRECTED = "corrected"  # its text went, and another memory has taken its place
    ERASED = "erased"
    SWEPT = "swept"
    RESTRICTED = "restricted"
    DISPUTED = "disputed"


@dataclass(frozen=True, kw_only=True)
class RecallTrace:
    """What one recall showed, rebuilt from its disclosures: a memory that was erased since stands as its tombstone's line."""

    recall_id: UUID
    at: datetime
    purpose: Purpose
    mode: RecallMode
    reason: str | None  # why it is not semantic
    ranking: Ranking
    by: str | None  # who looked, and why, where it was a preview and they said so
    because: str | None
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
    recalls: tuple[RecallTrace, ...]  # oldest first, previews among them; of very many one page
    older_recalls: int  # that were made before those, and are left out
    written: tuple[Memory, ...]
    calls: tuple[ToolCallFacts, ...]
    model_calls: tuple[ModelCallFacts, ...]
    newer_recalls: int = 0  # that were made after those, and are left out
    shown: tuple[Memory, ...] = ()  # each that it was shown in any recall, once; what a preview showed is none of it
    recalled_from: datetime | None = None  # its first recall of all; None: it made none, whatever a person previewed
    recalled_until: datetime | None = None
    corrections: Mapping[UUID, UUID] = field(default_factory=dict)  # of what it was shown or wrote: what took its place
    disputed: frozenset[UUID] = frozenset()  # … which ones a dispute stands beside that it was not shown
    names: Mapping[Subject, Subject] = field(default_factory=dict)  # with their labels, for whoever may see those

    @property
    def with_text(self) -> int:
        """How many memories this has the text of, those of its previews among them."""
        return len(self._with_text())

    def _with_text(self) -> dict[UUID, Memory]:
        every = (*self.shown, *self.written, *(one for recall in self.recalls for one in recall.memories))
        return {one.memory_id: one for one in every if one.text is not None}

    @property
    def text_of(self) -> frozenset[UUID]:
        """Which memories this has the text of."""
        return frozenset(self._with_text())

    @property
    def since(self) -> dict[Since, int]:
        """How many of the memories that it was shown are not as they were; each change that there is."""
        return self._changes(self.shown)

    @property
    def written_since(self) -> dict[Since, int]:
        """How many of the memories that it wrote are not as they were; each change that there is."""
        return self._changes(self.written)

    def changed(self, memory: Memory) -> tuple[Since, ...]:
        """Say what has become of a memory since."""
        identity = memory.memory_id
        found = {
            Since.CORRECTED: identity in self.corrections,
            Since.ERASED: memory.state is State.FORGOTTEN and identity not in self.corrections,
            Since.SWEPT: memory.state is State.SWEPT,
            Since.RESTRICTED: memory.state is State.RESTRICTED,
            Since.DISPUTED: memory.text is not None and identity in self.disputed,
        }
        return tuple(change for change, is_so in found.items() if is_so)

    def _changes(self, memories: Iterable[Memory]) -> dict[Since, int]:
        counted = Counter(change for one in memories for change in self.changed(one))
        return {change: counted[change] for change in Since if change in counted}

    @property
    def began_at(self) -> datetime:
        """The first moment that is known of it."""
        known = [one.started_at for one in self.model_calls] + [*filter(None, [self.recalled_from])]
        known += [self.written_at(one) for one in self.written]
        if not known and self.is_preview:
            known = [one.at for one in self.recalls]
        return self.facts.started_at if self.facts else min(known, default=self.at)

    @property
    def ended_at(self) -> datetime | None:
        """The moment of its end; the last one that is known where other software ran it, None where an end is to come."""
        if self.facts:
            return self.facts.ended_at
        known = [one.ended_at or one.started_at for one in self.model_calls] + [*filter(None, [self.recalled_until])]
        known += [self.written_at(one) for one in self.written]
        known += [one.last_seen_at for one in self.written if one.last_seen_run_id == self.run_id]
        return max(known, default=None)

    def written_at(self, memory: Memory) -> datetime:
        """Return when the run first wrote or said one of its memories."""
        return written_at(memory, run_id=self.run_id, calls=self.calls)

    @property
    def is_preview(self) -> bool:
        """Whether a person looked at what a model would be shown, and that was all."""
        made = self.recalled_from or self.facts or self.written or self.model_calls
        return bool(self.recalls) and not made

    def about(self) -> list[About]:
        """Return whom what it was shown and wrote is about: who is most in it first, what is about nobody last."""
        shown, written = ({one.memory_id: one for one in some} for some in (self.shown, self.written))
        both = {**shown, **written}
        found = []
        for subject in {one.subject: None for one in both.values()}:
            theirs = {memory_id for memory_id, one in both.items() if one.subject == subject}
            found.append(
                About(
                    subject=None if subject is None else self.names.get(subject, subject),
                    shown=len(theirs & shown.keys()),
                    wrote=len(theirs & written.keys()),
                    with_text=sum(both[memory_id].text is not None for memory_id in theirs),
                )
            )
        return sorted(found, key=lambda one: (one.subject is None, -one.shown - one.wrote, str(one.subject)))


def written_at(memory: Memory, *, run_id: str, calls: Iterable[ToolCallFacts]) -> datetime:
    """Return when a run first wrote or said a memory, as far as that is on record.

    A memory knows only its first run and its last one: of those between them a tool call has the moment.
    """
    if memory.run_id == run_id:
        return memory.created_at
    by_call = (one.ended_at for one in calls if one.memory_id == memory.memory_id)
    return min(by_call, default=memory.last_seen_at)


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
    key: bytes | None = None,
    settings: Settings,
) -> list[FoundRun]:
    """Return the runs in whose id stands what was typed, newest first, also those that other software made.

    What only calls to the model name as a run is found by its id alone, and not among all. `agent` and `termination`
    (`running`: without an end) are of this product's own loop only. With a session's `key`, a run whose id names somebody
    is not found by that, and stands under a pseudonym, where the organisation requires that of previews. Raises a
    `DatabaseError` or an `EmbeddedServerError`, each with what to do.
    """
    if not isinstance(typed, str):
        raise Refused(Refusal(rule="run_id_is_text", field="typed", reason="must be a string"))
    wanted = typed.strip()
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        find = partial(agent_runs.found, connection, org_id, wanted, agent=agent, termination=termination)
        pseudonyms = veil(connection, org_id, key) if key else None
        if pseudonyms is None:
            return find(limit=limit)
        if wanted:
            return _naming_nobody(find, pseudonyms, limit)
        found = find(limit=limit)
    return [
        one if name is None else replace(one, run_id=name, is_veiled=True)
        for one, name in zip(found, _names_in(found, pseudonyms), strict=True)
    ]


def _naming_nobody(find: Callable[..., list[FoundRun]], pseudonyms: Pseudonyms, limit: int) -> list[FoundRun]:
    """Return the first runs whose id names nobody, however many there are before them whose id does."""
    kept: list[FoundRun] = []
    last, at_once = None, limit
    while len(kept) < limit:
        found = find(limit=at_once, after=last)
        names = _names_in(found, pseudonyms)
        kept += [one for one, name in zip(found, names, strict=True) if name is None]
        if len(found) < at_once:
            break
        last, at_once = found[-1], 2 * at_once
    return kept[:limit]


def _names_in(found: Sequence[FoundRun], pseudonyms: Pseudonyms) -> list[str | None]:
    return pseudonyms.names_in([one.run_id for one in found])


def agents_on_record(org_id: str, *, settings: Settings) -> list[str]:
    """Return the names of the agents of which a run is on record."""
    with organisation_transaction(database.usable_engine(settings), org_id) as connection:
        return agent_runs.agents(connection, org_id)


def trace(
    org_id: str,
    run_id: str,
    *,
    by: str,
    settings: Settings,
    key: bytes | None = None,
    clock: Callable[[], datetime] | None = None,
    on_record: bool = True,
    page: int = 1,
) -> RunTrace:
    """Return all that is on record of a run; where that has any memory's text, the look is on the trail.

    That is one line for each subject whose text it has, and one without a subject where they are many. It is left out only
    where it is not `on_record`, as when the same visitor's open page is drawn again. Of more than a hundred recalls the
    newest are rebuilt, or those of a later `page`; what is counted is of them all.

    `by` is who looks. With a session's `key`, persons stand under its pseudonyms where the organisation requires that of
    previews. Raises `Refused` where nothing is known of the run id, or it names somebody who is to stand under one,
    `Restored` while the database is behind its
    ledger, or another error of the database with what to do.
    """
    if refused := identifier_refusal(org_id, field="org_id") or identifier_refusal(by, field="by"):
        raise Refused(refused)
    if identifier_refusal(run_id, field="run_id"):
        raise _unknown()
    engine, watch = database.usable_engine(settings), RestoreWatch(org_id, settings.ledger_folder)
    with organisation_transaction(engine, org_id) as connection:
        watch.require_sound(connection)
        now = clock() if clock else organisations.moment(connection)
        found = _trace(connection, org_id, run_id, now=now, page=page)
        if not (found.facts or found.recalls or found.written or found.model_calls):
            raise _unknown()
        looked_at = Counter(one.subject for one in found._with_text().values())
        if key is None:
            theirs = [subject for subject in {one.subject for one in (*found.shown, *found.written)} if subject]
            named = subjects.named(connection, org_id, theirs) if theirs else []
            found = replace(found, names={one: one for one in named})
        elif pseudonyms := veil(connection, org_id, key):
            if pseudonyms.names_in([run_id]) != [None]:
                raise Refused(Refusal(rule="run_id_names_nobody", field="run_id", reason=NAMES_SOMEBODY))
            found = _veiled(found, pseudonyms)
        if on_record:
            _record(connection, org_id, run_id, looked_at, by=by, now=found.at if clock else None)
    return found


def _unknown() -> Refused:
    return Refused(Refusal(rule="run_exists", field="run_id", reason="is no run that anything is known of here"))


def _record(
    connection: Connection,
    org_id: str,
    run_id: str,
    looked_at: Counter[Subject | None],
    *,
    by: str,
    now: datetime | None,
) -> None:
    """Leave a line for each subject whose text is looked at, so that whoever asks who looked at theirs finds it."""
    if len(looked_at) > MOST_LINES:
        looked_at = Counter({None: looked_at.total()})
    for subject, count in sorted(looked_at.items(), key=lambda one: (one[0] is None, str(one[0]))):
        trail.record(connection, org_id, by=by, act=LOOK, subject=subject, reference=run_id, count=count, now=now)


def _trace(connection: Connection, org_id: str, run_id: str, *, now: datetime, page: int) -> RunTrace:
    facts = agent_runs.facts(connection, org_id, run_id)
    every = agent_runs.recalls_of(connection, org_id, run_id)
    made_at = [row.at for row in every if row.purpose == Purpose.RUN.value]
    newer = max(0, min(page - 1, (len(every) - 1) // MOST_RECALLS)) * MOST_RECALLS
    until = len(every) - newer
    some = every[max(0, until - MOST_RECALLS) : until]
    to_run = disclosed.to_run(connection, org_id, run_id, now=now)
    written = agent_runs.written(connection, org_id, run_id, now=now)
    calls = agent_runs.calls(connection, org_id, run_id)
    both = [*(one for one, _ in to_run), *written]
    gone = list({one.memory_id for one in both if one.state is State.FORGOTTEN})
    return RunTrace(
        run_id=run_id,
        at=now,
        facts=facts,
        is_cut_off=facts is not None and facts.ended_at is None and facts.deadline_at < now,
        recalls=tuple(_recall(connection, org_id, row, now=now) for row in some),
        older_recalls=until - len(some),
        newer_recalls=newer,
        written=tuple(written),
        calls=tuple(calls),
        model_calls=tuple(agent_runs.model_calls(connection, org_id, run_id)),
        shown=tuple(one for one, _ in to_run),
        recalled_from=min(made_at, default=None),
        recalled_until=max(made_at, default=None),
        corrections=disclosed.corrected(connection, org_id, gone) if gone else {},
        disputed=frozenset(one.memory_id for one, is_disputed in to_run if is_disputed).union(
            one.memory_id
            for one in written
            if one.disputed and one.disputed_at and one.disputed_at > written_at(one, run_id=run_id, calls=calls)
        ),
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
        by=row.by,
        because=row.because,
        showed=row.boundary is not None,
        block=block,
        memories=tuple(memories),
    )


def _veiled(run: RunTrace, pseudonyms: Pseudonyms) -> RunTrace:
    """Put pseudonyms in the place of every real name that is on record of a run."""
    places = [len(one.memories) for one in run.recalls]
    every = [*(one for recall in run.recalls for one in recall.memories), *run.shown, *run.written]
    seen = iter(pseudonyms.memories(every))
    recalls_seen = []
    for one, count in zip(run.recalls, places, strict=True):
        memories = tuple(islice(seen, count))
        block = one.block and rebuilt_block(
            memories, boundary=one.block.boundary, mode=one.mode, reason=one.reason, omitted=one.block.omitted
        )
        because = one.because and pseudonyms.text(one.because)
        recalls_seen.append(replace(one, memories=memories, block=block, because=because))
    facts = run.facts and replace(run.facts, documents=tuple(map(pseudonyms.text, run.facts.documents)))
    shown = tuple(islice(seen, len(run.shown)))
    return replace(run, recalls=tuple(recalls_seen), shown=shown, written=tuple(seen), facts=facts)


def steps(run: RunTrace) -> list[Step]:
    """Return what a run did in the order of time, with how long after its beginning; a preview is no step of it."""
    found = [
        *(_recalled(one) for one in run.recalls if one.purpose is Purpose.RUN),
        *(_asked(one) for one in run.model_calls),
        *(_called(one) for one in run.calls),
    ]
    found.sort(key=lambda one: one["at"])
    known = [run.facts.started_at if run.facts else None, run.recalled_from, *(one["at"] for one in found)]
    start = min(filter(None, known), default=run.at)
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
