"""What is inside the private network, by its address alone."""

from __future__ import annotations

import pytest

from memory_core.addresses import is_inside
from memory_core.config import settings
from memory_core.errors import SettingsError

INSIDE = """
http://localhost:11434 http://LOCALHOST http://localhost. http://ollama.localhost:11434 http://127.0.0.1:11434
http://127.8.9.10/v1 http://127.1:11434 http://2130706433:11434 http://0x7f000001 http://0177.0.0.1 http://0.0.0.0:11434
http://[::1]:11434 http://[::]:80 http://[::ffff:127.0.0.1]:11434 http://[::ffff:7f00:1] http://[0:0:0:0:0:ffff:10.1.2.3]
http://10.0.0.7/v1 http://172.16.0.1 http://172.31.255.255 http://192.168.1.4:8080 http://169.254.1.2 http://167772167
http://[fd12:3456::1]:8000/v1 http://[fc00::1] http://[fe80::1] http://[fe80::1%25eth0]:11434 http://[FD00::A]
http://ollama:11434 http://OLLAMA:11434/v1 http://llm-gateway http://my_service:80
http://ollama.models.svc:11434 http://ollama.models.svc.cluster.local http://OLLAMA.Models.SVC.Cluster.Local.:11434/v1
http://llm.internal/v1 http://llm.corp.internal. http://box.local http://box.lan:8080 http://box.home.arpa
"""
OUTSIDE = """
https://api.openai.com/v1 https://API.OPENAI.COM./v1 http://8.8.8.8 http://134744072 http://0x08080808 http://8.526344
http://1.1 http://100.64.0.1 http://172.15.0.1 http://172.32.0.1 http://192.169.0.1 http://11.0.0.1 http://126.255.255.255
http://192.0.2.1 http://198.18.0.1 http://[2001:4860:4860::8888] http://[::ffff:8.8.8.8]:80 http://[64:ff9b::7f00:1]
http://[2002:7f00:1::] http://[fec0::1] http://[::127.0.0.1] http://ai. http://svc. http://internal.
https://notinternal.example https://mysvc.example/v1 https://llm.internal.example.com https://svc.example.org
https://local.example.net https://evil.com.svc.example https://localhost.example.com https://127.0.0.1.example.com
https://127.0.0.1.nip.io https://xn--bcher-kva.example/v1 https://ollama.models https://host..internal https://.internal
http://api%2eopenai%2ecom http://evil.com\\.svc http:// http://[::1 http://user@
"""


@pytest.mark.parametrize("address", INSIDE.split())
def test_what_only_a_private_network_reaches_is_inside(address: str) -> None:
    assert is_inside(address)


@pytest.mark.parametrize("address", OUTSIDE.split())
def test_all_else_is_outside_and_what_cannot_be_read_too(address: str) -> None:
    assert not is_inside(address)


def test_an_address_without_a_scheme_is_read_as_a_host() -> None:
    assert is_inside("127.0.0.1:11434")
    assert not is_inside("api.openai.com:443")


HOSTED = {"model_provider": "openai", "model_fast": "m", "model_balanced": "m", "model_deep": "m", "model_api_key": "k"}


@pytest.mark.parametrize(
    ("given", "outside"),
    [
        ({}, False),
        ({"ollama_host": "0.0.0.0:11434"}, False),
        ({"ollama_host": "8.8.8.8"}, True),
        ({"ollama_host": "gpu.example.com:11434", "model_base_url": "http://10.1.2.3:11434"}, False),
        ({"model_base_url": "http://OLLAMA.models.svc:11434/v1"}, False),
        ({**HOSTED, "model_base_url": "https://api.openai.com/v1"}, True),
        ({**HOSTED, "model_base_url": "https://API.OpenAI.com."}, True),
        ({**HOSTED, "model_base_url": "http://litellm:4000"}, False),
        ({**HOSTED, "model_base_url": "http://litellm:4000", "model_outside": True}, True),
    ],
)
def test_a_model_is_outside_by_its_address_or_where_that_is_said(given: dict[str, object], outside: bool) -> None:
    assert settings(**given).model_is_outside is outside


@pytest.mark.parametrize("address", ["https://bücher.example/v1", "http://ollama。svc", "http://１２７.0.0.1"])
def test_a_name_that_is_not_ascii_is_no_address_at_all(address: str) -> None:
    with pytest.raises(SettingsError):
        settings(model_base_url=address)


@pytest.mark.parametrize(
    ("given", "model", "outside"),
    [
        ({}, "nomic-embed-text", False),
        ({"ollama_host": "http://embed.example.com"}, "nomic-embed-text", True),
        ({"model_base_url": "https://api.example.com/v1"}, "nomic-embed-text", False),
        ({"model_outside": True}, "nomic-embed-text", True),
        ({"model_outside": True, "model_base_url": "http://proxy.svc:8080"}, "nomic-embed-text", False),
        ({"model_outside": True, "model_base_url": "http://127.0.0.1:11434"}, "nomic-embed-text", True),
        ({"model_outside": True, "model_base_url": "http://localhost:11434/v1"}, "nomic-embed-text", True),
        ({"model_outside": True, "model_base_url": "http://localhost:11435/v1"}, "nomic-embed-text", False),
        ({}, "embed-cloud", True),
        ({}, "embed:cloud", True),
    ],
)
def test_an_embedder_is_outside_by_its_address_its_name_or_as_the_same_proxy(
    given: dict[str, object], model: str, outside: bool
) -> None:
    assert settings(**given).embedder_is_outside(model) is outside
