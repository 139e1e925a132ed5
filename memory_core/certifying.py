"""The certificate of an erasure, written anew from its record whenever it is asked for."""

from __future__ import annotations

import hmac
from hashlib import sha256
from uuid import UUID

from sqlalchemy import Engine

from memory_core.db import erasures, ledger, measures, trail
from memory_core.db.engine import organisation_transaction
from memory_core.errors import Refusal, Refused
from memory_core.model import Subject
from memory_core.rights import Certificate, MeasureKind

# What an erasure does not reach at once, each with the rule that bounds it.
KEEPS = (
    "Table pages: PostgreSQL keeps the old version of each row until VACUUM has passed and its place is written over; "
    "python -m memory_core sweep --compact rewrites tables and indexes and ends that at once.",
    "Index entries: words and vectors of an erased text may stand in an index until VACUUM or REINDEX; the same command "
    "ends that.",
    "Write-ahead log: kept until its segments are recycled, which checkpoints and max_wal_size bound; archived segments "
    "until the archive's own retention is over.",
    "Backups: dumps and base backups from before the erasure have the text until they rotate. A database restored from one "
    "is known by the ledger outside it, and recalls nothing until replay-erasures has erased again what came back.",
    "A model's context: a text that was sent within the deadline of a call that was running may have been read by the "
    "model; nothing of it is kept by this product.",
)


def certificate(engine: Engine, org_id: str, erasure_id: UUID) -> Certificate:
    """Write an erasure's certificate; raises `Refused` for an erasure that is not on record."""
    with organisation_transaction(engine, org_id) as connection:
        facts = erasures.facts(connection, org_id, erasure_id) if isinstance(erasure_id, UUID) else None
        if facts is None:
            why = "is no erasure of this organisation"
            raise Refused(Refusal(rule="erasure_exists", field="erasure_id", reason=why))
        subject = Subject(facts.subject_type, facts.subject_id)
        tombstones = erasures.tombstones(connection, org_id, erasure_id)
        mine = [one.memory_id for one in tombstones if (one.subject_type, one.subject_id) == (subject.type, subject.id)]
        about_them = set(mine)
        others = [one.memory_id for one in tombstones if one.memory_id not in about_them]
        entry = next(iter(ledger.entries(connection, org_id, of=erasure_id)), None)
        lines = trail.newest(connection, org_id, reference=str(erasure_id), limit=1)
        suppressed = any(
            one.kind is MeasureKind.SUPPRESSION and one.stood(facts.at)
            for one in measures.of_subject(connection, org_id, subject)
        )
    line = lines[0] if lines else None
    return Certificate(
        erasure_id=erasure_id,
        org_id=org_id,
        at=facts.at,
        by=facts.by,
        request_reference=facts.reference,
        subject_fingerprint=fingerprint(bytes(facts.salt), subject),
        about_subject=tuple(mine),
        about_others=tuple(others),
        purged=max(0, facts.memory_count - len(tombstones)),
        suppressed=suppressed,
        ledger_number=entry.number if entry else None,
        # What was done again after a restore stands in the line of the replay.
        trail_number=line.number if line else entry.trail_number if entry else None,
        trail_hash=(line.hash.hex() if line else entry.trail_hash.hex() if entry else None),
        keeps=KEEPS,
    )


def fingerprint(salt: bytes, subject: Subject) -> str:
    """Return by what a certificate names a subject: HMAC-SHA-256 of its type and id, keyed with the erasure's salt.

    Whoever has only the certificate cannot try identifiers; whoever has the database can show which it was.
    """
    return hmac.new(salt, f"{subject.type} {subject.id}".encode(), sha256).hexdigest()
