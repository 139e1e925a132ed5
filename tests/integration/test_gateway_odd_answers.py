"""Whatever a server puts where something else belongs, its call ends as a gateway's error or an answer, on record."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from conftest import Database
from talking import (
    HOSTED,
    KINDS,
    MODEL,
    NATIVE,
    SHOWS_TOOLS,
    SLACK_S,
    WEATHER,
    Kind,
    Said,
    gateway,
    only_record,
    says,
    serving,
    user,
    without_calls,
)
from wire import Answer, Asked, Handler, Wire, in_turn, lines, refusal

from memory_core.errors import (
    DeadlineExceeded,
    GatewayError,
    InvalidRequest,
    ModelUnavailable,
    RateLimited,
    Unauthorized,
)
from memory_core.gateway.client import client_for
from memory_core.gateway.conversation import Reply, Request
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.prompt_size import prompt_tokens
from memory_core.gateway.queueing import queue_for
from memory_core.gateway.servers import close_servers
from memory_core.gateway.transport import within
from memory_core.prompt.tokens import estimated_tokens

both = pytest.mark.parametrize("kind", KINDS, ids=repr)


@pytest.fixture
def database(standing: Database) -> Database:
    return without_calls(standing)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving(show=SHOWS_TOOLS) as server:
        yield server


def asked(kind: Kind, wire: Wire, database: Database, **options: Any) -> Reply | GatewayError:
    """Ask with a tool; anything but a reply or a gateway's error is the test's failure."""
    try:
        asks = gateway(database, kind.settings(wire.url))
        return asks.chat(user(), run_id="r-1", tools=[WEATHER], **{"deadline_s": 0.4, **options})
    except GatewayError as error:
        return error


def ended(came: Reply | GatewayError, database: Database) -> dict[str, Any]:
    """Return the call's record, which has an end that fits what came of it."""
    kept = only_record(database)
    assert kept["ended_at"] is not None
    if isinstance(came, GatewayError):
        assert kept["error_code"] == came.code
        assert kept["finish_reason"] is None
        assert "\n" not in str(came)
    else:
        assert kept["error_code"] is None
        assert kept["finish_reason"] == came.finish_reason
    return kept


# Chat completions


def events(*chunks: object) -> Answer:
    return lines(
        *(line for chunk in chunks for line in (f"data: {json.dumps(chunk)}", "")),
        "data: [DONE]",
        "",
        content_type=HOSTED.content_type,
    )


def chunk(*choices: object, **more: object) -> dict[str, Any]:
    return {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": list(choices),
        **more,
    }


def delta(value: object, **more: object) -> dict[str, Any]:
    return {"index": 0, "delta": value, "finish_reason": None, **more}


def calling(call: object) -> dict[str, Any]:
    return delta({"tool_calls": [call]})


