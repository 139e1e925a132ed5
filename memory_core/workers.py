"""Threads kept ready for work in the background: starting one costs more than most of what they do."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import ClassVar


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
