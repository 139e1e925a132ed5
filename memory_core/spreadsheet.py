"""Text for a spreadsheet that no spreadsheet executes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

# What Excel, LibreOffice and Google Sheets take for the start of a formula, in front of which white space is passed over.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def disarmed(value: object) -> str:
    """Return a cell's text, with an apostrophe in front where a spreadsheet would take it for a formula."""
    text = "" if value is None else str(value)
    if text.startswith(FORMULA_STARTS) or text.lstrip().startswith(FORMULA_STARTS):
        return "'" + text
    return text


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a CSV file's text, each cell disarmed."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([disarmed(row.get(column)) for column in columns])
    return out.getvalue()
