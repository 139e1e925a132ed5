"""What a run may keep of what it was shown: a memory's words only about the memory's own subject."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.errors import Refusal
from memory_core.model import Subject

WORDS_IN_A_ROW = 6


def own_words_refusal(
    text: str, subject: Subject | None, *, shown: Sequence[tuple[str, Subject | None]]
) -> Refusal | None:
    """Refuse a text that repeats a memory about somebody else: it would stay when that person is erased.

    Repeating is six words in a row, or all of a memory that has fewer.
    """
    said = _words(text)
    for words, about in shown:
        if about is not None and about != subject and _repeats(said, _words(words)):
            reason = (
                f"repeats what is remembered about {about}; keep it about that subject, or in other words not at all"
            )
            return Refusal(rule="words_of_a_memory_stay_with_its_subject", field="text", reason=reason)
    return None


def _repeats(said: list[str], shown: list[str]) -> bool:
    length = min(WORDS_IN_A_ROW, len(shown))
    if length == 0:
        return False
    runs = {tuple(shown[place : place + length]) for place in range(len(shown) - length + 1)}
    return any(tuple(said[place : place + length]) in runs for place in range(len(said) - length + 1))


def _words(text: str) -> list[str]:
    return "".join(one if one.isalnum() else " " for one in text.casefold()).split()
