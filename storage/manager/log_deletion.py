"""Deleting logs: their directories are renamed at once, and removed a while later.

    served ──delete──> renamed ──file.delete.delay.ms──> removed
                └─no room for the name─> leaving ──tried again──^

Source: Kafka, LogManager.scala (asyncDelete, deleteLogs).
"""

from collections.abc import Iterable
from posixpath import dirname, join

from storage.checkpoints.log_directory import LogDirectory
from storage.environment.alerts import AlertKind
from storage.errors import DiskError, PartitionLoadingError, StorageError
from storage.log.log import Log
from storage.manager.cut_segments import CutSegments
from storage.manager.log_table import LogTable
from storage.manager.set_aside_alerts import SetAsideAlerts
from storage.types.partition_directory import DirectoryState, marked_name
from storage.types.topic_partition import TopicPartition


class LogDeletion:
    """Deletes logs, and removes directories whose time has come.

    Owns the directories that are to be removed. In any thread; blocks for the disk.
    """

    def __init__(
        self, table: LogTable, set_aside_alerts: SetAsideAlerts, cut_segments: CutSegments
    ) -> None:
        self._table = table
        self._cut_segments = cut_segments
        self._set_aside_alerts = set_aside_alerts
        # (when, path); under the table's lock.
        self._deleted: list[tuple[float, str]] = []

    def schedule(self, path: str, due_ms: float) -> None:
        """Have `remove_deleted` remove a directory once the monotonic clock shows `due_ms`."""
        self._deleted.append((due_ms, path))

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
            DiskError: The disk refused; the directory is offline now, or where there was no room
                for a name `remove_deleted` tries again. The first of several errors.
        """
        errors: list[StorageError] = []
        leaving: list[Log] = []
        count = 0
        for topic_partition in partitions:
            if topic_partition in self._table.unopened:
                try:
                    self._delete_unopened(topic_partition)
                    count += 1
                except StorageError as error:
                    errors.append(error)
                continue
            if topic_partition in self._table.loading:
                errors.append(PartitionLoadingError(f"{topic_partition} is still being recovered"))
                continue
            with self._table.lock:
                log = self._table.serving.pop(topic_partition, None)
            if log is not None:
                leaving.append(log)
        # After they have left the map: no run begins there any more.
        self._table.cleaning.abandon(log.topic_partition for log in leaving)
        gone: dict[str, set[TopicPartition]] = {}
        for log in leaving:
            directory = self._table.directory_of(log)
            assert directory is not None, log.directory
            gone.setdefault(directory.path, set()).add(log.topic_partition)
            try:
                self._delete(log, directory)
            except StorageError as error:
                errors.append(error)
        for directory in self._table.directories:
            if directory.path in gone:
                try:
                    with self._table.failing(directory):
                        self._table.filesystem.sync_directory(directory.path)
                        directory.forget(gone[directory.path])
                except StorageError as error:
                    errors.append(error)
        if errors:
            raise errors[0]
        return count + len(leaving)

    def _delete_unopened(self, topic_partition: TopicPartition) -> None:
        """A log that could not be opened leaves with its topic."""
        directory = self._table.unopened[topic_partition]
        name = marked_name(topic_partition, DirectoryState.DELETE, self._table.randomness.uuid4())
        path = join(directory.path, name)
        with self._table.failing(directory):
            self._table.filesystem.rename(join(directory.path, str(topic_partition)), path)
            self._table.filesystem.sync_directory(directory.path)
        with self._table.lock:
            del self._table.unopened[topic_partition]
            self._table.offline.pop(topic_partition, None)
            directory.loading.discard(topic_partition)
            directory.partition_count -= 1
            self._deleted.append((self._table.clock.monotonic_ms(), path))
        self._table.alerts.clear(AlertKind.PARTITION_OFFLINE, str(topic_partition))
        with self._table.failing(directory):
            directory.forget({topic_partition})

    def forget_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Their topic is deleted: where they lie in a failed directory, the name is free again."""
        with self._table.lock:
            for topic_partition in partitions:
                self._table.offline.pop(topic_partition, None)

    def _delete(self, log: Log, directory: LogDirectory) -> None:
        topic_partition = log.topic_partition
        name = marked_name(topic_partition, DirectoryState.DELETE, self._table.randomness.uuid4())
        path = join(directory.path, name)
        with self._table.lock:
            directory.partition_count -= 1
        self._table.cleaning.forget(topic_partition)

        def leave() -> None:
            log.close(clean=False)
            log.rename_directory(path)

        try:
            with self._table.failing(directory):
                self._table.on_owner(leave)
        except DiskError as error:
            if not error.is_disk_failure:
                with self._table.lock:
                    self._table.leaving[topic_partition] = directory
            raise
        due = self._table.clock.monotonic_ms() + log.config.file_delete_delay_ms
        self._deleted.append((due, path))

    def remove_deleted(self) -> int:
        """Remove files and directories that left long ago; returns how many directories."""
        self._table.for_each(lambda log: log.deletion.remove_deleted_files())
        self._rename_leaving()
        self._set_aside_alerts.refresh()
        self._cut_segments.refresh()
        now_ms = self._table.clock.monotonic_ms()
        with self._table.lock:
            due = [
                path
                for when, path in self._deleted
                if when <= now_ms and not self._table.cleaning.holds(path)
            ]
            leaving = set(due)
            self._deleted = [entry for entry in self._deleted if entry[1] not in leaving]
        removed = 0
        for path in due:
            directory = next(d for d in self._table.directories if d.path == dirname(path))
            if not directory.is_online:
                continue
            try:
                self._table.filesystem.rmtree(path)
                removed += 1
            except DiskError as error:
                self._table.fail(directory, error)
                if directory.is_online:
                    with self._table.lock:
                        self._deleted.append((now_ms, path))
        return removed

    def _rename_leaving(self) -> None:
        """Try again to rename the folders of deleted logs for whose names there was no room."""
        for topic_partition, directory in list(self._table.leaving.items()):
            name = marked_name(
                topic_partition, DirectoryState.DELETE, self._table.randomness.uuid4()
            )
            folder, path = join(directory.path, str(topic_partition)), join(directory.path, name)
            if directory.is_online:
                try:
                    # Somebody who wanted the room may have removed it.
                    if self._table.filesystem.exists(folder):
                        self._table.filesystem.rename(folder, path)
                        self.schedule(path, self._table.clock.monotonic_ms())
                except DiskError as error:
                    self._table.fail(directory, error)
                    continue
            with self._table.lock:
                del self._table.leaving[topic_partition]

    @property
    def deleted_count(self) -> int:
        """Directories that wait for their removal."""
        return len(self._deleted)
