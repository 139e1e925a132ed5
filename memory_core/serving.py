"""Starting the workbench: on this machine's own address, or with a sign-in on others too."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import tomllib
from pathlib import Path
from typing import NoReturn

from memory_core.addresses import is_loopback
from memory_core.config import Settings
from memory_core.errors import Refusal, Refused, SettingsError
from memory_core.rules.sign_in import SignIn, sign_in_of

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 8501, 8599


def port_to_serve(settings: Settings, *, port: int | None, address: str = LOOPBACK) -> int:
    """Return the port to serve on, which is the one asked for or else the first free one.

    Raises `SettingsError` for a sign-in that cannot be used, and in production for want of one; `Refused` for a port in
    use, and for an address that others can reach while nobody signs in.
    """
    has_sign_in = configured_sign_in(port=port or FIRST_PORT) is not None
    if settings.app_env == "production" and not has_sign_in:
        raise SettingsError(
            f"APP_ENV: is production, and there is no sign-in; add an [auth] section to {secrets_files()[-1]}"
        )
    if not is_address(address):
        raise Refused(Refusal(rule="address_is_one", field="--address", reason="must be an IP address of this machine"))
    if not is_loopback(address) and not has_sign_in:
        reason = f"without a sign-in the workbench listens on {LOOPBACK} only; docs/sign-in.md says how to add one"
        raise Refused(Refusal(rule="others_sign_in", field="--address", reason=reason))
    if not is_free(0, address):  # at whichever port
        reason = f"{address} is no address of this machine; 0.0.0.0 is all that it has"
        raise Refused(Refusal(rule="address_is_one", field="--address", reason=reason))
    return free_port(address) if port is None else required_port(port, address)


def serve(port: int, address: str = LOOPBACK) -> NoReturn:
    """Become the workbench's server process."""
    sign_in = configured_sign_in(port=port)
    host = f"[{address}]" if ":" in address else address
    sys.stderr.write(f"Workbench: {sign_in.origin if sign_in else f'http://{host}:{port}'}\n")
    sys.stderr.flush()
    os.chdir(ROOT)  # where .streamlit and the server's module are looked for
    arguments = ["-m", "pages.web", "--address", address, "--port", str(port)]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


def configured_sign_in(*, port: int) -> SignIn | None:
    """Return what the secrets' [auth] section configures, None without one; raises `SettingsError` for a bad one."""
    section, file = None, None
    for secrets in secrets_files():
        if (found := auth_section(secrets)) is not None:
            section, file = found, secrets
    if section is None:
        return None
    read = sign_in_of(section, port=port)
    if isinstance(read, Refusal):
        raise SettingsError(f"{file}: [auth] {read.field}: {read.reason}")
    return read


def secrets_files() -> list[Path]:
    """Return where Streamlit looks for its secrets; of two that say something the later one counts."""
    folders = [ROOT]
    with contextlib.suppress(RuntimeError):  # somebody without a home
        folders.insert(0, Path.home())
    return [folder / ".streamlit" / "secrets.toml" for folder in folders]


def auth_section(secrets: Path) -> object:
    """Return the [auth] section of a file of Streamlit's secrets, or None; raises `SettingsError` where it cannot be read."""
    try:
        return tomllib.loads(secrets.read_text(encoding="utf-8")).get("auth")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{secrets}: cannot be read ({type(error).__name__})") from None


def is_address(address: str) -> bool:
    """Say whether a server can be told to listen there: an IP address, or this machine's own name for itself."""
    try:
        return address == "localhost" or bool(ipaddress.ip_address(address))
    except ValueError:
        return False


def free_port(address: str = LOOPBACK) -> int:
    """Return the first port from 8501 that nobody listens on."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if is_free(port, address):
            return port
    reason = f"every port from {FIRST_PORT} to {LAST_PORT} is in use; name another with --port"
    raise Refused(Refusal(rule="port_is_free", field="--port", reason=reason))


def required_port(port: int, address: str = LOOPBACK) -> int:
    """Return the port if it can be used."""
    if not 1 <= port <= 65535 or not is_free(port, address):
        raise Refused(Refusal(rule="port_is_free", field="--port", reason=f"{port} cannot be used; leave --port out"))
    return port


def is_free(port: int, address: str = LOOPBACK) -> bool:
    """Say whether an address of this machine can be bound at a port."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
