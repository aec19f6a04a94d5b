"""WriteTxnMarkers (API key 27), versions 1 to 2.

Behaviour:
- Coordinators end transactions in the partitions of other brokers with it; administrators use it
  to abort a hanging transaction (KIP-664).
- Every partition of every marker has its own error code: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_
  FOLLOWER while it cannot be written, INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED
  if a newer producer or coordinator has written.
- Served where brokers call; on a listener for clients all partitions get CLUSTER_AUTHORIZATION_
  FAILED, where brokers have a listener of their own, and nothing is written.
- The answer comes when all markers are committed; those without partitions are not in it.

Versions:
- 1   flexible
- 2   transaction version: an equal epoch is a late marker   KIP-1228
"""

from typing import TYPE_CHECKING

from broker.requests.answer import Answer
from broker.requests.inter_broker import is_inter_broker
from broker.transactions.interfaces import PartitionErrors
from broker.transactions.partitions.markers import LocalMarkerWriter
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.WRITE_TXN_MARKERS
VERSIONS = (1, 2)


def handle(
    services: "Services", context: "RequestContext", request: WriteTxnMarkersRequest
) -> "WriteTxnMarkersResponse | Answer[WriteTxnMarkersResponse]":
    """Write the markers."""
    answer: Answer[WriteTxnMarkersResponse] = Answer()
    response = WriteTxnMarkersResponse(markers=[])
    markers = [m for m in request.markers if any(t.partition_indexes for t in m.topics)]
    if not markers:
        return response
    is_from_broker = is_inter_broker(services.settings, context)
    writer = LocalMarkerWriter(services.replica_manager, services.groups)
    left = len(markers)

    def write(marker: WritableTxnMarker) -> None:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        response.markers.append(result)

        def done(errors: PartitionErrors) -> None:
            nonlocal left
            result.topics = [
                WritableTxnMarkerTopicResult(
                    name=topic.name,
                    partitions=[
                        WritableTxnMarkerPartitionResult(
                            partition_index=index,
                            error_code=errors[TopicPartition(topic.name, index)],
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in marker.topics
            ]
            left -= 1
            if not left:
                answer(response)

        partitions = [
            TopicPartition(topic.name, index)
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        if not is_from_broker:
            done(dict.fromkeys(partitions, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            return
        writer.write(
            TransactionMarker(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
            ),
            partitions,
            done,
        )

    for marker in markers:
        write(marker)
    return answer.result()
