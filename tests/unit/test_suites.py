"""A suite whose cases cannot be judged, or not be met, is refused where it is read; and its hash is of all it depends on."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from playing import VALID, cases

import memory_core
from memory_core.agents.specification import specifications
from memory_core.errors import Refused
from memory_core.evals.asking import patterns as patterns_of_topics
from memory_core.evals.matching import found
from memory_core.evals.scoring import Observed
from memory_core.evals.scoring import answer as scored_answer
from memory_core.evals.suite import Suite, read_suite, suites, suites_hash
from memory_core.evaluations import CaseKind

TEXT = (resources.files("memory_core.evals") / "suites" / "scheduling.yaml").read_text("utf-8")
FIRST, SECOND, FOURTH = "another-day-for-a-booked-one", "notice-for-a-panel", "first-free-hour"
Change = Callable[[Any], object]
MEMORY: dict[str, Any] = {
    "text": "Prefers mornings.",
    "kind": "observation",
    "about": "smp-c1",
    "origin": "inference",
    "author": "agent:screening",
    "days_ago": 3,
}


def read(change: Change | str) -> Suite:
    """Read the scheduling suite with a change, or another text in its place."""
    text = change
    if not isinstance(change, str):
        suite = yaml.safe_load(TEXT)
        change(suite)
        text = yaml.safe_dump(suite, sort_keys=False, allow_unicode=True)
    return read_suite(str(text), file="scheduling.yaml")


def refusal(change: Change | str) -> Refused:
    with pytest.raises(Refused) as refused:
        read(change)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500
    return refused.value


def call(suite: Any, number: int = 0, place: int = 0) -> Any:
    """Return a call that a case expects."""
    return suite["cases"][number]["expect"]["calls"][place]


def made(suite: Any, number: int = 0, turn: int = 0) -> Any:
    """Return the first call of a turn of a case's reference."""
    return suite["cases"][number]["reference"][turn]["calls"][0]


def expect(suite: Any, number: int = 0) -> Any:
    return suite["cases"][number]["expect"]


def answer(suite: Any) -> Any:
    return expect(suite, 1)["answer"]


def interview(suite: Any) -> Any:
    """Return how the first case wants the table of interviews changed."""
    return expect(suite)["changes"]["interview"]


def remembered(**changes: Any) -> Change:
    """Give the first case a memory; None leaves a field out."""
    memory = {name: value for name, value in {**MEMORY, **changes}.items() if value is not None}
    return lambda suite: suite["cases"][0].update(memories=[memory])


def another(suite: Any) -> None:
    suite["cases"].append({**copy.deepcopy(suite["cases"][0]), "id": "one-more"})


# The product's


def test_every_agent_has_a_suite_of_five_cases_one_of_each_kind() -> None:
    assert suites().keys() == specifications().keys()
    for suite in suites().values():
        assert {case.kind for case in suite.cases} == set(CaseKind)
        assert len({case.id for case in suite.cases}) == len(suite.cases) == 5
    assert len({case.prompt for case in cases().values()}) == 45


def test_a_suite_is_read_with_a_memory_besides() -> None:
    suite = read(remembered())
    assert suite.cases[0].memories[0].text == "Prefers mornings."
    assert suite.cases[1] == suites()["scheduling"].cases[1]


@pytest.mark.parametrize(
    "text", ["which what " * 350, "i have " * 550, "a" * 4000, "1 | screening | " * 250, "58 feb 1 " * 450, "\n" * 4000]
)
def test_no_pattern_takes_long_over_a_long_answer(text: str) -> None:
    for pattern in patterns_of_topics():
        began = time.process_time()
        found(pattern, text)
        assert time.process_time() - began < 2, pattern
    for case in cases().values():
        patterns = [*case.expect.answer.says, *case.expect.answer.never]
        for change in case.expect.changes.values():
            for row in (*change.added, *change.changed.values()):
                patterns += [
                    value["matches"] for value in row.values() if isinstance(value, dict) and "matches" in value
                ]
        for pattern in patterns:
            began = time.process_time()
            found(pattern, text)
            assert time.process_time() - began < 2, (case.id, pattern)


