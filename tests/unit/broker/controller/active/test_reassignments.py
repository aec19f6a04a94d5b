"""Reassignments as the controller plans and commits them: begun, complete, cancelled, refused."""

from collections.abc import AsyncIterator

import pytest

from broker.controller.active.reassignments import ReassignmentRequest, reassigning
from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.images.features import VARVE_VERSION, FeatureUpdate
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.store.metadata_store import Delete
from broker.controller.topics.topics import NewPartitions, NewTopic
from protocol.error_codes import ErrorCode
from tests.fakes.broker.control_world import ControlWorld


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    world = await ControlWorld.open(5, min_insync_replicas=2)
    try:
        yield world
    finally:
        await world.close()


async def with_topic(world: ControlWorld, *replicas: int, **configs: str) -> None:
    await world.start()
    topic = NewTopic("t", assignments=[(0, replicas)], configs=list(configs.items()))
    (result,) = await world.active.controller.create_topics([topic])
    assert result.error is ErrorCode.NONE, result.message


def partition(world: ControlWorld) -> PartitionImage:
    found = world.image.partition("t", 0)
    assert found is not None
    return found


async def alter(
    world: ControlWorld,
    *replicas: int,
    topic: str = "t",
    index: int = 0,
    may_resize: bool = True,
) -> ErrorCode:
    """Reassign to these; to none: cancel."""
    request = ReassignmentRequest(topic, index, replicas or None)
    (result,) = await world.active.active.alter_reassignments([request], may_resize=may_resize)
    return result.error


def moves(world: ControlWorld) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    one = partition(world)
    return one.replicas, one.adding, one.removing


async def test_replicas_are_added_then_others_are_removed(world: ControlWorld) -> None:
    await with_topic(world, 1, 2, 3)
    before = partition(world)
    assert await alter(world, 2, 4) is ErrorCode.NONE
    assert moves(world) == ((2, 4, 1, 3), (4,), (1, 3))
    assert partition(world).leader_epoch == before.leader_epoch
    answer = await world.alter_isr("t", 0, [1, 2, 3, 4])
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert moves(world) == ((2, 4), (), ())
    after = partition(world)
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 4), before.leader_epoch + 1)


async def test_another_order_is_no_move(world: ControlWorld) -> None:
    """Nothing is awaited, no leader epoch ends; the first is the preferred leader from then on."""
    await with_topic(world, 1, 2, 3)
    before = partition(world)
    assert await alter(world, 3, 1, 2) is ErrorCode.NONE
    after = partition(world)
    assert moves(world) == ((3, 1, 2), (), ())
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch)
    assert after.partition_epoch == before.partition_epoch + 1


async def test_asking_twice_changes_nothing(world: ControlWorld) -> None:
    await with_topic(world, 1, 2, 3)
    await alter(world, 4, 5, 3)
    once = partition(world)
    assert await alter(world, 4, 5, 3) is ErrorCode.NONE
    assert partition(world) == once


async def test_fewer_replicas_at_once_when_all_that_stay_are_in_sync(world: ControlWorld) -> None:
    await with_topic(world, 1, 2, 3)
    assert await alter(world, 3) is ErrorCode.NONE
    assert moves(world) == ((3,), (), ())
    assert (partition(world).leader, partition(world).isr) == (3, (3,))


async def test_cancel_goes_back_to_what_was_before_all_of_them(world: ControlWorld) -> None:
    """Also from a second one that came over the first."""
    await with_topic(world, 1, 2)
    await alter(world, 3, 4)
    assert (await world.alter_isr("t", 0, [1, 2, 3])).error_code == 0
    await alter(world, 5, 3)
    assert moves(world) == ((5, 3, 1, 2, 4), (3, 4, 5), (1, 2, 4))
    epoch = partition(world).leader_epoch
    assert await alter(world) is ErrorCode.NONE
    assert moves(world) == ((1, 2), (), ())
    assert (partition(world).isr, partition(world).leader_epoch) == ((1, 2), epoch + 1)
    assert await alter(world) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_reassignment_to_all_there_are_removes_none(world: ControlWorld) -> None:
    await with_topic(world, 1, 2)
    await alter(world, 3, 4)
    await alter(world, 3, 4, 1, 2)
    assert moves(world) == ((3, 4, 1, 2), (3, 4), ())


