"""The passwords of the embedded cluster, kept in one file."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field

from memory_core.db.embedded.folder import Folder
from memory_core.errors import EmbeddedServerError


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """The password of each role."""

    postgres: str = field(repr=False)
    memory_owner: str = field(repr=False)
    memory_app: str = field(repr=False)


def credentials(folder: Folder) -> Credentials:
    """Return the cluster's passwords, drawing them before there is a cluster.

    They are never drawn again beside an existing data directory, which only the lost ones would open.
    """
    path = folder.credentials
    try:
        stored = json.loads(path.read_bytes())
        return Credentials(**{str(role): _text(password) for role, password in stored.items()})
    except FileNotFoundError:
        pass
    except (ValueError, TypeError, AttributeError) as error:
        raise EmbeddedServerError(
            f"{path} does not hold the database's passwords; restore that file from a backup, "
            f"or move {folder.home} away to start empty"
        ) from error
    if folder.has_data:
        raise EmbeddedServerError(
            f"{path} is missing, and {folder.data} opens with its passwords only; "
            f"restore that file from a backup, or move {folder.home} away to start empty"
        )
    drawn = Credentials(
        postgres=secrets.token_urlsafe(24),
        memory_owner=secrets.token_urlsafe(24),
        memory_app=secrets.token_urlsafe(24),
    )
    folder.write(path, json.dumps(asdict(drawn)).encode(), mode=0o600)
    return drawn


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a password is text")
    return value
