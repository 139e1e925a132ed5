"""What is said to a chat model, with what it says back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from memory_core.calls import CallEnd, FinishReason
from memory_core.errors import Refusal, Refused
from memory_core.model import Block

MOST_TOKENS = 1_000_000_000
LONGEST_MS = 1e9  # eleven days


class Role(StrEnum):
    """Who says a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"  # the result of a call


class ToolCallFault(StrEnum):
    """Why a tool call cannot be carried out as it was written."""

    UNKNOWN_TOOL = "unknown_tool"
    ARGUMENTS_NOT_JSON = "arguments_not_json"
    ARGUMENTS_NOT_AN_OBJECT = "arguments_not_an_object"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that is offered; `parameters` is the JSON schema of its arguments, an object's."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        _refuse_unless(isinstance(self.name, str), "name", "must be a string")
        _refuse_unless(isinstance(self.description, str), "description", "must be a string")
        _refuse_unless(isinstance(self.parameters, Mapping), "parameters", "must be a JSON schema of an object")


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call that the model asks for; `arguments` is None where there is a fault with them."""

    id: str  # unique within the answer
    name: str
    arguments: Mapping[str, Any] | None
    written: str  # the arguments as the model wrote them
    fault: ToolCallFault | None = None
    in_text: bool = False  # written as JSON into the answer instead of as a call

    def __post_init__(self) -> None:
        for name in ("id", "name", "written"):
            _refuse_unless(isinstance(getattr(self, name), str), name, "must be a string")
        _refuse_unless(self.arguments is None or isinstance(self.arguments, Mapping), "arguments", "must be an object")


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()  # what the assistant asked for
    answers: ToolCall | None = None  # the call whose result this is; for the role tool
    memory_tokens: int = 0  # of a memory block in the content, estimated
    observations: int = 0  # that stand in that block

    def __post_init__(self) -> None:
        _refuse_unless(self.role in list(Role), "role", f"must be one of {', '.join(Role)}")
        object.__setattr__(self, "role", Role(self.role))
        _refuse_unless(isinstance(self.content, str), "content", "must be a string")
        _refuse_unless(isinstance(self.tool_calls, tuple | list), "tool_calls", "must be a tuple of tool calls")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        _refuse_unless(all(isinstance(one, ToolCall) for one in self.tool_calls), "tool_calls", "must be tool calls")
        _refuse_unless(self.answers is None or isinstance(self.answers, ToolCall), "answers", "must be a tool call")
        for name in ("memory_tokens", "observations"):
            _refuse_unless(_is_count(getattr(self, name)), name, "must count from 0")

    @classmethod
    def memories(cls, block: Block) -> Message:
        """Return a recalled block as the message of its own that it belongs into, with the role user."""
        return cls(role=Role.USER, content=block.text, memory_tokens=block.tokens, observations=block.observations)


class ChunkKind(StrEnum):
    """What a piece of an answer belongs to."""

    THINKING = "thinking"
    ANSWER = "answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A piece of an answer as it comes; tool calls come whole, with the reply."""

    kind: ChunkKind
    text: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A whole answer. `record` is what its call's record says."""

    call_id: UUID
    model: str
    content: str  # without thinking; empty where the whole of it was a tool call
    thinking: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    record: CallEnd

    def message(self) -> Message:
        """Return the reply as the message that goes on a conversation; thinking is not said again."""
        return Message(role=Role.ASSISTANT, content=self.content, tool_calls=self.tool_calls)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A call in full, as a client sends it."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    must_call: bool = False  # a tool has to be called, where the server can see to that
    output_cap: int
    temperature: float | None = None
    seed: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallPiece:
    """A part of a tool call: pieces with one place belong together."""

    place: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""  # JSON, or a part of it


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of an answer, as a client reads it off the wire."""

    content: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCallPiece, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Say whether it only marks the beginning or the end of an answer."""
        return not (self.content or self.thinking or self.tool_calls)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """The end of an answer, with what the server measured; None where it does not say, or says what cannot be."""

    finish_reason: FinishReason
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    load_ms: float | None = None
    prompt_ms: float | None = None
    generation_ms: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "output_tokens", "cached_tokens"):
            if not _is_count(getattr(self, name)):
                object.__setattr__(self, name, None)
        for name in ("load_ms", "prompt_ms", "generation_ms"):
            if not _is_within(getattr(self, name), LONGEST_MS):
                object.__setattr__(self, name, None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_within(value, MOST_TOKENS)


def _is_within(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _refuse_unless(holds: bool, field: str, reason: str) -> None:
    if not holds:
        raise Refused(Refusal(rule="value_has_its_type", field=field, reason=reason))
