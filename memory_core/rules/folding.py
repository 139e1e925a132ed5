"""Words as names are compared: folded, and apart where a script has no space around them."""

from __future__ import annotations

import re
import unicodedata
from html import unescape

from memory_core.rules.naming import folded

LONGEST_WORD = 40  # letters; what is longer is no inflected name
KEPT_WORDS = 200_000  # of those that were met, at most
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# Thai, Lao; Burmese; Hangul letters; Khmer; kana to Hangul; Han and what is compatible with it.
UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u31ff\u3400-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED = re.compile(f"[{UNSPACED_RANGES}]+")
# Letters by category that are drawn as nothing, or as ' and `.
_DRAWN = {0x115F: "", 0x1160: "", **dict.fromkeys(range(0x2B9, 0x2C0), " ")}


class _Folding(dict[int, str]):
    """A table for `str.translate` that folds characters as `folded` does, each worked out when it is first met.

    Folding looks at one character at a time, so a table does the same in a fraction of the time.
    """

    def __init__(self, *, keeps_marks: bool) -> None:
        self._keeps_marks = keeps_marks

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = piece = self._folded(character)
        return piece

    def _folded(self, character: str) -> str:
        if character in "\u3164\uffa0":  # letters by category, drawn as a space
            return " "
        piece = folded(f"x{character}x")[1:-1].translate(_DRAWN)
        if not self._keeps_marks:
            return piece.replace("@", " ")
        if piece != " ":
            return piece
        if unicodedata.category(character) == "Pd" or character == "\u2212":
            return "-"
        plain = unicodedata.normalize("NFKD", character)
        return plain if plain.isascii() and plain.isprintable() else " "


_PLAIN = _Folding(keeps_marks=False)
_SPELLED = _Folding(keeps_marks=True)


class KeptWords(dict[str, str]):
    """Words as they were written -> folded, kept for as long as the names are, since most words come again."""

    def __missing__(self, written: str) -> str:
        plain = _translated(written, _PLAIN)
        if len(self) < KEPT_WORDS and len(written) <= LONGEST_WORD:
            self[written] = plain
        return plain


def _translated(text: str, table: _Folding) -> str:
    text = text.translate(table)
    return text if text.isascii() else unicodedata.normalize("NFC", text)  # Hangul: syllables, not letters


def plainly(text: str, kept: KeptWords | None = None) -> str:
    """Fold a text into words with one space or more between them, its entities read."""
    text = unescape(text) if "&" in text else text
    if kept is None or text.isascii():  # ASCII alone is translated many times faster than what has anything else
        return _translated(text, _PLAIN)
    return " ".join(map(kept.__getitem__, text.split()))


def spelled_out(text: str) -> str:
    """Fold a text and leave its punctuation."""
    return _translated(unescape(text) if "&" in text else text, _SPELLED)


def folded_words(text: str, kept: KeptWords | None = None) -> tuple[list[str], str]:
    """Return the folded words, and without any space what of them is in a script that has none, or ""."""
    plain = plainly(text, kept)
    if plain.isascii() or not UNSPACED.search(plain):
        return plain.split(), ""
    return UNSPACED.sub(r" \g<0> ", plain).split(), "".join(plain.split())


def umlauted(name: str) -> str:
    """Write a name's umlauts as two letters: Mueller."""
    return unicodedata.normalize("NFC", name).casefold().translate(_UMLAUTS)


def glued_words(name: str) -> tuple[str, ...]:
    """Return the words of a name with nothing in them: obrien."""
    return tuple(word for part in name.split() if (word := "".join(folded_words(part)[0])))
