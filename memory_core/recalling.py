"""Choosing the memories a model is shown, on the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_core.db import organisations, rankings, recalls, searches
from memory_core.db.engine import organisation_transaction
from memory_core.db.organisations import Census
from memory_core.db.rankings import Ranked
from memory_core.embedders import Vector
from memory_core.embedding import NONE_CONFIGURED, STAYS_HERE, Choice, Unserved
from memory_core.errors import BadVector, EmbedderError, EmbedderTimeout
from memory_core.identity import new_id
from memory_core.leaving import to_outside
from memory_core.model import Memory, PassedOver, Ranking, Recall, RecalledMemory, RecallMode, Search, Timings
from memory_core.prompt.block import memory_block
from memory_core.prompt.fence import DrawBoundary
from memory_core.restoring import RestoreWatch
from memory_core.rules.request import Request

ASKED_FOR = "asked for"
NOTHING_EMBEDDED = "no live memory has an embedding by this model"
NONE_OF_THOSE_EMBEDDED = "no live memory of those asked for has an embedding by this model"
UNREACHABLE = "the embedder is unreachable"
TOO_SLOW = "the embedder was too slow"
UNUSABLE = "the embedder answered with an unusable vector"
# How many are ranked for each that is wanted, so that some may be passed over; more only where all of those say the same.
CANDIDATES = (4, 20, 100)
QUANTISE_ABOVE = 20_000  # embedded memories; see docs/decisions/0004


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A query as a vector by the pinned model, or why there is none."""

    pinned: tuple[str, int] | None
    vector: Vector | None
    reason: str | None
    embed_ms: float


@dataclass(frozen=True, kw_only=True)
class _Selection:
    mode: RecallMode
    reason: str | None
    ranking: Ranking
    search: Search
    memories: Sequence[tuple[Memory, float | None, bool]]  # with its score, and whether it fills up
    passed_over: Sequence[PassedOver] = ()


