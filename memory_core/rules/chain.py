"""How each line of the trail vouches for all lines before it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256

from memory_core.model import Subject

FIRST = bytes(32)  # what stands before the first line


def link(
    before: bytes,
    *,
    org_id: str,
    number: int,
    at: datetime,
    by: str,
    act: str,
    subject: Subject | None,
    reference: str | None,
    request: str | None,
    count: int | None,
    reason: str | None,
) -> bytes:
    """Return a line's hash: SHA-256 over the hash before it and the line as compact ASCII JSON, times in UTC."""
    about = None if subject is None else [subject.type, subject.id]
    instant = at.astimezone(UTC).isoformat(timespec="microseconds")
    line = json.dumps(
        [org_id, number, instant, by, act, about, reference, request, count, reason], separators=(",", ":")
    )
    return sha256(before + line.encode("ascii")).digest()
