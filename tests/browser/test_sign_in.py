"""Signing in at a real provider, in a real browser: each role sees its pages and no others, and what ends, ends."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, expect
from signing import CLIENT_ID, CLIENT_SECRET, COOKIE, claims, cookie, secrets
from streaming import page

from browser.conftest import PATIENCE_MS, ROOT, Visit, Workbench, environment, started, stopped
from pages.web.door import NOTHING

pytestmark = pytest.mark.browser

PROVIDER = ROOT / "tests" / "oidc"
MEMBERS = {
    **{role: role for role in ("dpo", "engineer", "auditor", "admin")},
    "both": "dpo",
    "unverified": "dpo",
}
FILLING = """
import json, sys
from memory_core import MemoryStore, Subject
from memory_core.membership import Members
from memory_core.roles import Identity
store = MemoryStore.open("demo", embedder=None)
store.remember("Could start in March.", kind="observation", subject=Subject("candidate", "c-77", label="Morgan Reed"),
               origin="inference", author="agent:screening", run_id="r-1")
members = Members.open("demo", by="user:root")
for account, role in json.loads(sys.argv[2]).items():
    members.add(Identity(issuer=sys.argv[1], subject=account), role, name=f"user:{account}")
"""
SEES = {
    "dpo": ["Home", "Subjects", "Requests", "Runs", "Settings"],
    "engineer": ["Home", "Recall", "Runs", "Latency", "Evals"],
    "auditor": ["Home", "Requests", "Settings", "Members"],
    "admin": ["Home", "Settings", "Members"],
}
PAGES = {"Home": ""}
ALL = ["Home", "Subjects", "Requests", "Recall", "Runs", "Latency", "Evals", "Settings", "Members"]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A workbench with a sign-in, and the provider at which its members have their accounts."""

    workbench: Workbench
    issuer: str

    def cookie(self, account: str) -> str:
        """Return the cookie of a sign-in, for what is not about signing in."""
        return cookie(claims(account, origin=self.workbench.url, iss=self.issuer))


