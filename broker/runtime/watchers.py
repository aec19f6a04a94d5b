"""Who waits for a thing to change, and how all of them are woken without holding the loop.

    something has happened ──check()──> everybody who waits is due
       due ──look──> satisfied: answered            (DelayedOperation.try_complete)
         │      └──> not yet: waits for the next time
         └──the turn's time is up──> the rest in the loop's next turns, in order

A hundred thousand requests may wait for one partition, and answering one costs some 17 us: one
append would hold the loop for 1.7 s. So who is due is looked at for SLICE_MS, then others get their
turn. When something happens again meanwhile, those who have been looked at already are due once
more; no change is lost, and no one is looked at twice before everybody was looked at once. Between
the things of which somebody is due it goes round, QUANTUM requests of each.

Everything happens on the loop's thread.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.replicas.purgatory import DelayedOperation
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

SLICE_MS: Final = 2.0
"""How long the loop is held by waking, in a row; the request that is woken last may exceed it."""

QUANTUM: Final = 16
"""Requests that are looked at for one thing before it is another's turn."""

_SWEEP_FROM: Final = 16


class Watchers:
    """The operations that wait for one thing."""

    __slots__ = ("_again", "_at", "_due", "_operations", "_sweep_at", "_waker", "is_queued")

    def __init__(self, waker: "Waker") -> None:
        self._waker = waker
        self._operations: list[DelayedOperation] = []
        self._sweep_at = _SWEEP_FROM
        # Those that are being looked at, from `_at` on; `_again`: all others are due as well.
        self._due: list[DelayedOperation] = []
        self._at = 0
        self._again = False
        # The waker's: it has these in its queue.
        self.is_queued = False

    def __len__(self) -> int:
        return len(self._operations) + len(self._due) - self._at

    def add(self, operation: "DelayedOperation") -> None:
        """Watch. Completed ones are dropped when the list has doubled since the last sweep."""
        operations = self._operations
        if len(operations) >= self._sweep_at:
            operations[:] = [o for o in operations if not o.completed]
            self._sweep_at = max(_SWEEP_FROM, 2 * len(operations))
        operations.append(operation)

    def check(self) -> None:
        """Something has happened: let each operation look again, now or in the next turns."""
        operations = self._operations
        if len(operations) == 1 and not self._due and not self._waker.is_busy:
            # The way of most long polls, one consumer of a partition, costs no more than it must.
            operation = operations.pop()
            if not operation.completed and not _try(operation):
                operations.append(operation)
        elif operations or self._due:
            self._waker.wake((self,))

    def begin(self) -> None:
        """For the waker: from now on everybody is due."""
        if self._due:
            self._again = True
        else:
            self._due, self._operations = self._operations, self._due

    def look(self, clock: "Clock", end_ms: float) -> bool:
        """For the waker: let those who are due look, QUANTUM at most and not beyond `end_ms`.

        At least one looks. Completing may park new operations meanwhile, or come back here through
        `check`.

        Returns:
            Whether nobody is due any more.
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

    def look_at_once(self) -> None:
        """Let each operation look now, however many there are: what they see is soon over."""
        operations = self._due[self._at :] + self._operations
        self._operations = []
        self._due = []
        self._at = 0
        self._again = False
        kept = [one for one in operations if not one.completed and not _try(one)]
        self._operations = kept + self._operations

    def expire(self) -> None:
        """Let every operation's time be up: the broker stops."""
        operations = self._due[self._at :] + self._operations
        self._operations = []
        self._due = []
        self._at = 0
        self._again = False
        for operation in operations:
            operation.complete(expired=True)


def _try(operation: "DelayedOperation") -> bool:
    """Let an operation look; one that fails is watched no longer, and does not harm the others."""
    try:
        return operation.try_complete()
    except Exception:
        LOGGER.exception("delayed operation failed")
        return True


class Waker:
    """Shares out the loop's time among all who are due; see the module. `call_soon` is the loop's.

    Attributes:
        is_busy: Somebody is due already.
        turns: How often the rest was left to another turn.
    """

    __slots__ = ("_call_soon", "_clock", "_queue", "is_busy", "turns")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], clock: "Clock") -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._queue: deque[Watchers] = deque()
        self.is_busy = False
        self.turns = 0

    def wake(self, all_due: Iterable[Watchers]) -> None:
        """Let those who wait look: at once, unless others are due already, while time lasts."""
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
            # Queued again by whoever has something to tell while they look.
            watchers.is_queued = False
            if not watchers.look(self._clock, end_ms) and not watchers.is_queued:
                watchers.is_queued = True
                queue.append(watchers)
            if queue and self._clock.monotonic_ms() >= end_ms:
                self.turns += 1
                self._call_soon(self._run)
                return
        self.is_busy = False
