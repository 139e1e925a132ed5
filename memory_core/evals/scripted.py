"""A chat model that says what a script says, behind the gateway's interface: for tests of the loop and of the suites."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from memory_core.calls import CallEnd, FinishReason
from memory_core.config import Tier
from memory_core.errors import CallCancelled, DeadlineExceeded, GatewayError
from memory_core.gateway.answer import Answer
from memory_core.gateway.conversation import Chunk, ChunkKind, Ending, Message, Piece, Reply, Tool, ToolCallPiece
from memory_core.identity import new_id


@dataclass(frozen=True, kw_only=True)
class ScriptedCall:
    """A tool call; arguments are written as JSON, or exactly as they are where they are a string."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def written(self) -> str:
        """Return the arguments as they go over the wire."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True, kw_only=True)
class Step:
    """What the model does in one turn."""

    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    fails: GatewayError | None = None
    hangs_s: float = 0.0  # before it does so; a deadline or a cancellation comes between
    finish_reason: FinishReason = FinishReason.STOP


class ScriptedStream:
    """An answer out of a script."""

    def __init__(self, step: Step, *, model: str, offered: Sequence[str], deadline_s: float | None) -> None:
        self._step = step
        self._model = model
        self._offered = offered
        self._deadline_s = deadline_s
        self._gave_up = threading.Event()
        self._reply: Reply | None = None

    def __iter__(self) -> Iterator[Chunk]:
        began = time.monotonic()
        limit_s = self._step.hangs_s if self._deadline_s is None else min(self._step.hangs_s, self._deadline_s)
        if self._gave_up.wait(limit_s):
            raise CallCancelled("the caller gave up")
        if limit_s < self._step.hangs_s:
            raise DeadlineExceeded(f"no answer within {self._deadline_s:g} s")
        if self._step.fails is not None:
            raise self._step.fails
        answer = Answer(self._offered)
        calls = tuple(ToolCallPiece(name=call.tool, arguments=call.written) for call in self._step.calls)
        for item in (
            Piece(content=self._step.say, tool_calls=calls),
            Ending(finish_reason=self._step.finish_reason),
        ):
            yield from answer.take(item, at_ms=(time.monotonic() - began) * 1000)
        made = answer.tool_calls()
        self._reply = Reply(
            call_id=new_id(),
            model=self._model,
            content=answer.said(ChunkKind.ANSWER),
            thinking=answer.said(ChunkKind.THINKING),
            tool_calls=made,
            finish_reason=answer.finish_reason(made),
            record=CallEnd(total_ms=(time.monotonic() - began) * 1000, attempts=1, counted_tokens=0),
        )

    @property
    def reply(self) -> Reply:
        """Return the whole answer; raises `CallCancelled` before its end."""
        if self._reply is None:
            raise CallCancelled("the answer was not read to its end")
        return self._reply

    def cancel(self) -> None:
        """Give up on the answer."""
        self._gave_up.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()


class ScriptedModel:
    """Takes one step of its script each time it is asked, the last one again and again."""

    def __init__(self, steps: Sequence[Step], *, name: str = "scripted") -> None:
        self._steps = tuple(steps)
        self._name = name
        self.asked: list[tuple[Message, ...]] = []  # what it was asked, for those who want to look

    def model_of(self, tier: Tier) -> str:
        """Return its name, whatever the tier."""
        return self._name

    def stream(
        self,
        messages: Sequence[Message],
        *,
        run_id: str,
        tier: Tier | str,
        tools: Sequence[Tool] = (),
        must_call: bool = False,
        max_output_tokens: int | None = None,
        deadline_s: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        may_send: Callable[[], bool] | None = None,
    ) -> ScriptedStream:
        """Take the next step."""
        step = self._steps[min(len(self.asked), len(self._steps) - 1)] if self._steps else Step()
        self.asked.append(tuple(messages))
        if may_send is not None and not may_send():
            step = Step(fails=CallCancelled("what it would send may not be sent any more"))
        return ScriptedStream(step, model=self._name, offered=[tool.name for tool in tools], deadline_s=deadline_s)
