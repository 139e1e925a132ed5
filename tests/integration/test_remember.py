from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from fakes import CANDIDATE, JOB, Answering, Clock, HashedWords, Unreachable, fact, observation, observe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import counts, emptied, execute, rows, snapshot, traces

from memory_core import Kind, Memory, MemoryCoreError, MemoryStore, Origin, Refused, State, Subject
from memory_core.characters import has_surrogate, is_blank
from memory_core.db.engine import close_engines
from memory_core.errors import Refusal
from memory_core.rules.admission import Draft, admitted
from memory_core.rules.policy import Policy

if TYPE_CHECKING:
    from conftest import Database, OpenStore


DAY = timedelta(days=1)
on_one_database = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock)


@pytest.fixture
def new_organisation(open_store: OpenStore, clock: Clock) -> Callable[..., MemoryStore]:
    """A store of an organisation that no example before this one has used."""
    number = iter(range(1_000_000))
    return lambda **options: open_store(f"acme-{next(number)}", clock=clock, **options)


def memories(database: Database) -> int:
    return len(rows(database, "memory"))


# What is stored


def test_a_memory_comes_back_as_it_was_given(store: MemoryStore, clock: Clock) -> None:
    memory = observe(store, "Could start in May.", source="msg-1,note/2", run_id="r-812")
    assert (memory.org_id, memory.kind, memory.subject) == ("acme", Kind.OBSERVATION, CANDIDATE)
    assert (memory.text, memory.origin, memory.author) == ("Could start in May.", Origin.INFERENCE, "agent:screening")
    assert (memory.run_id, memory.source, memory.state) == ("r-812", "msg-1,note/2", State.LIVE)
    assert (memory.created_at, memory.expires_at) == (clock.now, clock.now + 90 * DAY)
    assert (memory.seen_count, memory.last_seen_at, memory.last_seen_run_id) == (1, clock.now, "r-812")
    (held,) = store.held(CANDIDATE).memories
    assert (held.memory_id, held.text) == (memory.memory_id, memory.text)


def test_without_a_clock_of_its_own_a_store_goes_by_the_databases(open_store: OpenStore) -> None:
    before = datetime.now(UTC)
    memory = observe(open_store(), "Could start in May.")
    assert before <= memory.created_at <= datetime.now(UTC)
    assert memory.created_at.utcoffset() == timedelta(0)


@on_one_database
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=80))
def test_text_of_any_script_is_kept_to_the_letter(new_organisation: Callable[..., MemoryStore], text: str) -> None:
    if not is_blank(text):
        store = new_organisation()
        assert observe(store, text).text == text
        assert store.held(CANDIDATE).memories[0].text == text


identifiers = st.text("abcXYZ019._:@/+-", min_size=1, max_size=128)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=200).filter(
    lambda name: not is_blank(name)
)
drafts = st.builds(
    lambda text, kind, author, run_id, about, source, age, life: {
        "text": text,
        "kind": kind,
        "origin": author[0],
        "author": author[1],
        "run_id": run_id,
        "subject": None if kind == "fact" and about[0] == "candidate" else Subject(*about),
        "source": source,
        "created_at": Clock().now - age,
        "expires_at": None if life is None else Clock().now + life,
    },
    text=st.sampled_from(
        ["x", "😀" * 2000, "\u00a0a", "a\tb\n", "\u0301", "'; DROP TABLE memory; --", "%s %(x)s {} \\"]
    )
    | names,
    kind=st.sampled_from(["fact", "observation"]),
    author=st.one_of(
        identifiers.map(lambda name: ("person", f"user:{name}"[:128])),
        identifiers.map(lambda name: ("inference", f"agent:{name}"[:128])),
    ),
    run_id=identifiers,
    about=st.tuples(
        st.sampled_from(["candidate", "job"]), identifiers, st.none() | names, st.lists(names, max_size=50).map(tuple)
    ),
    source=st.none() | st.lists(identifiers.map(lambda one: one[:100]), min_size=1, max_size=5).map(",".join),
    age=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650)),
    life=st.none() | st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=3650)),
)


