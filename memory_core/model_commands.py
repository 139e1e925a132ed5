"""What the commands about rankings and chat models do."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from memory_core import console
from memory_core.chatting import gateway_for
from memory_core.commands import OBSERVATIONS_STAY, org_of
from memory_core.config import Settings
from memory_core.doctor import all_served, diagnosis
from memory_core.errors import Refusal, Refused
from memory_core.evals.questions import read_questions
from memory_core.evals.recall_set import RecallSet, by_ranking, read_memories
from memory_core.evals.report import as_table
from memory_core.evals.retrieval import measured
from memory_core.evals.scratch import scratch
from memory_core.gateway.conversation import ChunkKind, Message, Reply, Role
from memory_core.gateway.pulling import pull
from memory_core.identity import new_id
from memory_core.model import Ranking, Recall
from memory_core.rules.request import MAX_LIMIT
from memory_core.store import MemoryStore


def run_eval_recall(options: argparse.Namespace, chosen: Settings) -> None:
    """Measure rankings on a set of memories and questions, on a database that is gone afterwards."""
    ks = sorted({whole_number(one, field="--k") for one in options.k.split(",")})
    rankings = [ranking_named(one) for one in options.ranking.split(",")]
    with console.opened(options.memories) as stream:
        lines = read_memories(stream, org_id=options.org)
    with scratch(chosen) as own:
        with console.progress_bar("loading and embedding") as progress:
            loaded = RecallSet(own, lines, progress=progress)
        with console.opened(options.questions) as stream:
            questions = read_questions(stream, loaded.sources, org_id=options.org, allow_missing=options.allow_missing)
        with console.progress_bar("recalling", "recalls") as progress:
            report = measured(by_ranking(loaded, questions, rankings, k=ks[-1], progress=progress), ks)
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
    recall: Recall | None = None
    if not options.no_memory:
        with MemoryStore.open(org_id, settings=chosen) as store:
            leaving = store.may_leave()
            recall = store.recall(
                prompt,
                run_id=run_id,
                limit=options.limit,
                token_budget=options.token_budget,
                kinds=leaving.kinds_that_may_leave() if leaving.observations_stay else None,
            )
        if leaving.observations_stay:
            sys.stderr.write(f"{OBSERVATIONS_STAY}\n")
        if recall.block is not None:
            messages.append(Message.memories(recall.block))
    messages.append(Message(role=Role.USER, content=prompt))
    shown = {one.memory.kind for one in recall.memories if one.shown} if recall is not None else set()

    def may_send() -> bool:
        """Say whether what was recalled may still be sent: nothing of it erased, its kinds still let leave."""
        if not shown:
            return True
        with MemoryStore.open(org_id, settings=chosen) as store:
            return not store.withdrawn(run_id) and shown <= set(store.may_leave().kinds_that_may_leave())

    with gateway.stream(messages, run_id=run_id, tier=options.tier, may_send=may_send) as answer:
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
