"""Neither the key, the prompt, the answer nor the environment goes anywhere but to the configured server."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator

import pytest
import wire as answers
from conftest import Database
from talking import (
    HOSTED,
    KEY,
    KINDS,
    NATIVE,
    PROMPT,
    SHOWS_TOOLS,
    WEATHER,
    Kind,
    Said,
    calls_on_record,
    gateway,
    says,
    serving,
    user,
    without_calls,
)
from wire import Answer, Wire, as_json, lines, refusal

from memory_core.doctor import model_checks
from memory_core.errors import GatewayError
from memory_core.gateway.pulling import pull
from memory_core.gateway.servers import close_servers

both = pytest.mark.parametrize("kind", KINDS, ids=repr)
ANSWER = "Wombat"  # nowhere but in an answer
SECRETS = (KEY, KEY[3:-3], "Zebrafinch", ANSWER)


@pytest.fixture
def database(standing: Database) -> Database:
    return without_calls(standing)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving(show=SHOWS_TOOLS) as server:
        yield server


# Errors that nobody catches

ECHO = f"bad input {PROMPT!r} with Bearer {KEY} after {ANSWER}"


def fails(kind: Kind, how: str) -> Answer:
    """Return a failure that repeats all that it was told."""
    said = kind.lines(Said(pieces=(ANSWER,), reason=None))
    event = "data: " if kind is HOSTED else ""
    return {
        "400": refusal(kind.error_body(ECHO), status=400),
        "400 of a list": refusal(json.dumps([ECHO]), status=400),
        "401": refusal(kind.error_body(ECHO), status=401),
        "404": refusal(kind.error_body(f"the model {ECHO} does not exist"), status=404),
        "429": refusal(kind.error_body(ECHO), status=429, retry_after="60"),
        "500": refusal(kind.error_body(ECHO), status=500, retry_after="60"),
        "an error line": lines(kind.error_line(ECHO), "", content_type=kind.content_type),
        "an error line later": lines(*said, kind.error_line(ECHO), "", content_type=kind.content_type),
        "no JSON": lines(f"{event}{ECHO}", "", content_type=kind.content_type),
        "no JSON later": lines(*said, f"{event}{ECHO}", "", content_type=kind.content_type),
        "another type": lines(
            event + json.dumps({"model": [ECHO], "message": ECHO, "choices": ECHO, "done": ECHO}),
            "",
            content_type=kind.content_type,
        ),
        "cut": lines(*said, content_type=kind.content_type, end="cut"),
        "no end": lines(*said, content_type=kind.content_type),
        "html": answers.text(f"<html>{ECHO}</html>", content_type="text/html"),
    }[how]


@both
@pytest.mark.parametrize(
    "how",
    [
        "400",
        "400 of a list",
        "401",
        "404",
        "429",
        "500",
        "an error line",
        "an error line later",
        "no JSON",
        "no JSON later",
        "another type",
        "cut",
        "no end",
        "html",
    ],
)
def test_an_error_that_nobody_catches_prints_neither_key_nor_prompt_nor_answer(
    kind: Kind, how: str, wire: Wire, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    wire.answers[kind.path] = fails(kind, how)
    with pytest.raises(GatewayError) as failed:
        gateway(database, kind.settings(wire.url)).chat(user(), run_id="r-1", deadline_s=0.7)
    printed = "".join(traceback.format_exception(failed.value))
    assert "memory_core" in printed
    for secret in SECRETS:
        assert secret not in printed
        assert secret not in caplog.text
        assert secret not in repr(failed.value)


@pytest.mark.parametrize("path", ["/api/version", "/api/show", "/api/ps", "/v1/models", "/api/pull"])
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_of_whatever_else_is_asked_prints_no_key(path: str, status: int, wire: Wire) -> None:
    wire.answers["/api/version"] = as_json({"version": "0.32.15"})
    wire.answers[path] = as_json({"error": ECHO, "version": ECHO, "data": ECHO, "models": ECHO}, status=status)
    kind = HOSTED if path.startswith("/v1") else NATIVE
    said = [f"{check.found} {check.mend}" for check in model_checks(kind.settings(wire.url))]
    if path == "/api/pull":
        with pytest.raises(GatewayError) as failed:
            pull(kind.settings(wire.url), "m")
        said = traceback.format_exception(failed.value)
    assert said
    for secret in SECRETS:
        assert secret not in "".join(said)


# What is sent

NEEDED = {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
ENVIRONMENT = {
    "OLLAMA_API_KEY": "ollama-environment",
    "OPENAI_API_KEY": "openai-environment",
    "OPENAI_ADMIN_KEY": "admin-environment",
    "OPENAI_ORG_ID": "org-environment",
    "OPENAI_PROJECT_ID": "project-environment",
    "OPENAI_CUSTOM_HEADERS": "X-Secret: custom-environment\nCookie: cookie-environment\nReferer: referer-environment",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/base-environment",
    "OLLAMA_HOST": "http://127.0.0.1:9/host-environment",
}


def sent_headers(wire: Wire) -> list[dict[str, str]]:
    return [{name.lower(): value for name, value in one.headers.items()} for one in wire.asked]


@both
def test_nothing_of_the_environment_is_sent(
    kind: Kind, wire: Wire, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    close_servers()  # or one that was made before is used
    wire.answers[kind.path] = says(kind)
    chosen = kind.settings(wire.url)
    gateway(database, chosen).chat(user(), run_id="r-1", tools=[WEATHER])
    list(model_checks(chosen))
    assert len(wire.asked) > 1
    for headers in sent_headers(wire):
        assert "environment" not in json.dumps(headers)
        assert set(headers) <= NEEDED | ({"authorization"} if kind is HOSTED else set())


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Bearer environment",
        "authorization: Bearer environment",
        "Host: environment",
        "User-Agent: environment",
        "Content-Type: environment",
        "Accept-Encoding: gzip",
    ],
)
def test_no_header_of_the_environment_takes_the_place_of_ours(
    header: str, wire: Wire, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", header)
    close_servers()
    wire.answers[HOSTED.path] = says(HOSTED)
    gateway(database, HOSTED.settings(wire.url)).chat(user(), run_id="r-1")
    (headers,) = sent_headers(wire)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["accept-encoding"] == "identity"
    assert "environment" not in json.dumps(headers)


def test_an_ollama_is_not_sent_the_key(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)
    gateway(database, NATIVE.settings(wire.url)).chat(user(), run_id="r-1", tools=[WEATHER])
    assert wire.asked
    assert KEY not in json.dumps(sent_headers(wire))


@both
def test_an_answer_is_asked_for_unpacked(kind: Kind, wire: Wire, database: Database) -> None:
    wire.answers[kind.path] = says(kind)
    chosen = kind.settings(wire.url)
    gateway(database, chosen).chat(user(), run_id="r-1", tools=[WEATHER])
    list(model_checks(chosen))
    assert {headers["accept-encoding"] for headers in sent_headers(wire)} == {"identity"}


# One organisation and another


def test_one_organisation_does_not_learn_from_the_cache_what_another_sent(wire: Wire, database: Database) -> None:
    wire.answers[NATIVE.path] = says(NATIVE)
    chosen = NATIVE.settings(wire.url)
    acme, other = gateway(database, chosen), gateway(database, chosen, "other")
    assert acme.chat(user(), run_id="r-1").record.cached is None
    assert other.chat(user(), run_id="r-2").record.cached is None  # its guess at acme's prompt is not confirmed
    assert acme.chat(user(), run_id="r-3").record.cached is True
    assert other.chat(user("something else " * 50), run_id="r-4").record.cached is False
    assert acme.chat(user(), run_id="r-5").record.cached is True
    assert [one["cached"] for one in calls_on_record(database, "other")] == [None, False]
