"""Whether the parts are up, each with the command that mends it if not."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from memory_core.config import Settings
from memory_core.db import database, organisations
from memory_core.db.engine import organisation_transaction
from memory_core.db.schema import newest_revision, vector_version
from memory_core.embedding import Unserved, configured
from memory_core.errors import (
    DatabaseReadOnly,
    DatabaseUnavailable,
    EmbedderError,
    MemoryCoreError,
    NotMigrated,
    NoVectorExtension,
    UnsafeRole,
)
from memory_core.restoring import LedgerState, ledger_state
from memory_core.store import MemoryStore


@dataclass(frozen=True, kw_only=True)
class Check:
    """One part: whether it is all right, what was found, and what to type if it is not."""

    part: str
    ok: bool
    found: str
    mend: str | None = None
    stops_runs: bool = True  # whether a run fails while it is not all right; else it only does worse


def checks(settings: Settings, org_id: str) -> list[Check]:
    """Check the database, its role, pgvector, the migration and an organisation's embedder; never raises an own error."""
    try:
        engine = database.usable_engine(settings)
        store = MemoryStore.open(org_id, settings=settings)
        with organisation_transaction(engine, store.org_id) as connection:
            pinned = organisations.pinned_model(connection, store.org_id)
            vector = vector_version(connection)
    except MemoryCoreError as error:
        return _unusable(error)
    host = engine.url.host or engine.url.query.get("host") or "the default address"
    address = "embedded PostgreSQL" if settings.database_url is None else f"PostgreSQL at {host}"
    return [
        Check(part="Database", ok=True, found=address),
        Check(part="Role", ok=True, found=f"{engine.url.username}, bound by row level security"),
        Check(part="pgvector", ok=True, found=f"version {vector}"),
        Check(part="Migration", ok=True, found=f"at revision {newest_revision()}"),
        _ledger(ledger_state(engine, org_id, settings.ledger_folder)),
        _embedder(settings, pinned),
    ]


def _unusable(error: MemoryCoreError) -> list[Check]:
    if isinstance(error, NotMigrated):
        return [
            Check(part="Database", ok=True, found="reachable"),
            Check(part="Migration", ok=False, found=str(error), mend="python -m memory_core migrate"),
        ]
    faults: dict[type[MemoryCoreError], tuple[str, str]] = {
        DatabaseUnavailable: ("Database", "check DATABASE_URL, and that the server runs"),
        DatabaseReadOnly: ("Database", "point DATABASE_URL at the primary"),
        NoVectorExtension: ("pgvector", "as a superuser: CREATE EXTENSION vector;"),
        UnsafeRole: ("Role", "python -m memory_core migrate --sql"),
    }
    part, mend = faults.get(type(error), ("Database", None))
    return [Check(part=part, ok=False, found=str(error), mend=mend)]


def _ledger(ledger: LedgerState) -> Check:
    if ledger.missing:
        return Check(
            part="Ledger",
            ok=False,
            found=f"{ledger.missing:,} of its entries are not in the database, which was restored: nothing is recalled",
            mend=f"python -m memory_core replay-erasures {shlex.quote(str(ledger.path))}",
        )
    if ledger.fault:
        return Check(
            part="Ledger", ok=False, found=ledger.fault, mend="make MEMORY_LEDGER a folder that can be written"
        )
    found = "nothing to keep yet" if ledger.path is None else f"whole, in {ledger.path.parent}"
    return Check(part="Ledger", ok=True, found=found)


def _embedder(settings: Settings, pinned: str | None) -> Check:
    choice = configured(settings)
    if choice.is_none:
        return Check(
            part="Embedder",
            ok=False,
            stops_runs=False,
            found="none is configured, so recall is newest first",
            mend="MEMORY_EMBEDDER=auto, then: python -m memory_core embed",
        )
    if pinned is None:
        return Check(part="Embedder", ok=True, found="chosen with the organisation's first embedding")
    try:
        served = choice.serve(pinned)
    except EmbedderError as error:
        return Check(part="Embedder", ok=False, stops_runs=False, found=f"{pinned}: {error}", mend="make install")
    if isinstance(served, Unserved):
        configured_model = settings.memory_embedder
        change = "" if configured_model == "auto" else f", or: python -m memory_core embed --model {configured_model}"
        return Check(
            part="Embedder",
            ok=False,
            stops_runs=False,
            found=f"{served.reason}: {pinned} is pinned, MEMORY_EMBEDDER is {settings.memory_embedder}",
            mend=f"MEMORY_EMBEDDER={pinned}" + change,
        )
    try:
        served.embed_query("ready?")
    except EmbedderError as error:
        mend = f"ollama pull {pinned.removeprefix('ollama:')}" if pinned.startswith("ollama:") else "make install"
        return Check(part="Embedder", ok=False, stops_runs=False, found=f"{pinned}: {error}", mend=mend)
    where = ", outside the private network" if served.is_outside else ""
    return Check(part="Embedder", ok=True, found=f"{pinned} answers{where}")
