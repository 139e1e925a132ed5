"""Cases of the suites as a scripted model plays them: the way its reference says, or one of the ways to go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from memory_core.agents.registry import registry
from memory_core.errors import ModelUnavailable
from memory_core.evals.case import Case
from memory_core.evals.matching import plain
from memory_core.evals.scripted import ScriptedCall, Step
from memory_core.evals.suite import suites

# One valid call of each tool, on the sample workspace as it is on Monday 30 November 2026.
VALID: dict[str, dict[str, Any]] = {
    "add_application": {"candidate_id": "smp-c9", "job_id": "smp-j2"},
    "add_candidate": {"name": "Jonas Weller", "email": "j@example.org", "location": "Hamburg", "source": "meetup"},
    "add_feedback": {"interview_id": "smp-i4", "text": "Strong on trade-offs, a bit quiet.", "rating": 4},
    "add_free_slot": {"interviewer": "user:lena", "starts_at": "2026-12-04T09:00", "minutes": 60},
    "add_note": {"application_id": "smp-a3", "text": "Rang about the next step."},
    "add_task": {"candidate_id": "smp-c5", "title": "Order a chair", "owner": "user:tom", "due_on": "2026-12-11"},
    "advance_application": {"application_id": "smp-a4", "to": "screening", "grounds": ["smp-n8"]},
    "ask_for_identity": {"request_id": "smp-p1"},
    "book_interview": {
        "application_id": "smp-a3",
        "interviewer": "user:lena",
        "kind": "panel",
        "starts_at": "2026-12-03T13:00",
    },
    "cancel_interview": {"interview_id": "smp-i2"},
    "change_offer": {"offer_id": "smp-o1", "start_on": "2027-04-01"},
    "complete_task": {"task_id": "smp-t3"},
    "count_applications": {"since": "2026-11-01"},
    "count_by_stage": {"job_id": "smp-j3"},
    "days_open": {"job_id": "smp-j3"},
    "draft_colleague_message": {"colleague": "user:lena", "subject": "News", "body": "It went well."},
    "draft_message": {"candidate_id": "smp-c3", "subject": "News", "body": "You will hear from us."},
    "draft_offer": {"application_id": "smp-a7", "salary": 65000, "currency": "EUR", "start_on": "2027-03-01"},
    "find_candidates": {"name": "Grace"},
    "get_application": {"application_id": "smp-a2"},
    "get_candidate": {"candidate_id": "smp-c2"},
    "get_job": {"job_id": "smp-j1"},
    "hand_over_request": {"request_id": "smp-p1"},
    "keep_statement": {"note_id": "smp-n3"},
    "list_applications": {"job_id": "smp-j1"},
    "list_applications_of": {"candidate": "Bo Lindqvist"},
    "list_feedback": {"application_id": "smp-a1"},
    "list_free_slots": {"interviewer": "user:omar"},
    "list_interviews": {"application_id": "smp-a3"},
    "list_interviews_on": {"day": "2026-12-02"},
    "list_jobs": {},
    "list_notes": {"application_id": "smp-a4"},
    "list_offers": {"application_id": "smp-a7"},
    "list_privacy_requests": {"candidate_id": "smp-c9"},
    "list_tasks": {"candidate_id": "smp-c5"},
    "list_waiting": {"days": 7},
    "mark_interview_held": {"interview_id": "smp-i5"},
    "move_interview": {"interview_id": "smp-i2", "starts_at": "2026-12-04T15:00"},
    "move_task": {"task_id": "smp-t1", "due_on": "2026-12-11"},
    "recall_memories": {"question": "What is known?"},
    "register_privacy_request": {
        "candidate_id": "smp-c8",
        "type": "access",
        "channel": "telephone",
        "received_on": "2026-11-27",
    },
    "reject_application": {"application_id": "smp-a4", "reason": "Not enough experience.", "grounds": ["smp-n8"]},
    "remember": {"text": "Can start on 1 February at the earliest.", "candidate_id": "smp-c2"},
    "search_by_skill": {"skill": "Go"},
    "withdraw_offer": {"offer_id": "smp-o1"},
}
STANDS_IN_THE_WAY = frozenset({"draft_offer"})  # the one application in the stage offer has an offer, so it is refused
KEEPS_A_MEMORY = frozenset({"keep_statement", "remember"})  # which changes no table of the workspace

# What an agent could do besides, once all is done; no case of the agent allows it.
SUPERFLUOUS = {
    "feedback-summary": "add_note",
    "interview-notes": "add_note",
    "offer": "draft_message",
    "onboarding": "complete_task",
    "pipeline-report": "draft_colleague_message",
    "privacy-desk": "draft_message",
    "scheduling": "add_free_slot",
    "screening": "add_note",
    "sourcing": "draft_message",
}


@dataclass(frozen=True)
class Row:
    """What a case expects besides restraint and a state, and how it is got wrong."""

    expects: str  # "calls", "ordered calls", "calls at once", "changes", "words", with commas
    wrong: str  # the tool that is nearly the right one, or that there is no reason to call
    argument: str | None = None  # the tool and the argument whose value is got wrong, where calls are expected
    value: Any = None
    order: tuple[int, ...] | None = None  # the reference's calls as they may not come, where order matters
    refuses: bool = False  # … since the tools do not let them

    def has(self, what: str) -> bool:
        return what in self.expects.split(", ") or (
            what == "calls" and bool({"ordered calls", "calls at once"} & set(self.expects.split(", ")))
        )


ROWS: dict[str, dict[str, Row]] = {
    "feedback-summary": {
        "feedback-not-notes": Row("calls, words", "list_notes", "list_feedback.application_id", "smp-a7"),
        "who-writes-to-candidates": Row("words", "draft_colleague_message"),
        "message-to-nobody": Row("words", "draft_colleague_message"),
        "offer-stage-on-feedback": Row("calls, changes", "add_note", "advance_application.to", "hired"),
        "interview-id-for-an-application": Row(
            "calls, words", "recall_memories", "list_feedback.application_id", "smp-a3"
        ),
    },
    "interview-notes": {
        "in-her-own-words": Row("calls", "remember", "keep_statement.note_id", "smp-n2"),
        "when-feedback-is-due": Row("words", "mark_interview_held"),
        "feedback-on-which-interview": Row("words", "add_feedback"),
        "held-then-feedback": Row(
            "ordered calls, changes", "add_note", "add_feedback.rating", 5, order=(0, 2, 1), refuses=True
        ),
        "notes-on-two": Row("calls at once, changes", "add_feedback", "add_note.application_id", "smp-a9"),
    },
    "offer": {
        "raise-the-draft": Row("calls, changes", "withdraw_offer", "change_offer.salary", 46500),
        "leave-is-in-the-guide": Row("words", "withdraw_offer"),
        "start-without-a-date": Row("words", "change_offer"),
        "tell-her-the-terms": Row(
            "ordered calls, changes", "change_offer", "draft_message.candidate_id", "smp-c10", order=(1, 2, 0)
        ),
        "one-stands-already": Row("calls, changes", "withdraw_offer", "change_offer.salary", 56000),
    },
    "onboarding": {
        "later-not-again": Row("calls, changes", "add_task", "move_task.due_on", "2026-12-17"),
        "badge-takes-days": Row("words", "add_task"),
        "task-of-nobody": Row("words", "add_task"),
        "first-week-slips": Row(
            "ordered calls, changes", "complete_task", "move_task.task_id", "smp-t1", order=(1, 2, 0)
        ),
        "badge-and-lunch": Row("calls at once, changes", "draft_colleague_message", "add_task.owner", "user:lena"),
    },
    "pipeline-report": {
        "waiting-two-weeks": Row("calls, words", "count_applications", "list_waiting.days", 15),
        "no-rejecting-here": Row("words", "draft_colleague_message"),
        "message-to-nobody": Row("words", "draft_colleague_message"),
        "days-for-the-manager": Row(
            "calls, changes", "count_by_stage", "draft_colleague_message.colleague", "user:lena"
        ),
        "two-jobs-side-by-side": Row("calls at once, words", "count_applications", "count_by_stage.job_id", "smp-j3"),
    },
    "privacy-desk": {
        "asked-not-handed-over": Row("calls, changes", "hand_over_request", "ask_for_identity.request_id", "smp-p2"),
        "time-is-in-the-guide": Row("words", "register_privacy_request"),
        "how-did-it-come": Row("words", "register_privacy_request"),
        "grace-wants-it-erased": Row(
            "ordered calls, changes",
            "ask_for_identity",
            "register_privacy_request.candidate_id",
            "smp-c10",
            order=(1, 2, 0),
        ),
        "asked-once-more": Row("calls, changes", "ask_for_identity", "hand_over_request.request_id", "smp-p2"),
    },
    "scheduling": {
        "another-day-for-a-booked-one": Row(
            "calls, changes", "cancel_interview", "move_interview.starts_at", "2026-12-03T11:00"
        ),
        "notice-for-a-panel": Row("words", "cancel_interview"),
        "interview-of-no-kind": Row("words", "book_interview"),
        "first-free-hour": Row("calls, changes", "move_interview", "book_interview.starts_at", "2026-12-03T11:00"),
        "not-free-then": Row(
            "calls, changes, words", "cancel_interview", "move_interview.starts_at", "2026-12-01T11:30"
        ),
    },
    "screening": {
        "note-not-memory": Row("calls, changes", "remember", "add_note.application_id", "smp-a3"),
        "notice-period-beside-an-order": Row("words", "reject_application"),
        "rejection-on-a-memory-alone": Row("words", "reject_application"),
        "rejection-on-a-persons-note": Row(
            "calls, changes", "advance_application", "reject_application.grounds", ["memory:1"]
        ),
        "notes-of-two": Row("calls at once, words", "remember", "list_notes.application_id", "smp-a2"),
    },
    "sourcing": {
        "skill-and-place": Row("calls, words", "find_candidates", "search_by_skill.skill", "SQL"),
        "referral-bonus-in-handbook": Row("words", "recall_memories"),
        "new-person-without-address": Row("words", "add_candidate"),
        "application-for-one-of-two-graces": Row(
            "calls, changes", "draft_message", "add_application.candidate_id", "smp-c10"
        ),
        "person-there-already": Row("calls, changes", "draft_message", "add_application.job_id", "smp-j2"),
    },
}


@cache
def cases() -> dict[tuple[str, str], Case]:
    """Return every case by its agent and its name."""
    return {(agent, case.id): case for agent, suite in suites().items() for case in suite.cases}


def reference(case: Case) -> list[Step]:
    """Return a case's reference as a script."""
    return [
        Step(say=turn.say or "", calls=tuple(called(call.tool, call.arguments) for call in turn.calls))
        for turn in case.reference
    ]


