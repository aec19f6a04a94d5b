"""Produce (API key 0), versions 3 to 13; advertised from 0, as Kafka does.

Behaviour:
- One record batch per partition. It is validated as a batch (CRC-32C, sizes, counts, timestamps,
  codec, producer state), its offsets are assigned in place, and it is written once to the page
  cache.
- acks=0 has no answer; if it fails the connection is closed, so that the client notices.
- acks=1 answers when this broker has the records: at once, unless a thread writes them
  (`storage.log.write_behind`), or after the shared fdatasync when `flush.messages` is reached.
  acks=-1 answers when they are committed: when all of the ISR have them. With fewer members than
  `min.insync.replicas` it is refused with NOT_ENOUGH_REPLICAS; if they become too few while it
  waits, it answers NOT_ENOUGH_REPLICAS_AFTER_APPEND: the records are in the log, and may be
  committed later.
- A broker that may have been deposed without having heard of it refuses acks=0 and 1 with
  NOT_LEADER_OR_FOLLOWER: another leader would not have the records. acks=all waits.
- While too many bytes wait to be written, the connection is not read.
- Larger batches of topics that cost CPU by the record (`compression.type` other than the
  producer's, `record.validation=full`, compacted ones) are prepared by a thread; every other append
  stays on the loop.
- An idempotent batch whose predecessor in the pipeline was refused for now is refused likewise, not
  as out of order, and not written as the first of a producer that the log does not know
  (`broker.transactions.partitions.refused_batches`).
- With NOT_LEADER_OR_FOLLOWER a client gets the leader and its address (KIP-951).
- Clients may not write internal topics, nor `__remote_log_metadata`, which other brokers write.
- Transactional records without a transactional id: the whole request is refused.
- A request with a transactional id is verified first
  (`broker.transactions.partitions.transactional_produce`): a batch opens a transaction in a
  partition only if it was added to the transaction at the coordinator.

Versions:
- 3   record batch v2, transactional id           KIP-98
- 5   log start offset                            KIP-107
- 7   zstd                                        KIP-110
- 8   errors of single records                    KIP-467
- 9   flexible
- 10  current leader                              KIP-951
- 11  TRANSACTION_ABORTABLE                       KIP-890
- 12  partitions are added to the transaction     KIP-890
- 13  topic ids                                   KIP-516

librdkafka before 2.11.1 turns compression off unless versions 0 to 2 are offered (KAFKA-18659), so
0 is advertised; no client sends them.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.controller.images.topic_names import BROKERS_OWN_TOPICS, may_produce_to
from broker.replicas.delayed_produce import DelayedProduce
from broker.replicas.leader_hints import PRODUCE_CODES, PRODUCE_FROM_VERSION
from broker.replicas.preparation import INLINE_SIZE_MAX
from broker.requests.reply import PARKED, HotResult, Reply
from broker.requests.request_limits import ELEMENTS_MAX, check_partitions
from broker.requests.single_batch import check_single_batch
from broker.runtime.errors import ApiError, code_of
from broker.transactions.partitions.refused_batches import RefusedBatches, SentBatch, sent_batch
from broker.transactions.partitions.transactional_produce import (
    TransactionalProduce,
    is_transactional,
    terms_of,
)
from broker.transactions.partitions.verification import operation_of_produce
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.hot.produce import (
    ProducePartitionResponse,
    ProduceTopic,
    decode_plain,
    decode_request,
    encode_appended,
    encode_response,
)
from protocol.quick import is_one_batch
from protocol.records.batch import HEADER_SIZE
from storage.errors import BatchError, DiskError, OutOfOrderSequenceError, StorageError

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.requests.request_context import RequestContext
    from broker.transactions.interfaces import PartitionRegistrar
    from broker.transactions.partitions.verification import Verdicts
    from protocol.hot.produce import ProduceRequest
    from storage.environment.clock import Clock
    from storage.producers.verification import TransactionTerms
    from storage.types.append_info import AppendInfo

LOGGER = logging.getLogger(__name__)

API_KEY = ApiKey.PRODUCE
VERSIONS = (3, 13)
ADVERTISED_FROM = 0

_BROKERS_OWN: Final = BROKERS_OWN_TOPICS

ACKS_ALL: Final = -1
ACKS_0_FAILED: Final = "produce with acks=0 failed"

WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors of a log that are answered without its start, as Kafka does."""

