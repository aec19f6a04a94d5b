"""A tiered topic and one that is not are given the same, and have the same, whatever happens.

The broker is killed, records are deleted, settings change; at the end of every round both topics
are read from their log start to their end and compared record by record.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from tests.fakes.network.client import Client, RefusedError
from tests.system.tiered.cluster import Cluster
from tests.system.tiered.conftest import NewCluster

TIERED: Final = "tiered"
TWIN: Final = "twin"
ROUNDS: Final = 8
VALUE_BYTES: Final = 20_000

CHANGES: Final[tuple[dict[str, str], ...]] = (
    {"local_retention_bytes": "1"},
    {"local_retention_bytes": "-2"},
    {"tier_copy_paused": "true"},
    {"tier_copy_paused": "false"},
    {"tier_fetch_paused": "true"},
    {"tier_fetch_paused": "false"},
    {"segment_bytes": "1048576"},
    {"segment_bytes": "2097152"},
)
"""Of the tiered topic: none of them may change what is read."""


class Twins:
    """Both topics of one broker that is killed now and then."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.written = 0
        self.start = 0
        self.client: Client | None = None

    async def connect(self) -> Client:
        if self.client is None:
            host, _, port = self.cluster.nodes[0].address.rpartition(":")
            self.client = await Client.connect(host, int(port))
        return self.client

    async def create(self) -> None:
        client = await self.connect()
        configs = {"segment_bytes": "1048576", "retention_ms": "-1", "retention_bytes": "-1"}
        await client.create_topic(TWIN, 1, **configs)
        tiered = {"remote_storage_enable": "true", "local_retention_bytes": "1"}
        await client.create_topic(TIERED, 1, **configs, **tiered)

    async def write(self) -> None:
        client = await self.connect()
        for _ in range(self.random.randrange(30, 120)):
            value = b"%08d" % self.written * (VALUE_BYTES // 8)
            for topic in (TIERED, TWIN):
                assert await client.produce(topic, value) == self.written
            self.written += 1

    async def delete(self) -> None:
        client = await self.connect()
        self.start = self.random.randint(self.start, self.written)
        for topic in (TIERED, TWIN):
            assert await client.delete_records(topic, self.start) == self.start

    async def change(self) -> None:
        client = await self.connect()
        await client.alter_topic(TIERED, **self.random.choice(CHANGES))

    async def kill(self) -> None:
        if self.client is not None:
            await self.client.close()
            self.client = None
        self.cluster.kill(0)
        self.cluster.start(0)
        client = await self.connect()
        # It answers before the last log is recovered.
        async with asyncio.timeout(60):
            for topic in (TIERED, TWIN):
                while True:
                    try:
                        await client.offset(topic)
                        break
                    except RefusedError:
                        await asyncio.sleep(0.05)

    async def compare(self) -> None:
        client = await self.connect()
        await client.alter_topic(TIERED, tier_fetch_paused="false")
        starts = [await client.offset(topic, -2) for topic in (TIERED, TWIN)]
        ends = [await client.offset(topic, -1) for topic in (TIERED, TWIN)]
        assert ends == [self.written, self.written]
        # A log start that was acknowledged may be forgotten with a crash, but only so far.
        assert max(starts) <= self.start
        tiered = await self._read(TIERED, self.start)
        assert tiered == await self._read(TWIN, self.start)
        assert len(tiered) == self.written - self.start

    async def _read(self, topic: str, offset: int) -> list[tuple[int, bytes | None, bytes | None]]:
        client = await self.connect()
        found: list[tuple[int, bytes | None, bytes | None]] = []
        empty = 0
        while offset < self.written:
            read = await client.fetch(topic, offset)
            assert not read.error, (topic, offset, read.error)
            new = [r for r in read.records if r.offset >= offset]
            found += [(r.offset, r.key, r.value) for r in new]
            empty = 0 if new else empty + 1
            assert empty < 200, (topic, offset)
            offset = found[-1][0] + 1 if new else offset
        return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_a_tiered_topic_is_as_its_twin(new_cluster: NewCluster, seed: int) -> None:
    twins = Twins(new_cluster({"tier.gc.interval.ms": "1000", "tier.gc.grace.ms": "0"}), seed)
    steps: list[Callable[[], Awaitable[None]]] = [
        twins.write,
        twins.write,
        twins.delete,
        twins.change,
        twins.kill,
    ]
    try:
        await twins.create()
        for _ in range(ROUNDS):
            await twins.write()
            for step in twins.random.sample(steps, 3):
                await step()
            await twins.compare()
    finally:
        if twins.client is not None:
            await twins.client.close()
