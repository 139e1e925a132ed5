"""The suites: five cases for each agent, read from their files, and the hash of all that a result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict, ValidationError

from memory_core.agents.plain_yaml import read_yaml
from memory_core.agents.registry import registry
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import specification, specifications
from memory_core.errors import Refusal, Refused
from memory_core.evals.case import TODAY, Case
from memory_core.evals.matching import plain
from memory_core.evals.suite_faults import faults
from memory_core.evaluations import CaseKind

CASES = 5
# The modules by which an answer and a run are judged. What is changed in them may change a score, so it changes the hash.
JUDGES = ("asking", "claims", "matching", "scoring")


class Suite(BaseModel):
    """One agent's cases."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
        fault_found = next(faults(case, agent), None)
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
    """Return what is compared when results are.

    SHA-256 of suites, specifications, catalogue, sample workspace, and the rules by which a run is judged.
    """
    catalogue = {name: [tool.description, tool.offered().parameters] for name, tool in sorted(registry().items())}
    hashed = hashlib.sha256()
    for part in (
        _texts(),
        {name: one.digest.hex() for name, one in specifications().items()},
        catalogue,
        plain(sample_rows(TODAY)),
        {name: (resources.files("memory_core.evals") / f"{name}.py").read_text("utf-8") for name in JUDGES},
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
