"""Moving a log from one log directory to another (KIP-113): its steps on the disk.

    begin ─> copy, while the log serves ─> take_out ─> finish ─> swap ─> it serves again
                 └─> drop                     └────────────┴─> put_back

What a crash leaves, by what was done last:

    copy                 the log; the copy is removed at the next start
    (the metadata store says the new directory now)
    still before swap    the log, served where it is, which the store then records; no copy
    swap: copy renamed   both; the new one is served, the old one set aside
    swap: log renamed    the new one; the old one is removed

Source: Kafka, LogManager.scala (replaceCurrentWithFutureLog).
"""

import errno
from contextlib import suppress
from posixpath import dirname, join

from config.topic import TopicConfig
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
)
from storage.checkpoints.log_directory import LogDirectory
from storage.errors import DiskError, LogDirectoryFullError
from storage.log.log import Log
from storage.manager.log_checkpoints import LogCheckpoints
from storage.manager.log_copy import LogCopy, SegmentSize, Throttled, unthrottled
from storage.manager.log_deletion import LogDeletion
from storage.manager.log_opener import LogOpener
from storage.manager.log_table import LogTable
from storage.types.partition_directory import DirectoryState, marked_name


class LogMoves:
    """Moves logs from one log directory to another.

    Owns nothing. Called by the mover's thread; all but `take_out`, which is called on the loop,
    block for disks.
    """

    def __init__(
        self,
        table: LogTable,
        opener: LogOpener,
        checkpoints: LogCheckpoints,
        deletion: LogDeletion,
    ) -> None:
        self._table = table
        self._opener = opener
        self._checkpoints = checkpoints
        self._deletion = deletion

    def begin_move(
        self, log: Log, target: LogDirectory, throttle: Throttled = unthrottled
    ) -> LogCopy:
        """An empty copy of a log in another directory.

        Raises:
            DiskError: The disk refused; the directory is offline now. Or the folder that it has
                left there is still to be renamed.
        """
        if self._table.leaving.get(log.topic_partition) is target:
            raise LogDirectoryFullError(
                f"the former folder of {log.topic_partition} could not be renamed yet",
                target.path,
                errno.ENOSPC,
            )
        name = marked_name(
            log.topic_partition, DirectoryState.FUTURE, self._table.randomness.uuid4()
        )
        path = join(target.path, name)
        with self._table.failing(target):
            self._table.filesystem.mkdir(path)
            self._table.filesystem.sync_directory(target.path)
        return LogCopy(self._table.filesystem, log.directory, path, throttle)

    def copy_segments(self, log: Log, copy: LogCopy) -> int:
        """Bring the copy of a log that serves up to what it has now; returns bytes copied.

        Raises:
            CopyCancelledError: The copy is not wanted any more.
            DiskError: A disk refused. Where it was the copy's, its directory is offline now.
        """

        def list_segments() -> tuple[list[SegmentSize], int]:
            facts = log.segment_facts()
            return [SegmentSize(one.base_offset, one.size) for one in facts], log.log_end_offset

        segments, end_offset = self._table.on_owner(list_segments)
        with _FailingTarget(self._table, copy):
            return copy.copy(segments, end_offset)

    def before_take_out(self, log: Log) -> None:
        """Have checkpoints keep what they say of the log while it is out.

        If it does not come to that: `not_taken_out`.
        """
        source = self._table.directory_of(log)
        assert source is not None
        source.remember(log.topic_partition, _offsets_of(log))

    def not_taken_out(self, log: Log) -> None:
        """Have checkpoints say of the log what it is again: it serves on, or has been deleted.

        Of one that has been deleted they went on to say what it was, also while it was forgotten.

        Raises:
            DiskError: The disk refused; the directory is offline now.
        """
        topic_partition = log.topic_partition
        source = self._table.directory_of(log)
        assert source is not None
        with self._table.lock:
            source.loading.discard(topic_partition)
        if self._table.serving.get(topic_partition) is not log:
            with self._table.failing(source):
                source.forget({topic_partition})
            # There may be another log of that name by now.
            self._checkpoints.write()

    def take_out(self, log: Log) -> None:
        """The log serves no longer, and belongs to the thread that moves it. On the loop."""
        source = self._table.directory_of(log)
        assert source is not None
        with self._table.lock:
            self._table.serving.pop(log.topic_partition, None)
            self._table.loading[log.topic_partition] = source

    def finish_move(self, log: Log, copy: LogCopy, target: LogDirectory) -> None:
        """Close a log that was taken out, and make its copy whole.

        Raises:
            DiskError: A disk refused; as of `copy_segments`.
        """
        source = self._table.directory_of(log)
        assert source is not None
        with self._table.failing(source):
            log.close(clean=True)
        copy.is_log_closed = True
        # At once: where it is put back, what lies above its recovery point would be doubted.
        offsets = _offsets_of(log)
        source.remember(log.topic_partition, offsets)
        with _FailingTarget(self._table, copy):
            copy.finish()
        cleaned = source.checkpointed(CLEANER_CHECKPOINT, log.topic_partition)
        if cleaned is not None:
            offsets[CLEANER_CHECKPOINT] = cleaned
        target.remember(log.topic_partition, offsets)
        self._checkpoints.write()
        # Where its checkpoints were passed over, or have no room, it would be forgotten where the
        # log begins, and that offsets may be missing.
        _check_online(target)
        with self._table.failing(target):
            for name in offsets:
                target.write_checkpoint(name)

    def swap(
        self, log: Log, copy: LogCopy, target: LogDirectory, config: TopicConfig
    ) -> Log | None:
        """Let a finished copy take the log's place; the log that serves from now on.

        Returns:
            None: the new directory has gone offline, and the log with it.

        Raises:
            DiskError: The new directory's disk refused; the log is where it was.
        """
        topic_partition = log.topic_partition
        source = self._table.directory_of(log)
        assert source is not None
        path = join(target.path, str(topic_partition))
        with self._table.failing(target):
            self._rename_copy(copy, path)
        try:
            opened = self._open_again(target, log, config)
        except BaseException:
            # The log is still whole where it was, and is opened there again.
            self._take_name_back(copy, path)
            raise
        with self._table.lock:
            self._table.loading[topic_partition] = target
            source.loading.discard(topic_partition)
            source.partition_count -= 1
            target.partition_count += 1
        try:
            with self._table.failing(source):
                self._remove_old(log, source)
        except DiskError:
            # It was about to be removed anyway: the new one serves.
            pass
        return opened if self._opener.serve(target, opened) else None

    def _rename_copy(self, copy: LogCopy, path: str) -> None:
        filesystem = self._table.filesystem
        filesystem.rename(copy.target, path)
        try:
            filesystem.sync_directory(dirname(path))
        except DiskError:
            self._take_name_back(copy, path)
            raise

    def _take_name_back(self, copy: LogCopy, path: str) -> None:
        """Under that name a start would serve the copy, if the store still says that it moves."""
        with suppress(DiskError):
            self._table.filesystem.rename(path, copy.target)
            self._table.filesystem.sync_directory(dirname(path))

    def put_back(
        self, log: Log, copy: LogCopy, target: LogDirectory, config: TopicConfig
    ) -> Log | None:
        """Open a log again that was taken out: it is not moved.

        One that could not be closed is read again, as after a kill: what closing was to write for
        its next opening, its producers above all, is not all there.

        Returns:
            None: its directory has gone offline meanwhile, and the log with it.

        Raises:
            DiskError: The disk refused; its directory is offline now.
        """
        source = self._table.directory_of(log)
        assert source is not None
        target.loading.discard(log.topic_partition)
        try:
            opened = self._open_again(source, log, config, was_closed=copy.is_log_closed)
        except BaseException:
            # It stays out of service, and a clean stop would say that it was closed.
            source.was_closed_cleanly &= copy.is_log_closed
            raise
        is_served = self._opener.serve(source, opened)
        self.drop_copy(copy, target)
        return opened if is_served else None

    def drop_copy(self, copy: LogCopy, target: LogDirectory) -> None:
        """Remove a copy that is not wanted; a disk that refuses keeps it until the next start."""
        try:
            with self._table.failing(target):
                self._table.filesystem.rmtree(copy.target)
        except DiskError:
            return

    def _remove_old(self, log: Log, source: LogDirectory) -> None:
        topic_partition = log.topic_partition
        name = marked_name(topic_partition, DirectoryState.DELETE, self._table.randomness.uuid4())
        path = join(source.path, name)
        try:
            self._table.filesystem.rename(log.directory, path)
        except DiskError as error:
            if not error.is_disk_failure:
                with self._table.lock:
                    self._table.leaving[topic_partition] = source
            raise
        self._table.filesystem.sync_directory(source.path)
        source.forget({topic_partition})
        due_ms = self._table.clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._deletion.schedule(path, due_ms)

    def _open_again(
        self, directory: LogDirectory, log: Log, config: TopicConfig, *, was_closed: bool = True
    ) -> Log:
        with self._table.failing(directory):
            opened = self._opener.open(
                directory,
                log.topic_partition,
                log.topic_id,
                config,
                None,
                is_new=False,
                was_closed=was_closed,
            )
        # Whatever was scanned, it is this process that wrote it: nothing of it can be lost.
        opened.needs_new_epoch = False
        return opened


