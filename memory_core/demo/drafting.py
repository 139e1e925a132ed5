"""Choosing who says what about whom in the demo organisation, before anything has a date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from random import Random

from memory_core.demo.facts import ABOUT_WORK, GENERAL
from memory_core.demo.people import INTERVIEWER_LOGINS, PEOPLE, RECRUITER_LOGINS, Person
from memory_core.demo.scripted import SCRIPTED, Scripted
from memory_core.demo.sentences import ABOUT_PEOPLE
from memory_core.demo.topics import Lasts, Sayer, Topic
from memory_core.demo.wording import slots
from memory_core.demo.work import CLIENTS, JOBS, TEAMS
from memory_core.model import Kind, Origin, Subject

SEED = 20418
MAX_TOGETHER = 3  # memories that one run writes
DAYS_OF_MEMORY = 79
MILESTONES = ("", "", "booked", "interview", "outcome", "offer", "joining", "closing")  # the topic that marks a stage


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A memory without its dates."""

    number: int  # unique; seeds its choice of words
    template: str
    words: Mapping[str, str]
    kind: Kind
    origin: Origin
    author: str
    subject: Subject | None
    source: str | None
    stage: float
    lasts: Lasts


@dataclass(frozen=True, kw_only=True)
class Thread:
    """What is remembered about one subject, in its order: each session is one run's memories."""

    subject: Subject | None
    since: int
    until: int
    sessions: tuple[tuple[Draft, ...], ...]


@dataclass(frozen=True, kw_only=True)
class _Dossier:
    """What drafting needs to know of one subject."""

    subject: Subject | None
    words: Mapping[str, str]
    kind: Kind
    since: int
    until: int
    count: int
    topics: Sequence[Topic]
    owner: str | None = None
    panel: Sequence[str] = INTERVIEWER_LOGINS
    must: Sequence[str] = ()  # topics it cannot do without


@dataclass
class _Writer:
    """The hand that picks sentences, using each as seldom as it can."""

    random: Random
    used: Counter[str] = field(default_factory=Counter)
    number: int = 0

    def author(self, topic: Topic, dossier: _Dossier) -> str:
        own = dossier.owner or self.random.choice(RECRUITER_LOGINS)
        if topic.sayer is Sayer.INTERVIEWER:
            return self.random.choice(dossier.panel)
        if topic.sayer is Sayer.ANYBODY:
            return self.random.choice((own, *RECRUITER_LOGINS, *dossier.panel))
        if topic.sayer is Sayer.ITSELF and dossier.subject is not None and self.random.random() < 0.6:
            return dossier.subject.id
        return own if self.random.random() < 0.85 else self.random.choice(RECRUITER_LOGINS)

    def draft(self, topic: Topic, template: str, dossier: _Dossier) -> Draft:
        self.used[template] += 1
        said = template in topic.said
        has_source = topic.source is not None and self.random.random() < 0.75
        self.number += 1
        return Draft(
            number=self.number,
            template=template,
            words=dossier.words,
            kind=dossier.kind,
            origin=Origin.PERSON if said else Origin.INFERENCE,
            author=f"user:{self.author(topic, dossier)}" if said else self.random.choice(topic.agents),
            subject=dossier.subject,
            source=topic.source if has_source else None,
            stage=topic.stage,
            lasts=topic.lasts,
        )

    def pick(self, topic: Topic, dossier: _Dossier) -> Draft:
        fitting = sayable(topic, dossier.words)
        least = min(map(self.wear, fitting))
        return self.draft(topic, self.random.choice([one for one in fitting if self.wear(one) == least]), dossier)

    def wear(self, template: str) -> int:
        """Say how worn a sentence is: one without slots wears out faster, as it always reads the same."""
        return self.used[template] * (1 if "{" in template else 3)

    def freshest(self, topics: Sequence[Topic], count: int, dossier: _Dossier) -> Sequence[Topic]:
        """Choose topics that have the least worn sentences left."""
        shuffled = self.random.sample(topics, len(topics))
        return sorted(shuffled, key=lambda topic: min(map(self.wear, sayable(topic, dossier.words))))[:count]

    def scripted(self, scripted: Scripted, dossier: _Dossier) -> Draft:
        self.number += 1
        return Draft(
            number=self.number,
            template=scripted.text,
            words=dossier.words,
            kind=scripted.kind,
            origin=scripted.origin,
            author=scripted.author,
            subject=dossier.subject,
            source=scripted.source,
            stage=scripted.stage,
            lasts=Lasts.USUAL,
        )

    def thread(self, dossier: _Dossier) -> Thread:
        """Write what is remembered about one subject."""
        place = dossier.subject and (dossier.subject.type, dossier.subject.id)
        given = [scripted for scripted in SCRIPTED if scripted.about == place]
        barred = {name for scripted in given for name in scripted.instead_of}
        drafts = [self.scripted(scripted, dossier) for scripted in given]
        if dossier.subject is None:
            drafts += [
                self.draft(topic, template, dossier)
                for topic in dossier.topics
                for template in topic.said + topic.inferred
            ]
            self.random.shuffle(drafts)
        else:
            open_ = [topic for topic in dossier.topics if topic.name not in barred and sayable(topic, dossier.words)]
            chosen = [topic for topic in open_ if topic.name in dossier.must]
            rest = [topic for topic in open_ if topic.name not in dossier.must]
            chosen += self.freshest(rest, dossier.count - len(drafts) - len(chosen), dossier)
            drafts += [self.pick(topic, dossier) for topic in chosen]
            drafts.sort(key=lambda draft: draft.stage)
        return Thread(
            subject=dossier.subject, since=dossier.since, until=dossier.until, sessions=tuple(self._sessions(drafts))
        )

    def _sessions(self, drafts: Sequence[Draft]) -> Iterable[tuple[Draft, ...]]:
        """Let what one author writes in a row, at one stage, be written by one run now and then."""
        session = [drafts[0]]
        for before, draft in pairwise(drafts):
            likely = 0.7 if draft.origin is Origin.INFERENCE else 0.4
            if (
                before.author == draft.author
                and int(before.stage) == int(draft.stage)
                and len(session) < MAX_TOGETHER
                and self.random.random() < likely
            ):
                session.append(draft)
            else:
                yield tuple(session)
                session = [draft]
        yield tuple(session)


