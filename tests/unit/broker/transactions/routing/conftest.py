"""A cluster of three brokers in an image; this one is the first."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from broker.controller.images.cluster_image import BrokerEndpoint, BrokerImage, ClusterImage
from broker.coordinator.peer_batches import Routes
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.broker.peers import FakePeers


class Cluster:
    """Topics whose partition i broker `leaders[i]` leads; the turn ends when the test says so."""

    def __init__(self) -> None:
        self.image: ClusterImage = FakeController().image
        self.peers = FakePeers()
        self.turns: list[Callable[[], None]] = []
        self.routes = Routes(1, lambda: self.image)

    def lead(self, **leaders: list[int]) -> None:
        """Replace the topics; -1 is nobody."""
        topics = {}
        for number, (name, led) in enumerate(leaders.items()):
            topic = topic_image(name, number, len(led))
            topics[name] = replace(
                topic,
                partitions=[
                    replace(partition, leader=leader)
                    for partition, leader in zip(topic.partitions, led, strict=True)
                ],
            )
        brokers: Mapping[int, BrokerImage] = {
            node_id: BrokerImage(node_id, {"PLAINTEXT": BrokerEndpoint("broker", 9090 + node_id)})
            for node_id in (1, 2, 3)
        }
        self.image = replace(self.image, topics=topics, brokers=brokers)

    def end_turn(self) -> None:
        """What was gathered is sent."""
        turns, self.turns[:] = list(self.turns), []
        for turn in turns:
            turn()

    async def settle(self) -> None:
        """Callbacks of answers have run."""
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()
