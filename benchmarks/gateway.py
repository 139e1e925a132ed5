"""What the gateway costs beside the bare client sending the same request, as paired times in one run.

    make bench
    python -m benchmarks.gateway --rounds 24 --canned-rounds 300

A real small model (SmolLM2, served by llama.cpp on loopback) writes 200 tokens a reply, asked by the openai package alone
and by the gateway, in turns that swap their order. A second server has a recorded-like stream of Ollama's ready and sends
it at once, so that nothing but the client's side is timed, there beside the bare ollama package. The gateway keeps its
records in an embedded PostgreSQL; the bare side keeps none, and has no deadline, queue or ceiling.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ollama
import openai

from memory_core.chatting import gateway_for
from memory_core.config import settings
from memory_core.db import embedded
from memory_core.gateway.conversation import Message, Role
from memory_core.gateway.gateway import Gateway
from memory_core.gateway.servers import close_servers
from tests.llama import missing, served

OUTPUT_TOKENS = 200
WARM_UPS = 2
CEILING = 100_000_000  # tokens a minute: counted as any ceiling is, and never reached
MODEL = "smollm2"
SYSTEM = "You help a recruiter at a small firm. Answer from the notes, in whole sentences, at length and in detail."
NOTES = [
    "The candidate asked for interviews in the morning, since the trains from the coast are few in the afternoon.",
    "The notice period is two months, counted from the end of a quarter, and cannot be shortened this year.",
    "The panel wants somebody who has led the move of a database under load, and has been on call for it.",
    "The salary that was named in the first call is the upper end of what the team may offer.",
    "The portfolio shows three projects, of which the second is the one that the team would like to hear about.",
    "The references were called in spring; both praise how calmly she explains a failure to those it hit.",
]
QUESTION = "Write a long letter that invites the candidate and explains every step of the interviews."


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long one reply took, in milliseconds."""

    first_ms: float
    total_ms: float
    cpu_ms: float  # of this process, all its threads: what the client takes from a model on the same cores


Ask = Callable[[int], Timing]


@dataclass(kw_only=True)
class Pairs:
    """Times of one kind of reply, by the gateway and bare, asked one after the other."""

    name: str
    ours: list[Timing] = field(default_factory=list)
    bare: list[Timing] = field(default_factory=list)

    def differences(self, what: str) -> list[float]:
        """Return by how much more the gateway took, pair by pair."""
        return [getattr(ours, what) - getattr(bare, what) for ours, bare in zip(self.ours, self.bare, strict=True)]

    def line(self, title: str, what: str) -> str:
        """Return one row of the table."""
        ours = statistics.median(getattr(one, what) for one in self.ours)
        bare = statistics.median(getattr(one, what) for one in self.bare)
        low, middle, high = statistics.quantiles(self.differences(what), n=4, method="inclusive")
        return (
            f"{f'{self.name}, {title}':<34}{len(self.ours):>6}{ours:>10.2f}{bare:>10.2f}{ours / bare:>8.3f}"
            f"{low:>10.2f}{middle:>10.2f}{high:>10.2f}"
        )


def alternated(name: str, rounds: int, ours: Ask, bare: Ask) -> Pairs:
    """Time both in turns, each first in every second pair; no two asks have the same number."""
    pairs = Pairs(name=name)
    for turn in range(-WARM_UPS, rounds):
        number = 2 * (turn + WARM_UPS)
        if turn % 2:
            there, here = bare(number), ours(number + 1)
        else:
            here, there = ours(number), bare(number + 1)
        if turn >= 0:
            pairs.ours.append(here)
            pairs.bare.append(there)
    return pairs


def by_gateway(gateway: Gateway, prompt: Callable[[int], list[dict[str, str]]], *, chunks: int) -> Ask:
    """Ask through the gateway."""

    def ask(number: int) -> Timing:
        messages = [Message(role=Role(one["role"]), content=one["content"]) for one in prompt(number)]
        watch = Watch()
        stream = gateway.stream(messages, run_id="r-1", max_output_tokens=OUTPUT_TOKENS, temperature=0)
        for _ in stream:
            watch.chunk()
        took = watch.ended()
        written(stream.reply.record.output_tokens, chunks)
        return took

    return ask


