"""Whole brokers in the test's own process: real disk, real sockets, short settings."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.broker import Broker
from config.broker import BrokerConfig
from config.listeners import Endpoint, Listener
from storage.environment.filesystem import Filesystem
from tests.fakes.network.client import Client, http_get

SETTINGS: dict[str, object] = {
    "listeners": (Listener("PLAINTEXT", "127.0.0.1", 0),),
    "admin_listener": Endpoint("127.0.0.1", 0),
    "offsets_topic_num_partitions": 3,
    "group_initial_rebalance_delay_ms": 0,
    "log_retention_ms": -1,
    "log_initial_task_delay_ms": 20,
    "log_retention_check_interval_ms": 20,
    "log_cleaner_backoff_ms": 20,
}


class Metrics(dict[tuple[str, frozenset[tuple[str, str]]], float]):
    """A scrape: `metrics.of("name", topic="t")`."""

    @classmethod
    def parse(cls, text: str) -> "Metrics":
        """From Prometheus' text format."""
        return cls(
            ((sample.name, frozenset(sample.labels.items())), sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        )

    def of(self, name: str, **labels: str) -> float:
        """A sample that must be there."""
        return self[name, frozenset(labels.items())]


class Node:
    """A running broker, and clients for it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._clients: list[Client] = []

    @property
    def port(self) -> int:
        return self.broker.addresses[0][2]

    async def client(self, client_id: str = "test") -> Client:
        """A new connection; closed with the node."""
        client = await Client.connect("127.0.0.1", self.port, client_id)
        self._clients.append(client)
        return client

    async def page(self, path: str) -> tuple[int, str]:
        """A page of the admin port."""
        assert self.broker.admin_address is not None
        return await http_get(self.broker.admin_address, path)

    async def metrics(self) -> Metrics:
        """Every sample of `/metrics`."""
        status, body = await self.page("/metrics")
        assert status == 200
        return Metrics.parse(body)

    async def ready(self) -> None:
        """Wait until every partition and the groups are loaded."""
        await until(lambda: self.page_is("/readyz", 200))

    async def page_has(self, path: str, text: str) -> bool:
        return text in (await self.page(path))[1]

    async def page_is(self, path: str, status: int) -> bool:
        return (await self.page(path))[0] == status

    async def stop(self) -> None:
        """As SIGTERM would."""
        clients, self._clients = self._clients, []
        await self.broker.stop()
        for client in clients:
            await client.close()


StartNode = Callable[..., Awaitable[Node]]


async def until(
    holds: Callable[[], bool | Awaitable[bool]], timeout_s: float = 60.0, pause_s: float = 0.005
) -> None:
    """Wait until something holds; fails the test when it does not."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = holds()
        if found if isinstance(found, bool) else await found:
            return
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(pause_s)


@pytest.fixture
async def start_node(tmp_path: Path) -> AsyncIterator[StartNode]:
    """Start a broker with some settings; data in tmp_path/data unless `log_dirs` says otherwise."""
    nodes: list[Node] = []

    async def start(
        *, filesystem: Filesystem | None = None, wait_until_ready: bool = True, **settings: object
    ) -> Node:
        values = {**SETTINGS, "log_dirs": (str(tmp_path / "data"),), **settings}
        broker = Broker(BrokerConfig().replace(**values), filesystem=filesystem)
        try:
            await broker.start()
        except BaseException:
            await broker.stop()
            raise
        node = Node(broker)
        nodes.append(node)
        if wait_until_ready:
            await node.ready()
        return node

    yield start
    for node in nodes:
        if not node.broker.health.is_stopping:
            await node.stop()


@pytest.fixture
async def node(start_node: StartNode) -> Node:
    """One broker with nothing in it."""
    return await start_node()


Connect = Callable[[str, int], Awaitable[Client]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Clients of a broker process; closed with the test."""
    clients: list[Client] = []

    async def open_client(host: str, port: int) -> Client:
        clients.append(await Client.connect(host, port))
        return clients[-1]

    yield open_client
    for client in clients:
        await client.close()
