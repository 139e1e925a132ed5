"""The locks that order an organisation's writes, erasures and records."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b

from sqlalchemy import ARRAY, BigInteger, Connection, bindparam, text

from memory_core.model import Subject

# Locks live in a small table that all sessions share, so a bulk load takes at most this many, however many subjects it has.
BUCKETS = 64

_SHARED = text("SELECT count(pg_advisory_xact_lock_shared(key)), now() AS began FROM unnest(:keys) AS key").bindparams(
    bindparam("keys", type_=ARRAY(BigInteger))
)
_EXCLUSIVE = text("SELECT pg_advisory_xact_lock(:key)")


def _key(org_id: str, subject: Subject) -> int:
    bucket = blake2b(f"{subject.type} {subject.id}".encode(), digest_size=8).digest()
    return _first_key(org_id) + int.from_bytes(bucket, "big") % BUCKETS


def _first_key(org_id: str) -> int:
    return int.from_bytes(blake2b(org_id.encode(), digest_size=6).digest(), "big") * 2 * BUCKETS


def await_erasures(connection: Connection, org_id: str, subjects: Iterable[Subject]) -> datetime:
    """Wait until no erasure of these subjects is under way, keep new ones waiting until this transaction ends.

    Returns the moment the transaction began, by the database's clock.
    """
    keys = sorted({_key(org_id, subject) for subject in subjects})
    began: datetime = connection.execute(_SHARED, {"keys": keys}).one().began
    return began


def await_writes(connection: Connection, org_id: str, *subjects: Subject) -> None:
    """Wait until no write about these subjects is under way; new ones wait until this transaction ends."""
    # In one order, so that two never wait in a ring.
    for key in sorted({_key(org_id, subject) for subject in subjects}):
        connection.execute(_EXCLUSIVE, {"key": key})


def await_loads(connection: Connection, org_id: str) -> None:
    """Wait until no bulk load of the organisation is under way; others wait until this transaction ends.

    Two of them could hold rows that the other needs. Single writes hold one memory's row, and so cannot.
    """
    connection.execute(_EXCLUSIVE, {"key": _first_key(org_id) + BUCKETS})


def await_members(connection: Connection, org_id: str) -> None:
    """Wait until nobody else changes who is a member; others wait until this transaction ends."""
    connection.execute(_EXCLUSIVE, {"key": _first_key(org_id) + BUCKETS + 2})


def await_records(connection: Connection, org_id: str) -> None:
    """Wait until nobody else adds to the organisation's trail or ledger; others wait until this transaction ends.

    Nobody who holds it waits for a subject's lock, so that no two wait in a ring.
    """
    connection.execute(_EXCLUSIVE, {"key": _first_key(org_id) + BUCKETS + 1})
