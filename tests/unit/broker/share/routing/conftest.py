"""Three brokers in an image, and a share coordinator on this one, the first."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from broker.controller.images.cluster_image import BrokerEndpoint, BrokerImage, ClusterImage
from broker.coordinator.peer_batches import Routes
from broker.coordinator.persister import SharePartitionKey, ShareState, ShareSummary
from broker.share.routing.persister_router import PersisterRouter
from protocol.error_codes import ErrorCode as E
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.broker.peers import FakePeers
from tests.fakes.environment import FakeEnvironment

STATES = "states"
TIMEOUT_MS = 5_000
DATA = topic_image("data", 7, 4)
DELETED = topic_image("deleted", 8, 4)


def key(partition: int, group: str = "g") -> SharePartitionKey:
    """Broker 1, 2, 3 or nobody coordinates 0, 1, 2 or 3."""
    return SharePartitionKey(group, DATA.topic_id, partition)


class FakeCoordinator:
    """The share coordinator of this broker: answers `code`, or when the test says so."""

    def __init__(self) -> None:
        self.code = E.NONE
        self.codes: list[E] = []
        self.asked: list[tuple[Any, ...]] = []
        self.hold = False
        self.held: list[Callable[[], None]] = []
        self.on_ensure: Callable[[], None] = lambda: None

    def partition_for(self, coordinator_key: str) -> int:
        return int(coordinator_key.rpartition(":")[2])

    async def ensure_topic(self) -> None:
        self.on_ensure()

    def _answer(self, done: Callable[[E], None], *asked: Any) -> None:
        self.asked.append(asked)
        code = self.codes.pop(0) if self.codes else self.code
        if self.hold:
            self.held.append(lambda: done(code))
        else:
            done(code)

    def initialize(self, key: Any, state_epoch: int, start_offset: int, done: Any) -> None:
        self._answer(done, "initialize", key, state_epoch, start_offset)

    def read(self, key: Any, leader_epoch: int, done: Any) -> None:
        self._answer(
            lambda code: done(code, None if code else ShareState(1, 5, ())),
            "read",
            key,
            leader_epoch,
        )

    def read_summary(self, key: Any, done: Any) -> None:
        self._answer(
            lambda code: done(code, None if code else ShareSummary(1, 2, 5, 0)), "summary", key
        )

    def write(self, key: Any, *, done: Any, **what: Any) -> None:
        self._answer(done, "write", key, what)

    def delete(self, key: Any, done: Any) -> None:
        self._answer(done, "delete", key)


class World:
    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        self.image: ClusterImage = FakeController().image
        self.lead(1, 2, 3, -1)
        self.peers = FakePeers()
        self.local = FakeCoordinator()
        self.turns: list[Callable[[], None]] = []
        self.router = PersisterRouter(
            self.local,
            topic=STATES,
            routes=Routes(1, lambda: self.image),
            peers=self.peers,
            soon=self.turns.append,
            environment=self.environment,
            timeout_ms=TIMEOUT_MS,
        )

    def lead(self, *leaders: int) -> None:
        """Who leads the partitions of the coordinators' topic; without any there is none."""
        topics = [DATA]
        if leaders:
            topic = topic_image(STATES, 99, len(leaders))
            partitions = [
                replace(partition, leader=leader)
                for partition, leader in zip(topic.partitions, leaders, strict=True)
            ]
            topics.append(replace(topic, partitions=partitions))
        brokers = {
            node_id: BrokerImage(node_id, {"PLAINTEXT": BrokerEndpoint("broker", 9090 + node_id)})
            for node_id in (1, 2, 3)
        }
        self.image = replace(
            self.image,
            brokers=brokers,
            topics={topic.name: topic for topic in topics},
            topics_by_id={topic.topic_id: topic for topic in topics},
        )

    def end_turn(self) -> None:
        turns, self.turns[:] = list(self.turns), []
        for turn in turns:
            turn()

    async def settle(self) -> None:
        """Answers are taken, and turns end, until nothing more comes of it."""
        for _ in range(5):
            await asyncio.sleep(0)
            self.end_turn()

    async def pass_time(self, ms: float) -> None:
        self.environment.timer.advance(ms)
        await self.settle()


@pytest.fixture
async def w() -> World:
    return World()
