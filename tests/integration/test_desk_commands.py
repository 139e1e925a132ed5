"""The commands about expiry, restores and proof, and as whom a look or an export is recorded."""

from __future__ import annotations

import getpass
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from conftest import Database, OpenDesk, OpenStore, connect
from fakes import CANDIDATE, fact, observe
from psycopg import sql
from rows import execute, snapshot

from memory_core import Subject
from memory_core.cli import main
from memory_core.db import embedded, schema
from memory_core.db.engine import close_engines

Run = Callable[..., tuple[int, str, str]]
ME = f"user:{getpass.getuser()}"


@pytest.fixture
def run(database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on this test's database; returns exit status, standard output and standard error."""
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MIGRATION_DATABASE_URL", database.owner.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("MEMORY_ORG", "acme")
    return lambda *arguments: ran(capsys, *arguments)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(arguments)
    except SystemExit as usage:
        status = int(usage.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def ledger(open_store: OpenStore, open_desk: OpenDesk) -> Path:
    """Return the ledger of an organisation that has erased somebody."""
    store = open_store()
    observe(store, "Could start in May.")
    observe(store, "Speaks Finnish.", subject=Subject("candidate", "c-7"))
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    path = open_desk().ledger().path
    assert path is not None
    return path


def expired(database: Database, open_store: OpenStore, *org_ids: str) -> None:
    """Let each organisation hold one memory that has expired, one on hold, one restricted, one that lives, an old tombstone."""
    for org_id in org_ids:
        store = open_store(org_id)
        for text in ("expired", "on hold", "restricted", "lives", "gone"):
            observe(store, text, subject=Subject("candidate", f"c-{text.replace(' ', '-')}"))
        store.forget(Subject("candidate", "c-gone"), by="user:ines", reason="asked to")
    execute(
        database, "UPDATE memory SET created_at = now() - interval '9 years', expires_at = now() - interval '8 years'"
    )
    execute(database, "UPDATE memory SET expires_at = now() + interval '9 days' WHERE text = 'lives'")
    execute(database, "UPDATE memory SET hold = 'claim-7' WHERE text = 'on hold'")
    execute(database, "UPDATE memory SET restricted_at = now() WHERE text = 'restricted'")
    execute(database, "UPDATE memory SET forgotten_at = now() - interval '4 years' WHERE forgotten_at IS NOT NULL")


# As whom


def test_a_look_and_an_export_are_recorded_as_whoever_is_named_or_else_logged_in(run: Run, database: Database) -> None:
    for named in ([], ["--by", "user:ines"]):
        assert run("held", "candidate", "c-81", *named)[0] == 0
        assert run("export", *named)[0] == 0
    assert execute(database, "SELECT by, act, subject_id FROM trail ORDER BY number") == [
        (ME, "look", "c-81"),
        (ME, "export all", None),
        ("user:ines", "look", "c-81"),
        ("user:ines", "export all", None),
    ]


def test_an_export_is_on_record_with_how_many_before_its_first_line_leaves(
    run: Run, open_store: OpenStore, database: Database
) -> None:
    open_store().remember_many([fact(f"Rule {number}.") for number in range(7)])
    assert run("export", "--output", "/no/such/folder/file")[0] == 1
    assert execute(database, "SELECT act, count FROM trail") == []
    status, out, _ = run("export", "--by", "user:ines")
    assert (status, len(out.splitlines())) == (0, 7)
    assert execute(database, "SELECT act, count FROM trail") == [("export all", 7)]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["held", "candidate", "c-81", "--by", "Ines Smith"], "identifier_shape"),
        (["held", "candidate", "c-81", "--by", "user:ines\n"], "identifier_shape"),
        (["export", "--by", "Ines Smith"], "identifier_shape"),
        (["sweep", "--org", "a b"], "identifier_shape"),
        (["sweep", "--org", "%"], "identifier_shape"),
        (["sweep", "--org", ""], "identifier_is_given"),
        (["sweep", "--dry-run", "--org", "a b"], "identifier_shape"),
        (["verify-trail", "--org", "a b"], "identifier_shape"),
        (["verify-trail", "--org", ""], "identifier_is_given"),
        (["verify-trail", "--head", "nonsense"], "head_is_number_and_hash"),
        (["verify-trail", "--head", ""], "head_is_number_and_hash"),
        (["verify-trail", "--head", "0:" + "00" * 32], "head_is_number_and_hash"),
        (["verify-trail", "--head=-1:" + "00" * 32], "head_is_number_and_hash"),
        (["verify-trail", "--head", "1:" + "00" * 31], "head_is_number_and_hash"),
        (["verify-trail", "--head", "1:" + "zz" * 32], "head_is_number_and_hash"),
    ],
)
def test_what_may_not_be_is_one_line_and_exits_with_one(
    run: Run, database: Database, arguments: list[str], rule: str
) -> None:
    before = snapshot(database)
    status, out, err = run(*arguments)
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert f"(rule {rule})" in err
    assert snapshot(database) == before


