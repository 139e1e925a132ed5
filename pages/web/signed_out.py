"""Which sign-ins were ended by signing out: Streamlit takes the cookie from one browser, and asks no other tab."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_S = 31 * 24 * 3600.0  # of a cookie; after that it signs nobody in anyway
MOST = 100_000
TELLING = ("iss", "sub", "iat", "nonce")  # one sign-in from every other


class SignedOut:
    """The sign-ins that were ended in this process; thread-safe. A restart ends all others."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._until: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, claims: Mapping[str, Any]) -> None:
        """Note that whoever signed in so has signed out."""
        now = self._clock()
        with self._lock:
            self._until[_digest(claims)] = now + LONGEST_S
            while self._until and (len(self._until) > self._most or next(iter(self._until.values())) <= now):
                self._until.popitem(last=False)

    def has(self, claims: Mapping[str, Any]) -> bool:
        """Say whether this sign-in is over."""
        with self._lock:
            return _digest(claims) in self._until


def _digest(claims: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps([claims.get(name) for name in TELLING], default=str).encode()).digest()


SIGNED_OUT = SignedOut()
