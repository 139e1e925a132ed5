"""A deadline ends when its time is over or its caller gives up, and says which."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import CallCancelled, DeadlineExceeded
from memory_core.gateway.deadline import Deadline


class Seconds:
    """A clock that stands still until it is set forward."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


def test_a_deadline_counts_from_its_making(clock: Seconds) -> None:
    deadline = Deadline(10, clock=clock)
    assert (deadline.remaining_s(), deadline.elapsed_ms()) == (10, 0)
    clock.now += 4
    assert (deadline.remaining_s(), deadline.elapsed_ms()) == (6, 4000)
    deadline.check()


def test_at_its_moment_it_is_over(clock: Seconds) -> None:
    deadline = Deadline(10, clock=clock)
    clock.now += 10
    assert deadline.remaining_s() == 0
    with pytest.raises(DeadlineExceeded, match=r"10 s.*MODEL_DEADLINE_S"):
        deadline.check()
    clock.now += 100
    assert deadline.remaining_s() == 0
    assert deadline.elapsed_ms() == 110_000


def test_a_cancelled_one_has_no_time_left_and_says_that_it_was_cancelled(clock: Seconds) -> None:
    deadline = Deadline(10, clock=clock)
    deadline.cancel()
    assert deadline.remaining_s() == 0
    for _ in range(2):
        with pytest.raises(CallCancelled):
            deadline.check()
        clock.now += 100  # also once its time is over


def test_it_can_be_shortened_and_not_lengthened(clock: Seconds) -> None:
    deadline = Deadline(10, clock=clock)
    deadline.shorten(3)
    assert deadline.remaining_s() == 3
    deadline.shorten(100)
    assert deadline.remaining_s() == 3


def test_waiting_looks_first_whether_it_is_over(clock: Seconds) -> None:
    deadline = Deadline(1, clock=clock)
    clock.now += 1
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        deadline.wait(60)
    assert time.monotonic() - began < 1


def test_waiting_ends_with_the_deadline() -> None:
    deadline = Deadline(0.1)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        deadline.wait(60)
    assert 0.09 < time.monotonic() - began < 2


def test_waiting_ends_when_another_thread_cancels() -> None:
    deadline = Deadline(60)
    threading.Timer(0.1, deadline.cancel).start()
    began = time.monotonic()
    with pytest.raises(CallCancelled):
        deadline.wait(60)
    assert time.monotonic() - began < 2


def test_a_wait_shorter_than_the_deadline_is_waited_out() -> None:
    deadline = Deadline(60)
    began = time.monotonic()
    deadline.wait(0.05)
    assert time.monotonic() - began >= 0.045


@given(seconds=st.floats(0.001, 1e5), steps=st.lists(st.floats(0, 1e4), max_size=10))
def test_what_is_left_and_what_is_gone_are_the_whole(seconds: float, steps: list[float]) -> None:
    clock = Seconds()
    deadline = Deadline(seconds, clock=clock)
    before = deadline.remaining_s()
    for step in steps:
        clock.now += step
        left = deadline.remaining_s()
        assert 0 <= left <= before
        if left:
            assert left + deadline.elapsed_ms() / 1000 == pytest.approx(seconds, abs=1e-6)
        before = left
