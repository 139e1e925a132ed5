"""One trial of one case: an organisation of its own, a workspace of its own, the agent run, the run scored."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Engine

from memory_core.agents.chat_model import ChatModel
from memory_core.agents.context import ToolProblem
from memory_core.agents.loop import AgentRunner
from memory_core.agents.registry import registry
from memory_core.agents.runs import AgentRun
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import Specification
from memory_core.config import Settings
from memory_core.db.workspace import workspace
from memory_core.embedding import given
from memory_core.errors import InvalidRequest, MemoryCoreError
from memory_core.evals.case import ASKED_BY, NOW, TODAY, Case
from memory_core.evals.scoring import MadeCall, Observed, passed, scored
from memory_core.evaluations import CaseResult
from memory_core.gateway.conversation import Message
from memory_core.identity import new_id
from memory_core.leaving import EVERYTHING_MAY_BE_SENT
from memory_core.model import Subject
from memory_core.prompt.documents import Document
from memory_core.run_journal import AgentJournal
from memory_core.store import MemoryStore

NO_RUN = "none"  # the termination of a trial that came to no run
LONGEST_KEPT = 20_000  # characters of one text in a transcript


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How the model is asked, in every case alike; None is the server's or the settings' own."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    deadline_s: float | None = None
    must_call: bool = False  # in the first turn, where the server can see to that


def tried(
    case: Case,
    specification: Specification,
    model: ChatModel,
    *,
    engine: Engine,
    settings: Settings,
    trial: int = 1,
    seed: int = 0,
    asking: Asking | None = None,
) -> CaseResult:
    """Run an agent on a case and score it.

    `engine` is a database in which it may make organisations: a scratch one. A failure that is not the model's is the
    result's `infrastructure`; nothing is raised but what ends the process.
    """
    result = partial(
        CaseResult, agent=specification.name, case_id=case.id, kind=case.kind.value, trial=trial, seed=seed
    )
    try:
        run, seen = _observed(case, specification, model, engine, settings, seed, asking or Asking())
    except MemoryCoreError as error:
        return result(
            termination=NO_RUN,
            infrastructure=type(error).__name__,
            aspects={},
            passed=None,
            turns=0,
            tool_calls=0,
            took_ms=0.0,
            transcript=(),
        )
    aspects = scored(case, seen, changing={name for name, tool in registry().items() if tool.changes})
    # After its first turn what cannot be sent is what the model itself has said.
    is_its_own = run.termination == InvalidRequest.code and run.turns > 1
    infrastructure = run.termination if run.termination.startswith("gateway.") and not is_its_own else None
    return result(
        termination=run.termination,
        infrastructure=infrastructure,
        aspects={} if infrastructure else aspects,
        passed=None if infrastructure else passed(aspects),
        turns=run.turns,
        tool_calls=len(run.calls),
        took_ms=run.took_ms,
        transcript=[_kept(message) for message in run.messages],
    )


def _observed(
    case: Case,
    specification: Specification,
    model: ChatModel,
    engine: Engine,
    settings: Settings,
    seed: int,
    asking: Asking,
) -> tuple[AgentRun, Observed]:
    draw = random.Random(seed)  # noqa: S311  (so that a trial can be repeated)
    org_id = f"case-{new_id()}"

    def clock() -> datetime:
        return NOW

    def boundary() -> str:
        return f"{draw.getrandbits(32):08x}"

    store = MemoryStore(org_id, engine, choose=given(None), settings=settings, clock=clock, draw_boundary=boundary)
    _remember(store, case)
    runner = AgentRunner(
        store,
        model,
        AgentJournal(engine, org_id, clock=clock),
        draw_boundary=boundary,
        may_leave=lambda: EVERYTHING_MAY_BE_SENT,  # a case is of invented people, and the same with every model
    )
    with workspace(engine) as own:
        own.fill(sample_rows(TODAY))
        before = own.state()
        run = runner.run(
            specification,
            case.prompt,
            workspace=own,
            today=TODAY,
            asked_by=ASKED_BY,
            run_id=f"eval-{specification.name}-{case.id}-{new_id().hex[-12:]}",
            documents=[Document(source=one.source, text=one.text) for one in case.documents],
            deadline_s=asking.deadline_s,
            max_output_tokens=asking.max_output_tokens,
            temperature=asking.temperature,
            seed=seed,
            must_call=asking.must_call,
        )
        after = own.state()
    return run, Observed(calls=tuple(_made(run)), answer=run.answer, before=before, after=after)


def _remember(store: MemoryStore, case: Case) -> None:
    names = {row["id"]: row["name"] for row in sample_rows(TODAY)["candidate"]}
    if case.memories:
        store.remember_many(
            {
                "text": one.text,
                "kind": one.kind,
                "origin": one.origin,
                "author": one.author,
                "run_id": f"earlier-{number}",
                "subject": None if one.about is None else Subject("candidate", one.about, label=names[one.about]),
                "created_at": NOW - timedelta(days=one.days_ago),
            }
            for number, one in enumerate(case.memories, start=1)
        )


def _made(run: AgentRun) -> list[MadeCall]:
    made = []
    for call in run.calls:
        arguments: Mapping[str, Any] | None = None
        tool = registry().get(call.name)
        if tool is not None:
            try:
                arguments = tool.checked(call.written)
            except ToolProblem:
                arguments = None
        made.append(MadeCall(tool=call.name, arguments=arguments, outcome=call.outcome, turn=call.turn))
    return made


def _kept(message: Message) -> dict[str, Any]:
    """Return a message as a transcript keeps it, no text longer than anybody reads."""
    kept: dict[str, Any] = {"role": message.role.value, "content": _text(message.content)}
    if message.tool_calls:
        kept["tool_calls"] = [
            {"name": _text(call.name), "arguments": _text(call.written)} for call in message.tool_calls
        ]
    if message.answers is not None:
        kept["answers"] = _text(message.answers.name)
    return kept


def _text(text: str) -> str:
    return text if len(text) <= LONGEST_KEPT else f"{text[:LONGEST_KEPT]}… ({len(text):,} characters in all)"
