"""Reads of a remote segment: no byte leaves here whose sums were not compared with the manifest.

    get_range --> stored --CRC--> --AES, zstd--> original --CRC--> file, renamed into place

A sum that does not fit is fetched a second time, since the network may have done it; when it is
wrong again, the bucket is, and the read fails with the object and the chunk's place.
An object that is shorter than its manifest says is distinguished from an interrupted response by
its size.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from protocol.records.batch import crc32c
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import DiskError, StorageError
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageError,
    StoreTimeoutError,
    StoreUnavailableError,
    TieredError,
)
from tiered.format.batch_walk import BatchWalk
from tiered.format.chunk_index import Chunk
from tiered.format.chunk_reference import Reference
from tiered.format.encryption import ChunkCipher
from tiered.format.key_ring import KeyRing
from tiered.format.manifest import (
    MANIFEST_BYTES_MAX,
    SIDE_FILES_BYTES_MAX,
    UNKNOWN,
    SegmentManifest,
    StoredSideFile,
)
from tiered.format.object_keys import SegmentKeys
from tiered.format.transform import ChunkTransform
from tiered.object_store.base import ObjectStore
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.disk_threads import DiskThreads
from tiered.storage_manager.manifest_cache import ManifestMemory, OpenManifest
from tiered.storage_manager.statistics import TierStatistics
from tiered.storage_manager.workspace import ROOM_BYTES_MAX, Workspace
from tiered.tier import SideFile

Fetched = TypeVar("Fetched")
Restored = TypeVar("Restored")

_MANIFEST_FILE: Final = "the manifest on this disk"


class SegmentReader:
    """Reads segments, one thing per call; several calls may be under way."""

    def __init__(
        self,
        store: ObjectStore,
        filesystem: Filesystem,
        threads: DiskThreads,
        key_ring: KeyRing,
        randomness: Randomness,
        statistics: TierStatistics,
        manifests: ManifestMemory,
    ) -> None:
        self._store = store
        self._filesystem = filesystem
        self._threads = threads
        self._key_ring = key_ring
        self._randomness = randomness
        self._statistics = statistics
        self._manifests = manifests

    # -- manifests ---------------------------------------------------------------------------

    async def fetch_manifest(
        self, metadata: RemoteLogSegmentMetadata, keys: SegmentKeys
    ) -> tuple[OpenManifest, bytes]:
        """A segment's manifest from the bucket, and its bytes.

        Raises:
            CorruptRemoteDataError: It is damaged, of a newer version, or another segment's.
            ObjectNotFoundError: There is none.
            RemoteStorageError: The data key cannot be unwrapped here.
        """
        key = keys.manifest
        data, opened = await self._read_twice(
            partial(self._store.get, key, max_bytes=MANIFEST_BYTES_MAX),
            lambda data: (data, self._open(data, key, metadata)),
        )
        self._manifests.put(opened)
        return opened, data

    async def opened(
        self, metadata: RemoteLogSegmentMetadata, keys: SegmentKeys, path: str = ""
    ) -> OpenManifest:
        """A segment's manifest from memory, else from a local file, else from the bucket.

        The file may be gone, damaged, or from before its data key was rewrapped: then it is read
        from the bucket, as if there were none.
        """
        opened = self._manifests.get(metadata.id)
        if opened is not None:
            return opened
        if path:
            try:
                opened = await self._threads.run(self._open_file, path, metadata)
            except (StorageError, TieredError):
                pass
            else:
                self._manifests.put(opened)
                return opened
        opened, _ = await self.fetch_manifest(metadata, keys)
        return opened

    def _open_file(self, path: str, metadata: RemoteLogSegmentMetadata) -> OpenManifest:
        if self._filesystem.file_size(path) > MANIFEST_BYTES_MAX:
            raise CorruptRemoteDataError(path, MANIFEST_BYTES_MAX, f"{_MANIFEST_FILE} is too large")
        return self._open(self._filesystem.read_bytes(path), path, metadata)

    def _open(self, data: bytes, key: str, metadata: RemoteLogSegmentMetadata) -> OpenManifest:
        manifest = SegmentManifest.from_json(data, key)
        found = manifest.metadata
        if (found.segment_id, found.start_offset, found.end_offset, found.segment_size_bytes) != (
            metadata.segment_id,
            metadata.start_offset,
            metadata.end_offset,
            metadata.segment_size_bytes,
        ):
            problem = f"the manifest is of {found.segment_id}, {found.start_offset} .. "
            raise CorruptRemoteDataError(key, -1, f"{problem}{found.end_offset}")
        cipher = None
        if manifest.encryption is not None:
            data_key = self._key_ring.unwrap(manifest.encryption)
            cipher = ChunkCipher(data_key, self._randomness)
        transform = ChunkTransform(compression=manifest.compression, cipher=cipher)
        return OpenManifest(manifest, transform)

    # -- chunks ------------------------------------------------------------------------------

    async def refer_to_chunk(
        self,
        opened: OpenManifest,
        keys: SegmentKeys,
        number: int,
        workspace: Workspace,
        path: str,
    ) -> bool:
        """Compare a chunk where it lies on this machine, and write a reference to it to `path`.

        All in one call in a thread: a chunk takes a millisecond, a change of threads a tenth.

        Returns:
            False when it is not stored plainly on this machine, or is damaged: then it is to be
            read like any other.
        """
        if not opened.transform.is_plain or not opened.manifest.has_sums:
            return False
        place = self._store.local_path(keys.log)
        if place is None:
            return False
        try:
            chunk = opened.manifest.chunk(number)
            stored = workspace.room(0, chunk.stored_size)
            # Counted as a range request to the object, which it was.
            with self._store.statistics.measure("get_range", chunk.stored_size):
                await self._threads.run(self._refer, opened.manifest, place, chunk, stored, path)
        except (DiskError, IndexError, ValueError, CorruptRemoteDataError):
            return False
        return True

    def _refer(
        self, manifest: SegmentManifest, place: str, chunk: Chunk, stored: memoryview, path: str
    ) -> None:
        file = self._filesystem.open(place, readonly=True)
        # Before it is read: a later change then shows.
        size, modified_ns = file.stamp()
        position = chunk.stored_position
        count = file.read_into(stored, position)
        crcs = manifest.chunk_crcs
        if crcs is None or count != len(stored) or crc32c(stored) != crcs[chunk.number]:
            raise CorruptRemoteDataError(place, position, "it is not the chunk that was copied")
        write_new(self._filesystem, path, Reference(place, position, size, modified_ns).encode())

    async def read_chunk(
        self,
        opened: OpenManifest,
        keys: SegmentKeys,
        number: int,
        workspace: Workspace,
        batch_at: int = -1,
        use: Callable[[memoryview], None] | None = None,
    ) -> memoryview:
        """A chunk's original bytes, in the workspace's memory.

        Args:
            opened: The manifest.
            keys: Of the segment.
            number: Counted from 0.
            workspace: The memory.
            batch_at: Where in the log, within the chunk, a batch begins; -1: unknown. Batches are
                compared with their own sums from there on if the manifest has none of the chunk.
            use: Called with them in the thread that has compared them: a chunk takes a millisecond,
                a change of threads a tenth.

        Raises:
            CorruptRemoteDataError: A sum does not fit, twice; or the object is too short.
            Exception: What `use` raises, but for that.
            RemoteStorageError: The store cannot give it, there is no such object or chunk, or it is
                larger than any that is read.
        """
        try:
            chunk = opened.manifest.chunk(number)
            if chunk.original_size > ROOM_BYTES_MAX:
                raise ValueError(f"chunk {number} has {chunk.original_size} bytes")
            stored = workspace.room(0, chunk.stored_size)
        except (IndexError, ValueError) as error:
            raise RemoteStorageError(f"{keys.log} cannot be read: {error}") from error

        def restore(_: None) -> memoryview:
            original = restore_chunk(opened, keys.log, chunk, stored, workspace, batch_at)
            if use is not None:
                use(original)
            return original

        return await self._read_twice(
            partial(
                get_whole_range,
                *(self._store, keys.log, chunk.stored_position, stored),
                opened.manifest.log_size,
            ),
            restore,
        )

    # -- side files --------------------------------------------------------------------------

    async def read_side_files(
        self, opened: OpenManifest, keys: SegmentKeys, kinds: Sequence[SideFile]
    ) -> dict[SideFile, bytes]:
        """Side files as they were copied, in one request for all between the first and the last.

        What is not in the manifest is not in the result.

        Raises:
            CorruptRemoteDataError: A sum does not fit, twice; or the object is too short.
            RemoteStorageError: The store cannot give it.
        """
        entries = opened.manifest.side_files
        wanted = {kind: entries[kind] for kind in kinds if kind in entries}
        begin = min((entry.position for entry in wanted.values()), default=0)
        end = max((entry.position + entry.stored_size for entry in wanted.values()), default=0)
        if end - begin > SIDE_FILES_BYTES_MAX:
            raise RemoteStorageError(f"{keys.indexes} claims {end - begin} bytes of side files")
        data = memoryview(bytearray(end - begin))

        async def fetch() -> None:
            if data:
                await get_whole_range(
                    self._store, keys.indexes, begin, data, opened.manifest.indexes_size
                )

        return await self._read_twice(
            fetch, lambda _: restore_side_files(opened, keys.indexes, wanted, data, begin)
        )

    # -- damage ------------------------------------------------------------------------------

    async def _read_twice(
        self, fetch: Callable[[], Awaitable[Fetched]], restore: Callable[[Fetched], Restored]
    ) -> Restored:
        """Fetch bytes and restore them in a thread; a second time if they are damaged.

        The damage may have come on the way, then the second read has none.

        Raises:
            CorruptRemoteDataError: Both reads are damaged.
            RemoteStorageError: As `fetch` raises it, at once.
        """
        for attempt in (1, 2):
            fetched = await fetch()
            try:
                restored = await self._threads.run(restore, fetched)
            except CorruptRemoteDataError:
                if attempt == 2:
                    self._statistics.corrupt_reads += 1
                    raise
            else:
                self._statistics.second_reads += attempt - 1
                return restored
        raise AssertionError("not reached")


async def get_whole_range(
    store: ObjectStore, key: str, position: int, into: memoryview, expected_size: int
) -> None:
    """As the store's, but an object that is too short is corrupt, not worth another try."""
    try:
        await store.get_range(key, position, len(into), into)
    except StoreTimeoutError:
        raise
    except StoreUnavailableError as error:
        try:
            info = await store.head(key)
        except RemoteStorageError:
            raise error from None
        if info is None:
            raise ObjectNotFoundError(key) from error
        if info.size != expected_size:
            raise CorruptRemoteDataError(
                key,
                min(info.size, expected_size),
                f"the object has {info.size} bytes, {expected_size} were stored",
            ) from error
        raise


