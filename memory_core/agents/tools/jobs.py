"""Tools about jobs."""

from __future__ import annotations

from typing import Literal

from memory_core.agents.arguments import JobId
from memory_core.agents.context import Context
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row


@tool(changes=False)
def list_jobs(context: Context, *, status: Literal["open", "closed"] = "open") -> list[Row]:
    """List the jobs with a status; open ones unless told otherwise."""
    return context.rows("job", status=status)


@tool(changes=False)
def get_job(context: Context, *, job_id: JobId) -> Row:
    """Show one job: title, team, location, hiring manager, headcount, when it was opened."""
    return context.one("job", job_id)
