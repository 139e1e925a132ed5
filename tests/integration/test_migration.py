"""Revisions 000017 to 000019: up, down, printed, and the rules that they keep against rows written by hand."""

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
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from conftest import Database, OpenStore, connect
from psycopg import sql
from sqlalchemy import URL, CheckConstraint, create_engine

from memory_core import MemoryStore
from memory_core.config import Settings, settings
from memory_core.db import database as db
from memory_core.db import embedded, schema
from memory_core.db.engine import close_engines
from memory_core.db.tables import TENANT_TABLES, metadata
from memory_core.errors import DatabaseError, NotMigrated, SettingsError, UnsafeRole

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
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1
"""
GRANTS = """
    SELECT c.relname, c.relacl::text, a.attname, a.attacl::text, a.attstorage
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 ORDER BY 1, 3
"""
OURS = ["alembic_version", *sorted(metadata.tables)]


def migrated(database: Database, **options: Any) -> tuple[str | None, str | None]:
    return schema.migrate(database.owner, application_role="memory_app", **options)


# Up and down


def test_the_migration_goes_up_down_to_nothing_and_up_again(new_database: NewDatabase) -> None:
    empty = new_database()
    assert migrated(empty) == (None, "000019")
    first = [rows(empty, query) for query in (COLUMNS, CONSTRAINTS, INDEXES, SECURITY, GRANTS)]
    assert [name for (name,) in rows(empty, TABLES)] == sorted(OURS)

    assert migrated(empty, revision="base") == ("000019", None)
    assert [name for (name,) in rows(empty, TABLES)] == ["alembic_version"]

    assert migrated(empty) == (None, "000019")
    assert [rows(empty, query) for query in (COLUMNS, CONSTRAINTS, INDEXES, SECURITY, GRANTS)] == first


def test_the_newest_migration_is_number_19() -> None:
    assert schema.newest_revision() == "000019"


def test_migrating_what_is_migrated_changes_nothing(database: Database) -> None:
    with database.connect() as connection:
        connection.execute("INSERT INTO organisation VALUES ('acme')")
    assert migrated(database) == ("000019", "000019")
    assert rows(database, "SELECT org_id FROM organisation") == [("acme",)]


def test_the_migration_goes_down_also_where_memories_are_stored(database: Database) -> None:
    with MemoryStore.open("acme", database_url=database.application, embedder=None) as store:
        store.remember("We never meet on Fridays.", kind="fact", origin="person", author="user:a", run_id="r-1")
        store.recall("when?", run_id="r-2")
    close_engines()
    migrated(database, revision="base")
    assert rows(database, TABLES) == [("alembic_version",)]


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
    assert done == [("000019", "000019"), (None, "000019")]


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
    assert db.migrate(chosen) == (None, "000019")
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
    assert rows(empty, "SELECT version_num FROM alembic_version") == [("000019",)]
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
    assert not writable & (written_once | {"created_at"})


def test_the_application_adds_to_a_call_what_became_of_it_and_rewrites_nothing_else(unchanged: Database) -> None:
    query = """
        SELECT attname FROM pg_attribute WHERE attrelid = 'model_call'::regclass AND attnum > 0
          AND NOT has_column_privilege('memory_app', 'model_call', attname, 'UPDATE')
    """
    written_once = {"org_id", "call_id", "run_id", "tier", "model", "provider", "started_at", "deadline_at"}
    assert {name for (name,) in rows(unchanged, query)} == written_once | {"estimated_tokens", "memory_tokens"}


RECORDS = ["memory", "recall", "disclosure", "erasure", "model_call", "organisation", "organisation_setting"]


@pytest.mark.parametrize("table", RECORDS)
def test_the_application_may_not_delete_what_is_a_record(table: str, unchanged: Database) -> None:
    for right in ("DELETE", "TRUNCATE"):
        assert rows(unchanged, f"SELECT has_table_privilege('memory_app', '{table}', '{right}')") == [(False,)]


# Rows written by hand

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MEMORY_ID = UUID("01938000-0000-7000-8000-000000000001")
RECALL_ID = UUID("01938000-0000-7000-8000-000000000002")
ERASURE_ID = UUID("01938000-0000-7000-8000-000000000003")
CALL_ID = UUID("01938000-0000-7000-8000-000000000004")


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
}
NEEDS = {"disclosure": ("recall", "memory")}


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


AS_PERSON = {"origin": "person", "author": "user:ines"}
ANSWERED = {"ended_at": NOW + timedelta(seconds=1), "finish_reason": "stop", "total_ms": 900.0, "attempts": 1}
FAILED = {**ANSWERED, "finish_reason": None, "error_code": "gateway.unavailable"}
CALL_COUNTS = ("estimated_tokens", "memory_tokens", "counted_tokens", "prompt_tokens", "output_tokens")
CALL_COUNTS += ("attempts", "tool_calls", "tool_calls_in_text", "tool_call_faults")
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
        connection.execute("ANALYZE")
        sampled = connection.execute("SELECT tablename, attname FROM pg_stats WHERE schemaname = 'public'").fetchall()
        assert ("memory", "author") in sampled
        secret = {("memory", "text"), ("memory", "text_sha256"), ("memory", "embedding"), ("directory", "label")}
        assert not secret & set(sampled)
        assert ("directory", "aliases") not in sampled
