"""The specification of an agent: who it is, what it may call, how long it may take, what it is shown."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory_core.agents.plain_yaml import read_yaml
from memory_core.agents.registry import registry
from memory_core.characters import has_surrogate, is_blank
from memory_core.config import Tier
from memory_core.errors import Refusal, Refused
from memory_core.model import Kind

TOOLS = 8
FENCE = "---"


class MemoryUse(BaseModel):
    """What of the store an agent is shown at its beginning, and by `recall_memories`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(ge=0, le=20, strict=True)  # 0: none at its beginning
    kinds: tuple[Kind, ...] = Field(min_length=1, max_length=2)


class FrontMatter(BaseModel):
    """What stands above the system prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern="^[a-z][a-z-]{1,39}$")
    title: str = Field(min_length=1, max_length=80)
    tier: Tier
    deadline_s: float = Field(gt=0, le=3600, allow_inf_nan=False, strict=True)
    turn_limit: int = Field(ge=1, le=50, strict=True)
    memory: MemoryUse
    tools: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Specification:
    """An agent as it is run."""

    name: str
    title: str
    tier: Tier
    deadline_s: float
    turn_limit: int  # how often the model is asked
    memory: MemoryUse
    tools: tuple[str, ...]  # exactly eight, in the order in which they are offered
    prompt: str  # the system prompt
    digest: bytes = field(repr=False)  # SHA-256 of the whole text

    @property
    def author(self) -> str:
        """Return as whom it writes."""
        return f"agent:{self.name}"


def read_specification(text: str, *, file: str, known: Collection[str]) -> Specification:
    """Read a specification; `known` are the names of the registered tools.

    Raises `Refused` with the file, the field and what to do.
    """

    def refused(rule: str, where: str, reason: str) -> Refused:
        return Refused(Refusal(rule=rule, field=f"{file}: {where}", reason=reason))

    head, prompt = _parted(text, file)
    given = read_yaml(head, where=f"{file}: front matter", first_line=2)
    if not isinstance(given, Mapping):
        raise refused("specification_has_front_matter", "front matter", "must be names with their values")
    try:
        front = FrontMatter.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise refused(
            "front_matter_is_whole", ".".join(map(str, fault["loc"])) or "front matter", fault["msg"]
        ) from None
    if len(front.tools) != TOOLS:
        raise refused("catalogue_has_eight_tools", "tools", f"names {len(front.tools)} tools; exactly {TOOLS}")
    twice = sorted({name for name in front.tools if front.tools.count(name) > 1})
    if twice:
        raise refused("tool_is_named_once", "tools", f"names {', '.join(twice)} twice")
    unknown = [name for name in front.tools if name not in known]
    if unknown:
        raise refused("tool_is_registered", "tools", f"names {', '.join(unknown)}, which no tool is called")
    if "\x00" in text or has_surrogate(text):
        raise refused("specification_is_text", "body", "has a NUL or half a surrogate pair in it")
    if is_blank(prompt):
        raise refused("specification_has_a_prompt", "body", "is blank; write the system prompt below the front matter")
    return Specification(
        **{name: getattr(front, name) for name in FrontMatter.model_fields},
        prompt=prompt.strip(),
        digest=hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(),
    )


@cache
def specifications() -> Mapping[str, Specification]:
    """Return the product's agents by name; raises `Refused` for a file that is none, or a name that two have."""
    folder = resources.files("memory_core.agents") / "specs"
    files = sorted(
        ((file.name, file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".md")),
        key=lambda one: one[0],
    )
    return by_name([read_specification(text, file=name, known=registry().keys()) for name, text in files])


def by_name(found: Collection[Specification]) -> Mapping[str, Specification]:
    """Return specifications by their names; raises `Refused` for a name that two have."""
    named: dict[str, Specification] = {}
    for one in found:
        if one.name in named:
            raise Refused(
                Refusal(rule="agent_is_named_once", field="name", reason=f"two specifications are named {one.name}")
            )
        named[one.name] = one
    return named


def specification(name: str) -> Specification:
    """Return one of the product's agents; raises `Refused` naming those there are."""
    found = specifications().get(name)
    if found is None:
        reason = f"{name[:64]!r} is no agent; use {', '.join(specifications())}"
        raise Refused(Refusal(rule="agent_is_known", field="agent", reason=reason))
    return found


def _parted(text: str, file: str) -> tuple[str, str]:
    lines = text.splitlines()
    if not lines or lines[0].strip() != FENCE or FENCE not in (line.strip() for line in lines[1:]):
        reason = f"must begin with a line {FENCE}, then names with their values, then a line {FENCE}"
        raise Refused(Refusal(rule="specification_has_front_matter", field=f"{file}: front matter", reason=reason))
    end = next(place for place, line in enumerate(lines[1:], start=1) if line.strip() == FENCE)
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])
