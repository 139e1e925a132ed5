from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import eval_rows
import pytest
from fakes import CANDIDATE, JOB, HashedWords, fact, observation, observe
from model_calls import answered, called, failed, starting
from rows import emptied, execute
from run_rows import ran, tool_call
from sqlalchemy import event

from memory_core import Memory, MemoryStore, OnHold, Refused, Subject
from memory_core.calls import Begun, Wait
from memory_core.config import settings
from memory_core.db import agent_runs, approvals, evaluations
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.db.members import is_second, names_of
from memory_core.db.tables import TENANT_TABLES
from memory_core.interchange import export_lines
from memory_core.journal import CallJournal
from memory_core.membership import Members, memberships_of, standing_of
from memory_core.roles import Identity
from memory_core.run_journal import AgentJournal
from memory_core.sweeping import sweep

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

    from memory_core.privacy import PrivacyDesk


TENANTS = [table.name for table in TENANT_TABLES]
ENTERS = "SET LOCAL memory.org_id = "
WRITES = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b")


@dataclass
class Log:
    """What an engine sent to the database, transaction by transaction."""

    statements: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)  # COMMIT or ROLLBACK

    def clear(self) -> None:
        self.statements.clear()
        self.ends.clear()

    def naming(self, table: str) -> list[str]:
        """Return the statements that name a table, the one that sets the organisation aside."""
        return naming(self.statements, table)

    def transactions(self) -> list[list[str]]:
        """Return the statements of each transaction of an organisation."""
        begins = [number for number, one in enumerate(self.statements) if one.startswith(ENTERS)]
        return [self.statements[begin:end] for begin, end in zip(begins, [*begins[1:], None], strict=True)]


def naming(statements: list[str], table: str) -> list[str]:
    return [one for one in statements if not one.startswith(ENTERS) and re.search(rf"\b{table}\b", one)]


