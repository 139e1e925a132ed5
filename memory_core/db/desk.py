"""Queries on what an organisation has set for its desk."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.tables import ANSWERS, organisation_setting
from memory_core.rights import DeskSettings, StandingAnswers


def desk_settings(connection: Connection, org_id: str) -> DeskSettings:
    """Return an organisation's settings, or the product's where it has set nothing."""
    table = organisation_setting
    row = connection.execute(select(table).where(table.c.org_id == org_id)).one_or_none()
    if row is None:
        return DeskSettings()
    return DeskSettings(
        answers=StandingAnswers(**{name: getattr(row, name) for name in ANSWERS}),
        jurisdiction=row.jurisdiction,
        time_zone=row.time_zone,
        tombstone_days=row.tombstone_days,
        version=row.version,
    )


def change(connection: Connection, org_id: str, new: DeskSettings) -> bool:
    """Set everything, if nobody has since the version that `new` is a change of; returns whether that was so."""
    table = organisation_setting
    values = asdict(new.answers) | {
        "jurisdiction": new.jurisdiction,
        "time_zone": new.time_zone,
        "tombstone_days": new.tombstone_days,
        "version": new.version + 1,
    }
    connection.execute(insert(table).values(org_id=org_id).on_conflict_do_nothing())
    done = connection.execute(
        update(table).where(table.c.org_id == org_id, table.c.version == new.version).values(**values)
    )
    return bool(done.rowcount)
