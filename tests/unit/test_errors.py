from __future__ import annotations

import inspect
import re

import pytest

from memory_core import MemoryCoreError, OnHold, Refused, errors
from memory_core.errors import LineRefused, Refusal

ERRORS = {name: one for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, BaseException)}
NOT_NOW = {"NotNow", "RateLimited", "ModelBusy", "ModelUnavailable"}
RETRYABLE = {"DatabaseUnavailable", "DatabaseBusy", "EmbedderUnavailable", "EmbedderTimeout", *NOT_NOW}
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


def test_the_drawing_marks_the_errors_that_can_be_tried_again_each_with_what_is_below_it() -> None:
    parents = drawn()
    lines = (errors.__doc__ or "").splitlines()
    marked = {line.lstrip("│├└─ ").split(" ")[0] for line in lines if line.endswith("(retryable)")}

    def is_marked(name: str | None) -> bool:
        return name is not None and (name in marked or is_marked(parents[name]))

    assert {name for name in parents if is_marked(name)} == RETRYABLE
    assert not {name for name in marked if is_marked(parents[name])}, "marked twice"


CODES = {
    "ModelNotConfigured": "gateway.not_configured",
    "InvalidRequest": "gateway.invalid_request",
    "Unauthorized": "gateway.unauthorized",
    "RateLimited": "gateway.rate_limited",
    "ModelBusy": "gateway.busy",
    "ModelUnavailable": "gateway.unavailable",
    "DeadlineExceeded": "gateway.deadline",
    "CallCancelled": "gateway.cancelled",
}


def test_every_error_of_the_gateway_that_can_be_raised_has_the_code_that_its_record_keeps() -> None:
    codes = {name: vars(one)["code"] for name, one in ERRORS.items() if "code" in vars(one)}
    assert codes == CODES
    of_the_gateway = {name for name, one in ERRORS.items() if issubclass(one, errors.GatewayError)}
    assert of_the_gateway == CODES.keys() | {"GatewayError", "NotNow"}


def test_the_drawing_says_the_code_of_every_error_of_the_gateway() -> None:
    lines = (errors.__doc__ or "").splitlines()
    said = {name: re.search(r"gateway\.[a-z_]+", line) for line in lines for name in CODES if f" {name} " in line}
    assert {name: found and found.group() for name, found in said.items()} == CODES


@pytest.mark.parametrize("name", sorted(NOT_NOW - {"NotNow"}))
def test_an_error_of_now_says_when_to_try_again_where_that_is_known(name: str) -> None:
    assert ERRORS[name]("full", retry_after_s=1.5).retry_after_s == 1.5
    unknown = ERRORS[name]("full")
    assert unknown.retry_after_s is None
    assert str(unknown) == "full"


def test_a_model_that_is_not_configured_says_which_variable_and_which_command() -> None:
    said = str(errors.ModelNotConfigured())
    assert "MODEL_API_KEY" in said
    assert "python -m memory_core doctor" in said
    assert "\n" not in said


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
