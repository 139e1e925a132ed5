from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_core.errors import Refusal
from memory_core.rights import Pause
from memory_core.rules.deadlines import (
    Clock,
    Deadline,
    Pace,
    deadline,
    extension_refusal,
    months_after,
    next_working_day,
    pause_refusal,
    received_refusal,
    resume_refusal,
    review_refusal,
)
from memory_core.rules.jurisdiction import Jurisdiction

# Worked out by hand, from printed calendars and published lists of holidays: where, received, due.
ONE_MONTH = [
    # England: Christmas, New Year, Easter, bank holidays
    ("GB-ENG", "2024-11-25", "2024-12-27"),  # Christmas Day and Boxing Day
    ("GB-ENG", "2024-11-26", "2024-12-27"),
    ("GB-ENG", "2024-11-27", "2024-12-27"),
    ("GB-ENG", "2024-11-28", "2024-12-30"),  # a Saturday
    ("GB-ENG", "2024-12-01", "2025-01-02"),  # New Year's Day
    ("GB-ENG", "2021-11-25", "2021-12-29"),  # Christmas on a Saturday, kept on Monday and Tuesday
    ("GB-ENG", "2022-11-25", "2022-12-28"),  # Christmas on a Sunday
    ("GB-ENG", "2026-11-26", "2026-12-29"),  # Boxing Day on a Saturday
    ("GB-ENG", "2021-12-01", "2022-01-04"),  # New Year's Day on a Saturday
    ("GB-ENG", "2022-12-01", "2023-01-03"),  # … and on a Sunday
    ("GB-ENG", "2024-02-29", "2024-04-02"),  # Good Friday to Easter Monday
    ("GB-ENG", "2025-03-18", "2025-04-22"),
    ("GB-ENG", "2024-07-26", "2024-08-27"),  # the last Monday of August
    ("GB-ENG", "2022-05-02", "2022-06-06"),  # the jubilee: Thursday and Friday
    ("GB-ENG", "2022-08-19", "2022-09-20"),  # the Queen's funeral
    ("GB-ENG", "2023-04-08", "2023-05-09"),  # the coronation
    ("GB-WLS", "2024-04-06", "2024-05-07"),
    # month ends and leap years
    ("GB-ENG", "2023-01-31", "2023-02-28"),
    ("GB-ENG", "2024-01-31", "2024-02-29"),
    ("GB-ENG", "2024-01-30", "2024-02-29"),
    ("GB-ENG", "2024-01-29", "2024-02-29"),
    ("GB-ENG", "2024-01-28", "2024-02-28"),
    ("GB-ENG", "2025-01-29", "2025-02-28"),
    ("GB-ENG", "2026-01-31", "2026-03-02"),  # 28 February is a Saturday
    ("GB-ENG", "2025-05-31", "2025-06-30"),
    ("GB-ENG", "2025-02-28", "2025-03-28"),
    ("DE", "2000-01-31", "2000-02-29"),  # a leap year, unlike 2100
    ("DE", "2100-01-31", "2100-03-01"),  # 28 February is a Sunday
    # Scotland, Northern Ireland, and the United Kingdom without a nation
    ("GB-SCT", "2024-11-25", "2024-12-27"),
    ("GB-SCT", "2024-12-01", "2025-01-03"),  # 2 January too
    ("GB-SCT", "2021-12-01", "2022-01-05"),
    ("GB-SCT", "2022-12-01", "2023-01-04"),
    ("GB-SCT", "2024-02-29", "2024-04-01"),  # no Easter Monday
    ("GB-SCT", "2024-07-05", "2024-08-06"),  # the first Monday of August
    ("GB-ENG", "2024-07-05", "2024-08-05"),
    ("GB-SCT", "2024-07-26", "2024-08-26"),
    ("GB-SCT", "2024-10-31", "2024-12-03"),  # Saint Andrew's Day on a Saturday
    ("GB-ENG", "2024-10-31", "2024-12-02"),
    ("GB-NIR", "2024-02-17", "2024-03-19"),  # Saint Patrick's Day on a Sunday
    ("GB-ENG", "2024-02-17", "2024-03-18"),
    ("GB-NIR", "2024-06-12", "2024-07-15"),  # 12 July, a Friday
    ("GB-ENG", "2024-06-12", "2024-07-12"),
    ("GB-NIR", "2025-06-12", "2025-07-15"),  # 12 July on a Saturday
    ("GB-NIR", "2024-02-29", "2024-04-02"),
    ("GB", "2024-11-25", "2024-12-27"),
    ("GB", "2024-02-29", "2024-04-01"),  # Easter Monday is not kept everywhere
    ("GB", "2024-12-01", "2025-01-02"),
    # Germany and its Länder
    ("DE", "2024-11-24", "2024-12-24"),  # Christmas Eve is a working day
    ("DE", "2024-11-25", "2024-12-27"),
    ("DE", "2026-11-25", "2026-12-28"),  # the second day is a Saturday and is not made up for
    ("DE", "2023-11-30", "2024-01-02"),  # Saturday to New Year's Day
    ("DE", "2024-09-03", "2024-10-04"),
    ("DE", "2024-12-06", "2025-01-06"),
    ("DE-BY", "2024-12-06", "2025-01-07"),  # Epiphany
    ("DE", "2024-10-01", "2024-11-01"),
    ("DE-BY", "2024-10-01", "2024-11-04"),  # All Saints, a Friday
    ("DE-BY", "2024-04-30", "2024-05-31"),  # Corpus Christi
    ("DE", "2024-04-30", "2024-05-30"),
    ("DE-SN", "2024-10-20", "2024-11-21"),  # the day of prayer and repentance
    ("DE-BE", "2024-02-08", "2024-03-11"),  # Women's Day, a Friday
    ("DE-BE", "2025-04-08", "2025-05-09"),  # once, eighty years after the war
    ("DE", "2025-04-08", "2025-05-08"),
    # Ireland
    ("IE", "2024-11-25", "2024-12-27"),
    ("IE", "2024-01-05", "2024-02-06"),  # Saint Brigid
    ("IE", "2025-02-17", "2025-03-18"),  # Saint Patrick
    ("IE", "2024-02-17", "2024-03-18"),  # … on a Sunday: the Monday is not off by law
    ("IE", "2024-02-29", "2024-03-29"),  # Good Friday is no public holiday
    ("IE", "2024-09-28", "2024-10-29"),  # the last Monday of October
    # France
    ("FR", "2024-04-08", "2024-05-10"),  # Victory and Ascension, Wednesday and Thursday
    ("FR", "2025-06-14", "2025-07-15"),
    ("FR", "2024-06-14", "2024-07-15"),  # 14 July on a Sunday
    ("FR", "2024-07-15", "2024-08-16"),
    ("FR", "2024-10-11", "2024-11-12"),
    ("FR", "2024-11-26", "2024-12-26"),
    ("FR-6AE", "2024-11-26", "2024-12-27"),  # Saint Stephen in Alsace
    ("FR", "2024-02-29", "2024-03-29"),
    ("FR-57", "2024-02-29", "2024-04-02"),  # Good Friday in Moselle
    # elsewhere
    ("AT", "2024-09-26", "2024-10-28"),
    ("BE", "2024-06-21", "2024-07-22"),
    ("DK", "2024-03-26", "2024-04-26"),
    ("IS", "2024-05-17", "2024-06-18"),
    ("IT", "2024-03-25", "2024-04-26"),
    ("LI", "2024-07-15", "2024-08-16"),
    ("NO", "2024-04-17", "2024-05-21"),  # 17 May, the weekend, Whit Monday
    ("PL", "2024-04-03", "2024-05-06"),
    ("RO", "2024-04-03", "2024-05-07"),  # Orthodox Good Friday to Easter Monday
    ("SE", "2024-05-06", "2024-06-07"),
]
THREE_MONTHS = [
    ("GB-ENG", "2024-11-25", "2025-02-25"),
    ("GB-ENG", "2024-11-30", "2025-02-28"),
    ("GB-ENG", "2023-11-30", "2024-02-29"),
    ("GB-ENG", "2025-01-18", "2025-04-22"),  # Good Friday to Easter Monday
    ("GB-SCT", "2025-01-18", "2025-04-21"),
    ("GB-ENG", "2025-09-25", "2025-12-29"),  # Thursday to Sunday
    ("GB-ENG", "2026-01-31", "2026-04-30"),  # not two months after 2 March, when it was due
    ("DE", "2025-07-03", "2025-10-06"),
    ("FR", "2025-02-01", "2025-05-02"),
]
# Received in England on 3 March 2025, so due on 3 April without a pause: since, until, due.
PAUSED = [
    ([("03-10", "03-17")], "04-10"),
    ([("03-10", "03-25")], "04-22"),  # 18 April, Good Friday
    ([("03-10", "03-12"), ("03-20", "03-22")], "04-07"),
    ([("03-20", "03-22"), ("03-10", "03-12")], "04-07"),  # in whatever order
    ([("03-10", "03-12"), ("03-12", "03-14")], "04-07"),  # one upon the other
    ([("03-10", "03-17"), ("03-12", "03-20")], "04-14"),  # ten days, not fifteen
    ([("03-12", "03-20"), ("03-10", "03-17")], "04-14"),
    ([("03-10", "03-20"), ("03-12", "03-14")], "04-14"),  # one within the other
    ([("03-10", "03-17"), ("03-10", "03-17")], "04-10"),  # the same twice
    ([("03-10", "03-10")], "04-03"),  # of no length
    ([("03-17", "03-10")], "04-03"),  # backwards
    ([("02-10", "02-20")], "04-03"),  # before the start
    ([("02-24", "03-06")], "04-07"),  # three days of it after the start
    ([("04-03", "04-04")], "04-04"),  # on the last day
    ([("04-04", "05-04")], "04-03"),  # overdue by then
    ([("03-10", "03-17"), ("04-08", "04-10")], "04-14"),  # the second within the time that the first gave
]

