"""What all parts of a log share: its offsets, its segments, its settings.

A log is one object; its methods are spread over modules by what they do:

    LogState ──> LogFlushes ──> LogWriteBehind ──> LogAppends ──┬──> LogCuts ───┐
        │                                                       └──> LogMarkers ┤
        └──────> LogReads ──────────────────────────────────────────────────────┴──> Log

    log_state            offsets, settings, making segments
    log_flush            durability: tickets, the recovery point
    log_write_behind     writes and rolls that are left to a thread
    log_append           checking, offsets, writing, rolling
    log_append_markers   markers that end transactions
    log_cut              truncation, retention, compaction's replacements
    log_read             by offset and by time, aborted transactions
    log                  opening and closing
"""

from collections import deque
from collections.abc import Sequence
from uuid import UUID

from typing_extensions import override

from config.topic import TopicConfig
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import DiskError, LogDirectoryFullError, LogDirectoryOfflineError
from storage.log.directory_pace import INLINE
from storage.log.validator import BatchValidator
from storage.log.write_queue import WriteQueue
from storage.producers.state import ProducerStateManager
from storage.segment.segment import Segment
from storage.segment.segments import Segments
from storage.types.log_files import SNAPSHOT_SUFFIX, log_file_name
from storage.types.topic_partition import TopicPartition


