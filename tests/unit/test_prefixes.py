"""How much of a prompt was sent before is told from its beginnings, per model, without keeping a word of it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory_core.gateway.conversation import Message, Request, Role, Tool, ToolCall
from memory_core.gateway.prefixes import SentPrefixes

LONG = "word " * 400


class Sender:
    """Whoever sends; nothing is known of it but that it is itself."""


SENDER = Sender()
TOOL = Tool(name="add", description=LONG, parameters={})


def request(*texts: str, model: str = "m", tools: tuple[Tool, ...] = ()) -> Request:
    return Request(
        model=model,
        messages=tuple(Message(role=Role.USER, content=text) for text in texts),
        tools=tools,
        output_cap=10,
    )


def test_of_the_first_prompt_nothing_is_known() -> None:
    assert SentPrefixes().mostly_known(request("a"), whose=SENDER) is None


def test_the_same_again_is_known() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request("a", "b"), whose=SENDER)
    assert sent.mostly_known(request("a", "b"), whose=SENDER) is True
    assert sent.mostly_known(request("a", "b"), whose=SENDER) is True


def test_a_conversation_that_goes_on_is_known_while_the_most_of_it_was_sent() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG), whose=SENDER)
    assert sent.mostly_known(request(LONG, "and then?"), whose=SENDER) is True
    assert sent.mostly_known(request(LONG, "and then?", LONG * 3), whose=SENDER) is False
    assert sent.mostly_known(request(LONG, "and then?", LONG * 3, "yes"), whose=SENDER) is True


def test_another_beginning_makes_it_all_unknown() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request("a", LONG), whose=SENDER)
    assert sent.mostly_known(request("b", LONG), whose=SENDER) is False


def test_only_the_prompt_that_was_sent_last_counts() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG), whose=SENDER)
    sent.mostly_known(request("something else"), whose=SENDER)
    assert sent.mostly_known(request(LONG), whose=SENDER) is False


def test_models_are_told_apart() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG, model="m"), whose=SENDER)
    assert sent.mostly_known(request(LONG, model="n"), whose=SENDER) is None
    assert sent.mostly_known(request(LONG, model="m"), whose=SENDER) is True


def test_senders_are_told_apart_or_one_could_guess_at_anothers_prompt() -> None:
    sent, other = SentPrefixes(), Sender()
    sent.mostly_known(request(LONG), whose=SENDER)
    assert sent.mostly_known(request(LONG), whose=other) is None
    assert sent.mostly_known(request("something else"), whose=other) is False
    assert sent.mostly_known(request(LONG), whose=SENDER) is True


def test_a_sender_that_is_gone_is_forgotten() -> None:
    sent, gone = SentPrefixes(), Sender()
    sent.mostly_known(request(LONG), whose=gone)
    assert len(sent._last) == 1
    del gone
    assert len(sent._last) == 0


def test_tools_come_before_the_messages() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG), whose=SENDER)
    assert sent.mostly_known(request(LONG, tools=(TOOL,)), whose=SENDER) is False
    assert sent.mostly_known(request(LONG, tools=(TOOL,)), whose=SENDER) is True


def test_a_role_and_a_call_are_part_of_what_is_sent() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG), whose=SENDER)
    one = request(LONG)
    spoken = replace(one.messages[0], role=Role.ASSISTANT)
    assert sent.mostly_known(replace(one, messages=(spoken,)), whose=SENDER) is False
    call = ToolCall(id="a", name="add", arguments={"x": 1}, written='{"x": 1}')
    called = replace(spoken, tool_calls=(call,))
    assert sent.mostly_known(replace(one, messages=(called,)), whose=SENDER) is False


def test_a_memory_blocks_count_changes_nothing_that_is_sent() -> None:
    sent = SentPrefixes()
    sent.mostly_known(request(LONG), whose=SENDER)
    one = request(LONG)
    assert sent.mostly_known(replace(one, messages=(replace(one.messages[0], memory_tokens=7),)), whose=SENDER) is True


@given(texts=st.lists(st.text(), min_size=1, max_size=4), more=st.text())
def test_any_text_is_known_the_second_time_and_never_kept(texts: list[str], more: str) -> None:
    sent = SentPrefixes()
    assert sent.mostly_known(request(*texts), whose=SENDER) is None
    assert sent.mostly_known(request(*texts), whose=SENDER) is True
    marked = f"{more}Zebrafinch"
    sent.mostly_known(request(marked), whose=SENDER)
    kept = [digest for models in sent._last.values() for digests in models.values() for digest in digests]
    assert kept
    assert all(len(digest) == 32 for digest in kept)
