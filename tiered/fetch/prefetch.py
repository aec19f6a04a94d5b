"""Prefetch for sequential readers, across the borders of segments.

A reader is recognised by its position: a read that begins where one of the same client ended is the
next of the same stream. So several consumers of one client id at different places are several
streams, and nothing is kept of a reader that jumps about but one entry in a bounded table.

The window is how many chunks are fetched ahead of the one that is being read:

    a reader had to wait               x 2, at most once per chunk
    it passed a chunk without waiting  at least speed x time to fetch / chunk + 2, else - 1
    a prefetched chunk was evicted     / 2
      before it was read

    [ segment     chunk  chunk  chunk ][ next segment: indexes, chunk  chunk ...
             reader ^    |<------------ window ---------------->|

Bounds: bytes ahead of one reader (`prefetch_max_bytes`), bytes fetched and not read of all readers
(`CACHE_SHARE` of the chunk cache), and the quota: nothing is prefetched while it is exceeded.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final
from uuid import UUID

from storage.environment.clock import Clock
from storage.log.log import Log
from tiered.cache.chunk_cache import ChunkCache
from tiered.cache.fair_queue import Client
from tiered.cache.index_cache import IndexCache
from tiered.cache.remote_segment import RemoteSegment
from tiered.errors import RemoteStorageNotReadyError
from tiered.fetch.fetch_quota import FetchQuota
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition

STREAMS_MAX: Final = 4096
"""Readers whose next position is remembered; of more, the one that was idle longest goes."""

CACHE_SHARE: Final = 0.5
"""Of the chunk cache, for what was fetched and not read."""

SPEED_WEIGHT: Final = 0.4
"""Of the newest chunk in the running mean of a reader's speed."""

NextSegment = Callable[[TopicIdPartition, Log, int], RemoteLogSegmentMetadata | None]
"""The segment that holds an offset, None if it is local or unknown."""


