"""A file is fetched by whoever asked for it, if they still may, once; every other fetch gets one and the same answer."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Database
from signing import COOKIE, ISSUER, claims, configured, secrets, signed, strangers
from starlette.applications import Starlette
from starlette.testclient import TestClient

from memory_core.config import settings
from memory_core.membership import Members
from memory_core.privacy import PrivacyDesk
from memory_core.roles import Act, Identity, Role
from memory_core.workplace import NOBODY
from pages.web.door import NOTHING
from pages.web.downloads import FETCH, ROUTE
from pages.web.offers import OFFERS
from pages.web.signed_in import claims_in
from pages.web.signed_out import SIGNED_OUT

ORIGIN = "https://memory.example.test"
HERE = "http://127.0.0.1:8501"
PACKAGE = b"PK of nobody"
INES, MAX, EVE = (Identity(issuer=ISSUER, subject=name) for name in ("ines", "max", "eve"))


@pytest.fixture(scope="module")
def members(standing: Database) -> Members:
    """Two officers of one organisation, and somebody who is none of it."""
    chosen = settings(database_url=standing.application.render_as_string(hide_password=False), memory_embedder="none")
    members = Members.open("acme", by="user:root", settings=chosen)
    members.add(INES, Role.DPO, name="user:ines")
    members.add(MAX, Role.DPO, name="user:max")
    Members.open("globex", by="user:root", settings=chosen).add(EVE, Role.DPO, name="user:eve")
    return members


@pytest.fixture(autouse=True)
def _environment(standing: Database, members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", standing.application.render_as_string(hide_password=False))


@pytest.fixture
def signing_in(tmp_path: Path) -> Iterator[TestClient]:
    with configured(secrets(tmp_path, origin=ORIGIN)):
        yield TestClient(Starlette(routes=[ROUTE]), base_url=ORIGIN, client=("198.51.100.7", 40000))


@pytest.fixture
def local() -> Iterator[TestClient]:
    with configured(None):
        yield TestClient(Starlette(routes=[ROUTE]), base_url=HERE, client=("127.0.0.1", 40000))


def offered(identity: Identity | None = INES, *, org_id: str = "acme", act: Act = Act.RELEASE) -> str:
    return OFFERS.offer(
        PACKAGE, file_name="access-R-1.zip", mime="application/zip", org_id=org_id, act=act, identity=identity
    )


def as_(subject: str, **others: Any) -> dict[str, str]:
    return {"Cookie": signed(claims(subject, origin=ORIGIN, **others))}


def assert_nothing(response: Any) -> None:
    assert (response.status_code, response.text) == (404, NOTHING)
    assert {name: value for name, value in response.headers.items() if name != "date"} == {
        "cache-control": "no-store",
        "content-length": str(len(NOTHING)),
        "content-type": "text/plain; charset=utf-8",
    }


def assert_package(response: Any) -> None:
    assert (response.status_code, response.content) == (200, PACKAGE)
    assert response.headers["content-disposition"] == 'attachment; filename="access-R-1.zip"'
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["cache-control"] == "no-store"


def test_whoever_asked_for_it_gets_it_once(signing_in: TestClient) -> None:
    path = offered()
    assert_package(signing_in.get(path, headers=as_("ines")))
    assert_nothing(signing_in.get(path, headers=as_("ines")))


def test_on_this_machine_the_one_local_user_gets_it_once(local: TestClient) -> None:
    path = offered(None)
    assert_package(local.get(path))
    assert_nothing(local.get(path))


@pytest.mark.parametrize(
    ("client", "host"),
    [
        ("198.51.100.7", "127.0.0.1:8501"),  # as a proxy says who it passed on
        ("127.0.0.1", "evil.example:8501"),  # a name that was pointed here
        ("127.0.0.1", "127.0.0.1.evil.example"),
        ("127.0.0.1", "localhost@evil.example"),
        ("127.0.0.1", ""),
        ("testclient", "localhost"),
    ],
)
def test_without_a_sign_in_nobody_else_gets_it(local: TestClient, client: str, host: str) -> None:
    path = offered(None)
    elsewhere = TestClient(local.app, base_url=HERE, client=(client, 40000))
    assert_nothing(elsewhere.get(path, headers={"Host": host}))
    assert_package(local.get(path))


STRANGERS = {name: {"Cookie": sent} for name, sent in strangers("ines", origin=ORIGIN).items()} | {
    "nobody": {},
    "another officer": as_("max"),
    "an officer of another organisation": as_("eve"),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_a_stranger_gets_nothing_and_leaves_it_there(signing_in: TestClient, who: str) -> None:
    path = offered()
    assert_nothing(signing_in.get(path, headers=STRANGERS[who]))
    assert_package(signing_in.get(path, headers=as_("ines")))


def test_what_is_the_local_users_is_nobodys_who_signs_in(signing_in: TestClient) -> None:
    assert_nothing(signing_in.get(offered(None), headers=as_("ines")))


def test_an_answer_for_a_name_that_is_not_there_is_the_same(signing_in: TestClient) -> None:
    for path in ("/downloads/", f"/downloads/{'A' * 43}", "/downloads/..%2f..%2fetc%2fpasswd", "/downloads/%00"):
        response = signing_in.get(path, headers=as_("ines"))
        assert response.status_code == 404
        assert "ines" not in response.text


@pytest.mark.parametrize(
    ("method", "headers"), [("HEAD", {}), ("GET", {"Range": "bytes=0-3"}), ("GET", {"Range": "bytes=0-"})]
)
def test_looking_at_it_does_not_use_it_up(signing_in: TestClient, method: str, headers: dict[str, str]) -> None:
    path = offered()
    response = signing_in.request(method, path, headers=as_("ines") | headers)
    assert response.status_code == 404
    assert PACKAGE not in response.content
    assert_package(signing_in.get(path, headers=as_("ines")))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_get_fetches(signing_in: TestClient, method: str) -> None:
    path = offered()
    assert signing_in.request(method, path, headers=as_("ines")).status_code == 405
    assert_package(signing_in.get(path, headers=as_("ines")))


def test_of_twenty_at_once_one_gets_it(signing_in: TestClient) -> None:
    path = offered()
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: signing_in.get(path, headers=as_("ines")), range(20)))
    assert sorted(response.status_code for response in got) == [200, *[404] * 19]


def test_a_fetch_by_somebody_else_and_a_second_one_are_on_record(
    signing_in: TestClient, members: Members, standing: Database
) -> None:
    thief, late = (Identity(issuer=ISSUER, subject=name) for name in ("thief", "late"))
    members.add(late, Role.DPO, name="user:late")
    path = offered(late)
    for headers in (as_("thief"), as_("late"), as_("late"), {}):
        signing_in.get(path, headers=headers)
    signing_in.get(f"/downloads/{'B' * 43}", headers=as_("another"))  # no address of ours
    desk = PrivacyDesk.open("acme", by="user:ines", database_url=standing.application, embedder=None)
    told = {line.by for line in desk.trail(act="refused") if line.reason == FETCH}
    assert {thief.short, late.short, NOBODY} <= told
    assert Identity(issuer=ISSUER, subject="another").short not in told


def test_who_was_removed_meanwhile_gets_nothing_and_is_on_record(
    signing_in: TestClient, members: Members, standing: Database
) -> None:
    leaving = Identity(issuer=ISSUER, subject="leaving")
    members.add(leaving, Role.DPO, name="user:leaving")
    path = offered(leaving)
    members.remove(leaving)
    assert_nothing(signing_in.get(path, headers=as_("leaving")))
    members.add(leaving, Role.DPO, name="user:leaving")
    assert_nothing(signing_in.get(path, headers=as_("leaving")))  # it is gone
    desk = PrivacyDesk.open("acme", by="user:ines", database_url=standing.application, embedder=None)
    refused = [(line.by, line.reason) for line in desk.trail(act="refused")]
    assert (leaving.short, Act.RELEASE.value) in refused
    assert (leaving.short, FETCH) in refused


def test_a_role_that_is_too_little_gets_nothing(signing_in: TestClient, members: Members) -> None:
    watching = Identity(issuer=ISSUER, subject="watching")
    members.add(watching, Role.AUDITOR, name="user:watching")
    assert_nothing(signing_in.get(offered(watching), headers=as_("watching")))
    assert_package(signing_in.get(offered(watching, act=Act.READ_REGISTER), headers=as_("watching")))
    assert_nothing(signing_in.get(offered(watching, org_id="globex", act=Act.READ_REGISTER), headers=as_("watching")))


def test_who_signed_out_gets_nothing_with_the_cookie_that_is_left(signing_in: TestClient) -> None:
    left, path = as_("ines", nonce="the-one-that-ends"), offered()
    SIGNED_OUT.add(claims_in({COOKIE: left["Cookie"].partition("=")[2]}, origin=ORIGIN))
    assert_nothing(signing_in.get(path, headers=left))
    assert_package(signing_in.get(path, headers=as_("ines", nonce="another")))


def test_without_a_database_it_stays_there(signing_in: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    path, right = offered(), os.environ["DATABASE_URL"]
    monkeypatch.setenv("DATABASE_URL", "postgresql://memory_app@127.0.0.1:1/none")
    response = signing_in.get(path, headers=as_("ines"))
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert "memory_app" not in response.text
    monkeypatch.setenv("DATABASE_URL", right)
    assert_package(signing_in.get(path, headers=as_("ines")))


def test_no_address_is_written_to_a_log(signing_in: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = offered()
    for headers in ({}, as_("max"), as_("ines"), as_("ines")):
        signing_in.get(path, headers=headers)
    server = [one.getMessage() for one in caplog.records if not one.name.startswith("httpx")]  # the test's own client
    assert path.rpartition("/")[2] not in "\n".join(server)
