"""The copy of an organisation's ledger that lies outside the database, as JSON Lines."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from memory_core.db.embedded.locks import exclusive
from memory_core.errors import LedgerUnusable, LineRefused, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.model import Subject
from memory_core.rights import LedgerAct, LedgerEntry

FORMAT = "memory-workbench ledger 1"
FIRST_YEAR, LAST_YEAR = 2, 9980  # between them the database can hold and give back a moment in every time zone
CODE = re.compile(r"[a-z_]{1,40}")


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What a ledger file says: whose it is, and its entries in order."""

    org_id: str
    ledger_id: UUID
    entries: tuple[LedgerEntry, ...]
    bad_lines: tuple[LineRefused, ...] = ()


def path_of(folder: Path, ledger_id: UUID) -> Path:
    """Return where an organisation's ledger is; an organisation's own name may be no file name."""
    return folder / f"{ledger_id}.jsonl"


def stamp(path: Path) -> tuple[int, int] | None:
    """Return what changes whenever the file does, or None where there is none. Raises `LedgerUnusable`."""
    with _usable(path):
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):  # reading a pipe or a device might never end
            raise LedgerUnusable(path, "is no regular file")
        return found.st_mtime_ns, found.st_size


def read(path: Path, *, skip_bad: bool = False) -> Ledger:
    """Read a ledger; a last line that was never finished is no line.

    Raises `LineRefused` for a bad line, unless it is to be skipped, `Refused` for a file that is no ledger, and
    `LedgerUnusable` where it cannot be read.
    """
    with _usable(path):
        if stamp(path) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        content = path.read_bytes()
    lines = content.split(b"\n")[:-1]
    if not lines:
        raise Refused(Refusal(rule="file_is_a_ledger", field="LEDGER", reason="is empty, and so no ledger"))
    org_id, ledger_id = _head(lines[0])
    entries, bad = [], []
    seen: set[UUID] = set()
    for number, line in enumerate(lines[1:], start=2):
        try:
            entry = _entry(line, org_id=org_id)
            if entry.entry_id in seen:
                raise Refused(_refusal("ledger_line_is_given_once", "gives an entry that a line before it gives"))
            seen.add(entry.entry_id)
            entries.append(entry)
        except Refused as refused:
            bad.append(LineRefused(refused.refusal, line=number))
    if bad and not skip_bad:
        raise LineRefused(bad[0].refusal, line=bad[0].line, others=len(bad) - 1)
    return Ledger(org_id=org_id, ledger_id=ledger_id, entries=tuple(entries), bad_lines=tuple(bad))


def entries_outside(path: Path, org_id: str, ledger_id: UUID) -> tuple[LedgerEntry, ...]:
    """Return the entries of an organisation's own ledger; none where nothing was written yet.

    Raises as `read` does, and `Refused` for somebody else's ledger. What was read is kept until the file changes: it has
    identifiers only.
    """
    found = stamp(path)
    try:
        return () if found is None else _own_entries(path, org_id, ledger_id, found)
    except LineRefused as refused:
        mend = f"python -m memory_core replay-erasures {shlex.quote(str(path))} --skip-bad"
        why = f"its line {refused.line} is damaged; run: {mend}"
        raise LedgerUnusable(path, why) from refused


@lru_cache(maxsize=16)
def _own_entries(path: Path, org_id: str, ledger_id: UUID, found: tuple[int, int]) -> tuple[LedgerEntry, ...]:
    with _usable(path):
        content = path.read_bytes()
    if _is_unfinished(content, org_id, ledger_id):
        return ()
    return _own(read(path), org_id, ledger_id).entries


def _own(found: Ledger, org_id: str, ledger_id: UUID) -> Ledger:
    if (found.org_id, found.ledger_id) != (org_id, ledger_id):
        reason = f"is the ledger of another database's {found.org_id}; move it away"
        raise Refused(Refusal(rule="ledger_is_of_the_database", field="LEDGER", reason=reason))
    return found


def _is_unfinished(content: bytes, org_id: str, ledger_id: UUID) -> bool:
    """Say whether a file is what a writer left that was killed before its first line was whole."""
    return b"\n" not in content and _first_line(org_id, ledger_id).encode("ascii").startswith(content)


def _first_line(org_id: str, ledger_id: UUID) -> str:
    return json.dumps({"format": FORMAT, "org_id": org_id, "ledger_id": str(ledger_id)}) + "\n"


