"""Produce: what is written, what is refused, and when the answer comes."""

from typing import Any
from uuid import UUID

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.replicas.replica_manager import ReplicaManager
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from storage.errors import DiskError
from tests.unit.broker.world import World, batch, topic_id

pytestmark = pytest.mark.usefixtures("produce_way")


def request(
    records: bytes | bytearray | None, topic: str = "t", acks: int = -1, **options: Any
) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id(topic), partition_data=[data])],
        **options,
    )


def only(response: Any) -> Any:
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    return partition


@pytest.mark.parametrize("version", range(3, 14))
async def test_offsets_are_given_in_order(world: World, version: int) -> None:
    partition = world.add("t")
    first = only(world.ask(ApiKey.PRODUCE, version, request(batch(b"a", b"b"))))
    second = only(world.ask(ApiKey.PRODUCE, version, request(batch(b"c"))))
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert (partition.stats.produces, partition.stats.failed_produces) == (2, 0)
    assert partition.log.log_end_offset == partition.log.high_watermark == 3


async def test_requests_in_one_receive_share_the_answer(world: World) -> None:
    """Pipelined requests are appended in order and answered in order, in one send."""
    world.add("t")
    for _ in range(3):
        world.send(ApiKey.PRODUCE, 9, request(batch(b"a")))
    offsets = [only(world.answer(ApiKey.PRODUCE, 9)).base_offset for _ in range(3)]
    assert offsets == [0, 1, 2]


async def test_acks_0_has_no_answer(world: World) -> None:
    partition = world.add("t")
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a"), acks=0))
    assert not world.has_answer
    assert partition.log.log_end_offset == 1
    assert not world.h.connection.closed


async def test_failed_acks_0_closes_the_connection(world: World) -> None:
    """There is no answer that could carry the error."""
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a"), acks=0))
    assert world.h.connection.closed


async def test_acks_0_that_the_log_refuses_closes_the_connection(world: World) -> None:
    partition = world.add("t", config=TopicConfig(max_message_bytes=100))
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a" * 100), acks=0))
    assert world.h.connection.closed
    assert partition.stats.failed_produces == 1


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(batch(b"a") + batch(b"b")), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"a"))[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(b"a"))[:40], ErrorCode.INVALID_RECORD),
        (b"\0" * 11 + b"\x0d" + b"\0" * 13, ErrorCode.CORRUPT_MESSAGE),
        (b"\0" * 11 + b"\x1c" + b"\0" * 28, ErrorCode.INVALID_RECORD),
        (b"\0" * 11 + b"\x1c" + b"\0" * 4 + b"\2" + b"\0" * 23, ErrorCode.CORRUPT_MESSAGE),
        (b"\0" * 11 + b"\x41" + b"\0" * 4 + b"\1" + b"\0" * 60,
        ErrorCode.INVALID_RECORD),
        # The time of a message of format 1, which lies where a batch says that it is transactional.
        (b"\0" * 11 + b"\x41" + b"\0" * 4 + b"\1" + b"\xff" * 60,
        ErrorCode.INVALID_RECORD), (bytes(batch(b"x" * 2000)),
        ErrorCode.MESSAGE_TOO_LARGE), (bytes(batch(b"a", transactional=True, producer_id=1,
        producer_epoch=0, base_sequence=0)),
         ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)  # fmt: skip
async def test_bad_batches_are_refused_and_nothing_is_written(
    world: World, records: bytes | None, code: ErrorCode
) -> None:
    partition = world.add("t", config=TopicConfig(max_message_bytes=1000))
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(records)))
    assert (ErrorCode(answer.error_code), answer.base_offset) == (code, -1)
    assert partition.log.log_end_offset == 0
    assert only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"fine")))).error_code == 0


def with_length(records: bytes, change: int) -> bytes:
    """Records whose length field says something else."""
    length = int.from_bytes(records[8:12], "big") + change
    return records[:8] + (length & 0xFFFF_FFFF).to_bytes(4, "big") + records[12:]


ONE = bytes(batch(b"a"))
DAMAGED = {
    "length 0": with_length(ONE, 12 - len(ONE)),
    "length 13": with_length(ONE, 25 - len(ONE)),
    "negative length": with_length(ONE, -1000),
    "length without its last byte": with_length(ONE, -1),
    "length of half": with_length(ONE, -30),
    "magic": ONE[:16] + b"\x03" + ONE[17:-1],
    "anything": b"x" * 70,
    "the one behind it": ONE + with_length(ONE, 12 - len(ONE)),
    "part of one behind it": ONE + ONE[:30],
}
NOT_ONE = {
    "nothing": b"",
    "less than a length field": ONE[:11],
    "less than a magic": ONE[:16],
    "cut off": ONE[:-1],
    "length beyond the end": with_length(ONE, 1),
    "two": ONE + ONE,
    "three": ONE + ONE + ONE,
    "a batch and a message": ONE + b"\0" * 11 + b"\x0e" + b"\0" * 14,
}


