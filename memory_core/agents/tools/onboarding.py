"""Tools about the tasks before somebody's first day."""

from __future__ import annotations

from memory_core.agents.arguments import CandidateId, Colleague, Day, Name, TaskId
from memory_core.agents.context import Context, ToolProblem
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row


@tool(changes=False)
def list_tasks(context: Context, *, candidate_id: CandidateId) -> list[Row]:
    """List somebody's onboarding tasks, open and done."""
    context.one("candidate", candidate_id)
    return context.rows("task", candidate_id=candidate_id)


@tool(changes=True)
def add_task(context: Context, *, candidate_id: CandidateId, title: Name, owner: Colleague, due_on: Day) -> Row:
    """Add an onboarding task for somebody who was hired."""
    context.one("candidate", candidate_id)
    if not context.rows("application", candidate_id=candidate_id, stage="hired"):
        raise ToolProblem(f"{candidate_id} is not hired; onboarding is for people who are")
    if due_on < context.today:
        raise ToolProblem(f"{due_on} is past; today is {context.today}")
    return context.add("task", candidate_id=candidate_id, title=title, owner=owner, due_on=due_on, status="open")


@tool(changes=True)
def complete_task(context: Context, *, task_id: TaskId) -> Row:
    """Record that an open task is done."""
    _require_open(context, task_id)
    return context.change("task", task_id, status="done")


@tool(changes=True)
def move_task(context: Context, *, task_id: TaskId, due_on: Day) -> Row:
    """Give an open task another due date."""
    _require_open(context, task_id)
    if due_on < context.today:
        raise ToolProblem(f"{due_on} is past; today is {context.today}")
    return context.change("task", task_id, due_on=due_on)


def _require_open(context: Context, task_id: str) -> None:
    status = context.one("task", task_id)["status"]
    if status != "open":
        raise ToolProblem(f"{task_id} is {status} already")
