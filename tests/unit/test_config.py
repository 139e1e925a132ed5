"""The environment is read once, checked, and never repeated in an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from memory_core.config import ROOT_HOME, environment_without_postgres, postgresql_url, settings
from memory_core.errors import SettingsError

SECRET = "hunter2-of-nobody"
OURS = (
    "DATABASE_URL",
    "MIGRATION_DATABASE_URL",
    "MEMORY_HOME",
    "MEMORY_ORG",
    "MEMORY_EMBEDDER",
    "OLLAMA_HOST",
    "APP_ENV",
    "MODEL_TOKENS_PER_MINUTE",
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OURS:
        monkeypatch.delenv(name, raising=False)


def whole(error: BaseException) -> str:
    """All that a traceback would print of an error."""
    lines: list[str] = []
    following: BaseException | None = error
    while following is not None:
        lines += [str(following), repr(following)]
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return "\n".join(lines)


def test_an_empty_environment_gives_the_defaults_of_the_design() -> None:
    read = settings()
    assert read.database_url is None
    assert read.migration_database_url is None
    assert read.memory_org == "demo"
    assert read.memory_embedder == "auto"
    assert read.ollama_host == "http://127.0.0.1:11434"
    assert read.app_env == "development"
    assert read.model_tokens_per_minute == 8000


def test_every_variable_is_read_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://memory_app@db/memory")
    monkeypatch.setenv("MIGRATION_DATABASE_URL", "postgresql://memory_owner@db/memory")
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path / "a b"))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "ollama:nomic-embed-text:v1.5")
    monkeypatch.setenv("OLLAMA_HOST", "http://ollama:11434")
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_TOKENS_PER_MINUTE", "100")
    read = settings()
    assert read.database_url
    assert read.database_url.get_secret_value() == "postgresql://memory_app@db/memory"
    assert read.migration_database_url
    assert read.migration_database_url.get_secret_value() == "postgresql://memory_owner@db/memory"
    assert read.home == tmp_path / "a b"
    assert read.memory_org == "acme"
    assert read.memory_embedder == "ollama:nomic-embed-text:v1.5"
    assert read.ollama_host == "http://ollama:11434"
    assert read.app_env == "production"
    assert read.model_tokens_per_minute == 100


def test_a_caller_may_replace_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDER", "auto")
    assert settings(memory_embedder="none").memory_embedder == "none"


def test_settings_do_not_change_after_they_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = settings()
    monkeypatch.setenv("MEMORY_ORG", "acme")
    assert read.memory_org == "demo"
    with pytest.raises(ValidationError):
        read.memory_org = "acme"


def test_a_file_named_dotenv_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MEMORY_ORG=acme\n")
    monkeypatch.chdir(tmp_path)
    assert settings().memory_org == "demo"


def test_other_variables_are_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_NONSENSE", "x")
    assert settings().memory_org == "demo"


@pytest.mark.parametrize("name", ["DATABASE_URL", "MIGRATION_DATABASE_URL", "MEMORY_HOME"])
def test_a_variable_that_is_empty_counts_as_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    assert getattr(settings(), name.lower()) is None


# Refused, by name and never by value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", f"postgresql://u:{SECRET}@host:port/db"),
        ("DATABASE_URL", f"postgresql://u:{SECRET}@host"),
        ("DATABASE_URL", f"postgresql://u:{SECRET}@host/"),
        ("DATABASE_URL", f"mysql://u:{SECRET}@host/db"),
        ("DATABASE_URL", f"sqlite:///{SECRET}"),
        ("DATABASE_URL", f"http://u:{SECRET}@host/db"),
        ("DATABASE_URL", f"u:{SECRET}@host/db"),
        ("DATABASE_URL", SECRET),
        ("DATABASE_URL", f"host=h password={SECRET} dbname=d"),
        ("MIGRATION_DATABASE_URL", f"postgresql://u:{SECRET}@host:port/db"),
        ("MIGRATION_DATABASE_URL", SECRET),
        ("MEMORY_ORG", f"{SECRET} x"),
        ("MEMORY_ORG", f"{SECRET}\n"),
        ("MEMORY_ORG", f"{SECRET}%"),
        ("MEMORY_ORG", SECRET + "x" * 128),
        ("MEMORY_EMBEDDER", SECRET),
        ("MEMORY_EMBEDDER", f"ollama:{SECRET} x"),
        ("MEMORY_EMBEDDER", f"ollama:{SECRET}\n"),
        ("MEMORY_EMBEDDER", "ollama:"),
        ("MEMORY_EMBEDDER", "ollama"),
        ("MEMORY_EMBEDDER", "minilm\n"),
        ("MEMORY_EMBEDDER", "Auto"),
        ("OLLAMA_HOST", "http://127.0.0.1:port"),
        ("OLLAMA_HOST", "http://127.0.0.1:99999"),
        ("OLLAMA_HOST", "http://[::1"),
        ("OLLAMA_HOST", "ftp://127.0.0.1"),
        ("APP_ENV", SECRET),
        ("MODEL_TOKENS_PER_MINUTE", "0"),
        ("MODEL_TOKENS_PER_MINUTE", "-1"),
        ("MODEL_TOKENS_PER_MINUTE", SECRET),
    ],
)
def test_a_variable_that_cannot_be_used_is_named_without_its_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name}: ") as refused:
        settings()
    assert "\n" not in str(refused.value)
    assert SECRET not in whole(refused.value)
    assert not refused.value.retryable


def test_all_variables_that_cannot_be_used_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", SECRET)
    monkeypatch.setenv("MEMORY_ORG", "two words")
    with pytest.raises(SettingsError, match=r"DATABASE_URL: .*MEMORY_ORG: ") as refused:
        settings()
    assert "\n" not in str(refused.value)


def test_settings_that_are_printed_show_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "MIGRATION_DATABASE_URL"):
        monkeypatch.setenv(name, f"postgresql://u:{SECRET}@host/db")
    read = settings()
    for text in (repr(read), str(read), read.model_dump_json(), repr(read.model_dump())):
        assert SECRET not in text


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:p@h:5433/d",
        "postgres://u:p@h:5433/d",
        "postgresql+psycopg://u:p@h:5433/d",
        "postgresql+psycopg2://u:p@h:5433/d",
    ],
)
def test_every_way_to_write_postgresql_is_served_by_one_driver(address: str) -> None:
    url = postgresql_url(address)
    assert url.drivername == "postgresql+psycopg"
    assert (url.username, url.password, url.host, url.port, url.database) == ("u", "p", "h", 5433, "d")


def test_a_password_may_have_any_character() -> None:
    assert postgresql_url("postgresql://u:p%40%2F%3A%20%C3%A9@h/d").password == "p@/: é"


def test_an_address_may_name_a_socket() -> None:
    assert postgresql_url("postgresql://u@/d?host=/var/run/postgresql").query == {"host": "/var/run/postgresql"}


@pytest.mark.parametrize("address", [f"postgresql://u:{SECRET}@h", f"mysql://u:{SECRET}@h/d", SECRET, "", "://"])
def test_an_address_that_is_refused_is_not_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="postgresql://") as refused:
        postgresql_url(address)
    assert SECRET not in whole(refused.value)


# The folder


def test_the_folder_may_be_below_ones_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert settings(memory_home="~/memories").home == Path("/home/somebody/memories")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="root's home cannot be entered by others")
def test_root_keeps_its_database_where_the_databases_user_can_enter() -> None:
    assert settings().home == ROOT_HOME == Path("/var/lib/memory-workbench")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="for an ordinary user")
def test_an_ordinary_user_keeps_the_database_below_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert tmp_path in settings().home.parents


def test_the_embedded_servers_tools_are_not_steered_by_libpqs_variables() -> None:
    given = {"PATH": "/bin", "PGHOST": "db", "PGPASSWORD": SECRET, "PGSERVICE": "x", "HOME": "/root"}
    assert environment_without_postgres(given) == {"PATH": "/bin", "HOME": "/root"}
