"""Shares the loop's turn out among sockets that are readable at the same moment.

The loop hands out all sockets that are readable before it looks for new ones: with ten thousand
clients that say something at once, whoever speaks next waits for all of them, a second or more.
So sockets are read for ROUND_MS; the others are not watched any more but wait here, and are read
between what the loop finds in its next turns:

    readable: 1 2 3 ... 120 | 121 ... 10,000        turn over: put aside
              next turn:      121 ... 240 | then whoever has become readable meanwhile
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

ROUND_MS: Final = 8.0
"""How long sockets are read before the loop looks for new ones."""

CHECK_MASK: Final = 15
"""The clock is looked at with every sixteenth socket."""


class LoopTurn:
    """See the module; one for a loop. `call_soon` is the loop's."""

    __slots__ = ("_call_soon", "_clock", "_count", "_end_ms", "_is_armed", "_is_over", "_waiting")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], clock: "Clock") -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._count = 0
        self._end_ms = 0.0
        self._is_armed = False
        self._is_over = False
        self._waiting: deque[Connection] = deque()

    def admits(self, connection: "Connection") -> bool:
        """Whether a socket is read now; otherwise it has been put aside, to be read soon."""
        if self._is_over:
            connection.put_aside()
            self._waiting.append(connection)
            return False
        self._count += 1
        if not self._count & CHECK_MASK:
            now_ms = self._clock.monotonic_ms()
            if not self._is_armed:
                self._is_armed = True
                self._end_ms = now_ms + ROUND_MS
                self._call_soon(self._next)
            elif now_ms >= self._end_ms:
                self._is_over = True
        return True

    def _next(self) -> None:
        """The loop begins another turn: those first who have waited."""
        waiting = self._waiting
        self._is_over = False
        end_ms = self._clock.monotonic_ms() + ROUND_MS
        count = 0
        while waiting:
            try:
                waiting.popleft().take_up()
            except Exception:
                # As where the loop calls it: all others are still to be read.
                LOGGER.exception("deferred connection cannot be read")
            count += 1
            if not count & CHECK_MASK and self._clock.monotonic_ms() >= end_ms:
                break
        self._is_armed = bool(waiting)
        if waiting:
            self._end_ms = self._clock.monotonic_ms() + ROUND_MS
            self._call_soon(self._next)
