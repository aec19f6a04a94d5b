"""The metadata topic on this broker's own logs: written, flushed, read back, gone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.remote.metadata_log import ReplicaMetadataLog
from broker.remote.metadata_topic import REMOTE_LOG_METADATA
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.types.append_origin import AppendOrigin
from tests.fakes.broker.controller import open_controller
from tests.unit.broker.world import World
from tiered.errors import (
    RemoteOffsetNotFoundError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
)
from tiered.metadata.log import LogOffsets, LogPage


class Listener:
    def __init__(self) -> None:
        self.elected: list[int] = []
        self.resigned: list[int] = []
        self.advanced: list[int] = []

    def on_elected(self, partition: int) -> None:
        self.elected.append(partition)

    def on_resigned(self, partition: int) -> None:
        self.resigned.append(partition)

    def on_advanced(self, partition: int) -> None:
        self.advanced.append(partition)


class Bench:
    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.listener = Listener()
        self.log: ReplicaMetadataLog

    async def start(self) -> None:
        controller = await open_controller()
        self.log = ReplicaMetadataLog(
            self.world.replicas, controller, clock=self.world.clock, partitions=3
        )

    def serve(self, index: int) -> None:
        self.world.add(REMOTE_LOG_METADATA, index, TopicConfig(flush_messages=1))
        self.log.on_serving(index)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.start()
    yield made
    made.log.close()
    made.world.close()


async def test_what_is_written_is_read_back(bench: Bench) -> None:
    await bench.log.open(bench.listener)
    assert bench.log.partition_count == 3
    bench.serve(1)
    assert await bench.log.append(1, b"one") == 0
    assert await bench.log.append(1, b"two") == 1
    assert await bench.log.offsets(1) == LogOffsets(0, 2)
    assert await bench.log.read(1, 0, 1000) == LogPage([(0, b"one"), (1, b"two")], 2)
    assert await bench.log.read(1, 1, 1000) == LogPage([(1, b"two")], 2)
    assert await bench.log.read(1, 2, 1000) == LogPage([], 2)
    # One batch at least, however large.
    assert await bench.log.read(1, 0, 1) == LogPage([(0, b"one")], 1)


async def test_an_append_returns_when_it_is_on_disk(bench: Bench) -> None:
    """The high watermark waits for the flush; so does whoever tells something."""
    await bench.log.open(bench.listener)
    bench.serve(0)
    partition = bench.world.replicas.replica_of(REMOTE_LOG_METADATA, 0)
    assert partition is not None
    appending = asyncio.ensure_future(bench.log.append(0, b"x"))
    await asyncio.sleep(0)
    assert not appending.done()
    assert await bench.log.read(0, 0, 1000) == LogPage([], 0)
    assert await appending == 0
    assert partition.log.recovery_point == 1


async def test_the_listener_is_told_of_partitions_and_of_records(bench: Bench) -> None:
    bench.serve(0)
    assert bench.listener.elected == []
    await bench.log.open(bench.listener)
    assert bench.listener.elected == [0]
    bench.serve(2)
    bench.log.on_serving(2)
    assert bench.listener.elected == [0, 2]
    assert bench.listener.advanced == [0, 2]
    for _ in range(20):
        await bench.log.append(2, b"x")
    await bench.world.until(lambda: 2 in bench.listener.advanced[2:])
    bench.listener.advanced.clear()
    await bench.log.append(2, b"x")
    await bench.world.until(lambda: bench.listener.advanced == [2])


async def test_a_deleted_topic_is_not_served(bench: Bench) -> None:
    await bench.log.open(bench.listener)
    bench.serve(0)
    bench.world.replicas.remove_topic(REMOTE_LOG_METADATA)
    assert bench.listener.resigned == [0]
    for call in (bench.log.append(0, b"x"), bench.log.read(0, 0, 10), bench.log.offsets(0)):
        with pytest.raises(RemoteStorageNotReadyError):
            await call


async def test_an_offset_outside_the_log(bench: Bench) -> None:
    await bench.log.open(bench.listener)
    bench.serve(0)
    await bench.log.append(0, b"x")
    with pytest.raises(RemoteOffsetNotFoundError):
        await bench.log.read(0, 5, 1000)


async def test_control_batches_and_values_that_are_missing(bench: Bench) -> None:
    """Whatever clients may have written: offsets go on."""
    await bench.log.open(bench.listener)
    bench.serve(0)
    partition = bench.world.replicas.replica_of(REMOTE_LOG_METADATA, 0)
    assert partition is not None
    now_ms = bench.world.clock.now_ms()
    records = [(b"k", None, (), now_ms), (None, b"v", (), now_ms)]
    marker = build_end_transaction_marker(
        producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0, timestamp_ms=now_ms
    )
    partition.append(memoryview(build_batch(records)), now_ms)
    partition.append(memoryview(marker), now_ms, AppendOrigin.COORDINATOR)
    await bench.log.append(0, b"mine")
    page = await bench.log.read(0, 0, 1000)
    assert page == LogPage([(0, b""), (1, b"v"), (3, b"mine")], 4)
    assert await bench.log.read(0, 2, 100) == LogPage([], 3)
    assert (await bench.log.read(0, 1, 1000)).records[0] == (1, b"v")


async def test_a_damaged_batch_is_an_error(bench: Bench) -> None:
    await bench.log.open(bench.listener)
    bench.serve(0)
    await bench.log.append(0, b"some value")
    (path,) = bench.world.directory.glob(f"{REMOTE_LOG_METADATA}-0/*.log")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(RemoteStorageError, match="checksum"):
        await bench.log.read(0, 0, 1000)


async def test_nothing_is_told_after_close(bench: Bench) -> None:
    await bench.log.open(bench.listener)
    bench.serve(0)
    bench.log.close()
    bench.listener.advanced.clear()
    await bench.log.append(0, b"x")
    for _ in range(10):
        await asyncio.sleep(0)
    bench.serve(1)
    assert bench.listener.advanced == []
    assert bench.listener.elected == [0]
