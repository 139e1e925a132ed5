"""Queries on what may be recalled: newest, nearest, not yet embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import ColumnElement, Connection, Select, bindparam, cast, func, select, true, update
from sqlalchemy.dialects.postgresql import BIT

from memory_core.db.memories import COLUMNS, about, digest, live, memory_of
from memory_core.db.tables import memory
from memory_core.model import Kind, Memory, Subject

QUANTISED_CANDIDATES = 200  # re-ranked exactly


def newest(
    connection: Connection,
    org_id: str,
    *,
    now: datetime,
    limit: int,
    kinds: Sequence[Kind] | None = None,
    subject: Subject | None = None,
    without_model: str | None = None,
) -> list[Memory]:
    """Return live memories, newest first; with `without_model`, only those that have no embedding by that model."""
    statement = _wanted(select(*COLUMNS), org_id, now=now, kinds=kinds, subject=subject)
    if without_model is not None:
        statement = statement.where(memory.c.embedding_model.is_distinct_from(without_model))
    statement = statement.order_by(memory.c.created_at.desc(), memory.c.memory_id.desc()).limit(limit)
    return [memory_of(row, now=now) for row in connection.execute(statement)]


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
    query = bindparam("query", list(vector), HALFVEC())
    distance = memory.c.embedding.cosine_distance(query)
    if not quantised:
        statement = _wanted(
            select(distance.label("distance"), *COLUMNS), org_id, now=now, kinds=kinds, subject=subject
        ).where(*_comparable(model, len(vector)))
    else:
        width = len(vector)
        bits = cast(func.binary_quantize(memory.c.embedding), BIT(width))
        hamming = bits.op("<~>")(cast(func.binary_quantize(query), BIT(width)))
        likely = (
            _wanted(select(memory.c.memory_id), org_id, now=now, kinds=kinds, subject=subject)
            .where(*_comparable(model, width))
            .order_by(hamming)
            .limit(max(QUANTISED_CANDIDATES, 4 * limit))
            .cte("likely")
        )
        statement = select(distance.label("distance"), *COLUMNS).where(
            memory.c.org_id == org_id, memory.c.memory_id.in_(select(likely.c.memory_id))
        )
    statement = statement.order_by("distance", memory.c.created_at.desc(), memory.c.memory_id.desc()).limit(limit)
    return [(memory_of(row, now=now), 1 - row.distance) for row in connection.execute(statement)]


def _comparable(model: str, dimensions: int) -> tuple[ColumnElement[bool], ...]:
    # As literals: the owner's index of one model's vectors is partial, and a generic plan uses no partial index.
    return (
        memory.c.embedding_model == bindparam("model", model, literal_execute=True),
        func.vector_dims(memory.c.embedding) == dimensions,
    )


def _wanted(
    statement: Select[Any],
    org_id: str,
    *,
    now: datetime,
    kinds: Sequence[Kind] | None,
    subject: Subject | None,
) -> Select[Any]:
    return statement.where(
        live(org_id, now),
        true() if kinds is None else memory.c.kind.in_([kind.value for kind in kinds]),
        true() if subject is None else about(memory, org_id, subject),
    )


def unembedded(
    connection: Connection,
    org_id: str,
    *,
    model: str,
    limit: int,
    now: datetime | None,
    among: Sequence[UUID] | None = None,
    after: UUID | None = None,
) -> list[tuple[UUID, str]]:
    """Return identifiers and texts of live memories that this model has not embedded, in the identifiers' order."""
    statement = (
        select(memory.c.memory_id, memory.c.text)
        .where(live(org_id, now), memory.c.embedding_model.is_distinct_from(model))
        .order_by(memory.c.memory_id)
        .limit(limit)
    )
    if among is not None:
        statement = statement.where(memory.c.memory_id.in_(among))
    if after is not None:
        statement = statement.where(memory.c.memory_id > after)
    return [(row.memory_id, row.text) for row in connection.execute(statement)]


def embed(
    connection: Connection, org_id: str, vectors: Mapping[UUID, tuple[str, Sequence[float]]], *, model: str
) -> None:
    """Store vectors, each only while its memory still has the text it was made from and may be used."""
    connection.execute(
        update(memory)
        .where(
            memory.c.org_id == org_id,
            memory.c.memory_id == bindparam("b_id"),
            memory.c.text_sha256 == bindparam("b_digest"),
            memory.c.restricted_at.is_(None),
        )
        .values(embedding=bindparam("b_vector", type_=HALFVEC()), embedding_model=model),
        [
            {"b_id": memory_id, "b_digest": digest(text), "b_vector": list(vector)}
            for memory_id, (text, vector) in vectors.items()
        ],
    )
