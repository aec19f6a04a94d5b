"""The log of one partition.

    log start      last stable     high watermark      log end
        v               v               v                v
        [ segment ][ segment ][ segment ][ active segment ]
              recovery point ^

    log start offset     first offset that may be read; moved by retention and DeleteRecords
    last stable offset   first offset of an open transaction, at most the high watermark (KIP-98)
    high watermark       consumers read below it
    log end offset       what the next record gets
    recovery point       everything below is on disk and need not be scanned after a crash

Belongs to one thread, the loop's, except where a method says otherwise; nothing here awaits.
Appends go to the page cache; making them durable is `begin_flush` and `FlushTicket.run`.

Source: Kafka, UnifiedLog.java, LocalLog.java.
"""

import logging
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Final
from uuid import UUID

from typing_extensions import override

from config.topic import TopicConfig
from protocol.records.batch import (
    CONTROL_BIT,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from storage.append_info import AppendInfo
from storage.append_origin import AppendOrigin
from storage.clock import Clock
from storage.errors import DiskError, LogDirectoryOfflineError, OffsetOutOfRangeError
from storage.file_slice import FileSlice
from storage.filesystem import Filesystem
from storage.flush import FlushTicket, SideFile
from storage.leader_epochs import LeaderEpochCache
from storage.log_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)
from storage.producer_entry import DuplicateInfo
from storage.producer_snapshot import snapshot_name
from storage.producer_state import PRODUCER_ID_EXPIRATION_MS, ProducerStateManager
from storage.randomness import Randomness
from storage.recovery import LogLoader, Progress, replay
from storage.retention import plan_retention
from storage.segment import BatchAppend, Segment, TimestampOffset
from storage.segment_recovery import read_marker, replay_batch
from storage.segments import Segments
from storage.topic_partition import TopicPartition
from storage.transaction_index import AbortedTxn
from storage.validator import BatchValidator, HeaderFields

__all__ = ["AppendInfo", "AppendOrigin", "FlushTicket", "Log", "TimestampOffset"]

_log = logging.getLogger(__name__)

_OFFSET_LENGTH_EPOCH: Final = Struct(">qii")
_patch = _OFFSET_LENGTH_EPOCH.pack_into
_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_CLIENT: Final = AppendOrigin.CLIENT