LONG_AGO, FAR = date(1900, 1, 1), date(9990, 12, 31)
ENGLAND = Jurisdiction("GB-ENG").is_working_day
TODAY = date(2025, 3, 20)
CLOCK = Clock(received_on=date(2025, 3, 3))
OPEN = Pause(since=date(2025, 3, 10), until=None)
WAITING = replace(CLOCK, identity_asked_on=date(2025, 3, 4))

everywhere = st.sampled_from(["GB", "GB-ENG", "GB-SCT", "GB-NIR", "DE", "DE-BY", "IE", "FR", "NO", "RO"]).map(
    Jurisdiction
)
any_day = st.dates(LONG_AGO, FAR)
lately = st.dates(date(2015, 1, 1), date(2045, 12, 31))
starts = any_day | lately
spans = st.tuples(st.integers(-60, 200), st.integers(-5, 90))
no_exception = hypothesis_settings(deadline=None)


def day(text: str) -> date:
    return date.fromisoformat(text)


def pause(since: str, until: str | None) -> Pause:
    return Pause(since=day(f"2025-{since}"), until=None if until is None else day(f"2025-{until}"))


def pauses_from(start: date, lengths: list[tuple[int, int]]) -> tuple[Pause, ...]:
    return tuple(
        Pause(since=start + timedelta(days=after), until=start + timedelta(days=after + length))
        for after, length in lengths
    )