SUNNY = chunk(delta({"content": "Sunny."}))
STOPS = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
USAGE = {"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 52}
COUNTS = chunk(usage=USAGE)
WHOLE = {"index": 0, "id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}

ODD: dict[str, Any] = {
    "arguments are an object": chunk(calling({**WHOLE, "function": {"name": "get_weather", "arguments": {"a": 1}}})),
    "arguments are a list": chunk(calling({**WHOLE, "function": {"name": "get_weather", "arguments": ["a"]}})),
    "arguments are a number": chunk(calling({**WHOLE, "function": {"name": "get_weather", "arguments": 5}})),
    "arguments are null": chunk(calling({**WHOLE, "function": {"name": "get_weather", "arguments": None}})),
    "arguments are deep": chunk(
        calling({**WHOLE, "function": {"name": "get_weather", "arguments": {"a": [[[[[{}]]]]] * 5}}})
    ),
    "the id is a number": chunk(calling({**WHOLE, "id": 7})),
    "the id is an object": chunk(calling({**WHOLE, "id": {"a": 1}})),
    "the name is a list": chunk(calling({**WHOLE, "function": {"name": ["get_weather"], "arguments": "{}"}})),
    "the name is a number": chunk(calling({**WHOLE, "function": {"name": 7, "arguments": "{}"}})),
    "the name is null": chunk(calling({**WHOLE, "function": {"name": None, "arguments": "{}"}})),
    "the function is null": chunk(calling({**WHOLE, "function": None})),
    "the function is a word": chunk(calling({**WHOLE, "function": "get_weather"})),
    "the function is a list": chunk(calling({**WHOLE, "function": []})),
    "the place is an object": chunk(calling({**WHOLE, "index": {"a": 1}})),
    "the place is a word": chunk(calling({**WHOLE, "index": "0"})),
    "the place is a list": chunk(calling({**WHOLE, "index": [0]})),
    "the place is null": chunk(calling({**WHOLE, "index": None})),
    "the place is true": chunk(calling({**WHOLE, "index": True})),
    "a call is null": chunk(calling(None)),
    "a call is a word": chunk(calling("get_weather")),
    "the calls are an object": chunk(delta({"tool_calls": {"0": WHOLE}})),
    "the calls are a word": chunk(delta({"tool_calls": "get_weather"})),
    "the calls are a number": chunk(delta({"tool_calls": 5})),
    "the content is an object": chunk(delta({"content": {"text": "Sunny."}})),
    "the content is a list": chunk(delta({"content": [{"type": "text", "text": "Sunny."}]})),
    "the content is a number": chunk(delta({"content": 5})),
    "the content is null": chunk(delta({"content": None})),
    "the thinking is an object": chunk(delta({"content": "x", "reasoning": {"a": 1}, "reasoning_content": [1]})),
    "the refusal is an object": chunk(delta({"refusal": {"a": 1}})),
    "the choices are null": {**chunk(), "choices": None},
    "the choices are missing": {key: value for key, value in chunk().items() if key != "choices"},
    "the choices are a word": {**chunk(), "choices": "none"},
    "the choices are a number": {**chunk(), "choices": 5},
    "the choices are an object": {**chunk(), "choices": {"0": delta({"content": "x"})}},
    "a choice is null": chunk(None),
    "a choice is a word": chunk("x"),
    "the choice's index is an object": chunk(delta({"content": "x"}, index={"a": 1})),
    "the choice's index is a word": chunk(delta({"content": "x"}, index="0")),
    "the choice's index is null": chunk(delta({"content": "x"}, index=None)),
    "the delta is null": chunk(delta(None)),
    "the delta is missing": chunk({"index": 0, "finish_reason": None}),
    "the delta is a word": chunk(delta("Sunny.")),
    "the delta is a list": chunk(delta(["Sunny."])),
    "the delta is a number": chunk(delta(5)),
    "the reason is an object": chunk(delta({"content": "x"}, finish_reason={"type": "stop"})),
    "the reason is a list": chunk(delta({"content": "x"}, finish_reason=["stop"])),
    "the reason is a number": chunk(delta({"content": "x"}, finish_reason=5)),
    "the reason is true": chunk(delta({"content": "x"}, finish_reason=True)),
    "the usage is a word": chunk(usage="many"),
    "the usage is a list": chunk(usage=[50, 2]),
    "the usage is of words": chunk(usage={"prompt_tokens": "50", "completion_tokens": "2"}),
    "the usage is of objects": chunk(usage={"prompt_tokens": {}, "completion_tokens": []}),
    "the usage is below zero": chunk(usage={"prompt_tokens": -50, "completion_tokens": -2}),
    "the usage is endless": chunk(usage={"prompt_tokens": 10**400, "completion_tokens": 1e308}),
    "the usage is of parts": chunk(usage={"prompt_tokens": 50.5, "completion_tokens": 2.5}),
    "the usage is true": chunk(usage={"prompt_tokens": True, "completion_tokens": True}),
    "the details are a word": chunk(usage={**USAGE, "prompt_tokens_details": "none"}),
    "the cached are a word": chunk(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": "all"}}),
    "a word": "x",
    "a number": 5,
    "null": None,
    "a list": [1, 2],
    "an empty object": {},
    "the error is a word": {"error": "x"},
    "the error is a list": {"error": ["x"]},
    "the error is null": {"error": None, **chunk()},
    "the error's code is a list": {"error": {"message": "x", "code": [1]}},
    "the error's code is long": {"error": {"message": "x", "code": "9" * 5000}},
    "the error's code is a digit that is no number": {"error": {"message": "x", "code": "²"}},
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_a_value_of_another_type_is_an_answer_or_a_gateways_error_with_its_record(
    what: str, is_first: bool, wire: Wire, database: Database
) -> None:
    odd = ODD[what]
    wire.answers[HOSTED.path] = events(*((odd, SUNNY) if is_first else (SUNNY, odd)), STOPS, COUNTS)
    came = asked(HOSTED, wire, database)
    kept = ended(came, database)
    if isinstance(came, Reply):
        for name in ("prompt_tokens", "output_tokens"):
            assert getattr(came.record, name) is None or 0 <= kept[name] <= 1e9
        for call in came.tool_calls:
            assert isinstance(call.id, str)
            assert isinstance(call.name, str)
            assert isinstance(call.written, str)
    assert kept["counted_tokens"] >= 0


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        ("many", (None, None)),
        ({"prompt_tokens": "50", "completion_tokens": "2"}, (None, None)),
        ({"prompt_tokens": -50, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": 10**400, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": 50.5, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": True, "completion_tokens": 2}, (None, 2)),
    ],
    ids=str,
)
def test_a_count_that_is_none_is_not_known(usage: object, known: object, wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = events(SUNNY, STOPS, chunk(usage=usage))
    reply = asked(HOSTED, wire, database)
    assert isinstance(reply, Reply)
    assert (reply.record.prompt_tokens, reply.record.output_tokens) == known
    kept = only_record(database)
    assert (kept["prompt_tokens"], kept["output_tokens"]) == known
    assert kept["counted_tokens"] == prompt_tokens(user(), [WEATHER]) + estimated_tokens("Sunny.")


def test_arguments_that_come_as_an_object_are_the_arguments(wire: Wire, database: Database) -> None:
    call = {**WHOLE, "function": {"name": "get_weather", "arguments": {"city": "Zürich"}}}
    wire.answers[HOSTED.path] = events(chunk(calling(call)), STOPS, COUNTS)
    reply = asked(HOSTED, wire, database)
    assert isinstance(reply, Reply)
    (made,) = reply.tool_calls
    assert (made.arguments, made.fault) == ({"city": "Zürich"}, None)


def test_of_several_choices_the_first_is_the_answer(wire: Wire, database: Database) -> None:
    second = {"index": 1, "delta": {"content": "Rainy."}, "finish_reason": None}
    wire.answers[HOSTED.path] = events(
        chunk(delta({"content": "Sun"}), second),
        chunk(second, delta({"content": "ny."})),
        chunk({**second, "finish_reason": "length"}, {"index": 0, "delta": {}, "finish_reason": "stop"}),
        COUNTS,
    )
    reply = asked(HOSTED, wire, database)
    assert isinstance(reply, Reply)
    assert (reply.content, reply.finish_reason) == ("Sunny.", "stop")


def test_the_end_of_another_choice_is_not_the_end(wire: Wire, database: Database) -> None:
    other = {"index": 1, "delta": {}, "finish_reason": "stop"}
    wire.answers[HOSTED.path] = events(SUNNY, chunk(other), COUNTS)
    came = asked(HOSTED, wire, database)
    assert isinstance(came, ModelUnavailable)
    assert ended(came, database)["error_code"] == "gateway.unavailable"


def test_an_answer_without_counts_is_counted_by_its_words(wire: Wire, database: Database) -> None:
    words = "An answer of many words that all come in one piece, however many there are. " * 20
    wire.answers[HOSTED.path] = events(chunk(delta({"content": words, "reasoning": "Let me see. "})), STOPS)
    reply = asked(HOSTED, wire, database)
    assert isinstance(reply, Reply)
    assert reply.record.prompt_tokens is None
    expected = prompt_tokens(user(), [WEATHER]) + estimated_tokens(words) + estimated_tokens("Let me see. ")
    assert only_record(database)["counted_tokens"] == expected


# Ollama's own API


def native(**changes: object) -> str:
    part = {"model": MODEL, "created_at": "2026-11-30T11:07:41Z", "done": False}
    return json.dumps({**part, "message": {"role": "assistant", "content": "Sunny."}, **changes})


ODD_NATIVE: dict[str, str] = {
    "the message is null": native(message=None),
    "the message is a word": native(message="Sunny."),
    "the message is a list": native(message=[]),
    "the content is an object": native(message={"role": "assistant", "content": {"a": 1}}),
    "the content is a list": native(message={"role": "assistant", "content": ["a"]}),
    "the thinking is a number": native(message={"role": "assistant", "content": "", "thinking": 5}),
    "the role is null": native(message={"role": None, "content": "x"}),
    "the calls are an object": native(message={"role": "assistant", "tool_calls": {"a": 1}}),
    "a call is null": native(message={"role": "assistant", "tool_calls": [None]}),
    "the function is null": native(message={"role": "assistant", "tool_calls": [{"function": None}]}),
    "the name is a list": native(
        message={"role": "assistant", "tool_calls": [{"function": {"name": ["a"], "arguments": {}}}]}
    ),
    "the arguments are null": native(
        message={"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", "arguments": None}}]}
    ),
    "the arguments are NaN": native(
        message={
            "role": "assistant",
            "tool_calls": [{"function": {"name": "get_weather", "arguments": {"a": float("nan")}}}],
        }
    ),
    "done is a word": native(done="perhaps"),
    "done is null": native(done=None),
    "the model is a number": native(model=5),
    "the error is a list": json.dumps({"error": ["x"]}),
    "the error is null": json.dumps({"error": None}),
    "the error is an object": json.dumps({"error": {"message": "x"}}),
    "a list": "[1, 2]",
    "null": "null",
    "a word": '"x"',
    "a number": "5",
}


def native_end(**changes: object) -> str:
    counts = {"total_duration": 9_000_000, "prompt_eval_count": 50, "eval_count": 2, "eval_duration": 1_000_000}
    message = {"role": "assistant", "content": ""}
    return native(message=message, done=True, done_reason="stop", **{**counts, **changes})


@pytest.mark.parametrize("what", ODD_NATIVE)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_a_value_of_another_type_from_an_ollama_is_an_answer_or_a_gateways_error_with_its_record(
    what: str, is_first: bool, wire: Wire, database: Database
) -> None:
    odd = ODD_NATIVE[what]
    wire.answers[NATIVE.path] = lines(*((odd, native()) if is_first else (native(), odd)), native_end())
    ended(asked(NATIVE, wire, database), database)


MEASURES = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
COUNTED = ("prompt_eval_count", "eval_count")


@pytest.mark.parametrize("name", [*MEASURES, *COUNTED])
@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), 10**30, -1, 2**63, "many", 1e308, 0.5, True, None, [], {}, float("nan"), float("inf")],
    ids=lambda value: repr(value)[:12],
)
def test_a_measure_that_cannot_be_is_not_known_or_no_answer(
    name: str, value: object, wire: Wire, database: Database
) -> None:
    wire.answers[NATIVE.path] = lines(native(), native_end(**{name: value}))
    came = asked(NATIVE, wire, database)
    kept = ended(came, database)
    if isinstance(came, Reply):
        for column in ("load_ms", "prompt_ms", "generation_ms", "prompt_tokens", "output_tokens"):
            assert kept[column] is None or 0 <= kept[column] <= 1e9