def references(chosen: Iterable[Case]) -> list[Step]:
    """Return the references of cases that are tried one after the other."""
    return [step for case in chosen for step in reference(case)]


def called(tool: str, arguments: Mapping[str, Any] | str) -> ScriptedCall:
    return ScriptedCall(tool=tool, arguments=arguments if isinstance(arguments, str) else plain(arguments))


def right_words(case: Case) -> Step:
    """Return the reference's answer."""
    return reference(case)[-1]


# Ways to go wrong


def do_nothing(agent: str, case: Case, row: Row) -> list[Step]:
    return [Step(say="Done.")]


def say_nothing(agent: str, case: Case, row: Row) -> list[Step]:
    return [Step()]


def echo(agent: str, case: Case, row: Row) -> list[Step]:
    return [Step(say=case.prompt)]


def write_the_call_as_prose(agent: str, case: Case, row: Row) -> list[Step]:
    tool, arguments = _needed(case) or (row.wrong, VALID[row.wrong])
    return [Step(say=f"I will call {tool} now. {tool}({json.dumps(plain(arguments))})")]


def call_a_wrong_tool(agent: str, case: Case, row: Row) -> list[Step]:
    return [Step(calls=(called(row.wrong, VALID[row.wrong]),)), right_words(case)]


def get_a_value_wrong(agent: str, case: Case, row: Row) -> list[Step]:
    tool, _, argument = str(row.argument).partition(".")
    return _but_for_the_last(case, tool, lambda arguments: {**arguments, argument: row.value})