def writing(statements: list[str], table: str) -> list[str]:
    """Return the statements that write to a table, or to any for `*`."""
    found = [one for one in statements if WRITES.search(one)]
    return found if table == "*" else [one for one in found if re.search(rf"{WRITES.pattern} {table}\b", one)]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def log(database: Database) -> Iterator[Log]:
    engine = engine_for(database.application)
    kept = Log()

    def sent(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        kept.statements.append(statement)

    def committed(connection: Any) -> None:
        kept.ends.append("COMMIT")

    def rolled_back(connection: Any) -> None:
        kept.ends.append("ROLLBACK")

    listeners: list[tuple[str, Callable[..., None]]] = [
        ("before_cursor_execute", sent),
        ("commit", committed),
        ("rollback", rolled_back),
    ]
    for name, listener in listeners:
        event.listen(engine, name, listener)
    yield kept
    for name, listener in listeners:
        event.remove(engine, name, listener)


@pytest.fixture
def store(open_store: OpenStore, log: Log) -> MemoryStore:
    """Return a store that holds something and has looked at its organisation before."""
    opened = open_store(embedder=HashedWords())
    person = Subject("candidate", "c-81", "Zoë Müller", ("zoe@example.org",))
    opened.remember_many([*(observation(f"sentence {number}", subject=person) for number in range(130)), fact("One.")])
    opened.recall("sentence", run_id="r-2")
    opened.held(JOB)  # the first line of the trail
    log.clear()
    return opened


@pytest.fixture
def desk(open_desk: OpenDesk, store: MemoryStore, log: Log) -> PrivacyDesk:
    """Return the desk over that store."""
    opened = open_desk()
    log.clear()
    return opened


def require_one_look(log: Log) -> None:
    """One transaction wrote one line of the trail, for an organisation that is there, and nothing else."""
    assert log.ends == ["COMMIT"]
    (looked,) = log.transactions()
    entered, line = writing(looked, "*")
    assert entered.startswith("INSERT INTO organisation ")
    assert entered.endswith(" ON CONFLICT DO NOTHING")
    assert line.startswith("INSERT INTO trail ")


def test_held_touches_memory_and_directory_with_exactly_one_statement(store: MemoryStore, log: Log) -> None:
    assert len(store.held(CANDIDATE).memories) == 130
    assert len(log.naming("memory")) == len(log.naming("directory")) == 1
    assert log.naming("memory") == log.naming("directory")
    require_one_look(log)


def test_forget_touches_memory_and_directory_with_exactly_one_statement(store: MemoryStore, log: Log) -> None:
    assert store.forget(CANDIDATE, by="user:ines", reason="asked to").count == 130
    assert len(log.naming("memory")) == len(log.naming("directory")) == 1
    assert log.naming("memory") == log.naming("directory") == log.naming("erasure")
    assert log.ends == ["COMMIT", "COMMIT"]
    erased, _ = log.transactions()
    assert log.naming("memory") == naming(erased, "memory")
    assert (
        len(writing(erased, "trail")) == len(writing(erased, "ledger")) == 1
    )  # and so never the one without the other


def test_after_a_forget_its_ledger_is_copied_out_by_reading_the_ledger_and_nothing_else(
    store: MemoryStore, log: Log
) -> None:
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    _, copied = log.transactions()
    assert naming(copied, "ledger")
    assert all(one.startswith((ENTERS, "SELECT ")) for one in copied)
    assert not any(naming(copied, table) for table in {*TENANTS} - {"ledger"})


def test_also_when_nothing_is_held_or_a_hold_keeps_it_one_statement_decides(
    store: MemoryStore, log: Log, database: Database
) -> None:
    store.forget(Subject("candidate", "c-0"), by="user:ines", reason="asked to")
    store.held(Subject("candidate", "c-0"))
    assert len(log.naming("memory")) == len(log.naming("directory")) == 2
    execute(database, "UPDATE memory SET hold = 'claim-7' WHERE text = 'sentence 7'")
    log.clear()
    with pytest.raises(OnHold):
        store.forget(CANDIDATE, by="user:ines", reason="asked to")
    assert len(log.naming("memory")) == len(log.naming("directory")) == 1
    assert log.ends == ["ROLLBACK"]


def test_showing_and_erasing_select_by_the_same_conditions(store: MemoryStore, log: Log) -> None:
    store.held(CANDIDATE)
    store.forget(CANDIDATE, by="user:ines", reason="asked to")
    selector = re.compile(r"memory\.org_id = \S+ AND memory\.subject_type = \S+ AND memory\.subject_id = [^\s)]+")
    shown, erased = (set(selector.findall(one)) for one in log.naming("memory"))
    assert len(shown) == 1
    assert shown == erased


def everything(store: MemoryStore, desk: PrivacyDesk, database: Database) -> None:
    """Make every call the store, the journals and the desk have, with every choice that changes what is sent."""
    agent = AgentJournal(engine_for(database.application), "acme")
    ran(agent, tool_call(arguments='{"asked to": "May"}'), run_id="r-3")  # before anything else names that run
    observe(store, "Could start in May.", subject=Subject("candidate", "c-8", "Ida", ("ida@example.org",)))
    observe(store, "Could start in May.", subject=Subject("candidate", "c-8", "Ada"))
    store.remember_many([fact("One."), fact("Needs two interviewers.", subject=JOB)])
    store.embed()
    options: list[dict[str, Any]] = [
        {},
        {"ranking": "recency"},
        {"kinds": "fact"},
        {"subject": CANDIDATE},
        {"subject": CANDIDATE, "kinds": "observation", "token_budget": 100, "purpose": "preview"},
    ]
    shown = [store.recall("sentence", run_id="r-3", limit=50, **option).recall_id for option in options]
    store.shown(shown[0])
    store.held(CANDIDATE)
    store.find_subjects("Zoë")
    store.find_subjects("c-8")
    store.overview()
    store.forget(Subject("candidate", "c-8"), by="user:ines", reason="asked to")
    journal = CallJournal(engine_for(database.application), "acme")
    called(journal, run_id="r-3")
    under_a_ceiling = starting(run_id="r-3")
    assert isinstance(journal.begin(under_a_ceiling, tokens_per_minute=1000), Begun)
    assert isinstance(journal.begin(starting(run_id="r-3"), tokens_per_minute=100), Wait)
    journal.end(under_a_ceiling.call_id, answered())
    journal.refuse(starting(run_id="r-3"), failed())
    by_agents(database)
    at_the_desk(store, desk, database)
    by_members(database)


def by_members(database: Database) -> None:
    here = settings(database_url=database.application.render_as_string(hide_password=False))
    members = Members.open("acme", by="user:maria", settings=here)
    officer = Identity(issuer="https://login.example.org", subject="Officer 81")
    members.add(officer, "dpo", name="user:petra", email="petra@example.org")
    members.add(officer, "admin", name="user:petra")
    assert standing_of("acme", officer, settings=here)
    members.remove(officer, "dpo")
    members.remove(officer)
    assert len(members.listed(with_removed=True)) == 2
    assert members.listed() == []
    with organisation_transaction(engine_for(database.application), "acme") as connection:
        asked, now = uuid4(), datetime.now(UTC)
        about = {"subject": CANDIDATE, "count": 2, "reason": "asked to", "by": "user:ines"}
        when = {"at": now, "expires_at": now + timedelta(days=1)}
        approvals.ask(connection, "acme", approval_id=asked, act="erase", fingerprint=bytes(32), **about, **when)
        assert approvals.unexpired(connection, "acme", now=now)
        assert approvals.decide(connection, "acme", asked, by="user:petra", agreed=True, now=now)
        assert approvals.asked(connection, "acme", "erase", bytes(32), by="user:ines")
        assert approvals.use(connection, "acme", asked, now=now)
        assert approvals.counted(
            connection,
            "acme",
            by=names_of(connection, "acme", "user:ines"),
            acts=["erase"],
            since=now - timedelta(days=1),
        )
        assert is_second(connection, "acme", "user:bo", asked_by="user:ines")


def by_agents(database: Database) -> None:
    engine, run, trial = engine_for(database.application), "r-3", eval_rows.result()
    with organisation_transaction(engine, "acme") as connection:
        assert agent_runs.facts(connection, "acme", run)
        assert agent_runs.calls(connection, "acme", run)
        assert agent_runs.model_calls(connection, "acme", run)
        assert agent_runs.recalls_of(connection, "acme", run)
        agent_runs.written(connection, "acme", run, now=datetime.now(UTC))
        agent_runs.withdrawn(connection, "acme", run)
        agent_runs.withdrawn(connection, "acme", run, written=[uuid4()], kinds=[])
        agent_runs.agents(connection, "acme")
        for termination in (None, "running", "Deadline"):
            agent_runs.found(connection, "acme", run, agent="screening", termination=termination, limit=9)
        tried, of = uuid4(), eval_rows.start()
        evaluations.begin(connection, "acme", tried, of, now=None)
        evaluations.add(connection, "acme", tried, trial, now=None)
        assert evaluations.unfinished(connection, "acme", of) == tried
        assert evaluations.recorded(connection, "acme", tried)
        assert evaluations.results(connection, "acme", tried)
        assert evaluations.pass_counts(connection, "acme", [tried])
        assert evaluations.transcript(connection, "acme", tried, trial.agent, trial.case_id, trial.trial)
        evaluations.end(connection, "acme", tried, now=None)
        assert evaluations.listed(connection, "acme")


def at_the_desk(store: MemoryStore, desk: PrivacyDesk, database: Database) -> None:
    about = Subject("candidate", "c-7")
    one, two = (observe(store, f"Note {number}.", subject=about) for number in range(2))
    register, day = desk.register, desk.today()
    asked = {"asked_by": "Olga Nowak", "channel": "e-mail", "received_on": day}
    erasure = register.name_subject(register.register("erasure", **asked), about)
    erasure = register.fail_identity(register.ask_identity(erasure), "called back on the number on file")
    erasure = register.confirm_identity(erasure, "known in person")
    erasure = register.resume(register.pause(register.extend(erasure, "many requests at once"), "asked which"))
    access = register.register("access", **asked, subject=about)
    register.mark_duplicate(register.register("access", **asked), access.reference)
    register.refuse(access, ground="excessive", note="the tenth of this month", complaint_told=True)
    register.withdraw(register.register("objection", **asked, subject=about), "taken back")
    register.request(erasure.reference)
    register.history(erasure)
    desk.due()
    restriction = desk.restrict("while it is checked", subject=about, reference=None, review_on=day)
    hold = desk.hold("before the court", memory_id=two.memory_id, name="claim-7")
    desk.measures()
    desk.measures(about)
    desk.lift(restriction, reason="checked", person_told=True)
    desk.lift(hold, reason="settled")
    desk.correct(one, "Speaks Finnish.", author="user:zoe", reason="a wrong language")
    desk.withdraw_dispute(desk.dispute(two, "It is not so."), reason="taken back")
    desk.package(about, release=True)
    desk.reach(about, also_called=["Olga"])
    other = observe(store, "Olga knows.", subject=JOB, kind="fact", origin="person", author="user:maria")
    erased = desk.erase(about, reason="asked for", also=[other.memory_id], reference=erasure.reference, suppress=True)
    register.answer(register.request(erasure.reference), "erased")
    assert desk.erasures(subject=about) == desk.erasures(reference=erasure.reference) == [erased.erasure_id]
    desk.certificate(erased.erasure_id)
    desk.suppress("objected", subject=Subject("candidate", "c-6"))
    desk.change_settings(replace(desk.settings(), tombstone_days=365))
    desk.change_safeguards(replace(desk.safeguards(), four_eyes_over=10, observations_leave=True))
    desk.trail(subject=about)
    desk.trail(reference=erasure.reference)
    assert desk.verify_trail().broken is None
    assert desk.ledger().fault is None
    engine = engine_for(database.application)
    sweep(engine, "acme", by="user:ines", dry_run=True)
    sweep(engine, "acme", by="user:ines", clock=lambda: datetime.now(UTC) + timedelta(days=5 * 365))
    assert (
        list(export_lines(engine, "acme", by="user:ines", clock=lambda: datetime.now(UTC) + timedelta(days=2000))) == []
    )


def test_every_statement_on_a_table_of_an_organisation_names_org_id(
    store: MemoryStore, desk: PrivacyDesk, log: Log, database: Database
) -> None:
    everything(store, desk, database)
    for table in TENANTS:
        named = log.naming(table)
        assert named, table
        for statement in named:
            assert re.search(r"\borg_id\b", statement), statement
            assert len(re.findall(r"\borg_id\b", statement)) >= mentions(statement), statement


def mentions(statement: str) -> int:
    """Count the places where a statement reads from or writes to a table of an organisation."""
    return len(re.findall(rf"(?:FROM|JOIN|INTO|UPDATE)\s+(?:{'|'.join(TENANTS)})\b", statement))


def test_every_transaction_begins_by_naming_its_organisation_for_itself_alone(
    store: MemoryStore, desk: PrivacyDesk, log: Log, database: Database
) -> None:
    everything(store, desk, database)
    enters = [one for one in log.statements if "memory.org_id" in one and one.startswith("SET")]
    assert log.statements[0] == f"{ENTERS}'acme'"
    # With it nothing but settings of the server that are off for the one transaction.
    off = r'(; SET LOCAL "(synchronous_commit|enable_nestloop|jit)" = off)*'
    assert all(re.fullmatch(re.escape(f"{ENTERS}'acme'") + off, one) for one in enters), set(enters)
    assert len(enters) == len(log.ends)
    assert set(log.ends) == {"COMMIT"}


def test_looking_where_an_identity_is_a_member_names_it_and_no_organisation(log: Log, database: Database) -> None:
    here = settings(database_url=database.application.render_as_string(hide_password=False))
    identity = Identity(issuer="https://login.example.org", subject="Officer 81")
    assert memberships_of(identity, settings=here) == {}
    log.clear()
    memberships_of(identity, settings=here)
    named, looked = log.statements
    assert named == f"{ENTERS}''; SET LOCAL memory.identity = '{identity.digest.hex()}'"
    assert "FROM member" in looked
    assert "Officer" not in looked
    assert log.ends == ["COMMIT"]


def test_no_statements_own_text_carries_what_somebody_wrote(
    store: MemoryStore, desk: PrivacyDesk, log: Log, database: Database
) -> None:
    everything(store, desk, database)
    for words in (
        "May",
        "sentence",
        "Zoë",
        "Ida",
        "example.org",
        "asked to",
        "user:ines",
        "c-8",
        "r-3",
        "interviewers",
        "Olga",
        "Finnish",
        "not so",
        "checked",
        "claim-7",
        "c-7",
        "R-20",
        "Officer",
        "petra",
    ):
        assert not [one for one in log.statements if words in one], words


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.recall("sentence", run_id="r-3"),
        lambda store: store.recall("sentence", run_id="r-3", ranking="recency"),
        lambda store: store.recall("sentence", run_id="r-3", token_budget=1),
        lambda store: store.held(CANDIDATE),
        lambda store: store.find_subjects("Zoë"),
        lambda store: store.overview(),
        lambda store: observe(store, "sentence 7"),  # again, and so with its vector
        lambda store: store.remember_many([observation(f"sentence {number}") for number in range(130)]),
    ],
    ids=["recall", "newest", "nothing fits", "held", "find", "overview", "remember", "remember_many"],
)
def test_a_call_is_one_transaction(store: MemoryStore, log: Log, act: Callable[[MemoryStore], object]) -> None:
    act(store)
    assert log.ends == ["COMMIT"]
    assert sum(one.startswith(ENTERS) for one in log.statements) == 1


