"""What the gateway makes of each exchange with a real Ollama that was recorded, replayed from a local server.

None of the recordings is of qwen3:0.6b, the default model: they are of smollm2:135m, gemma3:270m and models of the qwen2.5
family, one of them under a thinking template of our own. Bodies that came whole are replayed as a stream of one line to
the native client, and as the chunks of a stream (`as_a_stream`) to the one of chat completions: the gateway only ever
asks for streams. There is no recording of a pull; those answers are made here, in the shape that Ollama documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import Database
from talking import HOSTED, KEY, NATIVE, SHOWS_NEITHER, SHOWS_THINKING, Kind, Said, calls_on_record, gateway
from waiting import until
from wire import RECORDED, Answer, Wire, as_json, hang_up, html, lines, recorded, refusal, text

from memory_core.calls import FinishReason
from memory_core.embedders import Guarded, Ollama
from memory_core.errors import (
    BadVector,
    EmbedderUnavailable,
    GatewayError,
    InvalidRequest,
    ModelBusy,
    ModelUnavailable,
    Unauthorized,
)
from memory_core.gateway.conversation import Message, Role, Tool, ToolCall, ToolCallFault
from memory_core.gateway.inspection import Inspector
from memory_core.gateway.pulling import pull
from memory_core.gateway.servers import close_servers

replayed = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"there are no recorded exchanges in {RECORDED}")

STOP, LENGTH, OTHER, TOOLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.OTHER, FinishReason.TOOL_CALLS
HELLO = "Say hello in five words."


@dataclass(frozen=True)
class Asked:
    """A tool call as the reply has it."""

    name: str
    arguments: dict[str, Any]
    fault: ToolCallFault | None = None
    in_text: bool = False


PARIS = Asked("get_weather", {"city": "Paris"})
PARIS_IN_TEXT = Asked("get_weather", {"city": "Paris"}, in_text=True)
INVENTED = Asked("say_hello", {"message": "Hello, world!"}, ToolCallFault.UNKNOWN_TOOL, in_text=True)


@dataclass(frozen=True)
class Made:
    """What the gateway makes of an answer with status 200; what was said is taken from the recording itself."""

    prompt_tokens: int | None
    output_tokens: int | None
    reason: FinishReason
    cold: bool | None = False
    calls: tuple[Asked, ...] = ()
    effort: str | None = None
    was_cut: bool = False


@dataclass(frozen=True)
class Fails:
    """What the gateway makes of a failure, and whether it tries again."""

    error: type[GatewayError]
    words: str
    is_tried_again: bool = False
    effort: str | None = None


TAKES_NOT = Fails(InvalidRequest, r"does not take the request \(\d{3}\)")
NO_TOOLS = Fails(InvalidRequest, "cannot call tools; name a model that can")
NOT_THERE = Fails(InvalidRequest, "the model no-such-model.* is not on ")
OVERFLOWS = Fails(InvalidRequest, r"does not fit the context.*1681 tokens.*shorten it, or raise MODEL_NUM_CTX")
NO_EFFORT = Fails(InvalidRequest, "MODEL_REASONING_EFFORT.*unset it", effort="low")
NOTHING_SERVED = Fails(InvalidRequest, "nothing of the kind is served at .*check MODEL_BASE_URL")

NATIVE_CHATS: dict[str, Made | Fails] = {
    "chat_after_runner_killed": Made(10, 3, LENGTH, cold=True),
    "chat_bad_options_type": Fails(InvalidRequest, "must be of type integer"),  # 500, and will always be
    "chat_embedding_model": Fails(InvalidRequest, "does not support chat"),
    "chat_empty_body": TAKES_NOT,
    "chat_empty_messages_load": Made(None, None, OTHER, cold=None),
    "chat_format_bad_schema": Fails(InvalidRequest, "its words are left out"),  # it repeats the schema
    "chat_format_bogus": Fails(InvalidRequest, "invalid format"),  # 500, and will always be
    "chat_format_json": Made(19, 18, STOP),
    "chat_format_schema": Made(13, 17, STOP),
    "chat_get_method": TAKES_NOT,
    "chat_keep_alive_bogus": TAKES_NOT,
    "chat_keep_alive_minus1": Made(15, 2, LENGTH),
    "chat_keep_alive_string_10m": Made(15, 2, LENGTH),
    "chat_malformed_json": TAKES_NOT,
    "chat_malformed_json2": TAKES_NOT,
    "chat_model_missing": TAKES_NOT,
    "chat_native_jinja_model_no_template": Made(29, 12, LENGTH, cold=True),
    "chat_native_jinja_model_stream": Made(29, 6, LENGTH),
    "chat_native_jinja_no_tools_model_tools": NO_TOOLS,
    "chat_native_jinja_tools": Made(178, 17, TOOLS, cold=True, calls=(PARIS_IN_TEXT,)),
    "chat_native_jinja_tools_stream": Made(178, 17, TOOLS, calls=(PARIS_IN_TEXT,)),
    "chat_nonstream_plain": Made(15, 13, STOP, cold=True),
    "chat_nonstream_tools_toolcall": Made(155, 17, TOOLS, cold=True, calls=(PARIS,)),
    "chat_num_ctx_256_shift_default_past_context_end": Made(18, 600, LENGTH, cold=True),
    "chat_num_ctx_256_shift_false_hits_context_end": Made(18, 238, LENGTH, cold=True),
    "chat_num_ctx_negative": Made(3, 3, LENGTH),
    "chat_num_ctx_one_long_message_truncate_false": OVERFLOWS,
    "chat_num_ctx_one_long_message_truncate_false_stream": OVERFLOWS,
    "chat_num_ctx_over_model_max": Made(15, 3, LENGTH, cold=True),
    "chat_num_ctx_shift_default_past_context_end": Made(18, 150, LENGTH, cold=True),
    "chat_num_ctx_shift_false_hits_context_end": Made(18, 200, LENGTH, cold=True),
    "chat_num_ctx_truncation_one_long_message": Made(130, 8, STOP, was_cut=True),
    "chat_num_ctx_zero": Made(3, 3, LENGTH, cold=True),
    "chat_num_predict_0": Made(15, 13, STOP),
    "chat_num_predict_limit": Made(17, 6, LENGTH),
    "chat_stop_sequence": Made(15, 7, STOP, cold=True),
    "chat_stream_explicit_true": Made(15, 8, LENGTH),
    "chat_stream_num_predict_limit": Made(17, 6, LENGTH),
    "chat_stream_plain": Made(15, 13, STOP),
    "chat_stream_runner_killed": Fails(ModelUnavailable, "failed on its side.*unexpected EOF"),  # after the first token
    "chat_stream_tools_toolcall": Made(155, 17, TOOLS, calls=(PARIS,)),
    "chat_think_bogus_string": Fails(InvalidRequest, "MODEL_REASONING_EFFORT", effort="high"),
    "chat_think_false_nonthinking": Made(15, 5, LENGTH, effort="none"),
    "chat_think_false_thinking_model": Made(19, 1, STOP, effort="none"),
    "chat_think_low_nonthinking": NO_EFFORT,
    "chat_think_number": TAKES_NOT,
    "chat_think_true_nonthinking": NO_EFFORT,
    "chat_think_true_thinking_model": Made(16, 24, LENGTH, cold=True, effort="medium"),
    "chat_think_unset_thinking_model": Made(16, 24, LENGTH),
    "chat_tool_result_followup": Made(186, 26, TOOLS, calls=(PARIS,)),
    "chat_tools_empty_list_unsupported_model": Made(15, 5, LENGTH),
    "chat_tools_no_call_plain_answer": Made(
        146, 20, TOOLS, calls=(INVENTED,)
    ),  # its name says no call; the text is one
    "chat_tools_unsupported_model": NO_TOOLS,
    "chat_tools_unsupported_model_stream": NO_TOOLS,
    "chat_unknown_model": NOT_THERE,
    "chat_unknown_model_stream": NOT_THERE,
    "chat_unknown_option": Made(15, 3, LENGTH),
    "chat_unknown_role": Made(11, 3, LENGTH),
    "chat_with_keep_alive_0_then_ps": Made(15, 2, LENGTH, cold=True),
    "chat_wrong_type": TAKES_NOT,
    "keep_alive_0_unload_chat": Made(None, None, OTHER, cold=None),
    "queue_overflow_503": Fails(ModelBusy, "maximum pending requests exceeded", is_tried_again=True),
    "queue_overflow_served": Made(17, 30, LENGTH, cold=True),
    "unknown_path": NOTHING_SERVED,
    "host_header_foreign": Fails(Unauthorized, "answered 403"),
}
HOSTED_CHATS: dict[str, Made | Fails] = {
    "queue_overflow_v1_served": Made(17, 30, LENGTH, cold=None),
    "v1_chat_authorization_bearer_any": Made(15, 3, LENGTH, cold=None),
    "v1_chat_authorization_bearer_blank": Made(15, 3, LENGTH, cold=None),
    "v1_chat_authorization_empty": Made(15, 3, LENGTH, cold=None),
    "v1_chat_bad_content_type_value": TAKES_NOT,
    "v1_chat_content_parts": Made(15, 3, LENGTH, cold=None),
    "v1_chat_developer_role": Made(24, 3, LENGTH, cold=None),
    "v1_chat_embedding_model": Fails(InvalidRequest, "does not support chat"),
    "v1_chat_empty_body": TAKES_NOT,
    "v1_chat_empty_messages": TAKES_NOT,
    "v1_chat_extra_options_num_ctx_ignored": Made(15, 3, LENGTH, cold=None),
    "v1_chat_get": TAKES_NOT,
    "v1_chat_long_prompt_over_default_ctx": Made(2050, 3, LENGTH, cold=None, was_cut=True),
    "v1_chat_malformed_json": TAKES_NOT,
    "v1_chat_max_tokens_limit": Made(17, 5, LENGTH, cold=None),
    "v1_chat_max_tokens_limit_stream": Made(None, None, LENGTH, cold=None),  # no usage was asked for
    "v1_chat_missing_messages": TAKES_NOT,
    "v1_chat_missing_model": TAKES_NOT,
    "v1_chat_n_2": Made(15, 3, LENGTH, cold=None),
    "v1_chat_natural_stop": Made(14, 8, STOP, cold=None),
    "v1_chat_no_authorization": Made(15, 3, LENGTH, cold=None),
    "v1_chat_nonstream": Made(15, 13, STOP, cold=None),
    "v1_chat_nonstream_runner_killed": Fails(ModelUnavailable, r"failed on its side \(500\)", is_tried_again=True),
    "v1_chat_reasoning_effort_bogus_nonthinking": NO_EFFORT,
    "v1_chat_reasoning_effort_bogus_thinking": NO_EFFORT,
    "v1_chat_reasoning_effort_emptystring_nonthinking": Made(15, 3, LENGTH, cold=None),
    "v1_chat_reasoning_effort_low_nonthinking": NO_EFFORT,
    "v1_chat_reasoning_effort_low_thinking": Made(16, 12, LENGTH, cold=None, effort="low"),
    "v1_chat_reasoning_effort_max_nonthinking": NO_EFFORT,
    "v1_chat_reasoning_effort_medium_nonthinking": NO_EFFORT,
    "v1_chat_reasoning_effort_minimal_nonthinking": NO_EFFORT,
    "v1_chat_reasoning_effort_none_nonthinking": Made(15, 3, LENGTH, cold=None, effort="none"),
    "v1_chat_reasoning_effort_none_thinking": Made(19, 1, STOP, cold=None, effort="none"),
    "v1_chat_reasoning_effort_null_nonthinking": Made(15, 3, LENGTH, cold=None),
    "v1_chat_reasoning_object_low_nonthinking": NO_EFFORT,
    "v1_chat_response_format_json_object": Made(15, 34, STOP, cold=None),
    "v1_chat_response_format_json_schema": Made(13, 17, STOP, cold=None),
    "v1_chat_stop_string": Made(15, 7, STOP, cold=None),
    "v1_chat_stream": Made(None, None, LENGTH, cold=None),  # no usage was asked for
    "v1_chat_stream_include_usage": Made(15, 8, LENGTH, cold=None),
    "v1_chat_temperature_string": TAKES_NOT,
    "v1_chat_tool_choice_none": Made(147, 17, TOOLS, cold=None, calls=(PARIS,)),
    "v1_chat_tool_choice_required": Made(146, 20, TOOLS, cold=None, calls=(INVENTED,)),
    "v1_chat_tool_result_followup": Made(65, 26, STOP, cold=None),  # a call and something else: an answer
    "v1_chat_tools_toolcall": Made(147, 17, TOOLS, cold=None, calls=(PARIS,)),
    "v1_chat_tools_unsupported_model": NO_TOOLS,
    "v1_chat_tools_unsupported_model_stream": NO_TOOLS,
    "v1_chat_unknown_model": NOT_THERE,
    "v1_chat_unknown_model_stream": NOT_THERE,
    "v1_unknown_path": NOTHING_SERVED,
}
# What a model can do, by its /api/show: tools, thinking, chat, the context it was trained for; or how it fails.
SHOWN: dict[str, tuple[bool, bool, bool, int] | Fails] = {
    "show_embedding_model": (False, False, False, 512),
    "show_empty_model": TAKES_NOT,
    "show_gemma3": (False, False, True, 32768),
    "show_invalid_name": TAKES_NOT,
    "show_legacy_name_field": (False, False, True, 8192),
    "show_missing_body": TAKES_NOT,
    "show_no_template_gguf_jinja_tools": (True, False, True, 32768),
    "show_no_tools_model": (False, False, True, 8192),
    "show_smollm2_tools_template": (True, False, True, 8192),
    "show_thinking_model": (True, True, True, 32768),
    "show_tools_model": (True, False, True, 32768),
    "show_unknown_model": NOT_THERE,
}
LOADED: dict[str, list[tuple[str, int]]] = {
    "ps_after_keep_alive_0_chat": [("all-minilm:latest", 512), ("gemma3:270m", 4096)],
    "ps_after_num_ctx": [("smollm2:135m", 64), ("qwen2.5-json:0.5b", 4096)],
    "ps_after_unload": [("all-minilm:latest", 512), ("gemma3:270m", 4096)],
    "ps_after_v1_num_ctx": [("smollm2:135m", 4096), ("qwen2.5-json:0.5b", 4096)],
    "ps_empty": [],
    "ps_keep_alive_minus1": [("smollm2:135m", 4096), ("all-minilm:latest", 512), ("gemma3:270m", 4096)],
    "ps_loaded": [("smollm2:135m", 4096)],
}
LISTED = {"tags": "fd5f44c0b5af", "tags_final": "fd5f44c0b5af"}  # the digest of smollm2:135m begins so
VERSIONS = {"version": "0.32.15"}
# The length of the vector, or how the embedder fails.
EMBEDDED: dict[str, int | type[Exception]] = {
    "embed_bad_input_type": EmbedderUnavailable,
    "embed_batch": BadVector,  # three vectors for one text
    "embed_chat_model": EmbedderUnavailable,
    "embed_dimensions_8": 8,
    "embed_empty_list": BadVector,
    "embed_empty_string": BadVector,
    "embed_keep_alive_0": 2,
    "embed_malformed": EmbedderUnavailable,
    "embed_no_input": BadVector,
    "embed_num_ctx_small": 2,
    "embed_one": 384,
    "embed_too_long_truncate_false": EmbedderUnavailable,
    "embed_too_long_truncated": 3,
    "embed_unknown_model": EmbedderUnavailable,
    "queue_overflow_embed_served": 2,
}
NOT_MET = {
    "cors_": "is what a browser asks; nothing of ours runs in one",
    "embeddings_legacy": "is /api/embeddings; the embedder asks /api/embed",
    "generate_": "is /api/generate; the gateway chats",
    "keep_alive_0_unload_generate": "is /api/generate; the gateway chats",
    "root_": "is the root of the server; nobody asks for it",
    "v1_embeddings_": "is /v1/embeddings; the embedder asks /api/embed",
    "v1_model": "is /v1/models; a hosted model is not looked up",
}
TABLES: tuple[dict[str, Any], ...] = (NATIVE_CHATS, HOSTED_CHATS, SHOWN, LOADED, LISTED, VERSIONS, EMBEDDED)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server
        close_servers()


def exchange(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def as_a_stream(body: dict[str, Any]) -> list[str]:
    """Return a whole chat completion as the events of a stream that says the same: one chunk, its end, its usage."""
    choice = body["choices"][0]
    head = {"id": body["id"], "object": "chat.completion.chunk", "created": body["created"], "model": body["model"]}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**head, "choices": [], "usage": body["usage"]},
    ]
    return [line for chunk in chunks for line in (f"data: {json.dumps(chunk)}", "")] + ["data: [DONE]", ""]


def replay(kind: Kind, name: str) -> Answer:
    response = exchange(name)["response"]
    if kind is HOSTED and response["status"] == 200 and "lines" not in response:
        return lines(*as_a_stream(response["body"]), content_type=HOSTED.content_type)
    return recorded(name)


def parts_of(name: str) -> list[dict[str, Any]]:
    """Return the messages and deltas that an answer consists of, with what stands beside them."""
    response = exchange(name)["response"]
    if "lines" not in response:
        body = response["body"]
        return [body["choices"][0]["message"] if "choices" in body else {**body, **body["message"]}]
    if not response["lines"][0].startswith("data:"):
        return [{**part, **part.get("message", {})} for part in map(json.loads, response["lines"])]
    events = [json.loads(line[6:]) for line in response["lines"] if line.startswith("data: {")]
    return [event["choices"][0]["delta"] for event in events if event["choices"]]


def messages_of(name: str) -> tuple[list[Message], bool]:
    """Return the conversation of a recorded request, and whether the gateway can say exactly that."""
    body = exchange(name)["request"]["body"]
    said = body.get("messages") if isinstance(body, dict) else None
    messages = []
    called: ToolCall | None = None
    for one in said if isinstance(said, list) else ():
        if one["role"] not in tuple(Role) or not isinstance(one["content"] or "", str):
            return [Message(role=Role.USER, content=HELLO)], False
        calls = ()
        for call in one.get("tool_calls", ()):
            arguments = call["function"]["arguments"]
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            called = ToolCall(
                id=call.get("id", "call_1"),
                name=call["function"]["name"],
                arguments=json.loads(written),
                written=written,
            )
            calls = (*calls, called)
        messages.append(
            Message(
                role=Role(one["role"]),
                content=one["content"] or "",
                tool_calls=calls,
                answers=called if one["role"] == "tool" else None,
            )
        )
    return (messages, True) if messages else ([Message(role=Role.USER, content=HELLO)], False)


def tools_of(name: str) -> list[Tool]:
    body = exchange(name)["request"]["body"]
    return [Tool(**tool["function"]) for tool in body.get("tools", ())] if isinstance(body, dict) else []


def model_of(name: str) -> str:
    body = exchange(name)["request"]["body"]
    return (body.get("model") if isinstance(body, dict) else None) or "smollm2:135m"


def test_every_recorded_exchange_is_replayed_or_said_not_to_be_met() -> None:
    if not RECORDED.is_dir():
        pytest.skip(f"there are no recorded exchanges in {RECORDED}")
    names = {path.stem for path in RECORDED.glob("*.json")}
    tabled = {name for table in TABLES for name in table}
    not_met = {name for name in names if name.startswith(tuple(NOT_MET))} - tabled
    assert names - tabled - not_met == set()
    assert tabled - names == set()
    assert all(any(name.startswith(prefix) for name in names) for prefix in NOT_MET)
    assert sum(map(len, TABLES)) == len(tabled)


CHATS = [
    *(pytest.param(NATIVE, name, made, id=name) for name, made in NATIVE_CHATS.items()),
    *(pytest.param(HOSTED, name, made, id=name) for name, made in HOSTED_CHATS.items()),
]
ANSWERS = [case for case in CHATS if isinstance(case.values[2], Made)]
FAILURES = [case for case in CHATS if isinstance(case.values[2], Fails)]


@replayed
@pytest.mark.parametrize(("kind", "name", "made"), ANSWERS)
def test_an_answer_is_what_was_said_and_measured(
    kind: Kind, name: str, made: Made, wire: Wire, standing: Database
) -> None:
    wire.answers[kind.path] = replay(kind, name)
    # Whether the model can do it is not what is asked here.
    wire.answers["/api/show"] = SHOWS_THINKING
    messages, is_the_same = messages_of(name)
    chosen = kind.settings(
        wire.url, model_fast=model_of(name), model_num_ctx=20_000, model_reasoning_effort=made.effort
    )
    with gateway(standing, chosen, name).stream(messages, run_id="r-1", tools=tools_of(name)) as stream:
        chunks = list(stream)
        reply = stream.reply

    parts = parts_of(name)
    content = "".join(part.get("content") or "" for part in parts)
    thinking = "".join(part.get("thinking") or part.get("reasoning") or "" for part in parts)
    assert reply.thinking == thinking
    assert reply.content == ("" if any(call.in_text for call in made.calls) else content)
    assert "".join(chunk.text for chunk in chunks) == thinking + content
    assert [Asked(call.name, call.arguments, call.fault, call.in_text) for call in reply.tool_calls] == list(made.calls)  # type: ignore[arg-type]
    assert reply.finish_reason is made.reason
    assert reply.model == model_of(name)

    record = reply.record
    assert (record.prompt_tokens, record.output_tokens) == (made.prompt_tokens, made.output_tokens)
    assert record.cold is made.cold
    assert record.prompt_was_cut is made.was_cut
    assert (record.attempts, record.error_code) == (1, None)
    assert record.tool_calls == len(made.calls)
    assert record.tool_calls_in_text == sum(call.in_text for call in made.calls)
    assert record.tool_call_faults == sum(call.fault is not None for call in made.calls)
    if kind is NATIVE:
        for ms, field in (
            (record.load_ms, "load_duration"),
            (record.prompt_ms, "prompt_eval_duration"),
            (record.generation_ms, "eval_duration"),
        ):
            # Ollama leaves out what is zero; where it measured nothing at all, nothing is made up.
            measured = parts[-1].get(field, 0) / 1e6 if "total_duration" in parts[-1] else None
            assert ms == (measured if measured is None else pytest.approx(measured))
    else:
        assert (record.load_ms, record.prompt_ms, record.generation_ms) == (None, None, None)

    (kept,) = calls_on_record(standing, name)
    assert (kept["finish_reason"], kept["error_code"], kept["attempts"]) == (made.reason, None, 1)
    assert (kept["prompt_tokens"], kept["output_tokens"]) == (made.prompt_tokens, made.output_tokens)
    (asked,) = wire.asked_for(kind.path)
    if is_the_same:
        recorded_messages = exchange(name)["request"]["body"]["messages"]
        # No content, an empty one and null are the same to Ollama.
        assert [{**one, "content": one.get("content") or ""} for one in asked.body["messages"]] == [
            {**one, "content": one["content"] or ""} for one in recorded_messages
        ]
    assert asked.body.get("tools", []) == [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools_of(name)
    ]


@replayed
@pytest.mark.parametrize(("kind", "name", "fails"), FAILURES)
def test_a_failure_has_its_kind_and_says_what_to_do(
    kind: Kind, name: str, fails: Fails, wire: Wire, standing: Database
) -> None:
    wire.answers[kind.path] = replay(kind, name)
    wire.answers["/api/show"] = SHOWS_THINKING
    chosen = kind.settings(
        wire.url, model_fast=model_of(name), model_num_ctx=20_000, model_reasoning_effort=fails.effort
    )
    messages, _ = messages_of(name)
    with pytest.raises(fails.error, match=fails.words) as failed:
        gateway(standing, chosen, name).chat(messages, run_id="r-1", tools=tools_of(name), deadline_s=1.7)
    assert type(failed.value) is fails.error
    said = str(failed.value)
    assert "\n" not in said
    assert '{"error"' not in said  # out of the JSON that it was wrapped in
    assert KEY not in said
    assert wire.url in said or model_of(name) in said

    (kept,) = calls_on_record(standing, name)
    assert (kept["error_code"], kept["finish_reason"]) == (fails.error.code, None)
    sent = len(wire.asked_for(kind.path))
    assert kept["attempts"] == sent
    if fails.is_tried_again:
        assert 2 <= sent <= 4
    else:
        assert sent == 1


@replayed
def test_an_unknown_model_can_be_pulled(wire: Wire, standing: Database) -> None:
    wire.answers["/api/chat"] = recorded("chat_unknown_model")
    chosen = NATIVE.settings(wire.url, model_fast="no-such-model")
    with pytest.raises(InvalidRequest, match="python -m memory_core pull no-such-model"):
        gateway(standing, chosen, "pullable").chat(messages_of("chat_unknown_model")[0], run_id="r-1")


@replayed
@pytest.mark.parametrize("name", SHOWN)
def test_a_model_can_do_what_its_server_shows(name: str, wire: Wire) -> None:
    wire.answers["/api/show"] = recorded(name)
    inspector = Inspector(NATIVE.settings(wire.url))
    model = model_of(name)
    shown = SHOWN[name]
    if isinstance(shown, Fails):
        with pytest.raises(shown.error, match=shown.words):
            inspector.facts(model)
    else:
        facts = inspector.facts(model)
        assert (facts.calls_tools, facts.thinks, facts.chats, facts.context_tokens) == shown
        assert facts.name == model
        assert inspector.facts(model) == facts
        assert len(wire.asked) == 1  # it is remembered
    inspector.close()


@replayed
@pytest.mark.parametrize("name", LOADED)
def test_the_models_in_memory_are_those_that_ollama_lists(name: str, wire: Wire) -> None:
    wire.answers["/api/ps"] = recorded(name)
    inspector = Inspector(NATIVE.settings(wire.url))
    loaded = inspector.loaded()
    assert [(model.name, model.context_tokens) for model in loaded] == LOADED[name]
    for model, listed in zip(loaded, exchange(name)["response"]["body"]["models"], strict=True):
        assert (model.size_bytes, model.vram_bytes) == (listed["size"], 0)
        assert model.expires_at is not None
        assert model.expires_at.isoformat()[:19] == listed["expires_at"][:19]
    inspector.close()


@replayed
@pytest.mark.parametrize("name", LISTED)
def test_a_models_digest_is_the_one_that_ollama_lists(name: str, wire: Wire) -> None:
    wire.answers["/api/tags"] = recorded(name)
    inspector = Inspector(NATIVE.settings(wire.url))
    listed = {model["model"]: model["digest"] for model in exchange(name)["response"]["body"]["models"]}
    assert inspector.digests() == listed
    assert inspector.digest("smollm2:135m") is None  # asks nobody
    inspector.look_up_digests()
    until(lambda: inspector.digest("smollm2:135m") is not None)
    assert (inspector.digest("smollm2:135m") or "").startswith(LISTED[name])
    assert inspector.digest("all-minilm") == listed["all-minilm:latest"]  # no tag means this one
    assert inspector.digest("qwen3:0.6b") is None
    inspector.close()


@replayed
def test_the_digest_is_on_the_record_of_a_call(wire: Wire, standing: Database) -> None:
    wire.answers["/api/tags"] = recorded("tags")
    wire.answers["/api/chat"] = recorded("chat_stream_plain")
    asks = gateway(standing, NATIVE.settings(wire.url, model_fast="smollm2:135m"), "digested")
    for number in range(3):
        asks.chat([Message(role=Role.USER, content=HELLO)], run_id=f"r-{number}")
        until(lambda: bool(wire.asked_for("/api/tags")))  # which is asked beside the first call
    kept = {one["run_id"]: one["digest"] or "" for one in calls_on_record(standing, "digested")}
    assert kept["r-2"].startswith("fd5f44c0b5af")
    assert len(wire.asked_for("/api/tags")) == 1


@replayed
@pytest.mark.parametrize("name", VERSIONS)
def test_the_version_is_the_servers(name: str, wire: Wire) -> None:
    wire.answers["/api/version"] = recorded(name)
    inspector = Inspector(NATIVE.settings(wire.url))
    assert inspector.version() == VERSIONS[name]
    inspector.close()


@pytest.mark.parametrize("answer", [html, hang_up, as_json([]), as_json({}), text("nope", status=500)])
def test_what_is_no_ollama_is_a_gateways_error_to_the_inspector(answer: Answer, wire: Wire) -> None:
    for path in ("/api/version", "/api/ps", "/api/tags", "/api/show"):
        wire.answers[path] = answer
    inspector = Inspector(NATIVE.settings(wire.url))
    with pytest.raises(GatewayError, match=wire.url):
        inspector.version()
    if answer in (html, hang_up):
        for ask in (inspector.loaded, inspector.digests, lambda: inspector.facts("m")):
            with pytest.raises(GatewayError, match=wire.url):
                ask()
    assert inspector.digest("m") is None
    inspector.close()


def test_a_server_without_a_version_is_not_said_to_have_lost_the_connection(wire: Wire) -> None:
    inspector = Inspector(NATIVE.settings(wire.url))
    with pytest.raises(GatewayError, match="404") as failed:
        inspector.version()
    assert "lost" not in str(failed.value)
    inspector.close()


@replayed
@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedding_is_a_vector_or_an_embedders_error(name: str, wire: Wire) -> None:
    wire.answers["/api/embed"] = recorded(name)
    ollama = Ollama("all-minilm", wire.url)
    expected = EMBEDDED[name]
    if isinstance(expected, int):
        vector = Guarded(ollama).embed_query("hello")
        assert list(vector) == exchange(name)["response"]["body"]["embeddings"][0]
        assert len(vector) == expected
    else:
        with pytest.raises(expected):
            Guarded(ollama).embed_query("hello")
    assert len(wire.asked) == 1
    ollama.close()


# Sent as the server takes it


def test_ollama_is_asked_with_its_context_the_cap_and_the_options_that_are_set(wire: Wire, standing: Database) -> None:
    wire.answers["/api/chat"] = lines(*NATIVE.lines(Said()), content_type=NATIVE.content_type)
    chosen = NATIVE.settings(wire.url, model_num_thread=2, model_keep_alive="10m", model_max_output_tokens=77)
    gateway(standing, chosen, "sent").chat(
        [Message(role=Role.USER, content=HELLO)], run_id="r-1", temperature=0, seed=1
    )
    (asked,) = wire.asked_for("/api/chat")
    assert asked.body["stream"] is True
    assert asked.body["options"] == {"num_ctx": 4096, "num_thread": 2, "num_predict": 77, "temperature": 0, "seed": 1}
    assert asked.body["keep_alive"] == "10m"
    assert "think" not in asked.body or asked.body["think"] is None


@pytest.mark.parametrize(("given", "sent"), [("-1", -1), ("0", 0), ("300", 300), ("1h30m", "1h30m")])
def test_a_keep_alive_of_bare_digits_is_sent_as_a_number(
    given: str, sent: object, wire: Wire, standing: Database
) -> None:
    wire.answers["/api/chat"] = lines(*NATIVE.lines(Said()), content_type=NATIVE.content_type)
    chosen = NATIVE.settings(wire.url, model_keep_alive=given)
    gateway(standing, chosen, "kept").chat([Message(role=Role.USER, content=HELLO)], run_id="r-1")
    assert wire.asked_for("/api/chat")[0].body["keep_alive"] == sent


@pytest.mark.parametrize("kind", [NATIVE, HOSTED], ids=repr)
def test_a_tools_schema_reaches_the_server_as_it_is(kind: Kind, wire: Wire, standing: Database) -> None:
    wire.answers[kind.path] = lines(*kind.lines(Said()), content_type=kind.content_type)
    wire.answers["/api/show"] = SHOWS_THINKING
    schema = {
        "type": "object",
        "properties": {
            "where": {
                "type": "object",
                "properties": {"city": {"type": "string", "minLength": 1}, "zip": {"type": ["string", "null"]}},
                "required": ["city"],
                "additionalProperties": False,
            },
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
            "unit": {"anyOf": [{"const": "C"}, {"const": "F"}], "description": "of temperature"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        },
        "required": ["where"],
        "additionalProperties": False,
        "$defs": {"tag": {"type": "string", "enum": ["a", "b"]}},
    }
    tool = Tool(name="forecast", description="Look ahead", parameters=schema)
    gateway(standing, kind.settings(wire.url), "tools").chat(
        [Message(role=Role.USER, content=HELLO)], run_id="r-1", tools=[tool]
    )
    (sent,) = wire.asked_for(kind.path)[0].body["tools"]
    assert sent["function"]["parameters"] == schema


@pytest.mark.parametrize("kind", [NATIVE, HOSTED], ids=repr)
def test_thinking_is_not_asked_for_unless_it_is_configured(kind: Kind, wire: Wire, standing: Database) -> None:
    wire.answers[kind.path] = lines(*kind.lines(Said()), content_type=kind.content_type)
    gateway(standing, kind.settings(wire.url), "unthinking").chat(
        [Message(role=Role.USER, content=HELLO)], run_id="r-1"
    )
    body = wire.asked_for(kind.path)[0].body
    assert body.get("think") is None
    assert "reasoning_effort" not in body


@pytest.mark.parametrize(
    ("effort", "think"),
    [
        ("none", False),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "max"),
        ("max", "max"),
    ],
)
def test_an_effort_is_said_in_ollamas_words(effort: str, think: object, wire: Wire, standing: Database) -> None:
    wire.answers["/api/chat"] = lines(*NATIVE.lines(Said()), content_type=NATIVE.content_type)
    wire.answers["/api/show"] = SHOWS_THINKING if think else SHOWS_NEITHER
    chosen = NATIVE.settings(wire.url, model_reasoning_effort=effort)
    gateway(standing, chosen, "thinking").chat([Message(role=Role.USER, content=HELLO)], run_id="r-1")
    assert wire.asked_for("/api/chat")[0].body["think"] == think


# Pulled (these answers are made up, in the shape that Ollama documents)

LAYER = "pulling 6a0746a1ec1a"
DIGEST = "sha256:6a0746a1ec1aef3e7ec53868f220ff6e389f6f8ef87a01d77c96807de94ca2aa"
PULLED = (
    {"status": "pulling manifest"},
    {"status": LAYER, "digest": DIGEST, "total": 1000},
    {"status": LAYER, "digest": DIGEST, "total": 1000, "completed": 400},
    {"status": LAYER, "digest": DIGEST, "total": 1000, "completed": 1000},
    {"status": "verifying sha256 digest"},
    {"status": "writing manifest"},
    {"status": "success"},
)
Progress = list[tuple[str, int | None, int | None]]


def pulling(*statuses: dict[str, Any], **options: Any) -> Answer:
    return lines(*map(json.dumps, statuses), **options)


def pulled(wire: Wire, model: str = "qwen3:0.6b") -> Progress:
    seen: Progress = []
    pull(NATIVE.settings(wire.url), model, progress=lambda status, done, total: seen.append((status, done, total)))
    return seen


def test_a_pull_tells_how_far_it_is(wire: Wire) -> None:
    wire.answers["/api/pull"] = pulling(*PULLED)
    seen = pulled(wire)
    assert [status for status, _, _ in seen] == [status["status"] for status in PULLED]
    assert [(done, total) for status, done, total in seen if status == LAYER][-2:] == [(400, 1000), (1000, 1000)]
    assert (seen[0][1:], seen[-1][1:]) == ((None, None), (None, None))
    (asked,) = wire.asked_for("/api/pull")
    assert asked.body["model"] == "qwen3:0.6b"


@pytest.mark.parametrize("after", range(len(PULLED) - 1))
def test_a_pull_that_fails_with_status_200_is_a_failure(after: int, wire: Wire) -> None:
    wire.answers["/api/pull"] = pulling(*PULLED[:after], {"error": "max retries exceeded: unexpected EOF"})
    with pytest.raises(ModelUnavailable, match="max retries exceeded"):
        pulled(wire)


def test_a_pull_of_a_model_that_does_not_exist_says_so(wire: Wire) -> None:
    wire.answers["/api/pull"] = pulling(PULLED[0], {"error": "pull model manifest: file does not exist"})
    with pytest.raises(GatewayError, match="no-such-model"):
        pulled(wire, "no-such-model")


@pytest.mark.parametrize("end", ["whole", "cut"])
def test_a_pull_that_stops_without_success_is_a_failure(end: str, wire: Wire) -> None:
    wire.answers["/api/pull"] = pulling(*PULLED[:-1], end=end)
    with pytest.raises(ModelUnavailable, match=wire.url):
        pulled(wire)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (html, GatewayError),
        (hang_up, ModelUnavailable),
        (refusal('{"error": "model is required"}', status=400), InvalidRequest),
        (refusal('{"error": "disk full"}', status=500), ModelUnavailable),
        (text("404 page not found", status=404), InvalidRequest),
        (as_json([]), GatewayError),
    ],
    ids=["html", "hang up", "400", "500", "404", "a list"],
)
def test_a_pull_of_what_is_no_ollama_is_a_gateways_error(answer: Answer, error: type[GatewayError], wire: Wire) -> None:
    wire.answers["/api/pull"] = answer
    with pytest.raises(error) as failed:
        pulled(wire)
    assert wire.url in str(failed.value)
    assert KEY not in str(failed.value)


def test_a_pull_from_nowhere_says_where_it_looked() -> None:
    with Wire() as gone:
        pass
    with pytest.raises(ModelUnavailable, match=gone.url):
        pulled(gone)