def restore_chunk(
    opened: OpenManifest,
    key: str,
    chunk: Chunk,
    stored: memoryview,
    workspace: Workspace,
    batch_at: int = -1,
) -> memoryview:
    """A chunk's original bytes out of the stored ones, every sum compared that the manifest has.

    Args:
        opened: The manifest.
        key: Of the `.log` object, for the error.
        chunk: Which.
        stored: What was read of it; what is returned may be this.
        workspace: Its rooms 1 and 2 hold what is decrypted and what is decompressed.
        batch_at: See `SegmentReader.read_chunk`.

    Raises:
        CorruptRemoteDataError: It is not the chunk that was copied.
        ValueError: It needs more room than there is.
    """
    manifest, transform = opened
    position = chunk.stored_position
    crc = crc32c(stored) if manifest.has_sums else UNKNOWN
    if manifest.stored_crcs is not None and crc != manifest.stored_crcs[chunk.number]:
        raise CorruptRemoteDataError(key, position, f"chunk {chunk.number} fails its CRC")
    original = stored
    if not transform.is_plain:
        decrypted = stored if transform.cipher is None else workspace.room(1, len(stored))
        room = workspace.room(2, chunk.original_size) if transform.compression else stored
        try:
            original = transform.restore(stored, decrypted, room)
        except ValueError as error:
            raise CorruptRemoteDataError(key, position, f"chunk {chunk.number}: {error}") from error
        crc = crc32c(original) if manifest.has_sums else UNKNOWN
    wrong = manifest.chunk_crcs is not None and crc != manifest.chunk_crcs[chunk.number]
    if wrong or len(original) != chunk.original_size:
        raise CorruptRemoteDataError(
            key, position, f"chunk {chunk.number} is not the one that was copied"
        )
    if batch_at >= 0 and not manifest.has_sums:
        try:
            BatchWalk().feed(original[batch_at - chunk.original_position :])
        except ValueError as error:
            problem = f"chunk {chunk.number}, from {batch_at} on: {error}"
            raise CorruptRemoteDataError(key, position, problem) from error
    return original


