"""Callbacks at the end of an event loop iteration, when every readable socket has been read.

    requests of one iteration, ───┬─ call(work) ────────> what was gathered meanwhile:
    of any connection             │                       one append for many commits
                                  └─ call_last(send) ───> one send a connection for all
                                                          answers that came of it

Nothing waits for it: when the loop has nothing else to do, the iteration ends at once.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

LIMIT_MS: Final = 4.0
"""How long callbacks may take; those that are left are called in the next iteration."""

Work = Callable[[], None]


class IterationEnd:
    """See the module. `call_soon` is the loop's."""

    __slots__ = ("_call_soon", "_clock", "_is_due", "_last", "_work")

    def __init__(self, call_soon: Callable[[Work], object], clock: "Clock") -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._is_due = False
        self._work: deque[Work] = deque()
        self._last: deque[Work] = deque()

    def call(self, work: Work) -> None:
        """Call `work` at the end of this iteration."""
        self._work.append(work)
        self._arm()

    def call_last(self, work: Work) -> None:
        """Call `work` at the end of this iteration, after all other work."""
        self._last.append(work)
        self._arm()

    def _arm(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._run)

    def _run(self) -> None:
        work, last = self._work, self._last
        end_ms = self._clock.monotonic_ms() + LIMIT_MS
        while work and self._clock.monotonic_ms() < end_ms:
            _call(work.popleft())
        # A connection whose answers have left may go on with requests that had to wait: these are
        # for the end of another iteration.
        self._is_due = False
        for _ in range(len(last)):
            _call(last.popleft())
        if work:
            self._arm()


def _call(work: Work) -> None:
    """Call `work`; a failure must not keep the others from being called."""
    try:
        work()
    except Exception:
        LOGGER.exception("work at the end of an event loop iteration failed")
