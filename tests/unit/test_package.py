"""What is handed out: encrypted, and nothing in it that a spreadsheet executes."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import UTC, datetime
from uuid import UUID

import pytest
import pyzipper
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Disclosure, Held, HeldMemory, Kind, Origin, Purpose, State, Subject
from memory_core.package import ALPHABET, passphrase, sealed_package
from memory_core.spreadsheet import csv_text, disarmed

AT = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)


def held(text: str | None, label: str | None = None) -> Held:
    memory = HeldMemory(
        memory_id=UUID(int=7),
        org_id="acme",
        kind=Kind.OBSERVATION,
        subject=Subject("candidate", "c-1"),
        text=text,
        origin=Origin.INFERENCE,
        author="agent:screening",
        run_id="r-1",
        source=None,
        created_at=AT,
        expires_at=AT,
        state=State.LIVE,
        seen_count=1,
        last_seen_at=AT,
        last_seen_run_id="r-1",
        embedding_model=None,
        restricted_at=None,
        hold=None,
        forgotten_at=None,
        forgotten_by=None,
        forgotten_reason=None,
        swept_at=None,
        disclosures=(Disclosure(recall_id=UUID(int=8), run_id="r-2", purpose=Purpose.RUN, at=AT, place=1),),
    )
    return Held(subject=Subject("candidate", "c-1", label=label), at=AT, memories=(memory,))


@given(text=st.text(max_size=300).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
def test_the_json_has_the_text_as_it_is_and_the_csv_has_it_disarmed(text: str) -> None:
    package = sealed_package(held(text), secret="a b c")
    with pyzipper.AESZipFile(io.BytesIO(package.content)) as archive:
        archive.setpassword(b"a b c")
        content = json.loads(archive.read("held.json"))
        sheet = archive.read("held.csv").decode("utf-8-sig")
    assert content["memories"][0]["text"] == text
    assert content["memories"][0]["disclosures"] == [
        {"run": "r-2", "purpose": "run", "at": "2026-11-02T09:30:00+00:00", "place": 1}
    ]
    (row,) = csv.DictReader(io.StringIO(sheet, newline=""))
    assert row["text"] == disarmed(text)
    assert row["shown_to"] == "r-2 (run)"


def test_without_the_passphrase_neither_text_nor_name_is_in_the_file() -> None:
    package = sealed_package(held("A sentence that must not be readable.", label="Zoë Okafor"), secret=passphrase())
    assert b"sentence" not in package.content
    assert "Zoë".encode() not in package.content
    with pyzipper.AESZipFile(io.BytesIO(package.content)) as archive:
        archive.setpassword(b"wrong")
        with pytest.raises(RuntimeError, match="password"):
            archive.read("held.json")


def test_a_passphrase_is_five_groups_of_five_that_can_be_read_out() -> None:
    drawn = passphrase(random.Random(1).choice)
    assert [len(group) for group in drawn.split("-")] == [5] * 5
    assert set(drawn) - {"-"} <= set(ALPHABET)
    assert not set("il1o0") & set(ALPHABET)
    assert passphrase() != passphrase()


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "\ufeff=1"])
def test_no_cell_starts_like_a_formula(start: str) -> None:
    assert disarmed(start) == "'" + start


@given(st.text())
def test_what_is_disarmed_starts_with_nothing_a_spreadsheet_acts_on(text: str) -> None:
    safe = disarmed(text)
    assert safe in (text, "'" + text)
    assert not safe.lstrip("\ufeff\u200b\u00ad \t\r\n").startswith(("=", "+", "-", "@"))


def test_a_row_without_a_column_has_an_empty_cell_there() -> None:
    assert csv_text(["a", "b"], [{"a": 1}]) == '"a","b"\r\n"1",""\r\n'
