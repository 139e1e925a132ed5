"""Whoever listens, and however slowly: turns, moments and records stay right."""

from __future__ import annotations

import ctypes
import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from conftest import Database
from talking import (
    HOSTED,
    KINDS,
    NATIVE,
    SHOWS_TOOLS,
    WEATHER,
    Kind,
    Said,
    away,
    calls_on_record,
    gateway,
    says,
    serving,
    user,
    without_calls,
)
from waiting import until
from wire import Wire, lines, never

from memory_core.calls import Begun, CallEnd, CallStart, Wait
from memory_core.db.engine import engine_for
from memory_core.errors import CallCancelled, DatabaseError, DeadlineExceeded, ModelUnavailable, Refused
from memory_core.gateway.gateway import Gateway
from memory_core.gateway.prompt_size import prompt_tokens
from memory_core.journal import CallJournal

both = pytest.mark.parametrize("kind", KINDS, ids=repr)


@pytest.fixture
def database(standing: Database) -> Database:
    return without_calls(standing)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving() as server:
        yield server


@both
def test_a_listener_that_pauses_keeps_nobody_from_the_model(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind, Said(pieces=("one ", "two ", "three")))
    asks = gateway(database, kind.settings(wire.url))
    pausing = asks.stream(user(), run_id="r-1")
    assert next(pausing).text == "one "
    assert asks.chat(user(), run_id="r-2", deadline_s=5).content == "one two three"
    assert [chunk.text for chunk in pausing] == ["two ", "three"]


@both
def test_an_answer_that_came_in_time_is_an_answer_however_slowly_it_is_read(
    kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = says(kind, Said(pieces=("a", "b", "c", "d")))
    with gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1", deadline_s=1) as stream:
        for _ in stream:
            time.sleep(0.4)
        record = stream.reply.record
    assert record.total_ms < 1000  # the listener's time is not the model's
    assert record.first_chunk_ms is not None
    assert record.first_chunk_ms <= record.total_ms


@both
def test_a_call_that_is_cancelled_before_it_begins_is_not_made(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind)
    stream = gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1")
    stream.cancel()
    with pytest.raises(CallCancelled):
        next(stream)
    assert wire.asked_for(kind.path) == []
    (kept,) = calls_on_record(database)
    assert (kept["error_code"], kept["attempts"]) == ("gateway.cancelled", 0)


def test_a_call_that_got_no_turn_says_how_long_it_waited(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = never
    asks = gateway(database, NATIVE.settings(wire.url))
    first = asks.stream(user(), run_id="r-1", deadline_s=0.5)
    with pytest.raises(DeadlineExceeded):
        next(first)
    with pytest.raises(DeadlineExceeded, match="no turn"):
        asks.chat(user(), run_id="r-2", deadline_s=0.3)
    waited = {one["run_id"]: one["queue_ms"] for one in calls_on_record(database)}
    assert waited["r-2"] >= 250


@both
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_process_that_is_stopped_is_a_cancelled_call_and_not_the_models_fault(
    stop: type[BaseException], kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = says(kind)
    stream = gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1")
    next(stream)
    with pytest.raises(stop):
        stream._chunks.throw(stop)  # type: ignore[attr-defined]
    (kept,) = calls_on_record(database)
    assert kept["error_code"] == "gateway.cancelled"


def test_a_call_that_cannot_be_recorded_leaves_no_half_record(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)
    asks = gateway(database, NATIVE.settings(wire.url))
    with away(database), pytest.raises(DatabaseError):
        asks.chat(user(), run_id="r-1")
    assert calls_on_record(database) == []
    assert wire.asked_for(NATIVE.path) == []


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"temperature": -1},
        {"temperature": True},
        {"seed": 2**31},
        {"seed": 1.5},
        {"seed": True},
        {"deadline_s": True},
        {"deadline_s": 0.0009},
        {"deadline_s": 5e-324},
    ],
    ids=str,
)
def test_an_odd_option_is_refused_and_not_tried(options: dict[str, Any], wire: Wire, database: Database) -> None:
    with pytest.raises(Refused):
        gateway(database, NATIVE.settings(wire.url)).chat(user(), run_id="r-1", **options)
    assert wire.asked == []


