"""Offset lookup by timestamp in the remote log, for ListOffsets (KIP-1075: asynchronous).

    segments whose greatest timestamp reaches the time, ascending, and of this lineage
      -> time index: the last entry below the time; no batch before it reaches it
      -> batch headers, until one's greatest timestamp reaches it
      -> the records of that batch, decompressed with a bound

Chunks come through the chunk cache like those of a Fetch; what reads files or decompresses runs in
a thread. Cancellation stops what only this look-up wanted.

Source: Kafka, RemoteLogManager.java (findOffsetByTimestamp, lookupTimestamp).
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, TypeVar

from protocol.errors import DecodeError
from protocol.records.record import find_timestamp
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError, DiskError
from storage.index.batch_scan import scan_headers
from storage.index.time_index import ENTRY_SIZE
from storage.log.log import Log, TimestampOffset
from tiered.cache.chunk_cache import ChunkCache
from tiered.cache.fair_queue import Client
from tiered.cache.flight import Flight
from tiered.cache.index_cache import IndexCache
from tiered.cache.index_files import TIME_SUFFIX
from tiered.cache.remote_segment import IndexesEvictedError, RemoteSegment
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageNotReadyError,
)
from tiered.fetch.segment_view import ChunkMissingError, SegmentView
from tiered.format.chunk_file import ChunkKey
from tiered.format.chunk_reference import ChunkBytes
from tiered.metadata.epoch_bounds import valid_end
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition

T = TypeVar("T")

_ENTRY: Final = Struct(">qi")
_TRIES: Final = 2


class TimeLookup:
    """See the module. Called on the loop's thread."""

    __slots__ = ("_chunks", "_filesystem", "_indexes", "_metadata", "_run")

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        chunks: ChunkCache,
        indexes: IndexCache,
        environment: Environment,
    ) -> None:
        self._metadata = metadata
        self._chunks = chunks
        self._indexes = indexes
        self._filesystem = environment.filesystem
        self._run = environment.run_blocking

    async def find(
        self, partition: TopicIdPartition, log: Log, timestamp_ms: int | None, client: Client
    ) -> TimestampOffset | None:
        """The first record below the local log start whose time is at least `timestamp_ms`.

        None: the first that has the greatest time there is in the remote log.

        Raises:
            TieredError: Metadata cannot be had, the store cannot be read, or its data are damaged.
        """
        if not self._metadata.is_ready(partition):
            await self._metadata.ready(partition)
        if timestamp_ms is None:
            remote = self._candidates(partition, log, 0)
            timestamp_ms = max((metadata.max_timestamp_ms for metadata in remote), default=None)
            if timestamp_ms is None:
                return None
        for metadata in self._candidates(partition, log, timestamp_ms):
            try:
                found = await self._search(metadata, log, timestamp_ms, client)
            except ObjectNotFoundError:
                if metadata in self._candidates(partition, log, timestamp_ms):
                    raise
                # It has expired meanwhile.
                continue
            if found is not None:
                return found if found.offset < log.local_log_start_offset else None
        doubt = self._metadata.doubt(partition)
        if doubt:
            # The record may be in a segment whose metadata is lost.
            raise RemoteStorageNotReadyError(doubt)
        return None

    def _candidates(
        self, partition: TopicIdPartition, log: Log, timestamp_ms: int
    ) -> Iterator[RemoteLogSegmentMetadata]:
        """Segments of this lineage that reach the time, ascending; found one by one.

        The first usually has the record, and there may be tens of thousands behind it.
        """
        return (
            metadata
            for metadata in self._metadata.segments(partition)
            if metadata.max_timestamp_ms >= timestamp_ms
            and metadata.state is SegmentState.COPY_SEGMENT_FINISHED
            and metadata.end_offset >= log.log_start_offset
            and metadata.start_offset < log.local_log_start_offset
            and valid_end(metadata, log.leader_epochs) > metadata.start_offset
        )

    async def _search(
        self, metadata: RemoteLogSegmentMetadata, log: Log, timestamp_ms: int, client: Client
    ) -> TimestampOffset | None:
        tries = 0
        while True:
            tries += 1
            try:
                segment = self._indexes.get(metadata, client)
                if segment is None:
                    segment = await landed(
                        lambda waiter: self._indexes.demand(metadata, waiter, client)
                    )
                return await self._search_in(segment, log, timestamp_ms, client)
            except (CorruptFileError, DiskError, IndexesEvictedError) as error:
                # The indexes were evicted meanwhile, or lead astray: have them again, once.
                self._indexes.drop(metadata.id)
                if tries == _TRIES:
                    raise CorruptRemoteDataError(str(metadata.id), -1, str(error)) from error

    async def _search_in(
        self, segment: RemoteSegment, log: Log, timestamp_ms: int, client: Client
    ) -> TimestampOffset | None:
        metadata = segment.metadata
        start_offset = max(log.log_start_offset, metadata.start_offset)
        segment.pin()
        try:
            path = segment.path + TIME_SUFFIX
            relative = await self._run(offset_before, self._filesystem, path, timestamp_ms)
        finally:
            segment.unpin()
        position = segment.indexes.lookup(max(relative, start_offset - metadata.start_offset))
        view = SegmentView(segment, None)
        valid_offset = min(valid_end(metadata, log.leader_epochs), log.log_end_offset)
        max_size = 2 * log.config.max_message_bytes
        while True:
            try:
                return await self._run(
                    search, view, position, timestamp_ms, start_offset, valid_offset, max_size
                )
            except ChunkMissingError as missing:
                position = missing.position
                chunk = missing.chunk
            first = position // view.chunk_bytes
            view.files = {held: file for held, file in view.files.items() if held >= first}
            view.files[chunk] = await self._chunk(segment, chunk, client)

    async def _chunk(self, segment: RemoteSegment, chunk: int, client: Client) -> ChunkBytes:
        file = self._chunks.get(ChunkKey(segment.metadata.id, chunk))
        if file is not None:
            return file
        cached = await landed(lambda waiter: self._chunks.demand(segment, chunk, waiter, client))
        return cached.file


