"""File locks between processes that a forked child does not keep."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_open: set[int] = set()


@contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Wait for the lock and hold it alone; yields its descriptor.

    Two threads exclude each other as two processes do. The kernel drops the lock of a killed process.
    """
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        release(descriptor)


def shared(path: Path) -> int:
    """Hold the lock together with others; returns the descriptor to release."""
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except BaseException:
        release(descriptor)
        raise
    return descriptor


def is_last(descriptor: int) -> bool:
    """Say whether nobody else holds a shared lock; it is to be released either way."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(descriptor: int) -> None:
    """Give a lock up and close its descriptor."""
    # Unlocked by name: closing alone would leave it with a child that was forked meanwhile.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    _open.discard(descriptor)
    os.close(descriptor)


def _opened(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    _open.add(descriptor)
    return descriptor


def _forget_in_child() -> None:
    # Closing is not unlocking: the parent keeps its locks, and they end with the parent and not with this child.
    for descriptor in _open:
        os.close(descriptor)
    _open.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_in_child)