def by_openai(client: openai.OpenAI, prompt: Callable[[int], list[dict[str, str]]]) -> Ask:
    """Ask through the openai package alone."""

    def ask(number: int) -> Timing:
        messages: Any = prompt(number)
        watch = Watch()
        usage = None
        for chunk in client.chat.completions.create(
            model=MODEL,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            temperature=0,
            max_tokens=OUTPUT_TOKENS,
        ):
            if chunk.choices and chunk.choices[0].delta.content:
                watch.chunk()
            usage = chunk.usage or usage
        took = watch.ended()
        written(usage.completion_tokens if usage else None, OUTPUT_TOKENS)
        return took

    return ask


def by_ollama(client: ollama.Client, prompt: Callable[[int], list[dict[str, str]]], *, chunks: int) -> Ask:
    """Ask through the ollama package alone."""

    def ask(number: int) -> Timing:
        watch = Watch()
        count = None
        for part in client.chat(
            model=MODEL,
            messages=prompt(number),
            stream=True,
            options={"num_ctx": 4096, "num_predict": OUTPUT_TOKENS, "temperature": 0},
        ):
            if part.message.content:
                watch.chunk()
            count = part.eval_count or count
        took = watch.ended()
        written(count, chunks)
        return took

    return ask


class Watch:
    """Times one reply from its making on."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._cpu_began = time.process_time()
        self._began = time.perf_counter()

    def chunk(self) -> None:
        """Take note of a chunk that says something."""
        self._first = self._first or time.perf_counter()

    def ended(self) -> Timing:
        """Return what the clocks say."""
        ended, cpu_ended = time.perf_counter(), time.process_time()
        return Timing(
            first_ms=((self._first or math.nan) - self._began) * 1000,
            total_ms=(ended - self._began) * 1000,
            cpu_ms=(cpu_ended - self._cpu_began) * 1000,
        )


def written(tokens: int | None, expected: int) -> None:
    """End the run where a reply has another length: its time could be compared with no other."""
    if tokens != expected:
        raise SystemExit(f"a reply of {tokens} tokens where {expected} were expected; choose another prompt")


def conversation(opening: str = "") -> list[dict[str, str]]:
    """Return a prompt of a realistic size; an opening of its own keeps it out of the server's cache."""
    notes = "\n".join(f"- {note}" for note in NOTES)
    return [
        {"role": "system", "content": f"{opening}{SYSTEM}"},
        {"role": "user", "content": f"Notes:\n{notes}"},
        {"role": "user", "content": QUESTION},
    ]


def new_conversation(number: int) -> list[dict[str, str]]:
    """Return a prompt that begins as no other does, and is as long as all others."""
    return conversation(f"{number:05d} is the number of this request. ")


CANNED = """
import json, sys
from tests.wire import Wire, as_json, lines
moment = {"model": "smollm2", "created_at": "2026-11-02T09:00:00.000000000Z"}
def answer(count):
    spoken = [moment | {"message": {"role": "assistant", "content": f" word{n}"}, "done": False} for n in range(count)]
    end = {"done": True, "done_reason": "stop", "total_duration": 4000000000, "load_duration": 9000000,
           "prompt_eval_count": 250, "prompt_eval_duration": 500000000, "eval_count": count, "eval_duration": 3000000000}
    last = moment | {"message": {"role": "assistant", "content": ""}} | end
    return lines(*(json.dumps(one, separators=(",", ":")) for one in [*spoken, last]))
with Wire(keep_alive=True) as wire:
    wire.answers["/api/chat"] = answer(int(sys.argv[1]))
    wire.answers["/api/tags"] = as_json({"models": [{"model": "smollm2:latest", "digest": "0" * 64}]})
    print(wire.url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def canned(chunks: int) -> Iterator[str]:
    """Serve a native stream of Ollama's with this many chunks, in a process of its own; yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", CANNED, str(chunks)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=20)
        process.stdout.close()