async def landed(begin: Callable[[Callable[[], None]], Flight[Any, T]]) -> T:
    """Wait for what `begin` has fetched; cancelled, it is not waited for any more."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def waiter() -> None:
        if not future.done():
            future.set_result(None)

    flight = begin(waiter)
    if not flight.landed:
        try:
            await future
        except asyncio.CancelledError:
            flight.leave(waiter)
            raise
    if flight.error is not None:
        raise flight.error
    assert flight.result is not None, flight.key
    return flight.result


def offset_before(filesystem: Filesystem, path: str, timestamp_ms: int) -> int:
    """Relative offset from which on the time may be reached, by a time index; in a thread."""
    entries = filesystem.read_bytes(path)
    if len(entries) % ENTRY_SIZE:
        raise CorruptFileError(f"time index {path} ends within an entry")
    count = len(entries) // ENTRY_SIZE
    at = bisect_left(
        range(count), timestamp_ms, key=lambda at: _ENTRY.unpack_from(entries, at * ENTRY_SIZE)[0]
    )
    return int(_ENTRY.unpack_from(entries, (at - 1) * ENTRY_SIZE)[1]) if at else 0


def search(
    view: SegmentView,
    position: int,
    timestamp_ms: int,
    start_offset: int,
    valid_offset: int,
    max_size: int,
) -> TimestampOffset | None:
    """The first record of [start_offset, valid_offset) that reaches the time; in a thread.

    Args:
        view: With the chunks that are here; nothing else is read.
        position: Where a batch begins, not after the one to find.
        timestamp_ms: The time.
        start_offset: Records below do not count.
        valid_offset: Nor do these.
        max_size: Most bytes a batch may decompress to; of a larger one the header must do.

    Raises:
        ChunkMissingError: Go on at its position once the chunk is here.
        CorruptFileError: There is no batch where one should be.
    """
    end = position
    for at, header in scan_headers(view, position, view.log_bytes):
        if header.base_offset >= valid_offset:
            return None
        end = at + header.size
        if header.max_timestamp < timestamp_ms or header.last_offset < start_offset:
            continue
        batch = memoryview(view.read_whole(header.size, at))
        try:
            found = find_timestamp(
                batch, timestamp_ms, max_size=max_size, start_offset=start_offset
            )
        except DecodeError:
            found = (header.max_timestamp, max(header.base_offset, start_offset))
        if found is not None:
            return TimestampOffset(found[0], found[1], header.leader_epoch)
    if end != view.log_bytes:
        raise CorruptFileError(f"no batch at {end} of {view.path}")
    return None
