"""Produce in a transaction: who is asked, who waits, in which order, and what is told."""

from typing import Any

import pytest

from broker.transactions.partitions import transactional_produce
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.control import build_end_transaction_marker
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.code_path import python_only
from tests.unit.broker.world import World, batch, topic_id

PID = 7


@pytest.fixture(autouse=True)
def verified(world: World) -> None:
    """As brokers are by default."""
    world.requires_verification = True


def records(sequence: int = 0, *, epoch: int = 0, pid: int = PID, value: bytes = b"v") -> bytearray:
    return batch(
        value, producer_id=pid, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )


def request(
    *batches: bytearray | bytes, acks: int = -1, tid: str | None = "tx", to: str = "t"
) -> ProduceRequest:
    """The batches go to partitions 0, 1, ..."""
    data = [PartitionProduceData(index=i, records=one) for i, one in enumerate(batches)]
    topic = TopicProduceData(name=to, topic_id=topic_id(to), partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic], transactional_id=tid)


def codes(response: Any) -> list[ErrorCode]:
    (topic,) = response.responses
    return [ErrorCode(partition.error_code) for partition in topic.partition_responses]


def end(world: World, *, epoch: int = 0, version: int = 0) -> None:
    marker = build_end_transaction_marker(
        producer_id=PID, producer_epoch=epoch, commit=False, coordinator_epoch=0, timestamp_ms=0
    )
    partition = world.replicas.replica_of("t", 0)
    assert partition is not None
    terms = TransactionTerms(version=version)
    partition.append(memoryview(marker), 0, AppendOrigin.COORDINATOR, terms=terms)


@pytest.mark.parametrize("version", range(3, 14))
async def test_asked_once_for_each_transaction(world: World, version: int) -> None:
    """Newer clients are added by asking; the answer that comes at once costs no waiting."""
    partition = world.add("t")
    assert codes(world.ask(ApiKey.PRODUCE, version, request(records(0)))) == [ErrorCode.NONE]
    assert codes(world.ask(ApiKey.PRODUCE, version, request(records(1)))) == [ErrorCode.NONE]
    (question,) = world.registrar.asked
    assert question[:4] == ("tx", (PID, 0), (TopicPartition("t", 0),), version >= 12)
    assert partition.log.last_stable_offset == 0
    end(world, epoch=1, version=2)
    assert partition.log.last_stable_offset == partition.log.high_watermark == 3
    answer = world.ask(ApiKey.PRODUCE, version, request(records(0, epoch=1)))
    assert codes(answer) == [ErrorCode.NONE]
    assert len(world.registrar.asked) == 2


async def test_nobody_is_asked_about_other_batches(world: World) -> None:
    """Also when they come with a transactional id; idempotent ones may not get between."""
    world.add("t")
    world.ask(ApiKey.PRODUCE, 12, request(batch(b"a")))
    idempotent = batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0)
    assert codes(world.ask(ApiKey.PRODUCE, 12, request(idempotent, tid=None))) == [ErrorCode.NONE]
    assert world.registrar.asked == []
    world.ask(ApiKey.PRODUCE, 12, request(records(0)))
    between = batch(b"a", producer_id=PID, producer_epoch=0, base_sequence=1)
    answer = world.ask(ApiKey.PRODUCE, 12, request(between))
    assert codes(answer) == [ErrorCode.INVALID_TXN_STATE]


async def test_a_transaction_without_an_id(world: World) -> None:
    """As Kafka says it, whose check this is."""
    world.add("t")
    answer = world.ask(ApiKey.PRODUCE, 12, request(records(), tid=None))
    assert codes(answer) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]


async def test_what_comes_with_a_transaction_without_an_id_is_refused_too(world: World) -> None:
    """Whatever the order: nothing of the request is written."""
    first, second = world.add("t"), world.add("t", 1)
    for both in ([batch(b"a"), records()], [records(), batch(b"a")]):
        answer = world.ask(ApiKey.PRODUCE, 12, request(*both, tid=None))
        assert codes(answer) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
        assert not world.h.connection.closed
        assert (first.log.log_end_offset, second.log.log_end_offset) == (0, 0)
    world.send(ApiKey.PRODUCE, 12, request(batch(b"a"), records(), tid=None, acks=0))
    assert world.h.connection.closed
    assert first.log.log_end_offset == 0


