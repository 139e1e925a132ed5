"""Revisions 000017 to 000022: up, down, printed, and the rules that they keep against rows written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from conftest import Database, OpenStore, connect
from psycopg import sql
from sqlalchemy import URL, CheckConstraint, create_engine

from memory_core import MemoryStore, Subject
from memory_core.config import Settings, settings
from memory_core.db import database as db
from memory_core.db import embedded, schema
from memory_core.db.engine import close_engines
from memory_core.db.tables import TENANT_TABLES, metadata
from memory_core.errors import DatabaseError, NotMigrated, SettingsError, UnsafeRole
from memory_core.roles import Identity, Role
from memory_core.run_records import CallOutcome, Termination

NewDatabase = Callable[..., Database]
Row = Mapping[str, Any]


@pytest.fixture
def new_database(cluster: embedded.Cluster) -> Iterator[NewDatabase]:
    """Make databases without a schema; they go with the test."""
    made: list[str] = []

    def make(*, vector: bool = True) -> Database:
        name = f"test_{uuid4().hex}"
        with connect(cluster.superuser, autocommit=True) as connection:
            statement = "CREATE DATABASE {} OWNER memory_owner"
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
        made.append(name)
        new = Database(
            superuser=cluster.superuser.set(database=name),
            owner=cluster.owner.set(database=name),
            application=cluster.application.set(database=name),
        )
        if vector:
            with new.connect(autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
        return new

    yield make
    close_engines()
    with connect(cluster.superuser, autocommit=True) as connection:
        for name in made:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def unchanged(standing: Database) -> Database:
    """One migrated database for the tests that keep nothing in it."""
    return standing


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.connect() as connection:
        return connection.execute(query).fetchall()


TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
EVERYTHING = """
    SELECT 'relation', relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'type', typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
    UNION ALL SELECT 'function', proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'extension', extname FROM pg_extension
    ORDER BY 1, 2
"""
COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
      AND c.relname <> 'alembic_version'
    ORDER BY 1, 2
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
      AND conrelid::regclass::text <> 'alembic_version'
    ORDER BY 1, 2
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1"
SECURITY = """
    SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, p.polname, p.polcmd, p.polroles::text,
           pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
    FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1, 4
"""
GRANTS = """
    SELECT c.relname, c.relacl::text, a.attname, a.attacl::text, a.attstorage
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 3
"""
SAMPLES = """
    SELECT attrelid::regclass::text, attname FROM pg_attribute
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r')
      AND attnum > 0 AND NOT attisdropped AND attstattarget = 0 ORDER BY 1, 2
