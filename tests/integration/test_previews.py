"""Previews: a disclosure with who looked and why, under pseudonyms where the organisation requires them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agent_bench import TODAY, agent, calls, says
from call_rows import bare, ended
from call_rows import store as store_calls
from conftest import Database, OpenDesk, OpenStore
from fakes import CANDIDATE, fact, observation, observe
from pressing import everything_interpreted, press, told
from rows import emptied, execute
from streamlit.testing.v1 import AppTest

from memory_core import MemoryStore, Purpose, Refused, Subject
from memory_core.agents.loop import AgentRunner
from memory_core.agents.sample import sample_rows
from memory_core.cli import main
from memory_core.config import Settings, settings
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.db.workspace import workspace
from memory_core.evals.scripted import ScriptedModel
from memory_core.gateway.conversation import Role
from memory_core.latency import latency
from memory_core.membership import Members
from memory_core.previewing import preview, shown_to
from memory_core.privacy import PrivacyDesk
from memory_core.prompt.pseudonyms import UNCLEAR, Pseudonyms
from memory_core.prompt.tokens import estimated_tokens
from memory_core.rights import Safeguards
from memory_core.roles import Identity
from memory_core.run_journal import AgentJournal
from memory_core.selection import Period, Selection
from memory_core.tracing import found_runs, trace
from memory_core.veil import veil
from pages.desk.picker import digest

ROOT = Path(__file__).resolve().parents[2]
KEY, OTHER_KEY = bytes(range(32)), bytes(32)
ZOE = Subject("candidate", "c-81", "Zoë Okafor", ("zoe@mail.example",))
BEN = Subject("candidate", "c-82", "Ben Amsel")
JOB = Subject("job", "j-3", "Office manager")
SAID = "Zoë Okafor could start in May, Ben Amsel in June."
NAMES = ("Zoë", "Okafor", "zoe@", "Ben", "Amsel", "c-81", "c-82", "Prospero", "p-5")
REQUIRED = Safeguards(preview_pseudonyms=True)
Look = Callable[..., Any]


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def chosen(database: Database) -> Settings:
    return settings(
        database_url=database.application.render_as_string(hide_password=False),
        memory_embedder="none",
        model_api_key="",
    )


@pytest.fixture
def store(open_store: OpenStore) -> MemoryStore:
    opened = open_store()
    opened.remember_many(
        [
            observation(SAID, subject=ZOE, source="mail-81"),
            observation("Prefers mornings, as p-5 said.", subject=Subject("prospect", "p-5")),
            observation("Knows Ben.", subject=BEN),
            fact("The office manager panel meets on Mondays.", subject=JOB),
        ]
    )
    return opened


@pytest.fixture
def look(store: MemoryStore, chosen: Settings) -> Look:
    def looked(query: str = "start", **given: Any) -> Any:
        asked = {"run_id": f"preview-{uuid4().hex[:8]}", "by": "user:bo", "because": "testing recall", "key": KEY}
        return preview(store.org_id, query, settings=chosen, **{**asked, **given})

    return looked


@pytest.fixture
def required(open_desk: OpenDesk) -> PrivacyDesk:
    desk = open_desk()
    desk.change_safeguards(REQUIRED)
    return desk


def test_a_preview_is_a_disclosure_to_whoever_looked_with_why(look: Look, store: MemoryStore) -> None:
    look()
    store.recall("start", run_id="r-9")
    store.recall("start", run_id="preview-1", purpose="preview")
    for memory in store.held(ZOE, by="user:ines").memories:
        told_ = [(one.purpose, one.by, one.because) for one in memory.disclosures]
        assert told_ == [
            (Purpose.PREVIEW, "user:bo", "testing recall"),
            (Purpose.RUN, None, None),
            (Purpose.PREVIEW, None, None),
        ]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"because": ""}, "because_is_given"),
        ({"because": None}, "because_is_given"),
        ({"by": None}, "identifier_is_given"),
        ({"by": ""}, "identifier_is_given"),
        ({"because": "x" * 201}, "because_length"),
    ],
)
def test_a_preview_that_does_not_say_who_and_why_shows_nothing(
    given: dict[str, Any], rule: str, look: Look, database: Database
) -> None:
    with pytest.raises(Refused) as refused:
        look(**given)
    assert refused.value.rule == rule
    assert execute(database, "SELECT count(*) FROM recall") == [(0,)]


def test_where_nothing_is_required_a_preview_has_the_real_names(look: Look) -> None:
    seen = look()
    assert SAID in seen.block.text
    assert SAID in [one.memory.text for one in seen.memories]


def test_where_it_is_required_a_preview_has_no_real_name_and_is_still_a_disclosure(
    look: Look, required: PrivacyDesk, store: MemoryStore
) -> None:
    seen = look(limit=10)
    everything = f"{seen.block.text}\n{[one.memory for one in seen.memories]}"
    for name in NAMES:
        assert name not in everything
    assert "mail-81" not in everything
    assert "about job j-3" in seen.block.text
    assert seen.block.text.count("person-") >= 5
    assert seen.block.tokens == estimated_tokens(seen.block.text)
    (held, *_) = required.held(ZOE).memories
    assert [one.by for one in held.disclosures] == ["user:bo"]
    real = store.shown(seen.recall_id, by="user:ines")
    assert real is not None
    assert (real.boundary, real.omitted) == (seen.block.boundary, seen.block.omitted)
    assert SAID in real.text
    assert len(real.text.split("\n")) == len(seen.block.text.split("\n"))


def test_pseudonyms_are_the_same_within_a_session_and_others_in_another(
    look: Look, required: PrivacyDesk, store: MemoryStore, chosen: Settings
) -> None:
    first, again, other = look(), look(), look(key=OTHER_KEY)
    texts = [[one.memory.text for one in seen.memories] for seen in (first, again, other)]
    assert texts[0] == texts[1] != texts[2]
    block = shown_to(store.org_id, first.recall_id, by="user:bo", key=KEY, settings=chosen)
    assert block == first.block
    strange = shown_to(store.org_id, first.recall_id, by="user:bo", key=OTHER_KEY, settings=chosen)
    assert strange is not None
    assert first.block.text != strange.text
    assert not any(name in strange.text for name in NAMES)


def test_where_it_is_required_nobody_is_found_by_a_name_and_who_was_seen_is_by_their_pseudonym(
    look: Look, required: PrivacyDesk, store: MemoryStore
) -> None:
    def first(query: str) -> Any:
        return look(query, limit=1, ranking="lexical").memories[0]

    ben = next(one.memory.subject.id for one in look(limit=10).memories if one.memory.text.startswith("Knows"))
    assert re.fullmatch("person-[0-9a-f]{8}", ben)
    assert first(f"what of {ben}").memory.text == f"Knows {ben}."
    for name in ("Ben", "Ben Amsel", "Zoë Okafor", "c-82", "p-5"):
        assert not first(f"what of {name}").score, name  # it finds nothing: the newest is shown
    assert store.recall("what of Ben", run_id="r-9", ranking="lexical").memories[0].score


@pytest.mark.parametrize(
    ("label", "asked"),
    [
        ("Marie Curtain", "mary"),
        ("Tom Price", "pricing"),
        ("Farid Haddad", "haddadingly"),
        ("Ada Berg", "Berge"),
        ("Zoë Okafor", "Okaforation"),
        ("Nelly Roe", "nellie"),
        ("Ana Mendes", "mend"),
        ("Burning Roe", "burn"),
        ("Hayes Roe", "hay"),
        ("Sophie Roe", "sophy"),
        ("Bo Li", "li"),
    ],
)
def test_no_word_that_the_search_takes_for_a_name_finds_anybody(
    label: str, asked: str, look: Look, required: PrivacyDesk, store: MemoryStore
) -> None:
    surname = label.rsplit(maxsplit=1)[-1] if label.rsplit(maxsplit=1)[-1] != "Roe" else label.split(maxsplit=1)[0]
    observe(store, f"{surname} prefers tea.", subject=Subject("candidate", "c-90", label))
    assert store.recall(asked, run_id="r-9", ranking="lexical").memories[0].score or label == "Bo Li"
    assert not look(asked, limit=1, ranking="lexical").memories[0].score
    assert look("tea, preferring it", limit=1, ranking="lexical").memories[0].score


def test_where_it_is_required_a_preview_is_about_a_person_by_their_pseudonym_only(
    look: Look, required: PrivacyDesk
) -> None:
    with pytest.raises(Refused) as refused:
        look(subject=BEN)
    assert refused.value.rule == "persons_stand_under_pseudonyms"
    ben = next(one.memory.subject for one in look(limit=10).memories if one.memory.text.startswith("Knows"))
    assert [one.memory.subject for one in look(subject=ben, limit=10).memories] == [ben]
    assert [one.memory.subject for one in look(subject=JOB).memories] == [JOB]
    for name in ("Zoë Okafor", "Ben"):  # how long it is, is not said
        with pytest.raises(Refused, match="8,001 characters"):
            look(f"{name} {'x' * 8000}"[:8001])


def test_a_runs_id_that_names_somebody_is_veiled_and_finds_and_opens_nothing(
    required: PrivacyDesk, store: MemoryStore, chosen: Settings, database: Database
) -> None:
    for run_id in ("screening-c-82", "r-9"):
        store.recall("start", run_id=run_id)
    asked = bare("acme", started_at=datetime.now(UTC) - timedelta(minutes=1), run_id="screening-c-82")
    with database.connect() as connection:
        store_calls(connection, "acme", [ended(asked, 2000.0, prompt_tokens=90, output_tokens=7)])

    def found(typed: str = "", **key: bytes) -> list[str]:
        return [one.run_id for one in found_runs("acme", typed, settings=chosen, **key)]

    assert found() == ["r-9", "screening-c-82", "r-1"]
    newest, veiled, _ = found(key=KEY)
    assert newest == "r-9"
    assert veiled == UNCLEAR
    assert found("r-", key=KEY) == ["r-9", "r-1"]
    for typed in ("c-82", "screening", veiled):
        assert found(typed, key=KEY) == []
    assert trace("acme", "r-9", by="user:bo", settings=chosen, key=KEY).recalls
    with pytest.raises(Refused) as refused:
        trace("acme", "screening-c-82", by="user:bo", settings=chosen, key=KEY)
    assert refused.value.rule == "run_id_names_nobody"
    with pytest.raises(Refused) as made_up:  # whether there is such a run is not said
        trace("acme", "screening-c-81", by="user:bo", settings=chosen, key=KEY)
    assert str(made_up.value) == str(refused.value)
    assert trace("acme", "screening-c-82", by="user:ines", settings=chosen).recalls
    seen = latency("acme", Selection(period=Period.EVERYTHING), settings=chosen, key=KEY).median_call
    assert seen is not None
    assert seen.run_id == veiled
    real = latency("acme", Selection(period=Period.EVERYTHING), settings=chosen).median_call
    assert real is not None
    assert real.run_id == "screening-c-82"


def test_older_runs_that_name_nobody_are_found_behind_newer_ones_that_are_veiled(
    required: PrivacyDesk, store: MemoryStore, chosen: Settings
) -> None:
    named = [f"screening-{of}" for of in ("old-3", "old-2", "c-81-a", "old-1", *(f"c-82-{n}" for n in range(7)))]
    for run_id in named:
        store.recall("start", run_id=run_id)

    def found(limit: int) -> list[str]:
        return [one.run_id for one in found_runs("acme", "screening", limit=limit, settings=chosen, key=KEY)]

    assert found(1) == ["screening-old-1"]
    assert found(2) == ["screening-old-1", "screening-old-2"]
    assert found(3) == found(100) == ["screening-old-1", "screening-old-2", "screening-old-3"]


def test_in_another_organisation_a_session_has_other_pseudonyms(database: Database, open_desk: OpenDesk) -> None:
    seen = set()
    for org_id in ("acme", "globex"):
        open_desk(org_id).change_safeguards(REQUIRED)
        with organisation_transaction(engine_for(database.application), org_id) as connection:
            pseudonyms = veil(connection, org_id, KEY)
            assert pseudonyms is not None
            seen.add(pseudonyms.of(ZOE))
            with pytest.raises(ValueError, match="16 bytes"):
                veil(connection, org_id, bytes(15))
    assert len(seen) == 2


def test_a_budget_leaves_out_as_many_with_pseudonyms(look: Look, required: PrivacyDesk) -> None:
    seen = look(limit=4, token_budget=240)
    assert seen.block.omitted == 4 - sum(one.shown for one in seen.memories) > 0
    assert f'omitted="{seen.block.omitted}"' in seen.block.text
    assert look(token_budget=1).block is None


def test_a_look_at_a_recall_of_nobody_is_refused(look: Look, chosen: Settings) -> None:
    with pytest.raises(Refused) as refused:
        shown_to("acme", uuid4(), by="user:bo", key=KEY, settings=chosen)
    assert refused.value.rule == "recall_exists"


def test_a_run_is_never_shown_a_pseudonym(
    required: PrivacyDesk, store: MemoryStore, chosen: Settings, database: Database
) -> None:
    recall = store.recall("start", run_id="r-9")
    assert recall.block is not None
    assert SAID in recall.block.text
    assert "person-" not in recall.block.text
    engine = engine_for(database.application)
    model = ScriptedModel([calls("recall_memories", question="When can Zoë Okafor start?"), says("In May.")])
    with workspace(engine) as own:
        own.fill(sample_rows(TODAY))
        run = AgentRunner(store, model, AgentJournal(engine, "acme")).run(
            agent(), "When can they start?", workspace=own, today=TODAY, asked_by="user:maria", run_id="r-10"
        )
    blocks = [message.content for message in run.messages if message.content.startswith("<memories")]
    assert len(blocks) == 2
    assert all(SAID in block and "person-" not in block for block in blocks)
    assert all(message.role is Role.USER for message in run.messages if message.content in blocks)


def test_a_run_that_is_looked_at_has_real_names_only_without_a_sessions_key(
    look: Look, required: PrivacyDesk, store: MemoryStore, chosen: Settings
) -> None:
    look(run_id="preview-9", because="a complaint of Ben Amsel, c-81")
    observe(store, "Ben Amsel knows Zoë Okafor.", subject=ZOE, run_id="preview-9")
    real = trace("acme", "preview-9", by="user:ines", settings=chosen)
    assert "Ben Amsel knows Zoë Okafor." in str(real.written)
    assert SAID in str(real.recalls)
    assert [(one.by, one.because) for one in real.recalls] == [("user:bo", "a complaint of Ben Amsel, c-81")]
    veiled = trace("acme", "preview-9", by="user:bo", settings=chosen, key=KEY)
    assert not any(name in str(veiled) for name in NAMES)
    assert [one.because for one in veiled.recalls] == [
        f"a complaint of {UNCLEAR}"
    ]  # which she may have written herself
    assert len(veiled.about()) == len(real.about())
    assert [len(one.memories) for one in veiled.recalls] == [len(one.memories) for one in real.recalls]
    again = trace("acme", "preview-9", by="user:bo", settings=chosen, key=KEY)
    assert (again.recalls, again.written) == (veiled.recalls, veiled.written)
    required.change_safeguards(Safeguards(version=required.safeguards().version))
    assert SAID in str(trace("acme", "preview-9", by="user:bo", settings=chosen, key=KEY).recalls)


def test_whoever_is_observed_has_a_pseudonym_also_without_a_name(
    required: PrivacyDesk, store: MemoryStore, database: Database
) -> None:
    with organisation_transaction(engine_for(database.application), "acme") as connection:
        pseudonyms = veil(connection, "acme", KEY)
    assert isinstance(pseudonyms, Pseudonyms)
    assert pseudonyms.text("p-5, c-82 and job j-3") == (
        f"{pseudonyms.of(Subject('prospect', 'p-5'))}, {pseudonyms.of(BEN)} and job j-3"
    )


# The command line


@pytest.fixture
def run(database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("MEMORY_ORG", "acme")

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


def test_recall_on_the_command_line_is_recorded_with_who_and_why(
    run: Callable[..., Any], store: MemoryStore, database: Database
) -> None:
    assert run("recall", "start")[0] == 0
    assert run("recall", "start", "--because", "a complaint")[0] == 0
    assert run("recall", "start", "--run", "r-9")[0] == 0
    recorded = execute(database, "SELECT purpose, by IS NOT NULL, because FROM recall ORDER BY at, recall_id")
    assert recorded == [
        ("preview", True, "a preview on the command line"),
        ("preview", True, "a complaint"),
        ("run", False, None),
    ]
    status, out, err = run("recall", "start", "--because", "")
    assert (status, out) == (1, "")
    assert "because_is_given" in err
    status, out, err = run("recall", "start", "--run", "r-9", "--because", "x")
    assert (status, out) == (1, "")
    assert "only_a_preview_says_who_looks" in err


def test_recall_on_the_command_line_keeps_to_pseudonyms(
    run: Callable[..., Any], store: MemoryStore, required: PrivacyDesk
) -> None:
    status, out, _ = run("recall", "start", "--json")
    assert status == 0
    assert not any(name in json.dumps(json.loads(out), ensure_ascii=False) for name in NAMES)
    assert SAID in run("recall", "start", "--run", "r-9")[1]


# The pages


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AppTest]:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    for name in ("MODEL_API_KEY", "MODEL_PROVIDER", "MODEL_BASE_URL", "MODEL_OUTSIDE"):
        monkeypatch.delenv(name, raising=False)

    def opened(name: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page(f"pages/{name}").run()
        assert not at.exception
        return at

    return opened


def everything(at: AppTest) -> str:
    values = [str(text.value) for text in [*at.text, *at.code, *at.metric]]
    tables = [frame.value.to_string(max_colwidth=None) for frame in at.dataframe]
    return "\n".join([*values, *tables, everything_interpreted(at)])


def pressed(at: AppTest, purpose: str | None = "testing recall", words: str = "") -> AppTest:
    at.text_input[0].set_value("start")
    if purpose:
        at.selectbox(key="preview purpose").set_value(purpose)
    at.text_input(key="preview purpose in words").set_value(words)
    return press(at, "Preview")


def test_the_page_asks_what_for_before_it_shows_anything(
    page: Callable[[str], AppTest], store: MemoryStore, database: Database
) -> None:
    at = pressed(page("3_Recall.py"), purpose=None)
    assert "Say what for" in at.warning[0].value
    at = pressed(at, "something else, in words", " ")
    assert "Say what for" in at.warning[0].value
    assert execute(database, "SELECT count(*) FROM recall") == [(0,)]
    at = pressed(at, "something else, in words", " *a look* ")
    assert "Recorded as a disclosure to user:local, for: *a look*" in [text.value for text in at.text]
    assert "*a look*" not in everything_interpreted(at)
    recorded = execute(database, "SELECT DISTINCT purpose, by, because FROM recall")
    assert recorded == [("preview", "user:local", "*a look*")]


def test_the_page_shows_no_real_name_where_pseudonyms_are_required(
    page: Callable[[str], AppTest], store: MemoryStore, required: PrivacyDesk
) -> None:
    at = pressed(page("3_Recall.py"))
    assert not any(name in everything(at) for name in NAMES)
    assert any("under pseudonyms" in one.value for one in at.info)
    assert "person-" in everything(at)
    blocks = [one for one in told(at) if one.startswith("<memories")]
    values = [line.partition(': "')[2] for line in blocks[0].split("\n") if line.startswith("[")]
    assert list(at.dataframe[-1].value["text"]) == [f'"{value}' for value in values]  # what each further memory adds


def as_an_engineer(org_id: str, run_id: str) -> None:
    """Show a run to a member who is an engineer and no officer, as a script that AppTest runs."""
    import streamlit as st

    from memory_core.config import settings
    from memory_core.roles import Identity
    from memory_core.workplace import Workplace
    from pages import Visitor
    from pages.runs import run_view

    work = Workplace(org_id, Identity(issuer="https://login.example.org", subject="bo"), settings=settings())
    st.title("Runs")
    run_view.show(Visitor(work=work, author="user:bo"), run_id)


def test_an_engineer_opens_a_run_and_sees_no_real_name_where_that_is_required(
    page: Callable[[str], AppTest], store: MemoryStore, required: PrivacyDesk, chosen: Settings
) -> None:
    store.recall("start", run_id="r-9")
    observe(store, "Ben Amsel knows Zoë Okafor.", subject=ZOE, run_id="r-9")
    identity = Identity(issuer="https://login.example.org", subject="bo")
    Members.open("acme", by="user:ada", settings=chosen).add(identity, "engineer", name="user:bo")
    at = AppTest.from_function(as_an_engineer, args=("acme", "r-9"), default_timeout=60).run()
    assert not at.exception
    assert not any(name in everything(at) for name in NAMES)
    assert everything(at).count("person-") > 5
    officers = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/4_Runs.py")
    officers.query_params["run"] = "r-9"
    assert SAID in everything(officers.run())


def test_an_officer_sees_who_looked_and_why_beside_the_runs(
    page: Callable[[str], AppTest], look: Look, store: MemoryStore
) -> None:
    look(because="a <b>complaint</b>", run_id="preview-9")
    store.recall("start", run_id="r-9")
    at = page("1_Subjects.py")
    at.text_input(key="search").set_value("c-81").run()
    assert "preview-9 (preview by user:bo), r-9 (run)" in list(at.dataframe[0].value["shown_to"])
    table = at.dataframe[0].value
    (held,) = store.held(CANDIDATE).memories
    at.session_state[f"held acme {digest([str(held.memory_id)])}"] = {
        "selection": {"rows": [0], "columns": [], "cells": []}
    }
    at.run()
    assert not at.exception
    shown = at.dataframe[-1].value
    assert list(shown["to"]) == ["user:bo", ""]
    assert list(shown["what for"]) == ["a <b>complaint</b>", ""]
    assert len(table) == 1
