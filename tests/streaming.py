"""A page as a program asks for it: over the WebSocket, with whatever cookies and names it likes to send."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from websockets.sync.client import connect

LIMIT_S = 60


def page(
    url: str, name: str = "", *, query: str = "", cookies: Mapping[str, str] | None = None, **headers: str
) -> bytes:
    """Return everything that a server sends to a new session that opens a page, as it came.

    Raises `websockets.exceptions.InvalidStatus` where the session is refused.
    """
    xsrf = generate_xsrf_token_string()
    sent = dict(cookies or {}) | {"_streamlit_xsrf": xsrf}
    extra = {"Origin": url, "Cookie": "; ".join(f"{name}={value}" for name, value in sent.items())} | headers
    stream = f"ws://{urlsplit(url).netloc}/_stcore/stream"
    with connect(stream, additional_headers=extra, subprotocols=["streamlit", xsrf], max_size=None) as socket:  # type: ignore[list-item]
        ask = BackMsg()
        ask.rerun_script.page_name = name
        ask.rerun_script.query_string = query
        socket.send(ask.SerializeToString())
        said = b""
        while True:
            part = socket.recv(timeout=LIMIT_S)
            assert isinstance(part, bytes)
            said += part
            message = ForwardMsg()
            message.ParseFromString(part)
            if message.WhichOneof("type") == "script_finished":
                return said
