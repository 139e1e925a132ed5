"""A case: what an agent is asked, what has to come of it, and how it is done right."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from memory_core.evals.asking import Topic
from memory_core.evaluations import CaseKind
from memory_core.model import Kind, Origin

TODAY = date(2026, 11, 30)  # a Monday, in every case
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
ASKED_BY = "user:nora"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseMemory(_Part):
    """A memory that the case's organisation holds."""

    text: str = Field(min_length=1, max_length=2000)
    kind: Kind
    about: str | None = None  # a candidate of the sample workspace
    origin: Origin
    author: str
    days_ago: int = Field(ge=0, le=89)
    special: Literal["hostile", "stale"] | None = Field(default=None, alias="is")  # for the reader; a test counts them


class CaseDocument(_Part):
    """A document that was retrieved for the case."""

    source: str
    text: str = Field(min_length=1)


class ExpectedCall(_Part):
    """A call that is needed; arguments that are not named may be anything."""

    tool: str
    arguments: dict[str, Any] = {}


class TableChange(_Part):
    """How a table differs at the end; columns that are not named may be anything in a new row, and unchanged in others."""

    added: tuple[dict[str, Any], ...] = ()
    changed: dict[str, dict[str, Any]] = {}


class ExpectedAnswer(_Part):
    """What the last answer says, by patterns, and what it asks for."""

    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    asks: Topic | None = None  # what is missing; nothing else may be asked for
    may_ask: tuple[Topic, ...] = ()  # … but for these, which are near it

    @field_validator("says", "never")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern[:80]!r} is no regular expression: {error}") from None
        return patterns


class Expectation(_Part):
    """What has to come of a case."""

    calls: tuple[ExpectedCall, ...] = ()
    order: Literal["given", "any", "at once"] = "given"  # at once: all in one turn
    also: tuple[str, ...] = ()  # tools that may be called besides
    changes: dict[str, TableChange] = {}
    answer: ExpectedAnswer = ExpectedAnswer()


class Turn(_Part):
    """One turn of the reference: calls, or words."""

    calls: tuple[ExpectedCall, ...] = ()
    say: str | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.calls) is bool(self.say):
            raise ValueError("a turn has either calls or say")
        return self


class Case(_Part):
    """One case."""

    id: str = Field(pattern="^[a-z0-9][a-z0-9-]{1,59}$")
    kind: CaseKind
    prompt: str = Field(min_length=1, max_length=4000)
    memories: tuple[CaseMemory, ...] = ()
    documents: tuple[CaseDocument, ...] = ()
    expect: Expectation
    reference: tuple[Turn, ...] = Field(min_length=1)
