"""Queries on an organisation's safeguards."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.tables import organisation_setting
from memory_core.rights import Safeguards


def safeguards(connection: Connection, org_id: str) -> Safeguards:
    """Return an organisation's safeguards, or the product's where it has set nothing."""
    table = organisation_setting
    row = connection.execute(select(table).where(table.c.org_id == org_id)).one_or_none()
    if row is None:
        return Safeguards()
    return Safeguards(
        preview_pseudonyms=row.preview_pseudonyms,
        four_eyes_over=row.four_eyes_over,
        observations_leave=row.observations_leave,
        observations_leave_by=row.observations_leave_by,
        observations_leave_at=row.observations_leave_at,
        version=row.version,
    )


def change(connection: Connection, org_id: str, new: Safeguards) -> bool:
    """Set everything, if nobody has since the version that `new` is a change of; returns whether that was so."""
    table = organisation_setting
    values = asdict(new) | {"version": new.version + 1}
    connection.execute(insert(table).values(org_id=org_id).on_conflict_do_nothing())
    done = connection.execute(
        update(table).where(table.c.org_id == org_id, table.c.version == new.version).values(**values)
    )
    return bool(done.rowcount)
