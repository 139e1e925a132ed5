"""An HTTP server on loopback that answers as it is told, also badly, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from zlib import crc32

RECORDED = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "ollama-wire"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any  # parsed, where it is JSON


Answer = Callable[["Handler", Asked], None]


class Wire:
    """A server for a with-block: `answers` maps a path to what is done with a request for it; any other gets 404.

    With `keep_alive` it leaves connections open, as Ollama does; `open_connections` counts those.
    """

    def __init__(self, *, port: int = 0, keep_alive: bool = False) -> None:
        self.keep_alive = keep_alive
        self.open_connections = 0
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.sockets: list[socket.socket] = []
        self._server = _Server(("127.0.0.1", port), Handler)
        self._server.wire = self
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, name="wire", daemon=True
        )

    def asked_for(self, path: str) -> list[Asked]:
        """Return the requests for a path, in order."""
        return [one for one in self.asked if one.path == path]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        for one in self.sockets:  # whoever still waits for an answer gets an end instead
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    wire: Wire

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that gave up is what many tests want."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or small writes wait 40 ms for each other
    server: _Server

    @property
    def wire(self) -> Wire:
        return self.server.wire

    def setup(self) -> None:
        super().setup()
        self.wire.sockets.append(self.connection)
        self.wire.open_connections += 1

    def finish(self) -> None:
        self.wire.open_connections -= 1
        super().finish()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw
        asked = Asked(method=self.command, path=self.path, headers=dict(self.headers), body=body)
        self.wire.asked.append(asked)
        self.wire.answers.get(self.path, text("404 page not found", status=404))(self, asked)

    def end_headers(self) -> None:
        if not self.wire.keep_alive:
            self.send_header("Connection", "close")
        super().end_headers()

    def send(self, body: bytes, *, status: int = 200, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


# Answers


def recorded(name: str) -> Answer:
    """Answer as a real Ollama did: with the status and the body of a recorded exchange."""
    response = json.loads((RECORDED / f"{name}.json").read_text())["response"]
    if "lines" in response:
        return lines(*response["lines"], content_type=response["headers"]["Content-Type"])
    body = response["body"]
    if isinstance(body, str):
        return text(body, status=response["status"])
    return as_json(body, status=response["status"])


def as_json(body: object, *, status: int = 200) -> Answer:
    """Answer with a value as JSON; NaN and infinities as Python writes them."""
    return text(json.dumps(body), status=status, content_type="application/json; charset=utf-8")


def text(body: str, *, status: int = 200, content_type: str = "text/plain") -> Answer:
    """Answer with text."""
    return lambda handler, asked: handler.send(body.encode(), status=status, content_type=content_type)


def lines(
    *all_lines: str, content_type: str = "application/x-ndjson", pause_s: float = 0, end: str = "whole"
) -> Answer:
    """Answer 200 with lines as they come, a pause before each.

    `end`: "whole" ends the answer as HTTP does, "cut" closes the connection instead, "open" leaves it open and silent.
    """

    def answer(handler: Handler, asked: Asked) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        with suppress(OSError):
            for line in all_lines:
                if pause_s and handler.wire.closing.wait(timeout=pause_s):
                    break
                data = f"{line}\n".encode()
                handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                handler.wfile.flush()
            if end == "whole":
                handler.wfile.write(b"0\r\n\r\n")
                return
            if end == "open":
                handler.wire.closing.wait(timeout=30)
        handler.close_connection = True

    return answer


def html(handler: Handler, asked: Asked) -> None:
    """Answer as a proxy's sign-in page does."""
    handler.send(b"<!doctype html><title>Sign in</title>", content_type="text/html")


def never(handler: Handler, asked: Asked) -> None:
    """Answer nothing until the server closes."""
    handler.wire.closing.wait(timeout=30)
    handler.close_connection = True


def trickle(handler: Handler, asked: Asked) -> None:
    """Answer with one byte after another, without end."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.close_connection = True
    with suppress(OSError):
        while not handler.wire.closing.wait(timeout=0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()


def cut(handler: Handler, asked: Asked) -> None:
    """Close in the middle of the body."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"model": "nomic-embed-text", "embeddings": [[0.1, ')
    handler.close_connection = True


