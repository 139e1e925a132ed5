"""One address holds so many connections, and one that asks nothing is closed: others are served all the same."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from waiting import until
from websockets.sync.client import connect

from pages.web.connections import Connection, is_proxy


class Few(Connection):
    most_of_one = 5
    silent_s = 1.5


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a word; say back on a WebSocket what is said there."""
    if scope["type"] == "http":
        await PlainTextResponse("inside")(scope, receive, send)
        return
    socket_ = WebSocket(scope, receive, send)
    await socket_.accept()
    with suppress(WebSocketDisconnect):
        while True:
            await socket_.send_text(await socket_.receive_text())


@pytest.fixture(params=["10.9.9.9", "127.0.0.0/8"], ids=["a stranger", "a proxy"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[int, bool]]:
    """The port of a server, and whether whoever is on this machine is its proxy."""
    config = uvicorn.Config(
        answering,
        port=0,
        http=Few,
        ws="websockets-sansio",
        log_level="warning",
        forwarded_allow_ips=request.param,
        lifespan="off",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1], request.param != "10.9.9.9"
    server.should_exit = True
    thread.join(10)


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_what_is_over_an_addresss_share_is_closed_at_once_and_a_proxy_has_as_many_as_it_needs(
    served: tuple[int, bool],
) -> None:
    port, is_a_proxy = served
    with ExitStack() as held:
        made = [held.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(8)]
        for one in made:
            one.settimeout(0.05)
        time.sleep(0.1)
        assert [is_closed(one) for one in made[5:]] == [not is_a_proxy] * 3
        if is_a_proxy:
            assert httpx.get(f"http://127.0.0.1:{port}/").text == "inside"


def test_one_on_which_nothing_is_asked_is_closed_and_one_that_asks_is_kept(served: tuple[int, bool]) -> None:
    port, _ = served
    with (
        socket.create_connection(("127.0.0.1", port)) as silent,
        socket.create_connection(("127.0.0.1", port)) as slow,
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as asking,
    ):
        assert asking.get("/").text == "inside"
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        for one in (silent, slow):
            one.settimeout(5)
            assert is_closed(one)
        assert asking.get("/").text == "inside"
    assert httpx.get(f"http://127.0.0.1:{port}/").text == "inside"


def test_a_page_may_listen_on_its_connection_for_as_long_as_it_likes(served: tuple[int, bool]) -> None:
    port, _ = served
    with connect(f"ws://127.0.0.1:{port}/") as page:
        with pytest.raises(TimeoutError):
            page.recv(timeout=2 * Few.silent_s)
        page.send("still here?")
        assert page.recv(timeout=5) == "still here?"


@pytest.mark.parametrize(
    ("host", "trusted", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("10.1.2.3", "127.0.0.1,10.0.0.0/8", True),
        ("10.1.2.3", ["10.1.2.3"], True),
        ("2001:db8::1", "2001:db8::/32, 10.0.0.0/8", True),
        ("192.0.2.1", "10.0.0.0/8", False),
        ("2001:db8::1", "10.0.0.0/8", False),
        ("", "127.0.0.1", False),
        ("somebody", "somebody", False),
        ("192.0.2.1", "*", False),
    ],
)
def test_a_proxy_is_one_that_is_named(host: str, trusted: str | list[str], expected: bool) -> None:
    assert is_proxy(host, trusted) is expected