@on_one_database
@given(item=drafts)
def test_whatever_the_rules_admit_the_database_takes_as_well(
    new_organisation: Callable[..., MemoryStore], clock: Clock, database: Database, item: dict[str, Any]
) -> None:
    store = new_organisation()
    execute(database, "INSERT INTO organisation VALUES (%s)", (store.org_id,))
    execute(database, "INSERT INTO organisation_setting (org_id, maximum_days) VALUES (%s, 3650)", (store.org_id,))
    decided = admitted(Draft(**item), now=clock.now, policy=Policy(maximum_days=3650))
    if isinstance(decided, Refusal):
        with pytest.raises(Refused) as caught:
            store.remember(**item)
        assert caught.value.refusal == decided
    else:
        memory = store.remember(**item)
        assert (memory.text, memory.author, memory.source) == (item["text"], item["author"], item["source"])
        assert (memory.created_at, memory.expires_at) == (decided.created_at, decided.expires_at)


def test_identifiers_are_uuids_of_version_7_in_the_order_they_were_made(store: MemoryStore) -> None:
    one_by_one = [observe(store, f"sentence {number}").memory_id for number in range(5)]
    in_bulk = [memory.memory_id for memory in store.remember_many(observation(f"more {n}") for n in range(200))]
    made = one_by_one + in_bulk
    assert made == sorted(set(made))
    assert all(memory_id.version == 7 for memory_id in made)


def test_identifiers_are_made_in_order_by_all_threads_of_a_process(store: MemoryStore) -> None:
    def ten(thread: int) -> list[UUID]:
        return [observe(store, f"sentence {thread} {number}").memory_id for number in range(10)]

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(ten, range(4)))
    assert all(identifiers == sorted(identifiers) for identifiers in made)
    assert len({identifier for identifiers in made for identifier in identifiers}) == 40


# What is refused

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "an observation without a subject": ({"subject": None}, "observation_names_its_subject", "subject"),
    "a fact about a person": ({"kind": "fact"}, "fact_is_not_about_a_person", "kind"),
    "a subject that is none": ({"subject": ("candidate", "c-81")}, "subject_is_a_subject", "subject"),
    "empty text": ({"text": ""}, "text_is_not_blank", "text"),
    "blank text": ({"text": " \n\u200b"}, "text_is_not_blank", "text"),
    "2,001 characters": ({"text": "a" * 2001}, "text_length", "text"),
    "a NUL": ({"text": "a\x00b"}, "text_is_storable", "text"),
    "a lone surrogate": ({"text": "a\ud800"}, "text_is_storable", "text"),
    "no text": ({"text": None}, "text_is_text", "text"),
    "an unknown kind": ({"kind": "opinion"}, "kind_is_known", "kind"),
    "no kind": ({"kind": None}, "kind_is_known", "kind"),
    "an unknown origin": ({"origin": "model"}, "origin_is_known", "origin"),
    "a user's inference": ({"author": "user:maria"}, "author_matches_origin", "author"),
    "an agent's statement": ({"origin": "person"}, "author_matches_origin", "author"),
    "no author": ({"author": None}, "identifier_is_given", "author"),
    "an empty author": ({"author": ""}, "identifier_is_given", "author"),
    "no run": ({"run_id": None}, "identifier_is_given", "run_id"),
    "a creation in the future": (
        {"created_at": Clock().now + timedelta(seconds=1)},
        "created_at_is_not_in_the_future",
        "created_at",
    ),
    "a creation without a zone": ({"created_at": datetime(2026, 11, 1)}, "instant_has_a_zone", "created_at"),
    "a creation that is text": ({"created_at": "2026-11-01T00:00:00Z"}, "instant_is_a_time", "created_at"),
    "a creation long ago": ({"created_at": LONG_AGO}, "expiry_is_not_past", "expires_at"),
    "an expiry now": ({"expires_at": Clock().now}, "expiry_is_not_past", "expires_at"),
    "an expiry that is past": ({"expires_at": LONG_AGO}, "expiry_is_not_past", "expires_at"),
    "an expiry without a zone": ({"expires_at": datetime(2026, 12, 1)}, "instant_has_a_zone", "expires_at"),
    "too distant an expiry": ({"expires_at": Clock().now + 366 * DAY}, "expiry_within_maximum", "expires_at"),
    **{
        f"{what} in {field}": ({field: value}, "identifier_shape", field)
        for field, prefix in (("author", "agent:"), ("run_id", "r-"), ("source", "msg-"))
        for what, value in (
            ("a newline at the end", f"{prefix}1\n"),
            ("a space", f"{prefix}1 2"),
            ("%", f"{prefix}%"),
            ("129 characters", prefix + "1" * 128),
        )
    },
}


