"""An agent's run as a test sets it up: a scripted model, the sample workspace, a real store and a real journal."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from conftest import Database
from fakes import Clock
from rows import execute

from memory_core import Kind, MemoryStore
from memory_core.agents.context import CallIsOver, Context
from memory_core.agents.loop import AgentRunner
from memory_core.agents.registry import RegisteredTool, registry, tool_of
from memory_core.agents.runs import AgentRun
from memory_core.agents.sample import sample_rows
from memory_core.agents.specification import MemoryUse, Specification
from memory_core.config import Tier
from memory_core.db import agent_runs
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.db.workspace import TABLES, Row, Workspace, workspace
from memory_core.errors import DatabaseError
from memory_core.evals.scripted import ScriptedCall, ScriptedModel, ScriptedStream, Step
from memory_core.gateway.conversation import Message
from memory_core.run_journal import AgentJournal
from memory_core.run_records import CallOutcome, RunFacts, ToolCallFacts

TODAY = date(2026, 11, 2)  # a Monday, and the day of the clock that the tests stand still at
PROMPT = "Who waits for an answer?"
SLACK_S = 1.0  # a run ends within a second after its deadline, also on a busy machine
NEVER_S = 60.0  # hangs for longer than anything here lasts
TOOLS = ("get_application", "list_notes", "add_note", "recall_memories", "remember")


def agent(*tools: str, **changes: Any) -> Specification:
    """Return the screening agent with these tools."""
    given: dict[str, Any] = {
        "name": "screening",
        "title": "Screening",
        "tier": Tier.FAST,
        "deadline_s": 20.0,
        "turn_limit": 6,
        "memory": MemoryUse(limit=5, kinds=tuple(Kind)),
        "tools": tools or TOOLS,
        "prompt": "You are the screening agent.",
        "digest": bytes(range(32)),
    }
    return Specification(**{**given, **changes})


def says(text: str = "Nobody does.", **more: Any) -> Step:
    """Have the model answer."""
    return Step(say=text, **more)


def calls(tool: str, arguments: str | None = None, **given: Any) -> Step:
    """Have the model call one tool."""
    return Step(calls=(a_call(tool, arguments, **given),))


def a_call(tool: str, arguments: str | None = None, **given: Any) -> ScriptedCall:
    """Return a tool call, its arguments by name or exactly as they are written."""
    return ScriptedCall(tool=tool, arguments=given if arguments is None else arguments)


GETS = calls("get_application", application_id="smp-a1")


class Watched(ScriptedModel):
    """A scripted model that keeps how it was asked, and has something happen whenever it is: told how often it was before."""

    def __init__(self, steps: Sequence[Step], *, meanwhile: Callable[[int], object] = lambda _: None) -> None:
        super().__init__(steps)
        self.how: list[dict[str, Any]] = []
        self._meanwhile = meanwhile

    def stream(self, messages: Sequence[Message], **how: Any) -> ScriptedStream:
        self.how.append(how)
        answer = super().stream(messages, **how)
        self._meanwhile(len(self.how) - 1)
        return answer


def with_tools(*functions: Callable[..., object]) -> dict[str, RegisteredTool]:
    """Return the product's tools, and these functions as more of them."""
    own = [tool_of(function, changes=True) for function in functions]
    return {**registry(), **{one.name: one for one in own}}


@dataclass
class Hanging:
    """A tool that changes a row, then hangs until it is let go, then tries once more; `late` is what came of that."""

    late: list[str] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    then: tuple[Callable[[Context], object], ...] = (
        lambda context: context.change("candidate", "smp-c1", name="Late"),
        lambda context: context.add("draft", recipient="user:maria", subject="Late", body="Late"),
        lambda context: context.rows("candidate"),
    )

    def tool(self) -> Callable[..., object]:
        def hang(context: Context) -> str:
            """Hang."""
            context.change("candidate", "smp-c1", name="Changed")
            context.add("draft", recipient="user:maria", subject="Added", body="Added")
            self.reached.set()
            self.go.wait(NEVER_S)
            try:
                for one in self.then:
                    self._late(lambda one=one: one(context))
            finally:
                self.ended.set()
            return "done"

        return hang

    def _late(self, one: Callable[[], object]) -> None:
        try:
            one()
        except CallIsOver:
            self.late.append("refused")
        except Exception as error:  # whatever else comes of it fails the test that looks at it
            self.late.append(type(error).__name__)
        else:
            self.late.append("done")

    def let_go(self) -> list[str]:
        """Let the tool go on to its end, and return what came of what it tried."""
        self.go.set()
        assert self.ended.wait(10), "the tool never came to its end"
        return self.late


