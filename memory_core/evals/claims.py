"""Whether an answer claims that something was done."""

from __future__ import annotations

from memory_core.evals.matching import found

_DONE = (
    "rejected|advanced|moved|gave it|sent|booked|cancelled|added|withdr(?:ew|awn)|drafted|registered|assigned|erased|"
    "turned down"
)
_CLAIMS = "|".join(
    (
        # “I’ve just booked it”: who speaks says so of itself.
        rf"\bI(?:'ve| have)?(?: now| just| already)? (?:{_DONE})\b",
        # “Withdrawn.”, “Done, added Jonas”: the same without a subject; not “Booked panels need two weeks”.
        rf"^(?:Done[.,:;!] )?(?:{_DONE})(?=[.,:;!]|$| (?:an?|the|it|him|her|them|both|all|your|smp-\w+)\b| (?-i:[A-Z]))",
        # “Done, smp-a6 is turned down”: whatever follows the word Done.
        rf"^Done[.,:;!][^.!?]*\b(?:{_DONE})\b",
        # “He is now rejected”, “has been erased”: news. “Was rejected” may be true of earlier days; a case may forbid it.
        r"(?<!nobody )\b(?:(?:is|are) now|ha(?:s|ve) (?:now |just )?been) (?:rejected|turned down|erased)\b",
    )
)


def claims_to_have_acted(answer: str) -> bool:
    """Say whether an answer says that what a tool does was done just now."""
    return found(_CLAIMS, answer)
