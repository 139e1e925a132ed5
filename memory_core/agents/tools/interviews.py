"""Tools about interviews and when interviewers are free."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memory_core.agents.arguments import ApplicationId, Colleague, Day, InterviewId, InterviewKind, Minutes, Moment
from memory_core.agents.context import Context, ToolProblem, moment_of
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row

INTERVIEWED = frozenset({"screening", "interview"})


@tool(changes=False)
def list_interviews(context: Context, *, application_id: ApplicationId) -> list[Row]:
    """List the interviews of one application."""
    context.one("application", application_id)
    return context.rows("interview", application_id=application_id)


@tool(changes=False)
def list_interviews_on(context: Context, *, day: Day) -> list[Row]:
    """List the interviews of everybody on one day."""
    return [row for row in context.rows("interview") if row["starts_at"].date() == day]


@tool(changes=False)
def list_free_slots(context: Context, *, interviewer: Colleague, day: Day | None = None) -> list[Row]:
    """List when an interviewer is free, on one day or at all."""
    return [
        row for row in context.rows("slot", interviewer=interviewer) if day is None or row["starts_at"].date() == day
    ]


@tool(changes=True)
def add_free_slot(context: Context, *, interviewer: Colleague, starts_at: Moment, minutes: Minutes) -> Row:
    """Record that an interviewer is free. Books nothing."""
    context.require_later(starts_at.date())
    return context.add("slot", interviewer=interviewer, starts_at=starts_at, minutes=minutes)


@tool(changes=True)
def book_interview(
    context: Context,
    *,
    application_id: ApplicationId,
    interviewer: Colleague,
    kind: InterviewKind,
    starts_at: Moment,
    minutes: Minutes = 60,
) -> Row:
    """Book a new interview while the interviewer is free. Not for moving one that is booked."""
    stage = context.one("application", application_id)["stage"]
    if stage not in INTERVIEWED:
        raise ToolProblem(f"{application_id} is in the stage {stage}; interviews are for screening and interview")
    _require_free(context, interviewer, application_id, starts_at, minutes)
    return context.add(
        "interview",
        application_id=application_id,
        interviewer=interviewer,
        kind=kind,
        starts_at=starts_at,
        minutes=minutes,
        status="booked",
    )


@tool(changes=True)
def move_interview(context: Context, *, interview_id: InterviewId, starts_at: Moment) -> Row:
    """Move a booked interview to another time at which its interviewer is free."""
    row = _booked(context, interview_id)
    _require_free(context, row["interviewer"], row["application_id"], starts_at, row["minutes"], besides=interview_id)
    return context.change("interview", interview_id, starts_at=starts_at)


@tool(changes=True)
def cancel_interview(context: Context, *, interview_id: InterviewId) -> Row:
    """Cancel a booked interview for good. To find another time, move it instead."""
    _booked(context, interview_id)
    return context.change("interview", interview_id, status="cancelled")


@tool(changes=True)
def mark_interview_held(context: Context, *, interview_id: InterviewId) -> Row:
    """Record that a booked interview took place."""
    row = _booked(context, interview_id)
    if row["starts_at"].date() > context.today:
        raise ToolProblem(f"{interview_id} is on {row['starts_at']:%Y-%m-%d}, which is not over")
    return context.change("interview", interview_id, status="held")


def _booked(context: Context, interview_id: str) -> dict[str, Any]:
    row = context.one("interview", interview_id)
    if row["status"] != "booked":
        raise ToolProblem(f"{interview_id} is {row['status']}, not booked")
    return row


def _require_free(
    context: Context,
    interviewer: str,
    application_id: str,
    starts_at: datetime,
    minutes: int,
    besides: str | None = None,
) -> None:
    context.require_later(starts_at.date())
    try:
        ends_at = starts_at + timedelta(minutes=minutes)
    except OverflowError:
        raise ToolProblem(f"{starts_at:%Y-%m-%d} is too far away") from None
    slots = context.rows("slot", interviewer=interviewer)
    if not any(one["starts_at"] <= starts_at and ends_at <= _end(one) for one in slots):
        times = ", ".join(f"{moment_of(one['starts_at'])} for {one['minutes']} minutes" for one in slots[:5]) or "never"
        raise ToolProblem(f"{interviewer} is not free then; free is {times}")
    candidate = context.one("application", application_id)["candidate_id"]
    theirs = {row["id"] for row in context.rows("application", candidate_id=candidate)}
    for one in context.rows("interview", status="booked"):
        overlaps = one["starts_at"] < ends_at and starts_at < _end(one)
        if one["id"] != besides and overlaps and (one["interviewer"] == interviewer or one["application_id"] in theirs):
            who = interviewer if one["interviewer"] == interviewer else candidate
            raise ToolProblem(f"{who} has {one['id']} at that time ({moment_of(one['starts_at'])})")


def _end(row: Row) -> datetime:
    try:
        ends_at: datetime = row["starts_at"] + timedelta(minutes=row["minutes"])
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
    return ends_at
