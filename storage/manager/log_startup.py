"""Start of the log manager: directories are opened and claimed, then one log after the other loads.

    open_directories ─> claim ─> load_jobs ─> jobs run, one log after the other serves

Source: Kafka, LogManager.scala (loadLogs).
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from posixpath import join
from types import MappingProxyType
from uuid import UUID

from config.topic import TopicConfig
from storage.checkpoints.checkpoint_files import (
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from storage.checkpoints.log_directory import LOST, RESERVED_DIRECTORY_IDS, LogDirectory
from storage.checkpoints.log_loading import LoadingStoppedError, LoadJob, bytes_to_recover
from storage.checkpoints.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
    read_partition_metadata,
)
from storage.environment.alerts import AlertKind
from storage.errors import (
    CorruptFileError,
    DiskError,
    StorageError,
)
from storage.log.log import Log
from storage.manager.log_compaction import LogCompaction
from storage.manager.log_deletion import LogDeletion
from storage.manager.log_jobs import Run, run_one_by_one
from storage.manager.log_opener import LogOpener
from storage.manager.log_table import LogTable
from storage.manager.set_aside_alerts import SetAsideAlerts
from storage.types.partition_directory import DirectoryState, PartitionDirectory, marked_name
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL, format_uuid

_log = logging.getLogger(__name__)


def _never(_topic_partition: TopicPartition, _topic_id: UUID | None) -> bool:
    return False


def _no_new_epoch(_topic_partition: TopicPartition) -> int | None:
    return None


def _no_other_replica(_topic_partition: TopicPartition) -> bool:
    return False


def _no_topic_id(_topic_partition: TopicPartition) -> UUID | None:
    return None


class LogStartup:
    """Opens the log directories, and finds and loads the logs in them.

    Owns the jobs that wait for room. `open_directories`, `claim` and `load_jobs` are called once
    each, in a thread; the jobs run in any number of threads.
    """

    def __init__(
        self,
        table: LogTable,
        opener: LogOpener,
        set_aside_alerts: SetAsideAlerts,
        deletion: LogDeletion,
        compaction: LogCompaction,
    ) -> None:
        self._table = table
        self._compaction = compaction
        self._opener = opener
        self._set_aside_alerts = set_aside_alerts
        self._deletion = deletion
        # Of logs for which there was no room.
        self._postponed: list[LoadJob] = []

    def open_directories(self) -> None:
        """Lock all directories and read their owners.

        Raises:
            LockedDirectoryError: Another broker uses one of them.
            CorruptFileError: A meta.properties does not parse.
            LogDirectoryOfflineError: None of them works.
        """
        for directory in self._table.directories:
            try:
                directory.open()
            except DiskError as error:
                self._table.go_offline(directory, str(error))
        self._table.check_any_online()

    def add_missing(self, path: str) -> None:
        """A log directory is missing that `log.dirs` does not name: it is one more offline."""
        directory = LogDirectory(path, self._table.filesystem)
        directory.go_offline("missing")
        self._table.directories.append(directory)

    @property
    def stored_cluster_id(self) -> str | None:
        """The cluster the directories belong to; None: they are fresh."""
        for directory in self._table.directories:
            if directory.meta is not None and directory.meta.cluster_id is not None:
                return directory.meta.cluster_id
        return None

    def check_owners(self, cluster_id: str, node_id: int, store_id: UUID | None = None) -> None:
        """Check that no directory belongs to another node; nothing is written.

        Arguments: as of `claim`.

        Raises:
            InconsistentDirectoryError: One belongs to another cluster, node or metadata store.
        """
        for directory in self._table.online():
            directory.check_owner(cluster_id, node_id, store_id)

    def claim(
        self,
        cluster_id: str,
        node_id: int,
        store_id: UUID | None = None,
        ids: Mapping[LogDirectory, UUID] = MappingProxyType({}),
    ) -> None:
        """Check that all directories are ours, then mark fresh ones so.

        Args:
            cluster_id: The cluster's.
            node_id: The broker's.
            store_id: Of the metadata store; None: what the directories say.
            ids: Of directories that have lost their meta.properties.

        Raises:
            InconsistentDirectoryError: One belongs to another cluster, node or metadata store.
            LogDirectoryOfflineError: None of them works.
        """
        self.check_owners(cluster_id, node_id, store_id)
        for directory in self._table.online():
            try:
                directory.claim(
                    cluster_id,
                    node_id,
                    self._table.randomness,
                    store_id=store_id,
                    directory_id=ids.get(directory),
                )
            except DiskError as error:
                self._table.fail(directory, error)
        self._table.check_any_online()

    def load_jobs(
        self,
        config_for: Callable[[str], TopicConfig],
        *,
        on_loaded: Callable[[Log], None] | None = None,
        is_stray: Callable[[TopicPartition, UUID | None], bool] | None = None,
        is_removed: Callable[[TopicPartition, UUID | None], bool] = _never,
        new_epoch_of: Callable[[TopicPartition], int | None] = _no_new_epoch,
        latest_epoch_of: Callable[[TopicPartition], int | None] = _no_new_epoch,
        topic_id_of: Callable[[TopicPartition], UUID | None] = _no_topic_id,
        is_replicated: Callable[[TopicPartition], bool] = _no_other_replica,
    ) -> list[LoadJob]:
        """Find all partitions; opening each is a job, to be called in any thread.

        What takes long is in the jobs. Directories of deleted partitions are scheduled for
        removal, as are those of replicas that other brokers have now; those of topics that no
        longer exist are set aside.

        Args:
            config_for: Settings of a topic by its name.
            on_loaded: Called with each log as soon as it serves, in the job's thread.
            is_stray: Whether a partition with this topic id (None: the directory does not say)
                belongs to no topic of the cluster. Default: none is.
            is_removed: Whether a stray one is known to be on other brokers now: it is deleted.
            new_epoch_of: The leader epoch that begins in a log with this start, None: none does.
                Asked by the jobs.
            latest_epoch_of: The latest leader epoch that the cluster has begun in a partition;
                None: that is not known. Asked by the jobs.
            topic_id_of: The id of a partition's topic, None: it has none. Asked by the jobs, for
                logs whose directory does not say it; it is written there.
            is_replicated: Whether a partition has other replicas. Asked by the jobs.

        Raises:
            LoadingStoppedError: The broker stops.
            StorageError: Two directories have the same partition: the operator must decide.
            LogDirectoryOfflineError: None of the directories works.
        """

        def open_log(job: LoadJob) -> None:
            known = (new_epoch_of, latest_epoch_of, topic_id_of, is_replicated)
            self._load(job, config_for, *known, on_loaded)

        found: dict[LogDirectory, list[PartitionDirectory]] = {}
        # All are listed before the first is examined: a partition may lie where it should not.
        holders: dict[TopicPartition, set[UUID | None]] = {}
        strays: dict[str, bool] = {}
        for directory in self._table.online():
            try:
                found[directory] = directory.start()
                for one in found[directory]:
                    self._table.progress.check_stopped()
                    if one.state is not DirectoryState.CURRENT:
                        continue
                    path = join(directory.path, one.name)
                    topic_id = self._topic_id(path) if is_stray is not None else None
                    if is_stray is not None and is_stray(one.topic_partition, topic_id):
                        strays[path] = is_removed(one.topic_partition, topic_id)
                    else:
                        holders.setdefault(one.topic_partition, set()).add(directory.id)
            except DiskError as error:
                self._table.fail(directory, error)
                if not error.is_disk_failure:
                    # What lies here is unknown: its partitions must not be created elsewhere.
                    raise
        jobs: list[LoadJob] = []
        for directory, names in found.items():
            with suppress(DiskError), self._table.failing(directory):
                directory.reserve.hold()
            if not directory.is_online:
                continue
            try:
                jobs.extend(self._jobs_of(directory, names, holders, strays, open_log))
            except DiskError as error:
                if not error.is_disk_failure:
                    raise
                jobs = [job for job in jobs if job.directory is not directory]
                self._table.fail(directory, error)
        self._table.check_any_online()
        jobs.sort(key=lambda job: job.rank)
        self._table.progress.add(len(jobs), sum(job.recover_bytes for job in jobs))
        return jobs

    def stop_loading(self) -> None:
        """The broker stops: no further log is opened, and recoveries end soon. In any thread.

        What is not open by then is not marked clean; of a log that was half scanned the recovery
        point is kept.
        """
        self._table.progress.is_stopped = True

    def load(
        self,
        config_for: Callable[[str], TopicConfig],
        *,
        on_loaded: Callable[[Log], None] | None = None,
        is_stray: Callable[[TopicPartition, UUID | None], bool] | None = None,
        is_removed: Callable[[TopicPartition, UUID | None], bool] = _never,
        run: Run = run_one_by_one,
    ) -> None:
        """Open all logs; arguments and errors as in `load_jobs`."""
        run(
            self.load_jobs(
                config_for, on_loaded=on_loaded, is_stray=is_stray, is_removed=is_removed
            )
        )

    def _jobs_of(
        self,
        directory: LogDirectory,
        names: list[PartitionDirectory],
        holders: Mapping[TopicPartition, set[UUID | None]],
        strays: Mapping[str, bool],
        open_log: Callable[[LoadJob], None],
    ) -> list[LoadJob]:
        jobs = []
        for found in names:
            self._table.progress.check_stopped()
            path = join(directory.path, found.name)
            if found.state is DirectoryState.DELETE:
                self._deletion.schedule(path, self._table.clock.monotonic_ms())
            elif found.state is DirectoryState.FUTURE and found.topic_partition in holders:
                # A move that was not finished: the log is where it was.
                _log.info("removing a future log whose move was not finished directory=%s", path)
                self._deletion.schedule(path, self._table.clock.monotonic_ms())
            elif found.state is not DirectoryState.CURRENT:
                self._table.stray.append(path)
                _log.warning("stray partition directory is kept and not served directory=%s", path)
            elif strays.get(path):
                self._remove(directory, found)
            elif path in strays:
                self._set_aside(
                    directory, found, "it belongs to no topic, or does not say to which"
                )
            elif self._belongs(directory, found, holders):
                jobs.append(self._job(directory, found.topic_partition, open_log))
        directory.listed = True
        # What no directory is left of must not come back to haunt a partition of that name.
        known = {tp for offsets in directory.offsets.values() for tp in offsets} - directory.loading
        self._report_lost(directory, known - holders.keys())
        try:
            if not jobs and not directory.no_gaps_above:
                # Logs that are made from now on are newer than it, whenever the power goes.
                directory.note_gaps_above(may_be=False)
            directory.forget(known)
        except DiskError as error:
            if error.is_disk_failure:
                raise
            # The next checkpoint has no room for them either.
            self._table.fail(directory, error)
        if not directory.had_clean_shutdown and jobs:
            _log.warning(
                "recovering after an unclean shutdown directory=%s partitions=%d",
                directory.path,
                len(jobs),
            )
        return jobs

    def _report_lost(self, directory: LogDirectory, gone: set[TopicPartition]) -> None:
        """Log partitions of this directory that had records and have no folder any more."""
        for topic_partition in sorted(gone):
            known_end = max(
                directory.checkpointed(name, topic_partition) or 0
                for name in (HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT)
            )
            is_ours = (
                directory.id is not None and self._table.assigned(topic_partition) == directory.id
            )
            if known_end and is_ours:
                _log.warning(
                    "folder of a partition is gone, its log begins empty: what it had is with "
                    "other replicas, or lost partition=%s directory=%s known_end=%d",
                    topic_partition,
                    directory.path,
                    known_end,
                )

    def _belongs(
        self,
        directory: LogDirectory,
        found: PartitionDirectory,
        holders: Mapping[TopicPartition, set[UUID | None]],
    ) -> bool:
        """Whether a partition is to be served from where it was found.

        Yes where it belongs, and where it was moved to by hand: the directory it belongs to is here
        and has it not. If that has it too, this is a copy and set aside; if that is not here, the
        newer one may be there, and this is left alone.
        """
        topic_partition = found.topic_partition
        assigned = self._table.assigned(topic_partition)
        if assigned is None or assigned == directory.id:
            return True
        path = join(directory.path, found.name)
        if self._table.directory_by_id(assigned) is None and assigned != LOST:
            self._table.left_alone.append(path)
            _log.error(
                "partition is offline, it belongs to a log directory that is missing "
                "directory=%s found=%s",
                format_uuid(assigned),
                path,
            )
            return False
        if assigned in holders[topic_partition]:
            self._set_aside(directory, found, "the log directory it belongs to has it too")
            return False
        if assigned != LOST:
            _log.warning(
                "partition was moved by hand, it is assigned to the directory it is in "
                "partition=%s "
                "directory=%s",
                topic_partition,
                directory.path,
            )
        return True

    def _job(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        open_log: Callable[[LoadJob], None],
    ) -> LoadJob:
        other = self._table.loading.get(topic_partition)
        if other is not None:
            raise StorageError(
                f"partition {topic_partition} is in both {other.path} and {directory.path}: "
                "delete the older of the two directories"
            )
        self._table.loading[topic_partition] = directory
        if directory.id is not None and self._table.assigned(topic_partition) != directory.id:
            self._table.found_elsewhere[topic_partition] = directory.id
        directory.loading.add(topic_partition)
        directory.partition_count += 1
        recover_bytes = bytes_to_recover(self._table.filesystem, directory, topic_partition)
        return LoadJob(directory, topic_partition, recover_bytes, open_log, self._table.progress)

    def _topic_id(self, path: str) -> UUID | None:
        try:
            return read_partition_metadata(self._table.filesystem, join(path, PARTITION_METADATA))
        except CorruptFileError as error:
            _log.warning("partition.metadata cannot be read, the topic id is unknown: %s", error)
            return None

    def _adopt(self, path: str, topic_id: UUID | None) -> UUID:
        """Write the topic's id into a partition's directory; that id.

        The cluster's, where it knows none: without it the log would be taken for that of a topic
        which is created again under the same name while this broker is away.
        """
        if topic_id is None:
            return NIL
        data = encode_partition_metadata(topic_id)
        try:
            self._table.filesystem.replace_bytes(join(path, PARTITION_METADATA), data)
        except DiskError as error:
            if error.is_disk_failure:
                raise
            # A disk without room is read all the same; the next start writes the id.
            _log.warning("topic id not written directory=%s error=%s", path, error)
        else:
            _log.info("topic id written directory=%s topic_id=%s", path, format_uuid(topic_id))
        return topic_id

    def _remove(self, directory: LogDirectory, found: PartitionDirectory) -> None:
        name = marked_name(
            found.topic_partition, DirectoryState.DELETE, self._table.randomness.uuid4()
        )
        path = join(directory.path, name)
        self._table.filesystem.rename(join(directory.path, found.name), path)
        self._table.filesystem.sync_directory(directory.path)
        self._deletion.schedule(path, self._table.clock.monotonic_ms())
        _log.info("removing a replica that other brokers have now directory=%s", path)

    def _set_aside(self, directory: LogDirectory, found: PartitionDirectory, why: str) -> None:
        name = marked_name(
            found.topic_partition, DirectoryState.STRAY, self._table.randomness.uuid4()
        )
        path = join(directory.path, name)
        self._table.filesystem.rename(join(directory.path, found.name), path)
        self._table.filesystem.sync_directory(directory.path)
        self._table.stray.append(path)
        _log.warning("stray partition, %s directory=%s", why, path)

    def _load(
        self,
        job: LoadJob,
        config_for: Callable[[str], TopicConfig],
        new_epoch_of: Callable[[TopicPartition], int | None],
        latest_epoch_of: Callable[[TopicPartition], int | None],
        topic_id_of: Callable[[TopicPartition], UUID | None],
        is_replicated: Callable[[TopicPartition], bool],
        on_loaded: Callable[[Log], None] | None,
    ) -> None:
        directory, topic_partition = job.directory, job.topic_partition
        try:
            if directory.is_online and not self._table.progress.is_stopped:
                path = join(directory.path, str(topic_partition))
                is_foreign = self._is_foreign(directory, topic_partition)
                topic_id = self._topic_id(path)
                if topic_id is None or directory.had_failed:
                    topic_id = self._adopt(path, topic_id or topic_id_of(topic_partition))
                log = self._opener.open(
                    directory,
                    topic_partition,
                    topic_id,
                    config_for(topic_partition.topic),
                    job,
                    new_epoch_of(topic_partition),
                    latest_epoch=latest_epoch_of(topic_partition),
                    has_other_replicas=is_replicated(topic_partition),
                    is_foreign=is_foreign,
                )
                self._keep_flush_limit(log)
                self._set_aside_alerts.report(topic_partition, log.set_aside)
                if not is_replicated(topic_partition):
                    # Else it would pass over what other replicas have.
                    self._note_gaps(directory, log)
                self._compaction.ends_at(directory, topic_partition, log.log_end_offset)
                self._lower_recovery_point(directory, log)
                self._note_recovery_point(directory, log, is_foreign=is_foreign)
                if self._opener.serve(directory, log) and on_loaded is not None:
                    on_loaded(log)
        except DiskError as error:
            self._table.fail(directory, error)
            if not error.is_disk_failure:
                self._load_again(job)
                return
        except LoadingStoppedError as stopped:
            if stopped.recovery_point is not None:
                directory.keep_recovery_point(topic_partition, stopped.recovery_point)
        except Exception as error:  # noqa: BLE001  because one log must not keep the others
            _log.exception("log cannot be opened partition=%s", topic_partition)
            self._leave_unopened(directory, topic_partition, error)
        job.finish()
        if not directory.loading and directory.is_online:
            with suppress(DiskError), self._table.failing(directory):
                directory.all_loaded()
                if not directory.no_gaps_above and not directory.has_unflushed:
                    directory.note_gaps_above(may_be=False)

    def _note_gaps(self, directory: LogDirectory, log: Log) -> None:
        """Take segments beside a log that ended before them for put there: the gap is meant.

        Set-aside ones, by an operator. But an older copy of the log that was put over it leaves the
        same, and what lay between is lost then: nobody else has it, so a line says where.
        """
        recovery_point = directory.checkpointed(RECOVERY_POINT_CHECKPOINT, log.topic_partition)
        if (
            directory.had_clean_shutdown
            and recovery_point is not None
            and recovery_point < log.active_base_offset
        ):
            self._compaction.note_gaps(directory, log.topic_partition)
            _log.warning(
                "segments lie behind the end of a log that was stopped cleanly, and a gap before "
                "them is passed over: an older copy put over a newer log leaves one, too "
                "partition=%s log_ended=%d last_segment=%d",
                log.topic_partition,
                recovery_point,
                log.active_base_offset,
            )

    def _lower_recovery_point(self, directory: LogDirectory, log: Log) -> None:
        """The log ends below its recovery point: what is written there next is not on disk.

        Before it is, or a power cut would leave records that no start looks at.
        """
        known = directory.checkpointed(RECOVERY_POINT_CHECKPOINT, log.topic_partition)
        if known is not None and log.log_end_offset < known:
            lower = {log.topic_partition: log.recovery_point}
            directory.write_checkpoint(
                RECOVERY_POINT_CHECKPOINT, lambda offsets: {**offsets, **lower}
            )

    def _is_foreign(self, directory: LogDirectory, topic_partition: TopicPartition) -> bool:
        """Whether a log was put here by hand: no checkpoint knows it, and its place is another."""
        if directory.checkpointed(RECOVERY_POINT_CHECKPOINT, topic_partition) is not None:
            return False
        place = self._table.assigned(topic_partition)
        if place is None or (place.int < RESERVED_DIRECTORY_IDS and place != LOST):
            # Its place is still to be written down: it is new.
            return False
        return place != directory.id

    def _note_recovery_point(self, directory: LogDirectory, log: Log, *, is_foreign: bool) -> None:
        """Have gaps of the log that others have left lie below the recovery point of a start.

        All of a log that was closed cleanly is on disk, whoever wrote it. Where the checkpoint says
        less, as of a log that was put here by hand, the next power cut would make gaps in it seem
        its own work. See `LogDirectory.no_gaps_above`.
        """
        topic_partition, recovery_point = log.topic_partition, log.recovery_point
        if recovery_point > (
            directory.checkpointed(RECOVERY_POINT_CHECKPOINT, topic_partition) or 0
        ):
            directory.keep_recovery_point(topic_partition, recovery_point)
            if directory.no_gaps_above:
                directory.note_gaps_above(may_be=False)
        if recovery_point < log.log_end_offset:
            directory.has_unflushed = True
            if is_foreign and directory.no_gaps_above:
                directory.note_gaps_above(may_be=True)

    def _keep_flush_limit(self, log: Log) -> None:
        """What `flush.messages` promises of what is acknowledged holds before the log serves."""
        if not log.flusher.has_flush_limit:
            return
        try:
            log.flusher.flush_all(self._table.progress.check_stopped)
        except LoadingStoppedError as stopped:
            raise LoadingStoppedError(log.recovery_point) from stopped

    def _leave_unopened(
        self, directory: LogDirectory, topic_partition: TopicPartition, error: Exception
    ) -> None:
        """Take one partition offline; what its directory's checkpoints say of it is kept."""
        with self._table.lock:
            self._table.loading.pop(topic_partition, None)
            self._table.offline[topic_partition] = directory.path
            self._table.unopened[topic_partition] = directory
        self._table.alerts.set(
            AlertKind.PARTITION_OFFLINE,
            str(topic_partition),
            f"its log in {directory.path} cannot be opened ({error!r}); its files "
            "were kept. See the broker's log; the next start tries again",
        )

    def _load_again(self, job: LoadJob) -> None:
        """Open a log for which there was no room: in the reserve, else when there is some.

        Until then it stays a partition that is loading.
        """
        reserve = job.directory.reserve
        if reserve.is_held:
            reserve.give_up()
            job()
        else:
            self._postponed.append(job)

    def load_postponed(self, directory: LogDirectory) -> None:
        """Try again to open the logs for which there was no room."""
        for job in self._postponed[:]:
            if job.directory is directory:
                self._postponed.remove(job)
                job()
