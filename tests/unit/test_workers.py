"""Waiting for another thread ends with its answer, its error, the limit or a word to give up; whichever comes first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from waiting import until

from memory_core.workers import LOOK_UP_S, GivenUp, NotInTime, in_background, within

NEVER_S = 60.0
SLACK_S = 1.0  # of a busy machine


@pytest.fixture
def hangs() -> Iterator[Callable[[], bool]]:
    """Something that hangs until the test is over."""
    over = threading.Event()
    yield lambda: over.wait(NEVER_S)
    over.set()


@contextmanager
def taking(least_s: float, most_s: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert least_s <= time.monotonic() - began < most_s


def raising(error: BaseException) -> Callable[[], Any]:
    def ask() -> None:
        raise error

    return ask


def test_what_is_answered_is_returned(subtests: pytest.Subtests) -> None:
    for answer in ("an answer", None, False, 0, [], ValueError("as a value")):
        with subtests.test(repr(answer)):
            assert within(NEVER_S, lambda answer=answer: answer) is answer
            assert within(NEVER_S, lambda answer=answer: answer, given_up=lambda: False) is answer


@pytest.mark.parametrize(
    "error", [ValueError("wrong"), KeyboardInterrupt(), SystemExit(3), GeneratorExit(), NotInTime()]
)
def test_whatever_is_raised_is_raised_where_it_is_waited_for(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        within(NEVER_S, raising(error))
    assert caught.value is error


def test_it_is_waited_in_another_thread_than_the_work_is_done_in() -> None:
    assert within(NEVER_S, threading.get_ident) != threading.get_ident()


@pytest.mark.parametrize("given_up", [None, lambda: False])
@pytest.mark.parametrize("limit_s", [-1.0, 0.0, 0.12])
def test_once_the_limit_is_over_nobody_waits_any_longer(
    limit_s: float, given_up: Callable[[], bool] | None, hangs: Callable[[], bool]
) -> None:
    with taking(max(0.0, limit_s), max(0.0, limit_s) + SLACK_S), pytest.raises(NotInTime):
        within(limit_s, hangs, given_up=given_up)


def test_what_comes_after_the_limit_is_heard_by_nobody_and_disturbs_nothing() -> None:
    go, done = threading.Event(), threading.Event()

    def late() -> str:
        go.wait(NEVER_S)
        done.set()
        raise ValueError("too late to be told")

    with pytest.raises(NotInTime):
        within(0.01, late)
    go.set()
    assert done.wait(10)
    assert within(NEVER_S, lambda: "another's answer") == "another's answer"


def test_a_word_to_give_up_ends_the_waiting_long_before_the_limit(hangs: Callable[[], bool]) -> None:
    gave_up = threading.Event()
    with ThreadPoolExecutor() as others:
        waiting = others.submit(within, NEVER_S, hangs, given_up=gave_up.is_set)
        time.sleep(0.01)
        assert not waiting.done()
        with taking(0, LOOK_UP_S + SLACK_S):
            gave_up.set()
            assert isinstance(waiting.exception(10), GivenUp)


def test_what_was_given_up_beforehand_is_not_waited_for(hangs: Callable[[], bool]) -> None:
    with taking(0, LOOK_UP_S + SLACK_S), pytest.raises(GivenUp):
        within(NEVER_S, hangs, given_up=lambda: True)


def test_giving_up_is_told_from_being_late(hangs: Callable[[], bool]) -> None:
    with pytest.raises(GivenUp):
        within(0.0, hangs, given_up=lambda: True)


def test_threads_are_used_again_once_they_are_free() -> None:
    used = set()
    for _ in range(50):
        used.add(within(NEVER_S, threading.get_ident))
    assert len(used) < 25


def test_a_thread_that_is_stuck_holds_up_nobody_else(hangs: Callable[[], bool]) -> None:
    for _ in range(3):
        with pytest.raises(NotInTime):
            within(0.0, hangs)
    with taking(0, SLACK_S):
        assert within(NEVER_S, lambda: "at once") == "at once"


def test_many_who_wait_at_once_each_get_their_own_answer() -> None:
    with ThreadPoolExecutor(16) as others:
        asked = [others.submit(within, NEVER_S, lambda number=number: number * number) for number in range(200)]
        assert [one.result(10) for one in asked] == [number * number for number in range(200)]


def test_work_in_the_background_is_done_and_waited_for_by_nobody(hangs: Callable[[], bool]) -> None:
    done = threading.Event()
    with taking(0, SLACK_S):
        in_background(lambda: done.set() if hangs() else None)
    assert not done.is_set()
    in_background(done.set)
    until(done.is_set)
