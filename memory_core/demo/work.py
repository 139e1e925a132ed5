"""What the demo organisation hires for: its jobs, its clients, its teams."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from memory_core.model import Subject


@dataclass(frozen=True, kw_only=True)
class Client:
    """A company that the organisation hires for."""

    subject: Subject
    name: str
    city: str
    since: int  # its first memory is at most so many days old
    count: int  # how many memories there are of it

    @property
    def slots(self) -> dict[str, str]:
        """The words that a sentence about this client may use."""
        return {"client": self.name, "client_city": self.city}


@dataclass(frozen=True, kw_only=True)
class Job:
    """An open role at a client."""

    subject: Subject
    title: str
    client: str
    city: str
    country: str  # as it reads after "in"
    skill: str  # asked for first
    skill2: str
    exercise: str  # what candidates are given to do
    low: str  # the salary band
    high: str
    panel: tuple[str, ...]  # logins of the interviewers
    since: int
    count: int

    @property
    def slots(self) -> dict[str, str]:
        """The words that a sentence about this job, or about a candidate for it, may use."""
        return {
            "job": self.title,
            "client": self.client,
            "job_city": self.city,
            "country": self.country,
            "skill": self.skill,
            "skill2": self.skill2,
            "exercise": self.exercise,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True, kw_only=True)
class Team:
    """A desk of the organisation itself."""

    subject: Subject
    since: int
    count: int


def _client(number: int, name: str, city: str, *, since: int, count: int = 5) -> Client:
    subject = Subject("client", f"cl-{number}", name, (f"{name}, {city}",))
    return Client(subject=subject, name=name, city=city, since=since, count=count)


def _job(
    number: int,
    title: str,
    client: str,
    city: str,
    country: str,
    *,
    skills: tuple[str, str],
    exercise: str,
    band: tuple[str, str],
    panel: tuple[str, str],
    since: int,
) -> Job:
    return Job(
        subject=Subject("job", f"j-{number}", f"{title}, {client}", (f"REQ-10{number}",)),
        title=title,
        client=client,
        city=city,
        country=country,
        skill=skills[0],
        skill2=skills[1],
        exercise=exercise,
        low=band[0],
        high=band[1],
        panel=panel,
        since=since,
        count=5,
    )


CLIENTS = (
    _client(3, "Nordhafen Logistics", "Hamburg", since=78, count=6),
    _client(5, "Lumen Health", "Lisbon", since=74),
    _client(8, "Kestrel Payments", "London", since=70, count=6),
    _client(11, "Oakmere Foods", "Dublin", since=66),
    _client(14, "Tallis Travel", "Barcelona", since=52),
    _client(17, "Aurora Maps", "Helsinki", since=47),
    _client(20, "Solvind Energy", "Copenhagen", since=40),
)

JOBS = MappingProxyType(
    {
        job.subject.id: job
        for job in (
            _job(
                12,
                "Senior Data Engineer",
                "Nordhafen Logistics",
                "Hamburg",
                "Germany",
                skills=("PostgreSQL", "Airflow"),
                exercise="SQL exercise",
                band=("EUR 72,000", "EUR 84,000"),
                panel=("piotr", "nadia"),
                since=79,
            ),
            _job(
                15,
                "Product Designer",
                "Lumen Health",
                "Lisbon",
                "Portugal",
                skills=("design systems", "usability testing"),
                exercise="portfolio walkthrough",
                band=("EUR 48,000", "EUR 58,000"),
                panel=("leila", "hanna"),
                since=60,
            ),
            _job(
                18,
                "Site Reliability Engineer",
                "Kestrel Payments",
                "London",
                "the United Kingdom",
                skills=("Kubernetes", "Terraform"),
                exercise="incident exercise",
                band=("GBP 78,000", "GBP 92,000"),
                panel=("kofi", "piotr"),
                since=74,
            ),
            _job(
                21,
                "Warehouse Operations Lead",
                "Nordhafen Logistics",
                "Rotterdam",
                "the Netherlands",
                skills=("shift planning", "SAP EWM"),
                exercise="shift-planning case",
                band=("EUR 52,000", "EUR 60,000"),
                panel=("sven", "elena"),
                since=64,
            ),
            _job(
                24,
                "Financial Controller",
                "Oakmere Foods",
                "Dublin",
                "Ireland",
                skills=("IFRS reporting", "month-end close"),
                exercise="month-end case",
                band=("EUR 70,000", "EUR 82,000"),
                panel=("elena", "kofi"),
                since=56,
            ),
            _job(
                27,
                "Backend Engineer",
                "Kestrel Payments",
                "Berlin",
                "Germany",
                skills=("Go", "Kafka"),
                exercise="code review exercise",
                band=("EUR 68,000", "EUR 80,000"),
                panel=("rahul", "nadia"),
                since=50,
            ),
            _job(
                29,
                "Customer Support Lead",
                "Tallis Travel",
                "Barcelona",
                "Spain",
                skills=("queue planning", "Zendesk"),
                exercise="ticket triage exercise",
                band=("EUR 36,000", "EUR 42,000"),
                panel=("hanna", "sven"),
                since=51,
            ),
            _job(
                33,
                "Clinical Data Manager",
                "Lumen Health",
                "Paris",
                "France",
                skills=("CDISC standards", "query management"),
                exercise="data-cleaning exercise",
                band=("EUR 55,000", "EUR 64,000"),
                panel=("leila", "rahul"),
                since=45,
            ),
            _job(
                36,
                "Machine Learning Engineer",
                "Aurora Maps",
                "Helsinki",
                "Finland",
                skills=("PyTorch", "feature pipelines"),
                exercise="model review exercise",
                band=("EUR 66,000", "EUR 78,000"),
                panel=("nadia", "rahul"),
                since=79,
            ),
            _job(
                40,
                "Electrical Design Engineer",
                "Solvind Energy",
                "Copenhagen",
                "Denmark",
                skills=("switchgear design", "AutoCAD Electrical"),
                exercise="schematic review",
                band=("EUR 74,000", "EUR 86,000"),
                panel=("sven", "kofi"),
                since=59,
            ),
            _job(
                44,
                "HR Business Partner",
                "Oakmere Foods",
                "Cork",
                "Ireland",
                skills=("employee relations", "workforce planning"),
                exercise="case discussion",
                band=("EUR 58,000", "EUR 68,000"),
                panel=("hanna", "elena"),
                since=75,
            ),
            _job(
                47,
                "Technical Writer",
                "Aurora Maps",
                "Tallinn",
                "Estonia",
                skills=("API documentation", "docs-as-code tooling"),
                exercise="editing exercise",
                band=("EUR 44,000", "EUR 52,000"),
                panel=("leila", "piotr"),
                since=36,
            ),
            _job(
                52,
                "Localisation Project Manager",
                "Tallis Travel",
                "Vienna",
                "Austria",
                skills=("vendor management", "translation memory tools"),
                exercise="planning exercise",
                band=("EUR 46,000", "EUR 54,000"),
                panel=("elena", "leila"),
                since=46,
            ),
            _job(
                55,
                "Procurement Analyst",
                "Solvind Energy",
                "Aarhus",
                "Denmark",
                skills=("spend analysis", "supplier contracts"),
                exercise="spreadsheet exercise",
                band=("EUR 50,000", "EUR 59,000"),
                panel=("sven", "hanna"),
                since=52,
            ),
        )
    }
)

TEAMS = tuple(
    Team(subject=Subject("team", f"t-{number}", name), since=since, count=4)
    for number, name, since in (
        (1, "Sourcing desk", 76),
        (2, "Scheduling desk", 71),
        (3, "Offers and contracts", 63),
        (4, "Onboarding", 58),
        (5, "Health and science desk", 55),
        (6, "Engineering desk", 43),
    )
)
