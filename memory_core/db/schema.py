"""The schema's revision: applied, printed, checked."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql
from sqlalchemy import URL, Connection, Engine, text

from memory_core.db.engine import new_engine, translated_errors
from memory_core.db.tables import TENANT_TABLES
from memory_core.errors import DatabaseReadOnly, NotMigrated, NoVectorExtension, UnsafeRole

MIGRATIONS = Path(__file__).parent / "migrations"
LEAST_VECTOR = (0, 8, 4)  # earlier 0.8 releases lose rows when an HNSW index is vacuumed
_MIGRATION_LOCK = 0x6D656D6F7279  # "memory": one migration of a database at a time


@cache
def newest_revision() -> str:
    """Return the revision that this code needs."""
    head = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert head is not None, "no migration is packaged"  # noqa: S101
    return head


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}


def migrate(owner: URL, *, application_role: str, revision: str = "head") -> tuple[str | None, str | None]:
    """Bring a database to a revision and return the revisions before and after.

    `owner` is the role that owns the tables; `application_role` is granted what the product needs. Raises
    `NoVectorExtension`, `UnsafeRole` where a role or right is missing, or another `DatabaseError`; nothing is then changed.
    """
    engine = new_engine(owner)
    try:
        with translated_errors(), engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            before = _revision(connection)
            if before is not None and before not in _known():
                raise NotMigrated(
                    f"the database is at revision {before}, which this version ({newest_revision()}) does not know"
                )
            if before is None or before != newest_revision():
                _require_vector_is_available(connection)
            _require_role(connection, application_role)
            down = revision == "base"
            config = _config(application_role=application_role, schema=_schema(connection))
            config.attributes["connection"] = connection
            if down:
                command.downgrade(config, revision)
            else:
                command.upgrade(config, revision)
            return before, _revision(connection)
    finally:
        engine.dispose()


def migrate_if_behind(owner: URL, *, application_role: str) -> None:
    """Migrate an embedded database that is not at the newest revision; costs one query where it is."""
    engine = new_engine(owner)
    try:
        with translated_errors(), engine.connect() as connection:
            behind = _revision(connection) != newest_revision()
    finally:
        engine.dispose()
    if behind:
        migrate(owner, application_role=application_role)


def migration_sql(*, application_role: str) -> str:
    """Return the whole migration as SQL, with the statements for the roles on top; touches no database."""
    output = io.StringIO()
    config = _config(application_role=application_role, schema="public")
    config.attributes["output"] = output
    command.upgrade(config, "head", sql=True)
    return role_sql(application_role) + "\n" + output.getvalue()


def role_sql(application_role: str) -> str:
    """Return the statements, for a superuser, that make the roles and the extension."""
    role = sql.Identifier(application_role).as_string(None)
    return (
        "-- Once, as a superuser:\n"
        "-- CREATE EXTENSION IF NOT EXISTS vector;\n"
        f"-- CREATE ROLE {role} LOGIN PASSWORD '…' NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;\n"
        "-- CREATE ROLE memory_owner LOGIN PASSWORD '…' NOSUPERUSER NOBYPASSRLS;\n"
        "-- ALTER DATABASE … OWNER TO memory_owner;\n"
    )


def require_usable(engine: Engine) -> None:
    """Check that a database may be used with this engine's role.

    Raises `NotMigrated`, `NoVectorExtension`, `DatabaseReadOnly` or `UnsafeRole`, each with what to do.
    """
    with translated_errors(), engine.connect() as connection:
        _require_bound_role(connection)
        _require_vector(connection)
        revision = _revision(connection)
        if revision != newest_revision():
            raise NotMigrated(
                f"the database is at revision {revision or 'none'}, this version needs {newest_revision()}; "
                "run: python -m memory_core migrate"
            )
        if connection.scalar(text("SELECT current_setting('transaction_read_only') = 'on'")):
            raise DatabaseReadOnly("the database is read only; point DATABASE_URL at the primary")
        connection.rollback()


def _require_bound_role(connection: Connection) -> None:
    loopholes: Sequence[str] = connection.scalars(
        text(
            """
            SELECT DISTINCT CASE WHEN r.rolsuper THEN 'is a superuser' ELSE 'has BYPASSRLS' END
            FROM pg_roles r
            WHERE (r.rolsuper OR r.rolbypassrls)
              AND (pg_has_role(current_user, r.oid, 'MEMBER') OR pg_has_role(session_user, r.oid, 'MEMBER'))
            UNION ALL
            SELECT DISTINCT 'owns the tables' FROM pg_class c
            WHERE c.relname = ANY(:tables)
              AND c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)
              AND (pg_has_role(current_user, c.relowner, 'MEMBER') OR pg_has_role(session_user, c.relowner, 'MEMBER'))
            """
        ),
        {"tables": [table.name for table in TENANT_TABLES]},
    ).all()
    if loopholes:
        raise UnsafeRole(
            f"the role in DATABASE_URL, or one it is a member of, {' and '.join(sorted(set(loopholes)))}, so it could bypass "
            "row level security; use the application's role (python -m memory_core migrate --sql prints its statements)"
        )


def vector_version(connection: Connection) -> str | None:
    """Return pgvector's version in this database, or None."""
    version: str | None = connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    return version


def _require_vector(connection: Connection) -> None:
    found = vector_version(connection)
    if found is None:
        if _revision(connection) is None:
            raise NotMigrated("the database is empty; run: python -m memory_core migrate")
        raise NoVectorExtension("the database has no pgvector; as a superuser: CREATE EXTENSION vector;")
    if _version(found) < LEAST_VECTOR:
        raise NoVectorExtension(f"pgvector is {found}, 0.8.4 or newer is needed; then: ALTER EXTENSION vector UPDATE;")


def _require_vector_is_available(connection: Connection) -> None:
    found = connection.scalar(
        text("SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'")
    )
    if found is None:
        raise NoVectorExtension("this PostgreSQL server has no pgvector; install pgvector 0.8.4 or newer on the server")
    if _version(found) < LEAST_VECTOR:
        raise NoVectorExtension(f"this server's pgvector is {found}; 0.8.4 or newer is needed")


def _require_role(connection: Connection, role: str) -> None:
    if not connection.scalar(text("SELECT count(*) FROM pg_roles WHERE rolname = :role"), {"role": role}):
        raise UnsafeRole(
            f"there is no role {role!r}, which DATABASE_URL names; python -m memory_core migrate --sql prints its statements"
        )


def _version(text_version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text_version.split(".") if part.isdigit())


def _revision(connection: Connection) -> str | None:
    if not connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL")):
        return None
    return MigrationContext.configure(connection).get_current_revision()


def _schema(connection: Connection) -> str:
    return str(connection.scalar(text("SELECT current_schema()")))


def _config(*, application_role: str, schema: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["quoted_role"] = sql.Identifier(application_role).as_string(None)
    config.attributes["quoted_schema"] = sql.Identifier(schema).as_string(None)
    return config
