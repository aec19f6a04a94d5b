"""Deferred records: written with the next append of their log, or after a bounded delay.

A Complete record has nothing that a reader of the log could not derive: after the Prepare record it
writes the markers, finds that they are there, and goes on. So it need not be
written at once. A producer that continues causes the next record within milliseconds, and both are
one append; for an idle one the record is written after the delay:

    held ──> the log's next record comes ──> written before it, in one batch
       ├───> DEFER_MS to twice DEFER_MS ─────> written, one log in each iteration of the loop
       ├───> as many as a batch should have > written
       ├───> refused ────> held again, up to RETRY_MAX_MS: a topic may lack replicas for hours
       └───> the coordinator stops ────────> written

No response that depends on the record is sent before it is written.
"""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from broker.runtime.timer import Timer, TimerHandle

logger = logging.getLogger(__name__)

DEFER_MS: Final = 100.0
"""Least delay. Who commits ten times a second, as Kafka Streams does (`commit.interval.ms` with
exactly-once), causes the next append sooner."""

RETRY_MS: Final = 20.0
"""Half of the delay of records that were refused once; doubled with each refusal."""

RETRY_MAX_MS: Final = 1_000.0
"""Longest delay of records that were refused."""


class HoldingLog(Protocol):
    """A log with deferred records."""

    def write_held(self) -> None:
        """Write the deferred records now, if there still are any."""
        ...


class DeferredRecords:
    """Logs with deferred records; two generations of them share one timer.

    Those whose records were refused have one each: a shard of the topic has one log.
    """

    __slots__ = ("_due", "_handle", "_new", "_refused", "_soon", "_timer", "_writing")

    def __init__(
        self, timer: Timer, soon: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        """No log yet.

        Args:
            timer: For the delays.
            soon: Calls back in the loop's next iteration, after what has become readable meanwhile:
                a request waits for the records of one log, not for those of fifty. None: those that
                are due are written at once.
        """
        self._timer = timer
        self._soon = soon
        # Ordered, and each log once.
        self._new: dict[HoldingLog, None] = {}
        self._due: dict[HoldingLog, None] = {}
        self._refused: dict[HoldingLog, TimerHandle] = {}
        # Their time has come; at most as many as there are logs.
        self._writing: deque[HoldingLog] = deque()
        self._handle: TimerHandle | None = None

    def add(self, log: HoldingLog, refusals: int = 0) -> None:
        """Register `log`, which defers its first record, or again what was refused so often."""
        if refusals:
            self._cancel(log)
            delay_ms = min(RETRY_MS * 2 ** min(refusals, 10), RETRY_MAX_MS)
            self._refused[log] = self._timer.call_later_ms(delay_ms, partial(self._retry, log))
            return
        # What it had deferred before was written with other records: its time begins anew.
        self._due.pop(log, None)
        self._new[log] = None
        if self._handle is None:
            self._handle = self._timer.call_later_ms(DEFER_MS, self._pass)

    def _pass(self) -> None:
        due, self._due, self._new = self._due, self._new, {}
        self._handle = None
        is_writing = bool(self._writing)
        self._writing.extend(due)
        if not is_writing:
            self._write_next()
        if self._handle is None and (self._due or self._new):
            self._handle = self._timer.call_later_ms(DEFER_MS, self._pass)

    def _write_next(self) -> None:
        while self._writing:
            _write(self._writing.popleft())
            if self._writing and self._soon is not None:
                self._soon(self._write_next)
                return

    def _retry(self, log: HoldingLog) -> None:
        del self._refused[log]
        _write(log)

    def _cancel(self, log: HoldingLog) -> None:
        handle = self._refused.pop(log, None)
        if handle is not None:
            handle.cancel()

    def stop(self) -> None:
        """Write all deferred records, and stop the timers."""
        for log in (*self._writing, *self._due, *self._new, *self._refused):
            _write(log)
        self._writing.clear()
        self._due.clear()
        self._new.clear()
        for log in list(self._refused):
            self._cancel(log)
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def _write(log: HoldingLog) -> None:
    try:
        log.write_held()
    except Exception:
        # The other logs are still written, and a stop completes. What is lost follows from what
        # was written before it.
        logger.exception("deferred records could not be appended")
