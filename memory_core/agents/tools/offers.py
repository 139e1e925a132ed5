"""Tools about offers; none of them sends one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memory_core.agents.arguments import ApplicationId, Day, OfferId
from memory_core.agents.context import Context, ToolProblem
from memory_core.agents.registry import tool
from memory_core.db.workspace import Row

Salary = Annotated[int, Field(ge=1, le=10_000_000, description="a year, before tax")]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", description="such as EUR")]


@tool(changes=False)
def list_offers(context: Context, *, application_id: ApplicationId) -> list[Row]:
    """List the offers of an application."""
    context.one("application", application_id)
    return context.rows("offer", application_id=application_id)


@tool(changes=True)
def draft_offer(
    context: Context, *, application_id: ApplicationId, salary: Salary, currency: Currency, start_on: Day
) -> Row:
    """Draft a first offer for an application in the stage offer. A person sends it."""
    stage = context.one("application", application_id)["stage"]
    if stage != "offer":
        raise ToolProblem(f"{application_id} is in the stage {stage}; offers are for the stage offer")
    standing = [
        one for one in context.rows("offer", application_id=application_id) if one["status"] in ("draft", "sent")
    ]
    if standing:
        raise ToolProblem(f"{standing[0]['id']} stands already, as {standing[0]['status']}; change or withdraw it")
    context.require_later(start_on)
    return context.add(
        "offer", application_id=application_id, salary=salary, currency=currency, start_on=start_on, status="draft"
    )


@tool(changes=True)
def change_offer(
    context: Context, *, offer_id: OfferId, salary: Salary | None = None, start_on: Day | None = None
) -> Row:
    """Change salary or start of an offer that is still a draft."""
    row = context.one("offer", offer_id)
    if row["status"] != "draft":
        raise ToolProblem(f"{offer_id} is {row['status']}; only a draft can be changed")
    given = {name: value for name, value in (("salary", salary), ("start_on", start_on)) if value is not None}
    if not given:
        raise ToolProblem("neither salary nor start_on is given; give what changes")
    if start_on is not None:
        context.require_later(start_on)
    return context.change("offer", offer_id, **given)


@tool(changes=True)
def withdraw_offer(context: Context, *, offer_id: OfferId) -> Row:
    """Withdraw an offer that is still a draft. A sent one is for a person to withdraw."""
    row = context.one("offer", offer_id)
    if row["status"] != "draft":
        raise ToolProblem(f"{offer_id} is {row['status']}; only a draft can be withdrawn here, a person does the rest")
    return context.change("offer", offer_id, status="withdrawn")
