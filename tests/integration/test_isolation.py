from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import eval_rows
import psycopg
import pytest
from fakes import CANDIDATE, HashedWords, fact, observation, observe
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from model_calls import called
from psycopg import sql
from rows import counts, emptied, execute, rows, snapshot, tables
from run_rows import begun, completed, ran, tool_call

from memory_core import MemoryStore, Recall, Refused, Subject, UnsafeRole, membership
from memory_core.config import Settings, settings
from memory_core.db import agent_runs, approvals, evaluations, members, safeguards
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.db.tables import TENANT_TABLES
from memory_core.journal import CallJournal
from memory_core.leaving import what_may_leave
from memory_core.membership import Members, memberships_of, standing_of
from memory_core.privacy import PrivacyDesk
from memory_core.register import Register
from memory_core.rights import DeskSettings, HeavyAct, Safeguards
from memory_core.roles import Identity, Role
from memory_core.run_journal import AgentJournal

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore


EXEMPT = {"alembic_version", "organisation"}
PROVENANCE = {
    "org_id",
    "memory_id",
    "kind",
    "subject_type",
    "subject_id",
    "origin",
    "author",
    "run_id",
    "source",
    "created_at",
    "supersedes",
    "corrected_by",
    "correction_reason",
}
NOWHERE = [None, "", "%", "acme-cor_", "acme-corp", "ACME", "acm", "nobody", "acme'--", "*", "acme,acme-corp", "null"]
THEIRS = Subject("candidate", "c-81", "Zoë Müller", ("zoe@example.org",))
GONE = Subject("candidate", "c-7")
EVALUATION_ID = UUID("01938000-0000-7000-8000-000000000008")
APPROVAL_ID = UUID("01938000-0000-7000-8000-00000000000a")
FINGERPRINT = bytes(range(32))
INES = Identity(issuer="https://login.example.org", subject="81")
BO = Identity(issuer="https://login.example.org", subject="82")


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def acme(open_store: OpenStore, open_desk: OpenDesk, database: Database) -> Recall:
    """Let `acme` hold, recall, erase, run an agent, try it and work at its desk, so that each of its tables has a row.

    Returns what it recalled.
    """
    store = open_store("acme", embedder=HashedWords())
    store.remember_many([observation("Could start in May.", subject=THEIRS), fact("We never schedule on Fridays.")])
    engine = engine_for(database.application)
    journal = AgentJournal(engine, "acme")
    journal.begin(begun(run_id="r-2"))
    found = store.recall("when could they start?", run_id="r-2")
    observe(store, "Gone.", subject=Subject("candidate", "c-7"))
    store.forget(Subject("candidate", "c-7"), by="user:ines", reason="asked to")
    called(CallJournal(engine, "acme"), run_id="r-2")
    wrote = tool_call(memory_id=found.memories[0].memory.memory_id, recall_id=found.recall_id)
    journal.called("r-2", wrote)
    journal.end("r-2", completed())
    with organisation_transaction(engine, "acme") as connection:
        evaluations.begin(connection, "acme", EVALUATION_ID, eval_rows.start(), now=None)
        evaluations.add(connection, "acme", EVALUATION_ID, eval_rows.result(), now=None)
    desk = open_desk("acme")
    today = desk.today()
    desk.register.register("erasure", asked_by="Zoë Müller", channel="letter", received_on=today, subject=CANDIDATE)
    desk.hold("a claim is before the court", subject=CANDIDATE, name="claim-7", review_on=today)
    desk.change_safeguards(replace(desk.safeguards(), preview_pseudonyms=True, observations_leave=True))
    Members.open("acme", by="user:maria", settings=configured(database)).add(INES, "dpo", name="user:ines")
    with organisation_transaction(engine, "acme") as connection:
        ask(connection, "acme", APPROVAL_ID)
    return found


def configured(database: Database) -> Settings:
    return settings(database_url=database.application.render_as_string(hide_password=False), memory_embedder="none")


def ask(connection: Any, org_id: str, approval_id: UUID) -> object:
    now = datetime.now(UTC)
    return approvals.ask(
        connection,
        org_id,
        approval_id=approval_id,
        act=HeavyAct.ERASE,
        fingerprint=FINGERPRINT,
        subject=CANDIDATE,
        count=2,
        reason="asked to",
        by="user:ines",
        at=now,
        expires_at=now + timedelta(days=1),
    )


@pytest.fixture
def other(open_store: OpenStore, acme: Recall) -> MemoryStore:
    """Return the store of another organisation, whose name begins like the first one's."""
    store = open_store("acme-corp", embedder=HashedWords())
    observe(store, "Theirs alone.", subject=Subject("candidate", "c-9", "Bo"))
    return store


# Through the store


