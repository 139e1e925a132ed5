"""The page of the suites as Streamlit runs it, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from conftest import Database
from eval_rows import AGENTS, BEGUN, KINDS, believable, evaluation, result, start, store
from pressing import MARKUP, everything_interpreted, segment, told
from rows import emptied, execute
from streamlit.testing.v1 import AppTest

from memory_core.db.evaluations import UNSTORABLE
from memory_core.evals.case import Expectation
from memory_core.evals.statistics import case_scores
from memory_core.evals.suite import suites, suites_hash
from memory_core.evaluations import ASPECTS, Aspect, CaseResult, EvaluationStart
from pages.charts.evals import by_case
from pages.evals.case_view import expected, reference
from pages.evals.words import LONGEST_NAME, apart, facts, frame, models_named, short, short_names, visible

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

    def run(section: str | None = None, address_of: Mapping[str, str] | None = None, **address: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in {**(address_of or {}), **address}.items():
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
    assert "favours the first: p = under 0.001, and chance alone would hardly split them like that" in said
    mean = next(one.value for one in at.markdown if "Mean over these cases" in one.value)
    assert "the first passes" in mean
    assert re.search(r"95 % bootstrap interval over cases: \+\d+\.\d to \+\d+\.\d of 100", mean)
    assert "disagree" not in warnings(at)
    head = table(at, "model")
    assert list(head["model"]) == ["qwen3:4b", "qwen3:0.6b"]
    assert head["pass^k"].str.contains(r", k = 5, over \d+ of 45 cases$").all()
    assert head["pass@1"].str.contains(r"^\d+ % \(\d+–\d+ %\)$").all()
    rows = table(at, "better")
    assert set(rows["better"]) <= {"first", "second"}
    assert rows["first"].iloc[0].endswith("/5")
    (chart,) = charts(at).values()
    assert [trace["name"] for trace in chart["data"]] == ["first: qwen3:4b", "second: qwen3:0.6b"]
    at.selectbox(key="evals_evaluation").set_value(str(UUID(int=1))).run()
    assert not at.exception
    assert at.selectbox(key="evals_against").value == str(UUID(int=2))
    assert dict(at.query_params) == {"evaluation": str(UUID(int=1)), "section": "Two evaluations"}
    assert "the second passes" in next(one.value for one in at.markdown if "Mean over" in one.value)


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
    assert trial.value == "2"  # what did not pass comes up first
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
    trial.set_value("1").run()
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


def test_a_test_that_favours_the_other_than_the_mean_does_is_said(page: Page, database: Database) -> None:
    def trials(passed: int, case: int) -> list[CaseResult]:
        return [result(number <= passed, case_id=str(case), trial=number) for number in range(1, 11)]

    first = [one for case in range(9) for one in trials(8, case)] + trials(10, 9)
    second = [one for case in range(9) for one in trials(9, case)] + trials(0, 9)
    few = {"agents": ("screening",), "cases": 10, "trials": 10}
    keep(database, 1, second, **few)
    keep(database, 2, first, days=1, model="qwen3:4b", **few)
    at = page("Two evaluations")
    said = [one.value for one in at.markdown]
    assert any("better in 1, the second in 9, and 0 are alike.** The sign test" in one for one in said)
    assert any("the 10 that differ favours the second: p = 0.021" in one for one in said)
    mean = next(one for one in said if "Mean over these cases" in one)
    assert "the first passes 1.0 of 100 trials more" in mean
    assert "interval over cases: −" in mean
    assert "The two disagree: the mean favours the first, the number of cases the second" in warnings(at)


def test_models_whose_names_differ_late_or_only_in_their_digest_have_lines_of_their_own(
    page: Page, database: Database
) -> None:
    few = {"agents": ("screening",), "cases": 1, "trials": 1}
    long = "registry.example/an-organisation/a-very-long-name-of-a-model"
    models = [(f"{long}:a", None), (f"{long}:b", None), (f"a{long}:b", "sha256:aaaa"), (f"a{long}:b", "sha256:bbbb")]
    for number, (model, digest) in enumerate(models, start=1):
        keep(database, number, [result()], days=0, model=model, digest=digest, **few)
    at = page("Over time")
    (chart,) = charts(at).values()
    lines = [trace["name"] for trace in chart["data"]]
    assert len(set(lines)) == len(models)
    assert {len(trace["x"]) for trace in chart["data"]} == {1}
    assert {f"{short(long + ':a')}", f"{short(long + ':b')}"} <= set(lines)
    assert {name[-4:] for name in lines} == {"el:a", "el:b", "aaaa", "bbbb"}
    options = at.selectbox(key="evals_evaluation").options
    assert len(set(options)) == len(models)
    for line in lines:
        assert any(line in option for option in options)


def test_names_are_cut_in_the_middle_and_stay_apart() -> None:
    assert short("a" * 40) == "a" * 40
    assert short("a" * 100 + "b" * 100) == f"{'a' * 20}…{'b' * 19}"
    same = ["a" * 30 + str(number) + "b" * 30 for number in range(3)]
    assert list(short_names(same)) == same
    assert len(set(short_names(same).values())) == 3
    assert apart(["a", "a (2)", "a", "a"]) == ["a", "a (2)", "a (3)", "a (4)"]
    found = models_named([evaluation(), evaluation(digest=None), evaluation(model="m")])
    assert list(found.values()) == ["m", "qwen3:0.6b, digest not reported", "qwen3:0.6b, 7f403014"]
    assert max(map(len, short_names(["x" * 128]).values())) == LONGEST_NAME


def test_a_long_name_of_an_agent_leaves_the_cells_room(page: Page, database: Database) -> None:
    agents = ("x" * 127 + "a", "x" * 127 + "b", "x" * 60 + "y" + "x" * 66 + "b")
    keep(database, 1, [result(agent=agent) for agent in agents], agents=agents, cases=3, trials=1)
    for chart in charts(page()).values():
        for trace in chart["data"]:
            assert len(set(trace["y"])) == 3
            assert max(map(len, trace["y"])) <= 28


def test_over_how_many_cases_all_trials_passed_is_said(page: Page, database: Database) -> None:
    results = [result(trial=1), result(trial=2), result(case_id="2", trial=1), result(None, case_id="2", trial=2)]
    keep(database, 1, results, agents=("screening",), cases=2, trials=2)
    at = page()
    assert any("pass^2 is over 1 of 2 cases" in one.value for one in at.caption)
    assert "over 1 of 2 cases" in at.metric[1].help
    assert list(table(at, "pass^2")["pass^2"].str[-19:]) == [", over 1 of 2 cases"] * 2


def test_nothing_invisible_or_reordering_is_shown(page: Page, database: Database) -> None:
    odd, shown = "a\u202eb\u200bc", "a‹U+202E›b‹U+200B›c"
    said = [
        {"role": odd, "content": f"one\n\ttwo {odd}", "answers": odd},
        {"role": "assistant", "tool_calls": [{"name": odd, "arguments": {"q": odd}}], "more": odd},
    ]
    few = {"agents": ("screening",), "cases": 1, "trials": 1}
    keep(database, 1, [result(transcript=said)], settings={odd: f"{odd}\nsuites: forged"}, **few)
    keep(database, 2, [result()], days=1, **few)
    for section in ("Agents and cases", "Two evaluations", "One trial"):
        at = page(section, evaluation=str(UUID(int=1)))
        everything = "\n".join([everything_interpreted(at), *told(at), *(text.value for text in at.text)])
        assert shown in everything
        assert "\nsuites: forged" not in everything
        assert "\u202e" not in everything
        assert "\u200b" not in everything
    assert f"one\n\ttwo {shown}" in told(at)
    assert f"1  {shown}, answers {shown}" in [text.value for text in at.text]
    assert page(evaluation=odd).warning
    assert shown in told(page(evaluation=odd))


def test_names_hide_nothing() -> None:
    odd, shown = "a\u202eb", "a‹U+202E›b"
    of = evaluation(model=odd, digest=odd, provider=odd)
    assert list(models_named([of]).values()) == [shown]
    assert f"model: {shown}\ndigest: {shown}\nserved by: {shown}\n" in facts(of)
    assert list(frame([{"model": odd, "n": 1}])["model"]) == [shown]
    assert visible(f"नमस्\u200dते\r\n{odd}") == f"नमस्\u200dते‹U+000D›\n{shown}"
    (row,) = by_case(case_scores([result(agent=odd, case_id=odd, kind=odd)])).data[0].customdata
    assert row[0].startswith(f"{shown}, {shown}<br>case {shown}<br>")


def test_an_evaluation_older_than_the_newest_is_found_by_its_address(page: Page, database: Database) -> None:
    few = {"agents": ("screening",), "cases": 1, "trials": 1}
    for number in range(1, 203):
        keep(database, number, [result()] if number < 3 else [], days=number, **few)
    at = page("Two evaluations", evaluation=str(UUID(int=1)), against=str(UUID(int=2)))
    assert not warnings(at)
    assert at.selectbox(key="evals_evaluation").value == str(UUID(int=1))
    assert at.selectbox(key="evals_against").value == str(UUID(int=2))
    assert len(at.selectbox(key="evals_evaluation").options) == 202


def test_another_organisation_is_not_asked_for_what_was_chosen_in_the_one_before(
    page: Page, database: Database
) -> None:
    keep(database, 1, [result()])
    store(database.application, "acme-corp", start(), [result(False)], evaluation_id=UUID(int=2))
    at = page("One trial", evaluation=str(UUID(int=1)))
    assert "acme" in [text.value for text in at.text]
    assert set(at.query_params) == {"evaluation", "section", "agent", "case", "trial"}
    next(box for box in at.selectbox if box.label == "Organisation").set_value("acme-corp").run()
    assert not at.exception
    assert "The address names" not in warnings(at)
    assert "acme-corp" in [text.value for text in at.text]
    assert "evaluation" not in at.query_params
    assert figures(at)["pass@1"] == "0 %"


def test_what_a_case_asks_and_expects_is_shown_beside_its_trial(page: Page, database: Database) -> None:
    one = result(case_id="note-not-memory")
    few = {"agents": ("screening",), "cases": 1, "trials": 1}
    keep(database, 1, [one], suites_hash=suites_hash(), **few)
    keep(database, 2, [one], days=1, **few)
    keep(database, 3, [result(case_id="no-such-case")], days=2, suites_hash=suites_hash(), **few)
    at = page("One trial", evaluation=str(UUID(int=1)))
    case = next(case for case in suites()["screening"].cases if case.id == one.case_id)
    assert {case.prompt, expected(case.expect), reference(case)} <= set(told(at))
    at = page("One trial", evaluation=str(UUID(int=2)))
    assert any("The suites have changed since" in info.value for info in at.info)
    assert case.prompt not in told(at)
    at = page("One trial", evaluation=str(UUID(int=3)))
    assert any("no such case" in info.value for info in at.info)


def test_what_is_expected_is_written_with_every_call_change_and_pattern() -> None:
    expectation = Expectation.model_validate(
        {
            "calls": [
                {"tool": "add_note", "arguments": {"application_id": "smp-a2", "text": {"matches": "febr|02-01"}}},
                {"tool": "move", "arguments": {"on": date(2027, 2, 1), "to": {"any_of": ["hired", {"absent": True}]}}},
            ],
            "order": "any",
            "also": ["list_notes"],
            "changes": {"note": {"added": [{"text": {"absent": False}}], "changed": {"n-1": {"is_read": True}}}},
            "answer": {"says": ["noted", "febr"], "never": ["sorry"]},
        }
    )
    assert expected(expectation).splitlines() == [
        "calls, in any order; arguments that are not named may be anything:",
        "  add_note",
        '    application_id: "smp-a2"',
        "    text: matches febr|02-01",
        "  move",
        '    on: "2027-02-01"',
        '    to: any of "hired", absent',
        "may be called besides: list_notes",
        "changes in the workspace, and no others:",
        "  a new row in note",
        "    text: present",
        "  note n-1",
        "    is_read: true",
        "the answer says, by regular expressions:",
        "  noted",
        "  febr",
        "and never:",
        "  sorry",
    ]
    for suite in suites().values():
        for case in suite.cases:
            written = f"{expected(case.expect)}\n{reference(case)}"
            for call in (*case.expect.calls, *(call for turn in case.reference for call in turn.calls)):
                assert call.tool in written
            for pattern in (*case.expect.answer.says, *case.expect.answer.never):
                assert pattern in written
            asks = f"the answer asks for: {case.expect.answer.asks}, and for nothing else"
            assert (asks in written) is (case.expect.answer.asks is not None)


def test_the_address_keeps_section_agent_case_and_trial(page: Page, database: Database) -> None:
    results = [
        result(number == 1, agent=agent, case_id=case, trial=number)
        for agent in ("offer", "screening")
        for case in ("1", "2")
        for number in (1, 2)
    ]
    keep(database, 1, results, agents=("offer", "screening"), cases=4, trials=2)
    at = page(address_of={"section": "One trial", "agent": "screening", "case": "2", "trial": "1"})
    assert at.selectbox(key="evals_agent").value == "screening"
    assert at.selectbox(key="evals_trial screening 2").value == "1"
    at.selectbox(key="evals_case screening").set_value("1").run()
    assert not at.exception
    assert at.selectbox(key="evals_trial screening 1").value == "2"  # what did not pass, not what the address had
    chosen = {name: at.query_params[name] for name in ("section", "agent", "case", "trial")}
    assert chosen == {"section": "One trial", "agent": "screening", "case": "1", "trial": "2"}
    at.selectbox(key="evals_agent").set_value("offer").run()
    assert at.query_params["agent"] == "offer"
    segment(at, "evals_section", "Agents and cases")
    assert not at.query_params


def test_a_trial_that_the_address_names_in_vain_is_said(page: Page, database: Database) -> None:
    keep(database, 1, [result()])
    at = page(address_of={"section": "One trial", "agent": "screening", "case": MARKUP, "trial": "9"})
    assert "is not on record in this evaluation" in warnings(at)
    assert f"case: {MARKUP}" in told(at)
    assert not at.exception
