"""Copy of one segment into the bucket.

    side files --read, check--> log --check, upload--> indexes --upload--> manifest --upload--> done
         └────────────┴──── any failure, or being cancelled ────┴──> remove what may be there

The log is read from its file once. Where the stored size is known beforehand (nothing compressed)
the chunks go straight from that pass to the store. Where it is not, they go to a spool first, since
a store wants to know an object's size at its beginning: a file without a name in the spool folder,
which ends with the process whatever ends that. The other way, compressing twice, costs 1.5 s of CPU
a GB; a spool costs a write into the page cache and, in disk, at most one segment a copy. As a
bonus, nothing at all of a corrupt segment leaves this machine.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Final

from config.tier import TierConfig
from protocol.records.batch import crc32c
from storage.environment.environment import Environment
from storage.environment.filesystem import File
from storage.index.batch_scan import read_batch_header
from tiered.errors import CorruptSegmentError, RemoteStorageError, TieredError
from tiered.format.encryption import OVERHEAD, ChunkCipher
from tiered.format.key_ring import DataKeyEnvelope, KeyRing
from tiered.format.manifest import SIDE_FILES_BYTES_MAX, SegmentManifest, StoredSideFile
from tiered.format.object_keys import SegmentKeys
from tiered.format.segment_check import SegmentCheck
from tiered.format.transform import ChunkTransform
from tiered.object_store.base import ObjectStore
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.disk_threads import DiskThreads, settle
from tiered.storage_manager.log_stream import LogStream
from tiered.storage_manager.statistics import TierStatistics
from tiered.storage_manager.workspace import Workspace
from tiered.tier import SegmentFiles, SideFile, TopicFacts

_log = logging.getLogger(__name__)

SPOOL_PIECE: Final = 4 * 1024 * 1024


class SegmentCopier:
    """Copies segments, one per call; several calls may be under way."""

    def __init__(
        self,
        store: ObjectStore,
        environment: Environment,
        threads: DiskThreads,
        key_ring: KeyRing,
        statistics: TierStatistics,
        settings: TierConfig,
        *,
        spool_directory: str,
        software: str,
    ) -> None:
        self._store = store
        self._filesystem = environment.filesystem
        self._threads = threads
        self._key_ring = key_ring
        self._randomness = environment.randomness
        self._statistics = statistics
        self._settings = settings
        self._spool_directory = spool_directory
        self._software = software

    async def copy(
        self,
        metadata: RemoteLogSegmentMetadata,
        files: SegmentFiles,
        topic: TopicFacts,
        keys: SegmentKeys,
        created_ms: int,
        workspace: Workspace,
    ) -> tuple[SegmentManifest, int]:
        """Copy one segment.

        What a failed copy has put is removed at once, but not after its manifest was sent: a whole
        copy may have been taken over by the partition's next leader, as the only one there is. It
        goes once the metadata says that it is being deleted.

        Returns:
            Its manifest, and the bytes that went into the bucket.

        Raises:
            CorruptSegmentError: It is not fit to be copied.
            DiskError: A file cannot be read, or the spool not be written.
            RemoteStorageError: The store cannot take it.
        """
        parts, check, file = await self._threads.run(self._open, metadata, files)
        transform, envelope = await self._threads.run(
            self._choose_transform, file, metadata.segment_size_bytes
        )
        stream = LogStream(
            file,
            metadata.segment_size_bytes,
            self._settings.rsm_config_chunk_size,
            check,
            transform,
            workspace,
            self._threads,
        )
        may_be_whole = False
        try:
            # Everything that is ours to get wrong comes before the store is asked for anything.
            await self._put_log(keys.log, stream)
            indexes, side_files = await self._threads.run(_pack_side_files, parts, transform.cipher)
            manifest = SegmentManifest(
                metadata=metadata,
                chunk_index=stream.chunk_index(),
                chunk_crcs=stream.chunk_crcs,
                stored_crcs=stream.stored_crcs,
                side_files=side_files,
                compression=transform.compression,
                encryption=envelope,
                topic=topic,
                created_ms=created_ms,
                software=self._software,
                records=stream.records,
                empty_from=files.empty_from,
            )
            text = await self._threads.run(manifest.to_json)
            await self._store.put(keys.indexes, indexes)
            may_be_whole = True
            await self._store.put(keys.manifest, text)
        except BaseException as error:
            await stream.settle()
            again = transform.compression and isinstance(error, CorruptSegmentError)
            if not (may_be_whole or again):
                await self._remove(keys)
            if stream.error is not None and isinstance(error, Exception):
                # Whatever the store made of it.
                raise stream.error from None
            raise
        finally:
            file.close()
        return manifest, manifest.log_size + len(indexes) + len(text)

    def _open(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles
    ) -> tuple[dict[SideFile, bytes], SegmentCheck, File]:
        parts = {
            SideFile.OFFSET: self._read(files.offset_index),
            SideFile.TIMESTAMP: self._read(files.time_index),
            SideFile.PRODUCER_SNAPSHOT: self._read(files.producer_snapshot),
            SideFile.LEADER_EPOCH: files.leader_epochs,
        }
        if files.transaction_index is not None:
            transactions = self._read(files.transaction_index)
            if transactions:
                parts[SideFile.TRANSACTION] = transactions
        check = SegmentCheck(metadata, files, parts)
        file = self._filesystem.open(files.log, readonly=True)
        size = file.size()
        if size != metadata.segment_size_bytes or size == 0:
            problem = f"the log has {size} bytes, the metadata {metadata.segment_size_bytes}"
            position = min(size, metadata.segment_size_bytes)
            raise CorruptSegmentError(files.log, position, problem, rebuildable=False)
        return parts, check, file

    def _read(self, path: str) -> bytes:
        size = self._filesystem.file_size(path)
        if size > SIDE_FILES_BYTES_MAX:
            problem = f"{size} bytes are more than {SIDE_FILES_BYTES_MAX}"
            raise CorruptSegmentError(path, SIDE_FILES_BYTES_MAX, problem, rebuildable=False)
        return self._filesystem.read_bytes(path)

    def _choose_transform(
        self, file: File, size: int
    ) -> tuple[ChunkTransform, DataKeyEnvelope | None]:
        settings = self._settings
        compression = settings.rsm_config_compression_enabled
        if compression and settings.rsm_config_compression_heuristic_enabled:
            first = read_batch_header(file, 0, size)
            compression = first is not None and first.codec == 0
        cipher = envelope = None
        if settings.rsm_config_encryption_enabled:
            data_key, envelope = self._key_ring.new_data_key()
            cipher = ChunkCipher(data_key, self._randomness)
        transform = ChunkTransform(
            compression=compression, level=settings.tier_compression_level, cipher=cipher
        )
        return transform, envelope

    async def _put_log(self, key: str, stream: LogStream) -> None:
        size = stream.stored_size
        if size is not None:
            await self._store.put_stream(key, stream, size)
            return
        spool = await self._threads.run(self._open_spool)
        try:
            size = 0
            async for stored in stream:
                await self._threads.run(spool.write_at, stored, size)
                size += len(stored)
            await self._store.put_stream(key, self._spooled(spool, size), size)
        finally:
            spool.close()

    def _open_spool(self) -> File:
        self._filesystem.mkdir(self._spool_directory)
        path = f"{self._spool_directory}/{self._randomness.uuid4().hex}.spool"
        spool = self._filesystem.open(path, create=True)
        # It is read through the descriptor; without a name a crash leaves nothing to clean up.
        self._filesystem.unlink(path)
        return spool

    async def _spooled(self, spool: File, size: int) -> AsyncIterator[bytes]:
        for position in range(0, size, SPOOL_PIECE):
            length = min(SPOOL_PIECE, size - position)
            yield await self._threads.run(spool.read_at, length, position)

    async def _remove(self, keys: SegmentKeys) -> None:
        """As far as the store lets us; the caller deletes the segment again in any case."""
        removal = asyncio.ensure_future(remove_objects(self._store, keys))
        try:
            await asyncio.shield(removal)
        except asyncio.CancelledError:
            removal.cancel()
            await settle(removal)
            self._statistics.failed_cleanups += 1
            raise
        except TieredError as error:
            self._statistics.failed_cleanups += 1
            _log.warning(
                "copy failed, its objects could not be deleted key=%s: %s", keys.log, error
            )


async def remove_objects(store: ObjectStore, keys: SegmentKeys) -> None:
    """Delete the manifest first: what is left without one is garbage, and collected later."""
    await store.delete([keys.manifest])
    await store.delete([keys.log, keys.indexes])


def _pack_side_files(
    parts: Mapping[SideFile, bytes], cipher: ChunkCipher | None
) -> tuple[bytearray, dict[SideFile, StoredSideFile]]:
    overhead = 0 if cipher is None else OVERHEAD
    packed = bytearray(sum(len(data) + (overhead if data else 0) for data in parts.values()))
    if len(packed) > SIDE_FILES_BYTES_MAX:
        raise RemoteStorageError(f"the side files of a segment have {len(packed)} bytes together")
    view = memoryview(packed)
    entries = {}
    position = 0
    for kind in SideFile:
        data = parts.get(kind)
        if data is None:
            continue
        size = len(data)
        # As in Aiven's plugin: of nothing, nothing is stored, also where the rest is encrypted.
        if cipher is None or not data:
            view[position : position + size] = data
        else:
            size = cipher.encrypt(data, view[position:])
        stored = view[position : position + size]
        entries[kind] = StoredSideFile(position, size, len(data), crc32c(data), crc32c(stored))
        position += size
    return packed, entries