def test_another_organisation_sees_nothing_through_any_public_call(
    other: MemoryStore, acme: Recall, database: Database, subtests: pytest.Subtests
) -> None:
    def refused(act: Callable[[], object]) -> bool:
        with pytest.raises(Refused) as caught:
            act()
        return (caught.value.rule, caught.value.field) == ("recall_exists", "recall_id")

    def remembered_apart() -> bool:
        stored = other.remember(**observation("Could start in May."))
        several = other.remember_many([observation("Could start in May."), fact("We never schedule on Fridays.")])
        return [stored.seen_count, *(memory.seen_count for memory in several)] == [1, 2, 1]

    def recalled() -> set[str | None]:
        answers = [
            other.recall("when could they start in May?", run_id="r-2", limit=50, **options)
            for options in ({}, {"ranking": "recency"}, {"subject": CANDIDATE}, {"kinds": "fact"})
        ]
        assert all("May" not in found.block.text for found in answers if found.block)
        return {one.memory.text for found in answers for one in found.memories}

    everything = other.overview()
    here, outside = configured(database), settings(model_outside=True)
    yields_nothing: dict[str, Callable[[], bool]] = {
        "recall": lambda: recalled() == {"Theirs alone."},
        "shown": lambda: refused(lambda: other.shown(acme.recall_id)),
        "held": lambda: (other.held(CANDIDATE).memories, other.held(CANDIDATE).subject.label) == ((), None),
        "find_subjects": lambda: (
            not any(
                other.find_subjects(typed) for typed in ("c-81", "Zoë", "zoe@example.org", "candidate c-81", "c-7", "%")
            )
        ),
        "withdrawn": lambda: other.withdrawn("r-2") == 0,
        "overview": lambda: (sum(everything.counts.values()), everything.subjects, everything.unembedded) == (1, 1, 0),
        "embed": lambda: other.embed().count == 0,
        "forget": lambda: (
            other.forget(CANDIDATE, by="user:ines", reason="asked to").count == 0
            and other.forget(Subject("candidate", "c-7"), by="user:ines", reason="asked to").count == 0
        ),
        "remember": remembered_apart,
        "remember_many": lambda: True,  # done with remember
        "open": lambda: True,  # how this store came to be
        "organisations": lambda: MemoryStore.organisations(settings=here) == ["acme", "acme-corp"],  # ids and no more
        "close": lambda: other.close() is None,
        "may_leave": lambda: what_may_leave(engine_for(database.application), other.org_id, outside).observations_stay,
    }
    assert public_calls(MemoryStore) == set(yields_nothing), "a new public call needs its line here"
    mine = {table: rows(database, table, "org_id = 'acme'") for table in tables(database) if table not in EXEMPT}
    for name, act in yields_nothing.items():
        with subtests.test(name):
            assert act()
    assert {table: rows(database, table, "org_id = 'acme'") for table in mine} == mine


def test_another_organisations_desk_sees_nothing_and_changes_nothing_through_any_public_call(
    other: MemoryStore, acme: Recall, open_desk: OpenDesk, database: Database, subtests: pytest.Subtests
) -> None:
    mine, theirs = open_desk("acme"), open_desk("acme-corp")
    memory = acme.memories[0].memory
    (measure,), (request,), (erasure,) = mine.measures(), mine.register.every(), mine.erasures(subject=GONE)
    lines = {line.hash for line in mine.trail()}

    def refused(rule: str, act: Callable[[], object]) -> bool:
        with pytest.raises(Refused) as caught:
            act()
        return caught.value.rule == rule

    def reached_nothing() -> bool:
        found = theirs.reach(CANDIDATE, also_called=["May", "Fridays", "Zoë Müller", "alone"])
        texts = {one.memory.text for one in found.others}
        return (found.with_text, found.tombstones, found.holds, found.alike, found.runs, texts) == (
            *(0, 0, (), (), ()),
            {"Theirs alone."},
        )

    def packaged_nothing() -> bool:
        package = theirs.package(CANDIDATE, release=True)
        return (package.items, package.measures, package.requests, package.subject.label) == ((), (), (), None)

    def erased_nothing() -> bool:
        chosen = refused(
            "it_is_as_it_was_looked_at", lambda: theirs.erase(CANDIDATE, reason="x", also=[memory.memory_id])
        )
        answered = refused("request_exists", lambda: theirs.erase(CANDIDATE, reason="x", reference=request.reference))
        return chosen and answered and theirs.erase(CANDIDATE, reason="x", suppress=True).count == 0

    def placed_nothing(place: Callable[..., object], rule: str) -> bool:
        return refused("memory_exists", lambda: place("x", memory_id=memory.memory_id, name="c")) and refused(
            rule, lambda: place("x", subject=CANDIDATE, name="c")
        )

    def due_nothing() -> bool:
        due = theirs.due()
        return (due.overdue, due.due_soon, due.waiting, due.paused, due.open, due.measures_to_review) == (
            *((), ()),
            *(0, 0, 0, 0),
        )

    def suppressed_here_alone() -> bool:
        placed = theirs.suppress("x", subject=Subject("candidate", "c-5"))
        stands = theirs.measures(placed.subject) == [placed]
        return stands and mine.measures(placed.subject) == []

    def ledger_apart() -> bool:
        state, ours = theirs.ledger(), mine.ledger()
        return (state.missing, state.fault) == (0, None) and state.path != ours.path

    yields_nothing: dict[str, Callable[[], bool]] = {
        "open": lambda: True,  # how this desk came to be
        "held": lambda: theirs.held(CANDIDATE).memories == (),
        "due": due_nothing,
        "today": lambda: theirs.today() == mine.today(),
        "measures": lambda: theirs.measures() == theirs.measures(CANDIDATE) == [],
        "package": packaged_nothing,
        "restrict": lambda: placed_nothing(theirs.restrict, "restriction_is_on_what_has_text"),
        "hold": lambda: placed_nothing(theirs.hold, "hold_is_on_what_has_text"),
        "suppress": suppressed_here_alone,
        "lift": lambda: refused("measure_exists", lambda: theirs.lift(measure, reason="x", person_told=True)),
        "correct": lambda: refused(
            "memory_exists", lambda: theirs.correct(memory, "y", author="user:maria", reason="x")
        ),
        "dispute": lambda: refused("memory_exists", lambda: theirs.dispute(memory, "y")),
        "withdraw_dispute": lambda: refused("memory_exists", lambda: theirs.withdraw_dispute(memory, reason="x")),
        "reach": reached_nothing,
        "erase": erased_nothing,
        "erasures": lambda: theirs.erasures(subject=GONE) == theirs.erasures(reference=request.reference) == [],
        "certificate": lambda: refused("erasure_exists", lambda: theirs.certificate(erasure)),
        "settings": lambda: theirs.settings() == DeskSettings(),
        "change_settings": lambda: (
            theirs.change_settings(replace(theirs.settings(), tombstone_days=400)).tombstone_days == 400
            and mine.settings().tombstone_days == 1095
        ),
        "waiting_for_second": lambda: theirs.waiting_for_second() == [] != mine.waiting_for_second(),
        "decide": lambda: refused("approval_exists", lambda: theirs.decide(APPROVAL_ID, True)),
        "safeguards": lambda: theirs.safeguards() == replace(Safeguards(), version=theirs.settings().version),
        "change_safeguards": lambda: (
            theirs.change_safeguards(replace(theirs.safeguards(), four_eyes_over=7)).four_eyes_over == 7
            and mine.safeguards().four_eyes_over is None
        ),
        "trail": lambda: (
            lines.isdisjoint(line.hash for line in theirs.trail())
            and theirs.trail(subject=GONE) == theirs.trail(reference=request.reference) == []
        ),
        "verify_trail": lambda: (
            (verified := theirs.verify_trail()).broken is None and verified.lines == len(theirs.trail())
        ),
        "ledger": ledger_apart,
    }
    assert public_calls(PrivacyDesk) == set(yields_nothing), "a new public call needs its line here"
    kept = rows_of_acme(database)
    for name, act in yields_nothing.items():
        with subtests.test(name):
            assert act()
    assert rows_of_acme(database) == kept


