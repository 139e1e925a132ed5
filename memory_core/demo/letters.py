"""What people have written to the demo organisation about their data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from memory_core.model import Subject
from memory_core.rights import Channel, IdentityMethod, RequestType


@dataclass(frozen=True, kw_only=True)
class DemoLetter:
    """A request that came in, and how far it has got."""

    right: RequestType
    asked_by: str
    channel: Channel
    received_on: date
    subject: Subject | None
    identity: IdentityMethod | None  # by which it was made sure who asks


def demo_letters(*, today: date) -> list[DemoLetter]:
    """Give the requests of the demo organisation, oldest first: one overdue, one due soon, one of somebody unknown."""
    return [
        DemoLetter(
            right=RequestType.RECTIFICATION,
            asked_by="Seán O'Brien",
            channel=Channel.EMAIL,
            received_on=today - timedelta(days=36),
            subject=Subject("candidate", "c-47"),
            identity=IdentityMethod.KNOWN_ADDRESS,
        ),
        DemoLetter(
            right=RequestType.ACCESS,
            asked_by="Zoë Lindqvist",
            channel=Channel.LETTER,
            received_on=today - timedelta(days=26),
            subject=Subject("candidate", "c-81"),
            identity=IdentityMethod.CALL_BACK,
        ),
        DemoLetter(
            right=RequestType.OBJECTION,
            asked_by="somebody who signs as M. Hart",
            channel=Channel.FORM,
            received_on=today - timedelta(days=2),
            subject=None,
            identity=None,
        ),
    ]
