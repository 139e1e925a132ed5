"""An evaluation: every case of the chosen agents tried, each judged trial on record at once, so that it can be resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from memory_core.agents.chat_model import ChatModel
from memory_core.agents.specification import specification
from memory_core.chatting import gateway_for, model_digest
from memory_core.config import Settings, Tier
from memory_core.db import database
from memory_core.db import evaluations as recorded
from memory_core.db.engine import organisation_transaction
from memory_core.errors import MemoryCoreError, Refusal, Refused
from memory_core.evals.case import Case
from memory_core.evals.scratch import scratch
from memory_core.evals.suite import suites, suites_hash
from memory_core.evals.trying import Asking, tried
from memory_core.evaluations import CaseResult, EvaluationStart
from memory_core.gateway.gateway import require_askable
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id

MOST_TRIALS = 1000
UNJUDGED_IN_A_ROW = 5  # after so many nobody waits for the rest
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One trial that is to be made."""

    agent: str
    case: Case
    trial: int
    seed: int


class Unjudged(MemoryCoreError):
    """One trial after the other could not be judged; the same command goes on where it stopped, with the first of them."""

    retryable = True


def evaluate(
    org_id: str,
    *,
    settings: Settings,
    by: str,
    agents: Sequence[str] = (),
    trials: int = 1,
    base_seed: int = 0,
    asking: Asking | None = None,
    fresh: bool = False,
    model: ChatModel | None = None,
    progress: Progress | None = None,
) -> UUID:
    """Try the agents' cases (of all agents unless some are named) and return the evaluation, which is on record.

    An evaluation that was interrupted and is the same in everything is gone on with, unless `fresh`. Trials that could not be
    judged are on record once a judged one follows, or with the evaluation's end. The cases run on a
    scratch database; calls to the model are the organisation's, and count under its ceiling. `model` takes the place of
    the configured one. Raises `ModelNotConfigured`, `Refused`, a `DatabaseError`, or `Unjudged`.
    """
    names = sorted(set(agents)) or sorted(suites())
    refuse_unless_known(names, trials=trials, base_seed=base_seed)
    asking = asking or Asking()
    if refused := identifier_refusal(by, field="by"):
        raise Refused(refused)
    require_askable(
        run_id="eval",
        tier=Tier.FAST,
        cap=1 if asking.max_output_tokens is None else asking.max_output_tokens,
        seconds=1.0 if asking.deadline_s is None else asking.deadline_s,
        temperature=asking.temperature,
        seed=None,
    )
    asked = model or gateway_for(org_id, settings=settings, observations_may_leave=True)  # its people are invented
    models = sorted({asked.model_of(specification(name).tier) for name in names})
    start = EvaluationStart(
        model="+".join(models),
        digest=model_digest(settings, models[0]) if model is None and len(models) == 1 else None,
        provider="scripted" if model else settings.model_provider.value,
        settings={**asdict(asking), **({} if model else _sent(settings))},
        suites_hash=suites_hash(),
        agents=tuple(names),
        cases=sum(len(suites()[name].cases) for name in names),
        trials=trials,
        base_seed=base_seed,
        by=by,
    )
    engine = database.usable_engine(settings)
    with organisation_transaction(engine, org_id) as connection:
        evaluation_id = None if fresh else recorded.unfinished(connection, org_id, start)
        done = set() if evaluation_id is None else recorded.recorded(connection, org_id, evaluation_id)
        if evaluation_id is None:
            evaluation_id = new_id()
            recorded.begin(connection, org_id, evaluation_id, start, now=None)
    left = [one for one in planned(names, trials=trials, base_seed=base_seed) if _name(one) not in done]
    if left:
        with scratch(settings) as own:
            in_scratch = database.usable_engine(own)
            held: list[CaseResult] = []  # in an outage they are not put on record, so that a resume tries them again
            for number, one in enumerate(left, start=len(done)):
                if progress:
                    progress(number, start.cases * trials)
                result = tried(
                    one.case,
                    specification(one.agent),
                    asked,
                    engine=in_scratch,
                    settings=own,
                    trial=one.trial,
                    seed=one.seed,
                    asking=asking,
                )
                held.append(result)
                _require_judged(held)
                if result.infrastructure is None or one is left[-1]:
                    with organisation_transaction(engine, org_id) as connection:
                        for each in held:
                            recorded.add(connection, org_id, evaluation_id, each, now=None)
                    held.clear()
    with organisation_transaction(
        database.usable_engine(settings), org_id
    ) as connection:  # the scratch closed all others
        recorded.end(connection, org_id, evaluation_id, now=None)
    return evaluation_id


def planned(agents: Sequence[str], *, trials: int, base_seed: int) -> Iterator[Planned]:
    """Yield every trial: the first of each case, then the second, so that an interrupted evaluation has tried each alike."""
    for trial in range(1, trials + 1):
        for agent in agents:
            for case in suites()[agent].cases:
                seed = seed_of(base_seed, agent=agent, case_id=case.id, trial=trial)
                yield Planned(agent=agent, case=case, trial=trial, seed=seed)


def seed_of(base_seed: int, *, agent: str, case_id: str, trial: int) -> int:
    """Derive a trial's seed, of 31 bits, from the base seed: another for each trial, the same each time."""
    hashed = hashlib.sha256(f"{base_seed} {agent} {case_id} {trial}".encode()).digest()
    return int.from_bytes(hashed[:4], "big") >> 1


def refuse_unless_known(agents: Sequence[str], *, trials: int, base_seed: int) -> None:
    """Refuse agents that are none, a number of trials or a base seed that cannot be."""
    for agent in agents:
        specification(agent)
    if isinstance(trials, bool) or not isinstance(trials, int) or not 1 <= trials <= MOST_TRIALS:
        reason = f"must be a whole number from 1 to {MOST_TRIALS}"
        raise Refused(Refusal(rule="trials_range", field="trials", reason=reason))
    if isinstance(base_seed, bool) or not isinstance(base_seed, int) or not 0 <= base_seed < 2**63:
        raise Refused(Refusal(rule="seed_range", field="seed", reason="must be a whole number from 0, of 63 bits"))


def _sent(settings: Settings) -> dict[str, object]:
    """Return what of the settings changes how a model answers."""
    return {
        "address": settings.model_address,
        "max_output_tokens_by_default": settings.model_max_output_tokens,
        "reasoning_effort": settings.model_reasoning_effort and settings.model_reasoning_effort.value,
        "context_tokens": settings.context_tokens,
        "deadline_s_of_a_call": settings.model_deadline_s,
    }


def _name(one: Planned) -> tuple[str, str, int]:
    return one.agent, one.case.id, one.trial


def _require_judged(held: Sequence[CaseResult]) -> None:
    """Raise `Unjudged` where too many trials that are held back, all in a row, could not be judged."""
    unjudged = [one.infrastructure for one in held if one.infrastructure is not None]
    if len(unjudged) >= UNJUDGED_IN_A_ROW:
        raise Unjudged(
            f"the last {len(unjudged)} trials could not be judged ({unjudged[-1]}); what was judged is on record. "
            "See: python -m memory_core doctor; then the same command goes on where it stopped"
        )
