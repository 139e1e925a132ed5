"""Every notebook, run from top to bottom in a kernel of its own."""

from __future__ import annotations

import ast
import html
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from call_rows import Row, believable, store
from conftest import Database
from nbclient import NotebookClient
from rows import counts, emptied
from wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.notebook]

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NAMES = ["latency.ipynb", "recall_quality.ipynb", "recall_size.ipynb"]
MARKUP = "<img src=https://evil.example/a.png> <b>bold</b> =HYPERLINK(1) $x$"
SMALL = {"sample": 12, "ranking": "lexical", "most_memories": 6}

Notebook = Any
Ran = Callable[..., "Told"]


class Told:
    """What a notebook said when it was run."""

    def __init__(self, notebook: Notebook) -> None:
        self.outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]

    @property
    def printed(self) -> str:
        """All that was printed."""
        return "".join(output.text for output in self.outputs if output.output_type == "stream")

    @property
    def complaints(self) -> str:
        """All that went to standard error."""
        return "".join(output.text for output in self.outputs if output.get("name") == "stderr")

    @property
    def tables(self) -> list[str]:
        """Each table's markup."""
        found = [output.data["text/html"] for output in self.outputs if "text/html" in output.get("data", {})]
        return [one for one in found if "<table" in one]

    @property
    def charts(self) -> dict[str, Any]:
        """Each chart by its title, as plotly gets it."""
        mime = "application/vnd.plotly.v1+json"
        drawn = [output.data[mime] for output in self.outputs if mime in output.get("data", {})]
        return {chart["layout"]["title"]["text"]: chart for chart in drawn}


def read(name: str) -> Notebook:
    return nbformat.read(FOLDER / name, as_version=4)


def code_of(notebook: Notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def parameters_of(notebook: Notebook) -> Notebook:
    (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    return cell


def assigned(source: str) -> dict[str, Any]:
    """Return what plain assignments of literals assign; fails on anything else."""
    values = {}
    for node in ast.parse(source).body:
        assert isinstance(node, ast.Assign)
        (target,) = node.targets
        assert isinstance(target, ast.Name)
        values[target.id] = ast.literal_eval(node.value)
    return values


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def ran(database: Database, tmp_path: Path) -> Ran:
    """Run a notebook with other parameters on this test's database; whatever asks Ollama is not answered."""
    with Wire() as gone:
        nobody = gone.url
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "MODEL_"))}
    environment = kept | {
        "DATABASE_URL": database.application.render_as_string(hide_password=False),
        "MEMORY_HOME": str(tmp_path / "home"),
        "OLLAMA_HOST": nobody,
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "jupyter"),
        "PYTHONWARNINGS": "default",
    }

    def run(name: str, parameters: Mapping[str, Any]) -> Told:
        notebook = read(name)
        cell = parameters_of(notebook)
        values = assigned(cell.source)
        assert set(parameters) <= set(values), "a parameter has another name now"
        cell.source = "\n".join(f"{one} = {value!r}" for one, value in (values | parameters).items())
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            resources={"metadata": {"path": FOLDER}},
        )
        client.execute(env=environment)
        told = Told(notebook)
        assert told.complaints == ""
        return told

    return run


def keep(database: Database, rows: Iterable[Row], org_id: str = "acme") -> None:
    with database.connect() as connection:
        store(connection, org_id, rows)


