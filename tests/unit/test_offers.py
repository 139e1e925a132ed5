"""A file waits for one person, for five minutes, and takes no more room than there is."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_core.errors import Refused
from memory_core.roles import Act, Identity
from pages.web import offers
from pages.web.downloads import safe_name
from pages.web.offers import PATH, Offer, Offers

INES = Identity(issuer="https://login.example", subject="ines")
MAX = Identity(issuer="https://login.example", subject="max")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def waiting(clock: Clock) -> Offers:
    return Offers(clock=clock)


def offered(waiting: Offers, content: bytes = b"package", identity: Identity | None = INES) -> str:
    path = waiting.offer(
        content, file_name="a.zip", mime="application/zip", org_id="acme", act=Act.RELEASE, identity=identity
    )
    assert re.fullmatch(rf"{PATH}[A-Za-z0-9_-]{{43}}", path)
    return path.removeprefix(PATH)


def standing(waiting: Offers, token: str, identity: Identity | None = INES) -> Offer:
    found = waiting.standing(token, identity)
    assert found is not None
    return found


def test_a_file_waits_for_whoever_asked_for_it_and_for_nobody_else(waiting: Offers) -> None:
    token = offered(waiting)
    for stranger in (MAX, None):
        assert waiting.standing(token, stranger) is None
    assert waiting.standing(token + "x", INES) is None
    assert waiting.standing("\ud800", INES) is None
    assert standing(waiting, token).content == b"package"


def test_it_is_taken_once(waiting: Offers) -> None:
    token = offered(waiting)
    offer = standing(waiting, token)
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: waiting.take(token, offer), range(100))) == 1
    assert waiting.standing(token, INES) is None


def test_after_five_minutes_it_is_gone(waiting: Offers, clock: Clock) -> None:
    token = offered(waiting)
    offer = standing(waiting, token)
    clock.now += 299
    assert waiting.standing(token, INES) is offer
    clock.now += 1
    assert waiting.standing(token, INES) is None
    assert not waiting.take(token, offer)


def test_whose_an_address_is_or_was_is_known_as_long_as_the_file_would_have_waited(
    waiting: Offers, clock: Clock
) -> None:
    token = offered(waiting)
    assert waiting.organisation_of(token) == "acme"
    assert waiting.take(token, standing(waiting, token))
    assert waiting.organisation_of(token) == "acme"
    assert waiting.organisation_of("A" * 43) is None
    clock.now += 300
    assert waiting.organisation_of(token) is None


def test_what_nobody_fetches_is_let_go_of(waiting: Offers, clock: Clock) -> None:
    offered(waiting)
    clock.now += 301
    waiting.forget_old()
    assert not waiting._offers


def test_the_oldest_of_ones_own_makes_room(waiting: Offers) -> None:
    other = offered(waiting, identity=MAX)
    tokens = [offered(waiting) for _ in range(offers.MOST_FILES_EACH + 2)]
    assert [waiting.standing(token, INES) is None for token in tokens] == [
        True,
        True,
        *[False] * offers.MOST_FILES_EACH,
    ]
    assert waiting.standing(other, MAX) is not None


def test_so_many_bytes_of_one_person_and_of_all(waiting: Offers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "MOST_BYTES_EACH", 100)
    monkeypatch.setattr(offers, "MOST_BYTES", 250)
    first, second = offered(waiting, b"x" * 60), offered(waiting, b"x" * 60)
    assert waiting.standing(first, INES) is None
    others = [Identity(issuer="i", subject=str(number)) for number in range(2)]
    theirs = [offered(waiting, b"x" * 100, one) for one in others]
    assert waiting.standing(second, INES) is None  # the oldest of all
    assert None not in [waiting.standing(token, one) for token, one in zip(theirs, others, strict=True)]
    with pytest.raises(Refused, match="file_can_be_kept"):
        offered(waiting, b"x" * 101)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("access-R-2026-0001.zip", "access-R-2026-0001.zip"),
        ('a"; filename="b.exe', "a___filename__b.exe"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "file"),
        ("", "file"),
        ("é\r\nX: y", "___X__y"),
        ("a" * 300 + ".zip", "a" * 96 + ".zip"),
        ("\\\\server\\share", "__server_share"),
    ],
)
def test_a_files_name_is_plain(name: str, safe: str) -> None:
    assert safe_name(name) == safe
