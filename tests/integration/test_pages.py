"""The pages as Streamlit runs them, without a browser."""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import Database, OpenStore
from fakes import HashedWords
from streamlit.testing.v1 import AppTest

from memory_core import Subject
from pages import refused_because

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("[0-9]*.py"))]
MARKUP = "![x](https://evil.example/a.png) <b>bold</b> **strong** $x$ :red[colour]"


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AppTest]:
    """Run a page on this test's database, with no embedder."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def run(name: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        return at.run() if name == "app.py" else at.switch_page(name).run()

    return run


def everything_interpreted(at: AppTest) -> str:
    """Return all that was given to widgets which read Markdown."""
    widgets = [*at.markdown, *at.caption, *at.info, *at.warning, *at.error, *at.success, *at.title, *at.subheader]
    return "\n".join(str(widget.value) for widget in widgets)


def remember(open_store: OpenStore, text: str = MARKUP, subject: str = "c-81", label: str | None = None) -> None:
    open_store().remember(
        text,
        kind="observation",
        origin="inference",
        author="agent:screening",
        run_id="r-1",
        subject=Subject("candidate", subject, label=label),
    )


def test_an_empty_organisation_says_how_to_fill_it(page: Callable[[str], AppTest]) -> None:
    at = page("app.py")
    assert not at.exception
    assert "Nothing is held" in at.info[0].value
    assert "python -m memory_core import FILE --org acme" in at.code[0].value


def test_home_counts_what_is_held_and_what_is_due(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    remember(open_store, "one")
    open_store().remember(
        "Two days left.",
        kind="fact",
        origin="person",
        author="user:maria",
        run_id="r-2",
        expires_at=datetime.now(UTC) + timedelta(days=2),
    )
    at = page("app.py")
    assert not at.exception
    figures = {metric.label: metric.value for metric in at.metric}
    assert figures["Live memories"] == "2"
    assert figures["In 7 / 30 days"] == "1 / 1"
    assert figures["No embedding"] == "2"
    assert "python -m memory_core embed --org acme" in [code.value for code in at.code]


def test_home_says_that_the_database_is_not_migrated_and_how_to_mend_it(
    page: Callable[[str], AppTest], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.connect(autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '000001'")
    at = page("app.py")
    assert not at.exception
    assert "python -m memory_core migrate" in at.code[0].value
    assert not at.metric


def test_a_bad_setting_is_one_line_on_the_page(page: Callable[[str], AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDER", "gpt")
    at = page("app.py")
    assert not at.exception
    assert at.code[0].value.startswith("MEMORY_EMBEDDER: ")


def test_production_without_a_sign_in_serves_nothing(
    page: Callable[[str], AppTest], monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    remember(open_store)
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_API_KEY", "k3y-of-nobody")
    for name in ("app.py", "pages/1_Subjects.py", "pages/3_Recall.py"):
        at = page(name)
        assert not at.exception
        assert "production" in at.error[0].value
        assert "no sign-in" in at.error[0].value
        assert not at.metric
        assert not at.text_input


def test_production_without_a_model_is_refused_by_its_setting(
    page: Callable[[str], AppTest], monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    remember(open_store)
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_API_KEY", "")
    for name in ("app.py", "pages/1_Subjects.py", "pages/3_Recall.py"):
        at = page(name)
        assert not at.exception
        assert at.code[0].value.startswith("MODEL_API_KEY: ")
        assert not at.metric
        assert not at.text_input


def test_a_subject_is_found_and_everything_held_is_shown(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    remember(open_store, label="**Zoë** ![x](https://evil.example/b.png)")
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("zoe").run()
    assert not at.exception
    figures = {metric.label: metric.value for metric in at.metric}
    assert figures == {"Held": "1", "With text": "1", "Tombstones": "0", "Times shown": "0"}
    assert "evil.example" not in everything_interpreted(at)


def test_what_nobody_is_called_finds_nobody(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    remember(open_store)
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("nobody at all").run()
    assert not at.exception
    assert "Nothing is held" in at.warning[0].value


def test_the_id_of_the_organisation_next_door_finds_nobody(
    page: Callable[[str], AppTest], open_store: OpenStore
) -> None:
    open_store("acme-corp").remember(
        "Theirs.",
        kind="observation",
        origin="inference",
        author="agent:screening",
        run_id="r-1",
        subject=Subject("candidate", "c-9"),
    )
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("c-9").run()
    assert "Nothing is held" in at.warning[0].value


def test_a_preview_is_made_on_the_button_and_not_at_every_rerun(
    page: Callable[[str], AppTest], open_store: OpenStore, database: Database
) -> None:
    remember(open_store)
    at = page("pages/3_Recall.py")
    at.text_input[0].set_value("who is bold?")
    at.button[0].click().run()
    assert not at.exception
    blocks = [code.value for code in at.code if code.value.startswith("<memories")]
    assert len(blocks) == 2
    assert all('mode="recency"' in block for block in blocks)
    assert MARKUP.replace("<b>", "\\u003cb\\u003e").replace("</b>", "\\u003c/b\\u003e") in blocks[0]
    assert "evil.example" not in everything_interpreted(at)
    at.run()
    with database.connect() as connection:
        rows = connection.execute("SELECT purpose, count(*) FROM disclosure GROUP BY purpose").fetchall()
        assert rows == [("preview", 2)]


def test_semantic_stands_beside_recency(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    store = open_store(embedder=HashedWords())
    store.remember("Prefers mornings.", kind="fact", origin="person", author="user:maria", run_id="r-1")
    at = page("pages/3_Recall.py")
    at.text_input[0].set_value("mornings")
    at.button[0].click().run()
    assert [heading.value for heading in at.subheader] == ["Semantic", "Recency"]
    assert "no embedder is configured" in at.warning[0].value  # the settings of this page name none
    assert "asked for" in at.info[0].value


def test_asking_nothing_previews_nothing(page: Callable[[str], AppTest], database: Database) -> None:
    at = page("pages/3_Recall.py")
    at.button[0].click().run()
    assert not at.exception
    assert at.warning[0].value == "Ask something first."
    with database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM recall").fetchone() == (0,)


@pytest.mark.parametrize(
    ("address", "sign_in", "refused"),
    [
        ("127.0.0.1", False, False),
        ("localhost", False, False),
        ("::1", False, False),
        (None, False, True),  # Streamlit then listens everywhere
        ("", False, True),
        ("0.0.0.0", False, True),
        ("192.168.1.4", False, True),
        ("localhost.evil.example", False, True),
        ("127.0.0.1", True, True),
    ],
)
def test_without_a_sign_in_only_this_machine_is_served(address: str | None, sign_in: bool, refused: bool) -> None:
    assert (refused_because(address=address, has_sign_in=sign_in) is not None) is refused


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]).isupper()
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_first_thing_a_page_does_is_to_ask_the_gate(path: Path) -> None:
    tree = ast.parse(path.read_text())
    first = next(node for node in tree.body if not _does_nothing(node))
    assert isinstance(first, ast.Assign)
    assert ast.unparse(first.value).startswith("gate(")


@pytest.mark.parametrize("path", [*PAGES, ROOT / "pages" / "__init__.py"], ids=lambda path: path.name)
def test_a_page_builds_no_sql_and_interprets_no_text(path: Path) -> None:
    source = path.read_text()
    names = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not [name for name in names if name.startswith("memory_core.db")]
    for trap in ("unsafe_allow_html", "st.navigation", "cache_data", "st.write("):
        assert trap not in source