def test_what_only_speaks_like_an_ollama_and_measures_nothing_is_not_said_to_have_measured_zero(
    wire: Wire, database: Database
) -> None:
    parts = [
        {"model": "m", "message": {"role": "assistant", "content": "Sunny."}, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ]
    wire.answers[NATIVE.path] = lines(*map(json.dumps, parts))
    record = gateway(database, NATIVE.settings(wire.url)).chat(user(), run_id="r-1").record
    assert (record.prompt_tokens, record.output_tokens, record.generation_ms, record.cold) == (None, None, None, None)
    assert record.counted_tokens > 0


@both
def test_messages_and_tools_may_come_one_by_one(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind)
    wire.answers["/api/show"] = SHOWS_TOOLS
    asks = gateway(database, kind.settings(wire.url))
    asks.chat(user(), run_id="r-1", tools=[WEATHER])
    reply = asks.chat((one for one in user()), run_id="r-2", tools=(one for one in [WEATHER]))  # type: ignore[arg-type]
    assert reply.content == "Sunny."
    first, second = (asked.body for asked in wire.asked_for(kind.path))
    assert first == second
    assert second["messages"]
    assert second["tools"]
    whole, one_by_one = calls_on_record(database)
    assert whole["estimated_tokens"] == one_by_one["estimated_tokens"]


@pytest.mark.parametrize(
    ("messages", "tools"),
    [
        ("hello", ()),
        (["hello"], ()),
        ([{"role": "user", "content": "hello"}], ()),
        ([*user(), None], ()),
        (user(), [{"name": "get_weather"}]),
        (user(), "get_weather"),
        (user(), [None]),
    ],
    ids=str,
)
def test_what_is_no_message_or_no_tool_is_refused_at_once(
    messages: Any, tools: Any, wire: Wire, database: Database
) -> None:
    with pytest.raises(Refused):
        gateway(database, NATIVE.settings(wire.url)).stream(messages, run_id="r-1", tools=tools)
    assert wire.asked == []
    assert calls_on_record(database) == []


@both
@pytest.mark.parametrize("after", [0, 1])
def test_a_stream_that_another_thread_closes_is_cancelled(
    kind: Kind, after: int, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = says(kind, Said(pieces=("Sun",) * after, reason=None), end="open")
    stream = gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1", deadline_s=30)

    def close() -> None:
        until(lambda: bool(wire.asked_for(kind.path)))
        time.sleep(0.2)
        stream.close()

    closing = threading.Thread(target=close)
    began = time.monotonic()
    closing.start()
    with pytest.raises(CallCancelled):
        list(stream)
    closing.join(timeout=5)
    assert time.monotonic() - began < 5
    (kept,) = calls_on_record(database)
    assert (kept["error_code"], kept["finish_reason"]) == ("gateway.cancelled", None)
    assert kept["ended_at"] is not None


def test_a_stream_that_is_closed_while_it_waits_for_its_turn_gives_it_to_nobody_else(
    wire: Wire, database: Database
) -> None:
    wire.answers[NATIVE.path] = says(NATIVE, Said(pieces=("a",) * 20), pause_s=0.05)
    asks = gateway(database, NATIVE.settings(wire.url))
    first = asks.stream(user(), run_id="r-1")
    next(first)
    waiting = asks.stream(user(), run_id="r-2", deadline_s=30)
    threading.Timer(0.2, waiting.close).start()
    with pytest.raises(CallCancelled):
        next(waiting)
    list(first)
    assert asks.chat(user(), run_id="r-3", deadline_s=5).content == "a" * 20
    kept = {one["run_id"]: one for one in calls_on_record(database)}["r-2"]
    assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == ("gateway.cancelled", 0, 0)


@both
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_call_that_is_stopped_before_its_first_token_counts_its_prompt(
    stop: type[BaseException], kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = never
    stream = gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1", deadline_s=30)
    came: list[BaseException] = []

    def listen() -> None:
        try:
            next(stream)
        except BaseException as error:
            came.append(error)

    listening = threading.Thread(target=listen)
    listening.start()
    until(lambda: bool(wire.asked_for(kind.path)))
    # As the interpreter stops a thread that waits.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(listening.ident or 0), ctypes.py_object(stop))
    listening.join(timeout=10)
    assert [type(error) for error in came] == [stop]
    (kept,) = calls_on_record(database)
    assert (kept["error_code"], kept["attempts"]) == ("gateway.cancelled", 1)
    assert kept["counted_tokens"] == prompt_tokens(user())


def test_a_call_that_is_stopped_as_it_begins_has_its_end_and_reserves_nothing(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)

    class Interrupted(CallJournal):
        """A journal whose caller is stopped when the beginning is on record, before hearing of it."""

        def begin(self, start: CallStart, *, tokens_per_minute: int | None, elapsed_s: float = 0.0) -> Begun | Wait:
            super().begin(start, tokens_per_minute=tokens_per_minute, elapsed_s=elapsed_s)
            raise KeyboardInterrupt

    settings = NATIVE.settings(wire.url, model_tokens_per_minute=1000)
    interrupted = Gateway(settings, Interrupted(engine_for(database.application), "acme"))
    with pytest.raises(KeyboardInterrupt):
        interrupted.chat(user(), run_id="r-1")
    assert wire.asked_for(NATIVE.path) == []
    (kept,) = calls_on_record(database)
    assert kept["ended_at"] is not None
    assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == ("gateway.cancelled", 0, 0)
    for number in range(3):  # all of the minute is free
        full = gateway(database, settings).chat(user(), run_id=f"r-{number}", max_output_tokens=200, deadline_s=2)
        assert full.content == "Sunny."


def test_one_model_is_one_queue_however_its_name_is_spelled(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = lines(*NATIVE.lines(Said(pieces=("a",) * 20)), pause_s=0.05)
    settings = NATIVE.settings(wire.url, model_fast="qwen3", model_balanced="qwen3:latest")
    first = gateway(database, settings).stream(user(), run_id="r-1")
    next(first)
    with pytest.raises(DeadlineExceeded, match="no turn"):
        gateway(database, settings).chat(user(), run_id="r-2", tier="balanced", deadline_s=0.3)
    first.close()


# The ceiling


def test_hosted_calls_follow_each_other_at_the_default_ceiling(wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = says(HOSTED)
    settings = HOSTED.settings(wire.url, model_tokens_per_minute=None, model_max_output_tokens=16_000)
    assert settings.tokens_per_minute == 8000
    asks = gateway(database, settings)
    for number in range(10):
        asks.chat(user(), run_id=f"r-{number}", deadline_s=5)
    caps = [one.body["max_tokens"] for one in wire.asked_for(HOSTED.path)]
    assert all(1000 <= cap < 8000 for cap in caps)
    assert caps[-1] < caps[0]  # no more than the minute has left


def test_waiting_for_tokens_counts_as_waiting(wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = says(HOSTED)

    class Full:
        """A journal whose ceiling leaves nothing at the first two times of asking."""

        def __init__(self) -> None:
            self.asked = 0
            self.ended: list[CallEnd] = []

        def begin(self, start: CallStart, *, tokens_per_minute: int | None, elapsed_s: float = 0.0) -> Begun | Wait:
            self.asked += 1
            return (
                Wait(seconds=0.2, may_be_sooner=False) if self.asked < 3 else Begun(granted_tokens=start.least_tokens)
            )

        def refuse(self, start: CallStart, end: CallEnd) -> None:
            self.ended.append(end)

        def end(self, call_id: object, end: CallEnd) -> None:
            self.ended.append(end)

    journal = Full()
    Gateway(HOSTED.settings(wire.url, model_tokens_per_minute=5000), journal).chat(user(), run_id="r-1")
    assert journal.asked == 3
    assert journal.ended[0].queue_ms is not None
    assert journal.ended[0].queue_ms >= 390


def test_a_call_began_when_it_was_asked_for_and_not_when_it_was_let_in(wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = says(HOSTED)
    settings = HOSTED.settings(wire.url, model_tokens_per_minute=1500, model_max_output_tokens=1300)
    slow = gateway(database, settings).stream(user(), run_id="r-1", deadline_s=20)
    next(slow)  # holds nearly all of the minute
    late = gateway(database, settings).stream(user(), run_id="r-2", deadline_s=20)
    time.sleep(0.3)
    assert [chunk.text for chunk in slow][-1] == "ny."
    assert next(late).text == "Sun"
    late.close()
    second = {one["run_id"]: one for one in calls_on_record(database)}["r-2"]
    assert second["deadline_at"] - second["started_at"] == timedelta(seconds=20)
    assert second["ended_at"] - second["started_at"] >= timedelta(milliseconds=300)


def test_a_server_that_says_nothing_is_not_said_to_have_lost_the_connection(wire: Wire) -> None:
    from memory_core.gateway.inspection import Inspector

    wire.answers["/api/version"] = never
    inspector = Inspector(NATIVE.settings(wire.url))
    with pytest.raises(ModelUnavailable, match="does not answer in time"):
        inspector.version()
    inspector.close()


def test_ends_that_one_gateway_kept_are_written_by_the_next_call_of_another(wire: Wire, database: Database) -> None:
    from memory_core.chatting import gateway_for

    wire.answers[NATIVE.path] = says(NATIVE)
    url = database.application.render_as_string(hide_password=False)
    settings = NATIVE.settings(wire.url, database_url=url)
    with gateway_for("acme", settings=settings).stream(user(), run_id="r-1") as stream:
        next(stream)
        with away(database):
            for _ in stream:
                pass
            assert stream.reply.content == "Sunny."
    assert [one["ended_at"] for one in calls_on_record(database)] == [None]
    gateway_for("acme", settings=settings).chat(user(), run_id="r-2")
    until(lambda: None not in [one["ended_at"] for one in calls_on_record(database)])
