"""Segments whose files were cut: an alert, and filling closed ones up from another replica.

    the cut file ──its whole batches──> .cleaned ──batches of another replica──> whole
                                                   ──in its place, as after a compaction──> .log

What is filled up is a run over the log as a compaction is: there is one at a time, none while old
segments are deleted or the log is moved, and a truncation or a deletion stops it. Whatever stops
it, the log is as before, and nothing that could be read is gone: the new file begins with all that
was whole in the old one. A crash is put right as that of a compaction (`storage.log.replacement`).

The aborted transactions of a segment have a file of their own. Where whole segments are missing
theirs is, too: then nothing is filled up that a transaction index would be needed for.

Where no other replica has the records, the alert stays and their offsets are refused.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Final

from protocol.errors import DecodeError
from protocol.records.batch import BatchHeader, crc_matches, iterate_batches
from protocol.records.control import ControlType
from storage.cleaner.checked_batches import read_checked_batches
from storage.cleaner.cleaned_segment import CleanedSegment
from storage.cleaner.cleaning import CleaningAbortedError, replace_segments
from storage.environment.alerts import AlertKind
from storage.errors import CutSegmentError, InvalidFillError
from storage.log.log import Log
from storage.log.recovery.segment_recovery import read_control
from storage.manager.log_checkpoints import checkpoint_recovery_point
from storage.manager.log_table import LogTable
from storage.segment.segment import Segment
from storage.types.log_files import RELATIVE_OFFSET_MAX
from storage.types.topic_partition import TopicPartition

READ_BYTES: Final = 512 * 1024
"""Read at a time of the cut file."""

SIZE_MAX: Final = (1 << 31) - 1
"""Bytes that an index can name: two large segments may be missing one after the other."""

Throttle = Callable[[int, Callable[[], None]], None]


class CutSegments:
    """See the module. In any thread.

    Owns which partitions have an alert of the kind SEGMENT_CUT.
    """

    def __init__(self, table: LogTable, throttle: Throttle) -> None:
        """`throttle`: see `storage.cleaner.cleaner.Cleaner`."""
        self._table = table
        self._throttle = throttle
        # Path and end of the segment found last; one entry for a partition.
        self._reported: dict[TopicPartition, tuple[str, int]] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """End what is under way soon, and begin nothing more."""
        self._is_stopped = True

    def check_done(self, log: Log) -> None:
        """Called by what is under way, often.

        Raises:
            CleaningAbortedError: The log is being truncated or deleted, or the broker stops.
        """
        if self._is_stopped:
            raise CleaningAbortedError("the broker stops")
        self._table.cleaning.check_done(log)

    def report(self, topic_partition: TopicPartition, error: CutSegmentError) -> None:
        """Set the alert of a partition; nothing happens if it is set for that segment."""
        found = (error.path, error.next_offset)
        if self._reported.get(topic_partition) == found:
            return
        self._reported[topic_partition] = found
        self._table.alerts.set(
            AlertKind.SEGMENT_CUT,
            str(topic_partition),
            f"{error.path} of {topic_partition} has been cut: records at its end, below offset "
            f"{error.next_offset}, are missing on this broker, and reading them is refused. They "
            "are fetched from another replica as soon as there is one that has them. "
            "Without any, put a copy of the file back while the broker is stopped. Examine the "
            "disk and its file system.",
        )

    def refresh(self) -> None:
        """Clear the alerts of segments that are whole, or have left the log."""
        for topic_partition, (path, _) in list(self._reported.items()):
            log = self._table.serving.get(topic_partition)
            if log is None or not _is_cut(log, path):
                self._reported.pop(topic_partition, None)
                self._table.alerts.clear(AlertKind.SEGMENT_CUT, str(topic_partition))

    def begin(self, log: Log, error: CutSegmentError) -> "SegmentFill | None":
        """Begin to fill up the segment that `error` is about. Reads the file: for a thread.

        Returns:
            What takes the missing batches, to be closed; None: the log is being changed otherwise,
            or the segment is not cut any more.

        Raises:
            CorruptFileError: A batch before the cut is damaged too: nothing is done.
            CleaningAbortedError: The log is being truncated or deleted.
            DiskError: The disk refused.
        """
        if not self._table.cleaning.take(log):
            return None
        fill = None
        try:
            found = None
            if self._table.serving.get(log.topic_partition) is log:
                found = _find(log, error.path)
            if found is not None:
                fill = SegmentFill(self._table, log, *found, partial(self.check_done, log))
                fill.copy(self._throttle)
        except BaseException:
            if fill is not None:
                fill.close()
            else:
                self._table.cleaning.done(log)
            raise
        if fill is None:
            self._table.cleaning.done(log)
        return fill


class SegmentFill:
    """One segment that is being filled up. One thread at a time; every call blocks for the disk.

    Attributes:
        next_offset: The first one that is wanted.
        end_offset: Where the next segment begins.
    """

    def __init__(
        self,
        table: LogTable,
        log: Log,
        segment: Segment,
        end_offset: int,
        check_done: Callable[[], None],
    ) -> None:
        """The caller has taken the log; `close` gives it back."""
        self._table = table
        self._log = log
        self._segment = segment
        self.next_offset = segment.base_offset
        self.end_offset = end_offset
        self._check_done = check_done
        self._is_put = False
        # Of transactions: the markers that the index has, and who has none open that began here.
        self._indexed: set[int] = set()
        self._ended: set[int] = set()
        self._is_cut_between_batches = False
        self._leaves_gap = False
        self._cleaned = CleanedSegment(
            log.directory,
            segment.base_offset,
            table.filesystem,
            segment.index_interval_bytes,
        )

    @property
    def size(self) -> int:
        """Bytes of the new file so far."""
        return self._cleaned.size

    def copy(self, throttle: Throttle) -> None:
        """Take over what is whole, and the aborted transactions, which have a file of their own.

        Raises:
            CorruptFileError, CleaningAbortedError, DiskError: As `CutSegments.begin`.
        """
        segment, cleaned = self._segment, self._cleaned
        whole_end = segment.whole_end()
        self._is_cut_between_batches = whole_end == segment.size
        for txn in segment.transaction_index.entries():
            cleaned.append_aborted(txn)
            self._indexed.add(txn.last_offset)
        batches = read_checked_batches(self._table.filesystem, segment.path, whole_end, READ_BYTES)
        for header, batch in batches:
            throttle(len(batch), self._check_done)
            self._check_done()
            cleaned.append(header, batch)
            self.next_offset = header.next_offset
            self._note(header)
        cleaned.write_out()

    def add(self, records: memoryview) -> bool:
        """Take batches of another replica; whether nothing is missing any more.

        Args:
            records: From the batch of `next_offset` on; the last may be cut off.

        Raises:
            InvalidFillError: One is damaged, does not follow, is of another leader epoch than this
                log has for its offset, or aborts a transaction that is not in the index; or one
                segment is too small for them.
            CleaningAbortedError, DiskError: As `copy`.
        """
        self._check()
        epochs = self._log.leader_epochs
        try:
            for position, header in iterate_batches(records, allow_partial=True):
                if header.base_offset >= self.end_offset:
                    # The other replica has compacted what lies before.
                    self._leaves_gap = self.next_offset < self.end_offset
                    self.next_offset = self.end_offset
                    break
                if header.next_offset <= self.next_offset:
                    continue
                if header.base_offset < self.next_offset or header.next_offset > self.end_offset:
                    raise InvalidFillError(f"batch at {header.base_offset} does not fit")
                if not crc_matches(records, position, header):
                    raise InvalidFillError(f"batch at {header.base_offset} fails its CRC")
                epoch = epochs.epoch_for_offset(header.base_offset)
                if epoch != header.leader_epoch:
                    raise InvalidFillError(
                        f"batch at {header.base_offset} is of leader epoch {header.leader_epoch}, "
                        f"and was of {epoch}"
                    )
                batch = records[position : position + header.size]
                self._check_fits(header, batch)
                self._cleaned.append(header, batch)
                self.next_offset = header.next_offset
        except DecodeError as error:
            raise InvalidFillError(str(error)) from error
        self._cleaned.write_out()
        return self.next_offset >= self.end_offset

    def _check_fits(self, header: BatchHeader, batch: memoryview) -> None:
        last_offset = header.last_offset - self._segment.base_offset
        if self._cleaned.size + len(batch) > SIZE_MAX or last_offset > RELATIVE_OFFSET_MAX:
            raise InvalidFillError("more is missing than one segment can hold")
        if (
            self._is_cut_between_batches
            and header.producer_id not in self._ended
            and header.base_offset not in self._indexed
            and _aborts(header, batch)
        ):
            # The files of whole segments are missing, with their transaction indexes: readers of
            # committed records would get what was aborted.
            raise InvalidFillError(
                f"the transaction that offset {header.base_offset} aborts is not in the index"
            )
        self._note(header)

    def _note(self, header: BatchHeader) -> None:
        if header.is_control:
            self._ended.add(header.producer_id)
        else:
            self._ended.discard(header.producer_id)

    def put(self) -> None:
        """Let the whole segment take the place of the cut one; compaction may go on.

        Raises:
            CleaningAbortedError: As `copy`; or what was left out must not be missing yet: the log
                is not on disk up to there. It is as before.
            DiskError: As `replace_segments`.
        """
        self._cleaned.finish()
        self._check()
        if self._leaves_gap:
            if self._log.recovery_point < self.end_offset:
                raise CleaningAbortedError(f"{self._segment.path} has not been flushed")
            checkpoint_recovery_point(self._table, self._log, self.end_offset)
        base_offset = self._segment.base_offset
        self._is_put = True
        replace_segments(self._log, base_offset, [base_offset], self._check, self._table.on_owner)
        self._table.cleaning.is_sound(self._log.topic_partition)

    def close(self) -> None:
        """Give the log back; what was not put in place is removed."""
        try:
            if not self._is_put:
                self._cleaned.discard()
        finally:
            self._table.cleaning.done(self._log)

    def _check(self) -> None:
        self._check_done()
        if self._segment not in list(self._log.segments):
            raise CleaningAbortedError(f"{self._segment.path} has left its log")


def _aborts(header: BatchHeader, batch: memoryview) -> bool:
    marker = read_control(batch) if header.is_control else None
    return marker is not None and marker[0] == ControlType.ABORT


def _is_cut(log: Log, path: str) -> bool:
    """Whether a segment may lack something; the active one until the next append closes it."""
    active = log.segments.active
    return (active.is_cut and active.path == path) or _find(log, path) is not None


def _find(log: Log, path: str) -> tuple[Segment, int] | None:
    """A closed segment that may be cut, and where the next one begins."""
    for segment, following in pairwise(list(log.segments)):
        if segment.path == path:
            return (segment, following.base_offset) if segment.may_be_cut else None
    return None