def append(path: Path, org_id: str, ledger_id: UUID, entries: Sequence[LedgerEntry]) -> int:
    """Add what the file does not have yet, on the disk when this returns; returns how many.

    Another process that does the same waits. Raises `LedgerUnusable` where it cannot be written, `Refused` where it is
    damaged or somebody else's: nothing is then added.
    """
    with _usable(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(path.with_suffix(".lock")):
            content = path.read_bytes() if stamp(path) else b""
            written: set[UUID] = set()
            whole = 0
            if not _is_unfinished(content, org_id, ledger_id):
                written = {entry.entry_id for entry in _own(read(path), org_id, ledger_id).entries}
                whole = content.rfind(b"\n") + 1  # after it: a line whose writer was killed
            new = [entry for entry in entries if entry.entry_id not in written]
            if not new and whole:
                return 0
            text = ("" if whole else _first_line(org_id, ledger_id)) + "".join(
                json.dumps(_fields(entry)) + "\n" for entry in new
            )
            with _opened(path) as descriptor:
                os.ftruncate(descriptor, whole)
                os.lseek(descriptor, whole, os.SEEK_SET)
                _write(descriptor, text.encode("ascii"))
                os.fsync(descriptor)
            return len(new)


def set_aside(path: Path, *, at: datetime) -> Path:
    """Give a damaged ledger another name, beside where it was, and return that."""
    aside = path.with_name(f"{path.name}.damaged-{at:%Y%m%d%H%M%S%f}")
    with _usable(path), exclusive(path.with_suffix(".lock")):
        path.replace(aside)
    return aside


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerUnusable(path, error.strerror or type(error).__name__) from error


def _fields(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "entry_id": str(entry.entry_id),
        "act": entry.act.value,
        "subject": None if entry.subject is None else {"type": entry.subject.type, "id": entry.subject.id},
        "memory_ids": [str(one) for one in entry.memory_ids],
        "name": entry.name,
        "reference": None if entry.reference is None else str(entry.reference),
        "at": entry.at.isoformat(),
        "by": entry.by,
        "code": entry.code,
        "trail": {"number": entry.trail_number, "hash": entry.trail_hash.hex()},
    }


def _refusal(rule: str, reason: str) -> Refusal:
    return Refusal(rule=rule, field="line", reason=reason)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise Refused(_refusal("ledger_line_is_json", "is no JSON object")) from None
    if not isinstance(found, dict):
        raise Refused(_refusal("ledger_line_is_json", "is no JSON object"))
    return found


def _head(line: bytes) -> tuple[str, UUID]:
    try:
        found = _object(line)
        if found["format"] != FORMAT or identifier_refusal(found["org_id"], field="org_id"):
            raise ValueError
        return found["org_id"], UUID(found["ledger_id"])
    except (Refused, KeyError, ValueError, AttributeError, TypeError):
        reason = "does not begin as a ledger of this product does"
        raise Refused(Refusal(rule="file_is_a_ledger", field="LEDGER", reason=reason)) from None


def _entry(line: bytes, *, org_id: str) -> LedgerEntry:
    found = _object(line)
    if "format" in found and found.get("org_id") != org_id:
        raise Refused(_refusal("ledger_is_of_one_organisation", "begins the ledger of another organisation"))
    try:
        entry = LedgerEntry(
            number=int(found["number"]),
            entry_id=UUID(found["entry_id"]),
            act=LedgerAct(found["act"]),
            subject=None if found["subject"] is None else Subject(found["subject"]["type"], found["subject"]["id"]),
            memory_ids=tuple(UUID(one) for one in found["memory_ids"]),
            name=found["name"],
            reference=None if found["reference"] is None else UUID(found["reference"]),
            at=datetime.fromisoformat(found["at"]),
            by=found["by"],
            code=found["code"],
            trail_number=int(found["trail"]["number"]),
            trail_hash=bytes.fromhex(found["trail"]["hash"]),
        )
        usable = _is_usable(entry)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, Refused):
        usable = False
    if not usable:
        raise Refused(_refusal("ledger_line_is_an_entry", "is no entry of a ledger"))
    return entry


def _is_usable(entry: LedgerEntry) -> bool:
    """Say whether an entry says what is needed to do it again."""
    needs_subject = entry.act in (LedgerAct.FORGET, LedgerAct.SUPPRESSION)
    needs_memory = entry.act is LedgerAct.CORRECT
    is_measure = entry.act in (LedgerAct.HOLD, LedgerAct.RESTRICTION)
    return (
        entry.at.tzinfo is not None
        and identifier_refusal(entry.by, field="by") is None
        and (entry.name is None or identifier_refusal(entry.name, field="name") is None)
        and CODE.fullmatch(entry.code) is not None
        and len(entry.trail_hash) == 32
        and entry.number >= 1
        and entry.trail_number >= 1
        and (entry.act is LedgerAct.REPLAY or entry.reference is not None)
        and FIRST_YEAR <= entry.at.year < LAST_YEAR
        and not (needs_subject and entry.subject is None)
        and not (entry.act is LedgerAct.SUPPRESSION and entry.memory_ids)
        and not (needs_memory and not entry.memory_ids)
        and not (is_measure and entry.subject is None and not entry.memory_ids)
        and not (is_measure and len(entry.memory_ids) > 1)
    )
