"""Log directories at the controller: what brokers say, and what a failed one changes."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from broker.controller.images.broker_records import LastRun
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.topics.topics import NewTopic
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from tests.fakes.broker.control_world import ControlWorld


def directory(node_id: int, number: int) -> UUID:
    return UUID(int=node_id * 1000 + number)


DIRECTORIES = {node: (directory(node, 1), directory(node, 2)) for node in (1, 2, 3)}
OTHER_TOPIC = UUID(int=77)


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    """Three brokers with two directories each, and `t` with two partitions, min ISR 2."""
    world = await ControlWorld.open(3)
    try:
        for node_id, member in world.members.items():
            await member.register(directories=DIRECTORIES[node_id])
        await world.settle()
        new = NewTopic(
            "t",
            assignments=[(0, (1, 2, 3)), (1, (2, 3, 1))],
            configs=[("min.insync.replicas", "2")],
        )
        (result,) = await world.active.controller.create_topics([new])
        assert result.error is ErrorCode.NONE
        yield world
    finally:
        await world.close()


def partition(world: ControlWorld, index: int = 0) -> PartitionImage:
    return world.image.topics["t"].partitions[index]


async def assign(
    world: ControlWorld,
    node_id: int,
    places: dict[int, UUID],
    *,
    epoch: int | None = None,
    topic_id: UUID | None = None,
) -> dict[int, ErrorCode]:
    """What the controller answers for each partition."""
    request = AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=world.members[node_id].broker_epoch if epoch is None else epoch,
        directories=[
            AssignReplicasToDirsRequestDirectoryData(
                id_=place,
                topics=[
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic_id or world.image.topics["t"].topic_id,
                        partitions=[
                            AssignReplicasToDirsRequestPartitionData(partition_index=index)
                        ],
                    )
                ],
            )
            for index, place in places.items()
        ],
    )
    answer = await world.active.active.assign_replicas(request)
    return {
        one.partition_index: ErrorCode(one.error_code)
        for directory in answer.directories
        for topic in directory.topics
        for one in topic.partitions
    }


async def place_all(world: ControlWorld, number: int = 0) -> None:
    for node_id, directories in DIRECTORIES.items():
        await assign(world, node_id, dict.fromkeys((0, 1), directories[number]))


async def test_what_a_broker_says_is_written_once(world: ControlWorld) -> None:
    """A change of the record is of the next partition epoch; saying it again changes nothing."""
    place = DIRECTORIES[2][1]
    assert await assign(world, 2, {0: place}) == {0: ErrorCode.NONE}
    assert partition(world).directory_on(2) == place
    assert partition(world).partition_epoch == 1
    assert (partition(world).leader, partition(world).leader_epoch) == (1, 0)
    assert await assign(world, 2, {0: place}) == {0: ErrorCode.NONE}
    assert partition(world).partition_epoch == 1
    assert partition(world, 1).partition_epoch == 0


async def test_what_is_not_there_is_refused_by_itself(world: ControlWorld) -> None:
    place = DIRECTORIES[2][0]
    assert await assign(world, 2, {0: place, 9: place}) == {
        0: ErrorCode.NONE,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert await assign(world, 2, {0: place}, topic_id=OTHER_TOPIC) == {
        0: ErrorCode.UNKNOWN_TOPIC_ID
    }
    (result,) = await world.active.controller.create_topics(
        [NewTopic("u", assignments=[(0, (1, 3))])]
    )
    assert result.topic is not None
    assert await assign(world, 2, {0: place}, topic_id=result.topic.topic_id) == {
        0: ErrorCode.NOT_LEADER_OR_FOLLOWER
    }


async def test_an_earlier_life_is_not_believed(world: ControlWorld) -> None:
    with pytest.raises(ApiError) as refusal:
        await assign(world, 2, {0: DIRECTORIES[2][0]}, epoch=1)
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert partition(world).partition_epoch == 0
    standby = next(node for node in world.nodes.values() if not node.active.is_active)
    with pytest.raises(ApiError) as refusal:
        await standby.active.assign_replicas(AssignReplicasToDirsRequest(broker_id=2))
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_failed_directory_costs_exactly_its_replicas(world: ControlWorld) -> None:
    """Its leader is another, its follower out of the ISR; those beside it are left alone."""
    await place_all(world)
    await assign(world, 1, {1: DIRECTORIES[1][1]})
    await world.members[1].fail_directories(DIRECTORIES[1][0])
    await world.settle(100)
    led = partition(world, 0)
    assert (led.leader, led.isr, led.leader_epoch) == (2, (2, 3), 1)
    untouched = partition(world, 1)
    assert (untouched.leader, untouched.isr, untouched.leader_epoch) == (2, (2, 3, 1), 0)
    assert not world.image.brokers[1].is_fenced
    again = await world.alter_isr("t", 0, (2, 3, 1))
    assert again.error_code == ErrorCode.INELIGIBLE_REPLICA


async def test_a_replica_said_to_be_in_a_failed_directory_leads_no_longer(
    world: ControlWorld,
) -> None:
    """The controller could not know before that the directory mattered."""
    await world.members[1].fail_directories(DIRECTORIES[1][0])
    await world.settle(100)
    assert partition(world).leader == 1
    assert await assign(world, 1, {0: DIRECTORIES[1][0]}) == {0: ErrorCode.NONE}
    await world.settle(100)
    assert (partition(world).leader, partition(world).isr) == (2, (2, 3))


async def test_the_last_in_sync_replica_is_eligible_and_leads_from_no_failed_directory(
    world: ControlWorld,
) -> None:
    """It waits for a life in which its directory works."""
    await place_all(world)
    for node_id in (1, 2, 3):
        await world.members[node_id].fail_directories(*DIRECTORIES[node_id])
        await world.settle(100)
    lost = partition(world)
    assert (lost.leader, lost.isr) == (NO_LEADER, ())
    assert set(lost.elr) == {2, 3}
    await world.members[3].register(LastRun.CLEAN, directories=DIRECTORIES[3])
    await world.settle(300)
    assert partition(world).leader == 3


async def test_a_directory_that_is_missing_at_a_start_is_offline(world: ControlWorld) -> None:
    await place_all(world)
    await world.members[1].register(LastRun.UNKNOWN, directories=DIRECTORIES[1][1:])
    await world.settle(300)
    assert not world.image.brokers[1].is_fenced
    answer = await world.alter_isr("t", 0, (2, 3, 1))
    assert answer.error_code == ErrorCode.INELIGIBLE_REPLICA
    await assign(world, 1, {0: DIRECTORIES[1][1]})
    assert (await world.alter_isr("t", 0, (2, 3, 1))).error_code == ErrorCode.NONE


async def test_failed_directories_are_of_one_life(world: ControlWorld) -> None:
    """The next one says itself which of them work."""
    await place_all(world)
    await world.members[1].fail_directories(DIRECTORIES[1][0])
    await world.settle(100)
    await world.members[1].register(directories=DIRECTORIES[1])
    await world.settle(300)
    assert world.image.brokers[1].failed_directories == ()
    assert (await world.alter_isr("t", 0, (2, 3, 1))).error_code == ErrorCode.NONE


async def test_who_has_no_room_leads_only_what_nobody_else_could(world: ControlWorld) -> None:
    """It leaves the ISR, and joins none; with room it is a replica like any other."""
    await place_all(world)
    await world.members[1].fail_directories(full=DIRECTORIES[1][:1])
    await world.settle(100)
    assert (partition(world).leader, partition(world).isr) == (2, (2, 3))
    assert (await world.alter_isr("t", 0, (2, 3, 1))).error_code == ErrorCode.INELIGIBLE_REPLICA
    for node_id in (2, 3):
        await world.members[node_id].fail_directories(full=DIRECTORIES[node_id][:1])
        await world.settle(100)
    assert (partition(world).leader, partition(world).isr) == (3, (3,))
    await world.members[1].fail_directories()
    await world.settle(100)
    assert (await world.alter_isr("t", 0, (3, 1))).error_code == ErrorCode.NONE
    await world.settle(100)
    assert (partition(world).leader, partition(world).isr) == (1, (1,))
