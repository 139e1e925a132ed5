"""Who it is that asks, by the cookie in which Streamlit keeps what the provider said at the sign-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st
from starlette.requests import HTTPConnection
from streamlit import auth_util
from streamlit.errors import StreamlitSecretNotFoundError
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from memory_core.addresses import is_loopback
from memory_core.config import Settings
from memory_core.errors import Refusal, Refused
from memory_core.roles import Identity
from memory_core.rules.claims import identity_of
from memory_core.rules.sign_in import SignIn, sign_in_of
from pages.web.door import name_in
from pages.web.signed_out import SIGNED_OUT

NOBODY = Refusal(rule="somebody_is_signed_in", field="sign-in", reason="sign in first")


_decided: list[SignIn | None] = []
_began: list[datetime] = []
BEHIND = timedelta(seconds=30)  # by which a provider's clock may be behind ours


def decide_sign_in() -> SignIn | None:
    """Settle for the life of this process whether there is a sign-in: Streamlit reads its secrets anew when they change."""
    _decided[:] = [_configured()]
    _began[:] = [datetime.now(UTC)]
    return _decided[0]


def sign_in() -> SignIn | None:
    """Return the sign-in of this process, None without one; raises `Refused` for an [auth] section that cannot be used."""
    return _decided[0] if _decided else _configured()


def _configured() -> SignIn | None:
    try:
        if "auth" not in st.secrets:
            return None
        section = st.secrets["auth"]
    except StreamlitSecretNotFoundError as error:
        if error.error_id == "no-secrets-found":
            return None
        reason = "cannot be read; mend them and start again"
        raise Refused(Refusal(rule="secrets_are_readable", field="secrets.toml", reason=reason)) from None
    read = sign_in_of(section, port=int(st.get_option("server.port")))
    if isinstance(read, Refusal):
        raise Refused(read)
    return read


def who(claims: Mapping[str, Any], *, settings: Settings) -> Identity | Refusal:
    """Return who somebody is by the claims of their sign-in, or why that is not known (any more).

    To what `identity_of` asks this adds that the token was for this client, which Authlib leaves open where a provider
    names an authorised party beside another audience, and that they have not signed out since, in whichever tab. Who has
    is known to this process only, and so a restart ends every sign-in.
    """
    by = sign_in()
    if by is None:
        return NOBODY
    audience = claims.get("aud")
    if by.client_id not in (audience if isinstance(audience, list) else [audience]):
        return Refusal(
            rule="sign_in_is_for_us", field="sign-in", reason="the provider meant somebody else's application"
        )
    if SIGNED_OUT.has(claims):
        return Refusal(rule="session_is_not_over", field="sign-in", reason="you signed out; sign in again")
    session = timedelta(hours=settings.memory_session_hours)
    since = _began[0] - BEHIND if _began else None
    return identity_of(claims, now=datetime.now(UTC), session=session, since=since)


def fetcher(connection: HTTPConnection, *, settings: Settings) -> Identity | None:
    """Return who fetches one of our own addresses, None for the one local user; raises `Refused` for anybody else.

    Without a sign-in that is whoever is on this machine and calls it by its own name: a request that a proxy passed on has
    another's address, and one from a page elsewhere whose name was pointed here has that name.
    """
    by = sign_in()
    if by is None:
        address = connection.client.host if connection.client else None
        if not is_loopback(address) or not is_loopback(name_in(connection.headers.get("host", ""))):
            raise Refused(NOBODY)
        return None
    found = who(claims_in(connection.cookies, origin=by.origin), settings=settings)
    if isinstance(found, Refusal):
        raise Refused(found)
    return found


def claims_in(cookies: Mapping[str, str], *, origin: str) -> Mapping[str, Any]:
    """Return the claims in Streamlit's cookie; empty where it is missing, forged, too old or another server's."""

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        return (
            None
            if value is None
            else decode_signed_value(get_cookie_secret(), name, value.encode("latin-1", "replace"))
        )

    try:
        claims = json.loads(auth_util.get_cookie_with_chunks(signed, USER_COOKIE_NAME) or b"null")
    except ValueError:
        return {}
    if not isinstance(claims, dict) or claims.get("origin") != origin or claims.get("is_logged_in") is not True:
        return {}
    return claims