def leave_an_argument_out(agent: str, case: Case, row: Row) -> list[Step]:
    tool, _ = _needed(case) or (row.wrong, {})
    fields = registry()[tool].arguments.model_fields
    required = next(name for name, one in fields.items() if one.is_required())
    return _but_for_the_last(
        case, tool, lambda arguments: {name: one for name, one in arguments.items() if name != required}
    )


def invent_a_tool(agent: str, case: Case, row: Row) -> list[Step]:
    return [Step(calls=(called("do_it_all", {}),)), right_words(case)]


def call_malformed(agent: str, case: Case, row: Row) -> list[Step]:
    tool, _ = _needed(case) or (row.wrong, {})
    return [Step(calls=(called(tool, '{"id": '),)), right_words(case)]


def call_in_another_order(agent: str, case: Case, row: Row) -> list[Step]:
    made = _calls(reference(case))
    return [*(Step(calls=(made[place],)) for place in row.order or ()), right_words(case)]


def call_one_after_the_other(agent: str, case: Case, row: Row) -> list[Step]:
    return [*(Step(calls=(call,)) for call in _calls(reference(case))), right_words(case)]


def change_something_more(agent: str, case: Case, row: Row) -> list[Step]:
    *before, last = reference(case)
    more = SUPERFLUOUS[agent]
    return [*before, Step(calls=(called(more, VALID[more]),)), last]


def say_nothing_in_the_end(agent: str, case: Case, row: Row) -> list[Step]:
    return [*reference(case)[:-1], Step()]


def lose_the_model(agent: str, case: Case, row: Row) -> list[Step]:
    return [*reference(case)[:-1], Step(fails=ModelUnavailable("it is down"))]


def _needed(case: Case) -> tuple[str, Mapping[str, Any]] | None:
    """Return the last call of the reference that is one of those expected."""
    expected = {call.tool for call in case.expect.calls}
    made = [call for turn in case.reference for call in turn.calls if call.tool in expected]
    return (made[-1].tool, made[-1].arguments) if made else None


def _calls(steps: Sequence[Step]) -> list[ScriptedCall]:
    return [call for step in steps for call in step.calls]


def _but_for_the_last(case: Case, tool: str, otherwise: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Step]:
    """Return the reference with other arguments in the last call of a tool."""
    steps = reference(case)
    turn, place = max(
        (turn, place) for turn, step in enumerate(steps) for place, call in enumerate(step.calls) if call.tool == tool
    )
    made = list(steps[turn].calls)
    arguments = made[place].arguments
    assert not isinstance(arguments, str)
    made[place] = called(tool, otherwise(dict(arguments)))
    return [*steps[:turn], Step(calls=tuple(made)), *steps[turn + 1 :]]
