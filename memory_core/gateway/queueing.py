"""The queue before a model: as many calls at once as it serves, a bounded number waiting, first come first served."""

from __future__ import annotations

import threading
from collections import deque
from functools import cache

from memory_core.config import Provider
from memory_core.errors import DeadlineExceeded, ModelBusy
from memory_core.gateway.deadline import Deadline

# An Ollama on a CPU serves one call at a time; a hosted model several.
SLOTS = {Provider.OLLAMA: 1, Provider.OPENAI: 4}
MOST_WAITING = 32
LOOK_UP_S = 0.05  # how often a waiting call looks whether it was cancelled


class Slot:
    """One of the calls that a model serves at once, given back with `release`. Thread-safe."""

    def __init__(self, queue: ModelQueue) -> None:
        self._queue = queue
        self._is_free = threading.Lock()
        self._is_released = False

    def release(self) -> None:
        """Give it to whoever waits; does nothing the second time."""
        with self._is_free:
            if self._is_released:
                return
            self._is_released = True
        self._queue.give_back()


class ModelQueue:
    """The queue before one model of one server, in this process. Thread-safe."""

    def __init__(self, *, slots: int, most_waiting: int = MOST_WAITING) -> None:
        self._free = slots
        self._most_waiting = most_waiting
        self._waiting: deque[threading.Event] = deque()
        self._changing = threading.Lock()

    def acquire(self, deadline: Deadline, *, what: str) -> Slot:
        """Wait for a slot.

        Raises `ModelBusy` at once where too many wait, else as the deadline does.
        """
        turn = threading.Event()
        with self._changing:
            if self._free and not self._waiting:
                self._free -= 1
                return Slot(self)
            if len(self._waiting) >= self._most_waiting:
                raise ModelBusy(f"{len(self._waiting)} calls wait for {what} already; try again when it is less busy")
            self._waiting.append(turn)
        try:
            while not turn.wait(LOOK_UP_S):
                deadline.check()
        except BaseException as error:
            with self._changing:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    came_too_late = False
                else:
                    came_too_late = True
            if came_too_late:
                self.give_back()
            if isinstance(error, DeadlineExceeded):
                raise DeadlineExceeded(
                    f"no turn at {what} within {deadline.seconds:g} s: other calls keep it"
                ) from None
            raise
        return Slot(self)

    def give_back(self) -> None:
        """Hand a slot to the call that has waited longest, or keep it free."""
        with self._changing:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


@cache
def queue_for(provider: Provider, address: str, model: str) -> ModelQueue:
    """Return this process's queue before a model, the same for every organisation."""
    return ModelQueue(slots=SLOTS[provider])  # of one process; several share an Ollama's own queue
