"""Pages show what memory_core decides, and never reach past it into the database."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
FORBIDDEN = ("memory_core.db", "memory_core.gateway", "sqlalchemy", "psycopg", "httpx", "ollama", "openai")


def imported(source: str) -> Iterator[str]:
    """Yield the name of every module that a script imports, by whichever way."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("memory_core."):
            yield node.value  # for importlib


def reaches(source: str) -> list[str]:
    return [name for name in imported(source) if any(f"{name}.".startswith(f"{one}.") for one in FORBIDDEN)]


def test_there_are_pages_to_read() -> None:
    assert len(PAGES) > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_imports_neither_the_database_nor_a_client_of_a_model(page: Path) -> None:
    assert reaches(page.read_text(encoding="utf-8")) == []


# What Streamlit serves under an address that asks nobody who they are, and what it takes in.
UNGUARDED = {
    *("audio", "audio_input", "camera_input", "download_button", "file_uploader", "image", "logo", "pdf", "pyplot"),
    *("cache_data", "chat_input", "iframe", "navigation", "video"),
}


def unguarded(source: str) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)} & UNGUARDED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_puts_nothing_where_anybody_could_fetch_it(page: Path) -> None:
    assert unguarded(page.read_text(encoding="utf-8")) == set()


def test_a_file_under_an_open_address_is_seen() -> None:
    assert unguarded("import streamlit\nleft.download_button('x', b'')") == {"download_button"}


@pytest.mark.parametrize(
    "source",
    [
        "import memory_core.db",
        "import memory_core.db.engine as e",
        "from memory_core.db import calls",
        "from memory_core import db",
        "from memory_core.db.engine import engine_for",
        "def f():\n    from memory_core import db",
        "importlib.import_module('memory_core.db.engine')",
        "import sqlalchemy.orm",
    ],
)
def test_every_way_of_importing_the_database_is_seen(source: str) -> None:
    assert reaches(source)
