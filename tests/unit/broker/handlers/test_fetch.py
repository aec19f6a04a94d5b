"""Fetch: what is read, when it waits, and what a session leaves out."""

from typing import Any

import pytest

from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import iterate_batches
from protocol.records.control import build_end_transaction_marker
from protocol.records.record import iterate_records
from storage.index.reads import NOWAIT, WouldBlockError
from storage.log.read import LogReader
from storage.types.append_origin import AppendOrigin
from tests.code_path import python_only
from tests.unit.broker.world import World, batch, topic_id


def request(
    offsets: dict[str, dict[int, int]],
    *,
    session: tuple[int, int] = (0, -1),
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **options: Any,
) -> FetchRequest:
    options = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50 << 20, "replica_id": -1, **options}
    return FetchRequest(
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id(topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=current_leader_epoch,
                        last_fetched_epoch=last_fetched_epoch,
                    )
                    for index, offset in partitions.items()
                ],
            )
            for topic, partitions in offsets.items()
        ],
        **options,
    )


def produce_request(records: bytearray) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", topic_id=topic_id("t"), partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])


def values(partition: Any) -> list[bytes | None]:
    data = memoryview(bytearray(partition.records or b""))
    found: list[bytes | None] = []
    for position, header in iterate_batches(data, allow_partial=True):
        if not header.is_control:
            records = iterate_records(data[position : position + header.size], max_size=1 << 20)
            found += [record.value for record in records]
    return found


def only(response: Any) -> Any:
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def produce(world: World, topic: str, *payloads: bytes, index: int = 0, **options: Any) -> None:
    partition = world.replicas.replica_of(topic, index)
    assert partition is not None
    partition.append(memoryview(batch(*payloads, **options)), world.clock.now_ms())


@pytest.mark.parametrize("version", range(4, 19))
async def test_records_come_back(world: World, version: int) -> None:
    world.add("t")
    produce(world, "t", b"a", b"b")
    answer = only(world.ask(ApiKey.FETCH, version, request({"t": {0: 0}})))
    assert answer.error_code == 0
    assert answer.high_watermark == 2
    assert values(answer) == [b"a", b"b"]


async def test_reading_begins_at_the_batch_that_holds_the_offset(world: World) -> None:
    world.add("t")
    produce(world, "t", b"a", b"b")
    produce(world, "t", b"c", b"d")
    answer = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 3}})))
    assert values(answer) == [b"c", b"d"]


async def test_an_empty_partition_waits_until_time_is_up(world: World) -> None:
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500))
    assert not world.has_answer
    world.timer.advance(499)
    assert not world.has_answer
    world.timer.advance(1)
    answer = only(world.answer(ApiKey.FETCH, 12))
    assert (answer.error_code, values(answer)) == (0, [])
    assert world.replicas.delayed_fetch.expired == 1


async def test_an_append_wakes_who_waits(world: World) -> None:
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500))
    produce(world, "t", b"a")
    assert not world.has_answer
    await world.until(lambda: world.has_answer)
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"a"]
    assert world.replicas.delayed_fetch.parked == 0


@pytest.mark.usefixtures("produce_way")
async def test_a_producer_of_one_batch_lets_a_consumer_have_it_first(world: World) -> None:
    """Within the append, before the acknowledgement: no turn of the loop lies between them."""
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500))
    world.send(ApiKey.PRODUCE, 9, produce_request(batch(b"a")))
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"a"]
    assert world.answer(ApiKey.PRODUCE, 9).responses
    assert world.replicas.delayed_fetch.parked == 0


async def test_a_burst_of_a_producer_is_one_answer(world: World) -> None:
    """The first of what was received together would be too early: the loop's next iteration."""
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500))
    world.h.receive(world.framed(ApiKey.PRODUCE, 9, produce_request(batch(b"a"))) * 2)
    assert not world.has_answer
    await world.until(lambda: world.has_answer)
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"a", b"a"]


async def test_min_bytes_are_waited_for(world: World) -> None:
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500, min_bytes=1000))
    produce(world, "t", b"x" * 300)
    await world.until(lambda: not world.replicas.replica_of("t", 0).wake_due)  # type: ignore[union-attr]  # why: the partition was just added
    assert not world.has_answer
    produce(world, "t", b"y" * 900)
    await world.until(lambda: world.has_answer)
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"x" * 300, b"y" * 900]


@pytest.mark.parametrize(
    "limits",
    [
        {"partition_max_bytes": 1000, "min_bytes": 1000},
        {"max_bytes": 1000, "min_bytes": 1000},
        {"max_bytes": 1000, "min_bytes": 1 << 20},
    ],
)
async def test_who_may_have_no_more_does_not_wait(world: World, limits: dict[str, Any]) -> None:
    """Another batch does not fit, so no append could help."""
    world.add("t")
    for _ in range(3):
        produce(world, "t", b"x" * 300)
    answer = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500, **limits)))
    assert values(answer) == [b"x" * 300] * 2
    world.send(ApiKey.FETCH, 12, request({"t": {0: 2}}, max_wait_ms=500, **limits))
    assert not world.has_answer, "what there is leaves room for more"
    world.timer.advance(500)
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"x" * 300]