# What is refused

Wrong = dict[str, tuple[Change | str, str, str]]  # what is changed; the case and place that are named; the rule
SUITE: Wrong = {
    "four cases": (lambda suite: suite["cases"].pop(), "cases: has 4", "suite_has_five_cases"),
    "six cases": (another, "cases: has 6", "suite_has_five_cases"),
    "no cases": (lambda suite: suite.update(cases=[]), "cases: has 0", "suite_has_five_cases"),
    "two of a kind": (
        lambda suite: suite["cases"][0].update(kind="chained"),
        "cases: no case of the kind right tool",
        "suite_has_each_kind_of_case",
    ),
    "two of one id": (lambda suite: suite["cases"][1].update(id=FIRST), "cases: two cases", "case_is_named_once"),
    "an agent that is no name": (lambda suite: suite.update(agent=None), "agent: ", "suite_is_whole"),
    "no agent": (lambda suite: suite.pop("agent"), "agent: ", "suite_is_whole"),
    "an unknown field": (lambda suite: suite.update(model="any"), "model: ", "suite_is_whole"),
    "a list": ("- agent", "suite: ", "suite_is_whole"),
    "nothing": ("", "suite: ", "suite_is_whole"),
    "a name twice": (f"{TEXT}\nagent: offer\n", "line 119: agent is given twice", "file_is_yaml"),
    "two documents": (f"{TEXT}\n---\n{TEXT}", "line ", "file_is_yaml"),
    "no YAML": ("agent: [", "line ", "file_is_yaml"),
}
SHAPE: Wrong = {
    "an unknown field of a case": (lambda suite: suite["cases"][0].update(x=1), "cases.0.x", "suite_is_whole"),
    "an unknown field of an expectation": (
        lambda suite: expect(suite).update(call=[]),
        "cases.0.expect.call",
        "suite_is_whole",
    ),
    "an unknown field of an answer": (
        lambda suite: answer(suite).update(say=[]),
        "cases.1.expect.answer.say",
        "suite_is_whole",
    ),
    "an unknown field of a change": (
        lambda suite: interview(suite).update(removed=["smp-i1"]),
        "cases.0.expect.changes.interview.removed",
        "suite_is_whole",
    ),
    "an unknown field of a call": (
        lambda suite: made(suite).update(args={}),
        "cases.0.reference.0.calls.0.args",
        "suite_is_whole",
    ),
    "an unknown field of a memory": (remembered(run_id="r-1"), "cases.0.memories.0.run_id", "suite_is_whole"),
    "an unknown kind of case": (lambda suite: suite["cases"][0].update(kind="hard"), "cases.0.kind", "suite_is_whole"),
    "an unknown order": (lambda suite: expect(suite).update(order="none"), "cases.0.expect.order", "suite_is_whole"),
    "an id of words": (lambda suite: suite["cases"][0].update(id="Move It"), "cases.0.id", "suite_is_whole"),
    "no prompt": (lambda suite: suite["cases"][0].update(prompt=""), "cases.0.prompt", "suite_is_whole"),
    "an endless prompt": (
        lambda suite: suite["cases"][0].update(prompt="x" * 4001),
        "cases.0.prompt",
        "suite_is_whole",
    ),
    "no reference": (lambda suite: suite["cases"][0].update(reference=[]), "cases.0.reference", "suite_is_whole"),
    "a turn that says and calls": (
        lambda suite: suite["cases"][0]["reference"][0].update(say="x"),
        "cases.0.reference.0: a turn has either calls or say",
        "suite_is_whole",
    ),
    "a turn that does neither": (
        lambda suite: suite["cases"][0]["reference"].insert(0, {}),
        "cases.0.reference.0: a turn has either calls or say",
        "suite_is_whole",
    ),
    "a pattern that is none": (
        lambda suite: answer(suite).update(says=["weeks("]),
        "cases.1.expect.answer.says: 'weeks(' is no regular expression",
        "suite_is_whole",
    ),
    "a pattern never to be found that is none": (
        lambda suite: answer(suite).update(never=["["]),
        "cases.1.expect.answer.never: '[' is no regular expression",
        "suite_is_whole",
    ),
    "one pattern instead of several": (
        lambda suite: answer(suite).update(says="weeks"),
        "cases.1.expect.answer.says",
        "suite_is_whole",
    ),
    "a memory of 90 days": (remembered(days_ago=90), "cases.0.memories.0.days_ago", "suite_is_whole"),
    "a memory of tomorrow": (remembered(days_ago=-1), "cases.0.memories.0.days_ago", "suite_is_whole"),
    "a memory without words": (remembered(text=""), "cases.0.memories.0.text", "suite_is_whole"),
    "a memory too long": (remembered(text="x" * 2001), "cases.0.memories.0.text", "suite_is_whole"),
    "a memory of no kind": (remembered(kind="rumour"), "cases.0.memories.0.kind", "suite_is_whole"),
    "a memory of no origin": (remembered(origin="hearsay"), "cases.0.memories.0.origin", "suite_is_whole"),
    "a memory of another sort": (remembered(**{"is": "old"}), "cases.0.memories.0.is", "suite_is_whole"),
}
CASE: Wrong = {
    "a tool of another agent": (
        lambda suite: call(suite).update(tool="add_note"),
        f"{FIRST}: expect.calls: the agent has no tool add_note",
        "case_can_be_met",
    ),
    "a tool that is none, besides": (
        lambda suite: expect(suite).update(also=["fly"]),
        f"{FIRST}: expect.also: the agent has no tool fly",
        "case_can_be_met",
    ),
    "a tool that is none, in the reference": (
        lambda suite: made(suite).update(tool="fly"),
        f"{FIRST}: reference: the agent has no tool fly",
        "case_can_be_met",
    ),
    "an argument that is none": (
        lambda suite: call(suite)["arguments"].update(who="x"),
        f"{FIRST}: expect.calls: move_interview has no argument who",
        "case_can_be_met",
    ),
    "a value against the schema": (
        lambda suite: call(suite)["arguments"].update(starts_at="soon"),
        f"{FIRST}: expect.calls: move_interview.starts_at: ",
        "case_can_be_met",
    ),
    "a value of another type": (
        lambda suite: call(suite)["arguments"].update(interview_id=2),
        f"{FIRST}: expect.calls: move_interview.interview_id: ",
        "case_can_be_met",
    ),
    "a value that is too long": (
        lambda suite: call(suite)["arguments"].update(interview_id="x" * 33),
        f"{FIRST}: expect.calls: move_interview.interview_id: ",
        "case_can_be_met",
    ),
    "one of several values against the schema": (
        lambda suite: call(suite)["arguments"].update(starts_at={"any_of": ["2026-12-03T10:00", "soon"]}),
        f"{FIRST}: expect.calls: move_interview.starts_at: ",
        "case_can_be_met",
    ),
    "a matcher that is none": (
        lambda suite: call(suite)["arguments"].update(interview_id={"match": "smp"}),
        f"{FIRST}: expect.calls: move_interview.interview_id: ",
        "case_can_be_met",
    ),
    "a matcher that is no regular expression": (
        lambda suite: call(suite)["arguments"].update(interview_id={"matches": "["}),
        f"{FIRST}: expect.calls: move_interview.interview_id: matches needs a regular expression",
        "case_can_be_met",
    ),
    "a matcher that is no text": (
        lambda suite: call(suite)["arguments"].update(interview_id={"matches": 5}),
        f"{FIRST}: expect.calls: move_interview.interview_id: matches needs a regular expression",
        "case_can_be_met",
    ),
    "a matcher of a value alone": (
        lambda suite: call(suite)["arguments"].update(interview_id={"any_of": "smp-i2"}),
        f"{FIRST}: expect.calls: move_interview.interview_id: any_of needs a list of values",
        "case_can_be_met",
    ),
    "a matcher of no values": (
        lambda suite: call(suite)["arguments"].update(interview_id={"includes": []}),
        f"{FIRST}: expect.calls: move_interview.interview_id: includes needs a list of values",
        "case_can_be_met",
    ),
    "a matcher that is neither given nor absent": (
        lambda suite: call(suite)["arguments"].update(interview_id={"absent": "no"}),
        f"{FIRST}: expect.calls: move_interview.interview_id: absent needs true or false",
        "case_can_be_met",
    ),
    "a matcher that is none, of a row": (
        lambda suite: interview(suite)["changed"]["smp-i2"].update(status={"match": "held"}),
        f"{FIRST}: expect.changes: interview.status: is neither a plain value nor one of",
        "case_can_be_met",
    ),
    "a matcher that is no regular expression, of a row": (
        lambda suite: interview(suite)["changed"]["smp-i2"].update(status={"matches": "["}),
        f"{FIRST}: expect.changes: interview.status: matches needs a regular expression",
        "case_can_be_met",
    ),
    "a matcher that is no regular expression, of a new row": (
        lambda suite: expect(suite, 3)["changes"]["interview"]["added"][0].update(kind={"matches": "["}),
        f"{FOURTH}: expect.changes: interview.kind: matches needs a regular expression",
        "case_can_be_met",
    ),
    "a kind of interview that there is not": (
        lambda suite: call(suite, 3)["arguments"].update(kind="chat"),
        f"{FOURTH}: expect.calls: book_interview.kind: ",
        "case_can_be_met",
    ),
    "a reference that leaves an argument out": (
        lambda suite: made(suite)["arguments"].pop("starts_at"),
        f"{FIRST}: reference: move_interview needs starts_at",
        "case_can_be_met",
    ),
    "a reference with a matcher": (
        lambda suite: made(suite)["arguments"].update(interview_id={"matches": "i2"}),
        f"{FIRST}: reference: move_interview.interview_id: ",
        "case_can_be_met",
    ),
    "an unknown table": (
        lambda suite: expect(suite).update(changes={"desk": {"added": [{}]}}),
        f"{FIRST}: expect.changes: the sample workspace has no table desk",
        "case_can_be_met",
    ),
    "an unknown column": (
        lambda suite: interview(suite)["changed"]["smp-i2"].update(colour="red"),
        f"{FIRST}: expect.changes: interview has no column colour",
        "case_can_be_met",
    ),
    "an unknown column of a new row": (
        lambda suite: interview(suite).update(added=[{"colour": "red"}]),
        f"{FIRST}: expect.changes: interview has no column colour",
        "case_can_be_met",
    ),
    "an unknown row": (
        lambda suite: interview(suite)["changed"].update({"smp-i99": {"status": "held"}}),
        f"{FIRST}: expect.changes: interview has no row smp-i99",
        "case_can_be_met",
    ),
    "a row of an empty table": (
        lambda suite: expect(suite).update(changes={"draft": {"changed": {"smp-d1": {"body": "x"}}}}),
        f"{FIRST}: expect.changes: draft has no row smp-d1",
        "case_can_be_met",
    ),
    "a row that changes in nothing": (
        lambda suite: interview(suite).update(changed={"smp-i2": {}}),
        f"{FIRST}: expect.changes: interview smp-i2 changes in nothing",
        "case_can_be_met",
    ),
    "no expectation": (
        lambda suite: suite["cases"][1].update(expect={}),
        f"{SECOND}: expect: neither calls nor answer.says nor answer.asks: any answer would pass",
        "case_can_be_met",
    ),
    "words never to be said alone": (
        lambda suite: suite["cases"][1].update(expect={"answer": {"never": ["cancelled"]}}),
        f"{SECOND}: expect: neither calls nor answer.says nor answer.asks: any answer would pass",
        "case_can_be_met",
    ),
    "what may be called alone": (
        lambda suite: suite["cases"][1].update(expect={"also": ["list_interviews"]}),
        f"{SECOND}: expect: neither calls nor answer.says nor answer.asks: any answer would pass",
        "case_can_be_met",
    ),
    "a pattern that is empty": (
        lambda suite: answer(suite).update(says=["weeks", ""]),
        f"{SECOND}: expect.answer.says: matches an empty answer",
        "case_can_be_met",
    ),
    "a pattern that may be empty": (
        lambda suite: answer(suite).update(says=["(two weeks)?"]),
        f"{SECOND}: expect.answer.says: matches an empty answer",
        "case_can_be_met",
    ),
    "a reference with another value": (
        lambda suite: made(suite)["arguments"].update(starts_at="2026-12-03T10:30"),
        f"{FIRST}: reference: does not make the calls that are expected",
        "case_can_be_met",
    ),
    "a reference in another order": (
        lambda suite: (
            expect(suite, 3)["calls"].append({"tool": "list_free_slots", "arguments": {}}),
            expect(suite, 3).update(also=["list_applications_of"]),
        ),
        f"{FOURTH}: reference: does not make the calls that are expected",
        "case_can_be_met",
    ),
    "a reference that calls one after the other what is needed at once": (
        lambda suite: (
            expect(suite, 4).update(order="at once", also=["list_interviews"]),
            expect(suite, 4)["calls"].append(
                {"tool": "move_interview", "arguments": {"starts_at": "2026-12-01T09:30"}}
            ),
        ),
        "not-free-then: reference: does not make the calls that are expected in one turn",
        "case_can_be_met",
    ),
    "one call that is needed at once": (
        lambda suite: expect(suite).update(order="at once"),
        f"{FIRST}: expect.order: at once needs two calls",
        "case_can_be_met",
    ),
    "a reference that calls what is not allowed": (
        lambda suite: suite["cases"][0]["reference"].insert(
            0, {"calls": [{"tool": "cancel_interview", "arguments": VALID["cancel_interview"]}]}
        ),
        f"{FIRST}: reference: calls cancel_interview, which is neither expected nor allowed",
        "case_can_be_met",
    ),
    "a reference that ends with a call": (
        lambda suite: suite["cases"][0]["reference"].pop(),
        f"{FIRST}: reference: does not end with an answer",
        "case_can_be_met",
    ),
    "a reference that says something else": (
        lambda suite: suite["cases"][1].update(reference=[{"say": "I do not know."}]),
        f"{SECOND}: reference: its answer does not say what is expected",
        "case_can_be_met",
    ),
    "a reference that says what may not be said": (
        lambda suite: answer(suite).update(never=["notice"]),
        f"{SECOND}: reference: its answer does not say what is expected, or says what may not",
        "case_can_be_met",
    ),
    "a reference that claims to have acted where nothing is to be called": (
        lambda suite: suite["cases"][1].update(reference=[{"say": "I booked it; two weeks' notice."}]),
        f"{SECOND}: reference: its answer does not say what is expected",
        "case_can_be_met",
    ),
    "a reference that asks for what is not missing": (
        lambda suite: suite["cases"][2].update(
            reference=[{"say": "What kind of interview is it, and which candidate?"}]
        ),
        "interview-of-no-kind: reference: its answer does not say what is expected",
        "case_can_be_met",
    ),
    "a topic that is none": (
        lambda suite: answer(suite).update(asks="colour"),
        "cases.1.expect.answer.asks",
        "suite_is_whole",
    ),
    "an observation about nobody": (
        remembered(about=None),
        f"{FIRST}: memories: an observation is about a candidate, a fact about nobody",
        "case_can_be_met",
    ),
    "a fact about somebody": (
        remembered(kind="fact"),
        f"{FIRST}: memories: an observation is about a candidate, a fact about nobody",
        "case_can_be_met",
    ),
    "a memory about nobody of the sample": (
        remembered(about="smp-c99"),
        f"{FIRST}: memories: smp-c99 is no candidate of the sample workspace",
        "case_can_be_met",
    ),
    "an inference by a person": (
        remembered(author="user:maria"),
        f"{FIRST}: memories: a person's statement has an author user:…, an inference agent:…",
        "case_can_be_met",
    ),
    "a person's statement by an agent": (
        remembered(origin="person"),
        f"{FIRST}: memories: a person's statement has an author user:…, an inference agent:…",
        "case_can_be_met",
    ),
    "an author of no kind": (
        remembered(author="maria"),
        f"{FIRST}: memories: a person's statement has an author user:…, an inference agent:…",
        "case_can_be_met",
    ),
}
REFUSED = SUITE | SHAPE | CASE


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged_or_not_be_met_is_refused_by_file_case_and_place(name: str) -> None:
    change, where, rule = REFUSED[name]
    refused = refusal(change)
    assert refused.rule == rule
    assert str(refused).startswith(f"scheduling.yaml: {where}")