@pytest.mark.parametrize(
    "alike", [False, True], ids=["no request of its own", "a request of its own by that reference"]
)
def test_another_organisations_register_sees_nothing_and_changes_nothing_through_any_public_call(
    other: MemoryStore, acme: Recall, open_desk: OpenDesk, database: Database, subtests: pytest.Subtests, alike: bool
) -> None:
    mine, theirs = open_desk("acme").register, open_desk("acme-corp").register
    (request,) = mine.every()
    assert acme.memories
    asked: dict[str, Any] = {"asked_by": "Bo", "channel": "letter", "received_on": request.received_on}
    about = Subject("candidate", "c-9")
    own = [theirs.register("erasure", **asked, subject=about)] if alike else []
    assert [one.reference for one in own] == [request.reference][: len(own)]

    def refused(rule: str, act: Callable[[], object]) -> bool:
        with pytest.raises(Refused) as caught:
            act()
        return caught.value.rule == rule

    steps: dict[str, Callable[[], object]] = {
        "name_subject": lambda: theirs.name_subject(request, about),
        "ask_identity": lambda: theirs.ask_identity(request),
        "confirm_identity": lambda: theirs.confirm_identity(request, "known in person"),
        "fail_identity": lambda: theirs.fail_identity(request, "known in person"),
        "extend": lambda: theirs.extend(request, "x"),
        "pause": lambda: theirs.pause(request, "asked which one"),
        "resume": lambda: theirs.resume(request),
        "answer": lambda: theirs.answer(request, "x"),
        "refuse": lambda: theirs.refuse(request, ground="excessive", note="x", complaint_told=True),
        "mark_duplicate": lambda: theirs.mark_duplicate(request, request.reference),
        "withdraw": lambda: theirs.withdraw(request, "x"),
    }
    yields_nothing: dict[str, Callable[[], bool]] = {
        "every": lambda: theirs.every() == own,
        "request": lambda: (
            [theirs.request(request.reference)] == own
            if own
            else refused("request_exists", lambda: theirs.request(request.reference))
        ),
        "deadline": lambda: theirs.deadline(request) == mine.deadline(request),  # of what the caller has in hand
        "deadlines": lambda: theirs.deadlines([]) == [],
        "history": lambda: theirs.history(request) == [],
        "register": lambda: refused(
            "request_is_about_a_known_subject", lambda: theirs.register("access", **asked, subject=CANDIDATE)
        ),
    }
    assert public_calls(Register) == set(yields_nothing) | set(steps), "a new public call needs its line here"
    kept, history = rows_of_acme(database), rows(database, "rights_request_change")
    for name, act in yields_nothing.items():
        with subtests.test(name):
            assert act()
    for name, step in steps.items():
        with subtests.test(name), pytest.raises(Refused):
            step()
        with subtests.test(f"{name}: left as it was"):
            assert theirs.every() == own
    assert rows_of_acme(database) == kept
    assert rows(database, "rights_request_change") == history


Act = Callable[[Any, str], object]
FOUND: dict[str, Any] = {"agent": None, "termination": None, "limit": 10}
# What reads of a run or an evaluation, by organisation.
READS: dict[str, dict[str, Act]] = {
    "agent_runs": {
        "facts": lambda connection, org_id: agent_runs.facts(connection, org_id, "r-2"),
        "calls": lambda connection, org_id: agent_runs.calls(connection, org_id, "r-2"),
        "model_calls": lambda connection, org_id: agent_runs.model_calls(connection, org_id, "r-2"),
        "recalls_of": lambda connection, org_id: agent_runs.recalls_of(connection, org_id, "r-2"),
        "written": lambda connection, org_id: agent_runs.written(connection, org_id, "r-2", now=datetime.now(UTC)),
        "withdrawn": lambda connection, org_id: agent_runs.withdrawn(connection, org_id, "r-2"),
        "is_named_elsewhere": lambda connection, org_id: agent_runs.is_named_elsewhere(connection, org_id, "r-2"),
        "found": lambda connection, org_id: agent_runs.found(connection, org_id, "r-2", **FOUND),
        "agents": agent_runs.agents,
    },
    "evaluations": {
        "unfinished": lambda connection, org_id: evaluations.unfinished(connection, org_id, eval_rows.start()),
        "recorded": lambda connection, org_id: evaluations.recorded(connection, org_id, EVALUATION_ID),
        "listed": evaluations.listed,
        "pass_counts": lambda connection, org_id: evaluations.pass_counts(connection, org_id, [EVALUATION_ID]),
        "results": lambda connection, org_id: evaluations.results(connection, org_id, EVALUATION_ID),
        "transcript": lambda connection, org_id: evaluations.transcript(
            connection, org_id, EVALUATION_ID, "screening", "screening-1", 1
        ),
    },
    "members": {
        "listed": lambda connection, org_id: members.listed(connection, org_id, with_removed=True),
        "standing": lambda connection, org_id: members.standing(connection, org_id, INES),
        "memberships": lambda connection, org_id: members.memberships(connection, INES),
        "name_taken": lambda connection, org_id: members.name_taken(connection, org_id, "user:ines", BO),
    },
    "approvals": {
        "asked": lambda connection, org_id: approvals.asked(
            connection, org_id, HeavyAct.ERASE, FINGERPRINT, by="user:ines"
        ),
        "unexpired": lambda connection, org_id: approvals.unexpired(connection, org_id, now=datetime.now(UTC)),
        "with_id": lambda connection, org_id: approvals.with_id(connection, org_id, APPROVAL_ID),
    },
    "safeguards": {
        "safeguards": lambda connection, org_id: safeguards.safeguards(connection, org_id) != Safeguards(),
    },
}


