"""Which day it is."""

from __future__ import annotations

import re
from datetime import date, datetime
from zoneinfo import ZoneInfo

from memory_core.errors import Refusal

# What means another time on another machine, or counts leap seconds.
MACHINES_OWN = re.compile(r"(localtime|posixrules|Factory)$|(right|posix)/")


def zone_refusal(name: object) -> Refusal | None:
    """Refuse what is no time zone of the tz database."""
    try:
        usable = isinstance(name, str) and not MACHINES_OWN.match(name) and ZoneInfo(name) is not None
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        usable = False
    if not usable:
        reason = f"{str(name)[:64]!r} is no time zone; use a name such as Europe/Dublin"
        return Refusal(rule="time_zone_is_known", field="time_zone", reason=reason)
    return None


def today_in(zone: str, *, now: datetime) -> date:
    """Return the date at a moment in a time zone."""
    return now.astimezone(ZoneInfo(zone)).date()
