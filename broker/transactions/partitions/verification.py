"""Verification that a batch's partition is part of its transaction (KIP-890).

    Produce, TxnOffsetCommit ──> log: a transaction of this epoch is open ──────────> append
                                 log: none is open ──> guard ──> coordinator ──┬────> append(guard)
                                                                               └────> error

With clients of transaction version 2 the coordinator adds the partition; older ones must have
added it. The error code depends on the version of the client's request.

Source: Kafka, AddPartitionsToTxnManager.java, ReplicaManager.scala
(maybeSendPartitionsToTransactionCoordinator).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from broker.transactions.interfaces import PartitionErrors, PartitionRegistrar, ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.errors import InvalidProducerEpochError
from storage.producers.verification import VerificationGuard
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from storage.environment.clock import Clock


class SupportedOperation(Enum):
    """The part of KIP-890 that the client's version of Produce or TxnOffsetCommit supports."""

    DEFAULT_ERROR = auto()
    """Nothing: TRANSACTION_ABORTABLE is unknown to it."""

    GENERIC_ERROR_SUPPORTED = auto()
    """TRANSACTION_ABORTABLE."""

    ADD_PARTITION = auto()
    """Transaction version 2: clients add no partitions, every transaction has its own epoch."""

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether this is a client of transaction version 2."""
        return self is SupportedOperation.ADD_PARTITION


def operation_of_produce(api_version: int) -> SupportedOperation:
    """The operation that a Produce of this version supports."""
    if api_version > 11:
        return SupportedOperation.ADD_PARTITION
    if api_version > 10:
        return SupportedOperation.GENERIC_ERROR_SUPPORTED
    return SupportedOperation.DEFAULT_ERROR


def operation_of_txn_offset_commit(api_version: int) -> SupportedOperation:
    """The operation that a TxnOffsetCommit of this version supports."""
    if api_version > 4:
        return SupportedOperation.ADD_PARTITION
    if api_version > 3:
        return SupportedOperation.GENERIC_ERROR_SUPPORTED
    return SupportedOperation.DEFAULT_ERROR


class Verdict:
    """The result for one partition: an error, or the guard of the append; never changed.

    No error and no guard: the transaction is open there already, or need not be verified.
    """

    __slots__ = ("error", "guard")

    def __init__(
        self, error: ErrorCode = ErrorCode.NONE, guard: VerificationGuard | None = None
    ) -> None:
        self.error = error
        self.guard = guard


Verdicts = Mapping[TopicPartition, Verdict]


class TransactionVerifier:
    """The verifier: it calls the coordinator where a log has no open transaction."""

    __slots__ = ("_clock", "_registrar")

    def __init__(self, registrar: PartitionRegistrar | None, clock: "Clock") -> None:
        """Without a registrar every verification fails with COORDINATOR_NOT_AVAILABLE."""
        self._registrar = registrar
        self._clock = clock

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        batches: "Sequence[tuple[Partition, int]]",
        operation: SupportedOperation,
        done: Callable[[Verdicts], None],
    ) -> None:
        """Verify for each partition that its batch may be appended.

        Args:
            transactional_id: Of the producer.
            producer: Its id and epoch.
            batches: Partitions and the base sequence of the batch for each; -1 without sequences.
            operation: What the client supports.
            done: Called once with a verdict for every partition, perhaps before this returns.
        """
        verdicts: dict[TopicPartition, Verdict] = {}
        guards: dict[TopicPartition, VerificationGuard] = {}
        adds = operation.supports_epoch_bump
        now_ms = self._clock.now_ms()
        for partition, base_sequence in batches:
            state = partition.log.producer_state
            if not adds and not state.requires_verification:
                verdicts[partition.topic_partition] = Verdict()
                continue
            try:
                guard = state.begin_verification(
                    producer.producer_id,
                    producer.epoch,
                    base_sequence,
                    now_ms,
                    supports_epoch_bump=adds,
                )
            except InvalidProducerEpochError:
                verdicts[partition.topic_partition] = Verdict(ErrorCode.INVALID_PRODUCER_EPOCH)
                continue
            if guard is None:
                verdicts[partition.topic_partition] = Verdict()
            else:
                guards[partition.topic_partition] = guard
        if not guards:
            done(verdicts)
            return
        if self._registrar is None:
            verdicts.update(dict.fromkeys(guards, Verdict(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
            done(verdicts)
            return

        def answered(errors: PartitionErrors) -> None:
            for topic_partition, guard in guards.items():
                code = errors.get(topic_partition, ErrorCode.NONE)
                verdicts[topic_partition] = Verdict(code_for_producers(code, operation), guard)
            done(verdicts)

        self._registrar.add_or_verify(
            transactional_id, producer, list(guards), add=adds, done=answered
        )


def code_for_producers(code: ErrorCode, operation: SupportedOperation) -> ErrorCode:
    """The error code for a producer of this generation after the coordinator's result."""
    if code is ErrorCode.PRODUCER_FENCED:
        # Producers expect this one here.
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and operation is SupportedOperation.DEFAULT_ERROR:
        return ErrorCode.INVALID_TXN_STATE
    return code
