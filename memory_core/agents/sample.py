"""The sample hiring workspace in which agents work: invented people, with dates around the day of the run."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from memory_core.db.workspace import Row

SATURDAY = 5


def working_day(today: date, count: int) -> date:
    """Return the day that is so many working days after (or before) a day; 0 is the day itself or the next working day."""
    day, step = today, 1 if count >= 0 else -1
    while day.weekday() >= SATURDAY:
        day += timedelta(days=step)
    for _ in range(abs(count)):
        day += timedelta(days=step)
        while day.weekday() >= SATURDAY:
            day += timedelta(days=step)
    return day


def sample_rows(today: date) -> dict[str, list[Row]]:
    """Return the rows of every table; identifiers begin with ``smp-``, so that none is taken for a real person's."""

    def at(count: int, hour: int, minute: int = 0) -> datetime:
        return datetime.combine(working_day(today, count), time(hour, minute), UTC)

    def ago(days: int) -> date:
        return today - timedelta(days=days)

    return {
        "candidate": [
            _candidate(1, "Amara Nwosu", "Berlin", "referral", "Python", "SQL"),
            _candidate(2, "Bo Lindqvist", "Malmö", "job board", "Python", "Go"),
            _candidate(3, "Chiara Conti", "Milan", "referral", "Figma", "Research"),
            _candidate(4, "Dariusz Mazur", "Berlin", "agency", "SQL", "Excel"),
            _candidate(5, "Elif Demir", "Hamburg", "job board", "Recruiting"),
            _candidate(6, "Farid Haddad", "Berlin", "careers page", "Python", "Kubernetes"),
            _candidate(7, "Grace Okoro", "Leeds", "careers page", "SQL", "Python"),
            _candidate(8, "Hana Sato", "Berlin", "referral", "Figma"),
            _candidate(9, "Ivo Petrov", "Sofia", "agency", "Go", "Kubernetes"),
            _candidate(10, "Grace Ogawa", "Berlin", "job board", "Excel"),
        ],
        "job": [
            _job(1, "Backend engineer", "Platform", "Berlin", "user:omar", 2, ago(40), "open"),
            _job(2, "Product designer", "Design", "Berlin", "user:lena", 1, ago(25), "open"),
            _job(3, "Data analyst", "Insights", "remote", "user:omar", 1, ago(60), "open"),
            _job(4, "Recruiter", "People", "Hamburg", "user:maria", 1, ago(90), "closed"),
        ],
        "application": [
            _application(1, 1, 1, "interview", ago(20)),
            _application(2, 2, 1, "screening", ago(12)),
            _application(3, 3, 2, "interview", ago(18)),
            _application(4, 4, 3, "applied", ago(21)),
            _application(5, 5, 4, "hired", ago(80)),
            _application(6, 6, 1, "screening", ago(9)),
            _application(7, 7, 3, "offer", ago(35)),
            _application(8, 8, 2, "applied", ago(3)),
            _application(9, 9, 1, "rejected", ago(30)),
            _application(10, 10, 3, "applied", ago(16)),
            _application(11, 1, 3, "withdrawn", ago(28)),
        ],
        "interview": [
            _interview(1, 1, "phone", "user:maria", at(-8, 10), 30, "held"),
            _interview(2, 1, "technical", "user:omar", at(2, 14), 60, "booked"),
            _interview(3, 3, "phone", "user:maria", at(-6, 9), 30, "held"),
            _interview(4, 3, "panel", "user:lena", at(-2, 13), 90, "held"),
            _interview(5, 2, "phone", "user:maria", at(0, 9), 30, "booked"),
            _interview(6, 7, "panel", "user:omar", at(-5, 15), 60, "held"),
            _interview(7, 6, "phone", "user:maria", at(-1, 11), 30, "held"),
        ],
        "slot": [
            _slot(1, "user:omar", at(2, 13), 180),
            _slot(2, "user:omar", at(3, 10), 120),
            _slot(3, "user:omar", at(4, 15), 60),
            _slot(4, "user:maria", at(0, 9), 60),
            _slot(5, "user:maria", at(1, 11), 60),
            _slot(6, "user:lena", at(3, 13), 120),
        ],
        "offer": [
            _row(
                "offer",
                1,
                application_id="smp-a7",
                salary=62000,
                currency="EUR",
                start_on=working_day(today, 45),
                status="draft",
            )
        ],
        "note": [
            _note(1, 1, "user:maria", "Prefers mornings; speaks German and English.", ago(12)),
            _note(
                2,
                1,
                "user:maria",
                "Clear answers on databases; recommend the technical round.",
                ago(12),
                interview=1,
                rating=4,
            ),
            _note(3, 2, "user:maria", "Asked for an interview in the morning.", ago(10)),
            _note(4, 3, "user:maria", "Good grasp of research methods.", ago(8), interview=3, rating=4),
            _note(5, 3, "user:lena", "Strong portfolio, explained trade-offs well.", ago(4), interview=4, rating=5),
            _note(6, 7, "user:omar", "Solved the case, asked good questions.", ago(7), interview=6, rating=5),
            _note(7, 6, "agent:screening", "Seems hesitant about shift work.", ago(8)),
            _note(8, 4, "user:omar", "The portfolio link does not open; asked for a new one.", ago(14)),
        ],
        "draft": [],
        "task": [
            _task(1, "Order laptop", "user:tom", working_day(today, 3), "open"),
            _task(2, "Sign contract", "user:maria", working_day(today, -10), "done"),
            _task(3, "Plan first week", "user:maria", working_day(today, 5), "open"),
        ],
        "privacy_request": [
            _row(
                "privacy_request",
                1,
                candidate_id="smp-c9",
                type="access",
                channel="e-mail",
                received_on=ago(6),
                status="new",
            ),
            _row(
                "privacy_request",
                2,
                candidate_id="smp-c4",
                type="rectification",
                channel="letter",
                received_on=ago(50),
                status="handed over",
            ),
        ],
    }


