"""What is wrong with a case, so that it could not be judged, or not be met."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ARRAY, CheckConstraint, Date, DateTime, Integer, Table

from memory_core.agents.registry import RegisteredTool, registry
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import Specification
from memory_core.characters import is_blank
from memory_core.db.workspace import TABLES
from memory_core.evals.case import TODAY, Case, ExpectedCall, TableChange
from memory_core.evals.matching import found, is_matcher, matcher_fault, matches, plain
from memory_core.evals.scoring import MadeCall, Observed, answer, arguments, order
from memory_core.identifiers import identifier_refusal
from memory_core.model import Kind, Origin
from memory_core.run_records import CallOutcome


def faults(case: Case, agent: Specification) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a case: where, and why."""
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
    if expect.order == "at once" and len(expect.calls) < 2:
        yield "expect.order", "at once needs two calls"
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
    made = tuple(
        MadeCall(tool=call.tool, arguments=call.arguments, outcome=CallOutcome.DONE, turn=number)
        for number, turn in enumerate(case.reference)
        for call in turn.calls
    )
    seen = Observed(calls=made, answer=case.reference[-1].say, before={}, after={})
    in_order, at_once = order(case, seen) is not False, case.expect.order == "at once"
    if arguments(case, seen) is False or not (in_order or at_once):
        yield "reference", "does not make the calls that are expected"
    elif not in_order:
        yield "reference", "does not make the calls that are expected in one turn"
    allowed = {*(call.tool for call in case.expect.calls), *case.expect.also}
    for call in made:
        if call.tool not in allowed:
            yield "reference", f"calls {call.tool}, which is neither expected nor allowed besides"
    if any(turn.say for turn in case.reference[:-1]):
        yield "reference", "answers before its end, and a run ends with its first answer"
    if seen.answer is None:
        yield "reference", "does not end with an answer"
    elif not answer(case, seen):
        yield "reference", "its answer does not say what is expected, or says what may not be said"
