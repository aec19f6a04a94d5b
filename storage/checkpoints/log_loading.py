"""Log loading at start: one job for each log of a directory, and their progress.

The broker runs the jobs in its threads; a partition serves as soon as its own job is done. Internal
topics come first, since groups and transactions wait for them, then partitions with little to
recover.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from posixpath import join
from typing import Final

from protocol.picklable_error import PicklableError
from storage.checkpoints.checkpoint_files import RECOVERY_POINT_CHECKPOINT
from storage.checkpoints.log_directory import LogDirectory
from storage.environment.filesystem import Filesystem
from storage.types.log_files import LOG_SUFFIX, parse_log_file_name
from storage.types.topic_partition import TopicPartition

INTERNAL_TOPIC_PREFIX: Final = "__"


class LoadingStoppedError(PicklableError):
    """The broker stops: a log is not opened any further.

    Attributes:
        recovery_point: What of the log need not be scanned again; None: as before.
    """

    def __init__(self, recovery_point: int | None = None) -> None:
        super().__init__("the broker stops")
        self.recovery_point = recovery_point


@dataclass(slots=True)
class LoadProgress:
    """How far loading is. Bytes are those of segments that must be read again.

    Written by the threads that run jobs; may be read in any thread.

    Attributes:
        partitions_total: Found so far.
        partitions_done: That serve, or have failed.
        bytes_total: To be read of all of them.
        bytes_done: Of these.
        is_stopped: The broker stops: what has not begun does not begin, and what runs ends soon.
    """

    partitions_total: int = 0
    partitions_done: int = 0
    bytes_total: int = 0
    bytes_done: int = 0
    is_stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_complete(self) -> bool:
        """Nothing is loading."""
        return self.partitions_done >= self.partitions_total

    def check_stopped(self) -> None:
        """Raise LoadingStoppedError if the broker stops."""
        if self.is_stopped:
            raise LoadingStoppedError

    def add(self, partitions: int, recover_bytes: int) -> None:
        """Count work that is to be done."""
        with self._lock:
            self.partitions_total += partitions
            self.bytes_total += recover_bytes

    def advance(self, partitions: int, recover_bytes: int) -> None:
        """Count work that is done."""
        with self._lock:
            self.partitions_done += partitions
            self.bytes_done += recover_bytes


class LoadJob:
    """Opens one log when called, in any thread.

    Attributes:
        directory: The log directory it is in.
        topic_partition: Which one.
        recover_bytes: Bytes of log above the recovery point that are to be read; 0 after a clean
            shutdown.
    """

    __slots__ = (
        "_counted",
        "_open",
        "_progress",
        "directory",
        "recover_bytes",
        "topic_partition",
    )

    def __init__(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        recover_bytes: int,
        open_log: Callable[["LoadJob"], None],
        progress: LoadProgress,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.recover_bytes = recover_bytes
        self._open = open_log
        self._progress = progress
        self._counted = 0

    def __call__(self) -> None:
        """Open the log and hand it over. A disk that fails takes its directory offline."""
        self._open(self)

    def advance(self, bytes_done: int, _bytes_total: int) -> None:
        """So much of this log has been read again.

        Raises:
            LoadingStoppedError: Enough.
        """
        self._progress.check_stopped()
        done = min(bytes_done, self.recover_bytes)
        if done > self._counted:
            self._progress.advance(0, done - self._counted)
            self._counted = done

    def finish(self) -> None:
        """The log serves, or has failed."""
        self._progress.advance(1, self.recover_bytes - self._counted)
        self._counted = self.recover_bytes

    @property
    def rank(self) -> tuple[bool, int]:
        """For sorting: what to do first."""
        is_internal = self.topic_partition.topic.startswith(INTERNAL_TOPIC_PREFIX)
        return not is_internal, self.recover_bytes


def bytes_to_recover(
    filesystem: Filesystem, directory: LogDirectory, topic_partition: TopicPartition
) -> int:
    """Bytes in the segments that reach above the partition's recovery point.

    Raises:
        DiskError: The partition's directory cannot be listed.
    """
    if directory.had_clean_shutdown:
        return 0
    recovery_point = directory.checkpointed(RECOVERY_POINT_CHECKPOINT, topic_partition) or 0
    sizes: list[tuple[int, int]] = []
    for entry in filesystem.list_directory(join(directory.path, str(topic_partition))):
        name = parse_log_file_name(entry.name)
        if name is not None and name.kind == LOG_SUFFIX and not name.stage:
            sizes.append((name.base_offset, entry.size))
    sizes.sort()
    ends = [base_offset for base_offset, _ in sizes[1:]]
    clean = sum(1 for end in ends if end <= recovery_point)
    return sum(size for _, size in sizes[clean:])
