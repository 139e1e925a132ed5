"""What an answer asks for, by topic: so that the question a case needs is told from any other, and from all at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from memory_core.evals.matching import found


class Topic(StrEnum):
    """What a case can lack, or has been given."""

    RECIPIENT = "recipient"  # of a message
    OWNER = "owner"  # of a task
    DATE = "date"  # a day, or when something is to be
    INTERVIEW = "interview"  # which one
    INTERVIEW_KIND = "interview kind"  # phone, panel, technical
    EMAIL = "e-mail"  # somebody's address
    CHANNEL = "channel"  # the way something came in
    GROUNDS = "grounds"  # what a decision rests on
    CANDIDATE = "candidate"
    APPLICATION = "application"
    JOB = "job"


@dataclass(frozen=True, kw_only=True)
class _Signs:
    """How a topic is seen in an answer: wide where it has to be asked for, narrow where it may not be."""

    wanted: str  # an honest question is found, whatever its phrasing
    strayed: str  # nothing is found that only speaks of it, as far as that can be told


_REQUEST = (
    r"\b(?:which|what|whose|need|missing|lack|provide|tell|specify|share|know|confirm|clarify|choose|ask|"
    r"(?<!we )(?<!can't )(?<!cannot )(?:give|send)|"
    r"(?:you|not|n't|once i|until i) have|"
    r"you (?:name|state|say)|please|without|whether|required?|could you|can you)\b"
)
_NOT_THERE = (
    r"\b(?:missing|needed|required|unknown|(?:is|was|were)(?:n't| not) (?:given|provided|specified|stated|mentioned))\b"
)
_WHO = r"\bwho(?:m|'s)?\b"
_DOES = (
    r"\b(?:owns?|responsible|assign\w*|tasks?|do|does|takes?|handles?|orders?|sees?|looks?|cares?|arranges?|charge|buys?|"
    r"gets?)\b"
)
_COLLEAGUE = r"\b(?:omar|maria|lena|tom)\b"


def _asked(noun: str) -> str:
    """Return a pattern for a request that names something."""
    return rf"{_REQUEST}[^.!?]*\b(?:{noun})\b|\b(?:{noun})\b[^.!?]*(?:\?|{_NOT_THERE})"


def _object(noun: str) -> str:
    """Return a pattern for something as that which is asked for, alone or in a list, not as what else a sentence is about."""
    article = r"(?:the |an? |his |her |their |your )?"
    owned = r"(?:(?:name|id|identifier|number) of (?:the |an? )?)?"
    return (
        rf"\b(?:which|what) (?:(?:is|was) )?{article}(?:[\w-]+ )?(?:{noun})\b|"
        rf"\b(?:need|missing|provide|give|tell|specify|share|send|lack|confirm|clarify)(?: (?:me|us|to know|is|are))? "
        rf"{article}{owned}(?:[\w-]+ )?(?:{noun})\b|"
        rf"(?:[:,;]|\band|\bor) {article}{owned}(?:{noun})(?='s|[,;.?!)]|$| (?:and|or)\b)"
    )


_SIGNS = {
    Topic.RECIPIENT: _Signs(
        wanted=(
            rf"{_asked('recipients?|addressees?|colleagues?|addressed')}|\bto whom\b|"
            rf"{_WHO}[^.!?]*\b(?:for|to|send|sent|go|goes|receives?|gets?|message)\b|\bwhom\b ?\?|"
            rf"\b(?:send|go|address|draft|for|to)\b[^.!?]*{_COLLEAGUE}[^.!?]*\?"
        ),
        strayed=(
            rf"{_object('recipients?|addressees?')}|\bto whom\b(?![^.!?]*\b(?:assign|task))|"
            rf"{_WHO}[^.!?]*\b(?:receives?|message|send|sent)\b|"
            rf"\bcolleague\b[^.!?]*\b(?:receives?|message|send|address)\b|\b(?:go|send|draft|address)\b[^.!?]*{_COLLEAGUE}[^.!?]*\?|"
            rf"{_WHO}(?: is| was)? (?:it|this|that)(?: is)? for\b|{_WHO}(?: is| are)? the (?:recipient|addressee)"
        ),
    ),
    Topic.OWNER: _Signs(
        wanted=(
            rf"{_asked('owners?|responsible|assignee|colleague|in charge')}|\bwhose (?:is|task|job|should)\b|"
            rf"{_WHO}[^.!?]*{_DOES}[^.!?]*\?|\b(?:need|know|tell|say|specify|confirm)\b[^.!?]*{_WHO}[^.!?]*{_DOES}|"
            rf"{_COLLEAGUE}[^.!?]*\?"
        ),
        strayed=(
            r"\b(?:owners?|assignee)\b|"
            rf"{_WHO} (?:is|are|should|will|would|can|shall|owns?|does|takes?)\b[^.!?]*"
            r"\b(?:own|responsible|assign\w*|task|in charge|take care|do this|do it|handle)\b"
        ),
    ),
    Topic.DATE: _Signs(
        wanted=(
            rf"{_asked('dates?|day|month')}|\b(?:until|to|by|know|tell me|say) when\b|\bhow (?:far|long|much)\b[^.!?]*\?|"
            r"\bwhat\b[^.!?]*\bnew (?:one|start)\b[^.!?]*\?|"
            r"\bwhen (?:is|will|would|should|shall|does|do|can|could|she|grace|her)\b[^.!?]*\?"
        ),
        strayed=(
            rf"{_object('(?:due |start )?(?:dates?|day|time)|deadline')}|"
            r"\bwhen (?:is|was|will|would|should|shall|does|did|do|are|can|could)\b[^.!?]*\?|"
            r"\bwhen ?\?|(?:,|\band|\bor) (?:by )?when\b"
        ),
    ),
    Topic.INTERVIEW: _Signs(
        wanted=(
            rf"{_asked('interviews?|panel')}|{_object('candidate|application|applicant|ids?')}|"
            rf"{_WHO} (?:did|was|is|were|do|have|this|the|you)\b[^.!?]*"
            r"\b(?:interview\w*|panel|feedback|about|meet|met|talk\w*|spoke|speak)\b"
        ),
        strayed=_object(r"interviews?(?: ids?)?(?! (?:kind|type|format))"),
    ),
    Topic.INTERVIEW_KIND: _Signs(
        wanted=(
            rf"{_asked('kind|type|sort|format')}|\b(?:phone|panel|technical)\b[^.!?]*\bor\b[^.!?]*\b(?:phone|panel|technical)\b|"
            r"\b(?:an?|as) (?:phone|panel|technical)\b[^.!?]*\?"
        ),
        strayed=(
            rf"\b(?:which|what) (?:kind|type|sort|format)\b|\b(?:kind|type) of interview\b|{_object('kinds?|types?')}|"
            r"\bbe an? (?:phone|panel|technical)\b[^.!?]*\?|"
            r"\b(?:phone|panel|technical)\b[^.!?]*\bor\b[^.!?]*\b(?:phone|panel|technical)\b"
        ),
    ),
    Topic.EMAIL: _Signs(
        wanted=_asked("e-?mails?|e-?mail address|mail address|contact|address"),
        strayed=(
            r"\b(?:what|which)(?: is| are|'s)? (?:the |an? |his |her |their |[\w-]+'s |[\w-]+ [\w-]+'s )?e-?mail\b|"
            r"\b(?:e-?mail|mail|contact) address\b|\bneed(?: to know)? (?:the |an? |his |her |their )e-?mail\b"
        ),
    ),
    Topic.CHANNEL: _Signs(
        wanted=(
            r"\bhow (?!(?:can|may|could|should|would) (?:i|we)\b)[^.!?]*\b(?:c[ao]me|arrived?|receive\w*|reach\w*|ma[dk]e|sent|"
            r"send|submit\w*|contact\w*|get|got)\b|"
            rf"{_asked('channel|medium|(?:what|which) (?:way|means)')}|"
            r"\b(?:e-?mail|letter|(?:tele)?phone|call|form)\b[^.!?]*\bor\b[^.!?]*\b(?:e-?mail|letter|(?:tele)?phone|call|form)\b|"
            r"\b(?:was|did|come|came|sent)\b[^.!?]*\bby (?:e-?mail|letter|(?:tele)?phone) ?\?"
        ),
        strayed=(
            rf"{_object('channel')}|\b(?:letter|telephone)\b|"
            r"\bhow (?:did|was|has|were)\b[^.!?]*\b(?:come|came|receiv\w*|arriv\w*|reach\w*|submit\w*|made)\b"
        ),
    ),
    Topic.GROUNDS: _Signs(
        wanted=r"\bnotes?\b|feedback|\b(?:held|or|any|which) interview|on record|evidence|\bby a person\b|a person's|"
        r"a person wrote|\bgrounds?\b|\breasons?\b|\brest\b|memory alone|"
        r"on its own|inferr|inference|(?:solely|only|just|based)\b[^.!?]*memor",
        strayed=rf"{_object('grounds?|reasons?')}|\bgrounds\b|\ba memory\b",
    ),
    Topic.CANDIDATE: _Signs(
        wanted=_asked("candidate|applicant"),
        strayed=rf"{_object('candidates?|applicants?')}|{_WHO}(?: is| was)? (?:it|this|that)(?: \w+)? about\b",
    ),
    Topic.APPLICATION: _Signs(wanted=_asked("applications?"), strayed=_object("applications?")),
    Topic.JOB: _Signs(wanted=_asked("jobs?|roles?"), strayed=_object("jobs?|roles?|positions?")),
}


def patterns() -> list[str]:
    """Return every pattern, to be tried for how long it takes."""
    return [pattern for signs in _SIGNS.values() for pattern in (signs.wanted, signs.strayed)]


def asks_for(topic: Topic, answer: str) -> bool:
    """Say whether an answer asks for something, in whatever words."""
    return found(_SIGNS[topic].wanted, answer)


def questions(answer: str) -> list[str]:
    """Return the sentences of an answer that end with a question mark."""
    return re.findall(r"[^.!?]*\?", answer)


def strays_to(answer: str) -> set[Topic]:
    """Return what an answer asks for, as far as no honest question for another topic would be put so."""
    return {topic for topic, signs in _SIGNS.items() if found(signs.strayed, answer)}