def test_a_refusal_names_its_rule_and_field_and_nothing_is_stored(
    store: MemoryStore, database: Database, subtests: pytest.Subtests
) -> None:
    for name, (changes, rule, field) in REFUSALS.items():
        with subtests.test(name):
            item = {**observation("Could start in May."), **changes}
            with pytest.raises(Refused) as alone:
                store.remember(**item)
            assert (alone.value.rule, alone.value.field, alone.value.position) == (rule, field, None)
            with pytest.raises(Refused) as in_bulk:
                store.remember_many([observation("Speaks Dutch."), item])
            assert (in_bulk.value.rule, in_bulk.value.field, in_bulk.value.position) == (rule, field, 1)
            for refused in (alone.value, in_bulk.value):
                assert len(str(refused).splitlines()) == 1
                assert rule in str(refused)
                assert field in str(refused)
                assert not refused.retryable
            assert counts(database) == {}


def test_a_store_of_what_is_no_organisation_does_not_open(open_store: OpenStore, subtests: pytest.Subtests) -> None:
    names: list[Any] = ["", "acme\n", "ac me", "acme%", "a" * 129, "açme", None, 5]
    for org_id in names:
        with subtests.test(repr(org_id)):
            with pytest.raises(Refused) as caught:
                open_store(org_id)
            assert caught.value.field == "org_id"


def test_the_organisations_own_maximum_decides(
    open_store: OpenStore, clock: Clock, database: Database, store: MemoryStore
) -> None:
    execute(database, "INSERT INTO organisation VALUES ('acme'), ('archive')")
    execute(
        database,
        "INSERT INTO organisation_setting (org_id, maximum_days) VALUES ('acme', 30), ('archive', 3650)",
    )
    assert observe(store, "The default is the maximum if that is less.").expires_at == clock.now + 30 * DAY
    assert observe(store, "As long as may be.", expires_at=clock.now + 30 * DAY).expires_at == clock.now + 30 * DAY
    with pytest.raises(Refused) as caught:
        observe(store, "Longer.", expires_at=clock.now + 30 * DAY + timedelta(microseconds=1))
    assert (caught.value.rule, caught.value.field) == ("expiry_within_maximum", "expires_at")
    archive = open_store("archive", clock=clock)
    assert observe(archive, "The default stays.").expires_at == clock.now + 90 * DAY
    assert observe(archive, "Ten years.", expires_at=clock.now + 3650 * DAY).expires_at == clock.now + 3650 * DAY


def test_a_fact_about_the_organisations_own_person_type_is_refused(
    open_store: OpenStore, store: MemoryStore, database: Database
) -> None:
    execute(database, "INSERT INTO organisation VALUES ('acme')")
    execute(database, "INSERT INTO organisation_setting (org_id, added_person_types) VALUES ('acme', '{alumnus,temp}')")
    item = fact("Prefers mornings.", subject=Subject("alumnus", "a-1"))
    with pytest.raises(Refused) as caught:
        store.remember(**item)
    assert (caught.value.rule, caught.value.field) == ("fact_is_not_about_a_person", "kind")
    assert memories(database) == 0
    assert observe(store, "Prefers mornings.", subject=Subject("alumnus", "a-1")).kind is Kind.OBSERVATION
    assert open_store("other").remember(**item).kind is Kind.FACT


# The same sentence again


def test_an_exact_repeat_refreshes_its_row_and_leaves_its_provenance(
    store: MemoryStore, clock: Clock, database: Database
) -> None:
    first = observe(store, "Could start in May.", run_id="r-1", source="msg-1")
    clock.step(days=10)
    again = observe(store, "Could start in May.", run_id="r-2", source="msg-2")
    assert again.memory_id == first.memory_id
    assert (again.seen_count, again.last_seen_at, again.last_seen_run_id) == (2, clock.now, "r-2")
    assert again.expires_at == clock.now + 90 * DAY
    assert (again.created_at, again.run_id, again.source) == (first.created_at, "r-1", "msg-1")
    assert memories(database) == 1


def test_a_default_expiry_never_shortens_one_that_was_asked_for(store: MemoryStore, clock: Clock) -> None:
    asked = clock.now + 300 * DAY
    observe(store, "Could start in May.", expires_at=asked)
    clock.step(days=10)
    assert observe(store, "Could start in May.").expires_at == asked
    clock.step(days=250)
    assert observe(store, "Could start in May.").expires_at == clock.now + 90 * DAY


