"""Starting the workbench on this machine's own address."""

from __future__ import annotations

import os
import socket
import sys
import tomllib
from pathlib import Path
from typing import NoReturn

from memory_core.config import Settings
from memory_core.errors import Refusal, Refused, SettingsError

APP = Path(__file__).resolve().parent.parent / "app.py"
LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 8501, 8599


def port_to_serve(settings: Settings, *, port: int | None) -> int:
    """Return the port to serve on, which is the one asked for or else the first free one.

    Raises `SettingsError` in production, where there would have to be a sign-in, and `Refused` for a port in use.
    """
    if settings.app_env == "production":
        raise SettingsError("APP_ENV: is production, and without a sign-in the workbench serves one local user only")
    for secrets in (APP.parent / ".streamlit" / "secrets.toml", Path.home() / ".streamlit" / "secrets.toml"):
        if has_sign_in(secrets):
            raise SettingsError(f"{secrets}: has an [auth] section, and this version has no sign-in yet; take it out")
    return free_port() if port is None else required_port(port)


def serve(port: int) -> NoReturn:
    """Become the workbench's server process, on the loopback address only."""
    sys.stderr.write(f"Workbench: http://{LOOPBACK}:{port}\n")
    sys.stderr.flush()
    os.chdir(APP.parent)  # Streamlit reads .streamlit/config.toml from where it is started
    arguments = ["run", str(APP), "--server.address", LOOPBACK, "--server.port", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", *arguments])  # noqa: S606


def has_sign_in(secrets: Path) -> bool:
    """Say whether a file of Streamlit's secrets configures a sign-in; raises `SettingsError` where it cannot be read."""
    try:
        return "auth" in tomllib.loads(secrets.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise SettingsError(f"{secrets}: cannot be read ({type(error).__name__})") from None


def free_port() -> int:
    """Return the first port from 8501 that nobody listens on."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if is_free(port):
            return port
    reason = f"every port from {FIRST_PORT} to {LAST_PORT} is in use; name another with --port"
    raise Refused(Refusal(rule="port_is_free", field="--port", reason=reason))


def required_port(port: int) -> int:
    """Return the port if it can be used."""
    if not 1 <= port <= 65535 or not is_free(port):
        raise Refused(Refusal(rule="port_is_free", field="--port", reason=f"{port} cannot be used; leave --port out"))
    return port


def is_free(port: int) -> bool:
    """Say whether this machine's own address can be bound at a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
