"""`eval-recall` prints what rankings find, or says in one line what is wrong with what it was given."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from fakes import fact, observe
from rows import emptied, snapshot

from memory_core.cli import main

if TYPE_CHECKING:
    from conftest import Database, OpenStore


ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str, str]]
MEMORIES = [
    fact("Panels need two weeks' notice.", source="m-1", run_id="r-1", created_at="2026-05-01T09:00:00Z"),
    fact("Kubernetes is asked about first.", source="m-2", run_id="r-2", created_at="2026-05-02T09:00:00Z"),
    fact("The office in Lisbon is closed.", source="m-3", run_id="r-3", created_at="2026-05-03T09:00:00Z"),
]
QUESTIONS: list[dict[str, Any]] = [
    {"question": "Who asks about Kubernetes?", "evidence": ["m-2"], "category": "named"},
    {"question": "How much notice for panels?", "evidence": ["m-1"], "category": "named"},
    {"question": "Is Lisbon closed?", "evidence": ["m-3"], "category": "place"},
]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def run(database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command beside this test's database, which it should leave alone; returns status, output and errors."""
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def command(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([str(one) for one in arguments])
        except SystemExit as usage:
            status = int(usage.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


Given = Callable[..., tuple[Path, Path]]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Return a function that writes both files; what is no dict is written as it is."""

    def written(memories: list[Any] = MEMORIES, questions: list[Any] = QUESTIONS) -> tuple[Path, Path]:
        paths = tmp_path / "memories.jsonl", tmp_path / "questions.jsonl"
        for path, lines in zip(paths, (memories, questions), strict=True):
            filled = [json.dumps({"org_id": "acme", **one}) if isinstance(one, dict) else one for one in lines]
            path.write_text("".join(f"{one}\n" for one in filled), encoding="utf-8")
        return paths

    return written


# What is printed


def test_the_table_has_a_row_a_ranking_category_and_k_and_compares_the_rankings(run: Run, given: Given) -> None:
    status, out, err = run("eval-recall", *given(), "--ranking", "lexical,recency", "--k", "1,3")
    assert (status, err) == (0, "")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]
    head, _, *rows = rows
    assert head[:4] == ["ranking", "questions", "n", "k"]
    assert [row[:4] for row in rows] == [
        [ranking, category, n, k]
        for category, n in (("all", "3"), ("named", "2"), ("place", "1"))
        for k in ("1", "3")
        for ranking in ("lexical", "recency")
    ]
    values = {tuple(row[:4]): row[4] for row in rows}
    assert values["lexical", "all", "3", "1"].startswith("1.000 [1.000, 1.000]")
    assert values["recency", "all", "3", "1"].startswith("0.333 [0.000, ")
    assert values["recency", "named", "2", "1"].startswith("0.000 [0.000, 0.000]")
    assert values["recency", "all", "3", "3"].startswith("1.000")
    assert "lexical less recency +0.667" in out
    assert "2 questions answered by the first alone, 0 by the second" in out


def test_as_json_the_same_figures_come_out(run: Run, given: Given) -> None:
    status, out, err = run("eval-recall", *given(), "--ranking", "lexical,recency", "--k", "1,3", "--json")
    assert (status, err) == (0, "")
    assert out.isascii()
    report = json.loads(out)
    found = {(row["ranking"], row["category"], row["k"]): row for row in report["rows"]}
    assert len(found) == len(report["rows"]) == 2 * 3 * 2
    assert found["lexical", "all", 1]["any_evidence"] == {"value": 1, "low": 1, "high": 1}
    assert found["recency", "all", 1]["any_evidence"]["value"] == pytest.approx(1 / 3)
    assert found["recency", "all", 3]["reciprocal_rank"]["value"] == pytest.approx((1 / 2 + 1 / 3 + 1) / 3)
    assert found["recency", "all", 3]["questions"] == 3
    assert found["recency", "all", 3]["tokens"]["value"] > found["recency", "all", 1]["tokens"]["value"] > 0
    (one,) = [one for one in report["comparisons"] if (one["category"], one["k"]) == ("all", 1)]
    assert (one["first"], one["second"], one["only_first"], one["only_second"]) == ("lexical", "recency", 2, 0)


def test_the_same_set_gives_the_same_figures(run: Run, given: Given) -> None:
    reports = []
    for _ in range(2):
        _, out, _ = run("eval-recall", *given(), "--ranking", "lexical,recency", "--json")
        report = json.loads(out)
        for row in report["rows"]:
            del row["recall_ms_p50"], row["recall_ms_p95"]
        reports.append(report)
    assert reports[0] == reports[1]
    assert {row["k"] for row in reports[0]["rows"]} == {1, 3, 5, 10, 20}


def test_an_organisation_that_is_asked_for_replaces_that_of_every_line(run: Run, given: Given) -> None:
    elsewhere = given(questions=[{**one, "org_id": "acme-corp"} for one in QUESTIONS])
    status, _, err = run("eval-recall", *elsewhere, "--ranking", "lexical")
    assert (status, "(rule question_has_memories)" in err) == (1, True)
    status, out, _ = run("eval-recall", *elsewhere, "--ranking", "lexical", "--org", "acme-9", "--json")
    assert status == 0
    assert json.loads(out)["rows"][0]["questions"] == 3


def test_two_organisations_in_one_file_are_kept_apart(run: Run, given: Given) -> None:
    better = [{**one, "org_id": "acme-corp", "text": f"Kubernetes {number}"} for number, one in enumerate(MEMORIES)]
    _, out, _ = run("eval-recall", *given([*MEMORIES, *better]), "--ranking", "lexical", "--k", "1", "--json")
    assert json.loads(out)["rows"][0]["any_evidence"]["value"] == 1


def test_evidence_that_is_missing_may_count_as_never_found(run: Run, given: Given) -> None:
    files = given(questions=[QUESTIONS[0], {"question": "Who?", "evidence": ["m-7"]}])
    assert run("eval-recall", *files, "--ranking", "lexical")[0] == 1
    status, out, _ = run("eval-recall", *files, "--ranking", "lexical", "--k", "1", "--allow-missing", "--json")
    assert (status, json.loads(out)["rows"][0]["any_evidence"]["value"]) == (0, 0.5)


def test_a_category_does_nothing_to_the_table_or_the_terminal(run: Run, given: Given) -> None:
    files = given(questions=[*QUESTIONS, {**QUESTIONS[0], "category": "a | b\n\x1b[31m\u202ec\ud800"}])
    status, out, err = run("eval-recall", *files, "--ranking", "lexical", "--k", "1")
    if status == 1:
        assert (len(err.splitlines()), "line 4" in err) == (1, True)
        return
    assert status == 0
    assert all(character.isprintable() or character == "\n" for character in out)
    assert {len(line.replace("\\|", "").split("|")) for line in out.splitlines() if line.startswith("|")} == {11}
    assert len([line for line in out.splitlines() if line.startswith("| lexical")]) == 4


# What is refused

REFUSED: dict[str, tuple[dict[str, list[Any]], list[str], str]] = {
    "no memories": ({"memories": []}, [], "file_has_memories"),
    "no questions": ({"questions": []}, [], "file_has_questions"),
    "a bad memory": ({"memories": [*MEMORIES, {"text": "x"}]}, [], "kind_is_known"),
    "evidence of nothing": ({"questions": [{"question": "Who?", "evidence": ["m-7"]}]}, [], "evidence_names_memories"),
    "k of 0": ({}, ["--k", "0"], "limit_range"),
    "one k of 0": ({}, ["--k", "0,5"], "limit_range"),
    "k of 51": ({}, ["--k", "5,51"], "limit_range"),
    "k below 0": ({}, ["--k=-1"], "limit_range"),
    "no k": ({}, ["--k", ""], "limit_range"),
    "a comma too many": ({}, ["--k", "1,"], "limit_range"),
    "k in words": ({}, ["--k", "five"], "limit_range"),
    "a broken k": ({}, ["--k", "1.5"], "limit_range"),
    "k in other figures": ({}, ["--k", "٥"], "limit_range"),
    "k far too long": ({}, ["--k", "9" * 5000], "limit_range"),
    "an unknown ranking": ({}, ["--ranking", "lexical,best"], "ranking_is_known"),
    "no ranking": ({}, ["--ranking", ""], "ranking_is_known"),
    "an empty organisation": ({}, ["--org", ""], "identifier_is_given"),
    "an organisation of spaces": ({}, ["--org", "a b"], "identifier_shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_measured_is_refused_in_one_line(run: Run, given: Given, name: str) -> None:
    changes, options, rule = REFUSED[name]
    ranking = [] if "--ranking" in options else ["--ranking", "lexical"]
    status, out, err = run("eval-recall", *given(**changes), *ranking, *options)
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert f"(rule {rule})" in err


def test_of_a_bad_line_the_number_is_said_and_of_which_file(run: Run, given: Given) -> None:
    _, _, err = run("eval-recall", *given(questions=[*QUESTIONS, "{"]), "--ranking", "lexical")
    assert "line 4: " in err
    _, _, err = run("eval-recall", *given(memories=[*MEMORIES[:2], "{"]), "--ranking", "lexical")
    assert "line 3: " in err


@pytest.mark.parametrize("missing", [0, 1])
def test_a_file_that_is_not_there_is_one_line(run: Run, given: Given, missing: int) -> None:
    files: list[Path] = [*given()]
    files[missing] = files[missing].with_name("no-such-file")
    status, out, err = run("eval-recall", *files, "--ranking", "lexical")
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    assert "(rule file_is_readable)" in err


def test_a_ranking_by_vectors_without_an_embedder_is_one_line(run: Run, given: Given) -> None:
    for ranking in ("dense", "hybrid", "lexical,hybrid"):
        status, out, err = run("eval-recall", *given(), "--ranking", ranking)
        assert (status, out, len(err.splitlines())) == (1, "", 1)
        assert "no embedder is configured" in err


@pytest.mark.parametrize(
    "arguments", [[], ["memories.jsonl"], ["a", "b", "c"], ["a", "b", "--nonsense"], ["a", "b", "--k"]]
)
def test_a_usage_error_exits_with_two(run: Run, arguments: list[str]) -> None:
    status, out, err = run("eval-recall", *arguments)
    assert (status, out) == (2, "")
    assert "usage: " in err


# What is left behind


def test_nothing_is_left_behind_and_the_configured_database_is_as_it_was(
    run: Run, given: Given, database: Database, open_store: OpenStore, temporary_folder: Path
) -> None:
    observe(open_store(), "Could start in May.")
    held = snapshot(database)
    assert run("eval-recall", *given(), "--ranking", "lexical")[0] == 0
    assert run("eval-recall", *given(memories=["{"]), "--ranking", "lexical")[0] == 1
    assert not [*temporary_folder.iterdir()]
    assert snapshot(database) == held


def _server_in(folder: Path) -> int | None:
    """Return the process of the server whose files are in a folder; one that is still being set up is none."""
    with suppress(OSError, ValueError, IndexError):  # folders are renamed meanwhile
        for file in folder.rglob("postmaster.pid"):
            return pid if (pid := int(file.read_text().splitlines()[0])) > 0 else None
    return None


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whoever_ends_it_midway_ends_its_server_too(
    given: Given, temporary_folder: Path, ended_by: signal.Signals
) -> None:
    memories, _ = given()
    # Questions that never come.
    command = [sys.executable, "-m", "memory_core", "eval-recall", str(memories), "-", "--ranking", "lexical"]
    environment = {"PATH": "/usr/bin:/bin", "MEMORY_EMBEDDER": "none", "TMPDIR": str(temporary_folder)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        until = time.monotonic() + 60
        while (pid := _server_in(temporary_folder)) is None:
            assert time.monotonic() < until, "the server never came"
            time.sleep(0.05)
        server = psutil.Process(pid)
        time.sleep(1)
        running.send_signal(ended_by)
        assert running.wait(60) != 0
    try:
        assert not [*temporary_folder.iterdir()]
        assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    finally:
        with suppress(psutil.NoSuchProcess):
            server.send_signal(signal.SIGINT)


@pytest.mark.model
def test_as_a_program_it_needs_no_database_and_no_settings(given: Given, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memory_core", "eval-recall", *given(), "--k", "1", "--json"],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "TMPDIR": tempfile.gettempdir(),
            "MEMORY_EMBEDDER": "minilm",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    rankings = {row["ranking"] for row in json.loads(done.stdout)["rows"]}
    assert rankings == {"recency", "dense", "lexical", "hybrid"}
    assert not [*tmp_path.glob("**/postmaster.pid")]
