"""The active controller on a store with others: brokers let in and fenced, leaders, ISR changes."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from broker.controller.active.leader_requests import LeaderRequest
from broker.controller.active.log_recovery import Asked, LogEnd
from broker.controller.active.partition_change import Election
from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.images.broker_records import Fence, LastRun
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.images.features import (
    SUPPORTED,
    VARVE_VERSION,
    FeatureUpdate,
    SupportedRange,
    UpgradeType,
)
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.store.metadata_store import Delete
from broker.controller.topics.topics import NewTopic
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest
from tests.fakes.broker.control_world import ControlWorld

ASSIGNMENT = [(0, (1, 2, 3)), (1, (2, 3, 1)), (2, (3, 1, 2))]


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    world = await ControlWorld.open(3)
    try:
        yield world
    finally:
        await world.close()


async def with_topic(world: ControlWorld, **configs: str) -> None:
    await world.start()
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=ASSIGNMENT, configs=list(configs.items()))]
    )
    assert result.error is ErrorCode.NONE, result.message


def partition(world: ControlWorld, index: int = 0) -> PartitionImage:
    return world.image.topics["t"].partitions[index]


async def test_first_broker_is_elected_and_lets_all_in(world: ControlWorld) -> None:
    """Before there is a controller all are fenced, also the one that becomes it."""
    await world.start()
    assert world.active.member.node_id == 1
    for node in world.nodes.values():
        assert node.image.controller_id == 1
        assert [broker.is_fenced for broker in node.image.brokers.values()] == [False] * 3


async def test_a_broker_that_lacks_a_level_is_not_let_in(world: ControlWorld) -> None:
    """It would write records without the fields that it does not know; its fence says so."""
    await world.start()
    older = {**SUPPORTED, VARVE_VERSION: SupportedRange(0, 0)}
    await world.members[3].register(features=older)
    await world.settle(200)
    assert world.image.brokers[3].is_fenced
    assert world.image.facts[3].fence == Fence(
        0, "the cluster has feature varve.version at level 1; this release supports 0 to 0"
    )
    await world.members[3].register()
    await world.settle(200)
    assert not world.image.brokers[3].is_fenced


async def test_a_level_waits_for_all_brokers(world: ControlWorld) -> None:
    """Two releases run side by side at the lower level, and the higher one is refused."""
    await world.start()
    active = world.active
    lower = FeatureUpdate(VARVE_VERSION, 0, UpgradeType.SAFE_DOWNGRADE)
    higher = FeatureUpdate(VARVE_VERSION, 1, UpgradeType.UPGRADE)
    controller = active.controller
    assert await controller.update_features([lower]) == (ErrorCode.NONE, None)
    older = {**SUPPORTED, VARVE_VERSION: SupportedRange(0, 0)}
    await world.members[3].register(features=older)
    await world.settle(200)
    assert not world.image.brokers[3].is_fenced
    error, message = await controller.update_features([higher])
    assert error is ErrorCode.INVALID_UPDATE_VERSION
    assert message is not None
    assert "Broker 3" in message
    await world.members[3].register()
    await world.settle(200)
    assert await controller.update_features([higher]) == (ErrorCode.NONE, None)


async def test_a_dead_broker_is_fenced_and_its_partitions_get_leaders(world: ControlWorld) -> None:
    """In order of replicas; the others lose it from their ISR without a new leader epoch."""
    await with_topic(world)
    await world.members[2].end_lease()
    await world.settle(200)
    assert world.image.brokers[2].is_fenced
    assert partition(world, 1) == PartitionImage(1, 3, 1, 1, (2, 3, 1), (3, 1))
    assert partition(world, 0) == PartitionImage(0, 1, 0, 1, (1, 2, 3), (1, 3))


async def test_a_broker_is_let_in_after_its_partitions_have_other_leaders(
    world: ControlWorld,
) -> None:
    """Its new life must not lead in an epoch in which the old one did."""
    await with_topic(world)
    fenced_before: list[bool] = []

    def watch(_old: object, new: object) -> None:
        image = world.nodes[1].image
        led = [p for p in image.topics["t"].partitions if p.leader == 2]
        if led and image.brokers[2].epoch != epoch:
            fenced_before.append(image.brokers[2].is_fenced)

    epoch = world.members[2].broker_epoch
    world.nodes[1].controller.subscribe_now(watch)
    await world.members[2].register()
    await world.settle(500)
    assert fenced_before
    assert all(fenced_before)
    assert not world.image.brokers[2].is_fenced
    assert partition(world, 1).leader == 3


async def test_a_lease_that_is_back_at_once_moves_nothing(world: ControlWorld) -> None:
    """Same epoch, same leaders; nothing is written."""
    await with_topic(world)
    before = [partition(world, index) for index in range(3)]
    await world.members[2].end_lease()
    await world.spin()
    await world.members[2].return_()
    await world.settle(500)
    assert [partition(world, index) for index in range(3)] == before
    assert not world.image.brokers[2].is_fenced


async def test_leases_that_end_together_are_waited_for(world: ControlWorld) -> None:
    """Two of three: the store has ended them too early. Who is not back in a second is dead."""
    await with_topic(world)
    for node_id in (2, 3):
        await world.members[node_id].end_lease()
    await world.settle(900)
    assert not world.image.brokers[2].is_fenced
    await world.members[2].return_()
    await world.settle(300)
    assert not world.image.brokers[2].is_fenced
    assert world.image.brokers[3].is_fenced
    assert partition(world, 2).leader == 1
    assert world.active.active.early_lease_ends == 1


@pytest.mark.parametrize("min_isr", ["1", "2"])
async def test_the_first_of_all_that_were_killed_leads_what_it_has(
    world: ControlWorld, min_isr: str
) -> None:
    """It was in the ISR until all were dead: nothing was committed without it.

    The ISR without it alone, of brokers whose leases had ended with its own, would be waited for.
    """
    await with_topic(world, **{"min.insync.replicas": min_isr})
    for member in world.members.values():
        await member.end_lease()
    await world.members[1].register(ended=LastRun.SAME_BOOT)
    await world.settle(3_000)
    assert not world.image.brokers[1].is_fenced
    for index in range(3):
        found = partition(world, index)
        assert (found.leader, found.isr, found.leader_epoch > 0) == (1, (1,), True)
        assert set(found.elr) == ({2, 3} if min_isr == "2" else set())


async def test_nobody_is_let_in_while_it_is_not_known_who_lives(world: ControlWorld) -> None:
    """The record still names its life of before as leader: it would lead in one epoch twice."""
    await with_topic(world)
    for node_id in (2, 3):
        await world.members[node_id].end_lease()
    epoch = partition(world).leader_epoch
    await world.members[1].register(ended=LastRun.SAME_BOOT)
    await world.settle(500)
    assert world.image.brokers[1].is_fenced
    assert partition(world).leader_epoch == epoch
    await world.members[2].return_()
    await world.settle(200)
    assert not world.image.brokers[1].is_fenced
    assert (partition(world).leader, partition(world).leader_epoch) == (2, epoch + 1)
    assert 1 not in partition(world).isr


def waits(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the controller has said of partitions without a leader."""
    found = [line for line in caplog.messages if "leader, they need" in line or "again" in line]
    caplog.clear()
    return found


