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
from memory_core.workers import in_background

LOOK_UP_S = 0.05
AFTER_THE_END_S = 0.5  # a server that keeps the connection open after the end of its answer holds nobody up

Arrived = tuple[float, Piece | Ending]  # the milliseconds since the call began, and what came then


class Reading:
    """One request being answered.

    The connection has a time limit of its own: the call's deadline, and `drain_s` more in which a server may finish an
    answer that nobody waits for any more. Whoever waits leaves at the deadline.
    """

    def __init__(self, client: Client, request: Request, deadline: Deadline, *, drain_s: float) -> None:
        self._deadline = deadline
        self._connection_deadline = Deadline(deadline.remaining_s() + drain_s)
        self._was_left = False
        self._items: queue.SimpleQueue[Arrived | BaseException] = queue.SimpleQueue()
        self._when_over: Callable[[], None] | None = None
        self._is_over = False
        self._changing = threading.Lock()
        in_background(lambda: self._read(client, request))

    def __iter__(self) -> Iterator[Arrived]:
        """Yield what comes, the `Ending` last; raises a `GatewayError`, also once the deadline is over.

        What came in time is yielded however late it is asked for.
        """
        while True:
            if self._deadline.is_cancelled:
                self._deadline.check()
            try:
                item = self._items.get(timeout=LOOK_UP_S)
            except queue.Empty:
                self._deadline.check()
                continue
            if isinstance(item, BaseException):
                self._deadline.check()  # a connection that ended with the deadline says only that it ended
                raise item
            yield item
            if isinstance(item[1], Ending):
                return

    def leave(self, *, drain_s: float) -> None:
        """Stop listening; what still comes is read for so long and thrown away, 0 to hang up at once."""
        self._was_left = True
        if drain_s:
            self._connection_deadline.shorten(drain_s)
        else:
            self._connection_deadline.cancel()

    def when_over(self, call: Callable[[], None]) -> None:
        """Call once nothing more comes: at once, where that is so already."""
        with self._changing:
            if not self._is_over:
                self._when_over = call
                return
        call()

    def _read(self, client: Client, request: Request) -> None:
        try:
            with within(self._connection_deadline):
                for item in client.pieces(request):
                    if isinstance(item, Ending):
                        self._connection_deadline.shorten(AFTER_THE_END_S)
                    if not self._was_left and self._deadline.remaining_s():
                        self._items.put((self._deadline.elapsed_ms(), item))
        except GatewayError as error:
            self._items.put(error)
        except BaseException as error:  # also what ends a thread, or nobody would be told
            self._items.put(ModelUnavailable(f"the model's client failed ({type(error).__name__})"))
        finally:
            with self._changing:
                self._is_over = True
                call = self._when_over
            if call is not None:
                call()
