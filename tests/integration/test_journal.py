"""Every call to a model is on record, and its tokens are counted for all processes of its organisation together."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from conftest import Database
from fakes import Clock
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from model_calls import answered, called, failed, starting
from psycopg import sql
from rows import await_lock_waits, emptied, execute, snapshot
from talking import away

from memory_core.calls import Begun, CallEnd, CallStart, FinishReason, Wait
from memory_core.config import Provider, Tier
from memory_core.db import calls
from memory_core.db.engine import close_engines, engine_for, organisation_transaction
from memory_core.db.tables import model_call
from memory_core.errors import (
    DatabaseError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    MemoryCoreError,
    Refused,
    UnsafeRole,
)
from memory_core.journal import PAUSE_S, CallJournal

ROOT = Path(__file__).resolve().parents[2]
T0 = datetime(2026, 11, 2, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OpenJournal = Callable[..., CallJournal]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock(T0)


@pytest.fixture
def journal(database: Database, clock: Clock) -> CallJournal:
    """Return acme's journal in a process whose clock is the test's."""
    return CallJournal(engine_for(database.application), "acme", clock=clock)


@pytest.fixture
def another(database: Database, clock: Clock) -> OpenJournal:
    """Open a journal as another process would: nothing is shared but the database and the time."""

    def opened(org_id: str = "acme") -> CallJournal:
        return CallJournal(engine_for(database.application), org_id, clock=clock)

    return opened


def recorded(database: Database, call_id: UUID) -> dict[str, Any]:
    names = [column.name for column in model_call.columns]
    (row,) = execute(database, f"SELECT {', '.join(names)} FROM model_call WHERE call_id = %s", (call_id,))
    return dict(zip(names, row, strict=True))


def on_record(database: Database, org_id: str = "acme") -> list[UUID]:
    found = execute(database, "SELECT call_id FROM model_call WHERE org_id = %s ORDER BY started_at", (org_id,))
    return [call_id for (call_id,) in found]


def ends(database: Database) -> dict[UUID, datetime | None]:
    return dict(execute(database, "SELECT call_id, ended_at FROM model_call"))


def counted(database: Database, now: datetime | None = None) -> int:
    """Return what counts under acme's ceiling at a moment."""
    query = (
        "SELECT coalesce(sum(counted_tokens), 0) FROM model_call "
        "WHERE org_id = 'acme' AND counts_until > coalesce(%s::timestamptz, clock_timestamp())"
    )
    ((tokens,),) = execute(database, query, (now,))
    return int(tokens)


# Begun, ended, refused


def test_a_call_is_on_record_from_its_beginning(journal: CallJournal, database: Database) -> None:
    start = starting()
    assert isinstance(journal.begin(start, tokens_per_minute=None), Begun)
    kept = recorded(database, start.call_id)
    known = {
        "org_id": "acme",
        "call_id": start.call_id,
        "run_id": "r-1",
        "tier": "fast",
        "model": "qwen3:0.6b",
        "provider": "ollama",
        "started_at": T0,
        "deadline_at": T0 + timedelta(seconds=120),
        "estimated_tokens": 60,
        "memory_tokens": 20,
        "counted_tokens": 100,
        "counts_until": T0 + timedelta(seconds=120) + MINUTE,
    }
    assert {name: value for name, value in kept.items() if value is not None} == known


def test_an_end_adds_all_it_knows_and_changes_nothing_that_was_known(
    journal: CallJournal, database: Database, clock: Clock
) -> None:
    start = starting(tier=Tier.DEEP, provider=Provider.OPENAI)
    journal.begin(start, tokens_per_minute=None)
    began = recorded(database, start.call_id)
    end = answered(
        total_ms=2000.0,
        cached=True,
        cold=True,
        tool_calls=3,
        tool_calls_in_text=2,
        tool_call_faults=1,
        prompt_was_cut=True,
    )
    clock.step(seconds=2)
    journal.end(start.call_id, end)
    kept = recorded(database, start.call_id)
    for field in fields(CallEnd):
        assert kept[field.name] == getattr(end, field.name), field.name
    assert kept["ended_at"] == T0 + timedelta(seconds=2)
    assert kept["counts_until"] == T0 + timedelta(seconds=2) + MINUTE
    added = {field.name for field in fields(CallEnd)} | {"ended_at", "counts_until"}
    assert {name: value for name, value in kept.items() if name not in added} == {
        name: value for name, value in began.items() if name not in added
    }


