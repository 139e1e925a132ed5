"""A prompt is counted before it is sent: not below what a server counted by much, and to the token at its limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import RECORDED

from memory_core.gateway.conversation import Message, Role, Tool, ToolCall
from memory_core.gateway.prompt_size import does_not_fit, malformed, output_cap, prompt_tokens, was_cut

CUT = {"chat_num_ctx_truncation_one_long_message", "v1_chat_long_prompt_over_default_ctx"}
# Of these a zero or negative context left three tokens.
NO_CONTEXT = {"chat_num_ctx_zero", "chat_num_ctx_negative"}


def message(said: dict[str, Any]) -> Message:
    calls = []
    for called in said.get("tool_calls", ()):
        function = called["function"]
        arguments = function["arguments"]
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(ToolCall(id="call_1", name=function["name"], arguments={}, written=written))
    content = said["content"]
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    role = {"developer": "system"}.get(said["role"], said["role"])
    return Message(role=Role(role), content=content or "", tool_calls=tuple(calls))


def counted() -> list[Any]:
    """Return each recorded chat of which the server says how many tokens its prompt was: name, prompt, tools, count."""
    found = []
    for path in sorted(Path(RECORDED).glob("*chat*.json")) + sorted(Path(RECORDED).glob("queue*.json")):
        exchange = json.loads(path.read_text())
        asked, response = exchange["request"]["body"], exchange["response"]
        if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list) or response["status"] != 200:
            continue
        if "lines" in response:
            ends = [json.loads(line.removeprefix("data: ")) for line in response["lines"] if "{" in line]
        else:
            ends = [response["body"]]
        tokens = next((end["prompt_eval_count"] for end in ends if "prompt_eval_count" in end), None) or next(
            (end["usage"]["prompt_tokens"] for end in ends if end.get("usage")), None
        )
        if tokens is None or path.stem in CUT | NO_CONTEXT:
            continue
        tools = [Tool(**tool["function"]) for tool in asked.get("tools", ())]
        found.append(pytest.param([message(said) for said in asked["messages"]], tools, tokens, id=path.stem))
    return found


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"there are no recorded exchanges in {RECORDED}")
def test_most_recorded_chats_say_how_many_tokens_their_prompt_was() -> None:
    assert len(counted()) > 40


@pytest.mark.parametrize(("messages", "tools", "tokens"), counted())
def test_an_estimate_is_no_less_than_nine_tenths_of_what_a_server_counted(
    messages: list[Message], tools: list[Tool], tokens: int
) -> None:
    assert prompt_tokens(messages, tools) >= 0.9 * tokens
    assert not was_cut(tokens, estimated=prompt_tokens(messages, tools))


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"there are no recorded exchanges in {RECORDED}")
@pytest.mark.parametrize("name", sorted(CUT))
def test_a_prompt_that_a_server_cut_is_told_by_its_count(name: str) -> None:
    exchange = json.loads((RECORDED / f"{name}.json").read_text())
    body = exchange["response"]["body"]
    tokens = body["prompt_eval_count"] if "prompt_eval_count" in body else body["usage"]["prompt_tokens"]
    estimated = prompt_tokens([message(said) for said in exchange["request"]["body"]["messages"]])
    assert was_cut(tokens, estimated=estimated)


def said(text: str) -> list[Message]:
    return [Message(role=Role.USER, content=text)]


@given(text=st.text(max_size=200), more=st.text(max_size=200))
def test_another_message_only_adds(text: str, more: str) -> None:
    one = prompt_tokens(said(text))
    assert prompt_tokens(said(text) + said(more)) > one > 0


def test_all_that_is_sent_is_counted() -> None:
    plain = prompt_tokens(said("x"))
    call = ToolCall(id="a", name="add", arguments={}, written='{"x": "%s"}' % ("word " * 100))
    assert prompt_tokens([*said("x"), Message(role=Role.ASSISTANT, tool_calls=(call,))]) > plain + 90
    tool = Tool(name="add", description="word " * 100, parameters={"properties": {"x": {"description": "word " * 100}}})
    assert prompt_tokens(said("x"), [tool]) > plain + 180


@given(tokens=st.integers(0, 100_000))
def test_a_prompt_fits_when_at_least_one_token_is_left_for_the_answer(tokens: int) -> None:
    assert does_not_fit(tokens, context_tokens=None) is None
    assert does_not_fit(tokens, context_tokens=tokens + 1) is None
    refused = does_not_fit(tokens, context_tokens=tokens)
    assert refused
    assert "MODEL_NUM_CTX" in refused
    assert f"{tokens:,}" in refused


@given(
    wanted=st.integers(1, 100_000),
    tokens=st.integers(1, 50_000),
    context=st.none() | st.integers(1, 60_000),
    minute=st.none() | st.integers(1, 60_000),
)
def test_an_answer_is_capped_by_what_is_wanted_and_by_what_is_left(
    wanted: int, tokens: int, context: int | None, minute: int | None
) -> None:
    cap = output_cap(wanted, prompt_tokens=tokens, context_tokens=context, tokens_per_minute=minute)
    assert 1 <= cap <= wanted
    for limit in (context, minute):
        if limit is not None and limit > tokens:
            assert tokens + cap <= limit
    if all(limit is None or limit - tokens >= wanted for limit in (context, minute)):
        assert cap == wanted


@pytest.mark.parametrize(
    ("reported", "estimated", "cut"),
    [(None, 5000, False), (0, 5000, False), (130, 1900, True), (2050, 6500, True), (900, 1000, False), (15, 60, False)],
)
def test_a_prompt_counts_as_cut_where_far_fewer_tokens_were_read(
    reported: int | None, estimated: int, cut: bool
) -> None:
    assert was_cut(reported, estimated=estimated) is cut


@given(text=st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_any_text_without_nul_and_half_pairs_can_be_sent(text: str) -> None:
    assert malformed(said(text), ()) is None


@given(before=st.text(), bad=st.sampled_from(["\x00", "\ud800", "\udfff"]), after=st.text())
def test_a_nul_or_half_a_pair_is_told_by_the_number_of_its_message(before: str, bad: str, after: str) -> None:
    wrong = malformed([*said("x"), *said(before + bad + after)], ())
    assert wrong
    assert "message 2" in wrong


def test_counting_raises_for_nothing_that_a_tool_may_be_given() -> None:
    for parameters in ({"enum": {1}}, {"x": object()}):
        tool = Tool(name="x", description="", parameters=parameters)
        assert prompt_tokens(said("x"), [tool]) > 0  # that it is no JSON is for `malformed` to say
        assert malformed(said("x"), [tool])
