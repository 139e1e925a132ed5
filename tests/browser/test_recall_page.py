"""How many memories an engineer would show, in a real browser."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from browser.conftest import PATIENCE_MS, Visit, Workbench

pytestmark = pytest.mark.browser

SHOTS = os.environ.get("SCREENSHOTS")  # a folder for what a person looks at


def figure(visit: Visit, label: str) -> str:
    """Return the last figure under a label: the first ones are of the two previews."""
    found = visit.page.get_by_test_id("stMetric").filter(has_text=re.compile(rf"^{re.escape(label)}"))
    return found.last.get_by_test_id("stMetricValue").inner_text()


def say_what_for(visit: Visit) -> None:
    visit.page.get_by_role("combobox", name=re.compile("What for")).click()
    visit.page.get_by_role("option", name="testing recall", exact=True).click()


def preview(visit: Visit, query: str) -> None:
    visit.open("/Recall")
    visit.page.get_by_role("textbox", name="Query").fill(query)
    say_what_for(visit)
    visit.page.get_by_role("button", name="Preview").click()
    expect(visit.page.get_by_role("heading", name="How many to show")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()


def slider(visit: Visit) -> Locator:
    return visit.page.get_by_role("slider", name="Memories shown")


def blocks(visit: Visit) -> Locator:
    return visit.page.get_by_test_id("stCode").filter(has_text="<memories")


def shown_to(workbench: Workbench, subject: str) -> int:
    held = json.loads(workbench.command("held", "candidate", subject, "--json"))
    return sum(len(memory["disclosures"]) for memory in held["memories"])


def test_moving_the_slider_shows_the_block_of_the_first_and_discloses_nothing_more(
    visit: Visit, workbench: Workbench
) -> None:
    preview(visit, "How soon can Morgan Reed start?")
    expect(blocks(visit)).to_have_count(2, timeout=PATIENCE_MS)
    assert figure(visit, "Memories") == "5 of 5"
    whole, disclosures = int(figure(visit, "Tokens")), shown_to(workbench, "c-77")
    assert disclosures > 0
    for left in (4, 3, 2):
        slider(visit).press("ArrowLeft")
        expect(visit.page.get_by_text(f"The block of the first {left}:")).to_be_visible(timeout=PATIENCE_MS)
        visit.settle()
    assert figure(visit, "Memories") == "2 of 5"
    assert 0 < int(figure(visit, "Tokens")) < whole
    expect(blocks(visit)).to_have_count(3)
    assert 'count="2"' in blocks(visit).last.inner_text()
    assert shown_to(workbench, "c-77") == disclosures


def test_what_is_forgotten_meanwhile_is_not_shown_at_the_next_move(
    visit: Visit, workbench: Workbench, tmp_path: Path
) -> None:
    text = "Quillfeather keeps bees and wants Wednesdays off."
    theirs = {
        "org_id": "demo",
        "kind": "observation",
        "subject": {"type": "candidate", "id": "c-990"},
        "text": text,
        "origin": "inference",
        "author": "agent:screening",
        "run_id": "r-990",
    }
    (tmp_path / "one.jsonl").write_text(json.dumps(theirs), encoding="utf-8")
    workbench.command("import", str(tmp_path / "one.jsonl"))
    preview(visit, "Why does Quillfeather want Wednesdays off?")
    assert text in blocks(visit).first.inner_text()
    workbench.command("forget", "candidate", "c-990", "--by", "user:ines", "--reason", "asked")
    slider(visit).press("ArrowLeft")
    expect(visit.page.get_by_text("The block of the first 4:")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    block = blocks(visit).last.inner_text()
    assert "erased on" in block
    assert text not in block


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_preview_with_its_sizes_fits_its_window(
    chromium: Browser, workbench: Workbench, scheme: str, width: int
) -> None:
    with chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        visit = Visit(page=context.new_page(), base=workbench.url)
        preview(visit, "how soon can they start?")
        slider(visit).press("ArrowLeft")
        expect(visit.page.get_by_text("The block of the first 4:")).to_be_visible(timeout=PATIENCE_MS)
        visit.settle()
        main = visit.page.get_by_test_id("stMain")
        assert main.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
        assert visit.page.get_by_test_id("stException").count() == 0
        if SHOTS:
            visit.page.get_by_role("heading", name="How many to show").evaluate("element => element.scrollIntoView()")
            main.evaluate("element => element.scrollBy(0, -80)")
            visit.page.wait_for_timeout(800)
            visit.page.screenshot(path=Path(SHOTS) / f"recall-size-{width}-{scheme}.png")
