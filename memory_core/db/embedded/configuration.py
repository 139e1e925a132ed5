"""The configuration files that PostgreSQL is started with."""

from __future__ import annotations

import os
from pathlib import Path

HEADER = b"# Written at every start of the server: changes are lost.\n"

HOST_BASED_AUTHENTICATION = HEADER + b"local all all scram-sha-256\n"

# A message can quote a row (its DETAIL, the failed statement, even the error's own line), and this log is neither
# encrypted nor swept. So no error of a statement is logged; what the server says of itself is.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "256MB",
    "jit": "off",
    "autovacuum_naptime": "10s",  # after a bulk load the planner must not go by figures of an empty table for a minute
    "timezone": "UTC",
    "log_timezone": "UTC",
    "default_text_search_config": "pg_catalog.english",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_duration": "off",
    "log_lock_waits": "off",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
}


def postgresql_conf(*, socket_directory: Path, hba_file: Path) -> bytes:
    """Return postgresql.conf as bytes, for a path need not be text."""
    folder = b'"' + os.fsencode(socket_directory).replace(b'"', b'""') + b'"'  # one item of a list
    lines = [b"unix_socket_directories = " + quoted(folder), b"hba_file = " + quoted(os.fsencode(hba_file))]
    lines += [f"{name} = ".encode() + quoted(value.encode()) for name, value in SETTINGS.items()]
    return HEADER + b"\n".join(lines) + b"\n"


def quoted(value: bytes) -> bytes:
    """Return a value as PostgreSQL's configuration files quote it."""
    escaped = value.replace(b"\\", b"\\\\").replace(b"'", b"''").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return b"'" + escaped + b"'"
