"""What a follower asks its leader about the leader's log, over the connections to peers.

    ListOffsets           where the log ends (-1), begins (-2), begins on the leader's disk (-4)
    OffsetForLeaderEpoch  where a leader epoch ends

Both name the leader epoch in which the follower is: another one is refused.

Source: Kafka, RemoteLeaderEndPoint.scala.
"""

import logging
from typing import TYPE_CHECKING, Final

from protocol.error_codes import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tiered.tasks.follower import EpochOffset

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.peers.peers import Peers
    from storage.types.topic_partition import TopicPartition
    from tiered.segment_metadata import TopicIdPartition

    Named = TopicPartition | TopicIdPartition

LOGGER = logging.getLogger(__name__)

LIST_OFFSETS_VERSION: Final = 8
EPOCHS_VERSION: Final = 4
LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4
USE: Final = "fetch-offsets"


class LeaderAnswerError(OSError):
    """The leader has answered, and has not said what it was asked for."""


class LeaderEndpoint:
    """See the module; `tiered.tasks.follower.LeaderEndpoint` of one leader."""

    __slots__ = ("_leader_id", "_node_id", "_peers", "_timeout_ms")

    def __init__(
        self, node_id: int, peers: "Peers", leader_id: int, *, timeout_ms: "Callable[[], float]"
    ) -> None:
        """`node_id`: this broker; `timeout_ms`: `replica.socket.timeout.ms`."""
        self._node_id = node_id
        self._peers = peers
        self._leader_id = leader_id
        self._timeout_ms = timeout_ms

    async def earliest_local_offset(self, partition: "Named", leader_epoch: int) -> EpochOffset:
        """The first offset on the leader's disk, and its epoch.

        Raises:
            PeerUnavailableError, LeaderAnswerError: It is not known.
        """
        return await self.offset(partition, leader_epoch, EARLIEST_LOCAL)

    async def offset(self, partition: "Named", leader_epoch: int, timestamp: int) -> EpochOffset:
        """An offset of ListOffsets, and its epoch. The latest one is the log end: a replica asks.

        Raises:
            PeerUnavailableError, LeaderAnswerError: It is not known.
        """
        wanted = ListOffsetsPartition(
            partition_index=partition.partition,
            current_leader_epoch=leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._node_id,
            isolation_level=0,
            topics=[ListOffsetsTopic(name=partition.topic, partitions=[wanted])],
        )
        answer = await self._peers.request(
            self._leader_id,
            request,
            LIST_OFFSETS_VERSION,
            timeout_ms=self._timeout_ms(),
            use=USE,
        )
        assert isinstance(answer, ListOffsetsResponse)
        for topic_answer in answer.topics:
            for found in topic_answer.partitions:
                if found.error_code == ErrorCode.NONE and found.offset >= 0:
                    return EpochOffset(found.leader_epoch, found.offset)
                self._refused(partition, found.error_code)
        raise LeaderAnswerError(f"broker {self._leader_id} gives no offset of {partition}")

    async def epoch_end_offset(
        self, partition: "Named", leader_epoch: int, epoch: int
    ) -> EpochOffset:
        """The greatest epoch not above `epoch`, and its end, exclusive; (-1, -1): there is none.

        Raises:
            PeerUnavailableError, LeaderAnswerError: It is not known.
        """
        wanted = OffsetForLeaderPartition(
            partition=partition.partition, current_leader_epoch=leader_epoch, leader_epoch=epoch
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=self._node_id,
            topics=[OffsetForLeaderTopic(topic=partition.topic, partitions=[wanted])],
        )
        answer = await self._peers.request(
            self._leader_id, request, EPOCHS_VERSION, timeout_ms=self._timeout_ms(), use=USE
        )
        assert isinstance(answer, OffsetForLeaderEpochResponse)
        for topic_answer in answer.topics:
            for found in topic_answer.partitions:
                if found.error_code == ErrorCode.NONE:
                    return EpochOffset(found.leader_epoch, found.end_offset)
                self._refused(partition, found.error_code)
        raise LeaderAnswerError(f"broker {self._leader_id} gives no epoch of {partition}")

    def _refused(self, partition: "Named", error_code: int) -> None:
        LOGGER.warning(
            "leader gives no offset partition=%s leader=%d error=%d",
            partition,
            self._leader_id,
            error_code,
        )
