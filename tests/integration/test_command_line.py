"""The command line, as a program and a person use it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from conftest import Database, OpenStore
from fakes import fact, observation
from rows import execute
from waiting import until_it_answers

from memory_core import Subject
from memory_core.cli import main, parser
from memory_core.db import embedded

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on this test's database; returns exit status, standard output and standard error."""
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MIGRATION_DATABASE_URL", database.owner.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("MEMORY_ORG", "acme")

    def command(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(arguments)
        except SystemExit as usage:
            status = int(usage.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


def test_every_command_explains_itself(run: Run) -> None:
    (subcommands,) = [action for action in parser()._actions if action.choices]
    assert subcommands.choices is not None
    for command in subcommands.choices:
        status, out, _ = run(command, "--help")
        assert status == 0
        assert out.startswith("usage: ")


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["recall"], ["held", "candidate"], ["forget", "candidate", "c-1"]]
)
def test_a_usage_error_exits_with_two(run: Run, arguments: list[str]) -> None:
    assert run(*arguments)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["recall", "x", "--limit", "0"], "limit_range"),
        (["recall", "x", "--limit", "-1"], "limit_range"),
        (["recall", "x", "--limit", "10000"], "limit_range"),
        (["recall", "x", "--token-budget", "0"], "token_budget_range"),
        (["recall", "x", "--kind", "opinion"], "kind_is_known"),
        (["recall", "x", "--ranking", "best"], "ranking_is_known"),
        (["recall", ""], "query_is_not_blank"),
        (["recall", "x", "--org", "a b"], "identifier_shape"),
        (["recall", "x", "--org", ""], "identifier_is_given"),
        (["held", "candidate", "c 1"], "identifier_shape"),
        (["held", "candidate", "c-1\n"], "identifier_shape"),
        (["held", "candidate", "%"], "identifier_shape"),
        (["forget", "candidate", "c-1", "--by", "user:ines", "--reason", ""], "reason_is_given"),
        (["forget", "candidate", "c-1", "--by", "user:ines", "--reason", "x" * 501], "reason_length"),
        (["forget", "candidate", "c-1", "--by", "Ines Smith", "--reason", "x"], "identifier_shape"),
        (["import", "/no/such/file"], "file_is_readable"),
        (["import", "/tmp"], "file_is_readable"),
        (["export", "--output", "/no/such/folder/file"], "file_is_writable"),
        (["embed", "--model", "word2vec"], "model_is_known"),
        (["serve", "--port", "70000"], "port_is_free"),
    ],
)
def test_a_refusal_is_one_line_and_exits_with_one(run: Run, arguments: list[str], rule: str) -> None:
    status, out, err = run(*arguments)
    assert status == 1
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"(rule {rule})" in err


