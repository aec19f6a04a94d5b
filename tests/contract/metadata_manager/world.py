"""A world for metadata managers: their topic, a snapshot store, and what is told in it."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import TypeVar
from uuid import UUID

import pytest

from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.loop_turns import turns
from tests.fakes.tiered.metadata_log import FakeMetadataLog, MetadataTopic
from tests.fakes.tiered.scripted_tier import FakeTier
from tests.fakes.timer import ManualTimer
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.metadata.settings import MetadataSettings
from tiered.metadata.snapshot_store import BucketSnapshotStore, LocalSnapshotStore, SnapshotStore
from tiered.metadata.topic_based_manager import TopicMetadataManager
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

T = TypeVar("T")

P0 = TopicIdPartition(UUID(int=5), "events", 0)
STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETING = SegmentState.DELETE_SEGMENT_STARTED
DELETED = SegmentState.DELETE_SEGMENT_FINISHED

_ids = count(1)


async def run_here(function: Callable[[], T], /) -> T:
    await asyncio.sleep(0)
    return function()


def segment(
    start: int,
    end: int,
    partition: TopicIdPartition = P0,
    *,
    epochs: tuple[tuple[int, int], ...] | None = None,
    size: int = 100,
    txn_index_empty: bool = False,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(partition, UUID(int=next(_ids))),
        start,
        end,
        1000 + end,
        1,
        2000,
        size,
        tuple(SegmentEpoch(*epoch) for epoch in epochs or ((0, start),)),
        txn_index_empty=txn_index_empty,
    )


def update(
    metadata: RemoteLogSegmentMetadata, state: SegmentState, custom: bytes | None = None
) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(metadata.segment_id, 3000, state, 1, custom)


def deletion(state: PartitionDeleteState) -> RemotePartitionDelete:
    return RemotePartitionDelete(P0, state, 4000, 1)


def same_metadata_partition(partition: TopicIdPartition, count_: int) -> TopicIdPartition:
    """Another user partition whose metadata is in the same place."""
    wanted = metadata_partition(partition, count_)
    for index in count(1):
        other = TopicIdPartition(partition.topic_id, partition.topic, index)
        if metadata_partition(other, count_) == wanted:
            return other
    raise AssertionError


class World:
    """A topic and a snapshot store that outlive the managers."""

    def __init__(self, kind: str) -> None:
        self.topic = MetadataTopic()
        self.kind = kind
        self.filesystem = FakeFilesystem()
        self.filesystem.mkdir("/snapshots")
        self.tier = FakeTier()
        self.timer = ManualTimer()
        self.managers: list[TopicMetadataManager] = []
        self.metadata_partition = metadata_partition(P0, self.topic.partition_count)

    def store(self) -> SnapshotStore:
        if self.kind == "local":
            return LocalSnapshotStore(self.filesystem, "/snapshots", run_here)
        return BucketSnapshotStore(self.tier, "cluster")

    def start(self, *, leads: bool = True, **settings: int) -> TopicMetadataManager:
        manager = TopicMetadataManager(
            FakeMetadataLog(self.topic, leads=leads),
            self.store(),
            FakeEnvironment(timer=self.timer),
            settings=MetadataSettings(**settings),
        )
        self.managers.append(manager)
        manager.start()
        return manager

    async def started(self, *partitions: TopicIdPartition, **settings: int) -> TopicMetadataManager:
        """A manager for which these are visible."""
        manager = self.start(leads=True, **settings)
        manager.assign(partitions or (P0,))
        for partition in partitions or (P0,):
            await asyncio.wait_for(manager.ready(partition), 30)
        return manager

    async def crash(self, manager: TopicMetadataManager) -> None:
        """It ends without a last snapshot."""
        for reader, task in manager._readers.values():
            reader.is_loaded = False
            task.cancel()
        await manager.close()
        self.managers.remove(manager)

    async def stop(self, manager: TopicMetadataManager) -> None:
        await manager.close()
        self.managers.remove(manager)

    def snapshot_names(self) -> list[str]:
        """Of P0's metadata partition, oldest first."""
        if self.kind == "local":
            folder = f"/snapshots/{self.metadata_partition}"
            if not self.filesystem.exists(folder):
                return []
            return sorted(f"{folder}/{e.name}" for e in self.filesystem.list_directory(folder))
        prefix = f"__remote_log_metadata/cluster/{self.metadata_partition}/"
        return sorted(key for key in self.tier.objects if key.startswith(prefix))

    def read_snapshot(self, name: str) -> bytes:
        if self.kind == "local":
            return self.filesystem.read_bytes(name)
        return self.tier.objects[name]

    def write_snapshot(self, name: str, data: bytes) -> None:
        if self.kind == "local":
            self.filesystem.replace_bytes(name, data)
        else:
            self.tier.objects[name] = data


async def settle(most: int = 60) -> None:
    await turns(most)


async def copy(
    manager: RemoteLogMetadataManager, *segments: RemoteLogSegmentMetadata
) -> list[RemoteLogSegmentMetadata]:
    """Tell of finished copies; what look-ups are then expected to return."""
    for metadata in segments:
        await manager.add(metadata)
        await manager.update(update(metadata, FINISHED, b"c"))
    return [metadata.with_update(update(metadata, FINISHED, b"c")) for metadata in segments]


async def delete(manager: RemoteLogMetadataManager, metadata: RemoteLogSegmentMetadata) -> None:
    await manager.update(update(metadata, DELETING))
    await manager.update(update(metadata, DELETED))


async def history(manager: RemoteLogMetadataManager) -> list[RemoteLogSegmentMetadata]:
    """Some of everything; what is left of it."""
    a, b, c, d, e = (
        segment(0, 9),
        segment(10, 19, epochs=((0, 10), (3, 15))),
        segment(20, 29, epochs=((3, 20),), txn_index_empty=True),
        segment(30, 39, epochs=((3, 30),)),
        segment(30, 49, epochs=((3, 30),)),
    )
    await copy(manager, a, b, c, d, e)
    await delete(manager, a)
    await manager.update(update(b, DELETING))
    await manager.add(segment(50, 59, epochs=((3, 50),)))
    return list(manager.segments(P0))


def picture(manager: RemoteLogMetadataManager) -> object:
    """All that look-ups say of P0."""
    return (
        manager.segments(P0),
        [[manager.find(P0, epoch, offset) for offset in range(62)] for epoch in range(5)],
        [[manager.find_next_with_transactions(P0, e, o) for o in range(62)] for e in range(5)],
        [manager.highest_offset(P0, epoch) for epoch in range(5)],
        [manager.segments(P0, epoch) for epoch in range(5)],
        [manager.size(P0, epoch) for epoch in (None, 0, 3)],
        manager.deletions(),
    )


def warnings(caplog: pytest.LogCaptureFixture, text: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if text in record.getMessage()]
