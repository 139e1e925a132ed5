"""Tool calls put together from what a model wrote: whole, in pieces, or as JSON in its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory_core.gateway.conversation import ToolCall, ToolCallFault, ToolCallPiece

# What models put between the calls that they write as text.
_WRAPPING = re.compile(r"(?:\s|```(?:json)?|</?tool_call>)*", re.IGNORECASE)


@dataclass
class _Part:
    id: str | None
    name: str
    arguments: str


class ToolCallPieces:
    """Puts the pieces of tool calls together as they come."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._open: dict[int, _Part] = {}

    def add(self, piece: ToolCallPiece) -> None:
        """Add a piece: it goes on the call at its place, unless it brings another id or has no place."""
        part = None if piece.place is None else self._open.get(piece.place)
        if part is None or (piece.id and part.id and piece.id != part.id):
            part = _Part(piece.id, piece.name or "", piece.arguments)
            self._parts.append(part)
            if piece.place is not None:
                self._open[piece.place] = part
            return
        part.id = part.id or piece.id
        part.name = part.name or piece.name or ""
        part.arguments += piece.arguments

    def calls(self, offered: Collection[str]) -> tuple[ToolCall, ...]:
        """Return the calls in order, each with an id of its own, and with what is wrong with it."""
        return _named_apart(_call(part.id, part.name, part.arguments, offered, in_text=False) for part in self._parts)


def calls_in_text(answer: str, offered: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the calls that an answer consists of, where it is nothing but JSON objects of a name and its arguments.

    Some models write their calls so instead of making them. No call where no tool was offered.
    """
    if not offered:
        return ()
    values = _json_values(answer)
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not values or not all(map(_is_a_call, values)):
        return ()
    try:
        written = [json.dumps(_arguments(value), ensure_ascii=False) for value in values]
    except RecursionError:  # nested as deep as can just be read
        return ()
    return _named_apart(
        _call(None, value["name"], arguments, offered, in_text=True)
        for value, arguments in zip(values, written, strict=True)
    )


def _is_a_call(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(_arguments(value), dict)
        and value.keys() <= {"name", "arguments", "parameters", "type", "id"}
    )


def _arguments(value: Mapping[str, Any]) -> Any:
    return value.get("arguments", value.get("parameters"))


def _json_values(text: str) -> list[Any]:
    """Return the JSON values that a text consists of, wrapped or not; none where it is anything else as well."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    values = []
    try:
        at = _after_wrapping(text, 0)
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _after_wrapping(text, at)
    except (ValueError, RecursionError):
        return []
    return values


def _after_wrapping(text: str, at: int) -> int:
    wrapping = _WRAPPING.match(text, at)
    return wrapping.end() if wrapping else at


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _call(identity: str | None, name: str, written: str, offered: Collection[str], *, in_text: bool) -> ToolCall:
    arguments: Any = None
    fault = None
    try:
        # No arguments at all is how some servers write an empty object.
        arguments = json.loads(written, parse_constant=_refuse) if written.strip() else {}
        # Half a surrogate pair, or 1e999, which is read as infinite, is nothing that can be sent on.
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        arguments, fault = None, ToolCallFault.ARGUMENTS_NOT_JSON
    if fault is None and not isinstance(arguments, dict):
        arguments, fault = None, ToolCallFault.ARGUMENTS_NOT_AN_OBJECT
    if name not in offered:
        fault = ToolCallFault.UNKNOWN_TOOL
    return ToolCall(id=identity or "", name=name, arguments=arguments, written=written, fault=fault, in_text=in_text)


def _named_apart(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Give each call an id of its own: a result must be able to say which call it answers."""
    taken: set[str] = set()
    apart = []
    for number, call in enumerate(calls, start=1):
        identity = call.id or f"call_{number}"
        while identity in taken:
            identity += f"_{number}"
        taken.add(identity)
        apart.append(replace(call, id=identity))
    return tuple(apart)
