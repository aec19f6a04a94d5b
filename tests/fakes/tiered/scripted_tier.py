"""A `Tier` in memory whose calls can be held up, made to fail, and counted.

tier.gate("fetch_chunk").close()     calls hang until it is opened (or they are cancelled)
tier.failures["put_object"] = error  calls raise it
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tiered.errors import ObjectNotFoundError
from tiered.object_store.base import ObjectInfo, ObjectPage, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import (
    ChunkResult,
    CopyResult,
    Fault,
    FoundChunk,
    FoundChunks,
    IndexesResult,
    SegmentFiles,
    SideFile,
    TopicFacts,
)


class Gate:
    """Open, or holds up who comes."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.waiting = 0

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def pass_through(self) -> None:
        self.waiting += 1
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1


class FakeTier:
    """Objects are a dict; segments answer with numbers made of their metadata."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: list[PendingUpload] = []
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.failures: dict[str, BaseException] = {}
        self.ended: Counter[str] = Counter()
        self.closed = False
        self._gates: dict[str, Gate] = {}

    def gate(self, method: str) -> Gate:
        return self._gates.setdefault(method, Gate())

    async def _enter(self, method: str, *arguments: Any) -> None:
        self.calls.append((method, arguments))
        try:
            await self.gate(method).pass_through()
        except asyncio.CancelledError:
            self.ended["cancelled"] += 1
            raise
        if method in self.failures:
            raise self.failures[method]
        self.ended["done"] += 1

    async def copy_segment(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
    ) -> CopyResult:
        await self._enter("copy_segment", metadata, files, topic)
        return CopyResult(metadata.segment_size_bytes, b"\x00custom\xff")

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        await self._enter("fetch_indexes", metadata, directory, stem)
        return IndexesResult(4096, 3, metadata.segment_size_bytes, 99)

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        await self._enter("fetch_chunk", metadata, manifest, chunk, path)
        return ChunkResult(4096, 0xFFFFFFFF, chunk)

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        await self._enter("refer_to_chunks", metadata, manifest, list(chunks), directory)
        return FoundChunks("/object", 9, 5, [FoundChunk(chunk, 3, 7, 4) for chunk in chunks])

    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        await self._enter("fetch_side_file", metadata, kind)
        return kind.value.encode()

    async def delete_segment(self, metadata: RemoteLogSegmentMetadata) -> None:
        await self._enter("delete_segment", metadata)

    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        await self._enter("is_complete", metadata)
        return metadata.start_offset == 0

    async def verify_segment(self, metadata: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        await self._enter("verify_segment", metadata)
        return [Fault("key", -1, "problem"), Fault("another", 7, "é")]

    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        await self._enter("list_objects", prefix, continuation)
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        return ObjectPage(
            [ObjectInfo(key, len(self.objects[key]), 17) for key in keys],
            None if continuation else "more",
        )

    async def delete_objects(self, keys: Sequence[str]) -> None:
        await self._enter("delete_objects", list(keys))
        for key in keys:
            self.objects.pop(key, None)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        await self._enter("list_uploads", prefix)
        return [upload for upload in self.uploads if upload.key.startswith(prefix)]

    async def abort_upload(self, upload: PendingUpload) -> None:
        await self._enter("abort_upload", upload)
        self.uploads.remove(upload)

    async def put_object(self, key: str, data: bytes) -> None:
        await self._enter("put_object", key, data)
        self.objects[key] = data

    async def get_object(self, key: str) -> bytes:
        await self._enter("get_object", key)
        if key not in self.objects:
            raise ObjectNotFoundError(key)
        return self.objects[key]

    def statistics(self) -> Mapping[str, Any]:
        return {"fake": {"calls": len(self.calls)}}

    async def close(self) -> None:
        self.closed = True