def gateway_to(provider: str, address: str, home: Path) -> Gateway:
    """Return a gateway to a server, with its records in the embedded database."""
    chosen = settings(
        memory_home=str(home),
        database_url=None,
        memory_embedder="none",
        model_provider=provider,
        model_base_url=address,
        model_api_key="benchmark",
        model_fast=MODEL,
        model_balanced=MODEL,
        model_deep=MODEL,
        model_tokens_per_minute=CEILING,
    )
    return gateway_for("bench", settings=chosen)


def measured_on_a_model(rounds: int, threads: int, home: Path) -> Iterator[Pairs]:
    """Measure on the real model: a prompt that its cache has whole, and one that is new each time."""
    with served(context_tokens=2048, threads=threads) as llama:
        gateway = gateway_to("openai", llama.url, home)
        with openai.OpenAI(base_url=f"{llama.url}/v1", api_key="benchmark", max_retries=0) as client:
            for name, prompt in (("cached prompt", lambda number: conversation()), ("new prompt", new_conversation)):
                ours = by_gateway(gateway, prompt, chunks=OUTPUT_TOKENS)
                yield alternated(name, rounds, ours, by_openai(client, prompt))


def measured_on_a_canned_stream(rounds: int, chunks: int, home: Path) -> Pairs:
    """Measure on a stream that is there at once."""
    with canned(chunks) as address:
        gateway = gateway_to("ollama", address, home)
        client = ollama.Client(host=address)
        try:
            return alternated(
                f"canned, {chunks} chunk{'s' if chunks > 1 else ''}",
                rounds,
                by_gateway(gateway, lambda number: conversation(), chunks=chunks),
                by_ollama(client, lambda number: conversation(), chunks=chunks),
            )
        finally:
            client.close()  # type: ignore[no-untyped-call]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--rounds", type=int, default=24, help="pairs on the real model (default: %(default)s)")
    options.add_argument(
        "--canned-rounds", type=int, default=300, help="pairs on canned streams (default: %(default)s)"
    )
    options.add_argument("--threads", type=int, default=1, help="that the model computes with (default: %(default)s)")
    options.add_argument("--json", help="a file for every single time")
    chosen = options.parse_args()
    if chosen.rounds and (what := missing()):
        raise SystemExit(f"{what}; run: make install-test (or leave the model out: --rounds 0)")
    home = Path(tempfile.mkdtemp(prefix="memory-benchmark-"))
    home.chmod(0o755)
    results: list[Pairs] = []
    print(f"{'':<40}{'gateway':>10}{'bare':>10}{'':>8}{'gateway more by, ms':>30}")
    print(f"{'':<34}{'pairs':>6}{'p50 ms':>10}{'p50 ms':>10}{'ratio':>8}{'p25':>10}{'p50':>10}{'p75':>10}")

    def show(pairs: Pairs) -> Pairs:
        results.append(pairs)
        print(pairs.line("first chunk", "first_ms"))
        print(pairs.line("whole reply", "total_ms"))
        print(pairs.line("client's CPU", "cpu_ms"), flush=True)
        return pairs

    try:
        if chosen.canned_rounds:
            one, many = (
                show(measured_on_a_canned_stream(chosen.canned_rounds, chunks, home / "home"))
                for chunks in (1, OUTPUT_TOKENS)
            )
            fixed, whole = (statistics.median(pairs.differences("total_ms")) for pairs in (one, many))
            each_us = (whole - fixed) / (OUTPUT_TOKENS - 1) * 1000
            print(f"of the canned difference: {fixed:.2f} ms a call, {each_us:.1f} µs a chunk", flush=True)
        if chosen.rounds:
            for pairs in measured_on_a_model(chosen.rounds, chosen.threads, home / "home"):
                show(pairs)
        if chosen.json:
            kept = {
                pairs.name: [
                    {"gateway": asdict(ours), "bare": asdict(bare)}
                    for ours, bare in zip(pairs.ours, pairs.bare, strict=True)
                ]
                for pairs in results
            }
            Path(chosen.json).write_text(json.dumps(kept), encoding="utf-8")
    finally:
        close_servers()
        embedded.stop(home / "home")
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
