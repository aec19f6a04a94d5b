"""Large batches of topics that cost CPU by the record are worked on by threads, in order."""

import asyncio
from typing import Any

import pytest

from broker.replicas import preparation
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.produce import PartitionProduceData
from protocol.records.batch import iterate_batches
from protocol.records.compression import Codec
from tests.unit.broker.handlers.test_produce import only, request
from tests.unit.broker.world import World, batch

pytestmark = pytest.mark.usefixtures("produce_way")

LARGE = b"x" * (2 * preparation.INLINE_SIZE_MAX)


async def codecs_in(world: World) -> list[int]:
    partition = world.replicas.replica_of("t", 0)
    assert partition is not None
    data = memoryview(
        bytearray(await world.replicas.read_internal(partition.topic_partition, 0, 1 << 20))
    )
    return [header.codec for _, header in iterate_batches(data)]


async def answers(world: World, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        await world.until(lambda: world.has_answer)
        found.append(only(world.answer(ApiKey.PRODUCE, 9)))
    return found


async def test_large_batches_are_packed_anew_by_a_thread(world: World) -> None:
    partition = world.add("t", config=TopicConfig(compression_type="lz4"))
    before = world.disk.started
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    assert not world.has_answer
    (answer,) = await answers(world, 1)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert world.disk.started == before + 1
    assert await codecs_in(world) == [Codec.LZ4]
    assert partition.log.high_watermark == 1
    assert world.replicas.preparation_budget.queued_bytes == 0


async def test_small_batches_do_not_overtake_large_ones(world: World) -> None:
    """Order of arrival is order in the log, also where one of them waits for a thread."""
    world.add("t", config=TopicConfig(compression_type="zstd"))
    for i in range(6):
        payload = LARGE if i % 2 == 0 else b"small"
        world.send(ApiKey.PRODUCE, 9, request(batch(payload + b"%d" % i)))
    offsets = [a.base_offset for a in await answers(world, 6)]
    assert offsets == [0, 1, 2, 3, 4, 5]


async def test_small_batches_alone_stay_on_the_loop(world: World) -> None:
    world.add("t", config=TopicConfig(compression_type="gzip"))
    before = world.disk.started
    assert only(world.ask(ApiKey.PRODUCE, 9, request(batch(b"small")))).error_code == 0
    assert world.disk.started == before
    assert await codecs_in(world) == [Codec.GZIP]


async def test_what_the_thread_finds_wrong_is_told(world: World) -> None:
    world.add("t", config=TopicConfig(cleanup_policy=("compact",)))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    (answer,) = await answers(world, 1)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [e.batch_index for e in answer.record_errors] == [0]


async def test_retries_of_prepared_batches_are_duplicates(world: World) -> None:
    world.add("t", config=TopicConfig(compression_type="lz4"))
    data = bytes(batch(LARGE, producer_id=7, producer_epoch=0, base_sequence=0))
    for _ in range(2):
        world.send(ApiKey.PRODUCE, 9, request(data))
    assert [(a.error_code, a.base_offset) for a in await answers(world, 2)] == [(0, 0), (0, 0)]


async def test_log_append_time_is_given_at_the_append(world: World) -> None:
    config = TopicConfig(compression_type="lz4", message_timestamp_type="LogAppendTime")
    world.add("t", config=config)
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    (answer,) = await answers(world, 1)
    assert answer.log_append_time_ms == world.clock.now_ms()


async def test_acks_0_is_not_answered(world: World) -> None:
    partition = world.add("t", config=TopicConfig(compression_type="lz4"))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE), acks=0))
    await world.until(lambda: partition.log.log_end_offset == 1)
    assert not world.has_answer


async def test_a_topic_deleted_meanwhile_is_an_error(world: World) -> None:
    world.add("t", config=TopicConfig(compression_type="lz4"))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    world.replicas.remove_topic("t")
    (answer,) = await answers(world, 1)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_what_waits_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "QUEUED_BYTES_MAX", len(LARGE) + 1000)
    world.add("t", config=TopicConfig(compression_type="lz4"))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    first, second = await answers(world, 2)
    assert first.error_code == 0
    assert second.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert ErrorCode(second.error_code).retriable
    assert world.replicas.preparation_budget.refused == 1


async def test_with_flush_messages_the_answer_waits_for_the_disk_too(world: World) -> None:
    partition = world.add("t", config=TopicConfig(compression_type="lz4", flush_messages=1))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    (answer,) = await answers(world, 1)
    assert answer.error_code == 0
    assert partition.log.recovery_point == 1


