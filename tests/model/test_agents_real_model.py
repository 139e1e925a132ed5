"""An agent run, and a case of its suite, with a real small model, SmolLM2, as llama.cpp serves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from conftest import SHARED, Database
from llama import Llama, missing, served
from playing import cases
from rows import execute

from memory_core import MemoryStore
from memory_core.agents.loop import AgentRunner
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import specification
from memory_core.chatting import gateway_for
from memory_core.config import Settings, settings
from memory_core.db.engine import engine_for
from memory_core.db.workspace import workspace
from memory_core.evals.case import TODAY
from memory_core.evals.trying import Asking, tried
from memory_core.evaluations import Aspect
from memory_core.gateway.servers import close_servers
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome, Termination

pytestmark = pytest.mark.model

TOOL_CALL_TEMPLATE = SHARED / "reference" / "tool_call_template.jinja"
CONTEXT_TOKENS = 4096
DEADLINE_S = 30.0  # of which an idle machine needs a few


@pytest.fixture(scope="module")
def tool_calling_llama() -> Iterator[Llama]:
    """Serve the model with a chat template under which its server makes it call tools."""
    if what := missing():
        pytest.skip(what)
    if not TOOL_CALL_TEMPLATE.exists():
        pytest.skip(
            "tool_call_template.jinja, the template under which SmolLM2 calls tools, is not beside the checkout"
        )
    with served(context_tokens=CONTEXT_TOKENS, chat_template=TOOL_CALL_TEMPLATE.read_text(encoding="utf-8")) as llama:
        yield llama


@pytest.fixture
def chosen(database: Database, tool_calling_llama: Llama) -> Iterator[Settings]:
    models = dict.fromkeys(("model_fast", "model_balanced", "model_deep"), "smollm2")
    yield settings(
        database_url=database.application.render_as_string(hide_password=False),
        memory_embedder="none",
        model_provider="openai",
        model_base_url=tool_calling_llama.url,
        model_api_key="any",
        model_tokens_per_minute=1_000_000,
        model_num_ctx=CONTEXT_TOKENS,
        model_max_output_tokens=60,
        **models,
    )
    close_servers()


def test_a_run_that_has_to_call_a_tool_does_and_comes_to_one_of_its_ends_in_time_and_on_record(
    chosen: Settings, database: Database
) -> None:
    engine = engine_for(database.application)
    # Of one tool alone, whose arguments so small a model can write.
    agent = replace(specification("pipeline-report"), tools=("list_jobs",), turn_limit=3)
    with MemoryStore.open("acme", settings=chosen) as store, workspace(engine) as own:
        own.fill(sample_rows(TODAY))
        run = AgentRunner(store, gateway_for("acme", settings=chosen), AgentJournal(engine, "acme")).run(
            agent,
            "Which jobs are open now? Name them.",
            workspace=own,
            today=TODAY,
            asked_by="user:maria",
            run_id="r-1",
            deadline_s=DEADLINE_S,
            temperature=0,
            seed=7,
            must_call=True,
        )
    assert run.took_ms < (DEADLINE_S + 1) * 1000
    assert run.termination in set(Termination)
    (first, *_) = run.calls
    assert (first.turn, first.name, first.outcome) == (1, "list_jobs", CallOutcome.DONE)
    assert (run.answer is not None) is (run.termination == Termination.COMPLETED)
    kept = "SELECT termination, detail, turns, ended_at <= deadline_at + interval '1 second' FROM agent_run"
    assert execute(database, kept) == [(run.termination, run.detail, run.turns, True)]
    calls: list[Any] = [(number, one.turn, one.outcome.value) for number, one in enumerate(run.calls, start=1)]
    assert execute(database, "SELECT number, turn, outcome FROM agent_call ORDER BY number") == calls
    assert execute(database, "SELECT count(*), min(run_id) FROM model_call") == [(run.turns, "r-1")]
    assert [message.role.value for message in run.messages[:4]] == ["system", "user", "assistant", "tool"]


def test_a_case_of_a_suite_is_tried_to_its_end_and_judged(chosen: Settings, database: Database) -> None:
    case = cases()["pipeline-report", "waiting-two-weeks"]
    result = tried(
        case,
        specification("pipeline-report"),
        gateway_for("acme", settings=chosen),
        engine=engine_for(database.application),
        settings=chosen,
        seed=7,
        asking=Asking(temperature=0, deadline_s=DEADLINE_S, must_call=True),
    )
    assert result.termination in set(Termination)
    assert result.took_ms < (DEADLINE_S + 1) * 1000
    assert result.infrastructure is None
    assert set(result.aspects) == set(Aspect)
    assert result.passed is (False not in result.aspects.values())
    assert result.tool_calls or result.termination == Termination.DEADLINE  # of a busy machine
    assert result.transcript[1]["content"] == case.prompt
    # The calls to the model are the organisation's that pays for them, the run is the case's own.
    assert execute(database, "SELECT DISTINCT org_id FROM model_call") == [("acme",)]
    ((org_id, termination),) = execute(database, "SELECT org_id, termination FROM agent_run")
    assert org_id.startswith("case-")
    assert termination == result.termination
