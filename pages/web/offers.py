"""Files that wait to be fetched: each by whoever asked for it, once, and not for long."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from memory_core.errors import Refusal, Refused
from memory_core.roles import Act, Identity

PATH = "/downloads/"
LIFE_S = 300.0
MOST_BYTES = 256 * 2**20
MOST_BYTES_EACH = 64 * 2**20
MOST_FILES_EACH = 20
MOST_SPENT = 10_000  # addresses of which it is remembered whose they were


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One file, and who may fetch it; `identity` is None for the one local user."""

    content: bytes
    file_name: str
    mime: str
    org_id: str
    act: Act
    identity: Identity | None
    until: float


class Offers:
    """The files that wait, in this process's memory only; thread-safe. Addresses are kept as fingerprints."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._offers: OrderedDict[bytes, Offer] = OrderedDict()  # the oldest first
        self._spent: OrderedDict[bytes, Offer] = OrderedDict()  # without their content, until they would have been old
        self._lock = threading.Lock()

    def offer(
        self, content: bytes, *, file_name: str, mime: str, org_id: str, act: Act, identity: Identity | None
    ) -> str:
        """Keep a file for somebody and return its address; raises `Refused` for one that is too large.

        Where they, or all, have too much waiting, the oldest goes first.
        """
        if len(content) > MOST_BYTES_EACH:
            reason = f"has {len(content):,} bytes, and {MOST_BYTES_EACH:,} can be handed out; leave more out of it"
            raise Refused(Refusal(rule="file_can_be_kept", field="file", reason=reason))
        token = secrets.token_urlsafe(32)
        until = self._clock() + LIFE_S
        with self._lock:
            self._offers[_key(token)] = Offer(
                content=content,
                file_name=file_name,
                mime=mime,
                org_id=org_id,
                act=act,
                identity=identity,
                until=until,
            )
            self._make_room(identity)
        return f"{PATH}{token}"

    def standing(self, token: str, identity: Identity | None) -> Offer | None:
        """Return what waits at an address for somebody, and leave it there; None for anybody else."""
        with self._lock:
            self._forget_old()
            found = self._offers.get(_key(token))
        return found if found is not None and found.identity == identity else None

    def organisation_of(self, token: str) -> str | None:
        """Return whose file waits at an address, or was fetched from it; None where no such address was given out."""
        with self._lock:
            self._forget_old()
            found = self._offers.get(_key(token)) or self._spent.get(_key(token))
        return found.org_id if found else None

    def take(self, token: str, offer: Offer) -> bool:
        """Take a file away; False where somebody was faster."""
        with self._lock:
            self._forget_old()
            if self._offers.get(_key(token)) is not offer:
                return False
            del self._offers[_key(token)]
            self._spent[_key(token)] = replace(offer, content=b"")
            if len(self._spent) > MOST_SPENT:
                self._spent.popitem(last=False)
            return True

    def forget_old(self) -> None:
        """Let go of what nobody has fetched in time."""
        with self._lock:
            self._forget_old()

    def _forget_old(self) -> None:
        now = self._clock()
        for kept in (self._offers, self._spent):
            while kept and next(iter(kept.values())).until <= now:
                kept.popitem(last=False)

    def _make_room(self, identity: Identity | None) -> None:
        self._forget_old()
        theirs = [key for key, offer in self._offers.items() if offer.identity == identity]
        while len(theirs) > MOST_FILES_EACH or self._bytes(theirs) > MOST_BYTES_EACH:
            del self._offers[theirs.pop(0)]
        while self._bytes(self._offers) > MOST_BYTES:
            self._offers.popitem(last=False)

    def _bytes(self, keys: Iterable[bytes]) -> int:
        return sum(len(self._offers[key].content) for key in keys)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


OFFERS = Offers()
