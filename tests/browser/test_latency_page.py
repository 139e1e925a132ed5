"""What an engineer sees of ten thousand calls, in a real browser."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from call_rows import bare, believable, ended, store
from playwright.sync_api import Browser, expect

from browser.conftest import PATIENCE_MS, Visit, Workbench
from memory_core.db import embedded

pytestmark = pytest.mark.browser

LONGEST = "x" * 60 + "/" + "Y" * 60 + ":latest"
CHARTS = 8  # without a ceiling of tokens a minute


@pytest.fixture(scope="module", autouse=True)
def ten_thousand_calls(workbench: Workbench) -> None:
    cluster = embedded.start(Path(workbench.environment["MEMORY_HOME"]))
    url, now = cluster.superuser.set(database=cluster.owner.database), datetime.now(UTC)
    assert url.username is not None
    with psycopg.connect(
        user=url.username, password=url.password, dbname=url.database, host=str(url.query["host"])
    ) as one:
        store(one, "demo", believable("demo", 9_999, until=now, days=6))
        last = bare("demo", started_at=now - timedelta(minutes=2), model=LONGEST)
        store(
            one, "demo", [ended(last, 900.0, prompt_ms=400.0, prompt_tokens=90, output_tokens=10, generation_ms=300.0)]
        )


def figure(visit: Visit, label: str) -> str:
    found = visit.page.get_by_test_id("stMetric").filter(has_text=re.compile(rf"^{re.escape(label)}"))
    return found.get_by_test_id("stMetricValue").inner_text()


def choose(visit: Visit, filter_name: str, value: str) -> None:
    visit.page.get_by_role("combobox", name=re.compile(filter_name)).click()
    visit.page.get_by_role("option", name=value, exact=True).click()
    visit.page.keyboard.press("Escape")
    visit.settle()


def address(visit: Visit) -> dict[str, list[str]]:
    return parse_qs(urlsplit(visit.page.url).query)


def test_what_is_chosen_stands_in_the_address_and_survives_a_reload(visit: Visit) -> None:
    visit.open("/Latency?period=everything")
    assert figure(visit, "Calls") == "10,000"
    choose(visit, "Tier", "deep")
    choose(visit, "Outcome", "failed")
    assert address(visit) == {"period": ["everything"], "tier": ["deep"], "outcome": ["failed"]}
    failed = figure(visit, "Calls")
    assert 0 < int(failed) < 200
    assert figure(visit, "Failed") == "100.0%"
    visit.page.reload()
    expect(visit.page.locator("h1")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    assert address(visit) == {"period": ["everything"], "tier": ["deep"], "outcome": ["failed"]}
    assert figure(visit, "Calls") == failed
    choose(visit, "Period", "last hour")
    assert address(visit)["period"] == ["1h"]


def test_every_chart_of_ten_thousand_calls_is_drawn_and_nothing_is_fetched_for_it(visit: Visit) -> None:
    visit.open("/Latency?period=7d")
    expect(visit.page.locator(".js-plotly-plot .plot-container")).to_have_count(CHARTS, timeout=PATIENCE_MS)
    titles = visit.page.locator(".js-plotly-plot .gtitle").all_text_contents()
    assert len(titles) == CHARTS
    assert "Failed calls, by error code" in titles
    assert visit.page.locator(".js-plotly-plot .xtitle").count() == CHARTS
    assert visit.page.locator(".js-plotly-plot .ytitle").count() == CHARTS
    points = (
        visit.page.locator(".js-plotly-plot")
        .filter(has_text="Prompt size and prompt time")
        .locator(".scatterlayer .point")
    )
    assert points.count() == 2000
    assert "The newest 2,000 calls" in visit.page.locator("body").inner_text()
    assert visit.requests
    assert visit.foreign_requests() == []


def test_markup_in_the_address_fetches_nothing_and_breaks_nothing(visit: Visit) -> None:
    visit.open("/Latency?period=%3Cimg%20src=https://evil.example/a.png%3E&model=![x](https://evil.example/b.png)")
    expect(visit.page.get_by_text("Part of the address is not understood")).to_be_visible(timeout=PATIENCE_MS)
    assert visit.page.locator("[data-testid=stMain] img").count() == 0
    assert visit.page.get_by_test_id("stException").count() == 0
    assert visit.foreign_requests() == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_fits_its_window_also_with_the_longest_name(
    chromium: Browser, workbench: Workbench, scheme: str, width: int
) -> None:
    with chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        visit = Visit(page=context.new_page(), base=workbench.url)
        for path in ("/Latency?period=7d", f"/Latency?period=1h&model={LONGEST}"):
            visit.open(path)
            expect(visit.page.locator(".js-plotly-plot").first).to_be_visible(timeout=PATIENCE_MS)
            main = visit.page.get_by_test_id("stMain")
            assert main.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
            assert visit.page.get_by_test_id("stException").count() == 0
