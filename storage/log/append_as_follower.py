"""Appending what a leader has given: batches as they are, offsets and leader epochs included.

    check every batch ──> runs of one leader epoch ──> one write each ──> producers, aborted index
      whole? magic, CRC-32C, offsets ascend, epochs do not go back

All batches are judged before the first is written. What a leader's log lacks inside, because it was
compacted, this one lacks too: a gap is taken over as it is when the batches were fetched from
exactly this log's end, and at no other time. The last batch may be cut off: a Fetch is limited in
bytes, not in batches; that part is left for the next one.

Source: Kafka, UnifiedLog.java (appendAsFollower, analyzeAndValidateRecords), Partition.scala
(doAppendRecordsToFollowerOrFutureReplica).
"""

from typing import Final

from protocol.records.batch import (
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc32c,
)
from storage.errors import CorruptBatchError, FollowerOffsetError, InvalidRecordError
from storage.index.transaction_index import AbortedTxn
from storage.log.append import LogWriter
from storage.log.recovery.segment_recovery import read_control
from storage.log.state import LogState
from storage.log.validator import HeaderFields
from storage.log.write_queue import BorrowedMemory, QueuedWrite
from storage.segment.batch_append import BatchAppend
from storage.segment.segment import Segment
from storage.types.append_info import AppendInfo

_unpack: Final = HEADER.unpack_from

ANY_EPOCH: Final = 0x7FFF_FFFF
"""The leader epoch of batches is not compared with that of the leader: a copy of another log."""


class _Run:
    """Batches of one leader epoch, one after the other: what is written in one call.

    Attributes:
        leader_epoch: Of all of them.
        start: Where the first one begins in the records.
        batches: For the indexes.
        headers: (position, header) of those with a producer id.
    """

    __slots__ = ("batches", "first_offset", "headers", "leader_epoch", "start")

    def __init__(self, leader_epoch: int, start: int, first_offset: int) -> None:
        self.leader_epoch = leader_epoch
        self.start = start
        self.first_offset = first_offset
        self.batches: list[BatchAppend] = []
        self.headers: list[tuple[int, BatchHeader]] = []


class FollowerWriter:
    """Appends fetched batches to one log.

    Owns nothing: the writer writes. The follower's partition calls it on the owner's thread.
    """

    __slots__ = ("_state", "_writer")

    def __init__(self, state: LogState, writer: LogWriter) -> None:
        self._state = state
        self._writer = writer

    def append(
        self,
        records: memoryview,
        *,
        fetch_offset: int | None = None,
        leader_epoch: int = ANY_EPOCH,
        memory: BorrowedMemory | None = None,
    ) -> AppendInfo | None:
        """Write batches as the leader gave them; nothing of them is changed.

        They are not written yet where `write_queue` is not None afterwards, as with
        `LogWriter.append_as_leader`.

        Args:
            records: Batches, the last of which may be cut off.
            fetch_offset: What the leader was asked for; None: not known, and no gap is allowed for.
            leader_epoch: Of the leader that gave them; no batch is of a later one.
            memory: Where the records lie, if they may be left there until a thread has written
                them; else they are copied for it.

        Returns:
            Their offsets; None when no batch is whole.

        Raises:
            CorruptBatchError: A batch is damaged.
            InvalidRecordError: Offsets or leader epochs go back within the batches, or against the
                log's, or an epoch is later than the leader's.
            FollowerOffsetError: They do not follow on the log's end.
            DiskError: The disk refused. Batches of earlier epochs may have been written.
        """
        state = self._state
        if state.refusal is not None:
            state.check_refusal()
        end_offset = state.next_offset
        if fetch_offset is not None and fetch_offset != end_offset:
            raise FollowerOffsetError(fetch_offset, fetch_offset, end_offset)
        runs, size = self._check(records, end_offset, leader_epoch)
        if not runs:
            return None
        position = 0
        for number, run in enumerate(runs, 1):
            stop = runs[number].start if number < len(runs) else size
            where = self._writer.write_several(
                records[position:stop],
                run.first_offset,
                run.batches,
                run.leader_epoch,
                memory,
                is_fetched=True,
            )
            if run.headers:
                self._replay(records, run.headers, where)
            state.producer_state.map_end_offset = run.batches[-1].last_offset + 1
            position = stop
        return AppendInfo(
            runs[0].first_offset,
            runs[-1].batches[-1].last_offset,
            -1,
            state.log_start_offset,
            False,
        )

    def _check(
        self, records: memoryview, expected: int, leader_epoch: int
    ) -> tuple[list[_Run], int]:
        """Judge all whole batches; the runs they make, and where the last one ends."""
        total = len(records)
        latest_epoch = self._state.latest_leader_epoch
        log_end_offset = expected
        runs: list[_Run] = []
        position = 0
        while total - position >= HEADER_SIZE:
            fields: HeaderFields = _unpack(records, position)
            (
                base_offset,
                length,
                epoch,
                magic,
                crc,
                _,
                delta,
                _,
                max_timestamp,
                producer_id,
                _,
                _,
                _,
            ) = fields
            size = length + LOG_OVERHEAD
            if magic != MAGIC or size < HEADER_SIZE:
                raise CorruptBatchError(
                    f"fetched batch at offset {expected} has magic {magic} and {size} bytes"
                )
            end = position + size
            if end > total:
                break
            if crc32c(records[position + CRC_START : end]) != crc:
                raise CorruptBatchError(
                    f"CRC-32C of the fetched batch at offset {base_offset} is not {crc:#010x} as "
                    "it says"
                )
            if delta < 0:
                raise InvalidRecordError(f"batch has last offset delta {delta}")
            last_offset = base_offset + delta
            if base_offset < expected:
                if not runs:
                    raise FollowerOffsetError(base_offset, last_offset, log_end_offset)
                raise InvalidRecordError(
                    f"fetched batch begins at offset {base_offset}, before {expected}"
                )
            if epoch != latest_epoch or not runs:
                if epoch < latest_epoch or epoch > leader_epoch:
                    raise InvalidRecordError(
                        f"fetched batch at offset {base_offset} has leader epoch {epoch}; the one "
                        f"before it has {latest_epoch}, the leader is in {leader_epoch}"
                    )
                latest_epoch = epoch
                runs.append(_Run(epoch, position, base_offset))
            run = runs[-1]
            run.batches.append(BatchAppend(size, last_offset, max_timestamp))
            if producer_id >= 0:
                run.headers.append((position, BatchHeader._make(fields)))
            expected = last_offset + 1
            position = end
        return runs, position

    def _replay(
        self,
        records: memoryview,
        headers: list[tuple[int, BatchHeader]],
        where: Segment | QueuedWrite,
    ) -> None:
        """Give batches that have their place to the producer state and the transaction index."""
        producers = self._state.producer_state
        aborted: list[AbortedTxn] = []
        for position, header in headers:
            marker = None
            if header.attributes & CONTROL_BIT and header.records_count:
                end = position + header.batch_length + LOG_OVERHEAD
                marker = read_control(records[position:end])
            completed = producers.replay(header, marker)
            if completed is None:
                continue
            stable = producers.complete_transaction(completed)
            if completed.is_aborted:
                aborted.append(
                    AbortedTxn(
                        completed.producer_id, completed.first_offset, completed.last_offset, stable
                    )
                )
        if not aborted:
            return
        if isinstance(where, QueuedWrite):
            where.aborted = aborted
        else:
            self._writer.index_aborted(where, aborted)
