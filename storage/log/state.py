"""The state of a log, which its parts share: identity, settings, offsets, segments, producers.

`storage.log.log` draws the offsets and names the parts. Each part holds this object and no other
part than those its constructor asks for. Everything here belongs to the log's owner, the loop's
thread; a method that may be called from another one says so.

Whether the log takes records:

    open ──refuse_appends: no room──> refusing ──accept_appends: what was left is cut off──> open
      │                                  ^
      └──begin_rollback: a queued write found no room──> rolling back ──end_rollback──> open or
                                                                                        refusing
    any ──fail: the disk has failed──> failed, for good

Source: Kafka, UnifiedLog.java.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from typing_extensions import override

from config.topic import TopicConfig
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.errors import (
    CutSegmentError,
    DiskError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
    OffsetOutOfRangeError,
)
from storage.log.directory_pace import INLINE, DirectoryPace
from storage.log.write_queue import WriteQueue
from storage.producers.state import ProducerStateManager
from storage.segment.segment import Segment
from storage.segment.segments import Segments
from storage.types.log_files import SNAPSHOT_SUFFIX, log_file_name
from storage.types.topic_partition import TopicPartition


class LogState:
    """See the module, and `storage.log.log` for the offsets.

    Attributes:
        topic_partition: Its name.
        topic_id: Incarnation of the topic (KIP-516).
        directory: Where its files are.
        filesystem: Of the directory.
        clock: Wall clock and monotonic time.
        config: Settings of the topic; change them with `Log.update_config`.
        log_start_offset: See `storage.log.log`.
        durable_log_start_offset: What a start after a crash would find: as of the last checkpoint.
            Of a log with a remote part nothing below the log start is deleted, and the copier skips
            nothing, before this has passed it: it would be a hole when the log starts lower again.
        log_end_offset: See `storage.log.log`.
        high_watermark: See there; moved by `update_high_watermark`.
        recovery_point: See there.
        segments: Ascending, the last one is active. Changed by rolling, truncation, deletion and
            compaction's replacements only.
        leader_epochs: Which epoch began where.
        latest_leader_epoch: The latest of them; -1 without one.
        producer_state: Idempotence and transactions.
        highest_remote_offset: Last offset copied to remote storage, inclusive; -1: none.
        durable_remote_offset: What a start finds noted of it, as of the last checkpoint; -1: none.
            Nothing that is only in remote storage lies above: local retention goes by it.
        set_aside: Folders of the partition with segments that a recovery has set aside.
        on_cut: Called with what a reader is refused because a closed segment's file was cut.
        is_short: It ends before what checkpoints name as committed or synced: files were cut or
            removed, or the disk has lost some.
        needs_new_epoch: It may have lost its end, and no leader epoch has begun since.
        failure: Why the log is out of service; None while it is in.
        refusal: Why it takes no records; None while it takes them. With a `failure` for ever, else
            until `accept_appends`.
        gaps_until: Compaction may have left offsets out between two segments, the second of which
            begins here or earlier. Any other ends where the next one begins, and one that ends
            earlier was cut. None: what of that holds is seen in the log, when it is asked.
        is_rolling_back: A queued write found no room: its offsets are being taken back.
        generation: Truncations so far: a ticket of an earlier one has no effect.
        pace: Of the log directory: who writes.
        write_queue: What has offsets and is not written yet; None: nothing.
    """

    __slots__ = (
        "_refusal_after_rollback",
        "clock",
        "config",
        "directory",
        "durable_log_start_offset",
        "durable_remote_offset",
        "failure",
        "filesystem",
        "gaps_until",
        "generation",
        "high_watermark",
        "highest_remote_offset",
        "is_rolling_back",
        "is_short",
        "latest_leader_epoch",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "needs_new_epoch",
        "on_cut",
        "pace",
        "producer_state",
        "recovery_point",
        "refusal",
        "segments",
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
    ) -> None:
        """The state of a log that was not opened yet: `Log.open` fills it in."""
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.filesystem = filesystem
        self.clock = clock
        self.segments = Segments()
        self.log_start_offset = 0
        self.durable_log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.latest_leader_epoch = -1
        self.is_short = False
        self.needs_new_epoch = False
        self.gaps_until: int | None = None
        self.set_aside: tuple[str, ...] = ()
        self.on_cut: Callable[[CutSegmentError], None] = _nothing
        self.highest_remote_offset = -1
        self.durable_remote_offset = -1
        self.generation = 0
        self.pace: DirectoryPace = INLINE
        self.write_queue: WriteQueue | None = None
        self.failure: DiskError | None = None
        self.refusal: DiskError | None = None
        self.is_rolling_back = False
        # What `refusal` is once the rollback has ended.
        self._refusal_after_rollback: DiskError | None = None

    @override
    def __repr__(self) -> str:
        return f"Log({self.directory!r}, {self.log_start_offset}..{self.log_end_offset})"

    # -- taking records ----------------------------------------------------------------------

    def fail(self, error: DiskError) -> None:
        """Take the log out of service: appends and reads now raise LogDirectoryOfflineError."""
        if self.failure is None:
            self.failure = self.refusal = error

    def fail_with(self, error: BaseException) -> None:
        """A disk call of the log raised `error`: out of service, unless there was only no room."""
        if not isinstance(error, DiskError):
            self.fail(DiskError(f"cannot write ({error!r})", self.directory))
        elif error.is_disk_failure:
            self.fail(error)

    def refuse_appends(self, error: DiskError) -> None:
        """Take no records until `accept_appends`; everything else goes on.

        May be called from any thread: an append under way ends as if it had come first.
        """
        if self.is_rolling_back:
            self._refusal_after_rollback = error.to_keep()
        elif self.refusal is None:
            self.refusal = error.to_keep()

    def accept_appends(self) -> bool:
        """Take records again; whether it does. On the thread that appends.

        What a failed write may have left is cut off first, and index entries that found no room are
        written. Not while it rolls back: it takes records when that has ended.
        """
        if self.is_rolling_back:
            self._refusal_after_rollback = None
            return False
        if self.refusal is None or self.failure is not None:
            return self.failure is None
        try:
            self.segments.active.trim()
            self.segments.active.transaction_index.write_unwritten()
        except DiskError as error:
            if error.is_disk_failure:
                self.fail(error)
            return False
        self.refusal = None
        return True

    def begin_rollback(self, error: DiskError) -> None:
        """Refuse records because of `error` until `end_rollback`."""
        self.is_rolling_back = True
        self._refusal_after_rollback, self.refusal = self.refusal, error.to_keep()

    def end_rollback(self) -> None:
        """What had offsets and was not written is gone: refuse records only if that was said."""
        self.is_rolling_back = False
        if self.failure is None:
            self.refusal, self._refusal_after_rollback = self._refusal_after_rollback, None

    def check_refusal(self) -> None:
        """Raise LogDirectoryOfflineError or LogDirectoryFullError unless the log takes records."""
        self.check_failure()
        if self.refusal is not None:
            raise LogDirectoryFullError(
                f"log directory is full, nothing is appended until there is room: {self.refusal}",
                self.directory,
                self.refusal.errno,
            )

    def check_failure(self) -> None:
        """Raise LogDirectoryOfflineError if the log is out of service."""
        if self.failure is not None:
            raise LogDirectoryOfflineError(
                f"log is offline: {self.failure}", self.directory, self.failure.errno
            )

    # -- offsets -----------------------------------------------------------------------------

    @property
    def next_offset(self) -> int:
        """What the next record gets: the log end offset, or what it will be."""
        return self.log_end_offset if self.write_queue is None else self.write_queue.next_offset

    @property
    def remote_storage(self) -> bool:
        """Whether closed segments of this log live in remote storage (KIP-405)."""
        return self.config.remote_storage_enable

    @property
    def has_remote_part(self) -> bool:
        """Whether the log may begin before its first segment here.

        Also where its settings do not say so (any more), and nobody has said that what remote
        storage has may go: the settings may be what was lost, as with an older copy of the metadata
        store.
        """
        config = self.config
        return config.remote_storage_enable or (
            self.durable_remote_offset >= self.log_start_offset
            and not config.remote_log_delete_on_disable
        )

    @property
    def copies_to_remote(self) -> bool:
        """Whether more of them are copied there: local retention then waits for the copy."""
        return self.config.remote_storage_enable and not self.config.remote_log_copy_disable

    @property
    def local_log_start_offset(self) -> int:
        """First offset that is here; the log start offset unless the log has a remote part."""
        return max(self.log_start_offset, self.segments[0].base_offset)

    @property
    def active_base_offset(self) -> int:
        """Base offset of the active segment: what was rolled lies below."""
        return self.segments.active.base_offset

    @property
    def last_stable_offset(self) -> int:
        """See `storage.log.log`."""
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

    def delete_records(self, before_offset: int) -> int:
        """Move the log start offset up (DeleteRecords, KIP-107); retention deletes segments later.

        Returns:
            The log start offset.

        Raises:
            OffsetOutOfRangeError: Above the high watermark.
        """
        if before_offset > self.high_watermark:
            raise OffsetOutOfRangeError(before_offset, self.log_start_offset, self.high_watermark)
        if before_offset > self.log_start_offset:
            self.log_start_offset = before_offset
            self.leader_epochs.truncate_from_start(before_offset)
            self.producer_state.on_log_start_offset_incremented(before_offset)
        return self.log_start_offset

    def raise_log_start(self, offset: int) -> bool:
        """Move the log start offset up, as far as the high watermark: remote segments have expired.

        Returns:
            Whether it was moved.
        """
        offset = min(offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        self.delete_records(offset)
        return True

    def load_latest_epoch(self) -> None:
        """Take `latest_leader_epoch` from the leader epochs, which were changed."""
        latest = self.leader_epochs.latest_epoch
        self.latest_leader_epoch = -1 if latest is None else latest

    # -- segments ----------------------------------------------------------------------------

    def size(self) -> int:
        """Bytes of all `.log` files."""
        return sum(segment.size for segment in self.segments)

    def producer_snapshot_path(self, offset: int) -> str:
        """Where the snapshot of the producers as of `offset` is, if it was taken."""
        return f"{self.directory}/{log_file_name(offset, SNAPSHOT_SUFFIX)}"

    def segment_facts(self) -> Sequence[Segment]:
        """All segments, ascending; the last one is the active segment. Not to be changed."""
        return tuple(self.segments)

    @property
    def indexed_end_offset(self) -> int:
        """The aborted transactions that begin below are all in files; in any thread.

        Others found no room there, and are in memory.
        """
        end = self.log_end_offset
        for segment in reversed(self.segment_facts()):
            for txn in segment.transaction_index.unwritten:
                end = min(end, txn.first_offset)
            # A flush has written them.
            if segment.base_offset <= self.recovery_point:
                break
        return end


def _nothing(_error: CutSegmentError) -> None:
    """Nothing is done about it."""
