"""The answer to a request for access as one encrypted file that only the passphrase opens."""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyzipper

from memory_core.access_document import document
from memory_core.access_json import machine_readable
from memory_core.rights import AccessPackage
from memory_core.spreadsheet import csv_text

# Without the letters and digits that people mix up when they read them out.
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
PLAIN = ("number", "written", "state", "kind", "origin_statement", "author", "run", "source", "text")
COLUMNS = (*PLAIN, "without_text", "your_words", "kept_until", "times_shown", "id")


@dataclass(frozen=True, kw_only=True)
class SealedPackage:
    """An AES-256 encrypted ZIP, and the passphrase that opens it, which is kept nowhere."""

    content: bytes
    passphrase: str


def passphrase(choice: Callable[[str], str] = secrets.choice) -> str:
    """Return five groups of five characters: about 124 bits."""
    return "-".join("".join(choice(ALPHABET) for _ in range(5)) for _ in range(5))


def sealed(files: Mapping[str, str], *, secret: str) -> SealedPackage:
    """Return files as one encrypted ZIP; their names stay readable, what is in them does not."""
    content = io.BytesIO()
    with pyzipper.AESZipFile(content, "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES) as archive:
        archive.setpassword(secret.encode())
        for name, text in files.items():
            archive.writestr(name, text)
    return SealedPackage(content=content.getvalue(), passphrase=secret)


def access_files(package: AccessPackage) -> dict[str, str]:
    """Return a package for programs (JSON), to read and print (HTML) and as a table whose cells no spreadsheet executes."""
    values = machine_readable(package)
    return {
        "access.json": json.dumps(values, indent=1, ensure_ascii=False),
        "access.html": document(package),
        # With a byte order mark, by which Excel knows UTF-8.
        "items.csv": "\ufeff" + csv_text(COLUMNS, map(_row, values["items"])),
    }


def _row(item: dict[str, Any]) -> dict[str, Any]:
    why, dispute = item["without_text"], item["dispute"]
    return {name: item[name] for name in (*PLAIN, "id")} | {
        "without_text": why and ": ".join(filter(None, (why["because"], why.get("reason")))),
        "your_words": dispute and dispute["words"],
        "kept_until": item["storage_period"]["until"],
        "times_shown": len(item["recipients"]),
    }
