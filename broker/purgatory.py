"""Requests that wait for something to happen, or for their time to run out.

    parked ──try_complete() says yes──> completed ─┐
       │                                           ├─> on_complete(), exactly once
       └────────time is up──────────────> expired ─┘

An operation is watched by the things it waits for (a partition's `Watchers`); whoever changes such
a thing calls `Watchers.check()`. There is no task and no lock: everything happens on the loop's
thread.

Source of the idea: Kafka, DelayedOperationPurgatory.
"""

import logging

from broker.timer import Timer, TimerHandle

LOGGER = logging.getLogger(__name__)


class DelayedOperation:
    """One waiting request. Subclasses say when it is satisfied and what happens then."""

    __slots__ = ("_timer_handle", "completed", "purgatory")

    def __init__(self) -> None:
        self.completed = False
        self.purgatory: Purgatory | None = None
        self._timer_handle: TimerHandle | None = None

    def try_complete(self) -> bool:
        """Look again; True when the operation is satisfied and has been completed by this call."""
        raise AssertionError("an operation says when it is satisfied")

    def on_complete(self, *, expired: bool) -> None:
        """Answer. Called exactly once."""
        raise AssertionError("an operation says what it does in the end")

    def complete(self, *, expired: bool = False) -> bool:
        """End the waiting; False when it had ended before."""
        if self.completed:
            return False
        self.completed = True
        if self._timer_handle is not None:
            self._timer_handle.cancel()
            self._timer_handle = None
        if self.purgatory is not None:
            self.purgatory.left(expired=expired)
        self.on_complete(expired=expired)
        return True

    def abandon(self) -> None:
        """The client has gone: stop waiting without an answer."""
        if self.completed:
            return
        self.completed = True
        if self._timer_handle is not None:
            self._timer_handle.cancel()
            self._timer_handle = None
        if self.purgatory is not None:
            self.purgatory.left(expired=False)

    def _expire(self) -> None:
        self.complete(expired=True)


class Watchers:
    """The operations that wait for one thing."""

    __slots__ = ("_operations", "_sweep_at")

    def __init__(self) -> None:
        self._operations: list[DelayedOperation] = []
        self._sweep_at = 16

    def __len__(self) -> int:
        return len(self._operations)

    def add(self, operation: DelayedOperation) -> None:
        """Watch. Completed ones are dropped when the list has doubled since the last sweep."""
        operations = self._operations
        if len(operations) >= self._sweep_at:
            operations[:] = [o for o in operations if not o.completed]
            self._sweep_at = max(16, 2 * len(operations))
        operations.append(operation)

    def check(self) -> None:
        """Something has happened: let each operation look again."""
        operations = self._operations
        if not operations:
            return
        self._operations = []
        kept = [o for o in operations if not o.completed and not _try(o)]
        if kept:
            # Completing may have parked new operations meanwhile: they stay, behind the older ones.
            self._operations = kept + self._operations

    def expire(self) -> None:
        """Let every operation's time be up: the broker stops."""
        operations, self._operations = self._operations, []
        for operation in operations:
            operation.complete(expired=True)


def _try(operation: DelayedOperation) -> bool:
    """Let an operation look; one that fails is watched no longer, and does not harm the others."""
    try:
        return operation.try_complete()
    except Exception:
        LOGGER.exception("waiting request failed")
        return True


class Purgatory:
    """Counts and times the operations of one kind; `capacity` bounds them.

    `park` answers False when the purgatory is full: the caller completes the operation at once,
    which for a fetch is an empty answer and never an error.
    """

    __slots__ = ("_timer", "capacity", "completed", "expired", "name", "parked")

    def __init__(self, name: str, timer: Timer, *, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.parked = 0
        self.completed = 0
        self.expired = 0
        self._timer = timer

    def park(self, operation: DelayedOperation, timeout_ms: float) -> bool:
        """Let `operation` wait for at most `timeout_ms`."""
        if self.parked >= self.capacity:
            return False
        self.parked += 1
        operation.purgatory = self
        operation._timer_handle = self._timer.call_later_ms(timeout_ms, operation._expire)
        return True

    def left(self, *, expired: bool) -> None:
        """An operation has ended."""
        self.parked -= 1
        if expired:
            self.expired += 1
        else:
            self.completed += 1