class Log:
    """See the module.

    Attributes:
        topic_partition: Its name.
        topic_id: Incarnation of the topic (KIP-516).
        directory: Where its files are.
        config: Settings of the topic; change with `update_config`.
        log_start_offset: See the module.
        log_end_offset: See the module.
        high_watermark: See the module; moved by `update_high_watermark`.
        recovery_point: See the module.
        leader_epochs: Which epoch began where.
        producer_state: Idempotence and transactions.
        highest_remote_offset: Last offset copied to remote storage, inclusive; -1: none.
        last_flush_ms: Wall time of the last flush, for `flush.ms`.
        failure: Why the log is out of service; None while it is in.
    """

    __slots__ = (
        "_clock",
        "_deleted",
        "_directory_changed",
        "_filesystem",
        "_flush_messages",
        "_generation",
        "_is_new_directory",
        "_latest_leader_epoch",
        "_randomness",
        "_sealed",
        "_segment_bytes",
        "_segment_ms",
        "_segments",
        "_unsynced_snapshots",
        "_validator",
        "config",
        "directory",
        "failure",
        "high_watermark",
        "highest_remote_offset",
        "last_flush_ms",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producer_state",
        "recovery_point",
        "topic_id",
        "topic_partition",
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
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.highest_remote_offset = -1
        self.last_flush_ms = clock.now_ms()
        self.failure: DiskError | None = None
        # Names in the directory changed since it was last synced; its own name is new.
        self._directory_changed = True
        self._is_new_directory = True
        self._sealed: list[Segment] | None = None
        self._unsynced_snapshots: list[int] | None = None
        # Segments with the suffix .deleted: to be removed after file.delete.delay.ms.
        self._deleted: deque[tuple[float, Segment]] | None = None
        self._generation = 0
        self._latest_leader_epoch = -1
        self.update_config(config)

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        *,
        topic_id: UUID,
        config: TopicConfig,
        filesystem: Filesystem,
        clock: Clock,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        clean_shutdown: bool = False,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        randomness: Randomness | None = None,
        on_progress: Progress | None = None,
    ) -> "Log":
        """Open the log in `directory`, which is created if it is missing; recovers what must be.

        May run in any thread, and block for long: see `storage.recovery`.

        Args:
            directory: Of the partition.
            topic_partition: Its name.
            topic_id: Of the topic.
            config: Of the topic, resolved.
            filesystem: Where it is.
            clock: Time.
            recovery_point: From its checkpoint, 0 if there is none.
            log_start_offset: From its checkpoint, 0 if there is none.
            high_watermark: From its checkpoint, 0 if there is none; brought into the log's range.
            clean_shutdown: The directory was closed cleanly, so nothing is scanned.
            producer_id_expiration_ms: `producer.id.expiration.ms`.
            randomness: For `segment.jitter.ms`; None: no jitter.
            on_progress: Called with (bytes scanned, bytes to scan).

        Raises:
            DiskError: The disk refused.
        """
        log = cls(
            directory,
            topic_partition,
            topic_id=topic_id,
            config=config,
            filesystem=filesystem,
            clock=clock,
            randomness=randomness,
        )
        if filesystem.exists(directory):
            log._is_new_directory = False
            log._directory_changed = not clean_shutdown
        else:
            filesystem.mkdir(directory)
        loader = LogLoader(
            directory,
            filesystem,
            new_segment=log._describe_segment,
            create_segment=log._create_segment,
            producer_state=lambda snapshots: ProducerStateManager(
                topic_partition,
                directory,
                filesystem,
                producer_id_expiration_ms=producer_id_expiration_ms,
                snapshot_offsets=snapshots,
            ),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            gaps_allowed="compact" in config.cleanup_policy,
            now_ms=clock.now_ms(),
            on_progress=on_progress,
        )
        loaded = loader.load()
        log._segments = loaded.segments
        log.leader_epochs = loader.leader_epochs
        log.producer_state = loader.producer_state
        log.log_start_offset = loaded.log_start_offset
        log.log_end_offset = loaded.log_end_offset
        log.recovery_point = loaded.recovery_point
        latest = log.leader_epochs.latest_epoch
        log._latest_leader_epoch = -1 if latest is None else latest
        log.high_watermark = log.log_start_offset
        log.update_high_watermark(high_watermark)
        for segment in loaded.segments:
            segment.close()
        return log

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

    def _create_segment(self, base_offset: int) -> Segment:
        self._directory_changed = True
        return Segment.create(
            self.directory,
            base_offset,
            self._filesystem,
            index_interval_bytes=self.config.index_interval_bytes,
            index_max_bytes=self.config.segment_index_bytes,
            created_ms=self._clock.now_ms(),
            roll_jitter_ms=self._jitter_ms(),
            preallocate_bytes=self._segment_bytes if self.config.preallocate else 0,
        )

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
            self._segments.active.offset_index.set_max_bytes(config.segment_index_bytes)
            self._segments.active.time_index.set_max_bytes(config.segment_index_bytes)

    def fail(self, error: DiskError) -> None:
        """Take the log out of service: appends and reads now raise LogDirectoryOfflineError."""
        if self.failure is None:
            self.failure = error

    def _check_failure(self) -> None:
        if self.failure is not None:
            raise LogDirectoryOfflineError(
                f"log is offline since: {self.failure}", self.directory, self.failure.errno
            )

    # -- appending ---------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = _CLIENT,
        verify: bool = True,
    ) -> AppendInfo:
        """Check produced batches, give them offsets and write them to the active segment.

        Not yet committed: consumers see the records once the high watermark has passed them. Only
        base offset and leader epoch are rewritten; both lie before the bytes that the CRC covers.
        With LogAppendTime the time is set, and the sum made, anew.

        Args:
            records: One or more whole batches, writable; patched in place and not kept. After an
                error its content is undefined.
            leader_epoch: Epoch of this leader (KIP-101), 0 or above.
            now_ms: Milliseconds since 1970 UTC.
            origin: Who made them, which decides what is checked.
            verify: Look at the CRC; False only for batches made in this process.

        Returns:
            Offsets given, both inclusive. For a batch that is in the log already, those it got the
            first time: a retry looks like the original (KIP-98).

        Raises:
            BatchError: Refused (see `storage.validator`); nothing was written.
            ProducerError: The producer's state does not allow it; nothing was written.
            DiskError: The disk refused. Nothing was written, or nobody will be told of it.
        """
        if self.failure is not None:
            self._check_failure()
        headers = self._validator.check(records, now_ms, origin, verify)
        append_time_ms = -1
        if self._validator.is_special:
            records, headers = self._validator.prepare(records, headers, now_ms, origin)
            if self._validator.log_append_time:
                append_time_ms = now_ms
        if len(headers) > 1:
            return self._append_several(records, headers, leader_epoch, origin, append_time_ms)

        return self._append_one(records, headers[0], leader_epoch, origin, append_time_ms)

    def _append_one(
        self,
        records: memoryview,
        fields: HeaderFields,
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
    ) -> AppendInfo:
        """Write one batch that the validator has seen."""
        first_offset = self.log_end_offset
        last_offset = first_offset + fields[6]
        producer_id = fields[9]
        marker: tuple[int, int] | None = None
        if producer_id >= 0:
            if fields[5] & CONTROL_BIT:
                marker = read_marker(BatchHeader._make(fields), records)
            duplicate = self._check_producer(fields, origin, marker)
            if duplicate is not None:
                return AppendInfo(
                    duplicate.first_offset,
                    duplicate.last_offset,
                    duplicate.timestamp if append_time_ms >= 0 else -1,
                    self.log_start_offset,
                    True,
                )
        if leader_epoch != self._latest_leader_epoch:
            self._assign_leader_epoch(leader_epoch, first_offset)
        _patch(records, 0, first_offset, fields[1], leader_epoch)
        size = fields[1] + LOG_OVERHEAD
        max_timestamp = fields[8]
        segment = self._segments.active
        if (
            segment.size + size > self._segment_bytes
            or segment.size == 0
            or segment.first_timestamp < 0
            or max_timestamp - segment.first_timestamp > self._segment_ms - segment.roll_jitter_ms
            or last_offset - segment.base_offset > _SEQUENCE_MASK
            or segment.needs_roll
        ):
            segment = self._maybe_roll(segment, size, first_offset, last_offset, max_timestamp)
        try:
            segment.append(records, size, last_offset, max_timestamp)
        except DiskError:
            self._undo_write(segment)
            raise
        self.log_end_offset = last_offset + 1
        if producer_id >= 0:
            self._update_producer(fields, segment, first_offset, marker)
        else:
            self.producer_state.map_end_offset = last_offset + 1
        return AppendInfo(first_offset, last_offset, append_time_ms, self.log_start_offset, False)

    def _append_several(
        self,
        records: memoryview,
        headers: list[HeaderFields],
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
    ) -> AppendInfo:
        if any(fields[9] >= 0 for fields in headers):
            return self._append_one_by_one(records, headers, leader_epoch, origin, append_time_ms)
        first_offset = offset = self.log_end_offset
        if leader_epoch != self._latest_leader_epoch:
            self._assign_leader_epoch(leader_epoch, first_offset)
        position = 0
        batches = []
        for fields in headers:
            _patch(records, position, offset, fields[1], leader_epoch)
            size = fields[1] + LOG_OVERHEAD
            batches.append(BatchAppend(size, offset + fields[6], fields[8]))
            offset += fields[6] + 1
            position += size
        self._write_several(records, first_offset, batches)
        self.producer_state.map_end_offset = offset
        return AppendInfo(first_offset, offset - 1, append_time_ms, self.log_start_offset, False)

    def _append_one_by_one(
        self,
        records: memoryview,
        headers: list[HeaderFields],
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
    ) -> AppendInfo:
        """Idempotent batches in one call: each is checked against the ones before it.

        No client since Produce v3 sends several batches for one partition.
        """
        infos = []
        position = 0
        for fields in headers:
            end = position + fields[1] + LOG_OVERHEAD
            batch = records[position:end]
            infos.append(self._append_one(batch, fields, leader_epoch, origin, append_time_ms))
            position = end
        return AppendInfo(
            infos[0].first_offset,
            infos[-1].last_offset,
            append_time_ms,
            self.log_start_offset,
            all(info.duplicate for info in infos),
        )

    def _check_producer(
        self, fields: HeaderFields, origin: AppendOrigin, marker: tuple[int, int] | None
    ) -> DuplicateInfo | None:
        base_sequence = fields[11]
        return self.producer_state.check(
            fields[9],
            fields[10],
            base_sequence,
            -1 if base_sequence < 0 else (base_sequence + fields[6]) & _SEQUENCE_MASK,
            fields[5] & TRANSACTIONAL_BIT != 0,
            fields[5] & CONTROL_BIT != 0,
            origin,
            marker[1] if marker is not None else -1,
        )

    def _update_producer(
        self,
        fields: HeaderFields,
        segment: Segment,
        first_offset: int,
        marker: tuple[int, int] | None,
    ) -> None:
        state = self.producer_state
        base_sequence = fields[11]
        last_offset = first_offset + fields[6]
        if not fields[5] & CONTROL_BIT:
            state.append(
                fields[9],
                fields[10],
                base_sequence,
                -1 if base_sequence < 0 else (base_sequence + fields[6]) & _SEQUENCE_MASK,
                first_offset,
                last_offset,
                fields[8],
                fields[5] & TRANSACTIONAL_BIT != 0,
            )
            return
        state.map_end_offset = last_offset + 1
        if marker is None:
            return
        completed = state.append_control(
            fields[9], fields[10], marker[0], marker[1], first_offset, fields[8]
        )
        if completed is not None:
            stable = state.complete_transaction(completed)
            if completed.is_aborted:
                self._directory_changed = True
                segment.transaction_index.append(
                    AbortedTxn(
                        completed.producer_id, completed.first_offset, completed.last_offset, stable
                    )
                )

    def append_as_follower(self, records: memoryview) -> AppendInfo:
        """Write batches as the leader gave them, offsets and epochs included.

        Raises:
            BatchError: Damaged, or offsets that do not follow on this log's end.
            DiskError: The disk refused.
        """
        self._check_failure()
        headers = _FOLLOWER_VALIDATOR.check(records, 0, AppendOrigin.REPLICATION, True)
        batches = []
        expected = self.log_end_offset
        for fields in headers:
            if fields[0] < expected:
                raise OffsetOutOfRangeError(fields[0], self.log_start_offset, self.log_end_offset)
            expected = fields[0] + fields[6] + 1
            batches.append(BatchAppend(fields[1] + LOG_OVERHEAD, fields[0] + fields[6], fields[8]))
        for fields in headers:
            if fields[2] > self._latest_leader_epoch:
                self._assign_leader_epoch(fields[2], fields[0])
        first_offset = headers[0][0]
        segment = self._write_several(records, first_offset, batches)
        position = 0
        for fields in headers:
            end = position + fields[1] + LOG_OVERHEAD
            if fields[9] >= 0:
                header = BatchHeader._make(fields)
                replay_batch(self.producer_state, segment, header, records[position:end])
            position = end
        self.producer_state.map_end_offset = expected
        return AppendInfo(first_offset, expected - 1, -1, self.log_start_offset, False)

    def _write_several(
        self, records: memoryview, first_offset: int, batches: list[BatchAppend]
    ) -> Segment:
        size = len(records)
        last_offset = batches[-1].last_offset
        max_timestamp = max(batch.max_timestamp for batch in batches)
        segment = self._maybe_roll(
            self._segments.active, size, first_offset, last_offset, max_timestamp
        )
        try:
            segment.append_batches(records, batches)
        except DiskError:
            self._undo_write(segment)
            raise
        self.log_end_offset = last_offset + 1
        return segment

    def _undo_write(self, segment: Segment) -> None:
        """A write has failed: no part of it may be taken for log, should the file be used again."""
        try:
            segment.trim()
        except DiskError as error:
            self.fail(error)

    def _assign_leader_epoch(self, epoch: int, start_offset: int) -> None:
        # On disk before the first batch that carries it: recovery relies on that.
        self.leader_epochs.assign(epoch, start_offset)
        self._latest_leader_epoch = epoch

    # -- rolling -----------------------------------------------------------------------------

    def _maybe_roll(
        self, segment: Segment, size: int, first_offset: int, last_offset: int, max_timestamp: int
    ) -> Segment:
        """The segment to append to: the active one, or a new one if that is full or old."""
        if segment.size == 0:
            waited_ms = 0
        elif segment.first_timestamp >= 0:
            waited_ms = max_timestamp - segment.first_timestamp
        else:
            waited_ms = self._clock.now_ms() - segment.created_ms
        if (
            segment.size > self._segment_bytes - size
            or waited_ms > self._segment_ms - segment.roll_jitter_ms
            or segment.needs_roll
            or not segment.can_hold(last_offset)
        ):
            return self._roll(first_offset)
        return segment

    def roll(self) -> None:
        """Close the active segment and begin a new one at the log end offset.

        Nothing happens while the active segment is empty. The old one is not on disk yet: flush up
        to `active_base_offset` to advance the recovery point to it.

        Raises:
            DiskError: The disk refused; the old segment stays active.
        """
        if self._segments.active.size:
            self._roll(self.log_end_offset)

    def _roll(self, base_offset: int) -> Segment:
        old = self._segments.active
        if old.base_offset >= base_offset:
            # An empty segment at this very offset: nothing to close.
            assert old.size == 0, (old, base_offset)
            return old
        old.seal()
        segment = self._create_segment(base_offset)
        self._segments.add(segment)
        if self._sealed is None:
            self._sealed = []
        self._sealed.append(old)
        # A snapshot for each segment: recovery of the segment begins with it.
        self._take_snapshot(base_offset)
        return segment

    def _take_snapshot(self, offset: int) -> None:
        if self.producer_state.take_snapshot(offset):
            self._directory_changed = True
            if self._unsynced_snapshots is None:
                self._unsynced_snapshots = []
            self._unsynced_snapshots.append(offset)

    @property
    def active_base_offset(self) -> int:
        """Base offset of the active segment: what was rolled lies below."""
        return self._segments.active.base_offset

    # -- durability --------------------------------------------------------------------------

    @property
    def unflushed_messages(self) -> int:
        """Records above the recovery point."""
        return self.log_end_offset - self.recovery_point

    @property
    def needs_flush(self) -> bool:
        """`flush.messages` is reached: acknowledge only what a flush has covered."""
        return self.log_end_offset - self.recovery_point >= self._flush_messages

    def flush_target(self) -> int | None:
        """The offset up to which a flush is due now; None if none is.

        All of the log by `flush.messages` or `flush.ms`. What was rolled is always due: the sooner
        it is on disk, the less is scanned after a crash.
        """
        return self._flush_target(self._clock.now_ms())

    def _flush_target(self, now_ms: int) -> int | None:
        if self.log_end_offset <= self.recovery_point:
            return None
        if self.needs_flush or now_ms - self.last_flush_ms >= self.config.flush_ms:
            return self.log_end_offset
        rolled = self.active_base_offset
        return rolled if rolled > self.recovery_point else None

    def flush_if_due(self, now_ms: int) -> bool:
        """Flush up to `flush_target`, if there is one; blocks, and may be called in a thread.

        Args:
            now_ms: Wall clock.

        Returns:
            Whether there was something to do.

        Raises:
            DiskError: As `flush`.
        """
        target = self._flush_target(now_ms)
        if target is None or self.failure is not None:
            return False
        self.flush(target)
        return True

    def begin_flush(self, up_to: int | None = None) -> FlushTicket | None:
        """Gather what must be synced for everything below `up_to` (default: all) to be durable.

        Returns:
            The flush, whose `run` may be called in a thread; None if there is nothing to do.

        Raises:
            DiskError: A file could not be opened.
        """
        end_offset = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        return self._make_ticket(end_offset) if end_offset > self.recovery_point else None

    def _make_ticket(self, end_offset: int) -> FlushTicket:
        segments = {
            segment.base_offset: segment
            for segment in self._segments.from_offset(self.recovery_point)
            if segment.base_offset < end_offset
        }
        # What was sealed when all its records had been flushed: its indexes have not.
        sealed, self._sealed = self._sealed, None
        for segment in sealed or ():
            if self._segments.floor(segment.base_offset) is segment:
                segments[segment.base_offset] = segment
        files = []
        side_files: list[SideFile] = []
        active = self._segments.active
        for segment in segments.values():
            files.append(segment.open_file())
            if segment is not active:
                side_files += (segment.offset_index, segment.time_index)
            if segment.transaction_index.entry_count:
                side_files.append(segment.transaction_index)
        snapshots = [at for at in self._unsynced_snapshots or () if at <= end_offset]
        directories = []
        if self._directory_changed:
            directories.append(self.directory)
            self._directory_changed = False
        if self._is_new_directory:
            directories.append(self.directory.rpartition("/")[0] or ".")
            self._is_new_directory = False
        return FlushTicket(
            self._filesystem,
            end_offset,
            self._generation,
            files=files,
            side_files=side_files,
            snapshot_paths=[f"{self.directory}/{snapshot_name(at)}" for at in snapshots],
            directories=directories,
        )

    def finish_flush(self, ticket: FlushTicket) -> None:
        """The ticket's `run` has returned: move the recovery point."""
        if ticket.generation != self._generation:
            return
        self.last_flush_ms = self._clock.now_ms()
        if ticket.end_offset > self.recovery_point:
            self.recovery_point = ticket.end_offset
        if self._unsynced_snapshots:
            self._unsynced_snapshots = [
                at for at in self._unsynced_snapshots if at > ticket.end_offset
            ] or None

    def flush(self, up_to: int | None = None) -> None:
        """Make everything below `up_to` (default: all) durable before returning; blocks.

        Raises:
            DiskError: The disk refused; the log is out of service from now on, since the kernel
                may have dropped what it could not write.
        """
        ticket = self.begin_flush(up_to)
        if ticket is None:
            return
        try:
            ticket.run()
        except DiskError as error:
            self.fail(error)
            raise
        self.finish_flush(ticket)

    # -- reading -----------------------------------------------------------------------------

    def read(
        self, offset: int, *, max_bytes: int, end_offset: int, min_one_batch: bool
    ) -> FileSlice | None:
        """Where the batches are that hold `offset` and what follows.

        Args:
            offset: First offset wanted; the first batch may begin before it.
            max_bytes: Most bytes, whole batches.
            end_offset: Exclusive: high watermark or last stable offset.
            min_one_batch: Give the first batch even if it is larger than `max_bytes` (KIP-74).

        Returns:
            A slice of one segment, beginning and ending with whole batches. None when nothing is
            there below `end_offset` yet. Of length 0 when the first batch is too large.

        Raises:
            OffsetOutOfRangeError: Below the log start or above the log end.
            DiskError: The file could not be opened, or the log is out of service.
        """
        if self.failure is not None:
            self._check_failure()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        segments = self._segments
        last = len(segments) - 1
        at = last if offset >= segments[last].base_offset else max(segments.index_of(offset), 0)
        while at <= last:
            segment = segments[at]
            if end_offset >= segments.end_of(at, self.log_end_offset):
                end_position = segment.size
                if at == last:
                    # Whoever reads to the end comes back for what is appended next.
                    segment.remember(self.log_end_offset, end_position)
            else:
                end_position = segment.position_of(end_offset)
                segment.remember(end_offset, end_position)
            if offset < end_offset:
                found = segment.read(
                    offset,
                    max_bytes=max_bytes,
                    end_position=end_position,
                    min_one_batch=min_one_batch,
                )
                if found is not None:
                    return found
            if end_offset <= segments.end_of(at, self.log_end_offset):
                return None
            at += 1
        return None

    def aborted_transactions(self, start: int, end: int | FileSlice) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that overlap [start, end).

        Args:
            start: Offset that was fetched.
            end: Exclusive; or the slice that `read` gave for `start`.
        """
        if not isinstance(end, int):
            end = self._end_of_slice(start, end)
        found: list[tuple[int, int]] = []
        for segment in self._segments.from_offset(start):
            transactions, complete = segment.transaction_index.collect(start, end)
            found += [(txn.producer_id, txn.first_offset) for txn in transactions]
            if complete:
                break
        return found

    def _end_of_slice(self, start: int, records: FileSlice) -> int:
        """An offset that the slice does not go beyond; a little too great is harmless."""
        at = max(self._segments.index_of(start), 0)
        if at < len(self._segments) - 1:
            segment = self._segments[at]
            if segment.file is records.file:
                bound = segment.upper_bound_offset(records.position + records.length)
                return bound if bound is not None else self._segments[at + 1].base_offset
        return self.log_end_offset

    def offset_for_timestamp(
        self, timestamp_ms: int, end_offset: int | None = None
    ) -> TimestampOffset | None:
        """The first record whose time is at least `timestamp_ms`, if below `end_offset`, else None.

        Reads from the disk; may be called in a thread.
        """
        end = self.log_end_offset if end_offset is None else min(end_offset, self.log_end_offset)
        size_max = 2 * self.config.max_message_bytes
        segments = self._segments
        for at in range(max(segments.index_of(self.log_start_offset), 0), len(segments)):
            segment = segments[at]
            if segment.base_offset >= end:
                break
            if segment.max_timestamp < timestamp_ms:
                continue
            is_cut = end < segments.end_of(at, self.log_end_offset)
            found = segment.find_timestamp(
                timestamp_ms,
                start_offset=max(self.log_start_offset, segment.base_offset),
                end_position=segment.position_of(end) if is_cut else segment.size,
                max_size=size_max,
            )
            if found is not None:
                return found if found.offset < end else None
        return None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp of the log (KIP-734); None without any."""
        newest: Segment | None = None
        for segment in self._segments:
            if newest is None or segment.max_timestamp > newest.max_timestamp:
                newest = segment
        if newest is None:
            return None
        return newest.find_max_timestamp(max_size=2 * self.config.max_message_bytes)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch: see `LeaderEpochCache.end_offset_for`."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    @property
    def last_stable_offset(self) -> int:
        """See the module."""
        unstable = self.producer_state.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Consumers may read below `offset`; brought into the log's range."""
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        if self.producer_state.first_unstable_offset is not None:
            self.producer_state.on_high_watermark_updated(offset)

    def size(self) -> int:
        """Bytes of all `.log` files."""
        return sum(segment.size for segment in self._segments)

    def segment_facts(self) -> Sequence[Segment]:
        """All segments, ascending; the last one is the active segment. Not to be changed."""
        return tuple(self._segments)

    # -- cutting at the end ------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on. Blocks for the disk.

        A batch that holds `offset` goes whole, so the log may end before it. The recovery point
        moves down with the log: its checkpoint must be written before the next append.

        Returns:
            Whether anything was removed.

        Raises:
            DiskError: The disk refused.
        """
        assert offset >= 0, offset
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            self._load_latest_epoch()
            return False
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self._generation += 1
        at = self._segments.index_of(offset)
        # From the end, and on disk before the last is cut: wherever this stops, there is no gap.
        later = list(self._segments)[at + 1 :]
        for segment in reversed(later):
            self._remove_now(segment)
        if later:
            self._filesystem.sync_directory(self.directory)
        end = self._segments.active.truncate_to(offset)
        self._end_at(end)
        self.producer_state.truncate_and_reload(self.log_start_offset, end, self._clock.now_ms())
        if self.producer_state.map_end_offset < end:
            replay(self._segments, self.producer_state, self.producer_state.map_end_offset, end)
        self.producer_state.map_end_offset = end
        self._take_snapshot(end)
        return True

    def _end_at(self, end: int) -> None:
        self.log_end_offset = end
        self.recovery_point = min(self.recovery_point, end)
        self.log_start_offset = min(self.log_start_offset, end)
        self.leader_epochs.truncate_from_end(end)
        self._load_latest_epoch()
        if self._unsynced_snapshots:
            self._unsynced_snapshots = [at for at in self._unsynced_snapshots if at <= end]
        if self.high_watermark > end:
            self.update_high_watermark(end)

    def _load_latest_epoch(self) -> None:
        latest = self.leader_epochs.latest_epoch
        self._latest_leader_epoch = -1 if latest is None else latest

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`. Blocks for the disk.

        Raises:
            DiskError: The disk refused.
        """
        self._generation += 1
        for segment in reversed(list(self._segments)):
            self._remove_now(segment)
        self._segments.add(self._create_segment(offset))
        self._filesystem.sync_directory(self.directory)
        self.log_start_offset = offset
        self.leader_epochs.clear()
        self.producer_state.truncate_fully_and_start_at(offset)
        self._end_at(offset)
        self.high_watermark = offset
        self.recovery_point = offset

    def _remove_now(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.delete_files()
        self.producer_state.delete_snapshot(segment.base_offset)

    # -- cutting at the start ----------------------------------------------------------------

    def delete_records(self, before_offset: int) -> int:
        """Move the log start offset up (DeleteRecords, KIP-107); segments go at the next pass.

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

    def delete_old_segments(self) -> int:
        """Apply retention: see `storage.retention`. May roll the active segment, never deletes it.

        The files get the suffix `.deleted`; `remove_deleted_files` removes them later.

        Returns:
            How many segments left the log.

        Raises:
            DiskError: The disk refused.
        """
        self._check_failure()
        plan = plan_retention(
            tuple(self._segments),
            self.config,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            log_end_offset=self.log_end_offset,
            now_ms=self._clock.now_ms(),
            remote_storage=self.config.remote_storage_enable,
            highest_remote_offset=self.highest_remote_offset,
        )
        count = len(plan)
        if plan.roll_active:
            # As in Kafka, what goes must not be the active one: a new one takes its place.
            self.roll()
            count += 1
        if count == 0:
            return 0
        for segment in list(self._segments)[:count]:
            self._retire(segment)
            self.producer_state.delete_snapshot(segment.base_offset)
        if not self.config.remote_storage_enable:
            self.delete_records(max(self._segments[0].base_offset, self.log_start_offset))
        return count

    def _retire(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.close()
        segment.rename_stage(DELETED_SUFFIX)
        self._directory_changed = True
        if self._deleted is None:
            self._deleted = deque()
        due = self._clock.monotonic_ms() + self.config.file_delete_delay_ms
        self._deleted.append((due, segment))

    def remove_deleted_files(self, *, now: bool = False) -> int:
        """Remove files whose segments left the log `file.delete.delay.ms` ago (all if `now`).

        May be called in a thread.

        Returns:
            How many segments' files were removed.

        Raises:
            DiskError: The disk refused.
        """
        waiting = self._deleted
        limit = float("inf") if now else self._clock.monotonic_ms()
        count = 0
        while waiting and waiting[0][0] <= limit:
            waiting.popleft()[1].delete_files()
            count += 1
        return count

    def replace_segments(self, base_offset: int, replaced: Sequence[int]) -> None:
        """Put the finished, synced `.cleaned` segment at `base_offset` in place of others.

        Args:
            base_offset: Of the new segment, and of the first one it replaces.
            replaced: Base offsets of all segments it stands for, ascending; never the active one.

        Raises:
            DiskError: The disk refused; the next start puts it right.
            LogDirectoryOfflineError: The log is out of service.
        """
        self._check_failure()
        old = [segment for segment in self._segments if segment.base_offset in set(replaced)]
        assert len(old) == len(replaced), (base_offset, replaced)
        assert self._segments.active not in old, base_offset
        path = f"{self.directory}/{log_file_name(base_offset, LOG_SUFFIX, CLEANED_SUFFIX)}"
        index = log_file_name(base_offset, TRANSACTION_INDEX_SUFFIX, CLEANED_SUFFIX)
        segment = Segment(
            self.directory,
            base_offset,
            self._filesystem,
            index_interval_bytes=self.config.index_interval_bytes,
            index_max_bytes=self.config.segment_index_bytes,
            size=self._filesystem.file_size(path),
            created_ms=self._clock.now_ms(),
            has_transaction_index=self._filesystem.exists(f"{self.directory}/{index}"),
            stage=CLEANED_SUFFIX,
        )
        # Each step is one that a start after a crash can finish or undo: see storage.recovery.
        segment.rename_stage(SWAP_SUFFIX)
        self._filesystem.sync_directory(self.directory)
        for retired in old:
            self._retire(retired)
            if retired.base_offset != base_offset:
                self.producer_state.delete_snapshot(retired.base_offset)
        segment.rename_stage("")
        self._filesystem.sync_directory(self.directory)
        self._segments.add(segment)

    # -- closing -----------------------------------------------------------------------------

    def close(self, *, clean: bool = True) -> None:
        """Give back descriptors. A clean close makes everything durable first, and may block.

        Raises:
            DiskError: The disk refused: the stop was not a clean one.
        """
        if clean and self.failure is None:
            active = self._segments.active
            changed = active.seal()
            self._take_snapshot(self.log_end_offset)
            if changed or self._directory_changed or self.log_end_offset > self.recovery_point:
                self._directory_changed = True
                ticket = self._make_ticket(self.log_end_offset)
                if changed:
                    ticket.side_files += (active.offset_index, active.time_index)
                ticket.run()
                self.finish_flush(ticket)
        for segment in self._segments:
            segment.close()

    def rename_directory(self, directory: str) -> None:
        """The directory gets a new name, e.g. `-delete`; open files and slices stay valid.

        Raises:
            DiskError: The disk refused.
        """
        self._filesystem.rename(self.directory, directory)
        self.directory = directory
        for segment in self._segments:
            segment.move_to(directory)
        for _, segment in self._deleted or ():
            segment.move_to(directory)

    def delete(self) -> None:
        """Close, and remove the directory with everything in it. Blocks for the disk.

        Raises:
            DiskError: The disk refused.
        """
        self.close(clean=False)
        self._filesystem.rmtree(self.directory)


# The leader has applied the topic's limits; they may have changed since, and are not ours to apply.
_FOLLOWER_VALIDATOR: Final = BatchValidator(
    TopicConfig(
        max_message_bytes=0x7FFF_FFFF,
        segment_bytes=0x7FFF_FFFF,
        message_timestamp_after_max_ms=0x7FFF_FFFF_FFFF_FFFF,
    )
)
