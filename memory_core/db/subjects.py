"""Queries on the subject directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ARRAY, Connection, Row, Text, bindparam, func, or_, select, text, tuple_

from memory_core.db.tables import directory, memory
from memory_core.labels import MAX_LABEL, name_refusal
from memory_core.model import Kind, Subject

# A label that contradicts the one that stands becomes an alias: neither is lost, neither is overwritten in silence.
_ENTER = text(
    """
    INSERT INTO directory AS known (org_id, subject_type, subject_id, label, aliases)
    VALUES (:org_id, :subject_type, :subject_id, :label, :aliases)
    ON CONFLICT (org_id, subject_type, subject_id) DO UPDATE SET
        label = coalesce(known.label, excluded.label),
        aliases = ARRAY(
            SELECT DISTINCT name
            FROM unnest(known.aliases || excluded.aliases || excluded.label) AS name
            WHERE name <> coalesce(known.label, excluded.label, '')
            ORDER BY name
        )
    WHERE known.org_id = excluded.org_id
      AND NOT (known.aliases || known.label @> array_remove(excluded.aliases || excluded.label, NULL)
               AND (known.label IS NOT NULL OR excluded.label IS NULL))
    """
).bindparams(bindparam("aliases", type_=ARRAY(Text)), bindparam("label", type_=Text))


def enter(connection: Connection, org_id: str, subjects: Iterable[Subject]) -> None:
    """Add what the subjects can be found by to their directory entries; a subject without a name adds nothing."""
    # A bulk load names the same subject in the same way again and again.
    named = dict.fromkeys(
        (subject.type, subject.id, subject.label, tuple(subject.aliases))
        for subject in subjects
        if subject.label is not None or subject.aliases
    )
    entries = [
        {
            "org_id": org_id,
            "subject_type": subject_type,
            "subject_id": subject_id,
            "label": label,
            "aliases": sorted({alias for alias in aliases if alias != label}),
        }
        # In one order always, so that two loads wait for each other; of two labels in one load the first in it stands.
        for subject_type, subject_id, label, aliases in sorted(named, key=lambda one: one[:2])
    ]
    if entries:
        connection.execute(_ENTER, entries)


def named(connection: Connection, org_id: str, only: Sequence[Subject] | None = None) -> list[Subject]:
    """Return the organisation's directory entries, or those of some subjects."""
    statement = select(directory.c.subject_type, directory.c.subject_id, directory.c.label, directory.c.aliases).where(
        directory.c.org_id == org_id
    )
    if only is not None:
        statement = statement.where(_among(directory, only))
    return [
        subject_of(row.subject_type, row.subject_id, row.label, row.aliases) for row in connection.execute(statement)
    ]


def observed(connection: Connection, org_id: str) -> list[Subject]:
    """Return everybody of whom an observation has its text."""
    rows = connection.execute(
        select(memory.c.subject_type, memory.c.subject_id)
        .where(memory.c.org_id == org_id, memory.c.kind == Kind.OBSERVATION.value, memory.c.text.is_not(None))
        .distinct()
    )
    return [Subject(row.subject_type, row.subject_id) for row in rows]


def subject_of(subject_type: str, subject_id: str, label: str | None, aliases: Sequence[str] | None) -> Subject:
    """Build a subject with its directory entry; names that only a hand could have written are cut to what can be shown."""
    names = [name[:MAX_LABEL] for name in (label or "", *(aliases or ()))]
    usable = [None if name_refusal(name, field="") else name for name in names]
    return Subject(subject_type, subject_id, usable[0], tuple(name for name in usable[1:] if name))


def with_id(connection: Connection, org_id: str, fragment: str) -> list[Subject]:
    """Return subjects that something is held about and whose id contains a fragment, case aside; tombstones count."""
    escaped = fragment.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    rows = connection.execute(
        select(memory.c.subject_type, memory.c.subject_id)
        .where(
            memory.c.org_id == org_id,
            memory.c.subject_id.is_not(None),
            or_(
                memory.c.subject_id.ilike(f"%{escaped}%", escape="\\"),
                func.concat(memory.c.subject_type, " ", memory.c.subject_id).ilike(escaped, escape="\\"),
            ),
        )
        .distinct()
    )
    return [Subject(row.subject_type, row.subject_id) for row in rows]


def tallies(connection: Connection, org_id: str, subjects: Sequence[Subject]) -> list[Row[Any]]:
    """Return, for each subject that something is held about, with_text, tombstones and last_written_at."""
    return list(
        connection.execute(
            select(
                memory.c.subject_type,
                memory.c.subject_id,
                func.count(memory.c.text).label("with_text"),
                func.count().filter(memory.c.text.is_(None)).label("tombstones"),
                func.max(memory.c.last_seen_at).label("last_written_at"),
            )
            .where(memory.c.org_id == org_id, _among(memory, subjects))
            .group_by(memory.c.subject_type, memory.c.subject_id)
        )
    )


def _among(table: Any, subjects: Sequence[Subject]) -> Any:
    named_by = tuple_(table.c.subject_type, table.c.subject_id)
    return named_by.in_([(subject.type, subject.id) for subject in subjects])


def clear_unused(connection: Connection, org_id: str, subjects: Iterable[Subject] | None = None) -> int:
    """Delete the directory entries of subjects, or of all, about whom no text is left; returns how many."""
    about = select(memory.c.memory_id).where(
        memory.c.org_id == org_id,
        memory.c.subject_type == directory.c.subject_type,
        memory.c.subject_id == directory.c.subject_id,
        memory.c.text.is_not(None),
    )
    statement = directory.delete().where(directory.c.org_id == org_id, ~about.exists())
    if subjects is not None:
        statement = statement.where(_among(directory, list(subjects)))
    return connection.execute(statement).rowcount
