"""Ollama's own API, with its timings, through the ollama package."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import ollama
from httpx import HTTPStatusError

from memory_core.calls import FinishReason
from memory_core.config import ReasoningEffort, Settings
from memory_core.errors import GatewayError
from memory_core.gateway.conversation import Ending, Message, Piece, Request, Role, Tool, ToolCallPiece
from memory_core.gateway.faults import Server, cut_short, refused_with, retry_after, unreachable
from memory_core.gateway.transport import Transport

# What Ollama's think takes; it has no word for the others.
EFFORTS: Mapping[ReasoningEffort, bool | str] = {
    ReasoningEffort.NONE: False,
    ReasoningEffort.MINIMAL: "low",
    ReasoningEffort.LOW: "low",
    ReasoningEffort.MEDIUM: "medium",
    ReasoningEffort.HIGH: "high",
    ReasoningEffort.XHIGH: "max",
    ReasoningEffort.MAX: "max",
}


def ollama_client(settings: Settings, *, silence_s: float | None = None) -> ollama.Client:
    """Return a client of the configured Ollama, whose requests end with their deadline and go through no proxy.

    Where there is no deadline, one ends after so many seconds of silence.
    """
    return ollama.Client(
        host=settings.model_address, transport=Transport(), trust_env=False, follow_redirects=False, timeout=silence_s
    )


class Native:
    """Asks Ollama's /api/chat."""

    def __init__(self, settings: Settings) -> None:
        self._server = Server.of(settings)
        self._effort = settings.model_reasoning_effort
        self._keep_alive = settings.model_keep_alive
        self._options = {"num_ctx": settings.context_tokens, "num_thread": settings.model_num_thread}
        self._client = ollama_client(settings)

    def pieces(self, request: Request) -> Iterator[Piece | Ending]:
        """Send a request and yield its answer as it comes, the `Ending` last; raises a `GatewayError`."""
        has_ended = False
        body = self._body(request)
        try:
            # Not through the package's chat(): it drops what it does not know of a tool's schema, and cannot say truncate.
            answer = cast(
                "Generator[ollama.ChatResponse]",
                self._client._request(ollama.ChatResponse, "POST", "/api/chat", json=body, stream=True),
            )
            with closing(answer):  # or the garbage collector does, on any thread
                for part in answer:
                    yield _piece(part)
                    if part.done:
                        yield _ending(part)
                        has_ended = True
        except GatewayError:
            raise
        except ollama.ResponseError as error:
            # A line {"error": …} in an answer that began with 200 has no status: it failed on its side.
            status = error.status_code if error.status_code > 0 else 500
            raise refused_with(
                status,
                str(error.error),
                server=self._server,
                model=request.model,
                retry_after_s=_retry_after(error),
            ) from None
        except Exception as error:
            status_error = error.__context__
            if isinstance(status_error, HTTPStatusError):  # whose body is no JSON object, which the package expects
                raise refused_with(
                    status_error.response.status_code,
                    "",
                    server=self._server,
                    model=request.model,
                    retry_after_s=retry_after(status_error.response.headers.get("retry-after")),
                ) from None
            raise unreachable(error, server=self._server) from None
        if not has_ended:
            raise cut_short(self._server)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def _body(self, request: Request) -> dict[str, Any]:
        options = {
            **self._options,
            "num_predict": request.output_cap,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        body = {
            "model": request.model,
            "messages": [as_native(message) for message in request.messages],
            "tools": as_functions(request.tools) or None,
            "stream": True,
            "think": None if self._effort is None else EFFORTS[self._effort],
            "options": {name: value for name, value in options.items() if value is not None},
            "keep_alive": self._keep_alive_value(),
            # What does not fit is refused instead of being cut at its front, and an answer ends where the context does.
            "truncate": False,
            "shift": False,
        }
        return {name: value for name, value in body.items() if value is not None}

    def _keep_alive_value(self) -> float | str | None:
        # A bare number is seconds, which Ollama reads from a JSON number only.
        value = self._keep_alive
        return float(value) if value is not None and value.lstrip("-").isdigit() else value


def as_native(message: Message) -> dict[str, Any]:
    """Return a message as /api/chat takes it."""
    native: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        native["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments or {})}} for call in message.tool_calls
        ]
    if message.role is Role.TOOL and message.answers is not None:
        native["tool_name"] = message.answers.name
    return native


def as_functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tools as both kinds of server take them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def _retry_after(error: ollama.ResponseError) -> float | None:
    # The package keeps the answer's headers only in the exception that it handled.
    answered = error.__context__
    return retry_after(answered.response.headers.get("retry-after")) if isinstance(answered, HTTPStatusError) else None


def _piece(part: ollama.ChatResponse) -> Piece:
    said = part.message
    calls = tuple(
        ToolCallPiece(name=call.function.name, arguments=_as_json(call.function.arguments))
        for call in said.tool_calls or ()
    )
    return Piece(content=said.content or "", thinking=said.thinking or "", tool_calls=calls)


def _as_json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)


def _ending(part: ollama.ChatResponse) -> Ending:
    reasons = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
    # Ollama leaves out what is zero; what only speaks like it leaves out what it does not measure.
    absent = None if part.total_duration is None else 0

    def count(reported: int | None) -> int | None:
        return absent if reported is None else reported

    def ms(nanoseconds: int | None) -> float | None:
        return absent if nanoseconds is None else max(-1, min(nanoseconds, 10**18)) / 1e6

    return Ending(
        finish_reason=reasons.get(part.done_reason or "", FinishReason.OTHER),
        prompt_tokens=count(part.prompt_eval_count),
        output_tokens=count(part.eval_count),
        load_ms=ms(part.load_duration),
        prompt_ms=ms(part.prompt_eval_duration),
        generation_ms=ms(part.eval_duration),
    )
