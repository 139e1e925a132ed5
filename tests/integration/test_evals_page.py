"""The page of the suites as Streamlit runs it, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from conftest import Database
from eval_rows import AGENTS, BEGUN, KINDS, believable, result, start, store
from pressing import MARKUP, everything_interpreted, segment, told
from rows import emptied, execute
from streamlit.testing.v1 import AppTest

from memory_core.db.evaluations import UNSTORABLE
from memory_core.evaluations import Aspect, CaseResult, EvaluationStart
from pages.evals.words import ASPECTS

ROOT = Path(__file__).resolve().parents[2]
Page = Callable[..., AppTest]


@pytest.fixture
def database(standing: Database) -> Database:
    emptied(standing)
    for org_id in ("acme", "acme-corp"):
        execute(standing, "INSERT INTO organisation VALUES (%s)", (org_id,))
    return standing


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Run the page on this test's database, without a model."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    for name in ("MODEL_API_KEY", "MODEL_PROVIDER", "MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(section: str | None = None, **address: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in address.items():
            at.query_params[name] = value
        at.switch_page("pages/6_Evals.py").run()
        assert not at.exception
        return segment(at, "evals_section", section) if section else at

    return run


def keep(
    database: Database, number: int, results: Sequence[CaseResult], *, ended: bool = True, days: int = 0, **given: Any
) -> EvaluationStart:
    """Record the evaluation of a number, which began so many days after the first."""
    of = start(**given)
    at = BEGUN + timedelta(days=days)
    store(database.application, "acme", of, results, evaluation_id=UUID(int=number), at=at, ended=ended)
    return of


def charts(at: AppTest) -> dict[str, Any]:
    """Return each chart by its title, as plotly gets it."""
    drawn = [json.loads(element.proto.spec or element.proto.figure.spec) for element in at.get("plotly_chart")]
    return {chart["layout"]["title"]["text"]: chart for chart in drawn}


def figures(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def table(at: AppTest, column: str) -> Any:
    """Return the table that has a column."""
    return next(frame.value for frame in at.dataframe if column in frame.value)


def warnings(at: AppTest) -> str:
    return "\n".join(warning.value for warning in at.warning)


def test_without_an_evaluation_the_page_says_how_to_make_the_first_one(page: Page) -> None:
    at = page()
    assert "No evaluation is on record" in at.info[0].value
    assert "MODEL_API_KEY" in at.info[0].value
    assert "python -m memory_core doctor\npython -m memory_core eval --org acme" in told(at)
    assert "make eval-live" in told(at)
    assert any("no chat model is configured" in one for one in told(at))
    assert not at.metric
    assert charts(at) == {}


def test_evaluations_of_the_organisation_next_door_are_not_shown(page: Page, database: Database) -> None:
    store(database.application, "acme-corp", start(), [result()], evaluation_id=UUID(int=1))
    assert "No evaluation is on record" in page().info[0].value


def test_one_evaluation_is_shown_by_agent_and_case(page: Page, database: Database) -> None:
    keep(database, 1, list(believable(start(), skill=0.8, unjudged=0)))
    at = page()
    assert at.selectbox(key="evals_evaluation").options == ["2026-11-05 09:30, qwen3:0.6b, 3 trials, whole"]
    shown = figures(at)
    assert list(shown) == ["pass@1", "pass^3", "Judged", "Not judged", "On record"]
    assert (shown["Judged"], shown["Not judged"], shown["On record"]) == ("135", "0", "135")
    for metric in at.metric[:2]:
        assert re.fullmatch(r"\d+ %", metric.value)
        assert re.fullmatch(r"\d+–\d+ %", metric.delta)
    assert {metric.delta for metric in at.metric[2:]} == {"of 135"}
    assert not at.warning
    drawn = charts(at)
    assert list(drawn) == ["Trials passed, of those judged", "How the trials ended"]
    for chart in drawn.values():
        for axis in ("xaxis", "yaxis"):
            assert chart["layout"][axis]["title"]["text"]
    cells, _ = drawn["Trials passed, of those judged"]["data"]
    assert cells["y"] == list(AGENTS)
    assert [name.replace("<br>", " ") for name in cells["x"]] == list(KINDS)
    assert {cell[1:] for row in cells["text"] for cell in row} == {"/3"}
    ended = sum(sum(bar["x"]) for bar in drawn["How the trials ended"]["data"])
    assert ended == 135
    for column in ("pass^3", Aspect.SCHEMA.value):
        assert list(table(at, column)["agent"]) == [*AGENTS, "all"]
    assert list(table(at, "schema").columns) == ["agent", *Aspect]


def test_the_figures_and_aspects_are_explained(page: Page) -> None:
    text = everything_interpreted(page())
    for word in ("pass@1", "pass^k", "95 % interval", "Not judged", "How it ended", "Sign test"):
        assert f"**{word}" in text
    assert "too narrow" in text
    assert text.count("Everybody in the cases is invented") == 2  # at the top, and where a case is explained
    assert set(ASPECTS) == set(Aspect)
    for aspect, meaning in ASPECTS.items():
        assert f"*{aspect}*, {meaning}" in text


def test_an_interrupted_evaluation_says_where_it_stopped(page: Page, database: Database) -> None:
    keep(database, 1, list(believable(start(), skill=0.8, unjudged=0))[:12], ended=False)
    at = page()
    assert at.selectbox(key="evals_evaluation").options[0].endswith("3 trials, interrupted at 12 of 135")
    assert "Interrupted at 12 of 135 trials" in warnings(at)
    assert figures(at)["On record"] == "12"
    for section in ("Two evaluations", "Over time", "One trial"):
        segment(at, "evals_section", section)


def test_an_evaluation_that_has_just_begun_is_no_fault(page: Page, database: Database) -> None:
    keep(database, 1, [], ended=False)
    at = page()
    assert figures(at)["pass@1"] == "–"
    assert "No trial is on record yet" in at.info[0].value
    assert "nothing to draw" in segment(at, "evals_section", "Over time").info[0].value
    assert "No trial is on record yet" in segment(at, "evals_section", "One trial").info[0].value


def test_trials_that_could_not_be_judged_are_told_apart_and_never_dropped(page: Page, database: Database) -> None:
    codes = ("gateway.unavailable", "gateway.unavailable", "gateway.deadline")
    results = [
        result(None, trial=trial, termination=code, infrastructure=code) for trial, code in enumerate(codes, start=1)
    ]
    keep(database, 1, results, agents=("screening",), cases=1)
    at = page()
    shown = figures(at)
    assert (shown["pass@1"], shown["pass^3"], shown["Judged"], shown["Not judged"]) == ("–", "–", "0", "3")
    assert "3 trials could not be judged" in warnings(at)
    assert "gateway.unavailable 2, gateway.deadline 1" in told(at)
    cells, unjudged = charts(at)["Trials passed, of those judged"]["data"]
    assert (cells["z"], cells["text"]) == ([[None]], [[""]])
    assert (unjudged["z"], unjudged["text"]) == ([[0]], [["–"]])
    assert sum(sum(bar["x"]) for bar in charts(at)["How the trials ended"]["data"]) == 3
    assert set(table(at, "schema")["schema"]) == {"–"}
    at = segment(at, "evals_section", "One trial")
    assert "It could not be judged" in warnings(at)
    assert not at.dataframe
    assert "nothing to draw" in segment(at, "evals_section", "Over time").info[0].value


def test_a_case_of_which_some_trials_were_not_judged_has_a_star(page: Page, database: Database) -> None:
    keep(database, 1, [result(), result(False, trial=2), result(None, trial=3)], agents=("screening",), cases=1)
    at = page()
    cells, _ = charts(at)["Trials passed, of those judged"]["data"]
    assert cells["text"] == [["1/2*"]]
    assert "gateway.unavailable: 1 not judged" in cells["customdata"][0][0]
    assert "1 trial could not be judged" in warnings(at)


def test_two_models_are_compared_by_case(page: Page, database: Database) -> None:
    weak, strong = (start(model=model, trials=5) for model in ("qwen3:0.6b", "qwen3:4b"))
    keep(database, 1, list(believable(weak, skill=0.6)), model="qwen3:0.6b", trials=5)
    keep(database, 2, list(believable(strong, skill=1.1)), days=1, model="qwen3:4b", digest=None, trials=5)
    at = page("Two evaluations")
    assert at.selectbox(key="evals_evaluation").value == str(UUID(int=2))
    assert at.selectbox(key="evals_against").value == str(UUID(int=1))
    assert "Not like with like" not in warnings(at)
    said = next(one.value for one in at.markdown if "that both judged" in one.value)
    assert "Over the 45 cases" in said
    assert "the first passes" in said
    assert "p = under 0.001" in said
    head = table(at, "model")
    assert list(head["model"]) == ["qwen3:4b", "qwen3:0.6b"]
    assert head["pass@1"].str.contains(r"^\d+ % \(\d+–\d+ %\)$").all()
    rows = table(at, "better")
    assert set(rows["better"]) <= {"first", "second"}
    assert rows["first"].iloc[0].endswith("/5")
    (chart,) = charts(at).values()
    assert [trace["name"] for trace in chart["data"]] == ["first: qwen3:4b", "second: qwen3:0.6b"]
    at.selectbox(key="evals_evaluation").set_value(str(UUID(int=1))).run()
    assert not at.exception
    assert at.selectbox(key="evals_against").value == str(UUID(int=2))
    assert dict(at.query_params) == {"evaluation": str(UUID(int=1))}
    assert "the second passes" in next(one.value for one in at.markdown if "that both judged" in one.value)


def test_what_is_not_like_with_like_is_said(page: Page, database: Database) -> None:
    keep(database, 1, [result()], agents=("screening",), cases=1, trials=1)
    other = {"suites_hash": "0" * 64, "trials": 2, "settings": {"stop": [MARKUP]}, "agents": ("screening", "offer")}
    keep(database, 2, [result()], days=1, cases=2, ended=False, **other)
    at = page("Two evaluations")
    assert "these differ: suites, settings, trials of each case, agents" in warnings(at)
    assert "Not both are whole" in warnings(at)
    assert any("suites: 000000000000 / 9f2c61d09f2c" in one and MARKUP in one for one in told(at))
    assert "Both are of the same model" in at.info[0].value
    assert "In no case do they differ" in at.info[1].value
    assert "evil.example" not in everything_interpreted(at)


def test_evaluations_without_a_common_case_are_not_compared(page: Page, database: Database) -> None:
    keep(database, 1, [result()], agents=("screening",), cases=1, trials=1)
    keep(database, 2, [result(None)], days=1, agents=("screening",), cases=1, trials=1)
    at = page("Two evaluations")
    assert "no case that both evaluations judged" in at.info[-1].value


def test_one_evaluation_alone_is_compared_with_nothing(page: Page, database: Database) -> None:
    keep(database, 1, [result()])
    at = page("Two evaluations")
    assert "it takes two" in at.info[0].value
    assert any("MODEL_DEEP=qwen3:1.7b python -m memory_core eval --org acme" in one for one in told(at))


def test_a_model_has_a_line_over_time_on_which_other_suites_are_marked(page: Page, database: Database) -> None:
    few = {"agents": ("screening",), "cases": 1, "trials": 1}
    keep(database, 1, [result()], suites_hash="0" * 64, **few)
    keep(database, 2, [result(False)], days=1, **few)
    keep(database, 3, [result()], days=2, model="qwen3:4b", **few)
    keep(database, 4, [result(None)], days=3, model="qwen3:4b", **few)
    at = page("Over time", evaluation=str(UUID(int=2)))
    (chart,) = charts(at).values()
    assert [(trace["name"], len(trace["x"])) for trace in chart["data"]] == [("qwen3:0.6b", 2), ("qwen3:4b", 1)]
    assert chart["data"][0]["marker"]["symbol"] == ["circle-open", "circle"]
    assert "other suites" in chart["data"][0]["customdata"][0]
    assert chart["data"][1]["marker"]["symbol"] == ["diamond"]
    caption = next(one.value for one in at.caption if "Open points" in one.value)
    assert "Open points, 1 of them" in caption
    assert "1 without a judged trial" in caption


def test_a_trial_is_shown_whole_and_nothing_in_it_is_interpreted(page: Page, database: Database) -> None:
    arguments = json.dumps({"note": "n" * 20_000})
    said = [
        {"role": MARKUP, "content": MARKUP},
        {"role": "assistant", "content": "a\x00b", "tool_calls": [{"name": MARKUP, "arguments": arguments}]},
        {"role": "assistant", "tool_calls": [{"name": "find", "arguments": {"q": MARKUP}, "fault": "unknown_tool"}]},
        {"role": "tool", "content": {"found": [MARKUP]}, "name": MARKUP},
        {"role": "assistant", "content": "", "tool_calls": [MARKUP, None]},
        {"content": None, "tool_calls": None},
        {"role": "assistant", "tool_calls": MARKUP},
        {},
    ]
    aspects = {Aspect.SCHEMA: False, Aspect.ANSWER: True}
    failed = result(False, trial=2, transcript=said, termination="ToolFailure", aspects=aspects)
    keep(database, 1, [result(), failed], agents=("screening",), cases=1, trials=2)
    at = page("One trial")
    trial = at.selectbox(key="evals_trial screening screening-1")
    assert trial.options == ["1: passed, Completed", "2: did not pass, ToolFailure"]
    assert trial.value == 2  # what did not pass comes up first
    assert f"{MARKUP}\n{arguments}" in told(at)
    assert f"a{UNSTORABLE}b" in told(at)
    assert any("unknown_tool" in one for one in told(at))
    assert next(text.value for text in at.text if text.value[0].isdigit()) == f"1  {MARKUP}"
    assert len([text for text in at.text if text.value == "(says nothing)"]) == 2
    assert "evil.example" not in everything_interpreted(at)
    shown = table(at, "came out")
    came_out = dict(zip(shown["aspect"], shown["came out"], strict=True))
    assert (came_out["schema"], came_out["answer"], came_out["order"]) == ("not met", "met", "does not apply")
    assert "Did not pass" in [one.value for one in at.subheader]
    assert any(f"*schema*, {ASPECTS[Aspect.SCHEMA]}." in one.value for one in at.caption)
    trial.set_value(1).run()
    assert not at.exception
    assert "Book Zoë Example on 12 November at ten." in told(at)


def test_a_trial_of_which_nothing_was_said_says_so(page: Page, database: Database) -> None:
    keep(database, 1, [result(None, transcript=[], termination="none", turns=0, tool_calls=0)])
    assert "Nothing was said" in page("One trial").info[-1].value


def test_the_address_keeps_what_is_chosen(page: Page, database: Database) -> None:
    for number in (1, 2):
        keep(database, number, [result()], days=number, agents=("screening",), cases=1, trials=1)
    at = page(evaluation=str(UUID(int=1)))
    assert at.selectbox(key="evals_evaluation").value == str(UUID(int=1))
    at.selectbox(key="evals_evaluation").set_value(str(UUID(int=2))).run()
    assert dict(at.query_params) == {"evaluation": str(UUID(int=2))}


def test_what_the_address_says_in_vain_is_shown_plain(page: Page, database: Database) -> None:
    keep(database, 1, [result()])
    at = page(evaluation=MARKUP)
    assert "is not on record here" in warnings(at)
    assert MARKUP in told(at)
    assert figures(at)["Judged"] == "1"
