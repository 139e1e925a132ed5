"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from memory_core.addresses import is_inside, is_loopback
from memory_core.errors import SettingsError
from memory_core.identifiers import identifier_refusal

ROOT_HOME = Path("/var/lib/memory-workbench")  # a home of mode 0700 cannot be entered by the database's OS user

DEFAULT_MODEL = "qwen3:0.6b"
HOSTED_TOKENS_PER_MINUTE = 8000
OLLAMA_CONTEXT_TOKENS = 4096  # what Ollama serves unless told otherwise
DURATION = re.compile(r"-?[0-9]{1,9}|-?(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|ms|s|m|h))+")  # as Go reads one


class Provider(StrEnum):
    """How the chat model is spoken to."""

    OLLAMA = "ollama"  # Ollama's own API, with its timings
    OPENAI = "openai"  # chat completions, as hosted models and Ollama's /v1 serve them


class Tier(StrEnum):
    """Which of the three configured models a call wants."""

    FAST = "fast"
    BALANCED = "balanced"
    DEEP = "deep"


class ReasoningEffort(StrEnum):
    """How long a model may think before it answers."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Settings(BaseSettings):
    """What the environment says, checked once. Build it with `settings()`."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    database_url: SecretStr | None = None
    migration_database_url: SecretStr | None = None
    memory_home: Path | None = None
    memory_ledger: Path | None = None
    memory_org: str = "demo"
    memory_embedder: str = "auto"
    ollama_host: str = "http://127.0.0.1:11434"
    app_env: Literal["development", "production"] = "development"
    memory_session_hours: float = Field(default=8, gt=0, le=720, allow_inf_nan=False)
    memory_contact: str = ""
    model_provider: Provider = Provider.OLLAMA
    model_base_url: str | None = None
    model_outside: bool = False
    model_fast: str | None = None
    model_balanced: str | None = None
    model_deep: str | None = None
    model_api_key: SecretStr = SecretStr("")
    model_max_output_tokens: int = Field(default=16_000, gt=0, le=10_000_000)
    model_reasoning_effort: ReasoningEffort | None = None
    model_deadline_s: float = Field(default=120, gt=0, le=86_400, allow_inf_nan=False)
    model_tokens_per_minute: int | None = Field(default=None, gt=0, le=1_000_000_000)
    model_num_ctx: int | None = Field(default=None, gt=0, le=100_000_000)
    model_num_thread: int | None = Field(default=None, gt=0, le=4096)
    model_keep_alive: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, given: dict[str, object]) -> dict[str, object]:
        # Deployments hand on variables that nobody set as empty ones.
        return {
            name: value
            for name, value in given.items()
            if not (value == "" and (name == "app_env" or name.startswith("model_")))
        }

    @field_validator("database_url", "migration_database_url", "memory_home", "memory_ledger", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("memory_ledger")
    @classmethod
    def _is_absolute(cls, value: Path | None) -> Path | None:
        if value is not None and not _expanded(value).is_absolute():
            raise ValueError("must be an absolute path, so that every process means the same folder")
        return value

    @field_validator("memory_home")
    @classmethod
    def _is_a_path(cls, value: Path | None) -> Path | None:
        return None if value is None else _expanded(value)

    @field_validator("database_url", "migration_database_url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            postgresql_url(value.get_secret_value())
        return value

    @field_validator("memory_org")
    @classmethod
    def _is_identifier(cls, value: str) -> str:
        refused = identifier_refusal(value, field="MEMORY_ORG")
        if refused:
            raise ValueError(refused.reason)
        return value

    @field_validator("memory_embedder")
    @classmethod
    def _is_embedder(cls, value: str) -> str:
        model = value.removeprefix("ollama:")
        if value in ("auto", "minilm", "none") or (model != value and not identifier_refusal(model, field="")):
            return value
        raise ValueError("must be auto, minilm, none or ollama:<model>")

    @field_validator("ollama_host")
    @classmethod
    def _is_http(cls, value: str) -> str:
        address_of_ollama(value)
        return value

    @field_validator("model_base_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        return None if value is None else address_of_a_model(value)

    @field_validator("model_fast", "model_balanced", "model_deep")
    @classmethod
    def _is_a_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        refused = None if value is None else identifier_refusal(value, field=str(info.field_name).upper())
        if refused:
            raise ValueError(refused.reason)
        return value

    @field_validator("model_api_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr) -> SecretStr:
        key = value.get_secret_value().strip()
        if not all("!" <= character <= "~" for character in key):
            raise ValueError("must be printable ASCII without spaces, as a header carries it")
        return SecretStr(key)

    @field_validator("model_keep_alive")
    @classmethod
    def _is_a_duration(cls, value: str | None) -> str | None:
        if value is not None and not (len(value) <= 32 and DURATION.fullmatch(value)):
            raise ValueError("must be a number of seconds, -1 for ever, or a duration such as 10m or 1h30m")
        return value

    @model_validator(mode="after")
    def _model_is_whole(self) -> Self:
        if self.app_env == "production" and not self.has_model:
            raise ValueError(
                "MODEL_API_KEY: may not be empty when APP_ENV=production; any non-empty text serves Ollama"
            )
        if self.has_model and self.model_provider is Provider.OPENAI:
            if self.model_base_url is None:
                raise ValueError(
                    "MODEL_BASE_URL: is not set, and MODEL_PROVIDER=openai has no default; https://host/v1"
                )
            for tier in Tier:
                if getattr(self, f"model_{tier}") is None:
                    raise ValueError(f"MODEL_{tier.upper()}: is not set; name the model that serves this tier")
        return self

    @field_validator("memory_contact")
    @classmethod
    def _is_a_line(cls, value: str) -> str:
        if len(value) > 200 or not (value.isprintable() or value == ""):
            raise ValueError("must be one line of at most 200 characters: whom to ask for a membership")
        return value

    @property
    def has_model(self) -> bool:
        """Say whether a chat model is configured."""
        return bool(self.model_api_key.get_secret_value())

    @property
    def model_address(self) -> str:
        """Return the chat model's address: without ``/v1`` for the native API, with its path for chat completions."""
        address = self.model_base_url or address_of_ollama(self.ollama_host)
        if self.model_provider is Provider.OLLAMA:
            return address.removesuffix("/v1")
        return address if urlsplit(address).path else f"{address}/v1"

    @property
    def model_is_outside(self) -> bool:
        """Say whether what is sent to the chat model leaves the private network: by its address, as MODEL_OUTSIDE says, or
        since a local Ollama hands a model of that name on to its maker's cloud.
        """
        handed_on = any(is_handed_on(self.model_of(tier)) for tier in Tier)
        return self.model_outside or handed_on or not is_inside(self.model_address)

    def embedder_is_outside(self, model: str) -> bool:
        """Say the same of what an embedding model on Ollama is given."""
        address = address_of_ollama(self.ollama_host)
        is_that_server = self.model_outside and _server_of(address) == _server_of(self.model_address)
        return is_that_server or is_handed_on(model) or not is_inside(address)

    def model_of(self, tier: Tier) -> str:
        """Return the model that serves a tier."""
        return str(getattr(self, f"model_{tier}") or DEFAULT_MODEL)

    @property
    def tokens_per_minute(self) -> int | None:
        """Return the ceiling that is kept, in tokens a minute, or None: Ollama has none unless one is set."""
        if self.model_tokens_per_minute is None and self.model_provider is Provider.OPENAI:
            return HOSTED_TOKENS_PER_MINUTE
        return self.model_tokens_per_minute

    @property
    def context_tokens(self) -> int | None:
        """Return how many tokens a prompt and its answer may have together; None where only the server knows."""
        if self.model_num_ctx is None and self.model_provider is Provider.OLLAMA:
            return OLLAMA_CONTEXT_TOKENS
        return self.model_num_ctx

    @cached_property
    def home(self) -> Path:
        """The folder of the embedded database."""
        if self.memory_home is not None:
            return self.memory_home
        if os.name == "posix" and os.geteuid() == 0:
            return ROOT_HOME
        return user_data_path("memory-workbench", appauthor=False)

    @property
    def ledger_folder(self) -> Path:
        """The folder of the ledgers, outside the database and its backups."""
        return self.home / "ledger" if self.memory_ledger is None else self.memory_ledger.expanduser()


def is_handed_on(model: str) -> bool:
    """Say whether Ollama hands a model of that name on to its maker's cloud."""
    return model.endswith(("-cloud", ":cloud"))


def _server_of(address: str) -> tuple[str | None, int | None]:
    """Return which server stands at an address, with one name for this machine's own."""
    parts = urlsplit(address)
    host = "localhost" if is_loopback(parts.hostname) else parts.hostname
    return host, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("begins with ~ and the name of nobody here") from None


def address_of_ollama(host: str) -> str:
    """Return the address that Ollama's own programs read in OLLAMA_HOST: its port is 11434 where no scheme says otherwise.

    Raises ValueError as `address_of_a_model` does.
    """
    if "://" in host:
        return address_of_a_model(host)
    address = address_of_a_model(f"127.0.0.1{host}" if not host or host.startswith(":") else host)
    split = urlsplit(address)
    return address if split.port else urlunsplit((split.scheme, f"{split.netloc}:11434", split.path, "", ""))


def address_of_a_model(text: str) -> str:
    """Return a server's address without a slash at its end.

    Raises ValueError, without the address in it (it may carry a password).
    """
    try:
        split = urlsplit(text if "://" in text else f"http://{text}")
        usable = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be http://host:port or https://host/v1")
    if split.username is not None or split.password is not None:
        raise ValueError("carries a user or password, which would be shown; put the key into MODEL_API_KEY")
    if split.query or split.fragment:
        raise ValueError("ends in a query or fragment; give the address up to /v1 only")
    path = re.sub("//+", "/", split.path).rstrip("/")
    if path.endswith(("/chat/completions", "/api/chat")):
        raise ValueError("is the address of a call; give the server's, up to /v1 or without /api")
    return urlunsplit((split.scheme, split.netloc, path, "", ""))


def postgresql_url(text: str) -> URL:
    """Parse a PostgreSQL address and name psycopg as its driver.

    Raises ValueError, without the address in it (it may carry a password).
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError("cannot be read as postgresql://user:password@host:port/database") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise ValueError(f"must be a postgresql:// address, not {url.get_backend_name()}://")
    if not url.database:
        raise ValueError("names no database: postgresql://user:password@host:port/database")
    return url.set(drivername="postgresql+psycopg")


def settings(**overrides: object) -> Settings:
    """Read the environment.

    `overrides` replace single variables by their field names. Raises `SettingsError` naming each variable that
    cannot be used, never its value.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        faults = "; ".join(
            ": ".join([*(str(part).upper() for part in fault["loc"]), fault["msg"].removeprefix("Value error, ")])
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise SettingsError(faults) from None


def environment_without_postgres(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Copy the environment less libpq's variables, which would steer an embedded server's own tools."""
    return {name: value for name, value in environ.items() if not name.startswith("PG")}
