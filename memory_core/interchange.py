"""Memories as JSON Lines: one a line, in the import format of the README."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Engine

from memory_core.db import memories, organisations, trail
from memory_core.db.engine import enter_organisation, organisation_transaction, transaction
from memory_core.errors import LineRefused, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Memory, State
from memory_core.restoring import RestoreWatch
from memory_core.rules.admission import Draft
from memory_core.writing import Written, write

UNNAMED = "unnamed"  # who exports, where the caller does not say
MAX_LINE_BYTES = 1 << 20
INSTANTS = ("created_at", "expires_at", "last_seen_at")
Progress = Callable[[int], None]  # lines so far


@dataclass(frozen=True, kw_only=True)
class Line:
    """One good line of a file."""

    number: int  # from 1
    org_id: str
    draft: Draft


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One bad line of a file, with the rule it broke."""

    number: int
    refusal: Refusal


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did, by organisation; `faults` are the lines it left out."""

    organisations: Mapping[str, Written]
    faults: tuple[Fault, ...]


def read_lines(stream: BinaryIO, *, org_id: str | None, progress: Progress | None = None) -> Iterator[Line | Fault]:
    """Read a file line by line; blank lines are passed over, and a bad one is a `Fault` and ends nothing.

    `org_id` replaces every line's own.
    """
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        try:
            if len(raw) > MAX_LINE_BYTES:
                while raw and not raw.endswith(b"\n"):
                    raw = stream.readline(MAX_LINE_BYTES)
                raise Refused(_refusal("line_length", "line", f"is longer than {MAX_LINE_BYTES:,} bytes"))
            text = _text(raw, first=number == 1)
            if text:
                yield _line(number, text, org_id=org_id)
        except Refused as refused:
            yield Fault(number=number, refusal=refused.refusal)
        if progress:
            progress(number)


def import_lines(
    engine: Engine,
    lines: Iterable[Line | Fault],
    *,
    skip_bad: bool = False,
    folder: Path | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Imported:
    """Store a file's lines in one transaction, organisation by organisation: all of them, or none.

    With the `folder` of the ledgers, raises `Restored` for a database that lacks what its ledger has.

    With `skip_bad` the good ones are stored and the faults are returned; without it the first fault is raised as
    `LineRefused`, with the number of others. A file without a memory is refused.
    """
    by_organisation: dict[str, list[Line]] = {}
    faults: list[Fault] = []
    for line in lines:
        if isinstance(line, Fault):
            faults.append(line)
        else:
            by_organisation.setdefault(line.org_id, []).append(line)
    if not by_organisation and not faults:
        raise Refused(_refusal("file_has_memories", "file", "has no memories; nothing was stored"))
    written: dict[str, Written] = {}
    with transaction(engine) as connection:
        # In one order always, so that two imports wait for each other instead of deadlocking.
        for org_id, good in sorted(by_organisation.items()):

            def refused(position: int, refusal: Refusal, good: list[Line] = good) -> None:
                faults.append(Fault(number=good[position].number, refusal=refusal))

            enter_organisation(connection, org_id)
            if folder is not None:
                RestoreWatch(org_id, folder).require_sound_as_far_as_known(connection)
            written[org_id] = write(connection, org_id, [line.draft for line in good], clock=clock, refused=refused)
        faults.sort(key=lambda fault: fault.number)
        if faults and not skip_bad:
            first = faults[0]
            raise LineRefused(first.refusal, line=first.number, others=len(faults) - 1)
    return Imported(organisations=written, faults=tuple(faults))


def export_lines(
    engine: Engine,
    org_id: str,
    *,
    folder: Path | None = None,
    by: str = UNNAMED,
    clock: Callable[[], datetime] | None = None,
    ascii_only: bool = False,
) -> Iterator[str]:
    """Yield an organisation's live memories as lines of the import format, oldest first; the export is on record.

    With the `folder` of the ledgers, raises `Restored` for a database that lacks what its ledger has.

    What is restricted, expired or erased is left out: importing it again would bring it back to use. `ascii_only` escapes
    everything else, so that no terminal acts on it.
    """
    if refused := identifier_refusal(by, field="by"):
        raise Refused(refused)
    with organisation_transaction(engine, org_id) as connection:
        if folder is not None:
            RestoreWatch(org_id, folder).require_sound(connection)
        now = clock() if clock else organisations.moment(connection)
        live = sum(
            row.memories for row in organisations.figures(connection, org_id, now=now) if row.state == State.LIVE
        )
        trail.record(connection, org_id, by=by, act="export all", count=live, now=now if clock else None)
    # On record before the first line leaves, whatever becomes of the rest.
    with (
        organisation_transaction(engine, org_id) as connection,
        closing(memories.live_with_names(connection, org_id, now=now)) as found,
    ):
        for memory, label, aliases in found:
            yield json.dumps(_fields(memory, label, aliases), ensure_ascii=ascii_only)


def left_out(counts: Mapping[Any, int]) -> dict[str, int]:
    """Return, by state, how many memories an export leaves out, from an overview's counts."""
    by_state: dict[str, int] = {}
    for (_, _, state), count in counts.items():
        if state is not State.LIVE:
            by_state[state.value] = by_state.get(state.value, 0) + count
    return by_state