def test_an_expiry_that_is_asked_for_is_taken_also_where_it_is_earlier(store: MemoryStore, clock: Clock) -> None:
    observe(store, "Could start in May.")
    clock.step(days=1)
    soon = clock.now + DAY
    assert observe(store, "Could start in May.", expires_at=soon).expires_at == soon


def test_a_repeat_that_is_older_than_what_it_repeats_leaves_when_and_by_which_run_it_was_last_seen(
    store: MemoryStore, clock: Clock
) -> None:
    newest = clock.now - DAY
    observe(store, "Could start in May.", run_id="r-9", created_at=newest)
    again = observe(store, "Could start in May.", run_id="r-3", created_at=clock.now - 20 * DAY)
    assert (again.seen_count, again.last_seen_at, again.last_seen_run_id) == (2, newest, "r-9")
    assert again.expires_at == newest + 90 * DAY


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "author": (observation("Same."), observation("Same.", author="agent:planner")),
    "origin": (observation("Same."), observation("Same.", origin="person", author="user:maria")),
    "kind": (observation("Same.", subject=JOB), observation("Same.", subject=JOB, kind="fact")),
    "subject id": (observation("Same."), observation("Same.", subject=Subject("candidate", "c-8"))),
    "subject type": (observation("Same."), observation("Same.", subject=Subject("referee", "c-81"))),
    "no subject": (fact("Same."), fact("Same.", subject=JOB)),
    "text": (observation("Same."), observation("same.")),
    "space at the end": (observation("Same."), observation("Same. ")),
}


def test_nothing_is_merged_that_differs_in_what_is_said_by_whom_or_about_whom(
    new_organisation: Callable[..., MemoryStore], database: Database, subtests: pytest.Subtests
) -> None:
    for name, (one, other) in OTHERS.items():
        with subtests.test(name):
            store = new_organisation()
            first, second = store.remember(**one), store.remember(**other)
            assert first.memory_id != second.memory_id
            assert second.seen_count == 1
            assert (second.author, second.origin, second.kind) == (other["author"], other["origin"], other["kind"])
            in_bulk = store.remember_many([one, other, one])
            assert [memory.memory_id for memory in in_bulk] == [first.memory_id, second.memory_id, first.memory_id]
            assert [memory.seen_count for memory in in_bulk] == [3, 2, 3]
            assert len(rows(database, "memory", f"org_id = '{store.org_id}'")) == 2


def test_nothing_is_merged_across_organisations(open_store: OpenStore, database: Database) -> None:
    one, other = observe(open_store("acme"), "Same."), observe(open_store("acme-corp"), "Same.")
    assert one.memory_id != other.memory_id
    assert (other.seen_count, memories(database)) == (1, 2)


@on_one_database
@given(
    texts=st.lists(
        st.sampled_from(["é", "e\u0301", "E", "a", "A", "a ", "\u00a0a", "ａ", "a\u200b", "a\n"]),
        min_size=1,
        max_size=8,
    ),
    in_bulk=st.booleans(),
)
def test_two_sentences_are_one_memory_exactly_if_they_are_equal_to_the_letter(
    new_organisation: Callable[..., MemoryStore], texts: list[str], in_bulk: bool
) -> None:
    store = new_organisation()
    stored = (
        store.remember_many(observation(text) for text in texts)
        if in_bulk
        else [observe(store, text) for text in texts]
    )
    assert [memory.text for memory in stored] == texts
    assert len({memory.memory_id for memory in stored}) == len(set(texts))
    assert {memory.text: memory.seen_count for memory in store.held(CANDIDATE).memories} == {
        text: texts.count(text) for text in texts
    }


def test_repeats_within_a_bulk_load_are_counted_and_come_back_in_their_places(
    store: MemoryStore, database: Database
) -> None:
    a, b = observation("One.", run_id="r-1"), observation("Two.", run_id="r-2")
    stored = store.remember_many([a, b, {**a, "run_id": "r-3"}, a])
    assert [memory.text for memory in stored] == ["One.", "Two.", "One.", "One."]
    assert [memory.seen_count for memory in stored] == [3, 1, 3, 3]
    assert len({memory.memory_id for memory in stored}) == memories(database) == 2
    assert (stored[0].run_id, stored[0].last_seen_run_id) == ("r-1", "r-1")


