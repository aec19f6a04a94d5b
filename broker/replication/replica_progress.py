"""A follower's progress as its leader sees it, in one leader epoch.

Source: Kafka, Replica.scala.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uuid import UUID

    from broker.replication.followers.followed_partition import FollowedPartition

UNKNOWN_OFFSET: Final = -1
UNKNOWN_EPOCH: Final = -1


class ReplicaProgress:
    """See the module. New ones know nothing: fetches of an earlier leader epoch do not count.

    Attributes:
        node_id: The follower.
        end_offset: Its log end: the offset of its last fetch. `UNKNOWN_OFFSET` before the first.
        log_start_offset: Its log start, likewise.
        broker_epoch: Life of the process that fetches; `UNKNOWN_EPOCH` before the first fetch.
        fetched_ms: Monotonic time of its last fetch; minus infinity before the first.
        caught_up_ms: When it was last known to have all that the leader had. A member of the ISR
            begins with the time at which the leader took over: its grace.
        directory_id: Log directory that it lies in; None: it is not known.
        followed: Where its fetch session has this partition; None before its first fetch.
        is_counted: It is in the maximal ISR: the high watermark waits for it.
    """

    __slots__ = (
        "_confirmed_ms",
        "_leader_end_offset",
        "broker_epoch",
        "caught_up_ms",
        "directory_id",
        "end_offset",
        "fetched_ms",
        "followed",
        "is_counted",
        "log_start_offset",
        "node_id",
    )

    def __init__(self, node_id: int, *, is_counted: bool, caught_up_ms: float) -> None:
        self.node_id = node_id
        self.is_counted = is_counted
        self.caught_up_ms = caught_up_ms
        self.end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_EPOCH
        self.fetched_ms = float("-inf")
        self.directory_id: UUID | None = None
        self.followed: FollowedPartition | None = None
        self._confirmed_ms = float("-inf")
        # The leader's log end at the last fetch.
        self._leader_end_offset = UNKNOWN_OFFSET

    def fetched(
        self,
        offset: int,
        log_start_offset: int,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: float,
    ) -> None:
        """Note a fetch of this leader epoch.

        It was caught up now if it is at the leader's end; or at the fetch before, if it has by now
        what the leader had then: so a follower that fetches without a pause is never behind,
        however fast records come.
        """
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self._leader_end_offset >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_offset = leader_end_offset
        self.fetched_ms = now_ms
        followed = self.followed
        if followed is not None and followed.session is not None:
            self._confirmed_ms = max(self._confirmed_ms, followed.session.confirmed_ms)

    @property
    def seen_ms(self) -> float:
        """When it fetched last in this epoch, also if its request did not name the partition.

        A request is one for every partition of its session; but for one that it names only if that
        was found right, and in this epoch.
        """
        followed = self.followed
        if followed is None or followed.session is None or followed.is_listed:
            return self.fetched_ms
        return max(self.fetched_ms, followed.session.fetched_ms)

    @property
    def confirmed_ms(self) -> float:
        """Time before which it has certainly not left this epoch; minus infinity: not known.

        Not `seen_ms`: see `FollowsChanges.confirmed_ms`. A partition that a request names, and that
        has not been looked at since, may be followed in another epoch.
        """
        followed = self.followed
        if followed is None or followed.session is None or followed.is_listed:
            return self._confirmed_ms
        return max(self._confirmed_ms, followed.session.confirmed_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_time_max_ms: float) -> bool:
        """Whether it has everything, or had at most `lag_time_max_ms` ago."""
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms
