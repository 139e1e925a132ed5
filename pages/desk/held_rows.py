"""What is held as rows of a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memory_core import Disclosure, HeldMemory


def as_row(memory: HeldMemory) -> dict[str, Any]:
    """Return a memory as one row."""
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
        "shown_to": ", ".join(dict.fromkeys(map(_shown_to, memory.disclosures))),
        "times_written": memory.seen_count,
        "erased_at": _instant(memory.forgotten_at or memory.swept_at),
        "erased_by": memory.forgotten_by,
        "erased_because": memory.forgotten_reason or ("expired" if memory.swept_at else None),
        "disputed": memory.disputed,
        "corrects": memory.supersedes and str(memory.supersedes),
        "memory_id": str(memory.memory_id),
    }


def _shown_to(one: Disclosure) -> str:
    """Name a run; of a preview who looked as well."""
    return f"{one.run_id} ({one.purpose}{f' by {one.by}' if one.by else ''})"


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
