"""Whether an agent's run would work, and what to type if not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from urllib.parse import urlsplit

import psutil

from memory_core.config import DEFAULT_MODEL, Provider, ReasoningEffort, Settings, Tier
from memory_core.db import calls, database, organisations
from memory_core.db.engine import organisation_transaction, transaction
from memory_core.db.workspace import may_make_workspaces
from memory_core.errors import GatewayError, InvalidRequest, MemoryCoreError, Unauthorized
from memory_core.gateway.inspection import Inspector, LoadedModel, ModelFacts, with_tag
from memory_core.gateway.listing import listed_models
from memory_core.health import Check, checks
from memory_core.leaving import what_may_leave
from memory_core.symptoms import NEWEST, symptoms

LEAST_CONTEXT, LEAST_DEADLINE_S = 512, 1.0
LITTLE_MEMORY = 0.1  # of this machine's, free
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def diagnosis(settings: Settings, org_id: str) -> list[Check]:
    """Check everything that a run of an organisation needs, and what its newest calls say; never raises an own error."""
    found = checks(settings, org_id)
    served = all_served(found)
    leaves = _leaves(settings, org_id) if served and settings.has_model else ()
    room = _room_for_runs(settings) if served else ()
    return [*found, *room, *model_checks(settings), *leaves, *(_newest_calls(settings, org_id) if served else ())]


def all_served(found: list[Check]) -> bool:
    """Say whether nothing was found that stops a run."""
    return all(check.ok or not check.stops_runs for check in found)


def _room_for_runs(settings: Settings) -> Iterator[Check]:
    """Check that a run can make its workspace, which is temporary tables."""
    engine = database.usable_engine(settings)
    with transaction(engine) as connection:
        may = may_make_workspaces(connection)
    if not may:
        yield Check(
            part="Temporary tables",
            ok=False,
            found=f"{engine.url.username} may make none, and the workspace of an agent's run is such",
            mend=f"GRANT TEMPORARY ON DATABASE {engine.url.database} TO {engine.url.username};    # as its owner",
        )


def model_checks(settings: Settings) -> Iterator[Check]:
    """Check the chat model: configured, reachable, there, able, in memory."""
    if not settings.has_model:
        yield Check(
            part="Chat model",
            ok=False,
            found="none is configured: MODEL_API_KEY is empty; everything that needs no model works",
            mend="export MODEL_API_KEY=ollama    # any non-empty text serves Ollama, a hosted model takes its key",
        )
    if settings.model_provider is Provider.OPENAI:
        if settings.has_model:
            yield from _hosted(settings)
        return
    with closing(Inspector(settings)) as inspector:
        try:
            version = inspector.version()
        except GatewayError as error:
            yield Check(part="Model server", ok=False, found=str(error), mend="ollama serve    # or set MODEL_BASE_URL")
            return
        yield from _limits(settings)
        yield Check(part="Model server", ok=True, found=f"Ollama {version} at {settings.model_address}")
        for model, tiers in _tiers(settings).items():
            yield from _model(settings, inspector, model, tiers)
        yield _context(settings)
        yield from _memory(settings, inspector)


def _leaves(settings: Settings, org_id: str) -> Iterator[Check]:
    """Say whether what the model is sent leaves the private network, and what of the memories."""
    address = settings.model_address
    try:
        leaving = what_may_leave(database.usable_engine(settings), org_id, settings)
    except MemoryCoreError as error:
        yield Check(part="What leaves", ok=False, found=str(error))
        return
    if not leaving.model_is_outside:
        found = f"nothing: {address} is inside the private network"
    elif leaving.observations_stay:
        found = f"facts only: {address} is outside, and the organisation has not let observations leave"
    else:
        since = f", since {leaving.allowed_at:%Y-%m-%d}" if leaving.allowed_at else ""
        found = f"facts and observations: {address} is outside, and {leaving.allowed_by} has let them leave{since}"
    yield Check(part="What leaves", ok=True, found=found)


def _limits(settings: Settings) -> Iterator[Check]:
    """Check the limits that no call could keep to."""
    for name, value, least in (
        ("MODEL_NUM_CTX", settings.context_tokens, LEAST_CONTEXT),
        ("MODEL_TOKENS_PER_MINUTE", settings.tokens_per_minute, LEAST_CONTEXT),
        ("MODEL_DEADLINE_S", settings.model_deadline_s, LEAST_DEADLINE_S),
    ):
        if value is not None and value < least:
            found = f"{name} is {value:g}: too little for one call"
            yield Check(part="Limits", ok=False, found=found, mend=f"unset {name}    # or {least:g} at the least")


def _tiers(settings: Settings) -> dict[str, str]:
    """Return each configured model with the names of the tiers that it serves."""
    tiers: dict[str, list[str]] = {}
    for tier in Tier:
        tiers.setdefault(settings.model_of(tier), []).append(tier.value)
    return {model: ", ".join(names) for model, names in tiers.items()}


def _model(settings: Settings, inspector: Inspector, model: str, tiers: str) -> Iterator[Check]:
    part = f"Model {tiers}"
    variable = f"MODEL_{tiers.partition(',')[0].upper()}"
    try:
        facts = inspector.facts(model)
    except InvalidRequest as error:
        yield Check(part=part, ok=False, found=str(error), mend=f"python -m memory_core pull {model}")
        return
    except GatewayError as error:
        yield Check(part=part, ok=False, found=str(error), mend="python -m memory_core doctor    # once more")
        return
    yield _abilities(facts, part=part, variable=variable)
    effort = settings.model_reasoning_effort
    if effort not in (None, ReasoningEffort.NONE) and not facts.thinks:
        found = f"MODEL_REASONING_EFFORT is {effort}, and {model} cannot think: every call would be refused"
        yield Check(part="Thinking", ok=False, found=found, mend="unset MODEL_REASONING_EFFORT")
    wanted = settings.context_tokens or 0
    if facts.context_tokens is not None and wanted > facts.context_tokens:
        yield Check(
            part="Context",
            ok=False,
            found=f"MODEL_NUM_CTX is {wanted:,}, and {model} was made for {facts.context_tokens:,}",
            mend=f"export MODEL_NUM_CTX={facts.context_tokens}",
        )


def _abilities(facts: ModelFacts, *, part: str, variable: str) -> Check:
    thinks = "thinks" if facts.thinks else "does not think"
    context = f", made for {facts.context_tokens:,} tokens" if facts.context_tokens else ""
    if not facts.chats:
        found = f"{facts.name} makes no conversation; it is no chat model"
        return Check(part=part, ok=False, found=found, mend=f"export {variable}={DEFAULT_MODEL}")
    if not facts.calls_tools:
        found = f"{facts.name} cannot call tools, which an agent's run needs ({thinks}{context})"
        return Check(part=part, ok=False, found=found, mend=f"export {variable}={DEFAULT_MODEL}")
    return Check(part=part, ok=True, found=f"{facts.name}: calls tools, {thinks}{context}")


def _context(settings: Settings) -> Check:
    context, cap = settings.context_tokens or 0, settings.model_max_output_tokens
    cut = f"; MODEL_MAX_OUTPUT_TOKENS is {cap:,}, so an answer ends where the context does" if cap >= context else ""
    return Check(part="Context", ok=True, found=f"{context:,} tokens for prompt and answer (MODEL_NUM_CTX){cut}")


def _memory(settings: Settings, inspector: Inspector) -> Iterator[Check]:
    try:
        loaded = inspector.loaded()
    except GatewayError as error:
        yield Check(part="In memory", ok=False, found=str(error), mend="python -m memory_core doctor    # once more")
        return
    what = "; ".join(map(_loaded, loaded)) or "no model yet: the first call loads one, and takes that much longer"
    yield Check(part="In memory", ok=True, found=what)
    ours = {with_tag(model) for model in _tiers(settings)}
    for model in loaded:
        if model.name in ours and model.context_tokens not in (None, settings.context_tokens):
            yield Check(
                part="Context",
                ok=False,
                stops_runs=False,
                found=f"{model.name} is loaded for {model.context_tokens:,} tokens: the next call loads it anew, and again "
                "for whoever asks with the other size",
                mend=f"export MODEL_NUM_CTX={model.context_tokens}",
            )
    if urlsplit(settings.model_address).hostname in LOOPBACK:
        memory = psutil.virtual_memory()
        if memory.available < LITTLE_MEMORY * memory.total:
            found = f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB are free here: loading a model may end others"
            yield Check(
                part="Memory",
                ok=False,
                stops_runs=False,
                found=found,
                mend="export MODEL_KEEP_ALIVE=1m, or a smaller model",
            )


def _loaded(model: LoadedModel) -> str:
    until = f" until {model.expires_at:%H:%M:%S %Z}" if model.expires_at else ""
    context = f", {model.context_tokens:,} tokens" if model.context_tokens else ""
    return f"{model.name}, {model.size_bytes / 1e9:.2f} GB{context}{until}"


def _hosted(settings: Settings) -> Iterator[Check]:
    yield from _limits(settings)
    try:
        listed = listed_models(settings)
    except GatewayError as error:
        # A key may be good for calls and not for the list.
        is_sure = not (isinstance(error, Unauthorized) and " answered 403:" in str(error))
        mend = "check MODEL_BASE_URL and MODEL_API_KEY, then: python -m memory_core chat hello"
        yield Check(part="Model server", ok=False, found=str(error), mend=mend, stops_runs=is_sure)
        return
    if listed is None:
        found = f"{settings.model_address} lists no models: whether it serves these is not seen from here"
        yield Check(
            part="Model server", ok=False, found=found, mend="python -m memory_core chat hello", stops_runs=False
        )
    else:
        yield Check(part="Model server", ok=True, found=f"{settings.model_address} lists {len(listed)} models")
    for model, tiers in _tiers(settings).items():
        is_there = listed is None or bool({model, with_tag(model)} & listed)
        yield Check(
            part=f"Model {tiers}",
            ok=is_there,
            stops_runs=False,  # some servers take names that they do not list
            found=f"{model}: tools and thinking are not reported"
            if is_there
            else f"{model} is not in the server's list",
            mend=None if is_there else f"export MODEL_{tiers.partition(',')[0].upper()}=…    # one that is in it",
        )
    context = settings.context_tokens
    counted = (
        f"{context:,} tokens (MODEL_NUM_CTX)" if context else "not known, so only the server says what is too long"
    )
    yield Check(part="Context", ok=True, found=counted)


def _newest_calls(settings: Settings, org_id: str) -> list[Check]:
    try:
        with organisation_transaction(database.usable_engine(settings), org_id) as connection:
            since = organisations.moment(connection) - timedelta(days=1)
            newest = calls.newest(
                connection,
                org_id,
                provider=settings.model_provider,
                models=list(_tiers(settings)),
                since=since,
                limit=NEWEST,
            )
    except MemoryCoreError as error:
        return [Check(part="Newest calls", ok=False, found=str(error))]
    return symptoms(newest)
