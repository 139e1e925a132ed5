"""Threads kept ready for work in the background: starting one costs more than most of what they do."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar, TypeVar

Answer = TypeVar("Answer")
LOOK_UP_S = 0.05  # how often somebody who waits looks whether the waiting was given up


class _Worker(threading.Thread):
    """A thread that does one thing after the other; one that is stuck is left behind, and ends with the process."""

    idle: ClassVar[deque[_Worker]] = deque()

    def __init__(self) -> None:
        super().__init__(name="worker", daemon=True)
        self.work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.work.get()()
            self.idle.append(self)


os.register_at_fork(after_in_child=_Worker.idle.clear)  # threads do not live on in a forked child


def in_background(work: Callable[[], None]) -> None:
    """Have work done in another thread; it must not raise."""
    try:
        worker = _Worker.idle.pop()
    except IndexError:
        worker = _Worker()
    worker.work.put(work)


class NotInTime(Exception):
    """What was asked for did not come within its limit; whoever works on it goes on unheard."""


class GivenUp(Exception):
    """Whoever waited was told to give up."""


def within(limit_s: float, ask: Callable[[], Answer], *, given_up: Callable[[], bool] | None = None) -> Answer:
    """Return what `ask` returns or raise what it raises, or `NotInTime` once the limit is over.

    A client's own timeout counts from byte to byte, so a server that trickles would never reach it. `given_up` is asked
    again and again; once it says so, `GivenUp` is raised.
    """
    answers: queue.SimpleQueue[tuple[Answer | None, BaseException | None]] = queue.SimpleQueue()

    def answer() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # also what ends a thread, or nobody would be told
            answers.put((None, error))

    in_background(answer)
    give_up_at = time.monotonic() + limit_s
    while True:
        remaining_s = give_up_at - time.monotonic()
        try:
            value, failure = answers.get(
                timeout=max(0.0, remaining_s if given_up is None else min(remaining_s, LOOK_UP_S))
            )
        except queue.Empty:
            if given_up is not None and given_up():
                raise GivenUp from None
            if time.monotonic() >= give_up_at:
                raise NotInTime from None
            continue
        if failure is not None:
            raise failure
        return value  # type: ignore[return-value]
