"""`PartitionRegistrar` in front of the transaction coordinator, wherever it is.

    add_or_verify ──┬── coordinator here ───> at once
                    ├── on another broker ──> AddPartitionsToTxn, batched by broker and turn
                    └── nowhere ────────────> COORDINATOR_NOT_AVAILABLE

    the broker is away     the producer gets
    not sent, or no answer NETWORK_EXCEPTION: by then the partition may be part of the transaction,
                           which does no harm: its marker is written there as well

Nothing is retried here: a Produce is answered with a retriable error, and its client comes again
when the image may name another coordinator.

Source: Kafka, AddPartitionsToTxnManager.java; KIP-890.
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
from broker.runtime.log_value import log_value
from broker.transactions.interfaces import PartitionErrors, PartitionRegistrar, ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from storage.types.topic_partition import TopicPartition, indexes_by_topic

logger = logging.getLogger(__name__)

VERSION: Final = 5
"""The first that has TRANSACTION_ABORTABLE."""

TRANSACTIONS_PER_REQUEST: Final = 200

REQUEST_TIMEOUT_MS: Final = 5_000.0
"""Records of the Produce are kept in memory meanwhile."""

USE: Final = "transactions"

Done = Callable[[PartitionErrors], None]


class _Question:
    """One transaction of a request; callers who ask the same of it share it."""

    __slots__ = ("add", "callers", "partitions", "producer", "transactional_id")

    def __init__(self, transactional_id: str, producer: ProducerIdAndEpoch, *, add: bool) -> None:
        self.transactional_id = transactional_id
        self.producer = producer
        self.add = add
        self.partitions: dict[TopicPartition, None] = {}
        self.callers: list[tuple[Collection[TopicPartition], Done]] = []

    def asks_the_same(self, other: "_Question") -> bool:
        """Whether both may be one."""
        return self.producer == other.producer and self.add == other.add

    def join(self, other: "_Question") -> None:
        """Have it ask for the other's partitions, too."""
        self.partitions.update(other.partitions)
        self.callers += other.callers

    def answer(self, errors: PartitionErrors) -> None:
        """Give each caller its partitions' codes; what is not in the answer has failed."""
        for partitions, done in self.callers:
            try:
                done({p: errors.get(p, ErrorCode.UNKNOWN_SERVER_ERROR) for p in partitions})
            except Exception:
                logger.exception(
                    "caller of a verification failed transactional_id=%s",
                    log_value(self.transactional_id),
                )


class RegistrarRouter:
    """See the module. Touched on the loop's thread only."""

    __slots__ = ("_batches", "_local", "_partition_for", "_peers", "_routes", "_topic")

    def __init__(
        self,
        local: PartitionRegistrar,
        *,
        topic: str,
        partition_for: Callable[[str], int],
        routes: Routes,
        peers: PeerRequests,
        soon: Soon,
    ) -> None:
        """A registrar for the whole cluster.

        Args:
            local: The transaction coordinator of this broker.
            topic: Its topic.
            partition_for: The partition of a transactional id.
            routes: Who leads it.
            peers: Other brokers.
            soon: Until when questions are gathered.
        """
        self._local = local
        self._topic = topic
        self._partition_for = partition_for
        self._routes = routes
        self._peers = peers
        self._batches: PeerBatches[_Question] = PeerBatches(self._send, soon)

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
        done: Done,
    ) -> None:
        """See `PartitionRegistrar.add_or_verify`."""
        leader = self._routes.leader(self._topic, self._partition_for(transactional_id))
        if leader == self._routes.node_id:
            self._local.add_or_verify(transactional_id, producer, partitions, add=add, done=done)
        elif leader in (NO_LEADER, NO_PARTITION):
            done(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            question = _Question(transactional_id, producer, add=add)
            question.partitions.update(dict.fromkeys(partitions))
            question.callers.append((partitions, done))
            self._batches.add(leader, question)

    # -- requests --------------------------------------------------------------------------------

    def _send(self, node_id: int, questions: list[_Question]) -> None:
        """Send the questions; of one transactional id a request has one."""
        request: dict[str, _Question] = {}
        for question in questions:
            known = request.get(question.transactional_id)
            if known is not None and known.asks_the_same(question):
                known.join(question)
                continue
            if known is not None or len(request) >= TRANSACTIONS_PER_REQUEST:
                self._request(node_id, list(request.values()))
                request = {}
            request[question.transactional_id] = question
        self._request(node_id, list(request.values()))

    def _request(self, node_id: int, questions: list[_Question]) -> None:
        message = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=question.transactional_id,
                    producer_id=question.producer.producer_id,
                    producer_epoch=question.producer.epoch,
                    verify_only=not question.add,
                    topics=_topics(question.partitions),
                )
                for question in questions
            ]
        )
        when_answered(
            self._peers.request(node_id, message, VERSION, timeout_ms=REQUEST_TIMEOUT_MS, use=USE),
            partial(_answered, questions),
            partial(_failed, questions),
        )


def _topics(partitions: Collection[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=name, partitions=at)
        for name, at in indexes_by_topic(partitions).items()
    ]


def _answered(questions: list[_Question], answer: Message) -> None:
    assert isinstance(answer, AddPartitionsToTxnResponse)
    if answer.error_code:
        code = code_of_peer(answer.error_code)
        logger.error("transaction coordinator refuses a broker's request error=%s", code.name)
        for question in questions:
            question.answer(dict.fromkeys(question.partitions, code))
        return
    found = {
        result.transactional_id: {
            TopicPartition(topic.name, one.partition_index): code_of_peer(one.partition_error_code)
            for topic in result.topic_results
            for one in topic.results_by_partition
        }
        for result in answer.results_by_transaction
    }
    for question in questions:
        question.answer(found.get(question.transactional_id, {}))


def _failed(questions: list[_Question], error: PeerUnavailableError) -> None:
    logger.info("transaction coordinator is away error=%s", error)
    for question in questions:
        question.answer(dict.fromkeys(question.partitions, ErrorCode.NETWORK_EXCEPTION))