Offloaded = list[
    tuple["Partition", memoryview, ProducePartitionResponse, "TransactionTerms | None"]
]
"""(partition, batch for a thread to prepare, its part of the response, of its transaction)."""

TopicResponses = list[tuple[str | bytes, list[ProducePartitionResponse]]]


def _is_from_no_broker(_context: "RequestContext") -> bool:
    """A node that is alone has no brokers to write to it."""
    return False


class ProduceHandler:
    """See the module."""

    __slots__ = (
        "_clock",
        "_is_from_broker",
        "_now_ms",
        "_open_reply",
        "_refused",
        "_replicas",
        "_transactional",
    )

    def __init__(
        self,
        replicas: "ReplicaManager",
        clock: "Clock",
        open_reply: "Callable[[Connection, RequestContext], Reply]",
        registrar: "PartitionRegistrar | None" = None,
        is_from_broker: "Callable[[RequestContext], bool]" = _is_from_no_broker,
        refused: RefusedBatches | None = None,
    ) -> None:
        """Append nothing yet.

        Args:
            replicas: Whose partitions are written.
            clock: Times of records.
            open_reply: Reserves a response's place.
            registrar: The transaction coordinator; without one no transaction can begin.
            is_from_broker: Whether a member of the cluster writes: only asked of topics that
                clients may not write.
            refused: Remembers batches that were refused; None: of its own.
        """
        self._is_from_broker = is_from_broker
        self._refused = RefusedBatches() if refused is None else refused
        self._replicas = replicas
        self._clock = clock
        self._now_ms: Callable[[], int] = clock.now_ms
        self._open_reply = open_reply
        self._transactional = TransactionalProduce(
            replicas, clock, open_reply, registrar, self._append
        )

    def __call__(
        self, connection: "Connection", context: "RequestContext", frame: memoryview, position: int
    ) -> HotResult:
        """Handle one request in place."""
        plain = decode_plain(frame, position, context.api_version)
        if plain is not None:
            acks, timeout_ms, name_or_id, index, batch = plain
            partition = self._plain_partition(acks, name_or_id, index)
            if partition is not None:
                return self._append_plain(
                    connection, context, partition, acks, timeout_ms, name_or_id, index, batch
                )
        request = decode_request(frame, position, context.api_version)
        if len(frame) > ELEMENTS_MAX:
            check_partitions(sum(len(topic.partitions) + 1 for topic in request.topics))
        if request.transactional_id is not None:
            return self._transactional.handle(connection, context, request)
        for topic in request.topics:
            for _, records in topic.partitions:
                if (
                    records is not None
                    and len(records) >= HEADER_SIZE
                    and is_transactional(records)
                ):
                    return self._refuse_all(connection, context, request)
        return self._append(connection, context, request, None, None)

    def _plain_partition(self, acks: int, topic: str | bytes, index: int) -> "Partition | None":
        """Where the batch of a plain request goes; None where `_append` has more to look at."""
        replicas = self._replicas
        name = replicas.names_by_id.get(topic) if isinstance(topic, bytes) else topic
        partition = None if name is None else replicas.leader_of(name, index)
        if (
            partition is None
            or not -1 <= acks <= 1
            or name in _BROKERS_OWN
            or partition.log.writer.works_by_record
            or self._refused.watched_until_ms > 0
            or partition.is_in_doubt_for(acks_all=acks == ACKS_ALL)
        ):
            return None
        return partition

    def _append_plain(
        self,
        connection: "Connection",
        context: "RequestContext",
        partition: "Partition",
        acks: int,
        timeout_ms: int,
        topic: str | bytes,
        index: int,
        records: memoryview,
    ) -> HotResult:
        """As `_append`, of a plain request: the same, without what may be several."""
        acks_all = acks == ACKS_ALL
        partition.stats.produces += 1
        try:
            info = partition.append(
                records,
                self._now_ms(),
                memory=connection,
                acks_all=acks_all,
                is_alone=connection.is_last,
            )
        except (StorageError, ApiError) as error:
            if isinstance(topic, bytes):
                refused = ProduceTopic(None, topic, [(index, records)])
            else:
                refused = ProduceTopic(topic, b"", [(index, records)])
            response = self._refusal(refused, index, records, error)
            if not acks:
                connection.close(ACKS_0_FAILED)
                return None
            return self._encode([(topic, [response])], context)
        if not partition.has_reached(info.last_offset + 1, acks_all=acks_all):
            response = response_of(index, info)
            delayed = self._wait_for(partition, info, response, acks, None, connection)
            if delayed is not None:
                reply = self._open_reply(connection, context)
                self._wait(reply, context, timeout_ms, [(topic, [response])], delayed)
                return PARKED
        if not acks:
            return None
        return encode_appended(
            topic,
            index,
            info.first_offset,
            info.log_append_time_ms,
            info.log_start_offset,
            context.api_version,
        )

    @staticmethod
    def _wait_for(
        partition: "Partition",
        info: "AppendInfo",
        response: ProducePartitionResponse,
        acks: int,
        delayed: DelayedProduce | None,
        connection: "Connection",
    ) -> DelayedProduce | None:
        """Records are not where the acks ask for them yet: what waits for them; None: nothing."""
        if acks:
            if delayed is None:
                delayed = DelayedProduce()
            waits = partition.waits(acks_all=acks == ACKS_ALL)
            delayed.wait_for(waits, info.last_offset + 1, response)
        if partition.is_congested:
            partition.hold_back(connection)
        return delayed

    def _append(
        self,
        connection: "Connection",
        context: "RequestContext",
        request: "ProduceRequest",
        verdicts: "Verdicts | None",
        reply: Reply | None,
    ) -> HotResult:
        """Append every batch and answer.

        Args:
            connection: Whose request it is.
            context: Of the request.
            request: Its records are not used after this returns.
            verdicts: Of the transactional batches; None: nothing had to be verified.
            reply: The place of the response, if it has been reserved already.
        """
        version = context.api_version
        now_ms = self._now_ms()
        acks_all = request.acks == ACKS_ALL
        is_watched = self._refused.watched_until_ms > 0 and self._refused.is_watched(
            self._clock.monotonic_ms()
        )
        is_alone = (
            connection.is_last
            and len(request.topics) == 1
            and len(request.topics[0].partitions) == 1
        )
        topics: TopicResponses = []
        delayed: DelayedProduce | None = None
        offloaded: Offloaded = []
        failed = False
        for topic in request.topics:
            responses: list[ProducePartitionResponse] = []
            for index, records in topic.partitions:
                try:
                    partition = self._partition(request, topic, index, records, context)
                    assert records is not None
                    if partition.is_in_doubt_for(acks_all=acks_all):
                        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    log = partition.log
                    terms = None
                    if verdicts is not None:
                        verdict = verdicts.get(partition.topic_partition)
                        if verdict is not None:
                            terms = terms_of(verdict, operation_of_produce(version))
                        elif is_transactional(records):
                            # It was not served yet when the coordinator was called.
                            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    if is_watched:
                        self._check_beginning(partition, records)
                    if log.writer.works_by_record and self._needs_offload(
                        partition, records, offloaded
                    ):
                        response = ProducePartitionResponse(index, 0, -1)
                        offloaded.append((partition, records, response, terms))
                    else:
                        info = partition.append(
                            records,
                            now_ms,
                            terms=terms,
                            memory=connection,
                            acks_all=acks_all,
                            is_alone=is_alone,
                        )
                        response = response_of(index, info)
                        if not partition.has_reached(info.last_offset + 1, acks_all=acks_all):
                            delayed = self._wait_for(
                                partition, info, response, request.acks, delayed, connection
                            )
                    responses.append(response)
                except (StorageError, ApiError) as error:
                    failed = True
                    responses.append(self._refusal(topic, index, records, error))
            topics.append((topic.topic_id if version >= 13 else topic.name or "", responses))
        if offloaded:
            return self._offload_batches(
                connection, context, request, topics, delayed, offloaded, reply
            )
        if request.acks == 0:
            if failed:
                connection.close(ACKS_0_FAILED)
            return None
        if delayed is not None:
            if reply is None:
                reply = self._open_reply(connection, context)
            self._wait(reply, context, request.timeout_ms, topics, delayed)
            return PARKED
        return self._encode(topics, context) if failed else encode_response(topics, version)

    def _partition(
        self,
        request: "ProduceRequest",
        topic: "ProduceTopic",
        index: int,
        records: memoryview | None,
        context: "RequestContext",
    ) -> "Partition":
        """The partition of an append, after the checks that need no log.

        Raises:
            ApiError, BatchError: The client may not write the batch here.
        """
        name = topic.name
        if name is None:
            name = self._replicas.topic_name(topic.topic_id)
            if name is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._replicas.leader_of(name, index)
        if partition is None:
            raise ApiError(self._replicas.missing_error(name, index))
        if not -1 <= request.acks <= 1:
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
        if name in _BROKERS_OWN and not may_produce_to(
            name, context.client_id, is_broker=self._is_from_broker(context)
        ):
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}"
            )
        if records is None or not is_one_batch(records, context.api_version):
            check_single_batch(records, context.api_version)
        partition.stats.produces += 1
        return partition

    @staticmethod
    def _needs_offload(partition: "Partition", records: memoryview, offloaded: Offloaded) -> bool:
        preparation = partition.preparation
        return (
            len(records) > INLINE_SIZE_MAX
            or (preparation is not None and preparation.busy)
            # Listed twice in one request: the second batch must not overtake the first.
            or any(other is partition for other, _, _, _ in offloaded)
        )

    def _check_beginning(self, partition: "Partition", records: memoryview) -> None:
        """Whether a producer that the log does not know may begin with this batch.

        Raises:
            OutOfOrderSequenceError: It comes behind one that was refused.
        """
        sent = sent_batch(*partition.topic_partition, records)
        if sent is None or not self._refused.is_behind(sent):
            return
        producer_id = sent.sender.producer_id
        if partition.log.producer_state.last_entry(producer_id) is None:
            raise OutOfOrderSequenceError(
                f"producer {producer_id} begins with sequence {sent.base_sequence} in "
                f"{partition.topic_partition}, behind a batch that was refused"
            )

    def _refusal(
        self, topic: "ProduceTopic", index: int, records: memoryview | None, error: Exception
    ) -> ProducePartitionResponse:
        name = topic.name or self._replicas.names_by_id.get(topic.topic_id)
        partition = self._replicas.leader_of(name, index) if name else None
        response = ProducePartitionResponse(index, 0, -1)
        if not name and topic.topic_id:
            name = self._replicas.topic_name(topic.topic_id)
        self._refuse(partition, response, error, sent_batch(name or "", index, records))
        return response

    def _refuse(
        self,
        partition: "Partition | None",
        response: ProducePartitionResponse,
        error: Exception,
        sent: SentBatch | None,
    ) -> None:
        """Fill in and count an error; with the log start offset if the log has refused it.

        A leader that may have been deposed does not say that a sequence number or an epoch is
        wrong, which clients take for the end of their producer: another leader may have what this
        one lacks.
        """
        if partition is not None:
            if isinstance(error, DiskError):
                self._replicas.disk_failed(partition, error)
            elif partition.is_in_doubt(self._clock.monotonic_ms()):
                error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        code = code_of(error)
        answered = code
        if sent is not None:
            answered = self._refused.code_for(sent, code, self._clock.monotonic_ms())
        response.error_code = answered
        if answered is not code:
            error = ApiError(answered)
        if isinstance(error, BatchError):
            response.error_message = str(error)
            response.record_errors = error.record_errors
        elif isinstance(error, ApiError) and error.message:
            response.error_message = error.message
        elif response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            LOGGER.error(
                "produce failed unexpectedly partition=%s",
                "unknown" if partition is None else partition.topic_partition,
                exc_info=error,
            )
        if partition is not None:
            partition.stats.failed_produces += 1
            if response.error_code not in WITHOUT_LOG_START and not isinstance(error, ApiError):
                response.log_start_offset = partition.log.log_start_offset

    @staticmethod
    def _refuse_all(
        connection: "Connection", context: "RequestContext", request: "ProduceRequest"
    ) -> HotResult:
        """Refuse a request with transactional records and without a transactional id."""
        if request.acks == 0:
            connection.close(ACKS_0_FAILED)
            return None
        version = context.api_version
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        topics: TopicResponses = [
            (
                topic.topic_id if version >= 13 else topic.name or "",
                [ProducePartitionResponse(index, code, -1) for index, _ in topic.partitions],
            )
            for topic in request.topics
        ]
        return encode_response(topics, version)

    def _offload_batches(
        self,
        connection: "Connection",
        context: "RequestContext",
        request: "ProduceRequest",
        topics: TopicResponses,
        delayed: DelayedProduce | None,
        offloaded: Offloaded,
        reply: Reply | None,
    ) -> HotResult:
        """Prepare some batches in threads; answer when the last of them is written."""
        if request.acks != 0 and reply is None:
            reply = self._open_reply(connection, context)
        left = len(offloaded)
        acks_all = request.acks == ACKS_ALL
        delayed = delayed or DelayedProduce()

        def done_with(
            partition: "Partition", response: ProducePartitionResponse, sent: SentBatch | None
        ) -> "Callable[[AppendInfo | None, Exception | None], None]":
            def done(info: "AppendInfo | None", error: Exception | None) -> None:
                nonlocal left
                left -= 1
                if info is not None:
                    response.base_offset = info.first_offset
                    response.log_append_time_ms = info.log_append_time_ms
                    response.log_start_offset = info.log_start_offset
                    end_offset = info.last_offset + 1
                    reached = partition.has_reached(end_offset, acks_all=acks_all)
                    if reply is not None and not reached:
                        waits = partition.waits(acks_all=acks_all)
                        delayed.wait_for(waits, end_offset, response)
                elif error is not None:
                    self._refuse(partition, response, error, sent)
                if left:
                    return
                if reply is not None:
                    self._wait(reply, context, request.timeout_ms, topics, delayed)
                elif any(one.error_code for _, responses in topics for one in responses):
                    connection.close(ACKS_0_FAILED)

            return done

        for partition, records, response, terms in offloaded:
            sent = sent_batch(*partition.topic_partition, records)
            done = done_with(partition, response, sent)
            preparation = self._replicas.preparation_of(partition)
            if not preparation.submit(records, done, terms, acks_all=acks_all):
                # Retriable, and nothing was written.
                done(None, ApiError(ErrorCode.REQUEST_TIMED_OUT))
        return PARKED if reply is not None else None

    def _wait(
        self,
        reply: Reply,
        context: "RequestContext",
        timeout_ms: int,
        topics: TopicResponses,
        delayed: DelayedProduce,
    ) -> None:
        """Answer when every part is settled, or at the request's timeout."""
        if not delayed.seal(lambda: reply.send(self._encode(topics, context))):
            reply.send(self._encode(topics, context))
            return
        reply.when_abandoned(delayed.abandon)
        if not self._replicas.delayed_produce.park(delayed, timeout_ms):
            delayed.complete(expired=True)

    def _encode(self, topics: TopicResponses, context: "RequestContext") -> bytes:
        """A response in which some partitions may have been refused."""
        version = context.api_version
        hints = self._replicas.leader_hints
        if hints is None or version < PRODUCE_FROM_VERSION:
            return encode_response(topics, version)
        endpoints = hints.add(topics, PRODUCE_CODES, context.connection.listener_name)
        return encode_response(topics, version, node_endpoints=endpoints)


def response_of(index: int, info: "AppendInfo") -> ProducePartitionResponse:
    """What a partition answers whose records were appended."""
    return ProducePartitionResponse(
        index, 0, info.first_offset, info.log_append_time_ms, info.log_start_offset
    )