async def test_log_start_is_told_by_the_log_only(world: World) -> None:
    """What the coordinator or the verification refuses has none, as in Kafka."""
    world.add("t")
    world.registrar.code = ErrorCode.INVALID_TXN_STATE
    answer = world.ask(ApiKey.PRODUCE, 11, request(records()))
    assert answer.responses[0].partition_responses[0].log_start_offset == -1
    for sequence, start in ((0, 0), (5, 0)):
        idempotent = batch(b"a", producer_id=9, producer_epoch=0, base_sequence=sequence)
        answer = world.ask(ApiKey.PRODUCE, 11, request(idempotent, tid=None))
        assert answer.responses[0].partition_responses[0].log_start_offset == start
    assert codes(answer) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (10, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (12, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (11, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (12, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
async def test_refusals(world: World, version: int, code: ErrorCode, told: ErrorCode) -> None:
    """By what the version understands; nothing is written, and the next attempt asks again."""
    partition = world.add("t")
    world.registrar.answers = [code]
    assert codes(world.ask(ApiKey.PRODUCE, version, request(records()))) == [told]
    assert partition.log.log_end_offset == 0
    assert codes(world.ask(ApiKey.PRODUCE, version, request(records()))) == [ErrorCode.NONE]


async def test_the_frame_is_not_kept(world: World) -> None:
    """What waits has its own copy: the receive buffer is used again meanwhile."""
    partition = world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records(value=b"x" * 500)))
    assert not world.has_answer
    world.add("other")
    other = request(batch(b"y" * 500), tid=None)
    other.topic_data[0].name = "other"
    world.send(ApiKey.PRODUCE, 12, other)
    world.registrar.answer_oldest()
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.NONE]
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.NONE]
    assert b"x" * 500 in bytes(
        await world.replicas.read_internal(partition.topic_partition, 0, 10_000)
    )


async def test_a_producers_batches_wait_for_its_first(world: World) -> None:
    """Whatever partition they are for; another producer does not wait."""
    first, second = world.add("t"), world.add("t", 1)
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records(0)))
    world.send(ApiKey.PRODUCE, 12, request(records(1), records(0)))
    world.send(ApiKey.PRODUCE, 12, request(records(2)))
    assert len(world.registrar.held) == 1
    world.registrar.hold = False
    world.send(ApiKey.PRODUCE, 12, request(records(0, pid=8)))
    assert (first.log.log_end_offset, second.log.log_end_offset) == (1, 0)
    world.registrar.answer_oldest()
    answers = [codes(world.answer(ApiKey.PRODUCE, 12)) for _ in range(4)]
    assert answers == [[ErrorCode.NONE] * n for n in (1, 2, 1, 1)]
    assert (first.log.log_end_offset, second.log.log_end_offset) == (4, 1)


async def test_many_that_wait_are_worked_off_in_a_loop(world: World) -> None:
    """Not by recursion, which a client could drive to its end."""
    partition = world.add("t")
    world.registrar.hold = True
    for sequence in range(200):
        world.send(ApiKey.PRODUCE, 12, request(records(sequence)))
    world.registrar.hold = False
    world.registrar.answer_oldest()
    # Others have their turn in between.
    assert partition.log.log_end_offset == transactional_produce.WORKED_OFF_PER_SLICE
    world.send(ApiKey.PRODUCE, 12, request(records(200)))
    for _ in range(4):
        world.timer.advance(0)
    assert partition.log.log_end_offset == 201


async def test_an_abort_overtakes_the_answer(world: World) -> None:
    """The coordinator's yes is of a transaction that is over: no hanging transaction (KIP-890)."""
    partition = world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 11, request(records()))
    end(world)
    world.registrar.answer_oldest()
    assert codes(world.answer(ApiKey.PRODUCE, 11)) == [ErrorCode.INVALID_TXN_STATE]
    assert partition.log.last_stable_offset == partition.log.high_watermark == 1


async def test_concurrent_transactions_are_waited_for(world: World) -> None:
    """Clients of version 2 send before the last transaction's markers are all there."""
    world.add("t")
    world.registrar.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
    world.send(ApiKey.PRODUCE, 12, request(records()))
    for asked in (1, 2, 3):
        assert len(world.registrar.asked) == asked
        assert not world.has_answer
        world.timer.advance(20)
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.NONE]


async def test_concurrent_transactions_without_an_end(world: World) -> None:
    """The client hears of it after a tenth of a second."""
    world.add("t")
    world.registrar.code = ErrorCode.CONCURRENT_TRANSACTIONS
    world.send(ApiKey.PRODUCE, 12, request(records()))
    for _ in range(6):
        world.timer.advance(20)
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert len(world.registrar.asked) == 6


async def test_those_behind_wait_no_longer(world: World) -> None:
    """A tenth of a second from when they came; their sum would hold the memory for hours."""
    world.add("t")
    world.registrar.code = ErrorCode.CONCURRENT_TRANSACTIONS
    for sequence in range(5):
        world.send(ApiKey.PRODUCE, 12, request(records(sequence)))
    for _ in range(5):
        world.timer.advance(20)
    answers = [codes(world.answer(ApiKey.PRODUCE, 12)) for _ in range(5)]
    assert answers == [[ErrorCode.CONCURRENT_TRANSACTIONS]] * 5


