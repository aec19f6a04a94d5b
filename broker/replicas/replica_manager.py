"""The replica manager: the partitions of this broker, and all access to their logs.

Handlers and coordinators use it; no other part touches a `Partition`. What the local logs have no
longer is read by its `remote` (`broker.replicas.remote_reads`).

Source of the shape: Kafka, ReplicaManager.scala.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from posixpath import dirname
from typing import TYPE_CHECKING
from uuid import UUID

from broker.replicas.cold_reads import ColdReads, Done
from broker.replicas.delayed_produce import DelayedCommit
from broker.replicas.partition import NO_LEADER_EPOCH, Partition
from broker.replicas.partition_context import PartitionContext
from broker.replicas.preparation import Preparation, PreparationBudget
from broker.replicas.purgatory import ParkedByAddress, Purgatory
from broker.replicas.remote_reads import RemoteReads
from broker.replicas.topic_stats import TopicStats
from broker.replication.terms import ReplicationTerms
from broker.runtime.errors import ApiError, code_of
from broker.runtime.watchers import Waker
from protocol.error_codes import ErrorCode
from storage.environment.repeated_line import RepeatedLine
from storage.errors import CutSegmentError, DiskError, StorageError
from storage.index.reads import CachedReads, WouldBlockError
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker

if TYPE_CHECKING:
    from broker.replicas.leader_hints import LeaderHints
    from broker.runtime.directory_writer import DirectoryWriters
    from broker.runtime.disk import Disk
    from broker.runtime.timer import Timer
    from storage.environment.clock import Clock
    from storage.environment.filesystem import File
    from storage.log.log import Log

LOGGER = logging.getLogger(__name__)

DELAYED_PRODUCE_MAX = 100_000
DELAYED_FETCH_MAX = 100_000
DELAYED_DELETE_RECORDS_MAX = 1_000
PARKED_OF_AN_ADDRESS_MAX = DELAYED_FETCH_MAX // 4
"""Most parked polls of one address: there may be thousands of clients behind it, and three more
such addresses leave room for others."""
INTERNAL_APPEND_TIMEOUT_MS = 5_000.0
"""`offsets.commit.timeout.ms`' default: how long a coordinator waits for its own records."""


