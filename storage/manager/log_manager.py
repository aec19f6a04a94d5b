"""All logs of a broker: where they are, opening, deleting, checkpointing and closing them.

    open_directories ─> claim ─> load_jobs ─> jobs run, one log after the other serves
                                                  │
              get_or_create, delete, passes  <────┘
                                                  │
                                              shutdown

Several log directories (`log.dirs`): a new partition goes to the one with the fewest. A directory
whose disk fails goes offline, its partitions with it; the others serve. Without any left the
broker must stop.

Synchronous. `get` and `logs` may be called anywhere; all else touches disks and belongs in a
thread, where calls may overlap: one lock guards the map of logs, held only for moments. A log that
serves belongs to one thread, though, the loop's; what changes it goes there through `on_owner`, in
small steps, and only the slow part (fdatasync, reading and writing for compaction, removing) stays.

Passes, each to be called now and then by the broker:

    clean_dirtiest        `log.cleaner.backoff.ms`, again at once while it returns something
    remove_deleted        `file.delete.delay.ms` after a deletion
    checkpoint_*          `log.flush.offset.checkpoint.interval.ms` and its like

Its parts: `log_table` (what all share), `log_startup`, `log_passes`, `log_checkpoints`,
`log_moves`.

Source: Kafka, LogManager.scala.
"""

from collections.abc import Iterable
from functools import partial
from posixpath import dirname, join
from uuid import UUID

from config.topic import TopicConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
)
from storage.environment.alerts import AlertKind
from storage.errors import (
    DiskError,
    InconsistentTopicIdError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
    PartitionLoadingError,
    StorageError,
)
from storage.log.log import Log
from storage.manager.log_jobs import CLOSING_THREADS, Run, run_in_threads, run_one_by_one
from storage.manager.log_moves import LogMoves
from storage.manager.log_passes import LogPasses
from storage.manager.log_room import LogRoom
from storage.manager.log_table import LogManagerSettings
from storage.types.partition_directory import DirectoryState, marked_name
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL, format_uuid

__all__ = ["LogManager", "LogManagerSettings"]


