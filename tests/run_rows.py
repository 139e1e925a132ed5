"""Runs of agents as their loop records them, without a loop."""

from __future__ import annotations

from typing import Any

from memory_core.config import Tier
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome, RunEnd, RunStart, Termination, ToolCallRecord


def begun(**changes: Any) -> RunStart:
    """Return a run of the screening agent that has five minutes and eight turns."""
    start: dict[str, Any] = {
        "run_id": "r-1",
        "agent": "screening",
        "specification_digest": bytes(range(32)),
        "model": "qwen3:0.6b",
        "tier": Tier.FAST,
        "asked_by": "user:maria",
        "deadline_s": 300.0,
        "turn_limit": 8,
        "documents": ("note-7", "mail:81"),
    }
    return RunStart(**{**start, **changes})


def tool_call(**changes: Any) -> ToolCallRecord:
    """Return a tool call that was done."""
    call: dict[str, Any] = {
        "number": 1,
        "turn": 1,
        "tool": "find_candidate",
        "arguments": '{"name": "Zoë Müller"}',
        "outcome": CallOutcome.DONE,
        "took_ms": 1.5,
    }
    return ToolCallRecord(**{**call, **changes})


def completed(**changes: Any) -> RunEnd:
    """Return the end of a run whose model gave its answer."""
    end = {"termination": Termination.COMPLETED, "detail": None, "turns": 2, "answer_was_cut": False}
    return RunEnd(**{**end, **changes})


def ran(journal: AgentJournal, *calls: ToolCallRecord, **changes: Any) -> RunStart:
    """Record a run from its beginning to its end, with one tool call unless others are given."""
    start = begun(**changes)
    journal.begin(start)
    for call in calls or [tool_call()]:
        journal.called(start.run_id, call)
    journal.end(start.run_id, completed())
    return start
