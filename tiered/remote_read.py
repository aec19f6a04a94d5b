"""Interface of remote reads, between the broker and `tiered.fetch.reader`.

A read is an object that is finished or will be. When everything it needs is in the caches it is
finished before `RemoteReader.read` returns; then there was no task, no thread and no await.

    pending ──all chunks there──> finished(records)
       ├─────────trouble────────> finished(error)
       └──cancel(), release()───> cancelled: `on_finished` is not called
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from storage.types.file_slice import FileSlice

if TYPE_CHECKING:
    from storage.log.log import Log
    from storage.segment.readable_segment import TimestampOffset
    from tiered.segment_metadata import TopicIdPartition


class RemoteRecords:
    """Batches in cache files, in order; the last one may be cut off, as clients expect.

    Attributes:
        slices: To be sent one after the other. Each holds its file open: the cache may evict it.
        length: Bytes in all.
        aborted: (producer id, first offset) of aborted transactions that overlap them; empty
            unless they were requested.
        awaits_append: There is nothing: a gap lies between the offset and the end of the log. What
            is appended next is the answer, and the read is to be repeated then.
    """

    __slots__ = ("aborted", "awaits_append", "length", "slices")

    def __init__(self, slices: Sequence[FileSlice], aborted: Sequence[tuple[int, int]]) -> None:
        self.slices = list(slices)
        self.length = sum(slice_.length for slice_ in slices)
        self.aborted = list(aborted)
        self.awaits_append = False


class ReadRequest(NamedTuple):
    """What is wanted of one partition.

    Attributes:
        partition: Whose.
        log: Its local log: leader epochs, last stable offset, aborted transactions that are local.
        offset: First offset wanted: at or above the log start, below the local log start.
        max_bytes: Most bytes, but at least the whole first batch if `min_one_batch`.
        min_one_batch: See KIP-74.
        with_aborted: read_committed.
        client: (principal, client id): for quotas and fairness, and to distinguish readers.
    """

    partition: "TopicIdPartition"
    log: "Log"
    offset: int
    max_bytes: int
    min_one_batch: bool
    with_aborted: bool
    client: tuple[str, str]


class RemoteRead(Protocol):
    """See the module."""

    finished: bool
    records: RemoteRecords | None
    """None while pending, after an error, and when the quota leaves nothing: then it is empty."""
    error: Exception | None
    on_finished: Callable[[], None] | None
    """Set by the waiter; called once, on the loop."""

    def cancel(self) -> None:
        """The client has gone; see `TierConfig.tier_abandoned_reads`."""
        ...

    def release(self) -> None:
        """The client was answered without it, and will ask again: downloads go on until then."""
        ...


class PausedRead:
    """A read that does not begin: an operator has paused reading. It waits until its time is up."""

    __slots__ = ("error", "finished", "on_finished", "records")

    def __init__(self) -> None:
        self.finished = False
        self.records: RemoteRecords | None = None
        self.error: Exception | None = None
        self.on_finished: Callable[[], None] | None = None

    def cancel(self) -> None:
        """There is nothing to stop."""

    def release(self) -> None:
        """There is nothing to keep."""


class RemoteReader(Protocol):
    """Touched on the loop's thread only."""

    def read(self, request: ReadRequest) -> RemoteRead:
        """Begin to read; never raises, errors are the read's `error`.

        Errors: RemoteOffsetNotFoundError (client: OFFSET_OUT_OF_RANGE), QueueFullError,
        RemoteStorageError, CorruptRemoteDataError. While metadata is not ready the read stays
        pending and begins when it is.
        """
        ...

    async def find_timestamp(
        self,
        partition: "TopicIdPartition",
        log: "Log",
        timestamp_ms: int | None,
        client: tuple[str, str],
    ) -> "TimestampOffset | None":
        """The first record in remote storage at or after a time, from the log start on.

        Args:
            partition: Whose.
            log: Its local log.
            timestamp_ms: The time; None: the first record with the largest timestamp there.
            client: See ReadRequest.

        Returns:
            None: there is none below the local log start offset; the caller goes on from there.

        Raises:
            TieredError: It could not be looked up.
        """
        ...
