"""A consumer that leaves in the middle of a slow read from remote storage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.node import VarveNode
from tests.fakes.network.client import http_get
from tests.fakes.s3.memory_server import MemoryS3
from tests.system.conftest import Metrics, until
from tests.system.tiered_faults.cluster import (
    SEGMENT_BYTES,
    TIERED,
    Connect,
    clients_of,
    s3_node,
    until_copied,
)
from tests.system.tiered_faults.workload import Consumer, Producer

SLOW = 100_000
"""Bytes a second for each GET: a chunk of 256 KiB takes 2.6 s."""


@asynccontextmanager
async def history(
    directory: Path, s3: MemoryS3, **properties: str
) -> AsyncIterator[tuple[VarveNode, Connect]]:
    """A broker whose topic `t` has six segments in the bucket, with time for slow calls."""
    node = s3_node(
        directory,
        s3,
        {
            "tier.store.read.timeout.ms": "2000",
            "tier.store.call.timeout.ms": "20000",
            "remote.fetch.max.wait.ms": "10000",
            **{key.replace("_", "."): value for key, value in properties.items()},
        },
    )
    await asyncio.to_thread(node.start)
    try:
        async with clients_of(node) as connect:
            client = await connect("setup")
            await client.create_topic("t", 1, **TIERED)
            await Producer(client, "t").fill(6 * SEGMENT_BYTES)
            await until_copied(node.admin_address, "t")
            yield node, connect
        assert await asyncio.to_thread(node.stop, 60) == 0
    finally:
        await asyncio.to_thread(node.kill)


async def wasted(node: VarveNode) -> float:
    metrics = Metrics.parse((await http_get(node.admin_address, "/metrics"))[1])
    return metrics.of("varve_remote_fetch_wasted_bytes_total")


async def leave_in_the_middle(
    connect: Connect, s3: MemoryS3, *, after: int, bytes_per_second: int = SLOW
) -> None:
    """Read so many records fast, then slowly, and go while downloads are under way."""
    leaving = await connect("leaving")
    consumer = Consumer(leaving, "t")
    while consumer.next < after:
        await consumer.read()
    s3.bytes_per_second = bytes_per_second
    reading = asyncio.create_task(consumer.run())
    # Until it waits, and not only what is read ahead for it is under way.
    came = -1
    while came != consumer.next or not s3.under_way("fetch"):
        came = consumer.next
        await asyncio.sleep(0.3)
    reading.cancel()
    await leaving.close()


def downloads(s3: MemoryS3) -> int:
    """Requests for segments so far; the broker asks for other things too."""
    return sum(one.kind in ("fetch", "index") for one in s3.requests)


@pytest.mark.parametrize("after", [pytest.param(0, marks=pytest.mark.slow), 100])
async def test_downloads_stop_with_who_wanted_them(tmp_path: Path, after: int) -> None:
    """With `cancel`, in a first read and among what is read ahead: cut off, and metered."""
    with MemoryS3() as s3:
        async with history(tmp_path, s3, tier_abandoned_reads="cancel") as (node, connect):
            await leave_in_the_middle(connect, s3, after=after, bytes_per_second=SLOW // 4)
            await until(lambda: s3.under_way("fetch") == 0)
            assert any(
                0 < one.sent < one.wanted_bytes for one in s3.requests if one.kind == "fetch"
            )
            assert await wasted(node) > 0
            count = downloads(s3)
            await asyncio.sleep(0.3)
            assert downloads(s3) == count, "downloads go on without anybody"


async def test_downloads_end_in_the_cache(tmp_path: Path) -> None:
    """With `finish` all that was begun comes, and who reads next has it at once."""
    with MemoryS3() as s3:
        async with history(tmp_path, s3, tier_abandoned_reads="finish") as (_, connect):
            await leave_in_the_middle(connect, s3, after=0)
            assert s3.under_way("fetch") > 0
            begun = [one for one in s3.requests if one.kind == "fetch"]
            await until(lambda: s3.under_way("fetch") == 0)
            assert all(one.sent == one.wanted_bytes for one in begun), begun
            s3.bytes_per_second = 0
            count = len(s3.requests)
            consumer = Consumer(await connect("next"), "t")
            await consumer.read()
            assert consumer.next > 0
            assert not consumer.problems
            cached = {(one.key, one.headers["range"]) for one in begun}
            again = {
                (one.key, one.headers["range"])
                for one in s3.requests[count:]
                if one.kind == "fetch"
            }
            assert not cached & again


async def test_a_store_slower_than_a_fetch_waits(tmp_path: Path) -> None:
    """Also with `cancel`: who asks again at once is not one who has left."""
    with MemoryS3() as s3:
        s3.bytes_per_second = 400_000
        async with history(
            tmp_path, s3, tier_abandoned_reads="cancel", remote_fetch_max_wait_ms="200"
        ) as (_, connect):
            consumer = Consumer(await connect("slow"), "t")
            assert await consumer.read_to(16, 10), "a chunk never comes to its end"
