"""What an Ollama server says of itself, with the models that it has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import httpx
import ollama

from memory_core.config import Settings
from memory_core.errors import GatewayError
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.faults import Server, refused_with, unreachable
from memory_core.gateway.native import ollama_client
from memory_core.gateway.transport import Transport, within
from memory_core.identifiers import identifier_refusal

LIMIT_S = 5.0
DIGEST_LIMIT_S = 1.0
REMEMBERED_S = 60.0  # a model that is pulled anew under the same name shows after a minute


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What a model can do."""

    name: str
    calls_tools: bool
    thinks: bool
    chats: bool
    context_tokens: int | None  # that it was trained for


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model in memory; `expires_at` is None where the server does not say."""

    name: str
    size_bytes: int
    vram_bytes: int
    context_tokens: int | None
    expires_at: datetime | None


class Inspector:
    """Asks the configured Ollama what it is and has; remembers models for a minute. Thread-safe.

    Its methods raise a `GatewayError` where there is no answer within five seconds.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = Server.of(settings)
        self._client = ollama_client(settings)
        self._plain = httpx.Client(transport=Transport(), trust_env=False, follow_redirects=False)
        self._clock = clock
        self._facts: dict[str, tuple[float, ModelFacts]] = {}
        self._digests: tuple[float, dict[str, str]] | None = None
        self._remembering = threading.Lock()

    def version(self) -> str:
        """Return the server's version."""
        with self._asking("any"):
            answer = self._plain.get(f"{self._server.address}/api/version").raise_for_status()
            version = answer.json()["version"]
            if not isinstance(version, str):
                raise ValueError("the version is no text")
            return version[:64]

    def facts(self, model: str, *, deadline: Deadline | None = None) -> ModelFacts:
        """Return what a model can do; raises `InvalidRequest` where it is not there. A call's deadline ends it earlier."""
        with self._remembering:
            known = self._facts.get(model)
        if known is not None and self._clock() - known[0] < REMEMBERED_S:
            return known[1]
        with self._asking(model, deadline.part(LIMIT_S) if deadline else None):
            shown = self._client.show(model)
            can = set(shown.capabilities or ())
            facts = ModelFacts(
                name=model,
                calls_tools="tools" in can,
                thinks="thinking" in can,
                chats="completion" in can,
                context_tokens=next(
                    (
                        int(value)
                        for name, value in (shown.modelinfo or {}).items()
                        if name.endswith(".context_length") and isinstance(value, int | float)
                    ),
                    None,
                ),
            )
        with self._remembering:
            self._facts[model] = (self._clock(), facts)
        return facts

    def digest(self, model: str) -> str | None:
        """Return the digest of the weights that a name stands for, or None where that is not known; never raises.

        Asks at most once a minute, and waits for no more than a second.
        """
        with self._remembering:
            known = self._digests
        if known is None or self._clock() - known[0] >= REMEMBERED_S:
            try:
                known = (self._clock(), self.digests(limit_s=DIGEST_LIMIT_S))
            except GatewayError:
                known = (self._clock(), {})
            with self._remembering:
                self._digests = known
        return known[1].get(with_tag(model))

    def digests(self, *, limit_s: float = LIMIT_S) -> dict[str, str]:
        """Return every model that the server has, by name with its tag, each with its digest."""
        with self._asking("any", Deadline(limit_s)):
            return {
                str(model.model): str(model.digest)
                for model in self._client.list().models
                if model.model and identifier_refusal(model.digest, field="digest") is None
            }

    def loaded(self) -> list[LoadedModel]:
        """Return the models in memory."""
        with self._asking("any"):
            return [
                LoadedModel(
                    name=str(model.model or model.name or "?"),
                    size_bytes=int(model.size or 0),
                    vram_bytes=int(model.size_vram or 0),
                    context_tokens=model.context_length,
                    expires_at=model.expires_at,
                )
                for model in self._client.ps().models
            ]

    def close(self) -> None:
        """Close its connections."""
        self._client.close()  # type: ignore[no-untyped-call]
        self._plain.close()

    @contextmanager
    def _asking(self, model: str, deadline: Deadline | None = None) -> Iterator[None]:
        try:
            with within(deadline or Deadline(LIMIT_S)):
                yield
        except GatewayError:
            raise
        except httpx.HTTPStatusError as error:
            answer = error.response
            raise refused_with(
                answer.status_code, answer.text, server=self._server, model=model, retry_after_s=None
            ) from error
        except ollama.ResponseError as error:
            raise refused_with(
                error.status_code if error.status_code > 0 else 500,
                str(error.error),
                server=self._server,
                model=model,
                retry_after_s=None,
            ) from error
        except Exception as error:
            raise unreachable(error, server=self._server) from error


def with_tag(model: str) -> str:
    """Return a model's name as Ollama lists it: with the tag that is meant where none is given."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"