async def test_the_first_batch_goes_out_whole(world: World) -> None:
    """Also above every limit: a consumer always advances (KIP-74)."""
    world.add("t")
    produce(world, "t", b"x" * 5000)
    answer = only(
        world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_bytes=10, partition_max_bytes=10))
    )
    assert values(answer) == [b"x" * 5000]


async def test_the_limit_of_a_response_is_shared(world: World) -> None:
    world.add("t", 0)
    world.add("t", 1)
    produce(world, "t", b"x" * 600, index=0)
    produce(world, "t", b"y" * 600, index=1)
    response = world.ask(ApiKey.FETCH, 12, request({"t": {0: 0, 1: 0}}, max_bytes=1000))
    first, second = response.responses[0].partitions
    assert values(first) == [b"x" * 600]
    assert values(second) == []


async def test_offsets_out_of_range(world: World) -> None:
    partition = world.add("t")
    produce(world, "t", b"a")
    produce(world, "t", b"b")
    partition.log.delete_records(1)
    for offset in (0, 3):
        answer = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: offset}}, max_wait_ms=500)))
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert answer.high_watermark == -1


async def test_unknown_partitions_are_errors_at_once(world: World) -> None:
    answer = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500)))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = only(world.ask(ApiKey.FETCH, 13, request({"t": {0: 0}}, max_wait_ms=500)))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_partitions_in_recovery_are_worth_a_retry_also_by_id(world: World) -> None:
    """A Java client takes UNKNOWN_TOPIC_ID for a topic that was deleted."""
    world.replicas.is_known = lambda topic, _index: topic == "t"
    world.replicas.known_name = {topic_id("t").bytes: "t"}.get
    for version in (12, 13):
        answer = only(world.ask(ApiKey.FETCH, version, request({"t": {0: 0}}, max_wait_ms=500)))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_leader_epochs_fence(world: World) -> None:
    partition = world.add("t")
    partition.leader_epoch = 5
    for epoch, code in ((4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        answer = only(
            world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, current_leader_epoch=epoch))
        )
        assert answer.error_code == code


@pytest.mark.parametrize("epoch", [-1, -2, -(2**31)])
async def test_negative_epochs_are_none(world: World, epoch: int) -> None:
    """Of a Fetch only: ListOffsets and OffsetForLeaderEpoch know none but -1, as Kafka's."""
    partition = world.add("t")
    partition.leader_epoch = 5
    produce(world, "t", b"a")
    asked = request({"t": {0: 0}}, current_leader_epoch=epoch, last_fetched_epoch=epoch)
    answer = only(world.ask(ApiKey.FETCH, 12, asked))
    assert (answer.error_code, answer.diverging_epoch) == (0, None)
    assert answer.high_watermark == 1


async def test_a_forged_replica_is_refused(world: World) -> None:
    """Nobody replicates from a single node (CVE-2018-1288)."""
    world.add("t")
    answer = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, replica_id=3)))
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_read_committed_ends_at_the_open_transaction(world: World) -> None:
    partition = world.add("t")
    produce(world, "t", b"before")
    options = {"transactional": True, "producer_id": 9, "producer_epoch": 0}
    data = memoryview(batch(b"open", base_sequence=0, **options))
    partition.append(data, world.clock.now_ms())
    committed = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, isolation_level=1)))
    assert values(committed) == [b"before"]
    assert (committed.last_stable_offset, committed.high_watermark) == (1, 2)
    dirty = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}})))
    assert values(dirty) == [b"before", b"open"]


async def test_aborted_transactions_are_named(world: World) -> None:
    partition = world.add("t")
    options = {"transactional": True, "producer_id": 9, "producer_epoch": 0}
    now_ms = world.clock.now_ms()
    partition.append(memoryview(batch(b"bad", base_sequence=0, **options)), now_ms)
    marker = build_end_transaction_marker(
        producer_id=9, producer_epoch=0, commit=False, coordinator_epoch=0, timestamp_ms=now_ms
    )
    partition.append(memoryview(marker), now_ms, AppendOrigin.COORDINATOR)
    produce(world, "t", b"good")
    answer = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 0}}, isolation_level=1)))
    assert [(a.producer_id, a.first_offset) for a in answer.aborted_transactions] == [(9, 0)]
    assert answer.last_stable_offset == 3
    clean = only(world.ask(ApiKey.FETCH, 12, request({"t": {0: 2}}, isolation_level=1)))
    assert clean.aborted_transactions == []


