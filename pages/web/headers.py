"""The headers of every answer: what a page may load, who may frame it, and what a browser may keep."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FEATURES = ("camera", "clipboard-read", "display-capture", "geolocation", "microphone", "payment", "serial", "usb")
YEAR_S = 365 * 24 * 3600


class Headers:
    """Answer as the application does, with the headers of this module; `origin` is where browsers find the workbench."""

    def __init__(self, app: ASGIApp, *, page: Path, origin: str | None) -> None:
        self.app = app
        self.is_https = origin is not None and origin.startswith("https://")
        self.fixed = {
            "Content-Security-Policy": policy(inline_scripts(page.read_text(encoding="utf-8")), origin=origin),
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": ", ".join(f"{feature}=()" for feature in FEATURES),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        if self.is_https:
            self.fixed["Strict-Transport-Security"] = f"max-age={YEAR_S}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self.fixed)
                if "immutable" not in headers.get(
                    "Cache-Control", ""
                ):  # as Streamlit says of code named by its content
                    headers["Cache-Control"] = "no-store"
                if self.is_https:
                    message["headers"] = [(name, secured(name, value)) for name, value in message["headers"]]
            await send(message)

        await self.app(scope, receive, sent)


def policy(inline: Iterable[str], *, origin: str | None) -> str:
    """Return the content security policy: nothing from elsewhere, and of inline scripts only those of Streamlit's page.

    Streamlit writes its styles into the page as it goes, and counts in WebAssembly. `origin` is named for its WebSocket,
    which 'self' does not cover in every browser.
    """
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in inline]
    socket = [f"ws{origin.removeprefix('http')}"] if origin else []
    return "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src 'self' 'wasm-unsafe-eval'", *hashes]),
            "style-src 'self' 'unsafe-inline'",
            "font-src 'self' data:",
            "img-src 'self' data: blob:",
            " ".join(["connect-src 'self'", *socket]),
            "manifest-src 'self'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    )


def inline_scripts(page: str) -> list[str]:
    """Return the text of each script that stands in a page itself."""
    return re.findall(r"<script>(.*?)</script>", page, re.DOTALL)


def secured(name: bytes, value: bytes) -> bytes:
    """Return a header's value; that of a cookie so that browsers send it encrypted only."""
    if name.lower() != b"set-cookie" or b"; secure" in value.lower():
        return value
    return value + b"; Secure"
