"""What a server, a connection or a client library says when it fails, in this package's errors."""

from __future__ import annotations

import json
import re
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
NOTHING_MORE = "its words are left out, as they may repeat the prompt; see its own log"
# What stands where a name belongs may be anything that was said, so of names only those that are ours are handed on.
_NAME = r"(?P<name>[A-Za-z0-9._:@/+-]{1,128})"
OUR_NAMES = frozenset(
    (
        *("model", "messages", "tools", "tool_choice", "stream", "stream_options"),
        *("max_tokens", "max_completion_tokens"),
        *("reasoning_effort", "think", "keep_alive", "truncate", "shift"),
        *("num_ctx", "num_thread", "num_predict", "temperature", "seed"),
    )
)
# The messages of Ollama, llama.cpp and hosted models that say what is wrong and nothing of what was said.
HARMLESS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"server busy(?:, please try again\.)?(?: maximum pending requests exceeded)?",
        r"an error was encountered while running the model: unexpected EOF",
        r"model requires more system memory \([0-9.]{1,9} [KMGT]i?B\) than is available \([0-9.]{1,9} [KMGT]i?B\)",
        r"request \([0-9]{1,9} tokens\) exceeds the available context size \([0-9]{1,9} tokens\)",
        r"exceeds (?:the )?(?:available |maximum )?context (?:length|size|window)",
        r"maximum context length is [0-9]{1,9} tokens",
        r"does not support (?:tools|thinking|chat)",
        r"invalid (?:think|reasoning) value",
        r"think must be a boolean or string",
        r"time: invalid duration",
        rf'option "{_NAME}" must be of type (?:integer|number|float32|float64|string|boolean|array|object)',
        r"invalid format",
        rf"model [\"']?{_NAME}[\"']? not found",
        rf"[\"']?{_NAME}[\"']? (?:model )?(?:does not exist|is not available)",
        r"try pulling it first",
        r"404 page not found",
        r"invalid model name",
        r"(?:model|messages?) is required",
        r"missing request body",
        r"unexpected EOF",
        r"no space left on device",
        r"file does not exist",
        r"max retries exceeded",
        rf"unsupported (?:parameter|value): '{_NAME}'",
        rf"unrecognized request argument supplied: {_NAME}$",
        rf"invalid value for '{_NAME}'",
        r"rate limit (?:reached|exceeded)",
        r"you exceeded your current quota",
        r"bad gateway|service unavailable|gateway time-?out",
    )
]
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
    model: str | None,
    retry_after_s: float | None,
) -> GatewayError:
    """Return the error for an answer with a status that is no success, or with an error in place of an answer."""
    said = said_by(words)
    if status in (401, 403) and server.provider is Provider.OLLAMA:
        return Unauthorized(
            f"{server.address} answered {status}: it does not let this client in (a proxy before it, or Ollama's own check of "
            "the host name)"
        )
    if status in (401, 403):  # what is said then can have a part of the key in it
        what = model or "the list of models"
        return Unauthorized(f"{server.address} answered {status}: MODEL_API_KEY is not accepted, or may not use {what}")
    if status == 429:
        return RateLimited(f"{server.address} answers 429, too many requests or tokens", retry_after_s=retry_after_s)
    if status == 503 and "busy" in said.lower():
        return ModelBusy(f"{server.address} has its queue full: {said}", retry_after_s=retry_after_s)
    if 300 <= status < 400:
        return InvalidRequest(f"{server.address} sends elsewhere ({status}); give MODEL_BASE_URL the address itself")
    if status == 408 or (status >= 500 and status != 501 and not _WRONG_OPTION.search(said)):
        return ModelUnavailable(f"{server.address} failed on its side ({status}): {said}", retry_after_s=retry_after_s)
    return InvalidRequest(_why_invalid(status, said, server=server, model=model))


def _why_invalid(status: int, said: str, *, server: Server, model: str | None) -> str:
    is_about_a_model = model is not None and (model in said or "model" in said.lower())
    if status == 404 and not (is_about_a_model and _NOT_THERE.search(said)):
        return f"nothing of the kind is served at {server.address} (404); check MODEL_BASE_URL"
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
        return ModelUnavailable(f"nothing answers at {server.address}{start}; check MODEL_BASE_URL", was_sent=False)
    if isinstance(error, httpx.TimeoutException):
        return ModelUnavailable(f"{server.address} accepts calls and does not answer in time")
    if isinstance(error, httpx.HTTPError):
        return ModelUnavailable(f"the connection to {server.address} was lost before the end of the answer")
    return ModelUnavailable(
        f"the answer of {server.address} cannot be read ({type(error).__name__}); is a model served there?"
    )


def cut_short(server: Server) -> GatewayError:
    """Return the error for an answer that stops without its end."""
    return ModelUnavailable(f"the answer of {server.address} stopped before its end; what came of it is no answer")


def said_by(words: str) -> str:
    """Return what a server says, as far as it is one of the messages that say nothing of prompt, answer or key.

    Anything else may repeat them, in any case, cut and encoding, and errors go to logs and screens.
    """
    for _ in range(3):
        inner = _message_in(words)
        if inner is None:
            break
        words = inner
    line = " ".join(words[:MOST_READ].split())
    known: list[str] = []
    for pattern in HARMLESS:
        match = pattern.search(line)
        said = "" if match is None else _without_its_name(match)
        if said and not any(said in other for other in known):
            known.append(said)
    return "; ".join(known)[:MOST_WORDS].rstrip() or NOTHING_MORE


def _without_its_name(match: re.Match[str]) -> str:
    name = match.groupdict().get("name")
    if name is None or name in OUR_NAMES:
        return match[0]
    begins, ends = (at - match.start() for at in match.span("name"))
    return f"{match[0][:begins]}…{match[0][ends:]}"


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
