"""What the loop asks of a chat model; an organisation's `Gateway` is one, and so is the scripted model of the suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from memory_core.config import Tier
from memory_core.gateway.conversation import Chunk, Message, Reply, Tool


class AnswerStream(Protocol):
    """An answer as it comes; raises a `GatewayError` while it is iterated over."""

    def __iter__(self) -> Iterator[Chunk]: ...

    @property
    def reply(self) -> Reply:
        """Return the whole answer, after its end."""

    def cancel(self) -> None:
        """Give up on it, from any thread."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class ChatModel(Protocol):
    """A chat model that is asked within a deadline."""

    def model_of(self, tier: Tier) -> str:
        """Return the name of the model that serves a tier."""

    def stream(
        self,
        messages: Sequence[Message],
        *,
        run_id: str,
        tier: Tier | str,
        tools: Sequence[Tool],
        must_call: bool,
        max_output_tokens: int | None,
        deadline_s: float | None,
        temperature: float | None,
        seed: int | None,
        may_send: Callable[[], bool] | None,
    ) -> AnswerStream:
        """Ask; the answer, or a `GatewayError`, comes within the deadline.

        `may_send` is asked right before each sending; where it says no, that is `CallCancelled`.
        """
