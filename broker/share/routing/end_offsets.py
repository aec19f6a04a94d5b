"""End offsets of partitions, whichever broker leads them: what a share group's lag is counted to.

    find(partitions) ──┬── led here ──────────> its high watermark
                       ├── led by another ────> one ListOffsets a broker, as a consumer asks
                       └── nobody leads it ───> NOT_LEADER_OR_FOLLOWER
    all of them are there ──> done

An end that cannot be had is the error instead: the others are told all the same.

Source: Kafka, NetworkPartitionMetadataClient.java; KIP-1226.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.coordinator.peer_batches import (
    NO_LEADER,
    NO_PARTITION,
    PeerRequests,
    Routes,
    code_of_peer,
    when_answered,
)
from broker.peers.errors import PeerUnavailableError
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.replicas.replica_manager import ReplicaManager

VERSION: Final = 7
CONSUMER: Final = -1
LATEST: Final = -1

USE: Final = "end-offsets"
"""The connection of these requests."""

Ends = Mapping[TopicPartition, "int | ErrorCode"]
"""The offset behind each partition's last committed record, or why it is not known."""


class EndOffsets:
    """See the module. On the loop's thread only."""

    __slots__ = ("_peers", "_replicas", "_routes", "_timeout_ms")

    def __init__(
        self,
        replicas: "ReplicaManager",
        *,
        routes: Routes,
        peers: PeerRequests | None,
        timeout_ms: float,
    ) -> None:
        """Know nothing yet.

        Args:
            replicas: Has what this broker leads.
            routes: Who leads what.
            peers: Other brokers; None: this broker leads everything there is.
            timeout_ms: How long another broker is waited for.
        """
        self._replicas = replicas
        self._routes = routes
        self._peers = peers
        self._timeout_ms = timeout_ms

    def find(self, wanted: Sequence[TopicPartition], done: Callable[[Ends], None]) -> None:
        """Find the ends of these partitions; `done` is called once, perhaps before this returns."""
        ends: dict[TopicPartition, int | ErrorCode] = {}
        by_broker: dict[int, list[TopicPartition]] = {}
        for one in wanted:
            partition = self._replicas.leader_of(*one)
            if partition is not None:
                ends[one] = partition.log.high_watermark
                continue
            leader = self._routes.leader(*one)
            if self._peers is None or leader in (NO_LEADER, NO_PARTITION, self._routes.node_id):
                ends[one] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                by_broker.setdefault(leader, []).append(one)
        if self._peers is None or not by_broker:
            done(ends)
            return
        left = len(by_broker)

        def settled(asked: Sequence[TopicPartition], found: Ends) -> None:
            nonlocal left
            for one in asked:
                ends[one] = found.get(one, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            left -= 1
            if not left:
                done(ends)

        def answered(asked: Sequence[TopicPartition], answer: Message) -> None:
            assert isinstance(answer, ListOffsetsResponse)
            settled(asked, _ends_of(answer))

        def failed(asked: Sequence[TopicPartition], _error: PeerUnavailableError) -> None:
            settled(asked, {})

        for node_id, asked in by_broker.items():
            future = self._peers.request(
                node_id, _request_of(asked), VERSION, timeout_ms=self._timeout_ms, use=USE
            )
            when_answered(future, partial(answered, asked), partial(failed, asked))


def _request_of(asked: Sequence[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in asked:
        partition = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        topics.setdefault(topic, []).append(partition)
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[
            ListOffsetsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )


def _ends_of(answer: ListOffsetsResponse) -> Ends:
    return {
        TopicPartition(topic.name, one.partition_index): (
            code_of_peer(one.error_code) if one.error_code else one.offset
        )
        for topic in answer.topics
        for one in topic.partitions
    }


__all__ = ["EndOffsets", "Ends"]
