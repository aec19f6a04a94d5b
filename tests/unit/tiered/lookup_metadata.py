"""`RemoteLogMetadataManager` for readers: look-ups on the real cache, no topic behind it."""

import asyncio
from collections.abc import Iterable, Sequence

from tiered.errors import RemoteStorageNotReadyError
from tiered.metadata_cache import RemoteLogMetadataCache
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
        self.caches: dict[TopicIdPartition, RemoteLogMetadataCache] = {}
        self._ready = asyncio.Event()
        self._ready.set()
        self.waiting = 0

    def hold(self) -> None:
        self._ready.clear()

    def let_go(self) -> None:
        self._ready.set()

    def _cache(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        if not self._ready.is_set():
            raise RemoteStorageNotReadyError(f"{partition} is not ready")
        return self.caches.setdefault(partition, RemoteLogMetadataCache())

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
        self._cache(metadata.partition).add(metadata)
        self.tell(metadata, SegmentState.COPY_SEGMENT_FINISHED)

    def tell(self, metadata: RemoteLogSegmentMetadata, state: SegmentState) -> None:
        """A segment's next state."""
        self._cache(metadata.partition).update(
            RemoteLogSegmentMetadataUpdate(metadata.segment_id, 0, state, 1)
        )

    async def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        self._cache(metadata.partition).add(metadata)

    async def update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        self._cache(update.segment_id.partition).update(update)

    async def delete_partition(self, deletion: RemotePartitionDelete) -> None:
        self.caches.pop(deletion.partition, None)

    def find(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._cache(partition).find(epoch, offset)

    def find_next_with_transactions(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._cache(partition).find_next_with_transactions(epoch, offset)

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        return self._cache(partition).highest_offset(epoch)

    def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        return self._cache(partition).segments(epoch)

    def size(self, partition: TopicIdPartition, epoch: int | None = None) -> int:
        return self._cache(partition).size(epoch)

    def deletions(self) -> Sequence[RemotePartitionDelete]:
        return []

    def partitions(self) -> Sequence[TopicIdPartition]:
        return list(self.caches)