def test_another_organisation_sees_nothing_of_a_run_an_evaluation_a_member_or_an_approval(
    other: MemoryStore, database: Database, subtests: pytest.Subtests
) -> None:
    execute(database, "UPDATE memory SET restricted_at = now() WHERE org_id = 'acme' AND text IS NOT NULL")
    engine = engine_for(database.application)
    for module, reads in READS.items():
        for name, read in reads.items():
            with subtests.test(f"{module}.{name}"):
                with organisation_transaction(engine, "acme") as connection:
                    assert read(connection, "acme"), "there is something to see"
                for org_id in ("acme-corp", "acme"):  # in its own transaction, also where it names the other
                    with organisation_transaction(engine, other.org_id) as connection:
                        assert not read(connection, org_id), org_id


def test_what_another_organisation_may_not_show_any_more_is_counted_for_itself_alone(
    other: MemoryStore, database: Database
) -> None:
    ids = [row[0] for row in execute(database, "SELECT memory_id FROM memory WHERE org_id = 'acme'")]
    execute(database, "UPDATE memory SET restricted_at = now() WHERE org_id = 'acme' AND text IS NOT NULL")
    engine = engine_for(database.application)
    with organisation_transaction(engine, "acme") as connection:
        assert agent_runs.withdrawn(connection, "acme", "r-0", written=ids) == len(ids)
    for org_id in ("acme-corp", "acme"):
        with organisation_transaction(engine, other.org_id) as connection:
            assert agent_runs.withdrawn(connection, org_id, "r-0", written=ids, kinds=[]) == 0


def test_who_is_a_second_officer_and_what_was_agreed_to_is_told_of_an_organisations_own(
    other: MemoryStore, database: Database
) -> None:
    since = datetime.now(UTC) - timedelta(days=1)
    engine = engine_for(database.application)
    listed = Members.open("acme", by="user:maria", settings=configured(database))
    listed.add(BO, "engineer", name="user:bo2")
    listed.remove(BO)
    listed.add(BO, "engineer", name="user:bo")
    with organisation_transaction(engine, "acme") as connection:
        approvals.decide(connection, "acme", APPROVAL_ID, by="user:omar", agreed=True, now=datetime.now(UTC))
        approvals.use(connection, "acme", APPROVAL_ID, now=datetime.now(UTC))
        assert approvals.counted(connection, "acme", by=["user:ines"], acts=HeavyAct, since=since) == 2
        assert not members.is_second(connection, "acme", "user:bo", asked_by="user:maria")
        assert members.names_of(connection, "acme", "user:bo") == ["user:bo", "user:bo2"]
    for org_id in ("acme-corp", "acme"):
        with organisation_transaction(engine, other.org_id) as connection:
            assert approvals.counted(connection, org_id, by=["user:ines"], acts=HeavyAct, since=since) == 0
            assert members.is_second(connection, org_id, "user:bo", asked_by="user:maria")  # a name and no more
            assert members.names_of(connection, org_id, "user:bo") == ["user:bo"]


def test_another_organisation_changes_nothing_of_a_run_an_evaluation_a_member_or_an_approval(
    other: MemoryStore, database: Database, subtests: pytest.Subtests
) -> None:
    engine, own, trial = engine_for(database.application), eval_rows.start(), eval_rows.result()
    moment = datetime.now(UTC)
    writes: dict[str, Act] = {
        "agent_runs.called": lambda connection, org_id: agent_runs.called(
            connection, org_id, "r-2", tool_call(number=2), now=None
        ),
        "agent_runs.end": lambda connection, org_id: agent_runs.end(connection, org_id, "r-2", completed(), now=None),
        "agent_runs.begin": lambda connection, org_id: agent_runs.begin(
            connection, org_id, begun(run_id="r-2"), now=None
        ),
        "evaluations.add": lambda connection, org_id: evaluations.add(
            connection, org_id, EVALUATION_ID, trial, now=None
        ),
        "evaluations.end": lambda connection, org_id: evaluations.end(connection, org_id, EVALUATION_ID, now=None),
        "evaluations.begin": lambda connection, org_id: evaluations.begin(
            connection, org_id, EVALUATION_ID, own, now=None
        ),
        "members.remove": lambda connection, org_id: members.remove(connection, org_id, INES, by="user:bo", at=moment),
        "members.add": lambda connection, org_id: (
            members.add(
                connection,
                org_id,
                **{"member_id": uuid4(), "identity": BO, "role": Role.ADMIN, "name": "user:bo", "email": None},
                by="user:bo",
                at=moment,
            ).org_id
        ),
        "approvals.decide": lambda connection, org_id: approvals.decide(
            connection, org_id, APPROVAL_ID, by="user:bo", agreed=True, now=moment
        ),
        "approvals.use": lambda connection, org_id: approvals.use(connection, org_id, APPROVAL_ID, now=moment),
        "approvals.ask": lambda connection, org_id: ask(connection, org_id, APPROVAL_ID) is not None,
        "safeguards.change": lambda connection, org_id: safeguards.change(
            connection, org_id, Safeguards(four_eyes_over=7)
        ),
    }
    its_own = ("call_of_a_run", False, True, "result_of_an_evaluation", False, None)
    its_own += (frozenset(), other.org_id, False, False, True, True)
    the_other = ("policy", False, "policy", "policy", False, "policy")
    the_other += (frozenset(), "policy", False, False, "policy", "policy")
    in_its_own, in_the_other = (dict(zip(writes, expected, strict=True)) for expected in (its_own, the_other))
    known = {f"{module}.{name}" for module, reads in READS.items() for name in reads} | set(writes)
    known |= {"members.is_second", "members.names_of", "approvals.counted"}  # above
    modules = (agent_runs, evaluations, members, approvals, safeguards)
    assert known == set().union(*map(public_functions, modules)), "a new call needs its line here"
    kept = rows_of_acme(database)

    def came_to(act: Act, org_id: str) -> object:
        try:
            with organisation_transaction(engine, other.org_id) as connection:
                return act(connection, org_id)
        except Refused as refused:
            return refused.rule
        except UnsafeRole:
            return "policy"

    for org_id, expected in (("acme", in_the_other), ("acme-corp", in_its_own)):
        for name, act in writes.items():
            with subtests.test(f"{name} in {org_id}"):
                assert came_to(act, org_id) == expected[name]
    assert rows_of_acme(database) == kept


