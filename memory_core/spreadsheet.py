"""Text for a spreadsheet that no spreadsheet executes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from memory_core.characters import is_invisible

# What Excel, LibreOffice and Google Sheets take for the start of a formula. A leading tab or line break counts as one too.
FORMULA_STARTS = frozenset("=+-@＝＋－＠")
BREAKS = frozenset("\t\r\n")


def disarmed(value: object) -> str:
    """Return a cell's text, with an apostrophe in front where a spreadsheet would take it for a formula."""
    text = "" if value is None else str(value)
    if text[:1] in BREAKS or _first_visible(text) in FORMULA_STARTS:
        return "'" + text
    return text


def _first_visible(text: str) -> str:
    # Some programs pass over what draws nothing, so that a byte order mark would hide the sign behind it.
    return next((character for character in text if not (character.isspace() or is_invisible(character))), "")


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a CSV file's text, each cell disarmed."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([disarmed(row.get(column)) for column in columns])
    return out.getvalue()
