"""The five requests for share group state, behind the real router and over a log in memory."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker.handlers import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from broker.requests.kafka_apis import Api, KafkaApis
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode as E
from protocol.messages import (
    delete_share_group_state as delete_messages,
)
from protocol.messages import (
    initialize_share_group_state as initialize_messages,
)
from protocol.messages import (
    read_share_group_state as read_messages,
)
from protocol.messages import (
    read_share_group_state_summary as summary_messages,
)
from protocol.messages import (
    write_share_group_state as write_messages,
)
from tests.fakes.broker.controller import brokers_apart
from tests.harness.share_state import DATA, STATE, TOPIC_ID, Coordinator
from tests.unit.broker.world import World

MODULES = (
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
    delete_share_group_state,
    read_share_group_state_summary,
)


class StateWorld:
    """A world that answers for states, and for nothing else."""

    def __init__(self, world: World, coordinator: Coordinator) -> None:
        self.w = world
        self.c = coordinator
        services: Any = SimpleNamespace(share_coordinator=coordinator.c, settings=BrokerConfig())
        self.services = services
        world.apis = KafkaApis(services, map(Api, MODULES), world.clock)
        world.h.channel.connect(world.apis)

    def ask(self, key: ApiKey, version: int, request: Any) -> list[tuple[UUID, list[Any]]]:
        response = self.w.ask(key, version, request)
        return [(result.topic_id, result.partitions) for result in response.results]

    def initialize(self, *partitions: int) -> list[int]:
        data = initialize_messages.PartitionData
        request = initialize_messages.InitializeShareGroupStateRequest(
            group_id="group",
            topics=[
                initialize_messages.InitializeStateData(
                    topic_id=TOPIC_ID,
                    partitions=[
                        data(partition=index, state_epoch=1, start_offset=4) for index in partitions
                    ],
                )
            ],
        )
        ((topic_id, results),) = self.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
        assert topic_id == TOPIC_ID
        assert [result.partition for result in results] == list(partitions)
        return [result.error_code for result in results]

    def read(self, leader_epoch: int = 0) -> Any:
        request = read_messages.ReadShareGroupStateRequest(
            group_id="group",
            topics=[
                read_messages.ReadStateData(
                    topic_id=TOPIC_ID,
                    partitions=[
                        read_messages.PartitionData(partition=0, leader_epoch=leader_epoch)
                    ],
                )
            ],
        )
        ((_, (result,)),) = self.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, request)
        return result

    def write(self, version: int, leader_epoch: int = 0) -> Any:
        request = write_messages.WriteShareGroupStateRequest(
            group_id="group",
            topics=[
                write_messages.WriteStateData(
                    topic_id=TOPIC_ID,
                    partitions=[
                        write_messages.PartitionData(
                            partition=0,
                            state_epoch=1,
                            leader_epoch=leader_epoch,
                            start_offset=5,
                            delivery_complete_count=2,
                            state_batches=[
                                write_messages.StateBatch(
                                    first_offset=6,
                                    last_offset=7,
                                    delivery_state=2,
                                    delivery_count=1,
                                )
                            ],
                        )
                    ],
                )
            ],
        )
        ((_, (result,)),) = self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, version, request)
        return result

    def summary(self, version: int) -> Any:
        request = summary_messages.ReadShareGroupStateSummaryRequest(
            group_id="group",
            topics=[
                summary_messages.ReadStateSummaryData(
                    topic_id=TOPIC_ID,
                    partitions=[summary_messages.PartitionData(partition=0, leader_epoch=0)],
                )
            ],
        )
        ((_, (result,)),) = self.ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, version, request)
        return result

    def delete(self, *partitions: int) -> list[int]:
        request = delete_messages.DeleteShareGroupStateRequest(
            group_id="group",
            topics=[
                delete_messages.DeleteStateData(
                    topic_id=TOPIC_ID,
                    partitions=[delete_messages.PartitionData(partition=i) for i in partitions],
                )
            ],
        )
        ((_, results),) = self.ask(ApiKey.DELETE_SHARE_GROUP_STATE, 0, request)
        return [result.error_code for result in results]


@pytest.fixture
async def s(world: World) -> AsyncIterator[StateWorld]:
    coordinator = await Coordinator(DATA, STATE).start()
    yield StateWorld(world, coordinator)
    await coordinator.c.stop()


@pytest.mark.parametrize("version", [0, 1])
async def test_from_begin_to_end(s: StateWorld, version: int) -> None:
    assert s.initialize(0, 1, 2) == [0, 0, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert s.read().start_offset == 4
    assert s.write(version).error_code == 0
    found = s.read()
    assert (found.state_epoch, found.start_offset) == (1, 5)
    (batch,) = found.state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state) == (6, 7, 2)
    summary = s.summary(version)
    assert (summary.state_epoch, summary.start_offset) == (1, 5)
    if version:
        assert summary.delivery_complete_count == 2
    assert s.delete(0, 1, 2) == [0, 0, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert s.read().error_code == E.INVALID_REQUEST
    assert s.summary(1).start_offset == -1


async def test_fenced(s: StateWorld) -> None:
    s.initialize(0)
    assert s.read(3).error_code == 0
    assert s.read(2).error_code == E.FENCED_LEADER_EPOCH
    told = s.write(1, leader_epoch=2)
    assert told.error_code == E.FENCED_LEADER_EPOCH
    assert told.error_message


async def test_who_does_not_coordinate_says_so(s: StateWorld) -> None:
    s.c.c.on_resigned(0)
    assert s.initialize(0) == [E.NOT_COORDINATOR]
    assert s.summary(1).error_code == E.NOT_COORDINATOR


async def test_answer_waits_for_all_partitions(s: StateWorld) -> None:
    s.c.log.hold = True
    request = initialize_messages.InitializeShareGroupStateRequest(
        group_id="group",
        topics=[
            initialize_messages.InitializeStateData(
                topic_id=TOPIC_ID,
                partitions=[initialize_messages.PartitionData(partition=i) for i in (0, 1)],
            )
        ],
    )
    s.w.send(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
    assert not s.w.has_answer
    s.c.log.commit_held()
    await s.w.until(lambda: s.w.has_answer)


async def test_nothing_asked_nothing_told(s: StateWorld) -> None:
    request = initialize_messages.InitializeShareGroupStateRequest(group_id="group", topics=[])
    assert s.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request) == []


async def test_clients_are_refused_where_brokers_have_a_listener_of_their_own(
    s: StateWorld,
) -> None:
    assert s.initialize(0) == [E.NONE]
    s.services.settings = brokers_apart()
    assert s.initialize(0, 1) == [E.CLUSTER_AUTHORIZATION_FAILED] * 2
    assert s.read().error_code == E.CLUSTER_AUTHORIZATION_FAILED
    assert s.write(1).error_code == E.CLUSTER_AUTHORIZATION_FAILED
    s.services.settings = BrokerConfig()
    assert s.read().start_offset == 4
