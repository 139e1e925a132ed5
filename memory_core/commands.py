"""What each command of the command line does."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from secrets import token_bytes
from typing import Any

from memory_core import console, serving
from memory_core.config import Settings
from memory_core.db import database
from memory_core.errors import EmbedderError
from memory_core.interchange import export_lines, import_lines, left_out, read_lines
from memory_core.leaving import what_may_leave
from memory_core.model import Held, HeldMemory, Recall, Subject
from memory_core.previewing import preview
from memory_core.prompt.fence import quoted
from memory_core.restoring import ledger_state
from memory_core.seeding import seed_demo, seed_requests
from memory_core.store import MemoryStore

LEDGER_BEHIND = "it is erased, but its entry is not in the ledger outside yet: {folder} cannot be written; see doctor\n"
OBSERVATIONS_STAY = (
    "the model is outside the private network: observations are left out, as the organisation has not let them leave"
)
ON_THE_COMMAND_LINE = "a preview on the command line"
DEMO = "demo"  # the default of MEMORY_ORG: never an organisation that somebody named


def run_migrate(options: argparse.Namespace, chosen: Settings) -> None:
    """Migrate, or print the migration."""
    if options.sql:
        sys.stdout.write(database.migration_sql(chosen))
        return
    before, after = database.migrate(chosen)
    console.answer(options, {"before": before, "after": after}, f"revision {before or 'none'} -> {after}")


def run_import(options: argparse.Namespace, chosen: Settings) -> None:
    """Load a file, then embed what it brought."""
    engine = database.usable_engine(chosen)
    with console.opened(options.file) as stream, console.progress_bar("reading", "lines") as progress:
        lines = list(read_lines(stream, org_id=options.org, progress=progress))
    imported = import_lines(engine, lines, skip_bad=options.skip_bad, folder=chosen.ledger_folder)
    report: dict[str, Any] = {}
    for org_id, written in imported.organisations.items():
        report[org_id] = {"stored": written.stored, "refreshed": written.refreshed, "without_embedding": None}
        report[org_id]["without_embedding"] = embed_new(org_id, chosen)
    faults = [{"line": fault.number, **dataclasses.asdict(fault.refusal)} for fault in imported.faults]
    for fault in imported.faults:
        sys.stderr.write(f"line {fault.number}: {console.one_line(str(fault.refusal))}; left out\n")
    console.answer(
        options,
        {"organisations": report, "left_out": faults},
        "\n".join(
            f"{org_id}: {one['stored']} stored, {one['refreshed']} refreshed, {one['without_embedding']} without an embedding"
            for org_id, one in report.items()
        ),
    )


def embed_new(org_id: str, chosen: Settings) -> int:
    """Embed an organisation's backlog where an embedder answers; return how many memories are left without a vector."""
    with MemoryStore.open(org_id, settings=chosen) as store:
        if chosen.memory_embedder != "none":
            try:
                with console.progress_bar(f"embedding {org_id}") as progress:
                    store.embed(progress=progress)
            except EmbedderError as error:
                sys.stderr.write(
                    f"{console.one_line(str(error))}; stored all the same, later: python -m memory_core embed\n"
                )
        return store.overview().unembedded


def run_export(options: argparse.Namespace, chosen: Settings) -> None:
    """Write the live memories of one organisation."""
    with MemoryStore.open(org_of(options, chosen), settings=chosen) as store:
        counts = store.overview().counts
        lines = export_lines(
            database.usable_engine(chosen),
            store.org_id,
            folder=chosen.ledger_folder,
            by=options.by or console.operator(),
            ascii_only=options.output is None and sys.stdout.isatty(),
        )
        with console.written(options.output) as out, console.progress_bar("exporting") as progress:
            for number, line in enumerate(lines, start=1):
                out.write(line + "\n")
                progress(number)
    for state, count in sorted(left_out(counts).items()):
        sys.stderr.write(f"{count} {state} left out\n")


def run_recall(options: argparse.Namespace, chosen: Settings) -> None:
    """Recall, and show how it chose; a preview of it unless it is for a run."""
    org_id = org_of(options, chosen)
    wanted = {"limit": options.limit, "token_budget": options.token_budget, "ranking": options.ranking}
    if options.run_id:
        with MemoryStore.open(org_id, settings=chosen) as store:
            recall = store.recall(
                options.query, run_id=options.run_id, kinds=options.kinds, because=options.because, **wanted
            )
    else:
        recall = preview(
            org_id,
            options.query,
            run_id="command-line",
            kinds=options.kinds,
            by=console.operator(),
            because=ON_THE_COMMAND_LINE if options.because is None else options.because,
            key=token_bytes(32),
            settings=chosen,
            **wanted,
        )
        if what_may_leave(database.usable_engine(chosen), org_id, chosen).observations_stay:
            sys.stderr.write(f"{OBSERVATIONS_STAY}\n")
    # What stands in no block was not disclosed, so its text is not handed out here either.
    disclosed = tuple(
        one if one.shown else dataclasses.replace(one, memory=dataclasses.replace(one.memory, text=None))
        for one in recall.memories
    )
    console.answer(options, dataclasses.replace(recall, memories=disclosed), shown_recall(recall))


