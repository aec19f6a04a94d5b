"""What the halves of a transaction know of each other.

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
"""An outcome for every partition that was asked for; NONE where all is well."""


class ProducerIdAndEpoch(NamedTuple):
    """Who writes, and in which of its lives; (-1, -1) is nobody."""

    producer_id: int
    epoch: int


class MarkerWriter(Protocol):
    """Writes markers; implemented by `broker.transactions.partitions.markers`."""

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Append the marker to each partition.

        In `__consumer_offsets` this also ends what the group coordinator holds back.

        `done` is called once, when every marker is committed or refused, perhaps before this
        returns. NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT and their like mean
        try again; UNKNOWN_TOPIC_OR_PARTITION that the partition was deleted, so that nothing is
        left to end; INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED that somebody newer
        has taken over.
        """
        ...


class PartitionRegistrar(Protocol):
    """Whether a partition is part of a transaction; implemented by the transaction coordinator."""

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Before a transactional batch opens a transaction in a partition (KIP-890).

        Args:
            transactional_id: Of the producer.
            producer: Who writes.
            partitions: Where to.
            add: With clients of transaction version 2 (Produce v12+, TxnOffsetCommit v5+) the
                partitions become part of the transaction now; with older ones they must be already.
            done: Called once, perhaps before this returns. As in AddPartitionsToTxn v4+:
                TRANSACTION_ABORTABLE where `add` is false and the partition is not part of the
                transaction; INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH, PRODUCER_FENCED,
                CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, ...
        """
        ...