def test_the_record_has_a_column_for_all_that_is_known_of_a_call() -> None:
    known = {field.name for field in (*fields(CallStart), *fields(CallEnd))} - {
        "reserved_tokens",
        "least_tokens",
        "deadline_s",
    }
    columns = {column.name for column in model_call.columns}
    assert columns == known | {"org_id", "started_at", "deadline_at", "ended_at", "counts_until"}


@pytest.mark.parametrize("tier", Tier)
@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("reason", FinishReason)
def test_every_tier_provider_and_reason_can_be_recorded(
    tier: Tier, provider: Provider, reason: FinishReason, journal: CallJournal, database: Database
) -> None:
    start = starting(tier=tier, provider=provider)
    journal.begin(start, tokens_per_minute=None)
    journal.end(start.call_id, answered(finish_reason=reason))
    kept = recorded(database, start.call_id)
    assert (kept["tier"], kept["provider"], kept["finish_reason"]) == (tier, provider, reason)


def gateway_errors(error: type[MemoryCoreError] = MemoryCoreError) -> Iterator[str]:
    if "code" in vars(error):
        yield vars(error)["code"]
    for below in error.__subclasses__():
        yield from gateway_errors(below)


@pytest.mark.parametrize("code", sorted(set(gateway_errors())))
def test_every_error_of_the_gateway_can_be_recorded(code: str, journal: CallJournal, database: Database) -> None:
    begun, refused = starting(), starting()
    journal.begin(begun, tokens_per_minute=None)
    journal.end(begun.call_id, failed(code))
    journal.refuse(refused, failed(code, attempts=0))
    for start in (begun, refused):
        kept = recorded(database, start.call_id)
        assert (kept["error_code"], kept["finish_reason"]) == (code, None)


def test_an_end_is_written_once(journal: CallJournal, database: Database, clock: Clock) -> None:
    start = called(journal)
    first = recorded(database, start.call_id)
    clock.step(seconds=5)
    journal.end(start.call_id, failed())
    journal.end(start.call_id, answered(counted_tokens=1))
    assert recorded(database, start.call_id) == first


def test_an_end_of_a_call_that_never_began_leaves_no_record(journal: CallJournal, database: Database) -> None:
    journal.end(uuid4(), answered())
    assert on_record(database) == []


def test_a_call_begins_once(journal: CallJournal, database: Database) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=None)
    with pytest.raises(MemoryCoreError):
        journal.begin(replace(start, run_id="r-2"), tokens_per_minute=None)
    assert recorded(database, start.call_id)["run_id"] == "r-1"


def test_a_clock_that_is_set_back_breaks_no_record(journal: CallJournal, database: Database, clock: Clock) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=None)
    clock.step(hours=-1)
    journal.end(start.call_id, answered())
    assert recorded(database, start.call_id)["ended_at"] == T0


def test_without_a_clock_the_databases_own_counts(database: Database) -> None:
    start = called(CallJournal(engine_for(database.application), "acme"))
    kept = recorded(database, start.call_id)
    assert abs(kept["started_at"] - datetime.now(UTC)) < MINUTE
    assert kept["started_at"] <= kept["ended_at"]


def test_a_refused_call_has_its_record_and_counts_nothing(
    journal: CallJournal, database: Database, clock: Clock
) -> None:
    start = starting()
    journal.refuse(start, failed("gateway.rate_limited", total_ms=1500.0, attempts=0, counted_tokens=50))
    kept = recorded(database, start.call_id)
    assert kept["error_code"] == "gateway.rate_limited"
    assert (kept["started_at"], kept["ended_at"]) == (T0 - timedelta(seconds=1.5), T0)
    assert (kept["attempts"], kept["counted_tokens"], kept["estimated_tokens"]) == (0, 0, 60)
    assert counted(database, T0) == 0
    assert isinstance(journal.begin(starting(), tokens_per_minute=100), Begun)


