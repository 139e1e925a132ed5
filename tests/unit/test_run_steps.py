"""What a run did, put into the order of time and drawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from memory_core.errors import GatewayError
from memory_core.run_records import MEANS, CallOutcome, ModelCallFacts, Termination, ToolCallFacts
from memory_core.run_steps import Step, StepKind, StepState, steps
from memory_core.run_trace import RunTrace
from pages.charts.runs import DRAWN, timeline
from pages.runs.words import CALLS, ENDS, GATEWAY, outcome_of

ROOT = Path(__file__).resolve().parents[2]
T0 = datetime(2026, 11, 2, 9, tzinfo=UTC)
NO_ID = UUID(int=0)


def asked(after_s: float, **known: Any) -> ModelCallFacts:
    reported = dict.fromkeys(
        (
            "ended_at",
            "total_ms",
            "first_chunk_ms",
            "prompt_tokens",
            "output_tokens",
            "tool_calls",
            "finish_reason",
            "error_code",
        )
    )
    started = {
        "call_id": NO_ID,
        "model": "qwen3:0.6b",
        "started_at": T0 + timedelta(seconds=after_s),
        "memory_tokens": 0,
    }
    return ModelCallFacts(**{**reported, **started, **known})


def called(ended_s: float, took_ms: float, outcome: CallOutcome = CallOutcome.DONE) -> ToolCallFacts:
    return ToolCallFacts(
        number=1,
        turn=1,
        tool=None if outcome is CallOutcome.INVENTED else "remember",
        arguments_digest=b"",
        outcome=outcome,
        ended_at=T0 + timedelta(seconds=ended_s),
        took_ms=took_ms,
        memory_id=None,
        recall_id=None,
    )


def run_of(*done: ModelCallFacts | ToolCallFacts) -> RunTrace:
    return RunTrace(
        run_id="r-1",
        at=T0 + timedelta(hours=1),
        facts=None,
        is_cut_off=False,
        recalls=(),
        older_recalls=0,
        written=(),
        calls=tuple(one for one in done if isinstance(one, ToolCallFacts)),
        model_calls=tuple(one for one in done if isinstance(one, ModelCallFacts)),
    )


def drawn(done: list[Step], **options: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in timeline(done, **{"until_ms": None, **options}).data}


def test_a_step_stands_where_it_began_and_time_counts_from_the_first() -> None:
    done = steps(run_of(called(5.0, 2000.0), asked(1.0), asked(9.0)))
    assert [(one.kind, one.since_ms) for one in done] == [
        (StepKind.MODEL, 0.0),
        (StepKind.TOOL, 2000.0),
        (StepKind.MODEL, 8000.0),
    ]


def test_a_run_of_which_nothing_is_known_did_nothing() -> None:
    assert steps(run_of()) == []


@pytest.mark.parametrize("outcome", CallOutcome)
def test_every_outcome_of_a_tool_is_drawn_and_has_its_words(outcome: CallOutcome) -> None:
    (one,) = steps(run_of(called(1.0, 5.0, outcome)))
    assert (one.kind, one.state) in DRAWN
    assert (one.state is StepState.DONE) is (outcome is CallOutcome.DONE)
    assert len(drawn([one])) == 1
    assert CALLS[outcome].endswith(".")


def test_what_every_end_means_is_said_once_and_everywhere_the_same() -> None:
    assert list(MEANS) == list(Termination)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for end, meaning in MEANS.items():
        assert ENDS[end.value] == meaning
        assert f"| `{end}` | {meaning} |" in readme


def test_every_error_of_the_gateway_has_its_words() -> None:
    every, found = {GatewayError}, set()
    while every:
        one = every.pop()
        every |= set(one.__subclasses__())
        found |= {one.code} if "code" in vars(one) else set()
    assert found == set(GATEWAY)
    assert found < set(ENDS)


def test_a_model_call_without_an_end_is_drawn_until_the_run_ended() -> None:
    done = steps(run_of(asked(0.0, ended_at=T0, total_ms=500.0, finish_reason="stop"), asked(1.0)))
    assert [outcome_of(one) for one in done] == ["answered", "no end is on record"]
    bar = drawn(done, until_ms=4000.0)["model: no end on record"]
    assert (list(bar.base), list(bar.x), list(bar.text)) == ([1.0], [3.0], ["–"])


def test_the_shortest_step_is_seen_and_says_its_real_time() -> None:
    done = steps(run_of(asked(0.0, total_ms=100_000.0, ended_at=T0, finish_reason="stop"), called(50.0, 1.0)))
    bar = drawn(done)["tool done"]
    assert bar.x[0] == pytest.approx(0.4)
    assert list(bar.text) == ["1.0 ms"]


def test_no_name_is_read_as_html() -> None:
    model = "<a href='https://evil.example'>x</a>"
    chart = timeline(steps(run_of(asked(0.0, model=model))), until_ms=None)
    assert "<a" not in chart.to_json()
    assert "&lt;a" in chart.to_json().replace("\\u0026", "&").replace("\\u003c", "<")
