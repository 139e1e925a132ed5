"""A model fetched by the Ollama server, with its progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import ollama

from memory_core.config import Provider, Settings
from memory_core.errors import GatewayError, InvalidRequest
from memory_core.gateway.faults import Server, cut_short, refused_with, said_by, unreachable
from memory_core.gateway.native import ollama_client
from memory_core.identifiers import identifier_refusal

SILENCE_S = 600.0  # checking the digest of a large model on a slow disk says nothing for minutes

Progress = Callable[[str, int | None, int | None], None]


def pull(settings: Settings, model: str, *, progress: Progress = lambda status, done, total: None) -> None:
    """Have the configured Ollama fetch a model.

    `progress` is told what is being done, and how many bytes of how many, where that is known. Raises a `GatewayError`; what
    was fetched by then is kept by the server, so that pulling again goes on from there.
    """
    refused = identifier_refusal(model, field="MODEL")
    if refused:
        raise InvalidRequest(str(refused))
    if settings.model_provider is not Provider.OLLAMA:
        raise InvalidRequest("MODEL_PROVIDER is openai, and only an Ollama pulls models")
    server = Server.of(settings)
    client = ollama_client(settings, silence_s=SILENCE_S)
    status = None
    try:
        with closing(client.pull(model, stream=True)) as answer:  # type: ignore[type-var]
            for part in answer:
                status = part.status
                progress(status or "", _bytes(part.completed), _bytes(part.total))
    except ollama.ResponseError as error:
        said = str(error.error)
        if ("does not exist" in said or "not found" in said) and "page not found" not in said:
            raise InvalidRequest(f"there is no model {model} to pull: {said_by(said)}") from None
        # An error in a pull that began with 200 has no status.
        status_code = error.status_code if error.status_code > 0 else 500
        raise refused_with(status_code, said, server=server, model=model, retry_after_s=None) from None
    except GatewayError:
        raise
    except Exception as error:
        raise unreachable(error, server=server) from None
    finally:
        client.close()  # type: ignore[no-untyped-call]
    if status != "success":
        raise cut_short(server)


def _bytes(count: int | None) -> int | None:
    return count if count is not None and 0 <= count < 2**62 else None
