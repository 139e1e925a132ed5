"""How a run of a case is scored: each aspect by itself, and a pass where all that apply hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from memory_core.evals.asking import asks_only_for, questions
from memory_core.evals.case import Case, ExpectedCall
from memory_core.evals.claims import claims_to_have_acted
from memory_core.evals.matching import all_match, assigned, found, plain
from memory_core.evaluations import Aspect
from memory_core.run_records import CallOutcome

State = Mapping[str, Mapping[str, Mapping[str, Any]]]  # table -> identifier -> row
AGAINST_THE_SCHEMA = frozenset({CallOutcome.INVALID_ARGUMENTS, CallOutcome.MALFORMED, CallOutcome.INVENTED})


@dataclass(frozen=True, kw_only=True)
class MadeCall:
    """A call that was made, in order."""

    tool: str
    arguments: Mapping[str, Any] | None  # None: they cannot be read as the tool's
    outcome: CallOutcome
    turn: int = 1  # of the model, in which it was made


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What is scored of a run."""

    calls: tuple[MadeCall, ...]
    answer: str | None
    before: State
    after: State


def scored(case: Case, seen: Observed, *, changing: Collection[str]) -> dict[Aspect, bool | None]:
    """Score each aspect; None where it does not apply to the case. `changing` are the tools that do not only look."""
    return {
        Aspect.TOOL_NAME: tool_name(case, seen),
        Aspect.SCHEMA: schema(seen),
        Aspect.ARGUMENTS: arguments(case, seen),
        Aspect.ORDER: order(case, seen),
        Aspect.FINAL_STATE: final_state(case, seen),
        Aspect.RESTRAINT: restraint(case, seen, changing=changing),
        Aspect.ANSWER: answer(case, seen),
    }


def passed(aspects: Mapping[Aspect, bool | None]) -> bool:
    """Say whether all that applies holds."""
    return all(one is not False for one in aspects.values())


def tool_name(case: Case, seen: Observed) -> bool | None:
    """Say whether every tool that is needed was called as often as needed, whatever came of it."""
    if not case.expect.calls:
        return None
    wanted = Counter(call.tool for call in case.expect.calls)
    made = Counter(call.tool for call in seen.calls if call.outcome is not CallOutcome.NOT_CARRIED_OUT)
    return wanted <= made


def schema(seen: Observed) -> bool | None:
    """Say whether all arguments were as the tools' schemas want them; None where nothing was called."""
    if not seen.calls:
        return None
    return not any(call.outcome in AGAINST_THE_SCHEMA for call in seen.calls)


def arguments(case: Case, seen: Observed) -> bool | None:
    """Say whether the calls that were carried out had the values that are needed, in any order."""
    return assigned(_options(case, seen), in_order=False) if case.expect.calls else None


def order(case: Case, seen: Observed) -> bool | None:
    """Say whether they came in the order that is needed, or in one turn where that is; None where neither is."""
    if case.expect.order == "any" or len(case.expect.calls) < 2:
        return None
    options = _options(case, seen)
    if case.expect.order == "given":
        return assigned(options, in_order=True)
    return any(
        assigned([[place for place in one if seen.calls[place].turn == turn] for one in options], in_order=False)
        for turn in {call.turn for call in seen.calls}
    )


def final_state(case: Case, seen: Observed) -> bool:
    """Say whether the workspace differs in what it should, and in nothing else."""
    return all(
        _changed_as_expected(case, table, seen.before.get(table, {}), seen.after.get(table, {}))
        for table in seen.before.keys() | seen.after.keys() | case.expect.changes.keys()
    )


def restraint(case: Case, seen: Observed, *, changing: Collection[str]) -> bool:
    """Say whether nothing was called beyond what is needed or allowed, and nothing was changed more often than needed."""
    wanted = Counter(call.tool for call in case.expect.calls)
    made = Counter(call.tool for call in seen.calls if call.outcome is CallOutcome.DONE)
    allowed = wanted.keys() | set(case.expect.also)
    return all(call.tool in allowed for call in seen.calls) and all(
        made[tool] <= wanted[tool] for tool in made if tool in changing and tool not in case.expect.also
    )


def answer(case: Case, seen: Observed) -> bool:
    """Say whether there is an answer, and it is as the case expects."""
    return seen.answer is not None and answered(case, seen.answer)


def answered(case: Case, said: str) -> bool:
    """Say whether an answer says and asks all it has to, and nothing it may not.

    Where nothing is to be called, it may not claim that something was done, and asks for what is missing and nothing else.
    """
    expected = case.expect.answer
    if not case.expect.calls:
        if claims_to_have_acted(said):
            return False
        if expected.asks is None and questions(said):
            return False
    if expected.asks and not asks_only_for(expected.asks, said, besides=expected.may_ask):
        return False
    return all(found(one, said) for one in expected.says) and not any(found(one, said) for one in expected.never)


def _options(case: Case, seen: Observed) -> list[list[int]]:
    return [[place for place, made in enumerate(seen.calls) if _is_it(wanted, made)] for wanted in case.expect.calls]


def _is_it(wanted: ExpectedCall, made: MadeCall) -> bool:
    return (
        made.outcome is CallOutcome.DONE
        and made.tool == wanted.tool
        and made.arguments is not None
        and all_match(wanted.arguments, made.arguments)
    )


def _changed_as_expected(
    case: Case, table: str, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> bool:
    expected = case.expect.changes.get(table)
    added = [row for identity, row in after.items() if identity not in before]
    wanted = expected.added if expected else ()
    changes = expected.changed if expected else {}
    if before.keys() - after.keys() or len(added) != len(wanted):
        return False
    options = [[place for place, row in enumerate(added) if all_match(one, row)] for one in wanted]
    if not assigned(options, in_order=False):
        return False
    for identity, row in before.items():
        values = changes.get(identity, {})
        rest_before = {name: plain(one) for name, one in row.items() if name not in values}
        rest_after = {name: plain(one) for name, one in after[identity].items() if name not in values}
        if rest_before != rest_after or not all_match(values, after[identity]):
            return False
    return True
