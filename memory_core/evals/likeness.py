"""Whether two evaluations are like with like."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.evaluations import Evaluation


def is_whole(evaluation: Evaluation) -> bool:
    """Say whether every trial that was wanted is on record."""
    return evaluation.recorded >= evaluation.wanted


def unlike(first: Evaluation, second: Evaluation) -> tuple[str, ...]:
    """Return in what two evaluations differ besides the model; of such two the figures are not like with like."""
    differs = {
        "suites": first.suites_hash != second.suites_hash,
        "settings": first.settings != second.settings,
        "trials of each case": first.trials != second.trials,
        "agents": set(first.agents) != set(second.agents),
    }
    return tuple(name for name, is_so in differs.items() if is_so)


def differing_settings(first: Evaluation, second: Evaluation) -> dict[str, tuple[object, object]]:
    """Return the settings that two evaluations do not share, with what each has; None where it has none."""
    names = dict.fromkeys([*first.settings, *second.settings])
    pairs = {name: (first.settings.get(name), second.settings.get(name)) for name in names}
    return {name: (ours, theirs) for name, (ours, theirs) in pairs.items() if ours != theirs}


def counterpart(chosen: Evaluation, newest_first: Sequence[Evaluation]) -> Evaluation | None:
    """Return what an evaluation is best compared with: like it, of another model, whole, new; None: there is no other."""
    others = [one for one in newest_first if one.evaluation_id != chosen.evaluation_id]

    def unfitness(one: Evaluation) -> tuple[bool, bool, bool]:
        is_same_model = (one.model, one.digest) == (chosen.model, chosen.digest)
        return (is_same_model, bool(unlike(chosen, one)), not is_whole(one))

    return min(others, key=unfitness, default=None)
