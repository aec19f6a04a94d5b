"""Watcher lists of delayed operations, and their completion in slices of the event loop.

    an event ──check()──> all watched operations are due
       due ──try_due──> satisfied: completed        (DelayedOperation.try_complete)
         │      └──> not yet: waits for the next time
         └──the slice is used up──> the rest in the loop's next iterations, in order

A hundred thousand requests may wait for one partition, and answering one costs some 17 us: one
append would hold the loop for 1.7 s. So due operations are tried for SLICE_MS, then it yields to
the loop. After another event meanwhile, those that were tried already are due again; no event is
lost, and none is tried twice before all were tried once. Keys with due operations are served round
robin, QUANTUM requests of each.

Everything happens on the loop's thread.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from broker.replicas.purgatory import DelayedOperation
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

SLICE_MS: Final = 2.0
"""How long completing operations holds the loop; the last one may exceed it."""

QUANTUM: Final = 16
"""Requests of one key that are tried before the next key's."""

_SWEEP_FROM: Final = 16


class Due(Protocol):
    """What has operations to be tried or settled when the waker comes to it.

    Attributes:
        is_queued: Set by the waker: it is in its queue.
    """

    is_queued: bool

    def begin(self) -> None:
        """An event has happened."""
        ...

    def try_due(self, clock: "Clock", end_ms: float) -> bool:
        """Try some, one at least, and not beyond `end_ms`; whether none is due any more."""
        ...


class Watchers:
    """The operations that are watched under one key."""

    __slots__ = (
        "_again",
        "_at",
        "_due",
        "_is_trying",
        "_operations",
        "_sweep_at",
        "_waker",
        "is_queued",
    )

    def __init__(self, waker: "Waker") -> None:
        self._waker = waker
        self._operations: list[DelayedOperation] = []
        self._sweep_at = _SWEEP_FROM
        # Those that are being tried, from `_at` on; `_again`: all others are due as well.
        self._due: list[DelayedOperation] = []
        self._at = 0
        self._again = False
        # One is out of the lists: it will be back if it was tried in vain.
        self._is_trying = False
        # Set by the waker: these are in its queue.
        self.is_queued = False

    def __len__(self) -> int:
        return len(self._operations) + len(self._due) - self._at

    @property
    def is_empty(self) -> bool:
        """Whether an event would change nothing."""
        return not (self._operations or self._due or self._is_trying)

    def add(self, operation: "DelayedOperation") -> None:
        """Watch. Completed ones are dropped when the list has doubled since the last sweep."""
        operations = self._operations
        if len(operations) >= self._sweep_at:
            operations[:] = [o for o in operations if not o.completed]
            self._sweep_at = max(_SWEEP_FROM, 2 * len(operations))
        operations.append(operation)

    def check(self) -> None:
        """Try to complete each operation again after an event, now or in the next iterations."""
        operations = self._operations
        if len(operations) == 1 and not self._due and not self._waker.is_busy:
            # The fast path: most long polls are those of one consumer of a partition.
            self._try_only()
        elif operations or self._due:
            self._waker.wake((self,))

    def check_quick(self) -> bool:
        """Try the one operation there is within the event itself; False: it is for `check`, later.

        Only one that `is_quick`: the event's own caller waits for it.
        """
        operations = self._operations
        if (
            len(operations) != 1
            or not operations[0].is_quick
            or self._due
            or self._is_trying
            or self._waker.is_busy
        ):
            return False
        self._try_only()
        return True

    def _try_only(self) -> None:
        operations = self._operations
        operation = operations.pop()
        before, self._is_trying = self._is_trying, True
        if not operation.completed and not _try(operation):
            operations.append(operation)
        self._is_trying = before

    def begin(self) -> None:
        """Make all operations due; for the waker."""
        if self._due:
            self._again = True
        else:
            self._due, self._operations = self._operations, self._due

    def try_due(self, clock: "Clock", end_ms: float) -> bool:
        """Try due operations, QUANTUM at most and not beyond `end_ms`; for the waker.

        At least one is tried. Completing may park new operations meanwhile, or call `check`.

        Returns:
            Whether none is due any more.
        """
        due = self._due
        left = QUANTUM
        while self._at < len(due):
            operation = due[self._at]
            self._at += 1
            if not operation.completed and not _try(operation):
                self._operations.append(operation)
            left -= 1
            if self._at < len(due) and (not left or clock.monotonic_ms() >= end_ms):
                return False
        due.clear()
        self._at = 0
        if self._again:
            self._again = False
            self._due, self._operations = self._operations, due
            return not self._due
        return True

    def expire(self) -> None:
        """Expire every operation: the broker stops."""
        operations = self._due[self._at :] + self._operations
        self._operations = []
        self._due = []
        self._at = 0
        self._again = False
        for operation in operations:
            operation.complete(expired=True)


def _try(operation: "DelayedOperation") -> bool:
    """Try to complete an operation; one that raises is no longer watched."""
    try:
        return operation.try_complete()
    except Exception:
        LOGGER.exception("delayed operation failed")
        return True


class Waker:
    """Completes due operations in slices; see the module. `call_soon` is the loop's.

    Attributes:
        is_busy: Operations are due already.
        turns: How often the rest was left to another iteration.
    """

    __slots__ = ("_call_soon", "_clock", "_queue", "is_busy", "turns")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], clock: "Clock") -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._queue: deque[Due] = deque()
        self.is_busy = False
        self.turns = 0

    def wake(self, all_due: Iterable[Due]) -> None:
        """Try to complete the operations: at once, unless others are due, for one slice."""
        queue = self._queue
        for watchers in all_due:
            watchers.begin()
            if not watchers.is_queued:
                watchers.is_queued = True
                queue.append(watchers)
        if queue and not self.is_busy:
            self._run()

    def _run(self) -> None:
        queue = self._queue
        end_ms = self._clock.monotonic_ms() + SLICE_MS
        self.is_busy = True
        while queue:
            watchers = queue.popleft()
            # Queued again by an event while they were tried.
            watchers.is_queued = False
            if not watchers.try_due(self._clock, end_ms) and not watchers.is_queued:
                watchers.is_queued = True
                queue.append(watchers)
            if queue and self._clock.monotonic_ms() >= end_ms:
                self.turns += 1
                self._call_soon(self._run)
                return
        self.is_busy = False
