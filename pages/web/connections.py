"""Connections: how many one address may hold, and for how long one that asks nothing is kept."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_OF_ONE = 200  # of an address: a browser has a few for each tab
SILENT_S = 20.0  # until it has asked for the first time


class Connection(H11Protocol):
    """A connection that is closed where its address has too many, or nothing is asked on it.

    A proxy in front, whose word is taken for who asks, has everybody's and so as many as it needs.
    """

    most_of_one = MOST_OF_ONE
    silent_s = SILENT_S

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or close it at once."""
        super().connection_made(transport)
        self._silent = self.loop.call_later(self.silent_s, self._close_if_silent)
        host = self.client[0] if self.client else ""
        if not is_proxy(host, self.config.forwarded_allow_ips) and self._of(host) > self.most_of_one:
            transport.close()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection on to a page that listens on it: it has asked, and may be silent for hours."""
        self._silent.cancel()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of what is kept of it."""
        self._silent.cancel()
        super().connection_lost(exc)

    def _of(self, host: str) -> int:
        """Count the connections of an address, those that a page listens on among them."""
        every: Iterable[Any] = self.connections
        return sum(bool(one.client) and one.client[0] == host for one in every)

    def _close_if_silent(self) -> None:
        if self.cycle is None:  # no request has come in whole
            self.transport.close()


def is_proxy(host: str, trusted: Iterable[str] | str) -> bool:
    """Say whether an address is one of the proxies' that FORWARDED_ALLOW_IPS names, as addresses or networks."""
    named = trusted.split(",") if isinstance(trusted, str) else trusted
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        return any(address in network for network in _networks(named) if network.version == address.version)
    return False


def _networks(named: Iterable[str]) -> Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for one in named:
        with suppress(ValueError):
            yield ipaddress.ip_network(one.strip(), strict=False)
