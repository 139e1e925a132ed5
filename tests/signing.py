"""A sign-in as a test needs it: the secrets that configure one, the cookie in which Streamlit keeps it, and what is none."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit import config
from streamlit.config_option import ConfigOption
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

COOKIE = "_streamlit_user"
COOKIE_SECRET = "only-for-tests-only-for-tests-only"
CLIENT_ID, CLIENT_SECRET = "workbench", "of-the-tests-of-the-tests-of-the-tests"
ISSUER = "https://login.example.test"


def secrets(folder: Path, *, origin: str, provider: str = ISSUER) -> Path:
    """Write an [auth] section as an operator does, below a home or a project; returns the file."""
    file = folder / ".streamlit" / "secrets.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"""[auth]
redirect_uri = "{origin}/oauth2callback"
cookie_secret = "{COOKIE_SECRET}"
client_id = "{CLIENT_ID}"
client_secret = "{CLIENT_SECRET}"
server_metadata_url = "{provider}/.well-known/openid-configuration"
client_kwargs = {{ scope = "openid email profile", prompt = "login" }}
""",
        encoding="utf-8",
    )
    return file


@contextmanager
def configured(file: Path | None) -> Iterator[None]:
    """Have Streamlit read its secrets from a file in this process, or from none."""
    before = config.get_option("secrets.files")
    _read([str(file)] if file else [])
    yield
    _read(before)


def _read(files: list[str]) -> None:
    config.set_option("secrets.files", files, ConfigOption.STREAMLIT_DEFINITION)
    st.secrets._reset()


def claims(subject: str, *, origin: str, **others: Any) -> dict[str, Any]:
    """Return what Streamlit keeps of a sign-in just now; None takes a claim out."""
    usual = {
        "iss": ISSUER,
        "sub": subject,
        "aud": CLIENT_ID,
        "iat": int(time.time()),
        "exp": int(time.time()) + 3540,
        "nonce": f"nonce-of-{subject}",
        "email": f"{subject}@example.test",
        "email_verified": True,
        "origin": origin,
        "is_logged_in": True,
        "provider": "default",
    }
    return {name: value for name, value in (usual | others).items() if value is not None}


def cookie(of: object, *, secret: str = COOKIE_SECRET, name: str = COOKIE) -> str:
    """Return the cookie's value for claims."""
    return create_signed_value(secret, name, json.dumps(of)).decode()


def signed(of: object, *, secret: str = COOKIE_SECRET, name: str = COOKIE) -> str:
    """Return a Cookie header with that cookie."""
    return f"{COOKIE}={cookie(of, secret=secret, name=name)}"


def strangers(subject: str, *, origin: str, issuer: str = ISSUER) -> dict[str, str]:
    """Return Cookie headers that sign nobody in, and least of all a subject whose cookie would."""

    right = claims(subject, origin=origin, iss=issuer)

    def ours(**others: Any) -> str:
        return signed({name: value for name, value in (right | others).items() if value is not None})

    unsigned = base64.urlsafe_b64encode(json.dumps(json.dumps(right)).encode()).decode().rstrip("=")
    return {
        "an empty cookie": f"{COOKIE}=",
        "a cookie of nothing": f"{COOKIE}=null",
        "chunks that are not there": f"{COOKIE}=chunks-3",
        "signed chunks that are not there": f"{COOKIE}={create_signed_value(COOKIE_SECRET, COOKIE, 'chunks-3').decode()}",
        "no signature": f"{COOKIE}={unsigned}",
        "a made-up signature": f"{COOKIE}={unsigned}.aaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "another server's signature": signed(right, secret="x" * 40),
        "another cookie's signature": signed(right, name="_streamlit_user_tokens"),
        "another server's cookie": ours(origin="https://other.example.test"),
        "somebody unknown": ours(sub="mallory"),
        "the same subject of another issuer": ours(iss="https://evil.example.test"),
        "a token for another client": ours(aud="another"),
        "a token for other clients": ours(aud=["another", "third"], azp=CLIENT_ID),
        "a token for nobody": ours(aud=None),
        "a sign-in nine hours ago": ours(iat=int(time.time()) - 9 * 3600),
        "a sign-in tomorrow": ours(iat=int(time.time()) + 86400),
        "a sign-in without a time": ours(iat=None),
        "a sign-in at no time": ours(iat="now"),
        "an address that nobody looked at": ours(email_verified=False),
        "not signed in": ours(is_logged_in=False),
        "claims that are a list": signed([right]),
        "no subject": ours(sub=None),
        "no issuer": ours(iss=None),
    }
