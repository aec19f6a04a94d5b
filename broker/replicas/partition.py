"""A partition that this broker leads: fencing, appends, high watermark, and waiting requests.

On one replica a batch is committed as soon as it is in the log - or, with `flush.messages` reached,
as soon as it is on disk: then the high watermark waits for the flush, so that records which a power
cut could lose are neither acknowledged nor readable.

    append ──> log ──(nothing to flush)──────────────> high watermark = log end ──> wake fetches
                │ └──(flush.messages reached)──> GroupCommit ──fdatasync done──┘
                └─(queued)─> PartitionWrites ──written─> as above

Queued records are not in the file yet: the log end offset, and with it the high watermark, moves
when the directory's thread has written them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker.replicas.group_commit import GroupCommit
from broker.replicas.partition_writes import PartitionWrites
from broker.replicas.preparation import Preparation
from broker.runtime.errors import ApiError
from broker.runtime.watchers import Waker, Watchers
from protocol.error_codes import ErrorCode
from protocol.records.control import MARKER_SIZE
from storage.types.append_origin import AppendOrigin

if TYPE_CHECKING:
    from uuid import UUID

    from broker.network.connection import Connection
    from broker.runtime.directory_writer import DirectoryWriter
    from broker.runtime.disk import Disk
    from broker.runtime.timer import Timer
    from storage.errors import DiskError
    from storage.log.log import AppendInfo, Log
    from storage.log.write_queue import BorrowedMemory
    from storage.producers.verification import TransactionTerms
    from storage.types.topic_partition import TopicPartition
    from storage.types.transaction_marker import TransactionMarker

NO_LEADER_EPOCH = -1


class TopicStats:
    """Counters of a topic, over all its partitions here; read at scrape time."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.messages_in = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0


