from __future__ import annotations

import inspect

import memory_core
from memory_core import MemoryStore

PUBLIC = """
AwaitingSecond BadVector Block CallCancelled ChangedMeanwhile DatabaseBusy DatabaseError DatabaseReadOnly
DatabaseUnavailable DeadlineExceeded Disclosure EmbeddedServerError EmbedderError EmbedderTimeout EmbedderUnavailable
Erasure Forbidden FoundSubject Gateway GatewayError Held HeldMemory Identity InvalidRequest Kind LedgerUnusable Memory
MemoryCoreError MemoryStore Message ModelBusy ModelNotConfigured ModelUnavailable NoVectorExtension NotMigrated OnHold
Origin Overview PassedOver Purpose Ranking RateLimited Recall RecallMode RecalledMemory Refused Reply Restored Role
Search SettingsError State Subject Tier Tool ToolCall Unauthorized UnsafeRole gateway_for
"""


def test_the_public_names_are_these() -> None:
    assert memory_core.__all__ == PUBLIC.split()


def test_every_public_name_is_there() -> None:
    for name in PUBLIC.split():
        assert getattr(memory_core, name).__doc__


def parameters(method: str) -> list[str]:
    return list(inspect.signature(getattr(MemoryStore, method)).parameters)[1:]


def test_the_stores_calls_take_what_the_contract_says() -> None:
    provenance = ["kind", "origin", "author", "run_id", "subject", "source", "created_at", "expires_at"]
    assert parameters("remember") == ["text", *provenance, "commit_if"]
    assert parameters("recall") == [
        *("query", "run_id", "limit", "token_budget", "kinds", "subject", "ranking", "purpose", "by", "because"),
    ]
    assert parameters("held") == ["subject", "by"]
    assert parameters("shown") == ["recall_id", "by"]
    for look in (MemoryStore.held, MemoryStore.shown):
        assert inspect.signature(look).parameters["by"].default == "unnamed"
    assert parameters("embed") == ["model", "among", "progress"]
    assert inspect.signature(MemoryStore.embed).parameters["among"].default is None
    assert parameters("forget") == ["subject", "by", "reason"]
    opened = inspect.signature(MemoryStore.open).parameters
    assert {"org_id", "database_url", "embedder", "clock"} <= set(opened)


def test_everything_but_what_a_call_is_about_is_named_by_its_caller() -> None:
    for method in ("remember", "remember_many", "recall", "held", "shown", "forget"):
        first, *others = list(inspect.signature(getattr(MemoryStore, method)).parameters.values())[1:]
        assert first.kind is first.POSITIONAL_OR_KEYWORD
        assert all(one.kind is one.KEYWORD_ONLY for one in others)


def test_a_recalls_answer_has_what_the_contract_says() -> None:
    fields = set(memory_core.Recall.__dataclass_fields__)
    assert {"mode", "reason", "ranking", "unembedded", "timings", "memories", "block"} <= fields
    assert {"memory", "score", "shown"} <= set(memory_core.RecalledMemory.__dataclass_fields__)
    assert {"text", "tokens", "omitted"} <= set(memory_core.Block.__dataclass_fields__)
    assert {"state", "disclosures"} <= set(memory_core.HeldMemory.__dataclass_fields__)


def test_the_words_of_the_design_are_the_values_of_the_enumerations() -> None:
    assert [*memory_core.Kind] == ["fact", "observation"]
    assert [*memory_core.Origin] == ["person", "inference"]
    assert [*memory_core.RecallMode] == ["semantic", "recency"]
    assert {*memory_core.State} == {"live", "expired", "swept", "restricted", "forgotten"}
    assert [*memory_core.Purpose] == ["run", "preview"]
