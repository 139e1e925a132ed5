"""A queue serves so many at once, lets so many wait, and serves them in the order in which they came."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.config import Provider
from memory_core.errors import CallCancelled, DeadlineExceeded, ModelBusy
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.queueing import ModelQueue, Slot, queue_for


def taken(queue: ModelQueue, seconds: float = 10) -> Slot:
    return queue.acquire(Deadline(seconds), what="m")


def until(condition: Callable[[], object], limit_s: float = 10) -> None:
    ends = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.002)


def is_free(queue: ModelQueue) -> bool:
    """Say whether a slot can be had at once; it is given back."""
    try:
        slot = taken(queue, 0.001)
    except DeadlineExceeded:
        return False
    slot.release()
    return True


@given(slots=st.integers(1, 6))
@settings(max_examples=6, deadline=None)
def test_as_many_as_there_are_slots_are_served_at_once(slots: int) -> None:
    queue = ModelQueue(slots=slots)
    held = [taken(queue) for _ in range(slots)]
    with pytest.raises(DeadlineExceeded, match="no turn at m"):
        taken(queue, 0.01)
    held[0].release()
    assert is_free(queue)


def test_a_slot_is_given_back_once() -> None:
    queue = ModelQueue(slots=1)
    slot = taken(queue)
    for _ in range(3):
        slot.release()
    again = taken(queue)
    assert not is_free(queue)
    slot.release()  # of the one before: it is not his any more
    assert not is_free(queue)
    again.release()
    assert is_free(queue)


def test_where_too_many_wait_already_the_next_is_refused_at_once() -> None:
    queue = ModelQueue(slots=1, most_waiting=2)
    slot = taken(queue)
    with ThreadPoolExecutor(2) as side:
        waiting = [side.submit(taken, queue) for _ in range(2)]
        until(lambda: len(queue._waiting) == 2)
        began = time.monotonic()
        with pytest.raises(ModelBusy, match="2 calls wait for m"):
            taken(queue)
        assert time.monotonic() - began < 1
        slot.release()
        for one in waiting:
            one.result(timeout=10).release()
    assert is_free(queue)


def test_nobody_waits_where_nobody_may() -> None:
    queue = ModelQueue(slots=1, most_waiting=0)
    slot = taken(queue)
    with pytest.raises(ModelBusy):
        taken(queue)
    slot.release()
    assert is_free(queue)


def test_first_come_first_served() -> None:
    queue = ModelQueue(slots=1)
    slot = taken(queue)
    served: list[int] = []

    def turn(number: int) -> None:
        mine = taken(queue)
        served.append(number)
        mine.release()

    with ThreadPoolExecutor(10) as side:
        for number in range(10):
            side.submit(turn, number)
            until(lambda number=number: len(queue._waiting) == number + 1)
        slot.release()
    assert served == list(range(10))


def test_who_comes_while_others_wait_does_not_overtake_them() -> None:
    queue = ModelQueue(slots=1)
    slot = taken(queue)
    with ThreadPoolExecutor(1) as side:
        waiting = side.submit(taken, queue)
        until(lambda: queue._waiting)
        slot.release()  # it is the other's now, whether it has noticed or not
        with pytest.raises(DeadlineExceeded):
            taken(queue, 0.01)
        waiting.result(timeout=10).release()
    assert is_free(queue)


@pytest.mark.parametrize("how", ["deadline", "cancelled"])
def test_who_gives_up_leaves_his_place_to_those_behind(how: str) -> None:
    queue = ModelQueue(slots=1)
    slot = taken(queue)
    leaving = Deadline(0.1 if how == "deadline" else 60)
    with ThreadPoolExecutor(2) as side:
        first = side.submit(queue.acquire, leaving, what="m")
        until(lambda: len(queue._waiting) == 1)
        second = side.submit(taken, queue)
        until(lambda: len(queue._waiting) == 2 or first.done())
        if how == "cancelled":
            leaving.cancel()
        with pytest.raises(DeadlineExceeded if how == "deadline" else CallCancelled):
            first.result(timeout=10)
        slot.release()
        second.result(timeout=10).release()
    assert is_free(queue)


@given(
    slots=st.integers(1, 3),
    waits=st.lists(st.tuples(st.sampled_from([0.001, 0.01, 0.05, 0.06, 5.0]), st.booleans()), min_size=1, max_size=12),
)
@settings(max_examples=15, deadline=None)
def test_no_slot_is_lost_or_doubled_whoever_gives_up_when(slots: int, waits: list[tuple[float, bool]]) -> None:
    queue = ModelQueue(slots=slots)
    now, most = 0, 0
    counting = threading.Lock()

    def call(seconds: float, is_cancelled: bool) -> None:
        nonlocal now, most
        deadline = Deadline(seconds)
        if is_cancelled:
            threading.Timer(0.01, deadline.cancel).start()
        try:
            slot = queue.acquire(deadline, what="m")
        except (DeadlineExceeded, CallCancelled, ModelBusy):
            return
        with counting:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with counting:
            now -= 1
        slot.release()

    with ThreadPoolExecutor(len(waits)) as side:
        for one in [side.submit(call, *wait) for wait in waits]:
            one.result(timeout=20)
    assert most <= slots
    held = [taken(queue, 1) for _ in range(slots)]
    assert not is_free(queue)
    for slot in held:
        slot.release()


def test_a_queue_is_one_model_at_one_address() -> None:
    queue = queue_for(Provider.OLLAMA, "http://a.example", "m")
    assert queue_for(Provider.OLLAMA, "http://a.example", "m") is queue
    for other in (
        queue_for(Provider.OPENAI, "http://a.example", "m"),
        queue_for(Provider.OLLAMA, "http://b.example", "m"),
        queue_for(Provider.OLLAMA, "http://a.example", "n"),
    ):
        assert other is not queue
