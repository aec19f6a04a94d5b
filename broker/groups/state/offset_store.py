"""Committed offsets of one partition of `__consumer_offsets`, packed.

A broker can hold millions of them, so each is one `bytes` object, little-endian:

    size  field
       8  offset
       4  leader epoch          -1: not known
       8  commit timestamp      ms since 1970
       8  expire timestamp      ms since 1970, -1: none of its own
       8  record offset         of the record that holds it; orders plain and transactional commits
      16  topic id              zero: not known
       *  metadata              UTF-8, to the end

Source: Kafka, OffsetMetadataManager.java.
"""

import sys
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from protocol.hot.offset_commit import CommittedPartition
from protocol.internal.consumer_offsets import STRING_SIZE_MAX, OffsetCommitValue

_PACKED: Final = Struct("<qiqqq16s")
_pack_offset: Final = _PACKED.pack
_RECORD_OFFSET: Final = Struct("<28xq16x")
_record_offset: Final = _RECORD_OFFSET.unpack_from
assert _RECORD_OFFSET.size == _PACKED.size
_NO_TOPIC_ID: Final = bytes(16)


class OffsetAndMetadata(NamedTuple):
    """A committed offset and the offset of its record."""

    value: OffsetCommitValue
    record_offset: int


class GroupTopicPartition(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


def is_metadata_too_large(metadata: str, size_max: int) -> bool:
    """Whether a commit's metadata is above `offset.metadata.max.bytes`, or too long for a record.

    Kafka counts Java's characters, two for each one outside the basic plane.
    """
    size = len(metadata)
    if size <= size_max and not metadata.isascii():
        size = len(metadata.encode("utf-16-le")) // 2
    return size > size_max or (
        size > STRING_SIZE_MAX // 4 and len(metadata.encode()) > STRING_SIZE_MAX
    )


def _pack(committed: OffsetAndMetadata) -> bytes:
    (offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id), record_offset = committed
    raw_id = topic_id.bytes if topic_id.int else _NO_TOPIC_ID
    packed = _pack_offset(offset, leader_epoch, commit_ms, expire_ms, record_offset, raw_id)
    return packed + metadata.encode() if metadata else packed


def _unpack(packed: bytes) -> OffsetAndMetadata:
    offset, epoch, commit_ms, expire_ms, record_offset, topic_id = _PACKED.unpack_from(packed)
    metadata = packed[_PACKED.size :].decode()
    return OffsetAndMetadata(
        OffsetCommitValue(offset, epoch, metadata, commit_ms, expire_ms, UUID(bytes=topic_id)),
        record_offset,
    )


_EVERY_RECORD: Final = 1 << 63
"""Above the offset of any record."""


class OffsetStore:
    """Committed offsets by group, topic and partition; and pending ones of open transactions.

    `count` is how many are stored, pending ones not included.
    """

    __slots__ = ("_by_group", "_pending", "_pending_by_group", "count")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, bytes]]] = {}
        # By producer id. A producer has one open transaction at a time.
        self._pending: dict[int, dict[GroupTopicPartition, OffsetAndMetadata]] = {}
        self._pending_by_group: dict[str, dict[tuple[str, int], set[int]]] = {}
        self.count = 0

    def get(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        """The committed offset, or None."""
        topics = self._by_group.get(group_id)
        if topics is None:
            return None
        partitions = topics.get(topic)
        if partitions is None:
            return None
        packed = partitions.get(partition)
        return None if packed is None else _unpack(packed)

    def put(self, group_id: str, topic: str, partition: int, committed: OffsetAndMetadata) -> None:
        """Store an offset, unless a later record has stored one already."""
        partitions = self._partitions(group_id, topic)
        existing = partitions.get(partition)
        if existing is None:
            self.count += 1
        elif _record_offset(existing)[0] > committed.record_offset:
            return
        partitions[partition] = _pack(committed)

    def put_commits(
        self,
        group_id: str,
        topic: str,
        commits: Sequence[CommittedPartition],
        *,
        topic_id: UUID,
        commit_ms: int,
        expire_ms: int,
        record_offset: int,
    ) -> None:
        """Store the offsets of a request, as `put` does with each.

        Args:
            group_id: The group.
            topic: Of all of them.
            commits: Their records follow each other.
            topic_id: Zero: not known.
            commit_ms: When they were committed, ms since 1970.
            expire_ms: When they expire, -1: no time of their own.
            record_offset: Of the first one's record.
        """
        partitions = self._partitions(group_id, topic)
        raw_id = topic_id.bytes if topic_id.int else _NO_TOPIC_ID
        for commit in commits:
            index = commit.index
            existing = partitions.get(index)
            if existing is None:
                self.count += 1
            if existing is None or _record_offset(existing)[0] <= record_offset:
                packed: bytes = _pack_offset(
                    commit.offset, commit.leader_epoch, commit_ms, expire_ms, record_offset, raw_id
                )
                metadata = commit.metadata
                partitions[index] = packed + metadata.encode() if metadata else packed
            record_offset += 1

    def _partitions(self, group_id: str, topic: str) -> dict[int, bytes]:
        """Offsets of a group in a topic, to be added to."""
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # Thousands of groups read the same topics: keep one copy of the name.
            partitions = topics[sys.intern(topic)] = {}
        return partitions

    def remove(
        self, group_id: str, topic: str, partition: int, *, before_record: int | None = None
    ) -> bool:
        """Remove an offset, and pending ones of the same key.

        Args:
            group_id: The group.
            topic: The topic.
            partition: The partition.
            before_record: Only offsets of records before this one: while a tombstone waits for
                its commit, a transaction may write behind it.

        Returns:
            Whether an offset was stored.
        """
        self._remove_pending(GroupTopicPartition(group_id, topic, partition), before_record)
        topics = self._by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        packed = None if partitions is None else partitions.get(partition)
        if topics is None or partitions is None or packed is None:
            return False
        if before_record is not None and _PACKED.unpack_from(packed)[4] >= before_record:
            return False
        del partitions[partition]
        if not partitions:
            del topics[topic]
        if not topics:
            del self._by_group[group_id]
        self.count -= 1
        return True

    def _remove_pending(self, key: GroupTopicPartition, before_record: int | None) -> None:
        partitions = self._pending_by_group.get(key.group_id)
        producers = None if partitions is None else partitions.get((key.topic, key.partition))
        if partitions is None or producers is None:
            return
        for producer_id in list(producers):
            waiting = self._pending[producer_id]
            if before_record is not None and waiting[key].record_offset >= before_record:
                continue
            del waiting[key]
            if not waiting:
                del self._pending[producer_id]
            producers.discard(producer_id)
        if not producers:
            del partitions[key.topic, key.partition]
        if not partitions:
            del self._pending_by_group[key.group_id]

    def topics(self, group_id: str) -> list[tuple[str, list[int]]]:
        """Topics and partitions that the group has offsets for."""
        topics = self._by_group.get(group_id, {})
        return [(topic, list(partitions)) for topic, partitions in topics.items()]

    def are_of(self, group_id: str, topic: str, partition: int, topic_id: UUID) -> bool:
        """Whether all offsets of a partition, pending ones too, were committed to this topic."""
        kept = [self.get(group_id, topic, partition)]
        for producer_id in self._pending_by_group.get(group_id, {}).get((topic, partition), ()):
            key = GroupTopicPartition(group_id, topic, partition)
            kept.append(self._pending[producer_id][key])
        return all(one is None or one.value.topic_id == topic_id for one in kept)

    def topic_names(self, group_id: str) -> set[str]:
        """Topics that the group has any offset for, stored or pending."""
        names = {topic for topic, _ in self._pending_by_group.get(group_id, ())}
        names.update(self._by_group.get(group_id, ()))
        return names

    def has_group(self, group_id: str) -> bool:
        """Whether the group has any offset, stored or pending."""
        return group_id in self._by_group or group_id in self._pending_by_group

    def group_ids(self) -> list[str]:
        """Groups that have stored offsets."""
        return list(self._by_group)

    def offsets(self, group_id: str) -> Iterator[tuple[str, int, int]]:
        """(topic, partition, committed offset) of a group; do not store meanwhile."""
        for topic, partitions in self._by_group.get(group_id, {}).items():
            for partition, packed in partitions.items():
                yield topic, partition, _PACKED.unpack_from(packed)[0]

    # -- transactions --

    def put_pending(
        self, producer_id: int, key: GroupTopicPartition, committed: OffsetAndMetadata
    ) -> None:
        """Keep an offset until the producer's transaction ends (TxnOffsetCommit)."""
        self._pending.setdefault(producer_id, {})[key] = committed
        partitions = self._pending_by_group.setdefault(key.group_id, {})
        partitions.setdefault((key.topic, key.partition), set()).add(producer_id)

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction would change the offset."""
        partitions = self._pending_by_group.get(group_id)
        return partitions is not None and (topic, partition) in partitions

    def pending_topics(self, group_id: str) -> list[tuple[str, int]]:
        """Partitions of a group that open transactions would change."""
        return list(self._pending_by_group.get(group_id, ()))

    def end_transaction(
        self, producer_id: int, *, commit: bool, before_record: int | None = None
    ) -> None:
        """Store or drop the producer's pending offsets.

        An offset that was committed outside the transaction after it, by record order, stays: so
        it does when the log is loaded after compaction.

        Args:
            producer_id: Of the marker.
            commit: What it says.
            before_record: Only offsets of records before this one, the marker: others belong to
                another transaction. None: all.
        """
        waiting = self._pending.get(producer_id, {})
        if before_record is None:
            before_record = _EVERY_RECORD
        ended = [
            (key, committed)
            for key, committed in waiting.items()
            if committed.record_offset < before_record
        ]
        for key, committed in ended:
            del waiting[key]
            partitions = self._pending_by_group[key.group_id]
            producers = partitions[key.topic, key.partition]
            producers.discard(producer_id)
            if not producers:
                del partitions[key.topic, key.partition]
            if not partitions:
                del self._pending_by_group[key.group_id]
            if commit:
                self.put(*key, committed)
        if not waiting:
            self._pending.pop(producer_id, None)
