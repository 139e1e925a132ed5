"""Which characters a reader cannot see, or could take for another."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

# Not format characters by category, yet drawn as nothing (Unicode's Default_Ignorable_Code_Point; the blank Braille
# cell, hieroglyphs, notehead and Khitan filler).
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159")
# Control (Cc), format (Cf, with the tag characters), surrogate, private use, unassigned, line and paragraph separators.
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Zero-width non-joiner and joiner: spelling between letters of these scripts (the first word of such a letter's name).
JOINERS = frozenset("\u200c\u200d")
_SCRIPT_NAMES = """
ARABIC SYRIAC MANDAIC NKO MONGOLIAN ADLAM HANIFI PHAGS-PA
DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA MALAYALAM SINHALA
KHMER MYANMAR BALINESE JAVANESE SUNDANESE CHAKMA GRANTHA KAITHI MEETEI NEWA SHARADA TIRHUTA
"""
JOINING_SCRIPTS = frozenset(_SCRIPT_NAMES.split())


def _is_variation_selector(character: str) -> bool:
    code = ord(character)
    return 0x180B <= code <= 0x180F or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF


@lru_cache(maxsize=4096)
def is_invisible(character: str) -> bool:
    """Say whether one character draws nothing of its own: control, format, filler, private use, unassigned."""
    return (
        unicodedata.category(character) in INVISIBLE_CATEGORIES
        or character in FILLERS
        or _is_variation_selector(character)
    )


@lru_cache(maxsize=4096)
def is_mark(character: str) -> bool:
    """Say whether one character is drawn onto the one before it."""
    return unicodedata.category(character).startswith("M")


@lru_cache(maxsize=4096)
def joining_script(character: str) -> str | None:
    """Name the script of a visible letter or mark if that script spells with joiners; None for all else."""
    if unicodedata.category(character)[0] not in "LM" or is_invisible(character):
        return None
    script = unicodedata.name(character, "").partition(" ")[0]
    return script if script in JOINING_SCRIPTS else None


def is_joined(before: str, after: str) -> bool:
    """Say whether a joiner between these two texts stands between letters of one script that spells with it.

    A mark may stand on the letter before (as Devanagari's virama), or one before the letter after (as in Bengali).
    """
    script = joining_script(before[-1]) if before else None
    following = after[:2] if after and is_mark(after[0]) else after[:1]
    return (
        script is not None
        and following != ""
        and not is_mark(following[-1])
        and all(joining_script(character) == script for character in following)
    )


def shown_whole(text: str) -> str:
    """Return a text in which nothing is invisible or reorders what stands around it: written as ``‹U+202E›`` instead.

    Joiners stay between letters of scripts that need them.
    """
    return "".join(
        character
        if not is_invisible(character) or is_joined(text[max(place - 1, 0) : place], text[place + 1 : place + 3])
        else f"‹U+{ord(character):04X}›"
        for place, character in enumerate(text)
    )


def is_blank(text: str) -> bool:
    """Say whether nothing is left once white space and invisible characters are taken away."""
    return all(character.isspace() or is_invisible(character) for character in text)


def has_surrogate(text: str) -> bool:
    """Say whether the text has a lone surrogate, which UTF-8 and so PostgreSQL cannot hold."""
    return any(0xD800 <= ord(character) <= 0xDFFF for character in text)
