"""The gateway: a chat model, for one organisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from memory_core.calls import CallStart, Journal
from memory_core.config import Settings, Tier
from memory_core.errors import CallCancelled, ModelNotConfigured, Refusal, Refused
from memory_core.gateway.calling import Call
from memory_core.gateway.conversation import Chunk, Message, Reply, Request, Tool
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.prompt_size import output_cap, prompt_tokens
from memory_core.gateway.servers import server_for
from memory_core.identifiers import identifier_refusal
from memory_core.identity import new_id

SHORTEST_DEADLINE_S, LONGEST_DEADLINE_S = 0.001, 86_400.0
USEFUL_ANSWER_TOKENS = 1000  # with room for less, a call waits for its minute


class Stream:
    """An answer as it comes: iterate over it, then `reply` has it whole.

    Leaving it before the end (`close`, or the end of a with-block) is a cancelled call. `cancel` may be called from another
    thread; whoever iterates then gets `CallCancelled`.
    """

    def __init__(self, call: Call, deadline: Deadline) -> None:
        self._call = call
        self._deadline = deadline
        self._chunks = call.chunks()

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        return next(self._chunks)

    @property
    def reply(self) -> Reply:
        """Return the whole answer; raises `CallCancelled` before its end."""
        if self._call.reply is None:
            raise CallCancelled("the answer was not read to its end")
        return self._call.reply

    def cancel(self) -> None:
        """Give up on the answer."""
        self._deadline.cancel()

    def close(self) -> None:
        """Stop listening; from another thread it cancels."""
        try:
            self._chunks.close()  # type: ignore[attr-defined]
        except ValueError:  # somebody is waiting for its next piece
            self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Gateway:
    """Asks the configured chat model for one organisation, and leaves a record of every call. Thread-safe.

    A model outside the private network is sent no block with an observation in it, unless `observations_may_leave` says
    at that moment that the organisation lets them.
    """

    def __init__(
        self, settings: Settings, journal: Journal, *, observations_may_leave: Callable[[], bool] = lambda: False
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._observations_may_leave = observations_may_leave

    def model_of(self, tier: Tier) -> str:
        """Return the name of the model that serves a tier."""
        return self._settings.model_of(tier)

    def chat(
        self,
        messages: Sequence[Message],
        *,
        run_id: str,
        tier: Tier | str = Tier.FAST,
        tools: Sequence[Tool] = (),
        must_call: bool = False,
        max_output_tokens: int | None = None,
        deadline_s: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> Reply:
        """Ask, and return the whole answer; see `stream`."""
        stream = self.stream(
            messages,
            run_id=run_id,
            tier=tier,
            tools=tools,
            must_call=must_call,
            max_output_tokens=max_output_tokens,
            deadline_s=deadline_s,
            temperature=temperature,
            seed=seed,
        )
        with stream:
            for _ in stream:
                pass
            return stream.reply

    def stream(
        self,
        messages: Sequence[Message],
        *,
        run_id: str,
        tier: Tier | str = Tier.FAST,
        tools: Sequence[Tool] = (),
        must_call: bool = False,
        max_output_tokens: int | None = None,
        deadline_s: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        may_send: Callable[[], bool] | None = None,
    ) -> Stream:
        """Ask, and return the answer as it comes; nothing is sent before it is iterated over.

        `max_output_tokens` and `deadline_s` are MODEL_MAX_OUTPUT_TOKENS and MODEL_DEADLINE_S unless given; the deadline
        counts from here and includes all waiting. `must_call` has the model call a tool, where its server can see to that.
        `may_send` is asked right before each sending, after all waiting; where it says no, the call is cancelled.
        Raises `ModelNotConfigured` or `Refused` at once, also for observations that may not leave; iterating raises a
        `GatewayError`, or a `DatabaseError` where the call cannot be recorded, and so is not made.
        """
        settings = self._settings
        if not settings.has_model:
            raise ModelNotConfigured
        messages, tools = tuple(messages), tuple(tools)
        if not all(isinstance(one, Message) for one in messages) or not all(isinstance(one, Tool) for one in tools):
            raise Refused(
                Refusal(rule="value_has_its_type", field="messages", reason="must be Message, and tools Tool")
            )
        tier, cap, seconds = require_askable(
            run_id=run_id,
            tier=tier,
            cap=settings.model_max_output_tokens if max_output_tokens is None else max_output_tokens,
            seconds=settings.model_deadline_s if deadline_s is None else deadline_s,
            temperature=temperature,
            seed=seed,
        )
        self._require_leave(messages)
        server = server_for(settings)  # before the clock starts: the first use loads its client
        deadline = Deadline(seconds)
        estimated = prompt_tokens(messages, tools)
        request = Request(
            model=settings.model_of(tier),
            messages=messages,
            tools=tools,
            must_call=must_call,
            output_cap=output_cap(
                cap,
                prompt_tokens=estimated,
                context_tokens=settings.context_tokens,
                tokens_per_minute=settings.tokens_per_minute,
            ),
            temperature=temperature,
            seed=seed,
        )
        start = CallStart(
            call_id=new_id(),
            run_id=run_id,
            tier=tier,
            model=request.model,
            provider=settings.model_provider,
            estimated_tokens=estimated,
            memory_tokens=sum(message.memory_tokens for message in messages),
            reserved_tokens=estimated + request.output_cap,
            least_tokens=estimated + min(request.output_cap, USEFUL_ANSWER_TOKENS),
            deadline_s=seconds,
        )
        call = Call(start, request, deadline=deadline, server=server, journal=self._journal, may_send=may_send)
        return Stream(call, deadline)

    def _require_leave(self, messages: tuple[Message, ...]) -> None:
        stay = self._settings.model_is_outside and any(one.observations for one in messages)
        if stay and not self._observations_may_leave():
            reason = (
                "have a block with observations, the model is outside the private network, and the organisation has not let "
                "them leave; recall other kinds, or have an admin let them leave in Settings"
            )
            raise Refused(Refusal(rule="observations_stay", field="messages", reason=reason))


def require_askable(
    *, run_id: str, tier: Tier | str, cap: int, seconds: float, temperature: float | None, seed: int | None
) -> tuple[Tier, int, float]:
    """Return tier, output cap and deadline as they are asked for; raises `Refused` for what no call can be asked with."""
    refused = identifier_refusal(run_id, field="run_id")
    if refused is None and tier not in list(Tier):
        refused = Refusal(rule="tier_is_known", field="tier", reason=f"must be one of {', '.join(Tier)}")
    if refused is None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
        refused = Refusal(rule="limit_is_positive", field="max_output_tokens", reason="must be a whole number from 1")
    if refused is None and not (_is_number(seconds) and SHORTEST_DEADLINE_S <= seconds <= LONGEST_DEADLINE_S):
        refused = Refusal(rule="limit_is_positive", field="deadline_s", reason="must be seconds from 0.001 to a day")
    if refused is None and temperature is not None and not (_is_number(temperature) and 0 <= temperature <= 100):
        refused = Refusal(rule="temperature_range", field="temperature", reason="must be a number from 0")
    if (
        refused is None
        and seed is not None
        and (isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) >= 2**31)
    ):
        refused = Refusal(rule="seed_range", field="seed", reason="must be a whole number of 32 bits")
    if refused:
        raise Refused(refused)
    return Tier(tier), cap, float(seconds)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
