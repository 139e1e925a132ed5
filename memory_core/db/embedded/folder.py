"""The folder that holds an embedded cluster."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from memory_core.db.embedded.os_user import ServerUser
from memory_core.errors import EmbeddedServerError

SOCKET = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 103  # bytes, what macOS takes; Linux takes four more


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Where the parts of a cluster are.

    Everything belongs to the user of this process, except `pg` and what is in it, which PostgreSQL's user owns.
    """

    home: Path

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the server."""
        return self.home / "lock"

    @property
    def users(self) -> Path:
        """Held, shared, by every process that uses the server."""
        return self.home / "users"

    @property
    def credentials(self) -> Path:
        """The passwords."""
        return self.home / "credentials.json"

    @property
    def first_password(self) -> Path:
        """The superuser's password while the data directory is made."""
        return self.home / "initdb.password"

    @property
    def configuration(self) -> Path:
        """The server's settings."""
        return self.home / "postgresql.conf"

    @property
    def authentication(self) -> Path:
        """Who may connect, and how."""
        return self.home / "pg_hba.conf"

    @property
    def binaries(self) -> Path:
        """Copies of PostgreSQL's programs, where its user cannot reach the installed ones."""
        return self.home / "binaries"

    @property
    def pg(self) -> Path:
        """What PostgreSQL writes."""
        return self.home / "pg"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.pg / "data"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.pg / "server.log"

    @property
    def has_data(self) -> bool:
        """Whether there is a data directory already."""
        return os.path.lexists(self.data)

    def socket_directory(self, user: ServerUser) -> Path:
        """Return where the server's socket is: in `pg`, unless no client could be told that path."""
        path = str(self.pg / SOCKET)
        sayable = "," not in path and path.isprintable()  # a comma separates hosts; half a surrogate is no text
        if sayable and len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
            return self.pg
        # Not TMPDIR: it differs between processes, and all of them must come to the same directory.
        name = hashlib.sha256(os.fsencode(self.pg)).hexdigest()[:16]
        return Path(f"/tmp/memory-workbench-{user.uid}-{name}")  # noqa: S108

    def write(self, path: Path, content: bytes, *, mode: int) -> None:
        """Write a file of this folder whole or not at all."""
        draft = path.with_name(path.name + ".new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
        flush(self.home)


def flush(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def opened_folder(home: Path, user: ServerUser) -> Folder:
    """Return the folder, made if it is missing.

    Raises `EmbeddedServerError` if it is a file, cannot be written, or (for root) somebody else could write in it.
    """
    nearest = next(path for path in (home, *home.parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise EmbeddedServerError(f"{nearest} is a file; set MEMORY_HOME to a folder")
    _make(home, user)
    found = home.stat()
    if user.switched:
        if found.st_uid != 0:
            raise EmbeddedServerError(
                f"{home} belongs to user {found.st_uid} and this is root; run as that user or set MEMORY_HOME elsewhere"
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise EmbeddedServerError(
                f"{home} can be written by others than root; run: chmod go-w on it, or set MEMORY_HOME elsewhere"
            )
    elif not os.access(home, os.W_OK | os.X_OK):
        raise EmbeddedServerError(
            f"{home} cannot be written by user {user.name}; give it to that user, or set MEMORY_HOME elsewhere"
        )
    return Folder(home=home)


def _check_way(path: Path, user: ServerUser) -> None:
    blocked = user.blocked_at(path) if user.switched else None
    if blocked:
        raise EmbeddedServerError(
            f"PostgreSQL runs as {user.name}, which cannot enter {blocked}; "
            f"set MEMORY_HOME to a folder below /var/lib, or run: chmod o+x on it"
        )


def _make(home: Path, user: ServerUser) -> None:
    way = [path for path in (home, *home.parents) if not path.exists()]
    if way:
        _check_way(way[-1].parent, user)  # before anything is left behind there
    for missing in reversed(way):
        try:
            missing.mkdir(mode=0o700 if missing == home else 0o755)
        except FileExistsError:
            continue  # another process was faster
        if user.switched:
            missing.chmod(0o755)  # whatever the umask, PostgreSQL's user must get through what we made


def hand_over(folder: Folder, user: ServerUser) -> None:
    """Make `pg` PostgreSQL's own, and the socket's directory wherever that is.

    Raises `EmbeddedServerError` if either is somebody else's, or open to others.
    """
    _check_way(folder.home, user)
    if not os.path.lexists(folder.pg):
        folder.pg.mkdir(mode=0o700)
    if user.switched and folder.pg.lstat().st_uid == 0 and not any(folder.pg.iterdir()):
        os.chown(folder.pg, user.uid, user.gid, follow_symlinks=False)  # in root's folder, so nobody can swap it
    _is_private(folder.pg, user, advice="run chown -R and chmod 700 on it, or move it away")
    socket_directory = folder.socket_directory(user)
    if not os.path.lexists(socket_directory):
        user.run("mkdir", "-m", "700", "--", socket_directory, cwd=Path("/"))
    _is_private(socket_directory, user, advice="remove it, or set MEMORY_HOME to a shorter path")


def _is_private(path: Path, user: ServerUser, *, advice: str) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid or found.st_mode & 0o077:
        raise EmbeddedServerError(f"{path} must be a folder that only {user.name} can enter; {advice}")


def first_bytes(path: Path, *, limit: int = 4096) -> bytes | None:
    """Return the start of a small file that PostgreSQL's user could have replaced by anything, or None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
