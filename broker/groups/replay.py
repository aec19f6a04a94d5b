"""Replay of groups and offsets from the newest records of a partition of `__consumer_offsets`.

Records are decoded once, in slices: other partitions are served while this one loads.

Source: Kafka, GroupMetadataManager.java and OffsetMetadataManager.java (replay).
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import TypeVar

from broker.coordinator.latest_records import LatestRecord, LatestRecords
from broker.coordinator.slices import Slices
from broker.groups.classic.classic_group import ClassicGroup, ClassicMember
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.classic.protocol import ClassicProtocol
from broker.groups.consumer.replay import ConsumerGroupReplay, decode
from broker.groups.share.replay import ShareGroupReplay
from broker.groups.state.group import Group
from broker.groups.state.group_shard import GroupShard
from broker.groups.state.offset_store import GroupTopicPartition, OffsetAndMetadata
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

logger = logging.getLogger(__name__)

VALUE_SIZE_MAX = 16 * 1024
"""Bytes of a value that is decoded on the loop: a classic group's members, or the topics that a
pattern matches, may take ten milliseconds."""

Value = TypeVar("Value")

OFFSET_KEYS_BELOW = b"\x00\x02"
"""Keys of committed offsets, which may be transactional; those of groups never are."""


async def fill_shard(
    shard: GroupShard, protocol: ClassicProtocol, log: LatestRecords, slices: Slices
) -> None:
    """Decode the records into groups and offsets; a damaged one is skipped."""
    consumer_groups = ConsumerGroupReplay()
    share_groups = ShareGroupReplay()
    offsets: list[tuple[OffsetCommitKey, OffsetAndMetadata, int | None]] = []
    sources: list[tuple[int | None, dict[bytes, LatestRecord]]] = [(None, log.latest)]
    sources.extend(log.pending.items())
    for producer_id, source in sources:
        for raw_key, (raw_value, record_offset) in source.items():
            try:
                key = decode_key(raw_key)
                if isinstance(key, GroupMetadataKey):
                    value = await _decoded(decode_group_metadata_value, raw_value)
                    await _add_group(shard, protocol, key, value, slices)
                elif isinstance(key, OffsetCommitKey):
                    committed_value = decode_offset_commit_value(raw_value)
                    committed = OffsetAndMetadata(committed_value, record_offset)
                    offsets.append((key, committed, producer_id))
                elif isinstance(key, ConsumerGroupKey):
                    consumer_groups.add(key, await _decoded(partial(decode, key), raw_value))
                elif isinstance(key, ShareGroupKey):
                    share_groups.add(key, raw_value)
                else:
                    # A record of a newer kind of group.
                    shard.stats.skipped_records += 1
            except DecodeError as error:
                shard.stats.skipped_records += 1
                logger.warning(
                    "record of __consumer_offsets skipped while loading partition=%d offset=%d "
                    "error=%s",
                    shard.log.topic_partition.partition,
                    record_offset,
                    error,
                )
            # A large value is as much work as many small ones.
            if slices.is_due(1 + len(raw_value) // 1024):
                await slices.pause()
    for _ in chain(consumer_groups.finish(), share_groups.finish()):
        if slices.is_due():
            await slices.pause()
    modern: list[Group] = [*consumer_groups.groups.values(), *share_groups.groups.values()]
    for group in modern:
        if group.group_id in shard.groups:
            # A group has records of one kind; the other's tombstone may be damaged.
            shard.stats.skipped_records += 1
        shard.add_loaded_group(group)
        if slices.is_due():
            await slices.pause()
    for key, committed, producer_id in offsets:
        if key.group not in shard.groups:
            # Nothing but offsets: a simple group.
            shard.add_loaded_group(_simple_group(key.group))
        if producer_id is None:
            shard.offsets.put(key.group, key.topic, key.partition, committed)
        else:
            shard.offsets.put_pending(producer_id, GroupTopicPartition(*key), committed)
        if slices.is_due():
            await slices.pause()


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
    slices: Slices,
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
        if slices.is_due(2):
            await slices.pause()
    group.subscribed_topics = group.compute_subscribed_topics()
    shard.add_loaded_group(group)
