"""Timers of one member of a consumer group."""

from broker.runtime.deadline import Deadline
from broker.runtime.timer import TimerHandle


class MemberTimers:
    """What fences a member that does not do in time what it has to.

    Attributes:
        session: No heartbeat.
        rebalance: It does not give back partitions.
        join: A classic member was told to join again and does not.
        sync: A classic member has joined and does not fetch its assignment.
    """

    __slots__ = ("join", "rebalance", "session", "sync")

    def __init__(self, session: Deadline) -> None:
        self.session = session
        self.rebalance: TimerHandle | None = None
        self.join: TimerHandle | None = None
        self.sync: TimerHandle | None = None

    def cancel(self) -> None:
        """Stop all of them."""
        self.session.cancel()
        self.cancel_rebalance()
        self.cancel_join()
        self.cancel_sync()

    def cancel_rebalance(self) -> None:
        """The member has given back what it had to."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def cancel_join(self) -> None:
        """The classic member has joined again."""
        if self.join is not None:
            self.join.cancel()
            self.join = None

    def cancel_sync(self) -> None:
        """The classic member has fetched its assignment."""
        if self.sync is not None:
            self.sync.cancel()
            self.sync = None
