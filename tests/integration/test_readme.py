"""What the README says is so."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Database

from memory_core.cli import parser
from memory_core.config import Settings
from memory_core.interchange import Line, read_lines

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def fenced(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_examples_run_and_print_what_their_comments_say(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.delenv("MODEL_API_KEY", raising=False)
    printed: list[list[str]] = []
    names: dict[str, Any] = {}
    for example in fenced("python"):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(example, "README.md", "exec"), names)
        printed.append(output.getvalue().splitlines())
    store, desk, chat, agents = printed
    assert store[0] == "recency no embedder is configured"
    assert store[1].startswith("<memories boundary=")
    assert store[-2:] == ["r-813", "1"]
    assert desk == ["1", "answered"]
    (said,) = chat
    assert said.startswith("no chat model is configured: ")
    assert agents == ["Completed 1"]


def test_every_command_is_in_the_table_and_no_other() -> None:
    (subcommands,) = [action for action in parser()._actions if action.choices]
    assert subcommands.choices is not None
    assert sorted(re.findall(r"^\| `([a-z-]+)[ `]", README, re.MULTILINE)) == sorted(subcommands.choices)


def test_every_setting_is_in_the_table_and_no_other() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)` ", README, re.MULTILINE)) == {
        name.upper() for name in Settings.model_fields
    }


def test_the_line_of_the_import_format_is_a_good_line() -> None:
    (example,) = fenced("json")
    (line,) = read_lines(io.BytesIO(example.encode()), org_id=None)
    assert isinstance(line, Line), line


def test_the_times_were_filled_in() -> None:
    assert not re.findall(r"\b(?:RUN|TEST)_[A-Z]+", README)
