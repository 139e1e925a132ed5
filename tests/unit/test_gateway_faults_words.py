"""Of a server's words only known harmless ones are handed on; when it wants to be asked again is read or is none."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wire import RECORDED

from memory_core.config import Provider
from memory_core.errors import GatewayError, InvalidRequest, ModelBusy, ModelUnavailable, RateLimited, Unauthorized
from memory_core.gateway.faults import (
    LONGEST_PAUSE_S,
    MOST_WORDS,
    NOTHING_MORE,
    Server,
    cut_short,
    refused_with,
    retry_after,
    said_by,
    unreachable,
)

KEY = "sk-Zq9vTop3Secret7key"
SERVER = Server(address="http://host:11434", provider=Provider.OLLAMA, key=KEY)
HOSTED = Server(address="https://host/v1", provider=Provider.OPENAI, key=KEY)
NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)


# What is said


def error_of(response: dict[str, Any]) -> str | None:
    """Return what a recorded answer says of its failure, or None where it is none."""
    if response["status"] >= 400:
        body = response.get("body", "")
        return body if isinstance(body, str) else json.dumps(body)
    return next((line for line in response.get("lines", ()) if line.startswith('{"error"')), None)


# By the beginning of its name, what of a recorded error is handed on; of any other nothing is.
NEEDED = {
    "chat_bad_options_type": 'option "num_ctx" must be of type integer',
    "chat_embedding_model": "does not support chat",
    "chat_empty_body": "missing request body",
    "chat_format_bogus": "invalid format",
    "chat_keep_alive_bogus": "time: invalid duration",
    "chat_model_missing": "model is required",
    "chat_native_jinja_no_tools_model_tools": "does not support tools",
    "chat_num_ctx_one_long_message_truncate_false": "request (1681 tokens) exceeds the available context size (256 tokens)",
    "chat_stream_runner_killed": "an error was encountered while running the model: unexpected EOF",
    "chat_think_bogus_string": "invalid think value",
    "chat_think_low_nonthinking": "does not support thinking",
    "chat_think_number": "think must be a boolean or string",
    "chat_think_true_nonthinking": "does not support thinking",
    "chat_tools_unsupported_model": "does not support tools",
    "chat_unknown_model": "not found",
    "embed_too_long_truncate_false": "exceeds the context length",
    "embed_unknown_model": "not found",
    "queue_overflow_503": "server busy, please try again. maximum pending requests exceeded",
    "show_empty_model": "model is required",
    "show_invalid_name": "invalid model name",
    "show_missing_body": "missing request body",
    "show_unknown_model": "not found",
    "unknown_path": "404 page not found",
    "v1_chat_embedding_model": "does not support chat",
    "v1_chat_missing_model": "model is required",
    "v1_chat_nonstream_runner_killed": "an error was encountered while running the model: unexpected EOF",
    "v1_chat_reasoning_effort_bogus": "invalid reasoning value",
    "v1_chat_reasoning_effort": "does not support thinking",
    "v1_chat_reasoning_object": "does not support thinking",
    "v1_chat_tools_unsupported_model": "does not support tools",
    "v1_chat_unknown_model": "not found",
    "v1_unknown_path": "404 page not found",
}


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"there are no recorded exchanges in {RECORDED}")
def test_of_each_recorded_error_what_helps_is_handed_on() -> None:
    recorded = {path.stem: json.loads(path.read_text())["response"] for path in RECORDED.glob("*.json")}
    said = {name: said_by(words) for name, response in recorded.items() if (words := error_of(response)) is not None}
    for begins, needed in NEEDED.items():
        matching = {name: words for name, words in said.items() if name.startswith(begins)}
        assert matching, begins
        for name, words in matching.items():
            if next(known for known in NEEDED if name.startswith(known)) == begins:
                assert needed in words, name


@pytest.mark.parametrize(
    "wrapped",
    [
        "does not support tools",
        "DOES NOT SUPPORT TOOLS",
        "registry.ollama.ai/library/x:1b does not\n support \t tools",
        '{"error": "m does not support tools"}',
        '{"error": {"message": "m does not support tools", "type": "api_error"}}',
        '{"message": "m does not support tools"}',
        json.dumps({"error": json.dumps({"error": {"message": "m does not support tools"}})}),
    ],
)
def test_what_is_known_to_be_harmless_is_taken_out_of_what_it_is_wrapped_in(wrapped: str) -> None:
    assert said_by(wrapped).lower() == "does not support tools"


@pytest.mark.parametrize(
    "words",
    [
        "",
        " \n\x00\u200b",
        "model is broken",
        '{"error": ""}',
        '{"error": null}',
        "[1, 2]",
        '{"detail": "no"}',
        "{" * 100_000,
        "[" * 100_000,
        "x" * 10_000_000,
        "\ud800",
    ],
    ids=lambda words: words[:12].encode("ascii", "backslashreplace").decode() or "nothing",
)
def test_of_anything_else_nothing_is_handed_on(words: str) -> None:
    assert said_by(words) == NOTHING_MORE


@given(words=st.text() | st.recursive(st.text(), lambda inner: st.fixed_dictionaries({"error": inner})).map(json.dumps))
@example("prompt exceeds the context length")
@example("the input (of 5 tokens) exceeds the context length")
@example("model 'a' not found; " * 200)
@example("server busy bad gateway service unavailable unexpected EOF no space left on device file does not exist " * 3)
def test_whatever_is_said_is_one_short_line(words: str) -> None:
    said = said_by(words)
    assert 0 < len(said) <= MOST_WORDS
    assert said.isprintable()
    assert said == said.strip()
    assert "  " not in said


def test_nothing_is_said_twice() -> None:
    for words in (
        "an error was encountered while running the model: unexpected EOF",
        "request (1681 tokens) exceeds the available context size (256 tokens), try increasing it",
        "model 'm' not found, try pulling it first",
    ):
        parts = said_by(words).split("; ")
        assert not [one for one in parts for other in parts if one is not other and one.strip() in other], parts


NAME = "Zebrafinch"  # of somebody, in a prompt
# The beginnings and ends between which a server may put what it was sent, the known ones first.
AROUND = [
    ("model '", "' not found"),
    ('model "', '" not found, try pulling it first'),
    ("model ", " not found"),
    ("The model `", "` does not exist"),
    ("", " does not exist"),
    ("'", "' is not available"),
    ("", " model does not exist"),
    ('option "', '" must be of type integer'),
    ("Unsupported parameter: '", "' is not supported"),
    ("Unsupported value: '", "'"),
    ("Unrecognized request argument supplied: ", ""),
    ("Invalid value for '", "' = hex"),
    ("an error was encountered while running the model: ", ""),
    ("an error was encountered while running the model: asked for ", ""),
    ("maximum context length is 5 tokens: ", " exceeds the context size"),
    ('invalid format: "', '"'),
    ('time: invalid duration "', '"'),
    ("model requires more system memory (", " GiB) than is available (5 GiB)"),
    ("server busy ", " maximum pending requests exceeded"),
    ("rate limit reached for ", " in organization"),
    ("Bearer ", ""),
    ("", ""),
]
CASES = [str, str.lower, str.upper, str.swapcase, str.title]
ESCAPES: list[Callable[[str], str]] = [
    str,
    lambda text: text[: len(text) * 2 // 3],
    lambda text: text[len(text) // 3 :],
    lambda text: json.dumps(text)[1:-1],
    lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    lambda text: "".join(f"%{ord(character):02X}" for character in text),
    lambda text: "".join(f"&#{ord(character)};" for character in text),
    lambda text: b64encode(text.encode()).decode(),
    lambda text: text.encode().hex(),
    " ".join,
    lambda text: text[::-1],
    lambda text: f"{text}{text}",
]
WRAPS: list[Callable[[str], str]] = [
    str,
    lambda words: json.dumps({"error": words}),
    lambda words: json.dumps({"error": {"message": words, "type": "invalid_request_error"}}),
    lambda words: json.dumps({"error": json.dumps({"error": {"message": words}})}),
    lambda words: json.dumps({"detail": words}),
]


@given(
    secret=st.sampled_from([KEY, NAME]),
    case=st.sampled_from(CASES),
    escape=st.sampled_from(ESCAPES),
    around=st.sampled_from(AROUND),
    wrap=st.sampled_from(WRAPS),
    more=st.text(max_size=20),
)
@settings(max_examples=1000)
def test_neither_key_nor_prompt_comes_through_whatever_a_server_says_around_them(
    secret: str,
    case: Callable[[str], str],
    escape: Callable[[str], str],
    around: tuple[str, str],
    wrap: Callable[[str], str],
    more: str,
) -> None:
    sent = escape(case(secret))
    said = said_by(wrap(f"{around[0]}{sent}{around[1]}{more}"))
    # A part that is long enough to be told from the words around it.
    kept = [sent[at : at + 6] for at in range(len(sent) - 5) if sent[at : at + 6].lower() in said.lower()]
    assert not kept, said


@pytest.mark.parametrize(("before", "after"), AROUND)
@pytest.mark.parametrize("secret", [KEY, NAME])
def test_no_known_message_carries_what_stands_in_its_middle(secret: str, before: str, after: str) -> None:
    for case in CASES:
        assert secret.lower() not in said_by(f"{before}{case(secret)}{after}").lower()


# Which kind it is


@given(status=st.integers(300, 599), words=st.text(), server=st.sampled_from([SERVER, HOSTED]))
def test_every_status_is_a_gateways_error_of_one_line_that_names_where_or_what(
    status: int, words: str, server: Server
) -> None:
    error = refused_with(status, words, server=server, model="some-model", retry_after_s=None)
    assert isinstance(error, GatewayError)
    said = str(error)
    assert said.isprintable()
    assert server.address in said or "some-model" in said
    assert KEY not in said


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (301, "", InvalidRequest),
        (400, "", InvalidRequest),
        (401, "", Unauthorized),
        (403, "", Unauthorized),
        (404, "", InvalidRequest),
        (405, "", InvalidRequest),
        (408, "", ModelUnavailable),
        (413, "", InvalidRequest),
        (422, "", InvalidRequest),
        (429, "", RateLimited),
        (500, "", ModelUnavailable),
        (500, 'option "num_ctx" must be of type integer', InvalidRequest),
        (501, "does not support embeddings", InvalidRequest),
        (502, "", ModelUnavailable),
        (503, "", ModelUnavailable),
        (503, "server busy, please try again.", ModelBusy),
        (503, "SERVER BUSY", ModelBusy),
        (504, "", ModelUnavailable),
        (529, "overloaded", ModelUnavailable),
    ],
)
def test_a_status_says_whether_trying_again_can_help(status: int, words: str, kind: type[GatewayError]) -> None:
    for server in (SERVER, HOSTED):
        assert type(refused_with(status, words, server=server, model="m", retry_after_s=None)) is kind


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("model 'm' not found", "pull m"),
        ('model "m" not found, try pulling it first', "pull m"),
        ("404 page not found", "MODEL_BASE_URL"),
    ],
)
def test_a_404_of_ollama_is_a_model_that_is_not_there_or_an_address_that_is_not_its(words: str, told: str) -> None:
    error = refused_with(404, words, server=SERVER, model="m", retry_after_s=None)
    assert told in str(error)


def test_a_404_of_a_hosted_model_never_says_to_pull_it() -> None:
    for words in ("The model `m` does not exist", "", "<html>404</html>"):
        assert "pull" not in str(refused_with(404, words, server=HOSTED, model="m", retry_after_s=None))


@pytest.mark.parametrize(
    "words",
    [
        "request (1681 tokens) exceeds the available context size (256 tokens), try increasing it",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "the input length exceeds the context length",
        "prompt exceeds context window",
    ],
)
def test_a_prompt_that_does_not_fit_says_so_in_every_servers_words(words: str) -> None:
    error = refused_with(400, words, server=HOSTED, model="m", retry_after_s=None)
    assert type(error) is InvalidRequest
    assert "does not fit the context" in str(error)


def test_a_wait_that_was_asked_for_is_on_the_error() -> None:
    for status in (429, 503):
        error = refused_with(status, "busy", server=HOSTED, model="m", retry_after_s=7.0)
        assert getattr(error, "retry_after_s", None) == 7.0


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError(KEY),
        httpx.ConnectTimeout(KEY),
        ConnectionError(KEY),
        httpx.ReadError(KEY),
        httpx.RemoteProtocolError(KEY),
        ValueError(KEY),
        KeyError(KEY),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_broken_connection_is_unavailable_and_names_the_address(error: Exception) -> None:
    for server in (SERVER, HOSTED):
        failure = unreachable(error, server=server)
        assert type(failure) is ModelUnavailable
        assert server.address in str(failure)
        assert KEY not in str(failure)
        assert ("ollama serve" in str(failure)) <= (server is SERVER)


def test_an_answer_that_stops_is_unavailable() -> None:
    assert type(cut_short(SERVER)) is ModelUnavailable
    assert SERVER.address in str(cut_short(SERVER))


# When to ask again


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        ("7", 7),
        (" 7 ", 7),
        ("1.5", 1.5),
        ("-1", None),
        ("soon", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
        ("7 s", None),
        ("999999999999", LONGEST_PAUSE_S),
        ("9" * 400, None),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30),
        (format_datetime(NOW - timedelta(hours=1), usegmt=True), 0),
        ("Mon, 02 Nov 2026 09:01:00 +0000", 60),
        ("Mon, 02 Nov 2026 10:01:00 +0100", 60),
        ("Mon, 02 Nov 2026 09:01:00 -0000", 60),
        ("Mon, 02 Nov 2026 09:01:00", 60),
        ("Fri, 01 Jan 9999 00:00:00 GMT", LONGEST_PAUSE_S),
        ("Mon, 99 Nov 2026 09:01:00 GMT", None),
        ("Mon, 02 Nov 2026 09:01:00 +9999", None),
        ("Mon, 01 Jan 0001 00:00:00 +2300", 0),
    ],
)
def test_a_wait_is_read_as_seconds_or_a_date_or_is_none(header: str | None, seconds: float | None) -> None:
    read = retry_after(header, now=NOW)
    if header == "Mon, 02 Nov 2026 09:01:00 +9999" or (header or "").startswith("Mon, 01 Jan 0001"):
        assert read is None or 0 <= read <= LONGEST_PAUSE_S  # nonsense either way
    else:
        assert read == seconds


DATES = st.builds(
    "{}, {} {} {} {}:{}:{} {}".format,
    st.sampled_from(["Mon", "Tue", "", "X"]),
    st.integers(-1, 40),
    st.sampled_from(["Nov", "Feb", "11", "", "November"]),
    st.integers(-5, 100_000),
    st.integers(-1, 30),
    st.integers(-1, 70),
    st.integers(-1, 70),
    st.sampled_from(["GMT", "+0000", "-0000", "+9999", "-2400", "EST", "", "+99999999999"]),
)


@given(header=st.text() | DATES | st.text("0123456789:,-+ GMTNovMon.", max_size=40))
@example(" ")
@example(", ")
@example("-")
@example("Mon, 02 Nov 2026 09:01")
@example("\x00")
def test_a_header_of_whatever_never_raises_and_never_waits_longer_than_a_day(header: str) -> None:
    for now in (NOW, None):
        seconds = retry_after(header, now=now)
        assert seconds is None or 0 <= seconds <= LONGEST_PAUSE_S