def test_import_then_recall_held_forget(run: Run, tmp_path: Path, database: Database) -> None:
    file = tmp_path / "memories.jsonl"
    lines = [
        observation(
            "Could start in March.", subject={"type": "candidate", "id": "c-81", "label": "Zoë"}, org_id="acme"
        ),
        fact("Panels need two weeks.", org_id="acme"),
        fact("Panels need two weeks.", org_id="acme-corp"),
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, out, _ = run("import", str(file), "--json")
    assert status == 0
    assert json.loads(out)["organisations"] == {
        "acme": {"stored": 2, "refreshed": 0, "without_embedding": 2},
        "acme-corp": {"stored": 1, "refreshed": 0, "without_embedding": 1},
    }
    status, out, _ = run("recall", "when?", "--json")
    recall = json.loads(out)
    assert (recall["mode"], recall["reason"]) == ("recency", "no embedder is configured")
    assert len(recall["memories"]) == 2
    assert execute(database, "SELECT DISTINCT purpose FROM disclosure") == [("preview",)]
    run("recall", "when?", "--run", "r-9")
    assert execute(database, "SELECT count(*) FROM disclosure WHERE purpose = 'run' AND run_id = 'r-9'") == [(2,)]
    status, out, _ = run("held", "candidate", "c-81")
    assert 'candidate c-81 "Zoë": 1 held, 1 with text' in out
    assert "Could start in March." in out
    status, out, _ = run("forget", "candidate", "c-81", "--by", "user:ines", "--reason", "asked", "--json")
    assert json.loads(out)["count"] == 1
    status, out, _ = run("held", "candidate", "c-81")
    assert "Could start" not in out
    assert "Zoë" not in out
    assert "erased" in out
    assert '"asked"' in out


def test_a_bad_line_is_named_by_number_and_rule_and_nothing_is_stored(
    run: Run, tmp_path: Path, database: Database
) -> None:
    file = tmp_path / "memories.jsonl"
    good = [json.dumps(fact(f"Rule {number}.", org_id="acme")) for number in range(1, 500)]
    file.write_text("\n".join([*good, json.dumps(fact("  ", org_id="acme")), json.dumps(fact("Fine.", org_id="acme"))]))
    status, out, err = run("import", str(file))
    assert (status, out) == (1, "")
    assert (
        err == "line 500: text: is blank; there is nothing to remember (rule text_is_not_blank); nothing was stored\n"
    )
    assert execute(database, "SELECT count(*) FROM memory") == [(0,)]
    status, out, err = run("import", str(file), "--skip-bad")
    assert status == 0
    assert "line 500" in err
    assert execute(database, "SELECT count(*) FROM memory") == [(500,)]


def test_an_empty_file_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_bytes(b"\n\n")
    status, _, err = run("import", str(file))
    assert status == 1
    assert "file_has_memories" in err


def test_what_was_exported_can_be_imported_elsewhere(run: Run, tmp_path: Path, open_store: OpenStore) -> None:
    open_store().remember(
        **observation("Speaks Finnish.", subject=Subject("candidate", "c-1", label="Aino", aliases=["A"]))
    )
    file = tmp_path / "out.jsonl"
    assert run("export", "--output", str(file))[0] == 0
    assert run("import", str(file), "--org", "other")[0] == 0
    held = open_store("other").held(Subject("candidate", "c-1"))
    assert (held.subject.label, held.subject.aliases) == ("Aino", ("A",))
    assert [memory.text for memory in held.memories] == ["Speaks Finnish."]
    assert list(tmp_path.iterdir()) == [file]


def test_an_export_that_fails_leaves_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    status, _, err = run("export", "--output", str(tmp_path / "out.jsonl"))
    assert status == 1
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_no_terminal_acts_on_what_a_memory_says(run: Run, open_store: OpenStore) -> None:
    escape = "\x1b]0;owned\x07 \u202egnp.exe \x9b31m"
    open_store().remember(**observation(escape, subject=Subject("candidate", "c-1", label=escape.replace("\x1b", ""))))
    for arguments in (["held", "candidate", "c-1"], ["recall", "x"], ["held", "candidate", "c-1", "--json"]):
        _, out, _ = run(*arguments)
        assert not [character for character in out if not (character.isprintable() or character == "\n")]


def test_a_database_that_is_down_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://somebody:s3cret@127.0.0.1:1/nothing")
    status, out, err = run("recall", "x")
    assert (status, out) == (1, "")
    assert "cannot be reached" in err
    assert "s3cret" not in err
    assert len(err.splitlines()) == 1


def test_a_bad_setting_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDER", "gpt")
    status, _, err = run("recall", "x")
    assert status == 1
    assert err.startswith("MEMORY_EMBEDDER: ")


def test_migrate_says_from_where_to_where_and_prints_its_sql(run: Run) -> None:
    assert run("migrate") == (0, "revision 000022 -> 000022\n", "")
    status, out, _ = run("migrate", "--sql")
    assert status == 0
    assert "CREATE TABLE memory (" in out
    assert '"memory_app"' in out


def test_the_demo_fills_an_organisation_once(run: Run, open_store: OpenStore) -> None:
    assert run("demo", "--json")[0] == 0
    _, out, _ = run("demo")
    assert out == "acme: already holds memories; nothing was added\n"
    counts = open_store().overview().counts
    assert sum(counts.values()) == 600


def test_two_demos_at_once_fill_it_once(database: Database) -> None:
    environment = os.environ | {
        "DATABASE_URL": database.application.render_as_string(hide_password=False),
        "MEMORY_EMBEDDER": "none",
    }
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "memory_core", "demo"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    assert [one.wait(timeout=120) for one in both] == [0, 0]
    assert execute(database, "SELECT count(*) FROM memory") == [(600,)]


def test_serving_in_production_without_a_sign_in_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_ENV", "production")
    for key, named in (("", "MODEL_API_KEY: "), ("k3y-of-nobody", "APP_ENV: ")):
        monkeypatch.setenv("MODEL_API_KEY", key)
        status, _, err = run("serve")
        assert status == 1
        assert err.startswith(named)
        assert "k3y-of-nobody" not in err


def test_a_port_in_use_is_refused(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, _, err = run("serve", "--port", str(taken.getsockname()[1]))
    assert status == 1
    assert "port_is_free" in err


def test_output_that_nobody_reads_any_more_is_no_traceback(database: Database, open_store: OpenStore) -> None:
    open_store().remember_many([fact(f"Rule {number}.") for number in range(3000)])
    environment = os.environ | {
        "DATABASE_URL": database.application.render_as_string(hide_password=False),
        "MEMORY_ORG": "acme",
    }
    export = subprocess.Popen(
        [sys.executable, "-m", "memory_core", "export"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert export.stdout is not None
    assert export.stderr is not None
    export.stdout.readline()
    export.stdout.close()
    assert "Traceback" not in export.stderr.read()
    export.stderr.close()
    export.wait(timeout=60)


def test_a_workbench_that_nobody_opened_leaves_no_server_behind() -> None:
    folder = Path(tempfile.mkdtemp(prefix="memory-serve-"))
    folder.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"MEMORY_HOME": str(folder / "home"), "MEMORY_EMBEDDER": "none", "MEMORY_ORG": "demo"}
    workbench = subprocess.Popen(
        [sys.executable, "-m", "memory_core", "serve", "--demo"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert workbench.stderr is not None
        url = workbench.stderr.readline().removeprefix("Workbench: ").strip()
        until_it_answers(url)
        assert (folder / "home" / "pg" / "data").exists()
        workbench.terminate()
        workbench.wait(timeout=30)
        left = [
            one.pid for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or ())
        ]
        assert left == []
    finally:
        workbench.kill()
        workbench.wait()
        workbench.stderr.close()
        embedded.stop(folder / "home")
        shutil.rmtree(folder, ignore_errors=True)
