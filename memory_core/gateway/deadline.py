"""The time a call may take, waiting included, which its caller may also cut short."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from memory_core.errors import CallCancelled, DeadlineExceeded


class Deadline:
    """A moment by which a call must be over. Thread-safe."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._started = clock()
        self._ends = self._started + seconds
        self._cancelled = threading.Event()
        self._shortening = threading.Lock()

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the call began."""
        return (self._clock() - self._started) * 1000

    def remaining_s(self) -> float:
        """Return the seconds left; 0 once it is over."""
        return 0.0 if self._cancelled.is_set() else max(0.0, self._ends - self._clock())

    def elapsed_s(self) -> float:
        """Return the seconds since the call began."""
        return self._clock() - self._started

    @property
    def is_cancelled(self) -> bool:
        """Say whether it was cut short."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Cut the call short."""
        self._cancelled.set()

    def shorten(self, seconds: float) -> None:
        """End it no later than so many seconds from now."""
        with self._shortening:
            self._ends = min(self._ends, self._clock() + seconds)

    def part(self, seconds: float) -> Deadline:
        """Return a deadline of at most so many seconds that is over with this one, also where this one is cancelled."""
        part = Deadline(min(seconds, self.remaining_s()), clock=self._clock)
        part._cancelled = self._cancelled
        return part

    def check(self) -> None:
        """Raise `CallCancelled` or `DeadlineExceeded` once it is over."""
        if self._cancelled.is_set():
            raise CallCancelled("the call was cancelled")
        if self._clock() >= self._ends:
            raise DeadlineExceeded(
                f"no whole answer within {self.seconds:g} s (MODEL_DEADLINE_S); lower MODEL_MAX_OUTPUT_TOKENS, give it more "
                "time, or give the model more CPU"
            )

    def wait(self, seconds: float) -> None:
        """Wait so long, but no longer than it lasts; raises as `check` does."""
        self.check()
        self._cancelled.wait(min(seconds, self.remaining_s()))
        self.check()
