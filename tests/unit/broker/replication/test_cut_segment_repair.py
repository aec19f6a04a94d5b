"""Who is asked for what a closed segment lacks, and when again."""

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker.peers.errors import PeerUnavailableError
from broker.replication.cut_segment_repair import AGAIN_MS, FETCH_BYTES, CutSegmentRepair
from broker.runtime.disk import Disk
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from storage.errors import CutSegmentError
from tests.fakes.clock import ManualClock
from tests.unit.storage.log.log_model import read_batches
from tests.unit.storage.manager.log_disk import A0
from tests.unit.storage.manager.test_cut_segments import World

TOPIC_ID = UUID(int=7)
NODE = 1


class Peers:
    """Answers with what the test has put into `has`: records, an error code, or an error."""

    def __init__(self) -> None:
        self.has: dict[int, Any] = {}
        self.asked: list[tuple[int, int]] = []
        self.was_asked = asyncio.Event()
        self.gate: asyncio.Event | None = None

    def request(
        self, node_id: int, message: Any, version: int, *, timeout_ms: float, use: str
    ) -> Awaitable[Any]:
        return self._answer(node_id, message)

    async def _answer(self, node_id: int, message: Any) -> FetchResponse:
        ((topic,),) = (message.topics,)
        ((wanted,),) = (topic.partitions,)
        assert (topic.topic_id, wanted.partition) == (TOPIC_ID, A0.partition)
        assert wanted.partition_max_bytes == FETCH_BYTES
        self.asked.append((node_id, wanted.fetch_offset))
        self.was_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        answer = self.has.get(node_id, b"")
        if isinstance(answer, Exception):
            raise answer
        is_error = isinstance(answer, ErrorCode)
        data = PartitionData(
            partition_index=A0.partition,
            error_code=int(answer) if is_error else 0,
            records=None if is_error else answer,
        )
        return FetchResponse(
            responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])]
        )


class Broker:
    def __init__(self, *, leader: int = NODE, isr: tuple[int, ...] = (NODE, 2, 3)) -> None:
        self.world = World()
        self.error: CutSegmentError = self.world.cut()
        self.peers = Peers()
        self.clock = ManualClock()
        self.record = SimpleNamespace(leader=leader, isr=isr, replicas=(1, 2, 3))
        image: Any = SimpleNamespace(partition=lambda *_: self.record)
        self.disk = Disk(1)
        self.repair = CutSegmentRepair(
            NODE,
            self.world.manager.cut_segments,
            self.peers,
            image=lambda: image,
            disk=self.disk,
            clock=self.clock,
        )
        self.partition: Any = SimpleNamespace(
            topic_partition=A0, topic_id=TOPIC_ID, log=self.world.log
        )

    def missing(self) -> bytes:
        return b"".join(self.world.batches[2 : self.world.end])

    async def found(self) -> None:
        """A reader is refused; return when what comes of it has ended."""
        self.repair.found(self.partition, self.error)
        await asyncio.sleep(0)
        if (task := self.repair._task) is not None:
            await task

    @property
    def is_whole(self) -> bool:
        try:
            return read_batches(self.world.log) == self.world.batches
        except CutSegmentError:
            return False


async def test_a_leader_asks_who_is_in_sync_first_until_one_has_it() -> None:
    broker = Broker(isr=(NODE, 2))
    broker.peers.has = {2: ErrorCode.NOT_LEADER_OR_FOLLOWER, 3: broker.missing()}
    await broker.found()
    assert broker.peers.asked == [(2, 2), (3, 2)]
    assert broker.is_whole
    assert broker.world.alerts == []


async def test_a_follower_asks_the_leader_first() -> None:
    broker = Broker(leader=3)
    broker.peers.has = {2: broker.missing(), 3: broker.missing()}
    await broker.found()
    assert broker.peers.asked == [(3, 2)]
    assert broker.is_whole


async def test_it_goes_on_with_another_replica_where_one_ends() -> None:
    """A follower's high watermark may be behind: it gives a part, then nothing."""
    broker = Broker()
    broker.peers.has = {2: broker.world.batches[2], 3: broker.missing()}
    await broker.found()
    assert broker.peers.asked == [(2, 2), (2, 3), (3, 3)]
    assert broker.is_whole


@pytest.mark.parametrize(
    "answer",
    [PeerUnavailableError(2, sent=False, reason="gone"), ErrorCode.OFFSET_OUT_OF_RANGE, b"", b"x"],
)
async def test_what_nobody_has_is_asked_for_again_later(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker()
    broker.record.replicas = broker.record.isr = (NODE, 2)
    broker.peers.has = {2: answer}
    await broker.found()
    await broker.found()
    assert len(broker.peers.asked) == 1
    assert broker.world.alerts == ["a-0"]
    assert len([one for one in caplog.records if "not filled up" in one.message]) == 1
    broker.clock.advance(AGAIN_MS)
    broker.peers.has = {2: broker.missing()}
    await broker.found()
    assert broker.is_whole


async def test_replicas_out_of_sync_are_asked_last() -> None:
    """Their disks may be full: an old segment they have all the same."""
    broker = Broker(isr=(NODE, 3))
    broker.peers.has = {2: broker.missing()}
    await broker.found()
    assert broker.peers.asked == [(3, 2), (2, 2)]
    assert broker.is_whole


async def test_an_only_replica_asks_nobody() -> None:
    broker = Broker(isr=(NODE,))
    broker.record.replicas = (NODE,)
    await broker.found()
    assert (broker.peers.asked, broker.world.alerts) == ([], ["a-0"])


async def test_nothing_is_under_way_once_it_is_closed() -> None:
    broker = Broker()
    broker.peers.gate = asyncio.Event()
    broker.repair.found(broker.partition, broker.error)
    await broker.peers.was_asked.wait()
    broker.repair.found(broker.partition, broker.error)
    closing = asyncio.create_task(broker.repair.aclose())
    await asyncio.sleep(0)
    broker.peers.has = {2: broker.missing()}
    broker.peers.gate.set()
    await closing
    assert len(broker.peers.asked) == 1
    await broker.found()
    assert len(broker.peers.asked) == 1
    assert not broker.is_whole
