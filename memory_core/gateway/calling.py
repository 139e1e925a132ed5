"""One call to a chat model, from its admission to its record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from tenacity import RetryCallState, Retrying, retry_if_exception_type

from memory_core.calls import Begun, CallEnd, CallStart, Journal
from memory_core.config import ReasoningEffort
from memory_core.errors import (
    CallCancelled,
    GatewayError,
    InvalidRequest,
    MemoryCoreError,
    ModelBusy,
    NotNow,
    RateLimited,
    Unauthorized,
)
from memory_core.gateway.answer import Answer
from memory_core.gateway.conversation import Chunk, ChunkKind, Ending, Reply, Request
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.prompt_size import does_not_fit, malformed, was_cut
from memory_core.gateway.queueing import Slot
from memory_core.gateway.reading import LOOK_UP_S, Arrived, Reading
from memory_core.gateway.servers import ModelServer
from memory_core.prompt.tokens import estimated_tokens

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 4
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
CEILING_LOOK_UP_S = 0.5
# With these the server has read nothing.
TURNED_AWAY = frozenset({InvalidRequest.code, Unauthorized.code, RateLimited.code, ModelBusy.code})
INTERNAL = "gateway.internal"  # an exception that is none of ours ended the call
LONGEST_DRAIN_S = 120.0


class Call:
    """One call; `chunks` makes it, `reply` is what came of it."""

    def __init__(
        self,
        start: CallStart,
        request: Request,
        *,
        deadline: Deadline,
        server: ModelServer,
        journal: Journal,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        self.reply: Reply | None = None
        self._start = start
        self._request = request
        self._deadline = deadline
        self._server = server
        self._journal = journal
        self._may_send = may_send
        self._answer = Answer({tool.name for tool in request.tools})
        self._reading: Reading | None = None
        self._attempts = 0
        self._was_sent = True
        self._waited_ms: float | None = None  # for tokens and for a turn
        self._is_known_prefix: bool | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Make the call and yield its answer as it comes; whatever becomes of it is on record.

        Raises a `GatewayError`, or a `DatabaseError` where it cannot be recorded and so is not made.
        """
        has_begun = False
        error_code: str | None = None
        try:
            self._deadline.check()
            self._admit()
            self._begin()
            has_begun = True
            yield from self._answered()
        except GatewayError as error:
            error_code = error.code
            self._was_sent = not isinstance(error, NotNow) or error.was_sent
            raise
        except (GeneratorExit, KeyboardInterrupt, SystemExit):  # its caller stopped listening, or is being stopped
            error_code = CallCancelled.code
            raise
        except MemoryCoreError:  # of the database, before anything was sent: there is no record to be had
            error_code = None if not has_begun else INTERNAL
            raise
        except BaseException:
            error_code = INTERNAL
            raise
        finally:
            end = self._end_on_record(error_code, was_answered=has_begun and error_code is None)
            if has_begun:
                self._journal.end(self._start.call_id, end)
            elif error_code is not None:
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
        asked_ms = self._deadline.elapsed_ms()
        while True:
            wait = self._journal.begin(self._start, tokens_per_minute=ceiling, elapsed_s=self._deadline.elapsed_s())
            if isinstance(wait, Begun):
                self._request = replace(
                    self._request,
                    output_cap=min(self._request.output_cap, wait.granted_tokens - self._start.estimated_tokens),
                )
                return
            self._waited_ms = self._deadline.elapsed_ms() - asked_ms
            remaining_s = self._deadline.remaining_s()
            if remaining_s <= CEILING_LOOK_UP_S or (wait.seconds > remaining_s and not wait.may_be_sooner):
                self._deadline.check()
                raise RateLimited(
                    f"about {self._start.least_tokens:,} tokens would pass the organisation's {ceiling:,} a minute "
                    f"(MODEL_TOKENS_PER_MINUTE); they fit in {wait.seconds:.0f} s",
                    retry_after_s=wait.seconds,
                )
            pause_s = min(wait.seconds, CEILING_LOOK_UP_S) if wait.may_be_sooner else wait.seconds
            self._deadline.wait(max(pause_s, LOOK_UP_S))
            self._waited_ms = self._deadline.elapsed_ms() - asked_ms

    # Sent

    def _answered(self) -> Iterator[Chunk]:
        asked_ms = self._deadline.elapsed_ms()
        try:
            slot = self._server.queue(self._request.model).acquire(self._deadline, what=self._request.model)
        finally:
            self._waited_ms = (self._waited_ms or 0.0) + self._deadline.elapsed_ms() - asked_ms
        try:
            for at_ms, item in self._items(slot):
                yield from self._answer.take(item, at_ms=at_ms)
        finally:
            if self._reading is None:
                slot.release()
            elif self._answer.ending is None:
                # The server may go on with an answer that nobody waits for, and is busy until that is over.
                self._reading.leave(drain_s=self._drain_s())
                self._reading.when_over(slot.release)

    def _items(self, slot: Slot) -> Iterator[Arrived]:
        if self._server.inspector is not None:
            self._is_known_prefix = self._server.sent.mostly_known(self._request, whose=self._journal)
            self._server.inspector.look_up_digests()
        retrying = Retrying(
            retry=retry_if_exception_type(NotNow),
            stop=self._is_in_vain,
            wait=_pause_s,
            sleep=self._deadline.wait,
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                self._deadline.check()
                if self._may_send is not None and not self._may_send():
                    raise CallCancelled("what it would send may not be sent any more")
                self._attempts += 1
                self._reading = reading = Reading(
                    self._server.client,
                    self._request,
                    self._deadline,
                    drain_s=LONGEST_DRAIN_S if self._server.is_ollama else 0.0,
                )
                items = iter(reading)
                first = next(one for one in items if isinstance(one[1], Ending) or not one[1].is_empty)
        # Handed on from here, so from here there is no other attempt; the turn is over with the answer, whoever listens.
        reading.when_over(slot.release)
        yield from chain([first], items)

    def _is_in_vain(self, state: RetryCallState) -> bool:
        return state.attempt_number >= MOST_ATTEMPTS or state.upcoming_sleep >= self._deadline.remaining_s()

    def _drain_s(self) -> float:
        """Return how long the server may go on; a hosted one stops when the connection is closed."""
        if not self._server.is_ollama:
            return 0.0
        done, began_ms = self._answer.piece_count, self._answer.first_chunk_ms
        if not done or began_ms is None:
            return min(self._deadline.seconds, LONGEST_DRAIN_S)
        per_piece_s = (self._deadline.elapsed_ms() - began_ms) / 1000 / done
        return min(1.0 + 1.5 * per_piece_s * max(0, self._request.output_cap - done), LONGEST_DRAIN_S)

    # What became of it

    def _end_on_record(self, error_code: str | None, *, was_answered: bool) -> CallEnd:
        try:
            return self._end(error_code, was_answered=was_answered)
        except Exception:  # whatever an answer is made of, its call has an end
            log.exception("an answer could not be measured")
            return CallEnd(
                total_ms=self._deadline.elapsed_ms(),
                attempts=self._attempts,
                counted_tokens=self._start.estimated_tokens,
                error_code=error_code or INTERNAL,
            )

    def _end(self, error_code: str | None, *, was_answered: bool) -> CallEnd:
        answer, ending = self._answer, self._answer.ending
        calls = answer.tool_calls() if was_answered else ()
        total_ms = self._deadline.elapsed_ms() if answer.ended_ms is None else answer.ended_ms
        return CallEnd(
            total_ms=total_ms,
            attempts=self._attempts,
            counted_tokens=self._counted_tokens(error_code),
            digest=self._server.inspector.digest(self._request.model) if self._server.inspector else None,
            queue_ms=self._waited_ms,
            load_ms=ending.load_ms if ending else None,
            prompt_ms=ending.prompt_ms if ending else None,
            generation_ms=ending.generation_ms if ending else None,
            first_chunk_ms=answer.first_chunk_ms,
            first_answer_ms=answer.first_answer_ms,
            prompt_tokens=ending.prompt_tokens if ending else None,
            output_tokens=ending.output_tokens if ending else None,
            cached=self._was_cached(),
            cold=answer.was_cold(),
            finish_reason=answer.finish_reason(calls) if was_answered else None,
            error_code=error_code,
            tool_calls=len(calls),
            tool_calls_in_text=sum(call.in_text for call in calls),
            tool_call_faults=sum(call.fault is not None for call in calls),
            prompt_was_cut=was_cut(ending.prompt_tokens if ending else None, estimated=self._start.estimated_tokens),
        )

    def _counted_tokens(self, error_code: str | None) -> int:
        ending = self._answer.ending
        if ending is not None and ending.prompt_tokens is not None and ending.output_tokens is not None:
            return ending.prompt_tokens + ending.output_tokens
        if not self._attempts or not self._was_sent or error_code in TURNED_AWAY:
            return 0
        said = [self._answer.said(kind) for kind in ChunkKind]
        return self._start.estimated_tokens + max(self._answer.piece_count, sum(map(estimated_tokens, said)))

    def _was_cached(self) -> bool | None:
        ending = self._answer.ending
        if ending is None:
            return None
        if self._server.is_ollama:  # which does not say, but loads an empty cache
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


def _pause_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked_s = error.retry_after_s if isinstance(error, NotNow) else None
    return max(asked_s or 0.0, min(FIRST_PAUSE_S * 2.0 ** (state.attempt_number - 1), LONGEST_PAUSE_S))
