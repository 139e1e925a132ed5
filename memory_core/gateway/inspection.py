"""What an Ollama server says of itself, with the models that it has."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
import ollama

from memory_core.config import Settings
from memory_core.errors import GatewayError
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.faults import Server, refused_with, unreachable
from memory_core.gateway.native import ollama_client
from memory_core.gateway.transport import Transport, within
from memory_core.identifiers import identifier_refusal
from memory_core.workers import in_background

LIMIT_S = 5.0
MOST_LOADED = 50
VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")
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
        with self._asking(None):
            answer = self._plain.get(f"{self._server.address}/api/version").raise_for_status()
            version = answer.json()["version"]
            if not isinstance(version, str) or not VERSION.fullmatch(version):
                raise ValueError("the version is none")
            return version

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
        """Return the digest of the weights that a name stood for when that was asked last, or None; asks nobody."""
        with self._remembering:
            return self._digests[1].get(with_tag(model)) if self._digests else None

    def look_up_digests(self) -> None:
        """Ask for every model's digest in a thread of its own, unless that was done less than a minute ago."""
        with self._remembering:
            if self._digests is not None and self._clock() - self._digests[0] < REMEMBERED_S:
                return
            # What is known stays until there is an answer; nobody else asks meanwhile.
            self._digests = (self._clock(), self._digests[1] if self._digests else {})
        in_background(self._remember_digests)

    def _remember_digests(self) -> None:
        with suppress(GatewayError):
            found = self.digests()
            with self._remembering:
                self._digests = (self._clock(), found)

    def digests(self) -> dict[str, str]:
        """Return every model that the server has, by name with its tag, each with its digest."""
        with self._asking(None):
            return {
                str(model.model): str(model.digest)
                for model in self._client.list().models
                if model.model and identifier_refusal(model.digest, field="digest") is None
            }

    def loaded(self) -> list[LoadedModel]:
        """Return the models in memory."""
        with self._asking(None):
            return [
                LoadedModel(
                    name=str(model.model or model.name or "?").encode("utf-8", "replace").decode()[:128],
                    size_bytes=_whole(model.size) or 0,
                    vram_bytes=_whole(model.size_vram) or 0,
                    context_tokens=_whole(model.context_length),
                    expires_at=_in_utc(model.expires_at),
                )
                for model in self._client.ps().models[:MOST_LOADED]
            ]

    def close(self) -> None:
        """Close its connections."""
        self._client.close()  # type: ignore[no-untyped-call]
        self._plain.close()

    @contextmanager
    def _asking(self, model: str | None, deadline: Deadline | None = None) -> Iterator[None]:
        try:
            with within(deadline or Deadline(LIMIT_S)):
                yield
        except GatewayError:
            raise
        except httpx.HTTPStatusError as error:
            answer = error.response
            raise refused_with(
                answer.status_code, answer.text, server=self._server, model=model, retry_after_s=None
            ) from None
        except ollama.ResponseError as error:
            raise refused_with(
                error.status_code if error.status_code > 0 else 500,
                str(error.error),
                server=self._server,
                model=model,
                retry_after_s=None,
            ) from None
        except Exception as error:
            raise unreachable(error, server=self._server) from None


def _whole(value: int | None) -> int | None:
    return min(max(0, int(value)), 2**62) if value is not None else None


def _in_utc(moment: datetime | None) -> datetime | None:
    try:
        return moment.astimezone(UTC) if moment else None
    except (OverflowError, ValueError):  # at the ends of the calendar
        return None


def with_tag(model: str) -> str:
    """Return a model's name as Ollama lists it: with the tag that is meant where none is given."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"
