"""A pending remote read, and the counters per topic."""

from collections.abc import Callable
from typing import Any, Protocol
from uuid import UUID

from storage.errors import DiskError
from tiered.cache.cached_chunk import CachedChunk
from tiered.cache.flight import Flight
from tiered.fetch.prefetch import Stream
from tiered.fetch.segment_view import SegmentView
from tiered.format.chunk_file import ChunkKey
from tiered.remote_read import ReadRequest, RemoteRecords


class Advances(Protocol):
    """What a read needs of `tiered.fetch.reader.Reader`."""

    def advance(self, read: "Read") -> None:
        """Try again: something has come."""
        ...

    def cancelled(self, read: "Read") -> None:
        """It was cancelled: it has no waiter any more."""
        ...

    def released(self, read: "Read") -> None:
        """It has no waiter for now; its client will fetch again."""
        ...


class TopicReads:
    """Counters of one topic (Kafka: RemoteFetch{Bytes,Requests,Errors}PerSec)."""

    __slots__ = ("bytes", "errors", "requests")

    def __init__(self) -> None:
        self.bytes = 0
        self.requests = 0
        self.errors = 0


class Read:
    """One read (`remote_read.RemoteRead`)."""

    __slots__ = (
        "_reader",
        "cancelled",
        "error",
        "failed",
        "finished",
        "flights",
        "gone",
        "offset",
        "on_finished",
        "records",
        "request",
        "retries",
        "stream",
        "view",
    )

    def __init__(self, reader: "Advances", request: ReadRequest) -> None:
        self._reader = reader
        self.request = request
        self.finished = False
        self.cancelled = False
        self.records: RemoteRecords | None = None
        self.error: Exception | None = None
        self.on_finished: Callable[[], None] | None = None
        # Where to read: moves on over gaps.
        self.offset = request.offset
        self.view: SegmentView | None = None
        self.stream: Stream | None = None
        self.flights: dict[UUID | ChunkKey, Flight[Any, Any]] = {}
        self.failed: dict[UUID | ChunkKey, Exception] = {}
        self.gone: UUID | None = None
        self.retries = 0

    def cancel(self) -> None:
        """See `RemoteRead`; everything that only this read wanted stops before this returns."""
        if not self.finished and not self.cancelled:
            self.cancelled = True
            self._reader.cancelled(self)

    def release(self) -> None:
        """See `RemoteRead`."""
        if not self.finished and not self.cancelled:
            self.cancelled = True
            self._reader.released(self)

    def landed(self) -> None:
        """Something that it waited for is here, or will not come."""
        for key, flight in list(self.flights.items()):
            if flight.landed:
                del self.flights[key]
                self.take(key, flight)
        if not self.finished and not self.cancelled:
            self._reader.advance(self)

    def take(self, key: UUID | ChunkKey, flight: Flight[Any, Any]) -> None:
        """Keep what a flight brought."""
        if flight.error is not None:
            self.failed[key] = flight.error
        elif isinstance(flight.result, CachedChunk) and self.view is not None:
            chunk = flight.result
            if chunk.key.segment == self.view.segment.metadata.id:
                try:
                    self.view.files[chunk.key.chunk] = chunk.file
                except DiskError as error:
                    # It went again at once; the next attempt says what is missing.
                    self.failed[key] = error
