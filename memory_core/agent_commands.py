"""The commands that run agents and the suites that try them."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from memory_core import console
from memory_core.agents.runs import AgentRun, CalledTool
from memory_core.agents.sample_run import run_agent
from memory_core.commands import org_of
from memory_core.config import Settings
from memory_core.errors import GatewayError, Refusal, Refused
from memory_core.evals import results
from memory_core.evals.statistics import overall, scores
from memory_core.evals.suite_report import as_table
from memory_core.evals.suite_run import evaluate
from memory_core.evals.trying import Asking
from memory_core.prompt.documents import Document

SMOKE_AGENT, SMOKE_PROMPT = "pipeline-report", "Which jobs are open now? Name them."


def run_run(options: argparse.Namespace, chosen: Settings) -> int:
    """Run an agent on the sample workspace, with the organisation's memories; 1 unless it completed."""
    prompt = options.prompt
    if prompt == "-":  # so that it stands in no list of processes
        with console.opened("-") as stream:
            prompt = stream.read().decode("utf-8", "replace").strip()
    run = run_agent(
        org_of(options, chosen),
        options.agent,
        prompt,
        settings=chosen,
        asked_by=options.by or console.operator(),
        run_id=options.run_id,
        documents=[document(name, number) for number, name in enumerate(options.document, start=1)],
        opening_memories=not options.no_memory,
        deadline_s=options.deadline,
        must_call=options.must_call,
        on_call=None if options.json else say_call,
    )
    console.answer(options, told(run), console.readable(run.answer or ""))
    if not options.json:
        sys.stderr.write(f"{console.one_line(said_of(run))}\n")
    return 0 if run.is_completed else 1


def run_smoke(options: argparse.Namespace, chosen: Settings) -> int:
    """Make one real run through the configured address, without memories; 1 unless it completed."""
    try:
        run = run_agent(
            org_of(options, chosen),
            SMOKE_AGENT,
            SMOKE_PROMPT,
            settings=chosen,
            asked_by=options.by or console.operator(),
            opening_memories=False,
            deadline_s=options.deadline,
            must_call=options.must_call,
        )
    except GatewayError as error:
        console.answer(options, {"termination": error.code, "detail": str(error)}, console.one_line(str(error)))
        return 1
    console.answer(options, told(run), console.one_line(said_of(run)))
    return 0 if run.is_completed else 1


def run_eval(options: argparse.Namespace, chosen: Settings) -> int:
    """Try the configured model on the agents' suites; 1 under the threshold, or where a trial could not be judged."""
    org_id = org_of(options, chosen)
    if not 0 <= options.threshold <= 1:
        raise Refused(Refusal(rule="threshold_range", field="--threshold", reason="must be from 0 to 1"))
    with console.progress_bar("trying", "trials") as progress:
        evaluation_id = evaluate(
            org_id,
            settings=chosen,
            by=options.by or console.operator(),
            agents=options.agent,
            trials=options.trials,
            base_seed=options.seed,
            asking=Asking(
                temperature=options.temperature,
                max_output_tokens=options.max_output_tokens,
                deadline_s=options.deadline,
                must_call=options.must_call,
            ),
            fresh=options.fresh,
            progress=progress,
        )
    evaluation = results.evaluation(org_id, evaluation_id, settings=chosen)
    if evaluation is None:
        raise Refused(Refusal(rule="evaluation_exists", field="evaluation", reason="is gone from the record"))
    found = results.results(org_id, evaluation_id, settings=chosen)
    everything = overall(found, evaluation.trials)
    reached = everything.pass_at_1.value if everything.pass_at_1 else 0.0
    unjudged = sum(everything.infrastructure.values())
    console.answer(
        options,
        {
            "evaluation": dataclasses.asdict(evaluation),
            "scores": [dataclasses.asdict(one) for one in (*scores(found, evaluation.trials), everything)],
            "threshold": options.threshold,
            "passed": reached >= options.threshold and not unjudged,
        },
        as_table(evaluation, found),
    )
    if unjudged:
        sys.stderr.write(f"{unjudged} trials could not be judged: see the column that says why\n")
    if reached < options.threshold:
        sys.stderr.write(f"pass@1 is {reached:.3f}, under the threshold of {options.threshold:g}\n")
    return 0 if reached >= options.threshold and not unjudged else 1


def document(name: str, number: int) -> Document:
    """Read a file as a retrieved document, by its number: a file's name may name somebody, and stays on record."""
    with console.opened(name) as stream:
        return Document(source=f"file-{number}", text=stream.read().decode("utf-8", "replace"))


def say_call(call: CalledTool) -> None:
    """Say on standard error which tool was called, as it happens."""
    line = f"turn {call.turn}: {call.name[:64]}, {call.outcome} after {call.took_ms:,.0f} ms"
    sys.stderr.write(f"{console.one_line(line)}\n")


def said_of(run: AgentRun) -> str:
    """Describe in one line how a run ended."""
    why = f": {run.detail}" if run.detail else ""
    cut = "; THE ANSWER WAS CUT, see MODEL_MAX_OUTPUT_TOKENS" if run.answer_was_cut else ""
    return (
        f"{run.termination}{why}; {run.model}, {run.turns} turns, {len(run.calls)} tool calls, {run.took_ms / 1000:,.1f} s, "
        f"{len(run.memories_read)} memories shown, {len(run.memories_written)} written{cut}; run {run.run_id}"
    )


def told(run: AgentRun) -> dict[str, object]:
    """Return what a program is told of a run."""
    return {
        "termination": run.termination,
        "detail": run.detail,
        "answer": run.answer,
        "answer_was_cut": run.answer_was_cut,
        "run_id": run.run_id,
        "agent": run.agent,
        "model": run.model,
        "turns": run.turns,
        "took_ms": run.took_ms,
        "calls": [
            {"turn": call.turn, "tool": call.name, "outcome": call.outcome.value, "took_ms": call.took_ms}
            for call in run.calls
        ],
        "memories_read": [str(one) for one in run.memories_read],
        "memories_written": [str(one) for one in run.memories_written],
        "completed": run.is_completed,
    }