class Recaller:
    """One organisation's recalls."""

    def __init__(
        self,
        engine: Engine,
        org_id: str,
        *,
        choose: Choice,
        clock: Callable[[], datetime] | None,
        draw_boundary: DrawBoundary,
        watch: RestoreWatch,
    ) -> None:
        self._engine = engine
        self._org_id = org_id
        self._choose = choose
        self._clock = clock
        self._draw_boundary = draw_boundary
        self._watch = watch
        self._pinned: tuple[str, int] | None = None  # as last seen; each recall's own transaction has the last word

    def recall(self, request: Request) -> Recall:
        """Choose, show and record, in one transaction; the query is embedded before it opens."""
        while True:
            question = self._question(request)
            # The planner takes the parts of a ranking for a few rows each, and would go through them over and over.
            with organisation_transaction(
                self._engine, self._org_id, switched_off=["enable_nestloop", "jit"]
            ) as connection:
                began = time.perf_counter()
                census = organisations.census(
                    connection,
                    self._org_id,
                    now=self._clock() if self._clock else None,
                    count_to=QUANTISE_ABOVE + 1 if question.vector is not None else 0,
                )
                self._watch.require_not_behind(connection, census.ledger_id, census.last_entry)
                seen = _pin(census)
                if seen == question.pinned or request.ranking in (Ranking.RECENCY, Ranking.LEXICAL):
                    if census.ledger_id is None:
                        organisations.enter(connection, self._org_id)
                    chosen = self._selected(connection, request, question, census)
                    return self._recorded(connection, request, question, census, chosen, began)
            # The model was pinned or changed since this store last looked: vectors of two models never meet.
            self._pinned = seen

    def _question(self, request: Request) -> _Question:
        began = time.perf_counter()
        vector, reason = None, None
        if request.ranking is Ranking.RECENCY:
            reason = ASKED_FOR
        elif request.ranking is Ranking.LEXICAL:
            pass  # which needs no vector
        elif self._choose.is_none:
            reason = NONE_CONFIGURED
        elif self._pinned is None:
            reason = NOTHING_EMBEDDED  # nothing to compare with, and so nobody is asked
        else:
            vector, reason = self._embedded(request.query, *self._pinned)
        return _Question(pinned=self._pinned, vector=vector, reason=reason, embed_ms=_ms_since(began))

    def _embedded(self, query: str, model: str, dimensions: int) -> tuple[Vector | None, str | None]:
        try:
            chosen = self._choose.serve(model)
            if isinstance(chosen, Unserved):
                return None, chosen.reason
            if chosen.is_outside and to_outside(self._engine, self._org_id).observations_stay:
                return None, STAYS_HERE  # a question names people as well
            return chosen.embed_query(query, dimensions=dimensions), None
        except EmbedderTimeout:
            return None, TOO_SLOW
        except BadVector:
            return None, UNUSABLE
        except EmbedderError:
            return None, UNREACHABLE

    def _selected(self, connection: Connection, request: Request, question: _Question, census: Census) -> _Selection:
        reason = question.reason
        if request.ranking is Ranking.LEXICAL:
            return self._by_words(connection, request, None, census)
        if question.vector is not None and request.ranking is not Ranking.DENSE:
            selection = self._by_words(connection, request, question, census)
            if selection.memories and not selection.memories[0][2]:
                return selection
            reason = self._nothing_embedded(request)
        elif question.vector is not None and question.pinned is not None:
            quantised = census.embedded > QUANTISE_ABOVE
            near = searches.nearest(
                connection,
                self._org_id,
                question.vector,
                model=question.pinned[0],
                now=census.now,
                limit=request.limit,
                kinds=request.kinds,
                subject=request.subject,
                quantised=quantised,
            )
            if near:
                # Not "those without a vector": one that is embedded between the two statements would be in neither.
                filling = self._newest(
                    connection,
                    request,
                    census,
                    limit=request.limit - len(near),
                    besides=[memory.memory_id for memory, _ in near],
                )
                return _Selection(
                    mode=RecallMode.SEMANTIC,
                    reason=None,
                    ranking=Ranking.DENSE,
                    search=Search.QUANTISED if quantised else Search.EXACT,
                    memories=[
                        *((memory, score, False) for memory, score in near),
                        *((one, None, True) for one in filling),
                    ],
                )
            reason = self._nothing_embedded(request)
        return _Selection(
            mode=RecallMode.RECENCY,
            reason=reason,
            ranking=Ranking.RECENCY,
            search=Search.NEWEST,
            memories=[(one, None, False) for one in self._newest(connection, request, census, limit=request.limit)],
        )

    def _nothing_embedded(self, request: Request) -> str:
        return NOTHING_EMBEDDED if request.kinds is None and request.subject is None else NONE_OF_THOSE_EMBEDDED

    def _by_words(
        self, connection: Connection, request: Request, question: _Question | None, census: Census
    ) -> _Selection:
        """Rank by words, together with the question's vector where there is one; the newest fill up."""
        vector = question.vector if question else None
        quantised = vector is not None and census.embedded > QUANTISE_ABOVE
        model, dimensions = (question.pinned if question else None) or (None, 0)
        for wanted in (factor * request.limit for factor in CANDIDATES):
            candidates = rankings.ranked(
                connection,
                self._org_id,
                request.query,
                None if vector is None else searches.as_vector(vector),
                model=model,
                dimensions=dimensions,
                now=census.now,
                candidates=wanted,
                kinds=request.kinds,
                subject=request.subject,
                quantised=quantised,
            )
            taken, passed_over = without_repeats(candidates, limit=request.limit)
            if len(taken) == request.limit or len(candidates) < wanted:
                break
        filling = self._newest(
            connection,
            request,
            census,
            limit=request.limit - len(taken),
            besides=[*(one.memory.memory_id for one in taken), *(one.memory_id for one in passed_over)],
        )
        return _Selection(
            mode=RecallMode.SEMANTIC,
            reason=None,
            ranking=Ranking.LEXICAL if vector is None else Ranking.HYBRID,
            search=Search.QUANTISED if quantised else Search.EXACT,
            memories=[*((one.memory, one.score, False) for one in taken), *((one, None, True) for one in filling)],
            passed_over=passed_over,
        )

    def _newest(
        self,
        connection: Connection,
        request: Request,
        census: Census,
        *,
        limit: int,
        besides: Sequence[UUID] = (),
    ) -> list[Memory]:
        if limit == 0:
            return []
        return searches.newest(
            connection,
            self._org_id,
            now=census.now,
            limit=limit,
            kinds=request.kinds,
            subject=request.subject,
            besides=besides,
        )

    def _recorded(
        self,
        connection: Connection,
        request: Request,
        question: _Question,
        census: Census,
        chosen: _Selection,
        began: float,
    ) -> Recall:
        rendered = memory_block(
            [memory for memory, _, _ in chosen.memories],
            mode=chosen.mode,
            reason=chosen.reason,
            token_budget=request.token_budget,
            draw_boundary=self._draw_boundary,
        )
        recall_id = new_id()
        recalls.record(
            connection,
            self._org_id,
            recall_id,
            [chosen.memories[place][0] for place in rendered.shown],
            run_id=request.run_id,
            purpose=request.purpose.value,
            at=census.now,
            mode=chosen.mode.value,
            reason=chosen.reason,
            ranking=chosen.ranking.value,
            boundary=rendered.block.boundary if rendered.block else None,
            token_budget=request.token_budget,
            omitted=rendered.block.omitted if rendered.block else len(chosen.memories),
            by=request.by,
            because=request.because,
        )
        return Recall(
            recall_id=recall_id,
            run_id=request.run_id,
            at=census.now,
            purpose=request.purpose,
            mode=chosen.mode,
            reason=chosen.reason,
            ranking=chosen.ranking,
            search=chosen.search,
            unembedded=census.unembedded,
            memories=tuple(
                RecalledMemory(memory=memory, score=score, filled_up=filled_up, shown=place in rendered.shown)
                for place, (memory, score, filled_up) in enumerate(chosen.memories)
            ),
            passed_over=tuple(chosen.passed_over),
            block=rendered.block,
            timings=Timings(embed_ms=question.embed_ms, search_ms=_ms_since(began)),
        )


def without_repeats(candidates: Sequence[Ranked], *, limit: int) -> tuple[list[Ranked], list[PassedOver]]:
    """Take the first candidates, but none that says the same about a subject as one that is taken; say what was passed over."""
    taken: dict[int, Ranked] = {}
    passed_over = []
    for place, candidate in enumerate(candidates):
        if len(taken) == limit:
            break
        same = next((taken[better] for better in candidate.same_as if better in taken), None)
        if same is None:
            taken[place] = candidate
        else:
            passed_over.append(PassedOver(memory_id=candidate.memory.memory_id, same_as=same.memory.memory_id))
    return list(taken.values()), passed_over


def _pin(census: Census) -> tuple[str, int] | None:
    if census.pinned_model is None or census.pinned_dimensions is None:
        return None
    return census.pinned_model, census.pinned_dimensions


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
