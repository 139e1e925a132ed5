"""An organisation's way to the chat model, each call on record in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memory_core.config import Settings
from memory_core.config import settings as read_settings
from memory_core.db import database
from memory_core.errors import GatewayError, ModelNotConfigured, Refused
from memory_core.gateway.gateway import Gateway
from memory_core.gateway.inspection import LoadedModel, with_tag
from memory_core.gateway.servers import server_for
from memory_core.identifiers import identifier_refusal
from memory_core.journal import CallJournal, journal_for
from memory_core.leaving import what_may_leave


def gateway_for(
    org_id: str,
    *,
    settings: Settings | None = None,
    clock: Callable[[], datetime] | None = None,
    observations_may_leave: bool = False,
) -> Gateway:
    """Return an organisation's gateway.

    Whether observations may be sent to a model outside is asked of the organisation at each call, unless they may anyway,
    as `observations_may_leave` says of invented people. Raises `ModelNotConfigured`, `Refused` for an organisation that is
    no identifier, `SettingsError`, or a `DatabaseError`.
    """
    refused = identifier_refusal(org_id, field="org_id")
    if refused:
        raise Refused(refused)
    chosen = settings or read_settings()
    if not chosen.has_model:
        raise ModelNotConfigured
    engine = database.usable_engine(chosen)
    return Gateway(
        chosen,
        CallJournal(engine, org_id, clock=clock) if clock else journal_for(engine, org_id),
        observations_may_leave=lambda: (
            observations_may_leave or not what_may_leave(engine, org_id, chosen).observations_stay
        ),
    )


def models_in_memory(settings: Settings) -> list[LoadedModel]:
    """Return the models that the configured Ollama has in memory; raises a `GatewayError` where it does not say."""
    inspector = server_for(settings).inspector
    return inspector.loaded() if inspector else []


def model_digest(settings: Settings, model: str) -> str | None:
    """Return the digest of the weights that a name stands for now; None where its server does not say."""
    inspector = server_for(settings).inspector
    try:
        return inspector.digests().get(with_tag(model)) if inspector else None
    except GatewayError:
        return None