def _fields(memory: Memory, label: str | None, aliases: Iterable[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"org_id": memory.org_id, "kind": memory.kind.value}
    if memory.subject:
        fields["subject"] = {"type": memory.subject.type, "id": memory.subject.id}
        if label:
            fields["subject"]["label"] = label
        if aliases:
            fields["subject"]["aliases"] = list(aliases)
    fields |= {
        "text": memory.text,
        "origin": memory.origin.value,
        "author": memory.author,
        "run_id": memory.run_id,
    }
    if memory.source:
        fields["source"] = memory.source
    fields |= {"created_at": memory.created_at.isoformat(), "expires_at": memory.expires_at.isoformat()}
    # The expiry counts from the last time it was remembered, without which it might lie beyond the maximum.
    seen_again = memory.last_seen_at > memory.created_at
    return fields | ({"last_seen_at": memory.last_seen_at.isoformat()} if seen_again else {})


def _text(raw: bytes, *, first: bool) -> str:
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start + 1}; save the file as UTF-8"
        raise Refused(_refusal("line_is_utf8", "line", reason)) from None
    return text.strip()


def _line(number: int, text: str, *, org_id: str | None) -> Line:
    fields = _object(text)
    own = fields.pop("org_id", None)
    owner = own if org_id is None else org_id
    refusal = identifier_refusal(owner, field="org_id")
    if refusal:
        raise Refused(refusal)
    for name in INSTANTS:
        if isinstance(fields.get(name), str):
            # What is no date stays a string, which the admission rules refuse by the field's name.
            with suppress(ValueError):
                fields[name] = datetime.fromisoformat(fields[name])
    return Line(number=number, org_id=str(owner), draft=Draft.from_mapping(fields))


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        reason = f"is no JSON object ({error.msg} at character {error.pos + 1})"
        raise Refused(_refusal("line_is_json", "line", reason)) from None
    except (RecursionError, ValueError):
        raise Refused(_refusal("line_is_json", "line", "is no JSON object (too deep, or a number too long)")) from None
    if not isinstance(value, dict):
        raise Refused(_refusal("line_is_json", "line", "is no JSON object"))
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Refused(_refusal("field_is_given_once", "line", "gives a field twice"))
    return fields


def _no_constant(name: str) -> None:
    raise Refused(_refusal("line_is_json", "line", f"has {name}, which is no JSON"))


def _refusal(rule: str, field: str, reason: str) -> Refusal:
    return Refusal(rule=rule, field=field, reason=reason)
