"""A way to give up on a run from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """Given to a run, it ends the run once somebody calls `cancel`. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._told: Callable[[], None] | None = None

    @property
    def is_set(self) -> bool:
        """Say whether somebody gave up."""
        return self._is_set

    def cancel(self) -> None:
        """Give up; what is waited for now is left at once."""
        with self._lock:
            self._is_set = True
            told = self._told
        if told is not None:
            told()

    @contextmanager
    def tells(self, told: Callable[[], None]) -> Iterator[None]:
        """Have something called on a cancellation meanwhile, at once where it came before."""
        with self._lock:
            self._told = told
            was_set = self._is_set
        if was_set:
            told()
        try:
            yield
        finally:
            with self._lock:
                self._told = None