async def test_failed_acks_0_closes_the_connection(world: World) -> None:
    """Also when a thread was needed to find out."""
    world.add("t", config=TopicConfig(compression_type="lz4"))
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE), acks=0))
    world.replicas.remove_topic("t")
    await world.until(lambda: world.h.connection.closed)


class HeldDisk:
    """Threads that begin when they are told to."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def submit(self, function: Any, on_done: Any) -> None:
        self.held.append((function, on_done))

    def let_go(self) -> None:
        for function, on_done in self.held:
            on_done(function(), None)

    def fail(self, error: BaseException) -> None:
        for _function, on_done in self.held:
            on_done(None, error)


async def test_what_was_committed_before_the_last_batch_was_ready_is_noticed(
    world: World,
) -> None:
    """One partition waits for the disk, the other for a thread: the disk may be faster."""
    fast = world.add("fast", config=TopicConfig(flush_messages=1))
    slow = world.add("slow", config=TopicConfig(compression_type="lz4"))
    held: Any = HeldDisk()
    slow.preparation = preparation.Preparation(
        slow, held, world.clock, world.replicas.preparation_budget
    )
    both = request(batch(b"a"), "fast")
    both.topic_data += request(batch(LARGE), "slow").topic_data
    world.send(ApiKey.PRODUCE, 9, both)
    await world.until(lambda: fast.log.high_watermark == 1)
    assert not world.has_answer
    held.let_go()
    assert world.has_answer
    answers_of = world.answer(ApiKey.PRODUCE, 9).responses
    codes = [topic.partition_responses[0].error_code for topic in answers_of]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]


async def test_a_partition_named_twice_keeps_its_order(world: World) -> None:
    """A large batch and a small one of the same request do not change places."""
    world.add("t", config=TopicConfig(compression_type="lz4"))
    twice = request(batch(LARGE))
    twice.topic_data[0].partition_data.append(
        PartitionProduceData(index=0, records=batch(b"small"))
    )
    world.send(ApiKey.PRODUCE, 9, twice)
    await world.until(lambda: world.has_answer)
    (topic,) = world.answer(ApiKey.PRODUCE, 9).responses
    assert [p.base_offset for p in topic.partition_responses] == [0, 1]


class TooLarge:
    """A batch for whose copy there is no memory."""

    def __len__(self) -> int:
        return len(LARGE)

    def __iter__(self) -> Any:
        raise MemoryError


async def test_a_batch_that_finds_no_memory_is_refused_and_counts_for_nothing(
    world: World,
) -> None:
    """What it was counted as would be given back by nobody, until none were taken any more."""
    partition = world.add("t", config=TopicConfig(compression_type="lz4"))
    budget = world.replicas.preparation_budget
    prepared = world.replicas.preparation_of(partition)
    too_large: Any = TooLarge()
    assert not prepared.submit(too_large, lambda _info, _error: None)
    assert (budget.queued_bytes, budget.refused) == (0, 1)
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    (answer,) = await answers(world, 1)
    assert answer.error_code == ErrorCode.NONE


async def test_a_batch_that_finds_no_memory_in_the_thread_may_come_again(world: World) -> None:
    partition = world.add("t", config=TopicConfig(compression_type="lz4"))
    held: Any = HeldDisk()
    partition.preparation = preparation.Preparation(
        partition, held, world.clock, world.replicas.preparation_budget
    )
    world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    held.fail(MemoryError())
    (answer,) = await answers(world, 1)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert partition.log.log_end_offset == 0
    assert world.replicas.preparation_budget.queued_bytes == 0


async def test_at_a_stop_what_waits_is_refused_and_what_a_thread_has_is_not_appended(
    world: World,
) -> None:
    partition = world.add("t", config=TopicConfig(compression_type="lz4"))
    held: Any = HeldDisk()
    partition.preparation = preparation.Preparation(
        partition, held, world.clock, world.replicas.preparation_budget
    )
    for _ in range(2):
        world.send(ApiKey.PRODUCE, 9, request(batch(LARGE)))
    assert len(held.held) == 1
    ending = asyncio.ensure_future(partition.preparation.end())
    await asyncio.sleep(0)
    assert not ending.done()
    held.let_go()
    await ending
    codes = [answer.error_code for answer in await answers(world, 2)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert len(held.held) == 1, "no other was begun"
    assert partition.log.log_end_offset == 0
    assert world.replicas.preparation_budget.queued_bytes == 0
