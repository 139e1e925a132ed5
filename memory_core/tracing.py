"""Reading runs from their records: which there are, or one whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row

from memory_core.config import Settings
from memory_core.db import agent_runs, database, disclosed, organisations, recalls, subjects, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Purpose, Ranking, RecallMode, State, Subject
from memory_core.prompt.block import rebuilt_block
from memory_core.prompt.pseudonyms import Pseudonyms
from memory_core.restoring import RestoreWatch
from memory_core.run_records import FoundRun
from memory_core.run_trace import RecallTrace, RunTrace, written_at
from memory_core.veil import veil

LOOK = "look at run"
NAMES_SOMEBODY = "names somebody, and this organisation requires pseudonyms; a data protection officer can open it"
MOST_RECALLS = 100  # that are rebuilt at once; a run of this product's own loop makes a few
MOST_LINES = 50  # of the trail that one look leaves, one for each subject; of more subjects it is one line in all


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
        pseudonyms = veil(connection, org_id, key)
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
    previews. Raises `Refused` where nothing is known of the run id, or it names somebody who is to stand under one;
    `Restored` while the database is behind its ledger; or another error of the database with what to do.
    """
    if refused := identifier_refusal(org_id, field="org_id") or identifier_refusal(by, field="by"):
        raise Refused(refused)
    if identifier_refusal(run_id, field="run_id"):
        raise _unknown()
    engine, watch = database.usable_engine(settings), RestoreWatch(org_id, settings.ledger_folder)
    with organisation_transaction(engine, org_id) as connection:
        watch.require_sound(connection)
        now = clock() if clock else organisations.moment(connection)
        pseudonyms = veil(connection, org_id, key)
        if pseudonyms and pseudonyms.names_in([run_id]) != [None]:  # whether there is such a run or not
            raise Refused(Refusal(rule="run_id_names_nobody", field="run_id", reason=NAMES_SOMEBODY))
        found = _trace(connection, org_id, run_id, now=now, page=page)
        if not (found.facts or found.recalls or found.written or found.model_calls):
            raise _unknown()
        looked_at = Counter(one.subject for one in found.every_text().values())
        if key is None:
            theirs = [subject for subject in {one.subject for one in (*found.shown, *found.written)} if subject]
            named = subjects.named(connection, org_id, theirs) if theirs else []
            found = replace(found, names={one: one for one in named})
        elif pseudonyms:
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
    _, in_places = recalls.shown(connection, org_id, row.recall_id, now=now)
    places, memories = tuple(in_places), tuple(in_places.values())
    mode = RecallMode(row.mode)
    block = None
    if row.boundary is not None and memories:
        block = rebuilt_block(
            memories, places=places, boundary=row.boundary, mode=mode, reason=row.reason, omitted=row.omitted
        )
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
        memories=memories,
        places=places,
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
            memories,
            places=one.places,
            boundary=one.block.boundary,
            mode=one.mode,
            reason=one.reason,
            omitted=one.block.omitted,
        )
        because = one.because and pseudonyms.hidden(one.because)
        recalls_seen.append(replace(one, memories=memories, block=block, because=because))
    facts = run.facts and replace(run.facts, documents=tuple(map(pseudonyms.hidden, run.facts.documents)))
    shown = tuple(islice(seen, len(run.shown)))
    return replace(run, recalls=tuple(recalls_seen), shown=shown, written=tuple(seen), facts=facts)
