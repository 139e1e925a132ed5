"""What becomes of a call when its server, its limits, its caller or the database fail it: an error with its kind, on record."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import wire as answers
from conftest import Database
from rows import traces
from talking import (
    HOSTED,
    KEY,
    KINDS,
    MODEL,
    NATIVE,
    PROMPT,
    SHOWS_NEITHER,
    SHOWS_THINKING,
    SHOWS_TOOLS,
    SLACK_S,
    WEATHER,
    Kind,
    Said,
    away,
    calls_on_record,
    drips,
    gateway,
    only_record,
    says,
    serving,
    user,
    without_calls,
)
from waiting import until
from wire import Answer, Asked, Gauge, Handler, Wire, as_json, in_turn, never, refusal, text

from memory_core.chatting import gateway_for
from memory_core.config import settings
from memory_core.errors import (
    CallCancelled,
    DatabaseError,
    DeadlineExceeded,
    GatewayError,
    InvalidRequest,
    ModelBusy,
    ModelNotConfigured,
    ModelUnavailable,
    NotNow,
    RateLimited,
    Refused,
    SettingsError,
    Unauthorized,
)
from memory_core.gateway.calling import MOST_ATTEMPTS
from memory_core.gateway.client import client_for
from memory_core.gateway.conversation import Message, Reply, Request, Role, Tool, ToolCallFault
from memory_core.gateway.prompt_size import prompt_tokens
from memory_core.gateway.queueing import MOST_WAITING, SLOTS, queue_for
from memory_core.gateway.servers import close_servers
from memory_core.prompt.tokens import estimated_tokens

both = pytest.mark.parametrize("kind", KINDS, ids=repr)
TAGS = "/api/tags"


@pytest.fixture
def database(standing: Database) -> Database:
    return without_calls(standing)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving(show=SHOWS_TOOLS) as server:
        yield server


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + SLACK_S


# Addresses


@both
@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "//"])
def test_an_address_is_the_same_with_and_without_its_slash_and_v1(
    kind: Kind, ending: str, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = says(kind)
    assert gateway(database, kind.settings(wire.url + ending)).chat(user(), run_id="r-1").content == "Sunny."
    assert {asked.path for asked in wire.asked} <= {kind.path, TAGS}


@pytest.mark.parametrize(
    "address",
    ["ftp://127.0.0.1", "file:///etc/passwd", "http://", "http://user:pw@host", "http://host:port", "http://h/?key=1"],
)
@both
def test_an_address_that_is_none_is_refused_by_its_variable(kind: Kind, address: str) -> None:
    with pytest.raises(SettingsError, match="MODEL_BASE_URL") as refused:
        kind.settings(address)
    assert KEY not in str(refused.value)
    assert "pw" not in str(refused.value)


@both
def test_an_address_where_nobody_is_has_the_call_fail_with_the_address(kind: Kind, database: Database) -> None:
    with Wire() as gone:
        pass
    with within(5), pytest.raises(ModelUnavailable, match=f"{gone.url}.*MODEL_BASE_URL") as failed:
        gateway(database, kind.settings(gone.url)).chat(user(), run_id="r-1", deadline_s=5)
    says_nothing_secret(failed.value)
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == ("gateway.unavailable", MOST_ATTEMPTS, 0)


@both
def test_an_address_that_is_https_where_http_is_served_is_unavailable(
    kind: Kind, wire: Wire, database: Database
) -> None:
    chosen = kind.settings(wire.url.replace("http://", "https://"))
    with within(0.8), pytest.raises((ModelUnavailable, DeadlineExceeded)) as failed:
        gateway(database, chosen).chat(user(), run_id="r-1", deadline_s=0.8)
    says_nothing_secret(failed.value)
    assert wire.asked == []


@both
def test_an_address_with_another_path_says_to_check_it(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind)
    with pytest.raises(InvalidRequest, match="MODEL_BASE_URL"):
        gateway(database, kind.settings(f"{wire.url}/wrong")).chat(user(), run_id="r-1")
    assert only_record(database)["attempts"] == 1


@both
def test_a_redirect_is_not_followed_with_the_prompt_or_the_key(kind: Kind, wire: Wire, database: Database) -> None:
    with Wire() as elsewhere:
        elsewhere.answers[kind.path] = says(kind)
        wire.answers[kind.path] = answers.redirect(elsewhere.url + kind.path)
        with pytest.raises(InvalidRequest, match="MODEL_BASE_URL"):
            gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1")
        assert elsewhere.asked == []


@both
def test_a_proxy_of_the_environment_sees_no_prompt(
    kind: Kind, wire: Wire, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.answers[kind.path] = says(kind)
    with Wire() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1").content == "Sunny."
        assert proxy.asked == []


def test_a_hosted_model_gets_the_key_as_its_bearer(wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = says(HOSTED)
    gateway(database, HOSTED.settings(wire.url)).chat(user(), run_id="r-1")
    headers = {name.lower(): value for name, value in wire.asked_for(HOSTED.path)[0].headers.items()}
    assert headers["authorization"] == f"Bearer {KEY}"


# Settings and arguments


def test_an_empty_key_in_production_is_refused() -> None:
    with pytest.raises(SettingsError, match="MODEL_API_KEY"):
        settings(app_env="production", model_api_key="")


def test_without_a_key_no_gateway_is_opened_and_nothing_is_asked(database: Database) -> None:
    with pytest.raises(ModelNotConfigured):
        gateway_for("acme", settings=settings(model_api_key="", database_url=_url(database)))


def test_a_gateway_for_an_organisation_asks_and_records(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)
    opened = gateway_for("acme", settings=NATIVE.settings(wire.url, database_url=_url(database)))
    assert opened.chat(user(), run_id="r-1").content == "Sunny."
    assert only_record(database)["finish_reason"] == "stop"


@pytest.mark.parametrize("org_id", ["", "a b", "x" * 200, "ü"])
def test_no_gateway_is_opened_for_what_is_no_organisation(org_id: str, database: Database) -> None:
    with pytest.raises(Refused):
        gateway_for(org_id, settings=NATIVE.settings("http://127.0.0.1:1", database_url=_url(database)))


def _url(database: Database) -> str:
    return database.application.render_as_string(hide_password=False)


@pytest.mark.parametrize(
    "name",
    ["model_max_output_tokens", "model_tokens_per_minute", "model_num_ctx", "model_deadline_s", "model_num_thread"],
)
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_of_zero_or_less_is_refused_by_its_variable(name: str, value: int) -> None:
    with pytest.raises(SettingsError, match=name.upper()):
        NATIVE.settings("http://127.0.0.1:1", **{name: value})


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_output_tokens": 0},
        {"max_output_tokens": -1},
        {"max_output_tokens": 1.5},
        {"max_output_tokens": True},
        {"deadline_s": 0},
        {"deadline_s": -1},
        {"deadline_s": 0.00099},
        {"deadline_s": 1e-300},
        {"deadline_s": 86_401},
        {"deadline_s": float("nan")},
        {"deadline_s": float("inf")},
        {"tier": "cheap"},
        {"run_id": ""},
        {"run_id": "a b"},
    ],
    ids=repr,
)
@both
def test_a_wrong_argument_is_refused_at_once_and_nothing_is_sent(
    kind: Kind, wrong: dict[str, Any], wire: Wire, database: Database
) -> None:
    arguments: dict[str, Any] = {"run_id": "r-1", **wrong}
    with pytest.raises(Refused):
        gateway(database, kind.settings(wire.url)).stream(user(), **arguments)
    assert wire.asked == []
    assert calls_on_record(database) == []


@both
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message(role=Role.USER, content="a\x00b")],
        [Message(role=Role.USER, content="a\ud800b")],
        [Message(role=Role.TOOL, content="18 C")],
    ],
    ids=["none", "NUL", "half a surrogate pair", "a result of no call"],
)
def test_a_conversation_that_cannot_be_sent_is_refused_and_on_record(
    kind: Kind, messages: list[Message], wire: Wire, database: Database
) -> None:
    with pytest.raises(InvalidRequest):
        gateway(database, kind.settings(wire.url)).chat(messages, run_id="r-1")
    assert wire.asked == []
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == ("gateway.invalid_request", 0, 0)


CIRCULAR: dict[str, Any] = {}
CIRCULAR["properties"] = CIRCULAR


@both
@pytest.mark.parametrize(
    "tools",
    [
        [WEATHER, WEATHER],
        [Tool(name="get weather", description="", parameters={})],
        [Tool(name="", description="", parameters={})],
        [Tool(name="x", description="", parameters={"enum": {1, 2}})],
        [Tool(name="x", description="", parameters={"maximum": float("nan")})],
        [Tool(name="x", description="", parameters=CIRCULAR)],
        [Tool(name="x", description="", parameters={"title": "\ud800"})],
        [Tool(name="x", description="\ud800", parameters={})],
    ],
    ids=["twice", "space", "no name", "a set", "NaN", "circular", "surrogate", "surrogate in its description"],
)
def test_tools_that_cannot_be_offered_are_refused_and_on_record(
    kind: Kind, tools: list[Tool], wire: Wire, database: Database
) -> None:
    with pytest.raises(InvalidRequest):
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", tools=tools, deadline_s=2)
    assert wire.asked_for(kind.path) == []
    assert only_record(database)["error_code"] == "gateway.invalid_request"


# Sizes


@both
def test_a_prompt_too_long_by_one_token_is_refused_before_anything_is_sent(
    kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = says(kind)
    tokens = prompt_tokens(user())
    with pytest.raises(InvalidRequest, match="MODEL_NUM_CTX"):
        gateway(database, kind.settings(wire.url, model_num_ctx=tokens)).chat(user(), run_id="r-1")
    assert wire.asked == []
    assert only_record(database)["error_code"] == "gateway.invalid_request"
    asks = gateway(database, kind.settings(wire.url, model_num_ctx=tokens + 1))
    assert asks.chat(user(), run_id="r-1").content == "Sunny."
    cap = wire.asked_for(kind.path)[0].body
    assert (cap["options"]["num_predict"] if kind is NATIVE else cap["max_tokens"]) == 1


@both
def test_a_prompt_of_which_the_server_counts_far_less_is_flagged(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind, Said(prompt_tokens=130))
    reply = gateway(database, kind.settings(wire.url, model_num_ctx=4096)).chat(user("word " * 1500), run_id="r-1")
    assert reply.record.prompt_was_cut
    assert only_record(database)["prompt_was_cut"]


@both
def test_a_prompt_that_was_read_whole_is_not_flagged(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind, Said(prompt_tokens=1510))
    asks = gateway(database, kind.settings(wire.url, model_num_ctx=4096))
    assert not asks.chat(user("word " * 1500), run_id="r-1").record.prompt_was_cut


# What a model can do


def test_tools_go_only_to_a_model_that_can_call_them(wire: Wire, database: Database) -> None:
    wire.answers["/api/show"] = SHOWS_NEITHER
    wire.answers[NATIVE.path] = says(NATIVE)
    asks = gateway(database, NATIVE.settings(wire.url))
    with pytest.raises(InvalidRequest, match=r"smollm2:135m cannot call tools.*name a model that can"):
        asks.chat(user(), run_id="r-1", tools=[WEATHER])
    assert wire.asked_for(NATIVE.path) == []
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"]) == ("gateway.invalid_request", 0)
    assert asks.chat(user(), run_id="r-2").content == "Sunny."


def test_tools_for_a_model_that_is_not_there_say_how_to_get_it(wire: Wire, database: Database) -> None:
    wire.answers["/api/show"] = refusal('{"error": "model \'smollm2:135m\' not found"}', status=404)
    with pytest.raises(InvalidRequest, match="python -m memory_core pull smollm2:135m"):
        gateway(database, NATIVE.settings(wire.url)).chat(user(), run_id="r-1", tools=[WEATHER])
    assert wire.asked_for(NATIVE.path) == []


@pytest.mark.parametrize(
    "answer", [text("nope", status=500), answers.html, answers.hang_up], ids=["500", "html", "none"]
)
def test_where_the_server_does_not_say_what_a_model_can_do_it_decides_itself(
    answer: Answer, wire: Wire, database: Database
) -> None:
    wire.answers["/api/show"] = answer
    wire.answers[NATIVE.path] = says(NATIVE)
    asks = gateway(database, NATIVE.settings(wire.url))
    assert asks.chat(user(), run_id="r-1", tools=[WEATHER]).content == "Sunny."


@pytest.mark.parametrize("answer", [never, answers.trickle, answers.slow_headers], ids=["never", "trickle", "headers"])
def test_a_server_that_does_not_say_what_a_model_can_do_holds_no_call_beyond_its_deadline(
    answer: Answer, wire: Wire, database: Database
) -> None:
    wire.answers["/api/show"] = answer
    wire.answers[NATIVE.path] = says(NATIVE)
    with within(0.5), suppress(DeadlineExceeded):
        gateway(database, NATIVE.settings(wire.url)).chat(user(), run_id="r-1", tools=[WEATHER], deadline_s=0.5)


def test_a_call_that_asks_what_a_model_can_do_can_be_cancelled(wire: Wire, database: Database) -> None:
    wire.answers["/api/show"] = never
    stream = gateway(database, NATIVE.settings(wire.url)).stream(user(), run_id="r-1", tools=[WEATHER])
    threading.Timer(0.2, stream.cancel).start()
    with within(0.2), pytest.raises(CallCancelled):
        list(stream)
    assert only_record(database)["error_code"] == "gateway.cancelled"


def test_an_effort_for_a_model_that_cannot_think_is_refused_before_anything_is_sent(
    wire: Wire, database: Database
) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)
    chosen = NATIVE.settings(wire.url, model_reasoning_effort="low")
    with pytest.raises(InvalidRequest, match=r"MODEL_REASONING_EFFORT.*smollm2:135m cannot think.*unset it"):
        gateway(database, chosen).chat(user(), run_id="r-1")
    assert wire.asked_for(NATIVE.path) == []
    assert only_record(database)["error_code"] == "gateway.invalid_request"
    wire.answers["/api/show"] = SHOWS_THINKING
    close_servers()  # or what it could do is remembered for a minute
    assert gateway(database, chosen).chat(user(), run_id="r-2").content == "Sunny."


def test_a_model_without_tools_at_a_hosted_address_says_so(wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = refusal(HOSTED.error_body("m does not support tools"), status=400)
    with pytest.raises(InvalidRequest, match="cannot call tools"):
        gateway(database, HOSTED.settings(wire.url)).chat(user(), run_id="r-1", tools=[WEATHER])
    assert only_record(database)["attempts"] == 1


@both
def test_an_unknown_model_is_named(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = refusal(kind.error_body("model 'smollm2:135m' not found"), status=404)
    with pytest.raises(InvalidRequest, match="smollm2:135m") as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1")
    assert wire.url in str(failed.value)
    assert only_record(database)["attempts"] == 1


# Servers that fail


def says_nothing_secret(error: BaseException) -> None:
    said = str(error)
    assert KEY not in said
    assert "Zebrafinch" not in said
    assert "\n" not in said
    assert len(said) < 600


def broken(kind: Kind, what: str) -> Answer:
    """Return how a server fails before its first token."""
    line = kind.lines(Said())[0]
    return {
        "html": answers.html,
        "hang up": answers.hang_up,
        "cut": answers.cut,
        "empty": text("", content_type=kind.content_type),
        "half a line": answers.half(line[: len(line) // 2], content_type=kind.content_type),
        "half a line, cut": answers.lines(line[: len(line) // 2], content_type=kind.content_type, end="cut"),
        "no JSON": answers.lines("data: so" if kind is HOSTED else "so", content_type=kind.content_type),
        "a list": answers.lines("data: []" if kind is HOSTED else "[]", content_type=kind.content_type),
        "an error line": answers.lines(kind.error_line("runner has died"), "", content_type=kind.content_type),
        "503": refusal(kind.error_body("try later"), status=503),
        "503 html": refusal("<html>Bad gateway</html>", status=502, content_type="text/html"),
        "500": refusal(kind.error_body("runner has died"), status=500),
        "500 of nothing": refusal("", status=500),
    }[what]


BROKEN = [
    "html",
    "hang up",
    "cut",
    "empty",
    "half a line",
    "half a line, cut",
    "no JSON",
    "a list",
    "an error line",
    "503",
    "503 html",
    "500",
    "500 of nothing",
]


@both
@pytest.mark.parametrize("what", BROKEN)
def test_a_server_that_fails_before_its_first_token_is_unavailable(kind: Kind, what: str, wire: Wire) -> None:
    wire.answers[kind.path] = broken(kind, what)
    client = client_for(kind.settings(wire.url))
    with pytest.raises(ModelUnavailable, match=wire.url) as failed:
        list(client.pieces(Request(model=MODEL, messages=tuple(user()), output_cap=10)))
    client.close()
    says_nothing_secret(failed.value)
    assert failed.value.retryable
    assert len(wire.asked) == 1


@both
@pytest.mark.parametrize("what", ["500", "hang up", "html"])
def test_a_server_that_fails_is_asked_again_within_the_deadline_only(
    kind: Kind, what: str, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = broken(kind, what)
    with within(0.6), pytest.raises((ModelUnavailable, DeadlineExceeded)) as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=0.6)
    says_nothing_secret(failed.value)
    sent = len(wire.asked_for(kind.path))
    assert 1 <= sent <= 3  # a fourth would come after 1.75 s
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["finish_reason"]) == (failed.value.code, sent, None)


@both
@pytest.mark.parametrize("what", BROKEN)
def test_a_server_that_fails_once_gives_its_answer_to_the_second_attempt(
    kind: Kind, what: str, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = in_turn(broken(kind, what), says(kind))
    assert gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1").content == "Sunny."
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["finish_reason"]) == (None, 2, "stop")


@both
def test_a_server_that_keeps_failing_is_asked_four_times(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = broken(kind, "500")
    with pytest.raises(ModelUnavailable):
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=30)
    kept = only_record(database)
    assert len(wire.asked_for(kind.path)) == MOST_ATTEMPTS == kept["attempts"]
    # Nobody knows what the server read of it.
    assert (kept["error_code"], kept["counted_tokens"]) == ("gateway.unavailable", kept["estimated_tokens"])


@both
@pytest.mark.parametrize("what", ["hang up", "cut", "half a line, cut", "html"])
def test_what_was_sent_and_lost_counts_its_prompt(kind: Kind, what: str, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = broken(kind, what)
    with pytest.raises((ModelUnavailable, DeadlineExceeded)):
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=0.4)
    assert only_record(database)["counted_tokens"] == prompt_tokens(user())


@both
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
def test_what_a_server_turned_away_counts_nothing(kind: Kind, status: int, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = refusal(kind.error_body("no"), status=status, retry_after="60")
    with pytest.raises(GatewayError):
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=10)
    kept = only_record(database)
    assert (kept["attempts"], kept["counted_tokens"]) == (1, 0)


@both
def test_what_came_of_an_answer_that_was_lost_counts_with_its_prompt(
    kind: Kind, wire: Wire, database: Database
) -> None:
    words = "An answer of many words that comes in one piece. " * 10
    wire.answers[kind.path] = says(kind, Said(pieces=(words,), reason=None), end="cut")
    with pytest.raises(ModelUnavailable):
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1")
    assert only_record(database)["counted_tokens"] == prompt_tokens(user()) + estimated_tokens(words)


@both
@pytest.mark.parametrize(
    ("end", "more"), [("whole", None), ("cut", None), ("whole", "error"), ("cut", "half"), ("whole", "half")]
)
def test_after_the_first_token_a_failure_is_final(
    kind: Kind, end: str, more: str | None, wire: Wire, database: Database
) -> None:
    tail = {"error": kind.error_line("runner has died"), "half": kind.lines(Said())[0][:30], None: None}[more]
    said = Said(reason=None, more=(tail,) if tail else ())
    wire.answers[kind.path] = in_turn(says(kind, said, end=end), says(kind))
    stream = gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1")
    chunks = []
    with stream, pytest.raises(ModelUnavailable, match=wire.url) as failed:
        chunks += [chunk.text for chunk in stream]
    says_nothing_secret(failed.value)
    assert len(wire.asked_for(kind.path)) == 1
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["finish_reason"]) == ("gateway.unavailable", 1, None)
    assert kept["counted_tokens"] > 0  # it did work
    with pytest.raises(CallCancelled):
        _ = stream.reply


@both
def test_an_answer_with_an_end_that_leaves_the_connection_open_holds_nobody_up(
    kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = says(kind, end="open")
    asks = gateway(database, kind.settings(wire.url))
    with within(2):
        assert asks.chat(user(), run_id="r-1").content == "Sunny."
        assert asks.chat(user(), run_id="r-2").content == "Sunny."


@both
def test_an_answer_that_comes_byte_by_byte_is_whole(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = drips(kind, pause_s=0)
    assert gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1").content == "Sunny."


@both
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted_is_not_tried_again_and_not_shown(
    kind: Kind, status: int, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = refusal(kind.error_body(f"Incorrect API key: {KEY[:8]}****{KEY[-4:]}"), status=status)
    means = "MODEL_API_KEY" if kind is HOSTED else "does not let this client in"
    with pytest.raises(Unauthorized, match=f"{wire.url}.*{means}") as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1")
    says_nothing_secret(failed.value)
    assert KEY[:8] not in str(failed.value)
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"]) == ("gateway.unauthorized", 1)


@both
@pytest.mark.parametrize("status", [400, 404, 409, 422, 429, 500, 503])
def test_a_server_that_repeats_the_prompt_and_the_key_in_its_error_does_not_get_them_into_ours(
    kind: Kind, status: int, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = refusal(
        kind.error_body(f"bad input {PROMPT!r} with Bearer {KEY}"), status=status, retry_after="60"
    )
    with pytest.raises(GatewayError) as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=10)
    says_nothing_secret(failed.value)


# Waiting that is asked for


@both
def test_too_many_requests_are_tried_again_until_the_deadline_leaves_no_time(
    kind: Kind, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = refusal(kind.error_body("slow down"), status=429)
    with within(1.5), pytest.raises(RateLimited, match=wire.url) as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=1.5)
    assert failed.value.retryable
    assert failed.value.retry_after_s is None
    kept = only_record(database)
    assert (kept["error_code"], kept["counted_tokens"]) == ("gateway.rate_limited", 0)
    assert kept["attempts"] == len(wire.asked_for(kind.path)) <= MOST_ATTEMPTS


@both
@pytest.mark.parametrize(("status", "error"), [(429, RateLimited), (503, NotNow)])
def test_a_server_is_not_asked_again_before_it_said(
    kind: Kind, status: int, error: type[NotNow], wire: Wire, database: Database
) -> None:
    moments: list[float] = []

    def noted(answer: Answer) -> Answer:
        def at(handler: Handler, asked: Asked) -> None:
            moments.append(time.monotonic())
            answer(handler, asked)

        return at

    turned_away = refusal(kind.error_body("busy"), status=status, retry_after="1")
    wire.answers[kind.path] = in_turn(noted(turned_away), noted(says(kind)))
    assert gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1").content == "Sunny."
    first, second = moments
    assert second - first >= 0.95
    assert only_record(database)["attempts"] == 2


@both
@pytest.mark.parametrize(("status", "error"), [(429, RateLimited), (503, NotNow)])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_wait_longer_than_the_deadline_leaves_is_an_error_at_once(
    kind: Kind, status: int, error: type[NotNow], form: str, wire: Wire, database: Database
) -> None:
    value = "30" if form == "seconds" else format_datetime(datetime.now(UTC) + timedelta(seconds=31), usegmt=True)
    wire.answers[kind.path] = refusal(kind.error_body("busy"), status=status, retry_after=value)
    with within(0), pytest.raises(error) as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=10)
    assert failed.value.retry_after_s == pytest.approx(30, abs=2)
    assert len(wire.asked_for(kind.path)) == 1


# Servers that do not end


@both
@pytest.mark.parametrize("what", ["never", "headers", "body", "opened", "between", "drip"])
def test_the_deadline_holds_however_slowly_a_server_answers(
    kind: Kind, what: str, wire: Wire, database: Database
) -> None:
    wire.answers[kind.path] = {
        "never": never,
        "headers": answers.slow_headers,
        "body": answers.trickle,
        "opened": answers.lines(content_type=kind.content_type, end="open"),
        "between": says(kind, Said(reason=None), end="open"),
        "drip": drips(kind, pause_s=0.02),
    }[what]
    with within(0.5), pytest.raises(DeadlineExceeded, match="MODEL_DEADLINE_S") as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=0.5)
    says_nothing_secret(failed.value)
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["finish_reason"]) == ("gateway.deadline", 1, None)
    assert 400 < kept["total_ms"] < 2000
    assert kept["counted_tokens"] >= kept["estimated_tokens"]  # it was taken, for all that is known


def test_asking_for_the_digest_holds_no_answer_back_for_long(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)
    wire.answers[TAGS] = never
    asks = gateway(database, NATIVE.settings(wire.url))
    with within(1.1):
        assert asks.chat(user(), run_id="r-1").content == "Sunny."
    with within(0):
        assert asks.chat(user(), run_id="r-2").content == "Sunny."  # not asked again for a minute
    assert all(kept["total_ms"] < 900 for kept in calls_on_record(database))


# Tool calls

PARIS = {"name": "get_weather", "arguments": {"city": "Paris"}, "id": "call_a"}


def called(kind: Kind, wire: Wire, database: Database, *calls: dict[str, Any]) -> Reply:
    wire.answers[kind.path] = says(kind, Said(pieces=(), calls=calls))
    return gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", tools=[WEATHER], deadline_s=5)


@pytest.mark.parametrize("written", ["{", "Paris", '{"city": NaN}', "{'city': 'Paris'}", '{"city": "\\ud800"}'])
def test_arguments_that_are_not_json_are_a_fault_of_the_call(written: str, wire: Wire, database: Database) -> None:
    (call,) = called(HOSTED, wire, database, {**PARIS, "arguments": written}).tool_calls
    assert (call.fault, call.arguments, call.written) == (ToolCallFault.ARGUMENTS_NOT_JSON, None, written)
    kept = only_record(database)
    assert (kept["tool_calls"], kept["tool_call_faults"], kept["error_code"]) == (1, 1, None)


@pytest.mark.parametrize("written", ["[]", "1", '"Paris"', "null"])
def test_arguments_that_are_no_object_are_a_fault_of_the_call(written: str, wire: Wire, database: Database) -> None:
    (call,) = called(HOSTED, wire, database, {**PARIS, "arguments": written}).tool_calls
    assert (call.fault, call.arguments) == (ToolCallFault.ARGUMENTS_NOT_AN_OBJECT, None)


@pytest.mark.parametrize("arguments", ["{", "Paris", ["Paris"], 5])
def test_an_ollama_whose_call_has_no_object_for_arguments_fails_as_a_gateways_error_or_a_fault(
    arguments: object, wire: Wire, database: Database
) -> None:
    wire.answers[NATIVE.path] = says(NATIVE, Said(pieces=(), calls=({**PARIS, "arguments": arguments},)))
    asks = gateway(database, NATIVE.settings(wire.url))
    with suppress(ModelUnavailable, DeadlineExceeded):
        (call,) = asks.chat(user(), run_id="r-1", tools=[WEATHER], deadline_s=0.3).tool_calls
        assert call.fault
    assert only_record(database)["ended_at"]


@both
def test_a_tool_that_was_not_offered_is_a_fault_of_the_call(kind: Kind, wire: Wire, database: Database) -> None:
    reply = called(kind, wire, database, PARIS, {**PARIS, "name": "delete_all", "id": "call_b"})
    assert [(call.name, call.fault) for call in reply.tool_calls] == [
        ("get_weather", None),
        ("delete_all", ToolCallFault.UNKNOWN_TOOL),
    ]
    assert reply.finish_reason == "tool_calls"
    kept = only_record(database)
    assert (kept["tool_calls"], kept["tool_call_faults"]) == (2, 1)


@both
def test_two_calls_with_one_id_get_two(kind: Kind, wire: Wire, database: Database) -> None:
    reply = called(kind, wire, database, PARIS, {**PARIS, "arguments": {"city": "Rome"}})
    assert [call.arguments for call in reply.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert len({call.id for call in reply.tool_calls}) == 2


@both
@pytest.mark.parametrize(
    "arguments", [{"city": "Paris"}, {}, {"city": "Zürich 🏔"}, {"at": 1e308}, {"deep": [[[{"a": None}]]]}]
)
def test_a_call_and_its_result_go_on_the_conversation(
    kind: Kind, arguments: dict[str, Any], wire: Wire, database: Database
) -> None:
    reply = called(kind, wire, database, {**PARIS, "arguments": arguments})
    (call,) = reply.tool_calls
    assert call.arguments == arguments
    wire.answers[kind.path] = says(kind)
    said = [*user(), reply.message(), Message(role=Role.TOOL, content="18 C", answers=call)]
    asks = gateway(database, kind.settings(wire.url))
    assert asks.chat(said, run_id="r-2", tools=[WEATHER]).content == "Sunny."
    _, asking, answering = wire.asked_for(kind.path)[-1].body["messages"]
    sent = asking["tool_calls"][0]["function"]["arguments"]
    assert (sent if kind is NATIVE else json.loads(sent)) == arguments
    assert answering["role"] == "tool"
    assert answering["content"] == "18 C"


def test_a_reply_with_a_call_that_was_at_fault_can_be_sent_on(wire: Wire, database: Database) -> None:
    for written in ("{", "[]", '{"city": 1e999}', '{"city": "\\ud800"}', ""):
        reply = called(HOSTED, wire, database, {**PARIS, "arguments": written})
        (call,) = reply.tool_calls
        wire.answers[HOSTED.path] = says(HOSTED)
        said = [*user(), reply.message(), Message(role=Role.TOOL, content="not usable", answers=call)]
        asks = gateway(database, HOSTED.settings(wire.url))
        assert asks.chat(said, run_id="r-2", tools=[WEATHER], deadline_s=2).content == "Sunny.", written


# The record


@both
def test_no_word_of_a_prompt_or_an_answer_is_in_the_database(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = in_turn(
        says(kind, Said(pieces=("Wombat", " says", " sunny"))),
        says(kind, Said(pieces=("Wombat",), reason=None)),
        refusal(kind.error_body("Wombat is wrong with Zebrafinch"), status=400),
        says(kind, Said(pieces=(), calls=({**PARIS, "arguments": {"city": "Wombat"}},))),
    )
    asks = gateway(database, kind.settings(wire.url))
    assert asks.chat(user(), run_id="r-1").content == "Wombat says sunny"
    for run_id, error in (("r-2", ModelUnavailable), ("r-3", InvalidRequest)):
        with pytest.raises(error):
            asks.chat(user(), run_id=run_id)
    asks.chat(user(), run_id="r-4", tools=[WEATHER])
    kept = calls_on_record(database)
    assert [one["run_id"] for one in kept] == ["r-1", "r-2", "r-3", "r-4"]
    for marker in ("Wombat", "Zebrafinch", KEY.replace("-", "")[2:], "weather"):
        assert traces(database, marker) == [], marker


@both
def test_every_call_has_one_record_and_it_has_ended(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = in_turn(says(kind), broken(kind, "hang up"), says(kind))
    asks = gateway(database, kind.settings(wire.url))
    for run_id in ("r-1", "r-2"):
        reply = asks.chat(user(), run_id=run_id)
        (kept,) = [one for one in calls_on_record(database) if one["run_id"] == run_id]
        assert kept["call_id"] == reply.call_id
        assert kept["ended_at"] is not None
        assert kept["counted_tokens"] == 52
        assert kept["first_chunk_ms"] <= kept["first_answer_ms"] <= kept["total_ms"]
        assert kept["queue_ms"] >= 0


# Cancelled


@both
@pytest.mark.parametrize("after", [0, 1])
def test_a_call_that_another_thread_cancels_ends_at_once_and_is_on_record(
    kind: Kind, after: int, wire: Wire, database: Database
) -> None:
    said = Said(pieces=("Sun",) * after, reason=None)
    wire.answers[kind.path] = says(kind, said, end="open") if after else never
    stream = gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1", deadline_s=30)

    def cancel() -> None:
        until(lambda: wire.asked_for(kind.path))
        time.sleep(0.2)
        stream.cancel()

    threading.Thread(target=cancel).start()
    with within(3), pytest.raises(CallCancelled):
        list(stream)
    kept = only_record(database)
    assert (kept["error_code"], kept["attempts"], kept["finish_reason"]) == ("gateway.cancelled", 1, None)


@both
def test_a_stream_that_is_left_early_is_a_cancelled_call(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind, Said(pieces=("a",) * 20), pause_s=0.02)
    with gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1") as stream:
        assert next(stream).text == "a"
    kept = only_record(database)
    assert (kept["error_code"], kept["finish_reason"]) == ("gateway.cancelled", None)
    with pytest.raises(CallCancelled):
        _ = stream.reply


@both
def test_a_stream_that_nobody_reads_sends_nothing(kind: Kind, wire: Wire, database: Database) -> None:
    with gateway(database, kind.settings(wire.url)).stream(user(), run_id="r-1"):
        pass
    assert wire.asked == []


@both
def test_an_error_in_whoever_listens_leaves_a_record(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind)
    asks = gateway(database, kind.settings(wire.url))

    def listen() -> None:
        with asks.stream(user(), run_id="r-1") as stream:
            raise ZeroDivisionError(next(stream))

    with pytest.raises(ZeroDivisionError):
        listen()
    assert only_record(database)["error_code"] == "gateway.cancelled"


def test_after_a_cancelled_call_ollama_counts_as_busy_until_it_is_done(wire: Wire, database: Database) -> None:
    gauge = Gauge()
    slow = says(NATIVE, Said(pieces=("a",) * 15), pause_s=0.05)
    wire.answers[NATIVE.path] = gauge.of(in_turn(slow, says(NATIVE)))
    asks = gateway(database, NATIVE.settings(wire.url))
    with asks.stream(user(), run_id="r-1") as stream:
        next(stream)
    assert gauge.done == 0
    reply = asks.chat(user(), run_id="r-2")
    assert reply.content == "Sunny."
    assert gauge.most == 1
    assert gauge.done >= 1
    assert reply.record.queue_ms is not None
    assert reply.record.queue_ms > 200  # of the 700 that were left


def test_a_hosted_model_is_hung_up_on_when_its_call_is_cancelled(wire: Wire, database: Database) -> None:
    gauge = Gauge()
    wire.answers[HOSTED.path] = gauge.of(says(HOSTED, Said(pieces=("a",) * 400), pause_s=0.02))
    with gateway(database, HOSTED.settings(wire.url)).stream(user(), run_id="r-1") as stream:
        next(stream)
    gauge.until(done=1, limit_s=3)  # writing it all would take eight seconds


def test_an_ollama_that_never_stops_keeps_its_slot_no_longer_than_a_deadline(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = in_turn(never, says(NATIVE))
    asks = gateway(database, NATIVE.settings(wire.url))
    with pytest.raises(DeadlineExceeded):
        asks.chat(user(), run_id="r-1", deadline_s=0.4)
    with within(3):
        assert asks.chat(user(), run_id="r-2", deadline_s=5).content == "Sunny."


# The queue


@contextmanager
def occupied(asks: Any, wire: Wire, kind: Kind, *, calls: int = 1) -> Iterator[Callable[[], None]]:
    """Have calls take every slot until the block ends, or what it is given is called."""
    gauge, go_on = Gauge(), threading.Event()

    def held(handler: Handler, asked: Asked) -> None:
        go_on.wait(timeout=20)
        says(kind)(handler, asked)

    wire.answers[kind.path] = gauge.of(held)
    with ThreadPoolExecutor(calls) as side:
        running = [side.submit(asks.chat, user(), run_id=f"holder-{number}") for number in range(calls)]
        gauge.until(now=calls)
        wire.answers[kind.path] = says(kind)
        try:
            yield go_on.set
        finally:
            go_on.set()
            for one in running:
                assert one.result(timeout=20).content == "Sunny."


def waiting_for(wire: Wire, kind: Kind) -> int:
    """Return how many calls wait for the model."""
    return len(queue_for(kind.provider, kind.settings(wire.url).model_address, MODEL)._waiting)


@both
def test_a_call_that_finds_the_queue_full_is_refused_at_once_and_on_record(
    kind: Kind, wire: Wire, database: Database
) -> None:
    asks = gateway(database, kind.settings(wire.url))
    slots = SLOTS[kind.provider]
    with occupied(asks, wire, kind, calls=slots) as go_on, ThreadPoolExecutor(MOST_WAITING) as side:
        waiting = [side.submit(asks.chat, user(), run_id=f"r-{number}") for number in range(MOST_WAITING)]
        until(lambda: waiting_for(wire, kind) == MOST_WAITING)
        with within(0), pytest.raises(ModelBusy, match="try again") as refused:
            asks.chat(user(), run_id="one-too-many")
        assert refused.value.retryable
        (kept,) = [one for one in calls_on_record(database) if one["run_id"] == "one-too-many"]
        assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == ("gateway.busy", 0, 0)
        go_on()
        assert {one.result(timeout=30).content for one in waiting} == {"Sunny."}


def test_who_came_first_is_served_first(wire: Wire, database: Database) -> None:
    asks = gateway(database, NATIVE.settings(wire.url))
    with occupied(asks, wire, NATIVE) as go_on, ThreadPoolExecutor(8) as side:
        waiting = []
        for number in range(8):
            waiting.append(side.submit(asks.chat, user(f"number {number}"), run_id=f"r-{number}"))
            until(lambda number=number: waiting_for(wire, NATIVE) == number + 1)
        go_on()
        for one in waiting:
            one.result(timeout=20)
    served = [asked.body["messages"][0]["content"] for asked in wire.asked_for(NATIVE.path)[1:]]
    assert served == [f"number {number}" for number in range(8)]


def test_a_call_that_gives_up_in_the_queue_leaves_it_usable(wire: Wire, database: Database) -> None:
    asks = gateway(database, NATIVE.settings(wire.url))
    with occupied(asks, wire, NATIVE):
        with within(0.3), pytest.raises(DeadlineExceeded, match="no turn"):
            asks.chat(user(), run_id="late", deadline_s=0.3)
        stream = asks.stream(user(), run_id="cancelled")
        threading.Timer(0.3, stream.cancel).start()
        with within(0.3), pytest.raises(CallCancelled):
            list(stream)
    for number in range(3):
        assert asks.chat(user(), run_id=f"after-{number}").content == "Sunny."
    kept = {one["run_id"]: one for one in calls_on_record(database)}
    assert kept["late"]["error_code"] == "gateway.deadline"
    assert kept["cancelled"]["error_code"] == "gateway.cancelled"
    assert kept["late"]["attempts"] == kept["cancelled"]["attempts"] == 0
    assert kept["late"]["counted_tokens"] == kept["cancelled"]["counted_tokens"] == 0
    assert len(wire.asked_for(NATIVE.path)) == 4


def busy(gauge: Gauge, kind: Kind, *, seconds: float) -> Answer:
    """Answer after a while of work that the gauge counts; what is sent then is sent at once."""

    def answer(handler: Handler, asked: Asked) -> None:
        gauge.of(lambda *_: time.sleep(seconds))(handler, asked)
        says(kind)(handler, asked)

    return answer


def test_twenty_at_once_are_all_answered_and_an_ollama_never_sees_two(wire: Wire, database: Database) -> None:
    gauge = Gauge()
    wire.answers[NATIVE.path] = busy(gauge, NATIVE, seconds=0.02)
    gateways = [gateway(database, NATIVE.settings(wire.url), org) for org in ("acme", "other")]
    with ThreadPoolExecutor(20) as side:
        replies = [side.submit(gateways[n % 2].chat, user(), run_id=f"r-{n}") for n in range(20)]
        assert {one.result(timeout=30).content for one in replies} == {"Sunny."}
    assert (gauge.most, gauge.done) == (1, 20)
    assert len(calls_on_record(database)) + len(calls_on_record(database, "other")) == 20


def test_a_hosted_model_sees_no_more_at_once_than_it_serves(wire: Wire, database: Database) -> None:
    gauge = Gauge()
    wire.answers[HOSTED.path] = busy(gauge, HOSTED, seconds=0.05)
    asks = gateway(database, HOSTED.settings(wire.url))
    with ThreadPoolExecutor(20) as side:
        replies = [side.submit(asks.chat, user(), run_id=f"r-{number}") for number in range(20)]
        assert {one.result(timeout=30).content for one in replies} == {"Sunny."}
    assert 1 < gauge.most <= SLOTS[HOSTED.provider]


# The ceiling of tokens a minute


@both
def test_a_ceiling_is_kept_for_all_processes_of_an_organisation(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind, Said(prompt_tokens=900, output_tokens=90))
    chosen = kind.settings(wire.url, model_tokens_per_minute=1000)
    gateway(database, chosen).chat(user(), run_id="r-1")
    with within(0.3), pytest.raises(RateLimited, match="MODEL_TOKENS_PER_MINUTE") as refused:
        gateway(database, chosen).chat(user(), run_id="r-2", deadline_s=0.3)
    assert refused.value.retry_after_s == pytest.approx(60, abs=5)
    assert len(wire.asked_for(kind.path)) == 1
    first, second = calls_on_record(database)
    assert (first["counted_tokens"], second["counted_tokens"]) == (990, 0)
    assert (second["error_code"], second["attempts"]) == ("gateway.rate_limited", 0)
    assert gateway(database, chosen, "another").chat(user(), run_id="r-3").content == "Sunny."


def test_a_call_waits_for_tokens_where_its_deadline_allows(wire: Wire, database: Database) -> None:
    chosen = HOSTED.settings(wire.url, model_tokens_per_minute=420, model_max_output_tokens=300)
    first, second = gateway(database, chosen), gateway(database, chosen)
    with occupied(first, wire, HOSTED) as go_on, ThreadPoolExecutor(1) as side:
        waiting = side.submit(second.chat, user(), run_id="waits", deadline_s=20)
        time.sleep(0.7)
        assert not waiting.done()
        assert len(wire.asked_for(HOSTED.path)) == 1
        go_on()  # it may have come to more than 300, and came to 52
        reply = waiting.result(timeout=15)
    assert reply.content == "Sunny."
    assert reply.record.total_ms > 600


@both
def test_a_prompt_that_alone_passes_the_ceiling_is_refused_for_ever(kind: Kind, wire: Wire, database: Database) -> None:
    chosen = kind.settings(wire.url, model_tokens_per_minute=prompt_tokens(user()))
    with pytest.raises(InvalidRequest, match="MODEL_TOKENS_PER_MINUTE"):
        gateway(database, chosen).chat(user(), run_id="r-1")
    assert wire.asked == []
    assert only_record(database)["error_code"] == "gateway.invalid_request"


def test_calls_at_once_never_pass_the_ceiling_together(wire: Wire, database: Database) -> None:
    each = prompt_tokens(user()) + 30
    wire.answers[HOSTED.path] = says(HOSTED, Said(prompt_tokens=each - 30, output_tokens=30), pause_s=0.02)
    chosen = HOSTED.settings(wire.url, model_tokens_per_minute=3 * each, model_max_output_tokens=30)
    gateways = [gateway(database, chosen) for _ in range(3)]
    refused = 0
    with ThreadPoolExecutor(9) as side:
        asked = [
            side.submit(gateways[n % 3].chat, user(), run_id=f"r-{n}", max_output_tokens=30, deadline_s=1)
            for n in range(9)
        ]
        for one in asked:
            try:
                one.result(timeout=20)
            except (NotNow, DeadlineExceeded):
                refused += 1
    counted = sum(one["counted_tokens"] for one in calls_on_record(database))
    assert counted <= 3 * each
    assert refused >= 6


# The database


@both
def test_without_the_database_nothing_is_sent(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind)
    asks = gateway(database, kind.settings(wire.url))
    with away(database), pytest.raises(DatabaseError):
        asks.chat(user(), run_id="r-1")
    assert wire.asked == []
    assert asks.chat(user(), run_id="r-2").content == "Sunny."


@both
def test_a_database_that_goes_away_during_a_call_costs_no_answer_and_no_record(
    kind: Kind, wire: Wire, database: Database
) -> None:
    asks = gateway(database, kind.settings(wire.url))
    began, go_on = threading.Event(), threading.Event()

    def held(handler: Handler, asked: Asked) -> None:
        began.set()
        go_on.wait(timeout=20)
        says(kind)(handler, asked)

    wire.answers[kind.path] = in_turn(held, says(kind))
    with ThreadPoolExecutor(1) as side:
        reply = side.submit(asks.chat, user(), run_id="r-1")
        assert began.wait(timeout=10)
        with away(database):
            go_on.set()
            assert reply.result(timeout=20).content == "Sunny."
            assert only_record(database)["ended_at"] is None
    asks.chat(user(), run_id="r-2")
    first, second = calls_on_record(database)
    assert (first["finish_reason"], first["error_code"], first["counted_tokens"]) == ("stop", None, 52)
    assert (second["finish_reason"], second["error_code"]) == ("stop", None)


# Nothing is left behind


@both
def test_no_connection_is_left_open_when_servers_are_closed(kind: Kind, database: Database) -> None:
    with Wire(keep_alive=True) as server:
        server.answers[kind.path] = in_turn(says(kind), broken(kind, "500"), says(kind))
        asks = gateway(database, kind.settings(server.url))
        for number in range(4):
            asks.chat(user(), run_id=f"r-{number}")
        close_servers()
        until(lambda: server.open_connections == 0, limit_s=5)


@both
def test_no_thread_is_left_when_calls_are_over(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = in_turn(says(kind), broken(kind, "half a line, cut"), says(kind, end="open"), says(kind))
    asks = gateway(database, kind.settings(wire.url))
    for number in range(4):
        asks.chat(user(), run_id=f"r-{number}")
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "model"], limit_s=5)


@both
def test_an_answer_of_nothing_is_an_answer(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind, Said(pieces=()))
    reply = gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1")
    assert (reply.content, reply.tool_calls, reply.finish_reason) == ("", (), "stop")
    kept = only_record(database)
    assert (kept["first_chunk_ms"], kept["first_answer_ms"]) == (None, None)


def test_a_newer_hosted_model_is_asked_with_the_newer_word_for_the_cap(wire: Wire, database: Database) -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    wire.answers[HOSTED.path] = in_turn(refusal(HOSTED.error_body(words), status=400), says(HOSTED))
    asks = gateway(database, HOSTED.settings(wire.url))
    for run_id in ("r-1", "r-2"):
        assert asks.chat(user(), run_id=run_id).content == "Sunny."
    assert ["max_tokens" in asked.body for asked in wire.asked] == [True, False, False]
    assert wire.asked[-1].body["max_completion_tokens"] == 200


@both
def test_a_server_that_echoes_json_in_a_json_error_is_quoted_plainly(
    kind: Kind, wire: Wire, database: Database
) -> None:
    inner = json.dumps({"error": {"message": "m does\nnot support chat", "code": 400}})
    wire.answers[kind.path] = as_json({"error": inner}, status=400)
    with pytest.raises(InvalidRequest, match=r"\(400\): does not support chat$") as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1")
    says_nothing_secret(failed.value)


def test_a_call_that_waits_for_tokens_can_be_cancelled(wire: Wire, database: Database) -> None:
    wire.answers[HOSTED.path] = says(HOSTED, Said(prompt_tokens=900, output_tokens=90))
    asks = gateway(database, HOSTED.settings(wire.url, model_tokens_per_minute=1000))
    asks.chat(user(), run_id="r-1")
    stream = asks.stream(user(), run_id="r-2", deadline_s=600)
    threading.Timer(0.3, stream.cancel).start()
    with within(0.3), pytest.raises(CallCancelled):
        list(stream)
    assert [one["error_code"] for one in calls_on_record(database)] == [None, "gateway.cancelled"]


def test_a_call_written_so_deep_that_it_cannot_be_read_is_an_answer_with_a_record(
    wire: Wire, database: Database
) -> None:
    asks = gateway(database, NATIVE.settings(wire.url))
    for depth in (200, 900, *range(940, 1000, 3), 5000):
        nested = "[" * depth + "]" * depth
        written = f'{{"name": "get_weather", "arguments": {{"city": {nested}}}}}'
        wire.answers[NATIVE.path] = says(NATIVE, Said(pieces=(written,)))
        reply = asks.chat(user(), run_id="r-1", tools=[WEATHER])
        assert reply.tool_calls or reply.content == written
    assert all(one["finish_reason"] for one in calls_on_record(database))
