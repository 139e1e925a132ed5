"""Why a run said what it said, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import observation
from playwright.sync_api import expect
from run_rows import begun, completed, tool_call

from browser.conftest import PATIENCE_MS, Visit, Workbench
from memory_core import MemoryStore, Subject
from memory_core.config import settings
from memory_core.db import embedded
from memory_core.db.engine import engine_for
from memory_core.run_journal import AgentJournal

pytestmark = pytest.mark.browser

MARKER = "Marrowfen"
TEXT = f"Would leave {MARKER} for a team that walks to lunch. ![x](https://evil.example/a.png)"
RUN = "screening:why-1"


@pytest.fixture(scope="module", autouse=True)
def a_run(workbench: Workbench) -> None:
    """A run that was shown a memory and wrote another about the same person."""
    cluster = embedded.start(Path(workbench.environment["MEMORY_HOME"]))
    theirs = {"subject": Subject("candidate", "c-940")}
    store = MemoryStore.open(
        "demo", database_url=cluster.application, embedder=None, settings=settings(memory_embedder="none")
    )
    journal = AgentJournal(engine_for(cluster.application), "demo")
    store.remember_many([observation(TEXT, **theirs)])
    journal.begin(begun(run_id=RUN))
    store.recall("Would they leave?", run_id=RUN, limit=1)
    wrote = store.remember(**observation(f"Asked about {MARKER} and walks.", run_id=RUN, **theirs))
    journal.called(RUN, tool_call(tool="remember", memory_id=wrote.memory_id))
    journal.end(RUN, completed())


def test_a_run_is_found_opened_and_read_and_after_an_erasure_has_no_word_left(
    visit: Visit, workbench: Workbench
) -> None:
    visit.open("/Runs")
    box = visit.page.get_by_role("textbox", name="Run")
    box.fill("why-1")
    box.press("Enter")
    expect(visit.page.get_by_text("1 listed; newest first.")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    table = visit.page.get_by_test_id("stDataFrame").first
    for place in ({"x": 120, "y": 18}, {"x": 120, "y": 52}):  # sorting, and marking a cell to copy it, open nothing
        table.click(position=place)
        visit.settle()
        assert "run=" not in visit.page.url
    table.click(position={"x": 16, "y": 52})
    expect(visit.page.get_by_text("The model gave its answer.")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    assert f"run={RUN.replace(':', '%3A')}" in visit.page.url
    assert "org=demo" in visit.page.url
    block = visit.page.get_by_test_id("stCode").filter(has_text="<memories")
    assert TEXT in block.inner_text()
    expect(visit.page.locator(".js-plotly-plot .gtitle")).to_have_text("Steps over time", timeout=PATIENCE_MS)
    assert visit.page.locator("[data-testid=stMain] img").count() == 0

    workbench.command("forget", "candidate", "c-940", "--by", "user:ines", "--reason", "asked")
    visit.open(f"/Runs?run={RUN}")
    expect(visit.page.get_by_text("Not as it was:")).to_be_visible(timeout=PATIENCE_MS)
    assert "erased on" in block.inner_text()
    assert MARKER not in visit.page.content()
    assert visit.requests
    assert visit.foreign_requests() == []
    main = visit.page.get_by_test_id("stMain")
    for width in (1280, 390):
        visit.page.set_viewport_size({"width": width, "height": 844})
        visit.page.wait_for_timeout(300)
        assert main.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
