"""How much of a prompt was sent before is told from its beginnings, per model, without keeping a word of it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory_core.gateway.conversation import Message, Request, Role, Tool, ToolCall
from memory_core.gateway.prefixes import SentPrefixes

LONG = "word " * 400
TOOL = Tool(name="add", description=LONG, parameters={})


def request(*texts: str, model: str = "m", tools: tuple[Tool, ...] = ()) -> Request:
    return Request(
        model=model,
        messages=tuple(Message(role=Role.USER, content=text) for text in texts),
        tools=tools,
        output_cap=10,
    )


def test_of_the_first_prompt_nothing_is_known() -> None:
    assert SentPrefixes().mostly_known(request("a")) is None


def test_the_same_again_is_known() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request("a", "b"))
    assert sent.mostly_known(request("a", "b")) is True
    assert sent.mostly_known(request("a", "b")) is True


def test_a_conversation_that_goes_on_is_known_while_the_most_of_it_was_sent() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG))
    assert sent.mostly_known(request(LONG, "and then?")) is True
    assert sent.mostly_known(request(LONG, "and then?", LONG * 3)) is False
    assert sent.mostly_known(request(LONG, "and then?", LONG * 3, "yes")) is True


def test_another_beginning_makes_it_all_unknown() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request("a", LONG))
    assert sent.mostly_known(request("b", LONG)) is False


def test_only_the_prompt_that_was_sent_last_counts() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG))
    sent.mostly_known(request("something else"))
    assert sent.mostly_known(request(LONG)) is False


def test_models_are_told_apart() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG, model="m"))
    assert sent.mostly_known(request(LONG, model="n")) is None
    assert sent.mostly_known(request(LONG, model="m")) is True


def test_tools_come_before_the_messages() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG))
    assert sent.mostly_known(request(LONG, tools=(TOOL,))) is False
    assert sent.mostly_known(request(LONG, tools=(TOOL,))) is True


def test_a_role_and_a_call_are_part_of_what_is_sent() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG))
    one = request(LONG)
    spoken = replace(one.messages[0], role=Role.ASSISTANT)
    assert sent.mostly_known(replace(one, messages=(spoken,))) is False
    call = ToolCall(id="a", name="add", arguments={"x": 1}, written='{"x": 1}')
    assert sent.mostly_known(replace(one, messages=(replace(spoken, tool_calls=(call,)),))) is False


def test_a_memory_blocks_count_changes_nothing_that_is_sent() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG))
    one = request(LONG)
    assert sent.mostly_known(replace(one, messages=(replace(one.messages[0], memory_tokens=7),))) is True


@given(texts=st.lists(st.text(), min_size=1, max_size=4), more=st.text())
def test_any_text_is_known_the_second_time_and_never_kept(texts: list[str], more: str) -> None:
    sent = SentPrefixes()
    assert sent.mostly_known(request(*texts)) is None
    assert sent.mostly_known(request(*texts)) is True
    marked = f"{more}Zebrafinch"
    sent.mostly_known(request(marked))
    assert b"Zebrafinch" not in repr(vars(sent)).encode("utf-8", "surrogatepass")
