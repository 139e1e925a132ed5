"""How long a memory lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory_core.errors import Refusal
from memory_core.model import State
from memory_core.rules.policy import DEFAULT_EXPIRY, Policy


def expiry(since: datetime, *, asked: datetime | None, policy: Policy) -> datetime:
    """Return when it expires: as asked for, else 90 days, or the organisation's maximum if that is less.

    `since` is when it was created or, if later, last remembered again.
    """
    if asked is not None:
        return asked
    try:
        return since + min(DEFAULT_EXPIRY, timedelta(days=policy.maximum_days))
    except OverflowError:  # the last days of the year 9999
        return datetime.max.replace(tzinfo=UTC)


def is_due(expires_at: datetime, *, now: datetime) -> bool:
    """Say whether it has expired; the moment of expiry itself counts."""
    return expires_at <= now


def expiry_refusal(expires_at: datetime, *, since: datetime, now: datetime, policy: Policy) -> Refusal | None:
    """Refuse an expiry that is past, not after the creation, or beyond the organisation's maximum."""
    if is_due(expires_at, now=now):
        return Refusal(
            rule="expiry_is_not_past",
            field="expires_at",
            reason=f"would be {expires_at.isoformat()}, which is past; give a later expires_at or leave it out",
        )
    if expires_at <= since:
        return Refusal(rule="expiry_after_creation", field="expires_at", reason="must be later than created_at")
    if expires_at - since > timedelta(days=policy.maximum_days):
        return Refusal(
            rule="expiry_within_maximum",
            field="expires_at",
            reason=f"is more than the organisation's maximum of {policy.maximum_days} days after created_at",
        )
    return None


def instant_refusal(value: object, *, field: str, now: datetime | None = None) -> Refusal | None:
    """Refuse what is given but is no time with a zone, or, where `now` is given, lies after it."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        return Refusal(rule="instant_is_a_time", field=field, reason="must be a date with time and zone")
    try:
        if value.utcoffset() is None:
            return Refusal(
                rule="instant_has_a_zone", field=field, reason="has no time zone; add one, such as +00:00 or Z"
            )
        value.astimezone(UTC)
    except OverflowError:
        return Refusal(rule="instant_is_a_time", field=field, reason="lies outside the years 1 to 9999")
    except Exception:  # what a time zone of somebody's own, or pandas' NaT, does when asked
        return Refusal(rule="instant_is_a_time", field=field, reason="must be a date with time and zone")
    if now is not None and value > now:
        return Refusal(rule="created_at_is_not_in_the_future", field=field, reason="lies in the future")
    return None


def state(
    *,
    expires_at: datetime,
    restricted_at: datetime | None,
    forgotten_at: datetime | None,
    swept_at: datetime | None,
    now: datetime,
) -> State:
    """Return where a memory stands now; a restriction outlasts the expiry, since it forbids the sweep as well."""
    if forgotten_at is not None:
        return State.FORGOTTEN
    if swept_at is not None:
        return State.SWEPT
    if restricted_at is not None:
        return State.RESTRICTED
    return State.EXPIRED if is_due(expires_at, now=now) else State.LIVE
