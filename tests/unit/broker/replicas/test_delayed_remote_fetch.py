"""A fetch of what is not local: at once, parked, too late, gone, and never a storm."""

from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from broker.replicas.delayed_remote_fetch import DelayedRemoteFetch
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.remote_reader import FakeRead, FakeRemoteReader
from tests.unit.broker.handlers.test_fetch import only, produce, request, values
from tests.unit.broker.world import World, topic_id
from tiered.errors import (
    CorruptRemoteDataError,
    RemoteOffsetNotFoundError,
    StoreUnavailableError,
)
from tiered.remote_read import ReadRequest, RemoteRecords

FETCH = ApiKey.FETCH
TIERED = TopicConfig().model_copy(
    update={"segment_bytes": 150, "remote_storage_enable": True, "local_retention_bytes": 0}
)
RECORDS = [b"%d" % number * 40 for number in range(6)]


def tiered(world: World, topic: str = "t", *, at_once: bool = True) -> FakeRemoteReader:
    """A partition of which only the last segment is here; the rest is in a log beside it."""
    partition = world.add(topic, config=TIERED)
    whole = Log.open(
        str(world.directory / f"whole-{topic}"),
        TopicPartition(topic, 0),
        topic_id=topic_id(topic),
        config=TIERED,
        environment=Environment.without_loop(
            filesystem=world.filesystem, clock=world.clock, randomness=SeededRandomness(1)
        ),
    )
    for value in RECORDS:
        produce(world, topic, value)
    found = partition.log.reader.read(0, max_bytes=1 << 20, end_offset=6, min_one_batch=True)
    end = 0
    while end < 6:
        found = partition.log.reader.read(end, max_bytes=1 << 20, end_offset=6, min_one_batch=True)
        assert found is not None
        data = bytearray(found.file.read_at(found.length, found.position))
        whole.follower.append(memoryview(data))
        end = whole.log_end_offset
    whole.update_high_watermark(6)
    partition.log.writer.roll()
    log = partition.log
    log.highest_remote_offset = log.durable_remote_offset = log.log_end_offset - 1
    partition.log.retention.delete_old_segments()
    assert partition.log.local_log_start_offset == 6
    reader = FakeRemoteReader(whole, at_once=at_once)
    world.replicas.remote.reader = reader
    return reader


@pytest.mark.parametrize("version", [4, 11, 12, 17])
async def test_what_the_caches_have_is_answered_at_once(world: World, version: int) -> None:
    tiered(world)
    answer = only(world.ask(FETCH, version, request({"t": {0: 0}})))
    assert (answer.error_code, answer.high_watermark) == (0, 6)
    got = values(answer)
    assert got == RECORDS[: len(got)] != []


async def test_the_request_waits_for_its_reads_and_is_answered_once(world: World) -> None:
    reader = tiered(world, at_once=False)
    world.send(FETCH, 12, request({"t": {0: 2}}, max_wait_ms=0))
    assert not world.has_answer
    (read,) = reader.reads
    assert read.request.client == ("User:ANONYMOUS", "client")
    read.finish()
    got = values(only(world.answer(FETCH, 12)))
    assert RECORDS[2] in got
    assert world.replicas.delayed_remote_fetch.completed == 1


async def test_too_late_is_empty_and_no_error(world: World) -> None:
    """The read is let go, and not stopped: its client will ask again."""
    reader = tiered(world, at_once=False)
    world.replicas.remote.fetch_max_wait_ms = 300
    world.send(FETCH, 12, request({"t": {0: 0}}, max_wait_ms=9_000))
    world.timer.advance(299)
    assert not world.has_answer
    world.timer.advance(1)
    answer = only(world.answer(FETCH, 12))
    assert (answer.error_code, values(answer)) == (0, [])
    assert (reader.reads[0].released, reader.reads[0].cancelled) == (True, False)
    assert len(reader.reads) == 1
    assert world.replicas.delayed_remote_fetch.expired == 1