def due(clock: Clock, where: Jurisdiction, *, today: date | None = None) -> date:
    found = deadline(clock, is_working_day=where.is_working_day, today=today or clock.received_on).due_on
    assert found is not None
    return found


def in_england(clock: Clock, *, today: date = TODAY) -> Deadline:
    return deadline(clock, is_working_day=ENGLAND, today=today)


def rule(refusal: Refusal | None) -> tuple[str, str] | None:
    return None if refusal is None else (refusal.rule, refusal.field)


@pytest.mark.parametrize(("where", "received", "expected"), ONE_MONTH)
def test_an_answer_is_due_a_month_after_receipt_or_on_the_next_working_day(
    where: str, received: str, expected: str
) -> None:
    assert due(Clock(received_on=day(received)), Jurisdiction(where)) == day(expected)


@pytest.mark.parametrize(("where", "received", "expected"), THREE_MONTHS)
def test_an_extension_adds_two_months_to_the_start_and_not_to_the_due_day(
    where: str, received: str, expected: str
) -> None:
    assert due(Clock(received_on=day(received), extended=True), Jurisdiction(where)) == day(expected)


@pytest.mark.parametrize(("spans", "expected"), PAUSED)
def test_the_days_of_the_pauses_are_added_once_before_it_moves_to_a_working_day(
    spans: list[tuple[str, str]], expected: str
) -> None:
    paused = replace(CLOCK, pauses=tuple(pause(*span) for span in spans))
    assert in_england(paused).due_on == day(f"2025-{expected}")
    assert in_england(paused, today=day("2025-06-01")).due_on == day(f"2025-{expected}")


