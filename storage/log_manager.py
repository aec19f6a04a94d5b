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

    flush_due             rolled segments, and logs whose `flush.ms` or `flush.messages` is reached
    retention_pass        `log.retention.check.interval.ms`
    expire_producers      `producer.id.expiration.check.interval.ms`
    clean_dirtiest        `log.cleaner.backoff.ms`, again at once while it returns something
    remove_deleted        `file.delete.delay.ms` after a deletion
    checkpoint_*          `log.flush.offset.checkpoint.interval.ms` and its like

Source: Kafka, LogManager.scala.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from posixpath import dirname, join
from typing import Final
from uuid import UUID

from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.errors import DecodeError
from storage.checkpoints import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from storage.cleaner import Cleaner, CleanerStats, CleaningAbortedError
from storage.cleaner_manager import CleanerManager
from storage.clock import Clock
from storage.errors import (
    CorruptFileError,
    DiskError,
    InconsistentTopicIdError,
    LogDirectoryOfflineError,
    PartitionLoadingError,
    StorageError,
)
from storage.filesystem import Filesystem
from storage.flush import FlushTicket
from storage.log import Log
from storage.log_directory import LogDirectory
from storage.log_loading import LoadJob, LoadProgress, bytes_to_recover
from storage.owner import OnOwner, in_this_thread
from storage.partition_directory import DirectoryState, PartitionDirectory, marked_name
from storage.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
    read_partition_metadata,
)
from storage.producer_state import PRODUCER_ID_EXPIRATION_MS
from storage.randomness import Randomness
from storage.topic_partition import TopicPartition
from storage.uuid_text import NIL

_log = logging.getLogger(__name__)

CLEANER_DEDUPE_BUFFER_BYTES: Final = 128 << 20
"""Default of `log.cleaner.dedupe.buffer.size`."""

CLOSING_THREADS: Final = 8
"""Logs closed at a time at shutdown: disks serve waiting syncs together."""

Run = Callable[[Sequence[Callable[[], None]]], None]
"""Runs all jobs, in threads or not, and returns when all are done."""


def run_one_by_one(jobs: Sequence[Callable[[], None]]) -> None:
    """Run jobs in the calling thread."""
    for job in jobs:
        job()


def run_in_threads(jobs: Sequence[Callable[[], None]]) -> None:
    """Run jobs in a few threads; raises what one of them raised."""
    with ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="log-closing") as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Broker settings that concern all logs, by Kafka's names."""

    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    transaction_partition_verification_enable: bool = False
    log_cleaner_enable: bool = True
    log_cleaner_dedupe_buffer_size: int = CLEANER_DEDUPE_BUFFER_BYTES
    log_cleaner_io_buffer_size: int = 512 * 1024
    log_cleaner_io_buffer_load_factor: float = 0.9

    @classmethod
    def of(cls, config: BrokerConfig) -> "LogManagerSettings":
        """Those of a broker. One cleaner runs, whatever `log.cleaner.threads` says."""
        return cls(
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            transaction_partition_verification_enable=(
                config.transaction_partition_verification_enable
            ),
            log_cleaner_enable=config.log_cleaner_enable,
            log_cleaner_dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
            log_cleaner_io_buffer_size=config.log_cleaner_io_buffer_size,
            log_cleaner_io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        )


def _unthrottled(_size: int) -> None:
    pass


def _ignore_failure(_directory: str, _partitions: list[TopicPartition]) -> None:
    pass


