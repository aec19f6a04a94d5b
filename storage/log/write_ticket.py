"""Write tickets: the disk calls of a log's queued writes, for a thread.

    ticket = log.disk_work.begin()        the owner: what is next, and where it goes
    ticket.run()                          a thread: disk calls and nothing else
    log.disk_work.finish(ticket, error)   the owner: the log ends further on, or has failed

There is one ticket of a log at a time, so nothing that `run` reads is changed meanwhile.

    WarmTicket     before the first append after a start: read what an append must know
    RollTicket     close the active segment, make the next, write down the producers
    AppendTicket   write batches, all of one segment, in one call
    BackTicket     after a write that found no room: the producers as of the log's end
    RetireTicket   name the files of segments that have left the log, beside all of these
"""

from collections.abc import Callable, Sequence

from typing_extensions import override

from native.subclasses import mypyc_attr
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from storage.index.sparse_index import IndexWrite
from storage.index.transaction_index import AbortedTxn
from storage.log.write_queue import QueuedWrite
from storage.producers.capture import ProducerCapture
from storage.producers.state import ProducerStateManager
from storage.segment.segment import Segment
from storage.segment.segment_files import rename_files


@mypyc_attr(allow_interpreted_subclasses=True)
class WriteTicket:
    """See the module.

    Attributes:
        generation: Of the log when it was made.
        size: Bytes of batches it writes.
        is_plain: It writes batches and nothing else, so its time says how quick the disk is.
    """

    __slots__ = ("generation", "is_plain", "size")

    def __init__(self, generation: int, size: int = 0, *, is_plain: bool = False) -> None:
        self.generation = generation
        self.size = size
        self.is_plain = is_plain

    def run(self) -> None:
        """Do it; blocks.

        Raises:
            DiskError: The disk refused.
        """
        raise AssertionError("a ticket says what is to be done")


class WarmTicket(WriteTicket):
    """Reads what an append must know of a segment that was not written to since the start."""

    __slots__ = ("copy", "segment")

    def __init__(self, generation: int, segment: Segment) -> None:
        super().__init__(generation)
        self.segment = segment
        self.copy: Segment | None = None

    @override
    def run(self) -> None:
        self.copy = self.segment.warmed_copy()


class RollTicket(WriteTicket):
    """Closes one segment and makes the files of the next."""

    __slots__ = ("_preallocate_bytes", "capture", "index_writes", "new", "old")

    def __init__(
        self,
        generation: int,
        old: Segment,
        new: Segment,
        *,
        index_writes: list[IndexWrite],
        capture: ProducerCapture | None,
        preallocate_bytes: int,
    ) -> None:
        super().__init__(generation)
        self.old = old
        self.new = new
        self.index_writes = index_writes
        self.capture = capture
        self._preallocate_bytes = preallocate_bytes

    @override
    def run(self) -> None:
        for write in self.index_writes:
            write.run()
        self.old.trim()
        # A snapshot for each segment: recovery of the segment begins with it, and the copy of the
        # one before ends with it. Taken first: a full disk leaves the log as it was.
        if self.capture is not None:
            self.capture.run()
        self.new.create_file(self._preallocate_bytes)


class AppendTicket(WriteTicket):
    """Writes batches to the end of the active segment."""

    __slots__ = (
        "_epochs_path",
        "_filesystem",
        "index_failure",
        "index_writes",
        "segment",
        "trim_failure",
        "unindexed",
        "writes",
    )

    def __init__(
        self,
        generation: int,
        filesystem: Filesystem,
        segment: Segment,
        writes: list[QueuedWrite],
        *,
        index_writes: list[IndexWrite],
        epochs_path: str,
    ) -> None:
        super().__init__(
            generation,
            sum(write.size for write in writes),
            is_plain=writes[0].epochs is None and not index_writes,
        )
        self._filesystem = filesystem
        self._epochs_path = epochs_path
        self.segment = segment
        self.writes = writes
        self.index_writes = index_writes
        # A failed write may have left bytes that could not be cut off.
        self.trim_failure: DiskError | None = None
        # Aborted transactions for which the index had no room.
        self.unindexed: list[AbortedTxn] = []
        self.index_failure: DiskError | None = None

    @override
    def run(self) -> None:
        segment = self.segment
        writes = self.writes
        for index_write in self.index_writes:
            index_write.run()
        epochs = writes[0].epochs
        if epochs is not None:
            # On disk before the first batch that carries it: recovery relies on that.
            self._filesystem.replace_bytes(self._epochs_path, epochs)
        file = segment.open_file()
        try:
            if len(writes) == 1:
                file.write_at(writes[0].records, segment.size)
            else:
                file.write_at([write.records for write in writes], segment.size)
        except DiskError:
            try:
                segment.trim()
            except DiskError as error:
                self.trim_failure = error
            raise
        for write in writes:
            if write.aborted:
                self._index_aborted(write.aborted)

    def _index_aborted(self, aborted: list[AbortedTxn]) -> None:
        if not self.unindexed:
            try:
                self.segment.transaction_index.extend(aborted)
            except DiskError as error:
                if error.is_disk_failure:
                    raise
                self.index_failure = error
            else:
                return
        self.unindexed += aborted


class BackTicket(WriteTicket):
    """Reads the producers again as of the log's end: what was given offsets above is not there."""

    __slots__ = ("_active", "_read", "state")

    def __init__(
        self, generation: int, active: Segment, read: Callable[[], ProducerStateManager]
    ) -> None:
        super().__init__(generation)
        self._active = active
        self._read = read
        self.state: ProducerStateManager | None = None

    @override
    def run(self) -> None:
        self._active.trim()
        self.state = self._read()


class RetireTicket(WriteTicket):
    """Gives the files of segments that have left the log the suffix `.deleted`, oldest first.

    Attributes:
        segments: Those it is about.
        refusal: The disk has no room or no descriptor for that now; some may have the new name.
    """

    __slots__ = ("_filesystem", "_renames", "refusal", "segments")

    def __init__(
        self,
        generation: int,
        filesystem: Filesystem,
        segments: list[Segment],
        renames: Sequence[tuple[str, str]],
    ) -> None:
        super().__init__(generation)
        self._filesystem = filesystem
        self._renames = renames
        self.segments = segments
        self.refusal: DiskError | None = None

    @override
    def run(self) -> None:
        try:
            rename_files(self._filesystem, self._renames)
        except DiskError as error:
            if error.is_disk_failure:
                raise
            # No write has failed by that.
            self.refusal = error.to_keep()
