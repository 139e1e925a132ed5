"""A topic: sentences that say the same kind of thing in different ways."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Lasts(Enum):
    """How long a sentence is of use."""

    BRIEF = auto()  # until a day that it names, or a few weeks
    USUAL = auto()  # the default of the store
    STANDING = auto()  # until somebody changes the rule


class Sayer(Enum):
    """Who states a topic's sentences, when a person does."""

    RECRUITER = auto()  # whoever looks after the subject
    INTERVIEWER = auto()  # somebody on the job's panel
    ITSELF = auto()  # the recruiter or interviewer whom it is about
    ANYBODY = auto()  # any recruiter or interviewer


@dataclass(frozen=True, kw_only=True)
class Topic:
    """Sentences of which one subject gets at most one, so that what it says about them agrees.

    Stages of a process: 0 found, 1 screened, 2 scheduled, 3 interviewed, 4 weighed, 5 offered, 6 joining, 7 closed.
    A sentence may have slots: see `memory_core.demo.wording`.
    """

    name: str
    stage: float = 0
    lasts: Lasts = Lasts.USUAL
    sayer: Sayer = Sayer.RECRUITER
    agents: tuple[str, ...]
    source: str | None = None  # "msg", "note", "call" or "form"
    said: tuple[str, ...]
    inferred: tuple[str, ...] = ()