async def test_reassignment_back_is_complete_at_once(world: ControlWorld) -> None:
    await with_topic(world, 1, 2)
    await alter(world, 3, 4)
    await alter(world, 1, 2)
    assert moves(world) == ((1, 2), (), ())


async def test_cancel_is_refused_where_no_replica_of_before_could_lead(
    world: ControlWorld,
) -> None:
    """What is committed since they left is on the new ones alone."""
    await with_topic(world, 1)
    await alter(world, 2)
    await world.alter_isr("t", 0, [1])
    await alter(world, 2, 3)
    await world.alter_isr("t", 0, [1, 3])
    await world.members[1].end_lease()
    await world.settle(4000)
    assert (partition(world).leader, partition(world).isr) == (3, (3,))
    assert await alter(world) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert partition(world).is_reassigning


async def test_unclean_cancel_where_the_topic_allows_it(world: ControlWorld) -> None:
    await with_topic(world, 1, **{"unclean.leader.election.enable": "true"})
    await alter(world, 2, 3)
    await world.alter_isr("t", 0, [1, 3])
    await world.members[1].end_lease()
    await world.settle(4000)
    assert await alter(world) is ErrorCode.INVALID_REPLICA_ASSIGNMENT  # it is dead
    await world.members[1].register()
    await world.settle(4000)
    assert await alter(world) is ErrorCode.NONE
    assert (partition(world).leader, partition(world).is_recovering) == (1, True)


