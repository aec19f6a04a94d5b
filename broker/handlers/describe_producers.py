"""DescribeProducers (API key 61), version 0 (KIP-664).

Behaviour:
- The producer state of a partition's log: epoch, last sequence, last timestamp, coordinator epoch,
  and start offset of an open transaction (-1: none). It is used to find hanging transactions.
- Any replica answers for its own log.
- An illegal name is INVALID_TOPIC_EXCEPTION, with which tools end: they ask again for a partition
  that is not there, as it may be soon.
"""

from typing import TYPE_CHECKING

from broker.controller.images.topic_names import name_problem
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_PRODUCERS
VERSIONS = (0, 0)


def handle(
    services: "Services", context: "RequestContext", request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of each partition."""
    topics = []
    for topic in request.topics:
        answers = []
        for index in topic.partition_indexes:
            partition = services.replica_manager.replica_of(topic.name, index)
            if partition is None:
                code = (
                    services.replica_manager.missing_error(topic.name, index)
                    if name_problem(topic.name) is None
                    else ErrorCode.INVALID_TOPIC_EXCEPTION
                )
                answers.append(PartitionResponse(partition_index=index, error_code=int(code)))
                continue
            producers = [
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.epoch,
                    last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.txn_first_offset,
                )
                for entry in partition.log.producer_state.active_producers()
            ]
            answers.append(PartitionResponse(partition_index=index, active_producers=producers))
        topics.append(TopicResponse(name=topic.name, partitions=answers))
    return DescribeProducersResponse(topics=topics)
