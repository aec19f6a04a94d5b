"""Checkpoints of all logs: recovery points, log start offsets, high watermarks, by directory.

Source: Kafka, LogManager.scala (checkpointLogRecoveryOffsets and its like).
"""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from posixpath import dirname

from storage.checkpoints.checkpoint_files import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
)
from storage.errors import (
    DiskError,
)
from storage.log.log import Log
from storage.manager.log_table import LogTable
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL


class LogCheckpoints:
    """Writes the offset checkpoints of all logs.

    Owns the order of writes of log start offsets. Called at intervals and at shutdown, in threads;
    each call blocks for the disk.
    """

    def __init__(self, table: LogTable) -> None:
        self._table = table
        # The durable log start of a log is what was written last.
        self._log_start_lock = threading.Lock()

    def write_recovery_points(self) -> None:
        """Write the recovery points: what is on disk."""
        self._write(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    def write_log_start_offsets(self) -> None:
        """Write the log start offsets, and before them how far logs are in remote storage.

        A log that starts at 0 needs no log start, one that was never copied nothing else.
        """
        with self._log_start_lock:
            for log, offset in self._write(REMOTE_OFFSET_CHECKPOINT, _remote_offset):
                log.durable_remote_offset = offset
            written = self._write(
                LOG_START_OFFSET_CHECKPOINT, lambda log: log.log_start_offset or None
            )
            for log, offset in written:
                log.durable_log_start_offset = offset

    def lower(self, log: Log, log_start_offset: int) -> None:
        """Before a log is truncated: have its recovery point on disk, and where it will begin.

        Only if they are higher there.

        Raises:
            DiskError: The disk refused.
        """
        directory = self._table.directory_of(log)
        if directory is None:
            return
        topic_partition = log.topic_partition
        lower = {
            RECOVERY_POINT_CHECKPOINT: log.recovery_point,
            LOG_START_OFFSET_CHECKPOINT: log_start_offset,
        }
        with self._log_start_lock, self._table.failing(directory):
            for name, offset in lower.items():
                written = directory.checkpointed(name, topic_partition)
                if written is not None and offset < written:
                    one = {topic_partition: offset}
                    directory.write_checkpoint(name, partial(_changed, one))

    def write_high_watermarks(self) -> None:
        """Write the high watermarks."""
        self._write(HIGH_WATERMARK_CHECKPOINT, lambda log: log.high_watermark)

    def write(self) -> None:
        """All three."""
        self.write_recovery_points()
        self.write_log_start_offsets()
        self.write_high_watermarks()

    def _write(self, name: str, offset_of: Callable[[Log], int | None]) -> list[tuple[Log, int]]:
        """Write a checkpoint in every directory; the logs and offsets that are on disk now."""
        with self._table.lock:
            # Together: a log that is open when the checkpoint is written, and was not when the
            # offsets were read, would be in neither.
            logs = self._table.logs()
            loading = {
                directory.path: set(directory.loading) for directory in self._table.directories
            }
            named = {
                directory.path: frozenset(directory.offsets.get(name, ()))
                for directory in self._table.directories
            }
        by_path: dict[str, list[Log]] = {}
        for log in logs:
            by_path.setdefault(dirname(log.directory), []).append(log)
        written: list[tuple[Log, int]] = []
        for directory in self._table.online():
            path = directory.path
            here = _Offsets(by_path.get(path, []), loading[path], named[path], offset_of)
            try:
                directory.write_checkpoint(name, here.change)
            except DiskError as error:
                self._table.fail(directory, error)
            else:
                written += here.chosen
        # Deleted in the meantime, perhaps after the deletion had dropped them from the checkpoints.
        gone = {log.topic_partition for log in logs if not self._is_here(log)}
        for directory in self._table.directories:
            open_since = loading[directory.path] - directory.loading
            gone.update(tp for tp in open_since if tp not in self._table.serving)
        for directory in self._table.online() if gone else ():
            try:
                directory.forget(gone)
            except DiskError as error:
                self._table.fail(directory, error)
        return written

    def _is_here(self, log: Log) -> bool:
        """Whether a log is served, or the one that it has become by a move.

        Of that the new directory knows the recovery point: below it gaps are meant.
        """
        served = self._table.serving.get(log.topic_partition)
        return served is log or (
            served is not None and served.topic_id == log.topic_id and log.topic_id != NIL
        )


def checkpoint_recovery_point(table: LogTable, log: Log, offset: int) -> None:
    """Have the next start know that a log was on disk up to `offset`: gaps below are meant.

    Before segments are replaced by ones with less in them. The log's recovery point has reached
    `offset`; the checkpoint of it is written at intervals else.

    Raises:
        DiskError: The disk refused.
    """
    topic_partition = log.topic_partition

    def raised(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        # Of one that is being deleted nothing may be left for a namesake.
        is_served = table.serving.get(topic_partition) is log
        return _changed({topic_partition: log.recovery_point}, offsets) if is_served else offsets

    directory = table.directory_of(log)
    if directory is None:
        return
    known = directory.checkpointed(RECOVERY_POINT_CHECKPOINT, topic_partition)
    if known is None or known < offset:
        directory.write_checkpoint(RECOVERY_POINT_CHECKPOINT, raised)


def _remote_offset(log: Log) -> int | None:
    offset = log.durable_remote_offset
    if log.remote_storage:
        offset = max(offset, log.highest_remote_offset)
    return offset if offset >= 0 else None


def _changed(
    changes: Mapping[TopicPartition, int], before: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    return {**before, **changes}


class _Offsets:
    """What a checkpoint of one directory gets, read when it is this writer's turn.

    Not earlier: a log that is truncated meanwhile writes its lower recovery point, which an offset
    read before would put up again, over records that are not on disk.
    """

    def __init__(
        self,
        logs: list[Log],
        loading: set[TopicPartition],
        named: frozenset[TopicPartition],
        offset_of: Callable[[Log], int | None],
    ) -> None:
        self.chosen: list[tuple[Log, int]] = []
        self._logs = logs
        self._loading = loading
        self._named = named
        self._offset_of = offset_of

    def change(self, before: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Those of logs that are open, and what it says of those that were not, or not here."""
        offsets = {
            tp: offset
            for tp, offset in before.items()
            if tp in self._loading or tp not in self._named
        }
        for log in self._logs:
            offset = self._offset_of(log)
            if offset is not None:
                offsets[log.topic_partition] = offset
                self.chosen.append((log, offset))
        return offsets
