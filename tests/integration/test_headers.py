"""Every answer says what a page may load, that nobody may frame it, and that a browser keeps nothing of it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from streamlit import file_util

from pages.web.headers import Headers, inline_scripts, policy

PAGE = Path(file_util.get_static_dir()) / "index.html"


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    response: Response = PlainTextResponse("x", status_code=404 if scope["path"] == "/not-here" else 200)
    if scope["path"].startswith("/static/"):
        response.headers["Cache-Control"] = "public, immutable, max-age=31536000"
    elif scope["path"] == "/media":
        response.headers["Cache-Control"] = "public, max-age=60"
    elif scope["path"] == "/cookies":
        response.set_cookie("_streamlit_user", "signed", httponly=True, samesite="lax")
        response.set_cookie("other", "x", secure=True)
    await response(scope, receive, send)


def client(origin: str | None) -> TestClient:
    return TestClient(Headers(answering, page=PAGE, origin=origin), base_url=origin or "http://127.0.0.1:8501")


def directives(of: str) -> dict[str, list[str]]:
    parts = [one.split() for one in of.split("; ")]
    return {name: values for name, *values in parts}


@pytest.mark.parametrize("path", ["/", "/not-here", "/static/js/x.js", "/media", "/downloads/x", "/cookies"])
@pytest.mark.parametrize("origin", [None, "https://memory.example.test"])
def test_every_answer_has_them(origin: str | None, path: str) -> None:
    headers = client(origin).get(path).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert ("strict-transport-security" in headers) is (origin is not None)


def test_a_browser_keeps_code_and_nothing_else() -> None:
    for path in ("/", "/not-here", "/media", "/downloads/x"):
        assert client(None).get(path).headers["cache-control"] == "no-store"
    assert "immutable" in client(None).get("/static/js/x.js").headers["cache-control"]


@pytest.mark.parametrize("origin", [None, "https://memory.example.test", "http://127.0.0.1:8501"])
def test_the_policy_names_no_host_but_its_own(origin: str | None) -> None:
    said = directives(policy(["x"], origin=origin))
    assert said["default-src"] == ["'none'"]
    assert said["base-uri"] == said["form-action"] == ["'self'"]
    assert not {"'unsafe-eval'", "'unsafe-inline'", "blob:", "data:", "*"} & set(said["script-src"])
    own = {f"ws{origin.removeprefix('http')}"} if origin else set()
    hosts = {value for values in said.values() for value in values if not value.startswith("'")} - {"data:", "blob:"}
    assert hosts == own
    assert {"object-src", "worker-src", "frame-src", "child-src"}.isdisjoint(said)  # so that 'none' counts


def test_of_inline_scripts_streamlits_own_one_is_known() -> None:
    (script,) = inline_scripts(PAGE.read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in client(None).get("/").headers["content-security-policy"]
    assert len(re.findall(r"<script[^>]*>", PAGE.read_text(encoding="utf-8"))) == 2  # the other one has a source


def test_where_browsers_come_encrypted_cookies_do_only_so() -> None:
    sent = client("https://memory.example.test").get("/cookies").headers.get_list("set-cookie")
    assert all(one.lower().count("; secure") == 1 for one in sent)
    assert all(
        "; secure" not in one.lower()
        for one in client("http://127.0.0.1:8501").get("/cookies").headers.get_list("set-cookie")[:1]
    )
