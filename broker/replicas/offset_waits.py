"""Operations that wait until a partition has reached an offset, in order of that offset.

With several replicas every Produce with acks=all waits, so what counts is the cost of those that
are completed: those behind them are not looked at.

    add ──> [ 100 | 103 | 103 | 110 ] ──reached(104)──> the first three are settled with NONE
                                      ──fail(code)────> all are settled with `code`

A hundred thousand may be settled by one event: the waker does it in slices of the loop. What an
event has decided about an operation stands, whatever happens before its turn comes.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.runtime.watchers import QUANTUM
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.runtime.watchers import Waker
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

_SWEEP_FROM: Final = 64

_NONE: Final = ErrorCode.NONE
"""Looked up once, for each record that is acknowledged."""


class Waits(Protocol):
    """An operation that waits for offsets of partitions.

    Attributes:
        completed: It waits no longer, and is dropped from here without being settled.
        is_internal: It is a coordinator's, whose memory has to agree with the log: it ends with
            the leader epoch in which it began, and not because the ISR has become small.
    """

    completed: bool
    is_internal: bool

    # Any: what an operation calls its parts is its own affair.
    def settle(self, part: Any, code: ErrorCode) -> None:
        """One of its parts has reached its offset (NONE), or never will."""
        ...


class OffsetWaits:
    """See the module. `is_queued` is the waker's."""

    __slots__ = ("_reached", "_settled", "_sweep_at", "_waiting", "_waker", "is_queued")

    def __init__(self, waker: "Waker") -> None:
        self._waker = waker
        # (end offset, operation, its part), ascending.
        self._waiting: deque[tuple[int, Waits, Any]] = deque()
        self._reached = -1
        # Those that are decided, with their codes, before those that are reached.
        self._settled: deque[tuple[Waits, Any, ErrorCode]] = deque()
        self._sweep_at = _SWEEP_FROM
        self.is_queued = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._settled)

    def add(self, end_offset: int, operation: Waits, part: Any) -> None:
        """Wait for an offset that has not been reached.

        Completed ones are dropped when their number has doubled since the last time.
        """
        waiting = self._waiting
        if len(waiting) >= self._sweep_at:
            self._waiting = waiting = deque(one for one in waiting if not one[1].completed)
            self._sweep_at = max(_SWEEP_FROM, 2 * len(waiting))
        if waiting and waiting[-1][0] > end_offset:
            # A retry of a batch that others were appended behind.
            at = len(waiting)
            while at and waiting[at - 1][0] > end_offset:
                at -= 1
            waiting.insert(at, (end_offset, operation, part))
        else:
            waiting.append((end_offset, operation, part))

    def reached(self, offset: int) -> None:
        """Settle all that wait for `offset` or an earlier one."""
        waiting = self._waiting
        if not waiting or waiting[0][0] > offset:
            return
        self._reached = offset
        if self._waker.is_busy or (len(waiting) > 1 and waiting[1][0] <= offset):
            self._waker.wake((self,))
        else:
            # The fast path: one producer.
            _, operation, part = waiting.popleft()
            if not operation.completed:
                _settle(operation, part, _NONE)

    def fail(self, code: ErrorCode, *, from_offset: int = -1) -> None:
        """Settle with `code` all that wait for an offset above `from_offset`.

        Offsets above it may be assigned again.
        """
        self._end(code, lambda end_offset, _: end_offset > from_offset)

    def fail_where(self, code: ErrorCode, *, is_internal: bool) -> None:
        """Settle with `code` those of coordinators, or those of clients."""
        self._end(code, lambda _, operation: operation.is_internal is is_internal)

    def _end(self, code: ErrorCode, ends: "Callable[[int, Waits], bool]") -> None:
        kept: deque[tuple[int, Waits, Any]] = deque()
        for one in self._waiting:
            end_offset, operation, part = one
            if end_offset <= self._reached:
                self._settled.append((operation, part, ErrorCode.NONE))
            elif ends(end_offset, operation):
                self._settled.append((operation, part, code))
            else:
                kept.append(one)
        self._waiting = kept
        self._reached = -1
        if self._settled:
            self._waker.wake((self,))

    # -- for the waker ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Nothing to do: what is due is known by its offset, or is in `_settled`."""

    def try_due(self, clock: "Clock", end_ms: float) -> bool:
        """Settle what is due, QUANTUM at most and not beyond `end_ms`; whether nothing is left."""
        settled = self._settled
        for _ in range(QUANTUM):
            if settled:
                operation, part, code = settled.popleft()
            elif self._waiting and self._waiting[0][0] <= self._reached:
                _, operation, part = self._waiting.popleft()
                code = ErrorCode.NONE
            else:
                return True
            if not operation.completed:
                _settle(operation, part, code)
                if clock.monotonic_ms() >= end_ms:
                    break
        return not settled and not (self._waiting and self._waiting[0][0] <= self._reached)


# Any: see `Waits`.
def _settle(operation: Waits, part: Any, code: ErrorCode) -> None:
    """Settle a part; what goes wrong with one operation does not keep the others waiting."""
    try:
        operation.settle(part, code)
    except Exception:
        LOGGER.exception("delayed operation failed")
