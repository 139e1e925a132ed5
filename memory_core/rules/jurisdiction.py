"""Where an organisation answers for its data: under which law, on which working days."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache

import holidays

from memory_core.errors import Refusal, Refused

UNITED_KINGDOM = "GB"
# fmt: off
EUROPEAN_UNION = frozenset({
    "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU",
    "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK",
})
# fmt: on
EUROPEAN_ECONOMIC_AREA = EUROPEAN_UNION | {"IS", "LI", "NO"}  # where the GDPR has applied since July 2018
COUNTRIES = (*sorted(EUROPEAN_ECONOMIC_AREA), UNITED_KINGDOM)

CODE = re.compile(r"(?P<country>[A-Z]{2})(-(?P<region>[A-Z0-9]{1,3}))?")
REGION = re.compile(r"[A-Z0-9]{1,3}")  # ISO 3166-2; the library has school zones and cities as well
SWAPPED = "(substituted from "  # how the library labels a day off that a working Saturday pays for


class Regime(StrEnum):
    """Which data protection law applies."""

    EU_GDPR = "EU GDPR"  # Regulation (EU) 2016/679: the member states, Iceland, Liechtenstein and Norway
    UK_GDPR = "UK GDPR"  # the same as retained and since amended in the United Kingdom


@dataclass(frozen=True)
class Jurisdiction:
    """A country or one of its regions, such as DE, DE-BY or GB-ENG.

    `jurisdiction` reads one from what somebody wrote. Raises `Refused` for a code that is not in its one spelling.
    """

    code: str  # ISO 3166-1 alpha-2, or ISO 3166-2

    def __post_init__(self) -> None:
        refusal = _code_refusal(self.code)
        if refusal:
            raise Refused(refusal)

    @property
    def country(self) -> str:
        """The country's code alone."""
        return self.code[:2]

    @property
    def region(self) -> str | None:
        """The region's part of the code: BY of DE-BY."""
        return self.code[3:] or None

    @property
    def regime(self) -> Regime:
        """The law that applies there."""
        return Regime.UK_GDPR if self.country == UNITED_KINGDOM else Regime.EU_GDPR

    def is_working_day(self, day: date) -> bool:
        """Say whether it is neither a Saturday, a Sunday nor a public holiday there.

        In years that the library does not know (after 2100, and before a year that differs by country, 2008 at the
        latest) only Saturdays and Sundays are off: a deadline may then be early, never late.
        """
        return day.weekday() < 5 and day not in _public_holidays(self.country, self.region, day.year)


def jurisdiction(code: object) -> Jurisdiction | Refusal:
    """Read a jurisdiction, forgiving case, spaces and UK for GB, or refuse one whose law or holidays are not known.

    A region of which the library has no calendar is refused as well, since its holidays would be guessed.
    """
    if isinstance(code, str) and code.isascii():
        code = re.sub(r"^UK(?=-|$)", UNITED_KINGDOM, "".join(code.split()).upper())
    refusal = _code_refusal(code)
    return refusal or Jurisdiction(str(code))


def _code_refusal(code: object) -> Refusal | None:
    match = CODE.fullmatch(code) if isinstance(code, str) else None
    if match is None:
        return Refusal(
            rule="jurisdiction_is_a_code",
            field="jurisdiction",
            reason="must be a country such as DE, or one of its regions such as DE-BY or GB-ENG",
        )
    country, region = match["country"], match["region"]
    if country not in COUNTRIES:
        return Refusal(
            rule="jurisdiction_has_a_regime",
            field="jurisdiction",
            reason=f"no data protection law is known here for {country}, only for {', '.join(COUNTRIES)}",
        )
    if region is not None and region not in _regions(country):
        known = ", ".join(f"{country}-{each}" for each in _regions(country))
        return Refusal(
            rule="jurisdiction_has_the_region",
            field="jurisdiction",
            reason=f"{country} has no region {region}; give {country} alone or one of {known}"
            if known
            else f"no regions are known of {country}; give {country} alone",
        )
    return None


@lru_cache
def _regions(country: str) -> tuple[str, ...]:
    return tuple(sorted(filter(REGION.fullmatch, holidays.country_holidays(country).subdivisions)))


@lru_cache(maxsize=4096)
def _public_holidays(country: str, region: str | None, year: int) -> frozenset[date]:
    """Return the year's public holidays, days in lieu included, as the library has them.

    Of a country without region, the library gives those that all its regions share. That is meant: of two days the
    earlier is the safe deadline. So is to work on a day that is merely swapped for a Saturday (Hungary, Latvia), which
    is no public holiday by Regulation 1182/71, Art. 3(4). One calendar for each year, frozen before anybody sees it: the
    library's own grow while they are read, which two threads must not do at once.
    """
    calendar = holidays.country_holidays(country, subdiv=region, years=year, language="en_US")
    return frozenset(day for day, name in calendar.items() if SWAPPED not in name)


def working_days(code: str | None) -> Callable[[date], bool]:
    """Return which days are worked where a code says; without one every weekday is, so that no deadline is too late."""
    return (lambda day: day.weekday() < 5) if code is None else Jurisdiction(code).is_working_day


def law_of(code: str | None) -> Regime:
    """Return the law that applies where a code says; the EU's without one."""
    return Regime.EU_GDPR if code is None else Jurisdiction(code).regime