"""
FILLED_AT_19 = (
    "organisation",
    "organisation_setting",
    "memory",
    "directory",
    "recall",
    "disclosure",
    "erasure",
    "model_call",
)
FILLED_AT_20 = (*FILLED_AT_19, "rights_request", "rights_request_change", "measure", "ledger", "trail")
FILLED_AT_21 = (*FILLED_AT_20, "agent_run", "agent_call", "evaluation", "evaluation_result")
OURS = ["alembic_version", *sorted(metadata.tables)]


def migrated(database: Database, **options: Any) -> tuple[str | None, str | None]:
    return schema.migrate(database.owner, application_role="memory_app", **options)


def taken_down(database: Database, revision: str) -> None:
    """Go back to a revision, as whoever rolls a deployment back does with Alembic."""
    engine = create_engine(database.owner)
    try:
        with engine.begin() as connection:
            config = schema._config(application_role="memory_app", schema="public")
            config.attributes["connection"] = connection
            command.downgrade(config, revision)
    finally:
        engine.dispose()


# Up and down


def test_the_migration_goes_up_down_to_nothing_and_up_again(new_database: NewDatabase) -> None:
    empty = new_database()
    assert migrated(empty) == (None, "000022")
    first = [rows(empty, query) for query in (COLUMNS, CONSTRAINTS, INDEXES, SECURITY, GRANTS)]
    assert [name for (name,) in rows(empty, TABLES)] == sorted(OURS)

    assert migrated(empty, revision="base") == ("000022", None)
    assert [name for (name,) in rows(empty, TABLES)] == ["alembic_version"]

    assert migrated(empty) == (None, "000022")
    assert [rows(empty, query) for query in (COLUMNS, CONSTRAINTS, INDEXES, SECURITY, GRANTS)] == first


def test_the_newest_migration_is_number_22() -> None:
    assert schema.newest_revision() == "000022"


def test_migrating_what_is_migrated_changes_nothing(database: Database) -> None:
    with database.connect() as connection:
        connection.execute("INSERT INTO organisation VALUES ('acme')")
    assert migrated(database) == ("000022", "000022")
    assert rows(database, "SELECT org_id FROM organisation") == [("acme",)]


def test_the_migration_goes_down_also_where_memories_are_stored(database: Database) -> None:
    with MemoryStore.open("acme", database_url=database.application, embedder=None) as store:
        store.remember("We never meet on Fridays.", kind="fact", origin="person", author="user:a", run_id="r-1")
        store.recall("when?", run_id="r-2")
    close_engines()
    migrated(database, revision="base")
    assert rows(database, TABLES) == [("alembic_version",)]


CATALOGUE = (COLUMNS, CONSTRAINTS, INDEXES, SECURITY, GRANTS, SAMPLES)


def test_taking_the_desk_away_keeps_the_memories_and_gives_back_exactly_the_rights_of_before(
    new_database: NewDatabase, unchanged: Database
) -> None:
    changed = new_database()
    assert migrated(changed, revision="000019") == (None, "000019")
    before = [rows(changed, query) for query in CATALOGUE]
    with changed.connect() as connection:
        for table in FILLED_AT_19:
            write(connection, table, {**GOOD[table], "org_id": "acme"})
    kept = [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_19]
    assert all(kept)

    assert migrated(changed) == ("000019", "000022")
    assert rows(changed, "SELECT text, dispute, supersedes FROM memory") == [("Could start in March.", None, None)]
    assert rows(changed, "SELECT octet_length(salt), request_id FROM erasure") == [(16, None)]
    assert rows(changed, "SELECT count(ledger_id) FROM organisation") == [(1,)]
    assert rows(changed, "SELECT tombstone_days, time_zone, version FROM organisation_setting") == [(1095, "UTC", 0)]
    with changed.connect() as connection:
        connection.execute("UPDATE memory SET dispute = 'Wrong.', disputed_at = now()")
        for table in FILLED_AT_20[len(FILLED_AT_19) :]:
            write(connection, table, GOOD[table])

    taken_down(changed, "000019")
    assert rows(changed, "SELECT version_num FROM alembic_version") == [("000019",)]
    assert [rows(changed, query) for query in CATALOGUE] == before
    assert [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_19] == kept

    assert migrated(changed) == ("000019", "000022")
    assert [rows(changed, query) for query in CATALOGUE] == [rows(unchanged, query) for query in CATALOGUE]
    assert rows(changed, "SELECT text FROM memory") == [("Could start in March.",)]


def test_taking_the_runs_away_keeps_all_else_and_gives_back_exactly_the_rights_of_before(
    new_database: NewDatabase, unchanged: Database
) -> None:
    changed = new_database()
    assert migrated(changed, revision="000020") == (None, "000020")
    before = [rows(changed, query) for query in CATALOGUE]
    with changed.connect() as connection:
        for table in FILLED_AT_20:
            write(connection, table, {**GOOD[table], "org_id": "acme"})
    kept = [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_20]
    assert all(kept)

    assert migrated(changed, revision="000021") == ("000020", "000021")
    with changed.connect() as connection:
        for table in FILLED_AT_21[len(FILLED_AT_20) :]:
            write(connection, table, GOOD[table])
    assert [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_20] == kept

    taken_down(changed, "000020")
    assert rows(changed, "SELECT version_num FROM alembic_version") == [("000020",)]
    assert [rows(changed, query) for query in CATALOGUE] == before
    assert [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_20] == kept

    assert migrated(changed, revision="000021") == ("000020", "000021")
    assert [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_20] == kept
    assert migrated(changed) == ("000021", "000022")
    assert [rows(changed, query) for query in CATALOGUE] == [rows(unchanged, query) for query in CATALOGUE]


def test_taking_the_members_away_keeps_all_else_and_gives_back_exactly_the_rights_of_before(
    new_database: NewDatabase, unchanged: Database
) -> None:
    changed = new_database()
    assert migrated(changed, revision="000021") == (None, "000021")
    before = [rows(changed, query) for query in CATALOGUE]
    with changed.connect() as connection:
        for table in FILLED_AT_21:
            write(connection, table, {**GOOD[table], "org_id": "acme"})
    kept = [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_21]
    assert all(kept)

    assert migrated(changed) == ("000021", "000022")
    with changed.connect() as connection:
        settings = (
            "preview_pseudonyms, four_eyes_over, observations_leave, observations_leave_by, observations_leave_at"
        )
        assert connection.execute(f"SELECT {settings} FROM organisation_setting").fetchall() == [
            (False, None, False, None, None)
        ]
        assert connection.execute("SELECT by, because FROM recall").fetchall() == [(None, None)]
        assert connection.execute("SELECT observations_left_out FROM agent_run").fetchall() == [(False,)]
        for table in ("member", "approval"):
            write(connection, table, GOOD[table])
        connection.execute(
            f"UPDATE organisation_setting SET ({settings}) = (true, 10, true, 'user:ines', now());"
            "UPDATE recall SET by = 'user:maria', because = 'to see why'"
        )

    taken_down(changed, "000021")
    assert rows(changed, "SELECT version_num FROM alembic_version") == [("000021",)]
    assert [rows(changed, query) for query in CATALOGUE] == before
    assert [rows(changed, f"SELECT t::text FROM {table} AS t") for table in FILLED_AT_21] == kept

    assert migrated(changed) == ("000021", "000022")
    assert [rows(changed, query) for query in CATALOGUE] == [rows(unchanged, query) for query in CATALOGUE]


@pytest.mark.parametrize(
    "name", ["o'br\"ien; --", "100%s %(role)s", "svc:memory :role"], ids=["quotes", "percent", "colon"]
)
def test_a_role_whose_name_needs_quoting_is_granted_its_rights(
    name: str, new_database: NewDatabase, cluster: embedded.Cluster
) -> None:
    empty = new_database()
    role = sql.Identifier(name)
    with connect(cluster.superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret'").format(role))
    try:
        schema.migrate(empty.owner, application_role=name)
        url = empty.application.set(username=name, password="secret")
        with MemoryStore.open("acme", database_url=url, embedder=None) as store:
            assert store.overview().counts == {}
        close_engines()
    finally:
        with empty.connect(autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))


# A migration that fails


def test_a_migration_for_a_role_that_does_not_exist_leaves_nothing(new_database: NewDatabase) -> None:
    empty = new_database()
    before = rows(empty, EVERYTHING)
    with pytest.raises(UnsafeRole, match="nobody_here"):
        schema.migrate(empty.owner, application_role="nobody_here")
    assert rows(empty, EVERYTHING) == before


def test_a_migration_that_fails_half_way_leaves_nothing(new_database: NewDatabase) -> None:
    empty = new_database()
    with empty.connect(empty.owner) as connection:
        connection.execute("CREATE TABLE recall (somebody_elses text)")  # one of the last that the migration makes
    before = rows(empty, EVERYTHING)
    with pytest.raises(DatabaseError, match="recall"):
        migrated(empty)
    assert rows(empty, EVERYTHING) == before


def test_an_owner_who_may_not_create_tables_is_told_so_and_nothing_is_left(new_database: NewDatabase) -> None:
    empty = new_database()
    before = rows(empty, EVERYTHING)
    with pytest.raises(UnsafeRole, match="permission denied"):
        schema.migrate(empty.application, application_role="memory_app")
    assert rows(empty, EVERYTHING) == before


def test_migrating_a_database_of_a_newer_version_says_so_and_changes_nothing(database: Database) -> None:
    with database.connect(database.owner) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '000099'")
    with pytest.raises(NotMigrated, match="000099"):
        migrated(database)
    assert rows(database, "SELECT version_num FROM alembic_version") == [("000099",)]


def test_two_migrations_at_once_make_one_schema(new_database: NewDatabase) -> None:
    empty = new_database()
    with ThreadPoolExecutor(2) as pool:
        done = sorted(pool.map(lambda _: migrated(empty), range(2)), key=str)
    assert done == [("000022", "000022"), (None, "000022")]


# Not applied by itself


def test_a_database_that_is_not_embedded_is_never_migrated_by_opening_it(new_database: NewDatabase) -> None:
    for vector in (True, False):
        empty = new_database(vector=vector)
        before = rows(empty, EVERYTHING)
        for _ in range(2):
            with pytest.raises(NotMigrated, match="python -m memory_core migrate"):
                MemoryStore.open("acme", database_url=empty.application, embedder=None)
        assert rows(empty, EVERYTHING) == before


def configured(database: Database | None, *, owner: URL | None = None) -> Settings:
    def text(url: URL | None) -> str | None:
        return url.render_as_string(hide_password=False) if url else None

    return settings(database_url=text(database.application) if database else None, migration_database_url=text(owner))


def test_migrating_uses_the_owner_and_grants_to_the_role_of_the_application(new_database: NewDatabase) -> None:
    empty = new_database()
    chosen = configured(empty, owner=empty.owner)
    assert db.migrate(chosen) == (None, "000022")
    with MemoryStore.open("acme", settings=chosen, embedder=None) as store:
        assert store.overview().counts == {}
    owners = {owner for (owner,) in rows(empty, "SELECT tableowner FROM pg_tables WHERE schemaname = 'public'")}
    assert owners == {"memory_owner"}


def test_migrating_without_an_owners_address_names_the_variable(new_database: NewDatabase) -> None:
    empty = new_database()
    with pytest.raises(SettingsError, match="MIGRATION_DATABASE_URL"):
        db.migrate(configured(empty))
    assert rows(empty, TABLES) == []


def test_the_owner_may_not_be_the_role_that_the_application_uses(new_database: NewDatabase) -> None:
    empty = new_database()
    with pytest.raises(UnsafeRole, match="own"):
        db.migrate(configured(empty, owner=empty.application))
    assert rows(empty, TABLES) == []


# Printed


def test_the_printed_migration_makes_the_same_schema(new_database: NewDatabase, unchanged: Database) -> None:
    empty = new_database()
    printed = db.migration_sql(configured(empty))
    assert rows(empty, TABLES) == []  # printing touches nothing
    with empty.connect(empty.owner, autocommit=True) as connection:
        connection.execute(printed.encode())
    for query in (COLUMNS, CONSTRAINTS, INDEXES, SECURITY, GRANTS):
        assert rows(empty, query) == rows(unchanged, query)
    assert rows(empty, "SELECT version_num FROM alembic_version") == [("000022",)]
    with MemoryStore.open("acme", database_url=empty.application, embedder=None) as store:
        assert store.overview().counts == {}


def test_the_printed_migration_names_the_statements_for_the_roles_and_the_extension() -> None:
    printed = db.migration_sql(configured(None))
    for needed in ("CREATE EXTENSION IF NOT EXISTS vector", "CREATE ROLE memory_owner", "NOSUPERUSER NOBYPASSRLS"):
        assert needed in printed.partition("BEGIN;")[0]
    assert "TO memory_app" in printed.replace('"', "")


def test_the_printed_migration_is_one_transaction() -> None:
    statements = [line for line in db.migration_sql(configured(None)).splitlines() if line in ("BEGIN;", "COMMIT;")]
    assert statements == ["BEGIN;", "COMMIT;"]


# The schema is what tables.py says


def test_the_migrated_schema_is_what_the_tables_say(new_database: NewDatabase, unchanged: Database) -> None:
    described = new_database()
    engine = create_engine(described.owner)
    metadata.create_all(engine)
    engine.dispose()
    for query in (COLUMNS, CONSTRAINTS, INDEXES):
        migrated_schema = rows(unchanged, query)
        assert migrated_schema == rows(described, query)
        assert migrated_schema


def test_alembic_finds_no_difference_between_the_schema_and_the_tables(unchanged: Database) -> None:
    engine = create_engine(unchanged.owner)
    try:
        with engine.connect() as connection:
            options = {"compare_type": True, "compare_server_default": True}
            assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    finally:
        engine.dispose()


def test_the_vector_stays_in_its_row(unchanged: Database) -> None:
    query = "SELECT attstorage FROM pg_attribute WHERE attrelid = 'memory'::regclass AND attname = 'embedding'"
    assert rows(unchanged, query) == [("p",)]


def test_every_table_but_the_two_exempt_ones_is_under_forced_row_level_security(unchanged: Database) -> None:
    secured = {name for name, on, forced, policy, *_ in rows(unchanged, SECURITY) if on and forced and policy}
    assert secured == set(OURS) - {"alembic_version", "organisation"} == {table.name for table in TENANT_TABLES}


def test_org_id_is_in_every_key_and_every_reference(unchanged: Database) -> None:
    query = """
        SELECT con.conname, con.contype::text FROM pg_constraint con
        WHERE con.connamespace = 'public'::regnamespace AND con.contype IN ('p', 'u', 'f')
          AND con.conrelid <> 'alembic_version'::regclass
          AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = con.conrelid AND a.attnum = ANY (con.conkey)
                          AND a.attname = 'org_id')
    """
    assert rows(unchanged, query) == []


def test_the_application_may_not_rewrite_provenance(unchanged: Database) -> None:
    query = """
        SELECT attname FROM pg_attribute WHERE attrelid = 'memory'::regclass AND attnum > 0
          AND has_column_privilege('memory_app', 'memory', attname, 'UPDATE')
    """
    writable = {name for (name,) in rows(unchanged, query)}
    written_once = {"org_id", "memory_id", "kind", "subject_type", "subject_id", "origin", "author", "run_id", "source"}
    assert not writable & (written_once | {"created_at", "supersedes", "corrected_by", "correction_reason"})


def test_the_application_adds_to_a_call_what_became_of_it_and_rewrites_nothing_else(unchanged: Database) -> None:
    query = """
        SELECT attname FROM pg_attribute WHERE attrelid = 'model_call'::regclass AND attnum > 0
          AND NOT has_column_privilege('memory_app', 'model_call', attname, 'UPDATE')
    """
    written_once = {"org_id", "call_id", "run_id", "tier", "model", "provider", "started_at", "deadline_at"}
    assert {name for (name,) in rows(unchanged, query)} == written_once | {"estimated_tokens", "memory_tokens"}


RECORDS = ["recall", "erasure", "model_call", "organisation", "organisation_setting"]
RECORDS += ["rights_request", "rights_request_change", "measure", "ledger", "trail"]
RECORDS += ["agent_run", "agent_call", "evaluation", "evaluation_result", "member", "approval"]
ADDED_TO = ["trail", "ledger", "rights_request_change", "erasure", "recall", "disclosure"]
ADDED_TO += ["agent_call", "evaluation_result"]


@pytest.mark.parametrize("table", RECORDS)
def test_the_application_may_not_delete_what_is_a_record(table: str, unchanged: Database) -> None:
    for right in ("DELETE", "TRUNCATE"):
        assert rows(unchanged, f"SELECT has_table_privilege('memory_app', '{table}', '{right}')") == [(False,)]


@pytest.mark.parametrize("table", ADDED_TO)
def test_the_application_adds_to_a_record_and_never_rewrites_it(table: str, unchanged: Database) -> None:
    assert rows(unchanged, f"SELECT has_table_privilege('memory_app', '{table}', 'INSERT')") == [(True,)]
    assert rows(unchanged, f"SELECT has_any_column_privilege('memory_app', '{table}', 'UPDATE')") == [(False,)]


@pytest.mark.parametrize(
    ("table", "written_once"),
    [
        ("rights_request", {"org_id", "request_id", "reference", "type", "channel", "received_on"}),
        (
            "measure",
            {
                *("org_id", "measure_id", "kind", "name", "subject_type", "subject_id", "memory_id", "by", "reason"),
                *("placed_at", "review_on", "request_id"),
            },
        ),
        ("organisation_setting", {"org_id"}),
        (
            "agent_run",
            {
                *("org_id", "run_id", "agent", "specification_digest", "model", "tier", "asked_by", "documents"),
                *("turn_limit", "salt", "started_at", "deadline_at", "observations_left_out"),
            },
        ),
        (
            "evaluation",
            {
                *("org_id", "evaluation_id", "model", "digest", "provider", "settings", "suites_hash", "agents"),
                *("cases", "trials", "base_seed", "by", "started_at"),
            },
        ),
        (
            "member",
            {
                *("org_id", "member_id", "issuer", "subject", "identity", "role", "name", "email"),
                *("added_at", "added_by"),
            },
        ),
        (
            "approval",
            {
                *("org_id", "approval_id", "act", "fingerprint", "subject_type", "subject_id", "count", "reason"),
                *("asked_by", "asked_at", "expires_at"),
            },
        ),
    ],
)
def test_the_application_adds_what_became_of_it_and_rewrites_nothing_else(
    table: str, written_once: set[str], unchanged: Database
) -> None:
    query = f"""
        SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped
          AND NOT has_column_privilege('memory_app', '{table}', attname, 'UPDATE')
    """
    assert {name for (name,) in rows(unchanged, query)} == written_once


def test_the_application_deletes_what_is_empty_and_a_bare_delete_reaches_nothing_else(
    database: Database, open_store: OpenStore
) -> None:
    store = open_store()
    texts = {
        "gone": None,
        "swept": None,
        "live": "live",
        "restricted": "restricted",
        "on hold": "on hold",
        "old": "old",
    }
    for text in texts:
        subject = Subject("candidate", "c-7" if text == "gone" else "c-81", "Zoë")
        inferred = {"origin": "inference", "author": "agent:screening", "run_id": "r-1"}
        store.remember(text, kind="observation", subject=subject, **inferred)
    store.recall("who?", run_id="r-2", limit=50)
    store.recall("who?", run_id="r-3", limit=50)
    store.forget(Subject("candidate", "c-7"), by="user:ines", reason="asked to")
    with database.connect() as connection:
        connection.execute("UPDATE memory SET text = NULL, text_sha256 = NULL, swept_at = now() WHERE text = 'swept'")
        connection.execute("UPDATE memory SET restricted_at = now() WHERE text = 'restricted'")
        connection.execute("UPDATE memory SET hold = 'claim-7' WHERE text = 'on hold'")
        connection.execute(
            "UPDATE memory SET created_at = now() - interval '1 year', expires_at = now() WHERE text = 'old'"
        )

    def deleted(statement: str) -> int:
        with database.connect(database.application) as connection:
            connection.execute("SET LOCAL memory.org_id = 'acme'")
            return connection.execute(statement).rowcount

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        deleted("DELETE FROM memory")
    assert deleted("DELETE FROM disclosure") == 4  # two recalls had shown two that are tombstones now
    assert deleted("DELETE FROM memory WHERE text IS NOT NULL") == 0
    assert deleted("DELETE FROM memory AS m USING disclosure AS d WHERE d.memory_id = m.memory_id") == 0
    assert deleted("DELETE FROM memory") == 2
    left = sorted(text for text in texts.values() if text)
    assert sorted(rows(database, "SELECT text FROM memory")) == [(text,) for text in left]
    shown = "SELECT text, count(*) FROM disclosure JOIN memory USING (org_id, memory_id) GROUP BY text"
    assert sorted(rows(database, shown)) == [(text, 2) for text in left]


# Rows written by hand

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MEMORY_ID = UUID("01938000-0000-7000-8000-000000000001")
RECALL_ID = UUID("01938000-0000-7000-8000-000000000002")
ERASURE_ID = UUID("01938000-0000-7000-8000-000000000003")
CALL_ID = UUID("01938000-0000-7000-8000-000000000004")
REQUEST_ID = UUID("01938000-0000-7000-8000-000000000005")
MEASURE_ID = UUID("01938000-0000-7000-8000-000000000006")
ENTRY_ID = UUID("01938000-0000-7000-8000-000000000007")
EVALUATION_ID = UUID("01938000-0000-7000-8000-000000000008")
MEMBER_ID = UUID("01938000-0000-7000-8000-000000000009")
APPROVAL_ID = UUID("01938000-0000-7000-8000-00000000000a")
INES = Identity(issuer="https://login.example.org/möbel", subject="auth0|81 é")
TODAY = NOW.date()


def digested(text: str) -> Row:
    return {"text": text, "text_sha256": sha256(text.encode()).digest()}


TOMBSTONE = {
    "text": None,
    "text_sha256": None,
    "forgotten_at": NOW,
    "forgotten_by": "user:ines",
    "forgotten_reason": "erasure request",
}
SWEPT = {"text": None, "text_sha256": None, "swept_at": NOW}
GOOD: dict[str, Row] = {
    "organisation": {"org_id": "globex"},
    "organisation_setting": {"org_id": "acme"},
    "memory": {
        "org_id": "acme",
        "memory_id": MEMORY_ID,
        "kind": "observation",
        "subject_type": "candidate",
        "subject_id": "c-81",
        **digested("Could start in March."),
        "origin": "inference",
        "author": "agent:screening",
        "run_id": "r-812",
        "created_at": NOW,
        "expires_at": NOW + timedelta(days=90),
        "last_seen_at": NOW,
        "last_seen_run_id": "r-812",
    },
    "directory": {"org_id": "acme", "subject_type": "candidate", "subject_id": "c-81", "label": "Ana Pérez"},
    "recall": {
        "org_id": "acme",
        "recall_id": RECALL_ID,
        "run_id": "r-813",
        "purpose": "run",
        "at": NOW,
        "mode": "recency",
        "reason": "no embedder is configured",
        "ranking": "recency",
        "omitted": 0,
    },
    "disclosure": {
        "org_id": "acme",
        "memory_id": MEMORY_ID,
        "recall_id": RECALL_ID,
        "place": 1,
        "run_id": "r-813",
        "purpose": "run",
        "at": NOW,
    },
    "erasure": {
        "org_id": "acme",
        "erasure_id": ERASURE_ID,
        "subject_type": "candidate",
        "subject_id": "c-81",
        "by": "user:ines",
        "reason": "erasure request",
        "at": NOW,
        "memory_count": 1,
    },
    "model_call": {
        "org_id": "acme",
        "call_id": CALL_ID,
        "run_id": "r-813",
        "tier": "fast",
        "model": "qwen3:0.6b",
        "provider": "ollama",
        "started_at": NOW,
        "deadline_at": NOW + timedelta(minutes=2),
        "estimated_tokens": 60,
        "memory_tokens": 20,
        "counted_tokens": 100,
        "counts_until": NOW + timedelta(minutes=3),
    },
    "rights_request": {
        "org_id": "acme",
        "request_id": REQUEST_ID,
        "reference": "R-2026-0001",
        "type": "erasure",
        "status": "received",
        "asked_by": "Ana Pérez",
        "channel": "e-mail",
        "subject_type": "candidate",
        "subject_id": "c-81",
        "received_on": TODAY,
        "version": 1,
        "changed_at": NOW,
        "changed_by": "user:ines",
    },
    "rights_request_change": {
        "org_id": "acme",
        "request_id": REQUEST_ID,
        "version": 1,
        "at": NOW,
        "by": "user:ines",
        "act": "registered",
        "changed": "{}",
    },
    "measure": {
        "org_id": "acme",
        "measure_id": MEASURE_ID,
        "kind": "hold",
        "name": "claim-7",
        "subject_type": "candidate",
        "subject_id": "c-81",
        "by": "user:ines",
        "reason": "a claim is before the court",
        "placed_at": NOW,
    },
    "ledger": {
        "org_id": "acme",
        "number": 1,
        "entry_id": ENTRY_ID,
        "act": "forget",
        "subject_type": "candidate",
        "subject_id": "c-81",
        "memory_ids": [MEMORY_ID],
        "reference": ERASURE_ID,
        "at": NOW,
        "by": "user:ines",
        "code": "forget",
        "trail_number": 1,
        "trail_hash": bytes(32),
    },
    "trail": {
        "org_id": "acme",
        "number": 1,
        "at": NOW,
        "by": "user:ines",
        "act": "forget",
        "subject_type": "candidate",
        "subject_id": "c-81",
        "reference": str(ERASURE_ID),
        "count": 1,
        "reason": "erasure request",
        "hash": bytes(32),
    },
    "agent_run": {
        "org_id": "acme",
        "run_id": "r-813",
        "agent": "screening",
        "specification_digest": bytes(32),
        "model": "qwen3:0.6b",
        "tier": "fast",
        "asked_by": "user:maria",
        "documents": ["note-7", "mail:81"],
        "turn_limit": 8,
        "started_at": NOW,
        "deadline_at": NOW + timedelta(minutes=5),
    },
    "agent_call": {
        "org_id": "acme",
        "run_id": "r-813",
        "number": 1,
        "turn": 1,
        "tool": "find_candidate",
        "arguments_digest": bytes(32),
        "outcome": "done",
        "ended_at": NOW,
        "took_ms": 1.5,
    },
    "evaluation": {
        "org_id": "acme",
        "evaluation_id": EVALUATION_ID,
        "model": "qwen3:0.6b",
        "provider": "ollama",
        "settings": '{"temperature": 0.6}',
        "suites_hash": "0123456789abcdef" * 4,
        "agents": ["scheduling", "screening"],
        "cases": 40,
        "trials": 5,
        "base_seed": -1,
        "by": "user:maria",
        "started_at": NOW,
    },
    "evaluation_result": {
        "org_id": "acme",
        "evaluation_id": EVALUATION_ID,
        "agent": "screening",
        "case_id": "right-tool-1",
        "trial": 1,
        "kind": "right tool",
        "seed": 1,
        "termination": "Completed",
        "aspects": '{"tool name": true, "order": null}',
        "passed": True,
        "turns": 2,
        "tool_calls": 1,
        "took_ms": 900.0,
        "transcript": "[]",
        "at": NOW,
    },
    "member": {
        "org_id": "acme",
        "member_id": MEMBER_ID,
        "issuer": INES.issuer,
        "subject": INES.subject,
        "identity": INES.digest,
        "role": "dpo",
        "name": "user:ines",
        "email": "ines@example.org",
        "added_at": NOW,
        "added_by": "user:maria",
    },
    "approval": {
        "org_id": "acme",
        "approval_id": APPROVAL_ID,
        "act": "erase",
        "fingerprint": bytes(32),
        "subject_type": "candidate",
        "subject_id": "c-81",
        "count": 12,
        "reason": "erasure request",
        "asked_by": "user:ines",
        "asked_at": NOW,
        "expires_at": NOW + timedelta(days=1),
    },
}
NEEDS = {
    "disclosure": ("recall", "memory"),
    "rights_request_change": ("rights_request",),
    "agent_call": ("agent_run",),
    "evaluation_result": ("evaluation",),
}


@dataclass(frozen=True, kw_only=True)
class ByHand:
    """A row that breaks one rule, and the rule."""

    rule: str
    table: str
    what: str
    fields: Row = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.rule}-{self.what}".replace(" ", "_")


def case(rule: str, table: str, what: str, **fields: Any) -> ByHand:
    return ByHand(rule=rule, table=table, what=what, fields=fields)


def misshapen(rule: str, table: str, *columns: str, **beside: Any) -> list[ByHand]:
    shapes = {
        "ends in a newline": "user:ines\n",
        "two lines": "user:ines\nuser:b",
        "a space": "user: ines",
        "percent": "user:%",
        "a quote": 'user:"',
        "angle": "user:<b>",
        "an accent": "user:inés",
        "a fullwidth letter": "user:ａ",
        "129 characters": "user:" + "x" * 124,
    }
    if "author" not in columns:  # such an author breaks the rule of its origin first
        shapes |= {"starts with a newline": "\nuser:ines", "empty": ""}
    return [
        case(rule, table, f"{column} {what}", **{**beside, column: value})
        for column in columns
        for what, value in shapes.items()
    ]


def identified(*, issuer: str = INES.issuer, subject: str = INES.subject) -> Row:
    """Return issuer and subject with their digest, also where `Identity` would refuse them."""
    parts = [one.encode() for one in (issuer, subject)]
    digest = sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
    return {"issuer": issuer, "subject": subject, "identity": digest}


AS_PERSON = {"origin": "person", "author": "user:ines"}
ANSWERED = {"ended_at": NOW + timedelta(seconds=1), "finish_reason": "stop", "total_ms": 900.0, "attempts": 1}
FAILED = {**ANSWERED, "finish_reason": None, "error_code": "gateway.unavailable"}
CALL_COUNTS = ("estimated_tokens", "memory_tokens", "counted_tokens", "prompt_tokens", "output_tokens")
CALL_COUNTS += ("attempts", "tool_calls", "tool_calls_in_text", "tool_call_faults")
ANSWERS = ("controller", "officer", "purposes", "categories", "recipients", "retention", "authority")
ANSWERS += ("automated_decisions", "transfers")
CLOSED = {"status": "withdrawn", "closed_at": NOW, "closing_note": "taken back"}
REFUSED = {"status": "refused", "closed_at": NOW, "ground": "excessive", "closing_note": "the tenth this month"}
LIFTED = {"lifted_at": NOW, "lifted_by": "user:ines", "lifted_reason": "the claim is settled"}
CORRECTION = {"supersedes": ERASURE_ID, "corrected_by": "user:ines", "correction_reason": "a wrong month"}
DISPUTE = {"dispute": "I never said that.", "disputed_at": NOW}
RUN_ENDED = {"ended_at": NOW, "termination": "Completed", "turns": 2, "answer_was_cut": False}
LEAVES = {"observations_leave": True, "observations_leave_by": "user:ines", "observations_leave_at": NOW}
REMOVED = {"removed_at": NOW + timedelta(days=1), "removed_by": "user:maria"}
DECIDED = {"decided_at": NOW, "decided_by": "user:maria", "agreed": True}
NOT_A_TERMINATION = {
    "empty": "",
    "another word": "Exploded",
    "another case": "completed",
    "two at once": "Completed|Deadline",
    "a newline": "Completed\n",
    "two lines": "Deadline\nCompleted",
    "something before": " Deadline",
    "a code without a word": "gateway.",
    "another dot": "gatewayxbusy",
    "a word of what was said": "gateway.the answer was 42",
    "41 letters": "gateway." + "x" * 41,
}
NOT_IDENTIFIERS = {
    "a newline": ["note-7\n"],
    "a space": ["note 7"],
    "an accent": ["notiz-ä"],
    "129 characters": ["x" * 129],
    "an empty one": ["note-7", ""],
    "only an empty one": [""],
    "none in it": ["note-7", None],
    "two in one": ["note-7,note-8"],
    "a table": [["note-7"], ["note-8"]],
}
CALL_TIMES = ("queue_ms", "load_ms", "prompt_ms", "generation_ms", "first_chunk_ms", "first_answer_ms", "total_ms")
BY_HAND: list[ByHand] = [
    *misshapen("org_id_is_an_identifier", "organisation", "org_id"),
    case("maximum_is_within_ten_years", "organisation_setting", "no day", maximum_days=0),
    case("maximum_is_within_ten_years", "organisation_setting", "a day too many", maximum_days=3651),
    case("pinned_model_has_its_dimensions", "organisation_setting", "no dimensions", embedding_model="minilm"),
    case("pinned_model_has_its_dimensions", "organisation_setting", "no model", embedding_dimensions=384),
    case(
        "dimensions_fit_in_a_page",
        "organisation_setting",
        "too many",
        embedding_model="minilm",
        embedding_dimensions=4001,
    ),
    case("dimensions_fit_in_a_page", "organisation_setting", "none", embedding_model="minilm", embedding_dimensions=0),
    *misshapen("embedding_model_is_an_identifier", "organisation_setting", "embedding_model", embedding_dimensions=384),
    case("kind_is_known", "memory", "another word", kind="rumour"),
    case("kind_is_known", "memory", "another case", kind="Observation"),
    case("origin_is_known", "memory", "another word", origin="hearsay"),
    case("subject_has_type_and_id_or_neither", "memory", "no id", kind="fact", subject_type="job", subject_id=None),
    case("subject_has_type_and_id_or_neither", "memory", "no type", subject_type=None),
    case("observation_names_its_subject", "memory", "neither", subject_type=None, subject_id=None),
    *(
        case("fact_is_not_about_a_person", "memory", person, kind="fact", subject_type=person)
        for person in ("candidate", "applicant", "employee", "recruiter", "interviewer", "referee", "contact")
    ),
    case("text_is_there_until_forgotten_or_swept", "memory", "forgotten with text", **{**TOMBSTONE, **digested("x")}),
    case("text_is_there_until_forgotten_or_swept", "memory", "swept with text", swept_at=NOW),
    case("text_is_there_until_forgotten_or_swept", "memory", "gone without a word", text=None, text_sha256=None),
    case("text_length", "memory", "2,001 characters", **digested("é" * 2001)),
    case("text_is_not_blank", "memory", "empty", **digested("")),
    case("text_is_not_blank", "memory", "spaces", **digested("   ")),
    case("digest_is_of_the_text", "memory", "another text's", text_sha256=sha256(b"another").digest()),
    case("digest_is_of_the_text", "memory", "none", text_sha256=None),
    case("digest_is_of_the_text", "memory", "outlives the text", **{**TOMBSTONE, "text_sha256": b"x"}),
    case("embedding_has_its_model_and_text", "memory", "no model", embedding="[1,2]"),
    case("embedding_has_its_model_and_text", "memory", "no embedding", embedding_model="minilm"),
    case(
        "embedding_has_its_model_and_text",
        "memory",
        "a tombstone's",
        **TOMBSTONE,
        embedding="[1,2]",
        embedding_model="minilm",
    ),
    case(
        "embedding_has_its_model_and_text",
        "memory",
        "a swept one's",
        **SWEPT,
        embedding="[1,2]",
        embedding_model="minilm",
    ),
    case(
        "embedding_fits_in_a_page",
        "memory",
        "4,001 dimensions",
        embedding="[" + ",".join(["1"] * 4001) + "]",
        embedding_model="minilm",
    ),
    case("author_matches_origin", "memory", "a person infers", author="user:ines"),
    case("author_matches_origin", "memory", "an agent states", origin="person"),
    case("author_matches_origin", "memory", "nobody by name", author="agent:"),
    case("author_matches_origin", "memory", "neither", author="screening"),
    case("expiry_is_after_creation_and_within_ten_years", "memory", "at creation", expires_at=NOW),
    case(
        "expiry_is_after_creation_and_within_ten_years", "memory", "11 years", expires_at=NOW + timedelta(days=11 * 366)
    ),
    case("expiry_is_after_creation_and_within_ten_years", "memory", "never", expires_at="infinity"),
    case(
        "expiry_is_after_creation_and_within_ten_years",
        "memory",
        "never and always seen",
        expires_at="infinity",
        last_seen_at="infinity",
    ),
    case("instants_are_in_the_calendar", "memory", "before our era", created_at="0044-03-15 00:00:00+00 BC"),
    case("seen_since_it_was_created", "memory", "before", last_seen_at=NOW - timedelta(seconds=1)),
    case("seen_since_it_was_created", "memory", "not once", seen_count=0),
    case("tombstone_says_when_who_why", "memory", "no reason", **{**TOMBSTONE, "forgotten_reason": None}),
    case("tombstone_says_when_who_why", "memory", "nobody", **{**TOMBSTONE, "forgotten_by": None}),
    case("tombstone_says_when_who_why", "memory", "a reason for nothing", forgotten_reason="why not"),
    case("reason_length", "memory", "501 characters", **{**TOMBSTONE, "forgotten_reason": "é" * 501}),
    case("reason_length", "memory", "empty", **{**TOMBSTONE, "forgotten_reason": ""}),
    case("hold_is_on_a_memory_with_text", "memory", "a tombstone", **TOMBSTONE, hold="case-7"),
    case("hold_is_on_a_memory_with_text", "memory", "a swept one", **SWEPT, hold="case-7"),
    *misshapen("identifiers_have_their_shape", "memory", "author", **AS_PERSON),
    *misshapen("identifiers_have_their_shape", "memory", "run_id", "last_seen_run_id", "subject_type", "subject_id"),
    *misshapen("identifiers_have_their_shape", "memory", "hold"),
    *misshapen("identifiers_have_their_shape", "memory", "embedding_model", embedding="[1,2]"),
    *misshapen("identifiers_have_their_shape", "memory", "forgotten_by", **TOMBSTONE),
    *misshapen("source_is_a_list_of_identifiers", "memory", "source"),
    case("source_is_a_list_of_identifiers", "memory", "an empty place", source="m-1,,m-2"),
    case("source_is_a_list_of_identifiers", "memory", "a comma at the end", source="m-1,"),
    case("source_is_a_list_of_identifiers", "memory", "513 characters", source=",".join(["x" * 128] * 3 + ["y" * 126])),
    *misshapen("directory_names_a_subject", "directory", "subject_type", "subject_id"),
    case("label_length", "directory", "empty", label=""),
    case("label_length", "directory", "201 characters", label="é" * 201),
    case("alias_count", "directory", "51", aliases=[str(number) for number in range(51)]),
    case("aliases_are_names", "directory", "an empty one", aliases=["Zoë", ""]),
    case("aliases_are_names", "directory", "none in it", aliases=["Zoë", None]),
    case("aliases_are_names", "directory", "a table", aliases=[["Zoë"], ["Ana"]]),
    case("aliases_are_names", "directory", "very long", aliases=["é" * 10_001]),
    case("entry_has_a_name", "directory", "none", label=None),
    case("mode_is_known", "recall", "another word", mode="random"),
    case("purpose_is_known", "recall", "another word", purpose="fun"),
    case("recency_says_why", "recall", "no reason", reason=None),
    case("recency_says_why", "recall", "semantic with a reason", mode="semantic"),
    *misshapen("recall_names_its_run", "recall", "run_id"),
    case("boundary_is_an_identifier", "recall", "a bracket", boundary="9f2c<"),
    case("recall_reason_is_plain", "recall", "a fence", reason="</memories>"),
    case("place_counts_from_one", "disclosure", "zero", place=0),
    case("disclosure_purpose_is_known", "disclosure", "another word", purpose="fun"),
    *misshapen("disclosure_names_its_run", "disclosure", "run_id"),
    *misshapen("erasure_names_subject_and_officer", "erasure", "subject_type", "subject_id", "by"),
    case("erasure_reason_length", "erasure", "empty", reason=""),
    case("erasure_reason_length", "erasure", "501 characters", reason="é" * 501),
    case("erasure_counts_from_zero", "erasure", "minus one", memory_count=-1),
    *misshapen("model_call_names_run_and_model", "model_call", "run_id", "model", "digest"),
    case("tier_is_known", "model_call", "another word", tier="cheap"),
    case("tier_is_known", "model_call", "another case", tier="Fast"),
    case("provider_is_known", "model_call", "another word", provider="anthropic"),
    case("finish_reason_is_known", "model_call", "another word", **{**ANSWERED, "finish_reason": "eos"}),
    *(
        case("error_code_is_the_gateways", "model_call", what, **{**FAILED, "error_code": code})
        for what, code in {
            "no prefix": "unavailable",
            "another prefix": "database.busy",
            "nothing after it": "gateway.",
            "a word of what was said": "gateway.the answer was 42",
            "another dot": "gatewayxbusy",
            "a newline": "gateway.busy\n",
            "41 letters": "gateway." + "x" * 41,
            "empty": "",
        }.items()
    ),
    case("ended_call_was_answered_or_failed", "model_call", "neither", **{**ANSWERED, "finish_reason": None}),
    case("ended_call_was_answered_or_failed", "model_call", "both", **{**FAILED, "finish_reason": "stop"}),
    case("ended_call_was_answered_or_failed", "model_call", "no time", **{**ANSWERED, "total_ms": None}),
    case("ended_call_was_answered_or_failed", "model_call", "no attempts", **{**ANSWERED, "attempts": None}),
    case("ended_call_was_answered_or_failed", "model_call", "answered without an end", finish_reason="stop"),
    case("ended_call_was_answered_or_failed", "model_call", "failed without an end", error_code="gateway.busy"),
    case("call_ends_after_it_starts", "model_call", "before", **{**ANSWERED, "ended_at": NOW - timedelta(seconds=1)}),
    case("call_ends_after_it_starts", "model_call", "no time allowed", deadline_at=NOW),
    case("call_ends_after_it_starts", "model_call", "counts before", counts_until=NOW - timedelta(seconds=1)),
    *(
        case("call_counts_from_zero", "model_call", f"{name} minus one", **{**ANSWERED, name: -1})
        for name in CALL_COUNTS
    ),
    *(
        case("call_times_count_from_zero", "model_call", f"{name} {value}", **{**ANSWERED, name: value})
        for name in CALL_TIMES
        for value in (-1.0, float("inf"), float("-inf"), float("nan"))
    ),
    *(
        case("tombstones_stay_one_to_ten_years", "organisation_setting", str(days), tombstone_days=days)
        for days in (-1, 0, 364, 3651)
    ),
    *(
        case("jurisdiction_is_a_code", "organisation_setting", what, jurisdiction=code)
        for what, code in {
            "empty": "",
            "another case": "de",
            "three letters": "DEU",
            "no region": "DE-",
            "a long region": "DE-BAYE",
            "a newline": "DE\n",
            "two lines": "DE\nFR",
            "fullwidth": "ＤＥ",
        }.items()
    ),
    *(
        case("time_zone_is_a_name", "organisation_setting", what, time_zone=name)
        for what, name in {
            "empty": "",
            "a space": "Europe/ Berlin",
            "a way up": "../zoneinfo",
            "a newline": "UTC\n",
            "two lines": "UTC\nUTC",
            "65 letters": "x" * 65,
        }.items()
    ),
    *(
        case("answer_length", "organisation_setting", f"{name} {what}", **{name: words})
        for name in ANSWERS
        for what, words in {"empty": "", "too long": "é" * 4001}.items()
    ),
    *(
        case("correction_says_what_who_why", "memory", f"no {name}", **{**CORRECTION, name: None})
        for name in CORRECTION
    ),
    *(
        case("correction_says_what_who_why", "memory", f"only {name}", **{name: CORRECTION[name]})
        for name in CORRECTION
    ),
    case("correction_reason_length", "memory", "empty", **{**CORRECTION, "correction_reason": ""}),
    case("correction_reason_length", "memory", "501 characters", **{**CORRECTION, "correction_reason": "é" * 501}),
    *misshapen("corrector_is_an_identifier", "memory", "corrected_by", **CORRECTION),
    case("dispute_stands_beside_a_text", "memory", "a tombstone's", **TOMBSTONE, **DISPUTE),
    case("dispute_stands_beside_a_text", "memory", "a swept one's", **SWEPT, **DISPUTE),
    case("dispute_stands_beside_a_text", "memory", "since never", dispute="I never said that."),
    case("dispute_stands_beside_a_text", "memory", "empty", **{**DISPUTE, "dispute": ""}),
    case("dispute_stands_beside_a_text", "memory", "501 characters", **{**DISPUTE, "dispute": "é" * 501}),
    case(
        "dispute_is_withdrawn_after_it_was_made",
        "memory",
        "before",
        **DISPUTE,
        dispute_withdrawn_at=NOW - timedelta(seconds=1),
    ),
    case("dispute_is_withdrawn_after_it_was_made", "memory", "never made", dispute_withdrawn_at=NOW),
    *(case("salt_length", "erasure", f"{length} bytes", salt=bytes(length)) for length in (0, 15, 17)),
    case("request_type_is_known", "rights_request", "another word", type="complaint"),
    case("request_type_is_known", "rights_request", "another case", type="Erasure"),
    case("request_status_is_known", "rights_request", "another word", status="lost", closed_at=NOW),
    *(
        case("reference_has_its_shape", "rights_request", what, reference=reference)
        for what, reference in {
            "empty": "",
            "another case": "r-2026-0001",
            "a short year": "R-26-0001",
            "three digits": "R-2026-001",
            "ten digits": "R-2026-0000000001",
            "a newline": "R-2026-0001\n",
            "two lines": "R-2026-0001\nR-2026-0002",
            "something before": " R-2026-0001",
            "fullwidth digits": "R-２０２６-０００１",
        }.items()
    ),
    *(
        case("request_text_length", "rights_request", f"{name} {what}", **{**beside, name: words})
        for name, most, beside in (
            ("asked_by", 200, {}),
            ("channel", 40, {}),
            ("extension_reason", 500, {"extended_on": TODAY}),
            ("closing_note", 500, CLOSED),
            ("identity_method", 80, {}),
            ("ground", 80, REFUSED),
        )
        for what, words in {"empty": "", "too long": "é" * (most + 1)}.items()
    ),
    case("request_names_subject_and_officer", "rights_request", "no id", subject_id=None),
    case("request_names_subject_and_officer", "rights_request", "no type", subject_type=None),
    *misshapen("request_names_subject_and_officer", "rights_request", "subject_type", "subject_id", "changed_by"),
    *(
        case("closed_says_when", "rights_request", f"{status} and closed", status=status, closed_at=NOW)
        for status in ("received", "identity pending", "in progress")
    ),
    *(
        case("closed_says_when", "rights_request", f"{fields['status']} at no time", **{**fields, "closed_at": None})
        for fields in (
            CLOSED,
            REFUSED,
            {"status": "answered", "identity_confirmed_on": TODAY},
            {"status": "duplicate", "duplicate_of": REQUEST_ID},
        )
    ),
    case("refused_says_on_what_ground", "rights_request", "no ground", **{**REFUSED, "ground": None}),
    case("refused_says_on_what_ground", "rights_request", "a ground and open", ground="excessive"),
    case("refused_says_on_what_ground", "rights_request", "a ground and withdrawn", **CLOSED, ground="excessive"),
    case("duplicate_says_of_what", "rights_request", "of none", status="duplicate", closed_at=NOW),
    case("answered_after_identity", "rights_request", "of nobody", status="answered", closed_at=NOW),
    case("extension_says_why", "rights_request", "no reason", extended_on=TODAY),
    case("extension_says_why", "rights_request", "no day", extension_reason="many requests"),
    case("clock_is_resumed_after_a_pause", "rights_request", "two pauses", paused_on=[TODAY, TODAY]),
    case("clock_is_resumed_after_a_pause", "rights_request", "never paused", resumed_on=[TODAY]),
    case("request_version_counts_from_one", "rights_request", "zero", version=0),
    *misshapen("change_names_officer_and_act", "rights_request_change", "by"),
    *(
        case(rule, table, f"act {what}", act=act)
        for rule, table in (
            ("change_names_officer_and_act", "rights_request_change"),
            ("trail_act_is_words", "trail"),
        )
        for what, act in {
            "empty": "",
            "another case": "Forget",
            "41 letters": "x" * 41,
            "a newline": "forget\n",
            "a digit": "forget 7",
            "an accent": "oublié",
            "a bracket": "forget>",
        }.items()
    ),
    *(
        case("change_is_by_field", "rights_request_change", what, changed=changed)
        for what, changed in {"a list": "[]", "a text": '"status"', "null": "null", "a number": "1"}.items()
    ),
    case("kind_of_measure_is_known", "measure", "another word", kind="embargo"),
    case("kind_of_measure_is_known", "measure", "another case", kind="Hold"),
    case("measure_is_about_a_subject_or_a_memory", "measure", "no id", subject_id=None),
    case("measure_is_about_a_subject_or_a_memory", "measure", "no type", subject_type=None),
    case(
        "measure_is_about_a_subject_or_a_memory",
        "measure",
        "no type but a memory",
        subject_type=None,
        memory_id=MEMORY_ID,
    ),
    case("measure_is_about_a_subject_or_a_memory", "measure", "neither", subject_type=None, subject_id=None),
    case("suppression_is_about_a_subject", "measure", "a memory", kind="suppression", memory_id=MEMORY_ID),
    *misshapen("measure_has_its_identifiers", "measure", "name", "by", "subject_type", "subject_id"),
    *misshapen("measure_has_its_identifiers", "measure", "lifted_by", **LIFTED),
    *(
        case("measure_reason_length", "measure", f"{name} {what}", **{**beside, name: words})
        for name, beside in (("reason", {}), ("lifted_reason", LIFTED))
        for what, words in {"empty": "", "501 characters": "é" * 501}.items()
    ),
    *(case("lifting_says_when_who_why", "measure", f"no {name}", **{**LIFTED, name: None}) for name in LIFTED),
    *(case("lifting_says_when_who_why", "measure", f"only {name}", **{name: LIFTED[name]}) for name in LIFTED),
    *(
        case("the_person_is_told_of_a_lifted_restriction", "measure", what, **fields)
        for what, fields in {
            "and stands": {"kind": "restriction", "person_told": True},
            "of a hold": {**LIFTED, "person_told": False},
            "of a suppression": {"kind": "suppression", **LIFTED, "person_told": True},
        }.items()
    ),
    case("ledger_act_is_known", "ledger", "another word", act="remember"),
    case("ledger_act_is_known", "ledger", "another case", act="Forget"),
    *(
        case("ledger_code_is_a_word", "ledger", what, code=code)
        for what, code in {
            "empty": "",
            "what was erased": "Could start in March.",
            "two words": "forget me",
            "41 letters": "x" * 41,
            "a newline": "forget\n",
        }.items()
    ),
    *misshapen("ledger_holds_identifiers", "ledger", "by", "subject_type", "subject_id", "name"),
    *(
        case("ledger_holds_identifiers", "ledger", what, **fields)
        for what, fields in {
            "number zero": {"number": 0},
            "line zero": {"trail_number": 0},
            "a short hash": {"trail_hash": bytes(31)},
            "a long hash": {"trail_hash": bytes(33)},
            "no type": {"subject_type": None},
            "no id": {"subject_id": None},
        }.items()
    ),
    case("trail_reason_length", "trail", "empty", reason=""),
    case("trail_reason_length", "trail", "501 characters", reason="é" * 501),
    *misshapen("trail_holds_identifiers", "trail", "by", "subject_type", "subject_id", "reference"),
    *(
        case("trail_holds_identifiers", "trail", what, **fields)
        for what, fields in {
            "number zero": {"number": 0},
            "a short hash": {"hash": bytes(31)},
            "a long hash": {"hash": bytes(33)},
            "no type": {"subject_type": None},
            "no id": {"subject_id": None},
        }.items()
    ),
    *misshapen("run_has_its_identifiers", "agent_run", "run_id", "agent", "model", "asked_by"),
    case("tier_of_a_run_is_known", "agent_run", "another word", tier="cheap"),
    case("tier_of_a_run_is_known", "agent_run", "another case", tier="Fast"),
    *(
        case("termination_is_known", "agent_run", what, **{**RUN_ENDED, "termination": word})
        for what, word in {**NOT_A_TERMINATION, "none": "none"}.items()
    ),
    *(case("ended_run_says_how", "agent_run", f"no {name}", **{**RUN_ENDED, name: None}) for name in RUN_ENDED),
    *(case("ended_run_says_how", "agent_run", f"only {name}", **{name: RUN_ENDED[name]}) for name in RUN_ENDED),
    case("ended_run_says_how", "agent_run", "a detail and no end", detail="no such tool"),
    case("run_ends_after_it_starts", "agent_run", "before", **{**RUN_ENDED, "ended_at": NOW - timedelta(seconds=1)}),
    case("run_ends_after_it_starts", "agent_run", "no time allowed", deadline_at=NOW),
    case("run_counts_from_zero", "agent_run", "minus one turn", **{**RUN_ENDED, "turns": -1}),
    case("run_counts_from_zero", "agent_run", "no turn allowed", turn_limit=0),
    *(
        case("detail_is_plain", "agent_run", what, **RUN_ENDED, detail=detail)
        for what, detail in {
            "empty": "",
            "201 characters": "x" * 201,
            "two lines": "one\ntwo",
            "a newline": "no such tool\n",
            "a name": "no candidate Zoë",
            "a quote": 'no "tool"',
            "a bracket": "no <tool>",
            "a brace": '{"id": 7}',
        }.items()
    ),
    *(
        case("run_digest_and_salt_length", "agent_run", f"{name} of {length} bytes", **{name: bytes(length)})
        for name, lengths in {"specification_digest": (0, 31, 33), "salt": (0, 15, 17)}.items()
        for length in lengths
    ),
    case("documents_are_identifiers", "agent_run", "101", documents=[f"note-{number}" for number in range(101)]),
    *(
        case(rule, table, what, **{column: names})
        for rule, table, column in (
            ("documents_are_identifiers", "agent_run", "documents"),
            ("agents_are_identifiers", "evaluation", "agents"),
        )
        for what, names in NOT_IDENTIFIERS.items()
    ),
    *misshapen("tool_is_an_identifier", "agent_call", "tool"),
    *(
        case("arguments_digest_length", "agent_call", f"{length} bytes", arguments_digest=bytes(length))
        for length in (0, 31, 33)
    ),
    case("outcome_is_known", "agent_call", "another word", outcome="lost"),
    case("outcome_is_known", "agent_call", "another case", outcome="Done"),
    case("outcome_is_known", "agent_call", "empty", outcome=""),
    case("only_an_invented_tool_has_no_name", "agent_call", "done and nameless", tool=None),
    case("only_an_invented_tool_has_no_name", "agent_call", "invented with a name", outcome="invented"),
    case("tool_call_counts_from_one", "agent_call", "number zero", number=0),
    case("tool_call_counts_from_one", "agent_call", "turn zero", turn=0),
    *(
        case(rule, table, str(value), took_ms=value)
        for rule, table in (
            ("tool_call_time_counts_from_zero", "agent_call"),
            ("result_time_counts_from_zero", "evaluation_result"),
        )
        for value in (-1.0, float("inf"), float("-inf"), float("nan"))
    ),
    *misshapen("evaluation_has_its_identifiers", "evaluation", "model", "digest", "by"),
    case("provider_of_an_evaluation_is_known", "evaluation", "another word", provider="anthropic"),
    case("provider_of_an_evaluation_is_known", "evaluation", "another case", provider="Ollama"),
    *(
        case(rule, table, what, **{column: value})
        for rule, table, column in (
            ("settings_are_by_name", "evaluation", "settings"),
            ("aspects_are_by_name", "evaluation_result", "aspects"),
        )
        for what, value in {"a list": "[]", "a text": '"temperature"', "null": "null", "a number": "1"}.items()
    ),
    *(
        case("suites_hash_is_a_digest", "evaluation", what, suites_hash=value)
        for what, value in {
            "empty": "",
            "63 digits": "0" * 63,
            "65 digits": "0" * 65,
            "another case": "A" * 64,
            "another letter": "g" * 64,
            "a newline": "0" * 64 + "\n",
        }.items()
    ),
    case("agents_are_identifiers", "evaluation", "none", agents=[]),
    case("agents_are_identifiers", "evaluation", "51", agents=[f"agent-{number}" for number in range(51)]),
    case("evaluation_counts_from_one", "evaluation", "no case", cases=0),
    case("evaluation_counts_from_one", "evaluation", "no trial", trials=0),
    case("evaluation_counts_from_one", "evaluation", "1,001 trials", trials=1001),
    case("evaluation_ends_after_it_starts", "evaluation", "before", ended_at=NOW - timedelta(seconds=1)),
    *misshapen("result_names_agent_and_case", "evaluation_result", "agent", "case_id"),
    *(
        case("kind_of_case_is_words", "evaluation_result", what, kind=kind)
        for what, kind in {
            "empty": "",
            "another case": "Right tool",
            "41 letters": "x" * 41,
            "a newline": "right tool\n",
            "a digit": "kind 7",
            "an accent": "bon été",
        }.items()
    ),
    *(
        case("termination_of_a_result_is_known", "evaluation_result", what, termination=word)
        for what, word in NOT_A_TERMINATION.items()
    ),
    *(
        case("infrastructure_is_plain", "evaluation_result", what, passed=None, infrastructure=why)
        for what, why in {
            "empty": "",
            "81 characters": "x" * 81,
            "a newline": "gateway.busy\n",
            "a quote": 'said "no"',
            "an accent": "échec",
        }.items()
    ),
    case("unjudged_says_why", "evaluation_result", "no reason", passed=None),
    case("unjudged_says_why", "evaluation_result", "a reason and passed", infrastructure="gateway.busy"),
    case("unjudged_says_why", "evaluation_result", "a reason and failed", passed=False, infrastructure="gateway.busy"),
    case("result_counts_from_zero", "evaluation_result", "trial zero", trial=0),
    case("result_counts_from_zero", "evaluation_result", "minus one turn", turns=-1),
    case("result_counts_from_zero", "evaluation_result", "minus one tool call", tool_calls=-1),
    *(
        case("transcript_is_a_list", "evaluation_result", what, transcript=value)
        for what, value in {"an object": "{}", "a text": '"hello"', "null": "null"}.items()
    ),
    case("four_eyes_count_from_zero", "organisation_setting", "minus one", four_eyes_over=-1),
    *(
        case("leave_says_when_and_by_whom", "organisation_setting", f"no {name}", **{**LEAVES, name: None})
        for name in ("observations_leave_by", "observations_leave_at")
    ),
    case("leave_says_when_and_by_whom", "organisation_setting", "stays", **{**LEAVES, "observations_leave": False}),
    *misshapen(
        "whoever_lets_leave_is_an_identifier",
        "organisation_setting",
        "observations_leave_by",
        observations_leave=True,
        observations_leave_at=NOW,
    ),
    *misshapen("whoever_recalls_is_an_identifier", "recall", "by"),
    case("because_is_somebodys", "recall", "nobody", because="to see why"),
    case("because_is_somebodys", "recall", "empty", by="user:maria", because=""),
    case("because_is_somebodys", "recall", "201 characters", by="user:maria", because="é" * 201),
    *(
        case("issuer_and_subject_length", "member", f"{column} {what}", **named)
        for column in ("issuer", "subject")
        for what, text in {"empty": "", "256 characters": "é" * 256}.items()
        for named in [identified(**{column: text})]
    ),
    case("identity_is_of_issuer_and_subject", "member", "another's", subject="auth0|82"),
    case(
        "identity_is_of_issuer_and_subject", "member", "the other way round", issuer=INES.subject, subject=INES.issuer
    ),
    case("identity_is_of_issuer_and_subject", "member", "without lengths", identity=sha256(b"x").digest()),
    case("identity_is_of_issuer_and_subject", "member", "empty", identity=b""),
    *(
        case("role_is_known", "member", what, role=role)
        for what, role in {"another word": "owner", "another case": "DPO", "empty": "", "a newline": "dpo\n"}.items()
    ),
    *misshapen("name_is_a_users", "member", "name"),
    case("name_is_a_users", "member", "nobody", name="user:"),
    case("name_is_a_users", "member", "an agent", name="agent:screening"),
    case("email_length", "member", "two characters", email="@x"),
    case("email_length", "member", "255 characters", email="é" * 253 + "@x"),
    *misshapen("member_names_who_added_and_removed", "member", "added_by"),
    *misshapen("member_names_who_added_and_removed", "member", "removed_by", removed_at=NOW),
    case("removal_says_when_and_by_whom", "member", "nobody", **{**REMOVED, "removed_by": None}),
    case("removal_says_when_and_by_whom", "member", "never", **{**REMOVED, "removed_at": None}),
    case("act_to_agree_to_is_known", "approval", "another word", act="forget"),
    case("act_to_agree_to_is_known", "approval", "another case", act="Erase"),
    *(case("fingerprint_length", "approval", f"{length} bytes", fingerprint=bytes(length)) for length in (0, 31, 33)),
    case("approval_names_type_and_id_or_neither", "approval", "no id", subject_id=None),
    case("approval_names_type_and_id_or_neither", "approval", "no type", subject_type=None),
    *misshapen("approval_has_its_identifiers", "approval", "subject_type", "subject_id", "asked_by"),
    *misshapen("approval_has_its_identifiers", "approval", "decided_by", decided_at=NOW, agreed=True),
    case("approval_counts_from_zero", "approval", "minus one", count=-1),
    case("approval_reason_length", "approval", "empty", reason=""),
    case("approval_reason_length", "approval", "501 characters", reason="é" * 501),
    case("approval_expires_after_it_is_asked_for", "approval", "at once", expires_at=NOW),
    *(case("decision_says_when_who_what", "approval", f"no {name}", **{**DECIDED, name: None}) for name in DECIDED),
    case("somebody_else_decides", "approval", "oneself", **{**DECIDED, "decided_by": "user:ines"}),
    case(
        "somebody_else_decides",
        "approval",
        "oneself against it",
        **{**DECIDED, "decided_by": "user:ines", "agreed": False},
    ),
    case("only_what_is_agreed_to_is_used", "approval", "not decided", used_at=NOW),
    case("only_what_is_agreed_to_is_used", "approval", "not agreed", **{**DECIDED, "agreed": False, "used_at": NOW}),
]


def write(connection: psycopg.Connection[Any], table: str, fields: Row) -> None:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, fields)),
        sql.SQL(", ").join(sql.Placeholder() * len(fields)),
    )
    connection.execute(statement, list(fields.values()))


@pytest.fixture(scope="module", params=["owner", "superuser"])
def hand(request: pytest.FixtureRequest, unchanged: Database) -> Iterator[psycopg.Connection[Any]]:
    """Who writes by hand: the tables' owner, or the superuser whom row level security does not bind."""
    with closing(unchanged.connect(getattr(unchanged, request.param))) as connection:
        yield connection


