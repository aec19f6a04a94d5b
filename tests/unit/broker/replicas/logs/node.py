"""A node without a network: controller, logs and partitions."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from broker.controller.controller import Controller
from broker.controller.images.broker_records import BrokerImage
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.metadata_records import ConfigResource, ResourceType
from broker.controller.images.partition_image import PartitionImage
from broker.controller.topics.topics import NewTopic
from broker.membership.membership import SoleMembership
from broker.replicas.logs.log_lifecycle import LogLifecycle
from broker.replicas.replica_manager import ReplicaManager
from broker.replicas.role_reconciler import NoFetchers, RoleReconciler
from broker.runtime.disk import Disk
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from tests.fakes.broker.role_listener import RoleListenerOfTests
from tests.fakes.clock import ManualClock
from tests.fakes.storage.failing_disk import FailingDisk
from tests.fakes.timer import ManualTimer
from tests.unit.broker.world import batch

NOW_MS = 1_700_000_000_000


class Node:
    """Controller, logs and partitions; no network."""

    def __init__(
        self, directories: list[Path], controller: Controller, *, is_alone: bool = True
    ) -> None:
        clock = ManualClock()
        self.controller = controller
        self.filesystem = FailingDisk()
        self.pool = Disk(2)
        self.logs = LogManager(
            Environment.without_loop(
                filesystem=self.filesystem, clock=clock, randomness=SeededRandomness(1)
            ),
            [str(path) for path in directories],
        )
        self.logs.startup.open_directories()
        self.logs.startup.claim(controller.image.cluster_id, 1)
        self.replicas = ReplicaManager(
            clock=clock,
            timer=ManualTimer(clock),
            disk=self.pool,
            loop=asyncio.get_running_loop(),
        )
        self.listener = RoleListenerOfTests()
        self.served = self.listener.elected
        self.roles = RoleReconciler(
            controller.settings.node_id,
            image=lambda: controller.image,
            membership=SoleMembership(controller.settings.node_id, controller.advertise),
            replicas=self.replicas,
            listener=self.listener,
            fetchers=NoFetchers(),
            call_soon=asyncio.get_running_loop().call_soon,
            clock=clock,
        )
        self.lifecycle = LogLifecycle(
            controller=controller,
            log_manager=self.logs,
            replicas=self.replicas,
            roles=self.roles,
            disk=self.pool,
            listener=self.listener,
            is_alone=is_alone,
        )
        self.is_closed = False
        # A crash after the commit of the metadata: nothing is done about an image any more.
        self.has_crashed = False
        controller.subscribe_now(self._apply_now)
        controller.subscribe(self.lifecycle.apply)

    def _apply_now(self, old: ClusterImage, new: ClusterImage) -> None:
        if not self.has_crashed:
            self.lifecycle.apply_now(old, new)
            self.roles.apply(old, new)

    async def start(self) -> None:
        await self.lifecycle.load(2)

    def log(self, topic: str, index: int = 0) -> Log:
        partition = self.replicas.replica_of(topic, index)
        assert partition is not None, f"{topic}-{index} is not served"
        return partition.log

    def append(self, topic: str, index: int = 0) -> int:
        """Write a record; returns its offset."""
        partition = self.replicas.replica_of(topic, index)
        assert partition is not None
        return partition.append(memoryview(batch(b"v")), NOW_MS).first_offset

    async def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = [(key.replace("_", "."), value) for key, value in configs.items()]
        (result,) = await self.controller.create_topics(
            [NewTopic(name, partitions, 1, configs=settings)]
        )
        assert result.error is ErrorCode.NONE

    async def delete(self, name: str) -> None:
        await self.controller.delete_topics([self.controller.image.topics[name].topic_id])

    async def alter(self, kind: ResourceType, name: str, **configs: str) -> None:
        resource = ConfigResource(kind, name)
        settings: dict[str, Any] = {k.replace("_", "."): v for k, v in configs.items()}
        results = await self.controller.alter_configs({resource: settings})
        assert results[resource].error is ErrorCode.NONE

    def close(self, *, clean: bool = True) -> None:
        """Stop, once; not `clean`: as a kill would."""
        if not self.is_closed:
            self.is_closed = True
            self.logs.shutdown(clean=clean)
            self.pool.close()


class ImagesByHand:
    """Stands for the controller of a broker whose images others make."""

    def __init__(self) -> None:
        self.settings = self.effective_settings = BrokerConfig()
        self.image = ClusterImage("c", 2, {1: BrokerImage(1, {})}, {}, {}, 0)
        self._listeners: list[Any] = []

    def subscribe_now(self, listener: Any) -> None:
        self._listeners.append(listener)

    def subscribe(self, _listener: Any) -> None:
        """Nobody waits here."""

    def advertise(self, _endpoints: object) -> None:
        """It is in the image."""

    def set(self, *topics: TopicImage, gone: tuple[str, ...] = ()) -> None:
        """The next image: with these topics, and without those."""
        old = self.image
        kept = {name: topic for name, topic in old.topics.items() if name not in gone}
        present = {**kept, **{topic.name: topic for topic in topics}}
        self.image = replace(
            old,
            topics=present,
            topics_by_id={topic.topic_id: topic for topic in present.values()},
            revision=old.revision + 1,
        )
        for listener in self._listeners:
            listener(old, self.image)


class Member(Node):
    """Broker 1 of a cluster whose controller is another."""

    def __init__(self, *directories: Path) -> None:
        self.images = ImagesByHand()
        controller: Any = self.images
        super().__init__(list(directories), controller, is_alone=False)

    @property
    def names(self) -> list[str]:
        """Of the partitions that are open."""
        return sorted(str(one.topic_partition) for one in self.replicas.partitions())

    async def settle(self) -> None:
        """Wait until nothing is being made or removed."""
        while tasks := [*self.lifecycle.under_way]:
            assert not (await asyncio.wait(tasks, timeout=10))[1]


def topic_of(
    name: str, *replicas: tuple[int, ...], number: int = 1, **overrides: str
) -> TopicImage:
    """A topic whose partitions have these replicas, led by the first; its id is of `number`."""
    partitions = tuple(
        PartitionImage(index, nodes[0], 3, 0, nodes, nodes) for index, nodes in enumerate(replicas)
    )
    settings = {key.replace("_", "."): value for key, value in overrides.items()}
    return TopicImage(name, UUID(int=number), partitions, settings, internal=False)
