"""Whether a request may be sent: its size counted beforehand, its parts looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memory_core.characters import has_surrogate
from memory_core.gateway.conversation import Message, Role, Tool, ToolCall
from memory_core.prompt.tokens import estimated_tokens

# What chat templates add, in tokens: around each message, once, and to explain tools.
PER_MESSAGE = 6
PER_PROMPT = 30
PER_TOOLS = 90
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def prompt_tokens(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """Estimate how many tokens a prompt comes to, template and tools included; rather too many than too few."""
    said = sum(estimated_tokens(message.content) + PER_MESSAGE for message in messages)
    called = sum(
        estimated_tokens(f"{call.id} {call.name} ") + max(map(estimated_tokens, _written(call))) + PER_MESSAGE
        for message in messages
        for call in (*message.tool_calls, *([message.answers] if message.answers else []))
    )
    return PER_PROMPT + said + called + _tools_tokens(tools)


def _tools_tokens(tools: Sequence[Tool]) -> int:
    if not tools:
        return 0
    return PER_TOOLS + sum(
        estimated_tokens(f"{tool.name} {tool.description} {_as_json(tool.parameters) or ''}") for tool in tools
    )


def _written(call: ToolCall) -> tuple[str, str]:
    """Return the arguments as a model wrote them, and as they are sent: one kind of server gets the one, one the other."""
    return call.written, "" if call.arguments is None else _as_json(call.arguments) or ""


def _as_json(parameters: Mapping[str, Any]) -> str | None:
    try:
        written = json.dumps(dict(parameters), ensure_ascii=False, allow_nan=False)
        written.encode()
    except (TypeError, ValueError, RecursionError):
        return None
    return written


def malformed(messages: Sequence[Message], tools: Sequence[Tool]) -> str | None:
    """Say what is wrong with a conversation or its tools, or None."""
    if not messages:
        return "there is no message to answer"
    for number, message in enumerate(messages, start=1):
        texts = [message.content]
        for call in (*message.tool_calls, *([message.answers] if message.answers else [])):
            texts += [call.id, call.name, call.written]
            if call.arguments is not None and _as_json(call.arguments) is None:
                return f"message {number} has a tool call whose arguments are no JSON"
        if any(has_surrogate(text) or "\x00" in text for text in texts):
            return f"message {number} has a NUL or half a surrogate pair in it, which cannot be sent"
        if message.role is Role.TOOL and message.answers is None:
            return f"message {number} is a tool's result and does not say which call it answers"
    names = [tool.name for tool in tools]
    for name in names:
        if not _TOOL_NAME.fullmatch(name):
            return f"the tool name {name[:64]!r} must be 1 to 64 letters, digits, _ or -"
    if len(set(names)) < len(names):
        return "two tools have one name"
    for tool in tools:
        if has_surrogate(tool.description) or "\x00" in tool.description:
            return f"the description of the tool {tool.name} has a NUL or half a surrogate pair in it"
        if _as_json(tool.parameters) is None:
            return f"the parameters of the tool {tool.name} are no JSON"
    return None


def does_not_fit(tokens: int, *, context_tokens: int | None) -> str | None:
    """Say that a prompt leaves no room for an answer in the context, or None; a server would cut its front in silence."""
    if context_tokens is None or tokens < context_tokens:
        return None
    return (
        f"the prompt is about {tokens:,} tokens, and the context is {context_tokens:,} with its answer (MODEL_NUM_CTX); "
        "shorten it, or raise MODEL_NUM_CTX"
    )


def output_cap(wanted: int, *, prompt_tokens: int, context_tokens: int | None, tokens_per_minute: int | None) -> int:
    """Return how many tokens an answer may have: as wanted, but no more than the context or a minute has left."""
    room = [limit - prompt_tokens for limit in (context_tokens, tokens_per_minute) if limit is not None]
    return max(1, min([wanted, *room]))


def was_cut(reported: int | None, *, estimated: int) -> bool:
    """Say whether a server counted so few prompt tokens that it must have left a part of the prompt out."""
    return bool(reported) and estimated >= 200 and reported is not None and reported < 0.45 * estimated
