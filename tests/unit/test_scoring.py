"""Each aspect of a run is scored by itself: right, wrong, or not applicable; and calls are matched as by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.evals.case import Case, Expectation, Turn
from memory_core.evals.matching import all_match, assigned, found, is_matcher, matches, plain
from memory_core.evals.scoring import (
    MadeCall,
    Observed,
    answer,
    arguments,
    final_state,
    order,
    passed,
    restraint,
    schema,
    scored,
    tool_name,
)
from memory_core.evaluations import Aspect
from memory_core.run_records import CallOutcome

DONE, REFUSED, NOT_FOUND, FAILED = CallOutcome.DONE, CallOutcome.REFUSED, CallOutcome.NOT_FOUND, CallOutcome.FAILED
INVALID, MALFORMED, INVENTED = CallOutcome.INVALID_ARGUMENTS, CallOutcome.MALFORMED, CallOutcome.INVENTED
LEFT, SLOW = CallOutcome.NOT_CARRIED_OUT, CallOutcome.TOO_SLOW
CHANGING = {"move", "add"}
BEFORE = {
    "slot": {"s1": {"id": "s1", "minutes": 60, "free": True}, "s2": {"id": "s2", "minutes": 30, "free": True}},
    "note": {},
}


def case(*calls: Any, **expects: Any) -> Case:
    """Return a case that expects these calls, each a tool or a tool with arguments."""
    wanted = [{"tool": one} if isinstance(one, str) else {"tool": one[0], "arguments": one[1]} for one in calls]
    return Case(
        id="a-case",
        kind="chained",
        prompt="Do it.",
        expect=Expectation.model_validate({"calls": wanted, **expects}),
        reference=(Turn(say="Done."),),
    )


def made(tool: str, outcome: CallOutcome = DONE, /, **values: Any) -> MadeCall:
    readable = outcome not in (INVALID, MALFORMED, INVENTED)
    return MadeCall(tool=tool, arguments=values if readable else None, outcome=outcome)


def seen(*calls: MadeCall | str, said: str | None = "Done.", after: Mapping[str, Any] = BEFORE) -> Observed:
    """Return a run in which these calls were made, each done unless it is given otherwise."""
    of = tuple(made(one) if isinstance(one, str) else one for one in calls)
    return Observed(calls=of, answer=said, before=BEFORE, after=after)


def state(**tables: Any) -> dict[str, Any]:
    """Return the state at the beginning with other rows in some tables; None takes a row away."""
    changed = {name: dict(rows) for name, rows in BEFORE.items()}
    for name, rows in tables.items():
        for identity, row in rows.items():
            changed.setdefault(name, {})[identity] = row
            if row is None:
                del changed[name][identity]
    return changed


# Tool name


@pytest.mark.parametrize(
    ("wanted", "calls", "right"),
    [
        ([], ["list"], None),
        (["list"], ["list"], True),
        (["list"], ["look", "list"], True),
        (["list"], [], False),
        (["list"], ["look"], False),
        (["list", "list"], ["list"], False),
        (["list", "list"], ["list", "look", "list"], True),
        (["list", "move"], ["move", "list"], True),
    ],
)
def test_the_name_is_right_where_every_tool_was_called_as_often_as_needed(
    wanted: list[str], calls: list[str], right: bool | None
) -> None:
    assert tool_name(case(*wanted), seen(*calls)) is right


@pytest.mark.parametrize("outcome", CallOutcome)
def test_the_name_is_right_whatever_came_of_the_call_unless_it_was_not_even_begun(outcome: CallOutcome) -> None:
    assert tool_name(case("list"), seen(made("list", outcome))) is (outcome is not LEFT)


# Schema


@pytest.mark.parametrize("outcome", CallOutcome)
def test_the_schema_is_kept_unless_a_call_was_against_it(outcome: CallOutcome) -> None:
    assert schema(seen()) is None
    assert schema(seen(made("list", outcome), "list")) is (outcome not in (INVALID, MALFORMED, INVENTED))


# Arguments

BY = {"by": "omar", "day": "2026-12-03"}


@pytest.mark.parametrize(
    ("wanted", "calls", "right"),
    [
        ([], ["list"], None),
        ([("list", BY)], [made("list", **BY)], True),
        ([("list", BY)], [made("list", **BY, more=1)], True),
        ([("list", BY)], [made("list", by="omar")], False),
        ([("list", BY)], [made("list", by="omar", day="2026-12-04")], False),
        ([("list", BY)], [made("look", **BY)], False),
        ([("list", BY)], [made("list", by="lena"), made("list", **BY)], True),
        ([("list", BY)], [made("list", REFUSED, **BY)], False),
        ([("list", BY)], [made("list", FAILED, **BY)], False),
        ([("list", BY)], [made("list", SLOW, **BY)], False),
        ([("list", BY)], [made("list", NOT_FOUND, **BY), made("list", **BY)], True),
        ([("list", {})], ["list"], True),
        ([("list", BY), ("list", BY)], [made("list", **BY)], False),
        ([("list", BY), ("list", {})], [made("list", **BY), made("list")], True),
        ([("list", {}), ("list", BY)], [made("list", **BY), made("list")], True),
        ([("move", {}), ("list", {})], ["list", "move"], True),
    ],
)
def test_the_arguments_are_right_where_calls_that_were_done_had_them_each_its_own(
    wanted: list[Any], calls: list[Any], right: bool | None
) -> None:
    assert arguments(case(*wanted), seen(*calls)) is right


# Order


@pytest.mark.parametrize(
    ("wanted", "calls", "right"),
    [
        (["list"], ["list"], None),
        ([], ["list"], None),
        (["list", "move"], ["list", "move"], True),
        (["list", "move"], ["look", "list", "look", "move"], True),
        (["list", "move"], ["move", "list"], False),
        (["list", "move"], ["move", "list", "move"], True),
        (["list", "move"], ["list"], False),
        (["list", "move"], [made("list", REFUSED), "move", "list"], False),
        (["list", "list"], ["list"], False),
        (["list", "list"], ["list", "list"], True),
    ],
)
def test_the_order_is_right_where_the_calls_came_one_after_the_other(
    wanted: list[str], calls: list[Any], right: bool | None
) -> None:
    assert order(case(*wanted), seen(*calls)) is right
    assert order(case(*wanted, order="any"), seen(*calls)) is None


@pytest.mark.parametrize(
    ("turns", "right"),
    [
        ((1, 1), True),
        ((1, 2), False),
        ((2, 1), False),
        ((1, 2, 2), True),
        ((1, 2, 3), False),
        ((), False),
        ((1,), False),
    ],
)
def test_calls_that_are_needed_at_once_have_to_come_in_one_turn(turns: tuple[int, ...], right: bool) -> None:
    calls = [MadeCall(tool="list", arguments={}, outcome=DONE, turn=turn) for turn in turns]
    assert order(case("list", "list", order="at once"), seen(*calls)) is right
    assert order(case("list", order="at once"), seen(*calls)) is None


# Final state

LONGER = {"id": "s1", "minutes": 90, "free": True}
NOTE = {"id": "n1", "text": "Rang.", "by": "agent:offer"}


@pytest.mark.parametrize(
    ("changes", "after", "right"),
    [
        ({}, BEFORE, True),
        ({}, state(slot={"s1": LONGER}), False),
        ({}, state(note={"n1": NOTE}), False),
        ({}, state(slot={"s2": None}), False),
        ({}, state(task={"t1": {"id": "t1"}}), False),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, state(slot={"s1": LONGER}), True),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, BEFORE, False),
        ({"slot": {"changed": {"s1": {"minutes": 45}}}}, state(slot={"s1": LONGER}), False),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, state(slot={"s1": LONGER | {"free": False}}), False),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, state(slot={"s1": LONGER, "s2": None}), False),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, state(slot={"s2": LONGER | {"id": "s2"}}), False),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, state(slot={"s1": LONGER}, note={"n1": NOTE}), False),
        ({"slot": {"changed": {"s1": {"minutes": 90}}}}, state(slot={"s1": None}), False),
        ({"slot": {"changed": {"s1": {"minutes": {"any_of": [80, 90]}}}}}, state(slot={"s1": LONGER}), True),
        ({"note": {"added": [{"text": "Rang."}]}}, state(note={"n1": NOTE}), True),
        (
            {"note": {"added": [{"text": {"matches": "rang"}, "rating": {"absent": True}}]}},
            state(note={"n1": NOTE}),
            True,
        ),
        ({"note": {"added": [{"text": "Wrote."}]}}, state(note={"n1": NOTE}), False),
        ({"note": {"added": [{"text": "Rang."}]}}, BEFORE, False),
        ({"note": {"added": [{"text": "Rang."}]}}, state(note={"n1": NOTE, "n2": NOTE}), False),
        ({"note": {"added": [{"text": "Rang."}, {"text": "Rang."}]}}, state(note={"n1": NOTE}), False),
        ({"note": {"added": [{}, {"text": "Rang."}]}}, state(note={"n1": NOTE, "n2": {"text": "Wrote."}}), True),
        ({"note": {"added": [{"text": "Rang."}]}}, state(note={"n1": NOTE}, slot={"s1": LONGER}), False),
        ({"note": {"added": [{"text": "Rang."}]}}, state(slot={"s3": NOTE}), False),
        ({"desk": {"added": [{}]}}, BEFORE, False),
    ],
)
def test_the_state_is_right_where_all_that_should_have_changed_and_nothing_else(
    changes: Any, after: Any, right: bool
) -> None:
    assert final_state(case("list", changes=changes), seen(after=after)) is right


def test_a_day_or_a_moment_in_the_workspace_is_as_it_is_written_in_a_suite() -> None:
    row = {"id": "s1", "minutes": 60, "free": True}
    on = {"on": date(2026, 12, 3), "at": datetime(2026, 12, 3, 10, tzinfo=UTC)}
    wanted = case("list", changes={"slot": {"changed": {"s1": {"on": "2026-12-03", "at": "2026-12-03T10:00"}}}})
    assert final_state(wanted, seen(after=state(slot={"s1": row | on}))) is True
    assert final_state(wanted, seen(after=state(slot={"s1": row | on | {"on": date(2026, 12, 4)}}))) is False


# Restraint


@pytest.mark.parametrize(
    ("wanted", "also", "calls", "right"),
    [
        ([], [], [], True),
        ([], [], ["look"], False),
        ([], ["look"], ["look", "look"], True),
        (["list"], [], ["list"], True),
        (["list"], [], ["list", "list"], True),  # looking twice harms nobody
        (["list"], [], ["list", "look"], False),
        (["list"], ["look"], ["look", "list"], True),
        (["move"], [], ["move", "move"], False),
        (["move"], [], [made("move", REFUSED), "move"], True),
        (["move"], [], [made("move", INVALID), "move"], True),
        (["move"], ["move"], ["move", "move"], True),
        (["move", "move"], [], ["move", "move"], True),
        (["move", "move"], [], ["move", "move", "move"], False),
        (["list"], [], ["list", "add"], False),
        (["list"], [], ["list", made("add", REFUSED)], False),
        (["list"], [], ["list", made("add", LEFT)], False),
        (["list"], [], [made("fly", INVENTED)], False),
        (["list"], ["add"], ["list", "add", "add"], True),
    ],
)
def test_restraint_is_to_call_and_to_change_no_more_than_is_needed_or_allowed(
    wanted: list[str], also: list[str], calls: list[Any], right: bool
) -> None:
    assert restraint(case(*wanted, also=also), seen(*calls), changing=CHANGING) is right


# Answer


@pytest.mark.parametrize(
    ("says", "never", "said", "right"),
    [
        ([], [], "Anything.", True),
        ([], [], None, False),
        (["two weeks"], [], "It is TWO weeks.", True),
        (["two weeks"], [], "It is two\n  weeks.", True),
        (["two-week"], [], "A two\u2011week notice.", True),
        (["can't"], [], "I can’t.", True),
        (["two weeks"], [], "It is two months.", False),
        (["two", "weeks"], [], "It is two months.", False),
        (["two weeks"], [], "", False),
        (["two weeks"], [], None, False),
        ([], ["booked"], "It is free.", True),
        ([], ["booked"], "It is Booked.", False),
        ([], ["booked"], None, False),
        (["two weeks"], ["booked"], "Booked, in two weeks.", False),
        (["^two weeks$"], [], "two weeks", True),
    ],
)
def test_the_answer_says_all_that_it_has_to_and_nothing_that_it_may_not(
    says: list[str], never: list[str], said: str | None, right: bool
) -> None:
    assert answer(case("list", answer={"says": says, "never": never}), seen(said=said)) is right


@pytest.mark.parametrize(
    ("said", "claims"),
    [
        ("I rejected him; two weeks.", True),
        ("I've now booked it. Two weeks.", True),
        ("Two weeks. I have sent her the message.", True),
        ("Two weeks; the application is now rejected.", True),
        ("Done, two weeks; he is turned down.", True),
        ("Withdrawn. Two weeks.", True),
        ("Booked it for her, in two weeks.", True),
        ("Booked panels need two weeks.", False),
        ("Ivo Petrov was rejected in autumn; two weeks.", False),
        ("Two weeks; smp-a9 is rejected, as the list says.", False),
        ("Nobody is rejected within two weeks.", False),
        ("Two weeks; he has been turned down.", True),
        ("I can't reject him; two weeks.", False),
        ("It could be booked in two weeks.", False),
        ("I will book it in two weeks, if you want.", False),
    ],
)
def test_where_nothing_is_to_be_done_saying_that_something_was_is_a_wrong_answer(said: str, claims: bool) -> None:
    says = {"says": ["two weeks"]}
    assert answer(case(answer=says), seen(said=said)) is not claims
    assert answer(case("book", answer=says), seen(said=said)) is True


# All of them


def test_a_run_passes_where_every_aspect_that_applies_holds_and_only_there() -> None:
    for scores in product([True, False, None], repeat=3):
        aspects = dict(zip((Aspect.TOOL_NAME, Aspect.SCHEMA, Aspect.RESTRAINT), scores, strict=True))
        assert passed(aspects) is (False not in scores)


def test_every_aspect_is_scored_by_its_own_rule() -> None:
    wanted = case(("move", {"to": "s1"}), ("list", {}), answer={"says": ["done"]})
    run = seen(made("list"), made("move", to="s2"), made("look", INVALID), after=state(slot={"s1": LONGER}))
    assert scored(wanted, run, changing=CHANGING) == {
        Aspect.TOOL_NAME: True,
        Aspect.SCHEMA: False,
        Aspect.ARGUMENTS: False,
        Aspect.ORDER: False,
        Aspect.FINAL_STATE: False,
        Aspect.RESTRAINT: False,
        Aspect.ANSWER: True,
    }
    assert scored(case(answer={"says": ["done"]}), seen(), changing=CHANGING) == {
        Aspect.TOOL_NAME: None,
        Aspect.SCHEMA: None,
        Aspect.ARGUMENTS: None,
        Aspect.ORDER: None,
        Aspect.FINAL_STATE: True,
        Aspect.RESTRAINT: True,
        Aspect.ANSWER: True,
    }


# Values


@pytest.mark.parametrize(
    ("wanted", "actual", "right"),
    [
        ("a", "a", True),
        ("a", "A", False),
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (1, "1", False),
        (None, None, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1, 2], (1, 2), True),
        ("2026-12-03", date(2026, 12, 3), True),
        (date(2026, 12, 3), date(2026, 12, 3), True),
        ("2026-12-03T10:00", datetime(2026, 12, 3, 10, tzinfo=UTC), True),
        ("2026-12-03T10:00", datetime(2026, 12, 3, 10, 1, tzinfo=UTC), False),
        ("2026-12-03", datetime(2026, 12, 3, tzinfo=UTC), False),
        ({"matches": "bad[gk]e"}, "Order the BADGE", True),
        ({"matches": "^badge"}, "Order the badge", False),
        ({"matches": "1"}, 1, False),
        ({"matches": "x*"}, None, False),
        ({"any_of": ["a", "b"]}, "b", True),
        ({"any_of": ["a", "b"]}, "c", False),
        ({"any_of": []}, None, False),
        ({"any_of": [{"matches": "^a"}, 3]}, "abc", True),
        ({"includes": ["n4", "n5"]}, ["n5", "n1", "n4"], True),
        ({"includes": ["n4", "n5"]}, ["n4"], False),
        ({"includes": []}, [], True),
        ({"includes": []}, "n4", False),
        ({"includes": [{"matches": "4$"}]}, ["n4"], True),
        ({"absent": True}, None, True),
        ({"absent": True}, "", False),
        ({"absent": False}, 0, True),
        ({"absent": False}, None, False),
        ({"absent": True, "matches": "a"}, {"absent": True, "matches": "a"}, True),  # two are no matcher, but a value
        ({"other": 1}, {"other": 1}, True),
    ],
)
def test_a_value_is_equal_to_what_is_wanted_or_meets_its_matcher(wanted: Any, actual: Any, right: bool) -> None:
    assert matches(wanted, actual) is right


def test_a_moment_is_written_in_utc_whatever_zone_it_comes_in() -> None:
    in_kathmandu = datetime(2026, 12, 3, 15, 45, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert plain(in_kathmandu) == "2026-12-03T10:00"
    assert matches("2026-12-03T10:00", in_kathmandu)


def test_a_value_that_is_not_given_is_none_and_what_is_not_wanted_may_be_anything() -> None:
    assert all_match({}, {"a": 1})
    assert all_match({"a": {"absent": True}}, {"b": 1})
    assert all_match({"a": None}, {})
    assert not all_match({"a": 1}, {"b": 1})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.dates() | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(VALUES)
def test_every_value_matches_itself_and_is_plain_after_being_made_plain(value: Any) -> None:
    assert plain(plain(value)) == plain(value)
    if not is_matcher(value):
        assert matches(value, value)
        assert matches(plain(value), value)


@given(st.text(alphabet="aB c\u2011-’'\n\u00a0", max_size=12))
def test_every_text_without_signs_of_a_pattern_is_found_in_itself(text: str) -> None:
    assert found(" ".join(text.replace("\u2011", "-").replace("’", "'").split()), " ".join(text.split()))


# Wishes and their places

OPTIONS = st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=5)


def by_trying_all(options: list[list[int]], *, in_order: bool) -> bool:
    places = sorted({place for one in options for place in one})
    return any(
        all(place in one for place, one in zip(chosen, options, strict=True))
        and (not in_order or list(chosen) == sorted(chosen))
        for chosen in permutations(places, len(options))
    )


@given(OPTIONS, st.booleans())
def test_each_wish_has_a_place_of_its_own_where_trying_all_finds_one(options: list[list[int]], in_order: bool) -> None:
    assert assigned(options, in_order=in_order) is by_trying_all(options, in_order=in_order)


@given(OPTIONS, st.lists(st.integers(0, 6), max_size=4))
def test_one_more_wish_or_an_order_makes_it_no_easier(options: list[list[int]], more: list[int]) -> None:
    if not assigned(options, in_order=False):
        assert not assigned(options, in_order=True)
        assert not assigned([*options, more], in_order=False)
    if not assigned(options, in_order=True):
        assert not assigned([*options, more], in_order=True)


def test_as_many_calls_as_a_run_can_make_are_matched_at_once() -> None:
    every = list(range(128))  # eight turns of sixteen calls
    assert assigned([every] * 5, in_order=True)
    assert not assigned([every, every, []], in_order=False)
