"""What an erasure would empty, and what it would not reach by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import Engine

from memory_core.db import disclosures, held, measures, memories, subjects, trail
from memory_core.db.engine import organisation_transaction
from memory_core.model import Subject
from memory_core.rights import Reach, Reached
from memory_core.rules import naming
from memory_core.rules.mentions import Names

NAMES_THEM = "names them"
NAMES_IN_PART = "may name them"
WRITTEN_AFTER = "written by a run that was shown theirs"
Progress = Callable[[int], None]  # memories looked through so far


def reach(
    engine: Engine,
    org_id: str,
    subject: Subject,
    *,
    by: str,
    also_called: Sequence[str] = (),
    clock: Callable[[], datetime] | None = None,
    progress: Progress | None = None,
) -> Reach:
    """Look through everything an organisation holds for what belongs to an erasure of one subject.

    Names are looked for as the directory has them, the id, and what `also_called` adds: whole names, then parts and close
    spellings of them. A line of the trail says that it was looked up, and how many memories of others were shown.
    """
    with organisation_transaction(engine, org_id) as connection:
        at, known, found = held.held(connection, org_id, subject, now=clock() if clock else None)
        typed = [also_called] if isinstance(also_called, str) else also_called
        names = Names([known], also=[name.strip() for name in typed if name.strip()], in_part=True)
        runs = disclosures.runs_shown(connection, org_id, subject)
        others = []
        for number, memory in enumerate(memories.besides(connection, org_id, subject, now=at), start=1):
            mentions = names.in_text(memory.words)
            whole = any(one.whole for one in mentions)
            written_after = (memory.run_id in runs and memory.created_at >= runs[memory.run_id]) or (
                memory.last_seen_run_id in runs and memory.last_seen_at >= runs[memory.last_seen_run_id]
            )
            because = [
                *([NAMES_THEM] if whole else [NAMES_IN_PART] if mentions else []),
                *([WRITTEN_AFTER] if written_after else []),
            ]
            if because:
                others.append(
                    Reached(
                        memory=memory,
                        because=tuple(because),
                        names=tuple(dict.fromkeys(one.name for one in mentions)),
                    )
                )
            if progress and number % 1000 == 0:
                progress(number)
        others.sort(key=lambda one: (NAMES_THEM not in one.because, NAMES_IN_PART not in one.because))
        alike = _alike(known, subjects.named(connection, org_id))
        trail.record(
            connection,
            org_id,
            by=by,
            act="look before erasing",
            subject=subject,
            count=len(others),
            now=at if clock else None,
        )
        return Reach(
            subject=known,
            at=at,
            with_text=sum(memory.text is not None for memory in found),
            tombstones=sum(memory.text is None for memory in found),
            holds=tuple(measures.hold_names(connection, org_id, subject)),
            others=tuple(others),
            alike=alike,
            runs=tuple(sorted(runs)),
        )


def _alike(known: Subject, everybody: Sequence[Subject]) -> tuple[Subject, ...]:
    rest = [one for one in everybody if one != known]
    matches = (
        match.subject
        for name in (known.label, *known.aliases)
        if name
        for match in naming.matches(name, rest)
        if match.by == "name"
    )
    return tuple(dict.fromkeys(matches))
