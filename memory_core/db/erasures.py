"""The lock that orders the writes of a subject against its erasures."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b

from sqlalchemy import ARRAY, BigInteger, Connection, bindparam, func, select, text, tuple_

from memory_core.db.tables import erasure
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


def await_writes(connection: Connection, org_id: str, subject: Subject) -> None:
    """Wait until no write about this subject is under way; new ones wait until this transaction ends."""
    connection.execute(_EXCLUSIVE, {"key": _key(org_id, subject)})


def erased_since_begin(connection: Connection, org_id: str, subjects: Iterable[Subject]) -> Subject | None:
    """Return a subject that was erased after this transaction began, if there is one. Call it with the lock taken."""
    named = sorted({(subject.type, subject.id) for subject in subjects})
    if not named:
        return None
    row = connection.execute(
        select(erasure.c.subject_type, erasure.c.subject_id)
        .where(
            erasure.c.org_id == org_id,
            erasure.c.recorded_at >= func.transaction_timestamp(),
            tuple_(erasure.c.subject_type, erasure.c.subject_id).in_(named),
        )
        .limit(1)
    ).first()
    return None if row is None else Subject(row.subject_type, row.subject_id)


def await_loads(connection: Connection, org_id: str) -> None:
    """Wait until no bulk load of the organisation is under way; others wait until this transaction ends.

    Two of them could hold rows that the other needs. Single writes hold one memory's row, and so cannot.
    """
    connection.execute(_EXCLUSIVE, {"key": _first_key(org_id) + BUCKETS})