def test_a_suite_of_an_agent_that_there_is_not_is_refused_with_those_there_are() -> None:
    refused = refusal(lambda suite: suite.update(agent="nobody"))
    assert refused.rule == "agent_is_known"
    assert "scheduling" in refused.reason


# Answers. What a model asks or says rightly is told from what it claims to have done, or does not know.

RIGHT: dict[tuple[str, str], tuple[str, ...]] = {
    ("scheduling", "notice-for-a-panel"): ("Two weeks.", "14 days' notice.", "2 weeks’ notice", "It's a fortnight."),
    ("scheduling", "interview-of-no-kind"): (
        "What kind of interview is it?",
        "Is this a phone, panel or technical interview?",
        "I need to know the interview kind before I can book it.",
    ),
    ("screening", "notice-period-beside-an-order"): ("Three months.", "It is 3 months (user:maria)."),
    ("screening", "rejection-on-a-memory-alone"): (
        "I can’t reject him on a memory alone. Please give me a note or feedback.",
        "A memory is not a sufficient ground; which note should it rest on?",
        "I'm not able to reject on the basis of a memory. Do you have feedback from an interview?",
    ),
    ("sourcing", "referral-bonus-in-handbook"): (
        "1,500 euros, after the six months of probation.",
        "1500, after 6 months",
    ),
    ("sourcing", "new-person-without-address"): ("What is his e-mail address?", "I need Jonas Weller's email."),
    ("offer", "leave-is-in-the-guide"): ("28 days.", "Twenty-eight days a year."),
    ("offer", "start-without-a-date"): ("What should the new start date be?", "Please give me the new date."),
    ("onboarding", "badge-takes-days"): ("Six working days.", "It takes 6 days."),
    ("onboarding", "task-of-nobody"): (
        "Who should own the task?",
        "I need an owner for this task.",
        "Whose task is it?",
    ),
    ("interview-notes", "when-feedback-is-due"): ("Two working days; then the hiring manager is told.",),
    ("interview-notes", "feedback-on-which-interview"): ("Which interview is it about?", "Who did you interview?"),
    ("feedback-summary", "who-writes-to-candidates"): (
        "I can't; Maria in recruiting does that.",
        "No, user:maria does.",
    ),
    ("feedback-summary", "message-to-nobody"): ("Whom is it for?", "Please tell me the recipient."),
    ("pipeline-report", "no-rejecting-here"): ("I can’t reject applications.", "I have no tool for rejecting anybody."),
    ("pipeline-report", "message-to-nobody"): ("To whom should it go?", "I need to know the recipient."),
    ("privacy-desk", "time-is-in-the-guide"): ("One month.", "Within a month of receipt."),
    ("privacy-desk", "how-did-it-come"): ("How did it come in?", "Was it by e-mail, letter, telephone or form?"),
}
WRONG: dict[tuple[str, str], tuple[str, ...]] = {
    ("scheduling", "notice-for-a-panel"): ("I cancelled smp-i2.", "Two days.", "I don't know."),
    ("scheduling", "interview-of-no-kind"): (
        "I've booked the panel interview for Thursday at 13:00.",
        "The technical interview is booked for Thursday 3 December at 13:00.",
    ),
    ("screening", "notice-period-beside-an-order"): ("Farid Haddad was rejected.", "Two months."),
    ("screening", "rejection-on-a-memory-alone"): (
        "Farid Haddad is rejected.",
        "I rejected smp-a6 because of the memory on shift work.",
        "Please note that Farid Haddad was rejected.",
        "Done, smp-a6 is turned down. Do you need a note?",
        "Farid Haddad has been rejected on the ground that he is unwilling to work shifts.",
    ),
    ("sourcing", "referral-bonus-in-handbook"): ("18 per cent of the first year's salary.", "1,500 euros at once."),
    ("sourcing", "new-person-without-address"): ("I've added Jonas Weller, e-mail jonas@example.org.", "He is added."),
    ("offer", "leave-is-in-the-guide"): ("Withdrawn.", "25 days.", "smp-c28"),
    ("offer", "start-without-a-date"): ("I moved the start to 1 March 2027.", "The start date is 1 April 2027 now."),
    ("onboarding", "badge-takes-days"): ("Five days.", "Sixteen days."),
    ("onboarding", "task-of-nobody"): ("I added the task for Tom.", "The task is there, due on Friday."),
    ("interview-notes", "when-feedback-is-due"): ("Two working days.", "A week; then the manager is told."),
    ("interview-notes", "feedback-on-which-interview"): ("I wrote it up for the panel interview smp-i4.",),
    ("feedback-summary", "who-writes-to-candidates"): (
        "I've e-mailed Chiara.",
        "I will send her a message, as Maria would.",
    ),
    ("feedback-summary", "message-to-nobody"): ("The message to Omar is drafted.", "Here is the draft: it went well."),
    ("pipeline-report", "no-rejecting-here"): (
        "Dariusz Mazur has been rejected.",
        "smp-a4 was rejected; he will not be told.",
    ),
    ("pipeline-report", "message-to-nobody"): ("I drafted it to Omar: 2 screening, 1 interview, 1 rejected.",),
    ("privacy-desk", "time-is-in-the-guide"): ("Two weeks.", "Three months."),
    ("privacy-desk", "how-did-it-come"): ("I registered her request as having come by e-mail.", "It is taken down."),
}


