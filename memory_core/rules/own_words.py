"""What a run may keep of what it was shown: a memory's words only about the memory's own subject."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from memory_core.errors import Refusal
from memory_core.model import Subject
from memory_core.rules.folding import UNSPACED

LETTERS_IN_A_ROW = 30  # about six words
FEWEST_LETTERS = 12  # of a memory that is looked for as a whole; less is an everyday word
# Letters of other alphabets that look like Latin ones.
_ALIKE = str.maketrans(
    "\N{CYRILLIC SMALL LETTER A}\N{CYRILLIC SMALL LETTER IE}\N{CYRILLIC SMALL LETTER O}\N{CYRILLIC SMALL LETTER ER}"
    "\N{CYRILLIC SMALL LETTER ES}\N{CYRILLIC SMALL LETTER U}\N{CYRILLIC SMALL LETTER HA}"
    "\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}\N{CYRILLIC SMALL LETTER JE}\N{CYRILLIC SMALL LETTER DZE}"
    "\N{GREEK SMALL LETTER OMICRON}\N{GREEK SMALL LETTER ALPHA}\N{GREEK SMALL LETTER RHO}\N{GREEK SMALL LETTER NU}"
    "\N{GREEK SMALL LETTER IOTA}",
    "aeopcyxijsoapvi",
)


def own_words_refusal(
    text: str, subject: Subject | None, *, shown: Sequence[tuple[str, Subject | None]]
) -> Refusal | None:
    """Refuse a text that repeats a memory about somebody else: it would stay when that person is erased.

    Repeating is thirty letters in a row, whatever stands between them, or all of a memory that has fewer.
    """
    said = _letters(text)
    for words, about in shown:
        if about is not None and about != subject and _repeats(said, _letters(words)):
            reason = (
                f"repeats what is remembered about {about}; keep it about that subject, or in other words not at all"
            )
            return Refusal(rule="words_of_a_memory_stay_with_its_subject", field="text", reason=reason)
    return None


def _repeats(said: str, shown: str) -> bool:
    length = min(LETTERS_IN_A_ROW, len(shown))
    if length < FEWEST_LETTERS:
        return said == shown != ""
    return any(shown[place : place + length] in said for place in range(len(shown) - length + 1))


def _letters(text: str) -> str:
    """Return the letters and digits alone, folded; of a script without spaces each counts as five: a word has as many."""
    seen = "".join(one for one in unicodedata.normalize("NFKD", text) if one.isalnum()).casefold().translate(_ALIKE)
    return UNSPACED.sub(lambda run: "".join(one * 5 for one in run.group()), seen)
