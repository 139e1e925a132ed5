"""On a server that nobody has signed in to, no address has a word about anybody; a sign-in that is none lets nobody in."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import MagicMock
from urllib.parse import parse_qs, urlsplit

import httpx
import lying
import pytest
from browser.conftest import started, stopped
from conftest import Database
from joserfc import jwt
from joserfc.jwk import OctKey
from signing import COOKIE, COOKIE_SECRET, claims, secrets, signed, strangers
from streaming import page
from streamlit.web.server.starlette.starlette_app import create_streamlit_routes
from streamlit.web.server.starlette.starlette_routes import (
    create_app_static_serving_routes,
    create_script_health_routes,
)
from websockets.exceptions import InvalidStatus

from memory_core import Kind, MemoryStore, Origin, Subject
from memory_core.config import settings
from memory_core.membership import Members
from memory_core.roles import Identity, Role
from pages.web.door import NOTHING, page_names

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["", *sorted(page_names(ROOT / "pages"))]
MARKER = "zanzibar-quetzal"
ORGANISATION = "acme-of-the-marker"
TELLING = [MARKER.encode(), b"Greta Greyford", b"c-4711", ORGANISATION.encode(), b"user:ines"]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A workbench with a sign-in, what it logged, and the provider it believes."""

    url: str
    provider: lying.Provider
    log: Path

    def cookie(self, subject: str = "dpo", **others: object) -> dict[str, str]:
        """Return the cookie of a good sign-in."""
        sent = signed(claims(subject, origin=self.url, **{"iss": self.provider.issuer} | others))
        return {COOKIE: sent.partition("=")[2]}


