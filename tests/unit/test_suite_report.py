"""An evaluation as Markdown says what was tried, how sure the figures are, and keeps every cell in its place."""

from __future__ import annotations

from eval_rows import BEGUN, SUITES, believable, evaluation, result, start

from memory_core.evals.suite_report import as_table
from memory_core.evaluations import Aspect


def tables(text: str) -> list[list[list[str]]]:
    """Return the cells of each table."""
    parts = [part for part in text.split("\n\n") if part.startswith("|")]
    return [[line[2:-2].split(" | ") for line in part.splitlines()] for part in parts]


def test_a_report_says_what_was_tried_and_then_what_it_came_to() -> None:
    results = [
        result(trial=1),
        result(trial=2),
        result(False, trial=3, aspects={Aspect.SCHEMA: False, Aspect.TOOL_NAME: True}, termination="ToolFailure"),
        result(trial=1, case_id="screening-2", kind="chained"),
        result(None, trial=2, case_id="screening-2", kind="chained"),
        result(None, trial=3, case_id="screening-2", kind="chained"),
        *(result(None, agent="intake", case_id="intake-1", kind="recovery", trial=trial) for trial in (1, 2, 3)),
    ]
    of = evaluation(agents=("intake", "screening"), cases=3, recorded=9)
    text = as_table(of, results)
    assert text.startswith(
        f"""\
- model: qwen3:0.6b, {of.digest}, served by ollama
- begun: 2026-11-05 09:30 UTC by user:local
- on record: 9 of 9 trials, whole
- settings: temperature 0.6, output_cap 2000, reasoning_effort none
- suites: {SUITES}
- trials of each case: 3
- base seed: 7

| agent | pass@1 | pass^3 | cases | judged | not judged | ended |
| --- | --- | --- | --- | --- | --- | --- |
| intake | – | – over 0 of 1 cases | 1 | 0 of 3 | gateway.unavailable 3 | gateway.unavailable 3 |
| screening | 0.750 [0.301, 0.954] | 0.000 [0.000, 0.793] over 1 of 2 cases | 2 | 4 of 6 | gateway.unavailable 2 | \
Completed 3, gateway.unavailable 2, ToolFailure 1 |
| all | 0.750 [0.301, 0.954] | 0.000 [0.000, 0.793] over 1 of 3 cases | 3 | 4 of 9 | gateway.unavailable 5 | \
gateway.unavailable 5, Completed 3, ToolFailure 1 |

| agent | tool name | schema | arguments | order | final state | restraint | answer |
"""
    )
    _, aspects, cases = tables(text)
    assert aspects[3] == ["screening", "1.000 of 4", "0.750 of 4", *["1.000 of 3"] * 5]
    assert cases == [
        ["agent", "right tool", "chained", "recovery"],
        ["---"] * 4,
        ["intake", "", "", "–"],
        ["screening", "2/3", "1/1*", ""],
    ]


def test_a_whole_evaluation_has_a_row_for_each_agent_and_a_cell_for_each_case() -> None:
    of = start()
    figures, aspects, cases = tables(as_table(evaluation(), list(believable(of, skill=0.8))))
    assert [row[0] for row in figures[2:]] == [row[0] for row in aspects[2:]] == [*of.agents, "all"]
    assert [row[0] for row in cases[2:]] == [*of.agents]
    assert {len(row) for row in cases} == {6}
    assert {len(row) for row in aspects} == {8}
    assert {cell[1:3] for row in cases[2:] for cell in row[1:]} == {"/3", "/2"}


def test_an_evaluation_of_which_nothing_is_on_record_is_reported_as_such() -> None:
    text = as_table(evaluation(recorded=0, ended_at=None, digest=None, settings={}), [])
    assert "- on record: 0 of 135 trials, interrupted\n- settings: none" in text
    assert "digest not reported" in text
    figures, _ = tables(text)
    assert figures[2:] == [["all", "–", "– over 0 of 0 cases", "0", "0 of 0", "–", "–"]]


def test_a_name_cannot_leave_its_cell() -> None:
    of = evaluation(model="m\n| x | y |", settings={"stop": ["|", "\n"]}, started_at=BEGUN)
    text = as_table(of, [result(agent="a|b", kind="odd\n\n# kind", infrastructure=None)])
    assert text.startswith("- model: m \\| x \\| y \\|, sha256:")
    assert '- settings: stop ["\\|", "\\n"]' in text
    for line in text.splitlines():
        assert line[:1] in ("", "-", "|", "p")
    assert "| a\\|b | 1/1 |" in text
    assert "| agent | odd # kind |" in text
