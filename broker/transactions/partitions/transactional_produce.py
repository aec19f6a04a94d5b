"""Transactional Produce requests: verified first, then appended, in order.

    request ──> verified at once ─────────────────────────────────────────────────> append
        └─────> coordinator ──> records copied, place in the order of responses reserved
                                          ... verdicts ──> append, then the producer's next request

A producer sends its next batch without waiting for the last, and it may arrive while the first one
waits: it has to wait as well, whatever its partitions, since its sequence numbers follow. So there
is a queue of waiting requests for each producer id. None waits for the end of the last transaction
longer than `RETRY_BACKOFF_MAX_MS` from its arrival, however many are before it.

Source: Kafka, ReplicaManager.scala (handleProduceAppend).
"""

import logging
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from broker.controller.images.topic_names import BROKERS_OWN_TOPICS, may_produce_to
from broker.requests.reply import PARKED, HotResult, Reply
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from broker.transactions.interfaces import PartitionRegistrar, ProducerIdAndEpoch
from broker.transactions.partitions.verification import (
    SupportedOperation,
    TransactionVerifier,
    Verdict,
    Verdicts,
    operation_of_produce,
)
from protocol.error_codes import ErrorCode
from protocol.hot.produce import ProduceRequest, ProduceTopic
from protocol.records.batch import HEADER_SIZE, MAGIC, MAGIC_POSITION, TRANSACTIONAL_BIT
from storage.producers.verification import TransactionTerms
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.requests.request_context import RequestContext
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

RETRY_BACKOFF_MS: Final = 20.0
"""Default of Kafka's `add.partitions.to.txn.retry.backoff.ms`."""

RETRY_BACKOFF_MAX_MS: Final = 100.0
"""Default of Kafka's `add.partitions.to.txn.retry.backoff.max.ms`: how long to retry."""

PARKED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Most bytes of records that wait for the coordinator; more get a retriable error."""

WAITING_OVERHEAD: Final = 2 * 1024
"""Bytes that a waiting request counts for beyond its records: with acks=0 nothing else bounds how
many small ones a client has waiting."""

WORKED_OFF_PER_SLICE: Final = 50
"""Requests of a queue that are appended before yielding to the event loop."""

PRODUCER_POSITION: Final = 43
_producer_of = Struct(">qhi").unpack_from
"""A batch's producer id, epoch and base sequence."""

_UNVERIFIED = "Unable to verify the partition has been added to the transaction. Underlying error: "

_RETRIABLE_AS_NOT_ENOUGH_REPLICAS: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        # Beside it a partition was asked for that the coordinator has not heard of yet.
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)

Append = Callable[
    ["Connection", "RequestContext", ProduceRequest, Verdicts | None, Reply | None], HotResult
]
"""Append the verified batches and answer: by the result, or through the reply."""


class _Waiting:
    """A request that may have to wait; when it does its records are copied."""

    __slots__ = (
        "connection",
        "context",
        "deadline_ms",
        "operation",
        "refused",
        "reply",
        "request",
        "size",
    )

    def __init__(
        self, connection: "Connection", context: "RequestContext", request: ProduceRequest
    ) -> None:
        self.connection = connection
        self.context = context
        self.request = request
        self.operation = operation_of_produce(context.api_version)
        self.size = 0
        self.refused = False
        self.reply: Reply | None = None
        self.deadline_ms = 0.0