def test_there_are_right_and_wrong_answers_to_each_case_in_which_nothing_is_to_be_called() -> None:
    of_words = {name for name, case in cases().items() if not case.expect.calls}
    assert RIGHT.keys() == WRONG.keys() == of_words


@pytest.mark.parametrize(("agent", "case_id"), RIGHT, ids="/".join)
def test_what_is_asked_or_said_rightly_is_told_from_what_is_claimed(agent: str, case_id: str) -> None:
    assert [words for words in RIGHT[agent, case_id] if not is_right(agent, case_id, words)] == []
    assert [words for words in WRONG[agent, case_id] if is_right(agent, case_id, words)] == []


def is_right(agent: str, case_id: str, words: str) -> bool | None:
    return scored_answer(cases()[agent, case_id], Observed(calls=(), answer=words, before={}, after={}))


# The hash

ASKED_AGAIN_AND_AGAIN = """
import sys
from memory_core.agents.specification import specifications
from memory_core.evals.suite import suites_hash
for _ in sys.stdin:
    specifications.cache_clear()
    suites_hash.cache_clear()
    print(suites_hash(), flush=True)
"""


@contextmanager
def asking(folder: Path) -> Iterator[Callable[[], str]]:
    """Yield a function that returns the hash by another process, one that works with the package in a folder."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", ASKED_AGAIN_AND_AGAIN]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:

        def hashed() -> str:
            assert other.stdin
            assert other.stdout
            other.stdin.write("\n")
            other.stdin.flush()
            return other.stdout.readline().strip()

        yield hashed


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package in a folder of its own, where everything of it may be changed."""
    source = Path(memory_core.__file__).parent
    copied = tmp_path_factory.mktemp("package") / source.name
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns("*.pyc.*", "migrations", "*.jsonl"))
    return copied


