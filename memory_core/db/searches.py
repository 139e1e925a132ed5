"""Queries on what may be recalled: newest, nearest, not yet embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Select,
    Text,
    Uuid,
    all_,
    any_,
    bindparam,
    cast,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import BIT

from memory_core.db.held import about
from memory_core.db.memories import COLUMNS, digest, live, memory_of, now_or
from memory_core.db.statements import Statement
from memory_core.db.tables import memory
from memory_core.identifiers import identifier_refusal
from memory_core.model import Kind, Memory, Subject

Pin = tuple[str, int | None]  # a model and the length of its vectors, None before the first is made
QUANTISED_CANDIDATES = 200  # re-ranked exactly


def newest(
    connection: Connection,
    org_id: str,
    *,
    now: datetime,
    limit: int,
    kinds: Sequence[Kind] | None = None,
    subject: Subject | None = None,
    besides: Sequence[UUID] = (),
) -> list[Memory]:
    """Return live memories, newest first, besides those that are chosen already."""
    statement = _newest(kinds is not None, subject is not None, bool(besides))
    values = {"org_id": org_id, "now": now, "limit": limit, **_filters(kinds, subject)}
    if besides:
        values["besides"] = list(besides)
    return [memory_of(row, now=now) for row in statement.run(connection, **values)]


@lru_cache
def _newest(by_kind: bool, by_subject: bool, besides: bool) -> Statement:
    statement = _wanted(select(*COLUMNS), by_kind, by_subject)
    if besides:
        statement = statement.where(memory.c.memory_id != all_(bindparam("besides", type_=ARRAY(Uuid))))
    return Statement(
        statement.order_by(memory.c.created_at.desc(), memory.c.memory_id.desc()).limit(bindparam("limit"))
    )


def nearest(
    connection: Connection,
    org_id: str,
    vector: Sequence[float],
    *,
    model: str,
    now: datetime,
    limit: int,
    kinds: Sequence[Kind] | None = None,
    subject: Subject | None = None,
    quantised: bool = False,
) -> list[tuple[Memory, float]]:
    """Return live memories that this model embedded, nearest first, each with its cosine similarity.

    `quantised` compares the signs of the vectors first, and re-ranks the 200 best (or four times the limit) exactly.
    """
    statement = _nearest(model, len(vector), kinds is not None, subject is not None, quantised)
    values = {"org_id": org_id, "now": now, "limit": limit, "query": as_vector(vector), **_filters(kinds, subject)}
    if quantised:
        values["candidates"] = max(QUANTISED_CANDIDATES, 4 * limit)
    return [(memory_of(row, now=now), 1 - row.distance) for row in statement.run(connection, **values)]


@lru_cache
def _nearest(model: str, dimensions: int, by_kind: bool, by_subject: bool, quantised: bool) -> Statement:
    if identifier_refusal(model, field="model"):
        raise ValueError(f"{model!r} is no model's name")
    # A parameter of the vector's own type: text would be parsed again for every row once the plan is a generic one.
    query = cast(bindparam("query", type_=HALFVEC()), HALFVEC())
    distance = memory.c.embedding.cosine_distance(query).label("distance")
    comparable = (
        # As a literal: the owner's index of one model's vectors is partial, and a generic plan uses no partial index.
        memory.c.embedding_model == literal_column(f"'{model}'"),
        func.vector_dims(memory.c.embedding) == literal_column(str(dimensions)),
    )
    if quantised:
        bits = cast(func.binary_quantize(memory.c.embedding), BIT(dimensions))
        hamming = bits.op("<~>")(cast(func.binary_quantize(query), BIT(dimensions)))
        likely = (
            _wanted(select(memory.c.memory_id), by_kind, by_subject)
            .where(*comparable)
            .order_by(hamming)
            .limit(bindparam("candidates"))
            .cte("likely")
        )
        statement = select(distance, *COLUMNS).where(
            memory.c.org_id == bindparam("org_id"), memory.c.memory_id.in_(select(likely.c.memory_id))
        )
    else:
        statement = _wanted(select(distance, *COLUMNS), by_kind, by_subject).where(*comparable)
    return Statement(
        statement.order_by("distance", memory.c.created_at.desc(), memory.c.memory_id.desc()).limit(bindparam("limit"))
    )


def _incomparable() -> ColumnElement[bool]:
    return or_(
        memory.c.embedding_model.is_distinct_from(bindparam("model")),
        func.vector_dims(memory.c.embedding) != bindparam("dimensions"),
    )


def _wanted(statement: Select[Any], by_kind: bool, by_subject: bool) -> Select[Any]:
    statement = statement.where(live(now_or(given=True)))
    if by_kind:
        statement = statement.where(memory.c.kind == any_(bindparam("kinds", type_=ARRAY(Text))))
    return statement.where(about(memory)) if by_subject else statement


def _filters(kinds: Sequence[Kind] | None, subject: Subject | None) -> dict[str, Any]:
    by_kind = {} if kinds is None else {"kinds": [kind.value for kind in kinds]}
    return by_kind if subject is None else by_kind | {"subject_type": subject.type, "subject_id": subject.id}


def unembedded(
    connection: Connection,
    org_id: str,
    *,
    pin: Pin,
    limit: int,
    now: datetime | None,
    among: Sequence[UUID] | None = None,
    after: UUID | None = None,
) -> list[tuple[UUID, str]]:
    """Return identifiers and texts of live memories without a vector of that model and length, in the identifiers' order."""
    statement = _unembedded(now is not None, among is not None, after is not None)
    values: dict[str, Any] = {"org_id": org_id, "model": pin[0], "dimensions": pin[1], "limit": limit}
    if now is not None:
        values["now"] = now
    if among is not None:
        values["among"] = list(among)
    if after is not None:
        values["after"] = after
    return [(row.memory_id, row.text) for row in statement.run(connection, **values)]