@pytest.mark.parametrize(
    ("start", "months", "expected"),
    [
        ("2024-01-31", 1, "2024-02-29"),
        ("2023-01-31", 1, "2023-02-28"),
        ("2024-02-29", 12, "2025-02-28"),
        ("2024-12-31", 2, "2025-02-28"),
        ("2024-10-31", 3, "2025-01-31"),
        ("2024-08-31", 0, "2024-08-31"),
        ("2024-03-31", -1, "2024-02-29"),
        ("2024-01-15", -1, "2023-12-15"),
        ("1900-01-31", 1, "1900-02-28"),
        ("9999-11-30", 1, "9999-12-30"),
        ("9999-12-01", 1, "9999-12-31"),  # the last day there is
        ("0001-01-15", -1, "0001-01-01"),
    ],
)
def test_a_month_later_is_the_same_number_or_the_last_day_of_the_month(start: str, months: int, expected: str) -> None:
    assert months_after(day(start), months) == day(expected)


def test_the_next_working_day_is_the_day_itself_if_work_is_done_on_it() -> None:
    assert next_working_day(day("2024-12-24"), is_working_day=ENGLAND) == day("2024-12-24")
    assert next_working_day(day("2024-12-25"), is_working_day=ENGLAND) == day("2024-12-27")


def test_where_no_working_day_follows_the_last_day_there_is_will_do() -> None:
    assert next_working_day(date.max - timedelta(days=3), is_working_day=lambda _: False) == date.max


def test_the_clock_waits_for_an_identity_that_was_asked_for() -> None:
    assert in_england(WAITING) == Deadline(
        starts_on=None, due_on=None, pace=Pace.WAITING, days_left=None, extend_by=None
    )
    assert in_england(replace(WAITING, pauses=(OPEN,), extended=True)).pace is Pace.WAITING


def test_the_month_runs_from_the_day_the_identity_was_confirmed() -> None:
    found = in_england(replace(WAITING, identity_confirmed_on=day("2025-03-18")))
    assert (found.starts_on, found.due_on) == (day("2025-03-18"), day("2025-04-22"))


def test_the_month_runs_from_receipt_where_nobody_asked_for_the_identity() -> None:
    assert in_england(replace(CLOCK, identity_confirmed_on=day("2025-03-18"))).starts_on == CLOCK.received_on


def test_the_month_never_begins_before_receipt() -> None:
    early = replace(WAITING, identity_confirmed_on=day("2025-01-01"))
    assert in_england(early).starts_on == CLOCK.received_on


@pytest.mark.parametrize(
    ("today", "pace", "days_left"),
    [
        ("2025-03-03", Pace.RUNNING, 31),
        ("2025-03-26", Pace.RUNNING, 8),
        ("2025-03-27", Pace.DUE_SOON, 7),
        ("2025-04-03", Pace.DUE_SOON, 0),
        ("2025-04-04", Pace.OVERDUE, -1),
        ("2026-04-03", Pace.OVERDUE, -365),
    ],
)
def test_it_is_due_soon_in_the_last_seven_days_and_overdue_once_the_due_day_is_over(
    today: str, pace: Pace, days_left: int
) -> None:
    found = in_england(CLOCK, today=day(today))
    assert (found.pace, found.days_left, found.due_on) == (pace, days_left, day("2025-04-03"))
    assert found.extend_by == (None if pace is Pace.OVERDUE else day("2025-04-03"))