@dataclass(kw_only=True)
class Bench:
    """One organisation with one workspace, in which agents are run."""

    database: Database
    store: MemoryStore
    workspace: Workspace
    clock: Clock

    @property
    def org_id(self) -> str:
        return self.store.org_id

    @property
    def journal(self) -> AgentJournal:
        return AgentJournal(engine_for(self.database.application), self.org_id, clock=self.clock)

    def run(self, *steps: Step, model: ScriptedModel | None = None, **options: Any) -> AgentRun:
        """Run an agent by a script to its end; what is not given is as good as any."""
        specification = options.pop("specification", None) or agent(*options.pop("offered", ()))
        prompt = options.pop("prompt", PROMPT)
        built = {name: options.pop(name) for name in ("tools", "monotonic", "draw_boundary") if name in options}
        runner = AgentRunner(self.store, model or ScriptedModel(steps), options.pop("journal", self.journal), **built)
        given = {"workspace": self.workspace, "today": TODAY, "asked_by": "user:maria", **options}
        return runner.run(specification, prompt, **given)

    def facts(self, run_id: str) -> RunFacts:
        """Return what is recorded of a run."""
        with organisation_transaction(engine_for(self.database.application), self.org_id) as connection:
            found = agent_runs.facts(connection, self.org_id, run_id)
        assert found is not None
        return found

    def calls(self, run_id: str) -> list[ToolCallFacts]:
        """Return what is recorded of a run's tool calls."""
        with organisation_transaction(engine_for(self.database.application), self.org_id) as connection:
            return agent_runs.calls(connection, self.org_id, run_id)

    def outcomes(self, run_id: str) -> list[CallOutcome]:
        """Return what is recorded to have become of a run's tool calls."""
        return [call.outcome for call in self.calls(run_id)]

    def count(self, table: str) -> int:
        """Return how many rows of a table are this organisation's."""
        ((number,),) = execute(self.database, f"SELECT count(*) FROM {table} WHERE org_id = %s", (self.org_id,))
        return int(number)

    def state(self) -> dict[str, dict[str, Row]]:
        """Return every row of the workspace."""
        return self.workspace.state()


@contextmanager
def workspaces(database: Database) -> Iterator[Callable[[], Workspace]]:
    """Yield a function that returns a workspace as it is at the beginning: the last one, where nothing came of it."""
    with ExitStack() as kept:
        last: list[Workspace] = []

        def filled() -> Workspace:
            if not (last and _is_untouched(last[0])):
                kept.close()
                last[:] = [kept.enter_context(workspace(engine_for(database.application)))]
                last[0].fill(sample_rows(TODAY))
            return last[0]

        yield filled


def _is_untouched(own: Workspace) -> bool:
    try:
        return changed(sample(), own.state()) == {}
    except DatabaseError:
        return False


def sample() -> dict[str, dict[str, Row]]:
    """Return every row of a workspace as it is at the beginning."""
    return {table: {row["id"]: row for row in rows} for table, rows in sample_rows(TODAY).items()}


def inside(own: Workspace) -> dict[str, dict[str, Row]]:
    """Return every row of a workspace as it is within its open transaction."""
    return {name: {row["id"]: row for row in own.rows(name)} for name in TABLES}


def changed(before: dict[str, dict[str, Row]], after: dict[str, dict[str, Row]]) -> dict[str, dict[str, Any]]:
    """Return the rows that are new, by their identifiers, and of those that are not the columns that changed."""
    found: dict[str, dict[str, Any]] = {}
    for table, rows in after.items():
        assert before[table].keys() <= rows.keys(), f"a row of {table} is gone"
        for identity, row in rows.items():
            old = before[table].get(identity, {})
            if different := {name: value for name, value in row.items() if name not in old or old[name] != value}:
                found[identity] = different
    return found


def results(run: AgentRun) -> list[Any]:
    """Return the results that a run's model was told, as it reads them."""
    return [json.loads(message.content) for message in run.messages if message.answers is not None]
