"""The server's first process."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from memory_core.db.embedded.folder import SOCKET, Folder, first_bytes
from memory_core.db.embedded.os_user import ServerUser
from memory_core.errors import EmbeddedServerError

STOP_TIMEOUT_S = 60
FAST_STOP_TIMEOUT_S = 10

# The first message of a connection, before any password. The first is answered by any server that lives; to the second,
# one that accepts connections says R, and one that is starting, recovering or stopping says E.
ENCRYPTION_REQUEST = struct.pack("!II", 8, 80877103)
STARTUP = b"user\0postgres\0database\0postgres\0\0"
STARTUP_MESSAGE = struct.pack("!II", 8 + len(STARTUP), 196608) + STARTUP

# In the background of a shell, so that the server is nobody's child. The log is opened as the server's user, so that
# a link planted there leads nowhere that user could not go; from a megabyte on it is put aside, over the one before.
IN_BACKGROUND = """
test -z "$(find server.log -size +2048 2>/dev/null)" || mv -f server.log server.log.old
"$@" </dev/null >>server.log 2>&1 & echo $!
"""


def answers(socket_directory: Path) -> bool:
    """Say whether a server lives at the socket; takes about a millisecond."""
    return _reply(socket_directory, ENCRYPTION_REQUEST) != b""


def _reply(socket_directory: Path, message: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(os.fsencode(socket_directory / SOCKET))
            client.sendall(message)
            return client.recv(1)
        except OSError:
            return b""


def running(folder: Folder, user: ServerUser) -> psutil.Process | None:
    """Return the server's process if it lives.

    The number in postmaster.pid may by now be anybody's: only a process of PostgreSQL's user that works in our data
    directory is the server.
    """
    pid = _pid_in(folder.data / "postmaster.pid")
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        ours = (
            process.status() != psutil.STATUS_ZOMBIE
            and process.uids().effective == user.uid
            and process.name() == "postgres"
            and Path(process.cwd()).samefile(folder.data)
        )
    except (psutil.Error, OSError):
        return None
    return process if ours else None


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A server's process that was started, and may be over already."""

    pid: int  # 0 if even the shell failed
    process: psutil.Process | None

    @property
    def has_ended(self) -> bool:
        """Whether the process is over."""
        return self.process is None or has_ended(self.process)

    def said(self, folder: Folder, user: ServerUser) -> str:
        """Return its last lines, from a log into which processes of an earlier server may be writing too."""
        lines = user.run("tail", "-n", "50", folder.log.name, cwd=folder.pg).stdout.splitlines()
        own = [line for line in lines if f"[{self.pid}]" in line] if self.pid else []
        return "\n".join(own or lines[-2:])


def is_starting(folder: Folder) -> bool:
    """Say whether the server is on its way to its first connection, without asking it: it logs who asks too early."""
    lines = (first_bytes(folder.data / "postmaster.pid") or b"").splitlines()
    return len(lines) > 7 and lines[7].strip() == b"starting"


def launched(postgres: Path, folder: Folder, user: ServerUser) -> Launch:
    """Start the server's process, which has yet to make the server ready."""
    ran = user.run(
        *("/bin/sh", "-c", IN_BACKGROUND, "sh"),
        *(postgres, "-D", folder.data, "-c", f"config_file={folder.configuration}"),
        cwd=folder.pg,
    )
    pid = int(ran.stdout) if ran.stdout.strip().isdigit() else 0
    try:
        return Launch(pid=pid, process=psutil.Process(pid) if pid else None)
    except psutil.Error:
        return Launch(pid=pid, process=None)


def has_ended(process: psutil.Process) -> bool:
    """Say whether a process is over, reaped or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def stop_process(process: psutil.Process, folder: Folder, user: ServerUser) -> None:
    """Shut the server down and wait for it: clients are sent away, nothing that was committed is lost."""
    # PostgreSQL 18 never ends if a fast shutdown meets the restart after one of its processes crashed. An immediate one
    # always works, and costs the next start a replay.
    accepts = _reply(folder.socket_directory(user), STARTUP_MESSAGE) == b"R"
    _signal(process, signal.SIGINT if accepts else signal.SIGQUIT)
    if not _wait(process, seconds=FAST_STOP_TIMEOUT_S):
        _signal(process, signal.SIGQUIT)
        if not _wait(process, seconds=STOP_TIMEOUT_S):
            raise EmbeddedServerError(
                f"PostgreSQL (process {process.pid}) does not shut down; see {folder.log}, or kill that process"
            )


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):  # psutil signals no other process that has the number by now
        process.send_signal(number)


def _wait(process: psutil.Process, *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not has_ended(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def remove_stale_locks(folder: Folder, user: ServerUser) -> None:
    """Remove lock files that name a living process; to be called when none of those is the server.

    PostgreSQL itself removes those of a dead one, and still refuses to start beside its own orphaned processes.
    """
    for lock in (folder.data / "postmaster.pid", folder.socket_directory(user) / f"{SOCKET}.lock"):
        pid = _pid_in(lock)
        if pid is not None and psutil.pid_exists(pid):
            user.run("rm", "-f", "--", lock, cwd=Path("/"))


def _pid_in(lock: Path) -> int | None:
    first_line = (first_bytes(lock) or b"").split(b"\n")[0].strip()
    if not first_line.isdigit():
        return None
    pid = int(first_line)
    return pid if 1 < pid < 2**31 else None
