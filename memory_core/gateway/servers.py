"""The configured model server, as this process speaks to it."""

from __future__ import annotations

import atexit
import queue
import threading
from dataclasses import dataclass

from memory_core.config import Provider, Settings
from memory_core.errors import NotNow
from memory_core.gateway.client import Client, client_for
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.inspection import Inspector, ModelFacts, with_tag
from memory_core.gateway.prefixes import SentPrefixes
from memory_core.gateway.queueing import ModelQueue, queue_for
from memory_core.gateway.reading import LOOK_UP_S
from memory_core.workers import in_background


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """The configured server, as this process speaks to it."""

    settings: Settings
    client: Client
    inspector: Inspector | None  # only an Ollama can be asked what it has
    sent: SentPrefixes

    @property
    def is_ollama(self) -> bool:
        """Say whether it is spoken to in Ollama's own way."""
        return self.settings.model_provider is Provider.OLLAMA

    def queue(self, model: str) -> ModelQueue:
        """Return the queue before one of its models, the same however its name is spelled."""
        name = with_tag(model) if self.is_ollama else model
        return queue_for(self.settings.model_provider, self.settings.model_address, name)

    def facts(self, model: str, deadline: Deadline) -> ModelFacts | None:
        """Return what a model can do; None where the server does not say, and will have to refuse by itself.

        Raises `InvalidRequest` where the model is not there, and as the deadline does.
        """
        inspector = self.inspector
        if inspector is None:
            return None
        answers: queue.SimpleQueue[ModelFacts | Exception] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(inspector.facts(model, deadline=deadline))
            except Exception as error:
                answers.put(error)

        in_background(ask)  # a name that is being looked up knows no deadline
        while True:
            try:
                answer = answers.get(timeout=LOOK_UP_S)
            except queue.Empty:
                deadline.check()
                continue
            if isinstance(answer, NotNow):
                deadline.check()
                return None
            if isinstance(answer, Exception):
                raise answer
            return answer


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
