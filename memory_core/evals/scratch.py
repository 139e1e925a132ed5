"""A database that is there only meanwhile."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_core.config import Settings
from memory_core.db import database


@contextmanager
def scratch(settings: Settings) -> Iterator[Settings]:
    """Yield the settings of an embedded database that is there only meanwhile; nothing else is written to."""
    folder = Path(tempfile.mkdtemp(prefix="memory-eval-"))
    folder.chmod(0o755)  # the database's own user has to enter it
    own = settings.model_copy(
        update={
            "database_url": None,
            "migration_database_url": None,
            "memory_home": folder / "home",
            "memory_ledger": None,
            "home": folder / "home",
        }
    )
    try:
        yield own
    finally:
        database.release(own)
        shutil.rmtree(folder, ignore_errors=True)
