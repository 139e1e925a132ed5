"""An embedded cluster: started by whoever comes first, stopped by whoever leaves last."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import URL

from memory_core.db.embedded import locks, roles
from memory_core.db.embedded.credentials import Credentials, credentials
from memory_core.db.embedded.data_directory import last_lines
from memory_core.db.embedded.folder import Folder, opened_folder
from memory_core.db.embedded.os_user import ServerUser, server_user
from memory_core.db.embedded.postmaster import answers, running, stop_process
from memory_core.db.embedded.server import server_connection
from memory_core.errors import EmbeddedServerError


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The addresses of a running embedded server.

    Pass the URL objects on, never their text: a space in the socket's path would become a plus sign.
    """

    superuser: URL  # database "postgres"; bypasses row level security, so for setting up only
    owner: URL  # database "memory": migrations
    application: URL  # database "memory": everything else


@dataclass(frozen=True, kw_only=True)
class _Use:
    """This process's use of a cluster."""

    cluster: Cluster
    folder: Folder
    user: ServerUser
    descriptor: int  # of the lock that says so

    @property
    def answers(self) -> bool:
        return answers(self.folder.socket_directory(self.user))


_uses: dict[Path, _Use] = {}
_guard = threading.Lock()


def start(home: Path) -> Cluster:
    """Return the cluster in a folder, starting its server unless it runs.

    The first call makes the cluster; later ones in this process take about a millisecond, and start the server anew
    if it died. Any number of processes and threads may call this at once. The server stops when the last process
    that called this ends or calls `stop`. Raises `EmbeddedServerError`.
    """
    if os.name != "posix":
        raise EmbeddedServerError("the embedded PostgreSQL runs on Linux and macOS only; set DATABASE_URL to a server")
    home = _absolute(home)
    use = _uses.get(home)
    if use and use.answers:
        return use.cluster
    with _guard, _one_line(home):
        user = server_user()
        folder = opened_folder(home, user)
        with locks.exclusive(folder.lock) as lock:
            use = _uses.get(home)  # another thread may have been faster
            if not (use and use.answers):
                use = _uses[home] = _joined(folder, user, lock, already=use)
                atexit.unregister(_stop_all)
                atexit.register(_stop_all)
    return use.cluster


def stop(home: Path) -> None:
    """Let go of the cluster in a folder; the last process to do so stops its server.

    Nothing happens if this process does not use it. Raises `EmbeddedServerError` if the server does not stop.
    """
    with _guard, _one_line(home):
        use = _uses.pop(_absolute(home), None)
        if use is None:
            return
        try:
            with locks.exclusive(use.folder.lock):
                _let_go(use.folder, use.user, use.descriptor)
        except FileNotFoundError:  # the folder was deleted: PostgreSQL notices by itself
            locks.release(use.descriptor)


def _stop_all() -> None:
    for home in list(_uses):
        with contextlib.suppress(EmbeddedServerError):
            stop(home)


def _let_go(folder: Folder, user: ServerUser, descriptor: int) -> None:
    last = locks.is_last(descriptor)
    locks.release(descriptor)
    process = running(folder, user) if last else None
    if process:
        stop_process(process, folder, user)


def _joined(folder: Folder, user: ServerUser, lock: int, *, already: _Use | None) -> _Use:
    folder.first_password.unlink(missing_ok=True)  # left behind by a process that was killed
    passwords = credentials(folder)
    cluster = _addresses(folder.socket_directory(user), passwords)
    descriptor = already.descriptor if already else locks.shared(folder.users)
    try:
        with server_connection(folder, user, cluster.superuser, lock=lock) as connection:
            roles.set_up(connection, cluster.superuser, passwords)
    except BaseException as error:
        _uses.pop(folder.home, None)
        with contextlib.suppress(EmbeddedServerError):
            _let_go(folder, user, descriptor)
        if isinstance(error, psycopg.Error):
            raise EmbeddedServerError(
                f"the database in {folder.home} could not be set up ({last_lines(str(error))}); see {folder.log}"
            ) from error
        raise
    return _Use(cluster=cluster, folder=folder, user=user, descriptor=descriptor)


def _addresses(socket_directory: Path, passwords: Credentials) -> Cluster:
    def address(role: str, password: str, database: str) -> URL:
        return URL.create(
            "postgresql+psycopg",
            role,
            password,
            port=5432,  # said, so that PGPORT does not say otherwise
            database=database,
            query={"host": str(socket_directory)},
        )

    return Cluster(
        superuser=address("postgres", passwords.postgres, "postgres"),
        owner=address(roles.OWNER, passwords.memory_owner, roles.DATABASE),
        application=address(roles.APPLICATION, passwords.memory_app, roles.DATABASE),
    )


def _absolute(home: Path) -> Path:
    try:
        return home.expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise EmbeddedServerError(f"{home} is no usable path ({error}); set MEMORY_HOME to a folder") from error


@contextmanager
def _one_line(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise EmbeddedServerError(
            f"no database can be kept in {home} ({error.strerror or error}{where}); "
            f"set MEMORY_HOME to a folder that this user can write, or DATABASE_URL to a server"
        ) from error


def _forget_in_child() -> None:
    global _guard  # noqa: PLW0603  # a thread that is not in the child may have held it
    _uses.clear()
    _guard = threading.Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_in_child)
