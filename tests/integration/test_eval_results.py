"""What the suites found is read back as it was recorded, and by its own organisation only."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from conftest import Database
from eval_rows import BEGUN, believable, result, start, store
from rows import emptied, execute

from memory_core.config import Settings, settings
from memory_core.db.evaluations import UNSTORABLE
from memory_core.errors import DatabaseError
from memory_core.evals.results import evaluations, pass_shares, results, transcript
from memory_core.evals.statistics import pass_at_1
from memory_core.evaluations import Evaluation

ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def database(standing: Database) -> Database:
    emptied(standing)
    for org_id in ("acme", "acme-corp"):
        execute(standing, "INSERT INTO organisation VALUES (%s)", (org_id,))
    return standing


@pytest.fixture
def chosen(database: Database) -> Settings:
    return settings(database_url=database.application.render_as_string(hide_password=False))


def test_an_evaluation_is_read_back_as_it_was_recorded(database: Database, chosen: Settings) -> None:
    of = start()
    found = list(believable(of, skill=0.8, unjudged=0.1))
    store(database.application, "acme", of, found, evaluation_id=ONE)
    (read,) = evaluations("acme", settings=chosen)
    assert read == Evaluation(
        **vars(of), evaluation_id=ONE, started_at=BEGUN, ended_at=BEGUN + timedelta(hours=1), recorded=135
    )
    by_trial = {(one.agent, one.case_id, one.trial): one for one in results("acme", ONE, settings=chosen)}
    assert len(by_trial) == 135
    for one in found:
        again = by_trial[one.agent, one.case_id, one.trial]
        assert again.transcript == ()
        assert again.took_ms == pytest.approx(one.took_ms, rel=1e-6)
        without = {"transcript": None, "took_ms": None}
        assert vars(again) | without == vars(one) | without


def test_evaluations_come_newest_first_the_interrupted_ones_among_them(database: Database, chosen: Settings) -> None:
    of = start()
    twelve = list(believable(of, skill=0.8))[:12]
    store(database.application, "acme", of, twelve, evaluation_id=ONE, ended=False)
    store(database.application, "acme", of, [], evaluation_id=OTHER, at=BEGUN + timedelta(hours=2), ended=False)
    read = evaluations("acme", settings=chosen)
    assert [(one.evaluation_id, one.recorded, one.wanted, one.ended_at) for one in read] == [
        (OTHER, 0, 135, None),
        (ONE, 12, 135, None),
    ]
    assert pass_shares("acme", [ONE, OTHER], settings=chosen) == {ONE: pass_at_1(twelve), OTHER: None}


def test_a_transcript_is_read_by_its_trial_and_what_cannot_be_stored_shows_where_it_was(
    database: Database, chosen: Settings
) -> None:
    said = [
        {"role": "assistant", "content": "a\x00b \ud800 <b>", "tool_calls": [{"name": "t", "arguments": {"x": [1]}}]}
    ]
    store(database.application, "acme", start(), [result(), result(trial=2, transcript=said)], evaluation_id=ONE)
    here = {"agent": "screening", "case_id": "screening-1", "settings": chosen}
    read = transcript("acme", ONE, trial=2, **here)
    assert read == [{**said[0], "content": f"a{UNSTORABLE}b {UNSTORABLE} <b>"}]
    assert transcript("acme", ONE, trial=1, **here) == list(result().transcript)
    assert transcript("acme", ONE, trial=3, **here) == []
    assert transcript("acme", OTHER, trial=1, **here) == []


def test_the_organisation_next_door_reads_nothing(database: Database, chosen: Settings) -> None:
    store(database.application, "acme", start(), [result()], evaluation_id=ONE)
    assert evaluations("acme-corp", settings=chosen) == []
    assert results("acme-corp", ONE, settings=chosen) == []
    here = {"agent": "screening", "case_id": "screening-1", "trial": 1, "settings": chosen}
    assert transcript("acme-corp", ONE, **here) == []
    assert pass_shares("acme-corp", [ONE], settings=chosen) == {ONE: None}


def test_without_a_database_reading_says_so(database: Database) -> None:
    gone = settings(database_url="postgresql://nobody@127.0.0.1:9/none")
    with pytest.raises(DatabaseError):
        evaluations("acme", settings=gone)
