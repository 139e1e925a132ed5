"""The gateway with a real small model, SmolLM2, as llama.cpp serves it with chat completions."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from conftest import SHARED, Database
from llama import Llama, missing, served
from rows import execute

from memory_core.calls import FinishReason
from memory_core.chatting import gateway_for
from memory_core.config import settings
from memory_core.errors import CallCancelled, DeadlineExceeded, InvalidRequest, ModelUnavailable
from memory_core.gateway.conversation import Chunk, ChunkKind, Message, Role, Tool
from memory_core.gateway.gateway import Gateway
from memory_core.gateway.prompt_size import prompt_tokens
from memory_core.gateway.servers import close_servers

pytestmark = pytest.mark.model

TOOL_CALL_TEMPLATE = SHARED / "reference" / "tool_call_template.jinja"
CONTEXT_TOKENS = 2048
STORY = "Write a long story about a lighthouse keeper."  # longer than any cap in here
COLUMNS = (
    "queue_ms",
    "first_chunk_ms",
    "first_answer_ms",
    "total_ms",
    "prompt_tokens",
    "output_tokens",
    "counted_tokens",
    "estimated_tokens",
    "cached",
    "finish_reason",
    "error_code",
    "attempts",
    "tool_calls",
    "tool_calls_in_text",
    "tool_call_faults",
    "prompt_was_cut",
)
OpenGateway = Callable[..., Gateway]


@pytest.fixture(scope="module")
def llama() -> Iterator[Llama]:
    if what := missing():
        pytest.skip(what)
    with served(context_tokens=CONTEXT_TOKENS, slots=4) as llama:
        yield llama


@pytest.fixture(scope="module")
def tool_calling_llama() -> Iterator[Llama]:
    """Serve the model with a chat template under which its server makes it call tools."""
    if what := missing():
        pytest.skip(what)
    if not TOOL_CALL_TEMPLATE.exists():
        pytest.skip(
            "tool_call_template.jinja, the template under which SmolLM2 calls tools, is not beside the checkout"
        )
    with served(context_tokens=CONTEXT_TOKENS, chat_template=TOOL_CALL_TEMPLATE.read_text(encoding="utf-8")) as llama:
        yield llama


@pytest.fixture
def open_gateway(database: Database) -> Iterator[OpenGateway]:
    def opened(url: str, **changes: Any) -> Gateway:
        given = {
            "database_url": database.application.render_as_string(hide_password=False),
            "memory_embedder": "none",
            "model_provider": "openai",
            "model_base_url": url,
            "model_api_key": "any",
            "model_fast": "smollm2",
            "model_balanced": "smollm2",
            "model_deep": "smollm2",
            "model_tokens_per_minute": 1_000_000,
        }
        return gateway_for("acme", settings=settings(**(given | changes)))

    yield opened
    close_servers()


@pytest.fixture
def gateway(open_gateway: OpenGateway, llama: Llama) -> Iterator[Gateway]:
    yield open_gateway(llama.url)
    until_free(llama)


def said(text: str) -> list[Message]:
    return [Message(role=Role.USER, content=text)]


def records(database: Database) -> dict[UUID, dict[str, Any]]:
    """Return every call on record, the earliest first."""
    found = execute(database, f"SELECT call_id, {', '.join(COLUMNS)} FROM model_call ORDER BY started_at")
    return {call_id: dict(zip(COLUMNS, row, strict=True)) for call_id, *row in found}


def the_record(database: Database) -> dict[str, Any]:
    (record,) = records(database).values()
    return record


def asked_directly(llama: Llama, text: str, *, cap: int) -> Any:
    body = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": cap,
        "temperature": 0,
        "seed": 7,
    }
    return llama.ask("/v1/chat/completions", body)


def until_free(llama: Llama, *, limit_s: float = 10) -> None:
    """Wait until nobody is answered any more; fails the test once the limit is over."""
    until = time.monotonic() + limit_s
    while llama.is_busy():
        assert time.monotonic() < until, f"the server still writes after {limit_s:g} s"
        time.sleep(0.02)


# Answers


def test_the_pieces_of_an_answer_add_up_to_the_reply_and_its_moments_come_in_order(
    gateway: Gateway, database: Database
) -> None:
    stream = gateway.stream(said(STORY), run_id="r-1", max_output_tokens=40, temperature=0)
    chunks = list(stream)
    reply = stream.reply
    assert len(chunks) > 20
    assert {chunk.kind for chunk in chunks} == {ChunkKind.ANSWER}
    assert "".join(chunk.text for chunk in chunks) == reply.content
    assert reply.finish_reason is FinishReason.LENGTH
    ((call_id, record),) = records(database).items()
    assert call_id == reply.call_id
    assert 0 <= record["queue_ms"] <= record["first_chunk_ms"] <= record["first_answer_ms"] <= record["total_ms"]
    assert record["first_chunk_ms"] < record["total_ms"]
    assert record["finish_reason"] == "length"
    assert (record["error_code"], record["attempts"], record["prompt_was_cut"]) == (None, 1, False)
    assert record["total_ms"] == pytest.approx(reply.record.total_ms, rel=1e-4)  # kept in single precision


@pytest.mark.parametrize(
    ("text", "cap", "finish"),
    [
        ("Say hello.", 60, FinishReason.STOP),
        (STORY, 60, FinishReason.LENGTH),
        ("Merhaba, “naïve” café: 你好 👩‍💻? Repeat it.", 60, None),
    ],
    ids=["stops by itself", "reaches its cap", "every script"],
)
def test_text_and_usage_are_what_the_server_says_when_asked_directly(
    text: str, cap: int, finish: FinishReason | None, gateway: Gateway, llama: Llama, database: Database
) -> None:
    asked_directly(llama, text, cap=cap)  # or one of the two would find it in the cache and the other not
    direct = asked_directly(llama, text, cap=cap)
    reply = gateway.chat(said(text), run_id="r-1", max_output_tokens=cap, temperature=0, seed=7)
    (choice,), usage = direct["choices"], direct["usage"]
    assert reply.content == choice["message"]["content"]
    assert reply.finish_reason == choice["finish_reason"] == (finish or choice["finish_reason"])
    record = the_record(database)
    assert (record["prompt_tokens"], record["output_tokens"]) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert record["counted_tokens"] == usage["total_tokens"]
    assert record["cached"] is True


def test_a_prompt_that_the_server_reads_for_the_first_time_is_on_record_as_not_cached(
    gateway: Gateway, database: Database
) -> None:
    text = (
        "The zebra finch, the kakapo and the lyrebird were asked who sings best, and none of them would say. Who did?"
    )
    for _ in range(2):
        gateway.chat(said(text), run_id="r-1", max_output_tokens=1)
    assert [record["cached"] for record in records(database).values()] == [False, True]


def test_a_conversation_is_estimated_at_no_less_than_the_server_counts(gateway: Gateway) -> None:
    conversation = [
        Message(role=Role.SYSTEM, content="You answer in one short sentence."),
        Message(role=Role.USER, content="When may the candidate start, after a notice period of two months?"),
        Message(role=Role.ASSISTANT, content="In two months."),
        Message(role=Role.USER, content="And where?"),
    ]
    for messages in (conversation, conversation[:2], conversation[1:2]):
        reply = gateway.chat(messages, run_id="r-1", max_output_tokens=4)
        assert reply.record.prompt_tokens is not None
        assert 1.0 <= prompt_tokens(messages) / reply.record.prompt_tokens < 3


def test_twenty_calls_at_once_are_all_answered_each_with_its_own_usage_and_record(
    gateway: Gateway, llama: Llama, database: Database
) -> None:
    texts = [f"{'Once more: ' * (number % 5)}{STORY} It has {number} rooms." for number in range(20)]
    prompts = [asked_directly(llama, text, cap=1)["usage"]["prompt_tokens"] for text in texts]
    together = threading.Barrier(20)

    def ask(number: int) -> tuple[list[Chunk], Any]:
        together.wait(timeout=30)
        stream = gateway.stream(said(texts[number]), run_id=f"r-{number}", max_output_tokens=5 + number, temperature=0)
        return list(stream), stream.reply

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(20)))
    kept = records(database)
    assert len(kept) == len({reply.call_id for _, reply in answers}) == 20
    for number, (chunks, reply) in enumerate(answers):
        record = kept[reply.call_id]
        assert "".join(chunk.text for chunk in chunks) == reply.content
        assert (record["prompt_tokens"], record["output_tokens"]) == (prompts[number], 5 + number)
        assert (record["finish_reason"], record["error_code"], record["attempts"]) == ("length", None, 1)
        assert record["queue_ms"] <= record["first_chunk_ms"] <= record["total_ms"]
    assert max(record["queue_ms"] for record in kept.values()) > 100  # four at once, so that sixteen had to wait


# Cut short


def test_a_short_deadline_ends_a_long_answer_and_is_on_record(
    gateway: Gateway, llama: Llama, database: Database
) -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded) as late:
        gateway.chat(said(STORY), run_id="r-1", max_output_tokens=1500, deadline_s=1.5)
    took_s = time.monotonic() - began
    assert late.value.code == "gateway.deadline"
    assert 1.5 <= took_s < 2.5
    record = the_record(database)
    assert (record["error_code"], record["finish_reason"]) == ("gateway.deadline", None)
    assert 1500 <= record["total_ms"] < 2500
    assert record["counted_tokens"] > record["estimated_tokens"]  # what it wrote until then was paid for
    until_free(llama)
    assert gateway.chat(said("Say hello."), run_id="r-2", max_output_tokens=5, deadline_s=20).content


def test_a_deadline_ends_a_call_that_waits_for_its_turn(gateway: Gateway, database: Database) -> None:
    streams = [gateway.stream(said(f"{number} {STORY}"), run_id="r-1", max_output_tokens=1500) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(next, streams))  # every turn is taken
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="no turn"):
            gateway.chat(said("Say hello."), run_id="r-2", max_output_tokens=5, deadline_s=0.5)
        assert time.monotonic() - began < 1.5
        for stream in streams:
            stream.close()
    last = list(records(database).values())[-1]
    assert (last["error_code"], last["attempts"], last["counted_tokens"]) == ("gateway.deadline", 0, 0)


def test_another_thread_can_cancel_a_call_and_the_server_is_free_soon_after(
    gateway: Gateway, llama: Llama, database: Database
) -> None:
    stream = gateway.stream(said(STORY), run_id="r-1", max_output_tokens=1500)
    next(stream)
    assert llama.is_busy()
    canceller = threading.Timer(0.2, stream.cancel)
    canceller.start()
    began = time.monotonic()
    with pytest.raises(CallCancelled):
        list(stream)
    assert time.monotonic() - began < 1.2
    canceller.join()
    until_free(llama, limit_s=3)
    assert gateway.chat(said("Say hello."), run_id="r-2", max_output_tokens=5, deadline_s=20).content
    cancelled, answered = records(database).values()
    assert (cancelled["error_code"], answered["error_code"]) == ("gateway.cancelled", None)
    assert cancelled["counted_tokens"] > cancelled["estimated_tokens"]


def test_a_call_is_cancelled_while_the_server_still_reads_its_prompt(
    gateway: Gateway, llama: Llama, database: Database
) -> None:
    long = " ".join(f"The keeper of lighthouse {number} kept a log of every ship." for number in range(60))
    stream = gateway.stream(said(long), run_id="r-1", max_output_tokens=5)
    canceller = threading.Timer(0.5, stream.cancel)
    canceller.start()
    began = time.monotonic()
    with pytest.raises(CallCancelled):
        list(stream)
    assert time.monotonic() - began < 1.5
    canceller.join()
    assert the_record(database)["first_chunk_ms"] is None
    until_free(llama, limit_s=30)  # llama.cpp reads such a prompt to its end before it notices


def test_leaving_a_stream_cancels_its_call_and_the_server_is_free_soon_after(
    gateway: Gateway, llama: Llama, database: Database
) -> None:
    with gateway.stream(said(STORY), run_id="r-1", max_output_tokens=1500) as stream:
        for _ in range(3):
            next(stream)
        assert llama.is_busy()
    until_free(llama, limit_s=3)
    assert the_record(database)["error_code"] == "gateway.cancelled"
    assert gateway.chat(said("Say hello."), run_id="r-2", max_output_tokens=5, deadline_s=20).content


def test_calls_that_are_left_give_their_turns_back(gateway: Gateway, llama: Llama) -> None:
    for number in range(12):  # three times as many as are served at once
        with gateway.stream(said(f"{STORY} {number}"), run_id="r-1", max_output_tokens=1500, deadline_s=30) as stream:
            next(stream)
    until_free(llama)
    assert gateway.chat(said("Say hello."), run_id="r-2", max_output_tokens=5, deadline_s=20).content


# Refused


def test_nothing_at_an_address_is_an_unavailable_model_on_record(open_gateway: OpenGateway, database: Database) -> None:
    with socket.socket() as nobody:  # bound, and nobody listens
        nobody.bind(("127.0.0.1", 0))
        gateway = open_gateway(f"http://127.0.0.1:{nobody.getsockname()[1]}")
        with pytest.raises(ModelUnavailable, match="check MODEL_BASE_URL") as away:
            gateway.chat(said("Say hello."), run_id="r-1", deadline_s=20)
    assert away.value.code == "gateway.unavailable"
    record = the_record(database)
    assert (record["error_code"], record["first_chunk_ms"], record["counted_tokens"]) == (
        "gateway.unavailable",
        None,
        0,
    )
    assert record["attempts"] > 1


def test_a_prompt_that_the_context_cannot_hold_is_refused_before_it_is_sent(
    open_gateway: OpenGateway, llama: Llama, database: Database
) -> None:
    gateway = open_gateway(llama.url, model_num_ctx=CONTEXT_TOKENS)
    read = llama.prompt_tokens_read()
    with pytest.raises(InvalidRequest, match="MODEL_NUM_CTX") as refused:
        gateway.chat(said(f"{STORY} " * 300), run_id="r-1", max_output_tokens=5)
    assert refused.value.code == "gateway.invalid_request"
    assert not llama.is_busy()
    assert llama.prompt_tokens_read() == read
    record = the_record(database)
    assert (record["error_code"], record["attempts"]) == ("gateway.invalid_request", 0)
    assert record["counted_tokens"] == 0


def test_a_prompt_that_only_the_server_knows_to_be_too_long_is_an_invalid_request(
    open_gateway: OpenGateway, llama: Llama, database: Database
) -> None:
    with pytest.raises(InvalidRequest, match="does not fit the context"):
        open_gateway(llama.url).chat(said(f"{STORY} " * 300), run_id="r-1", max_output_tokens=5)
    assert the_record(database)["attempts"] == 1


def test_an_answer_may_use_what_the_prompt_leaves_of_the_context_and_no_more(
    open_gateway: OpenGateway, llama: Llama
) -> None:
    messages = said(STORY)
    room = 30
    gateway = open_gateway(llama.url, model_num_ctx=prompt_tokens(messages) + room)
    reply = gateway.chat(messages, run_id="r-1", max_output_tokens=1500, temperature=0)
    assert (reply.finish_reason, reply.record.output_tokens) == (FinishReason.LENGTH, room)


# Tool calls

PLACES = Tool(
    name="find_candidate",
    description="Find a candidate by name.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string"}, "city": {"type": "string", "enum": ["Berlin", "Hamburg"]}},
        "required": ["name", "city"],
    },
)


def test_a_tool_that_has_to_be_called_is_called_and_its_result_answered(
    open_gateway: OpenGateway, tool_calling_llama: Llama, database: Database
) -> None:
    gateway = open_gateway(tool_calling_llama.url)
    asked = said("Find Ada Okafor in Berlin.")
    stream = gateway.stream(asked, run_id="r-1", tools=[PLACES], must_call=True, max_output_tokens=200, temperature=0)
    chunks = list(stream)
    reply = stream.reply
    (call,) = reply.tool_calls
    assert (call.name, call.fault, call.in_text) == ("find_candidate", None, False)
    assert call.id
    assert call.arguments is not None
    assert call.arguments["city"] in ("Berlin", "Hamburg")
    assert isinstance(call.arguments["name"], str)
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert (reply.content, chunks) == ("", [])
    record = the_record(database)
    assert (record["finish_reason"], record["tool_calls"]) == ("tool_calls", 1)
    assert (record["tool_calls_in_text"], record["tool_call_faults"]) == (0, 0)
    assert record["first_chunk_ms"] <= record["first_answer_ms"] <= record["total_ms"]

    result = Message(role=Role.TOOL, content="Ada Okafor can start on 2 November.", answers=call)
    answer = gateway.chat(
        [*asked, reply.message(), result], run_id="r-1", tools=[PLACES], max_output_tokens=40, temperature=0
    )
    assert answer.content
    assert answer.tool_calls == ()


def test_a_tool_call_that_is_cut_off_is_on_record_as_one_that_cannot_be_used(
    open_gateway: OpenGateway, tool_calling_llama: Llama, database: Database
) -> None:
    reply = open_gateway(tool_calling_llama.url).chat(
        said("Find Ada Okafor in Berlin."),
        run_id="r-1",
        tools=[PLACES],
        must_call=True,
        max_output_tokens=12,
        temperature=0,
    )
    assert reply.finish_reason is FinishReason.LENGTH
    assert all(call.fault is not None and call.arguments is None for call in reply.tool_calls)
    record = the_record(database)
    assert record["tool_call_faults"] == record["tool_calls"] == len(reply.tool_calls)
