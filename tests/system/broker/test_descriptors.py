"""A broker that may open few files: it serves, and takes no directory for broken."""

import asyncio
import sys
from pathlib import Path

import pytest

from bench.node import VarveNode
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.fakes.network.client import Client, http_get

SET_LIMIT = (
    "import os, resource, sys; n = int(sys.argv[1]);"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)); os.execv(sys.argv[2], sys.argv[2:])"
)


class LimitedNode(VarveNode):
    """Soft and hard limit are `limit`."""

    limit = 256

    def command(self) -> list[str]:
        return [sys.executable, "-c", SET_LIMIT, str(self.limit), *super().command()]


async def connect(node: VarveNode) -> Client | None:
    """A client that has had an answer; None: the broker has closed the connection."""
    try:
        return await Client.connect(node.host, node.port)
    except OSError:
        return None


async def produce(client: Client, partition: int) -> None:
    """Until it is written: a broker that is short of descriptors asks for another attempt."""
    for _ in range(20):
        answer = await client.try_produce("t", [(None, b"v")], partition=partition)
        if answer.error_code == ErrorCode.NONE:
            return
        assert ErrorCode(answer.error_code).retriable, answer.error_code
        await asyncio.sleep(0.05)
    raise AssertionError(f"partition {partition} cannot be written to")


async def fetch_all(client: Client, partitions: int) -> set[int]:
    """The partitions of which all has been read, by requests for all of the others at once."""
    found: set[int] = set()
    for _ in range(200):
        if len(found) == partitions:
            break
        wanted = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(partitions)
            if index not in found
        ]
        answer = await client.call(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=50 << 20,
                topics=[FetchTopic(topic="t", partitions=wanted)],
            ),
            12,
        )
        for topic in answer.responses:
            for one in topic.partitions:
                if one.error_code:
                    assert ErrorCode(one.error_code).retriable, one.error_code
                elif one.records:
                    found.add(one.partition_index)
    return found


@pytest.mark.parametrize(
    ("limit", "partitions", "connections"),
    [(128, 150, 100), pytest.param(256, 2_000, 2_000, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("flush", [False, True])
async def test_more_partitions_and_connections_than_descriptors(
    tmp_path: Path, limit: int, partitions: int, connections: int, flush: bool
) -> None:
    """Who is let in is served, from all partitions; who is not is turned away at once."""
    node = LimitedNode(
        tmp_path,
        {
            "offsets.topic.num.partitions": "1",
            "log.flush.interval.messages": "1" if flush else "1000000",
        },
    )
    node.limit = limit
    node.start()
    clients: list[Client] = []
    try:
        first = await connect(node)
        assert first is not None
        clients.append(first)
        await first.create_topic("t", partitions)
        for begin in range(0, connections, 50):
            count = min(50, connections - begin)
            found = await asyncio.gather(*(connect(node) for _ in range(count)))
            clients += [client for client in found if client is not None]
        # Connections have had all they may have.
        assert limit // 8 < len(clients) < min(limit, connections)
        for begin in range(0, partitions, 25):
            end = min(begin + 25, partitions)
            async with asyncio.TaskGroup() as group:
                for index in range(begin, end):
                    group.create_task(produce(clients[index % len(clients)], index))
        assert await fetch_all(first, partitions) == set(range(partitions))
        for client in clients:
            await client.close()
        clients.clear()
        status, text = await http_get(node.admin_address, "/readyz")
        assert (status, text) == (200, "ready\n")
        again = await connect(node)
        assert again is not None
        clients.append(again)
        assert await fetch_all(again, partitions) == set(range(partitions))
    finally:
        for client in clients:
            await client.close()
        status = node.stop()
    log = node.log_path.read_text()
    assert status == 0, log[-2000:]
    assert f"  limit      {limit} open files (ulimit -n)" in log
    assert "level=ERROR" not in log
    assert "Traceback" not in log
