"""ListPartitionReassignments: what is under way, of all partitions or of those that are named."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.controller.active.reassignments import ReassignmentRequest
from broker.controller.topics.topics import NewTopic
from broker.handlers import list_partition_reassignments
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.fakes.broker.control_world import ControlWorld
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    world = await ControlWorld.open(4)
    await world.start()
    topics = [
        NewTopic("s", assignments=[(0, (1,)), (1, (1,))]),
        NewTopic("t", assignments=[(0, (1, 2)), (1, (2, 1))]),
    ]
    await world.active.controller.create_topics(topics)
    try:
        yield world
    finally:
        await world.close()


async def reassign(world: ControlWorld, topic: str, index: int, *replicas: int) -> None:
    request = ReassignmentRequest(topic, index, replicas)
    await world.active.active.alter_reassignments([request])
    await world.settle(50)


async def listed(world: ControlWorld, topics: dict[str, list[int]] | None) -> dict[str, Any]:
    """By partition: replicas, added, removed; as a broker that is not the controller has it."""
    wanted = (
        None
        if topics is None
        else [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ]
    )
    request = ListPartitionReassignmentsRequest(topics=wanted)
    services = services_of(world.nodes[2].controller)
    answer = await call(list_partition_reassignments, services, request, 0)
    assert answer.error_code == 0
    return {
        f"{topic.name}-{one.partition_index}": (
            one.replicas,
            one.adding_replicas,
            one.removing_replicas,
        )
        for topic in answer.topics
        for one in topic.partitions
    }


async def test_all_that_are_under_way(world: ControlWorld) -> None:
    assert await listed(world, None) == {}
    await reassign(world, "s", 1, 3)
    await reassign(world, "t", 0, 2, 3)
    await reassign(world, "t", 1, 1, 2)  # another order: at once
    assert await listed(world, None) == {"s-1": ([3, 1], [3], [1]), "t-0": ([2, 3, 1], [3], [1])}


async def test_those_that_are_named(world: ControlWorld) -> None:
    """What does not exist, and what is not moving, is not in the answer."""
    await reassign(world, "s", 1, 3)
    await reassign(world, "t", 0, 2, 3)
    named = {"t": [0, 1, 7, -1], "u": [0]}
    assert list(await listed(world, named)) == ["t-0"]
    assert await listed(world, {"s": [0]}) == {}
    assert await listed(world, {}) == {}


async def test_a_replica_that_is_not_wanted_any_more_is_removing_only(world: ControlWorld) -> None:
    await reassign(world, "s", 0, 2)
    await reassign(world, "s", 0, 3)
    assert await listed(world, None) == {"s-0": ([3, 1, 2], [3], [1, 2])}


async def test_alone_nothing_is_ever_under_way() -> None:
    services = services_of(await open_controller())
    request = ListPartitionReassignmentsRequest(topics=None)
    answer = await call(list_partition_reassignments, services, request, 0)
    assert (answer.error_code, answer.topics) == (0, [])