class TransactionalProduce:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_append",
        "_clock",
        "_open_reply",
        "_queues",
        "_replicas",
        "_verifier",
        "parked_bytes",
    )

    def __init__(
        self,
        replicas: "ReplicaManager",
        clock: "Clock",
        open_reply: "Callable[[Connection, RequestContext], Reply]",
        registrar: PartitionRegistrar | None,
        append: Append,
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._open_reply = open_reply
        self._verifier = TransactionVerifier(registrar, clock)
        self._append = append
        # By producer id; the first of each queue is being verified by the coordinator.
        self._queues: dict[int, deque[_Waiting]] = {}
        self.parked_bytes = 0

    def handle(
        self, connection: "Connection", context: "RequestContext", request: ProduceRequest
    ) -> HotResult:
        """Verify and append; the frame is not used after this returns."""
        try:
            producer, batches = self._transactional_batches(request, context)
        except ApiError as error:
            return self._append(connection, context, request, self._all(request, error.code), None)
        if producer is None:
            return self._append(connection, context, request, None, None)
        waiting = _Waiting(connection, context, request)
        queue = self._queues.get(producer.producer_id)
        verdicts: Verdicts | None = None
        if queue is None:
            verdicts = self._ask(producer, waiting, batches)
            if verdicts is not None and not _is_to_be_retried(verdicts, waiting.operation):
                return self._append(connection, context, request, verdicts, None)
        if not self._park(waiting):
            return self._append(connection, context, request, self._no_room(request, context), None)
        if queue is None:
            self._queues[producer.producer_id] = deque([waiting])
            if verdicts is not None:
                self._verified(producer, waiting, verdicts)
        else:
            queue.append(waiting)
        return None if waiting.reply is None else PARKED

    def _all(self, request: ProduceRequest, code: ErrorCode) -> Verdicts:
        """The same verdict for every partition that is here."""
        verdicts: dict[TopicPartition, Verdict] = {}
        for topic in request.topics:
            name = topic.name or self._replicas.names_by_id.get(topic.topic_id)
            for index, _ in topic.partitions:
                partition = None if name is None else self._replicas.leader_of(name, index)
                if partition is not None:
                    verdicts[partition.topic_partition] = Verdict(code)
        return verdicts

    def _transactional_batches(
        self, request: ProduceRequest, context: "RequestContext"
    ) -> "tuple[ProducerIdAndEpoch | None, list[tuple[Partition, int]]]":
        """The producer of the transactional batches, and their partitions.

        Topics that the client may not write are left out: the append refuses them, and the
        coordinator could add them to the transaction.

        Raises:
            ApiError: Of more than one producer.
        """
        producer: ProducerIdAndEpoch | None = None
        batches: list[tuple[Partition, int]] = []
        for topic in request.topics:
            name = topic.name or self._replicas.names_by_id.get(topic.topic_id)
            if name in BROKERS_OWN_TOPICS and not may_produce_to(name, context.client_id):
                name = None
            for index, records in topic.partitions:
                if records is None or len(records) < HEADER_SIZE or not is_transactional(records):
                    continue
                producer_id, epoch, sequence = _producer_of(records, PRODUCER_POSITION)
                if producer_id < 0:
                    continue
                if producer is None:
                    producer = ProducerIdAndEpoch(producer_id, epoch)
                elif producer != (producer_id, epoch):
                    raise ApiError(
                        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                        "Transactional records contained more than one producer ID",
                    )
                partition = None if name is None else self._replicas.leader_of(name, index)
                if partition is not None:
                    batches.append((partition, sequence))
        return producer, batches

    # -- waiting ---------------------------------------------------------------------------------

    def _ask(
        self,
        producer: ProducerIdAndEpoch,
        waiting: _Waiting,
        batches: "list[tuple[Partition, int]] | None" = None,
    ) -> Verdicts | None:
        """Verify; return the verdicts if they come at once, else `_verified` is called with them.

        Without `batches` they are determined again: partitions may change while a request waits.
        """
        if batches is None:
            _, batches = self._transactional_batches(waiting.request, waiting.context)
        outcome: list[Verdicts] = []
        at_once = True

        def done(verdicts: Verdicts) -> None:
            if at_once:
                outcome.append(verdicts)
            elif not waiting.refused:
                self._verified(producer, waiting, verdicts)

        assert waiting.request.transactional_id is not None
        self._verifier.verify(
            waiting.request.transactional_id, producer, batches, waiting.operation, done
        )
        at_once = False
        return outcome[0] if outcome else None

    def _ask_again(self, producer: ProducerIdAndEpoch, waiting: _Waiting) -> None:
        verdicts = self._ask(producer, waiting)
        if verdicts is not None:
            self._verified(producer, waiting, verdicts)

    def _park(self, waiting: _Waiting) -> bool:
        """Copy the request's records; False when too much waits already."""
        request = waiting.request
        size = WAITING_OVERHEAD + sum(
            len(records)
            for topic in request.topics
            for _, records in topic.partitions
            if records is not None
        )
        if self.parked_bytes + size > PARKED_BYTES_MAX:
            waiting.refused = True
            return False
        self.parked_bytes += size
        waiting.size = size
        waiting.deadline_ms = self._clock.monotonic_ms() + RETRY_BACKOFF_MAX_MS
        waiting.request = _copied(request)
        if request.acks != 0:
            waiting.reply = self._open_reply(waiting.connection, waiting.context)
        return True

    def _no_room(self, request: ProduceRequest, context: "RequestContext") -> Verdicts:
        _, batches = self._transactional_batches(request, context)
        # Retriable, and nothing was written.
        return {
            partition.topic_partition: Verdict(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            for partition, _ in batches
        }

    def _verified(
        self, producer: ProducerIdAndEpoch, waiting: _Waiting, verdicts: Verdicts
    ) -> None:
        """Apply the coordinator's verdicts for the first of a queue."""
        queue = self._queues[producer.producer_id]
        worked_off = 0
        while True:
            if self._retry_later(producer, waiting, verdicts):
                return
            first = queue.popleft()
            assert first is waiting
            self.parked_bytes -= waiting.size
            self._append_waiting(waiting, verdicts)
            if not queue:
                del self._queues[producer.producer_id]
                return
            waiting = queue[0]
            found, _ = self._transactional_batches(waiting.request, waiting.context)
            assert found is not None
            producer = found
            worked_off += 1
            if worked_off == WORKED_OFF_PER_SLICE:
                self._ask_later(producer, waiting, 0)
                return
            outcome = self._ask(producer, waiting)
            if outcome is None:
                return
            verdicts = outcome

    def _append_waiting(self, waiting: _Waiting, verdicts: Verdicts) -> None:
        try:
            body = self._append(
                waiting.connection, waiting.context, waiting.request, verdicts, waiting.reply
            )
        except Exception:
            # It must fail neither the producer's next requests nor the calling coordinator.
            LOGGER.exception(
                "transactional produce failed unexpectedly transactional_id=%s",
                log_value(waiting.request.transactional_id or ""),
            )
            waiting.connection.close("internal error")
            return
        if waiting.reply is not None and body is not PARKED:
            assert body is None or isinstance(body, bytes | list)
            waiting.reply.send(body)

    def _ask_later(self, producer: ProducerIdAndEpoch, waiting: _Waiting, delay_ms: float) -> None:
        self._replicas.timer.call_later_ms(delay_ms, lambda: self._ask_again(producer, waiting))

    def _retry_later(
        self, producer: ProducerIdAndEpoch, waiting: _Waiting, verdicts: Verdicts
    ) -> bool:
        if not _is_to_be_retried(verdicts, waiting.operation):
            return False
        if self._clock.monotonic_ms() >= waiting.deadline_ms:
            return False
        self._ask_later(producer, waiting, RETRY_BACKOFF_MS)
        return True


def is_transactional(records: memoryview) -> bool:
    """Whether a batch of at least a header's size is part of a transaction.

    Messages of older formats have other things where the bit is.
    """
    return records[22] & TRANSACTIONAL_BIT != 0 and records[MAGIC_POSITION] == MAGIC


def terms_of(verdict: Verdict, operation: SupportedOperation) -> TransactionTerms | None:
    """The transaction terms of a verified batch.

    Raises:
        ApiError: It may not be appended; the code for its producer.
    """
    code = verdict.error
    if code is ErrorCode.NONE:
        return None if verdict.guard is None else TransactionTerms(verdict.guard)
    if code is ErrorCode.INVALID_TXN_STATE:
        raise ApiError(code, "Partition was not added to the transaction")
    if code in _RETRIABLE_AS_NOT_ENOUGH_REPLICAS or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and not operation.supports_epoch_bump
    ):
        # Older clients do not retry on the coordinator's own errors; on this they do, and they do
        # not ask for metadata first.
        raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, _UNVERIFIED + code.name)
    raise ApiError(code)


def _is_to_be_retried(verdicts: Verdicts, operation: SupportedOperation) -> bool:
    """Whether the last transaction is still completing: to wait is cheaper than a retry."""
    if operation.supports_epoch_bump:
        for verdict in verdicts.values():
            if verdict.error is ErrorCode.CONCURRENT_TRANSACTIONS:
                return True
    return False


def _copied(request: ProduceRequest) -> ProduceRequest:
    topics = [
        ProduceTopic(
            topic.name,
            bytes(topic.topic_id),
            [
                (index, None if records is None else memoryview(bytearray(records)))
                for index, records in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, topics)
