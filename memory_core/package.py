"""What is held about a subject as one encrypted file that only the passphrase opens."""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyzipper

from memory_core.model import Held, HeldMemory
from memory_core.spreadsheet import csv_text

# Without the letters and digits that people mix up when they read them out.
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
COLUMNS = (
    "written",
    "state",
    "kind",
    "origin",
    "author",
    "run",
    "text",
    "source",
    "expires",
    "times_shown",
    "shown_to",
    "times_written",
    "erased_at",
    "erased_by",
    "erased_because",
    "memory_id",
)


@dataclass(frozen=True, kw_only=True)
class SealedPackage:
    """An AES-256 encrypted ZIP, and the passphrase that opens it, which is kept nowhere."""

    content: bytes
    passphrase: str


def passphrase(choice: Callable[[str], str] = secrets.choice) -> str:
    """Return five groups of five characters: about 124 bits."""
    return "-".join("".join(choice(ALPHABET) for _ in range(5)) for _ in range(5))


def sealed_package(held: Held, *, secret: str) -> SealedPackage:
    """Return everything held about a subject as JSON for machines and CSV for people, encrypted.

    Spreadsheet cells are disarmed; the JSON has the text as it is.
    """
    sealed = io.BytesIO()
    with pyzipper.AESZipFile(sealed, "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES) as archive:
        archive.setpassword(secret.encode())
        archive.writestr("held.json", json.dumps(as_json(held), indent=1, ensure_ascii=False))
        # With a byte order mark, by which Excel knows UTF-8.
        archive.writestr("held.csv", "\ufeff" + csv_text(COLUMNS, (as_row(memory) for memory in held.memories)))
    return SealedPackage(content=sealed.getvalue(), passphrase=secret)


def as_row(memory: HeldMemory) -> dict[str, Any]:
    """Return a memory as one row of COLUMNS."""
    return {
        "written": _instant(memory.created_at),
        "state": memory.state.value,
        "kind": memory.kind.value,
        "origin": memory.origin.value,
        "author": memory.author,
        "run": memory.run_id,
        "text": memory.text,
        "source": memory.source,
        "expires": _instant(memory.expires_at),
        "times_shown": len(memory.disclosures),
        "shown_to": ", ".join(dict.fromkeys(f"{one.run_id} ({one.purpose})" for one in memory.disclosures)),
        "times_written": memory.seen_count,
        "erased_at": _instant(memory.forgotten_at or memory.swept_at),
        "erased_by": memory.forgotten_by,
        "erased_because": memory.forgotten_reason or ("expired" if memory.swept_at else None),
        "memory_id": str(memory.memory_id),
    }


def as_json(held: Held) -> dict[str, Any]:
    """Return everything held as plain values, each disclosure with its run, purpose, time and place."""
    return {
        "subject": {
            "type": held.subject.type,
            "id": held.subject.id,
            "label": held.subject.label,
            "aliases": list(held.subject.aliases),
        },
        "as_of": _instant(held.at),
        "memories": [
            as_row(memory)
            | {
                "disclosures": [
                    {"run": one.run_id, "purpose": one.purpose.value, "at": _instant(one.at), "place": one.place}
                    for one in memory.disclosures
                ]
            }
            for memory in held.memories
        ],
    }


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
