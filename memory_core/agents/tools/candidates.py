"""Tools about candidates."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memory_core.agents.arguments import CandidateId, Name
from memory_core.agents.context import Context, ToolProblem
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row

Skill = Annotated[str, Field(min_length=1, max_length=60, description="one skill, such as SQL")]


@tool(changes=False)
def find_candidates(context: Context, *, name: Name) -> list[Row]:
    """Find candidates by a part of their name. Use it for a candidate's id."""
    wanted = name.strip().casefold()
    return [row for row in context.rows("candidate") if wanted in row["name"].casefold()]


@tool(changes=False)
def get_candidate(context: Context, *, candidate_id: CandidateId) -> Row:
    """Show one candidate: name, e-mail, location, skills, source."""
    return context.one("candidate", candidate_id)


@tool(changes=False)
def search_by_skill(context: Context, *, skill: Skill, location: Name | None = None) -> list[Row]:
    """List the candidates who have a skill, in one location or anywhere."""
    return [
        row
        for row in context.rows("candidate")
        if skill.strip().casefold() in (one.casefold() for one in row["skills"])
        and (location is None or row["location"].casefold() == location.strip().casefold())
    ]


@tool(changes=True)
def add_candidate(
    context: Context,
    *,
    name: Name,
    email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$", max_length=120)],
    location: Name,
    source: Name,
    skills: list[Skill] | None = None,
) -> Row:
    """Add somebody new to the candidates. Not for a person who is there already."""
    there = [row for row in context.rows("candidate") if row["email"].casefold() == email.casefold()]
    if there:
        raise ToolProblem(f"{email} is there already, as {there[0]['id']}; use that")
    return context.add("candidate", name=name, email=email, location=location, source=source, skills=skills or [])
