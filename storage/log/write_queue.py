"""Write queue of a log: batches that have offsets and that a thread is yet to write.

    append ──> offsets, producers ──> [ batches in order ] ──ticket──> thread: write ──> log end

The log end offset says what is in the file; reads, flushes, truncations and copies of the log go
by that and need not know of the queue. Appends alone build on where it will end: `next_offset`,
and what the last segment will be by then.

Bounded by the directory's pace (`storage.log.directory_pace`).
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from storage.environment.filesystem import Buffer
from storage.index.transaction_index import AbortedTxn
from storage.producers.capture import ProducerCapture
from storage.segment.batch_append import BatchAppend
from storage.segment.segment import Segment


class BorrowedMemory(Protocol):
    """Where produced batches lie until their request has been handled."""

    def keep(self, records: memoryview) -> Callable[[], None] | None:
        """Leave the memory as it is until the function is called.

        Returns:
            None if that cannot be: what is needed longer must be copied.
        """
        ...


class QueuedWrite:
    """Batches that are written in one call.

    Attributes:
        records: Their bytes, which do not change any more.
        size: Of the bytes.
        first_offset: Of the first batch.
        end_offset: Exclusive.
        batches: For the indexes.
        release: Gives the memory back; None: it is ours.
        epochs: What the leader epochs' checkpoint must hold before; None: what it does.
        segment: It begins this one, whose files are yet to be made; None: it goes on.
        capture: The producers below the segment that it begins, or may yet begin, if they are to
            be written.
        aborted: For the transaction index, once it is written.
    """

    __slots__ = (
        "aborted",
        "batches",
        "capture",
        "end_offset",
        "epochs",
        "first_offset",
        "records",
        "release",
        "segment",
        "size",
    )

    def __init__(
        self,
        records: Buffer,
        first_offset: int,
        batches: list[BatchAppend],
        release: Callable[[], None] | None,
    ) -> None:
        self.records = records
        self.size = len(records)
        self.first_offset = first_offset
        self.end_offset = batches[-1].last_offset + 1 if batches else first_offset
        self.batches = batches
        self.release = release
        self.epochs: bytes | None = None
        self.segment: Segment | None = None
        self.capture: ProducerCapture | None = None
        self.aborted: list[AbortedTxn] | None = None

    def let_go(self) -> None:
        """Release the memory: it is not read any more."""
        self.records = b""
        release, self.release = self.release, None
        if release is not None:
            release()


class WriteQueue:
    """The queued writes of one log, and how it ends once they are written.

    Attributes:
        writes: Oldest first.
        next_offset: What the next batch gets.
        tail: The segment that will be the active one.
        tail_size: Bytes it will have.
        tail_first_timestamp: As `Segment.first_timestamp`; None: it is not read yet.
        under_way: A ticket is out.
    """

    __slots__ = (
        "next_offset",
        "tail",
        "tail_first_timestamp",
        "tail_size",
        "under_way",
        "writes",
    )

    def __init__(self, log_end_offset: int, active: Segment) -> None:
        self.writes: deque[QueuedWrite] = deque()
        self.next_offset = log_end_offset
        self.tail = active
        self.tail_size = active.size
        self.tail_first_timestamp: int | None = None
        self.tail_warmed()
        self.under_way = False

    def tail_warmed(self) -> None:
        """What had to be read of the active segment has been."""
        if self.tail.size and self.tail.is_warm:
            self.tail_first_timestamp = self.tail.first_timestamp

    def first_begins_segment(self) -> None:
        """The oldest write has been given a segment of its own, after those behind it came."""
        first, *rest = self.writes
        if first.segment is None or any(write.segment is not None for write in rest):
            return
        self.tail = first.segment
        self.tail_size = sum(write.size for write in self.writes)
        self.tail_first_timestamp = first.batches[0].max_timestamp

    def add(self, write: QueuedWrite) -> None:
        """Append a write; with a segment of its own it is the first in that."""
        if write.segment is not None:
            self.tail = write.segment
            self.tail_size = 0
            self.tail_first_timestamp = None
        if self.tail_size == 0 and write.batches:
            self.tail_first_timestamp = write.batches[0].max_timestamp
        self.writes.append(write)
        self.next_offset = write.end_offset
        self.tail_size += write.size
