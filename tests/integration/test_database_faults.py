"""A database that cannot serve says why and what to do, in bounded time, and quotes no row."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from conftest import Database, OpenStore
from psycopg import sql
from sqlalchemy import URL, Connection, insert, text

from memory_core import MemoryStore, Subject
from memory_core.config import settings
from memory_core.db import schema
from memory_core.db.engine import close_engines, engine_for, organisation_transaction, transaction, translated_errors
from memory_core.db.tables import memory, organisation
from memory_core.errors import (
    BadVector,
    DatabaseBusy,
    DatabaseError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    MemoryCoreError,
    NotMigrated,
    NoVectorExtension,
    Refused,
    SettingsError,
    UnsafeRole,
)

FACT = {"kind": "fact", "origin": "person", "author": "user:maria", "run_id": "r-1"}
ABOUT = Subject("candidate", "c-81")
MARKER = "m4rk3r-could-start-in-march"
PASSWORD = "p4ssw0rd-of-nobody"

Alter = Callable[..., None]


def opened(url: URL | str) -> MemoryStore:
    return MemoryStore.open("acme", database_url=url, embedder=None, settings=settings(memory_embedder="none"))


def one_line(error: BaseException) -> str:
    said = str(error)
    assert "\n" not in said
    assert said
    return said


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.fixture
def alter(database: Database) -> Alter:
    """Change this test's database as its superuser, and let the next opening check it anew."""

    def altered(*statements: str) -> None:
        with database.connect(autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        close_engines()

    return altered


@pytest.fixture
def role(standing: Database) -> Iterator[Callable[..., URL]]:
    """Make roles of this test's own; they have the application's rights unless told otherwise."""
    made: list[str] = []

    def make(attributes: str = "", *, member_of: str | None = None, rights: str | None = "memory_app") -> URL:
        name = f"role_{uuid4().hex[:12]}"
        with standing.connect(autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' {attributes}")
            made.append(name)
            for group in (rights, member_of):
                if group:
                    connection.execute(f"GRANT {group} TO {name}")
        return standing.application.set(username=name, password=PASSWORD)

    yield make
    close_engines()
    with standing.connect(autocommit=True) as connection:
        for name in reversed(made):
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def count(database: Database, table: str) -> int:
    with database.connect() as connection:
        found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
    assert found
    return int(found[0])


# Down


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_port_where_nothing_listens_is_one_clear_error(closed_port: int) -> None:
    with within(3), pytest.raises(DatabaseUnavailable, match="refused") as down:
        opened(f"postgresql://memory_app:{PASSWORD}@127.0.0.1:{closed_port}/memory")
    assert down.value.retryable
    assert PASSWORD not in one_line(down.value)


def test_a_socket_that_is_missing_is_one_clear_error(tmp_path: Path) -> None:
    url = URL.create("postgresql+psycopg", "memory_app", PASSWORD, database="memory", query={"host": str(tmp_path)})
    with within(3), pytest.raises(DatabaseUnavailable) as down:
        opened(url)
    assert PASSWORD not in one_line(down.value)


def test_a_host_that_does_not_exist_is_one_clear_error() -> None:
    with within(15), pytest.raises(DatabaseUnavailable) as down:
        opened(f"postgresql://memory_app:{PASSWORD}@no-such-host.invalid/memory")
    assert PASSWORD not in one_line(down.value)


@pytest.mark.slow
def test_a_server_that_never_answers_is_given_up_after_five_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with within(8), pytest.raises(DatabaseUnavailable) as down:
            opened(f"postgresql://memory_app:{PASSWORD}@127.0.0.1:{port}/memory")
    assert PASSWORD not in one_line(down.value)


def test_something_else_than_postgresql_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with within(8), pytest.raises(DatabaseUnavailable) as down:
            opened(f"postgresql://memory_app:{PASSWORD}@127.0.0.1:{other.getsockname()[1]}/memory")
    assert PASSWORD not in one_line(down.value)


def test_a_wrong_password_is_no_matter_of_trying_again(standing: Database) -> None:
    with pytest.raises(DatabaseError, match="memory_app") as refused:
        opened(standing.application.set(password=PASSWORD))
    assert PASSWORD not in one_line(refused.value)
    assert not refused.value.retryable


def test_a_database_that_does_not_exist_is_no_matter_of_trying_again(standing: Database) -> None:
    with pytest.raises(DatabaseError, match="no_such_database") as refused:
        opened(standing.application.set(database="no_such_database"))
    assert not refused.value.retryable
    one_line(refused.value)


# Roles that row level security would not bind


def test_a_superuser_is_refused(standing: Database) -> None:
    with pytest.raises(UnsafeRole, match="superuser") as refused:
        opened(standing.superuser)
    assert not refused.value.retryable
    assert "python -m memory_core migrate --sql" in one_line(refused.value)


def test_a_superuser_who_becomes_the_application_is_refused(standing: Database) -> None:
    url = standing.superuser.update_query_dict({"options": "-c role=memory_app"})
    with pytest.raises(UnsafeRole, match="superuser"):
        opened(url)


def test_a_role_that_bypasses_row_level_security_is_refused(role: Callable[..., URL]) -> None:
    with pytest.raises(UnsafeRole, match="BYPASSRLS"):
        opened(role("BYPASSRLS"))


@pytest.mark.parametrize("inherits", ["INHERIT", "NOINHERIT"])
def test_a_member_of_a_role_that_bypasses_row_level_security_is_refused(
    inherits: str, role: Callable[..., URL]
) -> None:
    loophole = role("BYPASSRLS", rights=None)
    between = role(member_of=loophole.username, rights=None)
    with pytest.raises(UnsafeRole, match="BYPASSRLS"):
        opened(role(inherits, member_of=between.username))


def test_the_tables_owner_is_refused(standing: Database) -> None:
    with pytest.raises(UnsafeRole, match="owns the tables"):
        opened(standing.owner)


def test_a_member_of_the_owner_is_refused(role: Callable[..., URL]) -> None:
    with pytest.raises(UnsafeRole, match="owns the tables"):
        opened(role("NOINHERIT", member_of="memory_owner"))


def test_a_role_with_the_applications_rights_and_no_more_is_accepted(role: Callable[..., URL]) -> None:
    assert opened(role()).overview().counts == {}


def test_a_role_without_any_rights_is_told_so(role: Callable[..., URL]) -> None:
    with pytest.raises(UnsafeRole, match="permission denied") as refused:
        opened(role(rights=None))
    assert "python -m memory_core migrate --sql" in one_line(refused.value)


def test_a_role_that_may_not_connect_is_told_so(role: Callable[..., URL], database: Database, alter: Alter) -> None:
    url = role(rights=None).set(database=database.application.database)
    alter(f'REVOKE CONNECT ON DATABASE "{database.application.database}" FROM PUBLIC')
    with pytest.raises(DatabaseError, match="permission denied") as refused:
        opened(url)
    assert not refused.value.retryable


@pytest.mark.parametrize("right", ["INSERT ON memory", "SELECT ON organisation_setting", "INSERT ON organisation"])
def test_a_right_that_is_missing_is_named_and_nothing_is_stored(right: str, database: Database, alter: Alter) -> None:
    alter(f"REVOKE {right} FROM memory_app")
    with pytest.raises(UnsafeRole, match=rf"permission denied for table {right.rpartition(' ')[2]}") as refused:
        opened(database.application).remember("We meet on Mondays.", **FACT)
    one_line(refused.value)
    assert count(database, "memory") == count(database, "organisation") == 0


# Read only


def test_a_role_that_may_only_read_is_refused_on_opening(standing: Database, role: Callable[..., URL]) -> None:
    url = role()
    with standing.connect(autocommit=True) as connection:
        connection.execute(f"ALTER ROLE {url.username} SET default_transaction_read_only = on")
    with pytest.raises(DatabaseReadOnly, match="read only") as refused:
        opened(url)
    assert not refused.value.retryable
    one_line(refused.value)


def test_a_database_that_becomes_read_only_under_an_open_store_says_so(
    open_store: OpenStore, database: Database
) -> None:
    store = open_store()
    store.remember("We meet on Mondays.", **FACT)
    with database.connect(autocommit=True) as connection:
        name = database.application.database
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    kill_connections(database)
    for call in (
        lambda: store.remember("We meet on Tuesdays.", **FACT),
        lambda: store.recall("when?", run_id="r-2"),
        lambda: store.forget(ABOUT, by="user:ines", reason="erasure request"),
    ):
        with pytest.raises(DatabaseReadOnly):
            call()
    assert count(database, "memory") == 1


# Another schema


@pytest.mark.parametrize("revision", ["000016", "000021", "000023"])
def test_a_database_at_another_revision_is_refused_by_both_numbers(
    revision: str, database: Database, alter: Alter
) -> None:
    alter(f"UPDATE alembic_version SET version_num = '{revision}'")
    for _ in range(2):
        with pytest.raises(NotMigrated, match=rf"{revision}.*000022.*python -m memory_core migrate") as refused:
            opened(database.application)
        assert not refused.value.retryable
        one_line(refused.value)


def test_a_revision_that_is_mended_is_noticed_without_a_restart(database: Database, alter: Alter) -> None:
    alter("UPDATE alembic_version SET version_num = '000016'")
    with pytest.raises(NotMigrated):
        opened(database.application)
    with database.connect(autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '000022'")
    assert opened(database.application).overview().counts == {}


def test_a_schema_that_changes_under_an_open_store_is_one_clear_error(
    open_store: OpenStore, database: Database
) -> None:
    store = open_store()
    with database.connect(autocommit=True) as connection:
        connection.execute("ALTER TABLE memory RENAME COLUMN hold TO held_by")
    with pytest.raises(NotMigrated, match="python -m memory_core migrate") as refused:
        store.remember("We meet on Mondays.", **FACT)
    one_line(refused.value)


def test_a_migrated_database_without_pgvector_is_refused(database: Database, alter: Alter) -> None:
    alter("DROP EXTENSION vector CASCADE")
    with pytest.raises(NoVectorExtension, match="CREATE EXTENSION vector") as refused:
        opened(database.application)
    one_line(refused.value)


def test_an_older_pgvector_is_refused_by_its_version(database: Database, alter: Alter) -> None:
    alter("UPDATE pg_extension SET extversion = '0.8.3' WHERE extname = 'vector'")
    with pytest.raises(NoVectorExtension, match=r"0\.8\.3.*ALTER EXTENSION vector UPDATE") as refused:
        opened(database.application)
    one_line(refused.value)


@pytest.mark.parametrize("version", ["0.8.4", "0.8.6", "0.8.10", "0.9", "0.9.0", "0.10.0", "1.0", "1.0.0"])
def test_a_pgvector_of_0_8_4_or_newer_is_new_enough(version: str) -> None:
    assert schema._version(version) >= schema.LEAST_VECTOR


@pytest.mark.parametrize("version", ["0.8.3", "0.8.0", "0.8", "0.7.10", "0.5.1", "0.0.9", "0"])
def test_a_pgvector_before_0_8_4_is_too_old(version: str) -> None:
    assert schema._version(version) < schema.LEAST_VECTOR


# Lost connections


def kill_connections(database: Database) -> int:
    with database.connect(autocommit=True) as connection:
        query = (
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s AND usename = 'memory_app'"
        )
        return len(connection.execute(query, (database.application.database,)).fetchall())


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.remember("We meet on Tuesdays.", **FACT),
        lambda store: store.recall("when?", run_id="r-2"),
        lambda store: store.held(ABOUT),
        lambda store: store.forget(ABOUT, by="user:ines", reason="erasure request"),
        lambda store: store.overview(),
    ],
    ids=["remember", "recall", "held", "forget", "overview"],
)
def test_a_connection_killed_between_two_calls_costs_at_most_one_clear_error(
    call: Callable[[MemoryStore], Any], open_store: OpenStore, database: Database
) -> None:
    store = open_store()
    store.remember("We meet on Mondays.", **FACT)
    assert kill_connections(database) > 0
    with suppress(DatabaseUnavailable):
        call(store)
    call(store)


def test_a_connection_that_a_restart_left_in_the_pool_costs_no_error(open_store: OpenStore, database: Database) -> None:
    chosen = settings(memory_embedder="none", database_url=database.application.render_as_string(hide_password=False))
    store = open_store()
    store.remember("We meet on Mondays.", **FACT)
    assert MemoryStore.organisations(settings=chosen) == ["acme"]
    assert kill_connections(database) > 0
    assert MemoryStore.organisations(settings=chosen) == ["acme"]
    assert kill_connections(database) > 0
    assert store.overview()


def test_a_connection_killed_within_a_transaction_leaves_nothing_half_written(
    open_store: OpenStore, database: Database
) -> None:
    store = open_store()
    engine = engine_for(database.application)

    def interrupted() -> None:
        with organisation_transaction(engine, "acme") as connection:
            connection.execute(insert(organisation).values(org_id="acme"))
            kill_connections(database)
            connection.execute(text("SELECT 1"))

    with pytest.raises(DatabaseUnavailable) as lost:
        interrupted()
    assert lost.value.retryable
    one_line(lost.value)
    assert count(database, "organisation") == 0
    assert store.remember("We meet on Mondays.", **FACT).text == "We meet on Mondays."


def test_a_connection_killed_before_the_commit_is_an_error_and_nothing_is_stored(standing: Database) -> None:
    engine = engine_for(standing.application)

    def interrupted() -> None:
        with organisation_transaction(engine, "acme") as connection:
            connection.execute(insert(organisation).values(org_id="acme"))
            kill_connections(standing)

    with pytest.raises(DatabaseUnavailable):
        interrupted()
    assert count(standing, "organisation") == 0


def test_a_statement_that_the_server_cancels_may_be_tried_again(standing: Database) -> None:
    def slow() -> None:
        with transaction(engine_for(standing.application)) as connection:
            connection.execute(text("SET LOCAL statement_timeout = 50"))
            connection.execute(text("SELECT pg_sleep(5)"))

    with within(3), pytest.raises(DatabaseBusy) as busy:
        slow()
    assert busy.value.retryable
    one_line(busy.value)


def test_a_lock_that_does_not_come_free_may_be_tried_again(standing: Database) -> None:
    def waiting() -> None:
        with transaction(engine_for(standing.application)) as connection:
            connection.execute(text("SET LOCAL lock_timeout = 50"))
            connection.execute(text("SELECT count(*) FROM organisation"))

    with standing.connect() as blocker:
        blocker.execute("LOCK TABLE organisation IN ACCESS EXCLUSIVE MODE")
        with within(3), pytest.raises(DatabaseBusy) as busy:
            waiting()
        blocker.rollback()
    assert busy.value.retryable


def test_more_connections_than_the_server_has_may_be_tried_again(database: Database, alter: Alter) -> None:
    alter(f'ALTER DATABASE "{database.application.database}" CONNECTION LIMIT 0')
    with within(8), pytest.raises(DatabaseUnavailable, match="too many connections") as full:
        opened(database.application)
    assert full.value.retryable


# What an error quotes

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "org_id": "acme",
    "kind": "fact",
    "text": MARKER,
    "text_sha256": sha256(MARKER.encode()).digest(),
    "origin": "person",
    "author": "user:maria",
    "run_id": "r-1",
    "created_at": NOW,
    "expires_at": NOW + timedelta(days=90),
    "last_seen_at": NOW,
    "last_seen_run_id": "r-1",
}
Fault = Callable[[Connection], object]


