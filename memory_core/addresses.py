"""Where an address stands: on this machine, inside the private network, or outside."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

# Named, and not what `is_private` says: that counts documentation and benchmarking networks, which differs by release.
_INSIDE = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/32", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
            *("::/128", "::1/128", "fc00::/7", "fe80::/10"),
        ),
    )
)
_SUFFIXES = (".svc", ".cluster.local", ".internal", ".local", ".lan", ".home.arpa", ".localhost")
_LABELS = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")


def is_inside(address: str) -> bool:
    """Say whether a server's address is this machine's, a private one, or a name that only a private network has.

    Inside are loopback, private, link-local and unique local addresses in every spelling a resolver reads, names of one
    label (a Kubernetes service), and names under svc, cluster.local, internal, local, lan, home.arpa or localhost. Nothing
    is looked up, and what cannot be read is outside.
    """
    try:
        host = urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    number = _as_number(host)
    if number is not None:
        return any(number in network for network in _INSIDE if network.version == number.version)
    name = host.removesuffix(".")
    if not _LABELS.fullmatch(name):
        return False
    if "." not in name:
        return name in (host, "localhost")  # with a dot after it, one label is a top-level domain
    return name.endswith(_SUFFIXES)


def is_loopback(host: str | None) -> bool:
    """Say whether a host or an address is this machine's own, which no name server is asked about."""
    if host == "localhost":
        return True
    try:
        return host is not None and ip_address(host).is_loopback
    except ValueError:
        return False


def _as_number(host: str) -> IPv4Address | IPv6Address | None:
    try:
        number = ip_address(host)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))  # 127.1, 2130706433, 0x7f.1: as resolvers read them
        except (OSError, ValueError):
            return None
    return number.ipv4_mapped or number if isinstance(number, IPv6Address) else number
