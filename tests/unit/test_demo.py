"""The demo organisation keeps the rules of the store at any moment it is looked at."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory_core.demo import DemoErasure, DemoMemory, demo_erasures, demo_memories
from memory_core.demo.drafting import threads
from memory_core.demo.people import PEOPLE
from memory_core.demo.scripted import HOSTILE
from memory_core.demo.wording import last_day_named, working_day
from memory_core.identifiers import identifier_refusal, source_refusal
from memory_core.model import Kind, Origin, Subject
from memory_core.rules.admission import Admitted, Draft, admitted
from memory_core.rules.policy import PERSON_TYPES, Policy

IDENTIFIER = re.compile(r"[A-Za-z0-9._:@/+-]{1,128}")
DEFAULT = timedelta(days=90)
NOWS = (
    datetime(2026, 11, 5, 14, 20, tzinfo=UTC),
    datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2027, 1, 1, 0, 0, tzinfo=UTC),
    datetime(2027, 1, 3, 0, 0, 30, tzinfo=UTC),  # a Sunday, before anybody has come to work
    datetime(2026, 3, 29, 1, 30, tzinfo=timezone(timedelta(hours=13))),
)


@pytest.fixture(scope="module", params=NOWS, ids=lambda now: now.isoformat())
def now(request: pytest.FixtureRequest) -> datetime:
    moment: datetime = request.param
    return moment


@pytest.fixture(scope="module")
def memories(now: datetime) -> list[DemoMemory]:
    return demo_memories(now=now)


@pytest.fixture(scope="module")
def erasures(now: datetime) -> list[DemoErasure]:
    return demo_erasures(now=now)


def _expires_at(memory: DemoMemory) -> datetime:
    return memory.expires_at or memory.created_at + DEFAULT


def _is_about_a_person(memory: DemoMemory) -> bool:
    return memory.subject is not None and memory.subject.type in PERSON_TYPES


def _script(character: str) -> str:
    return unicodedata.name(character).split()[0]


def test_the_same_now_gives_the_same_organisation(now, memories, erasures):
    assert demo_memories(now=now) == memories
    assert demo_erasures(now=now) == erasures


def test_the_same_moment_in_another_zone_gives_the_same_organisation(now, memories, erasures):
    elsewhere = now.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    assert demo_memories(now=elsewhere) == memories
    assert demo_erasures(now=elsewhere) == erasures


def test_a_naive_now_is_refused():
    with pytest.raises(ValueError, match="aware"):
        demo_memories(now=datetime(2026, 11, 5))
    with pytest.raises(ValueError, match="aware"):
        demo_erasures(now=datetime(2026, 11, 5))


def test_there_are_600_memories_three_fifths_of_them_about_people(memories):
    kinds = Counter((memory.kind, memory.origin) for memory in memories)
    assert len(memories) == 600
    assert kinds[Kind.OBSERVATION, Origin.PERSON] + kinds[Kind.OBSERVATION, Origin.INFERENCE] == 360
    assert min(kinds.values()) >= 60
    assert len(kinds) == 4


def test_memories_come_oldest_first_from_the_last_80_days(now, memories):
    moments = [memory.created_at for memory in memories]
    assert moments == sorted(moments)
    assert moments[0] >= now - timedelta(days=80)
    assert moments[0] <= now - timedelta(days=70)
    assert moments[-1] <= now
    assert moments[-1] >= now - timedelta(days=5)
    assert all(moment.utcoffset() == timedelta() for moment in moments)


def test_most_is_written_in_office_hours_of_working_days(memories):
    at_weekend = sum(memory.created_at.weekday() > 4 for memory in memories)
    in_the_day = sum(8 <= memory.created_at.hour <= 18 for memory in memories)
    assert 0 < at_weekend < 60
    assert in_the_day > 540


def test_some_have_expired_and_some_are_about_to(now, memories):
    left = [_expires_at(memory) - now for memory in memories]
    assert sum(time <= timedelta() for time in left) == 40
    assert sum(timedelta() < time <= timedelta(days=7) for time in left) == 25
    assert sum(timedelta() < time <= timedelta(days=30) for time in left) == 90


def test_what_has_expired_is_ten_days_old_at_least(now, memories):
    assert all(now - memory.created_at >= timedelta(days=10) for memory in memories if _expires_at(memory) <= now)


def test_most_memories_have_the_default_expiry(memories):
    assert 400 <= sum(memory.expires_at is None for memory in memories) <= 520


def test_an_expiry_comes_after_the_creation_and_within_a_year(memories):
    for memory in memories:
        if memory.expires_at is not None:
            assert memory.created_at < memory.expires_at <= memory.created_at + timedelta(days=365)
            assert memory.expires_at.utcoffset() == timedelta()


def test_every_memory_was_admissible_at_the_moment_it_was_written(memories):
    for memory in memories:
        draft = Draft(**{field.name: getattr(memory, field.name) for field in fields(memory)})
        assert isinstance(admitted(draft, now=memory.created_at, policy=Policy()), Admitted)


def test_every_identifier_is_one(memories, erasures):
    for memory in memories:
        names = [memory.author, memory.run_id]
        names += [memory.subject.type, memory.subject.id] if memory.subject else []
        assert all(IDENTIFIER.fullmatch(name) for name in names)
        assert all(identifier_refusal(name, field="any") is None for name in names)
        assert source_refusal(memory.source) is None
    assert all(IDENTIFIER.fullmatch(erasure.by) for erasure in erasures)


def test_a_person_states_and_an_agent_infers(memories):
    prefixes = {(memory.origin, memory.author.split(":")[0]) for memory in memories}
    assert prefixes == {(Origin.PERSON, "user"), (Origin.INFERENCE, "agent")}


def test_an_observation_is_about_a_person_and_a_fact_is_not(memories):
    assert all(_is_about_a_person(memory) == (memory.kind is Kind.OBSERVATION) for memory in memories)


def test_a_text_is_short_and_shows_every_character_it_has(memories):
    for memory in memories:
        assert 20 <= len(memory.text) <= 300
        assert memory.text == memory.text.strip() == unicodedata.normalize("NFC", memory.text)
        assert not [character for character in memory.text if unicodedata.category(character)[0] == "C"]
        assert memory.text[0] not in "=+-@"


def test_no_sentence_has_a_slot_left_or_a_seam_showing(memories):
    for memory in memories:
        assert not re.search(r"[{}|]|  | [,.]|\.\.|None", memory.text), memory.text
        assert memory.text[-1] in ".।", memory.text


def test_runs_and_sources_count_up_with_time(memories):
    runs = [int(memory.run_id.removeprefix("r-")) for memory in memories]
    assert runs == sorted(runs)
    assert len(set(runs)) > 400
    for start in ("msg", "note", "call", "form"):
        sources = [memory.source for memory in memories if memory.source and memory.source.startswith(f"{start}-")]
        numbers = [int(source.removeprefix(f"{start}-")) for source in sources]
        assert numbers == sorted(numbers)
        assert len(numbers) > 20
    assert any(memory.source is None for memory in memories)


def test_a_run_has_one_writer(memories):
    writers = {(memory.run_id, memory.author, memory.subject) for memory in memories}
    assert len(writers) == len({memory.run_id for memory in memories})
    assert len(writers) < len(memories)


def test_no_memory_is_there_twice(memories):
    keys = {(one.text, one.author, one.subject, one.kind, one.origin) for one in memories}
    assert len(keys) == len(memories)
    assert len({memory.text for memory in memories}) > 570


def test_few_sentences_are_cut_from_one_pattern():
    patterns = Counter(draft.template for thread in threads() for session in thread.sessions for draft in session)
    assert len(patterns) >= 450
    assert max(patterns.values()) <= 3


def test_a_sentence_stated_and_inferred_is_two_memories(memories):
    both = [one for one in memories if one.text == "We never schedule interviews on Fridays after 14:00."]
    assert {one.origin for one in both} == set(Origin)


def test_a_subject_has_one_label_and_one_set_of_aliases(memories):
    directory: dict[Subject, tuple[str | None, tuple[str, ...]]] = {}
    for memory in memories:
        if memory.subject is not None:
            entry = (memory.subject.label, memory.subject.aliases)
            assert directory.setdefault(memory.subject, entry) == entry
            assert memory.subject.label
            assert len(memory.subject.label) <= 200


def test_everybody_has_memories_a_label_and_one_to_three_aliases(memories):
    written_about = {memory.subject for memory in memories if _is_about_a_person(memory)}
    assert written_about == {person.subject for person in PEOPLE}
    assert 55 <= len(written_about) <= 70
    assert {subject.type for subject in written_about if subject} == PERSON_TYPES
    assert all(1 <= len(person.subject.aliases) <= 3 for person in PEOPLE)


def test_an_address_leads_nowhere(memories):
    addresses = [alias for person in PEOPLE for alias in person.subject.aliases if "@" in alias]
    assert len(addresses) >= len(PEOPLE)
    assert all(re.search(r"@example\.(org|com)$", address) for address in addresses)
    sites = [site for memory in memories for site in re.findall(r"[\w-]+(?:\.[\w-]+)*\.(?:com|org|net)\b", memory.text)]
    assert len(sites) > 5
    assert all(re.search(r"(^|\.)example\.(org|com)$", site) for site in sites)


def test_one_id_names_two_subjects_only_where_one_person_has_two_roles():
    types = Counter(person.subject.id for person in PEOPLE)
    assert [id_ for id_, count in types.items() if count > 1] == ["p-204"]
    roles = [person.subject for person in PEOPLE if person.subject.id == "p-204"]
    assert {role.type for role in roles} == {"referee", "contact"}
    assert len({role.label for role in roles}) == 1


def test_two_people_share_a_name_and_nothing_else():
    annas = [person.subject for person in PEOPLE if person.subject.label == "Anna Schmidt"]
    assert len(annas) == 2
    assert annas[0] != annas[1]
    assert not set(annas[0].aliases) & set(annas[1].aliases)


def test_an_erased_id_is_the_beginning_of_others(erasures):
    ids = {person.subject.id for person in PEOPLE}
    assert "c-8" in {erasure.subject.id for erasure in erasures}
    assert {"c-81", "c-811"} <= ids


def test_names_come_in_many_scripts():
    letters = {letter for person in PEOPLE for letter in person.subject.label or "" if letter.isalpha()}
    scripts = {_script(letter) for letter in letters}
    assert scripts >= {
        *("LATIN", "ARABIC", "HEBREW", "CYRILLIC", "GREEK", "CJK", "HIRAGANA", "HANGUL"),
        *("DEVANAGARI", "THAI", "TAMIL", "ARMENIAN", "GEORGIAN"),
    }


def test_a_name_in_another_script_has_an_alias_in_latin_letters():
    for person in PEOPLE:
        label = person.subject.label or ""
        if not any(_script(letter) == "LATIN" for letter in label if letter.isalpha()):
            name = person.subject.aliases[0]
            assert "@" not in name
            assert all(_script(letter) == "LATIN" for letter in name if letter.isalpha())


def test_labels_are_in_composed_form():
    for person in PEOPLE:
        for name in (person.subject.label or "", *person.subject.aliases):
            assert name == unicodedata.normalize("NFC", name)


def test_sentences_come_in_several_scripts(memories):
    scripts = {_script(letter) for memory in memories for letter in memory.text if letter.isalpha()}
    assert scripts >= {"LATIN", "ARABIC", "DEVANAGARI"}


def test_nothing_is_remembered_about_anybody_after_their_erasure(now, memories, erasures):
    assert len(erasures) == 3
    for erasure in erasures:
        written = [memory.created_at for memory in memories if memory.subject == erasure.subject]
        assert len(written) >= 5
        assert max(written) < erasure.at <= now
        assert erasure.subject.type == "candidate"
        assert 1 <= len(erasure.reason) <= 500


def test_no_memory_and_no_reason_names_the_erased(memories, erasures):
    for erasure in erasures:
        names = (erasure.subject.label or "", *erasure.subject.aliases)
        texts = [memory.text for memory in memories] + [one.reason for one in erasures]
        assert not [text for text in texts for name in names if name in text]


def test_exactly_one_memory_gives_orders_to_the_model(memories):
    hostile = [one for one in memories if re.search(r"ignore (all )?previous|</memories>", one.text, re.IGNORECASE)]
    assert [one.text for one in hostile] == [HOSTILE.text]
    assert hostile[0].author == "agent:sourcing"
    assert hostile[0].kind is Kind.OBSERVATION


def test_exactly_one_memory_carries_markup(memories):
    marked = [one for one in memories if "](http" in one.text or "<script>" in one.text]
    assert len(marked) == 1
    assert "![" in marked[0].text
    assert "<b>" in marked[0].text


def test_what_is_there_to_show_something_is_live(now, memories):
    shown = [one for one in memories if one.text == HOSTILE.text or "<script>" in one.text or "Start date " in one.text]
    assert len(shown) == 4
    assert all(_expires_at(memory) > now for memory in shown)


def test_a_start_date_moves_from_the_date_that_was_agreed(memories):
    agreed, moved = [one for one in memories if one.text.startswith("Start date ")]
    assert agreed.subject == moved.subject
    date = re.search(r"agreed: (\d+ \w+),", agreed.text)
    assert date is not None
    assert f"moved from {date[1]} to " in moved.text


def test_a_day_at_a_weekend_is_moved_away_from_the_present():
    friday = datetime(2026, 11, 6, tzinfo=UTC).date()
    assert working_day(friday, 1).isoformat() == "2026-11-09"
    assert working_day(friday, 2).isoformat() == "2026-11-09"
    assert working_day(friday, 3).isoformat() == "2026-11-09"
    assert working_day(friday, -5).isoformat() == "2026-10-30"
    assert working_day(friday, -6).isoformat() == "2026-10-30"
    assert working_day(friday + timedelta(days=1), 0) == friday


def test_the_last_day_a_sentence_names_is_counted():
    assert last_day_named("Away from {d:5} to {wd:15}, back at {time}.") == 15
    assert last_day_named("Joined on {d:-30} in {city}.") == 0
    assert last_day_named("Prefers e-mail.") == 0
