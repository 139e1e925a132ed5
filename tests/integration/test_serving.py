"""The workbench is served to others only with a sign-in that is whole, from whatever folder, and says in a line why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser.conftest import environment, started, stopped
from signing import secrets

from memory_core import serving
from memory_core.config import Settings, settings
from memory_core.errors import MemoryCoreError, Refused, SettingsError
from pages.web.server import refuse_unsafe

ROOT = Path(__file__).resolve().parents[2]
HERE = "http://127.0.0.1:{port}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "a home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def chosen(environment: str = "development") -> Settings:
    return settings(app_env=environment, model_api_key="of-no-use", memory_embedder="none")


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost"])
def test_without_a_sign_in_it_is_for_this_machine(home: Path, address: str) -> None:
    assert serving.port_to_serve(chosen(), port=None, address=address) >= serving.FIRST_PORT


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_a_sign_in_it_is_for_nobody_else(home: Path, address: str) -> None:
    with pytest.raises(Refused, match="others_sign_in"):
        serving.port_to_serve(chosen(), port=None, address=address)


@pytest.mark.parametrize("address", ["", "memory.example", "127.0.0.1:80", "127.0.0.1; reboot"])
def test_an_address_is_one(home: Path, address: str) -> None:
    with pytest.raises(Refused, match="address_is_one"):
        serving.port_to_serve(chosen(), port=None, address=address)


def test_an_address_is_this_machines(home: Path) -> None:
    secrets(home, origin=HERE)
    for port in (None, 8600):
        with pytest.raises(Refused, match=r"192\.0\.2\.1 is no address of this machine"):
            serving.port_to_serve(chosen(), port=port, address="192.0.2.1")


def test_in_production_somebody_has_to_sign_in(home: Path) -> None:
    with pytest.raises(SettingsError, match="APP_ENV: is production, and there is no sign-in"):
        serving.port_to_serve(chosen("production"), port=None)
    secrets(home, origin=HERE)
    assert serving.port_to_serve(chosen("production"), port=None, address="0.0.0.0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[auth]\n", "[auth] redirect_uri: is missing"),
        ("auth = 1\n", "[auth] auth: must be a section"),
        ("[auth\n", "cannot be read (TOMLDecodeError)"),
        ("[auth]\nredirect_uri = 7\n", "[auth] redirect_uri: is missing"),
        ("[auth]\n[auth.google]\nclient_id = 'x'\n", "[auth] auth.google: is a second provider"),
    ],
)
def test_a_sign_in_that_is_not_whole_is_refused_in_a_line(home: Path, text: str, said: str) -> None:
    file = home / ".streamlit" / "secrets.toml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(MemoryCoreError) as refused:
        serving.port_to_serve(chosen(), port=None)
    assert str(refused.value).startswith(f"{file}: {said}")
    assert "\n" not in str(refused.value)


def test_no_secret_is_said_aloud(home: Path) -> None:
    file = secrets(home, origin="http://memory.example")
    with pytest.raises(SettingsError) as refused:
        serving.port_to_serve(chosen(), port=None)
    values = [line.partition(' = "')[2].strip('"') for line in file.read_text().splitlines() if "secret" in line]
    assert len(values) == 2
    assert not [value for value in values if value in str(refused.value)]


def test_the_server_itself_refuses_what_the_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "of-no-use")
    refuse_unsafe("127.0.0.1", None)
    monkeypatch.setenv("APP_ENV", "production")
    with pytest.raises(Refused, match="APP_ENV: is production"):
        refuse_unsafe("127.0.0.1", None)
    own = environment(tmp_path / "memory") | {"HOME": str(tmp_path), "APP_ENV": "development"}
    ended = subprocess.run(
        [sys.executable, "-m", "pages.web", "--address", "0.0.0.0", "--port", "8599"],
        cwd=ROOT,
        env=own,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("--address: others can reach it")
    assert "Traceback" not in ended.stderr


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """A workbench that was started in another folder, with an environment that would open what is shut."""
    folder = tmp_path / "another folder"
    folder.mkdir()
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text("[server]\nenableCORS = false\nenableStaticServing = true\n")
    own = environment(tmp_path / "memory") | {
        "HOME": str(tmp_path),
        "MEMORY_EMBEDDER": "none",
        "PYTHONPATH": str(ROOT),
        "STREAMLIT_GLOBAL_DEVELOPMENT_MODE": "true",
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
        "STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false",
    }
    process, url = started(own, cwd=folder)
    yield url
    stopped(process)


def test_the_folder_and_the_environment_open_nothing(elsewhere: str) -> None:
    health = httpx.get(f"{elsewhere}/_stcore/health", headers={"Origin": "http://evil.example"})
    assert health.text == "ok"
    assert "_streamlit_xsrf" in health.cookies
    assert "access-control-allow-origin" not in health.headers
    assert httpx.get(f"{elsewhere}/app/static/x").status_code == 404
    assert httpx.get(f"{elsewhere}/Subjects").status_code == 200
