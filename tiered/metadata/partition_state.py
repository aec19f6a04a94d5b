"""State of one partition of `__remote_log_metadata`: all user partitions in it.

Also of those that are not assigned here: when one is assigned later, the topic has been read and is
not read again. What came with a snapshot stays a block of bytes until it is wanted or changed:

    (nothing) ──event──> cache          block ──wanted, or an event──> cache
                                          └──────next snapshot──────> as it is

There is no maximum: leaving metadata out would be losing segments. It is as large as what is in
the bucket (some 600 bytes a segment in a cache, 100 in a block), and `segments` says how much.
"""

import logging
from collections.abc import Iterator
from typing import TypeAlias
from uuid import UUID

from protocol.internal.remote_log_metadata import (
    PartitionDeleteMetadataRecord,
    SegmentMetadataRecord,
)
from tiered.metadata.records import EventRecord, deletion_of, segment_of, segment_state
from tiered.metadata.segment_index import RemoteLogMetadataCache
from tiered.metadata.snapshot import (
    EMPTY_BLOCK,
    CapturedPartition,
    CapturedState,
    MetadataSnapshot,
    reading_block,
)
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemotePartitionDelete,
    TopicIdPartition,
    check_partition_step,
)

LOGGER = logging.getLogger(__name__)

PartitionKey: TypeAlias = tuple[bytes, int]
"""Topic id and partition, as records have them."""


def key_of(partition: TopicIdPartition) -> PartitionKey:
    """The key of a user partition; its name is not part of it."""
    return partition.topic_id.bytes, partition.partition


class UserPartition:
    """One user partition.

    Attributes:
        partition: Which.
        cache: Its segments; empty while there is a block.
        block: What a snapshot had of it, not decoded yet; None: it is in the cache.
        deletion: How far its deletion is; None: it is not being deleted.
    """

    __slots__ = ("block", "cache", "deletion", "partition")

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.cache = RemoteLogMetadataCache()
        self.block: bytes | None = None
        self.deletion: RemotePartitionDelete | None = None

    def reading_block(self) -> Iterator[None]:
        """Bring the block into the cache; yields after every segment.

        Raises:
            SnapshotError: It is malformed; the block stays.
        """
        if self.block is None:
            return
        cache = RemoteLogMetadataCache()
        yield from reading_block(self.partition, self.block, cache)
        self.cache = cache
        self.block = None


class MetadataPartitionState:
    """See the module. Changed by one reader only, in the order of the topic."""

    __slots__ = ("_users", "lost", "metadata_partition", "next_offset")

    def __init__(self, metadata_partition: int) -> None:
        self.metadata_partition = metadata_partition
        self.next_offset = 0
        """First offset of the topic that is not in it."""
        self.lost = ""
        """What is known to be missing in it; empty: nothing (see `tiered.metadata.snapshotter`)."""
        self._users: dict[PartitionKey, UserPartition] = {}

    def restore(self, snapshot: MetadataSnapshot) -> None:
        """Begin with a snapshot."""
        for partition, deletion, block in snapshot.partitions:
            user = self._users[key_of(partition)] = UserPartition(partition)
            user.deletion = deletion
            user.block = None if block == EMPTY_BLOCK else block
        self.next_offset = snapshot.next_offset

    def user(self, key: PartitionKey) -> UserPartition | None:
        """What is known of a user partition; None: nothing."""
        return self._users.get(key)

    def ensure(self, partition: TopicIdPartition) -> UserPartition:
        """What is known of a user partition, perhaps nothing yet; later events go to the same."""
        return self._users.setdefault(key_of(partition), UserPartition(partition))

    def users(self) -> Iterator[UserPartition]:
        """All of them."""
        return iter(self._users.values())

    def deletions(self) -> Iterator[RemotePartitionDelete]:
        """Those whose deletion has begun and is not finished."""
        return (user.deletion for user in self._users.values() if user.deletion is not None)

    @property
    def segments(self) -> int:
        """Segments in caches."""
        return sum(len(user.cache) for user in self._users.values())

    def apply(self, record: EventRecord) -> None:
        """Apply an event; a block of its user partition has been read before.

        Raises:
            DecodeError: The record makes no sense.
            InvalidTransitionError: The state machines do not allow it. In both cases nothing has
                changed.
        """
        key = (record.topic_id, record.partition)
        user = self._users.get(key)
        if user is None:
            user = UserPartition(
                TopicIdPartition(UUID(bytes=record.topic_id), record.topic, record.partition)
            )
        assert user.block is None
        if isinstance(record, SegmentMetadataRecord):
            user.cache.add(segment_of(user.partition, record))
        elif isinstance(record, PartitionDeleteMetadataRecord):
            deletion = deletion_of(user.partition, record)
            check_partition_step(
                None if user.deletion is None else user.deletion.state, deletion.state
            )
            if deletion.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
                self._users.pop(key, None)
                return
            user.deletion = deletion
        else:
            user.cache.update(
                record.segment_id,
                segment_state(record.state),
                record.broker_id,
                record.event_timestamp_ms,
                record.custom_metadata,
            )
        self._users[key] = user

    def capture(self, topic_id: UUID, now_ms: int) -> CapturedState:
        """All of it at this moment, for a snapshot: later events do not change what is returned."""
        return CapturedState(
            self.metadata_partition,
            topic_id,
            self.next_offset,
            now_ms,
            [
                CapturedPartition(
                    user.partition,
                    user.deletion,
                    user.cache.capture() if user.block is None else user.block,
                )
                for user in self._users.values()
            ],
        )
