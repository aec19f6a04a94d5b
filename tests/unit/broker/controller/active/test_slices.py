"""Slices: planning lets the loop turn."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from broker.controller.active.broker_states import BrokerStates
from broker.controller.active.isr_changes import IsrChanges
from broker.controller.active.lease_ends import LeaseEnds
from broker.controller.active.log_recovery import (
    Asked,
    LogEnd,
    LogRecovery,
    PartitionRecovery,
    plan_longest,
)
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.replica_assignments import plan_assignments
from broker.controller.active.slices import SLICE_MS, Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.partition_image import NO_LEADER
from broker.controller.topics.topics import NewTopic
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from tests.fakes.broker.control_world import ControlWorld
from tests.fakes.clock import ManualClock


async def test_the_loop_turns_only_when_a_slice_is_used_up() -> None:
    clock = ManualClock()
    turns: list[str] = []

    async def other() -> None:
        turns.append("other")

    slices = Slices(clock)
    task = asyncio.ensure_future(other())
    await slices.turn()
    assert not turns
    clock.advance(SLICE_MS)
    assert slices.is_over
    await slices.turn()
    assert turns
    assert not slices.is_over
    await task


PARTITIONS = 60


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    """A topic of many partitions."""
    world = await ControlWorld.open(3)
    await world.start()
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(index, (1, 2)) for index in range(PARTITIONS)])]
    )
    assert result.error is ErrorCode.NONE
    try:
        yield world
    finally:
        world.timer.clock.per_look_ms = 0.0
        await world.close()


def plan_of(world: ControlWorld) -> tuple[PartitionPlan, TopicTerms]:
    rules = world.active.controller.config_rules
    states = BrokerStates.of(world.image, LeaseEnds(1, world.timer.clock), 0.0)
    return PartitionPlan(world.image), TopicTerms(world.image, rules, states)


async def turns_of(world: ControlWorld, work: Coroutine[Any, Any, object]) -> int:
    """How often the loop turns while each look at the clock finds a slice used up."""
    slices_end = world.timer.clock
    slices_end.per_look_ms = SLICE_MS
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    slices_end.per_look_ms = 0.0
    await task
    return turns


async def test_isr_changes_of_one_request_are_planned_in_slices(world: ControlWorld) -> None:
    topic = world.image.topics["t"]
    plan, terms = plan_of(world)
    wanted = [
        AlterPartitionRequestPartitionData(
            partition_index=index, new_isr_with_epochs=[BrokerState(broker_id=1)]
        )
        for index in range(PARTITIONS)
    ]
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=world.members[1].broker_epoch,
        topics=[AlterPartitionRequestTopicData(topic_id=topic.topic_id, partitions=wanted)],
    )
    work = IsrChanges(plan, terms).add(request, 3, Slices(world.timer.clock))
    assert await turns_of(world, work) >= PARTITIONS
    assert plan.count == PARTITIONS


async def test_directories_of_one_request_are_planned_in_slices(world: ControlWorld) -> None:
    topic = world.image.topics["t"]
    plan, _ = plan_of(world)
    data = AssignReplicasToDirsRequestTopicData(
        topic_id=topic.topic_id,
        partitions=[
            AssignReplicasToDirsRequestPartitionData(partition_index=index)
            for index in range(PARTITIONS)
        ],
    )
    request = AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=world.members[1].broker_epoch,
        directories=[AssignReplicasToDirsRequestDirectoryData(id_=UUID(int=9), topics=[data])],
    )
    work = plan_assignments(plan, request, Slices(world.timer.clock))
    assert await turns_of(world, work) >= PARTITIONS
    assert plan.count == PARTITIONS


async def test_recoveries_are_begun_and_ended_in_slices(world: ControlWorld) -> None:
    topic = world.image.topics["t"]
    lost = [
        (topic, replace(one, leader=NO_LEADER, isr=(), last_known_elr=(1, 2)))
        for one in topic.partitions
    ]
    plan, terms = plan_of(world)
    begun: list[PartitionRecovery] = []

    async def elect(chosen: list[PartitionRecovery]) -> None:
        begun.extend(chosen)

    async def ask(_node: int, asked: Sequence[Asked], _timeout_ms: float) -> dict[Asked, LogEnd]:
        return dict.fromkeys(asked, LogEnd(0, 1))

    rounds: list[Coroutine[Any, Any, None]] = []
    recovery = LogRecovery(elect, lambda: None, rounds.append)
    recovery.ask = ask
    work = recovery.pursue(lost, world.image, terms, Slices(world.timer.clock))
    assert await turns_of(world, work) >= PARTITIONS
    await rounds[0]
    assert len(begun) == PARTITIONS
    work = plan_longest(plan, terms, begun, Slices(world.timer.clock))
    assert await turns_of(world, work) >= PARTITIONS
