"""Appending to a log: validate, assign offsets, write, update producer state and indexes.

    validator ──> producer check ──> epoch ──> patch ──> roll? ──> one write ──> producer, indexes
                                                  └──> queued ──> producer ·····> write ──> indexes

Nothing changes before the last check has passed; the log end offset moves after the write. What a
thread writes (`storage.log.write_behind`) has its offsets and is in the producer state before that:
large batches, all of a slow directory, rolls, the first batch of an epoch, and whatever comes while
others are queued.

Source: Kafka, UnifiedLog.java (append, maybeRoll).
"""

from collections.abc import Callable, Sequence
from typing import Final

from config.topic import TopicConfig
from protocol.quick import place_batch
from protocol.records.batch import (
    ATTRIBUTES_FIELD,
    BASE_SEQUENCE_FIELD,
    BATCH_LENGTH_FIELD,
    CONTROL_BIT,
    LAST_OFFSET_DELTA_FIELD,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_FIELD,
    PRODUCER_EPOCH_FIELD,
    PRODUCER_ID_FIELD,
    TRANSACTIONAL_BIT,
)
from storage.errors import DiskError
from storage.index.transaction_index import AbortedTxn
from storage.log.directory_pace import COPY_MAX_S, LATE_S
from storage.log.disk_work import LogDiskWork
from storage.log.flush import LogFlusher
from storage.log.recovery.segment_recovery import read_control
from storage.log.roll import SegmentRoller
from storage.log.state import LogState
from storage.log.validator import BatchValidator, HeaderFields, headers_of
from storage.log.write_behind import WriteBehind
from storage.log.write_queue import BorrowedMemory, QueuedWrite
from storage.producers.entry import DuplicateInfo
from storage.producers.verification import TransactionTerms
from storage.segment.batch_append import BatchAppend, max_timestamp_of
from storage.segment.segment import Segment
from storage.types.append_info import AppendInfo
from storage.types.append_origin import AppendOrigin

_place_batch: Final = place_batch
_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_CLIENT: Final = AppendOrigin.CLIENT
_COORDINATOR: Final = AppendOrigin.COORDINATOR


