"""Chat completions, as hosted models serve them and Ollama under /v1, through the openai package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, cast

import httpx
import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk

from memory_core.calls import FinishReason
from memory_core.config import Settings
from memory_core.errors import GatewayError
from memory_core.gateway.conversation import Ending, Message, Piece, Request, Role, ToolCallPiece
from memory_core.gateway.faults import Server, cut_short, refused_with, retry_after, unreachable
from memory_core.gateway.native import as_functions
from memory_core.gateway.transport import Transport

CAP, NEWER_CAP = "max_tokens", "max_completion_tokens"
# What servers call the thinking that they keep apart.
THINKING = ("reasoning_content", "reasoning")
REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}


class ChatCompletions:
    """Asks an address for chat completions."""

    def __init__(self, settings: Settings) -> None:
        self._server = Server.of(settings)
        self._effort = settings.model_reasoning_effort
        self._cap = CAP  # Ollama knows only this word, some hosted models only the newer one
        self._client = openai.OpenAI(
            base_url=self._server.address,
            api_key=self._server.key,
            max_retries=0,
            timeout=None,
            # The package takes a client of httpx as well as of its own httpx2: one transport serves both kinds of server.
            http_client=cast(
                "Any", httpx.Client(transport=Transport(key=self._server.key), trust_env=False, follow_redirects=False)
            ),
        )

    def pieces(self, request: Request) -> Iterator[Piece | Ending]:
        """Send a request and yield its answer as it comes, the `Ending` last; raises a `GatewayError`."""
        reason: str | None = None
        has_ended = False
        try:
            # Closed here, whatever becomes of it: left to the garbage collector it would be closed on any thread, also on one
            # that holds the lock of the connections, which then waits for itself.
            with closing(self._answer(request)) as answer:
                for chunk in answer:
                    for choice in chunk.choices or ():
                        if choice.index or choice.delta is None:  # one answer was asked for
                            continue
                        reason = choice.finish_reason or reason
                        yield _piece(choice.delta)
                    # Some count along with every chunk; before the end it is not it.
                    if chunk.usage and reason and not has_ended:
                        has_ended = True
                        yield _ending(reason, chunk.usage)
            if reason and not has_ended:
                has_ended = True
                yield _ending(reason, None)
        except GatewayError:
            raise
        except openai.APIStatusError as error:
            raise refused_with(
                error.status_code,
                error.response.text,
                server=self._server,
                model=request.model,
                retry_after_s=retry_after(error.response.headers.get("retry-after")),
            ) from None  # the packages' errors hold prompt, answer and key
        except openai.APIConnectionError as error:
            raise unreachable(error.__cause__ or error, server=self._server) from None
        except openai.APIError as error:  # an error in an answer that began with 200
            raise refused_with(
                _status_of(error),
                error.message,
                server=self._server,
                model=request.model,
                retry_after_s=None,
            ) from None
        except Exception as error:
            raise unreachable(error, server=self._server) from None
        if not has_ended:
            raise cut_short(self._server)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def _answer(self, request: Request) -> openai.Stream[ChatCompletionChunk]:
        asked: dict[str, Any] = {
            "model": request.model,
            "messages": [as_completion(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": as_functions(request.tools) or None,
            "tool_choice": "required" if request.tools and request.must_call else None,
            "reasoning_effort": self._effort,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        create: Callable[..., openai.Stream[ChatCompletionChunk]] = self._client.chat.completions.create
        try:
            return create(**given, **{self._cap: request.output_cap})
        except openai.BadRequestError as error:
            if self._cap == NEWER_CAP or NEWER_CAP not in str(error):
                raise
            self._cap = NEWER_CAP
            return create(**given, **{self._cap: request.output_cap})


def as_completion(message: Message) -> dict[str, Any]:
    """Return a message as chat completions take it."""
    completion: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        completion["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.written or "{}"}}
            for call in message.tool_calls
        ]
    if message.role is Role.TOOL and message.answers is not None:
        completion["tool_call_id"] = message.answers.id
    return completion


def _piece(delta: Any) -> Piece:
    # The package builds its values without looking at them, so every one may be of another type than it says.
    calls = tuple(_call_piece(call) for call in delta.tool_calls or ())
    extra = delta.model_extra or {}
    thinking = next((extra[name] for name in THINKING if isinstance(extra.get(name), str)), "")
    return Piece(content=_text(delta.content) or _text(delta.refusal), thinking=thinking, tool_calls=calls)


def _call_piece(call: Any) -> ToolCallPiece:
    function = call.function
    arguments = function.arguments if function else None
    if isinstance(arguments, dict):  # some servers write the object itself
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCallPiece(
        place=call.index if isinstance(call.index, int) else None,
        id=call.id if isinstance(call.id, str) else None,
        name=_text(function.name) if function else None,
        arguments=_text(arguments),
    )


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    raise ValueError("what should be a text is none")


def _ending(reason: str, usage: CompletionUsage | None) -> Ending:
    details: Any = getattr(usage, "prompt_tokens_details", None)
    return Ending(
        finish_reason=REASONS.get(reason, FinishReason.OTHER),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        cached_tokens=getattr(details, "cached_tokens", None),
    )


def _status_of(error: openai.APIError) -> int:
    code = error.code
    if isinstance(code, int) or (isinstance(code, str) and code.isdigit()):
        return int(code) if 400 <= int(code) < 600 else 500
    return 429 if "rate_limit" in f"{code} {error.type}" else 500
