"""Reads a partition of `__consumer_offsets` back into a shard.

The log holds every generation and every commit since its last compaction, so first only the
newest value of each key is kept, undecoded; then what is left is decoded once. Between slices the
loop gets its turn: other partitions are served while this one loads.

Transactional offsets wait in between for their producer's marker, and are dropped by an abort.
Those whose marker has not come by the end of the log are still open.

Source: Kafka, CoordinatorLoaderImpl.java; GroupMetadataManager and OffsetMetadataManager (replay).
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Protocol, TypeVar

from broker.groups.classic_group import ClassicGroup, ClassicMember
from broker.groups.classic_group_state import ClassicGroupState
from broker.groups.classic_protocol import ClassicProtocol
from broker.groups.consumer.replay import GroupReplay, decode
from broker.groups.offset_store import GroupTopicPartition, OffsetAndMetadata
from broker.groups.shard import GroupShard
from broker.groups.share.replay import ShareGroupReplay
from protocol.errors import DecodeError
from protocol.internal.consumer_group_records import ConsumerGroupKey
from protocol.internal.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
)
from protocol.internal.share_group_records import ShareGroupKey
from protocol.records.batch import BatchHeader, iterate_batches
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

RECORDS_PER_SLICE = 250
"""Records that are worked on before the loop gets its turn: about a millisecond."""

VALUE_SIZE_MAX = 16 * 1024
"""Bytes of a value that is decoded on the loop: a classic group's members, or the topics that a
pattern stands for, may take ten milliseconds."""

READ_SIZE = 256 * 1024
"""Bytes read from the log at a time."""

BATCH_SIZE_MAX = 64 * 1024 * 1024
"""Most bytes one batch may decompress to."""

Value = TypeVar("Value")

_GROUP_KEY_VERSION_MIN = b"\x00\x02"


class InternalReader(Protocol):
    """The part of the replica manager that coordinators read through."""

    async def read_internal(self, tp: TopicPartition, offset: int, max_bytes: int) -> memoryview:
        """Whole batches from `offset`, perhaps a part of one more; empty at the end."""
        ...


class LogReader:
    """Collects what the log says last about each key."""

    def __init__(self, reader: InternalReader, topic_partition: TopicPartition) -> None:
        self._reader = reader
        self._topic_partition = topic_partition
        # Undecoded key to (undecoded value, record offset).
        self.latest: dict[bytes, tuple[bytes, int]] = {}
        # By producer id.
        self.pending: dict[int, dict[bytes, tuple[bytes, int]]] = {}
        self.records = 0
        self._until_pause = RECORDS_PER_SLICE

    async def read(self, start_offset: int, end_offset: int) -> None:
        """Read [start_offset, end_offset).

        Raises:
            DecodeError: A batch is damaged.
        """
        offset = start_offset
        while offset < end_offset:
            view = await self._reader.read_internal(self._topic_partition, offset, READ_SIZE)
            next_offset = offset
            for position, header in iterate_batches(view, allow_partial=True):
                if header.last_offset >= offset:
                    await self._read_batch(view[position:], header)
                next_offset = header.next_offset
            if next_offset <= offset:
                return
            offset = next_offset
            await asyncio.sleep(0)

    async def _read_batch(self, batch: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            marker = parse_end_transaction_marker(batch)
            if marker is not None:
                self._end_transaction(
                    header.producer_id, commit=marker.control_type is ControlType.COMMIT
                )
            return
        pending = None
        if header.is_transactional:
            pending = self.pending.setdefault(header.producer_id, {})
        for offset, _, key, value, _ in iterate_records(batch, max_size=BATCH_SIZE_MAX):
            self.records += 1
            if key is not None:
                if value is None:
                    self.latest.pop(key, None)
                    for waiting in self.pending.values():
                        waiting.pop(key, None)
                elif pending is not None and key < _GROUP_KEY_VERSION_MIN:
                    pending[key] = (value, offset)
                else:
                    self.latest[key] = (value, offset)
            self._until_pause -= 1
            if not self._until_pause:
                self._until_pause = RECORDS_PER_SLICE
                await asyncio.sleep(0)

    def _end_transaction(self, producer_id: int, *, commit: bool) -> None:
        waiting = self.pending.pop(producer_id, {})
        if commit:
            for key, (value, offset) in waiting.items():
                existing = self.latest.get(key)
                if existing is None or existing[1] < offset:
                    self.latest[key] = (value, offset)


async def fill_shard(shard: GroupShard, protocol: ClassicProtocol, log: LogReader) -> None:
    """Decode what was read into groups and offsets; a record that is damaged is passed over."""
    pause = _Pause()
    consumer_groups = GroupReplay()
    share_groups = ShareGroupReplay()
    offsets: list[tuple[OffsetCommitKey, OffsetAndMetadata, int | None]] = []
    sources: list[tuple[int | None, dict[bytes, tuple[bytes, int]]]] = [(None, log.latest)]
    sources.extend(log.pending.items())
    for producer_id, source in sources:
        for raw_key, (raw_value, record_offset) in source.items():
            try:
                key = decode_key(raw_key)
                if isinstance(key, GroupMetadataKey):
                    value = await _decoded(decode_group_metadata_value, raw_value)
                    await _add_group(shard, protocol, key, value, pause)
                elif isinstance(key, OffsetCommitKey):
                    committed_value = decode_offset_commit_value(raw_value)
                    committed = OffsetAndMetadata(committed_value, record_offset)
                    offsets.append((key, committed, producer_id))
                elif isinstance(key, ConsumerGroupKey):
                    consumer_groups.add(key, await _decoded(partial(decode, key), raw_value))
                elif isinstance(key, ShareGroupKey):
                    share_groups.add(key, raw_value)
                else:
                    # A group of a newer kind: somebody else's record.
                    shard.stats.skipped_records += 1
            except DecodeError as error:
                shard.stats.skipped_records += 1
                logger.warning(
                    "record passed over partition=%d offset=%d error=%s",
                    shard.log.topic_partition.partition,
                    record_offset,
                    error,
                )
            # A large value is as much work as many small ones.
            if pause.is_due(1 + len(raw_value) // 1024):
                await asyncio.sleep(0)
    for _ in chain(consumer_groups.finish(), share_groups.finish()):
        if pause.is_due():
            await asyncio.sleep(0)
    for group in chain(consumer_groups.groups.values(), share_groups.groups.values()):
        if group.group_id in shard.groups:
            # Two kinds of record cannot be alive; the other one may be a damaged tombstone's.
            shard.stats.skipped_records += 1
        shard.add_loaded_group(group)
        if pause.is_due():
            await asyncio.sleep(0)
    for key, committed, producer_id in offsets:
        if key.group not in shard.groups:
            # Nothing but offsets: a simple group.
            shard.add_loaded_group(_simple_group(key.group))
        if producer_id is None:
            shard.offsets.put(key.group, key.topic, key.partition, committed)
        else:
            shard.offsets.put_pending(producer_id, GroupTopicPartition(*key), committed)
        if pause.is_due():
            await asyncio.sleep(0)


class _Pause:
    """Says when the loop is to get its turn."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = RECORDS_PER_SLICE

    def is_due(self, work: int = 1) -> bool:
        """Count what was done, in records."""
        self._left -= work
        if self._left > 0:
            return False
        self._left = RECORDS_PER_SLICE
        return True