def written(path: Path, lines: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def an_export(folder: Path, texts: Mapping[str, str]) -> str:
    """Write memories by their sources."""
    return written(
        folder / "memories.jsonl",
        [
            {
                "org_id": "acme",
                "kind": "fact",
                "text": text,
                "origin": "person",
                "author": "user:maria",
                "run_id": "r-1",
                "source": source,
                "created_at": f"2026-11-02T09:{minute:02}:00Z",
            }
            for minute, (source, text) in enumerate(texts.items())
        ],
    )


def some_questions(folder: Path, evidence: Mapping[str, str]) -> str:
    """Write questions with their one source each."""
    return written(
        folder / "questions.jsonl",
        [{"org_id": "acme", "question": text, "evidence": [source]} for text, source in evidence.items()],
    )


def each_chart_says_its_units(told: Told) -> None:
    assert told.charts
    for title, chart in told.charts.items():
        for axis in ("xaxis", "yaxis"):
            assert chart["layout"][axis]["title"]["text"], title


def test_every_notebook_is_here() -> None:
    assert [path.name for path in NOTEBOOKS] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_committed_without_what_it_said(name: str) -> None:
    for cell in read(name).cells:
        if cell.cell_type == "code":
            assert cell.outputs == [], "clear the outputs: they show what is remembered about people"
            assert cell.execution_count is None
            assert "execution" not in cell.metadata
        assert not cell.get("attachments")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_says_first_what_it_answers_and_what_it_needs(name: str) -> None:
    first = read(name).cells[0]
    assert first.cell_type == "markdown"
    for words in ("# ", "**Answers:**", "**Needs:**", "No Ollama", "commit"):
        assert words in first.source


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_plain_assignments_in_the_first_cell_of_code(name: str) -> None:
    notebook = read(name)
    assert parameters_of(notebook).source == code_of(notebook)[0]
    assert assigned(code_of(notebook)[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_thin_and_keeps_away_from_the_database(name: str) -> None:
    modules = set()
    for source in code_of(read(name)):
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
            elif isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            assert not isinstance(node, ast.ClassDef | ast.While)
        assert not [trap for trap in ("HTML(", "Markdown(", "escape=False", "to_html", "!pip") if trap in source]
    assert modules
    assert not [one for one in modules if one.startswith(("memory_core.db", "sqlalchemy", "psycopg", "streamlit"))]


def test_recall_size_ends_in_a_number_with_its_uncertainty(ran: Ran, database: Database) -> None:
    keep(database, believable("acme", 400, until=datetime.now(UTC), days=1))
    before = counts(database)
    told = ran("recall_size.ipynb", SMALL | {"organisation": "acme", "model": "qwen3:0.6b"})
    assert re.search(r"Recommendation: recall [1-6] memor", told.printed)
    assert "of 100 resamples of the 12 questions, 95 choose" in told.printed
    assert re.search(r"Time to read it: [\d,]+ ms\.", told.printed)
    assert "12 questions are few" in told.printed
    assert "ms a token, the median of" in told.printed
    each_chart_says_its_units(told)
    assert len(told.charts) == 6
    assert any("tokens a minute (%)" in chart["layout"]["yaxis"]["title"]["text"] for chart in told.charts.values())
    assert counts(database) == before


def test_recall_size_without_a_call_says_what_to_type_and_recommends_all_the_same(ran: Ran) -> None:
    told = ran("recall_size.ipynb", SMALL | {"organisation": "acme"})
    missing = 'no call is on record: python -m memory_core chat "How soon can they start?" --org acme'
    assert f"No time per token: {missing}" in told.printed
    assert f"Time to read it: not known; {missing}." in told.printed
    assert "Recommendation: recall" in told.printed
    each_chart_says_its_units(told)
    assert len(told.charts) == 5


def test_recall_size_of_an_embedder_that_is_not_there_recommends_nothing(ran: Ran) -> None:
    told = ran("recall_size.ipynb", SMALL | {"ranking": "hybrid", "embedder": "ollama:nomic-embed-text"})
    assert "No recommendation: ollama:nomic-embed-text is left out, " in told.printed


@pytest.mark.parametrize("name", ["recall_size.ipynb", "recall_quality.ipynb"])
def test_an_empty_organisation_is_said_and_breaks_nothing(ran: Ran, tmp_path: Path, name: str) -> None:
    told = ran(name, {"memories_file": an_export(tmp_path, {}), "questions_file": some_questions(tmp_path, {})})
    assert "memories.jsonl has no memories" in told.printed
    last = told.printed.splitlines()[-1]
    assert last.startswith(("No recommendation: memories.jsonl", "Nothing was measured: memories.jsonl"))


@pytest.mark.parametrize("name", ["recall_size.ipynb", "recall_quality.ipynb"])
def test_an_export_without_questions_says_what_a_question_looks_like(ran: Ran, tmp_path: Path, name: str) -> None:
    told = ran(name, {"memories_file": an_export(tmp_path, {"m-1": "Mondays."})})
    assert "no questions are given for" in told.printed
    assert '"evidence": ["msg-17"]' in told.printed


def test_recall_quality_names_what_was_left_out_and_compares_the_rest(ran: Ran, database: Database) -> None:
    told = ran(
        "recall_quality.ipynb",
        {"sample": 12, "rankings": ["dense", "lexical"], "ks": [1, 3], "k": 3, "most_failures": 4},
    )
    assert "Left out: ollama:nomic-embed-text, " in told.printed
    last = told.printed.splitlines()[-1]
    assert re.fullmatch(r"(dense, minilm|lexical) finds evidence for [\d.]+ \(.* to .*\) % .* among 3 memories\.", last)
    each_chart_says_its_units(told)
    assert {trace["name"] for trace in told.charts["Rankings and embedders (95 % interval)"]["data"]} == {
        "lexical",
        "dense, minilm",
    }
    assert "dense, minilm" in told.tables[0]
    assert counts(database) == {}


def test_failures_are_shown_as_text_and_never_as_markup(ran: Ran, tmp_path: Path) -> None:
    memories = {f"m-{number}": f"Nothing of the kind, number {number}." for number in range(5)}
    memories |= {"m-9": f"{MARKUP} wanted", "m-10": f"wanted {MARKUP} above all"}
    told = ran(
        "recall_quality.ipynb",
        {
            "memories_file": an_export(tmp_path, memories),
            "questions_file": some_questions(
                tmp_path, {"Who is wanted above all?": "m-2", "<b>And</b> who not?": "m-9"}
            ),
            "rankings": ["lexical"],
            "ks": [1],
            "k": 1,
        },
    )
    failures = told.tables[-1]
    assert html.escape(MARKUP, quote=False) in failures
    assert "Nothing of the kind, number 2." in failures
    assert "<img" not in failures
    assert "<b>" not in failures
    assert "tex2jax_ignore" in failures  # so that no formula is set
    assert "of 2 questions have no evidence among the first 1" in told.printed


def test_latency_says_what_the_page_says(ran: Ran, database: Database) -> None:
    keep(database, believable("acme", 400, until=datetime.now(UTC), days=1))
    before = counts(database)
    told = ran("latency.ipynb", {"organisation": "acme", "outcomes": ["answered", "failed"], "period": "7d"})
    assert re.search(r"\d{3} calls from .* UTC, of ", told.printed)
    assert "Half of the answers were whole after" in told.printed
    assert re.search(r"The usual memory block of [\d,]+ tokens takes .* to read", told.printed)
    each_chart_says_its_units(told)
    assert {"Total time", "Prompt size and prompt time", "Failed calls, by error code"} <= set(told.charts)
    assert counts(database) == before


def test_latency_without_a_call_says_how_to_make_the_first_one(ran: Ran) -> None:
    told = ran("latency.ipynb", {"organisation": "acme"})
    assert 'Nothing to show: no call is on record: python -m memory_core chat "How soon' in told.printed
    assert told.printed.splitlines()[-1] == "No conclusion: no call is selected."
    assert told.charts == {}


def test_latency_of_calls_that_are_not_selected_says_when_the_last_one_was(ran: Ran, database: Database) -> None:
    keep(database, believable("acme", 30, until=datetime.now(UTC), days=1))
    told = ran("latency.ipynb", {"organisation": "acme", "models": ["another"]})
    assert "no call is selected; the last one on record began at 2" in told.printed


def test_a_database_that_is_not_migrated_is_one_line(ran: Ran, database: Database) -> None:
    with database.connect() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '000001'")
    told = ran("latency.ipynb", {"organisation": "acme"})
    assert "python -m memory_core migrate" in told.printed.splitlines()[0]
    assert "No time per token: " in ran("recall_size.ipynb", SMALL | {"organisation": "acme"}).printed
