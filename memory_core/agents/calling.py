"""A run's tool calls: each within its time, in a transaction of its own, with what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from memory_core.agents.cancellation import Cancellation
from memory_core.agents.context import Context, RunMemories
from memory_core.agents.registry import LONGEST_ARGUMENTS, RegisteredTool, Result, said_no
from memory_core.agents.runs import CalledTool, RunEnded
from memory_core.db.workspace import Workspace
from memory_core.errors import MemoryCoreError
from memory_core.gateway.conversation import ToolCall
from memory_core.model import Block
from memory_core.run_records import CallOutcome, RunJournal, Termination, ToolCallRecord
from memory_core.workers import GivenUp, NotInTime, within

RETRIES = 2  # of one tool that answers with an error, within a run
MOST_CALLS = 16  # in one turn
TOOL_LIMIT_S = 10.0


@dataclass(kw_only=True)
class ToolCalls:
    """Carries out the calls of one run, and has each on record."""

    run_id: str
    tools: Mapping[str, RegisteredTool]  # those that the agent has
    workspace: Workspace
    memories: RunMemories
    agent: str  # agent:…, as what it writes is signed
    today: date
    journal: RunJournal
    cancellation: Cancellation
    monotonic: Callable[[], float]
    on_call: Callable[[CalledTool], None] | None
    tool_limit_s: float = TOOL_LIMIT_S
    made: list[CalledTool] = field(default_factory=list)
    _own: set[str] = field(default_factory=set)
    _failures: Counter[str] = field(default_factory=Counter)

    def require_usable(self, calls: Sequence[ToolCall], *, turn: int) -> None:
        """End the run where a call is invented or malformed, or they are too many: nothing of the turn is carried out then."""
        faults = [self._fault(call) for call in calls]
        too_many = len(calls) > MOST_CALLS
        if not too_many and not any(faults):
            return
        for call, fault in zip(calls[:MOST_CALLS], faults, strict=False):
            self._note(call, turn, fault or CallOutcome.NOT_CARRIED_OUT)
        if too_many:
            raise RunEnded(Termination.TOOL_FAILURE, f"{len(calls)} tools were called at once; at most {MOST_CALLS}")
        invented = CallOutcome.INVENTED in faults
        words = "a tool that is not offered was called" if invented else "a call was malformed"
        raise RunEnded(Termination.TOOL_FAILURE, words)

    def leave(self, calls: Sequence[ToolCall], *, turn: int) -> None:
        """Note that calls were asked for and not carried out, since the run ended first."""
        for call in calls:
            self._note(call, turn, CallOutcome.NOT_CARRIED_OUT)

    def carry_out(self, call: ToolCall, *, turn: int, limit_s: float) -> tuple[Result, Block | None]:
        """Carry out a call; return its result, and the block that follows it.

        Ends the run where the tool does not answer in time.
        """
        context = Context(
            workspace=self.workspace, memories=self.memories, agent=self.agent, today=self.today, own=self._own
        )
        began = self.monotonic()
        try:
            result = self._in_transaction(call, context, limit_s=min(self.tool_limit_s, limit_s))
        except (NotInTime, GivenUp) as error:
            self._note(call, turn, CallOutcome.TOO_SLOW, began=began, context=context)
            if isinstance(error, GivenUp):
                raise RunEnded(Termination.CANCELLED, "somebody gave up on it") from None
            ended = Termination.DEADLINE if limit_s <= self.tool_limit_s else Termination.TOOL_FAILURE
            raise RunEnded(ended, f"{call.name} did not answer in time") from None
        self._note(call, turn, result.outcome, began=began, context=context)
        if result.outcome is not CallOutcome.DONE:
            self._failures[call.name] += 1
        return result, context.block

    def require_not_failed_too_often(self, call: ToolCall) -> None:
        """End the run where the tool of a call has answered with an error once too often."""
        if self._failures[call.name] > RETRIES:
            raise RunEnded(Termination.TOOL_FAILURE, f"{call.name} failed {self._failures[call.name]} times")

    def _in_transaction(self, call: ToolCall, context: Context, *, limit_s: float) -> Result:
        """Call a tool in a transaction of the workspace, which only a call that is done changes."""
        tool = self.tools[call.name]
        result = said_no(CallOutcome.FAILED, "the workspace did not answer")
        try:
            with self.workspace.acting():
                try:
                    result = within(
                        max(0.0, limit_s),
                        lambda: tool.call(context, call.written),
                        given_up=lambda: self.cancellation.is_set,
                    )
                finally:
                    if not context.end():
                        self.workspace.abandon()
                if result.outcome is not CallOutcome.DONE:
                    raise _Undone
        except _Undone:
            pass
        except MemoryCoreError:  # the workspace's database is away; what was done in it is not there
            return said_no(CallOutcome.FAILED, "the workspace did not answer")
        return result

    def _fault(self, call: ToolCall) -> CallOutcome | None:
        """Return why a call cannot be carried out at all, or None."""
        if call.name not in self.tools:
            return CallOutcome.INVENTED
        if call.fault is not None or len(call.written) > LONGEST_ARGUMENTS:
            return CallOutcome.MALFORMED
        return None

    def _note(
        self,
        call: ToolCall,
        turn: int,
        outcome: CallOutcome,
        *,
        began: float | None = None,
        context: Context | None = None,
    ) -> None:
        called = CalledTool(
            turn=turn,
            name=call.name,
            written=call.written,
            outcome=outcome,
            took_ms=0.0 if began is None else (self.monotonic() - began) * 1000,
        )
        self.made.append(called)
        self.journal.called(
            self.run_id,
            ToolCallRecord(
                number=len(self.made),
                turn=turn,
                tool=call.name if outcome is not CallOutcome.INVENTED else None,
                arguments=call.written,
                outcome=outcome,
                took_ms=called.took_ms,
                memory_id=context.memory_id if context else None,
                recall_id=context.recall_id if context else None,
            ),
        )
        if self.on_call:
            self.on_call(called)


class _Undone(Exception):
    """A call came to nothing, and what it did on the way is undone."""
