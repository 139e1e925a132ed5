"""How much of a prompt a server is likely to have in its cache: what this process sent it last begins alike."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from memory_core.gateway.conversation import Request


class SentPrefixes:
    """Remembers, for each organisation and model, digests of the beginnings of its last prompt; no text. Thread-safe.

    Organisations are kept apart, or one could confirm a guess at another's prompt.
    """

    def __init__(self) -> None:
        self._last: WeakKeyDictionary[object, dict[str, frozenset[bytes]]] = WeakKeyDictionary()
        self._remembering = threading.Lock()

    def mostly_known(self, request: Request, *, whose: object) -> bool | None:
        """Say whether the last prompt of the same sender began with the most of this one, and remember this one.

        None where nothing was sent to the model yet, so that nothing is known of its cache.
        """
        beginnings = list(_beginnings(request))
        with self._remembering:
            last = self._last.setdefault(whose, {})
            before = last.get(request.model)
            last[request.model] = frozenset(digest for digest, _ in beginnings)
        if before is None:
            return None
        shared = max((length for digest, length in beginnings if digest in before), default=0)
        return 2 * shared > beginnings[-1][1]


def _beginnings(request: Request) -> Iterator[tuple[bytes, int]]:
    said = repr(request.tools).encode("utf-8", "surrogatepass")
    digest, length = hashlib.sha256(said), len(said)
    for message in request.messages:
        said = repr((message.role.value, message.content, message.tool_calls)).encode("utf-8", "surrogatepass")
        digest.update(said)
        length += len(said)
        yield digest.digest(), length
