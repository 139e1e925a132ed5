"""Bringing the server of a cluster up."""

from __future__ import annotations

import time

import psycopg
from sqlalchemy import URL

from memory_core.db.embedded.binaries import Programs, programs
from memory_core.db.embedded.configuration import HOST_BASED_AUTHENTICATION, postgresql_conf
from memory_core.db.embedded.data_directory import check_version, last_lines, make_data_directory
from memory_core.db.embedded.folder import Folder, hand_over
from memory_core.db.embedded.os_user import ServerUser
from memory_core.db.embedded.postmaster import Launch, answers, is_starting, launched, remove_stale_locks, running
from memory_core.db.embedded.roles import Connection, connected
from memory_core.errors import EmbeddedServerError

READY_TIMEOUT_S = 300  # the replay after a crash, on a slow disk
CONNECT_TIMEOUT_S = 10  # for a server that is ready and still refuses us
MAX_LAUNCHES = 3
ORPHANS_TIMEOUT_S = 60  # for the processes of a killed server to notice


def server_connection(folder: Folder, user: ServerUser, superuser: URL, *, lock: int) -> Connection:
    """Return a superuser's connection to the server, started if it does not run.

    To be called with the folder's lock held: `lock` is its descriptor. Raises `EmbeddedServerError`.
    """
    socket_directory = folder.socket_directory(user)
    installed: Programs | None = None
    launch: Launch | None = None
    launches = 0
    began = time.monotonic()
    why = ""
    while time.monotonic() < began + READY_TIMEOUT_S:
        if answers(socket_directory):
            try:
                if not is_starting(folder):
                    return connected(superuser, database="postgres")
            except psycopg.OperationalError as error:
                why = _reason(error, folder)
                if "the database system is" not in why and time.monotonic() > began + CONNECT_TIMEOUT_S:
                    break  # it is neither starting up, nor recovering, nor shutting down
                time.sleep(0.2)
        elif (launch is None or launch.has_ended) and running(folder, user) is None:
            if launch:
                why = last_lines(launch.said(folder, user))
                # The processes of a killed server keep its memory for a moment, and nobody may start beside them.
                if "shared memory block" in why and time.monotonic() < began + ORPHANS_TIMEOUT_S:
                    time.sleep(0.5)
                elif launches >= MAX_LAUNCHES:  # more than one, since somebody may have killed the first
                    break
            installed = installed or _prepared(folder, user, password=str(superuser.password), lock=lock)
            remove_stale_locks(folder, user)
            launch = launched(installed.postgres, folder, user)
            launches += 1
        time.sleep(0.02)
    raise EmbeddedServerError(
        f"PostgreSQL does not serve {folder.data} ({why or 'no answer'}); see {folder.log}, or set DATABASE_URL"
    )


def _reason(error: psycopg.OperationalError, folder: Folder) -> str:
    why = last_lines(str(error))
    if "password authentication failed" in why:
        raise EmbeddedServerError(
            f"{folder.credentials} does not open {folder.data}; restore that file from a backup, "
            f"or move {folder.home} away to start empty"
        ) from error
    return why


def _prepared(folder: Folder, user: ServerUser, *, password: str, lock: int) -> Programs:
    """Do what goes before the server's process."""
    hand_over(folder, user)
    installed = programs(folder, user)
    if folder.has_data:
        check_version(folder, installed)
    else:
        make_data_directory(folder, user, installed, password=password, lock=lock)
    # Root's own files, which the server's user can read and not change; no secrets are in them.
    mode = 0o644 if user.switched else 0o600
    settings = postgresql_conf(socket_directory=folder.socket_directory(user), hba_file=folder.authentication)
    folder.write(folder.configuration, settings, mode=mode)
    folder.write(folder.authentication, HOST_BASED_AUTHENTICATION, mode=mode)
    return installed
