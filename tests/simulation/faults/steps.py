"""Steps of scripts: each undoes what it has done, and waits for the effect of the one before."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Final

from broker.controller.images.partition_image import PartitionImage
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.simulation.brokers import SimBroker
from tests.simulation.faults.reassignments import Reassigner
from tests.simulation.store import HOST
from tests.simulation.world import Place, World

LOOK_S: Final = 0.05
PATIENCE_S: Final = 15.0
"""A step that has no effect after so long is given up, and with it the rest of the script."""

DOWN_S: Final = 2.0

TOPIC_RESOURCE: Final = 2

ASKS: Final = 6
"""So often an operator asks for a change: some of the brokers asked may not be able to make it."""


def alter_topic(topic: str, name: str, value: str | None) -> IncrementalAlterConfigsRequest:
    """A request that sets a setting of a topic; None: that takes it away."""
    setting = AlterableConfig(name=name, config_operation=int(value is None), value=value)
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[setting]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


class GivenUpError(Exception):
    """A step had no effect."""


class Steps:
    """Of one run of a script."""

    def __init__(
        self,
        world: World,
        salt: int,
        note: Callable[[str], None],
        ask: Callable[..., None],
        reassigner: Reassigner,
        *,
        may_forget: bool,
    ) -> None:
        """`ask`: has an operator send a request to some broker, or to the one named `at`."""
        self._world = world
        self._random = Random(salt)
        self._note = note
        self._ask = ask
        self._reassigner = reassigner
        self._may_forget = may_forget

    def _change(self, topic: str, name: str, value: int | None) -> None:
        for _ in range(ASKS):
            self._ask(alter_topic(topic, name, None if value is None else str(value)))

    def _of(self, place: Place) -> PartitionImage:
        found = self._world.image.partition(*place)
        if found is None:
            raise GivenUpError("the partition is gone")
        return found

    def _settings_of(self, place: Place) -> Mapping[str, str]:
        topic = self._world.image.topics.get(place.topic)
        if topic is None:
            raise GivenUpError("the topic is gone")
        return topic.overrides

    def _broker(self, node_id: int) -> SimBroker:
        return self._world.brokers[node_id]

    def _is_safe_without(self, node_id: int) -> bool:
        """Whether everything committed is on another that is in sync."""
        return all(
            set(partition.isr) - {node_id}
            for topic in self._world.image.topics.values()
            for partition in topic.partitions
        )

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        end_s = self._world.loop.time() + PATIENCE_S
        while not condition():
            if self._world.loop.time() > end_s:
                raise GivenUpError(what)
            await asyncio.sleep(LOOK_S)

    @asynccontextmanager
    async def _paused(self, *nodes: int) -> AsyncIterator[None]:
        loop = self._world.loop
        processes = [
            self._broker(node).process
            for node in nodes
            if self._broker(node).is_running and not self._broker(node).process.is_paused
        ]
        for process in processes:
            loop.pause(process)
        try:
            yield
        finally:
            for process in processes:
                loop.resume(process)

    @asynccontextmanager
    async def _killed(self, node_id: int, down_s: float = DOWN_S) -> AsyncIterator[None]:
        if node_id < 0 or not self._broker(node_id).is_running:
            raise GivenUpError("it is dead already")
        self._broker(node_id).kill()
        try:
            yield
            await asyncio.sleep(down_s)
        finally:
            self._world.start(node_id)

    @asynccontextmanager
    async def _links(self, links: list[tuple[str, str]]) -> AsyncIterator[None]:
        network = self._world.network
        fresh = [link for link in links if link not in network.cut]
        network.cut.update(fresh)
        try:
            yield
        finally:
            if fresh:
                network.heal(*fresh)

    def _cut_all(self, pairs: list[tuple[int, int]]) -> AbstractAsyncContextManager[None]:
        hosts = [(self._broker(one).host, self._broker(other).host) for one, other in pairs]
        return self._links([*hosts, *((other, one) for one, other in hosts)])

    def _deaf(self, node_id: int, *others: int) -> AbstractAsyncContextManager[None]:
        """What others send does not reach the broker; what it sends arrives."""
        host = self._broker(node_id).host
        return self._links([(self._broker(other).host, host) for other in others])

    def _cut(self, one: int, other: int) -> AbstractAsyncContextManager[None]:
        return self._cut_all([(one, other)])

    def _cut_from_store(self, *nodes: int) -> AbstractAsyncContextManager[None]:
        hosts = [self._broker(node).host for node in nodes]
        return self._links([link for host in hosts for link in ((host, HOST), (HOST, host))])
