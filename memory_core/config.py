"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from memory_core.errors import SettingsError
from memory_core.identifiers import identifier_refusal

ROOT_HOME = Path("/var/lib/memory-workbench")  # a home of mode 0700 cannot be entered by the database's OS user


class Settings(BaseSettings):
    """What the environment says, checked once. Build it with `settings()`."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    database_url: SecretStr | None = None
    migration_database_url: SecretStr | None = None
    memory_home: Path | None = None
    memory_org: str = "demo"
    memory_embedder: str = "auto"
    ollama_host: str = "http://127.0.0.1:11434"
    app_env: Literal["development", "production"] = "development"
    model_tokens_per_minute: int = Field(default=8000, gt=0)

    @field_validator("database_url", "migration_database_url", "memory_home", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

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
        try:
            split = urlsplit(value if "://" in value else f"http://{value}")
            usable = split.scheme in ("http", "https") and split.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("must be http://host:port")
        return value

    @cached_property
    def home(self) -> Path:
        """The folder of the embedded database."""
        if self.memory_home is not None:
            return self.memory_home.expanduser()
        if os.name == "posix" and os.geteuid() == 0:
            return ROOT_HOME
        return user_data_path("memory-workbench", appauthor=False)


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
            f"{'.'.join(str(part) for part in fault['loc']).upper()}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise SettingsError(faults) from None


def environment_without_postgres(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Copy the environment less libpq's variables, which would steer an embedded server's own tools."""
    return {name: value for name, value in environ.items() if not name.startswith("PG")}
