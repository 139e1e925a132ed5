"""The environment is read once, checked, and never repeated in an error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory_core.config import (
    DEFAULT_MODEL,
    HOSTED_TOKENS_PER_MINUTE,
    OLLAMA_CONTEXT_TOKENS,
    ROOT_HOME,
    Provider,
    ReasoningEffort,
    Settings,
    Tier,
    environment_without_postgres,
    postgresql_url,
    settings,
)
from memory_core.errors import SettingsError

SECRET = "hunter2-of-nobody"
HOSTED = {
    "model_provider": "openai",
    "model_base_url": "https://api.example.org/v1",
    "model_fast": "gpt-5-nano",
    "model_balanced": "gpt-5-mini",
    "model_deep": "gpt-5",
    "model_api_key": SECRET,
}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


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
    assert read.model_provider is Provider.OLLAMA
    assert read.model_base_url is None
    assert not read.has_model
    assert read.model_address == "http://127.0.0.1:11434"
    assert {read.model_of(tier) for tier in Tier} == {DEFAULT_MODEL} == {"qwen3:0.6b"}
    assert read.model_max_output_tokens == 16_000
    assert read.model_deadline_s == 120
    assert read.model_reasoning_effort is None
    assert read.tokens_per_minute is None
    assert read.context_tokens == OLLAMA_CONTEXT_TOKENS == 4096
    assert read.model_num_thread is None
    assert read.model_keep_alive is None


def test_every_variable_is_read_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://memory_app@db/memory")
    monkeypatch.setenv("MIGRATION_DATABASE_URL", "postgresql://memory_owner@db/memory")
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path / "a b"))
    monkeypatch.setenv("MEMORY_LEDGER", str(tmp_path / "c d"))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_SESSION_HOURS", "12")
    monkeypatch.setenv("MEMORY_CONTACT", "the help desk")
    monkeypatch.setenv("MEMORY_EMBEDDER", "ollama:nomic-embed-text:v1.5")
    monkeypatch.setenv("OLLAMA_HOST", "http://ollama:11434")
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_PROVIDER", "openai")
    monkeypatch.setenv("MODEL_BASE_URL", "https://api.example.org/v1")
    monkeypatch.setenv("MODEL_OUTSIDE", "true")
    monkeypatch.setenv("MODEL_FAST", "gpt-5-nano")
    monkeypatch.setenv("MODEL_BALANCED", "gpt-5-mini")
    monkeypatch.setenv("MODEL_DEEP", "gpt-5")
    monkeypatch.setenv("MODEL_API_KEY", SECRET)
    monkeypatch.setenv("MODEL_MAX_OUTPUT_TOKENS", "2000")
    monkeypatch.setenv("MODEL_REASONING_EFFORT", "low")
    monkeypatch.setenv("MODEL_DEADLINE_S", "7.5")
    monkeypatch.setenv("MODEL_TOKENS_PER_MINUTE", "100")
    monkeypatch.setenv("MODEL_NUM_CTX", "8192")
    monkeypatch.setenv("MODEL_NUM_THREAD", "4")
    monkeypatch.setenv("MODEL_KEEP_ALIVE", "1h30m")
    assert {name.upper() for name in Settings.model_fields} <= os.environ.keys(), "a new variable needs its line here"
    read = settings()
    assert read.database_url
    assert read.database_url.get_secret_value() == "postgresql://memory_app@db/memory"
    assert read.migration_database_url
    assert read.migration_database_url.get_secret_value() == "postgresql://memory_owner@db/memory"
    assert read.home == tmp_path / "a b"
    assert read.ledger_folder == tmp_path / "c d"
    assert read.memory_org == "acme"
    assert read.memory_embedder == "ollama:nomic-embed-text:v1.5"
    assert read.ollama_host == "http://ollama:11434"
    assert read.app_env == "production"
    assert read.model_provider is Provider.OPENAI
    assert read.model_address == "https://api.example.org/v1"
    assert read.model_outside is True
    assert [read.model_of(tier) for tier in Tier] == ["gpt-5-nano", "gpt-5-mini", "gpt-5"]
    assert read.has_model
    assert read.model_api_key.get_secret_value() == SECRET
    assert read.model_max_output_tokens == 2000
    assert read.model_reasoning_effort is ReasoningEffort.LOW
    assert read.model_deadline_s == 7.5
    assert read.tokens_per_minute == 100
    assert read.context_tokens == 8192
    assert read.model_num_thread == 4
    assert read.model_keep_alive == "1h30m"


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


@pytest.mark.parametrize("name", [name.upper() for name, one in Settings.model_fields.items() if one.default is None])
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
        ("MODEL_PROVIDER", SECRET),
        ("MODEL_PROVIDER", "anthropic"),
        ("MODEL_PROVIDER", "Ollama"),
        ("MODEL_BASE_URL", f"ftp://{SECRET}/v1"),
        ("MODEL_BASE_URL", f"file:///{SECRET}"),
        ("MODEL_BASE_URL", f"{SECRET}://host/v1"),
        ("MODEL_BASE_URL", f"//{SECRET}/v1"),
        ("MODEL_BASE_URL", f"/{SECRET}/v1"),
        ("MODEL_BASE_URL", f"https:{SECRET}"),
        ("MODEL_BASE_URL", "http://"),
        ("MODEL_BASE_URL", f"http:///{SECRET}"),
        ("MODEL_BASE_URL", f"http://{SECRET}:port/v1"),
        ("MODEL_BASE_URL", f"http://{SECRET}:0/v1"),
        ("MODEL_BASE_URL", f"http://{SECRET}:65536/v1"),
        ("MODEL_BASE_URL", f"http://[{SECRET}/v1"),
        ("MODEL_BASE_URL", f"http://{SECRET}@host/v1"),
        ("MODEL_BASE_URL", f"http://user:{SECRET}@host/v1"),
        ("MODEL_BASE_URL", f"http://:{SECRET}@host/v1"),
        ("MODEL_BASE_URL", f"user:{SECRET}@host"),
        ("MODEL_BASE_URL", f"https://host/v1?key={SECRET}"),
        ("MODEL_BASE_URL", f"https://host/v1#{SECRET}"),
        ("MODEL_BASE_URL", f"http://{SECRET} /v1"),
        ("MODEL_BASE_URL", f" http://{SECRET}/v1"),
        ("MODEL_BASE_URL", f"http://{SECRET}/v1 "),
        ("MODEL_BASE_URL", f"http://{SECRET}/v1\n"),
        ("MODEL_BASE_URL", f"http://{SECRET}/\tv1"),
        ("MODEL_BASE_URL", f"http://host/v1\r\nX-Key: {SECRET}"),
        ("MODEL_BASE_URL", f"http://{SECRET}/\x7f"),
        ("MODEL_BASE_URL", f"http://{SECRET}é/v1"),
        ("MODEL_BASE_URL", f"http://{SECRET}/v1\u200b"),
        ("MODEL_BASE_URL", " "),
        *(
            (f"MODEL_{tier.upper()}", model)
            for tier in Tier
            for model in (f"{SECRET} x", f"{SECRET}\n", f'{SECRET}"', f"{SECRET}é", SECRET + "x" * 128, " ")
        ),
        ("MODEL_API_KEY", f"{SECRET} x"),
        ("MODEL_API_KEY", f"{SECRET}\nX-Other: x"),
        ("MODEL_API_KEY", f"{SECRET}\rx"),
        ("MODEL_API_KEY", f"{SECRET}\tx"),
        ("MODEL_API_KEY", f"{SECRET}\x7f"),
        ("MODEL_API_KEY", f"{SECRET}é"),
        *(
            (name, number)
            for name in (
                "MODEL_MAX_OUTPUT_TOKENS",
                "MODEL_TOKENS_PER_MINUTE",
                "MODEL_NUM_CTX",
                "MODEL_NUM_THREAD",
                "MODEL_DEADLINE_S",
            )
            for number in ("0", "-1", "nan", "inf", "-inf", "1e400", "9" * 30, "0x10", "many", SECRET, " ")
        ),
        ("MODEL_MAX_OUTPUT_TOKENS", "1.5"),
        ("MODEL_NUM_CTX", "1.5"),
        ("MODEL_DEADLINE_S", "86401"),
        ("MODEL_REASONING_EFFORT", SECRET),
        ("MODEL_REASONING_EFFORT", "High"),
        ("MODEL_REASONING_EFFORT", "true"),
        ("MODEL_KEEP_ALIVE", SECRET),
        ("MODEL_KEEP_ALIVE", "5 m"),
        ("MODEL_KEEP_ALIVE", "5m\n"),
        ("MODEL_KEEP_ALIVE", "5d"),
        ("MODEL_KEEP_ALIVE", "1h30"),
        ("MODEL_KEEP_ALIVE", "m"),
        ("MODEL_KEEP_ALIVE", "--5m"),
        ("MODEL_KEEP_ALIVE", "1.5"),
        ("MODEL_KEEP_ALIVE", "٥m"),
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
    monkeypatch.setenv("MODEL_API_KEY", SECRET)
    read = settings()
    for text in (repr(read), str(read), read.model_dump_json(), repr(read.model_dump())):
        assert SECRET not in text


# The chat model


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_production_needs_a_key(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_API_KEY", key)
    with pytest.raises(SettingsError, match=r"^MODEL_API_KEY: .*APP_ENV=production"):
        settings()
    monkeypatch.setenv("MODEL_API_KEY", "ollama")
    assert settings().has_model


@pytest.mark.parametrize("key", ["", " ", "\t\n"])
def test_without_a_key_there_is_no_model_whatever_else_is_set(key: str) -> None:
    for others in ({}, {"model_provider": "openai"}, HOSTED):
        assert not settings(**{**others, "model_api_key": key}).has_model


@pytest.mark.parametrize("key", [f"{SECRET}\n", f" {SECRET}", f"{SECRET}\r\n"])
def test_a_key_is_read_without_the_space_that_its_file_put_around_it(key: str) -> None:
    assert settings(model_api_key=key).model_api_key.get_secret_value() == SECRET


@pytest.mark.parametrize("missing", ["model_base_url", "model_fast", "model_balanced", "model_deep"])
@pytest.mark.parametrize("nothing", [None, ""])
def test_a_hosted_model_needs_its_address_and_a_model_for_every_tier(missing: str, nothing: str | None) -> None:
    assert settings(**HOSTED).has_model
    with pytest.raises(SettingsError, match=f"^{missing.upper()}: is not set") as refused:
        settings(**{**HOSTED, missing: nothing})
    assert SECRET not in whole(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "native", "completions"),
    [
        ("http://h:11434", "http://h:11434", "http://h:11434/v1"),
        ("http://h:11434/", "http://h:11434", "http://h:11434/v1"),
        ("http://h:11434/v1", "http://h:11434", "http://h:11434/v1"),
        ("http://h:11434/v1/", "http://h:11434", "http://h:11434/v1"),
        ("h:11434", "http://h:11434", "http://h:11434/v1"),
        ("localhost", "http://localhost", "http://localhost/v1"),
        ("https://h", "https://h", "https://h/v1"),
        ("https://h/proxy/v1", "https://h/proxy", "https://h/proxy/v1"),
        ("https://h/openai/v2", "https://h/openai/v2", "https://h/openai/v2"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai", "https://h/v1beta/openai"),
        ("http://[::1]:11434/v1", "http://[::1]:11434", "http://[::1]:11434/v1"),
        ("HTTPS://h/v1", "https://h", "https://h/v1"),
    ],
)
def test_an_address_serves_both_providers_with_or_without_v1_or_a_slash(
    given: str, native: str, completions: str
) -> None:
    assert settings(model_base_url=given).model_address == native
    assert settings(**{**HOSTED, "model_base_url": given}).model_address == completions


def test_ollama_is_asked_where_the_embedder_is_unless_it_has_an_address_of_its_own() -> None:
    assert settings(ollama_host="http://ollama:11434/").model_address == "http://ollama:11434"
    apart = settings(ollama_host="http://ollama:11434", model_base_url="http://gpu:11434")
    assert apart.model_address == "http://gpu:11434"


@pytest.mark.parametrize(
    "host",
    [
        f"http://user:{SECRET}@h:11434",
        f"http://h:11434/?{SECRET}",
        f"http://{SECRET} h",
        f"http://{SECRET}\n",
        f"http://{SECRET}é",
        "http://",
    ],
)
def test_an_ollama_host_at_which_no_model_can_be_asked_is_refused_by_its_name(host: str) -> None:
    with pytest.raises(SettingsError, match=r"^OLLAMA_HOST: ") as refused:
        settings(ollama_host=host, model_api_key="ollama")
    assert SECRET not in whole(refused.value)


@pytest.mark.parametrize("host", ["", ":11434", "127.0.0.1", "127.0.0.1:11434"])
def test_an_ollama_host_is_read_as_ollama_and_the_embedder_read_it(host: str) -> None:
    assert settings(ollama_host=host, model_api_key="ollama").model_address == "http://127.0.0.1:11434"


def test_one_model_may_serve_every_tier_and_each_may_have_its_own() -> None:
    read = settings(model_deep="qwen3:8b")
    assert [read.model_of(tier) for tier in Tier] == [DEFAULT_MODEL, DEFAULT_MODEL, "qwen3:8b"]


def test_a_hosted_model_has_a_ceiling_unless_another_is_set_and_ollama_has_none() -> None:
    assert settings(**HOSTED).tokens_per_minute == HOSTED_TOKENS_PER_MINUTE == 8000
    assert settings(**HOSTED, model_tokens_per_minute=100).tokens_per_minute == 100
    assert settings().tokens_per_minute is None
    assert settings(model_tokens_per_minute=100).tokens_per_minute == 100


def test_only_ollamas_context_is_known_without_being_set() -> None:
    assert settings().context_tokens == OLLAMA_CONTEXT_TOKENS
    assert settings(**HOSTED).context_tokens is None
    assert settings(**HOSTED, model_num_ctx=128_000).context_tokens == 128_000


@pytest.mark.parametrize("kept", ["0", "-1", "300", "10m", "1h30m", "1.5h", "500ms", "-1m"])
def test_a_model_is_kept_as_long_as_ollama_can_read(kept: str) -> None:
    assert settings(model_keep_alive=kept).model_keep_alive == kept


PIECES = st.sampled_from(
    [*"htpsv1:/@?#[].%\\&= ", "http://", "https://", "/v1", "host", ":11434", SECRET, "\n", "é", "\ud800"]
)
ADDRESSES = (
    st.text()
    | st.lists(PIECES, max_size=8).map("".join)
    | st.lists(PIECES, max_size=6).map(lambda some: "http://" + "".join(some))
)


def read_or_refused(**variables: Any) -> list[Settings]:
    """Read the settings for both providers, or see that the variable is refused by its name without its value."""
    (name,) = variables
    read, refusals = [], []
    for others in ({"model_api_key": "ollama"}, {**HOSTED, "model_api_key": "hosted"}):
        try:
            read.append(settings(**{**others, **variables}))
        except SettingsError as error:
            refusals.append(error)
    for refusal in refusals:
        assert str(refusal).startswith(f"{name.upper()}: ")
        assert str(refusal).isprintable()
        assert SECRET not in whole(refusal)
    return read


@given(address=ADDRESSES)
@example(f"http://user:{SECRET}@host")
@example(f"http://host/{SECRET}\x00")
def test_whatever_stands_as_the_models_address_is_one_or_is_refused_by_name(address: str) -> None:
    for read in read_or_refused(model_base_url=address):
        assert read.model_address.isascii()
        assert read.model_address.isprintable()
        split = urlsplit(read.model_address)
        assert split.scheme in ("http", "https")
        assert split.hostname
        assert (split.username, split.password, split.query, split.fragment) == (None, None, "", "")


@given(before=st.text(), after=st.text())
@example("", "\nAuthorization: x")
@example("", "\x00")
@example("\ud800", "")
def test_whatever_stands_as_the_key_can_be_a_header_or_is_refused_by_name_and_is_never_shown(
    before: str, after: str
) -> None:
    for read in read_or_refused(model_api_key=f"{before}{SECRET}{after}"):
        key = read.model_api_key.get_secret_value()
        assert key.isascii()
        assert key.isprintable()
        assert " " not in key
        for shown in (repr(read), str(read), read.model_dump_json(), repr(read.model_dump()), repr(read.model_api_key)):
            assert SECRET not in shown


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


def test_the_ledgers_lie_below_home_unless_a_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settings(memory_home=str(tmp_path)).ledger_folder == tmp_path / "ledger"
    assert settings(memory_home=str(tmp_path), memory_ledger="").ledger_folder == tmp_path / "ledger"
    assert settings(memory_home=str(tmp_path), memory_ledger="/srv/ledgers").ledger_folder == Path("/srv/ledgers")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert settings(memory_ledger="~/ledgers").ledger_folder == Path("/home/somebody/ledgers")
    monkeypatch.setenv("MEMORY_LEDGER", "")
    assert settings(memory_home="~/memories").ledger_folder == Path("/home/somebody/memories/ledger")


@pytest.mark.parametrize("folder", ["ledgers", "./ledgers", "../ledgers", ".", "a b/c", "$HOME/ledgers"])
def test_the_ledgers_folder_means_the_same_from_everywhere(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("MEMORY_LEDGER", folder)
    with pytest.raises(SettingsError, match=r"\AMEMORY_LEDGER: .*absolute path") as refused:
        settings()
    assert len(str(refused.value).splitlines()) == 1


def test_the_ledgers_folder_is_in_the_home_of_somebody_who_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_LEDGER", "~nobody-by-this-name/x")
    with pytest.raises(SettingsError) as refused:
        settings()
    assert str(refused.value) == "MEMORY_LEDGER: begins with ~ and the name of nobody here"


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
