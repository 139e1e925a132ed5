"""Tools about applications, and the two that decide about a person."""

from __future__ import annotations

from memory_core.agents.arguments import ApplicationId, CandidateId, Grounds, JobId, Name, Stage, Words
from memory_core.agents.context import Context, ToolProblem, refuse
from memory_core.agents.registry import tool
from memory_core.db.workspace import STAGES, Row
from memory_core.rules.grounds import Ground, grounds_refusal
from memory_core.run_records import CallOutcome

FORWARD = STAGES[: STAGES.index("hired") + 1]
ENDED = frozenset({"hired", "rejected", "withdrawn"})


@tool(changes=False)
def list_applications(context: Context, *, job_id: JobId, stage: Stage | None = None) -> list[Row]:
    """List a job's applications with the candidates' names, all or those in one stage."""
    context.one("job", job_id)
    names = {row["id"]: row["name"] for row in context.rows("candidate")}
    return [
        {**row, "candidate": names[row["candidate_id"]]}
        for row in context.rows("application", job_id=job_id)
        if stage is None or row["stage"] == stage
    ]


@tool(changes=False)
def list_applications_of(context: Context, *, candidate: Name) -> list[Row]:
    """List one candidate's applications, by the candidate's id or name. Use it for an application's id."""
    wanted = candidate.strip().casefold()
    found = [row for row in context.rows("candidate") if wanted and wanted in (row["id"], row["name"].casefold())]
    if not found:
        raise ToolProblem(f"there is no candidate {candidate!r}; give the whole name, or an id", CallOutcome.NOT_FOUND)
    return [
        {**row, "candidate": one["name"], "job": context.one("job", row["job_id"])["title"]}
        for one in found
        for row in context.rows("application", candidate_id=one["id"])
    ]


@tool(changes=False)
def get_application(context: Context, *, application_id: ApplicationId) -> Row:
    """Show one application: candidate, job, stage, date."""
    row = context.one("application", application_id)
    return {
        **row,
        "candidate": context.one("candidate", row["candidate_id"])["name"],
        "job": context.one("job", row["job_id"])["title"],
    }


@tool(changes=True)
def add_application(context: Context, *, candidate_id: CandidateId, job_id: JobId) -> Row:
    """Enter an application of a known candidate for an open job."""
    context.one("candidate", candidate_id)
    if context.one("job", job_id)["status"] != "open":
        raise ToolProblem(f"{job_id} is closed; list_jobs shows the open ones")
    there = context.rows("application", candidate_id=candidate_id, job_id=job_id)
    if there:
        raise ToolProblem(f"{candidate_id} has applied for {job_id} already, as {there[0]['id']}")
    return context.add(
        "application", candidate_id=candidate_id, job_id=job_id, stage="applied", applied_on=context.today
    )


@tool(changes=True)
def advance_application(context: Context, *, application_id: ApplicationId, to: Stage, grounds: Grounds) -> Row:
    """Move an application to the next stage. A memory alone is no ground."""
    row = context.one("application", application_id)
    if row["stage"] in ENDED:
        raise ToolProblem(f"{application_id} is {row['stage']}; nothing follows on that")
    following = FORWARD[FORWARD.index(row["stage"]) + 1]
    if to != following:
        raise ToolProblem(f"{application_id} is in the stage {row['stage']}; the next one is {following}")
    refuse(grounds_refusal([_ground(context, row, one) for one in grounds]))
    return context.change("application", application_id, stage=to)


@tool(changes=True)
def reject_application(context: Context, *, application_id: ApplicationId, reason: Words, grounds: Grounds) -> Row:
    """Reject an application. A memory alone is no ground."""
    row = context.one("application", application_id)
    if row["stage"] in ENDED:
        raise ToolProblem(f"{application_id} is {row['stage']} already")
    refuse(grounds_refusal([_ground(context, row, one) for one in grounds]))
    return context.change("application", application_id, stage="rejected")


def _ground(context: Context, application: Row, given: str) -> Ground:
    """Return what a ground is; raises `ToolProblem` for one that is nothing, or is about another application."""
    name = given.strip().strip("[]").casefold()
    if name.startswith("memory") or name.isdigit():
        return Ground.MEMORY
    for table in ("note", "interview"):
        for row in context.rows(table, id=name):
            if row["application_id"] != application["id"]:
                raise ToolProblem(f"{given} is about {row['application_id']}, not {application['id']}")
            if name in context.own:
                return Ground.OWN_WORDS  # such as an interview that this very run marked as held
            if table == "note":
                return Ground.RECORD if row["author"].startswith("user:") else Ground.OWN_WORDS
            if row["status"] != "held":
                raise ToolProblem(f"{given} is {row['status']}, so it was not held and is no ground")
            feedback = context.rows("note", interview_id=name)
            if not any(one["author"].startswith("user:") and one["id"] not in context.own for one in feedback):
                raise ToolProblem(f"nobody recorded feedback on {given}, so it says nothing and is no ground")
            return Ground.RECORD
    raise ToolProblem(
        f"{given!r} is no note, feedback or interview; their ids begin with smp-n and smp-i",
        CallOutcome.NOT_FOUND,
    )