async def test_what_partitions_without_a_leader_need_is_said_once(
    world: ControlWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "broker.controller.active.leaderless")
    await with_topic(world, **{"min.insync.replicas": "2"})
    for member in world.members.values():
        await member.end_lease()
    await world.members[1].register(ended=LastRun.UNKNOWN)
    await world.settle(3_000)
    assert waits(caplog) == [
        "partitions have no leader, they need one of brokers 2, 3 partitions=3 first=t-0"
    ]
    await world.members[2].register(ended=LastRun.UNKNOWN)
    await world.settle(1_000)
    assert waits(caplog) == ["partitions have no leader, they need broker 3 partitions=3 first=t-0"]
    await world.members[3].register(ended=LastRun.SAME_BOOT)
    await world.settle(1_000)
    assert waits(caplog) == ["all partitions have leaders again"]


async def test_a_fenced_broker_that_returns_with_its_epoch_is_let_in(world: ControlWorld) -> None:
    """It has only lost its lease, so it stays in the ELR, whatever the end before its start."""
    await world.start(ended=LastRun.UNKNOWN)
    await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(0, (2, 3))], configs=[("min.insync.replicas", "2")])]
    )
    await world.members[2].end_lease()
    await world.settle(200)
    assert partition(world).elr == (2,)
    await world.members[2].return_()
    await world.settle(200)
    assert not world.image.brokers[2].is_fenced
    assert partition(world).elr == (2,)


