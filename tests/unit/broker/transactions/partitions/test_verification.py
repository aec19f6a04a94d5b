"""What older and newer clients are told when the coordinator does not know of a partition."""

import pytest

from broker.transactions.interfaces import ProducerIdAndEpoch
from broker.transactions.partitions.verification import (
    SupportedOperation,
    TransactionVerifier,
    Verdicts,
    code_for_producers,
    operation_of_produce,
    operation_of_txn_offset_commit,
)
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.unit.broker.world import World, batch

OLD, ABORTABLE, ADDS = SupportedOperation
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PRODUCER = ProducerIdAndEpoch(7, 3)


@pytest.fixture(autouse=True)
def verified(world: World) -> None:
    """As brokers are by default."""
    world.requires_verification = True


def test_versions() -> None:
    """KIP-890 raised both requests twice."""
    assert [operation_of_produce(v) for v in (3, 10, 11, 12, 13)] == [
        OLD,
        OLD,
        ABORTABLE,
        ADDS,
        ADDS,
    ]
    assert [operation_of_txn_offset_commit(v) for v in (0, 3, 4, 5)] == [OLD, OLD, ABORTABLE, ADDS]
    assert [one.supports_epoch_bump for one in SupportedOperation] == [False, False, True]


@pytest.mark.parametrize(
    ("code", "operation", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, OLD, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, OLD, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.PRODUCER_FENCED, ADDS, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ADDS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NONE, OLD, ErrorCode.NONE),
    ],
)
def test_codes(code: ErrorCode, operation: SupportedOperation, told: ErrorCode) -> None:
    """Errors that a client does not know become ones that it does."""
    assert code_for_producers(code, operation) is told


def verify(
    world: World, operation: SupportedOperation, producer: ProducerIdAndEpoch = PRODUCER
) -> Verdicts:
    batches = [(partition, 0) for partition in world.replicas.partitions()]
    found: list[Verdicts] = []
    verifier = TransactionVerifier(world.registrar, world.clock)
    verifier.verify("tx", producer, batches, operation, found.append)
    (verdicts,) = found
    return verdicts


def errors(verdicts: Verdicts) -> dict[TopicPartition, ErrorCode]:
    return {topic_partition: verdict.error for topic_partition, verdict in verdicts.items()}


@pytest.mark.parametrize("operation", SupportedOperation)
async def test_what_is_open_is_not_asked_for(world: World, operation: SupportedOperation) -> None:
    """Only the other partition; with version 2 it is added."""
    partition = world.add("t")
    world.add("t", 1)
    verdict = verify(world, operation)[T0]
    records = batch(b"a", producer_id=7, producer_epoch=3, base_sequence=0, transactional=True)
    partition.log.producer_state.requires_verification = False
    partition.append(memoryview(records), world.clock.now_ms())
    partition.log.producer_state.requires_verification = True
    world.registrar.asked.clear()
    verdicts = verify(world, operation)
    (question,) = world.registrar.asked
    assert (question.partitions, question.add) == ((T1,), operation is ADDS)
    assert (question.transactional_id, question.producer) == ("tx", PRODUCER)
    assert verdict.guard is not None
    assert errors(verdicts) == {T0: ErrorCode.NONE, T1: ErrorCode.NONE}
    assert verdicts[T0].guard is None
    assert verdicts[T1].guard is not None


async def test_switched_off_for_older_clients_only(world: World) -> None:
    """Clients of version 2 count on being added."""
    world.add("t", requires_verification=False)
    verdicts = verify(world, OLD)
    assert errors(verdicts) == {T0: ErrorCode.NONE}
    assert verdicts[T0].guard is None
    assert world.registrar.asked == []
    assert verify(world, ADDS)[T0].guard is not None
    assert len(world.registrar.asked) == 1


async def test_a_stale_epoch_is_not_asked_for(world: World) -> None:
    """The log knows better than a coordinator that may be behind."""
    partition = world.add("t")
    records = batch(b"a", producer_id=7, producer_epoch=4, base_sequence=0)
    partition.append(memoryview(records), world.clock.now_ms())
    assert errors(verify(world, ADDS)) == {T0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert world.registrar.asked == []


async def test_without_a_coordinator_nothing_begins(world: World) -> None:
    """It is worth another try."""
    partition = world.add("t")
    found: list[Verdicts] = []
    TransactionVerifier(None, world.clock).verify(
        "tx", PRODUCER, [(partition, 0)], ADDS, found.append
    )
    assert [errors(verdicts) for verdicts in found] == [{T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}]
