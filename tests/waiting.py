"""Waiting for a server that a test has started."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable


def until_it_answers(url: str, *, limit_s: float = 60) -> None:
    """Wait until a workbench answers at an address; fails the test once the limit is over."""
    until = time.monotonic() + limit_s
    while True:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except OSError:
            assert time.monotonic() < until, f"nothing answered at {url} within {limit_s:g} s"
            time.sleep(0.2)


def until(holds: Callable[[], bool], *, limit_s: float = 10) -> None:
    """Wait until a condition holds; fails the test once the limit is over."""
    over = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < over, f"it did not hold within {limit_s:g} s"
        time.sleep(0.01)