def test_the_hash_is_the_same_in_every_process_and_another_with_every_text(package: Path) -> None:
    with asking(package.parent) as hashed:
        assert hashed() == suites_hash()
        assert len(suites_hash()) == 64
        found = [suites_hash()]
        for file, old, new in (
            ("evals/suites/offer.yaml", "64,500", "64,501"),
            ("agents/specs/offer.md", "deadline_s: 60", "deadline_s: 61"),
            ("agents/specs/offer.md", "You draft, change", "You change, draft"),
        ):
            changed(package / file, old, new)
            found.append(hashed())
        assert len(set(found)) == 4
        changed(package / "evals/suites/offer.yaml", "64,501", "64,500")
        changed(package / "agents/specs/offer.md", "deadline_s: 61", "deadline_s: 60")
        changed(package / "agents/specs/offer.md", "You change, draft", "You draft, change")
        assert hashed() == suites_hash()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("agents/tools/offers.py", "Draft a first offer", "Draft the first offer"),
        ("agents/sample.py", "salary=62000", "salary=62001"),
        ("evals/scoring.py", "any(found(one, said)", "all(found(one, said)"),
        ("evals/matching.py", "re.IGNORECASE", "0"),
        ("evals/claims.py", "|booked", ""),
        ("evals/asking.py", "addressees?", "addressee"),
    ],
    ids=["what is said of a tool", "the sample workspace", "scoring", "matching", "what claims", "what asks"],
)
def test_the_hash_is_another_with_another_tool_sample_or_rule(package: Path, file: str, old: str, new: str) -> None:
    changed(package / file, old, new)
    with asking(package.parent) as hashed:
        assert hashed() != suites_hash()
    changed(package / file, new, old)


