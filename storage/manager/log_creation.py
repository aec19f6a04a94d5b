"""Making the logs of new partitions: in which log directory, and once each.

Source: Kafka, LogManager.scala (getOrCreateLog).
"""

import errno
import threading
from collections.abc import Iterable
from posixpath import join
from uuid import UUID

from config.topic import TopicConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
)
from storage.errors import (
    DiskError,
    InconsistentTopicIdError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
    PartitionLoadingError,
)
from storage.log.log import Log
from storage.manager.log_opener import LogOpener
from storage.manager.log_table import LogTable
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL, format_uuid


class LogCreation:
    """Finds or makes logs.

    Owns which partitions' logs are being made: one thread makes a log, others that want the same
    wait for it. In any thread; blocks for the disk.
    """

    def __init__(self, table: LogTable, opener: LogOpener) -> None:
        self._table = table
        self._opener = opener
        self._creating: set[TopicPartition] = set()
        self._created = threading.Condition(table.lock)

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: UUID, config: TopicConfig
    ) -> Log:
        """The partition's log; a new one goes where it is assigned to, or was asked for.

        Else to the log directory with the fewest partitions.

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
        leader_epoch: int | None = 0,
    ) -> list[Log]:
        """`get_or_create` for many at once: directories are synced once, at the end.

        A new log gets its first `leader_epoch` here: else its first append would wait for the disk
        to note it. None: it is not known which it will be, the log follows another broker's.
        """
        created: list[Log] = []
        touched: dict[str, LogDirectory] = {}
        for topic_partition, topic_id, config in partitions:
            log = self._find_or_make(topic_partition, topic_id, config, leader_epoch, touched)
            created.append(log)
        for directory in touched.values():
            with self._table.failing(directory):
                self._table.filesystem.sync_directory(directory.path)
        return created

    def _find_or_make(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: TopicConfig,
        leader_epoch: int | None,
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
            if topic_partition in self._table.loading:
                raise PartitionLoadingError(f"partition {topic_partition} is still being recovered")
            log = self._table.serving.get(topic_partition)
            if log is not None:
                return log
            leaving = self._table.leaving.get(topic_partition)
            if leaving is not None:
                raise LogDirectoryFullError(
                    f"the folder of a deleted log of {topic_partition} could not be renamed yet",
                    leaving.path,
                    errno.ENOSPC,
                )
            directory = self._directory_for(topic_partition)
            self._creating.add(topic_partition)
            directory.partition_count += 1
            return directory

    def _publish(self, directory: LogDirectory, log: Log | None) -> None:
        """A new log is there, or could not be made."""
        with self._table.lock:
            if log is not None and directory.is_online:
                self._table.serving[log.topic_partition] = log
                self._table.preferred.used(log.topic_partition)
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
            with self._table.failing(self._table.directory_of(log)):
                path = join(log.directory, PARTITION_METADATA)
                self._table.filesystem.replace_bytes(path, encode_partition_metadata(topic_id))
        elif log.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"partition {log.topic_partition} on disk is of topic {log.topic_id}, "
                f"not {topic_id}"
            )

    def _directory_for(self, topic_partition: TopicPartition) -> LogDirectory:
        if topic_partition in self._table.offline:
            raise LogDirectoryOfflineError(
                f"partition {topic_partition} is in a log directory that is offline",
                self._table.offline[topic_partition],
            )
        assigned = self._table.assigned(topic_partition)
        if assigned is not None:
            directory = self._table.directory_by_id(assigned)
            if directory is None:
                raise LogDirectoryOfflineError(
                    f"partition {topic_partition} belongs to a log directory that is missing",
                    format_uuid(assigned),
                )
            candidates = [directory]
        else:
            preferred = self._table.preferred.of(topic_partition)
            candidates = self._table.online() if preferred is None else [preferred]
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
        leader_epoch: int | None,
    ) -> Log:
        path = join(directory.path, str(topic_partition))
        with self._table.failing(directory):
            try:
                # Where they could not be written when a log of that name was deleted.
                directory.forget({topic_partition})
                self._table.filesystem.mkdir(path)
                if topic_id != NIL:
                    # On disk before any record is: a power cut that left records without it would
                    # have them taken for those of a topic that was created again under the name.
                    self._table.filesystem.replace_bytes(
                        join(path, PARTITION_METADATA), encode_partition_metadata(topic_id)
                    )
                log = self._opener.open(directory, topic_partition, topic_id, config, None)
                log.flusher.is_new_directory = True
                if leader_epoch is not None:
                    log.leader_epochs.begin(leader_epoch)
            except DiskError as error:
                if not error.is_disk_failure:
                    # It would be found beside the one that is made elsewhere.
                    self._table.filesystem.rmtree(path)
                raise
        self._table.refuse_if_full(directory, log)
        return log
