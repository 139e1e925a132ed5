"""Which database serves: the one that is named, else the embedded one."""

from __future__ import annotations

import threading
from pathlib import Path
from weakref import WeakSet

from sqlalchemy import URL, Engine, event

from memory_core.config import Settings, postgresql_url
from memory_core.db import embedded, schema
from memory_core.db.engine import close_engines, engine_for
from memory_core.errors import SettingsError, UnsafeRole

_reviving: WeakSet[Engine] = WeakSet()
_usable: WeakSet[Engine] = WeakSet()
_migrated: set[Path] = set()
_preparing = threading.Lock()


def usable_engine(settings: Settings, *, database_url: str | URL | None = None) -> Engine:
    """Return the engine to work on, checked once per process.

    The embedded database is started and migrated; any other is not, and raises `NotMigrated` until somebody does.
    Raises a `DatabaseError` or an `EmbeddedServerError`, each with what to do.
    """
    url = _application_url(settings, database_url)
    with _preparing:
        if url is None:
            engine = engine_for(_prepared(settings.home))
            if engine not in _reviving:
                event.listen(engine, "do_connect", lambda *_: _start(settings.home))
                _reviving.add(engine)
        else:
            engine = engine_for(url)
        if engine not in _usable:
            schema.require_usable(engine)
            _usable.add(engine)
        return engine


def release(settings: Settings) -> None:
    """Let go of the database, as a process must that is about to become another program."""
    close_engines()
    if settings.database_url is None:
        embedded.stop(settings.home)


def migrate(settings: Settings, *, revision: str = "head") -> tuple[str | None, str | None]:
    """Bring the database in use to a revision, as its owner; return the revisions before and after."""
    url = _application_url(settings, None)
    role = _role(embedded.start(settings.home).application if url is None else url)
    return schema.migrate(owner_url(settings), application_role=role, revision=revision)


def owner_url(settings: Settings) -> URL:
    """Return the address of the role that owns the tables; raises where none is given, or it is the application's."""
    url = _application_url(settings, None)
    if url is None:
        return embedded.start(settings.home).owner
    if settings.migration_database_url is None:
        raise SettingsError(
            "MIGRATION_DATABASE_URL: is not set; give the address of the role that owns the tables (DATABASE_URL is the "
            "application's role)"
        )
    owner = postgresql_url(settings.migration_database_url.get_secret_value())
    if _role(owner) == _role(url):
        raise UnsafeRole(
            "MIGRATION_DATABASE_URL and DATABASE_URL name one role; the owner could bypass row level security, so the "
            "application needs a role of its own (python -m memory_core migrate --sql prints its statements)"
        )
    return owner


def migration_sql(settings: Settings) -> str:
    """Return the migration as SQL for the application's role in DATABASE_URL, or `memory_app`; touches nothing."""
    url = _application_url(settings, None)
    return schema.migration_sql(application_role="memory_app" if url is None else _role(url))


def _start(home: Path) -> None:
    # Before each new connection: a server that was killed under an open store is there again for the next call.
    embedded.start(home)


def _prepared(home: Path) -> URL:
    cluster = embedded.start(home)
    if home not in _migrated:
        schema.migrate_if_behind(cluster.owner, application_role=_role(cluster.application))
        _migrated.add(home)
    # What the environment says to libpq of another server must not steer this one's connections.
    return cluster.application.update_query_dict({"hostaddr": "", "options": ""})


def _application_url(settings: Settings, database_url: str | URL | None) -> URL | None:
    if isinstance(database_url, URL):
        return database_url
    if database_url is not None:
        try:
            return postgresql_url(database_url)
        except ValueError as error:
            raise SettingsError(f"database_url: {error}") from None
    if settings.database_url is not None:
        return postgresql_url(settings.database_url.get_secret_value())
    return None


def _role(url: URL) -> str:
    if not url.username:
        raise SettingsError("DATABASE_URL: names no user, and the migration grants its rights by name")
    return url.username