async def test_an_unknown_end_leaves_the_elr(world: ControlWorld) -> None:
    """And a clean one does not."""
    await with_topic(world, **{"min.insync.replicas": "3"})
    await world.members[2].end_lease()
    await world.settle(200)
    assert partition(world).elr == (2,)
    await world.members[2].register(LastRun.CLEAN)
    await world.settle(200)
    assert partition(world).elr == (2,)
    await world.members[2].register(LastRun.UNKNOWN)
    await world.settle(200)
    assert partition(world).elr == ()
    assert partition(world).last_known_elr == (2,)
    assert not world.image.brokers[2].is_fenced


async def test_a_smaller_minimum_empties_the_elr_in_the_same_transaction(
    world: ControlWorld,
) -> None:
    """From then on the leader commits without it; the default of other topics changes nothing."""
    await with_topic(world, **{"min.insync.replicas": "3"})
    await world.members[2].end_lease()
    await world.settle(200)
    assert (partition(world).isr, partition(world).elr) == ((1, 3), (2,))
    seen: list[tuple[str, tuple[int, ...]]] = []

    def watch(_old: object, new: ClusterImage) -> None:
        topic = new.topics["t"]
        seen.append((topic.overrides["min.insync.replicas"], topic.partitions[0].elr))

    controller = world.active.controller
    controller.subscribe_now(watch)
    everywhere = ConfigResource(ResourceType.BROKER, "")
    topic = ConfigResource(ResourceType.TOPIC, "t")
    for resource, value in ((everywhere, "2"), (topic, "2")):
        change = [ConfigOperation("min.insync.replicas", Operation.SET, value)]
        results = await controller.incremental_alter_configs({resource: change})
        assert results[resource].error is ErrorCode.NONE, results
    assert seen == [("3", (2,)), ("2", ())]


async def test_minima_of_cluster_and_topic_may_change_in_one_request(world: ControlWorld) -> None:
    """Each is planned on what the one before has left: the topic's goes, the cluster's holds."""
    await with_topic(world, **{"min.insync.replicas": "3"})
    await world.members[2].end_lease()
    await world.settle(200)
    assert (partition(world).isr, partition(world).elr) == ((1, 3), (2,))
    controller = world.active.controller
    everywhere = ConfigResource(ResourceType.BROKER, "")
    topic = ConfigResource(ResourceType.TOPIC, "t")
    changes = {
        topic: [ConfigOperation("min.insync.replicas", Operation.DELETE, None)],
        everywhere: [ConfigOperation("min.insync.replicas", Operation.SET, "2")],
    }
    results = await controller.incremental_alter_configs(changes)
    assert [result.error for result in results.values()] == [ErrorCode.NONE] * 2
    assert world.image.topics["t"].overrides == {}
    assert partition(world).elr == ()


