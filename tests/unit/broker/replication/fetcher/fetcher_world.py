"""A fetcher on a network in memory, logs on the fake disk, and a leader that the test plays."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.peers.endpoint import PeerEndpoint
from broker.peers.peers import Peers
from broker.replication.fetcher.fetchers import Fetchers
from broker.replication.fetcher.log_repair import LogRepair
from broker.replication.fetcher.replica_fetcher import FetcherResources
from broker.replication.fetcher.settings import FetcherSettings
from broker.replication.fetcher.stats import FetcherStats
from broker.replication.quota import ReplicationQuota, follower_replicas
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import FetchRequest, decode_request
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
    encode_response,
)
from protocol.primitives import skip_tagged_fields
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.errors import DiskError
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.network.peers import PeerWorld, SentRequest, answer_to, requests_of
from tests.fakes.network.sockets import FakeStream
from tests.unit.storage.log.log_model import make_batch, small_segments

ME, LEADER, OTHER = 1, 2, 3
EPOCH = 5
BROKER_EPOCH = 77
TOPIC_ID = UUID(int=9)


class FakeFollower:
    """A follower's partition over a real log; what it does to it is done in place."""

    def __init__(self, index: int = 0, topic: str = "t", topic_id: UUID = TOPIC_ID) -> None:
        self.topic_partition = TopicPartition(topic, index)
        self.topic_id = topic_id
        self.leader_epoch = EPOCH
        self.role_number = 1
        self.log = Log.open(
            f"/data/{topic}-{index}",
            self.topic_partition,
            topic_id=topic_id,
            config=small_segments(4000),
            environment=Environment.without_loop(
                filesystem=FakeFilesystem(),
                clock=ManualClock(),
                randomness=SeededRandomness(1),
            ),
        )
        # Played by the test: what appends end with, and whether they settle later.
        self.error: Exception | None = None
        self.settles_later = False
        self.unsettled: list[Callable[[DiskError | None], None]] = []
        self.cost: Callable[[], None] = lambda: None
        self.truncations = 0

    def append_fetched(
        self, records: memoryview, *, fetch_offset: int, settled: Any, memory: Any = None
    ) -> bool:
        self.cost()
        if self.error is not None:
            raise self.error
        self.log.follower.append(records, fetch_offset=fetch_offset, leader_epoch=self.leader_epoch)
        if self.settles_later:
            self.unsettled.append(settled)
            return False
        return True

    def follow_high_watermark(self, leader_high_watermark: int, leader_log_start: int) -> None:
        self.log.update_high_watermark(leader_high_watermark)
        self.log.raise_log_start(leader_log_start)

    async def truncate(self, cut: Callable[[Log], object]) -> None:
        self.truncations += 1
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        cut(self.log)

    async def idle(self) -> None:
        await asyncio.sleep(0)

    def lead(self, *values: bytes, epoch: int = EPOCH) -> None:
        """Write as leader, in an earlier life."""
        self.log.writer.append_as_leader(
            make_batch(*values), leader_epoch=epoch, now_ms=1_700_000_000_000
        )

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def take_other_role(self) -> None:
        self.role_number += 1
        self.error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class InPlace:
    """`Truncations`."""

    def truncate_to(self, log: Log, offset: int) -> None:
        log.truncation.truncate_to(offset)

    def start_at(self, log: Log, offset: int) -> None:
        log.truncation.truncate_fully_and_start_at(offset)

    def start_behind(self, log: Log, install: Callable[[Log], None]) -> None:
        install(log)