def free_port() -> int:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def provider_code() -> Path:
    """The provider's packages, fetched once; the lock says which."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no Node.js here for the provider; on Debian and Ubuntu: apt install nodejs npm")
    have, want = PROVIDER / "node_modules" / ".package-lock.json", PROVIDER / "package-lock.json"
    if not have.exists() or have.stat().st_mtime < want.stat().st_mtime:
        fetched = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=PROVIDER,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if fetched.returncode:
            pytest.skip(f"npm could not fetch the provider: {fetched.stderr.strip().splitlines()[-1][:200]}")
    return PROVIDER / "provider.mjs"


@pytest.fixture(scope="module")
def desk(provider_code: Path) -> Iterator[Desk]:
    port = free_port()
    issuer = f"http://localhost:{port}"
    with ExitStack() as left:
        folder = Path(tempfile.mkdtemp(prefix="memory-sign-in-"))
        left.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        home = folder / "a home of the desk"
        secrets(home, origin="http://127.0.0.1:{port}", provider=issuer)
        own = environment(folder / "memory") | {"HOME": str(home), "MEMORY_EMBEDDER": "none", "MEMORY_CONTACT": "Ines"}
        subprocess.run(
            [sys.executable, "-c", FILLING, issuer, json.dumps(MEMBERS)], cwd=ROOT, env=own, check=True, timeout=120
        )
        server, url = started(own)
        left.callback(stopped, server)
        command = ["node", str(provider_code), str(port), f"{url}/oauth2callback", CLIENT_ID, CLIENT_SECRET]
        provider = left.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        )
        left.callback(provider.kill)
        assert provider.stdout is not None
        assert provider.stdout.readline() == "ready\n"
        yield Desk(workbench=Workbench(url=url, environment=own, pid=server.pid), issuer=issuer)


Visiting = Callable[..., Visit]


@pytest.fixture(scope="module")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One browser for all: what it keeps of Streamlit's own code is what makes the second visit fast."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context


@pytest.fixture
def visiting(context: BrowserContext, desk: Desk) -> Iterator[Visiting]:
    """Open a page as somebody who is signed in nowhere, or with the cookie of a sign-in."""
    context.clear_cookies()

    def visiting(signed: str | None = None) -> Visit:
        if signed is not None:
            context.add_cookies([{"name": COOKIE, "value": signed, "url": desk.workbench.url}])
        opened = context.new_page()
        opened.set_default_timeout(PATIENCE_MS)
        visit = Visit(page=opened, base=desk.workbench.url)
        visit.watch()
        return visit

    yield visiting
    for opened in context.pages:
        opened.close()


def sign_in(visit: Visit, account: str) -> None:
    visit.page.goto(visit.base)
    visit.page.get_by_role("button", name="Sign in").click()
    visit.page.get_by_label("Account").fill(account)
    visit.page.get_by_role("button", name="Sign me in").click()
    visit.page.wait_for_url(f"{visit.base}/")
    expect(visit.page.get_by_role("button", name="Sign out").first).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()


def links(visit: Visit) -> list[str]:
    return visit.page.get_by_test_id("stSidebar").get_by_test_id("stPageLink").all_inner_texts()


def said(visit: Visit) -> str:
    return visit.page.get_by_test_id("stMain").inner_text()


def media(visit: Visit) -> list[str]:
    return [one for one in visit.requests if one.startswith(f"{visit.base}/media")]


def answer(address: str, headers: dict[str, str]) -> tuple[int, str]:
    response = httpx.get(address, headers=headers)
    return response.status_code, response.text


@pytest.mark.parametrize("role", SEES)
def test_each_role_signs_in_to_its_pages_and_no_others_and_signs_out(visiting: Visiting, role: str) -> None:
    visit = visiting()
    sign_in(visit, role)
    assert [one.split("\n")[-1] for one in links(visit)] == SEES[role]
    mine = {one["name"]: one["value"] for one in visit.page.context.cookies(visit.base)}
    assert mine.keys() >= {COOKIE}
    refused = [name for name in ALL if b"act_is_for_its_roles" in page(visit.base, PAGES.get(name, name), cookies=mine)]
    assert refused == [name for name in ALL if name not in SEES[role]]
    visit.page.get_by_role("button", name="Sign out").click()
    visit.page.get_by_role("button", name="Yes, sign me out").click()
    visit.page.wait_for_url(f"{visit.base}/")
    expect(visit.page.get_by_role("button", name="Sign in")).to_be_visible(timeout=PATIENCE_MS)
    assert not [one for one in visit.page.context.cookies() if one["name"].startswith(COOKIE)]
    assert visit.violations() == []
    assert media(visit) == []


def test_whoever_is_no_member_is_told_whom_to_ask(visiting: Visiting) -> None:
    visit = visiting()
    sign_in(visit, "nobody")
    assert "You are signed in, and no member of any organisation here." in said(visit)
    assert "Ines" in said(visit)
    assert "demo" not in visit.page.content().lower().replace("demo organisation", "")


def test_an_address_that_nobody_looked_at_lets_nobody_in(visiting: Visiting) -> None:
    visit = visiting()
    visit.page.goto(visit.base)
    visit.page.get_by_role("button", name="Sign in").click()
    visit.page.get_by_label("Account").fill("unverified")
    visit.page.get_by_role("button", name="Sign me in").click()
    expect(visit.page.get_by_text("your e-mail address is not verified")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    assert links(visit) == []
    assert visit.page.locator("h1").count() == 0


def test_a_package_is_fetched_once_and_by_nobody_else(desk: Desk, visiting: Visiting) -> None:
    visit = visiting(desk.cookie("dpo"))
    visit.open("/Subjects")
    box = visit.page.get_by_role("textbox", name="Name, e-mail or id")
    box.fill("c-77")
    box.press("Enter")
    visit.settle()
    visit.page.get_by_test_id("stButtonGroup").get_by_text("Hand out", exact=True).click()
    visit.page.get_by_role("button", name="Prepare the package").click()
    link = visit.page.get_by_role("link", name="Download the package")
    expect(link).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    address = f"{visit.base}{link.get_attribute('href')}"
    assert re.fullmatch(rf"{visit.base}/downloads/[A-Za-z0-9_-]{{43}}", address)
    for stranger in ({"Cookie": f"{COOKIE}={desk.cookie('engineer')}"}, {}):
        assert answer(address, stranger) == (404, NOTHING)
    with visit.page.expect_download() as downloading:
        link.click()
    assert downloading.value.path().read_bytes().startswith(b"PK")
    assert downloading.value.suggested_filename.endswith(".zip")
    assert answer(address, {"Cookie": f"{COOKIE}={desk.cookie('dpo')}"}) == (404, NOTHING)
    assert media(visit) == []
    assert visit.violations() == []


def test_a_role_that_is_taken_away_is_gone_at_the_next_click(desk: Desk, visiting: Visiting) -> None:
    visit = visiting(desk.cookie("both"))
    visit.open("/Subjects")
    desk.workbench.command(
        "member", "remove", "--org", "demo", "--issuer", desk.issuer, "--subject", "both", "--by", "user:root"
    )
    box = visit.page.get_by_role("textbox", name="Name, e-mail or id")
    box.fill("c-77")
    box.press("Enter")
    expect(visit.page.get_by_test_id("stAlert").first).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    assert "Morgan" not in visit.page.content()


def test_signing_out_in_one_tab_ends_the_other(visiting: Visiting) -> None:
    visit = visiting()
    sign_in(visit, "dpo")
    second = visit.page.context.new_page()
    second.goto(f"{visit.base}/Subjects")
    expect(second.locator("h1")).to_be_visible(timeout=PATIENCE_MS)
    visit.page.get_by_role("button", name="Sign out").click()
    visit.page.get_by_role("button", name="Yes, sign me out").click()
    expect(visit.page.get_by_role("button", name="Sign in")).to_be_visible(timeout=PATIENCE_MS)
    box = second.get_by_role("textbox", name="Name, e-mail or id")
    box.fill("c-77")
    box.press("Enter")
    expect(second.get_by_text("you signed out")).to_be_visible(timeout=PATIENCE_MS)
    assert "Morgan" not in second.content()