def test_while_a_pause_stands_it_is_due_when_it_would_be_if_the_clock_went_on_today() -> None:
    paused = replace(CLOCK, pauses=(OPEN,))
    found = in_england(paused)
    assert (found.due_on, found.pace, found.days_left, found.extend_by) == (day("2025-04-14"), Pace.PAUSED, 25, None)
    went_on = replace(CLOCK, pauses=(replace(OPEN, until=TODAY),))
    assert in_england(went_on).due_on == found.due_on
    assert in_england(paused, today=day("2025-03-01")).due_on == day("2025-04-03")  # it has yet to begin


def test_a_pause_that_begins_when_it_is_overdue_hides_nothing() -> None:
    late = replace(CLOCK, pauses=(pause("04-04", None),))
    found = in_england(late, today=day("2025-04-10"))
    assert (found.pace, found.due_on, found.days_left) == (Pace.OVERDUE, day("2025-04-03"), -7)


def test_an_extended_request_cannot_be_extended_by_any_day() -> None:
    assert in_england(replace(CLOCK, extended=True)).extend_by is None


@given(everywhere, starts, st.booleans(), st.lists(spans, max_size=4))
@no_exception
def test_a_due_day_is_a_working_day_and_never_before_the_end_of_the_month(
    where: Jurisdiction, start: date, extended: bool, lengths: list[tuple[int, int]]
) -> None:
    clock = Clock(received_on=start, extended=extended, pauses=pauses_from(start, lengths))
    found = due(clock, where)
    assert where.is_working_day(found)
    assert found >= months_after(start, 3 if extended else 1)


@given(everywhere, starts)
@no_exception
def test_nobody_gets_more_than_the_weekend_and_the_holidays_on_top_of_the_month(
    where: Jurisdiction, start: date
) -> None:
    end, found = months_after(start, 1), due(Clock(received_on=start), where)
    between = [end + timedelta(days=after) for after in range((found - end).days)]
    assert not any(where.is_working_day(each) for each in between)
    assert len(between) <= 5


@given(everywhere, starts, st.integers(0, 400), st.booleans())
@no_exception
def test_who_asks_later_is_never_answered_earlier(where: Jurisdiction, start: date, after: int, extended: bool) -> None:
    earlier = Clock(received_on=start, extended=extended)
    assert due(earlier, where) <= due(replace(earlier, received_on=start + timedelta(days=after)), where)


@pytest.mark.parametrize("where", ["GB-ENG", "DE", "FR"])
def test_a_due_day_never_goes_back_from_one_day_to_the_next_over_the_year_boundaries(where: str) -> None:
    begin = date(2019, 10, 1)
    dues = [due(Clock(received_on=begin + timedelta(days=n)), Jurisdiction(where)) for n in range(9 * 366)]
    assert all(earlier <= later for earlier, later in pairwise(dues))
    assert {found.year for found in dues} == set(range(2019, 2029))


@given(everywhere, starts, st.lists(spans, max_size=3))
@no_exception
def test_an_extension_is_never_earlier(where: Jurisdiction, start: date, lengths: list[tuple[int, int]]) -> None:
    clock = Clock(received_on=start, pauses=pauses_from(start, lengths))
    assert due(replace(clock, extended=True), where) > due(clock, where)


@given(everywhere, starts, st.booleans(), st.lists(spans, max_size=3), spans)
@no_exception
def test_one_more_pause_never_makes_it_earlier(
    where: Jurisdiction, start: date, extended: bool, lengths: list[tuple[int, int]], more: tuple[int, int]
) -> None:
    clock = Clock(received_on=start, extended=extended, pauses=pauses_from(start, lengths))
    longer = replace(clock, pauses=pauses_from(start, [*lengths, more]))
    assert due(clock, where) <= due(longer, where)


@given(everywhere, starts, st.integers(0, 28), st.integers(0, 90))
@no_exception
def test_pausing_some_days_adds_exactly_as_many_to_the_end_of_the_month(
    where: Jurisdiction, start: date, after: int, length: int
) -> None:
    clock = Clock(received_on=start, pauses=pauses_from(start, [(after, length)]))
    end = months_after(start, 1) + timedelta(days=length)
    assert due(clock, where) == next_working_day(end, is_working_day=where.is_working_day)