class LogWriter:
    """Appends batches to one log.

    Owns the topic's validator and the limits of a segment. It moves the log end offset, and with it
    the producer state, the leader epochs and the active segment. The partition calls it on the
    owner's thread, coordinators through the partition, the follower's fetcher likewise; nothing
    here awaits. On the path of a Produce a batch costs no call of another part, but the producer
    state's and the segment's, unless it is queued or begins a segment.
    """

    __slots__ = (
        "_behind",
        "_disk_work",
        "_flusher",
        "_roller",
        "_segment_bytes",
        "_segment_ms",
        "_state",
        "_validator",
    )

    def __init__(
        self,
        state: LogState,
        flusher: LogFlusher,
        roller: SegmentRoller,
        behind: WriteBehind,
        disk_work: LogDiskWork,
    ) -> None:
        self._state = state
        self._flusher = flusher
        self._roller = roller
        self._behind = behind
        self._disk_work = disk_work
        self.configure(state.config)

    def configure(self, config: TopicConfig) -> None:
        """The topic's settings have changed; they hold from the next append on."""
        self._validator = BatchValidator(config)
        self._segment_bytes = config.segment_bytes
        self._segment_ms = config.segment_ms

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = _CLIENT,
        verify: bool = True,
        prepared: bool = False,
        terms: TransactionTerms | None = None,
        memory: BorrowedMemory | None = None,
    ) -> AppendInfo:
        """Validate produced batches, assign offsets and write them to the active segment.

        Not yet committed: consumers see the records once the high watermark has passed them; nor
        written yet, where `write_queue` is not None afterwards: ask `LogDiskWork.begin` then. Only
        base offset and leader epoch are rewritten; both lie before the bytes that the CRC covers.
        With LogAppendTime the time is set, and the CRC computed again.

        Args:
            records: One or more whole batches, writable; patched in place and not kept. After an
                error its content is undefined.
            leader_epoch: Epoch of this leader (KIP-101), 0 or above.
            now_ms: Milliseconds since 1970 UTC.
            origin: Their source, which decides what is checked. A coordinator's single batch was
                made in this process: its CRC is not checked.
            verify: Check the CRC; False only for batches made in this process.
            prepared: The batches come out of `preparation`: only the time is still to be set.
            terms: What is known of the batch's transaction.
            memory: Where the records lie, if they may be left there until a thread has written
                them; else they are copied for it.

        Returns:
            Offsets given, both inclusive. For a batch that is in the log already, those it got the
            first time: a retry gets the original's answer (KIP-98).

        Raises:
            BatchError: Refused (see `storage.log.validator`); nothing was written.
            ProducerError: The producer's state does not allow it; nothing was written.
            DirectoryBusyError: Too much waits for the disk; nothing was written.
            DiskError: The disk refused. Nothing was written, or what was is never acknowledged.
        """
        if self._state.refusal is not None:
            self._state.check_refusal()
        append_time_ms = -1
        if prepared:
            headers = headers_of(records)
            if self._validator.log_append_time:
                headers = self._validator.stamp(records, headers, now_ms)
                append_time_ms = now_ms
            return self._append_headed(
                records, headers, leader_epoch, origin, append_time_ms, terms, memory
            )
        if origin is _COORDINATOR:
            fields = self._validator.check_own(records, now_ms)
            if fields is not None:
                return self._append_one(records, fields, leader_epoch, origin, -1, terms, memory)
        elif origin is _CLIENT and verify and not self._validator.is_special:
            fields = self._validator.check_plain(records, now_ms)
            if fields is not None:
                return self._append_one(records, fields, leader_epoch, origin, -1, terms, memory)
        headers = self._validator.check(records, now_ms, origin, verify)
        if self._validator.is_special:
            records, headers = self._validator.prepare(records, headers, now_ms, origin)
            if self._validator.log_append_time:
                append_time_ms = now_ms
        if len(headers) == 1:
            return self._append_one(
                records, headers[0], leader_epoch, origin, append_time_ms, terms, memory
            )
        return self._append_several(
            records, headers, leader_epoch, origin, append_time_ms, terms, memory
        )

    @property
    def log_append_time(self) -> bool:
        """`message.timestamp.type` is LogAppendTime."""
        return self._validator.log_append_time

    @property
    def works_by_record(self) -> bool:
        """The topic's settings cost CPU by the record: see `preparation`."""
        return self._validator.works_by_record

    def preparation(self) -> Callable[[memoryview, int], memoryview]:
        """What `append_as_leader(prepared=True)` leaves out, as a function for a thread.

        It takes a client's batches and the wall clock, and returns what is to be appended, or
        raises BatchError as the append would.
        """
        return self._validator.prepare_batches

    def _append_headed(
        self,
        records: memoryview,
        headers: list[HeaderFields],
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
        terms: TransactionTerms | None,
        memory: BorrowedMemory | None,
    ) -> AppendInfo:
        if len(headers) > 1:
            return self._append_several(
                records, headers, leader_epoch, origin, append_time_ms, terms, memory
            )
        return self._append_one(
            records, headers[0], leader_epoch, origin, append_time_ms, terms, memory
        )

    def _append_one(
        self,
        records: memoryview,
        fields: HeaderFields,
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
        terms: TransactionTerms | None,
        memory: BorrowedMemory | None,
    ) -> AppendInfo:
        """Write one batch that the validator has seen, or queue it."""
        state = self._state
        queue = state.write_queue
        first_offset = state.log_end_offset if queue is None else queue.next_offset
        length = fields[BATCH_LENGTH_FIELD]
        last_offset = first_offset + fields[LAST_OFFSET_DELTA_FIELD]
        max_timestamp = fields[MAX_TIMESTAMP_FIELD]
        producer_id = fields[PRODUCER_ID_FIELD]
        marker: tuple[int, int] | None = None
        if producer_id >= 0:
            if fields[ATTRIBUTES_FIELD] & CONTROL_BIT:
                marker = read_control(records)
            duplicate = self._check_producer(fields, origin, marker, terms)
            if duplicate is not None:
                return AppendInfo(
                    duplicate.first_offset,
                    duplicate.last_offset,
                    duplicate.timestamp if append_time_ms >= 0 else -1,
                    state.log_start_offset,
                    True,
                )
        size = length + LOG_OVERHEAD
        segment = state.segments.active
        first_timestamp = segment.known_first_timestamp
        pace = state.pace
        if queue is not None or size > pace.inline_bytes_max:
            behind = True
        elif leader_epoch != state.latest_leader_epoch:
            behind = pace.has_writer
            if not behind:
                self._assign_leader_epoch(leader_epoch, first_offset)
        else:
            behind = False
        if not behind and (
            # First of all: one that was not written to since the start has nothing in memory.
            segment.needs_roll
            or first_timestamp is None
            or segment.size + size > self._segment_bytes
            or segment.size == 0
            or first_timestamp < 0
            or max_timestamp - first_timestamp > self._segment_ms - segment.roll_jitter_ms
            or last_offset - segment.base_offset > _SEQUENCE_MASK
        ):
            if not pace.has_writer:
                segment = self._roller.maybe_roll(
                    segment, size, first_offset, last_offset, max_timestamp
                )
            else:
                behind = not segment.is_warm or self._roller.must_roll(
                    segment, size, last_offset, max_timestamp
                )
        if behind:
            return self._append_one_behind(
                records, fields, first_offset, leader_epoch, origin, append_time_ms, marker, memory
            )
        _place_batch(records, 0, first_offset, length, leader_epoch)
        began_s = pace.now_s()
        try:
            segment.append(records, size, last_offset, max_timestamp)
        except DiskError as error:
            self._undo_write(segment, error)
            raise
        took_s = pace.now_s() - began_s
        if took_s > LATE_S:
            pace.wrote_inline(took_s * 1000.0, size)
        pace.written += size
        if pace.written >= pace.watch_at:
            pace.watch(segment)
        state.log_end_offset = last_offset + 1
        if producer_id >= 0:
            aborted = self._update_producer(fields, first_offset, marker)
            if aborted is not None:
                self.index_aborted(segment, (aborted,))
        else:
            state.producer_state.map_end_offset = last_offset + 1
        return AppendInfo(first_offset, last_offset, append_time_ms, state.log_start_offset, False)

    def _append_one_behind(
        self,
        records: memoryview,
        fields: HeaderFields,
        first_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
        marker: tuple[int, int] | None,
        memory: BorrowedMemory | None,
    ) -> AppendInfo:
        """Queue one batch that its producer's state allows."""
        _, length, _, _, _, _, delta, _, max_timestamp, producer_id, _, _, _ = fields
        size = length + LOG_OVERHEAD
        last_offset = first_offset + delta
        if origin is _CLIENT:
            self._behind.check_room(size)
        epochs = self._begin_epoch_behind(leader_epoch, first_offset)
        _place_batch(records, 0, first_offset, length, leader_epoch)
        write = self._behind.queue(
            records, first_offset, [BatchAppend(size, last_offset, max_timestamp)], memory
        )
        write.epochs = epochs
        if producer_id >= 0:
            aborted = self._update_producer(fields, first_offset, marker)
            if aborted is not None:
                write.aborted = [aborted]
        else:
            self._state.producer_state.map_end_offset = last_offset + 1
        return AppendInfo(
            first_offset, last_offset, append_time_ms, self._state.log_start_offset, False
        )

    def _begin_epoch_behind(self, leader_epoch: int, first_offset: int) -> bytes | None:
        """Note a new epoch; what the queued write must have written before it."""
        state = self._state
        if not self._must_write_epochs(leader_epoch):
            return None
        state.latest_leader_epoch = leader_epoch
        return state.leader_epochs.assign_unsaved(leader_epoch, first_offset)

    def _append_several(
        self,
        records: memoryview,
        headers: list[HeaderFields],
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
        terms: TransactionTerms | None,
        memory: BorrowedMemory | None,
    ) -> AppendInfo:
        state = self._state
        if any(fields[PRODUCER_ID_FIELD] >= 0 for fields in headers):
            return self._append_one_by_one(
                records, headers, leader_epoch, origin, append_time_ms, terms, memory
            )
        if origin is _CLIENT and self._goes_behind(len(records), leader_epoch):
            self._behind.check_room(len(records))
        first_offset = offset = state.next_offset
        position = 0
        batches = []
        for _, length, _, _, _, _, delta, _, max_timestamp, _, _, _, _ in headers:
            _place_batch(records, position, offset, length, leader_epoch)
            size = length + LOG_OVERHEAD
            batches.append(BatchAppend(size, offset + delta, max_timestamp))
            offset += delta + 1
            position += size
        self.write_several(records, first_offset, batches, leader_epoch, memory)
        state.producer_state.map_end_offset = offset
        return AppendInfo(first_offset, offset - 1, append_time_ms, state.log_start_offset, False)

    def _append_one_by_one(
        self,
        records: memoryview,
        headers: list[HeaderFields],
        leader_epoch: int,
        origin: AppendOrigin,
        append_time_ms: int,
        terms: TransactionTerms | None,
        memory: BorrowedMemory | None,
    ) -> AppendInfo:
        """Idempotent batches in one call: each is checked against the ones before it.

        No client since Produce v3 sends several batches for one partition.
        """
        infos = []
        position = 0
        for fields in headers:
            end = position + fields[BATCH_LENGTH_FIELD] + LOG_OVERHEAD
            batch = records[position:end]
            infos.append(
                self._append_one(batch, fields, leader_epoch, origin, append_time_ms, terms, memory)
            )
            position = end
        return AppendInfo(
            infos[0].first_offset,
            infos[-1].last_offset,
            append_time_ms,
            self._state.log_start_offset,
            all(info.duplicate for info in infos),
        )

    def _check_producer(
        self,
        fields: HeaderFields,
        origin: AppendOrigin,
        marker: tuple[int, int] | None,
        terms: TransactionTerms | None,
    ) -> DuplicateInfo | None:
        attributes = fields[ATTRIBUTES_FIELD]
        base_sequence = fields[BASE_SEQUENCE_FIELD]
        last_sequence = base_sequence + fields[LAST_OFFSET_DELTA_FIELD]
        return self._state.producer_state.check(
            fields[PRODUCER_ID_FIELD],
            fields[PRODUCER_EPOCH_FIELD],
            base_sequence,
            -1 if base_sequence < 0 else last_sequence & _SEQUENCE_MASK,
            attributes & TRANSACTIONAL_BIT != 0,
            attributes & CONTROL_BIT != 0,
            origin,
            marker[1] if marker is not None else -1,
            terms,
        )

    def _update_producer(
        self, fields: HeaderFields, first_offset: int, marker: tuple[int, int] | None
    ) -> AbortedTxn | None:
        """A batch of a producer has its place: what is to go into the transaction index."""
        state = self._state.producer_state
        attributes = fields[ATTRIBUTES_FIELD]
        delta = fields[LAST_OFFSET_DELTA_FIELD]
        max_timestamp = fields[MAX_TIMESTAMP_FIELD]
        producer_id = fields[PRODUCER_ID_FIELD]
        epoch = fields[PRODUCER_EPOCH_FIELD]
        base_sequence = fields[BASE_SEQUENCE_FIELD]
        last_offset = first_offset + delta
        if not attributes & CONTROL_BIT:
            state.append(
                producer_id,
                epoch,
                base_sequence,
                -1 if base_sequence < 0 else (base_sequence + delta) & _SEQUENCE_MASK,
                first_offset,
                last_offset,
                max_timestamp,
                attributes & TRANSACTIONAL_BIT != 0,
            )
            return None
        state.map_end_offset = last_offset + 1
        if marker is None:
            return None
        completed = state.append_control(
            producer_id, epoch, marker[0], marker[1], first_offset, max_timestamp
        )
        if completed is None:
            return None
        stable = state.complete_transaction(completed)
        if not completed.is_aborted:
            return None
        return AbortedTxn(
            completed.producer_id, completed.first_offset, completed.last_offset, stable
        )

    def index_aborted(self, segment: Segment, aborted: Sequence[AbortedTxn]) -> None:
        """Note transactions whose abort markers are in the log: they are aborted, come what may."""
        self._flusher.directory_changed = True
        try:
            segment.transaction_index.extend(aborted)
        except DiskError as error:
            if error.is_disk_failure:
                raise
            # Readers get it from memory. Nothing is written behind it before it is on disk.
            segment.transaction_index.keep(aborted)
            self._state.refuse_appends(error)

    def _goes_behind(self, size: int, leader_epoch: int, *, is_fetched: bool = False) -> bool:
        state = self._state
        pace = state.pace
        return (
            state.write_queue is not None
            or size > (pace.fetched_inline_bytes_max if is_fetched else pace.inline_bytes_max)
            or (pace.has_writer and self._must_write_epochs(leader_epoch))
        )

    def _must_write_epochs(self, leader_epoch: int) -> bool:
        """Whether their checkpoint is to be written before a batch of this epoch."""
        state = self._state
        return leader_epoch != state.latest_leader_epoch or state.leader_epochs.is_ahead_on_disk

    def write_several(
        self,
        records: memoryview,
        first_offset: int,
        batches: list[BatchAppend],
        leader_epoch: int,
        memory: BorrowedMemory | None = None,
        *,
        is_fetched: bool = False,
    ) -> Segment | QueuedWrite:
        """Write validated batches that have their offsets, or queue them: where they are then.

        `is_fetched`: a follower has them from its leader; see `storage.log.directory_pace`.
        """
        state = self._state
        behind = self._goes_behind(len(records), leader_epoch, is_fetched=is_fetched)
        if not behind and state.pace.has_writer:
            segment = state.segments.active
            max_timestamp = max_timestamp_of(batches)
            behind = not segment.is_warm or self._roller.must_roll(
                segment, len(records), batches[-1].last_offset, max_timestamp
            )
        if behind:
            epochs = self._begin_epoch_behind(leader_epoch, first_offset)
            write = self._behind.queue(records, first_offset, batches, memory)
            write.epochs = epochs
            return write
        if self._must_write_epochs(leader_epoch):
            self._assign_leader_epoch(leader_epoch, first_offset)
        pace = state.pace
        began_s = pace.now_s()
        segment = self._write_here(records, first_offset, batches)
        took_s = pace.now_s() - began_s
        if took_s > COPY_MAX_S:
            pace.wrote_inline(took_s * 1000.0, len(records))
        pace.written += len(records)
        if pace.written >= pace.watch_at:
            pace.watch(segment)
        return segment

    def _write_here(
        self, records: memoryview, first_offset: int, batches: list[BatchAppend]
    ) -> Segment:
        size = len(records)
        last_offset = batches[-1].last_offset
        max_timestamp = max_timestamp_of(batches)
        segment = self._roller.maybe_roll(
            self._state.segments.active, size, first_offset, last_offset, max_timestamp
        )
        try:
            segment.append_batches(records, batches)
        except DiskError as error:
            self._undo_write(segment, error)
            raise
        self._state.log_end_offset = last_offset + 1
        return segment

    def _undo_write(self, segment: Segment, reason: DiskError) -> None:
        """An append has failed: no part of it may be taken for log, should the file be used again.

        The one place that undoes it. Nothing else has changed by then: offsets, index entries and
        the producers' state are kept after the write. Where the file cannot be cut now the log
        takes no records before it could be; where it never can the log is out of service.
        """
        if reason.is_descriptor_limit:
            # The file could not be opened: nothing was written.
            return
        try:
            segment.undo_append()
        except DiskError as error:
            if error.is_disk_failure:
                self._state.fail(error)
            else:
                self._state.refuse_appends(error)

    def _assign_leader_epoch(self, epoch: int, start_offset: int) -> None:
        # On disk before the first batch that carries it: recovery relies on that.
        self._state.leader_epochs.assign(epoch, start_offset)
        self._state.latest_leader_epoch = epoch

    def roll(self) -> None:
        """Close the active segment and begin a new one at the log end offset.

        Nothing happens while the active segment is empty. The old one is not on disk yet: flush up
        to `active_base_offset` to advance the recovery point to it.

        Raises:
            DiskError: The disk refused; the old segment stays active.
        """
        assert not self._disk_work.is_under_way, "what is written now would lie behind the segment"
        self._disk_work.write_queued()
        if self._state.segments.active.size:
            self._roller.roll_to(self._state.log_end_offset)
