"""The suites: five cases for each agent, with what is expected and how it is done right."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator
from sqlalchemy import ARRAY, CheckConstraint, Date, DateTime, Integer, Table

from memory_core.agents.registry import RegisteredTool, registry
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import Specification, read_yaml, specification, specifications
from memory_core.characters import is_blank
from memory_core.db.workspace import TABLES
from memory_core.errors import Refusal, Refused
from memory_core.evals.asking import Topic, asks_for, strays_to
from memory_core.evals.claims import claims_to_have_acted
from memory_core.evals.matching import all_match, assigned, found, is_matcher, matcher_fault, matches, plain
from memory_core.identifiers import identifier_refusal
from memory_core.model import Kind, Origin

CASES = 5
TODAY = date(2026, 11, 30)  # a Monday, in every case
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
ASKED_BY = "user:nora"


class CaseKind(StrEnum):
    """What a case tries; a suite has one of each."""

    RIGHT_TOOL = "right tool"  # among near-misses
    NOTHING_TO_CALL = "nothing to call"  # already answered, or out of scope
    MISSING_ARGUMENT = "missing argument"  # to be asked for
    CHAINED = "chained"  # an argument comes from an earlier result
    RECOVERY_OR_PARALLEL = "recovery or parallel"  # an error to recover from, or two calls in one turn


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
    special: Literal["hostile", "stale"] | None = Field(default=None, alias="is")


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

    def is_met(self, answer: str) -> bool:
        """Say whether an answer says and asks all it has to, and says nothing it may not."""
        return (
            all(found(one, answer) for one in self.says)
            and not any(found(one, answer) for one in self.never)
            and (self.asks is None or asks_for(self.asks, answer))
        )


class Expectation(_Part):
    """What has to come of a case."""

    calls: tuple[ExpectedCall, ...] = ()
    order: Literal["given", "any"] = "given"
    also: tuple[str, ...] = ()  # tools that may be called besides
    changes: dict[str, TableChange] = {}
    answer: ExpectedAnswer = ExpectedAnswer()

    def is_answered(self, answer: str) -> bool:
        """Say whether an answer is as expected.

        Where nothing is to be called, it may neither claim that something was done nor ask for what is not missing.
        """
        if not self.calls:
            near = {*self.answer.may_ask, *([self.answer.asks] if self.answer.asks else [])}
            if claims_to_have_acted(answer) or strays_to(answer) - near:
                return False
        return self.answer.is_met(answer)


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


class Suite(_Part):
    """One agent's cases."""

    agent: str
    cases: tuple[Case, ...]


def read_suite(text: str, *, file: str) -> Suite:
    """Read and check a suite; raises `Refused` with the file, the place and what to do."""
    try:
        suite = Suite.model_validate(read_yaml(text, where=file))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "suite"
        raise _refused("suite_is_whole", f"{file}: {where}", fault["msg"].removeprefix("Value error, ")) from None
    try:
        agent = specification(suite.agent)
    except Refused as refused:
        raise _refused(refused.rule, f"{file}: agent", refused.reason) from None
    if len(suite.cases) != CASES:
        raise _refused("suite_has_five_cases", f"{file}: cases", f"has {len(suite.cases)} cases; exactly {CASES}")
    kinds, ids = {case.kind for case in suite.cases}, {case.id for case in suite.cases}
    if len(kinds) < CASES:
        missing = ", ".join(sorted(set(CaseKind) - kinds))
        raise _refused("suite_has_each_kind_of_case", f"{file}: cases", f"no case of the kind {missing}")
    if len(ids) < CASES:
        raise _refused("case_is_named_once", f"{file}: cases", "two cases have one id")
    for case in suite.cases:
        fault_found = next(_faults(case, agent), None)
        if fault_found:
            where, reason = fault_found
            raise _refused("case_can_be_met", f"{file}: {case.id}: {where}", reason)
    return suite


