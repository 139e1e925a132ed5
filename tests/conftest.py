"""A real PostgreSQL for every test that asks: one server a session, one database a test, cloned from a migrated one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import certifi
import hypothesis
import psutil
import psycopg
import pytest
from hypothesis import HealthCheck
from psycopg import sql
from sqlalchemy import URL

from memory_core import MemoryStore
from memory_core.config import settings
from memory_core.db import embedded, schema
from memory_core.db.engine import close_engines
from memory_core.privacy import PrivacyDesk

# No test is timed: how fast an example is made or tried says something of the machine only.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@dataclass(frozen=True, kw_only=True)
class Database:
    """One database, by the addresses of its three roles."""

    superuser: URL
    owner: URL
    application: URL

    def connect(self, url: URL | None = None, **options: Any) -> psycopg.Connection[Any]:
        """Open a bare connection, as the superuser unless told otherwise."""
        return connect(url or self.superuser, **options)


def connect(url: URL, **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(
        user=url.username,
        password=url.password,
        dbname=url.database,
        host=url.query.get("host", url.host),
        port=url.port,
        **options,
    )


IN_MEMORY = Path("/dev/shm")  # where Linux keeps files in memory
ROOM = 4 * 2**30  # bytes, several times what two workers have been seen to need


def has_room_in_memory() -> bool:
    """Whether files may be kept in memory, programs among them, and the machine does not run short of it."""
    if not os.access(IN_MEMORY, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(IN_MEMORY)
    room = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available)
    return room >= ROOM and not found.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what is made in passing, also by the processes that a test starts: in memory, where there is room.

    Most of a server's first start, and of its end, is waiting for a disk.
    """
    if not has_room_in_memory():
        yield Path("/tmp")
        return
    tmp_path_factory.getbasetemp()  # stays on the disk: what a failed test wrote is looked at afterwards
    folder = Path(tempfile.mkdtemp(prefix="memory-", dir=IN_MEMORY))
    folder.chmod(0o1777)  # as such folders are: the database's user makes files of its own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def one_authority(temporary_files: Path) -> Iterator[None]:
    """Trust the first of the certificate authorities alone: each client reads them all anew, and no test needs one."""
    last = "-----END CERTIFICATE-----\n"
    file = temporary_files / f"authority-{uuid4().hex}.pem"
    file.write_text(certifi.contents().partition(last)[0] + last, encoding="ascii")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield
    file.unlink()


@pytest.fixture(scope="session", autouse=True)
def ledger_folder(temporary_files: Path) -> Iterator[Path]:
    """A folder for the ledgers of every test, and of the processes it starts; each organisation's has its own name."""
    folder = Path(tempfile.mkdtemp(prefix="memory-ledgers-"))
    before = os.environ.get("MEMORY_LEDGER")
    os.environ["MEMORY_LEDGER"] = str(folder)
    yield folder
    if before is None:
        del os.environ["MEMORY_LEDGER"]
    else:
        os.environ["MEMORY_LEDGER"] = before
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server_home(temporary_files: Path) -> Iterator[Path]:
    """A folder that the database's user can reach, also when the tests run as root."""
    home = Path(tempfile.mkdtemp(prefix="memory-tests-"))
    home.chmod(0o755)
    yield home / "home"
    embedded.stop(home / "home")
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(server_home: Path) -> embedded.Cluster:
    started = embedded.start(server_home)
    # Nothing here has to survive a power cut; what has to survive a kill is tested on servers of its own.
    with connect(started.superuser, autocommit=True) as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(name)))
        connection.execute("SELECT pg_reload_conf()")
        # Nor is a password guessed; it is hashed this often at each connection, of which there are thousands.
        connection.execute("SET scram_iterations = 1")
        for url in (started.superuser, started.owner, started.application):
            password = sql.SQL("ALTER ROLE {} PASSWORD {}")
            connection.execute(password.format(sql.Identifier(url.username or ""), sql.Literal(url.password)))
    return started


@pytest.fixture(scope="session")
def template(cluster: embedded.Cluster) -> str:
    name = "migrated_template"
    with connect(cluster.superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER memory_owner").format(sql.Identifier(name)))
    with connect(cluster.superuser.set(database=name), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    schema.migrate(cluster.owner.set(database=name), application_role="memory_app")
    return name


@contextmanager
def cloned(cluster: embedded.Cluster, template: str) -> Iterator[Database]:
    """Yield a migrated and empty database that is gone afterwards."""
    name = f"test_{uuid4().hex}"
    with connect(cluster.superuser, autocommit=True) as connection:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER memory_owner")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
    yield Database(
        superuser=cluster.superuser.set(database=name),
        owner=cluster.owner.set(database=name),
        application=cluster.application.set(database=name),
    )
    close_engines()
    with connect(cluster.superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def database(cluster: embedded.Cluster, template: str) -> Iterator[Database]:
    """A database of this test's own."""
    with cloned(cluster, template) as database:
        yield database


@pytest.fixture(scope="module")
def standing(cluster: embedded.Cluster, template: str) -> Iterator[Database]:
    """One database for a module whose tests keep out of each other's way."""
    with cloned(cluster, template) as database:
        yield database


@pytest.fixture
def temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of this test's own for what is made in passing; the database's user can enter it."""
    folder = Path(tempfile.mkdtemp(prefix="memory-tests-"))
    folder.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


OpenStore = Callable[..., MemoryStore]


@pytest.fixture
def open_store(database: Database) -> OpenStore:
    """Open a store on this test's database: no embedder and the database's clock, unless the test brings its own."""

    def opened(
        org_id: str = "acme", *, embedder: Any = None, clock: Callable[[], datetime] | None = None, **options: Any
    ) -> MemoryStore:
        return MemoryStore.open(
            org_id,
            database_url=database.application,
            embedder=embedder,
            clock=clock,
            settings=settings(memory_embedder="none"),
            **options,
        )

    return opened


OpenDesk = Callable[..., PrivacyDesk]


@pytest.fixture
def open_desk(database: Database) -> OpenDesk:
    """Open the desk of a data protection officer on this test's database."""

    def opened(
        org_id: str = "acme", *, by: str = "user:ines", clock: Callable[[], datetime] | None = None, **options: Any
    ) -> PrivacyDesk:
        return PrivacyDesk.open(
            org_id,
            by=by,
            database_url=database.application,
            embedder=None,
            clock=clock,
            settings=settings(memory_embedder="none", **options),
        )

    return opened
