"""One of the broker's log directories (`log.dirs`): its lock, its owner, its checkpoints.

    <log.dir>/
        .lock                                held while the broker runs
        .kafka_cleanshutdown                 storage.checkpoints.clean_shutdown
        .disk-failed                         its disk had failed when a broker was last here
        meta.properties                      storage.checkpoints.meta_properties
        recovery-point-offset-checkpoint     storage.checkpoints.checkpoint_files, and so the next
        four
        log-start-offset-checkpoint
        replication-offset-checkpoint
        cleaner-offset-checkpoint
        remote-offset-checkpoint
        <topic>-<partition>/                 storage.types.partition_directory

A directory whose disk fails goes offline for good; the others go on.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from posixpath import dirname, join
from typing import Final
from uuid import UUID

from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    NO_GAPS_ABOVE,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
    encode_offsets,
    read_offsets,
)
from storage.checkpoints.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from storage.checkpoints.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from storage.checkpoints.partition_metadata import PARTITION_METADATA, read_partition_metadata
from storage.checkpoints.reserve import Reserve
from storage.environment.filesystem import Filesystem, Lock, Volume
from storage.environment.randomness import Randomness
from storage.errors import CorruptFileError, DiskError, InconsistentDirectoryError
from storage.types.partition_directory import DirectoryState, PartitionDirectory, parse_directory
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid

_log = logging.getLogger(__name__)

RESERVED_DIRECTORY_IDS: Final = 100
"""Ids below mean no directory (KIP-858)."""

LOST: Final = UUID(int=2)
"""Stands for a log directory that held partitions and whose id is unknown (KIP-858)."""

LOCK_FILE: Final = ".lock"
DISK_FAILED_FILE: Final = ".disk-failed"
CHECKPOINTS: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
)

Change = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]
"""From the offsets that a checkpoint has to those that it gets."""

# A KRaft controller's log looks like a partition and is none; the others are remote storage's.
_NOT_PARTITIONS: Final = frozenset(
    {
        "__cluster_metadata-0",
        "remote-log-index-cache",
        "varve-objects",
        "varve-chunk-cache",
        "varve-remote-metadata",
    }
)


def _as_known(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
    return offsets


class LogDirectory:
    """A log directory, open from `open` to `close`.

    Attributes:
        path: As configured.
        offline_reason: Why it serves no longer; None: it does.
        full_error: What the disk said when it had no room left; None: it has, as far as is known.
            Then the directory is read, and deleted from, and takes no records.
        reserve: Room held back for what goes on then.
        was_closed_cleanly: No log failed to close, and none lacks a leader epoch that it was to
            begin: the marker may be written.
        had_clean_shutdown: Nothing needs recovery.
        had_failed: The disk had failed when a broker was last here. What was written and not synced
            may be in the kernel's memory alone, which passes it for written: a log that is
            recovered is written again, as far as it is not known to be on disk.
        meta: Its owner; None before `claim` in a fresh directory.
        offsets: Checkpoint name to offsets, as last read or written.
        has_recovery_points: There was a checkpoint of them at the start: a log that is not in it
            is newer than it. Without one nothing is known of any.
        no_gaps_above: All that its logs have above their recovery points was written by brokers
            that leave no gap between two segments there: one that is found was made by a power cut.
            Brokers before this one may have left some, and so may Kafka; the recovery points'
            checkpoint says which of them wrote it (`NO_GAPS_ABOVE`).
        has_unflushed: A log that was opened here ends above its recovery point.
        loading: Partitions found here whose logs are not open yet.
        listed: All its partitions are known, as logs or in `loading`. Before that nothing is
            written here, neither checkpoints nor the marker: they would cover partitions that were
            not examined, in a directory that may be another broker's.
        opened: It could be locked, and its owner read.
        partition_count: Of logs and of those still loading.
    """

    def __init__(self, path: str, filesystem: Filesystem, *, reserve_bytes: int = 0) -> None:
        self.path = path
        self.offline_reason: str | None = None
        self.full_error: DiskError | None = None
        self.reserve = Reserve(path, filesystem, reserve_bytes)
        self.was_closed_cleanly = True
        self.had_clean_shutdown = False
        self.had_failed = False
        self.meta: MetaProperties | None = None
        self.offsets: dict[str, Mapping[TopicPartition, int]] = {}
        self.has_recovery_points = False
        self.no_gaps_above = False
        self.has_unflushed = False
        self.loading: set[TopicPartition] = set()
        self.listed = False
        self.opened = False
        self.partition_count = 0
        self._filesystem = filesystem
        self._lock: Lock | None = None
        self._written: dict[str, bytes] = {}
        self._write_lock = threading.Lock()
        self._is_failure_noted = False

    @property
    def id(self) -> UUID | None:
        """Its id (KIP-858); None: it is not claimed yet, or its owner could not be read."""
        return None if self.meta is None else self.meta.directory_id

    @property
    def is_online(self) -> bool:
        """It serves."""
        return self.offline_reason is None

    @property
    def is_full(self) -> bool:
        """It serves what it has, and takes no records."""
        return self.full_error is not None

    def open(self) -> None:
        """Create the directory if need be, lock it, read its owner.

        Raises:
            LockedDirectoryError: Another broker uses it.
            CorruptFileError: Its meta.properties does not parse.
            DiskError: The disk refused.
        """
        missing = []
        path = self.path
        while path and not self._filesystem.exists(path):
            missing.append(path)
            path = dirname(path)
        self._filesystem.mkdir(self.path)
        for path in reversed(missing):
            # Else a power cut takes the name of what holds synced records. A parent that may not
            # be opened was made by another program, which has seen to it.
            with suppress(DiskError):
                self._filesystem.sync_directory(dirname(path) or ".")
        self._lock = self._filesystem.lock(join(self.path, LOCK_FILE), with_folder=True)
        self.meta = read_meta_properties(self._filesystem, join(self.path, META_PROPERTIES))
        self.opened = True

    def volume(self) -> Volume:
        """The disk it is on.

        Raises:
            DiskError: It cannot be determined.
        """
        return self._filesystem.volume(self.path)

    def check_owner(self, cluster_id: str, node_id: int, store_id: UUID | None) -> None:
        """Check that the directory belongs to no other node or cluster; nothing is written.

        Args:
            cluster_id: The cluster's.
            node_id: The broker's.
            store_id: Of the metadata store that says what lies here; None: what the directory says.

        Raises:
            InconsistentDirectoryError: It belongs to another cluster, node or metadata store.
        """
        meta = self.meta or MetaProperties(None, None)
        if meta.cluster_id not in (None, cluster_id):
            raise InconsistentDirectoryError(
                f"log directory {self.path} belongs to cluster {meta.cluster_id}, "
                f"this is {cluster_id}"
            )
        if meta.node_id not in (None, node_id):
            raise InconsistentDirectoryError(
                f"log directory {self.path} belongs to node {meta.node_id}, this is {node_id}"
            )
        if store_id is not None and meta.store_id is not None and meta.store_id != store_id:
            raise InconsistentDirectoryError(
                f"log directory {self.path} belongs to another metadata store, "
                f"{format_uuid(meta.store_id)}, this is {format_uuid(store_id)}"
            )

    def claim(
        self,
        cluster_id: str,
        node_id: int,
        randomness: Randomness,
        *,
        store_id: UUID | None = None,
        directory_id: UUID | None = None,
    ) -> None:
        """Check that the directory is ours, or make it so.

        Args:
            cluster_id: The cluster's.
            node_id: The broker's.
            randomness: For the directory's id.
            store_id: Of the metadata store that says what lies here; None: what the directory says.
            directory_id: What a directory without an id gets; None: a fresh one.

        Raises:
            InconsistentDirectoryError: It belongs to another cluster, node or metadata store.
            DiskError: The disk refused.
        """
        self.check_owner(cluster_id, node_id, store_id)
        meta = self.meta or MetaProperties(None, None)
        directory_id = meta.directory_id or directory_id or new_directory_id(randomness)
        named = meta.store_id if store_id is None else store_id
        claimed = MetaProperties(cluster_id, node_id, directory_id, meta.other, named)
        if claimed != self.meta:
            write_meta_properties(self._filesystem, join(self.path, META_PROPERTIES), claimed)
            self.meta = claimed

    def start(self) -> list[PartitionDirectory]:
        """Take the clean-shutdown marker, read the checkpoints and list the partitions.

        A damaged checkpoint counts as empty: then more is recovered, or log start offsets fall back
        to where the first segments begin.

        Raises:
            DiskError: The disk refused.
        """
        self.had_clean_shutdown = take_clean_shutdown(self._filesystem, self.path)
        self.had_failed = self._filesystem.exists(join(self.path, DISK_FAILED_FILE))
        self.has_recovery_points = self._filesystem.exists(
            join(self.path, RECOVERY_POINT_CHECKPOINT)
        )
        for name in CHECKPOINTS:
            try:
                offsets = read_offsets(self._filesystem, join(self.path, name))
                if name == RECOVERY_POINT_CHECKPOINT:
                    self.no_gaps_above = offsets.pop(NO_GAPS_ABOVE, None) is not None
                self.offsets[name] = offsets
            except CorruptFileError as error:
                _log.warning("checkpoint cannot be read, starting without it: %s", error)
                self.offsets[name] = {}
                if name == RECOVERY_POINT_CHECKPOINT:
                    self.has_recovery_points = False
        found = []
        for entry in self._filesystem.list_directory(self.path):
            if not entry.is_directory or entry.name in _NOT_PARTITIONS:
                continue
            directory = parse_directory(entry.name)
            if directory is None:
                _log.warning(
                    "ignoring what is not a partition's directory=%s", join(self.path, entry.name)
                )
                continue
            found.append(directory)
        return found

    def partitions(
        self, *, with_topic_ids: bool = True
    ) -> list[tuple[TopicPartition, UUID | None]]:
        """Partitions that lie here, and the ids of their topics; None: it does not say.

        Raises:
            DiskError: The disk refused.
        """
        found: list[tuple[TopicPartition, UUID | None]] = []
        for entry in self._filesystem.list_directory(self.path):
            parsed = parse_directory(entry.name) if entry.is_directory else None
            if parsed is None or parsed.state is not DirectoryState.CURRENT:
                continue
            topic_id = None
            if with_topic_ids:
                with suppress(CorruptFileError):
                    path = join(self.path, entry.name, PARTITION_METADATA)
                    topic_id = read_partition_metadata(self._filesystem, path)
            found.append((parsed.topic_partition, topic_id))
        return found

    def checkpointed(self, name: str, topic_partition: TopicPartition) -> int | None:
        """One partition's offset in a checkpoint, as last read or written."""
        return self.offsets.get(name, {}).get(topic_partition)

    def keep_recovery_point(self, topic_partition: TopicPartition, offset: int) -> None:
        """A log that is not open is on disk up to `offset`: the next checkpoint says so."""
        with self._write_lock:
            offsets = self.offsets.get(RECOVERY_POINT_CHECKPOINT, {})
            self.offsets[RECOVERY_POINT_CHECKPOINT] = {**offsets, topic_partition: offset}

    def write_checkpoint(self, name: str, change: Change = _as_known) -> bool:
        """Replace a checkpoint, unless it would not change; returns whether it was written.

        Partitions that are still loading keep the offsets they have.

        Args:
            name: Of the checkpoint.
            change: Called with the offsets it has; returns those it gets, by default the same: what
                was remembered meanwhile is written. One writer at a time: who
                reads offsets before could put back what another has lowered, or removed, since.

        Raises:
            DiskError: The disk refused; the old checkpoint stays.
        """
        if not self.listed:
            return False
        with self._write_lock:
            before = self.offsets.get(name, {})
            kept = {tp: offset for tp, offset in before.items() if tp in self.loading}
            merged = {**kept, **change(before)}
            is_noted = name == RECOVERY_POINT_CHECKPOINT and self.no_gaps_above
            data = encode_offsets({**merged, NO_GAPS_ABOVE: 0} if is_noted else merged)
            if self._written.get(name) == data:
                return False
            self._filesystem.replace_bytes(join(self.path, name), data)
            self._written[name] = data
            self.offsets[name] = merged
            return True

    def note_gaps_above(self, *, may_be: bool) -> None:
        """Have the recovery points' checkpoint say whether gaps may lie above them; on disk then.

        Raises:
            DiskError: The disk refused; the old checkpoint stays.
        """
        before, self.no_gaps_above = self.no_gaps_above, not may_be
        try:
            self.write_checkpoint(RECOVERY_POINT_CHECKPOINT)
        except DiskError:
            self.no_gaps_above = before
            raise

    def remember(self, topic_partition: TopicPartition, offsets: Mapping[str, int]) -> None:
        """A partition is on its way in or out: checkpoints keep these offsets of it until it loads.

        Args:
            topic_partition: Which one.
            offsets: By the checkpoint's name.
        """
        with self._write_lock:
            self.loading.add(topic_partition)
            for name, offset in offsets.items():
                self.offsets[name] = {**self.offsets.get(name, {}), topic_partition: offset}

    def forget(self, partitions: set[TopicPartition]) -> None:
        """Drop partitions from all checkpoints that name them.

        Before a partition of the same name can be created: an old log start offset would cut off
        the new one's records at the next start.

        Raises:
            DiskError: The disk refused.
        """

        def without(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
            return {tp: offset for tp, offset in offsets.items() if tp not in partitions}

        for name in CHECKPOINTS:
            offsets = self.offsets.get(name, {})
            if any(topic_partition in offsets for topic_partition in partitions):
                self.write_checkpoint(name, without)

    def go_offline(self, reason: str) -> None:
        """Serve no longer; the first reason stays."""
        if self.offline_reason is None:
            self.offline_reason = reason

    def note_failure(self) -> None:
        """Leave a note that its disk has failed, once; may wait long for that disk.

        It need not reach the disk: where it does not outlive the kernel, nor does what the kernel
        passes for written.
        """
        if self.is_online or not self.listed or self._is_failure_noted:
            return
        self._is_failure_noted = True
        with suppress(DiskError):
            self._filesystem.open(join(self.path, DISK_FAILED_FILE), create=True).close()

    def all_loaded(self) -> None:
        """No log is left to be recovered: what had failed is made good.

        Raises:
            DiskError: The disk refused.
        """
        if self.had_failed and self.is_online:
            self._filesystem.unlink(join(self.path, DISK_FAILED_FILE), missing_ok=True)
            self.had_failed = False

    def close(self, *, mark_clean: bool, broker_epoch: int = -1) -> None:
        """Write the clean-shutdown marker, if requested, and release the lock.

        Args:
            mark_clean: All of it is on disk.
            broker_epoch: Of the life that ends; goes into the marker.

        No marker is written while logs are loading that an unclean shutdown left behind, nor by a
        start that failed before it knew them.

        Raises:
            DiskError: The marker could not be written. The lock is released.
        """
        self.note_failure()
        is_clean = self.had_clean_shutdown or (self.listed and not self.loading)
        try:
            if mark_clean and self.is_online and is_clean and self.was_closed_cleanly:
                write_clean_shutdown(self._filesystem, self.path, broker_epoch)
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None


def new_directory_id(randomness: Randomness) -> UUID:
    """A fresh directory id. Kafka takes none that is reserved or begins with a dash (KIP-858)."""
    while True:
        candidate = randomness.uuid4()
        if candidate.int >= RESERVED_DIRECTORY_IDS and not format_uuid(candidate).startswith("-"):
            return candidate
