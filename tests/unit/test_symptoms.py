"""What the newest calls are symptoms of."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memory_core.symptoms import symptoms


@dataclass(frozen=True, kw_only=True)
class Recorded:
    error_code: str | None = None
    cold: bool | None = False
    tool_calls_in_text: int | None = 0
    tool_call_faults: int | None = 0
    is_open: bool = False
    is_overdue: bool = False
    is_first: bool = False


GOOD = Recorded()


def test_no_call_is_no_symptom() -> None:
    (check,) = symptoms([])
    assert check.ok


def test_calls_that_were_answered_show_nothing() -> None:
    (check,) = symptoms([GOOD] * 50)
    assert check.ok


@pytest.mark.parametrize(
    ("code", "mend", "stops_runs"),
    [
        ("gateway.deadline", "MODEL_MAX_OUTPUT_TOKENS", True),
        ("gateway.invalid_request", "unset MODEL_REASONING_EFFORT; python -m memory_core pull", True),
        ("gateway.unauthorized", "MODEL_API_KEY", True),
        ("gateway.unavailable", "memory limit", False),
        ("gateway.busy", "fewer agents", False),
        ("gateway.rate_limited", "MODEL_TOKENS_PER_MINUTE", False),
    ],
)
def test_an_error_of_the_newest_call_says_what_to_type(code: str, mend: str, stops_runs: bool) -> None:
    (check,) = symptoms([*[Recorded(error_code=code)] * 3, *[GOOD] * 47])
    assert not check.ok
    assert check.stops_runs is stops_runs
    (once,) = symptoms([Recorded(error_code=code), *[GOOD] * 49])
    assert not once.ok
    assert not once.stops_runs
    assert code in check.found
    assert check.mend is not None
    assert mend in check.mend


def test_one_call_that_is_answered_clears_what_would_stop_a_run() -> None:
    (check,) = symptoms([GOOD, *[Recorded(error_code="gateway.deadline")] * 9])
    assert not check.ok
    assert not check.stops_runs


def test_a_single_older_error_among_many_calls_is_no_symptom() -> None:
    (check,) = symptoms([*[GOOD] * 8, Recorded(error_code="gateway.deadline"), *[GOOD] * 11])
    assert check.ok


@pytest.mark.parametrize(
    "broken", [Recorded(is_first=True, tool_call_faults=1), Recorded(is_first=True, tool_calls_in_text=1)]
)
def test_a_broken_tool_call_in_the_first_answer_is_the_model(broken: Recorded) -> None:
    (check,) = symptoms([broken, GOOD, GOOD])
    assert not check.ok
    assert "it is the model" in check.found
    assert not check.stops_runs
    assert check.mend is not None
    assert check.mend.endswith("python -m memory_core pull llama3.2:1b; export MODEL_FAST=llama3.2:1b")
    (always,) = symptoms([broken] * 3)
    assert always.stops_runs


def test_a_broken_tool_call_later_in_a_run_is_no_such_symptom() -> None:
    (check,) = symptoms([Recorded(tool_call_faults=1), Recorded(is_first=True)])
    assert check.ok


def test_a_model_that_is_loaded_again_and_again_does_not_stay_in_memory() -> None:
    (check,) = symptoms([Recorded(cold=True), GOOD, Recorded(cold=True), GOOD])
    assert not check.ok
    assert not check.stops_runs
    assert "does not stay in memory" in check.found
    assert symptoms([Recorded(cold=None)] * 10)[0].ok
    assert symptoms([Recorded(cold=True), GOOD])[0].ok


def test_a_call_that_began_and_never_ended_was_killed() -> None:
    (check,) = symptoms([GOOD, Recorded(is_open=True, is_overdue=True)])
    assert not check.ok
    assert "1 of 2 began and never ended" in check.found
    assert symptoms([Recorded(is_open=True)])[0].ok
