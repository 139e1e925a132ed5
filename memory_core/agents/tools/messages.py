"""Tools that draft messages; none of them sends one."""

from __future__ import annotations

from memory_core.agents.arguments import CandidateId, Colleague, Name, Words
from memory_core.agents.context import Context
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row


@tool(changes=True)
def draft_message(context: Context, *, candidate_id: CandidateId, subject: Name, body: Words) -> Row:
    """Draft a message to a candidate. A person sends it."""
    context.one("candidate", candidate_id)
    return context.add("draft", recipient=candidate_id, subject=subject, body=body)


@tool(changes=True)
def draft_colleague_message(context: Context, *, colleague: Colleague, subject: Name, body: Words) -> Row:
    """Draft a message to a colleague, never to a candidate. A person sends it."""
    return context.add("draft", recipient=colleague, subject=subject, body=body)