def test_another_organisations_list_of_members_sees_nothing_and_changes_nothing(
    other: MemoryStore, database: Database
) -> None:
    here = configured(database)
    theirs = Members.open(other.org_id, by="user:bo", settings=here)
    assert public_calls(Members) == {"open", "add", "remove", "listed"}, "a new public call needs its line here"
    known = {"membership.Members", "membership.memberships_of", "membership.standing_of"}
    assert public_functions(membership) == known, "a new call needs its line here"
    kept = rows_of_acme(database)
    assert theirs.listed(with_removed=True) == []
    with pytest.raises(Refused, match="member_exists"):
        theirs.remove(INES)
    assert standing_of(other.org_id, INES, settings=here) is None
    theirs.add(BO, "admin", name="user:ines")  # whose name it is in the other is no business of this one
    assert memberships_of(BO, settings=here).keys() == {other.org_id}
    assert memberships_of(INES, settings=here).keys() == {"acme"}
    assert standing_of("acme", BO, settings=here) is None
    assert rows_of_acme(database) == kept


def test_another_organisations_journal_of_runs_has_its_own_run_by_that_id(
    other: MemoryStore, database: Database
) -> None:
    theirs = AgentJournal(engine_for(database.application), other.org_id)
    assert public_calls(AgentJournal) == {"begin", "called", "end"}, "a new public call needs its line here"
    kept = rows_of_acme(database)
    theirs.end("r-2", completed())
    with pytest.raises(Refused, match="call_of_a_run"):
        theirs.called("r-2", tool_call(number=2))
    ran(theirs, run_id="r-2")
    assert execute(database, "SELECT org_id FROM agent_run WHERE run_id = 'r-2' ORDER BY 1") == [
        ("acme",),
        ("acme-corp",),
    ]
    assert rows_of_acme(database) == kept


def public_functions(of: ModuleType) -> set[str]:
    module = of.__name__.rpartition(".")[2]
    return {
        f"{module}.{name}"
        for name, value in vars(of).items()
        if not name.startswith("_") and callable(value) and value.__module__ == of.__name__
    }


def public_calls(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_") and callable(getattr(of, name))}


def rows_of_acme(database: Database) -> dict[str, list[str]]:
    """Return the rows of `acme` in every table; what its own desk looked at in these tests is on its trail, and aside."""
    tenant = set(tables(database)) - EXEMPT
    return {table: rows(database, table, "org_id = 'acme'") for table in tenant}


@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text("aA1._:@/+-", min_size=1, max_size=5), min_size=2, max_size=3, unique=True),
)
def test_whatever_the_organisations_are_called_each_sees_its_own(
    open_store: OpenStore, numbered: Callable[[], str], names: list[str]
) -> None:
    prefix = numbered()
    stores = [open_store(f"{prefix}{name}") for name in names]
    for store in stores:
        observe(store, f"Of {store.org_id}.")
    for store in stores:
        assert [memory.text for memory in store.held(CANDIDATE).memories] == [f"Of {store.org_id}."]
        assert [one.memory.text for one in store.recall("who?", run_id="r-1").memories] == [f"Of {store.org_id}."]


@pytest.fixture
def numbered() -> Callable[[], str]:
    number = iter(range(1_000_000))
    return lambda: f"o{next(number)}-"


def test_the_same_call_from_two_organisations_at_one_pool_never_mixes(open_store: OpenStore) -> None:
    stores = [open_store(f"org-{number}") for number in range(3)]
    for turn in range(10):
        for store in stores:
            observe(store, f"{store.org_id} {turn}")
            assert {memory.org_id for memory in store.held(CANDIDATE).memories} == {store.org_id}


# Past the store, as the application's role


@pytest.fixture
def application(database: Database) -> Iterator[psycopg.Connection[Any]]:
    with database.connect(database.application) as connection:
        yield connection


def enter(connection: psycopg.Connection[Any], org_id: str | None) -> None:
    connection.rollback()
    if org_id is not None:
        connection.execute(sql.SQL("SET LOCAL memory.org_id = {}").format(sql.Literal(org_id)))


def touched(connection: psycopg.Connection[Any], statement: sql.Composable | str) -> int | None:
    """Return how many rows a statement reached; None where the role may not make it at all."""
    with connection.transaction(force_rollback=True):
        try:
            return connection.execute(statement).rowcount  # type: ignore[arg-type]
        except psycopg.errors.InsufficientPrivilege:
            return None


