"""The hiring desk's memories can be imported, and its questions can be scored."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from importlib.resources import files
from itertools import groupby

import pytest

from memory_core.interchange import Line, read_lines
from memory_core.rules.admission import Admitted, admitted
from memory_core.rules.policy import PERSON_TYPES, Policy

FOLDER = files("memory_core.evals.hiring_desk")
CATEGORIES = {"named", "unnamed", "paraphrase", "number", "several"}
FIELDS = {"org_id", "question", "answer", "category", "evidence"}
STOP_LIST = """
    a about above after again against ago all also although always am an and any anybody anyone anything are as at away
    back be because been before being below between both but by can cannot could did do does doing done down during each
    either else ever every everybody everyone everything few for from further had has have having he her here hers herself
    him himself his how i if in into is it its itself just many may me might more most much must my myself neither never no
    nobody none nor not nothing now of off often on once one only onto or other ought our ours out over own per quite rather
    same shall she should since so some somebody someone something soon still such than that the their theirs them then
    there these they this those though through till to too under until up upon us very was we were what when where whether
    which while who whom whose why will with within without would yet you your yours
    s t d ll m re ve don doesn didn isn aren wasn weren won wouldn couldn shouldn
"""
STOP_WORDS = frozenset(STOP_LIST.split())
# Longest first; taken off until none is left, which errs on the side of finding two words alike.
ENDINGS = (
    *("ations", "ation", "ments", "ition", "ment", "ness", "ings", "ions", "able", "ible"),
    *("ing", "ers", "ies", "ied", "ion", "ful", "est", "ed", "er", "es", "ly", "or", "al", "e", "s", "y"),
)


def _objects(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _stem(word.removesuffix(ending))
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _stems(text: str) -> set[str]:
    letters = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    words = re.findall(r"[^\W_]+", letters.casefold())
    return {_stem(word) for word in words if word not in STOP_WORDS}


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    with (FOLDER / "memories.jsonl").open("rb") as stream:
        found = list(read_lines(stream, org_id=None))
    assert not [line for line in found if not isinstance(line, Line)]
    return found


@pytest.fixture(scope="module")
def memories() -> list[dict]:
    return _objects("memories.jsonl")


@pytest.fixture(scope="module")
def questions() -> list[dict]:
    return _objects("questions.jsonl")


@pytest.fixture(scope="module")
def names(memories) -> set[str]:
    """The words that name a person or a client."""
    labels = [m["subject"]["label"] for m in memories if m.get("subject", {}).get("type") in PERSON_TYPES | {"client"}]
    labels += [alias for m in memories for alias in m.get("subject", {}).get("aliases", ()) if "@" not in alias]
    words = {word for label in labels for word in re.findall(r"[^\W_]+", label)}
    ordinary = {"Dr", "St", "s", "Energie", "Foods", "Hospital", "Logistics", "Payments", "Trust"}
    return words - ordinary


def test_every_line_was_admissible_at_the_moment_it_was_written(lines):
    assert len(lines) >= 360
    for line in lines:
        assert line.org_id == "hiring-desk"
        assert isinstance(admitted(line.draft, now=line.draft.created_at, policy=Policy()), Admitted), line.number


def test_a_source_names_one_memory(memories):
    assert [memory["source"] for memory in memories] == [f"hd-{n:03}" for n in range(1, len(memories) + 1)]


def test_a_text_is_one_or_two_short_sentences_that_no_other_memory_has(memories):
    texts = [memory["text"] for memory in memories]
    assert len({text.casefold() for text in texts}) == len(texts)
    for text in texts:
        assert 40 <= len(text) <= 300, text
        assert text == " ".join(unicodedata.normalize("NFC", text).split())
        assert text[0] not in "=+-@"


def test_memories_come_oldest_first_from_four_months_and_all_are_live_at_their_end(memories):
    moments = [datetime.fromisoformat(memory["created_at"]) for memory in memories]
    assert moments == sorted(moments)
    assert moments[0] >= datetime(2026, 7, 30, tzinfo=UTC)
    assert moments[-1] < datetime(2026, 11, 30, tzinfo=UTC)
    assert len({moment.month for moment in moments}) == 4
    assert all(datetime.fromisoformat(memory["expires_at"]) > moments[-1] for memory in memories)


def test_a_run_is_three_to_eight_memories_in_a_row(memories):
    runs = [(run, len(list(group))) for run, group in groupby(memories, key=lambda memory: memory["run_id"])]
    assert len({run for run, _ in runs}) == len(runs)
    assert all(3 <= length <= 8 for _, length in runs)


def test_memories_are_of_every_kind_about_people_things_and_nobody(memories):
    kinds = Counter((memory["kind"], memory["origin"]) for memory in memories)
    assert len(kinds) == 4
    assert min(kinds.values()) >= 10
    types = Counter(memory.get("subject", {}).get("type") for memory in memories)
    people = {"candidate", "applicant", "interviewer", "recruiter", "referee", "contact"}
    assert set(types) == people | {"job", "client", "team", None}
    assert min(types.values()) >= 5


def test_a_subject_has_one_label_and_one_set_of_aliases(memories):
    directory: dict[tuple[str, str], dict] = {}
    for memory in memories:
        if subject := memory.get("subject"):
            assert directory.setdefault((subject["type"], subject["id"]), subject) == subject
            assert subject["label"]


def test_some_people_share_a_first_name(memories):
    labels = {memory["subject"]["label"] for memory in memories if memory["kind"] == "observation"}
    first_names = Counter(label.split()[0] for label in labels)
    assert {name for name, count in first_names.items() if count > 1} >= {"Priya", "Jonas", "Daniel", "Hannah"}


def test_a_question_has_the_fields_of_a_question_and_is_asked_once(questions):
    assert len(questions) >= 150
    assert len({question["question"].casefold() for question in questions}) == len(questions)
    for question in questions:
        assert question.keys() == FIELDS
        assert question["org_id"] == "hiring-desk"
        assert question["question"].strip()
        assert question["answer"].strip()


def test_there_are_25_questions_of_every_category(questions):
    counts = Counter(question["category"] for question in questions)
    assert counts.keys() == CATEGORIES
    assert min(counts.values()) >= 25


def test_evidence_is_there_and_is_named_once(memories, questions):
    sources = {memory["source"] for memory in memories}
    for question in questions:
        evidence = question["evidence"]
        assert evidence, question
        assert len(set(evidence)) == len(evidence), question
        assert set(evidence) <= sources, question


def test_several_is_two_to_six_memories_of_evidence(questions):
    several = [question for question in questions if question["category"] == "several"]
    assert all(2 <= len(question["evidence"]) <= 6 for question in several)


def test_a_named_question_names_a_person_or_a_client_and_an_unnamed_one_does_not(questions, names):
    for question in questions:
        named = names & set(re.findall(r"[^\W_]+", question["question"]))
        if question["category"] == "named":
            assert named, question
        if question["category"] == "unnamed":
            assert not named, (question, named)


def test_a_paraphrase_shares_no_word_with_its_evidence(memories, questions):
    texts = {memory["source"]: memory["text"] for memory in memories}
    for question in questions:
        if question["category"] == "paraphrase":
            asked = _stems(question["question"])
            assert asked
            for source in question["evidence"]:
                assert not asked & _stems(texts[source]), (question["question"], texts[source])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pay", "pays"),
        ("résumé", "resumes"),
        ("interview", "Interviewers"),
        ("sponsor", "sponsored"),
        ("signing", "sign"),
        ("commute", "commuting"),
        ("resign", "resigned"),
        ("stopped", "stop"),
        ("agency", "agencies"),
    ],
)
def test_forms_of_a_word_share_a_stem(one, other):
    assert _stems(one) & _stems(other)


def test_words_that_say_nothing_are_left_out():
    assert not _stems("What would she have been doing about it, and why couldn't they?")
