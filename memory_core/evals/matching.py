"""Whether a value is what a case expects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from memory_core.agents.context import moment_of

LONGEST_READ = 4000
MATCHERS = frozenset({"matches", "any_of", "includes", "absent"})


def plain(value: Any) -> Any:
    """Return a value as it is written in a suite: days and moments as text, in the form in which tools take them."""
    if isinstance(value, datetime):
        return moment_of(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def is_matcher(expected: object) -> bool:
    """Say whether an expectation is no plain value."""
    return isinstance(expected, Mapping) and len(expected) == 1 and expected.keys() <= MATCHERS


def matcher_fault(expected: Any) -> str | None:
    """Say what is wrong with a matcher, or None; a plain value is none."""
    if not isinstance(expected, Mapping):
        return None
    if not is_matcher(expected):
        return f"is neither a plain value nor one of {', '.join(sorted(MATCHERS))}"
    ((kind, wanted),) = expected.items()
    if kind == "matches":
        try:
            re.compile(wanted)
        except (re.error, TypeError):
            return "matches needs a regular expression"
    if kind in ("any_of", "includes") and (not isinstance(wanted, list) or not wanted):
        return f"{kind} needs a list of values"
    if kind == "absent" and not isinstance(wanted, bool):
        return "absent needs true or false"
    return None


def matches(expected: Any, actual: Any) -> bool:
    """Say whether a value is equal to what is expected, or meets its matcher."""
    actual = plain(actual)
    if not is_matcher(expected):
        return type(actual) is type(plain(expected)) and bool(actual == plain(expected))
    ((kind, wanted),) = expected.items()
    if kind == "matches":
        return isinstance(actual, str) and found(wanted, actual)
    if kind == "any_of":
        return any(matches(one, actual) for one in wanted)
    if kind == "includes":
        return isinstance(actual, list) and all(any(matches(one, other) for other in actual) for one in wanted)
    return (actual is None) is bool(wanted)


def all_match(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    """Say whether every value that is expected is there as expected; others may be anything."""
    return all(matches(one, actual.get(name)) for name, one in expected.items())


def found(pattern: str, text: str) -> bool:
    """Say whether a pattern is found in a text; case does not matter, nor what kind of white space or dash it is.

    What stands behind the first 4,000 characters is not read: a pattern may take the square of their number.
    """
    simple = re.sub(r"[\u2010-\u2015]", "-", re.sub(r"\s+", " ", text[:LONGEST_READ].replace("’", "'")))
    return re.search(pattern, simple, re.IGNORECASE) is not None


def assigned(options: Sequence[Sequence[int]], *, in_order: bool) -> bool:
    """Say whether each of some wishes can have one of its places, no place twice, and in order where that is asked for."""

    def rest(number: int, taken: frozenset[int], after: int) -> bool:
        if number == len(options):
            return True
        return any(
            place not in taken and (not in_order or place > after) and rest(number + 1, taken | {place}, place)
            for place in options[number]
        )

    return rest(0, frozenset(), -1)
