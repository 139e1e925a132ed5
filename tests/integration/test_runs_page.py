"""The page of runs as Streamlit runs it without a browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from call_rows import bare, ended, store
from conftest import Database, OpenDesk, OpenStore
from fakes import CANDIDATE, Clock, fact, observation, observe
from pressing import MARKUP, everything_interpreted, press, segment, told
from rows import emptied, execute
from run_rows import begun, completed, ran, tool_call
from streamlit.testing.v1 import AppTest

from memory_core import Subject
from memory_core.config import settings
from memory_core.db.engine import engine_for
from memory_core.membership import Members
from memory_core.roles import Identity
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome, Termination
from memory_core.run_steps import Step, StepKind, StepState
from pages.charts.runs import timeline
from pages.desk.picker import digest
from pages.runs.words import span

ROOT = Path(__file__).resolve().parents[2]
OTHERS = "\u202e(=1+1) שלום"  # what is written from right to left, also where it is not
OTHER = Subject("candidate", "c-82")
Page = Callable[..., AppTest]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def journal(database: Database) -> AgentJournal:
    return AgentJournal(engine_for(database.application), "acme")


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Open the page on this test's database, with no embedder; also at a run."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def opened(run_id: str | None = None, org_id: str | None = None) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/4_Runs.py")
        if run_id is not None:
            at.query_params["run"] = run_id
        if org_id is not None:
            at.query_params["org"] = org_id
        at.run()
        assert not at.exception
        return at

    return opened


def everything(at: AppTest) -> str:
    """Return all that is shown, whatever shows it."""
    values = [str(text.value) for text in [*at.text, *at.code, *at.metric]]
    tables = [frame.value.to_string(max_colwidth=None) for frame in at.dataframe]
    return "\n".join([*values, *tables, everything_interpreted(at)])


def in_figures(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def listed(at: AppTest) -> Any:
    return at.dataframe[0].value


def headings(at: AppTest) -> list[str]:
    return [heading.value for heading in at.subheader]


def facts_of(at: AppTest) -> list[str]:
    return [text.value for text in at.text]


def called(database: Database, *rows: dict[str, Any]) -> None:
    with database.connect() as connection:
        store(connection, "acme", rows)


# The list


def test_an_empty_organisation_says_what_puts_a_run_there(page: Page) -> None:
    at = page()
    assert at.info[0].value.startswith("No run is on record in this organisation yet.")
    assert told(at) == ['python -m memory_core run scheduling "When could the panel meet next week?" --org acme']
    assert len(at.dataframe) == 0
    at.text_input(key="runs_typed").set_value("r-1").run()
    assert at.info[0].value.startswith("No run is found by that.")


def test_runs_are_listed_newest_first_with_how_they_ended(
    page: Page, journal: AgentJournal, open_store: OpenStore
) -> None:
    observe(open_store(), "Could start in May.", run_id="r-0")
    ran(journal, run_id="r-1")
    journal.begin(begun(run_id="r-2", agent="sourcing"))
    open_store().recall("start", run_id="r-2")
    table = listed(page())
    assert list(table["run"]) == ["r-2", "r-1", "r-0"]
    assert list(table["agent"]) == ["sourcing", "screening", "other software"]
    assert list(table["ended"]) == ["running or cut off", "Completed", "not on record"]
    assert (list(table["shown"]), list(table["wrote"])) == ([1, 0, 0], [0, 0, 1])


def test_runs_are_found_by_id_agent_and_end(page: Page, journal: AgentJournal) -> None:
    ran(journal, run_id="s-1")
    ran(journal, run_id="s-2", agent="sourcing")
    journal.begin(begun(run_id="t-3"))
    at = page()
    assert at.selectbox(key="runs_agent").options == ["every one", "screening", "sourcing"]
    at.text_input(key="runs_typed").set_value("S-").run()
    assert list(listed(at)["run"]) == ["s-2", "s-1"]
    at.selectbox(key="runs_agent").set_value("sourcing").run()
    assert list(listed(at)["run"]) == ["s-2"]
    at.text_input(key="runs_typed").set_value("").run()
    at.selectbox(key="runs_agent").set_value("every one").run()
    assert "running or cut off" in at.selectbox(key="runs_ended").options
    at.selectbox(key="runs_ended").set_value("running").run()
    assert list(listed(at)["run"]) == ["t-3"]
    at.selectbox(key="runs_ended").set_value("gateway.busy").run()
    assert at.info[0].value.startswith("No run is found by that.")


def test_a_click_opens_a_run_and_the_way_back_keeps_what_was_looked_for(page: Page, journal: AgentJournal) -> None:
    ran(journal, run_id="s-1")
    ran(journal, run_id="s-2")
    at = page()
    at.text_input(key="runs_typed").set_value("s-1").run()
    selection = {"selection": {"rows": [0], "columns": [], "cells": []}}
    segment(at, f"runs acme {digest(['s-1'])} 0", selection)
    assert at.query_params["run"] == "s-1"
    assert told(at)[0] == "s-1"
    press(at, "All runs")
    assert "run" not in at.query_params
    assert at.text_input(key="runs_typed").value == "s-1"
    assert list(listed(at)["run"]) == ["s-1"]


def test_more_runs_than_are_listed_are_said_to_be_there(page: Page, open_store: OpenStore) -> None:
    open_store().remember_many([fact(f"Fact {number}.", run_id=f"r-{number}") for number in range(101)])
    at = page()
    assert len(listed(at)) == 100
    assert at.caption[-1].value.startswith("The newest 100 are listed, and there are more")


# One run


def test_a_completed_run_is_shown_from_what_it_read_to_what_it_wrote(
    page: Page, journal: AgentJournal, open_store: OpenStore, open_desk: OpenDesk, database: Database
) -> None:
    opened = open_store()
    opened.remember_many([observation("Could start in May."), fact("We never start on Fridays.")])
    journal.begin(begun(run_id="r-9"))
    recall = opened.recall("start", run_id="r-9")
    wrote = observe(opened, "Wants to start early.", run_id="r-9")
    journal.called("r-9", tool_call(tool="remember", memory_id=wrote.memory_id))
    journal.called("r-9", tool_call(number=2, turn=2, tool="reject_candidate", outcome=CallOutcome.REFUSED))
    journal.end("r-9", completed(turns=3))
    asked = bare("acme", started_at=datetime.now(UTC), run_id="r-9")
    called(database, ended(asked, 1500.0, prompt_tokens=1200, output_tokens=9, finish_reason="tool_calls"))

    at = page("r-9")
    assert at.success[0].value == "**Completed.** The model gave its answer."
    assert not at.warning
    assert in_figures(at) | {"Time": ""} == {
        "Shown": "2",
        "Wrote": "1",
        "Turns": "3 of 8",
        "Tool calls": "2",
        "Time": "",
    }
    assert headings(at) == [
        "What it did, in time",
        "What it was shown",
        "What it wrote",
        "Whom it is about",
        "Its tool calls",
    ]
    assert recall.block is not None
    assert told(at)[:2] == ["r-9", recall.block.text]
    assert any("recency, ranking recency, as no embedder is configured" in text for text in facts_of(at))
    assert {"screening", "user:maria", "qwen3:0.6b, fast", "note-7, mail:81"} <= set(facts_of(at))
    assert "no kind of memory that its agent may be shown, when it began" in facts_of(at)
    assert "its model may be sent" not in everything(at), "of an agent that sees facts alone nobody knows that"
    done, written, about, calls, *_ = (frame.value for frame in at.dataframe)
    assert written.iloc[0][["text", "origin", "about", "state"]].to_list() == [
        "Wants to start early.",
        "inferred by agent:screening",
        "candidate c-81",
        "live",
    ]
    assert written["by"][0] == 1
    assert about.to_dict("list") == {
        "about": ["candidate c-81", "nobody (operational)"],
        "shown": [1, 1],
        "wrote": [1, 0],
        "text": [2, 1],
    }
    by_name = done.set_index("name")
    assert by_name.loc["recency", "outcome"] == "showed 2 memories"
    assert by_name.loc["qwen3:0.6b", ["what", "outcome", "took", "tokens"]].to_list() == [
        "model call",
        "asked for tools",
        1500.0,
        "1,200 → 9",
    ]
    assert by_name.loc["reject_candidate", "outcome"] == "refused"
    assert calls["arguments"].str.fullmatch("[0-9a-f]{12}").all()
    assert calls["same"].fillna(0).to_list() == [0, 1]
    assert str(wrote.memory_id) in calls["left"][0]
    assert "Zoë Müller" not in everything(at)  # of the arguments
    looks = open_desk().trail(act="look at run")
    assert [(one.by, one.reference, one.subject, one.count) for one in reversed(looks)] == [
        ("user:local", "r-9", CANDIDATE, 2),
        ("user:local", "r-9", None, 1),
    ]
    assert "look at run" in everything(at)


def test_what_was_shown_and_is_erased_or_restricted_since_is_warned_of(
    page: Page, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    opened = open_store()
    opened.remember_many([observation("Could start in May."), observation("Knows her well.", subject=OTHER)])
    opened.recall("start", run_id="r-9")
    observe(opened, "Could start in May.", run_id="r-9")  # as it was told
    open_desk().restrict("They contest it.", subject=OTHER)
    at = page("r-9")
    assert at.warning[0].value.startswith(
        "**Not as it was:** of the 2 memories that it was shown, 1 was restricted since."
    )
    assert "tombstone" not in at.warning[0].value
    opened.forget(CANDIDATE, by="user:ines", reason="asked to")
    at = page("r-9")
    assert "1 was erased, 1 was restricted since" in at.warning[0].value
    assert "of the 1 memory that it wrote, 1 was erased since" in at.warning[0].value
    assert "erased on" in told(at)[1]
    assert "by user:ines" in at.dataframe[1].value["text"][0]
    assert "May" not in everything(at)
    assert "May" not in repr(at.session_state)


def test_what_was_corrected_or_disputed_since_is_not_said_to_be_erased(
    page: Page, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    opened, desk = open_store(), open_desk()
    observe(opened, "Could start in May.", run_id="r-8")
    observe(opened, "Knows her well.", subject=OTHER)
    opened.recall("start", run_id="r-9")
    new = desk.correct(desk.held(CANDIDATE).memories[0], "In June.", author="user:zoe", reason="She said so.")
    desk.dispute(desk.held(OTHER).memories[0], "I do not.")
    at = page("r-9")
    assert "of the 2 memories that it was shown, 1 was corrected, 1 was disputed since" in at.warning[0].value
    assert {"Corrected since: [2]", "Disputed since: [1]"} <= set(facts_of(at))
    at = page("r-8")
    assert at.warning[0].value == "**Not as it wrote it:** of the 1 memory that it wrote, 1 was corrected since."
    written = at.dataframe[0].value.iloc[0]
    assert written["state"] == "corrected"
    assert str(new.memory_id) in written["text"]


def test_one_opening_of_a_run_is_on_record_once(
    page: Page, journal: AgentJournal, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    def looks() -> int:
        return len(open_desk().trail(act="look at run"))

    opened = open_store()
    opened.remember_many([fact("We never start on Fridays.", run_id="r-9")])
    at = page("r-9")
    nobody = {"selection": {"rows": [0], "columns": [], "cells": []}}
    segment(at, f"about acme r-9 {digest(['None'])}", nobody)
    at.run()
    assert (at.title[0].value, looks()) == ("Runs", 1)
    press(at, "All runs")
    segment(at, f"runs acme {digest(['r-9'])} 0", nobody)
    assert (told(at)[0], looks()) == ("r-9", 2)
    page("r-9")
    assert looks() == 3
    opened.remember_many([fact("We never end on Fridays.", run_id="r-9")])
    at.run()  # and there is more to read than before
    at.run()
    assert looks() == 4


def test_of_very_many_recalls_the_older_ones_are_on_a_later_page_and_all_are_counted(
    page: Page, open_store: OpenStore
) -> None:
    opened = open_store()
    observe(opened, "Could start in May.")
    opened.recall("start", run_id="r-9")
    opened.forget(CANDIDATE, by="user:ines", reason="asked to")
    observe(opened, "Knows her well.", subject=OTHER)
    for _ in range(100):
        opened.recall("start", run_id="r-9")
    at = page("r-9")
    assert in_figures(at)["Shown"] == "2"
    assert "of the 2 memories that it was shown, 1 was erased since" in at.warning[0].value
    assert any(text.value.startswith("Recalls 2 to 101 of 101.") for text in at.caption)
    assert [one.label.split(",")[0] for one in at.expander][:2] == ["Recall 3", "Recall 4"]
    at.number_input(key="recalls acme r-9").set_value(2).run()
    assert not at.exception
    assert any(text.value.startswith("Recalls 1 to 1 of 101.") for text in at.caption)
    assert in_figures(at)["Shown"] == "2"


def test_previews_under_a_runs_id_stand_apart(page: Page, open_store: OpenStore) -> None:
    opened = open_store()
    opened.recall("start", run_id="r-9")
    observe(opened, "Could start in May.")
    opened.recall("start", run_id="r-9", purpose="preview")
    at = page("r-9")
    assert in_figures(at)["Shown"] == "0"
    assert "Previews under its id" in headings(at)
    assert "Whom it is about" not in headings(at)


def test_a_run_over_several_days_shows_the_date_and_its_time_in_days(
    page: Page, database: Database, open_store: OpenStore
) -> None:
    clock = Clock(datetime.now(UTC) - timedelta(days=9))
    open_store(clock=clock).recall("start", run_id="r-9")
    open_store(clock=clock).recall("start", run_id="r-8")
    clock.step(days=8, hours=12)
    open_store(clock=clock).recall("start", run_id="r-9")

    def steps_at(run_id: str) -> str:
        return page(run_id).dataframe[0].proto.columns

    assert in_figures(page("r-9"))["Time"] == "8.5 days"
    assert "YYYY-MM-DD" in steps_at("r-9")
    assert "YYYY-MM-DD" not in steps_at("r-8")


def test_a_plus_that_is_typed_into_the_address_is_one(page: Page, open_store: OpenStore) -> None:
    observe(open_store(), "Could start in May.", run_id="x-2+3")
    at = page("x-2 3")  # as a browser's address gives it
    assert told(at)[0] == "x-2+3"


def test_a_failed_run_says_in_plain_words_what_failed(page: Page, journal: AgentJournal, database: Database) -> None:
    start = begun(run_id="r-9")
    journal.begin(start)
    end = completed(termination="gateway.unavailable", detail="the server was away, tried 3 times", answer_was_cut=True)
    journal.end("r-9", end)
    called(
        database, ended(bare("acme", started_at=datetime.now(UTC), run_id="r-9"), 9.0, error_code="gateway.unavailable")
    )
    at = page("r-9")
    assert "**gateway.unavailable.** A call to the model failed: the model's server was away" in at.error[0].value
    assert told(at)[:2] == ["r-9", "the server was away, tried 3 times"]
    assert "**The answer was cut.**" in at.warning[0].value
    assert at.dataframe[0].value["outcome"].to_list() == ["gateway.unavailable"]


@pytest.mark.parametrize("termination", [*Termination, "gateway.something_new"])
def test_every_end_has_its_words(page: Page, journal: AgentJournal, termination: str) -> None:
    journal.begin(begun(run_id="r-9"))
    journal.end("r-9", completed(termination=termination))
    at = page("r-9")
    (said,) = [*at.success, *at.error, *at.warning]
    assert said.value.startswith("**It failed,**" if termination == "gateway.something_new" else f"**{termination}.** ")
    assert termination in everything(at)


def test_a_run_whose_process_was_killed_is_said_to_be_cut_off(
    page: Page, database: Database, open_store: OpenStore
) -> None:
    clock = Clock(datetime.now(UTC) - timedelta(hours=1))
    AgentJournal(engine_for(database.application), "acme", clock=clock).begin(begun(run_id="r-9"))
    called(database, bare("acme", started_at=clock.step(seconds=1), run_id="r-9"))
    at = page("r-9")
    assert at.error[0].value.startswith("**Cut off.**")
    assert (in_figures(at)["Turns"], in_figures(at)["Time"]) == ("–", "–")
    assert at.dataframe[0].value["outcome"].to_list() == ["no end is on record"]


def test_a_run_under_way_is_said_to_run(page: Page, journal: AgentJournal) -> None:
    journal.begin(begun(run_id="r-9"))
    at = page("r-9")
    assert at.info[0].value.startswith("**Running.**")
    assert headings(at) == ["What it was shown", "What it wrote"]


def test_a_run_of_other_software_and_a_preview_are_told_as_such(page: Page, open_store: OpenStore) -> None:
    observe(open_store(), "Could start in May.", run_id="r-9")
    assert page("r-9").info[0].value.startswith("Other software ran it")
    open_store().recall("start", run_id="preview-1", purpose="preview")
    at = page("preview-1")
    assert at.info[0].value.startswith("It was a preview")
    assert any(text.endswith(", in a preview") for text in facts_of(at))


# Whose run, and what must not happen


def test_another_organisations_run_and_what_is_no_run_show_nothing(page: Page, open_store: OpenStore) -> None:
    observe(open_store("beta"), "Could start in May.", run_id="r-9")
    observe(open_store(), "Ours.", run_id="r-1")
    for run_id in ("r-9", "r-", MARKUP, "x" * 300, "r-1\x00"):
        at = page(run_id)
        assert at.warning[0].value == "Of a run with this id nothing is known in this organisation:"
        assert told(at) == [run_id[:128]]
        assert not [*at.dataframe, *at.metric, *at.subheader]
        at.query_params.clear()
        assert "evil.example" not in everything_interpreted(at)


def test_a_run_that_is_open_is_not_taken_for_one_of_the_organisation_that_is_chosen_next(
    page: Page, open_store: OpenStore
) -> None:
    observe(open_store(), "Ours.", run_id="r-9")
    observe(open_store("beta"), "Theirs.", run_id="r-9")
    at = page("r-9")
    assert "Ours." in everything(at)
    assert at.query_params["org"] == "acme"
    assert "Organisation acme" in facts_of(at)
    at.selectbox[0].set_value("beta").run()
    assert not at.exception
    assert "run" not in at.query_params
    assert at.query_params["org"] == "beta"
    assert "Organisation beta" in facts_of(at)
    assert not {"Ours.", "Theirs."} & set(everything(at).split())
    assert list(listed(at)["run"]) == ["r-9"]


def test_an_address_says_of_which_organisation_a_run_is(page: Page, open_store: OpenStore) -> None:
    observe(open_store(), "Ours.", run_id="r-9")
    observe(open_store("beta"), "Theirs.", run_id="r-9")
    at = page()
    at.sidebar.selectbox[0].set_value("beta").run()
    segment(at, f"runs beta {digest(['r-9'])} 0", {"selection": {"rows": [0], "columns": [], "cells": []}})
    assert dict(at.query_params) == {"run": ["r-9"], "org": ["beta"]} or dict(at.query_params) == {
        "run": "r-9",
        "org": "beta",
    }
    sent = page("r-9", "beta")
    assert "Theirs." in everything(sent)
    assert "Ours." not in everything(sent)


@pytest.mark.parametrize("chosen", ["found", "about", "disclosures"])
def test_only_a_row_is_chosen_and_no_cell_so_that_sorting_opens_nothing(
    chosen: str, page: Page, open_store: OpenStore
) -> None:
    one = observe(open_store(), "Could start in May.", run_id="r-9")
    open_store().recall("start", run_id="r-10")
    at = page("r-9") if chosen == "about" else page()
    if chosen == "disclosures":
        at.switch_page("pages/1_Subjects.py").run()
        at.text_input(key="search").set_value("c-81").run()
        ticked = {"selection": {"rows": [0], "columns": [], "cells": []}}
        segment(at, f"held acme {digest([str(one.memory_id)])}", ticked)
    begins = {"found": "runs acme", "about": "about acme", "disclosures": f"shown {one.memory_id}"}[chosen]
    (table,) = [frame.proto for frame in at.dataframe if begins in frame.proto.id]
    assert list(table.selection_mode) == [table.SelectionMode.SINGLE_ROW]


@pytest.mark.parametrize(
    "run_id", ["+1:material/home:@x", "https://evil.example/a", "-2+3", "@SUM", "./..//", "x" * 128]
)
def test_nothing_interprets_a_memory_or_a_name_and_no_spreadsheet_runs_it(
    run_id: str, page: Page, journal: AgentJournal, open_store: OpenStore, database: Database
) -> None:
    opened = open_store()
    opened.remember_many([observation(f"{MARKUP} {OTHERS}"), fact("=HYPERLINK(1)")])
    name = run_id.replace("/", "_")[:100] + ":red"
    journal.begin(begun(run_id=run_id, agent=name, model=name, asked_by=name, documents=(name,)))
    opened.recall("start", run_id=run_id)
    opened.remember_many([observation(f"=1+1 {MARKUP} {OTHERS}", run_id=run_id), fact("=HYPERLINK(2)", run_id=run_id)])
    journal.called(run_id, tool_call(tool=name))
    journal.end(run_id, completed())
    called(database, ended(bare("acme", started_at=datetime.now(UTC), run_id=run_id, model=name), 9.0, prompt_tokens=1))
    table = listed(page())
    assert table["run"][0].lstrip("'") == run_id
    assert not table["run"][0].startswith(("+", "-", "@"))
    at = page(run_id)
    assert told(at)[0] == run_id
    at.query_params.clear()
    interpreted = everything_interpreted(at) + str(in_figures(at))
    assert "evil.example" not in interpreted
    assert run_id not in interpreted
    assert name not in interpreted
    written = at.dataframe[1].value["text"]
    assert written.str.startswith("'=").all()
    assert "\u202e" not in "".join(written)
    assert any("שלום" in text for text in written)
    for frame in at.dataframe:
        cells = [
            str(cell)
            for column in frame.value.select_dtypes(include=["object", "string"])
            for cell in frame.value[column]
        ]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def test_a_restored_database_shows_no_run(page: Page, open_store: OpenStore, database: Database) -> None:
    opened = open_store()
    observe(opened, "Could start in May.", run_id="r-9")
    assert opened.forget(OTHER, by="user:ines", reason="asked to").ledger_is_outside
    execute(database, "DELETE FROM ledger")  # as a backup of before has it
    at = page("r-9")
    assert "restored from a backup" in at.error[0].value
    assert any("was restored from a backup" in text for text in told(at))
    assert "May" not in everything(at)


# How it is drawn and written


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (0.0, "0 ms"),
        (850.4, "850 ms"),
        (999.6, "1.0 s"),
        (1034.0, "1.0 s"),
        (9960.0, "10 s"),
        (12_300.0, "12 s"),
        (59_700.0, "1 min"),
        (190_000.0, "3 min"),
        (5 * 3_600_000.0, "5.0 h"),
        (8.5 * 86_400_000, "8.5 days"),
    ],
)
def test_a_time_has_room_in_a_figure(ms: float, written: str) -> None:
    assert span(ms) == written


def test_a_call_that_failed_at_once_is_a_mark_and_no_mark_is_clipped() -> None:
    def step(kind: StepKind, since_ms: float, took_ms: float | None, state: StepState) -> Step:
        at = datetime(2026, 11, 2, tzinfo=UTC) + timedelta(milliseconds=since_ms)
        return Step(kind=kind, name="x", at=at, since_ms=since_ms, took_ms=took_ms, outcome=state.value, state=state)

    done = [
        step(StepKind.RECALL, 0.0, None, StepState.DONE),
        step(StepKind.TOOL, 1000.0, 3.0, StepState.FAILED),
        step(StepKind.TOOL, 2000.0, 8000.0, StepState.FAILED),
    ]
    chart = timeline(done, until_ms=10_000.0)
    recall, mark, bar = chart.data
    assert (recall.marker.symbol, recall.cliponaxis) == ("diamond", False)
    assert (mark.marker.symbol, list(mark.x), mark.cliponaxis, mark.showlegend) == ("x", [1.0], False, False)
    assert (mark.name, mark.marker.color) == (bar.name, bar.marker.color)
    assert (bar.type, list(bar.x)) == ("bar", [8.0])
    assert chart.layout.title.text == "Steps over time"


# From a person to a run, and back


def test_a_click_on_whom_it_is_about_shows_what_is_held_about_them(page: Page, open_store: OpenStore) -> None:
    observe(open_store(), "Could start in May.", run_id="r-9")
    at = page("r-9")
    selection = {"selection": {"rows": [0], "columns": [], "cells": []}}
    segment(at, f"about acme r-9 {digest(['candidate c-81'])}", selection)
    assert at.title[0].value == "Subjects"
    assert at.text_input(key="search").value == "candidate c-81"


def test_the_runs_of_a_memory_are_opened_from_the_page_of_subjects(page: Page, open_store: OpenStore) -> None:
    one = observe(open_store(), "Could start in May.", run_id="r-9")
    open_store().recall("start", run_id="r-10")
    ticked = {"selection": {"rows": [0], "columns": [], "cells": []}}

    def at_subject() -> AppTest:
        at = page().switch_page("pages/1_Subjects.py").run()
        at.text_input(key="search").set_value("c-81").run()
        return segment(at, f"held acme {digest([str(one.memory_id)])}", ticked)

    at = press(at_subject(), "Open that run")
    assert (at.title[0].value, told(at)[0]) == ("Runs", "r-9")
    at = segment(at_subject(), f"shown {one.memory_id} 1", ticked)
    assert (at.title[0].value, told(at)[0]) == ("Runs", "r-10")


# Roles


def as_somebody(org_id: str, run_id: str) -> None:
    """Show a run to a member, as a script that AppTest runs."""
    import streamlit as st

    from memory_core.config import settings
    from memory_core.roles import Act, Identity
    from memory_core.workplace import Workplace
    from pages import Visitor, require
    from pages.runs import run_view

    work = Workplace(org_id, Identity(issuer="https://login.example.org", subject="bo"), settings=settings())
    visitor = Visitor(work=work, author="user:bo")
    require(visitor, Act.READ_RUNS)
    st.title("Runs")
    run_view.show(visitor, run_id)


@pytest.mark.parametrize(
    ("role", "may_see", "may_go"), [("dpo", True, True), ("engineer", True, False), (None, False, False)]
)
def test_either_role_sees_a_run_and_only_an_officer_goes_on_to_the_person(
    role: str | None, may_see: bool, may_go: bool, page: Page, open_store: OpenStore, open_desk: OpenDesk
) -> None:
    observe(open_store(), "Could start in May.", run_id="r-9")
    if role is not None:
        identity = Identity(issuer="https://login.example.org", subject="bo")
        Members.open("acme", by="user:ada", settings=settings()).add(identity, role, name="user:bo")
    at = AppTest.from_function(as_somebody, args=("acme", "r-9"), default_timeout=60).run()
    assert not at.exception
    assert ("Could start in May." in everything(at)) is may_see
    assert bool(at.error) is not may_see
    assert ("Tick one to see everything that is held about them." in everything_interpreted(at)) is may_go
    assert bool(at.expander) is may_go
    assert len(open_desk().trail(act="look at run")) == may_see
