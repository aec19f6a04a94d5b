"""Each failover has the cause that is known of it."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from broker.controller.active.failover_causes import Cause
from broker.controller.images.broker_records import LastRun, encode_suspicion, suspicion_key
from broker.controller.store.metadata_store import Delete, Put
from broker.controller.topics.topics import NewTopic
from protocol.error_codes import ErrorCode
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from tests.fakes.broker.control_world import ControlWorld

DISKS = (UUID(int=71), UUID(int=72))


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    """Two partitions led by broker 2; broker 1 is the controller."""
    world = await ControlWorld.open(3)
    await world.start()
    await world.members[2].register(directories=DISKS)
    await world.settle(200)
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(0, (2, 3)), (1, (2, 3))])]
    )
    assert result.topic is not None
    for index in (0, 1):
        await place(world, result.topic.topic_id, index)
    try:
        yield world
    finally:
        await world.close()


async def place(world: ControlWorld, topic_id: UUID, index: int) -> None:
    """Broker 2 has its replica in the first of its directories."""
    answer = await world.active.active.assign_replicas(
        AssignReplicasToDirsRequest(
            broker_id=2,
            broker_epoch=world.members[2].broker_epoch,
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id_=DISKS[0],
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=index)
                            ],
                        )
                    ],
                )
            ],
        )
    )
    assert answer.directories[0].topics[0].partitions[0].error_code == 0


def causes(world: ControlWorld) -> dict[Cause, int]:
    return {cause: count for cause, count in world.active.active.leaders_lost.items() if count}


def why(world: ControlWorld) -> str:
    fence = world.image.facts[2].fence
    assert fence is not None
    return fence.why


async def test_evidence_says_that_a_process_was_killed(world: ControlWorld) -> None:
    said = Put(suspicion_key(2, 3), encode_suspicion(world.members[2].broker_epoch))
    await world.store.txn(then=[said])
    await world.spin()
    await world.store.txn(then=[Delete("live/2"), Delete(said.key)])
    await world.settle(200)
    assert causes(world) == {Cause.KILLED: 2}
    assert set(world.active.active.failover_ms) == {Cause.KILLED}
    assert why(world) == "its process is dead: connections to it ended, and new ones are refused"


async def test_a_lease_that_ends_by_itself_has_expired(world: ControlWorld) -> None:
    """Also where another broker had said something of it: that is still there."""
    said = Put(suspicion_key(2, 3), encode_suspicion(world.members[2].broker_epoch))
    await world.store.txn(then=[said])
    await world.members[2].end_lease()
    await world.settle(200)
    assert causes(world) == {Cause.LEASE_EXPIRED: 2}
    assert why(world) == "its lease has ended"


async def test_a_broker_that_drains_is_stopped_afterwards(world: ControlWorld) -> None:
    """It has nothing left to lose then."""
    await world.members[2].drain()
    await world.settle(200)
    assert causes(world) == {Cause.DRAINING: 2}
    await world.members[2].end_lease()
    await world.settle(200)
    assert causes(world) == {Cause.DRAINING: 2}
    assert set(world.active.active.failover_ms) == {Cause.DRAINING, Cause.STOPPED}
    assert why(world) == "it was stopped"


async def test_a_full_directory_is_named(world: ControlWorld) -> None:
    await world.members[2].fail_directories(full=DISKS[:1])
    await world.settle(200)
    assert causes(world) == {Cause.FULL_DIRECTORY: 2}


async def test_a_failed_directory_is_named(world: ControlWorld) -> None:
    await world.members[2].fail_directories(*DISKS[:1])
    await world.settle(200)
    assert causes(world) == {Cause.FAILED_DIRECTORY: 2}


async def test_a_new_life_ends_the_leaderships_of_the_one_before(world: ControlWorld) -> None:
    world.members[2].lease = 0
    await world.members[2].register(LastRun.SAME_BOOT, directories=DISKS)
    await world.settle(200)
    assert causes(world) == {Cause.RESTARTED: 2}


async def test_partitions_without_a_leader_get_one_that_returns(world: ControlWorld) -> None:
    await world.members[3].end_lease()
    await world.settle(1_000)
    await world.members[2].end_lease()
    await world.settle(1_000)
    assert causes(world) == {Cause.LEASE_EXPIRED: 2}
    await world.members[2].return_()
    await world.settle(200)
    assert causes(world) == {Cause.LEASE_EXPIRED: 2, Cause.RETURNED: 2}


async def test_an_unclean_election_is_named_whatever_it_followed(world: ControlWorld) -> None:
    (result,) = await world.active.controller.create_topics(
        [
            NewTopic(
                "u",
                assignments=[(0, (2, 3))],
                configs=[("unclean.leader.election.enable", "true")],
            )
        ]
    )
    assert result.error is ErrorCode.NONE
    assert (await world.alter_isr("u", 0, [2])).error_code == 0
    await world.members[2].end_lease()
    await world.settle(200)
    assert causes(world) == {Cause.LEASE_EXPIRED: 2, Cause.UNCLEAN: 1}


async def test_the_only_replica_that_is_back_is_not_called_unclean(
    world: ControlWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """How its broker ended is not known, so it may lack records; there is nobody who has more."""
    (result,) = await world.active.controller.create_topics(
        [NewTopic("u", assignments=[(0, (2,))])]
    )
    assert result.error is ErrorCode.NONE
    world.members[2].lease = 0
    await world.members[2].register(LastRun.UNKNOWN, directories=DISKS)
    caplog.clear()
    await world.settle(200)
    assert causes(world)[Cause.ALONE] == 1
    assert Cause.UNCLEAN not in causes(world)
    assert world.active.active.unclean_elections == 1
    lines = [r.getMessage() for r in caplog.records if "leaders elected" in r.getMessage()]
    assert any("alone=1 unclean=0" in line for line in lines)
