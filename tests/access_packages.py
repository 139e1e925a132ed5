"""Access packages for tests: each value as usual, unless the test says otherwise."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from memory_core.model import Disclosure, HeldMemory, Kind, Origin, Purpose, State, Subject
from memory_core.rights import (
    AccessPackage,
    Channel,
    Measure,
    MeasureKind,
    PackageItem,
    RequestType,
    RightsRequest,
    StandingAnswers,
    Status,
)

AT = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
ANSWERED = StandingAnswers(
    controller="Acme Hiring Ltd, 1 High Street, Leeds",
    officer="privacy@acme.example",
    purposes="To plan interviews and answer applications.",
    categories="Availability, wishes, impressions from conversations.",
    recipients="Our recruiters; our hosting provider.",
    retention="Ninety days, unless a note is seen again.",
    authority="The supervisory authority of your country.",
    automated_decisions="None: a person decides each application.",
    transfers="None outside the European Economic Area.",
)


def a_memory(text: str | None = "Could start after a two-month notice period.", **changed: Any) -> HeldMemory:
    """Return a live inference about the candidate."""
    fields: dict[str, Any] = {
        "memory_id": UUID(int=1),
        "org_id": "acme",
        "kind": Kind.OBSERVATION,
        "subject": Subject("candidate", "c-81"),
        "text": text,
        "origin": Origin.INFERENCE,
        "author": "agent:screening",
        "run_id": "r-812",
        "source": None,
        "created_at": AT,
        "expires_at": AT + timedelta(days=90),
        "state": State.LIVE,
        "seen_count": 1,
        "last_seen_at": AT,
        "last_seen_run_id": "r-812",
        "embedding_model": None,
        "restricted_at": None,
        "hold": None,
        "forgotten_at": None,
        "forgotten_by": None,
        "forgotten_reason": None,
        "swept_at": None,
        "disclosures": (),
    }
    return HeldMemory(**fields | changed)


def forgotten(**changed: Any) -> HeldMemory:
    """Return what an erasure left."""
    gone = {"forgotten_at": AT - timedelta(days=3), "forgotten_by": "user:ines", "forgotten_reason": "as c-82 asked"}
    return a_memory(None, state=State.FORGOTTEN, **gone | changed)


def swept(**changed: Any) -> HeldMemory:
    """Return what an expiry left."""
    return a_memory(None, state=State.SWEPT, swept_at=AT - timedelta(days=2), **changed)


def shown(run_id: str = "r-813", *, hours: float = 1, place: int = 1, purpose: Purpose = Purpose.RUN) -> Disclosure:
    """Return a disclosure some hours after the memory was written."""
    at = AT + timedelta(hours=hours)
    return Disclosure(recall_id=UUID(int=90), run_id=run_id, purpose=purpose, at=at, place=place)


def an_item(memory: HeldMemory | None = None, **changed: Any) -> PackageItem:
    """Return an item that is handed out with its text."""
    return PackageItem(**{"memory": memory or a_memory(), "mentions": (), "left_out": None} | changed)


def a_measure(kind: MeasureKind = MeasureKind.RESTRICTION, **changed: Any) -> Measure:
    """Return a measure that stands about everything of the candidate."""
    fields: dict[str, Any] = {
        "measure_id": UUID(int=70),
        "kind": kind,
        "name": "Okafor v. Acme",
        "subject": Subject("candidate", "c-81"),
        "memory_id": None,
        "by": "user:ines",
        "reason": "until it is checked",
        "placed_at": AT - timedelta(days=5),
        "review_on": None,
        "request_reference": None,
        "lifted_at": None,
        "lifted_by": None,
        "lifted_reason": None,
        "person_told": None,
    }
    return Measure(**fields | changed)


def a_request(reference: str = "R-2026-0001", **changed: Any) -> RightsRequest:
    """Return an open request for access by the candidate."""
    fields: dict[str, Any] = {
        "request_id": UUID(int=60),
        "reference": reference,
        "type": RequestType.ACCESS,
        "status": Status.IN_PROGRESS,
        "asked_by": "zoe@mail.example",
        "channel": Channel.EMAIL,
        "subject": Subject("candidate", "c-81"),
        "received_on": date(2026, 10, 20),
        "identity_asked_on": None,
        "identity_method": None,
        "identity_confirmed_on": None,
        "extended_on": None,
        "extension_reason": None,
        "pauses": (),
        "closed_at": None,
        "ground": None,
        "closing_note": "an internal remark",
        "duplicate_of": None,
        "version": 1,
        "changed_at": AT,
        "changed_by": "user:ines",
    }
    return RightsRequest(**fields | changed)


def a_package(*items: PackageItem, **changed: Any) -> AccessPackage:
    """Return a package with every standing answer given."""
    fields: dict[str, Any] = {
        "org_id": "acme",
        "subject": Subject("candidate", "c-81", label="Zoë Okafor", aliases=("Z. Okafor", "zoe@mail.example")),
        "at": AT,
        "by": "user:ines",
        "reference": "R-2026-0001",
        "law": "EU GDPR",
        "answers": ANSWERED,
        "items": items,
        "measures": (),
        "requests": (),
        "tombstone_days": 365,
    }
    return AccessPackage(**fields | changed)
