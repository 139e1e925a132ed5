"""Tools about notes and feedback."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memory_core.agents.arguments import ApplicationId, InterviewId, Words
from memory_core.agents.context import Context, ToolProblem
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row


@tool(changes=False)
def list_notes(context: Context, *, application_id: ApplicationId) -> list[Row]:
    """List what was noted about an application, without feedback on interviews."""
    context.one("application", application_id)
    return [row for row in context.rows("note", application_id=application_id) if row["interview_id"] is None]


@tool(changes=False)
def list_feedback(context: Context, *, application_id: ApplicationId) -> list[Row]:
    """List interviewers' feedback on an application's interviews, with ratings from 1 to 5."""
    context.one("application", application_id)
    return [row for row in context.rows("note", application_id=application_id) if row["interview_id"] is not None]


@tool(changes=True)
def add_note(context: Context, *, application_id: ApplicationId, text: Words) -> Row:
    """Note something about an application. Not for feedback on an interview."""
    context.one("application", application_id)
    return context.add("note", application_id=application_id, author=context.agent, text=text, written_on=context.today)


@tool(changes=True)
def add_feedback(
    context: Context,
    *,
    interview_id: InterviewId,
    text: Words,
    rating: Annotated[int, Field(ge=1, le=5)] | None = None,
) -> Row:
    """Write up feedback on an interview that was held."""
    interview = context.one("interview", interview_id)
    if interview["status"] != "held":
        raise ToolProblem(f"{interview_id} is {interview['status']}; feedback is on interviews that were held")
    return context.add(
        "note",
        application_id=interview["application_id"],
        interview_id=interview_id,
        author=context.agent,
        text=text,
        rating=rating,
        written_on=context.today,
    )