def put(connection: Connection, **fields: Any) -> None:
    connection.execute(insert(memory).values({**ROW, "memory_id": uuid4(), **fields}))


def put_twice(connection: Connection) -> None:
    put(connection)
    put(connection)


def said(error: BaseException) -> str:
    """All that a log with the whole traceback would print of an error."""
    seen: list[str] = []
    following: BaseException | None = error
    while following is not None:
        seen += [str(following), repr(following), *getattr(following, "__notes__", [])]
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return "\n".join(seen)


def refused_by(database: Database, url: URL, fault: Fault) -> MemoryCoreError:
    engine = engine_for(url)

    def faulty() -> None:
        with translated_errors(), engine.begin() as connection:
            connection.execute(text("SET LOCAL memory.org_id = 'acme'"))
            connection.execute(insert(organisation).values(org_id="acme"))
            fault(connection)

    with pytest.raises(MemoryCoreError) as refused:
        faulty()
    one_line(refused.value)
    return refused.value


CONSTRAINTS: dict[str, Fault] = {
    "author_matches_origin": lambda connection: put(connection, origin="inference"),
    "kind_is_known": lambda connection: put(connection, kind=MARKER),
    "digest_is_of_the_text": lambda connection: put(connection, text=f"{MARKER}!"),
    "text_length": lambda connection: put(
        connection, text=MARKER * 100, text_sha256=sha256((MARKER * 100).encode()).digest()
    ),
    "same_sentence_is_one_memory": put_twice,
    "memory_of_an_organisation": lambda connection: (
        connection.execute(text(f"SET LOCAL memory.org_id = '{MARKER}'")),
        put(connection, org_id=MARKER),
    ),
    "identifiers_have_their_shape": lambda connection: put(connection, author=f"user:{MARKER}\n"),
}


