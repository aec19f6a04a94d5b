"""The metadata topic seen by a member: led here, followed, or far away."""

import asyncio

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.remote.metadata_topic import REMOTE_LOG_METADATA
from protocol.records.builder import build_batch
from tests.unit.broker.remote.leader_world import PARTITIONS, THERE, LeaderWorld
from tests.unit.broker.remote.test_metadata_log import Listener
from tests.unit.broker.world import NODE_ID
from tiered.errors import RemoteOffsetNotFoundError, RemoteStorageNotReadyError
from tiered.metadata.log import LogOffsets, LogPage


async def opened(w: LeaderWorld) -> Listener:
    listener = Listener()
    await w.log.open(listener)
    return listener


async def test_what_is_led_here_is_written_and_read_here(w: LeaderWorld) -> None:
    w.serve(1)
    w.lead(NODE_ID)
    listener = await opened(w)
    assert w.log.partition_count == PARTITIONS
    assert listener.elected == [1]
    assert await w.log.append(1, b"a") == 0
    assert await w.log.offsets(1) == LogOffsets(0, 1)
    assert await w.log.read(1, 0, 1000) == LogPage([(0, b"a")], 1)
    assert w.leader.requests == []


async def test_a_new_leader_waits_for_its_high_watermark(w: LeaderWorld) -> None:
    """What the leader before has acknowledged may lie above it, and must not seem to be gone."""
    partition = w.serve()
    batch = build_batch([(None, b"a", (), 0)])
    partition.append(memoryview(batch), 0)
    await w.world.until(lambda: partition.log.high_watermark == 1)
    partition.log.update_high_watermark(0)
    state = PartitionImage(0, NODE_ID, 7, 1, (NODE_ID, THERE), (NODE_ID, THERE))
    partition.become_leader(state, now_ms=0.0)
    partition.log.update_high_watermark(0)
    await opened(w)
    with pytest.raises(RemoteStorageNotReadyError, match="end is not known"):
        await w.log.offsets(0)


async def test_a_broker_without_a_replica_reads_from_the_leader(w: LeaderWorld) -> None:
    w.lead(THERE)
    listener = await opened(w)
    assert listener.elected == []
    w.leader.put(b"a", b"b")
    assert await w.log.read(0, 0, 1000) == LogPage([], 0), "nothing says that there is something"
    assert await w.log.offsets(0) == LogOffsets(0, 2)
    assert await w.log.read(0, 0, 1000) == LogPage([(0, b"a"), (1, b"b")], 2)
    assert await w.log.read(0, 2, 1000) == LogPage([], 2)


async def test_and_looks_for_more_now_and_then(w: LeaderWorld) -> None:
    w.lead(THERE)
    listener = await opened(w)
    await w.log.read(0, 0, 1000)
    listener.advanced.clear()
    w.leader.put(b"a")
    for _ in range(10):
        w.world.timer.advance(100)
        await asyncio.sleep(0)
    await w.world.until(lambda: listener.advanced == [0])
    assert await w.log.read(0, 0, 1000) == LogPage([(0, b"a")], 1)


async def test_what_it_has_written_it_sees_at_once(w: LeaderWorld) -> None:
    w.lead(THERE)
    await opened(w)
    w.leader.put(b"theirs")
    assert await w.log.append(0, b"mine") == 1
    assert await w.log.read(0, 0, 1000) == LogPage([(0, b"theirs"), (1, b"mine")], 2)


async def test_a_follower_reads_its_own_replica_up_to_the_high_watermark(w: LeaderWorld) -> None:
    partition = w.serve()
    for value in (b"a", b"b"):
        partition.append(memoryview(build_batch([(None, value, (), 0)])), 0)
    await w.world.until(lambda: partition.log.high_watermark == 2)
    partition.log.update_high_watermark(1)
    w.world.replicas.stop_leading(partition)
    partition.become_follower(THERE, 8)
    w.lead(THERE)
    listener = await opened(w)
    assert listener.elected == []
    assert await w.log.read(0, 0, 1000) == LogPage([(0, b"a")], 1)
    assert await w.log.read(0, 1, 1000) == LogPage([], 1)
    assert w.leader.requests == []
    listener.advanced.clear()
    partition.follow_high_watermark(2, 0)
    await w.world.until(lambda: listener.advanced == [0])
    assert await w.log.read(0, 1, 1000) == LogPage([(1, b"b")], 2)


async def test_an_offset_that_the_leader_does_not_have(w: LeaderWorld) -> None:
    """It was cut back: the reader begins anew."""
    w.lead(THERE)
    await opened(w)
    w.leader.put(b"a", b"b")
    await w.log.offsets(0)
    w.leader.values.clear()
    with pytest.raises(RemoteOffsetNotFoundError):
        await w.log.read(0, 1, 1000)
    assert await w.log.offsets(0) == LogOffsets(0, 0)


async def test_without_a_leader_nothing_is_known(w: LeaderWorld) -> None:
    await opened(w)
    with pytest.raises(RemoteStorageNotReadyError, match="not led now"):
        await w.log.offsets(0)


async def test_another_leader_is_tried_at_once(w: LeaderWorld) -> None:
    w.lead(THERE)
    listener = await opened(w)
    w.leader.codes = ["silent"]
    reading = asyncio.ensure_future(w.log.offsets(0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    listener.advanced.clear()
    w.log.on_image(*w.lead(THERE))
    with pytest.raises(RemoteStorageNotReadyError):
        await reading
    assert listener.advanced == [0, 1]
    listener.advanced.clear()
    w.log.on_image(w.image, w.image)
    assert listener.advanced == []


async def test_roles_that_come_and_go(w: LeaderWorld) -> None:
    listener = await opened(w)
    partition = w.serve()
    w.log.on_role(0)
    assert listener.elected == [0]
    w.world.replicas.stop_leading(partition)
    partition.become_follower(THERE, 8)
    listener.resigned.clear()
    w.log.on_role(0)
    assert listener.resigned == [0]
    w.world.replicas.remove_topic(REMOTE_LOG_METADATA)
    w.log.on_role(0)
    w.log.close()
    w.log.on_role(0)
    assert listener.elected == [0]
