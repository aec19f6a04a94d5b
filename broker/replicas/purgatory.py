"""Requests that wait for something to happen, or for their time to run out.

    parked ──try_complete() says yes──> completed ─┐
       │                                           ├─> on_complete(), exactly once
       └────────time is up──────────────> expired ─┘

An operation is watched by the things it waits for (a partition's `Watchers`); whoever changes such
a thing calls `Watchers.check()`. There is no task and no lock: everything happens on the loop's
thread.

A poll (Fetch, ShareFetch) waits for as long as its client likes, so its memory is the client's to
give away. How much of it one client gets is bounded three times:

    a connection   its requests are not read while `PARKED_MAX` are parked (`network.connection`)
    an address     a quarter of what all purgatories hold together (`ParkedByAddress`)
    a purgatory    `capacity`

What is beyond the last two is held back: nothing watches it, its connection is not read, and its
answer, with what is there by then, comes after HELD_BACK_MS.

Source of the idea: Kafka, DelayedOperationPurgatory.
"""

from typing import TYPE_CHECKING, Final

from broker.runtime.timer import Timer, TimerHandle

if TYPE_CHECKING:
    from broker.network.response import AnsweredConnection

WAIT_MAX_MS: Final = 300_000.0
"""Nobody waits longer, whatever it asks for: clients ask for half a second (`fetch.max.wait.ms`),
and 2^31 - 1 ms would be 24 days of our memory."""

HELD_BACK_MS: Final = 500.0
"""How long a poll that cannot be parked waits for its answer: `fetch.max.wait.ms`' default.
Answered at once, with nothing, its client would ask again at once, thousands of times a second."""


class DelayedOperation:
    """One waiting request. Subclasses say when it is satisfied and what happens then."""

    __slots__ = ("_connection", "_timer_handle", "completed", "is_held_back", "purgatory")

    def __init__(self) -> None:
        self.completed = False
        self.is_held_back = False
        self.purgatory: Purgatory | None = None
        self._connection: AnsweredConnection | None = None
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
            self.purgatory.left(self, expired=expired)
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
            self.purgatory.left(self, expired=False)

    def _expire(self) -> None:
        self.complete(expired=True)


class ParkedByAddress:
    """How many polls each address has parked, over all purgatories that share this."""

    __slots__ = ("counts", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.counts: dict[str, int] = {}


class Purgatory:
    """Counts and times the operations of one kind; `capacity` bounds them.

    Attributes:
        parked: Operations that wait.
        held_back: Polls that wait for their empty answer only.
        held_back_total: How many there have been.
    """

    __slots__ = (
        "_addresses",
        "_timer",
        "capacity",
        "completed",
        "expired",
        "held_back",
        "held_back_total",
        "name",
        "parked",
    )

    def __init__(
        self,
        name: str,
        timer: Timer,
        *,
        capacity: int,
        addresses: ParkedByAddress | None = None,
    ) -> None:
        """Nobody waits.

        Args:
            name: For the metrics.
            timer: For time-outs.
            capacity: Operations.
            addresses: Of whom polls are; default: no address has a bound of its own.
        """
        self.name = name
        self.capacity = capacity
        self.parked = 0
        self.held_back = 0
        self.held_back_total = 0
        self.completed = 0
        self.expired = 0
        self._timer = timer
        self._addresses = addresses or ParkedByAddress(capacity)

    def park(self, operation: DelayedOperation, timeout_ms: float) -> bool:
        """Let `operation` wait for at most `timeout_ms`, and never beyond WAIT_MAX_MS.

        False when the purgatory is full: the caller completes the operation at once.
        """
        if self.parked >= self.capacity:
            return False
        self.parked += 1
        operation.purgatory = self
        operation._timer_handle = self._timer.call_later_ms(
            timeout_ms if timeout_ms < WAIT_MAX_MS else WAIT_MAX_MS, operation._expire
        )
        return True

    def park_poll(
        self, operation: DelayedOperation, timeout_ms: float, connection: "AnsweredConnection"
    ) -> bool:
        """`park` for a request that waits for as long as its client likes.

        Returns:
            Whether things are to watch it. False: it is held back, its time will be up soon.
        """
        addresses = self._addresses
        host = connection.info.peer_host
        count = addresses.counts.get(host, 0)
        if count >= addresses.maximum or self.parked >= self.capacity:
            self._hold_back(operation, timeout_ms, connection)
            return False
        addresses.counts[host] = count + 1
        connection.parked += 1
        self.parked += 1
        operation._connection = connection
        operation.purgatory = self
        operation._timer_handle = self._timer.call_later_ms(
            timeout_ms if timeout_ms < WAIT_MAX_MS else WAIT_MAX_MS, operation._expire
        )
        return True

    def _hold_back(
        self, operation: DelayedOperation, timeout_ms: float, connection: "AnsweredConnection"
    ) -> None:
        """At most one of a connection, or the few that were read with it."""
        self.held_back += 1
        self.held_back_total += 1
        operation.purgatory = self
        operation.is_held_back = True
        operation._connection = connection
        connection.hold_back_polls()
        operation._timer_handle = self._timer.call_later_ms(
            min(timeout_ms, HELD_BACK_MS), operation._expire
        )

    def left(self, operation: DelayedOperation, *, expired: bool) -> None:
        """An operation has ended."""
        connection = operation._connection
        if operation.is_held_back:
            assert connection is not None
            self.held_back -= 1
            connection.admit_polls()
        else:
            self.parked -= 1
            if connection is not None:
                connection.parked -= 1
                counts = self._addresses.counts
                host = connection.info.peer_host
                left = counts[host] - 1
                if left:
                    counts[host] = left
                else:
                    del counts[host]
        if expired:
            self.expired += 1
        else:
            self.completed += 1
