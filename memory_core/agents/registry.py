"""The registry of tools: each a typed function, its JSON schema derived from it, its arguments checked against that."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from memory_core.agents import tools
from memory_core.agents.context import Context, ToolProblem, moment_of
from memory_core.errors import MemoryCoreError, Refused
from memory_core.gateway.conversation import Tool
from memory_core.prompt.fence import quoted
from memory_core.run_records import CallOutcome

LONGEST_ARGUMENTS = 20_000  # characters, as the model wrote them
MOST_FAULTS_TOLD = 3
LONGEST_ERROR = 500

Function = Callable[..., object]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a tool call came to, as the model is told it."""

    outcome: CallOutcome
    text: str  # JSON on one line; strings fenced as every text is that somebody else wrote


@dataclass(frozen=True, kw_only=True)
class RegisteredTool:
    """A tool that may be offered to a model."""

    name: str
    description: str
    arguments: type[BaseModel]
    function: Function
    changes: bool  # the workspace or what is remembered; others only look

    def offered(self) -> Tool:
        """Return it as a model is offered it."""
        return Tool(name=self.name, description=self.description, parameters=_schema(self.arguments))

    def checked(self, written: str) -> dict[str, Any]:
        """Return the arguments that were written, checked; raises `ToolProblem` with what is wrong with which of them."""
        try:
            read = self.arguments.model_validate_json(written or "{}", strict=True)
        except ValidationError as error:
            raise ToolProblem(_told(error), CallOutcome.INVALID_ARGUMENTS) from None
        if any("\x00" in text for text in _texts(read.model_dump())):
            raise ToolProblem("a text has a NUL in it, which cannot be stored", CallOutcome.INVALID_ARGUMENTS)
        return {name: getattr(read, name) for name in type(read).model_fields}

    def call(self, context: Context, written: str) -> Result:
        """Carry out a call inside the workspace's open transaction; never raises but for what ends the process.

        What the caller must undo is said by the outcome: anything but `done` changed nothing that may stay.
        """
        try:
            return Result(
                outcome=CallOutcome.DONE,
                text=rendered({"ok": True, "result": self.function(context, **self.checked(written))}),
            )
        except ToolProblem as problem:
            return said_no(problem.outcome, str(problem))
        except Refused as refused:
            return said_no(CallOutcome.REFUSED, str(refused))
        except MemoryCoreError as error:
            again = "try once more" if error.retryable else "do without it"
            return said_no(CallOutcome.FAILED, f"the tool could not do it now; {again}")
        except Exception as error:  # a fault of ours: the model is told so, and nothing of it
            return said_no(CallOutcome.FAILED, f"the tool failed ({type(error).__name__}); do without it")


_registered: dict[str, RegisteredTool] = {}


def tool(*, changes: bool) -> Callable[[Function], Function]:
    """Register a function: keyword-only parameters are its arguments, its docstring is what a model reads of it."""

    def registered(function: Function) -> Function:
        one = tool_of(function, changes=changes)
        if one.name in _registered:
            raise ValueError(f"two tools are named {one.name}")
        _registered[one.name] = one
        return function

    return registered


def tool_of(function: Function, *, changes: bool) -> RegisteredTool:
    """Return a function as a tool."""
    hints = get_type_hints(function, include_extras=True)
    fields = {
        name: (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    name = function.__name__
    return RegisteredTool(
        name=name,
        description=" ".join((function.__doc__ or "").split()),
        arguments=create_model(name, __config__=ConfigDict(extra="forbid"), **fields),  # type: ignore[call-overload]
        function=function,
        changes=changes,
    )


def registry() -> Mapping[str, RegisteredTool]:
    """Return every tool by its name."""
    for module in iter_modules(tools.__path__):
        import_module(f"{tools.__name__}.{module.name}")
    return MappingProxyType(_registered)


def rendered(value: object) -> str:
    """Write a value as JSON on one line: every string quoted as in a block, so that none looks like structure."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(str(key))}: {rendered(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(rendered, value)) + "]"
    if isinstance(value, datetime):
        return quoted(moment_of(value))
    if isinstance(value, date):
        return quoted(value.isoformat())
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return quoted(str(value))


def said_no(outcome: CallOutcome, what: str) -> Result:
    """Return a tool's no as the model is told it."""
    short = what if len(what) <= LONGEST_ERROR else f"{what[:LONGEST_ERROR]}…"
    return Result(outcome=outcome, text=rendered({"ok": False, "error": short}))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _told(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False)
    told = [
        f"{'.'.join(map(str, fault['loc']))[:64] or 'arguments'}: {fault['msg'][:200]}"
        for fault in faults[:MOST_FAULTS_TOLD]
    ]
    more = len(faults) - len(told)
    return "; ".join([*told, *([f"{more} more"] if more > 0 else [])])


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of the arguments without what a model does not need: titles, nulls, our own limits of length."""
    schema = arguments.model_json_schema()
    properties = {name: _plain(one) for name, one in schema.get("properties", {}).items()}
    plain = {"type": "object", "properties": properties}
    if schema.get("required"):
        plain["required"] = schema["required"]
    return plain


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    alternatives = [one for one in schema.get("anyOf", []) if one.get("type") != "null"]
    merged = {**(alternatives[0] if alternatives else {}), **schema}
    kept = {
        name: merged[name]
        for name in ("type", "description", "enum", "pattern", "minimum", "maximum")
        if name in merged
    }
    if "items" in merged:
        kept["items"] = _plain(merged["items"])
    return kept