class _FailingTarget:
    """While it is entered, a disk that fails under a copy takes the copy's directory offline.

    It is not entered where that is offline already: DiskError.

    What of the log cannot be read fails the move alone: the operator may be saving what is left on
    a disk with bad blocks, and the partitions there are served for as long as that goes.
    """

    def __init__(self, table: LogTable, copy: LogCopy) -> None:
        self._table = table
        self._copy = copy

    def __enter__(self) -> None:
        _check_online(self._directory())

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if (
            isinstance(error, DiskError)
            and error.is_disk_failure
            and (error.path + "/").startswith(self._copy.target + "/")
        ):
            self._table.fail(self._directory(), error)

    def _directory(self) -> LogDirectory:
        path = dirname(self._copy.target)
        return next(d for d in self._table.directories if d.path == path)


def _check_online(target: LogDirectory) -> None:
    """Check that a log may go on moving to a directory.

    Raises:
        DiskError: Its disk has failed, under this copy or under another log.
    """
    if not target.is_online:
        raise DiskError("the log directory is offline", target.path)


def _offsets_of(log: Log) -> dict[str, int]:
    offsets = {
        RECOVERY_POINT_CHECKPOINT: log.recovery_point,
        LOG_START_OFFSET_CHECKPOINT: log.log_start_offset,
        HIGH_WATERMARK_CHECKPOINT: log.high_watermark,
    }
    if log.durable_remote_offset >= 0:
        offsets[REMOTE_OFFSET_CHECKPOINT] = log.durable_remote_offset
    return offsets