@pytest.mark.parametrize("ceiling", [None, 100])
def test_a_call_that_was_interrupted_before_it_heard_that_it_had_begun_ends_and_counts_nothing(
    ceiling: int | None, journal: CallJournal, another: OpenJournal, database: Database, clock: Clock
) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=ceiling)
    clock.step(seconds=2)
    journal.refuse(start, failed("gateway.cancelled", attempts=0, total_ms=2000.0))
    kept = recorded(database, start.call_id)
    assert (kept["started_at"], kept["ended_at"]) == (T0, T0 + timedelta(seconds=2))
    assert (kept["error_code"], kept["attempts"], kept["counted_tokens"]) == ("gateway.cancelled", 0, 0)
    assert counted(database, clock.now) == 0
    assert isinstance(another().begin(starting(), tokens_per_minute=100), Begun)


def test_a_call_that_has_ended_is_not_refused_afterwards(journal: CallJournal, database: Database) -> None:
    start = called(journal)
    before = recorded(database, start.call_id)
    journal.refuse(start, failed("gateway.cancelled"))
    assert recorded(database, start.call_id) == before


def test_a_call_is_refused_once(journal: CallJournal, database: Database) -> None:
    start = starting()
    journal.refuse(start, failed("gateway.rate_limited", attempts=0))
    before = recorded(database, start.call_id)
    journal.refuse(start, failed("gateway.cancelled", attempts=0))
    assert recorded(database, start.call_id) == before


# One organisation and another


def test_no_call_is_visible_to_another_organisation(
    journal: CallJournal, another: OpenJournal, database: Database
) -> None:
    called(journal)
    journal.refuse(starting(), failed())
    theirs = called(another("acme-corp"))
    for org_id, expected in (("acme", 2), ("acme-corp", 1), ("acme-co", 0)):
        with organisation_transaction(engine_for(database.application), org_id) as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM model_call").scalar_one() == expected
    assert on_record(database, "acme-corp") == [theirs.call_id]


def test_a_call_of_another_organisation_cannot_be_ended(
    journal: CallJournal, another: OpenJournal, database: Database
) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=None)
    another("acme-corp").end(start.call_id, failed())
    assert ends(database) == {start.call_id: None}


def test_two_organisations_may_use_the_same_id_for_a_call(
    journal: CallJournal, another: OpenJournal, database: Database
) -> None:
    start = starting()
    for one in (journal, another("acme-corp")):
        assert isinstance(one.begin(start, tokens_per_minute=None), Begun)
    journal.end(start.call_id, answered())
    found = execute(database, "SELECT org_id, ended_at IS NULL FROM model_call ORDER BY 1")
    assert found == [("acme", False), ("acme-corp", True)]


def test_a_ceiling_is_not_touched_by_another_organisation(journal: CallJournal, another: OpenJournal) -> None:
    assert isinstance(another("acme-corp").begin(starting(), tokens_per_minute=100), Begun)
    assert isinstance(journal.begin(starting(), tokens_per_minute=100), Begun)
    assert journal.begin(starting(), tokens_per_minute=100)
    assert isinstance(another("acme-co").begin(starting(), tokens_per_minute=100), Begun)


def test_another_organisation_does_not_wait_its_turn_behind_a_slow_one(
    journal: CallJournal, another: OpenJournal, database: Database
) -> None:
    called(journal)
    engine = engine_for(database.application)
    with ThreadPoolExecutor(2) as side, organisation_transaction(engine, "acme") as slow:
        calls.begin(slow, "acme", starting(), tokens_per_minute=1000, now=None)
        theirs = side.submit(another("acme-corp").begin, starting(), tokens_per_minute=100)
        assert isinstance(theirs.result(timeout=15), Begun)
        mine = side.submit(journal.begin, starting(), tokens_per_minute=1000)
        await_lock_waits(database, 1)
        slow.commit()
        assert isinstance(mine.result(timeout=15), Begun)


# The ceiling


def for_a_call_that_runs(seconds: float) -> Wait:
    """Return a wait that may turn out shorter, since some of what counts is only reserved."""
    return Wait(seconds=pytest.approx(seconds), may_be_sooner=True)


