"""Markers that end a transaction, written into the partitions of this broker.

    marker ──> partition is not here ──────────────> UNKNOWN_TOPIC_OR_PARTITION, or retriable
          ├──> its offsets are being loaded ───────> retriable
          ├──> its log takes back what found no room ──> retriable
          ├──> it is in the log already ───────────> wait until it is committed
          └──> append as coordinator ──> wait until committed ──> pending offsets end

Transactions that end at the same moment mostly have partitions in common. So the markers of one
event loop iteration are written together, one append for each partition:

    write ──┐                         ┌──> t-0: markers of 3 transactions, 1 append
    write ──┼──> (the loop's next) ───┼──> t-1: markers of 2
    write ──┘      iteration          └──> t-2: markers of 3

A marker may be sent twice: its response was lost, or the coordinator was killed between the first
marker and the Complete record. With transaction version 2 every transaction has an epoch of its
own, so a log whose producer is at the marker's epoch, with nothing open, has the marker; it is not
written again. With older versions one more marker ends nothing, and is written as Kafka does.

Source: Kafka, KafkaApis.scala (handleWriteTxnMarkersRequest), ProducerAppendInfo.java.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from broker.groups.coordinator import OFFSETS_TOPIC
from broker.runtime.errors import code_of
from broker.transactions.interfaces import PartitionErrors
from protocol.error_codes import ErrorCode
from storage.errors import ProducerError
from storage.producers.entry import NO_OFFSET
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker

if TYPE_CHECKING:
    from broker.groups.coordinator import GroupCoordinator
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

PARTITIONS_PER_SLICE: Final = 250
"""Markers written before yielding to the event loop: a millisecond, or a few if all partitions
differ. The rest may follow the producer's next request, which then has to wait.
"""

RETRY_MS: Final = 100.0
"""Until markers that were not committed in time are waited for again."""

MARKER_TIMEOUT_MS: Final = 30_000.0
"""Default of `request.timeout.ms`, which Kafka waits for a marker to be committed."""


class LocalMarkerWriter:
    """`MarkerWriter` for a broker that leads all partitions itself. On the loop's thread."""

    __slots__ = ("_groups", "_replicas", "_soon", "_waiting")

    def __init__(
        self,
        replica_manager: "ReplicaManager",
        groups: "GroupCoordinator",
        *,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """A writer of markers.

        Args:
            replica_manager: Has the partitions.
            groups: Has the pending offsets.
            soon: Calls back in the loop's next iteration, before further requests are read:
                markers are written then, so that EndTxn is answered before the work it causes.
                None: they are written at once.
        """
        self._replicas = replica_manager
        self._groups = groups
        self._soon = soon
        self._waiting: deque[_Write] = deque()

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Append the marker to each partition; see `MarkerWriter`."""
        if not partitions:
            done({})
            return
        is_first = not self._waiting
        self._waiting.append(_Write(marker, list(dict.fromkeys(partitions)), done))
        if not is_first:
            # A slice is scheduled already, or has left markers for the next one.
            return
        if self._soon is None:
            self._write_slice()
        else:
            self._soon(self._write_slice)

    def _write_slice(self) -> None:
        """Write a slice of the waiting markers."""
        slice_ = self._take_slice()
        if self._waiting:
            if self._soon is None:
                self._replicas.timer.call_later_ms(0, self._write_slice)
            else:
                self._soon(self._write_slice)
        for topic_partition, writes in slice_.items():
            try:
                self._write_to(topic_partition, writes)
            except Exception:
                # Markers of independent transactions are written together.
                logger.exception(
                    "transaction markers could not be appended partition=%s", topic_partition
                )
                for write in writes:
                    if not write.is_answered(topic_partition):
                        write.answer(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _take_slice(self) -> "dict[TopicPartition, list[_Write]]":
        slice_: dict[TopicPartition, list[_Write]] = {}
        producers: set[int] = set()
        room = PARTITIONS_PER_SLICE
        waiting = self._waiting
        while waiting and room:
            write = waiting[0]
            producer_id = write.marker.producer_id
            if producer_id in producers:
                # The second marker of a producer must see the first one in the log.
                break
            producers.add(producer_id)
            part = write.partitions[write.taken : write.taken + room]
            for topic_partition in part:
                writes = slice_.get(topic_partition)
                if writes is None:
                    slice_[topic_partition] = [write]
                else:
                    writes.append(write)
            write.taken += len(part)
            room -= len(part)
            if write.taken < len(write.partitions):
                break
            waiting.popleft()
        return slice_

    def _write_to(self, topic_partition: TopicPartition, writes: "list[_Write]") -> None:
        """Write the markers of one partition; their producers differ."""
        topic, index = topic_partition
        partition = self._replicas.leader_of(topic, index)
        if partition is None:
            _answer(writes, topic_partition, self._replicas.missing_error(topic, index))
            return
        has_offsets = topic == OFFSETS_TOPIC
        if has_offsets and self._groups.is_loading_partition(index):
            # The shard that is being loaded would miss it.
            _answer(writes, topic_partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if partition.log.is_rolling_back:
            # Its producers still count what was not written: a marker, or a newer epoch.
            _answer(writes, topic_partition, ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        there = []
        fit = []
        check = partition.log.producer_state.check_marker
        for write in writes:
            if _is_there(partition, write.marker):
                there.append(write)
                continue
            try:
                check(write.marker)
            except ProducerError as error:
                write.answer(topic_partition, code_of(error))
            else:
                fit.append(write)
        if fit:
            code, _ = self._replicas.append_markers(partition, [write.marker for write in fit])
            if code is not ErrorCode.NONE:
                _answer(fit, topic_partition, code)
                fit = []
        # Markers already in the log are waited for as well: its end may not be committed.
        there += fit
        if not there:
            return
        end = partition.log.next_offset
        decision = None
        if has_offsets:
            markers = [write.marker for write in there]
            decision = _Decision(self._replicas, self._groups, partition, markers, end)
        written = _Written(topic_partition, there, decision, end)
        self._replicas.when_committed(partition, end - 1, end, written.waited, MARKER_TIMEOUT_MS)


class _Written:
    """Markers of one partition that are in its log.

    No function within `_write_to`: compiled, that and its variables would know each other, and
    with the markers' transactions be left to the garbage collector, thousands in a second.
    """

    __slots__ = ("_decision", "_end", "_topic_partition", "_writes")

    def __init__(
        self,
        topic_partition: TopicPartition,
        writes: "list[_Write]",
        decision: "_Decision | None",
        end: int,
    ) -> None:
        self._topic_partition = topic_partition
        self._writes = writes
        self._decision = decision
        self._end = end

    def waited(self, code: ErrorCode, _offset: int) -> None:
        """They are committed, or are not in time, or never will be here."""
        if self._decision is not None:
            try:
                self._decision.waited(code, self._end)
            except Exception:
                logger.exception("offsets could not be decided partition=%s", self._topic_partition)
                code = ErrorCode.UNKNOWN_SERVER_ERROR
        _answer(self._writes, self._topic_partition, code)


class _Decision:
    """Markers in an offsets partition that end the group coordinator's pending offsets.

    They do when they are committed, also after a time-out, as long as this broker leads in the
    epoch in which they were written: the caller need not come again. In a later epoch the shard is
    read from the log, with the markers or without.
    """

    __slots__ = ("_end", "_groups", "_leader_epoch", "_markers", "_partition", "_replicas")

    def __init__(
        self,
        replicas: "ReplicaManager",
        groups: "GroupCoordinator",
        partition: "Partition",
        markers: list[TransactionMarker],
        end: int,
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._markers = markers
        self._end = end

    def waited(self, code: ErrorCode, _offset: int) -> None:
        """The markers are committed, or are not in time, or never will be here."""
        if self._partition.leader_epoch != self._leader_epoch:
            return
        if code is ErrorCode.NONE:
            for marker in self._markers:
                self._groups.end_transaction(
                    self._partition.topic_partition.partition,
                    marker.producer_id,
                    commit=marker.commit,
                    before_record=self._end,
                )
        elif code is ErrorCode.REQUEST_TIMED_OUT:
            # Not at once: the wait may have been refused.
            self._replicas.timer.call_later_ms(RETRY_MS, self._wait_again)

    def _wait_again(self) -> None:
        self._replicas.when_committed(
            self._partition, self._end - 1, self._end, self.waited, MARKER_TIMEOUT_MS
        )


class _Write:
    """The write of one marker to all its partitions.

    Attributes:
        marker: The marker.
        partitions: All of them, each once.
        taken: How many of these have been written to, or are being.
    """

    __slots__ = ("_done", "_errors", "marker", "partitions", "taken")

    def __init__(
        self,
        marker: TransactionMarker,
        partitions: list[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        self.marker = marker
        self.partitions = partitions
        self.taken = 0
        self._done = done
        self._errors: dict[TopicPartition, ErrorCode] = {}

    def is_answered(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition has a result."""
        return topic_partition in self._errors

    def answer(self, topic_partition: TopicPartition, code: ErrorCode) -> None:
        """Set the result of one partition; the last one completes the write."""
        self._errors[topic_partition] = code
        if len(self._errors) == len(self.partitions):
            self._done(self._errors)


def _answer(writes: list[_Write], topic_partition: TopicPartition, code: ErrorCode) -> None:
    for write in writes:
        try:
            write.answer(topic_partition, code)
        except Exception:
            # All others must get their result: their markers would not be written again.
            logger.exception("caller of a transaction marker failed partition=%s", topic_partition)


def _is_there(partition: "Partition", marker: TransactionMarker) -> bool:
    if marker.transaction_version < 2:
        return False
    entry = partition.log.producer_state.last_entry(marker.producer_id)
    return (
        entry is not None
        and entry.epoch == marker.producer_epoch
        and entry.coordinator_epoch != -1
        and entry.coordinator_epoch <= marker.coordinator_epoch
        and entry.txn_first_offset == NO_OFFSET
        and not entry.batches
    )
