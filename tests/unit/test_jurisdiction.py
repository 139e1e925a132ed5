from __future__ import annotations

import threading
from dataclasses import FrozenInstanceError
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_core.errors import Refusal, Refused
from memory_core.rules.jurisdiction import COUNTRIES, Jurisdiction, Regime, jurisdiction

EUROPE = [code for code in COUNTRIES if code != "GB"]
REGIONS = [
    "GB-ENG",
    "GB-NIR",
    "GB-SCT",
    "GB-WLS",
    "DE-BY",
    "DE-BE",
    "FR-57",
    "AT-9",
    "ES-MD",
    "NO-03",
    "FI-18",
    "IT-RM",
]
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=12)
any_day = st.dates()


def read(code: object) -> Jurisdiction:
    found = jurisdiction(code)
    assert isinstance(found, Jurisdiction), found
    return found


def refused(code: object) -> Refusal:
    found = jurisdiction(code)
    assert isinstance(found, Refusal), found
    assert found.field == "jurisdiction"
    return found


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("DE", "DE"),
        ("de", "DE"),
        ("  de-by ", "DE-BY"),
        ("De - By", "DE-BY"),
        ("gb-eng", "GB-ENG"),
        ("uk", "GB"),
        ("UK-SCT", "GB-SCT"),
        ("uk - nir", "GB-NIR"),
        ("fr-6ae", "FR-6AE"),
        ("AT-9", "AT-9"),
        ("\tie\n", "IE"),
    ],
)
def test_a_code_is_read_whatever_its_case_and_spaces_and_uk_is_gb(written: str, code: str) -> None:
    assert read(written).code == code


@pytest.mark.parametrize("code", EUROPE)
def test_the_members_of_the_union_and_of_the_economic_area_are_under_the_eu_gdpr(code: str) -> None:
    assert read(code).regime is Regime.EU_GDPR


def test_the_economic_area_is_twenty_seven_members_and_three_more() -> None:
    assert len(EUROPE) == 30
    assert {"IS", "LI", "NO"} < set(EUROPE)


@pytest.mark.parametrize("code", ["GB", "GB-ENG", "GB-NIR", "GB-SCT", "GB-WLS"])
def test_the_united_kingdom_is_under_its_own_gdpr(code: str) -> None:
    assert read(code).regime is Regime.UK_GDPR


def test_a_regime_is_called_as_the_law_is() -> None:
    assert [str(regime) for regime in Regime] == ["EU GDPR", "UK GDPR"]


@pytest.mark.parametrize("code", ["US", "CH", "XX", "us-ca", "ZZ-1"])
def test_a_country_whose_law_is_not_known_is_refused_with_those_that_are(code: str) -> None:
    refusal = refused(code)
    assert refusal.rule == "jurisdiction_has_a_regime"
    assert all(known in refusal.reason for known in (*COUNTRIES, code[:2].upper()))


def test_an_unknown_region_is_refused_with_the_regions_of_the_country() -> None:
    refusal = refused("gb-lnd")
    assert refusal.rule == "jurisdiction_has_the_region"
    assert refusal.reason == "GB has no region LND; give GB alone or one of GB-ENG, GB-NIR, GB-SCT, GB-WLS"


@pytest.mark.parametrize("code", ["BE-VLG", "NL-NH", "IE-D", "PL-MZ"])
def test_a_region_without_a_calendar_is_refused_in_favour_of_the_country(code: str) -> None:
    refusal = refused(code)
    assert refusal.rule == "jurisdiction_has_the_region"
    assert f"give {code[:2]} alone" in refusal.reason


def test_a_citys_calendar_or_a_school_zone_is_no_region() -> None:
    assert refused("NL-NH").reason == "no regions are known of NL; give NL alone"
    assert "Augsburg" not in refused("DE-XX").reason
    assert "Zone" not in refused("FR-XX").reason


@pytest.mark.parametrize(
    "code",
    [None, "", " ", "D", "DEU", "DE-", "-BY", "DE-BAYE", "DE_BY", "Germany", "FR-Zone A", "eſ", "ＤＥ", b"DE", 49, []],
)
def test_what_is_no_code_is_refused(code: object) -> None:
    assert refused(code).rule == "jurisdiction_is_a_code"


@given(any_text | st.none() | st.integers() | st.from_regex(r"[A-Z]{2}(-[A-Z0-9]{1,3})?", fullmatch=True))
@hypothesis_settings(deadline=None)
def test_anything_is_either_read_or_refused_in_one_line(code: object) -> None:
    found = jurisdiction(code)
    if isinstance(found, Jurisdiction):
        assert jurisdiction(found.code) == found
    else:
        assert len(str(found).splitlines()) == 1


@pytest.mark.parametrize("code", ["US", "uk", "UK", " DE", "de", "DE-XX", "", None])
def test_a_jurisdiction_cannot_be_built_wrong(code: str) -> None:
    with pytest.raises(Refused):
        Jurisdiction(code)


def test_a_jurisdiction_is_a_frozen_value() -> None:
    assert Jurisdiction("DE-BY") == read("de-by")
    assert len({Jurisdiction("DE"), read("DE")}) == 1
    with pytest.raises(FrozenInstanceError):
        read("DE").code = "FR"  # type: ignore[misc]


def test_a_code_is_a_country_and_perhaps_a_region() -> None:
    assert (read("DE-BY").country, read("DE-BY").region) == ("DE", "BY")
    assert (read("DE").country, read("DE").region) == ("DE", None)


