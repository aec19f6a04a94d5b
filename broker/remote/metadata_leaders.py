"""Requests to the leaders of `__remote_log_metadata` on other brokers.

    end     ──ListOffsets (latest)──> what is committed, as the leader says
    fetch   ──Fetch───────────────> committed records
    produce ──Produce, acks=all──> an offset, once all in-sync replicas have the records

Who leads is the newest image's word. A request ends early when the image names another leader:
what a paused broker would have answered is not waited for.

Source: Kafka, ProducerManager.java, ConsumerTask.java (remote/metadata/storage).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.coordinator.peer_batches import PeerRequests, code_of_peer
from broker.peers.errors import PeerUnavailableError
from broker.remote.metadata_topic import REMOTE_LOG_METADATA
from broker.requests.inter_broker import member_client_id
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tiered.errors import RemoteOffsetNotFoundError, RemoteStorageNotReadyError

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage

LIST_OFFSETS_VERSION: Final = 8
FETCH_VERSION: Final = 12
PRODUCE_VERSION: Final = 9

READ_TIMEOUT_MS: Final = 5_000.0
WRITE_TIMEOUT_MS: Final = 10_000.0

READS: Final = "remote-log-metadata"
WRITES: Final = "remote-log-metadata-writes"
"""Of their own, as a peer answers them once they are committed, and what comes after waits."""

LATEST: Final = -1
EARLIEST: Final = -2
NO_LEADER: Final = -1
ACKS_ALL: Final = -1


class Leader(NamedTuple):
    """Who leads a metadata partition, by the newest image; `node_id` may be `NO_LEADER`."""

    node_id: int
    epoch: int


class Fetched(NamedTuple):
    """A part of a metadata partition: batches up to the leader's high watermark."""

    records: bytes
    high_watermark: int


class MetadataLeaders:
    """See the module. On the loop's thread."""

    def __init__(
        self, peers: PeerRequests, image: "Callable[[], ClusterImage]", *, node_id: int
    ) -> None:
        """`peers`: other brokers; `image`: the newest; `node_id`: of this broker."""
        self._peers = peers
        self._node_id = node_id
        self._image = image
        self._moved: dict[int, asyncio.Future[None]] = {}

    def of(self, partition: int) -> Leader:
        """Who leads it."""
        image = self._image()
        found = image.partition(REMOTE_LOG_METADATA, partition)
        if found is None or found.leader not in image.brokers:
            return Leader(NO_LEADER, -1)
        return Leader(found.leader, found.leader_epoch)

    def moved(self, partition: int) -> None:
        """The image names another leader, or a later epoch: what is under way is given up."""
        moved = self._moved.pop(partition, None)
        if moved is not None:
            moved.set_result(None)

    # -- the three requests ----------------------------------------------------------------------

    async def end(self, partition: int, leader: Leader) -> int:
        """Everything below it is committed, and all that was ever acknowledged lies below it.

        Raises:
            RemoteStorageNotReadyError: It cannot be said now; worth another try.
        """
        return await self._list(partition, leader, LATEST)

    async def start(self, partition: int, leader: Leader) -> int:
        """Where the leader's log begins; raises as `end`."""
        return await self._list(partition, leader, EARLIEST)

    async def _list(self, partition: int, leader: Leader, timestamp: int) -> int:
        wanted = ListOffsetsPartition(
            partition_index=partition,
            current_leader_epoch=leader.epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            topics=[ListOffsetsTopic(name=REMOTE_LOG_METADATA, partitions=[wanted])]
        )
        answer: Any = await self._read(partition, leader, request, LIST_OFFSETS_VERSION)
        assert isinstance(answer, ListOffsetsResponse)
        for topic in answer.topics:
            for found in topic.partitions:
                _check(partition, found.error_code)
                return int(found.offset)
        raise RemoteStorageNotReadyError(f"{REMOTE_LOG_METADATA}-{partition}: no answer")

    async def fetch(self, partition: int, leader: Leader, offset: int, max_bytes: int) -> Fetched:
        """Committed batches from the one with `offset` on; at least one if there is one.

        Raises:
            RemoteOffsetNotFoundError: The leader's log does not have the offset.
            RemoteStorageNotReadyError: As `end`.
        """
        wanted = FetchPartition(
            partition=partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
        )
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=max_bytes,
            topics=[FetchTopic(topic=REMOTE_LOG_METADATA, partitions=[wanted])],
        )
        answer: Any = await self._read(partition, leader, request, FETCH_VERSION)
        assert isinstance(answer, FetchResponse)
        for topic in answer.responses:
            for found in topic.partitions:
                if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise RemoteOffsetNotFoundError(
                        f"{REMOTE_LOG_METADATA}-{partition}", None, offset
                    )
                _check(partition, found.error_code)
                return Fetched(bytes(found.records or b""), found.high_watermark)
        raise RemoteStorageNotReadyError(f"{REMOTE_LOG_METADATA}-{partition}: no answer")

    async def produce(
        self, partition: int, leader: Leader, batch: bytearray
    ) -> tuple[ErrorCode, int]:
        """Have a batch appended: (NONE, base offset) once it is committed, or an error and -1.

        NOT_LEADER_OR_FOLLOWER also stands for a leader that does not answer. After an error the
        batch may have been appended all the same. INVALID_TOPIC_EXCEPTION: the leader does not take
        this broker for a member, perhaps because its image is older.
        """
        own = self._image().brokers.get(self._node_id)
        if own is None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, -1
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=int(WRITE_TIMEOUT_MS),
            topic_data=[TopicProduceData(name=REMOTE_LOG_METADATA, partition_data=[data])],
        )
        try:
            answer: Any = await self._ask(
                partition,
                leader,
                request,
                PRODUCE_VERSION,
                WRITE_TIMEOUT_MS,
                WRITES,
                member_client_id(self._node_id, own.epoch),
            )
        except PeerUnavailableError:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        assert isinstance(answer, ProduceResponse)
        for topic in answer.responses:
            for found in topic.partition_responses:
                code = code_of_peer(found.error_code)
                return code, -1 if code else int(found.base_offset)
        return ErrorCode.UNKNOWN_SERVER_ERROR, -1

    # -- how -------------------------------------------------------------------------------------

    async def _read(
        self, partition: int, leader: Leader, request: Message, version: int
    ) -> Message:
        try:
            return await self._ask(partition, leader, request, version, READ_TIMEOUT_MS, READS)
        except PeerUnavailableError as error:
            raise RemoteStorageNotReadyError(
                f"{REMOTE_LOG_METADATA}-{partition}: {error}"
            ) from error

    async def _ask(
        self,
        partition: int,
        leader: Leader,
        request: Message,
        version: int,
        timeout_ms: float,
        use: str,
        client_id: str | None = None,
    ) -> Message:
        moved = self._moved.get(partition)
        if moved is None:
            moved = self._moved[partition] = asyncio.get_running_loop().create_future()
        answer = asyncio.ensure_future(
            self._peers.request(
                leader.node_id,
                request,
                version,
                timeout_ms=timeout_ms,
                use=use,
                client_id=client_id,
            )
        )
        try:
            await asyncio.wait((answer, moved), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise PeerUnavailableError(leader.node_id, sent=True, reason="leads no longer")
            return answer.result()
        finally:
            answer.cancel()


def _check(partition: int, error_code: int) -> None:
    code = code_of_peer(error_code)
    if code:
        raise RemoteStorageNotReadyError(f"{REMOTE_LOG_METADATA}-{partition}: {code.name}")
