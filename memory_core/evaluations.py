"""The results of the tool-calling suites, as they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class Aspect(StrEnum):
    """What a case is scored by, each apart from the others; `ASPECTS` says what each means."""

    TOOL_NAME = "tool name"
    SCHEMA = "schema"
    ARGUMENTS = "arguments"
    ORDER = "order"
    FINAL_STATE = "final state"
    RESTRAINT = "restraint"
    ANSWER = "answer"


ASPECTS = {
    Aspect.TOOL_NAME: "every tool that is needed was called",
    Aspect.SCHEMA: "all arguments were as the tools' schemas want them",
    Aspect.ARGUMENTS: "the calls had the values that are right",
    Aspect.ORDER: "the calls came in the order that is needed, or in one turn where that is needed",
    Aspect.FINAL_STATE: "the workspace is as it should be, and changed in nothing else",
    Aspect.RESTRAINT: "nothing was called beyond what is needed or harmless",
    Aspect.ANSWER: "the answer says what it has to, and nothing it may not",
}


class CaseKind(StrEnum):
    """What a case tries; a suite has one of each."""

    RIGHT_TOOL = "right tool"  # among near-misses
    NOTHING_TO_CALL = "nothing to call"  # already answered, or out of scope
    MISSING_ARGUMENT = "missing argument"  # to be asked for
    CHAINED = "chained"  # an argument comes from an earlier result
    RECOVERY_OR_PARALLEL = "recovery or parallel"  # an error to recover from, or two calls in one turn


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One trial of one case; `passed` is apart from `termination`, and None where `infrastructure` says why."""

    agent: str
    case_id: str
    kind: str  # of the case, such as "right tool"
    trial: int  # from 1
    seed: int
    termination: str
    infrastructure: str | None  # the failure that was not the model's; None: the trial was judged
    aspects: Mapping[Aspect, bool | None]  # None: the aspect does not apply to the case
    passed: bool | None
    turns: int
    tool_calls: int
    took_ms: float
    transcript: Sequence[Mapping[str, Any]]  # role, content, tool calls; about invented people only


@dataclass(frozen=True, kw_only=True)
class EvaluationStart:
    """What is tried, and how; an interrupted evaluation is the same when all of it is."""

    model: str
    digest: str | None  # of the model, where its server says
    provider: str
    settings: Mapping[str, Any]  # what the model was asked with
    suites_hash: str  # SHA-256 of suites, specifications, catalogue, sample workspace, rules of scoring
    agents: tuple[str, ...]
    cases: int  # of those agents
    trials: int  # of each case
    base_seed: int
    by: str


@dataclass(frozen=True, kw_only=True)
class Evaluation(EvaluationStart):
    """A recorded evaluation."""

    evaluation_id: UUID
    started_at: datetime
    ended_at: datetime | None  # None: interrupted, or running
    recorded: int  # trials that are on record

    @property
    def wanted(self) -> int:
        """How many trials it has when it is whole."""
        return self.cases * self.trials
