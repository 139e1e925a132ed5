"""A set is measured on a database of its own, just after its newest memory, and leaves nothing behind."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from conftest import SHARED
from fakes import CANDIDATE, fact, observe
from rows import snapshot

from memory_core import EmbedderError, Ranking, Refused
from memory_core.config import Settings, settings
from memory_core.errors import LineRefused
from memory_core.evals.questions import Question, read_questions
from memory_core.evals.recall_set import RecallSet, by_ranking, read_memories
from memory_core.evals.retrieval import Report, measured
from memory_core.evals.scratch import scratch

if TYPE_CHECKING:
    from conftest import Database, OpenStore


NEWEST = datetime(2020, 5, 4, 12, tzinfo=UTC)  # years ago, long after which a set has to give the same figures
SILENT = settings(memory_embedder="none", database_url=None)
HIRING_DESK = files("memory_core.evals.hiring_desk")
LOCOMO = SHARED / "data" / "locomo"


def said(source: str | None, text: str, *, days: float = 0, org_id: str = "acme", **changes: Any) -> dict[str, Any]:
    """Return a line of a fact that was remembered so many days before the newest."""
    created_at = (NEWEST - timedelta(days=days)).isoformat()
    return {
        **fact(text, run_id=f"r-{len(text)}"),
        "org_id": org_id,
        "source": source,
        "created_at": created_at,
        **changes,
    }


def memories(*lines: dict[str, Any] | bytes) -> list[Any]:
    raw = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]
    return read_memories(io.BytesIO(b"\n".join(raw)))


def question(text: str, *evidence: str, org_id: str = "acme", number: int = 1) -> Question:
    return Question(number=number, org_id=org_id, text=text, evidence=frozenset(evidence), category="one")


SET = [
    said("m-1", "Panels need two weeks' notice.", days=3),
    said("m-2", "Kubernetes is asked about first.", days=2),
    said("m-3,m-4", "The office in Lisbon is closed in August.", days=1),
    said(None, "Coffee is ordered downstairs.", days=9),
    said("m-2", "Kubernetes! Kubernetes!", org_id="acme-corp"),
    said("m-5", "Nobody works on Fridays.", days=2, org_id="acme-corp"),
]
QUESTIONS = [
    question("Who asks about Kubernetes?", "m-2"),
    question("When is Lisbon closed?", "m-4"),
    question("How much notice for panels?", "m-1", "m-2"),
    question("Anybody there?", "m-1"),
]


@pytest.fixture(scope="module")
def own() -> Iterator[Settings]:
    with scratch(SILENT) as own:
        yield own


@pytest.fixture(scope="module")
def loaded(own: Settings) -> RecallSet:
    return RecallSet(own, memories(*SET))


# Figures


def test_the_figures_of_a_small_set_are_those_by_hand(loaded: RecallSet) -> None:
    report = measured(by_ranking(loaded, QUESTIONS, [Ranking.LEXICAL, Ranking.RECENCY], k=4), [1, 2, 3])
    # Newest first: m-3 and m-4, m-2, m-1, the one without a source.
    found = [report.row("recency", k=k) for k in (1, 2, 3)]
    assert [row.any_evidence.value for row in found] == [1 / 4, 3 / 4, 1]
    assert [row.evidence_share.value for row in found] == pytest.approx([1 / 4, (1 + 1 + 1 / 2) / 4, 1])
    assert [row.reciprocal_rank.value for row in found] == pytest.approx([(1 / 2 + 1 + 1 / 2 + 1 / 3) / 4] * 3)
    # By words: what answers comes first; of "Anybody there?" no word is anywhere, and so it is newest first.
    found = [report.row("lexical", k=k) for k in (1, 2, 3)]
    assert [row.any_evidence.value for row in found] == [3 / 4, 3 / 4, 1]
    assert found[0].evidence_share.value == pytest.approx((1 + 1 + 1 / 2) / 4)
    assert [row.reciprocal_rank.value for row in found] == pytest.approx([(1 + 1 + 1 + 1 / 3) / 4] * 3)
    for k in (1, 2, 3):
        (one,) = [comparison for comparison in report.comparisons if comparison.k == k]
        assert (one.first, one.second) == ("lexical", "recency")
        assert (one.only_first, one.only_second) == {1: (2, 0), 2: (0, 0), 3: (0, 0)}[k]
    assert [row.questions for row in report.rows] == [4] * 6
    assert all(0 < row.recall_ms_p50 <= row.recall_ms_p95 for row in report.rows)


def test_of_each_memory_its_sources_are_kept_in_the_order_of_the_recall(loaded: RecallSet) -> None:
    (one,) = loaded.answered([question("Lisbon?", "m-3")], Ranking.RECENCY, k=50)
    assert one.sources == [frozenset({"m-3", "m-4"}), frozenset({"m-2"}), frozenset({"m-1"}), frozenset()]
    (one,) = loaded.answered([question("panels?", "m-1")], Ranking.LEXICAL, k=1)
    assert one.sources == [frozenset({"m-1"})]


def test_the_tokens_are_those_of_the_blocks_and_the_same_each_time(loaded: RecallSet) -> None:
    once, again = (loaded.answered(QUESTIONS, Ranking.RECENCY, k=4) for _ in range(2))
    assert [one.tokens for one in once] == [one.tokens for one in again]
    for one in once:
        assert len(one.tokens) == len(one.sources) == 4
        assert list(one.tokens) == sorted(set(one.tokens))
        assert one.tokens[0] > 50  # the frame is paid for as well


def test_two_organisations_are_kept_apart(loaded: RecallSet) -> None:
    assert loaded.sources["acme"] - {""} == {"m-1", "m-2", "m-3", "m-4"}
    assert loaded.sources["acme-corp"] - {""} == {"m-2", "m-5"}
    asked = "Kubernetes?"
    mine, theirs = loaded.answered(
        [question(asked, "m-2"), question(asked, "m-2", org_id="acme-corp")], Ranking.LEXICAL, k=50
    )
    assert [len(one.sources) for one in (mine, theirs)] == [4, 2]
    assert theirs.sources == [frozenset({"m-2"}), frozenset({"m-5"})]
    assert frozenset({"m-5"}) not in mine.sources


def test_the_sources_are_what_evidence_may_name(loaded: RecallSet) -> None:
    asked = {"org_id": "acme", "question": "When?"}
    for evidence in (["m-1"], ["m-3", "m-4"]):
        assert read_questions(io.BytesIO(json.dumps({**asked, "evidence": evidence}).encode()), loaded.sources)
    # One memory of acme has no source, which is no source that can be named.
    for evidence in (["m-5"], ["m-3,m-4"], [""], ["m-9"]):
        with pytest.raises(LineRefused) as caught:
            read_questions(io.BytesIO(json.dumps({**asked, "evidence": evidence}).encode()), loaded.sources)
        assert caught.value.rule == "evidence_names_memories", evidence


def test_progress_counts_every_question_by_every_ranking(loaded: RecallSet) -> None:
    steps: list[tuple[int, int]] = []
    by_ranking(loaded, QUESTIONS, [Ranking.LEXICAL, Ranking.RECENCY], k=1, progress=lambda *done: steps.append(done))
    assert steps == [(number, 8) for number in range(1, 9)]


# The moment of asking


def test_a_set_is_asked_about_just_after_its_newest_memory(own: Settings) -> None:
    lines = [
        said("d-1", "Still there.", days=60, org_id="dated"),
        said("d-2", "Ends soon.", org_id="dated", expires_at=(NEWEST + timedelta(seconds=61)).isoformat()),
    ]
    dated = RecallSet(own, memories(*lines))
    (one,) = dated.answered([question("What?", "d-1", org_id="dated")], Ranking.RECENCY, k=50)
    assert one.sources == [frozenset({"d-2"}), frozenset({"d-1"})]
    over = said("d-3", "Over by then.", org_id="over", expires_at=(NEWEST + timedelta(seconds=59)).isoformat())
    with pytest.raises(LineRefused) as caught:
        RecallSet(own, memories(over))
    assert caught.value.field == "expires_at"


def test_what_was_seen_again_after_the_newest_was_written_is_asked_about_after_that(own: Settings) -> None:
    # As an export has it.
    again = said("s-1", "Said twice.", days=5, org_id="seen", last_seen_at=(NEWEST + timedelta(days=3)).isoformat())
    seen = RecallSet(own, memories(again, said("s-2", "Said once.", org_id="seen")))
    (one,) = seen.answered([question("What?", "s-1", org_id="seen")], Ranking.RECENCY, k=50)
    assert len(one.sources) == 2


def test_a_set_without_dates_is_asked_about_now(own: Settings) -> None:
    undated = RecallSet(own, memories({**fact("No date.", source="n-1"), "org_id": "undated"}))
    (one,) = undated.answered([question("What?", "n-1", org_id="undated")], Ranking.RECENCY, k=5)
    assert one.sources == [frozenset({"n-1"})]


# What is refused


@pytest.mark.parametrize("k", [0, -1, 51, 10_000])
def test_k_is_from_1_to_50(loaded: RecallSet, k: int) -> None:
    with pytest.raises(Refused) as caught:
        loaded.answered(QUESTIONS, Ranking.RECENCY, k=k)
    assert (caught.value.rule, caught.value.field) == ("limit_range", "k")
    assert len(loaded.answered(QUESTIONS, Ranking.RECENCY, k=50)) == 4


def test_a_file_without_memories_is_refused(own: Settings) -> None:
    for raw in (b"", b"\n \n"):
        with pytest.raises(Refused) as caught:
            RecallSet(own, memories(raw))
        assert caught.value.rule == "file_has_memories"


def test_a_bad_line_is_refused_by_its_number(own: Settings) -> None:
    for bad, rule in ((b"{", "line_is_json"), (said("b-2", " "), "text_is_not_blank")):
        with pytest.raises(LineRefused) as caught:
            RecallSet(own, memories(said("b-1", "Good."), bad, said("b-3", "Good.")))
        assert (caught.value.line, caught.value.rule) == (2, rule)


@pytest.mark.parametrize("ranking", [Ranking.DENSE, Ranking.HYBRID])
def test_a_ranking_that_cannot_be_carried_out_is_an_error_and_no_figure_of_another(
    loaded: RecallSet, ranking: Ranking
) -> None:
    with pytest.raises(EmbedderError, match=f"the ranking {ranking} cannot be tried: .*no embedder is configured"):
        loaded.answered(QUESTIONS, ranking, k=5)


# What is left behind


def server_of(folder: Path) -> psutil.Process:
    (pid_file,) = folder.rglob("postmaster.pid")
    return psutil.Process(int(pid_file.read_text().splitlines()[0]))


@pytest.mark.parametrize("failing", [False, True])
def test_neither_folder_nor_server_is_left_behind(temporary_folder: Path, failing: bool) -> None:
    with suppress(ZeroDivisionError), scratch(SILENT) as own:
        RecallSet(own, memories(*SET[:1]))
        home, server = own.home, server_of(own.home)
        assert server.is_running()
        assert [*temporary_folder.iterdir()]
        if failing:
            raise ZeroDivisionError
    assert not [*temporary_folder.iterdir()]
    assert not home.exists()
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


def test_a_scratch_database_that_never_began_leaves_nothing_behind(temporary_folder: Path) -> None:
    with scratch(SILENT):
        pass
    assert not [*temporary_folder.iterdir()]


def test_nothing_is_written_to_the_configured_database(
    database: Database, open_store: OpenStore, tmp_path: Path
) -> None:
    observe(open_store(), "Could start in May.")
    held = snapshot(database)
    url, owner = (one.render_as_string(hide_password=False) for one in (database.application, database.owner))
    home = tmp_path / "home"
    configured = settings(
        memory_embedder="none", database_url=url, migration_database_url=owner, memory_home=home, memory_org="acme"
    )
    assert configured.home == home
    with scratch(configured) as own:
        tried = RecallSet(own, memories(*SET))
        tried.answered(QUESTIONS, Ranking.LEXICAL, k=5)
    assert snapshot(database) == held
    assert not home.exists()
    # And whoever works on it goes on.
    assert open_store().held(CANDIDATE).with_text == 1


# Real sets


def report_of(memories_file: Any, questions_file: Any, *, ks: list[int], allow_missing: bool = False) -> Report:
    with scratch(settings(memory_embedder="minilm", database_url=None)) as own:
        with memories_file.open("rb") as stream:
            tried = RecallSet(own, read_memories(stream))
        with questions_file.open("rb") as stream:
            asked = read_questions(stream, tried.sources, allow_missing=allow_missing)
        return measured(by_ranking(tried, asked, [Ranking.HYBRID, Ranking.DENSE], k=max(ks)), ks)


@pytest.mark.model
def test_of_the_hiring_desk_words_and_vectors_together_find_more_than_vectors() -> None:
    report = report_of(HIRING_DESK / "memories.jsonl", HIRING_DESK / "questions.jsonl", ks=[1, 5])
    hybrid, dense = report.row("hybrid", k=5), report.row("dense", k=5)
    assert hybrid.any_evidence.value >= 0.82
    assert hybrid.any_evidence.value >= dense.any_evidence.value + 0.1
    (one,) = [one for one in report.comparisons if (one.category, one.k) == ("all", 5)]
    assert one.difference.low > 0
    # Where a question shares no word with what answers it, words do no harm.
    hybrid, dense = (report.row(ranking, k=5, category="paraphrase") for ranking in ("hybrid", "dense"))
    assert hybrid.any_evidence.value >= dense.any_evidence.value


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.skipif(not LOCOMO.is_dir(), reason=f"{LOCOMO} is not here")
@pytest.mark.parametrize(
    ("memories_file", "least", "more"), [("locomo-turns", 0.75, 0.2), ("locomo-observations", 0.64, 0.03)]
)
def test_of_two_long_conversations_as_much_is_found_as_was_measured(
    memories_file: str, least: float, more: float, tmp_path: Path
) -> None:
    # Two of the six, for the time that all of them take; docs/recall-quality.md has all.
    parts = []
    for name in (memories_file, "locomo-questions"):
        lines = (LOCOMO / f"{name}.dev.jsonl").read_text().splitlines(keepends=True)
        part = tmp_path / name
        part.write_text("".join(line for line in lines if json.loads(line)["org_id"] in ("locomo-26", "locomo-30")))
        parts.append(part)
    report = report_of(*parts, ks=[5], allow_missing=True)
    hybrid, dense = report.row("hybrid", k=5), report.row("dense", k=5)
    assert hybrid.any_evidence.value >= least
    assert hybrid.any_evidence.value >= dense.any_evidence.value + more
