"""RemoteStorageManager: `Tier` over an object store, in the calling process.

    <stem>.log           stored chunks, one after the other      `log_stream`, `transform`
    <stem>.indexes       side files, one after the other         `segment_copy`
    <stem>.rsm-manifest  written last, deleted first             `manifest`

Kafka's RemoteStorageManager (KIP-405), cut the way our reader needs it: chunks and indexes go to
files, whose bytes the loop of the broker never sees. What blocks runs in a few threads.

Source: Aiven-Open/tiered-storage-for-apache-kafka, KafkaRemoteStorageManager.java.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from config.tier import TierConfig
from protocol.records.batch import crc32c
from storage.environment.environment import Environment
from storage.errors import DiskError
from storage.types.log_files import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    TierProcessError,
)
from tiered.format.batch_walk import first_batch_in
from tiered.format.key_ring import KeyRing
from tiered.format.object_keys import ObjectKeys, ObjectSuffix, SegmentKeys
from tiered.format.plugin_metadata import object_place
from tiered.object_store.base import ObjectPage, ObjectStore, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.copy import SegmentCopier, remove_objects
from tiered.storage_manager.disk_threads import DiskThreads
from tiered.storage_manager.in_place import NOTHING_FOUND, refer_to_chunks
from tiered.storage_manager.manifest_cache import ManifestMemory, OpenManifest
from tiered.storage_manager.read import SegmentReader, write_file, write_new
from tiered.storage_manager.statistics import OperationStatistics, TierStatistics
from tiered.storage_manager.verify import verify_segment
from tiered.storage_manager.workspace import ROOM_BYTES_MAX, WorkspacePool
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

OBJECT_BYTES_MAX: Final = 64 * 1024 * 1024
"""See `Tier.get_object`."""

MANIFEST_SUFFIX: Final = ".manifest"

_INDEX_SUFFIXES: Final = {
    SideFile.OFFSET: OFFSET_INDEX_SUFFIX,
    SideFile.TIMESTAMP: TIME_INDEX_SUFFIX,
    SideFile.TRANSACTION: TRANSACTION_INDEX_SUFFIX,
}


VERIFICATIONS: Final = 1
"""Segments that are verified at a time, beside the copies."""


class RemoteStorageManager:
    """`tiered.tier.Tier`; see there for what each method promises."""

    def __init__(
        self,
        store: ObjectStore,
        settings: TierConfig,
        key_ring: KeyRing,
        *,
        environment: Environment,
        spool_directory: str,
        software: str,
        threads: int = 4,
    ) -> None:
        """Touch nothing yet.

        Args:
            store: Puts its own prefix before every key; closed with this.
            settings: How new segments are written, and how many copies and downloads at a time.
            key_ring: `KeyRing.load(settings, ...)`.
            environment: Its disk holds the local files.
            spool_directory: For compressed segments on their way; made when needed.
            software: Version that goes into manifests.
            threads: For disk, sums, compression and encryption.

        Raises:
            ValueError: Chunks larger than can be read again.
        """
        chunk_bytes = settings.rsm_config_chunk_size
        if not 0 < chunk_bytes <= ROOM_BYTES_MAX:
            raise ValueError(f"chunks of {chunk_bytes} bytes, more than {ROOM_BYTES_MAX}")
        self._store = store
        self._filesystem = environment.filesystem
        self._clock = environment.clock
        self._keys = ObjectKeys()
        self._key_prefix = settings.rsm_config_key_prefix
        self._threads = DiskThreads(threads)
        self._statistics = TierStatistics(environment.clock)
        self._manifests = ManifestMemory()
        self._copies = WorkspacePool(
            "segment copies", settings.remote_log_manager_copier_thread_pool_size + VERIFICATIONS
        )
        self._fetches = WorkspacePool("chunk downloads", max(settings.remote_log_reader_threads, 1))
        self._closed = False
        # As many as callers have begun; what they may begin is theirs to bound.
        self._under_way: set[asyncio.Task[Any]] = set()
        self._ended_by_close: set[asyncio.Task[Any]] = set()
        self._last_call_ended: asyncio.Future[None] | None = None
        self._copier = SegmentCopier(
            store,
            environment,
            self._threads,
            key_ring,
            self._statistics,
            settings,
            spool_directory=spool_directory,
            software=software,
        )
        self._reader = SegmentReader(
            store,
            environment.filesystem,
            self._threads,
            key_ring,
            environment.randomness,
            self._statistics,
            self._manifests,
        )

    def _keys_of(self, metadata: RemoteLogSegmentMetadata) -> SegmentKeys:
        """The names of a segment's objects, below the store's prefix.

        Raises:
            RemoteStorageError: It lies where this store does not reach.
        """
        prefix, key = object_place(metadata.custom_metadata)
        if prefix is None and key is None:
            return self._keys.segment_keys(metadata)
        own = self._key_prefix
        stem = key or self._keys.stem(metadata.segment_id, metadata.start_offset)
        name = (own if prefix is None else prefix) + stem
        if not name.startswith(own):
            raise RemoteStorageError(
                f"{name} was copied with another prefix: rsm.config.key.prefix is {own!r}, and has "
                "to be what both begin with"
            )
        stem = name[len(own) :]
        return SegmentKeys(*(f"{stem}.{suffix}" for suffix in ObjectSuffix))

    # -- writing -----------------------------------------------------------------------------

    async def copy_segment(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
    ) -> CopyResult:
        """As `Tier`."""
        with self._call("copy_segment") as counters:
            async with self._copies.lease() as workspace:
                keys = self._keys_of(metadata)
                created_ms = self._clock.now_ms()
                with self._statistics.copying(metadata.id):
                    _, uploaded = await self._copier.copy(
                        metadata, files, topic, keys, created_ms, workspace
                    )
            counters.bytes_up += uploaded
            return CopyResult(uploaded, None)

    async def delete_segment(self, metadata: RemoteLogSegmentMetadata) -> None:
        """As `Tier`."""
        with self._call("delete_segment"):
            self._manifests.forget(metadata.id)
            await remove_objects(self._store, self._keys_of(metadata))

    # -- reading -----------------------------------------------------------------------------

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        """As `Tier`."""
        with self._call("fetch_indexes") as counters:
            keys = self._keys_of(metadata)
            opened, data = await self._reader.fetch_manifest(metadata, keys)
            parts = await self._reader.read_side_files(opened, keys, tuple(_INDEX_SUFFIXES))
            index = opened.manifest.chunk_index
            downloaded = len(data) + opened.manifest.indexes_size
            counters.bytes_down += downloaded
            if not opened.manifest.has_sums:
                # A restart must be able to check whether these files are whole.
                data = opened.manifest.with_side_sums(parts).to_json()
            await self._threads.run(self._write_indexes, f"{directory}/{stem}", parts, data)
            return IndexesResult(
                index.original_chunk_size, index.count, index.original_file_size, downloaded
            )

    def _write_indexes(self, stem: str, parts: Mapping[SideFile, bytes], manifest: bytes) -> None:
        files = {stem + _INDEX_SUFFIXES[kind]: data for kind, data in parts.items() if data}
        for kind in (SideFile.OFFSET, SideFile.TIMESTAMP):
            # There even when it is empty, as for a local segment.
            files.setdefault(stem + _INDEX_SUFFIXES[kind], b"")
        files[stem + MANIFEST_SUFFIX] = manifest
        try:
            for path, data in files.items():
                write_file(self._filesystem, path + ".tmp", data)
            for path in files:
                self._filesystem.rename(path + ".tmp", path)
        except DiskError:
            for path in files:
                self._filesystem.unlink(path + ".tmp", missing_ok=True)
            raise

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        """As `Tier`."""
        with self._call("fetch_chunk") as counters:
            keys = self._keys_of(metadata)
            async with self._fetches.lease() as workspace:
                opened = await self._reader.opened(metadata, keys, manifest)
                in_place = await self._reader.refer_to_chunk(opened, keys, chunk, workspace, path)
                if in_place:
                    size = opened.manifest.chunk(chunk).original_size
                else:
                    batch_at = await self._batch_in(opened, manifest, chunk)
                    original = await self._reader.read_chunk(
                        *(opened, keys, chunk, workspace, batch_at),
                        use=lambda data: write_new(self._filesystem, path, data),
                    )
                    size = len(original)
                    if opened.manifest.chunk_crcs is None:
                        crc = await self._threads.run(crc32c, original)
                downloaded = opened.manifest.chunk(chunk).stored_size
                counters.bytes_down += downloaded
                if opened.manifest.chunk_crcs is not None:
                    crc = opened.manifest.chunk_crcs[chunk]
                return ChunkResult(size, crc, downloaded, in_place)

    async def _batch_in(self, opened: OpenManifest, manifest: str, number: int) -> int:
        """Where a batch begins in a chunk that has no sum; -1: unknown."""
        if opened.manifest.has_sums or not manifest.endswith(MANIFEST_SUFFIX):
            return -1
        index = manifest.removesuffix(MANIFEST_SUFFIX) + OFFSET_INDEX_SUFFIX
        try:
            chunk = opened.manifest.chunk(number)
            return await self._threads.run(
                first_batch_in,
                self._filesystem,
                index,
                chunk.original_position,
                chunk.original_size,
            )
        except (DiskError, IndexError):
            return -1

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        """As `Tier`."""
        with self._call("refer_to_chunks") as counters:
            keys = self._keys_of(metadata)
            place = self._store.local_path(keys.log)
            if place is None:
                return NOTHING_FOUND
            opened = await self._reader.opened(metadata, keys, manifest)
            if not opened.transform.is_plain:
                return NOTHING_FOUND
            begin_ms = self._clock.monotonic_ms()
            found = await self._threads.run(
                refer_to_chunks, self._filesystem, opened, metadata, place, chunks, directory
            )
            sizes = [chunk.length for chunk in found.chunks]
            counters.bytes_down += sum(sizes)
            # Counted as so many range requests to the object, which they were.
            self._store.statistics.count_together(
                "get_range", sizes, self._clock.monotonic_ms() - begin_ms
            )
            return found

    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        """As `Tier`."""
        with self._call("fetch_side_file") as counters:
            keys = self._keys_of(metadata)
            opened = await self._reader.opened(metadata, keys)
            entry = opened.manifest.side_files.get(kind)
            if entry is None:
                raise ObjectNotFoundError(f"{keys.indexes}: {kind.value}")
            parts = await self._reader.read_side_files(opened, keys, [kind])
            counters.bytes_down += entry.stored_size
            return parts[kind]

    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """As `Tier`.

        A manifest that cannot be read is not taken for one that is missing, which would have the
        segment deleted: CorruptRemoteDataError, RemoteStorageError.
        """
        with self._call("is_complete"):
            keys = self._keys_of(metadata)
            try:
                opened, _ = await self._reader.fetch_manifest(metadata, keys)
            except ObjectNotFoundError:
                return False
            manifest = opened.manifest
            for key, size in (
                (keys.log, manifest.log_size),
                (keys.indexes, manifest.indexes_size),
            ):
                info = await self._store.head(key)
                if info is None or info.size != size:
                    return False
            return True

    async def verify_segment(self, metadata: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        """As `Tier`."""
        with self._call("verify_segment") as counters:
            keys = self._keys_of(metadata)
            async with self._copies.lease() as workspace:
                faults, read = await verify_segment(
                    self._reader, self._store, metadata, keys, workspace
                )
            counters.bytes_down += read
            return faults

    # -- objects -----------------------------------------------------------------------------

    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        """As `Tier`."""
        with self._call("list_objects"):
            return await self._store.list(prefix, continuation=continuation)

    async def delete_objects(self, keys: Sequence[str]) -> None:
        """As `Tier`."""
        with self._call("delete_objects"):
            await self._store.delete(keys)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """As `Tier`."""
        with self._call("list_uploads"):
            return await self._store.list_uploads(prefix)

    async def abort_upload(self, upload: PendingUpload) -> None:
        """As `Tier`."""
        with self._call("abort_upload"):
            await self._store.abort_upload(upload)

    async def put_object(self, key: str, data: bytes) -> None:
        """As `Tier`."""
        with self._call("put_object") as counters:
            if len(data) > OBJECT_BYTES_MAX:
                raise RemoteStorageError(
                    f"{key}: {len(data)} bytes are more than an object's limit"
                )
            await self._store.put(key, data)
            counters.bytes_up += len(data)

    async def get_object(self, key: str) -> bytes:
        """As `Tier`."""
        with self._call("get_object") as counters:
            data = await self._store.get(key, max_bytes=OBJECT_BYTES_MAX)
            counters.bytes_down += len(data)
            return data

    # ----------------------------------------------------------------------------------------

    def statistics(self) -> Mapping[str, Any]:
        """Counters; see `Tier.statistics`."""
        store = getattr(self._store, "statistics", None)
        return {
            **self._statistics.as_dict(),
            "copies": self._copies.as_dict(),
            "fetches": self._fetches.as_dict(),
            "manifests": self._manifests.as_dict(),
            "store": {} if store is None else store.as_dict(),
        }

    async def close(self) -> None:
        """As `Tier`. Ends when all calls have; failed copies remove their objects first."""
        if self._closed:
            return
        self._closed = True
        for task in self._under_way:
            self._ended_by_close.add(task)
            task.cancel()
        if self._under_way:
            self._last_call_ended = asyncio.get_running_loop().create_future()
            await self._last_call_ended
        self._threads.close()
        await self._store.close()

    @contextmanager
    def _call(self, operation: str) -> Iterator[OperationStatistics]:
        """One call from its beginning to its end, which may be `close`."""
        if self._closed:
            raise TierProcessError("the tier is closed")
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            with self._statistics.measure(operation) as counters:
                yield counters
        except asyncio.CancelledError:
            # As `asyncio.timeout` distinguishes its own cancellation from others'.
            if task in self._ended_by_close and task.uncancel() == 0:
                raise TierProcessError("the tier is closed") from None
            raise
        finally:
            self._under_way.discard(task)
            self._ended_by_close.discard(task)
            ended = self._last_call_ended
            if ended is not None and not self._under_way and not ended.done():
                ended.set_result(None)
