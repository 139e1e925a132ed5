"""Calls to a chat model as the gateway records them, without a gateway."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from memory_core.calls import Begun, CallEnd, CallStart, FinishReason
from memory_core.config import Provider, Tier
from memory_core.journal import CallJournal


def starting(**changes: Any) -> CallStart:
    """Return a call that wants 100 tokens and two minutes."""
    start: dict[str, Any] = {
        "call_id": uuid4(),
        "run_id": "r-1",
        "tier": Tier.FAST,
        "model": "qwen3:0.6b",
        "provider": Provider.OLLAMA,
        "estimated_tokens": 60,
        "memory_tokens": 20,
        "reserved_tokens": 100,
        "deadline_s": 120.0,
    }
    start |= changes
    return CallStart(**{"least_tokens": start["reserved_tokens"], **start})


def answered(**changes: Any) -> CallEnd:
    """Return the end of a call that was answered and came to 80 tokens."""
    end = {
        "total_ms": 900.0,
        "attempts": 1,
        "counted_tokens": 80,
        "digest": "sha256:7df6b6e09427",
        "queue_ms": 1.5,
        "load_ms": 20.0,
        "prompt_ms": 300.0,
        "generation_ms": 500.0,
        "first_chunk_ms": 350.0,
        "first_answer_ms": 400.0,
        "prompt_tokens": 62,
        "output_tokens": 18,
        "cached": False,
        "cold": False,
        "finish_reason": FinishReason.STOP,
    }
    return CallEnd(**{**end, **changes})


def failed(code: str = "gateway.unavailable", **changes: Any) -> CallEnd:
    """Return the end of a call that got no answer."""
    return CallEnd(**{"total_ms": 40.0, "attempts": 1, "counted_tokens": 0, "error_code": code, **changes})


def called(journal: CallJournal, **changes: Any) -> CallStart:
    """Record a call from its beginning to its answer."""
    start = starting(**changes)
    assert isinstance(journal.begin(start, tokens_per_minute=None), Begun)
    journal.end(start.call_id, answered())
    return start
