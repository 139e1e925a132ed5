"""One organisation as somebody who signed in may use it: before each call it is looked up whether they may, now."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from memory_core.config import Settings
from memory_core.db import database, organisations, trail
from memory_core.db.engine import organisation_transaction, transaction
from memory_core.errors import Forbidden, NotOffered, Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.membership import Members, standing_of
from memory_core.privacy import PrivacyDesk
from memory_core.roles import LOCAL, MAY, NOT_AS, Act, Identity, Standing
from memory_core.store import MemoryStore

Answer = TypeVar("Answer")
ActOf = Act | Callable[[Mapping[str, Any]], Act]


def _package(given: Mapping[str, Any]) -> Act:
    return Act.RELEASE if given.get("release") else Act.LOOK


# What each call that the workbench may make is, as an act; what is not named here cannot be called through a workplace.
STORE: Mapping[str, ActOf] = {
    "find_subjects": Act.LOOK,
    "forget": Act.FORGET,
    "held": Act.LOOK,
    "overview": Act.OVERVIEW,
}
DESK: Mapping[str, ActOf] = {
    "certificate": Act.READ_REGISTER,
    "change_safeguards": Act.CHANGE_SAFEGUARDS,
    "change_settings": Act.CHANGE_SETTINGS,
    "correct": Act.CORRECT,
    "decide": Act.DECIDE,
    "dispute": Act.CORRECT,
    "due": Act.READ_REGISTER,
    "erase": Act.FORGET,
    "erasures": Act.READ_REGISTER,
    "held": Act.LOOK,
    "hold": Act.MEASURE,
    "ledger": Act.OVERVIEW,
    "lift": Act.MEASURE,
    "measures": Act.LOOK,
    "package": _package,
    "reach": Act.FORGET,
    "restrict": Act.MEASURE,
    "safeguards": Act.OVERVIEW,
    "settings": Act.OVERVIEW,
    "suppress": Act.MEASURE,
    "today": Act.OVERVIEW,
    "trail": Act.READ_TRAIL,
    "verify_trail": Act.READ_TRAIL,
    "waiting_for_second": Act.READ_REGISTER,
    "withdraw_dispute": Act.CORRECT,
}
REGISTER: Mapping[str, ActOf] = {
    "answer": Act.WORK_REGISTER,
    "ask_identity": Act.WORK_REGISTER,
    "confirm_identity": Act.WORK_REGISTER,
    "deadline": Act.READ_REGISTER,
    "deadlines": Act.READ_REGISTER,
    "every": Act.READ_REGISTER,
    "extend": Act.WORK_REGISTER,
    "fail_identity": Act.WORK_REGISTER,
    "history": Act.READ_REGISTER,
    "mark_duplicate": Act.WORK_REGISTER,
    "name_subject": Act.WORK_REGISTER,
    "pause": Act.WORK_REGISTER,
    "refuse": Act.WORK_REGISTER,
    "register": Act.WORK_REGISTER,
    "request": Act.READ_REGISTER,
    "resume": Act.WORK_REGISTER,
    "withdraw": Act.WORK_REGISTER,
}
MEMBERS: Mapping[str, ActOf] = {
    "add": Act.CHANGE_MEMBERS,
    "listed": Act.READ_MEMBERS,
    "remove": Act.CHANGE_MEMBERS,
}
FUNCTIONS: Mapping[str, Act] = {  # functions of the organisation's id, by module and name
    "memory_core.evals.results.evaluation": Act.READ_EVALS,
    "memory_core.evals.results.evaluations": Act.READ_EVALS,
    "memory_core.evals.results.pass_shares": Act.READ_EVALS,
    "memory_core.evals.results.results": Act.READ_EVALS,
    "memory_core.evals.results.transcript": Act.READ_EVALS,
    "memory_core.latency.latency": Act.READ_LATENCY,
    "memory_core.latency.recorded_prompts": Act.PREVIEW,
    "memory_core.previewing.preview": Act.PREVIEW,
    "memory_core.previewing.shown_to": Act.PREVIEW,
    "memory_core.tracing.agents_on_record": Act.READ_RUNS,
    "memory_core.tracing.found_runs": Act.READ_RUNS,
    "memory_core.tracing.trace": Act.READ_RUNS,
}
PLAIN = frozenset({"by", "org_id"})
TIMES = frozenset({"clock", "now"})  # when something was done is not for whoever does it to say
REFUSAL_EVERY_S = 60.0  # of one person at one act
MOST_REMEMBERED = 10_000
NOBODY = "identity:nobody"  # as the trail has whoever did not sign in


class Refusals:
    """Which refusals were recorded a moment ago, so that a page that is reloaded does not flood the trail. Thread-safe."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told: dict[tuple[str, str, str], float] = {}  # who, in which organisation, what
        self._telling = threading.Lock()

    def is_new(self, refusal: tuple[str, str, str]) -> bool:
        """Say whether a refusal is worth a line."""
        with self._telling:
            return self._monotonic() - self._told.get(refusal, -math.inf) >= REFUSAL_EVERY_S

    def add(self, refusal: tuple[str, str, str]) -> None:
        """Remember that a refusal has its line."""
        with self._telling:
            if len(self._told) >= MOST_REMEMBERED:
                self._told.clear()
            self._told[refusal] = self._monotonic()


