"""Where partitions end: here, at other brokers, or nowhere."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.coordinator.peer_batches import Routes
from broker.share.routing.end_offsets import EndOffsets, Ends
from protocol.error_codes import ErrorCode as E
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.peers import FakePeers, Sent

TIMEOUT_MS = 5_000
ALL = [TopicPartition("t", index) for index in range(5)]


class World:
    """Broker 1 is this one and leads 0; 2 leads 1 and 2, 3 leads 3, nobody 4."""

    def __init__(self, *, is_alone: bool = False) -> None:
        self.peers = FakePeers()
        leaders = {0: 1, 1: 2, 2: 2, 3: 3, 4: -1}
        image = SimpleNamespace(
            partition=lambda topic, index: SimpleNamespace(leader=leaders[index]),
            brokers={1, 2, 3},
        )
        here = SimpleNamespace(log=SimpleNamespace(high_watermark=10))
        replicas = SimpleNamespace(leader_of=lambda topic, index: None if index else here)
        self.ends = EndOffsets(
            cast("Any", replicas),
            routes=Routes(1, lambda: cast("Any", image)),
            peers=None if is_alone else self.peers,
            timeout_ms=TIMEOUT_MS,
        )
        self.found: list[Ends] = []

    def find(self, *wanted: TopicPartition) -> None:
        self.ends.find(wanted, self.found.append)


def answer(sent: Sent, *partitions: tuple[int, int, E]) -> None:
    sent.answer(
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name="t",
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=index, offset=offset, error_code=code
                        )
                        for index, offset, code in partitions
                    ],
                )
            ]
        )
    )


@pytest.fixture
async def world() -> World:
    return World()


async def test_ends_here_are_told_at_once(world: World) -> None:
    world.find(ALL[0], ALL[4])
    world.find()
    assert world.found == [{ALL[0]: 10, ALL[4]: E.NOT_LEADER_OR_FOLLOWER}, {}]
    assert not world.peers.sent


async def test_each_leader_is_asked_once(world: World) -> None:
    world.find(*ALL)
    second, third = world.peers.sent
    assert (second.node_id, third.node_id) == (2, 3)
    (topic,) = second.message.topics
    assert [(p.partition_index, p.timestamp) for p in topic.partitions] == [(1, -1), (2, -1)]
    assert (second.message.replica_id, second.message.isolation_level) == (-1, 0)
    answer(second, (1, 11, E.NONE), (2, -1, E.OFFSET_NOT_AVAILABLE))
    await asyncio.sleep(0)
    assert not world.found
    answer(third, (3, 13, E.NONE))
    await asyncio.sleep(0)
    (ends,) = world.found
    assert ends == {
        ALL[0]: 10,
        ALL[1]: 11,
        ALL[2]: E.OFFSET_NOT_AVAILABLE,
        ALL[3]: 13,
        ALL[4]: E.NOT_LEADER_OR_FOLLOWER,
    }


async def test_who_does_not_answer_has_an_error(world: World) -> None:
    """Or leaves a partition out; the others are told."""
    world.find(*ALL[:4])
    second, third = world.peers.sent
    third.fail(sent=True)
    answer(second, (1, 11, E.NONE))
    await asyncio.sleep(0)
    (ends,) = world.found
    assert ends == {
        ALL[0]: 10,
        ALL[1]: 11,
        ALL[2]: E.NOT_LEADER_OR_FOLLOWER,
        ALL[3]: E.NOT_LEADER_OR_FOLLOWER,
    }


async def test_a_broker_alone_asks_nobody() -> None:
    world = World(is_alone=True)
    world.find(ALL[0], ALL[1])
    assert world.found == [{ALL[0]: 10, ALL[1]: E.NOT_LEADER_OR_FOLLOWER}]