@cache
def suites() -> Mapping[str, Suite]:
    """Return the product's suites by agent, one for each; raises `Refused` for what is wrong with them."""
    texts = _texts()
    missing = sorted(specifications().keys() - texts.keys())
    if missing:
        raise _refused("agent_has_a_suite", "suites", f"there is none for {', '.join(missing)}")
    read = {name: read_suite(text, file=f"{name}.yaml") for name, text in texts.items()}
    for name, suite in read.items():
        if suite.agent != name:
            raise _refused("suite_is_named_for_its_agent", f"{name}.yaml: agent", f"is {suite.agent}")
    return read


@cache
def suites_hash() -> str:
    """Return what is compared when results are: SHA-256 of suites, specifications, catalogue and sample workspace."""
    catalogue = {name: [tool.description, tool.offered().parameters] for name, tool in sorted(registry().items())}
    hashed = hashlib.sha256()
    for part in (
        _texts(),
        {name: one.digest.hex() for name, one in specifications().items()},
        catalogue,
        plain(sample_rows(TODAY)),
    ):
        hashed.update(json.dumps(part, sort_keys=True).encode())
    return hashed.hexdigest()


def _texts() -> dict[str, str]:
    folder = resources.files("memory_core.evals") / "suites"
    return {
        file.name.removesuffix(".yaml"): file.read_text("utf-8")
        for file in sorted(folder.iterdir(), key=lambda one: one.name)
        if file.name.endswith(".yaml")
    }


def _refused(rule: str, field: str, reason: str) -> Refused:
    return Refused(Refusal(rule=rule, field=field, reason=reason))


# What is wrong with a case: where, and why


def _faults(case: Case, agent: Specification) -> Iterator[tuple[str, str]]:
    expect = case.expect
    tools = {name: registry()[name] for name in agent.tools}
    sample = sample_rows(TODAY)
    yield from _material_faults(case, {row["id"] for row in sample["candidate"]})
    for name in expect.also:
        if name not in tools:
            yield "expect.also", f"the agent has no tool {name}"
    for call in expect.calls:
        yield from (("expect.calls", reason) for reason in _call_faults(call, tools, is_whole=False))
    for turn in case.reference:
        for call in turn.calls:
            yield from (("reference", reason) for reason in _call_faults(call, tools, is_whole=True))
    for table, change in expect.changes.items():
        yield from (("expect.changes", reason) for reason in _change_faults(table, change, sample))
    if not expect.calls and not expect.answer.says and not expect.answer.asks:
        yield "expect", "neither calls nor answer.says nor answer.asks: any answer would pass"
    if any(found(pattern, "") for pattern in expect.answer.says):
        yield "expect.answer.says", "matches an empty answer, and so any"
    yield from _unmet(case)


def _material_faults(case: Case, candidates: Collection[str]) -> Iterator[tuple[str, str]]:
    """Say what of prompt, documents and memories the loop or the store would refuse."""
    if is_blank(case.prompt):
        yield "prompt", "is blank"
    for document in case.documents:
        if refused := identifier_refusal(document.source, field="source"):
            yield "documents", f"the source {refused.reason}"
    for memory in case.memories:
        if (memory.about is None) is (memory.kind is Kind.OBSERVATION):
            yield "memories", "an observation is about a candidate, a fact about nobody"
        if memory.about is not None and memory.about not in candidates:
            yield "memories", f"{memory.about} is no candidate of the sample workspace"
        if not memory.author.startswith("user:" if memory.origin is Origin.PERSON else "agent:"):
            yield "memories", "a person's statement has an author user:…, an inference agent:…"
        refused = identifier_refusal(memory.author.partition(":")[2], field="author")
        if is_blank(memory.text) or refused:
            yield "memories", "a memory has a text, and an author with a name"


