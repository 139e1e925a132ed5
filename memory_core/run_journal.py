"""The journal of an organisation's agent runs, kept in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine

from memory_core.db import agent_runs, organisations
from memory_core.db.engine import organisation_transaction, wait_shortly_for_locks
from memory_core.errors import Refusal, Refused
from memory_core.run_records import RunEnd, RunStart, ToolCallRecord

# A run ends within a second after its deadline: a last call and the end may both have to wait.
LOCK_LIMIT_S = 0.4


class AgentJournal:
    """Records runs, each step in a transaction of its own, so that what was done is known also of a run that was killed.

    Thread-safe. Each method raises a `DatabaseError`, or `Refused` where a constraint says no.
    """

    def __init__(self, engine: Engine, org_id: str, *, clock: Callable[[], datetime] | None = None) -> None:
        self._engine = engine
        self._org_id = org_id
        self._clock = clock

    def begin(self, start: RunStart) -> None:
        """Record that a run begins; raises `Refused` for a run id that was used before."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            organisations.enter(connection, self._org_id)
            is_taken = agent_runs.is_named_elsewhere(connection, self._org_id, start.run_id)
            if is_taken or not agent_runs.begin(connection, self._org_id, start, now=self._now()):
                reason = f"{start.run_id} was used before; leave it out, or name another"
                raise Refused(Refusal(rule="run_id_is_new", field="run_id", reason=reason))

    def called(self, run_id: str, call: ToolCallRecord) -> None:
        """Record a tool call of a run that began."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            wait_shortly_for_locks(connection, limit_s=LOCK_LIMIT_S)
            agent_runs.called(connection, self._org_id, run_id, call, now=self._now())

    def end(self, run_id: str, end: RunEnd) -> None:
        """Record how a run ended; one that has an end keeps it."""
        with organisation_transaction(self._engine, self._org_id) as connection:
            wait_shortly_for_locks(connection, limit_s=LOCK_LIMIT_S)
            agent_runs.end(connection, self._org_id, run_id, end, now=self._now())

    def _now(self) -> datetime | None:
        return self._clock() if self._clock else None
