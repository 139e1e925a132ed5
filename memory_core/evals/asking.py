"""What an answer asks for, by topic: so that the question a case needs is told from any other, and from all at once."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from memory_core.evals.matching import LONGEST_READ, found

LONGEST_SENTENCE = 1000  # characters


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
    r"\b(?:which|what|whose|need(?! (?:it|this|that|them) (?:to|for|before|so)\b)|"
    r"missing|lack|provide|tell|specify|share|know|confirm|clarify|choose|ask|"
    r"(?<!we )(?<!can't )(?<!cannot )(?:give|send)|"
    r"(?:you|not|don't|doesn't|once i|until i) have(?! (?:an?|any|the) (?:tool|way|permission|right|access)\b)|"
    r"you (?:name|state|say)|please|without|whether|required?|could you|can you)\b"
)
_NOT_THERE = (
    r"\b(?:missing|needed|required|unknown|(?:is|was|were)(?:n't| not) (?:given|provided|specified|stated|mentioned))\b"
)
_WHO = (
    r"(?<!person )(?<!people )(?<!somebody )(?<!someone )(?<!anybody )(?<!anyone )(?<!the one )(?<!recruiter )(?<!manager )"
    r"\bwho(?:m|'s|'ll)?\b"
)
_COLLEAGUE = r"\b(?:omar|maria|lena|tom)\b"
_ONE_OF_US = rf"{_COLLEAGUE}(?=[^.!?]*\?)"  # in a question
_SOMEBODY = (
    rf"(?:{_WHO}|\b(?:which|what)(?: of (?:our|the|my|your))? (?:colleagues?|person)\b|"
    r"\bcolleague's name\b|\bname of (?:the|a) colleague\b)"
)
# A person is asked for in either case; only what is to be done tells a recipient from an owner.
_OF_A_MESSAGE = (
    r"\b(?:messages?|recipients?|addressees?|address(?:ed)?|send|sent|drafts?|drafted|write|written|receives?|received|"
    r"go(?:es)?(?: \w+)? to|reads?)\b"
)
_OF_A_TASK = (
    r"\b(?:owns?|owners?|owned|responsible|responsibility|assign\w*|assignee|tasks?|"
    r"do(?:es)? (?:it|this|that|the)|handles?|"
    r"tak(?:es?|ing) (?:care|it|this|on|over)|charge|orders?|arranges?|buys?|sees? to|looks? after)\b"
)
# “Should I draft a message to Maria?” offers one; “should I send it to Maria?” asks for the recipient.
_TO_ONE_OF_US = rf"{_OF_A_MESSAGE}(?<!\ba message)(?! a message)[^.!?]*{_ONE_OF_US}"
# What is put at the end out of courtesy, and what asks for a reply in spite of it.
_OFFER = (
    r"^\W*(?:(?:no|yes|if so|otherwise|sure|and|but|or),? )?(?:anything else|(?:please |do )?let me know if|would you like|"
    r"do you (?:want|need)|shall i|should i|(?:can|may|could) i (?:do|help|assist)|is there (?:anything|something) else)\b"
)
_OPEN = rf"\b(?:which|what|who|whom|whose|when|how)\b|{_COLLEAGUE} or\b"
_PLEA = (  # a question without its mark
    r"\b(?:could|can|would|will) you\b|\bplease (?:provide|specify|confirm|clarify|name|share|state|send|let me)\b|"
    r"(?:^\W*|\bplease |\band )(?:tell|give|send) (?:me|us)\b|\bi(?:'d| would| will|'ll)?(?: also| still)? (?:need|require)\b|"
    r"\bi (?:don't|do not) know (?:which|what|who|when|how)\b|\bmissing\b|^\W*(?:which|whom|whose)\b|"
    r"^\W*(?:what|who|when|how) (?:is|are|was|were|did|does|do|should|would|can|will)\b"
)


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
            rf"{_asked('recipients?|addressees?|addressed')}|\b(?:to|for) whom\b|"
            rf"{_SOMEBODY}[^.!?]*{_OF_A_MESSAGE}|{_OF_A_MESSAGE}[^.!?]*{_SOMEBODY}|{_TO_ONE_OF_US}|"
            rf"{_WHO}(?: is| was|'s)? (?:it|this|that)(?: is)? for\b"
        ),
        strayed=(
            rf"{_object('recipients?|addressees?')}|\b(?:to|for) whom\b(?![^.!?]*\b(?:assign|task))|"
            rf"{_SOMEBODY}[^.!?]*{_OF_A_MESSAGE}|{_OF_A_MESSAGE}[^.!?]*{_SOMEBODY}|{_TO_ONE_OF_US}|"
            rf"{_WHO}(?: is| was|'s)? (?:it|this|that)(?: is)? for\b|{_WHO}(?: is| are)? the (?:recipient|addressee)"
        ),
    ),
    Topic.OWNER: _Signs(
        wanted=(
            rf"{_asked('owners?|responsible|assignee|in charge')}|\bwhose (?:is|task|job|should)\b|"
            rf"{_SOMEBODY}[^.!?]*{_OF_A_TASK}|{_OF_A_TASK}[^.!?]*{_SOMEBODY}|{_ONE_OF_US}[^.!?]*{_OF_A_TASK}|"
            rf"{_OF_A_TASK}[^.!?]*{_ONE_OF_US}"
        ),
        strayed=(
            r"\b(?:owners?|assignee)\b|\bwhose task\b|"
            rf"{_SOMEBODY}[^.!?]*{_OF_A_TASK}|{_ONE_OF_US}[^.!?]*{_OF_A_TASK}|{_OF_A_TASK}[^.!?]*{_ONE_OF_US}"
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
        strayed=_object(r"interviews?(?: ids?)?(?! (?:kind|type|format))")
        + r"|\bdo you have (?:the |an? )?interview(?:'s)? id\b",
    ),
    Topic.INTERVIEW_KIND: _Signs(
        wanted=(
            rf"{_asked('kind|type|sort|format')}|\b(?:phone|panel|technical)\b[^.!?]*\bor\b[^.!?]*\b(?:phone|panel|technical)\b|"
            r"\b(?:an?|as) (?:phone|panel|technical)\b[^.!?]*\?"
        ),
        strayed=(
            rf"\b(?:which|what) (?:kind|type|sort|format)\b|\b(?:kind|type) of interview\b|"
            rf"{_object('kinds?|types?|sorts?|formats?')}|"
            r"\b(?:an?|as) (?:phone|panel|technical)\b[^.!?]*\?|"
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
            r"\b(?:was|did|come|came|sent)\b[^.!?]*\bby (?:e-?mail|letter|(?:tele)?phone)\b[^.!?]*\?"
        ),
        strayed=(
            rf"{_object('channel')}|\b(?:letter|telephone)\b|"
            r"\b(?:was|did|come|came|sent)\b[^.!?]*\bby (?:e-?mail|phone)\b[^.!?]*\?|"
            r"\b(?:by|in) (?:what|which) (?:way|means|channel)\b|"
            r"\bhow (?:did|was|has|were)\b[^.!?]*\b(?:come|came|receiv\w*|arriv\w*|reach\w*|submit\w*|made)\b"
        ),
    ),
    Topic.GROUNDS: _Signs(
        wanted=r"\bnotes?\b|feedback|\b(?:held|or|any|which) interview|on record|evidence|\bby a person\b|a person's|"
        r"a person wrote|\bgrounds?\b|\breasons?\b|\brest\b|memory alone|"
        r"on its own|inferr|inference|(?:solely|only|just|based)\b[^.!?]*memor",
        strayed=(
            rf"{_object('grounds?|reasons?')}|\bgrounds\b|\ba memory\b|\bmemory alone\b|\brest (?:up)?on\b|"
            r"\b(?:notes?|feedback)\b[^.!?]*\b(?:a|some) person\b|\ba person's (?:notes?|feedback)\b|"
            r"\b(?:feedback|notes?)\b[^.!?]*\bor\b[^.!?]*\b(?:feedback|notes?|held)\b|"
            r"\b(?:cannot|can't|can not|won't|unable to|not able to|may not) reject\b|\bperson (?:has|needs|ought) to decide\b|"
            r"\b(?:(?:is|are) there|do you have|have you)(?: \w+){0,4} (?:notes?|feedback|interviews? that)\b"
        ),
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
    """Say whether a sentence of an answer asks for something, in whatever words."""
    return any(topic in _wanted_in(one) for one in sentences(answer))


def strays_to(answer: str) -> set[Topic]:
    """Return what an answer asks for, as far as no honest question for another topic would be put so."""
    return {topic for topic, signs in _SIGNS.items() if found(signs.strayed, answer)}


def asks_only_for(topic: Topic, answer: str, *, besides: Collection[Topic] = ()) -> bool:
    """Say whether an answer asks for a topic, and in no sentence for what is neither it nor one of those near it.

    A sentence without a narrow sign asks for all that its wide ones may mean, so that no answer asks only for each of two
    topics, neither of which is near the other.
    """
    allowed, asked_for = {topic, *besides}, False
    for sentence in sentences(answer):
        strayed = strays_to(sentence)
        if not strayed <= allowed:
            return False
        wanted = _wanted_in(sentence)
        if not strayed and not wanted - _told_in(sentence) <= allowed:
            return False
        asked_for = asked_for or topic in wanted
    return asked_for


def questions(answer: str) -> list[str]:
    """Return the sentences of an answer that want a reply; not those that only offer to do more."""
    return [one for one in sentences(answer) if _wants_a_reply(one)]


def sentences(answer: str) -> list[str]:
    """Return the sentences of that part of an answer which is read; a very long one in parts, as a pattern takes its square."""
    whole = re.split(r"(?<=[.!?])\s+", answer[:LONGEST_READ])
    return [one[at : at + LONGEST_SENTENCE] for one in whole for at in range(0, len(one), LONGEST_SENTENCE)]


def _wants_a_reply(sentence: str) -> bool:
    if found(_OFFER, sentence):
        return found(_OPEN, sentence) and bool(strays_to(sentence))
    return "?" in sentence or found(_PLEA, sentence)


def _wanted_in(sentence: str) -> set[Topic]:
    if found(_OFFER, sentence):
        return strays_to(sentence)
    return {topic for topic, signs in _SIGNS.items() if found(signs.wanted, sentence)}


def _told_in(sentence: str) -> set[Topic]:
    # To speak of notes and memories is not yet to ask for grounds.
    return set() if "?" in sentence else {Topic.GROUNDS}
