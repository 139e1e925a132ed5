"""Which embedder serves an organisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory_core.config import Settings
from memory_core.embedders import OLLAMA_MODEL, Embedder, Guarded, MiniLM, Ollama, answer_within, minilm, on_ollama
from memory_core.errors import EmbedderTimeout, Refused
from memory_core.identifiers import identifier_refusal

NONE_CONFIGURED = "no embedder is configured"
ANOTHER_MODEL = "the organisation's embeddings are by another model than the configured one"
STAYS_HERE = "the embedder is outside the private network and the organisation has not let observations leave"
PROBE_LIMIT_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Unserved:
    """No embedder serves the organisation, for this reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Who embeds: `serve` is given the pinned model's name, or None before the first embedding, where it may look around."""

    is_none: bool  # no embedder is configured at all
    serve: Callable[[str | None], Guarded | Unserved]


def configured(settings: Settings) -> Choice:
    """Return the choice that MEMORY_EMBEDDER makes."""
    setting = settings.memory_embedder
    if setting == "none":
        return given(None)

    def serve(pinned: str | None) -> Guarded | Unserved:
        if setting != "auto":
            return by_name(setting, settings) if pinned in (None, setting) else Unserved(reason=ANOTHER_MODEL)
        if pinned is not None:
            return by_name(pinned, settings)
        # A server outside is for somebody to name: nothing is sent there because it happens to answer.
        if not settings.embedder_is_outside(OLLAMA_MODEL) and _answers(Ollama(OLLAMA_MODEL, settings.ollama_host)):
            return _on_ollama(OLLAMA_MODEL, settings)
        return minilm() if MiniLM.is_installed() else Unserved(reason=NONE_CONFIGURED)

    return Choice(is_none=False, serve=serve)


def given(embedder: Embedder | Guarded | None) -> Choice:
    """Return the choice of a caller who brings an embedder, or none.

    Raises `Refused` for an embedder whose name is no identifier, since it is stored beside every vector.
    """
    if embedder is None:
        return Choice(is_none=True, serve=lambda pinned: Unserved(reason=NONE_CONFIGURED))
    refused = identifier_refusal(getattr(embedder, "name", None), field="embedder.name")
    if refused:
        raise Refused(refused)
    guarded = embedder if isinstance(embedder, Guarded) else Guarded(embedder)
    return Choice(
        is_none=False,
        serve=lambda pinned: guarded if pinned in (None, guarded.name) else Unserved(reason=ANOTHER_MODEL),
    )


def by_name(name: str, settings: Settings) -> Guarded | Unserved:
    """Return the embedder of a name as the database pins it: `minilm` or `ollama:<model>`."""
    if name == "minilm":
        return minilm() if MiniLM.is_installed() else Unserved(reason="MiniLM is not installed")
    if name.startswith("ollama:") and not identifier_refusal(name.removeprefix("ollama:"), field="model"):
        return _on_ollama(name.removeprefix("ollama:"), settings)
    return Unserved(reason=ANOTHER_MODEL)


def _on_ollama(model: str, settings: Settings) -> Guarded:
    return on_ollama(model, settings.ollama_host, is_outside=settings.embedder_is_outside(model))


def _answers(server: Ollama) -> bool:
    try:
        return answer_within(PROBE_LIMIT_S, server.has_model)
    except EmbedderTimeout:
        return False
    finally:
        server.close()