def test_a_default_does_not_shorten_within_a_bulk_load_what_it_would_not_shorten_alone(
    store: MemoryStore, clock: Clock
) -> None:
    soon = {"expires_at": clock.now + 10 * DAY}
    observe(store, "Alone.", **soon)
    alone = observe(store, "Alone.")
    *_, in_bulk = store.remember_many([observation("In bulk.", **soon), observation("In bulk.")])
    assert alone.expires_at == clock.now + 90 * DAY
    assert in_bulk.expires_at == alone.expires_at


repeats = st.lists(
    st.tuples(
        st.sampled_from(["One.", "Two."]),
        st.sampled_from(["agent:screening", "agent:planner"]),
        st.integers(0, 40),  # days since its creation
        st.none() | st.integers(1, 200),  # days until its expiry
    ),
    min_size=1,
    max_size=6,
)


@on_one_database
@given(asked=repeats)
def test_a_bulk_load_stores_what_its_items_would_have_stored_one_by_one(
    new_organisation: Callable[..., MemoryStore], clock: Clock, asked: list[tuple[str, str, int, int | None]]
) -> None:
    items = [
        observation(
            text,
            author=author,
            run_id=f"r-{number}",
            created_at=clock.now - age * DAY,
            expires_at=None if life is None else clock.now + life * DAY,
        )
        for number, (text, author, age, life) in enumerate(asked)
    ]
    one_by_one, in_bulk = new_organisation(), new_organisation()
    for item in items:
        one_by_one.remember(**item)
    in_bulk.remember_many(items)
    assert facts(in_bulk.held(CANDIDATE).memories) == facts(one_by_one.held(CANDIDATE).memories)


def facts(stored: tuple[Memory, ...]) -> set[tuple[Any, ...]]:
    names = "text author run_id source created_at expires_at seen_count last_seen_at last_seen_run_id state".split()  # noqa: SIM905
    return {tuple(getattr(memory, name) for name in names) for memory in stored}


def test_an_expired_memory_that_is_remembered_again_is_live_again(
    store: MemoryStore, clock: Clock, database: Database
) -> None:
    first = observe(store, "Could start in May.")
    clock.step(days=91)
    assert store.held(CANDIDATE).memories[0].state is State.EXPIRED
    again = observe(store, "Could start in May.")
    assert (again.memory_id, again.state, again.expires_at) == (first.memory_id, State.LIVE, clock.now + 90 * DAY)
    assert memories(database) == 1


def test_a_swept_memory_that_is_remembered_again_is_a_new_one(
    store: MemoryStore, clock: Clock, database: Database
) -> None:
    first = observe(store, "Could start in May.")
    clock.step(days=91)
    execute(database, "UPDATE memory SET text = NULL, text_sha256 = NULL, swept_at = %s", (clock.now,))
    again = observe(store, "Could start in May.")
    assert again.memory_id != first.memory_id
    assert (again.seen_count, again.state) == (1, State.LIVE)
    assert {memory.state for memory in store.held(CANDIDATE).memories} == {State.LIVE, State.SWEPT}


def test_a_forgotten_memory_that_is_remembered_again_is_a_new_one_and_the_tombstone_stays(store: MemoryStore) -> None:
    first = observe(store, "Could start in May.")
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    again = observe(store, "Could start in May.")
    assert again.memory_id != first.memory_id
    assert again.seen_count == 1
    newest, tombstone = store.held(CANDIDATE).memories
    assert (newest.memory_id, newest.state) == (again.memory_id, State.LIVE)
    assert (tombstone.memory_id, tombstone.state, tombstone.text) == (first.memory_id, State.FORGOTTEN, None)


def test_a_repeat_lifts_neither_a_restriction_nor_a_hold(store: MemoryStore, clock: Clock, database: Database) -> None:
    observe(store, "Could start in May.")
    execute(database, "UPDATE memory SET restricted_at = %s, hold = 'claim-7'", (clock.now,))
    again = observe(store, "Could start in May.")
    assert (again.seen_count, again.state, again.hold) == (2, State.RESTRICTED, "claim-7")
    assert store.recall("May", run_id="r-2").memories == ()


# In bulk


def test_a_bulk_load_returns_one_memory_an_item_in_order(store: MemoryStore) -> None:
    texts = [f"sentence {number}" for number in range(300)]
    stored = store.remember_many(observation(text) for text in texts)
    assert [memory.text for memory in stored] == texts


