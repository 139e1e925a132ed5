"""Each ranking keeps its order, says its name, and looks at nothing that may not be read."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from fakes import CANDIDATE, JOB, Clock, HashedWords, Unreachable, fact, observation, observe
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from reference_ranking import MOST_TERMS, Candidate, Reference
from rows import emptied, execute
from sqlalchemy import event

from memory_core import Kind, Memory, MemoryStore, Ranking, Recall, RecallMode, Refused, Search, Subject
from memory_core.characters import is_blank
from memory_core.db import rankings, searches
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.db.rankings import Ranked
from memory_core.recalling import without_repeats

if TYPE_CHECKING:
    from conftest import Database, OpenStore


WORDS = HashedWords()
EMPTIED = "text = NULL, text_sha256 = NULL, embedding = NULL, embedding_model = NULL"
on_one_database = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def new_organisation(open_store: OpenStore, clock: Clock) -> Callable[..., MemoryStore]:
    """Return a function that opens a store of an organisation that nobody used before, with an embedder."""
    number = iter(range(1_000_000))

    def opened(**options: Any) -> MemoryStore:
        return open_store(f"acme-{next(number)}", **{"clock": clock, "embedder": HashedWords(), **options})

    return opened


@pytest.fixture
def store(new_organisation: Callable[..., MemoryStore]) -> MemoryStore:
    return new_organisation()


@pytest.fixture
def reference(standing: Database) -> Iterator[Reference]:
    with standing.connect(autocommit=True) as connection:
        yield Reference(connection)


def recall(store: MemoryStore, query: str, **options: Any) -> Recall:
    return store.recall(query, run_id="r-813", **options)


def texts(recall: Recall) -> list[str | None]:
    return [one.memory.text for one in recall.memories]


def ids(recall: Recall) -> list[UUID]:
    return [one.memory.memory_id for one in recall.memories]


def scores(recall: Recall) -> dict[str | None, float]:
    """Return the score of each memory that has one, by its text."""
    return {one.memory.text: one.score for one in recall.memories if one.score is not None}


def ranked(
    database: Database, store: MemoryStore, question: str, *, alone: bool = False, limit: int = 50, **options: Any
) -> list[Ranked]:
    """Rank with the statement itself, so that what recall would pass over is there as well."""
    now = store.recall("now?", run_id="r-0", ranking="recency").at
    with organisation_transaction(engine_for(database.application), store.org_id) as connection:
        return rankings.ranked(
            connection,
            store.org_id,
            question,
            None if alone else searches.as_vector(WORDS.vector(question)),
            model=None if alone else WORDS.name,
            dimensions=64,
            now=now,
            candidates=4 * limit,
            **options,
        )


# By name


def test_hybrid_is_what_recall_does_unless_told_otherwise_and_every_ranking_says_its_name(store: MemoryStore) -> None:
    store.remember_many([observation("could start in May"), observation("a desk by the window")])
    assert recall(store, "when could they start?").ranking is Ranking.HYBRID
    for ranking in Ranking:
        found = recall(store, "when could they start?", ranking=ranking.value)
        assert found.ranking is ranking
        assert (found.mode is RecallMode.RECENCY) == (ranking is Ranking.RECENCY)
        assert (found.reason is None) == (ranking is not Ranking.RECENCY)
        assert found.search is (Search.NEWEST if ranking is Ranking.RECENCY else Search.EXACT)
        assert len(found.memories) == 2


def test_the_ranking_is_on_record(store: MemoryStore, database: Database) -> None:
    observe(store, "could start in May")
    for ranking in Ranking:
        recall(store, "start?", ranking=ranking)
    assert execute(database, "SELECT ranking FROM recall ORDER BY at, recall_id") == [(one.value,) for one in Ranking]


# The statement and its reference

OF_TEXTS = """
    start started starting could May june december march 8 08 12 25 2026-05-08 2026-12-25 rust Rust kubernetes notice Zoë
    Müller müller O'Brien Brien happy Acme c-81 81 81. j/3 zoe@example.org the and of who 4.5 €70k 日本語 не: "quoted" (x)
    back\\slash 100% window desk
