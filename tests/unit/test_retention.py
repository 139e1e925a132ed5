from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import State
from memory_core.errors import Refusal
from memory_core.rules.policy import DEFAULT_EXPIRY, DEFAULT_MAXIMUM_DAYS, Policy
from memory_core.rules.retention import expiry, expiry_refusal, instant_refusal, is_due, state

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=offsets)
storable = moments.filter(lambda moment: instant_refusal(moment, field="created_at") is None)
policies = st.integers(1, 3650).map(lambda days: Policy(maximum_days=days))
perhaps = st.none() | moments


def test_the_defaults_are_ninety_days_and_a_year() -> None:
    assert timedelta(days=90) == DEFAULT_EXPIRY
    assert DEFAULT_MAXIMUM_DAYS == Policy().maximum_days == 365


def test_a_memory_lives_ninety_days_from_its_creation_unless_asked_otherwise() -> None:
    assert expiry(NOW, asked=None, policy=Policy()) == NOW + timedelta(days=90)


@given(moments, moments, policies)
def test_an_expiry_that_was_asked_for_is_taken_as_it_is(created_at: datetime, asked: datetime, policy: Policy) -> None:
    assert expiry(created_at, asked=asked, policy=policy) is asked


@given(storable, policies)
def test_the_default_never_exceeds_the_organisations_maximum(created_at: datetime, policy: Policy) -> None:
    lives = expiry(created_at, asked=None, policy=policy) - created_at
    assert lives <= min(timedelta(days=policy.maximum_days), timedelta(days=90))


@given(storable, policies)
def test_a_default_expiry_is_kept_whenever_it_is_not_past(created_at: datetime, policy: Policy) -> None:
    lapses = expiry(created_at, asked=None, policy=policy)
    if lapses > created_at:
        assert expiry_refusal(lapses, since=created_at, now=created_at, policy=policy) is None


def test_a_default_past_the_last_year_is_the_last_moment_there_is() -> None:
    last_days = datetime(9999, 12, 1, tzinfo=UTC)
    assert expiry(last_days, asked=None, policy=Policy()) == datetime.max.replace(tzinfo=UTC)


@given(moments, moments)
def test_a_memory_is_due_from_the_very_moment_of_its_expiry(expires_at: datetime, now: datetime) -> None:
    assert is_due(expires_at, now=now) == (expires_at <= now)
    assert is_due(now, now=now)


@given(
    st.timedeltas(min_value=timedelta(days=-4000), max_value=timedelta(days=4000)),
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=4000)),
    policies,
)
def test_an_expiry_is_refused_exactly_if_past_not_after_creation_or_beyond_the_maximum(
    ahead: timedelta, age: timedelta, policy: Policy
) -> None:
    created_at, expires_at = NOW - age, NOW + ahead
    refused = expiry_refusal(expires_at, since=created_at, now=NOW, policy=policy)
    if expires_at <= NOW:
        assert refused is not None
        assert refused.rule == "expiry_is_not_past"
    elif expires_at - created_at > timedelta(days=policy.maximum_days):
        assert refused is not None
        assert refused.rule == "expiry_within_maximum"
    else:
        assert refused is None
    assert refused is None or refused.field == "expires_at"


def test_an_expiry_before_the_creation_is_refused_though_it_is_not_past() -> None:
    created_at = NOW + timedelta(days=2)
    for expires_at in (created_at, created_at - INSTANT):
        refused = expiry_refusal(expires_at, since=created_at, now=NOW, policy=Policy())
        assert refused is not None
        assert refused.rule == "expiry_after_creation"


def test_a_refused_maximum_names_the_organisations_own() -> None:
    late = NOW + timedelta(days=31)
    refused = expiry_refusal(late, since=NOW, now=NOW, policy=Policy(maximum_days=30))
    assert refused is not None
    assert "30 days" in refused.reason


@pytest.mark.parametrize("value", ["2026-11-02", 1, NOW.date(), NOW.time(), timedelta(1), object()])
def test_what_is_no_time_is_no_instant(value: object) -> None:
    refused = instant_refusal(value, field="created_at")
    assert refused is not None
    assert (refused.rule, refused.field) == ("instant_is_a_time", "created_at")


@given(st.datetimes())
def test_a_time_without_a_zone_is_no_instant(value: datetime) -> None:
    refused = instant_refusal(value, field="expires_at")
    assert refused is not None
    assert (refused.rule, refused.field) == ("instant_has_a_zone", "expires_at")


def test_what_is_not_given_is_not_refused() -> None:
    assert instant_refusal(None, field="created_at", now=NOW) is None


@pytest.mark.parametrize(
    "value",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    ],
)
def test_an_instant_outside_the_years_that_can_be_stored_is_refused(value: datetime) -> None:
    refused = instant_refusal(value, field="created_at", now=NOW)
    assert refused is not None
    assert refused.rule == "instant_is_a_time"


@given(moments, moments)
def test_an_instant_is_refused_as_future_only_if_it_lies_after_now(value: datetime, now: datetime) -> None:
    refused = instant_refusal(value, field="created_at", now=now)
    assert refused is None or isinstance(refused, Refusal)
    if refused is None:
        assert value <= now
    elif refused.rule == "created_at_is_not_in_the_future":
        assert value > now


@given(moments, perhaps, perhaps, perhaps, moments)
def test_a_memory_has_one_state_and_what_took_its_text_comes_first(
    expires_at: datetime,
    restricted_at: datetime | None,
    forgotten_at: datetime | None,
    swept_at: datetime | None,
    now: datetime,
) -> None:
    found = state(
        expires_at=expires_at, restricted_at=restricted_at, forgotten_at=forgotten_at, swept_at=swept_at, now=now
    )
    if forgotten_at is not None:
        assert found is State.FORGOTTEN
    elif swept_at is not None:
        assert found is State.SWEPT
    elif restricted_at is not None:
        assert found is State.RESTRICTED
    else:
        assert found is (State.EXPIRED if expires_at <= now else State.LIVE)
