"""Embedding what is stored without a vector: just written, left over, or made by another model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine

from memory_core.db import organisations, searches
from memory_core.db.engine import organisation_transaction
from memory_core.embedders import BATCH, Guarded
from memory_core.embedding import Choice, Unserved
from memory_core.errors import EmbedderUnavailable

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]  # done, of how many


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """What an embedding of the backlog did."""

    count: int
    model: str


def embed_backlog(
    engine: Engine,
    org_id: str,
    choose: Choice,
    *,
    clock: Clock | None = None,
    among: Sequence[UUID] | None = None,
    limit_s: float | None = None,
    progress: Progress | None = None,
) -> Embedded:
    """Give every live memory (or each of `among`) a vector by the organisation's model, and pin that with the first.

    Works in batches, each in a transaction of its own, so that an interruption loses one batch's work and no memory.
    Raises an `EmbedderError` where no embedder serves or it fails.
    """
    with organisation_transaction(engine, org_id) as connection:
        census = organisations.census(connection, org_id, now=clock() if clock else None, count_to=0)
    total = census.unembedded if among is None else len(among)
    pinned, dimensions = census.pinned_model, census.pinned_dimensions
    done = 0
    embedder = _chosen(choose, pinned)
    batches = _Batches(engine, org_id, clock=clock, among=among)
    if progress:
        progress(0, total)
    for batch in batches.by(embedder.name):
        texts = [text for _, text in batch]
        vectors = (
            embedder.embed_documents(texts, dimensions=dimensions)
            if limit_s is None
            else embedder.embed_documents(texts, dimensions=dimensions, limit_s=limit_s)
        )
        with organisation_transaction(engine, org_id) as connection:
            standing = organisations.pin(
                connection, org_id, model=embedder.name, dimensions=len(vectors[0]), replace=False
            )
            if standing == (embedder.name, len(vectors[0])):
                made = {memory_id: (text, vector) for (memory_id, text), vector in zip(batch, vectors, strict=True)}
                searches.embed(connection, org_id, made, model=embedder.name)
        if standing != (embedder.name, len(vectors[0])):
            # Somebody pinned another model meanwhile: vectors of two models never meet, so ours are dropped.
            return embed_backlog(engine, org_id, choose, clock=clock, among=among, limit_s=limit_s, progress=progress)
        dimensions = len(vectors[0])
        done += len(batch)
        if progress:
            progress(done, max(total, done))
    return Embedded(count=done, model=embedder.name)


def repin(engine: Engine, org_id: str, embedder: Guarded) -> None:
    """Pin another embedding model; vectors by the old one are compared no more.

    Raises an `EmbedderError`, and then keeps the pin that stands.
    """
    dimensions = len(embedder.embed_documents(["dimensions"])[0])
    with organisation_transaction(engine, org_id) as connection:
        organisations.found(connection, org_id)
        organisations.pin(connection, org_id, model=embedder.name, dimensions=dimensions, replace=True)


def _chosen(choose: Choice, pinned: str | None) -> Guarded:
    chosen = choose.serve(pinned)
    if isinstance(chosen, Unserved):
        raise EmbedderUnavailable(f"nothing was embedded: {chosen.reason}")
    return chosen


class _Batches:
    def __init__(self, engine: Engine, org_id: str, *, clock: Clock | None, among: Sequence[UUID] | None) -> None:
        self._engine, self._org_id, self._clock, self._among = engine, org_id, clock, among

    def by(self, model: str) -> Iterator[list[tuple[UUID, str]]]:
        if self._among is not None:
            for start in range(0, len(self._among), BATCH):
                yield from self._read(model, among=self._among[start : start + BATCH], after=None)
            return
        after: UUID | None = None
        while True:
            found = list(self._read(model, among=None, after=after))
            yield from found
            if not found:
                return
            after = found[0][-1][0]

    def _read(
        self, model: str, *, among: Sequence[UUID] | None, after: UUID | None
    ) -> Iterator[list[tuple[UUID, str]]]:
        with organisation_transaction(self._engine, self._org_id) as connection:
            batch = searches.unembedded(
                connection,
                self._org_id,
                model=model,
                limit=BATCH,
                among=among,
                after=after,
                now=self._clock() if self._clock else None,
            )
        if batch:
            yield batch
