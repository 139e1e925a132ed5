"""The loop that runs an agent: asked, its tools called, until it answers or one of its limits is reached."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from typing import TypeVar

from memory_core.agents.calling import TOOL_LIMIT_S, ToolCalls
from memory_core.agents.cancellation import Cancellation
from memory_core.agents.chat_model import AnswerStream, ChatModel
from memory_core.agents.memories import StoredMemories
from memory_core.agents.registry import RegisteredTool, registry
from memory_core.agents.runs import AgentRun, CalledTool, RunEnded
from memory_core.agents.specification import Specification
from memory_core.calls import FinishReason
from memory_core.characters import has_surrogate, is_blank
from memory_core.db.workspace import Workspace
from memory_core.errors import (
    CallCancelled,
    DatabaseError,
    DeadlineExceeded,
    GatewayError,
    MemoryCoreError,
    Refusal,
    Refused,
)
from memory_core.gateway.conversation import Message, Reply, Role
from memory_core.gateway.gateway import require_askable
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id
from memory_core.leaving import Leaving
from memory_core.prompt.documents import Document, document_block
from memory_core.prompt.fence import DrawBoundary, random_boundary
from memory_core.rules.request import MAX_QUERY
from memory_core.run_records import RunEnd, RunJournal, RunStart, Termination
from memory_core.store import MemoryStore
from memory_core.workers import GivenUp, NotInTime, within

Found = TypeVar("Found")

DOCUMENT_BUDGET = 1000  # tokens of all documents together
MOST_DOCUMENTS = 20
LONGEST_DOCUMENTS = 100_000  # characters together; many more than fit
GAVE_UP = "somebody gave up on it"


class AgentRunner:
    """Runs agents for one organisation, each run on record. Thread-safe, as long as each run has a workspace of its own.

    `may_leave` says which memories the model may be sent, as the store does unless it is given.
    """

    def __init__(
        self,
        store: MemoryStore,
        model: ChatModel,
        journal: RunJournal,
        *,
        tools: Mapping[str, RegisteredTool] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        draw_boundary: DrawBoundary = random_boundary,
        may_leave: Callable[[], Leaving] | None = None,
        tool_limit_s: float = TOOL_LIMIT_S,
    ) -> None:
        self._store = store
        self._model = model
        self._journal = journal
        self._tools = registry() if tools is None else tools
        self._monotonic = monotonic
        self._draw_boundary = draw_boundary
        self._may_leave = may_leave or store.may_leave
        self._tool_limit_s = tool_limit_s

    def run(
        self,
        specification: Specification,
        prompt: str,
        *,
        workspace: Workspace,
        today: date,
        asked_by: str,
        run_id: str | None = None,
        documents: Sequence[Document] = (),
        deadline_s: float | None = None,
        max_output_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        must_call: bool = False,
        cancellation: Cancellation | None = None,
        on_call: Callable[[CalledTool], None] | None = None,
    ) -> AgentRun:
        """Run an agent to its end, which comes within its deadline, and return what came of it.

        `must_call` has the model call a tool in its first turn, where its server can see to that. `deadline_s` is the
        specification's unless given. Raises `Refused` for a prompt that cannot be asked or a run id that was used before,
        or a `DatabaseError` where the run cannot be recorded; what a model, a tool or a limit does is the run's termination.
        What interrupts the run from outside, a `DatabaseError` and a fault in the program are raised as well: such a run is on
        record as `Cancelled`, with that beside it, as long as the database takes it.
        """
        run_id = f"run-{new_id().hex[-12:]}" if run_id is None else run_id
        seconds = specification.deadline_s if deadline_s is None else deadline_s
        _require_askable(prompt, asked_by=asked_by, run_id=run_id, documents=documents)
        require_askable(
            run_id=run_id,
            tier=specification.tier,
            cap=1 if max_output_tokens is None else max_output_tokens,
            seconds=seconds,
            temperature=temperature,
            seed=seed,
        )
        use = specification.memory
        memories = StoredMemories(self._store, run_id=run_id, use=use, may_leave=self._may_leave)
        start = RunStart(
            run_id=run_id,
            agent=specification.name,
            specification_digest=specification.digest,
            model=self._model.model_of(specification.tier),
            tier=specification.tier,
            asked_by=asked_by,
            deadline_s=seconds,
            turn_limit=specification.turn_limit,
            documents=tuple(document.source for document in documents),
            observations_left_out=memories.observations_left_out,
        )
        cancellation = cancellation or Cancellation()
        tools = {name: self._tools[name] for name in specification.tools}
        fenced = document_block(documents, token_budget=DOCUMENT_BUDGET, draw_boundary=self._draw_boundary)
        left_out = fenced.block.omitted if fenced.block else len(documents)
        if left_out:
            reason = f"{left_out} of {len(documents)} do not fit in {DOCUMENT_BUDGET:,} tokens; shorten them, or leave some out"
            raise Refused(Refusal(rule="documents_fit", field="documents", reason=reason))
        documents_block = fenced.block.text if fenced.block else None
        began = self._monotonic()
        self._journal.begin(start)
        run = _Run(
            start,
            specification,
            ask=partial(
                self._model.stream,
                run_id=run_id,
                tier=specification.tier,
                tools=[tool.offered() for tool in tools.values()],
                max_output_tokens=max_output_tokens,
                temperature=temperature,
                seed=seed,
            ),
            memories=memories,
            calls=ToolCalls(
                run_id=run_id,
                tools=tools,
                workspace=workspace,
                memories=memories,
                agent=specification.author,
                today=today,
                journal=self._journal,
                cancellation=cancellation,
                monotonic=self._monotonic,
                on_call=on_call,
                tool_limit_s=self._tool_limit_s,
            ),
            remaining_s=lambda: start.deadline_s - (self._monotonic() - began),
            cancellation=cancellation,
        )
        try:
            run.go_on(prompt, documents=documents_block, today=today, must_call=must_call)
        except RunEnded as ended:
            self._journal.end(run_id, run.end(ended))
            return run.result(ended, took_ms=(self._monotonic() - began) * 1000)
        except BaseException as error:
            with suppress(MemoryCoreError):
                self._journal.end(run_id, run.end(RunEnded(Termination.CANCELLED, _what_ended_it(error))))
            raise
        raise AssertionError("a run goes on until it has ended")


class _Run:
    """One run under way."""

    def __init__(
        self,
        start: RunStart,
        specification: Specification,
        *,
        ask: Callable[..., AnswerStream],
        memories: StoredMemories,
        calls: ToolCalls,
        remaining_s: Callable[[], float],
        cancellation: Cancellation,
    ) -> None:
        self._start = start
        self._specification = specification
        self._ask = ask
        self._memories = memories
        self._calls = calls
        self._remaining_s = remaining_s
        self._cancellation = cancellation
        self._messages: list[Message] = []
        self._turns = 0
        self._answer: Reply | None = None

    def go_on(self, prompt: str, *, documents: str | None, today: date, must_call: bool) -> None:
        """Run until `RunEnded` is raised."""
        self._open(prompt, documents, today)
        while self._turns < self._specification.turn_limit:
            self._require_going_on()
            reply = self._asked(must_call=must_call and self._turns == 0)
            if reply.tool_calls:
                self._carry_out(reply)
            elif not is_blank(reply.content):  # nothing at all is no answer: it is asked again
                self._require_nothing_withdrawn()  # an answer out of what was erased meanwhile is none
                self._messages.append(reply.message())
                self._answer = reply
                raise RunEnded(Termination.COMPLETED)
        raise RunEnded(Termination.TURN_LIMIT, f"no answer after {self._turns} turns")

    def _open(self, prompt: str, documents: str | None, today: date) -> None:
        day = f"Today is {today:%A} {today.day} {today:%B %Y}."
        self._messages = [Message(role=Role.SYSTEM, content=f"{self._specification.prompt}\n\n{day}")]
        kinds = self._in_time(self._memories.kinds) if self._specification.memory.limit else ()
        if kinds:
            block = self._in_time(lambda: self._memories.recall(prompt, kinds=kinds)).block
            if block is not None:
                self._messages.append(Message.memories(block))
        if documents is not None:
            self._messages.append(Message(role=Role.USER, content=documents))
        self._messages.append(Message(role=Role.USER, content=prompt))

    def _asked(self, *, must_call: bool) -> Reply:
        self._turns += 1
        try:
            stream = self._ask(
                self._messages,
                must_call=must_call,
                deadline_s=max(0.001, self._remaining_s()),
                may_send=lambda: not self._memories.withdrawn(),
            )
            with stream, self._cancellation.tells(stream.cancel):
                for _ in stream:
                    pass
                return stream.reply
        except DeadlineExceeded:
            raise RunEnded(Termination.DEADLINE, "the model did not answer in time") from None
        except CallCancelled:
            if not self._cancellation.is_set:
                self._require_nothing_withdrawn()
            raise RunEnded(Termination.CANCELLED, GAVE_UP) from None
        except GatewayError as error:
            raise RunEnded(error.code, in_plain_words(type(error))) from None
        except Refused:  # by the gateway, of what is not let leave any more since it was looked at here
            self._require_nothing_withdrawn()
            raise

    def _carry_out(self, reply: Reply) -> None:
        calls = reply.tool_calls
        self._messages.append(reply.message())
        self._calls.require_usable(calls, turn=self._turns)
        blocks: list[Message] = []
        for place, call in enumerate(calls):
            left = calls[place:]
            try:
                self._require_going_on()
                left = calls[place + 1 :]
                result, block = self._calls.carry_out(call, turn=self._turns, limit_s=self._remaining_s())
                self._messages.append(Message(role=Role.TOOL, content=result.text, answers=call))
                self._calls.require_not_failed_too_often(call)
            except RunEnded:
                self._calls.leave(left, turn=self._turns)
                raise
            if block is not None:
                blocks.append(Message.memories(block))
        self._messages += blocks  # a block is a message of its own, and results stand beside their calls

    def _require_going_on(self) -> None:
        if self._cancellation.is_set:
            raise RunEnded(Termination.CANCELLED, GAVE_UP)
        if self._remaining_s() <= 0:
            raise RunEnded(Termination.DEADLINE, "its time was over")
        self._require_nothing_withdrawn()

    def _require_nothing_withdrawn(self) -> None:
        withdrawn = self._in_time(self._memories.withdrawn)
        if withdrawn:
            word = "memory" if withdrawn == 1 else "memories"
            words = f"{withdrawn} {word} that it was shown or had written may not be shown any more"
            raise RunEnded(Termination.CANCELLED, words)

    def _in_time(self, ask: Callable[[], Found]) -> Found:
        try:
            return within(max(0.0, self._remaining_s()), ask, given_up=lambda: self._cancellation.is_set)
        except NotInTime:
            raise RunEnded(Termination.DEADLINE, "the store did not answer in time") from None
        except GivenUp:
            raise RunEnded(Termination.CANCELLED, GAVE_UP) from None

    def end(self, ended: RunEnded) -> RunEnd:
        """Return what its record says of its end."""
        return RunEnd(
            termination=ended.termination,
            detail=ended.detail,
            turns=self._turns,
            answer_was_cut=self._answer_was_cut,
        )

    def result(self, ended: RunEnded, *, took_ms: float) -> AgentRun:
        """Return what came of it."""
        return AgentRun(
            run_id=self._start.run_id,
            agent=self._start.agent,
            model=self._start.model,
            termination=str(ended.termination),
            detail=ended.detail,
            answer=self._answer.content if self._answer else None,
            answer_was_cut=self._answer_was_cut,
            turns=self._turns,
            calls=tuple(self._calls.made),
            recalls=tuple(self._memories.recalls),
            memories_read=self._memories.read,
            memories_written=tuple(self._memories.written),
            took_ms=took_ms,
            messages=tuple(self._messages),
        )

    @property
    def _answer_was_cut(self) -> bool:
        cut = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
        return self._answer is not None and self._answer.finish_reason in cut


def _what_ended_it(error: BaseException) -> str | None:
    if isinstance(error, DatabaseError):
        return "the database did not serve"
    if isinstance(error, MemoryCoreError):
        return in_plain_words(type(error))
    if isinstance(error, Exception):
        return f"a fault in the program: {type(error).__name__}"
    return "it was interrupted"  # whoever runs it is being stopped


def in_plain_words(kind: type[MemoryCoreError]) -> str | None:
    """Return what a kind of failure is, in our own words: its docstring's, as a record may hold them."""
    return re.sub(r"[^A-Za-z0-9_,;:.' -]+", " ", kind.__doc__ or "").partition(".")[0].strip()[:200] or None