class LogManager(LogRoom, LogMoves, LogPasses):
    """The broker's logs."""

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: UUID, config: TopicConfig
    ) -> Log:
        """The partition's log; a new one goes to the log directory with the fewest partitions.

        Raises:
            InconsistentTopicIdError: There is one of another topic with the same name.
            PartitionLoadingError: There is one, and it is still being recovered.
            LogDirectoryOfflineError: There is one in a directory that is offline, or no directory
                is left.
            DiskError: The disk refused; the directory is offline now.
        """
        return self.create_all([(topic_partition, topic_id, config)])[0]

    def create_all(
        self,
        partitions: Iterable[tuple[TopicPartition, UUID, TopicConfig]],
        *,
        leader_epoch: int = 0,
    ) -> list[Log]:
        """`get_or_create` for many at once: directories are synced once, at the end.

        A new log gets its first `leader_epoch` here: else its first append would wait for the disk
        to record it.
        """
        created: list[Log] = []
        touched: dict[str, LogDirectory] = {}
        for topic_partition, topic_id, config in partitions:
            log = self._find_or_make(topic_partition, topic_id, config, leader_epoch, touched)
            created.append(log)
        for directory in touched.values():
            with self._failing(directory):
                self._filesystem.sync_directory(directory.path)
        return created

    def _find_or_make(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: TopicConfig,
        leader_epoch: int,
        touched: dict[str, LogDirectory],
    ) -> Log:
        while True:
            found = self._find_or_reserve(topic_partition)
            if isinstance(found, Log):
                self._check_topic_id(found, topic_id)
                return found
            touched[found.path] = found
            try:
                log = self._create(found, topic_partition, topic_id, config, leader_epoch)
                self._publish(found, log)
            except BaseException as error:
                self._publish(found, None)
                if not (isinstance(error, DiskError) and error.is_full):
                    raise
                # Not chosen again: there may be room in another one.
            else:
                return log
            finally:
                with self._created:
                    self._creating.discard(topic_partition)
                    self._created.notify_all()

    def _find_or_reserve(self, topic_partition: TopicPartition) -> Log | LogDirectory:
        """The log there is, or the directory for a new one, which the caller makes now.

        The lock is not held while it does: the loop takes it, too.
        """
        with self._created:
            while topic_partition in self._creating:
                self._created.wait()
            if topic_partition in self._loading:
                raise PartitionLoadingError(f"partition {topic_partition} is still being recovered")
            log = self._logs.get(topic_partition)
            if log is not None:
                return log
            directory = self._directory_for(topic_partition)
            self._creating.add(topic_partition)
            directory.partition_count += 1
            return directory

    def _publish(self, directory: LogDirectory, log: Log | None) -> None:
        """A new log is there, or could not be made."""
        with self._lock:
            if log is not None and directory.is_online:
                self._logs[log.topic_partition] = log
                return
            if log is None:
                directory.partition_count -= 1
                return
        log.close(clean=False)
        raise LogDirectoryOfflineError(
            f"partition {log.topic_partition} was created in a log directory that is offline",
            directory.path,
        )

    def _check_topic_id(self, log: Log, topic_id: UUID) -> None:
        if log.topic_id == NIL and topic_id != NIL:
            # Of a broker that knew no topic ids, or the file was damaged.
            log.topic_id = topic_id
            with self._failing(self.directory_of(log)):
                path = join(log.directory, PARTITION_METADATA)
                self._filesystem.replace_bytes(path, encode_partition_metadata(topic_id))
        elif log.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"partition {log.topic_partition} on disk is of topic {log.topic_id}, "
                f"not {topic_id}"
            )

    def _directory_for(self, topic_partition: TopicPartition) -> LogDirectory:
        if topic_partition in self._offline:
            raise LogDirectoryOfflineError(
                f"partition {topic_partition} is in a log directory that is offline",
                self._offline[topic_partition],
            )
        assigned = self.assigned(topic_partition)
        if assigned is not None:
            directory = self.directory_by_id(assigned)
            if directory is None:
                raise LogDirectoryOfflineError(
                    f"partition {topic_partition} belongs to a log directory that is missing",
                    format_uuid(assigned),
                )
            candidates = [directory]
        else:
            candidates = self._online()
        if not candidates:
            raise LogDirectoryOfflineError("all log directories are offline", "log.dirs")
        full = candidates[0].full_error
        candidates = [directory for directory in candidates if not directory.is_full]
        if not candidates:
            raise LogDirectoryFullError(
                f"no log directory has room: {full}", "log.dirs", full.errno if full else None
            )
        return min(candidates, key=lambda directory: directory.partition_count)

    def _create(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: TopicConfig,
        leader_epoch: int,
    ) -> Log:
        path = join(directory.path, str(topic_partition))
        with self._failing(directory):
            try:
                self._filesystem.mkdir(path)
                if topic_id != NIL:
                    # Not synced: if it is lost, the directory is taken for one that knows no id.
                    file = self._filesystem.open(join(path, PARTITION_METADATA), create=True)
                    file.truncate(0)
                    file.write_at(encode_partition_metadata(topic_id), 0)
                    file.close()
                log = self._open_log(directory, topic_partition, topic_id, config, None)
                log.leader_epochs.begin(leader_epoch)
            except DiskError as error:
                if not error.is_disk_failure:
                    # It would be found beside the one that is made elsewhere.
                    self._filesystem.rmtree(path)
                raise
        self._close_if_full(directory, log)
        return log

    def delete(self, topic_partition: TopicPartition) -> bool:
        """Delete a partition's log; returns whether there was one. See `delete_all`."""
        return self.delete_all([topic_partition]) == 1

    def delete_all(self, partitions: Iterable[TopicPartition]) -> int:
        """Delete logs: their directories are renamed now and removed by `remove_deleted`.

        A compaction under way is stopped, or abandoned if it does not stop soon. What goes wrong
        with one log does not keep the others.

        Returns:
            How many there were.

        Raises:
            PartitionLoadingError: One of them is still being recovered; the others are gone.
            DiskError: The disk refused; the directory is offline now. The first of several errors.
        """
        errors: list[StorageError] = []
        leaving: list[Log] = []
        count = 0
        for topic_partition in partitions:
            if topic_partition in self._given_up:
                try:
                    self._delete_given_up(topic_partition)
                    count += 1
                except StorageError as error:
                    errors.append(error)
                continue
            if topic_partition in self._loading:
                errors.append(PartitionLoadingError(f"{topic_partition} is still being recovered"))
                continue
            with self._lock:
                log = self._logs.pop(topic_partition, None)
            if log is not None:
                leaving.append(log)
        # After they have left the map: no run begins there any more.
        self.cleaning.abandon(log.topic_partition for log in leaving)
        gone: dict[str, set[TopicPartition]] = {}
        for log in leaving:
            directory = self.directory_of(log)
            assert directory is not None, log.directory
            gone.setdefault(directory.path, set()).add(log.topic_partition)
            try:
                self._delete(log, directory)
            except StorageError as error:
                errors.append(error)
        for directory in self.directories:
            if directory.path in gone:
                try:
                    with self._failing(directory):
                        self._filesystem.sync_directory(directory.path)
                        directory.forget(gone[directory.path])
                except StorageError as error:
                    errors.append(error)
        if errors:
            raise errors[0]
        return count + len(leaving)

    def _delete_given_up(self, topic_partition: TopicPartition) -> None:
        """A log that could not be opened leaves with its topic."""
        directory = self._given_up[topic_partition]
        name = marked_name(topic_partition, DirectoryState.DELETE, self._randomness.uuid4())
        path = join(directory.path, name)
        with self._failing(directory):
            self._filesystem.rename(join(directory.path, str(topic_partition)), path)
            self._filesystem.sync_directory(directory.path)
        with self._lock:
            del self._given_up[topic_partition]
            self._offline.pop(topic_partition, None)
            directory.loading.discard(topic_partition)
            directory.partition_count -= 1
            self._deleted.append((self._clock.now_ms(), path))
        self.alerts.clear(AlertKind.PARTITION_OFFLINE, str(topic_partition))
        with self._failing(directory):
            directory.forget({topic_partition})

    def forget_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Their topic is deleted: where they lie in a failed directory, the name is free again."""
        with self._lock:
            for topic_partition in partitions:
                self._offline.pop(topic_partition, None)

    def _delete(self, log: Log, directory: LogDirectory) -> None:
        topic_partition = log.topic_partition
        name = marked_name(topic_partition, DirectoryState.DELETE, self._randomness.uuid4())
        path = join(directory.path, name)
        with self._lock:
            directory.partition_count -= 1
        self.cleaning.forget(topic_partition)

        def leave() -> None:
            log.close(clean=False)
            log.rename_directory(path)

        with self._failing(directory):
            self._on_owner(leave)
        due = self._clock.now_ms() + log.config.file_delete_delay_ms
        self._deleted.append((due, path))

    def remove_deleted(self) -> int:
        """Remove files and directories that left long ago; returns how many directories."""
        self._each(lambda log: log.deletion.remove_deleted_files())
        self._look_at_set_aside()
        now_ms = self._clock.now_ms()
        with self._lock:
            due = [
                path
                for when, path in self._deleted
                if when <= now_ms and not self.cleaning.holds(path)
            ]
            leaving = set(due)
            self._deleted = [entry for entry in self._deleted if entry[1] not in leaving]
        removed = 0
        for path in due:
            directory = next(d for d in self.directories if d.path == dirname(path))
            if not directory.is_online:
                continue
            try:
                self._filesystem.rmtree(path)
                removed += 1
            except DiskError as error:
                self._fail(directory, error)
                if directory.is_online:
                    with self._lock:
                        self._deleted.append((now_ms, path))
        return removed

    @property
    def deleted_count(self) -> int:
        """Directories that wait for their removal."""
        return len(self._deleted)

    # -- end --

    def shutdown(self, *, clean: bool = True, run: Run | None = None) -> None:
        """Close all logs and release the directories.

        Args:
            clean: Flush everything, write the checkpoints and the clean-shutdown markers. False:
                leave the disk as it is.
            run: Runs the closing of logs; default: in a few threads, for each log waits for the
                disk several times.
        """
        self.cleaning.abort_all()
        logs = self.logs()
        for directory in self._online():
            # What is written last may need its room.
            directory.reserve.give_up()

        def close(log: Log) -> None:
            try:
                log.close(clean=clean)
            except DiskError as error:
                directory = self.directory_of(log)
                if directory is not None:
                    directory.was_closed_cleanly = False
                self.fail_log(log, error)

        jobs = [partial(close, log) for log in logs]
        if run is None:
            run = run_in_threads if clean and len(jobs) > CLOSING_THREADS else run_one_by_one
        run(jobs)
        if clean:
            self.checkpoint()
        for directory in self.directories:
            try:
                directory.close(mark_clean=clean)
            except DiskError as error:
                self._fail(directory, error)
        with self._lock:
            self._logs.clear()
