"""The time that one event loop iteration may spend on reading sockets.

The loop calls back for all sockets that are readable before it polls for new ones: with ten
thousand clients that send at once, the next one to send waits for all of them, a second or more.
So sockets are read for BUDGET_MS; reads of the others are deferred, their sockets not watched, and
they are read between what the loop finds in its next iterations:

    readable: 1 2 3 ... 120 | 121 ... 10,000        budget used up: reads deferred
              next iteration: 121 ... 240 | then those that have become readable meanwhile
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

BUDGET_MS: Final = 8.0
"""How long sockets are read before the loop polls for new ones."""

CHECK_MASK: Final = 15
"""The clock is read with every sixteenth socket."""


class Readable(Protocol):
    """A socket that has bytes: `broker.network.connection.Connection`."""

    def defer_read(self) -> None:
        """Stop watching until `read_deferred`."""
        ...

    def read_deferred(self) -> None:
        """Read, and watch again."""
        ...


class ReadBudget:
    """See the module; one for a loop. `call_soon` is the loop's."""

    __slots__ = (
        "_call_soon",
        "_clock",
        "_count",
        "_deferred",
        "_end_ms",
        "_is_armed",
        "_is_used_up",
    )

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], clock: "Clock") -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._count = 0
        self._end_ms = 0.0
        self._is_armed = False
        self._is_used_up = False
        self._deferred: deque[Readable] = deque()

    def has_budget_for(self, readable: Readable) -> bool:
        """Whether a socket is read now; otherwise its read has been deferred."""
        if self._is_used_up:
            readable.defer_read()
            self._deferred.append(readable)
            return False
        self._count += 1
        if not self._count & CHECK_MASK:
            now_ms = self._clock.monotonic_ms()
            if not self._is_armed:
                self._is_armed = True
                self._end_ms = now_ms + BUDGET_MS
                self._call_soon(self._next)
            elif now_ms >= self._end_ms:
                self._is_used_up = True
        return True

    def _next(self) -> None:
        """Another iteration begins: deferred reads come first."""
        deferred = self._deferred
        self._is_used_up = False
        end_ms = self._clock.monotonic_ms() + BUDGET_MS
        count = 0
        while deferred:
            try:
                deferred.popleft().read_deferred()
            except Exception:
                # As where the loop calls it: all others are still to be read.
                LOGGER.exception("deferred connection cannot be read")
            count += 1
            if not count & CHECK_MASK and self._clock.monotonic_ms() >= end_ms:
                break
        self._is_armed = bool(deferred)
        if deferred:
            self._end_ms = self._clock.monotonic_ms() + BUDGET_MS
            self._call_soon(self._next)