@lru_cache
def _unembedded(clock: bool, among: bool, after: bool) -> Statement:
    conditions: list[ColumnElement[bool]] = [
        live(now_or(clock)),
        _incomparable(),
    ]
    if among:
        conditions.append(memory.c.memory_id == any_(bindparam("among", type_=ARRAY(Uuid))))
    if after:
        conditions.append(memory.c.memory_id > bindparam("after"))
    return Statement(
        select(memory.c.memory_id, memory.c.text)
        .where(*conditions)
        .order_by(memory.c.memory_id)
        .limit(bindparam("limit"))
    )


def embed(
    connection: Connection, org_id: str, vectors: Mapping[UUID, tuple[str, Sequence[float]]], *, model: str
) -> int:
    """Store vectors, each only while its memory still has the text it was made from and may be used.

    A memory that somebody else is writing is left for later: whoever waits for nobody holds nobody up. Returns how many
    were stored.
    """
    free = {row.memory_id for row in _free().run(connection, org_id=org_id, among=list(vectors))}
    if not free:
        return 0
    values = [
        {"org_id": org_id, "model": model, "id": memory_id, "digest": digest(text), "vector": as_vector(vector)}
        for memory_id, (text, vector) in vectors.items()
        if memory_id in free
    ]
    return _embed().run_for_each(connection, values).rowcount


@lru_cache
def _free() -> Statement:
    return Statement(
        select(memory.c.memory_id)
        .where(
            memory.c.org_id == bindparam("org_id"), memory.c.memory_id == any_(bindparam("among", type_=ARRAY(Uuid)))
        )
        .with_for_update(key_share=True, skip_locked=True)
    )


@lru_cache
def _embed() -> Statement:
    return Statement(
        update(memory)
        .where(
            memory.c.org_id == bindparam("org_id"),
            memory.c.memory_id == bindparam("id"),
            memory.c.text_sha256 == bindparam("digest"),
            memory.c.restricted_at.is_(None),
        )
        .values(embedding=bindparam("vector", type_=HALFVEC()), embedding_model=bindparam("model"))
    )


def as_vector(vector: Sequence[float]) -> str:
    """Return a vector as PostgreSQL reads it; six digits are twice what a half-precision number keeps."""
    return "[" + ",".join(["%.6g"] * len(vector)) % tuple(vector) + "]"


def drop_other_lengths(connection: Connection, org_id: str, *, model: str, dimensions: int) -> None:
    """Remove vectors that a model made before it came to make them of another length, so that they count as missing."""
    connection.execute(
        update(memory)
        .where(
            memory.c.org_id == org_id,
            memory.c.embedding_model == model,
            func.vector_dims(memory.c.embedding) != dimensions,
        )
        .values(embedding=None, embedding_model=None)
    )