async def test_a_session_tells_only_what_changed(world: World) -> None:
    world.add("t", 0)
    world.add("t", 1)
    first = world.ask(ApiKey.FETCH, 12, request({"t": {0: 0, 1: 0}}, session=(0, 0)))
    assert first.session_id > 0
    assert len(first.responses[0].partitions) == 2
    produce(world, "t", b"a", index=1)
    second = world.ask(ApiKey.FETCH, 12, request({}, session=(first.session_id, 1)))
    (partition,) = second.responses[0].partitions
    assert (partition.partition_index, values(partition)) == (1, [b"a"])
    third = world.ask(ApiKey.FETCH, 12, request({"t": {1: 1}}, session=(first.session_id, 2)))
    assert third.responses == []


async def test_sessions_that_are_not_known_are_errors(world: World) -> None:
    response = world.ask(ApiKey.FETCH, 12, request({}, session=(77, 3), max_wait_ms=500))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_deleting_the_topic_answers_who_waits(world: World) -> None:
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=5000))
    world.replicas.remove_topic("t")
    answer = only(world.answer(ApiKey.FETCH, 12))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_client_that_leaves_frees_its_place(world: World) -> None:
    world.add("t")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=5000))
    assert world.replicas.delayed_fetch.parked == 1
    world.h.receive(b"")
    assert world.replicas.delayed_fetch.parked == 0


async def test_with_flush_messages_nobody_sees_what_is_not_on_disk(world: World) -> None:
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=5000))
    produce(world, "t", b"a")
    assert partition.log.high_watermark == 0
    await world.until(lambda: world.has_answer)
    assert partition.log.recovery_point == 1
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"a"]


async def test_files_that_may_not_be_opened_now_come_with_the_next_fetch(world: World) -> None:
    """Slices hold theirs open: what was read goes out, the others look empty for a moment."""
    for index in range(3):
        world.add("t", index)
        produce(world, "t", b"v", index=index)
    world.filesystem.open_files.evict(10)
    world.filesystem.files_max = 1
    answer = await world.ask_disk(ApiKey.FETCH, 12, request({"t": {0: 0, 1: 0, 2: 0}}))
    (topic,) = answer.responses
    assert [(one.error_code, one.high_watermark) for one in topic.partitions] == [(0, 1)] * 3
    assert [values(one) for one in topic.partitions] == [[b"v"], [], []]
    answer = only(await world.ask_disk(ApiKey.FETCH, 12, request({"t": {2: 0}})))
    assert values(answer) == [b"v"]
    assert world.replicas.replica_of("t", 1) is not None


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR),
        (12, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
async def test_without_any_file_clients_are_told_to_come_again(
    world: World, version: int, code: ErrorCode
) -> None:
    partition = world.add("t")
    produce(world, "t", b"v")
    world.filesystem.open_files.evict(10)
    world.filesystem.files_max = 0
    answer = only(await world.ask_disk(ApiKey.FETCH, version, request({"t": {0: 0}})))
    assert answer.error_code == code
    assert ErrorCode(answer.error_code).retriable
    assert partition.log.failure is None
    world.filesystem.files_max = 1
    assert values(only(await world.ask_disk(ApiKey.FETCH, 12, request({"t": {0: 0}})))) == [b"v"]


@python_only
async def test_a_cold_disk_does_not_begin_the_waiting_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at a stop, which answers everybody who waits: it took ten seconds more."""
    world.add("t")
    produce(world, "t", b"a")
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500, min_bytes=1 << 20))
    read = LogReader.read

    def read_from_cold(reader: LogReader, offset: int, **options: Any) -> Any:
        if options["reads"] is NOWAIT:
            raise WouldBlockError("header", lambda: None)
        return read(reader, offset, **options)

    monkeypatch.setattr(LogReader, "read", read_from_cold)
    world.timer.advance(500)
    assert world.replicas.delayed_cold_fetch.parked == 1
    await world.until(lambda: world.replicas.delayed_cold_fetch.parked == 0)
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"a"]
    assert world.replicas.delayed_fetch.parked == 0


@python_only
@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000])
async def test_a_wait_goes_on_when_the_wall_clock_jumps(
    world: World, monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    """It was over as soon as the disk had been read, where the clock had been set forward."""
    world.add("t")
    produce(world, "t", b"a")
    read = LogReader.read

    def read_from_cold(reader: LogReader, offset: int, **options: Any) -> Any:
        if options["reads"] is NOWAIT:
            raise WouldBlockError("header", lambda: None)
        return read(reader, offset, **options)

    monkeypatch.setattr(LogReader, "read", read_from_cold)
    world.send(ApiKey.FETCH, 12, request({"t": {0: 0}}, max_wait_ms=500, min_bytes=1 << 20))
    world.clock.set_now_ms(world.clock.now_ms() + jump_ms)
    await world.until(lambda: world.replicas.delayed_cold_fetch.parked == 0)
    assert not world.has_answer
    monkeypatch.setattr(LogReader, "read", read)
    world.timer.advance(499)
    assert not world.has_answer
    world.timer.advance(1)
    assert values(only(world.answer(ApiKey.FETCH, 12))) == [b"a"]
