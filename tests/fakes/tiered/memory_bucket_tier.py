"""A `Tier` over a bucket in memory, with the names that real objects have.

    bucket = Bucket(clock)                    outlives the tier
    tier = BucketTier(bucket, filesystem)
    tier.fail("copy_segment", StoreUnavailableError("x"))           before anything was uploaded
    tier.fail("copy_segment", StoreTimeoutError("x"), at="log uploaded")   midway
    tier.hang("copy_segment")                                       until cancelled

Steps of a copy: "copy_segment", "log uploaded", "indexes uploaded", "manifest uploaded"; of a
removal: "delete_segment", "manifest removed", "objects removed"; of a small object: "put_object",
"object put". `reach` is awaited at each, and at every other call under the call's name.
"""

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from storage.environment.filesystem import Filesystem
from tests.fakes.clock import ManualClock
from tiered.errors import ObjectNotFoundError
from tiered.format.object_keys import ObjectKeys
from tiered.object_store.base import ObjectInfo, ObjectPage, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import (
    ChunkResult,
    CopyResult,
    Fault,
    FoundChunks,
    IndexesResult,
    SegmentFiles,
    SideFile,
    TopicFacts,
)

Reach: TypeAlias = Callable[[str], Awaitable[None]]

PAGE = 4


async def _nowhere(point: str) -> None:
    pass


@dataclass
class Stored:
    data: bytes
    modified_ms: int


class Bucket:
    """Objects, unfinished uploads, and a clock that need not be ours."""

    def __init__(self, clock: ManualClock, skew_ms: int = 0) -> None:
        self.clock = clock
        self.skew_ms = skew_ms
        self.objects: dict[str, Stored] = {}
        self.uploads: list[PendingUpload] = []

    def put(self, key: str, data: bytes) -> None:
        self.objects[key] = Stored(data, self.clock.now_ms() + self.skew_ms)

    def segment_objects(self) -> dict[str, Stored]:
        keys = ObjectKeys()
        return {key: o for key, o in self.objects.items() if keys.parse(key) is not None}


class BucketTier:
    """See the module."""

    def __init__(self, bucket: Bucket, filesystem: Filesystem, reach: Reach = _nowhere) -> None:
        self.bucket = bucket
        self.filesystem = filesystem
        self.reach = reach
        self.keys = ObjectKeys()
        self.calls: Counter[str] = Counter()
        self.custom_metadata: bytes | None = None
        self.empty_from: dict[int, int | None] = {}
        """What copies were told of the log before them, by their start offset."""
        self._faults: dict[str, list[Exception | None]] = {}

    def fail(self, call: str, error: Exception, *, at: str = "", times: int = 1) -> None:
        self._faults.setdefault(at or call, []).extend([error] * times)

    def hang(self, call: str) -> None:
        self._faults.setdefault(call, []).append(None)

    async def _at(self, point: str) -> None:
        self.calls[point] += 1
        await self.reach(point)
        faults = self._faults.get(point)
        if faults:
            error = faults.pop(0)
            if error is None:
                await asyncio.Event().wait()
            else:
                raise error

    async def copy_segment(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
    ) -> CopyResult:
        keys = self.keys.segment_keys(metadata)
        await self._at("copy_segment")
        log = self.filesystem.read_bytes(files.log)
        assert len(log) == metadata.segment_size_bytes
        indexes = {
            SideFile.OFFSET: self.filesystem.read_bytes(files.offset_index),
            SideFile.TIMESTAMP: self.filesystem.read_bytes(files.time_index),
            SideFile.PRODUCER_SNAPSHOT: self.filesystem.read_bytes(files.producer_snapshot),
            SideFile.LEADER_EPOCH: files.leader_epochs,
        }
        self.bucket.put(keys.log, log)
        await self._at("log uploaded")
        self.bucket.put(
            keys.indexes, json.dumps({k.value: v.hex() for k, v in indexes.items()}).encode()
        )
        await self._at("indexes uploaded")
        self.bucket.put(keys.manifest, json.dumps({"crc": zlib.crc32(log)}).encode())
        self.empty_from[metadata.start_offset] = files.empty_from
        await self._at("manifest uploaded")
        return CopyResult(len(log), self.custom_metadata)

    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        await self._at("fetch_side_file")
        key = self.keys.segment_keys(metadata).indexes
        if key not in self.bucket.objects:
            raise ObjectNotFoundError(key)
        return bytes.fromhex(json.loads(self.bucket.objects[key].data)[kind.value])

    async def delete_segment(self, metadata: RemoteLogSegmentMetadata) -> None:
        keys = self.keys.segment_keys(metadata)
        await self._at("delete_segment")
        self.bucket.objects.pop(keys.manifest, None)
        await self._at("manifest removed")
        self.bucket.objects.pop(keys.log, None)
        self.bucket.objects.pop(keys.indexes, None)
        await self._at("objects removed")

    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        await self._at("is_complete")
        return self.is_whole(metadata)

    def is_whole(self, metadata: RemoteLogSegmentMetadata) -> bool:
        return all(key in self.bucket.objects for key in self.keys.segment_keys(metadata))

    async def verify_segment(self, metadata: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        await self._at("verify_segment")
        keys = self.keys.segment_keys(metadata)
        objects = self.bucket.objects
        if keys.manifest not in objects:
            raise ObjectNotFoundError(keys.manifest)
        crc = json.loads(objects[keys.manifest].data)["crc"]
        if zlib.crc32(objects[keys.log].data) != crc:
            return [Fault(keys.log, 0, "checksum")]
        return []

    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        await self._at("list_objects")
        names = sorted(
            key
            for key in self.bucket.objects
            if key.startswith(prefix) and (continuation is None or key > continuation)
        )
        page = [
            ObjectInfo(key, len(stored.data), stored.modified_ms)
            for key in names[:PAGE]
            for stored in (self.bucket.objects[key],)
        ]
        return ObjectPage(page, names[PAGE - 1] if len(names) > PAGE else None)

    async def delete_objects(self, keys: Sequence[str]) -> None:
        await self._at("delete_objects")
        for key in keys:
            self.bucket.objects.pop(key, None)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        await self._at("list_uploads")
        return [upload for upload in self.bucket.uploads if upload.key.startswith(prefix)]

    async def abort_upload(self, upload: PendingUpload) -> None:
        await self._at("abort_upload")
        self.bucket.uploads.remove(upload)

    async def put_object(self, key: str, data: bytes) -> None:
        await self._at("put_object")
        self.bucket.put(key, data)
        await self._at("object put")

    async def get_object(self, key: str) -> bytes:
        await self._at("get_object")
        if key not in self.bucket.objects:
            raise ObjectNotFoundError(key)
        return self.bucket.objects[key].data

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        raise AssertionError("nothing here reads")

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        raise AssertionError("nothing here reads")

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        raise AssertionError("nothing here reads")

    def statistics(self) -> Mapping[str, Any]:
        return {}

    async def close(self) -> None:
        pass
