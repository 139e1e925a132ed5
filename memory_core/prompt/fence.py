"""The fence that keeps text which somebody else wrote apart from instructions."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from memory_core.characters import JOINERS, is_invisible, is_joined, is_mark
from memory_core.errors import MemoryCoreError
from memory_core.identifiers import IDENTIFIER

T = TypeVar("T")
DrawBoundary = Callable[[], str]

MAX_DRAWS = 100
# Whatever is not sure to be written as itself. Sure are printable ASCII but for what is structure in JSON or in a tag,
# and, for speed only, the common letters of some scripts that have no joiners, dashes and quotation marks.
NOT_PLAIN = re.compile(
    r"[^ !#-%'-;=?-\[\]-~"
    "\u00c0-\u024f\u0410-\u044f\u2010-\u2027\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3]+"
)
WHITE_SPACE_CONTROLS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85")
JSON_ESCAPES = {'"': '\\"', "\\": "\\\\"}
STRUCTURE = frozenset("<>&\"'\\")


def random_boundary() -> str:
    """Draw eight random hexadecimal digits."""
    return secrets.token_hex(4)


def quoted(text: str) -> str:
    """Write a text as one JSON string on one line, in NFC, with nothing hidden and nothing that looks like structure.

    White-space controls become a space. Every other character that is invisible, or that is or could be normalised
    into one of ``<>&`` or a quote, is written as ``\\uXXXX``; so is a mark that would be drawn onto such an escape or
    onto the opening quote. Joiners stay between letters of scripts that need them. So `json.loads` gives the text back
    in NFC with spaces for those controls, and NFC changes nothing in the result. (A high surrogate directly before a
    low one comes back as the character the two spell: JSON cannot say otherwise.)
    """
    return f'"{NOT_PLAIN.sub(_escaped_run, unicodedata.normalize("NFC", text))}"'


def _escaped_run(match: re.Match[str]) -> str:
    run = match.group()
    written = []
    on_itself = match.start() > 0  # the character before was written as itself, so a mark may be drawn onto it
    for place, character in enumerate(run):
        if character in JOINERS and on_itself and is_joined(run[max(place - 1, 0) : place], run[place + 1 : place + 3]):
            writes = character
        elif not on_itself and is_mark(character):
            writes = _escape(character)
        else:
            writes = _written(character)
        on_itself = len(writes) == 1
        written.append(writes)
    return "".join(written)


@lru_cache(maxsize=16384)
def _written(character: str) -> str:
    if character in WHITE_SPACE_CONTROLS:
        return " "
    if character in JSON_ESCAPES:
        return JSON_ESCAPES[character]
    return _escape(character) if _is_hidden_or_structure(character) else character


def _is_hidden_or_structure(character: str) -> bool:
    # Decomposed without composing again, so that the not-less-than sign counts as the bracket it has within.
    parts = unicodedata.normalize("NFKD", character)
    return is_invisible(character) or any(part in STRUCTURE or is_invisible(part) for part in parts)


def _escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"  # a surrogate pair, as JSON has it


def attribute_value(value: str | int) -> str:
    """Write an attribute's value with its double quotes: as `quoted`, and without a raw double quote between them."""
    if isinstance(value, int):
        return f'"{value}"'
    # In a JSON string each inner double quote has its own backslash directly before it.
    within = quoted(value)[1:-1].replace('\\"', "\\u0022")
    return f'"{within}"'


def fenced(
    tag: str, lines: Sequence[str], *, boundary: str, preamble: Sequence[str], attributes: Mapping[str, str | int]
) -> str:
    """Put lines between an opening and a closing tag that both carry the boundary, the preamble first.

    The boundary is the opening tag's first attribute, the others follow in their order. Raises ValueError for a line
    that could be taken for a tag or for two lines, and for a boundary that is no identifier.
    """
    for line in lines:
        if "<" in line or ">" in line or len(line.splitlines()) != 1:
            raise ValueError("a fenced line is one line without < and >; quote its text first")
    return "\n".join([opening(tag, boundary, attributes), *preamble, *lines, closing(tag, boundary)])


def opening(tag: str, boundary: str, attributes: Mapping[str, str | int]) -> str:
    """Write the opening tag: the boundary, then the attributes in their order."""
    if not IDENTIFIER.fullmatch(boundary):
        raise ValueError("a boundary is 1 to 128 ASCII letters, digits or ._:@/+-")
    rest = "".join(f" {name}={attribute_value(value)}" for name, value in attributes.items())
    return f'<{tag} boundary="{boundary}"{rest}>'


def closing(tag: str, boundary: str) -> str:
    """Write the closing tag, the boundary repeated."""
    return f'</{tag} boundary="{boundary}">'


def draw_until(accepts: Callable[[str], T | None], draw_boundary: DrawBoundary) -> T:
    """Draw boundaries until one is accepted, which is with anything but None, and return with what.

    Raises MemoryCoreError after 100 draws.
    """
    for _ in range(MAX_DRAWS):
        accepted = accepts(draw_boundary())
        if accepted is not None:
            return accepted
    raise MemoryCoreError(f"{MAX_DRAWS} boundaries were drawn for a fence, and each also occurs in its text")


def holds_apart(boundary: str, text: str) -> bool:
    """Say whether a boundary occurs in its fenced text nowhere but in the two tags."""
    return text.count(boundary) == 2