@pytest.mark.parametrize("what", DAMAGED)
async def test_damage_before_the_checksum_is_worth_sending_again(world: World, what: str) -> None:
    """INVALID_RECORD would have the client give the records up."""
    world.add("t")
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(DAMAGED[what])))
    assert (ErrorCode(answer.error_code), answer.log_start_offset) == (
        ErrorCode.CORRUPT_MESSAGE,
        -1,
    )


@pytest.mark.parametrize("what", NOT_ONE)
async def test_what_is_not_one_batch_is_refused_for_good(world: World, what: str) -> None:
    world.add("t")
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(NOT_ONE[what])))
    assert answer.error_code == ErrorCode.INVALID_RECORD


async def test_unknown_topics_partitions_and_ids(world: World) -> None:
    world.add("t")
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"a"), topic="other")))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = only(world.ask(ApiKey.PRODUCE, 13, request(batch(b"a"), topic="other")))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_partition_that_still_recovers_is_worth_another_try(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas: ReplicaManager = world.replicas
    replicas.is_known = lambda topic, index: (topic, index) == ("t", 0)
    replicas.known_name = {topic_id("t").bytes: "t"}.get
    for version in (9, 13):
        answer = only(world.ask(ApiKey.PRODUCE, version, request(batch(b"a"))))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert ErrorCode(answer.error_code).retriable


@pytest.mark.parametrize("version", [9, 13])
async def test_what_comes_behind_a_refused_batch_is_refused_likewise(
    world: World, version: int
) -> None:
    """The leadership began between two requests of a pipeline: none of them has a gap."""

    def send(number: int) -> tuple[ErrorCode, int]:
        records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=number)
        found = only(world.ask(ApiKey.PRODUCE, version, request(records)))
        return ErrorCode(found.error_code), found.base_offset

    partition = world.add("t")
    assert send(0) == (ErrorCode.NONE, 0)
    partition.become_follower(2, 6)
    assert send(1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert send(2) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    partition.become_leader(PartitionImage(0, 1, 7, 0, (1,), (1,)), now_ms=0.0)
    assert send(3) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert partition.log.log_end_offset == 1
    assert [send(number) for number in (1, 2, 3)] == [(ErrorCode.NONE, n) for n in (1, 2, 3)]
    for _ in range(3):  # the last that may have been on their way
        assert send(9) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert send(9) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("is_known", [True, False])
async def test_a_new_producer_does_not_begin_behind_a_refused_batch(
    world: World, version: int, is_known: bool
) -> None:
    """The partition came between two requests of a pipeline; it takes any number from a new one."""

    def send(number: int) -> tuple[ErrorCode, int]:
        records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=number)
        found = only(world.ask(ApiKey.PRODUCE, version, request(records)))
        return ErrorCode(found.error_code), found.base_offset

    code = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_known:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.replicas.is_known = lambda topic, index: (topic, index) == ("t", 0)
        world.replicas.known_name = {topic_id("t").bytes: "t"}.get
    assert send(0) == (code, -1)
    partition = world.add("t")
    assert [send(number) for number in (1, 2)] == [(code, -1)] * 2
    assert partition.log.log_end_offset == 0
    assert [send(number) for number in (0, 1, 2)] == [(ErrorCode.NONE, n) for n in (0, 1, 2)]


async def test_a_topic_created_again_begins_with_no_batch_behind_a_refused_one(
    world: World,
) -> None:
    """The refused one was for the topic that was deleted, by an id that nobody knows any more."""

    def send(number: int, of: str) -> ErrorCode:
        records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=number)
        sent = request(records)
        sent.topic_data[0].topic_id = topic_id(of)
        return ErrorCode(only(world.ask(ApiKey.PRODUCE, 13, sent)).error_code)

    world.add("t")
    assert send(3, of="deleted") is ErrorCode.UNKNOWN_TOPIC_ID
    assert send(4, of="t") is ErrorCode.UNKNOWN_TOPIC_ID
    assert [send(number, of="t") for number in (3, 4)] == [ErrorCode.NONE] * 2


async def test_a_producer_that_was_forgotten_begins_with_any_batch(world: World) -> None:
    """Its earlier batches went with the log's start, and are not sent again."""
    world.add("t")
    other = batch(b"a", producer_id=8, producer_epoch=0, base_sequence=0)
    world.ask(ApiKey.PRODUCE, 9, request(other, topic="unknown"))
    records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=9)
    assert only(world.ask(ApiKey.PRODUCE, 9, request(records))).error_code == 0


@pytest.mark.parametrize("version", [3, 12])
async def test_a_topic_without_a_name_is_none(world: World, version: int) -> None:
    """Before version 13 there is no id either."""
    world.replicas.known_name = lambda found: str(UUID(bytes=found))
    wanted = request(batch(b"a"))
    wanted.topic_data[0].name = ""
    answer = only(world.ask(ApiKey.PRODUCE, version, wanted))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("acks", [-2, 2, 100])
