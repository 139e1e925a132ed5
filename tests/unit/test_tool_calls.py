"""Tool calls are put together from whatever a model wrote; what cannot be carried out says why, and nothing raises."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core.gateway.conversation import Message, Role, ToolCall, ToolCallFault, ToolCallPiece
from memory_core.gateway.prompt_size import malformed
from memory_core.gateway.tool_calls import ToolCallPieces, calls_in_text

OFFERED = {"get_weather", "add"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab`{}\"\\ é", max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
ARGUMENTS = st.dictionaries(st.sampled_from(["city", "unit", "{", "```"]), VALUES, max_size=3)


def put_together(*pieces: ToolCallPiece, offered: set[str] = OFFERED) -> tuple[ToolCall, ...]:
    parts = ToolCallPieces()
    for piece in pieces:
        parts.add(piece)
    return parts.calls(offered)


def one(written: str, name: str = "get_weather") -> ToolCall:
    (call,) = put_together(ToolCallPiece(name=name, arguments=written))
    return call


def in_text(answer: str, offered: set[str] = OFFERED) -> tuple[ToolCall, ...]:
    return calls_in_text(answer, offered)


def as_text(name: str, arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def with_x(written: str) -> str:
    return f'{{"name": "add", "arguments": {{"x": {written}}}}}'


# In pieces


@given(arguments=ARGUMENTS, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_a_call_in_pieces_is_the_call_whole(arguments: dict[str, Any], cuts: list[int]) -> None:
    written = json.dumps(arguments)
    at = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    pieces = [ToolCallPiece(place=0, id="call_a", name="get_weather")]
    pieces += [ToolCallPiece(place=0, arguments=written[begin:end]) for begin, end in pairwise(at)]
    (call,) = put_together(*pieces)
    assert (call.id, call.name, call.written, call.fault) == ("call_a", "get_weather", written, None)
    assert call.arguments == arguments


@given(data=st.data(), count=st.integers(1, 4))
def test_pieces_of_several_calls_may_come_in_any_order_of_calls(data: st.DataObject, count: int) -> None:
    written = [json.dumps({"city": f"{number}" * 5}) for number in range(count)]
    left = [[ToolCallPiece(place=n, id=f"call_{n}", name="get_weather")] for n in range(count)]
    for number, text in enumerate(written):
        left[number] += [ToolCallPiece(place=number, arguments=character) for character in text]
    pieces = []
    # The beginnings come in order, as servers send them.
    for queue in left:
        pieces.append(queue.pop(0))
    while any(left):
        queue = data.draw(st.sampled_from([queue for queue in left if queue]))
        pieces.append(queue.pop(0))
    calls = put_together(*pieces)
    assert [call.written for call in calls] == written
    assert [call.id for call in calls] == [f"call_{number}" for number in range(count)]


def test_calls_without_a_place_are_whole_and_apart() -> None:
    calls = put_together(*[ToolCallPiece(name="get_weather", arguments='{"city": "Paris"}')] * 3)
    assert [call.arguments for call in calls] == [{"city": "Paris"}] * 3


def test_another_id_at_the_same_place_is_another_call() -> None:
    calls = put_together(
        ToolCallPiece(place=0, id="a", name="add", arguments="{}"),
        ToolCallPiece(place=0, id="b", name="add", arguments='{"x": 1}'),
    )
    assert [(call.id, call.arguments) for call in calls] == [("a", {}), ("b", {"x": 1})]


def test_a_name_or_an_id_that_comes_late_is_the_calls() -> None:
    (call,) = put_together(
        ToolCallPiece(place=0, arguments='{"x"'), ToolCallPiece(place=0, id="a", name="add", arguments=": 1}")
    )
    assert (call.id, call.name, call.arguments) == ("a", "add", {"x": 1})


@given(ids=st.lists(st.none() | st.sampled_from(["", "call_1", "call_2", "call_1_2", "call_3", "x"]), max_size=8))
def test_every_call_has_an_id_of_its_own(ids: list[str | None]) -> None:
    calls = put_together(*[ToolCallPiece(id=identity, name="add", arguments="{}") for identity in ids])
    assert len(calls) == len(ids)
    assert all(call.id for call in calls)
    assert len({call.id for call in calls}) == len(ids)
    seen: set[str] = set()
    for call, given_id in zip(calls, ids, strict=True):
        if given_id and given_id not in {one.id for one in calls if one is not call} and given_id not in seen:
            assert call.id == given_id
        seen.add(call.id)


def test_nothing_is_no_call() -> None:
    assert put_together() == ()


# Arguments


@pytest.mark.parametrize("written", ["", " ", "\n", "{}"])
def test_no_arguments_are_an_empty_object(written: str) -> None:
    assert (one(written).arguments, one(written).fault) == ({}, None)


@pytest.mark.parametrize(
    "written",
    [
        "{",
        "Paris",
        "{'city': 'Paris'}",
        '{"x": NaN}',
        '{"x": Infinity}',
        '{"x": -Infinity}',
        '{"x": 1e999}',
        '{"x": -1e999}',
        '{"x": [1e400]}',
        '{"x": %s}' % ("9" * 5000),
        '{"x": "\\ud800"}',
        '{"\\udfff": 1}',
        "[" * 100_000,
        '{"x": ' + "[" * 100_000 + "1" + "]" * 100_000 + "}",
        "{}{}",
        '{"x": 1} trailing',
        "\x00",
    ],
    ids=lambda written: written[:20],
)
def test_arguments_that_cannot_be_sent_on_as_json_are_a_fault(written: str) -> None:
    call = one(written)
    assert call.fault is ToolCallFault.ARGUMENTS_NOT_JSON
    assert call.arguments is None
    assert call.written == written


@pytest.mark.parametrize("written", ["[]", "1", '"Paris"', "null", "true", '[{"city": "Paris"}]'])
def test_arguments_that_are_no_object_are_a_fault(written: str) -> None:
    assert (one(written).fault, one(written).arguments) == (ToolCallFault.ARGUMENTS_NOT_AN_OBJECT, None)


def test_a_tool_that_was_not_offered_is_a_fault_whatever_its_arguments() -> None:
    for written in ("{}", "{", "[]"):
        assert one(written, "delete_all").fault is ToolCallFault.UNKNOWN_TOOL


@given(written=st.text(), name=st.text())
@example('{"a": "\ud800"}', "add")
@example("{}", "\ud800")
def test_whatever_is_written_is_a_call_with_or_without_a_fault(written: str, name: str) -> None:
    call = one(written, name)
    assert (call.fault is None) <= isinstance(call.arguments, dict)
    assert call.written == written
    if call.fault is None:
        json.dumps(call.arguments, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("name", ["\ud800", "a\x00b"])
def test_a_call_whose_name_cannot_be_sent_on_is_refused_with_its_conversation(name: str) -> None:
    said = Message(role=Role.ASSISTANT, tool_calls=(one("{}", name),))
    assert malformed([Message(role=Role.USER, content="x"), said], ())


# In the answer's text


def test_json_of_a_name_and_its_arguments_is_a_call() -> None:
    (call,) = in_text('{"name": "get_weather", "arguments": {"city": "Paris"}}')
    assert (call.name, call.arguments, call.fault, call.in_text) == ("get_weather", {"city": "Paris"}, None, True)
    assert call.id


@pytest.mark.parametrize("key", ["arguments", "parameters"])
@pytest.mark.parametrize(
    "wrapping",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```",
        "```JSON {}```",
        "<tool_call>\n{}\n</tool_call>",
        "<TOOL_CALL>{}</TOOL_CALL>",
        "\n\n{}\n",
        "[{}]",
        "```json\n[{}]\n```",
        "<tool_call>```json\n{}```</tool_call>",
        "<tool_call>{}",
    ],
)
def test_a_call_may_be_wrapped(wrapping: str, key: str) -> None:
    (call,) = in_text(wrapping.replace("{}", json.dumps({"name": "add", key: {"x": 1}})))
    assert (call.name, call.arguments, call.fault) == ("add", {"x": 1}, None)


@pytest.mark.parametrize("between", ["", "\n", " ", "</tool_call>\n<tool_call>", "\n```\n```json\n"])
def test_several_calls_may_follow_each_other(between: str) -> None:
    calls = in_text(between.join([as_text("add", {"x": 1}), as_text("get_weather", {}), as_text("add", {"x": 1})]))
    assert [(call.name, call.arguments) for call in calls] == [
        ("add", {"x": 1}),
        ("get_weather", {}),
        ("add", {"x": 1}),
    ]
    assert len({call.id for call in calls}) == 3


@given(arguments=ARGUMENTS, wrapping=st.sampled_from(["{}", "```json\n{}\n```", "<tool_call>{}</tool_call>", " {}"]))
@example({"city": '```json\n{"name": "add"}\n```'}, "```json\n{}\n```")
@example({"city": '</tool_call>}}{{"\\'}, "<tool_call>{}</tool_call>")
def test_braces_quotes_and_fences_within_a_string_end_nothing(arguments: dict[str, Any], wrapping: str) -> None:
    (call,) = in_text(wrapping.replace("{}", as_text("get_weather", arguments)))
    assert (call.arguments, call.fault) == (arguments, None)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Sunny.",
        "{}",
        "[]",
        "[[]]",
        "1",
        '{"name": "John", "age": 45}',
        '{"name": "add"}',
        '{"name": "add", "arguments": "x"}',
        '{"name": "add", "arguments": null}',
        '{"name": 1, "arguments": {}}',
        '{"name": "add", "arguments": {}, "why": "because"}',
        '{"name": "add", "arguments": {}} is what I would call',
        'I call {"name": "add", "arguments": {}}',
        '{"name": "add", "arguments": {}}\n{"response": "18 C"}',
        '[{"name": "add", "arguments": {}}, 1]',
        '{"name": "add", "arguments": {}',
        '{"name": "add", "arguments": {"x": NaN}}',
        '{"name": "add", "arguments": {"x": %s}}' % ("9" * 5000),
        '{"name": "add", "arguments": {"x": %s}}' % ("[" * 100_000),
        '{"name": "add", "arguments": ' + '{"x":' * 100_000 + "1" + "}" * 100_001,
        "```json",
        "<tool_call></tool_call>",
        "`" * 10_000,
        " " * 100_000 + "x",
    ],
    ids=lambda answer: answer[:30] or "nothing",
)
def test_any_other_answer_is_an_answer(answer: str) -> None:
    assert in_text(answer) == ()


@given(answer=st.text() | st.text('{}[]":,nameargutsd `<>/tol_c\\\n0e.', max_size=80))
def test_no_answer_raises(answer: str) -> None:
    for call in in_text(answer):
        assert call.in_text


@pytest.mark.parametrize("answer", [as_text("add", {}), "[" + as_text("add", {}) + "]"])
def test_where_nothing_was_offered_nothing_is_a_call(answer: str) -> None:
    assert in_text(answer, set()) == ()


def test_an_invented_tool_in_the_text_is_a_call_with_a_fault() -> None:
    (call,) = in_text(as_text("say_hello", {"message": "Hi"}))
    assert (call.name, call.fault) == ("say_hello", ToolCallFault.UNKNOWN_TOOL)


def test_nesting_of_any_depth_is_a_call_or_an_answer() -> None:
    for depth in range(100, 1100):
        for call in in_text(with_x("[" * depth + "]" * depth)):
            assert call.fault in (None, ToolCallFault.ARGUMENTS_NOT_JSON)


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_is_no_json_when_it_is_sent_on_is_a_fault_in_the_text_as_well(number: str) -> None:
    for call in in_text(with_x(number)):
        assert call.fault is ToolCallFault.ARGUMENTS_NOT_JSON
        assert call.arguments is None


def test_half_a_surrogate_pair_in_the_text_is_a_fault() -> None:
    for call in in_text('{"name": "add", "arguments": {"x": "\\ud800"}}'):
        assert call.fault is ToolCallFault.ARGUMENTS_NOT_JSON
        assert call.arguments is None


@given(number=st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_one_that_was_written(number: float) -> None:
    (call,) = in_text(with_x(json.dumps(number)))
    assert call.arguments is not None
    assert call.arguments["x"] == number
    assert math.isfinite(call.arguments["x"]) if isinstance(number, float) else True