""".split()  # noqa: SIM905 (a table of words)
OF_QUESTIONS = [*OF_TEXTS, "8 May", "May 8,", "25 december", "c-8", "C-81?", "never-seen", "may", "sept", "3"]
SUBJECTS = [
    ("candidate", "c-81"),
    ("candidate", "c-8"),
    ("candidate", "may"),
    ("candidate", "rust.dev"),
    ("referee", "c-81"),
    ("job", "j/3"),
    ("job", "25"),
    ("client", "..."),
]
LABELS = [None, "Zoë Müller", "May Rust", "Acme", "Happy Acme O'Brien", "8", "The Who"]
ALIASES = [(), ("zoe@example.org",), ("Zo", "c-81"), ("the and",)]
said = st.lists(st.sampled_from(OF_TEXTS), min_size=1, max_size=8).map(" ".join)
asked = st.lists(st.sampled_from(OF_QUESTIONS), min_size=1, max_size=9).map(" ".join)
collections = st.lists(
    st.fixed_dictionaries(
        {
            "text": said,
            "subject": st.none() | st.sampled_from(SUBJECTS),
            "run_id": st.sampled_from(["r-1", "r-2", "R-1", "r-3"]),
            "minutes": st.integers(0, 6),
            "embedded": st.sampled_from([True, True, True, False]),
        }
    ),
    min_size=1,
    max_size=14,
    unique_by=lambda one: (one["text"], one["subject"]),
)
directories = st.fixed_dictionaries(
    {subject: st.tuples(st.sampled_from(LABELS), st.sampled_from(ALIASES)) for subject in SUBJECTS}
)
PEOPLE = {"candidate", "referee"}


def remembered(
    store: MemoryStore, silent: MemoryStore, held: Sequence[dict[str, Any]], names: dict[tuple[str, str], Any]
) -> list[Memory]:
    """Remember a collection, the embedded ones through one store and the others through another."""
    made = []
    for one in held:
        subject = one["subject"] and Subject(*one["subject"], *names[one["subject"]])
        build = observation if subject and subject.type in PEOPLE else fact
        item = build(
            one["text"],
            subject=subject,
            run_id=one["run_id"],
            created_at=Clock().now - timedelta(minutes=1 + one["minutes"]),
        )
        made.append((store if one["embedded"] else silent).remember(**item))
    return made


def candidates(
    database: Database, org_id: str, question: str, *, alone: bool, kinds: Any, subject: Subject | None
) -> list[Candidate]:
    """Read what may be ranked, as the superuser, with the cosines that PostgreSQL gives."""
    rows = execute(
        database,
        "SELECT memory_id, run_id, created_at, 1 - (embedding <=> %s::halfvec(64)), text, kind, subject_type, subject_id,"
        " concat_ws(' ', label, array_to_string(aliases, ' '))"
        " FROM memory LEFT JOIN directory USING (org_id, subject_type, subject_id)"
        " WHERE org_id = %s AND text IS NOT NULL",
        (searches.as_vector(WORDS.vector(question)), org_id),
    )
    return [
        Candidate(
            key=key,
            run=run,
            moment=(at, key),
            cosine=cosine or 0.0,
            text=text,
            subject=subject_id and (subject_type, subject_id),
            names=names,
        )
        for key, run, at, cosine, text, kind, subject_type, subject_id, names in rows
        if (alone or cosine is not None)
        and (kinds is None or kind in kinds)
        and (subject is None or (subject_type, subject_id) == (subject.type, subject.id))
    ]


@settings(on_one_database, max_examples=60)
@given(
    held=collections,
    names=directories,
    question=asked,
    kinds=st.sampled_from([None, None, None, ["fact"], ["observation"]]),
    about=st.sampled_from([None, None, None, *SUBJECTS[:2]]),
    alone=st.booleans(),
)
def test_the_statement_gives_the_scores_and_the_order_of_the_reference(
    new_organisation: Callable[..., MemoryStore],
    open_store: OpenStore,
    database: Database,
    reference: Reference,
    clock: Clock,
    held: list[dict[str, Any]],
    names: dict[tuple[str, str], Any],
    question: str,
    kinds: list[str] | None,
    about: tuple[str, str] | None,
    alone: bool,
) -> None:
    store = new_organisation()
    remembered(store, open_store(store.org_id, clock=clock), held, names)
    subject = about and Subject(*about)
    live = candidates(database, store.org_id, question, alone=alone, kinds=kinds, subject=subject)
    expected = reference.scores(question, live, by_words_alone=alone)
    kind_values = None if kinds is None else [Kind(kind) for kind in kinds]
    found = ranked(database, store, question, alone=alone, kinds=kind_values, subject=subject)
    assert {one.memory.memory_id: one.score for one in found} == pytest.approx(expected, abs=1e-6)
    order = [(one.score, one.memory.created_at, one.memory.memory_id) for one in found]
    assert order == sorted(order, reverse=True)


@settings(on_one_database, max_examples=10)
@given(held=collections, extra=st.integers(0, 15), seed=st.integers(0, 999))
def test_of_a_long_question_the_longest_words_count(
    new_organisation: Callable[..., MemoryStore],
    database: Database,
    reference: Reference,
    held: list[dict[str, Any]],
    extra: int,
    seed: int,
) -> None:
    store = new_organisation()
    held = [{**one, "embedded": True} for one in held]
    remembered(store, store, held, dict.fromkeys(SUBJECTS, ("Zoë Müller", ())))
    words = [f"word{'x' * number}" for number in range(MOST_TERMS - 5 + extra)] + OF_QUESTIONS
    random.Random(seed).shuffle(words)
    question = " ".join(words)
    live = candidates(database, store.org_id, question, alone=False, kinds=None, subject=None)
    found = ranked(database, store, question)
    expected = reference.scores(question, live)
    assert {one.memory.memory_id: one.score for one in found} == pytest.approx(expected, abs=1e-6)


def test_a_word_of_the_memory_before_in_the_run_counts_for_less_and_of_the_one_before_that_for_less_again(
    store: MemoryStore, clock: Clock
) -> None:
    said = ["asked about kubernetes", "nodded then", "paused afterwards", "left finally"]
    for minute, text in enumerate(said):
        observe(store, text, subject=None, kind="fact", created_at=clock.now - timedelta(minutes=9 - minute))
    observe(store, "elsewhere entirely", subject=None, kind="fact", run_id="r-2")
    with_words = scores(recall(store, "kubernetes", ranking="lexical"))
    without_run = {text: score - 0.2 * max(with_words.values()) / 1.2 for text, score in with_words.items()}
    best = without_run[said[0]]
    assert without_run == pytest.approx({said[0]: best, said[1]: 0.49 * best, said[2]: 0.25 * best})


@pytest.mark.parametrize(
    ("label", "question"),
    [
        ("Zoë Müller", "What does müller want?"),
        ("Happy", "Is Happy happy?"),
        ("O'Brien", "What about O'Brien?"),
        ("Skies", "What about Skies?"),
        ("Early", "Is Early there?"),
        ("Andy Lying", "What does Lying want?"),
    ],
)
def test_a_subject_is_named_by_any_word_of_its_names(store: MemoryStore, label: str, question: str) -> None:
    for number in range(6):
        observe(store, f"said thing{number} today", subject=Subject("candidate", f"x-{number}", f"Nobody{number}"))
    observe(store, "said thing6 today", subject=Subject("candidate", "x-6", label))
    found = recall(store, question, ranking="lexical")
    assert [one.memory.text for one in found.memories if not one.filled_up] == ["said thing6 today"]


def test_a_subject_is_named_by_its_whole_id_and_not_by_a_part_of_it(store: MemoryStore) -> None:
    for number in (8, 81, 811):
        observe(store, f"sentence about {number * 7}", subject=Subject("candidate", f"c-{number}"))
    for question in ("What of c-81?", "(C-81)", "Is it c-81.", "c-81's notice", "c-81: when", "c-81, c-99", "c-81"):
        assert list(scores(recall(store, question, ranking="lexical"))) == ["sentence about 567"], question
    assert list(scores(recall(store, "What of C-8?", ranking="lexical"))) == ["sentence about 56"]
    for question in ("What of c?", "c-812", "xc-81", "c-81x", "c-81@example", "c-8.1", "81"):
        assert scores(recall(store, question, ranking="lexical")) == {}, question


@pytest.mark.parametrize(
    "text",
    [
        '"Kubernetes" first',
        "“Kubernetes” first",
        "they ran Kubernetes—twice",
        "Kubernetes…",
        "Kubernetes’s turn",
        "«Kubernetes»",
    ],
)
def test_a_word_is_the_same_in_any_quotes_and_beside_any_dash(store: MemoryStore, text: str) -> None:
    store.remember_many([observation(text), fact("“nothing” of that—no", run_id="r-3")])
    observe(store, "said yes", subject=Subject("candidate", "x-1", "Zoë Müller"), run_id="r-2")
    assert list(scores(recall(store, "Any kubernetes?", ranking="lexical"))) == [text]
    question = text.replace("Kubernetes", "Müller")
    assert list(scores(recall(store, f"Is it {question}", ranking="lexical")))[:1] == ["said yes"]


@pytest.mark.parametrize("question", ["Who comes on 8 May?", "May 8th: 8 May", "On May 8"])
def test_a_date_in_words_finds_the_date_in_figures(store: MemoryStore, question: str) -> None:
    dates = ["2026-05-08", "2026-05-09", "2026-06-08", "2026-06-09"]
    store.remember_many(fact(f"the panel is on {date}", run_id=f"r-{date}") for date in dates)
    assert texts(recall(store, question, ranking="lexical", limit=1)) == ["the panel is on 2026-05-08"]


# Words alone


def test_by_words_no_embedder_is_needed_or_asked(open_store: OpenStore) -> None:
    observe(open_store(embedder=HashedWords()), "could start in May")
    for embedder in (None, Unreachable(), counting := HashedWords()):
        store = open_store(embedder=embedder)
        asked = counting.asked
        found = recall(store, "start?", ranking="lexical")
        assert (found.mode, found.reason, found.ranking) == (RecallMode.SEMANTIC, None, Ranking.LEXICAL)
        assert list(scores(found)) == ["could start in May"]
        assert counting.asked == asked
    untouched = Unreachable()
    recall(open_store(embedder=untouched), "start?", ranking="lexical")
    assert untouched.asked == 0


def test_by_words_what_has_no_vector_is_ranked_like_the_rest(open_store: OpenStore) -> None:
    observe(open_store(embedder=HashedWords()), "a desk by the window")
    observe(open_store(), "could start in May")
    assert list(scores(recall(open_store(), "starting", ranking="lexical"))) == ["could start in May"]


def test_by_words_what_shares_none_only_fills_up_newest_first(store: MemoryStore, clock: Clock) -> None:
    days = [("said nothing", 4), ("could start in May", 9), ("a desk by the window", 2), ("prefers mornings", 3)]
    for text, ago in days:
        observe(store, text, created_at=clock.now - timedelta(days=ago), run_id=f"r-{ago}")
    found = recall(store, "starting?", ranking="lexical")
    assert texts(found) == ["could start in May", "a desk by the window", "prefers mornings", "said nothing"]
    assert [one.filled_up for one in found.memories] == [False, True, True, True]
    assert [one.score is None for one in found.memories] == [False, True, True, True]
    assert len(recall(store, "starting?", ranking="lexical", limit=1).memories) == 1


def test_by_words_alone_the_rarer_word_weighs_more(store: MemoryStore) -> None:
    store.remember_many(fact(f"panel number{number}", run_id=f"r-{number}") for number in range(9))
    store.remember_many([fact("kubernetes here", run_id="r-a"), fact("panel there", run_id="r-b")])
    assert texts(recall(store, "kubernetes panel", ranking="lexical"))[0] == "kubernetes here"


# Any question

ODD = {
    "stop words": "who is it and what of the",
    "Chinese": "他什么时候可以开始工作？",
    "Russian": "когда он может начать?",
    "Arabic": "متى يمكنه أن يبدأ؟",
    "emoji": "🤷🏽‍♀️",
    "quote": "'",
    "quotes": "''''",
    "double quotes": '"start" "',
    "backslash": "\\",
    "backslashes and quotes": "\\' \\\\' '\\",
    "percent": "%",
    "percent signs": "%s %(org_id)s %% 100%",
    "braces": "{0} {wanted} {{}}",
    "parameters": "$1 :org_id ?",
    "!": "!",
    "operators": "! & | <-> :* <2> ( )",
    "words and operators": "desk:* & !window <-> (seat | ",
    "injection": "x'; DROP TABLE memory; --",
    "JSON": '{"start": ["May"]}',
    "array": '{"a","b"}',
    "mark-up": "<b>start</b> &amp; <!-- x --> </",
    "e-mail": "zoe@example.org",
    "URL": "https://example.org:8080/a/b?c=%20#d",
    "path": "/etc/passwd ..\\..\\x",
    "numbers": "3.14 1e309 -0 +5 00012 1,000",
    "date": "2026-05-08 08/05/2026",
    "versions": "v1.2.3-rc4",
    "whole of one word": "a" * 2000,
    "longer than a lexeme may be": "a" * 8000,
    "widened by lower case": "Ⱥ" * 1023,
    "quotes only": "'" * 8000,
    "combining": "e\u0301\u0302" * 100,
    "directions": "\u202estart\u2066",
    "non-characters": "zz\uffff\U0010ffff",
    "controls": "start\t\n\x01\x7f\x1b[31m",
    "one letter": "x",
    "2,000 characters": ("when could they begin their work over here " * 50)[:2000],
    "8,000 characters": (" ".join(f"w{number}x" for number in range(2000)))[:8000],
    "hyphens": "a-b-c--d- -e",
}
HELD = ["pmq vbt", "zkr qqw", "xjv kkp zzt", "wvw yyz", "jjq ppx"]


def assert_served(store: MemoryStore, question: str) -> None:
    """Assert that a question gets an answer by every ranking, and where none of it is anywhere, the order of the vectors."""
    dense, hybrid = recall(store, question, ranking="dense", limit=9), recall(store, question, limit=9)
    assert (dense.ranking, hybrid.ranking) == (Ranking.DENSE, Ranking.HYBRID)
    by_words = recall(store, question, ranking="lexical", limit=9)
    assert sorted(ids(hybrid)) == sorted(ids(dense)) == sorted(ids(by_words))
    if not scores(by_words):
        assert ids(hybrid) == ids(dense)
        assert scores(hybrid) == pytest.approx(scores(dense), abs=1e-9)
        assert all(one.filled_up for one in by_words.memories)


@pytest.fixture
def odd_store(store: MemoryStore) -> MemoryStore:
    store.remember_many(
        observation(text, subject=Subject("candidate", f"qx-{text[:3]}", f"Qqz {text[:3]}", (f"{text[:3]}@qq.zz",)))
        for text in HELD
    )
    return store


def test_whatever_is_asked_is_served_and_where_nothing_matches_as_by_vectors_alone(
    odd_store: MemoryStore, subtests: pytest.Subtests
) -> None:
    for name, question in ODD.items():
        with subtests.test(name):
            assert_served(odd_store, question)
            assert scores(recall(odd_store, question, ranking="lexical")) == {}


@settings(on_one_database, max_examples=150)
@given(
    question=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200)
    | st.lists(
        st.sampled_from([*"'\"\\%!&|:*()<->@/.-_ \t", "a", "pmq", "8", "may", "qx-pmq", "kkp", "5%", "é"]), min_size=1
    ).map("".join)
)
@example("pmq")
@example("'pmq' & 'vbt':*")
@example("qx-pmq 8 may")
def test_any_text_is_served(odd_store: MemoryStore, question: str) -> None:
    assume(not is_blank(question))
    assert_served(odd_store, question)


def test_a_memory_may_hold_anything_a_question_may(store: MemoryStore, subtests: pytest.Subtests) -> None:
    held = {name: text[:2000] for name, text in ODD.items()}
    for number, text in enumerate(held.values()):
        observe(store, text, subject=Subject("candidate", f"c-{number}"), run_id=f"r-{number}")
    for name, text in held.items():
        with subtests.test(name):
            best = recall(store, text, limit=50).memories[0]
            assert best.memory.text == text


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        ("start\x00", "query_is_storable"),
        ("\ud800", "query_is_storable"),
        ("", "query_is_not_blank"),
        (" \u200b", "query_is_not_blank"),
        ("x" * 8001, "query_length"),
    ],
)
@pytest.mark.parametrize("ranking", ["lexical", "hybrid"])
def test_what_cannot_be_asked_is_refused_by_name(store: MemoryStore, question: str, rule: str, ranking: str) -> None:
    with pytest.raises(Refused) as caught:
        recall(store, question, ranking=ranking)
    assert (caught.value.rule, caught.value.field) == (rule, "query")


# What steers nothing


def gone(database: Database, store: MemoryStore, memory: Memory, fate: str, clock: Clock) -> None:
    """Bring a memory about a subject of its own to where it may no longer be read."""
    setting = {
        "restricted": "restricted_at = created_at",
        "swept": f"{EMPTIED}, swept_at = expires_at",
        "expired": "expires_at = created_at + interval '1 second'",
    }
    if fate == "forgotten":
        assert memory.subject is not None
        assert store.forget(memory.subject, by="user:ines", reason="asked to").count == 1
    else:
        execute(database, f"UPDATE memory SET {setting[fate]} WHERE memory_id = %s", (memory.memory_id,))


FATES = ["forgotten", "restricted", "expired", "swept"]


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("ranking", ["lexical", "hybrid"])
def test_a_neighbour_that_may_not_be_read_changes_no_score(
    new_organisation: Callable[..., MemoryStore], database: Database, clock: Clock, fate: str, ranking: str
) -> None:
    about = Subject("candidate", "c-9", "Kubernetes Zoë", ("kubernetes@example.org",))
    with_it, without_it = new_organisation(), new_organisation()
    neighbours = []
    for store in (with_it, without_it):
        for number, text in enumerate(["said hello", "NEIGHBOUR", "nodded", "paused", "wanted a desk"]):
            at = clock.now - timedelta(days=1, minutes=9 - number)
            if text != "NEIGHBOUR":
                observe(store, text, created_at=at)
            elif store is with_it:
                neighbours.append(observe(store, "kubernetes and a desk", created_at=at, subject=about))
        observe(store, "a desk elsewhere", subject=JOB, kind="fact", run_id="r-2")
    question = "does Zoë know kubernetes at her desk?"
    expected = scores(recall(without_it, question, ranking=ranking))
    before = scores(recall(with_it, question, ranking=ranking, limit=50))
    assert {text: score for text, score in before.items() if text in expected} != pytest.approx(expected, abs=1e-3)
    gone(database, with_it, neighbours[0], fate, clock)
    assert scores(recall(with_it, question, ranking=ranking)) == pytest.approx(expected, abs=1e-12)


@settings(on_one_database, max_examples=25)
@given(held=collections, names=directories, question=asked, data=st.data())
def test_whatever_is_held_what_may_not_be_read_changes_no_score(
    new_organisation: Callable[..., MemoryStore],
    open_store: OpenStore,
    database: Database,
    clock: Clock,
    held: list[dict[str, Any]],
    names: dict[tuple[str, str], Any],
    question: str,
    data: st.DataObject,
) -> None:
    # All about a subject that is gone are gone, as a forget has it.
    fates = {
        subject: data.draw(st.sampled_from(["live", "live", *FATES])) for subject in {one["subject"] for one in held}
    }
    fates[None] = "live"
    with_them, without_them = new_organisation(), new_organisation()
    made = remembered(with_them, open_store(with_them.org_id, clock=clock), held, names)
    left = [one for one in held if fates[one["subject"]] == "live"]
    remembered(without_them, open_store(without_them.org_id, clock=clock), left, names)
    for memory, one in zip(made, held, strict=True):
        if fates[one["subject"]] == "forgotten":
            with_them.forget(Subject(*one["subject"]), by="user:ines", reason="asked to")
        elif fates[one["subject"]] != "live":
            gone(database, with_them, memory, fates[one["subject"]], clock)
    for alone in (True, False):
        found, expected = (ranked(database, store, question, alone=alone) for store in (with_them, without_them))
        by_key, expected_by_key = (
            {(one.memory.text, one.memory.subject): one.score for one in some} for some in (found, expected)
        )
        assert by_key == pytest.approx(expected_by_key, abs=1e-12)


def test_another_organisations_rows_directory_and_words_change_nothing(
    new_organisation: Callable[..., MemoryStore], clock: Clock
) -> None:
    store, other = new_organisation(), new_organisation()
    said = ["knows kubernetes", "wants a desk", "could start in May"]
    for number, text in enumerate(said):
        observe(store, text, subject=Subject("candidate", f"c-{number}", f"Name{number}"))
    question = "does Zoë Name0 of c-2 know kubernetes?"
    before = {ranking: scores(recall(store, question, ranking=ranking)) for ranking in ("lexical", "hybrid", "dense")}
    for number in range(40):
        about = Subject("candidate", f"c-{number}", "Zoë Kubernetes Name0", ("kubernetes@example.org",))
        observe(other, f"kubernetes desk May {number}", subject=about)
    for ranking, expected in before.items():
        found = recall(store, question, ranking=ranking)
        assert scores(found) == expected
        assert {one.memory.org_id for one in found.memories} == {store.org_id}


# The words of a row


def test_the_words_go_with_the_text(store: MemoryStore, database: Database) -> None:
    observe(store, "could start in May")
    assert execute(database, "SELECT words::text FROM memory") == [("'could':1 'may':4 'start':2",)]
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    assert execute(database, "SELECT words IS NULL, text IS NULL FROM memory") == [(True, True)]


def test_a_row_has_the_words_of_its_own_text_and_no_other_column_has_any(
    store: MemoryStore, database: Database
) -> None:
    for number in range(5):
        observe(store, f"could start number{number}", subject=Subject("candidate", f"c-{number}", "Zoë Müller"))
    recall(store, "who could start?")
    other = "SELECT count(*) FROM memory WHERE words IS DISTINCT FROM to_tsvector('english', text)"
    assert execute(database, other) == [(0,)]
    kept = "SELECT table_name, column_name FROM information_schema.columns WHERE data_type = 'tsvector'"
    assert execute(database, kept) == [("memory", "words")]


@pytest.mark.parametrize("role", ["superuser", "owner", "application"])
def test_nobody_writes_the_words_of_a_row(store: MemoryStore, database: Database, role: str) -> None:
    observe(store, "could start in May")
    with database.connect(getattr(database, role)) as connection:
        connection.execute("SELECT set_config('memory.org_id', %s, true)", (store.org_id,))
        with pytest.raises(psycopg.errors.GeneratedAlways):
            connection.execute("UPDATE memory SET words = to_tsvector('english', 'kubernetes')")


def test_no_statistics_are_kept_of_the_words(store: MemoryStore, database: Database) -> None:
    store.remember_many(observation(f"could start, sentence {number}") for number in range(300))
    with database.connect(autocommit=True) as connection:
        connection.execute("ANALYZE memory")
    columns = {name for (name,) in execute(database, "SELECT attname FROM pg_stats WHERE tablename = 'memory'")}
    assert "run_id" in columns
    assert "words" not in columns
    assert execute(database, "SELECT count(*) FROM pg_stats_ext WHERE tablename = 'memory'") == [(0,)]


# Filters


@pytest.mark.parametrize("ranking", ["lexical", "hybrid", "dense"])
def test_kind_and_subject_are_asked_for_before_the_limit(store: MemoryStore, ranking: str) -> None:
    store.remember_many(observation(f"when could they start {number}") for number in range(120))
    store.remember_many(fact(f"when could they start {number}", subject=JOB) for number in range(120))
    wanted = [
        observe(store, "start, said quietly", subject=Subject("candidate", "c-7")),
        observe(store, "nothing of that", subject=Subject("candidate", "c-7")),
    ]
    found = recall(store, "when could they start?", ranking=ranking, limit=2, subject=Subject("candidate", "c-7"))
    assert ids(found) == [memory.memory_id for memory in wanted]
    found = recall(store, "when could they start?", ranking=ranking, limit=9, kinds="observation", subject=JOB)
    assert found.memories == ()
    found = recall(store, "when could they start?", ranking=ranking, limit=9, kinds="fact")
    assert {one.memory.kind for one in found.memories} == {Kind.FACT}
    assert len(found.memories) == 9


@pytest.mark.parametrize("ranking", ["lexical", "hybrid", "dense", "recency"])
@pytest.mark.parametrize("limit", [1, 50])
def test_one_and_fifty_come_back_when_asked_for(store: MemoryStore, ranking: str, limit: int) -> None:
    random_words = random.Random(3)
    store.remember_many(
        observation(f"start {' '.join(f'w{random_words.randrange(200)}' for _ in range(6))}", run_id=f"r-{number % 9}")
        for number in range(70)
    )
    found = recall(store, "start w17 w4", ranking=ranking, limit=limit)
    assert len(set(ids(found))) == limit
    assert not any(one.filled_up for one in found.memories)
    assert ids(found)[:1] == ids(recall(store, "start w17 w4", ranking=ranking, limit=1))


# Near-repeats


class Angles(HashedWords):
    """An embedder for texts such as "17 degrees, …": a vector that far from every other one that names another number."""

    def vector(self, text: str) -> list[float]:
        digits = "".join(character for character in text.partition(" degrees")[0] if character.isdigit())
        angle = math.radians(float(digits or 0))
        return [math.cos(angle), math.sin(angle), *[0.0] * 62]


@pytest.fixture
def angles(new_organisation: Callable[..., MemoryStore]) -> MemoryStore:
    return new_organisation(embedder=Angles())


def test_what_says_the_same_about_the_same_subject_is_passed_over_and_said(angles: MemoryStore) -> None:
    best = observe(angles, "1 degrees, once")
    again = observe(angles, "3 degrees, again")  # cos 2° = 0.999
    near = observe(angles, "18 degrees, nearly")  # cos 17° = 0.956
    far = observe(angles, "21 degrees, else")  # cos 20° = 0.940
    found = recall(angles, "0 degrees")
    assert ids(found) == [best.memory_id, far.memory_id]
    assert [(one.memory_id, one.same_as) for one in found.passed_over] == [
        (again.memory_id, best.memory_id),
        (near.memory_id, best.memory_id),
    ]


def test_a_memory_is_passed_over_for_one_that_is_shown_and_never_for_one_that_was_passed_over(
    angles: MemoryStore,
) -> None:
    chain = [observe(angles, f"{angle} degrees") for angle in (1, 16, 31, 46)]
    found = recall(angles, "0 degrees")
    assert ids(found) == [chain[0].memory_id, chain[2].memory_id]
    assert [(one.memory_id, one.same_as) for one in found.passed_over] == [
        (chain[1].memory_id, chain[0].memory_id),
        (chain[3].memory_id, chain[2].memory_id),
    ]


def test_the_same_about_another_subject_or_about_none_is_never_passed_over(angles: MemoryStore) -> None:
    for about in (CANDIDATE, Subject("candidate", "c-8"), Subject("referee", "c-81")):
        observe(angles, "1 degrees", subject=about)
    observe(angles, "2 degrees, of the job", subject=JOB, kind="fact")
    angles.remember_many([fact("1 degrees"), fact("2 degrees"), fact("2 degrees, said again")])
    found = recall(angles, "0 degrees", limit=9)
    assert (len(found.memories), found.passed_over) == (7, ())


def test_two_organisations_never_pass_over_for_each_other(new_organisation: Callable[..., MemoryStore]) -> None:
    stores = [new_organisation(embedder=Angles()) for _ in range(2)]
    for store in stores:
        observe(store, "1 degrees")
    assert [recall(store, "0 degrees").passed_over for store in stores] == [(), ()]


def test_the_block_is_filled_up_by_others_in_the_place_of_repeats(angles: MemoryStore) -> None:
    repeats = [observe(angles, f"{angle} degrees") for angle in range(1, 8)]
    others = [
        observe(angles, f"{angle} degrees", subject=Subject("candidate", f"c-{angle}")) for angle in (10, 30, 50, 70)
    ]
    found = recall(angles, "0 degrees", limit=5)
    assert ids(found) == [repeats[0].memory_id, *(one.memory_id for one in others)]
    assert {one.memory_id for one in found.passed_over} == {one.memory_id for one in repeats[1:]}
    assert not any(one.filled_up for one in found.memories)
    assert found.block is not None
    assert found.block.text.count("about candidate c-81") == 1


@pytest.mark.parametrize("repeats", [19, 20, 40, 300])
def test_however_many_say_the_same_they_leave_room_for_the_rest(angles: MemoryStore, repeats: int) -> None:
    others = [
        observe(angles, f"{angle} degrees", subject=Subject("candidate", f"c-{angle}")) for angle in (30, 50, 70, 80)
    ]
    angles.remember_many(observation(f"1 degrees, time {number}") for number in range(repeats))
    found = recall(angles, "0 degrees", limit=5)
    assert {one.memory.subject for one in found.memories} == {CANDIDATE, *(one.subject for one in others)}
    assert len(found.memories) == 5


def test_what_was_passed_over_is_not_disclosed(angles: MemoryStore) -> None:
    observe(angles, "1 degrees, once")
    observe(angles, "2 degrees, again")
    (passed,) = recall(angles, "0 degrees").passed_over
    told = {memory.memory_id: len(memory.disclosures) for memory in angles.held(CANDIDATE).memories}
    assert told[passed.memory_id] == 0
    assert sum(told.values()) == 1


@given(
    same=st.lists(st.lists(st.integers(0, 11), max_size=4), max_size=12),
    limit=st.integers(1, 12),
)
def test_what_is_taken_repeats_nothing_that_is_taken_and_all_before_the_last_are_taken_or_named(
    same: list[list[int]], limit: int
) -> None:
    held: list[Any] = [
        SimpleNamespace(
            memory=SimpleNamespace(memory_id=place), same_as=tuple(better for better in betters if better < place)
        )
        for place, betters in enumerate(same)
    ]
    taken, passed = without_repeats(held, limit=limit)
    kept: list[Any] = [one.memory.memory_id for one in taken]
    assert kept == sorted(kept)
    assert len(kept) <= limit
    for one in taken:
        assert not set(one.same_as) & set(kept)
    for left in passed:
        named: Any = left.memory_id
        assert left.same_as in kept
        assert left.same_as in held[named].same_as
    assert {*kept, *(one.memory_id for one in passed)} == set(range(len(kept) + len(passed)))
    assert len(kept) == limit or len(kept) + len(passed) == len(held)


# Statements


def test_one_statement_ranks_in_the_one_transaction_of_a_recall(
    store: MemoryStore, database: Database, subtests: pytest.Subtests
) -> None:
    store.remember_many(observation(f"could start number{n}", subject=Subject("candidate", f"c-{n}")) for n in range(9))
    engine = engine_for(database.application)
    sent: list[str] = []
    ends: list[str] = []

    def keep(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        sent.append(statement)

    def ended(connection: Any) -> None:
        ends.append("COMMIT")

    recall(store, "who could start?")
    event.listen(engine, "before_cursor_execute", keep)
    event.listen(engine, "commit", ended)
    try:
        for ranking, reads in (
            ("hybrid", "words"),
            ("lexical", "words"),
            ("dense", "embedding"),
            ("recency", "author"),
        ):
            with subtests.test(ranking):
                sent.clear()
                ends.clear()
                recall(store, "who could start?", ranking=ranking)
                assert ends == ["COMMIT"]
                # The count of what may be recalled reads no memory's text, words or vector.
                chosen = [one for one in sent if "FROM memory" in one and "memory.author" in one]
                assert len(chosen) == 1
                assert reads in chosen[0]
                assert sum("directory" in one for one in sent) == (ranking in ("hybrid", "lexical"))
                assert not [one for one in sent if "could start" in one]
    finally:
        event.remove(engine, "before_cursor_execute", keep)
        event.remove(engine, "commit", ended)


# Large organisations


def test_by_signs_first_the_first_five_are_those_of_the_exact_search(store: MemoryStore, database: Database) -> None:
    picked = random.Random(5)
    vocabulary = [f"w{number}x" for number in range(150)]
    store.remember_many(
        observation(
            " ".join(picked.sample(vocabulary, 8)),
            run_id=f"r-{number // 6}",
            subject=Subject("candidate", f"c-{number % 60}", f"Name{number % 60}"),
        )
        for number in range(400)
    )
    for question in range(12):
        asked = " ".join([*picked.sample(vocabulary, 4), f"Name{question}"])
        exact = ranked(database, store, asked, limit=5)
        signs = ranked(database, store, asked, limit=5, quantised=True)
        for one, other in zip(exact[:5], signs[:5], strict=True):
            assert one.memory.memory_id == other.memory.memory_id
            assert one.score == pytest.approx(other.score, abs=1e-9)
