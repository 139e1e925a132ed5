"""Tools that take down privacy requests; answering and erasing is for a data protection officer."""

from __future__ import annotations

from typing import Literal

from memory_core.agents.arguments import CandidateId, Day, PrivacyRequestId, Right
from memory_core.agents.context import Context, ToolProblem
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row


@tool(changes=False)
def list_privacy_requests(context: Context, *, candidate_id: CandidateId) -> list[Row]:
    """List what privacy requests a candidate has made, and where they stand."""
    context.one("candidate", candidate_id)
    return context.rows("privacy_request", candidate_id=candidate_id)


@tool(changes=True)
def register_privacy_request(
    context: Context,
    *,
    candidate_id: CandidateId,
    type: Right,  # noqa: A002
    channel: Literal["e-mail", "letter", "telephone", "form"],
    received_on: Day,
) -> Row:
    """Take down a new privacy request. It erases and sends nothing."""
    context.one("candidate", candidate_id)
    if received_on > context.today:
        raise ToolProblem(f"{received_on} is in the future; today is {context.today}")
    for row in context.rows("privacy_request", candidate_id=candidate_id, type=type):
        if row["status"] != "handed over":
            raise ToolProblem(f"{row['id']} is the same request and still {row['status']}; use that")
    return context.add(
        "privacy_request",
        candidate_id=candidate_id,
        type=type,
        channel=channel,
        received_on=received_on,
        status="new",
    )


@tool(changes=True)
def ask_for_identity(context: Context, *, request_id: PrivacyRequestId) -> Row:
    """Record that whoever made a new request was asked who they are."""
    return _moved(context, request_id, {"new"}, "identity asked")


@tool(changes=True)
def hand_over_request(context: Context, *, request_id: PrivacyRequestId) -> Row:
    """Hand a request over to the data protection officer, who answers it."""
    return _moved(context, request_id, {"new", "identity asked"}, "handed over")


def _moved(context: Context, request_id: str, out_of: set[str], status: str) -> Row:
    found = context.one("privacy_request", request_id)["status"]
    if found not in out_of:
        raise ToolProblem(f"{request_id} is {found} already")
    return context.change("privacy_request", request_id, status=status)
