"""Compaction of the broker's logs: which log is next, and what came of it.

Source: Kafka, LogCleaner.java, LogCleanerManager.java.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from protocol.errors import DecodeError
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
)
from storage.checkpoints.log_directory import LogDirectory
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import (
    CleanerStats,
    CleaningAbortedError,
    CleaningFailedError,
    CleansLogs,
)
from storage.errors import (
    CorruptFileError,
    DiskError,
)
from storage.log.log import Log
from storage.manager.log_checkpoints import checkpoint_recovery_point
from storage.manager.log_table import LogManagerSettings, LogTable
from storage.types.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class LogCompaction:
    """Compacts logs, the dirtiest first.

    Owns the cleaner and the cleaner's checkpoint. `clean_dirtiest` is called by as many threads as
    `log.cleaner.threads` says, at every `log.cleaner.backoff.ms`.

    Attributes:
        in_thread: The cleaner of this process.
    """

    def __init__(
        self, table: LogTable, throttle: Callable[[int, Callable[[], None]], None]
    ) -> None:
        """`throttle`: see `Cleaner`."""
        self._table = table
        self._throttle = throttle
        self.in_thread = self._new_cleaner()
        self._other: CleansLogs | None = None

    @property
    def _cleaner(self) -> CleansLogs:
        return self.in_thread if self._other is None else self._other

    def clean_with(self, cleaner: CleansLogs) -> None:
        """Have another cleaner do the work; `in_thread` is what it may fall back to."""
        self._other = cleaner

    def _new_cleaner(self) -> Cleaner:
        settings = self._table.settings
        return Cleaner(
            self._table.filesystem,
            dedupe_buffer_bytes=settings.log_cleaner_dedupe_buffer_size,
            load_factor=settings.log_cleaner_io_buffer_load_factor,
            read_bytes=settings.log_cleaner_io_buffer_size,
            throttle=self._throttle,
        )

    def update_cleaner(self, settings: LogManagerSettings) -> None:
        """Settings of the cleaner have changed: from the next log on."""
        self._table.settings = replace(
            self._table.settings,
            log_cleaner_dedupe_buffer_size=settings.log_cleaner_dedupe_buffer_size,
            log_cleaner_io_buffer_size=settings.log_cleaner_io_buffer_size,
            log_cleaner_io_buffer_load_factor=settings.log_cleaner_io_buffer_load_factor,
        )
        self.in_thread = self._new_cleaner()

    def clean_dirtiest(self) -> CleanerStats | None:
        """Compact the dirtiest log that is due; None: there was none, or it could not be done.

        A damaged log is not compacted again (`cleaning.uncleanable`).
        """
        if not self._table.settings.log_cleaner_enable:
            return None
        now_ms = self._table.clock.now_ms()
        checkpoints: dict[TopicPartition, int] = {}
        for directory in self._table.online():
            checkpoints.update(directory.offsets.get(CLEANER_CHECKPOINT, {}))
        # One that is out of service may lack files, in a directory that serves all others.
        logs = [log for log in self._table.logs() if log.failure is None]
        chosen = self._table.cleaning.take_dirtiest(logs, checkpoints, now_ms)
        if chosen is None:
            return None
        log = chosen.log
        topic_partition = log.topic_partition
        try:
            if self._table.serving.get(topic_partition) is not log:
                # Deleted after it was chosen.
                return None
            # What it leaves out must not seem lost to a start after a power cut.
            checkpoint_recovery_point(self._table, log, chosen.first_uncleanable_offset)
            stats = self._cleaner.clean(
                log,
                on_owner=self._table.on_owner,
                first_dirty_offset=chosen.first_dirty_offset,
                first_uncleanable_offset=chosen.first_uncleanable_offset,
                now_ms=now_ms,
                check_done=lambda: self._table.cleaning.check_done(log),
            )
            self._table.cleaning.check_done(log)
            self._checkpoint_cleaned(topic_partition, stats.end_offset)
            self._table.cleaning.succeeded(topic_partition)
        except CleaningAbortedError:
            return None
        except CleaningFailedError as error:
            delay_ms = self._table.cleaning.postpone(topic_partition, now_ms)
            _log.error(
                "compaction failed partition=%s retry_in_s=%d error=%s",
                topic_partition,
                delay_ms // 1000,
                error,
            )
            return None
        except (DiskError, CorruptFileError, DecodeError) as error:
            if self._table.cleaning.is_aborted(log):
                # Its files went away under it, or are another topic's by now.
                _log.info(
                    "compaction stopped, its log was deleted or closed partition=%s",
                    topic_partition,
                )
            elif isinstance(error, DiskError):
                served = self._table.serving.get(topic_partition)
                if served is not None:
                    self._table.fail_log(served, error)
            else:
                _log.error(
                    "partition is uncleanable, compaction leaves it out partition=%s reason=%s",
                    topic_partition,
                    error,
                )
                self._table.cleaning.mark_uncleanable(topic_partition, str(error))
            return None
        finally:
            self._table.cleaning.done(log)
        _log.info(
            "compacted partition=%s offsets=%d..%d bytes_read=%d bytes_written=%d",
            topic_partition,
            stats.start_offset,
            stats.end_offset,
            stats.bytes_read,
            stats.bytes_written,
        )
        return stats

    def _checkpoint_cleaned(self, topic_partition: TopicPartition, end_offset: int) -> None:
        log = self._table.serving.get(topic_partition)
        directory = None if log is None else self._table.directory_of(log)
        if directory is not None:
            directory.write_checkpoint(
                CLEANER_CHECKPOINT, lambda offsets: {**offsets, topic_partition: end_offset}
            )

    def note_gaps(self, directory: LogDirectory, topic_partition: TopicPartition) -> None:
        """Have the cleaner's checkpoint say that offsets may be missing in a log.

        Raises:
            DiskError: The disk refused.
        """
        directory.write_checkpoint(
            CLEANER_CHECKPOINT, lambda offsets: {topic_partition: 1, **offsets}
        )

    def truncated(self, log: Log, offset: int) -> None:
        """The log was truncated to `offset`: what lies above is to be compacted again."""
        directory = self._table.directory_of(log)
        if directory is not None:
            with self._table.failing(directory):
                self.ends_at(directory, log.topic_partition, offset)

    def ends_at(
        self, directory: LogDirectory, topic_partition: TopicPartition, offset: int
    ) -> None:
        """A log ends at `offset`, as it was found or cut: nothing above counts as compacted.

        Else what is written there next would be passed over, a tombstone go after
        `delete.retention.ms`, and what it has deleted be there again.

        Raises:
            DiskError: The disk refused.
        """

        def lowered(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
            # Not to 0: that offsets may be missing goes on to be known.
            until = min(offsets.get(topic_partition, 0), max(offset, 1))
            return {**offsets, topic_partition: until} if topic_partition in offsets else offsets

        if directory.checkpointed(CLEANER_CHECKPOINT, topic_partition) is not None:
            directory.write_checkpoint(CLEANER_CHECKPOINT, lowered)
