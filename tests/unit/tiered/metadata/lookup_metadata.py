"""`RemoteLogMetadataManager` for readers: the plainest look-ups there can be, no topic behind."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from tiered.errors import RemoteStorageNotReadyError
from tiered.metadata.remote_log_metadata_manager import PartitionSegments
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentState,
    TopicIdPartition,
)


class LookupMetadata:
    """Of any number of partitions; `hold` makes them all not ready until `let_go`."""

    def __init__(self) -> None:
        self._segments: dict[UUID, RemoteLogSegmentMetadata] = {}
        self._ready = asyncio.Event()
        self._ready.set()
        self.waiting = 0
        self.doubts = ""

    is_steward = True

    def refresh(self, partition: TopicIdPartition) -> None:
        """All is up to date."""

    async def caught_up(self, partitions: Iterable[TopicIdPartition]) -> None:
        """All is up to date."""

    def leads(self, partition: TopicIdPartition) -> bool:
        return True

    async def begin_inspection(
        self, partition: TopicIdPartition | None = None
    ) -> Sequence[TopicIdPartition]:
        """What is assigned is all there is."""
        return ()

    def end_inspection(self, inspected: Iterable[TopicIdPartition]) -> None:
        """Nothing was begun."""

    def known(self) -> Sequence[TopicIdPartition]:
        return self.partitions()

    def doubt(self, partition: TopicIdPartition) -> str:
        return self.doubts

    def lost(self, partition: TopicIdPartition) -> str:
        return ""

    def withhold(self, partition: TopicIdPartition, reason: str) -> None:
        self.doubts = reason

    async def restore(self, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
        for one in segments:
            self.add_finished(one)

    async def accept_partitions(self) -> None:
        pass

    def losses(self) -> Sequence[str]:
        return ()

    async def found(self) -> None:
        pass

    def hold(self) -> None:
        self._ready.clear()

    def let_go(self) -> None:
        self._ready.set()

    def assign(self, partitions: Iterable[TopicIdPartition]) -> None:
        pass

    def release(self, partitions: Iterable[TopicIdPartition]) -> None:
        pass

    def is_ready(self, partition: TopicIdPartition) -> bool:
        return self._ready.is_set()

    async def ready(self, partition: TopicIdPartition) -> None:
        self.waiting += 1
        try:
            await self._ready.wait()
        finally:
            self.waiting -= 1

    def add_finished(self, metadata: RemoteLogSegmentMetadata) -> None:
        """A copy that was begun and finished."""
        self._segments[metadata.id] = metadata
        self.tell(metadata, SegmentState.COPY_SEGMENT_FINISHED)

    def tell(self, metadata: RemoteLogSegmentMetadata, state: SegmentState) -> None:
        """A segment's next state."""
        self._segments[metadata.id] = replace(metadata, state=state)

    async def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        self._segments[metadata.id] = metadata

    async def update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        self.tell(self._segments[update.segment_id.id], update.state)

    async def delete_partition(self, deletion: RemotePartitionDelete) -> None:
        raise NotImplementedError

    def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        if not self._ready.is_set():
            raise RemoteStorageNotReadyError(f"{partition} is not ready")
        found = [m for m in self._segments.values() if m.partition == partition]
        if epoch is not None:
            found = [m for m in found if epoch in dict(m.segment_leader_epochs)]
        return sorted(found, key=lambda metadata: metadata.start_offset)

    def _finished(
        self, partition: TopicIdPartition, epoch: int
    ) -> list[tuple[int, int, RemoteLogSegmentMetadata]]:
        """(first, last offset of the epoch, segment)."""
        spans = []
        for metadata in self.segments(partition, epoch):
            if metadata.state is SegmentState.COPY_SEGMENT_FINISHED:
                epochs = [*metadata.segment_leader_epochs, (0, metadata.end_offset + 1)]
                at = [entry[0] for entry in epochs[:-1]].index(epoch)
                spans.append((epochs[at][1], epochs[at + 1][1] - 1, metadata))
        return spans

    def known_of(self, partition: TopicIdPartition) -> PartitionSegments:
        raise NotImplementedError

    def find(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        holding = [m for a, b, m in self._finished(partition, epoch) if a <= offset <= b]
        return holding[-1] if holding else None

    def find_at_or_after(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        found = self.find(partition, epoch, offset)
        later = [m for a, _, m in self._finished(partition, epoch) if a > offset]
        return found or (later[0] if later else None)

    def find_unfinished(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        for metadata in self.segments(partition, epoch):
            finished = metadata.state is SegmentState.COPY_SEGMENT_FINISHED
            if not finished and metadata.start_offset <= offset <= metadata.end_offset:
                return metadata
        return None

    def find_next_with_transactions(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        for _, last, metadata in self._finished(partition, epoch):
            if last >= offset and not metadata.txn_index_empty:
                return metadata
        return None

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        return max((last for _, last, _ in self._finished(partition, epoch)), default=None)

    def size(self, partition: TopicIdPartition, epoch: int | None = None) -> int:
        return sum(metadata.segment_size_bytes for metadata in self.segments(partition, epoch))

    def deletions(self) -> Sequence[RemotePartitionDelete]:
        return []

    def partitions(self) -> Sequence[TopicIdPartition]:
        return sorted({metadata.partition for metadata in self._segments.values()})
