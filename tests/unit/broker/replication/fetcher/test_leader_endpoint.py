"""What a follower asks its leader: as a replica, in its leader epoch."""

import asyncio
from uuid import UUID

import pytest

from broker.peers.errors import PeerUnavailableError
from broker.replication.fetcher.leader_endpoint import LeaderAnswerError, LeaderEndpoint
from protocol.error_codes import ErrorCode
from protocol.messages import list_offsets, offset_for_leader_epoch
from protocol.primitives import skip_tagged_fields
from tests.fakes.network.peers import SentRequest, answer_to, requests_of
from tests.unit.broker.replication.fetcher.fetcher_world import EPOCH, LEADER, ME, FetcherWorld
from tiered.segment_metadata import TopicIdPartition

PARTITION = TopicIdPartition(UUID(int=9), "t", 3)


class Asked:
    """An endpoint on a network in memory, and the leader that the test plays."""

    def __init__(self) -> None:
        self.world = FetcherWorld()
        self.endpoint = LeaderEndpoint(ME, self.world.peers, LEADER, timeout_ms=lambda: 30_000.0)

    async def request(self) -> SentRequest:
        """The one that was sent."""
        await self.world.turns()
        self.stream = self.world.connector.connects[-1].accept(fd=150)
        (request,) = requests_of(self.stream)
        return request

    def answer(self, request: SentRequest, body: bytes) -> None:
        self.world.receive(self.stream, answer_to(request, body))


def body_of(request: SentRequest) -> memoryview:
    size = int.from_bytes(request.rest[:2], "big")
    return memoryview(request.rest)[skip_tagged_fields(request.rest, 2 + size) :]


def offsets_body(version: int, offset: int, code: int = 0) -> bytes:
    found = list_offsets.ListOffsetsPartitionResponse(
        partition_index=3, error_code=code, offset=offset, leader_epoch=2
    )
    topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=[found])
    return list_offsets.encode_response(list_offsets.ListOffsetsResponse(topics=[topic]), version)


def epochs_body(version: int, epoch: int, offset: int, code: int = 0) -> bytes:
    found = offset_for_leader_epoch.EpochEndOffset(
        partition=3, error_code=code, leader_epoch=epoch, end_offset=offset
    )
    topic = offset_for_leader_epoch.OffsetForLeaderTopicResult(topic="t", partitions=[found])
    return offset_for_leader_epoch.encode_response(
        offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[topic]), version
    )


async def test_the_leaders_local_log_start_is_asked_for() -> None:
    asked = Asked()
    task = asyncio.ensure_future(asked.endpoint.earliest_local_offset(PARTITION, EPOCH))
    request = await asked.request()
    sent = list_offsets.decode_request(body_of(request), request.version)
    (wanted,) = sent.topics[0].partitions
    assert (sent.replica_id, sent.topics[0].name) == (ME, "t")
    assert (wanted.partition_index, wanted.current_leader_epoch, wanted.timestamp) == (3, EPOCH, -4)
    asked.answer(request, offsets_body(request.version, 17))
    assert await task == (2, 17)


async def test_the_end_of_an_epoch_is_asked_for() -> None:
    asked = Asked()
    task = asyncio.ensure_future(asked.endpoint.epoch_end_offset(PARTITION, EPOCH, 4))
    request = await asked.request()
    sent = offset_for_leader_epoch.decode_request(body_of(request), request.version)
    (wanted,) = sent.topics[0].partitions
    assert (sent.replica_id, sent.topics[0].topic) == (ME, "t")
    assert (wanted.partition, wanted.current_leader_epoch, wanted.leader_epoch) == (3, EPOCH, 4)
    asked.answer(request, epochs_body(request.version, 2, 11))
    assert await task == (2, 11)


@pytest.mark.parametrize("offset", [-1, 5])
async def test_an_error_or_no_offset_is_no_answer(offset: int) -> None:
    asked = Asked()
    task = asyncio.ensure_future(asked.endpoint.offset(PARTITION, EPOCH, -2))
    request = await asked.request()
    code = 0 if offset < 0 else int(ErrorCode.FENCED_LEADER_EPOCH)
    asked.answer(request, offsets_body(request.version, offset, code))
    with pytest.raises(LeaderAnswerError):
        await task


async def test_a_refused_epoch_is_no_answer() -> None:
    asked = Asked()
    task = asyncio.ensure_future(asked.endpoint.epoch_end_offset(PARTITION, EPOCH, 4))
    request = await asked.request()
    code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    asked.answer(request, epochs_body(request.version, -1, -1, code))
    with pytest.raises(LeaderAnswerError):
        await task


async def test_a_leader_that_cannot_be_reached_is_no_answer_either() -> None:
    asked = Asked()
    task = asyncio.ensure_future(asked.endpoint.offset(PARTITION, EPOCH, -1))
    await asked.world.turns()
    asked.world.timer.advance(31_000)
    with pytest.raises(PeerUnavailableError):
        await task
