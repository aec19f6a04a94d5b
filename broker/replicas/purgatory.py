"""Purgatories: delayed operations, which wait for a condition or their timeout.

    parked ──try_complete() is True───> completed ─┐
       │                                           ├─> on_complete(), exactly once
       └────────timeout─────────────────> expired ─┘

An operation is watched under the keys it waits for (a partition's `Watchers`); an event calls
`Watchers.check()`. There is no task and no lock: everything happens on the loop's thread.

A poll (Fetch, ShareFetch) waits for as long as its client chooses, and needs memory meanwhile. The
memory of one client is bounded three times:

    a connection   its requests are not read while `PARKED_MAX` are parked (`network.connection`)
    an address     a quarter of what all purgatories hold together (`ParkedByAddress`)
    a purgatory    `capacity`

A poll beyond the last two is held back: it is not watched, its connection is not read, and it is
answered, with the records available then, after HELD_BACK_MS.

Source of the idea: Kafka, DelayedOperationPurgatory.
"""

from typing import TYPE_CHECKING, Final

from broker.runtime.timer import Timer, TimerHandle
from native.subclasses import mypyc_attr

if TYPE_CHECKING:
    from broker.network.response import AnsweredConnection

WAIT_MAX_MS: Final = 300_000.0
"""Longest wait, whatever the request has: clients send half a second (`fetch.max.wait.ms`), and
2^31 - 1 ms would hold memory for 24 days."""

HELD_BACK_MS: Final = 500.0
"""How long a poll that cannot be parked is held back: `fetch.max.wait.ms`' default. Answered empty
at once, its client would retry at once, thousands of times a second."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation:
    """A waiting request. Subclasses define when it is satisfied and how it completes.

    Attributes:
        is_quick: Trying it takes some microseconds, and changes nothing but its own answer: so it
            may be done within the append that it waits for.
    """

    __slots__ = (
        "_connection",
        "_timer_handle",
        "completed",
        "is_held_back",
        "is_quick",
        "purgatory",
    )

    def __init__(self) -> None:
        self.completed = False
        self.is_quick = False
        self.is_held_back = False
        self.purgatory: Purgatory | None = None
        self._connection: AnsweredConnection | None = None
        self._timer_handle: TimerHandle | None = None

    def try_complete(self) -> bool:
        """Complete the operation if it is satisfied; True when this call has completed it."""
        raise AssertionError("an operation defines when it is satisfied")

    def on_complete(self, *, expired: bool) -> None:
        """Answer. Called exactly once."""
        raise AssertionError("an operation defines how it completes")

    def complete(self, *, expired: bool = False) -> bool:
        """Complete the operation; False if it was completed before."""
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
        """Stop waiting without an answer: the client has disconnected."""
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
    """Parked polls of each address, over all purgatories that share this."""

    __slots__ = ("counts", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.counts: dict[str, int] = {}


class Purgatory:
    """The parked operations of one kind, at most `capacity`, and their timeouts.

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
        """A purgatory without operations.

        Args:
            name: For the metrics.
            timer: For time-outs.
            capacity: Most operations.
            addresses: Counts polls by address; default: no address has a bound of its own.
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
        """Park `operation` for at most `timeout_ms`, and never beyond WAIT_MAX_MS.

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
        """Park a request that waits for as long as its client chooses.

        Returns:
            Whether it is to be watched. False: it is held back, and expires soon.
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
        """Uncount a completed operation."""
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
