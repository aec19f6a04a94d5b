"""Clocks of brokers that are wrong, or are set while they run: by an hour, by a year."""

from collections.abc import AsyncIterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fakes.clock import WrongClock
from tests.harness.brokers import ClusterHarness
from tests.harness.cluster_client import ClusterClient
from tests.system.cluster.remote.test_remote_storage import REMOTE, TIERED, is_copied, values
from tests.system.cluster.test_coordinator_failover import REPLICATED
from tests.system.cluster.test_failover import produce, read

HOUR_MS: Final = 3_600_000
YEAR_MS: Final = 365 * 24 * HOUR_MS
STEPS: Final = (0, 2 * HOUR_MS, -2 * HOUR_MS, YEAR_MS, -YEAR_MS)


class Clocks(ClusterHarness):
    """Three brokers, each with a clock of its own."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        super().__init__(directory, **settings)
        self.clocks = {node_id: WrongClock() for node_id in self.nodes}
        for node_id, node in self.nodes.items():
            node.clock = self.clocks[node_id]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Clocks]:
    root = str(tmp_path / "bucket")
    async with Clocks(tmp_path, **REMOTE, **REPLICATED, rsm_config_storage_root=root) as cluster:
        yield cluster


async def test_remote_storage_goes_on_while_clocks_disagree(cluster: Clocks) -> None:
    """Whoever leads copies, and publishes it at whoever leads the metadata's partition."""
    for node_id, ahead_ms in zip(cluster.clocks, (0, 2 * HOUR_MS, -YEAR_MS), strict=True):
        cluster.clocks[node_id].ahead_ms = ahead_ms
    settings = TIERED | {"message_timestamp_type": "LogAppendTime"}
    leaders = set()
    for number in range(6):
        name = f"t{number}"
        await cluster.create_topic(name, replicas=3, **settings)
        written = values(12)
        await produce(cluster, name, *written)
        leader = await cluster.leading(name)
        leaders.add(leader)
        await cluster.until(partial(is_copied, cluster, leader, name))
        assert await read(cluster, name) == written
    assert len(leaders) > 1


async def test_transactions_go_on_while_clocks_are_set(cluster: Clocks) -> None:
    """Between each two steps of a transaction all clocks are set, each to another time."""
    await cluster.create_topic("t", partitions=3, retention_ms=-1)
    await cluster.create_topic("in")
    client = ClusterClient(cluster)
    times = cycle(STEPS)

    def step() -> None:
        for clock in cluster.clocks.values():
            clock.ahead_ms = next(times)
        next(times)

    wanted: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    producer = await client.producer("id")
    for number in range(10):
        commit = number % 3 != 1
        for index in wanted:
            value = b"%d" % number
            step()
            await producer.send("t", index, value)
            if commit:
                wanted[index].append(value)
        step()
        await producer.commit_offsets("g", "in", {0: number})
        step()
        await producer.end(commit=commit)
        if commit:
            assert await client.committed("g", "in") == number
    for index, expected in wanted.items():
        step()
        assert await client.read_committed("t", index) == expected
