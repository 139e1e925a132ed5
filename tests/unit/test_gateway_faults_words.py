"""What a server says of its failure is one short line without the key; when it wants to be asked again is read or is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core.config import Provider
from memory_core.errors import GatewayError, InvalidRequest, ModelBusy, ModelUnavailable, RateLimited, Unauthorized
from memory_core.gateway.faults import (
    LONGEST_PAUSE_S,
    MOST_WORDS,
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("model is broken", "model is broken"),
        ('{"error": "model is broken"}', "model is broken"),
        ('{"error": {"message": "model is broken", "type": "api_error"}}', "model is broken"),
        ('{"message": "model is broken"}', "model is broken"),
        (json.dumps({"error": json.dumps({"error": {"message": "model is broken"}})}), "model is broken"),
        ("two\nlines\r\nand\ttabs  and   spaces", "two lines and tabs and spaces"),
        ("", "it says nothing more"),
        (" \n\x00\u200b", "it says nothing more"),
        ('{"error": ""}', "it says nothing more"),
        ("[1, 2]", "[1, 2]"),
        ('{"error": null}', "null"),
        ('{"detail": "no"}', '{"detail": "no"}'),
        ("{" * 100_000, "{" * MOST_WORDS),
        ("[" * 100_000, "[" * MOST_WORDS),
    ],
    ids=lambda text: text[:24] or "nothing",
)
def test_the_words_are_taken_out_of_their_json(words: str, said: str) -> None:
    assert said_by(words, SERVER) == said


@given(words=st.text() | st.recursive(st.text(), lambda inner: st.fixed_dictionaries({"error": inner})).map(json.dumps))
def test_whatever_is_said_is_one_short_line(words: str) -> None:
    said = said_by(words, SERVER)
    assert 0 < len(said) <= MOST_WORDS
    assert said.isprintable()
    assert said == said.strip()


@given(
    before=st.text(max_size=40).map(lambda text: f"{text} "), after=st.text(max_size=40).map(lambda text: f" {text}")
)
def test_the_key_is_not_repeated(before: str, after: str) -> None:
    words = f"{before}{KEY}{after}"
    for form in (words, json.dumps({"error": words}), json.dumps({"error": json.dumps({"message": words})})):
        assert KEY not in said_by(form, SERVER)


@pytest.mark.parametrize(
    "words",
    [
        f"Bearer {KEY}",
        f"Bearer{KEY}",
        f"key={KEY}.",
        f"'{KEY}'",
        json.dumps({"detail": f"headers:\n{KEY}\nend"}),  # the escaped line break ends in a letter
        f"{KEY}{KEY}",
        f"x{KEY}x",
        f"{KEY}0",
        "x" * (MOST_WORDS - 5) + " " + KEY,
    ],
)
def test_a_key_that_something_is_glued_to_is_not_repeated_either(words: str) -> None:
    said = said_by(words, SERVER)
    assert KEY not in said
    assert KEY[: len(KEY) // 2] not in said


@pytest.mark.parametrize("key", ['a"quoted"key-123', "back\\slash\\key-123", "plus+and.dots*(key)"])
def test_a_key_of_any_characters_is_not_repeated(key: str) -> None:
    server = Server(address="http://host", provider=Provider.OPENAI, key=key)
    for words in (f"Bearer {key}", json.dumps({"error": f"Bearer {key}"}), json.dumps({"detail": f"Bearer {key}"})):
        said = said_by(words, server)
        assert key not in said
        assert json.dumps(key)[1:-1] not in said


def test_a_placeholder_for_a_key_takes_no_letters_out_of_words() -> None:
    server = Server(address="http://host", provider=Provider.OLLAMA, key="x")
    assert said_by("the context is exceeded by x", server) == "the context is exceeded by …"


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