async def _decoded(function: Callable[[bytes], Value], raw_value: bytes) -> Value:
    if len(raw_value) <= VALUE_SIZE_MAX:
        return function(raw_value)
    return await asyncio.to_thread(function, raw_value)


def _simple_group(group_id: str) -> ClassicGroup:
    return ClassicGroup(group_id, state=ClassicGroupState.EMPTY, current_state_timestamp_ms=-1)


async def _add_group(
    shard: GroupShard,
    protocol: ClassicProtocol,
    key: GroupMetadataKey,
    value: GroupMetadataValue,
    pause: _Pause,
) -> None:
    group = ClassicGroup(
        key.group,
        state=ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY,
        current_state_timestamp_ms=value.current_state_timestamp_ms,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for loaded in value.members:
        member = ClassicMember(
            member_id=loaded.member_id,
            group_instance_id=loaded.group_instance_id,
            client_id=loaded.client_id,
            client_host=loaded.client_host,
            rebalance_timeout_ms=(
                loaded.session_timeout_ms
                if loaded.rebalance_timeout_ms == -1
                else loaded.rebalance_timeout_ms
            ),
            session_timeout_ms=loaded.session_timeout_ms,
            protocols=((value.protocol or "", loaded.subscription),),
            session=protocol.session(group, loaded.member_id),
            assignment=loaded.assignment,
        )
        if loaded.group_instance_id in group.static_members:
            raise DecodeError(f"two members with instance id {loaded.group_instance_id}")
        group.add(member, None, value.protocol_type)
        if pause.is_due(2):
            await asyncio.sleep(0)
    group.subscribed_topics = group.compute_subscribed_topics()
    shard.add_loaded_group(group)