def test_what_just_fits_under_the_ceiling_is_begun_and_one_token_more_is_not(
    journal: CallJournal, database: Database
) -> None:
    assert isinstance(journal.begin(starting(reserved_tokens=60), tokens_per_minute=100), Begun)
    assert journal.begin(starting(reserved_tokens=41), tokens_per_minute=100) == for_a_call_that_runs(180)
    assert isinstance(journal.begin(starting(reserved_tokens=40), tokens_per_minute=100), Begun)
    assert journal.begin(starting(reserved_tokens=1), tokens_per_minute=100) == for_a_call_that_runs(180)
    assert isinstance(journal.begin(starting(reserved_tokens=0), tokens_per_minute=100), Begun)
    assert counted(database, T0) == 100
    assert len(on_record(database)) == 3


def test_what_did_not_fit_leaves_no_record_and_may_begin_later(
    journal: CallJournal, database: Database, clock: Clock
) -> None:
    first, late = starting(deadline_s=5.0), starting()
    journal.begin(first, tokens_per_minute=100)
    before = snapshot(database)
    assert journal.begin(late, tokens_per_minute=100) == for_a_call_that_runs(65)
    assert snapshot(database) == before
    clock.step(seconds=64.999)
    assert journal.begin(late, tokens_per_minute=100) == for_a_call_that_runs(0.001)
    clock.step(seconds=0.001)
    assert isinstance(journal.begin(late, tokens_per_minute=100), Begun)
    assert on_record(database) == [first.call_id, late.call_id]


def test_what_a_killed_call_reserved_counts_until_its_deadline_and_a_minute_and_then_no_more(
    another: OpenJournal, clock: Clock, database: Database
) -> None:
    killed = starting(deadline_s=30.0)
    another().begin(killed, tokens_per_minute=100)  # and its process is gone
    for seconds in (0, 30, 89.999):
        clock.now = T0 + timedelta(seconds=seconds)
        assert another().begin(starting(), tokens_per_minute=100) == for_a_call_that_runs(90 - seconds)
    clock.now = T0 + timedelta(seconds=90)
    assert isinstance(another().begin(starting(), tokens_per_minute=100), Begun)
    assert recorded(database, killed.call_id)["ended_at"] is None


def test_a_reservation_lapses_after_six_minutes_however_long_its_deadline_is(
    another: OpenJournal, clock: Clock, database: Database
) -> None:
    killed = starting(deadline_s=86_400.0)
    another().begin(killed, tokens_per_minute=100)
    assert recorded(database, killed.call_id)["deadline_at"] == T0 + timedelta(days=1)
    clock.now = T0 + timedelta(seconds=359.999)
    assert another().begin(starting(), tokens_per_minute=100) == for_a_call_that_runs(0.001)
    clock.now = T0 + timedelta(seconds=360)
    assert isinstance(another().begin(starting(), tokens_per_minute=100), Begun)


def test_a_call_that_waited_before_it_began_reserves_from_when_it_was_asked_for(
    journal: CallJournal, another: OpenJournal, database: Database
) -> None:
    start = starting(deadline_s=120.0)
    journal.begin(start, tokens_per_minute=100, elapsed_s=100.0)
    kept = recorded(database, start.call_id)
    assert (kept["started_at"], kept["deadline_at"]) == (T0 - timedelta(seconds=100), T0 + timedelta(seconds=20))
    assert another().begin(starting(), tokens_per_minute=100) == for_a_call_that_runs(80)


def test_a_call_that_ended_counts_what_it_came_to_for_a_minute(journal: CallJournal, clock: Clock) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=100)
    clock.step(seconds=10)
    journal.end(start.call_id, answered(total_ms=10_000.0, counted_tokens=80))
    assert journal.begin(starting(reserved_tokens=21), tokens_per_minute=100) == Wait(seconds=60, may_be_sooner=False)
    assert isinstance(journal.begin(starting(reserved_tokens=20, deadline_s=1000.0), tokens_per_minute=100), Begun)
    assert journal.begin(starting(reserved_tokens=80), tokens_per_minute=100) == for_a_call_that_runs(60)
    assert journal.begin(starting(reserved_tokens=81), tokens_per_minute=100) == for_a_call_that_runs(360)
    clock.step(seconds=59.999)
    assert journal.begin(starting(reserved_tokens=80), tokens_per_minute=100) == for_a_call_that_runs(0.001)
    clock.step(seconds=0.001)
    assert isinstance(journal.begin(starting(reserved_tokens=80), tokens_per_minute=100), Begun)


