"""The statement that ranks memories by their vectors together with their words, names, dates and neighbours.

docs/decisions/0011 says what each part is worth and how it was measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, text

from memory_core.db.memories import COLUMNS, memory_of
from memory_core.db.tables import TYPOGRAPHIC, plain
from memory_core.identifiers import identifier_refusal
from memory_core.model import Kind, Memory, Subject

WORDS = 0.07  # of the words that a memory shares with the question
BEFORE, BEFORE_THAT = 0.7, 0.5  # a word that only the memory before it in its run has, or the one before that
NAME = 0.45  # the question names the subject
SAID = 0.3  # less of that where the text says the name itself: the vector has it already
RUN = 0.2  # share of its run's best score
MOST_TERMS = 24  # of a question, the longest: each is looked for in every memory
SEEDS, QUANTISED_SEEDS = 50, 200  # of the nearest, and of those that share most words
SAME = 0.95  # cosine from which two memories about one subject say the same

_TOKEN = re.compile(r"[a-z0-9._:@/+-]+(?:'s)?")
_ENDS = ".:/+-"
_AS_PLAIN = str.maketrans(TYPOGRAPHIC, " " * len(TYPOGRAPHIC))
_MONTHS = {
    "-01": "januari jan",
    "-02": "februari feb",
    "-03": "march mar",
    "-04": "april apr",
    "-05": "may",
    "-06": "june jun",
    "-07": "juli jul",
    "-08": "august aug",
    "-09": "septemb sep sept",
    "-10": "octob oct",
    "-11": "novemb nov",
    "-12": "decemb dec",
}


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One memory in its place; `same_as` are the places (from 0) of better ones that say the same about its subject."""

    memory: Memory
    score: float
    same_as: tuple[int, ...]


def ranked(
    connection: Connection,
    org_id: str,
    question: str,
    vector: str | None,
    *,
    model: str | None,
    dimensions: int,
    now: datetime,
    candidates: int,
    kinds: Sequence[Kind] | None = None,
    subject: Subject | None = None,
    quantised: bool = False,
) -> list[Ranked]:
    """Return so many live memories, best first.

    With a vector of `model` they are ranked by vectors and words together, over the memories that it embedded; without one by
    words alone, over those that share any. `quantised` finds the nearest by the signs of their vectors.
    """
    values: dict[str, Any] = {
        "org_id": org_id,
        "now": now,
        "question": question.translate(_AS_PLAIN),
        "query": vector,
        "said": said_in(question),
        "candidates": candidates,
        "seeds": max(QUANTISED_SEEDS if quantised else SEEDS, candidates),
    }
    if kinds is not None:
        values["kinds"] = [kind.value for kind in kinds]
    if subject is not None:
        values |= {"subject_type": subject.type, "subject_id": subject.id}
    statement = _statement(
        model if vector is not None else None, dimensions, kinds is not None, subject is not None, quantised
    )
    return [
        Ranked(memory=memory_of(row, now=now), score=row.score, same_as=tuple(row.same_as or ()))
        for row in connection.exec_driver_sql(statement, values)
    ]


def said_in(question: str) -> list[str]:
    """Return what of a question may be the id of a subject, in small letters."""
    tokens = _TOKEN.findall(question.translate(_AS_PLAIN).lower())
    forms = {form for token in tokens for form in (token, token.rstrip(_ENDS), token.removesuffix("'s"))}
    return sorted((forms | {part for form in forms for part in re.split("[:/]", form)}) - {""})


@lru_cache
def _statement(model: str | None, dimensions: int, by_kind: bool, by_subject: bool, quantised: bool) -> str:
    wanted = ["org_id = %(org_id)s", "text IS NOT NULL", "restricted_at IS NULL", "expires_at > %(now)s"]
    if model is not None:
        if identifier_refusal(model, field="model"):
            raise ValueError(f"{model!r} is no model's name")
        # As literals: a generic plan uses no partial index.
        wanted += [f"embedding_model = '{model}'", f"vector_dims(embedding) = {int(dimensions)}"]
    if by_kind:
        wanted.append("kind = ANY(%(kinds)s)")
    if by_subject:
        wanted.append("subject_type = %(subject_type)s AND subject_id = %(subject_id)s")
    months = ", ".join(f"('{stem}', '{also}')" for also, stems in _MONTHS.items() for stem in stems.split())
    vector = f"%(query)s::halfvec({int(dimensions)})"
    cosine = "0" if model is None else f"1 - (embedding <=> {vector})"
    signs = f"bit({int(dimensions)})"
    return _RANKED.format(
        nearness=f"- (binary_quantize(embedding)::{signs} <~> binary_quantize({vector})::{signs})"
        if quantised
        else cosine,
        cosine=f"(SELECT {cosine} FROM memory WHERE org_id = %(org_id)s AND memory_id = live.memory_id)"
        if quantised
        else "nearness",
        wanted=" AND ".join(wanted),
        months=months,
        columns=", ".join(f"memory.{column.name}" for column in COLUMNS),
        # By words alone, what shares none is not found at all.
        found="true" if model is not None else "words.weight > 0",
        nearest="" if model is None else "(SELECT run_id FROM live ORDER BY nearness DESC LIMIT %(seeds)s) UNION",
        same="memory.embedding <=> better.embedding" if model is not None else "1",
    )


