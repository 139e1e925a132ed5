"""What each command of the command line does."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from memory_core import console, serving
from memory_core.chatting import gateway_for
from memory_core.config import Settings
from memory_core.db import database
from memory_core.doctor import all_served, diagnosis
from memory_core.errors import EmbedderError, Refusal, Refused
from memory_core.evals.questions import read_questions
from memory_core.evals.report import as_table
from memory_core.evals.retrieval import measured
from memory_core.evals.trial import Trial, by_ranking, read_memories, scratch
from memory_core.gateway.conversation import ChunkKind, Message, Reply, Role
from memory_core.gateway.pulling import pull
from memory_core.identity import new_id
from memory_core.interchange import export_lines, import_lines, left_out, read_lines
from memory_core.model import Held, HeldMemory, Ranking, Recall, Subject
from memory_core.prompt.fence import quoted
from memory_core.rules.request import MAX_LIMIT
from memory_core.seeding import seed_demo
from memory_core.store import MemoryStore

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
    imported = import_lines(engine, lines, skip_bad=options.skip_bad)
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
            database.usable_engine(chosen), store.org_id, ascii_only=options.output is None and sys.stdout.isatty()
        )
        with console.written(options.output) as out, console.progress_bar("exporting") as progress:
            for number, line in enumerate(lines, start=1):
                out.write(line + "\n")
                progress(number)
    for state, count in sorted(left_out(counts).items()):
        sys.stderr.write(f"{count} {state} left out\n")


def run_recall(options: argparse.Namespace, chosen: Settings) -> None:
    """Recall, and show how it chose."""
    with MemoryStore.open(org_of(options, chosen), settings=chosen) as store:
        recall = store.recall(
            options.query,
            run_id=options.run_id or "command-line",
            limit=options.limit,
            token_budget=options.token_budget,
            kinds=options.kinds,
            ranking=options.ranking,
            purpose="run" if options.run_id else "preview",
        )
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
    with MemoryStore.open(org_of(options, chosen), settings=chosen) as store:
        held = store.held(Subject(options.type, options.id))
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


def run_eval_recall(options: argparse.Namespace, chosen: Settings) -> None:
    """Measure rankings on a set of memories and questions, on a database that is gone afterwards."""
    ks = sorted({whole_number(one, field="--k") for one in options.k.split(",")})
    rankings = [ranking_named(one) for one in options.ranking.split(",")]
    with console.opened(options.memories) as stream:
        lines = read_memories(stream, org_id=options.org)
    with scratch(chosen) as own:
        with console.progress_bar("loading and embedding") as progress:
            trial = Trial(own, lines, progress=progress)
        with console.opened(options.questions) as stream:
            questions = read_questions(stream, trial.sources, org_id=options.org, allow_missing=options.allow_missing)
        with console.progress_bar("recalling", "recalls") as progress:
            report = measured(by_ranking(trial, questions, rankings, k=ks[-1], progress=progress), ks)
    console.answer(options, report, as_table(report))


def whole_number(text: str, *, field: str) -> int:
    """Read a whole number that a recall may be asked for; raises `Refused`."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4 and 1 <= int(digits) <= MAX_LIMIT):
        reason = f"{text[:32]!r} must be a whole number from 1 to {MAX_LIMIT}"
        raise Refused(Refusal(rule="limit_range", field=field, reason=reason))
    return int(text)


def ranking_named(text: str) -> Ranking:
    """Return the ranking of a name; raises `Refused`."""
    try:
        return Ranking(text.strip())
    except ValueError:
        reason = f"{text[:32]!r} is not known; use {', '.join(Ranking)}"
        raise Refused(Refusal(rule="ranking_is_known", field="--ranking", reason=reason)) from None


def run_doctor(options: argparse.Namespace, chosen: Settings) -> int:
    """Say whether a run would work; 1 if not."""
    found = diagnosis(chosen, org_of(options, chosen))
    width = max(len(check.part) for check in found)
    lines = []
    for check in found:
        word = "ok" if check.ok else "FAIL" if check.stops_runs else "warn"
        mend = f"; type: {check.mend}" if check.mend else ""
        lines.append(console.one_line(f"{word:4}  {check.part:{width}}  {check.found}{mend}"))
    works = all_served(found)
    lines.append("A run would work." if works else "A run would fail: see the lines that begin with FAIL.")
    console.answer(options, {"works": works, "checks": [dataclasses.asdict(one) for one in found]}, "\n".join(lines))
    return 0 if works else 1


