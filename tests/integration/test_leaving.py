"""What leaves the private network: no observation, unless the organisation has let them, with who and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pytest
from agent_bench import TODAY, Bench, Watched, agent, calls, says, workspaces
from conftest import Database, OpenDesk
from fakes import CANDIDATE, JOB, Clock, fact, observation, observe
from pressing import press
from streamlit.testing.v1 import AppTest
from talking import HOSTED, NATIVE, SHOWS_TOOLS, Kind, serving
from talking import says as answers
from wire import Wire

from memory_core import MemoryStore, Refused
from memory_core.agents.loop import AgentRunner
from memory_core.agents.runs import AgentRun
from memory_core.agents.specification import MemoryUse
from memory_core.chatting import gateway_for
from memory_core.cli import parser
from memory_core.config import Settings, settings
from memory_core.db.workspace import Workspace
from memory_core.doctor import diagnosis
from memory_core.errors import Refusal
from memory_core.evals.scripted import ScriptedModel, ScriptedStream
from memory_core.gateway.conversation import Message, Role
from memory_core.leaving import EVERYTHING_MAY_BE_SENT, Leaving, leaving_of
from memory_core.model import Kind as MemoryKind
from memory_core.model_commands import run_chat
from memory_core.previewing import preview
from memory_core.privacy import PrivacyDesk
from memory_core.rights import Safeguards
from memory_core.run_records import Termination

ROOT = Path(__file__).resolve().parents[2]
FACT, OBSERVATION = MemoryKind.FACT, MemoryKind.OBSERVATION
SAID, STATED = "Could start after a two-month notice period.", "Panel interviews need two weeks' notice."
OUTSIDE = {
    "model_provider": "openai",
    "model_base_url": "https://api.example.com/v1",
    "model_api_key": "k",
    **dict.fromkeys(("model_fast", "model_balanced", "model_deep"), "gpt"),
}
RECALLS = calls("recall_memories", question="How soon can they start?")
NUMBERS = count(1)
NOT_LET = Leaving(model_is_outside=True)
LET = Leaving(model_is_outside=True, allowed_by="user:ines", allowed_at=datetime(2026, 11, 2, tzinfo=UTC))


@pytest.fixture
def database(standing: Database) -> Database:
    return standing


@pytest.fixture(scope="module")
def filled(standing: Database) -> Iterator[Callable[[], Workspace]]:
    with workspaces(standing) as filled:
        yield filled


@pytest.fixture
def chosen(database: Database) -> Callable[..., Settings]:
    """Return settings on this database whose model is outside, unless others are given."""
    url = database.application.render_as_string(hide_password=False)
    return lambda **more: settings(**{"database_url": url, "memory_embedder": "none", **OUTSIDE, **more})


@pytest.fixture
def bench(database: Database, filled: Callable[[], Workspace], chosen: Callable[..., Settings]) -> Bench:
    """An organisation that remembers a fact and an observation, whose model is outside by its address."""
    clock = Clock()
    store = MemoryStore.open(f"out-{next(NUMBERS)}", embedder=None, clock=clock, settings=chosen())
    store.remember_many([fact(STATED), observation(SAID)])
    return Bench(database=database, store=store, workspace=filled(), clock=clock)


@pytest.fixture
def desk(bench: Bench, open_desk: OpenDesk) -> PrivacyDesk:
    return open_desk(bench.org_id, clock=bench.clock)


def let(desk: PrivacyDesk, *, leave: bool) -> Safeguards:
    return desk.change_safeguards(replace(desk.safeguards(), observations_leave=leave))


def sent(run: AgentRun) -> str:
    """Return all that the model was sent."""
    return "\n".join(message.content for message in run.messages)


# The rule


@pytest.mark.parametrize(
    ("outside", "allowed", "wanted", "left"),
    [
        (False, False, None, (FACT, OBSERVATION)),
        (False, True, ["observation"], (OBSERVATION,)),
        (True, False, None, (FACT,)),
        (True, False, ["observation", "fact"], (FACT,)),
        (True, False, ["observation"], ()),
        (True, True, None, (FACT, OBSERVATION)),
        (True, True, ["observation"], (OBSERVATION,)),
        (True, False, [], ()),
    ],
)
def test_observations_leave_only_where_somebody_has_let_them(
    outside: bool, allowed: bool, wanted: list[str] | None, left: tuple[MemoryKind, ...]
) -> None:
    by, at = ("user:ines", datetime(2026, 11, 2, tzinfo=UTC)) if allowed else (None, None)
    chosen = Safeguards(observations_leave=allowed, observations_leave_by=by, observations_leave_at=at)
    leaving = leaving_of(chosen, model_is_outside=outside)
    assert leaving.kinds_that_may_leave(wanted) == left
    assert leaving.observations_stay is (outside and not allowed)
    assert (leaving.allowed_by, leaving.allowed_at) == (by, at)


def test_a_store_whose_model_is_inside_asks_nobody(chosen: Callable[..., Settings]) -> None:
    inside = chosen(model_base_url="http://ollama:11434/v1")
    assert MemoryStore.open("nobody", embedder=None, settings=inside).may_leave() == EVERYTHING_MAY_BE_SENT


# Runs


def test_no_observation_is_sent_to_a_model_outside_and_the_record_says_so(bench: Bench) -> None:
    run = bench.run(RECALLS, says())
    assert run.termination == Termination.COMPLETED
    assert sent(run).count("<memories boundary=") == 2  # at its beginning, and by its tool
    assert sent(run).count(STATED) == 2
    assert SAID not in sent(run)
    assert bench.facts(run.run_id).observations_left_out is True
    (held,) = bench.store.held(CANDIDATE).memories
    assert held.disclosures == ()


def test_what_somebody_has_let_leave_is_sent_and_the_record_says_that(bench: Bench, desk: PrivacyDesk) -> None:
    assert let(desk, leave=True).observations_leave_by == "user:ines"
    run = bench.run(RECALLS, says())
    assert sent(run).count(SAID) == 2
    assert bench.facts(run.run_id).observations_left_out is False
    (held,) = bench.store.held(CANDIDATE).memories
    assert {one.run_id for one in held.disclosures} == {run.run_id}


@pytest.mark.parametrize(
    "inside",
    [{"model_base_url": "http://ollama.models.svc:11434/v1"}, {"model_base_url": "http://[::ffff:10.0.0.1]/v1"}],
)
def test_a_model_inside_is_sent_every_kind(
    inside: dict[str, str], bench: Bench, chosen: Callable[..., Settings]
) -> None:
    bench.store = MemoryStore.open(bench.org_id, embedder=None, clock=bench.clock, settings=chosen(**inside))
    run = bench.run(says())
    assert SAID in sent(run)
    assert bench.facts(run.run_id).observations_left_out is False


def test_an_address_inside_that_hands_on_to_outside_is_outside_where_that_is_said(
    bench: Bench, chosen: Callable[..., Settings]
) -> None:
    proxy = chosen(model_base_url="http://litellm:4000/v1", model_outside=True)
    bench.store = MemoryStore.open(bench.org_id, embedder=None, clock=bench.clock, settings=proxy)
    run = bench.run(says())
    assert SAID not in sent(run)
    assert bench.facts(run.run_id).observations_left_out is True


def test_a_run_that_was_sent_an_observation_ends_when_it_is_not_let_leave_any_more(
    bench: Bench, desk: PrivacyDesk
) -> None:
    let(desk, leave=True)

    def meanwhile(asked: int) -> None:
        if asked == 0:
            let(desk, leave=False)

    model = Watched([RECALLS, says()], meanwhile=meanwhile)
    run = bench.run(model=model)
    assert run.termination == Termination.CANCELLED
    assert run.detail == "1 memory that it was shown or had written may not be shown any more"
    assert len(model.how) == 1


def test_a_run_whose_observations_the_gateway_refuses_in_that_moment_ends_as_if_it_had_seen_it_itself(
    bench: Bench, desk: PrivacyDesk
) -> None:
    let(desk, leave=True)

    class Late(ScriptedModel):
        """Is asked in the moment in which the allowance is taken back, as the gateway then finds."""

        def stream(self, messages: Sequence[Message], **how: Any) -> ScriptedStream:
            let(desk, leave=False)
            raise Refused(Refusal(rule="observations_stay", field="messages", reason="may not leave"))

    run = bench.run(model=Late([says()]))
    assert run.termination == Termination.CANCELLED
    assert run.detail == "1 memory that it was shown or had written may not be shown any more"


def test_what_may_leave_no_more_and_what_is_restricted_are_counted_together(bench: Bench, desk: PrivacyDesk) -> None:
    let(desk, leave=True)
    (held,) = desk.held(CANDIDATE).memories
    with_both = observe(bench.store, "Prefers trains.")
    operational = observe(bench.store, "The panel is five people.", subject=JOB, kind="fact")

    def meanwhile(asked: int) -> None:
        desk.restrict("They contest it.", memory_id=held.memory_id)
        desk.restrict("It is checked.", memory_id=operational.memory_id)
        let(desk, leave=False)

    run = bench.run(model=Watched([RECALLS, says()], meanwhile=meanwhile))
    assert {held.memory_id, with_both.memory_id, operational.memory_id} < set(run.memories_read)
    assert run.detail == "3 memories that it was shown or had written may not be shown any more"


def test_what_is_let_leave_while_a_run_goes_on_is_for_the_next_one(bench: Bench, desk: PrivacyDesk) -> None:
    model = Watched([RECALLS, says()], meanwhile=lambda asked: let(desk, leave=True))
    run = bench.run(model=model)
    assert run.termination == Termination.COMPLETED
    assert SAID not in sent(run)
    assert bench.facts(run.run_id).observations_left_out is True
    assert SAID in sent(bench.run(says()))


def test_what_is_not_let_leave_just_as_a_run_begins_ends_it_before_anything_is_sent(bench: Bench) -> None:
    answers = chain([LET, LET], repeat(NOT_LET))  # … to the first of what the run asks for its first block
    only = agent(memory=MemoryUse(limit=5, kinds=(OBSERVATION,)))
    model = Watched([says()])
    runner = AgentRunner(bench.store, model, bench.journal, may_leave=lambda: next(answers))
    run = runner.run(only, "When?", workspace=bench.workspace, today=TODAY, asked_by="user:maria")
    assert run.termination == Termination.CANCELLED
    assert run.detail == "1 memory that it was shown or had written may not be shown any more"
    assert model.how == []


def test_an_agent_that_sees_observations_alone_is_shown_none_and_told_so(bench: Bench) -> None:
    only = agent("recall_memories", memory=MemoryUse(limit=5, kinds=(OBSERVATION,)))
    run = bench.run(RECALLS, says(), specification=only)
    assert run.termination == Termination.COMPLETED
    assert "<memories" not in sent(run)
    assert "is sent to a model outside" in sent(run)
    assert run.recalls == ()
    assert bench.facts(run.run_id).observations_left_out is True


def test_whoever_runs_agents_may_say_for_themselves_what_leaves(bench: Bench) -> None:
    """As a suite does, whose cases are of invented people."""
    runner = AgentRunner(bench.store, ScriptedModel([says()]), bench.journal, may_leave=lambda: EVERYTHING_MAY_BE_SENT)
    run = runner.run(agent(), "How soon?", workspace=bench.workspace, today=bench.clock().date(), asked_by="user:bo")
    assert SAID in sent(run)


# Chat


@pytest.fixture
def server() -> Iterator[Wire]:
    with serving(show=SHOWS_TOOLS) as wire:
        for kind in (NATIVE, HOSTED):
            wire.answers[kind.path] = answers(kind)
        yield wire


@pytest.mark.parametrize("kind", [NATIVE, HOSTED], ids=repr)
@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("allowed", [True, False])
def test_chat_sends_an_observation_outside_only_where_it_is_let_leave(
    kind: Kind,
    outside: bool,
    allowed: bool,
    bench: Bench,
    desk: PrivacyDesk,
    server: Wire,
    database: Database,
    capsys: pytest.CaptureFixture[str],
) -> None:
    let(desk, leave=allowed)
    url = database.application.render_as_string(hide_password=False)
    said = kind.settings(server.url, database_url=url, model_outside=outside)
    run_chat(parser().parse_args(["chat", "How soon can they start?", "--org", bench.org_id]), said)
    (asked,) = server.asked_for(kind.path)
    block = asked.body["messages"][0]["content"]
    assert STATED in block
    assert (SAID in block) is (not outside or allowed)
    assert ("observations are left out" in capsys.readouterr().err) is (outside and not allowed)
    (held,) = bench.store.held(CANDIDATE).memories
    assert bool(held.disclosures) is (not outside or allowed)


@pytest.mark.parametrize("kind", [NATIVE, HOSTED], ids=repr)
def test_the_gateway_itself_sends_no_observation_outside_that_may_not_leave(
    kind: Kind, bench: Bench, desk: PrivacyDesk, server: Wire, database: Database
) -> None:
    url = database.application.render_as_string(hide_password=False)
    said = kind.settings(server.url, database_url=url, model_outside=True)
    gateway = gateway_for(bench.org_id, settings=said)
    recall = bench.store.recall("How soon can they start?", run_id="r-1")
    assert recall.block is not None
    assert recall.block.observations == 1
    messages = [Message.memories(recall.block), Message(role=Role.USER, content="How soon?")]
    for ask in (gateway.chat, gateway.stream):
        with pytest.raises(Refused) as refused:
            ask(messages, run_id="r-1")
        assert (refused.value.rule, refused.value.field) == ("observations_stay", "messages")
    assert server.asked_for(kind.path) == []
    facts = bench.store.recall("How soon can they start?", run_id="r-1", kinds=["fact"])
    assert facts.block is not None
    gateway.chat([Message.memories(facts.block), messages[1]], run_id="r-1")
    gateway_for(bench.org_id, settings=said, observations_may_leave=True).chat(messages, run_id="r-1")
    gateway_for(bench.org_id, settings=kind.settings(server.url, database_url=url)).chat(messages, run_id="r-1")
    let(desk, leave=True)
    gateway.chat(messages, run_id="r-1")
    assert len(server.asked_for(kind.path)) == 4


# Said elsewhere


def test_a_preview_is_of_what_would_be_sent(bench: Bench, desk: PrivacyDesk, chosen: Callable[..., Settings]) -> None:
    look = {"run_id": "preview-1", "by": "user:bo", "because": "testing", "key": bytes(32)}
    seen = preview(bench.org_id, "start", settings=chosen(), **look)
    assert [one.memory.text for one in seen.memories] == [STATED]
    with pytest.raises(Refused) as refused:
        preview(bench.org_id, "start", settings=chosen(), kinds=["observation"], **look)
    assert (refused.value.rule, refused.value.field) == ("observations_stay", "kinds")
    let(desk, leave=True)
    seen = preview(bench.org_id, "start", settings=chosen(), **look)
    assert {one.memory.text for one in seen.memories} == {STATED, SAID}


@pytest.mark.parametrize(
    ("given", "allowed", "found"),
    [
        (
            {},
            False,
            "facts only: https://api.example.com/v1 is outside, and the organisation has not let observations leave",
        ),
        (
            {},
            True,
            "facts and observations: https://api.example.com/v1 is outside, and user:ines has let them leave, since",
        ),
        (
            {"model_base_url": "http://ollama:11434"},
            False,
            "nothing: http://ollama:11434/v1 is inside the private network",
        ),
    ],
)
def test_the_doctor_says_what_leaves(
    given: dict[str, str], allowed: bool, found: str, bench: Bench, desk: PrivacyDesk, chosen: Callable[..., Settings]
) -> None:
    let(desk, leave=allowed)
    told = {check.part: check for check in diagnosis(chosen(model_deadline_s=0.01, **given), bench.org_id)}
    assert told["What leaves"].ok
    assert told["What leaves"].found.startswith(found)


def test_the_pages_say_what_leaves(
    bench: Bench, desk: PrivacyDesk, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", bench.org_id)
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")
    for name, value in OUTSIDE.items():
        monkeypatch.setenv(name.upper(), value)

    def opened(name: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page(name).run()
        assert not at.exception
        return at

    at = opened("pages/3_Recall.py")
    assert "Observations are left out of what it is sent" in at.info[0].value
    at.text_input[0].set_value("start")
    at.selectbox(key="preview purpose").set_value("testing recall")
    press(at, "Preview")
    assert not any(SAID in code.value for code in at.code)
    assert any(STATED in code.value for code in at.code)
    run = bench.run(says())
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page("pages/4_Runs.py")
    at.query_params["run"] = run.run_id
    at.run()
    assert any(text.value.startswith("observations: its model was outside") for text in at.text)
    let(desk, leave=True)
    at = opened("pages/3_Recall.py")
    assert "Observations are sent to it." in at.info[0].value
    assert any(text.value.startswith("Let leave by user:ines, since 2026-11-02") for text in at.text)
