"""AddPartitionsToTxn (API key 24), versions 0 to 5.

Behaviour:
- Adds partitions to a producer's transaction; answered when that is committed.
- All or none: a partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION, one of an internal
  topic TOPIC_AUTHORIZATION_FAILED (a client's offsets come by AddOffsetsToTxn; no client writes
  `__remote_log_metadata`), and the others of its transaction OPERATION_NOT_ATTEMPTED.
- With `verify_only` (sent by brokers for old clients) nothing is added: partitions that are not
  part of the transaction get TRANSACTION_ABORTABLE.

Versions:
- 2  PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH       KIP-588
- 3  flexible
- 4  several transactions, verify_only; between brokers           KIP-890
     CLUSTER_AUTHORIZATION_FAILED on a listener for clients, where brokers have one of their own
- 5  TRANSACTION_ABORTABLE                                        KIP-890
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import BROKERS_OWN_TOPICS, REMOTE_LOG_METADATA
from broker.requests.answer import Answer
from broker.requests.inter_broker import check_inter_broker
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ADD_PARTITIONS_TO_TXN
VERSIONS = (0, 5)

FENCED_FROM = 2
"""The first version that knows PRODUCER_FENCED."""

BATCHED_FROM = 4
"""The first version that carries several transactions."""

_CLOSED_TO_ALL = frozenset({REMOTE_LOG_METADATA})

TRANSACTIONS_PER_SLICE = 50
"""Transactions, each with a record of its own, before yielding to the event loop."""


def handle(
    services: "Services", context: "RequestContext", request: AddPartitionsToTxnRequest
) -> "AddPartitionsToTxnResponse | Answer[AddPartitionsToTxnResponse]":
    """Add or verify; answered when every transaction has its outcome.

    Raises:
        ApiError: CLUSTER_AUTHORIZATION_FAILED.
    """
    version = context.api_version
    if version >= BATCHED_FROM:
        check_inter_broker(services.settings, context)
    if version >= BATCHED_FROM:
        transactions = list({t.transactional_id: t for t in request.transactions}.values())
    else:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    if not transactions:
        return AddPartitionsToTxnResponse()
    answer: Answer[AddPartitionsToTxnResponse] = Answer()
    _Transactions(services, version, transactions, answer).go_on(0)
    return answer.result()


class _Transactions:
    """The transactions of a request; the last one that has its outcome answers it.

    No functions within `handle` that know each other: with each request they, and what they know,
    would be left to the garbage collector.
    """

    __slots__ = ("_answer", "_left", "_results", "_services", "_transactions", "_version")

    def __init__(
        self,
        services: "Services",
        version: int,
        transactions: Sequence[AddPartitionsToTxnTransaction],
        answer: Answer[AddPartitionsToTxnResponse],
    ) -> None:
        self._services = services
        self._version = version
        self._transactions = transactions
        self._answer = answer
        self._results: list[AddPartitionsToTxnResult | None] = [None] * len(transactions)
        self._left = len(transactions)

    def go_on(self, begin: int) -> None:
        """Add or verify a slice of them, from `begin` on; the next one in another turn."""
        end = begin + TRANSACTIONS_PER_SLICE
        if end < len(self._transactions):
            asyncio.get_running_loop().call_soon(self.go_on, end)
        for position, transaction in enumerate(self._transactions[begin:end], begin):
            _add_or_verify(
                self._services, self._version, transaction, partial(self._ended, position)
            )

    def _ended(self, position: int, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        transaction = self._transactions[position]
        self._results[position] = AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=_topic_results(transaction.topics, errors, self._version),
        )
        self._left -= 1
        if not self._left:
            results = [result for result in self._results if result is not None]
            self._answer(_response(self._version, results))


def _add_or_verify(
    services: "Services",
    version: int,
    transaction: AddPartitionsToTxnTransaction,
    done: "partial[None]",
) -> None:
    partitions = [
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    ]
    image = services.controller.image
    refused = {
        p: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for p in partitions if image.partition(*p) is None
    }
    # Offsets come by brokers' requests as well; nothing that belongs to remote segments does.
    closed = BROKERS_OWN_TOPICS if version < BATCHED_FROM else _CLOSED_TO_ALL
    refused |= {p: ErrorCode.TOPIC_AUTHORIZATION_FAILED for p in partitions if p.topic in closed}
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    if refused:
        done({p: refused.get(p, ErrorCode.OPERATION_NOT_ATTEMPTED) for p in partitions})
    elif transaction.verify_only:
        done(
            services.transactions.verify_partitions(
                transaction.transactional_id, producer, partitions
            )
        )
    else:
        services.transactions.add_partitions(
            transaction.transactional_id,
            producer,
            partitions,
            client_transaction_version=2 if version >= BATCHED_FROM else 0,
            done=lambda code: done(dict.fromkeys(partitions, code)),
        )


def _topic_results(
    topics: Sequence[AddPartitionsToTxnTopic],
    errors: Mapping[TopicPartition, ErrorCode],
    version: int,
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=_code(errors[TopicPartition(topic.name, index)], version),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _code(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < BATCHED_FROM:
        return ErrorCode.INVALID_REQUEST
    return code


def _response(version: int, results: list[AddPartitionsToTxnResult]) -> AddPartitionsToTxnResponse:
    if version >= BATCHED_FROM:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
