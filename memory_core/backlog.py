"""Embedding what is stored without a vector: just written, left over, or made by another model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine

from memory_core.db import organisations, searches
from memory_core.db.engine import organisation_transaction
from memory_core.embedders import BATCH, BATCH_LIMIT_S, Guarded, Vector
from memory_core.embedding import STAYS_HERE, Choice, Unserved
from memory_core.errors import EmbedderError, EmbedderTimeout, EmbedderUnavailable
from memory_core.leaving import to_outside

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]  # done, of how many
Batch = Sequence[tuple[UUID, str]]

MEND = "set MEMORY_EMBEDDER=minilm, or have an admin let them leave in Settings"
MOST_BAD_TEXTS = 3  # in one batch; more than that is the embedder's fault


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
    limit_s: float = BATCH_LIMIT_S,
    progress: Progress | None = None,
) -> Embedded:
    """Give every live memory (or each of `among`) a vector by the organisation's model, and pin that with the first.

    Works in batches, each in a transaction of its own, so that an interruption loses one batch's work and no memory.
    Raises an `EmbedderError` where no embedder serves or it fails; for a single text that none can be made of, only after
    all others have theirs.
    """
    with organisation_transaction(engine, org_id) as connection:
        census = organisations.census(connection, org_id, now=clock() if clock else None, count_to=0)
    total = census.unembedded if among is None else len(among)
    pinned, dimensions = census.pinned_model, census.pinned_dimensions
    embedder = _chosen(choose, pinned)
    done, tried = 0, 0
    failures: list[EmbedderError] = []
    if progress:
        progress(0, total)
    for batch in _batches(engine, org_id, (embedder.name, dimensions), clock=clock, among=among):
        _require_leave(engine, org_id, embedder)  # of each batch: it may be taken back meanwhile
        made, failed = _vectors(embedder, batch, dimensions=dimensions, limit_s=limit_s)
        failures += failed
        tried += len(batch)
        if made:
            dimensions = len(next(iter(made.values()))[1])
            with organisation_transaction(engine, org_id) as connection:
                standing = organisations.pin(
                    connection, org_id, model=embedder.name, dimensions=dimensions, replace=False
                )
                if standing == (embedder.name, dimensions):
                    done += searches.embed(connection, org_id, made, model=embedder.name)
            if standing != (embedder.name, dimensions):
                # Somebody pinned another model meanwhile: vectors of two models never meet, so ours are dropped.
                return embed_backlog(
                    engine, org_id, choose, clock=clock, among=among, limit_s=limit_s, progress=progress
                )
        if progress:
            progress(tried, max(total, tried))
    if failures:
        raise failures[0]
    return Embedded(count=done, model=embedder.name)


def _vectors(
    embedder: Guarded, batch: Batch, *, dimensions: int | None, limit_s: float
) -> tuple[dict[UUID, tuple[str, Vector]], list[EmbedderError]]:
    """Return the batch's vectors by identifier, with the failures of single texts that none can be made of.

    Raises the `EmbedderError` where it is the embedder that fails, and not a text.
    """
    texts = [text for _, text in batch]
    try:
        vectors = embedder.embed_documents(texts, dimensions=dimensions, limit_s=limit_s)
    except EmbedderTimeout:
        raise
    except EmbedderError:
        if len(batch) == 1:
            raise
    else:
        return {one: (text, vector) for (one, text), vector in zip(batch, vectors, strict=True)}, []
    made: dict[UUID, tuple[str, Vector]] = {}
    failures: list[EmbedderError] = []
    for memory_id, text in batch:
        try:
            made[memory_id] = (
                text,
                embedder.embed_documents([text], dimensions=dimensions, limit_s=limit_s, anew=True)[0],
            )
        except EmbedderTimeout:
            raise
        except EmbedderError as failure:
            failures.append(failure)
            if len(failures) > MOST_BAD_TEXTS or (len(failures) > 1 and not made):
                raise
    return made, failures


def repin(engine: Engine, org_id: str, embedder: Guarded) -> None:
    """Pin another embedding model; vectors by the old one are compared no more.

    Raises an `EmbedderError`, and then keeps the pin that stands.
    """
    _require_leave(engine, org_id, embedder)
    dimensions = len(embedder.embed_documents(["dimensions"])[0])
    with organisation_transaction(engine, org_id) as connection:
        organisations.enter(connection, org_id)
        organisations.pin(connection, org_id, model=embedder.name, dimensions=dimensions, replace=True)
        searches.drop_other_lengths(connection, org_id, model=embedder.name, dimensions=dimensions)


def _chosen(choose: Choice, pinned: str | None) -> Guarded:
    chosen = choose.serve(pinned)
    if isinstance(chosen, Unserved):
        raise EmbedderUnavailable(f"nothing was embedded: {chosen.reason}")
    return chosen


def _require_leave(engine: Engine, org_id: str, embedder: Guarded) -> None:
    """Raise `EmbedderUnavailable` where memories would leave the private network and the organisation has not let them."""
    if embedder.is_outside and to_outside(engine, org_id).observations_stay:
        raise EmbedderUnavailable(f"nothing was embedded by {embedder.name}: {STAYS_HERE}; {MEND}")


def _batches(
    engine: Engine, org_id: str, pin: searches.Pin, *, clock: Clock | None, among: Sequence[UUID] | None
) -> Iterator[Batch]:
    def read(*, among: Sequence[UUID] | None = None, after: UUID | None = None) -> Batch:
        now = clock() if clock else None
        with organisation_transaction(engine, org_id) as connection:
            return searches.unembedded(connection, org_id, pin=pin, limit=BATCH, now=now, among=among, after=after)

    if among is not None:
        for start in range(0, len(among), BATCH):
            if batch := read(among=among[start : start + BATCH]):
                yield batch
        return
    after: UUID | None = None
    while batch := read(after=after):
        yield batch
        after = batch[-1][0]
