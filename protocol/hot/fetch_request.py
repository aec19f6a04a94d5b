"""What a Fetch request says, as values; `fetch` has its form on the wire."""

from typing import Final, TypeAlias

MIN_VERSION: Final = 4
MAX_VERSION: Final = 18
FIRST_FLEXIBLE_VERSION: Final = 12
FIRST_TOPIC_ID_VERSION: Final = 13

NO_HIGH_WATERMARK: Final = (1 << 63) - 1
"""The follower does not tell its high watermark (below v18, and the default there)."""

FetchFields: TypeAlias = tuple[
    *tuple[int, int, int, int, int, int, int, int, str],
    *tuple[str | bytes | None, int, int, int, int, int, int],
]
"""What a request of one partition says, in one tuple.

    replica id, replica epoch, max wait in ms, min bytes, max bytes, isolation level, session id,
    session epoch, rack id
    topic name or id, None where there is none (and -1 for what follows); partition, current leader
    epoch, fetch offset, last fetched epoch, log start offset, max bytes
"""


class FetchPartition:
    """What is wanted of one partition.

    Attributes:
        partition: Index.
        current_leader_epoch: Leader epoch the client knows; -1: do not fence.
        fetch_offset: First offset wanted.
        last_fetched_epoch: Epoch of the last record fetched; -1: none, or below v12.
        log_start_offset: A follower's log start offset; -1 from consumers.
        max_bytes: Limit for this partition (KIP-74: the first batch goes out whole even above it).
        high_watermark: A follower's high watermark; `NO_HIGH_WATERMARK` if it does not tell.
        directory_id: A follower's log directory, 16 bytes; None if it does not tell.
    """

    __slots__ = (
        "current_leader_epoch",
        "directory_id",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
    )

    def __init__(
        self,
        partition: int,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        log_start_offset: int,
        max_bytes: int,
        high_watermark: int = NO_HIGH_WATERMARK,
        directory_id: bytes | None = None,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.max_bytes = max_bytes
        self.high_watermark = high_watermark
        self.directory_id = directory_id


class FetchTopic:
    """One topic of a Fetch request: `name` below v13, else `topic_id` (16 raw bytes)."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str | None, topic_id: bytes, partitions: list[FetchPartition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class FetchRequest:
    """A decoded Fetch request; keeps nothing of the frame.

    `forgotten` holds (name, or topic id from v13; partitions to drop from the session). Defaults
    where a version has no field: replica_id -1, session_id 0, session_epoch -1, rack_id "",
    cluster_id None, replica_epoch -1.
    """

    __slots__ = (
        "cluster_id",
        "forgotten",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
    )

    def __init__(
        self,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
        topics: list[FetchTopic],
        forgotten: list[tuple[str | bytes, list[int]]],
        rack_id: str = "",
        cluster_id: str | None = None,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = topics
        self.forgotten = forgotten
        self.rack_id = rack_id
        self.cluster_id = cluster_id
        self.replica_epoch = replica_epoch
