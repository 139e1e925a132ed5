"""HTTP that ends with a deadline, however slowly a server sends.

A client's own timeout counts anew with every byte, so a server that trickles would never reach it. Here every read
looks at the deadline of the call that it is for, in slices short enough to notice a cancelled one.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from memory_core.gateway.deadline import Deadline

SLICE_S = 0.05
CONNECT_LIMIT_S = 5.0
WRITE_LIMIT_S = 60.0
MOST_BYTES = 64 * 1024 * 1024  # of one answer; no model writes as much

HEADERS = frozenset({b"accept", b"connection", b"content-length"})  # that are taken over from the client packages

_current = threading.local()


@contextmanager
def within(deadline: Deadline) -> Iterator[None]:
    """Put every request that this thread begins under a deadline."""
    before = getattr(_current, "deadline", None)
    _current.deadline = deadline
    try:
        yield
    finally:
        _current.deadline = before


class _Until(float):
    """A timeout in seconds that knows its deadline; httpcore hands it to each read as it is."""

    deadline: Deadline

    @classmethod
    def end_of(cls, deadline: Deadline) -> _Until:
        until = cls(max(deadline.remaining_s(), 0.001))
        until.deadline = deadline
        return until


class _Stream(httpcore.NetworkStream):
    """A connection whose reads look at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what comes next; raises httpcore's ReadTimeout once the deadline is over."""
        if not isinstance(timeout, _Until):
            return self._stream.read(max_bytes, timeout)
        while True:
            remaining_s = timeout.deadline.remaining_s()
            if not remaining_s:
                raise httpcore.ReadTimeout("the deadline is over")
            try:
                return self._stream.read(max_bytes, min(remaining_s, SLICE_S))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write it all; raises httpcore's WriteTimeout once the deadline is over."""
        connection = self._stream.get_extra_info("socket")
        if not isinstance(timeout, _Until) or connection is None:
            self._stream.write(buffer, _left(timeout))
            return
        view = memoryview(buffer)
        while view:
            remaining_s = timeout.deadline.remaining_s()
            if not remaining_s:
                raise httpcore.WriteTimeout("the deadline is over")
            connection.settimeout(min(remaining_s, SLICE_S))
            try:
                view = view[connection.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore.WriteError(str(error)) from None

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Put the connection under TLS."""
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout, at_most=CONNECT_LIMIT_S)))

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection."""
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Opens connections whose reads look at the deadline."""

    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a host."""
        limit_s = _left(timeout, at_most=CONNECT_LIMIT_S)
        return _Stream(self._backend.connect_tcp(host, port, limit_s, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        """Refuse: addresses are http or https."""
        raise httpcore.UnsupportedProtocol("no address of a model is a socket")


def _left(timeout: float | None, *, at_most: float = WRITE_LIMIT_S) -> float:
    if isinstance(timeout, _Until):
        return min(max(timeout.deadline.remaining_s(), 0.001), at_most)
    return at_most if timeout is None else min(timeout, at_most)


class _Body(httpx.SyncByteStream):
    """An answer's bytes, no more of them than an answer may have."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        count = 0
        with _in_httpx_words():
            for part in self._stream:
                count += len(part)
                if count > MOST_BYTES:
                    self.close()
                    raise httpx.ReadError("the answer does not end")
                yield part

    def close(self) -> None:
        self._stream.close()


class Transport(httpx.BaseTransport):
    """Sends httpx requests over connections that end with their deadline. Reads no proxy from the environment.

    The headers that matter are written here: the client packages add some from the environment, or put them in the place
    of their own. `key` is sent as the authorization.
    """

    def __init__(self, *, key: str | None = None) -> None:
        self._authorization = [] if key is None else [(b"Authorization", f"Bearer {key}".encode())]
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=256,
            max_keepalive_connections=16,
            keepalive_expiry=30,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, whose body is read as it comes."""
        deadline = getattr(_current, "deadline", None)
        extensions = dict(request.extensions)
        if deadline is not None:
            extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), _Until.end_of(deadline))
        url = request.url
        with _in_httpx_words():
            response = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=[
                        (b"Host", url.netloc),
                        (b"User-Agent", b"memory-workbench"),
                        (b"Content-Type", b"application/json"),
                        *self._authorization,
                        *((name, value) for name, value in request.headers.raw if name.lower() in HEADERS),
                        # An answer that unpacks to gigabytes is one that nobody asked for.
                        (b"Accept-Encoding", b"identity"),
                    ],
                    content=request.stream,
                    extensions=extensions,
                )
            )
        if any(name.lower() == b"content-encoding" and value != b"identity" for name, value in response.headers):
            response.close()
            raise httpx.ReadError("the answer is packed, which was not asked for")
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


@contextmanager
def _in_httpx_words() -> Iterator[None]:
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        same: type[httpx.HTTPError] = getattr(httpx, type(error).__name__)
        raise same(str(error)) from error
