"""Tools that count."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from memory_core.agents.arguments import Day, JobId
from memory_core.agents.context import Context
from memory_core.agents.registry import tool
from memory_core.db.workspace import STAGES, Row


@tool(changes=False)
def count_by_stage(context: Context, *, job_id: JobId) -> dict[str, int]:
    """Count one job's applications by stage."""
    context.one("job", job_id)
    found = Counter(row["stage"] for row in context.rows("application", job_id=job_id))
    return {stage: found[stage] for stage in STAGES if found[stage]}


@tool(changes=False)
def count_applications(context: Context, *, since: Day) -> dict[str, int]:
    """Count the applications of every job since a day."""
    found = Counter(row["job_id"] for row in context.rows("application") if row["applied_on"] >= since)
    return {row["id"]: found[row["id"]] for row in context.rows("job")}


@tool(changes=False)
def days_open(context: Context, *, job_id: JobId) -> int:
    """Say for how many days a job has been open."""
    return int((context.today - context.one("job", job_id)["opened_on"]).days)


@tool(changes=False)
def list_waiting(context: Context, *, days: Annotated[int, Field(ge=1, le=1000)]) -> list[Row]:
    """List the applications that have been in the stage applied for more than so many days."""
    return [
        {**row, "candidate": context.one("candidate", row["candidate_id"])["name"]}
        for row in context.rows("application", stage="applied")
        if (context.today - row["applied_on"]).days > days
    ]
