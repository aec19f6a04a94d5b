"""What is done before DeleteRecords is answered, in which order, and for how long."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.remote.deleted_records import ANSWER_MS, make_log_starts_last
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer
from tiered.segment_metadata import TopicIdPartition

FIRST = TopicIdPartition(UUID(int=1), "t", 0)
SECOND = TopicIdPartition(UUID(int=1), "t", 1)


class Parts:
    """A disk, a manager and partitions that write down what is asked of them."""

    def __init__(self, durable: int = 0) -> None:
        self.calls: list[str] = []
        self.timer = ManualTimer(ManualClock())
        self.held_back: dict[TopicIdPartition, str] = {}
        self.history = self
        self.hangs = self.disk_hangs = False
        log = SimpleNamespace(log_start_offset=60, durable_log_start_offset=durable)
        self.partition: Any = SimpleNamespace(log=log)

    async def checkpoint(self) -> None:
        self.calls.append("checkpoint")
        if self.disk_hangs:
            await asyncio.Event().wait()

    async def settled(self, partition: Any) -> None:
        assert partition is self.partition
        self.calls.append("settled")
        if self.hangs:
            await asyncio.Event().wait()

    async def publish_log_starts(self, partitions: Any, limit_ms: float) -> list[Any]:
        self.calls.append(f"tell {len(partitions)} within {limit_ms:.0f}")
        return []

    async def run(self, limit_ms: float = 1_000.0) -> None:
        manager: Any = self
        await make_log_starts_last(
            [(FIRST, self.partition), (SECOND, self.partition)],
            manager=manager,
            settled=self.settled,
            checkpoint=self.checkpoint,
            timer=self.timer,
            limit_ms=limit_ms,
        )


async def test_the_disk_knows_before_the_bucket() -> None:
    parts = Parts()
    await parts.run()
    assert parts.calls == ["checkpoint", "settled", "settled", "tell 2 within 1000"]


async def test_a_log_start_that_is_on_disk_is_not_written_again() -> None:
    parts = Parts(durable=60)
    await parts.run()
    assert "checkpoint" not in parts.calls


async def test_no_longer_than_our_own_limit() -> None:
    parts = Parts()
    await parts.run(float("inf"))
    assert parts.calls[-1] == f"tell 2 within {ANSWER_MS:.0f}"


async def test_partitions_that_wait_for_an_operator_are_not_waited_for() -> None:
    parts = Parts()
    parts.held_back[FIRST] = "lost"
    await parts.run()
    assert parts.calls[1:] == ["settled", "tell 1 within 1000"]


async def test_a_disk_that_hangs_is_not_waited_for_and_the_bucket_not_told() -> None:
    parts = Parts()
    parts.disk_hangs = True
    running = asyncio.ensure_future(parts.run())
    await asyncio.sleep(0)
    parts.timer.advance(1_001)
    await running
    assert parts.calls == ["checkpoint"]


async def test_metadata_that_is_still_being_read_is_waited_for_within_the_limit() -> None:
    parts = Parts()
    parts.hangs = True
    running = asyncio.ensure_future(parts.run())
    await asyncio.sleep(0)
    parts.timer.advance(999)
    await asyncio.sleep(0)
    assert not running.done()
    parts.timer.advance(2)
    await running
    assert parts.calls == ["checkpoint", "settled"]