@pytest.mark.parametrize("rule", CONSTRAINTS)
@pytest.mark.parametrize("who", ["application", "owner"])
def test_a_row_that_the_database_refuses_is_quoted_nowhere(who: str, rule: str, standing: Database) -> None:
    refused = refused_by(standing, getattr(standing, who), CONSTRAINTS[rule])
    assert isinstance(refused, Refused)
    assert (refused.rule, refused.field) == (rule, "memory")
    assert MARKER not in said(refused)


@pytest.mark.parametrize("rule", CONSTRAINTS)
def test_a_row_that_row_level_security_does_not_hide_is_not_in_the_errors_own_text(
    rule: str, standing: Database
) -> None:
    refused = refused_by(standing, standing.superuser, CONSTRAINTS[rule])
    assert refused.__cause__ is not None
    assert MARKER not in str(refused)


VALUES: dict[str, Fault] = {
    "no number": lambda connection: connection.execute(text("SELECT CAST(:x AS integer)"), {"x": MARKER}),
    "no time": lambda connection: connection.execute(text("SELECT CAST(:x AS timestamptz)"), {"x": MARKER}),
    "no json": lambda connection: connection.execute(text("SELECT CAST(:x AS json)"), {"x": MARKER}),
    "no expression": lambda connection: connection.execute(text("SELECT 'x' ~ :x"), {"x": f"{MARKER}("}),
    "NUL": lambda connection: put(connection, text=f"{MARKER}\x00"),
    "no null": lambda connection: put(connection, author=None),
    "another's row": lambda connection: put(connection, org_id="globex"),
    "lone surrogate": lambda connection: put(connection, text=f"{MARKER}\ud800"),
}


