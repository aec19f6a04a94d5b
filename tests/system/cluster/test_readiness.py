"""`/readyz` of brokers that start, asked with every turn of the loop."""

import asyncio
from pathlib import Path

from broker.broker import Broker
from tests.harness.brokers import ClusterHarness
from tests.harness.cluster_client import ClusterClient


async def answers(broker: Broker) -> list[tuple[int, str]]:
    """Those that differ from the one before, up to a second after the first 200."""
    found: list[tuple[int, str]] = []
    end_s = float("inf")
    loop = asyncio.get_running_loop()
    while loop.time() < end_s:
        page = await broker.health.readyz({})
        one = page.status, page.body.decode().splitlines()[0]
        if found[-1:] != [one]:
            found.append(one)
        if one[0] == 200:
            end_s = min(end_s, loop.time() + 1.0)
        await asyncio.sleep(0)
    return found


async def test_the_only_broker_is_ready_once(tmp_path: Path) -> None:
    """Let in, it leads nothing yet, so it has nothing to load: that was ready, for a moment."""
    async with ClusterHarness(tmp_path, brokers=1) as cluster:
        await cluster.create_topic("orders", partitions=2, replicas=1)
        client = ClusterClient(cluster)
        producer = await client.producer("mover")
        await producer.send("orders", 0, b"x")
        await producer.end(commit=True)
        await cluster.kill(1, revoke=True)
        broker = await cluster.restart(1)
        async with asyncio.timeout(60):
            found = await answers(broker)
        assert [status for status, _ in found[-2:]] == [503, 200], found
        assert sum(status == 200 for status, _ in found) == 1, found
        assert cluster.leads(1, "orders", 0), "and then it leads"
