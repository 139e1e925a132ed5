from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from conftest import connect
from fakes import CANDIDATE, Clock, observe
from psycopg import sql
from rows import counts, emptied, execute, snapshot
from sqlalchemy import event
from waiting import until

from memory_core import MemoryCoreError, MemoryStore, Refused, SettingsError, Subject
from memory_core.config import settings
from memory_core.db import ledger_file
from memory_core.db.embedded.locks import exclusive
from memory_core.db.engine import engine_for
from memory_core.errors import LedgerUnusable, LineRefused
from memory_core.interchange import export_lines
from memory_core.privacy import PrivacyDesk
from memory_core.rights import LedgerAct

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

    from memory_core.db import embedded

OTHER = Subject("candidate", "c-82")


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this test's own for the ledger, which nobody has made yet."""
    monkeypatch.setenv("MEMORY_LEDGER", str(tmp_path / "ledgers"))
    return tmp_path / "ledgers"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(folder: Path, open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock)


@pytest.fixture
def desk(folder: Path, open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(clock=clock)


Spoil = Callable[[Path], object]


def path_of(folder: Path, database: Database, org_id: str = "acme") -> Path:
    ((ledger_id,),) = execute(database, "SELECT ledger_id FROM organisation WHERE org_id = %s", (org_id,))
    return ledger_file.path_of(folder, ledger_id)


def inside(database: Database, org_id: str = "acme") -> list[UUID]:
    statement = "SELECT entry_id FROM ledger WHERE org_id = %s ORDER BY number"
    return [entry_id for (entry_id,) in execute(database, statement, (org_id,))]


def outside(folder: Path, database: Database, org_id: str = "acme") -> list[UUID]:
    return [one.entry_id for one in ledger_file.read(path_of(folder, database, org_id)).entries]


# What is written


def test_every_erasure_is_an_entry_inside_and_outside_also_of_nothing(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database, clock: Clock
) -> None:
    memory = observe(store, "Could start in May.")
    by_store = store.forget(CANDIDATE, by="user:maria", reason="asked to")
    clock.step(hours=1)
    by_desk = desk.erase(OTHER, reason="asked to")  # of whom nothing is held
    assert by_store.ledger_is_outside
    assert by_desk.ledger_is_outside
    assert outside(folder, database) == inside(database)
    first, second = ledger_file.read(path_of(folder, database)).entries
    assert (first.act, first.subject, first.memory_ids) == (LedgerAct.FORGET, CANDIDATE, (memory.memory_id,))
    assert (first.reference, first.by, first.at) == (by_store.erasure_id, "user:maria", by_store.at)
    assert (second.subject, second.memory_ids, second.reference) == (OTHER, (), by_desk.erasure_id)
    assert [one.number for one in (first, second)] == [1, 2]
    heads = {line.number: line.hash for line in desk.trail()}
    assert all(heads[one.trail_number] == one.trail_hash for one in (first, second))


def test_an_erasure_that_was_rolled_back_is_no_entry(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    observe(store, "Could start in May.")
    desk.hold("court case", subject=CANDIDATE, name="claim-7")
    before = inside(database)
    for act in (
        lambda: store.forget(CANDIDATE, by="user:ines", reason="asked to"),
        lambda: desk.erase(CANDIDATE, reason="asked to", also=[uuid4()]),
        lambda: desk.erase(OTHER, reason="asked to", expecting=3),
    ):
        with pytest.raises(Refused):
            act()
    assert inside(database) == outside(folder, database) == before
    assert len(before) == 1


def test_corrections_and_measures_are_entries_and_looks_are_not(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    memory = observe(store, "Could start in May.")
    desk.held(CANDIDATE)
    desk.dispute(memory, "I never said that.")
    desk.lift(desk.hold("court case", subject=CANDIDATE, name="claim-7"), reason="settled")
    restriction = desk.restrict("contested", memory_id=memory.memory_id)
    desk.lift(restriction, reason="it was right", person_told=True)
    desk.correct(memory, "Could start in June.", author="user:zoe", reason="it is June")
    desk.erase(CANDIDATE, reason="asked to", suppress=True)
    entries = ledger_file.read(path_of(folder, database)).entries
    assert [one.act.value for one in entries] == [
        *("hold", "lift", "restriction", "lift", "correct", "forget", "suppression"),
    ]
    assert entries[0].name == entries[1].name == "claim-7"
    assert entries[2].memory_ids == entries[4].memory_ids == (memory.memory_id,)
    assert outside(folder, database) == inside(database)


def test_no_text_name_or_reason_stands_in_the_file(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    memory = observe(store, "Text4b7e.", subject=Subject("candidate", "c-81", "Label4b7e", ("Alias4b7e",)))
    desk.dispute(memory, "Words4b7e.")
    desk.lift(desk.hold("Hold4b7e reason", subject=CANDIDATE, name="claim-7"), reason="Lifted4b7e")
    desk.correct(memory, "Corrected4b7e.", author="user:zoe", reason="Because4b7e")
    desk.erase(CANDIDATE, reason="Reason4b7e", suppress=True)
    content = path_of(folder, database).read_text(encoding="ascii")
    assert "c-81" in content
    words = ("Text", "Label", "Alias", "Words", "Hold", "Lifted", "Corrected", "Because", "Reason")
    assert [word for word in words if f"{word}4b7e" in content] == []


def test_only_its_owner_may_read_the_ledger(store: MemoryStore, folder: Path, database: Database) -> None:
    before = os.umask(0)
    try:
        store.forget(CANDIDATE, by="user:ines", reason="asked to")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
    assert path_of(folder, database).exists()


def test_each_organisation_has_a_file_of_its_own_that_does_not_name_it(
    store: MemoryStore, open_store: OpenStore, folder: Path, database: Database
) -> None:
    other = open_store("../acme")  # which is an identifier, and would be a path
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    other.forget(OTHER, by="user:ines", reason="asked to")
    assert len([*folder.glob("*.jsonl")]) == 2
    assert [*folder.parent.iterdir()] == [folder]
    for org_id in ("acme", "../acme"):
        found = ledger_file.read(path_of(folder, database, org_id))
        assert (found.org_id, len(found.entries)) == (org_id, 1)


# What keeps it from being written


FORGETTING = """
import sys
from memory_core import MemoryStore, Subject
from memory_core.config import settings
url = sys.stdin.readline().strip()
store = MemoryStore.open("acme", database_url=url, embedder=None, settings=settings(memory_embedder="none"))
print("ready", flush=True)
for line in sys.stdin:
    store.forget(Subject("candidate", line.strip()), by="user:ines", reason="asked to")
print("done", flush=True)
"""


@pytest.fixture
def forgetting(folder: Path, database: Database) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start processes that erase each subject whose id they are given."""
    url = database.application.render_as_string(hide_password=False)
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        one = subprocess.Popen(
            [sys.executable, "-c", FORGETTING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(one)
        tell(one, url)
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def test_an_erasure_whose_process_is_killed_before_it_was_copied_out_is_copied_by_the_next_act(
    store: MemoryStore,
    desk: PrivacyDesk,
    folder: Path,
    database: Database,
    forgetting: Callable[[], subprocess.Popen[str]],
) -> None:
    store.forget(OTHER, by="user:ines", reason="asked to")
    path = path_of(folder, database)
    process = forgetting()
    with exclusive(path.with_suffix(".lock")):  # so that it can go no further than its commit
        tell(process, "c-81")
        until(lambda: counts(database)["ledger"] == 2)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert len(outside(folder, database)) == 1
    assert desk.erase(Subject("candidate", "c-83"), reason="asked to").ledger_is_outside
    assert outside(folder, database) == inside(database)
    assert len(inside(database)) == 3


@pytest.fixture
def lost_after_commit(database: Database, cluster: embedded.Cluster) -> Iterator[None]:
    """Let the server turn everybody away as soon as the next entry of the ledger is committed, until the test ends."""
    engine = engine_for(database.application)
    name = sql.Identifier(str(database.application.database))
    before = counts(database).get("ledger", 0)

    def admit(admitted: bool) -> None:
        with connect(cluster.superuser, autocommit=True) as connection:
            word = sql.SQL("true" if admitted else "false")
            connection.execute(sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}").format(name, word))
            if not admitted:
                ending = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
                connection.execute(ending, (database.application.database,))

    turned_away: list[bool] = []

    def returned(*_: Any) -> None:  # a connection goes back to the pool once its transaction is over
        if not turned_away and counts(database).get("ledger", 0) > before:
            turned_away.append(True)
            admit(False)

    event.listen(engine, "checkin", returned)
    yield
    event.remove(engine, "checkin", returned)
    admit(True)
    assert turned_away


@pytest.mark.parametrize("act", ["forget", "hold"])
def test_an_act_returns_what_it_did_although_the_database_goes_before_its_entry_is_copied_out(
    store: MemoryStore,
    desk: PrivacyDesk,
    folder: Path,
    database: Database,
    request: pytest.FixtureRequest,
    act: str,
) -> None:
    observe(store, "Could start in May.")
    desk.erase(OTHER, reason="asked to")
    path = path_of(folder, database)
    request.getfixturevalue("lost_after_commit")
    if act == "forget":
        erasure = store.forget(CANDIDATE, by="user:ines", reason="asked to")
        assert (erasure.count, erasure.ledger_is_outside) == (1, False)
    else:
        assert desk.hold("court case", subject=CANDIDATE, name="claim-7").stands
    assert len(ledger_file.read(path).entries) == 1


def test_looking_at_the_ledgers_state_copies_out_what_is_missing_outside(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    store.forget(OTHER, by="user:ines", reason="asked to")
    path_of(folder, database).unlink()
    state = desk.ledger()
    assert (state.missing, state.fault, state.path) == (0, None, path_of(folder, database))
    assert outside(folder, database) == inside(database)


def test_before_anything_is_on_record_there_is_no_ledger(desk: PrivacyDesk, folder: Path) -> None:
    state = desk.ledger()
    assert (state.path, state.missing, state.fault) == (None, 0, None)
    assert not folder.exists()


def a_file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("in the way")


def a_folder_in_its_place(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def test_an_erasure_stands_where_the_folder_cannot_be_used_and_the_desk_says_why(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    observe(store, "Could start in May.")
    observe(store, "Knows her well.", subject=OTHER)
    assert store.forget(OTHER, by="user:ines", reason="asked to").ledger_is_outside
    a_file_in_its_place(folder)
    erasure = store.forget(CANDIDATE, by="user:ines", reason="asked to")
    assert (erasure.count, erasure.ledger_is_outside) == (1, False)
    assert counts(database)["ledger"] == 2
    state = desk.ledger()
    assert state.fault is not None
    assert str(folder) in state.fault
    assert "MEMORY_LEDGER" in state.fault
    assert "Not a directory" in state.fault
    with pytest.raises(LedgerUnusable):  # nobody knows then whether the database is behind
        store.recall("May?", run_id="r-2")
    assert desk.erase(CANDIDATE, reason="once more").ledger_is_outside is False
    folder.unlink()
    assert desk.ledger().fault is None
    assert outside(folder, database) == inside(database)
    assert len(inside(database)) == 3
    assert store.recall("May?", run_id="r-2").memories == ()


def test_measures_corrections_and_writes_stand_too_where_the_ledger_cannot_be_used_and_nothing_is_handed_out(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    memory = observe(store, "Could start in May.")
    a_file_in_its_place(folder)
    desk.lift(desk.hold("court case", subject=CANDIDATE, name="claim-7"), reason="settled")
    desk.correct(memory, "Could start in June.", author="user:zoe", reason="it is June")
    observe(store, "Prefers mornings.")
    assert len(inside(database)) == 3
    before = snapshot(database)
    with pytest.raises(LedgerUnusable):  # nobody knows then whether the database is behind
        desk.package(CANDIDATE, release=True)
    with pytest.raises(LedgerUnusable):
        list(export_lines(engine_for(database.application), "acme", folder=folder, by="user:ines"))
    assert snapshot(database) == before
    folder.unlink()
    assert desk.ledger().fault is None
    assert outside(folder, database) == inside(database)


SPOILED: dict[str, Spoil] = {
    "a folder in its place": a_folder_in_its_place,
    "a file of something else": lambda path: path.write_text("name,born\nZoë,1990\n"),
    "a line that is no JSON": lambda path: path.write_text(path.read_text() + "{]\n"),
    "a ledger of another database": lambda path: path.write_text(
        json.dumps({"format": ledger_file.FORMAT, "org_id": "acme", "ledger_id": str(uuid4())}) + "\n"
    ),
}


@pytest.mark.parametrize("what", SPOILED)
def test_an_erasure_stands_where_the_file_is_damaged_and_the_file_is_left_as_it_is(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database, what: str
) -> None:
    observe(store, "Could start in May.")
    store.forget(OTHER, by="user:ines", reason="asked to")
    path = path_of(folder, database)
    whole = path.read_bytes()
    SPOILED[what](path)
    damaged = path.read_bytes() if path.is_file() else None
    erasure = desk.erase(CANDIDATE, reason="asked to")
    assert (erasure.count, erasure.ledger_is_outside) == (1, False)
    assert desk.ledger().fault is not None
    assert (path.read_bytes() if path.is_file() else None) == damaged
    if path.is_dir():
        path.rmdir()
    path.write_bytes(whole)
    assert desk.ledger().fault is None
    assert outside(folder, database) == inside(database)


@pytest.mark.parametrize("what", SPOILED)
def test_what_is_remembered_while_the_file_is_damaged_is_not_lost_and_nothing_is_recalled(
    store: MemoryStore, folder: Path, database: Database, what: str
) -> None:
    store.forget(OTHER, by="user:ines", reason="asked to")
    SPOILED[what](path_of(folder, database))
    observe(store, "Could start in May.")
    assert store.held(CANDIDATE).with_text == 1
    with pytest.raises(MemoryCoreError):
        store.recall("when could they start?", run_id="r-2")


def test_an_empty_file_is_what_a_killed_writer_left_and_is_written_anew(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    store.forget(OTHER, by="user:ines", reason="asked to")
    path_of(folder, database).write_bytes(b"")
    assert desk.erase(CANDIDATE, reason="asked to").ledger_is_outside
    assert desk.ledger().fault is None
    assert outside(folder, database) == inside(database)


@pytest.mark.parametrize("kept", [1, 40, 100])
def test_a_first_line_that_was_never_finished_is_written_anew(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database, kept: int
) -> None:
    store.forget(OTHER, by="user:ines", reason="asked to")
    path = path_of(folder, database)
    path.write_bytes(path.read_bytes()[:kept])
    assert b"\n" not in path.read_bytes()
    assert desk.erase(CANDIDATE, reason="asked to").ledger_is_outside
    assert desk.ledger().fault is None
    assert outside(folder, database) == inside(database)


@pytest.mark.parametrize("cut", [1, 2, 30, 200])
def test_a_last_line_that_was_never_finished_is_written_again(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database, cut: int
) -> None:
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    store.forget(OTHER, by="user:ines", reason="asked to")
    path = path_of(folder, database)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert len(outside(folder, database)) == 1
    assert desk.verify_trail().broken is None
    assert desk.ledger().fault is None
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-cut])
    assert desk.erase(CANDIDATE, reason="asked to").ledger_is_outside
    assert outside(folder, database) == inside(database)


def test_a_disk_that_is_full_leaves_a_line_unfinished_and_heals(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    store.forget(OTHER, by="user:ines", reason="asked to")
    path = path_of(folder, database)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        erasure = desk.erase(CANDIDATE, reason="asked to")
        fault = desk.ledger().fault
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert erasure.ledger_is_outside is False
    assert fault is not None
    assert path.read_bytes().startswith(before)
    assert desk.ledger().fault is None
    assert outside(folder, database) == inside(database)
    assert path.read_bytes().startswith(before)


# Two at once


def each_once(folder: Path, database: Database, number: int) -> None:
    written = outside(folder, database)
    assert len(written) == len(set(written)) == number
    assert set(written) == set(inside(database))
    lines = path_of(folder, database).read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_threads_that_erase_at_once_write_each_entry_once(
    open_store: OpenStore, folder: Path, database: Database
) -> None:
    together = Barrier(6)

    def erased(number: int) -> list[bool]:
        store = open_store()
        together.wait(30)
        return [
            store.forget(
                Subject("candidate", f"c-{number}-{turn}"), by="user:ines", reason="asked to"
            ).ledger_is_outside
            for turn in range(8)
        ]

    with ThreadPoolExecutor(6) as threads:
        assert {outside for done in threads.map(erased, range(6)) for outside in done} == {True}
    each_once(folder, database, 48)


def test_processes_that_erase_at_once_write_each_entry_once(
    folder: Path, database: Database, forgetting: Callable[[], subprocess.Popen[str]]
) -> None:
    two = [forgetting() for _ in range(2)]
    for turn in range(20):
        for number, process in enumerate(two):
            tell(process, f"c-{number}-{turn}")
    for process in two:
        assert process.communicate(timeout=60)[0] == "done\n"
    each_once(folder, database, 40)


# What is read


@pytest.fixture
def written(store: MemoryStore, folder: Path, database: Database, tmp_path: Path) -> Path:
    """A copy of a ledger with a head and three entries."""
    for subject_id in ("c-1", "c-2", "c-3"):
        observe(store, "Could start in May.", subject=Subject("candidate", subject_id))
        store.forget(Subject("candidate", subject_id), by="user:ines", reason="asked to")
    return Path(shutil.copy(path_of(folder, database), tmp_path / "copy.jsonl"))


def changed(**fields: Any) -> Callable[[dict[str, Any]], str]:
    return lambda entry: json.dumps(entry | fields)


def without(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda entry: json.dumps({key: value for key, value in entry.items() if key != name})


def head_of(org_id: str) -> str:
    return json.dumps({"format": ledger_file.FORMAT, "org_id": org_id, "ledger_id": str(uuid4())})


BAD_LINES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "nothing": ("ledger_line_is_json", lambda _: ""),
    "no JSON": ("ledger_line_is_json", lambda _: "{]"),
    "half of it": ("ledger_line_is_json", lambda entry: json.dumps(entry)[:70]),
    "a list": ("ledger_line_is_json", lambda _: "[1]"),
    "deep nesting": ("ledger_line_is_json", lambda _: "[" * 100_000),
    "an empty object": ("ledger_line_is_an_entry", lambda _: "{}"),
    **{
        f"no {name}": ("ledger_line_is_an_entry", without(name))
        for name in (
            "number",
            "entry_id",
            "act",
            "subject",
            "memory_ids",
            "name",
            "reference",
            "at",
            "by",
            "code",
            "trail",
        )
    },
    "an unknown act": ("ledger_line_is_an_entry", changed(act="remember")),
    "no such identifier": ("ledger_line_is_an_entry", changed(entry_id="c-81")),
    "a number for an identifier": ("ledger_line_is_an_entry", changed(entry_id=7)),
    "memories that are none": ("ledger_line_is_an_entry", changed(memory_ids=["c-81"])),
    "memories that are no list": ("ledger_line_is_an_entry", changed(memory_ids=7)),
    "a subject that is none": ("ledger_line_is_an_entry", changed(subject={"type": "candidate", "id": "c 81"})),
    "a subject that is a text": ("ledger_line_is_an_entry", changed(subject="candidate c-81")),
    "a moment without its zone": ("ledger_line_is_an_entry", changed(at="2026-11-02T09:00:00")),
    "a moment that is none": ("ledger_line_is_an_entry", changed(at="yesterday")),
    "somebody who is none": ("ledger_line_is_an_entry", changed(by="ines, the officer")),
    "nobody": ("ledger_line_is_an_entry", changed(by=None)),
    "a code that is a sentence": ("ledger_line_is_an_entry", changed(code="because Zoë asked us to")),
    "no code": ("ledger_line_is_an_entry", changed(code=None)),
    "a number that is none": ("ledger_line_is_an_entry", changed(number="first")),
    "a number without an end": ("ledger_line_is_an_entry", changed(number=float("inf"))),
    "a head that is no hash": ("ledger_line_is_an_entry", changed(trail={"number": 1, "hash": "xyz"})),
    "a head of the wrong length": ("ledger_line_is_an_entry", changed(trail={"number": 1, "hash": "00"})),
    "another organisation's head": ("ledger_is_of_one_organisation", lambda _: head_of("acme-corp")),
    "an erasure of nobody": ("ledger_line_is_an_entry", changed(subject=None)),
    "a measure about nothing": ("ledger_line_is_an_entry", changed(act="hold", subject=None, memory_ids=[])),
    "a suppression of a memory": (
        "ledger_line_is_an_entry",
        lambda entry: json.dumps(entry | {"act": "suppression", "memory_ids": [str(uuid4())]}),
    ),
    "a year that no database holds": ("ledger_line_is_an_entry", changed(at="9980-01-01T00:00:00+00:00")),
    "a year before the first": ("ledger_line_is_an_entry", changed(at="0001-01-01T00:00:00+14:00")),
    "a lifting of nothing": ("ledger_line_is_an_entry", changed(act="lift", reference=None)),
    "its own head again": ("ledger_line_is_an_entry", lambda _: head_of("acme")),
}


def test_a_suppression_of_a_subject_and_a_late_year_are_read(written: Path) -> None:
    lines = written.read_text().splitlines()
    late = json.loads(lines[2]) | {"act": "suppression", "memory_ids": [], "at": "9979-12-31T23:59:59+00:00"}
    written.write_text("\n".join([*lines[:2], json.dumps(late), lines[3]]) + "\n")
    assert [one.act for one in ledger_file.read(written).entries] == ["forget", "suppression", "forget"]


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_is_refused_by_its_number_and_left_out_on_request(written: Path, what: str) -> None:
    rule, spoil = BAD_LINES[what]
    lines = written.read_text().splitlines()
    lines[2] = spoil(json.loads(lines[2]))
    written.write_text("\n".join(lines) + "\n")
    with pytest.raises(LineRefused) as caught:
        ledger_file.read(written)
    assert (caught.value.line, caught.value.rule, caught.value.others) == (3, rule, 0)
    found = ledger_file.read(written, skip_bad=True)
    assert [one.subject.id for one in found.entries if one.subject] == ["c-1", "c-3"]
    assert [(one.line, one.rule) for one in found.bad_lines] == [(3, rule)]


def test_an_entry_that_is_given_twice_is_refused_the_second_time(written: Path) -> None:
    lines = written.read_text().splitlines()
    written.write_text("\n".join([*lines, lines[1], lines[2]]) + "\n")
    with pytest.raises(LineRefused) as caught:
        ledger_file.read(written)
    assert (caught.value.line, caught.value.rule, caught.value.others) == (5, "ledger_line_is_given_once", 1)
    assert len(ledger_file.read(written, skip_bad=True).entries) == 3


def test_bytes_that_are_no_text_are_a_bad_line(written: Path) -> None:
    written.write_bytes(written.read_bytes() + b"\xff\xfe\x00{\n")
    with pytest.raises(LineRefused) as caught:
        ledger_file.read(written)
    assert (caught.value.line, caught.value.rule) == (5, "ledger_line_is_json")


NO_LEDGERS = {
    "nothing": b"",
    "a new line": b"\n",
    "a table": b"name,born\nZo,1990\n",
    "another format": b'{"format": "memory-workbench ledger 2", "org_id": "acme", "ledger_id": "' + b"0" * 32 + b'"}\n',
    "no organisation": json.dumps({"format": ledger_file.FORMAT, "ledger_id": str(uuid4())}).encode() + b"\n",
    "an organisation that is none": head_of("acme corp").encode() + b"\n",
    "an organisation that is a number": head_of(7).encode() + b"\n",  # type: ignore[arg-type]
    "no identifier": json.dumps({"format": ledger_file.FORMAT, "org_id": "acme", "ledger_id": 7}).encode() + b"\n",
    "an image": b"\x89PNG\r\n\x1a\n\x00\x00",
}


@pytest.mark.parametrize("what", NO_LEDGERS)
def test_a_file_that_is_no_ledger_is_refused_as_that(tmp_path: Path, what: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(NO_LEDGERS[what])
    for skip_bad in (False, True):
        with pytest.raises(Refused) as caught:
            ledger_file.read(path, skip_bad=skip_bad)
        assert caught.value.rule == "file_is_a_ledger"


def test_what_is_no_regular_file_is_no_ledger_and_nobody_waits_for_it(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    observe(store, "Could start in May.")
    desk.erase(OTHER, reason="asked to")
    path = path_of(folder, database)
    path.unlink()
    os.mkfifo(path)  # to read it would be to wait for whoever writes to it
    for read in (lambda: ledger_file.read(path), lambda: store.recall("May?", run_id="r-2")):
        with pytest.raises(LedgerUnusable, match="is no regular file"):
            read()
    with pytest.raises(LedgerUnusable, match="is no regular file"):
        ledger_file.read(Path("/dev/zero"))
    assert "is no regular file" in str(desk.ledger().fault)
    erasure = desk.erase(CANDIDATE, reason="asked to")
    assert (erasure.count, erasure.ledger_is_outside) == (1, False)


def test_a_file_that_is_not_there_or_a_folder_cannot_be_used(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(LedgerUnusable):
            ledger_file.read(path)


@pytest.mark.parametrize("name", ["ledgers", "./ledgers", "../ledgers"])
def test_the_ledgers_folder_is_an_absolute_path(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("MEMORY_LEDGER", name)
    with pytest.raises(SettingsError, match=r"MEMORY_LEDGER.*absolute"):
        settings()


def test_the_ledgers_folder_is_beside_the_database_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_HOME", "/srv/memory")
    monkeypatch.setenv("MEMORY_LEDGER", "")
    assert settings().ledger_folder == Path("/srv/memory/ledger")
    monkeypatch.setenv("MEMORY_LEDGER", "~/ledgers")
    assert settings().ledger_folder == Path.home() / "ledgers"
