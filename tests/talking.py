"""Both kinds of server as a test answers for them, and gateways that ask them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from conftest import Database
from psycopg import sql
from psycopg.rows import dict_row
from wire import Answer, Wire, as_json, dripped, lines

from memory_core.config import Provider, Settings, settings
from memory_core.db.engine import engine_for
from memory_core.gateway.conversation import Message, Role, Tool
from memory_core.gateway.gateway import Gateway
from memory_core.gateway.servers import close_servers
from memory_core.journal import CallJournal

KEY = "sk-Zq9vTop3Secret7key"
PROMPT = "Zebrafinch asks what the weather is in Paris"  # its first word is nowhere but in a prompt
MODEL = "smollm2:135m"
SLACK_S = 1.5  # of a busy machine, over a deadline
SHOWS_TOOLS = as_json({"capabilities": ["completion", "tools"], "model_info": {}})
SHOWS_THINKING = as_json({"capabilities": ["completion", "tools", "thinking"], "model_info": {}})
SHOWS_NEITHER = as_json({"capabilities": ["completion"], "model_info": {}})
WEATHER = Tool(
    name="get_weather",
    description="Get the current weather for a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a server says in one answer."""

    pieces: tuple[str, ...] = ("Sun", "ny.")
    calls: tuple[dict[str, Any], ...] = ()  # name, arguments, id, as the kind of server writes them
    reason: str | None = "stop"  # None: the end is missing
    prompt_tokens: int = 50
    output_tokens: int = 2
    load_ms: float = 2
    more: tuple[str, ...] = field(default=())  # lines after these


class Native:
    """Ollama's own API."""

    provider = Provider.OLLAMA
    path = "/api/chat"
    content_type = "application/x-ndjson"

    def lines(self, said: Said) -> list[str]:
        parts: list[dict[str, Any]] = [self._part({"content": piece}) for piece in said.pieces]
        if said.calls:
            functions = [{"function": {k: v for k, v in call.items() if k != "id"}} for call in said.calls]
            parts.append(self._part({"content": "", "tool_calls": functions}))
        if said.reason is not None:
            counts = {
                "total_duration": int(said.load_ms * 1e6) + 7_000_000,
                "prompt_eval_count": said.prompt_tokens,
                "eval_count": said.output_tokens,
                "load_duration": int(said.load_ms * 1e6),
                "prompt_eval_duration": 3_000_000,
                "eval_duration": 4_000_000,
            }
            parts.append(self._part({"content": ""}, done=True, done_reason=said.reason, **counts))
        return [*map(json.dumps, parts), *said.more]

    def error_line(self, words: str) -> str:
        return json.dumps({"error": words})

    def error_body(self, words: str) -> str:
        return json.dumps({"error": words})

    def _part(self, message: dict[str, Any], *, done: bool = False, **more: Any) -> dict[str, Any]:
        message = {"role": "assistant", **message}
        return {"model": MODEL, "created_at": "2026-11-30T11:07:41Z", "message": message, "done": done, **more}

    def settings(self, url: str, **changes: Any) -> Settings:
        return _settings(**{"model_base_url": url, "model_fast": MODEL, **changes})

    def __repr__(self) -> str:
        return "ollama"


class Hosted:
    """Chat completions."""

    provider = Provider.OPENAI
    path = "/v1/chat/completions"
    content_type = "text/event-stream"

    def lines(self, said: Said) -> list[str]:
        deltas: list[dict[str, Any]] = [{"content": piece} for piece in said.pieces]
        for place, call in enumerate(said.calls):
            function = {"name": call["name"], "arguments": _written(call["arguments"])}
            deltas.append(
                {"tool_calls": [{"index": place, "id": call.get("id"), "type": "function", "function": function}]}
            )
        chunks = [self._chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        if said.reason is not None:
            usage = {
                "prompt_tokens": said.prompt_tokens,
                "completion_tokens": said.output_tokens,
                "total_tokens": said.prompt_tokens + said.output_tokens,
            }
            chunks.append(self._chunk([{"index": 0, "delta": {}, "finish_reason": said.reason}]))
            chunks.append(self._chunk([], usage=usage))
        events = [f"data: {json.dumps(chunk)}" for chunk in chunks]
        events += said.more
        if said.reason is not None:
            events.append("data: [DONE]")
        return [line for event in events for line in (event, "")]

    def error_line(self, words: str) -> str:
        return f"data: {json.dumps({'error': {'message': words, 'type': 'api_error', 'code': None}})}"

    def error_body(self, words: str) -> str:
        return json.dumps({"error": {"message": words, "type": "invalid_request_error", "code": None}})

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": MODEL,
            "choices": choices,
            **more,
        }

    def settings(self, url: str, **changes: Any) -> Settings:
        models = dict.fromkeys(("model_fast", "model_balanced", "model_deep"), MODEL)
        changes = {"model_tokens_per_minute": 1_000_000, **changes}
        return _settings(model_provider="openai", model_base_url=url, **{**models, **changes})

    def __repr__(self) -> str:
        return "openai"


Kind = Native | Hosted
NATIVE, HOSTED = Native(), Hosted()
KINDS: tuple[Kind, ...] = (NATIVE, HOSTED)


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _settings(**changes: Any) -> Settings:
    return settings(**{"model_api_key": KEY, "memory_embedder": "none", "model_max_output_tokens": 200, **changes})


def says(kind: Kind, said: Said | None = None, *, pause_s: float = 0, end: str = "whole") -> Answer:
    """Answer as this kind of server does."""
    return lines(*kind.lines(said or Said()), content_type=kind.content_type, pause_s=pause_s, end=end)


def drips(kind: Kind, *, pause_s: float) -> Answer:
    """Answer as this kind of server does, one byte at a time."""
    return dripped(*kind.lines(Said()), content_type=kind.content_type, pause_s=pause_s)


def gateway(database: Database, chosen: Settings, org_id: str = "acme") -> Gateway:
    """Return a gateway as another process of the organisation would have it: with a journal of its own."""
    return Gateway(chosen, CallJournal(engine_for(database.application), org_id))


def user(text: str = PROMPT) -> list[Message]:
    return [Message(role=Role.USER, content=text)]


def calls_on_record(database: Database, org_id: str = "acme") -> list[dict[str, Any]]:
    """Return the records of an organisation's calls, in the order in which they began."""
    with database.connect(row_factory=dict_row) as connection:
        query = "SELECT * FROM model_call WHERE org_id = %s ORDER BY started_at, call_id"
        return connection.execute(query, (org_id,)).fetchall()


@contextmanager
def away(database: Database) -> Iterator[None]:
    """Turn every connection of the application away, as a server at its limit does."""
    name = sql.Identifier(str(database.application.database))
    with database.connect(autocommit=True) as superuser:
        superuser.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 0").format(name))
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND usename = 'memory_app'"
        )
        try:
            yield
        finally:
            superuser.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT -1").format(name))


def without_calls(database: Database) -> Database:
    """Take the records of calls out of a database that tests share; journals may know its organisations already."""
    with database.connect() as connection:
        connection.execute("DELETE FROM model_call")
    return database


@contextmanager
def serving(*, show: Answer | None = None) -> Iterator[Wire]:
    """Yield a server for a gateway; afterwards no connection to it is left."""
    with Wire() as server:
        if show is not None:
            server.answers["/api/show"] = show
        yield server
        close_servers()


def only_record(database: Database, org_id: str = "acme") -> dict[str, Any]:
    """Return the record of an organisation's one call."""
    (kept,) = calls_on_record(database, org_id)
    return kept
