"""The one server: Streamlit's application with our routes, behind the headers, the limits and the door."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType

import uvicorn
from starlette.types import ASGIApp
from streamlit import config, file_util
from streamlit.web import bootstrap
from streamlit.web.server.starlette.starlette_app import App

from memory_core.addresses import is_loopback
from memory_core.config import settings
from memory_core.errors import MemoryCoreError, Refusal, Refused
from memory_core.rules.sign_in import SignIn
from pages.web.connections import Connection
from pages.web.door import Door, page_names
from pages.web.downloads import ROUTE
from pages.web.headers import Headers
from pages.web.limits import Limits
from pages.web.offers import OFFERS
from pages.web.signed_in import decide_sign_in
from pages.web.signing_out import SigningOut

SCRIPT = Path(__file__).resolve().parents[2] / "app.py"
FORGET_EVERY_S = 20.0
MOST_CONNECTIONS = 5000
# Whatever files and environment say: each of these, set otherwise, would open something.
PINNED: Mapping[str, object] = MappingProxyType(
    {
        "browser.gatherUsageStats": False,
        "client.showErrorDetails": "none",
        "global.developmentMode": False,
        "server.baseUrlPath": "",
        "server.corsAllowedOrigins": [],
        "server.enableAgentApi": False,
        "server.enableCORS": True,
        "server.enableStaticServing": False,
        "server.enableXsrfProtection": True,
        "server.maxUploadSize": 1,
        "server.maxWidgetStateSize": 1,
        "server.scriptHealthCheckEnabled": False,
        "server.trustedUserHeaders": {},
        "server.unsafeMetricsUserAttributes": [],
    }
)


def run(address: str, port: int) -> int:
    """Serve until told to end; returns what the process exits with. What cannot be served safely is one line instead."""
    # Beside it are the files of .streamlit, whatever folder this was started in.
    config._main_script_path = str(SCRIPT)
    bootstrap.load_config_options({**PINNED, "server.address": address, "server.port": port})
    try:
        configured = decide_sign_in()
        refuse_unsafe(address, configured)
    except MemoryCoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that what runs at exit runs
    uvicorn.Server(
        uvicorn.Config(
            application(configured),
            host=address,
            port=port,
            access_log=False,  # addresses of downloads are secrets
            server_header=False,
            log_level="warning",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=3,
            http=Connection,
            ws="websockets-sansio",
            ws_max_size=2 * 2**20,
        )
    ).run()
    return 0


def refuse_unsafe(address: str, configured: SignIn | None) -> None:
    """Raise `Refused` where nobody would sign in, and this is production or others can reach the server."""
    if configured is None and settings().app_env == "production":
        raise Refused(Refusal(rule="others_sign_in", field="APP_ENV", reason="is production, and there is no sign-in"))
    if configured is None and not is_loopback(address):
        raise Refused(
            Refusal(rule="others_sign_in", field="--address", reason="others can reach it, and there is no sign-in")
        )


def application(configured: SignIn | None) -> ASGIApp:
    """Return the whole server as one application."""
    streamlit = App(SCRIPT, routes=[ROUTE], lifespan=forgetting)
    inside = SigningOut(streamlit, origin=configured.origin) if configured else streamlit
    door = Door(inside, pages=page_names(SCRIPT.parent / "pages"), sign_in=configured)
    page = Path(file_util.get_static_dir()) / "index.html"
    return Headers(Limits(door), page=page, origin=configured.origin if configured else None)


@contextlib.asynccontextmanager
async def forgetting(_: object) -> AsyncIterator[None]:
    """Let go of files that nobody fetches, while the server runs."""

    async def forget() -> None:
        while True:
            await asyncio.sleep(FORGET_EVERY_S)
            OFFERS.forget_old()

    task = asyncio.create_task(forget())
    try:
        yield
    finally:
        task.cancel()