def test_a_call_that_came_to_nothing_gives_back_all_it_reserved_at_once(journal: CallJournal) -> None:
    for _ in range(3):
        start = starting()
        assert isinstance(journal.begin(start, tokens_per_minute=100), Begun)
        journal.end(start.call_id, failed(counted_tokens=0))
    assert isinstance(journal.begin(starting(), tokens_per_minute=100), Begun)


def test_a_call_that_was_begun_without_a_ceiling_counts_under_one(journal: CallJournal, another: OpenJournal) -> None:
    for _ in range(3):
        assert isinstance(journal.begin(starting(), tokens_per_minute=None), Begun)
    assert another().begin(starting(reserved_tokens=1), tokens_per_minute=300) == for_a_call_that_runs(180)
    assert isinstance(journal.begin(starting(), tokens_per_minute=None), Begun)


def test_a_ceiling_that_was_lowered_is_kept_from_then_on(journal: CallJournal) -> None:
    assert isinstance(journal.begin(starting(), tokens_per_minute=1000), Begun)
    assert journal.begin(starting(reserved_tokens=1), tokens_per_minute=50) == for_a_call_that_runs(180)


def test_what_alone_passes_the_ceiling_is_never_begun(journal: CallJournal, database: Database) -> None:
    assert isinstance(journal.begin(starting(reserved_tokens=101), tokens_per_minute=100), Wait)
    assert on_record(database) == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, 120), st.sampled_from([1.0, 30.0, 90.0])),
        st.tuples(st.just("end"), st.integers(0, 10), st.integers(0, 120)),
        st.tuples(st.just("later"), st.sampled_from([0.25, 1.0, 30.0, 60.0, 120.0]), st.none()),
    ),
    max_size=25,
)


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_begins_and_ends_when_the_ceiling_is_kept_as_counted_by_hand(
    steps: list[tuple[str, Any, Any]], database: Database
) -> None:
    clock = Clock(T0)
    engine = engine_for(database.application)
    processes = [CallJournal(engine, f"o-{uuid4().hex}", clock=clock)]
    processes.append(CallJournal(engine, processes[0]._org_id, clock=clock))
    counting: dict[UUID, tuple[int, datetime]] = {}  # what each call counts, until when
    running: list[tuple[UUID, int, datetime]] = []
    for number, (act, one, other) in enumerate(steps):
        journal = processes[number % 2]
        if act == "later":
            clock.step(seconds=one)
        elif act == "begin":
            start = starting(reserved_tokens=one, deadline_s=other)
            wait = journal.begin(start, tokens_per_minute=100)
            taken = [
                (until, tokens, call) for call, (tokens, until) in counting.items() if tokens and until > clock.now
            ]
            free = 100 - sum(tokens for _, tokens, _ in taken)
            if one <= free:
                assert isinstance(wait, Begun)
                counting[start.call_id] = (one, clock.now + timedelta(seconds=other + 60))
                running.append((start.call_id, one, clock.now))
            else:
                fits_at = clock.now  # said of what never fits
                for until, tokens, _ in sorted(taken):
                    free += tokens
                    if one <= free:
                        fits_at = until
                        break
                runs = {call for call, *_ in running}
                assert wait == Wait(
                    seconds=pytest.approx((fits_at - clock.now).total_seconds()),
                    may_be_sooner=any(call in runs for _, _, call in taken),
                )
        elif running:
            call_id, reserved, began = running.pop(one % len(running))
            tokens = min(other, reserved)
            if counting[call_id][1] > clock.now:  # a call is over by its deadline
                took_ms = (clock.now - began).total_seconds() * 1000
                journal.end(call_id, answered(total_ms=took_ms, counted_tokens=tokens))
                counting[call_id] = (tokens, clock.now + MINUTE)
        assert sum(tokens for tokens, until in counting.values() if until > clock.now) <= 100


