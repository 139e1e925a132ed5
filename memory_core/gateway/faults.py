"""What a server, a connection or a client library says when it fails, in this package's errors."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from memory_core.config import Provider, Settings
from memory_core.errors import (
    GatewayError,
    InvalidRequest,
    ModelBusy,
    ModelUnavailable,
    RateLimited,
    Unauthorized,
)

MOST_WORDS = 200  # characters of a server's own message that are handed on
MOST_READ = 4000  # … and that are looked at
QUOTE, LEAST_QUOTE = 12, 4  # letters in a row that are the prompt's: of a long one, of a short one
LEAST_SECRET = 8  # characters; no key that keeps anybody out is shorter
LONGEST_PAUSE_S = 86_400.0
_NOT_THERE = re.compile(r"not found|does not exist|no such model|unknown model|try pulling", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"exceed\w*.{0,40}context|context.{0,20}(?:length|size|window).{0,40}exceed|maximum context", re.I
)
_EFFORT = re.compile(r"support thinking|reasoning value|think value|reasoning_effort", re.IGNORECASE)
_WRONG_OPTION = re.compile(r"must be of type|invalid format", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Server:
    """The server that is asked, as its failures name it."""

    address: str
    provider: Provider
    key: str

    @classmethod
    def of(cls, settings: Settings) -> Server:
        """Return the configured one."""
        return cls(
            address=settings.model_address,
            provider=settings.model_provider,
            key=settings.model_api_key.get_secret_value(),
        )


def refused_with(
    status: int,
    words: str,
    *,
    server: Server,
    model: str,
    retry_after_s: float | None,
    prompt: Sequence[str] = (),
) -> GatewayError:
    """Return the error for an answer with a status that is no success, or with an error in place of an answer.

    What of the prompt a server repeats is left out of it: errors go to logs and screens.
    """
    said = said_by(words, server, prompt)
    if status in (401, 403) and server.provider is Provider.OLLAMA:
        return Unauthorized(
            f"{server.address} answered {status}: it does not let this client in (a proxy before it, or Ollama's own check of "
            "the host name)"
        )
    if status in (401, 403):  # what is said then can have a part of the key in it
        return Unauthorized(
            f"{server.address} answered {status}: MODEL_API_KEY is not accepted, or may not use {model}"
        )
    if status == 429:
        return RateLimited(f"{server.address} answers 429, too many requests or tokens", retry_after_s=retry_after_s)
    if status == 503 and "busy" in said.lower():
        return ModelBusy(f"{server.address} has its queue full: {said}", retry_after_s=retry_after_s)
    if 300 <= status < 400:
        return InvalidRequest(f"{server.address} sends elsewhere ({status}); give MODEL_BASE_URL the address itself")
    if status == 408 or (status >= 500 and status != 501 and not _WRONG_OPTION.search(said)):
        return ModelUnavailable(f"{server.address} failed on its side ({status}): {said}", retry_after_s=retry_after_s)
    return InvalidRequest(_why_invalid(status, said, server=server, model=model))


def _why_invalid(status: int, said: str, *, server: Server, model: str) -> str:
    if (
        status == 404
        and (server.provider is Provider.OPENAI or "page not found" in said)
        and not _NOT_THERE.search(said.replace("page not found", ""))
    ):
        return f"nothing is served at {server.address} (404); check MODEL_BASE_URL"
    if status == 404:
        pull = f"; run: python -m memory_core pull {model}" if server.provider is Provider.OLLAMA else ""
        return f"the model {model} is not on {server.address}{pull}"
    if _OVERFLOW.search(said):
        return f"the prompt does not fit the context of {model}: {said}; shorten it, or raise MODEL_NUM_CTX"
    if "support tools" in said:
        return f"{model} cannot call tools; name a model that can (ollama show {model} lists what it can do)"
    if _EFFORT.search(said):
        return f"MODEL_REASONING_EFFORT is set to what {model} does not take: {said}; unset it"
    return f"{server.address} does not take the request ({status}): {said}"


def unreachable(error: BaseException, *, server: Server) -> GatewayError:
    """Return the error for an exception of a connection or of a client library."""
    start = " (start it: ollama serve)" if server.provider is Provider.OLLAMA else ""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | ConnectionError):
        return ModelUnavailable(f"nothing answers at {server.address}{start}; check MODEL_BASE_URL")
    if isinstance(error, httpx.HTTPError):
        return ModelUnavailable(f"the connection to {server.address} was lost before the end of the answer")
    return ModelUnavailable(
        f"the answer of {server.address} cannot be read ({type(error).__name__}); is a model served there?"
    )


def cut_short(server: Server) -> GatewayError:
    """Return the error for an answer that stops without its end."""
    return ModelUnavailable(f"the answer of {server.address} stopped before its end; what came of it is no answer")


def said_by(words: str, server: Server, prompt: Sequence[str] = ()) -> str:
    """Return a server's own words as one short line: out of the JSON around them, without the key, without the prompt."""
    for _ in range(3):
        inner = _message_in(words)
        if inner is None:
            break
        words = inner
    words = _without(server.key, words[:MOST_READ])
    for text in prompt:
        words = _without_quotes(text, words)
    line = " ".join("".join(character if character.isprintable() else " " for character in words).split())
    return line[:MOST_WORDS] or "it says nothing more"


def _without_quotes(text: str, words: str) -> str:
    """Leave out of the words what they repeat of a text, however it is escaped or broken into lines."""
    letters = [(character, at) for at, character in enumerate(words) if character.isalnum()]
    said = "".join(character for character, _ in letters)
    asked = "".join(filter(str.isalnum, text))
    length = min(QUOTE, len(asked))
    if length < LEAST_QUOTE:
        return words
    kept = list(words)
    for start in range(len(said) - length + 1):
        if said[start : start + length] in asked:
            first, last = letters[start][1], letters[start + length - 1][1]
            kept[first : last + 1] = ["…", *[""] * (last - first)]
    return re.sub("…+", "…", "".join(kept))


def _without(key: str, words: str) -> str:
    for written in {key, json.dumps(key)[1:-1]} - {""}:
        if len(key) >= LEAST_SECRET:
            words = words.replace(written, "…")
        else:  # a placeholder such as x is a part of many words
            words = re.sub(rf"(?<![A-Za-z0-9]){re.escape(written)}(?![A-Za-z0-9])", "…", words)
    return words


def _message_in(words: str) -> str | None:
    with suppress(ValueError, RecursionError):
        value: Any = json.loads(words)
        for name in ("error", "message"):
            if isinstance(value, dict) and name in value:
                value = value[name]
                return value if isinstance(value, str) else json.dumps(value)
    return None


def retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Read a Retry-After header, of seconds or a date; None where there is none that can be read."""
    if header is None:
        return None
    seconds: float | None = None
    with suppress(ValueError, OverflowError, TypeError):
        seconds = float(header) if re.fullmatch(r"\s*[0-9]{1,12}(\.[0-9]+)?\s*", header) else None
        if seconds is None:
            when = parsedate_to_datetime(header)
            when = when if when.tzinfo else when.replace(tzinfo=UTC)
            seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return None if seconds is None else min(max(0.0, seconds), LONGEST_PAUSE_S)