def columns(database: Database, table: str) -> list[str]:
    found = execute(
        database,
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND attgenerated = '' ORDER BY attnum",
        (table,),
    )
    return [name for (name,) in found]


def test_every_table_is_filled_so_that_the_tests_below_mean_something(acme: Recall, database: Database) -> None:
    assert acme.block is not None
    tenant = set(tables(database)) - EXEMPT
    assert tenant == {table.name for table in TENANT_TABLES}
    assert counts(database).keys() == tenant | {"organisation"}, "a new table needs a row in the fixture above"


def test_no_row_of_another_organisation_can_be_read_changed_or_deleted(
    other: MemoryStore, database: Database, application: psycopg.Connection[Any], subtests: pytest.Subtests
) -> None:
    before = snapshot(database)
    for table in sorted(set(tables(database)) - EXEMPT):
        name = sql.Identifier(table)
        mine = sql.SQL("org_id = 'acme'")
        acts: dict[str, sql.Composable] = {
            "select": sql.SQL("SELECT * FROM {} WHERE {}").format(name, mine),
            "delete": sql.SQL("DELETE FROM {} WHERE {}").format(name, mine),
            "lock": sql.SQL("SELECT 1 FROM {} WHERE {} FOR UPDATE").format(name, mine),
        }
        for column in columns(database, table):
            changed = sql.Identifier(column)
            acts[f"update {column}"] = sql.SQL("UPDATE {0} SET {1} = {1} WHERE {2}").format(name, changed, mine)
        with subtests.test(table):
            for org_id in NOWHERE:
                enter(application, org_id)
                reached = {act: touched(application, statement) for act, statement in acts.items()}
                assert {act: number for act, number in reached.items() if number} == {}, f"as {org_id!r}"
            for org_id in (None, "", "%"):
                enter(application, org_id)
                assert touched(application, sql.SQL("SELECT * FROM {}").format(name)) == 0, f"as {org_id!r}"
            enter(application, "acme")
            assert touched(application, acts["select"])
    application.rollback()
    assert snapshot(database) == before


def test_no_row_can_be_written_for_another_organisation(
    other: MemoryStore, database: Database, application: psycopg.Connection[Any], subtests: pytest.Subtests
) -> None:
    before = snapshot(database)
    for table in sorted(set(tables(database)) - EXEMPT):
        ((row,),) = execute(database, f"SELECT to_jsonb(t) FROM {table} AS t WHERE org_id = 'acme' LIMIT 1")
        names = sql.SQL(", ").join(
            map(sql.Identifier, columns(database, table))
        )  # what the database computes is not given
        new = sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM jsonb_populate_record(NULL::{0}, %s)").format(
            sql.Identifier(table), names
        )
        with subtests.test(table):
            for org_id in NOWHERE:
                enter(application, org_id)
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                    application.execute(new, (json.dumps(row),))
    application.rollback()
    assert snapshot(database) == before


def test_no_row_can_be_moved_to_another_organisation(
    acme: Recall, database: Database, application: psycopg.Connection[Any], subtests: pytest.Subtests
) -> None:
    assert acme.memories
    for table in sorted(set(tables(database)) - EXEMPT):
        with subtests.test(table):
            enter(application, "acme")
            move = sql.SQL("UPDATE {} SET org_id = 'acme-corp'").format(sql.Identifier(table))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                application.execute(move)


def test_a_row_of_one_organisation_cannot_refer_to_one_of_another(
    other: MemoryStore, acme: Recall, application: psycopg.Connection[Any]
) -> None:
    theirs = acme.memories[0].memory.memory_id
    own = other.recall("who?", run_id="r-1").recall_id
    columns_of_disclosure = "(org_id, recall_id, place, memory_id, run_id, purpose, at)"
    for recall_id in (own, acme.recall_id):
        enter(application, "acme-corp")
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            application.execute(
                f"INSERT INTO disclosure {columns_of_disclosure} VALUES ('acme-corp', %s, 40, %s, 'r-1', 'run', now())",
                (recall_id, theirs),
            )


def test_a_connection_goes_back_to_the_pool_without_its_organisation(database: Database, acme: Recall) -> None:
    engine = engine_for(database.application)
    with organisation_transaction(engine, "acme") as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM memory").scalar_one() > 0
    with pytest.raises(ZeroDivisionError), organisation_transaction(engine, "acme"):
        raise ZeroDivisionError
    for _ in range(3):
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT current_setting('memory.org_id', true)").scalar() in (None, "")
            assert connection.exec_driver_sql("SELECT count(*) FROM memory").scalar_one() == 0


# What the catalogue says


def test_every_table_but_the_two_exempt_ones_is_under_forced_row_level_security(database: Database) -> None:
    found = execute(
        database,
        "SELECT relname, relkind, relrowsecurity, relforcerowsecurity FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND relkind IN ('r', 'p', 'v', 'm', 'f') "
        "AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')",
    )
    assert {kind for _, kind, _, _ in found} <= {"r", "p"}, "a view reads with its owner's rights"
    assert {name for name, _, _, _ in found} >= EXEMPT
    for name, _, enabled, forced in found:
        assert (enabled, forced) == (name not in EXEMPT,) * 2, name


def test_every_table_under_row_level_security_has_org_id_first_in_its_primary_key(database: Database) -> None:
    first = dict(
        execute(
            database,
            "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] "
            "WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace",
        )
    )
    assert {table: first[table] for table in set(tables(database)) - EXEMPT} == dict.fromkeys(
        set(tables(database)) - EXEMPT, "org_id"
    )


def test_the_exempt_tables_hold_nothing_about_anybody(database: Database) -> None:
    assert columns(database, "organisation") == ["org_id", "ledger_id"]  # identifiers, both
    assert columns(database, "alembic_version") == ["version_num"]
    assert execute(
        database, "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname = 'ledger_id'"
    ) == [("uuid",)]