_QUOTED = "'''' || replace(replace({}, '\\', '\\\\'), '''', '''''') || ''''"
_RANKED = f"""
WITH asked AS MATERIALIZED (
    SELECT lexeme, positions FROM unnest(to_tsvector('english', %(question)s))
    ORDER BY length(lexeme) DESC, lexeme LIMIT {MOST_TERMS}
),
months (stem, also) AS (VALUES {{months}}),
-- A text with 2023-05-08 has the lexemes -05 and -08: a month's name counts as the one, a number beside it as the other.
terms AS MATERIALIZED (
    SELECT lexeme AS term, ({_QUOTED.format("lexeme")})::tsquery AS itself,
           ({_QUOTED.format("lexeme")} || coalesce(' | ' || {_QUOTED.format("also")}, '') || CASE
               WHEN lexeme ~ '^[0-9]{{{{1,2}}}}$' AND EXISTS (
                   SELECT FROM asked AS month JOIN months ON stem = month.lexeme,
                        unnest(month.positions) AS place, unnest(asked.positions) AS beside
                   WHERE abs(place - beside) = 1
               ) THEN ' | ' || {_QUOTED.format("'-' || lpad(lexeme, 2, '0')")} ELSE '' END)::tsquery AS wanted
    FROM asked LEFT JOIN months ON stem = lexeme
),
live AS MATERIALIZED (
    SELECT memory_id, run_id COLLATE "C" AS run_id, created_at, subject_type, subject_id, {{nearness}} AS nearness,
           CASE WHEN words @@ (SELECT string_agg(wanted::text, ' | ')::tsquery FROM terms) THEN words END AS words
    FROM memory WHERE {{wanted}}
),
-- Subjects whose id the question says.
said AS MATERIALIZED (
    SELECT DISTINCT subject_type, subject_id FROM live WHERE lower(subject_id) = ANY (%(said)s::text[])
),
-- Subjects that the question names: by a word of their label or aliases, or by their whole id.
named AS MATERIALIZED (
    SELECT subject_type, subject_id, term
    FROM (
        SELECT subject_type, subject_id, to_tsvector('english', names) AS names
        FROM (
            SELECT subject_type, subject_id, {plain("lower(concat_ws(' ', label, array_to_string(aliases, ' ')))")} AS names
            FROM directory WHERE org_id = %(org_id)s OFFSET 0
        ) AS known
        -- A stem may end otherwise than its word: in i or ie for y.
        WHERE EXISTS (
            SELECT FROM terms WHERE strpos(names, left(term, greatest(1, length(term) - 1))) > 0
               OR (right(term, 2) = 'ie' AND strpos(names, left(term, length(term) - 2) || 'y') > 0)
        )
        OFFSET 0
    ) AS likely JOIN terms ON names @@ itself
    UNION
    SELECT subject_type, subject_id, term
    FROM said JOIN terms ON to_tsvector('english', subject_id) @@ itself
),
hits AS MATERIALIZED (
    SELECT memory_id, run_id, created_at, term
    FROM terms JOIN (SELECT memory_id, run_id, created_at, words FROM live WHERE words IS NOT NULL) AS likely
    ON words @@ wanted
),
held AS MATERIALIZED (
    SELECT memory_id, min(run_id) AS run_id, min(created_at) AS created_at, term, bool_or(says) AS says, bool_or(bears) AS bears
    FROM (
        SELECT memory_id, run_id, created_at, term, true AS says, false AS bears FROM hits
        UNION ALL
        SELECT memory_id, run_id, created_at, term, false, true FROM named JOIN live USING (subject_type, subject_id)
    ) AS together
    GROUP BY memory_id, term
),
weights AS MATERIALIZED (
    SELECT term, ln(1 + (memories - coalesce(holders, 0) + 0.5) / (coalesce(holders, 0) + 0.5))::float8 AS idf,
           bearers::float8 / holders AS share
    FROM terms
    LEFT JOIN (
        SELECT term, count(*) AS holders, count(*) FILTER (WHERE bears) AS bearers FROM held GROUP BY term
    ) AS counted USING (term),
    (SELECT count(*)::float8 AS memories FROM live) AS all_of_them
),
-- Only what can be among the first is looked at further: the nearest, those that say most of the question, and the rest of
-- the runs that these are in.
seeds AS MATERIALIZED (
    {{nearest}}
    (
        SELECT min(run_id) FROM held JOIN weights USING (term) GROUP BY memory_id
        ORDER BY sum(idf) DESC, min(created_at) DESC LIMIT %(seeds)s
    )
),
placed AS MATERIALIZED (
    SELECT memory_id, run_id, created_at, {{cosine}} AS cosine,
           lag(memory_id) OVER run AS before, lag(memory_id, 2) OVER run AS before_that
    FROM live WHERE run_id IN (SELECT run_id FROM seeds)
    WINDOW run AS (PARTITION BY run_id ORDER BY created_at, memory_id)
),
words AS MATERIALIZED (
    SELECT memory_id, sum(idf * share_of_it) AS weight
    FROM (
        SELECT memory_id, term, max(share_of_it) AS share_of_it
        FROM (
            SELECT memory_id, term, 1.0::float8 AS share_of_it FROM placed JOIN held USING (memory_id)
            UNION ALL
            SELECT placed.memory_id, term, {BEFORE} FROM placed JOIN hits ON hits.memory_id = before
            UNION ALL
            SELECT placed.memory_id, term, {BEFORE_THAT} FROM placed JOIN hits ON hits.memory_id = before_that
        ) AS felt
        GROUP BY memory_id, term
    ) AS best JOIN weights USING (term)
    GROUP BY memory_id
),
names AS MATERIALIZED (
    SELECT memory_id, max(share * CASE WHEN says THEN {1 - SAID} ELSE 1 END) AS weight
    FROM held JOIN weights USING (term) WHERE bears GROUP BY memory_id
),
scored AS MATERIALIZED (
    SELECT memory_id, run_id, created_at,
           cosine + coalesce({WORDS} * words.weight ^ 2 / nullif(idf_of_all, 0), 0) + coalesce({NAME} * names.weight, 0) AS own
    FROM placed LEFT JOIN words USING (memory_id) LEFT JOIN names USING (memory_id),
         (SELECT sum(idf) AS idf_of_all FROM weights) AS question
    WHERE {{found}}
),
best AS MATERIALIZED (
    -- Where the question's words are in no text, the order is the vectors' alone.
    SELECT memory_id, own + CASE WHEN EXISTS (SELECT FROM hits) THEN {RUN} ELSE 0 END * best_of_run AS score
    FROM scored JOIN (SELECT run_id, max(own) AS best_of_run FROM scored GROUP BY run_id) AS runs USING (run_id)
    ORDER BY score DESC, created_at DESC, memory_id DESC LIMIT %(candidates)s
),
chosen AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY score DESC, created_at DESC, memory_id DESC) - 1 AS place, score, memory.*
    FROM best JOIN memory USING (memory_id)
    WHERE memory.org_id = %(org_id)s AND memory_id = ANY (ARRAY(SELECT memory_id FROM best))
)
SELECT memory.score, {{columns}}, (
    SELECT array_agg(better.place) FROM chosen AS better
    WHERE better.place < memory.place AND better.subject_id = memory.subject_id
      AND better.subject_type = memory.subject_type AND {{same}} < {1 - SAME}
) AS same_as
FROM chosen AS memory ORDER BY memory.place
"""


_STEMS = text(
    "SELECT tsvector_to_array(to_tsvector('english', written)) AS found "
    "FROM unnest(CAST(:texts AS text[])) WITH ORDINALITY AS given (written, place) ORDER BY place"
)


def stems(connection: Connection, texts: Sequence[str]) -> list[frozenset[str]]:
    """Return for each text what a search for words looks for of it: stems, in lower case, without stop words."""
    rows = connection.execute(_STEMS, {"texts": list(texts)})
    return [frozenset(row.found) for row in rows]
