"""Which addresses are answered at all, under which name of the server, and to whose pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import config

from memory_core.addresses import is_loopback
from memory_core.rules.sign_in import SignIn
from pages.web.limits import refuse

NOTHING = "There is nothing here, or not any more.\n"
HEALTH = "/_stcore/health"
STREAM = "/_stcore/stream"
SIGN_OUT = "/auth/logout"
ALWAYS = ("/", HEALTH, "/_stcore/host-config", "/favicon.png", "/manifest.json")
SIGNING_IN = ("/auth/login", SIGN_OUT, "/oauth2callback")
NAMED = re.compile(r"/(?:static(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+|downloads/[A-Za-z0-9_-]{43})")


class Door:
    """Answer the addresses that the workbench uses, under its own name, and nothing else.

    So uploads, media, components, metrics, the agents' interface and whatever Streamlit adds stay closed, and no address
    with an encoding, a backslash or `..` in it is looked at.
    """

    def __init__(self, app: ASGIApp, *, pages: Iterable[str], sign_in: SignIn | None) -> None:
        self.app = app
        self.sign_in = sign_in
        self.exact = {*ALWAYS, *(f"/{page}" for page in pages), *(SIGNING_IN if sign_in else ())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self.opens(scope):
            await self.app(scope, receive, send)
        else:
            await refuse(scope, receive, send, status=404, said=NOTHING)

    def opens(self, scope: Scope) -> bool:
        """Say whether a request is one that the workbench answers."""
        headers, path = Headers(scope=scope), scope["path"]
        if scope.get("raw_path", path.encode("latin-1", "replace")) != path.encode("latin-1", "replace"):
            return False  # something in it was encoded
        if scope["type"] == "websocket":
            return path == STREAM and self.knows(headers) and self.is_own(headers)
        if scope["method"] not in ("GET", "HEAD"):
            return False
        if path == HEALTH:
            return True  # whoever watches over the server calls it by its bare address
        if path in SIGNING_IN and scope["method"] != "GET":
            return False  # a HEAD would sign out as well, and be noticed by nobody
        if path == SIGN_OUT and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False  # nobody else's page signs anybody out
        return (path in self.exact or NAMED.fullmatch(path) is not None) and self.knows(headers)

    def knows(self, headers: Headers) -> bool:
        """Say whether a request calls the server by its name; another may be a page elsewhere that points here."""
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            return False
        return hosts[0].lower() == self.sign_in.host if self.sign_in else is_loopback(name_in(hosts[0]))

    def is_own(self, headers: Headers) -> bool:
        """Say whether it is the workbench's own page that opens a WebSocket."""
        own = self.sign_in.origin if self.sign_in else f"http://{headers['host'].lower()}"
        return headers.getlist("origin") == [own]


def name_in(host: str) -> str | None:
    """Return the name or address in a Host header, or None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises for one that is none
    except ValueError:
        return None
    is_bare = parts.netloc == host and "@" not in host
    return parts.hostname if is_bare else None


def is_bypassed() -> bool:
    """Say whether Streamlit was started by its own command, so that neither door nor limits nor headers are before a page."""
    return config._server_mode not in (None, "asgi-server")


def page_names(folder: Path) -> list[str]:
    """Return by which names Streamlit serves the pages of a folder."""
    return [found[1] for one in folder.glob("*.py") if (found := re.fullmatch(r"\d+_(\w+)", one.stem))]
