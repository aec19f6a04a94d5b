"""The partitions this broker holds, and every way in and out of their logs.

Handlers and coordinators ask here; nobody else touches a `Partition`. Whether records come from the
local log or, one day, from the remote one is decided here, once.

Source of the shape: Kafka, ReplicaManager.scala.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from broker.delayed_produce import DelayedCommit
from broker.errors import code_of
from broker.partition import Partition, TopicStats
from broker.preparation import Preparation, PreparationBudget
from broker.purgatory import Purgatory
from protocol.error_codes import ErrorCode
from storage.append_origin import AppendOrigin
from storage.errors import DiskError, StorageError
from storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.disk import Disk
    from broker.timer import Timer
    from storage.clock import Clock
    from storage.log import Log

LOGGER = logging.getLogger(__name__)

DELAYED_PRODUCE_MAX = 100_000
DELAYED_FETCH_MAX = 100_000
INTERNAL_APPEND_TIMEOUT_MS = 5_000.0
"""`offsets.commit.timeout.ms`' default: how long a coordinator waits for its own records."""


class ReplicaManager:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_clock",
        "_disk",
        "_loop",
        "_ready_to_wake",
        "_topics",
        "delayed_fetch",
        "delayed_produce",
        "is_known",
        "names_by_id",
        "on_disk_failure",
        "preparation_budget",
        "stats",
    )

    def __init__(
        self, *, clock: "Clock", timer: "Timer", disk: "Disk", loop: asyncio.AbstractEventLoop
    ) -> None:
        self._clock = clock
        self._disk = disk
        self._loop = loop
        self._topics: dict[str, list[Partition | None]] = {}
        self._ready_to_wake: list[Partition] = []
        self.is_known: Callable[[str, int], bool] = _nothing_known
        self.on_disk_failure: Callable[[Log, DiskError], None] = _nobody_told
        self.names_by_id: dict[bytes, str] = {}
        self.preparation_budget = PreparationBudget()
        self.stats: dict[str, TopicStats] = {}
        self.delayed_produce = Purgatory("Produce", timer, capacity=DELAYED_PRODUCE_MAX)
        self.delayed_fetch = Purgatory("Fetch", timer, capacity=DELAYED_FETCH_MAX)

    # -- which partitions ------------------------------------------------------------------------

    def get_partition(self, topic: str, index: int) -> Partition | None:
        """The partition, if this broker holds it and its log is open."""
        partitions = self._topics.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            return None
        return partitions[index]

    def partitions(self) -> Iterator[Partition]:
        """All partitions here."""
        for partitions in self._topics.values():
            for partition in partitions:
                if partition is not None:
                    yield partition

    @property
    def partition_count(self) -> int:
        """Partitions here."""
        return sum(1 for _ in self.partitions())

    def add_partition(
        self, topic_partition: TopicPartition, topic_id: UUID, log: "Log", leader_epoch: int
    ) -> Partition:
        """Start to lead a partition whose log is open.

        On a single replica everything in the log is committed, whatever the checkpoint said.
        """
        topic, index = topic_partition
        stats = self.stats.get(topic)
        if stats is None:
            stats = self.stats[topic] = TopicStats()
        partition = Partition(
            topic_partition,
            topic_id,
            log,
            leader_epoch=leader_epoch,
            stats=stats,
            disk=self._disk,
            wake=self._wake_later,
            on_disk_failure=self.disk_failed,
        )
        partitions = self._topics.setdefault(topic, [])
        partitions.extend([None] * (index + 1 - len(partitions)))
        partitions[index] = partition
        self.names_by_id[topic_id.bytes] = topic
        log.update_high_watermark(log.log_end_offset)
        return partition

    def missing_error(self, topic: str, index: int) -> ErrorCode:
        """What a client is told of a partition that is not here.

        A partition that exists but is still being recovered, or whose disk has failed, is worth
        another try; clients refresh their metadata on either code.
        """
        if self.is_known(topic, index):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def remove_partitions(self, gone: Iterable[TopicPartition]) -> None:
        """Stop serving partitions whose log directory has failed."""
        for topic, index in gone:
            partition = self.get_partition(topic, index)
            if partition is not None:
                self._topics[topic][index] = None
                _release(partition, ErrorCode.KAFKA_STORAGE_ERROR)

    def remove_topic(self, topic: str) -> list[Partition]:
        """Stop serving a topic; requests that wait for it are answered now.

        Returns:
            The partitions it had here, for their logs to be deleted.
        """
        removed = [p for p in self._topics.pop(topic, []) if p is not None]
        self.stats.pop(topic, None)
        for partition in removed:
            self.names_by_id.pop(partition.topic_id.bytes, None)
        for partition in removed:
            _release(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return removed

    def answer_parked(self) -> None:
        """Before a stop: waiting fetches get what there is.

        Writes are left to their flush, which is under way: told that their time is up, producers
        would send again what is in the log.
        """
        for partition in list(self.partitions()):
            if partition.fetch_watchers is not None:
                partition.fetch_watchers.expire()

    # -- waking those who wait for records -------------------------------------------------------

    def _wake_later(self, partition: Partition) -> None:
        """Wake in the loop's next turn.

        So the producer gets its answer first, and a burst of appends wakes a waiting fetch once.
        """
        if not self._ready_to_wake:
            self._loop.call_soon(self._wake)
        self._ready_to_wake.append(partition)

    def _wake(self) -> None:
        ready, self._ready_to_wake = self._ready_to_wake, []
        for partition in ready:
            partition.wake_due = False
        for partition in ready:
            if partition.fetch_watchers is not None:
                partition.fetch_watchers.check()

    def preparation_of(self, partition: Partition) -> Preparation:
        """The queue of batches that threads work on before they are written."""
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
        REQUEST_TIMED_OUT, where nobody knows).
        """
        partition = self.get_partition(*topic_partition)
        if partition is None:
            on_committed(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        try:
            info = partition.append(
                memoryview(batch), self._clock.now_ms(), AppendOrigin.COORDINATOR
            )
        except StorageError as error:
            if isinstance(error, DiskError):
                self.disk_failed(partition, error)
            on_committed(code_of(error), -1)
            return
        if partition.is_committed(info.last_offset + 1):
            on_committed(ErrorCode.NONE, info.first_offset)
            return
        operation = DelayedCommit(partition, info.first_offset, info.last_offset + 1, on_committed)
        if not self.delayed_produce.park(operation, INTERNAL_APPEND_TIMEOUT_MS):
            on_committed(ErrorCode.REQUEST_TIMED_OUT, -1)
            return
        partition.watch_produce().add(operation)

    def read_internal(
        self, topic_partition: TopicPartition, offset: int, max_bytes: int
    ) -> memoryview:
        """Whole batches from the one that holds `offset` on; empty at the end.

        Raises:
            OffsetOutOfRangeError: Below the log start or above the end.
            KeyError: The partition is not here.
        """
        partition = self.get_partition(*topic_partition)
        if partition is None:
            raise KeyError(str(topic_partition))
        log = partition.log
        slice_ = log.read(
            offset, max_bytes=max_bytes, end_offset=log.high_watermark, min_one_batch=True
        )
        if slice_ is None:
            return memoryview(b"")
        return memoryview(os.pread(slice_.file.fileno(), slice_.length, slice_.position))

    def disk_failed(self, partition: Partition, error: DiskError) -> None:
        """A log's disk has refused: say so once; the log manager takes the directory offline."""
        if partition.log.failure is None:
            LOGGER.error("disk failed partition=%s error=%s", partition.topic_partition, error)
            partition.log.fail(error)
        self.on_disk_failure(partition.log, error)


def _release(partition: Partition, code: ErrorCode) -> None:
    """Let everybody who waits for a partition look again: it is not here any more."""
    partition.gone = code
    if partition.fetch_watchers is not None:
        partition.fetch_watchers.check()
    if partition.produce_watchers is not None:
        partition.produce_watchers.check()


def _nothing_known(_topic: str, _index: int) -> bool:
    return False


def _nobody_told(_log: "Log", _error: DiskError) -> None:
    return
