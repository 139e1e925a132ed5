"""A real workbench on a fresh machine's terms, driven in a real headless Chromium."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright
from waiting import until_it_answers

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SWITCHES = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PATIENCE_MS = 60_000  # a page may wait for a busy machine; a test that passes takes a second or two

# The script has run to its end once it was seen to run and rests, or was not seen to run for a while. Looked at in the page
# itself: a look from outside would be a while apart from the next.
AT_REST = """
    (limit_ms) => new Promise((resolve, reject) => {
        const began = performance.now();
        let ran = false, rests_since = began;
        const look = () => {
            const now = performance.now();
            const app = document.querySelector("[data-testid=stApp]");
            if (app?.getAttribute("data-test-script-state") !== "notRunning") {
                ran = true;
                rests_since = now;
            }
            if (now - rests_since >= (ran ? 150 : 300)) resolve();
            else if (now - began > limit_ms) reject(new Error("the script has not run to its end"));
            else setTimeout(look, 10);
        };
        look();
    })
"""


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """A running workbench with the demo in it."""

    url: str
    environment: dict[str, str]
    pid: int

    def command(self, *arguments: str) -> str:
        """Run a command of the command line on the same data."""
        return run(self.environment, *arguments)


@dataclass
class Visit:
    """One page of one browser, with every address it asked for."""

    page: Page
    base: str
    requests: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # what the browser had to say to whoever looks at its console

    def watch(self) -> None:
        """Take down from here on what the page asks for and what the browser says."""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.on("console", lambda message: self.told.append(message.text))

    def open(self, path: str) -> None:
        """Open a page of the workbench and wait until it has drawn itself."""
        self.page.goto(self.base + path)
        expect(self.page.locator("h1")).to_be_visible(timeout=PATIENCE_MS)
        self.settle()

    def settle(self) -> None:
        """Wait until the script has run to its end, also where the page leads on to another."""
        while True:
            try:
                self.page.evaluate(AT_REST, PATIENCE_MS)
            except Error as error:
                if "navigation" not in error.message:
                    raise
            else:
                return

    def violations(self) -> list[str]:
        """Return what the page's own security policy kept from it."""
        return [line for line in self.told if "Content Security Policy" in line]

    def foreign_requests(self) -> list[str]:
        """Return the addresses asked for that are not the workbench's own."""
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in ("data", "blob", "about")
            and not re.match(r"(https?|wss?)://127\.0\.0\.1:", url)
        ]


def environment(home: Path) -> dict[str, str]:
    """Return an environment with nothing of this project's in it but the home."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "MODEL_", "STREAMLIT_"))
    }
    kept.pop("DATABASE_URL", None)
    return kept | {"MEMORY_HOME": str(home), "MEMORY_EMBEDDER": "minilm"}


def run(environment: dict[str, str], *arguments: str) -> str:
    """Run a command of the command line; returns what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "memory_core", *arguments],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout


def started(
    environment: dict[str, str], *, log: Path | None = None, cwd: Path = ROOT
) -> tuple[subprocess.Popen[str], str]:
    """Start the workbench and wait until it answers; returns its process and address.

    With a `log` it has all that the server says after its address.
    """
    with closing(socket.socket()) as taken:  # two that look for the first free port at once may both find the same
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "memory_core", "serve", "--port", str(port)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    line = server.stderr.readline()
    if log is not None:
        Thread(target=kept, args=(server.stderr, log), daemon=True).start()
    url = line.removeprefix("Workbench: ").strip()
    assert url.startswith("http://127.0.0.1:"), line
    try:
        until_it_answers(url)
    except AssertionError:
        server.kill()
        raise
    return server, url


def kept(said: IO[str], log: Path) -> None:
    """Write what a server says to a file, as it comes."""
    with log.open("w", encoding="utf-8") as out:
        for line in said:
            out.write(line)
            out.flush()


def stopped(server: subprocess.Popen[str]) -> None:
    """End a workbench as a service manager would."""
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(timeout=30)
    finally:
        server.kill()
        assert server.stderr is not None
        server.stderr.close()
        server.wait()


@pytest.fixture(scope="session")
def workbench() -> Iterator[Workbench]:
    folder = Path(tempfile.mkdtemp(prefix="memory-browser-"))
    folder.chmod(0o755)
    own = environment(folder / "home of the workbench")
    run(own, "demo")
    server, url = started(own)
    yield Workbench(url=url, environment=own, pid=server.pid)
    stopped(server)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here; on Debian and Ubuntu: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser, workbench: Workbench) -> Iterator[Visit]:
    with chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        visit = Visit(page=page, base=workbench.url)
        visit.watch()
        yield visit
        assert visit.violations() == []