def restore_side_files(
    opened: OpenManifest,
    key: str,
    wanted: dict[SideFile, StoredSideFile],
    data: memoryview,
    begin: int,
) -> dict[SideFile, bytes]:
    """Side files out of a part of the `.indexes` object that begins at `begin`."""
    cipher = opened.transform.cipher
    restored = {}
    for kind, entry in wanted.items():
        at = entry.position - begin
        stored = data[at : at + entry.stored_size]
        if entry.stored_crc != UNKNOWN and crc32c(stored) != entry.stored_crc:
            problem = f"the {kind.value} index fails its CRC"
            raise CorruptRemoteDataError(key, entry.position, problem)
        original = bytearray(len(stored))
        try:
            if cipher is None or not stored:
                original[:] = stored
            else:
                del original[cipher.decrypt(stored, memoryview(original)) :]
        except ValueError as error:
            problem = f"the {kind.value} index: {error}"
            raise CorruptRemoteDataError(key, entry.position, problem) from error
        wrong = entry.crc != UNKNOWN and crc32c(original) != entry.crc
        if wrong or len(original) != entry.size:
            problem = f"the {kind.value} index is not the one that was copied"
            raise CorruptRemoteDataError(key, entry.position, problem)
        restored[kind] = bytes(original)
    return restored


def write_new(filesystem: Filesystem, path: str, data: memoryview | bytes) -> None:
    """A file of a cache: whole or not there, but not synced, as it can be fetched again."""
    temporary = path + ".tmp"
    try:
        write_file(filesystem, temporary, data)
        filesystem.rename(temporary, path)
    except DiskError:
        filesystem.unlink(temporary, missing_ok=True)
        raise


def write_file(filesystem: Filesystem, path: str, data: memoryview | bytes) -> None:
    """The content of a file, whatever it had before; not synced, and half of it after a crash."""
    file = filesystem.open(path, create=True)
    try:
        if file.size():
            file.truncate(0)
        file.write_at(data, 0)
    finally:
        file.close()