_refusals = Refusals()


class Workplace:
    """An organisation and who uses it; `who` is None for the one local user of a workbench without a sign-in.

    Nothing is remembered of what somebody may: membership and roles are looked up in the database at each call, and `still`
    is asked who is signed in: a part of a page that is drawn anew by itself does not pass the page's gate again. What is
    refused is a line of the organisation's trail, and raises `Forbidden`.
    """

    def __init__(
        self,
        org_id: str,
        who: Identity | None,
        *,
        settings: Settings,
        still: Callable[[], Identity | Refusal | None] | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        if refused := identifier_refusal(org_id, field="org_id"):
            raise Refused(refused)
        self.org_id = org_id
        self.who = who
        self.settings = settings
        self._still = still or (lambda: who)
        self._refusals = _refusals if refusals is None else refusals

    def standing(self) -> Standing | None:
        """Return what they are in the organisation now, or None; raises `Refused` where they are not signed in any more."""
        found = self._still()
        if isinstance(found, Refusal):
            raise Refused(found)
        if found != self.who:
            raise Refused(
                Refusal(rule="somebody_is_signed_in", field="sign-in", reason="somebody else signed in; reload")
            )
        return LOCAL if self.who is None else standing_of(self.org_id, self.who, settings=self.settings)

    def may(self, act: Act) -> bool:
        """Say whether they may do an act now."""
        standing = self.standing()
        return standing is not None and standing.may(act)

    def require(self, act: Act) -> Standing:
        """Return what they are, if they may do an act now; else raise `Forbidden`."""
        standing = self.standing()
        if standing is not None and standing.may(act):
            return standing
        self._record_refusal(act, standing)
        if standing is None:
            raise Forbidden(act.value)
        barred = standing.roles & NOT_AS.get(act, frozenset()) if standing.roles & MAY[act] else ()
        raise Forbidden(act.value, needed=tuple(sorted(MAY[act])), barred=tuple(sorted(barred)))

    def store(self) -> MemoryStore:
        """Return the organisation's store, each call of it checked."""
        store = MemoryStore.open(self.org_id, settings=self.settings)
        return cast("MemoryStore", _Guarded(store, STORE, self.require))

    def desk(self) -> PrivacyDesk:
        """Return the desk in their name, each call of it checked; raises `Forbidden` for somebody who is no member."""
        standing = self.require(Act.OVERVIEW)
        desk = PrivacyDesk.open(self.org_id, by=standing.name, settings=self.settings)
        register = _Guarded(desk.register, REGISTER, self.require)
        return cast("PrivacyDesk", _Guarded(desk, DESK, self.require, {"register": register}))

    def members(self) -> Members:
        """Return the organisation's members in their name, each call checked."""
        standing = self.require(Act.READ_MEMBERS)
        members = Members.open(self.org_id, by=standing.name, settings=self.settings)
        return cast("Members", _Guarded(members, MEMBERS, self.require))

    def call(self, function: Callable[..., Answer], *given: Any, **named: Any) -> Answer:
        """Call one of the functions of an organisation, checked and in their name.

        What takes a session's `key` puts persons under pseudonyms with it: whoever may not look at subjects has to give one.
        """
        act = FUNCTIONS.get(f"{function.__module__}.{function.__qualname__}")
        if act is None:
            raise NotOffered(function.__qualname__)
        standing = self.require(act)
        if TIMES & named.keys():
            raise NotOffered(f"{function.__qualname__} at another time")
        if "key" in _parameters(function) and named.get("key") is None and not standing.may(Act.LOOK):
            raise NotOffered(f"{function.__qualname__} without a key for pseudonyms")
        return function(self.org_id, *given, settings=self.settings, **_in_their_name(function, named, standing))

    def _record_refusal(self, act: Act, standing: Standing | None) -> None:
        if self.who is not None:
            record_refusal(
                self.org_id,
                self.who,
                act.value,
                settings=self.settings,
                name=standing.name if standing else None,
                refusals=self._refusals,
            )


def record_refusal(
    org_id: str,
    who: Identity | None,
    what: str,
    *,
    settings: Settings,
    name: str | None = None,
    refusals: Refusals = _refusals,
) -> None:
    """Leave a line of an organisation's trail that somebody was refused something; the same again only after a minute.

    An organisation that is in an address only has no trail. Raises a `DatabaseError`, and then it is not on record.
    """
    by = name or (NOBODY if who is None else who.short)
    refusal = (by, org_id, what)
    if not refusals.is_new(refusal):
        return
    engine = database.usable_engine(settings)
    with transaction(engine) as connection:
        if org_id not in organisations.listed(connection):
            return
    with organisation_transaction(engine, org_id) as connection:
        trail.record(connection, org_id, by=by, act="refused", reason=what, now=None)
    refusals.add(refusal)


class _Guarded:
    """An object of which only the named calls can be made, each after its act was allowed."""

    def __init__(
        self,
        of: object,
        acts: Mapping[str, ActOf],
        require: Callable[[Act], Standing],
        parts: Mapping[str, object] | None = None,
    ) -> None:
        self.__dict__["_hidden"] = (of, acts, require, parts or {})

    def __getattr__(self, name: str) -> Any:
        of, acts, require, parts = self.__dict__["_hidden"]
        if name in PLAIN:
            return getattr(of, name)
        if name in parts:
            return parts[name]
        act = acts.get(name)
        if act is None:
            raise NotOffered(name)

        def checked(*given: Any, **named: Any) -> Any:
            standing = require(act(named) if callable(act) else act)
            if getattr(of, "by", standing.name) != standing.name:
                reason = f"is {standing.name} by now, and this was opened as {of.by}; open it again"
                raise Refused(Refusal(rule="acts_are_in_ones_own_name", field="by", reason=reason))
            method = getattr(of, name)
            return method(*given, **_in_their_name(method, named, standing))

        return checked

    def __setattr__(self, name: str, value: object) -> None:
        raise NotOffered(f"a change of {name}")


def _in_their_name(method: Callable[..., Any], named: Mapping[str, Any], standing: Standing) -> Mapping[str, Any]:
    """Return what a call is given, with `by` as whoever makes it: nobody acts or looks in another's name."""
    return {**named, "by": standing.name} if "by" in _parameters(method) else named


def _parameters(method: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(method).parameters
