"""Interfaces between the transaction coordinator and the leaders of partitions.

    coordinator half                           partition half
    __transaction_state, state machine   <──   Produce, TxnOffsetCommit: `PartitionRegistrar`
    (`broker.transactions.coordinator`)  ──>   markers in logs and offsets: `MarkerWriter`

On one broker both halves are in one process, and an answer often comes before the call returns;
callers must not count on it. With several brokers the same two Protocols are spoken over
AddPartitionsToTxn v4+ and WriteTxnMarkers.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker

PartitionErrors = Mapping[TopicPartition, ErrorCode]
"""Error code of every partition of a request."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch; (-1, -1) for none."""

    producer_id: int
    epoch: int


class MarkerWriter(Protocol):
    """The writer of markers; implemented by `broker.transactions.partitions.markers`."""

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Append the marker to each partition.

        In `__consumer_offsets` this also ends the group coordinator's pending offsets.

        `done` is called once, when every marker is committed or refused, perhaps before this
        returns. NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT and their like are
        retriable; UNKNOWN_TOPIC_OR_PARTITION: the partition was deleted, so that nothing is left
        to end; INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: a newer producer or
        coordinator has taken over.
        """
        ...


class PartitionRegistrar(Protocol):
    """The registry of transactions' partitions; implemented by the transaction coordinator."""

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Add or verify partitions before a batch opens a transaction in them (KIP-890).

        Args:
            transactional_id: Of the producer.
            producer: Its id and epoch.
            partitions: Of the batches.
            add: With clients of transaction version 2 (Produce v12+, TxnOffsetCommit v5+) the
                partitions become part of the transaction now; with older ones they must be already.
            done: Called once, perhaps before this returns. As in AddPartitionsToTxn v4+:
                TRANSACTION_ABORTABLE where `add` is false and the partition is not part of the
                transaction; INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH, PRODUCER_FENCED,
                CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, ...
        """
        ...