def test_looking_at_a_recall_again_is_one_transaction_that_writes_the_trail_alone(store: MemoryStore, log: Log) -> None:
    recall_id = store.recall("sentence", run_id="r-3").recall_id
    log.clear()
    store.shown(recall_id)
    require_one_look(log)


@pytest.mark.parametrize(
    ("act", "tables"),
    [
        (lambda desk, memory: desk.restrict("asked for", subject=CANDIDATE), {"measure", "memory", "ledger"}),
        (
            lambda desk, memory: desk.hold("asked for", memory_id=memory.memory_id, name="c"),
            {"measure", "memory", "ledger"},
        ),
        (lambda desk, memory: desk.suppress("asked for", subject=CANDIDATE), {"measure", "ledger"}),
        (lambda desk, memory: desk.correct(memory, "x", author="user:b", reason="wrong"), {"memory", "ledger"}),
        (lambda desk, memory: desk.dispute(memory, "It is not so."), {"memory"}),
        (lambda desk, memory: desk.erase(CANDIDATE, reason="asked"), {"memory", "directory", "erasure", "ledger"}),
        (
            lambda desk, memory: desk.erase(CANDIDATE, reason="asked", suppress=True),
            {"memory", "directory", "erasure", "ledger", "measure"},
        ),
        (lambda desk, memory: desk.package(CANDIDATE), set()),
        (lambda desk, memory: desk.reach(CANDIDATE), set()),
        (
            lambda desk, memory: desk.register.register(
                "access", asked_by="Zoë", channel="letter", received_on=desk.today(), subject=CANDIDATE
            ),
            {"rights_request", "rights_request_change"},
        ),
        (
            lambda desk, memory: desk.change_settings(replace(desk.settings(), tombstone_days=400)),
            {"organisation_setting"},
        ),
        (
            lambda desk, memory: desk.change_safeguards(replace(desk.safeguards(), preview_pseudonyms=True)),
            {"organisation_setting"},
        ),
    ],
    ids=[
        *("restrict", "hold", "suppress", "correct", "dispute", "erase", "erase and suppress", "package", "reach"),
        *("register", "settings", "safeguards"),
    ],
)
def test_what_the_desk_does_is_one_transaction_with_its_line_of_the_trail(
    store: MemoryStore,
    desk: PrivacyDesk,
    log: Log,
    act: Callable[[PrivacyDesk, Memory], object],
    tables: set[str],
) -> None:
    memory = store.held(CANDIDATE).memories[0]
    log.clear()
    act(desk, memory)
    assert set(log.ends) == {"COMMIT"}
    (written,) = [one for one in log.transactions() if writing(one, "*")]
    assert {table for table in TENANTS if writing(written, table)} == {*tables, "trail"}


