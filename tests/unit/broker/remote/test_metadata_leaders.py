"""Requests to the leader of a metadata partition."""

import asyncio

import pytest

from broker.remote.metadata_leaders import READS, WRITES, Leader
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from tests.fakes.broker.peers import Sent
from tests.unit.broker.remote.leader_world import OWN_EPOCH, THERE, LeaderWorld
from tests.unit.broker.world import NODE_ID
from tiered.errors import RemoteOffsetNotFoundError, RemoteStorageNotReadyError

LEADER = Leader(THERE, 1)


def test_the_newest_image_says_who_leads(w: LeaderWorld) -> None:
    assert w.leaders.of(0).node_id == -1
    w.lead(THERE)
    assert w.leaders.of(0) == Leader(THERE, w.epoch)
    del w.image.brokers[THERE]
    assert w.leaders.of(0).node_id == -1


async def test_its_start_and_end(w: LeaderWorld) -> None:
    w.leader.start = 3
    w.leader.put(b"a", b"b")
    assert await w.leaders.start(0, LEADER) == 3
    assert await w.leaders.end(0, LEADER) == 5


@pytest.mark.parametrize(
    "code", [ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode(-1)]
)
async def test_an_error_of_a_look_is_worth_another_try(w: LeaderWorld, code: ErrorCode) -> None:
    """OFFSET_NOT_AVAILABLE: the new leader does not have the old one's high watermark yet."""
    w.leader.codes = [code]
    with pytest.raises(RemoteStorageNotReadyError, match=code.name):
        await w.leaders.end(0, LEADER)


async def test_committed_batches_are_fetched(w: LeaderWorld) -> None:
    w.leader.put(b"a", b"b", b"c")
    fetched = await w.leaders.fetch(0, LEADER, 1, 1000)
    assert fetched.high_watermark == 3
    assert b"b" in fetched.records
    with pytest.raises(RemoteOffsetNotFoundError):
        await w.leaders.fetch(0, LEADER, 9, 1000)


async def test_writes_and_reads_share_no_connection(w: LeaderWorld) -> None:
    """A write is answered when it is committed, and holds up what comes after it."""
    w.peers.on_request = None
    reading = asyncio.ensure_future(w.leaders.end(0, LEADER))
    writing = asyncio.ensure_future(w.leaders.produce(0, LEADER, build_batch([(None, b"", (), 0)])))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [sent.use for sent in w.peers.sent] == [READS, WRITES]
    reading.cancel()
    writing.cancel()


async def test_a_leader_that_is_none_any_more_is_not_waited_for(w: LeaderWorld) -> None:
    """It may be paused, and answer in an hour."""
    w.leader.codes = ["silent", "silent"]
    reading = asyncio.ensure_future(w.leaders.end(0, LEADER))
    writing = asyncio.ensure_future(w.leaders.produce(0, LEADER, build_batch([(None, b"", (), 0)])))
    for _ in range(3):
        await asyncio.sleep(0)
    w.leaders.moved(0)
    with pytest.raises(RemoteStorageNotReadyError):
        await reading
    assert await writing == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert all(sent.future.cancelled() for sent in w.leader.silent)


async def test_a_write_names_the_writers_registration_and_a_read_does_not(w: LeaderWorld) -> None:
    """So that a client named as a broker writes nothing by accident."""
    w.lead(THERE)
    names: list[str | None] = []

    def note(sent: Sent) -> None:
        names.append(sent.client_id)
        w.leader(sent)

    w.peers.on_request = note
    await w.writer.append(0, [b"a"])
    await w.leaders.end(0, w.leaders.of(0))
    assert names == [f"broker-{NODE_ID}-{OWN_EPOCH}", None]


async def test_who_is_not_registered_writes_nothing(w: LeaderWorld) -> None:
    w.lead(THERE)
    del w.image.brokers[NODE_ID]
    code, _ = await w.leaders.produce(0, w.leaders.of(0), bytearray())
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert w.leader.requests == []
