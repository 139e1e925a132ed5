"""The ranking in plain Python, for the statement in SQL to be checked against.

Of a memory m and the terms t of a question, over N live memories:

    idf(t)   = ln(1 + (N - n + 0.5) / (n + 0.5)), n memories whose text holds t or whose subject bears it
    words(m) = sum of idf(t), times 1 where m's text holds t or its subject bears it, else 0.7 where the memory before it in
               its run has t in its text, else 0.5 where the one before that has
    name(m)  = the most of any t that m's subject bears: the share of t's n memories whose subject bears it, 0.7 of that where
               m's own text holds t
    own(m)   = cosine(m) + 0.07 * words(m)² / sum of idf + 0.45 * name(m)
    score(m) = own(m) + 0.2 * the best own of its run, the latter only where any text holds any term
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

MONTHS = {
    stem: f"-{number:02}"
    for number, stems in enumerate(
        (
            *("januari jan", "februari feb", "march mar", "april apr", "may", "june jun", "juli jul", "august aug"),
            *("septemb sep sept", "octob oct", "novemb nov", "decemb dec"),
        ),
        start=1,
    )
    for stem in stems.split()
}
MOST_TERMS = 24
OF_IDS = "[A-Za-z0-9._:@/+-]"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A live memory, as far as its place depends on it."""

    key: Hashable
    run: str
    moment: tuple[Any, ...]  # what a run is in the order of
    cosine: float
    text: str
    subject: tuple[str, str] | None  # type and id
    names: str  # label and aliases of the subject, by spaces


class Reference:
    """Scores by the words as PostgreSQL itself takes them from a text."""

    def __init__(self, connection: Any) -> None:
        read = "SELECT lexeme, positions FROM unnest(to_tsvector('english', %s::text))"
        self.lexemes = cache(lambda text: dict(connection.execute(read, (text,)).fetchall()))

    def scores(self, asked: str, live: Sequence[Candidate], *, by_words_alone: bool = False) -> dict[Hashable, float]:
        """Return every candidate's score; by words alone only of those that share a word, and without the cosines."""
        terms = self._terms(asked)
        holds = {m.key: {t for t, also in terms.items() if also & self.lexemes(m.text).keys()} for m in live}
        bears = {m.key: self._borne(m, asked) & terms.keys() for m in live}
        holders = {t: sum(t in holds[m.key] or t in bears[m.key] for m in live) for t in terms}
        idf = {t: math.log(1 + (len(live) - n + 0.5) / (n + 0.5)) for t, n in holders.items()}
        share = {t: sum(t in bears[m.key] for m in live) / n for t, n in holders.items() if n}
        before = self._before(live)
        own: dict[Hashable, float] = {}
        for m in live:
            words = dict.fromkeys(holds[m.key] | bears[m.key], 1.0)
            for neighbour, worth in zip(before[m.key], (0.7, 0.5), strict=False):
                words = dict.fromkeys(holds[neighbour], worth) | words  # what is nearer counts
            weight = sum(idf[t] * worth for t, worth in words.items())
            if by_words_alone and not weight:
                continue
            name = max((share[t] * (0.7 if t in holds[m.key] else 1.0) for t in bears[m.key]), default=0.0)
            matched = 0.07 * weight**2 / sum(idf.values()) if terms else 0.0
            own[m.key] = (0.0 if by_words_alone else m.cosine) + matched + 0.45 * name
        best: dict[str, float] = {}
        for m in live:
            if m.key in own:
                best[m.run] = max(best.get(m.run, -math.inf), own[m.key])
        share_of_run = 0.2 if any(holds.values()) else 0.0
        return {m.key: own[m.key] + share_of_run * best[m.run] for m in live if m.key in own}

    def _terms(self, asked: str) -> Mapping[str, frozenset[str]]:
        """Return the question's longest terms, each with the lexemes of a text that count as it."""
        found = self.lexemes(asked)
        kept = sorted(found, key=lambda term: (-len(term), term))[:MOST_TERMS]
        months = {place for term in kept if term in MONTHS for place in found[term]}
        terms = {}
        for term in kept:
            also = {term}
            if term in MONTHS:
                also.add(MONTHS[term])
            elif re.fullmatch("[0-9]{1,2}", term) and any({at - 1, at + 1} & months for at in found[term]):
                also.add(f"-{int(term):02}")
            terms[term] = frozenset(also)
        return terms

    def _borne(self, m: Candidate, asked: str) -> set[str]:
        """Return the words of the subject's names, and those of its id where the question has the whole id."""
        if m.subject is None:
            return set()
        named = set(self.lexemes(m.names.lower()))
        whole = rf"(?<!{OF_IDS}){re.escape(m.subject[1])}(?=[.:/+-]*(?!{OF_IDS}))"
        return named | (set(self.lexemes(m.subject[1])) if re.search(whole, asked, re.IGNORECASE) else set())

    @staticmethod
    def _before(live: Sequence[Candidate]) -> dict[Hashable, list[Hashable]]:
        """Return, for each, the memory before it in its run and the one before that, as far as there are any."""
        runs: dict[str, list[Hashable]] = {}
        before = {}
        for m in sorted(live, key=lambda m: m.moment):
            run = runs.setdefault(m.run, [])
            before[m.key] = run[-1:-3:-1]
            run.append(m.key)
        return before