async def test_without_an_eligible_replica_nobody_leads(world: ControlWorld) -> None:
    """Until one returns; ISR and ELR say who may."""
    await world.start()
    await world.active.controller.create_topics([NewTopic("t", assignments=[(0, (2,))])])
    await world.members[2].end_lease()
    await world.settle(200)
    assert (partition(world).leader, partition(world).isr) == (NO_LEADER, ())
    assert partition(world).elr == (2,)
    await world.members[2].register()
    await world.settle(200)
    assert (partition(world).leader, partition(world).isr) == (2, (2,))
    assert partition(world).leader_epoch == 2
    assert world.active.active.elr_elections == 1


async def test_unclean_election_is_counted(world: ControlWorld) -> None:
    """A replica that was out of sync leads, where the topic allows it."""
    await with_topic(world, **{"unclean.leader.election.enable": "true"})
    assert (await world.alter_isr("t", 0, [1])).error_code == 0
    await world.members[1].end_lease()
    await world.settle(3000)
    assert partition(world).leader == 2
    assert partition(world).is_recovering
    assert world.active.active.unclean_elections == 1


TOPIC_T = ConfigResource(ResourceType.TOPIC, "t")
EVERYWHERE = ConfigResource(ResourceType.BROKER, "")


async def set_config(world: ControlWorld, resource: ConfigResource, key: str, value: str) -> None:
    """Without letting time pass."""
    change = [ConfigOperation(key, Operation.SET, value)]
    results = await world.active.controller.incremental_alter_configs({resource: change})
    assert results[resource].error is ErrorCode.NONE, results
    await world.spin()


@pytest.mark.parametrize("resource", [TOPIC_T, EVERYWHERE])
async def test_unclean_election_that_is_allowed_is_held_at_once(
    world: ControlWorld, resource: ConfigResource
) -> None:
    """For partitions that have no leader; nothing else has to happen."""
    await with_topic(world)
    assert (await world.alter_isr("t", 0, [1])).error_code == 0
    await world.members[1].end_lease()
    await world.settle(2000)
    before = [partition(world, index) for index in (1, 2)]
    assert partition(world).leader == NO_LEADER
    await set_config(world, resource, "unclean.leader.election.enable", "false")
    assert partition(world).leader == NO_LEADER
    await set_config(world, resource, "unclean.leader.election.enable", "true")
    assert (partition(world).leader, partition(world).isr) == (2, (2,))
    assert [partition(world, index) for index in (1, 2)] == before
    assert world.active.active.unclean_elections == 1


@pytest.mark.parametrize("resource", [TOPIC_T, EVERYWHERE])
async def test_a_recovery_strategy_acts_at_once(
    world: ControlWorld, resource: ConfigResource
) -> None:
    """The logs are compared when the setting allows it, not when a broker comes or goes."""
    asked: list[int] = []

    async def ask(
        node_id: int, wanted: Sequence[Asked], _timeout_ms: float
    ) -> Mapping[Asked, LogEnd]:
        asked.append(node_id)
        return dict.fromkeys(wanted, LogEnd(0, 10 * node_id))

    await with_topic(world)
    for node in world.nodes.values():
        node.active.recovery.ask = ask
    assert (await world.alter_isr("t", 0, [1])).error_code == 0
    await world.members[1].end_lease()
    await world.settle(2000)
    assert (partition(world).leader, asked) == (NO_LEADER, [])
    await set_config(world, resource, "unclean.recovery.strategy", "Aggressive")
    assert (partition(world).leader, sorted(asked)) == (3, [2, 3])


async def test_a_draining_broker_hands_over(world: ControlWorld) -> None:
    """It leaves ISRs in which another can lead, and goes on where nobody can."""
    await with_topic(world)
    await world.active.controller.create_topics([NewTopic("alone", assignments=[(0, (2,))])])
    await world.members[2].drain()
    await world.settle(200)
    assert (partition(world, 1).leader, partition(world, 1).isr) == (3, (3, 1))
    assert partition(world, 0).isr == (1, 3)
    alone = world.image.topics["alone"].partitions[0]
    assert (alone.leader, alone.isr, alone.leader_epoch) == (2, (2,), 0)