def _require_askable(prompt: object, *, asked_by: object, run_id: object, documents: Sequence[Document]) -> None:
    refused = (
        identifier_refusal(run_id, field="run_id")
        or identifier_refusal(asked_by, field="asked_by")
        or _prompt_refusal(prompt)
    )
    if refused is None and len(documents) > MOST_DOCUMENTS:
        reason = f"are {len(documents)}; at most {MOST_DOCUMENTS}"
        refused = Refusal(rule="document_count", field="documents", reason=reason)
    length = sum(len(document.text) for document in documents)
    if refused is None and length > LONGEST_DOCUMENTS:
        reason = f"have {length:,} characters together; at most {LONGEST_DOCUMENTS:,}"
        refused = Refusal(rule="document_length", field="documents", reason=reason)
    if refused is not None:
        raise Refused(refused)


def _prompt_refusal(prompt: object) -> Refusal | None:
    if not isinstance(prompt, str) or is_blank(prompt):
        return Refusal(rule="prompt_is_not_blank", field="prompt", reason="is blank; say what is to be done")
    if len(prompt) > MAX_QUERY:
        reason = f"has {len(prompt):,} characters; at most {MAX_QUERY:,}"
        return Refusal(rule="prompt_length", field="prompt", reason=reason)
    if "\x00" in prompt or has_surrogate(prompt):
        reason = "has a NUL or half a surrogate pair in it, which cannot be sent"
        return Refusal(rule="prompt_is_text", field="prompt", reason=reason)
    return None