class LogState:
    """A log's state; see `storage.log.log` for the offsets.

    Attributes:
        topic_partition: Its name.
        topic_id: Incarnation of the topic (KIP-516).
        directory: Where its files are.
        config: Settings of the topic; change with `update_config`.
        log_start_offset: See the module.
        durable_log_start_offset: What a start after a crash would find: as of the last checkpoint.
            Of a log with a remote part nothing is dropped before, neither removed from the disk
            nor passed over by the copier: it would be a hole when the log starts lower again.
        log_end_offset: See the module.
        high_watermark: See the module; moved by `update_high_watermark`.
        recovery_point: See the module.
        leader_epochs: Which epoch began where.
        producer_state: Idempotence and transactions.
        highest_remote_offset: Last offset copied to remote storage, inclusive; -1: none.
        set_aside: Folders of the partition with segments that a recovery has set aside.
        last_flush_ms: Wall time of the last flush, for `flush.ms`.
        needs_new_epoch: It may have lost its end, and no leader epoch has begun since.
        failure: Why the log is out of service; None while it is in.
        refusal: Why it takes no records; None while it takes them. With a `failure` for ever, else
            until `accept_appends`.
        write_queue: What has offsets and is yet to be written; None: nothing.
    """

    __slots__ = (
        "_back_under_way",
        "_clock",
        "_deleted",
        "_directory_changed",
        "_filesystem",
        "_flush_messages",
        "_generation",
        "_going_back",
        "_is_new_directory",
        "_latest_leader_epoch",
        "_leaving",
        "_pace",
        "_randomness",
        "_refusal_after",
        "_retire_refused",
        "_retire_under_way",
        "_sealed",
        "_segment_bytes",
        "_segment_ms",
        "_segments",
        "_unsynced_snapshots",
        "_validator",
        "config",
        "directory",
        "durable_log_start_offset",
        "failure",
        "high_watermark",
        "highest_remote_offset",
        "last_flush_ms",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "needs_new_epoch",
        "producer_state",
        "recovery_point",
        "refusal",
        "set_aside",
        "topic_id",
        "topic_partition",
        "write_queue",
    )

    leader_epochs: LeaderEpochCache
    producer_state: ProducerStateManager

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        *,
        topic_id: UUID,
        config: TopicConfig,
        filesystem: Filesystem,
        clock: Clock,
        randomness: Randomness | None,
    ) -> None:
        """Not for callers: use `open`."""
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self._filesystem = filesystem
        self._clock = clock
        self._randomness = randomness
        self._segments = Segments()
        self.log_start_offset = 0
        self.durable_log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.needs_new_epoch = False
        self.set_aside: tuple[str, ...] = ()
        self.highest_remote_offset = -1
        self.last_flush_ms = clock.now_ms()
        self.failure: DiskError | None = None
        self.refusal: DiskError | None = None
        # Names in the directory changed since it was last synced; its own name is new.
        self._directory_changed = True
        self._is_new_directory = True
        self._sealed: list[Segment] | None = None
        self._unsynced_snapshots: list[int] | None = None
        # Segments with the suffix .deleted: to be removed after file.delete.delay.ms.
        self._deleted: deque[tuple[float, Segment]] | None = None
        # Segments out of the log that a thread is to give it; whether it is at it, or may not try.
        self._leaving: list[Segment] | None = None
        self._retire_under_way = False
        self._retire_refused = False
        self._generation = 0
        self._latest_leader_epoch = -1
        self._pace = INLINE
        self.write_queue: WriteQueue | None = None
        # See `LogWriteBehind`: a write found no room; what holds once its traces are gone.
        self._going_back = False
        self._back_under_way = False
        self._refusal_after: DiskError | None = None
        self.update_config(config)

    @override
    def __repr__(self) -> str:
        return f"Log({self.directory!r}, {self.log_start_offset}..{self.log_end_offset})"

    def _describe_segment(self, base_offset: int, size: int, has_txn_index: bool) -> Segment:
        return Segment(
            self.directory,
            base_offset,
            self._filesystem,
            index_interval_bytes=self.config.index_interval_bytes,
            index_max_bytes=self.config.segment_index_bytes,
            size=size,
            created_ms=self._clock.now_ms(),
            roll_jitter_ms=self._jitter_ms(),
            has_transaction_index=has_txn_index,
        )

    def _new_segment(self, base_offset: int) -> Segment:
        """A segment whose files are yet to be made."""
        return Segment(
            self.directory,
            base_offset,
            self._filesystem,
            index_interval_bytes=self.config.index_interval_bytes,
            index_max_bytes=self.config.segment_index_bytes,
            created_ms=self._clock.now_ms(),
            roll_jitter_ms=self._jitter_ms(),
        )

    def _create_segment(self, base_offset: int) -> Segment:
        self._directory_changed = True
        segment = self._new_segment(base_offset)
        segment.create_file(self._segment_bytes if self.config.preallocate else 0)
        return segment

    def _jitter_ms(self) -> int:
        if self._randomness is None:
            return 0
        return self._randomness.below(min(self.config.segment_jitter_ms, self.config.segment_ms))

    def update_config(self, config: TopicConfig) -> None:
        """The topic's settings have changed; they hold from the next append on."""
        self.config = config
        self._validator = BatchValidator(config)
        self._segment_bytes = config.segment_bytes
        self._segment_ms = config.segment_ms
        self._flush_messages = config.flush_messages
        if len(self._segments):
            self._segments.active.set_index_max_bytes(config.segment_index_bytes)
        if self.write_queue is not None:
            self.write_queue.tail.set_index_max_bytes(config.segment_index_bytes)

    def fail(self, error: DiskError) -> None:
        """Take the log out of service: appends and reads now raise LogDirectoryOfflineError."""
        if self.failure is None:
            self.failure = self.refusal = error

    def refuse_appends(self, error: DiskError) -> None:
        """Take no records until `accept_appends`; everything else goes on.

        May be called from any thread: an append under way ends as if it had come first.
        """
        if self.refusal is None:
            self.refusal = error.to_keep()

    def accept_appends(self) -> bool:
        """Take records again; whether it does. On the thread that appends.

        What a failed write may have left is cut off before, and what it left out made good.
        """
        if self.refusal is None or self.failure is not None:
            return self.failure is None
        try:
            self._segments.active.trim()
            self._segments.active.transaction_index.write_unwritten()
        except DiskError as error:
            if error.is_disk_failure:
                self.fail(error)
            return False
        self.refusal = None
        return True

    def _check_refusal(self) -> None:
        self._check_failure()
        if self.refusal is not None:
            raise LogDirectoryFullError(
                f"log directory is full, nothing is appended until there is room: {self.refusal}",
                self.directory,
                self.refusal.errno,
            )

    def _check_failure(self) -> None:
        if self.failure is not None:
            raise LogDirectoryOfflineError(
                f"log is offline: {self.failure}", self.directory, self.failure.errno
            )

    @property
    def next_offset(self) -> int:
        """What the next record gets: the log end offset, or what it will be."""
        return self.log_end_offset if self.write_queue is None else self.write_queue.next_offset

    @property
    def remote_storage(self) -> bool:
        """Whether closed segments of this log live in remote storage (KIP-405)."""
        return self.config.remote_storage_enable

    @property
    def copies_to_remote(self) -> bool:
        """Whether more of them are copied there: local retention then waits for the copy."""
        return self.config.remote_storage_enable and not self.config.remote_log_copy_disable

    @property
    def local_log_start_offset(self) -> int:
        """First offset that is here; the log start offset unless the log has a remote part."""
        return max(self.log_start_offset, self._segments[0].base_offset)

    @property
    def active_base_offset(self) -> int:
        """Base offset of the active segment: what was rolled lies below."""
        return self._segments.active.base_offset

    @property
    def last_stable_offset(self) -> int:
        """See the module."""
        unstable = self.producer_state.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Consumers may read below `offset`; brought into the log's range."""
        if offset < self.log_start_offset:
            offset = self.log_start_offset
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        self.high_watermark = offset
        if self.producer_state.first_unstable_offset is not None:
            self.producer_state.on_high_watermark_updated(offset)

    def size(self) -> int:
        """Bytes of all `.log` files."""
        return sum(segment.size for segment in self._segments)

    def producer_snapshot_path(self, offset: int) -> str:
        """Where the snapshot of the producers as of `offset` is, if it was taken."""
        return f"{self.directory}/{log_file_name(offset, SNAPSHOT_SUFFIX)}"

    def segment_facts(self) -> Sequence[Segment]:
        """All segments, ascending; the last one is the active segment. Not to be changed."""
        return tuple(self._segments)