def test_every_policy_compares_org_id_with_the_setting_for_every_command(database: Database) -> None:
    policies = execute(
        database,
        "SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies WHERE schemaname = 'public'"
        " AND permissive = 'PERMISSIVE' AND roles = '{public}' AND policyname <> 'ones_own_standing'",
    )
    assert sorted(table for table, *_ in policies) == sorted(set(tables(database)) - EXEMPT)
    for _, name, command, qual, check in policies:
        assert (name, command) == ("one_organisation", "ALL")
        assert qual == check
        assert qual.startswith("(org_id = NULLIF(current_setting('memory.org_id'")


def test_one_policy_besides_lets_an_identity_read_its_own_standing_rows_and_no_more(database: Database) -> None:
    assert execute(
        database,
        "SELECT tablename, permissive, cmd, qual, with_check FROM pg_policies WHERE policyname = 'ones_own_standing'",
    ) == [
        (
            *("member", "PERMISSIVE", "SELECT"),
            "((encode(identity, 'hex'::text) = current_setting('memory.identity'::text, true)) AND (removed_at IS NULL))",
            None,
        )
    ]


def test_any_other_policy_only_takes_away_from_what_may_be_deleted_or_changed(database: Database) -> None:
    others = execute(
        database,
        "SELECT tablename, policyname, permissive, cmd, roles::text FROM pg_policies WHERE schemaname = 'public'"
        " AND policyname NOT IN ('one_organisation', 'ones_own_standing') ORDER BY 1, 2",
    )
    assert others == [
        ("agent_run", "an_ended_run_stays_ended", "RESTRICTIVE", "UPDATE", "{public}"),
        ("approval", "what_is_decided_stays_decided", "RESTRICTIVE", "UPDATE", "{public}"),
        ("disclosure", "only_of_what_is_empty", "RESTRICTIVE", "DELETE", "{public}"),
        ("evaluation", "an_ended_evaluation_stays_ended", "RESTRICTIVE", "UPDATE", "{public}"),
        ("measure", "what_is_lifted_stays_lifted", "RESTRICTIVE", "UPDATE", "{public}"),
        ("member", "what_is_removed_stays_removed", "RESTRICTIVE", "UPDATE", "{public}"),
        ("memory", "a_tombstone_stays_one", "RESTRICTIVE", "UPDATE", "{public}"),
        ("memory", "only_what_is_empty_is_deleted", "RESTRICTIVE", "DELETE", "{public}"),
    ]
    ((memory,), (disclosure,), (tombstone,), (lifted,), (removed,), (decided,), *ended) = (
        execute(database, f"SELECT qual FROM pg_policies WHERE policyname = '{name}'")
        for name in (
            "only_what_is_empty_is_deleted",
            "only_of_what_is_empty",
            "a_tombstone_stays_one",
            "what_is_lifted_stays_lifted",
            "what_is_removed_stays_removed",
            "what_is_decided_stays_decided",
            "an_ended_run_stays_ended",
            "an_ended_evaluation_stays_ended",
        )
    )
    assert ended == [[("(ended_at IS NULL)",)]] * 2
    assert (tombstone, lifted) == (("(text IS NOT NULL)",), ("(lifted_at IS NULL)",))
    assert removed == ("(removed_at IS NULL)",)
    assert decided == ("((used_at IS NULL) AND ((decided_at IS NULL) OR agreed))",)
    assert memory == ("((text IS NULL) AND (hold IS NULL))",)
    assert "org_id = disclosure.org_id" in disclosure[0]  # the tombstone is sought in the same organisation


@pytest.mark.parametrize("role", ["application", "owner"])
def test_nobody_writes_into_a_tombstone_or_unlifts_what_was_lifted(
    acme: Recall, database: Database, open_desk: OpenDesk, role: str
) -> None:
    desk = open_desk("acme")
    lifted = desk.hold("another claim", subject=CANDIDATE, name="claim-8")
    desk.lift(lifted, reason="settled")
    with database.connect(getattr(database, role)) as connection:
        enter(connection, "acme")
        for column, value in (("text", "'It is back.'"), ("forgotten_at", "NULL"), ("hold", "'claim-9'")):
            statement = f"UPDATE memory SET {column} = {value} WHERE subject_id = 'c-7'"
            assert touched(connection, statement) == 0, column
        back = (
            "text = 'It is back.', forgotten_at = NULL, forgotten_by = NULL, forgotten_reason = NULL, erasure_id = NULL"
        )
        assert touched(connection, f"UPDATE memory SET {back} WHERE text IS NULL") == 0
        assert touched(connection, "UPDATE memory SET hold = hold WHERE subject_id = 'c-81'") == 1  # what has text
        unlifted = "lifted_at = NULL, lifted_by = NULL, lifted_reason = NULL"
        assert touched(connection, f"UPDATE measure SET {unlifted} WHERE name = 'claim-8'") == 0
        assert touched(connection, "UPDATE measure SET lifted_by = 'user:bo' WHERE name = 'claim-8'") == 0
        assert touched(connection, "UPDATE measure SET lifted_by = lifted_by WHERE name = 'claim-7'") == 1