@pytest.mark.parametrize("name", ["load_duration", "prompt_eval_duration", "eval_duration"])
@pytest.mark.parametrize("value", [10**400, 10**30, -1, -(10**400)], ids=lambda value: repr(value)[:12])
def test_an_endless_duration_costs_no_answer(name: str, value: int, wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = lines(native(), native_end(**{name: value}))
    reply = asked(NATIVE, wire, database)
    assert isinstance(reply, Reply), reply
    assert reply.content == "Sunny."
    measured = {"load_duration": "load_ms", "prompt_eval_duration": "prompt_ms", "eval_duration": "generation_ms"}
    assert getattr(reply.record, measured[name]) is None


# Refusals whose body is no object


@both
@pytest.mark.parametrize(
    "body", ['["no", "way"]', "[]", "null", "5", '"no"', "[" * 5000, "<html>no</html>", "", "\ufeff"]
)
@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (400, InvalidRequest, "gateway.invalid_request"),
        (401, Unauthorized, "gateway.unauthorized"),
        (429, RateLimited, "gateway.rate_limited"),
    ],
)
def test_a_refusal_has_its_kind_whatever_its_body_is(
    body: str, status: int, error: type[GatewayError], code: str, kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = refusal(body, status=status, retry_after="77")
    with pytest.raises(error) as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=10)
    assert type(failed.value) is error
    assert len(wire.asked_for(kind.path)) == 1
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == (code, 1, 0)
    if status == 429:
        assert getattr(failed.value, "retry_after_s", None) == 77