def shown_recall(recall: Recall) -> str:
    """Describe a recall in lines: how it chose, then the block."""
    how = f"mode {recall.mode}" + (f" ({recall.reason})" if recall.reason else "")
    nothing = "no line fits the token budget, so no block" if recall.memories else "nothing to show, so no block"
    block = recall.block.text if recall.block else nothing
    tokens = f", about {recall.block.tokens} tokens, {recall.block.omitted} omitted" if recall.block else ""
    passed_over = f", {len(recall.passed_over)} passed over as saying the same" if recall.passed_over else ""
    return (
        f"{how}, ranking {recall.ranking}, search {recall.search}, {recall.unembedded} without an embedding"
        f"{tokens}{passed_over}; "
        f"embedding {recall.timings.embed_ms:.1f} ms, search {recall.timings.search_ms:.1f} ms\n{block}"
    )


def run_held(options: argparse.Namespace, chosen: Settings) -> None:
    """Show what is held about a subject."""
    held_org = org_of(options, chosen)
    with MemoryStore.open(held_org, settings=chosen) as store:
        held = store.held(Subject(options.type, options.id), by=options.by or console.operator())
    lost = ledger_state(database.usable_engine(chosen), held_org, chosen.ledger_folder).missing
    if lost:
        sys.stderr.write(
            f"the database was restored from a backup, and {lost} ledger entries are not in it: see doctor\n"
        )
    console.answer(options, held, shown_held(held))


def shown_held(held: Held) -> str:
    """Describe what is held in lines, newest first."""
    label = f" {quoted(held.subject.label)}" if held.subject.label else ""
    aliases = f", also {', '.join(quoted(alias) for alias in held.subject.aliases)}" if held.subject.aliases else ""
    head = f"{held.subject}{label}{aliases}: {len(held.memories)} held, {held.with_text} with text"
    return "\n".join([head, *(_held_line(memory) for memory in held.memories)])


def _held_line(memory: HeldMemory) -> str:
    if memory.text is not None:
        what = quoted(memory.text)
    elif memory.forgotten_at is not None:
        what = (
            f"erased {memory.forgotten_at:%Y-%m-%d} by {memory.forgotten_by}: {quoted(memory.forgotten_reason or '')}"
        )
    else:
        what = "emptied when it had expired"
    return (
        f"{memory.created_at:%Y-%m-%d} {memory.state}, {memory.kind} by {memory.author} ({memory.origin}) in {memory.run_id}, "
        f"until {memory.expires_at:%Y-%m-%d}, shown {len(memory.disclosures)} times: {what}"
    )


def run_forget(options: argparse.Namespace, chosen: Settings) -> None:
    """Erase a subject."""
    with MemoryStore.open(org_of(options, chosen), settings=chosen) as store:
        erasure = store.forget(Subject(options.type, options.id), by=options.by, reason=options.reason)
    if not erasure.ledger_is_outside:
        sys.stderr.write(LEDGER_BEHIND.format(folder=chosen.ledger_folder))
    console.answer(
        options,
        {**dataclasses.asdict(erasure), "count": erasure.count},
        f"{erasure.count} erased about {erasure.subject} at {erasure.at.isoformat()} (erasure {erasure.erasure_id})",
    )


def run_embed(options: argparse.Namespace, chosen: Settings) -> None:
    """Embed the backlog."""
    with (
        MemoryStore.open(org_of(options, chosen), settings=chosen) as store,
        console.progress_bar("embedding") as progress,
    ):
        embedded = store.embed(model=options.model, progress=progress)
    console.answer(options, embedded, f"{embedded.count} embedded by {embedded.model}")


def run_demo(options: argparse.Namespace, chosen: Settings) -> None:
    """Make the demo organisation."""
    org_id = org_of(options, chosen)
    stored = seed_demo(database.usable_engine(chosen), org_id)
    if stored:
        seed_requests(database.usable_engine(chosen), org_id)
    left = embed_new(org_id, chosen)
    what = f"{stored} memories stored" if stored else "already holds memories; nothing was added"
    console.answer(options, {"org_id": org_id, "stored": stored, "without_embedding": left}, f"{org_id}: {what}")


def run_serve(options: argparse.Namespace, chosen: Settings) -> None:
    """Become the workbench's server; with ``--demo``, an embedded database gets the demo first."""
    # What would be refused is refused before any work.
    port = serving.port_to_serve(chosen, port=options.port, address=options.address)
    if options.demo and chosen.database_url is None and chosen.memory_org == DEMO:
        if seed_demo(database.usable_engine(chosen), DEMO):
            seed_requests(database.usable_engine(chosen), DEMO)
        embed_new(DEMO, chosen)
        database.release(chosen)
    serving.serve(port, options.address)


def org_of(options: argparse.Namespace, chosen: Settings) -> str:
    """Return the organisation that was asked for, else the environment's."""
    return str(options.org) if options.org is not None else chosen.memory_org
