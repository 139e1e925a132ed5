"""The roles of the embedded cluster, with the database they share."""

from __future__ import annotations

import psycopg
from psycopg import sql
from sqlalchemy import URL

from memory_core.db.embedded.credentials import Credentials

DATABASE = "memory"
OWNER = "memory_owner"
APPLICATION = "memory_app"
ATTRIBUTES = sql.SQL("LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION")
SET_UP = "memory-workbench: set up (1)"  # written last, as the database's comment

Connection = psycopg.Connection[tuple[object, ...]]


def connected(superuser: URL, *, database: str) -> Connection:
    """Connect as the superuser, whatever libpq's variables say."""
    return psycopg.connect(
        user=superuser.username,
        password=superuser.password,
        host=str(superuser.query["host"]),
        port=superuser.port,
        dbname=database,
        hostaddr="",
        options="",
        connect_timeout=5,
        autocommit=True,
    )


def set_up(connection: Connection, superuser: URL, passwords: Credentials) -> None:
    """Make the roles, the database and its extension; what an interrupted set-up left out is made now."""
    comment = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"
    found = connection.execute(comment, (DATABASE,)).fetchone()
    if found == (SET_UP,):
        return
    _make_role(connection, OWNER, passwords.memory_owner)
    _make_role(connection, APPLICATION, passwords.memory_app)
    database = sql.Identifier(DATABASE)
    if found is None:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, sql.Identifier(OWNER)))
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, sql.Identifier(APPLICATION)))
    with connected(superuser, database=DATABASE) as inside:
        inside.execute("CREATE EXTENSION IF NOT EXISTS vector")
        inside.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(database, sql.Literal(SET_UP)))


def _make_role(connection: Connection, name: str, password: str) -> None:
    exists = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is not None
    hashed = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    connection.execute(
        sql.SQL("{} {} WITH {} PASSWORD {}").format(
            sql.SQL("ALTER ROLE" if exists else "CREATE ROLE"), sql.Identifier(name), ATTRIBUTES, sql.Literal(hashed)
        )
    )
