"""Ends of logs, asked of brokers for a recovery: ListOffsets of the debugging replica.

    this broker       its own open replica
    another           ListOffsets v7, replica -2, timestamp -1, in the record's leader epoch

A replica in another leader epoch than the one asked in says nothing: it may still fetch from a
leader of before.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from broker.controller.active.log_recovery import Asked, LogEnd
from broker.peers.errors import PeerUnavailableError
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from broker.controller.channel import PeerRequests
    from broker.replicas.replica_manager import ReplicaManager

VERSION: Final = 7
DEBUGGING_REPLICA: Final = -2
LATEST: Final = -1

USE: Final = "recovery"
"""The connection of these requests."""


class LogEnds:
    """See the module. Runs on the loop's thread."""

    def __init__(self, node_id: int, peers: "PeerRequests", replicas: "ReplicaManager") -> None:
        """`node_id`: of this broker."""
        self._node_id = node_id
        self._peers = peers
        self._replicas = replicas

    async def ask(
        self, node_id: int, asked: Sequence[Asked], timeout_ms: float
    ) -> Mapping[Asked, LogEnd]:
        """See `log_recovery.Ask`."""
        if node_id == self._node_id:
            return self._own(asked)
        topics: dict[str, list[Asked]] = {}
        for one in asked:
            topics.setdefault(one.topic, []).append(one)
        request = ListOffsetsRequest(
            replica_id=DEBUGGING_REPLICA,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=one.partition,
                            current_leader_epoch=one.leader_epoch,
                            timestamp=LATEST,
                        )
                        for one in ones
                    ],
                )
                for name, ones in topics.items()
            ],
        )
        try:
            answer = await self._peers.request(
                node_id, request, VERSION, timeout_ms=timeout_ms, use=USE
            )
        except PeerUnavailableError:
            return {}
        assert isinstance(answer, ListOffsetsResponse)
        by_name = {(one.topic, one.partition): one for one in asked}
        return {
            by_name[topic.name, partition.partition_index]: LogEnd(
                partition.leader_epoch, partition.offset
            )
            for topic in answer.topics
            for partition in topic.partitions
            if not partition.error_code and (topic.name, partition.partition_index) in by_name
        }

    def _own(self, asked: Sequence[Asked]) -> Mapping[Asked, LogEnd]:
        ends = {}
        for one in asked:
            partition = self._replicas.replica_of(one.topic, one.partition)
            if partition is not None and partition.leader_epoch == one.leader_epoch:
                log = partition.log
                latest = log.leader_epochs.latest_epoch
                ends[one] = LogEnd(-1 if latest is None else latest, log.log_end_offset)
        return ends
