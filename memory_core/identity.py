"""New identifiers: UUIDs of version 7, in the order in which this process made them."""

from __future__ import annotations

from uuid import UUID

from uuid_utils import compat


def new_id() -> UUID:
    """Return a UUIDv7, later than every one this process made before."""
    return compat.uuid7()