@given(everywhere, starts, st.lists(spans, min_size=1, max_size=4))
@no_exception
def test_a_pause_told_twice_counts_once(where: Jurisdiction, start: date, lengths: list[tuple[int, int]]) -> None:
    clock = Clock(received_on=start, pauses=pauses_from(start, lengths))
    assert due(clock, where) == due(replace(clock, pauses=clock.pauses * 2), where)


@given(everywhere, starts, st.booleans(), st.lists(spans, max_size=3), any_day, any_day)
@no_exception
def test_today_changes_the_pace_and_never_the_due_day(
    where: Jurisdiction, start: date, extended: bool, lengths: list[tuple[int, int]], today: date, other: date
) -> None:
    clock = Clock(received_on=start, extended=extended, pauses=pauses_from(start, lengths))
    found = deadline(clock, is_working_day=where.is_working_day, today=today)
    assert due(clock, where, today=other) == found.due_on
    assert found.starts_on == start
    assert found.days_left is not None
    assert (found.pace is Pace.OVERDUE) == (found.days_left < 0)
    assert (found.pace is Pace.DUE_SOON) == (0 <= found.days_left <= 7)


@given(
    everywhere,
    st.dates(),
    st.none() | st.dates(),
    st.none() | st.dates(),
    st.booleans(),
    st.lists(st.builds(Pause, since=st.dates(), until=st.none() | st.dates()), max_size=3).map(tuple),
    st.dates(),
)
@no_exception
def test_no_dates_whatever_make_it_fail(
    where: Jurisdiction,
    received_on: date,
    asked: date | None,
    confirmed: date | None,
    extended: bool,
    pauses: tuple[Pause, ...],
    today: date,
) -> None:
    clock = Clock(
        received_on=received_on,
        identity_asked_on=asked,
        identity_confirmed_on=confirmed,
        extended=extended,
        pauses=pauses,
    )
    found = deadline(clock, is_working_day=where.is_working_day, today=today)
    assert (found.due_on is None) == (found.pace is Pace.WAITING)
    extension_refusal(clock, reason="complex", is_working_day=where.is_working_day, today=today)
    pause_refusal(clock, today=today, is_working_day=where.is_working_day)
    resume_refusal(clock, today=today)
    received_refusal(received_on, today=today)
    review_refusal(confirmed, today=today)


@given(everywhere, starts, st.integers(0, 120), st.booleans())
@no_exception
def test_an_extension_is_allowed_exactly_until_the_day_the_deadline_names(
    where: Jurisdiction, start: date, after: int, extended: bool
) -> None:
    clock, today = Clock(received_on=start, extended=extended), start + timedelta(days=after)
    extend_by = deadline(clock, is_working_day=where.is_working_day, today=today).extend_by
    refusal = extension_refusal(clock, reason="many requests", is_working_day=where.is_working_day, today=today)
    assert (refusal is None) == (extend_by is not None)
    assert extend_by is None or today <= extend_by


@pytest.mark.parametrize(
    ("clock", "today", "reason", "expected"),
    [
        (CLOCK, "2025-04-03", "complex", None),
        (CLOCK, "2025-04-04", "complex", ("extension_within_the_first_month", "extension")),
        (replace(CLOCK, extended=True), "2025-03-20", "complex", ("extended_once", "extension")),
        (WAITING, "2025-03-20", "complex", ("extension_of_a_running_clock", "extension")),
        (replace(CLOCK, pauses=(OPEN,)), "2025-03-20", "complex", ("extension_of_a_running_clock", "extension")),
        (CLOCK, "2025-03-20", " ", ("reason_is_given", "reason")),
        (CLOCK, "2025-03-20", None, ("reason_is_given", "reason")),
        (CLOCK, "2025-03-20", "x" * 501, ("reason_length", "reason")),
    ],
)
def test_an_extension_is_decided_once_in_the_first_month_with_a_reason_while_the_clock_runs(
    clock: Clock, today: str, reason: object, expected: tuple[str, str] | None
) -> None:
    assert rule(extension_refusal(clock, reason=reason, is_working_day=ENGLAND, today=day(today))) == expected


def test_a_late_extension_is_told_when_it_was_due() -> None:
    refusal = extension_refusal(CLOCK, reason="complex", is_working_day=ENGLAND, today=day("2025-05-01"))
    assert refusal is not None
    assert "2025-04-03" in refusal.reason


