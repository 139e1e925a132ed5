"""The data protection officer's desk over one organisation's store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import URL, Connection, Engine

from memory_core import access, approving, certifying, erasing, measuring, reaching, rectifying, verifying
from memory_core.config import Settings
from memory_core.config import settings as read_settings
from memory_core.db import database, desk, erasures, measures, organisations, safeguards, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import ChangedMeanwhile, MemoryCoreError, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Erasure, Held, Memory, Subject, subject_of
from memory_core.register import Register
from memory_core.restoring import LedgerState, ledger_state
from memory_core.rights import (
    AccessPackage,
    Approval,
    Certificate,
    DeskSettings,
    Measure,
    MeasureKind,
    Reach,
    RightsRequest,
    Safeguards,
    TrailEntry,
)
from memory_core.rules.deadlines import Deadline, Pace
from memory_core.rules.desk import safeguards_refusal, settings_refusal
from memory_core.rules.today import today_in
from memory_core.store import FromSettings, MemoryStore
from memory_core.verifying import Verified

CHANGE_SETTINGS = "change settings"
CHANGE_SAFEGUARDS = "change safeguards"
MAY_LEAVE, STAY = "observations may leave", "observations stay"  # as the trail has a change of that
MOST_LINES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Due:
    """What the desk must not overlook."""

    overdue: tuple[tuple[RightsRequest, Deadline], ...]
    due_soon: tuple[tuple[RightsRequest, Deadline], ...]
    waiting: int  # for the identity of whoever asks
    paused: int
    open: int
    to_review: tuple[Measure, ...]  # measures that somebody was to look at again by now

    @property
    def measures_to_review(self) -> int:
        """How many measures are to be looked at again."""
        return len(self.to_review)


class PrivacyDesk:
    """What one officer may do for one organisation; open one with `PrivacyDesk.open`.

    Every look at a subject and every act is one transaction that leaves a line of the trail in the officer's name. All raise
    `Refused` naming a rule for what may not be done, and then nothing is done.
    """

    def __init__(
        self,
        store: MemoryStore,
        engine: Engine,
        *,
        by: str,
        settings: Settings,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        refused = identifier_refusal(by, field="by")
        if refused:
            raise Refused(refused)
        self.org_id = store.org_id
        self.by = by
        self._store = store
        self._engine = engine
        self._folder = settings.ledger_folder
        self._clock = clock
        self.register = Register(engine, store.org_id, by=by, clock=clock)

    @classmethod
    def open(
        cls,
        org_id: str,
        *,
        by: str,
        database_url: str | URL | None = None,
        embedder: Any = FromSettings,
        clock: Callable[[], datetime] | None = None,
        settings: Settings | None = None,
    ) -> PrivacyDesk:
        """Open the desk of an organisation for an officer, such as `user:ines`; raises as `MemoryStore.open` does."""
        chosen = settings or read_settings()
        store = MemoryStore.open(org_id, database_url=database_url, embedder=embedder, clock=clock, settings=chosen)
        engine = database.usable_engine(chosen, database_url=database_url)
        return cls(store, engine, by=by, settings=chosen, clock=clock)

    # Seeing

    def held(self, subject: Subject) -> Held:
        """Return everything held about a subject; the look is on record."""
        return self._store.held(subject, by=self.by)

    def due(self) -> Due:
        """Return which requests are overdue or due soon, most urgent first, and how many measures are to be reviewed."""
        waiting = self.register.every(only_open=True)
        pairs = list(zip(waiting, self.register.deadlines(waiting), strict=True))
        pairs.sort(key=lambda pair: pair[1].due_on or date.max)

        def at(pace: Pace) -> tuple[tuple[RightsRequest, Deadline], ...]:
            return tuple(pair for pair in pairs if pair[1].pace is pace)

        with self._transaction() as connection:
            chosen = desk.desk_settings(connection, self.org_id)
            today = today_in(chosen.time_zone, now=self._now(connection))
            standing = measures.standing(connection, self.org_id)
        return Due(
            overdue=at(Pace.OVERDUE),
            due_soon=at(Pace.DUE_SOON),
            waiting=len(at(Pace.WAITING)),
            paused=len(at(Pace.PAUSED)),
            open=len(waiting),
            to_review=tuple(one for one in standing if one.review_on is not None and one.review_on <= today),
        )

    def today(self) -> date:
        """Return which day it is where the organisation answers for its data."""
        with self._transaction() as connection:
            return self._today(connection)

    def measures(self, subject: Subject | None = None) -> list[Measure]:
        """Return every measure there is or was about a subject, or all that stand; oldest first."""
        with self._transaction() as connection:
            if subject is None:
                return measures.standing(connection, self.org_id)
            return measures.of_subject(connection, self.org_id, subject_of(subject))

    # Access

    def package(
        self,
        subject: Subject,
        *,
        reference: str | None = None,
        left_out: Mapping[UUID, str] | None = None,
        release: bool = False,
        expecting: str | None = None,
    ) -> AccessPackage:
        """Put together the answer to a request for access; with `release` it is on record as handed out.

        `expecting` is the `readable` of the package that was looked at: nothing else is handed out.
        """
        return access.access_package(
            self._engine,
            self.org_id,
            subject_of(subject),
            by=self.by,
            reference=reference,
            left_out=left_out,
            folder=self._folder,
            release=release,
            expecting=expecting,
            clock=self._clock,
        )

    # Measures

    def restrict(self, reason: str, **about: Any) -> Measure:
        """Keep and not use (Art. 18): what is about a subject, or one memory. Takes what `measuring.place` does."""
        return self._place(MeasureKind.RESTRICTION, reason, **about)

    def hold(self, reason: str, **about: Any) -> Measure:
        """Keep from being forgotten, swept or purged; `name` is the matter. Takes what `measuring.place` does."""
        return self._place(MeasureKind.HOLD, reason, **about)

    def suppress(self, reason: str, **about: Any) -> Measure:
        """Let nothing new be remembered about a subject (Art. 21). Takes what `measuring.place` does."""
        return self._place(MeasureKind.SUPPRESSION, reason, **about)

    def lift(self, measure: Measure, *, reason: str, person_told: bool | None = None) -> Measure:
        """Lift a measure; of a restriction, say whether the person was told before (Art. 18(3))."""
        return measuring.lift(
            self._engine,
            self.org_id,
            measure.measure_id,
            by=self.by,
            reason=reason,
            person_told=person_told,
            folder=self._folder,
            clock=self._clock,
        )

    # Rectification

    def correct(self, memory: Memory, text: str, *, author: str, reason: str, reference: str | None = None) -> Memory:
        """Put a corrected memory in the place of another, whose text goes."""
        corrected = rectifying.correct(
            self._engine,
            self.org_id,
            memory.memory_id,
            text,
            author=author,
            by=self.by,
            reason=reason,
            reference=reference,
            folder=self._folder,
            clock=self._clock,
        )
        try:
            embedded = self._store.embed(among=[corrected.memory_id])
        except MemoryCoreError:  # nothing is lost: `embed` makes the vector later
            return corrected
        return replace(corrected, embedding_model=embedded.model if embedded.count else None)

    def dispute(self, memory: Memory, words: str, *, reference: str | None = None) -> Memory:
        """Put the person's own words beside a memory; every block that shows it shows them."""
        return rectifying.dispute(
            self._engine,
            self.org_id,
            memory.memory_id,
            words,
            by=self.by,
            folder=self._folder,
            reference=reference,
            clock=self._clock,
        )

    def withdraw_dispute(self, memory: Memory, *, reason: str, reference: str | None = None) -> Memory:
        """Take back a dispute."""
        return rectifying.withdraw_dispute(
            self._engine,
            self.org_id,
            memory.memory_id,
            by=self.by,
            reason=reason,
            reference=reference,
            clock=self._clock,
        )

    # Erasure

    def reach(
        self,
        subject: Subject,
        *,
        also_called: Sequence[str] = (),
        progress: Callable[[int], None] | None = None,
    ) -> Reach:
        """Return what an erasure would empty, and what it would not reach by itself."""
        return reaching.reach(
            self._engine,
            self.org_id,
            subject_of(subject),
            by=self.by,
            also_called=also_called,
            clock=self._clock,
            progress=progress,
        )

    def erase(
        self,
        subject: Subject,
        *,
        reason: str,
        expecting: int | None = None,
        also: Sequence[UUID] = (),
        reference: str | None = None,
        suppress: bool = False,
    ) -> Erasure:
        """Erase what is held about a subject, with what was chosen beside it; see `erasing.erase`."""
        return erasing.erase(
            self._engine,
            self.org_id,
            subject_of(subject),
            by=self.by,
            reason=reason,
            folder=self._folder,
            clock=self._clock,
            also=also,
            expecting=expecting,
            reference=reference,
            suppress=suppress,
        )

    def erasures(self, *, subject: Subject | None = None, reference: str | None = None) -> list[UUID]:
        """Return the identifiers of a subject's or a request's erasures, newest first."""
        with self._transaction() as connection:
            rows = (
                erasures.of_subject(connection, self.org_id, subject_of(subject))
                if subject is not None
                else erasures.for_request(connection, self.org_id, reference or "")
            )
        return [row.erasure_id for row in rows]

    def certificate(self, erasure_id: UUID) -> Certificate:
        """Write the certificate of an erasure."""
        return certifying.certificate(self._engine, self.org_id, erasure_id)

    # Settings

    def settings(self) -> DeskSettings:
        """Return what the organisation has set for its desk."""
        with self._transaction() as connection:
            return desk.desk_settings(connection, self.org_id)

    def change_settings(self, new: DeskSettings) -> DeskSettings:
        """Set what the organisation answers, where it is, how long tombstones stay.

        `new.version` is that of the settings it is a change of; raises `ChangedMeanwhile` where there are newer ones.
        """
        if refused := settings_refusal(new):
            raise Refused(refused)
        with self._transaction() as connection:
            organisations.enter(connection, self.org_id)
            before = desk.desk_settings(connection, self.org_id)
            changed = changed_names(before, new)
            if not changed and before.version == new.version:
                return before
            if not desk.change(connection, self.org_id, new):
                raise self._changed_meanwhile(connection, "settings")
            self._record_change(connection, CHANGE_SETTINGS, changed)
            return desk.desk_settings(connection, self.org_id)

    def safeguards(self) -> Safeguards:
        """Return what the organisation lets be seen, be done by one person alone, and leave."""
        with self._transaction() as connection:
            return safeguards.safeguards(connection, self.org_id)

    def change_safeguards(self, new: Safeguards) -> Safeguards:
        """Set what may be seen, be done by one person alone, and leave; who lets observations leave, and when, is this act's.

        `new.version` is that of the safeguards it is a change of, which settings have in common; raises `ChangedMeanwhile`
        where there are newer ones.
        """
        if refused := safeguards_refusal(new):
            raise Refused(refused)
        with self._transaction() as connection:
            organisations.enter(connection, self.org_id)
            before = safeguards.safeguards(connection, self.org_id)
            changed = changed_safeguards(before, new)
            if not changed and before.version == new.version:
                return before
            signed = replace(new, observations_leave_by=None, observations_leave_at=None)
            if new.observations_leave and before.observations_leave:
                since = before.observations_leave_at
                signed = replace(new, observations_leave_by=before.observations_leave_by, observations_leave_at=since)
            elif new.observations_leave:
                signed = replace(new, observations_leave_by=self.by, observations_leave_at=self._now(connection))
            if not safeguards.change(connection, self.org_id, signed):
                raise self._changed_meanwhile(connection, "safeguards")
            self._record_change(connection, CHANGE_SAFEGUARDS, changed)
            return safeguards.safeguards(connection, self.org_id)

    # Four eyes

    def waiting_for_second(self) -> list[Approval]:
        """Return what waits for a second officer, what is agreed to and not done yet, what was declined; oldest first."""
        with self._transaction() as connection:
            return approving.standing(connection, self.org_id, now=self._now(connection))

    def decide(self, approval_id: UUID, agreed: bool) -> Approval:
        """Agree to what another officer has asked for, or decline it; raises `Refused` for whoever asked."""
        return approving.decide(self._engine, self.org_id, approval_id, agreed=agreed, by=self.by, clock=self._clock)

    # Proof

    def trail(
        self,
        *,
        subject: Subject | None = None,
        reference: str | None = None,
        request: str | None = None,
        act: str | None = None,
        limit: int = 200,
    ) -> list[TrailEntry]:
        """Return the newest lines of the trail; of one subject, reference, request or act where those are given."""
        if any(one is not None and identifier_refusal(one, field="") for one in (reference, request)):
            return []
        with self._transaction() as connection:
            return trail.newest(
                connection,
                self.org_id,
                subject=None if subject is None else subject_of(subject),
                reference=reference,
                request=request,
                act=act,
                limit=min(max(limit, 0), MOST_LINES),
            )

    def verify_trail(self, *, head: str | None = None) -> Verified:
        """Check the trail from its first line to its last."""
        return verifying.verify(self._engine, self.org_id, folder=self._folder, head=head, clock=self._clock)

    def ledger(self) -> LedgerState:
        """Copy out what the ledger outside does not have yet, and say how the two stand to each other; never raises for it."""
        return ledger_state(self._engine, self.org_id, self._folder)

    # How

    def _place(self, kind: MeasureKind, reason: str, **about: Any) -> Measure:
        return measuring.place(
            self._engine,
            self.org_id,
            kind=kind,
            by=self.by,
            reason=reason,
            folder=self._folder,
            today=self.today(),
            clock=self._clock,
            **about,
        )

    def _record_change(self, connection: Connection, act: str, changed: Sequence[str]) -> None:
        now = self._clock() if self._clock else None
        trail.record(connection, self.org_id, by=self.by, act=act, reason=", ".join(changed) or None, now=now)

    def _changed_meanwhile(self, connection: Connection, field: str) -> ChangedMeanwhile:
        lines = [
            line
            for act in (CHANGE_SETTINGS, CHANGE_SAFEGUARDS)
            for line in trail.newest(connection, self.org_id, act=act, limit=1)
        ]
        last = max(lines, key=lambda line: line.number, default=None)
        who = f"by {last.by} at {last.at:%Y-%m-%d %H:%M} UTC" if last else "by somebody else"
        why = f"were changed {who} meanwhile; nothing was saved. Reload the page to see what is set now"
        return ChangedMeanwhile(field=field, reason=why)

    def _transaction(self) -> AbstractContextManager[Connection]:
        return organisation_transaction(self._engine, self.org_id)

    def _now(self, connection: Connection) -> datetime:
        return self._clock() if self._clock else organisations.moment(connection)

    def _today(self, connection: Connection) -> date:
        return today_in(desk.desk_settings(connection, self.org_id).time_zone, now=self._now(connection))


def changed_names(before: DeskSettings, after: DeskSettings) -> list[str]:
    """Return the names of the settings that differ; their values are no business of the trail."""
    names = ["jurisdiction", "time_zone", "tombstone_days"]
    answers = [name for name in vars(after.answers) if getattr(before.answers, name) != getattr(after.answers, name)]
    return [name for name in names if getattr(before, name) != getattr(after, name)] + answers


def changed_safeguards(before: Safeguards, after: Safeguards) -> list[str]:
    """Return the names of the safeguards that differ; of what may leave, whether it may."""
    changed = [
        name for name in ("preview_pseudonyms", "four_eyes_over") if getattr(before, name) != getattr(after, name)
    ]
    if before.observations_leave == after.observations_leave:
        return changed
    return [*changed, MAY_LEAVE if after.observations_leave else STAY]
