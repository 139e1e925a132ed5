"""The sweep: what has expired loses its text, tombstones go when their own retention is over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine

from memory_core.db import desk, locks, organisations, requests, subjects, sweeps, trail
from memory_core.db.engine import organisation_transaction
from memory_core.rights import Swept

AT_ONCE = 1000  # memories a transaction: an interruption loses no more than one
Progress = Callable[[int, int], None]  # done, of how many


def sweep(
    engine: Engine,
    org_id: str,
    *,
    by: str,
    clock: Callable[[], datetime] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Swept:
    """Empty one organisation's expired memories and delete its overdue tombstones, batch by batch, each on record.

    A dry run only counts. What is on hold or restricted is kept and counted. Raises a `DatabaseError`; what was done by
    then stays done, and on record.
    """
    with organisation_transaction(engine, org_id) as connection:
        now = clock() if clock else organisations.moment(connection)
        before = now - timedelta(days=desk.desk_settings(connection, org_id).tombstone_days)
        free, on_hold, restricted = sweeps.due(connection, org_id, now=now)
        purgeable = sweeps.purgeable(connection, org_id, before=before)
        holds = sweeps.keeping_holds(connection, org_id, now=now, before=before)
    emptied = purged = 0
    if dry_run:
        emptied, purged = free, purgeable
    else:
        line_at = now if clock else None

        def batch(act: str, work: Callable[[Connection], int]) -> int:
            with organisation_transaction(engine, org_id) as connection:
                count = work(connection)
                if count:
                    trail.record(connection, org_id, by=by, act=act, count=count, now=line_at)
            return count

        def empty(connection: Connection) -> int:
            chosen = sweeps.candidates(connection, org_id, now=now, limit=AT_ONCE)
            about = {subject for subject in chosen.values() if subject is not None}
            # Before the memories' own rows, as whoever writes about them does.
            locks.await_writes(connection, org_id, *about)
            count = sweeps.empty(connection, org_id, list(chosen), now=now)
            subjects.clear_unused(connection, org_id, about)
            return count

        while done := batch("sweep", empty):
            emptied += done
            if progress:
                progress(emptied, max(free, emptied) + purgeable)

        def purge(connection: Connection) -> int:
            chosen = sweeps.purge_candidates(connection, org_id, before=before, limit=AT_ONCE)
            locks.await_writes(connection, org_id, *(subject for subject in chosen.values() if subject is not None))
            return sweeps.purge(connection, org_id, list(chosen), before=before)

        while done := batch("purge", purge):
            purged += done
            if progress:
                progress(emptied + purged, emptied + max(purgeable, purged))
        batch("empty askers", lambda connection: requests.empty_askers(connection, org_id, closed_before=before))
    return Swept(
        org_id=org_id,
        emptied=emptied,
        purged=purged,
        kept_by_hold=on_hold,
        kept_by_restriction=restricted,
        holds=tuple(sorted(holds)),
        dry_run=dry_run,
    )
