"""A partition of a follower's fetch session: what it asks for, and what it was sent last."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.replicas.cold_reads import ColdRead
    from broker.replicas.partition import Partition
    from broker.replication.replica_progress import ReplicaProgress
    from protocol.hot.fetch import FetchPartition
    from storage.index.reads import CachedReads

TopicKey = str | bytes
"""A topic's name up to version 12, its id (16 bytes) from version 13."""

NEVER_SENT = -1


class FollowsChanges(Protocol):
    """The session that a followed partition belongs to."""

    @property
    def fetched_ms(self) -> float:
        """Monotonic time of its last fetch, which is one of all its partitions."""
        ...

    @property
    def confirmed_ms(self) -> float:
        """Monotonic time before which its last fetch was certainly not sent.

        A request may have lain in a socket's buffer while this process was paused, or have been
        repeated by TCP after a cut: that it is read now says nothing of now. But it was sent after
        the answer before it had arrived. Minus infinity for the first fetch of a session.
        """
        ...

    def changed_at(self, followed: "FollowedPartition", *, has_records: bool) -> None:
        """Look at a partition again: something about it has changed.

        `has_records`: at once; else it is sent with the next answer.
        """
        ...


class FollowedPartition:
    """See the module.

    Attributes:
        session: Its session; None once it has left it.
        topic: Key of the topic.
        index: Of the partition.
        fetch_offset: What the follower wants next: its log end.
        current_leader_epoch: Epoch in which it follows.
        last_fetched_epoch: Of its last batch; -1: it has none.
        log_start_offset: Its log start.
        max_bytes: Most bytes of this partition in an answer.
        is_listed: The latest request has named it, and it has not been looked at since.
        is_marked: Something about it has changed since it was looked at. To look at one partition
            may move its high watermark, and what waited for that may append to any.
        sent_high_watermark: As of the last answer with it.
        sent_log_start_offset: Likewise.
        cold: A thread reads the disk for it: there is nothing to answer yet.
        found: What threads have read for it.
        partition: What it is, as it was last found right; None before.
        role_number: Of the partition then.
        followers: Of its leader's state then.
        progress: The follower's among them.
    """

    __slots__ = (
        "cold",
        "current_leader_epoch",
        "fetch_offset",
        "followers",
        "found",
        "index",
        "is_listed",
        "is_marked",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "progress",
        "role_number",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic",
    )

    def __init__(self, session: FollowsChanges, topic: TopicKey, wanted: "FetchPartition") -> None:
        self.session: FollowsChanges | None = session
        self.topic = topic
        self.index = wanted.partition
        self.sent_high_watermark = NEVER_SENT
        self.sent_log_start_offset = NEVER_SENT
        self.cold: ColdRead | None = None
        self.found: CachedReads | None = None
        self.partition: Partition | None = None
        self.role_number = 0
        self.followers: tuple[ReplicaProgress, ...] = ()
        self.progress: ReplicaProgress | None = None
        self.is_marked = False
        self.list(wanted)

    def found_right(
        self,
        partition: "Partition",
        followers: "tuple[ReplicaProgress, ...]",
        progress: "ReplicaProgress",
    ) -> None:
        """It may be followed, as long as the roles are these."""
        self.partition = partition
        self.role_number = partition.role_number
        self.followers = followers
        self.progress = progress

    def list(self, wanted: "FetchPartition") -> None:
        """Take what a request asks for; reads for an earlier offset are of no use any more."""
        self.current_leader_epoch = wanted.current_leader_epoch
        self.fetch_offset = wanted.fetch_offset
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset
        self.max_bytes = wanted.max_bytes
        self.is_listed = True
        self.end_reads()

    def leave(self) -> None:
        """Belong to no session any more: nothing that changes is of interest."""
        self.session = None
        self.partition = self.progress = None
        self.followers = ()
        self.end_reads()

    def end_reads(self) -> None:
        """Drop what threads read, or have read, for it."""
        if self.cold is not None:
            self.cold.cancel()
            self.cold = None
        if self.found is not None:
            self.found.clear()
            self.found = None