class LogManager:
    """The broker's logs.

    Attributes:
        directories: All of `log.dirs`, also those offline.
        progress: Of loading.
        cleaning: Who is compacted and who may not be.
        stray: Directories set aside because their topic no longer exists.
        on_directory_failure: Called with a directory's path and its partitions when it goes
            offline, from whatever thread saw the failure.
    """

    def __init__(
        self,
        filesystem: Filesystem,
        clock: Clock,
        randomness: Randomness,
        log_dirs: Sequence[str],
        *,
        settings: LogManagerSettings | None = None,
        cleaner_throttle: Callable[[int], None] = _unthrottled,
        on_owner: OnOwner = in_this_thread,
    ) -> None:
        """Touch nothing yet.

        Args:
            filesystem: Where the logs are.
            clock: For retention, expiry, delayed deletion.
            randomness: For identifiers.
            log_dirs: Absolute paths.
            settings: See there; default: all defaults.
            cleaner_throttle: See `Cleaner`.
            on_owner: See there; used by all that changes a log which serves.
        """
        self._filesystem = filesystem
        self._clock = clock
        self._randomness = randomness
        self._settings = settings or LogManagerSettings()
        self.directories = [LogDirectory(path, filesystem) for path in log_dirs]
        self.progress = LoadProgress()
        self.cleaning = CleanerManager()
        self.stray: list[str] = []
        self.on_directory_failure: Callable[[str, list[TopicPartition]], None] = _ignore_failure
        self._cleaner = Cleaner(
            filesystem,
            dedupe_buffer_bytes=self._settings.log_cleaner_dedupe_buffer_size,
            load_factor=self._settings.log_cleaner_io_buffer_load_factor,
            read_bytes=self._settings.log_cleaner_io_buffer_size,
            throttle=cleaner_throttle,
        )
        self._on_owner = on_owner
        self._lock = threading.RLock()
        # So that what a log is told to be on disk is what was written last.
        self._log_start_lock = threading.Lock()
        self._logs: dict[TopicPartition, Log] = {}
        self._loading: dict[TopicPartition, LogDirectory] = {}
        # Partitions that were seen in a directory which is offline now.
        self._offline: dict[TopicPartition, str] = {}
        # Directories to remove: (when, path).
        self._deleted: list[tuple[int, str]] = []

    # -- start -------------------------------------------------------------------------------

    def open_directories(self) -> None:
        """Lock all directories and read their owners.

        Raises:
            LockedDirectoryError: Another broker uses one of them.
            CorruptFileError: A meta.properties does not parse.
            LogDirectoryOfflineError: None of them works.
        """
        for directory in self.directories:
            try:
                directory.open()
            except DiskError as error:
                directory.go_offline(str(error))
        self._check_any_online()

    @property
    def stored_cluster_id(self) -> str | None:
        """The cluster the directories belong to; None: they are fresh."""
        for directory in self.directories:
            if directory.meta is not None and directory.meta.cluster_id is not None:
                return directory.meta.cluster_id
        return None

    def claim(self, cluster_id: str, node_id: int) -> None:
        """Check that the directories are ours; mark fresh ones so.

        Raises:
            InconsistentDirectoryError: One belongs to another cluster or node.
            LogDirectoryOfflineError: None of them works.
        """
        for directory in self._online():
            try:
                directory.claim(cluster_id, node_id, self._randomness)
            except DiskError as error:
                self._fail(directory, error)
        self._check_any_online()

    def load_jobs(
        self,
        config_for: Callable[[str], TopicConfig],
        *,
        on_loaded: Callable[[Log], None] | None = None,
        is_stray: Callable[[TopicPartition, UUID | None], bool] | None = None,
    ) -> list[LoadJob]:
        """Find all partitions; opening each is a job, to be called in any thread.

        What takes long is in the jobs. Directories of deleted partitions are scheduled for
        removal, those of topics that no longer exist are set aside.

        Args:
            config_for: Settings of a topic by its name.
            on_loaded: Called with each log as soon as it serves, in the job's thread.
            is_stray: Whether a partition with this topic id (None: the directory does not say)
                belongs to no topic of the cluster. Default: none is.

        Raises:
            StorageError: Two directories have the same partition: the operator must decide.
            LogDirectoryOfflineError: None of the directories works.
        """

        def open_log(job: LoadJob) -> None:
            self._load(job, config_for, on_loaded)

        jobs: list[LoadJob] = []
        for directory in self._online():
            try:
                jobs.extend(self._jobs_of(directory, is_stray, open_log))
            except DiskError as error:
                jobs = [job for job in jobs if job.directory is not directory]
                self._fail(directory, error)
        self._check_any_online()
        jobs.sort(key=lambda job: job.rank)
        self.progress.add(len(jobs), sum(job.recover_bytes for job in jobs))
        return jobs

    def load(
        self,
        config_for: Callable[[str], TopicConfig],
        *,
        on_loaded: Callable[[Log], None] | None = None,
        is_stray: Callable[[TopicPartition, UUID | None], bool] | None = None,
        run: Run = run_one_by_one,
    ) -> None:
        """Open all logs; arguments and errors as in `load_jobs`."""
        run(self.load_jobs(config_for, on_loaded=on_loaded, is_stray=is_stray))

    def _jobs_of(
        self,
        directory: LogDirectory,
        is_stray: Callable[[TopicPartition, UUID | None], bool] | None,
        open_log: Callable[[LoadJob], None],
    ) -> list[LoadJob]:
        jobs = []
        for found in directory.start():
            path = join(directory.path, found.name)
            if found.state is DirectoryState.DELETE:
                self._deleted.append((self._clock.now_ms(), path))
            elif found.state is not DirectoryState.CURRENT:
                self.stray.append(path)
                _log.warning("leaving directory=%s alone", path)
            elif is_stray is not None and is_stray(found.topic_partition, self._topic_id(path)):
                self._set_aside(directory, found)
            else:
                jobs.append(self._job(directory, found.topic_partition, open_log))
        directory.listed = True
        # What no directory is left of must not come back to haunt a partition of that name.
        known = {tp for offsets in directory.offsets.values() for tp in offsets} - directory.loading
        directory.forget(known)
        if not directory.had_clean_shutdown and jobs:
            _log.warning(
                "recovering after an unclean shutdown directory=%s partitions=%d",
                directory.path,
                len(jobs),
            )
        return jobs

    def _job(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        open_log: Callable[[LoadJob], None],
    ) -> LoadJob:
        other = self._loading.get(topic_partition)
        if other is not None:
            raise StorageError(
                f"partition {topic_partition} is in both {other.path} and {directory.path}: "
                "delete the older of the two directories"
            )
        self._loading[topic_partition] = directory
        directory.loading.add(topic_partition)
        directory.partition_count += 1
        recover_bytes = bytes_to_recover(self._filesystem, directory, topic_partition)
        return LoadJob(directory, topic_partition, recover_bytes, open_log, self.progress)

    def _topic_id(self, path: str) -> UUID | None:
        try:
            return read_partition_metadata(self._filesystem, join(path, PARTITION_METADATA))
        except CorruptFileError as error:
            _log.warning("partition without its topic id: %s", error)
            return None

    def _set_aside(self, directory: LogDirectory, found: PartitionDirectory) -> None:
        name = marked_name(found.topic_partition, DirectoryState.STRAY, self._randomness.uuid4())
        path = join(directory.path, name)
        self._filesystem.rename(join(directory.path, found.name), path)
        self._filesystem.sync_directory(directory.path)
        self.stray.append(path)
        _log.warning("partition belongs to no topic, set aside directory=%s", path)

    def _load(
        self,
        job: LoadJob,
        config_for: Callable[[str], TopicConfig],
        on_loaded: Callable[[Log], None] | None,
    ) -> None:
        directory, topic_partition = job.directory, job.topic_partition
        try:
            if not directory.is_online:
                return
            path = join(directory.path, str(topic_partition))
            log = self._open_log(
                directory,
                topic_partition,
                self._topic_id(path) or NIL,
                config_for(topic_partition.topic),
                job,
            )
            if self._adopt(directory, log) and on_loaded is not None:
                on_loaded(log)
        except DiskError as error:
            self._fail(directory, error)
        finally:
            job.finish()

    def _adopt(self, directory: LogDirectory, log: Log) -> bool:
        """Let a log serve; False if its directory has gone offline meanwhile."""
        with self._lock:
            if not directory.is_online:
                log.close(clean=False)
                return False
            self._logs[log.topic_partition] = log
            self._loading.pop(log.topic_partition, None)
            directory.loading.discard(log.topic_partition)
            return True

    def _open_log(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: TopicConfig,
        job: LoadJob | None,
    ) -> Log:
        """Open a log; without a job a new one, which no checkpoint knows."""

        def checkpointed(name: str) -> int:
            return (job and directory.checkpointed(name, topic_partition)) or 0

        return Log.open(
            join(directory.path, str(topic_partition)),
            topic_partition,
            topic_id=topic_id,
            config=config,
            filesystem=self._filesystem,
            clock=self._clock,
            randomness=self._randomness,
            recovery_point=checkpointed(RECOVERY_POINT_CHECKPOINT),
            log_start_offset=checkpointed(LOG_START_OFFSET_CHECKPOINT),
            high_watermark=checkpointed(HIGH_WATERMARK_CHECKPOINT),
            clean_shutdown=job is None or directory.had_clean_shutdown,
            producer_id_expiration_ms=self._settings.producer_id_expiration_ms,
            requires_verification=self._settings.transaction_partition_verification_enable,
            on_progress=None if job is None else job.advance,
        )

    # -- logs --------------------------------------------------------------------------------

    def require_verification(self, enabled: bool) -> None:
        """`transaction.partition.verification.enable` has changed: for all logs, and those to come.

        On the thread that appends.
        """
        self._settings = replace(self._settings, transaction_partition_verification_enable=enabled)
        for log in self.logs():
            log.producer_state.requires_verification = enabled

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """The partition's log, if it is here and serves."""
        return self._logs.get(topic_partition)

    def logs(self) -> list[Log]:
        """All logs that serve."""
        return list(self._logs.values())

    def logs_in(self, directory: LogDirectory) -> list[Log]:
        """All logs that serve from one directory."""
        return [log for log in self.logs() if dirname(log.directory) == directory.path]

    def directory_of(self, log: Log) -> LogDirectory | None:
        """The log directory a log is in."""
        path = dirname(log.directory)
        return next((d for d in self.directories if d.path == path), None)

    def high_watermark_checkpoint(self, topic_partition: TopicPartition) -> int | None:
        """The partition's high watermark as of the last checkpoint, None without one."""
        for directory in self.directories:
            offset = directory.checkpointed(HIGH_WATERMARK_CHECKPOINT, topic_partition)
            if offset is not None:
                return offset
        return None

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

        A new log is told its first `leader_epoch`: else its first append would wait for the disk
        to note it.
        """
        created: list[Log] = []
        touched: dict[str, LogDirectory] = {}
        for topic_partition, topic_id, config in partitions:
            with self._lock:
                log = self._existing(topic_partition, topic_id)
                if log is None:
                    directory = self._directory_for(topic_partition)
                    log = self._create(directory, topic_partition, topic_id, config)
                    with self._failing(directory):
                        log.leader_epochs.begin(leader_epoch)
                    touched[directory.path] = directory
            created.append(log)
        for directory in touched.values():
            with self._failing(directory):
                self._filesystem.sync_directory(directory.path)
        return created

    def _existing(self, topic_partition: TopicPartition, topic_id: UUID) -> Log | None:
        if topic_partition in self._loading:
            raise PartitionLoadingError(f"partition {topic_partition} is still being recovered")
        log = self._logs.get(topic_partition)
        if log is None:
            return None
        if log.topic_id == NIL and topic_id != NIL:
            # Of a broker that knew no topic ids, or the file was damaged.
            log.topic_id = topic_id
            with self._failing(self.directory_of(log)):
                path = join(log.directory, PARTITION_METADATA)
                self._filesystem.replace_bytes(path, encode_partition_metadata(topic_id))
        elif log.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"partition {topic_partition} on disk is of topic {log.topic_id}, not {topic_id}"
            )
        return log

    def _directory_for(self, topic_partition: TopicPartition) -> LogDirectory:
        if topic_partition in self._offline:
            raise LogDirectoryOfflineError(
                f"partition {topic_partition} is in a log directory that is offline",
                self._offline[topic_partition],
            )
        online = self._online()
        if not online:
            raise LogDirectoryOfflineError("no log directory is left", "log.dirs")
        return min(online, key=lambda directory: directory.partition_count)

    def _create(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: TopicConfig,
    ) -> Log:
        path = join(directory.path, str(topic_partition))
        with self._failing(directory):
            self._filesystem.mkdir(path)
            if topic_id != NIL:
                # Not synced: if it is lost, the directory is taken for one that knows no id.
                file = self._filesystem.open(join(path, PARTITION_METADATA), create=True)
                file.truncate(0)
                file.write_at(encode_partition_metadata(topic_id), 0)
                file.close()
            log = self._open_log(directory, topic_partition, topic_id, config, None)
        self._logs[topic_partition] = log
        directory.partition_count += 1
        return log

    def delete(self, topic_partition: TopicPartition) -> bool:
        """Delete a partition's log; returns whether there was one. See `delete_all`."""
        return self.delete_all([topic_partition]) == 1

    def delete_all(self, partitions: Iterable[TopicPartition]) -> int:
        """Delete logs: their directories are renamed now and removed by `remove_deleted`.

        A compaction under way is stopped first.

        Returns:
            How many there were.

        Raises:
            PartitionLoadingError: One of them is still being recovered; those before it are gone.
            DiskError: The disk refused; the directory is offline now.
        """
        gone: dict[str, set[TopicPartition]] = {}
        try:
            for topic_partition in partitions:
                if topic_partition in self._loading:
                    raise PartitionLoadingError(f"{topic_partition} is still being recovered")
                log = self._logs.get(topic_partition)
                if log is not None:
                    path = self._delete(topic_partition, log)
                    gone.setdefault(path, set()).add(topic_partition)
        finally:
            for directory in self.directories:
                if directory.path in gone:
                    with self._failing(directory):
                        self._filesystem.sync_directory(directory.path)
                        directory.forget(gone[directory.path])
        return sum(len(deleted) for deleted in gone.values())

    def forget_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Their topic is deleted: where they lie in a failed directory, the name is free again."""
        with self._lock:
            for topic_partition in partitions:
                self._offline.pop(topic_partition, None)

    def _delete(self, topic_partition: TopicPartition, log: Log) -> str:
        directory = self.directory_of(log)
        assert directory is not None, log.directory
        self.cleaning.abort_and_pause(topic_partition)
        name = marked_name(topic_partition, DirectoryState.DELETE, self._randomness.uuid4())
        path = join(directory.path, name)
        with self._lock:
            self._logs.pop(topic_partition, None)
            directory.partition_count -= 1

        def leave() -> None:
            log.close(clean=False)
            log.rename_directory(path)

        with self._failing(directory):
            self._on_owner(leave)
        due = self._clock.now_ms() + log.config.file_delete_delay_ms
        self._deleted.append((due, path))
        self.cleaning.forget(topic_partition)
        return directory.path

    def remove_deleted(self) -> int:
        """Remove files and directories that left long ago; returns how many directories."""
        self._each(lambda log: log.remove_deleted_files())
        now_ms = self._clock.now_ms()
        with self._lock:
            due = [path for when, path in self._deleted if when <= now_ms]
            self._deleted = [entry for entry in self._deleted if entry[0] > now_ms]
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
        return removed

    @property
    def deleted_count(self) -> int:
        """Directories that wait for their removal."""
        return len(self._deleted)

    # -- passes ------------------------------------------------------------------------------

    def flush_due(self) -> int:
        """Flush rolled segments, and whole logs whose `flush.ms` is over; returns how many logs.

        Rolled segments are flushed so that a start after a crash need not read them again.
        """

        def begin(log: Log) -> FlushTicket | None:
            target = log.flush_target()
            if target is None and log.recovery_point < log.active_base_offset:
                target = log.active_base_offset
            return None if target is None else log.begin_flush(target)

        def flush(log: Log) -> int:
            if log.recovery_point >= log.log_end_offset:
                return 0
            ticket = self._on_owner(lambda: begin(log))
            if ticket is None:
                return 0
            ticket.run()
            self._on_owner(lambda: log.finish_flush(ticket))
            return 1

        return self._each(flush)

    def retention_pass(self) -> int:
        """Delete old segments of all logs; returns how many.

        A log that is being compacted is left for the next pass.
        """

        def delete_old_segments(log: Log) -> int:
            if not self.cleaning.try_pause(log.topic_partition):
                return 0
            try:
                return self._on_owner(log.delete_old_segments)
            finally:
                self.cleaning.resume(log.topic_partition)

        return self._each(delete_old_segments)

    def expire_producers(self) -> int:
        """Forget producers idle for `producer.id.expiration.ms`; returns how many."""
        now_ms = self._clock.now_ms()

        def expire(log: Log) -> int:
            if log.producer_state.is_empty:
                return 0
            return self._on_owner(lambda: log.producer_state.remove_expired(now_ms))

        return self._each(expire)

    def _each(self, act: Callable[[Log], int]) -> int:
        total = 0
        for log in self.logs():
            if self._logs.get(log.topic_partition) is not log:
                continue
            try:
                total += act(log)
            except DiskError as error:
                self.fail_log(log, error)
        return total

    def clean_dirtiest(self) -> CleanerStats | None:
        """Compact the dirtiest log that is due; None: there was none, or it could not be done.

        A log that turns out damaged is left alone from then on (`cleaning.uncleanable`).
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
        topic_partition = chosen.log.topic_partition
        try:
            stats = self._cleaner.clean(
                chosen.log,
                on_owner=self._on_owner,
                first_dirty_offset=chosen.first_dirty_offset,
                first_uncleanable_offset=chosen.first_uncleanable_offset,
                now_ms=now_ms,
                check_done=lambda: self.cleaning.check_done(topic_partition),
            )
            self._checkpoint_cleaned(topic_partition, stats.end_offset)
        except CleaningAbortedError:
            return None
        except DiskError as error:
            log = self._logs.get(topic_partition)
            if log is not None:
                self.fail_log(log, error)
            return None
        except (CorruptFileError, DecodeError) as error:
            _log.error("cannot compact partition=%s reason=%s", topic_partition, error)
            self.cleaning.mark_uncleanable(topic_partition, str(error))
            return None
        finally:
            self.cleaning.done(topic_partition)
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
            offsets = directory.offsets.get(CLEANER_CHECKPOINT, {})
            directory.write_checkpoint(CLEANER_CHECKPOINT, {**offsets, topic_partition: end_offset})

    def truncated(self, log: Log, offset: int) -> None:
        """The log was truncated to `offset`: what lies above is to be compacted again."""
        directory = self.directory_of(log)
        if directory is None:
            return
        cleaned = directory.checkpointed(CLEANER_CHECKPOINT, log.topic_partition)
        if cleaned is not None and cleaned > offset:
            with self._failing(directory):
                self._checkpoint_cleaned(log.topic_partition, offset)

    # -- checkpoints -------------------------------------------------------------------------

    def checkpoint_recovery_points(self) -> None:
        """Write down what is known to be on disk."""
        self._checkpoint(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    def checkpoint_log_start_offsets(self) -> None:
        """Write down log start offsets; a log that starts at 0 needs none."""
        with self._log_start_lock:
            written = self._checkpoint(
                LOG_START_OFFSET_CHECKPOINT, lambda log: log.log_start_offset or None
            )
            for log, offset in written:
                log.durable_log_start_offset = offset

    def checkpoint_high_watermarks(self) -> None:
        """Write down high watermarks."""
        self._checkpoint(HIGH_WATERMARK_CHECKPOINT, lambda log: log.high_watermark)

    def checkpoint(self) -> None:
        """All three."""
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        self.checkpoint_high_watermarks()

    def _checkpoint(
        self, name: str, offset_of: Callable[[Log], int | None]
    ) -> list[tuple[Log, int]]:
        """Write a checkpoint in every directory; the logs and offsets that are on disk now."""
        logs = self.logs()
        by_path: dict[str, dict[TopicPartition, int]] = {}
        chosen: dict[str, list[tuple[Log, int]]] = {}
        for log in logs:
            offset = offset_of(log)
            if offset is not None:
                path = dirname(log.directory)
                by_path.setdefault(path, {})[log.topic_partition] = offset
                chosen.setdefault(path, []).append((log, offset))
        written: list[tuple[Log, int]] = []
        for directory in self._online():
            try:
                directory.write_checkpoint(name, by_path.get(directory.path, {}))
            except DiskError as error:
                self._fail(directory, error)
            else:
                written += chosen.get(directory.path, ())
        # Deleted in the meantime, perhaps after the deletion had dropped them from the checkpoints.
        gone = {
            log.topic_partition for log in logs if self._logs.get(log.topic_partition) is not log
        }
        for directory in self._online() if gone else ():
            try:
                directory.forget(gone)
            except DiskError as error:
                self._fail(directory, error)
        return written

    # -- failure and end ---------------------------------------------------------------------

    @property
    def offline_directories(self) -> list[LogDirectory]:
        """Directories that serve no longer."""
        return [directory for directory in self.directories if not directory.is_online]

    def fail_log(self, log: Log, error: DiskError) -> None:
        """A log's disk refused: its whole directory goes offline."""
        directory = self.directory_of(log)
        if directory is not None:
            self._fail(directory, error)

    def _fail(self, directory: LogDirectory, error: DiskError) -> None:
        with self._lock:
            if not directory.is_online:
                return
            directory.go_offline(str(error))
            logs = self.logs_in(directory)
            partitions = [log.topic_partition for log in logs]
            for log in logs:
                log.fail(error)
                self._logs.pop(log.topic_partition, None)
            for topic_partition in directory.loading:
                self._loading.pop(topic_partition, None)
            partitions.extend(directory.loading)
            self._offline.update(dict.fromkeys(partitions, directory.path))
        self.on_directory_failure(directory.path, partitions)

    def _failing(self, directory: LogDirectory | None) -> "_Failing":
        return _Failing(self, directory)

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_online]

    def _check_any_online(self) -> None:
        if not self._online():
            reasons = "; ".join(d.offline_reason or "" for d in self.directories)
            raise LogDirectoryOfflineError(f"no log directory works ({reasons})", "log.dirs")

    def shutdown(self, *, clean: bool = True, run: Run | None = None) -> None:
        """Close all logs and give up the directories.

        Args:
            clean: Flush everything, write the checkpoints and the clean-shutdown markers. False:
                leave the disk as it is.
            run: Runs the closing of logs; default: in a few threads, for each log waits for the
                disk several times.
        """
        self.cleaning.abort_all()
        logs = self.logs()

        def close(log: Log) -> None:
            try:
                log.close(clean=clean)
            except DiskError as error:
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
                directory.go_offline(str(error))
        with self._lock:
            self._logs.clear()


class _Failing:
    """While it is entered, a DiskError takes the directory offline, and goes on up."""

    def __init__(self, manager: LogManager, directory: LogDirectory | None) -> None:
        self._manager = manager
        self._directory = directory

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DiskError) and self._directory is not None:
            self._manager._fail(self._directory, error)
