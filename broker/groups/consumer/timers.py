"""Timers of a member of a consumer group."""

from broker.runtime.deadline import Deadline
from broker.runtime.timer import TimerHandle


class MemberTimers:
    """The timers of a member; each fences it on expiry.

    Attributes:
        session: Until the next heartbeat.
        rebalance: Until it has revoked partitions.
        join: Until a classic member that has to rejoin sends JoinGroup.
        sync: Until a classic member that has joined sends SyncGroup.
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
        """Stop the rebalance timer: the member has revoked its partitions."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def cancel_join(self) -> None:
        """Stop the join timer: the classic member has joined again."""
        if self.join is not None:
            self.join.cancel()
            self.join = None

    def cancel_sync(self) -> None:
        """Stop the sync timer: the classic member has fetched its assignment."""
        if self.sync is not None:
            self.sync.cancel()
            self.sync = None