def test_a_bulk_load_takes_drafts_and_mappings_with_a_subject_or_its_fields(store: MemoryStore) -> None:
    about = {"type": "candidate", "id": "c-81", "label": "Zoë Müller", "aliases": ["zoe@example.org"]}
    stored = store.remember_many(
        [Draft(**observation("One.")), observation("Two."), observation("Three.", subject=about), fact("Four.")]
    )
    assert [memory.subject for memory in stored] == [CANDIDATE, CANDIDATE, CANDIDATE, None]
    found = store.held(CANDIDATE).subject
    assert (found.label, found.aliases) == ("Zoë Müller", ("zoe@example.org",))


def test_a_bulk_load_of_nothing_stores_nothing(store: MemoryStore, database: Database) -> None:
    assert store.remember_many([]) == []
    assert memories(database) == 0


BAD_ITEMS: dict[str, tuple[Any, str, str]] = {
    "unknown field": ({**observation("x"), "txt": "y"}, "field_is_known", "txt"),
    "unknown field of the subject": (
        observation("x", subject={"type": "candidate", "id": "c-81", "name": "Zoë"}),
        "field_is_known",
        "subject.name",
    ),
    "subject with a newline": (
        observation("x", subject={"type": "candidate", "id": "c-81\n"}),
        "identifier_shape",
        "subject.id",
    ),
    "subject without id": (observation("x", subject={"type": "candidate"}), "identifier_is_given", "subject.id"),
    "blank label": (
        observation("x", subject={"type": "candidate", "id": "c-81", "label": " "}),
        "name_is_not_blank",
        "subject.label",
    ),
    "text": ("a sentence", "item_is_a_mapping", "item"),
    "list": (["a sentence"], "item_is_a_mapping", "item"),
    "none": (None, "item_is_a_mapping", "item"),
    "empty": ({}, "kind_is_known", "kind"),
}


@pytest.mark.parametrize("position", [0, 2])
def test_one_bad_item_keeps_out_the_whole_bulk_load_and_is_named_by_its_position(
    store: MemoryStore, database: Database, subtests: pytest.Subtests, position: int
) -> None:
    for name, (item, rule, field) in BAD_ITEMS.items():
        with subtests.test(name):
            items: list[Any] = [observation("One."), observation("Two."), observation("Three.")]
            items[position] = item
            with pytest.raises(Refused) as caught:
                store.remember_many(items)
            assert (caught.value.rule, caught.value.field, caught.value.position) == (rule, field, position)
            assert str(caught.value).startswith(f"item {position + 1}: ")
            assert counts(database) == {}


def test_a_bulk_load_whose_source_breaks_off_stores_nothing(store: MemoryStore, database: Database) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield observation("One.")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        store.remember_many(broken())
    assert counts(database) == {}


def test_what_was_there_before_is_untouched_by_a_bulk_load_that_is_refused(
    store: MemoryStore, database: Database
) -> None:
    observe(store, "One.", subject=Subject("candidate", "c-81", "Zoë"))
    before = snapshot(database)
    with pytest.raises(Refused):
        store.remember_many([observation("One.", subject=Subject("candidate", "c-81", "Zoe")), observation(" ")])
    assert snapshot(database) == before


# Labels and aliases


def names_of(store: MemoryStore, subject: Subject = CANDIDATE) -> tuple[str | None, tuple[str, ...]]:
    found = store.held(subject).subject
    return found.label, tuple(found.aliases)


def named(*names: Any) -> Subject:
    label, *aliases = names
    return Subject("candidate", "c-81", label, tuple(aliases))


def test_a_subject_without_names_has_no_directory_entry(store: MemoryStore, database: Database) -> None:
    observe(store, "One.")
    assert rows(database, "directory") == []
    assert names_of(store) == (None, ())


