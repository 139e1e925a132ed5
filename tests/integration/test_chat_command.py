"""The commands about the chat model: chat, pull, doctor."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator

import pytest
from conftest import Database, OpenStore
from fakes import observation
from rows import execute
from wire import RECORDED, Wire, lines, recorded

from memory_core import Subject
from memory_core.cli import main
from memory_core.gateway.servers import close_servers

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded exchanges are not here (../shared)")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ollama() -> Iterator[Wire]:
    with Wire(keep_alive=True) as wire:
        wire.answers["/api/version"] = recorded("version")
        wire.answers["/api/show"] = recorded("show_thinking_model")
        wire.answers["/api/tags"] = recorded("tags")
        wire.answers["/api/ps"] = recorded("ps_loaded")
        wire.answers["/api/chat"] = recorded("chat_stream_plain")
        yield wire
    close_servers()


@pytest.fixture
def run(database: Database, ollama: Wire, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MODEL_API_KEY", "ollama")
    monkeypatch.setenv("MODEL_BASE_URL", ollama.url)

    def command(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(arguments)
        except SystemExit as usage:
            status = int(usage.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


def line(content: str, **more: object) -> str:
    return json.dumps({"model": "m", "message": {"role": "assistant", "content": content}, "done": False, **more})


def test_chat_prints_the_answer_and_says_where_the_time_went(run: Run) -> None:
    status, out, err = run("chat", "Say hello.")
    assert (status, out) == (0, "Awesome, welcome to the world of the sea!\n")
    assert "prompt 15" in err
    assert "generation 496 ms" in err
    assert err.count("\n") == 1


def test_chat_sends_what_is_remembered_as_a_message_of_its_own_and_discloses_it(
    run: Run, ollama: Wire, open_store: OpenStore
) -> None:
    store = open_store()
    store.remember(**observation("Could start after a two-month notice period.", subject=Subject("candidate", "c-81")))
    assert run("chat", "How soon?", "--run", "r-9")[0] == 0
    (asked,) = ollama.asked_for("/api/chat")
    block, prompt = asked.body["messages"]
    assert block["role"] == prompt["role"] == "user"
    assert block["content"].startswith("<memories boundary=")
    assert "A memory is never a reason on its own to accept or reject anybody." in block["content"]
    assert prompt["content"] == "How soon?"
    (held,) = store.held(Subject("candidate", "c-81")).memories
    assert [one.run_id for one in held.disclosures] == ["r-9"]


def test_chat_without_memory_discloses_nothing(run: Run, ollama: Wire, open_store: OpenStore) -> None:
    store = open_store()
    store.remember(**observation("Could start in March.", subject=Subject("candidate", "c-81")))
    assert run("chat", "How soon?", "--no-memory")[0] == 0
    assert len(ollama.asked_for("/api/chat")[0].body["messages"]) == 1
    assert store.held(Subject("candidate", "c-81")).memories[0].disclosures == ()


def test_chat_without_a_configured_model_says_so_and_discloses_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    store = open_store()
    store.remember(**observation("Could start in March.", subject=Subject("candidate", "c-81")))
    monkeypatch.setenv("MODEL_API_KEY", "")
    status, out, err = run("chat", "How soon?")
    assert (status, out) == (1, "")
    assert err.startswith("no chat model is configured: set MODEL_API_KEY")
    assert store.held(Subject("candidate", "c-81")).memories[0].disclosures == ()


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        (b"How soon can Zo\xc3\xab start?\n", "How soon can Zoë start?"),
        (b"two\nlines", "two\nlines"),
        (b"-\n", "-"),
        (b"not \xff UTF-8", "not \ufffd UTF-8"),
    ],
)
def test_a_dash_reads_the_prompt_from_standard_input(
    given: bytes, prompt: str, run: Run, ollama: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    status, out, _ = run("chat", "-")
    assert (status, out) == (0, "Awesome, welcome to the world of the sea!\n")
    (asked,) = ollama.asked_for("/api/chat")
    assert [message["content"] for message in asked.body["messages"]] == [prompt]


@pytest.mark.parametrize("given", [b"", b" \n", None])
def test_standard_input_without_a_prompt_is_refused_in_one_line(
    given: bytes | None, run: Run, ollama: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None if given is None else io.TextIOWrapper(io.BytesIO(given)))
    status, out, err = run("chat", "-")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert ollama.asked_for("/api/chat") == []


def test_an_answer_acts_on_no_terminal(run: Run, ollama: Wire) -> None:
    ollama.answers["/api/chat"] = lines(line("a\x1b[2Jb\nc\u202e"), line("", done=True, done_reason="stop"))
    status, out, _ = run("chat", "hi", "--no-memory")
    assert (status, out) == (0, "a [2Jb\nc \n")


def test_chat_in_json_is_ascii_and_whole(run: Run, ollama: Wire) -> None:
    ollama.answers["/api/chat"] = lines(line("Zoë \x1b[2J"), line("", done=True, done_reason="stop", eval_count=3))
    status, out, err = run("chat", "hi", "--json")
    assert (status, err) == (0, "")
    assert out.isascii()
    answer = json.loads(out)
    assert answer["content"] == "Zoë \x1b[2J"
    assert answer["record"]["output_tokens"] == 3


def test_a_failed_call_is_one_line_and_on_record(run: Run, ollama: Wire, database: Database) -> None:
    ollama.answers["/api/chat"] = recorded("chat_unknown_model")
    status, out, err = run("chat", "hi")
    assert (status, out) == (1, "")
    assert "python -m memory_core pull qwen3:0.6b" in err
    assert err.count("\n") == 1
    assert execute(database, "SELECT error_code FROM model_call") == [("gateway.invalid_request",)]


@pytest.mark.parametrize(
    "arguments",
    [["chat", "hi", "--run", "a b"], ["chat", ""], ["chat", "hi", "--limit", "0"]],
)
def test_what_cannot_be_is_refused_in_one_line(run: Run, ollama: Wire, arguments: list[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert ollama.asked_for("/api/chat") == []


def test_a_tier_that_is_none_is_a_usage_error_and_discloses_nothing(run: Run, open_store: OpenStore) -> None:
    store = open_store()
    store.remember(**observation("Could start in March.", subject=Subject("candidate", "c-81")))
    assert run("chat", "How soon?", "--tier", "best")[0] == 2
    assert store.held(Subject("candidate", "c-81")).memories[0].disclosures == ()


# The doctor


def test_the_doctor_exits_with_0_where_a_run_would_work(run: Run) -> None:
    status, out, err = run("doctor")
    assert (status, err) == (0, "")
    assert out.endswith("A run would work.\n")
    assert all(line.startswith(("ok ", "warn")) for line in out.splitlines()[:-1])


def test_the_doctor_exits_with_1_where_a_run_would_fail(run: Run, ollama: Wire) -> None:
    ollama.answers["/api/show"] = recorded("show_unknown_model")
    status, out, _ = run("doctor")
    assert status == 1
    assert "type: python -m memory_core pull qwen3:0.6b" in out


def test_the_doctor_answers_in_json_without_the_key(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "sk-very-secret")
    status, out, _ = run("doctor", "--json")
    assert status == 0
    assert json.loads(out)["works"] is True
    assert "sk-very-secret" not in out


# Pulling. No pull was recorded: these lines are made by the shape that Ollama documents.

PULLED = [
    {"status": "pulling manifest"},
    {"status": "pulling 7f4030143c1c", "digest": "sha256:7f40", "total": 522640000},
    {"status": "pulling 7f4030143c1c", "digest": "sha256:7f40", "total": 522640000, "completed": 261320000},
    {"status": "verifying sha256 digest"},
    {"status": "writing manifest"},
    {"status": "success"},
]


def test_pull_shows_its_steps_and_says_that_the_model_is_there(run: Run, ollama: Wire) -> None:
    ollama.answers["/api/pull"] = lines(*map(json.dumps, PULLED))
    status, out, _ = run("pull", "qwen3:0.6b")
    assert (status, out) == (0, "qwen3:0.6b is there\n")
    assert ollama.asked_for("/api/pull")[0].body["model"] == "qwen3:0.6b"


@pytest.mark.parametrize(
    ("answered", "says"),
    [
        ([PULLED[0], {"error": "pull model manifest: file does not exist"}], "there is no model"),
        (PULLED[:3], "stopped before its end"),
        ([{"error": "max retries exceeded: no space left on device"}], "failed on its side"),
    ],
)
def test_a_pull_that_fails_is_one_line(run: Run, ollama: Wire, answered: list[dict[str, object]], says: str) -> None:
    import re

    ollama.answers["/api/pull"] = lines(*map(json.dumps, answered))
    status, out, err = run("pull", "no-such-model")
    assert (status, out) == (1, "")
    assert re.search(says, err.splitlines()[-1])


@pytest.mark.parametrize("model", ["a b", "", "x" * 129, "../../etc/passwd\n"])
def test_a_name_that_is_no_model_is_refused_before_anything_is_sent(run: Run, ollama: Wire, model: str) -> None:
    status, _, err = run("pull", model)
    assert status == 1
    assert err.count("\n") == 1
    assert ollama.asked == []


def test_a_hosted_model_is_not_pulled(run: Run, ollama: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_PROVIDER", "openai")
    for tier in ("FAST", "BALANCED", "DEEP"):
        monkeypatch.setenv(f"MODEL_{tier}", "gpt")
    status, _, err = run("pull", "gpt")
    assert status == 1
    assert "only an Ollama pulls models" in err
