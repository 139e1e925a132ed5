"""The journal of an organisation's model calls, kept in the database."""

from __future__ import annotations

import atexit
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine

from memory_core.calls import Begun, CallEnd, CallStart, Wait
from memory_core.db import calls, organisations
from memory_core.db.engine import organisation_transaction, wait_shortly_for_locks
from memory_core.errors import DatabaseError, MemoryCoreError

KEPT_FOR_LATER = 1000  # ends that could not be written while the database was away
AT_ONCE = 50  # of those, written in one go: whoever begins a call meanwhile waits for it
PAUSE_S = 5.0  # before a database that was away is tried again

log = logging.getLogger(__name__)


class CallJournal:
    """Records calls in the database, where every process of the organisation counts its tokens. Thread-safe."""

    def __init__(
        self,
        engine: Engine,
        org_id: str,
        *,
        clock: Callable[[], datetime] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._org_id = org_id
        self._clock = clock
        self._monotonic = monotonic
        self._is_listed = False
        self._unwritten: deque[tuple[UUID, CallEnd]] = deque()
        self._writing = threading.Lock()
        self._paused_until = -math.inf

    def begin(self, start: CallStart, *, tokens_per_minute: int | None, elapsed_s: float = 0.0) -> Begun | Wait:
        """Record that a call began so many seconds ago; under a ceiling that it would pass, return how long it has to wait.

        Raises a `DatabaseError`, or `Refused` where a constraint says no: a call that cannot be recorded is not made.
        """
        # Not waiting for the disk: a crash of the database may lose a beginning, and the model does wait for this.
        with organisation_transaction(self._engine, self._org_id, switched_off=["synchronous_commit"]) as connection:
            if not self._is_listed:
                organisations.enter(connection, self._org_id)
            begun = calls.begin(
                connection,
                self._org_id,
                start,
                tokens_per_minute=tokens_per_minute,
                elapsed_s=elapsed_s,
                now=self._now(),
            )
        self._is_listed = True
        self._paused_until = -math.inf
        self._write_what_is_left()
        return begun

    def refuse(self, start: CallStart, end: CallEnd) -> None:
        """Record a call that was refused before it began; never raises, since the refusal is what its caller must see."""
        try:
            with organisation_transaction(self._engine, self._org_id) as connection:
                organisations.enter(connection, self._org_id)
                calls.refuse(connection, self._org_id, start, end, now=self._now())
        except MemoryCoreError as error:
            log.warning("a refused call is not on record: %s", error)

    def end(self, call_id: UUID, end: CallEnd) -> None:
        """Record what became of a call; never raises, and writes it with the next call where that fails now."""
        self._unwritten.append((call_id, end))
        self._write_what_is_left()

    def _write_what_is_left(self) -> None:
        # Whoever is writing writes also what comes meanwhile: nobody waits here for a database that is away.
        if self._unwritten and self._monotonic() >= self._paused_until and self._writing.acquire(blocking=False):
            try:
                self._write_in_order()
            finally:
                self._writing.release()

    def _write_in_order(self) -> None:
        for _ in range(AT_ONCE):
            if not self._unwritten:
                return
            call_id, ended = self._unwritten[0]
            try:
                with organisation_transaction(self._engine, self._org_id) as connection:
                    wait_shortly_for_locks(connection)  # an answer waits for this
                    calls.end(connection, self._org_id, call_id, ended, now=self._now())
            except Exception as error:
                is_passing = isinstance(error, DatabaseError) and type(error) is not DatabaseError
                if is_passing:
                    log.warning("a call's end is not on record yet: %s", error)
                    self._paused_until = self._monotonic() + PAUSE_S
                    while len(self._unwritten) > KEPT_FOR_LATER:
                        log.error(
                            "the end of call %s is lost: too many wait for the database", self._unwritten.popleft()[0]
                        )
                    return
                # It will not be taken later either, and would keep all later ones from the record.
                log.error("the end of call %s cannot be recorded: %s", call_id, error)
            self._unwritten.popleft()

    def flush(self) -> None:
        """Write what is left, if the database is there; never raises."""
        self._paused_until = -math.inf
        while self._unwritten and self._monotonic() >= self._paused_until:
            self._write_what_is_left()

    def _now(self) -> datetime | None:
        return self._clock() if self._clock else None


_journals: dict[tuple[Engine, str], CallJournal] = {}
_opening = threading.Lock()


def journal_for(engine: Engine, org_id: str) -> CallJournal:
    """Return this process's journal of an organisation: ends that it keeps for later are written by its next call."""
    with _opening:
        return _journals.setdefault((engine, org_id), CallJournal(engine, org_id))


@atexit.register
def flush_journals() -> None:
    """Write what journals have kept, before this process ends."""
    for journal in list(_journals.values()):
        journal.flush()
