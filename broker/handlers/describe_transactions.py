"""DescribeTransactions (API key 65), version 0 (KIP-664).

Behaviour:
- Producer, state, timeout, start and partitions of each requested transactional id. While markers
  are written, the partitions are those without one yet.
- TRANSACTIONAL_ID_NOT_FOUND for one that has never been used, or has expired.
"""

import asyncio
from typing import TYPE_CHECKING

from broker.transactions.coordinator.transaction_metadata import TransactionMetadata
from protocol.api_keys import ApiKey
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from storage.types.topic_partition import indexes_by_topic

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_TRANSACTIONS
VERSIONS = (0, 0)

PARTITIONS_PER_SLICE = 2_000
"""Partitions that are listed before yielding to the event loop."""


async def handle(
    services: "Services", context: "RequestContext", request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe from memory, in slices."""
    states = []
    since_pause = 0
    for transactional_id in dict.fromkeys(request.transactional_ids):
        code, metadata = services.transactions.find_transaction(transactional_id)
        if metadata is None:
            states.append(TransactionState(error_code=code, transactional_id=transactional_id))
            since_pause += 1
        else:
            states.append(_describe(metadata))
            since_pause += 1 + len(metadata.partitions)
        if since_pause >= PARTITIONS_PER_SLICE:
            since_pause = 0
            await asyncio.sleep(0)
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(metadata: TransactionMetadata) -> TransactionState:
    topics = indexes_by_topic(sorted(metadata.partitions))
    return TransactionState(
        transactional_id=metadata.transactional_id,
        transaction_state=metadata.state.label,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_timestamp_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
