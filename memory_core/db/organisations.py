"""Queries on organisations: the list of them, their settings, what each holds in figures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Date, Row, and_, bindparam, case, cast, func, literal, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from memory_core.db.memories import live, now_or
from memory_core.db.statements import Statement
from memory_core.db.tables import ledger, memory, organisation, organisation_setting
from memory_core.rules.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Census:
    """What a recall must know of an organisation before it searches."""

    now: datetime
    ledger_id: UUID | None  # None: the organisation is not in the list yet
    last_entry: UUID | None  # of its ledger
    pinned_model: str | None
    pinned_dimensions: int | None
    unembedded: int  # live memories without an embedding by the pinned model
    embedded: int  # live memories with one, counted no further than asked


def listed(connection: Connection) -> list[str]:
    """Return every organisation's id, in order."""
    return list(connection.scalars(select(organisation.c.org_id).order_by(organisation.c.org_id)))


def moment(connection: Connection) -> datetime:
    """Return when this transaction began, by the database's clock."""
    return connection.execute(select(func.now())).scalar_one()


def enter(connection: Connection, org_id: str) -> None:
    """Enter an organisation into the list, if it is not there."""
    connection.execute(insert(organisation).values(org_id=org_id).on_conflict_do_nothing())


def policy(connection: Connection, org_id: str) -> Policy:
    """Return an organisation's own settings, or the product's where it has set nothing."""
    row = connection.execute(
        select(organisation_setting.c.added_person_types, organisation_setting.c.maximum_days).where(
            organisation_setting.c.org_id == org_id
        )
    ).one_or_none()
    if row is None:
        return Policy()
    return Policy(added_person_types=frozenset(row.added_person_types), maximum_days=row.maximum_days)


def pinned_model(connection: Connection, org_id: str) -> str | None:
    """Return the embedding model that is pinned, or None before the first embedding."""
    model = organisation_setting.c.embedding_model
    return connection.scalar(select(model).where(organisation_setting.c.org_id == org_id))


def census(connection: Connection, org_id: str, *, now: datetime | None, count_to: int) -> Census:
    """Count what can be recalled, in one statement; `embedded` stops counting at `count_to`."""
    clock = {} if now is None else {"now": now}
    row = _census(now is not None).run(connection, org_id=org_id, count_to=count_to, **clock).one()
    return Census(
        now=row.now,
        ledger_id=row.ledger_id,
        last_entry=row.last_entry,
        pinned_model=row.embedding_model,
        pinned_dimensions=row.embedding_dimensions,
        unembedded=row.unembedded,
        embedded=row.embedded,
    )


@cache
def _census(clock: bool) -> Statement:
    setting = organisation_setting
    moment = select(now_or(clock).label("now")).subquery()
    model = setting.c.embedding_model
    within = live(now_or(clock))

    def counted(*conditions: Any) -> Any:
        return select(func.count()).select_from(memory).where(within, *conditions).correlate(setting).scalar_subquery()

    # Ranges of one index: IS DISTINCT FROM would read every entry.
    unembedded = (
        counted(memory.c.embedding_model.is_(None))
        + counted(memory.c.embedding_model < model)
        + counted(memory.c.embedding_model > model)
    )
    enough = (
        select(literal(1))
        .select_from(memory)
        .where(within, memory.c.embedding_model == model)
        .limit(bindparam("count_to"))
        .correlate(setting)
    )
    return Statement(
        select(
            moment.c.now,
            select(organisation.c.ledger_id)
            .where(organisation.c.org_id == bindparam("org_id"))
            .scalar_subquery()
            .label("ledger_id"),
            select(ledger.c.entry_id)
            .where(ledger.c.org_id == bindparam("org_id"))
            .order_by(ledger.c.number.desc())
            .limit(1)
            .scalar_subquery()
            .label("last_entry"),
            model,
            setting.c.embedding_dimensions,
            unembedded.label("unembedded"),
            select(func.count()).select_from(enough.subquery()).scalar_subquery().label("embedded"),
        )
        .select_from(moment)
        .outerjoin(setting, setting.c.org_id == bindparam("org_id"))
    )


def pin(connection: Connection, org_id: str, *, model: str, dimensions: int, replace: bool) -> tuple[str, int]:
    """Pin the embedding model of an organisation, and return the pair that is pinned then.

    Without `replace` a pin that stands is kept.
    """
    new = insert(organisation_setting).values(org_id=org_id, embedding_model=model, embedding_dimensions=dimensions)
    keep = and_(organisation_setting.c.embedding_model.is_not(None), literal(not replace))
    statement = new.on_conflict_do_update(
        index_elements=["org_id"],
        set_={
            name: case((keep, organisation_setting.c[name]), else_=new.excluded[name])
            for name in ("embedding_model", "embedding_dimensions")
        },
        where=organisation_setting.c.org_id == org_id,
    ).returning(organisation_setting.c.embedding_model, organisation_setting.c.embedding_dimensions)
    row = connection.execute(statement).one()
    return row.embedding_model, row.embedding_dimensions


def figures(connection: Connection, org_id: str, *, now: datetime) -> list[Row[Any]]:
    """Return, per kind, origin and state, how many memories there are, and when the newest was written."""
    state = case(
        (memory.c.forgotten_at.is_not(None), "forgotten"),
        (memory.c.swept_at.is_not(None), "swept"),
        (memory.c.restricted_at.is_not(None), "restricted"),
        (memory.c.expires_at <= now, "expired"),
        else_="live",
    ).label("state")
    return list(
        connection.execute(
            select(
                memory.c.kind,
                memory.c.origin,
                state,
                func.count().label("memories"),
                func.max(memory.c.created_at).label("newest_at"),
            )
            .where(memory.c.org_id == org_id)
            .group_by(memory.c.kind, memory.c.origin, state)
        )
    )


def expiring(connection: Connection, org_id: str, *, now: datetime, days: int) -> dict[date, int]:
    """Return how many live memories expire on each date (in UTC) of the next days, counted to the hour of now."""
    moment = now_or(given=True)
    day = cast(func.timezone("UTC", memory.c.expires_at), Date).label("day")
    statement = (
        select(day, func.count().label("memories"))
        .where(live(moment), memory.c.expires_at < moment + func.make_interval(0, 0, 0, days))
        .group_by(literal_column("1"))
    )
    return {row.day: row.memories for row in connection.execute(statement, {"org_id": org_id, "now": now})}


def subject_count(connection: Connection, org_id: str) -> int:
    """Return of how many subjects text is held."""
    pairs = (
        select(memory.c.subject_type, memory.c.subject_id)
        .where(memory.c.org_id == org_id, memory.c.subject_id.is_not(None), memory.c.text.is_not(None))
        .distinct()
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(pairs)).scalar_one()