def test_many_threads_at_once_never_pass_the_ceiling_and_use_it_up(database: Database) -> None:
    ceiling, threads = 1000, 12
    engine = engine_for(database.application)
    together = Barrier(threads + 1)
    over = threading.Event()
    seen: list[int] = []

    def busy(number: int) -> int:
        shared = journals[number % len(journals)]
        together.wait(timeout=30)
        begun = 0
        for turn in range(25):
            start = starting(reserved_tokens=20 + number)
            if isinstance(shared.begin(start, tokens_per_minute=ceiling), Begun):
                begun += 1
                if turn % 2:
                    shared.end(start.call_id, answered(counted_tokens=turn % 20))
        return begun

    def watch() -> None:
        together.wait(timeout=30)
        while not over.is_set():
            seen.append(counted(database))

    journals = [CallJournal(engine, "acme") for _ in range(4)]
    with ThreadPoolExecutor(threads + 1) as pool:
        watching = pool.submit(watch)
        begun = [one.result(timeout=60) for one in [pool.submit(busy, number) for number in range(threads)]]
        over.set()
        watching.result(timeout=30)
    assert max([*seen, counted(database)]) <= ceiling
    assert counted(database) > ceiling - (20 + threads)
    assert sum(begun) == len(on_record(database))


PROCESS = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
from sqlalchemy import make_url
from memory_core.calls import Begun
from memory_core.db.engine import engine_for
from memory_core.journal import CallJournal
from model_calls import starting

journal = CallJournal(engine_for(make_url(os.environ["DATABASE_URL"])), "acme")
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(4) as pool:
    waits = list(pool.map(lambda _: journal.begin(starting(reserved_tokens=7), tokens_per_minute=1000), range(60)))