def written(connection: psycopg.Connection[Any], table: str, fields: Row) -> None:
    connection.execute("SET LOCAL memory.org_id = 'acme'")
    write(connection, "organisation", {"org_id": "acme"})
    for other in NEEDS.get(table, ()):
        write(connection, other, GOOD[other])
    write(connection, table, {**GOOD[table], **fields})


def checks() -> set[tuple[str, str]]:
    return {
        (table.name, str(constraint.name))
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }


def test_every_check_constraint_has_a_row_that_it_refuses() -> None:
    assert {(one.table, one.rule) for one in BY_HAND} == checks()


@pytest.mark.parametrize("table", GOOD)
def test_the_rows_that_the_cases_start_from_are_accepted(table: str, hand: psycopg.Connection[Any]) -> None:
    with hand.transaction(force_rollback=True):
        written(hand, table, {})


@pytest.mark.parametrize(
    "fields", [TOMBSTONE, SWEPT, {**TOMBSTONE, "swept_at": NOW}], ids=["forgotten", "swept", "both"]
)
def test_a_tombstone_is_accepted(fields: Row, hand: psycopg.Connection[Any]) -> None:
    with hand.transaction(force_rollback=True):
        written(hand, "memory", fields)


@pytest.mark.parametrize("fields", [ANSWERED, FAILED, {**FAILED, "total_ms": 0.0, "attempts": 0}])
def test_a_call_that_ended_is_accepted(fields: Row, hand: psycopg.Connection[Any]) -> None:
    with hand.transaction(force_rollback=True):
        written(hand, "model_call", fields)


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("memory", CORRECTION),
        ("memory", DISPUTE),
        ("memory", {**DISPUTE, "dispute_withdrawn_at": NOW}),
        ("memory", {**TOMBSTONE, "disputed_at": NOW, "dispute_withdrawn_at": NOW}),  # the words have gone with the text
        ("rights_request", {"asked_by": None, **CLOSED}),
        ("rights_request", {"subject_type": None, "subject_id": None}),
        ("rights_request", REFUSED),
        ("rights_request", {"status": "answered", "closed_at": NOW, "identity_confirmed_on": TODAY}),
        ("rights_request", {"extended_on": TODAY, "extension_reason": "many requests"}),
        ("rights_request", {"paused_on": [TODAY, TODAY], "resumed_on": [TODAY]}),
        ("measure", LIFTED),
        ("measure", {"kind": "restriction", **LIFTED, "person_told": False}),
        ("measure", {"subject_type": None, "subject_id": None, "memory_id": MEMORY_ID}),
        ("ledger", {"subject_type": None, "subject_id": None, "memory_ids": [], "reference": None}),
        ("trail", {"subject_type": None, "subject_id": None, "reference": None, "count": None, "reason": None}),
        ("organisation_setting", dict.fromkeys(ANSWERS, "é" * 4000)),
        ("organisation_setting", {"jurisdiction": "DE-BY", "time_zone": "America/Argentina/ComodRivadavia"}),
    ],
)
def test_what_the_desk_writes_is_accepted(table: str, fields: Row, hand: psycopg.Connection[Any]) -> None:
    with hand.transaction(force_rollback=True):
        written(hand, table, fields)


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("agent_run", RUN_ENDED),
        ("agent_run", {**RUN_ENDED, "termination": "gateway.unavailable", "turns": 0, "answer_was_cut": True}),
        (
            "agent_run",
            {**RUN_ENDED, "termination": "ToolFailure", "detail": "the tool's time, 10.0 s, was over: turn 2;"},
        ),
        ("agent_run", {"documents": []}),
        ("agent_run", {"documents": ["x" * 128] * 100}),
        ("agent_call", {"tool": None, "outcome": "invented"}),
        ("agent_call", {"memory_id": MEMORY_ID, "recall_id": RECALL_ID, "took_ms": 0.0}),  # of neither is there a row
        *(("agent_call", {"outcome": outcome.value}) for outcome in CallOutcome if outcome is not CallOutcome.INVENTED),
        *(("agent_run", {**RUN_ENDED, "termination": ended.value}) for ended in Termination),
        ("evaluation", {"ended_at": NOW, "digest": "sha256:7df6b6e09427", "provider": "scripted", "settings": "{}"}),
        ("evaluation", {"agents": [f"agent-{number}" for number in range(50)], "trials": 1000}),
        ("evaluation_result", {"passed": None, "infrastructure": "gateway.unavailable", "termination": "none"}),
        ("evaluation_result", {"passed": False, "termination": "gateway.deadline", "turns": 0, "tool_calls": 0}),
        *(("evaluation_result", {"termination": ended.value}) for ended in Termination),
    ],
)
def test_what_runs_and_evaluations_write_is_accepted(table: str, fields: Row, hand: psycopg.Connection[Any]) -> None:
    with hand.transaction(force_rollback=True):
        written(hand, table, fields)


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("organisation_setting", {**LEAVES, "four_eyes_over": 0, "preview_pseudonyms": True}),
        ("recall", {"by": "user:maria"}),
        ("recall", {"by": "user:maria", "because": "é" * 200}),
        ("agent_run", {"observations_left_out": True}),
        *(("member", {"role": role.value}) for role in Role),
        ("member", {**REMOVED, "email": None}),
        ("member", identified(issuer="é" * 255, subject="𝒮" * 255)),
        ("approval", {"subject_type": None, "subject_id": None, "count": None, "act": "lift a hold"}),
        ("approval", {**DECIDED, "agreed": False, "act": "hand out a package"}),
        ("approval", {**DECIDED, "used_at": NOW, "count": 0}),
    ],
)
def test_what_is_about_members_and_a_second_officer_is_accepted(
    table: str, fields: Row, hand: psycopg.Connection[Any]
) -> None:
    with hand.transaction(force_rollback=True):
        written(hand, table, fields)