@python_only
async def test_small_requests_without_an_answer_are_bounded_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With acks=0 a connection may send any number; each costs more than its records."""
    monkeypatch.setattr(transactional_produce, "PARKED_BYTES_MAX", 20_000)
    partition = world.add("t")
    world.registrar.hold = True
    for sequence in range(10):
        world.send(ApiKey.PRODUCE, 12, request(records(sequence), acks=0))
    assert world.h.connection.closed
    world.registrar.hold = False
    world.registrar.answer_oldest()
    assert partition.log.log_end_offset < 10


async def test_two_producers_in_one_request(world: World) -> None:
    """Both are refused, as by Kafka, and the connection stays."""
    first, second = world.add("t"), world.add("t", 1)
    answer = world.ask(ApiKey.PRODUCE, 12, request(records(0), records(0, pid=8)))
    assert codes(answer) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert first.log.log_end_offset == second.log.log_end_offset == 0
    assert world.registrar.asked == []
    assert codes(world.ask(ApiKey.PRODUCE, 12, request(records(0)))) == [ErrorCode.NONE]


async def test_a_partition_that_comes_while_others_are_asked_about(world: World) -> None:
    """Nobody has added it to the transaction: the producer tries again."""
    world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records(0), records(0)))
    late = world.add("t", 1, requires_verification=False)
    world.registrar.answer_oldest()
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert late.log.log_end_offset == 0


@python_only
async def test_a_bug_ends_one_connection_only(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who waits behind goes on, and the coordinator is not stopped on its way."""
    partition = world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records(0)))
    world.send(ApiKey.PRODUCE, 12, request(records(1)))
    world.registrar.hold = False
    append = type(partition).append
    failures = [RuntimeError("bug")]

    def failing(*args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return append(*args, **options)

    monkeypatch.setattr(type(partition), "append", failing)
    world.registrar.answer_oldest()
    assert "transactional produce failed unexpectedly transactional_id=tx" in caplog.text
    assert world.h.connection.closed
    world.timer.advance(100)
    handler: Any = world.apis.by_key[ApiKey.PRODUCE].hot
    assert handler._transactional._queues == {}
    assert handler._transactional.parked_bytes == 0


async def test_partitions_have_their_own_outcome(world: World) -> None:
    """One is fenced, one is not there, one is written."""
    world.add("t")
    fenced = world.add("t", 1)
    newer = batch(b"a", producer_id=PID, producer_epoch=5, base_sequence=0)
    fenced.append(memoryview(newer), world.clock.now_ms())
    answer = world.ask(ApiKey.PRODUCE, 12, request(records(), records(), records()))
    assert codes(answer) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_acks_0(world: World) -> None:
    """No answer; a refusal closes the connection."""
    partition = world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records(), acks=0))
    world.registrar.answer_oldest()
    assert partition.log.log_end_offset == 1
    assert not world.has_answer
    assert not world.h.connection.closed
    end(world, epoch=1, version=2)
    world.send(ApiKey.PRODUCE, 12, request(records(epoch=1), acks=0))
    world.registrar.answer_oldest(ErrorCode.PRODUCER_FENCED)
    assert world.h.connection.closed


async def test_the_client_leaves(world: World) -> None:
    """What it has sent is appended all the same; nobody is answered."""
    partition = world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records()))
    world.h.connection.close("test")
    world.registrar.answer_oldest()
    assert partition.log.log_end_offset == 1


@python_only
async def test_what_waits_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it the client has to try again."""
    monkeypatch.setattr(transactional_produce, "PARKED_BYTES_MAX", 2_200)
    partition = world.add("t")
    world.registrar.hold = True
    world.send(ApiKey.PRODUCE, 12, request(records()))
    world.send(ApiKey.PRODUCE, 12, request(records(pid=8)))
    world.registrar.held.pop().answer()
    world.registrar.answer_oldest()
    answers = [codes(world.answer(ApiKey.PRODUCE, 12)) for _ in range(2)]
    assert answers == [[ErrorCode.NONE], [ErrorCode.NOT_ENOUGH_REPLICAS]]
    assert partition.log.log_end_offset == 1
    world.send(ApiKey.PRODUCE, 12, request(records(pid=8)))
    world.registrar.answer_oldest()
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.NONE]


async def test_a_topic_that_is_worked_on_by_a_thread(world: World) -> None:
    """The guard goes with the batch; a marker that comes meanwhile keeps it out."""
    partition = world.add("t", config=TopicConfig(record_validation="full"))
    assert partition.log.writer.works_by_record
    big = b"x" * 10_000
    world.send(ApiKey.PRODUCE, 12, request(records(value=big)))
    end(world, epoch=1, version=2)
    await world.until(lambda: world.has_answer)
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    world.send(ApiKey.PRODUCE, 12, request(records(epoch=1, value=big)))
    await world.until(lambda: world.has_answer)
    assert codes(world.answer(ApiKey.PRODUCE, 12)) == [ErrorCode.NONE]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("topic", ["__share_group_state", "__remote_log_metadata"])
async def test_topics_of_the_broker_are_not_made_part_of_a_transaction(
    world: World, topic: str, version: int
) -> None:
    """Refused before the coordinator is asked: its end would put a marker there."""
    partition = world.add(topic)
    answer = world.ask(ApiKey.PRODUCE, version, request(records(0), to=topic))
    assert codes(answer) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert world.registrar.asked == []
    assert partition.log.log_end_offset == 0
