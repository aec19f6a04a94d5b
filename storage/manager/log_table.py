"""The state of the log manager, which its parts share: logs by partition, directories, failures.

One lock guards the map of logs, held only for moments. A directory whose disk fails goes offline,
its partitions with it.

Source: Kafka, LogManager.scala.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from posixpath import dirname
from typing import Final
from uuid import UUID

from config.broker import BrokerConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.log_loading import LoadProgress
from storage.checkpoints.reserve import RESERVE_BYTES
from storage.cleaner.log_cleaner_manager import LogCleanerManager
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.environment import Environment
from storage.environment.repeated_line import RepeatedLine
from storage.errors import (
    DiskError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
)
from storage.log.log import Log
from storage.manager.preferred_directories import PreferredDirectories
from storage.producers.table import PRODUCER_ID_EXPIRATION_MS
from storage.types.owner import OnOwner, in_this_thread
from storage.types.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

GIVING_ROOM: Final = frozenset({"__remote_log_metadata"})
"""Topics that are written while the disk is full: segments that were copied can be deleted here."""

CLEANER_DEDUPE_BUFFER_BYTES: Final = 128 << 20
"""Default of `log.cleaner.dedupe.buffer.size`."""


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Broker settings that concern all logs, by Kafka's names."""

    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    transaction_partition_verification_enable: bool = False
    log_cleaner_enable: bool = True
    # Of each run.
    log_cleaner_dedupe_buffer_size: int = CLEANER_DEDUPE_BUFFER_BYTES
    log_cleaner_io_buffer_size: int = 512 * 1024
    log_cleaner_io_buffer_load_factor: float = 0.9
    reserve_bytes: int = 0
    """Held back in each directory, see `storage.checkpoints.reserve`."""

    @classmethod
    def of(cls, config: BrokerConfig) -> "LogManagerSettings":
        """Those of a broker."""
        return cls(
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            transaction_partition_verification_enable=(
                config.transaction_partition_verification_enable
            ),
            log_cleaner_enable=config.log_cleaner_enable,
            log_cleaner_dedupe_buffer_size=(
                config.log_cleaner_dedupe_buffer_size // max(config.log_cleaner_threads, 1)
            ),
            log_cleaner_io_buffer_size=config.log_cleaner_io_buffer_size,
            log_cleaner_io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
            reserve_bytes=RESERVE_BYTES,
        )


def _nowhere(_topic_partition: TopicPartition) -> UUID | None:
    return None


def _ignore_failure(_directory: str, _partitions: list[TopicPartition]) -> None:
    pass


def _ignore_full() -> None:
    pass