class ReplicaManager:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_clock",
        "_context",
        "_disk",
        "_led",
        "_loop",
        "_now_s",
        "_open",
        "_ready_to_wake",
        "_unread_line",
        "_writers",
        "call_soon",
        "cold_reads",
        "delayed_cold_fetch",
        "delayed_delete_records",
        "delayed_fetch",
        "delayed_produce",
        "delayed_remote_fetch",
        "is_known",
        "is_offline",
        "known_name",
        "leader_hints",
        "names_by_id",
        "on_cut_segment",
        "on_disk_failure",
        "parked_by_address",
        "preparation_budget",
        "remote",
        "roles_due",
        "stats",
        "terms",
        "timer",
        "waker",
    )

    def __init__(
        self,
        *,
        clock: "Clock",
        timer: "Timer",
        disk: "Disk",
        loop: asyncio.AbstractEventLoop,
        writers: "DirectoryWriters | None" = None,
    ) -> None:
        """`writers`: of the log directories; without them appends write in place."""
        self._clock = clock
        self._now_s = clock.monotonic_s
        self._writers = writers
        self._disk = disk
        self._loop = loop
        self.call_soon: Callable[[Callable[[], None]], object] = loop.call_soon
        self.timer = timer
        # By topic and index. What is led is open too; a request looks at one of them alone.
        self._open: dict[str, list[Partition | None]] = {}
        self._led: dict[str, list[Partition | None]] = {}
        self._ready_to_wake: list[Partition] = []
        self._unread_line = RepeatedLine(clock)
        self.is_known: Callable[[str, int], bool] = _nothing_known
        self.is_offline: Callable[[TopicPartition], bool] = _nothing_offline
        self.known_name: Callable[[bytes], str | None] = _no_name_known
        self.on_disk_failure: Callable[[Log, DiskError], None] = _ignore_failure
        # A reader was refused what is missing of a closed segment.
        self.on_cut_segment: Callable[[Partition, CutSegmentError], None] = _ignore_cut
        # Partitions whose roles are to be looked at, for a metric.
        self.roles_due: Callable[[], int] = _nothing_due
        # In a cluster: names the leader of what is not led here.
        self.leader_hints: LeaderHints | None = None
        self.names_by_id: dict[bytes, str] = {}
        self.preparation_budget = PreparationBudget()
        self.stats: dict[str, TopicStats] = {}
        self.delayed_produce = Purgatory("Produce", timer, capacity=DELAYED_PRODUCE_MAX)
        self.delayed_delete_records = Purgatory(
            "DeleteRecords", timer, capacity=DELAYED_DELETE_RECORDS_MAX
        )
        self.waker = Waker(self.call_soon, clock)
        self.terms = ReplicationTerms()
        self._context = PartitionContext(
            clock=clock,
            timer=timer,
            waker=self.waker,
            wake=self._wake_later,
            on_disk_failure=self.disk_failed,
            terms=self.terms,
        )
        self.parked_by_address = addresses = ParkedByAddress(PARKED_OF_AN_ADDRESS_MAX)
        self.delayed_fetch = Purgatory(
            "Fetch", timer, capacity=DELAYED_FETCH_MAX, addresses=addresses
        )
        self.delayed_remote_fetch = Purgatory(
            "RemoteFetch", timer, capacity=DELAYED_FETCH_MAX, addresses=addresses
        )
        self.delayed_cold_fetch = Purgatory(
            "ColdFetch", timer, capacity=DELAYED_FETCH_MAX, addresses=addresses
        )
        self.cold_reads = ColdReads(disk.of)
        self.remote = RemoteReads(disk)

    # -- partitions ------------------------------------------------------------------------------

    def leader_of(self, topic: str, index: int) -> Partition | None:
        """The partition, if this broker leads it; else `missing_error` has the client's code."""
        partitions = self._led.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            return None
        return partitions[index]

    def follower_of(self, topic: str, index: int) -> Partition | None:
        """The partition, if this broker follows its leader, and its log is not being truncated."""
        partition = self.replica_of(topic, index)
        if partition is None or partition.following is None or partition.is_truncating:
            return None
        return partition

    def replica_of(self, topic: str, index: int) -> Partition | None:
        """The partition, if its log is open here, in whatever role."""
        partitions = self._open.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            return None
        return partitions[index]

    def log_of(self, topic: str, index: int) -> "Log | None":
        """The log of a partition that is open here."""
        partition = self.replica_of(topic, index)
        return None if partition is None else partition.log

    def lead(self, partition: Partition) -> None:
        """Answer for an open partition as its leader from now on."""
        _put(self._led, partition)

    def stop_leading(self, partition: Partition) -> None:
        """Answer as its leader no longer; it stays open."""
        topic, index = partition.topic_partition
        if self.leader_of(topic, index) is partition:
            self._led[topic][index] = None

    def partitions(self) -> Iterator[Partition]:
        """All partitions that are open here."""
        for partitions in self._open.values():
            for partition in partitions:
                if partition is not None:
                    yield partition

    def brokers_changed(self) -> None:
        """Brokers have come or gone: in the turn of the image that says so."""
        if self.delayed_delete_records.parked:
            for partition in self.partitions():
                partition.brokers_changed()

    @property
    def partition_count(self) -> int:
        """Partitions that are open here."""
        return sum(1 for _ in self.partitions())

    def open_partition(
        self, topic_partition: TopicPartition, topic_id: UUID, log: "Log"
    ) -> Partition:
        """Make a partition of a log that is open. It has no role: nothing is answered from it."""
        topic = topic_partition.topic
        stats = self.stats.get(topic)
        if stats is None:
            stats = self.stats[topic] = TopicStats()
        partition = Partition(
            topic_partition,
            topic_id,
            log,
            stats=stats,
            disk=self._disk.of(log.directory),
            context=self._context,
            writer=None if self._writers is None else self._writers.of(dirname(log.directory)),
        )
        log.on_cut = partial(self._cut_found, partition)
        _put(self._open, partition)
        self.names_by_id[topic_id.bytes] = topic
        return partition

    def _cut_found(self, partition: Partition, error: CutSegmentError) -> None:
        self.on_cut_segment(partition, error)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic, also while none of its partitions is served; None: there is none.

        Without one a client gets UNKNOWN_TOPIC_ID, and Java clients then take the topic for
        deleted: that must not happen to logs that are still being recovered.
        """
        return self.names_by_id.get(topic_id) or self.known_name(topic_id)

    def missing_error(
        self, topic: str, index: int, current_leader_epoch: int = NO_LEADER_EPOCH
    ) -> ErrorCode:
        """The error code for a partition that is not led here.

        A partition that exists but is still being recovered, or whose disk has failed, gets a
        retriable one; clients refresh their metadata on either code. A replica that does not lead
        compares the client's leader epoch first, as a leader does: who knows less is fenced, and
        who knows more learns that this broker is behind.
        """
        if not self.is_known(topic, index):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.is_offline(TopicPartition(topic, index)):
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition = self.replica_of(topic, index)
        code = None if partition is None else partition.leader_epoch_error(current_leader_epoch)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if code is None else code

    def remove_partition(self, partition: Partition, code: ErrorCode) -> None:
        """Serve an open partition no longer; its waiting requests are answered with `code`."""
        topic, index = partition.topic_partition
        self.stop_leading(partition)
        if self.replica_of(topic, index) is partition:
            left = self._open[topic]
            left[index] = None
            while left and left[-1] is None:
                left.pop()
            if not left:
                # The image has its name as long as there is such a topic: a deletion, which finds
                # none of its partitions here, must not leave its id for the next of that name.
                self.names_by_id.pop(partition.topic_id.bytes, None)
        _release(partition, code)

    def remove_topic(self, topic: str) -> list[Partition]:
        """Stop serving a topic; its waiting requests are answered now.

        Returns:
            The partitions it had here, for their logs to be deleted.
        """
        self._led.pop(topic, None)
        removed = [p for p in self._open.pop(topic, []) if p is not None]
        self.stats.pop(topic, None)
        for partition in removed:
            self.names_by_id.pop(partition.topic_id.bytes, None)
        for partition in removed:
            _release(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return removed

    def answer_parked(self) -> None:
        """Answer waiting fetches with the available records, before a stop.

        Appends wait for their flush, which is under way: after a time-out, producers would resend
        records that are in the log.
        """
        for partition in list(self.partitions()):
            if partition.fetch_watchers is not None:
                partition.fetch_watchers.expire()

    # -- waking delayed fetches ------------------------------------------------------------------

    def _wake_later(self, partition: Partition) -> None:
        """Wake waiting fetches in the loop's next iteration.

        So the producer gets its response first, and a burst of appends wakes a fetch once.
        """
        if not self._ready_to_wake:
            self.call_soon(self._wake)
        self._ready_to_wake.append(partition)

    def _wake(self) -> None:
        ready, self._ready_to_wake = self._ready_to_wake, []
        for partition in ready:
            partition.wake_due = False
        if len(ready) == 1:
            if ready[0].fetch_watchers is not None:
                ready[0].fetch_watchers.check()
            return
        self.waker.wake([p.fetch_watchers for p in ready if p.fetch_watchers])

    def preparation_of(self, partition: Partition) -> Preparation:
        """The queue of batches that threads prepare before they are appended."""
        if partition.preparation is None:
            partition.preparation = Preparation(
                partition, self._disk, self._clock, self.preparation_budget
            )
        return partition.preparation

    # -- for coordinators ------------------------------------------------------------------------

    def append_internal(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
    ) -> None:
        """Append a coordinator's records.

        `on_committed(NONE, base offset)` is called when they are committed: before this returns if
        they are at once. On failure it gets the error and -1, and nothing was written (except for
        REQUEST_TIMED_OUT and KAFKA_STORAGE_ERROR, where that is unknown). NOT_ENOUGH_REPLICAS: the
        log accepts no records for now.
        """
        self.append_coordinated(topic_partition, batch, on_committed)

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        *,
        terms: TransactionTerms | None = None,
        timeout_ms: float = INTERNAL_APPEND_TIMEOUT_MS,
        leader_epoch: int | None = None,
    ) -> int:
        """Append a coordinator's records, and return their offset at once.

        Args:
            topic_partition: Of the log.
            batch: One batch.
            on_committed: As in `append_internal`.
            terms: The batch's transaction, as verified.
            timeout_ms: After which `on_committed` gets REQUEST_TIMED_OUT.
            leader_epoch: In which the coordinator was elected: in another one the append is
                refused with NOT_LEADER_OR_FOLLOWER. None: whatever it is.

        Returns:
            The base offset, or -1 if nothing was written.
        """
        partition = self.leader_of(*topic_partition)
        if partition is None or (
            leader_epoch is not None and partition.leader_epoch != leader_epoch
        ):
            on_committed(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return -1
        try:
            info = partition.append(
                memoryview(batch),
                self._clock.now_ms(),
                AppendOrigin.COORDINATOR,
                terms=terms,
            )
        except (StorageError, ApiError) as error:
            if isinstance(error, DiskError):
                self.disk_failed(partition, error)
            on_committed(_code_for_coordinators(error), -1)
            return -1
        self.when_committed(
            partition, info.first_offset, info.last_offset + 1, on_committed, timeout_ms
        )
        return info.first_offset

    def takes_records(self, topic_partition: TopicPartition) -> bool:
        """Whether enough replicas are in sync for a coordinator's append; True if not led here."""
        partition = self.leader_of(*topic_partition)
        return partition is None or not partition.is_under_min_isr

    def append_markers(
        self, partition: Partition, markers: Sequence[TransactionMarker]
    ) -> tuple[ErrorCode, int]:
        """End the transactions of different producers.

        Args:
            partition: Of the log; every marker has passed its producer state's `check_marker`.
            markers: At least one.

        Returns:
            (NONE, offset of the first), to be waited for with `when_committed`; or an error and -1,
            and nothing was written (except for KAFKA_STORAGE_ERROR, where that is unknown).
        """
        try:
            return ErrorCode.NONE, partition.append_markers(markers, self._clock.now_ms())
        except (StorageError, ApiError) as error:
            if isinstance(error, DiskError):
                self.disk_failed(partition, error)
            return _code_for_coordinators(error), -1

    def when_committed(
        self,
        partition: Partition,
        first_offset: int,
        end_offset: int,
        on_committed: Callable[[ErrorCode, int], None],
        timeout_ms: float,
    ) -> None:
        """Call `on_committed(NONE, first_offset)` when everything below `end_offset` is committed.

        Before this returns if it is already; with an error and -1 as in `append_internal`. With
        NOT_LEADER_OR_FOLLOWER when the leader epoch ends, also if this broker leads the next one.
        """
        if not partition.is_leader:
            on_committed(partition.gone, -1)
            return
        if partition.is_committed(end_offset):
            on_committed(ErrorCode.NONE, first_offset)
            return
        operation = DelayedCommit(first_offset, on_committed)
        if not self.delayed_produce.park(operation, timeout_ms):
            on_committed(ErrorCode.REQUEST_TIMED_OUT, -1)
            return
        partition.waits(acks_all=True).add(end_offset, operation, None)

    def monotonic_ms(self) -> float:
        """The clock that waits are measured by."""
        return self._now_s() * 1000.0

    async def read_internal(
        self, topic_partition: TopicPartition, offset: int, max_bytes: int
    ) -> memoryview:
        """Read whole batches from the one that contains `offset` on; empty at the end.

        Threads wait for the disk. Look-ups are done on the loop, which owns the log.

        Raises:
            OffsetOutOfRangeError: Below the log start or above the end.
            StorageError: The disk refused.
            KeyError: The partition is not led here.
        """
        partition = self.leader_of(*topic_partition)
        if partition is None:
            raise KeyError(str(topic_partition))
        return await self.read_committed(partition, offset, max_bytes)

    async def read_committed(self, partition: Partition, offset: int, max_bytes: int) -> memoryview:
        """Read as `read_internal` does, from a partition that is open here, in whatever role."""
        directory = partition.log.directory
        try:
            return await self._read_committed(partition, offset, max_bytes)
        except DiskError as error:
            if error.is_disk_failure:
                self._not_read(dirname(directory), error)
            raise

    async def _read_committed(
        self, partition: Partition, offset: int, max_bytes: int
    ) -> memoryview:
        log = partition.log
        disk = self._disk.of(log.directory)
        reads = CachedReads()
        while True:
            try:
                slice_ = log.reader.read(
                    offset,
                    max_bytes=max_bytes,
                    end_offset=log.high_watermark,
                    min_one_batch=True,
                    reads=reads,
                )
            except WouldBlockError as need:
                try:
                    reads.keep(need.key, await disk.run(need.work))
                except StorageError as error:
                    reads.keep(need.key, None, error)
                continue
            if slice_ is None:
                return memoryview(b"")
            file: File = slice_.file
            return memoryview(await disk.run(file.read_at, slice_.length, slice_.position))

    def read_slice(self, directory: str, work: Callable[[], object], on_done: Done) -> None:
        """Have a thread read what is on its way to a client; a disk that refuses has failed.

        Else the client would be cut off whenever it asks again, in the midst of an answer that has
        records of other directories, too. Arguments: as of `ColdReads.run`.
        """

        def done(result: object, error: StorageError | None) -> None:
            if isinstance(error, DiskError) and error.is_disk_failure:
                self._not_read(directory, error)
            on_done(result, error)

        self.cold_reads.run(directory, work, done)

    def _not_read(self, directory: str, error: DiskError) -> None:
        """The directory fails, if that helps a client: others have replicas, or it is one of many.

        Where all there is lies in it, and nowhere else, its broker would end; and again after each
        start, whenever somebody asks for a record on a bad block.
        """
        partitions = list(self.partitions())
        there = [p for p in partitions if dirname(p.log.directory) == directory]
        has_others = any(p.leading is not None or not p.is_leader for p in there)
        if there and (has_others or len(there) < len(partitions)):
            own = dirname(error.path)
            self.disk_failed(min(there, key=lambda p: p.log.directory != own), error)
        elif self._unread_line.is_due():
            LOGGER.error(
                "records cannot be read, all else is served: there is no other replica and no "
                "other log directory error=%s",
                error,
            )

    def disk_failed(self, partition: Partition, error: DiskError) -> None:
        """Log a disk error of a log once; the log manager decides about the directory.

        The log goes offline if the disk has failed; else it continues as soon as it can.
        """
        if partition.log.failure is None and error.is_disk_failure:
            LOGGER.error(
                "I/O error, log goes offline partition=%s error=%s",
                partition.topic_partition,
                error,
            )
            partition.log.fail(error)
        self.on_disk_failure(partition.log, error)