async def test_a_draining_broker_hands_over_to_none_that_may_be_dead(world: ControlWorld) -> None:
    """The only other replica has just lost its lease: the leader goes on."""
    await world.start()
    await world.active.controller.create_topics([NewTopic("t", assignments=[(0, (2, 3))])])
    await world.members[3].end_lease()
    await world.members[2].drain()
    await world.spin()
    assert (partition(world).leader, partition(world).isr) == (2, (2, 3))
    await world.members[3].return_()
    await world.settle(200)
    assert (partition(world).leader, partition(world).isr) == (3, (3,))


async def test_the_next_controller_goes_on(world: ControlWorld) -> None:
    """The controller dies: another is elected in a later epoch, and fences it."""
    await with_topic(world)
    epoch = world.image.controller_epoch
    await world.members[1].end_lease()
    await world.settle(500)
    assert world.nodes[2].active.is_active
    assert not world.nodes[1].active.is_active
    image = world.nodes[2].image
    assert image.controller_epoch > epoch
    assert image.brokers[1].is_fenced
    assert image.topics["t"].partitions[0].leader == 2
    assert (await world.alter_isr("t", 0, [2])).error_code == 0


async def test_a_deposed_controller_writes_nothing(world: ControlWorld) -> None:
    """Its image is behind, so it still takes itself for the controller: the store refuses."""
    await with_topic(world)
    first = world.nodes[1]
    first.hold_image()
    await world.store.txn(then=[Delete(CONTROLLER_KEY)])
    assert first.active.is_active
    (result,) = await first.controller.create_topics([NewTopic("late", 1, 1)])
    assert result.error is ErrorCode.NOT_CONTROLLER
    assert first.deposed == 1
    assert not first.active.is_active
    first.release_image()
    await world.settle(500)
    assert "late" not in world.image.topics


async def test_isr_changes(world: ControlWorld) -> None:
    """Shrink and expand; the answer is the partition as it is now."""
    await with_topic(world)
    shrunk = await world.alter_isr("t", 0, [1, 2])
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (0, [1, 2], 1)
    assert (shrunk.leader_id, shrunk.leader_epoch) == (1, 0)
    assert partition(world).isr == (1, 2)
    expanded = await world.alter_isr("t", 0, [1, 2, 3])
    assert (expanded.isr, expanded.partition_epoch) == ([1, 2, 3], 2)
    same = await world.alter_isr("t", 0, [1, 2, 3])
    assert (same.error_code, same.partition_epoch) == (0, 2)