def hang_up(handler: Handler, asked: Asked) -> None:
    """Close without a word."""
    handler.close_connection = True


def redirect(address: str) -> Answer:
    """Send the client elsewhere, with what it had to say."""

    def answer(handler: Handler, asked: Asked) -> None:
        handler.send_response(307)
        handler.send_header("Location", address)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def embeddings(*vectors: list[float]) -> Answer:
    """Answer every request with these vectors."""
    return as_json({"model": "any", "embeddings": list(vectors), "total_duration": 1, "load_duration": 1})


def computed(*, dimensions: int = 16) -> Answer:
    """Answer with one vector a text, in which texts that share words are near each other."""

    def answer(handler: Handler, asked: Asked) -> None:
        texts = [asked.body["input"]] if isinstance(asked.body["input"], str) else asked.body["input"]
        vectors = [vector(one, dimensions=dimensions) for one in texts]
        as_json({"model": asked.body["model"], "embeddings": vectors})(handler, asked)

    return answer


def vector(words: str, *, dimensions: int = 16) -> list[float]:
    """Count the words of a text into a few numbers; never all zero."""
    counts = [0.0] * dimensions
    for word in words.lower().split():
        counts[crc32(word.encode()) % dimensions] += 1
    return counts if any(counts) else [1.0] * dimensions


def refusal(body: str, *, status: int, content_type: str = "application/json", **headers: str) -> Answer:
    """Answer with an error, and with headers by their names in lower case: ``retry_after="3"``."""

    def answer(handler: Handler, asked: Asked) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body.encode())))
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


def slow_headers(handler: Handler, asked: Asked) -> None:
    """Answer with one byte of a header after another, without end."""
    handler.close_connection = True
    with suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not handler.wire.closing.wait(timeout=0.05):
            handler.wfile.write(b"x")
            handler.wfile.flush()


def dripped(*all_lines: str, content_type: str = "application/x-ndjson", pause_s: float = 0) -> Answer:
    """Answer 200 with lines, one byte at a time."""

    def answer(handler: Handler, asked: Asked) -> None:
        data = "".join(f"{line}\n" for line in all_lines).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        with suppress(OSError):
            for byte in data:
                if pause_s and handler.wire.closing.wait(timeout=pause_s):
                    break
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()

    return answer


def half(data: str, *, content_type: str = "application/x-ndjson") -> Answer:
    """Answer 200 with data that stops in the middle of a line, and end the answer as HTTP does."""

    def answer(handler: Handler, asked: Asked) -> None:
        handler.send(data.encode(), content_type=content_type)

    return answer


def in_turn(*all_answers: Answer) -> Answer:
    """Answer the first request with the first, the second with the second, and all that follow with the last."""
    count = 0
    counting = threading.Lock()

    def answer(handler: Handler, asked: Asked) -> None:
        nonlocal count
        with counting:
            chosen = all_answers[min(count, len(all_answers) - 1)]
            count += 1
        chosen(handler, asked)

    return answer


class Gauge:
    """Wraps answers, and knows how many are being given at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.done = 0
        self._changing = threading.Condition()

    def of(self, answer: Answer) -> Answer:
        """Return an answer that is counted while it is given."""

        def counted(handler: Handler, asked: Asked) -> None:
            with self._changing:
                self.now += 1
                self.most = max(self.most, self.now)
                self._changing.notify_all()
            try:
                answer(handler, asked)
            finally:
                with self._changing:
                    self.now -= 1
                    self.done += 1
                    self._changing.notify_all()

        return counted

    def until(self, *, now: int | None = None, done: int | None = None, limit_s: float = 10) -> None:
        """Wait until so many are being given, or were."""
        with self._changing:
            came = self._changing.wait_for(
                lambda: (now is None or self.now == now) and (done is None or self.done >= done), timeout=limit_s
            )
        assert came, f"{self.now} answers are being given, and {self.done} were"
