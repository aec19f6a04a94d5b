"""A partition that a fetcher follows, in one role of it.

follow ──> REPAIRING ──the log is as it should be──> FETCHING
             ^                                         │  ^
             ├──diverged, out of range─────────────────┤  │
             │                                         v  │ its time has come
             │                             an error: DELAYED
             └── FETCHING ──its disk has failed──> FAILED
any ──unfollow, or the role is another──> DROPPED
"""

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from broker.replicas.following import Settled
    from storage.log.log import Log
    from storage.log.write_queue import BorrowedMemory
    from storage.types.topic_partition import TopicPartition


class FollowerPartition(Protocol):
    """A `broker.replicas.partition.Partition`, as far as a fetcher needs it.

    Attributes:
        topic_partition: Its name.
        topic_id: Incarnation of the topic.
        log: Its log.
        leader_epoch: Of the leader that is followed.
        role_number: Grows with every change of role or epoch.
    """

    topic_partition: "TopicPartition"
    topic_id: "UUID"
    log: "Log"
    leader_epoch: int
    role_number: int

    def append_fetched(
        self,
        records: memoryview,
        *,
        fetch_offset: int,
        settled: "Settled",
        memory: "BorrowedMemory | None" = None,
    ) -> bool:
        """As `Partition.append_fetched`."""
        ...

    def follow_high_watermark(self, leader_high_watermark: int, leader_log_start: int) -> None:
        """As `Partition.follow_high_watermark`."""
        ...

    async def truncate(self, cut: "Callable[[Log], object]") -> None:
        """As `Partition.truncate`."""
        ...

    async def idle(self) -> None:
        """As `Partition.idle`."""
        ...


class FollowedState(Enum):
    """See the module."""

    REPAIRING = "repairing"
    FETCHING = "fetching"
    DELAYED = "delayed"
    FAILED = "failed"
    DROPPED = "dropped"


class FollowedPartition:
    """See the module.

    Attributes:
        partition: What is followed.
        key: Topic id and index, as they are on the wire.
        leader_id: Whom it follows.
        leader_epoch: In which epoch.
        role_number: The partition's in this role: with another one this object is of the past.
        state: Of the module's table.
        sent_in: Number of the request that last named it: what answers an earlier one is late.
        sent_offset: What the leader was last asked for.
        sent_log_start: The log start offset that it was told.
        sent_epoch: The last fetched epoch that it was told.
        leader_high_watermark: As the leader last gave it.
        is_behind: It catches up: its latest records were many, and more are committed.
        failures: Errors in a row.
        truncations: Of its log, in this role: one or two are in order, more are a leader that gives
            what it then denies.
    """

    __slots__ = (
        "failures",
        "is_behind",
        "key",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "partition",
        "role_number",
        "sent_epoch",
        "sent_in",
        "sent_log_start",
        "sent_offset",
        "state",
        "truncations",
    )

    def __init__(self, partition: FollowerPartition, leader_id: int) -> None:
        self.partition = partition
        self.key = (partition.topic_id.bytes, partition.topic_partition.partition)
        self.leader_id = leader_id
        self.leader_epoch = partition.leader_epoch
        self.role_number = partition.role_number
        self.state = FollowedState.REPAIRING
        self.sent_in = 0
        self.sent_offset = -1
        self.sent_log_start = -1
        self.sent_epoch = -1
        self.leader_high_watermark = 0
        self.is_behind = False
        self.failures = 0
        self.truncations = 0

    @property
    def is_current(self) -> bool:
        """Whether the partition still has the role in which it is followed."""
        return (
            self.state is not FollowedState.DROPPED
            and self.partition.role_number == self.role_number
        )

    @property
    def lag(self) -> int:
        """Records up to the leader's high watermark that are not here."""
        return max(self.leader_high_watermark - self.partition.log.log_end_offset, 0)
