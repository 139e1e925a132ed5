"""On what a decision about a person may rest: never on a memory alone, never on what an agent wrote itself."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from memory_core.errors import Refusal

NO_DECISION_SENTENCE = "A memory is never a reason on its own to accept or reject anybody."


class Ground(StrEnum):
    """What a ground that was given is."""

    MEMORY = "memory"
    RECORD = "record"  # what a person wrote about the application, or an interview that was held
    OWN_WORDS = "own words"  # written by an agent, so perhaps out of a memory


def grounds_refusal(grounds: Sequence[Ground]) -> Refusal | None:
    """Refuse a decision that rests on nothing a person recorded."""
    if Ground.RECORD in grounds:
        return None
    if Ground.MEMORY in grounds:
        reason = (
            f"{NO_DECISION_SENTENCE} Name a note or feedback by a person, or an interview that was held, or leave the "
            "decision to a person"
        )
        return Refusal(rule="a_memory_is_no_ground_on_its_own", field="grounds", reason=reason)
    if grounds:
        reason = "what an agent wrote is no ground; name a note or feedback by a person, or an interview that was held"
        return Refusal(rule="a_ground_is_a_persons_record", field="grounds", reason=reason)
    reason = "are missing; name a note or feedback by a person, or an interview that was held"
    return Refusal(rule="a_decision_has_grounds", field="grounds", reason=reason)
