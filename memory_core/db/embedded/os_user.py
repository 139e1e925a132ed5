"""The operating system's user that PostgreSQL runs as."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memory_core.config import environment_without_postgres
from memory_core.errors import EmbeddedServerError

if sys.platform != "win32":
    import pwd

NAME = "memory-workbench"
USERADD = ("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell")

# The server outlives the process that starts it and, for root, runs with fewer rights: it gets no keys of ours.
PASSED_ON = ("PATH", "TMPDIR", "LD_LIBRARY_PATH")


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """Who PostgreSQL runs as: this process's own user or, for root, a system user that owns nothing else."""

    name: str
    uid: int
    gid: int
    switched: bool  # from root, so what this user may write is not to be trusted

    def run(self, *command: str | Path, cwd: Path, keep_open: Iterable[int] = ()) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, outside our terminal's session.

        Returns its exit code and both its streams as `stdout`. Raises OSError if it cannot be executed at all.
        """
        return subprocess.run(
            [str(part) for part in command],
            check=False,
            cwd=cwd,
            env={name: value for name, value in environment_without_postgres().items() if name in PASSED_ON}
            | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            pass_fds=tuple(keep_open),
            start_new_session=True,
            umask=0o077,
            user=self.uid if self.switched else None,
            group=self.gid if self.switched else None,
            extra_groups=[] if self.switched else None,
        )

    def blocked_at(self, folder: Path) -> Path | None:
        """Return the outermost folder on the way to `folder` that this user cannot enter."""
        way = [*reversed(folder.parents), folder]
        checked = self.run(
            "/bin/sh", "-c", 'for step; do test -x "$step" || exit 1; echo; done', "sh", *way, cwd=Path("/")
        )
        return None if checked.returncode == 0 else way[checked.stdout.count("\n")]


def server_user() -> ServerUser:
    """Return the user that PostgreSQL runs as, making the system user if we are root and it is missing."""
    uid = os.geteuid()
    if uid != 0:
        return ServerUser(name=_name_of(uid), uid=uid, gid=os.getegid(), switched=False)
    entry = _entry() or _created()
    if entry.pw_uid == 0:
        raise EmbeddedServerError(f"the user {NAME} is root, and PostgreSQL refuses to run as root; rename that user")
    return ServerUser(name=NAME, uid=entry.pw_uid, gid=entry.pw_gid, switched=True)


def _created() -> pwd.struct_passwd:
    why = ""
    for _ in range(10):  # another process may hold the lock of /etc/passwd, or make this very user
        shell = shutil.which("nologin", path="/usr/sbin:/sbin:/usr/bin:/bin") or "/bin/false"
        try:
            made = subprocess.run(
                [*USERADD, shell, NAME], check=False, capture_output=True, text=True, errors="replace"
            )
            why = made.stderr.strip().replace("\n", "; ")
        except OSError as error:
            why = f"useradd: {error.strerror}"
        entry = _entry()
        if entry:
            return entry
        time.sleep(0.2)
    raise EmbeddedServerError(
        f"PostgreSQL refuses to run as root, and its user {NAME} could not be made ({why}); "
        f"make a system user of that name, run this as an ordinary user, or set DATABASE_URL"
    )


def _entry() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(NAME)
    except KeyError:
        return None


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
