"""One call to a chat model, from its admission to its record."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from tenacity import RetryCallState, Retrying, retry_if_exception_type

from memory_core.calls import CallEnd, CallStart, Journal
from memory_core.config import Provider, ReasoningEffort, Settings
from memory_core.errors import (
    CallCancelled,
    DeadlineExceeded,
    GatewayError,
    InvalidRequest,
    ModelUnavailable,
    NotNow,
    RateLimited,
)
from memory_core.gateway.answer import Answer
from memory_core.gateway.client import Client, client_for
from memory_core.gateway.conversation import Chunk, ChunkKind, Ending, Piece, Reply, Request
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.inspection import Inspector, ModelFacts
from memory_core.gateway.prefixes import SentPrefixes
from memory_core.gateway.prompt_size import does_not_fit, malformed, was_cut
from memory_core.gateway.queueing import ModelQueue, queue_for
from memory_core.gateway.reading import LOOK_UP_S, Reading

MOST_ATTEMPTS = 4
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
CEILING_LOOK_UP_S = 0.5
LONGEST_DRAIN_S = 120.0


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """The configured server, as this process speaks to it."""

    settings: Settings
    client: Client
    inspector: Inspector | None  # only an Ollama can be asked what it has
    sent: SentPrefixes

    def queue(self, model: str) -> ModelQueue:
        """Return the queue before one of its models."""
        return queue_for(self.settings.model_provider, self.settings.model_address, model)

    def facts(self, model: str, deadline: Deadline) -> ModelFacts | None:
        """Return what a model can do; None where the server does not say, and will have to refuse by itself.

        Raises `InvalidRequest` where the model is not there, and as the deadline does.
        """
        try:
            return self.inspector.facts(model, deadline=deadline) if self.inspector else None
        except NotNow:
            deadline.check()
            return None


_servers: dict[Settings, ModelServer] = {}
_connecting = threading.Lock()


def server_for(settings: Settings) -> ModelServer:
    """Return this process's connection to the configured server, the same for equal settings; nothing connects yet."""
    with _connecting:
        server = _servers.get(settings)
        if server is None:
            is_ollama = settings.model_provider is Provider.OLLAMA
            server = _servers[settings] = ModelServer(
                settings=settings,
                client=client_for(settings),
                inspector=Inspector(settings) if is_ollama else None,
                sent=SentPrefixes(),
            )
        return server


@atexit.register
def close_servers() -> None:
    """Close every connection to a model server; a later use connects anew."""
    with _connecting:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.client.close()
        if server.inspector is not None:
            server.inspector.close()