def _row(table: str, number: int, **values: object) -> Row:
    return {"id": f"smp-{table[0]}{number}", **values}


def _candidate(number: int, name: str, location: str, source: str, *skills: str) -> Row:
    email = f"{name.split(maxsplit=1)[0].lower()}.{name.split()[1].lower()}@example.org"
    return _row("candidate", number, name=name, email=email, location=location, source=source, skills=list(skills))


def _job(
    number: int, title: str, team: str, location: str, manager: str, headcount: int, opened_on: date, status: str
) -> Row:
    return _row(
        "job",
        number,
        title=title,
        team=team,
        location=location,
        hiring_manager=manager,
        headcount=headcount,
        opened_on=opened_on,
        status=status,
    )


def _application(number: int, candidate: int, job: int, stage: str, applied_on: date) -> Row:
    return _row(
        "application",
        number,
        candidate_id=f"smp-c{candidate}",
        job_id=f"smp-j{job}",
        stage=stage,
        applied_on=applied_on,
    )


def _interview(
    number: int, application: int, kind: str, interviewer: str, starts_at: datetime, minutes: int, status: str
) -> Row:
    return _row(
        "interview",
        number,
        application_id=f"smp-a{application}",
        kind=kind,
        interviewer=interviewer,
        starts_at=starts_at,
        minutes=minutes,
        status=status,
    )


def _slot(number: int, interviewer: str, starts_at: datetime, minutes: int) -> Row:
    return _row("slot", number, interviewer=interviewer, starts_at=starts_at, minutes=minutes)


def _note(
    number: int,
    application: int,
    author: str,
    text: str,
    written_on: date,
    *,
    interview: int | None = None,
    rating: int | None = None,
) -> Row:
    return _row(
        "note",
        number,
        application_id=f"smp-a{application}",
        interview_id=None if interview is None else f"smp-i{interview}",
        author=author,
        text=text,
        rating=rating,
        written_on=written_on,
    )


def _task(number: int, title: str, owner: str, due_on: date, status: str) -> Row:
    return _row("task", number, candidate_id="smp-c5", title=title, owner=owner, due_on=due_on, status=status)