class FetcherWorld(PeerWorld):
    """See the module."""

    def __init__(self, **settings: int) -> None:
        super().__init__()
        self.settings = replace(FetcherSettings(), **settings)
        self.stats = FetcherStats()
        self.peers = Peers(ME, None, self.resources)
        for node_id in (LEADER, OTHER):
            self.peers._endpoints[node_id] = PeerEndpoint(f"b{node_id}", 9092, 1)
        self.repair = LogRepair(
            ME,
            self.peers,
            InPlace(),
            self.stats,
            timeout_ms=lambda: 30_000.0,
            clock=self.timer.clock,
        )
        self.quota = ReplicationQuota(self.timer.clock, ME, follower_replicas)
        self.fetchers = Fetchers(
            self.peers,
            FetcherResources(
                node_id=ME,
                broker_epoch=lambda: BROKER_EPOCH,
                settings=lambda: self.settings,
                poller=self.poller,
                timer=self.timer,
                clock=self.timer.clock,
                repair=self.repair,
                stats=self.stats,
                quota=self.quota,
            ),
        )
        self.stream: FakeStream | None = None

    def follow(self, *partitions: FakeFollower, leader_id: int = LEADER) -> None:
        """Follow all of them in one turn."""
        turning, self.poller._turning = self.poller._turning, True
        for partition in partitions:
            self.fetchers.follow(partition, leader_id)
        self.poller._turning = turning
        self.poller.call_soon(lambda: None)

    def connected(self, fd: int = 100) -> FakeStream:
        """The leader accepts."""
        self.stream = self.connector.connects[-1].accept(fd)
        return self.stream

    def sent(self) -> list[tuple[SentRequest, FetchRequest]]:
        """Fetches that have been sent since the last call."""
        assert self.stream is not None
        return [(request, fetch_of(request)) for request in requests_of(self.stream)]

    def one_sent(self) -> tuple[SentRequest, FetchRequest]:
        (only,) = self.sent()
        return only

    def answer(
        self,
        request: SentRequest,
        *partitions: PartitionData,
        session_id: int = 4711,
        error_code: int = 0,
        topic_id: UUID = TOPIC_ID,
    ) -> None:
        """The leader answers."""
        assert self.stream is not None
        self.receive(
            self.stream,
            self.frame(
                request,
                *partitions,
                session_id=session_id,
                error_code=error_code,
                topic_id=topic_id,
            ),
        )
        while self.stream.incoming and self.stream.fd in self.poller.readers:
            self.poller.readable(self.stream.fd)

    def frame(
        self,
        request: SentRequest,
        *partitions: PartitionData,
        session_id: int = 4711,
        error_code: int = 0,
        topic_id: UUID = TOPIC_ID,
    ) -> bytes:
        """An answer of the leader, as it is on the wire."""
        message = FetchResponse(
            error_code=error_code,
            session_id=session_id,
            responses=[FetchableTopicResponse(topic_id=topic_id, partitions=list(partitions))]
            if partitions
            else [],
        )
        return answer_to(request, encode_response(message, request.version))

    def following(self, *partitions: FakeFollower) -> SentRequest:
        """All of them are followed, in an open session; the request that waits at the leader."""
        self.follow(*partitions)
        self.connected()
        first, _ = self.one_sent()
        self.answer(first)
        return self.one_sent()[0]

    async def turns(self, count: int = 20) -> None:
        """Let tasks run."""
        for _ in range(count):
            await asyncio.sleep(0)


def fetch_of(request: SentRequest) -> FetchRequest:
    size = int.from_bytes(request.rest[:2], "big")
    at = skip_tagged_fields(request.rest, 2 + size)
    return decode_request(memoryview(request.rest), at, request.version)


def data(
    index: int = 0,
    records: bytes = b"",
    *,
    high_watermark: int = 0,
    log_start: int = 0,
    error: ErrorCode = ErrorCode.NONE,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    """One partition of an answer."""
    return PartitionData(
        partition_index=index,
        error_code=int(error),
        high_watermark=-1 if error else high_watermark,
        log_start_offset=-1 if error else log_start,
        records=records,
        diverging_epoch=None
        if diverging is None
        else EpochEndOffset(epoch=diverging[0], end_offset=diverging[1]),
    )


def records_at(base_offset: int, *values: bytes, epoch: int = EPOCH) -> bytes:
    """A batch as the leader has it."""
    batch = make_batch(*values)
    batch[0:8] = base_offset.to_bytes(8, "big")
    batch[12:16] = epoch.to_bytes(4, "big")
    return bytes(batch)


def asked(request: FetchRequest) -> dict[int, tuple[int, int, int]]:
    """Index to (offset, leader epoch, last fetched epoch)."""
    return {
        one.partition: (one.fetch_offset, one.current_leader_epoch, one.last_fetched_epoch)
        for topic in request.topics
        for one in topic.partitions
    }


def forgotten(request: FetchRequest) -> Sequence[int]:
    return [index for _, indexes in request.forgotten for index in indexes]