@pytest.mark.parametrize(
    ("replicas", "topic", "index", "error"),
    [
        ((2, 2), "t", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), "t", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, -1), "t", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1,), "u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((1,), "t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((1,), "t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((), "t", 0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
async def test_what_cannot_be_is_refused(
    world: ControlWorld, replicas: tuple[int, ...], topic: str, index: int, error: ErrorCode
) -> None:
    await with_topic(world, 1, 2)
    before = world.image
    assert await alter(world, *replicas, topic=topic, index=index) is error
    assert world.image is before


async def test_replication_factor_stays_where_it_may_not_change(world: ControlWorld) -> None:
    """It is that of where the partition is going."""
    await with_topic(world, 1, 2)
    refused = ErrorCode.INVALID_REPLICATION_FACTOR
    assert await alter(world, 3, may_resize=False) is refused
    assert await alter(world, 3, 4, may_resize=False) is ErrorCode.NONE
    assert await alter(world, 5, 4, may_resize=False) is ErrorCode.NONE
    assert await alter(world, 5, 4, 1, may_resize=False) is refused


async def test_a_dead_broker_is_waited_for(world: ControlWorld) -> None:
    """The others serve; it joins when it is back."""
    await with_topic(world, 1, 2)
    await world.members[4].end_lease()
    await world.settle(4000)
    assert await alter(world, 4, 2) is ErrorCode.NONE
    await world.settle(1000)
    assert (partition(world).is_reassigning, partition(world).leader) == (True, 1)
    await world.members[4].register()
    await world.settle(1000)
    await world.alter_isr("t", 0, [1, 2, 4])
    assert moves(world) == ((4, 2), (), ())


async def test_the_next_controller_ends_what_is_complete(world: ControlWorld) -> None:
    """It finds it in the record: who stays may lead again, and no ISR changes."""
    await with_topic(world, 1, 2)
    await alter(world, 3, 4)
    await world.members[3].drain()
    await world.members[4].drain()
    await world.settle()
    assert partition(world).is_reassigning
    await world.store.txn(then=[Delete(CONTROLLER_KEY)])
    await world.settle(1000)
    assert partition(world).is_reassigning
    for node in (3, 4):
        await world.members[node].register()
    await world.settle(1000)
    await world.alter_isr("t", 0, [1, 2, 3, 4])
    assert moves(world) == ((3, 4), (), ())


async def test_a_topic_that_is_deleted_takes_its_reassignment_along(world: ControlWorld) -> None:
    await with_topic(world, 1, 2)
    await alter(world, 3, 4)
    await world.active.controller.delete_topics([world.image.topics["t"].topic_id])
    assert not list(reassigning(world.image))


async def test_more_partitions_have_as_many_replicas_as_there_are_to_be(
    world: ControlWorld,
) -> None:
    """Not as many as there are in between."""
    await with_topic(world, 1, 2)
    await alter(world, 3, 4)
    (result,) = await world.active.controller.create_partitions([NewPartitions("t", 2)])
    assert result.error is ErrorCode.NONE
    added = world.image.partition("t", 1)
    assert added is not None
    assert len(added.replicas) == 2


async def test_records_of_an_older_release_are_not_given_what_it_would_drop(
    world: ControlWorld,
) -> None:
    await with_topic(world, 1, 2)
    error, message = await world.active.controller.update_features(
        [FeatureUpdate(VARVE_VERSION, 0, 3)]
    )
    assert error is ErrorCode.NONE, message
    assert await alter(world, 3, 4) is ErrorCode.UNSUPPORTED_VERSION
    assert await alter(world, 2, 1) is ErrorCode.NONE
    assert moves(world) == ((2, 1), (), ())


async def test_a_level_is_not_lowered_below_what_records_have(world: ControlWorld) -> None:
    """They could not say what is being added: an older release would end the move halfway."""
    await with_topic(world, 1, 2)
    assert await alter(world, 3, 4) is ErrorCode.NONE
    assert partition(world).is_reassigning
    error, message = await world.active.controller.update_features(
        [FeatureUpdate(VARVE_VERSION, 0, 3)]
    )
    assert error is ErrorCode.INVALID_UPDATE_VERSION
    assert message is not None
    assert "t-0 is being reassigned" in message


async def test_thousands_of_partitions_in_one_request(world: ControlWorld) -> None:
    """In turns of some hundreds: each result is of its partition."""
    await world.start()
    count = 1300
    topic = NewTopic("t", assignments=[(index, (1, 2)) for index in range(count)])
    await world.active.controller.create_topics([topic])
    wanted = [ReassignmentRequest("t", index, (3, 2)) for index in range(count)]
    wanted.append(ReassignmentRequest("t", count, (3, 2)))
    results = await world.active.active.alter_reassignments(wanted)
    assert [one.error for one in results[:-1]] == [ErrorCode.NONE] * count
    assert results[-1].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sum(1 for _ in reassigning(world.image)) == count


async def test_leaderless_partitions_keep_the_only_copies(world: ControlWorld) -> None:
    """Nobody leads; what is in sync is new alone: it is not taken off by a cancel."""
    await with_topic(world, 1)
    await alter(world, 2, 3)
    await world.alter_isr("t", 0, [1, 3])
    for node in (1, 3):
        await world.members[node].end_lease()
        await world.settle(4000)
    assert partition(world).leader == NO_LEADER
    assert await alter(world) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_a_setting_that_completes_one_is_enough(world: ControlWorld) -> None:
    """No ISR changes, no broker comes: nobody else would look."""
    await with_topic(world, 1, 2, 3, **{"min.insync.replicas": "3"})
    for node in (2, 3):
        await world.members[node].end_lease()
    await world.settle(4000)
    await alter(world, 1, 2, 3, 4)
    await world.alter_isr("t", 0, [1, 4])
    assert partition(world).is_reassigning
    resource = ConfigResource(ResourceType.TOPIC, "t")
    changes = {resource: [ConfigOperation("min.insync.replicas", Operation.SET, "2")]}
    await world.active.controller.incremental_alter_configs(changes)
    await world.settle()
    assert moves(world) == ((1, 2, 3, 4), (), ())
