"""Truncating logs that follow a leader, with what is noted of them beside their files.

    stop its compaction ──> recovery point, log start ──> truncate ──> cleaner's checkpoint

The two go first, as there may be no room to write them: a log that had been cut and went on with a
higher recovery point would have records below it that no start looks at after a power cut, and with
a higher log start some that count as deleted.

Source: Kafka, LogManager.scala (truncateTo, truncateFullyAndStartAt).
"""

from collections.abc import Callable

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
                checkpoints.
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
        cleaning.abort_and_pause(log.topic_partition)
        try:
            recovery_point, log_start_offset = log.recovery_point, log.durable_log_start_offset
            if offset is not None:
                log.recovery_point = min(recovery_point, offset)
                self._checkpoints.lower(log, min(log_start_offset, offset))
                recovery_point = log.recovery_point
                log_start_offset = min(log_start_offset, offset)
            act()
            self._compaction.truncated(log, log.log_end_offset)
        finally:
            cleaning.resume(log.topic_partition)
        # Lower still, where a batch went whole or the log begins behind its remote part.
        if log.recovery_point < recovery_point:
            # Before the next append: a crash would find records above it that were not scanned.
            self._checkpoints.write_recovery_points()
        if log.log_start_offset < log_start_offset:
            # What comes below the checkpointed one, or is remote there, would count as deleted
            # after a crash.
            self._checkpoints.write_log_start_offsets()