@pytest.fixture(scope="module")
def server(standing: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    url = standing.application.render_as_string(hide_password=False)
    chosen = settings(database_url=url, memory_embedder="none")
    with lying.provider() as provider:
        who = Identity(issuer=provider.issuer, subject="dpo")
        Members.open(ORGANISATION, by="user:root", settings=chosen).add(who, Role.DPO, name="user:ines")
        MemoryStore.open(ORGANISATION, settings=chosen).remember(
            f"Spoke of the {MARKER}.",
            kind=Kind.OBSERVATION,
            subject=Subject("candidate", "c-4711", label="Greta Greyford"),
            origin=Origin.INFERENCE,
            author="agent:screening",
            run_id="r-1",
        )
        home = tmp_path_factory.mktemp("a home of the server")
        log = home / "log"
        (home / ".streamlit").mkdir()
        file = secrets(home, origin="http://127.0.0.1:{port}", provider=provider.issuer)
        assert "{port}" in file.read_text()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MODEL_", "STREAMLIT_"))}
        environment = kept | {
            "APP_ENV": "production",
            "DATABASE_URL": url,
            "HOME": str(home),
            "MEMORY_EMBEDDER": "none",
            "MEMORY_ORG": ORGANISATION,
            "MODEL_API_KEY": "of-no-use",
            "STREAMLIT_SERVER_ENABLE_AGENT_API": "true",  # as somebody might who wants to be helpful
            "STREAMLIT_SERVER_TRUSTED_USER_HEADERS": '{"X-Subject": "sub"}',
            "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full",
        }
        process, at = started(environment, log=log)
        yield Server(url=at, provider=provider, log=log)
        stopped(process)


def tells(said: bytes) -> list[bytes]:
    return [word for word in TELLING if word in said]


# Before anybody has signed in; this test comes first.


def addresses() -> list[str]:
    """Every address that Streamlit's server has or could be set to have, and every page."""
    runtime = MagicMock()  # which the routes are only put on
    optional = (*create_script_health_routes(runtime, ""), *create_app_static_serving_routes("app.py", ""))
    paths = {route.path for route in (*create_streamlit_routes(runtime), *optional)}
    return sorted({re.sub(r"\{\w+(:path)?\}", "x", path) or "/" for path in paths} | {f"/{name}" for name in PAGES})


def test_no_address_tells_anything_before_anybody_has_signed_in(server: Server) -> None:
    found = {path: httpx.get(server.url + path, follow_redirects=False) for path in addresses()}
    assert len(found) > 20
    assert {path: tells(response.content) for path, response in found.items() if tells(response.content)} == {}
    answered = {path for path, response in found.items() if response.text != NOTHING}
    assert answered == {
        *(f"/{name}" for name in PAGES),
        *("/_stcore/health", "/_stcore/host-config"),
        *("/auth/login", "/auth/logout", "/oauth2callback"),
    }
    for path in answered:
        assert found[path].headers["cache-control"] == "no-store"
    assert [path for path in PAGES if tells(page(server.url, path))] == []


def test_every_answer_has_its_headers(server: Server) -> None:
    for path in ("/", "/Subjects", "/nothing", "/media/x", "/_stcore/health", "/auth/login"):
        headers = httpx.get(server.url + path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_whoever_may_is_shown_it(server: Server) -> None:
    assert ORGANISATION.encode() in page(server.url, cookies=server.cookie())
    assert b"user:ines" in page(server.url, "Subjects", cookies=server.cookie())


def test_no_page_tells_a_stranger_anything(server: Server) -> None:
    asked = f"org={ORGANISATION}"
    for number, (who, cookie) in enumerate(strangers("dpo", origin=server.url, issuer=server.provider.issuer).items()):
        said = page(server.url, PAGES[number % len(PAGES)], query=asked, cookies={COOKIE: cookie.partition("=")[2]})
        assert tells(said) == [], who


def test_whoever_is_no_member_is_told_whom_to_ask_and_nothing_else(server: Server) -> None:
    said = page(server.url, "Subjects", query=f"org={ORGANISATION}", cookies=server.cookie("nobody"))
    assert tells(said) == []
    assert b"no member of any organisation here" in said


def test_an_organisation_in_the_address_is_no_way_in(server: Server) -> None:
    for asked in ("globex", "..%00", "a" * 5000):
        assert b"Spoke of" not in page(server.url, "Subjects", query=f"org={asked}", cookies=server.cookie())


@pytest.mark.parametrize("header", ["X-Subject", "X-Forwarded-User", "Authorization"])
def test_no_header_says_who_somebody_is(server: Server, header: str) -> None:
    assert tells(page(server.url, "Subjects", **{header: "dpo"})) == []
    said = page(server.url, "Subjects", cookies=server.cookie("nobody"), **{header: "dpo"})
    assert tells(said) == []


def test_a_session_from_another_page_is_refused(server: Server) -> None:
    port = urlsplit(server.url).port
    for origin in ("http://evil.example", f"http://localhost:{port}", "null"):
        with pytest.raises(InvalidStatus, match="403"):
            page(server.url, cookies=server.cookie(), Origin=origin)


# Signing in


@pytest.fixture
def browser(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, follow_redirects=False) as client:
        yield client


def way_in() -> str:
    """Return what Streamlit hands to a page so that it may begin a sign-in."""
    claims = {"provider": "default", "exp": 4_000_000_000}
    return f"/auth/login?provider={jwt.encode({'alg': 'HS256'}, claims, OctKey.import_key(COOKIE_SECRET))}"


def begun(browser: httpx.Client) -> tuple[str, str]:
    """Begin a sign-in; returns the state and the nonce that the provider is to give back."""
    answer = browser.get(way_in())
    assert answer.status_code == 302, answer.text
    asked = parse_qs(urlsplit(answer.headers["location"]).query)
    assert asked["scope"] == ["openid email profile"]
    return asked["state"][0], asked["nonce"][0]


def ended(server: Server, browser: httpx.Client, state: str, answer: lying.Claims) -> httpx.Response:
    """Come back from the provider, who then answers so."""
    code = f"code-{len(server.provider.asked)}"
    server.provider.tokens[code] = lambda: answer
    response = browser.get("/oauth2callback", params={"code": code, "state": state})
    assert response.headers["location"] == "/"
    return response


def test_a_good_token_signs_in(server: Server, browser: httpx.Client) -> None:
    state, nonce = begun(browser)
    ended(server, browser, state, lying.token(server.provider.claims(nonce)))
    assert ORGANISATION.encode() in page(server.url, "Subjects", cookies=dict(browser.cookies))


def test_of_two_sign_ins_at_once_each_comes_back_as_its_own(server: Server, browser: httpx.Client) -> None:
    (first, its), (second, other) = begun(browser), begun(browser)
    ended(server, browser, first, lying.token(server.provider.claims(other)))
    assert COOKIE not in browser.cookies
    ended(server, browser, second, lying.token(server.provider.claims(other)))
    assert COOKIE in browser.cookies
    assert its != other


LIES = {
    "a wrong nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "another issuer": {"iss": "https://evil.example.test"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "another"},
    "no audience": {"aud": None},
    "another audience beside ours, for another party": {"aud": ["another", "workbench"], "azp": "another"},
    "over since yesterday": {"iat": 1_700_000_000, "exp": 1_700_003_600},
    "no end": {"exp": None},
    "no subject": {"sub": None},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_does_not_answer_our_question_signs_nobody_in(
    server: Server, browser: httpx.Client, lie: str
) -> None:
    state, nonce = begun(browser)
    ended(server, browser, state, lying.token(server.provider.claims(nonce, **LIES[lie])))
    assert COOKIE not in browser.cookies


FORGERIES = {
    "no signature": lying.without_signature,
    "our own secret": lying.with_our_secret,
    "changed afterwards": lying.tampered,
    "another key": lambda claims: lying.token(claims, key=lying.WRONG_KEY),
    "no token": lambda _: {},
    "no token at all": lambda _: {"id_token": "x"},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_token_that_the_provider_did_not_sign_signs_nobody_in(
    server: Server, browser: httpx.Client, forgery: str
) -> None:
    state, nonce = begun(browser)
    ended(server, browser, state, FORGERIES[forgery](server.provider.claims(nonce)))
    assert COOKIE not in browser.cookies


def test_a_token_for_another_client_that_we_are_a_party_to_lets_nobody_in(
    server: Server, browser: httpx.Client
) -> None:
    state, nonce = begun(browser)
    answer = server.provider.claims(nonce, aud=["another"], azp="workbench")
    ended(server, browser, state, lying.token(answer))
    said = page(server.url, "Subjects", cookies=dict(browser.cookies))
    assert tells(said) == []


@pytest.mark.parametrize(
    "params", [{}, {"code": "x"}, {"code": "x", "state": "made-up"}, {"error": "x\r\ny", "state": "z"}]
)
def test_coming_back_from_a_sign_in_that_nobody_began_is_refused(
    server: Server, browser: httpx.Client, params: dict[str, str]
) -> None:
    before = len(server.provider.asked)
    response = browser.get("/oauth2callback", params=params)
    assert (response.status_code, response.headers["location"]) == (302, "/")
    assert COOKIE not in browser.cookies
    assert len(server.provider.asked) == before


def test_coming_back_twice_is_refused(server: Server, browser: httpx.Client) -> None:
    state, nonce = begun(browser)
    answer = lying.token(server.provider.claims(nonce))
    ended(server, browser, state, answer)
    with httpx.Client(base_url=server.url) as thief:
        ended(server, thief, state, answer)
        assert COOKIE not in thief.cookies
    ended(server, browser, state, answer)
    assert not [one for one in server.provider.asked if server.provider.asked.count(one) > 1]


def sent(cookies: dict[str, str]) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def test_another_page_cannot_begin_a_sign_in_or_end_one(server: Server, browser: httpx.Client) -> None:
    for made_up in ("", "?provider=default", "?provider=x.y.z", f"?provider={'x' * 3000}"):
        assert browser.get(f"/auth/login{made_up}").headers["location"] == "/"
    response = browser.get("/auth/logout", headers={"Sec-Fetch-Site": "cross-site"} | sent(server.cookie()))
    assert (response.status_code, response.text) == (404, NOTHING)


def test_signing_out_ends_it_in_every_tab(server: Server, browser: httpx.Client) -> None:
    mine = server.cookie(nonce="of-this-test")
    assert tells(page(server.url, "Subjects", cookies=mine))
    response = browser.get("/auth/logout", headers=sent(mine))
    assert response.headers["location"] == "/"
    assert "Max-Age=0" in response.headers["set-cookie"]
    assert tells(page(server.url, "Subjects", cookies=mine)) == []
    assert tells(page(server.url, "Subjects", cookies=server.cookie(nonce="of-another")))


def test_a_sign_in_from_before_the_server_was_started_is_over(server: Server) -> None:
    assert tells(page(server.url, "Subjects", cookies=server.cookie(iat=int(time.time()) - 3600))) == []


def test_a_head_signs_nobody_out(server: Server, browser: httpx.Client) -> None:
    mine = server.cookie(nonce="of-a-head")
    assert browser.head("/auth/logout", headers=sent(mine)).status_code == 404
    assert tells(page(server.url, "Subjects", cookies=mine))


def test_the_log_has_neither_tokens_nor_names(server: Server) -> None:
    said = server.log.read_text(encoding="utf-8")
    for secret in (*(word.decode() for word in TELLING), "code-0", "eyJ", COOKIE_SECRET, "dpo@example.test"):
        assert secret not in said