@pytest.mark.parametrize("what", VALUES)
def test_a_value_that_the_database_cannot_take_is_not_in_the_errors_own_text(what: str, standing: Database) -> None:
    assert MARKER not in str(refused_by(standing, standing.application, VALUES[what]))


VECTORS: dict[str, str] = {
    "NaN": "SELECT CAST('[1,NaN]' AS halfvec)",
    "infinite": "SELECT CAST('[1,Infinity]' AS halfvec)",
    "another length": "SELECT CAST('[1,2]' AS halfvec) <=> CAST('[1,2,3]' AS halfvec)",
    "too long": "SELECT CAST(array_fill(1, ARRAY[16001]) AS halfvec)",
}


@pytest.mark.parametrize("what", VECTORS)
def test_a_vector_that_the_database_refuses_is_a_bad_vector(what: str, standing: Database) -> None:
    refused = refused_by(standing, standing.application, lambda connection: connection.execute(text(VECTORS[what])))
    assert isinstance(refused, BadVector)


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://memory_app:{PASSWORD}@127.0.0.1:port/memory",
        f"postgresql://memory_app:{PASSWORD}@127.0.0.1",
        f"mysql://memory_app:{PASSWORD}@127.0.0.1/memory",
        f"memory_app:{PASSWORD}@127.0.0.1/memory",
        PASSWORD,
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(SettingsError, match="database_url") as refused:
        opened(address)
    assert PASSWORD not in said(refused.value)
    one_line(refused.value)


def test_no_error_of_a_connection_has_the_password(standing: Database, closed_port: int) -> None:
    addresses = [
        standing.application.set(password=PASSWORD),
        standing.application.set(password=PASSWORD, database="no_such_database"),
        URL.create("postgresql+psycopg", "memory_app", PASSWORD, "127.0.0.1", closed_port, "memory"),
    ]
    for address in addresses:
        with pytest.raises(DatabaseError) as refused:
            opened(address)
        assert PASSWORD not in said(refused.value)


def test_what_the_driver_raises_is_always_one_of_this_packages_errors(standing: Database) -> None:
    refused = refused_by(
        standing, standing.application, lambda connection: connection.exec_driver_sql("SELECT broken FROM")
    )
    assert isinstance(refused, DatabaseError)
    assert isinstance(refused.__cause__, Exception)
    assert re.search("syntax", str(refused))
    assert isinstance(refused.__cause__.__cause__, psycopg.Error)


@pytest.mark.parametrize("typed", ["\ud800", "c-\udfff", "a\x00b"], ids=ascii)
def test_what_somebody_types_that_no_database_can_hold_finds_nobody(typed: str, standing: Database) -> None:
    assert opened(standing.application).find_subjects(typed) == []
