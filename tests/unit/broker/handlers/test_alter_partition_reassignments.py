"""AlterPartitionReassignments, in every version: on the one node there is, and on a cluster."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.controller.active.active_controller import ActiveController
from broker.controller.topics.topics import NewTopic
from broker.handlers import alter_partition_reassignments
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.fakes.broker.control_world import ControlWorld
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer


def request_of(
    topic: str, index: int, replicas: list[int] | None, *, may_resize: bool = True
) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])],
        allow_replication_factor_change=may_resize,
    )


@pytest.mark.parametrize("version", versions_of(alter_partition_reassignments))
@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("t", 0, [1], ErrorCode.NONE),
        ("t", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 1, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_alone_only_what_is_already_so_is_accepted(
    version: int, topic: str, index: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    """With Kafka's codes for the rest."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 1, 1)])
    before = controller.image
    active = ActiveController(
        node_id=1,
        changes=controller.changes,
        image=lambda: controller.image,
        rules=controller.config_rules,
        writes=lambda _epoch: pytest.fail("a single node is not elected"),
        timer=ManualTimer(),
        clock=ManualClock(),
    )
    services = services_of(controller, active_controller=active)
    request = request_of(topic, index, replicas)
    answer = await call(alter_partition_reassignments, services, request, version)
    (found,) = answer.responses[0].partitions
    assert (answer.error_code, found.partition_index, found.error_code) == (0, index, code)
    assert controller.image is before


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    world = await ControlWorld.open(3)
    await world.start()
    topic = NewTopic("t", assignments=[(0, (1, 2)), (1, (2, 1))])
    await world.active.controller.create_topics([topic])
    try:
        yield world
    finally:
        await world.close()


async def ask(world: ControlWorld, request: AlterPartitionReassignmentsRequest, node: int) -> Any:
    services = services_of(world.nodes[node].controller, active_controller=world.nodes[node].active)
    return await call(alter_partition_reassignments, services, request, 1)


async def test_on_a_cluster_replicas_move(world: ControlWorld) -> None:
    answer = await ask(world, request_of("t", 1, [3, 1]), 1)
    assert answer.responses[0].partitions[0].error_code == 0
    partition = world.image.partition("t", 1)
    assert partition is not None
    assert (partition.replicas, partition.adding, partition.removing) == ((3, 1, 2), (3,), (2,))


async def test_the_replication_factor_may_be_kept(world: ControlWorld) -> None:
    answer = await ask(world, request_of("t", 1, [3], may_resize=False), 1)
    (found,) = answer.responses[0].partitions
    assert found.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert found.error_message == "The replication factor is changed from 2 to 1"


async def test_not_the_controller_is_said_for_the_whole_request(world: ControlWorld) -> None:
    """So that a client looks for it and asks again."""
    answer = await ask(world, request_of("t", 1, [3, 1]), 2)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert "0 of 1 partitions are begun" in (answer.error_message or "")
