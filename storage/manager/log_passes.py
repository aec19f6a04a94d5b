"""Periodic maintenance of all logs: flush, retention, compaction, producer id expiration.

Source: Kafka, LogManager.scala, LogCleaner.java.
"""

import logging

from protocol.errors import DecodeError
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
)
from storage.cleaner.cleaning import CleanerStats, CleaningAbortedError, CleaningFailedError
from storage.errors import (
    CorruptFileError,
    DiskError,
)
from storage.log.log import Log
from storage.manager.log_table import LogTable
from storage.types.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class LogPasses(LogTable):
    """Maintenance of logs that serve."""

    def clean_dirtiest(self) -> CleanerStats | None:
        """Compact the dirtiest log that is due; None: there was none, or it could not be done.

        A damaged log is not compacted again (`cleaning.uncleanable`).
        """
        if not self._settings.log_cleaner_enable:
            return None
        now_ms = self._clock.now_ms()
        checkpoints: dict[TopicPartition, int] = {}
        for directory in self._online():
            checkpoints.update(directory.offsets.get(CLEANER_CHECKPOINT, {}))
        chosen = self.cleaning.take_dirtiest(self.logs(), checkpoints, now_ms)
        if chosen is None:
            return None
        log = chosen.log
        topic_partition = log.topic_partition
        try:
            if self._logs.get(topic_partition) is not log:
                # Deleted after it was chosen.
                return None
            stats = self._cleaner.clean(
                log,
                on_owner=self._on_owner,
                first_dirty_offset=chosen.first_dirty_offset,
                first_uncleanable_offset=chosen.first_uncleanable_offset,
                now_ms=now_ms,
                check_done=lambda: self.cleaning.check_done(log),
            )
            self.cleaning.check_done(log)
            self._checkpoint_cleaned(topic_partition, stats.end_offset)
            self.cleaning.succeeded(topic_partition)
        except CleaningAbortedError:
            return None
        except CleaningFailedError as error:
            delay_ms = self.cleaning.postpone(topic_partition, now_ms)
            _log.error(
                "compaction failed partition=%s retry_in_s=%d error=%s",
                topic_partition,
                delay_ms // 1000,
                error,
            )
            return None
        except (DiskError, CorruptFileError, DecodeError) as error:
            if self.cleaning.is_aborted(log):
                # Its files went away under it, or are another topic's by now.
                _log.info(
                    "compaction stopped, its log was deleted or closed partition=%s",
                    topic_partition,
                )
            elif isinstance(error, DiskError):
                served = self._logs.get(topic_partition)
                if served is not None:
                    self.fail_log(served, error)
            else:
                _log.error(
                    "partition is uncleanable, compaction leaves it out partition=%s reason=%s",
                    topic_partition,
                    error,
                )
                self.cleaning.mark_uncleanable(topic_partition, str(error))
            return None
        finally:
            self.cleaning.done(log)
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
        log = self._logs.get(topic_partition)
        directory = None if log is None else self.directory_of(log)
        if directory is not None:
            with self._cleaned_lock:
                offsets = directory.offsets.get(CLEANER_CHECKPOINT, {})
                directory.write_checkpoint(
                    CLEANER_CHECKPOINT, {**offsets, topic_partition: end_offset}
                )

    def truncated(self, log: Log, offset: int) -> None:
        """The log was truncated to `offset`: what lies above is to be compacted again."""
        directory = self.directory_of(log)
        if directory is None:
            return
        cleaned = directory.checkpointed(CLEANER_CHECKPOINT, log.topic_partition)
        if cleaned is not None and cleaned > offset:
            with self._failing(directory):
                self._checkpoint_cleaned(log.topic_partition, offset)
