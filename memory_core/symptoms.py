"""What the newest calls to the chat model are symptoms of, as the runbook knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_core.health import Check

NEWEST = 50  # calls that are looked at, of the last day
NEXT_MODEL = "llama3.2:1b"  # where qwen3:0.6b cannot hold a tool call together
SHARE = 0.2  # of them, or the very newest, and it is a symptom
IN_A_ROW = 3
COLD_SHARE, COLD_LEAST = 0.5, 4  # a deployment's first calls are cold by nature


class RecordedCall(Protocol):
    """What is looked at of a call."""

    error_code: str | None
    cold: bool | None
    tool_calls_in_text: int | None
    tool_call_faults: int | None
    is_open: bool
    is_overdue: bool
    is_first: bool  # of its run


@dataclass(frozen=True, kw_only=True)
class _Symptom:
    code: str
    means: str
    mend: str
    passes: bool = False  # it may be over by itself; else the next run fails as the newest call did


_ERRORS = (
    _Symptom(
        code="gateway.deadline",
        means="no whole answer in time: the model is too slow for the output it may write",
        mend="export MODEL_MAX_OUTPUT_TOKENS=1000    # or MODEL_DEADLINE_S higher, or a larger node",
    ),
    _Symptom(
        code="gateway.invalid_request",
        means="the server or the gateway refused the request: a reasoning effort that the model does not take, a model that "
        "is not pulled, a prompt too long",
        mend="unset MODEL_REASONING_EFFORT; python -m memory_core pull MODEL; python -m memory_core chat hello",
    ),
    _Symptom(
        code="gateway.unavailable",
        passes=True,
        means="the server was away or broke off: if its pods restart, the model took the node's memory",
        mend="lower Ollama's memory limit, or keep one model loaded (OLLAMA_MAX_LOADED_MODELS=1)",
    ),
    _Symptom(
        code="gateway.unauthorized",
        means="the key was not accepted",
        mend="export MODEL_API_KEY=…",
    ),
    _Symptom(
        code="gateway.busy",
        passes=True,
        means="too many calls at once: as many waited as may wait",
        mend="fewer agents at once, or a second Ollama",
    ),
    _Symptom(
        code="gateway.rate_limited",
        passes=True,
        means="more tokens or requests than a minute allows",
        mend="recall fewer memories, or raise MODEL_TOKENS_PER_MINUTE to what the host allows",
    ),
)


def symptoms(newest: Sequence[RecordedCall]) -> list[Check]:
    """Return what the newest calls (newest first) show, or that they show nothing.

    A run would fail only where the newest three in a row do: one call may have been odd by itself.
    """
    if not newest:
        return [Check(part="Newest calls", ok=True, found="none in the last day")]
    count = len(newest)
    found = []
    for symptom in _ERRORS:
        matches = [call.error_code == symptom.code for call in newest]
        if sum(matches) >= SHARE * count or matches[0]:  # also the very newest by itself: somebody is looking for it
            said = f"{sum(matches)} of {count} ended with {symptom.code}: {symptom.means}"
            stops_runs = all(matches[:IN_A_ROW]) and count >= IN_A_ROW and not symptom.passes
            found.append(Check(part="Newest calls", ok=False, found=said, mend=symptom.mend, stops_runs=stops_runs))
    found += [*_tools(newest), *_loading(newest), *_killed(newest)]
    return found or [Check(part="Newest calls", ok=True, found=f"{count} in the last day, nothing conspicuous")]


def _tools(newest: Sequence[RecordedCall]) -> list[Check]:
    first = [call for call in newest if call.is_first]
    failed = [call for call in first if call.tool_call_faults or call.tool_calls_in_text]
    if not failed or len(failed) < SHARE * len(first):
        return []
    said = f"{len(failed)} of {len(first)} runs had a broken tool call in their first answer: it is the model, not the tools"
    mend = f"try once more; then python -m memory_core pull {NEXT_MODEL}; export MODEL_FAST={NEXT_MODEL}"
    return [
        Check(part="Newest calls", ok=False, found=said, mend=mend, stops_runs=len(failed) == len(first) >= IN_A_ROW)
    ]


def _loading(newest: Sequence[RecordedCall]) -> list[Check]:
    known = [call for call in newest if call.cold is not None]
    cold = sum(bool(call.cold) for call in known)
    if len(known) < COLD_LEAST or cold < COLD_SHARE * len(known):
        return []
    said = f"{cold} of {len(known)} had to load the model first: it does not stay in memory"
    mend = "export MODEL_KEEP_ALIVE=30m    # and let Ollama have memory for two models"
    return [Check(part="Newest calls", ok=False, stops_runs=False, found=said, mend=mend)]


def _killed(newest: Sequence[RecordedCall]) -> list[Check]:
    killed = sum(call.is_open and call.is_overdue for call in newest)
    if not killed:
        return []
    said = f"{killed} of {len(newest)} began and never ended: their process was killed, perhaps for its memory"
    return [
        Check(part="Newest calls", ok=False, stops_runs=False, found=said, mend="kubectl describe pod    # OOMKilled?")
    ]
