"""A selection of calls survives the address that it is written into, and no address is an error."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.config import Tier
from memory_core.selection import MOST_MODELS, Loading, Outcome, Period, Selection, read_address
from memory_core.units import in_bytes, in_time, in_utc, in_width, tokens_per_second, unit_of

NAMES = ("period", "model", "tier", "loading", "outcome")
MODELS = st.from_regex(re.compile(r"[A-Za-z0-9._:@/+-]{1,128}"), fullmatch=True)
SELECTIONS = st.builds(
    Selection,
    period=st.sampled_from(Period),
    models=st.frozensets(MODELS, max_size=5),
    tiers=st.frozensets(st.sampled_from(Tier)),
    loading=st.frozensets(st.sampled_from(Loading)),
    outcomes=st.frozensets(st.sampled_from(Outcome)),
)
ADDRESSES = st.dictionaries(
    st.sampled_from(NAMES) | st.text(max_size=20),
    st.lists(st.text(max_size=200) | st.sampled_from(["1h", "cold", "open", "deep", "qwen3:0.6b"]), max_size=8),
)


@given(SELECTIONS)
def test_a_selection_is_read_back_from_its_address_as_it_was(selection: Selection) -> None:
    read = read_address(selection.address())
    assert read.selection == selection
    assert read.ignored == ()


@given(ADDRESSES)
def test_whatever_stands_in_an_address_is_used_or_reported_and_never_an_error(address: dict[str, list[str]]) -> None:
    read = read_address(address)
    again = read_address(read.selection.address())
    assert (again.selection, again.ignored) == (read.selection, ())
    assert all(len(one) <= 161 for one in read.ignored)
    assert len(read.ignored) <= 6


def test_the_usual_selection_leaves_the_address_empty() -> None:
    assert Selection().address() == {}
    assert read_address({}).selection == Selection()


@pytest.mark.parametrize(
    ("address", "ignored"),
    [
        ({"period": ["1h", "7d"]}, ("period=7d",)),
        ({"period": ["yesterday"]}, ("period=yesterday",)),
        ({"tier": ["deep", "DEEP"]}, ("tier=DEEP",)),
        ({"model": ["x'; DROP TABLE model_call; --"]}, ("model=x'; DROP TABLE model_call; --",)),
        ({"model": [""]}, ("model=",)),
        ({"model": ["qwen3:0.6b\n"]}, ("model=qwen3:0.6b\n",)),
        ({"org_id": ["other"]}, ("org_id=other",)),
        ({"flag": []}, ("flag=",)),
        ({"loading": ["x" * 500]}, (f"loading={'x' * 152}…",)),
        ({"outcome": [str(one) for one in range(9)]}, (*(f"outcome={one}" for one in range(5)), "and 4 more")),
    ],
)
def test_what_an_address_says_in_vain_is_reported_in_short(
    address: dict[str, list[str]], ignored: tuple[str, ...]
) -> None:
    assert read_address(address).ignored == ignored


def test_an_address_names_no_more_models_than_anybody_has() -> None:
    read = read_address({"model": [f"m{number}" for number in range(MOST_MODELS + 3)]})
    assert len(read.selection.models) == MOST_MODELS
    assert len(read.ignored) == 3


def test_a_period_counts_back_from_now() -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert Period.HOUR.since(now) == now - timedelta(hours=1)
    assert Period.MONTH.since(now) == now - timedelta(days=30)
    assert Period.EVERYTHING.since(now) is None
    assert all(period.label for period in Period)


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (None, "–"),
        (0.0, "0.0 ms"),
        (35.24, "35.2 ms"),
        (99.94, "99.9 ms"),
        (99.96, "100 ms"),
        (6537.1, "6,537 ms"),
        (9999.4, "9,999 ms"),
        (9999.5, "10.0 s"),
        (120_000.0, "120.0 s"),
    ],
)
def test_a_time_is_written_in_milliseconds_below_ten_seconds(ms: float | None, written: str) -> None:
    assert in_time(ms) == written


def test_units_are_those_that_people_read() -> None:
    assert unit_of(9000) == (1.0, "ms")
    assert unit_of(10_000) == (1000.0, "s")
    assert tokens_per_second(25.0) == 40.0
    assert tokens_per_second(0.0) is None
    assert tokens_per_second(None) is None
    assert in_bytes(1_200_000_000) == "1.1 GiB"
    assert in_bytes(0) == "0 MiB"
    assert in_utc(datetime(2026, 11, 30, 12, 4, 59, tzinfo=UTC)) == "2026-11-30 12:04"
    widths = [timedelta(minutes=1), timedelta(minutes=30), timedelta(hours=3), timedelta(days=7)]
    assert [in_width(width) for width in widths] == ["1 minute", "30 minutes", "3 hours", "7 days"]