def _code_for_coordinators(error: StorageError | ApiError) -> ErrorCode:
    """Error code of a failed append, for coordinators, whose memory has to agree with the log.

    If the disk is only full, or descriptors are short, the append was undone: a coordinator keeps
    its state, and its clients retry.
    """
    if isinstance(error, DiskError) and not error.is_disk_failure:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code_of(error)


def _put(table: dict[str, list[Partition | None]], partition: Partition) -> None:
    topic, index = partition.topic_partition
    partitions = table.setdefault(topic, [])
    partitions.extend([None] * (index + 1 - len(partitions)))
    partitions[index] = partition


def _release(partition: Partition, code: ErrorCode) -> None:
    """Complete all operations that wait for a partition: it is not served any more."""
    gone_for_good = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.writes is not None and (gone_for_good or partition.log.failure is not None):
        # Else it may be served again: its log must contain the records of its producer state.
        partition.writes.abandon()
    partition.resign(code)


def _nothing_due() -> int:
    return 0


def _no_name_known(_topic_id: bytes) -> str | None:
    return None


def _nothing_offline(_topic_partition: "TopicPartition") -> bool:
    return False


def _nothing_known(_topic: str, _index: int) -> bool:
    return False


def _ignore_failure(_log: "Log", _error: DiskError) -> None:
    return


def _ignore_cut(_partition: Partition, _error: CutSegmentError) -> None:
    """Nothing is done about it."""
