"""An answer read off the wire in a thread of its own, so that whoever waits for it can leave at any moment."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from memory_core.errors import GatewayError, ModelUnavailable
from memory_core.gateway.client import Client
from memory_core.gateway.conversation import Ending, Piece, Request
from memory_core.gateway.deadline import Deadline
from memory_core.gateway.transport import within

LOOK_UP_S = 0.05
LONGER_S = 600.0  # no caller forgets to leave; if one did, this is when its connection ends
AFTER_THE_END_S = 0.5  # a server that keeps the connection open after the end of its answer holds nobody up


class Reading:
    """One request being answered."""

    def __init__(self, client: Client, request: Request, deadline: Deadline) -> None:
        self._deadline = deadline
        # The connection has a time limit of its own: what still comes once the caller has left is read on, see `leave`.
        self._lease = Deadline(deadline.remaining_s() + LONGER_S)
        self._left = False
        self._items: queue.SimpleQueue[Piece | Ending | BaseException] = queue.SimpleQueue()
        self._when_over: Callable[[], None] | None = None
        self._is_over = False
        self._changing = threading.Lock()
        self.piece_count = 0
        threading.Thread(target=self._read, args=(client, request), name="model", daemon=True).start()

    def __iter__(self) -> Iterator[Piece | Ending]:
        """Yield what comes, the `Ending` last; raises a `GatewayError`, also once the deadline is over."""
        while True:
            try:
                item = self._items.get(timeout=LOOK_UP_S)
            except queue.Empty:
                self._deadline.check()
                continue
            if isinstance(item, BaseException):
                self._deadline.check()  # a connection that ended with the deadline says only that it ended
                raise item
            self.piece_count += 1
            yield item
            if isinstance(item, Ending):
                return
            self._deadline.check()

    def leave(self, *, drain_s: float) -> None:
        """Stop listening; what still comes is read for so long and thrown away, 0 to hang up at once."""
        self._left = True
        if drain_s:
            self._lease.shorten(drain_s)
        else:
            self._lease.cancel()

    def when_over(self, call: Callable[[], None]) -> None:
        """Call once nothing more comes: at once, where that is so already."""
        with self._changing:
            if not self._is_over:
                self._when_over = call
                return
        call()

    def _read(self, client: Client, request: Request) -> None:
        try:
            with within(self._lease):
                for item in client.pieces(request):
                    if isinstance(item, Ending):
                        self._lease.shorten(AFTER_THE_END_S)
                    if not self._left:
                        self._items.put(item)
        except GatewayError as error:
            self._items.put(error)
        except BaseException as error:  # also what ends a thread, or nobody would be told
            failure = ModelUnavailable(f"the model's client failed ({type(error).__name__})")
            failure.__cause__ = error
            self._items.put(failure)
        finally:
            with self._changing:
                self._is_over = True
                call = self._when_over
            if call is not None:
                call()