# As published by gov.uk, the German Länder, citizensinformation.ie, service-public.fr and so on.
DAYS_OFF = [
    ("GB-ENG", "2024-03-29 2024-04-01 2024-05-06 2024-05-27 2024-08-26 2024-12-25 2024-12-26"),
    ("GB-WLS", "2025-01-01 2025-04-18 2025-04-21 2025-05-05 2025-05-26 2025-08-25"),
    ("GB-SCT", "2024-01-02 2024-08-05 2024-12-02 2025-01-02 2025-12-01 2026-01-02"),
    ("GB-NIR", "2024-03-18 2024-07-12 2025-03-17 2025-07-14 2025-08-25"),
    ("GB-ENG", "2022-06-02 2022-06-03 2022-09-19 2023-05-08"),  # jubilee, funeral, coronation
    ("GB-ENG", "2021-12-27 2021-12-28 2022-01-03 2022-12-26 2022-12-27 2023-01-02 2026-12-28 2027-12-27 2027-12-28"),
    ("GB-SCT", "2022-01-03 2022-01-04 2023-01-02 2023-01-03"),
    ("GB", "2022-01-03 2024-03-29 2024-05-06 2024-05-27 2024-12-25 2024-12-26 2027-12-27 2027-12-28"),
    ("DE", "2024-01-01 2024-03-29 2024-04-01 2024-05-01 2024-05-09 2024-05-20 2024-10-03 2024-12-25 2024-12-26"),
    ("DE-BY", "2025-01-06 2024-05-30 2024-11-01"),
    ("DE-BE", "2024-03-08 2025-05-08"),
    ("DE-SN", "2024-10-31 2024-11-20"),
    ("IE", "2024-02-05 2024-05-06 2024-06-03 2024-08-05 2024-10-28 2024-12-26 2025-03-17"),
    ("FR", "2024-04-01 2024-05-01 2024-05-08 2024-05-09 2024-05-20 2024-08-15 2024-11-01 2024-11-11 2025-07-14"),
    ("FR-57", "2024-03-29 2024-12-26"),
    ("IT", "2024-04-25 2024-12-26"),
    ("NO", "2024-03-28 2024-05-17"),
    ("IS", "2024-06-17"),
    ("LI", "2024-08-15"),
    ("RO", "2024-05-03 2024-05-06"),  # Orthodox Easter
]
DAYS_AT_WORK = [
    ("GB-ENG", "2024-01-02 2024-03-18 2024-07-12 2024-08-05 2024-12-02 2024-12-24 2024-12-27 2026-12-29"),
    ("GB-SCT", "2024-04-01 2024-08-26 2025-04-21"),  # no Easter Monday, and a summer holiday of its own
    ("GB-NIR", "2024-01-02 2024-08-05 2024-12-02"),
    ("GB", "2024-01-02 2024-03-18 2024-04-01 2024-07-12 2024-08-05 2024-08-26 2024-12-02"),
    ("DE", "2025-01-06 2024-05-30 2024-11-01 2024-12-24 2024-12-31 2026-12-28"),
    ("DE-BY", "2024-03-08 2024-11-20 2024-10-31"),
    ("FR", "2024-03-29 2024-12-26 2024-07-15"),
    ("IE", "2024-03-18 2024-03-29"),  # in lieu of a Sunday: the employer's to give; Good Friday is no public holiday
    ("DK", "2024-04-26"),  # Great Prayer Day was abolished with the year 2024
    ("HU", "2024-08-19 2024-12-27"),  # days off that a Saturday pays for
]


def days(code: str, text: str) -> list[tuple[str, date]]:
    return [(code, date.fromisoformat(day)) for day in text.split()]


@pytest.mark.parametrize(("code", "day"), [each for row in DAYS_OFF for each in days(*row)])
def test_no_work_is_done_on_a_public_holiday(code: str, day: date) -> None:
    assert day.weekday() < 5
    assert not read(code).is_working_day(day)


@pytest.mark.parametrize(("code", "day"), [each for row in DAYS_AT_WORK for each in days(*row)])
def test_work_is_done_on_what_is_a_holiday_only_elsewhere(code: str, day: date) -> None:
    assert read(code).is_working_day(day)


@given(st.sampled_from([*COUNTRIES, *REGIONS]), any_day)
@hypothesis_settings(deadline=None)
def test_no_work_is_done_on_a_saturday_or_a_sunday_in_any_year(code: str, day: date) -> None:
    working = read(code).is_working_day(day)
    assert not (working and day.isoweekday() in (6, 7))
    if day.year > 2100 or day.year < 1750:
        assert working == (day.isoweekday() < 6)


@given(st.sampled_from(REGIONS), st.dates(date(2000, 1, 1), date(2100, 12, 31)))
@hypothesis_settings(deadline=None)
def test_a_country_without_region_works_whenever_one_of_its_regions_does(region: str, day: date) -> None:
    if read(region).is_working_day(day):
        assert read(region[:2]).is_working_day(day)


def test_every_country_keeps_christmas_in_the_years_that_matter() -> None:
    for code in COUNTRIES:
        for year in range(2016, 2041):
            assert not read(code).is_working_day(date(year, 12, 25)), (code, year)


def test_the_first_and_the_last_day_there_are_can_be_asked_about() -> None:
    assert read("GB-ENG").is_working_day(date.max)  # a Friday
    assert read("DE").is_working_day(date.min)  # a Monday


def test_many_threads_get_the_same_answers() -> None:
    begin = threading.Barrier(8)
    answers: list[tuple[bool, ...]] = []
    asked = [date(2061, 1, 1) + timedelta(days=day) for day in range(365)]

    def ask() -> None:
        here = read("GB-SCT")
        begin.wait(timeout=10)
        answers.append(tuple(here.is_working_day(day) for day in asked))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(answers) == 8
    assert len(set(answers)) == 1