@pytest.mark.parametrize(
    "arguments", [["replay-erasures"], ["sweep", "acme"], ["verify-trail", "acme"], ["sweep", "--by", "x"]]
)
def test_a_usage_error_exits_with_two(run: Run, arguments: list[str]) -> None:
    assert run(*arguments)[0] == 2


NO_LEDGERS: dict[str, bytes] = {
    "empty": b"",
    "no line": b'{"format": "memory-workbench ledger 1"',
    "no JSON": b"Dear Sir or Madam,\n",
    "bytes": bytes(range(256)) + b"\n",
    "a list": b"[]\n",
    "a memory": b'{"kind": "fact", "text": "We never meet on Fridays.", "org_id": "acme"}\n',
    "another format": b'{"format": "another ledger 7", "org_id": "acme", "ledger_id": "%s"}\n' % str(uuid4()).encode(),
    "no organisation": b'{"format": "memory-workbench ledger 1", "ledger_id": "%s"}\n' % str(uuid4()).encode(),
    "no identifier": b'{"format": "memory-workbench ledger 1", "org_id": "acme", "ledger_id": "7"}\n',
    "a path for an organisation": b'{"format": "memory-workbench ledger 1", "org_id": "../acme", "ledger_id": "7"}\n',
    "very deep": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("what", NO_LEDGERS)
def test_a_file_that_is_no_ledger_is_refused_in_one_line(
    run: Run, ledger: Path, database: Database, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(NO_LEDGERS[what])
    before = snapshot(database)
    for options in ([], ["--skip-bad"]):
        status, out, err = run("replay-erasures", str(file), *options)
        assert (status, out) == (1, "")
        assert len(err.splitlines()) == 1
        assert "(rule file_is_a_ledger)" in err
    assert snapshot(database) == before
    assert file.read_bytes() == NO_LEDGERS[what]


@pytest.mark.parametrize("name", ["not-there", ".", "x" * 300])
def test_a_ledger_that_cannot_be_read_is_one_line(run: Run, tmp_path: Path, name: str) -> None:
    status, out, err = run("replay-erasures", str(tmp_path / name))
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1


def test_a_ledger_of_another_organisation_or_database_is_refused(
    run: Run, ledger: Path, database: Database, tmp_path: Path
) -> None:
    before = snapshot(database)
    ours = ledger.read_text()
    ledger_id = ledger.stem
    for content, options, rule in (
        (ours, ["--org", "acme-corp"], "ledger_is_of_the_organisation"),
        (ours.replace(ledger_id, str(uuid4())), [], "ledger_is_of_the_database"),
        (ours.replace('"org_id": "acme"', '"org_id": "nobody"'), [], "ledger_is_of_the_database"),
    ):
        file = tmp_path / "ledger.jsonl"
        file.write_text(content)
        status, out, err = run("replay-erasures", str(file), *options)
        assert (status, out) == (1, ""), rule
        assert len(err.splitlines()) == 1
        assert rule in err
    assert snapshot(database) == before


def test_whoever_replays_is_named_by_an_identifier(run: Run, ledger: Path, database: Database) -> None:
    before = snapshot(database)
    status, out, err = run("replay-erasures", str(ledger), "--by", "Ines Smith")
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "(rule identifier_shape)" in err
    assert snapshot(database) == before


def test_a_bad_line_of_a_ledger_is_named_by_its_number_and_nothing_is_done(
    run: Run, ledger: Path, database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.jsonl"
    file.write_bytes(ledger.read_bytes() + b"what is this\n" + b"{}\n")
    before = snapshot(database)
    status, out, err = run("replay-erasures", str(file))
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "line 3: " in err
    assert "(rule ledger_line_is_json)" in err
    assert snapshot(database) == before
    status, out, err = run("replay-erasures", str(file), "--skip-bad", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {"org_id": "acme", "entries": 0, "emptied": 0, "bad_lines": 2, "ledger_is_outside": True}


# Sweep


def test_a_sweep_empties_purges_and_says_what_it_kept(run: Run, open_store: OpenStore, database: Database) -> None:
    expired(database, open_store, "acme", "globex")
    before = snapshot(database)
    status, out, err = run("sweep", "--dry-run")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{org_id}: 1 expired would be emptied, 1 tombstones would be purged, kept: 1 on hold, 1 restricted (holds: claim-7)"
        for org_id in ("acme", "globex")
    ]
    status, out, err = run("sweep", "--dry-run", "--compact", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["compacted"] is False
    assert snapshot(database) == before

    status, out, err = run("sweep", "--org", "acme", "--json")
    assert (status, err) == (0, "")
    counted = {"emptied": 1, "purged": 1, "kept_by_hold": 1, "kept_by_restriction": 1}
    assert json.loads(out) == {
        "organisations": [{"org_id": "acme", **counted, "holds": ["claim-7"], "dry_run": False}],
        "compacted": False,
    }
    texts = 'SELECT org_id, text FROM memory ORDER BY org_id, text COLLATE "C" NULLS LAST'
    assert execute(database, texts) == [
        *(("acme", text) for text in ("lives", "on hold", "restricted", None)),
        *(("globex", text) for text in ("expired", "lives", "on hold", "restricted", None)),
    ]
    recorded = execute(database, "SELECT by, act, count FROM trail WHERE org_id = 'acme' ORDER BY number")
    assert recorded[-2:] == [(ME, "sweep", 1), (ME, "purge", 1)]

    status, out, _ = run("sweep")
    assert out.splitlines() == [
        "acme: 0 expired emptied, 0 tombstones purged, kept: 1 on hold, 1 restricted (holds: claim-7)",
        "globex: 1 expired emptied, 1 tombstones purged, kept: 1 on hold, 1 restricted (holds: claim-7)",
    ]


def test_a_sweep_of_nothing_says_so(run: Run) -> None:
    assert run("sweep") == (0, "no organisation, nothing to sweep\n", "")
    assert json.loads(run("sweep", "--json")[1]) == {"organisations": [], "compacted": False}


def test_compacting_without_the_owners_address_is_refused_before_anything_is_swept(
    run: Run, open_store: OpenStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired(database, open_store, "acme")
    monkeypatch.delenv("MIGRATION_DATABASE_URL")
    before = snapshot(database)
    status, out, err = run("sweep", "--compact")
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "MIGRATION_DATABASE_URL" in err
    assert snapshot(database) == before


MARKER = "xylotheque"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an embedded server of this test's own."""
    folder = Path(tempfile.mkdtemp(prefix="memory-compact-"))
    folder.chmod(0o755)
    for name in ("DATABASE_URL", "MIGRATION_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMORY_HOME", str(folder / "home"))
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("MEMORY_ORG", "acme")
    yield folder / "home"
    close_engines()
    embedded.stop(folder / "home")
    shutil.rmtree(folder, ignore_errors=True)


def files_with(home: Path, marker: str) -> list[str]:
    """Return the database's files, its write-ahead log aside, in which a marker is left."""
    with connect(embedded.start(home).superuser, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    below = home / "pg"
    assert list(below.rglob("base")), "the database is somewhere else"
    return [
        str(path.relative_to(below))
        for path in sorted(below.rglob("*"))
        if path.is_file() and "pg_wal" not in path.parts and marker.encode() in path.read_bytes().lower()
    ]


def test_after_compacting_the_files_have_nothing_of_what_was_erased(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines: list[dict[str, Any]] = [
        {
            **{"org_id": "acme", "kind": "observation", "origin": "inference", "author": "agent:screening"},
            **{"run_id": "r-1", "text": f"Note {number} on the {MARKER}."},
            "subject": {
                "type": "candidate",
                "id": "c-81",
                "label": f"{MARKER} Müller",
                "aliases": [f"{MARKER}@example.org"],
            },
        }
        for number in range(50)
    ]
    lines.append(fact("Panels need two weeks.", org_id="acme"))
    file = tmp_path / "memories.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert ran(capsys, "import", str(file))[0] == 0
    assert ran(capsys, "recall", MARKER, "--ranking", "lexical")[0] == 0
    forget = ["forget", "candidate", "c-81", "--by", "user:ines", "--reason", "asked to"]
    assert ran(capsys, *forget)[0] == 0
    assert [path for path in files_with(home, MARKER) if "base" in Path(path).parts]  # so that the test means something

    status, out, err = ran(capsys, "sweep", "--compact", "--json")
    assert status == 0
    assert json.loads(out)["compacted"] is True
    assert "rewriting tables and indexes" in err
    assert files_with(home, MARKER) == []
    status, out, _ = ran(capsys, "recall", "weeks?")
    assert (status, "Panels need two weeks." in out) == (0, True)
    assert ran(capsys, "verify-trail")[0] == 0


# Restores


def test_a_restored_database_recalls_nothing_until_its_erasures_are_done_again(
    run: Run,
    open_store: OpenStore,
    open_desk: OpenDesk,
    database: Database,
    cluster: embedded.Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observe(open_store(), "Could start in May.")
    observe(open_store(), "Speaks Finnish.", subject=Subject("candidate", "c-7"))
    close_engines()
    name = f"test_{uuid4().hex}"
    with connect(cluster.superuser, autocommit=True) as connection:  # a backup, restored beside
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER memory_owner")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(database.application.database or "")))
    try:
        assert run("forget", "candidate", "c-81", "--by", "user:ines", "--reason", "asked to")[0] == 0
        ledger = open_desk().ledger().path
        restored = database.application.set(database=name).render_as_string(hide_password=False)
        monkeypatch.setenv("DATABASE_URL", restored)
        status, out, err = run("recall", "when?")
        assert (status, out) == (1, "")
        assert len(err.splitlines()) == 1
        assert "replay-erasures" in err
        assert str(ledger) in err
        status, out, err = run("verify-trail")
        assert (status, len(err.splitlines())) == (1, 1)
        assert "restored from a backup: 1 entry of the ledger of acme is not in it" in err
        assert "broken" not in out + err
        assert run("replay-erasures", str(ledger), "--by", "user:ines", "--org", "acme") == (
            *(0, "acme: 1 entries done again, 1 memories erased again\n"),
            "",
        )
        status, out, _ = run("recall", "when?")
        assert (status, "May" in out, "Finnish" in out) == (0, False, True)
        _, out, _ = run("replay-erasures", str(ledger))
        assert out == "acme: every entry of this ledger is in the database; nothing to do\n"
        assert run("verify-trail")[0] == 0
    finally:
        close_engines()
        with connect(cluster.superuser, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_replaying_a_ledger_that_the_database_knows_changes_nothing(run: Run, ledger: Path, database: Database) -> None:
    before, content = snapshot(database), ledger.read_bytes()
    status, out, err = run("replay-erasures", str(ledger), "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {"org_id": "acme", "entries": 0, "emptied": 0, "bad_lines": 0, "ledger_is_outside": True}
    assert (snapshot(database), ledger.read_bytes()) == (before, content)


# Proof


def test_verify_trail_prints_the_head(run: Run, ledger: Path, database: Database) -> None:
    ((number, line),) = execute(database, "SELECT number, hash FROM trail ORDER BY number DESC LIMIT 1")
    head = f"{number}:{line.hex()}"
    status, out, err = run("verify-trail")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"acme: {number} lines, each agrees with the one before, and with 1 heads of the ledger outside",
        f"head: {head}",
    ]
    status, out, _ = run("verify-trail", "--head", head, "--json")
    found = json.loads(out)
    assert (status, found["lines"], found["head"], found["broken"], found["heads_outside"]) == (
        0,
        number,
        head,
        None,
        1,
    )
    assert "and with the head that was given" in run("verify-trail", "--head", f" {head.upper()}\n")[1]


def test_an_empty_trail_has_no_head(run: Run) -> None:
    status, out, _ = run("verify-trail", "--org", "globex")
    assert (status, out.splitlines()[-1]) == (0, "head: none, the trail is empty")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trail SET by = 'user:bo' WHERE number = 2",
        "UPDATE trail SET at = at + interval '1 microsecond' WHERE number = 2",
        "UPDATE trail SET subject_id = 'c-8' WHERE number = 2",
        "UPDATE trail SET act = 'export all' WHERE number = 2",
        "UPDATE trail SET count = 7 WHERE number = 2",
        "UPDATE trail SET count = NULL WHERE number = 2",
        "UPDATE trail SET reason = 'nothing' WHERE number = 2",
        "UPDATE trail SET hash = sha256('x') WHERE number = 2",
        "DELETE FROM trail WHERE number = 2",
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_verify_trail_names_the_line_that_does_not_hold(
    run: Run, open_store: OpenStore, database: Database, change: str, as_json: bool
) -> None:
    for _ in range(3):
        open_store().held(CANDIDATE, by="user:ines")
    execute(database, change)
    status, out, err = run("verify-trail", *(["--json"] if as_json else []))
    assert status == 1
    assert err.startswith("acme: the trail is broken at line 2: ")
    assert len(err.splitlines()) == 1
    if as_json:
        assert json.loads(out)["broken"]["number"] == 2
    else:
        assert out == ""


def test_an_end_that_was_cut_off_shows_against_a_head_from_outside(
    run: Run, open_store: OpenStore, database: Database
) -> None:
    for _ in range(3):
        open_store().held(CANDIDATE, by="user:ines")
    _, out, _ = run("verify-trail")
    head = out.splitlines()[-1].removeprefix("head: ")
    execute(database, "DELETE FROM trail WHERE number = 3")
    assert run("verify-trail")[0] == 0  # two lines that agree
    status, out, err = run("verify-trail", "--head", head)
    assert (status, out) == (1, "")
    assert err.startswith("acme: the trail is broken at line 3: ")


def test_the_ledger_outside_shows_a_trail_that_was_written_anew(run: Run, ledger: Path, database: Database) -> None:
    execute(database, "DELETE FROM trail WHERE number > 0")
    status, out, err = run("verify-trail")
    assert (status, out) == (1, "")
    assert err.startswith("acme: the trail is broken at line 1: ")


def test_a_ledger_that_cannot_vouch_for_the_trail_is_told_and_what_is_left_is_checked(
    run: Run, ledger: Path, database: Database
) -> None:
    ledger.write_bytes(ledger.read_bytes() + b"what is this\n")
    _, out, err = run("verify-trail", "--json")
    assert err.startswith("not compared with the ledger outside: ")
    assert "line 3" in err
    assert len(err.splitlines()) == 1
    assert (json.loads(out)["heads_outside"], json.loads(out)["broken"]) == (0, None)
    execute(database, "UPDATE trail SET by = 'user:bo' WHERE number = 1")
    status, out, err = run("verify-trail")
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("acme: the trail is broken at line 1: ")


def test_a_trail_that_was_emptied_is_not_called_whole_because_its_ledger_was_damaged_as_well(
    run: Run, ledger: Path, database: Database
) -> None:
    execute(database, "DELETE FROM trail")
    ledger.write_bytes(ledger.read_bytes() + b"what is this\n")
    assert run("verify-trail")[0] == 1


def test_an_erasure_whose_ledger_cannot_be_written_is_done_and_says_so(
    run: Run, open_store: OpenStore, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    observe(open_store(), "Could start in May.")
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setenv("MEMORY_LEDGER", str(blocked))
    status, out, err = run("forget", "candidate", "c-81", "--by", "user:ines", "--reason", "asked to", "--json")
    assert status == 0
    assert json.loads(out)["ledger_is_outside"] is False
    assert json.loads(out)["count"] == 1
    assert len(err.splitlines()) == 1
    assert str(blocked) in err
    monkeypatch.setenv("MEMORY_LEDGER", str(tmp_path / "ledgers"))
    run("forget", "candidate", "c-0", "--by", "user:ines", "--reason", "asked to")
    ((ledger_id,),) = execute(database, "SELECT ledger_id FROM organisation")
    assert isinstance(ledger_id, UUID)
    assert len((tmp_path / "ledgers" / f"{ledger_id}.jsonl").read_text().splitlines()) == 3  # the head, and both


def test_the_commands_need_the_newest_revision(run: Run, database: Database) -> None:
    execute(database, "UPDATE alembic_version SET version_num = '000019'")
    for arguments in (["sweep"], ["verify-trail"], ["replay-erasures", "/no/such/file"]):
        status, out, err = run(*arguments)
        assert (status, out) == (1, "")
        assert "python -m memory_core migrate" in err
        assert len(err.splitlines()) == 1
    assert schema.newest_revision() == "000022"
