"""Finding a subject by what somebody types: its id, a name in any spelling, an e-mail."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from memory_core.model import Subject

NAME_IS_SIMILAR = 80.0  # of 100


@dataclass(frozen=True, kw_only=True)
class Match:
    """How well a subject answers what was typed: 100 and "id" for its own id, down to a similar name."""

    subject: Subject
    by: str  # "id", "name", "similar"
    score: float


def folded(name: str) -> str:
    """Return a name without case, accents, compatibility forms and punctuation, its words single-spaced."""
    # Twice: a compatibility form may hide a capital (№), and a capital may fold to more than one character (İ).
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    kept = "".join(
        character if unicodedata.category(character)[0] in "LMN" or character == "@" else " "
        for character in decomposed
        if not unicodedata.combining(character) and unicodedata.category(character) not in ("Cf", "Mn")
    )
    return " ".join(kept.translate(_STROKES).split())


# Letters that Unicode does not decompose, as most people type them.
_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
)


def matches(typed: str, subjects: Iterable[Subject]) -> list[Match]:
    """Return the subjects that answer what was typed, best first: an exact id, then its names, then similar ones."""
    wanted = typed.strip()
    words = folded(wanted)
    found = [match for subject in subjects if (match := _match(wanted, words, subject))]
    return sorted(found, key=lambda one: (-one.score, one.subject.label or "", one.subject.type, one.subject.id))


def _match(wanted: str, words: str, subject: Subject) -> Match | None:
    if wanted in (subject.id, str(subject)):
        return Match(subject=subject, by="id", score=100.0)
    if wanted.casefold() in (subject.id.casefold(), str(subject).casefold()):
        return Match(subject=subject, by="id", score=99.0)
    names = [name for name in (subject.label, *subject.aliases) if name]
    if words:
        best = max((_likeness(words, folded(name)) for name in names), default=0.0)
        if best >= NAME_IS_SIMILAR:
            return Match(subject=subject, by="name" if best >= 90 else "similar", score=best * 0.98)
    if len(wanted) >= 2 and wanted.casefold() in subject.id.casefold():
        return Match(subject=subject, by="id", score=NAME_IS_SIMILAR - 10)
    return None


def _likeness(words: str, name: str) -> float:
    if not name:
        return 0.0
    if sorted(words.split()) == sorted(name.split()):
        return 100.0
    typed, known = words.split(), name.split()
    # Every word that was typed must have its like among the name's: prefixes count, so results come while typing.
    return min(max(_word_likeness(word, other) for other in known) for word in typed)


def _word_likeness(word: str, other: str) -> float:
    if word == other:
        return 98.0
    if len(word) >= 2 and other.startswith(word):
        return 95.0
    if len(word) >= 3 and word in other:
        return 92.0
    if word in other and all(unicodedata.category(character) == "Lo" for character in word):
        return 92.0  # a script that puts no space between names
    length = max(len(word), len(other))
    slips = OSA.distance(word, other, score_cutoff=2)  # a letter wrong, missing, too much, or two swapped
    return 90.0 - 5 * slips if slips <= (0 if length < 4 else 1 if length < 8 else 2) else 0.0
