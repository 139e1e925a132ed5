"""What is handed out: encrypted, and nothing in it that a spreadsheet executes."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest
import pyzipper
from access_packages import a_memory, a_package, an_item
from hypothesis import given
from hypothesis import strategies as st

from memory_core.package import ALPHABET, access_files, passphrase, sealed
from memory_core.spreadsheet import csv_text, disarmed


@given(text=st.text(max_size=300).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
def test_the_json_has_the_text_as_it_is_and_the_csv_has_it_disarmed(text: str) -> None:
    file = sealed(access_files(a_package(an_item(a_memory(text)))), secret="a b c")
    with pyzipper.AESZipFile(io.BytesIO(file.content)) as archive:
        archive.setpassword(b"a b c")
        assert archive.namelist() == ["access.json", "access.html", "items.csv"]
        content = json.loads(archive.read("access.json"))
        sheet = archive.read("items.csv").decode("utf-8-sig")
    assert content["items"][0]["text"] == text
    (row,) = csv.DictReader(io.StringIO(sheet, newline=""))
    assert row["text"] == disarmed(text)


def test_what_is_left_out_is_in_none_of_the_files_and_the_reason_is() -> None:
    files = access_files(a_package(an_item(a_memory("Bo said xyzzy."), left_out="what a referee said")))
    assert not [name for name, content in files.items() if "xyzzy" in content]
    assert all("what a referee said" in content for content in files.values())


def test_without_the_passphrase_neither_text_nor_name_is_in_the_file() -> None:
    readable = access_files(a_package(an_item(a_memory("A sentence that must not be readable."))))
    file = sealed(readable, secret=passphrase())
    assert b"sentence" not in file.content
    with pyzipper.AESZipFile(io.BytesIO(file.content)) as archive:
        archive.setpassword(b"wrong")
        with pytest.raises(RuntimeError, match="password"):
            archive.read("access.json")


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