class LogTable:
    """See the module.

    Attributes:
        environment: Of the broker; its filesystem, clock and randomness follow.
        filesystem: Where the logs are.
        clock: For retention, expiry, delayed deletion.
        randomness: For identifiers.
        settings: See `LogManagerSettings`.
        on_owner: Runs a call on the thread that owns the logs which serve.
        lock: Of the maps that follow; held for moments.
        serving: Logs that serve, by partition.
        loading: Partitions whose log is there and does not serve yet, or not at the moment.
        offline: Partitions that were seen in a directory which is offline now: its path.
        unopened: Partitions whose log could not be opened, in a directory that serves.
        leaving: Partitions that were deleted, or moved, and whose folder still has their name, as
            there was no room for another: none is made in its place.
        directories: All of `log.dirs`, also those offline.
        preferred: Where logs to come are to be made, as far as somebody has asked for it.
        progress: Of loading.
        alerts: Conditions of directories and logs, for the operator.
        cleaning: Which logs are being compacted, and which may not be.
        stray: Directories set aside because their topic no longer exists.
        assigned: Gives the id of the log directory a partition belongs to; None: it is not known.
            From any thread.
        left_alone: Partitions found in another log directory than theirs, which is not here.
        found_elsewhere: Partitions that `load_jobs` found in another directory than `assigned`
            says, or that nothing was known of: where they are.
        on_directory_failure: Called with a directory's path and its partitions when it goes
            offline, from whatever thread saw the failure.
        on_directory_full: Called when one has no room left, from whatever thread saw it:
            `LogRoom.check` is due.
    """

    def __init__(
        self,
        environment: Environment,
        log_dirs: Sequence[str],
        *,
        settings: LogManagerSettings | None = None,
        on_owner: OnOwner = in_this_thread,
        alerts: Alerts | None = None,
    ) -> None:
        """Touch nothing yet.

        Args:
            environment: Of the broker.
            log_dirs: Absolute paths.
            settings: See there; default: all defaults.
            on_owner: See there; used by all that changes a log which serves.
            alerts: Conditions for the operator; default: a list of its own.
        """
        self.environment = environment
        self.filesystem = environment.filesystem
        self.clock = environment.clock
        self.randomness = environment.randomness
        self.settings = settings or LogManagerSettings()
        self.alerts = alerts or Alerts()
        self.directories = [
            LogDirectory(path, self.filesystem, reserve_bytes=self.settings.reserve_bytes)
            for path in log_dirs
        ]
        self.preferred = PreferredDirectories()
        self.progress = LoadProgress()
        self.cleaning = LogCleanerManager()
        self.stray: list[str] = []
        self.left_alone: list[str] = []
        self.found_elsewhere: dict[TopicPartition, UUID] = {}
        self.assigned: Callable[[TopicPartition], UUID | None] = _nowhere
        self.on_directory_failure: Callable[[str, list[TopicPartition]], None] = _ignore_failure
        self.on_directory_full: Callable[[], None] = _ignore_full
        self.on_owner = on_owner
        self.lock = threading.RLock()
        self.serving: dict[TopicPartition, Log] = {}
        self.loading: dict[TopicPartition, LogDirectory] = {}
        self.offline: dict[TopicPartition, str] = {}
        self._descriptors_line = RepeatedLine(self.clock)
        self.unopened: dict[TopicPartition, LogDirectory] = {}
        self.leaving: dict[TopicPartition, LogDirectory] = {}

    # -- look-up --

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """The partition's log, if it is here and serves."""
        return self.serving.get(topic_partition)

    def logs(self) -> list[Log]:
        """All logs that serve."""
        return list(self.serving.values())

    def logs_in(self, directory: LogDirectory) -> list[Log]:
        """All logs that serve from one directory."""
        return [log for log in self.logs() if dirname(log.directory) == directory.path]

    def directory_of(self, log: Log) -> LogDirectory | None:
        """The log directory a log is in."""
        path = dirname(log.directory)
        return next((d for d in self.directories if d.path == path), None)

    def directory_by_id(self, directory_id: UUID) -> LogDirectory | None:
        """The log directory that serves under an id; None: it is not here, or offline."""
        return next((d for d in self.online() if d.id == directory_id), None)

    def placement(self) -> Callable[[TopicPartition], UUID | None]:
        """A choice of log directories for partitions to come.

        Each time the one that was asked for, or the one with the fewest. None that is full is
        chosen.
        """
        with self.lock:
            counts = {
                d.id: d.partition_count for d in self.online() if d.id is not None and not d.is_full
            }

        def choose(topic_partition: TopicPartition) -> UUID | None:
            if not counts:
                return None
            preferred = self.preferred.of(topic_partition)
            if preferred is not None and preferred.id in counts:
                chosen = preferred.id
            else:
                chosen = min(counts, key=lambda directory_id: counts[directory_id])
            counts[chosen] += 1
            return chosen

        return choose

    def has(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition has a log here, though it might not serve."""
        return any(
            topic_partition in there
            for there in (self.serving, self.loading, self.unopened, self.offline)
        )

    def is_given_up(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition's log could not be opened, in a directory that serves."""
        return topic_partition in self.unopened

    def is_loading(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition's log was found and is still to be opened: there may be no room."""
        return topic_partition in self.loading

    def for_each(self, act: Callable[[Log], int]) -> int:
        """The sum of `act` over all logs that serve; a DiskError fails the log it is about."""
        total = 0
        for log in self.logs():
            if self.serving.get(log.topic_partition) is not log:
                continue
            try:
                total += act(log)
            except DiskError as error:
                self.fail_log(log, error)
        return total

    # -- failure --

    @property
    def offline_directories(self) -> list[LogDirectory]:
        """Directories that serve no longer."""
        return [directory for directory in self.directories if not directory.is_online]

    def fail_log(self, log: Log, error: DiskError) -> None:
        """A log's disk refused: its whole directory goes offline, where the disk has failed."""
        directory = self.directory_of(log)
        if directory is not None:
            self.fail(directory, error)

    def fail(self, directory: LogDirectory, error: DiskError) -> None:
        """A disk call in a directory raised `error`: full, out of descriptors, or offline now."""
        if error.is_descriptor_limit:
            self._out_of_descriptors(error)
            return
        if isinstance(error, LogDirectoryFullError):
            # It is known, or over by now.
            return
        if error.is_full:
            self.out_of_room(directory, error)
            return
        with self.lock:
            if not directory.is_online:
                return
            self.go_offline(directory, str(error))
            logs = self.logs_in(directory)
            partitions = [log.topic_partition for log in logs]
            for log in logs:
                log.fail(error)
                self.serving.pop(log.topic_partition, None)
            for topic_partition in directory.loading:
                self.loading.pop(topic_partition, None)
            partitions.extend(directory.loading)
            self.offline.update(dict.fromkeys(partitions, directory.path))
        self.on_directory_failure(directory.path, partitions)

    def _out_of_descriptors(self, error: DiskError) -> None:
        """Log the shortage: the disk is sound, the caller's request fails and may be retried."""
        if self._descriptors_line.is_due():
            _log.warning("out of file descriptors, raise ulimit -n error=%s", error)

    def out_of_room(self, directory: LogDirectory, error: DiskError) -> None:
        """The disk is full: the directory takes no records until `LogRoom.check` finds room."""
        with self.lock:
            if directory.is_full or not directory.is_online:
                return
            directory.full_error = error.to_keep()
            for log in self.logs_in(directory):
                self.refuse_if_full(directory, log)
        self.on_directory_full()
        self.alerts.set(
            AlertKind.DIRECTORY_FULL,
            directory.path,
            f"no room left ({error}): writes to its partitions are refused, all else continues. "
            f"Free {directory.reserve.needed_bytes >> 20} MiB, and files where `df -i` has none: "
            "it then accepts writes again by itself",
        )

    def refuse_if_full(self, directory: LogDirectory, log: Log) -> None:
        """Have a log refuse records while its directory is full.

        What gives room back has to be written down: those logs may use the reserve.
        """
        if directory.full_error is not None and log.topic_partition.topic not in GIVING_ROOM:
            log.refuse_appends(directory.full_error)

    def go_offline(self, directory: LogDirectory, reason: str) -> None:
        """Take a directory out of service, and set its alert."""
        directory.go_offline(reason)
        self.alerts.set(
            AlertKind.DIRECTORY_OFFLINE,
            directory.path,
            f"I/O error ({reason}): its partitions are offline until the disk is "
            "repaired and the broker restarted",
        )

    def failing(self, directory: LogDirectory | None) -> "_Failing":
        """A context: a DiskError that leaves it fails the directory."""
        return _Failing(self, directory)

    def online(self) -> list[LogDirectory]:
        """Log directories that serve."""
        return [directory for directory in self.directories if directory.is_online]

    def check_any_online(self) -> None:
        """Raise LogDirectoryOfflineError if no log directory serves."""
        if not self.online():
            reasons = "; ".join(d.offline_reason or "" for d in self.directories)
            raise LogDirectoryOfflineError(
                f"all log directories are offline ({reasons})", "log.dirs"
            )


class _Failing:
    """While it is entered, a DiskError counts for the directory, and goes on up."""

    def __init__(self, table: LogTable, directory: LogDirectory | None) -> None:
        self._table = table
        self._directory = directory

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DiskError) and self._directory is not None:
            self._table.fail(self._directory, error)
