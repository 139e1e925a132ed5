"""Whether the trail still says what it said when each line was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Engine

from memory_core.db import ledger, ledger_file, organisations, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import LedgerUnusable, Refusal, Refused, Restored
from memory_core.rights import Break, LedgerAct, LedgerEntry
from memory_core.rules.chain import FIRST, link

HEAD = re.compile(r"(?P<number>[0-9]{1,18}):(?P<hash>[0-9a-fA-F]{64})")


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a check of the trail found."""

    org_id: str
    at: datetime
    lines: int
    head: str | None  # number:hash of the last line, to be kept elsewhere; None for an empty trail, and a broken one
    broken: Break | None  # the first place where it does not hold
    heads_outside: int  # how many heads from the ledger outside it was compared with
    ledger_fault: str | None  # why the ledger outside could not vouch for it


def verify(
    engine: Engine,
    org_id: str,
    *,
    folder: Path,
    head: str | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Verified:
    """Compute every line's hash anew, and compare with the heads that are kept outside the database.

    `head` is one that was exported earlier, as `number:hash`; raises `Refused` where it is none. Whoever owns the tables
    can write a whole trail anew, or cut off its end: only a head from outside shows that.
    """
    wanted = {} if head is None else dict([head_of(head)])
    with organisation_transaction(engine, org_id) as connection:
        now = clock() if clock else organisations.moment(connection)
        outside, fault = _heads_outside(
            org_id, ledger.ledger_id(connection, org_id), folder, ledger.known(connection, org_id)
        )
        heads = {number: ("the ledger outside", line) for number, line in outside.items()}
        heads |= {number: ("the head that was given", line) for number, line in wanted.items()}
        broken: Break | None = None
        number, before = 0, FIRST
        for entry in trail.in_order(connection, org_id):
            if entry.number != number + 1:
                what = f"line {number + 1} is missing; the next that is there is {entry.number}"
                broken = Break(number=number + 1, what=what)
                break
            number = entry.number
            line = link(
                before,
                org_id=org_id,
                number=entry.number,
                at=entry.at,
                by=entry.by,
                act=entry.act,
                subject=entry.subject,
                reference=entry.reference,
                request=entry.request,
                count=entry.count,
                reason=entry.reason,
            )
            if line != entry.hash:
                broken = Break(number=number, what=f"line {number} was changed, or the line before it")
                break
            if number in heads and heads[number][1] != line:
                broken = Break(number=number, what=f"line {number} is not the one that {heads[number][0]} vouches for")
                break
            before = line
        beyond = [one for one in heads if one > number]
        if broken is None and beyond:
            what = f"the trail ends at line {number}, and {heads[max(beyond)][0]} knows line {max(beyond)}: its end is missing"
            broken = Break(number=number + 1, what=what)
    return Verified(
        org_id=org_id,
        at=now,
        lines=number,
        head=f"{number}:{before.hex()}" if number and broken is None else None,
        broken=broken,
        heads_outside=len(outside),
        ledger_fault=fault,
    )


def head_of(text: str) -> tuple[int, bytes]:
    """Read an exported head; raises `Refused` for what is none."""
    match = HEAD.fullmatch(text.strip()) if isinstance(text, str) else None
    found = (int(match["number"]), bytes.fromhex(match["hash"])) if match else (0, b"")
    if found[0] < 1 or len(found[1]) != 32:
        reason = "is no head of a trail; it is a number, a colon and 64 hexadecimal digits"
        raise Refused(Refusal(rule="head_is_number_and_hash", field="--head", reason=reason))
    return found


def _heads_outside(
    org_id: str, ledger_id: UUID | None, folder: Path, known: set[UUID]
) -> tuple[Mapping[int, bytes], str | None]:
    if ledger_id is None:
        return {}, None
    try:
        path = ledger_file.path_of(folder, ledger_id)
        entries = ledger_file.entries_outside(path, org_id, ledger_id)
    except (LedgerUnusable, Refused) as error:
        return {}, str(error)
    lost = sum(one.entry_id not in known for one in entries)
    if lost:
        return {}, str(Restored(org_id, missing=lost, ledger=path))
    return heads_of(entries), None


def heads_of(entries: Sequence[LedgerEntry]) -> dict[int, bytes]:
    """Return the heads of the trail that a ledger's entries vouch for.

    Of entries that were lost and done again after a restore the lines are lost too: the trail went on from an earlier one.
    """
    lost = {one for entry in entries if entry.act is LedgerAct.REPLAY for one in entry.memory_ids}
    return {entry.trail_number: entry.trail_hash for entry in entries if entry.entry_id not in lost}
