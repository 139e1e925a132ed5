"""One run of an agent for an organisation: its memories, its model, and a sample workspace that is gone afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory_core.agents.cancellation import Cancellation
from memory_core.agents.loop import AgentRunner
from memory_core.agents.runs import AgentRun, CalledTool
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import specification
from memory_core.chatting import gateway_for
from memory_core.config import Settings
from memory_core.db import database, organisations
from memory_core.db.engine import transaction
from memory_core.db.workspace import workspace
from memory_core.prompt.documents import Document
from memory_core.run_journal import AgentJournal
from memory_core.store import MemoryStore


def run_agent(
    org_id: str,
    agent: str,
    prompt: str,
    *,
    settings: Settings,
    asked_by: str,
    run_id: str | None = None,
    documents: Sequence[Document] = (),
    opening_memories: bool = True,
    deadline_s: float | None = None,
    must_call: bool = False,
    cancellation: Cancellation | None = None,
    on_call: Callable[[CalledTool], None] | None = None,
) -> AgentRun:
    """Run one of the product's agents and return what came of it; see `AgentRunner.run`.

    Without opening memories none is shown to it at its beginning; a tool may recall some still. Raises
    `ModelNotConfigured` or `Refused` before anything is disclosed, or a `DatabaseError`.
    """
    spec = specification(agent)
    if not opening_memories:
        spec = replace(spec, memory=spec.memory.model_copy(update={"limit": 0}))
    gateway = gateway_for(org_id, settings=settings)
    engine = database.usable_engine(settings)
    with MemoryStore.open(org_id, settings=settings) as store, workspace(engine) as own:
        with transaction(engine) as connection:
            today = organisations.moment(connection).date()
        own.fill(sample_rows(today))
        return AgentRunner(store, gateway, AgentJournal(engine, org_id)).run(
            spec,
            prompt,
            workspace=own,
            today=today,
            asked_by=asked_by,
            run_id=run_id,
            documents=documents,
            deadline_s=deadline_s,
            must_call=must_call,
            cancellation=cancellation,
            on_call=on_call,
        )
