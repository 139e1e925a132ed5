"""Knowing a database that was restored from a backup by the ledger outside it, which is done again on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.db import (
    erasures,
    held,
    ledger,
    ledger_file,
    locks,
    measures,
    memories,
    organisations,
    subjects,
    trail,
)
from memory_core.db.engine import organisation_transaction
from memory_core.errors import LedgerUnusable, MemoryCoreError, OnHold, Refusal, Refused, Restored
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id
from memory_core.model import Subject
from memory_core.rights import LedgerAct, LedgerEntry, MeasureKind, TrailEntry

REPLAYED = "done again after a restore"
MEASURES = (LedgerAct.HOLD, LedgerAct.RESTRICTION, LedgerAct.SUPPRESSION)
CLOCKS_DIFFER = timedelta(minutes=10)


def copy_out(engine: Engine, org_id: str, folder: Path) -> int:
    """Copy to the ledger outside what only the database has; returns how many entries.

    Raises `LedgerUnusable` or `Refused` where the ledger outside cannot be read or written; nothing is lost by that,
    since the next call copies it.
    """
    with organisation_transaction(engine, org_id) as connection:
        ledger_id = ledger.ledger_id(connection, org_id)
        if ledger_id is None:
            return 0
        path = ledger_file.path_of(folder, ledger_id)
        outside = ledger_file.entries_outside(path, org_id, ledger_id)
        new = ledger.entries(connection, org_id, besides=frozenset(one.entry_id for one in outside))
    return ledger_file.append(path, org_id, ledger_id, new) if new else 0


def try_to_copy_out(engine: Engine, org_id: str, folder: Path) -> bool:
    """Copy out what is not outside yet; returns whether the ledger outside is whole now, and never raises for it."""
    try:
        copy_out(engine, org_id, folder)
    except MemoryCoreError:  # what was done stays done, whatever becomes of its copy: the next call makes it
        return False
    return True


def missing(connection: Connection, org_id: str, folder: Path) -> list[LedgerEntry]:
    """Return what the ledger outside has and this database has not: it was restored from a backup.

    The file is read first: what it has was in the database before. Raises as `copy_out` does.
    """
    ledger_id = ledger.ledger_id(connection, org_id)
    if ledger_id is None:
        return []
    outside, known = _outside_and_inside(connection, org_id, ledger_file.path_of(folder, ledger_id), ledger_id)
    return [one for one in outside if one.entry_id not in known]


def _outside_and_inside(
    connection: Connection, org_id: str, path: Path, ledger_id: UUID
) -> tuple[Sequence[LedgerEntry], set[UUID]]:
    outside = ledger_file.entries_outside(path, org_id, ledger_id)
    return outside, ledger.known(connection, org_id)


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """How the ledger outside stands to the database."""

    path: Path | None  # None: nothing was ever written in the organisation
    missing: int  # entries that the database lacks: it was restored from a backup
    fault: str | None  # why the ledger outside cannot be read or written


class RestoreWatch:
    """Whether one organisation's database is behind its ledger, looked up anew only when either has changed."""

    def __init__(self, org_id: str, folder: Path) -> None:
        self._org_id = org_id
        self._folder = folder
        self._sound: object = None

    def require_sound(self, connection: Connection) -> None:
        """Do what `require_not_behind` does, for a caller who has not asked the database yet."""
        ledger_id, last_entry = ledger.newest(connection, self._org_id)
        self.require_not_behind(connection, ledger_id, last_entry)

    def require_sound_as_far_as_known(self, connection: Connection) -> None:
        """Raise `Restored` where the database is known to be behind: nothing is lost while a ledger cannot be read."""
        with suppress(LedgerUnusable, Refused):
            self.require_sound(connection)

    def require_not_behind(self, connection: Connection, ledger_id: UUID | None, last_entry: UUID | None) -> None:
        """Raise `Restored` where the database lacks what the ledger outside has, or an error where that cannot be read."""
        if ledger_id is None:
            return
        path = ledger_file.path_of(self._folder, ledger_id)
        looked_at = (ledger_id, ledger_file.stamp(path), last_entry)
        if looked_at == self._sound:
            return
        lost = missing(connection, self._org_id, self._folder)
        if lost:
            raise Restored(self._org_id, missing=len(lost), ledger=path)
        self._sound = looked_at