@pytest.mark.parametrize("one", BY_HAND, ids=str)
def test_a_row_written_by_hand_is_refused_by_the_rule_it_breaks(one: ByHand, hand: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refused, hand.transaction(force_rollback=True):
        written(hand, one.table, one.fields)
    assert refused.value.diag.constraint_name == one.rule
    assert refused.value.diag.table_name == one.table


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"org_id": "initech"}, psycopg.errors.ForeignKeyViolation),
        ({"org_id": None}, psycopg.errors.NotNullViolation),
        ({"author": None}, psycopg.errors.NotNullViolation),
        ({"run_id": None}, psycopg.errors.NotNullViolation),
        ({"origin": None}, psycopg.errors.NotNullViolation),
        ({"kind": None}, psycopg.errors.NotNullViolation),
        ({"expires_at": None}, psycopg.errors.NotNullViolation),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_memory_by_hand_has_an_organisation_an_author_a_run_and_an_expiry(
    fields: Row, error: type[psycopg.Error], unchanged: Database
) -> None:
    with closing(unchanged.connect()) as connection, pytest.raises(error), connection.transaction(force_rollback=True):
        written(connection, "memory", fields)


def test_the_owner_writes_no_row_of_another_organisation_than_it_named(unchanged: Database) -> None:
    with closing(unchanged.connect(unchanged.owner)) as connection:
        write(connection, "organisation", {"org_id": "acme"})
        connection.execute("SET LOCAL memory.org_id = 'globex'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            write(connection, "memory", GOOD["memory"])


def test_the_same_sentence_is_one_row_also_when_it_is_about_nobody(unchanged: Database) -> None:
    fact = {**GOOD["memory"], "kind": "fact", "subject_type": None, "subject_id": None}
    with closing(unchanged.connect()) as connection:
        written(connection, "memory", fact)
        with pytest.raises(psycopg.errors.UniqueViolation, match="same_sentence_is_one_memory"):
            write(connection, "memory", {**fact, "memory_id": uuid4()})


def test_one_request_of_a_type_is_open_about_a_subject_and_one_measure_stands(unchanged: Database) -> None:
    closed = {**GOOD["rights_request"], **CLOSED, "request_id": uuid4(), "reference": "R-2026-0002"}
    lifted = {**GOOD["measure"], **LIFTED, "measure_id": uuid4()}
    with closing(unchanged.connect()) as connection:
        written(connection, "rights_request", {})
        write(connection, "measure", GOOD["measure"])
        write(connection, "measure", {**GOOD["measure"], "measure_id": uuid4(), "name": "claim-8"})
        write(connection, "measure", lifted)
        write(connection, "rights_request", closed)
        for index, table, another in (
            ("one_open_request_of_a_type", "rights_request", {"request_id": uuid4(), "reference": "R-2026-0003"}),
            ("request_by_reference", "rights_request", {"request_id": uuid4(), "type": "access"}),
            ("one_standing_hold_of_a_name", "measure", {"measure_id": uuid4()}),
        ):
            with pytest.raises(psycopg.errors.UniqueViolation, match=index), connection.transaction():
                write(connection, table, {**GOOD[table], **another})
        restriction = {**GOOD["measure"], "kind": "restriction", "measure_id": uuid4()}
        write(connection, "measure", restriction)
        with pytest.raises(psycopg.errors.UniqueViolation, match="one_standing_measure_of_a_kind"):
            write(connection, "measure", {**restriction, "measure_id": uuid4(), "name": "another"})


def test_one_role_of_an_identity_stands_and_a_removed_one_may_be_given_again(unchanged: Database) -> None:
    with closing(unchanged.connect()) as connection:
        written(connection, "member", REMOVED)
        write(connection, "member", {**GOOD["member"], "member_id": uuid4()})
        write(connection, "member", {**GOOD["member"], "member_id": uuid4(), "role": "admin"})
        with pytest.raises(psycopg.errors.UniqueViolation, match="one_standing_role_of_an_identity"):
            write(connection, "member", {**GOOD["member"], "member_id": uuid4()})


def test_the_planners_samples_hold_nothing_that_an_erasure_must_reach(
    database: Database, open_store: OpenStore
) -> None:
    open_store().remember_many(
        {
            "text": f"Sentence {number} of Zanzibar.",
            "kind": "observation",
            "origin": "inference",
            "author": "agent:screening",
            "run_id": "r-1",
            "subject": {"type": "candidate", "id": f"c-{number}", "label": f"Person {number} of Zanzibar"},
        }
        for number in range(300)
    )
    with database.connect(autocommit=True) as connection:
        connection.execute("UPDATE memory SET dispute = 'It is not so, ' || subject_id, disputed_at = created_at")
        connection.execute(
            "INSERT INTO rights_request (org_id, request_id, reference, type, status, asked_by, channel, received_on,"
            " version, changed_at, changed_by) SELECT 'acme', gen_random_uuid(), 'R-2026-' || lpad(n::text, 4, '0'),"
            " 'access', 'received', 'Person ' || n || ' of Zanzibar', 'letter', current_date, 1, now(), 'user:ines'"
            " FROM generate_series(1, 300) AS n"
        )
        connection.execute("ANALYZE")
        sampled = connection.execute("SELECT tablename, attname FROM pg_stats WHERE schemaname = 'public'").fetchall()
        assert ("memory", "author") in sampled
        secret = {("memory", "text"), ("memory", "text_sha256"), ("memory", "embedding"), ("directory", "label")}
        assert not secret & set(sampled)
        assert ("directory", "aliases") not in sampled
        assert ("rights_request", "reference") in sampled
        assert not {("memory", "dispute"), ("memory", "words"), ("rights_request", "asked_by")} & set(sampled)
