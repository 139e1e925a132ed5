"""The types of tools' arguments, from which their JSON schemas are derived."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from memory_core.db.workspace import prefix


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is too far away") from None


def _identifier(table: str) -> object:
    return Field(max_length=32, description=f"such as {prefix(table)}90")  # which is none


CandidateId = Annotated[str, _identifier("candidate")]
JobId = Annotated[str, _identifier("job")]
ApplicationId = Annotated[str, _identifier("application")]
InterviewId = Annotated[str, _identifier("interview")]
OfferId = Annotated[str, _identifier("offer")]
NoteId = Annotated[str, _identifier("note")]
TaskId = Annotated[str, _identifier("task")]
PrivacyRequestId = Annotated[str, _identifier("privacy_request")]

Name = Annotated[str, Field(min_length=1, max_length=120)]
Words = Annotated[str, Field(min_length=1, max_length=2000)]
Colleague = Annotated[str, Field(pattern="^user:[a-z]{1,40}$", description="such as user:maria")]
Day = Annotated[date, Field(description="such as 2026-12-03")]
Moment = Annotated[datetime, AfterValidator(_in_utc), Field(description="such as 2026-12-03T10:00")]
Minutes = Annotated[int, Field(ge=15, le=240)]
Grounds = Annotated[
    list[Annotated[str, Field(max_length=32)]],
    Field(max_length=20, description="ids of notes, feedback or held interviews it rests on; a memory as memory:1"),
]
InterviewKind = Literal["phone", "panel", "technical"]
Stage = Literal["applied", "screening", "interview", "offer", "hired", "rejected", "withdrawn"]
Right = Literal["access", "erasure", "rectification", "restriction", "portability", "objection"]
