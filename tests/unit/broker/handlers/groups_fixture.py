"""Group handlers on a coordinator over fakes; every answer goes through its version's codec."""

import asyncio
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from broker.request import ConnectionInfo, RequestContext
from config.broker import BrokerConfig
from storage.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.offsets_partition import FakeController, FakeReplicaManager, topic_image
from tests.fakes.timer import ManualTimer


class Groups:
    """What handlers see of a broker with topics t (3 partitions) and u (1)."""

    def __init__(self, *, with_offsets_topic: bool = True) -> None:
        self.clock = ManualClock()
        self.timer = ManualTimer(self.clock)
        self.manager = FakeReplicaManager()
        topics = [topic_image("t", 1, 3), topic_image("u", 2, 1)]
        if with_offsets_topic:
            topics.append(topic_image(OFFSETS_TOPIC, 99, 1))
        self.controller = FakeController(*topics)
        self.coordinator = GroupCoordinator(
            BrokerConfig(),
            self.clock,
            self.timer,
            SeededRandomness(3),
            cast("Any", self.manager),
            cast("Any", self.controller),
        )
        self.services = SimpleNamespace(groups=self.coordinator, controller=self.controller)

    async def start(self, *, elect: bool = True) -> None:
        await self.coordinator.start()
        if elect:
            self.coordinator.on_elected(0)
            for _ in range(20):
                await asyncio.sleep(0)

    def send(self, handler: ModuleType, messages: ModuleType, request: Any, version: int) -> Any:
        """Encode, decode, handle; the answer as the client decodes it, or a future of it."""
        context = RequestContext(
            handler.API_KEY, version, 1, "app", ConnectionInfo("PLAINTEXT", "10.1.2.3")
        )
        decoded = messages.decode_request(messages.encode_request(request, version), version)
        answer = handler.handle(self.services, context, decoded)
        if isinstance(answer, asyncio.Future):
            return self._decoded_later(answer, messages, version)
        return messages.decode_response(messages.encode_response(answer, version), version)

    async def _decoded_later(
        self, answer: "asyncio.Future[Any]", messages: ModuleType, version: int
    ) -> Any:
        response = await answer
        return messages.decode_response(messages.encode_response(response, version), version)


def versions(handler: ModuleType) -> range:
    """Served versions."""
    low, high = handler.VERSIONS
    return range(low, high + 1)