print(sum(isinstance(wait, Begun) for wait in waits), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_several_processes_at_once_never_pass_the_ceiling_together_also_when_they_are_killed(
    database: Database,
) -> None:
    environment = os.environ | {
        "DATABASE_URL": database.application.render_as_string(hide_password=False),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for one in processes:
        assert one.stdout
        assert one.stdout.readline() == "ready\n"
    for one in processes:
        assert one.stdin
        one.stdin.write("go\n")
        one.stdin.flush()
    begun = [int(one.communicate(timeout=60)[0]) for one in processes]
    assert [one.returncode for one in processes] == [-9] * 4
    assert sum(begun) == 1000 // 7 == len(on_record(database))
    assert counted(database) == 994

    ((last,),) = execute(database, "SELECT max(counts_until) FROM model_call")
    clock = Clock(last - timedelta(milliseconds=1))
    later = CallJournal(engine_for(database.application), "acme", clock=clock)
    assert isinstance(later.begin(starting(reserved_tokens=1000), tokens_per_minute=1000), Wait)
    clock.now = last
    assert isinstance(later.begin(starting(reserved_tokens=1000), tokens_per_minute=1000), Begun)


def test_the_first_calls_of_an_organisation_may_come_all_at_once(database: Database) -> None:
    together = Barrier(8)

    def first(number: int) -> Begun | Wait | None:
        journal = CallJournal(engine_for(database.application), "acme")
        together.wait(timeout=30)
        if number % 4 == 3:
            journal.refuse(starting(), failed())
            return None
        return journal.begin(starting(), tokens_per_minute=10_000 if number % 2 else None)

    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(first, range(8)))
    assert [isinstance(one, Begun) for one in begun] == [number % 4 != 3 for number in range(8)]
    assert len(on_record(database)) == 8


# The database away


def test_an_end_that_cannot_be_written_is_kept_and_written_with_the_next_call(
    journal: CallJournal, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    start, following = starting(), starting()
    journal.begin(start, tokens_per_minute=None)
    with away(database):
        journal.end(start.call_id, answered())
    assert "not on record yet" in caplog.text
    assert ends(database) == {start.call_id: None}
    journal.begin(following, tokens_per_minute=None)
    assert recorded(database, start.call_id)["finish_reason"] == "stop"
    assert ends(database)[following.call_id] is None


def test_ends_that_were_kept_are_written_in_their_order_also_by_a_following_end(database: Database) -> None:
    clock = Clock(T0)
    seconds = [0.0]
    journal = CallJournal(
        engine_for(database.application),
        "acme",
        clock=lambda: clock.step(seconds=1),
        monotonic=lambda: seconds[0],
    )
    starts = [starting() for _ in range(5)]
    for start in starts:
        journal.begin(start, tokens_per_minute=None)
    with away(database):
        for start in starts[:4]:
            journal.end(start.call_id, answered(total_ms=3_600_000.0))
    assert set(ends(database).values()) == {None}
    seconds[0] += PAUSE_S
    journal.end(starts[4].call_id, answered(total_ms=3_600_000.0))
    ended = ends(database)
    moments = [ended[start.call_id] for start in starts]
    assert None not in moments
    assert sorted(set(moments)) == moments  # type: ignore[type-var]


def test_an_end_is_not_lost_with_a_pooled_connection(journal: CallJournal, database: Database) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=None)
    with away(database):
        pass
    journal.end(start.call_id, answered())
    assert ends(database)[start.call_id] is not None


def test_a_call_whose_record_cannot_begin_is_refused_and_leaves_nothing(
    journal: CallJournal, database: Database
) -> None:
    called(journal)
    before = snapshot(database)
    for ceiling in (None, 1000):
        with away(database), pytest.raises(DatabaseUnavailable) as down:
            journal.begin(starting(), tokens_per_minute=ceiling)
        assert down.value.retryable
    assert snapshot(database) == before
    assert isinstance(journal.begin(starting(), tokens_per_minute=1000), Begun)


def test_a_first_call_whose_record_cannot_begin_is_begun_when_the_database_is_back(
    journal: CallJournal, database: Database
) -> None:
    with away(database), pytest.raises(DatabaseError):
        journal.begin(starting(), tokens_per_minute=None)
    assert isinstance(journal.begin(starting(), tokens_per_minute=None), Begun)


def test_a_refusal_reaches_its_caller_also_when_it_cannot_be_recorded(
    journal: CallJournal, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with away(database):
        journal.refuse(starting(), failed())
    assert "not on record" in caplog.text
    assert on_record(database) == []


def test_a_database_that_only_reads_begins_no_call_and_keeps_the_ends(journal: CallJournal, database: Database) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=None)
    name = sql.Identifier(str(database.application.database))
    with database.connect(autocommit=True) as superuser:
        superuser.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        close_engines()
        read_only = CallJournal(engine_for(database.application), "acme")
        try:
            with pytest.raises(DatabaseReadOnly):
                read_only.begin(starting(), tokens_per_minute=None)
            read_only.end(start.call_id, answered())
            read_only.refuse(starting(), failed())
        finally:
            superuser.execute("SET default_transaction_read_only = off")
            superuser.execute(sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))
            superuser.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND usename = 'memory_app'"
            )
    assert isinstance(read_only.begin(starting(), tokens_per_minute=None), Begun)
    assert ends(database)[start.call_id] is not None


def test_a_role_that_may_not_write_the_record_begins_no_call(journal: CallJournal, database: Database) -> None:
    execute(database, "REVOKE INSERT ON model_call FROM memory_app")
    try:
        with pytest.raises(UnsafeRole, match="model_call"):
            journal.begin(starting(), tokens_per_minute=None)
    finally:
        execute(database, "GRANT INSERT ON model_call TO memory_app")
    assert on_record(database) == []


def test_an_end_that_comes_to_the_record_late_ended_when_the_call_did(
    journal: CallJournal, database: Database, clock: Clock
) -> None:
    start = starting()
    journal.begin(start, tokens_per_minute=None)
    clock.step(seconds=1)
    with away(database):
        journal.end(start.call_id, answered(total_ms=1000.0))
    clock.step(minutes=10)
    journal.begin(starting(), tokens_per_minute=None)
    kept = recorded(database, start.call_id)
    assert kept["ended_at"] == T0 + timedelta(seconds=1)
    assert kept["counts_until"] == T0 + timedelta(seconds=1) + MINUTE


