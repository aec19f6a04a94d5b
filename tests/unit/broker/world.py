"""Partitions on a real disk behind the real router; time and network are the test's."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.partition_image import PartitionImage
from broker.handlers import (
    api_versions,
    describe_producers,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from broker.handlers.fetch import FetchHandler
from broker.handlers.produce import ProduceHandler
from broker.replicas.fetch_sessions import FetchSessionCache
from broker.replicas.lookups import Lookups
from broker.replicas.partition import Partition
from broker.replicas.replica_manager import ReplicaManager
from broker.replication.followers.follower_fetches import FollowerFetches
from broker.requests.kafka_apis import Api, KafkaApis
from broker.runtime.disk import Disk
from config.topic import TopicConfig
from protocol.api_keys import FIRST_FLEXIBLE_VERSION, ApiKey
from protocol.headers import encode_request_header
from protocol.messages import module_of
from protocol.messages.api_versions import ApiVersion
from protocol.records.builder import build_batch
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.producers.table import ProducerSettings
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.registrar import FakeRegistrar
from tests.fakes.timer import ManualTimer
from tests.unit.broker.network.harness import Harness

NODE_ID = 1

HANDLERS = (
    api_versions,
    produce,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    describe_producers,
)


def lead(replicas: ReplicaManager, partition: Partition, leader_epoch: int = 0) -> None:
    """Lead an open partition as its only replica."""
    index = partition.topic_partition.partition
    partition.become_leader(
        PartitionImage(index, NODE_ID, leader_epoch, 0, (NODE_ID,), (NODE_ID,)), now_ms=0.0
    )
    replicas.lead(partition)


class ServicesOfWorld:
    """What the handlers above use."""

    def __init__(self, replicas: ReplicaManager, disk: Disk) -> None:
        self.replica_manager = replicas
        self.disk = disk
        self.lookups = Lookups()
        self.remote: Any = None
        self.advertised_apis: list[ApiVersion] = []
        self.controller = SimpleNamespace(image=ClusterImage.empty())


class World:
    """One connection to a broker with partitions made by `add`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.h = Harness(workers=4)
        self.clock = self.h.clock
        self.timer = ManualTimer(self.clock)
        self.disk = Disk(2)
        self.filesystem = LocalFilesystem()
        self.replicas = ReplicaManager(
            clock=self.clock,
            timer=self.timer,
            disk=self.disk,
            loop=asyncio.get_running_loop(),
        )
        self.sessions = FetchSessionCache(10, self.clock, SeededRandomness(1))
        self.services = ServicesOfWorld(self.replicas, self.disk)
        services: Any = self.services
        self.apis = KafkaApis(services, map(Api, HANDLERS), self.clock)
        self.registrar = FakeRegistrar()
        # Of partitions to come: most tests append to logs with nobody to ask.
        self.requires_verification = False
        self.apis.by_key[ApiKey.PRODUCE].hot = ProduceHandler(
            self.replicas, self.clock, self.apis.open_reply, self.registrar
        )
        # Whether what comes is taken to come in where brokers call.
        self.is_from_broker = True
        self.followers = FollowerFetches(
            self.replicas,
            self.clock,
            SeededRandomness(2),
            self.apis.open_reply,
            is_from_broker=lambda _context: self.is_from_broker,
            max_bytes=50 << 20,
        )
        self.apis.by_key[ApiKey.FETCH].hot = FetchHandler(
            self.replicas, self.sessions, self.followers, self.apis.open_reply, max_bytes=50 << 20
        )
        self.h.channel.connect(self.apis)
        self._correlation_id = 0
        self.client_id = "client"

    def add(
        self,
        topic: str,
        index: int = 0,
        config: TopicConfig | None = None,
        *,
        requires_verification: bool | None = None,
    ) -> Partition:
        """Lead an empty partition."""
        topic_partition = TopicPartition(topic, index)
        log = Log.open(
            str(self.directory / str(topic_partition)),
            topic_partition,
            topic_id=topic_id(topic),
            config=config or TopicConfig(),
            environment=Environment.without_loop(
                filesystem=self.filesystem, clock=self.clock, randomness=SeededRandomness(1)
            ),
            producers=ProducerSettings(
                transaction_partition_verification_enable=self.requires_verification
                if requires_verification is None
                else requires_verification
            ),
        )
        partition = self.replicas.open_partition(topic_partition, topic_id(topic), log)
        lead(self.replicas, partition)
        return partition

    def send(self, key: ApiKey, version: int, request: Any) -> int:
        """Send a request as `client_id`; returns its correlation id."""
        self.h.receive(self.framed(key, version, request))
        return self._correlation_id

    def framed(self, key: ApiKey, version: int, request: Any) -> bytes:
        """The bytes of a request as `client_id` sends it."""
        self._correlation_id += 1
        body: bytes = module_of(key).encode_request(request, version)
        data = encode_request_header(key, version, self._correlation_id, self.client_id) + body
        return len(data).to_bytes(4, "big") + data

    def answer(self, key: ApiKey, version: int) -> Any:
        """Take the oldest answer, which must be to this API and version."""
        sent = self.h.stream.sent
        assert sent, "no answer yet"
        size = int.from_bytes(sent[:4], "big")
        frame = bytes(sent[4 : 4 + size])
        assert len(frame) == size
        del sent[: 4 + size]
        flexible = version >= FIRST_FLEXIBLE_VERSION.get(key, 99) and key != ApiKey.API_VERSIONS
        return module_of(key).decode_response(memoryview(frame)[5 if flexible else 4 :], version)

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send, and take the answer that must be there at once."""
        self.send(key, version, request)
        return self.answer(key, version)

    async def ask_disk(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send, and take the answer, which threads may have to read for."""
        self.send(key, version, request)
        await self.until(lambda: self.has_answer)
        return self.answer(key, version)

    @property
    def has_answer(self) -> bool:
        return bool(self.h.stream.sent)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let threads and the loop work until something holds (half a minute at most)."""
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110  because threads give no event for this
                await asyncio.sleep(0.001)

    def close(self) -> None:
        self.disk.close()


def topic_id(topic: str) -> UUID:
    """A fixed id per name."""
    return UUID(bytes=(topic.encode() * 16)[:16], version=4)


def batch(*values: bytes, timestamp_ms: int = 1_700_000_000_000, **options: Any) -> bytearray:
    """One record batch."""
    return build_batch([(None, value, (), timestamp_ms) for value in values], **options)
