"""Results of the tool-calling suites as models of several skills leave them, the same ones for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import URL

from memory_core.db import evaluations
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.evaluations import Aspect, CaseResult, Evaluation, EvaluationStart

AGENTS = (
    "feedback-summary",
    "interview-notes",
    "offer",
    "onboarding",
    "pipeline-report",
    "privacy-desk",
    "scheduling",
    "screening",
    "sourcing",
)
KINDS = ("right tool", "nothing to call", "missing argument", "chained", "recovery or parallel")
HARDNESS = dict(zip(KINDS, (0.04, 0.12, 0.3, 0.34, 0.42), strict=True))
SUITES = "9f2c61d0" * 8
BEGUN = datetime(2026, 11, 5, 9, 30, tzinfo=UTC)


def start(**given: Any) -> EvaluationStart:
    """Return what is tried: nine agents' five cases by a small model, three times each, unless it is given otherwise."""
    agents = tuple(given.get("agents", AGENTS))
    usual: dict[str, Any] = {
        "model": "qwen3:0.6b",
        "digest": "sha256:7f4030143c1c477224c5434f8272c662a8b042079a0a584f0a27a1684fe2e1fa",
        "provider": "ollama",
        "settings": {"temperature": 0.6, "output_cap": 2000, "reasoning_effort": "none"},
        "suites_hash": SUITES,
        "agents": agents,
        "cases": 5 * len(agents),
        "trials": 3,
        "base_seed": 7,
        "by": "user:local",
    }
    return EvaluationStart(**usual | given)


def evaluation(**given: Any) -> Evaluation:
    """Return a recorded evaluation, whole unless it is given otherwise."""
    own = {name: given.pop(name) for name in ("evaluation_id", "started_at", "ended_at", "recorded") if name in given}
    began = start(**given)
    usual: dict[str, Any] = {
        "evaluation_id": UUID(int=1),
        "started_at": BEGUN,
        "ended_at": BEGUN + timedelta(minutes=40),
        "recorded": began.cases * began.trials,
    }
    return Evaluation(**vars(began), **usual | own)


def result(passed: bool | None = True, **given: Any) -> CaseResult:
    """Return one trial: passed, failed or, as the model's server was not there, not judged."""
    usual: dict[str, Any] = {
        "agent": "screening",
        "case_id": "screening-1",
        "kind": "right tool",
        "trial": 1,
        "seed": 1007,
        "termination": "gateway.unavailable" if passed is None else "Completed",
        "infrastructure": "gateway.unavailable" if passed is None else None,
        "aspects": dict.fromkeys(Aspect, passed),
        "passed": passed,
        "turns": 2,
        "tool_calls": 1,
        "took_ms": 1830.5,
        "transcript": conversation(),
    }
    return CaseResult(**usual | given)


def believable(of: EvaluationStart, *, skill: float, seed: int = 1, unjudged: float = 0.01) -> Iterator[CaseResult]:
    """Yield every trial of an evaluation, in the order in which it runs; with a skill of 1 nearly all pass."""
    for place, agent in enumerate(of.agents):
        for number, kind in enumerate(KINDS, start=1):
            # One case is as hard for each of its trials, and for every model.
            case = random.Random(f"{agent} {kind}").gauss(0, 0.18)
            chance = min(max(skill - HARDNESS[kind] - case, 0.0), 1.0)
            for trial in range(1, of.trials + 1):
                draw = random.Random(f"{of.model} {seed} {agent} {number} {trial}")
                failed = None if draw.random() < unjudged else draw.random() >= chance
                yield _trial(of, draw, failed, agent=agent, place=place, number=number, kind=kind, trial=trial)


def _trial(
    of: EvaluationStart,
    draw: random.Random,
    failed: bool | None,
    *,
    agent: str,
    place: int,
    number: int,
    kind: str,
    trial: int,
) -> CaseResult:
    aspects: dict[Aspect, bool | None] = dict.fromkeys(Aspect, True)
    if number == 2:
        aspects[Aspect.SCHEMA] = aspects[Aspect.ARGUMENTS] = None
    if kind != "chained":
        aspects[Aspect.ORDER] = None
    termination = "Completed"
    if failed:
        applying = [aspect for aspect, came_out in aspects.items() if came_out is not None]
        aspects |= dict.fromkeys(draw.sample(applying, draw.choice((1, 1, 2))), False)
        termination = draw.choices(("Completed", "ToolFailure", "TurnLimit", "Deadline"), (60, 25, 10, 5))[0]
    elif failed is None:
        aspects = dict.fromkeys(Aspect)
        termination = draw.choice(("gateway.unavailable", "gateway.deadline"))
    return result(
        None if failed is None else not failed,
        agent=agent,
        case_id=f"{agent}-{number}",
        kind=kind,
        trial=trial,
        seed=of.base_seed * 1000 + place * 100 + number * 10 + trial,
        termination=termination,
        infrastructure=termination if failed is None else None,
        aspects=aspects,
        turns=draw.randint(1, 4),
        tool_calls=0 if kind == "nothing to call" else draw.randint(1, 3),
        took_ms=draw.lognormvariate(8, 0.6),
        transcript=conversation(trial=trial),
    )


def conversation(**more: Any) -> list[Mapping[str, Any]]:
    """Return a short run's messages, about invented people."""
    arguments = {"candidate": "c-81", "slot": "2026-11-12T10:00:00Z", **more}
    return [
        {"role": "system", "content": "You plan interviews. Call a tool where one is needed."},
        {"role": "user", "content": "Book Zoë Example on 12 November at ten."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "book_interview", "arguments": json.dumps(arguments)}],
        },
        {"role": "tool", "content": '{"booked": "i-7"}', "answers": "book_interview"},
        {"role": "assistant", "content": "Zoë Example is booked on 12 November at ten."},
    ]


def store(
    database: URL,
    org_id: str,
    of: EvaluationStart,
    results: Iterable[CaseResult],
    *,
    evaluation_id: UUID,
    at: datetime = BEGUN,
    ended: bool = True,
) -> None:
    """Record an evaluation by the product's own statements."""
    with organisation_transaction(engine_for(database), org_id) as connection:
        evaluations.begin(connection, org_id, evaluation_id, of, now=at)
        for number, one in enumerate(results):
            evaluations.add(connection, org_id, evaluation_id, one, now=at + timedelta(seconds=number))
        if ended:
            evaluations.end(connection, org_id, evaluation_id, now=at + timedelta(hours=1))


def thirty(*, until: datetime, trials: int = 5) -> Sequence[tuple[datetime, EvaluationStart, list[CaseResult]]]:
    """Return evaluations of three models over a month, each model better from time to time, the suites changed once."""
    made = []
    for number in range(30):
        model, skill = (("qwen3:0.6b", 0.72), ("qwen3:1.7b", 0.9), ("qwen3:4b", 1.04))[number % 3]
        of = start(
            model=model,
            digest=f"sha256:{model.encode().hex()}",
            trials=trials,
            suites_hash=SUITES if number >= 12 else "0" * 64,
        )
        found = list(believable(of, skill=skill + 0.006 * (number // 3), seed=number))
        made.append((until - timedelta(days=30 - number, hours=number % 5), of, found))
    return made