NAMES: list[tuple[list[tuple[str | None, ...]], tuple[str, set[str]]]] = [
    ([("Zoë",), ("Zoë",)], ("Zoë", set())),
    ([("Zoë",), ("Zoe",)], ("Zoë", {"Zoe"})),
    ([("Zoë",), ("Zoe",), ("Zoé",), ("Zoë",)], ("Zoë", {"Zoe", "Zoé"})),
    ([("Zoë", "a@b.c"), (None, "ATS-1", "a@b.c")], ("Zoë", {"ATS-1", "a@b.c"})),
    ([(None, "Zoë"), ("Zoë",)], ("Zoë", set())),
    ([(None, "Zoe"), ("Zoë", "Zoë")], ("Zoë", {"Zoe"})),
    ([("Zoë", "Zoe"), ("Zoe", "Zoë")], ("Zoë", {"Zoe"})),
    ([("Zoë",), (None,)], ("Zoë", set())),
]


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_contradicting_label_becomes_an_alias_and_no_name_is_lost(
    new_organisation: Callable[..., MemoryStore], subtests: pytest.Subtests, in_bulk: bool
) -> None:
    for given_names, kept in NAMES:
        with subtests.test(str(given_names)):
            store = new_organisation()
            items = [observation(f"no. {number}", subject=named(*names)) for number, names in enumerate(given_names)]
            if in_bulk:
                store.remember_many(items)
            else:
                for item in items:
                    store.remember(**item)
            label, aliases = names_of(store)
            assert (label, set(aliases)) == kept
            assert len(aliases) == len(kept[1])


@on_one_database
@given(
    given_names=st.lists(
        st.tuples(st.none() | st.sampled_from("ABCD"), st.lists(st.sampled_from("ABCDEF"), max_size=3)),
        min_size=1,
        max_size=5,
    )
)
def test_the_first_label_stays_and_every_name_that_was_given_can_be_found(
    new_organisation: Callable[..., MemoryStore], given_names: list[tuple[str | None, list[str]]]
) -> None:
    store = new_organisation()
    for number, (label, aliases) in enumerate(given_names):
        observe(store, f"sentence {number}", subject=named(label, *aliases))
    label, aliases_kept = names_of(store)
    assert label == next((label for label, _ in given_names if label), None)
    every = {name for label, aliases in given_names for name in (label, *aliases) if name}
    assert {name for name in (label, *aliases_kept) if name} == every
    assert len(set(aliases_kept)) == len(aliases_kept)
    assert label not in aliases_kept


def test_names_are_kept_apart_by_type_and_by_organisation(open_store: OpenStore, store: MemoryStore) -> None:
    observe(store, "One.", subject=named("Zoë"))
    observe(store, "One.", subject=Subject("referee", "c-81", "Ida"))
    other = open_store("acme-corp")
    observe(other, "One.", subject=named("Bo"))
    assert names_of(store) == ("Zoë", ())
    assert names_of(store, Subject("referee", "c-81")) == ("Ida", ())
    assert names_of(other) == ("Bo", ())


@pytest.mark.parametrize("label", ["Zoë", None])
def test_a_51st_alias_is_refused_and_the_memory_with_it(
    store: MemoryStore, database: Database, label: str | None
) -> None:
    aliases = [f"alias {number}" for number in range(50)]
    observe(store, "One.", subject=named(label, *aliases))
    before = snapshot(database)
    for subject in (named("Zoe", "Marker51"), named(label, "Marker51")):
        with pytest.raises(Refused) as alone:
            observe(store, "Two.", subject=subject)
        with pytest.raises(Refused) as in_bulk:
            store.remember_many([observation("Two."), observation("Three.", subject=subject)])
        assert in_bulk.value.position == 1
        for refused in (alone.value, in_bulk.value):
            assert (refused.rule, refused.field) == ("alias_count", "subject.aliases")
            assert "Marker51" not in str(refused)
            assert "alias 7" not in str(refused)
    assert snapshot(database) == before
    assert observe(store, "Two.", subject=named(label, *aliases)).text == "Two."


# When something is down


def test_a_memory_is_stored_though_no_embedder_answers_and_embedded_later(open_store: OpenStore) -> None:
    memory = observe(open_store(embedder=Unreachable()), "Could start in May.")
    assert (memory.embedding_model, memory.text) == (None, "Could start in May.")
    store = open_store(embedder=HashedWords())
    assert store.recall("May", run_id="r-2").unembedded == 1
    assert store.embed().count == 1
    assert store.held(CANDIDATE).memories[0].embedding_model == "words"
    assert store.embed().count == 0


def test_a_memory_is_stored_without_a_vector_that_cannot_be_one(
    new_organisation: Callable[..., MemoryStore], database: Database, subtests: pytest.Subtests
) -> None:
    small, long = [1e-9] * 64, [1.0] * 4001
    bad = [float("nan")] * 64, [float("inf")] * 64, [0.0] * 64, [1e9] * 64, small, long, [], "vector", [[1.0]]
    for vector in bad:
        with subtests.test(str(vector)[:20]):
            store = new_organisation(embedder=Answering(document=vector))
            assert observe(store, "Could start in May.").embedding_model is None
            assert store.remember_many([observation("Two."), observation("Three.")])[1].embedding_model is None
            assert len(store.held(CANDIDATE).memories) == 3
    assert rows(database, "memory", "embedding IS NOT NULL") == []


