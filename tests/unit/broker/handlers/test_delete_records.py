"""DeleteRecords, in every version."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.topics.topics import NewTopic
from broker.handlers import delete_records
from broker.replicas.lookups import Lookups
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from storage.errors import DiskError
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


class FakeLog:
    """Records 10 to 99, committed up to 90."""

    def __init__(self, policy: set[str] | None = None) -> None:
        self.config = TopicConfig(cleanup_policy=tuple(policy or ("delete",)))
        self.log_start_offset = self.durable_log_start_offset = 10
        self.high_watermark = 90
        self.calls: list[int] = []
        self.is_full = False
        self.writes = 0
        self.failure: Exception | None = None

    def delete_records(self, before_offset: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.calls.append(before_offset)
        self.log_start_offset = before_offset

    def write_log_start_offsets(self) -> None:
        """As the checkpoints of all logs."""
        self.writes += 1
        if not self.is_full:
            self.durable_log_start_offset = self.log_start_offset


class InPlace:
    """A disk whose calls are made at once."""

    async def run(self, function: Callable[[], None]) -> None:
        function()


class PartitionOfOne:
    """Led by the only replica."""

    def __init__(self, log: FakeLog) -> None:
        self.log = log

    @property
    def low_watermark(self) -> int:
        return self.log.log_start_offset

    def wake_fetches(self) -> None:
        """Nobody fetches."""


class Hanging:
    """A disk whose calls never end."""

    async def run(self, _function: Callable[[], None]) -> None:
        await asyncio.Event().wait()


async def ask(
    log: FakeLog | None,
    *offsets: int,
    topic: str = "t",
    version: int = 2,
    disk: InPlace | Hanging | None = None,
    timeout_ms: int = 0,
) -> Any:
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 1, 1)])
    await controller.ensure_internal_topic("__consumer_offsets")
    partition = PartitionOfOne(log) if log else None
    replicas = SimpleNamespace(leader_of=lambda _topic, _index: partition)
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=0, offset=offset) for offset in offsets
                ],
            )
        ],
        timeout_ms=timeout_ms,
    )
    services = services_of(
        controller,
        replica_manager=replicas,
        disk=disk or InPlace(),
        log_manager=SimpleNamespace(checkpoints=log),
        lookups=Lookups(),
    )
    response = await call(delete_records, services, request, version)
    ((result,),) = (t.partitions for t in response.topics)
    return ErrorCode(result.error_code), result.low_watermark


@pytest.mark.parametrize("version", versions_of(delete_records))
async def test_log_start_is_raised(version: int) -> None:
    log = FakeLog()
    assert await ask(log, 50, version=version) == (ErrorCode.NONE, 50)
    assert log.calls == [50]


async def test_it_is_on_disk_when_it_is_answered() -> None:
    """A broker that was killed within a minute gave the records out again."""
    log = FakeLog()
    assert await ask(log, 50) == (ErrorCode.NONE, 50)
    assert (log.durable_log_start_offset, log.writes) == (50, 1)
    # A retry finds it there.
    assert await ask(log, 50) == (ErrorCode.NONE, 50)
    assert log.writes == 1


async def test_what_cannot_be_written_is_not_promised() -> None:
    """It holds for as long as the broker lives, and is tried again."""
    log = FakeLog()
    log.is_full = True
    assert await ask(log, 50) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert log.log_start_offset == 50
    log.is_full = False
    assert await ask(log, 50) == (ErrorCode.NONE, 50)


async def test_a_disk_that_hangs_costs_the_request_its_time() -> None:
    """It was answered when the disk had come back, however long that took."""
    log = FakeLog()
    asked = ask(log, 50, disk=Hanging(), timeout_ms=20)
    assert await asyncio.wait_for(asked, 5) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert log.log_start_offset == 50
    assert await ask(log, 50, timeout_ms=20) == (ErrorCode.NONE, 50)


async def test_minus_one_is_the_high_watermark() -> None:
    assert await ask(FakeLog(), -1) == (ErrorCode.NONE, 90)


async def test_log_start_is_never_lowered() -> None:
    """The answer is what holds."""
    log = FakeLog()
    assert await ask(log, 5) == (ErrorCode.NONE, 10)
    assert log.calls == []


@pytest.mark.parametrize("offset", [91, -2])
async def test_offsets_out_of_range(offset: int) -> None:
    """Not committed, or not an offset."""
    log = FakeLog()
    assert await ask(log, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert log.calls == []


async def test_compacted_topics_refuse() -> None:
    """Unless old records may be deleted too."""
    assert await ask(FakeLog({"compact"}), 50) == (ErrorCode.POLICY_VIOLATION, -1)
    assert await ask(FakeLog({"compact", "delete"}), 50) == (ErrorCode.NONE, 50)


async def test_partitions_that_are_not_here() -> None:
    """Unknown, internal, or without a log."""
    log = FakeLog()
    assert (await ask(log, 50, topic="u"))[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await ask(log, 50, topic="__consumer_offsets"))[0] is (
        ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    assert (await ask(None, 50))[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert log.calls == []


async def test_disk_that_fails() -> None:
    log = FakeLog()
    log.failure = DiskError("cannot write", "/data")
    assert await ask(log, 50) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


async def test_of_a_partition_named_twice_the_last_counts() -> None:
    log = FakeLog()
    assert await ask(log, 50, 60) == (ErrorCode.NONE, 60)
    assert log.calls == [60]
