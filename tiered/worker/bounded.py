"""A `Tier` whose buffers are bounded: every call takes its share of bytes before it begins.

Three lanes, so that a burst of one kind never holds up another: readers do not wait for copies.

    lane      calls                                          share of one call
    copying   copy_segment, verify_segment                   a part, and one per part in flight,
                                                             or three chunks if that is more
    fetching  fetch_chunk, fetch_indexes, fetch_side_file    three chunks: as stored, decrypted,
                                                             as it was
    fetching  refer_to_chunks                                a block
    objects   put_object, get_object                         the object; unknown: the largest

Each lane's size is its tasks' shares, at most LANE_BYTES_MAX. Listing and deleting hold no payload.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from config.tier import TierConfig
from tiered.object_store.base import ObjectPage, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.in_place import BLOCK_BYTES
from tiered.tier import (
    ChunkResult,
    CopyResult,
    Fault,
    FoundChunks,
    IndexesResult,
    SegmentFiles,
    SideFile,
    Tier,
    TopicFacts,
)
from tiered.worker.budget import Budget

MIB: Final = 1024 * 1024

LANE_BYTES_MAX: Final = 128 * MIB
"""What the three lanes may hold is three times this; one task always may run."""

OBJECT_BYTES_MAX: Final = 64 * MIB
"""See `Tier.get_object`."""

WAITING_MAX: Final = 1000
"""Calls that wait for bytes of one lane; more than the broker ever has under way."""


class BoundedTier:
    """See the module."""

    def __init__(self, tier: Tier, settings: TierConfig) -> None:
        self._tier = tier
        store = settings.store
        chunks = 3 * settings.rsm_config_chunk_size
        self._copy_share = max((store.parts_in_flight + 1) * store.part_bytes, chunks)
        self._fetch_share = chunks
        copying = min(
            settings.remote_log_manager_copier_thread_pool_size * self._copy_share, LANE_BYTES_MAX
        )
        fetching = min(settings.remote_log_reader_threads * self._fetch_share, LANE_BYTES_MAX)
        self._copying = Budget(
            "copying bytes in flight", max(copying, self._copy_share), waiting_max=WAITING_MAX
        )
        self._fetching = Budget(
            "fetching bytes in flight", max(fetching, self._fetch_share), waiting_max=WAITING_MAX
        )
        self._objects = Budget(
            "object bytes in flight", 2 * OBJECT_BYTES_MAX, waiting_max=WAITING_MAX
        )

    async def copy_segment(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
    ) -> CopyResult:
        """As `Tier`."""
        async with self._copying.share(self._copy_share):
            return await self._tier.copy_segment(metadata, files, topic)

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        """As `Tier`."""
        async with self._fetching.share(self._fetch_share):
            return await self._tier.fetch_indexes(metadata, directory, stem)

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        """As `Tier`."""
        async with self._fetching.share(self._fetch_share):
            return await self._tier.fetch_chunk(metadata, manifest, chunk, path)

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        """As `Tier`."""
        async with self._fetching.share(BLOCK_BYTES):
            return await self._tier.refer_to_chunks(metadata, manifest, chunks, directory)

    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        """As `Tier`."""
        async with self._fetching.share(self._fetch_share):
            return await self._tier.fetch_side_file(metadata, kind)

    async def delete_segment(self, metadata: RemoteLogSegmentMetadata) -> None:
        """As `Tier`."""
        await self._tier.delete_segment(metadata)

    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """As `Tier`."""
        return await self._tier.is_complete(metadata)

    async def verify_segment(self, metadata: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        """As `Tier`."""
        async with self._copying.share(self._copy_share):
            return await self._tier.verify_segment(metadata)

    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        """As `Tier`."""
        return await self._tier.list_objects(prefix, continuation)

    async def delete_objects(self, keys: Sequence[str]) -> None:
        """As `Tier`."""
        await self._tier.delete_objects(keys)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """As `Tier`."""
        return await self._tier.list_uploads(prefix)

    async def abort_upload(self, upload: PendingUpload) -> None:
        """As `Tier`."""
        await self._tier.abort_upload(upload)

    async def put_object(self, key: str, data: bytes) -> None:
        """As `Tier`."""
        async with self._objects.share(len(data)):
            await self._tier.put_object(key, data)

    async def get_object(self, key: str) -> bytes:
        """As `Tier`."""
        async with self._objects.share(OBJECT_BYTES_MAX):
            return await self._tier.get_object(key)

    def statistics(self) -> Mapping[str, Any]:
        """The tier's, and `buffers`: the lanes."""
        return {
            **self._tier.statistics(),
            "buffers": {
                "copying": self._copying.statistics(),
                "fetching": self._fetching.statistics(),
                "objects": self._objects.statistics(),
            },
        }

    async def close(self) -> None:
        """As `Tier`."""
        await self._tier.close()
