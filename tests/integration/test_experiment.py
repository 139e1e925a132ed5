"""Memories with questions about them, recalled by several rankings and embedders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from wire import Wire

from memory_core.config import Settings, settings
from memory_core.evals.experiment import Material, best, material, misses, tried


@pytest.fixture
def nobody() -> Settings:
    """Settings by which no Ollama answers."""
    with Wire() as gone:
        return settings(ollama_host=gone.url)


def file_of(path: Path, lines: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def memory(text: str, **changes: Any) -> dict[str, Any]:
    line = {"org_id": "acme", "kind": "fact", "text": text, "origin": "person", "author": "user:maria", "run_id": "r-1"}
    return {**line, "created_at": "2026-11-02T09:00:00Z", **changes}


def question(text: str, *evidence: str) -> dict[str, Any]:
    return {"org_id": "acme", "question": text, "evidence": list(evidence)}


@pytest.fixture
def small(tmp_path: Path) -> Material:
    memories = [
        memory("The office closes on Fridays.", source="m-1"),
        memory("Parking is behind the house.", source="m-2,m-3"),
        memory("Lunch is at noon.", source="m-4"),
        memory("Nobody said where this came from: Fridays."),
    ]
    questions = [question("Parking?", "m-3"), question("Lunch on Fridays?", "m-2", "m-4"), question("Who pays?", "m-1")]
    return material(file_of(tmp_path / "m.jsonl", memories), file_of(tmp_path / "q.jsonl", questions))


def test_the_hiring_desk_is_there_without_a_file() -> None:
    whole = material()
    assert whole.missing is None
    assert (len(whole.lines), len(whole.questions)) == (504, 209)


def test_a_sample_is_the_same_every_time_and_no_more_than_there_is() -> None:
    some = material(sample=10)
    assert some == material(sample=10)
    assert some.questions != material(sample=10, seed=1).questions
    assert [one.number for one in some.questions] == sorted({one.number for one in some.questions})
    assert len(some.questions) == 10
    assert len(material(sample=1000).questions) == 209
    assert material(sample=0).questions == ()


def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    good = file_of(tmp_path / "m.jsonl", [memory("Mondays.", source="m-1")])
    said = {
        "there is none": material(str(tmp_path / "none.jsonl"), good).missing,
        "a folder": material(str(tmp_path), good).missing,
        "empty": material(file_of(tmp_path / "e.jsonl", []), good).missing,
        "bad line": material(file_of(tmp_path / "b.jsonl", [memory("Mondays."), {"no": 1}]), good).missing,
        "no questions given": material(good).missing,
        "no question in it": material(good, str(tmp_path / "e.jsonl")).missing,
        "no evidence": material(good, file_of(tmp_path / "q.jsonl", [question("Who?", "m-9")])).missing,
    }
    assert all(line and "\n" not in line for line in said.values())
    assert "none.jsonl cannot be read: No such file" in str(said["there is none"])
    assert said["empty"] == "e.jsonl has no memories"
    assert str(said["bad line"]).startswith("b.jsonl, line 2: ")
    assert '"evidence": ["msg-17"]' in str(said["no questions given"])
    assert said["no question in it"] == "e.jsonl has no questions"
    assert "q.jsonl, line 1: " in str(said["no evidence"])
    assert "m-9" in str(said["no evidence"])


def test_rankings_without_vectors_are_tried_once_and_an_embedder_that_is_not_there_is_named(
    small: Material, nobody: Settings
) -> None:
    found = tried(
        small, embedders=["ollama:nobody", "minilm", "none"], rankings=["lexical", "dense"], k=2, settings=nobody
    )
    assert list(found.answered) == ["lexical", "dense, minilm"]
    assert list(found.left_out) == ["ollama:nobody", "none"]
    assert found.why_nothing is None
    assert [len(one.sources) for one in found.answered["lexical"]] == [2, 2, 2]


def test_nothing_but_what_is_left_out_says_why(small: Material, nobody: Settings) -> None:
    found = tried(small, embedders=["ollama:nobody"], rankings=["hybrid"], k=2, settings=nobody)
    assert not found.answered
    assert str(found.why_nothing).startswith("ollama:nobody is left out, ")


@pytest.mark.parametrize(("rankings", "k", "why"), [(["best"], 2, "hybrid"), (["lexical"], 51, "from 1 to 50")])
def test_what_cannot_be_asked_for_is_one_line(small: Material, rankings: list[str], k: int, why: str) -> None:
    found = tried(small, embedders=[], rankings=rankings, k=k, settings=settings())
    assert why in str(found.missing)
    assert (
        tried(Material(missing="none"), embedders=[], rankings=["lexical"], k=1, settings=settings()).missing == "none"
    )


def test_a_miss_says_what_was_expected_and_what_came_first(small: Material, nobody: Settings) -> None:
    answered = tried(small, embedders=[], rankings=["lexical"], k=4, settings=nobody).answered
    assert best(answered, k=1) == "lexical"
    assert best({}, k=1) is None
    (parking, fridays, who) = answered["lexical"]
    assert parking.any_at(1) == 1
    found = {miss.question: miss for miss in misses(answered["lexical"], small, k=1)}
    assert "Parking?" not in found
    assert ("Who pays?" in found) == (not who.any_at(1))
    assert ("Lunch on Fridays?" in found) == (not fridays.any_at(1))
    for miss in found.values():
        assert miss.place is not None
        assert miss.place > 1
    assert small.texts(frozenset({"m-3"})) == ("Parking is behind the house.",)
    assert small.texts(frozenset()) == ()
