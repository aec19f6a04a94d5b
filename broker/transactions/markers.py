"""Markers that end a transaction, written into the partitions of this broker.

    marker ──> partition is not here ──────────────> UNKNOWN_TOPIC_OR_PARTITION, or try again
          ├──> its offsets are being read back ────> try again
          ├──> it is there already ────────────────> wait until it is committed
          └──> append as coordinator ──> offsets that waited are decided ──> wait until committed

A marker may come twice: its answer was lost, or the coordinator was killed between the first
marker and the Complete record. With transaction version 2 every transaction has an epoch of its
own, so a log whose producer is at the marker's epoch, with nothing open, has had it; nothing is
written again. With older versions one more marker ends nothing, and is written as Kafka does.

Source: Kafka, KafkaApis.scala (handleWriteTxnMarkersRequest), ProducerAppendInfo.java.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from broker.groups.coordinator import OFFSETS_TOPIC
from broker.transactions.parts import PartitionErrors, TransactionMarker
from protocol.error_codes import ErrorCode
from protocol.records.control import build_end_transaction_marker
from storage.producer_entry import NO_OFFSET
from storage.topic_partition import TopicPartition
from storage.verification import TransactionTerms

if TYPE_CHECKING:
    from broker.groups.coordinator import GroupCoordinator
    from broker.partition import Partition
    from broker.replica_manager import ReplicaManager

PARTITIONS_PER_SLICE: Final = 100
"""Markers written before the loop gets its turn: a few milliseconds."""

MARKER_TIMEOUT_MS: Final = 30_000.0
"""Default of `request.timeout.ms`, which Kafka waits for a marker to be committed."""


class LocalMarkerWriter:
    """`MarkerWriter` for a broker that leads all partitions itself. On the loop's thread."""

    __slots__ = ("_groups", "_replicas", "_soon")

    def __init__(
        self,
        replica_manager: "ReplicaManager",
        groups: "GroupCoordinator",
        *,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """A writer of markers.

        Args:
            replica_manager: Where the partitions are.
            groups: Who holds offsets back.
            soon: Calls back in the loop's next turn, before further requests are read: markers are
                written then, so that answers to EndTxn leave before the work they cause. None: they
                are written at once.
        """
        self._replicas = replica_manager
        self._groups = groups
        self._soon = soon

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Append the marker to each partition; see `MarkerWriter`."""
        write = _Write(self._replicas, self._groups, marker, list(partitions), done)
        if self._soon is None:
            write.go_on()
        else:
            self._soon(write.go_on)


class _Write:
    """One marker on its way to all its partitions."""

    __slots__ = ("_done", "_errors", "_groups", "_marker", "_partitions", "_replicas", "_written")

    def __init__(
        self,
        replicas: "ReplicaManager",
        groups: "GroupCoordinator",
        marker: TransactionMarker,
        partitions: list[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._marker = marker
        self._partitions = list(dict.fromkeys(partitions))
        self._done = done
        self._errors: dict[TopicPartition, ErrorCode] = {}
        self._written = 0

    def go_on(self) -> None:
        """Write the next slice."""
        if not self._partitions:
            self._done({})
            return
        part = self._partitions[self._written : self._written + PARTITIONS_PER_SLICE]
        self._written += len(part)
        if self._written < len(self._partitions):
            self._replicas.timer.call_later_ms(0, self.go_on)
        for topic_partition in part:
            self._write_one(topic_partition)

    def _write_one(self, topic_partition: TopicPartition) -> None:
        def answered(code: ErrorCode, _offset: int) -> None:
            self._errors[topic_partition] = code
            if len(self._errors) == len(self._partitions):
                self._done(self._errors)

        topic, index = topic_partition
        partition = self._replicas.get_partition(topic, index)
        if partition is None:
            answered(self._replicas.missing_error(topic, index), -1)
            return
        has_offsets = topic == OFFSETS_TOPIC
        if has_offsets and self._groups.is_loading_partition(index):
            # What is read back would miss it.
            answered(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        marker = self._marker
        if self._is_there(partition):
            if has_offsets:
                self._end_offsets(index)
            end = partition.log.log_end_offset
            self._replicas.when_committed(partition, end - 1, end, answered, MARKER_TIMEOUT_MS)
            return
        batch = build_end_transaction_marker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=self._replicas.now_ms(),
        )
        offset = self._replicas.append_coordinated(
            topic_partition,
            batch,
            answered,
            terms=TransactionTerms(version=marker.transaction_version),
            timeout_ms=MARKER_TIMEOUT_MS,
        )
        if offset >= 0 and has_offsets:
            self._end_offsets(index)

    def _end_offsets(self, partition_index: int) -> None:
        self._groups.end_transaction(
            partition_index, self._marker.producer_id, commit=self._marker.commit
        )

    def _is_there(self, partition: "Partition") -> bool:
        marker = self._marker
        entry = partition.log.producer_state.last_entry(marker.producer_id)
        return (
            marker.transaction_version >= 2
            and entry is not None
            and entry.epoch == marker.producer_epoch
            and entry.coordinator_epoch != -1
            and entry.coordinator_epoch <= marker.coordinator_epoch
            and entry.txn_first_offset == NO_OFFSET
            and not entry.batches
        )
