"""A stop while threads compress batches: none is appended behind what was marked as whole."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker import broker as broker_module
from broker.replicas.preparation import INLINE_SIZE_MAX, Preparation
from tests.system.conftest import StartNode, until

LARGE = b"x" * (2 * INLINE_SIZE_MAX)


class HeldDisk:
    """Threads that end when they are told to."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []

    def submit(self, function: Any, on_done: Any) -> None:
        self.held.append(lambda: on_done(function(), None))

    def let_go(self) -> None:
        held, self.held = self.held, []
        for one in held:
            one()


async def test_a_batch_that_a_thread_has_when_the_broker_stops_is_not_appended(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log was closed and marked as whole by then, and had it behind that mark."""
    monkeypatch.setattr(broker_module, "STOP_TIMEOUT_S", 0.2)
    node = await start_node()
    client = await node.client()
    await client.create_topic("packed", compression_type="gzip")
    producer_id, epoch = await client.init_producer_id()
    once = {"producer_id": producer_id, "producer_epoch": epoch}
    assert await client.produce("packed", b"first", base_sequence=0, **once) == 0
    replicas = node.broker.replicas
    partition = replicas.leader_of("packed", 0)
    assert partition is not None
    held: Any = HeldDisk()
    partition.preparation = Preparation(
        partition, held, node.broker.local.clock, replicas.preparation_budget
    )
    waiting = asyncio.ensure_future(client.produce("packed", LARGE, base_sequence=1, **once))
    await until(lambda: bool(held.held))
    stopping = asyncio.ensure_future(node.broker.stop())
    # Other than this the stop waits for nothing by then.
    await asyncio.wait([stopping], timeout=3.0)
    assert not stopping.done()
    held.let_go()
    await stopping
    with pytest.raises(ConnectionError):
        await waiting
    await client.close()
    assert (partition.log.log_end_offset, partition.log.next_offset) == (1, 1)
    assert replicas.preparation_budget.queued_bytes == 0
    again = await start_node()
    client = await again.client()
    await until(lambda: again.broker.replicas.leader_of("packed", 0) is not None)
    assert await client.produce("packed", LARGE, base_sequence=1, **once) == 1
    records = await client.read_all("packed")
    assert [record.value for record in records] == [b"first", LARGE]