@pytest.mark.parametrize("role", ["application", "owner"])
def test_nobody_rewrites_how_a_run_or_an_evaluation_ended(acme: Recall, database: Database, role: str) -> None:
    assert acme.memories
    journal = AgentJournal(engine_for(database.application), "acme")
    journal.begin(begun(run_id="r-3"))
    execute(database, "UPDATE evaluation SET ended_at = now()")
    with organisation_transaction(engine_for(database.application), "acme") as connection:
        evaluations.begin(connection, "acme", acme.recall_id, eval_rows.start(), now=None)
    with database.connect(getattr(database, role)) as connection:
        enter(connection, "acme")
        reopened = "ended_at = NULL, termination = NULL, detail = NULL, turns = NULL, answer_was_cut = NULL"
        for statement in (reopened, "termination = 'Cancelled'", "detail = 'nothing'", "answer_was_cut = true"):
            assert touched(connection, f"UPDATE agent_run SET {statement} WHERE run_id = 'r-2'") == 0, statement
        ended = "ended_at = now(), termination = 'Completed', turns = 1, answer_was_cut = false"
        assert touched(connection, f"UPDATE agent_run SET {ended}") == 1  # what runs
        owners = ("digest = 'sha256:0'",) if role == "owner" else ()  # the application may not even try
        for statement in ("ended_at = NULL", *owners):
            assert touched(connection, f"UPDATE evaluation SET {statement} WHERE ended_at IS NOT NULL") == 0, statement
        assert touched(connection, "UPDATE evaluation SET ended_at = now()") == 1


def test_the_application_may_not_rewrite_provenance(database: Database) -> None:
    may = {
        name
        for name in columns(database, "memory")
        if execute(database, "SELECT has_column_privilege('memory_app', 'memory', %s, 'UPDATE')", (name,)) == [(True,)]
    }
    assert may.isdisjoint(PROVENANCE)
    assert may == set(columns(database, "memory")) - PROVENANCE


def privileges(database: Database, table: str, *names: str) -> set[str]:
    with database.connect() as connection:
        return {
            name
            for name in names
            for (has,) in connection.execute("SELECT has_table_privilege('memory_app', %s, %s)", (table, name))
            if has
        }


def test_the_application_may_delete_directory_entries_and_what_is_empty_and_rewrite_no_record(
    database: Database,
) -> None:
    for table in tables(database):
        deletes = table in ("directory", "memory", "disclosure")
        assert privileges(database, table, "DELETE") == ({"DELETE"} if deletes else set()), table
        assert privileges(database, table, "UPDATE", "TRUNCATE", "TRIGGER", "REFERENCES", "MAINTAIN") == set(), table
    only_added_to = ("recall", "disclosure", "erasure", "organisation", "trail", "ledger", "rights_request_change")
    for table in (*only_added_to, "agent_call", "evaluation_result"):
        ((any_column,),) = execute(database, "SELECT has_any_column_privilege('memory_app', %s, 'UPDATE')", (table,))
        assert not any_column, table
    for table, column in (
        ("directory", "org_id"),
        ("directory", "subject_id"),
        ("organisation_setting", "org_id"),
        ("model_call", "org_id"),
        ("model_call", "run_id"),
        ("model_call", "model"),
        ("model_call", "started_at"),
        ("rights_request", "org_id"),
        ("rights_request", "reference"),
        ("rights_request", "received_on"),
        ("measure", "org_id"),
        ("measure", "by"),
        ("measure", "placed_at"),
        ("agent_run", "org_id"),
        ("agent_run", "run_id"),
        ("agent_run", "agent"),
        ("agent_run", "asked_by"),
        ("agent_run", "salt"),
        ("agent_run", "started_at"),
        ("evaluation", "org_id"),
        ("evaluation", "model"),
        ("evaluation", "settings"),
        ("evaluation", "suites_hash"),
        ("member", "org_id"),
        ("member", "identity"),
        ("member", "role"),
        ("member", "name"),
        ("approval", "org_id"),
        ("approval", "fingerprint"),
        ("approval", "asked_by"),
        ("approval", "expires_at"),
    ):
        ((may,),) = execute(database, "SELECT has_column_privilege('memory_app', %s, %s, 'UPDATE')", (table, column))
        assert not may, (table, column)


def test_deleting_everything_reaches_the_tombstones_of_one_organisation_alone(
    other: MemoryStore, acme: Recall, database: Database, application: psycopg.Connection[Any]
) -> None:
    other.recall("who?", run_id="r-4")
    other.forget(Subject("candidate", "c-9"), by="user:ines", reason="asked to")
    before = snapshot(database)
    enter(application, "acme")
    assert touched(application, "DELETE FROM disclosure") == 0  # what acme was shown has text yet
    assert touched(application, "DELETE FROM memory") == 1
    enter(application, "acme-corp")
    application.execute("DELETE FROM disclosure")
    assert application.execute("DELETE FROM memory RETURNING org_id").fetchall() == [("acme-corp",)]
    application.commit()
    assert execute(database, "SELECT org_id, count(*) FROM memory GROUP BY 1") == [("acme", 3)]
    assert execute(database, "SELECT count(*) FROM disclosure WHERE org_id = 'acme'") == [(len(acme.memories),)]
    kept = snapshot(database, without=("memory", "disclosure"))
    assert kept == {table: rows for table, rows in before.items() if table in kept}


def test_the_applications_role_is_bound_by_row_level_security(database: Database) -> None:
    assert execute(
        database,
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, (SELECT count(*) FROM pg_auth_members "
        "WHERE member = r.oid) FROM pg_roles r WHERE rolname = 'memory_app'",
    ) == [(False, False, False, False, False, 0)]
    assert execute(database, "SELECT count(*) FROM pg_class WHERE relowner = 'memory_app'::regrole") == [(0,)]
    assert execute(database, "SELECT has_schema_privilege('memory_app', 'public', 'CREATE')") == [(False,)]


def test_a_role_that_could_bypass_row_level_security_opens_no_store(database: Database) -> None:
    for url in (database.superuser, database.owner):
        with pytest.raises(UnsafeRole):
            MemoryStore.open("acme", database_url=url, embedder=None)


def test_the_owner_as_well_sees_only_the_organisation_it_names(acme: Recall, database: Database) -> None:
    with database.connect(database.owner) as owner:
        for org_id, number in ((None, 0), ("", 0), ("acme-corp", 0), ("acme", 3)):
            enter(owner, org_id)
            assert owner.execute("SELECT count(*) FROM memory").fetchone() == (number,)
