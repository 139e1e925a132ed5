from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from threading import Barrier
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from fakes import CANDIDATE, Clock, HashedWords, observe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import await_lock_waits, emptied, execute, rows, snapshot

from memory_core import MemoryStore, OnHold, Refused, Subject
from memory_core.db.engine import engine_for
from memory_core.db.locks import _key
from memory_core.privacy import PrivacyDesk
from memory_core.rights import IdentityMethod, StandingAnswers
from memory_core.rules.chain import FIRST, link
from memory_core.sweeping import sweep

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

OTHER = Subject("candidate", "c-82")
DEADLOCK_IS_FOUND_S = 30


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock, embedder=HashedWords())


@pytest.fixture
def desk(open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(clock=clock)


def lines(database: Database, org_id: str = "acme") -> list[tuple[Any, ...]]:
    statement = "SELECT act, by, subject_id, count FROM trail WHERE org_id = %s ORDER BY number"
    return execute(database, statement, (org_id,))


@contextmanager
def as_owner(database: Database, org_id: str = "acme") -> Iterator[psycopg.Connection[Any]]:
    """Write as the role that owns the tables, who still has to say in which organisation."""
    with database.connect(database.owner) as connection:
        connection.execute("SELECT set_config('memory.org_id', %s, true)", (org_id,))
        yield connection


def looks(desk: PrivacyDesk, clock: Clock, number: int = 6) -> None:
    """Leave so many lines that no ledger vouches for."""
    for _ in range(number):
        desk.held(CANDIDATE)
        clock.step(minutes=1)


def confirmed(desk: PrivacyDesk, right: str = "erasure") -> str:
    """Register a request of somebody who is known, in two lines, and return its reference."""
    register = desk.register
    entered = register.register(
        right, asked_by="Zoë", channel="letter", received_on=date(2026, 11, 1), subject=CANDIDATE
    )
    return register.confirm_identity(entered, IdentityMethod.ACCOUNT).reference


# What is on record


def everything(store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock, word: str) -> list[str]:
    """Do every act there is, with one word in every text; returns the acts as the trail is to have them."""
    named = Subject("candidate", "c-81", f"Zoë {word}", (f"{word} Z.",))
    first = observe(store, f"Could start in May, {word}.", subject=named)
    second = observe(store, f"Prefers mornings, {word}.")
    observe(store, f"Knows {word} well.", subject=OTHER)
    store.recall(f"{word}?", run_id="r-2")
    desk.held(CANDIDATE)
    desk.package(CANDIDATE)
    desk.package(CANDIDATE, release=True)
    desk.reach(CANDIDATE)
    restriction = desk.restrict("accuracy is contested", subject=CANDIDATE)
    desk.lift(restriction, reason="it was right", person_told=True)
    hold = desk.hold("court case", subject=CANDIDATE, name="claim-7")
    desk.lift(hold, reason="settled")
    suppression = desk.suppress("objected", subject=CANDIDATE)
    desk.lift(suppression, reason="withdrew the objection")
    corrected = desk.correct(first, f"Could start in June, {word}.", author="user:zoe", reason="it is June")
    desk.dispute(second, f"I never said that, {word}.")
    desk.withdraw_dispute(second, reason="was settled")
    desk.dispute(corrected, f"Nor that, {word}.")
    request = desk.register.register(
        "erasure", asked_by="zoe@example.org", channel="e-mail", received_on=date(2026, 11, 1), subject=CANDIDATE
    )
    request = desk.register.confirm_identity(request, IdentityMethod.ACCOUNT)
    desk.change_settings(replace(desk.settings(), answers=StandingAnswers(controller=f"Acme, {word} Street")))
    desk.erase(CANDIDATE, reason="erasure request", reference=request.reference, suppress=True)
    desk.register.answer(request, "erased")
    clock.step(days=91)
    sweep(engine_for(database.application), "acme", by="user:ines", clock=clock)
    return [
        *("look", "look at package", "export", "look before erasing"),
        *("restriction", "lift restriction", "hold", "lift hold", "suppression", "lift suppression"),
        *("correct", "dispute", "withdraw dispute", "dispute"),
        *("request registered", "request identity confirmed", "change settings"),
        *("forget", "suppression", "request answered", "sweep"),
    ]


def test_every_act_is_one_line_with_who_did_it(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    expected = everything(store, desk, database, clock, "Word4b7e")
    found = lines(database)
    assert [act for act, *_ in found] == expected
    assert {by for _, by, *_ in found} == {"user:ines"}
    no_ones = {"change settings", "sweep"}
    assert all((subject == "c-81") == (act not in no_ones) for act, _, subject, _ in found)
    verified = desk.verify_trail()
    assert (verified.broken, verified.lines) == (None, len(expected))


def test_what_only_reads_the_desk_leaves_no_line_and_changes_nothing(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    everything(store, desk, database, clock, "Word4b7e")
    (erasure_id,) = desk.erasures(subject=CANDIDATE)
    before = snapshot(database)
    for _ in range(2):
        desk.trail()
        desk.verify_trail()
        desk.ledger()
        desk.certificate(erasure_id)
        desk.measures()
        desk.settings()
        desk.due()
        desk.today()
        desk.register.every()
    assert snapshot(database) == before


def test_settings_saved_as_they_were_are_no_line(desk: PrivacyDesk, database: Database) -> None:
    desk.change_settings(replace(desk.settings(), tombstone_days=400, time_zone="Europe/Berlin"))
    desk.change_settings(desk.settings())
    (line,) = desk.trail()
    assert (line.act, line.by, line.reason) == ("change settings", "user:ines", "time_zone, tombstone_days")


def test_a_look_without_a_name_is_on_record_all_the_same(store: MemoryStore, database: Database) -> None:
    store.held(CANDIDATE)
    store.held(CANDIDATE, by="user:maria")
    store.forget(CANDIDATE, by="user:maria", reason="asked to")
    assert [(act, by) for act, by, *_ in lines(database)] == [
        ("look", "unnamed"),
        ("look", "user:maria"),
        ("forget", "user:maria"),
    ]


def test_a_line_is_found_by_subject_and_by_reference_newest_first(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock
) -> None:
    observe(store, "Could start in May.")
    looks(desk, clock, 3)
    desk.held(OTHER)
    erasure = desk.erase(CANDIDATE, reason="asked to")
    assert [one.act for one in desk.trail(subject=CANDIDATE)] == ["forget", "look", "look", "look"]
    (line,) = desk.trail(reference=str(erasure.erasure_id))
    assert (line.act, line.count, line.reason, line.at) == ("forget", 1, "asked to", clock.now)
    assert [one.number for one in desk.trail(limit=2)] == [5, 4]


def test_whatever_is_done_for_a_request_is_found_by_it(store: MemoryStore, desk: PrivacyDesk) -> None:
    first, second = observe(store, "Could start in May."), observe(store, "Prefers mornings.")
    reference, other = confirmed(desk), confirmed(desk, "access")
    desk.package(CANDIDATE, reference=other)
    desk.package(CANDIDATE, reference=other, left_out={first.memory_id: "rights of another"}, release=True)
    restriction = desk.restrict("contested", memory_id=first.memory_id, reference=reference)
    corrected = desk.correct(first, "In June.", author="user:zoe", reason="it is June", reference=reference)
    (moved,) = [one for one in desk.measures(CANDIDATE) if one.stands]
    assert moved.measure_id != restriction.measure_id
    desk.lift(moved, reason="it was right", person_told=True)
    desk.lift(desk.hold("court case", subject=CANDIDATE, reference=reference), reason="settled")
    desk.lift(desk.suppress("objected", subject=CANDIDATE, reference=reference), reason="withdrew it")
    desk.dispute(corrected, "I never said that.", reference=reference)
    desk.withdraw_dispute(corrected, reason="was settled", reference=reference)
    desk.dispute(second, "Nor that.")
    desk.erase(CANDIDATE, reason="asked to", reference=reference, suppress=True)
    desk.erase(CANDIDATE, reason="once more")
    desk.register.answer(desk.register.request(reference), "erased")
    assert [one.act for one in reversed(desk.trail(request=reference))] == [
        *("request registered", "request identity confirmed", "restriction", "correct", "restriction goes on"),
        *("lift restriction", "hold", "lift hold", "suppression", "lift suppression"),
        *("dispute", "withdraw dispute", "forget", "suppression", "request answered"),
    ]
    assert [one.act for one in reversed(desk.trail(request=other))] == [
        *("request registered", "request identity confirmed", "look at package", "left out of export", "export"),
    ]
    assert [one.act for one in desk.trail() if one.request is None] == ["forget", "dispute"]
    for no_request in ("R-2026-9999", "", "R-2026-0001\n", "\x00", "a" * 500):
        assert desk.trail(request=no_request) == []
    assert desk.verify_trail().broken is None


def test_no_text_name_or_query_stands_in_the_trail_or_the_ledger(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    everything(store, desk, database, clock, "Word4b7e")
    assert "word4b7e" not in str([*rows(database, "trail"), *rows(database, "ledger")]).casefold()


def test_an_act_that_was_rolled_back_leaves_no_line(store: MemoryStore, desk: PrivacyDesk, database: Database) -> None:
    memory = observe(store, "Could start in May.")
    desk.hold("court case", subject=CANDIDATE, name="claim-7")
    before = snapshot(database)
    with pytest.raises(OnHold):
        desk.erase(CANDIDATE, reason="asked to")
    with pytest.raises(OnHold):
        store.forget(CANDIDATE, by="user:ines", reason="asked to")
    with pytest.raises(OnHold):
        desk.correct(memory, "In June.", author="user:zoe", reason="it is June")
    with pytest.raises(Refused):
        desk.erase(CANDIDATE, reason="asked to", expecting=5)
    with pytest.raises(Refused):
        desk.package(CANDIDATE, left_out={memory.memory_id: ""})
    with pytest.raises(Refused):
        desk.restrict("contested", subject=Subject("candidate", "nobody"))
    assert snapshot(database) == before


def test_organisations_have_trails_of_their_own(open_desk: OpenDesk, database: Database, clock: Clock) -> None:
    mine, other = open_desk(clock=clock), open_desk("acme-corp", clock=clock)
    for _ in range(3):
        mine.held(CANDIDATE)
        other.held(CANDIDATE)
    looks(mine, clock, 2)
    assert (mine.verify_trail().lines, other.verify_trail().lines) == (5, 3)
    assert mine.verify_trail().head != other.verify_trail().head
    with database.connect(database.application) as connection:
        assert connection.execute("SELECT count(*) FROM trail").fetchone() == (0,)
        connection.execute("SELECT set_config('memory.org_id', 'acme', true)")
        assert connection.execute("SELECT DISTINCT org_id FROM trail").fetchall() == [("acme",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO trail SELECT 'acme-corp', 99, at, by, act, NULL, NULL, NULL, NULL, 0, 'x', hash FROM trail"
            )


# Who may change it


@pytest.mark.parametrize("table", ["trail", "ledger", "rights_request_change"])
def test_the_applications_role_can_only_add_to_it(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock, table: str
) -> None:
    everything(store, desk, database, clock, "Word4b7e")
    before = rows(database, table)
    assert before
    for statement in (
        f"UPDATE {table} SET by = 'user:else'",
        f"UPDATE {table} SET at = now()",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"TRUNCATE {table} CASCADE",
        f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
        f"DROP TABLE {table}",
    ):
        with database.connect(database.application) as connection:
            connection.execute("SELECT set_config('memory.org_id', 'acme', true)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    assert rows(database, table) == before


TAMPERINGS = {
    "the time": "at = at + interval '1 microsecond'",
    "who": "by = 'user:else'",
    "what": "act = 'look away'",
    "the subject's type": "subject_type = 'employee'",
    "the subject's id": "subject_id = 'c-8'",
    "the subject": "subject_type = NULL, subject_id = NULL",
    "the reference": "reference = 'R-2026-0001'",
    "no reference": "reference = NULL",
    "the request": "request = 'R-2026-0002'",
    "no request": "request = NULL",
    "the count": "count = count + 1",
    "no count": "count = NULL",
    "the reason": "reason = 'asked two'",
    "no reason": "reason = NULL",
    "the hash": "hash = set_byte(hash, 31, (get_byte(hash, 31) + 1) % 256)",
    "the number": "number = 1000",
    "the organisation": "org_id = 'acme-corp'",
}


def test_whatever_the_owner_changes_in_a_line_is_found_at_that_line(
    desk: PrivacyDesk, open_desk: OpenDesk, database: Database, clock: Clock, subtests: pytest.Subtests
) -> None:
    open_desk("acme-corp", clock=clock).held(CANDIDATE)
    desk.erase(CANDIDATE, reason="asked to")
    for reference in (confirmed(desk), None):
        clock.step(minutes=1)
        desk.erase(CANDIDATE, reason="asked to", reference=reference)
    execute(database, "CREATE TABLE as_it_was AS TABLE trail")
    try:
        for name, change in TAMPERINGS.items():
            with subtests.test(name):
                execute(database, f"UPDATE trail SET {change} WHERE org_id = 'acme' AND number = 4")
                broken = desk.verify_trail().broken
                execute(database, "DELETE FROM trail")
                execute(database, "INSERT INTO trail SELECT * FROM as_it_was")
                assert broken is not None
                assert broken.number == 4
                assert "line 4" in broken.what
                assert desk.verify_trail().broken is None
    finally:
        execute(database, "DROP TABLE as_it_was")


@pytest.mark.parametrize("half", ["subject_type = 'candidate'", "subject_id = 'c-81'"])
def test_half_a_subject_that_the_owner_puts_in_a_line_is_found_there(
    desk: PrivacyDesk, database: Database, half: str
) -> None:
    rule = "trail_holds_identifiers"
    desk.change_settings(replace(desk.settings(), tombstone_days=400))  # about nobody
    desk.held(CANDIDATE)
    ((written,),) = execute(database, f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = '{rule}'")
    try:
        for number, change in ((1, half), (2, f"{half.partition(' ')[0]} = NULL")):
            with as_owner(database) as owner:
                owner.execute(f"ALTER TABLE trail DROP CONSTRAINT IF EXISTS {rule}")
                owner.execute(f"UPDATE trail SET {change} WHERE number = {number}")
            broken = desk.verify_trail().broken
            assert broken is not None
            assert broken.number == number
            assert desk.trail(limit=1)  # and it can be shown
            with as_owner(database) as owner:
                subject = "NULL, subject_id = NULL" if number == 1 else "'candidate', subject_id = 'c-81'"
                owner.execute(f"UPDATE trail SET subject_type = {subject} WHERE number = {number}")
            assert desk.verify_trail().broken is None
    finally:
        with as_owner(database) as owner:
            owner.execute(f"ALTER TABLE trail ADD CONSTRAINT {rule} {written} NOT VALID")


STRUCTURAL = {
    "a line is deleted": ("DELETE FROM trail WHERE number = 3", 3),
    "the first line is deleted": ("DELETE FROM trail WHERE number = 1", 1),
    "a line is deleted and the gap is closed": (
        "DELETE FROM trail WHERE number = 3; UPDATE trail SET number = number - 1 WHERE number = 4;"
        "UPDATE trail SET number = number - 1 WHERE number = 5; UPDATE trail SET number = 5 WHERE number = 6",
        3,
    ),
    "two lines are swapped": (
        "UPDATE trail SET number = 99 WHERE number = 3; UPDATE trail SET number = 3 WHERE number = 4;"
        "UPDATE trail SET number = 4 WHERE number = 99",
        3,
    ),
    "a line is put in": (
        "UPDATE trail SET number = number + 100 WHERE number >= 4; UPDATE trail SET number = number - 99 WHERE number > 100;"
        "INSERT INTO trail SELECT org_id, 4, at, by, act, subject_type, subject_id, reference, request, count, reason, hash "
        "FROM trail WHERE number = 3",
        4,
    ),
    "a line is put at the end": (
        "INSERT INTO trail SELECT org_id, 7, at, by, act, subject_type, subject_id, reference, request, count, reason, hash "
        "FROM trail WHERE number = 6",
        7,
    ),
    "a line is put before the first": ("UPDATE trail SET number = 7 WHERE number = 1", 1),
}


@pytest.mark.parametrize("what", STRUCTURAL)
def test_lines_that_the_owner_takes_moves_or_adds_are_found_at_the_first_broken_link(
    desk: PrivacyDesk, database: Database, clock: Clock, what: str
) -> None:
    looks(desk, clock)
    statements, number = STRUCTURAL[what]
    with as_owner(database) as owner:
        for statement in statements.split(";"):
            owner.execute(statement)
    broken = desk.verify_trail().broken
    assert broken is not None
    assert broken.number == number
    assert f"line {number}" in broken.what


def test_a_line_that_was_changed_together_with_its_hash_breaks_the_next_one(
    desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    looks(desk, clock)
    before, third = desk.trail()[4], desk.trail()[3]
    changed = link(
        before.hash,
        org_id="acme",
        number=third.number,
        at=third.at,
        by="user:else",
        act=third.act,
        subject=third.subject,
        reference=third.reference,
        request=third.request,
        count=third.count,
        reason=third.reason,
    )
    with as_owner(database) as owner:
        owner.execute("UPDATE trail SET by = 'user:else', hash = %s WHERE number = 3", (changed,))
    broken = desk.verify_trail().broken
    assert broken is not None
    assert broken.number == 4


def test_a_trail_of_thousands_is_checked_to_its_end(desk: PrivacyDesk, database: Database, clock: Clock) -> None:
    desk.held(CANDIDATE)
    before = desk.trail()[0].hash
    written = []
    for number in range(2, 2501):
        facts = {"org_id": "acme", "number": number, "at": clock.now, "by": "user:ines", "act": "look"}
        before = link(before, **facts, subject=None, reference=None, request=None, count=None, reason=None)
        written.append((number, clock.now, before))
    with as_owner(database) as owner, owner.cursor() as cursor:
        statement = (
            "INSERT INTO trail (org_id, number, at, by, act, hash) VALUES ('acme', %s, %s, 'user:ines', 'look', %s)"
        )
        cursor.executemany(statement, written)
    desk.held(CANDIDATE)
    verified = desk.verify_trail()
    assert (verified.lines, verified.broken) == (2501, None)
    with as_owner(database) as owner:
        owner.execute("UPDATE trail SET by = 'user:else' WHERE number = 2400")
    broken = desk.verify_trail().broken
    assert broken is not None
    assert broken.number == 2400


# What only something outside the database can show


def test_an_end_that_was_cut_off_is_found_by_an_exported_head(
    desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    looks(desk, clock)
    head = desk.verify_trail().head
    assert head is not None
    assert head.startswith("6:")
    with as_owner(database) as owner:
        owner.execute("DELETE FROM trail WHERE number > 4")
    broken = desk.verify_trail(head=head).broken
    assert broken is not None
    assert (broken.number, "end is missing" in broken.what) == (5, True)
    looks(desk, clock, 3)  # the trail went on over the cut
    broken = desk.verify_trail(head=head).broken
    assert broken is not None
    assert (broken.number, "the head that was given" in broken.what) == (6, True)


def test_an_end_that_was_cut_off_is_found_by_the_ledger_outside(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Could start in May.")
    looks(desk, clock, 3)
    desk.erase(CANDIDATE, reason="asked to")
    verified = desk.verify_trail()
    assert (verified.lines, verified.heads_outside, verified.broken) == (4, 1, None)
    with as_owner(database) as owner:
        owner.execute("DELETE FROM trail WHERE number > 2")
    broken = desk.verify_trail().broken
    assert broken is not None
    assert (broken.number, "the ledger outside knows line 4" in broken.what) == (3, True)


def test_an_end_that_was_cut_off_together_with_its_ledger_is_told_as_a_database_that_is_behind(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Could start in May.")
    looks(desk, clock, 3)
    desk.erase(CANDIDATE, reason="asked to")
    with as_owner(database) as owner:
        owner.execute("DELETE FROM trail WHERE number > 2")
        owner.execute("DELETE FROM ledger")
    verified = desk.verify_trail()
    assert (verified.broken, verified.heads_outside) == (None, 0)
    assert verified.ledger_fault is not None
    assert "restored from a backup: 1 entry of the ledger of acme is not in it" in verified.ledger_fault


def test_a_whole_trail_that_was_deleted_is_found_by_the_ledger_outside(desk: PrivacyDesk, database: Database) -> None:
    desk.erase(CANDIDATE, reason="asked to")
    with as_owner(database) as owner:
        owner.execute("DELETE FROM trail")
    broken = desk.verify_trail().broken
    assert broken is not None
    assert broken.number == 1


def test_a_trail_that_was_written_wholly_anew_is_found_by_a_head(
    desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    looks(desk, clock)
    head = desk.verify_trail().head
    before = FIRST
    with as_owner(database) as owner:
        for one in reversed(desk.trail()):
            before = link(
                before,
                org_id="acme",
                number=one.number,
                at=one.at,
                by="user:else",
                act=one.act,
                subject=one.subject,
                reference=one.reference,
                request=one.request,
                count=one.count,
                reason=one.reason,
            )
            owner.execute("UPDATE trail SET by = 'user:else', hash = %s WHERE number = %s", (before, one.number))
    assert desk.verify_trail().broken is None  # it holds in itself: that is why heads are kept elsewhere
    broken = desk.verify_trail(head=head).broken
    assert broken is not None
    assert (broken.number, "vouches for" in broken.what) == (6, True)


def test_a_head_of_long_ago_is_still_good(desk: PrivacyDesk, clock: Clock) -> None:
    looks(desk, clock, 2)
    head = desk.verify_trail().head
    looks(desk, clock, 3)
    assert desk.verify_trail(head=head).broken is None
    assert desk.verify_trail(head=f"  {head}\n").broken is None


@pytest.mark.parametrize(
    "head",
    [
        *("", "6", "6:", ":" + "0" * 64, "0:" + "0" * 64, "-1:" + "0" * 64, "6:" + "0" * 62, "6:" + "g" * 64, "six:00"),
        *("٦:" + "0" * 64, "6:" + "0" * 64 + "\n6", "9" * 19 + ":" + "0" * 64, "6:" + "0" * 65, "6:" + "０" * 64),
        *(6, 6.0, True, b"6:" + b"0" * 64, ("6", "0" * 64), ["6:" + "0" * 64], {6: "0" * 64}, object()),
    ],
)
def test_a_head_that_is_none_is_refused(desk: PrivacyDesk, head: Any) -> None:
    with pytest.raises(Refused) as caught:
        desk.verify_trail(head=head)
    assert caught.value.rule == "head_is_number_and_hash"


def test_an_organisation_of_which_nothing_is_on_record_holds(desk: PrivacyDesk, clock: Clock) -> None:
    verified = desk.verify_trail()
    assert (verified.org_id, verified.at, verified.lines) == ("acme", clock.now, 0)
    assert (verified.head, verified.broken, verified.heads_outside) == (None, None, 0)
    broken = desk.verify_trail(head="2:" + "0" * 64).broken
    assert broken is not None
    assert broken.number == 1


# Two at once


def whole(desk: PrivacyDesk, number: int) -> bool:
    verified = desk.verify_trail()
    numbers = [one.number for one in desk.trail(limit=1000)]
    return (verified.lines, verified.broken, numbers) == (number, None, list(range(number, 0, -1)))


def test_threads_that_write_at_once_leave_no_gap_and_no_fork(open_desk: OpenDesk, store: MemoryStore) -> None:
    observe(store, "Could start in May.")
    together = Barrier(6)

    def acts(number: int) -> None:
        desk = open_desk(by=f"user:{number}")
        together.wait(30)
        for _ in range(8):
            desk.held(Subject("candidate", f"c-{number}"))
            desk.erase(Subject("candidate", f"c-{number}"), reason="asked to")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(acts, range(6)))
    assert whole(open_desk(), 96)
    assert open_desk().verify_trail().heads_outside == 48


LOOKING = """
import sys
from memory_core import MemoryStore, Subject
from memory_core.config import settings
url = sys.stdin.readline().strip()
store = MemoryStore.open("acme", database_url=url, embedder=None, settings=settings(memory_embedder="none"))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(25):
    store.held(Subject("candidate", "c-81"), by="user:ines")
"""


def test_processes_that_write_at_once_leave_no_gap_and_no_fork(open_desk: OpenDesk, database: Database) -> None:
    url = database.application.render_as_string(hide_password=False)
    started = [
        subprocess.Popen([sys.executable, "-c", LOOKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for one in started:
            assert one.stdin is not None
            one.stdin.write(url + "\n")
            one.stdin.flush()
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        assert [one.communicate("\n", timeout=60) and one.returncode for one in started] == [0, 0]
    finally:
        for one in started:
            one.kill()
            one.wait()
    assert whole(open_desk(), 50)


def test_the_first_line_of_an_organisation_and_its_first_erasure_do_not_wait_in_a_ring(
    open_desk: OpenDesk, database: Database
) -> None:
    with ThreadPoolExecutor(2) as side, database.connect() as somebody:
        somebody.execute("SELECT pg_advisory_xact_lock(%s)", (_key("acme", CANDIDATE),))
        forgetting = side.submit(open_desk().erase, CANDIDATE, reason="asked to")
        await_lock_waits(database, 1)
        looking = side.submit(open_desk().held, OTHER)
        await_lock_waits(database, 2)
        somebody.rollback()
        assert looking.result(timeout=DEADLOCK_IS_FOUND_S).memories == ()
        assert forgetting.result(timeout=DEADLOCK_IS_FOUND_S).count == 0
    assert whole(open_desk(), 2)


# Whatever is written


identifiers = st.from_regex(r"[A-Za-z0-9._:@/+-]{1,128}", fullmatch=True)
reasons = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=499).map("a".__add__)
instants = st.datetimes(
    min_value=datetime(1950, 1, 2),
    max_value=datetime(2200, 1, 1),
    timezones=st.timezones() | st.just(UTC),
    allow_imaginary=False,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(st.tuples(identifiers, identifiers, identifiers, reasons, instants), min_size=1, max_size=4))
def test_the_trail_holds_whatever_reason_name_and_moment_is_written_to_it(
    open_desk: OpenDesk, clock: Clock, acts: list[tuple[str, str, str, str, datetime]]
) -> None:
    for by, subject_type, subject_id, reason, at in acts:
        clock.now = at
        desk = open_desk(by=by, clock=clock)
        subject = Subject(subject_type, subject_id)
        desk.erase(subject, reason=reason)
        line = desk.trail(limit=1)[0]
        assert (line.by, line.subject, line.reason, line.at) == (by, subject, reason, at)
    verified = desk.verify_trail()
    assert verified.broken is None
    assert verified.lines == desk.trail(limit=1)[0].number
