"""Remote storage as handlers see it: a second log, opened by the test when it likes."""

from collections.abc import Callable

from storage.log.log import Log
from storage.segment.readable_segment import TimestampOffset
from storage.types.file_slice import FileSlice
from tiered.remote_read import ReadRequest, RemoteRecords
from tiered.segment_metadata import TopicIdPartition


class FakeRead:
    """One read; `finish` and `fail` are the test's."""

    def __init__(self, reader: "FakeRemoteReader", request: ReadRequest) -> None:
        self.reader = reader
        self.request = request
        self.finished = False
        self.cancelled = False
        self.released = False
        self.records: RemoteRecords | None = None
        self.error: Exception | None = None
        self.on_finished: Callable[[], None] | None = None

    def finish(self) -> None:
        """Everything has come."""
        wanted = self.request
        found = self.reader.log.reader.read(
            wanted.offset,
            max_bytes=wanted.max_bytes,
            end_offset=wanted.log.local_log_start_offset,
            min_one_batch=wanted.min_one_batch,
        )
        slices = []
        if found is not None and found.length:
            # Two pieces, as when a read spans chunks.
            half = found.length // 2
            slices = [
                FileSlice(found.file, found.position, half),
                FileSlice(found.file, found.position + half, found.length - half),
            ]
        aborted = []
        if wanted.with_aborted and found is not None:
            aborted = self.reader.log.reader.aborted_transactions(wanted.offset, found)
        self.records = RemoteRecords(slices, aborted)
        self._tell()

    def nothing(self) -> None:
        """The quota leaves nothing."""
        self.records = RemoteRecords([], [])
        self._tell()

    def fail(self, error: Exception) -> None:
        """It cannot be read."""
        self.error = error
        self._tell()

    def _tell(self) -> None:
        self.finished = True
        if self.on_finished is not None:
            self.on_finished()

    def cancel(self) -> None:
        self.cancelled = True

    def release(self) -> None:
        self.released = True


class FakeRemoteReader:
    """Reads `log`, which has everything, for a log that has not."""

    def __init__(self, log: Log, *, at_once: bool = True) -> None:
        self.log = log
        self.at_once = at_once
        self.reads: list[FakeRead] = []
        self.failure: Exception | None = None
        # Topics that `failure` is for, or that hang if there is none; empty: all.
        self.fails_for: set[str] = set()

    def read(self, request: ReadRequest) -> FakeRead:
        read = FakeRead(self, request)
        self.reads.append(read)
        is_meant = not self.fails_for or request.partition.topic in self.fails_for
        if self.failure is not None and is_meant:
            read.fail(self.failure)
        elif self.at_once and not (self.fails_for and is_meant):
            read.finish()
        return read

    async def find_timestamp(
        self,
        partition: TopicIdPartition,
        log: Log,
        timestamp_ms: int | None,
        client: tuple[str, str],
    ) -> TimestampOffset | None:
        if self.failure is not None:
            raise self.failure
        end = log.local_log_start_offset
        if timestamp_ms is None:
            found = self.log.reader.max_timestamp_offset()
        else:
            found = self.log.reader.offset_for_timestamp(timestamp_ms, end)
        return found if found is not None and found.offset < end else None
