"""Chunk cache: chunks of remote segments in local files, bounded, least recently used first out.

    absent ──download──> present ──evicted──> absent
      ^                     ^
      │ wrong checksum      │ right checksum, on first use
      └───────────── found after a restart

Served by sendfile from the page cache: memory is the kernel's to manage, here is only the index of
names. A chunk's file is unlinked when it is evicted; readers that hold it open read on.

A restart reads the folders one by one in a thread; a read waits only for the one folder that its
chunk would be in. Which of the found chunks were used last is not known: they
are the first to go.

Bytes over the limit: downloads that are under way, at most `remote.log.reader.threads` chunks. A
disk that is full earlier is the limit: a download that finds no room evicts a chunk's worth, also
one of indexes (`tiered.cache.index_cache`).
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol
from uuid import UUID

from storage.environment.environment import Environment
from storage.errors import DiskError
from tiered.cache.cached_chunk import CachedChunk, ChunkSource
from tiered.cache.chunk_scan import ChunkScan, FileRemover
from tiered.cache.fair_queue import Client, FairQueue
from tiered.cache.flight import Flight, Flights
from tiered.cache.local_chunks import RUN_CHUNKS, LocalChunks, ReferToChunks
from tiered.errors import CorruptRemoteDataError
from tiered.format.chunk_file import (
    ChunkFile,
    ChunkKey,
    chunk_path,
    folder_of,
    open_checked,
    parse_name,
    part_path,
    settle,
)
from tiered.format.chunk_reference import ChunkBytes
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import ChunkResult

_log = logging.getLogger(__name__)

FETCH_TIME_WEIGHT: Final = 0.2
"""Of the newest download in the running mean of their durations."""


class FetchChunk(Protocol):
    """`Tier.fetch_chunk`."""

    def __call__(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> Coroutine[Any, Any, ChunkResult]:
        """Write one chunk of the log to `path`."""
        ...


class ChunkCache:
    """See the module. Touched on the loop's thread only.

    Attributes:
        limit_bytes: Of all chunks; `update` changes it.
        bytes: Of all chunks now.
        hits, misses: Chunks that were there, and that were not, when a reader wanted them.
        evicted, evicted_bytes: Since start.
        downloads, downloaded_bytes, download_errors: Since start; bytes over the network.
        unread_bytes: Of chunks that no reader has read yet.
        prefetched_bytes: Fetched ahead of readers; of them `prefetch_used_bytes` were read,
            `prefetch_unused_bytes` evicted unread.
        abandoned_unused_bytes: Of downloads whose readers went away, evicted unread.
        damaged: Files dropped after a restart for their checksum.
        run_chunks: So many are best fetched ahead together.
        fetch_ms: Running mean of what a download takes, queue included; 0: none yet.
    """

    def __init__(
        self,
        directory: str,
        limit_bytes: int,
        *,
        fetch: FetchChunk,
        queue: FairQueue,
        environment: Environment,
        on_downloaded: Callable[[int], None],
        finish_abandoned: bool,
        refer: ReferToChunks | None = None,
    ) -> None:
        """Touch nothing yet; see `start`.

        Args:
            directory: Of the cache; nothing else may live there.
            limit_bytes: See the class.
            fetch: Downloads one chunk.
            queue: Of the downloads.
            environment: Its disk holds the directory.
            on_downloaded: Called with the bytes that came over the network.
            finish_abandoned: See `tier.abandoned.reads`.
            refer: Compares chunks where they lie; None: they lie elsewhere.
        """
        self._directory = directory
        self.limit_bytes = limit_bytes
        self._fetch = fetch
        filesystem, run = environment.filesystem, environment.run_blocking
        self._filesystem = filesystem
        self._clock = environment.clock
        self._run = run
        self._on_downloaded = on_downloaded
        self.flights: Flights[ChunkKey, CachedChunk] = Flights(
            "chunks", queue, environment.clock, finish_abandoned=finish_abandoned
        )
        self._token = environment.randomness.uuid4().hex[:12]
        self._attempt = 0
        # Folders that are known to exist.
        self._folders: set[str] = set()
        self._chunks: OrderedDict[ChunkKey, CachedChunk] = OrderedDict()
        self._by_segment: dict[UUID, set[int]] = {}
        # Of prefetches under way: bytes, and the callback if they are never read.
        self._prefetches: dict[ChunkKey, tuple[int, Callable[[int], None]]] = {}
        self._pending_bytes = 0
        self._remover = FileRemover(filesystem, run, self._is_name_of_present)
        self._local_chunks: LocalChunks | None = None
        if refer is not None:
            self._local_chunks = LocalChunks(
                refer, filesystem, run, directory, self._remover.remove
            )
        self.run_chunks = 1 if refer is None else RUN_CHUNKS
        self._scan = ChunkScan(directory, self._token, filesystem, run, self._found, self._shrink)
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        self.evicted = 0
        self.evicted_bytes = 0
        self.downloads = 0
        self.downloaded_bytes = 0
        self.download_errors = 0
        self.unread_bytes = 0
        self.prefetched_bytes = 0
        self.prefetch_used_bytes = 0
        self.prefetch_unused_bytes = 0
        self.abandoned_unused_bytes = 0
        self.damaged = 0
        self.fetch_ms = 0.0

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def scanned(self) -> bool:
        """The directory has been read."""
        return self._scan.done

    @property
    def wasted_bytes(self) -> int:
        """Downloaded and never read: cancelled, or evicted unread."""
        return (
            self.flights.cancelled_bytes + self.prefetch_unused_bytes + self.abandoned_unused_bytes
        )

    @property
    def bytes_ahead(self) -> int:
        """Downloaded and not yet read, or being prefetched."""
        return self.unread_bytes + self._pending_bytes

    # -- start, stop -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read the directory; reads need not wait for it."""
        self._scan.start()

    async def wait_scanned(self) -> None:
        """Until the directory has been read."""
        await self._scan.wait()

    async def close(self) -> None:
        """Stop downloads and finish removing; chunks stay for the next start."""
        self.flights.close()
        if self._local_chunks is not None:
            await self._local_chunks.close()
        await self._scan.close()
        await self._remover.close()
        for chunk in self._chunks.values():
            self._filesystem.open_files.discard(chunk)
            chunk.release()

    def _found(self, file: ChunkFile) -> None:
        path = chunk_path(self._directory, file)
        present = self._chunks.get(file.key)
        if present is not None:
            if present.path != path:
                self._remover.remove(path)
            return
        chunk = CachedChunk(self._filesystem, path, file)
        self._chunks[file.key] = chunk
        self._by_segment.setdefault(file.key.segment, set()).add(file.key.chunk)
        self._chunks.move_to_end(file.key, last=False)
        self.bytes += file.disk_bytes

    # -- reading -----------------------------------------------------------------------------

    def get(self, key: ChunkKey) -> ChunkBytes | None:
        """The file of a chunk for a reader, if it can be read now.

        Raises:
            DiskError: Too many files are open.
        """
        chunk = self._chunks.get(key)
        if chunk is None or not chunk.checked:
            return None
        try:
            file = chunk.file
        except DiskError as error:
            if error.is_descriptor_limit:
                # Nothing is wrong with the chunk, and another file could not be opened either.
                raise
            _log.warning(
                "chunk cache: a chunk file cannot be read, downloading it again: %s", error
            )
            self._lose(chunk)
            return None
        self._chunks.move_to_end(key)
        self.hits += 1
        if chunk.unread:
            self._first_read(chunk)
        return file

    def is_ready(self, segment: UUID, chunk: int) -> bool:
        """Whether a chunk can be read, or is on its way to it."""
        key = ChunkKey(segment, chunk)
        cached = self._chunks.get(key)
        return (cached is not None and cached.checked) or self.flights.get(key) is not None

    def is_coming(self, segment: UUID, chunk: int) -> bool:
        """Whether a chunk is here or under way."""
        key = ChunkKey(segment, chunk)
        return key in self._chunks or self.flights.get(key) is not None

    def holds(self, key: ChunkKey) -> bool:
        """Whether there is such a chunk; not a use of it."""
        return key in self._chunks

    def _first_read(self, chunk: CachedChunk) -> None:
        chunk.unread = False
        self.unread_bytes -= chunk.length
        if chunk.prefetch is not None:
            chunk.prefetch = None
            self.prefetch_used_bytes += chunk.length

    def demand(
        self, source: ChunkSource, chunk: int, waiter: Callable[[], None], client: Client
    ) -> Flight[ChunkKey, CachedChunk]:
        """Have `waiter` called when the chunk is there, or is known not to come.

        The flight may have landed when this returns; then `waiter` is not called. A waiter takes
        the file from the flight at once: the chunk may be evicted in the next loop iteration.
        """
        key = ChunkKey(source.metadata.id, chunk)
        self.misses += 1
        # The manifest must be there when the download starts.
        on_over = None
        if self.flights.get(key) is None:
            source.pin()
            on_over = source.unpin
        return self.flights.demand(
            key,
            waiter,
            client,
            check=self._check_of(key),
            work=lambda: self._download(source, key),
            expected_bytes=source.chunk_length(chunk),
            on_over=on_over,
        )

    def prefetch(
        self, source: ChunkSource, chunk: int, client: Client, on_unused: Callable[[int], None]
    ) -> bool:
        """Fetch a chunk ahead of a reader, unless it is there; whether it is, or will be."""
        if self.is_ready(source.metadata.id, chunk):
            return True
        key = ChunkKey(source.metadata.id, chunk)
        length = source.chunk_length(chunk)
        source.pin()
        if key not in self._chunks:
            # One that is here, and only to be compared with its checksum, costs no download.
            self._prefetches[key] = (length, on_unused)
            self._pending_bytes += length
        under_way = self.flights.prefetch(
            key,
            client,
            check=self._check_of(key),
            work=lambda: self._download(source, key),
            expected_bytes=length,
            on_over=lambda: self._prefetch_over(source, key),
        )
        if not under_way:
            self._end_prefetch(key)
        return under_way or key in self._chunks

    def abandon_prefetches(self, on_unused: Callable[[int], None]) -> None:
        """Cancel the prefetches of `on_unused`, whose reader has gone, unless others wait."""
        for key, (_, callback) in list(self._prefetches.items()):
            flight = self.flights.get(key)
            if callback == on_unused and flight is not None and not flight.wanted:
                self.flights.abandon(flight)

    def _prefetch_over(self, source: ChunkSource, key: ChunkKey) -> None:
        """It has landed, or was stopped before it was begun."""
        source.unpin()
        self._end_prefetch(key)

    def _end_prefetch(self, key: ChunkKey) -> Callable[[int], None] | None:
        length, on_unused = self._prefetches.pop(key, (0, None))
        self._pending_bytes -= length
        return on_unused

    def _check_of(
        self, key: ChunkKey
    ) -> Callable[[], Coroutine[Any, Any, CachedChunk | None]] | None:
        """What is to be checked on the disk before downloading; None: nothing."""
        if key in self._chunks or not self._scan.done:
            return lambda: self._check(key)
        return None

    async def _check(self, key: ChunkKey) -> CachedChunk | None:
        """The chunk that an earlier process left, if it is whole."""
        if not self._scan.done:
            await self._scan.folder(folder_of(self._directory, key))
        chunk = self._chunks.get(key)
        if chunk is None:
            return None
        if not chunk.checked:
            path = chunk.path
            file = await self._run(open_checked, self._filesystem, path, chunk.name)
            if self._chunks.get(key) is not chunk:
                return None
            if file is None:
                _log.warning("chunk cache: removing corrupt chunk file %s", path)
                self.damaged += 1
                self._forget(chunk)
                return None
            chunk.hold(file)
            chunk.checked = True
        self._chunks.move_to_end(key)
        self._end_prefetch(key)
        return chunk

    async def _download(self, source: ChunkSource, key: ChunkKey) -> CachedChunk:
        began_ms = self._clock.monotonic_ms()
        flight = self.flights.get(key)
        if flight is not None:
            began_ms = flight.begun_ms
        chunk = await self._find_in_place(source, key)
        if chunk is None:
            chunk = await self._fetch_copy(source, key)
        self.downloads += 1
        self._measure(self._clock.monotonic_ms() - began_ms)
        chunk.checked = True
        self._admit(chunk)
        return chunk

    async def _find_in_place(self, source: ChunkSource, key: ChunkKey) -> CachedChunk | None:
        """The chunk where it lies on this machine, if it does."""
        if self._local_chunks is None:
            return None
        try:
            found = await self._local_chunks.find(source, key)
        except BaseException:
            self._end_prefetch(key)
            raise
        if found is None or found[0].length != source.chunk_length(key.chunk):
            return None
        named, file = found
        self._on_downloaded(named.length)
        self.downloaded_bytes += named.length
        chunk = CachedChunk(self._filesystem, chunk_path(self._directory, named), named)
        chunk.hold(file)
        return chunk

    async def _fetch_copy(self, source: ChunkSource, key: ChunkKey) -> CachedChunk:
        """The chunk in a file of the cache."""
        self._attempt += 1
        part = part_path(self._directory, key, f"{self._token}-{self._attempt}")
        expected = source.chunk_length(key.chunk)
        pinned = False
        try:
            source.pin()
            pinned = True
            folder = folder_of(self._directory, key)
            if folder not in self._folders:
                # One of 256; only an operator removes them.
                await self._run(self._filesystem.mkdir, folder)
                self._folders.add(folder)
            result = await self._fetch_with_room(source, key, part)
            self._on_downloaded(result.downloaded_bytes)
            self.downloaded_bytes += result.downloaded_bytes
            if result.length != expected:
                problem = f"chunk {key.chunk} has {result.length} bytes instead of {expected}"
                raise CorruptRemoteDataError(str(source.metadata.id), -1, problem)
            named = ChunkFile(key, result.length, result.crc, result.is_reference)
            path = chunk_path(self._directory, named)
            file = await self._run(settle, self._filesystem, part, path, named)
        except BaseException as error:
            self._folders.discard(folder_of(self._directory, key))
            if isinstance(error, Exception):
                self.download_errors += 1
            self._end_prefetch(key)
            self._remover.remove(part)
            self._remover.remove(part + ".tmp")
            raise
        finally:
            if pinned:
                source.unpin()
        chunk = CachedChunk(self._filesystem, path, named)
        chunk.hold(file)
        return chunk

    async def _fetch_with_room(self, source: ChunkSource, key: ChunkKey, part: str) -> ChunkResult:
        """Download; where the disk is full before the cache is, what was used last stays."""
        try:
            return await self._fetch(source.metadata, source.manifest_path, key.chunk, part)
        except DiskError as error:
            if not error.is_full or not self._chunks:
                raise
            _log.warning("chunk cache: disk is full, evicting chunks: %s", error)
        self._remover.remove(part + ".tmp")
        await self.make_room(source.chunk_length(key.chunk))
        return await self._fetch(source.metadata, source.manifest_path, key.chunk, part)

    def _measure(self, duration_ms: float) -> None:
        if self.fetch_ms:
            duration_ms = self.fetch_ms + (duration_ms - self.fetch_ms) * FETCH_TIME_WEIGHT
        self.fetch_ms = duration_ms

    # -- room --------------------------------------------------------------------------------

    def update(self, limit_bytes: int, *, finish_abandoned: bool) -> None:
        """New settings; a smaller cache shrinks at once."""
        self.limit_bytes = limit_bytes
        self.flights.finish_abandoned = finish_abandoned
        self._shrink()

    def drop_segment(self, segment: UUID) -> None:
        """Remove all chunks of a segment, e.g. because what they hold is no log."""
        for number in sorted(self._by_segment.get(segment, ())):
            self._evict(self._chunks[ChunkKey(segment, number)])

    def _admit(self, chunk: CachedChunk) -> None:
        previous = self._chunks.pop(chunk.key, None)
        if previous is not None:
            self.bytes -= previous.name.disk_bytes
            self._filesystem.open_files.discard(previous)
        self._chunks[chunk.key] = chunk
        self._by_segment.setdefault(chunk.key.segment, set()).add(chunk.key.chunk)
        self.bytes += chunk.name.disk_bytes
        flight = self.flights.get(chunk.key)
        chunk.prefetch = self._end_prefetch(chunk.key)
        if chunk.prefetch is not None:
            self.prefetched_bytes += chunk.length
        chunk.unread = True
        self.unread_bytes += chunk.length
        if flight is not None and flight.wanted:
            self._first_read(chunk)
        self._shrink()

    def _shrink(self) -> None:
        # The newest stays however small the limit is: its reader comes for it now.
        while self.bytes > self.limit_bytes and len(self._chunks) > 1:
            self._evict(next(iter(self._chunks.values())))

    async def make_room(self, size: int) -> bool:
        """Evict chunks of so many bytes, or all: the disk is full before the cache is.

        Returns:
            Whether there were any; they are off the disk then.
        """
        before = self.bytes
        while self._chunks and before - self.bytes < size:
            self._evict(next(iter(self._chunks.values())))
        await self._remover.wait()
        return self.bytes < before

    def _evict(self, chunk: CachedChunk) -> None:
        self.evicted += 1
        self.evicted_bytes += chunk.name.disk_bytes
        self._forget(chunk)
        self._remover.remove(chunk.path)
        if chunk.unread and chunk.prefetch is not None:
            self.prefetch_unused_bytes += chunk.length
            chunk.prefetch(chunk.length)
        elif chunk.unread:
            self.abandoned_unused_bytes += chunk.length

    def _forget(self, chunk: CachedChunk) -> None:
        del self._chunks[chunk.key]
        numbers = self._by_segment[chunk.key.segment]
        numbers.discard(chunk.key.chunk)
        if not numbers:
            del self._by_segment[chunk.key.segment]
        self.bytes -= chunk.name.disk_bytes
        if chunk.unread:
            self.unread_bytes -= chunk.length
        self._filesystem.open_files.discard(chunk)
        chunk.release()

    def _lose(self, chunk: CachedChunk) -> None:
        """Its file cannot be opened any more."""
        self.damaged += 1
        self._forget(chunk)

    def _is_name_of_present(self, path: str) -> bool:
        """An evicted chunk that came back has the name it had."""
        file = parse_name(path.rpartition("/")[2])
        chunk = None if file is None else self._chunks.get(file.key)
        return chunk is not None and chunk.path == path