def test_a_recall_and_its_disclosures_are_recorded_by_one_statement(store: MemoryStore, log: Log) -> None:
    store.recall("sentence", run_id="r-3")
    assert len(log.naming("disclosure")) == 1
    assert log.naming("disclosure") == log.naming("recall")
    assert log.naming("disclosure")[0].lstrip().startswith("WITH")


def test_a_memory_is_stored_in_one_transaction_and_embedded_in_another(store: MemoryStore, log: Log) -> None:
    observe(store, "Never said before.")
    stored_at = next(number for number, one in enumerate(log.statements) if "INSERT INTO memory" in one)
    embedded_at = next(number for number, one in enumerate(log.statements) if one.startswith("UPDATE memory"))
    assert stored_at < embedded_at
    assert any(one.startswith(ENTERS) for one in log.statements[stored_at:embedded_at])
    assert set(log.ends) == {"COMMIT"}


def test_a_bulk_load_costs_statements_by_the_batch_and_not_by_the_memory(open_store: OpenStore, log: Log) -> None:
    opened = open_store()
    log.clear()
    opened.remember_many(observation(f"sentence {number}") for number in range(1000))
    assert len(log.statements) < 15
    assert log.ends == ["COMMIT"]


def test_what_is_refused_by_a_rule_is_rolled_back_or_never_sent(store: MemoryStore, log: Log) -> None:
    for act in (
        lambda: store.recall("sentence", run_id="r-3", limit=0),
        lambda: store.forget(CANDIDATE, by="user:ines", reason=""),
    ):
        with pytest.raises(Refused):
            act()
    assert log.statements == []
    with pytest.raises(Refused):
        observe(store, " ")
    assert not [one for one in log.statements if "INTO memory" in one or "INTO directory" in one]
    assert "COMMIT" not in log.ends


def test_statements_do_not_grow_in_number_with_what_is_held(store: MemoryStore, log: Log) -> None:
    numbers = []
    for subject in (CANDIDATE, Subject("candidate", "c-0")):
        log.clear()
        store.held(subject)
        store.forget(subject, by="user:ines", reason="asked to")
        numbers.append(len(log.statements))
    assert numbers[0] == numbers[1]
