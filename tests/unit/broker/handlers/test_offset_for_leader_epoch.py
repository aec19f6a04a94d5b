"""OffsetForLeaderEpoch: where the log of an epoch ended."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.partition_image import PartitionImage
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from storage.errors import DiskError
from tests.unit.broker.world import NODE_ID, World, batch


def ask(
    world: World,
    version: int,
    *epochs: int,
    current: int = -1,
    index: int = 0,
    replica_id: int = -1,
) -> list[Any]:
    """One partition, once per epoch."""
    partitions = [
        OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        for epoch in epochs
    ]
    request = OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic="t", partitions=partitions)]
    )
    (topic,) = world.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request).topics
    assert topic.topic == "t"
    found: list[Any] = topic.partitions
    return found


def write(world: World, epoch: int, count: int) -> None:
    """Records of one leader epoch."""
    partition = world.replicas.replica_of("t", 0)
    assert partition is not None
    partition.leader_epoch = epoch
    for _ in range(count):
        partition.append(memoryview(batch(b"v")), world.clock.now_ms())


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_an_epoch_ends_where_the_next_began(world: World, version: int) -> None:
    """Asked for one in between: the largest below. The latest ends at the log's end."""
    world.add("t")
    write(world, 2, 3)
    write(world, 5, 4)
    found = [(p.error_code, p.leader_epoch, p.end_offset) for p in ask(world, version, 2, 4, 5)]
    assert found == [(0, 2, 3), (0, 2, 3), (0, 5, 7)]


async def test_nothing_that_old_or_that_new_is_known(world: World) -> None:
    """(-1, -1) without an error: the consumer falls back to its reset policy."""
    world.add("t")
    write(world, 2, 3)
    assert [(p.leader_epoch, p.end_offset) for p in ask(world, 4, 7)] == [(-1, -1)]


async def test_a_replica_that_does_not_lead_compares_the_epoch_first(world: World) -> None:
    world.replicas.is_known = lambda topic, index: topic == "t"
    partition = world.add("t")
    write(world, 3, 1)
    world.replicas.stop_leading(partition)
    codes = [ask(world, 4, 3, current=current)[0].error_code for current in (-1, 2, 3, 4)]
    assert codes == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]


async def test_fenced_as_other_requests_are(world: World) -> None:
    world.add("t")
    write(world, 3, 1)
    for current, code in (
        (3, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        (found,) = ask(world, 4, 3, current=current)
        assert found.error_code == code
        assert found.end_offset == (-1 if code else 1)


async def test_partitions_that_are_not_here(world: World) -> None:
    world.add("t")
    (found,) = ask(world, 4, 0, index=3)
    assert (found.partition, found.error_code) == (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    world.replicas.is_known = lambda _topic, _index: True
    (found,) = ask(world, 4, 0, index=3)
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_an_offline_log_still_knows(world: World) -> None:
    """The answer is in memory; what cannot be read is told by Fetch."""
    partition = world.add("t")
    write(world, 2, 3)
    partition.log.fail(DiskError("cannot read", "/data"))
    (found,) = ask(world, 4, 2)
    assert (found.error_code, found.end_offset) == (0, 3)


async def test_a_leader_in_doubt_tells_consumers_no_end(world: World) -> None:
    """Another may have gone on: they would take what they have read there for truncated."""
    partition = world.add("t")
    write(world, 2, 3)
    write(world, 5, 4)
    image = PartitionImage(0, NODE_ID, 5, 0, (NODE_ID, 2), (NODE_ID, 2))
    partition.become_leader(image, now_ms=world.clock.monotonic_ms())
    world.clock.advance(10_000)
    world.replicas.terms.validity = SimpleNamespace(until_ms=world.clock.monotonic_ms() - 1)
    codes = [(p.error_code, p.end_offset) for p in ask(world, 4, 2, 5, 7)]
    doubtful = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert codes == [(0, 3), doubtful, doubtful]
    assert [p.end_offset for p in ask(world, 4, 5, replica_id=2)] == [7]
