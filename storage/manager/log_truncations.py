"""Truncating logs that follow a leader, with what is noted of them beside their files.

    stop its compaction ──> recovery point, if it goes down ──> truncate ──> cleaner's checkpoint

The recovery point goes first, as there may be no room to write it: a log that had been cut and went
on with a higher one would have records below it that no start looks at after a power cut.

Source: Kafka, LogManager.scala (truncateTo, truncateFullyAndStartAt).
"""

from collections.abc import Callable

from storage.checkpoints.checkpoint_files import RECOVERY_POINT_CHECKPOINT
from storage.log.log import Log
from storage.manager.log_checkpoints import LogCheckpoints
from storage.manager.log_compaction import LogCompaction
from storage.manager.log_table import LogTable


class LogTruncations:
    """Truncates logs for their owner, who leaves them alone meanwhile. Calls block: for a thread.

    Owns nothing.
    """

    __slots__ = ("_checkpoints", "_compaction", "_table")

    def __init__(
        self, table: LogTable, checkpoints: LogCheckpoints, compaction: LogCompaction
    ) -> None:
        self._table = table
        self._checkpoints = checkpoints
        self._compaction = compaction

    def truncate_to(self, log: Log, offset: int) -> None:
        """Remove everything from `offset` on, as `LogTruncation.truncate_to`.

        Raises:
            DiskError: The disk refused; the log is as before if there was no room for its
                recovery point.
        """
        self._truncate(log, lambda: log.truncation.truncate_to(offset), offset)

    def start_at(self, log: Log, offset: int) -> None:
        """Remove everything; the log begins at `offset`.

        Raises:
            DiskError: As of `truncate_to`.
        """
        self._truncate(log, lambda: log.truncation.truncate_fully_and_start_at(offset), offset)

    def start_behind(self, log: Log, install: Callable[[Log], None]) -> None:
        """Have `install` empty the log and let it go on behind its remote part.

        Raises:
            DiskError: The disk refused.
        """
        self._truncate(log, lambda: install(log))
        # Settings that are lost before the next checkpoint must not have it begin here.
        self._checkpoints.write_log_start_offsets()

    def _truncate(self, log: Log, act: Callable[[], object], offset: int | None = None) -> None:
        cleaning = self._table.cleaning
        log_start_offset = log.durable_log_start_offset
        cleaning.abort_and_pause(log.topic_partition)
        try:
            if offset is not None:
                log.recovery_point = min(log.recovery_point, offset)
                self._lower_recovery_point(log)
            recovery_point = log.recovery_point
            act()
            self._compaction.truncated(log, log.log_end_offset)
        finally:
            cleaning.resume(log.topic_partition)
        if log.recovery_point < recovery_point:
            # Of a batch that went whole. Before the next append, too.
            self._checkpoints.write_recovery_points()
        if log.log_start_offset < log_start_offset:
            # What comes below the checkpointed one, or is remote there, would count as deleted
            # after a crash.
            self._checkpoints.write_log_start_offsets()

    def _lower_recovery_point(self, log: Log) -> None:
        directory = self._table.directory_of(log)
        if directory is None:
            return
        written = directory.checkpointed(RECOVERY_POINT_CHECKPOINT, log.topic_partition)
        if written is not None and log.recovery_point < written:
            lower = {log.topic_partition: log.recovery_point}
            with self._table.failing(directory):
                directory.write_checkpoint(
                    RECOVERY_POINT_CHECKPOINT, lambda offsets: {**offsets, **lower}
                )