async def test_local_and_remote_partitions_leave_together(world: World) -> None:
    """Every remote partition is read side by side; the local one is read when they are there."""
    first = tiered(world, "a", at_once=False)
    second = tiered(world, "b", at_once=False)
    world.replicas.remote.reader = first
    world.add("c")
    produce(world, "c", b"local")
    world.send(FETCH, 12, request({"a": {0: 0}, "b": {0: 0}, "c": {0: 0}}))
    assert len(first.reads) == 2
    assert [read.request.min_one_batch for read in first.reads] == [True, False]
    first.reads[0].finish()
    assert not world.has_answer
    first.log = second.log
    first.reads[1].finish()
    response = world.answer(FETCH, 12)
    got = {topic.topic: values(topic.partitions[0]) for topic in response.responses}
    assert got["a"][0] == got["b"][0] == RECORDS[0]
    assert got["c"] == [b"local"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreUnavailableError("503"), ErrorCode.KAFKA_STORAGE_ERROR),
        (CorruptRemoteDataError("key", 7, "checksum"), ErrorCode.CORRUPT_MESSAGE),
    ],
)
async def test_trouble_with_the_store_is_told_when_time_is_up(
    world: World, error: Exception, code: ErrorCode
) -> None:
    """Answered at once, clients would ask again at once, thousands of times a second."""
    reader = tiered(world)
    reader.failure = error
    world.send(FETCH, 12, request({"t": {0: 0}}))
    assert not world.has_answer
    world.timer.advance(500)
    answer = only(world.answer(FETCH, 12))
    assert (answer.error_code, values(answer)) == (code, [])


async def test_what_waiting_will_not_mend_is_told_at_once(world: World) -> None:
    tiered(world).failure = RemoteOffsetNotFoundError("t-0", 0, 0)
    answer = only(world.ask(FETCH, 12, request({"t": {0: 0}})))
    assert (answer.error_code, values(answer)) == (ErrorCode.OFFSET_OUT_OF_RANGE, [])


