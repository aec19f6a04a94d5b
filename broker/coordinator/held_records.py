"""Records that may wait for company, and for how long.

A Complete record tells a reader of the log nothing that he could not do for himself: after the
Prepare record he writes the markers, finds that they are there, and goes on. So it need not be
written at once. A producer that goes on has its next record behind it in a moment, and both are one
append; for one that rests the record is written when its time is up:

    held ──> the log's next record comes ──> written before it, in one batch
       ├───> HOLD_MS to twice HOLD_MS ─────> written
       ├───> as many as a batch should have > written
       └───> the coordinator stops ────────> written

Nobody is told anything before that depends on it.
"""

import logging
from typing import Final, Protocol

from broker.runtime.timer import Timer, TimerHandle

logger = logging.getLogger(__name__)

HOLD_MS: Final = 20.0
"""The least time to wait. Producers that commit without a pause come back sooner."""


class HoldingLog(Protocol):
    """A log that holds records back."""

    def write_held(self) -> None:
        """Write them now, if there still are any."""
        ...


class HeldRecords:
    """Logs that hold records back; two generations of them share one timer."""

    __slots__ = ("_due", "_handle", "_new", "_timer")

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        # Ordered, and each log once.
        self._new: dict[HoldingLog, None] = {}
        self._due: dict[HoldingLog, None] = {}
        self._handle: TimerHandle | None = None

    def add(self, log: HoldingLog) -> None:
        """`log` holds back its first record, or again what was refused."""
        self._new[log] = None
        if self._handle is None:
            self._handle = self._timer.call_later_ms(HOLD_MS, self._pass)

    def _pass(self) -> None:
        due, self._due, self._new = self._due, self._new, {}
        self._handle = None
        for log in due:
            _write(log)
        if self._handle is None and (self._due or self._new):
            self._handle = self._timer.call_later_ms(HOLD_MS, self._pass)

    def stop(self) -> None:
        """Have everything written, and wait for nothing any more."""
        for log in (*self._due, *self._new):
            _write(log)
        self._due.clear()
        self._new.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def _write(log: HoldingLog) -> None:
    try:
        log.write_held()
    except Exception:
        # All others still have their turn, and a stop its end. What is lost follows from what was
        # written before it.
        logger.exception("deferred records could not be appended")
