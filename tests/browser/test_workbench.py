"""What a data protection officer and an engineer do, in a real browser."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import pyzipper
from playwright.sync_api import Browser, expect
from waiting import until_it_answers

from browser.conftest import PATIENCE_MS, ROOT, Visit, Workbench
from browser.test_recall_page import say_what_for
from pages.web.door import NOTHING

pytestmark = pytest.mark.browser


def search(visit: Visit, typed: str) -> None:
    box = visit.page.get_by_role("textbox", name="Name, e-mail or id")
    box.fill(typed)
    box.press("Enter")
    visit.settle()


def section(visit: Visit, name: str) -> None:
    visit.page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True).click()
    visit.settle()


def figure(visit: Visit, label: str) -> str:
    """Return the figure under a label."""
    found = visit.page.get_by_test_id("stMetric").filter(has_text=re.compile(rf"^{re.escape(label)}"))
    return found.get_by_test_id("stMetricValue").inner_text()


def test_a_person_is_found_shown_and_forgotten_and_the_tombstones_are_seen(visit: Visit, workbench: Workbench) -> None:
    before = json.loads(workbench.command("held", "candidate", "c-74", "--json"))
    label, texts = before["subject"]["label"], [one["text"] for one in before["memories"]]
    visit.open("/Subjects")
    search(visit, label.upper())
    expect(visit.page.get_by_text("candidate c-74: ")).to_be_visible()
    assert figure(visit, "With text") == str(len(texts))

    section(visit, "Erase")
    visit.page.get_by_role("button", name="Look for what belongs to it").click()
    visit.page.get_by_role("button", name=re.compile("^Forget")).click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog.get_by_text(f"{len(texts)} memories about them")).to_be_visible(timeout=PATIENCE_MS)
    confirm = dialog.get_by_role("button", name="Forget", exact=True)
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox", name="Reason").fill("erasure request of 3 November")
    dialog.get_by_role("textbox", name="Type the subject's id").fill("c-7")
    dialog.get_by_role("textbox", name="Type the subject's id").press("Enter")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox", name="Type the subject's id").fill("c-74")
    dialog.get_by_role("textbox", name="Type the subject's id").press("Enter")
    expect(confirm).to_be_enabled(timeout=PATIENCE_MS)
    confirm.click()

    expect(visit.page.get_by_text("Forgotten. The certificate is below.")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    assert figure(visit, "With text") == "0"
    assert figure(visit, "Tombstones") == str(len(texts))
    body = visit.page.locator("body").inner_text()
    assert label not in body
    assert not [text for text in texts if text in body]
    after = json.loads(workbench.command("held", "candidate", "c-74", "--json"))
    assert [one["text"] for one in after["memories"]] == [None] * len(texts)
    assert {one["forgotten_reason"] for one in after["memories"]} == {"erasure request of 3 November"}
    search(visit, label)
    expect(visit.page.get_by_text("Nothing is held about anybody by that name")).to_be_visible()


def test_two_people_of_one_name_are_told_apart(visit: Visit) -> None:
    visit.open("/Subjects")
    search(visit, "schmidt anna")
    expect(visit.page.get_by_text("2 found, best first")).to_be_visible()
    assert visit.page.get_by_role("button", name=re.compile("^Forget")).count() == 0


def test_a_preview_shows_both_modes_and_the_block_as_the_model_gets_it(visit: Visit, workbench: Workbench) -> None:
    visit.open("/Recall")
    visit.page.get_by_role("textbox", name="Query").fill("how soon can they start?")
    say_what_for(visit)
    visit.page.get_by_role("button", name="Preview").click()
    expect(visit.page.get_by_text("Mode semantic, ranking hybrid")).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page.get_by_text("Mode recency: asked for")).to_be_visible(timeout=PATIENCE_MS)
    shown = visit.page.get_by_test_id("stCode").filter(has_text="<memories")
    expect(shown).to_have_count(2, timeout=PATIENCE_MS)
    blocks = shown.all_inner_texts()
    assert 'mode="semantic"' in blocks[0]
    assert 'mode="recency" because="asked for"' in blocks[1]
    assert all("A memory is never a reason on its own to accept or reject anybody." in block for block in blocks)


def test_no_request_leaves_this_machine_when_a_memory_is_markup(visit: Visit, workbench: Workbench) -> None:
    held = json.loads(workbench.command("held", "candidate", "c-58", "--json"))
    (marked_up,) = [one["text"] for one in held["memories"] if "![" in one["text"]]
    visit.open("/")
    visit.open("/Subjects")
    search(visit, "c-58")
    # The table is a canvas: tick each row by its place until the marked-up memory is shown whole.
    table = visit.page.get_by_test_id("stDataFrame").first
    for row in range(len(held["memories"])):
        table.click(position={"x": 18, "y": 52 + 35 * row})
        visit.settle()
        whole = visit.page.get_by_test_id("stCode").first
        expect(whole).not_to_be_empty(timeout=PATIENCE_MS)
        if marked_up in whole.inner_text():
            break
    assert marked_up in whole.inner_text()
    visit.open("/Recall")
    visit.page.get_by_role("textbox", name="Query").fill(marked_up[:200])
    say_what_for(visit)
    visit.page.get_by_role("button", name="Preview").click()
    expect(visit.page.get_by_text("Mode semantic, ranking hybrid")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    assert visit.page.locator("[data-testid=stMain] img").count() == 0
    assert visit.requests
    assert visit.foreign_requests() == []


def test_a_download_opens_with_its_passphrase_only_and_its_address_tells_a_stranger_nothing(visit: Visit) -> None:
    visit.open("/Subjects")
    search(visit, "c-77")
    section(visit, "Hand out")
    visit.page.get_by_role("button", name="Prepare the package").click()
    expect(visit.page.get_by_text("Passphrase, shown this once:")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    shown = visit.page.get_by_test_id("stCode").filter(has_text=re.compile(r"^\s*([a-z0-9]{5}-){4}[a-z0-9]{5}\s*$"))
    expect(shown).to_have_count(1, timeout=PATIENCE_MS)
    secret = shown.inner_text().strip()
    with visit.page.expect_download() as downloading:
        visit.page.get_by_role("link", name="Download the package").click()
    address = downloading.value.url
    content = downloading.value.path().read_bytes()
    with pyzipper.AESZipFile(io.BytesIO(content)) as archive:
        archive.setpassword(secret.encode())
        held = json.loads(archive.read("access.json"))
        assert held["subject"]["label"] == "Morgan Reed"
        assert archive.read("items.csv").decode("utf-8-sig").count("agent:sourcing") >= 1
        archive.setpassword(b"another passphrase")
        with pytest.raises(RuntimeError, match="password"):
            archive.read("access.json")
    assert re.fullmatch(rf"{re.escape(visit.base)}/downloads/[A-Za-z0-9_-]{{43}}", address)
    with pytest.raises(urllib.error.HTTPError, match="404") as again:
        urllib.request.urlopen(address, timeout=10)
    assert again.value.read().decode() == NOTHING


def test_a_page_of_a_server_that_was_started_past_the_door_and_that_others_can_reach_shows_nothing(
    chromium: Browser, workbench: Workbench
) -> None:
    port = int(workbench.url.rpartition(":")[2]) + 50
    options = ["--server.address", "0.0.0.0", "--server.port", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *options],
        cwd=ROOT,
        env=workbench.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_it_answers(f"http://127.0.0.1:{port}")
        with chromium.new_context() as context:
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{port}/Subjects")
            expect(page.get_by_text("by its own command, past the workbench's own door")).to_be_visible(
                timeout=PATIENCE_MS
            )
            assert page.get_by_role("textbox").count() == 0
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_fits_its_window(chromium: Browser, workbench: Workbench, scheme: str, width: int) -> None:
    with chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        visit = Visit(page=context.new_page(), base=workbench.url)
        for path in ("/", "/Subjects", "/Requests", "/Recall", "/Settings"):
            visit.open(path)
            main = visit.page.get_by_test_id("stMain")
            assert main.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
            assert visit.page.get_by_test_id("stException").count() == 0