async def test_a_deleted_topic_ends_the_waiting(world: World) -> None:
    reader = tiered(world, at_once=False)
    world.send(FETCH, 12, request({"t": {0: 0}}))
    world.replicas.remove_topic("t")
    assert only(world.answer(FETCH, 12)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (reader.reads[0].released, reader.reads[0].cancelled) == (True, False)


async def test_a_client_that_leaves_stops_its_reads(world: World) -> None:
    reader = tiered(world, at_once=False)
    world.send(FETCH, 12, request({"t": {0: 0}}))
    world.h.connection.close("gone")
    assert reader.reads[0].cancelled
    assert world.replicas.delayed_remote_fetch.parked == 0


async def test_a_quota_that_leaves_nothing_is_no_error(world: World) -> None:
    reader = tiered(world, at_once=False)
    world.send(FETCH, 12, request({"t": {0: 0}}, max_wait_ms=200))
    reader.reads[0].nothing()
    answer = only(world.answer(FETCH, 12))
    assert (answer.error_code, values(answer)) == (0, [])


async def test_behind_a_gap_at_the_end_the_fetch_waits_for_the_next_append(world: World) -> None:
    """An empty answer at once would be asked for again at once, one at max_wait comes too late."""
    reader = tiered(world, at_once=False)

    class Gap(FakeRemoteReader):
        @override
        def read(self, request: ReadRequest) -> FakeRead:
            read = super().read(request)
            log = request.log
            if log.log_end_offset > log.local_log_start_offset:
                found = log.reader.read(6, max_bytes=1 << 20, end_offset=7, min_one_batch=True)
                assert found is not None
                read.records = RemoteRecords([found], [])
            else:
                read.records = RemoteRecords([], [])
                read.records.awaits_append = True
            read.finished = True
            return read

    world.replicas.remote.reader = gap = Gap(reader.log, at_once=False)
    world.send(FETCH, 12, request({"t": {0: 2}}, max_wait_ms=5000))
    assert not world.has_answer
    produce(world, "t", b"behind")
    await world.until(lambda: world.has_answer)
    answer = only(world.answer(FETCH, 12))
    assert (answer.error_code, values(answer)) == (0, [b"behind"])
    assert len(gap.reads) == 2


async def test_paused_reading_waits_and_is_empty(world: World) -> None:
    reader = tiered(world)
    world.replicas.remote.is_paused = True
    world.send(FETCH, 12, request({"t": {0: 0}}))
    assert not world.has_answer
    world.timer.advance(500)
    answer = only(world.answer(FETCH, 12))
    assert (answer.error_code, values(answer)) == (0, [])
    assert reader.reads == []


async def test_without_remote_storage_the_offset_is_out_of_range(world: World) -> None:
    tiered(world)
    world.replicas.remote.reader = None
    answer = only(world.ask(FETCH, 12, request({"t": {0: 0}})))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_follower_is_told_where_it_went(world: World) -> None:
    """It copies only what is local, and builds the rest of its state from remote storage."""
    tiered(world)
    partition: Any = world.replicas.replica_of("t", 0)
    with pytest.raises(Exception, match="OFFSET_MOVED_TO_TIERED_STORAGE"):
        world.replicas.remote.read(
            partition,
            0,
            max_bytes=1,
            min_one_batch=True,
            with_aborted=False,
            client=("", ""),
            is_follower=True,
        )


@pytest.mark.parametrize("trouble", ["paused", "hangs", "fails"])
@pytest.mark.parametrize("max_bytes", [1, 1000])
async def test_what_cannot_be_read_does_not_starve_others_of_its_session(
    world: World, trouble: str, max_bytes: int
) -> None:
    """Room is kept for what a remote read may bring, and one batch may be larger than allowed."""
    tiered(world, "a")
    reader = tiered(world, "b")
    reader.fails_for = {"a"}
    if trouble == "fails":
        reader.failure = StoreUnavailableError("503")
    if trouble == "paused":
        partition = world.replicas.replica_of("a", 0)
        assert partition is not None
        log = partition.log
        log.update_config(log.config.model_copy(update={"tier_fetch_paused": True}))
    got: list[bytes | None] = []
    session = 0
    for epoch in range(3):
        both = {"a": {0: 0}, "b": {0: 0}} if epoch == 0 else {}
        limits = {"partition_max_bytes": max_bytes, "max_bytes": max_bytes}
        world.send(FETCH, 12, request(both, session=(session, epoch), max_wait_ms=500, **limits))
        world.timer.advance(500)
        answer = world.answer(FETCH, 12)
        session = answer.session_id
        for topic in answer.responses:
            got += values(topic.partitions[0]) if topic.topic == "b" else []
    assert got


class _CountedRead:
    """A read that counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0
        self.is_done = False
        self.error: Exception | None = None
        self.on_finished: Callable[[], None] | None = None

    @property
    def finished(self) -> bool:
        self.looks += 1
        return self.is_done

    def finish(self) -> None:
        self.is_done = True
        if self.on_finished is not None:
            self.on_finished()

    def cancel(self) -> None:
        raise AssertionError("all have finished")


def test_what_thousands_of_reads_cost_does_not_grow_with_their_square() -> None:
    reads = [_CountedRead() for _ in range(500)]
    asked: list[Any] = []
    answers: list[int] = []

    def is_here(partition: Any) -> bool:
        asked.append(partition)
        return True

    partitions: list[Any] = [object()] * len(reads)
    remote: list[Any] = list(reads)
    operation = DelayedRemoteFetch(remote, partitions, is_here, lambda: answers.append(1))
    operation.begin()
    for read in reads:
        assert not answers
        read.finish()
    assert answers == [1]
    assert sum(read.looks for read in reads) < 5 * len(reads)
    assert len(asked) <= len(reads)