class Partition:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_on_disk_failure",
        "_wake",
        "_waker",
        "commit",
        "fetch_watchers",
        "gone",
        "leader_epoch",
        "log",
        "lost_from",
        "preparation",
        "produce_watchers",
        "stats",
        "topic_id",
        "topic_partition",
        "wake_due",
        "writes",
    )

    def __init__(
        self,
        topic_partition: "TopicPartition",
        topic_id: "UUID",
        log: "Log",
        *,
        leader_epoch: int,
        stats: TopicStats,
        disk: "Disk",
        timer: "Timer",
        wake: "Callable[[Partition], None]",
        waker: Waker,
        on_disk_failure: "Callable[[Partition, DiskError], None]",
        writer: "DirectoryWriter | None" = None,
    ) -> None:
        """`writer`: of the log's directory; without one appends write in place."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.stats = stats
        self.fetch_watchers: Watchers | None = None
        self.produce_watchers: Watchers | None = None
        # Error code for waiting requests, once it is not served here any more.
        self.gone = ErrorCode.NONE
        # While they are answered: records from this offset on will not be written.
        self.lost_from: int | None = None
        self.commit = GroupCommit(log, disk, self._flushed, self._flush_failed, timer)
        self.writes: PartitionWrites | None = None
        if writer is not None:
            self.writes = PartitionWrites(log, writer, self._written, self._write_failed)
        self.preparation: Preparation | None = None
        self.wake_due = False
        self._wake = wake
        self._waker = waker
        self._on_disk_failure = on_disk_failure

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Fence a client whose leader epoch is older or newer than ours (KIP-320).

        Raises:
            ApiError: FENCED_LEADER_EPOCH (client refreshes its metadata), or UNKNOWN_LEADER_EPOCH
                (client retries until this broker has caught up).
        """
        if current_leader_epoch == NO_LEADER_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        *,
        prepared: bool = False,
        terms: "TransactionTerms | None" = None,
        memory: "BorrowedMemory | None" = None,
    ) -> "AppendInfo":
        """Append batches; the caller then checks `is_committed(info.last_offset + 1)`.

        Args:
            records: As `Log.append_as_leader` has it.
            now_ms: Milliseconds since 1970 UTC.
            origin: Of the batches.
            prepared: They come out of the log's `preparation`.
            terms: The batch's transaction, as verified.
            memory: Where the records lie, if they may be left there while they are queued.

        Raises:
            BatchError, ProducerError, DirectoryBusyError: Refused, nothing was written.
            DiskError: The directory has failed.
        """
        log = self.log
        info = log.writer.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            prepared=prepared,
            terms=terms,
            memory=memory,
        )
        if info.duplicate:
            return info
        stats = self.stats
        stats.bytes_in += len(records)
        stats.messages_in += info.last_offset - info.first_offset + 1
        if log.write_queue is not None:
            assert self.writes is not None
            self.writes.pump()
        elif log.flusher.needs_flush or log.high_watermark < info.first_offset:
            # Also when records before these still wait for the disk, `flush.messages` having been
            # raised meanwhile: they must not be committed by the way.
            self.commit.request()
        else:
            self._advance(log.log_end_offset)
        return info

    def append_markers(self, markers: "Sequence[TransactionMarker]", now_ms: int) -> int:
        """Append markers as `Log.append_markers` does; the caller then checks `is_committed`.

        Returns:
            The first one's offset; the others follow on it.

        Raises:
            DiskError: The directory has failed.
        """
        log = self.log
        first_offset = log.markers.append(markers, leader_epoch=self.leader_epoch, now_ms=now_ms)
        stats = self.stats
        stats.bytes_in += len(markers) * MARKER_SIZE
        stats.messages_in += len(markers)
        if log.write_queue is not None:
            assert self.writes is not None
            self.writes.pump()
        elif log.flusher.needs_flush or log.high_watermark < first_offset:
            self.commit.request()
        else:
            self._advance(log.log_end_offset)
        return first_offset

    def pump(self) -> None:
        """Write records that the log may have queued."""
        if self.writes is not None:
            self.writes.pump()

    @property
    def is_congested(self) -> bool:
        """Whether so many bytes wait for its directory that clients are to be throttled."""
        return self.writes is not None and self.writes.writer.pace.is_congested

    def hold_back(self, connection: "Connection") -> None:
        """Pause a client's connection until fewer bytes wait."""
        if self.writes is not None:
            connection.wait_for_disk(self.writes.writer.when_uncongested)

    def is_committed(self, end_offset: int) -> bool:
        """Whether everything below `end_offset` may be acknowledged."""
        return self.log.high_watermark >= end_offset

    def _written(self, former_end_offset: int) -> None:
        """Advance the high watermark: the log end offset has moved, queued records are written."""
        log = self.log
        if log.flusher.needs_flush or log.high_watermark < former_end_offset:
            self.commit.request()
        else:
            self._advance(log.log_end_offset)

    async def idle(self) -> None:
        """Wait until no write or flush is under way: the log's files are about to be deleted."""
        if self.writes is not None:
            await self.writes.idle()
        await self.commit.idle()

    def _flushed(self, end_offset: int) -> None:
        """Advance the high watermark after a group commit: `end_offset` is flushed."""
        if end_offset > self.log.high_watermark:
            self._advance(end_offset)
        if self.produce_watchers is not None:
            self.produce_watchers.check()

    def _flush_failed(self, error: "DiskError") -> None:
        """Fail all waiting appends: their records may not be on disk."""
        if self.produce_watchers is not None:
            self.produce_watchers.check()
        self._on_disk_failure(self, error)

    def _write_failed(self, error: "DiskError") -> None:
        """Fail the appends of queued records, which are lost.

        If there was only no room, their offsets are assigned again.
        """
        if self.log.failure is not None:
            self.commit.failed = True
        self.lost_from = self.log.log_end_offset
        try:
            if self.produce_watchers is not None:
                self.produce_watchers.try_all()
        finally:
            self.lost_from = None
        self._on_disk_failure(self, error)

    def _advance(self, offset: int) -> None:
        self.log.update_high_watermark(offset)
        if self.fetch_watchers is not None and not self.wake_due:
            self.wake_due = True
            self._wake(self)
        if self.produce_watchers is not None:
            self.produce_watchers.check()

    def wake_fetches(self) -> None:
        """Try waiting fetches again: the log start offset has moved."""
        if self.fetch_watchers is not None and not self.wake_due:
            self.wake_due = True
            self._wake(self)

    def watch_fetch(self) -> Watchers:
        """Requests that wait for records."""
        if self.fetch_watchers is None:
            self.fetch_watchers = Watchers(self._waker)
        return self.fetch_watchers

    def watch_produce(self) -> Watchers:
        """Requests that wait for the high watermark."""
        if self.produce_watchers is None:
            self.produce_watchers = Watchers(self._waker)
        return self.produce_watchers
