"""A `Tier` over the files of real segments, in memory: gates, failures and counters as `FakeTier`.

tier.add(metadata, files)            what a copy would have left in the bucket
tier.chunk_calls[(start offset, 3)]  how often chunk 3 of that segment was downloaded
tier.broken[(start offset, 3)]       an error for this chunk alone
tier.remove(metadata)                the segment has expired
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from protocol.records.batch import crc32c
from storage.environment.filesystem import Filesystem
from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.errors import ObjectNotFoundError
from tiered.format.manifest_layout import seal
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.in_place import NOTHING_FOUND
from tiered.tier import ChunkResult, FoundChunks, IndexesResult


@dataclass
class StoredSegment:
    """The bytes of one copy; `transaction_index` empty: there is none."""

    log: bytes
    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    chunk_bytes: int

    @property
    def manifest(self) -> bytes:
        """As much of a manifest as a reader looks at."""
        index = {
            "type": "fixed",
            "originalChunkSize": self.chunk_bytes,
            "originalFileSize": len(self.log),
        }
        files = {
            "offset": self.offset_index,
            "timestamp": self.time_index,
            "transaction": self.transaction_index,
        }
        sums = {
            name: {"size": len(data), "crc32c": crc32c(data)}
            for name, data in files.items()
            if data
        }
        fields = {
            "version": "1",
            "chunkIndex": index,
            "remoteLogSegmentMetadata": {"varve": {"sideFiles": sums}},
        }
        return seal(json.dumps(fields).encode()[: -len("}}}")] + b",")


class SegmentTier(FakeTier):
    """See the module."""

    def __init__(self, filesystem: Filesystem) -> None:
        super().__init__()
        self.filesystem = filesystem
        self.segments: dict[UUID, StoredSegment] = {}
        self.chunk_calls: Counter[tuple[int, int]] = Counter()
        self.index_calls: Counter[int] = Counter()
        self.broken: dict[tuple[int, int], Exception] = {}

    def add(self, metadata: RemoteLogSegmentMetadata, stored: StoredSegment) -> None:
        self.segments[metadata.id] = stored

    def remove(self, metadata: RemoteLogSegmentMetadata) -> None:
        del self.segments[metadata.id]

    def _find(self, metadata: RemoteLogSegmentMetadata) -> StoredSegment:
        stored = self.segments.get(metadata.id)
        if stored is None:
            raise ObjectNotFoundError(str(metadata.id))
        return stored

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        self.index_calls[metadata.start_offset] += 1
        await self._enter("fetch_indexes", metadata, directory, stem)
        stored = self._find(metadata)
        files = {".index": stored.offset_index, ".timeindex": stored.time_index}
        if stored.transaction_index:
            files[".txnindex"] = stored.transaction_index
        files[".manifest"] = stored.manifest
        for suffix, data in files.items():
            self._write(f"{directory}/{stem}{suffix}", data)
        size = sum(map(len, files.values()))
        chunks = -(-len(stored.log) // stored.chunk_bytes)
        return IndexesResult(stored.chunk_bytes, chunks, len(stored.log), size)

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        key = (metadata.start_offset, chunk)
        self.chunk_calls[key] += 1
        await self._enter("fetch_chunk", metadata, manifest, chunk, path)
        assert self.filesystem.exists(manifest), manifest
        if key in self.broken:
            raise self.broken[key]
        stored = self._find(metadata)
        data = stored.log[chunk * stored.chunk_bytes : (chunk + 1) * stored.chunk_bytes]
        assert data, key
        self._write(path, data)
        return ChunkResult(len(data), crc32c(data), len(data))

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        """They are not on this machine."""
        return NOTHING_FOUND

    def _write(self, path: str, data: bytes) -> None:
        file = self.filesystem.open(path + ".tmp", create=True)
        file.truncate(0)
        file.write_at(data, 0)
        file.close()
        self.filesystem.rename(path + ".tmp", path)
