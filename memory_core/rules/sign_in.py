"""Whether an [auth] section can be signed in with, and where the workbench then is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from memory_core.addresses import is_loopback
from memory_core.errors import Refusal

CALLBACK = "/oauth2callback"
SHORTEST_SECRET = 32  # characters
NEEDED = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
PLAIN = "client_kwargs"  # the one table that belongs to the section itself


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """Where those who sign in find the workbench, and as which client it asks the provider."""

    origin: str  # scheme, host and port, as a browser writes it
    client_id: str

    @property
    def host(self) -> str:
        """Return host and port as a browser's Host header has them."""
        return self.origin.partition("://")[2]

    @property
    def is_https(self) -> bool:
        """Say whether browsers reach it encrypted."""
        return self.origin.startswith("https://")


def sign_in_of(section: object, *, port: int) -> SignIn | Refusal:
    """Return what an [auth] section configures, or why it cannot be used; `{port}` in its address is the server's."""
    if not isinstance(section, Mapping):
        return _refused("auth", "must be a section")
    if named := [name for name, value in section.items() if isinstance(value, Mapping) and name != PLAIN]:
        return _refused(
            f"auth.{named[0]}", "is a second provider; the workbench signs in with the one of [auth] itself"
        )
    values: dict[str, str] = {}
    for name in NEEDED:
        value = section.get(name)
        if not isinstance(value, str) or not value.strip():
            return _refused(name, "is missing")
        values[name] = value
    if len(values["cookie_secret"]) < SHORTEST_SECRET:
        return _refused("cookie_secret", f"must have at least {SHORTEST_SECRET} characters, drawn at random")
    for name in ("redirect_uri", "server_metadata_url"):
        if not _is_private(values[name].replace("{port}", str(port))):
            return _refused(name, "must be an https address; http is for this machine's own only")
    address = urlsplit(values["redirect_uri"].replace("{port}", str(port)))
    if address.path != CALLBACK or address.query or address.fragment:
        return _refused("redirect_uri", f"must be the workbench's own address with {CALLBACK} after the host")
    usual = {"http": 80, "https": 443}[address.scheme]
    host = f"[{address.hostname}]" if ":" in str(address.hostname) else str(address.hostname)
    named_port = "" if address.port in (None, usual) else f":{address.port}"
    if f"{address.scheme}://{address.netloc}" != (origin := f"{address.scheme}://{host}{named_port}"):
        return _refused("redirect_uri", f"must be written as browsers write it: {origin}{CALLBACK}")
    return SignIn(origin=origin, client_id=values["client_id"])


def _is_private(address: str) -> bool:
    """Say whether nobody on the way can read what is sent to an address."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for one that is none
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.password is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def _refused(field: str, reason: str) -> Refusal:
    return Refusal(rule="sign_in_is_whole", field=field, reason=reason)