@pytest.mark.parametrize(
    ("clock", "today", "expected"),
    [
        (CLOCK, "2025-03-20", None),
        (replace(CLOCK, pauses=(pause("03-10", "03-12"),)), "2025-03-20", None),
        (WAITING, "2025-03-20", ("pause_of_a_running_clock", "pause")),
        (replace(CLOCK, pauses=(OPEN,)), "2025-03-20", ("paused_once_at_a_time", "pause")),
        (CLOCK, "2025-04-03", None),
        (CLOCK, "2025-04-04", ("pause_before_the_request_is_overdue", "pause")),
    ],
)
def test_only_a_running_clock_is_paused(clock: Clock, today: str, expected: tuple[str, str] | None) -> None:
    assert rule(pause_refusal(clock, today=day(today), is_working_day=ENGLAND)) == expected


def test_without_a_calendar_nobody_can_say_that_a_pause_comes_too_late() -> None:
    assert pause_refusal(CLOCK, today=day("2025-04-04")) is None


@pytest.mark.parametrize(
    ("pauses", "today", "expected"),
    [
        ((OPEN,), "2025-03-20", None),
        ((OPEN,), "2025-03-10", None),
        ((), "2025-03-20", ("resumed_after_a_pause", "pause")),
        ((pause("03-10", "03-12"),), "2025-03-20", ("resumed_after_a_pause", "pause")),
        ((OPEN,), "2025-03-09", ("pause_ends_after_it_began", "pause")),
    ],
)
def test_only_a_paused_clock_goes_on(pauses: tuple[Pause, ...], today: str, expected: tuple[str, str] | None) -> None:
    assert rule(resume_refusal(replace(CLOCK, pauses=pauses), today=day(today))) == expected


@pytest.mark.parametrize(
    ("received_on", "expected"),
    [
        (TODAY, None),
        (day("2015-03-20"), None),
        (day("2015-03-19"), "received_on_within_ten_years"),
        (date.min, "received_on_within_ten_years"),
        (day("2025-03-21"), "received_on_is_not_in_the_future"),
        (date.max, "received_on_is_not_in_the_future"),
        (datetime(2025, 3, 3, 9), "received_on_is_a_date"),
        ("2025-03-03", "received_on_is_a_date"),
        (None, "received_on_is_a_date"),
        (20250303, "received_on_is_a_date"),
    ],
)
def test_a_request_came_in_on_a_plain_date_of_the_last_ten_years(received_on: object, expected: str | None) -> None:
    refusal = received_refusal(received_on, today=TODAY)
    assert rule(refusal) == (None if expected is None else (expected, "received_on"))


@pytest.mark.parametrize(
    ("review_on", "expected"),
    [
        (None, None),
        (TODAY, None),
        (day("2035-03-20"), None),
        (day("2035-03-21"), "review_on_within_ten_years"),
        (date.max, "review_on_within_ten_years"),
        (day("2025-03-19"), "review_on_is_not_past"),
        (datetime(2026, 3, 3, 9), "review_on_is_a_date"),
        ("2026-03-03", "review_on_is_a_date"),
        (True, "review_on_is_a_date"),
    ],
)
def test_a_review_is_on_a_plain_date_of_the_next_ten_years_or_not_at_all(
    review_on: object, expected: str | None
) -> None:
    refusal = review_refusal(review_on, today=TODAY)
    assert rule(refusal) == (None if expected is None else (expected, "review_on"))


def test_the_last_and_the_first_days_there_are_refuse_nothing_that_is_right() -> None:
    assert review_refusal(date.max, today=date.max - timedelta(days=1)) is None
    assert received_refusal(date.min, today=date(5, 1, 1)) is None


def test_a_deadline_beyond_the_last_day_there_is_is_that_day() -> None:
    late = Clock(received_on=date(9999, 11, 15), pauses=(Pause(since=date(9999, 11, 16), until=date(9999, 12, 30)),))
    assert in_england(late, today=date(9999, 12, 1)).due_on == date.max
    assert in_england(Clock(received_on=date(9999, 12, 15)), today=date(9999, 12, 20)).due_on == date.max
