"""How often one address may ask, and that nobody sends us anything large."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MOST_REMEMBERED = 10_000  # addresses; whoever has not asked for longest is forgotten first


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many at once, and then so many a second."""

    at_once: int
    a_second: float


EVERYTHING = Rate(at_once=1500, a_second=50)  # a page that a browser has nothing of yet is about a hundred
STRICTER = {
    "/auth/login": Rate(at_once=60, a_second=1),
    "/oauth2callback": Rate(at_once=60, a_second=1),
    "/downloads/": Rate(at_once=30, a_second=1 / 2),
    "/_stcore/stream": Rate(at_once=120, a_second=2),  # each runs a page's script
}


class Buckets:
    """How many more each address may ask for; an address that has not asked for a while has all."""

    def __init__(self, rate: Rate, *, clock: Callable[[], float] = time.monotonic, most: int = MOST_REMEMBERED) -> None:
        self.rate = rate
        self._clock = clock
        self._most = most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how many, and when that was

    def wait_s(self, address: str) -> float:
        """Take one of an address's; returns 0, or in how many seconds there will be one again."""
        now = self._clock()
        left, then = self._left.get(address, (float(self.rate.at_once), now))
        left = min(self.rate.at_once, left + (now - then) * self.rate.a_second)
        is_there = left >= 1
        self._left[address] = (left - 1 if is_there else left, now)
        self._left.move_to_end(address)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return 0.0 if is_there else (1 - left) / self.rate.a_second


class Limits:
    """Let an address ask so often and no more, and let nobody send a body: nothing here takes one."""

    def __init__(
        self, app: ASGIApp, *, everything: Rate = EVERYTHING, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app = app
        self._everything = Buckets(everything, clock=clock)
        self._stricter = {start: Buckets(rate, clock=clock) for start, rate in STRICTER.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        address, path = address_of(scope), scope["path"]
        stricter = [buckets for start, buckets in self._stricter.items() if path.startswith(start)]
        wait_s = max(buckets.wait_s(address) for buckets in (self._everything, *stricter))
        if wait_s > 0:
            await refuse(scope, receive, send, status=429, said="Too often; wait.\n", retry_after_s=math.ceil(wait_s))
        elif has_body(Headers(scope=scope)):
            await refuse(scope, receive, send, status=413, said="Too large.\n")
        else:
            await self.app(scope, receive, send)


async def refuse(
    scope: Scope, receive: Receive, send: Send, *, status: int, said: str, retry_after_s: int | None = None
) -> None:
    """Answer with a status and a line; a WebSocket is not opened."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = {"Connection": "close"} if status == 413 else {}
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    await PlainTextResponse(said, status_code=status, headers=headers)(scope, receive, send)


def has_body(headers: Headers) -> bool:
    """Say whether a request announces a body."""
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip() != "0"


def address_of(scope: Scope) -> str:
    """Return what a request is counted under: its address, of the sixth version its network."""
    host = scope["client"][0] if scope.get("client") else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
