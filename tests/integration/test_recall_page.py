"""How many memories to show, on the recall page as Streamlit runs it without a browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from call_rows import believable, store
from conftest import Database, OpenStore
from fakes import CANDIDATE, fact, observation
from rows import counts, emptied
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
MARKUP = "![x](https://evil.example/a.png) <b>bold</b> **strong** =1+1"
Page = Callable[[], AppTest]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Open the page on this test's database, with no embedder."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    for name in ("MODEL_API_KEY", "MODEL_PROVIDER", "MODEL_TOKENS_PER_MINUTE", "MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def opened() -> AppTest:
        return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/3_Recall.py").run()

    return opened


def previewed(at: AppTest, *, budget: int = 0) -> AppTest:
    at.text_input[0].set_value("who starts on Mondays?")
    at.selectbox(key="preview purpose").set_value("testing recall")
    at.number_input[0].set_value(budget)
    at.button[0].click().run()
    assert not at.exception
    return at


def kept(at: AppTest) -> str:
    """Return all that the session keeps."""
    return repr(at.session_state)


def in_figures(at: AppTest) -> dict[str, str]:
    """Return the figures that stand last: those of the first memories."""
    return {metric.label: metric.value for metric in at.metric}


def adding(at: AppTest) -> Any:
    """Return the table of what each memory adds."""
    return at.dataframe[-1].value


def some(open_store: OpenStore, count: int = 4) -> None:
    texts = [f"Monday number {number} suits them." for number in range(count - 1)]
    open_store().remember_many([*map(fact, texts), observation(MARKUP)])


def test_each_further_memory_is_shown_with_what_it_adds(page: Page, open_store: OpenStore) -> None:
    some(open_store)
    at = previewed(page())
    slider = at.slider[-1]
    assert (slider.label, slider.min, slider.max, slider.value) == ("Memories shown", 1, 4, 4)
    table = adding(at)
    assert list(table["place"]) == [1, 2, 3, 4]
    assert set(table["shown"]) == {"yes"}
    block = next(code.value for code in at.code if code.value.startswith("<memories"))
    values = [line.partition(' "')[2] for line in block.split("\n")[3:-1]]
    assert list(table["text"]) == [f'"{value}' for value in values]
    figures = in_figures(at)
    assert (figures["Memories"], figures["Prompt time"]) == ("4 of 4", "–")
    assert table["in all (tokens)"].iloc[-1] == table["adds (tokens)"].sum() == int(figures["Tokens"].replace(",", ""))
    assert figures["Of a minute"] == table["of a minute"].iloc[-1]
    assert int(figures["The last adds"]) == table["adds (tokens)"].iloc[-1]


def test_without_a_call_on_record_it_says_what_to_type(page: Page, open_store: OpenStore) -> None:
    some(open_store)
    at = previewed(page())
    assert at.caption[-1].value == "What a token of prompt takes is not known:"
    said = 'no call is on record: python -m memory_core chat "How soon can they start?" --org acme'
    assert said in [code.value for code in at.code]


def test_recorded_calls_say_what_it_takes_in_time(page: Page, open_store: OpenStore, database: Database) -> None:
    some(open_store)
    with database.connect() as connection:
        store(connection, "acme", believable("acme", 300, until=datetime.now(UTC), days=1))
    at = previewed(page())
    assert "ms a token, the median of" in at.caption[-1].value
    assert in_figures(at)["Prompt time"].endswith(("ms", " s"))
    assert adding(at)["adds (time)"].str.endswith((" ms", " s")).all()


def test_looking_at_sizes_records_nothing_beyond_the_preview(
    page: Page, open_store: OpenStore, database: Database
) -> None:
    some(open_store)
    at = previewed(page())
    before = counts(database)
    assert (before["recall"], before["disclosure"]) == (2, 8)  # one for each of the two columns
    at.slider[-1].set_value(1).run()
    assert not at.exception
    assert counts(database) == before


def test_the_session_keeps_no_text_of_a_memory(page: Page, open_store: OpenStore) -> None:
    some(open_store)
    at = previewed(page())
    assert "first_of_" in kept(at)
    assert "evil.example" not in kept(at)
    assert "suits them" not in kept(at)


def test_nothing_interprets_the_text_and_no_spreadsheet_runs_it(page: Page, open_store: OpenStore) -> None:
    open_store().remember_many([fact(MARKUP), fact("=HYPERLINK(1)")])
    at = previewed(page())
    widgets = [*at.markdown, *at.caption, *at.info, *at.warning, *at.error, *at.subheader]
    assert "evil.example" not in "\n".join(str(widget.value) for widget in widgets)
    assert adding(at)["text"].str.startswith('"').all()


def test_what_the_budget_left_out_is_not_shown_here_either(page: Page, open_store: OpenStore) -> None:
    open_store().remember_many([fact("Mondays."), fact(f"Tuesdays{' and so on' * 150}.")])
    at = previewed(page(), budget=300)
    assert "Memories shown" not in [slider.label for slider in at.slider]
    assert list(adding(at)["place"]) == [1]
    assert "Tuesdays" not in "".join(adding(at)["text"])
    assert in_figures(at)["Memories"] == "1 of 1"


def test_an_organisation_without_a_memory_has_no_size_to_choose(page: Page, database: Database) -> None:
    at = previewed(page())
    assert [slider.label for slider in at.slider] == ["Memories at most"]
    assert not at.exception


def test_what_is_forgotten_is_gone_from_the_next_look(page: Page, open_store: OpenStore) -> None:
    some(open_store)
    opened = open_store()
    recall = opened.recall("Mondays", run_id="preview-1", purpose="preview")
    opened.forget(CANDIDATE, by="user:ines", reason="asked")
    block = opened.shown(recall.recall_id)
    assert block is not None
    assert "evil.example" not in block.text
    assert "evil.example" not in previewed(page()).dataframe[-1].value.to_string()