def ledger_state(engine: Engine, org_id: str, folder: Path) -> LedgerState:
    """Say how an organisation's ledger outside stands to its database, after copying out what it lacks."""
    with organisation_transaction(engine, org_id) as connection:
        ledger_id = ledger.ledger_id(connection, org_id)
        if ledger_id is None:
            return LedgerState(path=None, missing=0, fault=None)
        path = ledger_file.path_of(folder, ledger_id)
        try:
            entries, known = _outside_and_inside(connection, org_id, path, ledger_id)
        except (LedgerUnusable, Refused) as error:
            return LedgerState(path=path, missing=0, fault=str(error))
    outside = {one.entry_id for one in entries}
    lost = len(outside - known)
    if known <= outside:
        return LedgerState(path=path, missing=lost, fault=None)
    try:
        copy_out(engine, org_id, folder)
    except MemoryCoreError as error:
        return LedgerState(path=path, missing=lost, fault=str(error))
    return LedgerState(path=path, missing=lost, fault=None)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What a replay did."""

    org_id: str
    entries: int  # that the database did not have
    emptied: int  # memories that came back and are tombstones again
    bad_lines: int  # that were left out
    ledger_is_outside: bool  # whether the ledger outside is whole now


def replay(
    engine: Engine,
    path: Path,
    *,
    folder: Path,
    by: str,
    org_id: str | None = None,
    skip_bad: bool = False,
    clock: Callable[[], datetime] | None = None,
) -> Replayed:
    """Do again, in one transaction, what a ledger has and the database has not.

    Raises `LineRefused` for a bad line (unless it is to be skipped), `Refused` for a ledger of another organisation or
    database, `OnHold` where a hold that was placed meanwhile keeps what has to go; nothing is then done.
    """
    if refused := identifier_refusal(by, field="by"):
        raise Refused(refused)
    found = ledger_file.read(path, skip_bad=skip_bad)
    if org_id is not None and org_id != found.org_id:
        reason = f"is of organisation {found.org_id}, not of {org_id}"
        raise Refused(Refusal(rule="ledger_is_of_the_organisation", field="LEDGER", reason=reason))
    with organisation_transaction(engine, found.org_id) as connection:
        own = ledger.ledger_id(connection, found.org_id)
        if own != found.ledger_id:
            reason = (
                f"is of another database's {found.org_id}: nothing in this one was erased by it"
                if own
                else f"is of organisation {found.org_id}, of which this database has nothing"
            )
            raise Refused(Refusal(rule="ledger_is_of_the_database", field="LEDGER", reason=reason))
        now = clock() if clock else organisations.moment(connection)
        locks.await_loads(connection, found.org_id)
        known = ledger.known(connection, found.org_id)
        lost = [one for one in found.entries if one.entry_id not in known]
        late = {one.entry_id for one in lost if one.at > now + CLOCKS_DIFFER}
        if late and not skip_bad:
            reason = f"has {len(late)} entries of a time that is yet to come; --skip-bad leaves them out"
            raise Refused(Refusal(rule="ledger_is_of_the_past", field="LEDGER", reason=reason))
        lost = [one for one in lost if one.entry_id not in late]
        others = memories.with_text(connection, found.org_id, [each for one in lost for each in one.memory_ids])
        about = {Subject(row.subject_type, row.subject_id) for row in others if row.subject_id is not None}
        locks.await_writes(connection, found.org_id, *about.union(one.subject for one in lost if one.subject))
        emptied, replaced = _done_again(connection, found.org_id, lost, lifted=_lifted(found.entries))
        if lost:
            subjects.clear_unused(connection, found.org_id)
            line = trail.record(
                connection,
                found.org_id,
                by=by,
                act="replay",
                count=len(lost),
                reason=REPLAYED,
                now=now if clock else None,
            )
            for entry in lost:
                again = trail.record(
                    connection,
                    found.org_id,
                    by=by,
                    act=f"{entry.act} again",
                    subject=entry.subject,
                    reference=str(entry.reference) if entry.reference else None,
                    count=len(entry.memory_ids) or None,
                    now=now if clock else None,
                )
                _entered(connection, found.org_id, entry, again)
            for entry in replaced:
                ledger.record(
                    connection,
                    found.org_id,
                    act=LedgerAct.LIFT,
                    line=line,
                    subject=entry.subject,
                    code="replaced",
                    name=entry.name,
                    reference=entry.reference,
                )
            done_again = [one.entry_id for one in lost]
            ledger.record(
                connection,
                found.org_id,
                act=LedgerAct.REPLAY,
                line=line,
                subject=None,
                code="restored",
                memory_ids=done_again,
            )
    here = ledger_file.path_of(folder, found.ledger_id)
    if (found.bad_lines or late) and here.exists() and path.resolve() == here.resolve():
        with suppress(LedgerUnusable):  # what was done again stays done; the damaged file is told of by what follows
            ledger_file.set_aside(here, at=now)
    return Replayed(
        org_id=found.org_id,
        entries=len(lost),
        emptied=emptied,
        bad_lines=len(found.bad_lines) + len(late),
        ledger_is_outside=try_to_copy_out(engine, found.org_id, folder),
    )


def _entered(connection: Connection, org_id: str, entry: LedgerEntry, line: TrailEntry) -> None:
    ledger.record(
        connection,
        org_id,
        act=entry.act,
        line=line,
        subject=entry.subject,
        code=entry.code,
        memory_ids=entry.memory_ids,
        name=entry.name,
        reference=entry.reference,
        entry_id=entry.entry_id,
        at=entry.at,
        by=entry.by,
    )


def _lifted(entries: Sequence[LedgerEntry]) -> dict[UUID | None, LedgerEntry]:
    return {one.reference: one for one in entries if one.act is LedgerAct.LIFT}


def _done_again(
    connection: Connection, org_id: str, lost: Sequence[LedgerEntry], *, lifted: Mapping[UUID | None, LedgerEntry]
) -> tuple[int, list[LedgerEntry]]:
    """Lift what was lifted, empty what was emptied, place what stands yet: as it came to be, and not step by step.

    Returns how many memories were emptied, and the measures in whose place somebody has put another since the restore.
    """
    emptied, replaced = 0, []
    for entry in lost:
        if entry.act is LedgerAct.LIFT:
            _lifted_again(connection, org_id, entry)
    for entry in lost:
        if entry.act is LedgerAct.FORGET and entry.subject is not None:
            emptied += _forgotten_again(connection, org_id, entry, entry.subject)
        elif entry.act is LedgerAct.CORRECT:
            gone = held.forget_each(connection, org_id, entry.memory_ids, by=entry.by, reason=REPLAYED, at=entry.at)
            _require_empty(connection, org_id, entry.memory_ids)
            emptied += len(gone)
    for entry in lost:
        if entry.act not in MEASURES:
            continue
        placed, lifting = _placed_again(connection, org_id, entry), lifted.get(entry.reference)
        if placed and lifting is not None:
            _lifted_again(connection, org_id, lifting)
        elif not placed and lifting is None:
            replaced.append(entry)
    return emptied, replaced


def _forgotten_again(connection: Connection, org_id: str, entry: LedgerEntry, subject: Subject) -> int:
    known = None if entry.reference is None else erasures.facts(connection, org_id, entry.reference)
    if known is not None and (known.subject_type, known.subject_id) != (subject.type, subject.id):
        reason = f"gives erasure {entry.reference} of another subject to {subject}"
        raise Refused(Refusal(rule="ledger_entry_is_of_its_subject", field="LEDGER", reason=reason))
    back = memories.written_until(connection, org_id, subject, until=entry.at)
    due = sorted({*back, *entry.memory_ids})
    gone = held.forget_each(
        connection,
        org_id,
        due,
        by=entry.by,
        reason=REPLAYED,
        at=entry.at,
        erasure_id=entry.reference,
    )
    _require_empty(connection, org_id, due)
    if entry.reference is not None:
        erasures.record(
            connection, org_id, entry.reference, subject, by=entry.by, reason=REPLAYED, at=entry.at, count=len(gone)
        )
    return len(gone)


def _require_empty(connection: Connection, org_id: str, memory_ids: Sequence[UUID]) -> None:
    if memories.with_text(connection, org_id, memory_ids):  # only a hold has kept them
        raise OnHold(tuple(sorted(measures.hold_names_of(connection, org_id, memory_ids))))


def _placed_again(connection: Connection, org_id: str, entry: LedgerEntry) -> bool:
    """Place a measure; returns False where another of the same kind stands in its place since the restore."""
    (memory_id,) = entry.memory_ids or (None,)
    kind, name = MeasureKind(entry.act.value), entry.name or entry.act.value
    if entry.reference and measures.with_id(connection, org_id, entry.reference):
        return True
    if measures.standing_like(connection, org_id, kind=kind, subject=entry.subject, memory_id=memory_id, name=name):
        return False
    measures.place(
        connection,
        org_id,
        measure_id=entry.reference or new_id(),
        kind=kind,
        name=name,
        subject=entry.subject,
        memory_id=memory_id,
        by=entry.by,
        reason=REPLAYED,
        at=entry.at,
        review_on=None,
        request_id=None,
    )
    if kind is not MeasureKind.SUPPRESSION:
        measures.apply(connection, org_id, subject=entry.subject, memory_id=memory_id)
    return True


def _lifted_again(connection: Connection, org_id: str, entry: LedgerEntry) -> None:
    assert entry.reference is not None  # noqa: S101
    one = measures.with_id(connection, org_id, entry.reference)
    if one is None or not one.stands:
        return
    told = entry.code == "person_told" if one.kind is MeasureKind.RESTRICTION else None
    measures.lift(connection, org_id, one.measure_id, by=entry.by, reason=REPLAYED, at=entry.at, person_told=told)
    measures.apply(connection, org_id, subject=one.subject, memory_id=one.memory_id, lifted=one)
