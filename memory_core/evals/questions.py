"""Questions whose evidence is known, read from JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, BinaryIO

from memory_core.errors import LineRefused, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.rules.request import recall_request

ALL = "all"  # what stands for every category together
NO_CATEGORY = "uncategorised"
MAX_CATEGORY = 64


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with what answers it: `evidence` names sources of memories, any of which is an answer."""

    number: int  # of its line, from 1
    org_id: str
    text: str
    evidence: frozenset[str]
    category: str


def read_questions(
    stream: BinaryIO,
    sources: Mapping[str, Set[str]],
    *,
    org_id: str | None = None,
    allow_missing: bool = False,
) -> list[Question]:
    """Read a file of questions about memories whose sources are given by organisation; blank lines are passed over.

    Each line is a JSON object of `org_id`, `question` and `evidence` (a list of sources), and optionally `category`; any
    other field is passed over. `org_id` replaces every line's own. With `allow_missing` evidence that names no memory counts as
    never found, instead of being refused. Raises `LineRefused` for the first bad line, or `Refused`
    where there is no question.
    """
    questions: list[Question] = []
    faults: list[tuple[int, Refusal]] = []
    for number, raw in enumerate(stream, start=1):
        if not raw.strip():
            continue
        try:
            questions.append(
                _question(number, raw, None if allow_missing else sources, org_id=org_id, organisations=sources.keys())
            )
        except Refused as refused:
            faults.append((number, refused.refusal))
    if faults:
        number, refusal = faults[0]
        raise LineRefused(refusal, line=number, others=len(faults) - 1)
    if not questions:
        raise Refused(_refusal("file_has_questions", "file", "has no questions"))
    return questions


def _question(
    number: int, raw: bytes, sources: Mapping[str, Set[str]] | None, *, org_id: str | None, organisations: Set[str]
) -> Question:
    fields = _object(raw, first=number == 1)
    owner = fields.get("org_id") if org_id is None else org_id
    refusal = identifier_refusal(owner, field="org_id")
    if refusal:
        raise Refused(refusal)
    if owner not in organisations:
        raise Refused(_refusal("question_has_memories", "org_id", f"is {str(owner)!r}, of which there are no memories"))
    text = fields.get("question")
    asked = recall_request(
        text, run_id="eval", limit=1, token_budget=None, kinds=None, subject=None, ranking=None, purpose="preview"
    )
    if isinstance(asked, Refusal):
        raise Refused(_refusal(asked.rule, "question", asked.reason))
    return Question(
        number=number,
        org_id=str(owner),
        text=str(text),
        evidence=_evidence(fields.get("evidence"), str(owner), sources),
        category=_category(fields.get("category", NO_CATEGORY)),
    )


def _category(given: Any) -> str:
    category = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
    if not category.strip() or len(category) > MAX_CATEGORY or not category.isprintable() or "|" in category:
        reason = f"must be a word or a number, up to {MAX_CATEGORY} characters on one line, without |"
        raise Refused(_refusal("category_is_a_word", "category", reason))
    if category == ALL:
        raise Refused(
            _refusal("category_is_a_word", "category", f"must not be {ALL!r}, which stands for every question")
        )
    return category


def _evidence(listed: Any, org_id: str, sources: Mapping[str, Set[str]] | None) -> frozenset[str]:
    if not isinstance(listed, list) or not listed or not all(isinstance(one, str) for one in listed):
        raise Refused(_refusal("evidence_is_a_list", "evidence", "must be a list of one source or more"))
    if len(set(listed)) < len(listed):
        raise Refused(_refusal("evidence_is_named_once", "evidence", "names a source twice"))
    if sources is None:
        return frozenset(listed)
    known = sources.get(org_id, frozenset())
    for one in listed:
        if one in known:
            continue
        elsewhere = any(one in others for others in sources.values())
        where = f"no memory of {org_id}, but one of another organisation" if elsewhere else f"no memory of {org_id}"
        raise Refused(_refusal("evidence_names_memories", "evidence", f"{one[:64]!r} names {where}"))
    return frozenset(listed)


def _object(raw: bytes, *, first: bool) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8-sig" if first else "utf-8"), object_pairs_hook=_once)
    except Refused:
        raise
    except (ValueError, RecursionError):
        raise Refused(_refusal("line_is_json", "line", "is no JSON object in UTF-8")) from None
    if not isinstance(value, dict):
        raise Refused(_refusal("line_is_json", "line", "is no JSON object"))
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Refused(_refusal("field_is_given_once", "line", "gives a field twice"))
    return fields


def _refusal(rule: str, field: str, reason: str) -> Refusal:
    return Refusal(rule=rule, field=field, reason=reason)
