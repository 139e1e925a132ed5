"""Only the workbench's own addresses are answered, under its own name, so often; whatever else is asked gets one answer."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from memory_core.rules.sign_in import SignIn
from pages.web.door import ALWAYS, NOTHING, SIGNING_IN, Door, page_names
from pages.web.limits import EVERYTHING, STRICTER, Buckets, Limits, Rate, address_of

HERE = "http://127.0.0.1:8501"
TOKEN = "A" * 43
SIGN_IN = SignIn(origin="https://memory.example.test", client_id="workbench")
PAGES = page_names(Path(__file__).resolve().parents[2] / "pages")


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer everything that comes through."""
    if scope["type"] == "http":
        await PlainTextResponse("inside")(scope, receive, send)
    else:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 1000})


def client(app: Any, *, base: str = HERE, address: str = "127.0.0.1") -> TestClient:
    return TestClient(app, base_url=base, client=(address, 40000), follow_redirects=False)


@pytest.fixture
def local() -> TestClient:
    return client(Door(answering, pages=PAGES, sign_in=None))


@pytest.fixture
def signing_in() -> TestClient:
    return client(Door(answering, pages=PAGES, sign_in=SIGN_IN), base=SIGN_IN.origin, address="198.51.100.7")


def requested(
    door: TestClient, raw_path: bytes, *, method: str = "GET", headers: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[int, bytes]:
    """Ask for an address exactly as it is written, which a client would mend first."""
    from urllib.parse import unquote

    scope = {
        "type": "http",
        "method": method,
        "path": unquote(raw_path.decode("latin-1")),
        "raw_path": raw_path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8501"), *headers],
        "client": ("127.0.0.1", 40000),
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    # In a thread of its own: in this one a browser's events may be running, of another test of the same process.
    with ThreadPoolExecutor(1) as beside:
        beside.submit(asyncio.run, door.app(scope, receive, send)).result()  # type: ignore[arg-type]
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/Subjects", "/Members", "/_stcore/health", "/_stcore/host-config", "/favicon.png", "/manifest.json"),
        *("/static/js/index.DormvYxC.js", "/static/media/SourceSansVF-Upright.ttf.BsWL4Kly.woff2"),
        f"/downloads/{TOKEN}",
        "/Subjects?org=acme&x=%2e%2e%2f",
    ],
)
def test_what_the_workbench_uses_is_answered(local: TestClient, path: str) -> None:
    assert local.get(path).text == "inside"


@pytest.mark.parametrize(
    "path",
    [
        *("/media/abc.zip", "/media/", "/media", "/_stcore/upload_file/a/b", "/_stcore/metrics", "/_stcore/stream"),
        *(
            "/_stcore/agent/openapi.json",
            "/_stcore/agent/mcp",
            "/_stcore/agent/interact",
            "/_stcore/script-health-check",
        ),
        *("/component/a/b", "/_stcore/bidi-components/a/b", "/app/static/x", "/_stcore/anything/new", "/healthz"),
        *("/auth/login", "/auth/logout", "/oauth2callback"),
        *("/Nothing", "/subjects", "/Subjects/", "/Subjects/_stcore/health", "/1_Subjects", "/app", "/app.py"),
        *("/static", "/static/", "/static//x.js", "/static/.env", "/static/../x.js", "/static/js/../../x"),
        *("/downloads", "/downloads/", f"/downloads/{TOKEN}A", f"/downloads/{TOKEN[1:]}", f"/downloads/{TOKEN}/"),
        *("//", "//evil.example/", "/../etc/passwd", "/..", "/.", "/\\..\\x", "/Subjects;x", "/Subjects\n", "/ü"),
    ],
)
def test_nothing_else_is(local: TestClient, path: str) -> None:
    assert requested(local, path.encode()) == (404, NOTHING.encode())


@pytest.mark.parametrize(
    "path",
    [
        *("/%2e%2e/etc/passwd", "/..%2fetc%2fpasswd", "/%252e%252e/", "/static/%2e%2e/index.html", "/static/js%2fx.js"),
        *(
            "/%53ubjects",
            "/Subjects%00",
            "/Subjects%0d%0aX:y",
            "/_stcore%2fhealth",
            "/%5fstcore/health",
            "/%5c%5cserver",
        ),
        f"/downloads/%41{TOKEN[1:]}",
        "/%c0%ae%c0%ae/",
        "/%ff",
    ],
)
def test_an_address_with_an_encoding_in_it_is_not_looked_at(local: TestClient, path: str) -> None:
    assert requested(local, path.encode()) == (404, NOTHING.encode())


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/Subjects", "/_stcore/health", f"/downloads/{TOKEN}"])
def test_only_reading_is_answered(local: TestClient, method: str, path: str) -> None:
    assert requested(local, path.encode(), method=method) == (404, NOTHING.encode())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8501", "localhost:1", "LOCALHOST", "[::1]:8501", "127.1.2.3"])
def test_this_machine_has_several_names(local: TestClient, host: str) -> None:
    assert local.get("/Subjects", headers={"Host": host}).text == "inside"


OTHERS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "evil@127.0.0.1",
    "127.0.0.1/x",
    "127.0.0.1:x",
    "",
    "0.0.0.0",
    "[::",
    "a b",
]


@pytest.mark.parametrize("host", OTHERS)
def test_under_another_name_nothing_is_answered(local: TestClient, host: str) -> None:
    for path in ("/", "/Subjects", f"/downloads/{TOKEN}", "/_stcore/host-config"):
        response = local.get(path, headers={"Host": host})
        assert (response.status_code, response.text) == (404, NOTHING)
    assert local.get("/_stcore/health", headers={"Host": host}).text == "inside"  # for whoever watches over it


