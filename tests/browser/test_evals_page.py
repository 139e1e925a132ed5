"""What an engineer sees of the suites' results, in a real browser."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from eval_rows import believable, conversation, start, store
from playwright.sync_api import Browser, expect

from browser.conftest import PATIENCE_MS, Visit, Workbench
from memory_core.db import embedded

pytestmark = pytest.mark.browser

MARKUP = "![x](https://evil.example/a.png) <img src=https://evil.example/b.png>"
SECTIONS = {"Two evaluations": 1, "Over time": 1, "One trial": 0}  # with their charts


@pytest.fixture(scope="module", autouse=True)
def four_evaluations(workbench: Workbench) -> None:
    cluster = embedded.start(Path(workbench.environment["MEMORY_HOME"]))
    database, now = cluster.application.set(database=cluster.owner.database), datetime.now(UTC)
    for number, (model, skill) in enumerate((("qwen3:0.6b", 0.7), ("x" * 100, 1.0)) * 2):
        of = start(model=model, trials=2)
        found = [
            replace(one, transcript=[{"role": MARKUP, "content": MARKUP}, *conversation(note=MARKUP * 400)])
            for one in believable(of, skill=skill, unjudged=0.05, seed=number)
        ]
        at = now - timedelta(days=4 - number)
        store(
            database,
            "demo",
            of,
            found[: 12 if number == 3 else None],
            evaluation_id=UUID(int=number + 1),
            at=at,
            ended=number < 3,
        )


def section(visit: Visit, name: str) -> None:
    """Open a section, and wait until all of its charts are drawn."""
    visit.page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True).click()
    expect(visit.page.locator(".js-plotly-plot .plot-container")).to_have_count(SECTIONS[name], timeout=PATIENCE_MS)
    visit.settle()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_section_fits_its_window_and_nothing_in_it_is_interpreted(
    chromium: Browser, workbench: Workbench, scheme: str, width: int
) -> None:
    with chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        visit = Visit(page=context.new_page(), base=workbench.url)
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.open(f"/Evals?evaluation={UUID(int=3)}")
        expect(visit.page.locator(".js-plotly-plot .plot-container")).to_have_count(2, timeout=PATIENCE_MS)
        cells = visit.page.locator(".js-plotly-plot .heatmap-label").all_text_contents()
        assert len([cell for cell in cells if cell]) == 45
        for name, charts in SECTIONS.items():
            section(visit, name)
            main = visit.page.get_by_test_id("stMain")
            assert main.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
            assert visit.page.get_by_test_id("stException").count() == 0
            assert visit.page.locator(".js-plotly-plot .gtitle").count() == charts
        assert visit.page.get_by_test_id("stCode").filter(has_text=MARKUP).count() == 2
        assert visit.page.locator("[data-testid=stMain] img").count() == 0
        visit.page.reload()  # the address has the section and the trial
        expect(visit.page.get_by_text("What the case expects", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        assert {"section", "agent", "case", "trial"} <= parse_qs(urlsplit(visit.page.url).query).keys()
        assert visit.requests
        assert visit.foreign_requests() == []
