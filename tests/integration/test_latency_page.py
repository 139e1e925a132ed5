"""The latency page as Streamlit runs it, without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from call_rows import Row, bare, believable, ended, store
from conftest import Database
from hypothesis import given
from hypothesis import strategies as st
from rows import emptied
from streamlit.testing.v1 import AppTest
from wire import Wire, as_json

from pages.charts.latency import steps

ROOT = Path(__file__).resolve().parents[2]
LONGEST = "m" * 128
Page = Callable[..., AppTest]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Run the page on this test's database, without a model unless settings name one."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    for name in ("MODEL_API_KEY", "MODEL_PROVIDER", "MODEL_TOKENS_PER_MINUTE", "MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(address: dict[str, list[str]] | None = None, **environment: str) -> AppTest:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, values in (address or {}).items():
            at.query_params[name] = values
        return at.switch_page("pages/5_Latency.py").run()

    return run


def keep(database: Database, rows: Iterable[Row], org_id: str = "acme") -> None:
    with database.connect() as connection:
        store(connection, org_id, rows)


def charts(at: AppTest) -> dict[str, Any]:
    """Return each chart by its title, as plotly gets it."""
    drawn = [json.loads(element.proto.spec or element.proto.figure.spec) for element in at.get("plotly_chart")]
    return {chart["layout"]["title"]["text"]: chart for chart in drawn}


def figures(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def interpreted(at: AppTest) -> str:
    """Return all that was given to widgets which read Markdown."""
    widgets = [*at.markdown, *at.caption, *at.info, *at.warning, *at.error, *at.subheader]
    return "\n".join(str(widget.value) for widget in widgets)


def plain(at: AppTest) -> str:
    return "\n".join(code.value for code in at.code)


def test_without_a_call_the_page_says_how_to_make_the_first_one(page: Page) -> None:
    at = page()
    assert not at.exception
    assert "No call to a chat model is on record" in at.info[0].value
    assert 'python -m memory_core chat "How soon can they start?" --org acme' in plain(at)
    assert "python -m memory_core doctor" in plain(at)
    assert not at.metric
    assert charts(at) == {}


def test_without_a_model_the_page_says_so_and_shows_what_is_on_record(page: Page, database: Database) -> None:
    keep(database, believable("acme", 30, until=datetime.now(UTC), days=0.5))
    at = page()
    assert "no chat model is configured: set MODEL_API_KEY" in plain(at)
    assert figures(at)["Calls"] == "30"


def test_every_chart_has_a_title_and_units_on_both_axes(page: Page, database: Database) -> None:
    keep(database, believable("acme", 1500, until=datetime.now(UTC), days=0.9))
    at = page(MODEL_TOKENS_PER_MINUTE="8000")
    assert not at.exception
    drawn = charts(at)
    assert list(drawn)[:4] == [
        "Total time",
        "Time to the first token",
        "Time per output token",
        "Output tokens per second",
    ]
    assert len(drawn) == 9
    for chart in drawn.values():
        for axis in ("xaxis", "yaxis"):
            assert chart["layout"][axis]["title"]["text"]
    assert "What five memories cost" in interpreted(at)
    assert figures(at)["Ceiling"] == "8,000"
    table = at.dataframe[0].value
    assert list(table["time"]) == ["total", "first token", "per output token"]
    assert not table["p99"].str.contains("under").any()


def test_few_calls_are_drawn_without_p99_and_without_what_memories_cost(page: Page, database: Database) -> None:
    keep(database, believable("acme", 15, until=datetime.now(UTC), days=0.5, seed=2))
    at = page()
    assert not at.exception
    assert set(at.dataframe[0].value["p99"]) == {"under 100"}
    assert {trace["name"] for trace in charts(at)["Total time"]["data"]} == {"p50", "p95"}
    assert "What five memories cost" not in interpreted(at)


@pytest.mark.parametrize("kind", ["open", "failed", "bare answer", "instant answer"])
def test_one_call_of_any_kind_is_shown(page: Page, database: Database, kind: str) -> None:
    row = bare("acme", started_at=datetime.now(UTC) - timedelta(minutes=5))
    rows = {
        "open": row,
        "failed": ended(row, 50.0, error_code="gateway.unavailable"),
        "bare answer": ended(row, 50.0),
        "instant answer": ended(
            row, 0.0, first_chunk_ms=0.0, prompt_ms=0.0, prompt_tokens=1, output_tokens=1, generation_ms=0.0
        ),
    }
    keep(database, [rows[kind]])
    at = page()
    assert not at.exception
    assert figures(at)["Calls"] == "1"


def test_filters_write_the_address_and_the_address_sets_the_filters(page: Page, database: Database) -> None:
    keep(database, believable("acme", 200, until=datetime.now(UTC), days=0.9))
    at = page({"period": ["7d"], "tier": ["deep"], "model": ["qwen3:4b"]})
    assert at.selectbox(key="latency_period").value == "7d"
    assert at.multiselect(key="latency_tier").value == ["deep"]
    only_deep = int(figures(at)["Calls"])
    assert 0 < only_deep < 200
    at.multiselect(key="latency_outcome").set_value(["failed", "open"]).run()
    assert not at.exception
    written = {"period": "7d", "tier": "deep", "model": "qwen3:4b", "outcome": ["failed", "open"]}
    assert dict(at.query_params) == written
    for name in ("tier", "model", "outcome"):
        at.multiselect(key=f"latency_{name}").set_value([]).run()
    at.selectbox(key="latency_period").set_value("24h").run()
    assert at.query_params == {}
    assert figures(at)["Calls"] == "200"


def test_a_model_that_was_not_called_in_the_period_stays_selected(page: Page, database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=datetime.now(UTC) - timedelta(days=3)), 5.0)])
    at = page({"model": [LONGEST]})
    assert not at.exception
    assert at.multiselect(key="latency_model").value == [LONGEST]
    assert "No call is selected; the last one on record began at" in at.info[0].value


def test_what_the_address_says_in_vain_is_shown_plain(page: Page, database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=datetime.now(UTC)), 5.0)])
    markup = "![x](https://evil.example/a.png)"
    at = page({"period": ["never"], "model": [markup], markup: ["1"]})
    assert not at.exception
    assert "evil.example" not in interpreted(at)
    assert f"model={markup}" in plain(at)
    assert figures(at)["Calls"] == "1"


def test_the_longest_name_is_cut_short_where_a_chart_shows_it(page: Page, database: Database) -> None:
    row = bare("acme", started_at=datetime.now(UTC), model=LONGEST)
    keep(database, [ended(row, 5.0, prompt_ms=2.0, prompt_tokens=9)])
    (points,) = charts(page())["Prompt size and prompt time"]["data"]
    assert points["customdata"] == ["m" * 39 + "…"]


def test_models_in_memory_are_shown_with_size_and_expiry(page: Page, database: Database) -> None:
    loaded = {
        "name": "qwen3:0.6b",
        "model": "qwen3:0.6b",
        "size": 1_200_000_000,
        "size_vram": 0,
        "context_length": 4096,
        "expires_at": "2026-11-30T12:04:00Z",
    }
    with Wire() as ollama:
        ollama.answers["/api/ps"] = as_json({"models": [loaded]})
        at = page(MODEL_API_KEY="any", OLLAMA_HOST=ollama.url)
        assert not at.exception
        (row,) = at.dataframe[0].value.to_dict("records")
        assert row["model"] == "qwen3:0.6b"
        assert (row["memory"], row["leaves at (UTC)"]) == ("1.1 GiB", "2026-11-30 12:04")
        ollama.answers["/api/ps"] = as_json({"models": []})
        assert "the next call is a cold one" in page().info[-1].value


ODD_IN_MEMORY: dict[str, list[dict[str, Any]]] = {
    "ends with the calendar": [{"name": "m", "expires_at": "9999-12-31T23:59:59-14:00"}],
    "began with the calendar": [{"name": "m", "expires_at": "0001-01-01T00:00:00+14:00"}],
    "never ends": [{"name": "m", "expires_at": "2318-03-10T10:15:23.998766513Z"}],
    "endless": [{"name": "m", "size": 10**400, "size_vram": 10**400, "context_length": 10**400}],
    "below zero": [{"name": "m", "size": -1, "size_vram": -(10**400), "context_length": -5}],
    "half a surrogate pair": [{"name": "\ud800", "model": "\ud800", "size": 1}],
    "markup": [{"name": "![x](https://evil.example/a.png)", "size": 1}],
    "a formula": [{"name": "=HYPERLINK(1)", "size": 1}],
    "nameless": [{}],
    "a long name": [{"name": "m" * 1_000_000}],
    "a thousand": [{"name": f"m-{number}", "size": number} for number in range(1000)],
    "words": [{"name": "m", "size": "large", "expires_at": "soon"}],
    "no objects": [1, None, "m"],  # type: ignore[list-item]
}


@pytest.mark.parametrize("what", ODD_IN_MEMORY)
def test_whatever_a_server_says_of_its_memory_breaks_no_page(what: str, page: Page, database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=datetime.now(UTC)), 5.0)])
    with Wire() as ollama:
        ollama.answers["/api/ps"] = as_json({"models": ODD_IN_MEMORY[what]})
        at = page(MODEL_API_KEY="any", OLLAMA_HOST=ollama.url)
    assert not at.exception
    assert figures(at)["Calls"] == "1"
    assert "evil.example" not in interpreted(at)
    shown = at.dataframe[-1].value if "leaves at (UTC)" in at.dataframe[-1].value else None
    assert (shown is not None) or "does not say which models" in interpreted(at)
    if shown is not None:
        assert len(shown) <= 50
        assert max(len(name) for name in shown["model"]) <= 129


def test_a_server_that_is_not_there_is_one_plain_line(page: Page, database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=datetime.now(UTC)), 5.0)])
    with Wire() as gone:
        url = gone.url
    at = page(MODEL_API_KEY="any", OLLAMA_HOST=url)
    assert not at.exception
    assert "does not say which models" in at.warning[0].value
    assert figures(at)["Calls"] == "1"


def test_a_hosted_model_is_not_asked_what_is_in_memory(page: Page) -> None:
    at = page(
        MODEL_API_KEY="any",
        MODEL_PROVIDER="openai",
        MODEL_BASE_URL="http://127.0.0.1:9/v1",
        MODEL_FAST="a",
        MODEL_BALANCED="a",
        MODEL_DEEP="a",
    )
    assert not at.exception
    assert "does not say what is in memory" in at.info[-1].value


def test_calls_of_the_organisation_next_door_are_not_shown(page: Page, database: Database) -> None:
    keep(database, believable("acme-corp", 20, until=datetime.now(UTC), days=0.5), "acme-corp")
    assert "No call to a chat model is on record" in page().info[0].value


def test_the_figures_are_explained(page: Page) -> None:
    text = interpreted(page())
    for word in (
        "Percentiles",
        "Total",
        "First token",
        "Time per output token",
        "Queue",
        "Cold",
        "Cached",
        "Counted now",
    ):
        assert f"**{word}" in text


@given(st.floats(1e-3, 1e7), st.floats(1, 1e6))
def test_an_axis_has_a_few_steps_that_hold_all_of_it(least: float, ratio: float) -> None:
    found = steps(least, least * ratio)
    assert found == sorted(set(found))
    assert found[0] < least
    assert found[-1] > least * ratio
    assert 2 <= len(found) <= 12