@pytest.mark.parametrize(
    ("isr", "said", "error"),
    [
        ([1, 2], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([1, 2], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1, 2], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"broker_id": 2}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"recovery": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"recovery": 7}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_refused_isr_changes_change_nothing(
    world: ControlWorld, isr: list[int], said: dict[str, int], error: ErrorCode
) -> None:
    """With the code by which the leader knows what to do."""
    await with_topic(world)
    before = partition(world)
    assert (await world.alter_isr("t", 0, isr, **said)).error_code == error
    assert partition(world) is before


async def test_an_old_life_of_a_broker_changes_nothing(world: ControlWorld) -> None:
    """STALE_BROKER_EPOCH, for the whole request; as the sender, and as a member of the ISR."""
    await with_topic(world)
    with pytest.raises(ApiError) as refused:
        await world.alter_isr("t", 0, [1], broker_epoch=1)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert (await world.alter_isr("t", 0, [1, 3])).error_code == 0
    world.members[2].broker_epoch += 1
    assert (await world.alter_isr("t", 0, [1, 2, 3])).error_code == ErrorCode.INELIGIBLE_REPLICA


async def test_a_refused_request_that_has_gone_leaves_the_others_their_answers(
    world: ControlWorld,
) -> None:
    """Requests of one transaction: the first one's connection has ended before its refusal."""
    await with_topic(world)
    stale = asyncio.create_task(world.alter_isr("t", 0, [1], broker_epoch=1))
    await asyncio.sleep(0)
    other = asyncio.create_task(world.alter_isr("t", 0, [1, 3]))
    await asyncio.sleep(0)
    stale.cancel()
    assert (await other).error_code == 0
    assert partition(world).isr == (1, 3)


async def test_fenced_and_draining_replicas_do_not_join(world: ControlWorld) -> None:
    """KIP-841."""
    await with_topic(world)
    await world.members[2].end_lease()
    await world.members[3].drain()
    await world.settle(3000)
    assert partition(world).isr == (1,)
    for node_id in (2, 3):
        answer = await world.alter_isr("t", 0, [1, node_id])
        assert answer.error_code == ErrorCode.INELIGIBLE_REPLICA


async def test_who_is_not_the_controller_says_so(world: ControlWorld) -> None:
    await with_topic(world)
    with pytest.raises(ApiError) as refused:
        await world.nodes[2].active.alter_partition(AlterPartitionRequest(), 3)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_preferred_leaders_are_elected_when_they_are_in_sync(world: ControlWorld) -> None:
    """Each partition gets its own answer."""
    await with_topic(world)
    await world.members[1].register()
    await world.settle(300)
    assert [partition(world, index).leader for index in range(3)] == [2, 2, 3]
    wanted = [LeaderRequest("t", index) for index in (0, 1, 9)]
    results = await world.active.active.elect_leaders(Election.PREFERRED, wanted)
    assert [result.error for result in results] == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert (await world.alter_isr("t", 0, [2, 3, 1])).error_code == 0
    (result,) = await world.active.active.elect_leaders(Election.PREFERRED, wanted[:1])
    assert result.error is ErrorCode.NONE
    assert (partition(world).leader, partition(world).leader_epoch) == (1, 2)


@pytest.mark.parametrize(("isr", "leader"), [([1, 2, 3], 2), ([1], NO_LEADER)])
async def test_a_dead_preferred_replica_is_not_available(
    world: ControlWorld, isr: list[int], leader: int
) -> None:
    """Whoever leads, and where nobody can."""
    await with_topic(world)
    if isr != list(partition(world).isr):
        assert (await world.alter_isr("t", 0, isr)).error_code == 0
    await world.members[1].end_lease()
    await world.settle(2000)
    assert partition(world).leader == leader
    wanted = [LeaderRequest("t", 0)]
    (result,) = await world.active.active.elect_leaders(Election.PREFERRED, wanted)
    assert result.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


async def test_unclean_election_on_request_is_counted(world: ControlWorld) -> None:
    """Only where there is no leader."""
    await with_topic(world)
    assert (await world.alter_isr("t", 0, [1])).error_code == 0
    await world.members[1].end_lease()
    await world.settle(2000)
    assert partition(world).leader == NO_LEADER
    wanted = [LeaderRequest("t", index) for index in (0, 1)]
    results = await world.active.active.elect_leaders(Election.UNCLEAN, wanted)
    assert [result.error for result in results] == [ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED]
    assert (partition(world).leader, partition(world).is_recovering) == (2, True)
    assert world.active.active.unclean_elections == 1
    (refused,) = await world.nodes[3].active.elect_leaders(Election.UNCLEAN, wanted[:1])
    assert refused.error is ErrorCode.ELECTION_NOT_NEEDED


async def test_a_broker_that_is_gone_for_good_is_forgotten(world: ControlWorld) -> None:
    """Out of ELRs too; one that takes part is not."""
    await with_topic(world, **{"min.insync.replicas": "3"})
    active = world.active.active
    with pytest.raises(ApiError) as refused:
        await active.unregister(3)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    await world.members[3].end_lease()
    await world.settle(200)
    assert partition(world).elr == (3,)
    await active.unregister(3)
    await world.settle(100)
    assert 3 not in world.image.brokers
    assert partition(world).elr == ()
    with pytest.raises(ApiError) as refused:
        await active.unregister(3)
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    await world.members[3].register()
    await world.settle(200)
    assert not world.image.brokers[3].is_fenced
