"""What is said is of the types that it says, or refused where it is made."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.calls import FinishReason
from memory_core.errors import Refused
from memory_core.gateway.conversation import Ending, Message, Role, Tool, ToolCall

CALL = ToolCall(id="a", name="add", arguments={"x": 1}, written='{"x": 1}')


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("role", "robot"),
        ("role", None),
        ("role", 1),
        ("role", []),
        ("role", "USER"),
        ("content", None),
        ("content", b"hello"),
        ("content", 5),
        ("content", ["hello"]),
        ("content", {"text": "hello"}),
        ("tool_calls", None),
        ("tool_calls", "add"),
        ("tool_calls", CALL),
        ("tool_calls", {"a": CALL}),
        ("tool_calls", [{"id": "a"}]),
        ("tool_calls", (CALL, None)),
        ("answers", "a"),
        ("answers", {"id": "a"}),
        ("answers", [CALL]),
        ("memory_tokens", -1),
        ("memory_tokens", "5"),
        ("memory_tokens", None),
        ("memory_tokens", True),
        ("memory_tokens", 10**400),
        ("memory_tokens", float("nan")),
        ("memory_tokens", 1.5),
    ],
    ids=str,
)
def test_a_message_with_a_value_of_another_type_is_refused(field: str, wrong: object) -> None:
    given: dict[str, Any] = {"role": Role.USER, "content": "hello", field: wrong}
    with pytest.raises(Refused) as refused:
        Message(**given)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", None),
        ("name", 5),
        ("name", b"add"),
        ("description", None),
        ("description", ["adds"]),
        ("parameters", None),
        ("parameters", []),
        ("parameters", "{}"),
    ],
    ids=str,
)
def test_a_tool_with_a_value_of_another_type_is_refused(field: str, wrong: object) -> None:
    given: dict[str, Any] = {"name": "add", "description": "adds", "parameters": {}, field: wrong}
    with pytest.raises(Refused) as refused:
        Tool(**given)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("id", None),
        ("id", 7),
        ("name", None),
        ("name", ["add"]),
        ("written", None),
        ("written", {"x": 1}),
        ("arguments", "{}"),
        ("arguments", []),
        ("arguments", 5),
    ],
    ids=str,
)
def test_a_tool_call_with_a_value_of_another_type_is_refused(field: str, wrong: object) -> None:
    given: dict[str, Any] = {"id": "a", "name": "add", "arguments": {}, "written": "{}", field: wrong}
    with pytest.raises(Refused) as refused:
        ToolCall(**given)
    assert refused.value.field == field


@pytest.mark.parametrize("role", Role)
def test_a_role_may_be_written_as_its_word(role: Role) -> None:
    assert Message(role=role.value, content="x").role is role  # type: ignore[arg-type]


def test_tool_calls_may_come_as_a_list_and_are_kept_as_they_were() -> None:
    calls = [CALL]
    message = Message(role=Role.ASSISTANT, tool_calls=calls)  # type: ignore[arg-type]
    calls.clear()
    assert message.tool_calls == (CALL,)


def test_a_refused_value_is_not_repeated() -> None:
    with pytest.raises(Refused) as refused:
        Message(role="Zebrafinch", content=b"Zebrafinch")  # type: ignore[arg-type]
    assert "Zebrafinch" not in str(refused.value)


@pytest.mark.parametrize("name", ["prompt_tokens", "output_tokens", "cached_tokens"])
@pytest.mark.parametrize("value", ["5", -1, 10**400, float("nan"), float("inf"), True, [], {}, 50.5])
def test_a_count_that_cannot_be_is_not_known(name: str, value: object) -> None:
    assert getattr(Ending(finish_reason=FinishReason.STOP, **{name: value}), name) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["load_ms", "prompt_ms", "generation_ms"])
@pytest.mark.parametrize("value", ["5", -0.1, 10**400, 1e300, float("nan"), float("inf"), True, [], {}])
def test_a_time_that_cannot_be_is_not_known(name: str, value: object) -> None:
    assert getattr(Ending(finish_reason=FinishReason.STOP, **{name: value}), name) is None  # type: ignore[arg-type]