def test_an_end_that_comes_to_the_record_late_does_not_pass_the_ceiling(
    journal: CallJournal, another: OpenJournal, database: Database, clock: Clock
) -> None:
    start = starting(deadline_s=30.0)
    journal.begin(start, tokens_per_minute=100)
    clock.step(seconds=1)
    with away(database):
        journal.end(start.call_id, answered(total_ms=1000.0, counted_tokens=80))
    clock.step(seconds=100)
    assert isinstance(another().begin(starting(), tokens_per_minute=100), Begun)
    journal.begin(starting(), tokens_per_minute=100)
    assert counted(database, clock.now) <= 100


# Values that the record cannot take


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("model_call_names_run_and_model", {"run_id": "two words"}),
        ("model_call_names_run_and_model", {"run_id": ""}),
        ("model_call_names_run_and_model", {"run_id": "x" * 129}),
        ("model_call_names_run_and_model", {"model": 'm"; --'}),
        ("model_call_names_run_and_model", {"model": "m\n"}),
        ("call_counts_from_zero", {"estimated_tokens": -1}),
        ("call_counts_from_zero", {"memory_tokens": -1}),
        ("call_counts_from_zero", {"reserved_tokens": -1}),
        ("call_ends_after_it_starts", {"deadline_s": 0.0}),
        ("tier_is_known", {"tier": "cheap"}),
        ("provider_is_known", {"provider": "anthropic"}),
    ],
)
def test_a_call_that_breaks_a_rule_of_the_record_is_refused_by_it_and_not_begun(
    rule: str, changes: dict[str, Any], journal: CallJournal, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    for ceiling in (None, 1000):
        with pytest.raises(Refused) as refused:
            journal.begin(starting(**changes), tokens_per_minute=ceiling)
        assert (refused.value.rule, refused.value.field) == (rule, "model_call")
    journal.refuse(starting(**changes), failed())
    assert len(caplog.records) == (0 if changes == {"reserved_tokens": -1} else 1)  # a refused call reserves nothing
    assert len(on_record(database)) == 1 - len(caplog.records)


@pytest.mark.parametrize(
    "changes",
    [
        {"run_id": "a\x00b"},
        {"run_id": "\ud800"},
        {"estimated_tokens": 2**31},
        {"deadline_s": float("nan")},
        {"deadline_s": float("inf")},
        {"deadline_s": 1e300},
    ],
    ids=str,
)
def test_a_call_with_a_value_that_no_record_can_hold_is_an_error_of_ours(
    changes: dict[str, Any], journal: CallJournal, database: Database
) -> None:
    for ceiling in (None, 1000):
        with pytest.raises(MemoryCoreError) as refused:
            journal.begin(starting(**changes), tokens_per_minute=ceiling)
        assert "\n" not in str(refused.value)
    assert on_record(database) == []
    journal.refuse(starting(**changes), failed())  # never raises


UNUSABLE: list[dict[str, Any]] = [
    {"finish_reason": None},
    {"error_code": "gateway.busy"},
    {"finish_reason": "eos"},
    {"finish_reason": None, "error_code": "the answer was 42"},
    {"digest": "two words"},
    {"digest": "a\x00b"},
    {"prompt_tokens": -1},
    {"prompt_tokens": 2**31},
    {"output_tokens": 2**80},
    {"counted_tokens": -1},
    {"total_ms": float("nan")},
    {"load_ms": float("inf")},
    {"generation_ms": 1e300},
    {"generation_ms": 1e-300},
    {"queue_ms": -0.5},
]


@pytest.mark.parametrize("changes", UNUSABLE, ids=str)
def test_an_end_that_the_record_cannot_take_keeps_no_later_end_from_it(
    changes: dict[str, Any], journal: CallJournal, database: Database
) -> None:
    bad, good = starting(), starting()
    for start in (bad, good):
        journal.begin(start, tokens_per_minute=None)
    journal.end(bad.call_id, answered(**changes))  # never raises
    journal.end(good.call_id, answered())
    assert ends(database)[good.call_id] is not None
    assert called(journal).call_id in on_record(database)