class Stream:
    """One sequential reader.

    Attributes:
        key: Under which it is remembered, or was.
        window: Chunks to be ahead.
        bytes_per_ms: Its speed, 0 before it has passed a chunk.
        reads: How many have followed each other.
    """

    __slots__ = (
        "_bytes",
        "_since_ms",
        "_widened",
        "abandoned",
        "bytes_per_ms",
        "chunk",
        "client",
        "key",
        "log",
        "partition",
        "reads",
        "segment_id",
        "window",
    )

    def __init__(self, client: Client, partition: TopicIdPartition, log: Log) -> None:
        self.client = client
        self.partition = partition
        self.log = log
        # Not the segment: a stream that is idle must not keep its indexes in memory.
        self.segment_id: UUID | None = None
        self.key: Hashable = None
        self.chunk = -1
        self.window = 1
        self.bytes_per_ms = 0.0
        self.reads = 0
        self.abandoned = False
        self._widened = False
        self._bytes = 0
        self._since_ms = 0.0

    def widen(self, window_max: int) -> None:
        """It had to wait."""
        if not self._widened:
            self._widened = True
            self.window = max(1, min(self.window * 2, window_max))

    def shrink(self, _size: int = 0) -> None:
        """What was fetched ahead of it was evicted before it came."""
        self.window = max(1, self.window // 2)

    def read(self, size: int) -> None:
        """It has read so much."""
        self._bytes += size

    def passed_chunk(self, now_ms: float, fetch_ms: float, chunk_bytes: int, most: int) -> None:
        """It has come to another chunk: follow its speed."""
        elapsed_ms = now_ms - self._since_ms
        if self._since_ms and elapsed_ms > 0:
            speed = self._bytes / elapsed_ms
            if self.bytes_per_ms:
                speed = self.bytes_per_ms + (speed - self.bytes_per_ms) * SPEED_WEIGHT
            self.bytes_per_ms = speed
        self._since_ms = now_ms
        self._bytes = 0
        if not self._widened:
            need = int(self.bytes_per_ms * fetch_ms / chunk_bytes) + 2
            self.window = max(1, min(max(need, self.window - 1), most))
        self._widened = False


class Prefetcher:
    """See the module. Touched on the loop's thread only.

    Attributes:
        max_bytes: Most bytes ahead of one reader; 0: none.
        issued: Chunks asked for ahead of readers, since start.
        held_back: Times that a bound or the quota ended a round.
    """

    __slots__ = (
        "_chunks",
        "_clock",
        "_indexes",
        "_next_segment",
        "_quota",
        "_streams",
        "held_back",
        "issued",
        "max_bytes",
    )

    def __init__(
        self,
        chunks: ChunkCache,
        indexes: IndexCache,
        quota: FetchQuota,
        clock: Clock,
        next_segment: NextSegment,
        max_bytes: int,
    ) -> None:
        self._chunks = chunks
        self._indexes = indexes
        self._quota = quota
        self._clock = clock
        self._next_segment = next_segment
        self._streams: OrderedDict[Hashable, Stream] = OrderedDict()
        self.max_bytes = max_bytes
        self.issued = 0
        self.held_back = 0

    @property
    def streams(self) -> int:
        """Readers that are remembered."""
        return len(self._streams)

    def match(
        self,
        client: Client,
        partition: TopicIdPartition,
        segment: RemoteSegment,
        position: int,
        offset: int,
    ) -> Stream | None:
        """The stream that goes on here; it must be given back with `moved`."""
        streams = self._streams
        stream = streams.pop((client, segment.metadata.id, position), None)
        if stream is None and position == 0:
            stream = streams.pop((client, partition, offset), None)
        if stream is not None:
            stream.abandoned = False
        return stream

    def waits(self, stream: Stream, segment: RemoteSegment, position: int) -> None:
        """The reader waits for the chunk at a position: fetch what follows beside it."""
        if stream.reads and self.max_bytes:
            self._enter(stream, segment, position)
            stream.widen(self._window_max(segment))
            self._plan(stream)

    def put_back(self, stream: Stream) -> None:
        """The read came to nothing: its client will try again at the same place."""
        self._remember(stream.key, stream)

    def abandon(self, stream: Stream) -> None:
        """Its client has gone: what is fetched ahead for it stops, unless it is to be finished.

        Nothing more is fetched until a reader goes on with it.
        """
        stream.abandoned = True
        self._chunks.abandon_prefetches(stream.shrink)

    def moved(
        self,
        stream: Stream | None,
        client: Client,
        partition: TopicIdPartition,
        log: Log,
        segment: RemoteSegment,
        position: int,
        end: int,
    ) -> None:
        """A client was given [position, end) of a segment; `stream` is what `match` said."""
        if not self.max_bytes:
            return
        if stream is None:
            stream = Stream(client, partition, log)
            # The caller's first chunk is no sign of anything yet.
            self._enter(stream, segment, position)
        else:
            stream.reads += 1
            stream.log = log
            if self._enter(stream, segment, end) or stream.reads == 1:
                self._plan(stream)
        stream.read(end - position)
        metadata = segment.metadata
        key: Hashable = (client, metadata.id, end)
        if end >= segment.indexes.layout.log_bytes:
            key = (client, partition, metadata.end_offset + 1)
        stream.key = key
        self._remember(key, stream)

    def _remember(self, key: Hashable, stream: Stream) -> None:
        streams = self._streams
        streams[key] = stream
        if len(streams) > STREAMS_MAX:
            streams.popitem(last=False)

    def _window_max(self, segment: RemoteSegment) -> int:
        return max(1, self.max_bytes // segment.indexes.layout.chunk_bytes)

    def _enter(self, stream: Stream, segment: RemoteSegment, position: int) -> bool:
        """Note where it is; whether that is another chunk."""
        layout = segment.indexes.layout
        chunk = min(position, layout.log_bytes - 1) // layout.chunk_bytes
        if stream.segment_id != segment.metadata.id:
            stream.segment_id = segment.metadata.id
        elif chunk == stream.chunk:
            return False
        stream.chunk = chunk
        stream.passed_chunk(
            self._clock.monotonic_ms(),
            self._chunks.fetch_ms,
            layout.chunk_bytes,
            self._window_max(segment),
        )
        return True

    def _plan(self, stream: Stream) -> None:
        """Ask for what is ahead and not here."""
        segment = None if stream.segment_id is None else self._indexes.peek(stream.segment_id)
        if segment is None:
            return
        chunks = self._chunks
        share = chunks.limit_bytes * CACHE_SHARE
        chunk = stream.chunk
        ahead = issued = 0
        # A run that was begun is asked for whole: together its chunks cost one question.
        while ahead <= stream.window or (
            issued and chunk % chunks.run_chunks and ahead <= self._window_max(segment)
        ):
            if chunk >= segment.indexes.layout.chunks:
                following = self._following(stream, segment)
                if following is None:
                    return
                segment, chunk = following, 0
                continue
            length = segment.chunk_length(chunk)
            if not chunks.is_ready(segment.metadata.id, chunk):
                if chunks.bytes_ahead + length > share or not self._quota.allows_download(
                    counted=False
                ):
                    self.held_back += 1
                    return
                if not chunks.prefetch(segment, chunk, stream.client, stream.shrink):
                    self.held_back += 1
                    return
                self.issued += 1
                issued += 1
            ahead += 1
            chunk += 1

    def _following(self, stream: Stream, segment: RemoteSegment) -> RemoteSegment | None:
        """The next segment, once its indexes are here."""
        try:
            metadata = self._next_segment(
                stream.partition, stream.log, segment.metadata.end_offset + 1
            )
        except RemoteStorageNotReadyError:
            return None
        if metadata is None:
            return None
        following = self._indexes.peek(metadata.id)
        if following is None and self._quota.allows_download(counted=False):
            self._indexes.prefetch(metadata, stream.client, _Plan(self, stream, metadata.id))
        return following

    def indexes_came(self, stream: Stream, id_: UUID) -> None:
        """Go on beyond the border, unless the indexes did not come after all."""
        if self._indexes.peek(id_) is not None and not stream.abandoned:
            self._plan(stream)


class _Plan:
    """Goes on with a stream when indexes have come."""

    __slots__ = ("_id", "_prefetcher", "_stream")

    def __init__(self, prefetcher: Prefetcher, stream: Stream, id_: UUID) -> None:
        self._prefetcher = prefetcher
        self._stream = stream
        self._id = id_

    def __call__(self) -> None:
        self._prefetcher.indexes_came(self._stream, self._id)
