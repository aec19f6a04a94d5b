"""`MarkerWriter` in front of all partitions' leaders, wherever they are.

    write ──┬── led here ────────────────> `LocalMarkerWriter`
            ├── led by another broker ───> WriteTxnMarkers, batched by broker and turn
            ├── led by no broker now ────> NOT_LEADER_OR_FOLLOWER
            └── not in the image ────────> UNKNOWN_TOPIC_OR_PARTITION: the topic was deleted
    done ◄── when all of them have an outcome

Only the own image proves that a partition was deleted: it has seen the partition when it became
part of the transaction, and images come in order. Another broker that does not know the partition
has not seen its creation yet, so that its UNKNOWN_TOPIC_OR_PARTITION is a reason to come again.

A marker whose answer was lost may be there; `Completion` writes it again, to whom the image names
then. A leader takes it for the same by its coordinator epoch and producer epoch.

Source: Kafka, TransactionMarkerChannelManager.scala, TransactionMarkerRequestCompletionHandler.
"""

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from broker.coordinator.peer_batches import (
    NO_LEADER,
    NO_PARTITION,
    PeerBatches,
    PeerRequests,
    Routes,
    Soon,
    code_of_peer,
    when_answered,
)
from broker.peers.errors import PeerUnavailableError
from broker.transactions.interfaces import MarkerWriter, PartitionErrors
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from storage.types.topic_partition import TopicPartition, indexes_by_topic
from storage.types.transaction_marker import TransactionMarker

logger = logging.getLogger(__name__)

VERSION: Final = 2
"""The first that has the transaction version."""

PARTITIONS_PER_REQUEST: Final = 1_000

REQUEST_TIMEOUT_MS: Final = 35_000.0
"""Longer than the leader waits for a marker to be committed."""

USE: Final = "markers"


class _Write:
    """A marker's outcomes, until every partition has one."""

    __slots__ = ("_count", "_done", "_errors")

    def __init__(self, count: int, done: Callable[[PartitionErrors], None]) -> None:
        self._count = count
        self._done = done
        self._errors: dict[TopicPartition, ErrorCode] = {}

    def answer(self, errors: PartitionErrors) -> None:
        """Add outcomes of partitions that had none."""
        self._errors.update(errors)
        if len(self._errors) == self._count:
            self._done(self._errors)


class _Part:
    """The partitions of one write that one broker leads."""

    __slots__ = ("marker", "partitions", "write")

    def __init__(
        self, marker: TransactionMarker, partitions: list[TopicPartition], write: _Write
    ) -> None:
        self.marker = marker
        self.partitions = partitions
        self.write = write

    def answer_all(self, code: ErrorCode) -> None:
        """The same outcome for each."""
        self.answer(dict.fromkeys(self.partitions, code))

    def answer(self, errors: PartitionErrors) -> None:
        """Outcomes by partition; one that is missing is a failure."""
        try:
            self.write.answer(
                {p: errors.get(p, ErrorCode.UNKNOWN_SERVER_ERROR) for p in self.partitions}
            )
        except Exception:
            # Markers of independent transactions are sent together.
            logger.exception(
                "caller of a transaction marker failed producer_id=%d", self.marker.producer_id
            )


class MarkerRouter:
    """See the module. Touched on the loop's thread only."""

    __slots__ = ("_batches", "_local", "_peers", "_routes")

    def __init__(
        self, local: MarkerWriter, *, routes: Routes, peers: PeerRequests, soon: Soon
    ) -> None:
        """A writer for the whole cluster.

        Args:
            local: Of the partitions that this broker leads.
            routes: Who leads a partition.
            peers: Other brokers.
            soon: Until when markers are gathered.
        """
        self._local = local
        self._routes = routes
        self._peers = peers
        self._batches: PeerBatches[_Part] = PeerBatches(self._send, soon)

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """Append the marker to each partition; see `MarkerWriter.write`."""
        node_id = self._routes.node_id
        by_broker: dict[int, list[TopicPartition]] = {}
        for topic_partition in dict.fromkeys(partitions):
            leader = self._routes.leader(*topic_partition)
            by_broker.setdefault(leader, []).append(topic_partition)
        here = by_broker.pop(node_id, None)
        if not by_broker:
            self._local.write(marker, here or (), done)
            return
        write = _Write(sum(map(len, by_broker.values())) + len(here or ()), done)
        gone = by_broker.pop(NO_PARTITION, ())
        leaderless = by_broker.pop(NO_LEADER, ())
        for broker, led in by_broker.items():
            for at in range(0, len(led), PARTITIONS_PER_REQUEST):
                part = _Part(marker, led[at : at + PARTITIONS_PER_REQUEST], write)
                self._batches.add(broker, part)
        if here:
            self._local.write(marker, here, write.answer)
        errors = dict.fromkeys(gone, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        errors |= dict.fromkeys(leaderless, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if errors:
            write.answer(errors)

    # -- requests --------------------------------------------------------------------------------

    def _send(self, node_id: int, parts: list[_Part]) -> None:
        """Send the parts, in order; a request has each producer once."""
        request: dict[int, _Part] = {}
        room = PARTITIONS_PER_REQUEST
        for part in parts:
            if part.marker.producer_id in request or len(part.partitions) > room:
                self._request(node_id, list(request.values()))
                request, room = {}, PARTITIONS_PER_REQUEST
            request[part.marker.producer_id] = part
            room -= len(part.partitions)
        self._request(node_id, list(request.values()))

    def _request(self, node_id: int, parts: list[_Part]) -> None:
        if not parts:
            return
        message = WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=part.marker.producer_id,
                    producer_epoch=part.marker.producer_epoch,
                    transaction_result=part.marker.commit,
                    topics=_topics(part.partitions),
                    coordinator_epoch=part.marker.coordinator_epoch,
                    transaction_version=part.marker.transaction_version,
                )
                for part in parts
            ]
        )
        when_answered(
            self._peers.request(node_id, message, VERSION, timeout_ms=REQUEST_TIMEOUT_MS, use=USE),
            partial(_answered, parts),
            partial(_failed, parts),
        )


def _topics(partitions: Collection[TopicPartition]) -> list[WritableTxnMarkerTopic]:
    return [
        WritableTxnMarkerTopic(name=name, partition_indexes=at)
        for name, at in indexes_by_topic(partitions).items()
    ]


def _answered(parts: list[_Part], answer: Message) -> None:
    assert isinstance(answer, WriteTxnMarkersResponse)
    found = {result.producer_id: result for result in answer.markers}
    for part in parts:
        result = found.get(part.marker.producer_id)
        part.answer({} if result is None else _errors(result))


def _errors(result: WritableTxnMarkerResult) -> PartitionErrors:
    errors: dict[TopicPartition, ErrorCode] = {}
    for topic in result.topics:
        for one in topic.partitions:
            code = code_of_peer(one.error_code)
            if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            errors[TopicPartition(topic.name, one.partition_index)] = code
    return errors


def _failed(parts: list[_Part], error: PeerUnavailableError) -> None:
    logger.info("transaction markers not written, to be repeated error=%s", error)
    code = ErrorCode.REQUEST_TIMED_OUT if error.sent else ErrorCode.NOT_LEADER_OR_FOLLOWER
    for part in parts:
        part.answer_all(code)
