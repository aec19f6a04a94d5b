"""What is left for the end of the loop's turn, when every socket that was readable has been read.

    requests of one turn, of any connection ──┬─ call(work) ────────> work gathered meanwhile:
                                              │                       one append for many commits
                                              └─ call_last(send) ───> one send a connection for all
                                                                      answers that came of it

Nothing waits for it: when the loop has nothing else to do, the turn ends at once.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

TURN_MS: Final = 4.0
"""How long the end of a turn may take itself; what is left is done after others had theirs."""

Work = Callable[[], None]


class TurnEnd:
    """See the module. `call_soon` is the loop's."""

    __slots__ = ("_call_soon", "_clock", "_is_due", "_last", "_work")

    def __init__(self, call_soon: Callable[[Work], object], clock: "Clock") -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._is_due = False
        self._work: deque[Work] = deque()
        self._last: deque[Work] = deque()

    def call(self, work: Work) -> None:
        """Do `work` at the end of this turn."""
        self._work.append(work)
        self._arm()

    def call_last(self, work: Work) -> None:
        """Do `work` at the end of this turn, when all other work has been done."""
        self._last.append(work)
        self._arm()

    def _arm(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._run)

    def _run(self) -> None:
        work, last = self._work, self._last
        end_ms = self._clock.monotonic_ms() + TURN_MS
        while work and self._clock.monotonic_ms() < end_ms:
            _do(work.popleft())
        # Who has its answers may go on with requests that had to wait: for another end of a turn.
        self._is_due = False
        for _ in range(len(last)):
            _do(last.popleft())
        if work:
            self._arm()


def _do(work: Work) -> None:
    """One that fails must not keep the others from being answered."""
    try:
        work()
    except Exception:
        LOGGER.exception("work at the end of an event loop iteration failed")