def test_what_is_embedded_as_it_is_written_says_by_which_model(open_store: OpenStore, database: Database) -> None:
    embedder = HashedWords()
    store = open_store(embedder=embedder)
    assert observe(store, "Could start in May.").embedding_model == "words"
    done: list[tuple[int, int]] = []
    stored = store.remember_many(
        (observation(f"sentence {number}") for number in range(70)), progress=lambda *steps: done.append(steps)
    )
    assert {memory.embedding_model for memory in stored} == {"words"}
    assert done[0] == (0, 70)
    assert done[-1] == (70, 70)
    assert rows(database, "memory", "embedding IS NULL") == []


def test_a_repeat_keeps_its_vector_and_is_not_embedded_again(open_store: OpenStore) -> None:
    embedder = HashedWords()
    store = open_store(embedder=embedder)
    observe(store, "Could start in May.")
    assert observe(store, "Could start in May.").embedding_model == "words"
    assert embedder.asked == 1


class MeddlingEmbedder(HashedWords):
    """Does something to the database at the moment it is asked for vectors."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._meddle = meddle

    def embed_documents(self, texts: Any) -> Any:
        self._meddle()
        return super().embed_documents(texts)


def test_a_memory_that_is_stored_is_returned_though_its_vector_cannot_be(
    open_store: OpenStore, database: Database
) -> None:
    with bounded_waits(database), database.connect() as somebody:
        store = open_store(embedder=MeddlingEmbedder(lambda: somebody.execute("SELECT 1 FROM memory FOR UPDATE")))
        memory = observe(store, "Could start in May.")
    assert (memory.text, memory.embedding_model) == ("Could start in May.", None)
    assert memories(database) == 1


@contextmanager
def bounded_waits(database: Database) -> Iterator[None]:
    """Let no session of this database wait long for a lock."""
    name = database.application.database
    execute(database, f'ALTER DATABASE "{name}" SET lock_timeout = 300')
    close_engines()
    yield
    close_engines()
    execute(database, f'ALTER DATABASE "{name}" RESET lock_timeout')


def test_an_embedder_whose_name_cannot_be_kept_does_no_harm_to_what_is_written(
    open_store: OpenStore, database: Database
) -> None:
    try:
        observe(open_store(embedder=HashedWords("no identifier")), "Could start in May.")
    except MemoryCoreError:
        assert counts(database) == {}
    else:
        assert memories(database) == 1


def test_a_refusal_by_the_databases_own_rules_says_nothing_of_the_row(store: MemoryStore, database: Database) -> None:
    execute(database, "ALTER TABLE memory ADD CONSTRAINT nothing_more CHECK (seen_count < 1)")
    try:
        with pytest.raises(Refused) as caught:
            observe(store, "Marker7f3a said so.")
    finally:
        execute(database, "ALTER TABLE memory DROP CONSTRAINT nothing_more")
    assert caught.value.rule == "nothing_more"
    assert "Marker7f3a" not in str(caught.value)
    assert traces(database, "Marker7f3a") == []


# At once


def test_the_same_sentence_from_many_threads_at_once_is_one_memory(open_store: OpenStore, database: Database) -> None:
    together = threading.Barrier(8)

    def remember(number: int) -> UUID:
        store = open_store()
        together.wait(30)
        return observe(store, "Could start in May.", run_id=f"r-{number}").memory_id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(remember, range(8)))) == 1
    (memory,) = open_store().held(CANDIDATE).memories
    assert memory.seen_count == 8


def test_text_that_cannot_be_stored_never_reaches_the_database_from_anywhere(store: MemoryStore) -> None:
    for bad in ("\x00", "\ud800"):
        assert has_surrogate(bad) or "\x00" in bad
        for call in (
            lambda bad=bad: store.forget(CANDIDATE, by="user:ines", reason=f"a{bad}"),
            lambda bad=bad: store.recall(f"a{bad}", run_id="r-1"),
            lambda bad=bad: observe(store, f"a{bad}"),
            lambda bad=bad: observe(store, "a", subject=named(f"a{bad}")),
        ):
            with pytest.raises(Refused):
                call()
        assert store.find_subjects(f"a{bad}") == []