class Call:
    """One call; `chunks` makes it, `reply` is what came of it."""

    def __init__(
        self, start: CallStart, request: Request, *, deadline: Deadline, server: ModelServer, journal: Journal
    ) -> None:
        self.reply: Reply | None = None
        self._start = start
        self._request = request
        self._deadline = deadline
        self._server = server
        self._journal = journal
        self._answer = Answer(deadline, {tool.name for tool in request.tools})
        self._reading: Reading | None = None
        self._attempts = 0
        self._queue_ms: float | None = None
        self._is_known_prefix: bool | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Make the call and yield its answer as it comes; whatever becomes of it is on record.

        Raises a `GatewayError`, or a `DatabaseError` where it cannot be recorded and so is not made.
        """
        has_begun = False
        failure: GatewayError | None = None
        try:
            self._admit()
            self._begin()
            has_begun = True
            yield from self._answered()
        except GatewayError as error:
            failure = error
            raise
        except GeneratorExit:
            failure = CallCancelled("the caller stopped listening")
            raise
        except BaseException as error:
            failure = ModelUnavailable(f"the call was ended by {type(error).__name__}")
            raise
        finally:
            end = self._end(failure)
            if has_begun:
                self._journal.end(self._start.call_id, end)
            elif failure is not None:
                self._journal.refuse(self._start, end)
        self.reply = self._whole(end)

    # Before it is sent

    def _admit(self) -> None:
        request, settings = self._request, self._server.settings
        tokens, ceiling = self._start.estimated_tokens, settings.tokens_per_minute
        wrong = malformed(request.messages, request.tools) or does_not_fit(
            tokens, context_tokens=settings.context_tokens
        )
        if wrong is None and ceiling is not None and tokens >= ceiling:
            wrong = f"the prompt is about {tokens:,} tokens, and MODEL_TOKENS_PER_MINUTE allows {ceiling:,}; shorten it"
        if wrong is not None:
            raise InvalidRequest(wrong)
        effort = settings.model_reasoning_effort
        wants_thinking = effort not in (None, ReasoningEffort.NONE)
        if not (request.tools or wants_thinking):
            return
        facts = self._server.facts(request.model, self._deadline)
        if facts is not None and request.tools and not facts.calls_tools:
            raise InvalidRequest(f"{request.model} cannot call tools, says its server; name a model that can")
        if facts is not None and wants_thinking and not facts.thinks:
            raise InvalidRequest(f"MODEL_REASONING_EFFORT is {effort}, and {request.model} cannot think; unset it")

    def _begin(self) -> None:
        ceiling = self._server.settings.tokens_per_minute
        while wait := self._journal.begin(self._start, tokens_per_minute=ceiling):
            remaining_s = self._deadline.remaining_s()
            if remaining_s <= CEILING_LOOK_UP_S or (wait.seconds > remaining_s and not wait.may_be_sooner):
                self._deadline.check()
                raise RateLimited(
                    f"about {self._start.reserved_tokens:,} tokens would pass the organisation's {ceiling:,} a minute "
                    f"(MODEL_TOKENS_PER_MINUTE); they fit in {wait.seconds:.0f} s",
                    retry_after_s=wait.seconds,
                )
            pause_s = min(wait.seconds, CEILING_LOOK_UP_S) if wait.may_be_sooner else wait.seconds
            self._deadline.wait(max(pause_s, LOOK_UP_S))

    # Sent

    def _answered(self) -> Iterator[Chunk]:
        asked_ms = self._deadline.elapsed_ms()
        slot = self._server.queue(self._request.model).acquire(self._deadline, what=self._request.model)
        self._queue_ms = self._deadline.elapsed_ms() - asked_ms
        try:
            for item in self._items():
                yield from self._answer.take(item)
        finally:
            if self._reading is None or self._answer.ending is not None:
                slot.release()
            else:  # the server may go on with an answer that nobody waits for, and is busy until that is over
                self._reading.leave(drain_s=self._drain_s())
                self._reading.when_over(slot.release)

    def _items(self) -> Iterator[Piece | Ending]:
        self._is_known_prefix = self._server.sent.mostly_known(self._request)
        retrying = Retrying(
            retry=retry_if_exception_type(NotNow),
            stop=self._is_in_vain,
            wait=_pause_s,
            sleep=self._deadline.wait,
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                self._attempts += 1
                self._reading = Reading(self._server.client, self._request, self._deadline)
                items = iter(self._reading)
                first = next(item for item in items if says_something(item))
        # Handed on from here, so from here there is no other attempt.
        yield from chain([first], items)

    def _is_in_vain(self, state: RetryCallState) -> bool:
        return state.attempt_number >= MOST_ATTEMPTS or state.upcoming_sleep >= self._deadline.remaining_s()

    def _drain_s(self) -> float:
        """Return how long the server may go on; a hosted one stops when the connection is closed."""
        if self._server.settings.model_provider is not Provider.OLLAMA:
            return 0.0
        done, began_ms = self._answer.piece_count, self._answer.first_chunk_ms
        if not done or began_ms is None:
            return min(self._deadline.seconds, LONGEST_DRAIN_S)
        per_piece_s = (self._deadline.elapsed_ms() - began_ms) / 1000 / done
        return min(1.0 + 1.5 * per_piece_s * max(0, self._request.output_cap - done), LONGEST_DRAIN_S)

    # What became of it

    def _end(self, failure: GatewayError | None) -> CallEnd:
        answer, ending = self._answer, self._answer.ending
        calls = answer.tool_calls() if failure is None else ()
        total_ms = self._deadline.elapsed_ms()
        return CallEnd(
            total_ms=total_ms,
            attempts=self._attempts,
            counted_tokens=self._counted_tokens(failure),
            digest=self._digest(failure),
            queue_ms=self._queue_ms,
            load_ms=ending.load_ms if ending else None,
            prompt_ms=ending.prompt_ms if ending else None,
            generation_ms=ending.generation_ms if ending else None,
            first_chunk_ms=answer.first_chunk_ms,
            first_answer_ms=answer.first_answer_ms,
            prompt_tokens=ending.prompt_tokens if ending else None,
            output_tokens=ending.output_tokens if ending else None,
            cached=self._was_cached(),
            cold=answer.was_cold(),
            finish_reason=answer.finish_reason(calls) if failure is None else None,
            error_code=None if failure is None else failure.code,
            tool_calls=len(calls),
            tool_calls_in_text=sum(call.in_text for call in calls),
            tool_call_faults=sum(call.fault is not None for call in calls),
            prompt_was_cut=was_cut(ending.prompt_tokens if ending else None, estimated=self._start.estimated_tokens),
        )

    def _counted_tokens(self, failure: GatewayError | None) -> int:
        ending = self._answer.ending
        if ending is not None and ending.prompt_tokens is not None and ending.output_tokens is not None:
            return ending.prompt_tokens + ending.output_tokens
        was_taken = failure is None or self._answer.piece_count or isinstance(failure, DeadlineExceeded | CallCancelled)
        if not self._attempts or not was_taken:
            return 0  # never sent, or turned away
        return self._start.estimated_tokens + self._answer.piece_count

    def _digest(self, failure: GatewayError | None) -> str | None:
        inspector = self._server.inspector
        return inspector.digest(self._request.model) if inspector and failure is None else None

    def _was_cached(self) -> bool | None:
        ending = self._answer.ending
        if ending is None:
            return None
        if self._server.settings.model_provider is Provider.OLLAMA:  # which does not say, but loads an empty cache
            return False if self._answer.was_cold() else self._is_known_prefix
        if ending.cached_tokens is None or not ending.prompt_tokens:
            return None
        return 2 * ending.cached_tokens > ending.prompt_tokens

    def _whole(self, end: CallEnd) -> Reply:
        calls = self._answer.tool_calls()
        return Reply(
            call_id=self._start.call_id,
            model=self._request.model,
            content="" if any(call.in_text for call in calls) else self._answer.said(ChunkKind.ANSWER),
            thinking=self._answer.said(ChunkKind.THINKING),
            tool_calls=calls,
            finish_reason=self._answer.finish_reason(calls),
            record=end,
        )


def says_something(item: Piece | Ending) -> bool:
    """Say whether an item is more than the opening of an answer."""
    return isinstance(item, Ending) or bool(item.content or item.thinking or item.tool_calls)


def _pause_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked_s = error.retry_after_s if isinstance(error, NotNow) else None
    return max(asked_s or 0.0, min(FIRST_PAUSE_S * 2.0 ** (state.attempt_number - 1), LONGEST_PAUSE_S))
