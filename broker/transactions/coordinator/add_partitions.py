"""The partitions of a transaction: AddPartitionsToTxn, AddOffsetsToTxn, and verification.

A partition must be part of the transaction before the first record is written there, since markers
are written from this list. Old clients add partitions themselves; for those of version 2 the
partition's leader does, with the first batch (KIP-890); it also verifies here that an old client's
batch belongs to an open transaction.

Source: Kafka, TransactionCoordinator.scala (handleAddPartitionsToTransaction, handleVerify...).
"""

from collections.abc import Collection

from broker.coordinator.outcome import Done
from broker.transactions.coordinator.end_transaction import FindShard
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata
from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.environment.clock import Clock
from storage.types.topic_partition import TopicPartition

PARTITIONS_MAX = 10_000
"""Most partitions of a transaction; its record must fit into a batch. More are
TRANSACTION_ABORTABLE: the client aborts, and may retry in smaller steps."""


class TransactionPartitions:
    """See the module."""

    __slots__ = ("_clock", "_find")

    def __init__(self, find: FindShard, clock: Clock) -> None:
        self._find = find
        self._clock = clock

    def add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        client_transaction_version: int,
        done: Done,
    ) -> None:
        """Add partitions to the transaction, and begin it with the first ones.

        `done` gets the error code for all of them: at once when they are part of it already, else
        when the record is committed.
        """
        if not transactional_id:
            done(ErrorCode.INVALID_REQUEST)
            return
        shard = self._find(transactional_id)
        if isinstance(shard, ErrorCode):
            done(shard)
            return
        metadata = shard.transactions.get(transactional_id)
        if metadata is None:
            done(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return
        if metadata.pending is not None:
            # First of all: a new producer id may be pending, which its owner has already.
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
            return
        code = _check(metadata, producer)
        if code is not None:
            done(code)
            return
        known = metadata.partitions if metadata.state is TransactionState.ONGOING else frozenset()
        added = frozenset(partitions) - known
        if not added and metadata.state is TransactionState.ONGOING:
            done(ErrorCode.NONE)
            return
        if len(known) + len(added) > PARTITIONS_MAX:
            done(ErrorCode.TRANSACTION_ABORTABLE)
            return
        transition = metadata.prepare_add_partitions(
            added,
            client_transaction_version=client_transaction_version,
            now_ms=self._clock.now_ms(),
        )
        if metadata.state is not TransactionState.ONGOING:
            metadata.begun_ms = self._clock.monotonic_ms()
        shard.append(metadata, transition, done)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Verify that each partition is part of the producer's transaction, from memory.

        A pending transition is ignored: the partition's log checks again at the append, and a
        partition is in `partitions` from the commit of its record to the last marker.
        """
        code = self._why_none(transactional_id, producer)
        if isinstance(code, ErrorCode):
            return dict.fromkeys(partitions, code)
        return {
            topic_partition: (
                ErrorCode.NONE
                if topic_partition in code.partitions
                else ErrorCode.TRANSACTION_ABORTABLE
            )
            for topic_partition in partitions
        }

    def _why_none(
        self, transactional_id: str, producer: ProducerIdAndEpoch
    ) -> ErrorCode | TransactionMetadata:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard = self._find(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        metadata = shard.transactions.get(transactional_id)
        if metadata is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return _check(metadata, producer) or metadata


def _check(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> ErrorCode | None:
    """The error of a producer that cannot add partitions; None when it can."""
    if metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.epoch or metadata.is_fenced_for_good:
        return ErrorCode.PRODUCER_FENCED
    if metadata.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return None
