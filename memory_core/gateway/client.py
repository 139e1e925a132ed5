"""What a client of a model server is: a request in, pieces out, the end last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from memory_core.config import Provider, Settings
from memory_core.gateway.conversation import Ending, Piece, Request


class Client(Protocol):
    """Speaks to one kind of server. Thread-safe."""

    def pieces(self, request: Request) -> Iterator[Piece | Ending]:
        """Send a request and yield its answer as it comes, the `Ending` last.

        Raises a `GatewayError`; an answer that stops without its end raises `ModelUnavailable`.
        """

    def close(self) -> None:
        """Close its connections."""


def client_for(settings: Settings) -> Client:
    """Return the client that MODEL_PROVIDER names."""
    # Here, and not on top: the openai package takes half a second to import, and only hosted models need it.
    if settings.model_provider is Provider.OPENAI:
        from memory_core.gateway.chat_completions import ChatCompletions  # noqa: PLC0415

        return ChatCompletions(settings)
    from memory_core.gateway.native import Native  # noqa: PLC0415

    return Native(settings)