def run_pull(options: argparse.Namespace, chosen: Settings) -> None:
    """Have Ollama fetch a model."""
    with console.download_bar(f"pulling {options.model}") as progress:
        pull(chosen, options.model, progress=progress)
    console.answer(options, {"model": options.model}, f"{options.model} is there")


def run_chat(options: argparse.Namespace, chosen: Settings) -> None:
    """Ask the chat model once, with what is remembered."""
    org_id = org_of(options, chosen)
    prompt = options.prompt
    if prompt == "-":  # so that it stands in no list of processes
        with console.opened("-") as stream:
            prompt = stream.read().decode("utf-8", "replace").strip()
    gateway = gateway_for(org_id, settings=chosen)  # what is not configured is said before anything is disclosed
    run_id = options.run_id or f"chat-{new_id().hex[-12:]}"
    messages = []
    if not options.no_memory:
        with MemoryStore.open(org_id, settings=chosen) as store:
            recall = store.recall(prompt, run_id=run_id, limit=options.limit, token_budget=options.token_budget)
        if recall.block is not None:
            messages.append(Message.memories(recall.block))
    messages.append(Message(role=Role.USER, content=prompt))
    with gateway.stream(messages, run_id=run_id, tier=options.tier) as answer:
        for chunk in answer:
            if not options.json and (options.thinking or chunk.kind is ChunkKind.ANSWER):
                sys.stdout.write(console.readable(chunk.text))
                sys.stdout.flush()
        reply = answer.reply
    if options.json:
        console.answer(options, reply, "")
        return
    sys.stdout.write("\n")
    sys.stdout.flush()
    sys.stderr.write(
        f"{said_of(reply, memory_tokens=sum(message.memory_tokens for message in messages))}, run {run_id}\n"
    )


def said_of(reply: Reply, *, memory_tokens: int) -> str:
    """Describe a call in one line: its tokens, then where its time went."""
    record = reply.record

    def ms(value: float | None) -> str:
        return "not reported" if value is None else f"{value:,.0f} ms"

    cold = "" if record.cold is None else ", cold" if record.cold else ", warm"
    prompt = "not reported" if record.prompt_tokens is None else f"{record.prompt_tokens:,}"
    output = "not reported" if record.output_tokens is None else f"{record.output_tokens:,}"
    cut = "; THE SERVER CUT THE PROMPT, see MODEL_NUM_CTX" if record.prompt_was_cut else ""
    times = {
        "queue": record.queue_ms,
        "load": record.load_ms,
        "prompt": record.prompt_ms,
        "generation": record.generation_ms,
        "first token": record.first_chunk_ms,
        "total": record.total_ms,
    }
    return (
        f"{reply.model}{cold}, {reply.finish_reason}; "
        f"tokens: prompt {prompt} (memories about {memory_tokens:,}), answer {output}; "
        f"{', '.join(f'{name} {ms(value)}' for name, value in times.items())}{cut}; call {reply.call_id}"
    )


def run_demo(options: argparse.Namespace, chosen: Settings) -> None:
    """Make the demo organisation."""
    org_id = org_of(options, chosen)
    stored = seed_demo(database.usable_engine(chosen), org_id)
    left = embed_new(org_id, chosen)
    what = f"{stored} memories stored" if stored else "already holds memories; nothing was added"
    console.answer(options, {"org_id": org_id, "stored": stored, "without_embedding": left}, f"{org_id}: {what}")


def run_serve(options: argparse.Namespace, chosen: Settings) -> None:
    """Become the workbench's server; with ``--demo``, an embedded database gets the demo first."""
    port = serving.port_to_serve(chosen, port=options.port)  # what would be refused is refused before any work
    if options.demo and chosen.database_url is None and chosen.memory_org == DEMO:
        seed_demo(database.usable_engine(chosen), DEMO)
        embed_new(DEMO, chosen)
        database.release(chosen)
    serving.serve(port)


def org_of(options: argparse.Namespace, chosen: Settings) -> str:
    """Return the organisation that was asked for, else the environment's."""
    return str(options.org) if options.org is not None else chosen.memory_org
