"""The models that a chat-completions server lists."""

from __future__ import annotations

import httpx

from memory_core.config import Settings
from memory_core.errors import GatewayError
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.faults import Server, refused_with, unreachable
from memory_core.gateway.inspection import LIMIT_S
from memory_core.gateway.transport import Transport, within


def listed_models(settings: Settings) -> frozenset[str] | None:
    """Return the names of the models that the configured server lists; None where it lists none.

    Raises a `GatewayError` where it cannot be reached or does not accept the key.
    """
    server = Server.of(settings)
    try:
        with (
            within(Deadline(LIMIT_S)),
            httpx.Client(transport=Transport(key=server.key), trust_env=False, follow_redirects=False) as client,
        ):
            answer = client.get(f"{server.address}/models")
            if answer.status_code in (404, 405, 501):
                return None
            if not answer.is_success:
                raise refused_with(answer.status_code, answer.text, server=server, model=None, retry_after_s=None)
            listed = answer.json()
            models = listed.get("data") if isinstance(listed, dict) else None
            if not isinstance(models, list):
                return None
            return frozenset(str(model["id"]) for model in models if isinstance(model, dict) and "id" in model) or None
    except GatewayError:
        raise
    except Exception as error:
        raise unreachable(error, server=server) from None