def sayable(topic: Topic, words: Mapping[str, str]) -> list[str]:
    """Give the sentences of a topic whose slots can be filled, and that make no journey within one city."""
    return [
        template
        for template in topic.said + topic.inferred
        if slots(template) <= words.keys()
        and not (slots(template) >= {"city", "job_city"} and words["city"] == words["job_city"])
    ]


def _of_person(person: Person) -> _Dossier:
    topics = ABOUT_PEOPLE[person.subject.type]
    must: tuple[str, ...] = ()
    if person.subject.type == "candidate":
        passed = (*range(person.reached + 1), 7) if person.closed else range(person.reached + 1)
        topics = tuple(topic for topic in topics if int(topic.stage) in passed)
        must = tuple(MILESTONES[stage] for stage in passed[-2:])
    return _Dossier(
        subject=person.subject,
        words=person.slots,
        kind=Kind.OBSERVATION,
        since=person.since,
        until=person.until,
        count=person.count,
        topics=topics,
        owner=person.recruiter,
        panel=JOBS[person.job].panel if person.job else INTERVIEWER_LOGINS,
        must=must,
    )


def _of_work() -> Iterable[_Dossier]:
    everything = [
        *((job.subject, job.slots, job.since, job.count, job.panel) for job in JOBS.values()),
        *((client.subject, client.slots, client.since, client.count, INTERVIEWER_LOGINS) for client in CLIENTS),
        *((team.subject, dict[str, str](), team.since, team.count, INTERVIEWER_LOGINS) for team in TEAMS),
    ]
    for place, (subject, words, since, count, panel) in enumerate(everything):
        yield _Dossier(
            subject=subject,
            words=words,
            kind=Kind.FACT,
            since=since,
            until=0,
            count=count,
            topics=ABOUT_WORK[subject.type],
            owner=RECRUITER_LOGINS[place % len(RECRUITER_LOGINS)],
            panel=panel,
        )
    yield _Dossier(subject=None, words={}, kind=Kind.FACT, since=DAYS_OF_MEMORY, until=0, count=0, topics=GENERAL)


@cache
def threads() -> tuple[Thread, ...]:
    """Draft everything the demo organisation remembers, the same every time."""
    writer = _Writer(Random(SEED))  # noqa: S311 - repeatable, not secret
    return tuple(writer.thread(dossier) for dossier in (*map(_of_person, PEOPLE), *_of_work()))
