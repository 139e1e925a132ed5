"""What may be asked of a recall."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal
from memory_core.identifiers import identifier_refusal
from memory_core.model import Kind, Purpose, Ranking, Subject

MIN_LIMIT, MAX_LIMIT = 1, 50
MAX_BUDGET = 1_000_000  # tokens; more than any model reads
MAX_QUERY = 8000  # characters; what an agent's last turn may have
MAX_BECAUSE = 200  # characters


@dataclass(frozen=True, kw_only=True)
class Request:
    """A recall that may be carried out."""

    query: str
    run_id: str
    limit: int
    token_budget: int | None
    kinds: tuple[Kind, ...] | None
    subject: Subject | None
    ranking: Ranking | None
    purpose: Purpose
    by: str | None = None  # who looks, and why, where it is a preview
    because: str | None = None


def recall_request(
    query: object,
    *,
    run_id: object,
    limit: object,
    token_budget: object,
    kinds: object,
    subject: object,
    ranking: object,
    purpose: object,
    by: object = None,
    because: object = None,
) -> Request | Refusal:
    """Decide whether a recall may be carried out as asked."""
    refusal = (
        _query_refusal(query)
        or identifier_refusal(run_id, field="run_id")
        or _whole_number_refusal(limit, field="limit", least=MIN_LIMIT, most=MAX_LIMIT)
        or (
            None
            if token_budget is None
            else _whole_number_refusal(token_budget, field="token_budget", least=1, most=MAX_BUDGET)
        )
    )
    if refusal:
        return refusal
    if subject is not None and not isinstance(subject, Subject):
        return Refusal(rule="subject_is_a_subject", field="subject", reason="must be a Subject")
    if ranking != Ranking.RECENCY and is_blank(str(query)):
        return Refusal(
            rule="query_is_not_blank", field="query", reason="is blank; ask something, or for ranking recency"
        )
    wanted = _kinds(kinds)
    if isinstance(wanted, Refusal):
        return wanted
    try:
        order = None if ranking is None else Ranking(str(ranking))
    except ValueError:
        return Refusal(rule="ranking_is_known", field="ranking", reason=f"is not known; use {' or '.join(Ranking)}")
    try:
        why = Purpose(str(purpose))
    except ValueError:
        return Refusal(rule="purpose_is_known", field="purpose", reason=f"is not known; use {' or '.join(Purpose)}")
    if refusal := _looker_refusal(why, by, because):
        return refusal
    return Request(
        query=str(query),
        run_id=str(run_id),
        limit=int(str(limit)),
        token_budget=None if token_budget is None else int(str(token_budget)),
        kinds=wanted,
        subject=subject,
        ranking=order,
        purpose=why,
        by=None if by is None else str(by),
        because=None if because is None else str(because),
    )


def _query_refusal(query: object) -> Refusal | None:
    if not isinstance(query, str):
        return Refusal(rule="query_is_text", field="query", reason="must be a string")
    if "\x00" in query or has_surrogate(query):
        return Refusal(rule="query_is_storable", field="query", reason="has a NUL or a lone surrogate; remove it")
    if len(query) > MAX_QUERY:
        return Refusal(
            rule="query_length", field="query", reason=f"has {len(query):,} characters; at most {MAX_QUERY:,}"
        )
    return None


def _looker_refusal(purpose: Purpose, by: object, because: object) -> Refusal | None:
    if purpose is Purpose.RUN:
        given = next((name for name, value in (("by", by), ("because", because)) if value is not None), None)
        reason = "is for a preview; what a run is shown is recorded with the run"
        return Refusal(rule="only_a_preview_says_who_looks", field=given, reason=reason) if given else None
    if by is not None and (refusal := identifier_refusal(by, field="by")):
        return refusal
    if because is None:
        return None
    if by is None:
        return Refusal(rule="because_is_somebodys", field="by", reason="is missing; say who looks as well")
    if not isinstance(because, str) or is_blank(because):
        return Refusal(rule="because_is_given", field="because", reason="is blank; say why in a few words")
    if "\x00" in because or has_surrogate(because):
        return Refusal(rule="because_is_storable", field="because", reason="has a NUL or a lone surrogate; remove it")
    if len(because) > MAX_BECAUSE:
        reason = f"has {len(because)} characters; at most {MAX_BECAUSE}"
        return Refusal(rule="because_length", field="because", reason=reason)
    return None


def _whole_number_refusal(value: object, *, field: str, least: int, most: int) -> Refusal | None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        return Refusal(rule=f"{field}_range", field=field, reason=f"must be a whole number from {least} to {most}")
    return None


def _kinds(kinds: object) -> tuple[Kind, ...] | Refusal | None:
    if kinds is None:
        return None
    listed = (kinds,) if isinstance(kinds, str) else tuple(kinds) if isinstance(kinds, Iterable) else ()
    try:
        wanted = tuple(sorted({Kind(str(kind)) for kind in listed}))
    except ValueError:
        wanted = ()
    if not wanted:
        return Refusal(rule="kind_is_known", field="kinds", reason=f"must name {' or '.join(Kind)}, or be left out")
    return wanted