def _call_faults(call: ExpectedCall, tools: Mapping[str, RegisteredTool], *, is_whole: bool) -> Iterator[str]:
    tool = tools.get(call.tool)
    if tool is None:
        yield f"the agent has no tool {call.tool}"
        return
    fields = tool.arguments.model_fields
    for name, value in call.arguments.items():
        if name not in fields:
            yield f"{call.tool} has no argument {name}"
            continue
        if wrong := matcher_fault(value):
            yield f"{call.tool}.{name}: {wrong}"
            continue
        alternatives = value.get("any_of", []) if is_matcher(value) and not is_whole else [value]
        for one in alternatives:
            if is_whole or not is_matcher(one):
                yield from _value_faults(f"{call.tool}.{name}", fields[name].rebuild_annotation(), one)
    if is_whole:
        missing = [name for name, one in fields.items() if one.is_required() and name not in call.arguments]
        if missing:
            yield f"{call.tool} needs {', '.join(missing)}"


def _value_faults(where: str, annotation: Any, value: Any) -> Iterator[str]:
    try:
        TypeAdapter(annotation).validate_json(json.dumps(plain(value)), strict=True)
    except ValidationError as error:
        yield f"{where}: {error.errors(include_url=False, include_input=False)[0]['msg']}"


def _change_faults(table: str, change: TableChange, sample: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    if table not in TABLES:
        yield f"the sample workspace has no table {table}"
        return
    columns = {column.name for column in TABLES[table].columns}
    for values in (*change.added, *change.changed.values()):
        for name in values.keys() - columns:
            yield f"{table} has no column {name}"
        for name, value in values.items():
            if wrong := matcher_fault(value):
                yield f"{table}.{name}: {wrong}"
    for identity in change.changed.keys() - {row["id"] for row in sample.get(table, [])}:
        yield f"{table} has no row {identity}"
    before = {row["id"]: row for row in sample.get(table, [])}
    for identity, values in change.changed.items():
        now = before.get(identity, {})
        if all(matches(value, now.get(name)) for name, value in values.items()):
            yield f"{table} {identity} changes in nothing"
    for values in (*change.added, *change.changed.values()):
        for name, value in values.items():
            if not is_matcher(value) and name in columns and not _fits(TABLES[table], name, value):
                yield f"{table}.{name} is never {value!r}"


def _fits(table: Table, name: str, value: Any) -> bool:
    """Say whether a column can have a value, by its type and by what it is one of."""
    listed = [str(one.sqltext) for one in table.constraints if isinstance(one, CheckConstraint)]
    chosen = next((one for one in listed if one.startswith(f"{name} IN (")), None)
    if chosen is not None:
        return value in re.findall(r"'([^']*)'", chosen)
    kind = table.c[name].type
    if isinstance(kind, Integer):
        return isinstance(value, int) and not isinstance(value, bool)
    shape = {Date: r"\d{4}-\d\d-\d\d", DateTime: r"\d{4}-\d\d-\d\dT\d\d:\d\d"}.get(type(kind), ".*")
    if isinstance(kind, ARRAY):
        return isinstance(value, list)
    return isinstance(plain(value), str) and re.fullmatch(shape, plain(value), re.DOTALL) is not None


def _unmet(case: Case) -> Iterator[tuple[str, str]]:
    """Say what the case's own reference does not meet: then nobody could, or the reference is wrong."""
    made = [call for turn in case.reference for call in turn.calls]
    options = [
        [
            place
            for place, call in enumerate(made)
            if call.tool == wanted.tool and all_match(wanted.arguments, call.arguments)
        ]
        for wanted in case.expect.calls
    ]
    if not assigned(options, in_order=case.expect.order == "given"):
        yield "reference", "does not make the calls that are expected"
    allowed = {*(call.tool for call in case.expect.calls), *case.expect.also}
    for call in made:
        if call.tool not in allowed:
            yield "reference", f"calls {call.tool}, which is neither expected nor allowed besides"
    last = case.reference[-1].say
    if any(turn.say for turn in case.reference[:-1]):
        yield "reference", "answers before its end, and a run ends with its first answer"
    if last is None:
        yield "reference", "does not end with an answer"
    elif not case.expect.is_answered(last):
        yield "reference", "its answer does not say what is expected, or says what may not be said"