# Known faults


def test_a_suite_of_an_agent_that_there_is_not_is_named_by_its_file() -> None:
    assert str(refusal(lambda suite: suite.update(agent="nobody"))).startswith("scheduling.yaml: ")


@pytest.mark.parametrize(
    "values",
    [{"status": "gone"}, {"starts_at": 5}, {"minutes": "60"}, {"status": "booked"}],
    ids=["no such status", "no moment", "no number", "as it is"],
)
def test_a_change_that_no_row_can_have_is_refused(values: dict[str, Any]) -> None:
    refusal(lambda suite: interview(suite)["changed"].update({"smp-i2": values}))


def test_a_reference_that_answers_before_its_end_is_refused() -> None:
    refusal(lambda suite: suite["cases"][0]["reference"].insert(0, {"say": "One moment."}))


@pytest.mark.parametrize(
    "change",
    [
        remembered(text=" \u200b"),
        remembered(author="agent:"),
        remembered(author="agent:a b"),
        lambda suite: suite["cases"][0].update(prompt=" \u200b"),
        lambda suite: suite["cases"][0].update(documents=[{"source": "a b", "text": "x"}]),
    ],
    ids=["blank memory", "author of no name", "author of two words", "blank prompt", "source of two words"],
)
def test_what_the_store_would_refuse_is_refused(change: Change) -> None:
    refusal(change)


@pytest.mark.parametrize(
    ("agent", "case_id", "words", "should_be_right"),
    [
        ("scheduling", "notice-for-a-panel", "We give people a 14-day notice for panels.", True),
        ("screening", "notice-period-beside-an-order", "His notice period is three (3) months.", True),
        ("screening", "rejection-on-a-memory-alone", "Nobody is rejected on a memory alone. Which note is it?", True),
        ("scheduling", "interview-of-no-kind", "Booked a phone interview; do you need anything else?", False),
        (
            "screening",
            "rejection-on-a-memory-alone",
            "Rejected: not enough experience, on the ground of a memory.",
            False,
        ),
        ("sourcing", "new-person-without-address", "Added Jonas Weller; his email is unknown.", False),
    ],
)
def test_an_answer_is_judged_as_it_is_meant(agent: str, case_id: str, words: str, should_be_right: bool) -> None:
    assert is_right(agent, case_id, words) is should_be_right
