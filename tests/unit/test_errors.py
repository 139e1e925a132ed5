from __future__ import annotations

import inspect

import pytest

from memory_core import MemoryCoreError, OnHold, Refused, errors
from memory_core.errors import LineRefused, Refusal

ERRORS = {name: one for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, BaseException)}
RETRYABLE = {"DatabaseUnavailable", "DatabaseBusy", "EmbedderUnavailable", "EmbedderTimeout"}
TEXT_LENGTH = Refusal(rule="text_length", field="text", reason="has 2,001 characters; at most 2,000")


def drawn() -> dict[str, str | None]:
    """Read the tree atop the module: each error's name with its parent's."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        stripped = line.lstrip("│├└─ ")
        name = stripped.split(" ")[0]
        if name in ERRORS:
            depth = (len(line) - len(stripped)) // 4
            path[depth:] = [name]
            parents[name] = path[depth - 1] if depth else None
    return parents


def test_the_tree_that_is_drawn_is_the_tree_there_is() -> None:
    assert drawn() == {
        name: None if one is MemoryCoreError else one.__mro__[1].__name__ for name, one in ERRORS.items()
    }


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_a_memory_core_error_and_says_what_it_means(name: str) -> None:
    assert issubclass(ERRORS[name], MemoryCoreError)
    assert ERRORS[name].__doc__


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_says_whether_trying_again_can_help(name: str) -> None:
    assert ERRORS[name].retryable is (name in RETRYABLE)


def test_the_drawing_marks_exactly_the_errors_that_can_be_tried_again() -> None:
    lines = (errors.__doc__ or "").splitlines()
    marked = {line.lstrip("│├└─ ").split(" ")[0] for line in lines if line.endswith("(retryable)")}
    assert marked == RETRYABLE


def test_a_refusal_carries_its_facts_and_says_them_in_one_line() -> None:
    refused = Refused(TEXT_LENGTH)
    assert (refused.rule, refused.field, refused.reason) == (TEXT_LENGTH.rule, TEXT_LENGTH.field, TEXT_LENGTH.reason)
    assert refused.refusal is TEXT_LENGTH
    assert refused.position is None
    assert str(refused) == "text: has 2,001 characters; at most 2,000 (rule text_length)"


def test_a_refusal_in_bulk_says_which_item_counting_from_one() -> None:
    refused = Refused(TEXT_LENGTH, position=0)
    assert refused.position == 0
    assert str(refused) == "item 1: text: has 2,001 characters; at most 2,000 (rule text_length)"


@pytest.mark.parametrize(
    ("others", "more"), [(0, ""), (1, "; 1 more bad line"), (2, "; 2 more bad lines"), (499, "; 499 more bad lines")]
)
def test_a_refused_line_says_its_number_and_how_many_more_are_bad(others: int, more: str) -> None:
    refused = LineRefused(TEXT_LENGTH, line=500, others=others)
    assert (refused.line, refused.others, refused.rule) == (500, others, "text_length")
    assert str(refused) == f"line 500: {TEXT_LENGTH}{more}; nothing was stored"


def test_a_hold_is_named_with_every_other_one() -> None:
    held_up = OnHold(("claim-7", "court-1"))
    assert held_up.holds == ("claim-7", "court-1")
    assert held_up.rule == "nothing_on_hold_is_forgotten"
    assert "claim-7, court-1" in str(held_up)
    assert len(str(held_up).splitlines()) == 1
    assert not held_up.retryable
