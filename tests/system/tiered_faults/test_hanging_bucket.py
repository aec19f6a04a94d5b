"""What must go on while the bucket does not answer at all, and how often consumers ask."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.node import VarveNode
from bench.process import cpu_seconds
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.fakes.network.client import EARLIEST, Client, read_of
from tests.fakes.s3.memory_server import Fault, MemoryS3
from tests.system.conftest import until
from tests.system.tiered_faults.child_broker import children
from tests.system.tiered_faults.cluster import (
    SEGMENT_BYTES,
    TIERED,
    Connect,
    clients_of,
    s3_node,
    until_copied,
)
from tests.system.tiered_faults.workload import Consumer, Producer

pytestmark = pytest.mark.measures

AT_ONCE_S = 12.0
"""What does not wait for a bucket that hangs takes less, on the busiest machine; the shortest time
that it could wait for is fifteen seconds."""

STOP_S = 25.0
"""Likewise: no call is waited for, whose answer may take thirty."""

DEFAULTS = {
    "tier.store.connect.timeout.ms": "15000",
    "tier.store.read.timeout.ms": "30000",
    "tier.store.call.timeout.ms": "60000",
    "remote.fetch.max.wait.ms": "500",
}
"""Long times, as of a broker in the field: nothing here may wait for them."""


@asynccontextmanager
async def broken(
    directory: Path, s3: MemoryS3, fault: Fault, properties: dict[str, str]
) -> AsyncIterator[tuple[VarveNode, Connect, Client]]:
    """A broker with history whose bucket has broken down altogether; it is not stopped."""
    node = s3_node(directory, s3, properties)
    await asyncio.to_thread(node.start)
    try:
        async with clients_of(node) as connect:
            client = await connect("admin")
            for topic in ("t", "old"):
                await client.create_topic(topic, 1, **TIERED)
                producer = Producer(client, topic)
                await producer.fill(3 * SEGMENT_BYTES)
            for topic in ("t", "old"):
                await until_copied(node.admin_address, topic)
            s3.break_down(fault)
            yield node, connect, client
    finally:
        await asyncio.to_thread(node.kill)


class Member:
    """The one member of a group."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._member_id = ""
        self._generation = 0

    async def join(self) -> None:
        await self._client.find_coordinator("g")
        join = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        join.member_id = (await self._client.call(join)).member_id
        joined = await self._client.call(join)
        assert joined.error_code == 0, joined
        self._member_id, self._generation = joined.member_id, joined.generation_id
        mine = SyncGroupRequestAssignment(member_id=self._member_id, assignment=b"all")
        answer = await self._client.call(
            SyncGroupRequest(
                group_id="g",
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[mine],
            )
        )
        assert answer.error_code == 0, answer

    async def beat(self) -> None:
        answer = await self._client.call(
            HeartbeatRequest(
                group_id="g", generation_id=self._generation, member_id=self._member_id
            )
        )
        assert answer.error_code == 0, answer


async def timed(name: str, work: Awaitable[object], limit_s: float, took: dict[str, float]) -> None:
    """Note how long something takes, the longest time of each name."""
    began = time.monotonic()
    await work
    seconds = time.monotonic() - began
    took[name] = max(took.get(name, 0.0), seconds)
    assert seconds < limit_s, f"{name} took {seconds:.2f} s"


async def test_the_rest_of_the_broker_goes_on(tmp_path: Path) -> None:
    """While copies, removals, reads of history and a sweep hang; then it stops in time."""
    took: dict[str, float] = {}
    with MemoryS3() as s3:
        async with broken(tmp_path, s3, Fault.HANG, DEFAULTS) as (node, connect, client):
            producer = Producer(client, "t", await client.offset("t"))
            readers = [Consumer(await connect(f"r{number}"), "t") for number in range(3)]
            reading = [asyncio.create_task(reader.run()) for reader in readers]
            await client.delete_records("old", 100)
            member = Member(await connect("member"))
            await producer.fill(2 * SEGMENT_BYTES)
            await until(lambda: s3.spoilt["copy"] > 0 and s3.spoilt["index"] > 0)
            # A removal may come after calls that hang, each for its whole time.
            await until(lambda: s3.spoilt["delete"] > 0, timeout_s=180.0)
            await timed("JoinGroup", member.join(), AT_ONCE_S, took)
            for number in range(5):
                await timed("Metadata", client.metadata(), AT_ONCE_S, took)
                await timed("ListOffsets -1", client.offset("t"), AT_ONCE_S, took)
                await timed("ListOffsets -2", client.offset("t", EARLIEST), AT_ONCE_S, took)
                await timed("Heartbeat", member.beat(), AT_ONCE_S, took)
                await timed("DescribeConfigs", client.topic_configs("t"), AT_ONCE_S, took)
                name = f"new-{number}"
                await timed("CreateTopics", client.create_topic(name, 1, **TIERED), AT_ONCE_S, took)
                await timed("Produce", Producer(client, name).write(), AT_ONCE_S, took)
                await timed("DeleteTopics", client.delete_topic(name), AT_ONCE_S, took)
            await timed("DeleteTopics of a tiered one", client.delete_topic("old"), AT_ONCE_S, took)
            await timed("DeleteRecords", client.delete_records("t", 10), AT_ONCE_S, took)
            await timed("SIGTERM", asyncio.to_thread(node.stop, 60), STOP_S, took)
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            assert "Traceback" not in node.log_path.read_text()
    print({name: round(seconds, 3) for name, seconds in took.items()})  # noqa: T201  figures for whoever runs it with -s


@pytest.mark.parametrize(
    "fault",
    [
        Fault.HANG,
        pytest.param(Fault.UNAVAILABLE, marks=pytest.mark.slow),
        pytest.param(Fault.DENIED, marks=pytest.mark.slow),
        pytest.param(Fault.WRONG, marks=pytest.mark.slow),
    ],
)
async def test_no_storm_of_fetches(tmp_path: Path, fault: Fault) -> None:
    """A client that asks again at once, as Java's does, is answered two times a second."""
    with MemoryS3() as s3:
        async with broken(tmp_path, s3, fault, DEFAULTS) as (node, connect, _):
            pid = node.pid
            consumer = await connect("java")
            answers = 0
            children_cpu_s = sum(map(cpu_seconds, children(pid)))
            cpu_s, began = cpu_seconds(pid), time.monotonic()
            while time.monotonic() - began < 3:
                read = read_of(await consumer.start_fetch("t", 0, max_wait_ms=0))
                assert not read.records
                answers += 1
            seconds = time.monotonic() - began
            cpu_s = cpu_seconds(pid) - cpu_s
            of_tier_s = sum(map(cpu_seconds, children(pid))) - children_cpu_s
            print(  # noqa: T201  figures for whoever runs it with -s
                f"{fault.name}: {answers / seconds:.1f} fetches/s, broker "
                f"{(cpu_s - of_tier_s) / seconds:.3f} CPU, tier process {of_tier_s / seconds:.3f}, "
                f"{s3.spoilt}"
            )
            assert answers <= 3 * seconds + 1
            assert cpu_s - of_tier_s < 0.3 * seconds
            assert s3.spoilt["index"] + s3.spoilt["fetch"] <= 10 * seconds + 10
