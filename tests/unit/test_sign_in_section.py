"""An [auth] section is used whole, or refused by what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.addresses import is_loopback
from memory_core.errors import Refusal
from memory_core.rules.sign_in import sign_in_of

WHOLE = {
    "redirect_uri": "https://memory.example/oauth2callback",
    "cookie_secret": "0123456789abcdef0123456789abcdef",
    "client_id": "workbench",
    "client_secret": "s3cret",
    "server_metadata_url": "https://login.example/.well-known/openid-configuration",
}


def test_a_whole_section_says_where_the_workbench_is() -> None:
    read = sign_in_of(WHOLE | {"client_kwargs": {"prompt": "login"}}, port=8501)
    assert not isinstance(read, Refusal)
    assert (read.origin, read.host, read.client_id, read.is_https) == (
        "https://memory.example",
        "memory.example",
        "workbench",
        True,
    )


def test_on_this_machine_it_may_be_unencrypted_and_name_the_servers_port() -> None:
    section = WHOLE | {
        "redirect_uri": "http://127.0.0.1:{port}/oauth2callback",
        "server_metadata_url": "http://localhost:9000/.well-known/openid-configuration",
    }
    read = sign_in_of(section, port=8507)
    assert not isinstance(read, Refusal)
    assert (read.origin, read.is_https) == ("http://127.0.0.1:8507", False)


@pytest.mark.parametrize("name", sorted(WHOLE))
@pytest.mark.parametrize("value", [None, "", " ", 7])
def test_nothing_may_be_missing(name: str, value: Any) -> None:
    read = sign_in_of({**WHOLE, name: value}, port=8501)
    assert isinstance(read, Refusal)
    assert read.field == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cookie_secret", "short"),
        ("cookie_secret", "x" * 31),
        ("redirect_uri", "http://memory.example/oauth2callback"),
        ("redirect_uri", "https://memory.example/"),
        ("redirect_uri", "https://memory.example/app/oauth2callback"),
        ("redirect_uri", "https://memory.example/oauth2callback?a=b"),
        ("redirect_uri", "https://memory.example/oauth2callback#a"),
        ("redirect_uri", "https://memory.example:443/oauth2callback"),
        ("redirect_uri", "https://Memory.Example/oauth2callback"),
        ("redirect_uri", "https://ines:pw@memory.example/oauth2callback"),
        ("redirect_uri", "https://memory.example:port/oauth2callback"),
        ("redirect_uri", "https:///oauth2callback"),
        ("redirect_uri", "//memory.example/oauth2callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", "https://[::1/oauth2callback"),
        ("server_metadata_url", "http://login.example/.well-known/openid-configuration"),
        ("server_metadata_url", "file:///etc/passwd"),
    ],
)
def test_what_would_not_be_safe_is_refused(name: str, value: str) -> None:
    read = sign_in_of(WHOLE | {name: value}, port=8501)
    assert isinstance(read, Refusal)
    assert read.field == name
    assert value not in read.reason or name == "redirect_uri"


def test_a_second_provider_is_refused() -> None:
    read = sign_in_of(WHOLE | {"google": {"client_id": "x"}}, port=8501)
    assert isinstance(read, Refusal)
    assert read.field == "auth.google"


@pytest.mark.parametrize("section", [None, "x", 7, []])
def test_a_section_is_a_section(section: Any) -> None:
    assert isinstance(sign_in_of(section, port=8501), Refusal)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "::1"])
def test_this_machines_own_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", [None, "", "0.0.0.0", "::", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
)
def test_addresses_of_others(host: str | None) -> None:
    assert not is_loopback(host)