# Packed answers


def packed(body: bytes, kind: Kind, *, encoding: str = "gzip", status: int = 200) -> Answer:
    """Answer with a body that says how it is packed."""

    def answer(handler: Handler, asked: Asked) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind.content_type)
        handler.send_header("Content-Encoding", encoding)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write(body)

    return answer


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A megabyte that unpacks to a gigabyte."""
    packs = zlib.compressobj(9, zlib.DEFLATED, 31)
    million = b"a" * 2**20
    bomb = b"".join([*(packs.compress(million) for _ in range(1024)), packs.flush()])
    assert 0.9e6 < len(bomb) < 1.2e6
    return bomb


@both
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_answer_that_would_unpack_to_a_gigabyte_is_refused_at_once(
    kind: Kind, status: int, bomb: bytes, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = in_turn(packed(bomb, kind, status=status), says(kind))
    began = time.monotonic()
    assert gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=10).content == "Sunny."
    assert time.monotonic() - began < 1 + SLACK_S
    assert only_record(database)["attempts"] == 2


@both
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x-unheard-of"])
def test_no_packed_answer_is_unpacked(kind: Kind, encoding: str, wire: Wire, database: Database) -> None:
    whole = "".join(f"{line}\n" for line in kind.lines(Said())).encode()
    wire.answers[kind.path] = packed(gzip.compress(whole), kind, encoding=encoding)
    with pytest.raises(ModelUnavailable, match=wire.url):
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=0.6)
    assert only_record(database)["error_code"] == "gateway.unavailable"


@both
def test_an_answer_that_says_it_is_not_packed_is_read(kind: Kind, wire: Wire, database: Database) -> None:
    whole = "".join(f"{line}\n" for line in kind.lines(Said())).encode()
    wire.answers[kind.path] = packed(whole, kind, encoding="identity")
    assert gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1").content == "Sunny."


# A server that stops reading


@contextmanager
def stops_reading() -> Iterator[int]:
    """Yield the port of a server that takes connections and next to nothing of what is sent to it."""
    taken: list[socket.socket] = []
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def take() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            for one in taken:
                one.close()
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=5)


@both
def test_a_server_that_stops_reading_a_large_request_holds_its_slot_no_longer_than_a_deadline_and_as_long_again(
    kind: Kind, database: Database
) -> None:
    large = "x" * 8_000_000  # more than the buffers of a connection hold
    with stops_reading() as port:
        chosen = kind.settings(f"http://127.0.0.1:{port}", model_num_ctx=10_000_000, model_tokens_per_minute=50_000_000)
        turns = queue_for(kind.provider, chosen.model_address, MODEL)
        free = turns._free
        stream = gateway(database, chosen).stream(user(large), run_id="r-1", deadline_s=1)
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            next(stream)
        assert time.monotonic() - began < 1 + SLACK_S
        while turns._free < free:
            assert time.monotonic() - began < 2 + SLACK_S
            time.sleep(0.02)
        close_servers()
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"]) == ("gateway.deadline", 1)
    assert kept["counted_tokens"] == kept["estimated_tokens"]


# Answers that are given up


@both
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_the_connection_of_an_answer_that_cannot_be_read_is_closed_at_once(
    kind: Kind, is_first: bool, wire: Wire
) -> None:
    """Or it is closed when the garbage is collected: on any thread, also on one that holds the lock of the pool."""
    odd = json.dumps(ODD["the delta is a list"]) if kind is HOSTED else ODD_NATIVE["the content is a list"]
    whole = [] if is_first else kind.lines(Said(reason=None))
    event = "data: " if kind is HOSTED else ""
    wire.answers[kind.path] = lines(*whole, f"{event}{odd}", "", content_type=kind.content_type, end="open")
    client = client_for(kind.settings(wire.url))
    with pytest.raises(ModelUnavailable) as failed, within(Deadline(1.0)):
        list(client.pieces(Request(model=MODEL, messages=tuple(user()), output_cap=10)))
    assert failed.value.__context__ is not None  # it is still there, with all that it holds
    pool = client._client._client._transport._pool  # type: ignore[attr-defined]
    assert pool._requests == []
    client.close()