async def test_acks_must_be_one_of_three(world: World, acks: int) -> None:
    world.add("t")
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"a"), acks=acks)))
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS


OWN_TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__remote_log_metadata",
)


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("topic", OWN_TOPICS)
async def test_clients_do_not_write_topics_of_the_broker(
    world: World, topic: str, version: int
) -> None:
    """By name and by id: local segments are deleted on the strength of what stands there."""
    partition = world.add(topic)
    answer = only(world.ask(ApiKey.PRODUCE, version, request(batch(b"a"), topic=topic)))
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert partition.log.log_end_offset == 0


@pytest.mark.parametrize("topic", OWN_TOPICS)
async def test_acks_0_does_not_write_topics_of_the_broker_either(world: World, topic: str) -> None:
    partition = world.add(topic)
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a"), topic=topic, acks=0))
    assert world.h.connection.closed
    assert partition.log.log_end_offset == 0


@pytest.mark.parametrize(
    ("topic", "code"),
    [(topic, ErrorCode.NONE) for topic in OWN_TOPICS[:3]]
    + [(OWN_TOPICS[3], ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
async def test_kafkas_admin_tools_write_internal_topics(
    world: World, topic: str, code: ErrorCode
) -> None:
    """As in Kafka. Its tools know nothing of what our remote log metadata promises."""
    world.add(topic)
    world.client_id = "__admin_client"
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"a"), topic=topic)))
    assert answer.error_code == code


async def test_a_retry_gets_the_offsets_of_the_original(world: World) -> None:
    """Idempotence (KIP-98): sent twice, written once."""
    partition = world.add("t")
    data = bytes(batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0))
    assert only(world.ask(ApiKey.PRODUCE, 9, request(data))).base_offset == 0
    again = only(world.ask(ApiKey.PRODUCE, 9, request(data)))
    assert (again.error_code, again.base_offset) == (0, 0)
    assert partition.log.log_end_offset == 2
    gap = bytes(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=5))
    assert only(world.ask(ApiKey.PRODUCE, 9, request(gap))).error_code == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


async def test_zstd_needs_version_7(world: World) -> None:
    world.add("t")
    data = batch(b"a" * 100, codec=4)
    assert only(world.ask(ApiKey.PRODUCE, 6, request(data))).error_code == (
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    assert only(world.ask(ApiKey.PRODUCE, 7, request(data))).error_code == 0


async def test_with_flush_messages_acknowledged_means_on_disk(world: World) -> None:
    """The answer, and the high watermark, wait for the flush."""
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a")))
    world.send(ApiKey.PRODUCE, 9, request(batch(b"b")))
    assert not world.has_answer
    assert partition.log.high_watermark == 0
    await world.until(lambda: partition.log.high_watermark == 2)
    answers = [only(world.answer(ApiKey.PRODUCE, 9)) for _ in range(2)]
    assert [(a.error_code, a.base_offset) for a in answers] == [(0, 0), (0, 1)]
    assert partition.log.recovery_point == 2


async def test_concurrent_requests_share_a_flush(world: World) -> None:
    """Group commit: while one fdatasync runs, the others gather for the next."""
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    for _ in range(50):
        world.send(ApiKey.PRODUCE, 9, request(batch(b"a")))
    await world.until(lambda: partition.log.high_watermark == 50)
    assert partition.commit.flushes <= 3


async def test_a_failed_flush_is_an_error_and_never_retried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    attempts: list[int] = []

    def fail(ticket: Any) -> None:
        attempts.append(1)
        raise DiskError("cannot sync", "path", 5)

    monkeypatch.setattr("storage.segment.flush.FlushTicket.run", fail)
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a")))
    await world.until(lambda: world.has_answer)
    assert only(world.answer(ApiKey.PRODUCE, 9)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.log.failure is not None
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"b"))))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert attempts == [1]


async def test_log_append_time_is_told(world: World) -> None:
    world.add("t", config=TopicConfig(message_timestamp_type="LogAppendTime"))
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"a"))))
    assert answer.log_append_time_ms == world.clock.now_ms()


async def test_errors_of_single_records_are_named(world: World) -> None:
    """A compacted topic needs keys; the record at fault is told by its index (KIP-467)."""
    world.add("t", config=TopicConfig(cleanup_policy=("compact",)))
    answer = only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"no key"))))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [e.batch_index for e in answer.record_errors] == [0]
    assert answer.error_message


async def test_a_client_that_leaves_is_not_waited_for(world: World) -> None:
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    world.send(ApiKey.PRODUCE, 9, request(batch(b"a")))
    assert world.replicas.delayed_produce.parked == 1
    world.h.receive(b"")
    assert world.replicas.delayed_produce.parked == 0
    await world.until(lambda: partition.log.high_watermark == 1)
