"""Noticing each sign-out on its way to Streamlit, which takes the cookie from that browser and no more."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.web.door import SIGN_OUT
from pages.web.signed_in import claims_in
from pages.web.signed_out import SIGNED_OUT


class SigningOut:
    """Pass everything on, and end the sign-in of whoever signs out."""

    def __init__(self, app: ASGIApp, *, origin: str) -> None:
        self.app = app
        self.origin = origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == SIGN_OUT and scope["method"] == "GET":
            claims = claims_in(HTTPConnection(scope).cookies, origin=self.origin)
            if claims:
                SIGNED_OUT.add(claims)
        await self.app(scope, receive, send)