def test_two_names_at_once_are_none(local: TestClient) -> None:
    assert requested(local, b"/", headers=((b"host", b"127.0.0.1"),)) == (404, NOTHING.encode())


def test_with_a_sign_in_there_is_one_name(signing_in: TestClient) -> None:
    assert signing_in.get("/Subjects").text == "inside"
    assert signing_in.get("/auth/login").text == "inside"
    for host in (*OTHERS, "localhost", "127.0.0.1:8501", "memory.example.test:8443", "x.memory.example.test"):
        assert signing_in.get("/Subjects", headers={"Host": host}).status_code == 404


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("cross-site", 404), ("same-site", 404)]
)
def test_nobody_elses_page_signs_anybody_out(signing_in: TestClient, site: str, status: int) -> None:
    assert signing_in.get("/auth/logout", headers={"Sec-Fetch-Site": site}).status_code == status


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://evil.example",
            "http://localhost:8501",
            "http://127.0.0.1:8502",
            "https://127.0.0.1:8501",
            "null",
            "",
        ),
        "http://127.0.0.1:8501.evil.example",
    ],
)
def test_a_session_is_opened_by_the_workbenchs_own_page_only(local: TestClient, origin: str) -> None:
    with local.websocket_connect("ws://127.0.0.1:8501/_stcore/stream", headers={"Origin": HERE}):
        pass
    for headers in ({"Origin": origin}, {}, {"Origin": HERE, "Host": "evil.example"}):
        with (
            pytest.raises(WebSocketDisconnect),
            local.websocket_connect("ws://127.0.0.1:8501/_stcore/stream", headers=headers),
        ):
            pass
    with pytest.raises(WebSocketDisconnect), local.websocket_connect("ws://127.0.0.1:8501/", headers={"Origin": HERE}):
        pass


# How often


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_so_many_at_once_and_then_so_many_a_second() -> None:
    clock = Clock()
    buckets = Buckets(Rate(at_once=3, a_second=0.5), clock=clock)
    assert [buckets.wait_s("a") for _ in range(4)] == [0, 0, 0, 2]
    assert buckets.wait_s("b") == 0
    clock.now += 1
    assert buckets.wait_s("a") == 1  # asking in vain costs nothing
    clock.now += 1
    assert [buckets.wait_s("a") for _ in range(2)] == [0, 2]
    clock.now += 1000
    assert [buckets.wait_s("a") for _ in range(4)] == [0, 0, 0, 2]


def test_only_so_many_addresses_are_remembered() -> None:
    buckets = Buckets(Rate(at_once=1, a_second=1), clock=Clock(), most=100)
    for number in range(10_000):
        buckets.wait_s(str(number))
    assert len(buckets._left) == 100


@pytest.mark.parametrize("path", ["/", *STRICTER])
def test_whoever_asks_too_often_is_told_when_to_come_again(path: str) -> None:
    clock = Clock()
    rate = STRICTER.get(path, Rate(at_once=200, a_second=0.25))
    everything = EVERYTHING if path in STRICTER else rate
    asking = client(Limits(answering, everything=everything, clock=clock))
    assert {asking.get(path).status_code for _ in range(rate.at_once)} == {200}
    response = asking.get(path)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) == max(1, round(1 / rate.a_second))
    assert client(asking.app, address="198.51.100.7").get(path).status_code == 200
    clock.now += int(response.headers["retry-after"])
    assert asking.get(path).status_code == 200


def test_of_the_sixth_version_a_network_is_one_who_asks() -> None:
    limits = Limits(answering, clock=Clock())
    tried = [client(limits, address=f"2001:db8::{number:x}").get("/auth/login").status_code for number in range(61)]
    assert tried == [*[200] * 60, 429]
    assert client(limits, address="2001:db8:0:1::1").get("/auth/login").status_code == 200


def test_sessions_are_counted_too() -> None:
    asking = client(Limits(answering, clock=Clock()))
    for _ in range(STRICTER["/_stcore/stream"].at_once):
        with asking.websocket_connect("/_stcore/stream"):
            pass
    with pytest.raises(WebSocketDisconnect), asking.websocket_connect("/_stcore/stream"):
        pass


@pytest.mark.parametrize(
    "headers", [{"Content-Length": "1"}, {"Content-Length": "9" * 30}, {"Transfer-Encoding": "chunked"}]
)
def test_nobody_sends_a_body(headers: dict[str, str]) -> None:
    response = client(Limits(answering)).get("/", headers=headers)
    assert (response.status_code, response.headers["connection"]) == (413, "close")


def test_the_documentation_says_how_often() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "sign-in.md").read_text(encoding="utf-8")
    said = re.findall(r"^\| `?([^`|]+?)`? \| (\d+) \| ([\d.]+) \|$", text, re.M)
    assert {path: Rate(at_once=int(at_once), a_second=float(a_second)) for path, at_once, a_second in said} == {
        "everything": EVERYTHING
    } | STRICTER
    for path in ALWAYS[1:] + SIGNING_IN:
        assert f"`{path}`" in text


def test_an_address_in_the_other_versions_writing_is_counted_as_itself() -> None:
    def counted(host: str) -> str:
        return address_of({"type": "http", "client": (host, 1)})

    assert counted("::ffff:203.0.113.9") == counted("203.0.113.9") == "203.0.113.9"
    assert counted("2001:db8::1") == counted("2001:db8::2") != counted("2001:db8:0:1::1")
