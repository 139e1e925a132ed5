"""What each command about expiry, restores and proof does."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from memory_core import console
from memory_core.config import Settings
from memory_core.db import compacting, database
from memory_core.restoring import replay
from memory_core.rights import Swept
from memory_core.store import MemoryStore
from memory_core.sweeping import sweep
from memory_core.verifying import verify


def run_sweep(options: argparse.Namespace, chosen: Settings) -> None:
    """Sweep one organisation or all of them, then compact the tables where that is asked for."""
    engine = database.usable_engine(chosen)
    compacting_as = database.owner_url(chosen) if options.compact and not options.dry_run else None
    chosen_ones = (
        [console.organisation(options.org)] if options.org is not None else MemoryStore.organisations(settings=chosen)
    )
    done: list[Swept] = []
    for org_id in chosen_ones:
        with console.progress_bar(f"sweeping {org_id}") as progress:
            done.append(sweep(engine, org_id, by=console.operator(), dry_run=options.dry_run, progress=progress))
    if compacting_as is not None:
        sys.stderr.write("rewriting tables and indexes; the store waits meanwhile\n")
        compacting.compact(compacting_as)
    console.answer(
        options,
        {
            "organisations": [dataclasses.asdict(one) for one in done],
            "compacted": compacting_as is not None,
        },
        "\n".join(map(swept_line, done)) or "no organisation, nothing to sweep",
    )


def swept_line(swept: Swept) -> str:
    """Describe a sweep in one line."""
    emptied, purged = ("would be emptied", "would be purged") if swept.dry_run else ("emptied", "purged")
    return (
        f"{swept.org_id}: {swept.emptied} expired {emptied}, {swept.purged} tombstones {purged}, "
        f"kept: {swept.kept_by_hold} on hold, {swept.kept_by_restriction} restricted"
        + (f" (holds: {', '.join(swept.holds)})" if swept.holds else "")
    )


def run_replay(options: argparse.Namespace, chosen: Settings) -> None:
    """Erase again what a restore has brought back."""
    replayed = replay(
        database.usable_engine(chosen),
        Path(options.ledger),
        folder=chosen.ledger_folder,
        by=options.by or console.operator(),
        org_id=options.org,
        skip_bad=options.skip_bad,
    )
    what = (
        f"{replayed.org_id}: {replayed.entries} entries done again, {replayed.emptied} memories erased again"
        if replayed.entries
        else f"{replayed.org_id}: every entry of this ledger is in the database; nothing to do"
    )
    if not replayed.ledger_is_outside:
        sys.stderr.write(f"done, but the ledger in {chosen.ledger_folder} could not be written; see doctor\n")
    bad = f"; {replayed.bad_lines} bad lines left out" if replayed.bad_lines else ""
    console.answer(options, replayed, what + bad)


def run_verify_trail(options: argparse.Namespace, chosen: Settings) -> int:
    """Check the trail, and print its head to be kept elsewhere."""
    org_id = console.organisation(options.org) if options.org is not None else chosen.memory_org
    verified = verify(database.usable_engine(chosen), org_id, folder=chosen.ledger_folder, head=options.head)
    facts = dataclasses.asdict(verified)
    if verified.ledger_fault:
        sys.stderr.write(f"not compared with the ledger outside: {console.one_line(verified.ledger_fault)}\n")
    if verified.broken:
        if options.json:
            console.answer(options, facts, "")
        sys.stderr.write(f"{org_id}: the trail is broken at line {verified.broken.number}: {verified.broken.what}\n")
        return 1
    with_what = f", and with {verified.heads_outside} heads of the ledger outside" if verified.heads_outside else ""
    with_head = ", and with the head that was given" if options.head else ""
    console.answer(
        options,
        facts,
        f"{org_id}: {verified.lines} lines, each agrees with the one before{with_what}{with_head}\n"
        f"head: {verified.head or 'none, the trail is empty'}",
    )
    return 1 if verified.ledger_fault else 0
